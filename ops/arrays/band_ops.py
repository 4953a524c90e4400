"""Several diagonals of matrices at once, a band of them: as a stack of vectors, and back.

Diagonals are counted from the main one, 0; those above are positive. In a stack ``[..., diagonals, longest]`` the
uppermost comes first, and shorter ones are filled up at their end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.matrix_ops import matrix_diag as main_diag
from tfray.ops.arrays.matrix_ops import matrix_diag_part as main_diag_part
from tfray.ops.arrays.matrix_ops import matrix_set_diag as set_main_diag
from tfray.ops.arrays.shape_ops import cast, index_tensor

_TYPES = {"T": (*dtypes.NUMERIC, dtypes.bool_)}


def _band(k: TensorLike, what: str) -> Tensor:
    """The argument `k`, which may be known only when a step runs, as an int32 tensor."""
    numbers = index_tensor(k)
    if numbers.dtype not in dtypes.INDICES:
        raise ArgumentError(f"{what}: k must be integers, got {k!r}")
    if numbers.shape.rank is not None and numbers.shape.rank > 1:
        raise InvalidArgumentError(f"{what}: k is {k!r}, expected an integer, or the lowest and the highest diagonal")
    return cast(numbers, dtypes.int32)


def _ends(k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal. Raises `ValueError` where there are none."""
    ends = np.ravel(k).tolist()
    if len(ends) not in (1, 2) or ends[0] > ends[-1]:
        raise InvalidArgumentError(f"k is {ends}, expected an integer, or the lowest and the highest diagonal")
    return ends[0], ends[-1]


def _known_ends(k: Tensor) -> tuple[int, int] | None:
    """The lowest and the highest diagonal, where the graph determines them."""
    known = constant_value(k)
    return None if known is None else _ends(known)


def _is_main(k: Tensor) -> bool:
    known = constant_value(k)
    return known is not None and known.size > 0 and not known.any()


def _is_one(k: Tensor) -> bool | None:
    """Whether it is one diagonal, of which there is no stack; None where only a step knows."""
    ends = _known_ends(k)
    return ends[0] == ends[1] if ends is not None else k.shape.num_elements() == 1 or None


def _length(rows: int, columns: int, k: int) -> int:
    return min(rows + min(k, 0), columns - max(k, 0))


def _check_band(low: int, high: int, rows: int | None, columns: int | None) -> None:
    for k in (low, high):
        if k and ((rows is not None and k <= -rows) or (columns is not None and k >= columns)):
            raise InvalidArgumentError(f"diagonal {k} is outside of matrices of {rows} rows and {columns} columns")


def _places(rows: int, columns: int, low: int, high: int) -> Iterator[tuple[int, Array, Array]]:
    """For each diagonal, the uppermost first: its number in the stack, its rows and its columns."""
    for index, k in enumerate(range(high, low - 1, -1)):
        along = np.arange(_length(rows, columns, k))
        yield index, along - min(k, 0), along + max(k, 0)


def _side(sizes: Sequence[int | None], low: int, high: int) -> int | None:
    """The longest diagonal of matrices of these sizes."""
    rows, columns = sizes
    return None if rows is None or columns is None else max(_length(rows, columns, k) for k in range(low, high + 1))


# -- diagonals into matrices ---------------------------------------------------------------------------


def matrix_diag(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: TensorLike = 0,
    num_rows: TensorLike = -1,
    num_cols: TensorLike = -1,
    padding_value: TensorLike = 0,
) -> Tensor:
    """Make matrices of their diagonals.

    Args:
        diagonal: Shape ``[..., n]``, one diagonal of each matrix; or, for several, the stack ``[..., diagonals, n]``.
        name: Name of the operation.
        k: A scalar: which diagonal, counted from the main one; or a vector of two: the lowest and the highest of them.
        num_rows: Rows of the matrices, a scalar; -1 for as few as fit.
        num_cols: Columns of the matrices, a scalar; -1 for as few as fit.
        padding_value: What is elsewhere, a scalar.

    Returns:
        ``[..., rows, columns]``.

    Raises:
        ArgumentError: `k` is not of integers.
        InvalidArgumentError: The diagonals do not fit together, or not the matrices; `k` is neither an integer nor two
            in order.

    Examples:
        >>> session.run(tf.linalg.diag([1, 2], k=1))
        array([[0, 1, 0],
               [0, 0, 2],
               [0, 0, 0]], dtype=int32)
    """
    k = _band(k, "matrix_diag")
    defaults = ((num_rows, -1), (num_cols, -1), (padding_value, 0))
    if _is_main(k) and not any(isinstance(value, Tensor) or value != default for value, default in defaults):
        return main_diag(diagonal, name)
    diagonal = convert_to_tensor(diagonal)
    return add_op(MATRIX_DIAG_V2, diagonal, k, num_rows, num_cols, cast(padding_value, diagonal.dtype), name=name)


