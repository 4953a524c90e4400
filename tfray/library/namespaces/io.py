"""The names of ``tf.io``."""

# isort: skip_file
from tfray.formats.tensor_proto import make_ndarray as make_ndarray, make_tensor_proto as make_tensor_proto
from tfray.formats.tfrecord import (
    TFRecordOptions as TFRecordOptions,
    TFRecordWriter as TFRecordWriter,
    tf_record_iterator as tf_record_iterator,
)
from tfray.formats.tfrecord import TFRecordCompressionType as TFRecordCompressionType
from tfray.library.platform import gfile as gfile
from tfray.library.input.filenames import match_filenames_once as match_filenames_once
from tfray.ops.strings.decoding_ops import (
    decode_compressed as decode_compressed,
    decode_csv as decode_csv,
    decode_raw as decode_raw,
    parse_tensor as parse_tensor,
    serialize_tensor as serialize_tensor,
)
from tfray.ops.strings.parsing_ops import (
    FixedLenFeature as FixedLenFeature,
    FixedLenSequenceFeature as FixedLenSequenceFeature,
    SparseFeature as SparseFeature,
    VarLenFeature as VarLenFeature,
    parse_example as parse_example,
    parse_sequence_example as parse_sequence_example,
    parse_single_example as parse_single_example,
    parse_single_sequence_example as parse_single_sequence_example,
)
from tfray.ops.strings.string_ops import decode_base64 as decode_base64, encode_base64 as encode_base64
from tfray.ops.system.io_ops import matching_files as matching_files, read_file as read_file, write_file as write_file
