"""Operations on quantized tensors; the integers are those of TensorFlow 2.21."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

IMAGES = (np.arange(32) * 37 % 256).reshape(1, 4, 4, 2)
FILTERS = (np.arange(16) * 53 % 256).reshape(2, 2, 2, 2)
TWO = [1, 2, 2, 1]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def quantized(values, dtype=tf.quint8):
    return tf.cast(tf.constant(np.asarray(values, np.int32)), dtype)


def run(result):
    numbers, low, high = result
    with tf.Session() as session:
        integers, *bounds = session.run([tf.cast(numbers, tf.int32), low, high])
    return integers.ravel().tolist(), bounds


def test_pools():
    images = quantized(IMAGES)
    largest = tf.nn.quantized_max_pool(images, -1.0, 3.0, TWO, TWO, "VALID")
    assert largest.output.dtype is tf.quint8 and largest.output.shape.as_list() == [1, 2, 2, 2]
    assert run(largest) == ([114, 151, 222, 225, 194, 231, 228, 123], [-1.0, 3.0])
    means = tf.nn.quantized_avg_pool(images, -1.0, 3.0, [1, 3, 3, 1], TWO, "SAME")
    assert run(means) == ([114, 123, 140, 91, 131, 126, 93, 66], [-1.0, 3.0])
    signed = tf.nn.quantized_avg_pool(quantized(IMAGES - 128, tf.qint8), -1.0, 3.0, TWO, TWO, "SAME")
    assert signed.output.dtype is tf.qint8
    assert run(signed)[0] == [-71, -34, 13, -14, 9, 46, -35, -62]


def test_convolutions():
    images, filters = quantized(IMAGES), quantized(FILTERS)
    result = tf.nn.quantized_conv2d(images, filters, -1.0, 3.0, -1.5, 1.0, TWO, "SAME")
    assert result.output.dtype is tf.qint32
    numbers, bounds = run(result)
    assert numbers == [10508, -9448, -23476, -31624, -13812, -40808, -20148, -24072]
    np.testing.assert_allclose(bounds, [-330255.125, 330255.125], rtol=1e-6)
    plain = tf.nn.quantized_conv2d(images, filters, 0.0, 255.0, 0.0, 255.0, TWO, "VALID")
    assert run(plain)[0] == [83464, 57876, 113128, 99348, 157064, 124436, 57704, 48148]


def test_the_range_of_a_convolution_tells_its_floats():
    images, filters = quantized(IMAGES), quantized(FILTERS)
    result = tf.nn.quantized_conv2d(images, filters, -1.0, 3.0, -1.5, 1.0, [1, 1, 1, 1], "VALID")
    floats = tf.nn.conv2d(IMAGES * (4 / 255) - 1, FILTERS * (2.5 / 255) - 1.5, [1, 1, 1, 1], "VALID")
    with tf.Session() as session:
        numbers, high, expected = session.run([tf.cast(result.output, tf.int32), result.max_output, floats])
    np.testing.assert_allclose(numbers * (float(high) / 2**31), expected, atol=0.05)


@pytest.mark.parametrize(
    ("bounds", "dtype", "expected", "new_bounds"),
    [
        ([(0.0, 1.0), (-1.0, 3.0)], tf.quint8, [64, 91, 102, 128, 7, 21, 253, 202], [-1.0, 3.0]),
        ([(1.0, 2.0), (3.0, 4.0)], tf.quint8, [64, 90, 102, 128, 193, 197, 255, 242], [0.0, 4.0]),
        ([(-1.0, 3.0), (-1.0, 3.0)], tf.quint8, [0, 106, 152, 255, 7, 21, 253, 202], [-1.0, 3.0]),
        (
            [(-1.0, 3.0), (-2.0, 1.0)],
            tf.qint32,
            [715827904, 715827968, 715827968, 715828096, -357913952, -357913952, -357913824, -357913856],
            [-3.0, 3.0],
        ),
    ],
)
def test_tensors_of_several_ranges_are_joined(bounds, dtype, expected, new_bounds):
    values = [quantized(each, dtype) for each in ([0, 106, 152, 255], [7, 21, 253, 202])]
    result = tf.quantization.quantized_concat(0, values, *zip(*bounds, strict=True))
    assert result.output.dtype is dtype
    assert run(result) == (expected, new_bounds)


def test_relu_x_bounds_by_what_numbers_stand_for():
    numbers = quantized([0, 63, 64, 100, 128, 129, 255])
    result = tf.nn.quantized_relu_x(numbers, 1.0, -1.0, 3.0)
    assert result._fields == ("activations", "min_activations", "max_activations")
    assert run(result) == ([64, 64, 64, 100, 128, 128, 128], [-1.0, 3.0])
    assert run(tf.nn.quantized_relu_x(numbers, 20.0, 0.0, 6.0))[0] == [0, 63, 64, 100, 128, 129, 255]
    signed = quantized([-128, -1, 0, 127], tf.qint8)
    assert run(tf.nn.quantized_relu_x(signed, 2.0, -1.0, 3.0, out_type=tf.qint8))[0] == [-64, -1, 0, 64]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, f: tf.nn.quantized_conv2d(x, f, 0.0, 1.0, 0.0, 1.0, TWO, "SAME", dilations=[1, 2, 2, 1]), "ones"),
        (lambda x, f: tf.nn.quantized_conv2d(x, f, 0.0, 1.0, 0.0, 1.0, [1, 1, 2, 1], "SAME"), "equal"),
        (lambda x, f: tf.nn.quantized_conv2d(x, f, 0.0, 1.0, 0.0, 1.0, TWO, "SAME", tf.quint8), "qint32"),
        (lambda x, f: tf.nn.quantized_conv2d(tf.zeros([1, 4, 4, 2]), f, 0.0, 1.0, 0.0, 1.0, TWO, "SAME"), "quint8"),
        (lambda x, f: tf.nn.quantized_max_pool(tf.zeros([1, 4, 4, 2]), 0.0, 1.0, TWO, TWO, "SAME"), "qint8 or quint8"),
        (lambda x, f: tf.nn.quantized_max_pool(x, [0.0], 1.0, TWO, TWO, "SAME"), "must be rank 0"),
        (lambda x, f: tf.nn.quantized_conv2d(x, f, 0.0, 1.0, 0.0, [1.0], TWO, "SAME"), "must be rank 0"),
        (lambda x, f: tf.quantized_concat(0, [x], [0.0], [1.0]), "two or more"),
        (lambda x, f: tf.quantized_concat(0, [x, x], [0.0], [1.0, 2.0]), "1 lower and 2 upper"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        call(quantized(IMAGES), quantized(FILTERS))


@pytest.mark.parametrize(
    ("dtype", "integers"),
    [
        (tf.quint8, [0, 128, 204, 255]),
        (tf.qint8, [-128, -1, 76, 127]),
        (tf.quint16, [0, 32768, 52428, 65535]),
        (tf.qint16, [-32768, -1, 19660, 32767]),
    ],
)
def test_numbers_of_each_type(dtype, integers):
    """The integers are those of TensorFlow 1.15."""
    numbers = tf.quantize(tf.constant([-1.0, 0.0, 0.6, 2.0]), -1.0, 1.0, dtype)
    assert numbers.output.dtype is dtype
    with tf.Session() as session:
        found, back = session.run([numbers.output, tf.dequantize(*numbers)])
    assert found.tolist() == integers
    np.testing.assert_allclose(back, [-1, 0, 0.6, 1], atol=0.008)
