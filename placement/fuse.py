"""Forms of operations that compute less: with the one before, or with what another has noted.

A bias, and relu, are computed with the convolution that they follow; relu also with batch normalization, and the
gradient of both in one. Max pooling notes where each maximum was if the step needs its gradient too. The gradient of
relu also sums up that of the bias before it. Of a product that is split into columns, only those that are used are
computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor

_ACTIVATIONS: Final = {"Relu": "ReluGrad", "Relu6": "Relu6Grad"}
"""What is computed with batch normalization, and its gradient."""


class FusedForm(NamedTuple):
    """An operation that stands for several.

    Attributes:
        type: Its type.
        inputs: Its inputs.
        attrs: Its attributes.
    """

    type: str
    inputs: list[Tensor]
    attrs: dict[str, Any]


def fused_form(op: Operation, inputs: Sequence[Tensor]) -> FusedForm | None:
    """What computes `op` together with the operation that makes its first input; None if nothing does.

    Args:
        op: The operation. Nothing else uses its first input.
        inputs: Its inputs, in the graph to which the result is to be added.
    """
    if not inputs:
        return None
    former = inputs[0].op
    if former.type == "Conv2D" and former.device == op.device and _adds_bias(op, inputs):
        return FusedForm("_FusedConv2D", [*former.inputs, inputs[1]], {**former.attrs, "fused_ops": ["BiasAdd"]})
    if op.type == "Relu" and former.type == "_FusedConv2D" and former.attrs["fused_ops"] == ["BiasAdd"]:
        attrs = {**former.attrs, "fused_ops": ["BiasAdd", "Relu"]}
        return FusedForm("_FusedConv2D", list(former.inputs), attrs) if former.device == op.device else None
    return _gradient_through_activation(op, inputs) if op.type == "FusedBatchNormGrad" else None


def product_of_part(op: Operation, used: Sequence[int], inputs: Sequence[Tensor]) -> FusedForm | None:
    """What computes of a product only the columns that are used, where `op` splits it; None if that is not so.

    The gradient of a concatenation is a split: of inputs joined with a state, a recurrent cell needs only the state's
    where nothing is trained before the cell.

    Args:
        op: The operation. Nothing else uses its first input.
        used: Which of its results something uses.
        inputs: Its inputs, in the graph to which the result is to be added.
    """
    if op.type not in ("Split", "SplitV") or len(used) != 1 or op.attrs["axis"] not in (1, -1):
        return None
    product = inputs[0].op
    if product.type != "MatMul" or product.device != op.device:
        return None
    widths = [tensor.shape.sizes[1] for tensor in op.outputs[: used[0] + 1]]
    if None in widths:
        return None
    *before, size = widths
    return FusedForm("_MatMulPart", list(product.inputs), {**product.attrs, "begin": sum(before), "size": size})


def activated_by(op: Operation) -> Operation | None:
    """The batch normalization that can compute `op`, its activation, if nothing else uses its images; or None."""
    if op.type not in _ACTIVATIONS or op.control_inputs:
        return None
    former = op.inputs[0].op
    alike = former.type == "FusedBatchNorm" and op.inputs[0].value_index == 0 and former.device == op.device
    return former if alike else None


def activated_form(op: Operation, activation: Operation, inputs: Sequence[Tensor]) -> FusedForm:
    """What computes `op` with its activation (see `activated_by`)."""
    return FusedForm("_FusedBatchNormEx", list(inputs), {**op.attrs, "activation_mode": activation.type})


def _gradient_through_activation(op: Operation, inputs: Sequence[Tensor]) -> FusedForm | None:
    """What computes a gradient of batch normalization with that of the activation after it, if one computed both."""
    through, (_, images, scale, mean, variance) = inputs[0].op, inputs
    if through.type not in _ACTIVATIONS.values() or through.device != op.device:
        return None
    d_outputs, outputs = through.inputs
    norm = outputs.op
    if norm.type != "_FusedBatchNormEx" or outputs.value_index != 0:
        return None
    if _ACTIVATIONS[norm.attrs["activation_mode"]] != through.type:
        return None
    statistics = norm.outputs[3:5] if norm.attrs["is_training"] else norm.inputs[3:5]
    if [*norm.inputs[:2], *statistics] != [images, scale, mean, variance]:
        return None
    taken = [d_outputs, images, scale, mean, variance, norm.inputs[2], outputs]
    attrs = {**op.attrs, "activation_mode": norm.attrs["activation_mode"]}
    return FusedForm("_FusedBatchNormGradEx", taken, attrs)


def noted_by(op: Operation) -> Operation | None:
    """The operation that can note what `op`, which comes later, finds out otherwise; None if there is none."""
    if op.type == "BiasAddGrad":
        return _gate_before(op)
    if op.type != "MaxPoolGrad":
        return None
    images, maxima, _ = op.inputs
    pool = maxima.op
    alike = pool.type == "MaxPool" and pool.inputs[0] is images and pool.device == op.device
    if not alike or any(op.attrs[name] != value for name, value in pool.attrs.items() if not name.startswith("_")):
        return None
    return pool if {*op.placed_with, *pool.placed_with} <= {pool.name} else None


def _gate_before(op: Operation) -> Operation | None:
    """The gradient of an activation that can sum up that of a bias, `op`, while it has it in hand; or None.

    It cannot if it is computed element by element with what comes before it.
    """
    gate = op.inputs[0].op
    if gate.type not in _ACTIVATIONS.values() or gate.device != op.device or op.attrs["data_format"] != "NHWC":
        return None
    before = gate.inputs[0].op.op_def.kernel_for("CPU")
    is_chained = before is not None and before.elementwise is True
    is_alone = not (is_chained or gate.control_inputs or op.control_inputs)
    return gate if is_alone and gate.outputs[0].dtype is dtypes.float32 else None


def noting_form(op: Operation, inputs: Sequence[Tensor]) -> FusedForm:
    """What computes `op`, and notes something for a later operation (see `noted_by`)."""
    if op.type == "MaxPool":
        return FusedForm("_MaxPoolWithPlaces", list(inputs), op.attrs)
    modes = {gradient: activation for activation, gradient in _ACTIVATIONS.items()}
    return FusedForm("_GatedBiasAddGrad", list(inputs), {"activation_mode": modes[op.type], "data_format": "NHWC"})


def noted_result(op: Operation, inputs: Sequence[Tensor]) -> Tensor | None:
    """What has been noted if that is all that `op` computes, else None."""
    if op.type != "BiasAddGrad" or inputs[0].op.type != "_GatedBiasAddGrad" or inputs[0].value_index != 0:
        return None
    return inputs[0].op.outputs[1] if noted_by(op) is not None else None


def form_with_notes(op: Operation, inputs: Sequence[Tensor]) -> FusedForm | None:
    """What computes a gradient by what has been noted for it; None if nothing has.

    Args:
        op: The operation.
        inputs: Its inputs, in the graph to which the result is to be added.
    """
    if op.type != "MaxPoolGrad" or noted_by(op) is None or inputs[1].op.type != "_MaxPoolWithPlaces":
        return None
    images, maxima, d_outputs = inputs
    attrs = {**op.attrs, "_class": [maxima.op.name]}  # what is noted is for one kind of device
    return FusedForm("_MaxPoolGradAtPlaces", [images, maxima, maxima.op.outputs[1], d_outputs], attrs)


def _adds_bias(op: Operation, inputs: Sequence[Tensor]) -> bool:
    """Whether `op` adds a number for each channel to images."""
    layout = inputs[0].op.attrs["data_format"]
    if op.type == "BiasAdd":
        return bool(op.attrs["data_format"] == layout)
    channels = inputs[0].op.inputs[1].shape[3] if op.type == "Add" else None
    return channels is not None and layout == "NHWC" and inputs[1].shape == [channels]
