"""Attention of programs' own: mechanisms and wrappers that build on TensorFlow's, and monotonic attention."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import seq2seq
from tfray.library.rnn.attention import BaseAttentionMechanism, compute_attention, maybe_mask_score, prepare_memory
from tfray.library.rnn.monotonic_attention import BaseMonotonicAttentionMechanism

MEMORY = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)


@pytest.fixture
def session():
    with tf.Session() as session:
        yield session


class Cumulative(seq2seq.BahdanauAttention):
    """Scores from the weights of all steps, and a third result: as in programs that synthesize speech."""

    def __init__(self, memory, lengths):
        super().__init__(3, memory, memory_sequence_length=lengths, probability_fn=tf.nn.sigmoid, name="Cumulative")
        self.layer = tf.layers.Dense(3, name="location")

    def __call__(self, query, state, previous):
        with tf.variable_scope(None, "cumulative", [query]):
            processed = tf.expand_dims(self.query_layer(query) if self.query_layer else query, 1)
            energy = tf.reduce_sum(self.keys + processed + self.layer(tf.expand_dims(state, 2)), [2])
        alignments = self._probability_fn(energy, state)
        return alignments, alignments + state, previous + 1


class Dot(BaseAttentionMechanism):
    def __init__(self, memory):
        super().__init__(None, memory, lambda score, state: tf.nn.softmax(score + state), memory_layer=None)

    def __call__(self, query, state):
        alignments = self._probability_fn(tf.squeeze(tf.matmul(self._keys, tf.expand_dims(query, 2)), 2), state)
        return alignments, alignments


class Doubled(seq2seq.AttentionWrapper):
    """Uses the parts of the wrapper by TensorFlow's names."""

    def call(self, inputs, state):
        output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        size = output.shape[0].value or tf.shape(output)[0]
        with tf.control_dependencies(self._batch_size_checks(size, "another size")):
            output = tf.identity(output)
        states = state.attention_state if self._is_multi else [state.attention_state]
        found = [
            compute_attention(mechanism, output, before, self._attention_layers[i] if self._attention_layers else None)
            for i, (mechanism, before) in enumerate(zip(self._attention_mechanisms, states, strict=True))
        ]
        attention = 2 * tf.concat([each[0] for each in found], 1)
        following = state.clone(
            time=state.time + 1,
            cell_state=cell_state,
            attention=attention,
            alignments=self._item_or_tuple([each[1] for each in found]),
            attention_state=self._item_or_tuple([each[2] for each in found]),
        )
        assert not self._alignment_history
        return (attention if self._output_attention else output), following


def test_a_mechanism_with_another_call(session):
    mechanism = Cumulative(tf.constant(MEMORY), [4, 2])
    before = mechanism.initial_alignments(2, tf.float32)
    alignments, state, count = mechanism(tf.ones([2, 5]), state=before + 0.5, previous=1)
    session.run(tf.global_variables_initializer())
    weights, cumulated = session.run([alignments, state])
    assert (weights[1, 2:] == 0).all() and (weights[0] > 0).all(), "scores past the end are minus infinity"
    np.testing.assert_allclose(cumulated, weights + 0.5)
    assert count == 2 and mechanism.memory_layer.name == "memory_layer"


def test_the_base_of_mechanisms(session):
    tf.set_random_seed(1)
    mechanism = Dot(tf.constant(MEMORY))
    assert (mechanism.alignments_size, mechanism.state_size, mechanism.batch_size) == (4, 4, 2)
    cell = Doubled(tf.nn.rnn_cell.GRUCell(3), mechanism)
    assert cell.output_size == cell._attention_layer_size == 3
    output, state = cell(tf.ones([2, 2]), cell.zero_state(2, tf.float32))
    session.run(tf.global_variables_initializer())
    attention, hidden, weights = session.run([output, state.cell_state, state.alignments])
    scores = np.exp(np.einsum("bts,bs->bt", MEMORY, hidden))
    np.testing.assert_allclose(weights, scores / scores.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(attention, 2 * np.einsum("bts,bt->bs", MEMORY, weights), rtol=1e-5)


def test_several_mechanisms_of_a_subclass(session):
    mechanisms = [Dot(tf.constant(MEMORY)), seq2seq.LuongAttention(3, tf.constant(MEMORY))]
    cell = Doubled(tf.nn.rnn_cell.GRUCell(3), mechanisms, attention_layer_size=[2, 5], output_attention=False)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 2]), dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    assert session.run([outputs, state.attention])[1].shape == (2, 7)


def test_a_mechanism_of_nothing_but_the_interface():
    class Own(seq2seq.AttentionMechanism):
        def __init__(self):
            super().__init__()

    with pytest.raises(NotImplementedError, match="Own must define alignments_size"):
        _ = Own().alignments_size


