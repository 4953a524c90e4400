"""Connectionist temporal classification: what goes beyond single operations."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.op_samples import grid
from tests.support.references import ctc_reference


def sparse(rows):
    indices = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    values = np.int32([label for row in rows for label in row])
    return tf.SparseTensor(np.array(indices).reshape(-1, 2), values, [len(rows), max(map(len, rows))])


@pytest.mark.parametrize("seed", range(4))
def test_loss_and_beams_of_random_sequences(seed):
    random = np.random.default_rng(seed)
    time, batch, classes = random.integers(1, 6), 6, random.integers(2, 5)
    logits = 3 * random.normal(size=(time, batch, classes))
    lengths = random.integers(1, time + 1, batch).astype(np.int32)
    rows = [random.integers(0, classes - 1, random.integers(0, length + 1)) for length in lengths]
    loss = tf.nn.ctc_loss(sparse([*rows]), logits, lengths)
    probabilities = [ctc_reference.probabilities(logits[:length, b]) for b, length in enumerate(lengths)]
    paths = min(6, *map(len, probabilities))
    decoded, scores = tf.nn.ctc_beam_search_decoder_v2(logits, lengths, beam_width=500, top_paths=paths)
    with tf.Session() as session:
        found, beams, scores = session.run([loss, decoded, scores])
    for b, by_labels in enumerate(probabilities):
        with np.errstate(divide="ignore"):
            assert found[b] == pytest.approx(-np.log(by_labels.get(tuple(rows[b].tolist()), 0.0)))
        likely = sorted(by_labels, key=by_labels.get, reverse=True)[:paths]
        for beam, score, labels in zip(beams, scores[b], likely, strict=True):
            assert score == pytest.approx(np.log(by_labels[labels]))
            assert tuple(beam.values[beam.indices[:, 0] == b].tolist()) == labels


def test_recorded_values():
    """Loss, gradient and beams as TensorFlow 2.21 computes them."""
    logits = np.float32(np.sin(np.arange(5 * 2 * 4)).reshape(5, 2, 4) * 3)
    x = tf.constant(logits)
    for options, expected, d_expected in RECORDED:
        loss = tf.nn.ctc_loss(sparse([[0, 0, 1], [1]]), x, [5, 4], **options)
        (d_x,) = tf.gradients(loss, [x])
        with tf.Session() as session:
            found, d_found = session.run([loss, d_x])
        np.testing.assert_allclose(found, expected, rtol=2e-6)
        np.testing.assert_allclose(d_found[2], d_expected, atol=2e-6)
        assert (d_found[4, 1] == 0).all()
    decoded, scores = tf.nn.ctc_beam_search_decoder_v2(x, [5, 4], top_paths=2)
    with tf.Session() as session:
        found, scores = session.run([decoded, scores])
    assert [path.values.tolist() for path in found] == [[2, 0, 1, 2, 0], [1, 0, 1, 2, 1, 0]]
    np.testing.assert_allclose(scores, [[-1.7798406, -1.943867], [-1.0578783, -1.4617947]], rtol=2e-6)


RECORDED = [
    (
        {},
        [9.373844, 3.8209283],
        [[0.125759, 0.025996, 0.048871, -0.200627], [0.536628, -0.570316, 0.033782, -0.000093]],
    ),
    (
        {"ctc_merge_repeated": False},
        [4.4394774, 4.6043062],
        [[-0.094119, 0.02565, 0.048871, 0.0196], [0.536628, -0.566973, 0.033782, -0.003436]],
    ),
    (
        {"preprocess_collapse_repeated": True},
        [3.581634, 3.8209283],
        [[-0.01608, 0.024482, 0.048871, -0.057273], [0.536628, -0.570316, 0.033782, -0.000093]],
    ),
]


def test_batch_major_inputs():
    logits = np.float32(grid(5, 2, 4))
    losses = [
        tf.nn.ctc_loss(sparse([[0], [1, 2]]), logits, [5, 4]),
        tf.nn.ctc_loss(sparse([[0], [1, 2]]), logits.transpose(1, 0, 2), [5, 4], time_major=False),
    ]
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run(losses), rtol=1e-6)


def test_labels_that_do_not_fit():
    x = tf.constant(np.float32(grid(4, 3, 4)))
    # Two equal labels need three steps; three labels do not fit two steps at all; the last fits.
    labels = sparse([[0, 0], [0, 1, 2], [1, 2, 3]])
    loss = tf.nn.ctc_loss(labels, x, [2, 2, 4], ignore_longer_outputs_than_inputs=True)
    (d_x,) = tf.gradients(loss, [x])
    with tf.Session() as session:
        found, d_found = session.run([loss, d_x])
    assert np.isinf(found[0]) and found[1] == 0 and np.isfinite(found[2])
    assert np.isfinite(d_found).all() and (d_found[:, 1] == 0).all() and d_found[:2, 2].any()


def test_long_sequences_stay_precise():
    random = np.random.default_rng(0)
    logits = 20 * random.normal(size=(400, 2, 6))
    rows = [random.integers(0, 5, 100), random.integers(0, 5, 30)]
    single, double = (tf.constant(logits, dtype) for dtype in (tf.float32, tf.float64))
    losses = [tf.nn.ctc_loss(sparse(rows), x, [400, 350]) for x in (single, double)]
    with tf.Session() as session:
        (x, y), d_x, d_y = session.run([losses, tf.gradients(losses[0], single)[0], tf.gradients(losses[1], double)[0]])
    np.testing.assert_allclose(x, y, rtol=1e-6)
    np.testing.assert_allclose(d_x, d_y, atol=3e-4)
    np.testing.assert_allclose(d_y.sum(axis=2), 0, atol=1e-9)


def test_a_second_derivative_is_refused():
    x = tf.placeholder(tf.float32, [3, 1, 3])
    (d_x,) = tf.gradients(tf.nn.ctc_loss(sparse([[0]]), x, [3]), [x])
    with pytest.raises(LookupError, match="explicitly disabled"):
        tf.gradients(d_x, [x])


def test_a_batch_of_nothing_is_refused():
    loss = tf.nn.ctc_loss(tf.SparseTensor(np.zeros([0, 2], np.int64), [], [0, 0]), np.zeros([1, 0, 2], np.float32), [])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="batch_size must not be 0"):
        session.run(loss)


def test_narrow_beams():
    """A narrow search still finds what is plain, and merges labels only when told."""
    path = [0, 3, 1, 3, 1, 1, 2, 3]
    logits = np.full((8, 1, 4), -5.0)
    logits[np.arange(8), 0, path] = 5
    for merge, expected in [(False, [0, 1, 1, 2]), (True, [0, 1, 2])]:
        (decoded,), score = tf.nn.ctc_beam_search_decoder(logits, [8], beam_width=2, merge_repeated=merge)
        with tf.Session() as session:
            value, found = session.run([decoded, score])
        assert value.values.tolist() == expected and value.dense_shape.tolist() == [1, len(expected)]
        assert -0.01 < found[0, 0] < 0


def test_many_classes_are_cut_to_the_likely_ones():
    logits = np.random.default_rng(3).normal(size=(6, 2, 40)) * 4
    with tf.Session() as session:
        narrow, wide = (
            session.run(tf.nn.ctc_beam_search_decoder_v2(logits, [6, 5], beam_width=width, top_paths=2))
            for width in (12, 400)
        )
    assert (narrow[1] <= wide[1] + 1e-9).all() and narrow[1][:, 0] == pytest.approx(wide[1][:, 0])
    assert (narrow[0][0].values == wide[0][0].values).all()


def test_training_on_unaligned_labels():
    """A linear model of noisy one-hot inputs comes to read the labels off."""
    random = np.random.default_rng(0)
    rows = [random.integers(0, 3, 4) for _ in range(8)]
    inputs = np.zeros((16, 8, 4), np.float32)
    for b, row in enumerate(rows):
        frames = [c for label in row for c in (label, label, 3, 3)]
        inputs[np.arange(16), b, frames] = 1
    inputs += 0.1 * random.normal(size=inputs.shape).astype(np.float32)
    w = tf.Variable(0.01 * random.normal(size=(4, 4)).astype(np.float32))
    logits = tf.reshape(tf.matmul(inputs.reshape(-1, 4), w), [16, 8, 4])
    lengths = np.full(8, 16, np.int32)
    loss = tf.reduce_mean(tf.nn.ctc_loss(sparse(rows), logits, lengths))
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    decoded, _ = tf.nn.ctc_greedy_decoder(logits, lengths)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(150):
            session.run(step)
        assert session.run(decoded[0]).values.tolist() == np.concatenate(rows).tolist()


def test_padded_labels():
    """The names of tf.keras.backend and tf.contrib.layers."""
    backend = tf.keras.backend
    logits = np.float32(grid(2, 5, 4))
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    labels, counts, steps = np.int32([[0, 2, 0], [1, 0, 0]]), np.int32([[2], [1]]), np.int32([[5], [4]])
    cost = backend.ctc_batch_cost(labels, probabilities, steps, counts)
    assert cost.shape == [2, 1]
    expected = tf.nn.ctc_loss(sparse([[0, 2], [1]]), logits, steps[:, 0], time_major=False)
    found = [backend.ctc_decode(probabilities, steps[:, 0], greedy=greedy, top_paths=1) for greedy in (True, False)]
    made = tf.contrib.layers.dense_to_sparse([[5, 0], [6, 7]])
    with tf.Session() as session:
        values = session.run([cost[:, 0], expected, found, made])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-4)
    best = ctc_reference.labels_of_path(logits[0].argmax(1), 3)
    assert tuple(values[2][0][0][0][0][: len(best)]) == best and values[2][1][1].shape == (2, 1)
    assert values[3].indices.tolist() == [[0, 0], [1, 0], [1, 1]] and values[3].values.tolist() == [5, 6, 7]
