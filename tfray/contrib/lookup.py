"""``tf.contrib.lookup``: tables between strings and numbers. `tf.lookup` has the newer names."""

from tfray.library.input.lookup import (
    FastHashSpec,
    HasherSpec,
    HashTable,
    IdTableWithHashBuckets,
    InitializableLookupTableBase,
    KeyValueTensorInitializer,
    LookupInterface,
    MutableHashTable,
    StaticHashTable,
    StrongHashSpec,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
    index_table_from_file,
    index_table_from_tensor,
    index_to_string,
    index_to_string_table_from_file,
    index_to_string_table_from_tensor,
    string_to_index,
)
from tfray.library.input.lookup import index_table_from_file as string_to_index_table_from_file
from tfray.library.input.lookup import index_table_from_tensor as string_to_index_table_from_tensor
from tfray.library.input.lookup_experimental import DenseHashTable as MutableDenseHashTable

# fmt: off
__all__ = [
    "FastHashSpec", "HashTable", "HasherSpec", "IdTableWithHashBuckets", "InitializableLookupTableBase",
    "KeyValueTensorInitializer", "LookupInterface", "MutableDenseHashTable", "MutableHashTable", "StaticHashTable",
    "StrongHashSpec", "TableInitializerBase", "TextFileIdTableInitializer", "TextFileIndex", "TextFileInitializer",
    "TextFileStringTableInitializer", "index_table_from_file", "index_table_from_tensor", "index_to_string",
    "index_to_string_table_from_file", "index_to_string_table_from_tensor", "string_to_index",
    "string_to_index_table_from_file", "string_to_index_table_from_tensor",
]
# fmt: on
