"""`tf.keras.estimator.model_to_estimator`."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

X = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
Y = (X[:, 0] > X[:, 1]).astype(np.int64)


def built(**settings):
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(8, activation="relu", input_shape=(3,)),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dropout(0.1),
            tf.keras.layers.Dense(2, activation="softmax", name="classes"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


def test_it_begins_with_the_weights_of_the_model_and_learns(tmp_path):
    tf.set_random_seed(7)
    config = tf.estimator.RunConfig(tf_random_seed=7)
    model = built()
    model.fit(X, Y, epochs=1, verbose=0)
    wanted, (loss, accuracy) = model.predict(X), model.evaluate(X, Y, verbose=0)
    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=str(tmp_path), config=config)
    predicted = np.array([each["classes"] for each in estimator.predict(input_fn)])
    np.testing.assert_allclose(predicted, wanted, rtol=1e-5)
    found = estimator.evaluate(input_fn)
    assert found["loss"] == pytest.approx(loss, rel=1e-4) and found["acc"] == pytest.approx(accuracy)
    estimator.train(lambda: input_fn().repeat(), steps=100)
    learned = estimator.evaluate(input_fn)
    assert learned["loss"] < loss and learned["acc"] > 0.9 and learned["global_step"] == 100
    assert any("moving_mean" in name for name in estimator.get_variable_names())
    estimator.train(lambda: input_fn().repeat(), steps=10)
    assert estimator.get_variable_value("global_step") == 110
    # The model itself is as it was.
    np.testing.assert_allclose(model.predict(X), wanted, rtol=1e-5)


def test_averages_of_batches_are_learned_and_dropout_is_for_training(tmp_path):
    estimator = tf.keras.estimator.model_to_estimator(built(), model_dir=str(tmp_path))
    estimator.train(input_fn, steps=3)
    (name,) = [each for each in estimator.get_variable_names() if each.endswith("moving_mean")]
    assert np.abs(estimator.get_variable_value(name)).max() > 0
    first, second = (np.array([each["classes"] for each in estimator.predict(input_fn)]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_several_inputs_and_outputs_by_name(tmp_path):
    left, right = tf.keras.Input([1], name="left"), tf.keras.Input([2], name="right")
    both = tf.keras.layers.concatenate([left, right])
    total = tf.keras.layers.Dense(1, name="total")(both)
    half = tf.keras.layers.Dense(1, name="half")(both)
    model = tf.keras.Model([left, right], [total, half])
    model.compile(tf.train.AdamOptimizer(0.1), ["mse", "mse"], loss_weights=[1.0, 2.0])

    def data():
        sums = X.sum(1, keepdims=True)
        features = {"left": X[:, :1].astype(np.float64), "right": X[:, 1:]}
        return tf.data.Dataset.from_tensor_slices((features, {"total": sums, "half": sums / 2})).repeat().batch(64)

    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=str(tmp_path)).train(data, steps=200)
    assert estimator.evaluate(data, steps=1)["loss"] < 1e-2
    first = next(estimator.predict(data))
    assert first["total"] == pytest.approx(X[0].sum(), abs=0.2) and set(first) == {"total", "half"}


def test_what_is_refused(tmp_path):
    convert = tf.keras.estimator.model_to_estimator
    for arguments, message in (
        ({}, "needs keras_model"),
        ({"keras_model_path": "a", "keras_model": built()}, "one of the two"),
        ({"keras_model": tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])}, "must be compiled"),
        ({"keras_model": built(), "checkpoint_format": "other"}, "checkpoint_format"),
    ):
        with pytest.raises(ValueError, match=message):
            convert(**arguments)


def test_a_model_from_a_file(tmp_path):
    model = built()
    model.save(str(tmp_path / "model.h5"))
    estimator = tf.keras.estimator.model_to_estimator(keras_model_path=str(tmp_path / "model.h5"))
    (name,) = [tensor.op.name for tensor in model.inputs]
    examples = tf.estimator.inputs.numpy_input_fn({name: X[:4]}, shuffle=False)
    found = [next(iter(each.values())) for each in estimator.predict(examples)]
    np.testing.assert_allclose(found, model.predict(X[:4]), rtol=1e-5)


ROWS = np.random.RandomState(0).rand(64, 2).astype(np.float32)
SUMS = ROWS.sum(1, keepdims=True)


def of_dictionaries():
    """A model of two outputs, whose losses, metrics and weights are given by their names."""
    ones = {"kernel_initializer": "ones"}
    left, right = tf.keras.Input((2,), name="a"), tf.keras.Input((3,), name="b")
    both = tf.keras.layers.Dense(2, name="h", **ones)(tf.keras.layers.concatenate([left, right]))
    number = tf.keras.layers.Dense(1, name="p", **ones)(both)
    kind = tf.keras.layers.Dense(2, activation="softmax", name="q", **ones)(both)
    model = tf.keras.Model([left, right], [number, kind])
    model.compile(
        "adam",
        {"p": "mae", "q": "sparse_categorical_crossentropy"},
        metrics={"q": ["acc"], "p": ["mse"]},
        loss_weights={"p": 0.5, "q": 2.0},
    )
    return model


def two_kinds(weighted=False):
    features = {"a": ROWS, "b": np.tile(ROWS[:, :1], (1, 3))}
    if weighted:
        features = {"features": features, "sample_weights": {"p": ROWS[:, 0], "q": ROWS[:, 1]}}
    labels = {"p": SUMS, "q": (ROWS[:, :1] > 0.5).astype(np.int32)}
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(16).repeat(2)


def test_losses_metrics_and_weights_by_the_names_of_outputs():
    # Names and values are those of TensorFlow 1.15.
    estimator = tf.keras.estimator.model_to_estimator(of_dictionaries()).train(two_kinds)
    of_step = [f"training/Adam/{name}" for name in ("beta_1", "beta_2", "decay", "learning_rate")]
    weights = [f"{layer}/{kind}" for layer in "hpq" for kind in ("bias", "kernel")]
    moments = [f"training/Adam/{weight}/{moment}" for weight in weights for moment in "mv"]
    assert estimator.get_variable_names() == sorted(["global_step", *weights, *of_step, *moments])
    wanted = {"p_mean_squared_error": 19.92628, "q_acc": 0.54688, "loss": 3.36012, "global_step": 8}
    assert estimator.evaluate(two_kinds) == pytest.approx(wanted, rel=1e-5)
    weighed = estimator.evaluate(lambda: two_kinds(weighted=True))
    assert weighed == pytest.approx({**wanted, "loss": 1.96469}, rel=1e-5)
    first = next(estimator.predict(two_kinds))
    np.testing.assert_allclose(first["q"], [0.47722375, 0.52277619], rtol=1e-5)


class Doubled(tf.keras.Model):
    """A model of a derived class: layers in a list, one of them used twice."""

    def __init__(self):
        super().__init__()
        self.steps = [tf.keras.layers.Dense(2, kernel_initializer="ones"), tf.keras.layers.Dense(1)]
        self.last = self.steps[1]

    def call(self, inputs):
        return self.last(self.steps[0](self.steps[0](inputs)))


def test_a_model_of_a_derived_class(tmp_path):
    model = Doubled()
    model.compile(tf.train.GradientDescentOptimizer(0.01), "mse", metrics=[tf.keras.metrics.RootMeanSquaredError()])
    model.fit(ROWS, SUMS, epochs=1, verbose=0)
    wanted, (loss, root) = model.predict(ROWS), model.evaluate(ROWS, SUMS, verbose=0)

    def batches():
        return tf.data.Dataset.from_tensor_slices((ROWS, SUMS)).batch(16)

    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    (name,) = model.output_names
    found = np.array([each[name] for each in estimator.predict(batches)])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    evaluated = estimator.evaluate(batches)
    assert evaluated["loss"] == pytest.approx(loss, rel=1e-5)
    assert evaluated["root_mean_squared_error"] == pytest.approx(root, rel=1e-5)
    assert estimator.train(batches).evaluate(batches)["loss"] < loss
    np.testing.assert_allclose(model.predict(ROWS), wanted, rtol=1e-5)  # as it was


def test_a_model_whose_losses_are_added_needs_no_labels():
    inputs = tf.keras.Input((2,), name="a")
    output = tf.keras.layers.Dense(2, kernel_initializer="ones", name="d")(inputs)
    model = tf.keras.Model(inputs, output)
    model.add_loss(tf.reduce_mean(tf.square(output - inputs)))
    model.compile(tf.keras.optimizers.SGD(0.1))
    estimator = tf.keras.estimator.model_to_estimator(model)

    def rows():
        return tf.data.Dataset.from_tensor_slices({"a": ROWS}).batch(16)

    others = ROWS[:, ::-1]  # the output is the sum of both
    assert estimator.evaluate(rows)["loss"] == pytest.approx(np.mean(others**2), rel=1e-5)
    assert estimator.train(rows).evaluate(rows)["loss"] < np.mean(others**2)


def test_a_model_with_a_loss_needs_labels():
    estimator = tf.keras.estimator.model_to_estimator(built())
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs labels, and the input function gives none"):
        estimator.train(lambda: tf.data.Dataset.from_tensor_slices({"dense_input": X}).batch(4))
