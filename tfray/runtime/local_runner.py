"""Running compiled steps on devices of this process, without Ray: for debugging, tests and small models.

All partitions of a step run on the calling thread. Each advances when what it waits for has arrived. So a debugger sees
every kernel, and a step is deterministic. There are two exceptions. If a branch or a loop spans devices, each partition
gets a thread, because partitions wait for one another within it. If several Python functions of the program are ready,
they get threads too. NumPy and BLAS use every core in any case.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from tfray.errors import CancelledError, InternalError, OpError
from tfray.runtime.device import Device, local_device_names
from tfray.runtime.executor import PlanRun, run_plan, run_to_end
from tfray.runtime.plan import Partition, Plan
from tfray.runtime.rendezvous import Mailbox
from tfray.runtime.step import Step
from tfray.runtime.tracing import HARDWARE_TRACE, DeviceRecord, DeviceTrace, Observer, TracedRun, TracedStep

CLOSED: Final = "the step was cancelled: its session was closed while it ran"

_step_ids = itertools.count(1)

_runners: Final[WeakSet[LocalRunner]] = WeakSet()
"""Those of this process's sessions."""


def close_all() -> None:
    """End the sessions of this process that run in it."""
    for runner in list(_runners):
        runner.close()


class _LocalRendezvous:
    """Hands tensors to the other partitions of the step."""

    copies = False

    def __init__(self) -> None:
        self.runs: dict[str, PlanRun] = {}

    def send(self, key: str, destination: str, value: Any) -> None:
        self.runs[destination].deliver(key, value)

    def flush(self) -> None:
        """Nothing is held back."""


class _ThreadRendezvous:
    """Hands tensors to the other partitions of the step, which run on threads of their own."""

    copies = False

    def __init__(self, mailboxes: Mapping[str, Mailbox]) -> None:
        self._mailboxes = mailboxes

    def send(self, key: str, destination: str, value: Any) -> None:
        self._mailboxes[destination].deliver([(key, value)])

    def flush(self) -> None:
        """Nothing is held back."""


class LocalRunner:
    """Devices of this process, and the plans registered with them.

    Args:
        cpu_count: Number of CPU devices to offer; more than one lets a partitioned graph be tried in one process.
        gpu_limit: Largest number of GPUs to offer; None for all.
        gpu_memory: The share of each GPU's memory that this process may take, see `Device.limit_memory`; 0 leaves the
            limit as it is.

    Raises:
        InvalidArgumentError: The share is above 1.
    """

    def __init__(self, cpu_count: int = 1, gpu_limit: int | None = None, gpu_memory: float = 0.0) -> None:
        self._devices = {name: Device.open(name) for name in local_device_names(cpu_count, gpu_limit)}
        for device in self._devices.values():
            if gpu_memory:
                device.limit_memory(gpu_memory)
        self._closed = False
        self._steps: set[Step] = set()
        _runners.add(self)

    @property
    def devices(self) -> list[str]:
        """Full names of the devices."""
        return list(self._devices)

    def register(self, partitions: Sequence[Partition], functions: Mapping[str, Any]) -> LocalStep:
        """Compile the partitions of one step."""
        plans = [Plan(partition, self._devices[partition.device], sends_copy=False) for partition in partitions]
        return LocalStep(self, plans)

    def devices_by_name(self) -> dict[str, Device]:
        """The devices themselves."""
        if self._closed:
            raise CancelledError("the session is closed")
        return self._devices

    def begin(self, step: Step) -> None:
        """A step begins: from now on `close` ends it. Raises if the session is closed already."""
        self._steps.add(step)
        if self._closed:
            self.over(step)
            self.devices_by_name()

    def over(self, step: Step) -> None:
        """A step is over."""
        self._steps.discard(step)

    def check_open(self, error: OpError) -> None:
        """Raise `CancelledError` in place of `error` if the session is closed, which may have caused the error."""
        if self._closed and not isinstance(error, CancelledError):
            raise CancelledError(CLOSED, op_name=error.op_name, device=error.device, site=error.site) from error

    def close(self) -> None:
        """Drop all state. Steps in other threads are cancelled: they end as soon as they look, or wait."""
        self._closed = True
        for step in [*self._steps, *(device.background for device in self._devices.values())]:
            step.end(CancelledError(CLOSED))  # an error for each step, because the step writes an operation into it
        for device in self._devices.values():
            device.resources.clear()
            device.session_state.clear()


