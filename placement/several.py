"""Queue runners: the form of an operation that takes several elements of one queue, and adds them to another, at once.

A queue runner repeats one operation: it takes an element of a queue, or a record of a reader, computes something of it,
and adds that to another queue. As many of these steps as need not wait can as well be one: for so many elements as are
there, and find room. What lies between the two is built anew from the rules of `tfray.ops.kernels.batch_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from tfray.errors import InvalidArgumentError
from tfray.framework.effects import access_of, is_stateful, makes_resource
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.traversal import reachable_backward, topological_order
from tfray.ops.dataflow.queue_ops import QUEUE_DEQUEUE, QUEUE_DEQUEUE_SOME, QUEUE_ENQUEUE, QUEUE_ENQUEUE_SOME
from tfray.ops.dataflow.reader_ops import READER_READ, READER_READ_SOME
from tfray.ops.dataflow.resource_operations import use_resource
from tfray.ops.kernels.batch_rules import Batch, Value
from tfray.placement.simplify import copied
from tfray.runtime.over_batch import NoRuleError, over_batch

_MOST: Final = 256
_MOST_BYTES: Final = 1 << 20
"""1 MiB of what is added at once: it stays in a core's cache."""


def several_at_once(enqueue: Operation) -> Operation | None:
    """The form of an operation that takes and adds several elements, in a graph of its own; None if it has none.

    It adds what repeated steps of `enqueue` would add, in their order. If it fails, the elements of which it has added
    nothing are back in their queue: then `enqueue` itself says what is wrong.
    """
    if not isinstance(enqueue, Operation) or enqueue.op_def is not QUEUE_ENQUEUE:
        return None
    ops = topological_order(reachable_backward([enqueue]))
    sources = [op for op in ops if op.op_def in (QUEUE_DEQUEUE, READER_READ)]
    if len(sources) != 1 or any(op.control_inputs or op.op_def.regions for op in ops):
        return None
    (source,) = sources
    target, handles = enqueue.inputs[0], list(source.inputs)
    shapes = source.attrs.get("shapes", [tensor.shape for tensor in source.outputs])
    is_stacked = bool(shapes) and all(shape.is_fully_defined() for shape in shapes)
    if not is_stacked or target in handles or {handle.op.device for handle in handles} != {target.op.device}:
        return None
    try:
        return _built(ops, source, enqueue)
    except (NoRuleError, InvalidArgumentError, ValueError):
        return None


def _built(ops: Sequence[Operation], source: Operation, enqueue: Operation) -> Operation:
    values: dict[Tensor, Value] = {}
    later = _dependents(ops, source)
    with Graph().as_default() as graph:
        for op in ops:
            if op is not source and op not in later:
                _check_repeatable(op)
                values.update(zip(op.outputs, copied(graph, op, _tensors(op, values)).outputs, strict=True))
        handles, (target,) = _tensors(source, values), _tensors(enqueue, values, 1)
        most = _most([*source.outputs, *enqueue.inputs[1:]])
        definition, attrs = READER_READ_SOME, {}
        if source.op_def is QUEUE_DEQUEUE:
            definition, attrs = QUEUE_DEQUEUE_SOME, {n: source.attrs[n] for n in ("component_types", "shapes")}
        taken, count, *components = use_resource(definition, *handles, target, name=source.name, most=most, **attrs)
        values.update(zip(source.outputs, map(Batch, components), strict=True))
        for op in ops:
            if op in later and op is not enqueue:
                with graph.device(op.device):
                    outputs = over_batch(op, [values[tensor] for tensor in op.inputs], count)
                values.update(zip(op.outputs, outputs, strict=True))
        added = [values[tensor] for tensor in enqueue.inputs[1:]]
        rows = [value.tensor for value in added if isinstance(value, Batch) and value.lengths is None]
        if len(rows) < len(added):
            raise NoRuleError
        several: Operation = use_resource(QUEUE_ENQUEUE_SOME, target, taken, rows, name=enqueue.name)
        return several


def _dependents(ops: Sequence[Operation], source: Operation) -> set[Operation]:
    """The operations that take what `source` gives, or what is made of it."""
    found: set[Operation] = set()
    for op in ops:
        if any(tensor.op is source or tensor.op in found for tensor in op.inputs):
            found.add(op)
    return found


def _check_repeatable(op: Operation) -> None:
    """Raise `NoRuleError` for what is not the same in several steps: random numbers, counters, Python functions."""
    if is_stateful(op) and not makes_resource(op) and access_of(op) != "read":
        raise NoRuleError


def _tensors(op: Operation, values: Mapping[Tensor, Value], count: int | None = None) -> list[Tensor]:
    inputs = [values[tensor] for tensor in op.inputs[:count]]
    return [value for value in inputs if isinstance(value, Tensor)]


def _most(tensors: Sequence[Tensor]) -> int:
    sizes = [_bytes_of(tensor.shape, tensor) for tensor in tensors]
    return max(1, min(_MOST, _MOST_BYTES // max(1, sum(sizes))))


def _bytes_of(shape: TensorShape, tensor: Tensor) -> int:
    return prod(size or 1 for size in shape.sizes) * tensor.dtype.numpy.itemsize if shape.rank is not None else 0
