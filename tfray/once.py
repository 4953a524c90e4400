"""Functions that are called once, whichever threads ask for what they give."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T")


def once(function: Callable[[], T]) -> Callable[[], T]:
    """A function without arguments that gives every caller one result.

    `functools.cache` may make the call in each thread that comes before the first result is there: too often where what
    one result has made, such as an engine of a library, does not go with another.
    """
    results: list[T] = []
    lock = threading.Lock()

    @wraps(function)
    def call() -> T:
        if not results:
            with lock:
                if not results:
                    results.append(function())
        return results[0]

    return call
