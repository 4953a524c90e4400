"""The names of ``tf.lookup`` and ``tf.contrib.lookup``: tables between strings and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.region import outermost
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.dataflow import lookup_ops
from tfray.ops.dataflow.resource_operations import use_resource
from tfray.ops.math import math_ops
from tfray.ops.strings import string_number_ops

# fmt: off
__all__ = [
    "FastHashSpec", "HashTable", "HasherSpec", "IdTableWithHashBuckets", "InitializableLookupTableBase",
    "KeyValueTensorInitializer", "LookupInterface", "MutableHashTable", "StaticHashTable", "StaticVocabularyTable",
    "StrongHashSpec", "TableInitializerBase", "TextFileIdTableInitializer", "TextFileIndex", "TextFileInitializer",
    "TextFileStringTableInitializer", "index_table_from_file", "index_table_from_tensor",
    "index_to_string_table_from_file", "index_to_string_table_from_tensor", "initialize_all_tables",
    "tables_initializer",
]
# fmt: on


# -- contents ------------------------------------------------------------------------------------------


class TextFileIndex:
    """What to take from a line of a text file in place of a column: the whole line, or its number."""

    WHOLE_LINE: ClassVar[int] = lookup_ops.WHOLE_LINE
    LINE_NUMBER: ClassVar[int] = lookup_ops.LINE_NUMBER


class TableInitializerBase:
    """Base of the initializers, which give a table its contents.

    Attributes:
        key_dtype: Dtype of the keys.
        value_dtype: Dtype of the values.
    """

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike) -> None:
        self.key_dtype = as_dtype(key_dtype)
        self.value_dtype = as_dtype(value_dtype)

    def shared_name(self) -> str:
        """Name of the table on its device; empty for that of its operation."""
        return ""

    def initialize(self, table: Any) -> Operation:
        """An operation that fills a table."""
        raise TypeError(f"{type(self).__name__} does not say how to fill {table!r}: define initialize")


class KeyValueTensorInitializer(TableInitializerBase):
    """The contents of a table as two tensors.

    Args:
        keys: Shape ``[n]``.
        values: Shape ``[n]``.
        key_dtype: Dtype of the keys; that of `keys` when None.
        value_dtype: Dtype of the values; that of `values` when None.
        name: Name scope of the operations.
    """

    def __init__(
        self,
        keys: TensorLike,
        values: TensorLike,
        key_dtype: DTypeLike | None = None,
        value_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        self._name = name or "key_value_init"
        with outermost() as graph, graph.name_scope(self._name):
            self._keys = convert_to_tensor(keys, key_dtype, "keys")
            self._values = convert_to_tensor(values, value_dtype, "values")
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: Any) -> Operation:
        """An operation that fills a table."""
        inputs = self._keys, self._values
        return use_resource(lookup_ops.INITIALIZE_TABLE, table.resource_handle, *inputs, name=self._name)


class TextFileInitializer(TableInitializerBase):
    r"""The contents of a table as a text file, an entry a line.

    Args:
        filename: Path of the file, or a string scalar.
        key_dtype: Dtype of the keys.
        key_index: Number of the column that holds the key, or one of `TextFileIndex`.
        value_dtype: Dtype of the values.
        value_index: The same for the value.
        vocab_size: How many lines to read; all when None.
        delimiter: Text between two columns.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: `filename` is empty, or a column and its dtype do not go together.
    """

    def __init__(
        self,
        filename: TensorLike,
        key_dtype: DTypeLike,
        key_index: int,
        value_dtype: DTypeLike,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        if not isinstance(filename, Tensor) and not filename:
            raise InvalidArgumentError("TextFileInitializer: filename is empty")
        for index, dtype, what in ((key_index, self.key_dtype, "key"), (value_index, self.value_dtype, "value")):
            if index < TextFileIndex.WHOLE_LINE:
                raise InvalidArgumentError(f"{what}_index is {index}, expected a column or one of TextFileIndex")
            if index == TextFileIndex.LINE_NUMBER and dtype is not dtypes.int64:
                raise InvalidArgumentError(f"line numbers are int64, not {dtype.name}: change {what}_dtype")
        self._filename, self._name = filename, name or "text_file_init"
        self._indices = (key_index, value_index)
        self._vocab_size, self._delimiter = vocab_size, delimiter

    def shared_name(self) -> str:
        """The same for equal contents, so that tables share them."""
        if isinstance(self._filename, Tensor):
            return ""
        size = -1 if self._vocab_size is None else self._vocab_size
        return f"hash_table_{self._filename}_{size}_{self._indices[0]}_{self._indices[1]}"

    def initialize(self, table: Any) -> Operation:
        """An operation that fills a table."""
        graph = get_default_graph()
        filename = convert_to_tensor(self._filename, dtypes.string, "asset_filepath")
        if filename.op.type == "Const":  # a saved model takes the file along
            graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        key_index, value_index = self._indices
        return use_resource(
            lookup_ops.INITIALIZE_TABLE_FROM_TEXT_FILE,
            table.resource_handle,
            filename,
            name=self._name,
            key_index=key_index,
            value_index=value_index,
            vocab_size=-1 if self._vocab_size is None else self._vocab_size,
            delimiter=self._delimiter,
        )


class TextFileStringTableInitializer(TextFileInitializer):
    """Line numbers to lines of a text file."""

    def __init__(
        self,
        filename: TensorLike,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        super().__init__(
            filename,
            dtypes.int64,
            key_index=key_column_index,
            value_dtype=dtypes.string,
            value_index=value_column_index,
            vocab_size=vocab_size,
            delimiter=delimiter,
            name=name,
        )


class TextFileIdTableInitializer(TextFileInitializer):
    """Lines of a text file to their numbers."""

    def __init__(
        self,
        filename: TensorLike,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        key_dtype: DTypeLike = dtypes.string,
    ) -> None:
        super().__init__(
            filename,
            key_dtype,
            key_index=key_column_index,
            value_dtype=dtypes.int64,
            value_index=value_column_index,
            vocab_size=vocab_size,
            delimiter=delimiter,
            name=name,
        )


# -- tables --------------------------------------------------------------------------------------------


class LookupInterface:
    """Base of tables.

    Attributes:
        key_dtype: Dtype of the keys.
        value_dtype: Dtype of the values.
        key_shape: Shape of a key.
        name: The table's name.
    """

    key_shape = TensorShape([])

    def __init__(self, key_dtype: DType, value_dtype: DType, name: str) -> None:
        self.key_dtype, self.value_dtype, self.name = key_dtype, value_dtype, name

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """The values of keys: a tensor, or a `SparseTensor` of the same positions for one."""
        with get_default_graph().name_scope(name or f"{self.name}_Lookup"):
            if isinstance(keys, SparseTensor):
                return SparseTensor(keys.indices, self._find(keys.values), keys.dense_shape)
            return self._find(convert_to_tensor(keys, None if isinstance(keys, Tensor) else self._literal_dtype()))

    def _literal_dtype(self) -> DType:
        """Dtype of keys that are given as Python values."""
        return self.key_dtype

    def _find(self, keys: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not say how to look up {keys!r}: define _find")

    def _check_keys(self, keys: Tensor) -> Tensor:
        if keys.dtype is not self.key_dtype:
            raise ArgumentError(f"table {self.name!r}: the keys are {keys.dtype.name}, expected {self.key_dtype.name}")
        return keys


class InitializableLookupTableBase(LookupInterface):
    """A table that is filled once, by `tf.tables_initializer`.

    Args:
        default_value: The value of keys that are not there.
        initializer: What gives it its contents.
        shared_name: Name of the table on its device.
        name: Name of the operation.
    """

    def __init__(
        self,
        default_value: Any,
        initializer: TableInitializerBase,
        shared_name: str | None = None,
        name: str = "hash_table",
    ) -> None:
        # Where a branch or a loop makes a table, all runs of it have the one that `tables_initializer` fills.
        with outermost() as graph, graph.control_dependencies(None):
            handle = lookup_ops.hash_table(
                initializer.key_dtype,
                initializer.value_dtype,
                shared_name or initializer.shared_name(),
                name=name,
            )
            super().__init__(initializer.key_dtype, initializer.value_dtype, handle.op.name.rpartition("/")[2])
            self.resource_handle = handle
            with graph.name_scope(f"{self.name}_init"):
                self._default = convert_to_tensor(default_value, self.value_dtype, "Const")
                self.initializer: Operation = initializer.initialize(self)
            graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, self.initializer)

    @property
    def init(self) -> Operation:
        """The operation that fills the table."""
        return self.initializer

    @property
    def table_ref(self) -> Tensor:
        """The older name of `resource_handle`."""
        return self.resource_handle

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not there."""
        return self._default

    def size(self, name: str | None = None) -> Tensor:
        """How many entries there are: an int64 scalar."""
        return use_resource(lookup_ops.LOOKUP_TABLE_SIZE, self.resource_handle, name=name or f"{self.name}_Size")

    def _find(self, keys: Tensor) -> Tensor:
        self._default.shape.assert_has_rank(0)
        inputs = self._check_keys(keys), self._default
        return use_resource(lookup_ops.LOOKUP_TABLE_FIND, self.resource_handle, *inputs)


