"""Moving averages of variables and tensors."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.library.variables.moving_average import assign_moving_average, weighted_moving_average


def test_averages_follow_their_variables():
    first, second = tf.Variable([1.0, 2.0], name="a"), tf.Variable(4.0, name="b")
    ema = tf.train.ExponentialMovingAverage(0.75)
    update = ema.apply([first, second])
    change = tf.group(first.assign([3.0, 0.0]), second.assign_add(4.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(ema.average(first)).tolist() == [1.0, 2.0]  # the initial value
        session.run(change)
        session.run(update)
        np.testing.assert_allclose(session.run(ema.average(first)), [1.5, 1.5])
        session.run(update)
        np.testing.assert_allclose(session.run([ema.average(first)])[0], [1.875, 1.125])
        np.testing.assert_allclose(session.run(ema.average(second)), 8 - 4 * 0.75**2)


def test_after_a_training_step():
    var = tf.Variable([1.0], name="w")
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(var))
    ema = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([train_op]):
        train_op = ema.apply()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        # The value after the update counts.
        assert session.run([var, ema.average(var)])[1].tolist() == [0.75]


def test_names():
    var, other, plain = tf.Variable([1.0], name="layer/w"), tf.Variable([1.0], name="v"), tf.Variable(1, name="step")
    fixed = tf.Variable(2.0, trainable=False, name="fixed")
    ema = tf.train.ExponentialMovingAverage(0.5)
    assert ema.average(var) is None
    assert ema.average_name(other) == "v/ExponentialMovingAverage"
    ema.apply([var])
    assert ema.average(var).op.name == ema.average_name(var) == "layer/w/ExponentialMovingAverage"
    assert tf.moving_average_variables() == [var]
    assert ema.average(var) not in tf.trainable_variables()
    assert ema.average(var) in tf.global_variables()
    restore = ema.variables_to_restore([var, other])
    assert restore["layer/w/ExponentialMovingAverage"] is var
    assert restore["v/ExponentialMovingAverage"] is other
    assert restore["step"] is plain and restore["fixed"] is fixed
    assert "layer/w" not in restore
    assert "fixed" in ema.variables_to_restore()
    named = tf.train.ExponentialMovingAverage(0.5, name="Shadow")
    named.apply([var])
    assert named.average(var).op.name == "layer/w/Shadow"
    assert (named.name, ema.name) == ("Shadow", "ExponentialMovingAverage")


def test_early_averages_move_faster_with_a_count():
    var, step = tf.Variable(0.0), tf.train.create_global_step()
    ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
    update = ema.apply([var])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(var.assign(1.0))
        session.run(update)
        np.testing.assert_allclose(session.run(ema.average(var)), 0.9, rtol=1e-6)  # the decay is 1 / 10
        session.run(step.assign(10**6))
        session.run(update)
        np.testing.assert_allclose(session.run(ema.average(var)), 0.91, rtol=1e-6)


@pytest.mark.parametrize("debias", [False, True])
def test_averages_of_tensors_start_at_zero(debias):
    value = tf.placeholder(tf.float32, [2])
    doubled = tf.multiply(value, 2.0, name="doubled")
    ema = tf.train.ExponentialMovingAverage(0.75, zero_debias=debias)
    update = ema.apply([doubled])
    expected, weight = np.zeros(2), 0.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for t in range(4):
            session.run(update, {value: [t, 1.0]})
            expected = 0.75 * expected + 0.25 * np.array([2 * t, 2])
            weight = 0.75 * weight + 0.25
            corrected = expected / weight if debias else expected
            np.testing.assert_allclose(session.run(ema.average(doubled)), corrected, rtol=1e-5)
    assert ema.average(doubled).op.name == "doubled/ExponentialMovingAverage"
    assert tf.moving_average_variables() == []


def test_averages_of_tensors_are_where_they_are_made():
    with tf.device("/job:first"):
        variable = tf.Variable(1.0)
    tensor = variable + 1.0
    ema = tf.train.ExponentialMovingAverage(0.5)
    with tf.device("/job:second"):
        ema.apply([variable, tensor])
    assert [ema.average(each).device for each in (variable, tensor)] == ["/job:first", "/job:second"]


def test_a_variable_may_follow_several_values():
    variable = tf.Variable([0.0, 0.0], name="v")
    first, second = (assign_moving_average(variable, [value, 2.0], 0.25) for value in (1.0, 5.0))
    names = {"v", "v/biased", "v/local_step", "v/biased_1", "v/local_step_1"}
    assert {each.op.name for each in tf.global_variables()} == names
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for update, expected in ((first, 1.0), (second, 5.0)):
            np.testing.assert_allclose(session.run(update), [expected, 2.0])


def test_half_precision():
    var = tf.Variable(np.float16(1.0))
    ema = tf.train.ExponentialMovingAverage(0.5)
    update = ema.apply([var])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(var.assign(np.float16(3.0)))
        session.run(update)
        assert session.run(ema.average(var)) == 2.0


def test_what_has_no_average():
    ema = tf.train.ExponentialMovingAverage(0.5)
    with pytest.raises(TypeError, match="must be half, float, or double: Variable:0 is int32"):
        ema.apply([tf.Variable(1)])
    with pytest.raises(InvalidArgumentError, match="known"):
        ema.apply([tf.placeholder(tf.float32, [None])])


def test_averages_of_weighted_values():
    value, weight = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
    average = weighted_moving_average(value, 0.9, weight)
    names = [v.op.name for v in tf.global_variables()]
    assert names == ["WeightedMovingAvg/value_x_weight", "WeightedMovingAvg/weight"]
    assert tf.trainable_variables() == []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(average, {value: [1, 2], weight: 1}).tolist() == [1, 2]
        later = session.run(average, {value: [3, 4], weight: 3})  # 0.9 * 0.1 + 0.1 * 9 of 0.9 * 0.1 + 0.1 * 3
        np.testing.assert_allclose(later, [0.99 / 0.39, 1.38 / 0.39], 1e-6)
