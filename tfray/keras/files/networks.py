"""Models as the calls of layers between their inputs and outputs, in the graph and as Keras describes them.

A description has the layers, each with where its inputs come from: the name of a layer, the number of its call, and the
number of the output of that call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.graph import Operation, Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.keras.files import functions
from tfray.keras.layers import Input
from tfray.keras.layers.operation_layers import AddLoss, AddMetric, TensorFlowOpLayer
from tfray.library.layers.descriptions import described, restored
from tfray.library.layers.layer_history import history


class Call(NamedTuple):
    """One call of a layer."""

    layer: Any
    arguments: Any
    settings: dict[str, Any]
    outputs: Sequence[Tensor]

    def sources(self) -> list[Tensor]:
        """The tensors that it was called with."""
        return _tensors(self.arguments, self.settings)


def _tensors(arguments: Any, settings: Mapping[str, Any]) -> list[Any]:
    return [each for each in nest.flatten([arguments, dict(settings)]) if isinstance(each, (Tensor, SparseTensor))]


def _plain_if_one(tensors: Sequence[Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else list(tensors)


class _Search:
    """Goes from the outputs back to the inputs: without recursion, as networks are deep."""

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self.calls: list[Call] = []
        self.places: dict[Any, int] = {}  # of layers, and operations that stand for some, as they are come across
        self._known = history()
        self._depends: dict[Any, bool] = dict.fromkeys(inputs, True)
        for each in inputs:
            if isinstance(each, SparseTensor):
                self._depends.update(dict.fromkeys((each.indices, each.values, each.dense_shape), True))
        self._made_by: dict[
            tuple[Any, int], list[Tensor]
        ] = {}  # by the layer and the settings, which are each call's own
        for tensor, (layer, _, settings) in self._known.items():
            self._made_by.setdefault((layer, id(settings)), []).append(tensor)
        for output in outputs:
            self._visit(output)
            if not self._depends[output]:
                raise InvalidArgumentError(
                    f"{output.name!r} is neither an input of the model nor made of one by layers"
                )

    def _visit(self, output: Tensor) -> None:
        waiting = [(output, False)]
        while waiting:
            tensor, is_ready = waiting.pop()
            made = self._known.get(tensor)
            if not is_ready:
                self.places.setdefault(tensor.op if made is None else made[0], len(self.places))
            if tensor in self._depends:
                continue
            sources = self._sources(tensor, made)
            if not is_ready:
                waiting += [(tensor, True), *((each, False) for each in reversed(sources))]
            elif made is None and isinstance(tensor, SparseTensor):
                self._depends[tensor] = any(self._depends[each] for each in sources)
            elif made is None:
                self._finish_operation(tensor.op)
            else:
                layer, arguments, settings = made
                call = Call(layer, arguments, settings, self._made_by[layer, id(settings)])
                self._finish(call, any(self._depends[each] for each in sources))

    @staticmethod
    def _sources(tensor: Tensor, made: Any) -> list[Tensor]:
        if made is None:
            if isinstance(tensor, SparseTensor):
                return [tensor.indices, tensor.values, tensor.dense_shape]
            if tensor.op.type == "Placeholder":
                raise InvalidArgumentError(
                    f"{tensor.name!r} is neither an input of the model nor made by a layer of tf.keras of one"
                )
            return list(tensor.op.inputs)
        layer, arguments, settings = made
        if arguments is None:
            raise InvalidArgumentError(
                f"Graph disconnected: cannot obtain value for tensor {tensor} at layer {layer.name!r}: it is an input, "
                "and not among those of the model"
            )
        return _tensors(arguments, settings)

    def _finish_operation(self, op: Operation) -> None:
        places = [place for place, given in enumerate(op.inputs) if self._depends[given]]
        if not places:
            self._depends.update(dict.fromkeys(op.outputs, False))
            return
        call = Call(TensorFlowOpLayer.of(op, places), [op.inputs[place] for place in places], {}, op.outputs)
        call.layer._recorded_calls.append((_plain_if_one(call.arguments), _plain_if_one(call.outputs)))
        self._known.update((output, call[:3]) for output in op.outputs)
        self.places[call.layer] = self.places.pop(op)
        self._finish(call, True)

    def _finish(self, call: Call, depends: bool) -> None:
        self._depends.update(dict.fromkeys(call.outputs, depends))
        if depends:
            self.calls.append(call)


def calls_between(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[list[Call], list[Any]]:
    """The calls that lead from inputs to outputs, in an order in which they can be run, and the layers.

    The layers are in the order that Keras has them in, farthest from the outputs first: weights in files follow it.

    Raises:
        InvalidArgumentError: The outputs depend on inputs that are not given, or are not made by layers.
    """
    search = _Search(inputs, outputs)
    known = history()
    begins = [Call(known[tensor][0], [], {}, [tensor]) for tensor in inputs if tensor in known]
    by_output = {output: call for call in (*begins, *search.calls) for output in call.outputs}
    depths: dict[Tensor, int] = {}
    of_layers: dict[Any, int] = {}
    for call in reversed([*begins, *search.calls]):
        depth = max(depths.get(call.outputs[0], 0), of_layers.get(call.layer, 0))
        of_layers[call.layer] = depth
        for source in call.sources():
            if source in by_output:
                first = by_output[source].outputs[0]
                depths[first] = max(depths.get(first, 0), depth + 1)
    return search.calls, sorted(of_layers, key=lambda layer: (-of_layers[layer], search.places.get(layer, -1)))


# -- descriptions ----------------------------------------------------------------------------------------


def described_network(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], calls: Sequence[Call], layers: Sequence[Any]
) -> dict[str, Any]:
    """The layers of a model, and how they were called, as Keras has them in configurations.

    Raises:
        InvalidArgumentError: Two layers have one name.
    """
    names = [layer.name for layer in layers]
    if len(set(names)) != len(names):
        raise InvalidArgumentError(f"the model cannot be described, as names of layers are not unique: {names}")
    numbers: dict[Any, int] = {}
    origins: dict[Tensor, list[Any]] = {}
    for tensor in inputs:
        origins[tensor] = [history()[tensor][0].name, 0, 0]
    nodes: dict[Any, list[Any]] = {layer: [] for layer in layers}
    for call in calls:
        number = numbers.setdefault(call.layer, _first_call(call.layer))
        numbers[call.layer] += 1
        origins.update((tensor, [call.layer.name, number, place]) for place, tensor in enumerate(call.outputs))
        settings = described(exchanged(call.settings, origins))
        node = nest.map_structure(lambda tensor, own=settings: _Entry([*origins[tensor], own]), call.arguments)
        nodes[call.layer].append(_plain(node if isinstance(node, (list, tuple, dict)) else [node]))
    return {
        "layers": [
            {**described(layer), "name": layer.name, "inbound_nodes": [] if _is_input(layer) else nodes[layer]}
            for layer in layers
        ],
        "input_layers": [origins[tensor] for tensor in inputs],
        "output_layers": [origins[tensor] for tensor in outputs],
    }


class _Entry:
    """Where a tensor comes from: no list, so that structures end here."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def _plain(node: Any) -> Any:
    if isinstance(node, _Entry):
        return node.items
    return (
        {key: _plain(each) for key, each in node.items()} if isinstance(node, dict) else [_plain(each) for each in node]
    )


