"""Masks of weights, and layers and cells whose weights have masks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike
from tfray.library.layers.arg_scope import add_arg_scope
from tfray.library.layers.convolution_layers import Conv2D
from tfray.library.layers.core_layers import Dense
from tfray.library.layers.slim_layers import connect, convolution2d, convolve, fully_connected
from tfray.library.rnn.rnn_cells import BasicLSTMCell, LSTMCell
from tfray.library.variables import initializers
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.ops.math import math_ops
from tfray.ops.nn.nn_ops import zero_fraction

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MASKS: Final = "masks"
_THRESHOLDS: Final = "thresholds"
_MASKED: Final = "masked_weights"
_WEIGHTS: Final = "kernel"
"""The collections that TensorFlow has for this."""


def _masked(weights: Any, mask: Any, threshold: Any) -> Tensor:
    graph = get_default_graph()
    product = math_ops.multiply(mask, weights, name="weights/masked_weight")
    if not any(each is mask for each in graph.get_collection(_MASKS)):
        pairs = ((_THRESHOLDS, threshold), (_MASKS, mask), (_MASKED, product), (_WEIGHTS, weights))
        for name, value in pairs:
            graph.add_to_collection(name, value)
    return product


def apply_mask(x: Any, scope: Any = "") -> Tensor:
    """Weights times a mask, a variable ``mask`` of ones; `Pruning` sets a part of it to 0.

    Args:
        x: A variable of any shape.
        scope: The scope of ``mask``, and of a scalar ``threshold``.

    Returns:
        The shape of `x`.
    """
    with variable_scope(scope):
        shape = x.shape.as_list()
        mask = get_variable("mask", shape, x.dtype, initializers.ones_initializer(), trainable=False)
        threshold = get_variable("threshold", [], x.dtype, initializers.zeros_initializer(), trainable=False)
    return _masked(x, mask, threshold)


def get_masked_weights() -> list[Tensor]:
    """The products of weights and masks."""
    return get_default_graph().get_collection(_MASKED)


def get_masks() -> list[Any]:
    """The masks."""
    return get_default_graph().get_collection(_MASKS)


def get_thresholds() -> list[Any]:
    """The variables with the sizes below which weights are masked."""
    return get_default_graph().get_collection(_THRESHOLDS)


def get_weights() -> list[Any]:
    """The weights that have masks."""
    return get_default_graph().get_collection(_WEIGHTS)


def get_weight_sparsity() -> list[Tensor]:
    """For each mask, the share of weights that it sets to 0, a scalar."""
    return [zero_fraction(mask) for mask in get_masks()]


# -- layers --------------------------------------------------------------------------------------------


def _mask_of(layer: Any, weights: Any) -> Tensor:
    """What a layer that is being built takes in place of its weights."""
    ones, zeros = initializers.ones_initializer(), initializers.zeros_initializer()
    mask = layer.add_weight("mask", weights.shape.as_list(), initializer=ones, trainable=False)
    threshold = layer.add_weight("threshold", [], initializer=zeros, trainable=False)
    return _masked(weights, mask, threshold)


class _MaskedDense(Dense):
    def build(self, input_shape: ShapeLike) -> None:
        super().build(input_shape)
        self.kernel: Any = _mask_of(self, self.kernel)


class _MaskedConv2D(Conv2D):
    def build(self, input_shape: ShapeLike) -> None:
        super().build(input_shape)
        self.kernel: Any = _mask_of(self, self.kernel)


class MaskedBasicLSTMCell(BasicLSTMCell):
    """`tf.nn.rnn_cell.BasicLSTMCell` whose weights have a mask."""

    def build(self, inputs_shape: ShapeLike) -> None:
        """Make the variables, those of the mask included."""
        super().build(inputs_shape)
        self._kernel: Any = _mask_of(self, self._kernel)


class MaskedLSTMCell(LSTMCell):
    """`tf.nn.rnn_cell.LSTMCell` whose weights, but for those of a projection, have a mask."""

    def build(self, inputs_shape: ShapeLike) -> None:
        """Make the variables, those of the mask included."""
        super().build(inputs_shape)
        self._kernel: Any = _mask_of(self, self._kernel)


def _with_masks(function: _Function, name: str, build: Callable[..., Tensor]) -> _Function:
    """A function of the arguments of another one, that builds a layer whose weights have a mask."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def masked(*args: Any, **kwargs: Any) -> Tensor:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return build(**given.arguments)

    masked.__name__ = masked.__qualname__ = name
    masked.__module__ = __name__
    masked.__doc__ = f"`tf.contrib.layers.{function.__name__}` whose weights have a mask; its arguments are the same."
    return cast(_Function, add_arg_scope(masked))


masked_fully_connected = _with_masks(fully_connected, "masked_fully_connected", partial(connect, _MaskedDense))
masked_convolution = _with_masks(convolution2d, "masked_convolution", partial(convolve, _MaskedConv2D, "Conv"))
masked_conv2d = masked_convolution
