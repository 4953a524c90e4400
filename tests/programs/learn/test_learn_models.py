"""`tf.contrib.learn`: clusters, regressions, input functions; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized, variable_names
from tfray.contrib import learn
from tfray.programs.learn import composable_models
from tfray.programs.learn import models as learn_models

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


# -- sequences -------------------------------------------------------------------------------------------

SEQUENCES = (np.arange(12).reshape(2, 3, 2) / 6.0 - 1).astype(np.float32)
CONTEXT = np.array([[0.5], [-1.0]], np.float32)
Problem, Prediction = learn.ProblemType, learn_models.PredictionType
SEQUENCE_MODELS = {
    "numbers": (
        (Problem.LINEAR_REGRESSION, Prediction.SINGLE_VALUE, [1.0, 2.0], {}, {"num_units": 2}),
        {"loss": 1.21869},
        {"scores": [0.7938, 0.4525], "rnn_cell_state_0": [[-0.4142, -0.5192], [-0.5739, 0.2989]]},
        0.43446,
    ),
    "a number each step": (
        (
            Problem.LINEAR_REGRESSION,
            Prediction.MULTIPLE_VALUE,
            [[1.0, 2.0, 0], [0.0, 1.0, 1]],
            {"sequence_length": [2, 3]},
            {"num_units": [2], "cell_type": "gru"},
        ),
        {"loss": 0.45698},
        {"scores": [[0.7972, 0.7971, 0.7866], [0.7838, 0.735, 0.6651]]},
        0.40234,
    ),
    "two classes": (
        (
            Problem.CLASSIFICATION,
            Prediction.SINGLE_VALUE,
            [0, 1],
            {"sequence_length": [2, 3], "c": CONTEXT},
            {"num_classes": 2, "num_units": 2, "predict_probabilities": True, "cell_type": "lstm"},
        ),
        {"loss": 0.75196, "accuracy": 0.5},
        {
            "classes": [1, 1],
            "probabilities": [[0.3311, 0.6689], [0.3287, 0.6713]],
            "rnn_cell_state_1": [[-0.2291, 0.0682], [0.0901, 0.3745]],
        },
        0.74399,
    ),
    "three classes each step": (
        (
            Problem.CLASSIFICATION,
            Prediction.MULTIPLE_VALUE,
            [[0, 1, 2], [2, 1, 0]],
            {"sequence_length": [2, 3]},
            {"num_classes": 3, "num_units": [2, 3]},
        ),
        {"loss": 1.08951, "accuracy": 0.4},
        {"classes": [[0, 0, 0]] * 2, "rnn_cell_state_1": [[0.3965, 0.783, 0.6159], [-0.4623, 0.2264, 0.6347]]},
        1.06739,
    ),
}


def with_known_weights(folder):
    """Give the variables of a checkpoint values that can be had again."""
    with tf.Graph().as_default(), tf.Session() as session:
        rate = "OptimizeLoss/learning_rate"
        shapes = {name: shape for name, shape in sorted(tf.train.list_variables(folder)) if name != rate}
        tf.Variable(0.1, name=rate)
        for index, (name, shape) in enumerate(shapes.items()):
            values = (np.cos(np.arange(np.prod(shape)) + index) * 0.8).reshape(shape).astype(np.float32)
            tf.Variable(np.int64(1) if name == "global_step" else values, name=name)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, f"{folder}/model.ckpt", global_step=1)


@pytest.mark.rows(every=2)
@pytest.mark.parametrize("case", SEQUENCE_MODELS)
def test_sequences(case, tmp_path):
    (problem, kind, labels, more, settings), expected, predictions, trained = SEQUENCE_MODELS[case]

    def features():
        return {"x": tf.constant(SEQUENCES), **{name: tf.constant(value) for name, value in more.items()}}

    def make():
        columns = [tf.contrib.layers.real_valued_column(name, len(name) * 2 - (name == "c")) for name in ("x", "c")]
        context = columns[1:] if "c" in more else None
        return learn.DynamicRnnEstimator(problem, kind, columns[:1], context, model_dir=str(tmp_path), **settings)

    def data():
        return features(), tf.constant(labels)

    make().fit(input_fn=data, steps=1)
    with_known_weights(str(tmp_path))
    model = make()
    found = model.evaluate(input_fn=data, steps=1)
    assert found == pytest.approx({"global_step": 1, **expected}, abs=1e-4)
    each = list(model.predict(input_fn=features))
    for name, values in predictions.items():
        assert np.array([one[name] for one in each]) == pytest.approx(np.array(values), abs=1e-3)
    model.fit(input_fn=data, steps=2)
    assert model.evaluate(input_fn=data, steps=1)["loss"] == pytest.approx(trained, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"problem_type": 3}, "problem_type must be"),
        ({"prediction_type": 3}, "prediction_type must be"),
        ({"problem_type": 1}, "num_classes must be specified"),
        ({"predict_probabilities": True}, "predict_probabilities can only"),
    ],
)
def test_sequence_models_that_there_are_not(arguments, words):
    given = {"problem_type": 2, "prediction_type": 1, "sequence_feature_columns": [], **arguments}
    with pytest.raises(ValueError, match=words):
        learn.DynamicRnnEstimator(**given)


def test_cells_by_name():
    cell = learn_models.construct_rnn_cell([2, 3], "lstm", [0.5, 0.5, 1.0])
    assert cell.state_size == ((2, 2), (3, 3))
    assert isinstance(learn_models.construct_rnn_cell(2, tf.nn.rnn_cell.GRUCell), tf.nn.rnn_cell.GRUCell)
    with pytest.raises(ValueError, match="The supported cell types are"):
        learn_models.construct_rnn_cell(2, "mine")
    with pytest.raises(ValueError, match="one greater than the number of cells"):
        learn_models.construct_rnn_cell(2, "gru", [0.5])


# -- parts of models ------------------------------------------------------------------------------------


def _of_part(part, columns, head):
    """An estimator of one part and a head."""

    def model_fn(features, labels, mode):
        logits = part.build_model(features, columns, mode == learn.ModeKeys.TRAIN)

        def train_op_fn(loss):
            with tf.control_dependencies(part.get_train_step(loss)):
                return tf.train.get_global_step().assign_add(1).op

        return head.create_model_fn_ops(features, mode, labels, train_op_fn, logits)

    return model_fn


def test_a_linear_part_takes_a_step_of_its_own_variables(tmp_path):
    numbers, targets = np.float32([[1], [2], [3]]), np.float32([[2], [4], [6]])
    part = composable_models.LinearComposableModel(1, lambda: tf.train.GradientDescentOptimizer(0.1), scope="sums")
    columns = [tf.contrib.layers.real_valued_column("x")]
    model_fn = _of_part(part, columns, learn.regression_head())
    learner = learn.Estimator(model_fn, str(tmp_path))
    learner.fit(input_fn=lambda: ({"x": tf.constant(numbers)}, tf.constant(targets)), steps=1)
    # The mean of (w x + b - y)^2 has the gradient -2 mean(x y) of w and -2 mean(y) of b where both are 0.
    np.testing.assert_allclose(part.get_weights(str(tmp_path)), [[0.2 * 28 / 3]], 1e-5)
    np.testing.assert_allclose(part.get_bias(str(tmp_path)), [0.2 * 4], 1e-5)
    assert part.get_scope_name() == "sums" and learner.get_variable_names().count("sums/bias_weight") == 1


def test_weights_of_linear_parts_are_those_without_slots(tmp_path):
    ids = [tf.contrib.layers.sparse_column_with_hash_bucket(name, 4) for name in "ab"]
    for joint, names in (False, {"linear/a/weights", "linear/b/weights"}), (True, None):
        folder = tmp_path / str(joint)
        part = composable_models.LinearComposableModel(1, _joint_weights=joint)  # Ftrl, which has two slots
        with tf.Graph().as_default():
            given = {name: tf.SparseTensor([[0, 0], [1, 0]], ["u", "v"], [2, 1]) for name in "ab"}
            logits = part.build_model(given, ids, True)
            step = part.get_train_step(tf.reduce_sum(logits))
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                session.run(step)
                tf.train.Saver().save(session, str(folder / "model"))
        weights = part.get_weights(str(folder))
        if joint:
            assert weights.shape == (8, 1) and (weights < 0).any()
        else:
            assert set(weights) == names and all(each.shape == (4, 1) for each in weights.values())


def test_a_network_part_learns_and_gives_its_weights(tmp_path):
    random = np.random.default_rng(0)
    points = random.normal(size=(60, 2)).astype(np.float32)
    classes = (points.sum(1) > 0).astype(np.int64)
    part = composable_models.DNNComposableModel(1, [4, 3], "Adam", gradient_clip_norm=5.0)
    columns = [tf.contrib.layers.real_valued_column("x", 2)]
    model_fn = _of_part(part, columns, learn.multi_class_head(2))
    learner = learn.Estimator(model_fn, str(tmp_path)).fit({"x": points}, classes, steps=150)
    assert learner.evaluate({"x": points}, classes)["accuracy"] > 0.9
    assert [each.shape for each in part.get_weights(str(tmp_path))] == [(2, 4), (4, 3), (3, 1)]
    assert [each.shape for each in part.get_bias(str(tmp_path))] == [(4,), (3,), (1,)]
    assert composable_models.DNNComposableModel(1, [4]).get_train_step(tf.constant(1.0)) == []
    with pytest.raises(ValueError, match="Duplicate feature column"):
        part.build_model({"x": tf.constant(points)}, columns * 2, False)
