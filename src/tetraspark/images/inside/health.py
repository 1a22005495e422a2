"""The image's health check: what can be known of one rank from inside its container.

Every rank: the engine's scheduler process is there and runs, and where tetraspark's collectives
are on, their state was written lately. The head also asks the engine for a token: `/health`
answers from a process that can outlive the ranks. A worker says nothing about the whole line;
`tetraspark status` does. Prints one line; exit code 0 or 1.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TITLE = b"sglang::scheduler"
STALE_SECONDS = 30.0
"""The communicator writes its state once a second."""
TOKEN_SECONDS = 25.0
"""The engine looks for an answer for up to 20 s by default before it gives up."""
STATES = {"T": "stopped", "t": "traced", "Z": "a zombie", "X": "dead"}


def scheduler_fault(proc: Path) -> str:
    """Return what is wrong with the scheduler processes under /proc, or nothing."""
    states = {}
    for folder in proc.glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(TITLE):
                states[folder.name] = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # It ended while we looked.
    if not states:
        return "no scheduler process"
    bad = [f"{pid} is {STATES[state]}" for pid, state in states.items() if state in STATES]
    return "scheduler process " + ", ".join(bad) if bad else ""


def collectives_fault(run_dir: str, rank: str, now: float) -> str:
    """Return what is wrong with the state of the collectives, or nothing where there is none."""
    path = Path(run_dir, f"rank{rank}.collectives.json")
    try:
        state: dict[str, Any] = json.loads(path.read_text())
        age = now - float(state["at"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{path}: {error}"
    if state.get("verdict") == "failed":
        return "the collectives have failed"
    return f"the collectives said nothing for {age:.0f} s" if age > STALE_SECONDS else ""


def token_fault(url: str) -> str:
    """Return why the engine generated no token, or nothing."""
    try:
        with urllib.request.urlopen(f"{url}/health_generate", timeout=TOKEN_SECONDS) as answer:
            code = answer.status
    except urllib.error.HTTPError as error:
        code = error.code
    except (OSError, ValueError) as error:
        return f"no answer of {url}: {error}"
    return "" if code == 200 else f"HTTP {code} of {url}/health_generate: no token"


def main(proc: Path = Path("/proc")) -> int:
    """Look, print one line, return the exit code."""
    rank, url = os.environ.get("TETRASPARK_RANK", "?"), os.environ.get("TETRASPARK_API")
    run_dir = os.environ.get("TETRASPARK_RUN_DIR")
    fault = scheduler_fault(proc)
    if not fault and run_dir:
        fault = collectives_fault(run_dir, rank, time.time())
    if not fault and url:
        fault = token_fault(url)
    seen = "scheduler runs" + (", a token was generated" if url else "")
    print(f"rank {rank}: {fault or seen}")
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
