"""Max pooling notes where each maximum was where a step needs its gradient too."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.interpreter import default_device, interpret
from tests.support.interpreter import run_with_types as run


def array(seed, *shape):
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(np.float32)


def pooled(layout="NHWC", window=3, dtype=tf.float32):
    images = tf.placeholder(dtype, [None, 20, 20, 4] if layout == "NHWC" else [None, 4, 20, 20])
    return images, tf.nn.max_pool(images, window, 2, "SAME", data_format=layout)


def fed(images, size=3):
    shape = [size, *images.shape.as_list()[1:]]
    return {images: array(0, *shape).astype(images.dtype.as_numpy_dtype)}


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.float16])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("window", [2, 3, 17])
def test_gradients_are_those_of_the_single_operations(layout, window, dtype):
    images, maxima = pooled(layout, window, dtype)
    fetches = [maxima, *tf.gradients(tf.square(maxima), images)]
    values, types = run(fetches, fed(images))
    assert {"_MaxPoolWithPlaces", "_MaxPoolGradAtPlaces"} < set(types)
    assert not {"MaxPool", "MaxPoolGrad"} & set(types)
    for found, wanted in zip(values, interpret(fetches, fed(images), default_device()), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3 if dtype is tf.float16 else 1e-6)


def test_second_gradients_too():
    images, maxima = pooled()
    (gradient,) = tf.gradients(tf.pow(maxima, 3), images)
    fetches = [gradient, *tf.gradients(tf.square(gradient), images)]
    values, _ = run(fetches, fed(images))
    for found, wanted in zip(values, interpret(fetches, fed(images), default_device()), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_nothing_is_noted_without_a_gradient():
    images, maxima = pooled()
    _, types = run(maxima, fed(images))
    assert "MaxPool" in types


def test_nothing_is_noted_when_the_maxima_are_fed():
    images, maxima = pooled()
    (gradient,) = tf.gradients(tf.square(maxima), images)
    given = {**fed(images), maxima: array(1, 3, 10, 10, 4)}
    value, types = run(gradient, given)
    assert "MaxPoolGrad" in types
    np.testing.assert_allclose(value, interpret([gradient], given, default_device())[0])


def test_equal_poolings_are_one():
    images, maxima = pooled()
    twin = tf.nn.max_pool(images, 3, 2, "SAME")
    fetches = [twin, *tf.gradients(tf.square(maxima), images), *tf.gradients(tf.pow(twin, 3), images)]
    values, types = run(fetches, fed(images))
    assert types.count("_MaxPoolWithPlaces") + types.count("MaxPool") == 1
    for found, wanted in zip(values, interpret(fetches, fed(images), default_device()), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_gradient_on_another_device_finds_the_maxima_itself():
    images, maxima = pooled()
    with tf.device("/cpu:1"):
        (gradient,) = tf.gradients(tf.square(maxima), images)
    value, types = run(gradient, fed(images), devices=2)
    assert {"MaxPool", "MaxPoolGrad"} < set(types)
    np.testing.assert_allclose(value, interpret([gradient], fed(images), default_device())[0])


@pytest.mark.parametrize("together", [True, False])
def test_what_is_noted_stays_on_its_device(together):
    """Devices may be chosen for each operation: the two are on one."""
    images, maxima = pooled()
    (gradient,) = tf.gradients(tf.square(maxima), images, colocate_gradients_with_ops=together)
    value, types = run(gradient, fed(images), devices=3)
    assert {"_MaxPoolWithPlaces", "_MaxPoolGradAtPlaces"} < set(types)
    np.testing.assert_allclose(value, interpret([gradient], fed(images), default_device())[0])
