"""Which inputs the outputs of a convolution see, lengths of transposed ones, and turned kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tfray.programs.internals import kernel_windows as windows


def seen(size, width, step, padding):
    """For each output along one axis, which inputs its window covers."""
    length = -(-size // step) if padding == "same" else -(-(size - width + 1) // step)
    first = width // 2 if padding == "same" else 0
    starts = [position * step - first for position in range(max(length, 0))]
    return np.array([[start <= each < start + width for start in starts] for each in range(size)], bool)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(
    ("shape", "kernel", "strides"),
    [
        ((4,), (3,), (1,)),
        ((5,), (1,), (2,)),
        ((3, 2), (2, 1), (1, 1)),
        ((4, 5), (3, 3), (1, 2)),
        ((3, 2, 2), (1, 2, 2), (2, 1, 1)),
    ],
)
def test_masks_are_products_of_those_of_each_axis(shape, kernel, strides, padding):
    mask = windows.conv_kernel_mask(shape, kernel, strides, padding)
    axes = [seen(*each, padding) for each in zip(shape, kernel, strides, strict=True)]
    assert mask.dtype == np.bool_
    assert mask.shape == (*shape, *(axis.shape[1] for axis in axes))
    for place in np.ndindex(*mask.shape):
        rank = len(shape)
        assert mask[place] == all(axis[place[i], place[rank + i]] for i, axis in enumerate(axes))


@pytest.mark.parametrize(
    ("shape", "kernel"), [((0,), 1), ((3, 0), 1), ((1, 0, 1), (1, 1, 1)), ((0, 3), (0, 3)), ((2, 2), (2, 2))]
)
def test_masks_of_nothing(shape, kernel):
    mask = windows.conv_kernel_mask(shape, kernel, 1, "valid")
    assert mask.shape[: len(shape)] == shape and mask.all()  # a diagonal of one element, or no element


@pytest.mark.parametrize(
    ("kernel", "strides", "padding", "error", "match"),
    [
        ((2, 1), (1,), "same", ValueError, "must all match. Received: 1, 2, 2."),
        ((2,), (1, 1), "valid", ValueError, "must all match. Received: 2, 2, 1."),
        ((2, 1), (1, 1), "full", NotImplementedError, "Padding type full not supported"),
    ],
)
def test_masks_that_are_refused(kernel, strides, padding, error, match):
    with pytest.raises(error, match=match):
        windows.conv_kernel_mask((3, 2), kernel, strides, padding)


@pytest.mark.parametrize(
    ("made", "expected"),
    [  # TensorFlow 1.15's values
        (lambda: windows.conv_connected_inputs((4, 5), (3, 3), (1, 2), (2, 1), "same"), [range(1, 4), range(1, 4)]),
        (lambda: windows.conv_connected_inputs((4, 5), (3, 3), (1, 1), (2, 1), "valid"), [range(2, 4), range(1, 4)]),
        (lambda: windows.conv_output_shape((4, 5), (3, 2), (1, 2), "same"), (4, 3)),
        (lambda: windows.conv_output_shape((4, 5), (3, 2), (1, 2), "valid"), (2, 2)),
        (lambda: windows.conv_output_shape((0,), (0,), (1,), "valid"), (0,)),
        (lambda: windows.deconv_output_length(None, 3, "same"), None),
    ],
)
def test_windows_and_shapes(made, expected):
    assert made() == expected


def test_lengths_of_transposed_convolutions():
    choices = itertools.product(("valid", "same", "full"), (None, 0, 1), (1, 2), (1, 2))
    found = [windows.deconv_output_length(4, 3, padding, more, step, wide) for padding, more, step, wide in choices]
    # TensorFlow 1.15's values
    valid, same = [6, 8, 9, 11, 6, 8, 9, 11, 7, 9, 10, 12], [4, 4, 8, 8, 4, 4, 7, 7, 5, 5, 8, 8]
    assert found == [*valid, *same, 2, 0, 5, 3, 2, 0, 5, 3, 3, 1, 6, 4]


def test_kernels_are_turned():
    kernel = np.arange(24.0).reshape(2, 3, 2, 2)
    np.testing.assert_array_equal(windows.convert_kernel(kernel), kernel[::-1, ::-1])
    with pytest.raises(ValueError, match="Invalid kernel shape"):
        windows.convert_kernel(np.zeros((2, 2)))