def _matrix_sizes(low: int, high: int, rows: int, columns: int, longest: int) -> tuple[int, int]:
    """Rows and columns of the matrices. Raises `ValueError` where the longest diagonal does not fit them."""
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    if rows < least_rows or columns < least_columns or (rows != least_rows and columns != least_columns):
        raise ValueError(f"diagonals {low} to {high}, the longest of {longest}, are not those of {rows} x {columns}")
    if longest:
        _check_band(low, high, rows, columns)
    return rows, columns


def _matrix_diag_kernel(
    ctx: KernelContext, diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding: Array
) -> Array:
    low, high = _ends(k)
    stack = diagonal[..., None, :] if low == high else diagonal
    if stack.ndim < 2 or stack.shape[-2] != high - low + 1:
        raise InvalidArgumentError(f"diagonals of shape {diagonal.shape}, expected {high - low + 1} of each matrix")
    rows, columns = _matrix_sizes(low, high, int(num_rows), int(num_cols), diagonal.shape[-1])
    matrices = ctx.xp.full((*stack.shape[:-2], rows, columns), padding, diagonal.dtype)
    for index, i, j in _places(rows, columns, low, high):
        matrices[..., i, j] = stack[..., index, : len(i)]
    return matrices


def _matrix_diag_shape(op: Operation) -> list[TensorShape]:
    diagonal, k, *sizes, padding = op.inputs
    for scalar in (*sizes, padding):
        scalar.shape.assert_has_rank(0)
    shape, is_one = diagonal.shape, _is_one(k)
    if shape.rank is None:
        return [UNKNOWN]
    if shape.rank < (2 if is_one is False else 1):
        raise ValueError(
            f"the diagonals have shape {shape}, expected [..., n], of several diagonals [..., diagonals, n]"
        )
    if is_one is None and shape.rank > 1:
        return [UNKNOWN]
    outer, ends, longest = shape[:-1], _known_ends(k), shape.sizes[-1]
    if is_one is False and ends is not None:
        outer[-1:].assert_is_compatible_with([ends[1] - ends[0] + 1])
        outer = outer[:-1]
    rows, columns = (None if (known := constant_value(size)) is None else int(known) for size in sizes)
    if ends is None or longest is None or rows is None or columns is None:
        return [outer.concatenate([None if size == -1 else size for size in (rows, columns)])]
    return [outer.concatenate(list(_matrix_sizes(*ends, rows, columns, longest)))]


def _matrix_diag_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    d_diagonal = matrix_diag_part(d_output, k=op.inputs[1])
    d_diagonal.set_shape(op.inputs[0].shape)
    return [d_diagonal, None, None, None, None]


MATRIX_DIAG_V2 = register(
    OpDef(
        name="MatrixDiagV2",
        inputs=("diagonal: T", "k: int32", "num_rows: int32", "num_cols: int32", "padding_value: T"),
        outputs=("output: T",),
        types=_TYPES,
        host_inputs=("k", "num_rows", "num_cols"),
        shape=_matrix_diag_shape,
        kernels=on_every_device(_matrix_diag_kernel),
        gradient=_matrix_diag_gradient,
    )
)


# -- diagonals of matrices -----------------------------------------------------------------------------


def matrix_diag_part(
    input: TensorLike, name: str | None = "diag_part", k: TensorLike = 0, padding_value: TensorLike = 0
) -> Tensor:
    """Read diagonals of matrices.

    Args:
        input: Shape ``[..., rows, columns]``, numeric or bool.
        name: Name of the operation.
        k: A scalar: which diagonal, counted from the main one; or a vector of two: the lowest and the highest of them.
        padding_value: With what shorter diagonals are filled up, a scalar.

    Returns:
        ``[..., n]``, or, of several diagonals, the stack ``[..., diagonals, longest]``.

    Raises:
        ArgumentError: `k` is not of integers.
        InvalidArgumentError: The matrices have no such diagonal; `k` is neither an integer nor two in order.
    """
    k = _band(k, "matrix_diag_part")
    if _is_main(k):
        return main_diag_part(input, name)
    input = convert_to_tensor(input)
    return add_op(MATRIX_DIAG_PART_V2, input, k, cast(padding_value, input.dtype), name=name)


