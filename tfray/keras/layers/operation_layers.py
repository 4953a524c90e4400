"""Operations between the layers of a model, as layers."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from tfray.errors import InvalidArgumentError
from tfray.exchange.graph_import import import_graph_def
from tfray.exchange.op_table import OWN, OWN_ATTRS, tensorflow_op
from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.formats.tensor_proto import make_ndarray
from tfray.framework import nest
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.library.layers.keras_layer import Layer
from tfray.library.variables.kept_session import get_session
from tfray.ops.arrays.source_ops import constant, placeholder

__all__ = ["AddLoss", "AddMetric", "ScaledSum", "TensorFlowOpLayer"]


class TensorFlowOpLayer(Layer):
    """Adds an operation like one that the program has put between layers.

    Args:
        node_def: The operation as TensorFlow's files describe it: a NodeDef, or one as bytes or in the form of JSON.
        name: Name of the operation; ``tf_op_layer_`` comes before it in the layer's.
        constants: The inputs that no call gives, by their places.
        **kwargs: As for `Layer`.
    """

    def __init__(self, node_def: Any, name: str, constants: Mapping[Any, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(name=_PREFIX + name.removeprefix(_PREFIX), **kwargs)
        self._operation: Operation | None = None
        self._places: list[int] = []
        self._definition: Any = None if node_def is None else _definition_of(_node_of(node_def), constants or {})

    @classmethod
    def of(cls, operation: Operation, places: Sequence[int]) -> Self:
        """A layer for an operation. A call gives its inputs at these places; the others are what they are for it."""
        layer = cls(None, operation.name.replace("/", "_"))
        layer._operation, layer._places = operation, list(places)
        return layer

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        given = nest.flatten(inputs)
        if self._operation is None:
            made = _imported(self._definition, given)
        else:
            own, places = self._operation, iter(given)
            tensors = [next(places) if place in self._places else each for place, each in enumerate(own.inputs)]
            made = get_default_graph().add_operation(own.type, tensors, own.attrs, name=own.type).outputs
        return made[0] if len(made) == 1 else list(made)

    def get_config(self) -> dict[str, Any]:
        """The operation as TensorFlow describes it in files; as a graph where it has no such operation."""
        definition = self._definition if self._operation is None else _described(self._operation, self._places)
        config = {"name": self.name.removeprefix(_PREFIX), "trainable": self.trainable}
        found = _single_node(definition)
        if found is None:
            return {**config, "graph": base64.b64encode(definition.SerializeToString()).decode()}
        node, constants = found
        return {**config, "dtype": None, "node_def": MessageToDict(node), "constants": constants}

    @classmethod
    def _known_arguments(cls) -> set[str]:
        return {"name", "trainable", "dtype", "node_def", "constants", "graph", "places"}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """What `get_config` describes, made anew."""
        layer = cls(config.get("node_def"), config["name"], config.get("constants"), trainable=config["trainable"])
        if "graph" in config:
            layer._definition = GraphDef.FromString(base64.b64decode(config["graph"]))
        if layer._definition is None or all(node.name != _NAME for node in layer._definition.node):
            raise InvalidArgumentError(f"the description of layer {layer.name!r} has no operation")
        return layer


_PREFIX: Final = "tf_op_layer_"
_NAME: Final = "operation"
_INPUT: Final = "Placeholder"


def _node_of(described: Any) -> Any:
    if isinstance(described, Mapping):
        try:
            return ParseDict(dict(described), NodeDef())
        except ParseError as error:
            raise InvalidArgumentError(f"this is no NodeDef in the form of JSON: {error}") from error
    return described if isinstance(described, NodeDef) else NodeDef.FromString(described)


def _definition_of(node: Any, constants: Mapping[Any, Any]) -> Any:
    """A graph of a node, its constant inputs, by their places, and placeholders for the others."""
    definition = tensorflow_op(node.op)
    if definition is None:
        raise InvalidArgumentError(f"TensorFlow has no operation {node.op!r}, which {node.name!r} is")
    known = {int(place): value for place, value in constants.items()}
    with Graph().as_default() as graph:
        dtypes = [as_dtype(kind) for arg in definition.inputs for kind in arg.dtypes(node, definition.attrs)]
        inputs = [
            constant(known[place], dtype) if place in known else placeholder(dtype, name=_INPUT)
            for place, dtype in enumerate(dtypes)
        ]
        message = graph.as_graph_def()
    added = message.node.add()
    added.CopyFrom(node)
    added.name, added.device = _NAME, ""
    del added.input[:]
    added.input.extend(tensor.op.name for tensor in inputs)
    return message


def _described(operation: Operation, places: Sequence[int]) -> Any:
    """A graph of an operation, with placeholders at these places, and constants for its other inputs."""
    inputs = list(operation.inputs)
    own = [place for place in range(len(inputs)) if place not in places]
    with operation.graph.as_default():  # another one may be current: the model is to be built there anew
        values = dict(zip(own, get_session().run([inputs[place] for place in own]), strict=True))
    with Graph().as_default() as graph:
        tensors = [
            constant(values[place], each.dtype) if place in values else placeholder(each.dtype, each.shape, name=_INPUT)
            for place, each in enumerate(inputs)
        ]
        graph.add_operation(operation.type, tensors, operation.attrs, name=_NAME)
        return graph.as_graph_def()


def _single_node(definition: Any) -> tuple[Any, dict[str, Any]] | None:
    """The node of such a graph, and its constants by their places; None if it is no single one of TensorFlow's."""
    nodes = {node.name: node for node in definition.node}
    node = nodes.pop(_NAME)
    sources = [nodes.get(name) for name in node.input]
    given = [source.name for source in sources if source is not None and source.op == "Placeholder"]
    constants = {
        str(place): make_ndarray(source.attr["value"].tensor).tolist()
        for place, source in enumerate(sources)
        if source is not None and source.op == "Const"
    }
    is_single = len(given) + len(constants) == len(sources) == len(nodes)
    in_order = given == [name for name, source in nodes.items() if source.op == "Placeholder"]
    plain = not node.op.startswith(OWN) and OWN_ATTRS not in node.attr and not _is_beyond_json(list(constants.values()))
    if not (is_single and in_order and plain):
        return None
    return node, constants


