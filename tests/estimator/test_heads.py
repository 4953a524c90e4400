"""Heads, and estimators made from estimators: values by hand, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.cases import head_cases

GOLDEN = json.loads((ROOT / "tests" / "golden" / "head_metrics.json").read_text())["cases"]
"""What TensorFlow 1.15's heads give: `scripts/golden_heads.py`."""

LOGITS = np.array([[2.0], [-1.0], [0.5]], np.float32)
SIGMOID = 1 / (1 + np.exp(-LOGITS))


def evaluated(fetches):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        return session.run(fetches)


def spec(head, labels, logits=LOGITS, mode="eval", features=None, **options):
    return head.create_estimator_spec(features or {}, mode, tf.constant(logits), tf.constant(labels), **options)


def metrics(head, labels, **options):
    made = spec(head, labels, **options)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        session.run([update for _, update in made.eval_metric_ops.values()])
        return session.run({name: value for name, (value, _) in made.eval_metric_ops.items()})


CROSS_ENTROPY = -np.log(np.where([[1], [0], [0]], SIGMOID, 1 - SIGMOID))


@pytest.mark.parametrize(
    ("reduction", "wanted"),
    [
        ("weighted_sum", (CROSS_ENTROPY[:, 0] * [1, 2, 3]).sum()),
        ("weighted_sum_over_batch_size", (CROSS_ENTROPY[:, 0] * [1, 2, 3]).mean()),
        ("sum_over_batch_size", (CROSS_ENTROPY[:, 0] * [1, 2, 3]).mean()),
        ("weighted_mean", (CROSS_ENTROPY[:, 0] * [1, 2, 3]).sum() / 6),
    ],
)
def test_losses_are_weighted_and_reduced(reduction, wanted):
    head = tf.estimator.BinaryClassHead("w", loss_reduction=reduction)
    loss = spec(head, [1, 0, 0], features={"w": tf.constant([1.0, 2.0, 3.0])}).loss
    np.testing.assert_allclose(evaluated(loss), wanted, rtol=1e-5)


def test_a_numeric_column_of_weights():
    column = tf.feature_column.numeric_column("w", normalizer_fn=lambda w: w - 1)
    head = tf.estimator.BinaryClassHead(column, loss_reduction="sum")
    loss = spec(head, [1, 0, 0], features={"w": tf.constant([1.0, 2.0, 3.0])}).loss
    np.testing.assert_allclose(evaluated(loss), (CROSS_ENTROPY[:, 0] * [0, 1, 2]).sum(), rtol=1e-5)


def test_regularization_losses_are_added_and_told():
    head = tf.estimator.BinaryClassHead(name="h")
    extra = [tf.constant(1.0), tf.constant(0.5)]
    assert metrics(head, [1, 0, 0], regularization_losses=extra)["regularization_loss/h"] == pytest.approx(1.5)
    loss = head.loss(tf.constant([1, 0, 0]), tf.constant(LOGITS), regularization_losses=extra)
    np.testing.assert_allclose(evaluated(loss), CROSS_ENTROPY.mean() + 1.5, rtol=1e-5)


def test_a_loss_of_ones_own():
    head = tf.estimator.RegressionHead(loss_fn=lambda labels, logits: tf.abs(labels - logits))
    np.testing.assert_allclose(evaluated(spec(head, [[1.0], [1.0], [1.0]]).loss), np.abs(LOGITS - 1).mean(), rtol=1e-6)


def test_sparse_labels_of_several_classes():
    logits = np.zeros((2, 3), np.float32)
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ["a", "c", "b"], [2, 2])
    head = tf.estimator.MultiLabelHead(3, label_vocabulary=["a", "b", "c"])
    found = evaluated(head.create_loss({}, "eval", tf.constant(logits), labels).processed_labels)
    assert found.tolist() == [[1, 0, 1], [0, 1, 0]]


