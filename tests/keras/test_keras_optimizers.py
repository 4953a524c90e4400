"""Optimizers of `tf.keras`: their steps against TensorFlow's, and what programs ask them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.cases import keras_optimizer_cases

keras = tf.keras
K = keras.backend
optimizers = keras.optimizers
RECORDED = json.loads((GOLDEN / "keras_optimizers.json").read_text())["cases"]


@pytest.mark.parametrize("name", keras_optimizer_cases.CASES)
def test_steps(name):
    found, expected = keras_optimizer_cases.run(tf, optimizers, name), RECORDED[name]
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)
    assert found[2] == 5


def small_model(optimizer):
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile(optimizer, "mse")
    return model


X, Y = np.ones([4, 2], np.float32), np.ones([4, 1], np.float32)


def test_the_learning_rate_is_a_variable():
    optimizer = optimizers.SGD(lr=0.5, decay=1.0)
    model = small_model(optimizer)
    assert K.get_value(optimizer.lr) == K.get_value(optimizer.learning_rate) == 0.5
    K.set_value(optimizer.lr, 0.25)
    optimizer.lr = 0.125
    assert optimizer.get_config()["learning_rate"] == 0.125
    before = model.get_weights()[1]
    loss = model.train_on_batch(X, Y)
    assert K.get_value(optimizer.iterations) == 1
    error = model.predict(X)[0, 0] - 1
    K.set_value(optimizer.lr, 0.0)
    model.train_on_batch(X, Y)
    assert np.isfinite(loss) and model.get_weights()[1] != before
    np.testing.assert_allclose(model.predict(X)[0, 0] - 1, error, rtol=1e-5)


def test_weights_are_the_steps_and_slots():
    optimizer = optimizers.Adam()
    model = small_model(optimizer)
    assert optimizer.weights == []
    model.train_on_batch(X, Y)
    assert [weight.shape.as_list() for weight in optimizer.weights] == [[], [2, 1], [1], [2, 1], [1]]
    assert optimizer.get_slot_names() == ["m", "v"]
    kernel = model.trainable_weights[0]
    assert optimizer.get_slot(kernel, "m") is optimizer.weights[1]
    values = [np.full(weight.shape.as_list(), 2) for weight in optimizer.weights]
    optimizer.set_weights(values)
    for value in optimizer.get_weights():
        assert (value == 2).all()
    with pytest.raises(ValueError, match="but the optimizer was expecting 5 weights"):
        optimizer.set_weights(values[1:])


def test_gradients_are_clipped_and_must_be_there():
    x = tf.Variable([3.0, 4.0])
    found = optimizers.SGD(clipnorm=1.0).get_gradients(tf.reduce_sum(tf.square(x)), [x])[0]
    np.testing.assert_allclose(K.get_value(found), [0.6, 0.8], rtol=1e-5)
    with pytest.raises(ValueError, match="has `None` for gradient"):
        optimizers.SGD().get_gradients(tf.reduce_sum(x), [x, tf.Variable(1.0)])
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizers.SGD().minimize(tf.reduce_sum(x), [tf.Variable(1.0)])


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (lambda: optimizers.Adam(rate=1.0), TypeError, "Unexpected keyword argument passed to optimizer: rate"),
        (lambda: optimizers.Adam(decay=-1.0), ValueError, "Expected decay >= 0, received: -1"),
        (lambda: optimizers.SGD(momentum=2.0), ValueError, "`momentum` must be between"),
        (lambda: optimizers.Adagrad(initial_accumulator_value=-1.0), ValueError, "must be non-negative"),
        (lambda: optimizers.get("magic"), ValueError, "Unknown optimizer: magic; there are"),
        (lambda: optimizers.get(3), ValueError, "Could not interpret optimizer identifier: 3"),
        (
            lambda: optimizers.Nadam(optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)),
            ValueError,
            "does not support",
        ),
        (lambda: optimizers.schedules.PiecewiseConstantDecay([1], [0.1]), ValueError, "should be 1 less"),
    ],
)
def test_what_optimizers_refuse(build, kind, words):
    with pytest.raises(kind, match=words):
        build()


@pytest.mark.parametrize("name", keras_optimizer_cases.CASES)
def test_descriptions_of_optimizers(name):
    made = keras_optimizer_cases.CASES[name](optimizers)
    again = optimizers.deserialize(json.loads(json.dumps(optimizers.serialize(made))))
    assert optimizers.serialize(again) == optimizers.serialize(made)


def test_an_optimizer_of_another_graph_begins_anew():
    optimizer = optimizers.Adam(0.125)
    for _ in range(2):
        model = small_model(optimizer)
        model.fit(X, Y, verbose=0)
        assert K.get_value(optimizer.iterations) == 1
        K.clear_session()


@pytest.mark.parametrize(
    ("name", "arguments", "function"),
    [
        ("CosineDecay", (0.5, 4), tf.train.cosine_decay),
        ("CosineDecayRestarts", (0.5, 2), tf.train.cosine_decay_restarts),
        ("LinearCosineDecay", (0.5, 4), tf.train.linear_cosine_decay),
    ],
)
def test_further_learning_rates(name, arguments, function):
    kind = getattr(keras.experimental, name)
    rates = [kind(*arguments), kind(arguments[0], first_decay_steps=2) if name.endswith("s") else kind(*arguments)]
    rates.append(optimizers.schedules.deserialize(optimizers.schedules.serialize(rates[0])))
    expected = K.get_value(function(arguments[0], 3, arguments[1]))
    for rate in rates:
        np.testing.assert_allclose(K.get_value(rate(3)), expected, rtol=1e-6)


def test_arguments_of_learning_rates_given_by_name_behind_others():
    rate = keras.experimental.CosineDecayRestarts(1.0, 1000, m_mul=0.9)
    found = [K.get_value(rate(step)) for step in (250, 1000, 1250, 3500)]
    np.testing.assert_allclose(found, [0.8535534, 0.9, 0.8657458, 0.77917117], rtol=1e-6)  # TensorFlow 1.15's


@pytest.mark.parametrize("name", ["CosineDecayRestarts", "ExponentialDecay"])
def test_configurations_tell_schedules_as_plain_data(name, tmp_path):
    given = {"ExponentialDecay": [0.1, 3, 0.96], "CosineDecayRestarts": [1.0, 10]}[name]
    kind = getattr(optimizers.schedules, name, None) or getattr(keras.experimental, name)
    optimizer = optimizers.SGD(kind(*given))
    told = optimizer.get_config()["learning_rate"]
    assert told["class_name"] == name and told["config"] == kind(*given).get_config()
    assert type(optimizers.SGD.from_config(optimizer.get_config()).learning_rate) is kind
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile(optimizer, "mse")
    model.save(tmp_path / "model.h5")
    again = keras.models.load_model(tmp_path / "model.h5").optimizer
    assert again.get_config() == optimizer.get_config()


def test_configurations_are_tensorflows():
    """The sums of ``"adagrad"`` begin with 0, those of `Adagrad()` with 0.1, and Nadam's other decay is its decay."""
    optimizers = tf.keras.optimizers
    assert optimizers.get("adagrad").get_config()["initial_accumulator_value"] == 0
    assert optimizers.Adagrad().get_config()["initial_accumulator_value"] == 0.1
    assert optimizers.SGD(decay=0.5).get_config()["decay"] == 0.5 and optimizers.Adam().get_config()["decay"] == 0
    nadam = optimizers.Nadam(schedule_decay=0.01).get_config()
    assert nadam["decay"] == 0.01 and optimizers.Nadam(decay=0.3).get_config()["decay"] == 0.004
    assert optimizers.SGD().iterations.name == "iter:0"


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([np.zeros((3, 2))], "weight list of length 1, but the layer was expecting 2 weights"),
        (
            [np.zeros((3, 2)), np.zeros(3)],
            r"Layer weight shape \(2,\) not compatible with provided weight shape \(3,\)",
        ),
    ],
)
def test_arrays_that_do_not_fit_weights(weights, words):
    layer = tf.keras.layers.Dense(2, input_shape=(3,))
    model = tf.keras.Sequential([layer])
    before = model.get_weights()
    with pytest.raises(ValueError, match=words):
        model.set_weights(weights)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


