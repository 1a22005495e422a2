"""A base image made from this machine's own programs: Python with pip, tar, and what they need.

What stands for the engine in it is a package of one file, where the real image has its own.
"""

import gzip
import hashlib
import io
import json
import platform
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from tests.fleet.nodes.registry import MANIFEST_TYPE, publish

PROGRAMS = (
    *("python3", "tar", "gzip", "sha256sum", "mkdir", "rm", "cat", "ls", "cp", "mv", "sleep"),
    *("dash", "tail", "head", "chmod", "touch", "hostname"),
)
ENGINE_TREE = "sgl-workspace/sglang/python"
PACKAGES = "usr/lib/python3/dist-packages"
LEFT_OUT = {"test", "tests", "idlelib", "lib2to3", "tkinter", "ensurepip", "pydoc_data"}
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    f"{PACKAGES}/sglang.pth": f"/{ENGINE_TREE}\n",
    f"{PACKAGES}/torch/__init__.py": '__version__ = "stand-in"\n',
    f"{ENGINE_TREE}/sglang/__init__.py": "",
    f"{ENGINE_TREE}/sglang/srt/__init__.py": "",
    f"{ENGINE_TREE}/sglang/srt/server_args.py": 'ORIGIN = "base"\n',
}
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
PLATFORM = f"linux/{ARCHITECTURE}"


def make_base(
    registry: Path,
    name: str,
    architecture: str = ARCHITECTURE,
    more: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> str:
    """Publish the image in a registry's folder; returns the digest of its manifest.

    `more` are the texts of further files, which come in a layer of their own.
    """
    environment = ["PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"]
    layers = [_layer(), *([_texts(more)] if more else [])]
    config = {
        "architecture": architecture,
        "os": "linux",
        "created": "2020-01-01T00:00:00Z",
        "config": {"Env": environment, "Cmd": ["/bin/sh"], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [digest for _, digest in layers]},
        "history": [{"created": "2020-01-01T00:00:00Z", "created_by": "stand-in"}] * len(layers),
    }
    blobs = [json.dumps(config).encode(), *(layer for layer, _ in layers)]
    types = ("container.image.v1+json", *["image.rootfs.diff.tar.gzip"] * len(layers))
    described = [
        {
            "mediaType": f"application/vnd.docker.{kind}",
            "size": len(blob),
            "digest": publish(registry, "blobs", blob),
        }
        for kind, blob in zip(types, blobs, strict=True)
    ]
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": described[0],
        "layers": described[1:],
    }
    return publish(registry, f"manifests/{name}", json.dumps(manifest).encode())


@cache
def _layer() -> tuple[bytes, str]:
    """Return the one layer, compressed, and the digest of what it is without that."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("tmp", "root", "proc", "sys", "dev", "run", "var/tmp", "usr/sbin"):
            _add(tar, tarfile.TarInfo(name), tarfile.DIRTYPE, 0o1777 if "tmp" in name else 0o755)
        for name, target in {**LINKS, "usr/bin/sh": "dash"}.items():
            link = tarfile.TarInfo(name)
            link.linkname = target
            _add(tar, link, tarfile.SYMTYPE, 0o777)
        for name, text in TEXTS.items():
            _add_bytes(tar, name, text.encode(), 0o644)
        for name, path in sorted(_files()):
            _add_file(tar, name, path)
    return _packed(buffer)


def _texts(files: Mapping[str, str]) -> tuple[bytes, str]:
    """Return a layer of small files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            _add_bytes(tar, name, text.encode(), 0o644)
    return _packed(buffer)


def _packed(buffer: io.BytesIO) -> tuple[bytes, str]:
    """Return a layer, compressed, and the digest of what it is without that."""
    content = buffer.getvalue()
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return gzip.compress(content, 1, mtime=0), digest


def _add(tar: tarfile.TarFile, info: tarfile.TarInfo, kind: bytes, mode: int) -> None:
    info.type, info.mode = kind, mode
    tar.addfile(info)


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> None:
    """With its time: compiled modules count only beside a source of the time they name."""
    state = path.stat()
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = state.st_size, state.st_mode & 0o777, int(state.st_mtime)
    with path.open("rb") as file:
        tar.addfile(info, file)


def _files() -> set[tuple[str, Path]]:
    """Return every file of the image that is this machine's, by its path in the image."""
    programs = [Path("/usr/bin") / name for name in PROGRAMS]
    command = ["/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]
    library = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout[:-1])
    modules = list(_tree(library))
    found = {(_in_image(path), path.resolve()) for path in (*programs, *modules)}
    extensions = [path for path in modules if path.suffix == ".so"]
    found |= {(_in_image(path), path.resolve()) for path in _libraries([*programs, *extensions])}
    return found | set(_pip())


def _in_image(path: Path) -> str:
    """Return a path below the image's root; /lib and the like are links into /usr there."""
    first, *rest = path.parts[1:]
    return "/".join([LINKS.get(first, first), *rest])


def _tree(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if path.is_file() and not LEFT_OUT & set(parts) and not parts[0].startswith("config-"):
            yield path


def _libraries(programs: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that programs need, the loader included."""
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    words = (word for line in listed.splitlines() if line[0] == "\t" for word in line.split())
    return {Path(word) for word in words if word.startswith("/")}


def _pip() -> Iterator[tuple[str, Path]]:
    """Return the pip that runs with this Python; it is of no platform."""
    spec = find_spec("pip")
    assert spec is not None and spec.origin is not None, "pip is needed in this environment"
    site = Path(spec.origin).parent.parent
    info = f"pip-{distribution('pip').version}.dist-info"
    for folder in (site / "pip", site / info):
        for path in _tree(folder):
            yield f"{PACKAGES}/{path.relative_to(site)}", path
