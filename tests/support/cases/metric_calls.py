"""Calls of `tf.metrics` on three batches of made-up data, which also run on TensorFlow to record what it returns."""

from __future__ import annotations

import numpy as np


def batches():
    """Three batches of data by name."""
    random = np.random.RandomState(7)
    for _ in range(3):
        scores = random.uniform(size=(6, 5)).round(3).astype(np.float32)
        yield {
            "classes": random.randint(0, 5, size=6),
            "guesses": random.randint(0, 5, size=6),
            "truth": random.randint(0, 2, size=6),
            "chances": random.uniform(size=6).round(2).astype(np.float32),
            "values": random.normal(size=(6, 3)).round(3).astype(np.float32),
            "targets": random.normal(size=(6, 3)).round(3).astype(np.float32),
            "weights": random.choice([0.0, 0.5, 1.0, 2.0], size=6).astype(np.float32),
            "scores": scores,
            "labels": np.stack([random.permutation(5)[:2] for _ in range(6)]),
        }


def unit(tf, x):
    return tf.nn.l2_normalize(x, 1)


def calls(tf, d):
    """The metrics, from the module and placeholders by name."""
    m = tf.metrics
    w, k = d["weights"], 2
    column = tf.expand_dims(w, 1)
    limits = [0.25, 0.5, 0.75]
    pair = (d["truth"], d["chances"])
    binary = (d["truth"], tf.greater(d["chances"], 0.5))
    lines = (d["targets"], d["values"])
    return {
        "mean": m.mean(d["values"]),
        "mean_weighted": m.mean(d["values"], column),
        "mean_tensor": m.mean_tensor(d["chances"]),
        "mean_tensor_weighted": m.mean_tensor(d["chances"], w),
        "accuracy": m.accuracy(d["classes"], d["guesses"]),
        "accuracy_weighted": m.accuracy(d["classes"], d["guesses"], w),
        "mean_absolute_error": m.mean_absolute_error(*lines),
        "mean_squared_error": m.mean_squared_error(*lines, weights=column),
        "root_mean_squared_error": m.root_mean_squared_error(*lines),
        "mean_relative_error": m.mean_relative_error(*lines, normalizer=tf.nn.relu(d["targets"])),
        "mean_cosine_distance": m.mean_cosine_distance(unit(tf, d["targets"]), unit(tf, d["values"]), 1),
        "mean_cosine_distance_weighted": m.mean_cosine_distance(
            unit(tf, d["targets"]), unit(tf, d["values"]), 1, column
        ),
        "percentage_below": m.percentage_below(d["values"], 0.25, column),
        "mean_per_class_accuracy": m.mean_per_class_accuracy(d["classes"], d["guesses"], 5),
        "mean_per_class_accuracy_weighted": m.mean_per_class_accuracy(d["classes"], d["guesses"], 5, w),
        "mean_iou": m.mean_iou(d["classes"], d["guesses"], 5),
        "mean_iou_weighted": m.mean_iou(d["classes"], d["guesses"], 6, w),
        "precision": m.precision(*binary),
        "precision_weighted": m.precision(*binary, weights=w),
        "recall": m.recall(*binary, weights=w),
        "true_positives": m.true_positives(*binary),
        "false_positives": m.false_positives(*binary, weights=w),
        "true_negatives": m.true_negatives(*binary),
        "false_negatives": m.false_negatives(*binary, weights=w),
        "true_positives_at_thresholds": m.true_positives_at_thresholds(*pair, limits),
        "false_positives_at_thresholds": m.false_positives_at_thresholds(*pair, limits, w),
        "true_negatives_at_thresholds": m.true_negatives_at_thresholds(*pair, limits, w),
        "false_negatives_at_thresholds": m.false_negatives_at_thresholds(*pair, limits),
        "precision_at_thresholds": m.precision_at_thresholds(*pair, limits, w),
        "recall_at_thresholds": m.recall_at_thresholds(*pair, limits, w),
        "sensitivity_at_specificity": m.sensitivity_at_specificity(*pair, 0.6),
        "specificity_at_sensitivity": m.specificity_at_sensitivity(*pair, 0.6, w, num_thresholds=50),
        "auc": m.auc(*pair),
        "auc_weighted": m.auc(*pair, w, num_thresholds=20),
        "auc_pr": m.auc(*pair, curve="PR"),
        "auc_careful": m.auc(*pair, curve="PR", summation_method="careful_interpolation"),
        "auc_minoring": m.auc(*pair, summation_method="minoring"),
        "auc_majoring": m.auc(*pair, num_thresholds=10, summation_method="majoring"),
        "precision_at_k": m.precision_at_k(tf.cast(d["labels"], tf.int64), d["scores"], k),
        "precision_at_k_class": m.precision_at_k(tf.cast(d["labels"], tf.int64), d["scores"], 3, class_id=1),
        "precision_at_k_weighted": m.precision_at_k(tf.cast(d["classes"], tf.int64), d["scores"], k, weights=w),
        "recall_at_k": m.recall_at_k(tf.cast(d["labels"], tf.int64), d["scores"], k),
        "recall_at_k_class": m.recall_at_k(tf.cast(d["labels"], tf.int64), d["scores"], 3, class_id=2, weights=w),
        "recall_at_k_single": m.recall_at_k(tf.cast(d["classes"], tf.int64), d["scores"], k),
        "average_precision_at_k": m.average_precision_at_k(tf.cast(d["labels"], tf.int64), d["scores"], 3),
        "average_precision_at_k_weighted": m.average_precision_at_k(tf.cast(d["labels"], tf.int64), d["scores"], 3, w),
    }


def record(tf):
    """Value and last update of every metric after three batches, as nested lists."""
    feeds = list(batches())
    with tf.Graph().as_default():
        placeholders = {name: tf.placeholder(value.dtype, value.shape) for name, value in feeds[0].items()}
        metrics = calls(tf, placeholders)
        with tf.Session() as session:
            session.run(tf.local_variables_initializer())
            for batch in feeds:
                updated = session.run(
                    {name: metric[1] for name, metric in metrics.items()},
                    {placeholders[name]: value for name, value in batch.items()},
                )
            values = session.run({name: metric[0] for name, metric in metrics.items()})
    return {name: [np.asarray(values[name]).tolist(), np.asarray(updated[name]).tolist()] for name in metrics}
