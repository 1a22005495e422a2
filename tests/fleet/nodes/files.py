"""What a node has in place of this machine's files: its names, keys, and services' settings."""

import json
from pathlib import Path

from tests.fleet.nodes.rack import SUBNET, SWITCH, sh

HERE = Path(__file__).parent
NODES = 4
REGISTRY_PORT = 5000
SSHD = """\
HostKey /etc/tetraspark/host_key
PasswordAuthentication no
PermitRootLogin prohibit-password
UsePAM no
LoginGraceTime 10
"""
RDMA_DEVICE = "rocep1s0f0"
DOCKERD = """\
exec dockerd --config-file /etc/tetraspark/daemon.json >>/var/log/dockerd.log 2>&1 </dev/null &
"""


def name_of(number: int) -> str:
    """Return the host name of a node."""
    return f"node{number}"


def address_of(number: int) -> str:
    """Return the address of a node."""
    return f"{SUBNET}.{number}"


def write_files(folder: Path, number: int, authorized_key: Path) -> None:
    """Write the files of node `number` below a folder that will be laid over its root."""
    mirror = f"http://{SUBNET}.{SWITCH}:{REGISTRY_PORT}"
    daemon = {
        "storage-driver": "overlay2",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "registry-mirrors": [mirror],
        "insecure-registries": [f"{SUBNET}.0/24"],
        "oom-score-adjust": 0,
        "shutdown-timeout": 3,
        "default-runtime": "trimmed",
        "runtimes": {"trimmed": {"path": "/etc/tetraspark/runtime"}},
    }
    write_rdma_device(folder.parent / "class", number)
    etc = folder / "etc/tetraspark"
    etc.mkdir(parents=True)
    key = etc / "host_key"
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name_of(number), "-f", key)
    (etc / "authorized_keys").write_text(authorized_key.read_text())
    (etc / "sshd_config").write_text(SSHD)
    (etc / "daemon.json").write_text(json.dumps(daemon))
    (etc / "boot").write_text((HERE / "boot.sh").read_text())
    (etc / "dockerd").write_text(DOCKERD)
    runtime = etc / "runtime"
    runtime.write_text((HERE / "runtime.py").read_text())
    runtime.chmod(0o755)
    # Docker takes `--gpus` only where this is in PATH when it starts; it gives no GPU.
    hook = folder / "usr/local/bin/nvidia-container-runtime-hook"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    hosts = [f"{address_of(one)} {name_of(one)}" for one in range(1, NODES + 1)]
    (etc.parent / "hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts, ""]))
    (etc.parent / "hostname").write_text(f"{name_of(number)}\n")
    (etc.parent / "resolv.conf").write_text("")


def write_rdma_device(folder: Path, number: int) -> None:
    """Write a stand-in for /sys/class/infiniband: a device on eth0, active, with two GIDs."""
    gids = {
        1: ("fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2"),
        3: (f"0000:0000:0000:0000:0000:ffff:0a63:00{number:02x}", "RoCE v2"),
    }
    port = folder / "infiniband" / RDMA_DEVICE / "ports/1"
    texts = {"state": "4: ACTIVE"}
    for index, (gid, kind) in gids.items():
        texts |= {
            f"gids/{index}": gid,
            f"gid_attrs/types/{index}": kind,
            f"gid_attrs/ndevs/{index}": "eth0",
        }
    for name, text in texts.items():
        (port / name).parent.mkdir(parents=True, exist_ok=True)
        (port / name).write_text(f"{text}\n")
