"""A model whose checkpoints have a bit of everything: a partitioned variable, slots of an optimizer and a step."""

from __future__ import annotations

import tfray as tf


def checkpointed_model():
    """The model of ``scripts/golden_checkpoints.py``: what is fed, the logits, the loss and the training step."""
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    with tf.variable_scope("hidden"):
        hidden = tf.tanh(tf.matmul(x, tf.get_variable("kernel", [8, 6])) + tf.get_variable("bias", [6]))
    with tf.variable_scope("out", partitioner=tf.fixed_size_partitioner(3)):
        logits = tf.matmul(hidden, tf.convert_to_tensor(tf.get_variable("kernel", [6, 4])))
    loss = tf.reduce_mean(tf.square(logits - x[:, :4]))
    step = tf.train.get_or_create_global_step()
    return x, tf.nn.softmax(logits, name="predictions"), loss, tf.train.AdamOptimizer(0.05).minimize(loss, step)
