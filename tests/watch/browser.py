"""A headless Chromium, driven over its debugging pipe (Chrome DevTools Protocol)."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60.0
PHONE = 360
DESKTOP = 1200


def require_browser() -> str:
    """Return the browser's path; without one, fail in CI and skip elsewhere."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is not None:
        return found
    text = "the status page's tests in a browser need chromium"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


class Browser:
    """One browser with one tab at a time, its profile in a folder."""

    def __init__(self, program: str, folder: Path) -> None:
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        # The browser wants its pipe at these two numbers.
        moved = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", moved, "bash", program, *flags],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": str(folder)},
        )
        os.close(to_browser)
        os.close(from_browser)
        self._unread = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile are kept."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while (message := self._next(deadline)).get("id") != self._number:
            self.events.append(message)
        assert "error" not in message, f"{method}: {message['error']}"
        result: dict[str, Any] = message["result"]
        return result

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            more = os.read(self._answers, 1 << 20)
            assert more, "the browser has ended"
            self._unread += more
        first, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def open(
        self, url: str, *, width: int = DESKTOP, dark: bool = False, script: bool = True
    ) -> "Tab":
        """Open an address in a new tab and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, target, session)
        for domain in ("Page", "Runtime", "Log"):
            tab.call(f"{domain}.enable")
        if not script:
            tab.call("Emulation.setScriptExecutionDisabled", value=True)
        tab.show(width=width, dark=dark)
        tab.call("Page.navigate", url=url)
        tab.until("document.readyState === 'complete' && location.href !== 'about:blank'")
        return tab

    def close(self) -> None:
        """End the browser."""
        self.call("Browser.close")
        self._process.wait(SECONDS)
        os.close(self._commands)
        os.close(self._answers)


class Tab:
    """One page in the browser."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self._browser = browser
        self._target = target
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this tab."""
        return self._browser.call(method, self._session, **parameters)

    def show(self, *, width: int, dark: bool, media: str = "screen") -> None:
        """Choose the window's width in pixels, the reader's colours, and screen or print."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=2 if width < 700 else 1,
            mobile=width < 700,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def value(self, expression: str) -> Any:
        """Return what an expression is in the page, as JSON would hold it."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + SECONDS
        while not self.value(condition):
            assert time.monotonic() < deadline, f"never: {condition}"
            time.sleep(0.1)

    def faults(self) -> list[str]:
        """Return every error of the console, of a script, or of the page's policy so far."""
        self.value("1")
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            told = event["params"]
            if event["method"] == "Log.entryAdded" and told["entry"]["level"] in ERRORS:
                found.append(told["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and told["type"] in ERRORS:
                found.append(str(told["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(str(told["exceptionDetails"]))
        return found

    def picture(self, file: Path) -> None:
        """Write the whole page as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Close the tab."""
        self._browser.call("Target.closeTarget", targetId=self._target)


ERRORS = ("error", "warning")
