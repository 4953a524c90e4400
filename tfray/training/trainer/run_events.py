"""Events of a run beside its steps. Each is told at once, in one line, on standard error and in the event file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tfray.library.platform import logging

REPLACEMENT: Final = "replacement"
ROLLBACK: Final = "rollback"
LOST_DATA: Final = "lost data"
EARLY_END: Final = "early end"
NOTHING_TO_DO: Final = "nothing to do"
SCALING: Final = "scaling"
STANDBY: Final = "standby"


@dataclass(frozen=True)
class RunEvent:
    """Something that happened in a run beside its steps.

    Attributes:
        kind: ``"replacement"`` of a worker that died, ``"rollback"`` to a checkpoint, ``"lost data"`` of a replica
            whose share is no longer read, ``"early end"`` with the input, ``"nothing to do"`` for a resumed run,
            ``"scaling"`` when the number of parameter servers has changed, ``"standby"`` when a standby has taken the
            place of a parameter server, or has come or gone itself.
        step: The step in which it happened.
        message: One sentence.
        replica: The replica that it is about, if any.
        device: The device of the worker that was lost, if one was.
    """

    kind: str
    step: int
    message: str
    replica: int | None = None
    device: str | None = None


class RunEvents:
    """The events of one run.

    Attributes:
        told: All of them, in order.
        note: Called with each event if it is not None: the log of the run sets it.
    """

    def __init__(self) -> None:
        self.told: list[RunEvent] = []
        self.note: Callable[[RunEvent], None] | None = None

    def tell(
        self, kind: str, step: int, message: str, replica: int | None = None, device: str | None = None
    ) -> RunEvent:
        """Say that something has happened."""
        event = RunEvent(kind, step, message, replica, device)
        self.told.append(event)
        logging.warning("%s", message)
        if self.note is not None:
            self.note(event)
        return event

    def ended(self, done: int, wanted: int, began: int) -> None:
        """Tell if a run has ended after fewer than `wanted` steps, or had none left. `began` were done at its start."""
        if began >= wanted:
            message = (
                f"nothing was left to do: the checkpoint that the run went on from has {began} steps, and {wanted} are "
                "asked for; raise steps, choose another checkpoint_dir, or begin anew with resume=False"
            )
            self.tell(NOTHING_TO_DO, began, message)
        elif done < wanted:
            self.tell(EARLY_END, done, f"training has ended after {done} of {wanted} steps: its input has no more")
