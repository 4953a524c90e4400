"""What tfray has for each operation type of TensorFlow.

A type without a rule has the same name here. Inputs go over by name where both sides name them alike, otherwise by
place. Attributes go over by name. An attribute that tfray does not have may only have its default value, unless it is
one of `HINTS`, which change no value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.exchange.attributes import read_attr
from tfray.exchange.op_table import TensorFlowOp, tensorflow_op
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.op_def import OpDef, lookup, registered_ops, variant_name
from tfray.framework.region import Region, variable_behind
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.arrays import slice_ops
from tfray.ops.control.control_flow_ops import add_cond, add_while

HINTS: Final = frozenset(
    {
        "use_locking",
        "use_cudnn_on_gpu",
        "parallel_iterations",
        "validate_indices",
        "grad_a",
        "grad_b",
        "grad_x",
        "grad_y",
        "container",
        "debug_name",
        "allowed_devices",
        "executor_type",
        "config",
        "config_proto",
        "output_shapes",
        "is_constant",
        "output_types",
        "tensor_array_name",
    }
)
"""Attributes that say how, not what."""


@dataclass
class Reference:
    """A reference to a variable, as TensorFlow 1's own variables give it.

    Attributes:
        handle: The variable's handle.
        after: The operation that has given the reference, if it changes the variable.
        value: The value that this operation returns, if it does.
    """

    handle: Tensor
    after: Operation | None = None
    value: Tensor | None = None

    def in_region(self, region: Region) -> Reference:
        """The reference in a region."""
        return Reference(region.own(self.handle))


@dataclass(frozen=True)
class TensorArrayHandle:
    """The handle of a TensorArray: what its operations need to know besides the flow."""

    dtype: DType
    element_shape: TensorShape
    dynamic: bool
    is_gradient: bool = False


Imported = Tensor | Reference | TensorArrayHandle
"""What an output of an operation of TensorFlow is here."""


@dataclass
class Node:
    """An operation of TensorFlow that is being added.

    Attributes:
        body: What it is part of.
        name: Its name in the graph.
        op: Its type.
        attrs: Values of its attributes.
        given: Its inputs.
        device: Its device.
        controls: Operations that it waits for.
        definition: Its type's definition.
        extra: Attributes of any operation.
        ends: The operations that have run when it has run.
    """

    body: Any
    name: str
    op: str
    attrs: dict[str, Any]
    given: list[Imported]
    device: str
    controls: list[Operation]
    definition: TensorFlowOp | None
    extra: dict[str, Any] = field(default_factory=dict)
    ends: list[Operation] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        """The graph that it goes to."""
        graph: Graph = self.body.graph
        return graph

    @functools.cached_property
    def inputs(self) -> list[Tensor]:
        """Its inputs as tensors: values, and handles where it takes handles."""
        assert self.definition is not None
        takes = [arg.takes_resource for arg in self.definition.inputs for _ in range(arg.count(self.attrs))]
        if len(takes) != len(self.given):
            raise InvalidArgumentError(f"it has {len(self.given)} inputs, and its type {len(takes)}")
        return [
            value.handle if isinstance(value, Reference) and taken else self.value(value)
            for value, taken in zip(self.given, takes, strict=True)
        ]

    def value(self, given: Imported) -> Tensor:
        """The value of an input. A reference is read."""
        if isinstance(given, Tensor):
            return given
        if not isinstance(given, Reference):
            raise InvalidArgumentError("its input is the handle of a TensorArray")
        if given.value is not None:
            return given.value
        controls = [*self.controls, *([given.after] if given.after is not None else [])]
        dtype, shape = behind(given.handle)
        name = self.graph.unique_name(f"{self.name}/read")
        attrs = {"dtype": dtype, "shape": shape}
        return self._create("ReadVariable", [given.handle], attrs, name, controls).outputs[0]

    def arg(self, name: str) -> list[Tensor]:
        """The tensors of an input of that name."""
        assert self.definition is not None
        start = 0
        for arg in self.definition.inputs:
            count = arg.count(self.attrs)
            if arg.name == name:
                return self.inputs[start : start + count]
            start += count
        raise KeyError(name)

    def constant(self, name: str) -> np.ndarray[Any, Any] | None:
        """The value of an input, if the graph determines it."""
        (tensor,) = self.arg(name)
        found = constant_value(tensor)
        return None if found is None else np.asarray(found)

    def needed(self, name: str) -> Any:
        """The value of an input that has to be known, as numbers and lists. Raises `UnimplementedError`."""
        found = self.constant(name)
        if found is None:
            raise UnimplementedError(
                f"{self.op} {self.name!r}: tfray needs to know the input {name!r} when the graph is built"
            )
        return found.tolist()

    def make(self, op: str, inputs: Sequence[Tensor], **attrs: Any) -> Operation:
        """The operation that has this one's name."""
        made = self._create(op, inputs, attrs | self.extra, self.name, self.controls)
        self.ends = [made]
        return made

    def part(self, op: str, inputs: Sequence[Tensor], suffix: str = "", **attrs: Any) -> Tensor:
        """The output of an operation that is needed besides."""
        name = self.graph.unique_name(f"{self.name}/{suffix or op}")
        return self._create(op, inputs, attrs, name, self.controls).outputs[0]

    def known(self, value: Any, dtype: DType) -> Tensor:
        """A constant that is needed besides."""
        array = np.asarray(value, dtype.numpy)
        return self.part("Const", [], value=array, dtype=dtype)

    def _create(
        self, op: str, inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str, controls: Sequence[Operation]
    ) -> Operation:
        inside = [control for control in controls if control.graph is self.graph]
        return self.graph.create_op(
            op, inputs, attrs, name, control_inputs=inside, exact_name=True, device=self.device, site=""
        )

    @contextmanager
    def building(self) -> Iterator[None]:
        """Under it, functions of tfray's add operations that are needed besides."""
        controls = [op for op in self.controls if op.graph is self.graph]
        with (
            self.graph.as_default(),
            self.graph.name_scope(f"{self.name}/"),
            self.graph.device(self.device or None),
            self.graph.control_dependencies(controls),
        ):
            yield

    def named(self, tensors: Sequence[Imported]) -> list[Imported]:
        """`tensors` as outputs of an operation of this node's name."""
        values = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
        plain = len(values) == len(tensors) and all(value.dtype.is_numpy_compatible for value in values)
        if not values or not plain:
            end = self.make("NoOp", [])
            end.add_control_inputs([value.op for value in values])
            return list(tensors)
        if len(values) == 1:
            return [self.make("Identity", values).outputs[0]]
        return list(self.make("IdentityN", values, T=[value.dtype for value in values]).outputs)


