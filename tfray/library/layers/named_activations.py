"""Activation functions by the names that Keras gives them; layers take these names too."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final

from tfray.errors import ArgumentError
from tfray.framework.call_errors import explained_function
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers.descriptions import get_custom_objects, named_object, restored
from tfray.ops.arrays.array_ops import identity
from tfray.ops.math.arithmetic_ops import exp as exponential
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.math.transcendental_ops import sigmoid as sigmoid
from tfray.ops.math.transcendental_ops import tanh as tanh
from tfray.ops.nn import activation_ops, cross_entropy_ops
from tfray.ops.nn.activation_ops import elu as elu
from tfray.ops.nn.activation_ops import leaky_relu, relu6, swish
from tfray.ops.nn.activation_ops import relu as relu
from tfray.ops.nn.cross_entropy_ops import log_softmax


def linear(x: Any) -> Any:
    """The identity."""
    return x


def selu(x: TensorLike) -> Tensor:
    """The scaled exponential linear unit; see `tf.nn.selu`."""
    return activation_ops.selu(x)


def softplus(x: TensorLike) -> Tensor:
    """``log(exp(x) + 1)``."""
    return activation_ops.softplus(x)


def softsign(x: TensorLike) -> Tensor:
    """``x / (abs(x) + 1)``."""
    return activation_ops.softsign(x)


def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """Exponentials that sum up to 1 along an axis.

    Losses take the logits of a matrix of these, and the probabilities of what has more axes, as in TensorFlow.

    Raises:
        ValueError: `x` has one axis, or none.
    """
    x = convert_to_tensor(x)
    rank = x.shape.rank
    if rank is not None and rank < 2:
        raise ValueError(f"Cannot apply softmax to a tensor that is 1D. Received input: {x}")
    shares = cross_entropy_ops.softmax(x, axis=axis)
    return shares if rank in (2, None) else identity(shares)


def hard_sigmoid(x: TensorLike) -> Tensor:
    """A sigmoid made of straight lines: ``0.2 * x + 0.5``, clipped to 0 and 1."""
    return clip_by_value(0.2 * convert_to_tensor(x) + 0.5, 0.0, 1.0)


_BY_NAME: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (elu, hard_sigmoid, linear, relu, selu, sigmoid, softmax, softplus, softsign, tanh)
} | {"exponential": exponential}

OF_NN: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function for function in (leaky_relu, log_softmax, relu6, swish)
}
"""Functions of ``tf.nn`` that descriptions of layers name, where programs have given these as activations."""


def get(identifier: Any) -> Callable[..., Any]:
    """An activation by name, or of its description; a function as it is; the identity for None.

    The function of a name is the one that ``tf.keras.activations`` has, as programs compare it with that.

    Raises:
        ArgumentError: It is nothing that can be called.
        InvalidArgumentError: There is none of that name.
    """
    if identifier is None:
        return _public("linear")
    if callable(identifier):
        function: Callable[..., Any] = identifier
        return function
    if isinstance(identifier, Mapping):
        identifier = restored(identifier)
        return identifier if callable(identifier) else get(identifier)
    if not isinstance(identifier, str):
        known = ", ".join(sorted(_BY_NAME))
        raise ArgumentError(f"Could not interpret activation function identifier: {identifier!r}; there are {known}")
    if identifier in OF_NN and identifier not in get_custom_objects():
        return OF_NN[identifier]
    found: Callable[..., Any] = named_object(identifier, _BY_NAME, "activation function")
    return _public(identifier) if found is _BY_NAME.get(identifier) else found


def _public(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(importlib.import_module("tfray.keras.activations"), name)
    return explained_function(function) if isinstance(function, FunctionType) else function
