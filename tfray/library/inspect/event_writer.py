"""`FileWriter`: events for TensorBoard, written by a thread of its own while the program goes on."""

from __future__ import annotations

import queue
import threading
import time
import warnings
import weakref
from typing import Any, ClassVar, Final

from tfray.errors import ArgumentError, OpError
from tfray.formats import files
from tfray.formats.events import (
    Event,
    EventFile,
    SessionLog,
    Summary,
    TaggedRunMetadata,
    as_summary,
)
from tfray.formats.graph_proto import GraphDef
from tfray.formats.meta_graph_proto import MetaGraphDef
from tfray.formats.step_stats import RunMetadata
from tfray.formats.tensorboard_graph import draw_graph, rename_operations
from tfray.framework.arguments import NonNegative, checked
from tfray.framework.graph import Graph, get_default_graph
from tfray.library.inspect.plugin_assets import write_plugin_assets

_STOP: Final = object()


class EventFileWriter:
    """Writes events to a new event file.

    The first event makes the file and starts the thread. The thread ends at `close`, when the writer is dropped, or
    when the program ends. In each case it first writes all events that were added.

    Args:
        logdir: Folder of the file; it is made when it is not there.
        max_queue: How many events may wait to be written; adding one more waits.
        flush_secs: Seconds after which at the latest an event is handed to the file system.
        filename_suffix: End of the file's name.
    """

    def __init__(
        self, logdir: files.PathLike, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str | None = None
    ) -> None:
        self._logdir = files.given_path(logdir, "logdir")
        self._options = max(max_queue, 1), flush_secs, filename_suffix or ""
        self._lock = threading.Lock()
        self._log: _EventLog | None = None
        self._finish: Any = None
        self._closed = False
        files.make_folders(self._logdir)

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self._logdir

    @property
    def closed(self) -> bool:
        """Whether it drops events, because it is closed."""
        return self._closed

    def add_event(self, event: Event | bytes) -> None:
        """Add an event, or a serialised one. A closed writer drops it, as TensorFlow's does.

        Raises:
            OpError: Events added before could not be written.
        """
        with self._lock:
            if self._closed:
                return
            if self._log is None:
                self._log = self._start()
            self._log.add(event)

    def _start(self) -> _EventLog:
        max_queue, flush_secs, suffix = self._options
        log = _EventLog(EventFile(self._logdir, suffix), max_queue, flush_secs)
        # The thread refers to the log, not to this writer: dropping the writer can then end the thread.
        self._finish = weakref.finalize(self, log.close_quietly)
        return log

    def flush(self) -> None:
        """Hand everything that was added to the file system. Raises as `add_event`."""
        with self._lock:
            if self._log is not None:
                self._log.flush()

    def close(self) -> None:
        """Write everything that was added, and end the thread. Closing twice does nothing. Raises as `add_event`."""
        with self._lock:
            self._closed = True
            log, self._log = self._log, None
            if log is not None:
                self._finish.detach()
                log.close()

    def reopen(self) -> None:
        """Make a closed writer take events again, in a new file. Does nothing for an open writer."""
        with self._lock:
            self._closed = False


