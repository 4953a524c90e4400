"""Floating-point operations of a graph, counted from static shapes as TensorFlow's profiler counts them."""

from __future__ import annotations

import math
from typing import Final

from tfray.framework.graph import Graph, Operation, Tensor

_PER_OUTPUT: Final = frozenset(
    {
        *("Add", "AddV2", "BiasAdd", "Sub", "Mul", "Div", "RealDiv", "Maximum", "Minimum", "Pow", "SquaredDifference"),
        *("Neg", "Reciprocal", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid"),
        *("Relu", "ReluGrad", "Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"),
    }
)
"""One for each element of the result."""

_PER_INPUT: Final = frozenset(
    {"Sum", "Mean", "Max", "Min", "Prod", "Any", "All", "ArgMax", "ArgMin", "L2Loss", "BiasAddGrad", "AddN"}
)
"""One for each element of what is reduced."""

_SOFTMAX: Final = {"Softmax": 5, "LogSoftmax": 5, "SoftmaxCrossEntropyWithLogits": 5}
"""Several for each element of the first input."""


def float_operations(op: Operation) -> int | None:
    """How many floating-point operations a run of `op` takes; None where its kind or its shapes do not tell."""
    if op.type in ("MatMul", "BatchMatMul"):
        return _of_product(op)
    if op.type in ("Conv2D", "DepthwiseConv2dNative", "Conv3D"):
        return _of_convolution(op, op.inputs[1], op.outputs[0])
    if op.type in ("Conv2DBackpropInput", "Conv2DBackpropFilter"):
        filters = op.inputs[1] if op.type == "Conv2DBackpropInput" else op.outputs[0]
        return _of_convolution(op, filters, op.inputs[2])
    if op.type in _PER_OUTPUT and op.outputs and op.outputs[0].dtype.is_floating:
        return _size(op.outputs[0])
    if op.type in _PER_INPUT and op.inputs[0].dtype.is_floating:
        return _size(op.inputs[0])
    if op.type in _SOFTMAX:
        size = _size(op.inputs[0])
        return None if size is None else _SOFTMAX[op.type] * size
    return None


def _size(tensor: Tensor) -> int | None:
    sizes = tensor.shape.sizes
    return None if sizes is None or any(size is None for size in sizes) else math.prod(size or 0 for size in sizes)


def _of_product(op: Operation) -> int | None:
    size, left = _size(op.outputs[0]), op.inputs[0].shape.sizes
    if size is None or not left:
        return None
    inner = left[-2 if op.attrs.get("transpose_a") or op.attrs.get("adj_x") else -1]
    return None if inner is None else 2 * size * inner


def _of_convolution(op: Operation, filters: Tensor, result: Tensor) -> int | None:
    size, weights = _size(result), filters.shape.sizes
    if size is None or weights is None or None in weights:
        return None
    *window, depth, _ = [weight or 0 for weight in weights]
    each = math.prod(window) * (1 if op.type == "DepthwiseConv2dNative" else depth)
    return 2 * size * each


def total_float_operations(graph: Graph) -> int:
    """The sum over all operations of a graph whose kinds and shapes tell."""
    return sum(float_operations(op) or 0 for op in graph.get_operations())
