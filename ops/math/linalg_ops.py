"""Products of matrices, and what is built from them."""

from __future__ import annotations

import operator
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_alike, is_plain
from tfray.framework.graph import Operation, Tensor, register_operator
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.tensor_shape import UNKNOWN, TensorShape, broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import sum_to_shape_of
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.join_ops import concat, size_along
from tfray.ops.arrays.matrix_ops import matrix_diag_part
from tfray.ops.arrays.shape_ops import cast, index_tensor, rank, reshape, transpose
from tfray.ops.kernels.fast_products import KeptMatrix
from tfray.ops.kernels.products import inline_product, matrix_product
from tfray.ops.math.arithmetic_ops import conj, multiply
from tfray.ops.math.axis_ops import from_front, grouped
from tfray.ops.math.reduction_ops import reduce_sum


def matmul(
    a: TensorLike,
    b: TensorLike,
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
        b: Shape ``[..., k, m]``, same dtype; the leading dimensions broadcast. Of float32 and bfloat16, the product is
            float32.
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

    Examples:
        >>> session.run(tf.matmul([[1, 2], [3, 4]], [[10], [100]]))
        array([[210],
               [430]], dtype=int32)
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise InvalidArgumentError("matmul: give transpose or adjoint for an argument, not both")
    if {getattr(each, "dtype", None) for each in (a, b)} == {dtypes.float32, dtypes.bfloat16}:
        a, b = cast(a, dtypes.float32), cast(b, dtypes.float32)  # as TensorFlow's product of sparse matrices
    a, b = convert_alike(a, b)
    if adjoint_a or adjoint_b:
        a = conj(a) if adjoint_a else a
        b = conj(b) if adjoint_b else b
    transpose_a, transpose_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    matrices = (a.shape.rank == 2 and b.shape.rank == 2) or {a.shape.rank, b.shape.rank} == {2, None}
    definition = MAT_MUL if matrices else BATCH_MAT_MUL
    return add_op(definition, a, b, name=name or "MatMul", transpose_a=transpose_a, transpose_b=transpose_b)


def _mat_mul_kernel(ctx: KernelContext, a: Array, b: Array | KeptMatrix, out: Array | None = None) -> Array:
    # Views: BLAS reads either order, copies would cost more than the product of small matrices.
    if ctx.attr("transpose_a"):
        a = a.swapaxes(-1, -2)
    if not isinstance(b, KeptMatrix):
        b = _right_matrix(ctx, b)
    try:
        return matrix_product(ctx.xp, a, b, out)
    except ValueError as error:
        shape = b.matrix.shape if isinstance(b, KeptMatrix) else b.shape
        raise InvalidArgumentError(f"cannot multiply matrices of shapes {a.shape} and {shape}") from error


def _right_matrix(ctx: KernelContext, b: Array) -> Array:
    return b.swapaxes(-1, -2) if ctx.attr("transpose_b") else b


def _kept_matrix(ctx: KernelContext, b: Array) -> KeptMatrix:
    return KeptMatrix(_right_matrix(ctx, b))


def _mat_mul_shape(op: Operation) -> list[TensorShape]:
    a, b = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(2)
    return [_matrix_product(op, a, b)]


def _matrix_product(op: Operation, a: TensorShape, b: TensorShape) -> TensorShape:
    n, k = reversed(a.sizes) if op.attr("transpose_a") else a.sizes
    k_of_b, m = reversed(b.sizes) if op.attr("transpose_b") else b.sizes
    if k is not None and k_of_b is not None and k != k_of_b:
        raise ValueError(f"Dimensions must be equal, but are {k} and {k_of_b}: the inner ones")
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
        kernels={
            "CPU": out_kernel(_mat_mul_kernel, inline=inline_product, prepares=(1, _kept_matrix)),
            "GPU": out_kernel(_mat_mul_kernel),
        },
        gradient=_mat_mul_gradient,
    )
)


def _part_kernel(ctx: KernelContext, a: Array, b: Array | KeptMatrix, out: Array | None = None) -> Array:
    return _mat_mul_kernel(ctx, a, b if isinstance(b, KeptMatrix) else _part_of(ctx, b), out)


def _part_of(ctx: KernelContext, b: Array) -> Array:
    """What makes the wanted columns of the product."""
    part = slice(ctx.attr("begin"), ctx.attr("begin") + ctx.attr("size"))
    return b[part] if ctx.attr("transpose_b") else b[:, part]


