"""Arithmetic with sparse tensors: sums, products with dense ones, reductions and softmax.

The public functions find out which elements share a position. Dense operations then compute the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph, register_operator
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.sparse_tensor import SparseLike, SparseTensor, SparseTensorValue
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Axes, TensorLike
from tfray.ops.arrays.broadcast_ops import broadcast_to, fill, ones_like, where, zeros_like
from tfray.ops.arrays.gather_ops import boolean_mask, gather, gather_nd, scatter_nd
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.shape_ops import cast, expand_dims, host_ints, index_tensor, reshape, transpose
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.kernels.coordinates import check_coordinates
from tfray.ops.kernels.gpu.device_scatter import combine_at
from tfray.ops.kernels.precision import is_half
from tfray.ops.math import arithmetic_ops as arithmetic
from tfray.ops.math.comparison_ops import greater_equal, less, logical_and, not_equal
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_all, reduce_sum
from tfray.ops.math.segment_ops import spread_segments, unsorted_segment_max, unsorted_segment_sum
from tfray.ops.sparse.sparse_layout_ops import dimensions, rank_of, sparse_retain
from tfray.ops.sparse.sparse_ops import as_sparse, distinct_coordinates

Elementwise = Callable[..., Tensor]


# -- with another sparse tensor ------------------------------------------------------------------------


def _united(a: SparseTensor, b: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """The positions of both, and the values of each at all of these, 0 where it has none."""
    if not a.shape.is_compatible_with(b.shape):
        raise InvalidArgumentError(f"sparse tensors of shapes {a.shape} and {b.shape}: expected one shape")
    a.dense_shape.shape.assert_is_compatible_with(b.dense_shape.shape)
    distinct, group = distinct_coordinates(concat([a.indices, b.indices], 0), a.dense_shape)
    count, of_a = shape_of(distinct)[0], shape_of(a.values)[0]
    values = convert_to_tensor(b.values, a.dtype)
    return (
        distinct,
        unsorted_segment_sum(a.values, group[:of_a], count),
        unsorted_segment_sum(values, group[of_a:], count),
    )


def sparse_add(
    a: TensorLike | SparseLike,
    b: TensorLike | SparseLike,
    threshold: TensorLike | None = None,
    thresh: TensorLike | None = None,
) -> Any:
    """Add two tensors of which at least one is sparse.

    Args:
        a: A `SparseTensor` or a tensor, any shape, a number dtype.
        b: A `SparseTensor` or a tensor of the same shape.
        threshold: A scalar: where both are sparse, sums whose absolute value is below are left out.
        thresh: Old name of `threshold`.

    Returns:
        The same shape: a `SparseTensor` of two sparse tensors; otherwise a tensor.

    Raises:
        TypeError: Both are dense.
    """
    of_sparse = [isinstance(each, (SparseTensor, SparseTensorValue)) for each in (a, b)]
    if not any(of_sparse):
        raise TypeError("sparse_add takes at least one tf.SparseTensor; tf.add adds dense tensors")
    if not all(of_sparse):
        sparse, dense = (as_sparse(a), b) if of_sparse[0] else (as_sparse(b), a)
        tensor, scattered = convert_to_tensor(dense, sparse.dtype), _scattered(sparse)
        if not tensor.shape.is_compatible_with(scattered.shape):
            raise InvalidArgumentError(f"sparse_add: a and b have the shapes {tensor.shape} and {scattered.shape}")
        return arithmetic.add(tensor, scattered)
    threshold = thresh if threshold is None else threshold
    a, b = as_sparse(a, "a"), as_sparse(b, "b")
    with get_default_graph().name_scope("SparseAdd"):
        distinct, of_a, of_b = _united(a, b)
        total = SparseTensor(distinct, arithmetic.add(of_a, of_b), a.dense_shape)
        if threshold is None or (isinstance(threshold, (int, float)) and threshold == 0):
            return total
        size = arithmetic.abs(total.values)
        return sparse_retain(total, greater_equal(size, convert_to_tensor(threshold, size.dtype)))


def _scattered(sparse: SparseTensor) -> Tensor:
    """The dense tensor of a sparse one; equal positions add up."""
    return scatter_nd(sparse.indices, sparse.values, sparse.dense_shape)


def sparse_maximum(sp_a: SparseLike, sp_b: SparseLike, name: str | None = None) -> SparseTensor:
    """The greater element at each position where either sparse tensor has one; absent ones count as 0.

    Args:
        sp_a: A `SparseTensor` of any shape, of real numbers.
        sp_b: A `SparseTensor` of the same shape.
        name: Name scope of the operations.

    Returns:
        Same shape and dtype.
    """
    return _of_both(arithmetic.maximum, sp_a, sp_b, name or "SparseSparseMaximum")


def sparse_minimum(sp_a: SparseLike, sp_b: SparseLike, name: str | None = None) -> SparseTensor:
    """The smaller element at each position where either sparse tensor has one: same shape and dtype (as
    `sparse_maximum`).
    """
    return _of_both(arithmetic.minimum, sp_a, sp_b, name or "SparseSparseMinimum")


def _of_both(function: Elementwise, sp_a: SparseLike, sp_b: SparseLike, name: str) -> SparseTensor:
    with get_default_graph().name_scope(name):
        a, b = as_sparse(sp_a, "sp_a"), as_sparse(sp_b, "sp_b")
        distinct, of_a, of_b = _united(a, b)
        return SparseTensor(distinct, function(of_a, of_b), a.dense_shape)


# -- with a dense tensor -------------------------------------------------------------------------------


def _at_elements(sparse: SparseTensor, dense: TensorLike) -> Tensor:
    """The elements of a dense tensor, broadcast to the shape of a sparse one, at the positions of that."""
    dense = convert_to_tensor(dense, sparse.dtype)
    sizes, shape = dense.shape, sparse.shape
    if sizes.is_fully_defined() and shape.is_fully_defined() and len(sizes) <= len(shape):
        wide = shape[len(shape) - len(sizes) :]
        if all(size in (1, whole) for size, whole in zip(sizes.as_list(), wide.as_list(), strict=True)):
            # Indices of the dense tensor itself: nothing is broadcast.
            last = np.array(sizes.as_list(), np.int64) - 1
            return gather_nd(dense, arithmetic.minimum(sparse.indices[:, len(shape) - len(sizes) :], last))
    return gather_nd(broadcast_to(dense, sparse.dense_shape), sparse.indices)


def sparse_dense_multiply(sparse: SparseTensor, dense: TensorLike) -> SparseTensor:
    """Multiply a sparse tensor by a dense one, which is broadcast: ``sparse * dense``."""
    values = arithmetic.multiply(sparse.values, _at_elements(sparse, dense))
    return SparseTensor(sparse.indices, values, sparse.dense_shape)


def sparse_dense_divide(sparse: SparseTensor, dense: TensorLike) -> SparseTensor:
    """Divide a sparse tensor by a dense one, which is broadcast: ``sparse / dense``."""
    values = arithmetic.truediv(sparse.values, _at_elements(sparse, dense))
    return SparseTensor(sparse.indices, values, sparse.dense_shape)


register_operator("sparse_mul", sparse_dense_multiply)
register_operator("sparse_truediv", sparse_dense_divide)


# -- reductions ----------------------------------------------------------------------------------------


def _axes(axis: Axes | None, reduction_axes: Axes | None, rank: int | Tensor) -> list[int] | Tensor:
    """The numbers of the reduced dimensions, each once; an integer tensor of any where the graph does not say them."""
    axis = by_either_name("sparse_reduce", axis=axis, reduction_axes=reduction_axes)
    if axis is None:
        return dimensions(rank) if isinstance(rank, Tensor) else list(range(rank))
    places = index_tensor(axis)
    if not places.dtype.is_integer or (isinstance(axis, Tensor) and axis.dtype is not dtypes.int32):
        raise TypeError(f"the axes of a sparse reduction are {axis}, expected int32")
    places.shape.with_rank_at_most(1)
    known = constant_value(places)
    if known is None or isinstance(rank, Tensor):
        return reshape(places, [-1])
    return sorted({normalize_axis(int(each), rank) for each in np.ravel(known)})


def _keeps(keepdims: bool | None, keep_dims: bool | None) -> bool:
    return bool(by_either_name("sparse_reduce", keepdims=keepdims, keep_dims=keep_dims))


def _columns(sparse: SparseTensor, kept: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Indices and sizes of some dimensions of a sparse tensor."""
    places = np.array(kept, np.int32)
    return gather(sparse.indices, places, axis=1), gather(sparse.dense_shape, places)