def test_metrics_at_thresholds():
    found = metrics(tf.contrib.estimator.binary_classification_head(thresholds=[0.6]), [1, 0, 1])
    assert found["accuracy/positive_threshold_0.6"] == 1
    assert found["precision/positive_threshold_0.6"] == found["recall/positive_threshold_0.6"] == 1
    found = metrics(tf.contrib.estimator.binary_classification_head(thresholds=[0.7]), [1, 0, 1])
    assert found["recall/positive_threshold_0.7"] == 0.5


@pytest.mark.parametrize("name", GOLDEN)
def test_metrics_are_objects_that_take_batches_in(name):
    found, wanted = head_cases.run(tf, name), GOLDEN[name]
    assert found["made"] == wanted["made"]
    assert found["values"] == pytest.approx(wanted["values"], abs=3e-6)


@pytest.mark.parametrize("name", GOLDEN)
def test_specs_have_the_metrics_of_the_heads(name):
    make, logits, labels = head_cases.cases(tf)[name]
    batch = {k: tf.constant(v) for k, v in labels[0].items()} if isinstance(labels[0], dict) else tf.constant(labels[0])
    features, extra = {"w": tf.constant(head_cases.WEIGHTS)}, [tf.constant(0.5)]
    head = make()
    made = head.create_estimator_spec(features, "eval", tf.constant(logits[0]), batch, regularization_losses=extra)
    own = head.update_metrics(head.metrics(extra), features, tf.constant(logits[0]), batch, extra)
    assert set(made.eval_metric_ops) == set(own)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        session.run(
            [[update for _, update in made.eval_metric_ops.values()], [metric.updates for metric in own.values()]]
        )
        found = session.run({key: value for key, (value, _) in made.eval_metric_ops.items()})
        assert found == pytest.approx(session.run({key: each.result() for key, each in own.items()}), abs=1e-6)


def test_the_area_below_precision_is_a_sum_of_trapezoids_in_heads_of_canned_estimators():
    """As in TensorFlow 1, whose canned estimators have metrics of `tf.metrics`, and its heads those of Keras."""
    of_canned = metrics(tf.contrib.estimator.binary_classification_head(), [0, 1, 1])
    labels, chances = tf.constant([[0], [1], [1]]), tf.constant(SIGMOID)
    value, update = tf.metrics.auc(labels, chances, curve="PR")
    area = tf.keras.metrics.AUC(curve="PR")
    with tf.Session() as session:
        step = area.update_state(labels, chances)
        session.run(tf.local_variables_initializer())
        session.run([update, step])
        trapezoids, interpolated = session.run([value, area.result()])
    assert of_canned["auc_precision_recall"] == pytest.approx(trapezoids)
    of_head = metrics(tf.estimator.BinaryClassHead(), [0, 1, 1])
    assert of_head["auc_precision_recall"] == pytest.approx(interpolated) != pytest.approx(trapezoids, abs=0.01)


class Doubled(tf.estimator.Head):
    """A program's own head: it says twice what it sees."""

    name, logits_dimension, loss_reduction = "doubled", 1, tf.losses.Reduction.SUM

    def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        return tf.reduce_sum(tf.abs(labels - 2 * logits))

    def predictions(self, logits, keys=None):
        return {"twice": 2 * logits}

    def metrics(self, regularization_losses=None):
        return {"mean": tf.keras.metrics.Mean()}

    def update_metrics(self, eval_metrics, features, logits, labels, mode=None, regularization_losses=None):
        eval_metrics["mean"].update_state(2 * logits)
        return eval_metrics


class DoubledSpec(Doubled):
    def create_estimator_spec(self, features, mode, logits, labels=None, **options):
        metrics = self.update_metrics(self.metrics(), features, logits, labels)
        return tf.estimator.EstimatorSpec(mode, loss=self.loss(labels, logits), eval_metric_ops=metrics)


def test_a_head_of_a_program():
    assert metrics(DoubledSpec(), [[1.0], [1.0], [1.0]])["mean"] == pytest.approx(2 * LOGITS.mean())
    with pytest.raises(NotImplementedError, match="must implement `create_estimator_spec"):
        spec(Doubled(), [[1.0], [1.0], [1.0]])
    with pytest.raises(TypeError, match="abstract"):
        tf.estimator.Head()


