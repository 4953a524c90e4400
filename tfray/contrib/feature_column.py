"""The names of ``tf.contrib.feature_column``: columns of sequences."""

from tfray.library.layers.feature_column import (
    SequenceFeatures,
    concatenate_context_input,
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_input_layer,
    sequence_numeric_column,
)

# fmt: off
__all__ = [
    "SequenceFeatures", "concatenate_context_input", "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity", "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list", "sequence_input_layer", "sequence_numeric_column",
]
# fmt: on
