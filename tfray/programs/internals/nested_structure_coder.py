"""``tensorflow.python.saved_model.nested_structure_coder``: structures of plain values and specs as messages."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any, Final

from tfray.formats.meta_graph_proto import StructuredValue
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.control.type_specs import TensorSpec

_SCALARS: Final[Mapping[type, str]] = {
    bool: "bool_value",
    int: "int64_value",
    float: "float64_value",
    str: "string_value",
}


class NotEncodableError(Exception):
    """A value, or a message, of a kind that is none of `StructureCoder`'s."""


class StructureCoder:
    """Writes lists, tuples, dictionaries and named tuples, in any depth, as a ``StructuredValue``, and reads it.

    In them stand None, bools, numbers, strings, shapes, dtypes and tensor specs.
    """

    def can_encode(self, nested: Any) -> bool:
        """Whether `encode_structure` knows all kinds of values in a structure."""
        try:
            self.encode_structure(nested)
        except NotEncodableError:
            return False
        return True

    def encode_structure(self, nested: Any) -> StructuredValue:
        """The message of a structure. Raises `NotEncodableError` for a value of another kind."""
        message = StructuredValue()
        if type(nested) in _SCALARS:
            setattr(message, _SCALARS[type(nested)], nested)
        elif nested is None:
            message.none_value.SetInParent()
        elif isinstance(nested, TensorShape):
            message.tensor_shape_value.CopyFrom(nested.as_proto())
        elif isinstance(nested, DType):
            message.tensor_dtype_value = nested.as_datatype_enum
        elif isinstance(nested, TensorSpec):
            spec = message.tensor_spec_value
            spec.shape.CopyFrom(nested.shape.as_proto())
            spec.dtype, spec.name = nested.dtype.as_datatype_enum, nested.name or ""
        elif isinstance(nested, tuple) and hasattr(nested, "_fields"):
            message.named_tuple_value.name = type(nested).__name__
            for key, value in zip(nested._fields, nested, strict=True):
                message.named_tuple_value.values.add(key=key).value.CopyFrom(self.encode_structure(value))
        elif isinstance(nested, (list, tuple)):
            part = message.list_value if isinstance(nested, list) else message.tuple_value
            part.SetInParent()
            part.values.extend(map(self.encode_structure, nested))
        elif isinstance(nested, dict):
            message.dict_value.SetInParent()
            for key, value in nested.items():
                message.dict_value.fields[key].CopyFrom(self.encode_structure(value))
        else:
            raise NotEncodableError(f"No encoder for object [{nested}] of type [{type(nested)}].")
        return message

    def decode_proto(self, proto: StructuredValue) -> Any:
        """The structure of a message. Raises `NotEncodableError` for one of another kind."""
        kind = proto.WhichOneof("kind") or ""
        if kind in _SCALARS.values():
            return getattr(proto, kind)
        if kind not in _DECODERS:
            raise NotEncodableError(f"No decoder for proto [{proto}].")
        return _DECODERS[kind](self, getattr(proto, kind))


def _named_tuple(coder: StructureCoder, message: Any) -> Any:
    values = {pair.key: coder.decode_proto(pair.value) for pair in message.values}
    return namedtuple(message.name, list(values))(**values)


_DECODERS: Final[Mapping[str, Callable[[StructureCoder, Any], Any]]] = {
    "none_value": lambda coder, message: None,
    "tensor_shape_value": lambda coder, message: TensorShape(message),
    "tensor_dtype_value": lambda coder, number: as_dtype(number),
    "tensor_spec_value": lambda coder, spec: TensorSpec(
        TensorShape(spec.shape), as_dtype(spec.dtype), spec.name or None
    ),
    "list_value": lambda coder, message: [coder.decode_proto(value) for value in message.values],
    "tuple_value": lambda coder, message: tuple(coder.decode_proto(value) for value in message.values),
    "dict_value": lambda coder, message: {key: coder.decode_proto(value) for key, value in message.fields.items()},
    "named_tuple_value": _named_tuple,
}
