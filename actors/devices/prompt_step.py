"""Prompt steps: no thread waits for what they lack. Each message that arrives carries them on, on its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tfray.framework.effects import is_blocking
from tfray.framework.graph import Operation
from tfray.framework.region import ops_within
from tfray.runtime.executor import StepExecution
from tfray.runtime.plan import Plan
from tfray.runtime.plan_group import PlanGroup
from tfray.runtime.rendezvous import Mailbox

LONGEST_TURN_S: Final = 2e-3
"""Seconds that a prompt step may compute between two waits: the thread that reads links computes it, and reads none
meanwhile. Steps of plans that take longer get a thread of their own."""

_NEVER_WAITING: Final = frozenset({"Variable", "Placeholder", "Send", "ReplicaReduce", "NoOp", "RegionInput"})
"""Types of stateful operations whose kernels never wait, and never call the user's code."""

_SEED_ATTR: Final = "seed2"
"""An attribute that operations have if they draw random numbers: these are stateful, but never wait."""


class PromptStep:
    """A step that goes on, on the thread that brings a message for it: no other thread has to be woken.

    Args:
        execution: The step.
        mailbox: Holds the messages that have come.
        may_end: Tells whether the step may end, once its plan has run.
        end: Called once when the step is over: with None, or with the error that ended it.
    """

    def __init__(
        self,
        execution: StepExecution,
        mailbox: Mailbox,
        may_end: Callable[[], bool],
        end: Callable[[BaseException | None], None],
    ) -> None:
        self._execution = execution
        self._mailbox = mailbox
        self._may_end = may_end
        self._end = end
        self._turn = threading.Lock()
        self._over = False
        mailbox.wake()  # to begin

    def advance(self) -> None:
        """Go on with what has come. If another thread does so already, leave it to that one: it looks again."""
        while self._mailbox.has_news and not self._over:
            if not self._turn.acquire(blocking=False):
                return
            failure: BaseException | None = None
            try:
                if self._over:
                    return
                self._over = over = self._execution.advance() and self._may_end()
            except BaseException as error:  # noqa: BLE001 (whatever it is ends the step, and goes to its driver)
                self._over, over, failure = True, True, error
            finally:
                self._turn.release()
            if over:
                self._end(failure)


def is_prompt(plan: Plan | PlanGroup) -> bool:
    """Whether a plan waits only between segments, and only for other devices."""
    if plan.waits or plan.receives_in_regions:
        return False
    return all(map(_is_prompt, plan.partition.graph.get_operations()))


def _is_prompt(op: Operation) -> bool:
    if op.type == "Recv":
        return True
    # A loop might run for ever. On the reading thread nobody could end it: the message to do so would not be read.
    if is_blocking(op) or any(inner.type == "While" for inner in ops_within(op)):
        return False
    return all(
        inner.type in _NEVER_WAITING
        or inner.op_def.access is not None
        or not inner.op_def.stateful
        or _SEED_ATTR in inner.attrs
        for inner in ops_within(op)
    )
