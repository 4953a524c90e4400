"""`tf.contrib`: layers and modules of few names."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
import tfray.contrib.slim as slim
from tests.support.sessions import run_initialized as run
from tfray.errors import InvalidArgumentError

IMAGES = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype(np.float32)
ROWS = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


def test_a_relu_that_is_smooth(session):
    x, alpha, clip = tf.constant(ROWS), tf.constant(2.0), tf.constant(1.5)
    smooth, bounded = tf.contrib.nn.scaled_softplus(x, alpha), tf.contrib.nn.scaled_softplus(x, alpha, clip)
    expected, share = 2 * np.log1p(np.exp(ROWS / 2)), 1 / (1 + np.exp(-ROWS / 2))
    np.testing.assert_allclose(session.run(smooth), expected, rtol=1e-5)
    np.testing.assert_allclose(session.run(bounded), np.minimum(expected, 1.5), rtol=1e-5)
    gradients = session.run(tf.gradients(bounded, [x, alpha, clip]))
    below = expected < 1.5
    np.testing.assert_allclose(gradients[0], share * below, rtol=1e-5)
    np.testing.assert_allclose(gradients[1], ((expected - ROWS * share) / 2 * below).sum(), rtol=1e-4)
    assert gradients[2] == (~below).sum()


def test_alpha_dropout_keeps_mean_and_variance():
    x = np.random.default_rng(2).normal(size=(200, 300)).astype(np.float32)
    share = tf.placeholder(tf.float32, [])
    results = tf.contrib.nn.alpha_dropout(x, 0.8, seed=1), tf.contrib.nn.alpha_dropout(x, share, [200, 1], seed=2)
    with tf.Session() as session:
        by_element, by_row = session.run(results, {share: 0.5})
    for result, kept in ((by_element, 0.8), (by_row, 0.5)):
        scale = (kept + kept * (1 - kept) * 1.7580993**2) ** -0.5
        left_out = np.isclose(result, scale * (-1.7580993 + 1.7580993 * (1 - kept)), atol=1e-6)
        assert abs(left_out.mean() - (1 - kept)) < 0.1
        inside = result[~left_out], scale * (x[~left_out] + 1.7580993 * (1 - kept))
        np.testing.assert_allclose(*inside, rtol=1e-4, atol=1e-5)
    assert abs(by_element.mean()) < 0.05 and abs(by_element.std() - 1) < 0.05
    assert set(np.isclose(by_row, by_row[:, :1], atol=1e-6).all(axis=1)) == {False, True}, "whole rows are left out"
    assert run(tf.contrib.nn.alpha_dropout(x, 1.0)).tolist() == x.tolist()
    with pytest.raises(InvalidArgumentError, match="keep_prob is 0"):
        tf.contrib.nn.alpha_dropout(x, 0)


def test_legacy_dense_layers():
    x = np.random.default_rng(3).normal(size=(2, 5, 4)).astype(np.float32)
    plain = tf.contrib.layers.legacy_linear(x, 3, bias_init=tf.ones_initializer(), name="plain")
    rectified = tf.contrib.layers.legacy_relu(ROWS, 2, weight_regularizer=tf.nn.l2_loss)
    bare = tf.contrib.layers.legacy_fully_connected(ROWS, 2, tf.tanh, bias_init=None, weight_collections="mine")
    found = ["plain/weights", "plain/bias", "fully_connected/weights", "fully_connected/bias"]
    assert [variable.op.name for variable in tf.global_variables()] == [*found, "fully_connected_1/weights"]
    assert tf.get_collection(tf.GraphKeys.WEIGHTS) == tf.global_variables()[:4:2]
    assert tf.get_collection(tf.GraphKeys.BIASES) == tf.global_variables()[1:4:2]
    assert tf.get_collection("mine") == tf.global_variables()[4:]
    assert tf.get_collection(tf.GraphKeys.ACTIVATIONS) == [plain, rectified, bare]
    assert len(tf.losses.get_regularization_losses()) == 1
    first, second, third, *values = run([plain, rectified, bare, *tf.global_variables()])
    np.testing.assert_allclose(first, x @ values[0] + 1, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, np.maximum(ROWS @ values[2], 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(third, np.tanh(ROWS @ values[4]), rtol=1e-5, atol=1e-6)


def test_modules_of_few_names(tmp_path, capsys):
    contrib = tf.contrib
    assert contrib.stateless.stateless_random_uniform is tf.random.stateless_uniform
    assert contrib.quantization.quantize_v2 is tf.quantize_v2
    assert contrib.quantization.quantized_conv2d is tf.nn.quantized_conv2d
    assert contrib.checkpoint.CheckpointManager is tf.train.CheckpointManager
    assert {"integrate", "resampler", "stateless"} <= set(dir(contrib))
    tf.get_variable("weights", [2, 3])
    analyzer = contrib.tfprof.model_analyzer
    found = analyzer.print_model_analysis(
        tf.get_default_graph(), tfprof_options=analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS
    )
    assert found.total_parameters == 6 and "weights" in capsys.readouterr().out


def test_models_of_keras_are_saved_under_the_older_names(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(4,))])
    tf.contrib.saved_model.save_keras_model(model, str(tmp_path / "model"))
    again = tf.contrib.saved_model.load_keras_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(ROWS), model.predict(ROWS))


def test_channels_are_convolved_by_themselves(session):
    images = tf.constant(IMAGES)
    found = slim.separable_conv2d(images, None, 3, 2, stride=2, activation_fn=None, scope="each")
    assert [v.op.name for v in slim.get_model_variables()] == ["each/depthwise_weights", "each/biases"]
    assert found.shape.as_list() == [2, 4, 4, 6] and found.op.name == "each/BiasAdd"
    expected = tf.nn.depthwise_conv2d(images, slim.get_model_variables()[0], [1, 2, 2, 1], "SAME")
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(*session.run([found, expected]), atol=1e-6)
    normalized = slim.separable_conv2d(images, None, 3, normalizer_fn=slim.batch_norm, scope="other")
    assert normalized.shape.as_list() == [2, 8, 8, 3] and normalized.op.type == "Relu"