def test_updates_run_with_the_step():
    count = tf.get_variable("count", initializer=0)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1).op)
    step = tf.train.get_or_create_global_step()
    made = spec(tf.estimator.BinaryClassHead(), [1, 0, 0], mode="train", train_op_fn=lambda loss: step.assign_add(1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([made.train_op])
        assert session.run([count, step]) == [1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.estimator.MultiClassHead(2), "n_classes must be > 2: 2"),
        (lambda: tf.estimator.MultiClassHead(None), "n_classes cannot be None"),
        (lambda: tf.estimator.BinaryClassHead(thresholds=[1.0]), r"thresholds not in \(0, 1\)"),
        (
            lambda: tf.estimator.BinaryClassHead(label_vocabulary=["a"]),
            "does not have .n_classes. items",
        ),
        (lambda: tf.estimator.BinaryClassHead(loss_reduction="none"), "Invalid loss_reduction: none"),
        (lambda: tf.estimator.RegressionHead(loss_fn=lambda logits: 0), r"labels. Given arguments: \('logits',\)"),
        (lambda: tf.estimator.RegressionHead(0), "Invalid label_dimension 0"),
        (lambda: tf.estimator.MultiHead([tf.estimator.RegressionHead()]), "heads must have name specified"),
        (
            lambda: tf.estimator.MultiLabelHead(3, classes_for_class_based_metrics=[5]),
            r"in range \[0, 2\]. Given: 5",
        ),
        (lambda: spec(tf.estimator.BinaryClassHead(), ["a", "b", "c"]), "label_vocabulary"),
        (
            lambda: spec(tf.estimator.MultiClassHead(3), [1, 0, 0]),
            r"logits_dimension\], got \(3, 1\)",
        ),
        (lambda: spec(tf.estimator.RegressionHead(), [[1.0, 2.0]]), "Expected labels dimension=1. Received 2"),
        (lambda: spec(tf.estimator.BinaryClassHead("w"), [1, 0, 0]), "no feature 'w'"),
        (lambda: spec(tf.estimator.BinaryClassHead(), [1, 0, 0], mode="train"), "optimizer or train_op_fn"),
        (
            lambda: tf.estimator.BinaryClassHead().create_loss({}, "eval", LOGITS, None),
            "provide a labels Tensor. Given: None",
        ),
        (lambda: tf.estimator.LinearClassifier([], n_classes=1), "n_classes must be > 2: 1"),
        (lambda: tf.estimator.DNNLinearCombinedClassifier(), "linear_feature_columns"),
        (lambda: tf.estimator.DNNLinearCombinedClassifier(dnn_feature_columns=[1]), "dnn_hidden_units"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_labels_out_of_range_are_an_error_of_the_step():
    with pytest.raises(tf.errors.InvalidArgumentError, match="n_classes"):
        evaluated(spec(tf.estimator.MultiClassHead(3), [0, 1, 3], np.zeros((3, 3), np.float32)).loss)


# -- estimators from estimators ----------------------------------------------------------------------------


def data():
    x = np.linspace(-1, 1, 20, dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x, "key": np.arange(20)}, (x > 0).astype(np.int64))).batch(5)


@pytest.fixture
def classifier(tmp_path):
    return tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x")], str(tmp_path)).train(data, steps=4)


def test_further_metrics(classifier):
    def share(labels, predictions):
        return {"yes": tf.metrics.mean(predictions["class_ids"]), "accuracy": tf.metrics.mean(labels)}

    found = tf.contrib.estimator.add_metrics(classifier, share).evaluate(data)
    assert found["accuracy"] == found["label/mean"] == 0.5 and 0 <= found["yes"] <= 1
    assert tf.estimator.add_metrics(classifier, share).model_dir == classifier.model_dir
    with pytest.raises(ValueError, match="not expected args: x; it can take features"):
        tf.estimator.add_metrics(classifier, lambda x: {})


def test_features_among_the_predictions(classifier):
    found = list(tf.contrib.estimator.forward_features(classifier, "key").predict(data))
    assert [each["key"] for each in found] == list(range(20)) and "x" not in found[0]
    with pytest.raises(ValueError, match="no feature 'other'"):
        next(tf.contrib.estimator.forward_features(classifier, ["other"]).predict(data))


def test_clipped_gradients():
    optimizer = tf.contrib.estimator.clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 0.5)
    x = tf.get_variable("x", initializer=[3.0, 4.0])
    step = optimizer.minimize(tf.reduce_sum(x**2) / 2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(x), [2.7, 3.6], rtol=1e-6)


