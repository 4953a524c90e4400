"""`Supervisor`: the older form of monitored sessions. It saves and logs by threads beside the training loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any, ClassVar, Final

from tfray.errors import CancelledError
from tfray.formats import files
from tfray.formats.events import SessionLog, Summary
from tfray.framework.arguments import NonNegative, checked
from tfray.framework.graph import Graph, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.inspect.event_writer import FileWriter
from tfray.library.inspect.summaries import merge_all
from tfray.library.platform import logging
from tfray.library.platform.graph_files import write_graph
from tfray.library.variables.variables import (
    global_variables,
    global_variables_initializer,
    report_uninitialized_variables,
)
from tfray.options import ConfigProto, RunOptions
from tfray.session import Session
from tfray.training.checkpoints.folder_lock import SharedLock
from tfray.training.checkpoints.saver import Saver
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_manager import SessionManager
from tfray.training.threads.coordinator import Coordinator, LooperThread
from tfray.training.threads.global_step import get_global_step, global_step

USE_DEFAULT: Final = 0


class Supervisor:
    """Makes a session in which the model is ready, and saves and logs by threads while the program trains.

    New programs use `tf.train.MonitoredTrainingSession`. After construction the graph is read-only.

    Args:
        graph: The graph; the default graph when None.
        ready_op: Names of the variables without a value; made by default.
        ready_for_local_init_op: The same for `local_init_op`.
        is_chief: Whether this worker initialises, saves and logs; others wait for it.
        init_op: Gives the variables values when there is no checkpoint; made by default.
        init_feed_dict: Values for tensors while `init_op` runs.
        local_init_op: Run in every new session; made by default.
        logdir: Folder of the checkpoints and the event file; neither is written when None.
        summary_op: All summaries in one; made by default.
        saver: Saves and restores checkpoints; made by default.
        global_step: The global step; that of the graph by default.
        save_summaries_secs: Seconds from one summary to the next; 0 for none.
        save_model_secs: Seconds from one checkpoint to the next; 0 for none.
        recovery_wait_secs: Longest wait from one look for the chief to the next.
        stop_grace_secs: Seconds that threads have to end.
        checkpoint_basename: Begins the names of checkpoints.
        session_manager: Makes sessions; made by default.
        summary_writer: Writes the event file; made by default for the chief.
        init_fn: Function of the session, called after `init_op`.
        local_init_run_options: Options of the step of `local_init_op`.

    Example:
        >>> supervisor = tf.train.Supervisor(logdir="/tmp/run")
        >>> with supervisor.managed_session() as session:
        ...     while not supervisor.should_stop():
        ...         session.run(train_op)
    """

    USE_DEFAULT: ClassVar[int] = USE_DEFAULT

    @checked
    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Mapping[Any, Any] | None = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: files.PathLike | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: NonNegative = 120,
        save_model_secs: NonNegative = 600,
        recovery_wait_secs: NonNegative = 30,
        stop_grace_secs: NonNegative = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: RunOptions | None = None,
    ) -> None:
        self._graph = graph or get_default_graph()
        self._is_chief = is_chief
        self._init_feed_dict = init_feed_dict
        self._init_fn = init_fn
        self._save_summaries_secs = save_summaries_secs
        self._save_model_secs = save_model_secs
        self._stop_grace_secs = stop_grace_secs
        self._logdir = None if not logdir else files.given_path(logdir, "logdir")
        with self._graph.as_default():
            self._init_op = _default(init_op, "init_op", GraphKeys.INIT_OP, global_variables_initializer)
            self._ready_op = _default(ready_op, "ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
            self._local_init_op = _default(
                local_init_op, "local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op
            )
            self._ready_for_local_init_op = _default(
                ready_for_local_init_op,
                "ready_for_local_init_op",
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()) if self._local_init_op is not None else None,
            )
            self._saver = _default(saver, "saver", GraphKeys.SAVERS, lambda: Saver() if global_variables() else None)
            self._summary_op = _default(summary_op, "summary_op", GraphKeys.SUMMARY_OP, merge_all)
            self._global_step = get_global_step(self._graph) if global_step is USE_DEFAULT else global_step
        self._writer: FileWriter | None = None
        if summary_writer is not USE_DEFAULT:
            self._writer = summary_writer
        elif is_chief and self._logdir:
            self._writer = FileWriter(self._logdir)
        self._save_path = f"{self._logdir.rstrip('/')}/{checkpoint_basename}" if is_chief and self._logdir else None
        saves = is_chief and self._saver is not None and save_model_secs
        self._lock = SharedLock(self._logdir) if saves and self._logdir else None
        """Of the folder in which the thread saves; none for a supervisor that has no such thread."""
        self._coord = Coordinator()
        self._graph_written = False
        self._started = False
        self._manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=None if self._local_init_op is None else self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._graph.finalize()

    # -- what it holds -----------------------------------------------------------------------------

    @property
    def is_chief(self) -> bool:
        """Whether this worker initialises, saves and logs."""
        return self._is_chief

    @property
    def session_manager(self) -> SessionManager:
        """Makes the sessions."""
        return self._manager

    @property
    def coord(self) -> Coordinator:
        """The coordinator of the threads."""
        return self._coord

    @property
    def init_op(self) -> Any:
        """Gives the variables values when there is no checkpoint."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Mapping[Any, Any] | None:
        """Values for tensors while `init_op` runs."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """Names of the variables without a value."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """Names of the variables for which the local initialisation waits."""
        return self._ready_for_local_init_op

    @property
    def summary_op(self) -> Any:
        """All summaries in one."""
        return self._summary_op

    @property
    def summary_writer(self) -> FileWriter | None:
        """Writes the event file, or None."""
        return self._writer

    @property
    def saver(self) -> Any:
        """Saves and restores checkpoints."""
        return self._saver

    @property
    def save_path(self) -> str | None:
        """Begins the paths of the checkpoints, or None."""
        return self._save_path

    @property
    def global_step(self) -> Any:
        """The global step, or None."""
        return self._global_step

    @property
    def save_summaries_secs(self) -> float:
        """Seconds from one summary to the next."""
        return self._save_summaries_secs

    @property
    def save_model_secs(self) -> float:
        """Seconds from one checkpoint to the next."""
        return self._save_model_secs

    # -- sessions ----------------------------------------------------------------------------------

    def prepare_or_wait_for_session(
        self,
        master: Any = "",
        config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:
        """A session in which the model is ready: the chief makes it so, other workers wait for the chief.

        Args:
            master: Where to run, as for `tf.Session`.
            config: Options of the session.
            wait_for_checkpoint: Let the chief wait until there is a checkpoint.
            max_wait_secs: Seconds to wait.
            start_standard_services: Start the threads of `start_standard_services`, and the queue runners.

        Raises:
            FailedPreconditionError: Another process saves in `logdir`: the message says which, and since when.
        """
        if start_standard_services and self._lock is not None:
            self._lock.take()
        self._coord.clear_stop()
        self._started = True
        if self._writer is not None:
            self._writer.reopen()
        if not self._is_chief:
            session = self._manager.wait_for_session(master, config, max_wait_secs)
        else:
            session = self._manager.prepare_session(
                master,
                self._init_op,
                self._saver,
                self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                self.start_standard_services(session)
        if start_standard_services:
            self.start_queue_runners(session)
        return session

    @contextmanager
    def managed_session(
        self,
        master: Any = "",
        config: ConfigProto | None = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Session]:
        """Context manager that yields a session and stops everything in the end.

        An error within stops the threads and is raised; `OutOfRangeError` only ends the block.

        Args:
            master: Where to run, as for `tf.Session`.
            config: Options of the session.
            start_standard_services: As for `prepare_or_wait_for_session`.
            close_summary_writer: Close the event file in the end.
        """
        session = None
        try:
            session = self.prepare_or_wait_for_session(master, config, start_standard_services=start_standard_services)
            with self._graph.as_default(), session.as_default():
                yield session
        except Exception as error:  # noqa: BLE001 (`stop` raises it)
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    session.close()

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph, self._logdir, "graph.pbtxt")
        if self._writer is not None and not self._graph_written:
            self._writer.add_graph(self._graph)
            self._graph_written = True

    # -- threads -----------------------------------------------------------------------------------

    def start_standard_services(self, sess: Session) -> list[Thread]:
        """Start the chief's threads, which save checkpoints, summaries and the steps per second.

        Args:
            sess: The session.

        Returns:
            The threads; none when there is no `logdir`.

        Raises:
            RuntimeError: This worker is not the chief.
            FailedPreconditionError: Another process saves in `logdir`.
        """
        if not self._is_chief:
            raise RuntimeError("only the chief saves and logs")
        if not self._logdir:
            logging.warning("the supervisor has no logdir: it saves and logs nothing")
            return []
        if self._lock is not None:
            self._lock.take()
        if self._global_step is not None and self._writer is not None:
            log = SessionLog(status=SessionLog.START, checkpoint_path=self._save_path)
            self._writer.add_session_log(log, self._step(sess))
        threads: list[Thread] = []
        if self._save_summaries_secs and self._writer is not None:
            if self._summary_op is not None:
                threads.append(self.loop(self._save_summaries_secs, self._save_summary, (sess,)))
            if self._global_step is not None:
                threads.append(_StepCounter(self._coord, self._save_summaries_secs, self, sess))
                threads[-1].start()
        if self._saver is not None and self._save_model_secs:
            threads.append(self.loop(self._save_model_secs, self._save_model, (sess,)))
        return threads

    def start_queue_runners(self, sess: Session, queue_runners: Iterable[Any] | None = None) -> list[Thread]:
        """Start the threads of queue runners.

        Args:
            sess: The session.
            queue_runners: The queue runners; those of the graph when None.
        """
        found = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS) if queue_runners is None else queue_runners
        threads: list[Thread] = []
        for runner in found:
            threads += runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        return threads

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls a function again and again until the supervisor stops.

        Args:
            timer_interval_secs: Seconds from one call to the next; None to call without pause.
            target: The function.
            args: Its arguments.
            kwargs: Its arguments by name.
        """
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self,
        threads: Iterable[Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stop the threads, wait for them, and raise what one has reported.

        Args:
            threads: Threads to wait for besides those that the supervisor has started.
            close_summary_writer: Close the event file.
            ignore_live_threads: Whether threads may still run afterwards.
        """
        self._coord.request_stop()
        try:
            self._coord.join(threads, self._stop_grace_secs, ignore_live_threads)
        finally:
            if self._lock is not None:
                self._lock.release()
            if close_summary_writer and self._started and self._writer is not None:
                self._started = False
                self._writer.reopen()
                self._writer.add_session_log(SessionLog(status=SessionLog.STOP))
                self._writer.close()
                self._graph_written = False

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop. `ex` is the error that is the reason; `stop` raises it."""
        self._coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Whether somebody has asked to stop."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> Any:
        """Context manager that turns an exception within into a request to stop."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Wait until somebody asks to stop."""
        self._coord.wait_for_stop()

    # -- what the threads do -----------------------------------------------------------------------

    def summary_computed(self, sess: Session, summary: Any, global_step: Any = None) -> None:
        """Write a summary that the program has computed itself.

        Args:
            sess: The session.
            summary: The result of a summary operation, or a `tf.Summary`.
            global_step: The step to write it for; the global step when None.

        Raises:
            RuntimeError: There is no event file.
        """
        if self._writer is None:
            raise RuntimeError("the supervisor writes no event file: give it a logdir or a summary_writer")
        if global_step is None and self._global_step is not None:
            global_step = self._step(sess)
        self._writer.add_summary(summary, global_step)

    def _step(self, session: Session) -> int:
        return global_step(session, self._global_step)

    def _save_summary(self, session: Session) -> None:
        with _ended_quietly(self._coord):
            values = session.run([self._summary_op] + [self._global_step] * (self._global_step is not None))
            self.summary_computed(session, values[0], values[1] if len(values) > 1 else None)

    def _save_model(self, session: Session) -> None:
        with _ended_quietly(self._coord):
            assert self._lock is not None
            self._lock.check()
            saved = self._saver.save(session, self._save_path, global_step=self._global_step)
            if self._writer is not None and self._global_step is not None:
                log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=saved)
                self._writer.add_session_log(log, self._step(session))

    PrepareSession = prepare_or_wait_for_session
    StartStandardServices = start_standard_services
    StartQueueRunners = start_queue_runners
    Loop = loop
    Stop = stop
    RequestStop = request_stop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


