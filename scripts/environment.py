"""Make the virtual environment that serves and tests; the first step of every make target.

Usage: python3 -m scripts.environment [--venv .venv] [--test], in the root of the checkout.

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
import json
import os
import sys
from pathlib import Path

from scripts.set_up.machine import check_machine
from scripts.set_up.place import REQUIREMENTS, ROOT
from scripts.set_up.step import SetupError, run_step
from scripts.set_up.torch_choice import torch_arguments
from scripts.set_up.virtual import make_environment


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


if __name__ == "__main__":
    sys.exit(main())
