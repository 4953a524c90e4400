"""Readers: records of files whose names a queue gives. `tf.TFRecordReader` and its like are built on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array, KernelContext, Reach, on_cpu
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.dataflow.resource_operations import register_handle, register_use
from tfray.ops.resources import reader_resource
from tfray.ops.resources.handles import named_resource
from tfray.ops.resources.queue_resource import Queue
from tfray.ops.resources.reader_resource import OpenWork, Reader, Record, TakenRecords


def _reader(ctx: KernelContext, kind: str, open_work: Callable[..., OpenWork], *arguments: Any) -> Reader:
    spec = (kind, *arguments)
    found = named_resource(ctx, lambda name: Reader(name, spec, open_work(*arguments)))
    if not isinstance(found, Reader) or found.spec != spec:
        raise InvalidArgumentError(
            f"{ctx.attr('shared_name') or ctx.op_name!r} is the shared name of something else already, not of a "
            f"{kind} with {', '.join(map(str, arguments)) or 'no arguments'}"
        )
    return found


# -- handles -------------------------------------------------------------------------------------------


def _text_line_reader_kernel(ctx: KernelContext) -> Reader:
    return _reader(ctx, "TextLineReader", reader_resource.lines, ctx.attr("skip_header_lines"))


TEXT_LINE_READER = register_handle(
    "TextLineReader",
    on_cpu(_text_line_reader_kernel),
    ("skip_header_lines", "container", "shared_name"),
    reach=Reach("files"),
)


def _fixed_length_record_reader_kernel(ctx: KernelContext) -> Reader:
    lengths = [ctx.attr(name) for name in ("record_bytes", "header_bytes", "footer_bytes", "hop_bytes")]
    encoding = ctx.attr("encoding")
    return _reader(ctx, "FixedLengthRecordReader", reader_resource.fixed_length_records, *lengths, encoding)


FIXED_LENGTH_RECORD_READER = register_handle(
    "FixedLengthRecordReader",
    on_cpu(_fixed_length_record_reader_kernel),
    ("record_bytes", "header_bytes", "footer_bytes", "hop_bytes", "encoding", "container", "shared_name"),
    reach=Reach("files"),
)


def _tf_record_reader_kernel(ctx: KernelContext) -> Reader:
    return _reader(ctx, "TFRecordReader", reader_resource.tf_records, ctx.attr("compression_type"))


TF_RECORD_READER = register_handle(
    "TFRecordReader",
    on_cpu(_tf_record_reader_kernel),
    ("compression_type", "container", "shared_name"),
    reach=Reach("files"),
)


def _whole_file_reader_kernel(ctx: KernelContext) -> Reader:
    return _reader(ctx, "WholeFileReader", lambda: reader_resource.whole_files)


WHOLE_FILE_READER = register_handle(
    "WholeFileReader", on_cpu(_whole_file_reader_kernel), ("container", "shared_name"), reach=Reach("files")
)


def _identity_reader_kernel(ctx: KernelContext) -> Reader:
    return _reader(ctx, "IdentityReader", lambda: reader_resource.identity)


IDENTITY_READER = register_handle("IdentityReader", on_cpu(_identity_reader_kernel), ("container", "shared_name"))


# -- reading -------------------------------------------------------------------------------------------


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


def _reader_read_up_to_kernel(ctx: KernelContext, reader: Reader, queue: Queue, num_records: Array) -> list[Array]:
    if num_records < 1:
        raise InvalidArgumentError(f"num_records is {int(num_records)}, expected at least 1")
    return _columns(ctx.step.complete(ctx.op_name, reader.read, queue, int(num_records)))


def _columns(records: Sequence[Record]) -> list[Array]:
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


def _reader_read_some_kernel(ctx: KernelContext, reader: Reader, queue: Queue, target: Queue) -> list[Any]:
    taken: TakenRecords = ctx.step.complete(ctx.op_name, reader.read_some, queue, target, ctx.attr("most"))
    ctx.step.held.add(taken)
    return [taken, np.int64(len(taken.elements)), *_columns(taken.elements)]


READER_READ_SOME = register_use(
    "ReaderReadSome",
    on_cpu(_reader_read_some_kernel),
    inputs=("queue_handle: resource", "target: resource"),
    outputs=("taken: variant", "count: int64", "keys: string", "values: string"),
    shape=lambda op: [TensorShape([]), TensorShape([]), TensorShape([None]), TensorShape([None])],
    attrs=("most",),
    waits=True,
)


# -- the rest ------------------------------------------------------------------------------------------


def _reader_num_records_produced_kernel(ctx: KernelContext, reader: Reader) -> np.int64:
    return np.int64(reader.records_produced)


READER_NUM_RECORDS_PRODUCED = register_use(
    "ReaderNumRecordsProduced", on_cpu(_reader_num_records_produced_kernel), outputs=("records_produced: int64",)
)


def _reader_num_work_units_completed_kernel(ctx: KernelContext, reader: Reader) -> np.int64:
    return np.int64(reader.works_completed)


READER_NUM_WORK_UNITS_COMPLETED = register_use(
    "ReaderNumWorkUnitsCompleted", on_cpu(_reader_num_work_units_completed_kernel), outputs=("units_completed: int64",)
)


def _reader_serialize_state_kernel(ctx: KernelContext, reader: Reader) -> Array:
    return np.array(reader.change(reader.state), object)


READER_SERIALIZE_STATE = register_use(
    "ReaderSerializeState", on_cpu(_reader_serialize_state_kernel), outputs=("state: string",)
)


def _reader_restore_state_kernel(ctx: KernelContext, reader: Reader, state: Array) -> None:
    reader.change(lambda: reader.restore(state.item()))


READER_RESTORE_STATE = register_use(
    "ReaderRestoreState", on_cpu(_reader_restore_state_kernel), inputs=("state: string",)
)


def _reader_reset_kernel(ctx: KernelContext, reader: Reader) -> None:
    reader.change(reader.reset)


READER_RESET = register_use("ReaderReset", on_cpu(_reader_reset_kernel))
