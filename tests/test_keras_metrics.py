"""Metrics of `tf.keras` that are objects: by themselves, and as a model keeps them over batches."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
metrics = keras.metrics
K = keras.backend

RANDOM = np.random.default_rng(4)
P = RANDOM.uniform(size=(12, 1)).astype(np.float32)
T = (RANDOM.uniform(size=(12, 1)) > 0.4).astype(np.float32)
WEIGHTS = RANDOM.uniform(size=12).astype(np.float32)
SHARES = RANDOM.uniform(size=(12, 3)).astype(np.float32)
CLASSES = RANDOM.integers(0, 3, size=(12, 1))
ONE_HOT = np.eye(3, dtype=np.float32)[CLASSES[:, 0]]


def rank_of_the_class():
    return ((SHARES * ONE_HOT).sum(1, keepdims=True) < SHARES).sum(1)


def area(weights):
    """The share of pairs of a positive and a negative example that are in the right order."""
    is_yes, score, own = T[:, 0] > 0, P[:, 0], weights
    pairs = own[is_yes][:, None] * own[~is_yes]
    return (pairs * (score[is_yes][:, None] > score[~is_yes])).sum() / pairs.sum()


def found(threshold):
    return lambda w: (w * (P[:, 0] > threshold) * T[:, 0]).sum() / (w * T[:, 0]).sum()


VALUES = [
    (lambda: metrics.Precision(), T, P, lambda w: (w * (P > 0.5)[:, 0] * T[:, 0]).sum() / (w * (P > 0.5)[:, 0]).sum()),
    (lambda: metrics.Recall(0.3), T, P, found(0.3)),
    (lambda: metrics.Recall([0.3, 0.6]), T, P, lambda w: [found(0.3)(w), found(0.6)(w)]),
    (lambda: metrics.TruePositives(), T, P, lambda w: (w * (P > 0.5)[:, 0] * T[:, 0]).sum()),
    (lambda: metrics.FalseNegatives(), T, P, lambda w: (w * (P <= 0.5)[:, 0] * T[:, 0]).sum()),
    (lambda: metrics.AUC(2000), T, P, area),
    (
        lambda: metrics.BinaryAccuracy(threshold=0.6),
        T,
        P,
        lambda w: np.average((P > 0.6)[:, 0] == T[:, 0], weights=w),
    ),
    (
        lambda: metrics.CategoricalAccuracy(),
        ONE_HOT,
        SHARES,
        lambda w: np.average(rank_of_the_class() == 0, weights=w),
    ),
    (
        lambda: metrics.SparseTopKCategoricalAccuracy(k=2),
        CLASSES,
        SHARES,
        lambda w: np.average(rank_of_the_class() < 2, weights=w),
    ),
    (
        lambda: metrics.RootMeanSquaredError(),
        T,
        P,
        lambda w: np.sqrt(np.average(((T - P) ** 2)[:, 0], weights=w)),
    ),
    (
        lambda: metrics.Hinge(),
        T,
        P,
        lambda w: np.average(np.maximum(1 - (2 * T - 1) * P, 0)[:, 0], weights=w),
    ),
    (
        lambda: metrics.CategoricalHinge(),
        ONE_HOT,
        SHARES,
        lambda w: np.average(np.maximum(((1 - ONE_HOT) * SHARES).max(1) - (ONE_HOT * SHARES).sum(1) + 1, 0), weights=w),
    ),
]


@pytest.mark.parametrize(("make", "targets", "predictions", "expected"), VALUES)
def test_values_over_batches(make, targets, predictions, expected):
    metric = make()
    halves = [
        metric.update_state(targets[part], tf.constant(predictions[part]), sample_weight=WEIGHTS[part])
        for part in (slice(5), slice(5, 12))
    ]
    result = metric.result()
    session = K.get_session()
    for _ in range(2):
        for half in halves:
            session.run(half)
        np.testing.assert_allclose(session.run(result), expected(WEIGHTS), rtol=2e-3)
        metric.reset_states()
    session.run(metric.update_state(targets, tf.constant(predictions)))
    np.testing.assert_allclose(session.run(metric.result()), expected(np.ones(12)), rtol=2e-3)
    assert not tf.trainable_variables() and not tf.global_variables()


def test_means_and_sums():
    mean, total = metrics.Mean(name="loss"), metrics.Sum()
    values = [mean([1.0, 2.0, 6.0]), mean([[1.0, 2.0], [3.0, 4.0]], sample_weight=[1.0, 0.0]), total([3.0, 4.0])]
    session = K.get_session()
    assert [float(session.run(value)) for value in values] == [3.0, pytest.approx(12 / 5), 7.0]
    assert [mean.name, metrics.SparseCategoricalAccuracy().name] == ["loss", "sparse_categorical_accuracy"]
    with pytest.raises(ValueError, match="Invalid curve"):
        metrics.AUC(curve="none")


class Largest(metrics.Metric):
    """The largest prediction of all."""

    def __init__(self, name="largest", **kwargs):
        super().__init__(name=name, **kwargs)
        self.value = self.add_weight("value", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        return self.value.assign(tf.maximum(self.value, tf.reduce_max(y_pred)))

    def result(self):
        return tf.identity(self.value)


def test_models_keep_them_over_batches():
    model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid", input_shape=(2,))])
    own = [metrics.Precision(name="right"), Largest(), "accuracy"]
    model.compile("sgd", "mse", metrics=own, weighted_metrics=[metrics.BinaryAccuracy(name="hits")])
    x = RANDOM.normal(size=(12, 2)).astype(np.float32)
    for _ in range(2):
        results = model.evaluate(x, T, batch_size=5, verbose=0, sample_weight=WEIGHTS)
        predictions = model.predict(x)
        hits = (predictions > 0.5) == T
        wanted = [T[predictions > 0.5].mean() if (predictions > 0.5).any() else 0, predictions.max(), hits.mean()]
        np.testing.assert_allclose(results[1:], [*wanted, np.average(hits[:, 0], weights=WEIGHTS)], rtol=1e-5)
    assert model.metrics_names == ["loss", "right", "largest", "acc", "weighted_hits"]
    history = model.fit(x, T, batch_size=5, epochs=2, verbose=0, validation_data=(x, T)).history
    assert history["val_largest"][1] == pytest.approx(model.predict(x).max(), rel=1e-5)


def test_masked_steps_are_left_out():
    shown = np.array([[1, 1, 0], [1, 0, 0]], bool)
    x = np.where(shown[..., None], RANDOM.normal(size=(2, 3, 2)), 0).astype(np.float32)
    model = keras.Sequential([keras.layers.Masking(input_shape=(3, 2)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "mse", metrics=[metrics.TruePositives(thresholds=0.0), metrics.MeanSquaredError()])
    y = np.ones((2, 3, 1))
    _, positives, error = model.evaluate(x, y, batch_size=1, verbose=0)
    assert positives == 3 and error == pytest.approx(((model.predict(x) - 1) ** 2)[shown].mean(), rel=1e-5)
