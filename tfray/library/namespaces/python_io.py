"""The names of ``tf.python_io``."""

# isort: skip_file
from tfray.formats.tfrecord import (
    TFRecordCompressionType as TFRecordCompressionType,
    TFRecordOptions as TFRecordOptions,
    TFRecordWriter as TFRecordWriter,
    tf_record_iterator as tf_record_iterator,
)
