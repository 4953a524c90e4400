"""Recurrent networks over sequences: against plain NumPy, over lengths, layouts, structures and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.references.recurrent_reference import basic_step, gru_step, lstm_step, run_over
from tests.support.sessions import randomized
from tfray.contrib import rnn as contrib_rnn
from tfray.errors import InvalidArgumentError

rnn_cell = tf.nn.rnn_cell
X = np.random.default_rng(0).normal(size=(3, 5, 2))
LENGTHS = [2, 5, 0]


def zeros(*sizes, batch=3):
    return tuple(np.zeros((batch, size)) for size in sizes)


KINDS = {
    "basic": (lambda: rnn_cell.BasicRNNCell(4), "basic_rnn_cell", basic_step, zeros(4)[0]),
    "gru": (lambda: rnn_cell.GRUCell(4), "gru_cell", gru_step, zeros(4)[0]),
    "lstm": (lambda: rnn_cell.BasicLSTMCell(4), "basic_lstm_cell", lstm_step, zeros(4, 4)),
    "peephole": (lambda: rnn_cell.LSTMCell(4, True, num_proj=3), "lstm_cell", lstm_step, zeros(4, 3)),
}


def assert_states(actual, expected, tolerance=1e-10):
    pairs = zip(actual, expected, strict=True) if isinstance(expected, tuple) else [(actual, expected)]
    for a, e in pairs:
        np.testing.assert_allclose(a, e, tolerance, tolerance)


# -- dynamic_rnn ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_dynamic_rnn(session, kind, static, lengths):
    make, scope, step, state = KINDS[kind]
    x = tf.placeholder(tf.float64, [3, 5, 2] if static else [None, None, 2])
    sizes = None if lengths is None else tf.placeholder(tf.int32, [None])
    outputs, final = tf.nn.dynamic_rnn(make(), x, sizes, dtype=tf.float64)
    assert outputs.shape.as_list() == ([3, 5] if static else [None, None]) + [make().output_size]
    weights = randomized(session, f"rnn/{scope}")
    expected, expected_state = run_over(lambda x, s: step(weights, x, s), X, state, lengths)
    feeds = {x: X} if lengths is None else {x: X, sizes: lengths}
    got, got_state = session.run([outputs, final], feeds)
    np.testing.assert_allclose(got, expected, 1e-10, 1e-12)
    assert_states(got_state, expected_state)


def test_outputs_past_the_longest_sequence_are_zeros(session):
    x, lengths = tf.placeholder(tf.float32, [None, None, 2]), tf.placeholder(tf.int32, [None])
    outputs, state = tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x, lengths, dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    got, last = session.run([outputs, state], {x: X, lengths: [2, 1, 0]})
    assert got.shape == (3, 5, 4) and (got[:, 2:] == 0).all() and (got[2] == 0).all() and (got[0, :2] != 0).all()
    np.testing.assert_array_equal(last[0], got[0, 1])
    np.testing.assert_array_equal(last[2], np.zeros(4))


def test_time_major_and_initial_state(session):
    cell = rnn_cell.BasicLSTMCell(4)
    x = tf.placeholder(tf.float64, [None, 3, 2])
    c, h = np.random.default_rng(1).normal(size=(2, 3, 4))
    initial = rnn_cell.LSTMStateTuple(tf.constant(c), tf.constant(h))
    outputs, state = tf.nn.dynamic_rnn(cell, x, LENGTHS, initial, time_major=True, scope="net", swap_memory=True)
    assert outputs.shape.as_list() == [None, 3, 4] and type(state) is rnn_cell.LSTMStateTuple
    weights = randomized(session, "net/basic_lstm_cell")
    expected, expected_state = run_over(lambda x, s: lstm_step(weights, x, s), X, (c, h), LENGTHS)
    got, got_state = session.run([outputs, state], {x: X.swapaxes(0, 1)})
    np.testing.assert_allclose(got, expected.swapaxes(0, 1), 1e-10)
    assert_states(got_state, expected_state)


def test_stacked_cells(session):
    cell = rnn_cell.MultiRNNCell([rnn_cell.GRUCell(4), rnn_cell.GRUCell(3)])
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(X), LENGTHS, dtype=tf.float64)
    names = [variable.op.name for variable in tf.trainable_variables()]
    assert names[0] == "rnn/multi_rnn_cell/cell_0/gru_cell/gates/kernel"
    weights = randomized(session, "rnn/multi_rnn_cell")
    lower, upper = (
        {k.removeprefix(f"cell_{i}/gru_cell/"): v for k, v in weights.items() if k.startswith(f"cell_{i}")}
        for i in range(2)
    )

    def step(x, states):
        middle, _ = gru_step(lower, x, states[0])
        top, _ = gru_step(upper, middle, states[1])
        return top, (middle, top)

    expected, expected_state = run_over(step, X, zeros(4, 3), LENGTHS)
    got, got_state = session.run([outputs, state])
    np.testing.assert_allclose(got, expected, 1e-10)
    assert_states(got_state, expected_state)


def test_structures_of_inputs_and_outputs(session):
    class Pair(rnn_cell.RNNCell):
        state_size = (2, tf.TensorShape([1, 2]))

        @property
        def output_size(self):
            return {"sum": 2, "last": tf.TensorShape([1, 2])}

        def call(self, inputs, state):
            total = state[0] + inputs[0]
            return {"last": state[1], "sum": total}, (total, inputs[1])

    a, b = tf.constant(X), tf.constant(X[:, :, None])
    outputs, state = tf.nn.dynamic_rnn(Pair(), (a, b), LENGTHS, dtype=tf.float64)
    assert outputs["sum"].shape.as_list() == [3, 5, 2] and outputs["last"].shape.as_list() == [3, 5, 1, 2]
    got, (total, last) = session.run([outputs, state])
    mask = (np.arange(5) < np.array(LENGTHS)[:, None])[:, :, None]
    np.testing.assert_allclose(got["sum"], X.cumsum(1) * mask)
    shifted = np.concatenate([np.zeros((3, 1, 2)), X[:, :-1]], 1)
    np.testing.assert_allclose(got["last"][:, :, 0], shifted * mask)
    np.testing.assert_allclose(total, (X * mask).sum(1))
    np.testing.assert_allclose(last[0, 0], X[0, 1])


def test_no_steps_at_all(session):
    x = tf.placeholder(tf.float32, [2, None, 3])
    outputs, state = tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x, dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    got, last = session.run([outputs, state], {x: np.zeros((2, 0, 3))})
    assert got.shape == (2, 0, 4) and (last == 0).all()


def test_variables_are_shared_between_calls():
    cell = rnn_cell.GRUCell(4)
    x = tf.ones([1, 2, 3])
    tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x, dtype=tf.float32)
    tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    assert len(tf.global_variables()) == 4
    with pytest.raises(ValueError, match="already exists, disallowed"):
        tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x, dtype=tf.float32)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda x: tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x), ValueError, "initial_state, or the dtype"),
        (lambda x: tf.nn.dynamic_rnn(tf.constant, x, dtype=tf.float32), TypeError, "no RNNCell: it lacks"),
        (lambda x: tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x[0, 0], dtype=tf.float32), ValueError, "rank 1"),
        (lambda x: tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x, [[1]], dtype=tf.float32), ValueError, "vector"),
        (lambda x: tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x, [1], dtype=tf.float32), ValueError, "batch size is 2"),
        (
            lambda x: tf.nn.dynamic_rnn(
                rnn_cell.GRUCell(4), tf.placeholder(tf.float32, [2, 3, None]), dtype=tf.float32
            ),
            ValueError,
            "must be accessible via shape inference",
        ),
        (lambda x: tf.nn.static_rnn(rnn_cell.GRUCell(4), x, dtype=tf.float32), TypeError, "list with the input"),
        (lambda x: tf.nn.static_rnn(rnn_cell.GRUCell(4), [], dtype=tf.float32), ValueError, "no inputs"),
        (lambda x: tf.nn.raw_rnn(rnn_cell.GRUCell(4), 3), TypeError, "must be a function"),
    ],
)
def test_refusals(make, error, match):
    with pytest.raises(error, match=match):
        make(tf.ones([2, 3, 4]))


def test_lengths_that_do_not_fit_the_batch(session):
    x, lengths = tf.placeholder(tf.float32, [None, 3, 2]), tf.placeholder(tf.int32, [None])
    outputs, _ = tf.nn.dynamic_rnn(rnn_cell.GRUCell(4), x, lengths, dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    with pytest.raises(InvalidArgumentError, match=r"one length per sequence|incompatible"):
        session.run(outputs, {x: np.ones((2, 3, 2)), lengths: [1]})


# -- other networks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_static_equals_dynamic(session, lengths):
    cell = rnn_cell.BasicLSTMCell(4)
    dynamic, dynamic_state = tf.nn.dynamic_rnn(cell, tf.constant(X), lengths, dtype=tf.float64)
    static, static_state = tf.nn.static_rnn(
        cell, tf.unstack(tf.constant(X), axis=1), dtype=tf.float64, sequence_length=lengths
    )
    randomized(session)
    a, b, a_state, b_state = session.run([dynamic, tf.stack(static, 1), dynamic_state, static_state])
    np.testing.assert_allclose(a, b)
    assert_states(tuple(a_state), tuple(b_state))


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("time_major", [False, True])
def test_bidirectional(session, time_major, lengths):
    x = tf.constant(X.swapaxes(0, 1) if time_major else X)
    (forward, backward), (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
        rnn_cell.GRUCell(4), rnn_cell.GRUCell(3), x, lengths, dtype=tf.float64, time_major=time_major
    )
    assert tf.trainable_variables()[4].op.name == "bidirectional_rnn/bw/gru_cell/gates/kernel"
    randomized(session)
    weights = [randomized(session, f"bidirectional_rnn/{way}/gru_cell") for way in ("fw", "bw")]
    ends = [5] * 3 if lengths is None else lengths
    turned = X.copy()
    for row, end in enumerate(ends):
        turned[row, :end] = X[row, :end][::-1]
    expected, expected_fw = run_over(lambda x, s: gru_step(weights[0], x, s), X, zeros(4)[0], lengths)
    behind, expected_bw = run_over(lambda x, s: gru_step(weights[1], x, s), turned, zeros(3)[0], lengths)
    for row, end in enumerate(ends):
        behind[row, :end] = behind[row, :end][::-1].copy()
    got = session.run([forward, backward, state_fw, state_bw])
    if time_major:
        got[:2] = [values.swapaxes(0, 1) for values in got[:2]]
    for actual, wanted in zip(got, [expected, behind, expected_fw, expected_bw], strict=True):
        np.testing.assert_allclose(actual, wanted, 1e-10, 1e-12)


def test_static_bidirectional_equals_dynamic(session):
    cells = rnn_cell.GRUCell(4), rnn_cell.GRUCell(3)
    (forward, backward), _ = tf.nn.bidirectional_dynamic_rnn(*cells, tf.constant(X), LENGTHS, dtype=tf.float64)
    steps, state_fw, state_bw = tf.nn.static_bidirectional_rnn(
        *cells, tf.unstack(tf.constant(X), axis=1), dtype=tf.float64, sequence_length=LENGTHS
    )
    assert len(tf.trainable_variables()) == 8
    randomized(session)
    a, b, fw, bw = session.run([tf.concat([forward, backward], 2), tf.stack(steps, 1), state_fw, state_bw])
    np.testing.assert_allclose(a, b)
    assert fw.shape == (3, 4) and bw.shape == (3, 3)


def test_stacked_bidirectional(session):
    def cells():
        return [rnn_cell.GRUCell(4), rnn_cell.GRUCell(3)]

    outputs, states_fw, states_bw = contrib_rnn.stack_bidirectional_dynamic_rnn(
        cells(), cells(), tf.constant(X), dtype=tf.float64, sequence_length=LENGTHS
    )
    steps, _, _ = contrib_rnn.stack_bidirectional_rnn(
        cells(), cells(), tf.unstack(tf.constant(X), axis=1), dtype=tf.float64, sequence_length=LENGTHS
    )
    assert outputs.shape.as_list() == [3, 5, 6] and len(states_fw) == len(states_bw) == 2
    variables = {variable.op.name: variable for variable in tf.trainable_variables()}
    # TensorFlow's names: the scope in the middle is there in one of the two.
    of_steps = {
        name: variables.get(name.replace("bidirectional_rnn/fw", "fw").replace("bidirectional_rnn/bw", "bw"))
        for name in variables
        if "bidirectional_rnn/cell_" in name and "/bidirectional_rnn/" in name
    }
    assert "stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/gru_cell/candidate/bias" in of_steps
    assert len(of_steps) == 16 and None not in of_steps.values() and len(variables) == 32
    randomized(session)
    session.run([variable.assign(variables[name]) for name, variable in of_steps.items()])
    a, b = session.run([outputs, tf.stack(steps, 1)])
    np.testing.assert_allclose(a, b)


def test_raw_rnn_does_what_dynamic_rnn_does(session):
    cell = rnn_cell.LSTMCell(4)
    inputs = tf.TensorArray(tf.float64, 5).unstack(tf.constant(X.swapaxes(0, 1)))
    lengths = tf.constant(LENGTHS)

    def loop_fn(time, output, state, loop_state):
        following = cell.zero_state(3, tf.float64) if output is None else state
        finished = time >= lengths
        current = tf.cond(
            tf.reduce_all(finished), lambda: tf.zeros([3, 2], tf.float64), lambda: inputs.read(tf.minimum(time, 4))
        )
        return finished, current, following, output, None

    emitted, state, loop_state = tf.nn.raw_rnn(cell, loop_fn)
    outputs = tf.transpose(emitted.stack(), [1, 0, 2])
    assert loop_state is None
    expected, expected_state = tf.nn.dynamic_rnn(cell, tf.constant(X), LENGTHS, dtype=tf.float64)
    assert len(tf.trainable_variables()) == 2
    randomized(session)
    got = session.run([outputs, expected, state, expected_state])
    np.testing.assert_allclose(got[0], got[1])
    assert_states(tuple(got[2]), tuple(got[3]))


def test_raw_rnn_feeds_outputs_back(session):
    """Counts down from a number for each sequence, and keeps a count of turns."""

    class Down(rnn_cell.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            return inputs - 1.0, state

    start = tf.constant([[3.0], [1.0], [2.0]])

    def loop_fn(time, output, state, turns):
        if output is None:
            return start[:, 0] <= 0.0, start, tf.zeros([3, 1]), tf.zeros([1]), tf.constant(0)
        return output[:, 0] <= 0.0, output, state, output * 10.0, turns + 1

    emitted, _, turns = tf.nn.raw_rnn(Down(), loop_fn)
    got, count = session.run([emitted.stack(), turns])
    assert got[:, :, 0].tolist() == [[20, 0, 10], [10, 0, 0], [0, 0, 0]] and count == 3


def test_fused_cells(session):
    x = tf.constant(X.swapaxes(0, 1))
    cell = contrib_rnn.LSTMBlockFusedCell(4)
    outputs, state = cell(x, dtype=tf.float64, sequence_length=LENGTHS)
    assert [v.op.name for v in tf.trainable_variables()] == ["lstm_fused_cell/kernel", "lstm_fused_cell/bias"]
    backward, _ = contrib_rnn.TimeReversedFusedRNN(cell)(x, dtype=tf.float64)
    adapted, _ = contrib_rnn.FusedRNNCellAdaptor(rnn_cell.GRUCell(4), True)(x, dtype=tf.float64)
    weights = randomized(session, "lstm_fused_cell")
    expected, expected_state = run_over(lambda x, s: lstm_step(weights, x, s), X, zeros(4, 4), LENGTHS)
    turned, _ = run_over(lambda x, s: lstm_step(weights, x, s), X[:, ::-1], zeros(4, 4))
    got, got_state, got_backward = session.run([outputs, state, backward])
    np.testing.assert_allclose(got, expected.swapaxes(0, 1), 1e-10)
    np.testing.assert_allclose(got_backward, turned[:, ::-1].swapaxes(0, 1), 1e-10)
    assert_states(tuple(got_state), expected_state)
    assert adapted.shape.as_list() == [5, 3, 4]


def test_fused_cells_side_by_side_have_variables_of_their_own():
    for scope in (None, "backward", None):
        contrib_rnn.LSTMBlockFusedCell(4)(tf.zeros([5, 3, 2]), dtype=tf.float32, scope=scope)
    kernels = [v.op.name for v in tf.trainable_variables() if v.shape.ndims == 2]
    assert kernels == ["lstm_fused_cell/kernel", "backward/kernel", "lstm_fused_cell_1/kernel"]


def test_a_state_saver(session):
    class Saver:
        def __init__(self):
            self.variables = {}

        def state(self, name):
            self.variables[name] = tf.get_variable(f"saved_{name}", [3, 4], initializer=tf.zeros_initializer())
            return self.variables[name].value()

        def save_state(self, name, value):
            return self.variables[name].assign(value)

    saver = Saver()
    steps = [tf.ones([3, 2])] * 2
    outputs, state = tf.nn.static_state_saving_rnn(rnn_cell.BasicLSTMCell(4), steps, saver, ("c", "h"))
    session.run(tf.global_variables_initializer())
    _, first = session.run([outputs, state])
    np.testing.assert_allclose(session.run(saver.variables["c"]), first.c)
    _, second = session.run([outputs, state])
    assert (second.c != first.c).all()


# -- gradients and training ----------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [None, [2, 3]])
@pytest.mark.parametrize("kind", ["basic", "gru", "lstm"])
def test_gradients_equal_differences(kind, lengths):
    make, _, _, _ = KINDS[kind]
    pool = np.random.default_rng(5).normal(size=150) * 0.5

    def build(x, pool):
        taken = [0]

        def getter(_, name, shape=None, **unused):
            size = int(np.prod(shape))
            start, taken[0] = taken[0], taken[0] + size
            return tf.reshape(pool[start : start + size], shape)

        with tf.variable_scope("s", custom_getter=getter):
            outputs, state = tf.nn.dynamic_rnn(make(), x, lengths, dtype=tf.float64)
        return [outputs, *(state if kind == "lstm" else [state])]

    check_gradients(build, [X[:2, :3], pool], tolerance=1e-6)


def test_gradients_equal_those_of_the_unrolled_network(session):
    cell = rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(4), rnn_cell.GRUCell(3)])
    x = tf.constant(X)
    dynamic, _ = tf.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float64)
    static, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float64, sequence_length=LENGTHS)
    sources = [x, *tf.trainable_variables()]
    first = tf.gradients(tf.reduce_sum(tf.square(dynamic)), sources)
    second = tf.gradients(tf.reduce_sum(tf.square(tf.stack(static, 1))), sources)
    randomized(session)
    for a, b in zip(*session.run([first, second]), strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)


def test_a_language_model_learns(session):
    """An LSTM over embeddings learns a periodic text."""
    tf.set_random_seed(1)
    text = np.tile([0, 1, 2, 3, 2, 1], 8)
    ids, targets = tf.constant([text[:-1]]), tf.constant([text[1:]])
    table = tf.get_variable("table", [4, 8])
    cell = rnn_cell.DropoutWrapper(rnn_cell.BasicLSTMCell(16), output_keep_prob=0.9)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, ids), dtype=tf.float32)
    logits = tf.reshape(
        tf.matmul(tf.reshape(outputs, [-1, 16]), tf.get_variable("softmax", [16, 4])), [1, len(text) - 1, 4]
    )
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))
    train = tf.train.AdamOptimizer(0.03).minimize(loss)
    session.run(tf.global_variables_initializer())
    before = session.run(loss)
    for _ in range(60):
        session.run(train)
    assert before > 1.2 and session.run(loss) < 0.2
