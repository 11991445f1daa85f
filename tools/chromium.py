"""A small client of Chromium's debugging protocol: no library, no port, only a pipe."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

_PATIENCE = 240.0
"""Seconds to wait for one answer; a busy machine is slow to start a browser."""


def find_chromium() -> str | None:
    """The browser of this machine."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((found for found in map(shutil.which, names) if found), None)


class Chromium:
    """One browser process."""

    def __init__(self, path: str, folder: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--disable-dev-shm-usage"]
        flags += ["--no-first-run", "--hide-scrollbars", "--disable-background-networking", "--disable-sync"]
        command = [path, *flags, f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        commands, answers = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (ours[0], theirs[1]))

        def connect() -> None:
            # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(command, preexec_fn=connect, pass_fds=(3, 4), start_new_session=True, **quiet)
        for each in (ours[0], theirs[1], commands, answers):
            os.close(each)
        self._write, self._read = ours[1], theirs[0]
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.command("Browser.close")
        except (OSError, TimeoutError):
            self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def command(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | (
            {"sessionId": session} if session else {}
        )
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> dict[str, Any]:
        """Wait for an event, or take one that has come already."""
        while True:
            for place, event in enumerate(self.events):
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(place)
            self.events.append(self._message())

    def _message(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            got = os.read(self._read, 1 << 20)
            if not got:
                raise BrokenPipeError("Chromium has ended")
            self._buffer += got
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def open(self, path: Path, *, width: int = 1400, height: int = 900, scheme: str = "light", tab: str = "") -> Page:
        """Load a page, and wait until it is complete."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log"):
            page.command(f"{domain}.enable")
        page.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        page.scheme(scheme)
        page.command("Page.navigate", url=path.resolve().as_uri() + (f"#{tab}" if tab else ""))
        self.wait_for("Page.loadEventFired", session)
        return page


class Page:
    """One loaded page."""

    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this page."""
        return self._browser.command(method, self._session, **parameters)

    def scheme(self, name: str) -> None:
        """Prefer light or dark."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def run(self, expression: str) -> Any:
        """The value of an expression; a promise is awaited."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def frame(self) -> None:
        """Wait until what has changed is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")

    def press(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.command("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, *, whole: bool = False) -> bytes:
        """A PNG of what is visible, or of the whole page."""
        self.frame()
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        return base64.b64decode(data)

    def problems(self) -> list[str]:
        """Errors and warnings of the console so far."""
        self.run("0")
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            match event["method"], event["params"]:
                case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                    found.append(str(details.get("exception", {}).get("description", details["text"])))
                case "Runtime.consoleAPICalled", {"type": "error" | "warning" | "assert", "args": arguments}:
                    found.append(str([each.get("value", each.get("description")) for each in arguments]))
                case "Log.entryAdded", {"entry": {"level": "error" | "warning", "text": text}}:
                    found.append(text)
        return found

    def close(self) -> None:
        """Close the page."""
        self._browser.command("Target.closeTarget", targetId=self._target)