def behind(handle: Tensor) -> tuple[DType, TensorShape]:
    """Dtype and shape of the variable whose handle is given."""
    found = variable_behind(handle)
    if found is None:
        raise InvalidArgumentError(f"{handle.name!r} is no variable that the graph knows")
    return found


# -- rules ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """How a type of TensorFlow's is one of tfray's.

    Attributes:
        op: The type here; that of the same name when empty.
        attrs: Name of an attribute there to the name here.
        known: Name of an input there to the attribute here: its value is known when the graph is built, as a rule.
        inputs: Names of the inputs to pass on, in the order here; all by default.
        given: Attributes that only tfray has.
        outputs: Index of the output here for each one there; the same by default.
    """

    op: str = ""
    attrs: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[int, ...] | None = None


MATRIX: Final = {"adj_x": "transpose_a", "adj_y": "transpose_b"}
BATCH_NORM: Final = Rule("FusedBatchNorm", given={}, outputs=(0, 1, 2, 3, 4, 4))
BATCH_NORM_GRAD: Final = Rule(
    "FusedBatchNormGrad",
    inputs=("y_backprop", "x", "scale", "reserve_space_1", "reserve_space_2"),
    outputs=(0, 1, 2),
)

RULES: Final[dict[str, Rule]] = {
    "AddV2": Rule("Add"),
    "AssignAddVariableOp": Rule("AssignAdd"),
    "AssignSubVariableOp": Rule("AssignSub"),
    "BatchMatMul": Rule(attrs=MATRIX),
    "BatchMatMulV2": Rule("BatchMatMul", attrs=MATRIX),
    "BatchMatMulV3": Rule("BatchMatMul", attrs=MATRIX),
    "BroadcastTo": Rule(),
    "ConcatV2": Rule(known={"axis": "axis"}),
    "Concat": Rule("ConcatV2", known={"concat_dim": "axis"}),
    "FusedBatchNorm": Rule(),
    "FusedBatchNormV2": BATCH_NORM,
    "FusedBatchNormV3": BATCH_NORM,
    "FusedBatchNormGrad": BATCH_NORM_GRAD,
    "FusedBatchNormGradV2": BATCH_NORM_GRAD,
    "FusedBatchNormGradV3": BATCH_NORM_GRAD,
    "Gather": Rule("GatherV2", given={"axis": 0, "batch_dims": 0}),
    "GatherV2": Rule(known={"axis": "axis"}),
    "HashTableV2": Rule("HashTable", given={"value_shape": TensorShape([]), "is_mutable": False}),
    "InitializeTableV2": Rule("InitializeTable"),
    "InTopK": Rule("InTopKV2"),
    "Inv": Rule("Reciprocal"),
    "LookupTableFindV2": Rule("LookupTableFind"),
    "LookupTableSizeV2": Rule("LookupTableSize"),
    "MatrixDiag": Rule(),
    "MatrixDiagV2": Rule(),
    "MatrixDiagV3": Rule("MatrixDiagV2"),
    "MatrixDiagPartV3": Rule("MatrixDiagPartV2"),
    "MatrixSetDiagV3": Rule("MatrixSetDiagV2"),
    "MaxPoolV2": Rule("MaxPool", known={"ksize": "ksize", "strides": "strides"}),
    "Multinomial": Rule(),
    "PlaceholderV2": Rule("Placeholder"),
    "PreventGradient": Rule("Identity"),
    "ReadVariableOp": Rule("ReadVariable"),
    "ReverseV2": Rule(known={"axis": "axis"}),
    "Roll": Rule(known={"axis": "axis"}, given={"backwards": False}),
    "SelectV2": Rule("Select"),
    "Split": Rule(known={"split_dim": "axis"}),
    "SplitV": Rule(known={"split_dim": "axis"}),
    "SparseApplyAdagradV2": Rule("SparseApplyAdagrad"),
    "TopK": Rule("TopKV2"),
    "TruncatedNormal": Rule(given={"mean": 0.0, "stddev": 1.0}),
    "RandomStandardNormal": Rule(given={"mean": 0.0, "stddev": 1.0}),
    "RandomUniform": Rule(given={"minval": 0.0, "maxval": 1.0}),
    "VarIsInitializedOp": Rule("IsVariableInitialized"),
    "EncodeJpeg": Rule(),
}

Function = Callable[[Node], Sequence[Imported]]
FUNCTIONS: Final[dict[str, Function]] = {}


def rule(*ops: str) -> Callable[[Function], Function]:
    """Decorator: what to do for these types."""

    def declare(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(ops, function))
        return function

    return declare


def target_of(op: str) -> tuple[Rule, str] | None:
    """The rule for a type of TensorFlow's and the type here; None if there is no equivalent."""
    found = RULES.get(op)
    if found is None:
        names = (op, op.removeprefix("Resource"), op.removesuffix("V2"), op.removesuffix("V3"))
        return next(((Rule(name), name) for name in names if name in registered_ops()), None)
    name = found.op or op
    return (found, name) if name in registered_ops() else None


