"""Convolutions by oneDNN, depthwise ones too: the three forms of `convolution.py`, for float32 images in NHWC.

A large convolution is cut into parts, each some images, or some channels where the filters are larger than the images.
Threads compute them side by side. How it is cut depends on its sizes alone, and so do the sums: the number of threads
does not change a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import prod
from typing import Final, Literal, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.addresses import address_of
from tfray.ops.kernels.compiling import LARGE_ELEMENTS, LEAST_ELEMENTS, STEP_ELEMENTS, CompiledKernel, can_compile
from tfray.ops.kernels.copies import copy, written
from tfray.ops.kernels.cpu_threads import scratch
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
from tfray.ops.kernels.native.primitive_batches import MORE_SCRATCH, SCRATCH, Call, Place, PrimitiveBatch
from tfray.ops.kernels.tiles import cut, even
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
        plain: The layout of the filters, or of their gradient, in arrays.
        taken: Their layout for the primitive.
        reorder: Copies filters from the first to the second, or their gradient back; None where these are the same.
        filters_bytes: Size of the filters in the layout for the primitive.
    """

    primitive: Primitive
    plain: Handle
    taken: object
    reorder: Primitive | None
    filters_bytes: int


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


def can_convolve(xp: ArrayModule, form: Form, geo: Geometry, *arrays: Array) -> bool:
    """Whether oneDNN computes this form of a convolution of these arrays."""
    if xp is not np or geo.layout != "NHWC" or any(array.dtype != np.float32 for array in arrays):
        return False
    return _is_possible(form, geo)


@lru_cache(maxsize=1024)
def _is_possible(form: Form, geo: Geometry) -> bool:
    if library() is None or geo.is_empty or not can_compile():
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
    images, target = map(np.ascontiguousarray, (images, out))
    biases = [] if bias is None else [np.ascontiguousarray(bias)]
    _compute("biased" if biases else "forward", geo, [images, *biases, target], filters, rectified)
    return written(target, out)


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
    d_outputs, target = map(np.ascontiguousarray, (d_outputs, out))
    _compute("images", geo, [d_outputs, target], filters)
    return written(target, out)


def _compute(form: Form, geo: Geometry, arrays: Sequence[Array], filters: Array, rectified: bool = False) -> None:
    """Compute a form that takes filters: from the first of these contiguous arrays to the last."""
    filters = np.ascontiguousarray(filters)
    places = [address_of(filters)]
    parts = _parts(form, geo)
    if parts[0].made == slice(None):  # otherwise each part copies its own
        places = [_ready_filters(form, each, filters, number) for number, each in enumerate(_sizes_of(parts))]
    _batch(form, geo, rectified).run(*map(address_of, arrays), *places)


def _ready_filters(form: Form, geo: Geometry, filters: Array, number: int) -> int:
    """Where filters lie in the layout that parts of this size take. That may be where `filters` do."""
    copies = _copies(form, geo)
    if copies is None:
        return address_of(filters)
    address = aligned_scratch(f"filters{number}", _needed(form, geo, geo).filters_bytes)
    copies.run(address_of(filters), address)
    return address


def convolve_backward_filters(images: Array, d_outputs: Array, geo: Geometry, out: Array) -> Array:
    """See `convolution.convolve_backward_filters`."""
    images, d_outputs, target = map(np.ascontiguousarray, (images, d_outputs, out))
    batch, parts = _batch("filters", geo), _parts("filters", geo)
    ends = address_of(images), address_of(d_outputs)
    if len(parts) == 1 or parts[0].made != slice(None):
        batch.run(*ends, address_of(target))
        return written(target, out)
    in_layout = _is_summed_in_layout(geo)
    size = _needed("filters", parts[0].geo, geo).filters_bytes // 4 if in_layout else target.size
    sums = scratch("sums", (len(parts), size), np.dtype(np.float32))
    batch.run(*ends, address_of(sums))
    if in_layout and (copies := _copies("filters", parts[0].geo)) is not None:
        _add(sums, sums[0])
        copies.run(address_of(sums), address_of(target))
    else:
        _add(sums, target.reshape(-1))
    return written(target, out)


