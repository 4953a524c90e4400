"""The operation types of a graph, as meta graphs list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tfray.errors import NotFoundError
from tfray.exchange.op_table import TensorFlowArg, TensorFlowOp, operation_type
from tfray.formats.graph_proto import GraphDef, NodeDef, OpArg, OpAttr, OpDef, OpList
from tfray.formats.stand_in import with_marks
from tfray.framework.dtypes import as_dtype


def stripped_op_list_for_graph(graph_def: GraphDef) -> OpList:
    """The types of a graph's operations, and of those of the functions that it calls, in the order of their names.

    Args:
        graph_def: The graph.

    Returns:
        Their names, inputs, outputs, and the names and types of their attributes.

    Raises:
        NotFoundError: TensorFlow has no such type, and the graph no such function.
    """
    used = _types_of(graph_def)
    for name in used:
        if operation_type(name) is None:
            raise NotFoundError(f"Op type not registered {name!r}")
    return op_list(graph_def)


def op_list(graph_def: GraphDef) -> OpList:
    """As `stripped_op_list_for_graph`, without types that TensorFlow does not have."""
    found = ((name, operation_type(name)) for name in _types_of(graph_def))
    return OpList(op=[_message(name, definition) for name, definition in found if definition is not None])


def _types_of(graph_def: GraphDef) -> list[str]:
    graph = with_marks(graph_def)
    functions = {function.signature.name: function for function in graph.library.function}
    waiting = list(dict.fromkeys(_named_by(graph.node)))
    used = set(waiting)
    for name in waiting:  # it grows while it is walked
        new = dict.fromkeys(_named_by(functions[name].node_def)).keys() - used if name in functions else set()
        used |= new
        waiting += new
    return sorted(used - functions.keys())


def _named_by(nodes: Iterable[NodeDef]) -> Iterator[str]:
    """The types of nodes, and the functions that they call."""
    for node in nodes:
        yield node.op
        for value in node.attr.values():
            if value.WhichOneof("value") == "func":
                yield value.func.name
            elif value.WhichOneof("value") == "list":
                yield from (function.name for function in value.list.func)


def _message(name: str, definition: TensorFlowOp) -> OpDef:
    return OpDef(
        name=name,
        input_arg=[_argument(arg, definition) for arg in definition.inputs],
        output_arg=[_argument(arg, definition) for arg in definition.outputs],
        attr=[OpAttr(name=attr.name, type=attr.type) for attr in definition.attrs.values()],
        is_stateful=definition.is_stateful,
    )


def _argument(arg: TensorFlowArg, definition: TensorFlowOp) -> OpArg:
    made = OpArg(name=arg.name, number_attr=arg.number, type_list_attr=arg.types, is_ref=arg.is_ref)
    if arg.type in definition.attrs:
        made.type_attr = arg.type
    elif arg.type:
        made.type = as_dtype(arg.type).as_datatype_enum
    return made
