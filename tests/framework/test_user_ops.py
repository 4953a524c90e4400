"""Operations that programs define for themselves, with the pattern of tfray's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import tfray as tf
from tests.support.gradient_check import check_gradients
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.op_def import OpDef, on_every_device, out_kernel, register
from tfray.framework.shape_functions import like_input


def gelu(x, name=None):
    """Compute ``x * sigmoid(1.702 x)``."""
    return add_op(GELU, x, name=name)


def _gelu_kernel(ctx, x, out=None):
    if np.any(x == -1000):
        raise ValueError("a value that the kernel refuses")
    return ctx.xp.multiply(x, 1 / (1 + ctx.xp.exp(-1.702 * x)), out=out).astype(ctx.output_dtype(), copy=False)


def _gelu_gradient(op, d_y):
    (x,) = op.inputs
    gate = tf.sigmoid(1.702 * x)
    return [d_y * (gate + 1.702 * x * gate * (1 - gate))]


GELU = register(
    OpDef(
        name="UserGelu",
        inputs=("x: T",),
        outputs=("y: T",),
        types={"T": dtypes.FLOATS},
        shape=like_input(0),
        kernels=on_every_device(out_kernel(_gelu_kernel)),
        gradient=_gelu_gradient,
    )
)

VALUES = np.linspace(-2, 2, 12).reshape(3, 4)


def expected(x):
    return x * expit(1.702 * x)


def test_it_computes_and_has_a_shape():
    x = tf.placeholder(tf.float64, [None, 4])
    y = gelu(x, "activation")
    assert (y.name, y.shape.as_list()) == ("activation:0", [None, 4])
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(y, {x: VALUES}), expected(VALUES))


def test_its_gradient_is_used():
    check_gradients(gelu, [VALUES])


def test_it_works_in_loops():
    x = tf.placeholder(tf.float64, [3, 4])
    y = tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, gelu(x)), [0, x])[1]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(y, {x: VALUES}), expected(expected(VALUES)))


def test_its_errors_are_explained():
    y = gelu(tf.constant([-1000.0]) + tf.random_uniform([1], 0, 0), "culprit")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="refuses") as caught:
        session.run(y)
    assert caught.value.op_name == "culprit" and "test_user_ops" in caught.value.site


def test_a_second_of_the_same_name_is_refused():
    with pytest.raises(ValueError, match="'UserGelu' is registered already"):
        register(GELU)


@pytest.mark.ray
def test_devices_of_a_cluster_learn_of_it(ray_local):
    x = tf.placeholder(tf.float64, [3, 4])
    with tf.device("/job:worker/task:0"):
        y = gelu(x)
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}) as cluster, tf.Session(cluster) as session:
        np.testing.assert_allclose(session.run(y, {x: VALUES}), expected(VALUES))
