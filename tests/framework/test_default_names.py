"""Names that operations have when the program gives none: those that TensorFlow 2.21's `compat.v1` gives them.

Programs find tensors by these names (``get_tensor_by_name("dense/BiasAdd:0")``), and moving averages of tensors are
variables that are named after them.
"""

from __future__ import annotations

import pytest

import tfray as tf


def x(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, list(shape) or [2, 3], name="x")


OPERATORS = {
    "add": lambda: x() + x(),
    "sub": lambda: 1 - x(),
    "mul": lambda: x() * 2,
    "truediv": lambda: x() / 2,
    "floordiv": lambda: x() // 2,
    "mod": lambda: x() % 2,
    "pow": lambda: x() ** 2,
    "matmul": lambda: x() @ x(3, 2),
    "Neg": lambda: -x(),
    "Abs": lambda: abs(x()),
    "Less": lambda: x() < 1,
    "strided_slice": lambda: x()[0],
    "and": lambda: x(dtype=tf.bool) & True,
    "or": lambda: x(dtype=tf.bool) | x(dtype=tf.bool),
    "xor": lambda: x(dtype=tf.bool) ^ x(dtype=tf.bool),
    "LogicalNot": lambda: ~x(dtype=tf.bool),
}

FUNCTIONS = {
    "Add": lambda: tf.add(x(), 1.0),
    "Sub": lambda: tf.subtract(x(), 1.0),
    "Mul": lambda: tf.multiply(x(), 1.0),
    "div": lambda: tf.div(x(), x()),
    "truediv": lambda: tf.truediv(x(), x()),
    "floordiv": lambda: tf.floordiv(x(), x()),
    "FloorMod": lambda: tf.mod(x(), x()),
    "clip_by_value": lambda: tf.clip_by_value(x(), 0.0, 1.0),
    "clip_by_norm": lambda: tf.clip_by_norm(x(), 1.0),
    "clip_by_global_norm/clip_by_global_norm/_0": lambda: tf.clip_by_global_norm([x()], 1.0)[0][0],
    "global_norm/global_norm": lambda: tf.global_norm([x()]),
    "one_hot": lambda: tf.one_hot([1], 3),
    "Pad": lambda: tf.pad(x(), [[1, 1], [1, 1]]),
    "Trace": lambda: tf.trace(x(3, 3)),
    "count_nonzero/Sum": lambda: tf.count_nonzero(x()),
    "ReduceLogSumExp": lambda: tf.reduce_logsumexp(x()),
    "moments/Squeeze": lambda: tf.nn.moments(x(), [0])[0],
    "moments/Squeeze_1": lambda: tf.nn.moments(x(), [0])[1],
    "moments/variance": lambda: tf.nn.moments(x(), [0], keep_dims=True)[1],
    "batchnorm/add_1": lambda: tf.nn.batch_normalization(x(), x(3), x(3), x(3), x(3), 1e-3),
    "FusedBatchNormV3": lambda: tf.nn.fused_batch_norm(x(1, 2, 2, 3), x(3), x(3))[0],
    "l2_normalize": lambda: tf.nn.l2_normalize(x(), 1),
    "softmax_cross_entropy_with_logits_sg/Reshape_2": lambda: tf.nn.softmax_cross_entropy_with_logits(
        labels=x(), logits=x()
    ),
    "softmax_cross_entropy_with_logits/Reshape_2": lambda: tf.nn.softmax_cross_entropy_with_logits_v2(x(), x()),
    "embedding_lookup/Identity": lambda: tf.nn.embedding_lookup(x(), x(2, dtype=tf.int32)),
    "in_top_k/InTopKV2": lambda: tf.nn.in_top_k(x(), x(2, dtype=tf.int32), 1),
    "map/TensorArrayStack/TensorArrayGatherV3": lambda: tf.map_fn(lambda row: row * 2, x()),
    "resize/ResizeBilinear": lambda: tf.image.resize_images(x(1, 4, 4, 3), [2, 2]),
    "per_image_standardization": lambda: tf.image.per_image_standardization(x(4, 4, 3)),
    "ExponentialDecay": lambda: tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 10, 0.9),
    "PolynomialDecay": lambda: tf.train.polynomial_decay(0.1, tf.train.get_or_create_global_step(), 10),
    "dense/BiasAdd": lambda: tf.layers.dense(x(), 4),
    "Mean": lambda: tf.reduce_mean(x()),
    "ArgMax": lambda: tf.argmax(x(), 1),
    "Softmax": lambda: tf.nn.softmax(x()),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_name_their_operations(name):
    first, second = OPERATORS[name](), OPERATORS[name]()
    assert (first.name, second.name) == (f"{name}:0", f"{name}_1:0")
    assert tf.get_default_graph().get_tensor_by_name(f"{name}:0") is first


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_name_their_operations(name):
    assert FUNCTIONS[name]().name == f"{name}:0"


def test_constants_of_an_operation_are_named_under_it():
    (x() + 1, x() + 2, tf.stack([x(), 1.0 * x()]))
    names = {op.name for op in tf.get_default_graph().get_operations() if op.type == "Const"}
    assert names == {"add/y", "add_1/y", "mul/x"}


def test_moving_averages_of_moments_are_named_as_in_tensorflow():
    mean, _ = tf.nn.moments(x(), [0])
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([mean])
    assert average.average(mean).op.name == "moments/Squeeze/ExponentialMovingAverage"
