"""What ``tf.contrib.layers``' module of sparse tensors keeps to itself, and programs import."""

from __future__ import annotations

from typing import Any

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.sparse.sparse_ops import chosen_elements


def _nothing(dtype: tf.DType, ignore_value: Any) -> Tensor:
    """What stands for nothing among elements of a dtype: 0, False or the empty string, if nothing else is said."""
    if ignore_value is None:
        ignore_value = "" if dtype == tf.string else dtype.as_numpy_dtype()
    return tf.cast(ignore_value, dtype)


def dense_to_sparse_tensor(dense_tensor: TensorLike, ignore_value: Any = None) -> SparseTensor:
    """The elements of a tensor that are not `ignore_value`.

    Args:
        dense_tensor: Known rank, any dtype.
        ignore_value: What stands for nothing; when None 0, False or the empty string.

    Returns:
        A `SparseTensor` of the same shape and dtype.

    Raises:
        InvalidArgumentError: The rank is not known.
    """
    with tf.name_scope("DenseToSparseTensor"):
        dense = tf.convert_to_tensor(dense_tensor)
        if dense.shape.rank is None:
            raise InvalidArgumentError(f"dense_tensor {dense.name!r} has an unknown rank, expected a known one")
        return chosen_elements(dense, tf.not_equal(dense, _nothing(dense.dtype, ignore_value)))


def indicators_to_sparse_ids(
    indicators: TensorLike, ignore_value: Any = None, dtype: tf.DType = tf.int64
) -> SparseTensor:
    """The classes that are marked, for each example one after the other.

    Args:
        indicators: Shape ``[..., classes]``.
        ignore_value: What marks no class; when None 0, False or the empty string.
        dtype: An integer dtype, of the result.

    Returns:
        A `SparseTensor` of shape ``[..., n]``, where n is the largest number of marks of an example.

    Raises:
        InvalidArgumentError: `dtype` is not of integers, or the rank is not known.
    """
    if not dtype.is_integer:
        raise InvalidArgumentError(f"Invalid dtype {dtype} not integer.")
    with tf.name_scope(None, "indicators_to_sparse_ids"):
        indicators = tf.convert_to_tensor(indicators, name="indicators")
        marks = tf.cast(tf.not_equal(indicators, _nothing(indicators.dtype, ignore_value)), tf.int64)
        places = marks * tf.cumsum(marks, axis=-1)  # from 1: 0 is no mark
        found = dense_to_sparse_tensor(places)
        return SparseTensor(
            tf.concat([found.indices[:, :-1], found.values[:, None] - 1], 1),
            tf.cast(found.indices[:, -1], dtype),
            tf.concat([found.dense_shape[:-1], tf.reshape(tf.reduce_max(places), [1])], 0),
        )


def sparse_row_envelope(
    sparse_input: SparseTensor, row_axis: int = 0, col_axis: int = 1, name: str | None = None
) -> Tensor:
    """How far each row reaches: 1 more than its last column with a value, 0 for a row without one.

    Args:
        sparse_input: Rank 2 or more.
        row_axis: Axis of the rows.
        col_axis: Axis of the columns.
        name: Name of the operations.

    Returns:
        int64 ``[rows]``.

    Raises:
        InvalidArgumentError: The axes are one, or no integers.
    """
    if not (isinstance(row_axis, int) and isinstance(col_axis, int)):
        raise InvalidArgumentError("`row_axis` and `col_axis` must be integers.")
    if row_axis == col_axis:
        raise InvalidArgumentError("Row and column can not be the same axis.")
    with tf.name_scope(name, "sparse_row_envelope"):
        rows, columns = sparse_input.indices[:, row_axis], sparse_input.indices[:, col_axis]
        reach = tf.unsorted_segment_max(columns + 1, rows, tf.cast(sparse_input.dense_shape[row_axis], tf.int32))
        return tf.maximum(reach, 0)
