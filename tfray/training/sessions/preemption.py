"""Notices of preemption: SIGTERM, as schedulers send it before they take a machine away."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Final

EXIT_CODE: Final = 128 + signal.SIGTERM


class PreemptionNotice:
    """Whether this process has been told to end.

    From `watch` to `release`, SIGTERM is noted and does not end the process. A program's own handler stays in place;
    the handlers of Ray and tfray, which end the process, are replaced meanwhile. On other threads than the main one
    `watch` does nothing: Python has no signals there.
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
        self._received = True  # nothing else: the signal may have interrupted anything, even the writing of a log