class _EventLog:
    """An event file, and the thread that writes it."""

    def __init__(self, file: EventFile, max_queue: int, flush_secs: float) -> None:
        self._file = file
        self._flush_secs = flush_secs
        self._queue: queue.Queue[Any] = queue.Queue(max_queue)
        self._failure: OpError | None = None
        self._thread = threading.Thread(target=self._write, name="tfray event writer", daemon=True)
        self._thread.start()

    def add(self, event: Event | bytes) -> None:
        self._check()
        self._queue.put(event)

    def flush(self) -> None:
        self._check()
        done = threading.Event()
        self._queue.put(done)
        done.wait()
        self._check()

    def close(self) -> None:
        self._queue.put(_STOP)
        self._thread.join()
        self._check()

    def close_quietly(self) -> None:
        """Close without raising an error: used when the writer is gone and nobody could catch it."""
        self._queue.put(_STOP)
        self._thread.join()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        due: float | None = None
        """When what was written must be flushed; None if everything is."""
        while True:
            try:
                item = self._queue.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
            except queue.Empty:
                item = None
            is_event = isinstance(item, (Event, bytes))
            if is_event and due is None:
                due = time.monotonic() + self._flush_secs
            late = due is not None and time.monotonic() >= due
            try:
                # After a failure go on emptying the queue: otherwise a caller would wait for room for ever.
                if self._failure is None:
                    self._handle(item, flush=late or not is_event)
            except OpError as error:
                self._failure = error
            if late or not is_event:
                due = None
            if isinstance(item, threading.Event):
                item.set()
            if item is _STOP:
                return

    def _handle(self, item: Any, flush: bool) -> None:
        if isinstance(item, (Event, bytes)):
            self._file.write(item)
        if item is _STOP:
            self._file.close()
        elif flush:
            self._file.flush()


