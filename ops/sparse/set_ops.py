"""Sets: the elements in the last dimension of tensors, taken together in pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.sparse_tensor import SparseLike, SparseTensor
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import fill, where
from tfray.ops.arrays.shape_ops import reshape, shape
from tfray.ops.kernels.coordinates import ascending_positions
from tfray.ops.sparse.sparse_ops import as_sparse

ELEMENTS: Final = (*dtypes.INTEGERS, dtypes.string)

_OPERATIONS: Final[dict[str, Callable[[set[Any], set[Any]], set[Any]]]] = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


def set_intersection(
    a: TensorLike | SparseLike, b: TensorLike | SparseLike, validate_indices: bool = True
) -> SparseTensor:
    """Compute the intersection of sets: the elements that are in both.

    Args:
        a: A tensor or `SparseTensor` ``[..., n]`` of integers or strings, of rank 2 or more: a set in each row.
            Repetitions do not count.
        b: A tensor or `SparseTensor` ``[..., m]``, with any last dimension and otherwise the shape and the dtype of
            `a`.
        validate_indices: Whether the step fails if positions are not in row-major order, each named once.

    Returns:
        A `SparseTensor` ``[..., most elements]``, in each row a set in ascending order.

    Raises:
        ArgumentError: The dtypes differ.
        InvalidArgumentError: The shapes do not go together. At run time: the positions are not in order.
    """
    return set_operation(a, b, "intersection", validate_indices)


def set_union(a: TensorLike | SparseLike, b: TensorLike | SparseLike, validate_indices: bool = True) -> SparseTensor:
    """Compute the union of sets: the elements that are in either (arguments as `set_intersection`).

    `a` has the shape ``[..., n]``, `b` ``[..., m]``, and the result ``[..., most elements]``.
    """
    return set_operation(a, b, "union", validate_indices)


def set_difference(
    a: TensorLike | SparseLike, b: TensorLike | SparseLike, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """Compute ``a - b``, or ``b - a`` with ``aminusb=False``, of sets (arguments as `set_intersection`).

    `a` has the shape ``[..., n]``, `b` ``[..., m]``, and the result ``[..., most elements]``.
    """
    return set_operation(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_operation(
    a: TensorLike | SparseLike, b: TensorLike | SparseLike, operation: str, validate_indices: bool
) -> SparseTensor:
    """Combine sets (arguments as `set_intersection`) by ``intersection``, ``union``, ``a-b`` or ``b-a``."""
    left, right = _as_sparse(a), _as_sparse(b)
    if left.dtype != right.dtype:
        raise ArgumentError(f"sets of {left.dtype.name} do not go with sets of {right.dtype.name}; use tf.cast")
    rows = left.get_shape()[:-1], right.get_shape()[:-1]
    if rows[0].rank == rows[1].rank and not rows[0].is_compatible_with(rows[1]):
        raise InvalidArgumentError(f"sets in rows {rows[0]} do not go with sets in rows {rows[1]}")
    inputs = [left.indices, left.values, left.dense_shape, right.indices, right.values, right.dense_shape]
    attrs = {"set_operation": operation, "validate_indices": bool(validate_indices)}
    return SparseTensor(*add_op(SET_OPERATION, *inputs, name=None, **attrs))


def _as_sparse(value: TensorLike | SparseLike) -> SparseTensor:
    if isinstance(value, SparseTensor):
        return value
    tensor = convert_to_tensor(value)
    if tensor.shape.rank is not None and tensor.shape.rank < 2:
        raise InvalidArgumentError(f"{tensor!r} holds no sets: expected at least two dimensions")
    sizes = shape(tensor, out_type=dtypes.int64)
    return SparseTensor(where(fill(sizes, True)), reshape(tensor, [-1]), sizes)


def _rows(indices: Array, values: Array) -> dict[tuple[int, ...], set[Any]]:
    """The set in each row that has one."""
    rows: dict[tuple[int, ...], set[Any]] = {}
    for position, value in zip(map(tuple, indices[:, :-1].tolist()), values.tolist(), strict=True):
        rows.setdefault(position, set()).add(value)
    return rows


def _set_operation_kernel(
    ctx: KernelContext,
    a_indices: Array,
    a_values: Array,
    a_shape: Array,
    b_indices: Array,
    b_values: Array,
    b_shape: Array,
) -> list[Array]:
    batch = a_shape.tolist()[:-1]
    if batch != b_shape.tolist()[:-1]:
        raise InvalidArgumentError(f"sets in rows {batch} do not go with sets in rows {b_shape.tolist()[:-1]}")
    if ctx.attr("validate_indices"):
        ascending_positions(a_indices, a_values, a_shape.tolist())
        ascending_positions(b_indices, b_values, b_shape.tolist())
    combine = _OPERATIONS[ctx.attr("set_operation")]
    left, right = _rows(a_indices, a_values), _rows(b_indices, b_values)
    positions: list[tuple[int, ...]] = []
    elements: list[Any] = []
    longest = 0
    for row in sorted(left.keys() | right.keys()):
        found = sorted(combine(left.get(row, set()), right.get(row, set())))
        longest = max(longest, len(found))
        positions += [(*row, place) for place in range(len(found))]
        elements += found
    values: Array = np.empty(len(elements), a_values.dtype)
    values[:] = elements
    return [np.array(positions, np.int64).reshape(-1, len(batch) + 1), values, np.array([*batch, longest], np.int64)]


def _set_operation_shape(op: Operation) -> list[TensorShape]:
    rank = None
    for index in (0, 3):
        op.inputs[index].shape.assert_has_rank(2)
        op.inputs[index + 1].shape.assert_has_rank(1)
        size = op.inputs[index + 2].shape.with_rank(1)[0].value
        if rank is not None and size is not None and rank != size:
            raise ValueError(f"sets of rank {rank} do not go with sets of rank {size}")
        rank = size if rank is None else rank
    return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]


SET_OPERATION = register(
    OpDef(
        name="SparseToSparseSetOperation",
        inputs=(
            "set1_indices: int64",
            "set1_values: T",
            "set1_shape: int64",
            "set2_indices: int64",
            "set2_values: T",
            "set2_shape: int64",
        ),
        outputs=("result_indices: int64", "result_values: T", "result_shape: int64"),
        attrs=("set_operation", "validate_indices"),
        types={"T": ELEMENTS},
        shape=_set_operation_shape,
        kernels=on_cpu(_set_operation_kernel),
    )
)


def set_size(a: SparseLike, validate_indices: bool = True) -> Tensor:
    """How many different elements each set has, int32.

    Args:
        a: A `SparseTensor` ``[..., n]`` of integers or strings.
        validate_indices: Whether the step fails if positions are not in row-major order, each named once.

    Returns:
        The shape of `a` without its last dimension.

    Raises:
        ArgumentError: `a` is not sparse.
        InvalidArgumentError: At run time: the positions are not in order.
    """
    sets = as_sparse(a, "a")
    return add_op(SET_SIZE, sets.indices, sets.values, sets.dense_shape, validate_indices=bool(validate_indices))


def _set_size_kernel(ctx: KernelContext, indices: Array, values: Array, sizes: Array) -> Array:
    if ctx.attr("validate_indices"):
        ascending_positions(indices, values, sizes.tolist())
    counts = np.zeros(tuple(sizes.tolist()[:-1]), np.int32)
    for row, found in _rows(indices, values).items():
        counts[row] = len(found)
    return counts


def _set_size_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(2)
    op.inputs[2].shape.assert_has_rank(1)
    return [UNKNOWN]  # as in TensorFlow


SET_SIZE = register(
    OpDef(
        name="SetSize",
        inputs=("set_indices: int64", "set_values: T", "set_shape: int64"),
        outputs=("size: int32",),
        attrs=("validate_indices",),
        types={"T": ELEMENTS},
        shape=_set_size_shape,
        kernels=on_cpu(_set_size_kernel),
    )
)
