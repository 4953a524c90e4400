"""Rules for datasets and their iterators.

Where a dataset has operations that have no equivalent, `without_datasets` leaves it out: the graph is imported up to
the iterator, whose components are then fed, or taken over by ``input_map``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import UnimplementedError
from tfray.exchange.exports import Body, export
from tfray.exchange.import_rules import importable
from tfray.exchange.node import Component, Imported, Node, rule
from tfray.exchange.op_table import tensorflow_op
from tfray.formats.graph_proto import NodeDef
from tfray.formats.tensor_proto import make_tensor_proto
from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor
from tfray.framework.tensor_shape import TensorShape

# -- datasets ------------------------------------------------------------------------------------------

_PLAIN: Final = {
    "TensorDataset": ("TensorDataset", ("components",)),
    "TensorSliceDataset": ("TensorSliceDataset", ("components",)),
    "RangeDataset": ("RangeDataset", ("start", "stop", "step")),
    "RepeatDataset": ("RepeatDataset", ("input_dataset", "count")),
    "BatchDatasetV2": ("BatchDataset", ("input_dataset", "batch_size", "drop_remainder")),
    "TakeDataset": ("TakeDataset", ("input_dataset", "count")),
    "SkipDataset": ("SkipDataset", ("input_dataset", "count")),
    "ZipDataset": ("ZipDataset", ("input_datasets",)),
    "ConcatenateDataset": ("ConcatenateDataset", ("input_dataset", "another_dataset")),
    "PrefetchDataset": ("PrefetchDataset", ("input_dataset", "buffer_size")),
    "TFRecordDataset": ("TFRecordDataset", ("filenames", "compression_type")),
    "TFRecordDatasetV2": ("TFRecordDataset", ("filenames", "compression_type")),
    "TextLineDataset": ("TextLineDataset", ("filenames", "compression_type")),
}
"""The type here, and which inputs it takes, in the order here."""


@rule(*_PLAIN)
def _plain(node: Node) -> Sequence[Imported]:
    op, names = _PLAIN[node.op]
    return _made(node, op, [tensor for name in names for tensor in node.arg(name)])


@rule("BatchDataset")
def _batches(node: Node) -> Sequence[Imported]:
    return _made(node, node.op, [*node.inputs, node.known(False, dtypes.bool_)])


@rule("ShuffleDataset", "ShuffleDatasetV3")
def _shuffled(node: Node) -> Sequence[Imported]:
    return _made(node, "ShuffleDataset", node.inputs[:4], reshuffle=node.attrs["reshuffle_each_iteration"])


@rule("CacheDataset", "CacheDatasetV2")
def _cached(node: Node) -> Sequence[Imported]:
    return _made(node, "CacheDataset", node.inputs[:2], output_types=node.attrs["output_types"])


@rule("OptionsDataset", "ModelDataset", "OptimizeDataset", "OptimizeDatasetV2", "AssertCardinalityDataset")
def _same(node: Node) -> Sequence[Imported]:
    """What says how a dataset is computed."""
    node.make("NoOp", [])
    return [node.inputs[0]]


@rule("DummySeedGenerator", "DummyMemoryCache", "AnonymousSeedGenerator", "AnonymousMemoryCache")
def _nothing(node: Node) -> Sequence[Imported]:
    assert node.definition is not None
    made = node.make("Const", [], value=np.array(0, np.int32), dtype=dtypes.int32).outputs[0]
    return [made] * len(node.definition.outputs)


def _made(node: Node, op: str, inputs: Sequence[Tensor], **attrs: Any) -> Sequence[Imported]:
    made = node.make(op, inputs, **attrs).outputs[0]
    node.body.elements[made] = [TensorShape(shape) for shape in node.attrs.get("output_shapes", [[]])]
    return [made]


# -- functions of elements -----------------------------------------------------------------------------


@rule("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2")
def _mapped(node: Node) -> Sequence[Imported]:
    calls = node.arg("num_parallel_calls")[0] if node.op != "MapDataset" else node.known(1, dtypes.int64)
    if calls.dtype is not dtypes.int64:
        calls = node.part("Cast", [calls], SrcT=calls.dtype, DstT=dtypes.int64)
    return _with_function(node, "MapDataset", "f", [calls])


@rule("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")
def _mapped_batches(node: Node) -> Sequence[Imported]:
    numbers = [node.arg(name)[0] for name in ("batch_size", "num_parallel_calls", "drop_remainder")]
    return _with_function(node, "MapAndBatchDataset", "f", numbers)


@rule("FilterDataset")
def _filtered(node: Node) -> Sequence[Imported]:
    return _with_function(node, "FilterDataset", "predicate", [])


@rule("FlatMapDataset")
def _flattened(node: Node) -> Sequence[Imported]:
    return _with_function(node, "InterleaveDataset", "f", [node.known(1, dtypes.int64) for _ in range(3)])


@rule("InterleaveDataset")
def _interleaved(node: Node) -> Sequence[Imported]:
    lengths = [node.arg(name)[0] for name in ("cycle_length", "block_length")]
    return _with_function(node, "InterleaveDataset", "f", [*lengths, node.known(1, dtypes.int64)])


def _with_function(node: Node, op: str, attr: str, numbers: Sequence[Tensor]) -> Sequence[Imported]:
    (parent,), captured = node.arg("input_dataset"), node.arg("other_arguments")
    function = node.attrs[attr]
    types = node.body.input_dtypes(function.name)
    shapes = node.body.elements.get(parent) or [TensorShape(None)] * (len(types) - len(captured))
    components = [Component(dtype) for dtype in types[: len(shapes)]]
    region, outputs = node.body.region(
        function.name,
        node.body.given(function),
        [*components, *captured],
        node,
        "function",
        dict(enumerate(shapes)),
        runs_often=True,
    )
    region.outputs = [node.value(output) for output in outputs]
    inputs = [parent, *numbers, *region.captures]
    return _made(node, op, inputs, function=region, parameters=len(shapes))


# -- iterators -----------------------------------------------------------------------------------------


@rule("MakeIterator")
def _begin(node: Node) -> Sequence[Imported]:
    dataset, iterator = node.inputs
    node.make("MakeIterator", [iterator, dataset])
    return []


@rule("OneShotIterator")
def _once(node: Node) -> Sequence[Imported]:
    factory = node.attrs["dataset_factory"]
    (dataset,), _ = node.body.call(factory.name, node.body.given(factory), [], node)
    iterator = node.make("Iterator", [], shared_name=node.attrs["shared_name"]).outputs[0]
    node.body.begun[iterator] = dataset
    return [iterator]


@rule("IteratorGetNext", "IteratorGetNextSync")
def _next(node: Node) -> Sequence[Imported]:
    (iterator,) = node.inputs
    dataset = node.body.begun.get(iterator)
    attrs = {key: node.attrs[key] for key in ("output_types", "output_shapes")}
    return list(node.make("IteratorGetNext", [iterator, *([dataset] if dataset is not None else [])], **attrs).outputs)


@export("IteratorGetNext")
def _write_next(body: Body, op: Operation) -> None:
    if len(op.inputs) > 1:
        raise UnimplementedError(f"{op.name!r} begins with a dataset, which TensorFlow's does not")
    attrs = {key: op.attrs[key] for key in ("output_types", "output_shapes")}
    body.made(op, op.type, [body.text(op.inputs[0])], **attrs)


# -- datasets that are left out ------------------------------------------------------------------------


def without_datasets(nodes: Sequence[NodeDef], functions: Mapping[str, Any]) -> list[NodeDef]:
    """The nodes of a graph without the datasets that cannot be imported, if iterators alone read them.

    What takes the elements of such a dataset fails when it is run, with an error that says what to feed.
    """
    producers = {node.name: node for node in nodes}
    lost: dict[str, set[str]] = {}
    for node in nodes:
        unknown = {op for op in _types_of(node, functions) if op not in functions and not importable(op)}
        if unknown and (_is_dataset(node.op) or node.op == "OneShotIterator"):
            lost[node.name] = unknown
    ahead = True
    while lost and ahead:
        found = {
            node.name: set().union(*(lost[name] for name in _inputs(node) if name in lost))
            for node in nodes
            if node.name not in lost and any(name in lost for name in _inputs(node)) and _is_dataset(node.op)
        }
        ahead = bool(found)
        lost |= found
    iterators: dict[str, set[str]] = {name: lost[name] for name in lost if producers[name].op == "OneShotIterator"}
    for node in nodes:
        left_out = [name for name in _inputs(node) if name in lost and name not in iterators]
        if node.name not in lost and left_out:
            if node.op != "MakeIterator":
                return list(nodes)
            iterators[node.input[1].partition(":")[0]] = lost[left_out[0]]
    return list(_cut(nodes, lost, iterators)) if lost else list(nodes)


def _cut(nodes: Iterable[NodeDef], lost: Collection[str], iterators: Mapping[str, set[str]]) -> Iterable[NodeDef]:
    for node in nodes:
        if node.name in iterators and node.op == "OneShotIterator":
            kept = ("shared_name", "container", "output_types", "output_shapes")
            attr = {key: node.attr[key] for key in kept if key in node.attr}
            yield NodeDef(name=node.name, op="IteratorV2", device=node.device, attr=attr)
        elif node.op == "MakeIterator" and any(name in lost for name in _inputs(node)):
            controls = [text for text in node.input if text[0] == "^" and text[1:] not in lost]
            yield NodeDef(name=node.name, op="NoOp", device=node.device, input=controls)
        elif node.op.startswith("IteratorGetNext") and any(name in iterators for name in _inputs(node)):
            unknown = next(iterators[name] for name in _inputs(node) if name in iterators)
            yield from _failing(node, unknown)
        elif node.name not in lost:
            yield node


def _failing(node: NodeDef, unknown: Collection[str]) -> Iterable[NodeDef]:
    """What takes the next element, behind an error."""
    count = len(node.attr["output_types"].list.type)
    outputs = ", ".join(f"{node.name}:{index}" for index in range(count))
    said = (
        f"the dataset of {node.name!r} was left out when the graph was imported, because tfray has no equivalent of "
        f"{', '.join(sorted(unknown))}: feed {outputs}, or import the graph with input_map for them"
    )
    names = [f"{node.name}/left_out/{part}" for part in ("false", "text", "error")]
    for name, kind, value in ((names[0], dtypes.bool_, False), (names[1], dtypes.string, said)):
        constant = NodeDef(name=name, op="Const")
        constant.attr["dtype"].type = int(kind)
        constant.attr["value"].tensor.CopyFrom(make_tensor_proto(value))
        yield constant
    error = NodeDef(name=names[2], op="Assert", input=names[:2])
    error.attr["T"].list.type.append(int(dtypes.string))
    yield error
    changed = NodeDef()
    changed.CopyFrom(node)
    changed.input.append(f"^{names[2]}")
    yield changed


def _inputs(node: NodeDef) -> Iterable[str]:
    return (text.lstrip("^").partition(":")[0] for text in node.input)


def _is_dataset(op: str) -> bool:
    definition = tensorflow_op(op)
    if definition is None or "Dataset" not in op:
        return False
    return [output.type for output in definition.outputs] == ["variant"]


def _types_of(node: NodeDef, functions: Mapping[str, Any]) -> set[str]:
    """The types of a node and of what is in its functions."""
    found, seen, ahead = {node.op}, set(), [node]
    while ahead:
        for value in ahead.pop().attr.values():
            for name in [value.func.name] if value.HasField("func") else [each.name for each in value.list.func]:
                if name in functions and name not in seen:
                    seen.add(name)
                    found |= {inner.op for inner in functions[name].node_def}
                    ahead += functions[name].node_def
    return found
