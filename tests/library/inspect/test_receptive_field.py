"""`tf.contrib.receptive_field`: what part of a picture an output sees; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import pytest

import tfray as tf

slim = tf.contrib.slim
compute = tf.contrib.receptive_field.compute_receptive_field_from_graph_def


def aligned(x):
    one = slim.conv2d(x, 1, 1, stride=4, padding="VALID")
    two = slim.conv2d(tf.pad(x, [[0, 0], [1, 0], [1, 0], [0, 0]]), 1, 3, stride=2, padding="VALID")
    return one + slim.conv2d(two, 1, 1, stride=2, padding="VALID")


def deep(x):
    pooled = slim.max_pool2d(slim.conv2d(x, 2, 3, stride=2), 2, stride=2)
    return slim.avg_pool2d(slim.conv2d(pooled, 2, 5), 3, stride=1, padding="SAME")


def normalized(x):
    first = slim.conv2d(x, 2, [3, 5], normalizer_fn=slim.batch_norm, normalizer_params={"is_training": False})
    return slim.conv2d(first, 2, 3, stride=2, padding="VALID")


def joined(x):
    return tf.concat([slim.conv2d(x, 2, 3, scope="a"), slim.conv2d(x, 2, 5, scope="b")], 3)


def unknown(x):
    two = slim.conv2d(slim.conv2d(x, 1, 3, stride=2), 1, 1, stride=2, padding="VALID")
    return slim.conv2d(x, 1, 1, stride=4, padding="VALID") + two


def by_channel(x):
    return slim.separable_conv2d(x, None, 3, 1)


@pytest.mark.parametrize(
    ("network", "settings", "expected"),
    [
        (aligned, {}, [3, 3, 4, 4, 1, 1]),
        (deep, {}, [29, 29, 4, 4, None, None]),
        (deep, {"input_resolution": [32, 30]}, [29, 29, 4, 4, 12, 12]),
        (deep, {"input_resolution": [15, 17]}, [29, 29, 4, 4, 13, 13]),
        (normalized, {}, [7, 5, 2, 2, 2, 1]),
        (joined, {}, [5, 5, 1, 1, 2, 2]),
        (joined, {"stop_propagation": ["b/"]}, [3, 3, 1, 1, 1, 1]),
        (unknown, {}, [3, 3, 4, 4, None, None]),
        (by_channel, {}, [3, 3, 1, 1, 1, 1]),
    ],
)
def test_networks(network, settings, expected):
    x = tf.placeholder(tf.float32, [None, None, None, 1], "picture")
    y = tf.identity(network(x), "output")
    assert list(compute(tf.get_default_graph(), x, y, **settings)) == expected
    assert list(compute(tf.get_default_graph().as_graph_def(), "picture", "output:0", **settings)) == expected


def test_places():
    x = tf.placeholder(tf.float32, [None, None, None, 1])
    field = compute(tf.get_default_graph(), x, deep(x), input_resolution=[32, 30])
    assert field.compute_input_center_coordinates([[0, 0], [1, 2]]).tolist() == [[2, 2], [6, 10]]
    assert field.compute_feature_coordinates([[3.0, 4]]).tolist() == [[0.25, 0.5]]
    assert field.compute_feature_coordinates([[10.0]], axis=[1]).tolist() == [[2]]
    with pytest.raises(ValueError, match="does not match dimensionality of `axis`"):
        field.compute_feature_coordinates([1.0])


def test_networks_without_an_answer():
    x = tf.placeholder(tf.float32, [None, None, None, 1], "x")
    graph = tf.get_default_graph()
    shifted = slim.conv2d(x, 1, 3, padding="VALID") + slim.conv2d(x, 1, 1, padding="VALID")
    faster = tf.concat([slim.conv2d(x, 1, 1, stride=2, padding="VALID"), slim.conv2d(x, 1, 1)], 3)
    for output, words in (
        (shifted, "center shift from different paths is different in vertical direction"),
        (faster, "effective stride from different paths"),
        (tf.reduce_mean(x, [1, 2], name="mean"), "Unknown layer for operation 'mean': Mean"),
        (tf.zeros([1]), "Input node was not found"),
        ("absent", "Output node was not found: absent"),
    ):
        with pytest.raises(ValueError, match=words):
            compute(graph, x, output)
