"""Which torch is installed: a CPU build where the index offers one; and how large it is."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import urllib.request
from pathlib import Path

from scripts.set_up.place import REQUIREMENTS
from scripts.set_up.step import SetupError


class PipError(SetupError):
    """The last lines of a pip that failed."""


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
