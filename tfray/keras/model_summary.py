"""The table of a model's layers that `Model.summary` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.keras.layers import InputLayer
from tfray.keras.layers.operation_layers import TensorFlowOpLayer

_COLUMNS: Final = ("Layer (type)", "Output Shape", "Param #", "Connected to")


def print_summary(
    model: Any, line_length: int | None, positions: Sequence[float] | None, print_fn: Callable[[str], object]
) -> None:
    """Print a model's layers, and how many elements its variables have; see `tf.keras.Model.summary`."""
    is_chain = _is_chain(model)
    titles = _COLUMNS[:3] if is_chain else _COLUMNS
    width = line_length or (65 if is_chain else 98)
    ends = positions or ((0.45, 0.85, 1.0) if is_chain else (0.33, 0.55, 0.67, 1.0))
    if len(ends) < len(titles):
        raise InvalidArgumentError(f"positions are {list(ends)}, expected the end of each of {len(titles)} columns")
    columns = [int(width * end) if end <= 1 else int(end) for end in ends]

    def row(fields: Iterable[object]) -> None:
        line = ""
        for field, end in zip(fields, columns, strict=False):
            line = f"{line[:-1] + ' ' if line else ''}{field}"[:end].ljust(end)
        print_fn(line)

    print_fn(f'Model: "{model.name}"')
    print_fn("_" * width)
    row(titles)
    print_fn("=" * width)
    own = {id(tensor) for call in model._own_calls for tensor in call.outputs}
    for number, layer in enumerate(model.layers, 1):
        nodes = [
            node for node in layer.inbound_nodes if any(id(each) in own for each in nest.flatten(node.output_tensors))
        ]
        made = [each for node in nodes for each in node.iterate_inbound()]
        sources = [] if is_chain else [f"{source.name}[{call}][{place}]" for source, call, place, _ in made] or [""]
        shape = _shape(layer) if own else "multiple"  # of layers that the code of the model calls
        row([f"{layer.name} ({type(layer).__name__})", shape, _count(layer.variables), *sources[:1]])
        for source in sources[1:]:
            row(["", "", "", source])
        print_fn(("=" if number == len(model.layers) else "_") * width)
    print_fn(f"Total params: {_count(model.variables):,}")
    print_fn(f"Trainable params: {_count(model.trainable_variables):,}")
    print_fn(f"Non-trainable params: {_count(model.non_trainable_variables):,}")
    print_fn("_" * width)


def _count(variables: Sequence[Any]) -> int:
    return sum(variable.shape.num_elements() or 0 for variable in variables)


def _shape(layer: Any) -> str:
    if not layer._recorded_calls:
        return "?"
    try:
        shape = layer.output_shape
    except AttributeError:
        return "multiple"
    return str([shape]) if isinstance(layer, (InputLayer, TensorFlowOpLayer)) else str(shape)


def _is_chain(model: Any) -> bool:
    """Whether each layer has been called once, with the one thing that the layer before has made."""
    calls = model._own_calls
    sources = [[id(each) for each in call.sources()] for call in calls]
    taken = [each for own in sources for each in own]
    has_one_each = len(model.inputs) <= 1 and all(len(own) <= 1 for own in sources)
    return has_one_each and len({call.layer for call in calls}) == len(calls) and len(set(taken)) == len(taken)
