"""What files of ONNX hold, as plain data: for ``tfray inspect``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tfray.errors import UnimplementedError
from tfray.formats import files
from tfray.onnx.onnx_file import OnnxFile, declared_shape
from tfray.onnx.onnx_types import dtype_of


def onnx_contents(path: str) -> dict[str, Any]:
    """What a file holds, in the form of `model_contents`. Weights beside it are not read."""
    model = OnnxFile(path).model
    graph, constants = model.graph, {tensor.name for tensor in model.graph.initializer}
    nodes = list(_nodes(graph.node))
    types = Counter(f"{node.domain}.{node.op_type}".removeprefix("ai.onnx.").removeprefix(".") for node in nodes)
    taken = [info for info in graph.input if info.name not in constants]
    signature = {"method": "", "inputs": _declared(taken), "outputs": _declared(graph.output)}
    return {
        "path": path,
        "kind": "model of ONNX",
        "form": f"opset {', '.join(f'{each.domain} {each.version}'.strip() for each in model.opset_import)}",
        "bytes": files.stat(path).length,
        "graphs": [
            {
                "signatures": {graph.name or "graph": signature},
                "operations": len(graph.node),
                "functions": len(model.functions),
                "constant_bytes": sum(tensor.ByteSize() for tensor in graph.initializer),
                "types": dict(sorted(types.items(), key=lambda item: (-item[1], item[0]))),
            }
        ],
    }


def _nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Nodes, and those of the graphs within them."""
    ahead = list(nodes)
    while ahead:
        node = ahead.pop()
        yield node
        ahead += [inner for each in node.attribute for graph in (each.g, *each.graphs) for inner in graph.node]


def _declared(infos: Iterable[Any]) -> dict[str, dict[str, Any]]:
    return {info.name: {"tensor": info.name, "dtype": _dtype(info), "shape": _shape(info)} for info in infos}


def _dtype(info: Any) -> str:
    number = info.type.tensor_type.elem_type
    try:
        return dtype_of(number).name if number else info.type.WhichOneof("value") or "unknown"
    except UnimplementedError:
        return f"type {number}"


def _shape(info: Any) -> list[int | None] | None:
    try:
        shape = declared_shape(info)
    except (UnimplementedError, ValueError):
        return None
    return None if shape is None else list(shape)
