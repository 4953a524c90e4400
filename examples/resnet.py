"""A residual network (He et al., 2016) with batch normalisation, small enough for 8 x 8 pixels.

Run it::

    python examples/resnet.py --local
    python examples/resnet.py --workers 2 --ps 1
"""

import digits

import tfray as tf
from tfray import cli


def normalized(images, training):
    """Batch normalisation, rectified."""
    return tf.nn.relu(tf.layers.batch_normalization(images, momentum=0.9, training=training))


def block(images, channels, strides, training):
    """Two convolutions beside a short cut."""
    ready = normalized(images, training)
    shortcut = images
    if strides > 1 or images.shape[3] != channels:
        shortcut = tf.layers.conv2d(ready, channels, 1, strides, use_bias=False)
    inner = tf.layers.conv2d(ready, channels, 3, strides, "same", use_bias=False)
    return shortcut + tf.layers.conv2d(normalized(inner, training), channels, 3, 1, "same", use_bias=False)


def build(channels: int = 16, blocks: int = 2, learning_rate: float = 0.05, steps: int = 200):
    """Train a residual network on handwritten digits."""

    def model(images, labels, mode):
        training = mode == tf.train.ModeKeys.TRAIN
        layer = tf.layers.conv2d(tf.reshape(images, [-1, 8, 8, 1]), channels, 3, padding="same", use_bias=False)
        for group in range(2):
            for index in range(blocks):
                strides = 2 if group and not index else 1
                layer = block(layer, channels << group, strides, training)
        pooled = tf.reduce_mean(normalized(layer, training), [1, 2])
        # The moving averages follow with every step.
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS) if training else []):
            logits = tf.layers.dense(pooled, 10)
        return digits.classifier(logits, labels, tf.train.MomentumOptimizer(learning_rate, 0.9))

    return digits.trainer(model, steps)


if __name__ == "__main__":
    cli.train(build)
