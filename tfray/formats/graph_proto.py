"""TensorFlow's graphs as protocol buffers: nodes, attributes, functions, definitions of operation types.

`tfray.exchange` turns these messages into graphs and back.
"""

from __future__ import annotations

from typing import Final

from tfray.formats.message import Enumeration, Field, Message
from tfray.formats.tensor_proto import DATA_TYPE, DtypeAndShape, TensorProto, TensorShapeProto

PRODUCER: Final = 2119
"""The version of the form of graphs that is written: that of TensorFlow 2.21 and earlier ones."""


class AttrList(Message):
    """The values of an attribute that is a list, in the field for their kind."""

    FIELDS = (
        Field(2, "s", "bytes", repeated=True),
        Field(3, "i", "int64", repeated=True),
        Field(4, "f", "float", repeated=True),
        Field(5, "b", "bool", repeated=True),
        Field(6, "type", DATA_TYPE, repeated=True),
        Field(7, "shape", TensorShapeProto, repeated=True),
        Field(8, "tensor", TensorProto, repeated=True),
        Field(9, "func", "NameAttrList", repeated=True),
    )


class AttrValue(Message):
    """The value of an attribute, in the field for its kind."""

    FIELDS = (
        Field(1, "list", AttrList, oneof="value"),
        Field(2, "s", "bytes", oneof="value"),
        Field(3, "i", "int64", oneof="value"),
        Field(4, "f", "float", oneof="value"),
        Field(5, "b", "bool", oneof="value"),
        Field(6, "type", DATA_TYPE, oneof="value"),
        Field(7, "shape", TensorShapeProto, oneof="value"),
        Field(8, "tensor", TensorProto, oneof="value"),
        Field(9, "placeholder", "string", oneof="value"),
        Field(10, "func", "NameAttrList", oneof="value"),
    )

    ListValue = AttrList


class NameAttrList(Message):
    """A function, by ``name``, with values of its attributes in ``attr``."""

    FIELDS = (Field(1, "name", "string"), Field(2, "attr", AttrValue, key="string"))


_FULL_TYPES: Final = Enumeration(
    __name__,
    "FullTypeId",
    {
        f"TFT_{name}": number
        for start, names in (
            (0, "UNSET VAR ANY PRODUCT NAMED"),
            (20, "FOR_EACH"),
            (100, "CALLABLE"),
            (
                200,
                "BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 HALF FLOAT DOUBLE COMPLEX64 COMPLEX128 STRING",
            ),
            (215, "BFLOAT16"),
            (1000, "TENSOR ARRAY OPTIONAL LITERAL ENCODED SHAPE_TENSOR"),
            (10102, "DATASET RAGGED ITERATOR"),
            (10202, "MUTEX_LOCK LEGACY_VARIANT"),
        )
        for number, name in enumerate(names.split(), start)
    },
)


class FullTypeDef(Message):
    """The type of a value in TensorFlow 2's own language of types. tfray does not use it."""

    FIELDS = (
        Field(1, "type_id", _FULL_TYPES),
        Field(2, "args", "FullTypeDef", repeated=True),
        Field(3, "s", "string", oneof="attr"),
        Field(4, "i", "int64", oneof="attr"),
    )


class NodeOrigins(Message):
    """From which operations a node was made."""

    FIELDS = (
        Field(1, "original_node_names", "string", repeated=True),
        Field(2, "original_func_names", "string", repeated=True),
    )


class NodeDef(Message):
    """An operation: ``name``, ``op``, names of its inputs in ``input``, ``device``, and attributes in ``attr``."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "op", "string"),
        Field(3, "input", "string", repeated=True),
        Field(4, "device", "string"),
        Field(5, "attr", AttrValue, key="string"),
        Field(6, "experimental_debug_info", NodeOrigins),
        Field(7, "experimental_type", FullTypeDef),
    )

    ExperimentalDebugInfo = NodeOrigins


class VersionDef(Message):
    """The versions of the form of a graph."""

    FIELDS = (
        Field(1, "producer", "int32"),
        Field(2, "min_consumer", "int32"),
        Field(3, "bad_consumers", "int32", repeated=True),
    )


# -- definitions of operation types --------------------------------------------------------------------


class OpArg(Message):
    """An input or output: its ``type``, or the attribute that gives the type, the number or the list of types."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "description", "string"),
        Field(3, "type", DATA_TYPE),
        Field(4, "type_attr", "string"),
        Field(5, "number_attr", "string"),
        Field(6, "type_list_attr", "string"),
        Field(7, "handle_data", DtypeAndShape, repeated=True),
        Field(16, "is_ref", "bool"),
        Field(17, "experimental_full_type", FullTypeDef),
    )


