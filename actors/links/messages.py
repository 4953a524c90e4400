"""What the driver tells a device actor about a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack

if TYPE_CHECKING:
    from tfray.actors.links.handshake import LinkAddress

StepKey = tuple[str, int]
"""(driver, number): the driver's own identity, and the number of the step in the order in which it hands them out."""

SERVED: Final = "/served"
"""Ends the driver's part of the identities under which shards serve replicas."""

REPLICA_DEVICE: Final = "/job:worker/replica:0/task:0/device:CPU:0"
"""The device that stands for every replica in a partitioned training graph."""


@dataclass(frozen=True)
class InputShare:
    """Which part of the input a replica reads, from some step on.

    Attributes:
        index: Number of the part, from 0.
        replicas: Number of parts.
        step: Number of the first step.
        batches: How many batches of replicas all steps before have taken.
    """

    index: int
    replicas: int
    step: int
    batches: int


ReadInput = Callable[[int], Sequence[Any]]
"""Gives the values that are fed in the step of that number. Raises `StopIteration` at the end."""

OpenInput = Callable[[], ReadInput]
"""Opens an input pipeline, in the actor that reads it."""


class Presence(NamedTuple):
    """What an actor says of itself once it has started.

    Attributes:
        node: Ray's identity of its node.
        pid: Its process on that node.
        address: Where it listens for links.
    """

    node: str
    pid: int
    address: LinkAddress


class StepRequest(NamedTuple):
    """How one device takes part in one step.

    Attributes:
        step: Identity of the step.
        floor: Steps of this driver below that number are over: what still arrives for them is dropped.
        timeout_s: Seconds after which waits give up, or None.
        replica: Number of the replica that this device computes, or None when it is not a replica.
        receivers: Replicas to which tensors for `REPLICA_DEVICE` go, by full device name.
        members: Replicas whose contributions count, when that is known from the start.
        read_input: Whether the device takes its feeds from its own input pipeline.
        served: Identity under which shards serve the replica in this step, where they do.
        serves: Whether the device takes part by serving that replica, under that identity.
        after: Number of the step, of the same driver, that has to be over on this device before; None for none.
        quiet: Whether the device answers over a link only if its part fails, where others cannot be through before it
            is (`Partition.is_quiet`).
        trace: How much to record: `tf.RunOptions.trace_level`. The device then returns a pair of what it fetched and a
            `tracing.DeviceRecord`.
    """

    step: StepKey
    floor: int
    timeout_s: float | None = None
    replica: int | None = None
    receivers: tuple[str, ...] = ()
    members: tuple[int, ...] | None = None
    read_input: bool = False
    served: StepKey | None = None
    serves: bool = False
    after: int | None = None
    quiet: bool = False
    trace: int = 0

    @property
    def own(self) -> StepKey:
        """Identity under which the device takes part, and is sent tensors."""
        return self.served if self.serves and self.served is not None else self.step


class StepCall(NamedTuple):
    """A step that a driver asks for: what it says to devices, and what these say to those that they wake.

    Attributes:
        plan_id: The plan.
        request: The step.
        number: Of the call: that of the answer.
    """

    plan_id: str
    request: StepRequest
    number: int

    def to_bytes(self) -> bytes:
        """The call as it travels."""
        packed: bytes = msgpack.packb(self)
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> StepCall:
        """The call that `to_bytes` gave. Raises `ValueError` or `TypeError` for anything else."""
        plan_id, request, number = msgpack.unpackb(data, use_list=False)
        return cls(str(plan_id), StepRequest(*request), int(number))
