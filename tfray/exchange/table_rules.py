"""Rules for tables of keys and values, in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.exchange.exports import Body, export
from tfray.exchange.node import Imported, Node, rule
from tfray.framework.graph import Operation
from tfray.framework.tensor_shape import TensorShape


@rule("MutableDenseHashTable", "MutableDenseHashTableV2")
def _dense_table(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("shared_name", "key_dtype", "value_dtype", "value_shape")}
    return [node.make("HashTable", [], is_mutable=True, **attrs).outputs[0]]


@rule("LookupTableExport", "LookupTableExportV2")
def _contents(node: Node) -> Sequence[Imported]:
    shape = node.inputs[0].op.attrs.get("value_shape", TensorShape(None))
    types = {key: node.attrs[key] for key in ("Tkeys", "Tvalues")}
    return list(node.make("LookupTableExport", node.inputs, value_shape=shape, **types).outputs)


@export("LookupTableExport")
def _export_contents(body: Body, op: Operation) -> None:
    attrs = {"Tkeys": op.outputs[0].dtype, "Tvalues": op.outputs[1].dtype}
    body.made(op, "LookupTableExportV2", [body.text(op.inputs[0])], **attrs)


@rule("LookupTableImport", "LookupTableImportV2")
def _new_contents(node: Node) -> Sequence[Imported]:
    handle, keys, values = node.inputs
    if not handle.op.attrs.get("is_mutable", True):
        node.make("InitializeTable", [handle, keys, values])
        return []
    node.controls += [tensor.op for tensor in (keys, values) if tensor.op not in node.controls]
    types: dict[str, Any] = {"Tkeys": keys.dtype, "Tvalues": values.dtype}
    shape = handle.op.attrs.get("value_shape", TensorShape(None))
    old = node.part("LookupTableExport", [handle], value_shape=shape, **types)
    with node.building():
        emptied = node.graph.add_operation("LookupTableRemove", [handle, old], {})
    node.controls.append(emptied)
    node.make("LookupTableInsert", [handle, keys, values])
    return []


@export("InitializeTableOnce")
def _contents_once(body: Body, op: Operation) -> None:
    attrs = {"Tkey": op.inputs[1].dtype, "Tval": op.inputs[2].dtype}
    made = body.node(op, "InitializeTableV2", [body.text(tensor) for tensor in op.inputs], attrs)
    body.keep(op, made)


@export("InitializeTableFromTextFileOnce")
def _file_once(body: Body, op: Operation) -> None:
    attrs = {key: op.attrs[key] for key in ("key_index", "value_index", "vocab_size", "delimiter")}
    made = body.node(op, "InitializeTableFromTextFileV2", [body.text(tensor) for tensor in op.inputs], attrs)
    body.keep(op, made)
