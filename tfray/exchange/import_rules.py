"""What tfray has for each operation type of TensorFlow.

A type without a rule has the same name here. Inputs go over by name where both sides name them alike, otherwise by
place. Attributes go over by name. An attribute that tfray does not have may only have its default value, unless it is
one of `HINTS`, which change no value.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tfray.errors import UnimplementedError
from tfray.exchange.node import FUNCTIONS, Imported, Node, Reference, behind
from tfray.exchange.op_table import TensorFlowOp, operation_type
from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import OpDef, lookup, registered_ops, variant_name
from tfray.framework.region import variable_behind
from tfray.framework.tensor_shape import TensorShape

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
        "sparse_gradient",
        "tensor_array_name",
        "use_node_name_sharing",
        "seed",
        "seed2",
        "message",
    }
)
"""Attributes that say how, not what."""


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

ONE_OF_ALL: Final = {"value_shape": TensorShape([]), "is_mutable": False}
ONE_OF_EACH: Final = {"value_shape": TensorShape([]), "is_mutable": True}

RULES: Final[dict[str, Rule]] = {
    "Add": Rule(),
    "AddV2": Rule("Add"),
    "AssignAddVariableOp": Rule("AssignAdd"),
    "AssignSubVariableOp": Rule("AssignSub"),
    "BatchMatMul": Rule(attrs=MATRIX),
    "BatchMatMulV2": Rule("BatchMatMul", attrs=MATRIX),
    "ConcatV2": Rule(known={"axis": "axis"}),
    "Concat": Rule("ConcatV2", known={"concat_dim": "axis"}),
    "FusedBatchNormV2": BATCH_NORM,
    "FusedBatchNormV3": BATCH_NORM,
    "FusedBatchNormGrad": BATCH_NORM_GRAD,
    "FusedBatchNormGradV2": BATCH_NORM_GRAD,
    "FusedBatchNormGradV3": BATCH_NORM_GRAD,
    "Gather": Rule("GatherV2", given={"axis": 0, "batch_dims": 0}),
    "GatherV2": Rule(known={"axis": "axis"}),
    "HashTable": Rule(given=ONE_OF_ALL),
    "HashTableV2": Rule("HashTable", given=ONE_OF_ALL),
    "MutableHashTable": Rule("HashTable", given=ONE_OF_EACH),
    "MutableHashTableV2": Rule("HashTable", given=ONE_OF_EACH),
    "MutableHashTableOfTensors": Rule("HashTable", given={"is_mutable": True}),
    "MutableHashTableOfTensorsV2": Rule("HashTable", given={"is_mutable": True}),
    "InitializeTableV2": Rule("InitializeTable"),
    "Inv": Rule("Reciprocal"),
    "LookupTableFind": Rule(given={"key_rank": 0}),
    "LookupTableFindV2": Rule("LookupTableFind", given={"key_rank": 0}),
    "LookupTableSizeV2": Rule("LookupTableSize"),
    "MaxPoolV2": Rule("MaxPool", known={"ksize": "ksize", "strides": "strides"}),
    "PlaceholderV2": Rule("Placeholder"),
    "PreventGradient": Rule("Identity"),
    "ResourceCountUpTo": Rule("CountUpTo", attrs={"T": "dtype"}),
    "ReverseV2": Rule(known={"axis": "axis"}),
    "Roll": Rule(known={"axis": "axis"}, given={"backwards": False}),
    "SparseSegmentMeanWithNumSegments": Rule("SparseSegmentMean"),
    "SparseSegmentSqrtNWithNumSegments": Rule("SparseSegmentSqrtN"),
    "SparseSegmentSumWithNumSegments": Rule("SparseSegmentSum"),
    "Split": Rule(known={"split_dim": "axis"}),
    "SplitV": Rule(known={"split_dim": "axis"}),
    "TruncatedNormal": Rule(given={"mean": 0.0, "stddev": 1.0}),
    "RandomStandardNormal": Rule(given={"mean": 0.0, "stddev": 1.0}),
    "RandomUniform": Rule(given={"minval": 0.0, "maxval": 1.0}),
    "TensorSummaryV2": Rule(given={"description": ""}),
    "Transpose": Rule(given={"conjugate": False}),
    "ConjugateTranspose": Rule("Transpose", given={"conjugate": True}),
    "GuaranteeConst": Rule("Identity"),
    "MaxPoolGradV2": Rule("MaxPoolGrad", known={"ksize": "ksize", "strides": "strides"}),
    "ReduceJoin": Rule(given={"over_all": False}),
    "ResizeArea": Rule(given={"half_pixel_centers": False, "Tout": dtypes.float32}),
    "ResizeBicubic": Rule(given={"Tout": dtypes.float32}),
    "ResizeBilinear": Rule(given={"Tout": dtypes.float32}),
    "Squeeze": Rule(attrs={"squeeze_dims": "axis"}),
    "VarIsInitializedOp": Rule("IsVariableInitialized"),
}


@functools.cache
def target_of(op: str) -> tuple[Rule, str] | None:
    """The rule for a type of TensorFlow's and the type here; None if there is no equivalent."""
    found = RULES.get(op)
    if found is None:
        bare = op.removeprefix("Resource")
        names = (op, bare, bare.removesuffix("V2"), bare.removesuffix("V3"))
        return next(((Rule(name), name) for name in names if name in registered_ops()), None)
    name = found.op or op
    return (found, name) if name in registered_ops() else None


