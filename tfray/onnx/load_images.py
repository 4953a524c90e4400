"""How images of ONNX, with channels first, are resized and cut into blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Tensor
from tfray.onnx.onnx_node import Node, loads
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.math import math_ops


@loads("DepthToSpace", "SpaceToDepth")
def _blocks(node: Node) -> Tensor:
    x, block = node.input(0), node.attr("blocksize")
    columns_first = node.attr("mode", "DCR") == "CRD"
    sizes = array_ops.shape(x)
    n, c, h, w = (sizes[axis] for axis in range(4))
    if node.operator == "SpaceToDepth":
        parts = array_ops.reshape(x, array_ops.stack([n, c, h // block, block, w // block, block]))
        order, shape = [0, 3, 5, 1, 2, 4], [n, c * block**2, h // block, w // block]
    elif columns_first:
        parts = array_ops.reshape(x, array_ops.stack([n, c // block**2, block, block, h, w]))
        order, shape = [0, 1, 4, 2, 5, 3], [n, c // block**2, h * block, w * block]
    else:
        parts = array_ops.reshape(x, array_ops.stack([n, block, block, c // block**2, h, w]))
        order, shape = [0, 3, 4, 1, 5, 2], [n, c // block**2, h * block, w * block]
    return array_ops.reshape(array_ops.transpose(parts, order), array_ops.stack(shape))


def _pytorch_position(i: Tensor, scale: Any, there: Tensor, size: Tensor) -> Tensor:
    return where_v2(i * 0 + array_ops.cast(size, dtypes.float32) > 1, (i + 0.5) / scale - 0.5, i * 0)


def _aligned_position(i: Tensor, scale: Any, there: Tensor, size: Tensor) -> Tensor:
    return i * (there - 1) / math_ops.maximum(array_ops.cast(size, dtypes.float32) - 1, 1.0)


_POSITIONS: Final[dict[str, Callable[..., Tensor]]] = {
    "half_pixel": lambda i, scale, there, size: (i + 0.5) / scale - 0.5,
    "pytorch_half_pixel": _pytorch_position,
    "align_corners": _aligned_position,
    "asymmetric": lambda i, scale, there, size: i / scale,
}
"""Where the elements of a resized axis lie in the given one, of their indices, the scale, and both sizes."""

_ROUNDED: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "round_prefer_floor": lambda x: math_ops.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: math_ops.floor(x + 0.5),
    "floor": math_ops.floor,
    "ceil": math_ops.ceil,
}


@loads("Resize", "Upsample")
def _resize(node: Node) -> Tensor:
    x, rank = node.input(0), node.rank(node.input(0))
    modern = node.operator == "Resize" and node.version >= 11
    scales = node.arg("scales")
    sizes = node.optional(3) if modern else None
    node.require(antialias=0, keep_aspect_ratio_policy="stretch")
    if node.attr("mode") not in ("nearest", "linear", "cubic"):
        raise node.refuse(f"mode={node.attr('mode')!r}")
    position = node.attr("coordinate_transformation_mode") if modern else "asymmetric"
    if position not in _POSITIONS:
        raise node.refuse(f"coordinate_transformation_mode={position!r}")
    rounding = node.attr("nearest_mode") if modern else "floor"
    axes = [axis % rank for axis in node.attr("axes") or range(rank)]
    if isinstance(scales, Tensor) and scales.shape.num_elements() == 0:
        scales = None
    if isinstance(scales, Tensor):
        scales = node.value(scales, "scales")
    given = None if scales is None else np.asarray(scales)
    wanted = None if sizes is None else constant_value(sizes)
    for place, axis in enumerate(axes):
        if given is not None and given[place] == 1:
            continue
        if wanted is not None and x.shape.sizes[axis] == wanted[place]:
            continue
        if given is None and wanted is None and x.shape.sizes[axis] is None and axis < 2:
            continue  # batch and channels stay
        there = array_ops.shape(x)[axis]
        before = array_ops.cast(there, dtypes.float32)
        if given is not None:
            size = array_ops.cast(math_ops.floor(before * float(given[place])), dtypes.int32)
            scale: Any = float(given[place])
        else:
            assert sizes is not None
            size = array_ops.cast(sizes[place], dtypes.int32)
            scale = array_ops.cast(size, dtypes.float32) / before
        index = array_ops.cast(array_ops.range(size), dtypes.float32)
        at = _POSITIONS[position](index, scale, before, size)
        x = _resampled(node, x, axis, at, there, rounding)
    return x


def _resampled(node: Node, x: Tensor, axis: int, at: Tensor, size: Tensor, rounding: str) -> Tensor:
    """A tensor at fractional places of an axis."""

    def taken(places: Tensor) -> Tensor:
        inside = math_ops.minimum(math_ops.maximum(array_ops.cast(places, dtypes.int32), 0), size - 1)
        return array_ops.gather(x, inside, axis=axis)

    mode, rank = node.attr("mode"), node.rank(x)
    if mode == "nearest":
        return taken(_ROUNDED[rounding](at))
    first = math_ops.floor(at)
    rest = at - first
    if mode == "linear":
        weights = [1 - rest, rest]
        places = [first, first + 1]
    else:
        a = node.attr("cubic_coeff_a")
        places = [first - 1, first, first + 1, first + 2]
        weights = [
            _cubic(rest + 1, a, True),
            _cubic(rest, a, False),
            _cubic(1 - rest, a, False),
            _cubic(2 - rest, a, True),
        ]
        if node.attr("exclude_outside"):
            last = array_ops.cast(size - 1, dtypes.float32)
            weights = [
                where_v2(math_ops.logical_or(place < 0, place > last), w * 0, w)
                for place, w in zip(places, weights, strict=True)
            ]
            total = math_ops.add_n(weights)
            weights = [w / total for w in weights]
    shape = [-1 if each == axis else 1 for each in range(rank)]
    parts = [
        taken(place) * array_ops.cast(array_ops.reshape(w, shape), x.dtype)
        for place, w in zip(places, weights, strict=True)
    ]
    return math_ops.add_n(parts)


def _cubic(distance: Tensor, a: float, far: bool) -> Tensor:
    if far:
        return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return ((a + 2) * distance - (a + 3)) * distance * distance + 1
