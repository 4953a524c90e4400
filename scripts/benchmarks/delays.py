"""Delays as machines that others share have them, given to the workers of a benchmark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

import tfray as tf
from tfray.training.input.inputs import Batch, InputContext, InputFunction


@dataclass(frozen=True)
class Delays:
    """Heavy-tailed delays: of `least_s` mostly, now and then of many times that.

    Attributes:
        least_s: The shortest.
        most_s: The longest.
        tail: Exponent of the Pareto distribution between them: the smaller, the heavier the tail.
        seed: Of the random numbers.
    """

    least_s: float = 0.05
    most_s: float = 1.0
    tail: float = 4.0
    seed: int = 0

    def of(self, replica: int) -> Iterator[float]:
        """The delays of one replica, step after step."""
        rng = np.random.default_rng([self.seed, replica])
        while True:
            yield min(self.least_s * (1.0 + rng.pareto(self.tail)), self.most_s)


def delayed(input_fn: InputFunction, delays: Delays) -> InputFunction:
    """An input that tells every replica in every step how long to compute: a further feature, in seconds."""

    def opened(context: InputContext) -> Iterator[Batch]:
        for (images, labels), delay_s in zip(input_fn(context), delays.of(context.index), strict=False):
            yield {"images": images, "delay_s": np.array(delay_s, np.float32)}, labels

    return opened


def digits_input(batch_size: int) -> InputFunction:
    """Batches of scikit-learn's handwritten digits."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    return tf.train.array_input(images, digits.target.astype(np.int32), batch_size=batch_size, shuffle_seed=0)


def perceptron(learning_rate: float) -> tf.train.ModelFunction:
    """A network of one hidden layer for the digits, trained by gradient descent, on an input that is `delayed`.

    Its replicas wait once they have the parameters, as if they computed for so long, but leave the processor alone.
    """

    def model_fn(features: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tf.train.ModelSpec:
        hidden = tf.layers.dense(features["images"], 64, activation=tf.nn.relu)
        with tf.control_dependencies([hidden]):
            waited = tf.py_func(_wait, [features["delay_s"]], tf.float32)
        with tf.control_dependencies([waited]):
            hidden = tf.identity(hidden)
        logits = tf.layers.dense(hidden, 10)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(learning_rate).minimize(loss))

    return model_fn


def _wait(delay_s: np.float32) -> np.float32:
    time.sleep(float(delay_s))
    return delay_s
