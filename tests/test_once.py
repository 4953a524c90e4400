"""Functions that are called once."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.processes import PATIENCE_S
from tfray.once import once


def test_all_threads_get_what_the_first_one_makes():
    callers = 8
    begun = threading.Barrier(callers)
    made = []

    @once
    def make():
        made.append(object())
        return made[-1]

    def ask(_):
        begun.wait(PATIENCE_S)
        return make()

    with ThreadPoolExecutor(callers) as pool:
        found = list(pool.map(ask, range(callers)))
    assert len(made) == 1 and all(each is made[0] for each in found)
    assert make() is made[0]


def test_an_error_is_not_kept():
    answers = iter([ValueError("not yet"), 3])

    @once
    def make():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="not yet"):
        make()
    assert make() == make() == 3


AT_ONCE = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from tfray.ops.kernels.native import onednn

sys.setswitchinterval(1e-6)
begun = threading.Barrier(8)
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda _: (begun.wait(), onednn.library())[1], range(8)))
assert len(set(map(id, found))) == 1, found
"""


def test_threads_that_compute_their_first_convolutions_at_once_share_the_library():
    subprocess.run([sys.executable, "-c", AT_ONCE], timeout=PATIENCE_S, check=True)
