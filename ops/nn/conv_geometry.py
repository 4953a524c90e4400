"""The sizes of a convolution."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.ops.kernels.windows import Axis, WindowAttrs, image_shape, image_sizes


class Geometry(NamedTuple):
    """Sizes of one convolution.

    Attributes:
        layout: ``NHWC`` or ``NCHW``.
        batch: Number of images.
        channels: Channels of the images.
        filters: Channels of the outputs.
        height: Windows along the height.
        width: Windows along the width.
        groups: Groups of channels: a filter takes the channels of its group alone. 1 for all channels.
    """

    layout: str
    batch: int
    channels: int
    filters: int
    height: Axis
    width: Axis
    groups: int = 1

    @property
    def images_shape(self) -> tuple[int, ...]:
        return image_shape(self.batch, self.height.size, self.width.size, self.channels, self.layout)

    @property
    def outputs_shape(self) -> tuple[int, ...]:
        return image_shape(self.batch, self.height.steps, self.width.steps, self.filters, self.layout)

    @property
    def depth(self) -> int:
        """K: number of elements in a window that a filter takes."""
        return self.height.window * self.width.window * self.channels // self.groups

    @property
    def is_pointwise(self) -> bool:
        """Whether each output depends only on the pixel at the same position, and each pixel has an output."""
        axes = self.height, self.width
        return all(axis.window == axis.stride == 1 and not axis.before and axis.steps == axis.size for axis in axes)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to multiply: results are empty or zero."""
        return self.flops == 0

    @property
    def flops(self) -> float:
        """Multiplications and additions of the matrix products."""
        return 2.0 * self.batch * self.height.steps * self.width.steps * self.depth * self.filters

    def is_depth_first(self, run: int) -> bool:
        """Whether columns are better stored as [K, P] than as [P, K], with `run` contiguous elements in a window."""
        return self.layout == "NCHW" or (run < 16 and run < self.width.steps)


@lru_cache(maxsize=512)
def geometry(images_shape: tuple[int, ...], filters_shape: tuple[int, ...], attrs: WindowAttrs) -> Geometry:
    """Sizes of the convolution of images with filters ``[height, width, channels, filters]``.

    Raises:
        InvalidArgumentError: The channels differ, or the window does not fit.
    """
    if len(images_shape) != 4 or len(filters_shape) != 4:
        raise InvalidArgumentError(f"convolution: images {images_shape} and filters {filters_shape} must have rank 4")
    batch, height, width, channels = image_sizes(images_shape, attrs.layout)
    if filters_shape[2] != channels:
        raise InvalidArgumentError(
            f"convolution: the images have {channels} channels ({attrs.layout} shape {images_shape}), "
            f"the filters take {filters_shape[2]} (shape {filters_shape})"
        )
    try:
        axes = attrs.axes((height, width), filters_shape[:2])
    except ValueError as error:
        raise InvalidArgumentError(f"convolution: {error}") from error
    return Geometry(attrs.layout, batch, channels, filters_shape[3], *axes)


def mirrored(geo: Geometry) -> Geometry:
    """The convolution of the outputs that gives the images' gradient at stride 1."""
    height, width = (
        axis._replace(
            size=axis.steps,
            steps=axis.size,
            before=axis.extent - 1 - axis.before,
            after=axis.size + axis.before - axis.steps,
        )
        for axis in (geo.height, geo.width)
    )
    return Geometry(geo.layout, geo.batch, geo.filters, geo.channels, height, width)
