"""A plan that is registered on a device, and how long its turns take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from tfray.actors.devices.prompt_step import LONGEST_TURN_S, is_prompt
from tfray.actors.devices.ring import RingLayout
from tfray.framework.region import ops_within
from tfray.placement.replicate import REPLICA_DEVICE, device_serving
from tfray.runtime.executor import StepExecution
from tfray.runtime.plan import Plan
from tfray.runtime.plan_group import PlanGroup, begun
from tfray.runtime.rendezvous import Mailbox
from tfray.runtime.step import Step
from tfray.runtime.tracing import TracedRun, TracedStep

TIMED_STEPS: Final = 8
"""One in so many steps of a prompt plan is timed, to see whether its turns are still short enough for a prompt step.
Timing takes time itself; with fewer timed steps a change would be noticed later."""

UNKNOWN_PACE_S: Final = 2 * LONGEST_TURN_S
"""Seconds that a turn of a plan is taken to last before it has run. It is above the limit for prompt steps: so the
first steps, which compile, have threads of their own."""


class RegisteredPlan:
    """A plan, and how long it takes.

    Attributes:
        plan: The plan.
        only_sends: See `Partition.only_sends`.
        senders: By device from which it receives tensors: the devices that send these, each of them all. What comes
            from replicas is left out: who counts among them is for the driver to say.
        inner_sources: The devices from which branches and loops receive tensors.
        ring: What it reduces with other replicas; None for nothing.
        turn_s: Seconds of its longest turn of late: a turn is what it computes between two waits. Infinite for a plan
            that is not prompt.
    """

    def __init__(self, plan: Plan | PlanGroup) -> None:
        self.plan = plan
        self.only_sends = plan.partition.only_sends
        outer = plan.partition.graph.get_operations()
        received = [(op is each, each.attr("source")) for op in outer for each in ops_within(op) if each.type == "Recv"]
        also = plan.partition.also_from
        self.senders = {
            source: frozenset({who, also.get(who, who)})
            for _, source in received
            for who in [device_serving(source)]
            if source != REPLICA_DEVICE
        }
        self.inner_sources = frozenset(source for is_outer, source in received if not is_outer)
        self.ring = RingLayout(plan.partition.ring) if plan.partition.ring else None
        self.turn_s = UNKNOWN_PACE_S if is_prompt(plan) else math.inf
        self._begun = 0

    def begin(self, step: Step, feeds: Sequence[Any], mailbox: Mailbox) -> StepExecution:
        """Begin to run the plan, in its traced form if the step is recorded. `feeds` is what the plan's `fed` gave."""
        if isinstance(step, TracedStep):
            return StepExecution(begun(self.plan.traced(), step, feeds, TracedRun), step, mailbox)
        self._begun += 1
        is_timed = self.turn_s >= LONGEST_TURN_S or self._begun % TIMED_STEPS == 0
        return StepExecution(begun(self.plan, step, feeds), step, mailbox, is_timed=is_timed)

    def ran(self, execution: StepExecution) -> None:
        """Note the longest turn of a step that was timed. Each one counts as much as all before it together."""
        if execution.is_timed:
            self.turn_s = (self.turn_s + execution.longest_turn_s) / 2
