"""Reversible layers: what they compute, undo, and pass back."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

X = np.random.default_rng(0).uniform(-1, 1, [5, 6])


def dense(x, **kwargs):
    return tf.layers.dense(x, 3, **kwargs)


def test_backward_undoes_forward():
    parts = tf.split(tf.constant(X), 2, axis=-1)
    block = tf.contrib.layers.RevBlock(dense, dense, num_layers=3)
    there = block.forward(*parts)
    again = block.forward(*block.backward(*parts))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for found in session.run([block.backward(*there), again]):
            np.testing.assert_allclose(np.concatenate(found, 1), X, atol=1e-12)
    assert len(block.trainable_weights) == len(tf.trainable_variables()) == 12
    assert tf.trainable_variables()[0].op.name == "revblock/revlayer_0/f/dense/kernel"


@pytest.mark.parametrize(
    ("f", "side"),
    [
        (dense, ()),
        (lambda x, sides: dense(x, activation=tf.tanh) * sides[0], (np.arange(15.0).reshape(5, 3),)),
        ([dense, lambda x: dense(x, activation=tf.nn.relu), dense], ()),
    ],
)
def test_gradients_are_those_of_the_plain_layers(f, side):
    x, sides = tf.constant(X), [tf.constant(each) for each in side]
    parts = tf.split(x, 2, axis=-1)
    g = lambda value: dense(value, activation=tf.tanh)  # noqa: E731
    with tf.variable_scope("block") as scope:
        first = tf.contrib.layers.rev_block(*parts, f, g, num_layers=3, f_side_input=sides)
        variables = scope.trainable_variables()
    with tf.variable_scope(scope, reuse=True):
        plain = tf.contrib.layers.rev_block(*parts, f, g, num_layers=3, f_side_input=sides, is_training=False)
    assert tf.trainable_variables() == variables
    sources = [x, *sides, *variables]
    losses = [tf.reduce_sum(tf.square(tf.concat(found, 1))) for found in (first, plain)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values, (found, expected) = session.run([losses, [tf.gradients(loss, sources) for loss in losses]])
    assert values[0] == pytest.approx(values[1])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_there_is_a_function_for_each_layer():
    with pytest.raises(InvalidArgumentError, match="2 layers, and 1 functions f"):
        tf.contrib.layers.RevBlock([dense], dense, num_layers=2)
