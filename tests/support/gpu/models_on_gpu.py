"""Training steps of small models and single operations on the GPU device: their values, and what they cost."""

from __future__ import annotations

import argparse
import contextlib
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tfray as tf
from tests.support.gpu.report import COUNTS, Cost, cause, place, table
from tfray.framework.graph import Graph
from tfray.ops.nn.recurrent_ops import lstm_gates

TOLERANCE, BFLOAT16_TOLERANCE = 1e-4, 1e-2
"""By how much a loss may differ from the CPU's in the first steps of training."""

STEPS = 8
SOFT_PLACEMENT = tf.ConfigProto(allow_soft_placement=True)

# -- models: each takes an optimizer and returns its placeholders, its loss and its training step -----------


def _dense(x, units, name):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [int(x.shape[-1]), units], x.dtype)
        b = tf.get_variable("b", [units], x.dtype, initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b


def _batch(size):
    """Placeholders of features and labels."""
    return tf.placeholder(tf.float32, [size, 64]), tf.placeholder(tf.int32, [size])


def _classifier(x, y, features, optimizer):
    """What a model returns: its placeholders, its loss, its training step."""
    logits = tf.cast(_dense(features, 10, "out"), tf.float32)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return x, y, loss, optimizer.minimize(loss, tf.train.get_or_create_global_step())


def softmax_regression(optimizer):
    x, y = _batch(32)
    return _classifier(x, y, x, optimizer)


def mlp(optimizer):
    x, y = _batch(32)
    h = tf.nn.relu(_dense(tf.nn.relu(_dense(x, 32, "a")), 32, "b"))
    return _classifier(x, y, h, optimizer)


def convnet(optimizer, batch_norm=False, dtype=tf.float32):
    x, y = _batch(8)
    h = tf.cast(tf.reshape(x, [8, 8, 8, 1]), dtype)
    for i, filters in enumerate((8, 16)):
        h = tf.layers.conv2d(
            h, filters, 3, padding="same", name=f"conv{i}", activation=None if batch_norm else tf.nn.relu
        )
        if batch_norm:
            h = tf.nn.relu(tf.layers.batch_normalization(h, training=True, name=f"norm{i}"))
        h = tf.layers.max_pooling2d(h, 2, 2)
    h = tf.nn.relu(_dense(tf.reshape(h, [8, 64]), 32, "hidden"))
    return _classifier(x, y, h, optimizer)


def convnet_bn(optimizer):
    return convnet(optimizer, True)


def convnet_bfloat16(optimizer):
    return convnet(optimizer, dtype=tf.bfloat16)


def lstm(optimizer, static=False, steps=8):
    x, y = _batch(8)
    sequence = tf.reshape(x, [8, steps, 64 // steps])
    cell = tf.nn.rnn_cell.LSTMCell(16)
    if static:
        outputs, _ = tf.nn.static_rnn(cell, tf.unstack(sequence, axis=1), dtype=tf.float32)
        last = outputs[-1]
    else:
        outputs, _ = tf.nn.dynamic_rnn(cell, sequence, dtype=tf.float32)
        last = outputs[:, -1]
    return _classifier(x, y, last, optimizer)


def lstm_static(optimizer):
    return lstm(optimizer, True)


def embedding_bag(optimizer):
    x, y = _batch(8)
    embeddings = tf.get_variable("embeddings", [100, 16])
    ids = tf.cast(tf.abs(x) * 20, tf.int32) % 100
    h = tf.reduce_mean(tf.nn.embedding_lookup(embeddings, ids), axis=1)
    return _classifier(x, y, h, optimizer)


def dropout_mlp(optimizer):
    x, y = _batch(32)
    h = tf.nn.dropout(tf.nn.relu(_dense(x, 32, "a")), keep_prob=0.8, seed=1)
    return _classifier(x, y, h, optimizer)


def language_model(optimizer):
    """One Transformer-like block: batched products, layer normalisation, softmax."""
    x, y = _batch(8)
    h = tf.reshape(x, [8, 4, 16])
    q, k, v = (tf.layers.dense(h, 16, name=n) for n in "qkv")
    h = h + tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 4.0), v)
    mean, variance = tf.nn.moments(h, [-1], keep_dims=True)
    h = (h - mean) * tf.rsqrt(variance + 1e-5)
    h = tf.reduce_mean(h, axis=1)
    return _classifier(x, y, h, optimizer)


MODELS = [softmax_regression, mlp, convnet, convnet_bn, convnet_bfloat16, lstm_static, lstm, embedding_bag, dropout_mlp,
          language_model]  # fmt: skip
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.01),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.01),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.01),
}


