"""Models to export to ONNX: each a function that builds a graph, with values to feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tfray as tf


class Model(NamedTuple):
    """A graph to export.

    Attributes:
        build: Builds it; returns inputs and outputs by name.
        feeds: Values of the inputs.
        opset: The oldest opset that has all that it needs.
    """

    build: Callable[[], tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]]
    feeds: dict[str, Any]
    opset: int = 13


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers: the same in each run, whatever else is run."""
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def images(channels: int = 3, size: int | None = 8) -> tf.Tensor:
    return tf.placeholder(tf.float32, [None, size, size, channels], name="images")


def convnet():
    x = images()
    h = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
    h = tf.layers.max_pooling2d(h, 2, 2)
    h = tf.layers.conv2d(h, 6, 3, strides=2, padding="same", bias_initializer=tf.ones_initializer())
    h = tf.layers.dense(tf.layers.flatten(tf.nn.elu(h)), 5)
    return {"images": x}, {"logits": h, "probabilities": tf.nn.softmax(h), "label": tf.argmax(h, 1)}


def residual():
    x = images()
    h = tf.layers.conv2d(x, 4, 3, padding="same", use_bias=False)
    h = tf.nn.relu(tf.layers.batch_normalization(h, training=False, gamma_initializer=tf.ones_initializer()))
    h = tf.nn.relu(h + tf.layers.conv2d(tf.pad(h, [[0, 0], [1, 1], [1, 1], [0, 0]]), 4, 3))
    h = tf.concat([h, tf.layers.average_pooling2d(h, 3, 1, padding="same")], 3)
    return {"images": x}, {"features": tf.reduce_mean(h, [1, 2]), "map": h}


def of_any_size():
    x = images(size=None)
    h = tf.layers.conv2d(x, 4, 5, strides=2, padding="same")
    h = tf.layers.max_pooling2d(h, 3, 2, padding="same")
    return {"images": x}, {"map": tf.nn.log_softmax(h), "mean": tf.reduce_mean(h, [1, 2], keepdims=True)}


def mobile():
    x = images()
    h = tf.layers.separable_conv2d(x, 6, 3, padding="same")
    h = tf.nn.relu6(tf.layers.conv2d(h, 4, 3, dilation_rate=2, padding="same"))
    return {"images": x}, {"map": h, "blocks": tf.space_to_depth(h, 2), "wide": tf.depth_to_space(h, 2)}


def local_response():
    x = images(channels=7, size=4)
    return {"images": x}, {"map": tf.nn.local_response_normalization(tf.nn.relu(x), 2, alpha=0.1, beta=0.75)}


def generator():
    z = tf.placeholder(tf.float32, [None, 4], name="z")
    h = tf.reshape(tf.layers.dense(z, 18), [-1, 3, 3, 2])
    h = tf.layers.conv2d_transpose(h, 4, 3, 2, padding="same", activation=tf.nn.leaky_relu)
    h = tf.layers.conv2d_transpose(h, 3, 5, 2, padding="same")
    valid = tf.layers.conv2d_transpose(h, 2, 2, 3)
    return {"z": z}, {"images": tf.tanh(h), "valid": valid}


def autoencoder():
    x = tf.placeholder(tf.float32, [None, 12], name="x")
    h = tf.layers.dense(tf.layers.dense(x, 6, tf.nn.softplus), 3, tf.nn.selu)
    return {"x": x}, {"code": h, "again": tf.layers.dense(h, 12, tf.sigmoid)}


def sequences():
    x = tf.placeholder(tf.float32, [None, 9, 3], name="x")
    h = tf.layers.average_pooling1d(tf.layers.conv1d(x, 4, 3, padding="same"), 2, 2)
    return {"x": x}, {"y": h, "last": h[:, -1], "odd": h[:, ::2, 1:3], "back": h[:, ::-1]}


def volumes():
    x = tf.placeholder(tf.float32, [None, 5, 6, 7, 2], name="x")
    h = tf.layers.conv3d(x, 3, 3, strides=2, padding="same")
    return {"x": x}, {"y": h, "up": tf.layers.conv3d_transpose(h, 2, 2, 2), "most": tf.layers.max_pooling3d(h, 2, 1)}


def lstm():
    x = tf.placeholder(tf.float32, [None, None, 5], name="x")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    cell = tf.nn.rnn_cell.LSTMCell(4)
    outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)
    return {"x": x, "lengths": lengths}, {"outputs": outputs, "c": state.c, "h": state.h}