@functools.cache
def importable(op: str) -> bool:
    """Whether there is an equivalent of a type of TensorFlow's."""
    if op in FUNCTIONS:
        return True
    definition, found = tensorflow_op(op), target_of(op)
    return definition is not None and found is not None and not _missing(definition, *found)


def _missing(definition: TensorFlowOp, found: Rule, name: str) -> list[str]:
    """Attributes of tfray's type that nothing determines."""
    ours = lookup(name)
    determined = {found.attrs.get(attr, attr) for attr in definition.attrs} | {*found.known.values(), *found.given}
    first = ours.input_arguments[0].type if ours.input_arguments else ""
    if first == "resource" and ours.access is not None:
        determined |= {"shape", "dtype"}
    counts = {argument.count for argument in ours.output_arguments}
    return [attr for attr in ours.attrs if attr not in determined and attr not in counts]


def imported(node: Node) -> list[Imported]:
    """Add an operation; what its outputs are here."""
    function = FUNCTIONS.get(node.op)
    if function is not None:
        return list(function(node))
    found = target_of(node.op)
    assert found is not None and node.definition is not None
    return _by_rule(node, *found)


def _by_rule(node: Node, found: Rule, name: str) -> list[Imported]:
    ours, theirs = lookup(name), node.definition
    assert theirs is not None
    inputs = _inputs(node, found, ours)
    attrs: dict[str, Any] = dict(found.given)
    for attr, value in node.attrs.items():
        here = found.attrs.get(attr, attr)
        bound = any(argument.type == here for argument in ours.input_arguments)
        if here in ours.attrs or (here in ours.types and not bound):
            attrs[here] = value
        elif not bound and attr not in theirs.implied and attr not in HINTS and value != theirs.attrs[attr].default:
            raise UnimplementedError(f"{node.op} {node.name!r}: tfray knows nothing of {attr}={value!r}")
    for arg, attr in found.known.items():
        value = node.constant(arg)
        if value is not None:
            attrs[attr] = value.tolist()
        elif ours.late == attr:
            inputs = [*node.arg(arg), *inputs]
            name = variant_name(ours)
        else:
            attrs[attr] = node.needed(arg)
    if ours.access is not None and inputs and inputs[0].dtype is dtypes.resource:
        attrs |= _variable_attrs(ours, inputs[0], attrs)
    made = node.make(name, inputs, **attrs)
    return _outputs(node, found, made)


