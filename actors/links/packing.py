"""Tensors as arguments of an actor call: large ones by reference to the object store, small ones in one piece.

Every argument of a call costs about 0.1 ms, so all small tensors travel in one list. References must be arguments of
their own: Ray then hands the callee the arrays that they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfray.actors.links.carriers import is_large
from tfray.actors.links.shared_objects import Reference, put


@dataclass(frozen=True)
class Position:
    """Stands in the list of small tensors for a large one, by its position among the objects."""

    position: int


def pack(values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The list, and the objects: `values` may hold arrays, and references to arrays that lie in the store already."""
    inline: list[Any] = []
    objects: list[Any] = []
    for value in values:
        if isinstance(value, Reference) or is_large(value):
            inline.append(Position(len(objects)))
            objects.append(value if isinstance(value, Reference) else put(value))
        else:
            inline.append(value)
    return inline, objects


def unpack(inline: Sequence[Any], objects: Sequence[Any]) -> list[Any]:
    """The values that `pack` was given, references replaced by what they stand for."""
    return [objects[value.position] if isinstance(value, Position) else value for value in inline]
