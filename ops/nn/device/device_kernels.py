"""Kernels of a GPU for rows and images: softmax and its losses, batch normalisation, pooling. NumPy has its own.

Each is a few launches: sums over rows or channels, then one kernel for what follows element by element. Sums of halves
are float32, and are used as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.ops.kernels.gpu.device_loops import DeviceLoop, Load, Section, Trace, Value, has_loop
from tfray.ops.kernels.gpu.device_sums import staged_sum, staged_sums
from tfray.ops.kernels.precision import working_dtype
from tfray.ops.nn.pooling import Pooling

MAX_WINDOW: Final = 64
"""Elements of a window of pooling: the kernel has a line for each."""


def has_kernels(xp: ArrayModule, *arrays: Array) -> bool:
    """Whether these arrays are on a GPU, of one dtype that the kernels know, and not empty."""
    return all(has_loop(xp, a.dtype, a.size) and a.dtype == arrays[0].dtype for a in arrays)


def _loop(size: int, loads: Sequence[Load], trace: Trace, *stored: tuple[Value, str]) -> Section:
    values = tuple((value.name, array) for value, array in stored)
    return Section(size, tuple(loads), tuple(trace.assignments), values)


# -- rows ----------------------------------------------------------------------------------------------


def softmax(xp: ArrayModule, logits: Array, out: Array, *, is_log: bool) -> None:
    """Write the softmax of each row of a matrix, or its logarithm, to `out`."""
    greatest, total = _row_statistics(xp, logits)
    _softmax_loop(logits.shape, logits.dtype, is_log)(xp, logits, greatest, total, out)


def _row_statistics(xp: ArrayModule, logits: Array) -> tuple[Array, Array]:
    """Of each row the greatest element, and the sum of the powers of what the others are below it."""
    greatest = logits.max(axis=1, keepdims=True)
    return greatest, staged_sum(xp, "exp({0} - {1})", [logits, greatest], axis=1)


def _rows_of(shape: tuple[int, ...], dtype: NumpyDType, whole: Sequence[str], columns: Sequence[str]) -> list[Load]:
    return [Load(n, dtype) for n in whole] + [Load(n, _column_dtype(n, dtype), "column", shape[1]) for n in columns]


def _column_dtype(name: str, dtype: NumpyDType) -> NumpyDType:
    """Of what there is for each row of arrays of `dtype`."""
    return working_dtype(dtype) if name == "total" else dtype


@lru_cache(maxsize=64)
def _softmax_loop(shape: tuple[int, int], dtype: NumpyDType, is_log: bool) -> DeviceLoop:
    loads, trace = _rows_of(shape, dtype, ["x"], ["greatest", "total"]), Trace()
    x, greatest, total = trace.values(loads)
    result = x - greatest - trace.log(total) if is_log else trace.exp(x - greatest) / total
    return DeviceLoop([_loop(shape[0] * shape[1], loads, trace, (result, "out"))])


def softmax_gradient(xp: ArrayModule, d: Array, y: Array, out: Array, *, is_log: bool) -> None:
    """Write the gradient of `softmax` to `out`: from that of its result, `d`, and its result, `y`."""
    total = staged_sum(xp, "{0}" if is_log else "{0} * {1}", [d] if is_log else [d, y], axis=1)
    _softmax_gradient_loop(d.shape, d.dtype, is_log)(xp, d, y, total, out)


@lru_cache(maxsize=64)
def _softmax_gradient_loop(shape: tuple[int, int], dtype: NumpyDType, is_log: bool) -> DeviceLoop:
    loads, trace = _rows_of(shape, dtype, ["d", "y"], ["total"]), Trace()
    d, y, total = trace.values(loads)
    result = d - trace.exp(y) * total if is_log else (d - total) * y
    return DeviceLoop([_loop(shape[0] * shape[1], loads, trace, (result, "out"))])


def cross_entropy(xp: ArrayModule, logits: Array, labels: Array, losses: Array, backprop: Array) -> None:
    """Write the cross entropy of each row, and its gradient, to `losses` and `backprop`."""
    greatest, total = _row_statistics(xp, logits)
    _cross_entropy_loop(logits.shape, logits.dtype)(xp, logits, labels, greatest, total, backprop)
    terms = [labels, logits, greatest, total]
    losses[...] = staged_sum(xp, "{0} * (log({3}) - ({1} - {2}))", terms, axis=1).reshape(-1)


@lru_cache(maxsize=64)
def _cross_entropy_loop(shape: tuple[int, int], dtype: NumpyDType) -> DeviceLoop:
    loads, trace = _rows_of(shape, dtype, ["x", "labels"], ["greatest", "total"]), Trace()
    x, labels, greatest, total = trace.values(loads)
    result = trace.exp(x - greatest) / total - labels
    return DeviceLoop([_loop(shape[0] * shape[1], loads, trace, (result, "backprop"))])


def sparse_cross_entropy(xp: ArrayModule, logits: Array, labels: Array, losses: Array, backprop: Array) -> None:
    """As `cross_entropy`, for the numbers of classes. The loss of one that does not exist is NaN."""
    greatest, total = _row_statistics(xp, logits)
    loop = _sparse_cross_entropy_loop(logits.shape, logits.dtype, labels.dtype)
    loop(xp, logits, labels, greatest, total, backprop, losses)


@lru_cache(maxsize=64)
def _sparse_cross_entropy_loop(shape: tuple[int, int], dtype: NumpyDType, label_dtype: NumpyDType) -> DeviceLoop:
    rows, classes = shape
    label = f"maximum({label_dtype}(0), minimum({label_dtype}({classes - 1}), {{labels}}[%s]))"
    loads = [Load("x", dtype), Load("labels", label_dtype, "column", classes)]
    loads += [Load(name, _column_dtype(name, dtype), "column", classes) for name in ("greatest", "total")]
    trace = Trace()
    x, labels, greatest, total = trace.values(loads)
    column, last = trace.value("column", np.dtype(np.int32)), repr(classes - 1)
    clipped = trace.compute("maximum(0, minimum(" + last + ", {0}))", labels)
    is_right = trace.compute("{0} == {1}", clipped, column, dtype=np.dtype(bool))
    probability = trace.exp(x - greatest) / total
    d = trace.compute("where({1}, {0} - 1, {0})", probability, is_right, dtype=dtype)
    each = Section(
        rows * classes, tuple(loads), tuple(trace.assignments), ((d.name, "backprop"),), (("column", f"j % {classes}"),)
    )
    loads = [Load("right", dtype, "at", index=f"j * {classes} + {label % 'j'}", array="x"), Load("labels", label_dtype)]
    loads += [Load(name, _column_dtype(name, dtype)) for name in ("greatest", "total")]
    trace = Trace()
    right, labels, greatest, total = trace.values(loads)
    exists = trace.compute("({0} >= 0) & ({0} <= " + last + ")", labels, dtype=np.dtype(bool))
    loss = trace.compute("where({1}, {0}, 0 / 0)", trace.log(total) - (right - greatest), exists, dtype=dtype)
    return DeviceLoop([each, _loop(rows, loads, trace, (loss, "losses"))])


# -- batch normalisation -------------------------------------------------------------------------------


def channel_axes(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """The axes of images that are not their channels."""
    return (0, 1, 2) if layout == "NHWC" else (0, 2, 3)


def channel_moments(xp: ArrayModule, images: Array, layout: str) -> tuple[Array, Array]:
    """Mean and biased variance of each channel."""
    axes = channel_axes(images.shape, layout)
    per_pixel = 1 / np.prod([images.shape[axis] for axis in axes])
    mean = staged_sum(xp, "{0}", [images], axes, per_pixel)
    variance = staged_sum(xp, "({0} - {1}) * ({0} - {1})", [images, mean], axes, per_pixel)
    return mean.reshape(-1), variance.reshape(-1)


def _per_channel(shape: tuple[int, ...], layout: str, dtype: NumpyDType, names: Sequence[str]) -> list[Load]:
    """Vectors of the channels, as the elements of images read them."""
    if layout == "NHWC":
        return [Load(name, dtype, "row", shape[3]) for name in names]
    index = f"quotient(j, {shape[2] * shape[3]}) % {shape[1]}"
    return [Load(name, dtype, "at", index=index) for name in names]


def normalized(
    xp: ArrayModule,
    images: Array,
    vectors: Sequence[Array],
    layout: str,
    epsilon: float,
    count: int,
    bounds: tuple[float, float],
) -> tuple[Array, Array]:
    """The images normalised by the mean, variance, scale and offset of their channels, and held between bounds; and
    the unbiased variance."""
    mean, variance, scale, offset = vectors
    out, (factor, unbiased) = xp.empty(images.shape, images.dtype), _like(xp, variance, 2)
    _factor_loop(variance.size, variance.dtype, epsilon, count)(xp, variance, scale, factor, unbiased)
    loop = _normalized_loop(images.shape, layout, images.dtype, variance.dtype, bounds)
    loop(xp, images, mean, factor, offset, out)
    return out, unbiased


def _like(xp: ArrayModule, vector: Array, count: int) -> list[Array]:
    return [xp.empty(vector.shape, vector.dtype) for _ in range(count)]


@lru_cache(maxsize=64)
def _factor_loop(channels: int, wide: NumpyDType, epsilon: float, count: int) -> DeviceLoop:
    """What is the same for all pixels of a channel: a root and a quotient cost more than to load an element."""
    loads, trace = [Load(name, wide) for name in ("variance", "scale")], Trace()
    variance, scale = trace.values(loads)
    factor = scale / trace.sqrt(variance + epsilon)
    unbiased = variance * (count / max(count - 1, 1))
    return DeviceLoop([_loop(channels, loads, trace, (factor, "factor"), (unbiased, "unbiased"))])


@lru_cache(maxsize=64)
def _normalized_loop(
    shape: tuple[int, ...], layout: str, dtype: NumpyDType, wide: NumpyDType, bounds: tuple[float, float]
) -> DeviceLoop:
    names = ("mean", "factor", "offset")
    loads, trace = [Load("x", dtype), *_per_channel(shape, layout, wide, names)], Trace()
    x, mean, factor, offset = trace.values(loads)
    # Centre first: x * factor - mean * factor would cancel badly where the mean is large.
    result = (x - mean) * factor + offset
    for bound, held in zip(bounds, (trace.maximum, trace.minimum), strict=True):
        result = held(result, trace.record(f"{bound:g}", [], result.dtype)) if np.isfinite(bound) else result
    return DeviceLoop([_loop(int(np.prod(shape)), loads, trace, (result, "out"))])


def normalization_gradient(
    xp: ArrayModule,
    d: Array,
    images: Array,
    vectors: Sequence[Array],
    layout: str,
    epsilon: float,
    is_training: bool,
    gate: tuple[Array, float, float] | None = None,
) -> list[Array]:
    """Gradients of the images, the scale and the offset, from `d`, and mean, variance and scale of the channels.

    With a gate, what `d` is where these outputs are greater than the first number and at most the second; 0 elsewhere.
    """
    axes = channel_axes(images.shape, layout)
    mean, variance, scale = vectors
    of_channels = mean.reshape(-1) if layout == "NHWC" else mean.reshape(-1, 1, 1)
    passed = "{0}" if gate is None else _passed("{0}", "{3}", gate[1:])
    gates = [] if gate is None else [gate[0]]
    sums = staged_sums(xp, [passed, f"({{1}} - {{2}}) * ({passed})"], [d, images, of_channels, *gates], axes)
    d_offset, total = (found.reshape(-1) for found in sums)
    d_images, (factor, slope, shift, d_scale) = xp.empty(images.shape, images.dtype), _like(xp, d_offset, 4)
    count = images.size // max(mean.size, 1)
    of_factors = _gradient_factors_loop(mean.size, d_offset.dtype, epsilon, count)
    of_factors(xp, variance, scale, total, d_offset, factor, slope, shift, d_scale)
    types = images.dtype, d_offset.dtype
    loop = _normalization_gradient_loop(images.shape, layout, *types, is_training, gate and gate[1:])
    loop(xp, *gates, d, factor, *([images, mean, slope, shift] if is_training else []), d_images)
    return [d_images, d_scale, d_offset]


def _passed(d: str, output: str, bounds: Sequence[float]) -> str:
    """The expression of a gradient that goes through only where an output is within bounds."""
    low, last = bounds
    within = f"{output} > {low!r}" + (f") & ({output} <= {last!r}" if np.isfinite(last) else "")
    return f"{d} * where(({within}), 1, 0)"


@lru_cache(maxsize=64)
def _gradient_factors_loop(channels: int, wide: NumpyDType, epsilon: float, count: int) -> DeviceLoop:
    """See `_factor_loop`."""
    loads, trace = [Load(name, wide) for name in ("variance", "scale", "total", "d_offset")], Trace()
    variance, scale, total, d_offset = trace.values(loads)
    inverse = 1 / trace.sqrt(variance + epsilon)
    factor, d_scale = inverse * scale, total * inverse
    slope, shift = factor * d_scale * inverse * (1 / count), factor * d_offset * (1 / count)
    stored = (factor, "factor"), (slope, "slope"), (shift, "shift"), (d_scale, "d_scale")
    return DeviceLoop([_loop(channels, loads, trace, *stored)])


@lru_cache(maxsize=64)
def _normalization_gradient_loop(
    shape: tuple[int, ...],
    layout: str,
    dtype: NumpyDType,
    wide: NumpyDType,
    is_training: bool,
    gate: tuple[float, float] | None,
) -> DeviceLoop:
    names = ("mean", "slope", "shift") if is_training else ()
    loads, trace = [Load("y", dtype)] if gate else [], Trace()
    loads += [Load("d", dtype), *_per_channel(shape, layout, wide, ["factor"])]
    loads += [*([Load("x", dtype)] if is_training else []), *_per_channel(shape, layout, wide, names)]
    values = trace.values(loads)
    outputs = [values.pop(0)] if gate else []
    d, factor, *others = values
    if gate:
        d = trace.compute(_passed("{0}", "{1}", gate), d, *outputs)
    d_image = d * factor
    if is_training:
        x, mean, slope, shift = others
        d_image = d_image - ((x - mean) * slope + shift)
    return DeviceLoop([_loop(int(np.prod(shape)), loads, trace, (d_image, "d_images"))])


# -- biases --------------------------------------------------------------------------------------------


def add_bias(xp: ArrayModule, images: Array, bias: Array, layout: str, *, rectified: bool) -> None:
    """Add a number to each channel of contiguous images, in place; and make what is negative then 0, if `rectified`."""
    _bias_loop(images.shape, layout, images.dtype, rectified)(xp, bias, images)


@lru_cache(maxsize=64)
def _bias_loop(shape: tuple[int, ...], layout: str, dtype: NumpyDType, rectified: bool) -> DeviceLoop:
    loads, trace = [Load("images", dtype), *_per_channel(shape, layout, dtype, ["bias"])], Trace()
    x, bias = trace.values(loads)
    total = x + bias
    result = trace.maximum(total, trace.record("0", [], dtype)) if rectified else total
    return DeviceLoop([_loop(int(np.prod(shape)), loads, trace, (result, "images"))])


def elements(xp: ArrayModule, element: str, arrays: Sequence[Array], out: Array) -> None:
    """Write an expression of the elements of arrays of one shape, see `Kernel.element`, to `out`."""
    _elements_loop(element, out.size, tuple(array.dtype for array in arrays), out.dtype)(xp, *arrays, out)


@lru_cache(maxsize=64)
def _elements_loop(element: str, size: int, dtypes: Sequence[NumpyDType], dtype: NumpyDType) -> DeviceLoop:
    loads, trace = [Load(f"x{i}", each) for i, each in enumerate(dtypes)], Trace()
    return DeviceLoop([_loop(size, loads, trace, (trace.compute(element, *trace.values(loads), dtype=dtype), "out"))])


# -- pooling -------------------------------------------------------------------------------------------


def can_pool(xp: ArrayModule, pool: Pooling, *arrays: Array) -> bool:
    """Whether `max_pool` and `max_pool_gradient` know what to do."""
    return has_kernels(xp, *arrays) and pool.height.window * pool.width.window <= MAX_WINDOW


def max_pool(xp: ArrayModule, images: Array, pool: Pooling, out: Array) -> None:
    """Write the greatest element of each window to `out`."""
    _max_pool_loop(pool, images.dtype)(xp, images, out)


def _places(pool: Pooling, height: int, width: int) -> list[tuple[str, str]]:
    """Where an element of images of that size stands; ``plane`` numbers the images, of NCHW their channels too."""
    inner = pool.channels if pool.layout == "NHWC" else 1
    places = [("column", f"quotient(j, {inner}) % {width}"), ("row", f"quotient(j, {inner * width}) % {height}")]
    return [("channel", f"j % {inner}"), *places, ("plane", f"quotient(j, {inner * width * height})")]


def _run(pool: Pooling) -> int:
    """Consecutive elements that stand in one place: the channels of NHWC."""
    return pool.channels if pool.layout == "NHWC" else 0


def _at(pool: Pooling, height: int, width: int, row: str, column: str) -> str:
    """The index of an element of images of that size."""
    inner = pool.channels if pool.layout == "NHWC" else 1
    return f"((plane * {height} + {row}) * {width} + {column}) * {inner} + channel"


def _within(text: str, size: int) -> str:
    return f"maximum(0, minimum({size - 1}, {text}))"


def _pixels(pool: Pooling, dtype: NumpyDType) -> tuple[list[Load], list[str]]:
    """The elements of the window of a result, those beyond the image replaced by the nearest; and which are within."""
    high, wide = pool.height, pool.width
    loads: list[Load] = []
    within: list[str] = []
    for a in range(high.window):
        for b in range(wide.window):
            row, column = f"row * {high.stride} + {a - high.before}", f"column * {wide.stride} + {b - wide.before}"
            index = _at(pool, high.size, wide.size, _within(row, high.size), _within(column, wide.size))
            loads.append(Load(f"pixel{len(loads)}", dtype, "at", index=index, array="images"))
            tests = [f"({row} >= 0) & ({row} < {high.size})"] if high.is_padded else []
            tests += [f"({column} >= 0) & ({column} < {wide.size})"] if wide.is_padded else []
            within.append(" & ".join(tests))
    return loads, within


@lru_cache(maxsize=64)
def _max_pool_loop(pool: Pooling, dtype: NumpyDType) -> DeviceLoop:
    loads, _ = _pixels(pool, dtype)
    trace = Trace()
    greatest, *others = trace.values(loads)
    for pixel in others:
        greatest = trace.maximum(greatest, pixel)
    size = int(np.prod(pool.outputs_shape))
    places = tuple(_places(pool, pool.height.steps, pool.width.steps))
    stored = ((greatest.name, "out"),)
    return DeviceLoop([Section(size, tuple(loads), tuple(trace.assignments), stored, places, _run(pool))])


def max_pool_gradient(xp: ArrayModule, images: Array, maxima: Array, d: Array, pool: Pooling, out: Array) -> None:
    """Write the gradient of the images to `out`: each of `d` goes to the first greatest element of its window."""
    first = xp.empty(maxima.shape, np.int32)
    _first_loop(pool, images.dtype)(xp, images, maxima, first)
    _spread_loop(pool, images.dtype)(xp, first, d, out)


@lru_cache(maxsize=64)
def _first_loop(pool: Pooling, dtype: NumpyDType) -> DeviceLoop:
    """Finds which element of each window is the first greatest one; -1 where none is, among NaNs."""
    pixels, within = _pixels(pool, dtype)
    places = _places(pool, pool.height.steps, pool.width.steps)
    trace, int32 = Trace(), np.dtype(np.int32)
    *values, greatest = trace.values([*pixels, Load("maxima", dtype)])
    first = trace.record("-1", [], int32)
    for number, (pixel, test) in reversed(list(enumerate(zip(values, within, strict=True)))):
        is_greatest = trace.compute("{0} == {1}", pixel, greatest, dtype=np.dtype(bool))
        if test:
            places.append((f"within{number}", test))
            inside = trace.value(f"within{number}", int32)
            is_greatest = trace.compute("{0} & ({1} != 0)", is_greatest, inside, dtype=np.dtype(bool))
        first = trace.compute(f"where({{0}}, {number}, {{1}})", is_greatest, first, dtype=int32)
    loads = (*pixels, Load("maxima", dtype))
    size = int(np.prod(pool.outputs_shape))
    stored = ((first.name, "first"),)
    return DeviceLoop([Section(size, loads, tuple(trace.assignments), stored, tuple(places), _run(pool))])


@lru_cache(maxsize=64)
def _spread_loop(pool: Pooling, dtype: NumpyDType) -> DeviceLoop:
    """For each pixel, adds up what the windows give of which it is the first greatest element."""
    high, wide = pool.height, pool.width
    places = _places(pool, high.size, wide.size)
    trace, int32 = Trace(), np.dtype(np.int32)
    loads: list[Load] = []
    total: Any = trace.record("0", [], dtype)
    for a in range(-(-high.window // high.stride)):
        for b in range(-(-wide.window // wide.stride)):
            number = len(loads) // 2
            window_row = f"quotient(row + {high.before}, {high.stride}) - {a}"
            window_column = f"quotient(column + {wide.before}, {wide.stride}) - {b}"
            element = (
                f"(row + {high.before} - ({window_row}) * {high.stride}) * {wide.window}"
                f" + column + {wide.before} - ({window_column}) * {wide.stride}"
            )
            tests = [
                f"({window_row} >= 0) & ({window_row} < {high.steps})",
                f"({window_column} >= 0) & ({window_column} < {wide.steps})",
                f"(row + {high.before} - ({window_row}) * {high.stride} < {high.window})",
                f"(column + {wide.before} - ({window_column}) * {wide.stride} < {wide.window})",
            ]
            places += [(f"element{number}", element), (f"within{number}", " & ".join(tests))]
            index = _at(
                pool, high.steps, wide.steps, _within(window_row, high.steps), _within(window_column, wide.steps)
            )
            loads.append(Load(f"first{number}", int32, "at", index=index, array="first"))
            loads.append(Load(f"d{number}", dtype, "at", index=index, array="d"))
            first, d = trace.values(loads[-2:])
            element_of, inside = (trace.value(f"{name}{number}", int32) for name in ("element", "within"))
            is_first = trace.compute("({0} == {1}) & ({2} != 0)", first, element_of, inside, dtype=np.dtype(bool))
            total = total + trace.compute("where({0}, {1}, 0)", is_first, d, dtype=dtype)
    size = int(np.prod(pool.images_shape))
    stored = ((total.name, "out"),)
    return DeviceLoop([Section(size, tuple(loads), tuple(trace.assignments), stored, tuple(places), _run(pool))])
