"""``tf.io``: read and write files, and decode what they hold: TFRecords, examples, CSV, raw bytes, base64."""

from tfray.formats.tensor_proto import make_ndarray, make_tensor_proto
from tfray.formats.tfrecord import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator
from tfray.library.input.filenames import match_filenames_once
from tfray.library.platform import gfile
from tfray.ops.strings.decoding_ops import decode_compressed, decode_csv, decode_raw, parse_tensor, serialize_tensor
from tfray.ops.strings.parsing_ops import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from tfray.ops.strings.string_ops import decode_base64, encode_base64
from tfray.ops.system.io_ops import matching_files, read_file, write_file

# fmt: off
__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "SparseFeature", "TFRecordCompressionType", "TFRecordOptions",
    "TFRecordWriter", "VarLenFeature", "decode_base64", "decode_compressed", "decode_csv", "decode_raw",
    "encode_base64", "gfile", "make_ndarray", "make_tensor_proto", "match_filenames_once", "matching_files",
    "parse_example", "parse_sequence_example", "parse_single_example", "parse_single_sequence_example", "parse_tensor",
    "read_file", "serialize_tensor", "tf_record_iterator", "write_file",
]
# fmt: on
