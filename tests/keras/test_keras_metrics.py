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
    with pytest.raises(ValueError, match='Invalid AUC curve value "none"'):
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


# -- tables, shares at a rate, and means of other kinds --------------------------------------------------


def unions(weights):
    predicted = SHARES.argmax(1)
    both = np.array([weights[(predicted == c) & (CLASSES[:, 0] == c)].sum() for c in range(3)])
    either = np.array([weights[(predicted == c) | (CLASSES[:, 0] == c)].sum() for c in range(3)])
    return (both[either > 0] / either[either > 0]).mean()


def rates(weights):
    limits = np.linspace(0, 1, 50)
    yes = P[:, 0] > limits[:, None]
    hits, false = (weights * yes * T[:, 0]).sum(1), (weights * yes * (1 - T[:, 0])).sum(1)
    return hits / (weights * T[:, 0]).sum(), 1 - false / (weights * (1 - T[:, 0])).sum()


def best_two(weights):
    """The share of the positives among the two highest predictions of each example."""
    chosen = np.argsort(np.argsort(-SHARES, 1), 1) < 2
    return (weights[:, None] * chosen * ONE_HOT).sum() / (weights[:, None] * chosen).sum()


def second_class(weights):
    says = SHARES[:, 1] > 0.4
    return (weights * says * ONE_HOT[:, 1]).sum() / (weights * ONE_HOT[:, 1]).sum()


def sensitivity(weights):
    found, rejected = rates(weights)
    return found[np.abs(rejected - 0.6).argmin()]


def specificity(weights):
    found, rejected = rates(weights)
    return rejected[np.abs(found - 0.7).argmin()]


OTHERS = [
    (lambda: metrics.MeanIoU(3), CLASSES[:, 0], SHARES.argmax(1), unions),
    (lambda: metrics.SensitivityAtSpecificity(0.6, 50), T, P, sensitivity),
    (lambda: metrics.SpecificityAtSensitivity(0.7, 50), T, P, specificity),
    (lambda: metrics.Precision(top_k=2), ONE_HOT, SHARES, best_two),
    (lambda: metrics.Recall(0.4, class_id=1), ONE_HOT, SHARES, second_class),
    (
        lambda: metrics.CosineSimilarity(),
        ONE_HOT,
        SHARES,
        lambda w: np.average((ONE_HOT * SHARES).sum(1) / np.linalg.norm(SHARES, axis=1), weights=w),
    ),
    (
        lambda: metrics.MeanRelativeError(P),
        T,
        P,
        lambda w: np.average(np.abs(T - P)[:, 0] / P[:, 0], weights=w),
    ),
    (lambda: metrics.LogCoshError(), T, P, lambda w: np.average(np.log(np.cosh(T - P))[:, 0], weights=w)),
]


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("row", range(len(OTHERS)))
def test_tables_and_rates(row, weights):
    make, targets, predictions, expected = OTHERS[row]
    metric = make()
    y_true = tf.placeholder(tf.int64 if targets.dtype.kind == "i" else tf.float32, targets.shape)
    y_pred = tf.placeholder(tf.int64 if predictions.dtype.kind == "i" else tf.float32, predictions.shape)
    update = metric.update_state(y_true, y_pred, sample_weight=weights)
    result = metric.result()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update, {y_true: targets, y_pred: predictions})
        found = session.run(result)
    np.testing.assert_allclose(found, expected(np.ones(12) if weights is None else weights), rtol=1e-4, atol=1e-5)


