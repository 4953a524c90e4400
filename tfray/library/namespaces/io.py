"""``tf.io``: read and write files, and decode what they hold: TFRecords, examples, CSV, raw bytes, base64."""

from __future__ import annotations

from typing import Any

from tfray.formats.tensor_proto import make_ndarray, make_tensor_proto
from tfray.formats.tfrecord import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator
from tfray.library.input.filenames import match_filenames_once
from tfray.library.input.message_fields import decode_proto, encode_proto
from tfray.library.input.queues import PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue
from tfray.library.namespaces.image import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    extract_jpeg_shape,
    is_jpeg,
)
from tfray.library.platform import gfile
from tfray.library.platform.graph_files import write_graph
from tfray.ops.sparse.sparse_transport_ops import deserialize_many_sparse, serialize_many_sparse, serialize_sparse
from tfray.ops.strings.decoding_ops import (
    decode_compressed,
    decode_csv,
    decode_json_example,
    decode_raw,
    parse_tensor,
    serialize_tensor,
)
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

_NOT_HERE = {
    "decode_proto": "tf.parse_example for examples, or tf.py_func with the message's class",
    "encode_proto": "tf.py_func with the message's class",
}
"""Names of TensorFlow 1.15 that do not exist here, and what to use instead."""


def __getattr__(name: str) -> Any:
    if name in _NOT_HERE:
        raise AttributeError(f"tf.io.{name} does not exist in tfray: use {_NOT_HERE[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# fmt: off
__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "PaddingFIFOQueue", "PriorityQueue", "QueueBase",
    "RandomShuffleQueue", "SparseFeature", "TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter",
    "VarLenFeature", "decode_and_crop_jpeg", "decode_base64", "decode_bmp", "decode_compressed", "decode_csv",
    "decode_gif", "decode_image", "decode_jpeg", "decode_json_example", "decode_png", "decode_proto", "decode_raw",
    "deserialize_many_sparse", "encode_base64", "encode_jpeg", "encode_proto", "extract_jpeg_shape", "gfile", "is_jpeg",
    "make_ndarray", "make_tensor_proto", "match_filenames_once", "matching_files", "parse_example",
    "parse_sequence_example", "parse_single_example", "parse_single_sequence_example", "parse_tensor", "read_file",
    "serialize_many_sparse", "serialize_sparse", "serialize_tensor", "tf_record_iterator", "write_file", "write_graph",
]
# fmt: on
