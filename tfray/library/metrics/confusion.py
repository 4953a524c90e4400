"""Confusion matrices, and the shapes that labels and predictions come in."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.checks import check_ops
from tfray.ops.control import control_flow_ops
from tfray.ops.math import math_ops


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike | None = None,
    dtype: DTypeLike | None = dtypes.int32,
    name: str | None = None,
    weights: TensorLike | None = None,
) -> Tensor:
    """How often each class was predicted for each true class.

    Args:
        labels: Shape ``[n]``, the true classes.
        predictions: Shape ``[n]``, the predicted classes.
        num_classes: Number of classes, an integer scalar; one more than the largest class when None.
        dtype: Dtype of the result; int64 when None, as in TensorFlow.
        name: Name scope of the operations.
        weights: Shape ``[n]``, what each prediction counts; 1 when None.

    Returns:
        Shape ``[num_classes, num_classes]``: rows are true classes, columns predicted ones.

    Raises:
        InvalidArgumentError: While running: a class is negative or too large.

    Examples:
        >>> session.run(tf.confusion_matrix(labels=[0, 1, 1], predictions=[0, 1, 0]))
        array([[1, 0],
               [1, 1]], dtype=int32)
    """
    with get_default_graph().name_scope(name or "confusion_matrix"):
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        labels, predictions = array_ops.to_int64(labels), array_ops.to_int64(predictions)
        if num_classes is None:
            num_classes = math_ops.maximum(math_ops.reduce_max(labels), math_ops.reduce_max(predictions)) + 1
        size = array_ops.cast(num_classes, dtypes.int64)
        labels, predictions = _classes(labels, size, "labels"), _classes(predictions, size, "predictions")
        wanted = dtypes.int64 if dtype is None else as_dtype(dtype)
        if weights is None:
            counts = array_ops.ones_like(predictions, wanted)
        else:
            counts = array_ops.cast(weights, wanted)
        indices = array_ops.stack([labels, predictions], axis=1)
        return array_ops.scatter_nd(indices, counts, array_ops.stack([size, size]))


def _classes(numbers: Tensor, size: Tensor, name: str) -> Tensor:
    """`numbers`, once they have been checked to be from 0 to `size`."""
    checks = [
        check_ops.assert_non_negative(numbers, message=f"`{name}` contains negative values"),
        check_ops.assert_less(numbers, size, message=f"`{name}` out of bound"),
    ]
    with get_default_graph().control_dependencies(checks):
        return array_ops.identity(numbers)


def _without_last(tensor: Tensor, surplus: Tensor, wanted: int) -> Tensor:
    """A tensor without its last dimension where `surplus` is `wanted` in a step."""
    if tensor.shape.rank is not None and not (tensor.shape.rank and tensor.shape.as_list()[-1] in (1, None)):
        return tensor
    squeezed: Tensor = control_flow_ops.cond(
        math_ops.equal(surplus, wanted), lambda: array_ops.squeeze(tensor, [-1]), lambda: tensor
    )
    return squeezed


def remove_squeezable_dimensions(
    labels: TensorLike, predictions: TensorLike, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Drop a last dimension of size 1 from labels or predictions where the other has one less.

    Args:
        labels: The labels.
        predictions: The predictions.
        expected_rank_diff: By how much the rank of the predictions is to exceed that of the labels.
        name: Name scope of the operations.
    """
    with get_default_graph().name_scope(name or "remove_squeezable_dimensions"):
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        if labels.shape.rank is not None and predictions.shape.rank is not None:
            beyond = predictions.shape.rank - labels.shape.rank - expected_rank_diff
            if beyond == 1 and predictions.shape.as_list()[-1] in (1, None):
                predictions = array_ops.squeeze(predictions, [-1])
            elif beyond == -1 and labels.shape.as_list()[-1] in (1, None):
                labels = array_ops.squeeze(labels, [-1])
            return labels, predictions
        surplus = array_ops.rank(predictions) - array_ops.rank(labels) - expected_rank_diff
        return _without_last(labels, surplus, -1), _without_last(predictions, surplus, 1)
