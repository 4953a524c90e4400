"""Training on every path of kernels: the same losses, and on each path the same bits on any number of threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
import json
import numpy as np
import tfray as tf

random = np.random.default_rng(0)
images = random.normal(size=(256, 67, 67, 3)).astype(np.float32)
labels = (images.mean((1, 2)) @ random.normal(size=(3, 10))).argmax(1)


def convolved(x, filters, size, stride=1):
    kernel = tf.Variable(random.normal(0, 0.1, (size, size, int(x.shape[3]), filters)).astype(np.float32))
    bias = tf.Variable(np.full(filters, 0.1, np.float32))
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME"), bias))


def dense(x, units):
    weights = tf.Variable(random.normal(0, 0.05, (int(x.shape[1]), units)).astype(np.float32))
    return tf.matmul(x, weights) + tf.Variable(np.zeros(units, np.float32))


fed, wanted = tf.placeholder(tf.float32, [None, 67, 67, 3]), tf.placeholder(tf.int64, [None])
x = tf.nn.max_pool(convolved(fed, 16, 11, 4), [1, 3, 3, 1], [1, 2, 2, 1], "VALID")
x = tf.nn.lrn(tf.nn.max_pool(convolved(x, 32, 5), [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), 2)
x = convolved(convolved(x, 48, 3), 32, 3)
x = tf.nn.relu(dense(tf.reshape(x, [-1, 4 * 4 * 32]), 256))
loss = tf.losses.sparse_softmax_cross_entropy(wanted, dense(x, 10))
train = tf.train.MomentumOptimizer(0.0007, 0.9).minimize(loss)
losses = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(STEPS):
        chosen = np.arange(step * 32, step * 32 + 32) % 256
        losses.append(float(session.run([loss, train], {fed: images[chosen], wanted: labels[chosen]})[0]))
print(json.dumps(losses))
"""


def losses(steps, **environment):
    """The losses of a small AlexNet."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.replace("STEPS", str(steps))],
        env=os.environ | {"OMP_NUM_THREADS": "2"} | environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    return json.loads(done.stdout)


def test_two_runs_have_the_same_bits_and_the_paths_agree():
    fast, plain = losses(5), losses(5, TFRAY_KERNELS="numpy")
    assert losses(5, OMP_NUM_THREADS="1") == fast
    assert losses(5, OMP_NUM_THREADS="3", TFRAY_KERNELS="numpy") == plain
    np.testing.assert_allclose(fast, plain, rtol=1e-5)


@pytest.mark.slow
def test_paths_agree_over_two_hundred_steps():
    fast, plain = losses(200), losses(200, TFRAY_KERNELS="numpy")
    assert np.mean(fast[-8:]) < 0.85 * np.mean(fast[:8])  # an epoch has eight steps
    np.testing.assert_allclose(fast, plain, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("tests", ["tests/ops/test_golden.py", "tests/ops/nn", "tests/ops/state", "tests/runtime"])
def test_tests_pass_on_numpy_alone(tests):
    """Values of TensorFlow, and what the tests of kernels ask for, without the optional libraries."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow and not ray", tests],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"TFRAY_KERNELS": "numpy"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-3000:]
