"""Streams that capture, and graphs, for `fakecupy`: what is called during a capture is called again at each launch.

As on a GPU, a capture writes to no array that was there before, what waits for the device fails in one, and a launch
finds inputs and variables where the capture saw them, and nowhere else.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_numbers = itertools.count(1)


class _State(threading.local):
    """What a thread captures.

    Attributes:
        calls: Functions, their arguments, keywords and results; None while nothing is captured.
        meets_host: Whether something was copied from the host.
        depth: Recorded functions that are running: only the outermost is noted.
        streams: The streams that are current, the latest last.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], tuple, dict, Any]] | None = None
        self.meets_host = False
        self.depth = 0
        self.streams: list[Stream] = []


_state = _State()

NEW: Any = object()
"""What `target` gives for calls that make new arrays, or views."""


def keyword_out(*args: Any, out: Any = None, **kwargs: Any) -> Any:
    """The `target` of functions with ``out=``."""
    return NEW if out is None else out


def nothing(*args: Any, **kwargs: Any) -> Any:
    """The `target` of functions that write to an argument and return nothing."""
    return None


def recorded(function: Callable[..., Any], target: Callable[..., Any] = keyword_out) -> Callable[..., Any]:
    """Let captures note the calls of a function that works on the device.

    Args:
        function: The function.
        target: Takes the same arguments. Gives what the function returns, where it writes to one of these: then a
            capture does not call it, for it computes nothing. `NEW` where the function makes the arrays.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _state.calls is None or _state.depth:
            return function(*args, **kwargs)
        result = target(*args, **kwargs)
        if result is NEW:
            _state.depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                _state.depth -= 1
        _state.calls.append((function, args, kwargs, result))
        return result

    return call


def waits() -> None:
    """Called where the host would wait for the device."""
    if _state.calls is not None:
        raise RuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")


def meets_host() -> None:
    """Called where something is copied from the host."""
    _state.meets_host = True


class Stream:
    """`cupy.cuda.Stream`."""

    null = None

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.ptr = next(_numbers) if non_blocking else 0

    def __enter__(self) -> Stream:
        _state.streams.append(self)
        return self

    def __exit__(self, *args: object) -> None:
        _state.streams.pop()

    def synchronize(self) -> None:
        """Nothing is under way."""
        waits()

    def begin_capture(self, mode: int | None = None) -> None:
        """As of CuPy."""
        if _state.calls is not None or not self.ptr:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported")
        _state.calls, _state.meets_host = [], False

    def end_capture(self) -> Graph:
        """As of CuPy."""
        calls, _state.calls = _state.calls, None
        assert calls is not None
        return Graph(calls, _state.meets_host)


def current_stream() -> Stream:
    """The thread's stream."""
    return _state.streams[-1] if _state.streams else Stream()


class Graph:
    """`cupy.cuda.Graph`."""

    def __init__(self, calls: list[tuple[Callable[..., Any], tuple, dict, Any]], with_host: bool) -> None:
        self._calls, self._with_host = calls, with_host

    def launch(self, stream: Any = None) -> None:
        """Call everything again. Results go where the capture left them."""
        for function, args, kwargs, result in self._calls:
            _put(function(*args, **kwargs), result)

    def debug_dot_str(self, flags: int = 0) -> str:
        """Its nodes, in the form of CUDA 13: only copies are told apart."""
        kinds = ["DEVICE to DEVICE", *(["HOST to DEVICE"] if self._with_host else [])]
        nodes = [f'"node_{i}"[label="{{MEMCPY| {{kind | default ({kind})}}}}"];' for i, kind in enumerate(kinds)]
        return "digraph {\n" + "\n".join(nodes) + "\n}"


def _put(new: Any, result: Any) -> None:
    if isinstance(result, (tuple, list)):
        for each, target in zip(new, result, strict=True):
            _put(each, target)
    elif isinstance(host := getattr(result, "_host", None), np.ndarray) and not np.shares_memory(host, new._host):
        host[...] = new._host


MEMORY_BYTES = 16 << 30
"""What a pretended device has."""


class MemoryPool:
    """`cupy.cuda.MemoryPool`: NumPy's memory has no limit.

    Args:
        used: Gives the bytes that arrays of this pool have now.
    """

    def __init__(self, used: Callable[[], int] = lambda: 0) -> None:
        self._limit = self._most = 0
        self._used = used

    def malloc(self, size: int) -> Any:
        """Not called: the stand-in's arrays have memory of NumPy's."""
        raise NotImplementedError

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """As of CuPy."""
        self._limit = int(MEMORY_BYTES * fraction) if fraction is not None else int(size or 0)

    def get_limit(self) -> int:
        """Bytes; 0 for no limit."""
        return self._limit

    def used_bytes(self) -> int:
        """Bytes that arrays have."""
        used = self._used()
        self._most = max(self._most, used)
        return used

    def total_bytes(self) -> int:
        """Bytes that it holds: the most that arrays had whenever somebody asked."""
        self.used_bytes()
        return self._most


@contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    """Arrays have NumPy's memory whatever the allocator is."""
    yield
