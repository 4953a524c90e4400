"""Room on a Ray cluster: what new actors ask for, what of that is missing, and which nodes are gone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import ray

from tfray.errors import OpError, ResourceExhaustedError, UnavailableError

_RAY: Final[Any] = ray
"""Ray as an untyped module: its functions have no annotations."""

SLACK: Final = 1e-3
"""Differences of resources below this are rounding: Ray counts resources in ten-thousandths."""


STARTING_S: Final = 240.0
"""Seconds for which an actor that has its room may still be starting: on a busy machine a new process, which first of
all imports Ray and tfray, takes a minute and more."""

_GROUP: Final = "_group_"
"""What Ray puts between a resource and the placement group that holds it, in the names of resources."""


class KnownNodes:
    """All nodes that the Ray cluster has had since this was made."""

    def __init__(self) -> None:
        self._addresses = _living_nodes()

    def look(self) -> None:
        """Note nodes that have come."""
        self._addresses |= _living_nodes()

    def gone(self) -> str:
        """The nodes that Ray has lost, in words; an empty text if none is lost."""
        alive = _living_nodes()
        lost = [address for node, address in self._addresses.items() if node not in alive]
        return f"Ray is gone from {len(lost)} of {len(self._addresses)} nodes ({', '.join(lost)})" if lost else ""


class Room:
    """The room for some actors. Make it before they are asked of Ray.

    Args:
        nodes: The nodes.
        options: Ray's options of each actor that is known already.
    """

    def __init__(self, nodes: KnownNodes, options: Iterable[Mapping[str, Any]] = ()) -> None:
        self._nodes = nodes
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()  # tasks end on threads of their own
        for each in options:
            self.ask(each)
        self._taken_before = _taken()

    def ask(self, options: Mapping[str, Any]) -> None:
        """Count one more actor."""
        with self._lock:
            self._asked.update(_wanted(options))

    def give_back(self, options: Mapping[str, Any]) -> None:
        """Do not count an actor any more: it has ended."""
        with self._lock:
            self._asked.subtract(_wanted(options))

    def look(self) -> dict[str, float]:
        """Note what others have given back. Returns how much of each resource is taken."""
        taken = _taken()
        for kind, amount in self._taken_before.items():
            self._taken_before[kind] = min(amount, taken.get(kind, 0.0))
        return taken

    def __str__(self) -> str:
        has = _RAY.cluster_resources()
        asked = dict(self._asked).items()
        return ", ".join(
            f"{amount:g} {kind.replace(_GROUP, ' of group ')} asked, {has.get(kind, 0):g} there"
            for kind, amount in asked
        )

    def is_missing(self) -> bool:
        """Whether Ray has not given all that was asked for, and cannot. What starts slowly has its room already."""
        taken, there = self.look(), _RAY.cluster_resources()
        lacking = {
            kind: amount - taken.get(kind, 0.0) + self._taken_before.get(kind, 0.0)
            for kind, amount in dict(self._asked).items()
        }
        # Of several nodes, each may have a part of what is free, and none enough.
        are_free = len(_living_nodes()) == 1
        return any(
            amount > SLACK and not (are_free and there.get(kind, 0.0) - taken.get(kind, 0.0) >= amount - SLACK)
            for kind, amount in lacking.items()
        )

    def limit_s(self, timeout_s: float) -> float:
        """How long actors may take: `timeout_s` to get their room, and `STARTING_S` more to start in it."""
        return timeout_s if self.is_missing() else timeout_s + STARTING_S

    def is_late(self, elapsed_s: float, timeout_s: float) -> bool:
        """Whether actors have taken longer than that."""
        return elapsed_s > timeout_s and elapsed_s > self.limit_s(timeout_s)

    def late(self, what: str, timeout_s: float, fewer: str, option: str, device: str | None = None) -> OpError:
        """Why actors have not started in time.

        Args:
            what: The actors, in words.
            timeout_s: How long they have waited, in seconds.
            fewer: How to ask for less.
            option: What to raise if they need longer.
            device: The device of one of them.
        """
        if not self.is_missing():
            return UnavailableError(
                f"{what} did not start within {timeout_s:.0f} s, though there is room ({self}); see Ray's logs, or "
                f"raise {option}",
                device=device,
            )
        gone = self._nodes.gone()
        if gone:
            return UnavailableError(
                f"{what} did not start within {timeout_s:.0f} s ({self}): {gone}; start Ray there again "
                f"(`ray start --address=HOST:PORT`), add other nodes, or raise {option}",
                device=device,
            )
        return ResourceExhaustedError(
            f"Ray found no room for {what} within {timeout_s:.0f} s ({self}); {fewer}, add nodes, or raise {option}",
            device=device,
        )


def _wanted(options: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {"CPU": options.get("num_cpus"), "GPU": options.get("num_gpus"), "memory": options.get("memory")}
    group = getattr(options.get("scheduling_strategy"), "placement_group", None)
    within = "" if group is None else f"{_GROUP}{group.id.hex()}"
    return {f"{kind}{within}": amount for kind, amount in {**wanted, **options.get("resources", {})}.items() if amount}


def _living_nodes() -> dict[str, str]:
    """Addresses of the nodes that Ray has now, by node identity."""
    return {node["NodeID"]: node["NodeManagerAddress"] for node in _RAY.nodes() if node["Alive"]}


def _taken() -> dict[str, float]:
    """How much of each resource Ray has given away, to these actors and to others."""
    free = _RAY.available_resources()
    return {kind: amount - free.get(kind, 0.0) for kind, amount in _RAY.cluster_resources().items()}
