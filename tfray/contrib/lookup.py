"""The names of ``tf.contrib.lookup``."""

# isort: skip_file
from tfray.library.input.lookup import (
    FastHashSpec as FastHashSpec,
    HashTable as HashTable,
    HasherSpec as HasherSpec,
    IdTableWithHashBuckets as IdTableWithHashBuckets,
    KeyValueTensorInitializer as KeyValueTensorInitializer,
    LookupInterface as LookupInterface,
    MutableHashTable as MutableHashTable,
    StaticHashTable as StaticHashTable,
    StrongHashSpec as StrongHashSpec,
    TextFileIdTableInitializer as TextFileIdTableInitializer,
    TextFileIndex as TextFileIndex,
    TextFileInitializer as TextFileInitializer,
    TextFileStringTableInitializer as TextFileStringTableInitializer,
    index_table_from_file as index_table_from_file,
    index_table_from_tensor as index_table_from_tensor,
    index_to_string_table_from_file as index_to_string_table_from_file,
    index_to_string_table_from_tensor as index_to_string_table_from_tensor,
)