class StaticHashTable(InitializableLookupTableBase):
    """A table that is filled once.

    Args:
        initializer: `KeyValueTensorInitializer`, `TextFileInitializer` or one of its kind.
        default_value: The value of keys that are not there.
        name: Name of the operation.
    """

    _shared_name: str | None = None

    def __init__(
        self,
        initializer: TableInitializerBase,
        default_value: Any,
        name: str | None = None,
    ) -> None:
        super().__init__(default_value, initializer, self._shared_name, name or "hash_table")

    def export(self, name: str | None = None) -> list[Tensor]:
        """All keys and all values."""
        return _exported(self, TensorShape([]), name)


class HashTable(StaticHashTable):
    """A `StaticHashTable` that may share its entries.

    Args:
        initializer: As for `StaticHashTable`.
        default_value: The value of keys that are not there.
        shared_name: Name of the table on its device; tables of one name are one table.
        name: Name of the operation.
    """

    def __init__(
        self,
        initializer: TableInitializerBase,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        self._shared_name = shared_name
        super().__init__(initializer, default_value, name)


def _exported(table: StaticHashTable | MutableHashTable, value_shape: TensorShape, name: str | None) -> list[Tensor]:
    attrs = {"Tkeys": table.key_dtype, "Tvalues": table.value_dtype, "value_shape": value_shape}
    attrs["key_shape"] = table.key_shape
    found: list[Tensor] = use_resource(lookup_ops.LOOKUP_TABLE_EXPORT, table.resource_handle, name=name, **attrs)
    return found


class MutableHashTable(LookupInterface):
    """A table to which entries are added, and from which they are taken, while it is used.

    Args:
        key_dtype: ``string``, ``int64`` or ``int32``.
        value_dtype: Dtype of the values.
        default_value: The value of keys that are not there; its shape is that of all values.
        shared_name: Name of the table on its device.
        name: Name of the operation.
        checkpoint: Whether a Saver without ``var_list`` saves the entries.

    Attributes:
        saveable: The entries, for the ``var_list`` of a Saver; a `Checkpoint` that has the table finds them.

    Raises:
        InvalidArgumentError: `default_value` is neither a scalar nor a vector.
    """

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        with outermost() as graph, graph.control_dependencies(None):
            self._default = convert_to_tensor(default_value, as_dtype(value_dtype))
            self.resource_handle = self._made(as_dtype(key_dtype), shared_name or "", name)
        super().__init__(as_dtype(key_dtype), as_dtype(value_dtype), self.resource_handle.op.name.rpartition("/")[2])
        self.saveable = SaveableResource(self.resource_handle.op.name, self.resource_handle)
        if checkpoint:
            graph.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self.saveable)

    def _made(self, key_dtype: DType, shared_name: str, name: str) -> Tensor:
        """The handle of the table."""
        if (self._default.shape.rank or 0) > 1:
            raise InvalidArgumentError(f"{name}: the default value must be a scalar or a vector, not {self._default!r}")
        return lookup_ops.hash_table(
            key_dtype, self._default.dtype, shared_name, self._default.shape, is_mutable=True, name=name
        )

    def size(self, name: str | None = None) -> Tensor:
        """How many entries there are: an int64 scalar."""
        return use_resource(lookup_ops.LOOKUP_TABLE_SIZE, self.resource_handle, name=name)

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """An operation that adds entries, or changes them."""
        tensor = self._check_keys(convert_to_tensor(keys, None if isinstance(keys, Tensor) else self.key_dtype))
        inputs = tensor, convert_to_tensor(values, self.value_dtype)
        return use_resource(lookup_ops.LOOKUP_TABLE_INSERT, self.resource_handle, *inputs, name=name)

    def remove(self, keys: TensorLike, name: str | None = None) -> Operation:
        """An operation that takes entries out."""
        tensor = self._check_keys(convert_to_tensor(keys, None if isinstance(keys, Tensor) else self.key_dtype))
        return use_resource(lookup_ops.LOOKUP_TABLE_REMOVE, self.resource_handle, tensor, name=name)

    def export(self, name: str | None = None) -> list[Tensor]:
        """All keys and all values."""
        return _exported(self, self._default.shape, name)

    def _find(self, keys: Tensor) -> Tensor:
        inputs = self._check_keys(keys), self._default
        key_rank = self.key_shape.rank
        return use_resource(lookup_ops.LOOKUP_TABLE_FIND, self.resource_handle, *inputs, key_rank=key_rank)


