"""Check what the project depends on: pinned, hashed, installed as pinned; and with --advisories
whether an advisory names any of it, which needs the network.

Usage: python scripts/audit.py [--advisories]

Every requirement must be pinned with `==`, and its lock must have a hash for it; nothing else may
be in a lock. Torch is pinned without a hash: its builds come from an index, or a file, that the
user names. Exit code 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
UNHASHED = ("torch",)
KNOWN = (
    # SGLang goes without what is for GPUs; of Triton there is a stand-in.
    r"sglang \S+ requires \S+, which is not installed\.",
    r"\S+ \S+ requires triton, which is not installed\.",
    # The pins are what every test ran with.
    r"sglang \S+ has requirement (torch|sentencepiece)==\S+, but you have .*",
)
"""What pip check finds in the environment as it is meant to be."""
PIP_AUDIT = "pip-audit==2.10.1"


def main(argv: list[str] | None = None) -> int:
    """Run the audit; return the process exit code."""
    parser = argparse.ArgumentParser(description="Audit the dependencies of tetraspark.")
    parser.add_argument("--advisories", action="store_true", help="ask for advisories, too")
    options = parser.parse_args(argv)
    problems = [
        *lists(REQUIREMENTS),
        *project(ROOT / "pyproject.toml", REQUIREMENTS),
        *installed(REQUIREMENTS),
    ]
    for problem in problems:
        print(f"audit: {problem}", file=sys.stderr)
    if problems:
        return 1
    print("audit: every requirement is pinned, hashed (but torch), and installed as pinned")
    return advisories() if options.advisories else 0


def lists(folder: Path) -> list[str]:
    """Return what is wrong with the requirement lists of a folder and their locks."""
    found = []
    names = sorted(path.stem for path in folder.glob("*.txt"))
    for path in folder.glob("*.lock"):
        if path.stem not in names:
            found.append(f"{path.name}: a lock of no list; remove it")
    for name in names:
        pins, wrong = read_list(folder / f"{name}.txt")
        found += wrong
        hashed = {one: version for one, version in pins.items() if one not in UNHASHED}
        lock = folder / f"{name}.lock"
        if hashed or lock.exists():
            found += compared(hashed, lock)
    return found


def read_list(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the pins of a list by normalised name, and what is no pin in it."""
    pins: dict[str, str] = {}
    wrong = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = PIN.fullmatch(text)
        if found is None:
            wrong.append(f"{path.name}:{number}: {text!r} is not pinned; wanted: NAME==VERSION")
        else:
            pins[canonicalize_name(found["name"])] = found["version"]
    return pins, wrong


def compared(pins: dict[str, str], lock: Path) -> list[str]:
    """Return what is wrong with a lock, for the pins that it is to have hashes of."""
    if not lock.exists():
        return [f"{lock.name}: no lock; the first lines of another one have the command"]
    found = []
    there, wrong = read_lock(lock)
    for name in pins.keys() | there.keys():
        if name not in there:
            found.append(f"{lock.name}: no hash of {name}=={pins[name]}; generate it anew")
        elif pins.get(name) != there[name]:
            wanted = pins.get(name, "none")
            found.append(f"{lock.name}: {name}=={there[name]}, wanted: {wanted}; generate it anew")
    return sorted([*found, *wrong])


def read_lock(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the pins of a lock by normalised name, and what has no hash or is no pin in it."""
    pins: dict[str, str] = {}
    wrong = []
    for line in joined(path.read_text(encoding="utf-8")):
        text, *hashes = line.split()
        found = PIN.fullmatch(text)
        if found is None:
            wrong.append(f"{path.name}: {text!r} is not pinned; wanted: NAME==VERSION")
            continue
        pins[canonicalize_name(found["name"])] = found["version"]
        if not hashes or not all(HASH.fullmatch(one) for one in hashes):
            wrong.append(f"{path.name}: {text} without a SHA-256 alone; generate it anew")
    return pins, wrong


def joined(text: str) -> Iterable[str]:
    """Return the lines of a requirement file, without comments, continued ones as one."""
    whole = text.replace("\\\n", " ")
    return (line for line in whole.splitlines() if line.strip() and not line.startswith("#"))


def project(pyproject: Path, folder: Path) -> list[str]:
    """Return the dependencies of the project that no list pins."""
    pins = every_pin(folder)
    data = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    optional = data["project"].get("optional-dependencies", {}).values()
    wanted = [*data["project"]["dependencies"], *(one for extra in optional for one in extra)]
    found = []
    for one in (*wanted, *data["build-system"]["requires"]):
        requirement = Requirement(one)
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None:
            found.append(f"pyproject.toml: {one} is pinned by no list of {folder.name}/")
        elif pin not in requirement.specifier:
            found.append(f"pyproject.toml: {one}, but the lists pin {pin}")
    return found


def every_pin(folder: Path) -> dict[str, str]:
    """Return the pins of all lists."""
    return {
        name: version
        for path in sorted(folder.glob("*.txt"))
        for name, version in read_list(path)[0].items()
    }


def installed(folder: Path) -> list[str]:
    """Return what pip finds wrong in this environment, and what is not as pinned."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    check = subprocess.run([*pip, "check"], capture_output=True, text=True, check=False)
    lines = check.stdout.splitlines() if check.returncode else []
    found = [
        f"pip check: {line}" for line in lines if not any(re.fullmatch(one, line) for one in KNOWN)
    ]
    listed = subprocess.run([*pip, "freeze", "--all"], capture_output=True, text=True, check=True)
    there: dict[str, str] = {
        canonicalize_name(one["name"]): one["version"].partition("+")[0]
        for one in map(PIN.fullmatch, listed.stdout.splitlines())
        if one is not None
    }
    for name, version in every_pin(folder).items():
        if name in there and there[name] != version:
            found.append(f"{name} {there[name]} is installed; wanted: {version}; make environment")
    return found


def is_known(line: str) -> bool:
    """Say whether a finding of pip check is of the environment as it is meant to be."""
    return any(re.fullmatch(one, line) for one in KNOWN)


def advisories() -> int:
    """Ask for advisories about every pin; return pip-audit's exit code."""
    tool = Path(sys.prefix) / "pip-audit"
    python = tool / "bin" / "python"
    if not (tool / "bin" / "pip-audit").exists():
        subprocess.run([sys.executable, "-m", "venv", str(tool)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PIP_AUDIT], check=True)
    words = [word for lock in sorted(REQUIREMENTS.glob("*.lock")) for word in ("-r", str(lock))]
    # Strict: a package that the database does not know was not audited.
    options = ("--strict", "--disable-pip", "--require-hashes")
    argv = [str(tool / "bin" / "pip-audit"), *options, *words]
    return subprocess.run(argv, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
