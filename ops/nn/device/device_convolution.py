"""Convolutions by cuDNN: the three forms of `convolution.py`, on a GPU.

Which of cuDNN's engines computes a form is measured when it first runs on a kind of GPU. The choice is kept on disk:
later processes compute with the same engine, and get the same bits.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.ops.kernels.compiling import keep_text, kept_text
from tfray.ops.kernels.copies import written
from tfray.ops.kernels.gpu.cudnn import (
    CROSS_CORRELATION,
    DATA_TYPES,
    FLOAT,
    Descriptor,
    Library,
    Plan,
    Unsupported,
    is_aligned,
    library,
    packed_strides,
    plans,
    tensor,
)
from tfray.ops.kernels.gpu.device_copies import copy, write_transposed
from tfray.ops.kernels.gpu.device_products import is_tf32_allowed
from tfray.ops.kernels.windows import Axis, as_nhwc
from tfray.ops.nn.conv_geometry import Geometry

Form = Literal["forward", "images", "filters"]
"""What is computed: the outputs; the gradient of the images, or that of the filters."""

_X, _W, _Y = 1, 2, 3
"""Numbers of the tensors: images, filters and outputs, or their gradients."""

_MOST_WORKSPACE: Final = 1 << 30
"""Bytes that an engine may take beside its arrays."""

_CANDIDATES: Final = 6
"""Engines that are measured. cuDNN names the likely best first."""

_RUNS: Final = 4
"""Times that each is run to measure it."""


class _Problem(NamedTuple):
    """A form of a convolution, as cuDNN is asked for it.

    Attributes:
        form: The form.
        geo: Its sizes.
        dtype: Name of the dtype of all three arrays.
        exact: Whether float32 must not be rounded before it is multiplied.
        device: The current device.
    """

    form: Form
    geo: Geometry
    dtype: str
    exact: bool
    device: int


def can_convolve(xp: ArrayModule, form: Form, geo: Geometry, *arrays: Array) -> bool:
    """Whether cuDNN computes this form of a convolution of these arrays."""
    if xp is np or geo.is_empty or geo.groups != 1 or library() is None:
        return False
    dtype = arrays[0].dtype
    if dtype.name not in DATA_TYPES or any(array.dtype != dtype for array in arrays):
        return False
    return bool(_candidates(xp, _problem(xp, form, geo, dtype)))


def convolve(xp: ArrayModule, images: Array, filters: Array, geo: Geometry, out: Array) -> Array:
    """See `convolution.convolve`."""
    padded = _padded(geo)
    arrays = {_X: _widened(xp, images, geo, padded), _W: _turned(xp, filters, geo), _Y: _target(xp, out)}
    _plan(xp, _problem(xp, "forward", geo, images.dtype), arrays).run(xp, arrays)
    return written(arrays[_Y], out)


def convolve_backward_images(xp: ArrayModule, d_outputs: Array, filters: Array, geo: Geometry, out: Array) -> Array:
    """See `convolution.convolve_backward_images`."""
    padded = _padded(geo)
    is_wider = padded.images_shape != geo.images_shape
    target = xp.empty(padded.images_shape, out.dtype) if is_wider else _target(xp, out)
    arrays = {_X: target, _W: _turned(xp, filters, geo), _Y: _ready(xp, d_outputs)}
    _plan(xp, _problem(xp, "images", geo, out.dtype), arrays).run(xp, arrays)
    if is_wider:
        copy(as_nhwc(out, geo.layout), _own(target, geo, padded))
        return out
    return written(target, out)


def convolve_backward_filters(xp: ArrayModule, images: Array, d_outputs: Array, geo: Geometry, out: Array) -> Array:
    """See `convolution.convolve_backward_filters`."""
    padded = _padded(geo)
    order = _filters_order(geo)
    target = xp.empty([out.shape[axis] for axis in order], out.dtype)
    arrays = {_X: _widened(xp, images, geo, padded), _W: target, _Y: _ready(xp, d_outputs)}
    _plan(xp, _problem(xp, "filters", geo, out.dtype), arrays).run(xp, arrays)
    if geo.layout != "NHWC" or not write_transposed(xp, target.reshape(geo.filters, -1), out):
        out[...] = target.transpose([order.index(axis) for axis in range(4)])
    return out


# -- arrays as cuDNN takes them --------------------------------------------------------------------------


def _filters_order(geo: Geometry) -> tuple[int, ...]:
    """The axes of filters ``[height, width, channels, filters]``, in the order that suits the layout of the images."""
    return (3, 0, 1, 2) if geo.layout == "NHWC" else (3, 2, 0, 1)


def _turned(xp: ArrayModule, filters: Array, geo: Geometry) -> Array:
    if geo.layout == "NHWC":
        turned = xp.empty((geo.filters, *filters.shape[:3]), filters.dtype)
        if write_transposed(xp, filters.reshape(-1, geo.filters), turned):
            return turned
    return _ready(xp, filters.transpose(_filters_order(geo)))


def _ready(xp: ArrayModule, array: Array) -> Array:
    """The array, or a copy as plans take it."""
    array = xp.ascontiguousarray(array)
    return array if is_aligned(array) else array.copy()


def _target(xp: ArrayModule, out: Array) -> Array:
    return out if is_aligned(out) else xp.empty(out.shape, out.dtype)


def _padded(geo: Geometry) -> Geometry:
    """The same convolution of images with more rows and columns of zeros, whose padding is the same on each side.

    cuDNN's fast engines know no other padding.
    """
    return geo._replace(height=_padded_axis(geo.height), width=_padded_axis(geo.width))


def _padded_axis(axis: Axis) -> Axis:
    if (axis.size + 2 * axis.before - axis.extent) // axis.stride + 1 == axis.steps:
        return axis._replace(after=axis.before)
    after = max((axis.steps - 1) * axis.stride + axis.extent - axis.size - axis.before, 0)
    both = min(axis.before, after)
    return axis._replace(size=axis.size + axis.before + after - 2 * both, before=both, after=both)


def _own(images: Array, geo: Geometry, padded: Geometry) -> Array:
    """The part of the images of `padded`, in NHWC, that are those of `geo`."""
    first = [whole.before - part.before for whole, part in ((geo.height, padded.height), (geo.width, padded.width))]
    rows, columns = (
        slice(start, start + axis.size) for start, axis in zip(first, (geo.height, geo.width), strict=True)
    )
    return as_nhwc(images, geo.layout)[:, rows, columns]


def _widened(xp: ArrayModule, images: Array, geo: Geometry, padded: Geometry) -> Array:
    """The images with the rows and columns that `padded` has more."""
    if padded.images_shape == geo.images_shape:
        return _ready(xp, images)
    wide = xp.zeros(padded.images_shape, images.dtype)
    copy(_own(wide, geo, padded), as_nhwc(images, geo.layout))
    return wide


# -- plans -----------------------------------------------------------------------------------------------


def _problem(xp: ArrayModule, form: Form, geo: Geometry, dtype: NumpyDType) -> _Problem:
    exact = dtype == np.float32 and not is_tf32_allowed()
    return _Problem(form, geo, dtype.name, exact, int(xp.cuda.runtime.getDevice()))


_found: Final[dict[_Problem, list[Plan]]] = {}
_chosen: Final[dict[_Problem, Plan]] = {}


def _candidates(xp: ArrayModule, problem: _Problem) -> list[Plan]:
    """The plans that are worth measuring; none where cuDNN has no way."""
    if problem not in _found:
        cudnn = library()
        assert cudnn is not None
        try:
            operation = _operation(cudnn, problem)
            likely = plans(cudnn, xp, operation, exact=problem.exact, most_bytes=_MOST_WORKSPACE)
            _found[problem] = list(islice(likely, _CANDIDATES))
        except Unsupported:
            _found[problem] = []
    return _found[problem]


def _plan(xp: ArrayModule, problem: _Problem, arrays: dict[int, Array]) -> Plan:
    """The plan for a problem; the first time, it is chosen by running the candidates on these arrays."""
    if problem not in _chosen:
        candidates = _candidates(xp, problem)
        name = _name(xp, problem)
        kept = kept_text(name) or ""
        if not kept.isdecimal() or int(kept) >= len(candidates):
            taken = [_duration_s(xp, plan, arrays) for plan in candidates] if len(candidates) > 1 else [0.0]
            kept = str(taken.index(min(taken)))
            keep_text(name, kept)
        _chosen[problem] = candidates[int(kept)]
        _found[problem] = [_chosen[problem]]
    return _chosen[problem]


def _name(xp: ArrayModule, problem: _Problem) -> str:
    """The name under which the choice is kept: another GPU, or version of cuDNN, makes another choice."""
    cudnn = library()
    assert cudnn is not None
    properties = xp.cuda.runtime.getDeviceProperties(problem.device)
    kind = properties["name"], properties["major"], properties["minor"], properties["multiProcessorCount"]
    text = repr((problem._replace(device=0), kind, cudnn.version, _CANDIDATES))
    return f"convolution-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _duration_s(xp: ArrayModule, plan: Plan, arrays: dict[int, Array]) -> float:
    stream = xp.cuda.get_current_stream()
    plan.run(xp, arrays)
    stream.synchronize()
    begun = time.perf_counter()
    for _ in range(_RUNS):
        plan.run(xp, arrays)
    stream.synchronize()
    return time.perf_counter() - begun


def _operation(cudnn: Library, problem: _Problem) -> Descriptor:
    geo, dtype = _padded(problem.geo), np.dtype(problem.dtype)
    axes = geo.height, geo.width
    convolution = Descriptor(
        cudnn,
        "convolution",
        comp_type=FLOAT,
        conv_mode=CROSS_CORRELATION,
        spatial_dims=len(axes),
        dilations=[axis.dilation for axis in axes],
        filter_strides=[axis.stride for axis in axes],
        pre_paddings=[axis.before for axis in axes],
        post_paddings=[axis.before for axis in axes],
    )
    windows = [axis.window for axis in axes]
    x = _tensor(cudnn, _X, dtype, geo, (geo.batch, geo.channels, geo.height.size, geo.width.size))
    w = _tensor(cudnn, _W, dtype, geo, (geo.filters, geo.channels, *windows))
    y = _tensor(cudnn, _Y, dtype, geo, (geo.batch, geo.filters, geo.height.steps, geo.width.steps))
    both: dict[str, Any] = {"conv_desc": convolution, "alpha": 1.0, "beta": 0.0}
    if problem.form == "forward":
        return Descriptor(cudnn, "convolution_forward", **both, x=x, w=w, y=y)
    if problem.form == "images":
        return Descriptor(cudnn, "convolution_bwd_data", **both, dx=x, w=w, dy=y)
    return Descriptor(cudnn, "convolution_bwd_filter", **both, x=x, dw=w, dy=y)


def _tensor(cudnn: Library, number: int, dtype: NumpyDType, geo: Geometry, sizes: Sequence[int]) -> Descriptor:
    """A tensor of sizes in cuDNN's order, that of NCHW, which lies in memory in the order of the layout."""
    if geo.layout == "NCHW":
        return tensor(cudnn, number, dtype, sizes, packed_strides(sizes))
    count, channels, height, width = sizes
    by_row, by_column, by_pixel = packed_strides((count, height, width, channels))[:3]
    return tensor(cudnn, number, dtype, sizes, (by_row, 1, by_column, by_pixel))
