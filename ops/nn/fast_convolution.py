"""Convolutions by oneDNN, depthwise ones too: the three forms of `convolution.py`, for float32 images in NHWC.

A large convolution is cut into parts, each some images, or some channels where the filters are larger than the images.
Threads compute them side by side. How it is cut depends on its sizes alone, and so do the sums: the number of threads
does not change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import prod
from typing import Final, Literal, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.addresses import address_of
from tfray.ops.kernels.compiling import LARGE_ELEMENTS, LEAST_ELEMENTS, STEP_ELEMENTS, CompiledKernel, can_compile
from tfray.ops.kernels.copies import copy
from tfray.ops.kernels.cpu_threads import parallel_for, scratch
from tfray.ops.kernels.element_loops import Assignment, Input, element_loop
from tfray.ops.kernels.native.onednn import (
    FORWARD,
    Handle,
    Library,
    Primitive,
    Sizes,
    Unsupported,
    aligned_scratch,
    images_layout,
    library,
    reorder,
)
from tfray.ops.kernels.native.primitive_batches import SCRATCH, Call, Place, PrimitiveBatch
from tfray.ops.kernels.tiles import cut
from tfray.ops.nn.conv_geometry import Geometry

_DIRECT: Final = 1
"""``dnnl_convolution_direct``."""

_PART_FLOPS: Final = 3e7
"""Least work of a part, in floating-point operations: about a third of a millisecond on one core."""

_TWO_PARTS_FLOPS: Final = 1.2e7
"""From so much work, a tenth of a millisecond on one core, there are two parts at least."""

_FLOPS_PER_BYTE: Final = 10
"""Floating-point operations that a core does in the time of reading or writing a byte: depthwise convolutions take as
long as their memory does."""

_MOST_PARTS: Final = 64
"""More parts than most machines have cores only cost time."""

_GRAIN: Final = 16
"""Parts that make some channels begin at multiples of this number: the vectors of the library's layouts."""

_MOST_SUMS: Final = 8
"""Parts of a filters' gradient, at most: each makes a sum of its own, and these are added at the end. So many parts, at
most, make some channels each."""

_WINDOWS_PER_SUM: Final = 256
"""Least windows of such a part: with fewer, adding the sums up would take longer than what a second thread saves."""

_CHANNELS_PER_PART: Final = 64
"""Least channels that a part makes: the library treats 16 or 32 at once, and reads all images for each part."""

_REORDER_GRAIN: Final = 64
"""Filters are copied into the library's layout so many at a time: no layout has larger blocks of them."""

_REORDER_BYTES: Final = 1 << 18
"""Least bytes of filters that a thread copies at a time: some tens of microseconds."""

_LEAST_CHANNELS: Final = 8
"""Channels of images whose gradient the library computes well. For fewer it takes up to a thousand times as long, so
that others are added whose filters are 0: that takes a tenth of the time of products of matrices."""

Form = Literal["forward", "biased", "images", "filters"]
"""What is computed: the outputs, alone or with a bias; the gradient of the images, or that of the filters."""

_ARGUMENTS: Final = {
    "forward": (1, 33, 17),
    "biased": (1, 33, 41, 17),
    "images": (145, 33, 129),
    "filters": (1, 145, 161),
}
"""Numbers of the arguments, in the order of `_Convolution.run`: the result is the last."""

_NAMES: Final = {
    "forward": "convolution_forward",
    "biased": "convolution_forward",
    "images": "convolution_backward_data",
    "filters": "convolution_backward_weights",
}

_CHOSEN_FILTERS: Final = {"forward": 131, "biased": 131, "images": 131, "filters": 132}
"""The query for the layout of the filters, or of their gradient, that the library has chosen."""


