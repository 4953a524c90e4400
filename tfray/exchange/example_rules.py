"""Rules for what parses serialized examples, in and out.

TensorFlow says by a default without elements that a feature must not be missing, and by a first dimension that is not
known that a feature is a sequence; tfray has attributes for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import UnimplementedError
from tfray.exchange.exports import Body, export
from tfray.exchange.node import Imported, Node, rule
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation, Tensor
from tfray.framework.tensor_shape import TensorShape

# -- in ------------------------------------------------------------------------------------------------


@rule("ParseExample", "ParseSingleExample", "ParseExampleV2")
def _examples(node: Node) -> Sequence[Imported]:
    (serialized,) = node.arg("serialized")
    rank = _rank(node, serialized, 0 if node.op == "ParseSingleExample" else 1 if node.op == "ParseExample" else None)
    attrs, defaults = _features(node, "")
    op = "ParseExample" if rank else "ParseSingleExample"
    return list(node.make(op, [serialized, *defaults], **attrs).outputs)


_SEQUENCES = ("ParseSequenceExample", "ParseSequenceExampleV2")


@rule("ParseSingleSequenceExample", *_SEQUENCES)
def _sequences(node: Node) -> Sequence[Imported]:
    (serialized,) = node.arg("serialized")
    single = node.op == "ParseSingleSequenceExample"
    rank = _rank(node, serialized, 0 if single else 1 if node.op == "ParseSequenceExample" else None)
    attrs, defaults = _features(node, "context_")
    lists = _list_features(node)
    types = lists["list_dense_types"]
    more = [node.known(b"" if dtype is dtypes.string else 0, dtype) for dtype in types]
    attrs |= lists | {"num_lengths": len(types)}
    made = node.make(_SEQUENCES[0] if rank else "ParseSingleSequenceExample", [serialized, *defaults, *more], **attrs)
    return list(made.outputs[: len(made.outputs) - len(types)] if single else made.outputs)


def _rank(node: Node, serialized: Tensor, known: int | None) -> int:
    rank = serialized.shape.rank if known is None else known
    if rank not in (0, 1):
        raise UnimplementedError(
            f"{node.op} {node.name!r}: tfray needs to know whether it parses one example or a vector"
        )
    return rank


def _keys(node: Node, name: str) -> list[str]:
    """Names of features: attributes, or inputs that have to be known."""
    if name in node.attrs:
        return [key if isinstance(key, str) else key.decode() for key in node.attrs[name]]
    assert node.definition is not None
    (arg,) = (arg for arg in node.definition.inputs if arg.name == name)
    found: list[Any] = []
    for tensor in node.arg(name):
        value = constant_value(tensor)
        if value is None:
            raise UnimplementedError(
                f"{node.op} {node.name!r}: tfray needs to know {arg.name!r} when the graph is built"
            )
        found += np.ravel(value).tolist()
    node.wait_like(node.arg(name))
    return [key.decode() if isinstance(key, bytes) else str(key) for key in found]


def _features(node: Node, there: str) -> tuple[dict[str, Any], list[Tensor]]:
    """The attributes of features, and their defaults."""
    if node.attrs.get(f"{there}ragged_value_types") or node.attrs.get("ragged_value_types"):
        raise UnimplementedError(f"{node.op} {node.name!r} parses ragged features, which tfray does not have")
    shapes = [TensorShape(shape) for shape in node.attrs[f"{there}dense_shapes"]]
    sequences = [bool(shape.rank) and shape.as_list()[0] is None for shape in shapes]
    defaults, may_miss = [], []
    for default, shape, is_sequence in zip(node.arg(f"{there}dense_defaults"), shapes, sequences, strict=True):
        count = default.shape.num_elements()
        if count is None:
            raise UnimplementedError(f"{node.op} {node.name!r}: tfray needs to know the shapes of default values")
        may_miss.append(is_sequence or count > 0)
        if is_sequence:
            zero = node.known(b"" if default.dtype is dtypes.string else 0, default.dtype)
            scalar = node.known(np.zeros(0), dtypes.int32)
            default = node.part("Reshape", [default, scalar]) if count else zero
        elif count:
            default = node.part("Reshape", [default, node.known(shape.as_list(), dtypes.int32)])
        defaults.append(default)
    sparse = _keys(node, f"{there}sparse_keys")
    attrs = {
        "num_sparse": len(sparse),
        "sparse_keys": sparse,
        "sparse_types": node.attrs[f"{there}sparse_types"],
        "dense_keys": _keys(node, f"{there}dense_keys"),
        "dense_types": [default.dtype for default in defaults],
        "dense_shapes": [shape[1:] if each else shape for shape, each in zip(shapes, sequences, strict=True)],
        "sequences": sequences,
        "may_miss": may_miss,
    }
    return attrs, defaults


def _list_features(node: Node) -> dict[str, Any]:
    there = "feature_list_"
    if node.attrs.get(f"{there}ragged_value_types"):
        raise UnimplementedError(f"{node.op} {node.name!r} parses ragged features, which tfray does not have")
    sparse, dense = _keys(node, f"{there}sparse_keys"), _keys(node, f"{there}dense_keys")
    missing = f"{there}dense_missing_assumed_empty"
    if node.op == "ParseSequenceExampleV2":
        may_miss = [bool(each) for each in node.needed(missing)]
    else:
        empty = _keys(node, missing)
        may_miss = [key in empty for key in dense]
    attrs = {
        "num_sparse": len(sparse),
        "sparse_keys": sparse,
        "sparse_types": node.attrs[f"{there}sparse_types"],
        "dense_keys": dense,
        "dense_types": node.attrs[f"{there}dense_types"],
        "dense_shapes": [TensorShape(shape) for shape in node.attrs[f"{there}dense_shapes"]],
        "sequences": [True] * len(dense),
        "may_miss": may_miss,
    }
    return {f"list_{key}": value for key, value in attrs.items()}


# -- out -----------------------------------------------------------------------------------------------


@export("ParseExample")
def _write_examples(body: Body, op: Operation) -> None:
    attrs = {"Nsparse": op.attrs["num_sparse"], "Ndense": len(op.attrs["dense_keys"])}
    attrs |= {"sparse_types": op.attrs["sparse_types"], "Tdense": op.attrs["dense_types"], "dense_shapes": _shapes(op)}
    keys = [
        body.constant(op, "key", key.encode(), dtypes.string)
        for name in ("sparse_keys", "dense_keys")
        for key in op.attrs[name]
    ]
    inputs = [body.text(op.inputs[0]), body.constant(op, "names", [], dtypes.string), *keys, *_defaults(body, op)]
    _give(body, op, inputs, attrs)


@export("ParseSingleExample")
def _write_example(body: Body, op: Operation) -> None:
    attrs = {key: op.attrs[key] for key in ("num_sparse", "sparse_keys", "dense_keys", "sparse_types")}
    attrs |= {"Tdense": op.attrs["dense_types"], "dense_shapes": _shapes(op)}
    _give(body, op, [body.text(op.inputs[0]), *_defaults(body, op)], attrs)


@export("ParseSequenceExample", "ParseSingleSequenceExample")
def _write_sequences(body: Body, op: Operation) -> None:
    if any(op.attrs["sequences"]):
        raise UnimplementedError(f"{op.name!r} parses sequences in the context, which TensorFlow does not")
    keys = {
        "context_sparse_keys": op.attrs["sparse_keys"],
        "context_dense_keys": op.attrs["dense_keys"],
        "feature_list_sparse_keys": op.attrs["list_sparse_keys"],
        "feature_list_dense_keys": op.attrs["list_dense_keys"],
    }
    attrs: dict[str, Any] = {f"N{name.removesuffix('_keys')}": len(listed) for name, listed in keys.items()}
    attrs |= {"context_sparse_types": op.attrs["sparse_types"], "Tcontext_dense": op.attrs["dense_types"]}
    attrs |= {"context_dense_shapes": op.attrs["dense_shapes"]}
    attrs |= {f"feature_{key}": op.attrs[key] for key in ("list_sparse_types", "list_dense_types", "list_dense_shapes")}
    listed = zip(op.attrs["list_dense_keys"], op.attrs["list_may_miss"], strict=True)
    empty = [key for key, may_miss in listed if may_miss]
    count = len(op.attrs["dense_keys"])
    defaults = _defaults(body, op)[:count]
    if op.type == "ParseSequenceExample":
        attrs |= keys | {"feature_list_dense_missing_assumed_empty": empty}
        inputs = [body.text(op.inputs[0]), body.constant(op, "debug_name", [], dtypes.string), *defaults]
        _give(body, op, inputs, attrs)
        return
    if any(tensor.consumers() for tensor in op.outputs[len(op.outputs) - op.attrs["num_lengths"] :]):
        raise UnimplementedError(f"{op.name!r} gives the lengths of sequences, which TensorFlow's does not")
    names = [body.constant(op, "key", key.encode(), dtypes.string) for each in keys.values() for key in each]
    missing = body.constant(op, "missing", [text.encode() for text in empty], dtypes.string)
    inputs = [body.text(op.inputs[0]), missing, *names, *defaults, body.constant(op, "key", b"", dtypes.string)]
    _give(body, op, inputs, attrs)


def _give(body: Body, op: Operation, inputs: Sequence[str], attrs: dict[str, Any]) -> None:
    made = body.node(op, op.type, inputs, attrs)
    kept = len(op.outputs) - (op.attrs["num_lengths"] if op.type == "ParseSingleSequenceExample" else 0)
    for index, tensor in enumerate(op.outputs[:kept]):
        body.texts[tensor] = body.named(op.name, op.type, index, attrs)
    body.keep(op, made)


def _shapes(op: Operation) -> list[TensorShape]:
    sequences = zip(op.attrs["dense_shapes"], op.attrs["sequences"], strict=True)
    return [TensorShape([None]).concatenate(shape) if each else TensorShape(shape) for shape, each in sequences]


def _defaults(body: Body, op: Operation) -> list[str]:
    kept = zip(op.inputs[1:], op.attrs["may_miss"], strict=False)
    return [
        # A vector of nothing says that there is no default.
        body.text(tensor)
        if may_miss or tensor.shape.sizes == (0,)
        else body.constant(op, "no_default", [], tensor.dtype)
        for tensor, may_miss in kept
    ]
