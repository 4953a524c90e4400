"""What TensorFlow keeps beside its Keras layers: kernels, metrics of compiled models, losses of functions."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run
from tfray.keras.losses import _OfFunction
from tfray.library.layers.older_inputs import _Transformer
from tfray.programs import keras_tools

X, Y = [[1.0, 2.0], [-2.0, 0.9], [3.3, -1.0]], [[1.1, 2.1], [-2.0, 0.9]]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (keras_tools.exact_gaussian_kernel, [[0.997, 0.279], [0.251, 1.0], [0.164, 0.019]]),
        (keras_tools.exact_laplacian_kernel, [[0.904, 0.128], [0.116, 1.0], [0.07, 0.027]]),
    ],
)
def test_kernels_of_vectors(kernel, expected):
    np.testing.assert_allclose(run(kernel(tf.constant(X), tf.constant(Y), stddev=2.0)), expected, atol=0.01)
    assert run(kernel(tf.constant(X[0]), tf.constant(X[0]), stddev=10.0)).tolist() == [[1.0]]
    with pytest.raises(ValueError, match="vectors of different lengths"):
        kernel(tf.constant(X), tf.ones([3]), 1.0)
    with pytest.raises(ValueError, match="Given rank: 0"):
        kernel(tf.constant(X), 1.0, 1.0)


@pytest.mark.parametrize(("shape", "split"), [((0,), 0), ((1, 0), 1), ((5, 2, 3), 2), ((3, 5, 6, 0), 3), ((2, 2), 0)])
def test_tensors_as_matrices(shape, split):
    value = np.random.default_rng(0).normal(size=shape)
    expected = value.reshape(int(np.prod(shape[:split])), int(np.prod(shape[split:])))
    assert run(keras_tools.make_2d(tf.constant(value), split)).tolist() == expected.tolist()
    assert run(keras_tools.inner_product(X, Y)).tolist() == pytest.approx(np.array(X) @ np.array(Y).T)


def test_metrics_of_a_compiled_model():
    first, second = tf.keras.Input((3,)), tf.keras.Input((3,))
    dense = tf.keras.layers.Dense(4, name="dense")
    model = tf.keras.Model([first, second], [dense(second), tf.keras.layers.Dropout(0.5, name="dropout")(dense(first))])
    assert keras_tools.extract_model_metrics(model) is None
    model.compile("sgd", "mae", metrics=[tf.keras.metrics.BinaryAccuracy(), "mae"])
    kinds = "binary_accuracy", "mean_absolute_error"
    assert list(keras_tools.extract_model_metrics(model)) == [f"{a}_{b}" for a in ("dense", "dropout") for b in kinds]


def test_a_loss_of_a_function_has_its_settings():
    def scaled(y_true, y_pred, factor):
        return factor * tf.reduce_mean(tf.abs(y_pred - y_true), -1)

    loss = _OfFunction(scaled, factor=3.0)
    assert loss.name == "scaled"
    assert run(loss([[1.0], [2.0]], [[2.0], [4.0]])) == 4.5


def test_a_column_is_transformed_once():
    layers = tf.contrib.layers
    bucket = layers.bucketized_column(layers.real_valued_column("price"), boundaries=[0.0, 10.0, 100.0])
    transformer = _Transformer({"price": tf.constant([[20.0], [110], [-3]])})
    found = transformer.transform(bucket)
    count = len(tf.get_default_graph().get_operations())
    assert transformer.transform(bucket) is found and len(tf.get_default_graph().get_operations()) == count
    assert run(found).tolist() == [[2], [3], [0]]
    assert _Transformer({bucket: "as it is"}).transform(bucket) == "as it is"