def _inputs(node: Node, found: Rule, ours: OpDef) -> list[Tensor]:
    assert node.definition is not None
    names = [arg.name for arg in node.definition.inputs if arg.name not in found.known]
    here = [argument.name for argument in ours.input_arguments]
    order = found.inputs or (here if sorted(here) == sorted(names) else names)
    return [tensor for name in order for tensor in node.arg(name)]


def _variable_attrs(ours: OpDef, handle: Tensor, attrs: Mapping[str, Any]) -> dict[str, Any]:
    if "shape" not in ours.attrs or variable_behind(handle) is None:
        return {}
    dtype, shape = behind(handle)
    wanted: dict[str, Any] = {} if "shape" in attrs else {"shape": shape}
    if "dtype" in ours.types and "dtype" not in attrs:
        wanted["dtype"] = dtype
    return wanted


def _outputs(node: Node, found: Rule, made: Operation) -> list[Imported]:
    assert node.definition is not None
    if found.outputs is not None:
        return [made.outputs[index] for index in found.outputs]
    args = node.definition.outputs
    if len(args) == 1 and args[0].is_ref:
        first = node.given[0]
        assert isinstance(first, Reference)
        return [Reference(first.handle, made, made.outputs[0] if made.outputs else None)]
    count = sum(arg.count(node.attrs) for arg in args)
    if count > len(made.outputs):
        raise UnimplementedError(f"{node.op} {node.name!r} has {count} outputs, and tfray's has {len(made.outputs)}")
    return list(made.outputs[:count])


# -- variables -----------------------------------------------------------------------------------------


@rule("Variable", "VariableV2", "TemporaryVariable")
def _variable(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("shape", "dtype")}
    handle = node.make("Variable", [], shared_name=node.attrs.get("shared_name", ""), **attrs).outputs[0]
    return [Reference(handle)]


@rule("VarHandleOp")
def _handle(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("shape", "dtype")}
    # Without a container, TensorFlow finds a variable by this name; so it does not make two of one.
    shared = node.attrs.get("shared_name", "")
    return [node.make("Variable", [], shared_name="" if shared == node.name else shared, **attrs).outputs[0]]


@rule("AssignVariableOp")
def _assign_variable(node: Node) -> Sequence[Imported]:
    handle, value = node.inputs
    dtype, shape = behind(handle)
    node.make("Assign", [handle, value], dtype=dtype, shape=shape, validate_shape=bool(node.attrs["validate_shape"]))
    return []


@rule("Identity", "RefIdentity")
def _identity(node: Node) -> Sequence[Imported]:
    (given,) = node.given
    if isinstance(given, Reference) and given.value is None:
        dtype, shape = behind(given.handle)
        if given.after is not None:
            node.controls.append(given.after)
        return [node.make("ReadVariable", [given.handle], dtype=dtype, shape=shape).outputs[0]]
    if isinstance(given, TensorArrayHandle) or node.value(given).dtype is dtypes.resource:
        node.make("NoOp", [])
        return [given]
    value = node.value(given)
    return [node.make("TensorArrayIdentity" if value.dtype is dtypes.variant else "Identity", [value]).outputs[0]]


@rule("DestroyResourceOp", "ControlTrigger")
def _nothing(node: Node) -> Sequence[Imported]:
    node.make("NoOp", [])
    return []


