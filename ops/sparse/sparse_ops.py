"""Sparse tensors: made, fed, put in order, turned into dense ones and back.

Operations here compute only positions. The values go through gathers and sums by segment, which have gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import abbreviated, none_is_default
from tfray.framework.constant_value import constant_shape
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, on_every_device, register
from tfray.framework.sparse_tensor import SparseLike, SparseTensor, SparseTensorValue
from tfray.framework.tensor_shape import ShapeLike, TensorShape, as_shape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import fill, where
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather, gather_nd
from tfray.ops.arrays.join_ops import stack
from tfray.ops.arrays.shape_ops import cast, host_ints, invert_permutation
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.kernels.coordinates import (
    ascending_positions,
    check_coordinates,
    coordinates,
    enclosing,
    positions,
)
from tfray.ops.math.arithmetic_ops import subtract
from tfray.ops.math.comparison_ops import not_equal
from tfray.ops.math.reduction_ops import reduce_sum

# -- what sparse operations share ----------------------------------------------------------------------


def as_sparse(value: object, what: str = "sp_input") -> SparseTensor:
    """`value` as a `SparseTensor`.

    Raises:
        TypeError: It is neither a `SparseTensor` nor a `SparseTensorValue`.
    """
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        return SparseTensor.from_value(value)
    raise TypeError(f"{what} must be a tf.SparseTensor, not {value!r}")


# -- made ----------------------------------------------------------------------------------------------


def sparse_placeholder(dtype: DTypeLike, shape: ShapeLike | Tensor = None, name: str | None = None) -> SparseTensor:
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
    sparse = SparseTensor(indices, values, dense_shape)
    if rank is not None and not isinstance(shape, Tensor):
        sparse.set_shape(shape)
    return sparse


def sparse_eye(
    num_rows: TensorLike,
    num_columns: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> SparseTensor:
    """The identity matrix as a sparse tensor.

    Args:
        num_rows: Number of rows, an integer scalar.
        num_columns: Number of columns, an integer scalar; as many as rows when None.
        dtype: Dtype of the ones.
        name: Name scope of the operations.

    Raises:
        ArgumentError: A number is neither an integer nor a tensor.
    """
    with get_default_graph().name_scope(name or "eye"):
        rows = _size_of_eye("num_rows", num_rows)
        columns = rows if num_columns is None else _size_of_eye("num_columns", num_columns)
        size = where(rows < columns, rows, columns)
        diagonal = range_(size, dtype=dtypes.int64)
        ones = fill([size], cast(convert_to_tensor(1), dtype))
        return SparseTensor(stack([diagonal, diagonal], 1), ones, stack([rows, columns]))


def _size_of_eye(what: str, size: Any) -> Tensor:
    if not isinstance(size, (int, np.integer, Tensor)):
        raise ArgumentError(f"sparse_eye: {what} is {abbreviated(size)}, expected an integer")
    return cast(convert_to_tensor(size), dtypes.int64)


def sparse_from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero, in a `SparseTensor` of its shape. Public as
    ``tf.sparse.from_dense``.
    """
    with get_default_graph().name_scope(name or "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        nothing = b"" if tensor.dtype is dtypes.string else np.zeros((), tensor.dtype.numpy)
        return chosen_elements(tensor, not_equal(tensor, nothing))


def chosen_elements(tensor: Tensor, chosen: Tensor) -> SparseTensor:
    """The elements of a dense tensor where `chosen`, of its shape, is true, in a `SparseTensor` of its shape."""
    indices = where(chosen)
    return SparseTensor(indices, gather_nd(tensor, indices), shape_of(tensor, out_type=dtypes.int64))


# -- to dense ------------------------------------------------------------------------------------------


def sparse_to_dense(
    sparse_indices: TensorLike,
    output_shape: TensorLike,
    sparse_values: TensorLike,
    default_value: TensorLike = 0,
    validate_indices: bool | None = True,
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

    Returns:
        Shape `output_shape`, the dtype of the values.

    Raises:
        InvalidArgumentError: `output_shape` is no vector. While running: other shapes do not fit, a place is outside of
            `output_shape`, or one is out of order.

    Examples:
        >>> session.run(tf.sparse_to_dense([0, 2], [4], [10, 30]))
        array([10,  0, 30,  0], dtype=int32)
    """
    if default_value is None:
        raise ArgumentError("sparse_to_dense: default_value is None, expected a scalar")
    inputs = sparse_indices, output_shape, sparse_values, default_value
    return add_op(SPARSE_TO_DENSE, *inputs, name=name, validate_indices=validate_indices in (None, True))


def _sparse_to_dense_kernel(ctx: KernelContext, indices: Array, shape: Array, values: Array, default: Array) -> Array:
    sizes = host_ints(ctx, shape)
    places = ctx.to_host(indices).astype(np.int64, copy=False)
    places = places if places.ndim > 1 else places.reshape(-1, 1)
    check_coordinates(places, None, sizes)
    if np.ndim(values) and values.shape != places.shape[:1]:
        found, count = ",".join(map(str, values.shape)), places.shape[0]
        raise InvalidArgumentError(
            f"sparse_values has incorrect shape [{found}], should be [] or [{count}]: they do not fit {count} indices"
        )
    if np.ndim(default):
        raise InvalidArgumentError(
            f"default_value should be a scalar: it has shape {np.shape(default)}, expected a scalar"
        )
    if ctx.attr("validate_indices"):
        ascending_positions(places, None, sizes)
    dense = ctx.xp.full(sizes, default, ctx.output_dtype())
    dense.reshape(-1)[ctx.asarray(positions(places, sizes))] = values
    return dense


def _sparse_to_dense_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(1)  # the step checks the others, as in TensorFlow
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
        host_inputs=("output_shape",),
        types={"T": dtypes.VALUES, "Tindices": dtypes.INDICES},
        attrs=("validate_indices",),
        shape=_sparse_to_dense_shape,
        kernels=on_every_device(_sparse_to_dense_kernel),
        gradient=_sparse_to_dense_gradient,
    )
)


@none_is_default
def sparse_tensor_to_dense(
    sp_input: SparseLike,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """The dense tensor of a sparse one.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        default_value: What absent elements become, a scalar; 0, False or ``""`` when None.
        validate_indices: Check that the elements are in row-major order and distinct.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> sparse = tf.SparseTensor(indices=[[0, 1], [1, 0]], values=[5, 7], dense_shape=[2, 3])
        >>> session.run(tf.sparse_tensor_to_dense(sparse))
        array([[0, 5, 0],
               [7, 0, 0]], dtype=int32)
    """
    sparse = as_sparse(sp_input)
    if default_value is None:
        default_value = b"" if sparse.dtype is dtypes.string else np.zeros((), sparse.dtype.numpy)
    return sparse_to_dense(
        sparse.indices, sparse.dense_shape, sparse.values, default_value, validate_indices, name or "SparseToDense"
    )


# -- in order ------------------------------------------------------------------------------------------


def sparse_reorder(sp_input: SparseLike, name: str | None = None) -> SparseTensor:
    """Put the elements of a sparse tensor in row-major order; those with equal positions stay as they are.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    sparse = as_sparse(sp_input)
    indices, values = add_op(SPARSE_REORDER, sparse.indices, sparse.values, sparse.dense_shape, name=name)
    return SparseTensor(indices, values, sparse.dense_shape)


def _sparse_reorder_kernel(ctx: KernelContext, indices: Array, values: Array, shape: Array) -> tuple[Array, Array]:
    sizes = host_ints(ctx, shape)
    check_coordinates(indices, values, sizes)
    places = positions(indices, sizes)
    if (places[1:] >= places[:-1]).all():
        return indices, values
    order = places.argsort(kind="stable")
    return indices[order], values[order]


def _sparse_reorder_shape(op: Operation) -> list[TensorShape]:
    indices, values, shape = (tensor.shape for tensor in op.inputs)
    merged = indices.merge_with(values.with_rank(1).concatenate(shape.with_rank(1)))
    return [merged, merged[:1]]


def _sparse_reorder_gradient(op: Operation, _: Tensor | None, d_values: Tensor | None) -> list[Tensor | None]:
    if d_values is None:
        return [None, None, None]
    indices, values, shape = op.inputs
    numbers = range_(shape_of(values, out_type=dtypes.int64)[0])
    _, order = add_op(SPARSE_REORDER, indices, numbers, shape)
    return [None, gather(d_values, invert_permutation(order)), None]


SPARSE_REORDER = register(
    OpDef(
        name="SparseReorder",
        inputs=("input_indices: int64", "input_values: T", "input_shape: int64"),
        outputs=("output_indices: int64", "output_values: T"),
        types={"T": dtypes.VALUES},
        shape=_sparse_reorder_shape,
        kernels=on_cpu(_sparse_reorder_kernel),
        gradient=_sparse_reorder_gradient,
    )
)


class DistinctCoordinates(NamedTuple):
    """What `distinct_coordinates` returns.

    Attributes:
        distinct: Shape ``[m, rank]``, int64: the coordinates in row-major order, each once.
        group: Shape ``[n]``, int64: which of these each of the given ones is.
    """

    distinct: Tensor
    group: Tensor


def distinct_coordinates(indices: TensorLike, dense_shape: TensorLike, name: str | None = None) -> DistinctCoordinates:
    """Sort coordinates and leave repetitions out.

    Args:
        indices: Shape ``[n, rank]``, int64, in any order.
        dense_shape: Shape ``[rank]``, int64: what they are within. As TensorFlow's sum of sparse tensors, this lets
            larger ones pass.
        name: Name of the operation.

    Returns:
        ``(distinct, group)`` of the shapes ``[m, rank]`` and ``[n]``, see `DistinctCoordinates`.
    """
    return DistinctCoordinates(*add_op(DISTINCT_COORDINATES, indices, dense_shape, name=name))


def _distinct_coordinates_kernel(ctx: KernelContext, indices: Array, shape: Array) -> tuple[Array, Array]:
    sizes = enclosing(indices, host_ints(ctx, shape))
    check_coordinates(indices, None, sizes)
    places = positions(indices, sizes)
    if (places[1:] > places[:-1]).all():
        return indices, np.arange(len(places))
    distinct, group = np.unique(places, return_inverse=True)
    return coordinates(distinct, sizes), group.astype(np.int64, copy=False)


def _distinct_coordinates_shape(op: Operation) -> list[TensorShape]:
    indices = op.inputs[0].shape.with_rank(2).merge_with([None, op.inputs[1].shape.with_rank(1).sizes[0]])
    return [TensorShape([None, indices.sizes[1]]), indices[:1]]


DISTINCT_COORDINATES = register(
    OpDef(
        name="DistinctCoordinates",
        inputs=("indices: int64", "dense_shape: int64"),
        outputs=("distinct: int64", "group: int64"),
        shape=_distinct_coordinates_shape,
        kernels=on_cpu(_distinct_coordinates_kernel),
    )
)
