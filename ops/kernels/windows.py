"""Sliding windows over images: sizes, paddings and views that convolution and pooling share.

Images have one of two layouts: NHWC ``[batch, height, width, channels]`` or NCHW ``[batch, channels, height,
width]``. Kernels see both as NHWC views and leave the strides to the array module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework.op_def import Array
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes

LAYOUTS: Final = ("NHWC", "NCHW")


class Axis(NamedTuple):
    """Windows along one spatial axis.

    Attributes:
        size: Size of the image.
        window: Number of elements that a window takes.
        stride: Distance between the starts of neighbouring windows.
        dilation: Distance between neighbouring elements of a window.
        before: Padding in front of the image.
        after: Padding behind it.
        steps: Number of windows.
    """

    size: int
    window: int
    stride: int
    dilation: int
    before: int
    after: int
    steps: int

    @property
    def extent(self) -> int:
        """Distance from a window's first element to its last, plus one."""
        return (self.window - 1) * self.dilation + 1

    @property
    def is_padded(self) -> bool:
        """Whether some window reaches beyond the image."""
        return self.before > 0 or (self.steps - 1) * self.stride + self.extent > self.size + self.before

    @property
    def is_tiled(self) -> bool:
        """Whether the windows cover the image exactly, each element once."""
        return self.stride == self.window == self.extent and self.steps * self.stride == self.size and not self.before

    def clipped(self, index: int) -> tuple[slice, slice]:
        """The windows whose element `index` lies within the image, and the positions of these elements in the image."""
        offset = index * self.dilation - self.before
        first = max(0, -(offset // self.stride))
        last = min(self.steps, (self.size - 1 - offset) // self.stride + 1)
        last = max(first, last)
        start = first * self.stride + offset
        stop = start + (last - first - 1) * self.stride + 1 if last > first else start
        return slice(first, last), slice(start, stop, self.stride)


def window_axis(size: int, window: int, stride: int, dilation: int, padding: str | tuple[int, int]) -> Axis:
    """The windows along one axis.

    Args:
        size: Size of the image.
        window: Elements of a window.
        stride: Distance between windows.
        dilation: Distance between a window's elements.
        padding: ``SAME``, ``VALID``, or the padding (before, after).

    Raises:
        ValueError: The window is larger than the padded image.
        InvalidArgumentError: There is no such padding.
    """
    extent = (window - 1) * dilation + 1
    if padding == "SAME":
        count = -(-size // stride)
        total = max(0, (count - 1) * stride + extent - size)
        return Axis(size, window, stride, dilation, total // 2, total - total // 2, count)
    if padding != "VALID" and not isinstance(padding, tuple):  # of an imported graph
        raise InvalidArgumentError(f"padding is {padding!r}, expected SAME or VALID")
    before, after = padding if isinstance(padding, tuple) else (0, 0)
    padded = size + before + after
    if padded < extent:
        raise ValueError(
            f"a window of {window} elements, {dilation} apart, spans {extent}, more than the {padded} of the padded "
            "image: use a smaller window or padding='SAME'"
        )
    return Axis(size, window, stride, dilation, before, after, (padded - extent) // stride + 1)


def window_count(
    size: int | None, window: int | None, stride: int, dilation: int, padding: str | tuple[int, int]
) -> int | None:
    """Number of windows along an axis, or None when it depends on an unknown size."""
    if size is None or (window is None and padding != "SAME"):
        return None
    return window_axis(size, window or 1, stride, dilation, padding).steps


# -- arguments and attributes --------------------------------------------------------------------------


def spatial_axes(data_format: str) -> tuple[int, int]:
    """Where height and width stand in a layout."""
    return (1, 2) if data_format == "NHWC" else (2, 3)


def channel_axis(data_format: str) -> int:
    """Where the channels stand in a layout."""
    return 3 if data_format == "NHWC" else 1


def checked_layout(op: str, data_format: str | None) -> str:
    """`data_format`, ``NHWC`` when None. Raises `InvalidArgumentError` for an unknown one."""
    if data_format is None:
        return "NHWC"
    if data_format not in LAYOUTS:
        raise InvalidArgumentError(f"{op}: data_format has to be either NCHW or NHWC, not {data_format!r}")
    return data_format


def per_axis(op: str, what: str, value: Sizes, data_format: str) -> list[int]:
    """A stride, dilation or window size as four integers in the order of the layout.

    Args:
        op: Name for the error message.
        what: Name of the argument, likewise.
        value: One integer for both axes, one or two for height and width, or all four.
        data_format: The layout.

    Raises:
        ArgumentError: Another number of values, one below 1, or nested lists.
    """
    values = [int(item) for item in np.ravel(value)]
    if len(values) not in (1, 2, 4) or min(values) < 1 or np.ndim(value) > 1:
        raise ArgumentError(f"{op}: {what} is {value!r}, expected 1, 2 or 4 integers of at least 1")
    if len(values) == 4:
        return values
    height, width = values * (2 // len(values))
    return [1, height, width, 1] if data_format == "NHWC" else [1, 1, height, width]


def all_axes(op: str, what: str, value: Sizes) -> list[int]:
    """A stride, rate or window size where TensorFlow takes four integers alone, in the order of the layout.

    Raises:
        ArgumentError: It is no list, one of another number of values, of one below 1, or nested.
    """
    is_list = isinstance(value, (Sequence, np.ndarray)) and np.ndim(value) == 1
    values = [int(item) for item in np.ravel(value)] if is_list else []
    if len(values) != 4 or min(values) < 1:
        raise ArgumentError(f"{op}: {what} is {value!r}, expected a list of four integers of at least 1")
    return values


def spatial_only(op: str, what: str, values: Sequence[int], data_format: str) -> None:
    """Raise `InvalidArgumentError` unless a stride, dilation or size is 1 along batch and channels."""
    if values[0] != 1 or values[channel_axis(data_format)] != 1:
        raise InvalidArgumentError(f"{op}: {what} is {list(values)}, expected 1 along batch and channels")


def padding_attrs(op: str, padding: Padding, data_format: str) -> dict[str, Any]:
    """Attributes ``padding`` and ``explicit_paddings`` from the argument `padding`.

    Args:
        op: Name for the error message.
        padding: ``"SAME"``, ``"VALID"``, or four pairs (before, after) in the order of the layout.
        data_format: The layout.

    Raises:
        InvalidArgumentError: Neither of these, or pairs with negative or non-spatial padding.
    """
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise InvalidArgumentError(f"{op}: padding is {padding!r}, expected SAME, VALID or four pairs")
        return {"padding": padding.upper(), "explicit_paddings": []}
    pairs = [[int(amount) for amount in pair] for pair in padding]
    if len(pairs) != 4 or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise InvalidArgumentError(f"{op}: padding is {padding!r}, expected four pairs of amounts of at least 0")
    if any(pairs[0]) or any(pairs[channel_axis(data_format)]):
        raise InvalidArgumentError(f"{op}: padding is {padding!r}, expected none along batch and channels")
    return {"padding": "EXPLICIT", "explicit_paddings": [amount for pair in pairs for amount in pair]}


class WindowAttrs(NamedTuple):
    """The attributes of a windowed operation, for height and width. Hashable, so that geometry can be cached."""

    layout: str
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[str | tuple[int, int], str | tuple[int, int]]

    @classmethod
    def read(cls, attr: Callable[[str], Any]) -> WindowAttrs:
        """From ``attr(name)`` of an operation or a kernel context."""
        layout: str = attr("data_format")
        height, width = spatial_axes(layout)
        strides, dilations = attr("strides"), attr("dilations")
        padding: Any = (attr("padding"),) * 2
        if padding[0] == "EXPLICIT":
            pads = attr("explicit_paddings")
            padding = tuple((pads[2 * axis], pads[2 * axis + 1]) for axis in (height, width))
        return cls(layout, (strides[height], strides[width]), (dilations[height], dilations[width]), padding)

    def axes(self, sizes: tuple[int, int], window: tuple[int, int]) -> tuple[Axis, Axis]:
        """Windows along height and width of an image of these sizes. Raises `ValueError` as `window_axis`."""
        along = zip(sizes, window, self.stride, self.dilation, self.padding, strict=True)
        height, width = (window_axis(*arguments) for arguments in along)
        return height, width

    def counts(self, sizes: Sequence[int | None], window: Sequence[int | None]) -> list[int | None]:
        """Static number of windows along height and width."""
        along = zip(sizes, window, self.stride, self.dilation, self.padding, strict=True)
        return [window_count(*arguments) for arguments in along]


# -- layouts -------------------------------------------------------------------------------------------


def as_nhwc(images: Array, layout: str) -> Array:
    """A view of images in `layout` as NHWC."""
    return images if layout == "NHWC" else images.transpose(0, 2, 3, 1)


def image_sizes(shape: Sequence[int | None], layout: str) -> tuple[Any, Any, Any, Any]:
    """(batch, height, width, channels) of a shape in `layout`."""
    first, second, third, fourth = shape
    return (first, second, third, fourth) if layout == "NHWC" else (first, third, fourth, second)


def image_shape(
    batch: int | None, height: int | None, width: int | None, channels: int | None, layout: str
) -> tuple[Any, Any, Any, Any]:
    """These sizes in the order of `layout`."""
    return (batch, height, width, channels) if layout == "NHWC" else (batch, channels, height, width)


def static_image_sizes(shape: TensorShape, layout: str) -> tuple[Any, Any, Any, Any]:
    """`image_sizes` of a static shape. Raises `ValueError` when it has another rank than 4."""
    return image_sizes(shape.with_rank(4).sizes, layout)