@rule("ApplyFtrl", "ResourceApplyFtrl", "SparseApplyFtrl", "ResourceSparseApplyFtrl")
def _ftrl(node: Node) -> Sequence[Imported]:
    if node.attrs["multiply_linear_by_lr"]:
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray knows nothing of multiply_linear_by_lr")
    ours = lookup(node.op.removeprefix("Resource"))
    dtype, shape = behind(node.inputs[0])
    zero = node.known(0, node.arg("lr")[0].dtype)
    names = [argument.name for argument in ours.input_arguments]
    inputs = [zero if name == "l2_shrinkage" else node.arg(name)[0] for name in names]
    made = node.make(ours.name, inputs, dtype=dtype, shape=shape)
    first = node.given[0]
    return [Reference(first.handle, made)] if isinstance(first, Reference) else []


# -- arrays --------------------------------------------------------------------------------------------


@rule("Const")
def _const(node: Node) -> Sequence[Imported]:
    value = node.attrs["value"]
    dtype = node.attrs["dtype"]
    return [node.make("Const", [], value=value, dtype=dtype).outputs[0]]


@rule("Squeeze")
def _squeeze(node: Node) -> Sequence[Imported]:
    axes = node.attrs["squeeze_dims"]
    return [node.make("Squeeze", node.inputs, axis=axes or None).outputs[0]]


@rule("ShapeN")
def _shapes(node: Node) -> Sequence[Imported]:
    return node.named([node.part("Shape", [tensor], out_type=node.attrs["out_type"]) for tensor in node.inputs])


@rule("ZerosLike")
def _zeros_like(node: Node) -> Sequence[Imported]:
    return _filled_like(node, 0)


@rule("OnesLike")
def _ones_like(node: Node) -> Sequence[Imported]:
    return _filled_like(node, 1)


def _filled_like(node: Node, value: int) -> Sequence[Imported]:
    (tensor,) = node.inputs
    if tensor.dtype is dtypes.variant:
        size = node.known(0, dtypes.int32)
        return [node.make("TensorArray", [size]).outputs[0]]
    filled = b"" if tensor.dtype is dtypes.string else value
    shape = node.part("Shape", [tensor], out_type=dtypes.int32)
    return [node.make("Fill", [shape, node.known(filled, tensor.dtype)]).outputs[0]]


@rule("ConcatOffset")
def _concat_offset(node: Node) -> Sequence[Imported]:
    axis = node.needed("concat_dim")
    shapes = node.arg("shape")
    rank = shapes[0].shape.num_elements()
    if rank is None:
        raise UnimplementedError(f"ConcatOffset {node.name!r}: the rank of its tensors is not known")
    mask = node.known([int(i == axis % rank) for i in range(rank)], shapes[0].dtype)
    offsets = [node.known([0] * rank, shapes[0].dtype)]
    for shape in shapes[:-1]:
        offsets.append(node.part("Add", [offsets[-1], node.part("Mul", [shape, mask])]))
    return node.named(offsets)


@rule("BroadcastGradientArgs")
def _broadcast_gradient_args(node: Node) -> Sequence[Imported]:
    # A gradient is summed over the dimensions in which the other tensor is larger. To sum over one of size 1 changes
    # nothing, because the sum is then brought into the shape of the tensor.
    first, second = node.inputs
    one = node.known(1, first.dtype)
    sizes = [node.part("Size", [shape], out_type=dtypes.int32) for shape in (first, second)]
    rank = node.part("Maximum", sizes)
    found = []
    for shape, size in zip((first, second), sizes, strict=True):
        missing = node.part("Reshape", [node.part("Sub", [rank, size]), node.known([1], dtypes.int32)])
        padded = node.part("ConcatV2", [node.part("Fill", [missing, one]), shape], axis=0)
        places = node.part("Where", [node.part("Equal", [padded, one])])
        flat = node.part("Reshape", [places, node.known([-1], dtypes.int32)])
        found.append(node.part("Cast", [flat], SrcT=dtypes.int64, DstT=first.dtype))
    return node.named(found)


@rule("Pad", "PadV2", "MirrorPad")
def _pad(node: Node) -> Sequence[Imported]:
    if node.op == "MirrorPad":
        return _by_rule(node, Rule("MirrorPad"), "MirrorPad")
    value = node.arg("constant_values")[0] if node.op == "PadV2" else node.known(0, node.inputs[0].dtype)
    return [node.make("PadV2", [*node.inputs[:2], value]).outputs[0]]


