"""Records of chosen steps, from the devices of replicated training."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

from tfray.actors.links.awaited_answers import unpack
from tfray.actors.links.clocks import in_drivers_time
from tfray.config import RunOptions
from tfray.runtime.tracing import DeviceRecord, with_call


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
        self._records: dict[int, list[tuple[DeviceRecord, int, int]]] = {}

    def level(self, step: int) -> int:
        """How much the devices record of a step."""
        return RunOptions.FULL_TRACE if step in self._steps else 0

    def called(self, ref: Any, step: int) -> None:
        """A device was called for a step."""
        if step in self._steps:
            self._called[ref] = time.perf_counter_ns()

    def unpack(self, ref: Any, device: str, step: int) -> Any:
        """What a device returned, as `awaited_answers.unpack` gives it. The device's record is put aside."""
        called = self._called.pop(ref, None)
        value = unpack(ref, device)
        if called is None:
            return value
        value, record = value
        self._records.setdefault(step, []).append((record, called, time.perf_counter_ns()))
        return value

    def take(self, step: int) -> list[DeviceRecord]:
        """The records of a step, in the time of this process. Records that come later are lost."""
        found = self._records.pop(step, [])
        aligned = in_drivers_time(
            [record for record, _, _ in found], {r.device: self._actor(r.device) for r, _, _ in found}
        )
        return [with_call(record, *times) for record, (_, *times) in zip(aligned, found, strict=True)]
