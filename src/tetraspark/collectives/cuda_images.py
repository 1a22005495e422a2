"""Compiled kernels, kept on disk: a second process with the same GPU and compiler loads a file."""

import fcntl
import hashlib
import tempfile
from pathlib import Path

from tetraspark.collectives.build import cache_dir, trusted
from tetraspark.collectives.cuda_compiler import FLAGS, compile_source, library, version


def image_path(source: str, capability: int) -> Path:
    """Return where the image of a source, for a GPU, by the compiler that is here, is kept."""
    digest = hashlib.sha256()
    for part in (source, str(capability), " ".join(FLAGS), version(library())):
        digest.update(len(part.encode()).to_bytes(8, "little") + part.encode())
    return cache_dir() / f"kernels-{digest.hexdigest()}.image"


def image(source: str, capability: int) -> bytes:
    """Return the machine code of a source, from the cache or compiled now.

    Processes that start together take turns: one compiles, the others find its file. Raises
    CudaError, or BuildError where the cache is not private.
    """
    path = image_path(source, capability)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not trusted(path):
            _keep(path, compile_source(source, capability))
        return path.read_bytes()


def _keep(path: Path, made: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="build-") as scratch:
        file, digest = Path(scratch) / "image", Path(scratch) / "digest"
        file.write_bytes(made)
        file.chmod(0o600)
        digest.write_text(hashlib.sha256(made).hexdigest())
        digest.replace(path.with_suffix(".sha256"))
        file.replace(path)
