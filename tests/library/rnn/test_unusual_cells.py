"""Cells that only tf.contrib.rnn has, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import randomized
from tfray.contrib import rnn

X = np.random.default_rng(0).normal(size=(2, 3))
H = np.random.default_rng(1).normal(size=(2, 4))
C = np.random.default_rng(2).normal(size=(2, 4))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def ugrnn(v):
    gate, made = np.split(np.concatenate([X, H], 1) @ v["kernel"] + v["bias"], 2, 1)
    gate = sigmoid(gate + 1)
    new = gate * H + (1 - gate) * np.tanh(made)
    return new, new


def independent(v):
    new = np.tanh(X @ v["kernel_w"] + H * v["kernel_u"] + v["bias"])
    return new, new


def simple(v):
    made, forget, reset, skipped = np.split(X @ v["kernel"], 4, 1)
    forget, reset = sigmoid(forget + v["bias"][:4]), sigmoid(reset + v["bias"][4:])
    new = forget * H + (1 - forget) * made
    return reset * np.tanh(new) + (1 - reset) * skipped, new


def coupled(v):
    made, forget, out = np.split(np.concatenate([X, H], 1) @ v["W_0"] + v["B"], 3, 1)
    forget = sigmoid(forget + v["W_F_diag"] * C + 1)
    new = forget * C + (1 - forget) * np.tanh(made)
    output = sigmoid(out + v["W_O_diag"] * new) * np.tanh(new) @ v["W_P_0"]
    return np.clip(output, -0.5, 0.5), new


def searched(v):
    x = np.split(X @ v["kernel"], 8, 1)
    h = np.split(H @ v["recurrent_kernel"] + v["bias"], 8, 1)
    first = np.tanh(sigmoid(x[0] + h[0]) * np.maximum(x[1] + h[1], 0))
    second = np.tanh(sigmoid(x[2] + h[2]) + np.maximum(x[3] * h[3], 0))
    third = np.tanh(np.tanh(x[4] + h[4]) * sigmoid(x[5] + h[5]))
    fourth = sigmoid(np.tanh(x[6] + h[6]) + sigmoid(x[7] + h[7]))
    new = np.tanh(first + C) * second
    return np.tanh(new * np.tanh(third + fourth)) @ v["projection_weights"], new


def crossing(v):
    inputs = X @ v["in_projection/kernel"] + v["in_projection/bias"]
    time, h, depth, y = np.split(np.concatenate([inputs, H], 1) @ v["kernel"] + v["bias"], 4, 1)
    time, depth = sigmoid(time + 1), sigmoid(depth + 1)
    return depth * inputs + (1 - depth) * np.maximum(y, 0), time * H + (1 - time) * np.tanh(h)


def grouped(v):
    kernels = [v["group0/kernel"], v["group1/kernel"]]
    seen = [np.concatenate([H[:, part], C[:, part]], 1) for part in (slice(0, 2), slice(2, 4))]
    parts = [np.split(x @ kernel, 4, 1) for x, kernel in zip(seen, kernels, strict=True)]
    enter, made, forget, leave = (
        np.concatenate(each, 1) + v[f"bias_{name}"] for name, each in zip("ijfo", zip(*parts, strict=True), strict=True)
    )
    new = sigmoid(forget + 1) * H + sigmoid(enter) * np.tanh(made)
    return sigmoid(leave) * np.tanh(new) @ v["projection/kernel"], new


@pytest.mark.parametrize(
    ("cell", "inputs", "state", "expected"),
    [
        (lambda: rnn.NASCell(4, 4, use_bias=True, dtype=tf.float64), X, rnn.LSTMStateTuple(C, H), searched),
        (lambda: rnn.IntersectionRNNCell(4, 4), X, H, crossing),
        (lambda: rnn.GLSTMCell(4, num_proj=4, number_of_groups=2), H, rnn.LSTMStateTuple(H, C), grouped),
    ],
)
def test_a_step_of_cells_of_several_parts(session, cell, inputs, state, expected):
    output, new = cell()(tf.constant(inputs), tf.contrib.framework.nest.map_structure(tf.constant, state))
    values = {name.partition("/")[2]: value for name, value in randomized(session).items()}
    wanted = expected(values)
    got_output, got_state = session.run([output, new])
    np.testing.assert_allclose(got_output, wanted[0], rtol=1e-9)
    np.testing.assert_allclose(got_state[0] if isinstance(state, tuple) else got_state, wanted[1], rtol=1e-9)


@pytest.mark.parametrize("peepholes", [False, True])
def test_units_open_by_time(session, peepholes):
    cell = rnn.PhasedLSTMCell(4, peepholes, leak=0.25, ratio_on=0.5, period_init_min=2.0, period_init_max=8.0)
    x, h, c = (each.astype(np.float32) for each in (X, H, C))
    times = np.array([[3.0], [10.0]])
    output, new = cell((tf.constant(times), tf.constant(x)), rnn.LSTMStateTuple(tf.constant(c), tf.constant(h)))
    session.run(tf.global_variables_initializer())
    v = {variable.op.name.partition("/")[2]: value for variable, value in held(session)}
    assert np.all((v["period"] >= 2) & (v["period"] <= 8) & (v["phase"] >= 0) & (v["phase"] <= v["period"]))
    gates = [x, h, c] if peepholes else [x, h]
    masks = np.concatenate(gates, 1) @ v["mask_gates/kernel"] + v["mask_gates/bias"]
    enter, forget = np.split(sigmoid(masks), 2, 1)
    made = np.tanh(np.concatenate([x, h], 1) @ v["new_input/kernel"] + v["new_input/bias"])
    next_c = c * forget + enter * made
    gates = [x, h, next_c] if peepholes else [x, h]
    leave = sigmoid(np.concatenate(gates, 1) @ v["output_gate/kernel"] + v["output_gate/bias"])
    share = np.mod(times - v["phase"], v["period"]) / v["period"]
    k = np.where(share < 0.25, 4 * share, np.where(share < 0.5, 2 - 4 * share, 0.25 * share))
    got_output, got_state = session.run([output, new])
    np.testing.assert_allclose(got_state[0], k * next_c + (1 - k) * c, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got_output, k * np.tanh(next_c) * leave + (1 - k) * h, rtol=1e-4, atol=1e-5)


def test_coupled_gates_of_mean_zero(session):
    x = np.array([[1.5, -2, 0.25], [0, 3, -1]], np.float32)
    cell = rnn.CoupledInputForgetGateLSTMCell(3, True, num_proj=2, layer_norm=True, norm_gain=0.9, norm_shift=0.1)
    outputs, state = tf.nn.static_rnn(cell, [tf.constant(x), tf.constant(x * 0.5)], dtype=tf.float32)
    variables = tf.global_variables()
    session.run([each.initializer for each in variables])
    starts = {each.op.name.partition("cell/")[2]: session.run(each) for each in variables[2:8]}
    assert all((value == (0.9 if name.endswith("gamma") else 0.1)).all() for name, value in starts.items())
    for place, each in enumerate(variables):
        size = each.shape.num_elements()
        each.load(np.sin(np.arange(size) * 1.3 + place).reshape(each.shape.as_list()), session)
    # What TensorFlow 1.15 gives for these weights, in the order of its variables.
    expected = [[[0.2699, -0.3537], [-0.625, 0.0099]], [[-0.387, -0.0649], [0.4459, -0.335]]]
    np.testing.assert_allclose(session.run(outputs), expected, atol=1e-4)
    memory = [[-0.2605, -0.589, 0.8934], [-0.8033, 0.6939, 0.9051]]
    np.testing.assert_allclose(session.run(state.c), memory, atol=1e-4)


def held(session):
    variables = tf.global_variables()
    return zip(variables, session.run(variables), strict=True)


def test_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match="num_proj must be divisible"):
        rnn.GLSTMCell(4, num_proj=3, number_of_groups=2)
    with pytest.raises(ValueError, match="num_in_proj"):
        rnn.IntersectionRNNCell(4)(tf.constant(X), tf.constant(H))


@pytest.mark.parametrize(
    ("cell", "state", "expected"),
    [
        (lambda: rnn.UGRNNCell(4), H, ugrnn),
        (lambda: rnn.IndRNNCell(4, dtype=tf.float64), H, independent),
        (lambda: rnn.SRUCell(4, dtype=tf.float64), H, simple),
        (
            lambda: rnn.CoupledInputForgetGateLSTMCell(4, use_peepholes=True, num_proj=4, proj_clip=0.5),
            rnn.LSTMStateTuple(C, H),
            coupled,
        ),
    ],
)
def test_a_step(session, cell, state, expected):
    cell = cell()
    output, new = cell(tf.constant(X), tf.contrib.framework.nest.map_structure(tf.constant, state))
    values = {name.rpartition("/")[2]: value for name, value in randomized(session).items()}
    wanted_output, wanted_state = expected(values)
    got_output, got_state = session.run([output, new])
    np.testing.assert_allclose(got_output, wanted_output, rtol=1e-9)
    np.testing.assert_allclose(got_state[0] if isinstance(state, tuple) else got_state, wanted_state, rtol=1e-9)


def test_names_of_variables_are_those_of_checkpoints():
    rnn.UGRNNCell(4)(tf.ones([2, 3]), tf.ones([2, 4]))
    rnn.CoupledInputForgetGateLSTMCell(4)(tf.ones([2, 3]), (tf.ones([2, 4]), tf.ones([2, 4])))
    cell = rnn.ConvLSTMCell(2, [5, 5, 1], 2, [3, 3])
    cell(tf.ones([2, 5, 5, 1]), cell.zero_state(2, tf.float32))
    assert [variable.op.name for variable in tf.global_variables()] == [
        "ugrnn_cell/kernel",
        "ugrnn_cell/bias",
        "coupled_input_forget_gate_lstm_cell/W_0",
        "coupled_input_forget_gate_lstm_cell/B",
        "conv_lstm_cell/kernel",
        "conv_lstm_cell/biases",
    ]


def test_state_that_is_no_tuple(session):
    cell = rnn.CoupledInputForgetGateLSTMCell(4, state_is_tuple=False)
    output, state = cell(tf.constant(X), tf.constant(np.concatenate([C, H], 1)))
    session.run(tf.global_variables_initializer())
    output, state = session.run([output, state])
    np.testing.assert_array_equal(state[:, 4:], output)
    assert cell.state_size == 8
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be 1"):
        rnn.CoupledInputForgetGateLSTMCell(4, num_unit_shards=2)


@pytest.mark.parametrize(
    ("cell", "sizes"),
    [
        (lambda: rnn.ConvLSTMCell(conv_ndims=2, input_shape=[5, 4, 3], output_channels=2, kernel_shape=[3, 3]), [5, 4]),
        (
            lambda: rnn.Conv1DLSTMCell(input_shape=[6, 3], output_channels=2, kernel_shape=[3], skip_connection=True),
            [6],
        ),
        (lambda: rnn.Conv3DLSTMCell(input_shape=[2, 3, 2, 3], output_channels=2, kernel_shape=[1, 2, 2]), [2, 3, 2]),
    ],
)
def test_convolutions_over_time(session, cell, sizes):
    cell = cell()
    images = np.random.default_rng(0).normal(size=(2, 4, *sizes, 3)).astype(np.float32)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(images), dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    outputs, state = session.run([outputs, state])
    assert outputs.shape == (2, 4, *cell.output_size.as_list()) and state.c.shape == (2, *sizes, 2)
    np.testing.assert_array_equal(outputs[:, -1, ..., :2], state.h)
    with pytest.raises(ValueError, match="Invalid input_shape"):
        rnn.ConvLSTMCell(2, [5, 3], 2, [3, 3])


def test_a_convolution_of_one_pixel_is_an_lstm(session):
    cell = rnn.Conv2DLSTMCell(input_shape=[1, 1, 3], output_channels=4, kernel_shape=[1, 1])
    c, h = (tf.constant(each.reshape(2, 1, 1, 4)) for each in (C, H))
    output, _ = cell(tf.constant(X.reshape(2, 1, 1, 3)), rnn.LSTMStateTuple(c, h))
    values = {name.rpartition("/")[2]: value for name, value in randomized(session).items()}
    gates = np.concatenate([X, H], 1) @ values["kernel"][0, 0] + values["biases"]
    into, made, forget, out = np.split(gates, 4, 1)
    memory = sigmoid(forget + 1) * C + sigmoid(into) * np.tanh(made)
    np.testing.assert_allclose(session.run(output)[:, 0, 0], np.tanh(memory) * sigmoid(out), rtol=1e-9)


def test_attention_to_the_last_outputs(session):
    cell = rnn.AttentionCellWrapper(tf.nn.rnn_cell.GRUCell(4), attn_length=3, attn_size=5, attn_vec_size=2)
    assert cell.state_size == (4, 5, 15) and cell.output_size == 5
    kept = np.random.default_rng(3).normal(size=(2, 15))
    attention = np.random.default_rng(4).normal(size=(2, 5))
    output, state = cell(tf.constant(X), (tf.constant(H), tf.constant(attention), tf.constant(kept)))
    v = {name.removeprefix("attention_cell_wrapper/"): value for name, value in randomized(session).items()}
    output, (hidden, attended, outputs) = session.run([output, state])
    before = kept.reshape(2, 3, 5)
    keys = before @ v["attention/attn_w"][0, 0] + (hidden @ v["attention/kernel"] + v["attention/bias"])[:, None]
    scores = np.exp((v["attention/attn_v"] * np.tanh(keys)).sum(2))
    shares = scores / scores.sum(1, keepdims=True)
    np.testing.assert_allclose(attended, (shares[:, :, None] * before).sum(1), rtol=1e-9)
    projected = np.concatenate([hidden, attended], 1) @ v["attn_output_projection/kernel"]
    np.testing.assert_allclose(output, projected + v["attn_output_projection/bias"], rtol=1e-9)
    np.testing.assert_array_equal(outputs.reshape(2, 3, 5), np.concatenate([before[:, 1:], output[:, None]], 1))


def test_attention_with_a_joined_state():
    cell = rnn.AttentionCellWrapper(tf.nn.rnn_cell.GRUCell(4), 2, state_is_tuple=False)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 4]), dtype=tf.float32)
    assert state.shape.as_list() == [2, 4 + 4 + 8] and outputs.shape.as_list() == [2, 3, 4]
    with pytest.raises(ValueError, match="state_is_tuple is not set"):
        rnn.AttentionCellWrapper(tf.nn.rnn_cell.BasicLSTMCell(4), 2, state_is_tuple=False)
    with pytest.raises(ValueError, match="attn_length should be greater than zero, got 0"):
        rnn.AttentionCellWrapper(tf.nn.rnn_cell.GRUCell(4), 0)


@pytest.mark.parametrize(
    ("make", "expected", "shapes"),
    [
        (
            rnn.IndyGRUCell,
            [[0.487, 0.4814, 0.9772], [-0.4023, 0.7772, 0.953]],
            {
                "gates/kernel_w": [5, 6],
                "gates/kernel_u": [1, 6],
                "gates/bias": [6],
                "candidate/kernel": [5, 3],
                "candidate/kernel_u": [1, 3],
                "candidate/bias": [3],
            },
        ),
        (
            rnn.IndyLSTMCell,
            [[0.5849, -0.4044, -0.082], [0.0734, -0.074, -0.0452]],
            {"kernel_w": [5, 12], "kernel_u": [1, 12], "bias": [12]},
        ),
        (
            rnn.IndRNNCell,
            [[1.0, 0.9903, -0.9823], [1.0, 0.9414, -0.044]],
            {"kernel_w": [5, 3], "kernel_u": [1, 3], "bias": [3]},
        ),
        (
            lambda units: rnn.CompiledWrapper(rnn.BasicLSTMCell(units), compile_stateful=True),
            [[0.4704, 0.5026, -0.0123], [-0.047, 0.272, -0.0175]],
            {"kernel": [8, 12], "bias": [12]},
        ),
    ],
)
def test_cells_of_independent_units(make, expected, shapes):
    """The outputs that TensorFlow 1.15 gives after four steps, and its names and shapes of variables."""
    inputs = np.random.RandomState(9).randn(2, 4, 5).astype(np.float32)
    outputs, _ = tf.nn.dynamic_rnn(make(3), tf.constant(inputs), dtype=tf.float32)
    variables = tf.global_variables()
    assert {v.op.name.split("/", 2)[2]: v.shape.as_list() for v in variables} == shapes
    with tf.Session() as session:
        for seed, variable in enumerate(variables):
            variable.load(np.random.RandomState(seed).randn(*variable.shape.as_list()), session)
        assert session.run(outputs)[:, -1] == pytest.approx(np.array(expected), abs=1e-4)
