"""Estimators of random forests, and their metrics: ``tf.contrib.tensor_forest.client``."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

client = tf.contrib.tensor_forest.client
ForestHParams = tf.contrib.tensor_forest.python.tensor_forest.ForestHParams
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(1000, 4)).astype(np.float32)
CLASSES = (X[:, 0] > 0) + (X[:, 1] > 0).astype(np.int64)


def params(**more):
    given = {"num_features": 4, "num_trees": 5, "max_nodes": 100, "split_after_samples": 20, "base_random_seed": 1}
    return ForestHParams(**given | more)


def input_fn(y, epochs=20, **more):
    return tf.estimator.inputs.numpy_input_fn({"x": X, **more}, y, 100, epochs, shuffle=False)


def test_classes(tmp_path):
    model = client.random_forest.TensorForestEstimator(
        params(num_classes=3), model_dir=str(tmp_path), keys_name="key", report_feature_importances=True
    )
    keys = np.arange(1000)
    assert model.fit(input_fn(CLASSES, key=keys), steps=150) is model
    results = model.evaluate(input_fn(CLASSES, 1, key=keys))
    assert results["accuracy"] > 0.85 and results["global_step"] == 150
    found = list(model.predict(input_fn(None, 1, key=keys)))
    assert [each["key"] for each in found] == keys.tolist()
    assert np.mean([each["classes"] for each in found] == CLASSES) == pytest.approx(results["accuracy"])
    probabilities = np.array([each["probabilities"] for each in found])
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert len({name for name in found[0] if "variance" in name or "paths" in name}) == 0


def test_two_classes_with_weights_and_feature_columns(tmp_path):
    model = client.random_forest.CoreTensorForestEstimator(
        params(num_classes=2, inference_tree_paths=True),
        model_dir=str(tmp_path),
        feature_columns=[tf.feature_column.numeric_column("x", [4])],
        weight_column="weight",
    )
    weight = np.where(X[:, 0] > 0, 1, 0.5).astype(np.float32)[:, None]
    labels = (X[:, 0] > 0).astype(np.int64)
    model.train(input_fn(labels, weight=weight), steps=100)
    assert model.evaluate(input_fn(labels, 1, weight=weight))["auc"] > 0.95
    first = next(model.predict(input_fn(None, 1, weight=weight)))
    assert first["tree_paths"].shape == (5,) and first["probabilities"].shape == (2,)
    assert first["probabilities"].argmax() == labels[0]


def test_values(tmp_path):
    values = (2 * X[:, :1] - X[:, 1:2]).astype(np.float32)
    model = client.random_forest.TensorForestEstimator(
        params(num_classes=1, regression=True, max_nodes=300), model_dir=str(tmp_path)
    )
    model.fit(input_fn(values), steps=100)
    assert model.evaluate(input_fn(values, 1))["average_loss"] < 0.2 * values.var()
    first = next(model.predict(input_fn(None, 1)))
    assert first["scores"] == first["predictions"] and first["prediction_variance"].shape == (1,)


def test_an_exported_forest_has_its_trees(tmp_path):
    model = client.random_forest.CoreTensorForestEstimator(params(num_classes=3), model_dir=str(tmp_path))
    model.train(input_fn(CLASSES), steps=50)
    expected = [each["probabilities"] for each in model.predict(input_fn(None, 1))][:9]
    with tf.Graph().as_default():
        receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": X[:1]})
        folder = model.export_saved_model(str(tmp_path / "export"), receiver).decode()
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["predict"]
        found = session.run(signature.outputs["probabilities"].name, {signature.inputs["x"].name: X[:9]})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.argmax(1).tolist() == CLASSES[:9].tolist()


def test_training_stops_when_the_loss_no_longer_falls(tmp_path):
    model = client.random_forest.TensorForestEstimator(
        params(num_classes=3, max_nodes=1), model_dir=str(tmp_path), early_stopping_rounds=5
    )
    model.fit(input_fn(CLASSES, None), max_steps=1000)
    assert int(model.get_variable_value("global_step")) < 40


def test_features_may_be_engineered(tmp_path):
    model = client.random_forest.TensorForestEstimator(
        params(num_classes=2, num_features=1),
        model_dir=str(tmp_path),
        feature_engineering_fn=lambda features, labels: ({"x": features["x"][:, :1]}, labels),
    )
    model.fit(input_fn((X[:, 0] > 0).astype(np.int64)), steps=50)
    assert model.evaluate(input_fn((X[:, 0] > 0).astype(np.int64), 1))["accuracy"] > 0.9


PROBABILITIES = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]], np.float32)
TARGETS = np.array([1, 0, 0])
HOT = np.eye(3)[TARGETS]


@pytest.mark.parametrize(
    ("name", "key", "given", "targets", "expected"),
    [
        ("accuracy", "classes", [1, 0, 2], TARGETS, 2 / 3),
        ("precision", "classes", [1, 1, 0], [1, 0, 1], 1 / 2),
        ("recall", "classes", [1, 1, 0], [1, 0, 1], 1 / 2),
        ("r2", "probabilities", [[1.0], [2], [4]], [1.0, 3, 5], 1 - 2 / 8),
        (
            "softmax_entropy",
            "probabilities",
            PROBABILITIES,
            TARGETS,
            np.mean(np.log(np.exp(PROBABILITIES).sum(1)) - (HOT * PROBABILITIES).sum(1)),
        ),
        (
            "sigmoid_entropy",
            "probabilities",
            PROBABILITIES,
            TARGETS[:, None],
            np.mean(np.log1p(np.exp(PROBABILITIES)) - HOT * PROBABILITIES),
        ),
        (
            "classification_log_loss",
            "probabilities",
            PROBABILITIES,
            TARGETS[:, None],
            -np.mean(HOT * np.log(PROBABILITIES) + (1 - HOT) * np.log(1 - PROBABILITIES)),
        ),
        ("top_5", "probabilities", np.eye(6, dtype=np.float32)[[0, 1]], [0, 1], 1.0),
    ],
)
def test_metrics(session, name, key, given, targets, expected):
    assert client.eval_metrics.get_prediction_key(name) == key
    value, update = client.eval_metrics.get_metric(name)(tf.constant(given), tf.constant(targets))
    session.run(tf.local_variables_initializer())
    session.run(update)
    assert session.run(value) == pytest.approx(expected, abs=1e-5)


def test_other_metrics(session):
    given, targets = tf.constant([[0.25, 0.75], [0.75, 0.25]]), tf.constant([[1], [0]])
    for name in ("precision_at_thresholds", "recall_at_thresholds"):
        value, update = client.eval_metrics.get_metric(name)(given, targets)
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(value)[50] == pytest.approx(1) and value.shape.as_list() == [100]
    assert client.eval_metrics.get_metric("predictions")(given, targets) is given
