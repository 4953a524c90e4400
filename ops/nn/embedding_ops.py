"""Looking up rows of a table that may be cut into shards, each on a device of its own.

`dynamic_partition` splits the ids by shard, a gather on each shard's device reads the rows, and `dynamic_stitch` puts
them in order. The gradient goes the same way back and reaches each shard as `IndexedSlices` of the rows that were used.
So only ids and used rows move between devices, never the table.

References:
    Abadi et al., TensorFlow: A system for large-scale machine learning (2016), section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops


def embedding_lookup(
    params: TensorLike,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | Tensor | None = None,
) -> Tensor:
    """Look up rows of a table.

    Args:
        params: The table, a variable or tensor of shape ``[rows, ...]``; or a list of shards of it, or a
            partitioned variable.
        ids: The rows, an integer tensor of any shape.
        partition_strategy: How rows are spread over n shards. ``mod``: row i is row ``i // n`` of shard ``i % n``.
            ``div``: each shard holds a run of consecutive rows. All runs have the same length, except that the first
            ones are longer by one where the number does not divide. Partitioned variables are cut in this way.
        name: Name scope of the operations.
        validate_indices: Accepted for TensorFlow 1's sake: rows are always checked on a CPU.
        max_norm: Scale rows down to this l2 norm where they exceed it, a number or a tensor.

    Returns:
        Shape ``ids.shape + [...]``.

    Raises:
        ValueError: No shards, or an unknown strategy for several.
        InvalidArgumentError: While running: a row that the table does not have.

    Examples:
        >>> table = tf.constant([[1.0, 1.5], [2.0, 2.5], [3.0, 3.5]])
        >>> session.run(tf.nn.embedding_lookup(table, [2, 0]))
        array([[3. , 3.5],
               [1. , 1.5]], dtype=float32)
    """
    shards = shards_of(params)
    if len(shards) > 1 and partition_strategy not in ("mod", "div"):
        raise ValueError(f"partition_strategy must be 'mod' or 'div', not {partition_strategy!r}")
    with get_default_graph().name_scope(name or "embedding_lookup"):
        ids = array_ops.position_tensor(ids, "ids")
        if len(shards) == 1:
            rows = gather_beside(shards[0], ids, "Identity")  # TensorFlow's name of the result
        else:
            rows = _lookup_in_shards(shards, ids, partition_strategy)
        return rows if max_norm is None else _clip(rows, shards[0].shape.rank - 1, max_norm)


def shards_of(params: TensorLike) -> list[Any]:
    """The shards of a table, at least one; `params` as of `embedding_lookup`."""
    if isinstance(params, (list, tuple)):
        if not params:
            raise ValueError("embedding_lookup needs at least one shard")
        return [_as_table(shard) for shard in params]
    if hasattr(params, "_get_variable_list"):
        return list(params._get_variable_list())  # the parts of a partitioned variable
    return [_as_table(params)]


def _as_table(shard: TensorLike) -> Any:
    return shard if hasattr(shard, "sparse_read") else convert_to_tensor(shard)


def gather_beside(shard: Any, ids: Tensor, name: str | None = None) -> Tensor:
    """Rows of a shard, read on its device.

    Args:
        shard: A variable or tensor of shape ``[n, ...]``, any dtype.
        ids: Row numbers, of any shape, an integer dtype.
        name: Name of the operation.

    Returns:
        Shape ``[*ids.shape, ...]``, the dtype of the shard.
    """
    graph = get_default_graph()
    if shard.graph is not graph:
        return array_ops.gather(shard, ids, name=name)
    with graph.colocate_with(shard.op, ignore_existing=True):
        return array_ops.gather(shard, ids, name=name)


def _lookup_in_shards(shards: Sequence[Any], ids: Tensor, strategy: str) -> Tensor:
    places, rows = split_by_shard(shards, array_ops.reshape(ids, [-1]), strategy)
    found = [gather_beside(shard, part) for shard, part in zip(shards, rows, strict=True)]
    stitched = array_ops.dynamic_stitch(places, found)
    # The rows may be scalars, vectors or more: their shape is that of any shard's.
    row_shape = shards[0].shape[1:]
    for shard in shards[1:]:
        row_shape = row_shape.merge_with(shard.shape[1:])
    inner = row_shape.as_list() if row_shape.is_fully_defined() else array_ops.shape(found[0])[1:]
    result = array_ops.reshape(stitched, array_ops.concat([array_ops.shape(ids), inner], 0))
    result.set_shape(ids.shape.concatenate(row_shape))
    return result


def split_by_shard(shards: Sequence[Any], ids: Tensor, strategy: str) -> tuple[list[Tensor], list[Tensor]]:
    """For each shard, the positions in the vector `ids` that refer to it, and their row numbers in the shard."""
    shard_of, row = _by_mod(shards, ids) if strategy == "mod" else _by_div(shards, ids)
    shard_of = array_ops.cast(shard_of, dtypes.int32)
    places = array_ops.dynamic_partition(array_ops.range(array_ops.size(ids)), shard_of, len(shards))
    return places, array_ops.dynamic_partition(row, shard_of, len(shards))


def _by_mod(shards: Sequence[Any], ids: Tensor) -> tuple[Tensor, Tensor]:
    """Shard of each id, and its row there."""
    return math_ops.floormod(ids, len(shards)), math_ops.floordiv(ids, len(shards))


def _by_div(shards: Sequence[Any], ids: Tensor) -> tuple[Tensor, Tensor]:
    """Shard of each id, and its row there: the first `extra` shards have ``size + 1`` rows, the others `size`."""
    total = _total_rows(shards, ids)
    size, extra = total // len(shards), total % len(shards)
    if isinstance(size, int):
        size = max(size, 1)  # fewer rows than shards: all are in the first ones
    shard_of = math_ops.maximum(math_ops.floordiv(ids, size + 1), math_ops.floordiv(ids - extra, size))
    row = array_ops.where(
        math_ops.less(shard_of, extra), math_ops.floormod(ids, size + 1), math_ops.floormod(ids - extra, size)
    )
    return shard_of, row


def _total_rows(shards: Sequence[Any], ids: Tensor) -> Any:
    counts = [shard.shape[0].value for shard in shards]
    if None not in counts:
        return sum(counts)
    return array_ops.cast(math_ops.add_n([array_ops.shape(shard)[0] for shard in shards]), ids.dtype)


def _clip(rows: Tensor, row_rank: int, max_norm: float | Tensor) -> Tensor:
    """Rows scaled down to at most `max_norm`. Short rows are not divided by their norm: it may be 0."""
    axes = list(range(-row_rank, 0))
    if isinstance(max_norm, Tensor):
        max_norm = array_ops.cast(max_norm, rows.dtype)
    max_norm = math_ops.maximum(max_norm, 0) if isinstance(max_norm, Tensor) else max(max_norm, 0)
    squares = math_ops.reduce_sum(math_ops.square(rows), axes, keepdims=True)
    if isinstance(max_norm, Tensor) and max_norm.shape.rank != 0:
        longest = math_ops.maximum(squares, max_norm * max_norm)  # as `clip_by_norm`, which broadcasts
        return math_ops.multiply(math_ops.multiply(rows, max_norm), math_ops.rsqrt(longest))
    is_long = math_ops.greater(squares, max_norm * max_norm)
    safe = array_ops.where(is_long, squares, array_ops.ones_like(squares))
    scale = array_ops.where(is_long, max_norm * math_ops.rsqrt(safe), array_ops.ones_like(squares))
    return math_ops.multiply(rows, scale)
