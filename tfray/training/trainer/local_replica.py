"""A replicated step in this process: one replica, and the shard that it updates on the CPU.

The replica computes on the GPUs of this process what it can, as a worker with GPUs does.

A run that gathers gradients over several batches, or checks them, has the same partitions in one process as on a
cluster. In each step the replica's partition runs first. Then the shard's runs, unless the replica is to be left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.errors import InternalError, OpError
from tfray.formats.step_stats import RunMetadata
from tfray.framework.graph import Operation, Tensor
from tfray.placement.contributions import ReplicaOptions
from tfray.placement.own_devices import over_own_devices
from tfray.placement.replicate import REPLICA_DEVICE, compile_replica_step
from tfray.runtime.executor import PlanRun, WholeRun, run_to_end
from tfray.runtime.local_runner import LocalRunner
from tfray.runtime.plan import Plan
from tfray.runtime.plan_group import PlanGroup, begun
from tfray.runtime.rendezvous import Mailbox
from tfray.runtime.step import Step
from tfray.runtime.step_report import run_metadata
from tfray.runtime.tracing import HARDWARE_TRACE, DeviceTrace, TracedRun, TracedStep
from tfray.session import Session
from tfray.training.threads.device_setter import STATE_OPS

SHARD: Final = "/job:localhost/task:0/device:CPU:0"
"""The device of a local session, where variables live."""


def to_shard(op: Operation) -> str:
    """The device function under which a model is built for `LocalReplica`."""
    return SHARD if op.type in STATE_OPS else op.device


class LocalReplica:
    """One replica's steps in a local session.

    Args:
        session: The session; its graph was built under `to_shard`.
        fetched: What a step returns.
        target: The training operation.
        fed: What each batch feeds.
        options: How the replica computes and what it checks.
    """

    def __init__(
        self,
        session: Session,
        fetched: Sequence[Tensor],
        target: Operation,
        fed: Sequence[Tensor],
        options: ReplicaOptions,
    ) -> None:
        assert isinstance(session._runner, LocalRunner)
        self._runner = session._runner
        devices = self._runner.devices_by_name()
        self._device = devices[SHARD]
        gpus = [device for device in devices.values() if device.type == "GPU"]
        compiled = compile_replica_step(fetched, [target], fed, [SHARD], REPLICA_DEVICE, options=options)
        partitions = [compiled.replica, *compiled.serving.values(), *compiled.shards]
        self._plans: dict[str, Plan | PlanGroup] = {
            part.device: Plan(part, self._device, sends_copy=False) for part in partitions
        }
        if gpus:
            cut = over_own_devices(compiled.replica, len(gpus))
            parts = cut.partitions, cut.feeds, cut.fetches
            self._plans[REPLICA_DEVICE] = PlanGroup.of(compiled.replica, *parts, self._device, gpus)
        self._feeds = compiled.feeds
        self._checked = compiled.checked
        self._skips = options.bad_gradients == "skip"

    def run(
        self, number: int, values: Sequence[Any], trace: RunMetadata | None = None
    ) -> tuple[list[Any], tuple[str, ...]]:
        """Run a step.

        Args:
            number: The number of the step.
            values: The values to feed: those of the first batch, then those of the second, and so on.
            trace: Takes the record of the step; None to record nothing.

        Returns:
            The fetched values, and the variables whose gradients were not finite.
        """
        held = _HeldBack()
        step, plans = Step(number, held, None, Mailbox()), self._plans
        start: Callable[[Plan, Any, Sequence[Any]], PlanRun] = PlanRun
        traces: dict[str, DeviceTrace] = {}
        if trace is not None:
            start, plans = TracedRun, {name: plan.traced() for name, plan in plans.items()}
            devices = {plan.device.name: plan.device for whole in plans.values() for plan in whole.plans}
            traces = {name: DeviceTrace(device, HARDWARE_TRACE) for name, device in devices.items()}
            step = TracedStep(traces, number, held, None, Mailbox())
        self._runner.begin(step)
        try:
            for name, plan in plans.items():
                fed = plan.fed([values[i] for i in self._feeds] if name == REPLICA_DEVICE else ())
                held.runs[name] = begun(plan, step, fed, start)
            step.runs = runs = list(held.runs.values())
            fetched, bad = self._advance(held, step, runs)
        except OpError as error:
            error.message = f"replica 0 ({SHARD}) failed in step {number}: {error.message}"
            raise
        finally:
            self._runner.over(step)
            step.cancel()
            step.runs, held.runs = (), {}  # breaks a cycle of references that would keep tensors in memory
        if trace is not None:
            buffers = Counter[str]()
            for plan in (plan for whole in plans.values() for plan in whole.plans):
                buffers[plan.device.name] += plan.buffer_bytes
            for record in traces.values():
                record.close()
            trace.CopyFrom(run_metadata([record.record(buffers[name]) for name, record in traces.items()]))
        return fetched, bad

    def _advance(self, held: _HeldBack, step: Step, runs: Sequence[WholeRun]) -> tuple[list[Any], tuple[str, ...]]:
        replica = held.runs[REPLICA_DEVICE]
        run_to_end(runs, step)
        fetched = [self._device.to_host(value) for value in replica.fetch()] if replica.done else []
        finite = fetched.pop() if self._checked and fetched else ()
        bad = tuple(name for name, good in zip(self._checked, finite, strict=False) if not good)
        if bad and self._skips:
            return fetched, bad
        for key, value in held.contributions:
            held.runs[SHARD].deliver(key, value)
        if not run_to_end(runs, step):
            missing = ", ".join(key for run in runs for key in run.missing)
            raise InternalError(f"the step cannot go on: nothing sends {missing}")
        return fetched, bad


class _HeldBack:
    """Hands tensors to the other partition of the step. Those for the shard wait until it is known that they count."""

    copies = False

    def __init__(self) -> None:
        self.runs: dict[str, WholeRun] = {}
        self.contributions: list[tuple[str, Any]] = []

    def send(self, key: str, destination: str, value: Any) -> None:
        if destination == SHARD:
            self.contributions.append((key, value))
        else:
            self.runs[destination].deliver(key, value)

    def flush(self) -> None:
        """Do nothing: no tensor waits for this call."""
