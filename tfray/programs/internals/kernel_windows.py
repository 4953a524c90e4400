"""What ``keras.utils.conv_utils`` has beside lengths: which inputs a convolution's outputs see, and turned kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tfray.programs import layer_internals

__all__ = ["conv_connected_inputs", "conv_kernel_mask", "conv_output_shape", "convert_kernel", "deconv_output_length"]


def conv_output_shape(
    input_shape: Sequence[int], kernel_shape: Sequence[int], strides: Sequence[int], padding: str
) -> tuple[int, ...]:
    """Spatial shape of a convolution's result, whose kernel takes at least one step in each dimension."""
    reach = [max(size, 1) for size in kernel_shape]
    sizes = zip(input_shape, reach, strides, strict=False)
    return tuple(layer_internals.conv_output_length(size, width, padding, step) or 0 for size, width, step in sizes)


def conv_connected_inputs(
    input_shape: Sequence[int],
    kernel_shape: Sequence[int],
    output_position: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> list[range]:
    """In each dimension the positions of the input that one position of the output sees.

    Args:
        input_shape: Spatial shape of the input.
        kernel_shape: Spatial shape of the kernel.
        output_position: The position of the output, a number for each dimension.
        strides: Steps of the kernel.
        padding: ``valid`` or ``same``.
    """
    seen = []
    for size, width, position, step in zip(input_shape, kernel_shape, output_position, strides, strict=True):
        before = width // 2
        middle = position * step + (before if padding == "valid" else 0)
        seen.append(range(max(0, middle - before), min(size, middle + width - before)))
    return seen


def conv_kernel_mask(
    input_shape: Sequence[int], kernel_shape: int | Sequence[int], strides: int | Sequence[int], padding: str
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which positions of the input reach which of the output.

    Args:
        input_shape: Spatial shape of the input.
        kernel_shape: Spatial shape of the kernel, or one number for all dimensions.
        strides: Steps of the kernel, or one number for all dimensions.
        padding: ``valid`` or ``same``.

    Returns:
        A bool array, ``[*input_shape, *output_shape]``.

    Raises:
        NotImplementedError: Another `padding`.
        ValueError: `kernel_shape` or `strides` has another rank than `input_shape`.
    """
    if padding not in ("same", "valid"):
        raise NotImplementedError(f'Padding type {padding} not supported. Only "valid" and "same" are implemented.')
    rank = len(input_shape)
    kernel = (kernel_shape,) * rank if isinstance(kernel_shape, int) else tuple(kernel_shape)
    steps = (strides,) * rank if isinstance(strides, int) else tuple(strides)
    if not len(kernel) == len(steps) == rank:
        raise ValueError(
            "Number of strides, input and kernel dimensions must all match. "
            f"Received: {len(steps)}, {rank}, {len(kernel)}."
        )
    output_shape = conv_output_shape(input_shape, kernel, steps, padding)
    mask = np.zeros((*input_shape, *output_shape), np.bool_)
    for position in product(*(range(size) for size in output_shape)):
        seen = conv_connected_inputs(input_shape, kernel, position, steps, padding)
        place: tuple[Any, ...] = (*(slice(each.start, each.stop) for each in seen), *position)
        mask[place] = True
    return mask


def convert_kernel(kernel: Any) -> np.ndarray[Any, Any]:
    """A kernel of one to three dimensions, ``[..., inputs, outputs]``, turned around in each of them.

    Raises:
        ValueError: It has another rank.
    """
    array = np.asarray(kernel)
    if not 3 <= array.ndim <= 5:
        raise ValueError("Invalid kernel shape:", array.shape)
    return np.flip(array, tuple(range(array.ndim - 2))).copy()


def deconv_output_length(
    input_length: int | None,
    filter_size: int,
    padding: str,
    output_padding: int | None = None,
    stride: int = 0,
    dilation: int = 1,
) -> int | None:
    """Size of a transposed convolution's result along an axis, with the arguments that Keras has for it.

    Args:
        input_length: Size of its input; None for an unknown one.
        filter_size: Size of the filter.
        padding: ``same``, ``valid`` or ``full``.
        output_padding: What is added at the end; None for what `padding` makes it.
        stride: Step of the filter.
        dilation: Distance between the filter's elements.

    Returns:
        The size, None where that of the input is.
    """
    if input_length is None:
        return None
    reach = (filter_size - 1) * dilation + 1
    if output_padding is None:
        return layer_internals.deconv_output_length(input_length, reach, padding, stride)
    cut = {"same": reach // 2, "valid": 0, "full": reach - 1}[padding]
    return (input_length - 1) * stride + reach - 2 * cut + output_padding
