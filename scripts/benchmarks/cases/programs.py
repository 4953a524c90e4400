"""Six complete training loops, input included, as users run them: a step is a stretch of each.

A stretch is a number of training steps, each with the making of its batch, and what users do every so often between
them: an evaluation, some text, a look at the nearest words, summaries and checkpoints. Building the graph does not
count. The data are drawn, such that there is something to learn; their sizes are those of the tutorials that such
programs come from. Every stretch gives its last loss.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step
from benchmarks.cases.layers import Layers, LSTMCell, clipped

_Opened = Iterator[Step]
_Draws = np.random.Generator


def _clusters(random: _Draws, count: int, features: int) -> tuple[Any, Any]:
    """Numbers between 0 and 1 in ten clusters, and which each belongs to."""
    labels = random.integers(10, size=count)
    centres = random.random((10, features))
    values = centres[labels] + random.normal(0, 0.3, (count, features))
    return values.clip(0, 1).astype(np.float32), labels.astype(np.int32)


def _loss(tf: Any, labels: Any, logits: Any) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _digits(tf: Any, random: _Draws) -> _Opened:
    """A perceptron on digits: batches are picked in Python and fed, the accuracy is computed after each epoch."""
    images, labels = _clusters(random, 1797, 64)
    x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
    logits = Layers(tf).dense(x, 100, 10)
    loss = _loss(tf, y, logits)
    train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.cast(y, tf.int64)), tf.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def epoch() -> Any:
            order = random.permutation(1500)
            for start in range(0, 1500, 50):
                chosen = order[start : start + 50]
                _, lost = session.run([train_op, loss], {x: images[chosen], y: labels[chosen]})
            session.run(accuracy, {x: images[1500:], y: labels[1500:]})
            return lost

        yield epoch


def _convnet(tf: Any, random: _Draws) -> _Opened:
    """The convolutional network of the tutorials, with dropout and Adam, on a dataset that is shuffled and batched."""
    images, labels = _clusters(random, 5000, 784)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(5000).repeat().batch(64, drop_remainder=True)
    batch, wanted = data.prefetch(1).make_one_shot_iterator().get_next()
    net = Layers(tf)
    x = net.max_pool(net.convolution(tf.reshape(batch, [64, 28, 28, 1]), 32, 5), 2, 2)
    x = net.max_pool(net.convolution(x, 64, 5), 2, 2)
    hidden = tf.nn.relu(net.dense(x, 512))
    logits = net.linear(tf.nn.dropout(hidden, keep_prob=0.6), 10)
    loss = _loss(tf, wanted, logits)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def stretch() -> Any:
            for _ in range(5):
                _, lost, _ = session.run([train_op, loss, step])
            return lost

        yield stretch


def _characters(tf: Any, random: _Draws) -> _Opened:
    """Two LSTMs that foretell the next character: their state is fetched and fed; now and then they write a line."""
    kinds, units, batch, length = 60, 128, 32, 50
    steps = random.integers(1, 4, size=batch * length * 40 + 1)
    text = (steps.cumsum() % kinds).astype(np.int32)
    x, y = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
    state = [tuple(tf.placeholder(tf.float32, [None, units]) for _ in range(2)) for _ in range(2)]
    outputs = tf.one_hot(x, kinds)
    ends = []
    for layer, before in enumerate(state):
        with tf.variable_scope(f"layer_{layer}"):
            cell = LSTMCell(tf, units if layer else kinds, units)
            outputs, end = tf.nn.dynamic_rnn(cell, outputs, initial_state=before)
            ends.append(end)
    logits = Layers(tf).linear(tf.reshape(outputs, [-1, units]), kinds)
    loss = _loss(tf, tf.reshape(y, [-1]), logits)
    shares = tf.nn.softmax(logits)
    train_op = clipped(tf, tf.train.AdamOptimizer(2e-3), loss, 5.0)

    def fed(values: Any) -> dict[Any, Any]:
        return {
            each: value for pair, two in zip(state, values, strict=True) for each, value in zip(pair, two, strict=True)
        }

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        pieces = text[:-1].reshape(batch, -1), text[1:].reshape(batch, -1)

        def stretch() -> Any:
            values: Any = [[np.zeros((batch, units), np.float32)] * 2] * 2
            for start in range(0, 4 * length, length):
                now, following = (piece[:, start : start + length] for piece in pieces)
                values, lost, _ = session.run([ends, loss, train_op], {x: now, y: following, **fed(values)})
            values, written = [[np.zeros((1, units), np.float32)] * 2] * 2, [0]
            for _ in range(20):
                values, [share] = session.run([ends, shares], {x: [[written[-1]]], **fed(values)})
                written.append(int(random.choice(kinds, p=share.astype(np.float64) / share.sum(dtype=np.float64))))
            return lost

        yield stretch


def _word_vectors(tf: Any, random: _Draws) -> _Opened:
    """Skip-grams and noise-contrastive estimation: pairs are made in Python; now and then the nearest words are."""
    words, width, batch = 10_000, 128, 128
    text = np.minimum(random.zipf(1.3, 100_000), words) - 1
    x, y = tf.placeholder(tf.int32, [batch]), tf.placeholder(tf.int32, [batch, 1])
    table = tf.get_variable("table", [words, width], initializer=tf.random_uniform_initializer(-1.0, 1.0))
    weights = tf.get_variable("weights", [words, width], initializer=tf.random_normal_initializer(stddev=width**-0.5))
    biases = tf.get_variable("biases", [words], initializer=tf.zeros_initializer())
    losses = tf.nn.nce_loss(weights, biases, y, tf.nn.embedding_lookup(table, x), 64, words)
    loss = tf.reduce_mean(losses)
    train_op = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    unit = tf.nn.l2_normalize(table, 1)
    looked_up = tf.constant(np.arange(16, dtype=np.int32))
    nearest = tf.nn.top_k(tf.matmul(tf.gather(unit, looked_up), unit, transpose_b=True), 8).indices

    def pairs() -> Iterator[tuple[Any, Any]]:
        """Words, each twice, and those before and after them."""
        window: deque[int] = deque(maxlen=3)
        centres, around = [], []
        for word in itertools.cycle(text.tolist()):
            window.append(word)
            if len(window) == 3:
                centres += [window[1], window[1]]
                around += [[window[0]], [window[2]]]
            if len(centres) == batch:
                yield np.array(centres, np.int32), np.array(around, np.int32)
                centres, around = [], []

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        batches = pairs()

        def stretch() -> Any:
            for _ in range(40):
                centres, around = next(batches)
                _, lost = session.run([train_op, loss], {x: centres, y: around})
            session.run(nearest)
            return lost

        yield stretch


def _meta_learning(tf: Any, random: _Draws) -> _Opened:
    """MAML on sine waves: each task's weights are a gradient step away, and the update goes through that step."""
    tasks, points = 25, 10
    x, y, later_x, later_y = (tf.placeholder(tf.float32, [tasks, points, 1]) for _ in range(4))
    sizes = [1, 40, 40, 1]
    weights = []
    for i, (before, after) in enumerate(itertools.pairwise(sizes)):
        normal = tf.truncated_normal_initializer(stddev=before**-0.5)
        weights.append(tf.get_variable(f"weights_{i}", [before, after], initializer=normal))
        weights.append(tf.get_variable(f"bias_{i}", [after], initializer=tf.zeros_initializer()))

    def error(x: Any, y: Any, weights: Any) -> Any:
        for i in range(0, len(weights), 2):
            x = tf.matmul(x, weights[i]) + weights[i + 1]
            x = tf.nn.relu(x) if i < len(weights) - 2 else x
        return tf.reduce_mean(tf.square(x - y))

    def task(data: Any) -> Any:
        x, y, later_x, later_y = data
        gradients = tf.gradients(error(x, y, weights), weights)
        moved = [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients, strict=True)]
        return error(later_x, later_y, moved)

    losses = tf.map_fn(task, (x, y, later_x, later_y), dtype=tf.float32, parallel_iterations=tasks)
    loss = tf.reduce_mean(losses)
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def stretch() -> Any:
            for _ in range(5):
                height, phase = random.uniform(0.1, 5, (tasks, 1, 1)), random.uniform(0, np.pi, (tasks, 1, 1))
                places = random.uniform(-5, 5, (2, tasks, points, 1))
                now, later = height * np.sin(places - phase)
                feeds = {x: places[0], y: now, later_x: places[1], later_y: later}
                _, lost = session.run([train_op, loss], feeds)
            return lost

        yield stretch


