"""From tfray's graphs to files of ONNX."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import tfray.onnx.export_arrays
import tfray.onnx.export_flow
import tfray.onnx.export_layers  # noqa: F401  (declare rules)
from tfray.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.importer import from_graph_def
from tfray.framework.traversal import reachable_backward
from tfray.onnx.onnx_body import Body, Shared, used_nodes
from tfray.onnx.onnx_types import onnx_package
from tfray.placement.prune import prune
from tfray.placement.simplify import simplify
from tfray.session import Session
from tfray.training.checkpoints.saved_model import LoadedModel, frozen_graph

_IR_VERSIONS: Final = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
"""The version of the form of files with which each set of operators came."""

_MOST_BYTES: Final = 2_000_000_000
"""2 GB. Protobuf's messages may have 2 GiB, of which names and nodes need some."""

Tensors = Mapping[str, Tensor] | Sequence[Tensor]


def export(
    session_or_saved_model: Session | LoadedModel | PathLike,
    path: PathLike,
    inputs: Tensors | None = None,
    outputs: Tensors | None = None,
    opset: int = 17,
    *,
    allow: Collection[str] = (),
) -> None:
    """Write the part of a graph between some tensors to a file of ONNX, with the values of its variables.

    Images stay as they are at inputs and outputs: ``[batch, height, width, channels]``. Within, the file has them with
    channels first, as ONNX wants them. Sizes that are not known, such as the batch, have names (``dim_param``).
    Operations that only wait (control inputs) and checks (`tf.Assert`) are left out.

    Args:
        session_or_saved_model: The session that holds the variables, a model that `tf.saved_model.load_model` gave, or
            the folder of a saved model.
        path: The file to write.
        inputs: The tensors to feed, by the names that the file gives them; a list names them as their operations. None
            for those of the saved model.
        outputs: The tensors to compute, likewise.
        opset: Version of ONNX's operators, 13 to 21.
        allow: What operations of a saved model may use while it is loaded: see `tf.saved_model.load_model`.

    Raises:
        UnimplementedError: There are operations without counterpart. The error names each type, how often it stands,
            and the first operation of it with the line that made it.
        InvalidArgumentError: An output needs a placeholder that is not among the inputs; an unknown opset; names of
            inputs or outputs without a session.
        ResourceExhaustedError: The variables take more than 2 GB.
        PermissionDeniedError: Operations of the saved model use more than `allow` says.
        NotFoundError: The package ``onnx`` is not installed, or there is no such saved model.
    """
    if opset not in _IR_VERSIONS:
        raise InvalidArgumentError(f"opset is {opset!r}, expected {min(_IR_VERSIONS)} to {max(_IR_VERSIONS)}")
    onnx_package()
    if isinstance(session_or_saved_model, Session):
        if inputs is None or outputs is None:
            raise InvalidArgumentError("with a session, say which tensors are inputs and which are outputs")
        model = _converted(session_or_saved_model, inputs, outputs, opset)
    elif isinstance(session_or_saved_model, LoadedModel):
        model = _converted_model(session_or_saved_model, inputs, outputs, opset)
    else:
        loaded = LoadedModel(session_or_saved_model, allow=allow)
        try:
            model = _converted_model(loaded, inputs, outputs, opset)
        finally:
            loaded.close()
    files.write_bytes(path, model.SerializeToString())


def _converted_model(model: LoadedModel, inputs: Tensors | None, outputs: Tensors | None, opset: int) -> Any:
    session = model.session
    taken, given = (
        {key: session.graph.get_tensor_by_name(info.name) for key, info in infos.items()}
        for infos in (model.inputs, model.outputs)
    )
    return _converted(session, taken if inputs is None else inputs, given if outputs is None else outputs, opset)