def _reduced(
    function: Callable[[Tensor, Tensor, Tensor], Tensor],
    sp_input: SparseLike,
    axis: Axes | None,
    keepdims: bool | None,
    reduction_axes: Axes | None,
    keep_dims: bool | None,
    to_sparse: bool,
    name: str,
) -> Any:
    with get_default_graph().name_scope(name):
        sparse = as_sparse(sp_input)
        rank = rank_of(sparse)
        axes = _axes(axis, reduction_axes, rank)
        if isinstance(axes, Tensor) or isinstance(rank, Tensor):
            return _reduced_along(function, sparse, axes, _keeps(keepdims, keep_dims), to_sparse, rank)
        kept = [i for i in range(rank) if i not in axes]
        if not (kept or to_sparse or _keeps(keepdims, keep_dims)):
            # A scalar, of one group, or of none where there are no elements.
            group = zeros_like(sparse.indices[:, 0])
            return reduce_sum(function(sparse.values, group, arithmetic.minimum(shape_of(group)[0], 1)))
        indices, sizes = _columns(sparse, kept)
        distinct, group = distinct_coordinates(indices, sizes)
        values = function(sparse.values, group, shape_of(distinct)[0])
        if _keeps(keepdims, keep_dims):
            # Dimensions that are kept keep their index and size; the others take index 0 and size 1 from an extra row.
            places = np.array([kept.index(i) if i in kept else len(kept) for i in range(rank)], np.int32)
            distinct = gather(
                concat([distinct, fill(stack([shape_of(distinct)[0], 1]), np.int64(0))], 1), places, axis=1
            )
            sizes = gather(concat([sizes, np.ones(1, np.int64)], 0), places)
        result = SparseTensor(distinct, values, sizes)
        return result if to_sparse else _scattered(result)