def test_memories_and_scores(session):
    memory, pair = prepare_memory([MEMORY, MEMORY[:, :, :, None]], [4, 2]), prepare_memory(MEMORY)
    score = maybe_mask_score(tf.constant([[1.0, 2.0], [3.0, 4.0]]), [2, 1], -5.0)
    (flat, deep), same, masked = session.run([memory, pair, score])
    expected = MEMORY * np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)[:, :, None]
    np.testing.assert_array_equal(flat, expected)
    np.testing.assert_array_equal(deep[..., 0], expected)
    np.testing.assert_array_equal(same, MEMORY)
    assert masked.tolist() == [[1, 2], [3, -5]]
    with pytest.raises(ValueError, match="fully defined inner dims"):
        prepare_memory(tf.placeholder(tf.float32, [2, 4, None]))
    with pytest.raises(TypeError, match="probability_fn must be callable"):
        BaseAttentionMechanism(None, MEMORY, 3)


# -- monotonic attention --------------------------------------------------------------------------------

CHOSEN = np.array([[0.2, 0.5, 0.9, 0.4], [0.7, 0.1, 0.3, 0.6]], np.float32)
BEFORE = np.array([[1.0, 0.0, 0.0, 0.0], [0.1, 0.4, 0.3, 0.2]], np.float32)


def _monotonic(chosen, before):
    """The weights by their definition: entries are visited in turn from where the last step stood."""
    weights = np.zeros_like(chosen)
    for row in range(len(chosen)):
        reached = 0.0
        for entry in range(chosen.shape[1]):
            passed = 1 - chosen[row, entry - 1] if entry else 1.0
            reached = reached * passed + before[row, entry]
            weights[row, entry] = chosen[row, entry] * reached
    return weights


@pytest.mark.parametrize(
    ("mode", "chosen", "before"),
    [
        ("recursive", CHOSEN, BEFORE),
        ("parallel", CHOSEN, BEFORE),
        ("hard", np.round(CHOSEN), np.eye(4, dtype=np.float32)[[0, 1]]),
        ("recursive", np.round(CHOSEN), np.eye(4, dtype=np.float32)[[0, 1]]),
    ],
)
def test_monotonic_attention(session, mode, chosen, before):
    found = session.run(seq2seq.monotonic_attention(chosen, before, mode))
    np.testing.assert_allclose(found, _monotonic(chosen, before), atol=1e-5)


def test_the_product_of_what_may_be_zero(session):
    x = tf.constant([0.5, 0.0, 0.5])
    product = seq2seq.safe_cumprod(x, exclusive=True)
    values, gradient = session.run([product, tf.gradients(product, x)[0]])
    np.testing.assert_allclose(values, [1, 0.5, 0], atol=1e-30)
    assert np.isfinite(gradient).all()
    with pytest.raises(ValueError, match="mode must be 'recursive', 'parallel', or 'hard'"):
        seq2seq.monotonic_attention(CHOSEN, BEFORE, "soft")


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (
            lambda **more: seq2seq.BahdanauMonotonicAttention(3, tf.constant(MEMORY), [4, 2], **more),
            {"memory_layer/kernel", "scope/query_layer/kernel", "scope/attention_v", "scope/attention_score_bias"},
        ),
        (
            lambda **more: seq2seq.LuongMonotonicAttention(3, tf.constant(MEMORY), [4, 2], True, **more),
            {"memory_layer/kernel", "scope/attention_g", "scope/attention_score_bias"},
        ),
    ],
)
def test_monotonic_mechanisms(session, make, names):
    mechanism = make(score_bias_init=-1.5, sigmoid_noise=0.0, mode="recursive")
    assert isinstance(mechanism, BaseMonotonicAttentionMechanism)
    state = mechanism.initial_state(2, tf.float32)
    weights, following = mechanism(tf.ones([2, 3]), state)
    scope = "bahdanau" if "Bahdanau" in type(mechanism).__name__ else "luong"
    expected = {name.replace("scope", f"{scope}_monotonic_attention") for name in names}
    assert {variable.op.name for variable in tf.global_variables()} == expected
    session.run(tf.global_variables_initializer())
    first, values, bias = session.run([state, following, tf.global_variables()[-1]])
    assert first.tolist() == [[1, 0, 0, 0]] * 2 and bias == -1.5 and following is weights
    assert (values >= 0).all() and (values.sum(1) <= 1).all() and (values[1, 2:] == 0).all()


def test_hard_monotonic_attention_in_a_wrapper(session):
    mechanism = seq2seq.LuongMonotonicAttention(3, tf.constant(MEMORY), mode="hard", sigmoid_noise=1.0)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(3), mechanism, 3, alignment_history=True)
    _, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 5, 2]), dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    history = session.run(state.alignment_history.stack())
    assert set(np.unique(history)) <= {0, 1} and (history.sum(2) <= 1).all()
