"""Diagonals and bands of matrices."""

from __future__ import annotations

from typing import Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import MASK_TYPES, zeros_like
from tfray.ops.arrays.shape_ops import cast, host_int
from tfray.ops.kernels.precision import choose

_TYPES: Final = {"T": (*dtypes.NUMERIC, dtypes.bool_)}


# -- tensors as diagonals ------------------------------------------------------------------------------


def diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """Put a tensor on the diagonal of zeros.

    Args:
        diagonal: Shape ``[n_1, ..., n_k]``, numeric or bool.
        name: Name of the operation.

    Returns:
        Shape ``[n_1, ..., n_k, n_1, ..., n_k]``, where ``result[i..., i...] == diagonal[i...]``.

    Examples:
        >>> session.run(tf.diag([1, 2]))
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    return add_op(DIAG, diagonal, name=name)


def _diag_kernel(ctx: KernelContext, diagonal: Array) -> Array:
    return ctx.xp.diag(ctx.xp.ravel(diagonal)).reshape(diagonal.shape * 2)


def _diag_shape(op: Operation) -> list[TensorShape]:
    if op.inputs[0].shape.rank == 0:
        raise ValueError("diag needs at least one dimension")
    return [op.inputs[0].shape.concatenate(op.inputs[0].shape)]


def _diag_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [diag_part(d_output)]


DIAG = register(
    OpDef(
        name="Diag",
        inputs=("diagonal: T",),
        outputs=("output: T",),
        types=_TYPES,
        shape=_diag_shape,
        kernels=on_every_device(_diag_kernel),
        gradient=_diag_gradient,
    )
)


def diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """Read the diagonal of a tensor of shape ``[n_1, ..., n_k, n_1, ..., n_k]``: the transpose of `diag`."""
    return add_op(DIAG_PART, input, name=name)


def _diag_part_kernel(ctx: KernelContext, input: Array) -> Array:
    half = input.shape[: input.ndim // 2]
    if input.ndim % 2 or input.shape != half * 2:
        raise InvalidArgumentError(f"diag_part: shape {input.shape} is not one shape twice")
    count = ctx.xp.empty(half, bool).size
    return ctx.xp.diagonal(input.reshape(count, count)).reshape(half)


def _diag_part_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    if shape.rank is None:
        return [UNKNOWN]
    if shape.rank % 2 or shape.rank == 0:
        raise ValueError(f"diag_part needs an even rank, not that of {shape}")
    return [shape[: shape.rank // 2].merge_with(shape[shape.rank // 2 :])]


def _diag_part_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [diag(d_output)]


DIAG_PART = register(
    OpDef(
        name="DiagPart",
        inputs=("input: T",),
        outputs=("diagonal: T",),
        types=_TYPES,
        shape=_diag_part_shape,
        kernels=on_every_device(_diag_part_kernel),
        gradient=_diag_part_gradient,
    )
)


# -- batches of matrices -------------------------------------------------------------------------------


def matrix_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """Make diagonal matrices: shape ``[..., n, n]`` from ``[..., n]``."""
    return add_op(MATRIX_DIAG, diagonal, name=name or "diag")


def _matrix_diag_kernel(ctx: KernelContext, diagonal: Array) -> Array:
    places = ctx.xp.arange(diagonal.shape[-1])
    matrices = ctx.xp.zeros((*diagonal.shape, places.size), diagonal.dtype)
    matrices[..., places, places] = diagonal
    return matrices


def _check_rank(found: int | None, least: int, what: str) -> None:
    if found is not None and found < least:
        raise InvalidArgumentError(
            f"{what} must be at least {least}-dim: Shape must be at least rank {least} but is rank {found}"
        )


def _matrix_diag_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    _check_rank(shape.rank, 1, "diagonal")
    return [shape.concatenate(shape[-1:])]


def _matrix_diag_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [matrix_diag_part(d_output)]


MATRIX_DIAG = register(
    OpDef(
        name="MatrixDiag",
        inputs=("diagonal: T",),
        outputs=("output: T",),
        types=_TYPES,
        shape=_matrix_diag_shape,
        kernels=on_every_device(_matrix_diag_kernel),
        gradient=_matrix_diag_gradient,
    )
)


def matrix_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """Read the main diagonals of matrices: shape ``[..., min(m, n)]`` from ``[..., m, n]``."""
    return add_op(MATRIX_DIAG_PART, input, name=name or "diag_part")


def _matrix_diag_part_kernel(ctx: KernelContext, input: Array) -> Array:
    return ctx.xp.diagonal(input, axis1=-2, axis2=-1)


def _matrix_diag_part_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    if shape.rank is None:
        return [UNKNOWN]
    _check_rank(shape.rank, 2, "input")
    rows, columns = shape.sizes[-2:]
    count = None if rows is None or columns is None else min(rows, columns)
    return [shape[:-2].concatenate([count])]


def _matrix_diag_part_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [matrix_set_diag(zeros_like(op.inputs[0]), d_output)]


MATRIX_DIAG_PART = register(
    OpDef(
        name="MatrixDiagPart",
        inputs=("input: T",),
        outputs=("diagonal: T",),
        types=_TYPES,
        shape=_matrix_diag_part_shape,
        kernels=on_every_device(_matrix_diag_part_kernel),
        gradient=_matrix_diag_part_gradient,
    )
)


def matrix_set_diag(input: TensorLike, diagonal: TensorLike, name: str | None = None) -> Tensor:
    """Replace the main diagonals of matrices.

    Args:
        input: Shape ``[..., m, n]``, numeric or bool.
        diagonal: Shape ``[..., min(m, n)]``, the same dtype.
        name: Name of the operation.
    """
    return add_op(MATRIX_SET_DIAG, input, diagonal, name=name or "set_diag")


def _matrix_set_diag_kernel(ctx: KernelContext, input: Array, diagonal: Array) -> Array:
    places = ctx.xp.arange(min(input.shape[-2:]))
    if diagonal.shape != (*input.shape[:-2], places.size):
        raise InvalidArgumentError(f"diagonals of shape {diagonal.shape} do not fit matrices of shape {input.shape}")
    matrices = input.copy()
    matrices[..., places, places] = diagonal
    return matrices


def _matrix_set_diag_shape(op: Operation) -> list[TensorShape]:
    matrices, diagonal = op.inputs[0].shape, op.inputs[1].shape
    _check_rank(diagonal.rank, 1, "diagonal")
    _matrix_diag_part_shape(op)[0].assert_is_compatible_with(diagonal)
    if diagonal.rank is None:
        return [matrices]
    return [matrices.merge_with(diagonal[:-1].concatenate([None, None]))]


def _matrix_set_diag_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [matrix_set_diag(d_output, zeros_like(op.inputs[1])), matrix_diag_part(d_output)]


MATRIX_SET_DIAG = register(
    OpDef(
        name="MatrixSetDiag",
        inputs=("input: T", "diagonal: T"),
        outputs=("output: T",),
        types=_TYPES,
        shape=_matrix_set_diag_shape,
        kernels=on_every_device(_matrix_set_diag_kernel),
        gradient=_matrix_set_diag_gradient,
    )
)


def matrix_band_part(
    input: TensorLike, num_lower: TensorLike, num_upper: TensorLike, name: str | None = None
) -> Tensor:
    """Set everything outside a band around the diagonal to zero.

    Args:
        input: Shape ``[..., m, n]``, numeric or bool.
        num_lower: Scalar integer: how many diagonals below the main one to keep; negative keeps all.
        num_upper: Scalar integer: the same above.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `input`.
    """
    lower, upper = (
        cast(number, dtypes.int64) if isinstance(number, Tensor) else convert_to_tensor(number, dtypes.int64)
        for number in (num_lower, num_upper)
    )
    return add_op(MATRIX_BAND_PART, input, lower, upper, name=name)


def _matrix_band_part_kernel(ctx: KernelContext, input: Array, num_lower: Array, num_upper: Array) -> Array:
    lower, upper = host_int(ctx, num_lower), host_int(ctx, num_upper)
    for what, count, most in (("num_lower", lower, input.shape[-2]), ("num_upper", upper, input.shape[-1])):
        if count > most:
            raise InvalidArgumentError(f"{what} must be negative or at most {most}, got {count}")
    rows, columns = (ctx.xp.arange(size) for size in input.shape[-2:])
    above = columns - rows[:, None]
    band = ctx.xp.ones(input.shape[-2:], bool)
    if lower >= 0:
        band &= above >= -lower
    if upper >= 0:
        band &= above <= upper
    bits = MASK_TYPES.get(input.dtype.itemsize)
    if bits is None or ctx.xp is not np or not input.flags.c_contiguous:
        return choose(ctx.xp, band, input, ctx.xp.zeros((), input.dtype))
    # Without branches this is three times as fast as `where`.
    return np.bitwise_and(input.view(bits), np.negative(band.view(np.int8), dtype=bits)).view(input.dtype)


def _matrix_band_part_shape(op: Operation) -> list[TensorShape]:
    _matrix_diag_part_shape(op)  # which checks that there are matrices
    for number in op.inputs[1:]:
        number.shape.assert_has_rank(0)
    return [op.inputs[0].shape]


def _matrix_band_part_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [matrix_band_part(d_output, op.inputs[1], op.inputs[2]), None, None]


MATRIX_BAND_PART = register(
    OpDef(
        name="MatrixBandPart",
        inputs=("input: T", "num_lower: int64", "num_upper: int64"),
        outputs=("band: T",),
        host_inputs=("num_lower", "num_upper"),
        types=_TYPES,
        shape=_matrix_band_part_shape,
        kernels=on_every_device(_matrix_band_part_kernel),
        gradient=_matrix_band_part_gradient,
    )
)
