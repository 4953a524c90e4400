"""Hooks that look at every tensor of a monitored session's steps; see `tf.debug`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfray.library.inspect.debug import DumpingDebugWrapperSession, Filter, LocalCLIDebugWrapperSession
from tfray.training.sessions.session_run_hook import WatchingHook


class _DebugHook(WatchingHook):
    """A hook with one session over all sessions that a monitored session has in turn.

    Args:
        wrap: Puts it over the first of them.
    """

    def __init__(self, wrap: Callable[[Any], Any]) -> None:
        self._wrap = wrap
        self._wrapper: Any = None

    def watching(self, session: Any) -> Any:
        """See `WatchingHook.watching`."""
        if self._wrapper is None:
            self._wrapper = self._wrap(session)
        self._wrapper.rebind(session)
        return self._wrapper


class LocalCLIDebugHook(_DebugHook):
    """Stops the steps of a monitored session at the first tensor for which a filter is true.

    Args:
        *unused: Accepted for TensorFlow 1 programs: the debugger is Python's.
        **options: `on_hit` of `tf.debug.LocalDebugSession`; others are accepted for TensorFlow 1 programs.

    Example:
        >>> hook = LocalCLIDebugHook()
        >>> hook.add_tensor_filter("has_inf_or_nan", tf.debug.has_inf_or_nan)
        >>> with tf.train.MonitoredSession(hooks=[hook]) as session:
        ...     session.run(train_op)
    """

    def __init__(self, *unused: object, **options: Any) -> None:
        super().__init__(lambda session: LocalCLIDebugWrapperSession(session, **options))
        self._filters: dict[str, Filter] = {}

    def add_tensor_filter(self, filter_name: str, tensor_filter: Filter) -> None:
        """Stop at tensors for which ``tensor_filter(datum, value)`` is true.

        Args:
            filter_name: Name of the filter; an earlier one of this name is replaced.
            tensor_filter: Such as `tf.debug.has_inf_or_nan`.
        """
        self._filters[filter_name] = tensor_filter

    def watching(self, session: Any) -> Any:
        """See `WatchingHook.watching`."""
        wrapper = super().watching(session)
        for name, tensor_filter in self._filters.items():
            wrapper.add_tensor_filter(name, tensor_filter)
        return wrapper


class DumpingDebugHook(_DebugHook):
    """Writes the tensors of every step of a monitored session to a folder of its own, as `tf.debug.DebugDumpDir` reads.

    Args:
        session_root: Folder of these folders, ``run_1``, ``run_2`` and so on.
        watch_fn: Which tensors: what `tf.debug.watch` takes, or a function of the `TensorDatum`.
        *unused: Accepted for TensorFlow 1 programs.
        **more: The same.
    """

    def __init__(self, session_root: str | Path, watch_fn: Any = None, *unused: object, **more: object) -> None:
        super().__init__(lambda session: DumpingDebugWrapperSession(session, session_root, watch_fn))
