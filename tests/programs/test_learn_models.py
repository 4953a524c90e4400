"""`tf.contrib.learn`: clusters, regressions, input functions; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized, variable_names
from tfray.contrib import learn

POINTS = np.array([[1, 0], [9, 9], [10, 9], [0, 1], [9, 10]], np.float32)
FIRST = np.array([[1, 1], [5, 6]], np.float32)
X = np.arange(6).reshape(3, 2).astype(np.float32) / 3


def points():
    return tf.constant(POINTS), None


@pytest.mark.parametrize(
    ("metric", "centres", "index", "score"),
    [
        ("squared_euclidean", [[0.5, 0.5], [9.33333, 9.33333]], [0, 1, 1, 0, 1], 2.33336),
        ("cosine", [[0.82715, 0.56198], [0, 1]], [0, 0, 0, 1, 0], 0.22877),
    ],
)
def test_clusters(metric, centres, index, score):
    model = learn.KMeansClustering(2, initial_clusters=FIRST, distance_metric=metric, use_mini_batch=False)
    assert model.fit(input_fn=points, steps=3) is model
    assert model.clusters() == pytest.approx(np.array(centres), abs=1e-4)
    found = list(model.predict(input_fn=lambda: POINTS, as_iterable=True))
    assert [each["cluster_idx"] for each in found] == list(model.predict_cluster_idx(points)) == index
    distances = np.array([each["all_scores"] for each in found])
    assert model.transform(points) == pytest.approx(distances, abs=1e-5)
    assert [set(each) for each in model.transform(points, as_iterable=True)] == [{"all_scores"}] * 5
    assert model.score(points, steps=1) == pytest.approx(score, abs=1e-4)
    assert distances.min(1).sum() == pytest.approx(score, abs=1e-4)
    assert set(model.evaluate(input_fn=points, steps=1)) == {"scores", "loss", "global_step"}
    assert model.get_variable_names() == ["clusters", "global_step", "initialized"]


def test_clusters_begin_with_points():
    model = learn.KMeansClustering(2, initial_clusters=learn.KMeansClustering.RANDOM_INIT, relative_tolerance=0.1)
    model.fit(input_fn=points, steps=20)
    assert model.clusters().shape == (2, 2) and model.get_variable_value("global_step") <= 20


WEIGHTED = [[0.14834, 0.28892, 0.56274], [0.05212, 0.19774, 0.75014], [0.01588, 0.11731, 0.86681]]
HALVES = {"init_mean": 0.5, "init_stddev": 0.0}
REGRESSIONS = [
    ("linear_regression_zero_init", [1.0, 2.0, 4.0], {}, [0, 0, 0], 7.0),
    ("linear_regression", [[1.0, 2], [2, 0], [4, 1]], HALVES, [[0.66667] * 2, [1.33333] * 2, [2] * 2], 1.51852),
    ("logistic_regression_zero_init", [[1.0, 0], [0, 1], [0, 1]], {}, [[0.5] * 2] * 3, 0.69315),
    ("logistic_regression", np.eye(3, dtype=np.float32), {"class_weight": [1.0, 2, 3], **HALVES}, WEIGHTED, 1.22401),
]


@pytest.mark.parametrize(("name", "labels", "settings", "expected", "loss"), REGRESSIONS)
def test_regressions(name, labels, settings, expected, loss):
    predictions, found = getattr(learn.models, name)(tf.constant(X), tf.constant(labels), **settings)
    scope = name.removesuffix("_zero_init")
    assert variable_names() == [f"{scope}/weights", f"{scope}/bias"]
    values = run_initialized([predictions, found])
    assert values[0] == pytest.approx(np.array(expected), abs=1e-4) and values[1] == pytest.approx(loss, abs=1e-4)
    histograms = [summary.op.name for summary in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert histograms == [f"{scope}/{scope}.{name}" for name in ("x", "y", "weights", "bias")]


def test_weights_of_classes_by_their_name():
    tf.constant([1.0, 2, 3], name="class_weight")
    predictions, _ = learn.models.logistic_regression(
        tf.constant(X), tf.constant(np.eye(3, dtype=np.float32)), **HALVES
    )
    assert run_initialized(predictions) == pytest.approx(np.array(WEIGHTED), abs=1e-4)


def test_a_tutorial():
    """The calls of programs that fit a line to four points."""
    x, y = np.array([1.0, 2, 3, 4]), np.array([0.0, -1, -2, -3])
    features = [tf.contrib.layers.real_valued_column("x", dimension=1)]
    estimator = learn.LinearRegressor(feature_columns=features, optimizer=tf.train.GradientDescentOptimizer(0.05))
    estimator.fit(input_fn=learn.io.numpy_input_fn({"x": x}, y, batch_size=4, num_epochs=300), steps=300)
    once = learn.io.numpy_input_fn({"x": x}, y, 4, num_epochs=1)
    assert estimator.evaluate(input_fn=once)["loss"] < 1e-2
    given = learn.io.numpy_input_fn({"x": x}, batch_size=3, shuffle=False)
    assert list(estimator.predict(input_fn=given)) == pytest.approx(y, abs=0.2)
    assert list(estimator.predict(input_fn=lambda: {"x": tf.constant(x)})) == pytest.approx(y, abs=0.2)


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [True, False]})
    words = frame.assign(b=["u", "v"])
    assert learn.extract_pandas_data(frame).tolist() == [[1.0, 1.0], [2.0, 0.0]]
    assert learn.extract_pandas_labels(frame[["a"]]).tolist() == [[1], [2]]
    assert learn.extract_pandas_matrix(words).tolist() == [[1, "u"], [2, "v"]]
    with pytest.raises(ValueError, match="Data types for extracting pandas data must be int, float, or bool"):
        learn.extract_pandas_data(words)
    with pytest.raises(ValueError, match="Only one column"):
        learn.extract_pandas_labels(frame)
    with pytest.raises(ValueError, match="Data types for extracting labels"):
        learn.extract_pandas_labels(words[["b"]])
    batches = learn.io.pandas_input_fn(frame[["a"]], frame["b"], batch_size=2, shuffle=False)()
    features, labels = run_initialized(batches)
    assert features["a"].tolist() == [1, 2] and labels.tolist() == [True, False]


def test_what_is_no_data_frame_stays_as_it_is():
    for extract in (learn.extract_pandas_data, learn.extract_pandas_labels, learn.extract_pandas_matrix):
        assert extract(POINTS) is POINTS


def test_functions_for_serving_by_their_paths():
    assert learn.utils.input_fn_utils.InputFnOps is learn.InputFnOps
    assert learn.utils.saved_model_export_utils.make_export_strategy is learn.make_export_strategy
