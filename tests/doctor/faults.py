"""One fault for each check of a fleet: how to make it, on which node it must show, and how.

A node is None where the finding is of the fleet as a whole.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.doctor.stand import GIB, GPU_PROCESSES, GPUS, Stand, burned, site
from tetraspark.doctor.check import Verdict
from tetraspark.fleet.facts import Space

MODEL, ENGRAM = "/home/alice/models/v4", "/home/alice/engram"
CONTAINER = {"Names": "tetraspark-four-r1", "State": "exited", "Status": "Exited (137)"}


@dataclass(frozen=True)
class Fault:
    """A fault of the stand, and the verdict it must bring about on a node."""

    make: Callable[[Stand], None]
    node: str | None = "spark2"
    verdict: Verdict = "failed"


def _ssh(stand: Stand) -> None:
    stand.refuse(2, "ssh: connect to host 192.168.1.12 port 22: Connection refused\n")


def _python(stand: Stand) -> None:
    stand[2].python = False


def _skew(stand: Stand) -> None:
    stand[2].time += 95


def _old_kernel(stand: Stand) -> None:
    stand[2].say("kernel", "6.17.0-1026-nvidia\n")


def _bad_kernel(stand: Stand) -> None:
    stand[2].say("kernel", "7.0.0-1019-nvidia\n")
    stand[2].memory["CmaTotal"] = 0


def _driver(stand: Stand) -> None:
    stand[2].say("gpus", f"{GPUS}0, NVIDIA GB10, 580.173.02, [N/A], [N/A]\n")


def _firmware(stand: Stand) -> None:
    stand[2].files["/sys/class/dmi/id/bios_version"] = "5.36_0ACUM009\n"


def _daemon(stand: Stand) -> None:
    text = "Cannot connect to the Docker daemon at unix:///run/docker.sock."
    stand[2].say("docker info", json.dumps({"ID": "", "ServerErrors": [text]}), 1)


def _image(stand: Stand) -> None:
    stand[2].image = {}


def _platform(stand: Stand) -> None:
    stand[2].image["Architecture"] = "amd64"


def _recipe(stand: Stand) -> None:
    stand[2].image["Config"]["Labels"]["tetraspark.recipe"] = "base"


def _baked(stand: Stand) -> None:
    stand[2].image["Config"]["Env"].append("GLOO_SOCKET_IFNAME=enp1s0f1np1")


def _command(stand: Stand) -> None:
    stand[2].image["Config"]["Cmd"] = ["/bin/bash"]


def _folder(stand: Stand) -> None:
    stand[2].space["~/models/v4"] = replace(stand[2].space["~/models/v4"], path="/home/alice")


def _config(stand: Stand) -> None:
    stand[2].files[f"{MODEL}/config.json"] = "{}"


def _shard(stand: Stand) -> None:
    del stand[2].sizes[f"{MODEL}/model-00002-of-00002.safetensors"]


def _size(stand: Stand) -> None:
    path = f"{MODEL}/model.safetensors.index.json"
    index = json.loads(stand[2].files[path])
    stand[2].files[path] = json.dumps(index | {"metadata": {"total_size": 200 * GIB}})


def _tokenizer(stand: Stand) -> None:
    del stand[2].sizes[f"{MODEL}/tokenizer.json"]


def _template(stand: Stand) -> None:
    stand[2].files[f"{MODEL}/config.json"] = '{"architectures": ["LlamaForCausalLM"]}'
    del stand[2].sizes[f"{MODEL}/chat_template.jinja"]


def _link(stand: Stand) -> None:
    stand[2].links[f"{MODEL}/config.json"] = "/home/alice/.cache/blobs/1"


def _no_manifest(stand: Stand) -> None:
    for path in [one for one in stand[2].files if one.startswith(ENGRAM)]:
        del stand[2].files[path]


def _wrong_rank(stand: Stand) -> None:
    own = f"{ENGRAM}/engram-l1-r1of4.json"
    stand[2].files[own] = stand[1].files[f"{ENGRAM}/engram-l1-r0of4.json"]


def _short_shard(stand: Stand) -> None:
    stand[2].sizes[f"{ENGRAM}/engram-l1-r1of4.bin"] = 1


def _volume(stand: Stand) -> None:
    options = {"type": "nfs", "o": "addr=10.0.22.1", "device": ":/old"}
    name = "tetraspark-four-weights"
    volume = {"Name": name, "Driver": "local", "Options": options, "Labels": None}
    stand[2].say("docker volume", json.dumps([volume]))


def _full(stand: Stand) -> None:
    full = Space("/", 4000 * GIB, GIB // 2)
    stand[2].space = {path: replace(full, path=s.path) for path, s in stand[2].space.items()}


def _little_memory(stand: Stand) -> None:
    stand[2].memory |= {"MemAvailable": 40_000_000, "MemFree": 39_000_000}


def _page_cache(stand: Stand) -> None:
    stand[2].memory |= {"MemFree": 2_097_152, "Cached": 115_000_000}


def _fragments(stand: Stand) -> None:
    stand[2].files["/proc/buddyinfo"] = (
        "Node 0, zone   Normal  90211  402  12  3  4  8  1 0 0 0 0\n"
    )


def _nvrm(stand: Stand) -> None:
    text = "Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal"
    stand[2].say("journal", f"spark2 kernel: NVRM: nvCheckOkFailedNoLog: Check failed: {text}\n")


def _aer(stand: Stand) -> None:
    line = "mlx5_core 0002:01:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer\n"
    stand[2].say("journal", 3 * f"spark2 kernel: {line}")


def _address(stand: Stand) -> None:
    said = stand.fabric.facts("spark2").commands["addresses"].stdout
    stand[2].say("addresses", said.replace("192.168.1.12", "192.168.1.99"))


def _route(stand: Stand) -> None:
    stand[2].say("route to 192.168.1.13", json.dumps([{"dst": "192.168.1.13", "dev": "docker0"}]))


def _no_verbs(stand: Stand) -> None:
    del stand[2].links["/dev/infiniband/uverbs0"]


def _key_for_all(stand: Stand) -> None:
    file = stand.loaded.path.with_name("key")
    file.write_text("hush\n")
    file.chmod(0o644)
    stand.loaded = site(file.parent, ("port = 8888", 'port = 8888\nkey_file = "key"'))


def _port_down(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 0).up = False


def _no_device(stand: Stand) -> None:
    stand.fabric.ports.remove(stand.fabric.port("spark2", 0, 1))


def _no_gid(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 1).address = None


def _other_index(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 1).gid_index = 5


def _low_mtu(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 0).mtu = 1500


def _narrow(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 1).width = "2"


def _slow_cable(stand: Stand) -> None:
    stand.fabric.port("spark2", 0, 0).speed = 100_000


def _busy(stand: Stand) -> None:
    stand[2].say("gpu processes", f"{GPU_PROCESSES}114687, /usr/bin/python3, 19135 MiB\n")


def _left_over(stand: Stand) -> None:
    stand[2].say("docker ps", json.dumps(CONTAINER) + "\n")


def _restarts(stand: Stand) -> None:
    state = {"Status": "running", "OOMKilled": False}
    stand[2].container = {"Name": "/tetraspark-four-r1", "State": state, "RestartCount": 11}


def _segments(stand: Stand) -> None:
    stand[2].sizes["/dev/shm/psm_12ab"] = GIB


def _latched(stand: Stand) -> None:
    stand[2].burn = burned(23.9, "850", "30.2")


FAULTS: dict[str, Fault] = {
    "SSH.REACHABLE": Fault(_ssh),
    "PYTHON.PRESENT": Fault(_python),
    "TIME.SKEW": Fault(_skew, verdict="warning"),
    "KERNEL.RELEASE": Fault(_bad_kernel),
    "KERNEL.EQUAL": Fault(_old_kernel, None, "warning"),
    "KERNEL.DRIVER": Fault(_driver, None, "warning"),
    "KERNEL.FIRMWARE": Fault(_firmware, None, "warning"),
    "HISTORY.VERSIONS": Fault(_old_kernel, verdict="warning"),
    "HISTORY.MEMORY": Fault(_little_memory, verdict="warning"),
    "DOCKER.DAEMON": Fault(_daemon),
    "DOCKER.VERSION": Fault(lambda stand: stand[2].inform(ServerVersion="19.03.13")),
    "DOCKER.GPU": Fault(lambda stand: stand[2].inform(Runtimes={"runc": {}})),
    "DOCKER.MEMLOCK": Fault(lambda stand: stand[2].inform(SecurityOptions=["name=rootless"])),
    "GPU.PRESENT": Fault(lambda stand: stand[2].say("gpus", rc=127, stderr="nvidia-smi: none")),
    "GPU.IDLE": Fault(_busy),
    "IMAGE.PRESENT": Fault(_image),
    "IMAGE.ARCHITECTURE": Fault(_platform),
    "IMAGE.RECIPE": Fault(_recipe),
    "IMAGE.ENVIRONMENT": Fault(_baked, verdict="warning"),
    "IMAGE.EQUAL": Fault(_command),
    "CHECKPOINT.FOLDER": Fault(_folder),
    "CHECKPOINT.CONFIG": Fault(_config),
    "CHECKPOINT.SHARDS": Fault(_shard),
    "CHECKPOINT.SIZE": Fault(_size),
    "CHECKPOINT.TOKENIZER": Fault(_tokenizer),
    "CHECKPOINT.CHAT_TEMPLATE": Fault(_template),
    "CHECKPOINT.LINKS": Fault(_link),
    "ENGRAM.MANIFEST": Fault(_no_manifest),
    "ENGRAM.ROWS": Fault(_wrong_rank),
    "ENGRAM.SIZE": Fault(_short_shard),
    "WEIGHTS.VOLUME": Fault(_volume),
    "DISK.ROOM": Fault(_full),
    "MEMORY.AVAILABLE": Fault(_little_memory),
    "MEMORY.FREE": Fault(_page_cache, verdict="warning"),
    "MEMORY.FRAGMENTED": Fault(_fragments, verdict="warning"),
    "LOG.NVRM": Fault(_nvrm, verdict="warning"),
    "LOG.AER": Fault(_aer, verdict="warning"),
    "API.KEY": Fault(_key_for_all, None),
    "PORT.API": Fault(lambda stand: stand[1].listeners.update({8888: "pid 7 (nginx)"}), "spark1"),
    "PORT.RENDEZVOUS": Fault(lambda stand: stand[1].listeners.update({20000: ""}), "spark1"),
    "ADDRESS.OWN": Fault(_address),
    "ADDRESS.ROUTES": Fault(_route),
    "RDMA.VERBS": Fault(_no_verbs),
    "RDMA.DEVICE": Fault(_no_device),
    "RDMA.PORT": Fault(_port_down),
    "RDMA.GID": Fault(_no_gid),
    "RDMA.GID_COMMON": Fault(_other_index, verdict="warning"),
    "RDMA.MTU": Fault(_low_mtu),
    "LINK.MTU": Fault(_low_mtu, None),
    "LINK.PCIE": Fault(_narrow),
    "LINK.SPEED": Fault(_slow_cable, verdict="warning"),
    "LINK.TWIN": Fault(_port_down),
    "NCCL.CONF": Fault(
        lambda stand: stand[2].files.update({"/etc/nccl.conf": "NCCL_IB_USE_INLINE=1\n"}),
        verdict="warning",
    ),
    "LINE.CONTAINERS": Fault(_left_over, verdict="warning"),
    "LINE.RESTARTS": Fault(_restarts),
    "LINE.SEGMENTS": Fault(_segments, verdict="warning"),
    "BURN.CLOCK": Fault(_latched),
}
