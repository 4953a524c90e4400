"""A small convolutional network, with dropout in training only.

Run it::

    python examples/convnet.py --local
    python examples/convnet.py --workers 3 --ps 2
    tfray run examples/convnet.py:build --workers 3 --ps 2 --backup-workers 1
"""

import digits
from mlp import dense

import tfray as tf
from tfray import cli


def convolution(images, channels, name):
    """A 3 x 3 convolution of images `[batch, height, width, channels]`, rectified."""
    with tf.variable_scope(name):
        filters = tf.get_variable("filters", [3, 3, images.shape[3], channels])
        biases = tf.get_variable("biases", [channels], initializer=tf.zeros_initializer())
        return tf.nn.relu(tf.nn.conv2d(images, filters, strides=[1, 1, 1, 1], padding="SAME") + biases)


def halve(images):
    """The maximum over every 2 x 2 pixels."""
    return tf.nn.max_pool(images, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def build(channels: int = 16, learning_rate: float = 0.003, steps: int = 300):
    """Train a convolutional network on handwritten digits."""

    def model(images, labels, mode):
        layer = tf.reshape(images, [-1, 8, 8, 1])
        layer = halve(convolution(layer, channels, "conv_1"))
        layer = halve(convolution(layer, 2 * channels, "conv_2"))
        layer = tf.nn.relu(dense(tf.reshape(layer, [-1, 8 * channels]), 64, "hidden"))
        if mode == tf.train.ModeKeys.TRAIN:
            layer = tf.nn.dropout(layer, rate=0.3)
        return digits.classifier(dense(layer, 10, "output"), labels, tf.train.AdamOptimizer(learning_rate))

    return digits.trainer(model, steps)


if __name__ == "__main__":
    cli.train(build)