class FileWriter(files.Closing):
    """Writes summaries, graphs and what else TensorBoard shows to a new event file in a folder.

    It may be used from several threads, and in a ``with`` block, which closes it. A closed writer drops what is added,
    with a warning, until it is opened again.

    Args:
        logdir: The folder, also of a store that pyarrow knows (``s3://``); it is made when it is not there.
        graph: A graph to draw, such as ``sess.graph``; see `add_graph`. It is written as a meta graph as well.
        max_queue: How many events may wait to be written; adding one more waits.
        flush_secs: Seconds after which at the latest an event is handed to the file system.
        graph_def: A graph as a message, an older form of `graph`.
        filename_suffix: End of the file's name.
        session: Accepted for TensorFlow 1 programs: events are written by this process in any case.

    Raises:
        ArgumentError: `graph` is no graph.
        ValueError: There are both `graph` and `graph_def`.

    Example:
        >>> with tf.summary.FileWriter("/tmp/log", session.graph) as writer:
        ...     for step in range(100):
        ...         summary, _ = session.run([tf.summary.merge_all(), train_op])
        ...         writer.add_summary(summary, step)
    """

    @checked
    def __init__(
        self,
        logdir: files.PathLike,
        graph: Graph | GraphDef | None = None,
        max_queue: int = 10,
        flush_secs: NonNegative = 120,
        graph_def: GraphDef | None = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        self.event_writer = EventFileWriter(logdir, max_queue, flush_secs, filename_suffix)
        self._described: set[str] = set()
        """Tags whose metadata have been written."""
        self._profiled: set[str] = set()
        self._drawn_names: dict[str, str] = {}
        """Names in the graph, as it is drawn, of operations of branches and loops."""
        if graph is not None or graph_def is not None:
            drawn = self._draw(graph, None, graph_def)
            self._add(None, meta_graph_def=MetaGraphDef(graph_def=drawn).SerializeToString())

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self.event_writer.get_logdir()

    def add_summary(self, summary: Summary | bytes, global_step: Any = None) -> None:
        """Add values.

        Args:
            summary: What a summary operation gave, or a `tf.Summary`.
            global_step: Step to which they belong.
        """
        summary = as_summary(summary)
        if any(value.HasField("metadata") and value.tag in self._described for value in summary.value):
            given, summary = summary, Summary()
            summary.CopyFrom(given)  # leave the caller's as it is
        for value in summary.value:
            if value.HasField("metadata"):
                if value.tag in self._described:
                    value.ClearField("metadata")
                self._described.add(value.tag)
        self._add(global_step, summary=summary)

    def add_session_log(self, session_log: SessionLog, global_step: Any = None) -> None:
        """Add what happened to a session: that it started, stopped, or saved a checkpoint.

        Args:
            session_log: The `tf.SessionLog`.
            global_step: Number of the step to which it belongs.
        """
        self._add(global_step, session_log=session_log)

    def add_graph(
        self, graph: Graph | GraphDef | None = None, global_step: Any = None, graph_def: GraphDef | None = None
    ) -> None:
        """Add a graph for TensorBoard to draw.

        Args:
            graph: The graph, also as a message.
            global_step: Number of the step to which it belongs.
            graph_def: A graph as a message, an older form of `graph`.

        Raises:
            ArgumentError: There is neither, or it is no graph.
            ValueError: There are both.
        """
        self._draw(graph, global_step, graph_def)

    def _draw(self, graph: Graph | GraphDef | None, global_step: Any, graph_def: GraphDef | None) -> GraphDef:
        if graph is not None and graph_def is not None:
            raise ValueError("pass graph or graph_def, an older form of it, but not both")
        found = graph_def if graph is None else graph
        if not isinstance(found, (Graph, GraphDef)):
            raise ArgumentError(f"{found!r} is no graph: expected a tf.Graph, such as session.graph")
        if isinstance(found, Graph):
            write_plugin_assets(found, self.get_logdir())
        proto, self._drawn_names = draw_graph(found) if isinstance(found, Graph) else (found, {})
        self._add(global_step, graph_def=proto.SerializeToString())
        return proto

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Add the graph of a meta graph.

        Args:
            meta_graph_def: What `tf.train.export_meta_graph` returned.
            global_step: Number of the step to which it belongs.

        Raises:
            TypeError: It is no meta graph.
        """
        if not isinstance(meta_graph_def, MetaGraphDef):
            raise TypeError(f"{meta_graph_def!r} is no meta graph: expected a tf.MetaGraphDef")
        self._add(global_step, meta_graph_def=meta_graph_def.SerializeToString())

    def add_run_metadata(self, run_metadata: RunMetadata, tag: str, global_step: Any = None) -> None:
        """Add the metadata of a step: TensorBoard shows its memory and compute time in the graph, if a graph was added.

        Args:
            run_metadata: The `tf.RunMetadata`.
            tag: Its name, such as ``"step 100"``.
            global_step: Number of the step to which it belongs.

        Raises:
            ValueError: The tag has been used.
        """
        if tag in self._profiled:
            raise ValueError(f"there are run metadata with the tag {tag!r} already")
        self._profiled.add(tag)
        drawn = rename_operations(run_metadata, self._drawn_names)
        tagged = TaggedRunMetadata(tag=tag, run_metadata=drawn.SerializeToString())
        self._add(global_step, tagged_run_metadata=tagged)

    def add_event(self, event: Event) -> None:
        """Add an event as it is."""
        self._warn_if_closed()
        self.event_writer.add_event(event)

    def _add(self, global_step: Any, **what: Any) -> None:
        event = Event(wall_time=time.time(), **what)
        if global_step is not None:
            event.step = int(global_step)
        self.add_event(event)

    def _warn_if_closed(self) -> None:
        if self.event_writer.closed:
            folder = self.get_logdir()
            warnings.warn(f"the writer of events in {folder} is closed, what is added is lost: reopen it", stacklevel=4)

    def flush(self) -> None:
        """Hand everything that was added to the file system."""
        self._warn_if_closed()
        self.event_writer.flush()

    def close(self) -> None:
        """Write everything that was added, and end the thread that writes."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Take events again after `close`, in a new file."""
        self._described.clear()
        self._profiled.clear()
        self.event_writer.reopen()


class FileWriterCache:
    """One `FileWriter` for each folder, shared by all of the program."""

    _writers: ClassVar[dict[str, FileWriter]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    @classmethod
    def get(cls, logdir: files.PathLike) -> FileWriter:
        """The writer of a folder. Where there is none yet it is made, and writes the default graph first."""
        key = files.given_path(logdir, "logdir")
        with cls._lock:
            if key not in cls._writers:
                cls._writers[key] = FileWriter(key, get_default_graph())
            return cls._writers[key]

    @classmethod
    def clear(cls) -> None:
        """Close all writers and forget them."""
        with cls._lock:
            writers = list(cls._writers.values())
            cls._writers.clear()
        for writer in writers:
            writer.close()
