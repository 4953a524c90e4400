#!/usr/bin/env python
"""Write ``tests/golden/graphs/``: graphs that TensorFlow has made, and what it computes with them.

Run it with an interpreter that has TensorFlow 2.21; tfray itself is not needed:

    /path/to/python scripts/golden_graphs.py [NAME ...]

Each case has its graph in ``NAME.pb``. ``cases.json`` says what is fed and fetched, and which operation initialises and
trains; ``values.npz`` holds the fed arrays as ``NAME/feed/TENSOR``, and the results as ``NAME/fetch/INDEX``, those of
training as ``NAME/losses``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "graphs"
STEPS = 20
CASES: dict[str, Callable[[], list[Any]]] = {}
FROZEN: set[str] = set()
RESOURCE: set[str] = set()
LOW_LEVEL: set[str] = set()


def case(frozen: bool = False, resource: bool = False, low_level: bool = False) -> Any:
    """Decorator: a function that builds a graph and returns what is to be fetched."""

    def declare(function: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
        name = function.__name__.strip("_")
        CASES[name] = function
        for flag, names in ((frozen, FROZEN), (resource, RESOURCE), (low_level, LOW_LEVEL)):
            if flag:
                names.add(name)
        return function

    return declare


def given(*shape: int, dtype: Any = np.float32, name: str = "x", low: float = -1, high: float = 1) -> Any:
    """A placeholder whose first dimension is open; its value is remembered."""
    generator = np.random.default_rng(len(FED) + 7)
    values = generator.uniform(low, high, shape)
    FED[f"{name}:0"] = np.asarray(values, dtype) if np.issubdtype(dtype, np.floating) else values.astype(dtype)
    return tf.placeholder(dtype, [None, *shape[1:]], name=name)


FED: dict[str, Any] = {}


def weights(*shape: int, name: str = "w") -> Any:
    """A variable with values that are the same each time."""
    values = np.random.default_rng(sum(shape)).normal(0, 0.3, shape).astype(np.float32)
    return tf.get_variable(name, initializer=values)


# -- families of operations ----------------------------------------------------------------------------


@case()
def arithmetic() -> list[Any]:
    x, y = given(3, 4), given(3, 4, name="y", low=0.5, high=2)
    found = [x + y, x - y, x * y, x / y, x // y, x % y, tf.pow(y, x), tf.maximum(x, y), tf.minimum(x, y), -x]
    found += [tf.squared_difference(x, y), tf.truncatediv(tf.cast(y * 9, tf.int32), 2), tf.add_n([x, y, x])]
    return [*found, tf.div_no_nan(x, y), tf.math.xlogy(y, y), tf.div(x, y), tf.atan2(x, y)]


@case()
def elementwise() -> list[Any]:
    x = given(3, 4, low=0.1, high=0.9)
    names = "abs exp log log1p expm1 sqrt rsqrt square sin cos tan asin acos atan sinh cosh tanh sigmoid sign floor"
    names += " ceil rint round reciprocal lgamma digamma erf erfc asinh atanh is_finite is_nan"
    return [getattr(tf, name)(x) for name in names.split()] + [tf.nn.softplus(x), tf.nn.softsign(x)]


@case()
def comparisons() -> list[Any]:
    x, y = given(3, 4), given(3, 4, name="y")
    both = tf.logical_and(x > 0, y > 0)
    found = [x > y, x < y, x >= y, x <= y, tf.equal(x, x), tf.not_equal(x, y), both, tf.logical_not(both)]
    return [
        *found,
        tf.logical_or(x > 0, y > 0),
        tf.where(x > y, x, y),
        tf.where_v2(x[:, :1] > 0, x, y),
        tf.where(x > 0),
    ]


@case()
def reductions() -> list[Any]:
    x = given(3, 4, 5)
    kinds = (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod)
    found = [kind(x, axis, keepdims=keep) for kind in kinds for axis, keep in ((None, False), ([1], True), (-1, False))]
    found += [
        tf.reduce_all(x > 0, 1),
        tf.reduce_any(x > 0),
        tf.reduce_logsumexp(x, 2),
        tf.argmax(x, 1),
        tf.argmin(x, 2),
    ]
    return [*found, tf.cumsum(x, 1), tf.cumprod(x, 2, exclusive=True, reverse=True)]


@case()
def shapes() -> list[Any]:
    x = given(4, 6)
    found = [tf.shape(x), tf.size(x), tf.rank(x), tf.reshape(x, [-1, 3]), tf.transpose(x), tf.expand_dims(x, 1)]
    found += [tf.squeeze(x[:, None, :]), tf.squeeze(x[:, None], [1]), tf.tile(x, [2, 1]), tf.pad(x, [[1, 0], [0, 2]])]
    found += [tf.pad(x, [[1, 1], [1, 1]], "REFLECT"), tf.pad(x, [[1, 0], [0, 1]], constant_values=3.0)]
    found += [tf.stack([x, x], 1), tf.unstack(x, 6, 1)[2], tf.fill([2, 3], 7.0), tf.zeros_like(x), tf.ones_like(x)]
    found += [tf.range(2, 9, 3), tf.linspace(0.0, 1.0, 5), tf.one_hot([1, 3], 4), tf.broadcast_to(x[:1], [3, 6])]
    return [*found, tf.reverse(x, [1]), tf.roll(x, [1, -2], [0, 1]), tf.space_to_depth(tf.reshape(x, [1, 4, 6, 1]), 2)]


@case()
def slices() -> list[Any]:
    x, n = given(5, 6, 3), tf.placeholder_with_default(2, [], name="n")
    found = [x[1], x[:, 2:5], x[..., -1], x[::-1], x[1:4:2, ::2], x[:, None, 1], x[n], x[:n], x[1:n, n:, 0]]
    found += [tf.slice(x, [0, 1, 0], [-1, 2, 3]), tf.strided_slice(x, [0, 1], [5, -1], [2, 2]), tf.shape(x)[0]]
    found += [tf.gather(x, [0, 2]), tf.gather(x, [[1], [0]], axis=1), tf.gather_nd(x, [[0, 1], [2, 3]])]
    return [*found, tf.gather(x, n, axis=n), tf.batch_gather(x[:, :, 0], tf.zeros([5, 2], tf.int32))]


@case()
def joins() -> list[Any]:
    x, n = given(4, 6), tf.placeholder_with_default(1, [], name="n")
    found = [tf.concat([x, x * 2], 0), tf.concat([x, x], -1), tf.concat([x, x], n), *tf.split(x, 3, 1)]
    found += [*tf.split(x, [1, 3, 2], 1), tf.dynamic_stitch([[0, 2], [1]], [x[:2], x[2:3]])]
    return [
        *found,
        *tf.dynamic_partition(x, [0, 1, 0, 1], 2),
        tf.matrix_band_part(x, 1, 0),
        *tf.meshgrid([1, 2], [3, 4, 5]),
    ]


@case()
def scatters() -> list[Any]:
    x = given(4, 3)
    found = [tf.scatter_nd([[1], [3]], x[:2], [5, 3]), tf.tensor_scatter_update(x, [[0], [2]], x[2:])]
    found += [tf.tensor_scatter_add(x, [[0], [2]], x[2:]), tf.unsorted_segment_sum(x, [1, 0, 1, 2], 3)]
    found += [tf.segment_sum(x, [0, 0, 1, 1]), tf.segment_mean(x, [0, 0, 1, 1]), tf.segment_max(x, [0, 1, 1, 2])]
    found += [
        *tf.unique([3, 1, 3, 2]),
        tf.invert_permutation([2, 0, 1]),
        tf.sparse_segment_sum(x, [0, 2, 3], [0, 0, 1]),
    ]
    return [*found, tf.unsorted_segment_max(x, [1, 0, 1, 2], 3), tf.histogram_fixed_width(x, [-1.0, 1.0], 4)]


@case()
def matrices() -> list[Any]:
    x = given(3, 4, 4)
    square = tf.matmul(x, x, transpose_b=True) + tf.eye(4)
    found = [square, tf.matmul(x[0], x[1], transpose_a=True), tf.matrix_inverse(square), tf.cholesky(square)]
    found += [tf.matrix_determinant(square), tf.matrix_solve(square, x), tf.trace(x), tf.matrix_transpose(x)]
    found += [
        tf.tensordot(x, x, [[1], [2]]),
        tf.einsum("bij,bkj->bik", x, x),
        tf.matrix_diag(x[0]),
        tf.matrix_diag_part(x),
    ]
    return [*found, tf.norm(x), tf.matrix_triangular_solve(tf.cholesky(square), x), tf.matrix_set_diag(x, x[:, 0])]


@case()
def casts() -> list[Any]:
    x = given(3, 4, low=0, high=9)
    kinds = (tf.int32, tf.int64, tf.float64, tf.float16, tf.bool, tf.uint8, tf.complex64)
    found = [tf.cast(x, kind) for kind in kinds] + [tf.bitcast(x, tf.int32), tf.saturate_cast(x * 100, tf.uint8)]
    z = tf.complex(x, x)
    return [*found, tf.real(z), tf.imag(z), tf.conj(z), tf.abs(z), tf.angle(z), tf.fft(z), tf.spectral.rfft(x)]


@case()
def activations() -> list[Any]:
    x = given(3, 5)
    found = [tf.nn.relu(x), tf.nn.relu6(x * 9), tf.nn.elu(x), tf.nn.selu(x), tf.nn.leaky_relu(x), tf.nn.crelu(x)]
    found += [tf.nn.softmax(x), tf.nn.log_softmax(x), tf.nn.l2_normalize(x, 1), tf.nn.l2_loss(x), tf.nn.swish(x)]
    return [*found, *tf.nn.top_k(x, 2), tf.nn.in_top_k(x, [0, 1, 2], 2), tf.nn.bias_add(x, tf.range(5.0))]


@case()
def losses() -> list[Any]:
    x, labels = given(4, 5), tf.constant([0, 2, 1, 4])
    dense = tf.one_hot(labels, 5)
    found = [tf.nn.softmax_cross_entropy_with_logits_v2(labels=dense, logits=x)]
    found += [tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)]
    found += [tf.nn.sigmoid_cross_entropy_with_logits(labels=dense, logits=x), tf.losses.huber_loss(dense, x)]
    return [*found, tf.losses.mean_squared_error(dense, x), tf.nn.weighted_cross_entropy_with_logits(dense, x, 2.0)]


@case()
def convolutions() -> list[Any]:
    x, kernel = given(2, 9, 8, 3), weights(3, 3, 3, 4)
    found = [tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"), tf.nn.conv2d(x, kernel, [1, 2, 2, 1], "VALID")]
    found += [tf.nn.depthwise_conv2d(x, weights(3, 3, 3, 2, name="d"), [1, 1, 1, 1], "SAME")]
    found += [tf.nn.conv2d_transpose(x, weights(3, 3, 5, 3, name="t"), [2, 18, 16, 5], [1, 2, 2, 1], "SAME")]
    found += [tf.nn.conv1d(x[:, 0], weights(3, 3, 4, name="o"), 1, "SAME"), tf.nn.atrous_conv2d(x, kernel, 2, "SAME")]
    return [*found, tf.nn.conv3d(x[:, None], weights(1, 3, 3, 3, 2, name="c"), [1] * 5, "SAME")]


@case()
def pooling() -> list[Any]:
    x = given(2, 8, 8, 3)
    window, strides = [1, 2, 3, 1], [1, 2, 2, 1]
    found = [pool(x, window, strides, kind) for pool in (tf.nn.max_pool, tf.nn.avg_pool) for kind in ("SAME", "VALID")]
    return [*found, tf.nn.lrn(x), tf.nn.max_pool3d(x[:, None], [1, 1, 2, 2, 1], [1, 1, 2, 2, 1], "SAME")]


@case()
def images() -> list[Any]:
    x = given(2, 6, 8, 3, low=0, high=1)
    found = [tf.image.resize_bilinear(x, [4, 5]), tf.image.resize_nearest_neighbor(x, [9, 9])]
    found += [tf.image.resize_bilinear(x, [4, 5], align_corners=True), tf.image.resize_bicubic(x, [7, 7])]
    found += [
        tf.image.adjust_contrast(x, 1.5),
        tf.image.rgb_to_hsv(x),
        tf.image.hsv_to_rgb(x),
        tf.image.resize_area(x, [3, 4]),
    ]
    found += [tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.9]], [1], [3, 3]), tf.image.adjust_hue(x, 0.1)]
    return [
        *found,
        tf.image.flip_left_right(x),
        tf.image.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1] * 4, "VALID"),
    ]


@case()
def strings() -> list[Any]:
    text = tf.constant(["a b", "cde", "12"])
    found = [tf.string_join([text, text], "-"), tf.strings.length(text), tf.string_to_number(text[2])]
    found += [tf.string_to_hash_bucket_fast(text, 10), tf.strings.substr(text, 0, 2), tf.as_string(tf.constant([1, 2]))]
    found += [
        tf.regex_replace(text, "[a-c]", "z"),
        tf.decode_raw(tf.constant(["abcd"]), tf.uint8),
        tf.strings.upper(text),
    ]
    return [*found, tf.string_split(text).values, tf.strings.strip(text), tf.reduce_join(text, 0)]


@case()
def sparse() -> list[Any]:
    x = given(3, 4)
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([0, 2, 1], tf.int64), [2, 2])
    matrix = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 3])
    found = [
        tf.sparse_tensor_dense_matmul(matrix, x),
        tf.sparse_tensor_to_dense(matrix),
        tf.sparse_reorder(matrix).values,
    ]
    return [*found, tf.sparse_to_dense([1, 3], [5], [7.0, 8.0]), tf.nn.embedding_lookup_sparse(x, ids, None)]


@case()
def normalisation() -> list[Any]:
    x = given(4, 5, 5, 3)
    fused = tf.nn.fused_batch_norm(x, [1.0, 2, 3], [0.0, 1, 2])[0]
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    still = tf.nn.fused_batch_norm(x, [1.0, 2, 3], [0.0, 1, 2], [0.1] * 3, [1.1] * 3, is_training=False)[0]
    return [fused, still, mean, variance, tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)]


@case()
def quantised() -> list[Any]:
    x = given(3, 4)
    return [tf.fake_quant_with_min_max_args(x, -1, 1), tf.quantization.quantize_and_dequantize(x, -1.0, 1.0)]


# -- gradients as operations ---------------------------------------------------------------------------


@case()
def gradients_of_arithmetic() -> list[Any]:
    x, y = given(3, 4, low=0.2, high=0.9), given(3, 1, name="y", low=0.5, high=1)
    total = tf.sqrt(x) * y + tf.rsqrt(x + 1) / y - tf.tanh(x) ** 2 + tf.sigmoid(x) + tf.log(x) + tf.exp(y) + tf.sin(x)
    total += tf.nn.softplus(x) + tf.reciprocal(x + 2) + tf.maximum(x, y) + tf.abs(x - y) + tf.nn.elu(x) + tf.erf(x)
    return [*tf.gradients(total, [x, y]), *tf.hessians(tf.reduce_sum(x[0] ** 3), [x])]


@case()
def gradients_of_arrays() -> list[Any]:
    x = given(4, 6)
    parts = tf.split(x, 2, 1)
    total = tf.reduce_sum(tf.concat([parts[0], parts[1] ** 2], 0)) + tf.reduce_sum(x[1:3, ::2] ** 2)
    total += tf.reduce_sum(tf.gather(x, [0, 2, 2]) ** 2) + tf.reduce_max(tf.pad(x, [[1, 1], [0, 0]]) * 3)
    total += tf.reduce_sum(tf.transpose(tf.tile(x, [2, 1])) ** 3) + tf.reduce_mean(tf.stack(tf.unstack(x, 6, 1)) ** 2)
    return tf.gradients(total + tf.reduce_prod(tf.expand_dims(x[0], 0)) + tf.reduce_sum(tf.cumsum(x) ** 2), [x])


@case()
def gradients_of_layers() -> list[Any]:
    x, kernel = given(2, 8, 8, 3), weights(3, 3, 3, 4)
    y = tf.nn.relu(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"))
    y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    y = tf.nn.fused_batch_norm(y, [1.0] * 4, [0.0] * 4)[0]
    y = tf.nn.avg_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    y = tf.nn.depthwise_conv2d(y, weights(2, 2, 4, 1, name="d"), [1, 1, 1, 1], "SAME")
    return tf.gradients(tf.nn.l2_loss(tf.nn.bias_add(y, tf.ones([4]))), [x, kernel])


# -- models --------------------------------------------------------------------------------------------


def perceptron() -> tuple[Any, Any]:
    x, wanted = given(8, 5), given(8, 2, name="wanted")
    hidden = tf.nn.tanh(tf.nn.xw_plus_b(x, weights(5, 6), weights(6, name="b")))
    found = tf.nn.xw_plus_b(hidden, weights(6, 2, name="w2"), weights(2, name="b2"))
    return found, tf.reduce_mean(tf.square(found - wanted), name="loss")


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


# -- writing -------------------------------------------------------------------------------------------


def write(name: str, cases: dict[str, Any], values: dict[str, Any]) -> None:
    """Build, run and write one case."""
    FED.clear()
    (tf.disable_resource_variables, tf.enable_resource_variables)[name in RESOURCE]()
    (tf.enable_control_flow_v2, tf.disable_control_flow_v2)[name in LOW_LEVEL]()
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        fetched = [tf.identity(tensor, name=f"result_{i}") for i, tensor in enumerate(CASES[name]())]
        fetches = [tensor.name for tensor in fetched]
        init = tf.global_variables_initializer() if tf.global_variables() else None
        if tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS):
            init = tf.tables_initializer()
        if init is not None:
            session.run(init)
        results = session.run(fetches, FED)
        described: dict[str, Any] = {"fetches": fetches}
        definition = graph.as_graph_def()
        if name in FROZEN:
            outputs = [tensor.op.name for tensor in fetched]
            definition = tf.graph_util.convert_variables_to_constants(session, definition, outputs)
        elif init is not None:
            described["init"] = init.name
        if name.startswith("trained"):
            session.run(init)
            losses = [session.run(["loss:0", "train"], FED)[0] for _ in range(STEPS)]
            values[f"{name}/losses"] = np.array(losses)
    held = {node.name for node in definition.node}
    fed = {key: value for key, value in FED.items() if key.partition(":")[0] in held}
    described["feeds"] = sorted(fed)
    (FOLDER / f"{name}.pb").write_bytes(definition.SerializeToString(deterministic=True))
    cases[name] = described
    values.update({f"{name}/feed/{key}": value for key, value in fed.items()})
    for index, result in enumerate(results):
        array = np.asarray(result)
        values[f"{name}/fetch/{index}"] = array.astype(bytes) if array.dtype == object else array


def main(names: list[str]) -> None:
    """Write the cases of these names, or all."""
    tf.disable_v2_behavior()
    FOLDER.mkdir(exist_ok=True)
    described, stored = FOLDER / "cases.json", FOLDER / "values.npz"
    cases = json.loads(described.read_text()) if described.exists() else {}
    values = dict(np.load(stored)) if stored.exists() else {}
    for name in names or CASES:
        values = {key: value for key, value in values.items() if key.partition("/")[0] != name}
        write(name, cases, values)
    described.write_text(json.dumps(cases, indent=0, sort_keys=True) + "\n")
    np.savez_compressed(stored, **values)
    print(f"{len(cases)} graphs, {sum(path.stat().st_size for path in FOLDER.iterdir())} bytes in {FOLDER}")


if __name__ == "__main__":
    main(sys.argv[1:])
