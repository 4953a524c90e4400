"""Defaults that ``with`` blocks set for the current thread: the graph, and the session."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
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
            if self.items:  # nobody has cleared it meanwhile
                if self.items[-1] is not item:
                    raise RuntimeError("default graphs and sessions must be left in the reverse order of entering")
                self.items.pop()

    def clear(self) -> None:
        """Leave all blocks of this thread: within them, what is the default outside is so from now on."""
        self.items.clear()

    def top(self) -> Any | None:
        """The innermost default, or None."""
        return self.items[-1] if self.items else None


class ThreadScope(threading.local):
    """The name scope of a graph in the current thread: a name with a trailing slash, or ``""`` for the root."""

    name = ""


default_graphs = DefaultStack()
_default_sessions = DefaultStack()


def get_default_session() -> Any | None:
    """The session of the innermost ``with session`` of this thread, or None."""
    return _default_sessions.top()


def default_session_scope(session: Any) -> Any:
    """Context manager under which `session` is the default session."""
    return _default_sessions.activate(session)


def session_or_default(session: Any, graph: object, what: str = "evaluate tensor", method: str = "eval") -> Any:
    """`session`, or the default session. Raises `ValueError` when there is none, or it runs another graph."""
    given = "given" if session else "default"
    session = session or get_default_session()
    explicit = f"an explicit session to `{method}(session=sess)`"
    if session is None:
        raise ValueError(
            f"Cannot {what} using `{method}()`: No default session is registered. Use `with sess.as_default()` or pass "
            f"{explicit}"
        )
    if session.graph is not graph:
        differs = f"the {what.partition(' ')[2]}'s graph is different from the session's graph"
        raise ValueError(f"Cannot use the {given} session to {what}: {differs}. Pass {explicit}")
    return session


class ControlScope:
    """A ``control_dependencies``.

    Args:
        ops: What new operations wait for.

    Attributes:
        made: The operations that were made under it: what takes their outputs has no need to wait itself.
    """

    def __init__(self, ops: Iterable[Any]) -> None:
        self.ops = list(ops)
        self.made: set[Any] = set()


def controls_for(scopes: Iterable[ControlScope], inputs: Iterable[Any], is_stateful: bool) -> Iterator[Any]:
    """What an operation that takes these tensors waits for because of the scopes around it.

    One that is stateful waits for all by itself: what it takes may be computed elsewhere, and then need not wait.
    """
    needed = {tensor.op for tensor in inputs}
    for scope in scopes:
        if is_stateful or scope.made.isdisjoint(needed):  # otherwise what it takes has waited already
            yield from (op for op in scope.ops if op not in needed)


def made_under(scopes: Iterable[ControlScope], op: Any) -> None:
    """Note that an operation was made under the scopes.

    Constants and the like do not count: compiling copies, folds and shares them, and then they wait for nothing.
    """
    if op.inputs:
        for scope in scopes:
            scope.made.add(op)
