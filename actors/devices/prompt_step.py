"""Steps that no thread waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tfray.framework.effects import is_blocking
from tfray.framework.graph import Operation
from tfray.framework.region import ops_within
from tfray.runtime.executor import StepExecution
from tfray.runtime.plan import Plan
from tfray.runtime.rendezvous import Mailbox

LONGEST_TURN_S: Final = 2e-3
"""Plans that keep a processor busy for longer at a time get a thread of their own: links are not read meanwhile."""

_PROMPT: Final = frozenset({"Variable", "Placeholder", "Send", "ReplicaReduce", "NoOp", "RegionInput"})
"""Types of stateful operations whose kernels wait for nothing and call no code of the user's."""

_RANDOM: Final = "seed2"
"""Attribute of operations that draw random numbers."""


class PromptStep:
    """A step that goes on, on whichever thread brings what it lacks: nobody has to be woken.

    Args:
        execution: The step.
        mailbox: Where it finds what has come.
        may_end: Whether it may end once its plan has.
        end: Called once: with None when it has come to its end, or with the error that ended it.
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
        """Go on with what has come, unless another thread does so already: that one looks again."""
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


def is_prompt(plan: Plan) -> bool:
    """Whether nothing in a plan waits but for other devices, between segments."""
    if plan.waits or plan.receives_in_regions:
        return False
    return all(map(_is_prompt, plan.partition.graph.get_operations()))


def _is_prompt(op: Operation) -> bool:
    if op.type == "Recv":
        return True
    # Nobody could end a loop that does not end: its thread would read no links meanwhile.
    if is_blocking(op) or any(inner.type == "While" for inner in ops_within(op)):
        return False
    return all(
        inner.type in _PROMPT or inner.op_def.access is not None or not inner.op_def.stateful or _RANDOM in inner.attrs
        for inner in ops_within(op)
    )
