"""Memory that is freed stays warm."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from tfray.runtime.host_memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work():
    before = faults()
    kept = [np.ones(1 << 18, np.uint8) for _ in range(100)]
    del kept
    return faults() - before

keep_freed_memory()
work()
print(work())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
@pytest.mark.parametrize("own_setting", [False, True])
def test_the_second_round_touches_no_fresh_page(own_setting):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "GLIBC_"))}
    if own_setting:
        environment["MALLOC_MMAP_THRESHOLD_"] = "65536"
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    assert (int(done.stdout) > 5000) if own_setting else (int(done.stdout) < 500)
