"""``tf.contrib.copy_graph``: operations and variables of one graph, copied into another one under their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.traversal import predecessors, reachable_backward, topological_order
from tfray.library.variables.variables import Variable
from tfray.session import Session

__all__ = ["copy_op_to_graph", "copy_variable_to_graph", "get_copied_op"]


def _scoped(scope: str, name: str) -> str:
    return f"{scope}/{name}" if scope else name


def _add_to_collections(original: Any, copy: Any, graph: Graph, scope: str) -> None:
    for name in original.graph.get_all_collection_keys():
        if any(each is original for each in original.graph.get_collection(name)):
            graph.add_to_collection(_scoped(scope, name), copy)


def copy_variable_to_graph(org_instance: Variable, to_graph: Graph, scope: str = "") -> Variable:
    """Make a variable of another graph's name, dtype and initial value, which is computed now.

    Args:
        org_instance: The variable.
        to_graph: The graph to have the copy.
        scope: What its name, and those of collections that are not TensorFlow's for variables, begin with.

    Returns:
        The copy.

    Raises:
        TypeError: `org_instance` is no variable.
    """
    if not isinstance(org_instance, Variable):
        raise TypeError(f"{org_instance!r} is not a Variable")
    origin = org_instance.graph
    with Session(graph=origin) as session:
        value = session.run(org_instance.initial_value)
    kept = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES)
    of = [name for name in origin.get_all_collection_keys() if org_instance in origin.get_collection(name)]
    collections = [name if name in kept else _scoped(scope, name) for name in of]
    with to_graph.as_default():
        return Variable(
            value,
            trainable=GraphKeys.TRAINABLE_VARIABLES in of,
            collections=collections,
            name=_scoped(scope, org_instance.op.name),
        )


def copy_op_to_graph(
    org_instance: Operation | Tensor, to_graph: Graph, variables: Iterable[Variable], scope: str = ""
) -> Operation | Tensor:
    """Copy an operation, or the one that makes a tensor, and those that it needs and that are not there yet.

    Args:
        org_instance: The operation or tensor.
        to_graph: The graph to have the copies.
        variables: Copies of the variables that it needs, as `copy_variable_to_graph` returns them.
        scope: What the names of copies, and of their collections, begin with.

    Returns:
        The copy of the operation or tensor.

    Raises:
        TypeError: `org_instance` is something else.
        KeyError: A variable that it needs has no copy.
    """
    if not isinstance(org_instance, Operation | Tensor):
        raise TypeError(f"Could not copy instance: {org_instance!r}")
    there = {variable.op.name for variable in variables}
    last = org_instance.op if isinstance(org_instance, Tensor) else org_instance

    def needed(op: Operation) -> list[Operation]:
        return [] if _scoped(scope, op.name) in to_graph else predecessors(op)

    with to_graph.as_default(), to_graph.name_scope(None), to_graph.control_dependencies(None):
        for op in topological_order(reachable_backward([last], needed)):
            name = _scoped(scope, op.name)
            if name in to_graph:
                continue
            if op.type == "Variable":
                raise KeyError(f"variable {op.name!r} is needed, and not among the copies: {', '.join(sorted(there))}")
            inputs = [to_graph.get_tensor_by_name(_scoped(scope, tensor.name)) for tensor in op.inputs]
            controls = [to_graph.get_operation_by_name(_scoped(scope, each.name)) for each in op.control_inputs]
            attrs = {key: value for key, value in op.attrs.items() if key != "_class"}
            made = to_graph.add_operation(op.type, inputs, attrs, name, control_inputs=controls, device=op.device)
            for original, copy in zip((op, *op.outputs), (made, *made.outputs), strict=True):
                _add_to_collections(original, copy, to_graph, scope)
    return get_copied_op(org_instance, to_graph, scope)


def get_copied_op(org_instance: Any, graph: Graph, scope: str = "") -> Any:
    """The copy of an operation, tensor or variable's tensor.

    Args:
        org_instance: The original.
        graph: The graph that has the copy.
        scope: The scope that was given to copy it.

    Returns:
        The operation or tensor.

    Raises:
        KeyError: There is none.
    """
    return graph.as_graph_element(_scoped(scope, org_instance.name), allow_tensor=True, allow_operation=True)