# -- words that are in no vocabulary -------------------------------------------------------------------


class HasherSpec:
    """How words that are in no vocabulary are spread over buckets.

    Attributes:
        hasher: ``fasthash``, ``stronghash`` or ``legacy``.
        key: Two numbers for ``stronghash``.
    """

    def __init__(self, hasher: str, key: Sequence[int] | None) -> None:
        self.hasher = hasher
        self.key = key

    def buckets(self, words: Tensor, count: int) -> Tensor:
        """A bucket for each word, int64.

        Raises:
            InvalidArgumentError: `hasher` is another.
        """
        if self.hasher not in ("fasthash", "stronghash", "legacy"):
            raise InvalidArgumentError(f"there is no hasher {self.hasher!r}, but fasthash, stronghash and legacy")
        if self.hasher == "stronghash":
            return string_number_ops.string_to_hash_bucket_strong(words, count, self.key or (0, 0))
        if self.hasher == "legacy":
            return string_number_ops.string_to_hash_bucket(words, count)
        return string_number_ops.string_to_hash_bucket_fast(words, count)


FastHashSpec = HasherSpec("fasthash", None)
"""By `tf.string_to_hash_bucket_fast`."""


class StrongHashSpec(HasherSpec):
    """By `tf.string_to_hash_bucket_strong` under a key of two numbers."""

    def __init__(self, key: Sequence[int]) -> None:
        if len(key) != 2:
            raise InvalidArgumentError(f"StrongHashSpec: key has {len(key)} numbers, expected two")
        super().__init__("stronghash", [int(part) for part in key])


