"""Models that come ready, and helpers of `tf.keras.utils` that change whole models."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
RANDOM = np.random.RandomState(0)
X, Z = RANDOM.randn(32, 4), RANDOM.randn(32, 3)
Y = X.sum(1, keepdims=True)


def losses_of(model, inputs, optimizer):
    model.compile(optimizer, "mse")
    return model.fit(inputs, Y, epochs=3, verbose=0, shuffle=False).history["loss"]


def test_a_linear_model_trains():
    """Expected: what TensorFlow 1.15 printed."""
    model = keras.experimental.LinearModel(kernel_initializer="zeros")
    np.testing.assert_allclose(losses_of(model, X, "sgd"), [5.59547, 5.25491, 4.93607], rtol=1e-5)
    assert [weight.shape for weight in model.get_weights()] == [(4, 1), (1,)]
    again = keras.experimental.LinearModel.from_config(model.get_config())
    assert again.get_config() == model.get_config()


def test_a_linear_model_of_several_inputs():
    model = keras.experimental.LinearModel(2, "relu", use_bias=False, kernel_initializer="ones")
    x, z = X.astype(np.float32), Z.astype(np.float32)
    sparse = tf.SparseTensor([[0, 1], [31, 2]], [1.0, -2.0], [32, 3])
    found = [model([tf.constant(x), each]) for each in (tf.constant(z), sparse)]
    with pytest.raises(ValueError, match="Expected 2 inputs, but got 1 inputs"):
        model([tf.constant(x)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        dense, of_sparse = session.run(found)
    other = np.zeros(32)
    other[[0, 31]] = 1, -2
    for value, more in ((dense, z.sum(1)), (of_sparse, other)):
        np.testing.assert_allclose(value, np.maximum(x.sum(1) + more, 0)[:, None].repeat(2, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layers", "inputs", "optimizer", "expected"),
    [((2, 1), [X, Z], ["sgd", "adam"], [6.4537, 6.3748, 6.297]), ((1,), X, "sgd", [1.3989, 1.3559, 1.3144])],
    ids=["two optimizers", "one"],
)
def test_a_wide_and_deep_model_trains(layers, inputs, optimizer, expected):
    """Expected: what TensorFlow 1.15 printed."""
    deep = keras.Sequential([keras.layers.Dense(size, kernel_initializer="ones") for size in layers])
    wide = keras.experimental.LinearModel(kernel_initializer="zeros")
    model = keras.experimental.WideDeepModel(wide, deep)
    np.testing.assert_allclose(losses_of(model, inputs, optimizer), expected, rtol=2e-4)
    again = keras.experimental.WideDeepModel.from_config(model.get_config())
    assert [layer["config"]["units"] for layer in again.dnn_model.get_config()["layers"]] == list(layers)


def test_kernels_of_convolutions_are_turned_around():
    image = keras.Input([5, 5, 1])
    dense = keras.layers.Dense(3)
    made = dense(keras.layers.Flatten()(keras.layers.Conv2D(2, 3)(image)))
    model = keras.Model(image, made)
    before = model.get_weights()
    keras.utils.convert_all_kernels_in_model(model)
    after = model.get_weights()
    np.testing.assert_array_equal(after[0], before[0][::-1, ::-1])
    np.testing.assert_array_equal(after[2], before[2])


@pytest.mark.parametrize(
    ("gpus", "match"),
    [(1, "with `gpus >= 2`"), ([0], r"with `len\(gpus\) >= 2`"), (99, "99`, we expect the following devices")],
)
def test_a_model_for_gpus_that_are_not_there(gpus, match):
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    with pytest.raises(ValueError, match=match):
        keras.utils.multi_gpu_model(model, gpus)


def test_the_area_under_precision_and_recall():
    """Expected: what TensorFlow 1.15 printed."""
    area = keras.metrics.AUC(num_thresholds=5, curve="ROC")
    update = area.update_state([0, 1, 1, 0, 1], [0.1, 0.7, 0.4, 0.5, 0.9])
    found = area.interpolate_pr_auc()
    with tf.Session() as session:
        session.run([variable.initializer for variable in area.variables])
        session.run(update)
        assert session.run(found) == pytest.approx(0.9488579)
