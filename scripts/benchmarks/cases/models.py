"""Training steps of models of sequences and of a large table: what networks of images do not show.

All inputs are fed, or are in the graph where the step is that of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Counted, Options, Step, Work
from benchmarks.cases.layers import LSTMCell, clipped

_Built = tuple[Any, Mapping[Any, Any], Work | None]
"""The operation of a training step, what is fed to it, and what it cannot do without, where that is known."""

_TOKENS: Final = 1000
"""Of the transformer's vocabulary."""
_LAYERS: Final = 12
_SAMPLED: Final = 512
_PASSES: Final = 3
"""Products of a training step for one of the forward pass: itself, and the gradients of its two sides."""

_ROWS: Final = 1_000_000
_COLUMNS: Final = 64
_LOOKUPS: Final = 4096


def _weights(tf: Any, name: str, *shape: int) -> Any:
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(stddev=shape[0] ** -0.5))


def _layer_norm(tf: Any, name: str, x: Any) -> Any:
    scale = tf.get_variable(f"{name}_scale", [int(x.shape[-1])], initializer=tf.ones_initializer())
    offset = tf.get_variable(f"{name}_offset", [int(x.shape[-1])], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)


def _attention(tf: Any, x: Any, batch: int, length: int, heads: int) -> Any:
    """Of every token to those before it; `x` has a row for each token."""
    width = int(x.shape[-1])
    size = width // heads
    joint = tf.reshape(tf.matmul(x, _weights(tf, "qkv", width, 3 * width)), [batch, length, 3, heads, size])
    q, k, v = tf.unstack(tf.transpose(joint, [2, 0, 3, 1, 4]))
    later = tf.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))
    shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * size**-0.5 + later)
    found = tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3])
    return tf.matmul(tf.reshape(found, [-1, width]), _weights(tf, "heads", width, width))


def _transformer(tf: Any, options: Options) -> _Built:
    """Options, unless the usual small ones are wanted: batch, length, width and heads."""
    batch, length = options.get("batch", 4), options.get("length", 64)
    width, heads = options.get("width", 128), options.get("heads", 4)
    random = np.random.default_rng(0)
    tokens = tf.placeholder(tf.int32, [batch, length + 1])
    table = _weights(tf, "table", _TOKENS, width)
    places = _weights(tf, "places", length, width)
    x = tf.reshape(tf.nn.embedding_lookup(table, tokens[:, :-1]) + places, [-1, width])
    for layer in range(_LAYERS):
        with tf.variable_scope(f"layer_{layer}"):
            x = x + _attention(tf, _layer_norm(tf, "attention", x), batch, length, heads)
            inner = tf.matmul(_layer_norm(tf, "inner", x), _weights(tf, "wider", width, 4 * width))
            x = x + tf.matmul(tf.nn.relu(inner), _weights(tf, "narrower", 4 * width, width))
    logits = tf.matmul(_layer_norm(tf, "last", x), table, transpose_b=True)
    wanted = tf.reshape(tokens[:, 1:], [-1])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits))
    feeds = {tokens: random.integers(_TOKENS, size=(batch, length + 1), dtype=np.int32)}
    of_a_token = _LAYERS * (12 * width**2 + 2 * length * width) + width * _TOKENS
    work = Work(flops=2.0 * _PASSES * batch * length * of_a_token)
    return tf.train.AdamOptimizer(1e-3).minimize(loss), feeds, work


def _lstm(tf: Any, options: Options) -> _Built:
    """Sequences of 60 steps, told apart by the last state."""
    batch, length, inputs, units, classes = 32, 60, 64, 256, 10
    random = np.random.default_rng(0)
    x = tf.placeholder(tf.float32, [batch, length, inputs])
    labels = tf.placeholder(tf.int32, [batch])
    outputs, _ = tf.nn.dynamic_rnn(LSTMCell(tf, inputs, units), x, dtype=tf.float32)
    logits = tf.matmul(outputs[:, -1], _weights(tf, "out", units, classes))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    feeds = {
        x: random.standard_normal(x.shape.as_list(), np.float32),
        labels: random.integers(classes, size=batch, dtype=np.int32),
    }
    return clipped(tf, tf.train.AdamOptimizer(1e-3), loss, 5.0), feeds, None


def _language_model(sampled: bool) -> Callable[[Any, Options], _Built]:
    """An LSTM that foretells the next word, by a softmax over all words or over some that are drawn."""

    def build(tf: Any, options: Options) -> _Built:
        """Options, unless the usual small ones are wanted: batch, units and words."""
        batch, length = options.get("batch", 20), 20
        units, words_known = options.get("units", 200), options.get("words", 10_000)
        random = np.random.default_rng(0)
        words = tf.placeholder(tf.int32, [batch, length + 1])
        x = tf.nn.embedding_lookup(_weights(tf, "table", words_known, units), words[:, :-1])
        outputs, _ = tf.nn.dynamic_rnn(LSTMCell(tf, units, units), x, dtype=tf.float32)
        rows = tf.reshape(outputs, [-1, units])
        weights = _weights(tf, "out", words_known, units)
        biases = tf.get_variable("biases", [words_known], initializer=tf.zeros_initializer())
        if sampled:
            wanted = tf.cast(tf.reshape(words[:, 1:], [-1, 1]), tf.int64)
            losses = tf.nn.sampled_softmax_loss(weights, biases, wanted, rows, _SAMPLED, words_known)
        else:
            logits = tf.nn.bias_add(tf.matmul(rows, weights, transpose_b=True), biases)
            wanted = tf.reshape(words[:, 1:], [-1])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits)
        feeds = {words: random.integers(words_known, size=(batch, length + 1), dtype=np.int32)}
        of_a_token = 8 * units**2 + units * (_SAMPLED if sampled else words_known)
        work = Work(flops=2.0 * _PASSES * batch * length * of_a_token)
        return clipped(tf, tf.train.AdagradOptimizer(0.2), tf.reduce_mean(losses), 5.0), feeds, work

    return build


def _table(tf: Any, options: Options) -> _Built:
    """Rows of a large table, looked up and trained by Adagrad, which keeps a number for each of the table's."""
    table = tf.get_variable("table", [_ROWS, _COLUMNS], initializer=tf.random_normal_initializer())
    ids = tf.placeholder(tf.int32, [_LOOKUPS])
    loss = tf.reduce_mean(tf.square(tf.gather(table, ids)))
    drawn = np.random.default_rng(0).integers(_ROWS, size=_LOOKUPS, dtype=np.int32)
    # Rows of the table and of Adagrad's sums, both read and written.
    return tf.train.AdagradOptimizer(0.1).minimize(loss), {ids: drawn}, Work(4 * 4.0 * _LOOKUPS * _COLUMNS)


def _case(build: Callable[[Any, Options], _Built]) -> Case:
    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        with tf.Graph().as_default():
            train_op, feeds, work = build(tf, options)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())

                def step() -> None:
                    session.run(train_op, feeds)

                yield Counted(step, work) if work else step

    return Case(opened)


CASES: Final = {
    "transformer": _case(_transformer),
    "lstm": _case(_lstm),
    "language_model_full": _case(_language_model(sampled=False)),
    "language_model_sampled": _case(_language_model(sampled=True)),
    "table_adagrad": _case(_table),
}
