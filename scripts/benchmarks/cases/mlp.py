"""Training steps of small models at batch 128: feeds, forward, backward and the update by gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step

_BATCH: Final = 128
_PIXELS: Final = 28
_CLASSES: Final = 10


def _variable(tf: Any, name: str, shape: list[int]) -> Any:
    return tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=0.05))


def _dense(tf: Any, name: str, x: Any, units: int) -> Any:
    weights = _variable(tf, f"{name}/weights", [int(x.shape[1]), units])
    bias = tf.get_variable(f"{name}/bias", [units], initializer=tf.zeros_initializer())
    return tf.matmul(x, weights) + bias


def _convolution(tf: Any, name: str, x: Any, filters: int) -> Any:
    """5 x 5, rectified, and pooled to half the size."""
    kernel = _variable(tf, f"{name}/kernel", [5, 5, int(x.shape[3]), filters])
    bias = tf.get_variable(f"{name}/bias", [filters], initializer=tf.zeros_initializer())
    convolved = tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME")
    active = tf.nn.relu(tf.nn.bias_add(convolved, bias))
    return tf.nn.max_pool(active, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def _softmax(tf: Any, images: Any) -> Any:
    return _dense(tf, "out", images, _CLASSES)


def _mlp(tf: Any, images: Any) -> Any:
    hidden = tf.nn.relu(_dense(tf, "first", images, 256))
    hidden = tf.nn.relu(_dense(tf, "second", hidden, 256))
    return _dense(tf, "out", hidden, _CLASSES)


def _convnet(tf: Any, images: Any) -> Any:
    x = tf.reshape(images, [-1, _PIXELS, _PIXELS, 1])
    x = _convolution(tf, "first", x, 32)
    x = _convolution(tf, "second", x, 64)
    x = tf.reshape(x, [-1, 7 * 7 * 64])
    hidden = tf.nn.relu(_dense(tf, "dense", x, 512))
    return _dense(tf, "out", hidden, _CLASSES)


def _case(logits_of: Callable[[Any, Any], Any]) -> Case:
    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        random = np.random.default_rng(0)
        with tf.Graph().as_default():
            images = tf.placeholder(tf.float32, [None, _PIXELS * _PIXELS])
            labels = tf.placeholder(tf.int32, [None])
            logits = logits_of(tf, images)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            train_op = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(losses))
            feeds = {
                images: random.random((_BATCH, _PIXELS * _PIXELS), dtype=np.float32),
                labels: random.integers(_CLASSES, size=_BATCH, dtype=np.int32),
            }
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                yield lambda: session.run(train_op, feeds)

    return Case(opened)


CASES: Final = {"softmax": _case(_softmax), "mlp_256_256": _case(_mlp), "convnet": _case(_convnet)}
