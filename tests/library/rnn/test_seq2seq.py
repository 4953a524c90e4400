"""Attention and decoders: against plain NumPy, in every way of choosing inputs, and learning."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.references.recurrent_reference import gru_step, lstm_step, run_over
from tests.support.sessions import randomized
from tfray.contrib import seq2seq
from tfray.errors import InvalidArgumentError

rnn_cell = tf.nn.rnn_cell
MEMORY = np.random.default_rng(0).normal(size=(3, 5, 2))
QUERY = np.random.default_rng(1).normal(size=(3, 4))
LENGTHS = [2, 5, 3]


def within(values, scope):
    return {name.removeprefix(f"{scope}/"): value for name, value in values.items() if name.startswith(f"{scope}/")}


def softmax(scores, lengths=None):
    if lengths is not None:
        scores = np.where(np.arange(scores.shape[1]) < np.array(lengths)[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


# -- attention -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("normalize", [False, True])
def test_bahdanau_attention(session, normalize, lengths):
    mechanism = seq2seq.BahdanauAttention(6, tf.constant(MEMORY), lengths, normalize=normalize, dtype=tf.float64)
    weights, state = mechanism(tf.constant(QUERY), mechanism.initial_state(3, tf.float64))
    assert mechanism.alignments_size == 5 and state is weights
    names = ["memory_layer/kernel", "bahdanau_attention/query_layer/kernel", "bahdanau_attention/attention_v"]
    names += ["bahdanau_attention/attention_g", "bahdanau_attention/attention_b"] * normalize
    assert [variable.op.name for variable in tf.trainable_variables()] == names
    v = randomized(session)
    inner = MEMORY @ v[names[0]] + (QUERY @ v[names[1]])[:, None]
    vector = v[names[2]]
    if normalize:
        vector = v[names[3]] * vector / np.sqrt((vector**2).sum())
        inner = inner + v[names[4]]
    if lengths is not None:
        mask = (np.arange(5) < np.array(lengths)[:, None])[:, :, None]
        inner = inner - MEMORY @ v[names[0]] * ~mask
    np.testing.assert_allclose(session.run(weights), softmax((vector * np.tanh(inner)).sum(2), lengths), 1e-9)


@pytest.mark.parametrize("scale", [False, True])
def test_luong_attention(session, scale):
    mechanism = seq2seq.LuongAttention(4, tf.constant(MEMORY), LENGTHS, scale=scale, dtype=tf.float64)
    weights, _ = mechanism(tf.constant(QUERY), None)
    v = randomized(session)
    score = ((MEMORY @ v["memory_layer/kernel"]) * QUERY[:, None]).sum(2)
    if scale:
        score = score * v["luong_attention/attention_g"]
    got = session.run(weights)
    np.testing.assert_allclose(got, softmax(score, LENGTHS), 1e-9)
    assert (got[0, 2:] == 0).all()
    with pytest.raises(ValueError, match="query has size 2, and the keys 4"):
        mechanism(tf.constant(QUERY[:, :2]), None)


def test_hardmax(session):
    assert session.run(seq2seq.hardmax([[1.0, 3.0, 2.0], [5.0, 4.0, 4.0]])).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("output_attention", [True, False])
@pytest.mark.parametrize("layer_size", [None, 6])
def test_attention_wrapper(session, layer_size, output_attention):
    mechanism = seq2seq.LuongAttention(4, tf.constant(MEMORY), LENGTHS, dtype=tf.float64)
    cell = seq2seq.AttentionWrapper(
        rnn_cell.GRUCell(4), mechanism, layer_size, alignment_history=True, output_attention=output_attention
    )
    inputs = np.random.default_rng(2).normal(size=(3, 2, 7))
    state = cell.zero_state(3, tf.float64).clone(cell_state=tf.constant(QUERY))
    for time in range(2):
        output, state = cell(tf.constant(inputs[:, time]), state)
    size = layer_size or 2
    assert cell.output_size == (size if output_attention else 4) and cell.state_size.attention == size
    v = randomized(session)
    hidden, attention = QUERY, np.zeros((3, size))
    masked = MEMORY * (np.arange(5) < np.array(LENGTHS)[:, None])[:, :, None]
    history = []
    for time in range(2):
        joined = np.concatenate([inputs[:, time], attention], 1)
        hidden, _ = gru_step(within(v, "attention_wrapper/gru_cell"), joined, hidden)
        weights = softmax(((masked @ v["memory_layer/kernel"]) * hidden[:, None]).sum(2), LENGTHS)
        history.append(weights)
        attention = (weights[:, :, None] * masked).sum(1)
        if layer_size:
            kernel = v["attention_wrapper/attention_layer/kernel"]
            attention = np.concatenate([hidden, attention], 1) @ kernel
    got, got_state, got_history = session.run(
        [output, (state.cell_state, state.time, state.attention), state.alignment_history.stack()]
    )
    np.testing.assert_allclose(got, attention if output_attention else hidden, 1e-9)
    np.testing.assert_allclose(got_state[0], hidden, 1e-9)
    assert got_state[1] == 2
    np.testing.assert_allclose(got_history, np.stack(history), 1e-9)


@pytest.mark.parametrize("count", [None, 2])
def test_zero_state_has_the_structure_of_the_state_size(count):
    mechanisms = [seq2seq.LuongAttention(4, tf.constant(MEMORY, tf.float32)) for _ in range(count or 1)]
    of = mechanisms if count else mechanisms[0]
    cell = seq2seq.AttentionWrapper(rnn_cell.GRUCell(4), of, alignment_history=True)
    tf.nest.assert_same_structure(cell.state_size, cell.zero_state(3, tf.float32))


def test_decoders_of_other_cells_beside_each_other():
    for number in range(2):
        helper = seq2seq.TrainingHelper(tf.ones([2, 3, 4]), [3, 2])
        decoder = seq2seq.BasicDecoder(rnn_cell.GRUCell(4), helper, tf.zeros([2, 4]))
        seq2seq.dynamic_decode(decoder)
        scope = "decoder_1" if number else "decoder"
        assert all(each.op.name.startswith(f"{scope}/") for each in tf.trainable_variables()[4 * number :])


def test_several_mechanisms(session):
    memory = tf.constant(MEMORY, tf.float32)
    mechanisms = [seq2seq.BahdanauAttention(6, memory, LENGTHS), seq2seq.LuongAttention(4, memory)]
    cell = seq2seq.AttentionWrapper(rnn_cell.BasicLSTMCell(4), mechanisms, attention_layer_size=[3, 2])
    state = cell.zero_state(3, tf.float32)
    output, state = cell(tf.ones([3, 2]), state)
    assert cell.output_size == 5 and len(state.alignments) == 2 and state.alignment_history == ((), ())
    names = [variable.op.name for variable in tf.trainable_variables()]
    assert {"memory_layer/kernel", "memory_layer_1/kernel", "attention_wrapper/attention_layer_1/kernel"} <= set(names)
    session.run(tf.global_variables_initializer())
    assert session.run(output).shape == (3, 5)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda c, m: seq2seq.AttentionWrapper(c, 3), TypeError, "attention mechanisms"),
        (lambda c, m: seq2seq.AttentionWrapper(3, m), TypeError, "no RNNCell"),
        (lambda c, m: seq2seq.AttentionWrapper(c, m, [2, 3]), ValueError, "as many"),
        (lambda c, m: seq2seq.AttentionWrapper(c, m, 3, attention_layer=3), ValueError, "not both"),
        (lambda c, m: seq2seq.AttentionWrapper(c, m).zero_state(4, tf.float32), InvalidArgumentError, "tile_batch"),
        (lambda c, m: seq2seq.AttentionWrapper(c, m)(tf.ones([3, 2]), tf.ones([3, 4])), TypeError, "zero_state"),
        (lambda c, m: seq2seq.LuongAttention(4, tf.ones([2, 3])), InvalidArgumentError, "memory has shape"),
    ],
)
def test_attention_refuses(make, error, match):
    with pytest.raises(error, match=match):
        make(rnn_cell.GRUCell(4), seq2seq.LuongAttention(4, tf.ones([3, 5, 2])))


# -- decoding given sequences --------------------------------------------------------------------------


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("impute", [False, True])
def test_training_decoder_does_what_dynamic_rnn_does(session, impute, time_major):
    cell, layer = rnn_cell.BasicLSTMCell(4), tf.layers.Dense(7, name="projection")
    x = tf.placeholder(tf.float64, [None, None, 2])
    given = tf.transpose(x, [1, 0, 2]) if time_major else x
    helper = seq2seq.TrainingHelper(given, LENGTHS, time_major)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float64), layer)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, time_major, impute)
    assert outputs.rnn_output.shape.as_list()[-1] == 7 and type(state) is rnn_cell.LSTMStateTuple
    v = randomized(session)
    assert set(v) == {f"decoder/{n}" for n in ("basic_lstm_cell/kernel", "basic_lstm_cell/bias")} | {
        f"decoder/projection/{n}" for n in ("kernel", "bias")
    }
    zeros = np.zeros((3, 4)), np.zeros((3, 4))
    weights = within(v, "decoder/basic_lstm_cell")
    expected, expected_state = run_over(lambda x, s: lstm_step(weights, x, s), MEMORY, zeros, LENGTHS)
    expected = expected @ v["decoder/projection/kernel"] + v["decoder/projection/bias"]
    got, got_state, got_lengths = session.run([outputs, state, lengths], {x: MEMORY})
    logits, ids = (value.swapaxes(0, 1) for value in got) if time_major else got
    assert got_lengths.tolist() == LENGTHS
    for row, length in enumerate(LENGTHS):
        np.testing.assert_allclose(logits[row, :length], expected[row, :length], 1e-9)
        np.testing.assert_array_equal(ids[row, :length], expected[row, :length].argmax(1))
        if impute:
            assert (logits[row, length:] == 0).all() and (ids[row, length:] == 0).all()
    if impute:
        np.testing.assert_allclose(got_state.c, expected_state[0], 1e-9)


def test_maximum_iterations_and_empty_sequences(session):
    cell, limit = rnn_cell.GRUCell(4), tf.placeholder(tf.int32, [])
    helper = seq2seq.TrainingHelper(tf.ones([2, 5, 3]), [5, 0])
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=limit)
    session.run(tf.global_variables_initializer())
    for steps, expected in ((3, [3, 0]), (9, [5, 0]), (0, [0, 0])):
        got, ends = session.run([outputs.rnn_output, lengths], {limit: steps})
        assert got.shape == (2, max(expected), 4) and ends.tolist() == expected
    with pytest.raises(ValueError, match="maximum_iterations must be a scalar"):
        seq2seq.dynamic_decode(decoder, maximum_iterations=[3])


# -- decoding from one's own outputs -------------------------------------------------------------------

VOCABULARY, UNITS = 6, 5


def language_model(session, seed=0):
    """A cell, its output layer and the table, with random weights; and a NumPy function of one step."""
    cell, layer = rnn_cell.GRUCell(UNITS), tf.layers.Dense(VOCABULARY, name="projection")
    table = tf.get_variable("table", [VOCABULARY, 3], tf.float64)

    def step(values, token, state):
        scope = next(name for name in values if name.endswith("gates/kernel")).removesuffix("/gates/kernel")
        output, state = gru_step(within(values, scope), values["table"][token], state)
        kernel = next(v for name, v in values.items() if name.endswith("projection/kernel"))
        bias = next(v for name, v in values.items() if name.endswith("projection/bias"))
        return output @ kernel + bias, state

    return cell, layer, table, step


def test_greedy_decoding(session):
    cell, layer, table, step = language_model(session)
    start = np.random.default_rng(3).normal(size=(4, UNITS))
    helper = seq2seq.GreedyEmbeddingHelper(table, [1, 2, 3, 4], 0)
    decoder = seq2seq.BasicDecoder(cell, helper, tf.constant(start), layer)
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=8)
    v = randomized(session, scale=1.5)
    got, ends = session.run([outputs.sample_id, lengths])
    tokens, state, expected = np.array([1, 2, 3, 4]), start, []
    for _ in range(got.shape[1]):
        logits, state = step(v, tokens, state)
        tokens = logits.argmax(1)
        expected.append(tokens)
    expected = np.stack(expected, 1)
    for row, end in enumerate(ends):
        np.testing.assert_array_equal(got[row, :end], expected[row, :end])
        assert end == 8 or got[row, end - 1] == 0


def test_sampled_decoding_repeats_with_its_seed(session):
    tf.set_random_seed(7)  # no two letters may be about as likely
    cell, layer, table, _ = language_model(session)

    def decode(temperature, seed, reuse=None):
        helper = seq2seq.SampleEmbeddingHelper(table, [1] * 50, 0, softmax_temperature=temperature, seed=seed)
        decoder = seq2seq.BasicDecoder(cell, helper, tf.zeros([50, UNITS], tf.float64), layer)
        return seq2seq.dynamic_decode(decoder, maximum_iterations=4)[0].sample_id

    warm, again, other, cold = decode(None, 1), decode(None, 1), decode(None, 2), decode(1e-4, 1)
    greedy_helper = seq2seq.GreedyEmbeddingHelper(table, [1] * 50, 0)
    greedy = seq2seq.BasicDecoder(cell, greedy_helper, tf.zeros([50, UNITS], tf.float64), layer)
    greedy = seq2seq.dynamic_decode(greedy, maximum_iterations=4)[0].sample_id
    session.run(tf.global_variables_initializer())
    values = session.run([warm, again, other, cold, greedy])
    assert values[0].shape == values[1].shape and (values[0] == values[1]).all()
    assert values[0].shape != values[2].shape or (values[0] != values[2]).any()
    np.testing.assert_array_equal(values[3], values[4])
    assert len(np.unique(values[0][:, 0])) > 1


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_scheduled_sampling_of_ids(session, probability):
    cell, layer, table, step = language_model(session)
    ids = np.array([[1, 2, 3, 4], [4, 3, 2, 1]])
    helper = seq2seq.ScheduledEmbeddingTrainingHelper(
        tf.nn.embedding_lookup(table, ids), [4, 4], table, tf.constant(probability), seed=1, scheduling_seed=2
    )
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float64), layer)
    outputs, _, _ = seq2seq.dynamic_decode(decoder)
    v = randomized(session, scale=1.5)
    logits, sampled = session.run(outputs)
    assert (sampled == -1).all() == (probability == 0)
    state = np.zeros((2, UNITS))
    for time in range(4):
        tokens = ids[:, time] if time == 0 or probability == 0 else sampled[:, time - 1]
        expected, state = step(v, tokens, state)
        np.testing.assert_allclose(logits[:, time], expected, 1e-9)


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_scheduled_feeding_of_outputs(session, probability):
    cell = rnn_cell.GRUCell(2)
    x = np.random.default_rng(4).normal(size=(2, 4, 2))
    helper = seq2seq.ScheduledOutputTrainingHelper(tf.constant(x), [4, 4], probability)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float64))
    outputs, _, _ = seq2seq.dynamic_decode(decoder)
    weights = within(randomized(session), "decoder/gru_cell")
    got, state = session.run(outputs.rnn_output), np.zeros((2, 2))
    for time in range(4):
        given = x[:, time] if time == 0 or probability == 0 else got[:, time - 1]
        expected, state = gru_step(weights, given, state)
        np.testing.assert_allclose(got[:, time], expected, 1e-9)


def test_helpers_of_functions(session):
    class Halve(rnn_cell.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            return inputs / 2.0, state

    start = tf.constant([[8.0], [2.0]])
    inference = seq2seq.InferenceHelper(
        lambda outputs: outputs, [1], tf.float32, start, lambda sample: sample[:, 0] < 1.0
    )
    custom = seq2seq.CustomHelper(
        lambda: ([False, False], start),
        lambda time, outputs, state: tf.cast(outputs[:, 0] * 10.0, tf.int32),
        lambda time, outputs, state, sample_ids: (outputs[:, 0] < 1.0, outputs, state),
    )
    for helper in (inference, custom):
        decoder = seq2seq.BasicDecoder(Halve(), helper, tf.zeros([2, 1]))
        outputs, _, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
        got, ends = session.run([outputs, lengths])
        assert got.rnn_output[:, :, 0].tolist() == [[4, 2, 1, 0.5], [1, 0.5, 0, 0]] and ends.tolist() == [4, 2]
    assert got.sample_id.tolist() == [[40, 20, 10, 5], [10, 5, 0, 0]]


# -- beam search ---------------------------------------------------------------------------------------


def search(step, start_token, state, width, turns, end=0, weight=0.0):
    """Beam search for one example in plain Python: sequences, best first, and their scores."""
    beams = [([], 0.0, state, False, 0)]
    for _ in range(turns):
        candidates = []
        for ids, total, state, finished, length in beams:
            if finished:
                candidates.append((ids, total, state, True, length, total / ((5 + length) / 6) ** weight, end))
                continue
            logits, following = step(np.array([ids[-1] if ids else start_token]), state)
            log_probs = logits[0] - np.log(np.exp(logits[0] - logits[0].max()).sum()) - logits[0].max()
            for token in range(VOCABULARY):
                after = length + (token != end)
                score = (total + log_probs[token]) / ((5 + after) / 6) ** weight
                candidates.append((ids, total + log_probs[token], following, token == end, length + 1, score, token))
        candidates.sort(key=lambda c: -c[5])
        beams = [(c[0] + [c[6]], c[1], c[2], c[3], c[4]) for c in candidates[:width]]
        scores = [c[5] for c in candidates[:width]]
        if all(beam[3] for beam in beams):
            break
    return [beam[0] for beam in beams], scores


@pytest.mark.parametrize(("width", "weight"), [(1, 0.0), (3, 0.0), (3, 1.0), (5, 0.6)])
def test_beam_search(session, width, weight):
    cell, layer, table, step = language_model(session)
    start = np.random.default_rng(3).normal(size=(3, UNITS))
    decoder = seq2seq.BeamSearchDecoder(
        cell,
        table,
        [1, 2, 3],
        0,
        seq2seq.tile_batch(tf.constant(start), width),
        width,
        layer,
        length_penalty_weight=weight,
    )
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=5)
    assert outputs.predicted_ids.shape.as_list() == [3, None, width]
    v = randomized(session, scale=1.5)
    got, scores, ends = session.run([outputs.predicted_ids, outputs.beam_search_decoder_output.scores, lengths])
    assert got.shape[0] == 3 and got.shape[2] == width and ends.shape == (3, width)
    for row in range(3):
        sequences, expected_scores = search(
            lambda token, state: step(v, token, state), row + 1, start[row : row + 1], width, 5, weight=weight
        )
        for beam, sequence in enumerate(sequences):
            padded = sequence + [0] * (got.shape[1] - len(sequence))
            assert got[row, :, beam].tolist() == padded
        if got.shape[1] == len(sequences[0]):
            np.testing.assert_allclose(scores[row, -1], expected_scores, 1e-6)


def test_beam_search_with_attention(session):
    width = 3
    memory = tf.placeholder(tf.float32, [None, None, 2])
    tiled = seq2seq.tile_batch(memory, width)
    mechanism = seq2seq.BahdanauAttention(4, tiled, seq2seq.tile_batch(tf.constant([2, 5, 3]), width))
    cell = seq2seq.AttentionWrapper(
        rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(4), rnn_cell.GRUCell(4)]), mechanism, 4, alignment_history=True
    )
    batch = tf.shape(memory)[0]
    decoder = seq2seq.BeamSearchDecoder(
        cell,
        lambda ids: tf.one_hot(ids, 5),
        tf.fill([batch], 1),
        2,
        cell.zero_state(batch * width, tf.float32),
        width,
        tf.layers.Dense(5),
        coverage_penalty_weight=0.1,
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=6)
    history = state.cell_state.alignment_history
    session.run(tf.global_variables_initializer())
    ids, weights, lengths = session.run([outputs.predicted_ids, history, state.lengths], {memory: MEMORY})
    assert ids.shape[0] == 3 and ids.shape[2] == width and weights.shape[1:] == (9, 5)
    weights = weights.reshape(-1, 3, width, 5)
    for time in range(len(weights)):
        np.testing.assert_allclose(weights[time].sum(2), time < lengths, atol=1e-5)


def test_tile_batch(session):
    pair = (tf.constant([[1, 2], [3, 4]]), tf.placeholder_with_default(np.int32([5, 6]), [None]))
    a, b = seq2seq.tile_batch(pair, 2)
    assert a.shape.as_list() == [4, 2] and b.shape.as_list() == [None]
    assert session.run(a).tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]] and session.run(b).tolist() == [5, 5, 6, 6]
    with pytest.raises(InvalidArgumentError, match="scalar"):
        seq2seq.tile_batch(tf.constant(1), 2)


def test_an_untiled_state_is_refused():
    cell = rnn_cell.GRUCell(4)
    with pytest.raises(InvalidArgumentError, match="tile_batch"):
        seq2seq.BeamSearchDecoder(cell, tf.ones([5, 2]), [1, 2], 0, tf.zeros([2, 4]), 3)


# -- losses and learning -------------------------------------------------------------------------------


def test_sequence_loss(session):
    random = np.random.default_rng(5)
    logits, targets = random.normal(size=(3, 4, 5)), random.integers(0, 5, (3, 4))
    weights = np.float64([[1, 1, 0, 0], [1, 0.5, 1, 1], [0, 0, 0, 0]])
    log_probs = logits - np.log(np.exp(logits).sum(2, keepdims=True))
    losses = -np.take_along_axis(log_probs, targets[:, :, None], 2)[:, :, 0] * weights
    counted = weights != 0
    expected = {
        (True, True, False, False): losses.sum() / weights.sum(),
        (True, False, False, False): [losses[0].sum() / 2, losses[1].sum() / 3.5, 0],
        (False, True, False, False): losses.sum(0) / np.maximum(weights.sum(0), 1e-9),
        (False, False, False, False): losses,
        (False, False, True, True): losses.sum() / counted.sum(),
        (False, False, True, False): [losses[0].sum() / 2, losses[1].sum() / 4, 0],
        (False, False, False, True): losses.sum(0) / counted.sum(0),
    }
    for flags, wanted in expected.items():
        got = session.run(seq2seq.sequence_loss(tf.constant(logits), targets, weights, *flags))
        np.testing.assert_allclose(got, wanted, 1e-9)
    with pytest.raises(ValueError, match="not both"):
        seq2seq.sequence_loss(tf.constant(logits), targets, weights, True, True, True)
    with pytest.raises(ValueError, match=r"logits \[batch"):
        seq2seq.sequence_loss(tf.constant(logits[0]), targets, weights)


def test_a_translator_learns_to_reverse(session):
    """Encoder, attention, decoder; then greedy and beam search find what was learned."""
    tf.set_random_seed(2)
    random = np.random.default_rng(0)
    source = random.integers(2, 6, (64, 4))
    target = np.concatenate([source[:, ::-1], np.ones((64, 1), int)], 1)  # 1 ends, 0 starts
    table = tf.get_variable("table", [6, 12])
    cell, layer = rnn_cell.GRUCell(32), tf.layers.Dense(6, name="projection")
    encoded, final = tf.nn.dynamic_rnn(rnn_cell.GRUCell(32), tf.nn.embedding_lookup(table, source), dtype=tf.float32)

    def decoding(width):
        memory, first = (encoded, final) if width == 1 else seq2seq.tile_batch((encoded, final), width)
        with tf.variable_scope("attention", reuse=tf.AUTO_REUSE):
            attention = seq2seq.LuongAttention(32, memory)
            wrapped = seq2seq.AttentionWrapper(cell, attention, 32, name="wrapper")
            return wrapped, wrapped.zero_state(64 * width, tf.float32).clone(cell_state=first)

    def decode(make, width=1):
        with tf.variable_scope("decode", reuse=tf.AUTO_REUSE) as scope:
            wrapped, first = decoding(width)
            return seq2seq.dynamic_decode(make(wrapped, first), maximum_iterations=5, scope=scope)[0]

    inputs = np.concatenate([np.zeros((64, 1), int), target[:, :-1]], 1)
    training = seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, inputs), [5] * 64)
    logits = decode(lambda c, s: seq2seq.BasicDecoder(c, training, s, layer)).rnn_output
    loss = seq2seq.sequence_loss(logits, tf.constant(target), tf.ones([64, 5]))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    greedy = seq2seq.GreedyEmbeddingHelper(table, [0] * 64, 1)
    found = decode(lambda c, s: seq2seq.BasicDecoder(c, greedy, s, layer)).sample_id
    beams = decode(lambda c, s: seq2seq.BeamSearchDecoder(c, table, [0] * 64, 1, s, 3, layer), 3).predicted_ids
    session.run(tf.global_variables_initializer())
    for _ in range(60):
        session.run(train)
    assert session.run(loss) < 0.1
    assert (session.run(found)[:, :5] == target).mean() > 0.97
    assert (session.run(beams)[:, :5, 0] == target).mean() > 0.97


def test_beams_that_end_at_once(session):
    """The lengths are what TensorFlow 1.15 gives: only the first beam counts the step before all others."""

    class Chances(tf.nn.rnn_cell.RNNCell):
        state_size, output_size = 1, 4

        def call(self, inputs, state):
            return tf.log(tf.tile([[0.25, 0.1, 0.6, 0.05]], [tf.shape(inputs)[0], 1])), state

    cell = Chances()
    decoder = seq2seq.BeamSearchDecoder(cell, tf.zeros([4, 1]), [1], 0, cell.zero_state(3, tf.float32), 3)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=3)
    ids, of_beams, lengths = session.run([outputs.predicted_ids, state.lengths, lengths])
    assert ids.tolist() == [[[0, 2, 2], [0, 2, 0], [0, 2, 0]]]
    assert of_beams.tolist() == [[1, 3, 2]] and lengths.tolist() == [[3, 0, 2]]
