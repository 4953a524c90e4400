"""Convolution of volumes: images whose channels are those of the neighbouring slices too, convolved in two dimensions.

A window's slices become channels: a volume ``[depth, height, width, channels]`` turns into one image
``[height, width, window depth * channels]`` for each position of the window along the depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array, ArrayModule
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Sizes
from tfray.ops.arrays.broadcast_ops import accumulator_dtype
from tfray.ops.kernels.copies import fill
from tfray.ops.kernels.tiles import buffer
from tfray.ops.kernels.windows import Axis, window_axis, window_count
from tfray.ops.nn.conv_geometry import Geometry
from tfray.ops.nn.convolution import convolve, convolve_backward_filters, convolve_backward_images

VOLUME_LAYOUTS: Final = ("NDHWC", "NCDHW")


def checked_volume_layout(op: str, data_format: str | None) -> str:
    """`data_format`, ``NDHWC`` when None. Raises `InvalidArgumentError` for an unknown one."""
    if data_format is None:
        return "NDHWC"
    if data_format not in VOLUME_LAYOUTS:
        raise InvalidArgumentError(f"{op}: data_format has to be either NCDHW or NDHWC, not {data_format!r}")
    return data_format


def per_volume_axis(op: str, what: str, value: Sizes, layout: str) -> list[int]:
    """A stride, dilation or window size as three integers: depth, height, width.

    Raises:
        InvalidArgumentError: Not 1, 3 or 5 integers of at least 1, or more than 1 along batch or channels.
    """
    values = [int(item) for item in (value if isinstance(value, Sequence) else [value])]
    if len(values) not in (1, 3, 5) or min(values) < 1:
        raise InvalidArgumentError(f"{op}: {what} is {value!r}, expected 1, 3 or 5 integers of at least 1")
    if len(values) == 5:
        batch, channels = values[0], values[4 if layout == "NDHWC" else 1]
        if batch != 1 or channels != 1:
            raise InvalidArgumentError(f"{op}: {what} is {values}, expected 1 along batch and channels")
        return values[1:4] if layout == "NDHWC" else values[2:]
    return values * (3 // len(values))


def volume_sizes(shape: Sequence[int | None], layout: str) -> tuple[Any, ...]:
    """A shape in the order batch, depth, height, width, channels."""
    return tuple(shape) if layout == "NDHWC" else (shape[0], *shape[2:], shape[1])


def volume_shape(sizes: Sequence[int | None], layout: str) -> TensorShape:
    """The static shape in `layout` of sizes in the order batch, depth, height, width, channels."""
    return TensorShape(sizes if layout == "NDHWC" else [sizes[0], sizes[4], *sizes[1:4]])


class VolumeAttrs(NamedTuple):
    """The attributes of a convolution of volumes, hashable."""

    layout: str
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: str

    @classmethod
    def read(cls, attr: Callable[[str], Any]) -> VolumeAttrs:
        """From ``attr(name)`` of an operation or a kernel context."""
        return cls(attr("data_format"), tuple(attr("strides")), tuple(attr("dilations")), attr("padding"))

    def counts(self, sizes: Sequence[int | None], window: Sequence[int | None]) -> list[int | None]:
        """Static number of windows along depth, height and width."""
        along = zip(sizes, window, self.strides, self.dilations, strict=True)
        return [window_count(*arguments, self.padding) for arguments in along]


class Volume(NamedTuple):
    """Sizes of one convolution of volumes.

    Attributes:
        batch: Number of volumes.
        channels: Their channels.
        depth: Windows along the depth.
        plane: The convolution in two dimensions, of the images for one volume.
    """

    batch: int
    channels: int
    depth: Axis
    plane: Geometry

    @property
    def sizes(self) -> tuple[int, ...]:
        """Shape of the volumes, NDHWC."""
        return (self.batch, self.depth.size, self.plane.height.size, self.plane.width.size, self.channels)

    @property
    def outputs(self) -> tuple[int, ...]:
        """Shape of the outputs, NDHWC."""
        return (self.batch, self.depth.steps, self.plane.height.steps, self.plane.width.steps, self.plane.filters)

    @property
    def is_flat(self) -> bool:
        """Whether every window sees one slice alone, each its own."""
        return self.depth.window == self.depth.stride == 1 and not self.depth.is_padded


@lru_cache(maxsize=256)
def volume(sizes: tuple[int, ...], filters: tuple[int, ...], attrs: VolumeAttrs) -> Volume:
    """The convolution of volumes ``[batch, depth, height, width, channels]``.

    Raises:
        InvalidArgumentError: The channels differ, or the window does not fit.
    """
    if len(sizes) != 5 or len(filters) != 5:
        raise InvalidArgumentError(f"convolution: volumes {sizes} and filters {filters} must have rank 5")
    if filters[3] != sizes[4]:
        raise InvalidArgumentError(f"convolution: the volumes have {sizes[4]} channels, the filters take {filters[3]}")
    try:
        along = zip(sizes[1:4], filters[:3], attrs.strides, attrs.dilations, strict=True)
        depth, height, width = (window_axis(*arguments, attrs.padding) for arguments in along)
    except ValueError as error:
        raise InvalidArgumentError(f"convolution: {error}") from error
    plane = Geometry("NHWC", depth.steps, filters[0] * sizes[4], filters[4], height, width)
    return Volume(sizes[0], sizes[4], depth, plane)


def _unfold(xp: ArrayModule, slices: Array, vol: Volume) -> Array:
    """One volume as images for its depth positions, ``[positions, height, width, window depth * channels]``."""
    if vol.is_flat:
        return slices
    shape = (vol.depth.steps, *vol.sizes[2:4], vol.depth.window, vol.channels)
    images = buffer(xp, "unfolded", shape, slices.dtype)
    if vol.depth.is_padded:
        fill(images, 0)
    for index in range(vol.depth.window):
        steps, places = vol.depth.clipped(index)
        images[steps, :, :, index] = slices[places]
    return images.reshape(*shape[:3], -1)


def _fold(images: Array, out: Array, vol: Volume) -> None:
    """The transpose of `_unfold`: add the images' channels up to the slices that they came from."""
    images = images.reshape(vol.depth.steps, *vol.sizes[2:4], vol.depth.window, vol.channels)
    fill(out, 0)
    for index in range(vol.depth.window):
        steps, places = vol.depth.clipped(index)
        out[places] += images[steps, :, :, index]


