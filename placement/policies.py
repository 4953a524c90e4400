"""Choosers among feasible devices, for what a program leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from tfray.framework.graph import Operation
from tfray.placement.placer import Policy


def prefer(device: str) -> Policy:
    """The policy that takes `device` wherever it is feasible, and the first feasible one elsewhere."""

    def choose(group: Sequence[Operation], feasible: Sequence[str]) -> str:
        return device if device in feasible else feasible[0]

    return choose
