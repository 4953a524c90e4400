"""Signatures of saved models: the functions that a graph offers, by the names of their arguments and results."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from tfray.errors import InvalidArgumentError
from tfray.formats.meta_graph_proto import SignatureDef, SparseTensorInfo, TensorInfo
from tfray.framework.dtypes import DType, float32, string
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor

signature_constants = SimpleNamespace(
    DEFAULT_SERVING_SIGNATURE_DEF_KEY="serving_default",
    CLASSIFY_INPUTS="inputs",
    CLASSIFY_METHOD_NAME="tensorflow/serving/classify",
    CLASSIFY_OUTPUT_CLASSES="classes",
    CLASSIFY_OUTPUT_SCORES="scores",
    PREDICT_INPUTS="inputs",
    PREDICT_METHOD_NAME="tensorflow/serving/predict",
    PREDICT_OUTPUTS="outputs",
    REGRESS_INPUTS="inputs",
    REGRESS_METHOD_NAME="tensorflow/serving/regress",
    REGRESS_OUTPUTS="outputs",
)


def build_tensor_info(tensor: Tensor | SparseTensor) -> TensorInfo:
    """The description of a tensor for a signature: its name, the number of its dtype, and its static shape."""
    made = TensorInfo(dtype=int(tensor.dtype), tensor_shape=tensor.get_shape().as_proto())
    if isinstance(tensor, SparseTensor):
        parts = {"values": tensor.values, "indices": tensor.indices, "dense_shape": tensor.dense_shape}
        made.coo_sparse.CopyFrom(SparseTensorInfo(**{f"{key}_tensor_name": part.name for key, part in parts.items()}))
    else:
        made.name = tensor.name
    return made


def get_tensor_from_tensor_info(
    tensor_info: TensorInfo, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor | SparseTensor:
    """The tensor of a graph that a signature describes."""
    graph = graph or get_default_graph()
    prefix = f"{import_scope.rstrip('/')}/" if import_scope else ""
    if tensor_info.WhichOneof("encoding") == "coo_sparse":
        parts = tensor_info.coo_sparse
        names = parts.indices_tensor_name, parts.values_tensor_name, parts.dense_shape_tensor_name
        return SparseTensor(*(graph.get_tensor_by_name(prefix + name) for name in names))
    return graph.get_tensor_by_name(prefix + tensor_info.name)


def build_signature_def(
    inputs: Mapping[str, TensorInfo] | None = None,
    outputs: Mapping[str, TensorInfo] | None = None,
    method_name: str | None = None,
) -> SignatureDef:
    """A signature of tensors by name."""
    return SignatureDef(inputs=dict(inputs or {}), outputs=dict(outputs or {}), method_name=method_name or "")


def predict_signature_def(inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> SignatureDef:
    """The signature of a function from tensors to tensors."""
    if not inputs or not outputs:
        raise InvalidArgumentError("a signature needs at least one input and one output")
    taken, given = ({key: build_tensor_info(tensor) for key, tensor in each.items()} for each in (inputs, outputs))
    return build_signature_def(taken, given, signature_constants.PREDICT_METHOD_NAME)


def classification_signature_def(
    examples: Tensor, classes: Tensor | None = None, scores: Tensor | None = None
) -> SignatureDef:
    """The signature of a classifier of serialized examples.

    Args:
        examples: Strings.
        classes: Strings, names of classes; or None.
        scores: float32, a score for each class; or None.

    Raises:
        ValueError: There are neither classes nor scores, or something is no tensor of such a dtype.
    """
    _check_tensors({"examples": (examples, string)}, {"classes": (classes, string), "scores": (scores, float32)})
    results = {
        signature_constants.CLASSIFY_OUTPUT_CLASSES: classes,
        signature_constants.CLASSIFY_OUTPUT_SCORES: scores,
    }
    outputs = {key: build_tensor_info(tensor) for key, tensor in results.items() if tensor is not None}
    if not outputs:
        raise InvalidArgumentError("a classifier gives classes or scores")
    inputs = {signature_constants.CLASSIFY_INPUTS: build_tensor_info(examples)}
    return build_signature_def(inputs, outputs, signature_constants.CLASSIFY_METHOD_NAME)


def regression_signature_def(examples: Tensor, predictions: Tensor) -> SignatureDef:
    """The signature of a regression on serialized examples.

    Args:
        examples: Strings.
        predictions: float32.

    Raises:
        ValueError: One of them is no tensor of such a dtype.
    """
    _check_tensors({"examples": (examples, string), "predictions": (predictions, float32)})
    inputs = {signature_constants.REGRESS_INPUTS: build_tensor_info(examples)}
    outputs = {signature_constants.REGRESS_OUTPUTS: build_tensor_info(predictions)}
    return build_signature_def(inputs, outputs, signature_constants.REGRESS_METHOD_NAME)


def _check_tensors(
    needed: Mapping[str, tuple[object, DType]], optional: Mapping[str, tuple[object, DType]] | None = None
) -> None:
    for name, (tensor, dtype) in (*needed.items(), *(optional or {}).items()):
        if tensor is None and name in needed:
            raise InvalidArgumentError(f"{name} cannot be None")
        if tensor is not None and (not isinstance(tensor, Tensor) or tensor.dtype != dtype):
            raise InvalidArgumentError(f"{name} is to be a tensor of {dtype.name}, not {tensor!r}")


def is_valid_signature(signature_def: SignatureDef) -> bool:
    """Whether a server can call a signature: its method is TensorFlow's, and it has the tensors that this asks for."""
    names, inputs, outputs = signature_constants, signature_def.inputs, signature_def.outputs
    if signature_def.method_name == names.CLASSIFY_METHOD_NAME:
        wanted = {names.CLASSIFY_OUTPUT_CLASSES: string, names.CLASSIFY_OUTPUT_SCORES: float32}
        return _is_of_strings(inputs, names.CLASSIFY_INPUTS) and bool(outputs) and _are_of(outputs, wanted)
    if signature_def.method_name == names.REGRESS_METHOD_NAME:
        wanted = {names.REGRESS_OUTPUTS: float32}
        return _is_of_strings(inputs, names.REGRESS_INPUTS) and bool(outputs) and _are_of(outputs, wanted)
    return bool(signature_def.method_name == names.PREDICT_METHOD_NAME and inputs and outputs)


def _is_of_strings(inputs: Mapping[str, TensorInfo], name: str) -> bool:
    return set(inputs) == {name} and inputs[name].dtype == int(string)


def _are_of(outputs: Mapping[str, TensorInfo], wanted: Mapping[str, DType]) -> bool:
    return all(name in wanted and info.dtype == int(wanted[name]) for name, info in outputs.items())
