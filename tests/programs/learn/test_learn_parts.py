"""The smaller parts of tf.contrib.learn: metrics, runs, generators, signatures, and models that learn but a mean."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import learn
from tfray.programs.learn import experiment, generators, interfaces, metrics, ops, scores
from tfray.programs.learn import mean_estimators as debug
from tfray.programs.learn import tensor_signatures as signatures
from tfray.programs.learn.cluster_config import RunConfig

# -- metrics -------------------------------------------------------------------------------------------

CLASSES = {"classes": np.int64([1, 1, 0]), "probabilities": np.float32([[0, 1], [0, 1], [1, 0]])}


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (tf.metrics.precision, 0.5),  # takes labels first
        (tf.metrics.recall, 1.0),
        (tf.contrib.metrics.streaming_precision, 0.5),
        (lambda found, wanted: (tf.reduce_sum(found), tf.reduce_sum(wanted)), 2),
        (lambda prediction, target: (tf.reduce_sum(target), tf.no_op()), 1),
    ],
)
def test_metrics_get_what_they_name(function, value):
    given, update = learn.MetricSpec(function, "classes").create_metric_ops(None, tf.constant([1, 0, 0]), CLASSES)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(given) == value


@pytest.mark.parametrize(
    ("keys", "predictions", "error", "words"),
    [
        ({"prediction_key": "bad"}, CLASSES, KeyError, "bad"),
        ({}, CLASSES, ValueError, "without specified prediction_key requires predictions tensor"),
        ({"prediction_key": "a"}, np.int64([1]), ValueError, "with prediction_key specified requires predictions dict"),
    ],
)
def test_metrics_find_what_they_name(keys, predictions, error, words):
    with pytest.raises(error, match=words):
        learn.MetricSpec(tf.metrics.accuracy, **keys).create_metric_ops(None, tf.constant([1]), predictions)


def test_names_of_metrics():
    with pytest.raises(ValueError, match="a pair of its name"):
        metrics.metric_ops({("a", "b", "c"): tf.metrics.accuracy}, None, None, CLASSES)


def test_metrics_of_classes_and_of_engineered_labels(tmp_path):
    def examples():
        return {"x": tf.constant([[1.0], [2.0]])}, tf.constant([[1], [0]])

    classifier = learn.LinearClassifier([tf.contrib.layers.real_valued_column("x")], str(tmp_path / "classifier"))
    classifier.fit(input_fn=examples, steps=2)
    own = {"own": learn.MetricSpec(tf.contrib.metrics.streaming_accuracy, prediction_key="classes")}
    results = classifier.evaluate(input_fn=examples, steps=1, metrics=own)
    assert results["own"] == results["accuracy"]

    def model_fn(features, labels):
        tf.Variable([0.0])
        return features["x"], tf.constant([2.0]), tf.train.get_global_step().assign_add(1)

    engineered = learn.Estimator(
        model_fn,
        str(tmp_path / "model"),
        feature_engineering_fn=lambda features, labels: ({"x": tf.constant([9.0])}, {"y": tf.constant([99.0])}),
    )
    engineered.fit(input_fn=examples, steps=1)
    assert next(engineered.predict(input_fn=examples)) == 9, "one tensor of predictions has no name"
    labels = {"labels": learn.MetricSpec(lambda predictions, labels: labels)}
    assert engineered.evaluate(input_fn=examples, steps=1, metrics=labels)["labels"] == 99


# -- runs ----------------------------------------------------------------------------------------------


class Estimator(interfaces.Trainable, interfaces.Evaluable):
    model_dir = "/nowhere"

    def __init__(self, config=None):
        self.config = config

    def fit(self, *args, **kwargs):
        raise NotImplementedError

    def evaluate(self, *args, **kwargs):
        raise NotImplementedError


class Experiment(learn.Experiment):
    default = None

    def __init__(self, config=None):
        super().__init__(Estimator(config), None, None)

    def train(self):
        return "train"

    def train_and_evaluate(self):
        return "train_and_evaluate"

    def run_std_server(self):
        return "run_std_server"


CLUSTER = {"master": ["h:1"], "ps": ["h:2"], "worker": ["h:3", "h:4"], "foo": ["h:5"]}


@pytest.mark.parametrize(
    ("cluster", "task", "expected"),
    [
        (CLUSTER, "worker", "train"),
        (CLUSTER, "master", "train_and_evaluate"),
        (CLUSTER, "ps", "run_std_server"),
        (CLUSTER, "foo", ValueError("No default schedule for task type: foo")),
        (CLUSTER, None, ValueError("Must specify a schedule")),
        ({"foo": ["h:1"]}, None, "train_and_evaluate"),
        ({}, None, "train_and_evaluate"),
    ],
)
def test_a_task_has_its_schedule(monkeypatch, cluster, task, expected):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": task} if task else {}}))
    config = RunConfig()

    def run():
        return experiment.run(lambda output_dir: Experiment(config), "/tmp")

    if isinstance(expected, str):
        assert run() == expected
        return
    with pytest.raises(ValueError, match=str(expected)):
        run()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((None, None), ValueError, "Must set value for `output_dir` or `run_config`"),
        ((lambda folder: Experiment(), "", "train"), ValueError, "Must specify an output directory"),
        ((lambda folder: Experiment(), "a", "train", 1), ValueError, "Cannot provide both"),
        (("none", "a", "train"), TypeError, "Experiment builder .* is not callable"),
        ((lambda folder: "none", "a", "train"), TypeError, "did not return an Experiment"),
        ((lambda folder: Experiment(), "a", "mirage"), ValueError, "Schedule references non-existent task"),
        ((lambda folder: Experiment(), "a", "default"), TypeError, "Schedule references non-callable member"),
    ],
)
def test_runs_that_are_not(arguments, error, words):
    with pytest.raises(error, match=words):
        experiment.run(*arguments)


# -- generators ----------------------------------------------------------------------------------------


def rows():
    for index in range(2):
        yield {"a": np.ones(1) * index, "b": np.ones(1) * index + 32, "label": np.ones(1) * index - 32}


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({"target_key": "label", "batch_size": 2}, [[[0], [1]]]),
        ({"batch_size": 4}, [[[0], [1], [0], [1]]]),
        ({"target_key": ["label", "b"], "batch_size": 1, "num_epochs": 2}, [[[0]], [[1]], [[0]], [[1]]]),
    ],
)
def test_what_a_generator_yields(options, batches):
    made = generators.generator_input_fn(rows, shuffle=False, **options)()
    features, labels = made if isinstance(made, tuple) else (made, None)
    with tf.Session() as session:
        for batch in batches:
            found, wanted = session.run([features, labels if labels is not None else tf.constant(0)])
            assert found["a"].tolist() == batch
            if isinstance(labels, dict):
                assert sorted(wanted) == ["b", "label"] and sorted(found) == ["a"]
            elif labels is not None:
                assert (wanted == found["a"] - 32).all()


def other_keys():
    yield {"a": np.ones(1), "b": np.ones(1)}
    yield {"a": np.ones(1), "c": np.ones(1)}


@pytest.mark.parametrize(
    ("x", "target", "error", "words"),
    [
        (np.arange(4), None, TypeError, "x must be generator function"),
        (lambda: np.arange(4), None, TypeError, r"x\(\) must be generator"),
        (lambda: (each for each in [1]), None, TypeError, r"x\(\) must yield dict"),
        (rows, np.arange(4), TypeError, "target_key must be str or Container of str"),
        (rows, ["label", 1], TypeError, "target_key must be str or Container of str"),
        (rows, ["label", "target"], KeyError, "target_key not in yielded dict"),
    ],
)
def test_generators_that_are_not(x, target, error, words):
    with pytest.raises(error, match=words):
        generators.generator_input_fn(x, target)


def test_all_rows_have_the_same_keys():
    features = generators.generator_input_fn(other_keys, batch_size=4, shuffle=False)()
    with tf.Session() as session, pytest.raises(tf.errors.OpError, match="key mismatch between dicts"):
        session.run(features)


# -- signatures ----------------------------------------------------------------------------------------


def test_signatures():
    given = tf.placeholder(tf.int32, [None, 100])
    other, real = tf.placeholder(tf.int32, [256, 100]), tf.placeholder(tf.float32, [256, 100])
    one, named = signatures.create_signatures(given), signatures.create_signatures({"a": given})
    fits = signatures.tensors_compatible
    assert [fits(each, one) for each in (given, other, real, None)] == [True, True, False, False]
    cases = [{"a": given}, given, {"b": other}, {"a": other, "c": real}, {"a": real}]
    assert [fits(each, named) for each in cases] == [True, False, False, True, False]
    assert fits(None, signatures.create_signatures(None)) and not fits(given, None)
    made = signatures.create_placeholders_from_signatures(named)["a"]
    assert made.dtype == tf.int32 and made.shape.as_list() == [None, 100]
    sparse = tf.SparseTensor([[0, 2]], [1.0], [5, 5])
    of_sparse = signatures.create_signatures(sparse)
    assert fits(sparse, of_sparse) and not fits(real, of_sparse)
    assert isinstance(signatures.create_placeholders_from_signatures(of_sparse), tf.SparseTensor)
    parsed = signatures.create_example_parser_from_signatures({"x": signatures.create_signatures(real)}, [b""] * 2)
    assert parsed["x"].shape.as_list() == [2, 100]


# -- models and helpers --------------------------------------------------------------------------------


def test_models_that_learn_a_mean(tmp_path):
    labels = np.int64([1, 1, 1, 0, 2])
    classifier = debug.DebugClassifier(str(tmp_path / "classes"), 3, config=learn.RunConfig(tf_random_seed=1))
    classifier.fit(np.zeros([5, 2]), labels, steps=100)
    assert list(classifier.predict_classes(np.zeros([2, 2]))) == [1, 1]
    np.testing.assert_allclose(next(classifier.predict_proba(np.zeros([1, 2]))), [0.2, 0.6, 0.2], atol=0.1)
    regressor = debug.DebugRegressor(str(tmp_path / "numbers"), 2)
    regressor.fit(np.zeros([2, 2]), np.float32([[1, 2], [0.5, 3]]), steps=300)
    np.testing.assert_allclose(next(regressor.predict_scores(np.zeros([1, 2]))), [0.75, 2.5], atol=0.1)


def test_a_combined_model_learns_as_fast_as_its_parts(tmp_path):
    def examples():
        return {"x": tf.ones([4, 1])}, tf.constant([[1], [0], [0], [0]])

    columns = [tf.contrib.layers.real_valued_column("x")]
    model = learn.DNNLinearCombinedClassifier(
        str(tmp_path), linear_feature_columns=columns, dnn_feature_columns=columns, dnn_hidden_units=[3, 3]
    )
    model.fit(input_fn=examples, steps=100)
    np.testing.assert_allclose(next(model.predict_proba(input_fn=examples)), [0.75, 0.25], atol=0.05)


def test_models_as_operations():
    rng = np.random.default_rng(0)
    table, ids = rng.normal(size=(10, 5)), rng.integers(0, 10, (2, 3))
    features, labels = tf.constant([[0.2, 0.3, 0.2]]), tf.constant([[0.0, 1.0]])
    _, loss = ops.softmax_classifier(features, labels, [[0.1, 0.1]] * 3, [0.2, 0.3], tf.constant([0.1, 0.9]))
    values, loss_of_numbers = ops.mean_squared_error_regressor(features, tf.constant([1.0]), [[1.0]] * 3, [0.0])
    x, y = rng.normal(size=(2, 4, 3)).astype(np.float32), rng.normal(size=(2, 2, 3)).astype(np.float32)
    of_encoder, of_decoder, wanted = ops.seq2seq_inputs(x, y, 4, 2)
    outputs, states, sampled, sampled_states = ops.rnn_seq2seq(of_encoder, of_decoder, tf.nn.rnn_cell.GRUCell(3))
    assert [len(each) for each in (outputs, states, sampled, sampled_states)] == [3, 4, 3, 4]
    found, total = ops.sequence_classifier(outputs, [tf.nn.softmax(each) for each in wanted])
    variable = ops.categorical_variable(ids, 10, 4, "word")
    parts = ops.split_squeeze(1, 4, x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(loss), 0.55180627, rtol=1e-6)
        np.testing.assert_allclose(session.run([values[0], loss_of_numbers]), [0.7, 0.09], rtol=1e-5)
        np.testing.assert_array_equal(session.run(ops.embedding_lookup(table, ids)), table[ids])
        np.testing.assert_array_equal(session.run(of_decoder[0]), np.zeros((2, 3)))
        np.testing.assert_array_equal(session.run([of_encoder[2], of_decoder[1]]), [x[:, 2], y[:, 0]])
        np.testing.assert_allclose(session.run(found).sum(-1), np.ones((2, 3)), rtol=1e-5)
        assert session.run(total).shape == () and variable.shape == [2, 3, 4]
        np.testing.assert_array_equal(session.run(ops.expand_concat(1, parts)), x)
        assert session.run(ops.one_hot_matrix([[0], [2]], 3)).tolist() == [[[1, 0, 0]], [[0, 0, 1]]]


def test_irises_and_scores(tmp_path):
    irises = learn.datasets.load_dataset("iris")
    assert irises.data.shape == (150, 4) and irises.data[0].tolist() == [5.1, 3.5, 1.4, 0.2]
    assert np.bincount(irises.target).tolist() == [50, 50, 50]
    (tmp_path / "own.csv").write_text("1,2,a\n1,2,0\n")
    assert learn.datasets.load_iris(str(tmp_path / "own.csv")).data.tolist() == [[1, 2]]
    assert scores.accuracy_score([1, 0, 1], [1, 1, 1]) == pytest.approx(2 / 3)
    assert scores.mean_squared_error([[1.0], [2.0]], [1.0, 4.0]) == 2
    train, test, _, of_test = scores.train_test_split(np.arange(10), np.arange(10), test_size=0.2, random_state=42)
    assert (len(train), test.tolist()) == (8, of_test.tolist())


# -- what a model function returns -----------------------------------------------------------------------


def test_what_a_model_function_returns_is_checked_and_made_regular():
    step = tf.Variable(0)
    made = learn.ModelFnOps("train", {"a": [1, 2]}, [3.0], step.assign_add(1))
    assert (made.loss.shape.rank, made.eval_metric_ops, made.training_hooks) == (0, {}, [])
    assert isinstance(made.train_op, tf.Operation)
    assert isinstance(made.predictions["a"], tf.Tensor) and made.mode == made[-1] == "train"
    assert learn.ModelFnOps("infer", [1, 2]).predictions.shape == [2]


@pytest.mark.parametrize(
    ("mode", "given", "error", "match"),
    [
        ("test", {"predictions": 1}, ValueError, "Invalid mode"),
        ("train", {"predictions": 1, "loss": 1.0}, ValueError, "Missing train_op"),
        ("eval", {"predictions": 1}, ValueError, "Missing loss"),
        ("infer", {}, ValueError, "Missing predictions"),
        ("eval", {"predictions": 1, "loss": [1.0, 2.0]}, ValueError, "Loss must be scalar"),
        ("infer", {"predictions": 1, "eval_metric_ops": [1]}, ValueError, "must be a dict"),
        ("infer", {"predictions": 1, "training_hooks": ["x"]}, TypeError, "SessionRunHook"),
        ("infer", {"predictions": {"x": 1}, "loss": "foreign"}, ValueError, "same graph"),
    ],
)
def test_what_a_model_function_returns_is_refused(mode, given, error, match):
    if given.get("loss") == "foreign":
        with tf.Graph().as_default():
            given = given | {"loss": tf.constant(1.0)}
    with pytest.raises(error, match=match):
        learn.ModelFnOps(mode, **given)


KINDS = learn.ProblemType


@pytest.mark.parametrize(
    ("kind", "left_out", "output", "offers"),
    [
        (KINDS.LINEAR_REGRESSION, (), tf.estimator.export.RegressionOutput, {"value": "scores"}),
        (KINDS.LINEAR_REGRESSION, ("scores",), tf.estimator.export.RegressionOutput, {"value": "probabilities"}),
        (
            KINDS.CLASSIFICATION,
            (),
            tf.estimator.export.ClassificationOutput,
            {"scores": "scores", "classes": "classes"},
        ),
        (KINDS.CLASSIFICATION, ("classes",), tf.estimator.export.ClassificationOutput, {"scores": "scores"}),
        (
            KINDS.LOGISTIC_REGRESSION,
            ("scores", "probabilities"),
            tf.estimator.export.ClassificationOutput,
            {"classes": "classes"},
        ),
    ],
)
def test_a_specification_offers_outputs_by_the_kind_of_problem(kind, left_out, output, offers):
    tensors = {"scores": tf.constant([0.5]), "probabilities": tf.constant([0.1]), "classes": tf.constant(["no"])}
    given = {name: each for name, each in tensors.items() if name not in left_out}
    spec = learn.ModelFnOps("infer", given, output_alternatives={"head": (kind, given)}).estimator_spec()
    found = spec.export_outputs["head"]
    assert isinstance(found, output)
    names = ("scores", "classes") if output is tf.estimator.export.ClassificationOutput else ("value",)
    assert {name: getattr(found, name) for name in names} == {name: given.get(offers.get(name)) for name in names}


def test_a_specification_has_all_but_the_metric_of_the_loss():
    hook, scaffold = tf.train.StepCounterHook(), tf.train.Scaffold()
    metrics = {"loss": (tf.constant(1.0), tf.no_op()), "other": (tf.constant(2.0), tf.no_op())}
    both = {"a": (KINDS.UNSPECIFIED, {"x": tf.constant(1)}), "b": (KINDS.UNSPECIFIED, {"y": tf.constant(2)})}
    made = learn.ModelFnOps("eval", {"x": 1}, [1.0], None, metrics, both, [hook], None, scaffold)
    spec = made.estimator_spec("b")
    assert (spec.mode, spec.loss, spec.predictions, spec.scaffold) == ("eval", made.loss, made.predictions, scaffold)
    assert spec.eval_metric_ops == {"other": metrics["other"]} and list(spec.training_chief_hooks) == [hook]
    outputs = {name: set(each.outputs) for name, each in spec.export_outputs.items()}
    assert outputs == {"a": {"x"}, "b": {"y"}, "serving_default": {"y"}}
    with pytest.raises(ValueError, match="Unknown problem_type"):
        learn.ModelFnOps("infer", 1, output_alternatives={"a": (9, {})}).estimator_spec()
    with pytest.raises(ValueError, match="expected one of"):
        made.estimator_spec()
