"""A multi-layer perceptron; on Ray, its six variables are spread evenly over the parameter servers.

Run it::

    python examples/mlp.py --local
    python examples/mlp.py --workers 3 --ps 2
    tfray run examples/mlp.py:build --workers 3 --ps 2 --backup-workers 1 hidden=256
"""

import digits

import tfray as tf
from tfray import cli


def dense(inputs, units, name):
    """A fully connected layer without an activation."""
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [inputs.shape[1], units])  # Glorot's uniform initialiser
        biases = tf.get_variable("biases", [units], initializer=tf.zeros_initializer())
        return tf.matmul(inputs, weights) + biases


def build(hidden: int = 128, learning_rate: float = 0.003, steps: int = 400):
    """Train a perceptron with two hidden layers on handwritten digits."""

    def model(images, labels):
        layer = tf.nn.relu(dense(images, hidden, "hidden_1"))
        layer = tf.nn.relu(dense(layer, hidden, "hidden_2"))
        logits = dense(layer, 10, "output")
        return digits.classifier(logits, labels, tf.train.AdamOptimizer(learning_rate))

    return digits.trainer(model, steps)


if __name__ == "__main__":
    cli.train(build)