class _Convolution(NamedTuple):
    """How to compute one form of a convolution.

    Attributes:
        primitive: Takes addresses in the order of `_ARGUMENTS`.
        reorder: Copies filters to the layout that the primitive takes, or their gradient from it; None if none is
            needed.
        filters_bytes: Size of the filters in that layout.
        reorder_parts: The same for some of the filters each, for compiled code; None where there is none.
    """

    primitive: Primitive
    reorder: Primitive | None
    filters_bytes: int
    reorder_parts: PrimitiveBatch | None


class _Part(NamedTuple):
    """A part of a convolution.

    Attributes:
        images: The images.
        inputs: The rows that it reads of each; several images only if these are all rows.
        outputs: The rows of outputs.
        geo: Its own sizes.
        made: The filters whose outputs or gradient it makes, or the channels of the images whose gradient it makes.
    """

    images: slice
    inputs: slice
    outputs: slice
    geo: Geometry
    made: slice = slice(None)

    def of_images(self, images: Array) -> int:
        """Where the images of this part begin."""
        return address_of(images[self.images, self.inputs])

    def of_outputs(self, outputs: Array) -> int:
        """Where the outputs of this part begin."""
        return address_of(outputs[self.images, self.outputs])


def can_convolve(xp: ArrayModule, form: Form, geo: Geometry, *arrays: Array) -> bool:
    """Whether oneDNN computes this form of a convolution of these arrays."""
    if xp is not np or geo.layout != "NHWC" or any(array.dtype != np.float32 for array in arrays):
        return False
    return _is_possible(form, geo)


@lru_cache(maxsize=1024)
def _is_possible(form: Form, geo: Geometry) -> bool:
    if library() is None or geo.is_empty:
        return False
    if form == "images" and geo.channels < _LEAST_CHANNELS:
        if geo.channels == 1 or geo.groups > 1:
            return False
        geo = _widened(geo)
    elif form == "images" and geo.batch == 1 and _work(geo) >= 2 * _PART_FLOPS:
        return False  # the rows of one image cannot be divided: their windows overlap
    return all(_convolution(form, part.geo, *_sizes(geo)) is not None for part in _parts(form, geo))


def convolve(
    images: Array, filters: Array, geo: Geometry, out: Array, bias: Array | None = None, *, rectified: bool = False
) -> Array:
    """See `convolution.convolve` and `convolution.convolve_biased`."""
    images, filters, target = map(np.ascontiguousarray, (images, filters, out))
    form: Form = "forward" if bias is None else "biased"
    parts = _parts(form, geo)
    biases = None if bias is None else np.ascontiguousarray(bias)

    def compute(part: _Part, primitive: Primitive, filters_address: int, outputs: Array) -> None:
        added = () if biases is None else (address_of(biases[part.made]),)
        primitive.run(part.of_images(images), filters_address, *added, address_of(outputs))
        if rectified:  # while it is in the cache; the library's own would make 0 of NaN
            _rectify(outputs)

    if parts[0].geo.filters < geo.filters:
        _make_channels(form, geo, parts, filters, target, compute)
        return _written(target, out)
    ready = _ready_filters(form, filters, parts)
    if can_compile():
        added = () if biases is None else (biases,)
        _batch(form, geo, rectified).run(*map(address_of, (images, *added, target)), *_addresses(ready))
        return _written(target, out)

    def work(index: int) -> None:
        part = parts[index]
        compute(part, *ready[part.geo], target[part.images, part.outputs])

    parallel_for(work, len(parts))
    return _written(target, out)


def _widened(geo: Geometry) -> Geometry:
    """A convolution of images with more channels."""
    return geo._replace(channels=_LEAST_CHANNELS)


