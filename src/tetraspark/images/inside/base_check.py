"""First step of a build: does the base image have what the recipe stands on?

Usage: base_check.py [--machine M] [--python X.Y] [--libc X.Y] [--pip X.Y]
    [--command NAME]... [--file PATH]...
Prints everything that is missing; exit code 0 or 1.
"""

import argparse
import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version


def numbers(version: str) -> tuple[int, ...]:
    """Return "2.34" as (2, 34)."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def pip_version() -> str:
    """Return the version of pip, or nothing where there is none."""
    try:
        return version("pip")
    except PackageNotFoundError:
        return ""


def faults(options: argparse.Namespace) -> list[str]:
    """Return a sentence for each thing that is not as the recipe wants it."""
    found = []
    machine, libc = platform.machine(), platform.libc_ver()
    python = "{}.{}".format(*sys.version_info[:2])
    if options.machine and machine != options.machine:
        found.append(f"machine is {machine}, wanted {options.machine}")
    if options.python and python != options.python:
        found.append(f"python3 is {python}, wanted {options.python}: the wheels are built for it")
    if options.libc and (libc[0] != "glibc" or numbers(libc[1]) < numbers(options.libc)):
        found.append(f"C library is {' '.join(libc)}, wanted glibc {options.libc} or newer")
    if options.pip and numbers(pip_version()) < numbers(options.pip):
        seen = pip_version() or "not there"
        found.append(f"pip of python3 is {seen}, wanted {options.pip} or newer")
    found += [f"no command {name}" for name in options.command if shutil.which(name) is None]
    found += [f"no file {path}" for path in options.file if not os.path.exists(path)]  # noqa: PTH110
    return found


def main(argv: list[str]) -> int:
    """Check; return the exit code."""
    parser = argparse.ArgumentParser()
    for name in ("--machine", "--python", "--libc", "--pip"):
        parser.add_argument(name)
    for name in ("--command", "--file"):
        parser.add_argument(name, action="append", default=[])
    found = faults(parser.parse_args(argv))
    for text in found:
        print(f"base image: {text}", file=sys.stderr)
    if found:
        print("choose another base: [image] base = NAME@sha256:DIGEST", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
