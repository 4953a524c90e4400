"""What went wrong in an operation, as its user reads it: which operation, where, on which line, with what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tfray.errors import InvalidArgumentError, OpError, ResourceExhaustedError, UnknownError
from tfray.framework.graph import Operation, Tensor

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
    shown = ", ".join(_described(tensor, value) for tensor, value in inputs)
    message = f"{op.type}: {what}" + (f"; its inputs were {shown}" if shown else "")
    return kind(message, op_name=op.name, device=device, site=op.site)


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
