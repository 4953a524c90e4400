"""Edges between devices: a tensor of a step crosses one from a Send to the Recv of the same key.

Keys travel as text, in graphs and messages; only this file writes and reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class EdgeKey(NamedTuple):
    """The key of an edge, unique in its step.

    Its text is ``"name:0 /job:a -> /job:b"``. For a tensor that is sent within loops it is
    ``"3.1|name:0 /job:a -> /job:b"``.

    Attributes:
        label: The tensor's name in the graph before it was cut. For a control edge, ``^`` and the operation's name.
        source: Full name of the device that sends.
        destination: Full name of the device that receives.
        turns: Numbers of the turns of the loops in which the tensor is sent, the outermost first, joined by dots; empty
            outside of loops.
    """

    label: str
    source: str = ""
    destination: str = ""
    turns: str = ""

    @classmethod
    def of_tensor(cls, op_name: str, index: int, source: str, destination: str) -> EdgeKey:
        """The edge of an output of an operation."""
        return cls(f"{op_name}:{index}", source, destination)

    @classmethod
    def of_control(cls, op_name: str, source: str, destination: str) -> EdgeKey:
        """The control edge that says that an operation has run. It carries no value."""
        return cls(f"^{op_name}", source, destination)

    @classmethod
    def parse(cls, text: str) -> EdgeKey:
        """The key with that text. The names in a key contain neither a space nor ``|``."""
        edge = without_turns(text)
        label, _, ends = edge.partition(" ")
        source, _, destination = ends.partition(" -> ")
        return cls(label, source, destination, text[: -len(edge) - 1])

    @property
    def op_name(self) -> str:
        """The operation whose output crosses, or which has run."""
        return self.label.removeprefix("^").partition(":")[0]

    def __str__(self) -> str:
        text = f"{self.label} {self.source} -> {self.destination}"
        return f"{self.turns}|{text}" if self.turns else text


def in_turns(text: str, turns: Sequence[int]) -> str:
    """The text of an edge's key for a tensor that is sent in these turns of the loops around it."""
    return f"{'.'.join(map(str, turns))}|{text}" if turns else text


def without_turns(text: str) -> str:
    """The text of a key without the turns in which the tensor was sent."""
    return text.rpartition("|")[2]
