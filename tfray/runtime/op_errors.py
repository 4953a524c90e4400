"""What went wrong in an operation, as its user reads it: which operation, where, on which line, with what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from tfray.errors import InvalidArgumentError, OpError, ResourceExhaustedError, UnknownError
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import lookup
from tfray.framework.tensor_shape import TensorShape

_SHAPE: Final = re.compile(r"\((\d*(?:,\d*)*)\)")
"""A shape in a message of NumPy."""


def error_of(op: Operation, error: BaseException, device: str, inputs: Sequence[tuple[Tensor, object]]) -> OpError:
    """The error of an operation whose kernel has raised `error`.

    Args:
        op: The operation.
        error: What its kernel raised. An `OpError` of its own, or of none, gets the operation's name.
        device: The name of the device.
        inputs: The inputs with their values; None for a value that is gone.
    """
    if isinstance(error, OpError):
        if error.op_name in (None, op.name):
            error.op_name, error.device, error.site = op.name, device, op.site
        return error
    kind = _kind_of(error)
    what = f"{type(error).__name__}: {error}" if kind is UnknownError else _with_shapes(str(error))
    if kind is InvalidArgumentError and (refusal := _refusal(op, inputs)):
        what = f"{refusal}: {what}"
    shown = ", ".join(_described(tensor, value) for tensor, value in inputs)
    message = f"{op.type}: {what}" + (f"; its inputs were {shown}" if shown else "")
    return kind(message, op_name=op.name, device=device, site=op.site)


class _AsRun:
    """An operation as its shape function knows it, with the shapes that its inputs have in a step."""

    def __init__(self, op: Operation, inputs: Sequence[Tensor]) -> None:
        self._op = op
        self.inputs = inputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)


def _refusal(op: Operation, inputs: Sequence[tuple[Tensor, object]]) -> str:
    """What the shape function says of the shapes of the values, which may not have been known before; or nothing."""
    if len(inputs) != len(op.inputs):
        return ""
    found = []
    for tensor, value in inputs:
        seen = Tensor(tensor.op, tensor.value_index, tensor.dtype)
        seen._shape = TensorShape(getattr(value, "shape", None))
        found.append(seen)
    try:
        lookup(op.type).shape(cast(Operation, _AsRun(op, found)))
    except ValueError as error:
        return str(error)
    return ""


def _with_shapes(what: str) -> str:
    """What NumPy says of operands that do not fit each other, with the shapes first, as TensorFlow has them."""
    shapes = [shape.strip(",").replace(",", ", ") for shape in _SHAPE.findall(what)] if "broadcast" in what else []
    return f"Incompatible shapes: [{shapes[0]}] vs. [{shapes[1]}]: {what}" if len(shapes) > 1 else what


def _kind_of(error: BaseException) -> type[OpError]:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return ResourceExhaustedError
    if isinstance(error, (ValueError, TypeError, IndexError)):
        return InvalidArgumentError
    return UnknownError


def _described(tensor: Tensor, value: object) -> str:
    shape = getattr(value, "shape", None)
    return f"{tensor.name} {tensor.dtype.name}{list(shape) if shape is not None else ''}"