def test_evaluation_while_it_trains(tmp_path):
    model = tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x")], str(tmp_path))
    hook = tf.estimator.experimental.InMemoryEvaluatorHook(model, data, every_n_iter=2, name="memory")
    model.train(lambda: data().repeat(), hooks=[hook], steps=5)
    found = tf.contrib.estimator.read_eval_metrics(model.eval_dir("memory"))
    assert list(found) == [0, 2, 4, 5]
    assert found[5]["average_loss"] == pytest.approx(model.evaluate(data)["average_loss"])


@pytest.mark.parametrize("what", ["saver", "init_fn"])
def test_an_evaluation_while_it_trains_sets_variables_itself(what):
    given = {what: tf.train.Saver([tf.Variable(1.0)]) if what == "saver" else lambda scaffold, session: None}

    def model_fn(features, labels, mode):
        scaffold = tf.train.Scaffold(**given)
        return tf.estimator.EstimatorSpec(mode, loss=tf.constant(3.0), train_op=tf.no_op(), scaffold=scaffold)

    hook = tf.estimator.experimental.InMemoryEvaluatorHook(tf.estimator.Estimator(model_fn), data)
    with pytest.raises(ValueError, match=f"does not support custom {what}"):
        hook.begin()


def test_training_stops_when_evaluations_say_so(tmp_path):
    model = tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x")], str(tmp_path)).train(data, steps=1)
    model.evaluate(data)
    hook = tf.estimator.experimental.stop_if_lower_hook(model, "loss", 1e9, run_every_secs=None, run_every_steps=1)
    model.train(lambda: data().repeat(), hooks=[hook], steps=50)
    assert model.get_variable_value("global_step") == 2
    hook = tf.estimator.experimental.make_stop_at_checkpoint_step_hook(model, 7)
    model.train(lambda: data().repeat(), hooks=[hook])
    assert model.get_variable_value("global_step") == 7


@pytest.mark.parametrize(
    ("head", "logits", "labels", "message"),
    [
        (tf.estimator.RegressionHead(3), np.ones([2, 1]), np.ones([2, 3]), "logits shape must be"),
        (
            tf.estimator.RegressionHead(3),
            np.ones([2, 3]),
            np.ones([2, 1]),
            r"\[expected_labels_shape: \] \[2 3\] \[labels_shape: \] \[2 1\]",
        ),
        (
            tf.estimator.RegressionHead(2, loss_fn=lambda labels, logits: tf.constant([[1.0], [2.0]])),
            np.ones([2, 2]),
            np.ones([2, 2]),
            r"\[loss_fn must return Tensor of shape \[D0, D1, ... DN, 2\]\. \] \[logits_shape: \] \[2 2\] "
            r"\[loss_shape: \] \[2 1\]",
        ),
        (tf.estimator.BinaryClassHead("w"), np.ones([2, 1]), np.ones([2, 1]), r"\[weights_shape: \] \[3 1\]"),
        (tf.estimator.BinaryClassHead(), np.ones([2, 1]), np.full([2, 1], 3.0), "Labels must be <= n_classes - 1"),
        (tf.estimator.LogisticRegressionHead(), np.ones([2, 1]), np.full([2, 1], -3.0), r"in range \[0, 1\]"),
    ],
)
def test_shapes_that_only_the_step_knows_are_checked_there(head, logits, labels, message):
    feeds = {tf.placeholder(tf.float32): logits, tf.placeholder(tf.float32): labels}
    of_logits, of_labels = feeds
    loss = head.loss(of_labels, of_logits, {"w": tf.ones([3, 1])}, "eval")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(loss, feeds)
