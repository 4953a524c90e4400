"""Graphs as protocol buffers: the messages with which TensorFlow's tools, TensorBoard among them, describe a graph."""

from __future__ import annotations

from tfray.formats.message import Field, Message
from tfray.formats.tensor_proto import TensorProto, TensorShapeProto


class AttrFunction(Message):
    """The function that an attribute names: ``name``."""

    FIELDS = (Field(1, "name", "string"),)


class AttrList(Message):
    """The values of an attribute that is a list, in the field for their kind."""

    FIELDS = (
        Field(2, "s", "bytes", repeated=True),
        Field(3, "i", "int64", repeated=True),
        Field(4, "f", "float", repeated=True),
        Field(5, "b", "bool", repeated=True),
        Field(6, "type", "enum", repeated=True),
        Field(7, "shape", TensorShapeProto, repeated=True),
        Field(8, "tensor", TensorProto, repeated=True),
        Field(9, "func", AttrFunction, repeated=True),
    )


class AttrValue(Message):
    """The value of an attribute, in the field for its kind."""

    FIELDS = (
        Field(1, "list", AttrList, oneof="value"),
        Field(2, "s", "bytes", oneof="value"),
        Field(3, "i", "int64", oneof="value"),
        Field(4, "f", "float", oneof="value"),
        Field(5, "b", "bool", oneof="value"),
        Field(6, "type", "enum", oneof="value"),
        Field(7, "shape", TensorShapeProto, oneof="value"),
        Field(8, "tensor", TensorProto, oneof="value"),
        Field(9, "placeholder", "string", oneof="value"),
        Field(10, "func", AttrFunction, oneof="value"),
    )


class NodeProto(Message):
    """An operation: ``name``, ``op``, names of its inputs in ``input``, ``device``, and attributes in ``attr``."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "op", "string"),
        Field(3, "input", "string", repeated=True),
        Field(4, "device", "string"),
        Field(5, "attr", AttrValue, key="string"),
    )


class VersionDef(Message):
    """The versions of the form of a graph."""

    FIELDS = (
        Field(1, "producer", "int32"),
        Field(2, "min_consumer", "int32"),
        Field(3, "bad_consumers", "int32", repeated=True),
    )


class ArgProto(Message):
    """An input or output of a function: ``name`` and ``type``, the number of its dtype."""

    FIELDS = (Field(1, "name", "string"), Field(2, "description", "string"), Field(3, "type", "enum"))


class SignatureProto(Message):
    """What a function takes and returns."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "input_arg", ArgProto, repeated=True),
        Field(3, "output_arg", ArgProto, repeated=True),
    )


class FunctionProto(Message):
    """A function: its ``signature``, its operations in ``node_def``, and where each output comes from in ``ret``."""

    FIELDS = (
        Field(1, "signature", SignatureProto),
        Field(3, "node_def", NodeProto, repeated=True),
        Field(4, "ret", "string", key="string"),
    )


class FunctionLibrary(Message):
    """The functions of a graph."""

    FIELDS = (Field(1, "function", FunctionProto, repeated=True),)


class GraphProto(Message):
    """A graph: its operations in ``node``, its functions in ``library``."""

    FIELDS = (
        Field(1, "node", NodeProto, repeated=True),
        Field(2, "library", FunctionLibrary),
        Field(4, "versions", VersionDef),
    )
