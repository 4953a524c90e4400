"""``tf.strings``: split, join, match, convert and hash strings. Use it to prepare text in a graph."""

from tfray.ops.strings.string_number_ops import as_string
from tfray.ops.strings.string_number_ops import string_to_hash_bucket as to_hash_bucket
from tfray.ops.strings.string_number_ops import string_to_hash_bucket_fast as to_hash_bucket_fast
from tfray.ops.strings.string_number_ops import string_to_hash_bucket_strong as to_hash_bucket_strong
from tfray.ops.strings.string_number_ops import string_to_number as to_number
from tfray.ops.strings.string_ops import regex_full_match, regex_replace, substr
from tfray.ops.strings.string_ops import string_format as format
from tfray.ops.strings.string_ops import string_join as join
from tfray.ops.strings.string_ops import string_length as length
from tfray.ops.strings.string_ops import string_lower as lower
from tfray.ops.strings.string_ops import string_strip as strip
from tfray.ops.strings.string_ops import string_upper as upper
from tfray.ops.strings.string_split_ops import ngrams, reduce_join, unsorted_segment_join
from tfray.ops.strings.string_split_ops import string_bytes_split as bytes_split
from tfray.ops.strings.string_split_ops import string_split_v2 as split
from tfray.ops.strings.unicode_ops import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_script,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
)

# fmt: off
__all__ = [
    "as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join", "regex_full_match",
    "regex_replace", "split", "strip", "substr", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong",
    "to_number", "unicode_decode", "unicode_decode_with_offsets", "unicode_encode", "unicode_script", "unicode_split",
    "unicode_split_with_offsets", "unicode_transcode", "unsorted_segment_join", "upper",
]
# fmt: on
