"""Operations between the layers of a model, as layers."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from tfray.exchange.graph_import import import_graph_def
from tfray.formats.graph_proto import GraphDef
from tfray.framework import nest
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Graph, Operation, get_default_graph
from tfray.library.layers.keras_layer import Layer
from tfray.library.variables.kept_session import get_session
from tfray.ops.arrays.source_ops import constant, placeholder

__all__ = ["ScaledSum", "TensorFlowOpLayer"]


class TensorFlowOpLayer(Layer):
    """Adds an operation like one that the program has put between layers.

    Args:
        operation: The operation.
        places: Which of its inputs a call gives. The others are what they are for `operation`.
        name: Name of the layer.
        **kwargs: As for `Layer`.
    """

    def __init__(self, operation: Operation, places: Sequence[int], name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name or f"tf_op_layer_{operation.name.replace('/', '_')}", **kwargs)
        self._operation, self._places = operation, list(places)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        source, graph = self._operation, get_default_graph()
        given = dict(zip(self._places, nest.flatten(inputs), strict=True))
        tensors: list[Any] = [given.get(place, own) for place, own in enumerate(source.inputs)]
        if source.graph is not graph:  # it was restored: its own inputs are constants
            values: list[Any] = [None if each.graph is graph else constant_value(each) for each in tensors]
            tensors = [each if value is None else constant(value) for each, value in zip(tensors, values, strict=True)]
        made = graph.add_operation(source.type, tensors, source.attrs, name=source.type)
        return made.outputs[0] if len(made.outputs) == 1 else list(made.outputs)

    def get_config(self) -> dict[str, Any]:
        """The operation as the bytes of a graph, in which the inputs that no call gives are constants."""
        inputs = list(self._operation.inputs)
        own = [place for place in range(len(inputs)) if place not in self._places]
        values = dict(zip(own, get_session().run([inputs[place] for place in own]), strict=True))
        with Graph().as_default() as graph:
            tensors = [
                constant(values[place], each.dtype) if place in values else placeholder(each.dtype, each.shape)
                for place, each in enumerate(inputs)
            ]
            graph.add_operation(self._operation.type, tensors, self._operation.attrs, name=_NAME)
            written = base64.b64encode(graph.as_graph_def().SerializeToString()).decode()
        return {"name": self.name, "trainable": self.trainable, "graph": written, "places": self._places}

    @classmethod
    def _known_arguments(cls) -> set[str]:
        return {"name", "trainable", "graph", "places"}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """What `get_config` describes, made anew."""
        definition = GraphDef.FromString(base64.b64decode(config["graph"]))
        with Graph().as_default():
            found: Any = import_graph_def(definition, return_elements=[_NAME])
        return cls(found[0], config["places"], config["name"], trainable=config["trainable"])


_NAME: Final = "operation"


class ScaledSum(Layer):
    """The first input, and `scale` times the second."""

    def __init__(self, scale: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        first, second = inputs
        return first + second * self.scale
