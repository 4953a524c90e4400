"""Maps ids of an open vocabulary to rows of a table. `tf.train.DynamicEmbedding` is built on it."""

from __future__ import annotations

from typing import Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.resources.row_index import RowIndex
from tfray.ops.state.state_ops import colocated_with

POLICIES: Final = ("lru", "lfu")


def row_index(
    capacity: int, admit_after: int = 1, evict: str = "lru", shared_name: str = "", name: str | None = None
) -> Tensor:
    """Make the handle of an index from ids to rows.

    Args:
        capacity: Number of rows.
        admit_after: How often an id must be seen to get one.
        evict: ``"lru"`` or ``"lfu"``: which id loses its row when all are taken, see `RowIndex`.
        shared_name: Name of the index on the device; that of the operation when empty.
        name: Name of the operation.
    """
    return add_op(
        ROW_INDEX, name=name, capacity=capacity, admit_after=admit_after, evict=evict, shared_name=shared_name
    )


def _row_index_kernel(ctx: KernelContext) -> RowIndex:
    name = ctx.attr("shared_name") or ctx.op_name
    settings = ctx.attr("capacity"), ctx.attr("admit_after"), ctx.attr("evict")
    index: RowIndex = ctx.resources.lookup_or_create(("row_index", name), lambda: RowIndex(name, *settings))
    found = index.capacity, index.admit_after, index.evict
    if found != settings:
        raise InvalidArgumentError(
            f"index {name!r} is there already with capacity, admit_after and evict {found}; asked for {settings}"
        )
    return index


def _row_index_shape(op: Operation) -> list[TensorShape]:
    if op.attrs["capacity"] < 1 or op.attrs["admit_after"] < 1:
        raise ValueError("capacity and admit_after must be at least 1")
    if op.attrs["evict"] not in POLICIES:
        raise ValueError(f"evict is {op.attrs['evict']!r}, expected one of {', '.join(POLICIES)}")
    return [TensorShape([])]


ROW_INDEX = register(
    OpDef(
        name="RowIndex",
        inputs=(),
        outputs=("index: resource",),
        attrs=("shared_name", "capacity", "admit_after", "evict"),
        shape=_row_index_shape,
        kernels=on_cpu(_row_index_kernel),
        stateful=True,
    )
)


def assign_rows(index: Tensor, ids: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Count ids as seen, and give rows to those that have been seen often enough.

    Args:
        index: The handle of a `row_index`.
        ids: int64, shape ``[n]``, none of them negative.
        name: Name of the operation.

    Returns:
        The rows of `ids`, -1 for those that have none, int64 of shape ``[n]``; and the rows that now belong to another
        id than before, of shape ``[k]``.

    Raises:
        InvalidArgumentError: While running: an id is negative.
    """
    with colocated_with(index):
        rows, fresh = add_op(ASSIGN_ROWS, index, ids, name=name)
        return rows, fresh


def _assign_rows_kernel(ctx: KernelContext, index: RowIndex, ids: Array) -> tuple[Array, Array]:
    if ids.size and ids.min() < 0:
        raise InvalidArgumentError(f"id {ids.min()} is negative: index {index.name!r} has ids from 0 on")
    return index.assign(ids)


def _assign_rows_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape.with_rank(1), TensorShape([None])]


ASSIGN_ROWS = register(
    OpDef(
        name="AssignRows",
        inputs=("index: resource", "ids: int64"),
        outputs=("rows: int64", "fresh: int64"),
        shape=_assign_rows_shape,
        kernels=on_cpu(_assign_rows_kernel),
        stateful=True,
        access="update",
    )
)


def find_rows(index: Tensor, ids: TensorLike, name: str | None = None) -> Tensor:
    """The rows of ids, -1 for those that have none. Nothing is counted, and nothing changes.

    Args:
        index: The handle of a `row_index`.
        ids: int64, any shape.
        name: Name of the operation.

    Returns:
        int64, the shape of `ids`.
    """
    with colocated_with(index):
        return add_op(FIND_ROWS, index, convert_to_tensor(ids, dtypes.int64), name=name)


def _find_rows_kernel(ctx: KernelContext, index: RowIndex, ids: Array) -> Array:
    return index.find(ids)


FIND_ROWS = register(
    OpDef(
        name="FindRows",
        inputs=("index: resource", "ids: int64"),
        outputs=("rows: int64",),
        shape=lambda op: [op.inputs[1].shape],
        kernels=on_cpu(_find_rows_kernel),
        stateful=True,
        access="read",
    )
)


def take_reused_rows(index: Tensor, name: str | None = None) -> Tensor:
    """The rows that have changed to another id since this was last called.

    Args:
        index: The handle of a `row_index`.
        name: Name of the operation.

    Returns:
        int64, shape ``[k]``, ascending.
    """
    with colocated_with(index):
        return add_op(TAKE_REUSED_ROWS, index, name=name)


def _take_reused_rows_kernel(ctx: KernelContext, index: RowIndex) -> Array:
    return index.take_reused()


TAKE_REUSED_ROWS = register(
    OpDef(
        name="TakeReusedRows",
        inputs=("index: resource",),
        outputs=("rows: int64",),
        shape=lambda op: [TensorShape([None])],
        kernels=on_cpu(_take_reused_rows_kernel),
        stateful=True,
        access="update",
    )
)


def row_index_size(index: Tensor, name: str | None = None) -> Tensor:
    """How many ids have rows: an int64 scalar.

    Args:
        index: The handle of a `row_index`.
        name: Name of the operation.
    """
    with colocated_with(index):
        return add_op(ROW_INDEX_SIZE, index, name=name)


def _row_index_size_kernel(ctx: KernelContext, index: RowIndex) -> Array:
    return ctx.xp.int64(len(index))


ROW_INDEX_SIZE = register(
    OpDef(
        name="RowIndexSize",
        inputs=("index: resource",),
        outputs=("size: int64",),
        shape=scalar,
        kernels=on_cpu(_row_index_size_kernel),
        stateful=True,
        access="read",
    )
)


def row_index_entries(index: Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
    """All ids that have rows, and their rows, ascending: int64 of shape ``[size]``.

    Args:
        index: The handle of a `row_index`.
        name: Name of the operation.
    """
    with colocated_with(index):
        ids, rows = add_op(ROW_INDEX_ENTRIES, index, name=name)
        return ids, rows


def _row_index_entries_kernel(ctx: KernelContext, index: RowIndex) -> tuple[Array, Array]:
    return index.entries()


ROW_INDEX_ENTRIES = register(
    OpDef(
        name="RowIndexEntries",
        inputs=("index: resource",),
        outputs=("ids: int64", "rows: int64"),
        shape=lambda op: [TensorShape([None]), TensorShape([None])],
        kernels=on_cpu(_row_index_entries_kernel),
        stateful=True,
        access="read",
    )
)
