"""Loss scaling: scales that follow the gradients, and the optimizer that applies them."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

scaling = tf.train.experimental


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_dynamic_scale_follows_the_gradients():
    """The numbers are those of TensorFlow 2.21."""
    scale = scaling.DynamicLossScale(initial_loss_scale=4, increment_period=3, multiplier=2)
    gradient = tf.placeholder(tf.float32, [2])
    update, is_applied = scale.update([gradient, None, (gradient * 2,)])
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for last in (1, 2, np.inf, 1, 1, 1, 1, np.nan, np.nan, np.nan, 1, 1, 1):
            applied, _ = session.run([is_applied, update], {gradient: [1, last]})
            found.append((bool(applied), float(session.run(scale()))))
    good = [(True, scale) for scale in (4.0, 4.0, 2.0, 2.0, 4.0, 4.0, 1.0, 1.0, 2.0)]
    bad = [(False, scale) for scale in (2.0, 2.0, 1.0, 1.0)]
    assert found == [*good[:2], bad[0], *good[2:6], *bad[1:], *good[6:]]
    assert [variable.op.name for variable in tf.global_variables()] == ["current_loss_scale", "good_steps"]
    assert tf.trainable_variables() == []
    assert scale.from_config(scale.get_config()).get_config() == scale.get_config()


def test_a_dynamic_scale_stays_finite():
    scale = scaling.DynamicLossScale(initial_loss_scale=3e38, increment_period=1)
    update, _ = scale.update([tf.constant(1.0)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run(scale()) == np.float32(3e38)


@pytest.mark.parametrize("value", [0.5, 0, -1, "1", None])
def test_fixed_scales_are_numbers_from_one_on(value):
    with pytest.raises(ValueError, match="loss_scale_value"):
        scaling.FixedLossScale(value)


def trained(optimizer, bad_steps=()):
    """Values after five steps, in some of which the loss is NaN."""
    v, rows, unused = tf.Variable([1.0, 2.0]), tf.Variable(tf.ones([3, 2])), tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [])
    loss = (tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(rows, [0, 0]))) * x
    global_step = tf.train.get_or_create_global_step()
    train_op = optimizer().minimize(loss, global_step, var_list=[v, rows, unused])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(5):
            session.run(train_op, {x: np.nan if step in bad_steps else 1.0})
        return session.run([v, rows, global_step])


@pytest.mark.parametrize(
    "inner", [lambda: tf.train.GradientDescentOptimizer(0.1), lambda: tf.train.AdamOptimizer(0.1)], ids=["sgd", "adam"]
)
@pytest.mark.parametrize("scale", [8, "dynamic"])
def test_scaling_changes_no_result(inner, scale):
    with tf.Graph().as_default():
        expected = trained(inner)
    found = trained(lambda: scaling.MixedPrecisionLossScaleOptimizer(inner(), scale))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_steps_with_gradients_that_are_not_finite_change_nothing():
    def optimizer():
        return scaling.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), "dynamic")

    v, rows, global_step = trained(optimizer, bad_steps=(1, 3))
    np.testing.assert_allclose(v, np.array([1.0, 2.0]) * 0.8**3, rtol=1e-5)
    np.testing.assert_allclose(rows, [[0.4, 0.4], [1, 1], [1, 1]], rtol=1e-5)
    assert global_step == 3


def test_small_gradients_survive_half_precision():
    w = tf.Variable([1.0])
    middle = tf.cast(w, tf.float16) * np.float16(1e-4)
    loss = tf.reduce_sum(tf.cast(middle, tf.float32)) * 1e-4
    plain = tf.train.GradientDescentOptimizer(1.0)
    scaled = scaling.MixedPrecisionLossScaleOptimizer(plain, 2.0**15)
    gradients = [each.compute_gradients(loss)[0][0] for each in (plain, scaled)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        vanished, kept = session.run(gradients)
    assert vanished == 0.0 and kept == pytest.approx(1e-8, rel=1e-2)


def test_checkpoints_have_the_scale_and_the_slots(tmp_path):
    def build():
        v = tf.Variable([1.0])
        optimizer = scaling.MixedPrecisionLossScaleOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), "dynamic")
        return optimizer.minimize(tf.reduce_sum(v * v)), tf.train.Checkpoint(optimizer=optimizer, v=v)

    train_op, checkpoint = build()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        path = checkpoint.save(str(tmp_path / "model"), session=session)
    names = {name.split("/.ATTRIBUTES")[0] for name, _ in tf.train.list_variables(path)}
    assert {
        "optimizer/loss_scale/current_loss_scale",
        "optimizer/loss_scale/good_steps",
        "v/.OPTIMIZER_SLOT/optimizer/base_optimizer/momentum",
    } <= names


def test_optimizers_are_made_to_scale():
    made = scaling.enable_mixed_precision_graph_rewrite(tf.train.GradientDescentOptimizer(0.1), 4)
    assert isinstance(made, scaling.MixedPrecisionLossScaleOptimizer)
    with pytest.raises(ValueError, match="already"):
        scaling.enable_mixed_precision_graph_rewrite(made)
    with pytest.raises(ValueError, match="expected a number"):
        scaling.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), "fast")
    with pytest.raises(ValueError, match="Optimizer"):
        scaling.enable_mixed_precision_graph_rewrite(3)
    assert scaling.disable_mixed_precision_graph_rewrite() is None
