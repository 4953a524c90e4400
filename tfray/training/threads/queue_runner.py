"""Threads that keep a queue filled: `QueueRunner`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from tfray import errors
from tfray.errors import ArgumentError, CancelledError, InvalidArgumentError, OpError, OutOfRangeError
from tfray.formats.meta_graph_proto import QueueRunnerDef
from tfray.framework.arguments import checked
from tfray.framework.graph import Graph, Operation, get_default_graph, get_default_session
from tfray.framework.graph_keys import GraphKeys
from tfray.library.input.queues import QueueBase
from tfray.library.platform import logging
from tfray.runtime.executor import ignore_float_errors
from tfray.training.threads.coordinator import Coordinator

__all__ = [
    "NestedQueueRunnerError",
    "QueueRunner",
    "QueueRunners",
    "add_queue_runner",
    "start_queue_runners",
]


class QueueRunner:
    """Fills a queue: a thread for each enqueue operation runs it again and again.

    A thread ends when its operation reports that the input has ended. When all threads have ended, the queue is closed:
    dequeue operations then fail once the queue is empty. When a coordinator stops, waiting enqueues are cancelled.

    Args:
        queue: The queue.
        enqueue_ops: Operations that add to it. An operation gets a thread for each time that it is in the list.
        close_op: Operation that closes the queue; made by its `close` by default.
        cancel_op: Operation that closes it and cancels waiting enqueues; made by its `close` by default.
        queue_closed_exception_types: Errors that mean the end of the input; `OutOfRangeError` by default.
        queue_runner_def: Instead of all of these, the result of `to_proto`: names of operations in the current graph.
        import_scope: Name scope to which those names are relative.

    Raises:
        ValueError: The queue or the operations are missing.
        TypeError: `queue_closed_exception_types` is not a tuple of errors.
    """

    _is_awaited: ClassVar[bool] = True
    """Whether a coordinator waits for the threads when it stops."""

    @checked
    def __init__(
        self,
        queue: QueueBase | Operation | None = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[OpError], ...] | None = None,
        queue_runner_def: QueueRunnerDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise ValueError("a QueueRunner takes a queue and its operations, or a queue_runner_def, not both")
            queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types = _found(
                queue_runner_def, import_scope
            )
        if queue is None or not enqueue_ops:
            raise ValueError("a QueueRunner takes a queue, and a list of operations that add to it")
        ends = (OutOfRangeError,) if queue_closed_exception_types is None else queue_closed_exception_types
        if not isinstance(ends, tuple) or not ends or not all(issubclass(kind, OpError) for kind in ends):
            raise TypeError(f"queue_closed_exception_types is {ends!r}, expected a tuple of kinds of OpError")
        self._queue = queue
        self._enqueue_ops = list(enqueue_ops)
        if close_op is None or cancel_op is None:
            assert isinstance(queue, QueueBase)
            close_op = queue.close() if close_op is None else close_op
            cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self._close_op, self._cancel_op = close_op, cancel_op
        self._ends = ends
        self._lock = threading.Lock()
        self._running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions: list[BaseException] = []

    def to_proto(self, export_scope: str | None = None) -> QueueRunnerDef | None:
        """This runner by the names of its operations, relative to a scope; None when the queue is outside of it."""
        prefix = export_scope.rstrip("/") + "/" if export_scope else ""
        if not self.name.startswith(prefix):
            return None
        return QueueRunnerDef(
            queue_name=self.name.removeprefix(prefix),
            enqueue_op_name=[op.name.removeprefix(prefix) for op in self._enqueue_ops],
            close_op_name=self._close_op.name.removeprefix(prefix),
            cancel_op_name=self._cancel_op.name.removeprefix(prefix),
            queue_closed_exception_types=[errors.error_code_from_exception_type(kind) for kind in self._ends],
        )

    @staticmethod
    def from_proto(queue_runner_def: QueueRunnerDef, import_scope: str | None = None) -> QueueRunner:
        """The runner of the current graph that `queue_runner_def` describes."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    @property
    def queue(self) -> QueueBase | Operation:
        """The queue; for a runner that was loaded, the queue's operation."""
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        """The operations that add to it."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        """The operation that closes it."""
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        """The operation that closes it and cancels waiting enqueues."""
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[OpError], ...]:
        """Errors that mean the end of the input."""
        return self._ends

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """Exceptions of threads without a coordinator since `create_threads`."""
        return self._exceptions

    @property
    def name(self) -> str:
        """Name of the queue."""
        return self._queue.name

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Make the threads: one for each enqueue operation, and with a coordinator one that waits for its stop.

        Args:
            sess: The session in which to run.
            coord: Takes the threads' errors and tells them to stop. Without it they are kept in `exceptions_raised`.
            daemon: Whether the program may end while they run.
            start: Whether to start them.

        Returns:
            The threads; an empty list if threads of an earlier call with this session still run.
        """
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._exceptions = []
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"QueueRunnerThread-{self.name}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord is not None:
            name = f"QueueRunnerThread-{self.name}-close_on_stop"
            threads.append(threading.Thread(target=self._close_on_stop, args=(sess, coord), name=name))
        for thread in threads:
            thread.daemon = daemon
            if coord is not None and self._is_awaited:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _run(self, sess: Any, enqueue_op: Any, coord: Coordinator | None) -> None:
        is_last = False
        ignore_float_errors()
        try:
            enqueue, several = sess.make_callable(enqueue_op), sess.make_several(enqueue_op)
            while coord is None or not coord.should_stop():
                if several is not None:
                    try:
                        several()
                        continue
                    except OpError:  # what `enqueue` raises is what the program expects
                        several = None
                enqueue()
        except self._ends:
            is_last = self._one_less(sess)
        except Exception as error:  # noqa: BLE001 (the coordinator, or the program, decides)
            self._one_less(sess)
            self._report(error, coord)
        else:
            self._one_less(sess)
        if is_last:
            self._try(sess, self._close_op)

    def _one_less(self, sess: Any) -> bool:
        """Count a thread as ended. Returns whether it was the last."""
        with self._lock:
            self._running[sess] -= 1
            return self._running[sess] == 0

    def _report(self, error: Exception, coord: Coordinator | None) -> None:
        if coord is not None:
            coord.request_stop(error)
            return
        self._exceptions.append(error)
        if not isinstance(error, CancelledError):  # cancelling is the way to stop a thread without a coordinator
            logging.error("%s: %s: %s", threading.current_thread().name, type(error).__name__, error)

    def _close_on_stop(self, sess: Any, coord: Coordinator) -> None:
        coord.wait_for_stop()
        self._try(sess, self._cancel_op)

    @staticmethod
    def _try(sess: Any, op: Any) -> None:
        try:
            sess.run(op)
        except OpError as error:  # the queue, or the session, is closed already
            logging.vlog(1, "ignored: %s", error)


