"""The driver of replicas that hold copies of the variables, and reduce their gradients among themselves.

There are no parameter shards. Every worker runs the whole step: it computes gradients, reduces them with the others
(`actors/devices/ring.py`), and applies the update to its copy. All take part in each step, and none can do without the
others. So there is little to decide: a step is over when all have delivered it. If a worker is gone, `run` raises an
`UnavailableError` that names its device. By then some copies may have made the last update, and others not.
"""

from __future__ import annotations

from typing import Any

from tfray.actors.links.silence import SILENT
from tfray.actors.replicas.driver import HELD_UP_S, ReplicaDriver
from tfray.actors.replicas.membership import Elasticity, Membership, SteadyMembership
from tfray.actors.replicas.replica_protocol import Start
from tfray.actors.replicas.step_in_flight import StepInFlight
from tfray.errors import UnavailableError


class RingDriver(ReplicaDriver):
    """See `ReplicaDriver`, whose arguments it takes. The protocol is synchronous, without backups."""

    _membership: SteadyMembership

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ring = tuple(self._workers)

    def _new_membership(self, elasticity: Elasticity | None, *others: Any) -> Membership:
        return SteadyMembership(*others)

    def _start(self, start: Start) -> None:
        self._progress.step = start.step
        self._progress.batches += self._membership.replicas
        step = self._open[start.step] = StepInFlight(start.step, set(), self._membership.replicas)
        before = None if start.after is None else self._open.get(start.after)
        if before is None:
            self._begin(step)
        else:
            step.wait_for(before)
        for replica in start.replicas:
            self._compute(start.step, replica, start.after)
        self._execute(self._protocol.applied(start.step))  # no shard has to: it is over when all have delivered it

    def _advance(self) -> bool:
        ends_before = self._membership.ends_before
        if ends_before is not None and self._position >= ends_before - 1:
            return False  # a replica has read its input to the end
        return super()._advance()

    def _floor(self) -> int:
        return next(iter(self._open), self._progress.step)

    def _check_silent(self) -> None:
        self._cluster.check_answers(self._workers, lambda: "its part of a step")

    def _check_deadline(self) -> None:
        now = self._clock()
        late = next((step for step in self._open.values() if now > step.due), None)
        if late is None:
            return
        answering = self._cluster.answering(self._workers, HELD_UP_S)
        for device in self._workers:
            if device not in answering:
                raise UnavailableError(f"{device} does not answer in step {late.number}: {SILENT}", device=device)
        raise self._late(late.number)
