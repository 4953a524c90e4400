"""Softmax regression: the smallest model there is, in one process or replicated on Ray.

Run it::

    python examples/softmax_regression.py --local
    python examples/softmax_regression.py --workers 3 --ps 2
    tfray run examples/softmax_regression.py:build --workers 3 --ps 2
"""

import digits

import tfray as tf
from tfray import cli


def build(learning_rate: float = 0.5, steps: int = 400):
    """Train a linear classifier of handwritten digits."""

    def model(images, labels):
        weights = tf.get_variable("weights", [64, 10], initializer=tf.zeros_initializer())
        biases = tf.get_variable("biases", [10], initializer=tf.zeros_initializer())
        logits = tf.matmul(images, weights) + biases
        return digits.classifier(logits, labels, tf.train.GradientDescentOptimizer(learning_rate))

    return digits.trainer(model, steps)


if __name__ == "__main__":
    cli.train(build)
