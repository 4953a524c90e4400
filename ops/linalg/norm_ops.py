"""Norms of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import by_either_name
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import Axes, TensorLike
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.partition_ops import setdiff1d
from tfray.ops.arrays.shape_ops import expand_dims, invert_permutation, rank, squeeze, transpose
from tfray.ops.linalg.decomposition_ops import svd
from tfray.ops.math.arithmetic_ops import abs, pow
from tfray.ops.math.axis_ops import from_front
from tfray.ops.math.reduction_ops import reduce_euclidean_norm, reduce_max, reduce_sum


def norm(
    tensor: TensorLike,
    ord: float | str = "euclidean",
    axis: Axes | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Compute the norm of vectors, or of matrices.

    Args:
        tensor: Shape ``[...]``, a floating or complex dtype.
        ord: ``"euclidean"`` (of matrices: ``"fro"``), a positive number for the p-norm, or ``np.inf``. Matrices
            have the norms 1, 2 and ``np.inf``: the greatest sum of a column, singular value, sum of a row.
        axis: The dimension of the vectors, an integer, or the two of the matrices; None takes all elements as one
            vector.
        keepdims: Keep the reduced dimensions, with size 1.
        name: Name of the operation.
        keep_dims: Old name of `keepdims`.

    Returns:
        The shape of `tensor` without `axis`, or with size 1 there (`keepdims`); a scalar when `axis` is None. The
        Euclidean norm has the dtype of `tensor`, complex if that is; the others are real.

    Raises:
        InvalidArgumentError: The norm is not one of these.

    Examples:
        >>> session.run(tf.norm([[3.0, 4.0], [6.0, 8.0]], axis=1))
        array([ 5., 10.], dtype=float32)
    """
    keep = bool(by_either_name("norm", keepdims=keepdims, keep_dims=keep_dims))
    tensor, name = convert_to_tensor(tensor), name or "norm"
    if axis is None or isinstance(axis, (int, np.integer)):
        return _vector_norm(tensor, ord, axis, keep, name)
    pair = list(axis) if isinstance(axis, (list, tuple)) else []
    if len(pair) != 2 or pair[0] == pair[1] or not all(isinstance(each, (int, np.integer)) for each in pair):
        raise InvalidArgumentError(
            f"norm: 'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis!r}"
        )
    return _matrix_norm(tensor, ord, pair, keep, name)


def _vector_norm(tensor: Tensor, ord: Any, axis: Any, keep: bool, name: str | None) -> Tensor:
    if ord in ("euclidean", 2):
        return reduce_euclidean_norm(tensor, axis, keep, name)
    if isinstance(ord, str) or not ord > 0:
        raise InvalidArgumentError(
            f"norm: 'ord' must be a supported vector norm, got {ord!r}: 'euclidean', np.inf or a positive number; "
            "'fro' is for matrices: give their two axes"
        )
    moduli = abs(tensor)
    if np.isinf(ord):
        return reduce_max(moduli, axis, keep, name)
    if ord == 1:
        return reduce_sum(moduli, axis, keep, name)
    return pow(reduce_sum(pow(moduli, ord), axis, keep), 1.0 / ord, name)


def _matrix_norm(tensor: Tensor, ord: Any, pair: list[int], keep: bool, name: str | None) -> Tensor:
    if ord in ("euclidean", "fro"):
        return reduce_euclidean_norm(tensor, pair, keep, name)
    if ord not in (1, 2, np.inf):
        raise InvalidArgumentError(
            f"norm: 'ord' must be a supported matrix norm, 'euclidean', 'fro', 1, 2 or np.inf, got {ord!r}"
        )
    if ord == 2:
        axes = from_front(pair, tensor)
        order = concat([setdiff1d(range_(rank(tensor)), axes).out, axes], 0)
        values = svd(transpose(tensor, order), compute_uv=False)
        greatest = expand_dims(reduce_max(values, -1, keepdims=True), -1)
        greatest = transpose(greatest, invert_permutation(order))
        if tensor.shape.rank is not None:
            greatest.set_shape(
                [
                    1 if i in {each % tensor.shape.rank for each in pair} else size
                    for i, size in enumerate(tensor.shape.sizes)
                ]
            )
    else:
        summed, compared = pair if ord == 1 else pair[::-1]
        greatest = reduce_max(reduce_sum(abs(tensor), summed, keepdims=True), compared, keepdims=True)
    return greatest if keep else squeeze(greatest, pair, name)
