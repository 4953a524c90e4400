"""Embeddings of a vocabulary that changes while it is learnt: ids come, stay as long as they are used, and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.arguments import Positive, checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.random import random_ops
from tfray.ops.state import row_index_ops, sparse_state_ops, state_ops

INITIAL_STDDEV = 0.05


class DynamicEmbedding:
    """A table of rows by id, of bounded size.

    An id gets a row once it has been looked up `admit_after` times; before that, its lookup gives zeros. When all rows
    are taken, a new id gets the row of an old one. The rows are an ordinary variable, `rows`: optimizers find it among
    the trainable variables, update the rows that a step has used, and reset the slots of a row that changes its id.
    Savers save rows, slots and ids.

    A lookup with ``training=True`` changes the table within the step. Use it in sessions, also on a cluster, but not in
    a `Trainer`: its replicas do not wait for changes of shared state.

    Args:
        name: Name of the table.
        dim: Size of a row.
        capacity: Largest number of ids that have rows.
        initializer: Function of a shape tensor ``[k, dim]`` that gives new rows; normal numbers of standard deviation
            0.05 when None.
        dtype: Dtype of the rows.
        admit_after: How often an id must have been looked up.
        evict: Whose row is given away: ``"lru"``, of the id not looked up for longest; ``"lfu"``, of the one looked up
            least often, in which older lookups count less and less. Never that of an id of the same lookup: look up
            all ids of a step at once.
        trainable: Whether optimizers find the rows.

    Example:
        >>> words = tf.train.DynamicEmbedding("words", dim=64, capacity=1_000_000, admit_after=3)
        >>> rows = tf.nn.dynamic_embedding_lookup(words, ids)
    """

    @checked
    def __init__(
        self,
        name: str,
        dim: Positive,
        capacity: Positive,
        initializer: Callable[[Tensor], Any] | None = None,
        dtype: DTypeLike = dtypes.float32,
        admit_after: Positive = 1,
        evict: str = "lru",
        trainable: bool = True,
    ) -> None:
        self.dim, self.capacity, self.dtype = dim, capacity, as_dtype(dtype)
        self._initializer = initializer or _small_normal(self.dtype)
        with get_default_graph().name_scope(name):
            # No update touches the extra last row: it and its slots keep their initial values.
            zeros = lambda: array_ops.zeros([capacity + 1, dim], self.dtype)  # noqa: E731
            self.rows = Variable(zeros, trainable=trainable, name="rows")
            with state_ops.colocated_with(self.rows.handle):
                self.index = row_index_ops.row_index(capacity, admit_after, evict, name="index")
        self.rows._row_index = self.index
        saveable = SaveableResource(self.index.op.name, self.index)
        self.index.graph.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)

    @property
    def op(self) -> Operation:
        """The operation that holds the rows."""
        return self.rows.op

    def lookup(self, ids: TensorLike, training: bool = True, name: str | None = None) -> Tensor:
        """The rows of ids.

        Args:
            ids: Integers from 0 on, any shape.
            training: Count the ids, admit and evict; otherwise nothing changes.
            name: Name scope of the operations.

        Returns:
            Shape ``ids.shape + [dim]``: zeros for ids without rows, through which no gradient flows.
        """
        with get_default_graph().name_scope(name or "dynamic_lookup"), state_ops.colocated_with(self.rows.handle):
            ids = array_ops.cast(convert_to_tensor(ids), dtypes.int64)
            flat = array_ops.reshape(ids, [-1])
            found, settled = self._find(flat) if training else (row_index_ops.find_rows(self.index, flat), [])
            places = array_ops.reshape(array_ops.where(math_ops.greater_equal(found, 0)), [-1])
            with get_default_graph().control_dependencies(settled):
                values = self.rows.sparse_read(array_ops.gather(found, places))
            sizes = array_ops.stack([array_ops.size(flat, out_type=dtypes.int64), np.int64(self.dim)])
            rows = array_ops.scatter_nd(array_ops.expand_dims(places, 1), values, sizes)
            result = array_ops.reshape(rows, array_ops.concat([array_ops.shape(ids), [self.dim]], 0))
            result.set_shape(ids.shape.concatenate([self.dim]))
            return result

    def _find(self, ids: Tensor) -> tuple[Tensor, list[Operation]]:
        """The rows of ids, and the operations that set new rows to their initial values."""
        found, fresh = row_index_ops.assign_rows(self.index, ids)
        shape = array_ops.stack([array_ops.size(fresh), self.dim])
        values = array_ops.cast(self._initializer(shape), self.dtype)
        return found, [sparse_state_ops.scatter_update(self.rows, fresh, values).op]

    def size(self, name: str | None = None) -> Tensor:
        """How many ids have rows: an int64 scalar."""
        return row_index_ops.row_index_size(self.index, name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The ids that have rows, int64 of shape ``[size]``, and these, ``[size, dim]``."""
        with get_default_graph().name_scope(name or "export"):
            ids, rows = row_index_ops.row_index_entries(self.index)
            return ids, self.rows.sparse_read(rows)

    def __repr__(self) -> str:
        return f"<tf.train.DynamicEmbedding '{self.rows.op.name}' dim={self.dim} capacity={self.capacity}>"


def _small_normal(dtype: dtypes.DType) -> Callable[[Tensor], Tensor]:
    def initializer(shape: Tensor) -> Tensor:
        return random_ops.random_normal(shape, stddev=INITIAL_STDDEV, dtype=dtype)

    return initializer


def dynamic_embedding_lookup(
    params: DynamicEmbedding | Sequence[DynamicEmbedding],
    ids: TensorLike,
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """Look up the rows of ids in a dynamic table, or in several, each on a device of its own.

    Args:
        params: The table; or a list of n tables, of which the i-th has the ids with ``id % n == i``.
        ids: Integers from 0 on, any shape.
        training: See `DynamicEmbedding.lookup`.
        name: Name scope of the operations.

    Returns:
        Shape ``ids.shape + [dim]``.

    Raises:
        ValueError: There is no table, or their rows differ in size.
    """
    if isinstance(params, DynamicEmbedding):
        return params.lookup(ids, training, name)
    if not params or len({table.dim for table in params}) > 1:
        raise ValueError("dynamic_embedding_lookup needs at least one table, and rows of one size")
    with get_default_graph().name_scope(name or "dynamic_embedding_lookup"):
        ids = array_ops.cast(convert_to_tensor(ids), dtypes.int64)
        flat = array_ops.reshape(ids, [-1])
        owner = array_ops.cast(math_ops.floormod(flat, len(params)), dtypes.int32)
        places = array_ops.dynamic_partition(array_ops.range(array_ops.size(flat)), owner, len(params))
        parts = array_ops.dynamic_partition(flat, owner, len(params))
        found = [table.lookup(part, training) for table, part in zip(params, parts, strict=True)]
        rows = array_ops.dynamic_stitch(places, found)
        result = array_ops.reshape(rows, array_ops.concat([array_ops.shape(ids), [params[0].dim]], 0))
        result.set_shape(ids.shape.concatenate([params[0].dim]))
        return result
