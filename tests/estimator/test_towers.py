"""`tf.contrib.estimator.replicate_model_fn`: one model on several devices; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tfray as tf

contrib = tf.contrib.estimator
ROWS = np.random.RandomState(0).randn(8, 3).astype(np.float32)
LABELS = (ROWS @ np.float32([[1], [2], [3]])).astype(np.float32)
IDS = np.array([0, 1, 2, 3, 0, 1, 2, 2])


def features():
    return {"x": tf.constant(ROWS), "i": tf.constant(IDS)}


def model_fn(features, labels, mode, params):
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    table = tf.get_variable("t", [4, 1], initializer=tf.zeros_initializer())
    found = tf.matmul(features["x"], w) + tf.nn.embedding_lookup(table, features["i"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {
            "serving_default": tf.estimator.export.PredictOutput({"p": found}),
            "regression": tf.estimator.export.RegressionOutput(found),
            "classes": tf.estimator.export.ClassificationOutput(scores=found),
        }
        return tf.estimator.EstimatorSpec(mode, {"p": found}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, found)
    optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
    if params["wrap"]:
        optimizer = contrib.TowerOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_global_step()) if mode == "train" else None
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, found), "m": tf.metrics.mean(found)}
    return tf.estimator.EstimatorSpec(mode, {"p": found}, loss, train_op, metrics)


def estimator(folder, wrap=True, **settings):
    return tf.estimator.Estimator(contrib.replicate_model_fn(model_fn, **settings), str(folder), params={"wrap": wrap})


MEANS = {
    "w": [1.1058, 1.2471, 2.038],
    "t": [0.4619, 0.3382, -0.5235, 0.3084],
    "w/Momentum": [-9.3789, -10.7962, -17.931],
    "t/Momentum": [-3.935, -2.8771, 4.5935, -2.6997],
    "global_step": [3],
}


@pytest.mark.parametrize(
    ("settings", "variables", "metrics"),
    [
        ({}, MEANS, {"loss": 1.1263, "m": 1.2406, "mae": 0.7058}),
        ({"devices": ["/cpu:0"] * 2}, MEANS, {"loss": 1.1263, "m": 1.2406, "mae": 0.7058}),
        (
            {"devices": ["/cpu:0"] * 4, "loss_reduction": tf.losses.Reduction.SUM},
            {"w": [2.2589, 2.8873, 5.1061], "t": [0.9572, 0.7082, -1.2798, 0.7521], "global_step": [3]},
            {"loss": 62.4252, "m": 2.4427, "mae": 3.3588},
        ),
    ],
)
def test_devices_train_together(tmp_path, settings, variables, metrics):
    replicated = estimator(tmp_path, **settings)
    replicated.train(lambda: (features(), tf.constant(LABELS)), steps=3)
    for name, values in variables.items():
        assert replicated.get_variable_value(name).ravel().tolist() == pytest.approx(values, abs=1e-3)
    found = replicated.evaluate(lambda: (features(), tf.constant(LABELS)), steps=2)
    assert {name: found[name] for name in metrics} == pytest.approx(metrics, abs=1e-3)

    predictions = replicated.predict(lambda: tf.data.Dataset.from_tensors(features()))
    weights = replicated.get_variable_value("w"), replicated.get_variable_value("t")
    expected = ROWS @ weights[0] + weights[1][IDS]
    assert [each["p"] for each in itertools.islice(predictions, 8)] == [
        pytest.approx(row, abs=1e-4) for row in expected
    ]


def test_outputs_are_joined():
    spec = contrib.replicate_model_fn(model_fn, devices=["/cpu:0"] * 2)(features(), None, "infer", {"wrap": True})
    assert set(spec.export_outputs) == {"serving_default", "regression", "classes"}
    assert spec.predictions["p"].shape.as_list() == spec.export_outputs["regression"].value.shape.as_list() == [8, 1]
    assert spec.export_outputs["classes"].classes is None
    assert [v.op.name for v in tf.global_variables()] == ["w", "t"]
    assert any(op.name.startswith("tower_1/") for op in tf.get_default_graph().get_operations())


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="need to be reduced"):
        contrib.replicate_model_fn(model_fn, tf.losses.Reduction.NONE)

    def data():
        return features(), tf.constant(LABELS)

    with pytest.raises(ValueError, match="wrap optimizers with TowerOptimizer"):
        estimator(tmp_path / "a", wrap=False, devices=["/cpu:0"] * 2).train(data, steps=1)
    with pytest.raises(ValueError, match=r"Batch size 8 needs to be divisible .* 3"):
        estimator(tmp_path / "b", devices=["/cpu:0"] * 3).train(data, steps=1)

    calls = itertools.count()

    def unequal(features, labels, mode):
        w = tf.get_variable("w", [1])
        optimizer = contrib.TowerOptimizer(lambda: tf.train.GradientDescentOptimizer(0.1))
        trained = tf.no_op() if next(calls) else optimizer.minimize(w[0])
        return tf.estimator.EstimatorSpec(mode, loss=w[0], train_op=trained)

    with pytest.raises(ValueError, match="same optimizer calls"):
        contrib.replicate_model_fn(unequal, devices=["/cpu:0"] * 2)({"x": tf.ones([2])}, None, "train")
