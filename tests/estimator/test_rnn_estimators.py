"""`tf.contrib.estimator.RNNEstimator` and `RNNClassifier`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tfray as tf

RANDOM = np.random.default_rng(0)
LENGTHS = RANDOM.integers(1, 6, 64)
ROWS = [RANDOM.integers(0, 4, length) for length in LENGTHS]
LAST = np.array([int(row[-1] >= 2) for row in ROWS])


def column():
    tokens = tf.contrib.feature_column.sequence_categorical_column_with_identity("tokens", 4)
    return tf.feature_column.indicator_column(tokens)


def tokens():
    indices = [[i, j] for i, row in enumerate(ROWS) for j in range(len(row))]
    return tf.SparseTensor(indices, np.concatenate(ROWS), [len(ROWS), 5])


def all_examples():
    return {"tokens": tokens(), "bias": tf.ones([len(ROWS), 2])}, tf.constant(LAST)


def predictions(estimator):
    """Of one batch: the input has no end."""
    return itertools.islice(estimator.predict(lambda: all_examples()[0]), len(ROWS))


@pytest.mark.parametrize("cell_type", [None, "lstm", "gru", tf.nn.rnn_cell.BasicRNNCell])
def test_sequences_are_classified_by_their_last_step(cell_type):
    classifier = tf.contrib.estimator.RNNClassifier(
        [column()],
        num_units=[8],
        cell_type=cell_type,
        optimizer=lambda: tf.train.AdamOptimizer(0.05),
        config=tf.estimator.RunConfig(tf_random_seed=1),
    )
    classifier.train(all_examples, steps=60)
    found = classifier.evaluate(all_examples, steps=1)
    assert found["accuracy"] == 1.0
    classes = [each["class_ids"][0] for each in predictions(classifier)]
    np.testing.assert_array_equal(classes, LAST)


def test_names_of_variables():
    """As in TensorFlow 1.15, with a part for each parameter server."""
    head = tf.contrib.estimator.regression_head()
    context = [tf.feature_column.numeric_column("bias", [2])]
    estimator = tf.contrib.estimator.RNNEstimator(head, [column()], context, [3, 4])
    estimator.train(lambda: (all_examples()[0], tf.ones([len(ROWS), 1])), steps=1)
    names = {name for name in estimator.get_variable_names() if not name.endswith("Adagrad")}
    cells = {f"rnn/rnn/multi_rnn_cell/cell_{n}/basic_rnn_cell/{part}" for n in (0, 1) for part in ("kernel", "bias")}
    assert names == {"global_step", "rnn/logits/kernel", "rnn/logits/bias", *cells}
    kernel = estimator.get_variable_value("rnn/rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel")
    assert kernel.shape == (4 + 2 + 3, 3)  # every step is given the context too


def test_the_logits_are_those_of_the_last_step():
    """Against a recurrence in NumPy."""
    estimator = tf.contrib.estimator.RNNEstimator(tf.contrib.estimator.regression_head(), [column()], num_units=[3])
    estimator.train(lambda: (all_examples()[0], tf.ones([len(ROWS), 1])), steps=1)
    kernel, bias, last, offset = (
        estimator.get_variable_value(f"rnn/{name}")
        for name in ("rnn/basic_rnn_cell/kernel", "rnn/basic_rnn_cell/bias", "logits/kernel", "logits/bias")
    )
    expected = []
    for row in ROWS:
        state = np.zeros(3)
        for token in row:
            state = np.tanh(np.concatenate([np.eye(4)[token], state]) @ kernel + bias)
        expected.append(state @ last + offset)
    found = [each["predictions"] for each in predictions(estimator)]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"num_units": [2], "cell_type": "transformer"},
        {"num_units": [2], "rnn_cell_fn": lambda mode: tf.nn.rnn_cell.GRUCell(2)},
    ],
)
def test_malformed_cells_are_refused(arguments):
    with pytest.raises(ValueError, match=r"rnn_cell_fn|expected"):
        tf.contrib.estimator.RNNClassifier([column()], **arguments)


def test_a_cell_may_depend_on_the_mode():
    modes = []

    def make(mode):
        modes.append(mode)
        return tf.nn.rnn_cell.GRUCell(2)

    classifier = tf.contrib.estimator.RNNClassifier([column()], rnn_cell_fn=make, n_classes=3)
    classifier.train(all_examples, steps=1)
    classifier.evaluate(all_examples, steps=1)
    assert modes == ["train", "eval"]