def combinations(only: str = "") -> Iterator[tuple[str, Callable, str]]:
    """Models with their optimizers: two each, and all of them for one; names match the pattern."""
    for build in MODELS:
        for optimizer in OPTIMIZERS:
            name = f"{build.__name__}/{optimizer}"
            if (build is mlp or optimizer in ("sgd", "adam")) and re.search(only, name):
                yield name, build, optimizer


def batch(rng: np.random.Generator, x: Any, y: Any) -> dict[Any, np.ndarray]:
    """Features and labels at random, to be fed."""
    features = rng.standard_normal([int(size) for size in x.shape]).astype(np.float32)
    return {x: features, y: rng.integers(0, 10, int(y.shape[0])).astype(np.int32)}


def train(build: Callable, optimizer: str, device: str, recorder: Any = None) -> tuple[list[float], Cost | None]:
    """Losses of some steps, from the same variables whatever the device, and what the last step cost."""
    rng = np.random.default_rng(0)
    with Graph().as_default() as graph, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tf.set_random_seed(3)
        with tf.device(device):
            x, y, loss, update = build(OPTIMIZERS[optimizer]())
        with tf.Session(graph=graph, config=SOFT_PLACEMENT) as session:
            session.run(tf.global_variables_initializer())
            for variable in tf.trainable_variables():
                shape = [int(size) for size in variable.shape]
                value = rng.standard_normal(shape).astype(np.float32) * 0.1
                variable.load(value.astype(variable.dtype.base_dtype.as_numpy_dtype), session)
            losses = []
            for _ in range(STEPS):
                feeds = batch(rng, x, y)
                if recorder is not None:
                    recorder.reset()
                losses.append(float(session.run([loss, tf.train.get_global_step(), update], feeds)[0]))
            cost = Cost.of(recorder) if recorder is not None else None
    return losses, cost


# -- the batteries -------------------------------------------------------------------------------------------


def models(recorder: Any, options: argparse.Namespace) -> tuple[int, int]:
    """Losses of training on the GPU device against the CPU device."""
    rows, failures = [], []
    for name, build, optimizer in combinations(options.only):
        with _failing(name, failures, options.verbose):
            wanted, got = (train(build, optimizer, device)[0] for device in ("/cpu:0", "/gpu:0"))
            worst = float(np.max(np.abs(np.subtract(wanted, got))))
            if not worst <= (BFLOAT16_TOLERANCE if build is convnet_bfloat16 else TOLERANCE):
                raise AssertionError(f"losses differ by {worst:.1e}: {got} on the GPU, {wanted} on the CPU")
            rows.append((name, f"{worst:.1e}", f"{got[0]:.4f} to {got[-1]:.4f}"))
    table(("model", "differs by", "loss"), rows)
    table(("failed", "place", "cause"), failures)
    return len(rows), len(failures)


