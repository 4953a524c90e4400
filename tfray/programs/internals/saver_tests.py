"""``tensorflow.python.training.saver_test_utils``: state that is no variable and that a Saver saves."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.lookup import MutableHashTable
from tfray.ops.dataflow.lookup_ops import LOOKUP_TABLE_FIND
from tfray.ops.dataflow.resource_operations import use_resource

__all__ = ["CheckpointedOp"]


class CheckpointedOp:
    """A table from strings to float32 numbers, which Savers without ``var_list`` save.

    Args:
        name: Its name.
        table_ref: Another such object's `table_ref`, when both are to be one table; a new table when None.

    Attributes:
        table_ref: The table.
    """

    def __init__(self, name: str, table_ref: MutableHashTable | None = None) -> None:
        self.table_ref = table_ref or MutableHashTable(
            dtypes.string, dtypes.float32, 0.0, name=name, checkpoint=table_ref is None
        )
        self.name = name

    @property
    def saveable(self) -> object:
        """What a Saver takes in its ``var_list``."""
        return self.table_ref.saveable

    def insert(self, keys: TensorLike, values: TensorLike) -> Operation:
        """An operation that adds entries: string keys, and as many float32 values."""
        return self.table_ref.insert(keys, values)

    def lookup(self, keys: TensorLike, default: TensorLike) -> Tensor:
        """The values of keys, `default` where there is none."""
        inputs = convert_to_tensor(keys, dtypes.string), convert_to_tensor(default, dtypes.float32)
        return use_resource(LOOKUP_TABLE_FIND, self.table_ref.resource_handle, *inputs, key_rank=0)

    def keys(self) -> Tensor:
        """All keys: a string vector."""
        return self.table_ref.export()[0]

    def values(self) -> Tensor:
        """Their values: a float32 vector."""
        return self.table_ref.export()[1]
