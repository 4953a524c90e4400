"""Readers: records of files whose names a queue gives. `tf.TFRecordReader` and its like are built on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, Reach, on_cpu
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.dataflow.queue_ops import shared_resource
from tfray.ops.dataflow.resource_definitions import register_handle, register_use
from tfray.ops.resources import reader_resource
from tfray.ops.resources.queue_resource import Queue
from tfray.ops.resources.reader_resource import OpenWork, Reader
from tfray.ops.state.state_ops import colocated_with


def _reader(ctx: KernelContext, kind: str, open_work: Callable[..., OpenWork], *arguments: Any) -> Reader:
    spec = (kind, *arguments)
    found = shared_resource(ctx, lambda name: Reader(name, spec, open_work(*arguments)))
    if not isinstance(found, Reader) or found.spec != spec:
        raise InvalidArgumentError(
            f"{ctx.attr('shared_name') or ctx.op_name!r} is the shared name of something else already, not of a "
            f"{kind} with {', '.join(map(str, arguments)) or 'no arguments'}"
        )
    return found


# -- handles -------------------------------------------------------------------------------------------


def text_line_reader(
    skip_header_lines: int = 0, container: str = "", shared_name: str = "", name: str | None = None
) -> Tensor:
    """The handle of a reader of lines.

    Args:
        skip_header_lines: Lines to leave out at the beginning of each file.
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    attrs = {"container": container, "shared_name": shared_name}
    return add_op(TEXT_LINE_READER, name=name, skip_header_lines=int(skip_header_lines), **attrs)


def _text_line_reader_kernel(ctx: KernelContext) -> Reader:
    return _reader(ctx, "TextLineReader", reader_resource.lines, ctx.attr("skip_header_lines"))


TEXT_LINE_READER = register_handle(
    "TextLineReader",
    on_cpu(_text_line_reader_kernel),
    ("skip_header_lines", "container", "shared_name"),
    reach=Reach("files"),
)


