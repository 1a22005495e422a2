"""b12x 1.5.1 as published: its RDMA proxy is downloaded, checked and built, never part of this."""

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

from tests.rdma.vm.kernel import cache_dir

WHEEL = "b12x-1.5.1-py3-none-any.whl"
SHA256 = "8731e23571d8d45db26d78e7699ec0b23e7ba20b52487adf8c1063c8d8b53a3d"
FILES = ("b12x/comm/roce/_proxy.py", "b12x/comm/roce/_roce_proxy.c")


def folder() -> Path:
    """Return where the package's two files and its built library lie."""
    return cache_dir() / "b12x-1.5.1"


def fetch() -> None:
    """Download the wheel with pip and unpack the two files. Raises ValueError on another hash."""
    wheel = cache_dir() / WHEEL
    if not wheel.exists():
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "b12x==1.5.1"]
        subprocess.run([*command, "-d", str(cache_dir())], check=True)
    seen = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if seen != SHA256:
        raise ValueError(f"{wheel}: sha256 {seen}; wanted {SHA256}")
    folder().mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for name in FILES:
            (folder() / Path(name).name).write_bytes(archive.read(name))


def load() -> ModuleType:
    """Return its binding to the proxy; `B12X_ROCE_CACHE_DIR` says where the library is built."""
    spec = importlib.util.spec_from_file_location("rival_proxy", folder() / "_proxy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
