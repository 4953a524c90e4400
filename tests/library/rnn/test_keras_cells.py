"""Recurrent cells and layers of `tf.keras`, by the formulas of Keras in TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

INPUTS = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)


def hard_sigmoid(x):
    return np.clip(0.2 * x + 0.5, 0, 1)


def simple_rnn(x, h, kernel, recurrent, bias):
    return (np.tanh(x @ kernel + h[0] @ recurrent + bias),)


def gru(x, h, kernel, recurrent, bias):
    (h,) = h
    z, r, n = np.split(x @ kernel + bias, 3, axis=1)
    to_z, to_r, to_n = np.split(recurrent, 3, axis=1)
    z, r = hard_sigmoid(z + h @ to_z), hard_sigmoid(r + h @ to_r)
    return (z * h + (1 - z) * np.tanh(n + (r * h) @ to_n),)


def lstm(x, state, kernel, recurrent, bias):
    h, c = state
    i, f, n, o = np.split(x @ kernel + h @ recurrent + bias, 4, axis=1)
    c = hard_sigmoid(f) * c + hard_sigmoid(i) * np.tanh(n)
    return hard_sigmoid(o) * np.tanh(c), c


FORMULAS = {"SimpleRNN": (simple_rnn, 1), "GRU": (gru, 1), "LSTM": (lstm, 2)}


def expected(name, weights):
    function, parts = FORMULAS[name]
    state, outputs = (np.zeros([2, 4]),) * parts, []
    for x in INPUTS.transpose(1, 0, 2):
        state = function(x, state, *weights)
        outputs.append(state[0])
    return np.stack(outputs, 1), state


@pytest.mark.parametrize("name", FORMULAS)
def test_layers_by_their_formulas(name):
    layer = getattr(tf.keras.layers, name)(4, return_sequences=True, return_state=True, bias_initializer="ones")
    outputs, *states = layer(tf.constant(INPUTS))
    names = [f"{layer.name}/{part}:0" for part in ("kernel", "recurrent_kernel", "bias")]
    assert [variable.name for variable in tf.trainable_variables()] == names
    assert layer.trainable_variables == tf.trainable_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        weights, found, last = session.run([layer.trainable_variables, outputs, states])
    of_all, state = expected(name, weights)
    np.testing.assert_allclose(found, of_all, rtol=1e-4, atol=1e-5)
    for value, part in zip(last, state, strict=True):
        np.testing.assert_allclose(value, part, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FORMULAS)
def test_cells_under_dynamic_rnn(name):
    cell = getattr(tf.keras.layers, f"{name}Cell")(4)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(INPUTS), dtype=tf.float32)
    last = tf.keras.layers.RNN(cell)(tf.constant(INPUTS))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        weights, found, end, again = session.run([cell.trainable_variables, outputs, state, last])
    of_all, final = expected(name, weights)
    np.testing.assert_allclose(found, of_all, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(again, of_all[:, -1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(end[1] if name == "LSTM" else end, final[-1], rtol=1e-4, atol=1e-5)


def test_the_forget_gate_begins_with_ones():
    tf.keras.layers.LSTM(2)(tf.constant(INPUTS))
    tf.keras.layers.LSTM(2, unit_forget_bias=False)(tf.constant(INPUTS))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        biases = [session.run(each).tolist() for each in tf.trainable_variables() if "bias" in each.name]
    assert biases == [[0, 0, 1, 1, 0, 0, 0, 0], [0] * 8]


def test_backwards_and_a_first_state():
    layer = tf.keras.layers.GRU(4, go_backwards=True, name="one")
    zeros = layer(tf.constant(INPUTS))
    given = layer(tf.constant(INPUTS), initial_state=[tf.zeros([2, 4])])
    forwards = tf.keras.layers.RNN(layer.cell)(tf.constant(INPUTS[:, ::-1].copy()))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second, third = session.run([zeros, given, forwards])
    np.testing.assert_allclose(first, second, rtol=1e-6)
    np.testing.assert_allclose(first, third, rtol=1e-6)


def test_a_model_learns_with_an_lstm():
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 6, 1)).astype(np.float32)
    y = (x.sum((1, 2)) > 0).astype(np.float32)
    tf.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.LSTM(8, input_shape=(6, 1)), layers.Dense(1, activation="sigmoid")])
    model.compile(tf.keras.optimizers.Adam(0.05), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=15, batch_size=32, verbose=0)
    assert len(model.get_weights()) == 5
    assert model.evaluate(x, y, verbose=0)[1] > 0.85
