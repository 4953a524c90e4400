"""``tf.contrib.deprecated``: summaries under the names of TensorFlow 0.12."""

from tfray.library.inspect.summaries import (
    audio_summary,
    histogram_summary,
    image_summary,
    merge_all_summaries,
    merge_summary,
    scalar_summary,
)

# fmt: off
__all__ = [
    "audio_summary", "histogram_summary", "image_summary", "merge_all_summaries", "merge_summary", "scalar_summary",
]
# fmt: on
"""``tf.contrib.deprecated``: the functions that made summaries before ``tf.summary``."""


# fmt: off
__all__ = [
    "audio_summary", "histogram_summary", "image_summary", "merge_all_summaries", "merge_summary", "scalar_summary",
]
# fmt: on
