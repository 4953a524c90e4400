"""Optimizers and models in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from graph_cases.declaring import case, given, parts_of_table, perceptron, weights

raw = tf.raw_ops
linalg, signal, image = tf.linalg, tf.signal, tf.image


# -- optimizers and models -----------------------------------------------------------------------------


def rows_trained(optimizer: Any) -> list[Any]:
    """A network whose table gets sparse gradients, and whose weights get dense ones."""
    ids, wanted = given(6, dtype=np.int32, name="ids", low=0, high=9), given(6, 2, name="wanted")
    table = tf.get_variable("table", initializer=np.linspace(-1, 1, 30, dtype=np.float32).reshape(10, 3))
    found = tf.matmul(tf.nn.embedding_lookup(table, ids), weights(3, 2))
    loss = tf.reduce_mean(tf.square(found - wanted), name="loss")
    optimizer.minimize(loss, tf.train.get_or_create_global_step(), name="train")
    return [found]


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
    "centered_rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "shrunk_ftrl": lambda: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal_sgd": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01),
}


def declare_optimizers() -> None:
    """A case for each optimizer and kind of variable."""
    for name, make in OPTIMIZERS.items():
        for resource in (False, True):

            def build(make: Any = make) -> list[Any]:
                return rows_trained(make())

            build.__name__ = f"trained_rows_{name}" + ("_resource" if resource else "")
            case(resource=resource)(build)


declare_optimizers()


def pictures_classified(optimizer: Any) -> list[Any]:
    """A convnet with batch normalization that is updated as it trains."""
    x = given(8, 8, 8, 1)
    labels = tf.constant([0, 1, 2, 1, 0, 2, 1, 0])
    y = tf.nn.conv2d(x, weights(3, 3, 1, 4), [1, 1, 1, 1], "SAME")
    scale, offset = weights(4, name="scale"), weights(4, name="offset")
    y, mean, variance = tf.nn.fused_batch_norm(y, scale + 1, offset)
    for key, batch in (("mean", mean), ("variance", variance)):
        moving = tf.get_variable(f"moving_{key}", initializer=np.zeros(4, np.float32), trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(moving, 0.1 * (moving - batch)))
    y = tf.nn.max_pool(tf.nn.relu(y), 2, 2, "SAME")
    found = tf.matmul(tf.reshape(y, [-1, 64]), weights(64, 3, name="dense"))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=found)
    loss = tf.add(tf.reduce_mean(loss), 1e-3 * tf.nn.l2_loss(scale), name="loss")
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        gradients = optimizer(tf.train.exponential_decay(0.05, step, 5, 0.9)).compute_gradients(loss)
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in gradients], 1.0)
        pairs = [(gradient, variable) for gradient, (_, variable) in zip(clipped, gradients, strict=True)]
    return [found] if optimizer(0.05).apply_gradients(pairs, step, "train") is not None else []


@case()
def trained_convnet_momentum() -> list[Any]:
    return pictures_classified(lambda rate: tf.train.MomentumOptimizer(rate, 0.9))


@case(resource=True)
def trained_convnet_adam_resource() -> list[Any]:
    return pictures_classified(lambda rate: tf.train.AdamOptimizer(rate))


def parts_trained() -> list[Any]:
    """An embedding in parts."""
    ids, wanted = given(6, dtype=np.int32, name="ids", low=0, high=9), given(6, 2, name="wanted")
    held = np.linspace(-1, 1, 30, dtype=np.float32).reshape(10, 3)
    table = parts_of_table(held)
    found = tf.matmul(tf.nn.embedding_lookup(table, ids, partition_strategy="div"), weights(3, 2))
    loss = tf.reduce_mean(tf.square(found - wanted), name="loss")
    tf.train.AdamOptimizer(0.01).minimize(loss, name="train")
    return [found]


@case()
def trained_parts() -> list[Any]:
    return parts_trained()


@case(resource=True)
def trained_parts_resource() -> list[Any]:
    return parts_trained()


def sentences_learnt(cell: Any) -> list[Any]:
    """A recurrent network by dynamic_rnn, with lengths."""
    x = given(3, 5, 4)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, tf.constant([5, 2, 4]), dtype=tf.float32)
    found = tf.matmul(outputs[:, -1], weights(6, 2, name="head"))
    loss = tf.reduce_mean(tf.square(found - x[:, 0, :2]) + tf.reduce_mean(outputs**2), name="loss")
    tf.train.AdamOptimizer(0.02).minimize(loss, name="train")
    return [found, outputs]


def constant_cell(kind: Any, **options: Any) -> Any:
    tf.get_variable_scope().set_initializer(tf.constant_initializer(0.1))
    return kind(6, **options)


@case(low_level=True)
def trained_lstm() -> list[Any]:
    return sentences_learnt(constant_cell(tf.nn.rnn_cell.LSTMCell, use_peepholes=True))


@case(resource=True)
def trained_lstm_resource() -> list[Any]:
    return sentences_learnt(constant_cell(tf.nn.rnn_cell.LSTMCell, num_proj=6))


@case(low_level=True)
def trained_gru() -> list[Any]:
    return sentences_learnt(constant_cell(tf.nn.rnn_cell.GRUCell))


@case(resource=True)
def trained_averages() -> list[Any]:
    found, loss = perceptron()
    stepped = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    averages = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([stepped]):
        applied = averages.apply(tf.trainable_variables())
    tf.group(applied, name="train")
    return [found]


@case()
def trained_attention() -> list[Any]:
    x = given(2, 5, 4)
    query, key, value = (tf.tensordot(x, weights(4, 4, name=name), 1) for name in ("q", "k", "v"))
    scores = tf.matmul(query, key, transpose_b=True) / 2.0
    mask = tf.matrix_band_part(tf.ones([5, 5]), -1, 0)
    y = tf.matmul(tf.nn.softmax(scores + (1 - mask) * -1e9), value) + x
    mean, variance = tf.nn.moments(y, [-1], keepdims=True)
    y = tf.nn.batch_normalization(y, mean, variance, weights(4, name="beta"), weights(4, name="gamma") + 1, 1e-6)
    y = tf.einsum("bij,jk->bik", y * 0.5 * (1.0 + tf.erf(y / 1.414)), weights(4, 4, name="w"))
    loss = tf.reduce_mean(tf.square(y[:, :-1] - x[:, 1:]), name="loss")
    tf.train.AdamOptimizer(0.02).minimize(loss, name="train")
    return [y]
