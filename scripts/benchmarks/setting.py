"""Where, when and how figures were taken: what must be known beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.machine import Machine
from benchmarks.roofline import Roofline


@dataclass(frozen=True)
class Setting:
    """Circumstances that all measurements of a run share.

    Attributes:
        machine: The machine.
        date: The day, as ISO 8601 writes it.
        one_core: Whether the sides were held on one core.
        busy: Processes that kept the processor busy meanwhile.
        versions: Of the packages of each side, by side and name.
        roofline: The machine's limits, of one core if the sides were held on one; None when they were not measured.
    """

    machine: Machine
    date: str
    one_core: bool = False
    busy: int = 0
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    roofline: Roofline | None = None


def conditions(one_core: bool, busy: int) -> str:
    """In words, as they follow the name of a benchmark; empty for a quiet machine with all its cores."""
    beside = f", beside {busy} busy process{'es' if busy > 1 else ''}" if busy else ""
    return (", on one core" if one_core else "") + beside
