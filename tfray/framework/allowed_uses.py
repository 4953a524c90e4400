"""What a graph that comes from a file may use: nothing outside of itself, unless the caller allows it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, PermissionDeniedError
from tfray.framework.op_def import Reach, lookup
from tfray.framework.plain_graph import PlainNode

KINDS: Final = ("files", "python")
"""What can be allowed: to read and write files; to call Python functions of this process."""

VARIABLE: Final = "TFRAY_ALLOW"
"""What the environment allows every call of this process, with commas between: for programs that stay as they are."""

_USES: Final = {"files": "uses files", "python": "calls Python functions"}
_SUFFIX: Final = rb"_temp[_0-9a-f]*/part|\.part"
"""What TensorFlow's savers add to the path that they are given."""

_PLACEHOLDERS: Final = ("Placeholder", "PlaceholderWithDefault")


def checked_nodes(
    nodes: Sequence[PlainNode], allow: Collection[str], given: Collection[str] = (), asked: Collection[str] = ()
) -> Sequence[PlainNode]:
    """The operations of a graph as they may be added to another one.

    A saver's operations use the path that a placeholder is fed. The placeholder loses its default value, so that a file
    never decides where to write.

    Args:
        nodes: The operations. Those that were made in this process are not looked at.
        allow: What they may use, of `KINDS`, beside what `VARIABLE` allows.
        given: Names of tensors that the caller has replaced. A path in one of them is the caller's own, and allowed.
        asked: Names of tensors that others may feed, such as the inputs of a model. A path in one of them is not the
            caller's.

    Raises:
        PermissionDeniedError: They use more. The error lists the types, how many there are, and the first of each.
        InvalidArgumentError: `allow` has something that cannot be allowed.
    """
    allowed = {allow} if isinstance(allow, str) else set(allow)
    allowed |= {kind for kind in os.environ.get(VARIABLE, "").split(",") if kind}
    if not allowed <= set(KINDS):
        raise InvalidArgumentError(f"allow={sorted(map(str, allowed))}: what can be allowed is {', '.join(KINDS)}")
    placeholders = {node.name for node in nodes if node.op in _PLACEHOLDERS} - {
        name.partition(":")[0] for name in asked
    }
    by_name = {node.name: node for node in nodes}
    denied: dict[str, dict[str, list[str]]] = {}
    fed = set()
    for node, is_inner in all_nodes(nodes):
        reach = reach_of(node) if node.is_loaded else None
        if reach is None or reach.kind in allowed:
            continue
        path = _path(node, reach)
        source, _, index = (path if is_inner else _given(path, by_name)).partition(":")
        # Within a region the same name may belong to another operation.
        if not is_inner and f"{source}:{index or 0}" in given:
            continue
        if not is_inner and reach.is_fed and source in placeholders:
            fed.add(source)
        else:
            denied.setdefault(reach.kind, {}).setdefault(node.op, []).append(node.name)
    if denied:
        raise PermissionDeniedError(_refusal(denied, allowed))
    return [_without_default(node) if node.name in fed else node for node in nodes] if fed else nodes


def all_nodes(nodes: Iterable[PlainNode], is_inner: bool = False) -> Iterator[tuple[PlainNode, bool]]:
    """The operations, with those in their regions, and whether each is in one."""
    for node in nodes:
        yield node, is_inner
        for value in node.attr.values():
            yield from all_nodes(getattr(value, "node", ()), True)


def _path(node: PlainNode, reach: Reach) -> str:
    """The input that holds the path; nothing where there is none."""
    inputs = [text for text in node.input if not text.startswith("^")]
    return inputs[reach.path] if reach.path is not None and reach.path < len(inputs) else ""


def _given(path: str, by_name: Mapping[str, PlainNode]) -> str:
    """Where a path comes from.

    TensorFlow's savers make paths of parts of the one that they are given: ``model_temp_0a/part-00000-of-00001``.
    Models of TensorFlow 2 keep the paths of assets in variables.
    """
    seen = set()
    while path not in seen:
        seen.add(path)
        node = by_name.get(path.removesuffix(":0"))
        if node is None:
            break
        inputs = [text for text in node.input if not text.startswith("^")]
        joined = node.op == "StringJoin" and len(inputs) == 2 and not node.attr.get("separator")
        if node.op in ("Identity", "ShardedFilename") or (joined and _is_suffix(inputs[1], by_name)):
            path = inputs[0]
        elif node.op == "ReadVariableOp":
            assigned = [
                each.input[1] for each in by_name.values() if each.op == "Assign" and each.input[0] == inputs[0]
            ]
            if len(assigned) == 1:
                path = assigned[0]
    return path


def _is_suffix(name: str, by_name: Mapping[str, PlainNode]) -> bool:
    """Whether a tensor is a constant, or one of two, that leads nowhere else."""
    node = by_name.get(name.removesuffix(":0"))
    if node is None:
        return False
    if node.op == "Select":
        return all(_is_suffix(text, by_name) for text in node.input[1:3])
    value = np.asarray(node.attr.get("value")).reshape(-1) if node.op == "Const" else [None]
    return all(isinstance(text, bytes) and re.fullmatch(_SUFFIX, text) for text in value)


def reach_of(node: PlainNode) -> Reach | None:
    """What an operation uses outside of the graph."""
    try:
        reach = lookup(node.op).reach
    except KeyError:
        return None  # an unknown type is reported when the operation is added
    return reach if reach is None or reach.attr is None or node.attr.get(reach.attr) else None


def _without_default(node: PlainNode) -> PlainNode:
    if node.op == "Placeholder":
        return node
    kept: dict[str, Any] = {name: node.attr[name] for name in ("dtype", "shape") if name in node.attr}
    return replace(node, op="Placeholder", input=[text for text in node.input if text.startswith("^")], attr=kept)


def _refusal(denied: dict[str, dict[str, list[str]]], allowed: Collection[str]) -> str:
    uses = "; ".join(
        f"{_USES[kind]}: "
        + ", ".join(f"{op} ({len(names)}, the first is {names[0]!r})" for op, names in sorted(types.items()))
        for kind, types in sorted(denied.items())
    )
    return (
        f"the graph that is loaded {uses}. If you trust who made it, load it with allow={sorted({*denied, *allowed})}, "
        f"or run the program by `python -m tfray --allow {','.join(sorted({*denied, *allowed}))}`"
    )
