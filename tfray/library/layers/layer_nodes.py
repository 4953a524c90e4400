"""The calls of layers as nodes of a network, what programs read of `Layer.inbound_nodes`; what of it is trainable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tfray.framework import nest
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.library.layers.layer_history import history
from tfray.ops.arrays.source_ops import placeholder


@dataclass(frozen=True)
class Node:
    """A call of a layer.

    Attributes:
        outbound_layer: The layer.
        input_tensors: Its inputs, a tensor or a structure of them.
        output_tensors: Its outputs, likewise.
        sources: For each input, the layer that has made it, the number of that call, and the place among its outputs.
            An input of a model has none.
    """

    outbound_layer: Any
    input_tensors: Any
    output_tensors: Any
    sources: tuple[tuple[Any, int, int], ...]

    @property
    def inbound_layers(self) -> Any:
        """The layers that have made the inputs: one, or a list."""
        return self._part(0)

    @property
    def node_indices(self) -> Any:
        """The numbers of the calls that have made the inputs: one, or a list."""
        return self._part(1)

    @property
    def tensor_indices(self) -> Any:
        """The places of the inputs among the outputs of these calls: one, or a list."""
        return self._part(2)

    @property
    def input_shapes(self) -> Any:
        """The shapes of the inputs, tuples."""
        return nest.map_structure(sizes_of, self.input_tensors)

    @property
    def output_shapes(self) -> Any:
        """The shapes of the outputs, tuples."""
        return nest.map_structure(sizes_of, self.output_tensors)

    def iterate_inbound(self) -> Iterator[tuple[Any, int, int, Tensor]]:
        """Each input's layer, the number of its call, the place among its outputs, and the input."""
        for source, tensor in zip(self.sources, nest.flatten(self.input_tensors), strict=False):
            yield (*source, tensor)

    def _part(self, number: int) -> Any:
        parts = [source[number] for source in self.sources]
        return parts[0] if len(parts) == 1 and isinstance(self.input_tensors, Tensor) else parts


def sizes_of(tensor: Tensor) -> Any:
    """The static shape of a tensor as a tuple; None where its rank is not known."""
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


def _is_its_own(layer: Any, outputs: Any) -> bool:
    """Whether these outputs of a model are those that it was made of, and not of a call on other inputs."""
    first = next(iter(nest.flatten(outputs)), None)
    own = getattr(layer, "outputs", None)
    if not isinstance(own, list) or not any(first is each for each in own):
        return False
    return first in history() and history()[first][0] is not layer


def nodes_into(layer: Any) -> list[Node]:
    """The calls of a layer, in order."""
    return [
        Node(layer, inputs, outputs, tuple(_sources(layer, inputs, outputs)))
        for inputs, outputs in layer._recorded_calls
    ]


def nodes_out_of(layer: Any) -> list[Node]:
    """The calls of other layers with what this one has made."""
    others = dict.fromkeys(record[0] for record in history().values())
    return [node for other in others for node in nodes_into(other) if any(each[0] is layer for each in node.sources)]


def _sources(layer: Any, inputs: Any, outputs: Any) -> Iterator[tuple[Any, int, int]]:
    if _is_its_own(layer, outputs):
        return
    for tensor in nest.flatten(inputs):
        if tensor not in history() or inputs is outputs:
            continue
        source = history()[tensor][0]
        for number, call in enumerate(source._recorded_calls):
            places = [place for place, each in enumerate(nest.flatten(call[1])) if each is tensor]
            yield from ((source, number, place) for place in places)


def trainable_states(layer: Any) -> dict[Any, bool]:
    """Whether a layer, and each one within it, is trainable."""
    found = {layer: layer.trainable}
    for each in layer._layers_within():
        found |= trainable_states(each)
    return found


@contextmanager
def given_states(layer: Any, states: Mapping[Any, bool]) -> Iterator[None]:
    """Let a layer and those within it be as trainable as they were then. One that is not listed stays as it is."""
    now = trainable_states(layer)
    _set(states)
    try:
        yield
    finally:
        _set(now)


def _set(states: Mapping[Any, bool]) -> None:
    for layer, is_trainable in states.items():  # those within a layer come after it, which sets theirs
        layer.trainable = is_trainable


def placeholders(shape: Any) -> Any:
    """Placeholders of a shape, or of each in a structure of shapes."""
    if isinstance(shape, dict):
        return {name: placeholders(each) for name, each in shape.items()}
    if isinstance(shape, (list, tuple)) and any(isinstance(each, (list, tuple, dict, TensorShape)) for each in shape):
        return type(shape)([placeholders(each) for each in shape])
    return placeholder("float32", shape)
