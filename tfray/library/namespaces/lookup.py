"""``tf.lookup``: tables between strings and numbers."""

from tfray.library.input import lookup_experimental as experimental
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
    StaticVocabularyTable,
    StrongHashSpec,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
    index_table_from_file,
    index_table_from_tensor,
    index_to_string_table_from_file,
    index_to_string_table_from_tensor,
    initialize_all_tables,
    tables_initializer,
)

# fmt: off
__all__ = [
    "FastHashSpec", "HashTable", "HasherSpec", "IdTableWithHashBuckets", "InitializableLookupTableBase",
    "KeyValueTensorInitializer", "LookupInterface", "MutableHashTable", "StaticHashTable", "StaticVocabularyTable",
    "StrongHashSpec", "TableInitializerBase", "TextFileIdTableInitializer", "TextFileIndex", "TextFileInitializer",
    "TextFileStringTableInitializer", "experimental", "index_table_from_file", "index_table_from_tensor",
    "index_to_string_table_from_file", "index_to_string_table_from_tensor", "initialize_all_tables",
    "tables_initializer",
]
# fmt: on
