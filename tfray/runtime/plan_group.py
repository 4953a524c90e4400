"""A partition that runs on several devices of one process: a worker's CPU, and the GPUs beside it.

To the rest of the step it is one plan. Its parts run on one thread, as those of a local session do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.device_spec import gpu_beside
from tfray.framework.graph import Operation
from tfray.runtime.device import Device
from tfray.runtime.executor import PlanRun, WholeRun, advance_all
from tfray.runtime.plan import Partition, Plan
from tfray.runtime.releases import Releases
from tfray.runtime.rendezvous import Rendezvous
from tfray.runtime.step import Step


class PlanGroup:
    """The plans of a partition.

    Args:
        partition: The whole partition.
        plans: That of the device which others know, then those of its GPUs.
        feeds: For each plan, its feeds as indices into the partition's.
        fetches: For each of the partition's fetches, its plan and its place among that plan's.

    Attributes:
        recvs: The operations that receive from other devices.
        recv_slots: Their edges' keys.
        waits: Whether an operation other than Recv may have to wait.
        receives_in_regions: Whether a branch or a loop waits for other devices.
        releases: Nothing: only shards release.
    """

    def __init__(
        self,
        partition: Partition,
        plans: Sequence[Plan],
        feeds: Sequence[Sequence[int]],
        fetches: Sequence[tuple[int, int]],
    ) -> None:
        self.partition = partition
        self.plans = list(plans)
        self._feeds = feeds
        self.fetches = fetches
        self.recvs: list[Operation] = [op for op in partition.graph.get_operations() if op.type == "Recv"]
        self.recv_slots = [op.attr("key") for op in self.recvs]
        self.waits = any(plan.waits for plan in plans)
        self.receives_in_regions = any(plan.receives_in_regions for plan in plans)
        self.releases = Releases()
        self._traced: PlanGroup | None = None

    @classmethod
    def of(
        cls,
        partition: Partition,
        parts: Sequence[Partition],
        feeds: Sequence[Sequence[int]],
        fetches: Sequence[tuple[int, int]],
        device: Device,
        gpus: Sequence[Device],
    ) -> PlanGroup:
        """The plans of a partition that was cut into `parts`, on its device and the GPUs beside that.

        Random streams of all of them are among the state of the device's session, where they are saved from.
        """
        devices = {partition.device: device}
        for index, gpu in enumerate(gpus):
            devices[gpu_beside(partition.device, index)] = replace(gpu, session_state=device.session_state)
        # What one device sends to another it may read in place: no memory is used again before the step is over.
        plans = [Plan(part, devices[part.device], sends_copy=False) for part in parts]
        return cls(partition, plans, feeds, fetches)

    def fed(self, values: Sequence[Any]) -> list[list[Any]]:
        """For each plan its fed values, where it takes them."""
        if len(values) != len(self.partition.feeds):
            raise InvalidArgumentError(f"the step takes {len(self.partition.feeds)} fed values, got {len(values)}")
        return [
            plan.fed([values[index] for index in indices])
            for plan, indices in zip(self.plans, self._feeds, strict=True)
        ]

    def traced(self) -> PlanGroup:
        """The same plans for steps that are recorded, made when first asked for."""
        if self._traced is None:
            plans = [plan.traced() for plan in self.plans]
            self._traced = PlanGroup(self.partition, plans, self._feeds, self.fetches)
        return self._traced


class GroupRun:
    """The plans of a group in one step. It stands where a `PlanRun` does.

    Args:
        group: The plans.
        step: The step.
        feeds: What `PlanGroup.fed` gave.
        start: Makes the `PlanRun` of each plan.
    """

    def __init__(
        self,
        group: PlanGroup,
        step: Step,
        feeds: Sequence[Sequence[Any]],
        start: Callable[[Plan, Any, Sequence[Any]], PlanRun] = PlanRun,
    ) -> None:
        self._fetches = [(group.plans[plan].device, plan, place) for plan, place in group.fetches]
        self._runs = [start(plan, step, values) for plan, values in zip(group.plans, feeds, strict=True)]
        names = [plan.partition.device for plan in group.plans]
        step.rendezvous = _WithinGroup(step.rendezvous, dict(zip(names, self._runs, strict=True)))

    @property
    def done(self) -> bool:
        """Whether every segment has run and every tensor has arrived."""
        return all(run.done for run in self._runs)

    @property
    def has_all(self) -> bool:
        """Whether every tensor sent to one of the devices has arrived."""
        return all(run.has_all for run in self._runs)

    @property
    def is_idle(self) -> bool:
        """Whether nothing in it is ready, waits or is still to arrive."""
        return all(run.is_idle for run in self._runs)

    @property
    def missing(self) -> list[str]:
        """Keys of the edges from which nothing has arrived yet."""
        return [key for run in self._runs for key in run.missing]

    @property
    def suspended(self) -> list[Operation]:
        """Operations that were started, and whose segments were left, because they have to wait."""
        return [op for run in self._runs for op in run.suspended]

    def deliver(self, key: str, value: Any) -> None:
        """Take a tensor that came from another process."""
        self._runs[0].deliver(key, value)

    def advance(self) -> bool:
        """Run every segment that is ready and cannot hold up the thread. Returns whether any ran."""
        return sum([run.advance() for run in self._runs]) > 0  # each of them goes on

    def advance_last(self) -> bool:
        """Run one of the segments that are ready and may hold up the thread. Returns whether there was one."""
        return any(run.advance_last() for run in self._runs)

    def advance_fully(self) -> None:
        """Run every segment that is ready. Those that may hold up the thread come last, one by one."""
        advance_all(self._runs)

    def fetch(self) -> list[Any]:
        """The fetched values, on the host."""
        fetched = [run.fetch() for run in self._runs]
        return [device.to_host(fetched[plan][place]) for device, plan, place in self._fetches]

    def close(self) -> None:
        """Let go of all values."""
        for run in self._runs:
            run.close()


def begun(
    plan: Plan | PlanGroup,
    step: Step,
    feeds: Sequence[Any],
    start: Callable[[Plan, Any, Sequence[Any]], PlanRun] = PlanRun,
) -> WholeRun:
    """The run of a plan, or of several, in a step. `feeds` is what the plan's `fed` gave."""
    return GroupRun(plan, step, feeds, start) if isinstance(plan, PlanGroup) else start(plan, step, feeds)


class _WithinGroup:
    """Hands tensors to the other plans of the group, and what is for other processes to the step's rendezvous."""

    copies = False

    def __init__(self, outer: Rendezvous | None, runs: dict[str, PlanRun]) -> None:
        self._outer = outer
        self._runs = runs

    def send(self, key: str, destination: str, value: Any) -> None:
        run = self._runs.get(destination)
        if run is not None:
            run.deliver(key, value)
        else:
            assert self._outer is not None
            self._outer.send(key, destination, value)

    def flush(self) -> None:
        if self._outer is not None:
            self._outer.flush()
