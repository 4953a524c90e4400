"""Several diagonals of matrices at once, a band of them: as a stack of vectors, and back.

Diagonals are counted from the main one, 0; those above are positive. In a stack ``[..., diagonals, longest]`` the
uppermost comes first, and shorter ones are filled up at their end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.join_ops import late_index
from tfray.ops.arrays.matrix_ops import matrix_diag as main_diag
from tfray.ops.arrays.matrix_ops import matrix_diag_part as main_diag_part
from tfray.ops.arrays.matrix_ops import matrix_set_diag as set_main_diag
from tfray.ops.arrays.shape_ops import cast

_TYPES = {"T": (*dtypes.NUMERIC, dtypes.bool_)}


def _band(k: Any, what: str) -> tuple[int, int]:
    """The lowest and the highest diagonal."""
    known = constant_value(k) if isinstance(k, Tensor) else k
    if known is None:
        raise InvalidArgumentError(f"{what}: k must be known when the graph is built, and is {k!r}")
    ends = late_index(known, 1, f"{what}: k") if np.ndim(known) else [late_index(known, 0, f"{what}: k")] * 2
    ends = ends * 2 if len(ends) == 1 else ends
    if len(ends) != 2 or ends[0] > ends[1]:
        raise InvalidArgumentError(f"{what}: k is {k!r}, expected an integer, or the lowest and the highest diagonal")
    return ends[0], ends[1]


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
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: TensorLike = 0,
) -> Tensor:
    """Make matrices of their diagonals.

    Args:
        diagonal: Shape ``[..., n]``, one diagonal of each matrix; or, for several, the stack ``[..., diagonals, n]``.
        name: Name of the operation.
        k: A scalar: which diagonal, counted from the main one; or a vector of two: the lowest and the highest of them.
        num_rows: Rows of the matrices; -1 for as few as fit.
        num_cols: Columns of the matrices; -1 for as few as fit.
        padding_value: What is elsewhere, a scalar.

    Returns:
        ``[..., rows, columns]``.

    Raises:
        InvalidArgumentError: The diagonals do not fit together, or not the matrices.

    Examples:
        >>> session.run(tf.linalg.diag([1, 2], k=1))
        array([[0, 1, 0],
               [0, 0, 2],
               [0, 0, 0]], dtype=int32)
    """
    low, high = _band(k, "matrix_diag")
    plain = not isinstance(padding_value, Tensor) and padding_value == 0
    if (low, high, num_rows, num_cols) == (0, 0, -1, -1) and plain:
        return main_diag(diagonal, name)
    diagonal = convert_to_tensor(diagonal)
    attrs = {"low": low, "high": high, "num_rows": int(num_rows), "num_cols": int(num_cols)}
    return add_op(MATRIX_DIAG_V2, diagonal, cast(padding_value, diagonal.dtype), name=name, **attrs)


def _matrix_sizes(attr: Any, longest: int) -> tuple[int, int]:
    """Rows and columns of the matrices. Raises `ValueError` where the longest diagonal does not fit them."""
    low, high = attr("low"), attr("high")
    rows, columns = attr("num_rows"), attr("num_cols")
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    if rows < least_rows or columns < least_columns or (rows != least_rows and columns != least_columns):
        raise ValueError(f"diagonals {low} to {high}, the longest of {longest}, are not those of {rows} x {columns}")
    _check_band(low, high, rows, columns)
    return rows, columns


def _matrix_diag_kernel(ctx: KernelContext, diagonal: Array, padding: Array) -> Array:
    low, high = ctx.attr("low"), ctx.attr("high")
    stack = diagonal[..., None, :] if low == high else diagonal
    rows, columns = _matrix_sizes(ctx.attr, diagonal.shape[-1])
    matrices = ctx.xp.full((*stack.shape[:-2], rows, columns), padding, diagonal.dtype)
    for index, i, j in _places(rows, columns, low, high):
        matrices[..., i, j] = stack[..., index, : len(i)]
    return matrices


def _matrix_diag_shape(op: Operation) -> list[TensorShape]:
    shape, low, high = op.inputs[0].shape, op.attr("low"), op.attr("high")
    op.inputs[1].shape.assert_has_rank(0)
    if shape.rank is None:
        return [UNKNOWN]
    if shape.rank < (1 if low == high else 2):
        raise ValueError(
            f"the diagonals have shape {shape}, expected [..., n], of several diagonals [..., diagonals, n]"
        )
    outer = shape[:-1]
    if low != high:
        outer[-1:].assert_is_compatible_with([high - low + 1])
        outer = outer[:-1]
    longest = shape.sizes[-1]
    return [outer.concatenate([None, None] if longest is None else list(_matrix_sizes(op.attr, longest)))]


def _matrix_diag_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [matrix_diag_part(d_output, k=(op.attr("low"), op.attr("high"))), None]


MATRIX_DIAG_V2 = register(
    OpDef(
        name="MatrixDiagV2",
        inputs=("diagonal: T", "padding_value: T"),
        outputs=("output: T",),
        types=_TYPES,
        attrs=("low", "high", "num_rows", "num_cols"),
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
        InvalidArgumentError: The matrices have no such diagonal.
    """
    low, high = _band(k, "matrix_diag_part")
    if (low, high) == (0, 0):
        return main_diag_part(input, name)
    input = convert_to_tensor(input)
    return add_op(MATRIX_DIAG_PART_V2, input, cast(padding_value, input.dtype), name=name, low=low, high=high)


