"""Functions with densely connected layers for the flows of ``tf.contrib.distributions.bijectors``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype, float32
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Activation, TensorLike
from tfray.library.distributions.vector_bijectors import ShiftAndLogScale
from tfray.library.layers.core_layers import dense
from tfray.library.variables.initializers import glorot_normal_initializer
from tfray.library.variables.template import make_template
from tfray.ops.arrays import array_ops
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.nn.activation_ops import relu


def real_nvp_default_template(
    hidden_layers: Sequence[int],
    shift_only: bool = False,
    activation: Activation | None = relu,
    name: str | None = None,
) -> ShiftAndLogScale:
    """A function for `RealNVP` with densely connected layers, whose variables all calls share.

    Args:
        hidden_layers: Sizes of the layers before the last.
        shift_only: Whether nothing is scaled.
        activation: What follows each of these layers.
        name: Name of the variable scope.
    """

    def function(x: Tensor, output_units: int) -> tuple[Tensor, Tensor | None]:
        if x.shape.rank == 1:
            shift, log_scale = function(x[None], output_units)
            return shift[0], None if log_scale is None else log_scale[0]
        for units in hidden_layers:
            x = dense(x, units, activation)
        x = dense(x, output_units if shift_only else 2 * output_units)
        return (x, None) if shift_only else (x[..., :output_units], x[..., output_units:])

    return make_template(name or "real_nvp_default_template", function)


def masked_dense(
    inputs: TensorLike,
    units: int,
    num_blocks: int | None = None,
    exclusive: bool = False,
    kernel_initializer: Callable[..., TensorLike] | None = None,
    activation: Activation | None = None,
    name: str | None = None,
) -> Tensor:
    """A densely connected layer whose outputs, in blocks, take only the blocks of the inputs up to their own.

    Args:
        inputs: ``[..., n]``.
        units: How many outputs.
        num_blocks: How many blocks there are of each.
        exclusive: Whether the block of the same number is left out too.
        kernel_initializer: Makes the kernel, of which parts become 0; Glorot's normal one when None.
        activation: What follows.
        name: Name of the layer.

    Raises:
        NotImplementedError: It is not known how many inputs there are.
    """
    values = convert_to_tensor(inputs)
    depth = values.shape.as_list()[-1]
    if depth is None:
        raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
    mask = autoregressive_mask(num_blocks or 1, depth, units, exclusive)
    initial = kernel_initializer or glorot_normal_initializer()

    def masked(kernel: Tensor) -> Tensor:
        return kernel * mask.astype(kernel.dtype.as_numpy_dtype)

    def masked_initializer(shape: TensorShape, dtype: DTypeLike = float32, partition_info: object = None) -> Tensor:
        return masked(convert_to_tensor(initial(shape, as_dtype(dtype))))

    return dense(values, units, activation, kernel_initializer=masked_initializer, kernel_constraint=masked, name=name)


def autoregressive_mask(blocks: int, inputs: int, units: int, exclusive: bool) -> np.ndarray[Any, np.dtype[np.float32]]:
    """1 where an input, a row, may go into an output, a column."""
    mask = np.zeros([inputs, units], np.float32)
    rows, columns = inputs // blocks, units // blocks
    for block in range(blocks):
        first = (block + exclusive) * columns
        mask[block * rows : (block + 1) * rows, first:] = 1
    return mask


def masked_autoregressive_default_template(
    hidden_layers: Sequence[int],
    shift_only: bool = False,
    activation: Activation | None = relu,
    log_scale_min_clip: float = -5.0,
    log_scale_max_clip: float = 3.0,
    log_scale_clip_gradient: bool = False,
    name: str | None = None,
) -> Callable[[Tensor], tuple[Tensor, Tensor | None]]:
    """A function for `MaskedAutoregressiveFlow` with layers of `masked_dense`, whose variables all calls share.

    Args:
        hidden_layers: Sizes of the layers before the last.
        shift_only: Whether nothing is scaled.
        activation: What follows each of these layers.
        log_scale_min_clip: The least logarithm of a factor.
        log_scale_max_clip: The largest one.
        log_scale_clip_gradient: Whether no gradient flows where these bounds hold.
        name: Name of the variable scope.
    """

    def function(x: Tensor) -> tuple[Tensor, Tensor | None]:
        depth = x.shape.with_rank_at_least(1).as_list()[-1]
        if depth is None:
            raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
        sizes = array_ops.shape(x)
        y = x[None] if x.shape.rank == 1 else x
        for index, units in enumerate(hidden_layers):
            y = masked_dense(y, units, depth, exclusive=index == 0, activation=activation)
        y = masked_dense(y, depth * (1 if shift_only else 2), depth, exclusive=not hidden_layers)
        if shift_only:
            return array_ops.reshape(y, sizes), None
        shift, log_scale = array_ops.unstack(array_ops.reshape(y, array_ops.concat([sizes, [2]], 0)), 2, -1)
        clipped = clip_by_value(log_scale, log_scale_min_clip, log_scale_max_clip)
        if not log_scale_clip_gradient:
            clipped = log_scale + array_ops.stop_gradient(clipped - log_scale)
        return shift, clipped

    return make_template(name or "masked_autoregressive_default_template", function)
