"""How images are resized: each output is a weighted sum of a few inputs, first along one axis, then along the other.

`Taps` describe an axis: which inputs each output takes, and their weights. The gradient of a resizing is a resizing
with the transposed taps. An axis is applied in one of two ways: as phases (a few strided additions, when the ratio of
the sizes is simple) or as bands (a matrix product for each run of neighbouring outputs).
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.ops.kernels import fast_rows
from tfray.ops.kernels.compiling import LEAST_ELEMENTS, STEP_ELEMENTS, can_compile, kernel
from tfray.ops.kernels.cpu_threads import MOST_THREADS, one_blas_thread
from tfray.ops.kernels.precision import choose
from tfray.ops.kernels.products import inner_product
from tfray.ops.kernels.tiles import LARGE_ELEMENTS, buffer, cut, run_tiles

_LANES: Final = 16
"""Numbers in a vector, see `ops.compiled.vectors`."""

_FEW_CHANNELS: Final = 12
"""Up to this many channels a row of the image is treated as one vector. With more, each pixel is a vector."""

_MOST_PHASES: Final = 12
"""Most phases of an axis. With more, bands (matrix products) are faster."""

_BAND_INPUTS: Final = 24
"""Inputs that a band aims at. Wider bands multiply by more zeros; narrower ones need more matrix products."""


class Taps(NamedTuple):
    """Which inputs make up each output along an axis.

    Attributes:
        indices: ``[taps, outputs]``: the inputs.
        weights: ``[taps, outputs]``: their weights, float32.
    """

    indices: Array
    weights: Array

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.indices.shape[1])


def _scale(size: int, count: int, align_corners: bool) -> np.float32:
    if align_corners and count > 1:
        return np.float32((size - 1) / np.float32(count - 1))
    return np.float32(size / np.float32(count))


def _places(size: int, count: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """Positions of the outputs, in inputs. Computed in float32 as in TensorFlow: both then pick the same pixels."""
    steps, scale = np.arange(count, dtype=np.float32), _scale(size, count, align_corners)
    if half_pixel_centers:
        return (steps + np.float32(0.5)) * scale - np.float32(0.5)
    return steps * scale


def _bilinear(size: int, count: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    places = _places(size, count, align_corners, half_pixel_centers)
    below = np.floor(places)
    lower, upper = (np.clip(index, 0, size - 1).astype(np.int64) for index in (below, np.ceil(places)))
    share = places - below
    return Taps(np.stack([lower, upper]), np.stack([1 - share, share]))


def _nearest(size: int, count: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    scale = _scale(size, count, align_corners)
    places = (np.arange(count, dtype=np.float32) + np.float32(0.5 if half_pixel_centers else 0)) * scale
    # Halves round away from zero, as in TensorFlow; NumPy would round them to even.
    nearest = np.floor(places + np.float32(0.5)) if align_corners else np.floor(places)
    indices = np.clip(nearest, 0, size - 1).astype(np.int64)[None]
    return Taps(indices, np.ones(indices.shape, np.float32))


_CUBIC_STEPS: Final = 1024
"""Steps of the cubic's table between two pixels. TensorFlow's table has this many, so results agree."""


def _cubic_weights(share: Array, sharpness: float) -> Array:
    """Weights of the four nearest pixels, by the cubic convolution of Keys (1981) with a = `sharpness`."""
    share = np.rint(share * _CUBIC_STEPS) / _CUBIC_STEPS
    near = [((sharpness + 2) * x - (sharpness + 3)) * x * x + 1 for x in (share, 1 - share)]
    far = [((sharpness * x - 5 * sharpness) * x + 8 * sharpness) * x - 4 * sharpness for x in (share + 1, 2 - share)]
    return np.stack([far[0], near[0], near[1], far[1]])


def _bicubic(size: int, count: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    places = _places(size, count, align_corners, half_pixel_centers)
    below = np.floor(places)
    weights = _cubic_weights((places - below).astype(np.float64), -0.5 if half_pixel_centers else -0.75)
    wanted = below.astype(np.int64) + np.arange(-1, 3)[:, None]
    indices = np.clip(wanted, 0, size - 1)
    if half_pixel_centers:  # pixels beyond the border get weight 0, and the other weights are scaled to add up to 1
        weights = np.where(indices == wanted, weights, 0)
        weights /= weights.sum(axis=0)
    return Taps(indices, weights.astype(np.float32))


def _area(size: int, count: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    scale = _scale(size, count, align_corners)
    if not scale:  # several outputs of a single input, whose corners all fall together: each is that input
        return Taps(np.zeros((1, count), np.int64), np.ones((1, count), np.float32))
    first = np.arange(count, dtype=np.float32) * scale
    last = (np.arange(count, dtype=np.float32) + np.float32(1)) * scale
    taps = max(1, int((np.ceil(last) - np.floor(first)).max(initial=1)))
    pixels = np.floor(first) + np.arange(taps, dtype=np.float32)[:, None]
    covered = np.minimum(pixels + 1, last) - np.maximum(pixels, first)
    indices = np.clip(pixels, 0, size - 1).astype(np.int64)
    return Taps(indices, (np.maximum(covered, 0) / scale).astype(np.float32))


_METHODS: Final = {"bilinear": _bilinear, "nearest": _nearest, "bicubic": _bicubic, "area": _area}


@lru_cache(maxsize=256)
def taps_of(method: str, size: int, count: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Taps that resize an axis.

    Args:
        method: ``bilinear``, ``nearest``, ``bicubic`` or ``area``.
        size: Number of inputs, at least 1.
        count: Number of outputs.
        align_corners: The first and last pixels of both images fall together; otherwise their outer edges.
        half_pixel_centers: Pixels are counted from their centres instead of their corners.
    """
    return _METHODS[method](size, count, align_corners, half_pixel_centers)