class IdTableWithHashBuckets(LookupInterface):
    """Numbers for the keys of a table, and further numbers for all other keys, by their hash.

    Args:
        table: The table from keys to int64; None when there is none.
        num_oov_buckets: How many numbers there are for other keys.
        hasher_spec: How they are chosen.
        name: Name of the table.
        key_dtype: Dtype of the keys; that of `table` when None. Integers are hashed as text.
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: DTypeLike | None = None,
    ) -> None:
        if table is None and num_oov_buckets <= 0:
            raise InvalidArgumentError("a table without keys and without buckets has no numbers to give")
        if table is not None and table.value_dtype is not dtypes.int64:
            raise TypeError(f"table {table.name!r} has values of {table.value_dtype.name}, expected int64")
        dtype = as_dtype(key_dtype) if key_dtype is not None else dtypes.string if table is None else table.key_dtype
        if not (dtype is dtypes.string or dtype.is_integer):
            raise TypeError(f"the keys are {dtype.name}, expected string or integers")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec is {hasher_spec!r}, expected a HasherSpec")
        super().__init__(dtype, dtypes.int64, name or "hash_bucket")
        self._table, self._buckets, self._hasher = table, num_oov_buckets, hasher_spec

    @property
    def init(self) -> Operation:
        """The operation that fills the table behind this one."""
        return self.initializer

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table behind this one."""
        return group(name="init") if self._table is None else self._table.initializer

    @property
    def resource_handle(self) -> Tensor | None:
        """The handle of the table behind this one."""
        return None if self._table is None else self._table.resource_handle

    @property
    def table_ref(self) -> Tensor | None:
        """The older name of `resource_handle`."""
        return self.resource_handle

    def size(self, name: str | None = None) -> Tensor:
        """How many numbers there are: an int64 scalar."""
        buckets = convert_to_tensor(np.int64(self._buckets))
        return buckets if self._table is None else math_ops.add(self._table.size(), buckets, name=name)

    def _find(self, keys: Tensor) -> Tensor:
        self._check_keys(keys)
        if self._table is None:
            return self._hasher.buckets(_as_words(keys), self._buckets)
        table_keys = array_ops.cast(keys, self._table.key_dtype) if keys.dtype.is_integer else keys
        ids = self._table.lookup(table_keys)
        if not self._buckets:
            return ids
        others = math_ops.add(self._hasher.buckets(_as_words(keys), self._buckets), self._table.size())
        return array_ops.where(math_ops.not_equal(ids, self._table.default_value), ids, others)


