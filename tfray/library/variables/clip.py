"""Clipping by norms, of one tensor or of all gradients together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import ArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops


def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: TensorLike | None = None, name: str | None = None) -> Any:
    """Scale `t` down where needed so that its L2 norm is at most `clip_norm`.

    Args:
        t: A tensor of any shape, or `IndexedSlices`, of a floating dtype.
        clip_norm: Positive scalar.
        axes: Axes over which norms are taken, a vector (a list), each clipped for itself; None for one norm of all
            elements.
        name: Name scope of the operations.

    Returns:
        ``t * clip_norm / max(norm, clip_norm)``, of the same form, shape and dtype.

    Examples:
        >>> session.run(tf.clip_by_norm([3.0, 4.0], clip_norm=1.0))
        array([0.6, 0.8], dtype=float32)
    """
    with get_default_graph().name_scope(name or "clip_by_norm") as scope:
        values = _values(t)
        norm = _norm(math_ops.reduce_sum(math_ops.square(values), axes, keepdims=True))
        limit = array_ops.cast(at_least_zero(clip_norm), values.dtype)
        clipped = math_ops.divide(math_ops.multiply(values, limit), math_ops.maximum(norm, limit), scope)
        values.shape.assert_is_compatible_with(clipped.shape)
        return _with_values(t, clipped)


def at_least_zero(norm: TensorLike) -> Any:
    """A greatest norm; one below 0 is taken as 0."""
    if isinstance(norm, (int, float)):
        return max(norm, 0)
    norm = convert_to_tensor(norm)
    return math_ops.maximum(norm, array_ops.zeros_like(norm))


def _norm(squares: Tensor) -> Tensor:
    """The root of sums of squares. The root has no slope at 0, and is kept out of the gradient there."""
    is_positive = math_ops.greater(squares, np.zeros((), squares.dtype.numpy))
    root = math_ops.sqrt(array_ops.where(is_positive, squares, array_ops.ones_like(squares)))
    return array_ops.where(is_positive, root, squares)


def clip_by_average_norm(t: TensorLike, clip_norm: TensorLike, name: str | None = None) -> Tensor:
    """Scale `t` down where needed so that its L2 norm, divided by its number of elements, is at most `clip_norm`.

    Args:
        t: A tensor of any shape, of a floating dtype.
        clip_norm: Positive scalar.
        name: Name scope of the operations.

    Returns:
        Same shape and dtype.
    """
    with get_default_graph().name_scope(name or "clip_by_average_norm") as scope:
        values = convert_to_tensor(t)
        count = array_ops.cast(array_ops.size(values), values.dtype)
        norm = _norm(math_ops.reduce_sum(math_ops.square(values))) / count
        limit = convert_to_tensor(clip_norm, values.dtype)
        return math_ops.divide(math_ops.multiply(values, limit), math_ops.maximum(norm, limit), scope)


def global_norm(t_list: Sequence[TensorLike | None], name: str | None = None) -> Tensor:
    """The L2 norm of all elements of several tensors together.

    Args:
        t_list: Tensors of any shape, `IndexedSlices` (whose values count, as they are), or None, which is left out.
        name: Name scope of the operations.

    Returns:
        A scalar.

    Examples:
        >>> session.run(tf.global_norm([tf.constant([3.0]), tf.constant([[4.0]])]))
        np.float32(5.0)
    """
    present = [t for t in _checked_list(t_list) if t is not None]
    if not present:
        return convert_to_tensor(0.0, name=name or "global_norm")
    with get_default_graph().name_scope(name or "global_norm"):
        squares = []
        for t in present:
            values = _values(t)
            with values.graph.colocate_with(values, ignore_existing=True):
                squares.append(math_ops.reduce_sum(math_ops.square(values)))
        return math_ops.sqrt(math_ops.add_n(squares), "global_norm")


def clip_by_global_norm(
    t_list: Sequence[TensorLike | None],
    clip_norm: TensorLike,
    use_norm: TensorLike | None = None,
    name: str | None = None,
) -> tuple[list[Any], Tensor]:
    """Scale tensors down by one common factor where needed so that their global norm is at most `clip_norm`.

    The way to clip exploding gradients that keeps their direction.

    Args:
        t_list: Tensors of any shape, `IndexedSlices`, or None, which stays None.
        clip_norm: Positive scalar, a number or a tensor of the dtype of the norm.
        use_norm: The global norm, a scalar, where it is known; computed when None.
        name: Name scope of the operations.

    Returns:
        The clipped tensors, of the same shapes, and the global norm before, a scalar. All elements become NaN when the
        norm is not finite.

    Examples:
        >>> clipped, norm = tf.clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0])], clip_norm=1.0)
        >>> session.run([clipped, norm])
        [[array([0.6], dtype=float32), array([0.8], dtype=float32)], np.float32(5.0)]
    """
    t_list = _checked_list(t_list)
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    with get_default_graph().name_scope(name or "clip_by_global_norm"):
        limit = convert_to_tensor(clip_norm, norm.dtype)
        scale = math_ops.multiply(limit, math_ops.minimum(math_ops.divide(1, norm), math_ops.divide(1, limit)))
        # An infinite norm would give the scale 0 and hide that something went wrong.
        scale = math_ops.add(scale, math_ops.subtract(norm, norm))
        with get_default_graph().name_scope("clip_by_global_norm"):
            clipped = [t if t is None else _scaled(t, scale, f"_{index}") for index, t in enumerate(t_list)]
    return clipped, norm


def _scaled(t: TensorLike, scale: Tensor, name: str) -> Any:
    values = _values(t)
    with values.graph.colocate_with(values, ignore_existing=True):
        return _with_values(t, math_ops.multiply(values, array_ops.cast(scale, values.dtype), name))


def _checked_list(t_list: Sequence[TensorLike | None]) -> list[Any]:
    if not isinstance(t_list, (list, tuple)):
        raise ArgumentError(f"{t_list!r} is not a list of tensors")
    return list(t_list)


def _values(t: TensorLike) -> Tensor:
    return t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t)


def _with_values(t: TensorLike, values: Tensor) -> Any:
    return IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values
