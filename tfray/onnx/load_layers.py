"""How convolutions, pooling, normalization, resizing and recurrent layers of ONNX become operations of tfray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Tensor
from tfray.onnx.load_flow import run_loop
from tfray.onnx.onnx_node import Node, loads, number
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.math import math_ops
from tfray.ops.nn import (
    activation_ops,
    any_rank_conv_ops,
    conv3d_ops,
    conv_ops,
    depthwise_conv_ops,
    normalization_ops,
    pooling_ops,
)

_LAYOUTS: Final = {2: "NCHW", 3: "NCDHW"}

# -- windows -------------------------------------------------------------------------------------------


class _Window:
    """The windows of a node: sizes, steps and padding, for each spatial axis.

    A sequence counts as images of height 1.

    Args:
        node: The node.
        kernel: Sizes of a window.
        sizes: Sizes of what is padded, None where they are not known.
    """

    def __init__(self, node: Node, kernel: Sequence[int], sizes: Sequence[int | None]) -> None:
        count = len(kernel)
        self.strides, self.dilations = (list(node.attr(name) or [1] * count) for name in ("strides", "dilations"))
        self.kernel = list(kernel)
        pads = list(node.attr("pads") or [0] * (2 * count))
        if not len(self.strides) == len(self.dilations) == len(pads) / 2 == count:
            raise ValueError("its attributes are for another number of axes")
        auto = node.attr("auto_pad")
        self.extents = [(size - 1) * step + 1 for size, step in zip(kernel, self.dilations, strict=True)]
        self.is_same = auto == "SAME_UPPER"
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            pads = self._same_pads(node, sizes, auto == "SAME_LOWER")
        self.pads = [[before, after] for before, after in zip(pads[:count], pads[count:], strict=True)]
        if node.attr("ceil_mode", 0):
            self.extra = [self._missing(node, axis, size) for axis, size in enumerate(sizes)]
        else:
            self.extra = [0] * count
        if count == 1:
            for each, one in (
                (self.strides, 1),
                (self.dilations, 1),
                (self.kernel, 1),
                (self.extents, 1),
                (self.extra, 0),
            ):
                each.insert(0, one)
            self.pads.insert(0, [0, 0])

    def _same_pads(self, node: Node, sizes: Sequence[int | None], lower: bool) -> list[int]:
        before, after = [], []
        for size, stride, extent in zip(sizes, self.strides, self.extents, strict=True):
            if size is None and stride > 1:
                if lower:
                    raise node.refuse("SAME_LOWER and sizes that are not known")
                before.append(0)  # tfray's SAME is taken instead
                after.append(0)
                continue
            total = extent - 1 if size is None else max(0, ((size - 1) // stride) * stride + extent - size)
            before.append(total - total // 2 if lower else total // 2)
            after.append(total // 2 if lower else total - total // 2)
        return before + after

    def _missing(self, node: Node, axis: int, size: int | None) -> int:
        """The padding with which the windows of a size that is rounded up fit."""
        if size is None:
            raise node.refuse("ceil_mode and sizes that are not known")
        padded, stride = size + sum(self.pads[axis]), self.strides[axis]
        steps = -(-(padded - self.extents[axis]) // stride) + 1
        if (steps - 1) * stride >= size + self.pads[axis][0]:
            steps -= 1  # a window may not begin in the padding behind
        return max(0, (steps - 1) * stride + self.extents[axis] - padded)

    def padding(self, with_extra: bool = True) -> list[list[int]]:
        """The padding of all axes."""
        extra = self.extra if with_extra else [0] * len(self.extra)
        return [
            [0, 0],
            [0, 0],
            *([before, after + more] for (before, after), more in zip(self.pads, extra, strict=True)),
        ]

    @property
    def is_padded(self) -> bool:
        """Whether anything is padded."""
        return any(map(any, self.padding()))


def _window_of(node: Node, kernel: Sequence[int]) -> _Window:
    shape = node.input(0).shape
    sizes = [None] * len(kernel) if shape.rank is None else list(shape.sizes[2:])
    if len(sizes) != len(kernel) or not 1 <= len(kernel) <= 3:
        raise ValueError(f"windows of {len(kernel)} axes for a tensor of shape {shape}")
    return _Window(node, kernel, sizes)


def _images(x: Tensor, count: int) -> Tensor:
    """Sequences as images of height 1; anything else as it is."""
    return array_ops.expand_dims(x, 2) if count == 1 else x


def _of_images(x: Tensor, count: int) -> Tensor:
    return array_ops.squeeze(x, [2]) if count == 1 else x


def _all_axes(values: Sequence[int]) -> list[int]:
    return [1, 1, *values]


def _filters(node: Node, tensor: Tensor, order: Sequence[int]) -> Tensor:
    """Weights with spatial axes first, then the first two in some order."""
    weights = _images(tensor, node.rank(tensor) - 2)
    known = constant_value(weights) if tensor.op.type != "Const" else tensor.op.attrs["value"]
    if known is not None:
        known = known[:, :, None] if known.ndim == 3 else known
        return number(np.ascontiguousarray(known.transpose(*range(2, known.ndim), *order)), tensor)
    rank = node.rank(weights)
    return array_ops.transpose(weights, [*range(2, rank), *order])


def _weights(node: Node) -> tuple[Tensor, list[int]]:
    weights = node.input(1)
    if not weights.shape.is_fully_defined():
        raise node.refuse("weights of unknown shape")
    return weights, [size for size in weights.shape.sizes if size is not None]


@loads("Conv")
def _conv(node: Node) -> Tensor:
    weights, shape = _weights(node)
    count, groups = len(shape) - 2, node.attr("group")
    window, x = _window_of(node, shape[2:]), _images(node.input(0), count)
    wide = count == 3
    layout = _LAYOUTS[3 if wide else 2]
    unknown_same = window.is_same and None in x.shape.sizes[2:] and max(window.strides) > 1
    padding: Any = "SAME" if unknown_same else window.padding() if window.is_padded else "VALID"
    filters = _filters(node, weights, (1, 0))
    strides, dilations = _all_axes(window.strides), _all_axes(window.dilations)
    if wide:
        if not isinstance(padding, str):
            x, padding = array_ops.pad(x, padding), "VALID"
        parts = _grouped(x, filters, groups)
        made = [conv3d_ops.conv3d(a, b, strides, padding, layout, dilations) for a, b in parts]
    elif groups > 1 and shape[1] == 1 and len(set(window.strides[-count:])) == 1 == len(set(window.dilations)):
        square = [1, 1, window.strides[-1], window.strides[-1]]
        multiplied = array_ops.reshape(filters, [*window.kernel, groups, shape[0] // groups])
        made = [depthwise_conv_ops.depthwise_conv2d_native(x, multiplied, square, padding, layout)]
    else:
        parts = _grouped(x, filters, groups)
        made = [conv_ops.conv2d(a, b, strides, padding, data_format=layout, dilations=dilations) for a, b in parts]
    return _biased(node, _of_images(made[0] if len(made) == 1 else array_ops.concat(made, 1), count))


def _grouped(x: Tensor, filters: Tensor, groups: int) -> list[tuple[Tensor, Tensor]]:
    if groups == 1:
        return [(x, filters)]
    return list(zip(array_ops.split(x, groups, 1), array_ops.split(filters, groups, -1), strict=True))


def _biased(node: Node, x: Tensor) -> Tensor:
    bias = node.optional(2)
    return x if bias is None else x + _per_channel(bias, node.rank(x))


def _per_channel(vector: Tensor, rank: int) -> Tensor:
    """A vector along the second axis of a tensor of some rank."""
    return array_ops.reshape(vector, [-1, *[1] * (rank - 2)])


@loads("ConvTranspose")
def _conv_transpose(node: Node) -> Tensor:
    weights, shape = _weights(node)
    count, groups = len(shape) - 2, node.attr("group")
    x = _images(node.input(0), count)
    extra, wanted = list(node.attr("output_padding") or [0] * count), node.attr("output_shape")
    auto = node.attr("auto_pad")
    window = _Window(node, shape[2:], [1] * count)
    pad = 1 if count == 1 else 0
    extra, sizes = [0] * pad + extra, array_ops.shape(x)
    results: list[Any] = []
    for axis, (stride, extent) in enumerate(zip(window.strides, window.extents, strict=True)):
        size = x.shape.sizes[2 + axis] if x.shape.rank is not None else None
        full = ((sizes[2 + axis] if size is None else size) - 1) * stride + extent + extra[axis]
        if wanted is not None and axis >= pad:
            target = wanted[axis - pad]
        elif auto.startswith("SAME") and axis >= pad:
            target = (sizes[2 + axis] if size is None else size) * stride
        else:
            results.append(full - sum(window.pads[axis]))
            continue
        if size is None:
            raise node.refuse("a fixed shape of the result and sizes that are not known")
        total = max(0, full - target)
        window.pads[axis] = (
            [total - total // 2, total // 2] if auto == "SAME_LOWER" else [total // 2, total - total // 2]
        )
        results.append(target)
    filters = _filters(node, weights, (1, 0))
    strides, dilations = _all_axes(window.strides), _all_axes(window.dilations)
    made = []
    parts = [(x, filters)] if groups == 1 else list(
        zip(array_ops.split(x, groups, 1), array_ops.split(filters, groups, -1), strict=True))  # fmt: skip
    for images, part in parts:
        target = array_ops.stack([sizes[0], shape[1], *results])
        if count == 3:
            # What would be cut off is computed first.
            whole = [size + sum(pads) for size, pads in zip(results, window.pads, strict=True)]
            target = array_ops.stack([sizes[0], shape[1], *whole])
            full = conv3d_ops.conv3d_transpose(images, part, target, strides, "VALID", "NCDHW", dilations=dilations)
            cut = [slice(before, None if not after else -after) for before, after in window.pads]
            made.append(full[(slice(None), slice(None), *cut)])
        else:
            pads, layout = window.padding(), "NCHW"
            made.append(
                conv_ops.conv2d_backprop_input(
                    target, part, images, strides, pads, data_format=layout, dilations=dilations
                )
            )
    return _biased(node, _of_images(made[0] if len(made) == 1 else array_ops.concat(made, 1), count))


def _pooled(kind: str, x: Tensor, window: _Window, padding: str = "VALID") -> Tensor:
    ksize, strides = _all_axes(window.kernel), _all_axes(window.strides)
    functions: dict[tuple[str, int], Callable[..., Tensor]] = {
        ("MaxPool", 2): pooling_ops.max_pool,
        ("MaxPool", 3): any_rank_conv_ops.max_pool3d,
        ("AveragePool", 2): pooling_ops.avg_pool,
        ("AveragePool", 3): any_rank_conv_ops.avg_pool3d,
    }
    count = len(window.kernel)
    return functions[kind, count](x, ksize, strides, padding, _LAYOUTS[count])


@loads("MaxPool", "AveragePool")
def _pool(node: Node) -> Tensor:
    kernel = node.attr("kernel_shape")
    window, x = _window_of(node, kernel), _images(node.input(0), len(kernel))
    if any(dilation != 1 for dilation in window.dilations):
        raise node.refuse("dilations")
    if window.is_same:
        made = _pooled(node.operator, x, window, "SAME")
    elif not window.is_padded:
        made = _pooled(node.operator, x, window)
    elif node.operator == "MaxPool":
        made = _pooled("MaxPool", array_ops.pad(x, window.padding(), constant_values=x.dtype.min), window)
    else:
        # The mean over what counts: the sum over all, divided by the share of what counts.
        ones = array_ops.ones_like(x[:1, :1])
        inner = array_ops.pad(ones, window.padding(False), constant_values=node.attr("count_include_pad"))
        behind = [[0, 0], [0, 0], *([0, more] for more in window.extra)]
        share = _pooled("AveragePool", array_ops.pad(inner, behind), window)
        made = _pooled("AveragePool", array_ops.pad(x, window.padding()), window) / share
    return _of_images(made, len(kernel))


@loads("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(node: Node) -> Tensor:
    x = node.input(0)
    axes = list(range(2, node.rank(x)))
    if node.operator == "GlobalLpPool":
        node.require(p=2)
        return math_ops.sqrt(math_ops.reduce_sum(math_ops.square(x), axes, True))
    function = math_ops.reduce_mean if node.operator == "GlobalAveragePool" else math_ops.reduce_max
    return function(x, axes, True)


# -- normalization -------------------------------------------------------------------------------------


@loads("BatchNormalization")
def _batch_norm(node: Node) -> Tensor:
    node.require(training_mode=0)
    x, epsilon = node.input(0), node.attr("epsilon")
    scale, offset, mean, variance = (node.input(index) for index in range(1, 5))
    if x.shape.rank == 4 and x.dtype is dtypes.float32 and len({t.dtype for t in (x, scale, mean)}) == 1:
        options = {"epsilon": epsilon, "data_format": "NCHW", "is_training": False}
        return normalization_ops.fused_batch_norm(x, scale, offset, mean, variance, **options)[0]
    scale, offset, mean, variance = (_per_channel(each, node.rank(x)) for each in (scale, offset, mean, variance))
    return (x - mean) * math_ops.rsqrt(variance + number(epsilon, variance)) * scale + offset


def _standardized(x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    mean = math_ops.reduce_mean(x, list(axes), True)
    variance = math_ops.reduce_mean(math_ops.squared_difference(x, mean), list(axes), True)
    inverse = math_ops.rsqrt(variance + number(epsilon, x))
    return (x - mean) * inverse, mean, inverse


@loads("InstanceNormalization")
def _instance_norm(node: Node) -> Tensor:
    x, rank = node.input(0), node.rank(node.input(0))
    made, _, _ = _standardized(x, range(2, rank), node.attr("epsilon"))
    return made * _per_channel(node.input(1), rank) + _per_channel(node.input(2), rank)


@loads("GroupNormalization")
def _group_norm(node: Node) -> Tensor:
    x, groups = node.input(0), node.attr("num_groups")
    rank, sizes = node.rank(x), array_ops.shape(x)
    split = array_ops.reshape(x, array_ops.concat([[sizes[0], groups, -1], sizes[2:]], 0))
    made = array_ops.reshape(_standardized(split, range(2, rank + 1), node.attr("epsilon"))[0], sizes)
    scale, offset = node.input(1), node.input(2)
    if node.version < 21:  # one for each group
        scale, offset = (
            array_ops.reshape(array_ops.tile(each[:, None], [1, sizes[1] // groups]), [-1]) for each in (scale, offset)
        )
    made.set_shape(x.shape)
    return made * _per_channel(scale, rank) + _per_channel(offset, rank)


@loads("LayerNormalization")
def _layer_norm(node: Node) -> list[Tensor]:
    x, offset = node.input(0), node.optional(2)
    rank = node.rank(x)
    made, mean, inverse = _standardized(x, range(node.attr("axis") % rank, rank), node.attr("epsilon"))
    made = made * node.input(1)
    return [made if offset is None else made + offset, mean, inverse]


@loads("MeanVarianceNormalization")
def _mean_variance_norm(node: Node) -> Tensor:
    axes = node.attr("axes", [0, 2, 3])
    return _standardized(node.input(0), axes, 1e-9)[0]


@loads("LpNormalization")
def _lp_norm(node: Node) -> Tensor:
    x, axis = node.input(0), node.attr("axis")
    if node.attr("p") == 1:
        size = math_ops.reduce_sum(math_ops.abs(x), axis, True)
    else:
        size = math_ops.sqrt(math_ops.reduce_sum(math_ops.square(x), axis, True))
    return math_ops.div_no_nan(x, size)


@loads("LRN")
def _local_response(node: Node) -> Tensor:
    size = node.attr("size")
    if not size % 2 or node.rank(node.input(0)) != 4:
        raise node.refuse(f"size={size}, or other than images")
    options = {"depth_radius": size // 2, "bias": node.attr("bias"), "alpha": node.attr("alpha") / size}
    x = array_ops.transpose(node.input(0), [0, 2, 3, 1])
    made = normalization_ops.local_response_normalization(x, beta=node.attr("beta"), **options)
    return array_ops.transpose(made, [0, 3, 1, 2])


# -- images --------------------------------------------------------------------------------------------


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
    position = node.attr("coordinate_transformation_mode") if modern else "asymmetric"
    if position not in _POSITIONS:
        raise node.refuse(f"coordinate_transformation_mode={position!r}")
    rounding = node.attr("nearest_mode") if modern else "floor"
    axes = [axis % rank for axis in node.attr("axes") or range(rank)]
    if isinstance(scales, Tensor) and scales.shape.num_elements() == 0:
        scales = None
    given = (
        None if scales is None else np.asarray(node.value(scales, "scales") if isinstance(scales, Tensor) else scales)
    )
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


# -- recurrent layers ----------------------------------------------------------------------------------

_ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "Sigmoid": math_ops.sigmoid,
    "Tanh": math_ops.tanh,
    "Relu": activation_ops.relu,
}
_DEFAULTS: Final = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


@loads("RNN", "GRU", "LSTM")
def _recurrent(node: Node) -> list[Tensor]:
    kind, direction = node.operator, node.attr("direction")
    names = [name.decode() if isinstance(name, bytes) else name for name in node.attr("activations") or []]
    count = 2 if direction == "bidirectional" else 1
    names = names or _DEFAULTS[kind] * count
    if node.attr("clip") is not None or node.attr("input_forget", 0) or not set(names) <= set(_ACTIVATIONS):
        raise node.refuse("clip, input_forget, or other activations than Sigmoid, Tanh and Relu")
    if node.optional(7) is not None:
        raise node.refuse("peepholes")
    batch_first = node.attr("layout", 0)
    x = array_ops.transpose(node.input(0), [1, 0, 2]) if batch_first else node.input(0)
    parts = []
    for index in range(count):
        reverse = direction == "reverse" or index == 1
        functions = [_ACTIVATIONS[name] for name in names[index * len(_DEFAULTS[kind]) :]]
        parts.append(_one_direction(node, x, index, reverse, functions, bool(batch_first)))
    sequence = array_ops.stack([part[0] for part in parts], 1)
    states = [array_ops.stack(list(each), 0) for each in zip(*(part[1] for part in parts), strict=True)]
    if batch_first:
        sequence = array_ops.transpose(sequence, [2, 0, 1, 3])
        states = [array_ops.transpose(state, [1, 0, 2]) for state in states]
    return [sequence, *states]


def _one_direction(
    node: Node, x: Tensor, index: int, reverse: bool, functions: Sequence[Callable[[Tensor], Tensor]], batch_first: bool
) -> tuple[Tensor, list[Tensor]]:
    """The outputs of all steps and the last states, in one direction."""
    w, r, units = node.input(1)[index], node.input(2)[index], node.attr("hidden_size")
    bias, lengths = node.optional(3), node.optional(4)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[node.operator]
    zero = array_ops.zeros([2 * gates * units], x.dtype)
    both = zero if bias is None else bias[index]
    of_input, of_state = both[: gates * units], both[gates * units :]
    steps, batch = array_ops.shape(x)[0], array_ops.shape(x)[1]
    if reverse:
        x = (
            array_ops.reverse(x, [0])
            if lengths is None
            else array_ops.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)
        )
    flat = math_ops.matmul(array_ops.reshape(x, [-1, array_ops.shape(x)[2]]), w, transpose_b=True) + of_input
    projected = array_ops.reshape(flat, array_ops.stack([steps, batch, gates * units]))
    states = []
    for place in (5, 6)[: 2 if node.operator == "LSTM" else 1]:
        given = node.optional(place)
        if given is None:
            states.append(array_ops.zeros(array_ops.stack([batch, units]), x.dtype))
        else:
            states.append(given[:, index] if batch_first else given[index])
    cell = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}[node.operator]

    def body(turn: Tensor, *old: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        new = cell(node, projected[turn], old, r, of_state, functions)
        if lengths is None:
            return new, [new[0]]
        going = array_ops.expand_dims(turn < array_ops.cast(lengths, turn.dtype), 1)
        kept = [where_v2(going, a, b) for a, b in zip(new, old, strict=True)]
        return kept, [where_v2(going, new[0], array_ops.zeros_like(new[0]))]

    for state in states:
        state.set_shape([None, units])
    final, (outputs,) = run_loop(body, states, array_ops.cast(steps, dtypes.int64))
    if reverse:
        if lengths is None:
            outputs = array_ops.reverse(outputs, [0])
        else:
            outputs = array_ops.reverse_sequence(outputs, lengths, seq_axis=0, batch_axis=1)
    return outputs, final


def _rnn_step(node: Node, x: Tensor, old: Sequence[Tensor], r: Tensor, bias: Tensor, f: Sequence[Any]) -> list[Tensor]:
    return [f[0](x + math_ops.matmul(old[0], r, transpose_b=True) + bias)]


def _gru_step(node: Node, x: Tensor, old: Sequence[Tensor], r: Tensor, bias: Tensor, f: Sequence[Any]) -> list[Tensor]:
    units, h = node.attr("hidden_size"), old[0]
    gates = f[0](x[:, : 2 * units] + math_ops.matmul(h, r[: 2 * units], transpose_b=True) + bias[: 2 * units])
    z, reset = array_ops.split(gates, 2, 1)
    inner = h if node.attr("linear_before_reset") else reset * h
    candidate = math_ops.matmul(inner, r[2 * units :], transpose_b=True) + bias[2 * units :]
    candidate = f[1](x[:, 2 * units :] + (reset * candidate if node.attr("linear_before_reset") else candidate))
    return [(1 - z) * candidate + z * h]


def _lstm_step(node: Node, x: Tensor, old: Sequence[Tensor], r: Tensor, bias: Tensor, f: Sequence[Any]) -> list[Tensor]:
    h, c = old
    i, o, forget, new = array_ops.split(x + math_ops.matmul(h, r, transpose_b=True) + bias, 4, 1)
    c = f[0](forget) * c + f[0](i) * f[1](new)
    return [f[0](o) * f[2](c), c]
