"""Make the virtual environment that serves and tests; the first step of every make target.

Usage: python3 scripts/environment.py [--venv .venv] [--test]

Installs, in this order: the pinned list, torch (a CPU build where the index offers one), SGLang
without its dependencies, this project, and with --test the tools of the checks. Of each file but
torch's, which may come from an index of yours, pip compares the hash. A second run finds its
stamp and returns at once. Needs the standard library only, and no newer syntax than
Python 3.7 has: an old Python must be able to say what is wanted in its place.

Settings, all optional:
  TETRASPARK_TORCH        a requirement or a wheel to install instead of requirements/torch.txt
  TETRASPARK_TORCH_INDEX  an index to take torch from instead of pip's own
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
OLDEST_PYTHON = (3, 11)
OLDEST_GLIBC = (2, 34)
FREE_BYTES_WANTED = 4 * 10**9


class SetupError(Exception):
    """What stopped the set-up, and what to type."""


class PipError(SetupError):
    """The last lines of a pip that failed."""


def main(argv: list[str] | None = None) -> int:
    """Run the set-up; return the process exit code."""
    parser = argparse.ArgumentParser(description="Make the virtual environment of tetraspark.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--test", action="store_true", help="also the tools of the checks")
    options = parser.parse_args(argv)
    try:
        prepare(options.venv.absolute(), options.test)
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def prepare(venv: Path, test: bool) -> None:
    """Bring the environment at `venv` to what the requirement files say."""
    parts = ["torch", "engine", "sglang"] + (["test"] if test else [])
    stamp = venv / "tetraspark-environment.json"
    wanted = fingerprint(parts)
    done = read_stamp(stamp)
    if all(done.get(part) == wanted[part] for part in wanted):
        return
    check_machine(venv)
    stamp.unlink(missing_ok=True)
    make_environment(venv)
    for title, arguments in steps(venv, parts):
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--progress-bar=off"]
        run_step(title, pip + arguments, venv)
    stamp.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")


def make_environment(venv: Path) -> None:
    """Make the empty environment, unless a whole one of this Python is there.

    An environment without a working pip (its creation was interrupted) or of another Python is
    made anew. Raises SetupError for a folder with a Python that is no virtual environment:
    clearing it would delete what somebody else keeps there.
    """
    command = [sys.executable, "-m", "venv"]
    settings = venv / "pyvenv.cfg"
    if os.path.lexists(str(venv / "bin" / "python")) or settings.exists():
        fault = fault_of(venv)
        if not fault:
            return
        if not settings.exists():
            raise SetupError(
                f"{venv} holds a Python, but no virtual environment; "
                "name another place: make VENV=/path/to/venv serve"
            )
        print(f"set-up: {venv} {fault}: it is made anew", flush=True)
        command.append("--clear")
    run_step("virtual environment", [*command, str(venv)], venv)


def fault_of(venv: Path) -> str:
    """Return why an environment cannot be used by this Python, or nothing if it can."""
    python = str(venv / "bin" / "python")
    version = output_of([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    wanted = "{}.{}".format(*sys.version_info[:2])
    if version is None:
        return "has no Python that runs"
    if version != wanted:
        return f"is of Python {version}, asked for is {wanted}"
    if not (venv / "pyvenv.cfg").exists():
        return "is no virtual environment"
    return "" if output_of([python, "-m", "pip", "--version"]) else "has no pip that runs"


def output_of(command: list[str]) -> str | None:
    """Return what a command prints, or None when it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def steps(venv: Path, parts: list[str]) -> list[tuple[str, list[str]]]:
    """Return the installs as (title, pip arguments); pip skips what is there already."""
    listed = str(REQUIREMENTS / "engine.txt")
    todo = [
        # Before torch: what it needs is there then, with its hash.
        ("pinned list (about 110 MB)", locked("engine")),
        ("torch", ["-c", listed, *torch_arguments(venv)]),
        ("sglang", locked("sglang")),
        ("tetraspark", ["--no-deps", "--no-build-isolation", "-e", str(ROOT)]),
    ]
    if "test" in parts:
        todo.append(("tools of the checks", locked("test")))
    return todo


def locked(part: str) -> list[str]:
    """Return the arguments that install a list, each file by its hash."""
    return ["--no-deps", "--require-hashes", "-r", str(REQUIREMENTS / f"{part}.lock")]