def both_ways():
    x = tf.placeholder(tf.float32, [None, 6, 5], name="x")
    cells = [tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.GRUCell(3)]
    outputs, states = tf.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32)
    return {"x": x}, {"outputs": tf.concat(outputs, 2), "state": states[1]}


def attention():
    ids = tf.placeholder(tf.int32, [None, 6], name="ids")
    x = tf.nn.embedding_lookup(tf.get_variable("table", [11, 8]), ids)
    q, k, v = tf.split(tf.layers.dense(x, 24), 3, axis=-1)
    heads = [tf.transpose(tf.reshape(t, [-1, 6, 2, 4]), [0, 2, 1, 3]) for t in (q, k, v)]
    scores = tf.matmul(heads[0], heads[1], transpose_b=True) / 2.0
    hidden = tf.sequence_mask(tf.reduce_sum(tf.to_int32(ids > 0), 1), 6)[:, tf.newaxis, tf.newaxis, :]
    scores = tf.where_v2(hidden, scores, -1e9 * tf.ones_like(scores))
    mixed = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), heads[2]), [0, 2, 1, 3]), [-1, 6, 8])
    return {"ids": ids}, {"y": tf.contrib.layers.layer_norm(x + mixed, begin_norm_axis=-1)}


def loops():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    mapped = tf.map_fn(lambda row: row * tf.reduce_sum(row), x)
    total = tf.scan(lambda a, row: 0.5 * a + row, x)
    turns, power = tf.while_loop(
        lambda i, y: tf.reduce_max(y) < 100.0, lambda i, y: (i + 1, y * 2.0), [tf.constant(0), tf.abs(x) + 1.0]
    )
    return {"x": x}, {"mapped": mapped, "total": total, "turns": turns, "power": power}


def nested():
    x = tf.placeholder(tf.float32, [None, 3, 2], name="x")

    def twice(y):
        return tf.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, z + x[0]), [0, y])[1]

    def turn(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: twice(y), lambda: y * 2.0)

    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    growing = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, tf.to_float(i) * x[0])), [0, array])[1]
    sums, powers = tf.scan(lambda s, row: (s[0] + row, s[1] * 2.0), x, initializer=(tf.zeros([3, 2]), tf.constant(1.0)))
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(3), tf.nn.rnn_cell.GRUCell(2)])
    return {"x": x}, {
        "maps": tf.map_fn(lambda m: tf.map_fn(lambda row: row * tf.reduce_sum(m), m), x),
        "loops": tf.while_loop(lambda i, y: i < 3, turn, [0, tf.zeros([3, 2])])[1],
        "folded": tf.foldl(lambda s, row: s + row, x),
        "growing": growing.stack(),
        "sums": sums,
        "powers": powers,
        "stacked": tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=True)[0],
        "unrolled": tf.nn.static_rnn(tf.nn.rnn_cell.BasicRNNCell(2), tf.unstack(x, axis=1), dtype=tf.float32)[0][-1],
    }


def branches():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.get_variable("w", [3, 3])
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: tf.cond(x[0, 0] > 0, lambda: x, lambda: -x))
    return {"x": x}, {"y": y}


def resized():
    x = images(size=6)
    made = {}
    for mode in ("bilinear", "nearest_neighbor"):
        for name, options in (
            ("old", {}),
            ("corners", {"align_corners": True}),
            ("half", {"half_pixel_centers": True}),
        ):
            made[f"{mode}_{name}"] = getattr(tf.image, f"resize_{mode}")(x, [9, 11], **options)
    return {"images": x}, made


def gathered():
    x = tf.placeholder(tf.float32, [None, 5], name="x")
    i = tf.placeholder(tf.int32, [None, 2], name="i")
    values, places = tf.nn.top_k(x, 3)
    return {"x": x, "i": i}, {
        "columns": tf.gather(x, i, axis=1),
        "rows": tf.batch_gather(x, i),
        "places": places,
        "values": values,
        "sorted": tf.sort(x, direction="DESCENDING"),
        "hot": tf.one_hot(i - 1, 4, on_value=2.0, off_value=-1.0),
        "cells": tf.gather_nd(x, tf.stack([tf.zeros_like(i[:, 0]), i[:, 0]], 1)),
        "sums": tf.cumsum(x, axis=1, reverse=True),
        "unstacked": tf.add_n(tf.unstack(x, axis=1)),
    }


def scattered():
    x = tf.placeholder(tf.float32, [3, 4], name="x")
    i = tf.placeholder(tf.int32, [3, 1], name="i")
    return {"x": x, "i": i}, {
        "new": tf.scatter_nd(i, x, [5, 4]),
        "added": tf.tensor_scatter_add(tf.ones([5, 4]), i, x),
        "band": tf.matrix_band_part(x, 1, 0),
    }