def _as_words(keys: Tensor) -> Tensor:
    return keys if keys.dtype is dtypes.string else string_number_ops.as_string(keys)


class StaticVocabularyTable(IdTableWithHashBuckets):
    """Numbers for the keys of a vocabulary, and for all other keys.

    Args:
        initializer: Keys to numbers from 0 on; None when there are none.
        num_oov_buckets: How many numbers there are for other keys, at least one.
        lookup_key_dtype: Dtype of the keys that are looked up.
        name: Name of the table.
    """

    def __init__(
        self,
        initializer: TableInitializerBase | None,
        num_oov_buckets: int,
        lookup_key_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets <= 0:
            raise InvalidArgumentError(f"num_oov_buckets is {num_oov_buckets}, expected at least one")
        table = None if initializer is None else HashTable(initializer, -1)
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)


# -- what programs call --------------------------------------------------------------------------------


def index_table_from_file(
    vocabulary_file: TensorLike,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: DTypeLike = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """A table from words to their numbers in a vocabulary file with a word in each line.

    Args:
        vocabulary_file: Path of the file, or a string scalar.
        num_oov_buckets: How many numbers follow for words that are not in it; 0 gives them `default_value`.
        vocab_size: How many lines to read; all when None.
        default_value: The number of words that are not in it.
        hasher_spec: How the further numbers are chosen.
        key_dtype: Dtype of the words: ``string``, or an integer one.
        name: Name of the table.
        key_column_index: Number of the column with the word.
        value_column_index: Number of the column with the number.
        delimiter: Text between two columns.
    """
    _check_index_table(vocabulary_file, "vocabulary_file", num_oov_buckets, vocab_size)
    dtype = as_dtype(key_dtype)
    initializer = TextFileIdTableInitializer(
        vocabulary_file,
        key_column_index,
        value_column_index,
        vocab_size,
        delimiter,
        key_dtype=dtypes.int64 if dtype.is_integer else dtype,
    )
    return _index_table(initializer, num_oov_buckets, default_value, hasher_spec, dtype, name)


def index_table_from_tensor(
    vocabulary_list: TensorLike | None = None,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: DTypeLike = dtypes.string,
    name: str | None = None,
    mapping: TensorLike | None = None,
) -> Any:
    """A table from words to their numbers in a list. `mapping` is the older name of the list; else see
    `index_table_from_file`."""
    words = mapping if vocabulary_list is None else vocabulary_list
    _check_index_table(words, "vocabulary_list", num_oov_buckets)
    wanted = as_dtype(dtype)
    keys = convert_to_tensor(words) if not isinstance(words, Tensor) else words
    if keys.dtype.is_integer != wanted.is_integer:
        raise ArgumentError(f"the vocabulary is {keys.dtype.name}, expected {wanted.name}")
    if keys.dtype.is_integer:
        keys = array_ops.cast(keys, dtypes.int64)
    count = array_ops.size(keys, out_type=dtypes.int64)
    initializer = KeyValueTensorInitializer(keys, array_ops.range(count), name="table_init")
    return _index_table(initializer, num_oov_buckets, default_value, hasher_spec, wanted, name)


def _check_index_table(
    vocabulary: TensorLike | None, what: str, num_oov_buckets: int = 0, vocab_size: int | None = None
) -> None:
    if vocabulary is None or (isinstance(vocabulary, str) and not vocabulary):
        raise InvalidArgumentError(f"{what} is {vocabulary!r}: which words are there?")
    if num_oov_buckets < 0:
        raise InvalidArgumentError(f"num_oov_buckets is {num_oov_buckets}, expected 0 or more")
    if vocab_size is not None and vocab_size < 1:
        raise InvalidArgumentError(f"vocab_size is {vocab_size}, expected at least 1")


def _index_table(
    initializer: TableInitializerBase,
    num_oov_buckets: int,
    default_value: int,
    hasher_spec: HasherSpec,
    key_dtype: DType,
    name: str | None,
) -> Any:
    with get_default_graph().name_scope(name or "string_to_index"):
        table = HashTable(initializer, default_value)
        if num_oov_buckets or table.key_dtype is not key_dtype:
            return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, name, key_dtype)
        return table


