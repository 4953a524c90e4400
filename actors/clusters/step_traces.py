"""Records of chosen steps, from the devices of replicated training."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from tfray.actors.links.awaited_answers import unpack
from tfray.actors.links.clocks import in_drivers_time
from tfray.options import RunOptions
from tfray.runtime.tracing import DeviceRecord, with_call


class _Recorded(NamedTuple):
    """A record, the device that was called for it, and when it was called and had answered."""

    record: DeviceRecord
    asked: str
    called: int
    answered: int


class StepTraces:
    """Collects the records of the steps that are to be recorded.

    Args:
        actor: The actor handle of a device.
        steps: Numbers of these steps.
    """

    def __init__(self, actor: Callable[[str], Any], steps: Collection[int] = ()) -> None:
        self._actor = actor
        self._steps = steps
        self._called: dict[Any, int] = {}
        self._records: dict[int, list[_Recorded]] = {}

    def level(self, step: int) -> int:
        """How much the devices record of a step."""
        return RunOptions.FULL_TRACE if step in self._steps else 0

    def called(self, ref: Any, step: int) -> None:
        """A device was called for a step."""
        if step in self._steps:
            self._called[ref] = time.perf_counter_ns()

    def unpack(self, ref: Any, device: str, step: int) -> Any:
        """What a device returned, as `awaited_answers.unpack` gives it. Its record, and those of its GPUs, are kept."""
        called = self._called.pop(ref, None)
        value = unpack(ref, device)
        if called is None:
            return value
        value, records = value
        answered = time.perf_counter_ns()
        self._records.setdefault(step, []).extend(_Recorded(each, device, called, answered) for each in records)
        return value

    def take(self, step: int) -> list[DeviceRecord]:
        """The records of a step, in the time of this process. Records that come later are lost."""
        found = self._records.pop(step, [])
        actors = {each.record.device: self._actor(each.asked) for each in found}
        aligned = in_drivers_time([each.record for each in found], actors)
        return [with_call(record, each.called, each.answered) for record, each in zip(aligned, found, strict=True)]
