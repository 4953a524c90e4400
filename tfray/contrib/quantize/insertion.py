"""Fake quantization put behind the weights, activations and sums of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tfray.contrib.quantize.folding import LAYERS, reroute, step_reached
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables.initializers import constant_initializer
from tfray.library.variables.moving_average import assign_moving_average
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.ops.quantized.fake_quantization_ops import fake_quant_with_min_max_vars

_ACTIVATIONS: Final = ("Relu", "Relu6", "Identity")
_RECTIFIERS: Final = ("Relu", "Relu6")
_SUMS: Final = ("Add", "AddV2")
_READS: Final = ("ReadVariableOp",)
_TRANSPARENT: Final = ("Reshape", "Identity", "BatchToSpaceND", "SpaceToBatchND", "MaxPool", "Max")
_DECAY: Final = 0.999


@dataclass(frozen=True)
class Quantizer:
    """Puts fake quantization into a graph.

    Args:
        is_training: Whether ranges follow the values that are seen.
        weight_bits: So many bits a weight has.
        activation_bits: So many bits an activation has.
        symmetric: Whether ranges are the same on both sides of 0.
        delay: Quantize after so many steps; at once when None.
        scope: Leave what is elsewhere as it is.
    """

    is_training: bool
    weight_bits: int = 8
    activation_bits: int = 8
    symmetric: bool = False
    delay: int | None = None
    scope: str | None = None

    def quantize(self, graph: Graph) -> None:
        """Quantize all layers of a graph, then other sums and products of quantized values."""
        done: set[Operation] = set()
        for layer in [_layer_of(op) for op in graph.get_operations() if op.type in LAYERS]:
            if layer:
                self._quantize_layer(layer, done)
        for op in graph.get_operations():
            if _is_of_quantized(op, done):
                self._insert(f"{op.name}/activation_{op.type}_quant", op, producer=op)

    def _quantize_layer(self, layer: _Layer, done: set[Operation]) -> None:
        context = layer.op.name.rpartition("/")[0]
        around = context.rpartition("/")[0] if layer.bypass else context
        consumers = layer.weights.consumers()
        self._insert(_join(context, "weights_quant"), layer.weights.op, weights=True, consumers=consumers)
        self._insert(_join(around, "act_quant"), layer.activation, init_min=0.0, producer=layer.activation)
        done.add(layer.activation)
        if layer.bypass and layer.bias:
            for name, op in (("conv_quant", layer.bias), ("add_quant", layer.bypass)):
                # What a rectifier follows becomes one with it when the network is deployed.
                if op is layer.bias or not _consumers(op, _ACTIVATIONS):
                    own = context if op is layer.bias else around
                    self._insert(_join(own, name), op, producer=op, consumers=op.outputs[0].consumers())
                    done.add(op)
        if layer.after and not _consumers(layer.after, _RECTIFIERS):
            place = _join(layer.after.name.rpartition("/")[0], "post_activation_bypass_quant")
            self._insert(place, layer.after, producer=layer.after)
        if layer.after:
            done.add(layer.after)

    def _insert(
        self,
        name: str,
        op: Operation,
        weights: bool = False,
        init_min: float = -6.0,
        producer: Operation | None = None,
        consumers: Sequence[Operation] = (),
    ) -> None:
        """Put a quantization behind an operation, unless it is out of scope or has one."""
        inside = [each for each in (producer, *consumers) if each is not None]
        values = op.outputs[0]
        if self.scope and not all(each.name.startswith(f"{self.scope.rstrip('/')}/") for each in inside):
            return
        if _is_followed_by_quantization(values):
            return
        takers = values.consumers()
        quantized = self._quantized(name, values, weights, init_min)
        if self.delay:
            plain, active = quantized, step_reached(self.delay)
            quantized = cond(active, lambda: plain, lambda: values, name=f"{name}/delayed_quant")
        reroute(values, quantized, takers)

    def _quantized(self, name: str, values: Tensor, weights: bool, init_min: float) -> Tensor:
        bits = self.weight_bits if weights else self.activation_bits
        with variable_scope(None, name):
            ends = [
                get_variable(
                    each,
                    [],
                    initializer=constant_initializer(start),
                    trainable=False,
                    collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES],
                )
                for each, start in (("min", init_min), ("max", 6.0))
            ]
            if not self.is_training:
                return fake_quant_with_min_max_vars(values, ends[0], ends[1], bits, weights)
            seen = self._range(values, bits, weights)
            kept = [
                array_ops.stop_gradient(end.assign(value) if weights else assign_moving_average(end, value, _DECAY))
                for end, value in zip(ends, seen, strict=True)
            ]
            return fake_quant_with_min_max_vars(values, kept[0], kept[1], bits, weights)

    def _range(self, values: Tensor, bits: int, narrow: bool) -> tuple[Tensor, Tensor]:
        """The least and the largest value; 0 is always between them."""
        least, largest = math_ops.reduce_min(values), math_ops.reduce_max(values)
        if not self.symmetric:
            return math_ops.minimum(least, 0.0), math_ops.maximum(largest, 0.0)
        # Of the whole numbers with so many bits, there is one more below 0 than above.
        ratio = -1.0 if narrow else -((1 << bits) - 2) / (1 << bits)
        return math_ops.minimum(least, largest / ratio), math_ops.maximum(largest, least * ratio)


@dataclass(frozen=True)
class _Layer:
    """An operation with weights, and what belongs to it.

    Attributes:
        op: The operation.
        weights: Its weights.
        activation: What ends the layer.
        bias: The sum with the bias.
        bypass: The sum with another layer's output, before the activation.
        after: Such a sum behind the activation.
    """

    op: Operation
    weights: Tensor
    activation: Operation
    bias: Operation | None = None
    bypass: Operation | None = None
    after: Operation | None = None


def _layer_of(op: Operation) -> _Layer | None:
    weights = next((each for each in reversed(op.inputs[:2]) if _is_weight(each.op)), None)
    if weights is None:
        return None
    folded = _chain(op, ("Mul",), _SUMS, _SUMS)
    # What follows a layer is told apart by its types alone, as a network is deployed by them.
    bias = folded or next(iter(_consumers(op, ("BiasAdd", *_SUMS))), None)
    end = bias or op
    for bypass in [None, *(_consumers(bias, _SUMS) if bias else [])]:
        for activation in _consumers(bypass or end, _ACTIVATIONS):
            if not _feeds_normalization(activation):
                after = next(iter(_consumers(activation, _SUMS)), None)
                return _Layer(op, weights, activation, bias, bypass, after)
    if bias is not None:
        return _Layer(op, weights, bias)
    return _Layer(op, weights, op) if _consumers(op, LAYERS) else None


def _is_weight(op: Operation) -> bool:
    while op.type == "Identity":
        op = op.inputs[0].op
    return op.type in (*_READS, "Mul") or (op.type == "ConcatV2" and _is_weight(op.inputs[0].op))


def _consumers(op: Operation, types: Iterable[str]) -> list[Operation]:
    return [each for each in op.outputs[0].consumers() if each.type in types]


def _chain(op: Operation, *types: Iterable[str]) -> Operation | None:
    """The last of operations that follow one another, of these types."""
    for each in types:
        found = _consumers(op, each)
        if not found:
            return None
        op = found[0]
    return op


def _feeds_normalization(op: Operation) -> bool:
    consumers = op.outputs[0].consumers()
    return op.type == "Identity" and len(consumers) == 1 and consumers[0].type.startswith("FusedBatchNorm")


def _join(context: str, name: str) -> str:
    return f"{context}/{name}" if context else name


def _is_followed_by_quantization(values: Tensor) -> bool:
    waiting = values.consumers()
    while waiting:
        op = waiting.pop()
        if op.type.startswith("FakeQuantWithMinMax"):
            return True
        if op.type in ("Reshape", "Identity"):
            waiting += op.outputs[0].consumers()
    return False


def _is_of_quantized(op: Operation, done: set[Operation]) -> bool:
    """Whether a sum or product is of quantized values, maybe by way of others, and no rectifier alone follows it."""
    if op in done or op.type not in (*_SUMS, "Mul"):
        return False
    consumers = op.outputs[0].consumers()
    if len(consumers) == 1 and consumers[0].type in _RECTIFIERS:
        return False
    for each in op.inputs:
        source = each.op
        while source.type in _TRANSPARENT:
            source = source.inputs[0].op
        if source.type == "FakeQuantWithMinMaxVars" or "delayed_quant" in source.name:
            return True
        if source.type in (*_SUMS, "Mul") and any(_is_of_quantized(inner.op, done) for inner in source.inputs):
            return True
    return False
