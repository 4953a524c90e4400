"""How pooling is computed: running maxima and sums over slices that hold one element of every window.

Element (i, j) of all windows is a strided slice of the images. Padding never takes part: the slices are cut where
it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array, ArrayModule, KernelContext, NumpyDType
from tfray.ops.kernels.copies import fill
from tfray.ops.kernels.gpu.device_constants import constant
from tfray.ops.kernels.tiles import LARGE_ELEMENTS, cut, cut_tiles, image_buffer, run_tiles, shares_for, tile_bytes
from tfray.ops.kernels.windows import Axis, WindowAttrs, image_shape, image_sizes, spatial_axes


def window_attrs(attr: Callable[[str], Any]) -> tuple[WindowAttrs, tuple[int, int]]:
    """The geometry's attributes and the window's size."""
    height, width = spatial_axes(attr("data_format"))
    ksize, strides, padding = attr("ksize"), attr("strides"), attr("padding")
    attrs = WindowAttrs(attr("data_format"), (strides[height], strides[width]), (1, 1), (padding, padding))
    return attrs, (ksize[height], ksize[width])


class Pooling(NamedTuple):
    """Sizes of one pooling.

    Attributes:
        layout: ``NHWC`` or ``NCHW``.
        batch: Number of images.
        channels: Their channels.
        height: Windows along the height.
        width: Windows along the width.
    """

    layout: str
    batch: int
    channels: int
    height: Axis
    width: Axis

    @classmethod
    def of(cls, ctx: KernelContext, images_shape: tuple[int, ...]) -> Pooling:
        """The pooling of images of this shape, by the attributes of the operation."""
        attrs, window = window_attrs(ctx.attr)
        if len(images_shape) != 4:
            raise InvalidArgumentError(f"pooling: the images have shape {images_shape}, expected rank 4")
        batch, height, width, channels = image_sizes(images_shape, attrs.layout)
        try:
            return cls(attrs.layout, batch, channels, *attrs.axes((height, width), window))
        except ValueError as error:
            raise InvalidArgumentError(f"pooling: {error}") from error

    @property
    def images_shape(self) -> tuple[int, ...]:
        return image_shape(self.batch, self.height.size, self.width.size, self.channels, self.layout)

    @property
    def outputs_shape(self) -> tuple[int, ...]:
        return image_shape(self.batch, self.height.steps, self.width.steps, self.channels, self.layout)

    @property
    def is_tiled(self) -> bool:
        """Whether every pixel lies in exactly one window."""
        return self.height.is_tiled and self.width.is_tiled

    def check_outputs(self, *arrays: Array) -> None:
        """Raise `InvalidArgumentError` for an array that has not the outputs' shape."""
        for array in arrays:
            if array.shape != self.outputs_shape:
                raise InvalidArgumentError(
                    f"pooling: an array with the shape of the outputs has shape {array.shape}, "
                    f"expected {self.outputs_shape}"
                )

    def elements(self) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
        """For each element of the window in order: the windows that have it within the image, and its pixels."""
        batch = slice(None)
        for i in range(self.height.window):
            rows, pixel_rows = self.height.clipped(i)
            for j in range(self.width.window):
                columns, pixel_columns = self.width.clipped(j)
                yield (batch, rows, columns), (batch, pixel_rows, pixel_columns)


def for_each_part(xp: ArrayModule, pool: Pooling, itemsize: int, work: Callable[[slice], None]) -> None:
    """Call `work` on ranges of images: on a CPU of a size for the cache, several at once."""
    image_bytes = pool.height.size * pool.width.size * pool.channels * itemsize
    is_large = pool.batch * image_bytes >= LARGE_ELEMENTS * itemsize
    shares = min(shares_for(xp, is_large), pool.batch)
    parts = cut(pool.batch, len(cut_tiles(pool.batch, 1, max(image_bytes, 1), tile_bytes(xp), shares)))
    run_tiles(lambda index: work(parts[index]), len(parts), is_large)


