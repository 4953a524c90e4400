"""`tf.TFRecordReader` and the other readers, as programs use them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.formats.tfrecord import TFRecordOptions
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.queues import QueueBase
from tfray.ops.dataflow import reader_ops
from tfray.ops.dataflow.resource_operations import make_resource, use_resource


class Record(NamedTuple):
    """What `read` of a reader returns."""

    key: Tensor
    value: Tensor


class Records(NamedTuple):
    """What `read_up_to` of a reader returns."""

    keys: Tensor
    values: Tensor


class ReaderBase:
    """What all readers have in common: they turn work units, names of files mostly, into records.

    A reader takes its work units from a queue of strings, such as that of `tf.train.string_input_producer`.

    Args:
        reader_ref: Handle of the reader.
        supports_serialize: Whether `serialize_state` works.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = True) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The handle of the reader."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether the reader can tell where it is, and go back there."""
        return self._supports_serialize

    def read(self, queue: QueueBase | Tensor, name: str | None = None) -> Record:
        """The next record; waits for a work unit when the reader needs one.

        Args:
            queue: A queue of strings, or its handle.
            name: Name of the operation.

        Returns:
            Key and value, string scalars.

        Raises:
            OutOfRangeError: While running: the queue is closed and empty.
        """
        return Record(*use_resource(reader_ops.READER_READ, self._reader_ref, _handle(queue), name=name))

    def read_up_to(self, queue: QueueBase | Tensor, num_records: TensorLike, name: str | None = None) -> Records:
        """The next records, at least one and at most `num_records`; those of one work unit.

        Args:
            queue: A queue of strings, or its handle.
            num_records: Integer scalar.
            name: Name of the operation.

        Returns:
            Keys and values, string vectors.

        Raises:
            OutOfRangeError: While running: the queue is closed and empty.
        """
        inputs = _handle(queue), num_records
        return Records(*use_resource(reader_ops.READER_READ_UP_TO, self._reader_ref, *inputs, name=name))

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """Number of records given so far: an int64 scalar.

        Args:
            name: Name of the operation.
        """
        return use_resource(reader_ops.READER_NUM_RECORDS_PRODUCED, self._reader_ref, name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """Number of work units read to their end: an int64 scalar.

        Args:
            name: Name of the operation.
        """
        return use_resource(reader_ops.READER_NUM_WORK_UNITS_COMPLETED, self._reader_ref, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """Where the reader is: a string scalar for `restore_state`.

        Args:
            name: Name of the operation.
        """
        return use_resource(reader_ops.READER_SERIALIZE_STATE, self._reader_ref, name=name)

    def restore_state(self, state: TensorLike, name: str | None = None) -> Operation:
        """An operation that brings the reader to where one of its kind was.

        Args:
            state: What `serialize_state` gave.
            name: Name of the operation.

        Raises:
            ValueError: The state is no scalar.
            InvalidArgumentError: At run time, it is no state.
        """
        scalar = convert_to_tensor(state, dtypes.string)
        scalar.shape.assert_has_rank(0)
        return use_resource(reader_ops.READER_RESTORE_STATE, self._reader_ref, scalar, name=name)

    def reset(self, name: str | None = None) -> Operation:
        """An operation that brings the reader back to its beginning.

        Args:
            name: Name of the operation.
        """
        return use_resource(reader_ops.READER_RESET, self._reader_ref, name=name)


def _handle(queue: QueueBase | Tensor) -> Tensor:
    handle: Tensor = queue.queue_ref if isinstance(queue, QueueBase) else queue
    return handle


class TextLineReader(ReaderBase):
    """Gives the lines of text files, without their ends. Keys are ``file:line``, counted from 1.

    Args:
        skip_header_lines: Lines to leave out at the beginning of each file.
        name: Name of the reader's operation.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        lines = int(skip_header_lines or 0)
        super().__init__(make_resource(reader_ops.TEXT_LINE_READER, name, skip_header_lines=lines))


class FixedLengthRecordReader(ReaderBase):
    """Gives the records of files in which all have the same length. Keys are ``file:record``, counted from 0.

    Args:
        record_bytes: Length of a record.
        header_bytes: Bytes at the beginning of each file that belong to no record.
        footer_bytes: The same at its end.
        hop_bytes: Distance between the beginnings of records; None or 0 for their length.
        name: Name of the reader's operation.
        encoding: ``"ZLIB"`` or ``"GZIP"`` for compressed files.

    Raises:
        InvalidArgumentError: A length is negative, or `encoding` another.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        lengths: dict[str, Any] = {
            "header_bytes": header_bytes or 0,
            "footer_bytes": footer_bytes or 0,
            "hop_bytes": hop_bytes or 0,
        }
        if record_bytes < 1 or min(lengths.values()) < 0:
            raise InvalidArgumentError(
                f"record_bytes is {record_bytes} and must be positive; {lengths} must not be negative"
            )
        if encoding not in (None, "", "ZLIB", "GZIP"):
            raise InvalidArgumentError(f"encoding is {encoding!r}, expected '', 'ZLIB' or 'GZIP'")
        attrs = {"record_bytes": int(record_bytes), **lengths, "encoding": encoding or ""}
        super().__init__(make_resource(reader_ops.FIXED_LENGTH_RECORD_READER, name, **attrs))


class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files. Keys are ``file:offset``.

    Args:
        name: Name of the reader's operation.
        options: `tf.python_io.TFRecordOptions`, for compressed files.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(make_resource(reader_ops.TF_RECORD_READER, name, compression_type=compression))


class WholeFileReader(ReaderBase):
    """Gives the contents of files. Keys are their names.

    Args:
        name: Name of the reader's operation.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(make_resource(reader_ops.WHOLE_FILE_READER, name))


class IdentityReader(ReaderBase):
    """Gives the work units themselves, as keys and values.

    Args:
        name: Name of the reader's operation.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(make_resource(reader_ops.IDENTITY_READER, name))
