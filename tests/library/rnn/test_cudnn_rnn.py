"""`tf.contrib.cudnn_rnn`: the layers compute what the formulas of cuDNN's documentation say."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import cudnn_rnn
from tfray.errors import InvalidArgumentError

INPUTS = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def values(variables):
    return {variable.op.name: np.asarray(variable.eval(), np.float64) for variable in variables}


@pytest.mark.parametrize("name", ["CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_shapes_and_the_last_output(name, direction):
    layer = getattr(cudnn_rnn, name)(2, 4, direction=direction)
    outputs, states = layer(INPUTS)
    count = layer.num_dirs
    assert outputs.shape.as_list() == [5, 2, 4 * count]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values, final = session.run([outputs, states])
        again, _ = session.run(layer(INPUTS, initial_state=[np.zeros_like(each) for each in final]))
    assert [each.shape for each in final] == [(2 * count, 2, 4)] * (2 if name == "CudnnLSTM" else 1)
    np.testing.assert_allclose(final[0][-count], values[-1, :, :4], rtol=1e-6)
    if count == 2:
        np.testing.assert_allclose(final[0][-1], values[0, :, 4:], rtol=1e-6)
    np.testing.assert_allclose(values, again, rtol=1e-6)
    assert layer.trainable_variables == tf.trainable_variables()


def test_an_lstm_by_its_formula():
    outputs, _ = cudnn_rnn.CudnnLSTM(1, 4)(INPUTS)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, result = values(tf.trainable_variables()), session.run(outputs)
    prefix = "cudnn_lstm/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell"  # as TensorFlow's checkpoints have it
    kernel, bias = found[f"{prefix}/kernel"], found[f"{prefix}/bias"]
    h = c = np.zeros([2, 4])
    for x, expected in zip(INPUTS, result, strict=True):
        i, new, f, o = np.split(np.c_[x, h] @ kernel + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        h = sigmoid(o) * np.tanh(c)
        np.testing.assert_allclose(expected, h, rtol=1e-4, atol=1e-5)


def test_a_gru_by_its_formula():
    outputs, _ = cudnn_rnn.CudnnGRU(1, 4)(INPUTS)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, result = values(tf.trainable_variables()), session.run(outputs)
    found = {name.split("_cell/", 2)[-1]: value for name, value in found.items()}
    h = np.zeros([2, 4])
    for x, expected in zip(INPUTS, result, strict=True):
        r, u = np.split(sigmoid(np.c_[x, h] @ found["gates/kernel"] + found["gates/bias"]), 2, axis=1)
        own = x @ found["candidate/input_projection/kernel"] + found["candidate/input_projection/bias"]
        kept = h @ found["candidate/hidden_projection/kernel"] + found["candidate/hidden_projection/bias"]
        h = (1 - u) * np.tanh(own + r * kept) + u * h
        np.testing.assert_allclose(expected, h, rtol=1e-4, atol=1e-5)


def test_dropout_is_for_training():
    layer = cudnn_rnn.CudnnLSTM(2, 4, dropout=0.9, seed=1)
    trained, _ = layer(INPUTS, training=True)
    plain, _ = layer(INPUTS, training=False)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b, c, d = (session.run(each) for each in (trained, trained, plain, plain))
    assert np.abs(a - b).max() > 0
    np.testing.assert_array_equal(c, d)


def test_sequences_that_end_and_batches_first():
    layer = cudnn_rnn.CudnnGRU(1, 4, direction="bidirectional")
    outputs, _ = layer(INPUTS, sequence_lengths=[5, 2])
    swapped, _ = layer(INPUTS.transpose(1, 0, 2), sequence_lengths=[5, 2], time_major=False)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run([outputs, swapped])
    assert (first[2:, 1] == 0).all() and (first[:2, 1] != 0).all()
    np.testing.assert_allclose(first, second.transpose(1, 0, 2), rtol=1e-6)


@pytest.mark.parametrize("name", ["CudnnLSTM", "CudnnGRU", "CudnnRNNTanh"])
def test_initializers(name):
    layer = getattr(cudnn_rnn, name)(
        1, 4, kernel_initializer=tf.constant_initializer(0.5), bias_initializer=tf.constant_initializer(0.25)
    )
    layer(INPUTS)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for variable in layer.trainable_variables:
            assert (session.run(variable) == (0.25 if variable.op.name.endswith("/bias") else 0.5)).all()


def test_arguments_that_do_not_do():
    with pytest.raises(InvalidArgumentError, match="direction='sideways'"):
        cudnn_rnn.CudnnLSTM(1, 2, direction="sideways")
    with pytest.raises(InvalidArgumentError, match="input_mode='skip_input'"):
        cudnn_rnn.CudnnLSTM(1, 2, input_mode="skip_input")
