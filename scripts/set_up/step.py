"""One install of the set-up: what is shown of it, what is kept, and how it fails."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path


class SetupError(Exception):
    """What stopped the set-up, and what to type."""


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