def convolve_backward_images(d_outputs: Array, filters: Array, geo: Geometry, out: Array) -> Array:
    """See `convolution.convolve_backward_images`."""
    if geo.channels < _LEAST_CHANNELS:
        wide = np.zeros((*filters.shape[:2], _LEAST_CHANNELS, geo.filters), np.float32)
        wide[:, :, : geo.channels] = filters
        made = scratch("images", _widened(geo).images_shape, np.dtype(np.float32))
        copy(out, convolve_backward_images(d_outputs, wide, _widened(geo), made)[..., : geo.channels])
        return out
    d_outputs, filters, target = map(np.ascontiguousarray, (d_outputs, filters, out))
    parts = _parts("images", geo)

    def compute(part: _Part, primitive: Primitive, filters_address: int, d_images: Array) -> None:
        primitive.run(part.of_outputs(d_outputs), filters_address, address_of(d_images))

    if parts[0].geo.channels < geo.channels:
        _make_channels("images", geo, parts, filters, target, compute)
        return _written(target, out)
    ready = _ready_filters("images", filters, parts)
    if can_compile():
        _batch("images", geo).run(address_of(d_outputs), address_of(target), *_addresses(ready))
        return _written(target, out)

    def work(index: int) -> None:
        part = parts[index]
        compute(part, *ready[part.geo], target[part.images, part.inputs])

    parallel_for(work, len(parts))
    return _written(target, out)


def _make_channels(
    form: Form,
    geo: Geometry,
    parts: Sequence[_Part],
    filters: Array,
    target: Array,
    compute: Callable[[_Part, Primitive, int, Array], None],
) -> None:
    """Fill `target` some channels at a time, each by filters of its own.

    The library is slow on images that are not contiguous, so that parts are copied.
    """

    def work(index: int) -> None:
        part = parts[index]
        some = filters[:, :, part.made] if form == "images" else filters[..., part.made]
        primitive, to_chosen, size_bytes, _ = _needed(form, part.geo, geo)
        address = address_of(some)
        if to_chosen is not None:
            address = aligned_scratch("filters", size_bytes)
            to_chosen.run(address_of(some), address)
        made = scratch("channels", (*target.shape[:3], part.made.stop - part.made.start), np.dtype(np.float32))
        compute(part, primitive, address, made)
        target[..., part.made] = made

    parallel_for(work, len(parts))


def _rectify(outputs: Array) -> None:
    """Make negative numbers of a contiguous array 0, in place, on the calling thread."""
    loop = _rectifier()
    if loop is None:
        np.maximum(outputs, np.float32(0), out=outputs)
    else:
        loop.run(outputs.size, outputs.size, outputs, outputs)


@cache
def _rectifier() -> CompiledKernel | None:
    float32 = np.dtype(np.float32)
    return element_loop({"x": Input(float32)}, [Assignment("y", "maximum({0}, 0)", ("x",), float32)], ["y"])


def _ready_filters(form: Form, filters: Array, parts: Sequence[_Part]) -> dict[Geometry, tuple[Primitive, int]]:
    """For the sizes of each part: the primitive, and where the filters lie in the layout that it takes.

    That may be where `filters`, a contiguous array, lie: the caller keeps them.
    """
    ready: dict[Geometry, tuple[Primitive, int]] = {}
    for geo in dict.fromkeys(part.geo for part in parts):
        primitive, to_chosen, size_bytes, parts_of_copy = _needed(form, geo, geo)
        address = address_of(filters)
        if to_chosen is not None:
            address = aligned_scratch(f"filters{len(ready)}", size_bytes)
            (parts_of_copy or to_chosen).run(address_of(filters), address)
        ready[geo] = primitive, address
    return ready


def _written(target: Array, out: Array) -> Array:
    if target is not out:
        out[...] = target
    return out


def convolve_backward_filters(images: Array, d_outputs: Array, geo: Geometry, out: Array) -> Array:
    """See `convolution.convolve_backward_filters`."""
    images, d_outputs = np.ascontiguousarray(images), np.ascontiguousarray(d_outputs)
    parts = _parts("filters", geo)
    count = 1 if parts[0].geo.filters < geo.filters else len(parts)
    is_direct = count == 1 and out.flags.c_contiguous
    sums = out[None] if is_direct else scratch("sums", (count, *out.shape), np.dtype(np.float32))
    if can_compile() and parts[0].geo.filters == geo.filters:
        _batch("filters", geo).run(*map(address_of, (images, d_outputs, sums)))
        return _added(sums, out)

    def work(index: int) -> None:
        part = parts[index]
        primitive, to_plain, size_bytes, _ = _needed("filters", part.geo, geo)
        result = address_of(sums[index if count > 1 else 0][..., part.made])
        address = result if to_plain is None else aligned_scratch("filters", size_bytes)
        # The library is slow on outputs that are not contiguous.
        some = d_outputs if part.geo.filters == geo.filters else np.ascontiguousarray(d_outputs[..., part.made])
        primitive.run(part.of_images(images), part.of_outputs(some), address)
        if to_plain is not None:
            to_plain.run(address, result)

    parallel_for(work, len(parts))
    return _added(sums, out)


