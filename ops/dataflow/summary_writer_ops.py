"""Writers of event files as resources: steps write summaries themselves. `tf.contrib.summary` is built on them."""

from __future__ import annotations

import threading
import time

from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.formats.events import Event, EventFile, Summary
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, Reach, on_cpu
from tfray.framework.type_aliases import TensorLike
from tfray.ops.dataflow.resource_operations import make_resource, register_handle, register_use, use_resource
from tfray.ops.kernels.text import as_string, decoded
from tfray.ops.resources.handles import named_resource, require_same


class StepWriter:
    """An event file that steps write to. It has none before `open`.

    Args:
        name: Name of the resource.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._file: EventFile | None = None
        self._waiting = self._most_waiting = 0
        self._flushed_at = self._flush_s = 0.0

    def open(self, folder: str, most_waiting: int, flush_s: float, suffix: str) -> None:
        """Make the file. Does nothing if there is one."""
        with self._lock:
            if self._file is None:
                self._file = EventFile(folder, suffix)
                self._most_waiting, self._flush_s, self._flushed_at = most_waiting, flush_s, time.monotonic()

    def write(self, event: Event | bytes) -> None:
        """Add an event. Raises `NotFoundError` if there is no file."""
        with self._lock:
            if self._file is None:
                raise NotFoundError(
                    f"the writer of summaries {self._name} has no file: run tf.contrib.summary.initialize, or its "
                    "initializer, in this session first"
                )
            self._file.write(event)
            self._waiting += 1
            if self._waiting > self._most_waiting or time.monotonic() >= self._flushed_at + self._flush_s:
                self._flush()

    def flush(self) -> None:
        """Hand what was written to the file system."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if self._file is not None:
            self._file.flush()
        self._waiting, self._flushed_at = 0, time.monotonic()

    def release(self) -> None:
        """Finish the file. `open` makes another."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            file.close()


def summary_writer(shared_name: str = "", name: str | None = None) -> Tensor:
    """The handle of a writer, a resource scalar.

    Args:
        shared_name: Name under which all sessions on the device share it.
        name: Name of the operation.
    """
    handle: Tensor = make_resource(SUMMARY_WRITER, name, shared_name)
    return handle


def _summary_writer_kernel(ctx: KernelContext) -> StepWriter:
    found: StepWriter = named_resource(ctx, StepWriter)
    require_same(found, ctx, StepWriter)
    return found


SUMMARY_WRITER = register_handle("SummaryWriter", on_cpu(_summary_writer_kernel), ("container", "shared_name"))


def create_summary_file_writer(
    writer: Tensor,
    logdir: TensorLike,
    max_queue: TensorLike,
    flush_millis: TensorLike,
    filename_suffix: TensorLike,
    name: str | None = None,
) -> Operation:
    """Make the file of a writer, unless it has one.

    Args:
        writer: What `summary_writer` returned, a resource scalar.
        logdir: Its folder, a string scalar.
        max_queue: How many events may wait to be handed to the file system, an int32 scalar.
        flush_millis: Milliseconds after which they are, an int32 scalar.
        filename_suffix: End of the file's name, a string scalar.
        name: Name of the operation.
    """
    opened: Operation = use_resource(
        CREATE_SUMMARY_FILE_WRITER, writer, logdir, max_queue, flush_millis, filename_suffix, name=name
    )
    return opened


def _create_summary_file_writer_kernel(
    ctx: KernelContext, writer: StepWriter, logdir: Array, max_queue: Array, flush_millis: Array, suffix: Array
) -> tuple[()]:
    writer.open(decoded(as_string(logdir)), int(max_queue), int(flush_millis) / 1000, decoded(as_string(suffix)))
    return ()


CREATE_SUMMARY_FILE_WRITER = register_use(
    "CreateSummaryFileWriter",
    on_cpu(_create_summary_file_writer_kernel),
    ("logdir: string", "max_queue: int32", "flush_millis: int32", "filename_suffix: string"),
    reach=Reach("files", path=1),
)


def write_raw_proto_summary(writer: Tensor, step: TensorLike, tensor: TensorLike, name: str | None = None) -> Operation:
    """Write serialised summaries.

    Args:
        writer: What `summary_writer` returned, a resource scalar.
        step: The step that they are of, an int64 scalar.
        tensor: Strings of any shape, each a `tf.Summary`.
        name: Name of the operation.
    """
    written: Operation = use_resource(WRITE_RAW_PROTO_SUMMARY, writer, step, tensor, name=name)
    return written


def _write_raw_proto_summary_kernel(ctx: KernelContext, writer: StepWriter, step: Array, tensor: Array) -> tuple[()]:
    for serialised in [tensor] if isinstance(tensor, bytes) else tensor.ravel():
        summary = Summary.FromString(as_string(serialised))
        writer.write(Event(wall_time=time.time(), step=int(step), summary=summary))
    return ()


WRITE_RAW_PROTO_SUMMARY = register_use(
    "WriteRawProtoSummary", on_cpu(_write_raw_proto_summary_kernel), ("step: int64", "tensor: string")
)


def write_graph_summary(writer: Tensor, step: TensorLike, tensor: TensorLike, name: str | None = None) -> Operation:
    """Write a serialised `tf.GraphDef`, a string scalar, as that of a step, an int64 scalar."""
    written: Operation = use_resource(WRITE_GRAPH_SUMMARY, writer, step, tensor, name=name)
    return written


def _write_graph_summary_kernel(ctx: KernelContext, writer: StepWriter, step: Array, tensor: Array) -> tuple[()]:
    writer.write(Event(wall_time=time.time(), step=int(step), graph_def=as_string(tensor)))
    return ()


WRITE_GRAPH_SUMMARY = register_use(
    "WriteGraphSummary", on_cpu(_write_graph_summary_kernel), ("step: int64", "tensor: string")
)


def import_event(writer: Tensor, event: TensorLike, name: str | None = None) -> Operation:
    """Write a serialised `tf.Event`, a string scalar. Raises `InvalidArgumentError` in the step if it is none."""
    written: Operation = use_resource(IMPORT_EVENT, writer, event, name=name)
    return written


def _import_event_kernel(ctx: KernelContext, writer: StepWriter, event: Array) -> tuple[()]:
    serialised = as_string(event)
    try:
        Event.FromString(serialised)
    except ValueError as error:
        raise InvalidArgumentError(f"{ctx.op_name}: the event cannot be read: {error}") from error
    writer.write(serialised)
    return ()


IMPORT_EVENT = register_use("ImportEvent", on_cpu(_import_event_kernel), ("event: string",))


def flush_summary_writer(writer: Tensor, name: str | None = None) -> Operation:
    """Hand what was written to the file system.

    Args:
        writer: What `summary_writer` returned, a resource scalar.
        name: Name of the operation.
    """
    flushed: Operation = use_resource(FLUSH_SUMMARY_WRITER, writer, name=name)
    return flushed


def _flush_summary_writer_kernel(ctx: KernelContext, writer: StepWriter) -> tuple[()]:
    writer.flush()
    return ()


FLUSH_SUMMARY_WRITER = register_use("FlushSummaryWriter", on_cpu(_flush_summary_writer_kernel))


def close_summary_writer(writer: Tensor, name: str | None = None) -> Operation:
    """Finish the file of a writer.

    Args:
        writer: What `summary_writer` returned, a resource scalar.
        name: Name of the operation.
    """
    closed: Operation = use_resource(CLOSE_SUMMARY_WRITER, writer, name=name)
    return closed


def _close_summary_writer_kernel(ctx: KernelContext, writer: StepWriter) -> tuple[()]:
    writer.release()
    return ()


CLOSE_SUMMARY_WRITER = register_use("CloseSummaryWriter", on_cpu(_close_summary_writer_kernel))
