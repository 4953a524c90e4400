"""Images that are rotated, moved and projected, against TensorFlow's ImageProjectiveTransformV2."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

import tfray as tf
from tfray.contrib import image
from tfray.contrib.resampler import resampler
from tfray.errors import InvalidArgumentError

IMAGES = np.random.default_rng(0).integers(0, 100, size=(2, 5, 6, 2)).astype(np.float32)
ROWS = np.array([[0.9, -0.3, 1.2, 0.25, 1.1, -0.7, 0.01, -0.02], [1, 0.2, -1.5, -0.1, 0.8, 0.5, 0, 0]], np.float32)
NINE = np.arange(9.0).reshape(3, 3)


@pytest.mark.parametrize(
    ("dtype", "interpolation", "expected"),
    [  # the first pixels of TensorFlow 2.21's result
        (np.float32, "NEAREST", [0, 0, 30, 4, 7, 1, 17, 81, 64, 91, 67, 0]),
        (np.uint8, "NEAREST", [0, 0, 30, 4, 7, 1, 17, 81, 64, 91, 67, 0]),
        (
            np.float64,
            "BILINEAR",
            [14.04, 6.48, 15.6236, 2.0861, 6.7151, 0.9458, 15.7435, 64.8665, 47.5651, 71, 37.4694, 24.7619],
        ),
        (np.float32, "bilinear", [14.04, 6.48, 15.6236, 2.0861, 6.7151, 0.9458, 15.7435, 64.8665, 47.5651, 71]),
        (np.uint8, "BILINEAR", [14, 6, 15, 2, 6, 0, 15, 64, 47, 70, 37, 24]),
    ],
)
def test_a_projection(session, dtype, interpolation, expected):
    made = image.transform(IMAGES.astype(dtype), ROWS, interpolation, output_shape=[4, 7])
    assert made.shape.as_list() == [2, 4, 7, 2] and made.dtype == dtype
    np.testing.assert_allclose(session.run(made).ravel()[: len(expected)], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: image.rotate(NINE, np.pi / 2), [[2, 5, 8], [1, 4, 7], [0, 3, 6]]),
        (lambda: image.rotate(NINE[:, :, None], 0.0)[:, :, 0], NINE),
        (lambda: image.rotate(np.stack([NINE, NINE])[..., None], [0.0, np.pi])[1, :, :, 0], NINE[::-1, ::-1]),
        (lambda: image.translate(NINE, [1, 0]), [[0, 0, 1], [0, 3, 4], [0, 6, 7]]),
        (lambda: image.translate(NINE, [0.5, 0.0], "BILINEAR"), [[0, 0.5, 1.5], [1.5, 3.5, 4.5], [3, 6.5, 7.5]]),
        (lambda: image.transform(NINE, [1, 0, 0, 0, 1, 0, 0, 0], output_shape=[2, 4]), [[0, 1, 2, 0], [3, 4, 5, 0]]),
        (lambda: image.transform(NINE, [1, 0, 0, 0, 1, 0, -1, 0])[:, 1], [0, 0, 0]),
        (
            lambda: image.transform(
                NINE,
                image.compose_transforms(
                    image.translations_to_projective_transforms([1, 0]),
                    image.translations_to_projective_transforms([0, 1]),
                ),
            ),
            [[0, 0, 0], [0, 0, 1], [0, 3, 4]],
        ),
        (lambda: image.flat_transforms_to_matrices([1, 2, 3, 4, 5, 6, 7, 8]), [[[1, 2, 3], [4, 5, 6], [7, 8, 1]]]),
        (lambda: image.matrices_to_flat_transforms(2 * np.eye(3, dtype=np.float32)), [[1, 0, 0, 0, 1, 0, 0, 0]]),
        (lambda: image.angles_to_projective_transforms(0.0, 3, 5), [[1, 0, 0, 0, 1, 0, 0, 0]]),
    ],
)
def test_ways_to_say_a_transform(session, make, expected):
    np.testing.assert_allclose(session.run(make()), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_the_nearest_pixel_hangs_not_on_the_dtype(session, dtype):
    made = image.rotate(np.arange(36).reshape(6, 6).astype(dtype), np.pi / 4)
    # TensorFlow 1.15's rows, with coordinates that are halves in exact numbers
    np.testing.assert_array_equal(session.run(made)[1:3], [[2, 3, 9, 16, 23, 23], [1, 8, 15, 21, 22, 29]])


def test_gradients_are_those_of_the_values():
    with tf.Session():
        images = tf.constant(IMAGES.astype(np.float64))
        made = image.transform(images, ROWS, "BILINEAR")
        assert tf.test.compute_gradient_error(images, IMAGES.shape, made, [2, 5, 6, 2]) < 1e-6


def test_sizes_that_are_not_known(session):
    images, size = tf.placeholder(tf.float32, [None, None, None, 1]), tf.placeholder(tf.int32, [2])
    made = image.transform(image.rotate(images, 0.1), ROWS[1], output_shape=size)
    assert made.shape.as_list() == [None, None, None, 1]
    assert session.run(made, {images: IMAGES[..., :1], size: [3, 2]}).shape == (2, 3, 2, 1)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: image.transform(tf.ones([3]), ROWS[0]), "rank between 2 and 4"),
        (lambda: image.transform(NINE, [[ROWS[0]]]), "rank 1 or 2"),
        (lambda: image.transform(NINE, ROWS[0], "CUBIC"), "expected NEAREST or BILINEAR"),
        (lambda: image.compose_transforms(), "cannot be empty"),
    ],
)
def test_what_is_no_transform(make, match):
    with pytest.raises((InvalidArgumentError, ValueError), match=match):
        make()


def test_values_between_pixels(session):
    random = np.random.default_rng(2)
    data, warp = random.normal(size=(2, 4, 5, 3)), random.uniform(-1.5, 5.5, size=(2, 3, 6, 2))
    values = resampler(tf.constant(data), tf.constant(warp))
    assert values.shape.as_list() == [2, 3, 6, 3]
    padded = np.pad(data, [(0, 0), (2, 2), (2, 2), (0, 0)])
    expected = np.empty((2, 3, 6, 3))
    for each in range(2):
        for channel in range(3):
            expected[each, ..., channel] = ndimage.map_coordinates(
                padded[each, ..., channel], warp[each, ..., ::-1].reshape(-1, 2).T + 2, order=1, cval=0
            ).reshape(3, 6)
    np.testing.assert_allclose(session.run(values), expected, atol=1e-12)


def test_gradients_of_values_between_pixels(session):
    random = np.random.default_rng(3)
    data, warp = random.normal(size=(2, 3, 4, 2)), random.uniform(-0.9, 3.9, size=(2, 7, 2))
    images, places = tf.placeholder(tf.float64, data.shape), tf.placeholder(tf.float64, warp.shape)
    weights = random.normal(size=(2, 7, 2))
    total = tf.reduce_sum(resampler(images, places) * weights)
    found = session.run(tf.gradients(total, [images, places]), {images: data, places: warp})
    for given, gradient, at in ((data, found[0], 0), (warp, found[1], 1)):
        direction = 1e-6 * random.normal(size=given.shape)
        moved = [[data, warp], [data, warp]]
        moved[0][at], moved[1][at] = given + direction, given - direction
        high, low = (session.run(total, {images: a, places: b}) for a, b in moved)
        np.testing.assert_allclose(np.sum(gradient * direction), (high - low) / 2, rtol=1e-5)


def test_places_and_images_of_unknown_size(session):
    data, warp = tf.placeholder(tf.float32, [None, None, None, 1]), tf.placeholder(tf.float32)
    found = session.run(resampler(data, warp), {data: NINE.reshape(1, 3, 3, 1), warp: [[[0.5, 0], [1, 1.5], [9, 9]]]})
    np.testing.assert_allclose(found, [[[0.5], [5.5], [0]]])


@pytest.mark.parametrize(
    "shapes", [([3, 3, 1], [3, 2]), ([1, 3, 3, 1], [1, 3]), ([1, 3, 3, 1], [2]), ([2, 3, 3, 1], [1, 4, 2])]
)
def test_other_shapes_are_refused(shapes):
    with pytest.raises(InvalidArgumentError, match="resampler"):
        resampler(np.zeros(shapes[0]), np.zeros(shapes[1]))


@pytest.mark.parametrize("batches", [(1, 2), (2, 1)])
def test_other_numbers_of_images_and_of_places_are_refused_in_the_step(session, batches):
    data, warp = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    values = resampler(tf.ensure_shape(data, [None, None, None, None]), warp)
    with pytest.raises(InvalidArgumentError):
        session.run(values, {data: np.ones([batches[0], 3, 3, 1]), warp: np.ones([batches[1], 4, 2])})
