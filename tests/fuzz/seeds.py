"""Real texts for the parsers: logs and files of the tests, sites, pages, and what nodes print."""

import json
from functools import cache
from pathlib import Path

from tests.fabric import sparks
from tetraspark.fleet.facts import Facts

ROOT = Path(__file__).parents[2]
STATE = json.dumps(
    {
        "phase": "ready",
        "since": 1796000000.25,
        "shared_memory": ["/dev/shm/psm_0123abcd", "/dev/shm/sem.mp-060santq"],
        "tolerated": [{"id": "DISK.ROOM", "node": "spark2", "observed": "3 GiB", "wanted": "8"}],
    }
)
EFFECTIVE = '[{"setting": "--tp-size", "planned": "4", "key": "tp_size", "value": 4, "same": true}]'
PROGRESS = json.dumps(
    {
        "transport": "rdma",
        "verdict": "failed",
        "operations": 7,
        "root": {"peer": 2, "kind": "dead", "detail": "process 7 is gone"},
        "peers": [
            {"rank": 1, "late": {"count": 3}, "lanes": [{"lane": 0, "writes": 5, "bytes": 4096}]}
        ],
        "details": {
            "devices": [{"device": "roceP2p1s0f0", "counters": {"local_ack_timeout_err": 1}}],
            "lanes": [{"lane": 0, "peer": 1, "device": "roceP2p1s0f0", "stalls": 2}],
        },
    }
)
CURSOR = json.dumps(
    {
        "size": 120,
        "lines": 2,
        "position": {"newest": 1796000000123456789, "recent": [[1796000000123456789, "x"]]},
        "clock": {"low": -0.25, "high": 0.25},
    }
)
_ACT = {"run": "20260101-000000-000000", "reason": "no token", "done": "stop", "why": "", "at": 1.0}
ACTS = json.dumps({"acts": [{**_ACT, "folder": "/x", "rank": 1}], "earlier": []})
WORDS = json.dumps(
    {
        "pid": 7,
        "at": 1796000000.25,
        "run": None,
        "state": "ready",
        "reason": "every rank is up",
        "rank": None,
        "since": 1795000000.0,
        "findings": [],
    }
)
MEMINFO = (
    "MemTotal:       128525980 kB\nMemFree:        12525980 kB\nMemAvailable:   98525980 kB\n"
    "Cached:         1234 kB\n"
)
BUDDYINFO = (
    "Node 0, zone      DMA     1     1     1     0     2     1     1     0     1     1     3\n"
    "Node 0, zone   Normal  4381  1093   185  1530   567   102     0     0     0     1     0\n"
)
DMESG = (
    "[ 1042.331] NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] "
    "(0x00000051) returned from _memdescAllocInternal\n"
    "[ 1043.002] pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0\n"
    "[ 1044.119] Out of memory: Killed process 4711 (python3) total-vm:9kB\n"
)
STAT = "4711 (py (thon) x) S 1 4711 4711 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 3 0 987654 1 2 3\n"
SMI = (
    "index, name, driver_version, memory.total [MiB], memory.free [MiB]\n"
    "0, NVIDIA GB10, 580.95.05, [N/A], 19135 MiB\n"
)
HOSTS = "127.0.0.1 localhost\n10.0.22.1 spark1 spark1.lan # head\n::1 ip6-localhost\n"
STAMPED = (
    "2026-08-18T10:11:12.123456789Z [2026-08-18 10:11:12 TP0] Load weight begin.\n"
    "2026-08-18T10:11:13.000000001Z \n"
)
BATCH = (
    "[2026-08-18 10:11:12 TP0] Decode batch, #running-req: 3, #full token: 1234, "
    "full token usage: 0.61, #swa token: 99, swa token usage: 0.97, "
    "cuda graph: True, gen throughput (token/s): 41.2, #queue-req: 2\n"
)
BATCHES = (
    BATCH,
    BATCH.replace("full token", "token").replace("swa token usage: 0.97, ", ""),
    "[2026-08-18 10:11:12 TP0] Prefill batch, #new-seq: 1, #new-token: 40, #cached-token: 0, "
    "token usage: 0.02, #running-req: 0, #queue-req: 0\n",
)
ADDRESSES = (
    '[{"ifname": "lo", "operstate": "UNKNOWN", "addr_info": [{"family": "inet", '
    '"local": "127.0.0.1", "prefixlen": 8}]}, {"ifname": "eth0", '
    '"addr_info": [{"family": "inet6", "local": "fe80::1"}]}]'
)
SSH = (
    "ssh: connect to host spark2 port 22: Connection timed out\n",
    "@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
    "alice@spark2: Permission denied (publickey,password).\n",
    "kex_exchange_identification: Connection closed by remote host\r\n",
)
RSYNC = (
    'rsync: [receiver] write failed on "/x": No space left on device (28)\n'
    "rsync error: error in file IO (code 11) at receiver.c(381)\n",
    "bash: line 1: rsync: command not found\nrsync error: remote command not found (code 127)\n",
)
DOCKER = (
    'docker: Error response from daemon: could not select device driver "" with: [[gpu]].\n',
    "permission denied while trying to connect to the Docker daemon socket at unix:///x.sock\n",
    'Error response from daemon: Conflict. The container name "/x" is already in use\n',
    '#7 ERROR: process "/bin/sh -c pip install" did not complete successfully: exit code: 1\n',
)
NCCL_CONF = "# all nodes\nNCCL_IB_HCA=rocep1s0f0,rocep1s0f1\nNCCL_DEBUG = INFO\n"
GID = "fe80:0000:0000:0000:4ebb:47ff:fe00:0102\n"
SUMS = f"{'a' * 64}  model-00001-of-00002.safetensors\n{'b' * 64} *config.json\n"
INDEX = json.dumps(
    {
        "metadata": {"total_size": 123456},
        "weight_map": {
            "a": "model-00001-of-00002.safetensors",
            "b": "model-00002-of-00002.safetensors",
        },
    }
)
IMAGE = json.dumps(
    [
        {
            "Id": "sha256:" + "a" * 64, "Os": "linux", "Architecture": "arm64",
            "RootFS": {"Layers": ["sha256:1", "sha256:2"]}, "RepoDigests": ["x@sha256:1"],
            "Config": {"Env": ["A=b"], "Entrypoint": ["/x"], "Labels": {"a": "b"}},
        }
    ]
)  # fmt: skip
CONTENTS = json.dumps({"receipt": {"recipe": "release"}, "contents": {"sglang": "0.5.23"}})
CHUNKS = (
    {"choices": [{"delta": {"content": "a", "reasoning_content": None}, "finish_reason": None}],
     "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "matched_stop": "repetition"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9,
     "prompt_tokens_details": {"cached_tokens": 1}}},
)  # fmt: skip
VOLUME = json.dumps(
    [
        {
            "Name": "tetraspark-four-weights", "Driver": "local",
            "Labels": {"tetraspark.line": "four"},
            "Options": {"type": "nfs", "o": "addr=10.0.0.1,ro", "device": ":/srv/model"},
        }
    ]
)  # fmt: skip
BUILD = (
    "Step 2/5 : RUN pip install x\n ---> Running in 3a9d\nERROR: no such package\n",
    "#7 [2/5] RUN pip install x\n#7 0.413 Collecting x\n#7 ERROR: exit code: 1\n",
)
MOUNTS = (
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "40 22 0:35 / /srv/mo\\040del rw - nfs4 spark1:/srv rw,addr=10.0.0.1\n"
)
MAPS = "7f00-7f10 r-xp 00000000 08:01 42                 /opt/lib/libnccl.so.2.30.7 (deleted)\n"
PERFTEST = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 4096       5000             96.31              96.12                2.93\n"
)
STACKS = (
    'Current thread 0x7f (most recent call first):\n  File "/a/run.py", line 12 in step\n',
    "Thread 7 (active): main\n    step (a/run.py:12)\n    main (a/run.py:40)\n",
)
REQUESTS = (
    "GET /metrics HTTP/1.1\r\nHost: localhost:9400\r\nAccept: application/openmetrics-text;"
    "version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain; version=1.0.0; escaping=dots",
    "GET http://[::1]:9400/state.json?page HTTP/1.1\r\nHost: [::1]:9400\r\nContent-Length: 0",
    "HEAD / HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\nExpect: 100-continue",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=a",
)
SERVER_INFO = json.dumps(
    {
        "tp_size": 4, "ep_size": 4, "max_total_tokens": 8192, "page_size": 64,
        "internal_states": [{"max_total_num_tokens": 8192, "served_model_name": "v41"}],
        "speculative_num_draft_tokens": 6, "mem_fraction_static": 0.8,
    }
)  # fmt: skip


@cache
def files(pattern: str, most: int = 3000) -> tuple[str, ...]:
    """Return the beginnings of the project's files of a pattern, in order."""
    found = sorted(ROOT.glob(pattern))
    assert found, pattern
    return tuple(path.read_text(errors="replace")[:most] for path in found)


@cache
def lines(pattern: str) -> tuple[str, ...]:
    """Return some lines of each of the files of a pattern."""
    return tuple(
        line for text in files(pattern, 200_000) for line in text.splitlines()[:400:7] if line
    )


@cache
def spark_facts() -> tuple[Facts, ...]:
    """Return what Sparks on a switch and in a ring print."""
    models = (sparks.switched(), sparks.ring())
    return tuple(model.facts("spark1") for model in models)


@cache
def metrics() -> tuple[str, ...]:
    """Return what a watch reads of the text that an engine printed at /metrics."""
    (text,) = files("tests/watch/metrics/cpu-*.txt", 1_000_000)
    names = ("running_reqs", "queue_reqs", "tokens_total", "throughput", "token_usage", "accept")
    read = (line for line in text.splitlines(True) if any(name in line for name in names))
    return ("".join(read),)
