"""Uniform numbers that a GPU draws are those that a CPU draws.

Where there is no GPU, ``tests/support/gpu/check.sh tests tests/devices/test_device_random.py`` runs them on a stand-in,
which draws by NumPy's generator: that proves keys, requests and chunks. With ``--xp cupy`` the kernel itself is run.
"""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.runtime.device import gpu_count

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_count(), reason="needs a GPU")]


def drawn(device, make, steps=3):
    """What each of some steps draws; the device's own kernels are told to."""
    with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
        numbers = make()
        return [session.run(numbers) for _ in range(steps)]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.bfloat16, tf.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(1 << 17,), ((1 << 17) + 1,), (3, 100_001), (7, 300, 200)])
def test_a_seed_gives_the_same_numbers_on_every_device(dtype, shape):
    def make():
        return tf.random_uniform(shape, dtype=dtype, seed=5)

    on_cpu, on_gpu = (drawn(device, make) for device in ("/cpu:0", "/gpu:0"))
    for expected, found in zip(on_cpu, on_gpu, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len({numbers.tobytes() for numbers in on_gpu}) == 3
    assert on_gpu[0].astype(np.float64).max() < 1


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 0.3), (5, 9), (-2.5, -2)])
def test_bounds(low, high):
    def make():
        return tf.random_uniform((300_000,), low, high, seed=6)

    np.testing.assert_array_equal(*(drawn(device, make, 1)[0] for device in ("/cpu:0", "/gpu:0")))


def test_small_and_large_requests_of_one_stream_follow_each_other():
    found = {}
    for device in ("/cpu:0", "/gpu:0"):
        with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
            size = tf.placeholder(tf.int32, [1])
            numbers = tf.random_uniform(size, seed=7)
            found[device] = [session.run(numbers, {size: [count]}) for count in (10, 200_000, 10, 300_000, 5)]
    for expected, on_gpu in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(on_gpu, expected)
