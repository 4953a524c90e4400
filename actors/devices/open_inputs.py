"""The input pipelines of a device: the user's functions that give what replicas feed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.actors.links.messages import OpenInput, PlanId, ReadInput
from tfray.errors import InvalidArgumentError, OutOfRangeError, UnknownError


class Inputs:
    """Open input pipelines, by the plan that they feed.

    Args:
        device: Full name of the device, for errors.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._open: dict[PlanId, ReadInput] = {}

    def attach(self, plan_id: PlanId, open_input: OpenInput) -> None:
        """Open what gives the fed values of one step of a plan at a time."""
        self._open[plan_id] = self._called(open_input)

    def forget(self, plan_id: PlanId) -> None:
        """Close the input of a plan, if it has one."""
        self._open.pop(plan_id, None)

    def next(self, plan_id: PlanId, step: int) -> Sequence[Any]:
        """The values to feed in a step.

        Raises:
            OutOfRangeError: The input has ended.
            UnknownError: The user's function has failed.
        """
        try:
            values: Sequence[Any] = self._called(self._open[plan_id], step)
        except StopIteration:
            raise OutOfRangeError("the input of this replica has ended", device=self._device) from None
        return values

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the user's input. `StopIteration` passes; other errors become an `UnknownError`."""
        try:
            return function(*arguments)
        except (StopIteration, InvalidArgumentError):  # the latter for a batch that does not fit
            raise
        except BaseException as error:
            raise UnknownError(
                f"the input function failed on {self._device}: {type(error).__name__}: {error}", device=self._device
            ) from error
