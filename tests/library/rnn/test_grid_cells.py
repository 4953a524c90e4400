"""`tf.contrib.grid_rnn`: the values that TensorFlow 1.15 gives for weights of 0.5."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized as run
from tests.support.sessions import variable_names as names

grid = tf.contrib.grid_rnn
THREE, TWO = np.ones((1, 3), np.float32), np.ones((1, 2), np.float32)
LSTM = (([[0.1, 0.2]], [[0.3, 0.4]]), ([[0.5, 0.6]], [[0.7, 0.8]]))
PLAIN = ([[0.1, 0.1]], [[0.2, 0.2]])
LSTM_STATE = [2.33798, 2.33798], [0.89237, 0.89237], [1.36611, 1.46236], [0.79410, 0.81248]


def step(cell, inputs, state):
    with tf.variable_scope("root", initializer=tf.constant_initializer(0.5)):
        return cell(tf.constant(inputs), constants(state))


def constants(state):
    if isinstance(state, tuple):
        return tuple(constants(each) for each in state)
    return tf.constant(np.array(state, np.float32))


def flat(values):
    return [value.ravel().tolist() for value in tf.contrib.framework.nest.flatten(values)]


CASES = {
    "basic LSTM": (lambda: grid.Grid2BasicLSTMCell(2), THREE, LSTM, [[0.89237] * 2, *LSTM_STATE]),
    "LSTM": (lambda: grid.Grid2LSTMCell(2), THREE, LSTM, [[0.89237] * 2, *LSTM_STATE]),
    "tied": (lambda: grid.Grid2LSTMCell(2, tied=True), THREE, LSTM, [[0.89237] * 2, *LSTM_STATE]),
    "a dense layer": (
        lambda: grid.Grid2BasicLSTMCell(2, non_recurrent_fn=tf.nn.relu),
        THREE,
        LSTM[:1],
        [[2.14414] * 2, [0.91696, 1.01149], [0.62602, 0.66225]],
    ),
    "one LSTM": (lambda: grid.Grid1LSTMCell(2), THREE, LSTM[:1], [[0.79463] * 2, [2.12624] * 2, [0.79463] * 2]),
    "one basic LSTM": (
        lambda: grid.Grid1BasicLSTMCell(2),
        THREE,
        LSTM[:1],
        [[0.79463] * 2, [2.12624] * 2, [0.79463] * 2],
    ),
    "one RNN": (lambda: grid.Grid1BasicRNNCell(2), THREE, PLAIN[:1], [[0.90515] * 2] * 2),
    "RNN": (lambda: grid.Grid2BasicRNNCell(2), TWO, PLAIN, [[0.95018] * 2, [0.95018] * 2, [0.83365] * 2]),
    "GRU": (lambda: grid.Grid2GRUCell(2), TWO, PLAIN, [[0.31748] * 2, [0.31748] * 2, [0.26259] * 2]),
    "joined": (
        lambda: grid.Grid2GRUCell(2, state_is_tuple=False, output_is_tuple=False),
        TWO,
        [[0.1, 0.1, 0.2, 0.2]],
        [[0.31748] * 2, [0.31748, 0.31748, 0.26259, 0.26259]],
    ),
    "three dimensions": (
        lambda: grid.GridRNNCell(2, 3, [0, 2], [0, 1], [0], [2], cell_fn=tf.nn.rnn_cell.GRUCell),
        np.float32([[1, 1, 2, 3]]),
        ([[0, 0]], [[0, 0]]),
        [[3.49915] * 2, [2.4835] * 2] * 2,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    make, inputs, state, expected = CASES[case]
    cell = make()
    found = flat(run(step(cell, inputs, state)))
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        assert value == pytest.approx(wanted, abs=1e-4)
    assert {variable.op.name for variable in cell.weights} <= set(names())


def test_joined_states_of_memories():
    cell = grid.Grid3LSTMCell(2, use_peepholes=True, state_is_tuple=False, output_is_tuple=False)
    assert (cell.output_size, cell.state_size) == (2, 12)
    output, state = run(step(cell, THREE, np.zeros((1, 12)).tolist()))
    assert output.tolist() == [pytest.approx([0.96341] * 2, abs=1e-4)]
    expected = [2.43568, 0.96341, 0.74003, 0.54514]
    assert state[0, :8:2].tolist() == pytest.approx(expected, abs=1e-4)
    assert state[0, 1::2].tolist() == pytest.approx(state[0, ::2].tolist())


def test_sequences():
    x = np.arange(18, dtype=np.float32).reshape(2, 3, 3) / 10
    with tf.variable_scope("root", initializer=tf.constant_initializer(0.1)):
        (outputs,), _ = tf.nn.dynamic_rnn(
            grid.Grid2LSTMCell(2), tf.placeholder_with_default(x, [None, 3, 3]), dtype=tf.float32
        )
    layers = [f"recurrent/cell_{i}/lstm_cell/{part}" for i in (1, 0) for part in ("kernel", "bias")]
    assert names() == [f"root/rnn/Grid2LSTMCell/{name}" for name in ("project_m_0", "project_c_0", *layers)]
    expected = [[0.0126, 0.05108, 0.09034], [0.12901, 0.16861, 0.20761]]
    assert run(outputs)[..., 0] == pytest.approx(np.array(expected), abs=1e-4)

    steps = [tf.constant(each) for each in x.reshape(3, 2, 3)]
    with tf.variable_scope("static", initializer=tf.constant_initializer(0.1)):
        listed, _ = tf.nn.static_rnn(grid.Grid2LSTMCell(2), steps, dtype=tf.float32)
    assert len(names()) == 12
    assert run(listed[-1][0])[:, 0].tolist() == pytest.approx([0.16839, 0.20681], abs=1e-4)


def test_inputs_in_parts_or_none():
    cell = grid.GridRNNCell(2, 2, [0, 1], [0], cell_fn=tf.nn.rnn_cell.BasicRNNCell)
    whole = step(cell, np.float32([[1, 2]]), PLAIN)
    with tf.variable_scope("root", reuse=True):
        parts = cell((tf.constant([[1.0]]), tf.constant([[2.0]])), constants(PLAIN))
        absent = cell(None, constants(PLAIN))
        with pytest.raises(ValueError, match="tuple of 2 tensors"):
            cell((tf.constant([[1.0]]),), constants(PLAIN))
    found = run([whole[0][0], parts[0][0], absent[0][0]])
    assert found[0].tolist() == found[1].tolist() != found[2].tolist()


def test_misuse():
    with pytest.raises(ValueError, match="dims must be >= 1"):
        grid.GridRNNCell(2, 0)
    with pytest.raises(ValueError, match=r"Invalid dims: \[2\]. Must be in \[0, 2\)"):
        grid.GridRNNCell(2, 2, input_dims=2)
    with pytest.raises(TypeError, match="cell_fn must return an RNNCell instance"):
        grid.GridRNNCell(2, cell_fn=lambda units: units)
    with pytest.raises(ValueError, match="Expected state as a tuple of 2 element"):
        step(grid.Grid2GRUCell(2), TWO, PLAIN[:1])
