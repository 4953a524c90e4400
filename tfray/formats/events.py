"""Event files, as TensorBoard reads them: their messages, and the records in which they lie."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from tfray.errors import DataLossError
from tfray.formats import files
from tfray.formats.message import Field, Message
from tfray.formats.tensor_proto import TensorProto
from tfray.formats.tfrecord import TFRecordWriter, records_of

FILE_VERSION: Final = "brain.Event:2"


class HistogramProto(Message):
    """A histogram: ``bucket`` counts the values below the limit at the same place of ``bucket_limit``."""

    FIELDS = (
        Field(1, "min", "double"),
        Field(2, "max", "double"),
        Field(3, "num", "double"),
        Field(4, "sum", "double"),
        Field(5, "sum_squares", "double"),
        Field(6, "bucket_limit", "double", repeated=True),
        Field(7, "bucket", "double", repeated=True),
    )


class PluginData(Message):
    """Which plugin of TensorBoard shows a value, and what it needs to know."""

    FIELDS = (Field(1, "plugin_name", "string"), Field(2, "content", "bytes"))


class SummaryMetadata(Message):
    """How to show the values of a tag; written with the first of them."""

    PluginData: ClassVar[type[Message]] = PluginData

    FIELDS = (
        Field(1, "plugin_data", PluginData),
        Field(2, "display_name", "string"),
        Field(3, "summary_description", "string"),
        Field(4, "data_class", "enum"),
    )


class SummaryDescription(Message):
    """A hint of what a tensor's summary is."""

    FIELDS = (Field(1, "type_hint", "string"),)


class SummaryImage(Message):
    """An image, encoded; ``colorspace`` is the number of channels."""

    FIELDS = (
        Field(1, "height", "int32"),
        Field(2, "width", "int32"),
        Field(3, "colorspace", "int32"),
        Field(4, "encoded_image_string", "bytes"),
    )


class SummaryAudio(Message):
    """A sound, encoded."""

    FIELDS = (
        Field(1, "sample_rate", "float"),
        Field(2, "num_channels", "int64"),
        Field(3, "length_frames", "int64"),
        Field(4, "encoded_audio_string", "bytes"),
        Field(5, "content_type", "string"),
    )


class SummaryValue(Message):
    """One value under a ``tag``, in the field for its kind."""

    FIELDS = (
        Field(1, "tag", "string"),
        Field(2, "simple_value", "float", oneof="value"),
        Field(3, "obsolete_old_style_histogram", "bytes", oneof="value"),
        Field(4, "image", SummaryImage, oneof="value"),
        Field(5, "histo", HistogramProto, oneof="value"),
        Field(6, "audio", SummaryAudio, oneof="value"),
        Field(7, "node_name", "string"),
        Field(8, "tensor", TensorProto, oneof="value"),
        Field(9, "metadata", SummaryMetadata),
    )


class Summary(Message):
    """Values for TensorBoard: the list ``value``.

    Example:
        >>> summary = tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)])
        >>> writer.add_summary(summary, global_step=10)
    """

    Value: ClassVar[type[Message]] = SummaryValue
    Image: ClassVar[type[Message]] = SummaryImage
    Audio: ClassVar[type[Message]] = SummaryAudio

    FIELDS = (Field(1, "value", SummaryValue, repeated=True),)


class LogMessage(Message):
    """A message of a program, with its ``level``."""

    UNKNOWN: ClassVar[int] = 0
    DEBUGGING: ClassVar[int] = 10
    INFO: ClassVar[int] = 20
    WARN: ClassVar[int] = 30
    ERROR: ClassVar[int] = 40
    FATAL: ClassVar[int] = 50

    FIELDS = (Field(1, "level", "enum"), Field(2, "message", "string"))


class SessionLog(Message):
    """What happened to a session: its ``status``, one of the constants of this class."""

    STATUS_UNSPECIFIED: ClassVar[int] = 0
    START: ClassVar[int] = 1
    STOP: ClassVar[int] = 2
    CHECKPOINT: ClassVar[int] = 3

    FIELDS = (Field(1, "status", "enum"), Field(2, "checkpoint_path", "string"), Field(3, "msg", "string"))


class TaggedRunMetadata(Message):
    """A serialised `tf.RunMetadata` under a ``tag``."""

    FIELDS = (Field(1, "tag", "string"), Field(2, "run_metadata", "bytes"))


class SourceMetadata(Message):
    """What wrote an event file."""

    FIELDS = (Field(1, "writer", "string"),)


class Event(Message):
    """One record of an event file: ``wall_time`` in seconds since 1970, ``step``, and what happened."""

    FIELDS = (
        Field(1, "wall_time", "double"),
        Field(2, "step", "int64"),
        Field(3, "file_version", "string", oneof="what"),
        Field(4, "graph_def", "bytes", oneof="what"),
        Field(5, "summary", Summary, oneof="what"),
        Field(6, "log_message", LogMessage, oneof="what"),
        Field(7, "session_log", SessionLog, oneof="what"),
        Field(8, "tagged_run_metadata", TaggedRunMetadata, oneof="what"),
        Field(9, "meta_graph_def", "bytes", oneof="what"),
        Field(10, "source_metadata", SourceMetadata),
    )


class EventFile(files.Closing):
    """An event file being written.

    Args:
        folder: Where to; it is made when it is not there.
        suffix: End of the file's name.
        prefix: Its beginning.
    """

    def __init__(self, folder: files.PathLike, suffix: str = "", prefix: str = "events") -> None:
        folder = files.given_path(folder, "folder")
        files.make_folders(folder)
        self.path = _free_path(folder, suffix, prefix)
        self._records = TFRecordWriter(self.path)
        self.write(Event(wall_time=time.time(), file_version=FILE_VERSION))
        self.flush()

    def write(self, event: Event | bytes) -> None:
        """Add an event, or a serialised one."""
        self._records.write(event if isinstance(event, bytes) else event.SerializeToString())

    def flush(self) -> None:
        """Hand what was written to the file system."""
        self._records.flush()

    def close(self) -> None:
        """Finish the file."""
        self._records.close()


def _free_path(folder: str, suffix: str, prefix: str) -> str:
    """A path of the form that TensorBoard looks for, where no file is: another writer may have taken this second's."""
    start = f"{folder.rstrip('/') or '/'}/{prefix}.out.tfevents.{int(time.time()):010d}.{platform.node()}"
    path, number = f"{start}{suffix}", 0
    while files.exists(path):
        number += 1
        path = f"{start}.{os.getpid()}.{number}{suffix}"
    return path


def summary_iterator(path: files.PathLike) -> Iterator[Event]:
    """The events of an event file.

    Args:
        path: The file.

    Raises:
        NotFoundError: There is no such file.
        DataLossError: The file is damaged; the events before the damage are given first. A file that is still being
            written may seem damaged at its end.
    """
    for index, record in enumerate(records_of(path)):
        try:
            event = Event.FromString(record)
        except DataLossError as error:
            raise DataLossError(f"{files.as_path(path)}: record {index}: {error.message}") from error
        yield event


def as_summary(summary: Any) -> Summary:
    """A `Summary`, itself or its bytes. Raises `DataLossError` for other bytes."""
    if isinstance(summary, (bytes, bytearray, memoryview)):
        return Summary.FromString(bytes(summary))
    if not isinstance(summary, Summary):
        raise TypeError(f"{summary!r} is a {type(summary).__name__}, expected a tf.Summary or its bytes")
    return summary