def _matrix_diag_part_kernel(ctx: KernelContext, input: Array, padding: Array) -> Array:
    low, high = ctx.attr("low"), ctx.attr("high")
    rows, columns = input.shape[-2:]
    _check_band(low, high, rows, columns)
    longest = _side((rows, columns), low, high)
    stack = ctx.xp.full((*input.shape[:-2], high - low + 1, longest), padding, input.dtype)
    for index, i, j in _places(rows, columns, low, high):
        stack[..., index, : len(i)] = input[..., i, j]
    return stack[..., 0, :] if low == high else stack


def _band_shape(matrices: TensorShape, low: int, high: int) -> TensorShape:
    if matrices.rank is None:
        return UNKNOWN
    if matrices.rank < 2:
        raise ValueError(f"expected matrices, found shape {matrices}")
    _check_band(low, high, *matrices.sizes[-2:])
    return (
        matrices[:-2]
        .concatenate([] if low == high else [high - low + 1])
        .concatenate([_side(matrices.sizes[-2:], low, high)])
    )


def _matrix_diag_part_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    return [_band_shape(op.inputs[0].shape, op.attr("low"), op.attr("high"))]


def _matrix_diag_part_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [matrix_set_diag(zeros_like(op.inputs[0]), d_output, k=(op.attr("low"), op.attr("high"))), None]


MATRIX_DIAG_PART_V2 = register(
    OpDef(
        name="MatrixDiagPartV2",
        inputs=("input: T", "padding_value: T"),
        outputs=("diagonal: T",),
        types=_TYPES,
        attrs=("low", "high"),
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
        InvalidArgumentError: The matrices have no such diagonal, or `diagonal` has another shape.
    """
    low, high = _band(k, "matrix_set_diag")
    if (low, high) == (0, 0):
        return set_main_diag(input, diagonal, name)
    return add_op(MATRIX_SET_DIAG_V2, input, diagonal, name=name, low=low, high=high)


def _matrix_set_diag_kernel(ctx: KernelContext, input: Array, diagonal: Array) -> Array:
    low, high = ctx.attr("low"), ctx.attr("high")
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
    matrices, diagonal = (tensor.shape for tensor in op.inputs)
    _band_shape(matrices, op.attr("low"), op.attr("high")).assert_is_compatible_with(diagonal)
    return [matrices]


def _matrix_set_diag_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    ends = op.attr("low"), op.attr("high")
    return [matrix_set_diag(d_output, zeros_like(op.inputs[1]), k=ends), matrix_diag_part(d_output, k=ends)]


MATRIX_SET_DIAG_V2 = register(
    OpDef(
        name="MatrixSetDiagV2",
        inputs=("input: T", "diagonal: T"),
        outputs=("output: T",),
        types=_TYPES,
        attrs=("low", "high"),
        shape=_matrix_set_diag_shape,
        kernels=on_every_device(_matrix_set_diag_kernel),
        gradient=_matrix_set_diag_gradient,
    )
)
