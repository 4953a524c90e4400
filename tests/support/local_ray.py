"""Ray on this machine, for tests."""

from __future__ import annotations

import time

from tests.support.processes import PATIENCE_S

RAY_CPUS = 8
"""What the local Ray offers, whatever the machine has: the tasks share it."""


def start_local_ray(ray):
    """Start Ray on this machine unless this process is connected already."""
    ends = time.monotonic() + PATIENCE_S
    while not ray.is_initialized():
        try:
            ray.init(
                address="local",
                num_cpus=RAY_CPUS,
                include_dashboard=False,
                object_store_memory=512 << 20,
                logging_level="warning",
            )
        except Exception as error:  # of no kind of its own: Ray gives itself half a minute, however busy the machine is
            ray.shutdown()
            if "timed out" not in str(error).lower() or time.monotonic() > ends:
                raise