def _added(sums: Array, out: Array) -> Array:
    """Fill `out` with the sum over the first dimension, unless it is what was summed."""
    if np.may_share_memory(sums, out):
        return out
    loop = _adder(len(sums))
    if loop is not None and out.flags.c_contiguous and out.size >= LEAST_ELEMENTS:
        loop.run(out.size, STEP_ELEMENTS, *sums, out, is_large=sums.size >= LARGE_ELEMENTS)
        return out
    for each in sums[1:]:
        np.add(sums[0], each, out=sums[0])
    out[...] = sums[0]
    return out


@cache
def _adder(count: int) -> CompiledKernel | None:
    float32 = np.dtype(np.float32)
    names = [f"x{index}" for index in range(count)]
    total = " + ".join(f"{{{index}}}" for index in range(count))
    return element_loop(dict.fromkeys(names, Input(float32)), [Assignment("y", total, tuple(names), float32)], ["y"])


@lru_cache(maxsize=1024)
def _batch(form: Form, geo: Geometry, rectified: bool = False) -> PrimitiveBatch:
    """All parts of a convolution, none of which makes only some of the channels.

    It takes the addresses of the arrays in the order of `_ARGUMENTS`, but for the filters; behind them that of the
    filters for each size of part (see `_ready_filters`). Of a filters' gradient, each part makes a sum of its own.
    """
    dnnl = library()
    assert dnnl is not None  # `can_convolve` has asked
    parts = _parts(form, geo)
    sizes = list(dict.fromkeys(part.geo for part in parts))
    needed = [_needed(form, part.geo, geo) for part in parts]
    row, output_row = (4 * prod(shape[2:]) for shape in (geo.images_shape, geo.outputs_shape))
    items: list[list[Call]] = []
    for number, (part, (primitive, to_plain, *_)) in enumerate(zip(parts, needed, strict=True)):
        of_images = row * (part.images.start * geo.height.size + part.inputs.start)
        of_outputs = output_row * (part.images.start * geo.height.steps + part.outputs.start)
        if form == "filters":
            total = Place(2, 4 * number * geo.depth * geo.filters)
            between = [Place(0, of_images), Place(1, of_outputs), total if to_plain is None else Place(SCRATCH)]
            items.append([(primitive, between), *([] if to_plain is None else [(to_plain, [Place(SCRATCH), total])])])
            continue
        ends = [Place(0, of_images), Place(1 if form == "forward" else 2, of_outputs)]
        if form == "images":
            ends = [Place(0, of_outputs), Place(1, of_images)]
        biases = [Place(1)] if form == "biased" else []
        first = 2 + len(biases)
        items.append([(primitive, [ends[0], Place(first + sizes.index(part.geo)), *biases, ends[1]])])
    lengths = [prod(part.geo.outputs_shape) if rectified else 0 for part in parts]
    between_bytes = max(each.filters_bytes for each in needed) if form == "filters" else 0
    return PrimitiveBatch(dnnl, items, 3 if form == "filters" else first + len(sizes), between_bytes, lengths)


def _addresses(ready: Mapping[Geometry, tuple[Primitive, int]]) -> list[int]:
    return [address for _, address in ready.values()]


