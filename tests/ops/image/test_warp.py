"""Warped images and connected parts of images: the expressions, and the values, of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run
from tfray.ops.image.warp_ops import _interpolate_bilinear

image = tf.contrib.image
RANDOM = np.random.default_rng(0)


def bilinear(pixels, y, x):
    """The pixel of one image at a place between pixels, the last pixels going on outside."""
    y, x = np.clip(y, 0, pixels.shape[0] - 1), np.clip(x, 0, pixels.shape[1] - 1)
    top, left = min(int(y), pixels.shape[0] - 2), min(int(x), pixels.shape[1] - 2)
    rows = [pixels[i, left] + (x - left) * (pixels[i, left + 1] - pixels[i, left]) for i in (top, top + 1)]
    return rows[0] + (y - top) * (rows[1] - rows[0])


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_pixels_are_moved(dtype):
    images = RANDOM.random((2, 4, 5, 3))
    flow = RANDOM.uniform(-4, 4, (2, 4, 5, 2))
    warped = image.dense_image_warp(tf.constant(images, dtype), tf.constant(flow, tf.float32))
    expected = [
        [[bilinear(each, y - moves[y, x, 0], x - moves[y, x, 1]) for x in range(5)] for y in range(4)]
        for each, moves in zip(images, flow.astype(np.float32), strict=True)
    ]
    assert warped.dtype == dtype and warped.shape.as_list() == [2, 4, 5, 3]
    assert run(warped) == pytest.approx(np.array(expected), abs=1e-5)


def test_gradients_of_moved_pixels():
    pixels = RANDOM.random((1, 4, 5, 2)).astype(np.float32)
    x = tf.constant(pixels)
    shift = tf.placeholder_with_default(np.float32([0.25, -0.5]), [2])
    warped = image.dense_image_warp(x, tf.ones([1, 4, 5, 2]) * shift)
    d_shift, d_pixels = run(tf.gradients(warped, [shift, x]))
    eps = 1e-2
    near = [
        [run(tf.reduce_sum(warped), {shift: [0.25 + s * a, -0.5 + s * b]}) for s in (eps, -eps)]
        for a, b in ((1, 0), (0, 1))
    ]
    assert d_shift == pytest.approx(np.array([(up - down) / (2 * eps) for up, down in near]), abs=1e-2)
    assert d_pixels.sum() == pytest.approx(pixels.size, rel=1e-5)
    # At a pixel itself, neither side counts.
    still = tf.zeros([1, 4, 5, 2])
    d_still = run(tf.gradients(image.dense_image_warp(x, still), still)[0])
    assert not d_still[0, :3, :, 0].any() and not d_still[0, :, :4, 1].any() and d_still.any()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Grid height must be at least 2"):
        image.dense_image_warp(tf.ones([1, 1, 3, 1]), tf.ones([1, 1, 3, 2]))
    narrow = tf.placeholder_with_default(np.ones([1, 3, 1, 1], np.float32), [1, None, None, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Grid width must be at least 2"):
        run(image.dense_image_warp(narrow, tf.ones([1, 3, 1, 2])))
    with pytest.raises(ValueError, match="4 dimensional"):
        image.dense_image_warp(tf.ones([3, 3, 1]), tf.ones([3, 3, 2]))


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_values_between_pixels(indexing):
    points = np.array([[[0.0, 0.0], [1.0, 0.0], [2.0, 0.5], [1.5, 1.5]]])
    points = points if indexing == "ij" else points[..., ::-1]
    grid = np.arange(9.0).reshape(1, 3, 3, 1)
    assert run(_interpolate_bilinear(grid, points, indexing=indexing)).ravel().tolist() == [0, 3, 6.5, 6]
    with pytest.raises(ValueError, match="'ij' or 'xy'"):
        _interpolate_bilinear(grid, points, indexing="ji")


@pytest.mark.parametrize("order", range(1, 7))
def test_splines(order):
    points, asked = RANDOM.random((2, 8, 2)), RANDOM.random((2, 3, 2))
    slope, line = RANDOM.random((2, 2)), RANDOM.random(2)
    values = points @ slope + line
    at_points = image.interpolate_spline(points, RANDOM.random((2, 8, 3)), points, order)
    on_line = image.interpolate_spline(points, values, asked, order)
    smooth = image.interpolate_spline(points, np.square(values), asked, order, regularization_weight=1e6)
    found, straight, almost = run([at_points, on_line, smooth])
    assert found.shape == (2, 8, 3) and straight == pytest.approx(asked @ slope + line, abs=1e-6)
    # With a large weight it is the line of least squares.
    for batch in range(2):
        one = np.concatenate([points[batch], np.ones((8, 1))], 1)
        weights = np.linalg.lstsq(one, np.square(values[batch]), rcond=None)[0]
        assert almost[batch] == pytest.approx(np.concatenate([asked[batch], np.ones((3, 1))], 1) @ weights, abs=1e-3)


def test_splines_meet_their_points():
    """The values of TensorFlow's own tests, of a function of one number."""
    x, y = np.linspace(-3, 3, 10)[None, :, None], np.arange(10.0)[None, :, None] ** 2 / 10
    for order in (1, 2, 3):
        assert run(image.interpolate_spline(x, y, x, order)) == pytest.approx(y, abs=1e-5)
    gradients = tf.gradients(image.interpolate_spline(tf.constant(x), tf.constant(y), tf.constant(x) + 0.1, 2), x)
    assert gradients == [None]
    with pytest.raises(ValueError, match=r"\(d\)"):
        image.interpolate_spline(tf.placeholder(tf.float32, [1, 2, None]), tf.ones([1, 2, 1]), tf.ones([1, 2, 1]), 1)


