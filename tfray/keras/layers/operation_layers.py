"""Operations between the layers of a model, as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework import nest
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.keras.layers.remembered_layers import Layer


class TensorFlowOpLayer(Layer):
    """Adds an operation like one that the program has put between layers.

    Args:
        operation: The operation.
        places: Which of its inputs a call gives. The others are what they are for `operation`.
        **kwargs: As for `Layer`.
    """

    def __init__(self, operation: Operation, places: Sequence[int], **kwargs: Any) -> None:
        super().__init__(name=operation.name.replace("/", "_"), **kwargs)
        self._operation, self._places = operation, list(places)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        source = self._operation
        tensors: list[Tensor] = list(source.inputs)
        for place, tensor in zip(self._places, nest.flatten(inputs), strict=True):
            tensors[place] = tensor
        made = get_default_graph().create_op(source.type, tensors, source.attrs, name=source.type)
        return made.outputs[0] if len(made.outputs) == 1 else list(made.outputs)
