"""Models: frozen, in training, and with functions for branches and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from graph_cases.declaring import case, given, perceptron, weights

# -- models --------------------------------------------------------------------------------------------


@case(frozen=True)
def frozen_perceptron() -> list[Any]:
    return [perceptron()[0]]


@case(frozen=True, resource=True)
def frozen_resource_perceptron() -> list[Any]:
    return [perceptron()[0]]


@case(frozen=True)
def frozen_convnet() -> list[Any]:
    x = given(2, 12, 12, 1)
    for index, filters in enumerate((4, 8)):
        x = tf.nn.conv2d(x, weights(3, 3, x.shape[3].value, filters, name=f"k{index}"), [1, 1, 1, 1], "SAME")
        x = tf.nn.max_pool(tf.nn.relu(tf.nn.bias_add(x, weights(filters, name=f"b{index}"))), 2, 2, "SAME")
    x = tf.matmul(tf.reshape(x, [tf.shape(x)[0], -1]), weights(72, 5, name="dense"))
    return [tf.nn.softmax(x)]


def trained(optimizer: Any) -> list[Any]:
    found, loss = perceptron()
    optimizer.minimize(loss, tf.train.get_or_create_global_step(), name="train")
    return [found]


@case()
def trained_sgd() -> list[Any]:
    return trained(tf.train.GradientDescentOptimizer(0.1))


@case()
def trained_momentum() -> list[Any]:
    return trained(tf.train.MomentumOptimizer(0.05, 0.9))


@case(resource=True)
def trained_momentum_resource() -> list[Any]:
    return trained(tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True))


@case()
def trained_adam() -> list[Any]:
    return trained(tf.train.AdamOptimizer(0.01))


@case(resource=True)
def trained_adam_resource() -> list[Any]:
    return trained(tf.train.AdamOptimizer(0.01))


@case(resource=True)
def trained_rmsprop_resource() -> list[Any]:
    return trained(tf.train.RMSPropOptimizer(0.01, momentum=0.5))


@case()
def trained_adagrad() -> list[Any]:
    return trained(tf.train.AdagradOptimizer(0.1))


@case()
def trained_ftrl() -> list[Any]:
    return trained(tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01))


@case()
def trained_batch_norm() -> list[Any]:
    x, wanted = given(16, 5), given(16, 1, name="wanted")
    y, mean, variance = tf.nn.fused_batch_norm(
        tf.matmul(x, weights(5, 4))[:, None, None], *tf.unstack(weights(2, 4, name="s"))
    )
    moving = tf.get_variable("moving", initializer=np.zeros(4, np.float32), trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(moving, 0.1 * (moving - mean * variance)))
    y = tf.reshape(y, [-1, 4])
    found = tf.matmul(tf.nn.relu(y), weights(4, 1, name="w2"))
    loss = tf.reduce_mean(tf.square(found - wanted), name="loss")
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        tf.train.AdamOptimizer(0.01).minimize(loss, name="train")
    return [found]


def embedding() -> list[Any]:
    ids = given(6, dtype=np.int32, name="ids", low=0, high=9)
    tables = tf.get_variable("table", initializer=np.arange(30, dtype=np.float32).reshape(10, 3) / 10, partitioner=None)
    found = tf.nn.embedding_lookup(tables, ids)
    loss = tf.reduce_mean(tf.square(found), name="loss")
    tf.train.AdagradOptimizer(0.1).minimize(loss, name="train")
    return [found]


@case()
def trained_embedding() -> list[Any]:
    return embedding()


@case(resource=True)
def trained_embedding_resource() -> list[Any]:
    return embedding()


@case()
def variables() -> list[Any]:
    v, x = weights(4, 3), given(4, 3)
    with tf.control_dependencies(
        [tf.assign_add(v, x), tf.scatter_add(weights(4, 2, name="s"), [0, 1], tf.ones([2, 2]))]
    ):
        first = v.read_value() * 1.0  # a copy: TensorFlow's reads share the memory of the variable
    with tf.control_dependencies([first]):
        return [first, tf.assign_sub(v, x), tf.is_variable_initialized(v)]


@case(resource=True)
def variables_resource() -> list[Any]:
    v, x = weights(4, 3), given(4, 3)
    with tf.control_dependencies([v.assign_add(x)]):
        first = v.read_value()
    with tf.control_dependencies([first]):
        changed = v.assign_sub(x)
    with tf.control_dependencies([changed]):
        return [first, tf.gather(v, [1, 0]), tf.shape(v)]


# -- functional control flow ---------------------------------------------------------------------------


@case(resource=True)
def branches() -> list[Any]:
    x, w = given(3, 4), weights(4, 4)

    def inner() -> Any:
        return tf.cond(x[0, 0] > 5, lambda: x * 2, lambda: tf.matmul(x, w))

    y = tf.cond(tf.reduce_sum(x) > 100, lambda: x, inner)
    return [y, *tf.gradients(tf.reduce_sum(y * y), [x, w])]


@case(resource=True)
def loops() -> list[Any]:
    x, w = given(3, 4), weights(4, 4)
    turned = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, w)) + x), [0, x])
    return [*turned, *tf.gradients(turned[1], [x])]


@case(resource=True)
def nested_loops() -> list[Any]:
    x = given(3, 4)

    def body(i: Any, a: Any) -> Any:
        inner = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * 1.5 + x), [0, a])[1]
        return i + 1, tf.cond(tf.reduce_sum(inner) > 0, lambda: inner * 0.5, lambda: inner + 1)

    y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
    return [y, *tf.gradients(y, [x])]


@case(resource=True)
def tensor_arrays() -> list[Any]:
    x = given(5, 3)
    array = tf.TensorArray(tf.float32, 5, element_shape=[3]).unstack(x)
    found = tf.TensorArray(tf.float32, 5, element_shape=[3])

    def body(i: Any, a: Any) -> Any:
        return i + 1, a.write(i, array.read(i) * tf.cast(i, tf.float32))

    _, found = tf.while_loop(lambda i, a: i < 5, body, [0, found])
    y = found.stack()
    return [y, *tf.gradients(y, [x])]


@case(resource=True)
def functions() -> list[Any]:
    import tensorflow as tf2

    x = given(3, 4)

    @tf2.function
    def inner(a: Any) -> Any:
        return tf.reduce_sum(a, 1), a * 2

    @tf2.function
    def outer(a: Any) -> Any:
        first, second = inner(a + 1)
        return first + inner(second)[0]

    return [outer(x), outer(x * 2)]


@case(resource=True)
def switch_case() -> list[Any]:
    x, n = given(3, 4), tf.placeholder_with_default(1, [], name="n")
    return [tf.switch_case(n, [lambda: x, lambda: x * 2, lambda: x + 1]), tf.case([(n > 5, lambda: x)], lambda: -x)]


@case(resource=True)
def recurrent() -> list[Any]:
    x, kernel = given(2, 5, 3), weights(7, 16)
    steps = tf.unstack(x, 5, 1)
    inputs = tf.TensorArray(tf.float32, 5, element_shape=[None, 3]).unstack(tf.stack(steps))

    def step(i: Any, c: Any, h: Any, found: Any) -> Any:
        gates = tf.matmul(tf.concat([inputs.read(i), h], 1), kernel)
        i_gate, j, f, o = tf.split(gates, 4, 1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i_gate) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        return i + 1, c, h, found.write(i, h)

    zeros = tf.zeros([tf.shape(x)[0], 4])
    found = tf.TensorArray(tf.float32, 5, element_shape=[None, 4])
    _, c, h, found = tf.while_loop(lambda i, *_: i < 5, step, [0, zeros, zeros, found])
    y = found.stack()
    return [y, c, h, *tf.gradients(tf.reduce_sum(y * y) + tf.reduce_sum(c), [x, kernel])]
