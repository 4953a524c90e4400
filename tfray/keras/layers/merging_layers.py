"""Layers of Keras models that make one tensor of several, and the functions that call them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.tensor_shape import TensorShape
from tfray.keras.tensor_functions import batch_dot
from tfray.library.layers.keras_layer import Layer
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn import normalization_ops


class _Merge(Layer):
    """A layer that makes one tensor of a list of at least two. An element is masked where an input is."""

    supports_masking = True

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks of the inputs put together; None without masks."""
        masks = [] if mask is None else nest.flatten(mask)
        if all(each is None for each in masks):
            return None
        return self._merged_masks(list(inputs), masks)

    def _merged_masks(self, inputs: list[Any], masks: list[Any]) -> Any:
        return functools.reduce(math_ops.logical_and, [each for each in masks if each is not None])

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise InvalidArgumentError(f"a merge layer should be called on a list of at least 2 inputs, got {inputs}")
        return self._merged(list(inputs))

    def _merged(self, inputs: list[Any]) -> Any:
        raise NotImplementedError


class _Elementwise(_Merge):
    """A layer that goes element by element. Inputs with fewer dimensions get new ones of size 1 behind the batch."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        ranks: list[Any] = [getattr(value, "shape", TensorShape(None)).rank for value in nest.flatten(inputs)]
        if len(set(ranks)) > 1 and None not in ranks:
            inputs = [_with_rank(value, max(ranks)) for value in inputs]
        return super().call(inputs, **kwargs)


def _with_rank(value: Any, rank: int) -> Any:
    for _ in range(rank - value.shape.rank):
        value = array_ops.expand_dims(value, 1)
    return value


class Add(_Elementwise):
    """The sum of the inputs, whose shapes may be broadcast."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(operator.add, inputs)


class Subtract(_Elementwise):
    """The first of two inputs minus the second."""

    def _merged(self, inputs: list[Any]) -> Any:
        first, second = inputs
        return first - second


class Multiply(_Elementwise):
    """The product of the inputs."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(operator.mul, inputs)


class Average(_Elementwise):
    """The mean of the inputs."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(operator.add, inputs) / len(inputs)


class Maximum(_Elementwise):
    """The largest of the inputs, element by element."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math_ops.maximum, inputs)


class Minimum(_Elementwise):
    """The smallest of the inputs, element by element."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math_ops.minimum, inputs)


class Concatenate(_Merge):
    """The inputs joined along `axis`; their other sizes are equal."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def _merged(self, inputs: list[Any]) -> Any:
        sizes = [value.shape.as_list() for value in inputs]
        for other in sizes:
            del other[self.axis]
        if any(not TensorShape(sizes[0]).is_compatible_with(other) for other in sizes):
            shown = [value.shape.as_list() for value in inputs]
            raise InvalidArgumentError(f"a `Concatenate` layer requires inputs with matching shapes, got {shown}")
        return array_ops.concat(inputs, self.axis)

    def _merged_masks(self, inputs: list[Any], masks: list[Any]) -> Any:
        parts = []
        for value, mask in zip(inputs, masks, strict=True):
            if mask is None:
                parts.append(array_ops.ones_like(value, "bool"))
            else:
                shown = mask if mask.shape.rank == value.shape.rank else array_ops.expand_dims(mask, -1)
                parts.append(math_ops.logical_and(shown, array_ops.ones_like(value, "bool")))
        return math_ops.reduce_all(array_ops.concat(parts, self.axis), -1)


class Dot(_Merge):
    """Products of two inputs, ``[batch, ...]``, example by example.

    Args:
        axes: The axis of each over which products are summed, or one for both.
        normalize: Divide the inputs by their norms along these axes first: what is given is the cosine.
        **kwargs: As for `Layer`.
    """

    def __init__(self, axes: int | Sequence[int] = -1, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(axes, (int, list, tuple)):
            raise TypeError("Invalid type for `axes` - should be a list or an int.")
        if not isinstance(axes, int) and (len(axes) != 2 or not all(isinstance(axis, int) for axis in axes)):
            raise ValueError("Invalid format for `axes` - should be two integers.")
        self.axes = axes
        self.normalize = normalize

    def _merged(self, inputs: list[Any]) -> Any:
        if len(inputs) != 2:
            raise InvalidArgumentError(f"a `Dot` layer should be called on exactly 2 inputs, got {len(inputs)}")
        first, second = inputs
        axes = (self.axes, self.axes) if isinstance(self.axes, int) else tuple(self.axes)
        one, other = (axis % value.shape.rank for axis, value in zip(axes, inputs, strict=True))
        if not first.shape[one : one + 1].is_compatible_with(second.shape[other : other + 1]):
            raise InvalidArgumentError(f"`Dot` over axes {axes}: shapes {first.shape} and {second.shape} do not match")
        if self.normalize:
            first, second = normalization_ops.l2_normalize(first, one), normalization_ops.l2_normalize(second, other)
        return batch_dot(first, second, (one, other))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: products have no mask."""


def add(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The sum of the inputs."""
    return Add(**kwargs)(inputs)


def multiply(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The product of the inputs."""
    return Multiply(**kwargs)(inputs)


def subtract(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The first of two inputs minus the second."""
    return Subtract(**kwargs)(inputs)


def maximum(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The largest of the inputs, element by element."""
    return Maximum(**kwargs)(inputs)


def minimum(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The smallest of the inputs, element by element."""
    return Minimum(**kwargs)(inputs)


def dot(inputs: Sequence[Any], axes: int | Sequence[int], normalize: bool = False, **kwargs: Any) -> Any:
    """Products of two inputs, example by example; see `Dot`."""
    return Dot(axes, normalize, **kwargs)(inputs)


def average(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The mean of the inputs."""
    return Average(**kwargs)(inputs)


def concatenate(inputs: Sequence[Any], axis: int = -1, **kwargs: Any) -> Any:
    """The inputs joined along `axis`."""
    return Concatenate(axis, **kwargs)(inputs)
