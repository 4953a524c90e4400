"""Threads that work together and stop together: `Coordinator` and `LooperThread`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from tfray.errors import OutOfRangeError
from tfray.framework.arguments import NonNegative, checked
from tfray.library.platform import logging

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]

_LOOK_AGAIN_S = 1.0
"""Seconds after which a waiting `join` looks again whether all threads have ended without a request to stop."""


class Coordinator:
    """Lets any of several threads ask all of them to stop, and hands the exception that was the reason to `join`.

    Each thread works while `should_stop` is false, best within `stop_on_exception`. The main thread calls
    `request_stop` when it is done, and then `join`.

    Args:
        clean_stop_exception_types: Exceptions that only mean the end; `OutOfRangeError` by default. `request_stop`
            takes them, and `join` does not raise them.

    Example:
        >>> coord = tf.train.Coordinator()
        >>> threads = tf.train.start_queue_runners(sess=session, coord=coord)
        >>> with coord.stop_on_exception():
        ...     while not coord.should_stop():
        ...         session.run(train_op)
        >>> coord.join(threads)
    """

    @checked
    def __init__(self, clean_stop_exception_types: Sequence[type[BaseException]] | None = None) -> None:
        self._clean = (OutOfRangeError,) if clean_stop_exception_types is None else tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._joined = False
        self._registered: dict[threading.Thread, None] = {}

    @property
    def joined(self) -> bool:
        """Whether `join` has returned or raised since the last `clear_stop`."""
        return self._joined

    def request_stop(self, ex: BaseException | ExcInfo | None = None) -> None:
        """Ask all threads to stop.

        Args:
            ex: The exception that is the reason, or a tuple as of `sys.exc_info`. `join` raises the first one.

        Raises:
            BaseException: `ex` itself, if `join` has ended already and so cannot raise it.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            if self._joined:
                if error is not None and not isinstance(error, self._clean):
                    raise error
                return
            if error is not None and self._error is None and not self._stop.is_set():
                if isinstance(error, self._clean):
                    logging.vlog(1, "clean stop: %s", error)
                else:
                    logging.info("error reported to the coordinator: %s: %s", type(error).__name__, error)
                    self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Take requests to stop back, and forget the exception: the coordinator can be used again."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop.clear()

    def should_stop(self) -> bool:
        """Whether somebody has asked to stop."""
        return self._stop.is_set()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Context manager that turns an exception within into a request to stop."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (whatever it is, `join` raises it)
            self.request_stop(error)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until somebody asks to stop.

        Args:
            timeout: Seconds after which to return in any case.

        Returns:
            Whether somebody has asked.
        """
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Let `join` wait for a thread."""
        with self._lock:
            self._registered[thread] = None

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until all threads have ended, and raise the exception that one of them has reported.

        Once somebody has asked to stop, threads have `stop_grace_period_secs` to do so.

        Args:
            threads: Threads to wait for besides those that are registered.
            stop_grace_period_secs: Seconds between the request to stop and giving up.
            ignore_live_threads: Whether to return even if threads still run after that time.

        Raises:
            RuntimeError: Threads still run after that time.
            BaseException: The exception that was reported to `request_stop`.
        """
        with self._lock:
            awaited = list(dict.fromkeys([*self._registered, *(threads or ())]))
        while any(thread.is_alive() for thread in awaited) and not self.wait_for_stop(_LOOK_AGAIN_S):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in awaited:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        left = [thread.name for thread in awaited if thread.is_alive()]
        with self._lock:
            self._joined = True
            self._registered.clear()
            if self._error is not None:
                raise self._error
        if left and not ignore_live_threads:
            raise RuntimeError(
                f"Coordinator stopped with threads still running {stop_grace_period_secs:g} s later: {', '.join(left)}"
            )
        if left:
            logging.info("threads still run after the coordinator has stopped: %s", ", ".join(left))

    def raise_requested_exception(self) -> None:
        """Raise the exception that has been reported to `request_stop`, if there is one."""
        with self._lock:
            if self._error is not None:
                raise self._error


class LooperThread(threading.Thread):
    """A daemon thread that calls a function again and again until a coordinator stops.

    Args:
        coord: The coordinator; an exception of the function asks it to stop.
        timer_interval_secs: Seconds from one call's start to the next one's; None to call without pause.
        target: The function; None to override `run_loop` instead.
        args: Its arguments.
        kwargs: Its arguments by name.

    Raises:
        ValueError: `coord` is not a coordinator.
    """

    @checked
    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: NonNegative | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"coord is {coord!r}, expected a Coordinator")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval_s = timer_interval_secs
        self._function = target
        self._arguments = tuple(args or ()), dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Start a `LooperThread` with these arguments."""
        thread = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            due = time.monotonic()
            while not self._coord.should_stop():
                self.run_loop()
                if self._interval_s is not None:
                    due += self._interval_s
                    self._coord.wait_for_stop(max(0.0, due - time.monotonic()))
            self.stop_loop()

    def start_loop(self) -> None:
        """Called before the first turn. To be overridden."""

    def stop_loop(self) -> None:
        """Called after the last turn. To be overridden."""

    def run_loop(self) -> None:
        """One turn: calls the function."""
        if self._function is not None:
            args, kwargs = self._arguments
            self._function(*args, **kwargs)
