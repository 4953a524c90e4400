"""A headless Chromium, driven through the pipe of its remote debugging."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")

TEXTS = """
(() => {
  const texts = [];
  const visit = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const text = node.textContent.trim();
      if (text) texts.push(text);
    }
    if (["STYLE", "SCRIPT", "DOM-MODULE"].includes(node.nodeName)) return;
    if (node.shadowRoot) visit(node.shadowRoot);
    node.childNodes.forEach(visit);
  };
  if (document.body) visit(document.body);
  return texts.join("\\n");
})()
"""
"""All text of the page, that in shadow trees too."""

PLACE = """
((wanted) => {
  let place = null;
  const visit = (node) => {
    const own = Array.from(node.childNodes).filter((child) => child.nodeType === Node.TEXT_NODE);
    if (own.some((child) => child.textContent.trim() === wanted)) {
      const box = node.getBoundingClientRect();
      if (box.width > 0 && box.height > 0) place = [box.x + box.width / 2, box.y + box.height / 2];
    }
    if (node.shadowRoot) node.shadowRoot.childNodes.forEach((child) => child.childNodes && visit(child));
    node.childNodes.forEach((child) => child.nodeType === Node.ELEMENT_NODE && visit(child));
  };
  if (document.body) visit(document.body);
  return place;
})(%s)
"""
"""The middle of the last visible element whose own text is this one."""


def program():
    """The path of Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page of a Chromium. Use it in a ``with`` block.

    Args:
        profile: Folder for what it keeps.
    """

    def __init__(self, profile):
        commands, answers = os.pipe(), os.pipe()
        # Chromium reads from 3 and writes to 4: what it is given must have neither number before.
        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands[0], answers[1])]
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--window-size=1400,1000", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        shell = ["bash", "-c", f'exec "$@" 3<&{given[0]} 4>&{given[1]}', "bash"]
        self._process = subprocess.Popen(
            [*shell, program(), *options, "about:blank"],
            pass_fds=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands[0], answers[1], *given):
            os.close(end)
        self._out, self._in = os.fdopen(commands[1], "wb", 0), os.fdopen(answers[0], "rb", 0)
        self._received = b""
        self._number = 0
        self._session = None
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next_message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _next_message(self):
        while b"\0" not in self._received:
            chunk = self._in.read(1 << 16)
            assert chunk, "Chromium has ended"
            self._received += chunk
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def open(self, url):
        """Go to a page."""
        self._call("Page.navigate", url=url)

    def evaluate(self, script):
        """The value of a piece of JavaScript."""
        result = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def text(self):
        """All text that the page holds."""
        return self.evaluate(TEXTS)

    def wait_for_text(self, *expected, timeout_s=60.0):
        """Return once the page holds all of these texts; returns its text."""
        deadline = time.monotonic() + timeout_s
        while not all(text in (found := self.text()) for text in expected):
            assert time.monotonic() < deadline, f"the page does not show {expected}, but {found[-2000:]!r}"
            time.sleep(0.2)
        return found

    def double_click(self, text):
        """Click twice where a text is shown."""
        x, y = self.evaluate(PLACE % json.dumps(text))
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def screenshot(self, path):
        """Save what the page looks like as PNG."""
        data = self._call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        self._session = None
        try:
            self._call("Browser.close")
        finally:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._out.close()
            self._in.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()
