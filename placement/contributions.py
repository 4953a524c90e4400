"""What a replica sends to the shards: values gathered over several batches, checked, and sent in fewer bits.

All of this is done by operations in the replica's own graph. So it costs no message, and nothing where it is off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.arguments import OneOf, Positive, checked
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.placement.partition import may_be_narrowed
from tfray.runtime.edge_key import EdgeKey

BAD_GRADIENTS: Final = ("report", "skip", "stop")
"""What can be done about gradients that are not finite; see `tf.train.RunConfig`."""

WIRE_DTYPES: Final = ("bfloat16", "float16")
"""Narrower dtypes in which float32 tensors may be sent."""

BadGradients = Annotated[str, OneOf(BAD_GRADIENTS)]
WireDtype = Annotated[str, OneOf(WIRE_DTYPES)]

VERDICT: Final = "_finite_gradients"
"""Name of the operation whose vector tells for each contribution whether it is finite."""

SKIP_VERDICT: Final = "_skip_unless_finite"
"""Name of that operation if shards leave out the replicas that have a contribution which is not finite."""


def verdict_among(keys: Iterable[str]) -> str | None:
    """The key, of those of edges from replicas to a shard, that carries `SKIP_VERDICT`; None if none does."""
    return next((key for key in keys if EdgeKey.parse(key).op_name == SKIP_VERDICT), None)


AddOperation = Callable[..., Operation]
"""``add(op_type, inputs, name, origin, device, attrs)``."""


@checked
@dataclass(frozen=True)
class ReplicaOptions:
    """How replicas compute, and what they send.

    Attributes:
        accumulate: Batches whose gradients a replica averages before it sends them.
        bad_gradients: One of `BAD_GRADIENTS`, or None for no check.
        wire_dtype: One of `WIRE_DTYPES`, in which float32 tensors are sent, or None to send them as they are.
        has_copies: Whether each replica holds a copy of the variables: replicas reduce what they contribute among
            themselves, and each applies it. Then there are no shards.
    """

    accumulate: Positive = 1
    bad_gradients: BadGradients | None = None
    wire_dtype: WireDtype | None = None
    has_copies: bool = False


def default_reduction(dtype: DType) -> str:
    """How contributions without a ReplicaReduce of their own are combined."""
    return "mean" if dtype.is_differentiable else "first"


class Accumulation:
    """Values of one replica over its batches of a step, by tensor of the model and reduction.

    Each batch's values are added to the sum before the next batch begins, so that they need no memory together. Rows of
    sparse gradients are all kept, and joined at the end.

    Args:
        add: Adds an operation to the graph.
        device: The replica's.
        count: Number of batches.
    """

    def __init__(self, add: AddOperation, device: str, count: int) -> None:
        self._add = add
        self._device = device
        self._count = count
        self._parts: dict[tuple[Tensor, str], list[Tensor]] = {}

    def gather(self, key: tuple[Tensor, str], value: Tensor) -> Operation:
        """Take the value of the next batch. Returns the operation after which that value itself is not needed."""
        parts, reduction, origin = self._parts.setdefault(key, []), key[1], key[0].op
        if reduction == "mean":
            if not value.dtype.is_differentiable:
                value = self._made("Cast", [value], origin, DstT=dtypes.float32)
            parts[:] = [self._made("Add", [*parts, value], origin) if parts else value]
        elif reduction != "first" or not parts:
            parts.append(value)
        return parts[-1].op

    def total(self, key: tuple[Tensor, str]) -> Tensor | None:
        """The combined value of all batches; None for a tensor that does not depend on the batch."""
        if key not in self._parts:
            return None
        parts, reduction, origin = self._parts[key], key[1], key[0].op
        joined = self._made("ConcatV2", parts, origin, axis=0) if len(parts) > 1 else parts[0]
        if not reduction.endswith("mean"):
            return joined
        share = np.array(1 / self._count, joined.dtype.numpy)
        scale = self._made("Const", [], origin, value=share, dtype=joined.dtype)
        return self._made("Mul", [joined, scale], origin)

    def _made(self, op_type: str, inputs: list[Tensor], origin: Operation, **attrs: Any) -> Tensor:
        return self._add(op_type, inputs, f"_accumulate/{origin.name}", origin, self._device, attrs).outputs[0]


class FiniteChecks:
    """Checks of floating-point contributions.

    Args:
        add: Adds an operation to the graph.
        device: The replica's.
        mode: One of `BAD_GRADIENTS`.

    Attributes:
        names: For each checked contribution, the variable that is updated from it.
    """

    def __init__(self, add: AddOperation, device: str, mode: str) -> None:
        self.names: list[str] = []
        self._add = add
        self._device = device
        self._mode = mode
        self._flags: dict[Tensor, Tensor] = {}

    def check(self, value: Tensor, origin: Operation, variable: str, is_gradient: bool) -> None:
        """Check `value`, which `origin` contributes to a variable: its gradient, or something else that updates it."""
        if value in self._flags or not value.dtype.is_floating:
            return
        what = "the gradient of" if is_gradient else "what updates"
        failure = f"{what} variable {variable!r}, computed by {origin.name!r}, is not finite"
        attrs = {"failure": failure if self._mode == "stop" else ""}
        made = self._add("AllFinite", [value], f"_finite/{origin.name}", origin, self._device, attrs)
        self._flags[value] = made.outputs[0]
        self.names.append(variable)

    def verdict(self, origin: Operation) -> Tensor | None:
        """A vector that tells for each checked contribution whether it is finite; None if none is checked."""
        if not self._flags:
            return None
        name = SKIP_VERDICT if self._mode == "skip" else VERDICT
        return self._add("Pack", [*self._flags.values()], name, origin, self._device, {"axis": 0}).outputs[0]


class Narrowing:
    """Casts float32 tensors to a narrower dtype before an edge between devices, and back after it.

    Args:
        add: Adds an operation to the graph.
        placement: Device of every operation of the graph.
        dtype: Name of the narrower dtype; None for no casts.
        crosses: Whether anything but contributions is sent from one device to another.
    """

    def __init__(
        self, add: AddOperation, placement: dict[Operation, str], dtype: str | None, crosses: bool = True
    ) -> None:
        self._add = add
        self._crosses = crosses
        self._placement = placement
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._casts: dict[tuple[Tensor, str], Tensor] = {}

    def sent(self, tensor: Tensor) -> Tensor:
        """`tensor` as it leaves its device: cast to the narrower dtype, if there is one."""
        if self._dtype is None or not may_be_narrowed(tensor):
            return tensor
        return self._cast(tensor, self._dtype, self._placement[tensor.op])

    def crossed(self, tensor: Tensor, device: str) -> Tensor:
        """`tensor` as `device` has it: cast for sending and back, if `tensor` is on another device."""
        is_here = self._placement[tensor.op] == device or not self._crosses
        sent = tensor if is_here else self.sent(tensor)
        return tensor if sent is tensor else self._cast(sent, tensor.dtype, device)

    def _cast(self, tensor: Tensor, dtype: DType, device: str) -> Tensor:
        if (tensor, device) not in self._casts:
            name = f"_wire/{tensor.op.name}"
            made = self._add("Cast", [tensor], name, tensor.op, device, {"DstT": dtype})
            self._casts[tensor, device] = made.outputs[0]
        return self._casts[tensor, device]