@rule("StridedSlice")
def _strided_slice(node: Node) -> Sequence[Imported]:
    value, *bounds = node.inputs
    key, bounds = _key(node, *bounds)
    return [node.make("StridedSlice", [value, *bounds], key=key).outputs[0]]


@rule("StridedSliceGrad")
def _strided_slice_grad(node: Node) -> Sequence[Imported]:
    shape, begin, end, strides, d_part = node.inputs
    key, bounds = _key(node, begin, end, strides)
    return [node.make("StridedSliceGrad", [d_part, shape, *bounds], key=key).outputs[0]]


@rule("StridedSliceAssign", "ResourceStridedSliceAssign")
def _strided_slice_assign(node: Node) -> Sequence[Imported]:
    handle, begin, end, strides, value = node.inputs
    key, bounds = _key(node, begin, end, strides)
    dtype, shape = behind(handle)
    made = node.make("StridedSliceAssign", [handle, value, *bounds], key=key, dtype=dtype, shape=shape)
    return [Reference(handle, made, made.outputs[0])] if node.op == "StridedSliceAssign" else []


def _key(node: Node, begin: Tensor, end: Tensor, strides: Tensor) -> tuple[str, list[Tensor]]:
    masks = {name: value for name, value in node.attrs.items() if name.endswith("_mask")}
    with node.building():
        return slice_ops.strided_key(begin, end, strides, **masks)


@rule("DynamicStitch", "ParallelDynamicStitch")
def _stitch(node: Node) -> Sequence[Imported]:
    return [node.make("DynamicStitch", node.inputs, T=node.attrs["T"]).outputs[0]]


# -- gradients of functions ----------------------------------------------------------------------------


@rule("SqrtGrad")
def _sqrt_grad(node: Node) -> Sequence[Imported]:
    y, d_y = node.inputs
    half = node.part("Mul", [d_y, node.known(0.5, y.dtype)])
    return [node.make("RealDiv", [half, y]).outputs[0]]


@rule("RsqrtGrad")
def _rsqrt_grad(node: Node) -> Sequence[Imported]:
    y, d_y = node.inputs
    cube = node.part("Mul", [node.part("Square", [y]), y])
    return [node.make("Mul", [node.part("Mul", [d_y, node.known(-0.5, y.dtype)]), cube]).outputs[0]]


@rule("InvGrad", "ReciprocalGrad")
def _reciprocal_grad(node: Node) -> Sequence[Imported]:
    y, d_y = node.inputs
    return [node.make("Mul", [node.part("Neg", [d_y]), node.part("Square", [y])]).outputs[0]]


@rule("SoftplusGrad")
def _softplus_grad(node: Node) -> Sequence[Imported]:
    d_y, x = node.inputs
    return [node.make("Mul", [d_y, node.part("Sigmoid", [x])]).outputs[0]]


@rule("Div")
def _div(node: Node) -> Sequence[Imported]:
    whole = node.inputs[0].dtype.is_integer
    return [node.make("TruncateDiv" if whole else "RealDiv", node.inputs).outputs[0]]


@rule("Mod")
def _mod(node: Node) -> Sequence[Imported]:
    return [node.make("TruncateMod", node.inputs).outputs[0]]


# -- functions -----------------------------------------------------------------------------------------


def _function(node: Node, attr: str) -> tuple[str, dict[str, Any]]:
    named = node.attrs[attr]
    return named.name, {name: read_attr(value) for name, value in named.attr.items()}


def call(node: Node, function: str, attrs: Mapping[str, Any]) -> list[Imported]:
    """Add what a function does in the place of a node that calls it."""
    given = {name: read_attr(value) for name, value in attrs.items() if not name.startswith("_")}
    outputs, effects = node.body.call(function, given, node.given, node)
    node.controls += effects
    return node.named(outputs)


@rule("PartitionedCall", "StatefulPartitionedCall")
def _partitioned_call(node: Node) -> Sequence[Imported]:
    named = node.attrs["f"]
    return call(node, named.name, named.attr)


def _truth(node: Node, tensor: Tensor) -> Tensor:
    """Whether a scalar is not 0."""
    if tensor.dtype is dtypes.bool_:
        return tensor
    return node.part("NotEqual", [tensor, node.known(0, tensor.dtype)])