@lru_cache(maxsize=256)
def transposed_taps(method: str, size: int, count: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Taps of the gradient, which go from the outputs of `taps_of` back to its inputs."""
    taps = taps_of(method, size, count, align_corners, half_pixel_centers)
    sources, outputs = taps.indices.ravel(), np.tile(np.arange(count), len(taps.indices))
    order = np.argsort(sources, kind="stable")
    sources, outputs, weights = sources[order], outputs[order], taps.weights.ravel()[order]
    counts = np.bincount(sources, minlength=size)
    rank = np.arange(sources.size) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = max(1, int(counts.max(initial=1))), size
    indices, all_weights = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
    indices[rank, sources], all_weights[rank, sources] = outputs, weights
    return Taps(indices, all_weights)


# -- applying them -------------------------------------------------------------------------------------


class Phase(NamedTuple):
    """Equally spaced outputs with the same weights: for an enlargement by 2, all even or all odd outputs.

    Attributes:
        outputs: Their positions.
        inputs: For each tap, the positions of its inputs.
        weights: The weight of each tap.
    """

    outputs: slice
    inputs: list[slice]
    weights: list[float]


class Band(NamedTuple):
    """Neighbouring outputs of an axis: ``outputs = matrix @ inputs``, where all other inputs have weight 0."""

    inputs: slice
    outputs: slice
    matrix: Array


class BandRun(NamedTuple):
    """Bands of equal sizes at equal distances: one product of batches of matrices makes all their outputs.

    Attributes:
        inputs: Where the inputs of the first band begin.
        step: Inputs from the beginning of a band to that of the next.
        outputs: Where the outputs of the first band begin. Those of the others follow.
        matrices: ``[bands, outputs, inputs]``; for rows of pixels ``[bands, inputs, outputs]``.
        rest: The bands before and behind these.
    """

    inputs: int
    step: int
    outputs: int
    matrices: Array
    rest: list[Band]


class AxisMap(NamedTuple):
    """How one axis is resized: the arguments of `taps_of`, and whether the taps are transposed (for a gradient)."""

    method: str
    source: int
    target: int
    align_corners: bool
    half_pixel_centers: bool
    is_transposed: bool = False

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self.target if self.is_transposed else self.source

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.source if self.is_transposed else self.target

    def taps(self) -> Taps:
        """The taps of the axis."""
        return (transposed_taps if self.is_transposed else taps_of)(*self[:5])


@lru_cache(maxsize=256)
def _bands(axis: AxisMap, dtype: NumpyDType) -> list[Band]:
    """The whole axis as bands."""
    widest = int(np.clip(_BAND_INPUTS * axis.outputs / max(axis.inputs, 1), 4, 16))
    return [_band(axis.taps(), part, dtype, 1) for part in cut(axis.outputs, -(-axis.outputs // widest))]


def _band(taps: Taps, outputs: slice, dtype: NumpyDType, repeat: int) -> Band:
    """The band of some outputs. With `repeat` above 1 the axis is a row of pixels with `repeat` channels each."""
    indices, weights = taps.indices[:, outputs], taps.weights[:, outputs]
    taken = indices[weights != 0]
    first, last = (int(taken.min()), int(taken.max()) + 1) if taken.size else (0, 1)
    matrix = np.zeros((outputs.stop - outputs.start, last - first), dtype)
    np.add.at(matrix, (np.nonzero(weights)[1], taken - first), weights[weights != 0])
    wide = np.kron(matrix, np.eye(repeat, dtype=dtype)) if repeat > 1 else matrix
    inputs, outputs = (slice(r.start * repeat, r.stop * repeat) for r in (slice(first, last), outputs))
    return Band(inputs, outputs, wide)


@lru_cache(maxsize=256)
def _band_run(axis: AxisMap, dtype: NumpyDType, repeat: int = 0) -> BandRun:
    """The whole axis as a run of bands, and the few that would reach beyond the inputs.

    With a `repeat` the axis is a row of pixels with so many channels each.
    """
    taps = axis.taps()
    width, step, first, size = min(
        (_equal_bands(taps, axis, width) for width in _RUN_OUTPUTS[: 1 if repeat > 4 else None]),
        key=lambda found: found[3] / found[0],
    )
    begins = first + step * np.arange(axis.outputs // width)
    within = np.flatnonzero((begins >= 0) & (begins + size <= axis.inputs))
    low, high = (int(within[0]), int(within[-1]) + 1) if within.size else (0, 0)
    matrices = np.zeros((high - low, width, size), dtype)
    for tap, weights in zip(taps.indices, taps.weights, strict=True):
        outputs = low * width + np.flatnonzero(weights[low * width : high * width])
        band = outputs // width
        np.add.at(matrices, (band - low, outputs % width, tap[outputs] - begins[band]), weights[outputs])
    parts = [slice(start, min(start + width, axis.outputs)) for start in range(0, axis.outputs, width)]
    rest = [_band(taps, part, dtype, max(repeat, 1)) for part in (*parts[:low], *parts[high:])]
    if repeat:
        wide = np.zeros((high - low, size, repeat, width, repeat), dtype)
        for channel in range(repeat):
            wide[:, :, channel, :, channel] = matrices.swapaxes(1, 2)
        matrices = wide.reshape(high - low, size * repeat, width * repeat)
    scale = max(repeat, 1)
    return BandRun(max(0, first + low * step) * scale, step * scale, low * width * scale, matrices, rest)


_RUN_OUTPUTS: Final = range(4, 9)
"""Outputs of a band in a run. With more, it multiplies by more zeros; with fewer, the products are too small."""


def _equal_bands(taps: Taps, axis: AxisMap, width: int) -> tuple[int, int, int, int]:
    """Bands of `width` outputs that cover all inputs of these: width, step, first input and number of inputs."""
    is_used = taps.weights != 0
    lows = np.where(is_used, taps.indices, axis.inputs).min(axis=0)
    highs = np.where(is_used, taps.indices, -1).max(axis=0)
    starts = np.arange(0, axis.outputs, width)
    step = width * axis.inputs // axis.outputs
    shift = np.arange(len(starts)) * step
    first = int((np.minimum.reduceat(lows, starts) - shift).min())
    return width, step, first, int((np.maximum.reduceat(highs, starts) - shift).max()) + 1 - first


@lru_cache(maxsize=256)
def _phases(axis: AxisMap) -> list[Phase] | None:
    """The axis as phases; None when there are more than `_MOST_PHASES`.

    An enlargement by 2 has two phases, and one more for each output at the border.
    """
    common = gcd(axis.inputs, axis.outputs)
    period, step = axis.outputs // common, axis.inputs // common
    if period > _MOST_PHASES:
        return None
    taps = axis.taps()
    phases = []
    for first in range(period):
        outputs = range(first, axis.outputs, period)
        begin = 0
        for end in range(1, len(outputs) + 1):
            if end == len(outputs) or _tap_list(taps, outputs[end]) != [
                (index + step, weight) for index, weight in _tap_list(taps, outputs[end - 1])
            ]:
                phases.append(_phase(_tap_list(taps, outputs[begin]), outputs[begin:end], step))
                begin = end
        if len(phases) > _MOST_PHASES:
            return None
    return phases


def _tap_list(taps: Taps, output: int) -> list[tuple[int, float]]:
    """The inputs of an output and their weights. Weights of the same input are added up."""
    weights: dict[int, float] = {}
    for index, weight in zip(taps.indices[:, output], taps.weights[:, output], strict=True):
        if weight:
            weights[int(index)] = weights.get(int(index), 0.0) + float(weight)
    return sorted(weights.items())


def _phase(taps: list[tuple[int, float]], outputs: range, step: int) -> Phase:
    span = step * (len(outputs) - 1) + 1
    inputs = [slice(index, index + span, step) for index, _ in taps]
    return Phase(slice(outputs.start, outputs[-1] + 1, outputs.step), inputs, [weight for _, weight in taps])


def _by_phases(source: Array, phases: list[Phase], out: Array) -> None:
    """Write the sums along the second axis of `source` to `out`."""
    for phase in phases:
        total = out[:, phase.outputs]
        parts = [source[:, inputs] for inputs in phase.inputs]
        if not parts:
            total[...] = 0
        elif len(set(phase.weights)) == 1:
            _scaled_sum(parts, phase.weights[0], total)
        else:
            np.multiply(parts[0], out.dtype.type(phase.weights[0]), out=total)
            for part, weight in zip(parts[1:], phase.weights[1:], strict=True):
                share = buffer(np, "share", total.shape, out.dtype)
                np.add(total, np.multiply(part, out.dtype.type(weight), out=share), out=total)


def _scaled_sum(parts: list[Array], weight: float, total: Array) -> None:
    if len(parts) == 1:
        np.multiply(parts[0], total.dtype.type(weight), out=total) if weight != 1 else np.copyto(total, parts[0])
        return

    between = buffer(np, "sum", total.shape, total.dtype)
    np.add(parts[0], parts[1], out=between)
    for part in parts[2:]:
        np.add(between, part, out=between)
    np.multiply(between, total.dtype.type(weight), out=total)


def resample(
    xp: ArrayModule, images: Array, rows: AxisMap, columns: AxisMap, dtype: NumpyDType, out: Array | None = None
) -> Array:
    """Apply the taps of both axes to NHWC images, in float `dtype`, which `out` has if it is given."""
    batch, _, _, channels = images.shape
    out = xp.empty((batch, rows.outputs, columns.outputs, channels), dtype) if out is None else out
    if out.size == 0:
        return out
    if xp is not np:
        _by_taps(xp, images, rows.taps(), columns.taps(), out)
        return out
    if _is_compiled(images, columns, out):
        _by_compiled_taps(images, rows, columns, out)
        return out

    def work(image: int) -> None:
        part = slice(image, image + 1)
        if _resize_image(images[image], rows, columns, out[image]):
            return
        # A band multiplies by zeros too: an infinite or NaN input would make NaN of outputs that do not depend on it.
        if not _is_finite(min(images[image], out[image], key=np.size)):
            _by_taps(np, images[part], rows.taps(), columns.taps(), out[part])

    run_tiles(work, batch, batch > 1 and out.size + images.size >= LARGE_ELEMENTS // 8)
    return out


def _is_compiled(images: Array, columns: AxisMap, out: Array) -> bool:
    """Whether a compiled kernel resizes the images. It takes as long for a pixel of 1 channel as for one of 16."""
    is_wide = images.shape[3] > 4 or not columns.is_transposed
    is_plain = out.dtype == np.float32 and out.flags.c_contiguous
    return is_wide and is_plain and out.size + images.size >= LEAST_ELEMENTS and can_compile()


def _by_compiled_taps(images: Array, rows: AxisMap, columns: AxisMap, out: Array) -> None:
    """Fill `out` by a compiled kernel, some rows at a time."""
    kind = "octets" if images.dtype == np.uint8 else "floats"
    source = np.ascontiguousarray(images, np.uint8 if kind == "octets" else np.float32)
    batch, height, width, channels = source.shape
    taps = rows.taps(), columns.taps()
    arguments = [(axis.outputs, len(axis.indices), axis.indices, axis.weights) for axis in taps]
    between = buffer(np, "between", (MOST_THREADS, width * channels + _LANES), out.dtype)
    sizes = height, width, channels
    step = max(1, STEP_ELEMENTS // (out.size // (batch * rows.outputs)))
    loop = kernel("resized_rows", f"resample_{kind}")
    is_large = out.size >= LARGE_ELEMENTS // 8
    loop.run(batch * rows.outputs, step, *sizes, *arguments[0], *arguments[1], between, source, out, is_large=is_large)


def _is_finite(array: Array) -> bool:
    """Whether all numbers are finite, and none so large that its square is not."""
    flat = array.reshape(-1)
    return array.dtype.kind not in "fc" or bool(np.isfinite(inner_product(np, flat, flat)))


def _resize_image(image: Array, rows: AxisMap, columns: AxisMap, out: Array) -> bool:
    """Resize one image, first along the axis that leaves fewer elements.

    Returns:
        Whether the result is exact for inputs that are not finite: no input was multiplied by a weight of 0.
    """
    height, width, channels = image.shape
    source = image
    if image.dtype != out.dtype:
        source = buffer(np, "source", image.shape, out.dtype)
        np.copyto(source, image, casting="unsafe")
    if rows.outputs * width < height * columns.outputs:
        between = buffer(np, "between", (rows.outputs, width, channels), out.dtype)
        exact = _resize_rows(source, rows, between), _resize_columns(between, columns, out)
    else:
        between = buffer(np, "between", (height, columns.outputs, channels), out.dtype)
        exact = _resize_columns(source, columns, between), _resize_rows(between, rows, out)
    return all(exact)


def _resize_rows(source: Array, axis: AxisMap, out: Array) -> bool:
    phases = _phases(axis)
    if phases is not None:
        _by_phases(source.reshape(1, len(source), -1), phases, out.reshape(1, len(out), -1))
        return True
    flat, flat_out = source.reshape(len(source), -1), out.reshape(len(out), -1)
    run = _band_run(axis, out.dtype)
    bands, width, size = run.matrices.shape
    inputs = _windows(flat, 0, run.inputs, bands, run.step, size)
    outputs = flat_out[run.outputs :][: bands * width].reshape(bands, width, flat.shape[1])
    with one_blas_thread():
        np.matmul(run.matrices, inputs, out=outputs)
        for band in run.rest:
            np.matmul(band.matrix, flat[band.inputs], out=flat_out[band.outputs])
    return False


def _windows(array: Array, axis: int, first: int, count: int, step: int, size: int) -> Array:
    """Parts of a matrix, `size` rows or columns each, from `first` on, `step` behind the one before; not copied."""
    shape = (count, size, array.shape[1]) if axis == 0 else (count, array.shape[0], size)
    strides = step * array.strides[axis], *array.strides
    if not array.flags.c_contiguous:
        return as_strided(array[first:] if axis == 0 else array[:, first:], shape, strides)
    return np.ndarray(shape, array.dtype, array, first * array.strides[axis], strides)  # a third of the time


def _resize_columns(source: Array, axis: AxisMap, out: Array) -> bool:
    channels = source.shape[2]
    phases = _phases(axis) if channels > _FEW_CHANNELS else None
    if phases is not None:
        _by_phases(source, phases, out)
        return True
    _multiply_columns(source, axis, out)
    return False


def _multiply_columns(source: Array, axis: AxisMap, out: Array) -> None:
    """Apply the bands of an axis. The products are small and many: BLAS's threads are held off once for all."""
    channels = source.shape[2]
    with one_blas_thread():
        if channels > _FEW_CHANNELS:
            for band in _bands(axis, out.dtype):
                np.matmul(band.matrix, source[:, band.inputs], out=out[:, band.outputs])
            return
        flat, flat_out = source.reshape(len(source), -1), out.reshape(len(out), -1)
        run = _band_run(axis, out.dtype, channels)
        bands, size, width = run.matrices.shape
        inputs = _windows(flat, 1, run.inputs, bands, run.step, size)
        outputs = _windows(flat_out, 1, run.outputs, bands, width, width)
        np.matmul(inputs, run.matrices, out=outputs)
        for band in run.rest:
            np.matmul(flat[:, band.inputs], band.matrix.T, out=flat_out[:, band.outputs])


def _by_taps(xp: ArrayModule, images: Array, rows: Taps, columns: Taps, out: Array) -> None:
    """Resize images by taking the inputs of each tap."""
    batch, height, _, channels = images.shape
    source = images.astype(out.dtype, copy=False)
    across = xp.empty((batch, height, columns.outputs, channels), out.dtype)
    _apply(xp, source.reshape(batch * height, -1, channels), columns, across.reshape(batch * height, -1, channels))
    _apply(xp, across.reshape(batch, height, -1), rows, out.reshape(batch, out.shape[1], -1))


def _apply(xp: ArrayModule, source: Array, taps: Taps, out: Array) -> None:
    """Write the sums along axis 1 of `source` to `out`. An input of weight 0 is left out, even if it is NaN."""
    out[...] = 0
    for indices, weights in zip(taps.indices, taps.weights, strict=True):
        weight = xp.asarray(weights.astype(out.dtype, copy=False)[:, None])
        share = xp.take(source, xp.asarray(indices), axis=1) * weight
        xp.add(out, choose(xp, weight == 0, out.dtype.type(0), share), out=out)


def pick(xp: ArrayModule, images: Array, rows: Taps, columns: Taps, out: Array | None = None) -> Array:
    """The pixels at the first taps of height and width of NHWC images of any dtype."""
    batch, _, _, channels = images.shape
    pixel: tuple[int, ...]
    out = xp.empty((batch, rows.outputs, columns.outputs, channels), images.dtype) if out is None else out
    if out.size == 0:
        return out
    if xp is np and channels > 1 and fast_rows.can_copy(pixels := images.reshape(-1, channels), out.size):
        first = np.arange(batch)[:, None] * images.shape[1] + rows.indices[0]
        fast_rows.gather(pixels, first[..., None] * images.shape[2] + columns.indices[0], out)
        return out
    source = xp.take(images, xp.asarray(rows.indices[0]), axis=1)
    indices, pixel = columns.indices[0], (channels,)
    if channels <= _FEW_CHANNELS:  # NumPy copies single numbers faster than small pixels
        indices, pixel = (indices[:, None] * channels + np.arange(channels)).ravel(), ()
    source, flat = (a.reshape(batch * rows.outputs, -1, *pixel) for a in (source, out))
    if xp is np:
        np.take(source, indices, axis=1, out=flat, mode="clip")  # in range: checking them would mean a copy
    else:
        xp.take(source, xp.asarray(indices), axis=1, out=flat)
    return out
