"""Notices of preemption: SIGTERM, as schedulers send it before they take a machine away."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Final

EXIT_CODE: Final = 128 + signal.SIGTERM


class PreemptionNotice:
    """Whether this process has been told to end.

    From `watch` to `release` SIGTERM does not end the process but is noted. A program's own handler is left alone,
    not so those of Ray and tfray, which end the process; and so are programs that call `watch` from another thread
    than the main one, where Python has no signals.
    """

    def __init__(self) -> None:
        self._received = False
        self._before: Any = None
        self._watching = False

    @property
    def received(self) -> bool:
        """Whether the signal has come."""
        return self._received

    def watch(self) -> None:
        """Note the signal from now on."""
        before = signal.getsignal(signal.SIGTERM)
        of_libraries = str(getattr(before, "__module__", "")).startswith(("ray.", "tfray."))
        is_free = before is signal.SIG_DFL or of_libraries
        if is_free and threading.current_thread() is threading.main_thread():
            self._before = before
            signal.signal(signal.SIGTERM, self._note)
            self._watching = True

    def release(self) -> None:
        """Let the signal end the process again."""
        if self._watching and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before)
            self._watching = False

    def _note(self, number: int, frame: FrameType | None) -> Any:
        self._received = True  # and no more: the signal may have come amid anything, a message being logged too
