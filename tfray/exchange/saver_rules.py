"""Rules for the operations of savers, in and out.

tfray's savers write and read variables where they are; TensorFlow's read them first, and give the values to `SaveV2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import UnimplementedError
from tfray.exchange.exports import Body, export
from tfray.exchange.node import Imported, Node, rule
from tfray.framework import dtypes
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import variable_behind
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.system.checkpoint_ops import TABLE_PARTS

# -- in ------------------------------------------------------------------------------------------------


@rule("Save", "SaveSlices", "SaveV2")
def _save(node: Node) -> Sequence[Imported]:
    known = 2 if node.op == "Save" else 3
    texts = [node.value(given) for given in node.given[:known]]
    values = [node.value(given) for given in node.given[known:]]  # variables, not their handles
    if node.op == "Save":
        texts.append(node.known([b""] * len(values), dtypes.string))
    node.make("SaveV2", [*texts, *values])
    return []


@rule("DisableCopyOnRead")
def _nothing(node: Node) -> Sequence[Imported]:
    node.make("NoOp", [])
    return []


@rule("Restore", "RestoreSlice")
def _restore(node: Node) -> Sequence[Imported]:
    part = node.arg("shape_and_slice")[0] if node.op == "RestoreSlice" else node.known(b"", dtypes.string)
    inputs = [node.arg("file_pattern")[0], node.arg("tensor_name")[0], part]
    return list(node.make("RestoreV2", inputs, dtypes=[node.attrs["dt"]]).outputs)


# -- out -----------------------------------------------------------------------------------------------


def _texts(body: Body, op: Operation, name: str, texts: Sequence[str]) -> str:
    return body.constant(op, name, [text.encode() for text in texts], dtypes.string)


def is_table(handle: Tensor) -> bool:
    """Whether a handle is that of a table that can be changed."""
    return _table_types(handle) is not None


def _table_types(handle: Tensor) -> tuple[Any, Any] | None:
    """The dtypes of keys and values of a table that can be changed."""
    attrs = handle.op.attrs
    is_table = handle.op.type == "MutableDenseHashTable" or (handle.op.type == "HashTable" and attrs["is_mutable"])
    return (attrs["key_dtype"], attrs["value_dtype"]) if is_table else None


def _slice(op: Operation, handle: Tensor, part: Any) -> str:
    """The shape of the whole and the part that a variable is, as TensorFlow writes them."""
    found = variable_behind(handle)
    if found is None:
        raise UnimplementedError(f"{op.name!r} saves {handle.name!r}, which is no variable")
    return _part_text(part, found[1])


def _part_text(part: Any, shape: TensorShape) -> str:
    if part is None:
        return ""
    whole, offset = part
    extents = ":".join(f"{start},{size}" for start, size in zip(offset, shape.as_list(), strict=True))
    return " ".join([*map(str, whole), extents])


def _entries(op: Operation) -> list[tuple[Tensor, list[str], list[str], list[Any]]]:
    """For each resource its handle, and names, parts and dtypes of what there is of it in a checkpoint."""
    found = []
    for handle, name, part in zip(op.inputs[1:], op.attrs["names"], op.attrs["parts"], strict=True):
        types = _table_types(handle)
        if handle.dtype is not dtypes.resource:
            found.append((handle, [name], [_part_text(part, handle.shape)], [handle.dtype]))
        elif types is None:
            text = _slice(op, handle, part)
            variable: Any = variable_behind(handle)
            found.append((handle, [name], [text], [variable[0]]))
        else:
            found.append((handle, [f"{name}-{each}" for each in TABLE_PARTS], [""] * 2, list(types)))
    return found


def _names_and_slices(body: Body, op: Operation, entries: Sequence[Any]) -> tuple[str, str]:
    names = _texts(body, op, "tensor_names", [name for _, names, _, _ in entries for name in names])
    return names, _texts(body, op, "shape_and_slices", [text for _, _, texts, _ in entries for text in texts])


@export("SaveShard")
def _save_shard(body: Body, op: Operation) -> None:
    entries = _entries(op)
    temporary = body.part(op, "suffix", "Const", [], value=np.array(b"_temp/part", object), dtype=dtypes.string)
    joined = body.part(op, "part", "StringJoin", [body.text(op.inputs[0]), temporary], N=2, separator="")
    numbers = [body.constant(op, key, op.attrs[key]) for key in ("shard", "shards")]
    path = body.part(op, "filename", "ShardedFilename", [joined, *numbers])
    reads = []
    for index, (handle, _, _, kinds) in enumerate(entries):
        if handle.dtype is not dtypes.resource:
            reads.append(body.text(handle))
        elif len(kinds) == 1:
            reads.append(body.part(op, f"read_{index}", "ReadVariableOp", [body.text(handle)], dtype=kinds[0]))
        else:
            types = dict(zip(("Tkeys", "Tvalues"), kinds, strict=True))
            contents = body.part(op, f"read_{index}", "LookupTableExportV2", [body.text(handle)], **types)
            reads += [contents, f"{contents}:1"]
    names = _names_and_slices(body, op, entries)
    kinds = [kind for *_, kinds in entries for kind in kinds]
    saved = body.effect(op, "SaveV2", "SaveV2", [path, *names, *reads], dtypes=kinds)
    made = body.node(op, "Identity", [path], {"T": dtypes.string})
    made.input.append(f"^{saved}")
    body.give(op, "Identity", {})
    body.keep(op, made)


@export("MergeCheckpoint")
def _merge(body: Body, op: Operation) -> None:
    prefix, *records = op.inputs
    if any(record.op.type != "SaveShard" for record in records):
        raise UnimplementedError(f"{op.name!r} saves what is no variable")
    texts = [body.text(record) for record in records]
    paths = body.part(op, "checkpoint_prefixes", "Pack", texts, N=len(texts), T=dtypes.string)
    merged = body.effect(op, "MergeV2Checkpoints", "MergeV2Checkpoints", [paths, body.text(prefix)])
    made = body.node(op, "Identity", [body.text(prefix)], {"T": dtypes.string})
    made.input.append(f"^{merged}")
    body.give(op, "Identity", {})
    body.keep(op, made)


@export("RestoreShard")
def _restore_shard(body: Body, op: Operation) -> None:
    entries = _entries(op)
    for index, expected in enumerate(op.attrs["expected"]):
        if expected is not None:
            entries[index][3][:] = [as_dtype(expected[0])]
    kinds = [kind for *_, kinds in entries for kind in kinds]
    names = _names_and_slices(body, op, entries)
    read = body.part(op, "RestoreV2", "RestoreV2", [body.text(op.inputs[0]), *names], dtypes=kinds)
    assigned, place = [], 0
    for index, (handle, _, _, own) in enumerate(entries):
        values = [f"{read}:{number}" if number else read for number in range(place, place + len(own))]
        place += len(own)
        given = [body.text(handle), *values]
        if len(own) == 1:
            assigned.append(body.effect(op, f"Assign_{index}", "AssignVariableOp", given, dtype=own[0]))
        else:
            types = dict(zip(("Tin", "Tout"), own, strict=True))
            assigned.append(body.effect(op, f"Import_{index}", "LookupTableImportV2", given, **types))
    made = body.node(op, "NoOp", [], {})
    made.input.extend(f"^{name}" for name in assigned)
    body.keep(op, made)
