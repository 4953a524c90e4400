"""What TensorFlow's modules of mathematics and of gradients keep to themselves, and programs import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tfray as tf
from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.type_aliases import TensorLike


def approximate_equal(x: TensorLike, y: TensorLike, tolerance: float = 1e-5, name: str | None = None) -> Tensor:
    """Whether the elements of two tensors of one shape differ by less than `tolerance`.

    Raises:
        ValueError: The shapes differ.
    """
    with tf.name_scope(name, "ApproximateEqual"):
        x = tf.convert_to_tensor(x, name="x")
        y = tf.convert_to_tensor(y, x.dtype, name="y")
        if None not in (x.shape.rank, y.shape.rank) and x.shape.rank != y.shape.rank:
            raise InvalidArgumentError(f"Shapes must be equal rank, but are {x.shape.rank} and {y.shape.rank}")
        x.shape.assert_is_compatible_with(y.shape)
        return tf.abs(x - y) < tolerance


def bucketize(input: TensorLike, boundaries: Sequence[float], name: str | None = None) -> Tensor:
    """How many of the boundaries each number reaches, int32.

    The step raises `InvalidArgumentError` if the boundaries do not ascend.
    """
    with tf.name_scope(name, "Bucketize"):
        input = tf.convert_to_tensor(input, name="input")
        if sorted(boundaries) != list(boundaries):
            with tf.control_dependencies([tf.Assert(False, ["Expected sorted boundaries"])]):
                input = tf.identity(input)
        reached = input[..., None] >= tf.constant(list(boundaries), input.dtype)
        return tf.reduce_sum(tf.cast(reached, tf.int32), -1)


def compare_and_bitpack(input: TensorLike, threshold: TensorLike, name: str | None = None) -> Tensor:
    """Which numbers exceed `threshold`, a scalar: eight of them in a byte, the first in its highest bit.

    Args:
        input: Shape ``[..., n]``, where 8 divides n. Of a bool tensor the elements themselves are packed.
        threshold: A scalar of the same dtype.
        name: Name of the operations.

    Returns:
        Shape ``[..., n / 8]``, dtype uint8.

    Raises:
        InvalidArgumentError: 8 does not divide the last dimension.
    """
    with tf.name_scope(name, "CompareAndBitpack"):
        input = tf.convert_to_tensor(input, name="input")
        exceeds = input if input.dtype == tf.bool else input > tf.convert_to_tensor(threshold, input.dtype)
        size = input.shape.with_rank_at_least(1)[-1].value
        if size is not None and size % 8:
            raise InvalidArgumentError(f"Expected last dimension to be a multiple of 8, not {size}")
        byte = tf.reshape(tf.cast(exceeds, tf.int32), tf.concat([tf.shape(input)[:-1], [-1, 8]], 0))
        packed = tf.cast(tf.reduce_sum(byte * [128, 64, 32, 16, 8, 4, 2, 1], -1), tf.uint8)
        packed.set_shape(input.shape[:-1].concatenate([None if size is None else size // 8]))
        return packed


def as_indexed_slices(x: Any, optimize: bool = True) -> IndexedSlices:
    """A tensor as `IndexedSlices` of all its rows; one that is such already as it is. `optimize` has no effect.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(x, IndexedSlices):
        return x
    if not isinstance(x, Tensor):
        raise ArgumentError(f"Not a Tensor or IndexedSlices: {type(x)}")
    sizes = tf.shape(x)
    return IndexedSlices(x, tf.range(0, sizes[0]), sizes)


def as_indexed_slices_list(inputs: Sequence[Any], optimize: bool = True) -> list[IndexedSlices]:
    """`as_indexed_slices` of each, all with indices of one dtype: int64 where they differ.

    Raises:
        TypeError: `inputs` is no list.
    """
    if not isinstance(inputs, (list, tuple)):
        raise ArgumentError(f"Expected a list or tuple, not a {type(inputs)}")
    found = [as_indexed_slices(each, optimize) for each in inputs]
    if len({each.indices.dtype for each in found}) == 1:
        return found
    return [IndexedSlices(each.values, tf.cast(each.indices, tf.int64), each.dense_shape) for each in found]


def hessian_vector_product(ys: Any, xs: Sequence[Any], v: Sequence[TensorLike]) -> list[Any]:
    """The product of the Hessian of `ys` with a vector, which comes in the parts of `xs`. Takes two backward passes.

    Raises:
        ValueError: `xs` and `v` differ in length.
    """
    if len(v) != len(xs):
        raise ValueError("xs and v must have the same length.")
    slopes = tf.gradients(ys, xs)
    return tf.gradients([slope * tf.stop_gradient(part) for slope, part in zip(slopes, v, strict=True)], xs)


def embedding_lookup_and_transform(
    params: Any,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    max_norm: float | None = None,
    transform_fn: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """`tf.nn.embedding_lookup`, with `transform_fn` applied to the rows, which it gets as a matrix."""
    with tf.name_scope(name, "embedding_lookup"):
        ids = tf.convert_to_tensor(ids, name="ids")
        if transform_fn is None:
            return tf.nn.embedding_lookup(params, ids, partition_strategy, max_norm=max_norm)
        flat = tf.reshape(ids, [-1])
        found = transform_fn(tf.nn.embedding_lookup(params, flat, partition_strategy, max_norm=max_norm))
        result = tf.reshape(found, tf.concat([tf.shape(ids), tf.shape(found)[1:]], 0))
        result.set_shape(ids.shape.concatenate(found.shape[1:]))
        return result