def _reduced_along(
    function: Callable[[Tensor, Tensor, Tensor], Tensor],
    sparse: SparseTensor,
    axes: Any,
    keeps: bool,
    to_sparse: bool,
    rank: int | Tensor,
) -> Any:
    """`_reduced` along dimensions that only a step knows: they are kept first, with size 1."""
    numbers, axes = dimensions(rank), cast(axes, dtypes.int32)
    is_there = logical_and(greater_equal(axes, -rank), less(axes, rank))
    check = Assert(reduce_all(is_there), ["sparse reduction: an axis is not in [-rank, rank):", axes, rank])
    with get_default_graph().control_dependencies([check]):
        axes = axes % rank
    is_kept = reduce_all(not_equal(numbers, expand_dims(axes, 1)), 0)
    indices = arithmetic.multiply(sparse.indices, cast(is_kept, dtypes.int64))
    sizes = where(is_kept, sparse.dense_shape, ones_like(sparse.dense_shape))
    distinct, group = distinct_coordinates(indices, sizes)
    values = function(sparse.values, group, shape_of(distinct)[0])
    if not keeps:
        kept = boolean_mask(numbers, is_kept)
        if not to_sparse:
            return reshape(scatter_nd(distinct, values, sizes), gather(sizes, kept))
        distinct, sizes = gather(distinct, kept, axis=1), gather(sizes, kept)
    result = SparseTensor(distinct, values, sizes)
    return result if to_sparse else _scattered(result)