def _named(graph: Graph, tensors: Tensors) -> dict[str, Tensor]:
    if isinstance(tensors, Mapping):
        return {name: _tensor(graph, each) for name, each in tensors.items()}
    tensors = [_tensor(graph, each) for each in tensors]
    named = {tensor.op.name if tensor.value_index == 0 else tensor.name: tensor for tensor in tensors}
    if len(named) != len(tensors):
        raise InvalidArgumentError("a tensor is listed twice")
    return named


def _tensor(graph: Graph, element: Any) -> Tensor:
    """The tensor that a tensor, a variable or a name stands for."""
    found = graph.as_graph_element(element, allow_operation=False)
    assert isinstance(found, Tensor)
    return found


def _converted(session: Session, wanted_inputs: Tensors, wanted_outputs: Tensors, opset: int) -> Any:
    inputs, outputs = (_named(session.graph, each) for each in (wanted_inputs, wanted_outputs))
    frozen = from_graph_def(frozen_graph(session, inputs, outputs))
    taken, given = (
        {key: frozen.get_tensor_by_name(tensor.name) for key, tensor in each.items()} for each in (inputs, outputs)
    )
    fed, fetched = list(taken.values()), list(given.values())
    targets = [tensor.op for tensor in fetched]
    simple = simplify(prune(targets, fed), fed, targets, fetched)
    # What is fed and wanted at once keeps its own operation among `tensors`.
    starts = {key: simple.feeds[tensor].outputs[0] for key, tensor in taken.items()}
    ends = {key: simple.feeds[t].outputs[0] if t in simple.feeds else simple.tensors[t] for key, t in given.items()}
    return _model(simple.graph, starts, ends, opset)


def _model(graph: Graph, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], opset: int) -> Any:
    onnx, shared = onnx_package(), Shared(opset)
    body = Body(shared)
    shared.taken.update(inputs, outputs)
    for name, tensor in inputs.items():
        body.put(tensor, name)
    needed = reachable_backward((t.op for t in outputs.values()), lambda op: [tensor.op for tensor in op.inputs])
    for op in graph.get_operations():
        if op in needed and op.type == "Placeholder" and op.outputs[0] not in inputs.values():
            raise InvalidArgumentError(
                "an output depends on this placeholder, which is not among the inputs", op_name=op.name, site=op.site
            )
    body.add_all(op for op in graph.get_operations() if op in needed)
    if shared.missing:
        raise UnimplementedError(_report(shared.missing))
    for name, tensor in outputs.items():
        body.named(name, body.text(tensor))
    nodes, names = used_nodes(body.nodes, outputs)
    constants = [constant for constant in shared.initializers if constant.name in names]
    size = sum(len(constant.raw_data) for constant in constants)
    if size > _MOST_BYTES:
        raise ResourceExhaustedError(f"the constants take {size} bytes; a file of ONNX holds {_MOST_BYTES}")
    made = onnx.helper.make_graph(
        nodes,
        "tfray",
        [body.value_info(name, tensor.dtype, tensor.shape, name) for name, tensor in inputs.items()],
        [body.value_info(name, tensor.dtype, tensor.shape) for name, tensor in outputs.items()],
        constants,
    )
    opsets = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(made, opset_imports=opsets, ir_version=_IR_VERSIONS[opset], producer_name="tfray")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        raise UnimplementedError(
            f"ONNX has no counterpart of an operation with these dtypes or shapes: {error}"
        ) from error
    for given, found in zip(model.graph.output, inferred.graph.output, strict=True):
        given.CopyFrom(found)  # where a size is that of an input, it has its name
        for axis, size in enumerate(given.type.tensor_type.shape.dim):
            if size.WhichOneof("value") is None:
                size.dim_param = f"{given.name}_{axis}"
    return model


def _report(missing: Mapping[str, Sequence[tuple[Operation, str]]]) -> str:
    lines = ["the graph has operations that ONNX has no counterpart of:"]
    for kind, found in sorted(missing.items()):
        op, reason = found[0]
        lines.append(
            f"  {kind} ({len(found)}): the first is {op.name!r}, made at {op.site}" + f": {reason}" * bool(reason)
        )
    return "\n".join(lines)
