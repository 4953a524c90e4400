"""Which layers of a model are trainable, as a whole to remember and to set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


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