@functools.cache
def importable(op: str) -> bool:
    """Whether there is an equivalent of a type of TensorFlow's."""
    if op in FUNCTIONS:
        return True
    definition, found = operation_type(op), target_of(op)
    return definition is not None and found is not None and not _missing(definition, *found)


def _missing(definition: TensorFlowOp, found: Rule, name: str) -> list[str]:
    """Attributes of tfray's type that nothing determines, or ``inputs`` where there are more or fewer."""
    ours = lookup(name)
    determined = {found.attrs.get(attr, attr) for attr in definition.attrs} | {*found.known.values(), *found.given}
    first = ours.input_arguments[0].type if ours.input_arguments else ""
    if first == "resource" and ours.access is not None:
        determined |= {"shape", "dtype"}
    names = found.inputs or tuple(arg.name for arg in definition.inputs if arg.name not in found.known)
    variadic = bool(ours.input_arguments) and ours.input_arguments[-1].count is not None
    if len(names) != len(ours.input_arguments) and not (variadic and len(names) == len(ours.input_arguments) - 1):
        return ["inputs"]
    counts = {argument.count for argument in ours.output_arguments}
    return [attr for attr in ours.attrs if attr not in determined and attr not in counts]


def imported(node: Node) -> list[Imported]:
    """Add an operation; what its outputs are here."""
    function = FUNCTIONS.get(node.op)
    if function is not None:
        return list(function(node))
    found = target_of(node.op)
    assert found is not None and node.definition is not None
    return by_rule(node, *found)


def by_rule(node: Node, found: Rule, name: str) -> list[Imported]:
    ours, theirs = lookup(name), node.definition
    assert theirs is not None
    inputs = _inputs(node, found, ours)
    attrs: dict[str, Any] = dict(found.given)
    for attr, value in node.attrs.items():
        here = found.attrs.get(attr, attr)
        bound = any(argument.type == here for argument in ours.input_arguments)
        if here in ours.attrs or (here in ours.types and not bound):
            attrs[here] = value
        elif (
            not bound
            and attr not in theirs.implied
            and attr not in HINTS
            and not _is_default(value, theirs.attrs[attr].default)
        ):
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


def _is_default(value: Any, default: Any) -> bool:
    """Whether an attribute has its default value. Messages hold numbers in single precision."""
    if isinstance(value, float) and isinstance(default, float):
        return bool(np.float32(value) == np.float32(default))
    return bool(value == default)


def _inputs(node: Node, found: Rule, ours: OpDef) -> list[Tensor]:
    assert node.definition is not None
    names = [arg.name for arg in node.definition.inputs if arg.name not in found.known]
    here = [argument.name for argument in ours.input_arguments]
    by_name = ours.access is not None and sorted(here) == sorted(names)
    order = found.inputs or (here if by_name else names)
    tensors = [tensor for name in order for tensor in node.arg(name)]
    for index, argument in enumerate(ours.input_arguments[: len(tensors)]):
        # Where TensorFlow takes int32 and int64, tfray may take one of them.
        if argument.type in ("int32", "int64") and tensors[index].dtype in dtypes.INDICES:
            wanted = dtypes.as_dtype(argument.type)
            if tensors[index].dtype is not wanted:
                tensors[index] = node.part("Cast", [tensors[index]], SrcT=tensors[index].dtype, DstT=wanted)
    return tensors


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
    first = node.given[0] if node.given else None
    if len(args) == 1 and args[0].is_ref and isinstance(first, Reference):
        return [Reference(first.handle, made, made.outputs[0] if made.outputs else None)]
    count = sum(arg.count(node.attrs) for arg in args)
    if count > len(made.outputs):
        raise UnimplementedError(f"{node.op} {node.name!r} has {count} outputs, and tfray's has {len(made.outputs)}")
    return list(made.outputs[:count])