class LocalStep:
    """A registered step: call it to run."""

    def __init__(self, runner: LocalRunner, plans: list[Plan]) -> None:
        self._runner = runner
        self._plans = plans
        self._waits = any(plan.waits for plan in plans)
        self._spans = any(plan.receives_in_regions for plan in plans)
        # `_single` is the plan in the common case: one device, one segment, nothing to wait for.
        self._single = plans[0] if len(plans) == 1 and len(plans[0].segments) == 1 and not self._waits else None
        if self._single is not None:
            segment = self._single.segments[0]
            outputs = {slot: i for i, slot in enumerate(segment.output_slots)}
            fed = {slot: i for i, slot in enumerate(self._single.feed_slots)}
            self._inputs = [fed[slot] for slot in segment.input_slots]
            self._outputs = [outputs.get(slot) for slot in self._single.fetch_slots]
            if None in self._outputs:
                self._single = None

    def run(self, feeds: Sequence[Sequence[Any]], timeout_s: float | None = None) -> list[list[Any]]:
        """Run once.

        Args:
            feeds: For each partition, its fed values as NumPy arrays.
            timeout_s: Seconds after which to give up.

        Returns:
            For each partition, its fetched values as NumPy arrays.
        """
        try:
            if self._single is not None and timeout_s is None:
                self._runner.devices_by_name()
                return [self._run_single(self._single, feeds[0])]
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            return self._run_threads(feeds, deadline) if self._spans else self._run_all(feeds, deadline)
        except OpError as error:
            self._runner.check_open(error)
            raise

    def run_traced(
        self,
        feeds: Sequence[Sequence[Any]],
        timeout_s: float | None = None,
        level: int = HARDWARE_TRACE,
        observer: Observer | None = None,
    ) -> tuple[list[list[Any]], list[DeviceRecord]]:
        """Run once, and tell what each device did. `observer` sees every value; see `DeviceTrace`."""
        devices = self._runner.devices_by_name()
        plans = [plan.traced() for plan in self._plans]
        traces = {plan.device.name: DeviceTrace(devices[plan.device.name], level, observer) for plan in plans}
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        run = self._run_threads if self._spans else self._run_all
        try:
            results = run(feeds, deadline, traces)
        except OpError as error:
            self._runner.check_open(error)
            raise
        return results, [traces[plan.device.name].record(plan.buffer_bytes) for plan in plans]

    def _run_threads(
        self,
        feeds: Sequence[Sequence[Any]],
        deadline: float | None,
        traces: dict[str, DeviceTrace] | None = None,
    ) -> list[list[Any]]:
        """Run each partition on a thread of its own, the first on this one."""
        errors: list[BaseException] = []
        step_id = next(_step_ids)
        plans = self._plans if traces is None else [plan.traced() for plan in self._plans]
        mailboxes = {plan.device.name: Mailbox() for plan in plans}
        rendezvous = _ThreadRendezvous(mailboxes)
        with ExitStack() as scopes:
            steps: dict[str, Step] = {}
            for name, mailbox in mailboxes.items():
                if traces is None:
                    steps[name] = Step(step_id, rendezvous, deadline, mailbox)
                else:
                    steps[name] = TracedStep({name: traces[name]}, step_id, rendezvous, deadline, mailbox)
                self._runner.begin(steps[name])
                scopes.callback(self._runner.over, steps[name])

            def run(plan: Plan, values: Sequence[Any]) -> list[Any]:
                device = plan.device
                step = steps[device.name]
                try:
                    fed = plan.fed(values)
                    if isinstance(step, TracedStep):
                        fetched = step.run(plan, fed)
                    else:
                        fetched = run_plan(plan, step, fed, mailboxes[device.name])
                    return [device.to_host(value) for value in fetched]
                except BaseException as error:
                    errors.append(error)
                    for other in steps.values():
                        other.end(CancelledError("another device of the step failed"))
                    raise

            pool = scopes.enter_context(ThreadPoolExecutor(max(1, len(plans) - 1), "tfray-device"))
            others = [pool.submit(run, plan, values) for plan, values in zip(plans[1:], feeds[1:], strict=True)]
            results: list[list[Any]] = []
            with suppress(OpError):  # the first error is raised below, whichever thread had it
                results.append(run(plans[0], feeds[0]))
            wait(others)
            if errors:
                raise errors[0]
            return results + [future.result() for future in others]

    def _run_all(
        self,
        feeds: Sequence[Sequence[Any]],
        deadline: float | None,
        traces: dict[str, DeviceTrace] | None = None,
    ) -> list[list[Any]]:
        """Run all partitions on this thread."""
        plans, step_id = self._plans, next(_step_ids)
        mailbox = Mailbox() if self._waits else None
        rendezvous = _LocalRendezvous() if len(plans) > 1 else None
        start: Callable[..., PlanRun] = PlanRun
        if traces is None:
            step = Step(step_id, rendezvous, deadline, mailbox)
        else:
            step = TracedStep(traces, step_id, rendezvous, deadline, mailbox)
            plans, start = [plan.traced() for plan in plans], TracedRun
        runs = []
        for plan, values in zip(plans, feeds, strict=True):
            device = plan.device
            run = start(plan, step, plan.fed(values) if values else values)
            if rendezvous is not None:
                rendezvous.runs[device.name] = run
            runs.append(run)
        step.runs = runs
        self._runner.begin(step)
        try:
            has_ended = run_to_end(runs, step)
        finally:
            self._runner.over(step)
            step.cancel()
            step.runs = ()  # breaks a reference cycle, which would keep all values until garbage collection
        if not has_ended:
            missing = ", ".join(key for run in runs for key in run.missing)
            raise InternalError(f"the step cannot go on: nothing sends {missing}")
        for trace in (traces or {}).values():
            trace.close()
        return [run.fetch_to_host() for run in runs]

    def _run_single(self, plan: Plan, feeds: Sequence[Any]) -> list[Any]:
        device = plan.device
        if device.type != "CPU":
            feeds = plan.fed(feeds)
        values = [feeds[i] for i in self._inputs]
        with np.errstate(all="ignore"):
            outputs = plan.segments[0].run(device.background, values)
        results = [outputs[i] for i in self._outputs if i is not None]
        return results if device.type == "CPU" else [device.to_host(value) for value in results]

    def close(self) -> None:
        """Nothing to release: the plans go with this object."""