def launches(recorder: Any, options: argparse.Namespace) -> tuple[int, int]:
    """What a step of each model costs the device, or each operation, forward and backward.

    No count of a model's step may be above that of the committed table, `launches_fake.txt` or `launches_cupy.txt`.
    """
    costs: list[tuple[str, Cost]] = []
    failures: list[tuple[str, str, str]] = []
    measured = 0
    for name, measure in (_operations if options.operations else _steps)(recorder):
        if re.search(options.only, name):
            with _failing(name, failures, options.verbose):
                costs += measure()
                measured += 1
    table(("a step of", *COUNTS), [(name, *(cost.counts[key] for key in COUNTS)) for name, cost in costs])
    if options.verbose:
        table(("a step of", "what", "times", "which"), [(name, *row) for name, cost in costs for row in cost.details()])
    if not options.operations:
        failures += _compare(costs, options)
    table(("failed", "place", "cause"), failures)
    return measured, len(failures)


def _compare(costs: list[tuple[str, Cost]], options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """What costs more than the committed table says, and what is not in it. With `--update` the table is written anew.

    Counts may fall: the table is then to be written anew, so that they stay there.
    """
    path = Path(__file__).with_name(f"launches_{options.xp}.txt")
    known = dict(line.split(maxsplit=1) for line in path.read_text().splitlines()[1:]) if path.exists() else {}
    counted = {name: [cost.counts[key] for key in COUNTS] for name, cost in costs}
    if options.update:
        known |= {name: " ".join(map(str, counts)) for name, counts in counted.items()}
        rows = [f"{name:24}" + "".join(f"{count:>9}" for count in text.split()) for name, text in known.items()]
        path.write_text("\n".join([f"{'a step of':24}" + "".join(f"{key:>9}" for key in COUNTS), *rows]) + "\n")
        return []
    found = []
    for name, counts in counted.items():
        limits = [int(limit) for limit in known[name].split()] if name in known else [-1] * len(COUNTS)
        for key, count, limit in zip(COUNTS, counts, limits, strict=True):
            if count > limit:
                found.append((name, path.name, f"{count} {key}, and the table has {max(limit, 0)}"))
            elif count < limit:
                print(f"{name}: {key} fell from {limit} to {count}; write the table anew by `launches --update`")
    return found


@contextlib.contextmanager
def _failing(name: str, failures: list, verbose: bool) -> Iterator[None]:
    """A failure within is noted, and shown in full if asked for."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        failures.append((name, place(error), cause(error)))
        if verbose:
            traceback.print_exc()


def _steps(recorder: Any) -> Iterator[tuple[str, Callable[[], list[tuple[str, Cost]]]]]:
    for name, build, optimizer in combinations():
        yield (
            name,
            lambda name=name, build=build, optimizer=optimizer: [
                (name, train(build, optimizer, "/gpu:0", recorder)[1])
            ],
        )


def _operations(recorder: Any) -> Iterator[tuple[str, Callable[[], list[tuple[str, Cost]]]]]:
    for name, build, *arrays in operations():
        yield (
            name,
            lambda name=name, build=build, arrays=arrays: [
                (f"{name}, {which}", cost) for which, cost in run_operation(build, arrays, recorder)
            ],
        )


# -- single operations ---------------------------------------------------------------------------------------


def operations() -> Iterator[tuple]:
    """Name, function and arguments of operations whose cost is of interest."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    def layer_norm(x):
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        return (x - mean) * tf.rsqrt(variance + 1e-5)

    def sparse_xent(x, y):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)

    image = normal(4, 8, 8, 16)
    row_of_each = np.repeat(np.arange(8, dtype=np.int32), 4)
    yield "conv2d 3x3 same", lambda x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), image, normal(3, 3, 16, 16)
    yield "conv2d 3x3 stride 2", lambda x, w: tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME"), image, normal(3, 3, 16, 16)
    yield (
        "conv2d 7x7 stride 2",
        lambda x, w: tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME"),
        normal(2, 16, 16, 3),
        normal(7, 7, 3, 16),
    )
    yield "conv2d 1x1", lambda x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), image, normal(1, 1, 16, 16)
    yield "depthwise 3x3", lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), image, normal(3, 3, 16, 1)
    yield "max_pool 3x3 s2", lambda x: tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), image
    yield "avg_pool 2x2 s2", lambda x: tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), image
    yield "batch norm (fused)", lambda x, s, o: tf.nn.fused_batch_norm(x, s, o)[0], image, normal(16), normal(16)
    yield "lrn", tf.nn.lrn, image
    yield "softmax", tf.nn.softmax, normal(32, 100)
    yield "log_softmax", tf.nn.log_softmax, normal(32, 100)
    yield "sparse xent", sparse_xent, normal(32, 10), np.arange(32, dtype=np.int32) % 10
    yield "dense+relu", lambda x, w, b: tf.nn.relu(tf.matmul(x, w) + b), normal(32, 64), normal(64, 32), normal(32)
    yield "gelu by hand", lambda x: 0.5 * x * (1 + tf.tanh(0.79788456 * (x + 0.044715 * x * x * x))), normal(32, 64)
    yield "layer norm by hand", layer_norm, normal(32, 64)
    yield "top_k", lambda x: tf.nn.top_k(x, 5)[0], normal(32, 100)
    yield "gather", tf.gather, normal(100, 16), np.arange(32, dtype=np.int32)
    yield "segment_sum", tf.segment_sum, normal(32, 16), row_of_each
    yield "unsorted_segment_max", lambda x, i: tf.unsorted_segment_max(x, i, 8), normal(32, 16), row_of_each
    yield "resize_bilinear", lambda x: tf.image.resize_bilinear(x, [12, 12]), normal(2, 8, 8, 3)
    yield "random_normal", lambda x: x + tf.random_normal([32, 64], seed=1), normal(32, 64)
    yield "dropout", lambda x: tf.nn.dropout(x, 0.5, seed=1), normal(32, 64)
    yield "reduce_sum axis 0", lambda x: tf.reduce_sum(x, 0), normal(32, 64)
    yield "transpose", lambda x: tf.transpose(x, [1, 0]), normal(32, 64)
    yield "concat", lambda x, y: tf.concat([x, y], 1), normal(32, 64), normal(32, 64)
    yield "strided slice", lambda x: x[1:, ::2], normal(32, 64)
    yield "einsum", lambda x, y: tf.einsum("bij,bjk->bik", x, y), normal(4, 8, 8), normal(4, 8, 8)
    yield "unique", lambda i: tf.unique(i)[0], np.arange(32, dtype=np.int32) % 7
    yield "lstm gates", lambda x, s, c: lstm_gates(x, s, c)[1], normal(8, 64), normal(64), normal(8, 16)