@rule("If", "StatelessIf")
def _if(node: Node) -> Sequence[Imported]:
    pred = _truth(node, node.value(node.given[0]))
    found = []
    for attr, scope in (("then_branch", "then"), ("else_branch", "orelse")):
        region, outputs = node.body.region(*_function(node, attr), node.given[1:], node, scope)
        region.outputs = [node.value(output) for output in outputs]
        found.append(region)
    with node.building():
        made = add_cond(pred, *found, name="cond")
    node.controls.append(made)
    return node.named(made.outputs)


@rule("Case", "StatelessCase")
def _case(node: Node) -> Sequence[Imported]:
    raise UnimplementedError(f"Case {node.name!r} is not imported yet")


@rule("While", "StatelessWhile")
def _while(node: Node) -> Sequence[Imported]:
    fixed = _fixed_variables(node)
    variables = [i for i in range(len(node.given)) if i not in fixed]
    condition, results = node.body.region(*_function(node, "cond"), node.given, node, "condition", variables)
    condition.outputs = [node.value(results[0])]
    body, outputs = node.body.region(*_function(node, "body"), node.given, node, "body", variables)
    body.outputs = [node.value(outputs[i]) for i in variables]
    initial = [node.value(node.given[i]) for i in variables]
    with node.building():
        made = add_while(condition, body, initial, "while")
    ends: list[Imported] = list(node.given)
    for index, tensor in zip(variables, made.outputs[1:], strict=False):
        ends[index] = tensor
    node.controls.append(made)
    return node.named(ends)


def _fixed_variables(node: Node) -> set[int]:
    """The variables of a loop that keep their values: they are captured, as handles have to be."""
    function = node.body.functions[node.attrs["body"].name]
    sources = {inner.name: inner.input[0] for inner in function.node_def if inner.op == "Identity" and inner.input}
    fixed = set()
    for index, (arg, result) in enumerate(
        zip(function.signature.input_arg, function.signature.output_arg, strict=True)
    ):
        source = function.ret[result.name].partition(":")[0]
        while source in sources:
            source = sources[source].partition(":")[0]
        if source == arg.name:
            fixed.add(index)
    return fixed


# -- lists of tensors ----------------------------------------------------------------------------------


def _element_shape(node: Node, name: str = "element_shape") -> TensorShape:
    found = node.constant(name)
    if found is None or found.ndim == 0:
        return TensorShape(None)
    return TensorShape([None if size < 0 else size for size in found.tolist()])


def _all_indices(node: Node, flow: Tensor) -> Tensor:
    size = node.part("TensorArraySize", [flow])
    return node.part("Range", [node.known(0, dtypes.int32), size, node.known(1, dtypes.int32)])


