"""``tf.nest``: nested structures of lists, tuples and dictionaries, flattened and put together again."""

from tfray.framework.nest import assert_same_structure, flatten, is_nested, map_structure, pack_sequence_as

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]