def sparse_reduce_sum(
    sp_input: SparseLike,
    axis: Axes | None = None,
    keepdims: bool | None = None,
    reduction_axes: Axes | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Add up the elements of a sparse tensor along dimensions.

    Args:
        sp_input: A `SparseTensor` of any shape, of numbers.
        axis: The dimensions, an integer or a vector (a list) of them; all when None. Of a tensor that only a step knows
            the rank of the result is not known.
        keepdims: A bool: keep them with size 1.
        reduction_axes: Old name of `axis`.
        keep_dims: Old name of `keepdims`.

    Returns:
        A dense tensor: the shape of `sp_input` without the dimensions, or with size 1 there.
    """
    arguments = sp_input, axis, keepdims, reduction_axes, keep_dims
    return _reduced(unsorted_segment_sum, *arguments, False, "SparseReduceSum")


def sparse_reduce_sum_sparse(
    sp_input: SparseLike,
    axis: Axes | None = None,
    keepdims: bool | None = None,
    reduction_axes: Axes | None = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """`sparse_reduce_sum` whose result is sparse, of the same shape."""
    arguments = sp_input, axis, keepdims, reduction_axes, keep_dims
    return _reduced(unsorted_segment_sum, *arguments, True, "SparseReduceSumSparse")


def sparse_reduce_max(
    sp_input: SparseLike,
    axis: Axes | None = None,
    keepdims: bool | None = None,
    reduction_axes: Axes | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The greatest of the elements that are there, along dimensions; 0 where there are none.

    The result is dense: the shape of `sp_input` without the dimensions, or with size 1 there. Arguments are as for
    `sparse_reduce_sum`.
    """
    arguments = sp_input, axis, keepdims, reduction_axes, keep_dims
    return _reduced(unsorted_segment_max, *arguments, False, "SparseReduceMax")


def sparse_reduce_max_sparse(
    sp_input: SparseLike,
    axis: Axes | None = None,
    keepdims: bool | None = None,
    reduction_axes: Axes | None = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """`sparse_reduce_max` whose result is sparse, of the same shape."""
    arguments = sp_input, axis, keepdims, reduction_axes, keep_dims
    return _reduced(unsorted_segment_max, *arguments, True, "SparseReduceMaxSparse")


def sparse_softmax(sp_input: SparseLike, name: str | None = None) -> SparseTensor:
    """Softmax over the last dimension, of the elements that are there.

    Args:
        sp_input: A `SparseTensor` of floats of rank 2 or more.
        name: Name scope of the operations.

    Returns:
        Same shape and dtype.
    """
    with get_default_graph().name_scope(name or "SparseSoftmax"):
        sparse = as_sparse(sp_input)
        rank = rank_of(sparse)
        if not isinstance(rank, Tensor) and rank < 2:
            raise ValueError(f"sparse_softmax needs rank 2 or more, not {rank}")
        distinct, row = distinct_coordinates(sparse.indices[:, :-1], sparse.dense_shape[:-1])
        count = shape_of(distinct)[0]
        largest = spread_segments(unsorted_segment_max(sparse.values, row, count), row)
        weights = arithmetic.exp(arithmetic.subtract(sparse.values, largest))
        total = spread_segments(unsorted_segment_sum(weights, row, count), row)
        return SparseTensor(sparse.indices, arithmetic.realdiv(weights, total), sparse.dense_shape)


# -- matrix products -----------------------------------------------------------------------------------


def sparse_tensor_dense_matmul(
    sp_a: SparseLike, b: TensorLike, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Multiply a sparse matrix by a dense one.

    Args:
        sp_a: A `SparseTensor` of rank 2; its elements may be in any order, equal positions add up.
        b: Shape ``[k, n]``, of the same dtype.
        adjoint_a: Use the conjugate transpose of `sp_a`.
        adjoint_b: Use the conjugate transpose of `b`.
        name: Name of the operation.

    Returns:
        Shape ``[m, n]``.
    """
    sparse = as_sparse(sp_a, "sp_a")
    return add_op(
        SPARSE_TENSOR_DENSE_MATMUL,
        sparse.indices,
        sparse.values,
        sparse.dense_shape,
        b,
        name=name,
        adjoint_a=bool(adjoint_a),
        adjoint_b=bool(adjoint_b),
    )


@lru_cache(maxsize=2)
def _sparse_module(name: str) -> Any:
    from importlib import import_module

    return import_module("scipy.sparse" if name == "numpy" else "cupyx.scipy.sparse")


def _sparse_tensor_dense_matmul_kernel(
    ctx: KernelContext, indices: Array, values: Array, shape: Array, b: Array
) -> Array:
    xp, sizes, dtype = ctx.xp, host_ints(ctx, shape), ctx.output_dtype()
    if xp is np:
        check_coordinates(indices, values, sizes)
    rows, columns = indices[:, 0], indices[:, 1]
    if ctx.attr("adjoint_a"):
        rows, columns, sizes, values = columns, rows, sizes[::-1], values.conj()
    if ctx.attr("adjoint_b"):
        b = b.T.conj() if b.dtype.kind == "c" else b.T
    if sizes[1] != b.shape[0]:
        raise InvalidArgumentError(f"a matrix of shape {sizes} cannot be multiplied by one of shape {list(b.shape)}")
    if is_half(dtype):
        values, b = values.astype(np.float32), b.astype(np.float32)
    if xp is not np and dtype.kind in "iu":
        total = xp.zeros((sizes[0], b.shape[1]), dtype)
        combine_at(xp, "add", total, rows, values[:, None] * b[columns])
        return total
    matrix = _sparse_module(xp.__name__).coo_matrix((values, (rows, columns)), shape=tuple(sizes)).tocsr()
    return (matrix @ xp.ascontiguousarray(b)).astype(dtype, copy=False)


def _sparse_tensor_dense_matmul_shape(op: Operation) -> list[TensorShape]:
    indices, values, shape, b = (tensor.shape for tensor in op.inputs)
    indices.merge_with(values.with_rank(1).concatenate(shape.merge_with([2])))
    known = constant_value(op.inputs[2])
    a = TensorShape([None, None] if known is None else [int(size) for size in known])
    if op.attr("adjoint_a"):
        a = TensorShape(a.sizes[::-1])
    b = TensorShape(b.with_rank(2).sizes[::-1]) if op.attr("adjoint_b") else b.with_rank(2)
    TensorShape([a.sizes[1]]).assert_is_compatible_with([b.sizes[0]])
    return [TensorShape([a.sizes[0], b.sizes[1]])]


def _sparse_tensor_dense_matmul_gradient(op: Operation, d_product: Tensor) -> list[Tensor | None]:
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op.attr("adjoint_a"), op.attr("adjoint_b")
    sparse = SparseTensor(indices, values, shape)
    d_b = sparse_tensor_dense_matmul(sparse, d_product, adjoint_a=not adjoint_a)
    if adjoint_b:
        d_b, b = transpose(d_b, [1, 0], conjugate=True), transpose(b, [1, 0], conjugate=True)
    # Of each element: the row of one matrix that it multiplied, times that of the other to which it was added.
    rows, columns = (indices[:, 1], indices[:, 0]) if adjoint_a else (indices[:, 0], indices[:, 1])
    added, multiplied = gather(d_product, rows), gather(b, columns)
    if adjoint_a:
        added, multiplied = multiplied, added
    d_values = reduce_sum(arithmetic.multiply(added, arithmetic.conj(multiplied)), 1)
    return [None, d_values, None, d_b]


SPARSE_TENSOR_DENSE_MATMUL = register(
    OpDef(
        name="SparseTensorDenseMatMul",
        inputs=("a_indices: int64", "a_values: T", "a_shape: int64", "b: T"),
        outputs=("product: T",),
        host_inputs=("a_shape",),
        types={"T": (*dtypes.FLOATS, dtypes.int32, dtypes.int64, *dtypes.COMPLEX)},
        attrs=("adjoint_a", "adjoint_b"),
        shape=_sparse_tensor_dense_matmul_shape,
        kernels=on_every_device(_sparse_tensor_dense_matmul_kernel),
        gradient=_sparse_tensor_dense_matmul_gradient,
    )
)


def sparse_matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply dense matrices that may have many zeros. Public as ``tf.sparse_matmul``.

    Args:
        a: A matrix of float32 or bfloat16.
        b: A matrix of float32 or bfloat16.
        transpose_a: Use the transpose of `a`.
        transpose_b: Use the transpose of `b`.
        a_is_sparse: Accepted for TensorFlow 1's sake: the dense product is faster here.
        b_is_sparse: Likewise.
        name: Name of the operation.

    Returns:
        A float32 matrix.
    """
    wide_a, wide_b = (cast(convert_to_tensor(each), dtypes.float32) for each in (a, b))
    for matrix in (wide_a, wide_b):
        matrix.shape.assert_has_rank(2)
    return matmul(wide_a, wide_b, transpose_a, transpose_b, name=name)
