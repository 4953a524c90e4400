"""How convolutions, pooling and normalization of ONNX become operations of tfray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Tensor
from tfray.onnx.onnx_node import Node, loads, number
from tfray.ops.arrays import array_ops
from tfray.ops.kernels.windows import window_axis
from tfray.ops.math import math_ops
from tfray.ops.nn import (
    any_rank_conv_ops,
    batch_norm_ops,
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
            for each in (self.strides, self.dilations, self.kernel, self.extents):
                each.insert(0, 1)
            self.pads.insert(0, [0, 0])
            self.extra.insert(0, 0)

    def _same_pads(self, node: Node, sizes: Sequence[int | None], lower: bool) -> list[int]:
        """The padding on both sides of all axes: 0 where it depends on a size that is not known."""
        before, after = [], []
        for size, stride, extent in zip(sizes, self.strides, self.extents, strict=True):
            is_open = size is None and stride > 1
            if is_open and lower:
                raise node.refuse("SAME_LOWER and sizes that are not known")
            axis = window_axis(extent if size is None else size, extent, stride, 1, "SAME")
            before.append(0 if is_open else axis.before)
            after.append(0 if is_open else axis.after)
        return after + before if lower else before + after

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
        amounts = zip(self.pads, self.extra, strict=True)
        return [[0, 0], [0, 0], *([before, after + more * with_extra] for (before, after), more in amounts)]

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
        made = [depthwise_conv_ops.depthwise_conv2d_native(x, multiplied, square, padding, layout, dilations)]
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
    for images, part in _grouped(x, filters, groups):
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
    if window.is_same and not node.attr("count_include_pad", 0):
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
        return batch_norm_ops.fused_batch_norm(x, scale, offset, mean, variance, **options)[0]
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


@loads("LayerNormalization")
def _layer_norm(node: Node) -> list[Tensor]:
    x, offset = node.input(0), node.optional(2)
    rank = node.rank(x)
    made, mean, inverse = _standardized(x, range(node.attr("axis") % rank, rank), node.attr("epsilon"))
    made = made * node.input(1)
    return [made if offset is None else made + offset, mean, inverse]


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