def _found(definition: QueueRunnerDef, scope: str | None) -> tuple[Any, list[Any], Any, Any, tuple[Any, ...]]:
    graph, prefix = get_default_graph(), scope.rstrip("/") + "/" if scope else ""
    codes = list(definition.queue_closed_exception_types) or [errors.OUT_OF_RANGE]
    try:
        ends = tuple(errors.exception_type_from_error_code(code) for code in codes)
    except KeyError as error:
        raise InvalidArgumentError(f"{codes} are not all codes of tf.errors") from error
    names = [definition.queue_name, definition.close_op_name, definition.cancel_op_name, *definition.enqueue_op_name]
    queue, close, cancel, *enqueues = [graph.as_graph_element(f"{prefix}{name}") for name in names]
    return queue, enqueues, close, cancel, ends


@checked
def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Add a runner to a graph collection, so that `start_queue_runners` starts its threads.

    Args:
        qr: The runner.
        collection: Graph collection in which to put it.
    """
    get_default_graph().add_to_collection(collection, qr)


@checked
def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Start the threads of all queue runners of a graph.

    Args:
        sess: The session in which to run; the default session when None.
        coord: Takes the threads' errors and tells them to stop.
        daemon: Whether the program may end while they run.
        start: Whether to start them, not only make them.
        collection: Graph collection of the runners.

    Returns:
        The threads.

    Raises:
        ValueError: There is no session.
    """
    sess = get_default_session() if sess is None else sess
    if sess is None:
        raise ValueError("start_queue_runners needs a session: pass sess=, or call it within `with tf.Session()`")
    if not isinstance(getattr(sess, "graph", None), Graph):
        raise ArgumentError(f"start_queue_runners(): sess must be a session, got {sess!r}")
    with sess.graph.as_default():
        runners = get_default_graph().get_collection(collection)
        return [thread for runner in runners for thread in runner.create_threads(sess, coord, daemon, start)]


class NestedQueueRunnerError(Exception):
    """`QueueRunners` is entered while it is entered already."""


_RUNNING = threading.Lock()


@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:
    """Run the queue runners of the default graph inside a ``with`` statement, and stop them behind it.

    Args:
        session: The session in which they run.

    Raises:
        NestedQueueRunnerError: The statement stands inside another one.
    """
    if not _RUNNING.acquire(blocking=False):
        raise NestedQueueRunnerError("QueueRunners cannot be entered twice at a time")
    try:
        coordinator = Coordinator()
        threads = start_queue_runners(session, coordinator)
        try:
            yield
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=120)
    finally:
        _RUNNING.release()
