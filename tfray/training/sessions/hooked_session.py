"""A session with hooks around its steps. When a monitored session recovers, it replaces this by a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.errors import AbortedError, UnavailableError
from tfray.formats.step_stats import RunMetadata
from tfray.library.platform import logging
from tfray.options import RunOptions
from tfray.session import Session
from tfray.training.sessions.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    WatchingHook,
)
from tfray.training.threads.coordinator import Coordinator
from tfray.training.threads.queue_runner import start_queue_runners

RECOVERABLE = (AbortedError, UnavailableError)
"""Errors after which a new session, restored from a checkpoint, can go on."""


class StepContext:
    """The argument of a function that `MonitoredSession.run_step_fn` calls.

    Args:
        session: The underlying session, without hooks.
        run_with_hooks: The `run` of the monitored session.
    """

    def __init__(self, session: Any, run_with_hooks: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks = run_with_hooks

    @property
    def session(self) -> Any:
        """The underlying session. Hooks do not see what it runs."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """`run` of the monitored session."""
        return self._run_with_hooks(*args, **kwargs)

    def request_stop(self) -> None:
        """Leave the function, and the monitored session's ``with`` block, by `StopIteration`."""
        raise StopIteration("the step function has asked to stop")


class HookedSession:
    """A session, its hooks and its threads.

    Args:
        session: The session, in which the model is ready.
        hooks: The hooks, begun already.
        stop_grace_period_secs: Seconds that threads have to end.
    """

    def __init__(self, session: Session, hooks: Sequence[SessionRunHook], stop_grace_period_secs: float = 120) -> None:
        self.session = session
        self.coord = Coordinator()
        self._hooks = list(hooks)
        self._grace_s = stop_grace_period_secs
        self._stop_requested = False

    def start(self) -> None:
        """Start the queue runners, and tell the hooks."""
        start_queue_runners(sess=self.session, coord=self.coord)
        for hook in self._hooks:
            hook.after_create_session(self.session, self.coord)

    def should_stop(self) -> bool:
        """Whether a hook or a thread has asked to stop."""
        return self._stop_requested or self.coord.should_stop()

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: Any = None,
    ) -> Any:
        """Run a step with the hooks around it.

        Raises:
            RuntimeError: A hook or a thread has asked to stop, or two hooks feed the same tensor.
        """
        if self.should_stop():
            raise RuntimeError("run was called after somebody had asked to stop: look at should_stop before each step")
        try:
            return self._run(fetches, feed_dict, options, run_metadata)
        except RECOVERABLE:
            raise
        except Exception:
            # The step's error may follow from a thread's error. If the thread's is recoverable, so is the step's.
            try:
                self.coord.raise_requested_exception()
            except RECOVERABLE:
                raise
            except Exception as reported:  # noqa: BLE001 (join raises it)
                logging.vlog(1, "a thread has reported %s", reported)
            raise

    def _run(self, fetches: Any, feed_dict: Any, options: RunOptions | None, run_metadata: Any) -> Any:
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self.session)
        feeds = dict(feed_dict or {})
        own_options = options or RunOptions()
        asked: dict[int, int] = {}
        """By number of a hook: the position of its values."""
        everything = [fetches]
        for number, hook in enumerate(self._hooks):
            args = hook.before_run(context)
            if args is None:
                continue
            _check_request(hook, args)
            if args.fetches is not None:
                asked[number] = len(everything)
                everything.append(args.fetches)
            _add_feeds(feeds, args.feed_dict, feed_dict)
            own_options = _merged(own_options, args.options)
        if run_metadata is None:
            run_metadata = RunMetadata()
        traced = own_options.trace_level > RunOptions.NO_TRACE or own_options.output_partition_graphs
        session: Any = self.session
        for hook in self._hooks:
            session = hook.watching(session) if isinstance(hook, WatchingHook) else session
        values = session.run(everything, feeds, own_options, run_metadata if traced else None)
        for number, hook in enumerate(self._hooks):
            results = values[asked[number]] if number in asked else None
            hook.after_run(context, SessionRunValues(results, own_options, run_metadata))
        self._stop_requested = self._stop_requested or context.stop_requested
        return values[0]

    def run_step_fn(self, step_fn: Callable[[StepContext], Any]) -> Any:
        """Call a function with a `StepContext`."""
        return step_fn(StepContext(self.session, self.run))

    def close(self) -> None:
        """End the threads and the session. Raises the error that a thread has reported, if any."""
        self.coord.request_stop()
        try:
            self.coord.join(stop_grace_period_secs=self._grace_s, ignore_live_threads=True)
        finally:
            self.session.close()

    def abandon(self) -> None:
        """Close after a failure that has been reported already."""
        try:
            self.close()
        except Exception as error:  # noqa: BLE001 (it follows from the failure, mostly)
            logging.info("while a failed session was closed: %s", error)


def _check_request(hook: SessionRunHook, args: Any) -> None:
    """Raise `TypeError` if the result of `before_run` is not None or a valid `SessionRunArgs`."""
    kinds: dict[str, Any] = {"feed_dict": Mapping, "options": RunOptions}
    wrong = [name for name, kind in kinds.items() if not isinstance(getattr(args, name, None), (kind, type(None)))]
    if wrong or not isinstance(args, SessionRunArgs):
        what = f"with {wrong[0]}={getattr(args, wrong[0])!r}" if wrong else repr(args)
        raise TypeError(
            f"before_run of {type(hook).__name__} must give None or SessionRunArgs(fetches, feed_dict, options), "
            f"with a mapping and RunOptions; it gave {what}"
        )


def _add_feeds(feeds: dict[Any, Any], added: Mapping[Any, Any] | None, own: Mapping[Any, Any] | None) -> None:
    for tensor, value in (added or {}).items():
        if tensor in feeds:
            by = "the program feeds, too" if own and tensor in own else "another hook feeds, too"
            raise RuntimeError(f"a hook feeds {getattr(tensor, 'name', tensor)}, which {by}")
        feeds[tensor] = value


def _merged(options: RunOptions, added: RunOptions | None) -> RunOptions:
    """The options of the two that ask for more."""
    if added is None:
        return options
    merged = RunOptions(
        timeout_in_ms=max(options.timeout_in_ms, added.timeout_in_ms),
        trace_level=max(options.trace_level, added.trace_level),
    )
    if options.output_partition_graphs or added.output_partition_graphs:
        merged.output_partition_graphs = True
    return merged