def _flat_filters(xp: ArrayModule, filters: Array) -> Array:
    """Filters of the volumes as filters of the images, ``[height, width, depth * channels, outputs]``."""
    depth, height, width, channels, outputs = filters.shape
    return xp.ascontiguousarray(filters.transpose(1, 2, 0, 3, 4)).reshape(height, width, depth * channels, outputs)


def convolve_volumes(xp: ArrayModule, volumes: Array, filters: Array, vol: Volume, out: Array) -> None:
    """Convolve NDHWC volumes into `out`."""
    flat = _flat_filters(xp, filters)
    for slices, outputs in zip(volumes, out, strict=True):
        convolve(xp, _unfold(xp, slices, vol), flat, vol.plane, outputs)


def volumes_gradient(xp: ArrayModule, d_outputs: Array, filters: Array, vol: Volume, out: Array) -> None:
    """Gradient of the volumes, into `out`."""
    flat = _flat_filters(xp, filters)
    dtype = accumulator_dtype(out.dtype)
    for d_slices, d_result in zip(out, d_outputs, strict=True):
        if vol.is_flat:
            convolve_backward_images(xp, d_result, flat, vol.plane, d_slices)
            continue
        images = convolve_backward_images(xp, d_result, flat, vol.plane)
        total = d_slices if dtype == out.dtype else xp.empty(d_slices.shape, dtype)
        _fold(images, total, vol)
        if total is not d_slices:
            d_slices[...] = total


def filters_gradient(xp: ArrayModule, volumes: Array, d_outputs: Array, vol: Volume, shape: tuple[int, ...]) -> Array:
    """Gradient of the filters of this shape, in the accumulators' dtype."""
    depth, height, width, channels, outputs = shape
    total = xp.zeros((height, width, depth * channels, outputs), accumulator_dtype(volumes.dtype))
    for slices, d_result in zip(volumes, d_outputs, strict=True):
        total += convolve_backward_filters(xp, _unfold(xp, slices, vol), d_result, vol.plane)
    return total.reshape(height, width, depth, channels, outputs).transpose(2, 0, 1, 3, 4)
