"""Metrics that count into buckets, and points of curves, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

RNG = np.random.default_rng(0)
LABELS = RNG.random(400) > 0.4
SCORES = np.clip(np.where(LABELS, 0.6, 0.4) + 0.2 * RNG.normal(size=400), 0, 1).astype(np.float32)


def in_two_batches(build):
    """The value of a metric after two halves of the data."""
    labels, scores = tf.placeholder(tf.bool, [200]), tf.placeholder(tf.float32, [200])
    value, update = build(labels, scores)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for half in (slice(200), slice(200, 400)):
            session.run(update, {labels: LABELS[half], scores: SCORES[half]})
        return session.run(value)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [2, 11, 201])
def test_outcomes_at_equal_thresholds(count, weighted):
    weights = np.full(200, 0.5, np.float32) if weighted else None
    found = in_two_batches(
        lambda labels, scores: tf.contrib.metrics.precision_recall_at_equal_thresholds(labels, scores, weights, count)
    )
    yes = np.floor(SCORES * np.float32(count - 1)) >= np.arange(count)[:, None]
    share = 0.5 if weighted else 1.0
    tp, fp = share * (yes & LABELS).sum(1), share * (yes & ~LABELS).sum(1)
    np.testing.assert_allclose(found.thresholds, np.linspace(0, 1, count), rtol=1e-6)
    for name, expected in (("tp", tp), ("fp", fp), ("tn", fp[0] - fp), ("fn", tp[0] - tp), ("recall", tp / tp[0])):
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(found.precision, tp / np.maximum(tp + fp, 1e-7), rtol=1e-5)


def test_scores_are_between_0_and_1():
    _, update = tf.contrib.metrics.precision_recall_at_equal_thresholds([True], tf.placeholder_with_default([1.5], [1]))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with pytest.raises(InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
            session.run(update)
    with pytest.raises(InvalidArgumentError, match="num_thresholds must be > 1"):
        tf.contrib.metrics.precision_recall_at_equal_thresholds([True], [0.5], num_thresholds=1)


def test_the_area_from_histograms():
    found = in_two_batches(
        lambda labels, scores: tf.contrib.metrics.auc_using_histogram(labels, scores, [0.0, 1.0], nbins=500)
    )
    expected = (SCORES[LABELS][:, None] > SCORES[~LABELS]).mean()
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_there_is_no_area_of_nothing():
    none = tf.constant([], tf.float32, [0])
    value, update = tf.contrib.metrics.auc_using_histogram(tf.constant([], tf.bool, [0]), none, [0.0, 1.0])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        update.run()
        assert np.isnan(session.run(value))


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_points_of_curves(curve):
    points = in_two_batches(
        lambda labels, scores: tf.contrib.metrics.streaming_curve_points(labels, scores, num_thresholds=5, curve=curve)
    )
    yes = np.array([[-1.0], [0.25], [0.5], [0.75], [2.0]]) < SCORES
    tp, fp = (yes & LABELS).sum(1), (yes & ~LABELS).sum(1)
    if curve == "ROC":
        expected = np.stack([fp / (~LABELS).sum(), tp / LABELS.sum()], 1)
    else:
        precision = np.where(tp + fp, tp / np.maximum(tp + fp, 1), 1.0)
        expected = np.stack([tp / LABELS.sum(), precision], 1)
    np.testing.assert_allclose(points, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(InvalidArgumentError, match="curve must be either ROC or PR"):
        tf.contrib.metrics.streaming_curve_points([True], [0.5], curve="XY")


def test_the_best_harmonic_mean():
    found = in_two_batches(lambda labels, scores: tf.contrib.metrics.f1_score(labels, scores, num_thresholds=11))
    yes = np.linspace(0, 1, 11, dtype=np.float32)[:, None] < SCORES
    yes[0] = True
    tp = (yes & LABELS).sum(1)
    np.testing.assert_allclose(found, (2 * tp / (yes.sum(1) + LABELS.sum())).max(), rtol=1e-4)


@pytest.mark.parametrize(
    ("predictions", "labels", "match"),
    [
        ([1.0], [1.0], "Labels should have bool, integer, or string dtype"),
        ([1], [True], "Dtypes of predictions and labels should match"),
        ([1, 2], [1], "incompatible"),
    ],
)
def test_accuracy_compares_classes(predictions, labels, match):
    with pytest.raises(ValueError, match=match):
        tf.contrib.metrics.accuracy(predictions, labels)
