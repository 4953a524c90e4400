"""Ctrl-C, where it would do damage."""

from __future__ import annotations

import importlib
import signal
import threading
from types import TracebackType
from typing import Any, Final

_handle: Final = importlib.import_module("_signal").signal
"""`signal.signal` without its enumerations: to make them takes longer than the call itself."""

_SIGINT: Final = int(signal.SIGINT)


class InterruptedAfterwards:
    """A block that Ctrl-C does not interrupt: `KeyboardInterrupt` is raised when the block has ended."""

    __slots__ = ("_former", "_interrupted", "_is_main")

    def __enter__(self) -> None:
        self._interrupted = False
        self._is_main = threading.get_ident() == threading.main_thread().ident  # Python delivers signals to it alone
        if self._is_main:
            self._former = _handle(_SIGINT, self._keep)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_main:
            _handle(_SIGINT, self._former or signal.default_int_handler)
        if self._interrupted and kind is None:
            raise KeyboardInterrupt

    def _keep(self, number: int, frame: Any) -> None:
        self._interrupted = True
