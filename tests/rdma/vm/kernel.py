"""A Debian kernel that is unpacked, never installed: its image and modules, for the VM."""

import contextlib
import lzma
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

META_PACKAGE = "linux-image-6.12-amd64"
"""Debian 12's newer kernel: its soft RoCE has real send-queue limits, the "cloud" one has none."""

BOOT = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")
RDMA = ("veth", "bridge", "ib_uverbs", "rdma_ucm", "rdma_rxe", "sch_netem")
# Asked for by alias when a module first needs them, so no dependency names them.
BY_ALIAS = ("crc32c_generic", "crc32_generic")


class VmError(RuntimeError):
    """The VM could not be made or did not come up."""


def cache_dir() -> Path:
    """Return the folder of downloaded and unpacked kernels."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "tetraspark" / "rdma"
    path.mkdir(parents=True, exist_ok=True)
    return path


def _output(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        raise VmError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def fetch(folder: Path) -> Path:
    """Return the newest kernel package in `folder`, downloading one through apt if none is there.

    Raises VmError.
    """
    found = sorted(folder.glob("linux-image-*_amd64.deb"))
    if not found:
        depends = _output("apt-cache", "depends", "--important", META_PACKAGE)
        names = re.findall(r"Depends: (linux-image-\d\S+)", depends)
        if not names:
            raise VmError(f"apt knows no {META_PACKAGE}; run apt-get update")
        _output("apt-get", "-qq", "download", names[0], cwd=folder)
        found = sorted(folder.glob("linux-image-*_amd64.deb"))
    return found[-1]


def unpack(package: Path) -> Path:
    """Unpack a kernel once, beside its package; return the tree."""
    tree = package.with_suffix("")
    if not tree.is_dir():
        with tempfile.TemporaryDirectory(dir=package.parent) as scratch:
            made = Path(scratch) / "tree"
            _output("dpkg-deb", "-x", str(package), str(made))
            made.rename(tree)
    return tree


def image(tree: Path) -> Path:
    """Return the uncompressed kernel: half the boot time under emulation is decompression."""
    out = tree / "vmlinux"
    if out.exists():
        return out
    (packed,) = (tree / "boot").glob("vmlinuz-*")
    data = _decompressed(packed.read_bytes())
    if not data.startswith(b"\x7fELF"):
        raise VmError(f"{packed} holds no kernel compressed with xz or zstd")
    draft = out.with_suffix(".draft")
    draft.write_bytes(data)
    draft.rename(out)
    return out


def _decompressed(packed: bytes) -> bytes:
    """Return the first compressed stream in a boot image, unpacked; b"" if there is none."""
    at = packed.find(b"\xfd7zXZ\x00")
    if at >= 0:
        with contextlib.suppress(lzma.LZMAError):
            return lzma.LZMADecompressor().decompress(packed[at:])
    at = packed.find(b"\x28\xb5\x2f\xfd")
    if at < 0:
        return b""
    # Fails at what follows the stream, after it has written the stream.
    command = ["zstd", "-dcq"]
    return subprocess.run(command, input=packed[at:], capture_output=True, check=False).stdout


def modules(tree: Path) -> list[tuple[str, bytes]]:
    """Return what the guest loads, dependencies first: names and contents. Raises VmError."""
    files = {
        path.name.split(".ko")[0].replace("-", "_"): path
        for path in (tree / "lib" / "modules").rglob("*.ko*")
    }
    loaded: dict[str, bytes] = {}
    for name in (*BY_ALIAS, *BOOT, *RDMA):
        if name in ("rdma_rxe", "veth") and name not in files:
            raise VmError(f"{tree.name} has no module {name}")
        _add(name, files, loaded)
    return list(loaded.items())


def _add(name: str, files: dict[str, Path], loaded: dict[str, bytes]) -> None:
    if name in loaded or name not in files:
        return
    path = files[name]
    data = path.read_bytes()
    data = lzma.decompress(data) if path.suffix == ".xz" else data
    for needed in depends(data):
        _add(needed, files, loaded)
    loaded[name] = data


def depends(module: bytes) -> Iterator[str]:
    """Yield what `modinfo` calls `depends`, read from the object file."""
    at = module.find(b"\0depends=")
    if at >= 0:
        words = module[at + 9 : module.index(b"\0", at + 9)].decode().split(",")
        yield from (word.replace("-", "_") for word in words if word)


def cpio(entries: Iterable[tuple[str, int, bytes]]) -> bytes:
    """Return a "newc" archive of (name, mode, data), as the kernel unpacks at boot."""
    parts: list[bytes] = []
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        raw = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        head = "070701" + "".join(f"{field:08x}" for field in fields)
        parts += [_padded(head.encode() + raw), _padded(data)]
    return b"".join(parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


if __name__ == "__main__":
    print(unpack(fetch(cache_dir())))
