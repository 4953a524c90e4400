"""Messages of files, damaged in what they mean: graphs, meta graphs, saved models."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.damaged.damage import STRINGS, Damage, Donors
from tfray.errors import OpError
from tfray.exchange.op_table import _lines
from tfray.formats.message import message_of_file
from tfray.formats.meta_graph_proto import QueueRunnerDef, VariableDef


def as_message(declared: Any, *edits: Callable[[Damage, Any], None], text: bool = False) -> Any:
    """A rewrite of files that hold a message of a class; `edits` are changes of it that are more than of fields."""

    binary: dict[bytes, bytes] = {}  # to parse a text takes long

    def rewrite(damage: Damage, donors: Donors, name: str, contents: bytes) -> bytes:
        if contents not in binary:
            binary[contents] = message_of_file(declared, contents).SerializeToString()
            donors.add(declared.FromString(binary[contents]))
        message = declared.FromString(binary[contents])
        if edits and damage.random.random() < 0.4:
            damage.random.choice(edits)(damage, message)
        else:
            damage.message(message, donors)
        return str(message).encode() if text else message.SerializeToString()

    return rewrite


def graphs_in(message: Any) -> list[Any]:
    if hasattr(message, "meta_graphs"):
        return [each.graph_def for each in message.meta_graphs]
    return [message.graph_def if hasattr(message, "graph_def") else message]


def _bodies(message: Any) -> list[Any]:
    graph = graphs_in(message)[0]
    return [graph.node, *(each.node_def for each in graph.library.function if each.node_def)]


def rewired(damage: Damage, message: Any) -> None:
    """Operations that read others, later ones, themselves, or what is not there."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    for _ in range(rng.choice((1, 2, 5))):
        node, other = rng.choice(nodes), rng.choice(nodes)
        index = rng.choice((0, 1, 2, 99, 1 << 40))
        text = rng.choice((other.name, f"^{other.name}", f"{other.name}:{index}", node.name, f"^{node.name}",
                           f"{other.name}:output:0", *STRINGS[:16]))  # fmt: skip
        if node.input and rng.random() < 0.8:
            node.input[rng.randrange(len(node.input))] = text
        else:
            node.input.append(text)


def of_another_type(damage: Damage, message: Any) -> None:
    """Operations of another type, with the attributes and inputs that they had."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    for _ in range(rng.choice((1, 1, 3))):
        rng.choice(nodes).op = rng.choice(_types()) if rng.random() < 0.6 else rng.choice(nodes).op


@functools.cache
def _types() -> list[str]:
    return [*sorted(_lines()), "Tfray>RegionInput", "Tfray>Const", "Tfray>", "NoSuchType"]


def attributes_mixed(damage: Damage, message: Any) -> None:
    """Attributes with the values of others, of any kind."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    values = [node.attr[name] for node in nodes for name in sorted(node.attr)]
    for _ in range(rng.choice((1, 2, 6))):
        node = rng.choice(nodes)
        if node.attr and values:
            node.attr[rng.choice(sorted(node.attr))].CopyFrom(rng.choice(values))