def _fold_axis(
    function: Callable[..., Array], images: Array, out: Array, axis: int, windows: Axis, identity: float
) -> None:
    """Combine, along one axis, the elements of every window by a ufunc, into `out`."""

    def at(index: slice) -> tuple[slice, ...]:
        return (slice(None),) * axis + (index,)

    elements = [windows.clipped(i) for i in range(windows.window)]
    covered = [pixels for steps, pixels in elements if steps.stop - steps.start == windows.steps]
    if len(covered) >= 2:
        # Start from two elements that all windows have: `out` need not be filled with the identity first.
        function(images[at(covered[0])], images[at(covered[1])], out=out)
        elements = [(steps, pixels) for steps, pixels in elements if pixels not in covered[:2]]
    else:
        out[...] = identity
    for steps, pixels in elements:
        part = out[at(steps)]
        function(part, images[at(pixels)], out=part)


def fold(
    xp: ArrayModule, function: Callable[..., Array], images: Array, out: Array, pool: Pooling, identity: float
) -> None:
    """Combine the elements of every window by a ufunc: first along the columns, whose runs are long."""
    if pool.height.window == 1 and pool.height.is_tiled:
        _fold_axis(function, images, out, 2, pool.width, identity)
        return
    shape = (images.shape[0], pool.height.steps, pool.width.size, pool.channels)
    rows = image_buffer(xp, "rows", shape, pool.layout, out.dtype)
    _fold_axis(function, images, rows, 1, pool.height, identity)
    _fold_axis(function, rows, out, 2, pool.width, identity)


def first_maxima(xp: ArrayModule, images: Array, maxima: Array, pool: Pooling) -> Iterator[tuple[Any, Any, Array]]:
    """As `Pooling.elements`, with where each element is the first greatest of its window."""
    taken = image_buffer(xp, "taken", maxima.shape, pool.layout, bool)
    fill(taken, False)
    for windows, pixels in pool.elements():
        of_windows = maxima[windows]
        is_first = image_buffer(xp, "is_first", of_windows.shape, pool.layout, bool)
        xp.equal(images[pixels], of_windows, out=is_first)
        xp.greater(is_first, taken[windows], out=is_first)
        xp.logical_or(taken[windows], is_first, out=taken[windows])
        yield windows, pixels, is_first


def element_counts(xp: ArrayModule, pool: Pooling, dtype: NumpyDType) -> Any:
    """How many elements each window has within the image: a number, or an array that broadcasts to the outputs."""
    if not (pool.height.is_padded or pool.width.is_padded):
        return dtype.type(pool.height.window * pool.width.window)
    return constant(xp, _counts_within, pool, dtype)


def _counts_within(pool: Pooling, dtype: NumpyDType) -> Array:
    counts = [np.zeros(axis.steps, dtype) for axis in (pool.height, pool.width)]
    for axis, count in zip((pool.height, pool.width), counts, strict=True):
        for i in range(axis.window):
            count[axis.clipped(i)[0]] += 1
    by_window = np.outer(*counts)[..., None]
    # Repeated along NHWC's channels, so that NumPy's inner loop has one long run in place of many short ones.
    return by_window if pool.layout == "NCHW" else np.repeat(by_window, pool.channels, axis=2)


def _spread_axis(source: Array, out: Array, axis: int, windows: Axis) -> None:
    """Add, along one axis, the value of every window to all its elements in `out`: the transpose of a sum."""

    def at(index: slice) -> tuple[slice, ...]:
        return (slice(None),) * axis + (index,)

    # The first `stride` elements of all windows lie on distinct pixels: they are written, later ones are added.
    elements = [windows.clipped(i) for i in range(windows.window)]
    first = elements[: windows.stride]
    if sum(steps.stop - steps.start for steps, _ in first) < windows.size:
        fill(out, 0)
    for steps, pixels in first:
        out[at(pixels)] = source[at(steps)]
    for steps, pixels in elements[windows.stride :]:
        out[at(pixels)] += source[at(steps)]


def spread(xp: ArrayModule, shares: Array, out: Array, pool: Pooling) -> None:
    """Give every pixel the sum of the shares of its windows: first along the rows, whose copies are then long runs."""
    shape = (out.shape[0], pool.height.steps, pool.width.size, pool.channels)
    rows = image_buffer(xp, "rows", shape, pool.layout, shares.dtype)
    _spread_axis(shares, rows, 2, pool.width)
    total = out if out.dtype == shares.dtype else image_buffer(xp, "total", out.shape, pool.layout, shares.dtype)
    _spread_axis(rows, total, 1, pool.height)
    if total is not out:
        out[...] = total


def least(dtype: NumpyDType) -> Any:
    """The least value of this dtype."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