def _autoencoder(tf: Any, random: _Draws) -> _Opened:
    """An autoencoder in a monitored session, which logs, writes summaries and saves checkpoints by its hooks."""
    images, _ = _clusters(random, 5000, 784)
    data = tf.data.Dataset.from_tensor_slices(images).shuffle(5000).repeat().batch(128, drop_remainder=True)
    batch = data.prefetch(1).make_one_shot_iterator().get_next()
    net = Layers(tf)
    code = tf.nn.relu(net.dense(tf.reshape(batch, [128, 784]), 256, 32))
    loss = tf.reduce_mean(tf.square(tf.sigmoid(net.dense(code, 256, 784)) - batch))
    tf.summary.scalar("loss", loss)
    tf.summary.histogram("code", code)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
    hooks = [tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=50), tf.train.NanTensorHook(loss)]
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=50, save_summaries_steps=25
        ) as session,
    ):

        def stretch() -> Any:
            for _ in range(50):
                _, lost = session.run([train_op, loss])
            return lost

        yield stretch


def _case(program: Callable[[Any, _Draws], _Opened]) -> Case:
    run = contextmanager(program)

    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        with backend.tf.Graph().as_default():
            backend.tf.set_random_seed(0)
            with run(backend.tf, np.random.default_rng(0)) as step:
                yield step

    return Case(opened)


CASES: Final = {
    "digits": _case(_digits),
    "convnet": _case(_convnet),
    "characters": _case(_characters),
    "word_vectors": _case(_word_vectors),
    "meta_learning": _case(_meta_learning),
    "autoencoder": _case(_autoencoder),
}