def _matrix_diag_part_kernel(ctx: KernelContext, input: Array, k: Array, padding: Array) -> Array:
    low, high = _ends(k)
    rows, columns = input.shape[-2:]
    _check_band(low, high, rows, columns)
    longest = _side((rows, columns), low, high)
    stack = ctx.xp.full((*input.shape[:-2], high - low + 1, longest), padding, input.dtype)
    for index, i, j in _places(rows, columns, low, high):
        stack[..., index, : len(i)] = input[..., i, j]
    return stack[..., 0, :] if low == high else stack


def _stack_shape(matrices: TensorShape, k: Tensor) -> TensorShape:
    """The shape of those diagonals, as far as it is known before a step runs."""
    ends = _known_ends(k)
    matrices = matrices.with_rank_at_least(2)
    if ends is not None:
        return _band_shape(matrices, *ends)
    return matrices[:-2].concatenate([None]) if _is_one(k) and matrices.rank is not None else UNKNOWN


def _band_shape(matrices: TensorShape, low: int, high: int) -> TensorShape:
    if matrices.rank is None:
        return UNKNOWN
    _check_band(low, high, *matrices.sizes[-2:])
    return (
        matrices[:-2]
        .concatenate([] if low == high else [high - low + 1])
        .concatenate([_side(matrices.sizes[-2:], low, high)])
    )


def _matrix_diag_part_shape(op: Operation) -> list[TensorShape]:
    matrices, k, padding = op.inputs
    padding.shape.assert_has_rank(0)
    return [_stack_shape(matrices.shape, k)]


def _matrix_diag_part_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [matrix_set_diag(zeros_like(op.inputs[0]), d_output, k=op.inputs[1]), None, None]


MATRIX_DIAG_PART_V2 = register(
    OpDef(
        name="MatrixDiagPartV2",
        inputs=("input: T", "k: int32", "padding_value: T"),
        outputs=("diagonal: T",),
        types=_TYPES,
        host_inputs=("k",),
        shape=_matrix_diag_part_shape,
        kernels=on_every_device(_matrix_diag_part_kernel),
        gradient=_matrix_diag_part_gradient,
    )
)


# -- diagonals replaced --------------------------------------------------------------------------------


def matrix_set_diag(
    input: TensorLike, diagonal: TensorLike, name: str | None = "set_diag", k: TensorLike = 0
) -> Tensor:
    """Replace diagonals of matrices.

    Args:
        input: Shape ``[..., rows, columns]``, numeric or bool.
        diagonal: The new diagonals, in the shape that `matrix_diag_part` gives them, the same dtype.
        name: Name of the operation.
        k: A scalar: which diagonal, counted from the main one; or a vector of two: the lowest and the highest of them.

    Returns:
        The shape of `input`.

    Raises:
        ArgumentError: `k` is not of integers.
        InvalidArgumentError: The matrices have no such diagonal, or `diagonal` has another shape; `k` is neither an
            integer nor two in order.
    """
    k = _band(k, "matrix_set_diag")
    if _is_main(k):
        return set_main_diag(input, diagonal, name)
    return add_op(MATRIX_SET_DIAG_V2, input, diagonal, k, name=name)


def _matrix_set_diag_kernel(ctx: KernelContext, input: Array, diagonal: Array, k: Array) -> Array:
    low, high = _ends(k)
    rows, columns = input.shape[-2:]
    expected = _band_shape(TensorShape(input.shape), low, high).sizes
    if diagonal.shape != expected:
        raise InvalidArgumentError(
            f"diagonals of shape {diagonal.shape} for matrices {input.shape}, expected {expected}"
        )
    stack, matrices = diagonal[..., None, :] if low == high else diagonal, input.copy()
    for index, i, j in _places(rows, columns, low, high):
        matrices[..., i, j] = stack[..., index, : len(i)]
    return matrices


def _matrix_set_diag_shape(op: Operation) -> list[TensorShape]:
    matrices, diagonal, k = op.inputs
    _stack_shape(matrices.shape, k).assert_is_compatible_with(diagonal.shape)
    return [matrices.shape]


def _matrix_set_diag_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    _, diagonal, k = op.inputs
    d_diagonal = matrix_diag_part(d_output, k=k)
    d_diagonal.set_shape(diagonal.shape)
    return [matrix_set_diag(d_output, zeros_like(diagonal), k=k), d_diagonal, None]


MATRIX_SET_DIAG_V2 = register(
    OpDef(
        name="MatrixSetDiagV2",
        inputs=("input: T", "diagonal: T", "k: int32"),
        outputs=("output: T",),
        types=_TYPES,
        host_inputs=("k",),
        shape=_matrix_set_diag_shape,
        kernels=on_every_device(_matrix_set_diag_kernel),
        gradient=_matrix_set_diag_gradient,
    )
)
