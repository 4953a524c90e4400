"""``tf.lookup.experimental``: tables with keys that are set aside."""

from __future__ import annotations

from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.lookup import MutableHashTable
from tfray.ops.arrays import array_ops
from tfray.ops.checks import check_ops


class DenseHashTable(MutableHashTable):
    """A table to which entries are added while it is used, with two keys that no entry may have.

    TensorFlow marks free places by these keys. Here they only stay reserved, and `export` gives the entries alone.

    Args:
        key_dtype: ``string``, ``int64`` or ``int32``.
        value_dtype: Dtype of the values.
        default_value: The value of keys that are not there; its shape is that of all values.
        empty_key: A key that is never used: a scalar.
        deleted_key: Another.
        initial_num_buckets: Accepted for TensorFlow 1's sake.
        name: Name of the operation.
        checkpoint: Whether a Saver without ``var_list`` saves the entries.

    Raises:
        ValueError: A key that is set aside is no scalar.
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
        self._reserved = [convert_to_tensor(key, as_dtype(key_dtype)) for key in (empty_key, deleted_key)]
        for key in self._reserved:
            if key.shape.rank not in (None, 0):
                raise ValueError(
                    f"empty_key and deleted_key must be scalars: keys of shape {key.shape} are not supported"
                )
        super().__init__(key_dtype, value_dtype, default_value, name=name, checkpoint=checkpoint)

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """An operation that adds entries, or changes them."""
        return super().insert(self._allowed(keys), values, name)

    def insert_or_assign(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """The same as `insert`."""
        return self.insert(keys, values, name)

    def remove(self, keys: TensorLike, name: str | None = None) -> Operation:
        """An operation that takes entries out."""
        return super().remove(self._allowed(keys), name)

    erase = remove

    def _find(self, keys: Tensor) -> Tensor:
        return super()._find(self._allowed(keys))

    def _allowed(self, keys: TensorLike) -> Tensor:
        """The keys. An error of the step when one of them is set aside."""
        tensor = self._check_keys(convert_to_tensor(keys, None if isinstance(keys, Tensor) else self.key_dtype))
        whats = zip(("empty_key", "deleted_key"), self._reserved, strict=True)
        checks = [
            check_ops.assert_none_equal(tensor, key, message=f"table {self.name!r}: {what} is used as a key")
            for what, key in whats
        ]
        with get_default_graph().control_dependencies(checks):
            return array_ops.identity(tensor)


__all__ = ["DenseHashTable"]
