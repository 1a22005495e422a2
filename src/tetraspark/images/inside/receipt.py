"""Last step of a build: write down what is in the image, so that nodes can be compared.

Usage: receipt.py RECIPE FOLDER [--proxy]
Reads FOLDER/requirements.txt and FOLDER/SHA256SUMS, writes FOLDER/receipt.json: sorted, no time
stamps, equal on nodes whose images are equal. `--proxy` compiles tetraspark's libraries first.
Exit code 1 where a package is not of the version that was asked for.
"""

import hashlib
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path


def wrong_versions(requirements: str) -> list[str]:
    """Return a sentence for each `NAME==VERSION ...` line that is not what is installed."""
    found = []
    for line in requirements.splitlines():
        name, _, wanted = line.partition(" ")[0].partition("==")
        try:
            seen = version(name)
        except PackageNotFoundError:
            seen = "not installed"
        if seen != wanted:
            found.append(f"{name}: {seen}, wanted {wanted}")
    return found


def libraries() -> dict[str, dict[str, str]]:
    """Compile tetraspark's C files, or find them compiled; return the hashes of both."""
    from tetraspark.collectives.build import PROXY, build
    from tetraspark.collectives.verbs_native import UNIT

    return {
        unit.path.name: {
            "source": hashlib.sha256(unit.source()).hexdigest(),
            "library": _sha256(build(unit)),
        }
        for unit in (PROXY, UNIT)
    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(argv: list[str]) -> int:
    """Write the receipt; return the exit code."""
    recipe, folder = argv[0], Path(argv[1])
    wrong = wrong_versions((folder / "requirements.txt").read_text())
    for text in wrong:
        print(text, file=sys.stderr)
    sums = (folder / "SHA256SUMS").read_text().splitlines()
    receipt = {
        "recipe": recipe,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "files": {path: sha256 for sha256, path in (line.split("  ", 1) for line in sums)},
        "packages": {one.metadata["Name"]: one.version for one in distributions()},
        "libraries": libraries() if "--proxy" in argv else {},
    }
    text = json.dumps(receipt, indent=1, sort_keys=True) + "\n"
    (folder / "receipt.json").write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
