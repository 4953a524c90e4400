"""``tf.summary``: record scalars, histograms, images, audio and text, and write them to files for TensorBoard."""

from tfray.formats.events import Event, SessionLog, Summary, SummaryDescription, TaggedRunMetadata, summary_iterator
from tfray.library.inspect.event_writer import FileWriter, FileWriterCache
from tfray.library.inspect.summaries import (
    audio,
    get_summary_description,
    histogram,
    image,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)

# fmt: off
__all__ = [
    "Event", "FileWriter", "FileWriterCache", "SessionLog", "Summary", "SummaryDescription", "TaggedRunMetadata",
    "audio", "get_summary_description", "histogram", "image", "merge", "merge_all", "scalar", "summary_iterator",
    "tensor_summary", "text",
]
# fmt: on
