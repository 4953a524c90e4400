"""The functions that TensorFlow generates for its operation types, as ``gen_nn_ops.relu_grad`` for ``ReluGrad``.

Programs take them for gradients and optimizers of their own. One function makes them all: it writes the node that
TensorFlow's definition of the type describes, and imports it.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import tfray.exchange.from_tensorflow  # noqa: F401  (declares rules, which say what is importable)
from tfray.errors import ArgumentError
from tfray.exchange.attributes import write_attr
from tfray.exchange.graph_import import import_graph_def
from tfray.exchange.import_rules import importable
from tfray.exchange.op_table import REQUIRED, TensorFlowArg, TensorFlowOp, operation_names, tensorflow_op
from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.formats.tensor_proto import TensorProto, make_tensor_proto
from tfray.framework.allowed_uses import KINDS
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, as_dtype, int64
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.gradients import gradients
from tfray.ops.arrays.broadcast_ops import zeros
from tfray.ops.arrays.join_ops import size_along
from tfray.ops.nn.fractional_pooling_ops import greatest_of, mean_of, windows_at
from tfray.programs.internal_names import with_dependencies


def generated_function(name: str) -> Callable[..., Any] | None:
    """The function of that name, with or without the underscore that versions put first; None if there is none.

    Its arguments are the inputs of the operation, its attributes and `name`, in TensorFlow's order. It returns a
    tensor, a named tuple of several, or an operation without outputs. For a reference to a variable it returns the
    variable's value, read after the update.
    """
    op_type = _types().get(name.replace("_", "").lower())
    definition = tensorflow_op(op_type) if op_type else None
    return _function(name, definition) if definition and importable(definition.name) else None


@functools.cache
def _types() -> Mapping[str, str]:
    return {name.lower(): name for name in operation_names() if name.isalnum()}


def _function(name: str, definition: TensorFlowOp) -> Callable[..., Any]:
    signature = Signature(list(_parameters(definition)))

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{name}() {error}: its arguments are {signature}") from None
        return _made(definition, {key: value for key, value in given.arguments.items() if value is not None})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Make an operation of type {definition.name}."
    function.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return function


def _parameters(definition: TensorFlowOp) -> Iterator[Parameter]:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    attrs = [attr for attr in definition.attrs.values() if attr.name not in definition.implied]
    for arg in definition.inputs:
        yield Parameter(arg.name, kind)
    for attr in sorted(attrs, key=lambda attr: attr.default is not REQUIRED):
        yield Parameter(attr.name, kind, default=Parameter.empty if attr.default is REQUIRED else attr.default)
    yield Parameter("name", kind, default=None)


def _made(definition: TensorFlowOp, given: Mapping[str, Any]) -> Any:
    message, node = GraphDef(), NodeDef(name=given.get("name", definition.name).rstrip("/"), op=definition.name)
    attrs = {name: given[name] for name in definition.attrs if name in given}
    sources: dict[str, Tensor] = {}
    for arg in definition.inputs:
        for value in _inputs(definition, arg, given[arg.name], attrs):
            name = f"{node.name}/{arg.name}_{len(node.input)}"
            node.input.append(name)
            if isinstance(value, _Constant):
                message.node.append(value.node(name))
            else:
                sources[f"{name}:0"] = value
    for name, value in attrs.items():
        write_attr(node.attr[name], definition.attrs[name].type, value)
    message.node.append(node)
    results = [f"{node.name}:{index}" for index, _ in enumerate(definition.tensors(node))]
    updated = definition.inputs and [arg.name for arg in definition.outputs if arg.is_variable]
    elements = [node.name] if updated or not results else results
    scope = get_default_graph().get_name_scope()
    # The program itself makes the operation, so it may use what it likes.
    made: list[Any] = import_graph_def(message, sources, elements, scope and f"{scope}/", allow=KINDS) or []
    if updated:
        return with_dependencies(made, given[definition.inputs[0].name])
    return _grouped(definition, attrs, made) if results else made[0]


@dataclass(frozen=True)
class _Constant:
    """An input that is no tensor, and its dtype, if known. It becomes a constant of the message, which tells shapes."""

    value: Any
    dtype: DType | None

    def message(self) -> TensorProto:
        return make_tensor_proto(self.value, self.dtype)

    def node(self, name: str) -> NodeDef:
        tensor, node = self.message(), NodeDef(name=name, op="Const")
        node.attr["value"].tensor.CopyFrom(tensor)
        node.attr["dtype"].type = tensor.dtype
        return node


def _inputs(definition: TensorFlowOp, arg: TensorFlowArg, value: Any, attrs: dict[str, Any]) -> Sequence[Any]:
    """What stands for an input: tensors and `_Constant`. The attributes that follow from it are added."""
    if arg.is_variable or arg.type == "resource":
        if arg.is_variable:
            attrs.setdefault(arg.type, value.dtype.base_dtype)
        return [value.handle if hasattr(value, "_ref") else value]
    values = list(value) if arg.number or arg.types else [value]
    if arg.types:
        tensors = [convert_to_tensor(each) for each in values]
        attrs[arg.types] = [tensor.dtype for tensor in tensors]
        return tensors
    is_open = arg.type in definition.attrs
    dtype = _dtype(arg.type, values, attrs) if is_open else as_dtype(arg.type)
    inputs = [convert_to_tensor(each, dtype) if hasattr(each, "graph") else _Constant(each, dtype) for each in values]
    if arg.number:
        attrs[arg.number] = len(inputs)
    if inputs and is_open and arg.type not in attrs:
        first = inputs[0]
        attrs[arg.type] = as_dtype(first.message().dtype) if isinstance(first, _Constant) else first.dtype
    return inputs


def _dtype(attr: str, values: Sequence[Any], attrs: Mapping[str, Any]) -> DType | None:
    """The dtype that an attribute has already, or that of a tensor or an array among the values."""
    if attr in attrs:
        return as_dtype(attrs[attr])
    return next((as_dtype(each.dtype).base_dtype for each in values if hasattr(each, "dtype")), None)


def _grouped(definition: TensorFlowOp, attrs: Mapping[str, Any], made: list[Tensor]) -> Any:
    """The outputs, those that are lists as lists."""
    left, values = iter(made), []
    for arg in definition.outputs:
        tensors = [next(left) for _ in range(arg.count(attrs))]
        values.append(tensors if arg.number or arg.types else tensors[0])
    if len(values) == 1:
        return values[0]
    return namedtuple(definition.name, [arg.name for arg in definition.outputs])(*values)


# -- gradients that are made of other operations --------------------------------------------------------


def fractional_avg_pool_grad(
    orig_input_tensor_shape: TensorLike,
    out_backprop: TensorLike,
    row_pooling_sequence: TensorLike,
    col_pooling_sequence: TensorLike,
    overlapping: bool = False,
    name: str | None = None,
) -> Any:
    """The gradient of the mean of windows for the images, of shape `orig_input_tensor_shape`.

    Args:
        orig_input_tensor_shape: Shape of the images, ``[batch, height, width, channels]``.
        out_backprop: The gradient of what was pooled, ``[batch, rows, columns, channels]``, a float dtype.
        row_pooling_sequence: Where the windows begin along the height, and where the last one ends.
        col_pooling_sequence: The same along the width.
        overlapping: Neighbouring windows share the row or column between them.
        name: Name scope of the operations.
    """
    d_pooled = convert_to_tensor(out_backprop)
    images = zeros(orig_input_tensor_shape, d_pooled.dtype)
    sequences = row_pooling_sequence, col_pooling_sequence
    return _gradient(mean_of, images, d_pooled, sequences, overlapping, name or "FractionalAvgPoolGrad")


def fractional_max_pool_grad(
    orig_input: TensorLike,
    orig_output: TensorLike,
    out_backprop: TensorLike,
    row_pooling_sequence: TensorLike,
    col_pooling_sequence: TensorLike,
    overlapping: bool = False,
    name: str | None = None,
) -> Any:
    """The gradient of the greatest elements of windows for the images `orig_input`; see `fractional_avg_pool_grad`.

    `orig_output` follows from the images. Equal greatest elements share the gradient.
    """
    sequences = row_pooling_sequence, col_pooling_sequence
    images, d_pooled = convert_to_tensor(orig_input), convert_to_tensor(out_backprop)
    return _gradient(greatest_of, images, d_pooled, sequences, overlapping, name or "FractionalMaxPoolGrad")


def _gradient(
    pool: Callable[..., Tensor],
    images: Tensor,
    d_pooled: Tensor,
    sequences: tuple[TensorLike, TensorLike],
    overlapping: bool,
    name: str,
) -> Any:
    with get_default_graph().name_scope(name):
        windows = [
            windows_at(convert_to_tensor(sequence, int64), size_along(images, axis), overlapping)
            for axis, sequence in enumerate(sequences, start=1)
        ]
        return gradients(pool(images, *windows), images, d_pooled)[0]
