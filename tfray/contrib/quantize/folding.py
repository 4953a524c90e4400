"""Batch normalization folded into the weights of the layer before it, as it is when a network is deployed.

A layer's weights are multiplied by ``gamma / sigma``. In training sigma is that of the moving averages, which changes
slowly, so that weights can be quantized behind that product; the layer's output is then corrected to what the moments
of the batch would give.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tfray.framework import dtypes
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables.initializers import zeros_initializer
from tfray.library.variables.variable_scope import get_variable
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.ops.nn.normalization_ops import moments

LAYERS: Final = ("Conv2D", "DepthwiseConv2dNative", "MatMul")
"""Types of operations that have weights."""

_NORMALIZATIONS: Final = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


def reroute(old: Tensor, new: Tensor, consumers: Iterable[Operation]) -> int:
    """Let operations take a tensor in place of another one; how many inputs changed."""
    changes = [(op, index) for op in consumers for index, tensor in enumerate(op.inputs) if tensor is old]
    for op, index in changes:
        op._update_input(index, new)
    return len(changes)


def step_reached(delay: int) -> Tensor:
    """Whether the graph has run so often, a scalar; it counts by a variable ``fake_quantization_step``."""
    graph, name = get_default_graph(), "fake_quantization_step"
    try:
        step = graph.get_tensor_by_name(f"{name}/Identity:0")
    except KeyError:
        with graph.name_scope(None):
            counter = get_variable(
                name, [], dtypes.int64, zeros_initializer(), trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES]
            )
        with graph.name_scope(f"{name}/"):
            step = array_ops.identity(counter.assign_add(1), name="Identity")
    return step >= delay


class _Match(NamedTuple):
    """A layer, the normalization behind it, and the tensor that it ends with."""

    layer: Operation
    norm: Operation
    output: Tensor


def fold_batch_norms(graph: Graph, freeze_delay: int | None) -> None:
    """Fold the batch normalizations of a graph.

    Args:
        graph: The graph, which is changed.
        freeze_delay: After so many steps the moving averages stay as they are and count in place of the batch's; never
            when None.
    """
    for op in graph.get_operations():
        match = _matched(op) if op.type in _NORMALIZATIONS else None
        if match:
            consumers = match.output.consumers()
            place = match.layer.name.rpartition("/")[0]
            with graph.name_scope(f"{place}/" if place else None):
                reroute(match.output, _folded(graph, match, freeze_delay), consumers)


def _matched(norm: Operation) -> _Match | None:
    if norm.attrs.get("data_format", "NHWC") != "NHWC":
        return None
    layer, output = norm.inputs[0].op, norm.outputs[0]
    while layer.type in ("Identity", "Reshape"):
        layer = layer.inputs[0].op
    if layer.type not in LAYERS:
        return None
    if layer.type == "MatMul":
        shaped = [op for op in output.consumers() if op.type == "Reshape"]
        if not shaped or layer.attrs.get("transpose_b"):
            return None
        output = shaped[0].outputs[0]
    return _Match(layer, norm, output) if output.consumers() else None


def _moving(norm: Operation, index: int) -> tuple[Tensor, Operation] | None:
    """The moving average of an output of a normalization, and the product by which it is updated."""
    for op in norm.outputs[index].consumers():
        if op.type == "Sub" and op.inputs[1] is norm.outputs[index]:
            for product in op.outputs[0].consumers():
                if product.type == "Mul":
                    return op.inputs[0], product
    return None


def _folded(graph: Graph, match: _Match, freeze_delay: int | None) -> Tensor:
    layer, norm, _ = match
    data, weights = layer.inputs[:2]
    gamma, beta, mean, variance = norm.inputs[1:5]
    epsilon = float(norm.attrs["epsilon"])
    is_training = bool(norm.attrs["is_training"])
    corrections = None
    with graph.name_scope("BatchNorm_Fold"):
        if is_training:
            output = layer.outputs[0]
            # Moments of their own: an operation's gradient need not hold for those that it gives besides.
            mean, variance = moments(output, list(range((output.shape.rank or 4) - 1)))
        scale = gamma * math_ops.rsqrt(variance + epsilon)
        bias = math_ops.subtract(beta, mean * scale, name="bias")
        if is_training:
            corrections = _corrections(norm, gamma, mean, variance, epsilon, freeze_delay)
        if corrections:
            scale = array_ops.identity(corrections[0] * scale)
        if layer.type == "DepthwiseConv2dNative":
            scale = array_ops.reshape(scale, array_ops.shape(weights)[2:], name="scale_reshape")
    scaled = math_ops.multiply(weights, scale, name="mul_fold")
    made = graph.add_operation(
        layer.type, [data, scaled], dict(layer.attrs), f"{layer.name.rpartition('/')[2]}_Fold", device=layer.device
    ).outputs[0]
    if corrections:
        made = math_ops.multiply(corrections[1], made, name="post_conv_mul")
        made = math_ops.add(made, corrections[2], name="correction_add")
    return math_ops.add(made, bias, name="add_fold")


def _corrections(
    norm: Operation, gamma: Tensor, mean: Tensor, variance: Tensor, epsilon: float, freeze_delay: int | None
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Factors of the weights and of the output, and what is added to it; None without moving averages.

    Until the averages are frozen the output is that of the batch's moments, then that of the averages.
    """
    found = _moving(norm, 1), _moving(norm, 2)
    if found[0] is None or found[1] is None:
        return None
    (moving_mean, mean_update), (moving_variance, variance_update) = found[0], found[1]
    own, moving = math_ops.rsqrt(variance + epsilon), math_ops.rsqrt(moving_variance + epsilon)
    factor = moving / own
    back, added = own / moving, gamma * (mean * own - moving_mean * moving)
    if freeze_delay is None:
        return factor, back, array_ops.zeros_like(added)
    is_frozen = step_reached(freeze_delay)
    for update in (mean_update, variance_update):
        share = array_ops.cast(math_ops.logical_not(is_frozen), update.inputs[1].dtype)
        reroute(update.inputs[1], update.inputs[1] * share, [update])
    back = cond(is_frozen, lambda: array_ops.ones_like(back), lambda: back)
    added = cond(is_frozen, lambda: added, lambda: array_ops.zeros_like(added))
    return factor, back, added
