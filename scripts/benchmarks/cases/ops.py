"""Common operations at sizes that programs use: each forward, and forward together with its gradient.

Inputs are variables, and nothing is fetched but the fact that a result is there: neither feeding nor fetching counts.
The gradient is that of the sum of the results, weighted by fixed random numbers, for every input of real numbers.

The floor of each: every input, and weight of a result, is read once, every result and gradient written once; products
count their arithmetic as well, and with the gradient as much again for each input of real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Counted, Options, Step, Work

_Draw = Callable[[np.random.Generator], Any]
_LARGE: Final = 10_000_000
_ROWS: Final = 8192 * 128
"""Numbers in the rows that are looked up."""
_VIEW: Final = "a view in tfray: forward it copies nothing, which its reader may have to."


@dataclass(frozen=True)
class _Op:
    """One operation and its inputs.

    Attributes:
        build: Makes the result, or a list of results, of the inputs: ``build(tf, *inputs)``.
        inputs: Draw the values of the inputs.
        gradient: Whether it has one.
        depth: Products that are summed for one number of the result, on average, where there are any.
        moved: Numbers that a step reads and writes, where they are not all those of its inputs and results: it changes
            an input in place, or takes some rows of it.
        note: Why it is slower than TensorFlow's by more than the noise, where it is.
    """

    build: Callable[..., Any]
    inputs: Sequence[_Draw] = ()
    gradient: bool = True
    depth: float = 0.0
    moved: int | None = None
    note: str = ""


def _normal(*shape: int) -> _Draw:
    return lambda random: random.standard_normal(shape, np.float32)


def _below(limit: int, *shape: int) -> _Draw:
    return lambda random: random.integers(limit, size=shape, dtype=np.int32)


def _bits(*shape: int) -> _Draw:
    return lambda random: random.random(shape, np.float32) < 0.5


def _distributions(rows: int, columns: int) -> _Draw:
    return lambda random: random.dirichlet(np.ones(columns), rows).astype(np.float32)


def _positive_definite(size: int) -> _Draw:
    def draw(random: np.random.Generator) -> Any:
        x = random.standard_normal((size, size), np.float32)
        return x @ x.T / size + np.eye(size, dtype=np.float32)

    return draw


def _layer_norm(tf: Any, x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = tf.nn.moments(x, [1], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)


def _sparse_matmul(rows: int, columns: int, count: int) -> Callable[..., Any]:
    places = np.sort(np.random.default_rng(0).choice(rows * columns, count, replace=False))
    indices = np.stack([places // columns, places % columns], axis=1)

    def build(tf: Any, values: Any, dense: Any) -> Any:
        return tf.sparse_tensor_dense_matmul(tf.SparseTensor(indices, values, [rows, columns]), dense)

    return build


def _update(optimizer: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda tf, x, d_x: optimizer(tf).apply_gradients([(d_x, x)])


def _convolution(stride: int = 1, padding: str = "SAME") -> Callable[..., Any]:
    return lambda tf, x, filters: tf.nn.conv2d(x, filters, strides=[1, stride, stride, 1], padding=padding)


def _transposed(batch: int, size: int, channels: int) -> Callable[..., Any]:
    shape = [batch, size, size, channels]
    return lambda tf, x, filters: tf.nn.conv2d_transpose(x, filters, shape, [1, 2, 2, 1], "SAME")


_OPS: Final = {
    # Products
    "matmul_1024": _Op(lambda tf, x, y: tf.matmul(x, y), [_normal(1024, 1024)] * 2, depth=1024),
    "matmul_skinny_16x4096x4096": _Op(
        lambda tf, x, y: tf.matmul(x, y), [_normal(16, 4096), _normal(4096, 4096)], depth=4096
    ),
    "matmul_batched_64x128x64": _Op(
        lambda tf, x, y: tf.matmul(x, y, transpose_b=True), [_normal(64, 128, 64), _normal(64, 128, 64)], depth=64
    ),
    "einsum_attention": _Op(
        lambda tf, q, k: tf.einsum("bqhd,bkhd->bhqk", q, k), [_normal(8, 128, 8, 64), _normal(8, 128, 8, 64)], depth=64
    ),
    "sparse_matmul_100k": _Op(
        _sparse_matmul(10_000, 10_000, 100_000), [_normal(100_000), _normal(10_000, 64)], depth=10
    ),
    "cholesky_512": _Op(lambda tf, x: tf.cholesky(x), [_positive_definite(512)], depth=512 / 6),
    # Convolutions
    "conv_3x3_64": _Op(_convolution(), [_normal(8, 56, 56, 64), _normal(3, 3, 64, 64)], depth=9 * 64),
    "conv_3x3_256": _Op(_convolution(), [_normal(16, 14, 14, 256), _normal(3, 3, 256, 256)], depth=9 * 256),
    "conv_5x5_32": _Op(_convolution(), [_normal(128, 14, 14, 32), _normal(5, 5, 32, 64)], depth=25 * 32),
    "conv_1x1_192": _Op(_convolution(), [_normal(16, 28, 28, 192), _normal(1, 1, 192, 64)], depth=192),
    "conv_stem_11x11": _Op(_convolution(4), [_normal(8, 224, 224, 3), _normal(11, 11, 3, 64)], depth=121 * 3),
    "conv_depthwise_3x3": _Op(
        lambda tf, x, filters: tf.nn.depthwise_conv2d(x, filters, [1, 1, 1, 1], "SAME"),
        [_normal(8, 56, 56, 128), _normal(3, 3, 128, 1)],
        depth=9,
    ),
    "conv_transposed_5x5": _Op(
        _transposed(32, 16, 128), [_normal(32, 8, 8, 256), _normal(5, 5, 128, 256)], depth=25 / 4 * 256
    ),
    # Neural networks
    "max_pool_3x3": _Op(
        lambda tf, x: tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), [_normal(8, 112, 112, 64)]
    ),
    "avg_pool_3x3": _Op(
        lambda tf, x: tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), [_normal(8, 112, 112, 64)]
    ),
    "batch_norm": _Op(
        lambda tf, x, scale, offset: tf.nn.fused_batch_norm(x, scale, offset)[0],
        [_normal(16, 56, 56, 64), _normal(64), _normal(64)],
    ),
    "layer_norm": _Op(_layer_norm, [_normal(8192, 512), _normal(512), _normal(512)]),
    "local_response_normalization": _Op(lambda tf, x: tf.nn.lrn(x, 5, 1.0, 1e-4, 0.75), [_normal(8, 56, 56, 64)]),
    "l2_normalize": _Op(lambda tf, x: tf.nn.l2_normalize(x, 1), [_normal(8192, 512)]),
    "bias_add_relu": _Op(lambda tf, x, b: tf.nn.relu(tf.nn.bias_add(x, b)), [_normal(8, 56, 56, 256), _normal(256)]),
    "dropout": _Op(lambda tf, x: tf.nn.dropout(x, keep_prob=0.5), [_normal(1024, 4096)]),
    "softmax_1024x1000": _Op(lambda tf, x: tf.nn.softmax(x), [_normal(1024, 1000)]),
    "cross_entropy_1024x1000": _Op(
        lambda tf, x, labels: tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.stop_gradient(labels), logits=x),
        [_normal(1024, 1000), _distributions(1024, 1000)],
    ),
    "sparse_cross_entropy_32x32000": _Op(
        lambda tf, x, labels: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x),
        [_normal(32, 32000), _below(32000, 32)],
    ),
    "resize_bilinear": _Op(
        lambda tf, x: tf.image.resize_bilinear(x, [128, 128]),
        [_normal(8, 64, 64, 32)],
    ),
    # Elementwise
    "sigmoid_10m": _Op(lambda tf, x: tf.sigmoid(x), [_normal(_LARGE)]),
    "tanh_10m": _Op(lambda tf, x: tf.tanh(x), [_normal(_LARGE)]),
    "exp_10m": _Op(lambda tf, x: tf.exp(x), [_normal(_LARGE)]),
    "chain_10m": _Op(lambda tf, x, a, b: (x * a + b) * tf.sigmoid(x), [_normal(_LARGE), _normal(1), _normal(1)]),
    "add_broadcast": _Op(lambda tf, x, y: x + y, [_normal(8192, 1024), _normal(1024)]),
    "where": _Op(
        lambda tf, c, x, y: tf.where(c, x, y),
        [_bits(2048, 1024), _normal(2048, 1024), _normal(2048, 1024)],
        note="three passes over the bits, as NumPy has no loop that selects without branches.",
    ),
    "cast_10m": _Op(lambda tf, x: tf.cast(x, tf.int32), [_normal(_LARGE)], gradient=False),
    "random_normal_10m": _Op(lambda tf: tf.random_normal([_LARGE]), gradient=False),
    # Reductions
    "sum_axis_0": _Op(lambda tf, x: tf.reduce_sum(x, 0), [_normal(8192, 1024)]),
    "sum_axis_1": _Op(lambda tf, x: tf.reduce_sum(x, 1), [_normal(8192, 1024)]),
    "mean_axis_0": _Op(lambda tf, x: tf.reduce_mean(x, 0), [_normal(8192, 1024)]),
    "mean_axis_1": _Op(lambda tf, x: tf.reduce_mean(x, 1), [_normal(8192, 1024)]),
    "max_axis_0": _Op(lambda tf, x: tf.reduce_max(x, 0), [_normal(8192, 1024)]),
    "max_axis_1": _Op(lambda tf, x: tf.reduce_max(x, 1), [_normal(8192, 1024)]),
    "argmax_axis_0": _Op(lambda tf, x: tf.argmax(x, 0), [_normal(8192, 1024)], gradient=False),
    "argmax_axis_1": _Op(lambda tf, x: tf.argmax(x, 1), [_normal(8192, 1024)], gradient=False),
    "cumsum_axis_1": _Op(lambda tf, x: tf.cumsum(x, 1), [_normal(2048, 1024)]),
    "top_10_of_32000": _Op(lambda tf, x: tf.nn.top_k(x, 10).values, [_normal(64, 32000)]),
    # Moving and picking
    # tfray's transposes are views: what reads them pays. Here an addition does.
    "transpose_add_8192x1024": _Op(lambda tf, x, y: tf.transpose(x) + y, [_normal(8192, 1024), _normal(1024, 8192)]),
    "transpose_add_heads": _Op(
        lambda tf, x, y: tf.transpose(x, [0, 2, 1, 3]) + y, [_normal(32, 128, 8, 64), _normal(32, 8, 128, 64)]
    ),
    "concat_axis_1": _Op(lambda tf, *parts: tf.concat(parts, 1), [_normal(2048, 512)] * 4),
    "split_axis_1": _Op(lambda tf, x: tf.split(x, 4, 1), [_normal(2048, 2048)], note=_VIEW),
    "slice": _Op(lambda tf, x: x[64:1984, 64:1984], [_normal(2048, 2048)], note=_VIEW),
    "pad": _Op(lambda tf, x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), [_normal(16, 56, 56, 64)]),
    "tile": _Op(lambda tf, x: tf.tile(x, [4, 4]), [_normal(512, 512)]),
    "gather_rows": _Op(
        lambda tf, x, ids: tf.gather(x, ids), [_normal(50_000, 128), _below(50_000, 8192)], moved=2 * _ROWS
    ),
    "embedding_lookup_update": _Op(
        lambda tf, x, ids, d_rows: [tf.nn.embedding_lookup(x, ids), tf.scatter_sub(x, ids, d_rows)],
        [_normal(50_000, 128), _below(50_000, 8192), _normal(8192, 128)],
        gradient=False,
        moved=4 * _ROWS,
    ),
    "unsorted_segment_sum": _Op(
        lambda tf, x, ids: tf.unsorted_segment_sum(x, ids, 1000), [_normal(100_000, 64), _below(1000, 100_000)]
    ),
    "one_hot": _Op(lambda tf, ids: tf.one_hot(ids, 1000), [_below(1000, 4096)], gradient=False),
    # Updates
    "gradient_descent_10m": _Op(
        _update(lambda tf: tf.train.GradientDescentOptimizer(1e-3)),
        [_normal(_LARGE)] * 2,
        gradient=False,
        moved=3 * _LARGE,
    ),
    "adam_10m": _Op(
        _update(lambda tf: tf.train.AdamOptimizer()), [_normal(_LARGE)] * 2, gradient=False, moved=7 * _LARGE
    ),
}


def _bytes(tensors: Sequence[Any]) -> int:
    """Bytes of tensors and variables of known shapes."""
    return sum(int(np.prod(x.shape.as_list())) * x.dtype.size for x in tensors)


def _case(op: _Op, *, with_gradient: bool) -> Case:
    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        random = np.random.default_rng(0)
        with tf.Graph().as_default(), tf.Session() as session:
            inputs, assignments = [], []

            def variable(value: Any) -> Any:
                dtype, fed = tf.as_dtype(value.dtype), tf.placeholder(value.dtype, value.shape)
                made = tf.Variable(tf.zeros(value.shape, dtype), trainable=False)
                assignments.append((tf.assign(made, fed).op, {fed: value}))
                return made

            inputs = [variable(draw(random)) for draw in op.inputs]
            built = op.build(tf, *inputs)
            results = built if isinstance(built, list) else [built]
            sources = [x for x in inputs if x.dtype.base_dtype == tf.float32]
            weights, d_sources = [], []
            if with_gradient:
                weights = [variable(random.standard_normal(one.shape.as_list(), np.float32)) for one in results]
                gradients = tf.gradients(results, sources, weights)
                d_sources = [tf.convert_to_tensor(d_x) for d_x in gradients if d_x is not None]
            fetches = [one if isinstance(one, tf.Operation) else one.op for one in results + d_sources]
            session.run(tf.global_variables_initializer())
            for assign, feeds in assignments:
                session.run(assign, feeds)
            moved = _bytes([*inputs, *results]) if op.moved is None else 4 * op.moved
            flops = 2 * op.depth * _bytes(results) / 4 * (1 + len(d_sources)) if op.depth else 0.0
            yield Counted(lambda: session.run(fetches), Work(moved + _bytes([*weights, *d_sources]), flops))

    return Case(opened, note=op.note)


def _cases() -> dict[str, Case]:
    cases = {}
    for name, op in _OPS.items():
        cases[name] = _case(op, with_gradient=False)
        if op.gradient:
            cases[f"{name}_gradient"] = _case(op, with_gradient=True)
    return cases


CASES: Final = _cases()
