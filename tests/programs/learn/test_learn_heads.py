"""Heads, estimators with heads, and graph actions of `tf.contrib.learn`; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import tfray as tf
from tests.support.cases import learn_head_cases
from tfray.contrib import layers, learn

EXPECTED = json.loads(Path("tests/golden/learn_heads.json").read_text())
X = np.arange(12, dtype=np.float32).reshape(6, 2) / 6
CLASSES = np.array([[0], [1], [0], [1], [1], [1]])
NUMBERS = np.array([0.5, 1, 0, 2, 1, 3], np.float32)
NUMERIC = [layers.real_valued_column("x", 2)]
LINEAR = {"x": [0.37814, 0.38581], "k": [-0.33739, 0.38539, 0.17013], "loss": 0.42399}
LOGISTIC = {
    "labels/prediction_mean": 0.69257,
    "labels/actual_label_mean": 0.66667,
    "accuracy/baseline_label_mean": 0.66667,
    "auc": 0.875,
    "accuracy/threshold_0.400000_mean": 0.66667,
    "precision/positive_threshold_0.400000_mean": 0.66667,
    "recall/positive_threshold_0.400000_mean": 1.0,
    "accuracy/threshold_0.600000_mean": 0.66667,
    "precision/positive_threshold_0.600000_mean": 0.75,
    "recall/positive_threshold_0.600000_mean": 0.75,
    "loss": 0.5123,
    "global_step": 5,
}
KEYS = layers.sparse_column_with_keys("k", ["a", "b", "c"])


def is_near(found, wanted):
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(is_near(found[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(is_near, found, wanted))
    return found == (pytest.approx(wanted, abs=2e-5) if isinstance(wanted, float) else wanted)


@pytest.mark.parametrize("case", EXPECTED)
def test_heads(case):
    name, mode = case.split(", ")
    found = learn_head_cases.outcome(tf, *learn_head_cases.heads(tf)[name], mode)
    assert is_near(found, EXPECTED[case]), found


def test_heads_make_logits():
    inputs = tf.ones([4, 3])
    made = learn.multi_class_head(5).create_model_fn_ops({}, "infer", logits_input=inputs)
    assert made.predictions["logits"].shape == [4, 5]
    assert [v.name for v in tf.trainable_variables()] == [
        "multi_class_head/logits/weights:0",
        "multi_class_head/logits/biases:0",
    ]


ONES = np.ones([2, 1], np.float32)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: learn.multi_class_head(1), "n_classes must be > 1"),
        (lambda: learn.multi_label_head(1), "n_classes must be > 1"),
        (lambda: learn.multi_class_head(2, metric_class_ids=[1]), "metric_class_ids invalid"),
        (lambda: learn.multi_class_head(2, label_keys=["a", "b"]), "label_keys is not supported"),
        (lambda: learn.multi_class_head(3, metric_class_ids=[3]), "not in"),
        (lambda: learn.multi_class_head(3, label_keys=["a"]), "Length of label_keys"),
        (lambda: learn.multi_class_head(3, loss_fn=lambda labels, logits: 0), "weights not found in loss_fn"),
        (lambda: learn.multi_head([learn.regression_head()]), "must have names"),
        (lambda: learn.multi_head([learn.regression_head(head_name="a")], [1, 2]), "same size"),
        (lambda: learn.regression_head(label_dimension=0), "Invalid logits_dimension"),
        (lambda: learn.regression_head().create_model_fn_ops({}, "train", ONES), "Neither logits nor"),
        (lambda: learn.regression_head().create_model_fn_ops({}, "eval", ONES, None, ONES, ONES), "Both logits"),
        (lambda: learn.regression_head().create_model_fn_ops({}, "train", ONES, None, ONES), "train_op_fn can not"),
        (lambda: learn.regression_head().create_model_fn_ops({}, "bad", logits=ONES), "mode=bad unrecognized"),
        (
            lambda: learn.regression_head(weight_column_name="q").create_model_fn_ops({}, "eval", ONES, None, ONES),
            "q missing",
        ),
    ],
)
def test_heads_that_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_heads_with_a_loss_of_ones_own():
    head = learn.multi_class_head(
        2, weight_column_name="w", loss_fn=lambda labels, logits, weights: tf.reduce_sum(weights)
    )
    made = head.create_model_fn_ops({"w": tf.constant([1.0, 2.0])}, "eval", np.array([[0], [1]]), None, ONES)
    with tf.Session() as session:
        assert session.run(made.loss) == 3.0
    assert learn.no_op_train_fn(made.loss).type == "NoOp" and issubclass(type(head), learn.Head)


def examples(labels):
    def input_fn():
        keys = tf.SparseTensor([[i, 0] for i in range(6)], list("abacba"), [6, 1])
        return {"x": tf.constant(X), "w": tf.constant([1.0, 2, 1, 1, 1, 1]), "k": keys}, tf.constant(labels)

    return input_fn


def test_linear_estimators():
    model = learn.LinearEstimator([*NUMERIC, KEYS], learn.multi_class_head(2, weight_column_name="w"))
    model.fit(input_fn=examples(CLASSES), steps=5)
    assert model.get_variable_value("linear/x/weight").ravel() == pytest.approx(LINEAR["x"], abs=1e-4)
    assert model.get_variable_value("linear/k/weights").ravel() == pytest.approx(LINEAR["k"], abs=1e-4)
    found = model.evaluate(input_fn=examples(CLASSES), steps=1)
    assert set(found) == {*(name for name in EXPECTED["binary without weights, eval"]["metrics"]), "global_step"}
    assert found["loss"] == pytest.approx(LINEAR["loss"], abs=1e-4)


def test_linear_estimators_with_one_variable():
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    model = learn.LinearEstimator(
        [KEYS], learn.regression_head(), _joint_weights=True, gradient_clip_norm=0.1, optimizer=optimizer
    )
    model.fit(input_fn=examples(NUMBERS), steps=5)
    assert model.evaluate(input_fn=examples(NUMBERS), steps=1)["loss"] == pytest.approx(2.39934, abs=1e-4)
    with pytest.raises(ValueError, match="needs feature_columns"):
        learn.LinearEstimator([], learn.regression_head())


def test_linear_estimators_of_newer_columns():
    model = learn.LinearEstimator([tf.feature_column.numeric_column("x", [2])], learn.poisson_regression_head())
    model.fit(input_fn=examples(NUMBERS), steps=5)
    assert model.evaluate(input_fn=examples(NUMBERS), steps=1)["loss"] == pytest.approx(1.23385, abs=1e-4)


def test_networks():
    embedding = layers.embedding_column(KEYS, 2)
    head = learn.multi_class_head(3, enable_centered_bias=True)
    model = learn.DNNEstimator(
        head, [4], [*NUMERIC, embedding], embedding_lr_multipliers={embedding: 0.0}, optimizer="SGD", dropout=0.0
    )
    model.fit(input_fn=examples(CLASSES), steps=1)
    name = "dnn/input_from_feature_columns/k_embedding/weights"
    first = model.get_variable_value(name)
    model.fit(input_fn=examples(CLASSES), steps=2)
    assert (model.get_variable_value(name) == first).all()
    assert "dnn/multi_class_head/centered_bias_weight" in model.get_variable_names()
    assert set(model.evaluate(input_fn=examples(CLASSES), steps=1)) == {"accuracy", "global_step", "loss"}
    wrong = learn.DNNEstimator(head, [4], NUMERIC, embedding_lr_multipliers={NUMERIC[0]: 0.0})
    with pytest.raises(ValueError, match="only be defined for embedding columns"):
        wrong.fit(input_fn=examples(CLASSES), steps=1)


@pytest.mark.parametrize(("is_once", "step"), [(False, 6), (True, 4)])
def test_networks_beside_linear_models(is_once, step):
    model = learn.DNNLinearCombinedEstimator(
        learn.multi_class_head(2),
        linear_feature_columns=[KEYS],
        dnn_feature_columns=NUMERIC,
        dnn_hidden_units=[3],
        fix_global_step_increment_bug=is_once,
    )
    model.fit(input_fn=examples(CLASSES), steps=4)
    assert model.get_variable_value("global_step") == step
    assert {"dnn/hiddenlayer_0/weights", "linear/k/weights"} <= set(model.get_variable_names())
    for given in ({}, {"dnn_feature_columns": NUMERIC}):
        with pytest.raises(ValueError, match="must be defined"):
            learn.DNNLinearCombinedEstimator(learn.multi_class_head(2), **given)


def test_estimators_of_probabilities():
    def model(features, labels, mode):
        weights = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
        likely = tf.sigmoid(tf.squeeze(tf.matmul(features["x"], weights), 1))
        loss = None if labels is None else tf.losses.log_loss(labels, likely)
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        return likely, loss, optimizer.minimize(loss, tf.train.get_global_step()) if mode == "train" else None

    made = learn.LogisticRegressor(model, thresholds=[0.4, 0.6]).fit(input_fn=examples(CLASSES[:, 0]), steps=5)
    found = made.evaluate(input_fn=examples(CLASSES[:, 0]), steps=1)
    assert found == {name: pytest.approx(value, abs=1e-4) for name, value in LOGISTIC.items()}


def test_saved_models_of_several_heads(tmp_path):
    def input_fn():
        return {"x": tf.constant(X)}, {"a": tf.constant(CLASSES), "b": tf.constant(NUMBERS)}

    heads = [
        learn.multi_class_head(2, head_name="A", label_name="a"),
        learn.regression_head(head_name="B", label_name="b"),
    ]
    model = learn.LinearEstimator(NUMERIC, learn.multi_head(heads)).fit(input_fn=input_fn, steps=3)
    found = model.evaluate(input_fn=input_fn, steps=1)
    assert [found[name] for name in ("loss/A", "loss/B", "loss", "accuracy/A")] == pytest.approx(
        [0.55165, 0.62401, 1.17566, 0.66667], abs=1e-4
    )
    serve = learn.build_parsing_serving_input_fn({"x": tf.FixedLenFeature([2], tf.float32)})
    path = model.export_savedmodel(str(tmp_path), serve, default_output_alternative_key="B")
    with tf.Session(graph=tf.Graph()) as session:
        signatures = tf.saved_model.loader.load(session, ["serve"], os.fsdecode(path)).signature_def
    served = {name: each.method_name.rpartition("/")[2] for name, each in signatures.items()}
    of_heads = {"default_input_alternative:A": "classify", "default_input_alternative:B": "regress"}
    assert served == {**of_heads, "serving_default": "regress"}
    for wrong in (None, "C"):
        with pytest.raises(ValueError, match="output_alternative"):
            model.export_savedmodel(str(tmp_path), serve, default_output_alternative_key=wrong)


# -- graph actions -------------------------------------------------------------------------------------


class Model:
    """The square of a variable, to be made small."""

    def __init__(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.step, self.w = tf.train.create_global_step(), tf.Variable(4.0, name="w")
            self.loss = tf.square(self.w)
            self.train_op = tf.train.GradientDescentOptimizer(0.1).minimize(self.loss, self.step)
            tf.summary.scalar("l", self.loss)
            self.x = tf.placeholder(tf.float32)
            self.y = self.w * self.x

    def train(self, folder, **options):
        return learn.train(self.graph, str(folder), self.train_op, self.loss, **options)


def test_graphs_that_train_on(tmp_path):
    for options in ({"steps": 3}, {"steps": 2}, {"max_steps": 4}):
        Model().train(tmp_path, **options)
    saved = {name for name in os.listdir(tmp_path) if name.endswith("index")}
    assert saved >= {"model.ckpt-3.index", "model.ckpt-5.index"}  # a thread may have saved steps before
    assert any("tfevents" in name for name in os.listdir(tmp_path))
    last, made = tf.train.latest_checkpoint(str(tmp_path)), Model()
    assert learn.infer(last, {"y": made.y}, {made.x: 2.0}) == {"y": pytest.approx(2.62144)}
    assert learn.infer(None, {"y": made.y}, {made.x: 2.0}) == {"y": 8.0}
    assert learn.run_feeds({"y": made.y}, [{made.x: 1.0}, {made.x: 2.0}]) == [{"y": 4.0}, {"y": 8.0}]
    assert learn.run_n({"y": made.y}, {made.x: 1.0}, n=2) == [{"y": 4.0}] * 2
    assert learn.run_n({"y": made.y}, n=0) == []


def test_graphs_that_are_evaluated(tmp_path):
    Model().train(tmp_path / "train", steps=5)
    made = Model()
    values, step = learn.evaluate(
        made.graph,
        str(tmp_path / "eval"),
        str(tmp_path / "train"),
        {"y": made.y, "w": made.w},
        feed_fn=lambda: {made.x: 3.0},
        max_steps=2,
    )
    assert (values, step) == ({"y": pytest.approx(3.93216), "w": pytest.approx(1.31072)}, 5)
    assert len(os.listdir(tmp_path / "eval")) == 1
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step()
        number = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
    assert learn.evaluate(graph, str(tmp_path / "numbers"), None, {"q": number}) == ({"q": 2}, 0)


def test_updates_of_evaluations(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step()
        total = tf.Variable(0, name="total")
        update = tf.assign_add(total, 1)
    found = learn.evaluate(graph, str(tmp_path), None, {"n": total}, update, max_steps=5, log_every_steps=2)
    assert found == ({"n": 5}, 0)


def test_losses_that_are_no_numbers(tmp_path):
    def run(**options):
        with tf.Graph().as_default() as graph:
            step = tf.train.create_global_step()
            return learn.train(
                graph, str(tmp_path), tf.assign_add(step, 1).op, tf.constant(float("nan")), steps=3, **options
            )

    with pytest.raises(learn.NanLossDuringTrainingError):
        run()
    assert np.isnan(run(fail_on_nan_loss=False))


def test_monitors_of_graphs(tmp_path):
    log = []

    class Monitor:
        run_on_all_workers = True

        def begin(self, max_steps=None):
            log.append(max_steps)

        def step_begin(self, step):
            return ["w:0"] if step == 1 else []

        def step_end(self, step, values):
            log.append(sorted(getattr(key, "name", key) for key in values))
            return step == 2

        def end(self):
            log.append("end")

    Model().train(tmp_path, steps=5, monitors=[Monitor()])
    assert log == [5, ["GradientDescent", "Square:0", "w:0"], ["GradientDescent", "Square:0"], "end"]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda m: m.train(""), "Output directory"),
        (lambda m: m.train("d", steps=1, max_steps=2), "both steps and max_steps"),
        (lambda m: learn.train(m.graph, "d", None, m.loss), "Missing train_op"),
        (lambda m: learn.train(m.graph, "d", m.train_op, None), "Missing loss_op"),
        (lambda m: learn.train(tf.Graph(), "d", m.train_op, m.loss), "global_step"),
        (lambda m: learn.evaluate(m.graph, "", None, {"y": m.y}), "Output directory"),
        (lambda m: learn.run_feeds({}, [{}]), "output_dict is invalid"),
        (lambda m: learn.run_feeds({"y": m.y}, []), "feed_dicts is invalid"),
    ],
)
def test_graph_actions_that_cannot_be(run, message):
    with pytest.raises(ValueError, match=message):
        run(Model())


def test_batches_with_keys(tmp_path):
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(4):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"v": feature})).SerializeToString())
    spec = {"v": tf.FixedLenFeature([], tf.int64)}
    options = {"randomize_input": False, "num_epochs": 1}
    read = [
        learn.read_keyed_batch_features(path, 2, spec, tf.TFRecordReader, **options),
        learn.read_keyed_batch_features_shared_queue(path, 2, spec, tf.TFRecordReader, **options),
        learn.read_keyed_batch_examples(
            path, 2, tf.TFRecordReader, parse_fn=lambda each: tf.parse_single_example(each, spec), **options
        ),
        learn.read_keyed_batch_examples_shared_queue(
            path, 2, tf.TFRecordReader, parse_fn=lambda each: tf.parse_single_example(each, spec)["v"], **options
        ),
    ]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = [session.run(each) for each in read]
        coordinator.request_stop()
    coordinator.join(threads)
    assert [[key.decode().replace(path, "") for key in keys] for keys, _ in found] == [[":0", ":30"]] * 4
    assert [list(each["v"] if isinstance(each, dict) else each) for _, each in found] == [[0, 1]] * 4
    assert issubclass(learn.NotFittedError, ValueError) and issubclass(learn.NotFittedError, AttributeError)


def test_sparse_labels_of_one_class_are_refused():
    head = learn.multi_label_head(n_classes=3)
    head._logits_dimension = 1  # a head for one class is not made at all
    labels = tf.SparseTensor([[0, 0]], tf.constant([2], tf.int64), [1, 1])
    with pytest.raises(ValueError, match="Must set num_classes >= 2 when passing labels as a SparseTensor"):
        head.create_model_fn_ops({}, learn.ModeKeys.TRAIN, labels, lambda loss: tf.no_op(), logits=tf.constant([0.0]))
