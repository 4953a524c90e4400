"""`tensorflow.examples.tutorials.mnist.mnist`: the perceptron of TensorFlow's tutorial."""

from __future__ import annotations

import math
from typing import Final

import tfray as tf
from tfray.programs import mnist_input as input_data

NUM_CLASSES: Final = 10
IMAGE_SIZE: Final = 28
IMAGE_PIXELS: Final = IMAGE_SIZE * IMAGE_SIZE

__all__ = ["IMAGE_PIXELS", "IMAGE_SIZE", "NUM_CLASSES", "evaluation", "inference", "input_data", "loss", "training"]


def inference(images: tf.Tensor, hidden1_units: int, hidden2_units: int) -> tf.Tensor:
    """The logits, float32 ``[batch, 10]``, of images, float32 ``[batch, 784]``, by two hidden layers of these sizes."""
    hidden = tf.nn.relu(_layer("hidden1", images, IMAGE_PIXELS, hidden1_units))
    hidden = tf.nn.relu(_layer("hidden2", hidden, hidden1_units, hidden2_units))
    return _layer("softmax_linear", hidden, hidden2_units, NUM_CLASSES)


def _layer(name: str, inputs: tf.Tensor, size: int, units: int) -> tf.Tensor:
    with tf.name_scope(name):
        start = tf.truncated_normal([size, units], stddev=1.0 / math.sqrt(float(size)))
        weights = tf.Variable(start, name="weights")
        biases = tf.Variable(tf.zeros([units]), name="biases")
        return tf.matmul(inputs, weights) + biases


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The mean cross entropy, of logits ``[batch, 10]`` and labels, int ``[batch]``."""
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.to_int64(labels), logits=logits)


def training(loss: tf.Tensor, learning_rate: float) -> tf.Operation:
    """A step of gradient descent, with a summary of the loss and a variable ``global_step``."""
    tf.summary.scalar("loss", loss)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=global_step)


def evaluation(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """How many of the images, int32, have their label, int ``[batch]``, as the largest logit."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
