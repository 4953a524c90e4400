"""Values of attributes as TensorFlow's messages hold them, and as tfray's operations do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.exchange.op_table import REQUIRED, TensorFlowOp, operation_type
from tfray.formats.graph_proto import AttrValue, GraphDef, NameAttrList, NodeDef
from tfray.formats.large_contents import Contents
from tfray.formats.tensor_proto import DTYPE_NUMBERS, REFERENCE, TensorShapeProto, constant_message, held_array
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.tensor_shape import TensorShape

_DTYPES = {number: dtype for dtype, number in DTYPE_NUMBERS.items()} | {21: dtypes.variant}


def dtype_of(number: int) -> DType:
    """The dtype of a number in a message; that of the value for a reference. Raises `DataLossError`."""
    found = _DTYPES.get(number - REFERENCE if number > REFERENCE else number)
    if found is None:
        raise DataLossError(f"dtype {number} is not known")
    return found


def shape_of(proto: TensorShapeProto) -> TensorShape:
    """The shape in a message."""
    if proto.unknown_rank:
        return TensorShape(None)
    return TensorShape([None if dim.size < 0 else dim.size for dim in proto.dim])


def array_of(proto: Any) -> np.ndarray[Any, Any]:
    """The array in a message. Raises `DataLossError` for a broken one, and for one that asks for too much memory."""
    array = held_array(proto)
    array.flags.writeable = False
    return array


def read_attr(value: AttrValue) -> Any:
    """The Python value of an attribute. Functions stay messages; text is a string, or bytes where it is not UTF-8."""
    kind = value.WhichOneof("value")
    if kind == "list":
        fields = value.list.ListFields()
        return [_read(fields[0][0].name, each) for each in fields[0][1]] if fields else []
    if kind is None:
        return None
    return _read(kind, getattr(value, kind))


def _read(kind: str, value: Any) -> Any:
    if kind in ("i", "f", "b", "func"):
        return value
    if kind == "s":
        return _text(value)
    if kind == "type":
        return dtype_of(value)
    if kind == "shape":
        return shape_of(value)
    if kind == "tensor":
        return array_of(value)
    raise InvalidArgumentError(f"an attribute holds {value!r}, which a function's definition has to replace")


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def attrs_of(definition: TensorFlowOp, given: Mapping[str, AttrValue], bound: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all attributes of a node: given ones, and TensorFlow's defaults.

    Args:
        definition: The node's type.
        given: The attributes in the node's message.
        bound: Values of the attributes of the function that holds the node.

    Raises:
        InvalidArgumentError: One is missing that has no default.
    """
    attrs = {name: attr.default for name, attr in definition.attrs.items() if attr.default is not REQUIRED}
    for name, value in given.items():
        if value.WhichOneof("value") == "placeholder":
            if value.placeholder not in bound:
                raise InvalidArgumentError(
                    f"{name} is to be {value.placeholder!r} of a function, which has no such value"
                )
            attrs[name] = bound[value.placeholder]
        elif name in definition.attrs:
            attrs[name] = _checked(definition, name, value)
    missing = [name for name in definition.attrs if name not in attrs]
    if missing:
        raise InvalidArgumentError(f"attribute {', '.join(missing)} of {definition.name} is missing")
    return attrs


def leave_out_defaults(message: GraphDef) -> None:
    """Take those attributes out of a graph that have their defaults: an older TensorFlow may not know them."""
    bodies: list[Iterable[NodeDef]] = [message.node, *(function.node_def for function in message.library.function)]
    for node in (node for body in bodies for node in body):
        definition = operation_type(node.op)
        for attr in definition.attrs.values() if definition else ():
            if attr.default is not REQUIRED and attr.name in node.attr:
                default = AttrValue()
                write_attr(default, attr.type, attr.default)
                if node.attr[attr.name] == default:
                    del node.attr[attr.name]


def _checked(definition: TensorFlowOp, name: str, value: AttrValue) -> Any:
    """The value of an attribute, which is of the kind that the type says."""
    kind = definition.attrs[name].type
    wanted = _FIELDS.get(kind, "list")
    there = value.WhichOneof("value")
    if wanted == "list":  # without any value it is an empty one
        fields = [field.name for field, _ in value.list.ListFields()]
        there = fields[0] if len(fields) == 1 else "list" if fields else there or "list"
        wanted = _FIELDS[kind[5:-1]] if fields else wanted
    if there != wanted:
        raise InvalidArgumentError(
            f"its attribute {name!r} is to be of kind {kind}, and is {_KINDS.get(there or '', 'none')}"
        )
    return read_attr(value) if value.WhichOneof("value") else []


def write_attr(message: AttrValue, kind: str, value: Any, contents: Contents | None = None) -> None:
    """Put the value of an attribute of a kind, such as ``list(int)``, into its message.

    Of a large tensor it holds a mark of `contents`, if they are given.
    """
    if kind.startswith("list("):
        message.list.SetInParent()
        name = _FIELDS[kind[5:-1]]
        getattr(message.list, name).extend([_written(kind[5:-1], each, contents) for each in value])
    elif kind in ("shape", "tensor", "func"):
        getattr(message, _FIELDS[kind]).CopyFrom(_written(kind, value, contents))
    else:
        setattr(message, _FIELDS[kind], _written(kind, value, contents))


_FIELDS = {"string": "s", "int": "i", "float": "f", "bool": "b"} | {
    name: name for name in ("type", "shape", "tensor", "func")
}
_KINDS = {field: kind for kind, field in _FIELDS.items()} | {"list": "a list"}


def _written(kind: str, value: Any, contents: Contents | None) -> Any:
    match kind:
        case "string":
            return value.encode() if isinstance(value, str) else value
        case "int" | "type":
            return int(value)
        case "float":
            return float(value)
        case "bool":
            return bool(value)
        case "shape":
            return TensorShape(value).as_proto()
        case "tensor":
            return constant_message(value, contents)
    return NameAttrList(**value)
