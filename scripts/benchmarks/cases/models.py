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

_Feeds = Mapping[Any, Any]
_TOKENS: Final = 1000
"""Of the transformer's vocabulary."""
_LAYERS: Final = 12
_WIDTH: Final = 128
_HEADS: Final = 4

_UNITS: Final = 200
_WORDS: Final = 10_000
"""Of the language models' vocabulary."""
_SAMPLED: Final = 512

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


def _attention(tf: Any, x: Any, batch: int, length: int) -> Any:
    """Of every token to those before it; `x` has a row for each token."""
    size = _WIDTH // _HEADS
    joint = tf.reshape(tf.matmul(x, _weights(tf, "qkv", _WIDTH, 3 * _WIDTH)), [batch, length, 3, _HEADS, size])
    q, k, v = tf.unstack(tf.transpose(joint, [2, 0, 3, 1, 4]))
    later = tf.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))
    shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * size**-0.5 + later)
    heads = tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3])
    return tf.matmul(tf.reshape(heads, [-1, _WIDTH]), _weights(tf, "heads", _WIDTH, _WIDTH))


def _transformer(tf: Any) -> tuple[Any, _Feeds]:
    batch, length = 4, 64
    random = np.random.default_rng(0)
    tokens = tf.placeholder(tf.int32, [batch, length + 1])
    table = _weights(tf, "table", _TOKENS, _WIDTH)
    places = _weights(tf, "places", length, _WIDTH)
    x = tf.reshape(tf.nn.embedding_lookup(table, tokens[:, :-1]) + places, [-1, _WIDTH])
    for layer in range(_LAYERS):
        with tf.variable_scope(f"layer_{layer}"):
            x = x + _attention(tf, _layer_norm(tf, "attention", x), batch, length)
            inner = tf.matmul(_layer_norm(tf, "inner", x), _weights(tf, "wider", _WIDTH, 4 * _WIDTH))
            x = x + tf.matmul(tf.nn.relu(inner), _weights(tf, "narrower", 4 * _WIDTH, _WIDTH))
    logits = tf.matmul(_layer_norm(tf, "last", x), table, transpose_b=True)
    wanted = tf.reshape(tokens[:, 1:], [-1])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits))
    feeds = {tokens: random.integers(_TOKENS, size=(batch, length + 1), dtype=np.int32)}
    return tf.train.AdamOptimizer(1e-3).minimize(loss), feeds


def _lstm(tf: Any) -> tuple[Any, _Feeds]:
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
    return clipped(tf, tf.train.AdamOptimizer(1e-3), loss, 5.0), feeds


def _language_model(sampled: bool) -> Callable[[Any], tuple[Any, _Feeds]]:
    """An LSTM that foretells the next word, by a softmax over all words or over some that are drawn."""

    def build(tf: Any) -> tuple[Any, _Feeds]:
        batch, length = 20, 20
        random = np.random.default_rng(0)
        words = tf.placeholder(tf.int32, [batch, length + 1])
        x = tf.nn.embedding_lookup(_weights(tf, "table", _WORDS, _UNITS), words[:, :-1])
        outputs, _ = tf.nn.dynamic_rnn(LSTMCell(tf, _UNITS, _UNITS), x, dtype=tf.float32)
        rows = tf.reshape(outputs, [-1, _UNITS])
        weights = _weights(tf, "out", _WORDS, _UNITS)
        biases = tf.get_variable("biases", [_WORDS], initializer=tf.zeros_initializer())
        if sampled:
            wanted = tf.cast(tf.reshape(words[:, 1:], [-1, 1]), tf.int64)
            losses = tf.nn.sampled_softmax_loss(weights, biases, wanted, rows, _SAMPLED, _WORDS)
        else:
            logits = tf.nn.bias_add(tf.matmul(rows, weights, transpose_b=True), biases)
            wanted = tf.reshape(words[:, 1:], [-1])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits)
        feeds = {words: random.integers(_WORDS, size=(batch, length + 1), dtype=np.int32)}
        return clipped(tf, tf.train.AdagradOptimizer(0.2), tf.reduce_mean(losses), 5.0), feeds

    return build


def _table(tf: Any) -> tuple[Any, _Feeds]:
    """Rows of a large table, looked up and trained by Adagrad, which keeps a number for each of the table's."""
    table = tf.get_variable("table", [_ROWS, _COLUMNS], initializer=tf.random_normal_initializer())
    ids = tf.placeholder(tf.int32, [_LOOKUPS])
    loss = tf.reduce_mean(tf.square(tf.gather(table, ids)))
    drawn = np.random.default_rng(0).integers(_ROWS, size=_LOOKUPS, dtype=np.int32)
    return tf.train.AdagradOptimizer(0.1).minimize(loss), {ids: drawn}


def _case(build: Callable[[Any], tuple[Any, _Feeds]], work: Work | None = None) -> Case:
    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        with tf.Graph().as_default():
            train_op, feeds = build(tf)
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
    # Rows of the table and of Adagrad's sums, both read and written.
    "table_adagrad": _case(_table, Work(4 * 4.0 * _LOOKUPS * _COLUMNS)),
}
