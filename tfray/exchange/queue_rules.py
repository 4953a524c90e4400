"""Rules for queues. tfray's operations know the shapes of a queue's elements, TensorFlow's ask the queue."""

from __future__ import annotations

from collections.abc import Sequence

from tfray.exchange.exports import Body, export
from tfray.exchange.node import Imported, Node, rule
from tfray.framework.graph import Operation
from tfray.framework.tensor_shape import TensorShape

TAKEN = ("QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo")


@rule(*TAKEN, *(f"{name}V2" for name in TAKEN))
def _taken(node: Node) -> Sequence[Imported]:
    handle, *count = node.inputs
    types = node.attrs["component_types"]
    shapes = handle.op.attrs.get("shapes") or [TensorShape(None)] * len(types)
    made = node.make(node.op.removesuffix("V2"), [handle, *count], component_types=types, shapes=shapes)
    return list(made.outputs)


@export(*TAKEN)
def _take(body: Body, op: Operation) -> None:
    attrs = {"component_types": op.attrs["component_types"], "timeout_ms": -1}
    body.node(op, f"{op.type}V2", [body.text(tensor) for tensor in op.inputs], attrs)
    body.give(op, f"{op.type}V2", attrs)