@pytest.mark.parametrize(
    ("optimizer", "slots"),
    [
        (optimizers.SGD(0.1, momentum=0.9), ["kernel/momentum", "bias/momentum"]),
        (optimizers.RMSprop(centered=True), ["kernel/rms", "bias/rms", "kernel/mg", "bias/mg"]),
        (
            optimizers.Adadelta(),
            ["kernel/accum_grad", "bias/accum_grad", "kernel/accum_var", "bias/accum_var"],
        ),
        (optimizers.Nadam(), ["momentum_cache", "kernel/m", "bias/m", "kernel/v", "bias/v"]),
        (optimizers.Ftrl(), ["kernel/accumulator", "kernel/linear", "bias/accumulator", "bias/linear"]),
        (optimizers.Adam(name="mine"), ["kernel/m", "bias/m", "kernel/v", "bias/v"]),
    ],
    ids=lambda value: getattr(value, "_name", ""),
)
def test_variables_of_an_optimizer_have_tensorflows_names_and_order(optimizer, slots):
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,), name="a")])
    model.compile(optimizer, "mse")
    model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)
    scope = f"training/{optimizer._name}"
    named = [slot if slot == "momentum_cache" else f"a/{slot}" for slot in slots]
    assert [weight.op.name for weight in optimizer.weights] == [f"{scope}/iter", *(f"{scope}/{name}" for name in named)]


