"""Memory that is freed stays warm; arrays that nobody else holds are not copied."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import tfray as tf
from tfray.runtime.host_memory import own

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


def test_an_array_that_nobody_else_holds_is_not_copied():
    array = np.arange(3.0)
    address = array.ctypes.data
    assert own(array).ctypes.data == address


@pytest.mark.parametrize("held", ["name", "view", "list", "memoryview", "view itself", "scalar"])
def test_an_array_that_is_held_elsewhere_is_copied(held):
    array = np.arange(3.0)
    keep = {
        "name": lambda: array,
        "view": lambda: array[1:],
        "list": lambda: [array],
        "memoryview": lambda: memoryview(array),
    }.get(held, lambda: None)()
    if held == "view itself":
        array = np.arange(6.0)[:3]
    if held == "scalar":
        array = array[0]
    result = own(array)
    assert np.array_equal(result, array)
    assert not np.shares_memory(result, array)
    del keep


def test_fetched_elements_of_a_dataset_are_the_users_own():
    rows = np.arange(6.0)
    datasets = [
        tf.data.Dataset.from_tensors(rows).repeat(),
        tf.data.Dataset.from_tensors(rows).cache().repeat(),
        tf.data.Dataset.from_tensor_slices(rows).batch(6).repeat(),
        tf.data.Dataset.from_tensor_slices(rows).batch(6).cache().repeat(),
    ]
    following = [dataset.make_one_shot_iterator().get_next() for dataset in datasets]
    with tf.Session() as session:
        for _ in range(3):
            for array in session.run(following):
                assert array.tolist() == [0, 1, 2, 3, 4, 5]
                array[...] = -1
