"""The functions of ``tf.keras.backend`` for sequences, images and volumes, and its normalization of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.keras.settings import image_data_format
from tfray.library.layers.convolution_layers import layout_of, padding_of
from tfray.library.namespaces import nn
from tfray.library.variables.moving_average import assign_moving_average
from tfray.ops.arrays import array_ops
from tfray.ops.image import resize_ops
from tfray.ops.math import math_ops
from tfray.ops.math.sorting_ops import repeat
from tfray.ops.nn import normalization_ops

# fmt: off
__all__ = [
    "batch_normalization", "conv1d", "conv2d", "conv2d_transpose", "conv3d", "depthwise_conv2d", "local_conv1d",
    "local_conv2d", "moving_average_update", "normalize_batch_in_training", "pool2d", "pool3d", "resize_images",
    "resize_volumes", "separable_conv1d", "separable_conv2d", "spatial_2d_padding", "spatial_3d_padding",
]
# fmt: on

Numbers = int | Sequence[int]


def _layout(data_format: str | None, rank: int) -> str:
    data_format = data_format or image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format: {data_format}")
    return layout_of(data_format, rank)


def _padding(padding: str) -> str:
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding: {padding}")
    return padding_of(padding).upper()


def _sizes(value: Numbers, rank: int) -> list[int]:
    return [value] * rank if isinstance(value, int) else list(value)


def _convolution(
    x: Any, kernel: Any, strides: Numbers, padding: str, data_format: str | None, dilation_rate: Numbers, rank: int
) -> Tensor:
    layout = _layout(data_format, rank)
    return nn.convolution(
        x,
        kernel,
        _padding(padding),
        strides=_sizes(strides, rank),
        dilation_rate=_sizes(dilation_rate, rank),
        data_format=layout,
    )


def conv1d(
    x: Any,
    kernel: Any,
    strides: int = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int = 1,
) -> Tensor:
    """Convolve sequences, ``[batch, time, size]``, with a kernel ``[width, size, filters]``.

    Args:
        x: The sequences.
        kernel: The kernel.
        strides: Distance of windows.
        padding: ``same``, ``valid``, or ``causal``: no output depends on a later step.
        data_format: ``channels_last`` or ``channels_first``; `tf.keras.backend.image_data_format` when None.
        dilation_rate: Distance of the elements of a window.

    Raises:
        ValueError: There is no such padding or data format; so do the functions that follow.
    """
    if padding == "causal":
        before = int(dilation_rate) * (kernel.shape.as_list()[0] - 1)
        pads = [[0, 0], [before, 0], [0, 0]]
        x = array_ops.pad(x, pads if _layout(data_format, 1) == "NWC" else [pads[0], pads[2], pads[1]])
        padding = "valid"
    return _convolution(x, kernel, strides, padding, data_format, dilation_rate, 1)


def conv2d(
    x: Any,
    kernel: Any,
    strides: Numbers = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Numbers = (1, 1),
) -> Tensor:
    """Convolve images, ``[batch, height, width, size]``, with a kernel ``[height, width, size, filters]``."""
    return _convolution(x, kernel, strides, padding, data_format, dilation_rate, 2)


def conv3d(
    x: Any,
    kernel: Any,
    strides: Numbers = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Numbers = (1, 1, 1),
) -> Tensor:
    """Convolve volumes, ``[batch, depth, height, width, size]``, as `conv2d` does with images."""
    return _convolution(x, kernel, strides, padding, data_format, dilation_rate, 3)


def conv2d_transpose(
    x: Any,
    kernel: Any,
    output_shape: Any,
    strides: Numbers = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Numbers = (1, 1),
) -> Tensor:
    """The transpose of `conv2d`: images of `output_shape`, for a kernel ``[height, width, filters, size]``."""
    layout, steps = _layout(data_format, 2), _sizes(strides, 2)
    sizes = list(output_shape) if isinstance(output_shape, (list, tuple)) else output_shape
    if isinstance(sizes, list) and sizes[0] is None:
        sizes[0] = array_ops.shape(x)[0]
    shape = array_ops.stack(sizes) if isinstance(sizes, list) else sizes
    dilations = _sizes(dilation_rate, 2)
    if dilations != [1, 1]:
        if dilations[0] != dilations[1] or layout != "NHWC":
            raise ValueError(f"conv2d_transpose takes one dilation rate, and channels_last with it: {dilation_rate}")
        return nn.atrous_conv2d_transpose(x, kernel, shape, dilations[0], _padding(padding))
    return nn.conv2d_transpose(x, kernel, shape, steps, _padding(padding), layout)


def depthwise_conv2d(
    x: Any,
    depthwise_kernel: Any,
    strides: Numbers = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Numbers = (1, 1),
) -> Tensor:
    """Convolve each channel of images with kernels of its own, ``[height, width, size, multiplier]``."""
    layout = _layout(data_format, 2)
    steps = _spread(strides, layout)
    return nn.depthwise_conv2d(
        x, depthwise_kernel, steps, _padding(padding), rate=_sizes(dilation_rate, 2), data_format=layout
    )


def separable_conv2d(
    x: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Numbers = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Numbers = (1, 1),
) -> Tensor:
    """`depthwise_conv2d`, and then `conv2d` with a kernel ``[1, 1, size * multiplier, filters]``."""
    layout = _layout(data_format, 2)
    return nn.separable_conv2d(
        x,
        depthwise_kernel,
        pointwise_kernel,
        _spread(strides, layout),
        _padding(padding),
        rate=_sizes(dilation_rate, 2),
        data_format=layout,
    )


def separable_conv1d(
    x: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Numbers = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Numbers = 1,
) -> Tensor:
    """The same for sequences, with kernels ``[width, size, multiplier]`` and ``[1, size * multiplier, filters]``."""
    axis = 1 if _layout(data_format, 1) == "NWC" else 2
    made = separable_conv2d(
        array_ops.expand_dims(x, axis),
        array_ops.expand_dims(depthwise_kernel, 0),
        array_ops.expand_dims(pointwise_kernel, 0),
        _sizes(strides, 1) * 2,
        padding,
        data_format,
        (1, *_sizes(dilation_rate, 1)),
    )
    return array_ops.squeeze(made, [axis])


def _spread(strides: Numbers, layout: str) -> list[int]:
    sizes = _sizes(strides, 2)
    return [1, *sizes, 1] if layout == "NHWC" else [1, 1, *sizes]


def _pool(
    x: Any, pool_size: Numbers, strides: Numbers, padding: str, data_format: str | None, pool_mode: str, rank: int
) -> Tensor:
    if pool_mode not in ("max", "avg"):
        raise ValueError(f"Invalid pooling mode: {pool_mode}")
    return nn.pool(
        x,
        _sizes(pool_size, rank),
        pool_mode.upper(),
        _padding(padding),
        strides=_sizes(strides, rank),
        data_format=_layout(data_format, rank),
    )


def pool2d(
    x: Any,
    pool_size: Numbers,
    strides: Numbers = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Tensor:
    """The maxima of windows of images, or their means where `pool_mode` is ``avg``."""
    return _pool(x, pool_size, strides, padding, data_format, pool_mode, 2)


def pool3d(
    x: Any,
    pool_size: Numbers,
    strides: Numbers = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Tensor:
    """The same of volumes."""
    return _pool(x, pool_size, strides, padding, data_format, pool_mode, 3)


# -- kernels for each place ----------------------------------------------------------------------------


def local_conv1d(
    inputs: Any, kernel: Any, kernel_size: Sequence[int], strides: Sequence[int], data_format: str | None = None
) -> Tensor:
    """As `conv1d`, with a kernel for each place: ``[places, width * size, filters]``."""
    places = kernel.shape.as_list()[0]
    return _local(inputs, kernel, kernel_size, strides, [places], data_format)


def local_conv2d(
    inputs: Any,
    kernel: Any,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    output_shape: Sequence[int],
    data_format: str | None = None,
) -> Tensor:
    """As `conv2d`, with a kernel for each place: ``[rows * columns, height * width * size, filters]``.

    Args:
        inputs: The images.
        kernel: The kernels.
        kernel_size: Height and width.
        strides: Distances of windows.
        output_shape: Rows and columns of the outputs.
        data_format: As for `conv1d`.
    """
    return _local(inputs, kernel, kernel_size, strides, output_shape, data_format)


def _local(
    inputs: Any,
    kernel: Any,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    output_shape: Sequence[int],
    data_format: str | None,
) -> Tensor:
    rank = len(output_shape)
    first = 1 if _layout(data_format, rank).endswith("C") else 2
    tensor = convert_to_tensor(inputs)
    for axis in range(rank):  # each axis becomes two: that of places and that of the window
        places = np.arange(output_shape[axis])[:, None] * strides[axis] + np.arange(kernel_size[axis])
        tensor = array_ops.gather(tensor, places.astype(np.int32), axis=first + 2 * axis)
    channel = 1 if first == 2 else 1 + 2 * rank
    outer, inner = [first + 2 * axis for axis in range(rank)], [first + 2 * axis + 1 for axis in range(rank)]
    order = [0, *outer, channel, *inner] if first == 2 else [0, *outer, *inner, channel]
    count, length, filters = kernel.shape.as_list()
    windows = array_ops.reshape(array_ops.transpose(tensor, order), [-1, count, length])
    made = array_ops.reshape(math_ops.einsum("bpl,plf->bpf", windows, kernel), [-1, *output_shape, filters])
    return made if first == 1 else array_ops.transpose(made, [0, rank + 1, *range(1, rank + 1)])


# -- sizes ---------------------------------------------------------------------------------------------


def resize_images(
    x: Any, height_factor: int, width_factor: int, data_format: str | None, interpolation: str = "nearest"
) -> Tensor:
    """Images larger by whole factors.

    Args:
        x: The images.
        height_factor: The factor of their heights.
        width_factor: That of their widths.
        data_format: As for `conv1d`.
        interpolation: ``nearest`` or ``bilinear``.
    """
    if interpolation not in ("nearest", "bilinear"):
        raise ValueError('interpolation should be one of "nearest" or "bilinear".')
    x = convert_to_tensor(x)
    is_first = _layout(data_format, 2) == "NCHW"
    last = array_ops.transpose(x, [0, 2, 3, 1]) if is_first else x
    factors = np.array([height_factor, width_factor], np.int32)
    known: list[Any] = last.shape.as_list()[1:3]
    size = array_ops.shape(last)[1:3] * factors
    if interpolation == "nearest":
        made = resize_ops.resize_nearest_neighbor(last, size)
    else:
        made = resize_ops.resize_bilinear(last, size, half_pixel_centers=True)
    sizes = [None if size is None else size * int(factor) for size, factor in zip(known, factors, strict=True)]
    made.set_shape([None, *sizes, None])
    return array_ops.transpose(made, [0, 3, 1, 2]) if is_first else made


def resize_volumes(x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: str | None) -> Tensor:
    """Volumes larger by whole factors: elements are repeated."""
    first = 1 if _layout(data_format, 3) == "NDHWC" else 2
    for axis, factor in enumerate((depth_factor, height_factor, width_factor)):
        x = repeat(x, factor, first + axis)
    return x


def spatial_2d_padding(
    x: Any, padding: Sequence[Sequence[int]] = ((1, 1), (1, 1)), data_format: str | None = None
) -> Tensor:
    """Zeros around images: above and below, left and right."""
    return _padded(x, padding, data_format, 2)


def spatial_3d_padding(
    x: Any, padding: Sequence[Sequence[int]] = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None
) -> Tensor:
    """Zeros around volumes."""
    return _padded(x, padding, data_format, 3)


def _padded(x: Any, padding: Sequence[Sequence[int]], data_format: str | None, rank: int) -> Tensor:
    own = [list(pair) for pair in padding]
    is_last = _layout(data_format, rank).endswith("C")
    return array_ops.pad(x, [[0, 0], *own, [0, 0]] if is_last else [[0, 0], [0, 0], *own])


# -- normalization -------------------------------------------------------------------------------------


def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Tensor:
    """``gamma * (x - mean) / sqrt(var + epsilon) + beta``."""
    x = convert_to_tensor(x)
    rank = x.shape.rank or 0
    shape = [1] * rank
    shape[axis] = -1
    across = rank > 1 and axis % rank != rank - 1
    values: list[Any] = [
        array_ops.reshape(each, shape) if across and each is not None and len(each.shape) == 1 else each
        for each in (mean, var, beta, gamma)
    ]
    mean, var, beta, gamma = values
    return normalization_ops.batch_normalization(x, mean, var, beta, gamma, epsilon)


def normalize_batch_in_training(
    x: Any, gamma: Any, beta: Any, reduction_axes: Sequence[int], epsilon: float = 1e-3
) -> tuple[Tensor, Tensor, Tensor]:
    """The batch normalized by its own mean and variance along axes, and these.

    Args:
        x: The batch.
        gamma: What it is multiplied by then; None for 1.
        beta: What is added then; None for 0.
        reduction_axes: The axes.
        epsilon: Added to the variance.

    Returns:
        The batch; the mean; the variance, which for images with channels last is that of `tf.nn.fused_batch_norm`: what
        the batch says of all others, a little larger than its own.
    """
    x = convert_to_tensor(x)
    axes = sorted(axis % (x.shape.rank or 1) for axis in reduction_axes)
    if x.shape.rank == 4 and axes == [0, 1, 2]:
        channels = array_ops.shape(x)[-1:]
        scale = array_ops.ones(channels, x.dtype) if gamma is None else gamma
        offset = array_ops.zeros(channels, x.dtype) if beta is None else beta
        return nn.fused_batch_norm(x, scale, offset, epsilon=epsilon)
    mean, var = normalization_ops.moments(x, axes)
    shape = [1 if axis in axes else size for axis, size in enumerate(array_ops.unstack(array_ops.shape(x)))]
    values: list[Any] = [None if each is None else array_ops.reshape(each, shape) for each in (mean, var, beta, gamma)]
    made = normalization_ops.batch_normalization(x, values[0], values[1], values[2], values[3], epsilon)
    return made, mean, var


def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """Move a variable towards a value: an operation. The first values count more, as if the variable were 0 before."""
    return assign_moving_average(x, value, momentum, zero_debias=True)