def _is_beyond_json(value: Any) -> bool:
    return any(map(_is_beyond_json, value)) if isinstance(value, list) else isinstance(value, (bytes, complex))


def _imported(definition: Any, given: Sequence[Tensor]) -> Sequence[Tensor]:
    """What the operation of such a graph makes of tensors."""
    *_, node = (each for each in definition.node if each.name == _NAME)
    names = [each.name for each in definition.node if each.op == "Placeholder"]
    there = tensorflow_op(node.op)
    wanted = [_NAME] if there is None else [f"{_NAME}:{index}" for index in range(len(there.tensors(node)))]
    found: Any = import_graph_def(definition, dict(zip(names, given, strict=True)), wanted)
    return found[0].outputs if there is None else found


class AddLoss(Layer):
    """Adds its input to the losses: what `Model.add_loss` has added, as a layer, so that descriptions have it.

    Args:
        unconditional: Whether the loss is of no inputs. It is kept for TensorFlow's files.
        **kwargs: As for `Layer`.
    """

    def __init__(self, unconditional: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unconditional = unconditional

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        self.add_loss(inputs, inputs=True)
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Shape of the input."""
        return input_shape


class AddMetric(Layer):
    """Adds its input to the metrics: what `Model.add_metric` has added, as a layer, so that descriptions have it.

    Args:
        aggregation: As for `Layer.add_metric`.
        metric_name: Name of the metric.
        **kwargs: As for `Layer`.
    """

    def __init__(self, aggregation: str | None = None, metric_name: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.aggregation, self.metric_name = aggregation, metric_name

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        self.add_metric(inputs, self.aggregation, self.metric_name)
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Shape of the input."""
        return input_shape


class ScaledSum(Layer):
    """The first input, and `scale` times the second."""

    def __init__(self, scale: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        first, second = inputs
        return first + second * self.scale
