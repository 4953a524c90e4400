"""`optimize_loss`, and what is done with gradients, with values that TensorFlow 1.15 documents in its own tests."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.training.sessions import learning

optimize_loss = tf.contrib.layers.optimize_loss


def after_a_step(**options):
    """The variable 10 with the loss ``|5 * variable|`` after a step, and the global step."""
    variable = tf.get_variable("test", [], initializer=tf.constant_initializer(10))
    loss, step = tf.abs(variable * 5.0), tf.train.create_global_step()
    train = optimize_loss(loss, step, **{"learning_rate": 0.1, "optimizer": "SGD"} | options)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        return session.run([variable, step])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [9.5, 1]),
        ({"increment_global_step": False}, [9.5, 0]),
        ({"learning_rate": None, "optimizer": lambda: tf.train.GradientDescentOptimizer(0.1)}, [9.5, 1]),
        ({"clip_gradients": 0.1}, [9.99, 1]),
        ({"clip_gradients": tf.contrib.layers.adaptive_clipping_fn()}, [9.8916, 1]),
        ({"clip_gradients": tf.contrib.layers.adaptive_clipping_fn(static_max_norm=0.5)}, [9.95, 1]),
        ({"gradient_multipliers": {"test": 7.0}}, [6.5, 1]),
        ({"learning_rate_decay_fn": lambda rate, step: tf.train.exponential_decay(rate, step, 1, 0.5)}, [9.5, 1]),
    ],
)
def test_a_step(options, expected):
    np.testing.assert_allclose(after_a_step(**options), expected, rtol=1e-4)


def test_noise_is_added_to_gradients():
    variable, step = after_a_step(gradient_noise_scale=1.0)
    assert variable != 9.5 and abs(variable - 9.5) <= 0.2 and step == 1, "noise of a truncated normal distribution"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"learning_rate": -0.1}, "Invalid learning_rate"),
        ({"learning_rate": "0.1"}, "0d Tensor or float"),
        ({"learning_rate": [0.1]}, "0d Tensor or float"),
        ({"learning_rate": None, "optimizer": tf.train.AdamOptimizer}, "needs a learning rate"),
        ({"optimizer": lambda rate: rate}, "function should return an Optimizer"),
        ({"clip_gradients": "much"}, "Unknown type str for clip_gradients"),
        ({"summaries": ["loss", "luck"]}, "Summaries should be one of .*luck"),
    ],
)
def test_what_is_refused(options, match):
    with pytest.raises(InvalidArgumentError, match=match):
        after_a_step(**options)


def test_a_decay_needs_a_global_step():
    loss = tf.square(tf.Variable(1.0))
    with pytest.raises(InvalidArgumentError, match="global_step is required"):
        optimize_loss(loss, None, 0.1, "SGD", learning_rate_decay_fn=lambda rate, step: rate)


@pytest.mark.parametrize(
    ("summaries", "clip", "expected"),
    [
        (None, None, ["OptimizeLoss/global_norm/gradient_norm", "OptimizeLoss/loss"]),
        ([], None, []),
        (["gradients"], 1.0, ["OptimizeLoss/gradients/test_0"]),
        (
            ["gradient_norm"],
            1.0,
            [
                "OptimizeLoss/global_norm/clipped_gradient_norm",
                "OptimizeLoss/global_norm/gradient_norm",
                "OptimizeLoss/gradient_norm/test_0",
            ],
        ),
    ],
)
def test_summaries(summaries, clip, expected):
    after_a_step(summaries=summaries, clip_gradients=clip)
    assert sorted(each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)) == expected


def test_unusually_large_gradients_become_usual_ones():
    fed, variable = tf.placeholder(tf.float32, [2]), tf.Variable([0.0, 0.0])
    sparse = tf.IndexedSlices(tf.constant([[0.0]]), tf.constant([0]), tf.constant([3, 1]))
    clip = tf.contrib.layers.adaptive_clipping_fn(decay=0.9)
    (clipped, _), (slices, _), nothing = clip([(fed, variable), (sparse, variable), (None, variable)])
    assert isinstance(slices, tf.IndexedSlices) and nothing[0] is None
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(200):
            usual = session.run(clipped, {fed: [3.0, 4.0]})
        large = session.run(clipped, {fed: [300.0, 400.0]})
    np.testing.assert_allclose(usual, [3.0, 4.0], rtol=0.02)
    assert 5 < np.linalg.norm(large) < 10, "the mean of the logarithms has moved by a tenth towards that of 500"


def test_gradients_are_multiplied_clipped_and_summarized():
    variable, other = tf.Variable([1.0], name="a"), tf.Variable([[1.0], [2.0]], name="b")
    slices = tf.IndexedSlices(tf.constant([[3.0], [4.0]]), tf.constant([0, 1]), tf.constant([2, 1]))
    pairs = [(tf.constant([2.0]), variable), (slices, other), (None, variable)]
    multiplied = learning.multiply_gradients(pairs[:2], {"a": 3.0, other: 2.0})
    clipped = tf.contrib.training.clip_gradient_norms_fn(1.0)(pairs)
    with tf.Session() as session:
        dense, values = session.run([multiplied[0][0], multiplied[1][0].values])
        assert dense.tolist() == [6.0] and values.tolist() == [[6.0], [8.0]]
        found = session.run([clipped[0][0], clipped[1][0].values])
    np.testing.assert_allclose(found[0], [1.0])
    np.testing.assert_allclose(found[1], [[0.6], [0.8]], rtol=1e-6)
    assert clipped[2] == (None, variable)
    names = [each.op.name for each in learning.add_gradients_summaries(pairs)]
    assert names == ["a_gradient", "a_gradient_norm", "b_gradient", "b_gradient_norm"]
    for wrong, factors in (([], {other: 1.0}), (pairs, {}), ([(None, variable)], {variable: 1.0})):
        with pytest.raises(ValueError, match=r"must be|Requested multiple of `None` gradient"):
            learning.multiply_gradients(wrong, factors)


@pytest.mark.parametrize(("options", "expected"), [({}, 1), ({"global_step": None}, 0)])
def test_a_training_step_counts_unless_there_is_nothing_to_count(options, expected):
    loss = tf.square(tf.Variable(1.0, name="v"))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train = tf.contrib.training.create_train_op(
        loss, optimizer, gradient_multipliers={"v": 2.0}, summarize_gradients=True, **options
    )
    step = tf.train.get_or_create_global_step()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run([tf.trainable_variables()[0], step]), [0.6, expected], rtol=1e-6)
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 2
