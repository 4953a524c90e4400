"""Delays as machines that others share have them, given to the workers of a benchmark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import tfray as tf
from tfray.training.inputs import Batch, InputContext, InputFunction


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
    """An input that keeps every step of every replica waiting, as slow computation would, without taking the CPU."""

    def opened(context: InputContext) -> Iterator[Batch]:
        for batch, delay_s in zip(input_fn(context), delays.of(context.index), strict=False):
            time.sleep(delay_s)
            yield batch

    return opened


def digits_input(batch_size: int) -> InputFunction:
    """Batches of scikit-learn's handwritten digits."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    return tf.train.array_input(images, digits.target.astype(np.int32), batch_size=batch_size, shuffle_seed=0)


def perceptron(learning_rate: float) -> tf.train.ModelFunction:
    """A network of one hidden layer for the digits, trained by gradient descent."""

    def model_fn(images: tf.Tensor, labels: tf.Tensor) -> tf.train.ModelSpec:
        hidden = tf.layers.dense(images, 64, activation=tf.nn.relu)
        logits = tf.layers.dense(hidden, 10)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(learning_rate).minimize(loss))

    return model_fn
