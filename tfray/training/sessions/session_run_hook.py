"""The base class of hooks: code that runs around each step of a monitored session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from tfray.options import RunOptions


class SessionRunArgs(NamedTuple):
    """Arguments of `tf.Session.run`, as a hook adds them to a step.

    Attributes:
        fetches: As for `tf.Session.run`; None for nothing.
        feed_dict: Values for tensors.
        options: Options of the step.
    """

    fetches: Any
    feed_dict: Any = None
    options: RunOptions | None = None


class SessionRunValues(NamedTuple):
    """The results of a step for a hook.

    Attributes:
        results: Values of the hook's fetches, in the same structure; None if it asked for nothing.
        options: Options of the step.
        run_metadata: The record of the step, a `tf.RunMetadata`.
    """

    results: Any
    options: RunOptions
    run_metadata: Any


class SessionRunContext:
    """A step of a monitored session, as hooks see it.

    Args:
        original_args: What the program asked for, before any hook.
        session: The session beneath, without hooks.
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the program asked for, before any hook."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session beneath, without hooks."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook has asked to stop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Ask to stop: `should_stop` of the monitored session becomes true."""
        self._stop_requested = True


class SessionRunHook:
    """Code that runs around each step of a `tf.train.MonitoredSession`. Override what is needed.

    Example:
        >>> class PrintLoss(tf.train.SessionRunHook):
        ...     def before_run(self, run_context):
        ...         return tf.train.SessionRunArgs(loss)
        ...
        ...     def after_run(self, run_context, run_values):
        ...         print(run_values.results)
    """

    def begin(self) -> None:
        """Called once, before the session is made: the last time to add to the graph."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when a session has been made and its variables have values; again after each recovery.

        Args:
            session: The session beneath, without hooks.
            coord: The `tf.train.Coordinator` of its threads.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each step.

        Args:
            run_context: The step.

        Returns:
            Fetches and feeds to add to those of the program, or None.
        """

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each step, unless it failed.

        Args:
            run_context: The step.
            run_values: The values that `before_run` asked for.
        """

    def end(self, session: Any) -> None:
        """Called when the session is closed, unless an error ends it.

        Args:
            session: The session beneath, without hooks.
        """


class WatchingHook(SessionRunHook, ABC):
    """A hook that runs the steps of a monitored session in a session of its own over the one beneath."""

    @abstractmethod
    def watching(self, session: Any) -> Any:
        """The session in which the next step is run.

        Args:
            session: The session beneath, or what the hook before this one has put over it.

        Returns:
            A session over it, whose `run` takes the arguments of `tf.Session.run`.
        """
