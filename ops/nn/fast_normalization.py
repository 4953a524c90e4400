"""Normalization by compiled kernels, for float32 images in NHWC; `batch_norm_ops` and
`normalization_ops` have NumPy's way."""

from __future__ import annotations

from math import gcd
from typing import Final, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, KernelContext
from tfray.ops.kernels.compiled_rows import compute_rows, step_rows
from tfray.ops.kernels.compiling import LARGE_ELEMENTS, LEAST_ELEMENTS, can_compile, kernel

_PART_ROWS: Final = 256
"""Rows that are added up one by one. The sums of such parts are added in float64."""

_BLOCK: Final = 64
"""Columns that the kernels treat at once."""

_STEP_ELEMENTS: Final = 1 << 15
"""Elements that a thread takes at a time."""


def can_normalize(xp: ArrayModule, layout: str, *images: Array) -> bool:
    """Whether compiled kernels normalize these images."""
    return (
        xp is np
        and layout == "NHWC"
        and images[0].size >= LEAST_ELEMENTS
        and all(array.dtype == np.float32 for array in images)
        and can_compile()
    )


class Gate(NamedTuple):
    """Which gradients of normalized images an activation lets through: those of outputs that are within bounds.

    Attributes:
        factors: Of the images, ``[channels]``: the outputs are ``(images - means) * factors + offsets``.
        offsets: Likewise.
        low: Outputs are greater than this,
        last: and at most this.
    """

    factors: Array
    offsets: Array
    low: float
    last: float


class Columns:
    """Images as a matrix whose columns are the channels.

    Where the channels do not fill the blocks of the kernels, a row has several pixels: its columns are the channels,
    repeated.

    Args:
        images: ``[batch, height, width, channels]``, not empty.
    """

    def __init__(self, images: Array) -> None:
        self.channels = images.shape[-1]
        pixels = images.size // self.channels
        repeats = gcd(pixels, _BLOCK // gcd(self.channels, _BLOCK)) if self.channels < 4 * _BLOCK else 1
        self._repeats = repeats
        self._rows, self._columns = pixels // repeats, self.channels * repeats
        starts = np.arange(0, self._rows, _PART_ROWS)
        self._part_rows = np.minimum(self._rows - starts, _PART_ROWS)
        self._is_large = images.size >= LARGE_ELEMENTS

    def moments(self, images: Array) -> tuple[Array, Array]:
        """Mean and biased variance of each channel."""
        means, squares = self._of_parts("moments", images)
        counts = np.repeat(self._part_rows, self._repeats)[:, None].astype(np.float64)
        total = counts.sum()
        mean = (means * counts).sum(axis=0) / total
        # The squared distances from the mean of a part, and of that from the mean of all.
        variance = (squares.sum(axis=0, dtype=np.float64) + (counts * (means - mean) ** 2).sum(axis=0)) / total
        return mean.astype(np.float32), variance.astype(np.float32)

    def sums(self, d_images: Array, images: Array, means: Array, gate: Gate | None = None) -> tuple[Array, Array]:
        """For each channel the sum of what goes through of `d_images`, and of its products with the centred images."""
        name, vectors = ("sums", []) if gate is None else ("gated_sums", [gate.factors, gate.offsets])
        numbers = [] if gate is None else [gate.low, gate.last]
        found = self._of_parts(name, d_images, images, *map(self._spread, [means, *vectors]), *numbers)
        total, product = (parts.sum(axis=0, dtype=np.float64).astype(np.float32) for parts in found)
        return total, product

    def normalized(
        self, images: Array, means: Array, factors: Array, offsets: Array, bounds: tuple[float, float]
    ) -> Array:
        """``(images - means) * factors + offsets``, held between bounds."""
        return self._by_rows("normalize", [images], [means, factors, offsets], *bounds)

    def differentiated(
        self,
        d_images: Array,
        images: Array,
        means: Array,
        slopes: Array,
        shifts: Array,
        factors: Array,
        gate: Gate | None = None,
    ) -> Array:
        """``(d - (images - means) * slopes - shifts) * factors``, where d is what goes through of `d_images`."""
        vectors = [means, slopes, shifts, factors]
        if gate is None:
            return self._by_rows("differentiate", [d_images, images], vectors)
        vectors += [gate.factors, gate.offsets]
        return self._by_rows("gated_differentiate", [d_images, images], vectors, gate.low, gate.last)

    def _spread(self, per_channel: Array) -> Array:
        return np.tile(np.ascontiguousarray(per_channel, np.float32), self._repeats)

    def _of_parts(self, name: str, *arguments: Array | float) -> tuple[Array, Array]:
        """What a kernel finds of each part of the rows: two arrays ``[parts, channels]``."""
        shape = len(self._part_rows), self._columns
        found = np.empty(shape, np.float32), np.empty(shape, np.float32)
        items = shape[0] * -(-self._columns // _BLOCK)
        step = max(1, _STEP_ELEMENTS // (_PART_ROWS * _BLOCK))
        sizes = self._rows, self._columns, _PART_ROWS
        given = [np.ascontiguousarray(each) if isinstance(each, np.ndarray) else each for each in arguments]
        kernel("channels", name).run(items, step, *sizes, *given, *found, is_large=self._is_large)
        return found[0].reshape(-1, self.channels), found[1].reshape(-1, self.channels)

    def _by_rows(self, name: str, images: list[Array], per_channel: list[Array], *numbers: float) -> Array:
        out = np.empty(images[0].shape, np.float32)
        vectors = [self._spread(vector) for vector in per_channel]
        step = max(1, _STEP_ELEMENTS // self._columns)
        arguments = self._columns, *map(np.ascontiguousarray, images), *vectors, *numbers, out
        kernel("channels", name).run(self._rows, step, *arguments, is_large=self._is_large)
        return out


def local_response(ctx: KernelContext, name: str, arrays: list[Array], out: Array) -> Array:
    """Fill `out` by a kernel for local response normalization.

    Args:
        ctx: Of an operation with the attributes ``depth_radius``, ``bias``, ``alpha`` and ``beta``.
        name: ``normalize`` of images, or ``differentiate`` from the outputs' gradient, the images and the outputs.
        arrays: What it reads, ``[batch, height, width, channels]``.
        out: Where to write.
    """
    columns = out.shape[-1]
    rows, step = out.size // columns, step_rows(columns)
    radius = max(0, min(ctx.attr("depth_radius"), columns))
    lines = 1 if name == "normalize" else 3
    scratch = np.zeros((-(-rows // step), lines, columns + 2 * radius + 16), np.float32)
    numbers = step, radius, ctx.attr("bias"), ctx.attr("alpha"), ctx.attr("beta")
    compute_rows("local_response", name, rows, columns, *numbers, *arrays, scratch, out)
    return out
