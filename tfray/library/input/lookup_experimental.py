"""``tf.lookup.experimental``: tables with keys that are set aside."""

from __future__ import annotations

from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.tensor_shape import as_shape
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.lookup import MutableHashTable
from tfray.ops.dataflow import lookup_ops


class DenseHashTable(MutableHashTable):
    """A table to which entries are added while it is used, with two keys that no entry may have.

    TensorFlow marks places without entries by these keys, and `export` gives all of its buckets. So it does here.

    Args:
        key_dtype: ``string``, ``int64`` or ``int32``.
        value_dtype: Dtype of the values.
        default_value: The value of keys that are not there; its shape is that of all values.
        empty_key: A key that is never used; its shape is that of all keys. The graph must know it.
        deleted_key: Another.
        initial_num_buckets: How many buckets `export` gives at first, a power of 2; 131072 when None.
        name: Name of the operation.
        checkpoint: Whether a Saver without ``var_list`` saves the entries.

    Raises:
        InvalidArgumentError: A key that is set aside is not known. In the step that uses the table: the two are equal,
            or of different shapes; `initial_num_buckets` is no power of 2; later a key is one of the two.
    """

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: Any,
        empty_key: TensorLike,
        deleted_key: TensorLike,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        self._marks = []
        for what, key in (("empty_key", empty_key), ("deleted_key", deleted_key)):
            mark = constant_value(convert_to_tensor(key, as_dtype(key_dtype)))
            if mark is None:
                raise InvalidArgumentError(f"{name}: {what} is {key!r}, expected one that the graph knows")
            self._marks.append(mark)
        self._initial_buckets = initial_num_buckets
        self.key_shape = as_shape(self._marks[0].shape)
        super().__init__(key_dtype, value_dtype, default_value, name=name, checkpoint=checkpoint)

    def _made(self, key_dtype: DType, shared_name: str, name: str) -> Tensor:
        empty, deleted = self._marks
        return lookup_ops.dense_hash_table(
            key_dtype,
            self._default.dtype,
            empty,
            deleted,
            shared_name,
            self._default.shape,
            self._initial_buckets,
            name,
        )

    def insert_or_assign(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """The same as `insert`."""
        return self.insert(keys, values, name)

    def erase(self, keys: TensorLike, name: str | None = None) -> Operation:
        """The same as `remove`."""
        return self.remove(keys, name)


__all__ = ["DenseHashTable"]