class OpAttr(Message):
    """An attribute: its ``type`` as ``int``, ``list(shape)`` and the like, and what its value may be."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "type", "string"),
        Field(3, "default_value", AttrValue),
        Field(4, "description", "string"),
        Field(5, "has_minimum", "bool"),
        Field(6, "minimum", "int64"),
        Field(7, "allowed_values", AttrValue),
    )


class OpDeprecation(Message):
    """From which version of graphs an operation type is not to be used, and what instead."""

    FIELDS = (Field(1, "version", "int32"), Field(2, "explanation", "string"))


class OpDef(Message):
    """An operation type, or what a function takes and returns."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "input_arg", OpArg, repeated=True),
        Field(3, "output_arg", OpArg, repeated=True),
        Field(4, "attr", OpAttr, repeated=True),
        Field(5, "summary", "string"),
        Field(6, "description", "string"),
        Field(8, "deprecation", OpDeprecation),
        Field(16, "is_aggregate", "bool"),
        Field(17, "is_stateful", "bool"),
        Field(18, "is_commutative", "bool"),
        Field(19, "allows_uninitialized_input", "bool"),
        Field(20, "control_output", "string", repeated=True),
        Field(21, "is_distributed_communication", "bool"),
    )

    ArgDef = OpArg
    AttrDef = OpAttr


class OpList(Message):
    """Operation types."""

    FIELDS = (Field(1, "op", OpDef, repeated=True),)


# -- functions and graphs ------------------------------------------------------------------------------


class FunctionArgAttrs(Message):
    """The attributes of an argument of a function."""

    FIELDS = (Field(1, "attr", AttrValue, key="string"),)


class FunctionDef(Message):
    """A function: its ``signature``, its operations in ``node_def``, and where each output comes from in ``ret``."""

    FIELDS = (
        Field(1, "signature", OpDef),
        Field(3, "node_def", NodeDef, repeated=True),
        Field(4, "ret", "string", key="string"),
        Field(5, "attr", AttrValue, key="string"),
        Field(6, "control_ret", "string", key="string"),
        Field(7, "arg_attr", FunctionArgAttrs, key="uint32"),
        Field(8, "resource_arg_unique_id", "uint32", key="uint32"),
    )

    ArgAttrs = FunctionArgAttrs


class GradientDef(Message):
    """The function that is the gradient of another one."""

    FIELDS = (Field(1, "function_name", "string"), Field(2, "gradient_func", "string"))


class RegisteredGradient(Message):
    """The function that is the gradient of an operation type."""

    FIELDS = (Field(1, "gradient_func", "string"), Field(2, "registered_op_type", "string"))


class FunctionDefLibrary(Message):
    """The functions of a graph, and their gradients."""

    FIELDS = (
        Field(1, "function", FunctionDef, repeated=True),
        Field(2, "gradient", GradientDef, repeated=True),
        Field(3, "registered_gradients", RegisteredGradient, repeated=True),
    )


class CodePosition(Message):
    """A line of a program."""

    FIELDS = (
        Field(1, "file_index", "int32"),
        Field(2, "line", "int32"),
        Field(3, "col", "int32"),
        Field(4, "func", "string"),
        Field(5, "code", "string"),
    )


class CodeTrace(Message):
    """The lines that led to an operation."""

    FIELDS = (Field(1, "file_line_cols", CodePosition, repeated=True), Field(2, "frame_id", "fixed64", repeated=True))


class GraphDebugInfo(Message):
    """Which lines of which files made the operations."""

    FIELDS = (
        Field(1, "files", "string", repeated=True),
        Field(2, "traces", CodeTrace, key="string"),
        Field(4, "frames_by_id", CodePosition, key="fixed64"),
        Field(5, "name_to_trace_id", "fixed64", key="string"),
        Field(6, "traces_by_id", CodeTrace, key="fixed64"),
    )


class GraphDef(Message):
    """A graph: its operations in ``node``, its functions in ``library``, and the ``versions`` of its form.

    Graphs that are imported share its large constants while nobody looks at its nodes; see `StandIn`.
    """

    FIELDS = (
        Field(1, "node", NodeDef, repeated=True),
        Field(2, "library", FunctionDefLibrary),
        Field(3, "version", "int32"),
        Field(4, "versions", VersionDef),
        Field(5, "debug_info", GraphDebugInfo),
    )

    apart = True