class _StepCounter(LooperThread):
    """Writes the steps per second."""

    def __init__(self, coord: Coordinator, interval_s: float, supervisor: Supervisor, session: Session) -> None:
        super().__init__(coord, interval_s)
        self._supervisor = supervisor
        self._session = session
        self._tag = f"{supervisor.global_step.op.name}/sec"
        self._last = 0, 0.0

    def start_loop(self) -> None:
        self._last = self._supervisor._step(self._session), time.monotonic()

    def run_loop(self) -> None:
        with _ended_quietly(self._supervisor.coord):
            (before, then), now = self._last, time.monotonic()
            step = self._supervisor._step(self._session)
            self._last = step, now
            if step > before:
                rate = (step - before) / max(now - then, 1e-9)
                logging.info("%s: %g", self._tag, rate)
                summary = Summary(value=[Summary.Value(tag=self._tag, simple_value=rate)])
                self._supervisor.summary_computed(self._session, summary, step)


@contextmanager
def _ended_quietly(coord: Coordinator) -> Iterator[None]:
    """Ignore errors because the session is closed, if everything is about to stop."""
    try:
        yield
    except CancelledError:
        if not coord.should_stop():
            raise


def _default(value: Any, name: str, collection: str, make: Callable[[], Any]) -> Any:
    return Scaffold.get_or_default(name, collection, make) if value is USE_DEFAULT else value
