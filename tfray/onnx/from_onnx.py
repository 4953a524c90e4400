"""From files of ONNX to tfray's graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import tfray.onnx.load_arrays
import tfray.onnx.load_classic
import tfray.onnx.load_flow
import tfray.onnx.load_images
import tfray.onnx.load_layers
import tfray.onnx.load_recurrent  # noqa: F401  (declare rules)
from tfray.errors import DataLossError, OpError, PermissionDeniedError, UnimplementedError
from tfray.formats.files import PathLike
from tfray.framework.convert import add_op
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.op_def import lookup
from tfray.framework.read_errors import DAMAGE, reason_of
from tfray.framework.tensor_shape import TensorShape
from tfray.onnx.onnx_file import OnnxFile, declared_shape
from tfray.onnx.onnx_node import LOADS, Node, Rule, Scope, clean_name
from tfray.onnx.onnx_types import CLASSIC, Schema, dtype_of, schema
from tfray.onnx.same_ops import BY_OPERATOR
from tfray.ops.arrays.shape_ops import identity
from tfray.ops.arrays.source_ops import placeholder
from tfray.training.checkpoints.saved_model import LoadedModel

_OPSETS: Final = {"": (9, 23), CLASSIC: (1, 5)}
"""The oldest and the newest version of each domain that is read."""

_MAX_NESTING: Final = 16
"""Most branches and bodies within each other."""


def load(path: PathLike) -> LoadedModel:
    """A model in a file of ONNX, as a function: ``load("model.onnx")(x)`` is a dictionary of arrays.

    Its `graph` is an ordinary graph, without variables, on its `session`; `inputs` and `outputs` describe the tensors
    by the names that the file gives them. To build upon it, ``tf.import_graph_def(model.graph.as_graph_def())``.
    Weights beside the file (external data) are read from below its folder, and from nowhere else. What a ZipMap would
    give as dictionaries are the scores as an array.

    Args:
        path: The file: operators of opset 9 to 23, and those of ``ai.onnx.ml`` for linear models, scalers and trees.

    Raises:
        NotFoundError: There is no such file, or the package ``onnx`` is not installed.
        UnimplementedError: There are operators without counterpart. The error names each type, how often it stands, and
            the first node of it.
        DataLossError: The file is damaged.
        PermissionDeniedError: Its weights are in a file that does not lie below its folder.
    """
    file = OnnxFile(path)
    try:
        return _loaded(file)
    except (DataLossError, PermissionDeniedError, UnimplementedError):
        raise
    except (OpError, *DAMAGE) as error:
        reason = reason_of(error)
        raise DataLossError(f"{file.path} is damaged: {reason}") from error


def _loaded(file: OnnxFile) -> LoadedModel:
    opsets = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in file.model.opset_import}
    for domain, version in opsets.items():
        oldest, newest = _OPSETS.get(domain, (version, version))
        if not oldest <= version <= newest:
            raise UnimplementedError(
                f"{file.path} has version {version} of {domain or 'the operators'}; tfray reads {oldest} to {newest}"
            )
    source = file.model.graph
    _check_operators(file, source.node, opsets)
    graph = Graph()
    with graph.as_default():
        scope = Scope(file, opsets, _add_nodes)
        scope.constants.update((tensor.name, tensor) for tensor in source.initializer)
        if source.sparse_initializer:
            raise UnimplementedError(f"{file.path} has sparse constants, of which tfray has no counterpart")
        inputs = {info.name: _input(scope, info) for info in source.input if info.name not in scope.constants}
        _add_nodes(scope, source.node)
        if not source.output:
            raise ValueError("its graph gives nothing")
        outputs = {info.name: identity(scope.tensor(info.name), clean_name(info.name)) for info in source.output}
    return LoadedModel.of_graph(graph, inputs, outputs, file.path)


def _input(scope: Scope, info: Any) -> Tensor:
    sizes = declared_shape(info)
    dtype = dtype_of(info.type.tensor_type.elem_type)
    made = placeholder(dtype, None if sizes is None else TensorShape(list(sizes)), clean_name(info.name))
    scope.values[info.name] = made
    return made


def _check_operators(file: OnnxFile, nodes: Iterable[Any], opsets: dict[str, int]) -> None:
    missing: dict[str, list[str]] = {}
    ahead = [(1, list(nodes))]
    while ahead:
        depth, inner = ahead.pop()
        if depth > _MAX_NESTING:
            raise UnimplementedError(f"{file.path}: branches and bodies are nested more than {_MAX_NESTING} deep")
        for proto in inner:
            domain = "" if proto.domain == "ai.onnx" else proto.domain
            declared = schema(proto.op_type, opsets[domain], domain) if domain in opsets else None
            if declared is None or _rule_for(domain, declared) is None:
                missing.setdefault(f"{domain}.{proto.op_type}".lstrip("."), []).append(proto.name)
            ahead += [(depth + 1, list(each.g.node)) for each in proto.attribute if each.HasField("g")]
    if missing:
        lines = [f"{file.path} has operators that tfray has no counterpart of:"]
        lines += [f"  {kind} ({len(names)}): the first is {names[0]!r}" for kind, names in sorted(missing.items())]
        raise UnimplementedError("\n".join(lines))


def _add_nodes(scope: Scope, nodes: Iterable[Any]) -> None:
    for proto in nodes:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        version = scope.opsets[domain]
        declared = schema(proto.op_type, version, domain)
        assert declared is not None
        try:
            with get_default_graph().name_scope(clean_name(proto.name or proto.op_type)):
                node = Node(proto, scope, declared, version)
                rule = _rule_for(domain, declared)
                if rule is None:
                    raise node.refuse("this operator, of which another one consists")
                made = rule(node)
        except (DataLossError, PermissionDeniedError, UnimplementedError):
            raise
        except (OpError, *DAMAGE) as error:
            reason = reason_of(error)
            raise DataLossError(f"{scope.file.path} is damaged: {proto.op_type} {proto.name!r}: {reason}") from error
        given = [made] if isinstance(made, Tensor) else list(made)
        for index, name in enumerate(proto.output):
            if not name:
                continue
            if index >= len(given) or given[index] is None:
                raise UnimplementedError(f"{proto.op_type} {proto.name!r}: tfray has no counterpart of output {index}")
            if name in scope.values:
                raise DataLossError(f"{scope.file.path} is damaged: two nodes give {name!r}")
            scope.values[name] = given[index]


def _rule_for(domain: str, declared: Schema) -> Rule | None:
    """What adds the operations for an operator; None if there is no counterpart."""
    name = declared.source.name
    if (domain, name) in LOADS:
        return LOADS[domain, name]
    if not domain and name in BY_OPERATOR:
        return _same
    return Node.expanded if declared.is_function and domain in _OPSETS else None


def _same(node: Node) -> Any:
    ours, same = BY_OPERATOR[node.operator]
    if node.declared.is_function and not all(node.has(name, value) for name, value in same.fixed.items()):
        return node.expanded()
    node.require(**same.fixed)
    attrs = {here: node.attr(there) for here, there in same.attrs.items()}
    definition = lookup(ours)
    variadic = definition.input_arguments[-1].count is not None
    inputs = [node.input(index) for index in range(len(node.inputs))]
    return add_op(definition, *([inputs] if variadic else inputs), **attrs)