def index_to_string_table_from_file(
    vocabulary_file: TensorLike,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> HashTable:
    """A table from numbers to the words in a vocabulary file with a word in each line.

    Args:
        vocabulary_file: Path of the file, or a string scalar.
        vocab_size: How many lines to read; all when None.
        default_value: The word of other numbers.
        name: Name of the table.
        key_column_index: Number of the column with the number.
        value_column_index: Number of the column with the word.
        delimiter: Text between two columns.
    """
    _check_index_table(vocabulary_file, "vocabulary_file", vocab_size=vocab_size)
    with get_default_graph().name_scope(name or "index_to_string"):
        initializer = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter
        )
        return HashTable(initializer, default_value)


def index_to_string_table_from_tensor(
    vocabulary_list: TensorLike | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    mapping: TensorLike | None = None,
) -> HashTable:
    """A table from numbers to the words in a list.

    Args:
        vocabulary_list: The words, shape ``[n]``.
        default_value: The word of other numbers.
        name: Name of the table.
        mapping: The older name of `vocabulary_list`.
    """
    words = mapping if vocabulary_list is None else vocabulary_list
    _check_index_table(words, "vocabulary_list")
    with get_default_graph().name_scope(name or "index_to_string"):
        values = convert_to_tensor(words, dtypes.string)
        keys = array_ops.range(array_ops.size(values, out_type=dtypes.int64))
        return HashTable(KeyValueTensorInitializer(keys, values, name="table_init"), default_value)


def string_to_index(
    tensor: TensorLike, mapping: TensorLike, default_value: int = -1, name: str | None = None
) -> Tensor:
    """The numbers of words in a list: what a table of `index_table_from_tensor` gives.

    Args:
        tensor: The words, of any shape.
        mapping: The words of the list, shape ``[n]``.
        default_value: The number of other words.
        name: Name of the table.

    Returns:
        int64, the shape of `tensor`.
    """
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(convert_to_tensor(tensor))


def index_to_string(
    tensor: TensorLike, mapping: TensorLike, default_value: str = "UNK", name: str | None = None
) -> Tensor:
    """The words of numbers: what a table of `index_to_string_table_from_tensor` gives.

    Args:
        tensor: The numbers, int64 of any shape.
        mapping: The words, shape ``[n]``.
        default_value: The word of other numbers.
        name: Name of the table.

    Returns:
        Strings, the shape of `tensor`.
    """
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(convert_to_tensor(tensor))


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills every table of the graph.

    Args:
        name: Name of the operation.
    """
    return group(*get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


def initialize_all_tables(name: str = "init_all_tables") -> Operation:
    """The older name of `tables_initializer`."""
    return tables_initializer(name)