def test_a_few_points_are_moved():
    """As TensorFlow's own tests: one pixel moves, corners and edges stay."""
    pixels = np.zeros((1, 7, 7, 1), np.float32)
    pixels[0, 3, 3] = 1
    source, destination = np.float32([[[3, 3]]]), np.float32([[[5, 4]]])
    warped, flow = image.sparse_image_warp(pixels, source, destination, num_boundary_points=3)
    found, moves = run([warped, flow])
    assert found.shape == (1, 7, 7, 1) and moves.shape == (1, 7, 7, 2)
    assert moves[0, 5, 4] == pytest.approx(np.array([2, 1]), abs=1e-3)
    assert found[0, 5, 4, 0] == pytest.approx(1, abs=1e-2)
    for corner in ((0, 0), (0, 6), (6, 0), (6, 6), (0, 2), (2, 6)):
        assert moves[0][corner] == pytest.approx(np.zeros(2), abs=1e-3)
    several = np.float32([[[1, 1], [3, 3], [1, 3]]])
    assert run(image.sparse_image_warp(pixels, several, several + 1)[1]) == pytest.approx(
        np.ones((1, 7, 7, 2)), abs=1e-3
    )


def test_connected_parts():
    snake = np.array([[[0, 1, 1, 1], [0, 0, 0, 1], [1, 0, 1, 1], [1, 0, 1, 0]], np.eye(4)], bool)
    expected = [
        [[0, 1, 1, 1], [0, 0, 0, 1], [2, 0, 1, 1], [2, 0, 1, 0]],
        np.diag([3, 4, 5, 6]).tolist(),
    ]
    assert run(image.connected_components(snake)).tolist() == expected
    assert run(image.connected_components(snake[0])).tolist() == expected[0]
    numbers = [[2, 1, 1], [2, 2, 0], [1, 2, 1]]
    assert run(image.connected_components(numbers)).tolist() == [[1, 2, 2], [1, 1, 0], [3, 1, 4]]
    assert run(image.connected_components(np.ones((2, 2, 2), bool)))[:, 0, 0].tolist() == [1, 2]
    assert not run(image.connected_components(np.zeros((2, 2), bool))).any()
    with pytest.raises(TypeError, match="rank 2"):
        image.connected_components([True])