def test_the_mean_of_tensors():
    metric = metrics.MeanTensor()
    with pytest.raises(ValueError, match="does not have any result yet"):
        metric.result()
    first = metric([[1.0, 2.0], [3.0, 4.0]], sample_weight=[1.0, 0.0])
    second = metric([[5.0, 6.0], [7.0, 8.0]])
    with pytest.raises(ValueError, match="must always have the same shape"):
        metric([1.0])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(first).tolist() == [[1, 2], [0, 0]]
        assert session.run(second).tolist() == [[3, 4], [7, 8]]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: metrics.SensitivityAtSpecificity(1.5), "`specificity` must be in the range"),
        (lambda: metrics.SpecificityAtSensitivity(0.5, 0), "`num_thresholds` must be > 0"),
    ],
)
def test_rates_that_are_none(build, words):
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize(
    ("size", "loss", "accuracy", "crossentropy"),
    [
        (1, "binary_crossentropy", 0.5, 0.8205),
        (1, "squared_hinge", 0.5, 0.8205),
        (1, "sparse_categorical_crossentropy", 0.0, 1.3508),
        (3, "sparse_categorical_crossentropy", 0.3333, 1.0986),
        (3, "categorical_crossentropy", 0.3333, 1.0986),
    ],
)
def test_names_that_leave_the_kind_to_loss_and_output(size, loss, accuracy, crossentropy):
    """The values are those of TensorFlow 1.15, whose names in logs are short, too."""
    x = np.linspace(0, 1, 12).reshape(6, 2).astype(np.float32)
    y = np.array([0, 1, 2, 0, 1, 2] if size == 3 else [0] * 6 if loss.startswith("sparse") else [0, 1, 0, 1, 1, 0])
    y = np.eye(3)[y] if loss == "categorical_crossentropy" else y
    layer = keras.layers.Dense(size, kernel_initializer="ones", activation="sigmoid", input_shape=(2,))
    model = keras.Sequential([layer])
    model.compile("sgd", loss, metrics=["accuracy", "crossentropy"])
    assert model.metrics_names == ["loss", "acc", "ce"]
    assert model.evaluate(x, y, verbose=0)[1:] == pytest.approx([accuracy, crossentropy], abs=1e-4)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [  # of TensorFlow 1.15
        ({}, 0.785714),
        ({"summation_method": "majoring"}, 1.0),
        ({"summation_method": "minoring"}, 0.571429),
        ({"curve": "PR"}, 0.916613),
        ({"curve": "PR", "summation_method": "majoring"}, 1.0),
        ({"curve": "PR", "summation_method": "minoring"}, 0.3),
        ({"thresholds": [0.5]}, 0.785714),
    ],
)
def test_areas_by_rectangles(settings, expected):
    metric = metrics.AUC(**({"num_thresholds": 3} | settings))
    area = metric([0, 0, 1, 1], [0, 0.5, 0.3, 0.9], sample_weight=[1, 2, 3, 4])
    assert K.get_session().run(area) == pytest.approx(expected, abs=1e-5)


def test_variables_have_the_names_of_what_they_count():
    made = [metrics.Precision(name="mine"), metrics.Recall()]
    assert [variable.op.name for metric in made for variable in metric.variables] == [
        "true_positives", "false_positives", "true_positives_1", "false_negatives",
    ]  # fmt: skip


def test_metrics_without_a_name_are_numbered_and_those_of_one_name_count_once():
    """As in TensorFlow 1.15."""
    tf.reset_default_graph()
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(3)(inputs))
    rates = [keras.metrics.AUC(), keras.metrics.AUC(), keras.metrics.Precision()]
    model.compile("sgd", "mse", metrics=["mae", "mae", "accuracy", "acc", *rates, "mse", keras.losses.mse])
    names = ["loss", "mean_absolute_error", "acc", "auc", "auc_1", "precision", "mean_squared_error"]
    assert model.metrics_names == names
    assert keras.metrics.Precision().name == "precision_1" and keras.metrics.Mean().name == "mean"


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (lambda: keras.metrics.TopKCategoricalAccuracy(3), {"name": "top_k_categorical_accuracy", "k": 3}),
        (lambda: keras.metrics.BinaryAccuracy("mine", None, 0.3), {"name": "mine", "threshold": 0.3}),
        (lambda: keras.metrics.LogCoshError(), {"name": "logcosh"}),
        (lambda: keras.metrics.KLDivergence(), {"name": "kullback_leibler_divergence"}),
    ],
)
def test_arguments_by_place(make, settings):
    metric = make()
    assert metric.name == settings["name"] and metric.get_config().items() >= settings.items()


