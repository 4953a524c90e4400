"""Sparse tensors: made, fed, put in order, turned into dense ones and back.

Operations take and return the three tensors of a `SparseTensor`; public functions take and return the whole. Values
flow as in a gather: a gradient goes back to the elements from which a result came.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_shape
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, on_every_device, register
from tfray.framework.sparse_tensor import SparseTensor, SparseTensorValue
from tfray.framework.tensor_shape import TensorShape, as_shape
from tfray.ops.arithmetic_ops import subtract
from tfray.ops.broadcast_ops import fill, where
from tfray.ops.comparison_ops import not_equal
from tfray.ops.construction_ops import range_
from tfray.ops.coordinates import ascending_positions, check_coordinates, positions, where_among
from tfray.ops.gather_ops import gather_nd
from tfray.ops.join_ops import stack
from tfray.ops.reduction_ops import reduce_sum
from tfray.ops.shape_ops import cast, host_ints
from tfray.ops.shape_ops import shape as shape_of
from tfray.ops.source_ops import placeholder

# -- what sparse operations share ----------------------------------------------------------------------


def as_sparse(value: Any, what: str = "sp_input") -> SparseTensor:
    """`value` as a `SparseTensor`.

    Raises:
        TypeError: It is neither a `SparseTensor` nor a `SparseTensorValue`.
    """
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        return SparseTensor.from_value(value)
    raise TypeError(f"{what} must be a tf.SparseTensor, not {value!r}")


def sparse_parts(op: Operation, first: int = 0) -> tuple[int | None, int | None]:
    """Number of elements and rank of a sparse tensor among the inputs of `op`, None where unknown.

    Args:
        op: Takes indices, values and shape as three inputs in a row.
        first: Index of the first of the three.

    Raises:
        ValueError: The three do not fit each other.
    """
    indices, values, shape = (tensor.shape for tensor in op.inputs[first : first + 3])
    merged = indices.merge_with(values.with_rank(1).concatenate(shape.with_rank(1)))
    return merged.sizes[0], merged.sizes[1]


def sparse_shapes(count: int | None, rank: int | None) -> list[TensorShape]:
    """Static shapes of indices, values and shape of a sparse tensor."""
    return [TensorShape([count, rank]), TensorShape([count]), TensorShape([rank])]


def sparse_positions(places: Any, among: Any, dense_shape: Any, name: str | None = None) -> Tensor:
    """Find coordinates among others.

    Args:
        places: Shape ``[n, rank]``: the coordinates to look for.
        among: Shape ``[m, rank]``: distinct coordinates, in row-major order.
        dense_shape: Shape ``[rank]``: what both are within.
        name: Name of the operation.

    Returns:
        Shape ``[n]``, int64: the row of `among` that each equals, and -1 where there is none.
    """
    return add_op(SPARSE_POSITIONS, places, among, dense_shape, name=name)


def _sparse_positions_kernel(ctx: KernelContext, places: Array, among: Array, dense_shape: Array) -> Array:
    sizes = host_ints(ctx, dense_shape)
    check_coordinates(places, None, sizes)
    return where_among(positions(places, sizes), ascending_positions(among, None, sizes))


def _sparse_positions_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank(2)[:1]]


SPARSE_POSITIONS = register(
    OpDef(
        name="SparsePositions",
        inputs=("places: int64", "among: int64", "dense_shape: int64"),
        outputs=("output: int64",),
        shape=_sparse_positions_shape,
        kernels=on_cpu(_sparse_positions_kernel),
    )
)


# -- made ----------------------------------------------------------------------------------------------


def sparse_placeholder(dtype: DTypeLike, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor whose value must be fed.

    Args:
        dtype: Dtype of the elements.
        shape: Shape of the dense tensor, if it is known; dimensions may be None.
        name: Prefix of the names of the three placeholders.

    Returns:
        A `SparseTensor`, fed with a `SparseTensorValue`, or with indices, values and shape.
    """
    prefix = "" if name is None else f"{name}/"
    dense_shape: Any = shape
    rank = None if shape is None or isinstance(shape, Tensor) else as_shape(shape).rank
    if isinstance(shape, Tensor):
        rank = shape.shape.with_rank(1).sizes[0]
    elif shape is None or not as_shape(shape).is_fully_defined():
        dense_shape = placeholder(dtypes.int64, [rank], f"{prefix}shape" if name else None)
    else:
        dense_shape = np.array(as_shape(shape).as_list(), np.int64)
    values = placeholder(dtype, [None], f"{prefix}values" if name else None)
    indices = placeholder(dtypes.int64, [None, rank], f"{prefix}indices" if name else None)
    return SparseTensor(indices, values, dense_shape)


