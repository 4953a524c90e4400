"""The names of ``tf.strings``."""

# isort: skip_file
from tfray.ops.strings.string_number_ops import (
    as_string as as_string,
    string_to_hash_bucket as to_hash_bucket,
    string_to_hash_bucket_fast as to_hash_bucket_fast,
    string_to_hash_bucket_strong as to_hash_bucket_strong,
    string_to_number as to_number,
)
from tfray.ops.strings.string_ops import (
    regex_full_match as regex_full_match,
    regex_replace as regex_replace,
    string_join as join,
    string_length as length,
    string_lower as lower,
    string_strip as strip,
    string_upper as upper,
    substr as substr,
    unicode_transcode as unicode_transcode,
)
from tfray.ops.strings.string_split_ops import (
    reduce_join as reduce_join,
    string_bytes_split as bytes_split,
    string_split_v2 as split,
)
