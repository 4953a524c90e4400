"""What TensorFlow's graphs, operations and tensors call within, and programs use nevertheless."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfray.framework import dtypes
from tfray.framework.device_spec import DeviceSpec, canonical_name
from tfray.framework.tensor_shape import TensorShape

_GRADIENT = "_gradient_op_type"
"""The attribute that names the gradient function of one operation."""


class TensorInnerNames:
    """What a tensor has besides its interface."""

    __slots__ = ()

    @property
    def _op(self: Any) -> Any:
        return self.op

    @property
    def _dtype(self: Any) -> dtypes.DType:
        return self.dtype

    @property
    def _id(self: Any) -> int:
        return id(self)

    def _shape_tuple(self: Any) -> tuple[int | None, ...] | None:
        return None if self.shape.rank is None else tuple(self.shape.as_list())


class OperationInnerNames:
    """What an operation has besides its interface."""

    @property
    def _id(self: Any) -> int:
        return self.id

    @property
    def _node_def(self: Any) -> Any:
        return self.node_def

    @property
    def _output_types(self: Any) -> list[int]:
        return [tensor.dtype.as_datatype_enum for tensor in self.outputs]

    def _set_attr(self: Any, attr_name: str, attr_value: Any) -> None:
        """Set an attribute to what a `tf.AttrValue` holds.

        ``_gradient_op_type`` names the function registered by `tf.RegisterGradient` that is its gradient.
        """
        value = _held(attr_value)
        if attr_name == _GRADIENT:
            attr_name, value = "_gradient_overrides", {**self.attrs.get("_gradient_overrides", {}), self.type: value}
        self.attrs[attr_name] = value
        self.graph._changed()

    def _set_device(self: Any, device: str | DeviceSpec) -> None:
        """Ask for a device."""
        self._device = canonical_name(str(device or ""))
        self.graph._changed()

    def _add_control_input(self: Any, op: Any) -> None:
        """Make it run after `op` too."""
        self.add_control_inputs([op])

    def _add_control_inputs(self: Any, ops: Iterable[Any]) -> None:
        """Make it run after `ops` too."""
        self.add_control_inputs(ops)

    def _get_control_flow_context(self: Any) -> None:
        """Branches and loops are graphs of their own here: no operation is in a context."""

    def _set_control_flow_context(self: Any, ctx: Any) -> None:
        """Nothing: see `_get_control_flow_context`."""


def _held(message: Any) -> Any:
    """The value in a `tf.AttrValue`; anything else is a value itself."""
    kind = message.WhichOneof("value") if hasattr(message, "WhichOneof") else None
    if kind is None:
        return message.decode() if isinstance(message, bytes) else message
    value = getattr(message, kind)
    match kind:
        case "s":
            return value.decode()
        case "type":
            return dtypes.as_dtype(value)
        case "shape":
            return TensorShape(value)
        case "list":
            fields = [list(values) for _, values in value.ListFields()]
            return [each.decode() if isinstance(each, bytes) else each for each in (fields[0] if fields else [])]
    return value


class GraphInnerNames:
    """What a graph has besides its interface."""

    building_function = False
    """Whether it is the body of a function."""

    @property
    def _nodes_by_name(self: Any) -> Mapping[str, Any]:
        return self._ops

    @property
    def _ops_by_name(self: Any) -> Mapping[str, Any]:
        return self._ops

    def _get_control_flow_context(self: Any) -> None:
        """Branches and loops are graphs of their own here: there are no contexts."""

    def _set_control_flow_context(self: Any, ctx: Any) -> None:
        """Nothing: see `_get_control_flow_context`."""


class VariableInnerNames:
    """What a variable has besides its interface."""

    @property
    def _shared_name(self: Any) -> str:
        return str(self.op.name)

    @property
    def _trainable(self: Any) -> bool:
        return self.trainable

    @property
    def _initializer_op(self: Any) -> Any:
        return self.initializer

    @property
    def _variable(self: Any) -> Any:
        return self.op.outputs[0]
