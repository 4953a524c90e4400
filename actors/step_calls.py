"""What a driver waits for in a step: the answers of its devices, over links and by calls of Ray."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final

import ray

from tfray.actors.peers import Done, Outcome

_TURN_S: Final = 0.005
"""How long each kind of answer is waited for in turn, when there are both."""

Unpack = Callable[[Any, str], Any]
"""From a reference to an `Outcome`, and the device, to the value. Raises the error."""


class StepCalls:
    """The calls of one step, by the position of their devices.

    Args:
        devices: Full names of the devices.
        actors: Their handles.
        unpack: Takes the outcomes of Ray's calls.

    Attributes:
        pending: Positions whose answers have not come.
    """

    def __init__(self, devices: list[str], actors: list[Any], unpack: Unpack) -> None:
        self.pending: set[int] = set()
        self._devices = devices
        self._actors = actors
        self._unpack = unpack
        self._refs: dict[Any, int] = {}
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._outcomes: dict[int, Outcome] = {}
        self._linked = 0

    def by_link(self, position: int) -> Done:
        """A call over a link: returns what is to be told when it has ended."""
        self.pending.add(position)
        self._linked += 1

        def done(outcome: Outcome) -> None:
            self._outcomes[position] = outcome
            self._ended.put(position)

        return done

    def by_ray(self, position: int, ref: Any) -> None:
        """A call of Ray, also in place of one over a link that was not to be had."""
        self._linked -= position in self.pending
        self.pending.add(position)
        self._refs[ref] = position

    def wait(self, timeout_s: float) -> list[int]:
        """Wait until a call has ended, at most for so long. Returns the positions of those that have."""
        done = self._by_turns(timeout_s) if self._refs and self._linked else self._wait(timeout_s)
        self.pending.difference_update(done)
        return done

    def _by_turns(self, timeout_s: float) -> list[int]:
        for _ in range(max(1, int(timeout_s / _TURN_S))):
            done = self._wait_for_refs(_TURN_S) + self._wait_for_links(0)
            if done:
                return done
        return []

    def _wait(self, timeout_s: float) -> list[int]:
        return self._wait_for_refs(timeout_s) if self._refs else self._wait_for_links(timeout_s)

    def _wait_for_refs(self, timeout_s: float) -> list[int]:
        done, _ = ray.wait(list(self._refs), num_returns=1, timeout=timeout_s)
        positions = []
        for ref in done:
            positions.append(position := self._refs.pop(ref))
            self._outcomes[position] = ("ref", ref)
        return positions

    def _wait_for_links(self, timeout_s: float) -> list[int]:
        try:
            position = self._ended.get(timeout=timeout_s) if timeout_s else self._ended.get_nowait()
        except Empty:
            return []
        self._linked -= 1
        return [position]

    def result(self, position: int) -> Any:
        """What a call that has ended returned. Raises its error."""
        status, value = self._outcomes[position]
        if status == "error":
            raise value
        if isinstance(value, str):  # too large for a link
            status, value = "ref", self._actors[position].collect.remote(value)
        return self._unpack(value, self._devices[position]) if status == "ref" else value
