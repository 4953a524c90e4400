"""Optimizers that programs derive from those of `tf.keras`, against the same rules written in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
layers = keras.layers
K = keras.backend

GRADIENT = np.array([[1.0, -2.0], [0.5, 4.0]], np.float32)


class Decayed(keras.optimizers.Optimizer):
    """Steps of the sign of a mean of gradients, with a hyperparameter, a slot, and a weight of its own."""

    def __init__(self, learning_rate=0.1, keep=0.5, name="Decayed", **kwargs):
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("keep", keep)

    def _create_slots(self, var_list):
        for var in var_list:
            self.add_slot(var, "mean")
        for var in var_list:
            self.add_slot(var, "count", initializer="ones")

    def _resource_apply_dense(self, grad, var):
        keep, mean = self._get_hyper("keep", var.dtype), self.get_slot(var, "mean")
        new = mean.assign(keep * mean + (1 - keep) * grad)
        count = self.get_slot(var, "count").assign_add(tf.ones_like(grad))
        return var.assign_sub(self._decayed_lr(var.dtype.base_dtype) * tf.sign(new) * count)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._resource_scatter_add(var, indices, -self._decayed_lr(var.dtype.base_dtype) * tf.sign(grad))

    def get_config(self):
        names = ("learning_rate", "decay", "keep")
        return {**super().get_config(), **{name: self._serialize_hyperparameter(name) for name in names}}


def test_a_rule_with_slots_and_hyperparameters():
    optimizer = Decayed(decay=0.5)
    variable = tf.Variable(np.zeros((2, 2), np.float32))
    step = optimizer.apply_gradients([(tf.constant(GRADIENT), variable)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        found, mean = session.run([variable, optimizer.get_slot(variable, "mean")])
    expected = -sum(0.1 / (1 + 0.5 * step) * np.sign(GRADIENT) * (2 + step) for step in range(3))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(mean, GRADIENT * (1 - 0.5**3), rtol=1e-6)


def test_rows_that_are_repeated_are_added_before_they_are_applied():
    optimizer, table = Decayed(), tf.Variable(np.zeros((3, 2), np.float32))
    loss = tf.reduce_sum(tf.gather(table, [2, 0, 2]) * [[1.0, -1.0], [1.0, 1.0], [-3.0, -1.0]])
    step = optimizer.minimize(loss, [table])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        found = session.run(table)
    np.testing.assert_allclose(found, [[-0.1, -0.1], [0, 0], [0.1, 0.1]], rtol=1e-6)


class _WithWeightDecay(keras.optimizers.Adam):
    """Adam whose variables shrink, as programs that train transformers have it."""

    def _prepare_local(self, var_device, var_dtype, apply_state):
        super()._prepare_local(var_device, var_dtype, apply_state)
        apply_state[var_device, var_dtype]["shrink"] = tf.constant(0.1, var_dtype)

    def _resource_apply_dense(self, grad, var, apply_state=None):
        known = apply_state[var.device, var.dtype.base_dtype]
        with tf.control_dependencies([var.assign_sub(known["lr_t"] * known["shrink"] * var)]):
            return super()._resource_apply_dense(grad, var, apply_state=apply_state)


def test_the_update_of_the_optimizer_behind_can_be_called():
    optimizer = _WithWeightDecay(0.01)
    value = mean = square = np.ones((2, 2), np.float32)
    variable, mean, square = tf.Variable(value), 0.0, 0.0
    step = optimizer.apply_gradients([(tf.constant(GRADIENT), variable)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(step)
        found = session.run(variable)
    for count in range(1, 5):
        mean, square = 0.9 * mean + 0.1 * GRADIENT, 0.999 * square + 0.001 * GRADIENT**2
        rate = 0.01 * np.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        value = value * (1 - 0.01 * 0.1) - rate * mean / (np.sqrt(square) + 1e-7)
    np.testing.assert_allclose(found, value, rtol=1e-5)


def test_a_model_trains_by_it_and_its_weights_are_in_the_order_of_slots():
    model = keras.Sequential([layers.Dense(1, input_shape=(2,), kernel_initializer="zeros", name="a")])
    optimizer = Decayed(lr=0.2)
    model.compile(optimizer, "mse")
    model.fit(np.ones((4, 2)), np.ones(4), epochs=1, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], [[0.4], [0.4]], rtol=1e-6)
    assert [weight.name.removeprefix("training/Decayed/") for weight in optimizer.weights] == [
        "iter:0", "a/kernel/mean:0", "a/bias/mean:0", "a/kernel/count:0", "a/bias/count:0",
    ]  # fmt: skip
    again = Decayed.from_config(optimizer.get_config())
    assert again.get_config() == pytest.approx({**optimizer.get_config()})
    assert again.get_config()["learning_rate"] == pytest.approx(0.2)


def test_a_model_trains_by_the_updates_that_an_optimizer_defines():
    class Halved(keras.optimizers.Optimizer):
        def get_updates(self, loss, params):
            return [param.assign(param / 2) for param in params]

    model = keras.Sequential([layers.Dense(1, input_shape=(2,), kernel_initializer="ones")])
    model.compile(Halved("halved"), "mse")
    model.fit(np.ones((4, 2)), np.ones(4), epochs=3, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], [[0.125], [0.125]])


def test_an_optimizer_without_updates_says_which_is_missing():
    variable = tf.Variable([1.0])
    with pytest.raises(NotImplementedError, match="Bare does not define _resource_apply_dense"):
        type("Bare", (keras.optimizers.Optimizer,), {})("bare").apply_gradients([(tf.constant([1.0]), variable)])


def test_further_weights_are_kept_and_set():
    optimizer = Decayed()
    extra = optimizer.add_weight("extra", [2], initializer="ones")
    assert optimizer.weights == [extra]
    keras.backend.get_session().run(tf.global_variables_initializer())
    optimizer.set_weights([np.array([3.0, 4.0])])
    np.testing.assert_array_equal(optimizer.get_weights()[0], [3.0, 4.0])


@pytest.mark.parametrize("kind", ["SGD", "RMSprop", "Adam"])
def test_an_optimizer_may_call_the_methods_of_another(kind):
    """As optimizers around others do, such as those of moving averages."""

    class Around(keras.optimizers.Optimizer):
        def __init__(self, optimizer, name="Around", **kwargs):
            super().__init__(name, **kwargs)
            self._optimizer = optimizer

        def _create_slots(self, var_list):
            self._optimizer._create_slots(var_list)

        def _create_hypers(self):
            self._optimizer._create_hypers()

        def _prepare(self, var_list):
            return self._optimizer._prepare(var_list)

        def _resource_apply_dense(self, grad, var, *args, **kwargs):
            return self._optimizer._resource_apply_dense(2 * grad, var, *args, **kwargs)

    make = getattr(keras.optimizers, kind)
    optimizer = Around(make(0.1))
    for _ in range(2):  # the second time for a graph of its own
        with tf.Graph().as_default(), tf.Session() as session:
            plain, around = (tf.Variable(np.ones((2, 2), np.float32)) for _ in range(2))
            steps = [
                make(0.1).apply_gradients([(tf.constant(2 * GRADIENT), plain)]),
                optimizer.apply_gradients([(tf.constant(GRADIENT), around)]),
            ]
            session.run(tf.global_variables_initializer())
            session.run(steps)
            expected, found = session.run([plain, around])
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert not np.array_equal(found, np.ones((2, 2)))


def test_a_hyperparameter_may_have_another_name_than_its_argument():
    """So it is told by the program alone, as in TensorFlow."""

    class Named(keras.optimizers.Optimizer):
        def __init__(self, share=0.25, name="Named", **kwargs):
            super().__init__(name, **kwargs)
            self._set_hyper("share_of_weights", share)

        def get_config(self):
            return {**super().get_config(), "share": self._serialize_hyperparameter("share_of_weights")}

    again = Named.from_config(Named(0.5).get_config())
    assert again.get_config()["share"] == 0.5 and "share_of_weights" not in again.get_config()
    assert K.get_value(again.share_of_weights) == 0.5
