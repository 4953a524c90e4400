"""``tf.python_io``: read and write TFRecord files from Python, outside a graph. In graphs use `tf.data`."""

from tfray.formats.tfrecord import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]
