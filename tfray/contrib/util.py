"""``tf.contrib.util``: conversion between arrays and `TensorProto`, values of constant tensors, types of operations."""

from tfray.errors import NotFoundError
from tfray.exchange.op_table import TensorFlowArg, TensorFlowOp, operation_type
from tfray.formats.graph_proto import GraphDef, OpArg, OpAttr, OpDef, OpList
from tfray.formats.stand_in import with_marks
from tfray.formats.tensor_proto import make_ndarray, make_tensor_proto
from tfray.framework.constant_value import constant_value
from tfray.framework.dtypes import as_dtype

__all__ = ["constant_value", "make_ndarray", "make_tensor_proto", "stripped_op_list_for_graph"]


def stripped_op_list_for_graph(graph_def: GraphDef) -> OpList:
    """The types of a graph's operations, and of those of the functions that it calls, in the order of their names.

    Args:
        graph_def: The graph.

    Returns:
        Their names, inputs, outputs, and the names and types of their attributes.

    Raises:
        NotFoundError: TensorFlow has no such type, and the graph no such function.
    """
    graph = with_marks(graph_def)
    functions = {function.signature.name: function for function in graph.library.function}
    used = dict.fromkeys(node.op for node in graph.node)
    waiting = list(used)
    for name in waiting:  # it grows while it is walked
        for node in functions[name].node_def if name in functions else ():
            if node.op not in used:
                used[node.op] = None
                waiting.append(node.op)
    return OpList(op=[_message(name) for name in sorted(used.keys() - functions.keys())])


def _message(name: str) -> OpDef:
    definition = operation_type(name)
    if definition is None:
        raise NotFoundError(f"Op type not registered {name!r}")
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
