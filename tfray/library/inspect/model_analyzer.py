"""Lists of the operations and variables of a graph, with their sizes. Public as ``tf.contrib.slim.model_analyzer``."""

from __future__ import annotations

from collections.abc import Iterable

from tfray.framework.graph import Graph, Tensor
from tfray.library.variables.variables import Variable

__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]


def tensor_description(var: Tensor | Variable) -> str:
    """Dtype and shape of a tensor or variable, such as ``(float32 1x8x8x1024)``."""
    return f"({var.dtype.name} {'x'.join(str(size) for size in var.get_shape())})"


def analyze_ops(graph: Graph, print_info: bool = False) -> int:
    """Count the elements of the results of all operations of a graph. Results of unknown size do not count.

    Args:
        graph: The graph.
        print_info: Whether to print each operation and its results.

    Returns:
        How many elements there are.
    """
    if print_info:
        print("---------\nOperations: name -> (type shapes) [size]\n---------")
    total = 0
    for op in graph.get_operations():
        size = sum(tensor.get_shape().num_elements() or 0 for tensor in op.outputs)
        shapes = ", ".join(f"{tensor.dtype.name} {tensor.get_shape()}" for tensor in op.outputs)
        if print_info:
            print(f"{op.name} -> ({op.type} {shapes}) [{size}]")
        total += size
    return total


def analyze_vars(variables: Iterable[Variable], print_info: bool = False) -> tuple[int, int]:
    """Count the elements of variables, and their bytes.

    Args:
        variables: The variables.
        print_info: Whether to print each variable.

    Returns:
        How many elements there are, and how many bytes.
    """
    if print_info:
        print("---------\nVariables: name (type shape) [size]\n---------")
    elements, size_bytes = 0, 0
    for variable in variables:
        count = variable.get_shape().num_elements() or 0
        own_bytes = count * variable.dtype.size
        elements, size_bytes = elements + count, size_bytes + own_bytes
        if print_info:
            print(f"{variable.name} {tensor_description(variable)} [{count}, bytes: {own_bytes}]")
    if print_info:
        print(f"Total size of variables: {elements}\nTotal bytes of variables: {size_bytes}")
    return elements, size_bytes