class Near(tf.keras.metrics.Metric):
    """The mean number of predictions near to their targets; its update returns nothing, as in TensorFlow's examples."""

    def __init__(self, name="near", **kwargs):
        super().__init__(name=name, **kwargs)
        self.total, self.batches = self.add_weight("total"), self.add_weight("batches")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(tf.reduce_sum(tf.cast(tf.abs(y_true - y_pred) < 0.5, tf.float32)))
        self.batches.assign_add(1.0)

    def result(self):
        return self.total / self.batches


class HalfReturned(Near):
    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(tf.reduce_sum(y_true))
        return self.batches.assign_add(1.0)


def test_all_that_an_update_changes_is_changed_whatever_it_returns():
    # Values of TensorFlow 1.15: batches of 8, 8 and 4.
    x = np.arange(20, dtype=np.float32).reshape(20, 1) / 20
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse", metrics=[Near(), HalfReturned("half")])
    history = model.fit(x, 2 * x, batch_size=8, epochs=2, verbose=0).history
    np.testing.assert_allclose([history["near"], history["half"]], [[10 / 3] * 2, [19 / 3] * 2], rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(x, 2 * x, batch_size=8, verbose=0)[1:], [10 / 3, 19 / 3], rtol=1e-5)


def test_an_update_does_not_begin_its_variables_anew():
    class Late(Near):
        def update_state(self, y_true, y_pred, sample_weight=None):
            if len(self.variables) == 2:
                self.add_weight("late", initializer="ones")
            self.variables[2].assign_add(1.0)

        def result(self):
            return tf.identity(self.variables[2])

    metric = Late()
    update = metric.update_state(tf.zeros([2]), tf.zeros([2]))
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for expected in (2, 3, 4):
            session.run(update)
            assert session.run(metric.result()) == expected


def test_changes_of_an_update_are_made_in_the_order_in_which_it_asks_for_them():
    class Doubling(Near):
        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign(self.total + tf.reduce_sum(y_true))
            self.batches.assign_add(tf.cast(tf.shape(y_true)[0], tf.float32))
            self.total.assign(self.total * 2.0)

    values, metric = tf.placeholder(tf.float32, [None]), Doubling("first")
    update, result, called = metric.update_state(values, values), metric.result(), Doubling("second")(values, values)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for expected in (3.0, 4.5):  # those of TensorFlow 1.15
            session.run(update, {values: [1.0, 2.0]})
            assert session.run(result) == expected
        assert session.run(called, {values: [1.0, 2.0]}) == 3.0
        assert session.run(called, {values: [1.0]}) == pytest.approx(14 / 3)


def test_a_metric_of_others_has_their_variables_and_forgets_with_them():
    class F1(tf.keras.metrics.Metric):
        def __init__(self, name="f1", **kwargs):
            super().__init__(name=name, **kwargs)
            self.parts = [tf.keras.metrics.Precision(), tf.keras.metrics.Recall()]

        def update_state(self, y_true, y_pred, sample_weight=None):
            for part in self.parts:
                part.update_state(y_true, y_pred, sample_weight)

        def result(self):
            precision, recall = (part.result() for part in self.parts)
            return 2 * precision * recall / (precision + recall)

    x = np.sin(np.arange(40, dtype=np.float32)).reshape(20, 2)
    y = (x[:, :1] > 0).astype(np.float32)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, "sigmoid", input_shape=(2,), kernel_initializer="ones")])
    metric = F1()
    model.compile(tf.keras.optimizers.SGD(0.1), "binary_crossentropy", metrics=[metric])
    history = model.fit(x, y, batch_size=8, epochs=2, verbose=0, shuffle=False).history
    np.testing.assert_allclose(history["f1"], [0.8421] * 2, atol=1e-4)  # TensorFlow 1.15's
    guessed, true = model.predict(x[:8]) > 0.5, y[:8] > 0
    expected = 2 * (guessed & true).sum() / (guessed.sum() + true.sum())
    assert model.evaluate(x[:8], y[:8], verbose=0)[1] == pytest.approx(expected, rel=1e-5)
    names = [variable.op.name.rpartition("/")[2] for variable in metric.variables]
    assert names == ["true_positives", "false_positives", "true_positives_1", "false_negatives"]
