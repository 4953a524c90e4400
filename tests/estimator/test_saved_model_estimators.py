"""`tf.contrib.estimator.SavedModelEstimator`: estimators whose models are saved ones."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

estimators = tf.contrib.estimator
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(8, 1)


def features():
    return {"a": tf.constant(X)}


def data():
    return features(), tf.constant((X > 0).astype(np.int64))


def serving():
    given = {"a": tf.placeholder(tf.float32, [None, 1])}
    return tf.estimator.export.ServingInputReceiver(given, given)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features["a"], 2, name="dense")
    probabilities = tf.nn.softmax(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"probabilities": probabilities, "logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    step = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, {"logits": logits}, loss, step, {"accuracy": accuracy})


@pytest.fixture
def trained(tmp_path):
    """An estimator, and the folder of its graphs for all modes."""
    made = tf.estimator.Estimator(model_fn, str(tmp_path / "first"))
    made.train(data, steps=5)
    receive = estimators.build_raw_supervised_input_receiver_fn(
        {"a": tf.placeholder(tf.float32, [None, 1], "a")}, tf.placeholder(tf.int64, [None, 1], "label")
    )
    receivers = {"train": receive, "eval": receive, "infer": serving}
    return made, estimators.export_all_saved_models(made, str(tmp_path / "out"), receivers).decode()


def test_all_modes(trained, tmp_path):
    made, folder = trained
    again = estimators.SavedModelEstimator(folder, str(tmp_path / "second"))
    expected = made.evaluate(data, steps=1)
    found = again.evaluate(data, steps=1)
    assert found["loss"] == pytest.approx(expected["loss"]) and found["global_step"] == 5
    assert found["metrics/accuracy"] == pytest.approx(expected["accuracy"])
    again.train(data, steps=3)
    made.train(data, steps=3)
    assert again.evaluate(data, steps=1)["global_step"] == 8
    name = "dense/kernel"
    assert again.get_variable_value(name) == pytest.approx(made.get_variable_value(name))
    assert next(again.predict(features))["probabilities"] == pytest.approx(
        next(made.predict(features))["probabilities"]
    )


def test_a_model_for_serving_predicts(trained, tmp_path):
    made, _ = trained
    folder = made.export_saved_model(str(tmp_path / "serving"), serving).decode()
    again = estimators.SavedModelEstimator(folder)
    predictions = again.predict(features)
    first = next(predictions)
    assert set(first) == {"logits", "probabilities"}
    with pytest.raises(RuntimeError, match="train mode is not available"):
        again.train(data, steps=1)


def test_inputs_that_do_not_fit(trained):
    _, folder = trained
    again = estimators.SavedModelEstimator(folder)
    for wrong, words in (({"b": tf.constant}, 'Key "a" not found'), ({"a": tf.to_double}, "Tensor shape and/or dtype")):
        ((name, change),) = wrong.items()
        with pytest.raises(ValueError, match=words):
            next(again.predict(lambda name=name, change=change: {name: change(X)}))


def test_there_must_be_a_model(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        estimators.SavedModelEstimator(str(tmp_path))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: tf.constant(X[0]), r"Expected shape: \(\?, 1\), Got: \(1,\)"),
        (lambda: tf.to_double(X), "Expected dtype: <dtype: 'float32'>, Got: <dtype: 'float64'>"),
    ],
)
def test_shapes_and_dtypes_that_do_not_fit_are_told(trained, wrong, words):
    again = estimators.SavedModelEstimator(trained[1])
    with pytest.raises(ValueError, match=words):
        next(again.predict(lambda: {"a": wrong()}))


def constants(features, labels, mode):
    """A model whose results are constants, named as those of `tf.constant` in input functions are."""
    weight = tf.get_variable("weight", [], tf.int32, tf.constant_initializer(21))
    loss, number = tf.constant(105), tf.constant([501 + (mode == "eval")])
    step = tf.group(tf.assign_add(tf.train.get_global_step(), 1), tf.assign_add(weight, 3))
    error = tf.metrics.mean_absolute_error(tf.constant(0), number)
    return tf.estimator.EstimatorSpec(mode, number, loss, step, {"error": error})


def test_names_that_input_functions_have_taken(tmp_path):
    def receivers():
        receive = estimators.build_raw_supervised_input_receiver_fn(
            {"a": tf.placeholder(tf.float32, [8, 1], "a")}, tf.placeholder(tf.int64, [8, 1], "label")
        )
        return {"train": receive, "eval": receive, "infer": serving}

    made = tf.estimator.Estimator(constants, str(tmp_path / "first"))
    made.train(data, steps=10)
    folder = estimators.export_all_saved_models(made, str(tmp_path / "out"), receivers()).decode()
    for number in range(2):  # the second is the export of an estimator that a saved model has made
        again = estimators.SavedModelEstimator(folder, str(tmp_path / f"again{number}"))
        steps = 10 + 3 * number
        assert again.evaluate(data, steps=1) == {"loss": 105, "metrics/error": 502, "global_step": steps}
        assert next(again.predict(features)) == {"output": 501}
        again.train(data, steps=3)
        assert again.get_variable_value("weight") == 21 + 3 * (steps + 3)
        folder = estimators.export_all_saved_models(again, str(tmp_path / f"out{number}"), receivers()).decode()
