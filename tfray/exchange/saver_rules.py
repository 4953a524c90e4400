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
    value = np.empty(len(texts), object)
    value[:] = [text.encode() for text in texts]
    return body.part(op, name, "Const", [], value=value, dtype=dtypes.string)


def _slices(op: Operation) -> list[str]:
    """For each resource the shape of the whole and the part that it is, as TensorFlow writes them."""
    written = []
    for handle, part in zip(op.inputs[1:], op.attrs["parts"], strict=True):
        found = variable_behind(handle)
        if found is None:
            raise UnimplementedError(f"{op.name!r} saves {handle.name!r}, which is no variable")
        if part is None:
            written.append("")
            continue
        (shape, offset), sizes = part, found[1].as_list()
        extents = ":".join(f"{start},{size}" for start, size in zip(offset, sizes, strict=True))
        written.append(" ".join([*map(str, shape), extents]))
    return written


def _dtypes(handles: Sequence[Tensor]) -> list[Any]:
    found = [variable_behind(handle) for handle in handles]
    return [each[0] for each in found if each is not None]


@export("SaveShard")
def _save_shard(body: Body, op: Operation) -> None:
    slices, handles = _slices(op), op.inputs[1:]
    kinds = _dtypes(handles)
    temporary = body.part(op, "suffix", "Const", [], value=np.array(b"_temp/part", object), dtype=dtypes.string)
    joined = body.part(op, "part", "StringJoin", [body.text(op.inputs[0]), temporary], N=2, separator="")
    numbers = [body.constant(op, key, op.attrs[key]) for key in ("shard", "shards")]
    path = body.part(op, "filename", "ShardedFilename", [joined, *numbers])
    reads = [
        body.part(op, f"read_{index}", "ReadVariableOp", [body.text(handle)], dtype=kind)
        for index, (handle, kind) in enumerate(zip(handles, kinds, strict=True))
    ]
    names = _texts(body, op, "tensor_names", op.attrs["names"]), _texts(body, op, "shape_and_slices", slices)
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
    slices, handles = _slices(op), op.inputs[1:]
    kinds = [as_dtype(expected[0]) for expected in op.attrs["expected"]]
    names = _texts(body, op, "tensor_names", op.attrs["names"]), _texts(body, op, "shape_and_slices", slices)
    read = body.part(op, "RestoreV2", "RestoreV2", [body.text(op.inputs[0]), *names], dtypes=kinds)
    assigned = [
        body.effect(
            op,
            f"Assign_{index}",
            "AssignVariableOp",
            [body.text(handle), f"{read}:{index}" if index else read],
            dtype=kind,
        )
        for index, (handle, kind) in enumerate(zip(handles, kinds, strict=True))
    ]
    made = body.node(op, "NoOp", [], {})
    made.input.extend(f"^{name}" for name in assigned)
    body.keep(op, made)
