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
        "combined_tied_rnn_seq2seq/tied_rnn_seq2seq",
    }
    values = randomized(session)
    hidden = np.zeros((2, 4))
    weights = gru_weights(values, "combined_tied_rnn_seq2seq/tied_rnn_seq2seq")
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


IDS = [[0, 1], [2, 3], [4, 0]]
TARGETS = [[0, 0], [1, 2], [3, 4]]


def with_values(make):
    """Values of a model whose variables have values that can be had again, and their names."""
    with tf.variable_scope("root"):
        made = make([tf.constant(each) for each in IDS], [tf.constant(each) for each in TARGETS])
    names = [variable.op.name for variable in tf.trainable_variables()]
    with tf.Session() as session:
        for seed, variable in enumerate(tf.trainable_variables()):
            variable.load(np.random.RandomState(seed).normal(size=variable.shape.as_list()) * 0.7, session)
        return session.run(made), names


PROJECTION = (np.arange(10, dtype=np.float32).reshape(2, 5) / 10, np.arange(5, dtype=np.float32) / 5)
TIED = {
    "taught": (
        rnn_cell.GRUCell,
        {},
        [[-0.222, 0.4806, 1.224, -0.7553, -1.6569], [0.1418, 0.2705, 1.1241, -0.7164, -1.7299]],
        [[0.5889, -0.1676], [0.6088, 0.1553]],
    ),
    "fewer ids": (
        rnn_cell.GRUCell,
        {"num_decoder_symbols": 4, "feed_previous": True},
        [[0.0212, 0.7101, 1.1271, -0.8868], [0.0207, 0.6904, 1.1422, -0.88]],
        [[0.6946, 0.3255], [0.697, 0.3083]],
    ),
    "projected": (
        rnn_cell.GRUCell,
        {"output_projection": PROJECTION, "feed_previous": True},
        [[0.5788, 0.1239], [0.5854, 0.11]],
        [[0.5788, 0.1239], [0.5854, 0.11]],
    ),
    "tensor, fed back": (
        rnn_cell.BasicLSTMCell,
        {"feed_previous": 1},
        [[-0.545, 0.2089, -0.8172, 1.0298, -0.2805], [-0.5474, 0.2083, -0.8151, 1.0339, -0.2782]],
        [[-0.5328, 0.631], [-0.538, 0.612], [-0.4222, 0.2086], [-0.4251, 0.2033]],
    ),
    "tensor, taught": (
        rnn_cell.BasicLSTMCell,
        {"feed_previous": 0},
        [[-0.6425, 0.1847, -0.7536, 1.1782, -0.2051], [-0.7717, 0.1534, -0.8042, 1.2832, -0.2233]],
        [[-0.7263, 0.1266], [-0.917, 0.5557], [-0.5321, 0.0467], [-0.615, 0.1493]],
    ),
}


@pytest.mark.parametrize("case", TIED)
def test_tied_models_over_ids(case):
    """The values that TensorFlow 1.15 gives."""
    make, settings, outputs, states = TIED[case]
    if case.startswith("tensor"):
        settings = {"feed_previous": tf.constant(bool(settings["feed_previous"]))}
    tied = legacy_seq2seq.embedding_tied_rnn_seq2seq
    (found, state), names = with_values(lambda ids, targets: tied(ids, targets, make(2), 5, 3, **settings))
    np.testing.assert_allclose(found[2], outputs, atol=1e-4)
    np.testing.assert_allclose(np.array(state).reshape(-1, 2), states, atol=1e-4)
    scope = "root/embedding_tied_rnn_seq2seq"
    assert names[0] == f"{scope}/embedding" and names[1].startswith(f"{scope}/combined_tied_rnn_seq2seq/tied_rnn")


def test_tied_models_check_their_projection():
    with pytest.raises(ValueError, match="compatible"):
        legacy_seq2seq.embedding_tied_rnn_seq2seq(
            [tf.constant([0])], [tf.constant([0])], rnn_cell.GRUCell(2), 4, 3, output_projection=PROJECTION
        )


def test_several_decoders():
    cells = {name: rnn_cell.GRUCell(2) for name in "ab"}
    (found, states), names = with_values(
        lambda ids, targets: legacy_seq2seq.one2many_rnn_seq2seq(
            ids, {"a": targets, "b": targets[:2]}, rnn_cell.GRUCell(2), cells, 5, {"a": 5, "b": 6}, 3
        )
    )
    np.testing.assert_allclose(found["a"][2][0], [1.6578, 0.2911, -1.1303, -1.8601, 0.2603], atol=1e-4)
    np.testing.assert_allclose(found["b"][1][1], [0.111, 1.5077, -0.0942, 0.3341, -0.2891, 0.2181], atol=1e-4)
    np.testing.assert_allclose(states["a"], [[0.7711, 0.5665], [0.8967, -0.3966]], atol=1e-4)
    scope = "root/one2many_rnn_seq2seq"
    assert names[0] == f"{scope}/rnn/embedding_wrapper/embedding"
    assert f"{scope}/one2many_decoder_b/embedding_rnn_decoder/embedding" in names


@pytest.mark.parametrize("feeds", [True, "tensor"])
def test_several_decoders_feed_back(feeds):
    given = tf.constant(True) if feeds == "tensor" else feeds
    (found, states), _ = with_values(
        lambda ids, targets: legacy_seq2seq.one2many_rnn_seq2seq(
            ids, {1: targets}, rnn_cell.BasicLSTMCell(2), {1: rnn_cell.BasicLSTMCell(2)}, 5, {1: 5}, 3, given
        )
    )
    np.testing.assert_allclose(found[1][2][1], [1.3622, -0.0451, -0.2897, 0.5879, -0.779], atol=1e-4)
    np.testing.assert_allclose(states[1].h, [[0.066, 0.3725], [0.0773, 0.3062]], atol=1e-4)
    with pytest.raises(ValueError, match="other keys"):
        legacy_seq2seq.one2many_rnn_seq2seq([], {1: []}, rnn_cell.GRUCell(2), {}, 5, {}, 3)