def fixed_length_record_reader(
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    hop_bytes: int = 0,
    encoding: str = "",
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a reader of records of equal length.

    Args:
        record_bytes: Length of a record.
        header_bytes: Bytes at the beginning of each file that belong to no record.
        footer_bytes: The same at its end.
        hop_bytes: Distance between the beginnings of records; 0 for their length.
        encoding: ``""``, or ``"ZLIB"`` for compressed files.
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: A length is negative, or `encoding` another.
    """
    lengths = {"header_bytes": header_bytes, "footer_bytes": footer_bytes, "hop_bytes": hop_bytes}
    if record_bytes < 1 or min(lengths.values()) < 0:
        raise InvalidArgumentError(
            f"record_bytes is {record_bytes} and must be positive; {lengths} must not be negative"
        )
    if encoding not in ("", "ZLIB"):
        raise InvalidArgumentError(f"encoding is {encoding!r}, expected '' or 'ZLIB'")
    attrs = {**lengths, "encoding": encoding, "container": container, "shared_name": shared_name}
    return add_op(FIXED_LENGTH_RECORD_READER, name=name, record_bytes=int(record_bytes), **attrs)


def _fixed_length_record_reader_kernel(ctx: KernelContext) -> Reader:
    lengths = [ctx.attr(name) for name in ("record_bytes", "header_bytes", "footer_bytes", "hop_bytes")]
    is_zlib = ctx.attr("encoding") == "ZLIB"
    return _reader(ctx, "FixedLengthRecordReader", reader_resource.fixed_length_records, *lengths, is_zlib)


FIXED_LENGTH_RECORD_READER = register_handle(
    "FixedLengthRecordReader",
    on_cpu(_fixed_length_record_reader_kernel),
    ("record_bytes", "header_bytes", "footer_bytes", "hop_bytes", "encoding", "container", "shared_name"),
    reach=Reach("files"),
)


def tf_record_reader(
    compression_type: str = "", container: str = "", shared_name: str = "", name: str | None = None
) -> Tensor:
    """The handle of a reader of TFRecord files.

    Args:
        compression_type: ``""``, ``"GZIP"`` or ``"ZLIB"``.
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    attrs = {"compression_type": compression_type, "container": container, "shared_name": shared_name}
    return add_op(TF_RECORD_READER, name=name, **attrs)


def _tf_record_reader_kernel(ctx: KernelContext) -> Reader:
    return _reader(ctx, "TFRecordReader", reader_resource.tf_records, ctx.attr("compression_type"))


TF_RECORD_READER = register_handle(
    "TFRecordReader",
    on_cpu(_tf_record_reader_kernel),
    ("compression_type", "container", "shared_name"),
    reach=Reach("files"),
)


def whole_file_reader(container: str = "", shared_name: str = "", name: str | None = None) -> Tensor:
    """The handle of a reader of files as a whole.

    Args:
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    return add_op(WHOLE_FILE_READER, name=name, container=container, shared_name=shared_name)


def _whole_file_reader_kernel(ctx: KernelContext) -> Reader:
    return _reader(ctx, "WholeFileReader", lambda: reader_resource.whole_files)


WHOLE_FILE_READER = register_handle(
    "WholeFileReader", on_cpu(_whole_file_reader_kernel), ("container", "shared_name"), reach=Reach("files")
)


def identity_reader(container: str = "", shared_name: str = "", name: str | None = None) -> Tensor:
    """The handle of a reader that gives what its queue gives, as key and value.

    Args:
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    return add_op(IDENTITY_READER, name=name, container=container, shared_name=shared_name)


def _identity_reader_kernel(ctx: KernelContext) -> Reader:
    return _reader(ctx, "IdentityReader", lambda: reader_resource.identity)


IDENTITY_READER = register_handle("IdentityReader", on_cpu(_identity_reader_kernel), ("container", "shared_name"))


# -- reading -------------------------------------------------------------------------------------------


def reader_read(handle: Tensor, queue_handle: Tensor, name: str | None = None) -> list[Tensor]:
    """The next record of a reader, which takes its next work unit from a queue when it needs one.

    Args:
        handle: The reader.
        queue_handle: A queue of strings.
        name: Name of the operation.

    Returns:
        Key and value of the record, string scalars.

    Raises:
        OutOfRangeError: While running: the queue is closed and empty.
    """
    with colocated_with(handle):
        tensors: list[Tensor] = add_op(READER_READ, handle, queue_handle, name=name)
        return tensors


def _reader_read_kernel(ctx: KernelContext, reader: Reader, queue: Queue) -> list[Array]:
    ((key, value),) = ctx.step.complete(ctx.op_name, reader.read, queue, None)
    return [np.array(key, object), np.array(value, object)]


READER_READ = register_use(
    "ReaderRead",
    on_cpu(_reader_read_kernel),
    inputs=("queue_handle: resource",),
    outputs=("key: string", "value: string"),
    shape=lambda op: [TensorShape([]), TensorShape([])],
    waits=True,
)


def reader_read_up_to(
    handle: Tensor, queue_handle: Tensor, num_records: TensorLike, name: str | None = None
) -> list[Tensor]:
    """Up to `num_records` next records of a reader, at least one: as many as there are left in its work unit.

    Args:
        handle: The reader.
        queue_handle: A queue of strings.
        num_records: int64 scalar.
        name: Name of the operation.

    Returns:
        Keys and values of the records, string vectors.

    Raises:
        OutOfRangeError: While running: the queue is closed and empty.
    """
    with colocated_with(handle):
        tensors: list[Tensor] = add_op(READER_READ_UP_TO, handle, queue_handle, num_records, name=name)
        return tensors


def _reader_read_up_to_kernel(ctx: KernelContext, reader: Reader, queue: Queue, num_records: Array) -> list[Array]:
    if num_records < 1:
        raise InvalidArgumentError(f"num_records is {int(num_records)}, expected at least 1")
    records = ctx.step.complete(ctx.op_name, reader.read, queue, int(num_records))
    keys, values = np.empty(len(records), object), np.empty(len(records), object)
    keys[:], values[:] = zip(*records, strict=True)
    return [keys, values]


READER_READ_UP_TO = register_use(
    "ReaderReadUpTo",
    on_cpu(_reader_read_up_to_kernel),
    inputs=("queue_handle: resource", "num_records: int64"),
    outputs=("keys: string", "values: string"),
    shape=lambda op: [TensorShape([None]), TensorShape([None])],
    waits=True,
)


# -- the rest ------------------------------------------------------------------------------------------


def reader_num_records_produced(handle: Tensor, name: str | None = None) -> Tensor:
    """Number of records that a reader has given: an int64 scalar.

    Args:
        handle: The reader.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(READER_NUM_RECORDS_PRODUCED, handle, name=name)


def _reader_num_records_produced_kernel(ctx: KernelContext, reader: Reader) -> np.int64:
    return np.int64(reader.records_produced)


READER_NUM_RECORDS_PRODUCED = register_use(
    "ReaderNumRecordsProduced", on_cpu(_reader_num_records_produced_kernel), outputs=("records_produced: int64",)
)


def reader_num_work_units_completed(handle: Tensor, name: str | None = None) -> Tensor:
    """Number of work units that a reader has read to their end: an int64 scalar.

    Args:
        handle: The reader.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(READER_NUM_WORK_UNITS_COMPLETED, handle, name=name)


def _reader_num_work_units_completed_kernel(ctx: KernelContext, reader: Reader) -> np.int64:
    return np.int64(reader.works_completed)


READER_NUM_WORK_UNITS_COMPLETED = register_use(
    "ReaderNumWorkUnitsCompleted", on_cpu(_reader_num_work_units_completed_kernel), outputs=("units_completed: int64",)
)


def reader_serialize_state(handle: Tensor, name: str | None = None) -> Tensor:
    """Where a reader is, as a string scalar for `reader_restore_state`.

    Args:
        handle: The reader.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(READER_SERIALIZE_STATE, handle, name=name)


def _reader_serialize_state_kernel(ctx: KernelContext, reader: Reader) -> Array:
    return np.array(reader.change(reader.state), object)


READER_SERIALIZE_STATE = register_use(
    "ReaderSerializeState", on_cpu(_reader_serialize_state_kernel), outputs=("state: string",)
)


def reader_restore_state(handle: Tensor, state: TensorLike, name: str | None = None) -> Operation:
    """Bring a reader to where one of its kind was.

    Args:
        handle: The reader.
        state: What `reader_serialize_state` gave, a string scalar.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: `state` is something else.
    """
    with colocated_with(handle):
        return add_op(READER_RESTORE_STATE, handle, state, name=name)


def _reader_restore_state_kernel(ctx: KernelContext, reader: Reader, state: Array) -> None:
    reader.change(lambda: reader.restore(state.item()))


READER_RESTORE_STATE = register_use(
    "ReaderRestoreState", on_cpu(_reader_restore_state_kernel), inputs=("state: string",)
)


def reader_reset(handle: Tensor, name: str | None = None) -> Operation:
    """Bring a reader back to its beginning; what it has taken from queues is gone.

    Args:
        handle: The reader.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(READER_RESET, handle, name=name)


def _reader_reset_kernel(ctx: KernelContext, reader: Reader) -> None:
    reader.change(reader.reset)


READER_RESET = register_use("ReaderReset", on_cpu(_reader_reset_kernel))
