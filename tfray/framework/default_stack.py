"""Defaults that ``with`` blocks set for the current thread: the graph, and the session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class DefaultStack(threading.local):
    """Per-thread stack of context-managed defaults."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    @contextmanager
    def activate(self, item: Any) -> Iterator[Any]:
        """Make `item` the default within the block.

        Raises:
            RuntimeError: The blocks are not left in the reverse order of entering them.
        """
        self.items.append(item)
        try:
            yield item
        finally:
            if not self.items or self.items[-1] is not item:
                raise RuntimeError("default graphs and sessions must be left in the reverse order of entering")
            self.items.pop()

    def top(self) -> Any | None:
        """The innermost default, or None."""
        return self.items[-1] if self.items else None


_default_sessions = DefaultStack()


def get_default_session() -> Any | None:
    """The session of the innermost ``with session`` of this thread, or None."""
    return _default_sessions.top()


def default_session_scope(session: Any) -> Any:
    """Context manager under which `session` is the default session."""
    return _default_sessions.activate(session)


def session_or_default(session: Any, graph: object) -> Any:
    """`session`, or the default session. Raises `ValueError` when there is none, or it runs another graph."""
    session = session or get_default_session()
    if session is None:
        raise ValueError("there is no default session: use `with tf.Session():` or pass session=")
    if session.graph is not graph:
        raise ValueError("the default session runs another graph: pass session=")
    return session
