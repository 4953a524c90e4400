"""Sequence models of the older style."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.references.recurrent_reference import gru_step
from tests.support.sessions import randomized
from tfray.contrib import legacy_seq2seq

rnn_cell = tf.nn.rnn_cell
X = np.random.default_rng(0).normal(size=(3, 2, 4))


def gru_weights(values, scope):
    return {k.removeprefix(f"{scope}/gru_cell/"): v for k, v in values.items() if k.startswith(f"{scope}/gru_cell/")}


def steps_of(values):
    return [tf.constant(value) for value in values]


# -- decoders ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feeds_back", [False, True])
def test_rnn_decoder(session, feeds_back):
    loop = (lambda previous, i: previous * float(i)) if feeds_back else None
    outputs, state = legacy_seq2seq.rnn_decoder(
        steps_of(X), tf.zeros([2, 4], tf.float64), rnn_cell.GRUCell(4), loop, scope="rnnlm"
    )
    weights = gru_weights(randomized(session), "rnnlm")
    assert len(outputs) == 3
    expected, hidden = [], np.zeros((2, 4))
    for index in range(3):
        given = X[index] if not feeds_back or index == 0 else expected[-1] * index
        output, hidden = gru_step(weights, given, hidden)
        expected.append(output)
    np.testing.assert_allclose(session.run(outputs), expected, 1e-9)
    np.testing.assert_allclose(session.run(state), hidden, 1e-9)


def test_basic_and_tied_models(session):
    x = steps_of(X.astype(np.float32))
    basic, _ = legacy_seq2seq.basic_rnn_seq2seq(x, x[:2], rnn_cell.GRUCell(4))
    tied, _ = legacy_seq2seq.tied_rnn_seq2seq(x, x[:2], rnn_cell.GRUCell(4))
    names = {variable.op.name.rpartition("/gru_cell")[0] for variable in tf.trainable_variables()}
    assert names == {
        "basic_rnn_seq2seq/rnn",
        "basic_rnn_seq2seq/rnn_decoder",
        "tied_rnn_seq2seq/tied_rnn_seq2seq",
    }
    values = randomized(session)
    hidden = np.zeros((2, 4))
    weights = gru_weights(values, "tied_rnn_seq2seq/tied_rnn_seq2seq")
    for step in [*X, *X[:2]]:
        output, hidden = gru_step(weights, step, hidden)
    np.testing.assert_allclose(session.run(tied[-1]), output, 1e-4)
    assert len(basic) == 2 and session.run(basic[0]).shape == (2, 4)


def test_attention_decoder(session):
    memory = np.random.default_rng(1).normal(size=(2, 5, 3))
    outputs, state = legacy_seq2seq.attention_decoder(
        steps_of(X), tf.zeros([2, 6], tf.float64), tf.constant(memory), rnn_cell.GRUCell(6), output_size=7, num_heads=2,
        dtype=tf.float64,
    )  # fmt: skip
    scope = "attention_decoder"
    v = randomized(session)
    assert {f"{scope}/AttnW_1", f"{scope}/AttnV_0", f"{scope}/Attention_1/kernel", f"{scope}/kernel"} <= set(v)
    hidden, attended, expected = np.zeros((2, 6)), [np.zeros((2, 3))] * 2, []
    for step in X:
        joined = np.concatenate([step, *attended], 1) @ v[f"{scope}/kernel"] + v[f"{scope}/bias"]
        output, hidden = gru_step(gru_weights(v, scope), joined, hidden)
        attended = []
        for head in range(2):
            query = hidden @ v[f"{scope}/Attention_{head}/kernel"] + v[f"{scope}/Attention_{head}/bias"]
            inner = np.tanh(memory @ v[f"{scope}/AttnW_{head}"][0, 0] + query[:, None])
            scores = np.exp((v[f"{scope}/AttnV_{head}"] * inner).sum(2))
            attended.append(((scores / scores.sum(1, keepdims=True))[:, :, None] * memory).sum(1))
        projection = v[f"{scope}/AttnOutputProjection/kernel"], v[f"{scope}/AttnOutputProjection/bias"]
        expected.append(np.concatenate([output, *attended], 1) @ projection[0] + projection[1])
    np.testing.assert_allclose(session.run(outputs), expected, 1e-9)
    np.testing.assert_allclose(session.run(state), hidden, 1e-9)


@pytest.mark.parametrize("model", [legacy_seq2seq.embedding_rnn_seq2seq, legacy_seq2seq.embedding_attention_seq2seq])
def test_models_over_ids_feed_back_where_asked(session, model):
    ids = [tf.constant([1, 2]), tf.constant([3, 0]), tf.constant([2, 2])]
    feeds = tf.placeholder(tf.bool, [])
    keep = tf.placeholder_with_default(1.0, [])
    cell = rnn_cell.DropoutWrapper(rnn_cell.BasicLSTMCell(6), keep)
    outputs, state = model(ids, ids, cell, 4, 5, 3, feed_previous=feeds)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        taught, _ = model(ids, ids, rnn_cell.BasicLSTMCell(6), 4, 5, 3)
    assert outputs[0].shape.as_list() == [2, 5] and type(state) is rnn_cell.LSTMStateTuple
    randomized(session)
    given = session.run(outputs, {feeds: False})
    np.testing.assert_allclose(given, session.run(taught), 1e-5)
    own = session.run(outputs, {feeds: True})
    np.testing.assert_allclose(own[0], given[0], 1e-6)
    if (given[0].argmax(1) != [3, 0]).any():
        assert not np.allclose(own[1], given[1])


def test_buckets_share_weights(session):
    ids = [tf.constant([1, 2])] * 4
    weights = [tf.ones([2])] * 4
    outputs, losses = legacy_seq2seq.model_with_buckets(
        ids, ids, ids, weights, [(2, 2), (4, 3)],
        lambda x, y: legacy_seq2seq.embedding_attention_seq2seq(x, y, rnn_cell.GRUCell(6), 4, 5, 3),
    )  # fmt: skip
    count = len(tf.trainable_variables())
    assert [len(steps) for steps in outputs] == [2, 3] and count == 20
    session.run(tf.global_variables_initializer())
    assert all(value > 0 for value in session.run(losses))
    with pytest.raises(ValueError, match="targets has 2 steps"):
        legacy_seq2seq.model_with_buckets(ids, ids, ids[:2], weights, [(4, 3)], None)


# -- losses --------------------------------------------------------------------------------------------


def test_losses(session):
    random = np.random.default_rng(2)
    logits, targets = random.normal(size=(3, 2, 5)), random.integers(0, 5, (3, 2))
    weights = np.float64([[1, 0], [1, 0], [0.5, 0]])
    log_probs = logits - np.log(np.exp(logits).sum(2, keepdims=True))
    losses = -np.take_along_axis(log_probs, targets[:, :, None], 2)[:, :, 0] * weights
    lists = steps_of(logits), steps_of(targets), steps_of(weights)
    by_example = legacy_seq2seq.sequence_loss_by_example(*lists)
    summed = legacy_seq2seq.sequence_loss_by_example(*lists, average_across_timesteps=False)
    whole = legacy_seq2seq.sequence_loss(*lists)
    got = session.run([by_example, summed, whole])
    np.testing.assert_allclose(got[0], [losses[:, 0].sum() / 2.5, 0], 1e-9, 1e-12)
    np.testing.assert_allclose(got[1], losses.sum(0), 1e-9)
    np.testing.assert_allclose(got[2], losses[:, 0].sum() / 2.5 / 2, 1e-9)
    with pytest.raises(ValueError, match="3 logits, 2 targets"):
        legacy_seq2seq.sequence_loss(lists[0], lists[1][:2], lists[2])
