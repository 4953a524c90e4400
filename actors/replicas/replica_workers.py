"""The workers of replicated training as actors of Ray: the operations on them that `Membership` asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.clusters.remote_runner import register
from tfray.actors.links import ray_calls
from tfray.actors.links.awaited_answers import unpack
from tfray.actors.links.messages import InputShare, OpenInput, PlanId
from tfray.actors.links.notices import notice
from tfray.errors import InvalidArgumentError
from tfray.runtime.plan import Partition

MakeInput = Callable[[InputShare], OpenInput]
"""Makes, from a share of the input, the function that opens it on a worker."""


@dataclass(frozen=True)
class ReplicaProgram:
    """What makes a worker a replica: the plan with its identity, the Python functions that it calls, and its input."""

    plan_id: PlanId
    partition: Partition
    functions: Mapping[str, Callable[..., Any]]
    make_input: MakeInput


class RayWorkers:
    """See `membership.Workers`. Calls are Ray's references.

    Args:
        cluster: Starts actors.
        devices: Device of each replica's worker; the position is the replica's number.
        program: What every worker is given.
    """

    def __init__(self, cluster: Cluster, devices: Sequence[str], program: ReplicaProgram) -> None:
        self.devices = list(devices)
        self._cluster = cluster
        self._program = program
        self._starting: dict[Any, Any] = {}
        """Actors by the call that ends when they have started."""

    def is_there(self, replica: int) -> bool:
        """Whether a worker has an actor."""
        return self.devices[replica] in self._cluster.devices

    def start(self, replica: int) -> Any:
        """Start an actor. Returns a call that ends when Ray has found room for it, and it has started."""
        actor = self._cluster.create_actor(self.devices[replica])
        call = actor.ready.remote()
        self._starting[call] = actor
        return call

    def admit(self, replica: int, call: Any) -> list[Any]:
        """Introduce an actor that has started to the others. Raises `UnavailableError` if it has died."""
        actor, device = self._starting.pop(call), self.devices[replica]
        address = ray_calls.outcome(call, device).address
        introduced = self._cluster.adopt({device: (actor, address)})
        # Replicas send nothing to one another. So no introduction to another replica is waited for: it may be frozen.
        return [met for name, met in introduced.items() if name == device or name not in self.devices]

    def give_up(self, call: Any) -> None:
        """End an actor that has not started yet."""
        ray_calls.end_actor(self._starting.pop(call))

    def forget(self, replica: int) -> None:
        """End a worker's actor, if it has one, because it is dead or does not answer."""
        self._cluster.forget(self.devices[replica])

    def register(self, replica: int) -> Any:
        """Ask a worker to compile the replica's plan. Returns a call."""
        program = self._program
        return register(
            self._cluster.actor(self.devices[replica]), program.plan_id, program.partition, program.functions
        )

    def change(self, partition: Partition) -> dict[Any, str]:
        """Give all workers, also those that come later, another plan. Returns the calls, with the device of each."""
        self._program = replace(self._program, partition=partition)
        there = [replica for replica in range(len(self.devices)) if self.is_there(replica)]
        return {self.register(replica): self.devices[replica] for replica in there}

    def open_input(self, replica: int, share: InputShare) -> Any:
        """Ask a worker to open its share of the input. Returns a call."""
        device = self.devices[replica]
        actor = self._cluster.actor(device)
        try:
            return actor.attach_input.remote(self._program.plan_id, self._program.make_input(share))
        except TypeError as error:  # it cannot be pickled
            raise InvalidArgumentError(
                f"the input function cannot be sent to {device}: {error.__cause__ or error}; open files, locks and "
                "connections inside the function",
                device=device,
            ) from error

    def check(self, replica: int, call: Any) -> None:
        """Raise the `OpError` with which a call has ended, if it has failed."""
        unpack(call, self.devices[replica])

    def say(self, text: str) -> None:
        """Tell the user."""
        notice(text)