def _add(sums: Array, out: Array) -> None:
    """Fill `out`, which may be the first row, with the sum of all rows."""
    loop = _adder(len(sums))
    if loop is not None and out.size >= LEAST_ELEMENTS:
        loop.run(out.size, STEP_ELEMENTS, *sums, out, is_large=sums.size >= LARGE_ELEMENTS)
        return
    for each in sums[1:]:
        np.add(sums[0], each, out=sums[0])
    out[...] = sums[0]


@cache
def _adder(count: int) -> CompiledKernel | None:
    float32 = np.dtype(np.float32)
    names = [f"x{index}" for index in range(count)]
    total = " + ".join(f"{{{index}}}" for index in range(count))
    return element_loop(dict.fromkeys(names, Input(float32)), [Assignment("y", total, tuple(names), float32)], ["y"])


@lru_cache(maxsize=1024)
def _batch(form: Form, geo: Geometry, rectified: bool = False) -> PrimitiveBatch:
    """All parts of a convolution.

    It takes the addresses of the arrays in the order of `_ARGUMENTS`, but for the filters, which follow: as they are
    where parts make some of the channels, else for each size of part in its layout. Of a filters' gradient, each part
    of several makes a sum of its own, in the library's layout where `_is_summed_in_layout`.
    """
    dnnl = library()
    assert dnnl is not None  # `can_convolve` has asked
    parts = _parts(form, geo)
    sizes = _sizes_of(parts)
    last = {"forward": 1, "biased": 2, "images": 1, "filters": 2}[form]
    items: list[list[Call]] = []
    scratch_bytes = [0, 0]
    for number, part in enumerate(parts):
        needed = _needed(form, part.geo, geo)
        if part.made != slice(None):
            items.append(_calls_for_channels(dnnl, form, geo, part, needed, rectified))
            made = part.geo.images_shape if form == "images" else part.geo.outputs_shape
            scratch_bytes = list(map(max, scratch_bytes, (needed.filters_bytes, 4 * prod(made))))
            continue
        ends = _places(form, geo, part)
        if form == "filters":
            items.append(_calls_for_sum(geo, needed, ends, number if len(parts) > 1 else None))
            scratch_bytes[0] = max(scratch_bytes[0], needed.filters_bytes)
            continue
        biases = [Place(1)] if form == "biased" else []
        taken = [ends[0], Place(last + 1 + sizes.index(part.geo)), *biases, ends[1]]
        items.append([Call(needed.primitive, taken, prod(part.geo.outputs_shape) if rectified else 0)])
    arrays = last + 1
    if form != "filters":
        arrays += 1 if parts[0].made != slice(None) else len(sizes)
    return PrimitiveBatch(dnnl, items, arrays, (scratch_bytes[0], scratch_bytes[1]))


def _places(form: Form, geo: Geometry, part: _Part) -> tuple[Place, Place]:
    """Where what a part reads begins, and what it makes; of a filters' gradient, where the two that it reads do."""
    row, output_row = (4 * prod(shape[2:]) for shape in (geo.images_shape, geo.outputs_shape))
    of_images = row * (part.images.start * geo.height.size + part.inputs.start)
    of_outputs = output_row * (part.images.start * geo.height.steps + part.outputs.start)
    if form == "images":
        return Place(0, of_outputs), Place(1, of_images)
    return Place(0, of_images), Place(2 if form == "biased" else 1, of_outputs)


def _calls_for_sum(geo: Geometry, needed: _Convolution, ends: tuple[Place, Place], number: int | None) -> list[Call]:
    """A part of a filters' gradient, the sum with that number; None for all of it."""
    to_plain = needed.reorder
    if number is not None and _is_summed_in_layout(geo):
        return [Call(needed.primitive, [*ends, Place(2, number * needed.filters_bytes)])]
    total = Place(2, 4 * (number or 0) * geo.depth * geo.filters)
    if to_plain is None:
        return [Call(needed.primitive, [*ends, total])]
    return [Call(needed.primitive, [*ends, Place(SCRATCH)]), Call(to_plain, [Place(SCRATCH), total])]