def fingerprint(parts: list[str]) -> dict[str, str]:
    """Return what each part of the environment was made from, for the stamp."""
    torch = [os.environ.get(f"TETRASPARK_TORCH{name}") for name in ("", "_INDEX")]
    common = f"{sys.version_info[:2]} {torch} {ROOT}"
    common += (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return {part: hashlib.sha256((common + listing(part)).encode()).hexdigest() for part in parts}


def listing(part: str) -> str:
    """Return the texts of a list: its pins, and their hashes where it has a lock."""
    files = [REQUIREMENTS / f"{part}.txt", REQUIREMENTS / f"{part}.lock"]
    return "".join(file.read_text(encoding="utf-8") for file in files if file.exists())


def read_stamp(stamp: Path) -> dict[str, str]:
    """Return the stamp of an earlier run, or nothing when there is none that can be read."""
    try:
        content = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def check_machine(venv: Path) -> None:
    """Refuse a machine that cannot hold the environment, naming the package to install."""
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(
            "{} is Python {}.{}, wanted 3.11 or newer; install one (apt-get install python3.11), "
            "then: make PYTHON=python3.11 serve".format(sys.executable, *sys.version_info[:2])
        )
    if sys.platform != "linux":
        raise SetupError(f"this is {sys.platform}, wanted linux: the engine has no wheel for it")
    check_libc(*platform.libc_ver())
    missing = [package for package, present in system_packages().items() if not present]
    if missing:
        raise SetupError(
            f"system packages missing: {' '.join(missing)}; "
            f"type: sudo apt-get install {' '.join(missing)}"
        )
    venv.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(venv.parent).free
    if free < FREE_BYTES_WANTED:
        raise SetupError(
            f"{venv.parent}: {free / 1e9:.1f} GB free, wanted {FREE_BYTES_WANTED / 1e9:.0f} GB; "
            "free some, or name another place: make VENV=/path/to/venv serve"
        )


def check_libc(name: str, version: str) -> None:
    """Refuse a C library for which the pinned wheels are not built."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if name != "glibc" or numbers < OLDEST_GLIBC:
        raise SetupError(
            "the C library is {}, wanted glibc {}.{} or newer: the pinned wheels need it; use "
            "a newer release of this system".format(
                f"{name} {version}" if name else "not glibc", *OLDEST_GLIBC
            )
        )


def system_packages() -> dict[str, bool]:
    """Return the Debian packages that are needed, and whether each one is there."""
    probe = [sys.executable, "-c", "import ensurepip, venv"]
    has_venv = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    return {
        "python3-venv": has_venv,
        "gcc": any(shutil.which(name) for name in ("cc", "gcc", "clang")),
        "util-linux": shutil.which("setsid") is not None,
    }


def torch_arguments(venv: Path) -> list[str]:
    """Choose the torch to install, and say how much will be downloaded for it."""
    index = os.environ.get("TETRASPARK_TORCH_INDEX")
    source = ["--index-url", index] if index else []
    named = os.environ.get("TETRASPARK_TORCH")
    pin = next(
        line
        for line in (REQUIREMENTS / "torch.txt").read_text(encoding="utf-8").splitlines()
        if line.startswith("torch==")
    )
    reason = ""
    for choice in [named] if named else [pin + "+cpu", pin]:
        try:
            files = planned_downloads(venv, [*source, choice])
        except PipError as error:
            reason = str(error)
            continue
        announce(files)
        return [*source, choice]
    raise SetupError(
        f"pip cannot install {named or pin}; its last lines:\n{reason}\n"
        "set-up: if no index here offers it, name a wheel or a requirement: "
        "TETRASPARK_TORCH=/path/to/torch.whl make serve"
    )


def planned_downloads(venv: Path, arguments: list[str]) -> dict[str, str]:
    """Return package -> URL of what pip would install; raises PipError when pip fails."""
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    pip += ["--quiet", "--dry-run"]
    listed = ["-c", str(REQUIREMENTS / "engine.txt")]
    answer = subprocess.run(
        [*pip, "--report", "-", *listed, *arguments], capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        lines = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
        raise PipError("\n".join(f"  {line}" for line in lines[-8:]))
    report = json.loads(answer.stdout)
    return {item["metadata"]["name"]: item["download_info"]["url"] for item in report["install"]}


def announce(files: dict[str, str]) -> None:
    """Print the size of a download before it starts."""
    sizes = {name: size_of(url) for name, url in files.items()}
    if not files:
        return
    known = sum(size for size in sizes.values() if size is not None)
    unknown = [name for name, size in sizes.items() if size is None]
    text = f"set-up: torch and what it needs: {known / 1e6:.0f} MB in {len(files)} files"
    print(text + (f", size unknown: {', '.join(unknown)}" if unknown else ""), flush=True)
    if any(name.startswith("nvidia") for name in files):
        print(
            "set-up: this index offers a CUDA build only; it serves on a CPU too. For a smaller "
            "one set TETRASPARK_TORCH_INDEX or TETRASPARK_TORCH.",
            flush=True,
        )


def size_of(url: str) -> int | None:
    """Return the bytes behind a file: or http(s): URL, or None when nothing tells."""
    request = urllib.request.Request(url, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, TypeError, ValueError, http.client.HTTPException):
        return None


def run_step(title: str, command: list[str], venv: Path) -> None:
    """Run one install: the interesting lines on the screen, every line in the log."""
    print(f"set-up: {title}", flush=True)
    started = time.monotonic()
    venv.mkdir(parents=True, exist_ok=True)
    log = venv / "tetraspark-environment.log"
    lines: list[str] = []
    pipe, same = subprocess.PIPE, subprocess.STDOUT
    with log.open("a", encoding="utf-8") as file:
        with subprocess.Popen(command, text=True, stdout=pipe, stderr=same) as process:
            try:
                for line in process.stdout or ():
                    file.write(line)
                    lines.append(line.rstrip())
                    if is_news(line):
                        print(f"  {line.strip()}", flush=True)
            except KeyboardInterrupt:
                # leaving the block waits for it
                process.terminate()
                raise
        if not log.exists():
            # `venv --clear` took it away
            log.write_text("\n".join([*lines, ""]), encoding="utf-8")
    if process.returncode != 0:
        tail = "\n".join(lines[-15:])
        raise SetupError(f"{title} failed (log: {log}):\n{tail}")
    print(f"set-up: {title}: done in {time.monotonic() - started:.0f} s", flush=True)


def is_news(line: str) -> bool:
    """Tell whether a line of pip's is worth a person's eye: an error, or a large download."""
    text = line.strip()
    large = text.startswith("Downloading ") and text.endswith(("MB)", "GB)"))
    return large or text.startswith(("ERROR", "error:"))


if __name__ == "__main__":
    sys.exit(main())