@lru_cache(maxsize=1024)
def _parts(form: Form, geo: Geometry) -> list[_Part]:
    """The parts: ranges of images, or ranges of rows where there are fewer images than parts.

    Rows are not divided where windows may lie in the padding alone.
    """
    if (parts := _parts_of_channels(form, geo)) is not None:
        return parts
    count = min(_MOST_PARTS, max(int(_work(geo) / _PART_FLOPS), 2 if _work(geo) >= _TWO_PARTS_FLOPS else 1))
    if form == "filters":
        windows = geo.batch * geo.height.steps * geo.width.steps
        count = min(count, _MOST_SUMS, windows // _WINDOWS_PER_SUM)
    height = geo.height
    see_pixels = height.before < height.extent and (height.steps - 1) * height.stride - height.before < height.size
    if count <= geo.batch or form == "images" or not see_pixels:
        whole = slice(0, geo.height.steps)
        return [_part(geo, images, whole) for images in _blocks(geo.batch, max(count, 1))]
    blocks = cut(geo.height.steps, min(geo.height.steps, -(-count // geo.batch)))
    return [_part(geo, slice(image, image + 1), rows) for image in range(geo.batch) for rows in blocks]


def _blocks(batch: int, count: int) -> list[slice]:
    """Ranges of images: about `count`, of one size if possible; otherwise large ones first, as threads end together so.

    A part of another size takes a primitive of its own.
    """
    even = next((more for more in range(count, 2 * count) if batch % more == 0), min(count, batch))
    return sorted(cut(batch, even), key=lambda images: images.start - images.stop)


def _work(geo: Geometry) -> float:
    """About how many floating-point operations take as long as this convolution."""
    bytes_moved = 4 * (prod(geo.images_shape) + prod(geo.outputs_shape))
    return max(geo.flops, _FLOPS_PER_BYTE * bytes_moved)


def _part(geo: Geometry, images: slice, rows: slice) -> _Part:
    height = geo.height
    batch = images.stop - images.start
    if rows.stop - rows.start == height.steps:
        return _Part(images, slice(0, height.size), rows, geo._replace(batch=batch))
    top = rows.start * height.stride - height.before
    bottom = (rows.stop - 1) * height.stride + height.extent - height.before
    inputs = slice(max(top, 0), min(bottom, height.size))
    axis = height._replace(size=inputs.stop - inputs.start, steps=rows.stop - rows.start, before=max(-top, 0), after=0)
    return _Part(images, inputs, rows, geo._replace(batch=batch, height=axis))


def _parts_of_channels(form: Form, geo: Geometry) -> list[_Part] | None:
    """The parts of a convolution with more filters than images: each makes some of the channels, of all images.

    Most of the time goes into reading filters, and into bringing them into the library's layout.
    """
    dimension = "channels" if form == "images" else "filters"
    channels = getattr(geo, dimension)
    elements = geo.depth * geo.filters
    copied = prod(geo.images_shape if form == "images" else geo.outputs_shape)
    work = geo.flops + _FLOPS_PER_BYTE * 4 * 2 * elements
    count = min(_MOST_SUMS, channels // _CHANNELS_PER_PART, int(work / _PART_FLOPS))
    if geo.groups > 1 or count < 2 or elements < copied:
        return None
    whole = _part(geo, slice(0, geo.batch), slice(0, geo.height.steps))
    bounds = [block.start * _GRAIN for block in cut(channels // _GRAIN, count)] + [channels]
    return [
        whole._replace(geo=geo._replace(**{dimension: stop - start}), made=slice(start, stop))
        for start, stop in pairwise(bounds)
    ]


def _sizes(geo: Geometry) -> tuple[int, int]:
    return geo.channels, geo.filters


def _needed(form: Form, geo: Geometry, whole: Geometry) -> _Convolution:
    convolution = _convolution(form, geo, *_sizes(whole))
    assert convolution is not None  # `can_convolve` has asked
    return convolution


@lru_cache(maxsize=1024)
def _convolution(form: Form, geo: Geometry, channels: int, filters: int) -> _Convolution | None:
    """How to compute a convolution, with a part of so many channels and filters; None where oneDNN has no way."""
    dnnl = library()
    if dnnl is None:
        return None
    try:
        return _made(dnnl, form, geo, channels // geo.groups, filters)
    except Unsupported:
        return None


def _made(dnnl: Library, form: Form, geo: Geometry, all_inputs: int, all_filters: int) -> _Convolution:
    images = images_layout(dnnl, geo.batch, geo.height.size, geo.width.size, geo.channels)
    outputs = images_layout(dnnl, geo.batch, geo.height.steps, geo.width.steps, geo.filters)
    axes = geo.height, geo.width
    window = [axis.window for axis in axes]
    inputs, filters = geo.channels // geo.groups, geo.filters // geo.groups
    filter_sizes = [geo.groups, filters, inputs, *window]
    steps = [filters, 1, all_filters, window[1] * all_inputs * all_filters, all_inputs * all_filters]
    if geo.groups == 1:
        del filter_sizes[0], steps[0]
    plain = dnnl.layout(filter_sizes, steps)
    chosen = dnnl.layout(filter_sizes)
    after = [(axis.steps - 1) * axis.stride + axis.extent - axis.size - axis.before for axis in axes]
    sizes = (
        Sizes(*(axis.stride for axis in axes)),
        Sizes(*(axis.dilation - 1 for axis in axes)),
        Sizes(*(axis.before for axis in axes)),
        Sizes(*after),
    )
    biases = dnnl.layout([geo.filters], [1]) if form == "biased" else None
    forward = (dnnl.engine, FORWARD, _DIRECT, images, chosen, biases, outputs, *sizes)
    if form in ("forward", "biased"):
        arguments: tuple[object, ...] = forward
    else:
        attributes = dnnl.made("primitive_attr")
        create = "dnnl_convolution_forward_primitive_desc_create"
        hint = dnnl.made("primitive_desc", *forward, attributes, create=create)
        bias = () if form == "images" else (None,)
        arguments = (dnnl.engine, _DIRECT, images, chosen, *bias, outputs, *sizes, hint)
    query = _CHOSEN_FILTERS[form]
    layouts = {
        "forward": (images, query, outputs),
        "biased": (images, query, biases, outputs),
        "images": (outputs, query, images),
        "filters": (images, outputs, query),
    }
    primitive = Primitive(dnnl, _NAMES[form], arguments, list(zip(_ARGUMENTS[form], layouts[form], strict=True)))
    taken = primitive.layouts[layouts[form].index(query)]
    ends = (taken, plain) if form == "filters" else (plain, taken)
    whole = reorder(dnnl, *ends)
    parts = None if whole is None or form == "filters" else _reorder_parts(dnnl, plain, taken, filter_sizes)
    return _Convolution(primitive, whole, dnnl.size(taken), parts)


def _reorder_parts(dnnl: Library, plain: Handle, taken: object, sizes: Sequence[int]) -> PrimitiveBatch | None:
    """A copy of filters from one layout to another, some of the filters at a time; None where it is not worth it."""
    count = min(_MOST_SUMS, sizes[0] // _REORDER_GRAIN, 4 * prod(sizes) // _REORDER_BYTES)
    if count < 2 or not can_compile():
        return None
    calls: list[list[Call]] = []
    try:
        for blocks in cut(sizes[0] // _REORDER_GRAIN, count):
            first = blocks.start * _REORDER_GRAIN
            last = sizes[0] if len(calls) == count - 1 else blocks.stop * _REORDER_GRAIN
            place = [first] + [0] * (len(sizes) - 1), [last - first, *sizes[1:]]
            ends = [dnnl.part_of(layout, place[1], place[0]) for layout in (plain, taken)]
            copy = reorder(dnnl, *ends)
            if copy is None:
                return None
            calls.append([(copy, [Place(0), Place(1)])])
    except Unsupported:
        return None
    return PrimitiveBatch(dnnl, calls, 2)