@rule("EmptyTensorList")
def _empty_list(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArray", [node.known(0, dtypes.int32)]).outputs[0]]


@rule("TensorListReserve")
def _reserved_list(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArray", node.arg("num_elements")).outputs[0]]


@rule("TensorListPushBack")
def _push(node: Node) -> Sequence[Imported]:
    flow, value = node.inputs
    return [node.make("TensorArrayWrite", [flow, node.part("TensorArraySize", [flow]), value], dynamic=True).outputs[0]]


@rule("TensorListPopBack")
def _pop(node: Node) -> Sequence[Imported]:
    shape, dtype = _element_shape(node), node.attrs["element_dtype"]
    return list(node.make("TensorArrayPop", node.inputs[:1], dtype=dtype, element_shape=shape).outputs)


@rule("TensorListSetItem")
def _set_item(node: Node) -> Sequence[Imported]:
    return [
        node.make("TensorArrayWrite", node.inputs, dynamic=bool(node.attrs["resize_if_index_out_of_bounds"])).outputs[0]
    ]


@rule("TensorListGetItem")
def _get_item(node: Node) -> Sequence[Imported]:
    shape, dtype = _element_shape(node), node.attrs["element_dtype"]
    return [node.make("TensorArrayRead", node.inputs[:2], dtype=dtype, element_shape=shape).outputs[0]]


@rule("TensorListStack")
def _stack_list(node: Node) -> Sequence[Imported]:
    flow = node.inputs[0]
    shape, dtype = _element_shape(node), node.attrs["element_dtype"]
    inputs = [flow, _all_indices(node, flow)]
    return [node.make("TensorArrayGather", inputs, dtype=dtype, element_shape=shape).outputs[0]]


@rule("TensorListGather")
def _gather_list(node: Node) -> Sequence[Imported]:
    shape, dtype = _element_shape(node), node.attrs["element_dtype"]
    return [node.make("TensorArrayGather", node.inputs[:2], dtype=dtype, element_shape=shape).outputs[0]]


@rule("TensorListFromTensor")
def _list_of(node: Node) -> Sequence[Imported]:
    (value,) = node.arg("tensor")
    shape = node.part("Shape", [value], out_type=dtypes.int32)
    size = node.part("StridedSlice", [shape], key="0")
    flow = node.part("TensorArray", [size])
    return [node.make("TensorArrayScatter", [flow, _all_indices(node, flow), value], dynamic=False).outputs[0]]


@rule("TensorListLength")
def _list_length(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArraySize", node.inputs).outputs[0]]


@rule("OptionalFromValue")
def _optional(node: Node) -> Sequence[Imported]:
    flow = node.part("TensorArray", [node.known(len(node.inputs), dtypes.int32)])
    for index, value in enumerate(node.inputs):
        flow = node.part("TensorArrayWrite", [flow, node.known(index, dtypes.int32), value], dynamic=False)
    return node.named([flow])


@rule("OptionalNone")
def _no_optional(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArray", [node.known(0, dtypes.int32)]).outputs[0]]


@rule("OptionalGetValue")
def _optional_value(node: Node) -> Sequence[Imported]:
    found = [
        node.part("TensorArrayRead", [*node.inputs, node.known(i, dtypes.int32)], dtype=dtype, element_shape=shape)
        for i, (dtype, shape) in enumerate(zip(node.attrs["output_types"], node.attrs["output_shapes"], strict=True))
    ]
    return node.named(found)


@rule("TensorArrayV3")
def _tensor_array(node: Node) -> Sequence[Imported]:
    flow = node.make("TensorArray", node.inputs).outputs[0]
    attrs = node.attrs
    return [TensorArrayHandle(attrs["dtype"], attrs["element_shape"], bool(attrs["dynamic_size"])), flow]


def _array(node: Node) -> tuple[TensorArrayHandle, list[Tensor]]:
    handle, *inputs = node.given
    if not isinstance(handle, TensorArrayHandle):
        raise InvalidArgumentError("its first input is not the handle of a TensorArray")
    *inputs, flow = inputs
    return handle, [node.value(flow), *map(node.value, inputs)]


@rule("TensorArrayWriteV3")
def _write(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    if handle.is_gradient:
        return [node.make("TensorArrayAccumulate", inputs).outputs[0]]
    return [node.make("TensorArrayWrite", inputs, dynamic=handle.dynamic).outputs[0]]


@rule("TensorArrayScatterV3")
def _scatter(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    if handle.is_gradient:
        return [node.make("TensorArrayAccumulateRows", inputs).outputs[0]]
    return [node.make("TensorArrayScatter", inputs, dynamic=handle.dynamic).outputs[0]]


@rule("TensorArrayReadV3")
def _read(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    attrs = {"dtype": node.attrs["dtype"], "element_shape": handle.element_shape}
    return [node.make("TensorArrayRead", inputs, **attrs).outputs[0]]


@rule("TensorArrayGatherV3")
def _gather(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    shape = node.attrs["element_shape"]
    attrs = {"dtype": node.attrs["dtype"], "element_shape": handle.element_shape if shape.rank is None else shape}
    return [node.make("TensorArrayGather", inputs, **attrs).outputs[0]]


@rule("TensorArrayConcatV3")
def _concat(node: Node) -> Sequence[Imported]:
    handle, inputs = _array(node)
    attrs = {"dtype": node.attrs["dtype"], "rest": node.attrs["element_shape_except0"]}
    made = node.make("TensorArrayConcat", inputs, **attrs)
    return [made.outputs[0], node.part("Cast", [made.outputs[1]], SrcT=dtypes.int32, DstT=dtypes.int64)]


@rule("TensorArraySplitV3")
def _split(node: Node) -> Sequence[Imported]:
    _, (flow, value, lengths) = _array(node)
    lengths = node.part("Cast", [lengths], SrcT=dtypes.int64, DstT=dtypes.int32)
    return [node.make("TensorArraySplit", [flow, value, lengths]).outputs[0]]


@rule("TensorArraySizeV3")
def _size(node: Node) -> Sequence[Imported]:
    return [node.make("TensorArraySize", _array(node)[1]).outputs[0]]


@rule("TensorArrayCloseV3")
def _close(node: Node) -> Sequence[Imported]:
    node.make("NoOp", [])
    return []
