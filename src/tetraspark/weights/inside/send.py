"""Run rsync from this node to another one; print progress and at last how it ended, as JSON lines.

Runs on the head with `python3 -I -`, from stdin. REQUEST is put in by the sender: the words of
rsync and the names to send. rsync ends when nobody reads the progress any more, so a launcher
that was killed leaves no copy behind that writes on.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REQUEST = "{}"
TELL_SECONDS = 0.5
PROGRESS = re.compile(rb"\s*([\d,]+)\s+\d+%")
BUSY = 75


def say(line: dict[str, Any]) -> None:
    """Print a line at once."""
    print(json.dumps(line), flush=True)


def follow(rsync: subprocess.Popen[bytes], total: int) -> None:
    """Tell how many bytes went, until rsync ends; its lines end with carriage returns."""
    assert rsync.stdout is not None
    told, line, handle = 0.0, b"", rsync.stdout.fileno()
    while chunk := os.read(handle, 65536):
        line = re.split(rb"[\r\n]", line + chunk)[-1]
        seen = PROGRESS.findall(chunk)
        if seen and time.monotonic() - told >= TELL_SECONDS:
            told = time.monotonic()
            say({"done": int(seen[-1].replace(b",", b"")), "total": total, "text": ""})


def send(request: dict[str, Any]) -> dict[str, Any]:
    """Send the files; return rsync's exit code and what it said."""
    names = b"".join(name.encode() + b"\0" for name in request["names"])
    with tempfile.TemporaryFile() as listed, tempfile.TemporaryFile() as said:
        listed.write(names)
        listed.seek(0)
        rsync = subprocess.Popen(
            request["argv"],
            stdin=listed,
            stdout=subprocess.PIPE,
            stderr=said,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        signal.signal(signal.SIGTERM, lambda *_: rsync.terminate())
        signal.signal(signal.SIGHUP, lambda *_: rsync.terminate())
        try:
            follow(rsync, request["total"])
            rc = rsync.wait()
        finally:
            rsync.terminate()
        said.seek(0)
        return {"rc": rc, "stderr": said.read()[-20000:].decode("utf-8", "replace")}


def main(request: dict[str, Any]) -> None:
    """Send, unless something sends to the same place already."""
    folder = Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache/tetraspark")
    folder.mkdir(parents=True, exist_ok=True)
    with Path(folder, f"copy-{request['lock']}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say({"rc": BUSY, "stderr": "another copy"})
            return
        try:
            say(send(request))
        except FileNotFoundError:
            say({"rc": 127, "stderr": "rsync: not found"})
        except BrokenPipeError:
            sys.stdout = None


if __name__ == "__main__":
    main(json.loads(REQUEST))
