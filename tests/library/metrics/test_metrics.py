"""`tf.metrics` over several batches, against results recorded from TensorFlow 2.21 (``compat.v1``)."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.cases import metric_calls
from tfray.errors import InvalidArgumentError

RECORDED = json.loads((GOLDEN / "metrics.json").read_text())


@pytest.fixture(scope="module")
def ours():
    return metric_calls.record(tf)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_metrics(name, ours):
    for mine, theirs in zip(ours[name], RECORDED[name], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_every_metric_is_recorded():
    public = {name for name in dir(tf.metrics) if not name.startswith("_")}
    called = {name for name in public if any(call.startswith(name) for call in RECORDED)}
    # The ones at k call those at top k, and have two old names.
    old = {"sparse_average_precision_at_k", "sparse_precision_at_k"}
    assert public - called == {"precision_at_top_k", "recall_at_top_k"} | old


def test_variables_of_metrics():
    tf.metrics.accuracy([1], [1])
    tf.metrics.accuracy([1], [1])
    tf.metrics.precision([True], [True], name="p")
    tf.metrics.mean_iou([1], [1], 2)
    names = [variable.op.name for variable in tf.local_variables()]
    assert names == [
        "accuracy/total",
        "accuracy/count",
        "accuracy_1/total",
        "accuracy_1/count",
        "p/true_positives/count",
        "p/false_positives/count",
        "mean_iou/total_confusion_matrix",
    ]
    assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == tf.local_variables()
    assert tf.global_variables() == [] == tf.trainable_variables()


def test_nothing_counted_is_zero():
    metrics = [
        tf.metrics.mean(tf.zeros([0])),
        tf.metrics.accuracy([1, 2], [1, 2], weights=[0.0, 0.0]),
        tf.metrics.precision([True], [False]),
        tf.metrics.recall([False], [True]),
    ]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run([metric[0] for metric in metrics]) == [0.0] * 4
        assert session.run([metric[1] for metric in metrics]) == [0.0] * 4


def test_collections_and_names():
    value, update = tf.metrics.mean([1.0, 2.0], metrics_collections=["values"], updates_collections="updates")
    assert tf.get_collection("values") == [value]
    assert tf.get_collection("updates") == [update]
    assert (value.name, update.name) == ("mean/value:0", "mean/update_op:0")


def test_starting_again():
    value, update = tf.metrics.mean([2.0, 4.0])
    clear = tf.variables_initializer(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(value) == 3.0
        session.run(clear)
        assert session.run(value) == 0.0


def test_last_dimensions_of_one():
    labels, guesses = np.array([[1], [0], [2]]), np.array([1, 1, 2])
    metrics = [
        tf.metrics.accuracy(labels, guesses),
        tf.metrics.accuracy(guesses, labels, weights=[[1.0], [2.0], [1.0]]),
        tf.metrics.accuracy(np.array([b"a", b"b"]), np.array([b"a", b"c"])),
    ]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose(session.run([metric.update_op for metric in metrics]), [2 / 3, 0.5, 0.5])


def test_unknown_shapes():
    labels, guesses, weights = (tf.placeholder(dtype, None) for dtype in (tf.int64, tf.int64, tf.float32))
    updates = [
        tf.metrics.accuracy(labels, guesses, weights)[1],
        tf.metrics.mean_iou(labels, guesses, 3)[1],
        tf.metrics.auc(labels, tf.to_float(guesses) / 2)[1],
    ]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        results = session.run(updates, {labels: [0, 1, 1], guesses: [0, 1, 2], weights: [1.0, 1.0, 2.0]})
    assert results[0] == 0.5
    assert results[1].tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    np.testing.assert_allclose(results[2], 1.0, atol=1e-4)


def test_repeated_labels_count_once():
    recall = tf.metrics.recall_at_k(tf.constant([[1, 1, -1], [0, 2, -1]], tf.int64), [[0.1, 0.9, 0.0]] * 2, 1)
    precision = tf.metrics.precision_at_top_k(tf.constant([[1], [0]], tf.int64), tf.constant([[1, 2], [1, 2]]))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose(session.run([recall[1], precision[1]]), [1 / 5, 1 / 4])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: tf.metrics.accuracy([1, 2], [1, 2, 3]), "expected one shape"),
        (lambda: tf.metrics.mean([1.0, 2.0], [1.0, 2.0, 3.0]), "weights can not be broadcast to values"),
        (lambda: tf.metrics.auc([1], [0.5], curve="X"), "ROC or PR"),
        (lambda: tf.metrics.auc([1], [0.5], summation_method="careful_interpolation"), "summation_method"),
        (lambda: tf.metrics.auc([1], [0.5], num_thresholds=1), "2 or more"),
        (lambda: tf.metrics.sensitivity_at_specificity([1], [0.5], 2.0), "between 0 and 1"),
        (lambda: tf.metrics.recall_at_k(tf.placeholder(tf.int64), [[1.0]], 1), "ranks must be known"),
    ],
)
def test_what_is_refused(build, words):
    with pytest.raises(InvalidArgumentError, match=words):
        build()


def test_confusion_matrix():
    labels, guesses = [0, 1, 2, 2, 1], [0, 2, 2, 2, 1]
    matrices = [
        tf.confusion_matrix(labels, guesses),
        tf.confusion_matrix(labels, guesses, 4, tf.float32, weights=[1.0, 0.5, 2.0, 1.0, 1.0]),
        tf.confusion_matrix(np.array(labels)[:, None], guesses),
    ]
    with tf.Session() as session:
        first, second, third = session.run(matrices)
        assert first.tolist() == third.tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 2]]
        assert second.tolist() == [[1, 0, 0, 0], [0, 1, 0.5, 0], [0, 0, 3, 0], [0, 0, 0, 0]]
        assert (first.dtype, second.dtype) == (np.int32, np.float32)
        for pair, words in (
            (([0, 5], [0, 1]), "`labels` out of bound.*x < y"),
            (([0, 1], [0, 5]), "`predictions` out of bound.*x < y"),
            (([0, -1], [0, 1]), "`labels` contains negative values"),
        ):
            fed = [tf.placeholder(tf.int32) for _ in pair]
            matrix = tf.confusion_matrix(*fed, 3)
            with pytest.raises(InvalidArgumentError, match=words):
                session.run(matrix, dict(zip(fed, pair, strict=True)))
    assert matrices[1].shape.as_list() == [4, 4]


LABELS = np.array([[0, 1, 1, 0], [1, 0, 0, 1]])
SCORES = np.array([[0.1, 0.9, 0.4, 0.6], [0.7, 0.2, 0.8, 0.3]], np.float32)


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        ("mean_tensor", (), None),
        ("percentage_less", (0.5,), 0.5),
        ("true_positives", (), 4),
        ("precision_at_thresholds", ([0.5],), [0.5]),
        ("recall_at_thresholds", ([0.5],), [0.5]),
        ("true_positives_at_thresholds", ([0.5, 0.8],), [2, 1]),
        ("false_positives_at_thresholds", ([0.5, 0.8],), [2, 0]),
        ("true_negatives_at_thresholds", ([0.5, 0.75],), [2, 3]),
        ("false_negatives_at_thresholds", ([0.5, 0.8],), [2, 3]),
    ],
)
def test_contributed_metrics(name, arguments, wanted):
    streaming = getattr(tf.contrib.metrics, f"streaming_{name}")
    of_values = name in ("mean_tensor", "percentage_less")
    value, update = streaming(SCORES, *arguments) if of_values else streaming(SCORES, LABELS, *arguments)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose(session.run(update), SCORES if wanted is None else wanted, rtol=1e-5)
        np.testing.assert_allclose(session.run(value), SCORES if wanted is None else wanted, rtol=1e-5)


def test_contributed_counts_at_thresholds_have_variables_in_the_current_scope():
    tf.contrib.metrics.streaming_false_positives_at_thresholds(SCORES, LABELS, [0.5])
    assert [each.op.name for each in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)] == ["false_positives"]


def test_contributed_ranks():
    classes = np.array([1, 2])
    hits, hits_update = tf.contrib.metrics.streaming_recall_at_k(SCORES, classes, 1)
    top, top_update = tf.contrib.metrics.streaming_sparse_precision_at_top_k([[1, 3], [2, 0]], classes[:, None])
    sparse, sparse_update = tf.contrib.metrics.streaming_sparse_recall_at_k(SCORES, classes[:, None], 1)
    recall, recall_update = tf.contrib.metrics.sparse_recall_at_top_k(classes[:, None], np.array([[1, 3], [0, 3]]))
    assert {each.op.name.partition("/")[0] for each in tf.local_variables()} >= {"recall_at_1"}
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run([hits_update, top_update, sparse_update, recall_update])
        assert session.run([hits, top, sparse, recall]) == [1, 0.5, 1, 0.5]


def test_contributed_names():
    metrics = {
        "accuracy": tf.contrib.metrics.streaming_accuracy(tf.constant([1, 2]), tf.constant([1, 3])),
        "precision": tf.contrib.metrics.streaming_precision(tf.constant([1, 1]), tf.constant([1, 0])),
    }
    values, updates = tf.contrib.metrics.aggregate_metric_map(metrics)
    batch = tf.contrib.metrics.accuracy(tf.constant([1, 2]), tf.constant([1, 3]), weights=[1.0, 3.0])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(list(updates.values()))
        assert session.run(values) == {"accuracy": 0.5, "precision": 0.5}
        assert session.run(batch) == 0.25


def test_covariances_and_correlations_of_all_batches():
    x, y, w = (tf.placeholder(tf.float32, [None]) for _ in range(3))
    contrib = tf.contrib.metrics
    found = [
        contrib.streaming_covariance(x, y),
        contrib.streaming_pearson_correlation(x, y),
        contrib.streaming_covariance(x, y, w, metrics_collections="values", updates_collections=["updates"]),
    ]
    random = np.random.default_rng(0)
    first = random.normal(100, 1, [4, 3])
    second = 0.3 * first + random.normal(0, 1, [4, 3])
    numbers = random.integers(0, 4, [4, 3])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert np.isnan(session.run([metric[0] for metric in found])).all()
        for feeds in zip(first, second, numbers, strict=True):
            updated = session.run([metric[1] for metric in found], dict(zip((x, y, w), feeds, strict=True)))
        assert session.run([metric[0] for metric in found]) == updated
    flat = first.ravel(), second.ravel()
    expected = [np.cov(*flat)[0, 1], np.corrcoef(*flat)[0, 1], np.cov(*flat, fweights=numbers.ravel())[0, 1]]
    np.testing.assert_allclose(updated, expected, rtol=1e-4)
    assert tf.get_collection("values") == [found[2][0]] and tf.get_collection("updates") == [found[2][1]]


def test_values_of_all_batches_side_by_side():
    rows = tf.placeholder(tf.int32, [None, 2])
    whole = tf.contrib.metrics.streaming_concat(rows)
    three = tf.contrib.metrics.streaming_concat(tf.transpose(rows), axis=-1, max_size=3)
    assert whole[0].shape.as_list() == [None, 2] and three[1].shape.as_list() == [2, None]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(whole[0]).shape == (0, 2)
        for start in (0, 2, 4):
            updated = session.run([whole[1], three[1]], {rows: [[start, 1], [start + 1, 1]]})
        assert updated[0][:, 0].tolist() == [0, 1, 2, 3, 4, 5] and updated[1][0].tolist() == [0, 1, 2]
        assert (session.run(whole[0]) == updated[0]).all()
    with pytest.raises(ValueError, match="must be known"):
        tf.contrib.metrics.streaming_concat(tf.placeholder(tf.float32, [2, None]))
    with pytest.raises(ValueError, match="axis 2"):
        tf.contrib.metrics.streaming_concat(rows, axis=2)


@pytest.mark.parametrize(
    ("metric", "filler"),  # what stands for no label in a dense tensor: a repetition, or a number of no class
    [(tf.metrics.recall_at_k, 0), (tf.metrics.precision_at_k, 0), (tf.metrics.average_precision_at_k, -1)],
)
@pytest.mark.parametrize("is_value", [True, False])
def test_labels_may_be_sparse(metric, filler, is_value):
    labels = tf.SparseTensorValue([[0, 0], [0, 1], [1, 0]], np.array([1, 3, 0], np.int64), [2, 2])
    scores = [[0.1, 0.6, 0.2, 0.5], [0.2, 0.7, 0.4, 0.3]]
    given = labels if is_value else tf.SparseTensor(*labels)
    updates = [metric(tf.constant([[1, 3], [0, filler]], tf.int64), scores, k=2)[1], metric(given, scores, k=2)[1]]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        dense, sparse = session.run(updates)
    assert dense == sparse > 0


FOUR_SCORES = [[0.1, 0.3, 0.6, 0.2]]


@pytest.mark.parametrize(
    ("metric", "labels", "options", "expected"),
    [  # TensorFlow 2.21's results
        (tf.metrics.precision_at_k, [2], {"k": 1, "class_id": 3}, np.nan),
        (tf.metrics.recall_at_k, [2], {"k": 1, "class_id": 3}, np.nan),
        (tf.metrics.precision_at_k, [2, -1, 10], {"k": 1, "weights": 0.0}, np.nan),
        (tf.metrics.recall_at_k, [2, -1, 10], {"k": 1}, 1 / 3),
        (tf.metrics.average_precision_at_k, [2, -1, 10], {"k": 2}, 1.0),
        (tf.metrics.average_precision_at_k, [2, 2, 10], {"k": 3}, 0.5),
        (tf.metrics.average_precision_at_k, [2, 2, 10], {"k": 3, "weights": 0.0}, 0.0),
    ],
)
def test_labels_without_a_class_and_nothing_to_count(metric, labels, options, expected):
    value, update = metric(tf.constant([labels], tf.int64), FOUR_SCORES, **options)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose([session.run(update), session.run(value)], [expected] * 2)


@pytest.mark.parametrize("weights", [np.float32(3), np.float32([100, 1, 1]), np.float32([[100], [1], [1]])])
def test_weights_whose_rank_shows_in_a_step_fit(weights):
    given = tf.placeholder(tf.float32)
    accuracies = [
        tf.metrics.accuracy([[1], [0], [0]], [[1.0], [1.0], [1.0]], each)[1] for each in (given, tf.constant(weights))
    ]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose(*session.run(accuracies, {given: weights}))


@pytest.mark.parametrize(
    "metric",
    [
        tf.metrics.auc,
        lambda labels, scores: tf.metrics.sensitivity_at_specificity(labels, scores, 0.7),
        lambda labels, scores: tf.metrics.precision_at_thresholds(labels, scores, [0.7]),
    ],
    ids=["auc", "sensitivity", "precision"],
)
def test_scores_are_probabilities(metric):
    given = tf.placeholder(tf.float32, [4])
    _, update = metric([0, 1, 1, 0], given)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update, {given: [1, 0, 0.5, 1]})
        for wrong in (-0.1, 1.1, np.nan):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
                session.run(update, {given: [1, wrong, 0.5, 1]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
        metric([0, 1], [0.5, 2.0])  # at once, as in TensorFlow


@pytest.mark.parametrize("metric", [tf.metrics.precision_at_top_k, tf.metrics.recall_at_top_k])
def test_predicted_classes_belong_to_examples(metric):
    with pytest.raises(ValueError, match="Shape must be at least rank 2 but is rank 1"):
        metric(tf.constant([2], tf.int64), tf.constant([9, 4, 6], tf.int64))