def names_mixed(damage: Damage, message: Any) -> None:
    """Operations with names of others, or odd ones; readers follow, or do not."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    node = rng.choice(nodes)
    to = rng.choice(
        (rng.choice(nodes).name, rng.choice(STRINGS), node.name + "/", f"{node.name}/read", node.name.upper())
    )
    if rng.random() < 0.5:
        for each in nodes:
            each.input[:] = [to if text == node.name else text for text in each.input]
    node.name = to


def functions_nested(damage: Damage, message: Any) -> None:
    """Functions that call one another: in circles, deep, or each the next one several times."""
    rng = damage.random
    graph = graphs_in(message)[0]
    count, width = rng.choice(((1, 1), (2, 1), (3, 2), (40, 1), (200, 1), (30, 2), (9, 10), (60, 2)))
    circle = rng.random() < 0.3
    caller = rng.choice(("call", "StatefulPartitionedCall", "While", "If"))
    for index in range(count):
        function = graph.library.function.add()
        function.signature.name = f"nest_{index}"
        function.signature.input_arg.add(name="x", type=1)
        function.signature.output_arg.add(name="y", type=1)
        inner = f"nest_{(index + 1) % count if circle else index + 1}"
        text = "x"
        if circle or index + 1 < count:
            for call in range(width):
                node = function.node_def.add(name=f"n{call}", input=[text])
                _make_call(node, caller, inner)
                text = f"n{call}:output:0"
        function.ret["y"] = text
    graph.node.add(name="nest_x", op="Placeholder").attr["dtype"].type = 1
    _make_call(graph.node.add(name="nest_call", input=["nest_x"]), caller, "nest_0")
    if hasattr(message, "meta_graphs"):
        for signature in message.meta_graphs[0].signature_def.values():
            for info in signature.outputs.values():
                info.name = "nest_call:0"


def _make_call(node: Any, caller: str, function: str) -> None:
    if caller == "call":
        node.op = function
        return
    node.op = caller
    node.attr["T" if caller == "While" else "Tin"].list.type.append(1)
    node.attr["Tout"].list.type.append(1)
    node.attr["Tcond"].type = 1
    if caller == "If":
        node.input.append(node.input[0])
    for name in {"While": ("cond", "body"), "If": ("then_branch", "else_branch")}.get(caller, ("f",)):
        node.attr[name].func.name = function


def sizes_declared(damage: Damage, message: Any) -> None:
    """Constants, and shapes anywhere, with sizes that are not theirs."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    sizes = (0, 1, 2, 1 << 10, 1 << 20, 1 << 24, 1 << 28, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, -1, -5)
    values = [value for node in nodes for _, value in sorted(node.attr.items())]
    tensors = [value.tensor for value in values if value.HasField("tensor")]
    shapes = [tensor.tensor_shape for tensor in tensors]
    shapes += [value.shape for value in values if value.HasField("shape")]
    for _ in range(rng.choice((1, 2, 20))):
        shape = rng.choice(shapes) if shapes else nodes[0].attr["shape"].shape
        if shape.dim and rng.random() < 0.6:
            rng.choice(shape.dim).size = rng.choice(sizes)
        else:
            shape.dim.add(size=rng.choice(sizes))
    if tensors and rng.random() < 0.7:  # large numbers, which other operations take for sizes
        tensor = rng.choice(tensors)
        if tensor.dtype in (3, 9):
            kind = np.int32 if tensor.dtype == 3 else np.int64
            had = np.frombuffer(tensor.tensor_content, kind) if tensor.tensor_content else np.ones(1, kind)
            made = had.copy()
            made[rng.randrange(len(made)) if len(made) else slice(0, 0)] = rng.choice(
                (1 << 20, 1 << 28, (1 << 31) - 1, -1)
            )
            tensor.ClearField("int_val")
            tensor.tensor_content = made.tobytes()


GRAPH_EDITS = (rewired, of_another_type, attributes_mixed, names_mixed, functions_nested, sizes_declared)


COLLECTIONS = ["variables", "trainable_variables", "savers", "queue_runners", "global_step", "saved_model_main_op",
               "while_context"]  # fmt: skip


def collections_damaged(damage: Damage, message: Any) -> None:
    """Collections whose members are messages with other fields, or of another kind."""
    rng = damage.random
    meta = message.meta_graphs[0] if hasattr(message, "meta_graphs") else message
    names = sorted(meta.collection_def)
    for _ in range(rng.choice((1, 2))):
        if not names:
            return
        found = meta.collection_def[rng.choice(names)]
        if found.bytes_list.value and rng.random() < 0.7:
            at = rng.randrange(len(found.bytes_list.value))
            declared = QueueRunnerDef if rng.random() < 0.1 else VariableDef
            with contextlib.suppress(OpError):
                inner = declared.FromString(found.bytes_list.value[at])
                donors = Donors()
                donors.add(inner)
                damage.message(inner, donors)
                found.bytes_list.value[at] = inner.SerializeToString()
        else:
            found.CopyFrom(meta.collection_def[rng.choice(names)])
            meta.collection_def[rng.choice(COLLECTIONS)].CopyFrom(found)


def ends_damaged(damage: Damage, message: Any) -> None:
    """Savers, signatures, assets and tags that name what is not there, or is something else."""
    rng = damage.random
    meta = message.meta_graphs[0] if hasattr(message, "meta_graphs") else message
    names = [node.name for node in meta.graph_def.node] or [""]
    name = rng.choice((rng.choice(names), rng.choice(names) + ":0", rng.choice(names) + ":7", *STRINGS[:12]))
    infos = signature_ends(meta)
    match rng.choice(("saver", "signature", "asset", "main", "main")):
        case "saver":
            setattr(meta.saver_def, rng.choice(("filename_tensor_name", "save_tensor_name", "restore_op_name")), name)
        case "signature" if infos:
            rng.choice(infos).name = name
        case "asset":
            asset = (
                meta.asset_file_def.add() if not meta.asset_file_def or rng.random() < 0.5 else meta.asset_file_def[0]
            )
            asset.filename = rng.choice(("../../etc/passwd", "/etc/passwd", "..", "", ".", "a/b", "\0", "x" * 300))
            if rng.random() < 0.5:
                asset.tensor_info.name = name
        case _:
            meta.collection_def["saved_model_main_op"].node_list.value[:] = [name]


def signature_ends(meta: Any) -> list[Any]:
    """The inputs and outputs of all signatures."""
    found = []
    for _, signature in sorted(meta.signature_def.items()):
        found += [info for ends in (signature.inputs, signature.outputs) for _, info in sorted(ends.items())]
    return found


META_EDITS = (*GRAPH_EDITS, collections_damaged, ends_damaged)
