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

PATIENCE_S = 30.0

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

FIND = """
((wanted) => {
  const found = [];
  const visit = (node) => {
    const own = Array.from(node.childNodes).filter((child) => child.nodeType === Node.TEXT_NODE);
    if (own.some((child) => child.textContent.trim() === wanted)) found.push(node);
    if (node.shadowRoot) node.shadowRoot.childNodes.forEach((child) => child.childNodes && visit(child));
    node.childNodes.forEach((child) => child.nodeType === Node.ELEMENT_NODE && visit(child));
  };
  if (document.body) visit(document.body);
  return found;
})(%s)
"""
"""The elements whose own text is this one."""

PLACE = """
%s.map((node) => node.getBoundingClientRect())
  .filter((box) => box.width > 0 && box.height > 0)
  .map((box) => [box.x + box.width / 2, box.y + box.height / 2])
  .at(-1)
"""
"""The middle of the last of them that is visible."""


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

    def click(self, text, times=1):
        """Click where a text is shown, once it is and moves no more: a click beside what is drawn anew is lost."""
        deadline = time.monotonic() + PATIENCE_S
        former, place = None, self._place_of(text)
        while place is None or place != former:
            assert time.monotonic() < deadline, f"{text!r} is not to be seen, or moves"
            time.sleep(0.2)
            former, place = place, self._place_of(text)
        x, y = place
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def _place_of(self, text):
        return self.evaluate(PLACE % (FIND % json.dumps(text)).strip())

    def choose(self, text):
        """Click on what has a text, though it be within a menu that is closed."""
        self.evaluate(f"{(FIND % json.dumps(text)).strip()}.at(-1).click()")

    def double_click(self, text):
        """Click twice where a text is shown."""
        self.click(text, 2)

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