def _calls_for_channels(
    dnnl: Library, form: Form, geo: Geometry, part: _Part, needed: _Convolution, rectified: bool
) -> list[Call]:
    """A part that makes some of the channels, or the gradient of some of the filters.

    The library is slow on images that are not contiguous, so that these are copied. Those of one pixel are contiguous.
    """
    first = 4 * part.made.start
    of_images = form == "images"
    batch, height, width, channels = geo.images_shape if of_images else geo.outputs_shape
    count = part.made.stop - part.made.start
    some = images_layout(dnnl, batch, height, width, count)
    within = images_layout(dnnl, batch, height, width, count, channels)
    if form == "filters":
        to_some = reorder(dnnl, within, some)
        gradient = Place(1, first) if to_some is None else Place(MORE_SCRATCH)
        taken = Place(2, first) if needed.reorder is None else Place(SCRATCH)
        return [
            *([] if to_some is None else [Call(to_some, [Place(1, first), gradient])]),
            Call(needed.primitive, [Place(0), gradient, taken]),
            *([] if needed.reorder is None else [Call(needed.reorder, [taken, Place(2, first)])]),
        ]
    from_some = reorder(dnnl, some, within)
    biases = [Place(1, first)] if form == "biased" else []
    result = 1 + len(biases)
    filters = Place(result + 1, first * (geo.filters if of_images else 1))
    taken = filters if needed.reorder is None else Place(SCRATCH)
    elements = prod(part.geo.outputs_shape) if rectified else 0
    made = Place(result, first) if from_some is None else Place(MORE_SCRATCH)
    return [
        *([] if needed.reorder is None else [Call(needed.reorder, [filters, taken])]),
        Call(needed.primitive, [Place(0), taken, *biases, made], elements),
        *([] if from_some is None else [Call(from_some, [made, Place(result, first)])]),
    ]


@lru_cache(maxsize=1024)
def _is_summed_in_layout(geo: Geometry) -> bool:
    """Whether all parts of a filters' gradient are in one layout of the library, in which they are added."""
    dnnl = library()
    assert dnnl is not None
    needed = [_needed("filters", each, geo) for each in _sizes_of(_parts("filters", geo))]
    return all(dnnl.are_equal(each.taken, needed[0].taken) for each in needed)


def _sizes_of(parts: Sequence[_Part]) -> list[Geometry]:
    return list(dict.fromkeys(part.geo for part in parts))


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
    count = even(count)
    height = geo.height
    see_pixels = height.before < height.extent and (height.steps - 1) * height.stride - height.before < height.size
    if count <= geo.batch or form == "images" or not see_pixels:
        whole = slice(0, geo.height.steps)
        return [_part(geo, images, whole) for images in _blocks(geo.batch, count)]
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
    count = even(min(_MOST_SUMS, channels // _CHANNELS_PER_PART, int(work / _PART_FLOPS)))
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
    return _Convolution(primitive, plain, taken, reorder(dnnl, *ends), dnnl.size(taken))


@lru_cache(maxsize=1024)
def _copies(form: Form, geo: Geometry) -> PrimitiveBatch | None:
    """Copies filters as `_Convolution.reorder` does, some of them at a time where that is worth it."""
    dnnl, needed = library(), _needed(form, geo, geo)
    assert dnnl is not None
    if needed.reorder is None:
        return None
    ends = (needed.taken, needed.plain) if form == "filters" else (needed.plain, needed.taken)
    groups = [] if geo.groups == 1 else [geo.groups]
    sizes = *groups, geo.filters // geo.groups, geo.channels // geo.groups, geo.height.window, geo.width.window
    count = min(_MOST_SUMS, sizes[0] // _REORDER_GRAIN, 4 * prod(sizes) // _REORDER_BYTES)
    calls: list[list[Call]] = []
    try:
        for blocks in cut(sizes[0] // _REORDER_GRAIN, count) if count > 1 else ():
            first = blocks.start * _REORDER_GRAIN
            last = sizes[0] if len(calls) == count - 1 else blocks.stop * _REORDER_GRAIN
            place = [last - first, *sizes[1:]], [first] + [0] * (len(sizes) - 1)
            some = reorder(dnnl, *(dnnl.part_of(layout, *place) for layout in ends))
            assert some is not None  # the layouts differ
            calls.append([Call(some, [Place(0), Place(1)])])
    except Unsupported:
        calls = []
    return PrimitiveBatch(dnnl, calls or [[Call(needed.reorder, [Place(0), Place(1)])]], 2)
