"""`tf.losses` and regularizers, against results recorded from TensorFlow 2.21 (``compat.v1``)."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

LABELS = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [0.25, 0.5, 0.25]], np.float32)
PREDICTIONS = (np.sin(np.arange(12) * 0.7).reshape(4, 3) * 0.49 + 0.5).astype(np.float32)
LOGITS = (np.cos(np.arange(12) * 1.3).reshape(4, 3) * 2).astype(np.float32)
CLASSES = np.array([[1], [0], [2], [1]])

REDUCTIONS = ["weighted_sum", "weighted_mean", "weighted_sum_over_batch_size", "weighted_sum_by_nonzero_weights"]
WEIGHTS = {
    "one": 1.0,
    "half": 0.5,
    "rows": np.array([[1], [0], [2], [0.5]], np.float32),
    "all": (np.arange(12).reshape(4, 3) % 4).astype(np.float32),
    "zero": 0.0,
}
ROW_WEIGHTS = {**WEIGHTS, "rows": np.array([1, 0, 2, 0.5], np.float32)}
LOSSES = {
    "absolute_difference": lambda w, **more: tf.losses.absolute_difference(LABELS, PREDICTIONS, w, **more),
    "mean_squared_error": lambda w, **more: tf.losses.mean_squared_error(LABELS, PREDICTIONS, w, **more),
    "huber_loss": lambda w, **more: tf.losses.huber_loss(LABELS, PREDICTIONS, w, 0.3, **more),
    "log_loss": lambda w, **more: tf.losses.log_loss(LABELS, PREDICTIONS, w, **more),
    "hinge_loss": lambda w, **more: tf.losses.hinge_loss(LABELS, LOGITS, w, **more),
    "sigmoid_cross_entropy": lambda w, **more: tf.losses.sigmoid_cross_entropy(LABELS, LOGITS, w, 0.1, **more),
    "cosine_distance": lambda w, **more: tf.losses.cosine_distance(LABELS, PREDICTIONS, 1, w, **more),
    "softmax_cross_entropy": lambda w, **more: tf.losses.softmax_cross_entropy(LABELS, LOGITS, w, 0.1, **more),
    "sparse_softmax_cross_entropy": lambda w, **more: tf.losses.sparse_softmax_cross_entropy(
        CLASSES, LOGITS, w, **more
    ),
    "mean_pairwise_squared_error": lambda w, reduction=None: tf.losses.mean_pairwise_squared_error(
        LABELS, PREDICTIONS, w
    ),
}
PER_EXAMPLE = ("softmax_cross_entropy", "sparse_softmax_cross_entropy")
RECORDED = {
    "absolute_difference": {
        "one": [4.9517, 0.412642, 0.412642, 0.412642],
        "half": [2.47585, 0.412642, 0.206321, 0.206321],
        "rows": [4.12608, 0.39296, 0.34384, 0.458453],
        "all": [6.01562, 0.334201, 0.501301, 0.668402],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "mean_squared_error": {
        "one": [3.17473, 0.264561, 0.264561, 0.264561],
        "half": [1.58737, 0.264561, 0.132281, 0.132281],
        "rows": [2.92603, 0.278669, 0.243836, 0.325114],
        "all": [3.9943, 0.221905, 0.332858, 0.443811],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "huber_loss": {
        "one": [1.0433, 0.0869421, 0.0869421, 0.0869421],
        "half": [0.521652, 0.0869421, 0.043471, 0.043471],
        "rows": [0.903198, 0.0860189, 0.0752665, 0.100355],
        "all": [1.24716, 0.0692869, 0.10393, 0.138574],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "log_loss": {
        "one": [13.0616, 1.08847, 1.08847, 1.08847],
        "half": [6.53082, 1.08847, 0.544235, 0.544235],
        "rows": [10.8558, 1.03388, 0.904648, 1.2062],
        "all": [21.1514, 1.17508, 1.76262, 2.35016],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "hinge_loss": {
        "one": [17.5224, 1.4602, 1.4602, 1.4602],
        "half": [8.76122, 1.4602, 0.730102, 0.730102],
        "rows": [11.6675, 1.11119, 0.972292, 1.29639],
        "all": [19.1508, 1.06394, 1.5959, 2.12787],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "sigmoid_cross_entropy": {
        "one": [12.7629, 1.06358, 1.06358, 1.06358],
        "half": [6.38147, 1.06358, 0.531789, 0.531789],
        "rows": [8.85373, 0.843212, 0.737811, 0.983748],
        "all": [15.1357, 0.84087, 1.26131, 1.68174],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "cosine_distance": {
        "one": [1.28661, 0.321652, 0.321652, 0.321652],
        "half": [0.643305, 0.321652, 0.160826, 0.160826],
        "rows": [1.91094, 0.545982, 0.477735, 0.63698],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "softmax_cross_entropy": {
        "one": [8.05875, 2.01469, 2.01469, 2.01469],
        "half": [4.02938, 2.01469, 1.00734, 1.00734],
        "rows": [5.4718, 1.56337, 1.36795, 1.82393],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "sparse_softmax_cross_entropy": {
        "one": [7.55411, 1.88853, 1.88853, 1.88853],
        "half": [3.77705, 1.88853, 0.944264, 0.944264],
        "rows": [5.13267, 1.46648, 1.28317, 1.71089],
        "zero": [0.0, 0.0, 0.0, 0.0],
    },
    "mean_pairwise_squared_error": {
        "one": [1.58586],
        "half": [0.792928],
        "rows": [1.73255],
        "all": [8.35996],
        "zero": [0.0],
    },
}


@pytest.mark.parametrize(("name", "weights"), [(name, weights) for name in RECORDED for weights in RECORDED[name]])
def test_recorded_losses(name, weights):
    table = ROW_WEIGHTS if name in PER_EXAMPLE else WEIGHTS
    expected = RECORDED[name][weights]
    losses = [LOSSES[name](table[weights], reduction=r) for r in REDUCTIONS[: len(expected)]]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(losses), expected, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "mean_pairwise_squared_error"])
def test_without_reduction_there_is_a_loss_for_each_element(name):
    table = ROW_WEIGHTS if name in PER_EXAMPLE else WEIGHTS
    losses = LOSSES[name](table["rows"], reduction=tf.losses.Reduction.NONE)
    total = LOSSES[name](table["rows"], reduction=tf.losses.Reduction.SUM)
    with tf.Session() as session:
        values, summed = session.run([losses, total])
    assert values.shape == {"cosine_distance": (4, 1)}.get(name, (4,) if name in PER_EXAMPLE else (4, 3))
    np.testing.assert_allclose(values.sum(), summed, rtol=1e-5)
    assert not values[1].any()


@pytest.mark.parametrize("name", LOSSES)
def test_names_and_collections(name):
    default = {"absolute_difference": name, "mean_squared_error": name, "mean_pairwise_squared_error": name}
    scope = default.get(name, name if name.endswith("_loss") else f"{name}_loss")
    first, second = LOSSES[name](1.0), LOSSES[name](1.0)
    assert (first.name, second.name) == (f"{scope}/value:0", f"{scope}_1/value:0")
    assert tf.losses.get_losses() == [first, second]
    assert tf.losses.get_losses(scope + "_1") == [second]
    assert first.shape.as_list() == []


@pytest.mark.parametrize("name", LOSSES)
def test_unknown_shapes(name):
    # Fed, so that nothing is known of any shape.
    def fed(value):
        return tf.placeholder_with_default(value, None)

    known, weights = LOSSES[name](0.5), fed(np.float32(0.5))
    unknown = {
        "cosine_distance": lambda: tf.losses.cosine_distance(fed(LABELS), fed(PREDICTIONS), 1, weights),
        "softmax_cross_entropy": lambda: tf.losses.softmax_cross_entropy(fed(LABELS), fed(LOGITS), weights, 0.1),
        "sparse_softmax_cross_entropy": lambda: tf.losses.sparse_softmax_cross_entropy(
            fed(CLASSES[:, 0]), fed(LOGITS), weights
        ),
        "sigmoid_cross_entropy": lambda: tf.losses.sigmoid_cross_entropy(fed(LABELS), fed(LOGITS), weights, 0.1),
        "hinge_loss": lambda: tf.losses.hinge_loss(fed(LABELS), fed(LOGITS), weights),
        "huber_loss": lambda: tf.losses.huber_loss(fed(LABELS), fed(PREDICTIONS), weights, 0.3),
    }.get(name, lambda: getattr(tf.losses, name)(fed(LABELS), fed(PREDICTIONS), weights))()
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run([known, unknown]), rtol=1e-5)


def test_gradients():
    logits = tf.constant(LOGITS)
    loss = tf.losses.softmax_cross_entropy(LABELS, logits, np.array([1, 0, 2, 1], np.float32))
    (gradient,) = tf.gradients(loss, logits)
    scores = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    with tf.Session() as session:
        expected = (scores - LABELS) * np.array([[1], [0], [2], [1]]) / 3
        np.testing.assert_allclose(session.run(gradient), expected, rtol=1e-4, atol=1e-6)
    labels = tf.constant(LABELS)
    assert tf.gradients(tf.losses.softmax_cross_entropy(labels, LOGITS), labels) == [None]


def test_one_error_for_all_elements_costs_nothing_in_pairs():
    loss = tf.losses.mean_pairwise_squared_error([[1.0, 2.0, 4.0]], [[2.0, 3.0, 5.0]])
    other = tf.losses.mean_pairwise_squared_error([[1.0, 2.0], [0.0, 0.0]], [[1.0, 4.0], [0.0, 1.0]], [1.0, 10.0])
    with tf.Session() as session:
        values = session.run([loss, other])
    # Of two elements the pair differs by 2 and by 1; both orders of it count.
    np.testing.assert_allclose(values, [0.0, 4.0 + 10 * 1.0], atol=1e-5)


def test_total_loss():
    with pytest.raises(InvalidArgumentError, match="no losses"):
        tf.losses.get_total_loss()
    tf.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0], scope="a")
    tf.losses.add_loss(tf.constant(5.0, name="b"))
    tf.losses.absolute_difference([0.0], [1.0], loss_collection="mine")
    tf.losses.absolute_difference([0.0], [1.0], loss_collection=None)
    assert len(tf.losses.get_losses()) == 2
    assert len(tf.losses.get_losses(loss_collection="mine")) == 1
    assert tf.losses.get_regularization_losses() == []
    no_regularization = tf.losses.get_regularization_loss()
    tf.get_variable("w", [2], initializer=tf.ones_initializer(), regularizer=tf.contrib.layers.l2_regularizer(0.5))
    totals = [
        tf.losses.get_total_loss(),
        tf.losses.get_total_loss(False),
        tf.losses.get_total_loss(False, scope="a"),
        tf.losses.get_regularization_loss(),
        no_regularization,
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(totals), [7.5, 7.0, 2.0, 0.5, 0.0])


def test_float64_logits_keep_their_dtype():
    loss = tf.losses.sigmoid_cross_entropy(LABELS, LOGITS.astype(np.float64))
    assert loss.dtype is tf.float64
    assert tf.losses.mean_squared_error(LABELS, PREDICTIONS.astype(np.float64)).dtype is tf.float32


UNKNOWN = [None, None, None]


@pytest.mark.parametrize(
    ("shape", "weights", "fits"),
    [
        (None, 2.0, True),
        (None, np.full((2, 1, 4), 3.0), True),
        (None, np.ones((2, 2, 2, 2)), False),
        (None, np.ones((2, 2, 4)), False),
        (UNKNOWN, np.full((2, 1, 4), 3.0), True),
        (UNKNOWN, np.ones((2, 3, 4)), True),
        (UNKNOWN, np.ones((2, 3, 5)), False),
        (UNKNOWN, np.ones((2, 2, 4)), False),
    ],
)
def test_weights_of_unknown_shapes_are_checked_in_the_step(session, shape, weights, fits):
    values = np.arange(24.0).reshape(2, 3, 4)
    losses, given = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, shape)
    fed = {losses: values, given: weights}
    weighted = tf.losses.compute_weighted_loss(losses, given, reduction=tf.losses.Reduction.NONE)
    fetches = [
        weighted,
        tf.metrics.mean(losses, given)[1],
        tf.losses.mean_pairwise_squared_error(losses, losses, given),
    ]
    session.run(tf.local_variables_initializer())
    if fits:
        np.testing.assert_allclose(session.run(fetches, fed)[0], values * weights)
        return
    for fetch in fetches:
        with pytest.raises(tf.errors.InvalidArgumentError, match="weights can not be broadcast to values"):
            session.run(fetch, fed)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: tf.losses.mean_squared_error(None, PREDICTIONS), "labels is None"),
        (lambda: tf.losses.mean_squared_error(LABELS, PREDICTIONS[:2]), "expected one shape"),
        (
            lambda: tf.losses.mean_squared_error(LABELS, PREDICTIONS, [1.0, 2.0, 3.0, 4.0]),
            "weights can not be broadcast",
        ),
        (lambda: tf.losses.mean_squared_error(LABELS, PREDICTIONS, [[1.0, 2.0]]), "weights can not be broadcast"),
        (lambda: tf.losses.mean_squared_error(LABELS, PREDICTIONS, reduction="mean"), "reduction is 'mean'"),
        (lambda: tf.losses.cosine_distance(LABELS, PREDICTIONS), "needs an axis"),
    ],
)
def test_what_is_refused(build, words):
    with pytest.raises(InvalidArgumentError, match=words):
        build()


# -- regularizers ----------------------------------------------------------------------------------------

VALUES = np.array([[1.0, -2.0], [0.0, 3.0]], np.float32)


@pytest.mark.parametrize(
    ("regularizer", "expected"),
    [
        (lambda: tf.contrib.layers.l1_regularizer(0.5), 3.0),
        (lambda: tf.contrib.layers.l2_regularizer(0.5), 3.5),
        (lambda: tf.contrib.layers.l1_l2_regularizer(0.5, 0.25), 4.75),
        (lambda: tf.contrib.layers.l1_l2_regularizer(0.0, 0.25), 1.75),
        (lambda: tf.contrib.layers.sum_regularizer([tf.contrib.layers.l1_regularizer(1.0), None]), 6.0),
        (lambda: tf.regularizers.l1(0.5), 3.0),
        (lambda: tf.regularizers.l2(0.5), 7.0),
        (lambda: tf.regularizers.l1_l2(0.5, 0.5), 10.0),
        (lambda: tf.regularizers.L1L2(), 0.0),
    ],
)
def test_regularizers(regularizer, expected):
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(regularizer()(tf.constant(VALUES))), expected, rtol=1e-6)


def test_regularizers_of_scopes():
    with tf.variable_scope("net", regularizer=tf.contrib.layers.l2_regularizer(0.1)):
        first = tf.get_variable("w", initializer=tf.constant(VALUES))
        tf.get_variable("b", [2], regularizer=tf.no_regularizer)
    with tf.variable_scope("net", reuse=True):
        assert tf.get_variable("w", [2, 2]) is first
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.name == "net/w/Regularizer/l2_regularizer:0"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(loss), 0.7, rtol=1e-6)


def test_apply_regularization():
    weights = [tf.constant(VALUES), tf.constant([2.0])]
    total = tf.contrib.layers.apply_regularization(tf.contrib.layers.l2_regularizer(1.0), weights)
    nothing = tf.contrib.layers.apply_regularization(tf.contrib.layers.l2_regularizer(0.0), weights)
    assert tf.losses.get_regularization_losses() == [total, nothing]
    with tf.Session() as session:
        assert session.run([total, nothing]) == [9.0, 0.0]
    with pytest.raises(InvalidArgumentError, match="expected a scalar"):
        tf.contrib.layers.apply_regularization(lambda weight: weight, weights)
    with pytest.raises(InvalidArgumentError, match="no weights"):
        tf.contrib.layers.apply_regularization(tf.contrib.layers.l1_regularizer(1.0))


@pytest.mark.parametrize("scale", [1, "a", -0.5])
def test_scales(scale):
    with pytest.raises(ValueError, match="scale"):
        tf.contrib.layers.l2_regularizer(scale)
    with pytest.raises(ValueError, match="scale"):
        tf.contrib.layers.l1_regularizer(scale)


def test_the_sum_of_no_regularizers_is_none():
    assert tf.contrib.layers.sum_regularizer([]) is None and tf.contrib.layers.sum_regularizer([None]) is None
    assert tf.contrib.layers.l1_l2_regularizer(0.0, 0.0)(tf.ones([2])) is None