def _kept_part(ctx: KernelContext, b: Array) -> KeptMatrix:
    return _kept_matrix(ctx, _part_of(ctx, b))


def _mat_mul_part_shape(op: Operation) -> list[TensorShape]:
    [whole] = _mat_mul_shape(op)
    return [TensorShape([whole.sizes[0], op.attr("size")])]


MAT_MUL_PART = register(
    OpDef(
        name="_MatMulPart",  # made of a product and a split when a step is compiled (`placement.fuse`)
        inputs=MAT_MUL.inputs,
        outputs=MAT_MUL.outputs,
        types=MAT_MUL.types,
        attrs=(*MAT_MUL.attrs, "begin", "size"),
        shape=_mat_mul_part_shape,
        kernels={"CPU": out_kernel(_part_kernel, prepares=(1, _kept_part)), "GPU": out_kernel(_part_kernel)},
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
            flat = _mat_mul_kernel(ctx, rows, b, flat_out)
            return flat.reshape(*a.shape[:-1], columns) if out is None else out
    return _mat_mul_kernel(ctx, a, b, out)


def _batch_mat_mul_shape(op: Operation) -> list[TensorShape]:
    a, b = (tensor.shape.with_rank_at_least(2) for tensor in op.inputs)
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


# -- built from products -------------------------------------------------------------------------------


def tensordot(a: TensorLike, b: TensorLike, axes: TensorLike, name: str | None = None) -> Tensor:
    """Multiply tensors and sum over dimensions of both, by one product of matrices.

    Args:
        a: Shape ``[...]``, a number dtype.
        b: Shape ``[...]``, same dtype.
        axes: How many of the last dimensions of `a` and of the first of `b` to sum over, an integer scalar; or two
            vectors (lists): the dimensions of `a` and, in the same order, those of `b`.
        name: Name of the operation.

    Returns:
        The shape of `a` and then that of `b`, without the dimensions summed over.

    Raises:
        InvalidArgumentError: `axes` do not fit.

    Examples:
        >>> session.run(tf.tensordot([[1, 2], [3, 4]], [10, 100], axes=1))
        array([210, 430], dtype=int32)
    """
    a, b = convert_alike(a, b)
    if isinstance(axes, Tensor) or not is_plain(axes):
        if isinstance(axes, Tensor) and axes.shape.rank == 1:
            raise InvalidArgumentError(f"tensordot: axes are {axes!r}, expected a number, or a vector for either input")
        axes = index_tensor(axes)
        if axes.dtype is not dtypes.int32:
            raise ValueError(f"tensordot: axes are {axes.dtype.name}, expected integers of int32")
        known = constant_value(axes)
        axes = axes if known is None else known
    if isinstance(axes, Tensor) or a.shape.rank is None or b.shape.rank is None:
        return _late_tensordot(a, b, axes, name or "Tensordot")
    axes_a, axes_b = _summed_axes(a, b, axes)
    rows, free_a = _as_matrix(a, axes_a, last=True)
    columns, free_b = _as_matrix(b, axes_b, last=False)
    flat = matmul(rows, columns)
    return reshape(flat, index_tensor([*free_a, *free_b]), name or "Tensordot")


def _late_tensordot(a: Tensor, b: Tensor, axes: Any, name: str) -> Tensor:
    """`tensordot` where the axes, or the ranks from which they are counted, are known only when a step runs."""
    is_count = axes.shape.rank == 0 if isinstance(axes, Tensor) else np.ndim(axes) == 0
    if is_count:
        axes_a, axes_b = range_(rank(a) - axes, rank(a)), range_(axes)
    else:
        axes_a, axes_b = (from_front(reshape(axes[i], [-1]), tensor) for i, tensor in enumerate((a, b)))
    rows, columns = grouped(a, axes_a, chosen_first=False), grouped(b, axes_b, chosen_first=True)
    return reshape(matmul(rows.matrix, columns.matrix), concat([rows.others, columns.others], 0), name)


def _summed_axes(a: Tensor, b: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    assert a.shape.rank is not None and b.shape.rank is not None
    if not isinstance(axes, (list, tuple)) and np.ndim(axes) == 0:
        count = operator.index(np.asarray(axes)[()])
        if count < 0:
            raise InvalidArgumentError(f"tensordot: 'axes' must be at least 0, got {count}")
        if count > min(a.shape.rank, b.shape.rank):
            raise InvalidArgumentError(
                "tensordot: 'axes' must not be larger than the number of dimensions of tensors: "
                f"cannot sum over {count} dimensions of {a.shape} and {b.shape}"
            )
        return list(range(a.shape.rank - count, a.shape.rank)), list(range(count))
    try:
        axes_a, axes_b = (list(map(operator.index, np.ravel(part).tolist())) for part in axes)
        axes_a = [normalize_axis(axis, a.shape.rank) for axis in axes_a]
        axes_b = [normalize_axis(axis, b.shape.rank) for axis in axes_b]
    except ValueError as error:
        raise InvalidArgumentError(f"tensordot: axes {axes!r} do not fit {a.shape} and {b.shape}: {error}") from error
    if len(axes_a) != len(axes_b):
        raise InvalidArgumentError(
            f"tensordot: Different number of contraction axes 'a' and 'b', {len(axes_a)} != {len(axes_b)}: each "
            "dimension of one is summed with one of the other"
        )
    if len(set(axes_a)) != len(axes_a) or len(set(axes_b)) != len(axes_b):
        raise InvalidArgumentError(f"tensordot: axes {axes!r} must name as many dimensions of both inputs, each once")
    return axes_a, axes_b


def _as_matrix(tensor: Tensor, summed: list[int], last: bool) -> tuple[Tensor, list[Any]]:
    """`tensor` as a matrix, its summed dimensions as columns or as rows; and the sizes of the other ones."""
    count = tensor.shape.rank or 0
    free = [axis for axis in range(count) if axis not in summed]
    order = free + summed if last else summed + free
    if order != list(range(count)):
        tensor = transpose(tensor, order)
    sizes = [size_along(tensor, axis) for axis in range(count)]
    parts = (sizes[: len(free)], sizes[len(free) :]) if last else (sizes[: len(summed)], sizes[len(summed) :])
    if not (len(parts[0]) == 1 and len(parts[1]) == 1):
        tensor = reshape(tensor, index_tensor([_product_of(part) for part in parts]))
    return tensor, parts[0] if last else parts[1]


def _product_of(sizes: list[Any]) -> Any:
    known = prod(extent for extent in sizes if not isinstance(extent, Tensor))
    unknown = [extent for extent in sizes if isinstance(extent, Tensor)]
    return reduce(multiply, unknown if known == 1 and unknown else [known, *unknown])


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """Sum the diagonal of matrices.

    Args:
        x: Shape ``[..., n, m]``, a number dtype.
        name: Name of the operation.

    Returns:
        Shape ``[...]``.
    """
    return reduce_sum(matrix_diag_part(x), -1, name=name or "Trace")


# -- vectors in space ----------------------------------------------------------------------------------


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """Compute the cross product of vectors in three dimensions.

    Args:
        a: Shape ``[..., 3]``, an integer or floating dtype.
        b: Same shape and dtype.
        name: Name of the operation.
    """
    return add_op(CROSS, a, b, name=name)


def _cross_kernel(ctx: KernelContext, a: Array, b: Array) -> Array:
    if a.shape != b.shape or a.shape[-1:] != (3,):
        raise InvalidArgumentError(f"cross needs two tensors of one shape [..., 3], got {a.shape} and {b.shape}")
    return ctx.xp.cross(a, b).astype(a.dtype, copy=False)


def _cross_shape(op: Operation) -> list[TensorShape]:
    merged = op.inputs[0].shape.merge_with(op.inputs[1].shape)
    if merged.rank == 0 or (merged.rank is not None and merged.sizes[-1] not in (3, None)):
        raise ValueError(f"the last dimension of {merged} must be 3")
    return [merged]


def _cross_gradient(op: Operation, d_product: Tensor) -> list[Tensor | None]:
    a, b = op.inputs
    return [cross(b, d_product), cross(d_product, a)]


CROSS = register(
    OpDef(
        name="Cross",
        inputs=("a: T", "b: T"),
        outputs=("product: T",),
        types={"T": dtypes.REAL},
        shape=_cross_shape,
        kernels=on_every_device(_cross_kernel),
        gradient=_cross_gradient,
    )
)
