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
"""Operations that count one for each element of the result."""

_PER_INPUT: Final = frozenset(
    {
        *("Sum", "Mean", "Max", "Min", "Prod", "Any", "All", "ArgMax", "ArgMin", "L2Loss", "AddN"),
        *("BiasAddGrad", "_GatedBiasAddGrad"),
    }
)
"""Operations that count one for each element of the input, which they reduce."""

_SOFTMAX: Final = {"Softmax": 5, "LogSoftmax": 5, "SoftmaxCrossEntropyWithLogits": 5}
"""Operations that count this many for each element of the first input."""


def float_operations(op: Operation, unknown: int | None = None) -> int | None:
    """How many floating-point operations a run of `op` takes; None where its kind or its shapes do not tell.

    Args:
        op: The operation.
        unknown: Size to assume for unknown dimensions; None to leave them unknown.
    """
    if op.type in ("MatMul", "_MatMulPart", "BatchMatMul"):
        return _of_product(op, unknown)
    if op.type in ("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative", "Conv3D"):
        return _of_convolution(op, op.inputs[1], op.outputs[0], unknown)
    if op.type in ("Conv2DBackpropInput", "Conv2DBackpropFilter"):
        filters = op.inputs[1] if op.type == "Conv2DBackpropInput" else op.outputs[0]
        return _of_convolution(op, filters, op.inputs[2], unknown)
    if op.type in _PER_OUTPUT and op.outputs and op.outputs[0].dtype.is_floating:
        return elements(op.outputs[0], unknown)
    if op.type in _PER_INPUT and op.inputs[0].dtype.is_floating:
        return elements(op.inputs[0], unknown)
    if op.type in _SOFTMAX:
        size = elements(op.inputs[0], unknown)
        return None if size is None else _SOFTMAX[op.type] * size
    return None


def elements(tensor: Tensor, unknown: int | None = None) -> int | None:
    """How many elements a tensor has; see `float_operations`. An unknown rank stays unknown."""
    sizes = _sizes(tensor, unknown)
    return None if sizes is None else math.prod(sizes)


def _sizes(tensor: Tensor, unknown: int | None) -> list[int] | None:
    if tensor.shape.rank is None:
        return None
    sizes = [unknown if size is None else size for size in tensor.shape.sizes]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None


def _of_product(op: Operation, unknown: int | None) -> int | None:
    size, left = elements(op.outputs[0], unknown), _sizes(op.inputs[0], unknown)
    if size is None or not left:
        return None
    return 2 * size * left[-2 if op.attrs.get("transpose_a") or op.attrs.get("adj_x") else -1]


def _of_convolution(op: Operation, filters: Tensor, result: Tensor, unknown: int | None) -> int | None:
    size, weights = elements(result, unknown), _sizes(filters, unknown)
    if size is None or weights is None:
        return None
    *window, depth, _ = weights
    each = math.prod(window) * (1 if op.type == "DepthwiseConv2dNative" else depth)
    return 2 * size * each


def total_float_operations(graph: Graph) -> int:
    """The sum over all operations of a graph whose kinds and shapes tell."""
    return sum(float_operations(op) or 0 for op in graph.get_operations())