def numbers():
    a = tf.placeholder(tf.int64, [4], name="a")
    b = tf.placeholder(tf.float64, [4], name="b")
    return {"a": a, "b": b}, {
        "div": a // 3,
        "mod": tf.floormod(a, 3),
        "floats": tf.floormod(b, 3.0),
        "floor": b // 0.7,
        "half": tf.cast(b, tf.float16),
        "whole": tf.cast(b, tf.int32),
        "both": tf.logical_and(a > 0, b < 1.0),
        "some": tf.reduce_any(a > 2),
        "safe": tf.div_no_nan(b, tf.cast(a, tf.float64)),
        "range": tf.range(tf.size(a)) * 2,
        "filled": tf.fill(tf.shape(a) * 2, 7),
        "padded": tf.pad(b, [[1, 2]], constant_values=5.0),
        "tiled": tf.tile(a[tf.newaxis], [2, 1]),
        "clipped": tf.clip_by_value(b, -1.0, 1.0),
        "odd": tf.strided_slice(a, [3], [0], [-2]),
    }


MODELS = {
    "convnet": Model(convnet, {"images": floats(2, 8, 8, 3)}),
    "residual": Model(residual, {"images": floats(2, 8, 8, 3)}),
    "of_any_size": Model(of_any_size, {"images": floats(1, 11, 11, 3)}),
    "mobile": Model(mobile, {"images": floats(1, 8, 8, 3)}),
    "local_response": Model(local_response, {"images": floats(1, 4, 4, 7)}),
    "generator": Model(generator, {"z": floats(2, 4)}),
    "autoencoder": Model(autoencoder, {"x": floats(3, 12)}),
    "sequences": Model(sequences, {"x": floats(2, 9, 3)}),
    "volumes": Model(volumes, {"x": floats(1, 5, 6, 7, 2)}),
    "lstm": Model(lstm, {"x": floats(2, 6, 5), "lengths": np.array([3, 5], np.int32)}),
    "both_ways": Model(both_ways, {"x": floats(2, 6, 5)}),
    "attention": Model(attention, {"ids": np.array([[1, 2, 3, 4, 0, 0], [10, 9, 8, 7, 6, 5]], np.int32)}),
    "loops": Model(loops, {"x": floats(4, 3)}),
    "nested": Model(nested, {"x": floats(4, 3, 2)}),
    "branches": Model(branches, {"x": floats(2, 3)}),
    "resized": Model(resized, {"images": floats(1, 6, 6, 3)}),
    "gathered": Model(gathered, {"x": floats(3, 5), "i": np.array([[0, 4], [1, 1], [3, 2]], np.int32)}),
    "scattered": Model(scattered, {"x": floats(3, 4), "i": np.array([[4], [0], [4]], np.int32)}, 16),
    "numbers": Model(numbers, {"a": np.array([-7, 0, 2, 9]), "b": np.array([-7.5, -0.2, 0.9, 8.3])}),
}
"""By name."""

BEYOND_THE_EVALUATOR = {"local_response", "lstm", "both_ways", "nested"}
"""Models with which ONNX's own evaluator errs: it windows LRN otherwise than the standard and ONNX Runtime, and joins
what a loop gives in each turn along an axis that is there, instead of a new one."""


def exported(model: Model, path: Any, opset: int) -> dict[str, np.ndarray]:
    """Write a model to a file. Returns its outputs, as the session computes them."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        inputs, outputs = model.build()
        session.run(tf.global_variables_initializer())
        expected = session.run(outputs, {inputs[name]: value for name, value in model.feeds.items()})
        tf.onnx.export(session, path, inputs, outputs, opset=opset)
    return expected


def assert_same(got: Any, expected: Any, name: str = "", tolerance: float = 1e-5) -> None:
    """Arrays of one shape and dtype that differ by less than a tolerance, relative to the largest number."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert (got.shape, got.dtype.kind) == (expected.shape, expected.dtype.kind), (name, got.dtype, expected.dtype)
    if expected.dtype.kind in "fcV":  # NumPy counts bfloat16 among the last
        scale = max(
            1.0, float(np.abs(expected[np.isfinite(expected.astype(np.float64))].astype(np.float64)).max(initial=0))
        )
        np.testing.assert_allclose(
            got.astype(np.float64), expected.astype(np.float64), 0, tolerance * scale, err_msg=name
        )
    else:
        np.testing.assert_array_equal(got, expected, err_msg=name)
