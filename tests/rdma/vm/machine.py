"""Runs one command in a throw-away VM with soft-RoCE devices; plain emulation, no network.

The guest sees this machine's root directory read-only under a tmpfs, so Python, the compiler and
this checkout are simply there; what it writes is gone with it.
"""

import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.rdma.topology import Topology, parse_topology
from tests.rdma.vm.kernel import VmError, cache_dir, cpio, fetch, image, modules, unpack

GUEST = Path(__file__).with_name("guest")
REPOSITORY = Path(__file__).parents[3]
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "rdma": "iproute2",
    "dpkg-deb": "dpkg",
    "zstd": "zstd",
}
HEADER = Path("/usr/include/infiniband/verbs.h")
MEMORY_MIB = 2048
CPUS = 2
# no_timer_check: on a busy host the kernel's test of an emulated timer fails, and it panics.
KERNEL_ARGUMENTS = (
    "console=ttyS0 loglevel=4 panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check"
)


@dataclass(frozen=True)
class Done:
    """What a command said and its exit status."""

    status: int
    output: str


def missing() -> list[str]:
    """Return the packages without which no VM can run here."""
    found = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    return sorted({*found, *([] if HEADER.exists() else ["libibverbs-dev"])})


def run(topology: str, command: str, limit_s: float, *, show: bool = False) -> Done:
    """Boot, build the network, run `command` in this checkout; raises VmError or TimeoutError.

    `show` prints what the guest prints as it comes, instead of returning it.
    """
    tree = unpack(fetch(cache_dir()))
    with tempfile.TemporaryDirectory(prefix="tetraspark-vm-") as scratch:
        folder = Path(scratch)
        (folder / "initrd").write_bytes(_archive(tree, parse_topology(topology), command))
        output = _watch(_qemu(image(tree), folder), folder, limit_s, show)
        status = (folder / "status").read_text().strip()
        if not status:
            raise VmError(f"the VM ended without a status\n{output}\n{_log(folder)}")
    return Done(int(status), output)


def _watch(command: list[str], folder: Path, limit_s: float, show: bool) -> str:
    """Run QEMU to its end and return what the guest printed. Raises TimeoutError."""
    # Its stdin must not end before it does: the guest's output port would close with it.
    reading, writing = os.pipe()
    stdout = None if show else subprocess.PIPE
    process = subprocess.Popen(command, stdin=reading, stdout=stdout, text=True)
    try:
        return process.communicate(timeout=limit_s)[0] or ""
    except subprocess.TimeoutExpired as error:
        process.kill()
        output = process.communicate()[0]
        text = f"the VM ran past {limit_s} s\n{output}\n{_log(folder)}"
        raise TimeoutError(text) from error
    finally:
        process.kill()
        process.wait()
        os.close(reading)
        os.close(writing)


def _log(folder: Path) -> str:
    log = folder / "log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-30:])


def _archive(tree: Path, topology: Topology, command: str) -> bytes:
    folders = ("bin", "proc", "sys", "dev", "mod", "ro", "rw", "new", "vm")
    loaded = modules(tree)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/root"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}",
        "OMP_NUM_THREADS": "1",
        # In memory: below the root, a look for a file that is not there asks the host each time.
        "TMPDIR": "/dev/shm",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    script = "\n".join([*lines, f"cd {shlex.quote(str(REPOSITORY))}", command, ""])
    busybox = shutil.which("busybox")
    assert busybox is not None
    texts = {
        "mod/order": "".join(f"{name}\n" for name, _ in loaded),
        "vm/command": script,
        "vm/network": "".join(f"{line}\n" for line in topology.build()),
        "vm/devices": "".join(f"{port.name}\n" for port in topology.ports),
        "init": (GUEST / "init").read_text(),
        "vm/stage2": (GUEST / "stage2").read_text(),
    }
    entries = [(name, stat.S_IFDIR | 0o755, b"") for name in folders]
    entries.append(("bin/busybox", stat.S_IFREG | 0o755, Path(busybox).read_bytes()))
    entries += [(f"mod/{name}.ko", stat.S_IFREG | 0o644, data) for name, data in loaded]
    entries += [(name, stat.S_IFREG | 0o755, text.encode()) for name, text in texts.items()]
    return cpio(entries)


def _qemu(kernel: Path, folder: Path) -> list[str]:
    return [
        *("qemu-system-x86_64", "-machine", "q35,usb=off", "-nodefaults", "-no-user-config"),
        *("-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(CPUS), "-m", str(MEMORY_MIB)),
        *("-display", "none", "-nic", "none", "-no-reboot"),
        *("-kernel", str(kernel), "-initrd", str(folder / "initrd")),
        *("-append", KERNEL_ARGUMENTS),
        *("-serial", f"file:{folder / 'log'}"),
        *("-device", "virtio-serial-pci,id=ports"),
        *("-chardev", "stdio,id=out,signal=off"),
        *("-device", "virtserialport,bus=ports.0,nr=1,chardev=out,name=vm.out"),
        *("-chardev", f"file,id=status,path={folder / 'status'}"),
        *("-device", "virtserialport,bus=ports.0,nr=2,chardev=status,name=vm.status"),
        *("-fsdev", "local,id=root,path=/,security_model=none,multidevs=remap,readonly=on"),
        *("-device", "virtio-9p-pci,fsdev=root,mount_tag=root"),
    ]


if __name__ == "__main__":
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 300.0
    sys.exit(run(sys.argv[1], sys.argv[2], seconds, show=True).status)