def sparse_eye(
    num_rows: Any, num_columns: Any = None, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """The identity matrix as a sparse tensor.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns; as many as rows when None.
        dtype: Dtype of the ones.
        name: Name scope of the operations.
    """
    with get_default_graph().name_scope(name or "eye"):
        rows = cast(convert_to_tensor(num_rows), dtypes.int64)
        columns = rows if num_columns is None else cast(convert_to_tensor(num_columns), dtypes.int64)
        size = where(rows < columns, rows, columns)
        diagonal = range_(size, dtype=dtypes.int64)
        ones = fill([size], cast(convert_to_tensor(1), dtype))
        return SparseTensor(stack([diagonal, diagonal], 1), ones, stack([rows, columns]))


def sparse_from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero. Public as ``tf.sparse.from_dense``."""
    with get_default_graph().name_scope(name or "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        nothing = b"" if tensor.dtype is dtypes.string else np.zeros((), tensor.dtype.numpy)
        indices = where(not_equal(tensor, nothing))
        return SparseTensor(indices, gather_nd(tensor, indices), shape_of(tensor, out_type=dtypes.int64))


# -- to dense ------------------------------------------------------------------------------------------


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Put values at places of a tensor that holds a default value elsewhere.

    Args:
        sparse_indices: Shape ``[n, rank]``: the places; ``[n]`` for a vector, a scalar for one place of a vector.
        output_shape: Shape of the result, an integer vector.
        sparse_values: Shape ``[n]``, or a scalar for all places.
        default_value: Scalar of the same dtype.
        validate_indices: Check that the places are in row-major order and distinct.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: a place outside the shape, or one out of order.
    """
    values = convert_to_tensor(sparse_values)
    indices = convert_to_tensor(sparse_indices, preferred_dtype=dtypes.int64)
    output_shape = convert_to_tensor(output_shape, indices.dtype)
    default_value = convert_to_tensor(default_value, values.dtype)
    return add_op(
        SPARSE_TO_DENSE, indices, output_shape, values, default_value, name=name, validate_indices=validate_indices
    )


def _sparse_to_dense_kernel(ctx: KernelContext, indices: Array, shape: Array, values: Array, default: Array) -> Array:
    sizes = host_ints(ctx, shape)
    places = ctx.to_host(indices).astype(np.int64, copy=False)
    places = places if places.ndim == 2 else places.reshape(-1, 1)
    check_coordinates(places, None, sizes)
    if np.ndim(values) and values.shape != places.shape[:1]:
        raise InvalidArgumentError(f"{values.shape[0]} values do not fit {places.shape[0]} indices")
    if ctx.attr("validate_indices"):
        ascending_positions(places, None, sizes)
    dense = ctx.xp.full(sizes, default, ctx.output_dtype())
    dense.reshape(-1)[ctx.asarray(positions(places, sizes))] = values
    return dense


def _sparse_to_dense_shape(op: Operation) -> list[TensorShape]:
    indices, shape, values, default = (tensor.shape for tensor in op.inputs)
    shape.assert_has_rank(1)
    default.assert_has_rank(0)
    if indices.rank is not None:
        if indices.rank > 2 or (values.rank or 0) > 1:
            raise ValueError("indices have at most two dimensions, and values at most one")
        count = indices.sizes[0] if indices.rank else 1
        if values.rank == 1:
            values.assert_is_compatible_with([count])
        shape.assert_is_compatible_with([indices.sizes[1] if indices.rank == 2 else 1])
    return [constant_shape(op.inputs[1])]


def _sparse_to_dense_gradient(op: Operation, d_dense: Tensor) -> list[Tensor | None]:
    indices, _, values, _ = op.inputs
    if indices.shape.rank is None or values.shape.rank is None:
        raise ValueError("sparse_to_dense: the gradient needs indices and values of known rank")
    places = indices if indices.shape.rank == 2 else stack([indices], -1)
    d_values = gather_nd(d_dense, places)
    d_default = subtract(reduce_sum(d_dense), reduce_sum(d_values))
    return [None, None, d_values if values.shape.rank else reduce_sum(d_values), d_default]


SPARSE_TO_DENSE = register(
    OpDef(
        name="SparseToDense",
        inputs=("sparse_indices: Tindices", "output_shape: Tindices", "sparse_values: T", "default_value: T"),
        outputs=("dense: T",),
        types={"T": dtypes.VALUES, "Tindices": dtypes.INDICES},
        attrs=("validate_indices",),
        shape=_sparse_to_dense_shape,
        kernels=on_every_device(_sparse_to_dense_kernel),
        gradient=_sparse_to_dense_gradient,
    )
)


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The dense tensor of a sparse one.

    Args:
        sp_input: A `SparseTensor`.
        default_value: What absent elements become; 0, False or ``""`` when None.
        validate_indices: Check that the elements are in row-major order and distinct.
        name: Name of the operation.
    """
    sparse = as_sparse(sp_input)
    if default_value is None:
        default_value = b"" if sparse.dtype is dtypes.string else np.zeros((), sparse.dtype.numpy)
    return sparse_to_dense(
        sparse.indices, sparse.dense_shape, sparse.values, default_value, validate_indices, name or "SparseToDense"
    )
