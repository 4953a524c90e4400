"""Metrics of training for Ray's dashboard and Prometheus; all names begin with ``ray_tfray_`` there.

| metric | kind | what |
| --- | --- | --- |
| ``tfray_step_seconds`` | histogram | time of a training step |
| ``tfray_examples_per_second`` | gauge | examples that counted, over the time since the step before |
| ``tfray_dropped_gradients`` | counter | gradients that came too late |
| ``tfray_live_replicas`` | gauge | replicas alive |
| ``tfray_sent_bytes`` | counter | bytes of tensors sent, by device |
"""

from __future__ import annotations

import threading
import time
from functools import lru_cache
from typing import Final

from ray.util.metrics import Counter, Gauge, Histogram

STEP_BOUNDARIES_S: Final = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0]

_PERIOD_S: Final = 0.1
"""Seconds between two settings of what changes in every step, at least. Ray reads it far more rarely."""


@lru_cache(maxsize=1)
def _sent_bytes() -> Counter:
    return Counter("tfray_sent_bytes", "Bytes of tensors sent to other devices.", ("device",))


class SentBytes:
    """Counts what a device sends. To tell Ray takes longer than a short step: it is told once in `_PERIOD_S`.

    Args:
        device: Full name of the device.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._untold = 0
        self._told_at = 0.0
        self._lock = threading.Lock()

    def add(self, size_bytes: int) -> None:
        """Count what has been sent in a step."""
        now = time.perf_counter()
        with self._lock:
            self._untold += size_bytes
            if not self._untold or now - self._told_at < _PERIOD_S:
                return
            told, self._untold, self._told_at = self._untold, 0, now
        _sent_bytes().inc(told, {"device": self._device})


class StepMetrics:
    """Tells Ray of training steps.

    Args:
        examples_per_replica: Examples that each replica reads for a step; 0 if it is not known.
    """

    def __init__(self, examples_per_replica: int = 0) -> None:
        self._examples = examples_per_replica
        self._step_seconds = Histogram("tfray_step_seconds", "Time of a training step.", STEP_BOUNDARIES_S)
        self._speed = Gauge("tfray_examples_per_second", "Examples trained on per second.")
        self._live = Gauge("tfray_live_replicas", "Replicas alive.")
        self._dropped = Counter("tfray_dropped_gradients", "Gradients that came too late.")
        self._dropped_so_far = 0
        self._live_so_far: int | None = None
        self._counted = 0
        self._set_at: float | None = None

    def observe(self, duration_s: float, members: int, live: int, dropped: int) -> None:
        """Report a step.

        Args:
            duration_s: Seconds that it took.
            members: Replicas that counted.
            live: Replicas alive.
            dropped: Late gradients so far.
        """
        self._step_seconds.observe(duration_s)
        if dropped > self._dropped_so_far:
            self._dropped.inc(dropped - self._dropped_so_far)
            self._dropped_so_far = dropped
        if live != self._live_so_far:
            self._live.set(live)
            self._live_so_far = live
        self._counted += members * self._examples
        now = time.perf_counter()
        since = now - self._set_at if self._set_at is not None else duration_s
        if self._set_at is None or since >= _PERIOD_S:
            self._speed.set(self._counted / max(since, 1e-9))
            self._counted, self._set_at = 0, now
