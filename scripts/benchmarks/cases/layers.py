"""Layers that the programs of several benchmarks are made of: TensorFlow 2.21 has no `tf.layers` without Keras 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Layers:
    """Layers with their variables, numbered in the order of their making.

    Args:
        tf: The module with TensorFlow 1's names.
        inputs: What the first layer takes, which has no gradient.

    Attributes:
        updates: What a training step must run beside the optimizer: moving averages of batch norms.
        weights: Numbers in all weights.
        flops: Of a training step in convolutions and products: forward, and for the gradients of weights and inputs.
    """

    def __init__(self, tf: Any, inputs: Any = None) -> None:
        self.updates: list[Any] = []
        self.weights = 0
        self.flops = 0.0
        self._tf = tf
        self._layers = 0
        self._inputs = inputs

    def _parameters(self, x: Any, shape: Sequence[int]) -> tuple[Any, Any]:
        weights = self._weights(x, shape)
        bias = self._tf.get_variable(f"bias_{self._layers}", [shape[-1]], initializer=self._tf.zeros_initializer())
        return weights, self._as(x, bias)

    def _weights(self, x: Any, shape: Sequence[int], fan_in: int = 0) -> Any:
        self._layers += 1
        self.weights += int(np.prod(shape))
        deviation = (fan_in or int(np.prod(shape[:-1]))) ** -0.5
        return self._as(
            x,
            self._tf.get_variable(
                f"weights_{self._layers}", shape, initializer=self._tf.random_normal_initializer(stddev=deviation)
            ),
        )

    def _as(self, x: Any, parameter: Any) -> Any:
        """A parameter, all of which are float32, in the dtype of `x`."""
        return parameter if x.dtype.base_dtype == self._tf.float32 else self._tf.cast(parameter, x.dtype)

    def _count(self, x: Any, result: Any, depth: int) -> Any:
        """Add what a result takes that is made of `x`, each number of it the sum of so many products."""
        passes = 2 if x is self._inputs else 3
        self.flops += 2.0 * depth * float(np.prod([size or 0 for size in result.shape.as_list()])) * passes
        return result

    def _convolved(self, x: Any, weights: Any, stride: int, padding: str) -> Any:
        convolved = self._tf.nn.conv2d(x, weights, strides=[1, stride, stride, 1], padding=padding)
        return self._count(x, convolved, int(np.prod(weights.shape.as_list()[:3])))

    def convolution(self, x: Any, filters: int, size: int, stride: int = 1, padding: str = "SAME") -> Any:
        """With a bias, rectified."""
        weights, bias = self._parameters(x, [size, size, int(x.shape[3]), filters])
        return self._tf.nn.relu(self._tf.nn.bias_add(self._convolved(x, weights, stride, padding), bias))

    def normalized(
        self, x: Any, filters: int, size: int | tuple[int, int], stride: int = 1, padding: str = "SAME"
    ) -> Any:
        """A convolution with a batch norm instead of a bias."""
        height, width = size if isinstance(size, tuple) else (size, size)
        weights = self._weights(x, [height, width, int(x.shape[3]), filters])
        return self.batch_norm(self._convolved(x, weights, stride, padding))

    def depthwise(self, x: Any, size: int, stride: int) -> Any:
        """A convolution of each channel by itself, with a batch norm."""
        weights = self._weights(x, [size, size, int(x.shape[3]), 1], size * size)
        convolved = self._tf.nn.depthwise_conv2d(x, weights, [1, stride, stride, 1], "SAME")
        return self.batch_norm(self._count(x, convolved, size * size))

    def batch_norm(self, x: Any) -> Any:
        """In training: normalized by the batch's moments, of which moving averages are kept."""
        tf, channels = self._tf, [int(x.shape[3])]
        self._layers += 1

        def variable(name: str, initializer: Any, trainable: bool = True) -> Any:
            return tf.get_variable(f"{name}_{self._layers}", channels, initializer=initializer, trainable=trainable)

        zeros, ones = tf.zeros_initializer(), tf.ones_initializer()
        scale, offset = variable("scale", ones), variable("offset", zeros)
        normalized, *moments = tf.nn.fused_batch_norm(x, scale, offset, is_training=True)[:3]
        kept = variable("mean", zeros, trainable=False), variable("variance", ones, trainable=False)
        self.updates += [
            tf.assign_sub(average, 0.01 * (average - now)) for average, now in zip(kept, moments, strict=True)
        ]
        return normalized

    def max_pool(self, x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
        """The largest of each window."""
        return self._tf.nn.max_pool(x, [1, size, size, 1], [1, stride, stride, 1], padding)

    def average(self, x: Any) -> Any:
        """The mean of each image's features, as a window over the whole of it."""
        size = int(x.shape[1])
        return self._tf.nn.avg_pool(x, [1, size, size, 1], [1, 1, 1, 1], "VALID")

    def smooth(self, x: Any) -> Any:
        """Means of windows of 3 x 3, at every place."""
        return self._tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")

    def relu(self, x: Any) -> Any:
        """Rectified."""
        return self._tf.nn.relu(x)

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        """Side by side."""
        return self._tf.concat(parts, axis)

    def linear(self, x: Any, units: int) -> Any:
        """A fully connected layer, for rows of features."""
        weights, bias = self._parameters(x, [int(x.shape[1]), units])
        return self._tf.nn.bias_add(self._count(x, self._tf.matmul(x, weights), int(x.shape[1])), bias)

    def dense(self, x: Any, *widths: int) -> Any:
        """Fully connected layers, the last one linear."""
        x = self._tf.reshape(x, [-1, int(np.prod(x.shape.as_list()[1:]))])
        for i, units in enumerate(widths):
            x = self.linear(x, units)
            if i < len(widths) - 1:
                x = self._tf.nn.relu(x)
        return x


class LSTMCell:
    """An LSTM cell that `dynamic_rnn` of both sides takes: TensorFlow 2.21 has none without Keras 2."""

    def __init__(self, tf: Any, inputs: int, units: int, name: str = "lstm") -> None:
        self.state_size = (units, units)
        self.output_size = units
        self._tf = tf
        self._weights = tf.get_variable(f"{name}_weights", [inputs + units, 4 * units])
        self._bias = tf.get_variable(f"{name}_bias", [4 * units], initializer=tf.zeros_initializer())

    def zero_state(self, batch_size: Any, dtype: Any) -> tuple[Any, Any]:
        """A state of zeros."""
        zeros = self._tf.zeros([batch_size, self.output_size], dtype)
        return zeros, zeros

    def __call__(self, inputs: Any, state: tuple[Any, Any], scope: Any = None) -> tuple[Any, tuple[Any, Any]]:
        tf, (c, h) = self._tf, state
        gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs, h], 1), self._weights), self._bias)
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)


def clipped(tf: Any, optimizer: Any, loss: Any, norm: float) -> Any:
    """A training step whose gradients are clipped to a global norm."""
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), norm)
    return optimizer.apply_gradients(zip(gradients, variables, strict=True))