def test_variables_of_an_optimizer_of_tf_train_keep_their_names():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,), name="a")])
    model.compile(tf.train.AdamOptimizer(), "mse")
    model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)
    assert sorted(variable.op.name for variable in tf.global_variables()) == [
        "TFOptimizer/iterations", "a/bias", "a/bias/Adam", "a/bias/Adam_1", "a/kernel", "a/kernel/Adam",
        "a/kernel/Adam_1", "training/beta1_power", "training/beta2_power",
    ]  # fmt: skip


def test_two_optimizers_beside_each_other_have_scopes_of_their_own():
    value = tf.Variable([1.0], name="value")
    first, second = optimizers.Adagrad(), optimizers.Adagrad()
    with tf.variable_scope("outer"):
        for each in (first, second):
            each.minimize(lambda: tf.reduce_sum(value**2), [value])
    assert [each.weights[1].op.name for each in (first, second)] == [
        "outer/Adagrad/value/accumulator", "outer/Adagrad_1/value/accumulator",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("optimizer", "names"),
    [
        (optimizers.SGD(0.1, momentum=0.9), ["learning_rate", "decay", "momentum"]),
        (optimizers.RMSprop(0.1), ["learning_rate", "decay", "momentum", "rho"]),
        (optimizers.Adadelta(0.1), ["learning_rate", "decay", "rho"]),
        (optimizers.Adam(0.1), ["learning_rate", "decay", "beta_1", "beta_2"]),
        (
            optimizers.Ftrl(0.1),
            ["learning_rate", "decay", "learning_rate_power", "l1_regularization_strength"],
        ),
    ],
    ids=lambda value: getattr(value, "_name", ""),
)
def test_hyperparameters_are_variables(optimizer, names):
    """As in TensorFlow 1.15: what a program sets in one of the three ways is what later steps and descriptions take."""
    value = tf.Variable([1.0], name="value")
    step = optimizer.minimize(lambda: tf.reduce_sum(value**2), [value])
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    assert {f"{optimizer._name}/{name}" for name in names} <= variables.keys()
    session = K.get_session()
    given = optimizer.get_config()
    session.run(step)
    first = session.run(value)
    K.set_value(optimizer.learning_rate, 1e-9)
    session.run(step)
    if optimizer._name not in ("SGD", "Ftrl"):  # which move on by what they have summed up
        np.testing.assert_allclose(session.run(value), first, rtol=1e-6)
    for place, name in enumerate(names):
        setattr(optimizer, name, -1.0 - place)
        assert K.get_value(getattr(optimizer, name)) == -1.0 - place
    assert optimizer.get_config() == given | {name: -1.0 - place for place, name in enumerate(names)}
    assert optimizer.lr is optimizer.learning_rate


def test_a_decay_that_is_set_counts_in_the_next_step():
    value = tf.Variable([0.0], name="value")
    optimizer = optimizers.Adam(0.1, beta_1=0.0, beta_2=0.0, epsilon=1e-9)
    step = optimizer.minimize(lambda: tf.reduce_sum(value * 3.0), [value])
    session = K.get_session()
    session.run(step)
    optimizer.beta_1 = 1.0 - 1e-6  # of which the mean then hardly changes any more
    before = K.get_value(value)
    np.testing.assert_allclose(before, [-0.1], rtol=1e-6)
    session.run(step)
    mean = 3.0 * (1 - 1e-6) + 3.0 * 1e-6
    np.testing.assert_allclose(K.get_value(value), before - 0.1 * mean / 2e-6 / 3.0, rtol=0.1)


def test_what_is_no_hyperparameter_is_no_attribute():
    with pytest.raises(AttributeError, match="Adam has no attribute 'rho'"):
        _ = optimizers.Adam().rho
