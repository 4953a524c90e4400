"""Forms of operations that compute less: with the one before, or with what another has noted.

A bias, and relu, are computed with the convolution that they follow. Max pooling notes where each maximum was if the
step needs its gradient too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tfray.framework.graph import Operation, Tensor


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
    return None


def noted_by(op: Operation) -> Operation | None:
    """The operation that can note what `op`, its gradient, finds out otherwise; None if there is none."""
    if op.type != "MaxPoolGrad":
        return None
    images, maxima, _ = op.inputs
    pool = maxima.op
    alike = pool.type == "MaxPool" and pool.inputs[0] is images and pool.device == op.device
    if not alike or any(op.attrs[name] != value for name, value in pool.attrs.items() if not name.startswith("_")):
        return None
    return pool if {*op.placed_with, *pool.placed_with} <= {pool.name} else None


def noting_form(op: Operation, inputs: Sequence[Tensor]) -> FusedForm:
    """What computes `op`, and notes something for its gradient (see `noted_by`)."""
    return FusedForm("_MaxPoolWithPlaces", list(inputs), op.attrs)


def form_with_notes(op: Operation, inputs: Sequence[Tensor]) -> FusedForm | None:
    """What computes a gradient by what has been noted for it; None if nothing has.

    Args:
        op: The operation.
        inputs: Its inputs, in the graph to which the result is to be added.
    """
    if noted_by(op) is None or inputs[1].op.type != "_MaxPoolWithPlaces":
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
