"""Compile the proxy once and keep it in a private cache that is verified before each load."""

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tetraspark.collectives.failure import BuildError

SOURCE = Path(__file__).with_name("proxy.c")
# Nothing here may change a sum: no contraction, no reassociation. Without trapping-math the
# fp16 conversions do not vectorise; it changes exception flags only, never a value.
FLAGS = (
    "-std=c11",
    "-O3",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-trapping-math",
)
COMPILE_LIMIT_S = 120


@dataclass(frozen=True)
class Unit:
    """A C file that becomes one library; `link` are the flags that follow it.

    `before` and `after` are files compiled as one text with it, around it.
    """

    path: Path
    link: tuple[str, ...] = ()
    before: tuple[Path, ...] = ()
    after: tuple[Path, ...] = ()

    def source(self) -> bytes:
        """Return the whole text."""
        return b"\n".join(path.read_bytes() for path in (*self.before, self.path, *self.after))


PROXY = Unit(SOURCE, ("-pthread",), after=(SOURCE.with_name("relay.c"),))


def find_compiler() -> tuple[str, ...]:
    """Return the compiler's command: CC if set, else cc, gcc or clang. Raises BuildError."""
    named = os.environ.get("CC", "")
    for command in [named] if named else ["cc", "gcc", "clang"]:
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return tuple(words)
    raise BuildError(
        f"no C compiler found ({f'CC={named}' if named else 'tried cc, gcc, clang'}); "
        "install one: apt-get install gcc libc6-dev"
    )


def compiler_version(command: tuple[str, ...]) -> str:
    """Return the command and what it says of itself. Raises BuildError if it does not run."""
    return shlex.join(command) + "\n" + _run([*command, "--version"])


def cache_key(source: bytes, machine: str, compiler: str, libc: str) -> str:
    """Return the sha256 (hex) that names a build of this source by this compiler here."""
    parts = (source, machine.encode(), compiler.encode(), libc.encode(), " ".join(FLAGS).encode())
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def cache_dir() -> Path:
    """Return the private cache directory, created 0700. Raises BuildError if it is not ours."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "tetraspark" / "collectives"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.mkdir(exist_ok=True, mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise BuildError(f"{path} is not a directory of user {os.getuid()}; remove it")
    if found.st_mode & 0o077:
        raise BuildError(
            f"{path} has mode {found.st_mode & 0o777:o}, others may enter; chmod 700 {path}"
        )
    return path


def trusted(library: Path) -> bool:
    """Say whether a cached file is ours, private, and the bytes that were built."""
    try:
        descriptor = os.open(library, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        private = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077
        if found.st_uid != os.getuid() or not private:
            return False
        digest = hashlib.sha256(file.read()).hexdigest()
    try:
        return library.with_suffix(".sha256").read_text() == digest
    except (OSError, UnicodeDecodeError):
        return False


def build(unit: Unit = PROXY) -> Path:
    """Return a verified shared library of a C file, compiling it if need be.

    Ranks that start together take turns: one compiles, the others find its file. Raises
    BuildError.
    """
    command = find_compiler()
    source = unit.source()
    libc = "-".join(platform.libc_ver())
    key = cache_key(
        source + " ".join(unit.link).encode(), platform.machine(), compiler_version(command), libc
    )
    library = cache_dir() / f"{unit.path.stem}-{key}.so"
    with (library.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not trusted(library):
            _compile(command, source, unit.link, library)
    if not trusted(library):
        raise BuildError(f"{library} changed under the build; remove {library.parent}")
    return library


def _compile(command: tuple[str, ...], source: bytes, link: tuple[str, ...], library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as scratch:
        code, made = Path(scratch) / "proxy.c", Path(scratch) / "proxy.so"
        code.write_bytes(source)
        _run([*command, *FLAGS, "-o", str(made), str(code), *link])
        made.chmod(0o700)
        digest = Path(scratch) / "digest"
        digest.write_text(hashlib.sha256(made.read_bytes()).hexdigest())
        digest.replace(library.with_suffix(".sha256"))
        made.replace(library)


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{shlex.join(command)}: {error}") from error
    if done.returncode:
        raise BuildError(
            f"{shlex.join(command)} failed ({done.returncode}): {done.stderr.strip()[-2000:]}; "
            "if headers are missing: apt-get install libc6-dev linux-libc-dev"
        )
    return done.stdout
