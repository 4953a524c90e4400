"""The names of ``tf.summary``."""

# isort: skip_file
from tfray.formats.events import (
    Event as Event,
    SessionLog as SessionLog,
    Summary as Summary,
    SummaryDescription as SummaryDescription,
    TaggedRunMetadata as TaggedRunMetadata,
    summary_iterator as summary_iterator,
)
from tfray.library.inspect.event_writer import FileWriter as FileWriter, FileWriterCache as FileWriterCache
from tfray.library.inspect.summaries import (
    audio as audio,
    get_summary_description as get_summary_description,
    histogram as histogram,
    image as image,
    merge as merge,
    merge_all as merge_all,
    scalar as scalar,
    tensor_summary as tensor_summary,
    text as text,
)
