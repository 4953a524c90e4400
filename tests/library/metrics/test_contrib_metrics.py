"""Metrics of ``tf.contrib.metrics``, against what TensorFlow 1.15 gives after each of two batches."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

metrics = tf.contrib.metrics
LABELS = [[1, 0, 1, 1, 0, 0], [0, 1, 0, 1, 1, 0]]
SCORES = [[0.9, 0.4, 0.35, 0.8, 0.1, 0.4], [0.2, 0.7, 0.6, 0.35, 0.95, 0.5]]
WEIGHTS = [[1, 2, 1, 0.5, 1, 1], [3, 1, 0.5, 1, 1, 2]]
TOP = [[2, 0, 1], [1, 0, 2]]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (
            lambda y, s, w: metrics.streaming_false_negative_rate_at_thresholds(s, y, [0.3, 0.5, 0.75], w),
            [[0, 0.4, 0.4], [0, 0.3636364, 0.5454546]],
        ),
        (
            lambda y, s, w: metrics.streaming_false_positive_rate_at_thresholds(s, y, [0.3, 0.5, 0.75], w),
            [[0.75, 0, 0], [0.5789474, 0.0526316, 0]],
        ),
        (lambda y, s, w: metrics.recall_at_precision(y, s, 0.7, w, num_thresholds=11), [1, 0.6363636]),
        (lambda y, s, w: metrics.recall_at_precision(y, s, 0.7, strict_mode=True), [1 / 3, 2 / 3]),
        (lambda y, s, w: metrics.precision_at_recall(y, s, 0.7, w, num_thresholds=11), [0.45454547, 0.5]),
        (lambda y, s, w: metrics.streaming_dynamic_auc(y, s, weights=w), [0.7, 0.7894736842105263]),
        (lambda y, s, w: metrics.streaming_dynamic_auc(y, s, "PR", weights=w), [0.7575757575757576, 0.797979797979798]),
        (lambda y, s, w: metrics.streaming_dynamic_auc(tf.ones_like(y), s), [0, 0]),
        (
            lambda y, s, w: metrics.auc_with_confidence_intervals(y, s, w),
            [[0.70000005, 0.10869838, 0.97809076], [0.7894737, 0.4041309, 0.9539898]],
        ),
        (
            lambda y, s, w: metrics.auc_with_confidence_intervals(y, s, alpha=0.5, logit_transformation=False),
            [[0.77777773, 0.6101994, 0.9453561], [0.77777773, 0.6717919, 0.88376355]],
        ),
        (lambda y, s, w: metrics.cohen_kappa(y[:, None], tf.constant([[2], [0], [1], [1], [0], [2]]), 3), [0.5, 0.125]),
        (
            lambda y, s, w: metrics.streaming_sparse_average_precision_at_top_k(TOP, tf.reshape(y, [2, 3]), [1.0, 3.0]),
            [0.5972222222222222, 0.5972222222222222],
        ),
    ],
)
def test_values_after_each_batch(build, expected):
    y, s, w = tf.placeholder(tf.int64, [6]), tf.placeholder(tf.float32, [6]), tf.placeholder(tf.float32, [6])
    value, update = build(y, s, w)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for batch, wanted in zip(zip(LABELS, SCORES, WEIGHTS, strict=True), expected, strict=True):
            feeds = dict(zip((y, s, w), batch, strict=True))
            session.run(update, feeds)
            np.testing.assert_allclose(session.run(value, feeds), wanted, rtol=1e-5, atol=1e-7)


def test_what_no_metric_can_be_made_of():
    for metric, number in ((metrics.recall_at_precision, 1.5), (metrics.precision_at_recall, -0.5)):
        with pytest.raises(InvalidArgumentError, match="between 0 and 1"):
            metric([True], [0.5], number)
    with pytest.raises(InvalidArgumentError, match="ROC or PR"):
        metrics.streaming_dynamic_auc([1], [0.5], "X")
    with pytest.raises(InvalidArgumentError, match="num_classes"):
        metrics.cohen_kappa([0], [0], 1)
