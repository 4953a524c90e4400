"""Products of matrices, and what is built from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor, register_operator
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape, broadcast_shapes
from tfray.ops.arithmetic_ops import alike, conj
from tfray.ops.broadcast_ops import sum_to_shape_of
from tfray.ops.precision import assign, is_half


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply matrices: the last two dimensions of `a` and `b`, for each of the leading ones.

    Args:
        a: Shape ``[..., n, k]``, a number dtype.
        b: Shape ``[..., k, m]``, same dtype; the leading dimensions broadcast.
        transpose_a: `a` has shape ``[..., k, n]``.
        transpose_b: `b` has shape ``[..., m, k]``.
        adjoint_a: As `transpose_a`, and the complex conjugate is taken.
        adjoint_b: As `transpose_b`, and the complex conjugate is taken.
        a_is_sparse: `a` has many zeros (accepted, of no effect).
        b_is_sparse: `b` has many zeros (accepted, of no effect).
        name: Name of the operation.

    Returns:
        Shape ``[..., n, m]``.

    Raises:
        InvalidArgumentError: The inner dimensions differ, a rank is below 2, or both ``transpose`` and
            ``adjoint`` are asked for one argument.
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise InvalidArgumentError("matmul: give transpose or adjoint for an argument, not both")
    a, b = alike(a, b)
    if adjoint_a or adjoint_b:
        a = conj(a) if adjoint_a else a
        b = conj(b) if adjoint_b else b
    transpose_a, transpose_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    matrices = (a.shape.rank == 2 and b.shape.rank == 2) or {a.shape.rank, b.shape.rank} == {2, None}
    definition = MAT_MUL if matrices else BATCH_MAT_MUL
    return add_op(definition, a, b, name=name or "MatMul", transpose_a=transpose_a, transpose_b=transpose_b)


def _mat_mul_kernel(ctx: KernelContext, a: Array, b: Array, out: Array | None = None) -> Array:
    # Views: BLAS reads either order, copies would cost more than the product of small matrices.
    if ctx.attr("transpose_a"):
        a = a.swapaxes(-1, -2)
    if ctx.attr("transpose_b"):
        b = b.swapaxes(-1, -2)
    dtype = ctx.output_dtype()
    try:
        if is_half(dtype):
            product = ctx.xp.matmul(a.astype(np.float32), b.astype(np.float32))
            return assign(ctx, product, dtype, out)
        return ctx.xp.matmul(a, b, out=out)
    except ValueError as error:
        raise InvalidArgumentError(f"cannot multiply matrices of shapes {a.shape} and {b.shape}") from error


def _mat_mul_shape(op: Operation) -> list[TensorShape]:
    a, b = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(2)
    return [_matrix_product(op, a, b)]


def _matrix_product(op: Operation, a: TensorShape, b: TensorShape) -> TensorShape:
    n, k = reversed(a.sizes) if op.attr("transpose_a") else a.sizes
    k_of_b, m = reversed(b.sizes) if op.attr("transpose_b") else b.sizes
    if k is not None and k_of_b is not None and k != k_of_b:
        raise ValueError(f"inner dimensions {k} and {k_of_b} differ")
    return TensorShape([n, m])


def _mat_mul_gradient(op: Operation, d_product: Tensor) -> list[Tensor | None]:
    a, b = op.inputs
    flip_a, flip_b = op.attr("transpose_a"), op.attr("transpose_b")
    left, right = conj(a), conj(b)
    if flip_a:
        d_a = matmul(right, d_product, transpose_a=flip_b, transpose_b=True)
    else:
        d_a = matmul(d_product, right, transpose_b=not flip_b)
    if flip_b:
        d_b = matmul(d_product, left, transpose_a=True, transpose_b=flip_a)
    else:
        d_b = matmul(left, d_product, transpose_a=not flip_a)
    return [d_a, d_b]


MAT_MUL = register(
    OpDef(
        name="MatMul",
        inputs=("a: T", "b: T"),
        outputs=("product: T",),
        types={"T": dtypes.NUMERIC},
        attrs=("transpose_a", "transpose_b"),
        shape=_mat_mul_shape,
        kernels=on_every_device(out_kernel(_mat_mul_kernel)),
        gradient=_mat_mul_gradient,
    )
)


def _batch_mat_mul_kernel(ctx: KernelContext, a: Array, b: Array, out: Array | None = None) -> Array:
    if min(a.ndim, b.ndim) < 2:
        raise InvalidArgumentError(f"matmul needs ranks of at least 2, got shapes {a.shape} and {b.shape}")
    if b.ndim == 2 and not ctx.attr("transpose_a") and a.flags.c_contiguous:
        # One product of tall matrices instead of many: the leading dimensions are rows.
        rows = a.reshape(-1, a.shape[-1]) if a.size else a.reshape(0, a.shape[-1])
        columns = b.shape[0 if ctx.attr("transpose_b") else 1]
        flat_out = None if out is None else out.reshape(-1, columns)
        if a.size and columns:
            return _mat_mul_kernel(ctx, rows, b, flat_out).reshape(*a.shape[:-1], columns)
    return _mat_mul_kernel(ctx, a, b, out)


def _batch_mat_mul_shape(op: Operation) -> list[TensorShape]:
    a, b = (tensor.shape for tensor in op.inputs)
    for shape in (a, b):
        if shape.rank is not None and shape.rank < 2:
            raise ValueError(f"shape {shape} is no matrix: the rank must be at least 2")
    if a.rank is None or b.rank is None:
        return [UNKNOWN]
    return [broadcast_shapes(a[:-2], b[:-2]).concatenate(_matrix_product(op, a[-2:], b[-2:]))]


def _batch_mat_mul_gradient(op: Operation, d_product: Tensor) -> list[Tensor | None]:
    d_a, d_b = _mat_mul_gradient(op, d_product)
    return [sum_to_shape_of(d_a, op.inputs[0]), sum_to_shape_of(d_b, op.inputs[1])]


BATCH_MAT_MUL = register(
    OpDef(
        name="BatchMatMul",
        inputs=("a: T", "b: T"),
        outputs=("product: T",),
        types={"T": dtypes.NUMERIC},
        attrs=("transpose_a", "transpose_b"),
        shape=_batch_mat_mul_shape,
        kernels=on_every_device(out_kernel(_batch_mat_mul_kernel)),
        gradient=_batch_mat_mul_gradient,
    )
)

register_operator("matmul", matmul)
