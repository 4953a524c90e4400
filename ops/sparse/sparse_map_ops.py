"""Sparse tensors kept on a device under numbers: TensorFlow's queues of sparse tensors hold these numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.shape_functions import scalar
from tfray.framework.sparse_tensor import SparseLike, SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.resources.handles import named_resource, require_same
from tfray.ops.sparse.sparse_ops import as_sparse
from tfray.ops.sparse.sparse_transport_ops import joined_rows, rows_of
from tfray.ops.state.state_ops import colocated_with

Row = tuple[Array, Array, Array]
"""Positions, values and shape of a sparse tensor."""


class SparseTensorsMap:
    """Sparse tensors by their numbers, until they are taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[int, Row] = {}
        self._next = 0

    def add(self, rows: list[Row]) -> Array:
        """Keep sparse tensors. Returns their numbers."""
        with self._lock:
            numbers = np.arange(self._next, self._next + len(rows), dtype=np.int64)
            self._rows.update(zip(numbers.tolist(), rows, strict=True))
            self._next += len(rows)
        return numbers

    def take(self, numbers: list[int]) -> list[Row]:
        """The sparse tensors of these numbers, which are not kept any longer."""
        with self._lock:
            for place, number in enumerate(numbers):
                if number not in self._rows or number in numbers[:place]:
                    raise InvalidArgumentError(f"Unable to find SparseTensor: {number} in map: taken, or never added")
            return [self._rows.pop(number) for number in numbers]


def _map(ctx: KernelContext) -> Any:
    found = named_resource(ctx, lambda name: SparseTensorsMap(), shared_by_name=True)
    require_same(found, ctx, SparseTensorsMap)
    return found


_NAMED: Final = ("container", "shared_name")


def _keeping(
    name: str, output: str, shape: Callable[[Operation], Sequence[TensorShape]], kernel: Callable[..., Array]
) -> OpDef:
    """The definition of an operation that keeps a sparse tensor, or its rows, and returns numbers."""
    return OpDef(
        name=name,
        inputs=("indices: int64", "values: T", "dense_shape: int64"),
        outputs=(f"{output}: int64",),
        attrs=_NAMED,
        types={"T": dtypes.VALUES},
        shape=shape,
        kernels=on_cpu(kernel),
        gradient=not_differentiable,
        stateful=True,
    )


def _kept(
    definition: OpDef, sp_input: SparseLike, container: str | None, shared_name: str | None, name: str | None
) -> Tensor:
    sparse = as_sparse(sp_input)
    attrs = {"container": container or "", "shared_name": shared_name or ""}
    return add_op(definition, sparse.indices, sparse.values, sparse.dense_shape, name=name, **attrs)


def add_sparse_to_tensors_map(
    sp_input: SparseLike, container: str | None = None, shared_name: str | None = None, name: str | None = None
) -> Tensor:
    """Keep a sparse tensor on its device.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        container: Container of the map that keeps it.
        shared_name: Name of the map; that of the operation when None.
        name: Name of the operation.

    Returns:
        An int64 scalar: its number, for `take_many_sparse_from_tensors_map`.
    """
    return _kept(ADD_SPARSE, sp_input, container, shared_name, name)


def _add_kernel(ctx: KernelContext, indices: Array, values: Array, dense_shape: Array) -> Array:
    number: Array = _map(ctx).add([(indices.copy(), values.copy(), dense_shape.copy())])[0]
    return number


ADD_SPARSE: Final = register(_keeping("AddSparseToTensorsMap", "handle", scalar, _add_kernel))


def add_many_sparse_to_tensors_map(
    sp_input: SparseLike, container: str | None = None, shared_name: str | None = None, name: str | None = None
) -> Tensor:
    """Keep the rows of a sparse tensor on its device, each as a sparse tensor of its own.

    Args:
        sp_input: A `SparseTensor` of shape ``[rows, ...]``, of rank 2 or more, its positions in order.
        container: Container of the map that keeps them.
        shared_name: Name of the map; that of the operation when None.
        name: Name of the operation.

    Returns:
        An int64 vector, shape ``[rows]``: their numbers.

    Raises:
        InvalidArgumentError: While running: the rank is below 2, or positions are not in order.
    """
    return _kept(ADD_MANY_SPARSE, sp_input, container, shared_name, name)


def _add_many_kernel(ctx: KernelContext, indices: Array, values: Array, dense_shape: Array) -> Array:
    kept = [tuple(part.copy() for part in row) for row in rows_of(indices, values, dense_shape)]
    numbers: Array = _map(ctx).add(kept)
    return numbers


def _vector(op: Operation) -> list[TensorShape]:
    return [TensorShape([None])]


ADD_MANY_SPARSE: Final = register(_keeping("AddManySparseToTensorsMap", "handles", _vector, _add_many_kernel))


def take_many_sparse_from_tensors_map(
    sparse_map_op: Operation, sparse_handles: TensorLike, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Take sparse tensors out of a map, as the rows of one.

    Args:
        sparse_map_op: The operation that has added them, or another that adds to the same map.
        sparse_handles: int64 vector, shape ``[rows]``, of numbers that were given when they were added.
        rank: Rank of the sparse tensors, where it is known.
        name: Name of the operation.

    Returns:
        A `SparseTensor` of shape ``[rows, ...]``: the size in each other dimension is the largest of the rows.

    Raises:
        TypeError: `sparse_map_op` is no operation that adds to a map.
        InvalidArgumentError: While running: a number is not in the map, or ranks or dtypes differ.
    """
    if not isinstance(sparse_map_op, Operation) or sparse_map_op.type not in (ADD_SPARSE.name, ADD_MANY_SPARSE.name):
        raise TypeError(f"sparse_map_op must be an operation that adds to a map, not {sparse_map_op!r}")
    attrs = {
        "container": sparse_map_op.attrs["container"],
        "shared_name": sparse_map_op.attrs["shared_name"] or sparse_map_op.name,
        "dtype": sparse_map_op.inputs[1].dtype,
    }
    with colocated_with(sparse_map_op.outputs[0]):
        return SparseTensor(*add_op(TAKE_MANY_SPARSE, sparse_handles, name=name, rank=rank, **attrs))


def _take_many_kernel(ctx: KernelContext, handles: Array) -> list[Array]:
    rank: int | None = ctx.attr("rank")
    rows = _map(ctx).take(handles.reshape(-1).tolist())
    ranks = [len(dense_shape) + 1 for _, _, dense_shape in rows]
    if (other := next((i for i, found in enumerate(ranks) if found != ranks[0]), None)) is not None:
        raise InvalidArgumentError(
            f"Inconsistent rank across SparseTensors: rank prior to SparseTensor[{other}] was: {ranks[0]} but rank of "
            f"SparseTensor[{other}] is: {ranks[other]}"
        )
    return joined_rows(rows, (len(rows),), None if rank is None else rank + 1, ctx.output_dtype(1))


def _taken_shape(op: Operation) -> list[TensorShape]:
    rank = op.attrs["rank"]
    whole = None if rank is None else rank + 1
    return [TensorShape([None, whole]), TensorShape([None]), TensorShape([whole])]


TAKE_MANY_SPARSE: Final = register(
    OpDef(
        name="TakeManySparseFromTensorsMap",
        inputs=("handles: int64",),
        outputs=("indices: int64", "values: dtype", "dense_shape: int64"),
        attrs=(*_NAMED, "rank"),
        types={"dtype": dtypes.VALUES},
        shape=_taken_shape,
        kernels=on_cpu(_take_many_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)
