"""Converts times of the machines of a cluster to the driver's clock."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tfray.actors.links import ray_calls
from tfray.runtime.tracing import DeviceRecord, host_identity, in_one_time

ROUNDS: Final = 5
"""How often each machine is asked for its time. The fastest answer counts: its error is the smallest."""


def offset_ns(actor: Any) -> int:
    """Nanoseconds to add to the clock of an actor's machine to get this process's. The error is at most half a call."""
    estimates = []
    for _ in range(ROUNDS):
        asked = time.perf_counter_ns()
        there = ray_calls.result(actor.clock.remote())
        answered = time.perf_counter_ns()
        estimates.append((answered - asked, (asked + answered) // 2 - there))
    return min(estimates)[1]


def in_drivers_time(records: Iterable[DeviceRecord], actors: Mapping[str, Any]) -> list[DeviceRecord]:
    """The records in the time of this process.

    Args:
        records: What devices recorded.
        actors: Handle of each device.
    """
    records = list(records)
    here = host_identity()
    elsewhere = {record.host: record.device for record in records if record.host != here}
    return in_one_time(records, {host: offset_ns(actors[device]) for host, device in elsewhere.items()})
