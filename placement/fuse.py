"""Operations that are computed together with the one before: a bias, and relu, with the convolution they follow."""

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


def _adds_bias(op: Operation, inputs: Sequence[Tensor]) -> bool:
    """Whether `op` adds a number for each channel to images."""
    layout = inputs[0].op.attrs["data_format"]
    if op.type == "BiasAdd":
        return bool(op.attrs["data_format"] == layout)
    channels = inputs[0].op.inputs[1].shape[3] if op.type == "Add" else None
    return channels is not None and layout == "NHWC" and inputs[1].shape == [channels]
