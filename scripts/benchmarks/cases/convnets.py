"""Training steps of the four networks of convnet-benchmarks (OSDI 2016, section 6.1), at a small batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step

_CLASSES: Final = 1000


class _Builder:
    """Layers with their variables, numbered in the order of their making."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._layers = 0

    def _parameters(self, shape: Sequence[int]) -> tuple[Any, Any]:
        self._layers += 1
        fan_in = int(np.prod(shape[:-1]))
        weights = self._tf.get_variable(
            f"weights_{self._layers}", shape, initializer=self._tf.random_normal_initializer(stddev=fan_in**-0.5)
        )
        bias = self._tf.get_variable(f"bias_{self._layers}", [shape[-1]], initializer=self._tf.zeros_initializer())
        return weights, bias

    def convolution(self, x: Any, filters: int, size: int, stride: int = 1, padding: str = "SAME") -> Any:
        weights, bias = self._parameters([size, size, int(x.shape[3]), filters])
        convolved = self._tf.nn.conv2d(x, weights, strides=[1, stride, stride, 1], padding=padding)
        return self._tf.nn.relu(self._tf.nn.bias_add(convolved, bias))

    def max_pool(self, x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
        return self._tf.nn.max_pool(x, [1, size, size, 1], [1, stride, stride, 1], padding)

    def average(self, x: Any) -> Any:
        """The mean of each image's features, as a window over the whole of it."""
        size = int(x.shape[1])
        return self._tf.nn.avg_pool(x, [1, size, size, 1], [1, 1, 1, 1], "VALID")

    def inception(self, x: Any, sizes: tuple[int, int, int, int, int, int]) -> Any:
        """Windows of four kinds side by side; `sizes` are the filters of 1x1, 3x3 and 5x5 with theirs before."""
        one, before_three, three, before_five, five, pooled = sizes
        return self._tf.concat(
            [
                self.convolution(x, one, 1),
                self.convolution(self.convolution(x, before_three, 1), three, 3),
                self.convolution(self.convolution(x, before_five, 1), five, 5),
                self.convolution(self.max_pool(x, 3, 1, "SAME"), pooled, 1),
            ],
            3,
        )

    def dense(self, x: Any, *widths: int) -> Any:
        """Fully connected layers, the last one linear."""
        x = self._tf.reshape(x, [int(x.shape[0]), -1])
        for i, units in enumerate(widths):
            weights, bias = self._parameters([int(x.shape[1]), units])
            x = self._tf.nn.bias_add(self._tf.matmul(x, weights), bias)
            if i < len(widths) - 1:
                x = self._tf.nn.relu(x)
        return x


def _alexnet(net: _Builder, x: Any) -> Any:
    x = net.max_pool(net.convolution(x, 64, 11, 4, "VALID"), 3, 2)
    x = net.max_pool(net.convolution(x, 192, 5), 3, 2)
    for filters in (384, 256, 256):
        x = net.convolution(x, filters, 3)
    return net.dense(net.max_pool(x, 3, 2), 4096, 4096, _CLASSES)


def _overfeat(net: _Builder, x: Any) -> Any:
    x = net.max_pool(net.convolution(x, 96, 11, 4, "VALID"), 2, 2)
    x = net.max_pool(net.convolution(x, 256, 5, padding="VALID"), 2, 2)
    for filters in (512, 1024, 1024):
        x = net.convolution(x, filters, 3)
    return net.dense(net.max_pool(x, 2, 2), 3072, 4096, _CLASSES)


def _oxfordnet(net: _Builder, x: Any) -> Any:
    """Model A of the paper of the Visual Geometry Group."""
    for filters, layers in ((64, 1), (128, 1), (256, 2), (512, 2), (512, 2)):
        for _ in range(layers):
            x = net.convolution(x, filters, 3)
        x = net.max_pool(x, 2, 2)
    return net.dense(x, 4096, 4096, _CLASSES)


def _googlenet(net: _Builder, x: Any) -> Any:
    x = net.max_pool(net.convolution(x, 64, 7, 2), 3, 2, "SAME")
    x = net.convolution(net.convolution(x, 64, 1), 192, 3)
    x = net.max_pool(x, 3, 2, "SAME")
    x = net.inception(x, (64, 96, 128, 16, 32, 32))
    x = net.inception(x, (128, 128, 192, 32, 96, 64))
    x = net.max_pool(x, 3, 2, "SAME")
    x = net.inception(x, (192, 96, 208, 16, 48, 64))
    x = net.inception(x, (160, 112, 224, 24, 64, 64))
    x = net.inception(x, (128, 128, 256, 24, 64, 64))
    x = net.inception(x, (112, 144, 288, 32, 64, 64))
    x = net.inception(x, (256, 160, 320, 32, 128, 128))
    x = net.max_pool(x, 3, 2, "SAME")
    x = net.inception(x, (256, 160, 320, 32, 128, 128))
    x = net.inception(x, (384, 192, 384, 48, 128, 128))
    return net.dense(net.average(x), _CLASSES)


def _case(logits_of: Callable[[_Builder, Any], Any], pixels: int) -> Case:
    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        batch = options["batch"]
        random = np.random.default_rng(0)
        with tf.Graph().as_default():
            images = tf.placeholder(tf.float32, [batch, pixels, pixels, 3])
            labels = tf.placeholder(tf.int32, [batch])
            logits = logits_of(_Builder(tf), images)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            train_op = tf.train.GradientDescentOptimizer(1e-4).minimize(tf.reduce_mean(losses))
            feeds = {
                images: random.standard_normal(images.shape.as_list(), np.float32),
                labels: random.integers(_CLASSES, size=batch, dtype=np.int32),
            }
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                yield lambda: session.run(train_op, feeds)

    return Case(opened)


CASES: Final = {
    "alexnet": _case(_alexnet, 224),
    "overfeat": _case(_overfeat, 231),
    "oxfordnet": _case(_oxfordnet, 224),
    "googlenet": _case(_googlenet, 224),
}
