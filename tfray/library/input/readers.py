"""`tf.TFRecordReader` and the other readers, as programs use them."""

from __future__ import annotations

from typing import Any

from tfray.formats.tfrecord import TFRecordOptions
from tfray.framework.graph import Operation, Tensor
from tfray.framework.scopes import current_container
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.queues import QueueBase
from tfray.ops.dataflow import reader_ops


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

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record; waits for a work unit when the reader needs one.

        Args:
            queue: A queue of strings, or its handle.
            name: Name of the operation.

        Returns:
            Key and value, string scalars.

        Raises:
            OutOfRangeError: While running: the queue is closed and empty.
        """
        key, value = reader_ops.reader_read(self._reader_ref, _handle(queue), name)
        return key, value

    def read_up_to(self, queue: Any, num_records: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
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
        keys, values = reader_ops.reader_read_up_to(self._reader_ref, _handle(queue), num_records, name)
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """Number of records given so far: an int64 scalar.

        Args:
            name: Name of the operation.
        """
        return reader_ops.reader_num_records_produced(self._reader_ref, name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """Number of work units read to their end: an int64 scalar.

        Args:
            name: Name of the operation.
        """
        return reader_ops.reader_num_work_units_completed(self._reader_ref, name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """Where the reader is: a string scalar for `restore_state`.

        Args:
            name: Name of the operation.
        """
        return reader_ops.reader_serialize_state(self._reader_ref, name)

    def restore_state(self, state: TensorLike, name: str | None = None) -> Operation:
        """An operation that brings the reader to where one of its kind was.

        Args:
            state: What `serialize_state` gave.
            name: Name of the operation.
        """
        return reader_ops.reader_restore_state(self._reader_ref, state, name)

    def reset(self, name: str | None = None) -> Operation:
        """An operation that brings the reader back to its beginning.

        Args:
            name: Name of the operation.
        """
        return reader_ops.reader_reset(self._reader_ref, name)


def _handle(queue: Any) -> Tensor:
    handle: Tensor = queue.queue_ref if isinstance(queue, QueueBase) else queue
    return handle


class TextLineReader(ReaderBase):
    """Gives the lines of text files, without their ends. Keys are ``file:line``, counted from 1.

    Args:
        skip_header_lines: Lines to leave out at the beginning of each file.
        name: Name of the reader's operation.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        container = current_container()
        super().__init__(reader_ops.text_line_reader(skip_header_lines or 0, container, name=name))


class FixedLengthRecordReader(ReaderBase):
    """Gives the records of files in which all have the same length. Keys are ``file:record``, counted from 0.

    Args:
        record_bytes: Length of a record.
        header_bytes: Bytes at the beginning of each file that belong to no record.
        footer_bytes: The same at its end.
        hop_bytes: Distance between the beginnings of records; None or 0 for their length.
        name: Name of the reader's operation.
        encoding: ``"ZLIB"`` for compressed files.
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
        lengths = (record_bytes, header_bytes or 0, footer_bytes or 0, hop_bytes or 0)
        handle = reader_ops.fixed_length_record_reader(*lengths, encoding or "", current_container(), name=name)
        super().__init__(handle)


class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files. Keys are ``file:offset``.

    Args:
        name: Name of the reader's operation.
        options: `tf.python_io.TFRecordOptions`, for compressed files.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(reader_ops.tf_record_reader(compression, current_container(), name=name))


class WholeFileReader(ReaderBase):
    """Gives the contents of files. Keys are their names.

    Args:
        name: Name of the reader's operation.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(reader_ops.whole_file_reader(current_container(), name=name))


class IdentityReader(ReaderBase):
    """Gives the work units themselves, as keys and values.

    Args:
        name: Name of the reader's operation.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(reader_ops.identity_reader(current_container(), name=name))
