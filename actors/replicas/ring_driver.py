"""The driver of replicas that hold copies of the variables, and reduce their gradients among themselves.

There are no parameter shards. Every worker runs the whole step: it computes gradients, reduces them with the others
(`actors/devices/ring.py`), and applies the update to its copy. All take part in each step, and none can do without the
others. So there is little to decide: a step is over when all have delivered it. If a worker is gone, `run` raises an
`UnavailableError` that names its device. By then some copies may have made the last update, and others not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.actors.replicas.driver import BATCHES, ReplicaDriver
from tfray.actors.replicas.membership import Elasticity, Membership, SteadyMembership
from tfray.actors.replicas.random_states import collect
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

    def state(self) -> dict[str, Any]:
        """See `ReplicaDriver.state`. No replica may be gone: a run goes back to what this returns, with all of them."""
        states = collect(self._cluster, self._session, self._workers, (), 0, self._faults.answer_s)
        return states | {BATCHES: np.array(self._progress.batches)}

    def _do_without(self, device: str, error: UnavailableError) -> None:
        raise error