def _is_input(layer: Any) -> bool:
    return type(layer).__name__ == "InputLayer"


def _first_call(layer: Any) -> int:
    """The number of the first call: Keras counts how a model was made as one of its calls."""
    return 1 if getattr(layer, "inputs", None) and hasattr(layer, "_can_be_cloned") else 0


def exchanged(settings: Mapping[str, Any], tensors: Mapping[Tensor, Any]) -> Any:
    """Further arguments of a call, with others for their tensors, as far as `tensors` has them."""
    return nest.map_structure(
        lambda value: tensors.get(value, value) if isinstance(value, Tensor) else value, dict(settings)
    )


def restored_input(config: Mapping[str, Any]) -> Tensor:
    """The input that the configuration of an `InputLayer` describes.

    Raises:
        InvalidArgumentError: It is sparse or ragged.
    """
    if config.get("sparse") or config.get("ragged"):
        raise InvalidArgumentError(f"input {config.get('name')!r} is sparse or ragged, and those of tfray are not")
    shape = config.get("batch_input_shape", config.get("batch_shape"))
    return Input(batch_shape=shape, dtype=restored(config.get("dtype")), name=config.get("name"))


def restored_network(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The inputs and outputs of the layers that `described_network`, or a version of Keras, describes.

    The third list has what layers have made that add losses and metrics to the model: it leads to no output.

    Raises:
        InvalidArgumentError: A layer cannot be made, or takes what no other one gives.
    """
    tensors: dict[tuple[str, int, int], Tensor] = {}
    waiting: list[tuple[str, Any, int, Any]] = []
    branches: list[Tensor] = []
    for each in config["layers"]:
        name = each.get("name", each["config"].get("name"))
        if each["class_name"] == "InputLayer":
            tensors[name, 0, 0] = restored_input({**each["config"], "name": name})
            continue
        if each["class_name"] in functions.CLASSES:
            layer: Any = functions.function_of(each["config"])
        else:
            layer = restored({"class_name": each["class_name"], "config": each["config"]}, custom_objects)
        nodes = each["inbound_nodes"]
        first = 0 if nodes and isinstance(nodes[0], dict) and "args" in nodes[0] else _first_call(layer)
        waiting += [(name, layer, number, node) for number, node in enumerate(nodes, first)]

    def found(origin: Any) -> Tensor:
        name, call, place = origin[:3]
        return place if name == _CONSTANT else tensors[name, call, place]

    while waiting:
        later = []
        for name, layer, number, node in waiting:
            try:
                inputs, settings = _call_of(node, found, custom_objects)
            except KeyError:
                later.append((name, layer, number, node))
                continue
            made = nest.flatten(layer(inputs, **settings))
            if isinstance(layer, (AddLoss, AddMetric)):
                branches += made
            tensors.update({(name, number, place): tensor for place, tensor in enumerate(made)})
        if len(later) == len(waiting):
            raise InvalidArgumentError(f"layer {later[0][0]!r} takes what no other layer gives: {later[0][3]}")
        waiting = later
    inputs, outputs = ([found(each) for each in _origins(config[key])] for key in ("input_layers", "output_layers"))
    return inputs, outputs, branches


_CONSTANT: Final = "_CONSTANT_VALUE"
"""Where a number stands in place of a tensor, as the first argument of a function: in the place of the output."""


def _origins(value: Any) -> Iterator[Any]:
    if _is_origin(value):
        yield value
    else:
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _origins(each)


def _is_origin(value: object) -> bool:
    return isinstance(value, (list, tuple)) and len(value) in (3, 4) and isinstance(value[0], str)


def _call_of(
    node: Any, found: Callable[[Any], Tensor], custom_objects: Mapping[str, Any] | None
) -> tuple[Any, dict[str, Any]]:
    """The inputs and further arguments of a call. Raises `KeyError` while they are not there."""
    if isinstance(node, Mapping) and "args" in node:  # as Keras 3 has it
        settings = {name: value for name, value in node["kwargs"].items() if value is not None}
        return _exchanged_origins(node["args"][0], found), _exchanged_origins(settings, found)
    entries = [*_origins(node)]
    told = entries[-1][3] if len(entries[-1]) > 3 else {}
    settings = restored(_exchanged_origins(told, found), custom_objects)
    inputs = _exchanged_origins(node, found)
    return (inputs[0] if isinstance(inputs, list) and len(inputs) == 1 else inputs), settings


def _exchanged_origins(value: Any, found: Callable[[Any], Tensor]) -> Any:
    """A structure with tensors in place of where they come from."""
    if isinstance(value, Mapping):
        if value.get("class_name") == "__keras_tensor__":
            return found(value["config"]["keras_history"])
        return {key: _exchanged_origins(each, found) for key, each in value.items()}
    if _is_origin(value) and (value[0] == _CONSTANT or all(isinstance(each, int) for each in value[1:3])):
        return found(value)
    return [_exchanged_origins(each, found) for each in value] if isinstance(value, (list, tuple)) else value
