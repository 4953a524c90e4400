"""Convolution and pooling by rank: sequences, images and volumes."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run

RANDOM = np.random.default_rng(0)
VOLUMES = RANDOM.normal(size=(2, 5, 6, 7, 3)).astype(np.float32)


def pooled(values, window, steps, padding, function):
    """Pool all but the first and last axis by loops."""
    counts, befores = [], []
    for size, k, step in zip(values.shape[1:-1], window, steps, strict=True):
        count = -(-size // step) if padding == "SAME" else (size - k) // step + 1
        counts.append(count)
        befores.append(max((count - 1) * step + k - size, 0) // 2 if padding == "SAME" else 0)
    out = np.zeros((len(values), *counts, values.shape[-1]))
    for place in np.ndindex(*counts):
        index = tuple(
            slice(max(at * step - before, 0), at * step - before + k)
            for at, step, before, k in zip(place, steps, befores, window, strict=True)
        )
        out[(slice(None), *place)] = function(values[(slice(None), *index)], axis=tuple(range(1, values.ndim - 1)))
    return out


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("kind", "function"), [("MAX", np.max), ("AVG", np.mean)])
def test_pooling(kind, function, padding):
    functions = {"MAX": (tf.nn.max_pool1d, tf.nn.max_pool3d), "AVG": (tf.nn.avg_pool1d, tf.nn.avg_pool3d)}[kind]
    expected = pooled(VOLUMES, (2, 3, 2), (1, 2, 3), padding, function)
    result = functions[1](VOLUMES, [1, 2, 3, 2, 1], [1, 1, 2, 3, 1], padding)
    assert result.shape.as_list() == list(expected.shape)
    np.testing.assert_allclose(run(result), expected, atol=1e-6)
    unknown = tf.placeholder(tf.float32, [None] * 5)
    fed = functions[1](unknown, [2, 3, 2], [1, 2, 3], padding)
    np.testing.assert_allclose(run(fed, {unknown: VOLUMES}), expected, atol=1e-6)
    first = functions[1](np.moveaxis(VOLUMES, -1, 1), [2, 3, 2], [1, 2, 3], padding, "NCDHW")
    np.testing.assert_allclose(np.moveaxis(run(first), 1, -1), expected, atol=1e-6)
    by_rank = tf.nn.pool(VOLUMES, [2, 3, 2], kind, padding, strides=[1, 2, 3])
    np.testing.assert_allclose(run(by_rank), expected, atol=1e-6)
    sequences = VOLUMES[:, :, 0, 0]
    lines = pooled(sequences, (3,), (2,), padding, function)
    np.testing.assert_allclose(run(functions[0](sequences, 3, 2, padding)), lines, atol=1e-6)
    np.testing.assert_allclose(run(tf.nn.pool(sequences, [3], kind, padding, strides=[2])), lines, atol=1e-6)


def test_gradient_of_pooled_volumes():
    x = tf.constant(VOLUMES)
    (d_max,) = tf.gradients(tf.nn.max_pool3d(x, 2, 2, "VALID"), x)
    values = run(d_max)
    assert set(np.unique(values)) == {0, 1} and values.sum() == 2 * 2 * 3 * 3 * 3
    (d_mean,) = tf.gradients(tf.nn.avg_pool3d(x, 2, 2, "VALID"), x)
    expected = np.zeros_like(VOLUMES)
    expected[:, :4, :6, :6] = 1 / 8
    np.testing.assert_allclose(run(d_mean), expected)


def test_pooling_with_gaps():
    images = VOLUMES[:, 0]
    expected = np.stack(
        [np.stack([images[:, y : y + 3 : 2, x : x + 2].max((1, 2)) for x in range(6)], 1) for y in range(4)],
        1,
    )
    result = tf.nn.pool(images, [2, 2], "MAX", "VALID", dilation_rate=[2, 1])
    np.testing.assert_array_equal(run(result), expected)
    channels_first = images.transpose(0, 3, 1, 2)
    result = tf.nn.pool(channels_first, [2, 2], "MAX", "VALID", dilation_rate=[2, 1], data_format="NCHW")
    np.testing.assert_array_equal(run(result), expected.transpose(0, 3, 1, 2))
    for options in ({"strides": [2, 1]}, {"padding": "SAME"}):
        with pytest.raises(tf.errors.InvalidArgumentError, match="dilation_rate"):
            tf.nn.pool(images, [2, 2], "MAX", **{"padding": "VALID", "dilation_rate": [2, 1], **options})


def test_convolution_by_rank():
    for rank, name in ((3, "conv1d"), (4, "conv2d"), (5, "conv3d")):
        values = VOLUMES[(slice(None), *[0] * (5 - rank))]
        filters = RANDOM.normal(size=(*[2] * (rank - 2), 3, 4)).astype(np.float32)
        by_rank = tf.nn.convolution(values, filters, "SAME", strides=[2] * (rank - 2))
        strides = 2 if rank == 3 else [1, *[2] * (rank - 2), 1]
        np.testing.assert_array_equal(run(by_rank), run(getattr(tf.nn, name)(values, filters, strides, "SAME")))


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_transposed_convolution_is_the_gradient(rank):
    space = rank - 2
    values = tf.constant(VOLUMES[(slice(None), *[0] * (5 - rank))])
    filters = tf.constant(RANDOM.normal(size=(*[3] * space, 3, 4)).astype(np.float32))
    outputs = tf.nn.convolution(values, filters, "SAME", strides=[2] * space)
    d_outputs = RANDOM.normal(size=outputs.shape.as_list()).astype(np.float32)
    (expected,) = tf.gradients(outputs, values, d_outputs)
    transposed = tf.nn.conv_transpose(d_outputs, filters, values.shape, [2] * space)
    found, wanted = run([transposed, expected])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert transposed.shape == values.shape


def test_arguments_are_checked():
    with pytest.raises(tf.errors.InvalidArgumentError, match="rank 3, 4 or 5"):
        tf.nn.conv_transpose(VOLUMES, np.zeros((2, 2), np.float32), [2, 2], 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected rank 5"):
        tf.nn.max_pool3d(VOLUMES[0], 2, 2, "SAME")
    with pytest.raises(tf.errors.InvalidArgumentError, match="MAX or AVG"):
        tf.nn.pool(VOLUMES, [2, 2, 2], "MIN", "SAME")
    with pytest.raises(tf.errors.InvalidArgumentError, match="either NCDHW or NDHWC, not 'NHWC'"):
        tf.nn.avg_pool3d(VOLUMES, 2, 2, "SAME", "NHWC")


def test_erosion_is_the_dilation_of_the_negative():
    images = VOLUMES[:, 0]
    flat = np.zeros((3, 3, 3), np.float32)
    eroded = run(tf.nn.erosion2d(images, flat, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"))
    np.testing.assert_array_equal(eroded, pooled(images, (3, 3), (1, 1), "VALID", np.min).astype(np.float32))


def test_space_to_batch_paddings():
    paddings, crops = tf.required_space_to_batch_paddings([10, 11], [4, 3], [[1, 0], [0, 2]])
    np.testing.assert_array_equal(run(paddings), [[1, 1], [0, 4]])
    np.testing.assert_array_equal(run(crops), [[0, 1], [0, 2]])
    np.testing.assert_array_equal(run(tf.required_space_to_batch_paddings([10], [4])[0]), [[0, 2]])
