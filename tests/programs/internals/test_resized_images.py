"""Resizing of images as TensorFlow 2 has it."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.programs.internals import images

ROW = np.array([[0, 1, 4, 9]], np.float32)[:, :, None]


def value(fetched, feeds=None):
    with tf.Session() as session:
        return session.run(fetched, feeds)


@pytest.mark.parametrize(
    ("method", "antialias", "expected"),
    [  # TensorFlow 1.15's values
        ("bilinear", False, [0.16667, 2.5, 8.16667]),
        ("bilinear", True, [0.3, 2.5, 7.5]),
        ("nearest", False, [0.0, 4.0, 9.0]),
        ("nearest", True, [0.0, 4.0, 9.0]),
        ("bicubic", False, [0.08112, 2.25, 8.46263]),
        ("bicubic", True, [0.07551, 2.3592, 7.93593]),
        ("area", False, [0.25, 2.5, 7.75]),
        ("area", True, [0.25, 2.5, 7.75]),
        ("lanczos3", False, [0.02529, 1.92857, 8.51052]),
        ("lanczos3", True, [0.02535, 2.25, 8.069]),
        ("lanczos5", False, [0.16834, 1.67955, 8.41792]),
        ("lanczos5", True, [0.06322, 2.20632, 8.09578]),
        ("gaussian", False, [0.20861, 2.5, 7.95696]),
        ("gaussian", True, [0.37866, 2.6907, 7.29534]),
        ("mitchellcubic", False, [0.14439, 2.36111, 8.18911]),
        ("mitchellcubic", True, [0.20656, 2.51577, 7.61951]),
    ],
)
def test_methods(method, antialias, expected):
    found = images.resize_images_v2(ROW, [1, 3], method, antialias=antialias)
    assert found.shape.as_list() == [1, 3, 1]
    np.testing.assert_allclose(value(found)[0, :, 0], expected, atol=2e-5)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [  # TensorFlow 1.15's values
        ("lanczos1", [0.0, 0.15517, 1.03659, 3.96341, 8.22414]),
        ("box", [0.0, 0.0, 1.0, 4.0, 9.0]),
        ("keyscubic", [-0.125, 0.15231, 1.21, 3.61, 7.88635]),
    ],
)
def test_images_are_scaled_and_moved(kernel, expected):
    size, batch = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.float32, [None, None, None, 1])
    found = images.scale_and_translate(batch, size, [1.0, 1.25], [0.0, 0.5], kernel)
    np.testing.assert_allclose(value(found, {size: [1, 5], batch: ROW[None]})[0, 0, :, 0], expected, atol=2e-5)


def test_sizes_and_dtypes():
    picture = tf.zeros([1, 4, 1], tf.uint8)
    assert images.resize_images_v2(picture, [1, 4]).dtype is tf.float32
    assert images.resize_images_v2(picture, [1, 4], "nearest").dtype is tf.uint8
    assert value(images.resize_images_v2(picture, [4, 8], "lanczos3", preserve_aspect_ratio=True)).shape == (2, 8, 1)


def test_the_gradient_is_that_of_a_linear_map():
    batch = tf.constant(np.eye(8, dtype=np.float32).reshape(8, 2, 4, 1))
    found = images.scale_and_translate(batch, [3, 3], [1.4, 0.7], [0.2, -0.1], "keyscubic")
    ways = np.random.default_rng(0).normal(size=(3, 3, 1)).astype(np.float32)
    matrix, slope = value([found, tf.gradients(found * ways, batch)[0]])
    np.testing.assert_allclose(slope[0].ravel(), (matrix * ways).sum((1, 2, 3)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda: images.resize_images_v2(ROW, [1, 3], "cubic"), "is not implemented"),
        (lambda: images.resize_images_v2(ROW[0], [1, 3]), "3|4"),
        (lambda: images.scale_and_translate(ROW[None], [1, 3], [1.0, 1.0], [0.0, 0.0], "cubic"), "kernel_type"),
        (lambda: images.scale_and_translate(ROW, [1, 3], [1.0, 1.0], [0.0, 0.0]), "rank"),
    ],
)
def test_refused(wrong, match):
    with pytest.raises(ValueError, match=match):
        wrong()
