"""Pooling by oneDNN, for float32 images in NHWC; see `pooling.py` for NumPy's way."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Final, Literal, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.addresses import address_of
from tfray.ops.kernels.compiling import can_compile
from tfray.ops.kernels.copies import written
from tfray.ops.kernels.native.onednn import (
    FORWARD,
    Primitive,
    Sizes,
    Unsupported,
    images_layout,
    library,
)
from tfray.ops.kernels.native.primitive_batches import MORE_SCRATCH, SCRATCH, Call, Place, PrimitiveBatch
from tfray.ops.kernels.tiles import cut, even
from tfray.ops.nn.pooling import Pooling

_PART_BYTES: Final = 3 << 19
"""Least memory of a part: about a sixth of a millisecond on one core."""

_PART_PIXELS: Final = 1 << 19
"""Least pixels that the windows of a part look at, each as often as windows see it: about as long."""

_MOST_PARTS: Final = 64
"""More parts than most machines have cores only cost time."""

_WORKSPACE: Final = 135
"""The query for the memory in which max pooling notes where each maximum was."""

Kind = Literal["max", "mean"]

_ALGORITHMS: Final = {"max": 511, "mean": 1023}
"""``dnnl_pooling_max`` and ``dnnl_pooling_avg_exclude_padding``."""


class _Primitives(NamedTuple):
    """How to pool images of one size.

    Attributes:
        forward: Takes the addresses of images, outputs and workspace; no workspace for means.
        backward: Takes those of the outputs' gradient, workspace and the images' gradient.
        outputs_bytes: Size of the outputs.
        workspace_bytes: Size of the workspace; 0 for means.
    """

    forward: Primitive
    backward: Primitive
    outputs_bytes: int
    workspace_bytes: int


def can_pool(xp: ArrayModule, kind: Kind, pool: Pooling, *arrays: Array) -> bool:
    """Whether oneDNN pools these arrays."""
    if xp is not np or pool.layout != "NHWC" or any(array.dtype != np.float32 for array in arrays):
        return False
    return _is_possible(kind, pool)


@lru_cache(maxsize=1024)
def _is_possible(kind: Kind, pool: Pooling) -> bool:
    if library() is None or not can_compile() or not prod(pool.images_shape) or not prod(pool.outputs_shape):
        return False
    sizes = {part.stop - part.start for part in _parts(pool)}
    return all(_primitives(kind, pool._replace(batch=size)) is not None for size in sizes)


@lru_cache(maxsize=1024)
def can_note(pool: Pooling) -> bool:
    """Whether a byte for each output is what oneDNN notes of where its maximum was; `can_pool` holds."""
    parts = [_needed("max", pool._replace(batch=part.stop - part.start)) for part in _parts(pool)]
    return all(part.workspace_bytes * 4 == part.outputs_bytes for part in parts)


def pooled(kind: Kind, images: Array, pool: Pooling, out: Array, places: Array | None = None) -> Array:
    """Fill `out` with the maximum or the mean of every window; pixels in the padding do not count.

    Args:
        kind: What to compute.
        images: The images.
        pool: Sizes.
        out: Where to write.
        places: A byte for each output, to note where its maximum was; see `can_note`.
    """
    images, target = map(np.ascontiguousarray, (images, out))
    noted = [] if places is None else [places]
    _batch("forward", kind, pool, bool(noted)).run(*map(address_of, (images, target, *noted)))
    return written(target, out)


def pooled_backward(
    kind: Kind, images: Array, d_outputs: Array, pool: Pooling, out: Array, places: Array | None = None
) -> Array:
    """Fill `out` with the gradient of the images. That of a maximum flows to the first of the greatest pixels.

    Args:
        kind: What was computed.
        images: The images; not read for means, nor with `places`.
        d_outputs: Gradient of the outputs.
        pool: Sizes.
        out: Where to write.
        places: What `pooled` has noted.
    """
    d_outputs, target = map(np.ascontiguousarray, (d_outputs, out))
    known = np.ascontiguousarray(images) if places is None else places
    _batch("backward", kind, pool, places is not None).run(*map(address_of, (d_outputs, target, known)))
    return written(target, out)


@lru_cache(maxsize=1024)
def _batch(direction: Literal["forward", "backward"], kind: Kind, pool: Pooling, is_noted: bool) -> PrimitiveBatch:
    """All parts. Forward it takes images and outputs, backward the gradients of outputs and images.

    A third array is where maxima were, where that is noted; else, backward, the images, in which they are found again.
    """
    dnnl = library()
    assert dnnl is not None  # `can_pool` has asked
    image, output = (prod(shape[1:]) for shape in (pool.images_shape, pool.outputs_shape))
    items = []
    scratch_bytes = 0, 0
    for part in _parts(pool):
        needed = _needed(kind, pool._replace(batch=part.stop - part.start))
        of_images, of_outputs = 4 * part.start * image, 4 * part.start * output
        noted = Place(2, part.start * output) if is_noted else Place(SCRATCH)
        workspace = [noted] if needed.workspace_bytes else []
        calls = [Call(needed.forward, [Place(0, of_images), Place(1, of_outputs), *workspace])]
        if direction == "backward":
            calls = [Call(needed.backward, [Place(0, of_outputs), *workspace, Place(1, of_images)])]
            if workspace and not is_noted:
                calls.insert(0, Call(needed.forward, [Place(2, of_images), Place(MORE_SCRATCH), *workspace]))
        items.append(calls)
        if not is_noted:
            again = needed.outputs_bytes if len(calls) > 1 else 0
            scratch_bytes = max(scratch_bytes[0], needed.workspace_bytes), max(scratch_bytes[1], again)
    return PrimitiveBatch(dnnl, items, 2 if direction == "forward" and not is_noted else 3, scratch_bytes)


@lru_cache(maxsize=1024)
def _parts(pool: Pooling) -> list[slice]:
    """The images of each part."""
    size_bytes = 4 * (prod(pool.images_shape) + prod(pool.outputs_shape))
    looked_at = prod(pool.outputs_shape) * pool.height.window * pool.width.window
    count = max(size_bytes // _PART_BYTES, looked_at // _PART_PIXELS)
    return cut(pool.batch, even(min(pool.batch, _MOST_PARTS, count)))


def _needed(kind: Kind, pool: Pooling) -> _Primitives:
    primitives = _primitives(kind, pool)
    assert primitives is not None  # `can_pool` has asked
    return primitives


@lru_cache(maxsize=1024)
def _primitives(kind: Kind, pool: Pooling) -> _Primitives | None:
    """How to pool; None where oneDNN is not there, or has no way."""
    dnnl = library()
    if dnnl is None:
        return None
    axes = pool.height, pool.width
    images = images_layout(dnnl, pool.batch, pool.height.size, pool.width.size, pool.channels)
    outputs = images_layout(dnnl, pool.batch, pool.height.steps, pool.width.steps, pool.channels)
    sizes = (
        Sizes(*(axis.stride for axis in axes)),
        Sizes(*(axis.window for axis in axes)),
        Sizes(*(axis.dilation - 1 for axis in axes)),
        Sizes(*(axis.before for axis in axes)),
        Sizes(*((axis.steps - 1) * axis.stride + axis.extent - axis.size - axis.before for axis in axes)),
    )
    algorithm = _ALGORITHMS[kind]
    workspace = [(64, _WORKSPACE)] if kind == "max" else []
    try:
        forward = Primitive(
            dnnl,
            "pooling_forward",
            (dnnl.engine, FORWARD, algorithm, images, outputs, *sizes),
            [(1, images), (17, outputs), *workspace],
        )
        backward = Primitive(
            dnnl,
            "pooling_backward",
            (dnnl.engine, algorithm, images, outputs, *sizes, forward.description),
            [(145, outputs), *workspace, (129, images)],
        )
    except Unsupported:
        return None
    return _Primitives(forward, backward, dnnl.size(outputs), dnnl.size(forward.layouts[-1]) if workspace else 0)