def run_operation(build: Callable, arrays: list, recorder: Any) -> list[tuple[str, Cost]]:
    """The cost of an operation and of its gradients, through compiled sessions, without what fetching costs."""
    rng = np.random.default_rng(0)
    costs = []
    with Graph().as_default() as graph, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tf.device("/gpu:0"):
            xs = [tf.placeholder(tf.as_dtype(array.dtype), array.shape) for array in arrays]
            y = build(*xs)
            d_y = tf.placeholder(y.dtype, y.shape)
            targets = [x for x in xs if x.dtype.is_floating] if y.dtype.is_floating else []
            d_xs = tf.gradients([y], targets, grad_ys=[d_y]) if targets else []
        feeds = dict(zip(xs, arrays, strict=True))
        with tf.Session(graph=graph, config=SOFT_PLACEMENT) as session:
            runs = {"forward": ([y.op], feeds)}
            if d_xs:
                shape = session.run(y, feeds).shape
                d_feeds = {d_y: rng.standard_normal(shape).astype(np.float32)}
                runs["backward"] = [d_x.op for d_x in d_xs if d_x is not None], {**feeds, **d_feeds}
            for which, (fetches, fed) in runs.items():
                for _ in range(4):
                    recorder.reset()
                    session.run(fetches, fed)
                costs.append((which, Cost.of(recorder)))
    return costs
