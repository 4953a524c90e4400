"""Rules for queues, accumulators, barriers and staging areas, in and out.

tfray's operations know the shapes of what they take, TensorFlow's ask the resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from tfray.exchange.exports import Body, export
from tfray.exchange.node import Imported, Node, rule
from tfray.formats.graph_proto import NodeDef
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import passed_inputs, regions_of
from tfray.framework.tensor_shape import TensorShape

# -- queues and barriers -------------------------------------------------------------------------------

TAKEN = ("QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo")


def _made_by(body: Body, op: Operation) -> Operation:
    """What makes the handle that an operation takes, there where it is made: perhaps outside a branch or a loop."""
    return body.origins.get(op.inputs[0], op.inputs[0]).op


def _uses(handle: Tensor) -> Iterator[Operation]:
    """The operations that take a handle, those in branches and loops as well."""
    for op in handle.consumers():
        yield op
        for region in regions_of(op):
            for inside, passed in passed_inputs(op, region):
                if passed is handle:
                    yield from _uses(inside)


def _shapes(handle: Tensor, count: int) -> list[TensorShape]:
    """The shapes of the components of what a queue or barrier holds, as far as they are known."""
    shapes = [*(handle.op.attrs.get("shapes") or ())]
    return shapes if len(shapes) == count else [TensorShape(None)] * count


@rule("PriorityQueue", "PriorityQueueV2")
def _priority_queue(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("capacity", "container", "shared_name")}
    # The priorities are a component here; there they are not listed.
    attrs["component_types"] = [dtypes.int64, *node.attrs["component_types"]]
    attrs["shapes"] = [TensorShape([]), *node.attrs["shapes"]] if node.attrs["shapes"] else []
    return [node.make("PriorityQueue", [], **attrs).outputs[0]]


@export("PriorityQueue")
def _write_priority_queue(body: Body, op: Operation) -> None:
    attrs = {key: op.attrs[key] for key in ("capacity", "container", "shared_name")}
    attrs |= {key: list(op.attrs[key])[1:] for key in ("component_types", "shapes")}
    body.made(op, "PriorityQueueV2", [], **attrs)


@rule(*TAKEN, *(f"{name}V2" for name in TAKEN))
def _taken(node: Node) -> Sequence[Imported]:
    handle, *count = node.inputs
    types = node.attrs["component_types"]
    shapes = _shapes(handle, len(types))
    made = node.make(node.op.removesuffix("V2"), [handle, *count], component_types=types, shapes=shapes)
    return list(made.outputs)


@export(*TAKEN)
def _take(body: Body, op: Operation) -> None:
    _give(body, op, f"{op.type}V2", {"component_types": op.attrs["component_types"], "timeout_ms": -1})


def _give(body: Body, op: Operation, there: str, attrs: dict[str, Any]) -> None:
    """Write an operation that has the same inputs and outputs there."""
    body.made(op, there, [body.text(tensor) for tensor in op.inputs], **attrs)


@rule("BarrierTakeMany")
def _taken_of_barrier(node: Node) -> Sequence[Imported]:
    types = node.attrs["component_types"]
    attrs = {"component_types": types, "allow_small_batch": node.attrs["allow_small_batch"]}
    made = node.make(node.op, node.inputs, shapes=_shapes(node.inputs[0], len(types)), **attrs)
    return list(made.outputs)


@export("BarrierTakeMany")
def _take_of_barrier(body: Body, op: Operation) -> None:
    _give(body, op, op.type, {key: op.attrs[key] for key in ("component_types", "allow_small_batch")})


# -- accumulators --------------------------------------------------------------------------------------


@rule("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient")
def _gradient(node: Node) -> Sequence[Imported]:
    shape = node.inputs[0].op.attrs.get("shape", TensorShape(None))
    made = node.make(node.op.removeprefix("Resource"), node.inputs, shape=shape, dtype=node.attrs["dtype"])
    return list(made.outputs)


@export("AccumulatorTakeGradient")
def _take_gradient(body: Body, op: Operation) -> None:
    _give(body, op, "ResourceAccumulatorTakeGradient", {"dtype": op.outputs[0].dtype})


@export("SparseAccumulatorTakeGradient")
def _take_sparse_gradient(body: Body, op: Operation) -> None:
    _give(body, op, op.type, {"dtype": op.outputs[1].dtype})


@rule("SparseAccumulatorApplyGradient")
def _sparse_gradient(node: Node) -> Sequence[Imported]:
    known = slice(None) if node.attrs["has_known_shape"] else slice(4)
    node.make(node.op, node.inputs[known], dtype=node.attrs["dtype"])
    return []


@export("SparseAccumulatorApplyGradient")
def _apply_sparse_gradient(body: Body, op: Operation) -> None:
    known, inputs = len(op.inputs) > 4, [body.text(tensor) for tensor in op.inputs]
    if not known:
        inputs.append(body.constant(op, "shape", [], dtypes.int64))
    body.node(op, op.type, inputs, {"dtype": op.inputs[3].dtype, "has_known_shape": known})


@export("AccumulatorNumAccumulated", "AccumulatorSetGlobalStep")
def _use_accumulator(body: Body, op: Operation) -> None:
    is_sparse = _made_by(body, op).type == "SparseConditionalAccumulator"
    _give(body, op, op.type if is_sparse else f"Resource{op.type}", {})


# -- staging areas -------------------------------------------------------------------------------------

AREAS: Final = {"StagingArea": "", "MapStagingArea": "Map", "OrderedMapStagingArea": "OrderedMap"}
"""TensorFlow has no operation for an area: those that use it have its name. Before the names of these, by area."""

USES: Final = ("Stage", "Unstage", "UnstageNoKey", "Peek", "Size", "IncompleteSize", "Clear")


def _theirs(prefix: str, use: str) -> str:
    return prefix + use if prefix or use in ("Stage", "Unstage") else f"Stage{use}"


_USES: Final = {
    _theirs(prefix, use): (prefix, use)
    for prefix in AREAS.values()
    for use in USES
    if prefix or use not in ("UnstageNoKey", "IncompleteSize")
}


def staged_components(nodes: Iterable[NodeDef]) -> dict[str, int]:
    """How many components the elements of areas have, by their names. What takes some components lists only these."""
    found: dict[str, int] = {}
    for node in nodes:
        if node.op in _USES:
            name = node.attr["shared_name"].s.decode() or node.name
            found[name] = max(found.get(name, 0), len(node.attr["dtypes"].list.type))
    return found


@rule(*_USES)
def _use_area(node: Node) -> Sequence[Imported]:
    prefix, use = _USES[node.op]
    limits = {key: node.attrs[key] for key in ("capacity", "memory_limit", "container")}
    shared_name = node.attrs["shared_name"] or node.name
    count = node.body.components.get(shared_name, len(node.attrs["dtypes"]))
    limits |= {"component_count": count, "shared_name": shared_name}
    if prefix:
        limits["ordered"] = prefix == "OrderedMap"
    area = node.part("MapStagingArea" if prefix else "StagingArea", [], "area", **limits)
    types = node.attrs["dtypes"]
    returned = use in ("Unstage", "UnstageNoKey", "Peek")
    more: dict[str, Any] = {"types": types, "shapes": [TensorShape(None)] * len(types)} if returned else {}
    names = [arg.name for arg in node.definition.inputs if arg.name != "indices"] if node.definition else []
    if prefix and (returned or use == "Stage"):
        more["indices"] = list(node.needed("indices"))
    inputs = [tensor for name in names for tensor in node.arg(name)]
    ours = f"Stage{use}" if use in ("Size", "Clear") else _theirs("Map" if prefix else "", use)
    made = node.make(ours, [area, *inputs], **more)
    return list(made.outputs)


@export("StagingArea", "MapStagingArea")
def _area(body: Body, op: Operation) -> None:
    if any(map(regions_of, op.outputs[0].consumers())):  # functions there take something for it, and do not use it
        body.keep(op, body.made(op, "FakeParam", [], dtype=dtypes.resource, shape=TensorShape([])))
    else:
        body.keep(op, body.node(op, "NoOp", [], {}))


@export(*(use for use in _USES if not use.startswith("Ordered") and use not in ("MapClear", "MapSize")))
def _use_of_area(body: Body, op: Operation) -> None:
    area = _made_by(body, op)
    prefix = "" if area.type == "StagingArea" else "OrderedMap" if area.attrs["ordered"] else "Map"
    use = _USES[op.type][1]
    kinds = _kinds(area)
    attrs = {key: area.attrs[key] for key in ("capacity", "memory_limit", "container")}
    attrs |= {"dtypes": kinds, "shared_name": area.attrs["shared_name"] or area.name}
    inputs = [body.text(tensor) for tensor in op.inputs[1:]]
    if "indices" in op.attrs:
        place = 0 if use == "UnstageNoKey" else 1
        inputs.insert(place, body.constant(op, "indices", op.attrs["indices"]))
    there = _theirs(prefix, use)
    if prefix and use == "Stage":
        attrs["fake_dtypes"] = [tensor.dtype for tensor in op.inputs[2:]]
    made = body.made(op, there, inputs, **attrs)
    body.keep(op, made)


def _kinds(area: Operation) -> list[DType]:
    """The dtypes of the components of what an area holds, as its other uses tell them."""
    kinds: list[DType] = [dtypes.float32] * area.attrs["component_count"]
    for use in _uses(area.outputs[0]):
        if use.type not in _USES or use.type in ("StageSize", "StageClear", "MapIncompleteSize"):
            continue
        indices = use.attrs.get("indices", range(len(kinds)))
        given = use.attrs.get("types") or [tensor.dtype for tensor in use.inputs[2 if "indices" in use.attrs else 1 :]]
        if len(given) == len(indices):
            for index, kind in zip(indices, given, strict=True):
                kinds[index] = kind
    return kinds
