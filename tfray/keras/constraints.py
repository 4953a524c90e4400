"""``tf.keras.constraints``: what weights become after each update, and `get`, which finds a constraint by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.framework.graph import Tensor
from tfray.keras import tensor_functions
from tfray.library.layers.descriptions import Described, as_given, deserializer, named_object, restored
from tfray.library.layers.descriptions import serialize as serialize
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops

# fmt: off
__all__ = [
    "Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "RadialConstraint", "UnitNorm", "deserialize", "get", "max_norm",
    "min_max_norm", "non_neg", "radial_constraint", "serialize", "unit_norm",
]
# fmt: on

Axis = int | Sequence[int]


class Constraint(Described):
    """A function from weights to those to keep. Derived classes define ``__call__``; this one keeps them all."""

    def __call__(self, w: Any) -> Any:
        """The weights to keep."""
        return w


class MaxNorm(Constraint):
    """Scales weights down whose Euclidean norm is greater than a bound.

    Args:
        max_value: The bound.
        axis: Along which axes norms are taken.
    """

    def __init__(self, max_value: float = 2, axis: Axis = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Tensor:
        norms = _norms(w, self.axis)
        return w * (tensor_functions.clip(norms, 0, self.max_value) / (tensor_functions.epsilon() + norms))


class NonNeg(Constraint):
    """Makes negative weights 0."""

    def __call__(self, w: Any) -> Tensor:
        return w * array_ops.cast(math_ops.greater_equal(w, 0.0), w.dtype.base_dtype)


class UnitNorm(Constraint):
    """Scales weights to a Euclidean norm of 1 along axes."""

    def __init__(self, axis: Axis = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Tensor:
        return w / (tensor_functions.epsilon() + _norms(w, self.axis))


class MinMaxNorm(Constraint):
    """Moves Euclidean norms of weights towards an interval.

    Args:
        min_value: The lower bound.
        max_value: The upper bound.
        rate: How far: 1 is into the interval.
        axis: Along which axes norms are taken.
    """

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Axis = 0) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Tensor:
        norms = _norms(w, self.axis)
        wanted = self.rate * tensor_functions.clip(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (wanted / (tensor_functions.epsilon() + norms))


class RadialConstraint(Constraint):
    """Makes kernels ``[size, size, inputs, outputs]`` equal along each square around their middle.

    All that stands on a square becomes what stands on the diagonal, as TensorFlow has it: for an odd size one step
    nearer to the first corner than the square's own last corner.

    Raises:
        ValueError: The weights have another rank.
    """

    def __call__(self, w: Any) -> Tensor:
        shape = w.shape.as_list()
        if len(shape) != 4:
            raise ValueError(f"The weight tensor must be of rank 4, but is of shape: {shape}")
        size, half = shape[0], shape[0] // 2
        from_middle = np.abs(2 * np.arange(size) - (size - 1)) // 2
        squares = np.maximum(from_middle[:, None], from_middle[None])
        places = half - 1 + squares if size % 2 else np.where(squares, half + squares, half - 1)
        return array_ops.gather_nd(w, np.stack([places, places], -1).astype(np.int32))


def _norms(w: Any, axis: Axis) -> Tensor:
    return tensor_functions.sqrt(math_ops.reduce_sum(math_ops.square(w), axis, keepdims=True))


max_norm = MaxNorm
min_max_norm = MinMaxNorm
non_neg = NonNeg
radial_constraint = RadialConstraint
unit_norm = UnitNorm

_BY_NAME: Final = {
    name: made
    for made in (MaxNorm, MinMaxNorm, NonNeg, RadialConstraint, UnitNorm)
    for name in (made.__name__, "".join(f"_{c.lower()}" if c.isupper() else c for c in made.__name__)[1:])
}


def get(identifier: Any) -> Any:
    """The constraint of that name, with its default arguments, or of that description. A function or object as it is.

    Raises:
        InvalidArgumentError: There is none.
    """
    if isinstance(identifier, Mapping):
        return restored(identifier)
    if not isinstance(identifier, str):
        return as_given(identifier, "constraint")
    return named_object(identifier, _BY_NAME, "constraint")


deserialize = deserializer(get)
