"""The table of a model's layers that `Model.summary` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.keras.layers import InputLayer

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
    return str([shape]) if isinstance(layer, InputLayer) else str(shape)


def _is_chain(model: Any) -> bool:
    """Whether each layer has been called once, with what one other has made."""
    calls = model._own_calls
    taken = [id(each) for call in calls for each in call.sources()]
    is_single = len({call.layer for call in calls}) == len(calls)
    return is_single and len(set(taken)) == len(taken) and len(taken) <= len(model.layers)
