"""Sessions that initialise, restore, save, log and recover by themselves."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Final

from tfray.errors import OutOfRangeError
from tfray.formats.files import given_path
from tfray.framework.arguments import Count, NonNegative, checked
from tfray.framework.graph import Graph, get_default_graph
from tfray.library.platform import logging
from tfray.options import ConfigProto, RunOptions
from tfray.session import Session
from tfray.training.sessions.hooked_session import RECOVERABLE, HookedSession, StepContext
from tfray.training.sessions.hooks import StepCounterHook
from tfray.training.sessions.hooks_saving import AUTOMATIC, Automatic, CheckpointSaverHook, SummarySaverHook
from tfray.training.sessions.preemption import EXIT_CODE, PreemptionNotice
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_manager import SessionManager
from tfray.training.sessions.session_run_hook import SessionRunHook


class _Default:
    """The type of `USE_DEFAULT`."""


USE_DEFAULT: Final = _Default()

MAX_RECOVERIES: Final = 10
"""How many failures in a row, without a step between them, a session recovers from."""

_FIRST_PAUSE_S: Final = 0.1
"""Seconds before the first recovery. The pause doubles with each further failure in a row, up to the longest one."""

_LONGEST_PAUSE_S: Final = 10.0

_CLEAN_ENDS: Final = (OutOfRangeError, StopIteration)


class SessionCreator:
    """Makes sessions for a monitored session."""

    def create_session(self) -> Session:
        """A session in which the model is ready. To be overridden."""
        raise AttributeError(f"{type(self).__name__} does not say how to make a session: define create_session")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions of the chief: restored from a checkpoint, or initialised.

    Args:
        scaffold: What the model needs besides the training step.
        master: Where to run, as for `tf.Session`.
        config: Options of the session.
        checkpoint_dir: Folder of the checkpoints, of which the newest is restored.
        checkpoint_filename_with_path: One checkpoint, in place of a folder.
    """

    @checked
    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: Any = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._manager: SessionManager | None = None

    def create_session(self) -> Session:
        """A session in which the model is ready."""
        self._scaffold.finalize()
        if self._manager is None:
            self._manager = _manager_of(self._scaffold)
        return self._manager.prepare_session(
            self._master,
            self._scaffold.init_op,
            self._scaffold.saver,
            self._checkpoint_dir,
            self._checkpoint_filename_with_path,
            config=self._config,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Makes sessions of a worker that is not the chief: it waits until the chief has made the model ready.

    Args:
        scaffold: What the model needs besides the training step.
        master: Where to run, as for `tf.Session`: the cluster that the chief uses too.
        config: Options of the session.
        max_wait_secs: Seconds to wait for the chief.
    """

    @checked
    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: Any = "",
        config: ConfigProto | None = None,
        max_wait_secs: NonNegative = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs
        self._manager: SessionManager | None = None

    def create_session(self) -> Session:
        """A session in which the model is ready."""
        self._scaffold.finalize()
        if self._manager is None:
            self._manager = _manager_of(self._scaffold)
        return self._manager.wait_for_session(self._master, config=self._config, max_wait_secs=self._max_wait_secs)


def _manager_of(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=get_default_graph(),
    )


class _MonitoredSession:
    """What `MonitoredSession` and `SingularMonitoredSession` share."""

    _recovers: ClassVar[bool]

    def __init__(
        self,
        session_creator: SessionCreator,
        hooks: Sequence[SessionRunHook] | None,
        stop_grace_period_secs: float,
        preemption: PreemptionNotice | None = None,
    ) -> None:
        self._graph = get_default_graph()
        self._graph_was_finalized = self._graph.finalized
        self._creator = session_creator
        self._hooks = list(hooks or ())
        self._grace_s = stop_grace_period_secs
        self._preemption = preemption
        self._closed = False
        self._live: HookedSession | None = None
        self._failures = 0
        for hook in self._hooks:
            hook.begin()
        if preemption is not None:
            preemption.watch()
        try:
            self._recovering(self._session_now)
        except BaseException:
            self._release()
            raise

    @property
    def graph(self) -> Graph | None:
        """The graph that is run; None once closed."""
        return None if self._closed else self._graph

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: Any = None,
    ) -> Any:
        """Run a step, with the hooks around it. Arguments as for `tf.Session.run`.

        Raises:
            RuntimeError: The session is closed, or somebody has asked to stop.
        """
        return self._recovering(lambda: self._session_now().run(fetches, feed_dict, options, run_metadata))

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Call a function that may run steps of its own, with hooks or without them.

        Args:
            step_fn: Function of ``step_context``: see `StepContext`. After a recovery it is called again.

        Returns:
            The function's result.

        Raises:
            ValueError: It does not take ``step_context``.
        """
        names = tuple(inspect.signature(step_fn).parameters)
        if names not in (("step_context",), ("self", "step_context")):
            raise ValueError(f"step_fn takes {', '.join(names) or 'no argument'}, expected step_context alone")
        return self._recovering(lambda: self._session_now().run_step_fn(step_fn))

    def should_stop(self) -> bool:
        """Whether to make no further step: somebody has asked to stop, the process was told to end, or it is closed."""
        if self._closed or (self._preemption is not None and self._preemption.received):
            return True
        return self._live is not None and self._live.should_stop()

    def close(self) -> None:
        """Call the hooks' `end`, then end the threads and the session.

        Raises:
            SystemExit: There was a SIGTERM; everything has been saved.
        """
        self._close(clean=True)

    def _tf_sess(self) -> Session:
        """The session beneath, without hooks."""
        return self._session_now().session

    def _session_now(self) -> HookedSession:
        """The session; a new one if the last has failed."""
        if self._closed:
            raise RuntimeError("the monitored session is closed")
        if self._preemption is not None and self._preemption.received:
            sys.exit(EXIT_CODE)
        if self._live is None:
            with self._graph.as_default():
                live = HookedSession(self._creator.create_session(), self._hooks, self._grace_s)
                try:
                    live.start()
                except BaseException:
                    live.abandon()
                    raise
                self._live = live
        return self._live

    def _recovering(self, action: Callable[[], Any]) -> Any:
        """Call `action` and return its result. After a recoverable error, call it again in a new session."""
        while True:
            try:
                result = action()
            except RECOVERABLE as error:
                if not self._recovers or self._failures >= MAX_RECOVERIES:
                    raise
                logging.warning("%s; making a new session, which restores the last checkpoint", error)
                live, self._live = self._live, None
                if live is not None:
                    live.abandon()
                time.sleep(min(_FIRST_PAUSE_S * 2**self._failures, _LONGEST_PAUSE_S))
                self._failures += 1
            else:
                self._failures = 0
                return result

    def _close(self, clean: bool) -> None:
        if self._closed:
            raise RuntimeError("the monitored session is closed already")
        preempted = self._preemption is not None and self._preemption.received
        try:
            if clean and self._live is not None:
                with self._graph.as_default():
                    for hook in self._hooks:
                        hook.end(self._live.session)
        finally:
            self._release()
        if clean and preempted:
            logging.warning("SIGTERM: the session is saved and closed, the program ends")
            sys.exit(EXIT_CODE)

    def _release(self) -> None:
        self._closed = True
        live, self._live = self._live, None
        try:
            if live is not None:
                live.close()
        finally:
            if not self._graph_was_finalized:
                self._graph._unsafe_unfinalize()
            if self._preemption is not None:
                self._preemption.release()
            for hook in self._hooks:
                if isinstance(hook, CheckpointSaverHook):
                    hook.unlock()

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        preempted = isinstance(error, SystemExit) and self._preemption is not None and self._preemption.received
        clean = kind is None or issubclass(kind, _CLEAN_ENDS) or preempted
        self._close(clean)
        return clean


class MonitoredSession(_MonitoredSession):
    """A session with hooks around its steps that recovers from the loss of devices.

    It initialises or restores the model, starts the queue runners, and closes everything in the end. After an
    `AbortedError` or `UnavailableError` it makes a new session, which restores the last checkpoint, and repeats the
    step. `OutOfRangeError` and `StopIteration` end the ``with`` block without an error.

    Args:
        session_creator: Makes sessions; a `ChiefSessionCreator` when None.
        hooks: The hooks.
        stop_grace_period_secs: Seconds that threads have to end.

    Example:
        >>> with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=1000)]) as session:
        ...     while not session.should_stop():
        ...         session.run(train_op)
    """

    StepContext: ClassVar[type[StepContext]] = StepContext
    _recovers = True

    @checked
    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: NonNegative = 120,
    ) -> None:
        super().__init__(session_creator or ChiefSessionCreator(), hooks, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A monitored session that does not recover.

    Args:
        hooks: The hooks.
        scaffold: What the model needs besides the training step.
        master: Where to run, as for `tf.Session`.
        config: Options of the session.
        checkpoint_dir: Folder of the checkpoints, of which the newest is restored.
        stop_grace_period_secs: Seconds that threads have to end.
        checkpoint_filename_with_path: One checkpoint, in place of a folder.
    """

    _recovers = False

    @checked
    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: Any = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: NonNegative = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, stop_grace_period_secs)

    def raw_session(self) -> Session:
        """The session beneath, without hooks."""
        return self._tf_sess()


class _TrainingSession(MonitoredSession):
    """What `MonitoredTrainingSession` returns: a monitored session that saves when the process is told to end."""

    def __init__(self, creator: SessionCreator, hooks: Sequence[SessionRunHook], stop_grace_period_secs: float) -> None:
        _MonitoredSession.__init__(self, creator, hooks, stop_grace_period_secs, PreemptionNotice())


@checked
def MonitoredTrainingSession(
    master: Any = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | Automatic | _Default | None = USE_DEFAULT,
    save_summaries_steps: int | _Default | None = USE_DEFAULT,
    save_summaries_secs: float | _Default | None = USE_DEFAULT,
    config: ConfigProto | None = None,
    stop_grace_period_secs: NonNegative = 120,
    log_step_count_steps: Count | None = 100,
    max_wait_secs: NonNegative = 7200,
    save_checkpoint_steps: int | _Default | None = USE_DEFAULT,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """A monitored session for training: it saves checkpoints and summaries, and restores the newest checkpoint.

    Schedulers send SIGTERM before they take the machine away. It does not end the process at once: `should_stop`
    becomes true. When the session is closed, which the next step does too, the hooks save, and the process exits with
    code 143. A program's own handler of SIGTERM stays in place.

    Args:
        master: Where to run, as for `tf.Session`.
        is_chief: Whether this worker initialises, saves and logs; others wait for it.
        checkpoint_dir: Folder of the checkpoints; none are saved when None or ``""``.
        scaffold: What the model needs besides the training step.
        hooks: Hooks of every worker.
        chief_only_hooks: Further hooks of the chief.
        save_checkpoint_secs: Seconds from one checkpoint to the next; None for no saving. If neither seconds nor steps
            are given, the interval is chosen that loses least time: see `CheckpointSaverHook`.
        save_summaries_steps: Steps from one summary to the next; 100 unless seconds are given, None for none.
        save_summaries_secs: Seconds from one summary to the next.
        config: Options of the session.
        stop_grace_period_secs: Seconds that threads have to end.
        log_step_count_steps: Steps from one note of the steps per second to the next; None for none.
        max_wait_secs: Seconds that a worker waits for the chief.
        save_checkpoint_steps: Steps from one checkpoint to the next.
        summary_dir: Folder of the event file; `checkpoint_dir` when None or ``""``.
        save_graph_def: Write the graph, as text, beside the checkpoints.

    Returns:
        A `MonitoredSession`.

    Raises:
        FailedPreconditionError: Another process saves in `checkpoint_dir`: the message says which, and since when.
    """
    for name, given in (("checkpoint_dir", checkpoint_dir), ("summary_dir", summary_dir)):
        if given:
            given_path(given, name)
    scaffold = scaffold or Scaffold()
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return _TrainingSession(worker, list(hooks or ()), stop_grace_period_secs)
    summaries_steps, summaries_secs = _interval(save_summaries_steps, save_summaries_secs, (100, None))
    save_steps, save_secs = _interval(save_checkpoint_steps, save_checkpoint_secs, (None, AUTOMATIC))
    all_hooks: list[SessionRunHook] = []
    folder = summary_dir or checkpoint_dir
    if folder:
        if log_step_count_steps:
            all_hooks.append(StepCounterHook(log_step_count_steps, output_dir=folder))
        if summaries_steps or summaries_secs:
            all_hooks.append(SummarySaverHook(summaries_steps, summaries_secs, folder, scaffold=scaffold))
    if checkpoint_dir and (save_steps or save_secs):
        saver = CheckpointSaverHook(
            checkpoint_dir, save_secs, save_steps, scaffold=scaffold, save_graph_def=save_graph_def
        )
        all_hooks.append(saver)
    all_hooks += [*(hooks or ()), *(chief_only_hooks or ())]
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return _TrainingSession(chief, all_hooks, stop_grace_period_secs)


def _interval(steps: Any, secs: Any, default: tuple[int | None, float | str | None]) -> tuple[Any, Any]:
    """Steps and seconds from one time to the next; the default if neither is given."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default
    return (None if steps is USE_DEFAULT else steps), (None if secs is USE_DEFAULT else secs)
