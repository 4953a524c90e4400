"""Values of which each replica has its own, in the structures that functions take and return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.framework import nest
from tfray.framework.scopes import current_mode
from tfray.framework.tensor_shape import TensorShape


class PerReplica:
    """A value for each replica. Internal to TensorFlow, which returns it from ``experimental_run``.

    Args:
        values: The values, in the order of the replicas.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)

    def get(self, device: str | None = None) -> Any:
        """The value of the replica that is being built, or the first. `device` is accepted for TensorFlow's sake."""
        mode = current_mode()
        return self.values[0 if mode is None or mode.replica is None else mode.replica.number]

    @property
    def shape(self) -> TensorShape:
        """The shape of the first replica's value."""
        found: TensorShape = self.values[0].shape
        return found

    def __repr__(self) -> str:
        return f"PerReplica({', '.join(map(repr, self.values))})"


def select_replica(number: int, structure: Any) -> Any:
    """A structure as one replica gets it: in place of each `PerReplica` the value of that replica."""
    return nest.map_structure(lambda leaf: leaf.values[number] if isinstance(leaf, PerReplica) else leaf, structure)


def regroup(structures: Sequence[Any]) -> Any:
    """One structure from those of all replicas: a leaf that is the same object in each is that, others `PerReplica`.

    Raises:
        ValueError: The structures differ.
    """
    if len(structures) == 1:
        return structures[0]
    return nest.map_structure(_regrouped, *structures)


def _regrouped(*leaves: Any) -> Any:
    first = leaves[0]
    if all(leaf is first for leaf in leaves) or (isinstance(first, _PLAIN) and all(leaf == first for leaf in leaves)):
        return first
    return PerReplica(leaves)


_PLAIN = (bool, int, float, str, bytes, type(None))


def each_result(value: Any) -> tuple[Any, ...]:
    """The values of the replicas; of one that is not `PerReplica`, itself alone."""
    return value.values if isinstance(value, PerReplica) else (value,)


def map_replicas(function: Callable[[Any], Any], value: Any) -> Any:
    """What a function returns for each replica's value."""
    if isinstance(value, PerReplica):
        return PerReplica([function(each) for each in value.values])
    return function(value)
