"""Steps that are launched as CUDA graphs give what they give without.

Where there is no GPU, ``tests/support/gpu/check.sh tests tests/devices/test_cuda_graphs.py`` runs these on a stand-in.
"""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.runtime import cuda_graphs
from tfray.runtime.device import cupy, gpu_count

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpu_count(), reason="needs a GPU"),
    pytest.mark.skipif(
        gpu_count() > 0 and not hasattr(cupy().cuda.Stream, "begin_capture"), reason="the GPU captures no graphs"
    ),
]


@pytest.fixture
def replays(monkeypatch):
    """Grows by an element with every launch of a graph."""
    found = []
    replayed = cuda_graphs.ReplayedFunction._replayed

    def counting(self, *arguments):
        found.append(self)
        return replayed(self, *arguments)

    monkeypatch.setattr(cuda_graphs.ReplayedFunction, "_replayed", counting)
    return found


def trained(optimizer, steps, monkeypatch, graphs, batch=8):
    """Losses of a small network, and its weights at the end."""
    monkeypatch.setenv(cuda_graphs.GRAPHS_VARIABLE, "1" if graphs else "0")
    random = np.random.default_rng(0)
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [batch, 6, 6, 3]), tf.placeholder(tf.int32, [batch])
        filters = tf.Variable(random.normal(size=(3, 3, 3, 8)).astype(np.float32))
        weights = tf.Variable(random.normal(size=(72, 5)).astype(np.float32))
        hidden = tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME")), 2, 2, "SAME")
        logits = tf.matmul(tf.reshape(hidden, [batch, -1]), weights)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train_op = optimizer().minimize(loss)
        session.run(tf.global_variables_initializer())
        losses = []
        for _ in range(steps):
            feeds = {x: random.normal(size=x.shape).astype(np.float32), y: random.integers(5, size=batch)}
            losses.append(session.run([loss, train_op], feeds)[0])
        return losses, session.run([filters, weights])


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_is_the_same_to_the_last_bit(optimizer, monkeypatch, replays):
    expected, weights = trained(OPTIMIZERS[optimizer], 10, monkeypatch, graphs=False)
    assert not replays
    losses, found = trained(OPTIMIZERS[optimizer], 10, monkeypatch, graphs=True)
    assert len(replays) == 7
    assert losses == expected and len(set(losses)) == 10
    for one, other in zip(found, weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_variable_that_is_set_from_outside_is_seen(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        variable, factor = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        product = variable * factor
        more = tf.assign_add(variable, [1.0, 1.0])
        session.run(tf.global_variables_initializer())
        for _ in range(6):
            assert session.run(product).tolist() == [3, 6]
        session.run(more)
        assert session.run(product).tolist() == [6, 9]
        variable.load(np.float32([5, 7]), session)
        assert session.run(product).tolist() == [15, 21]
        factor.load(np.float32(2), session)
        for _ in range(6):
            assert session.run(product).tolist() == [10, 14]
    assert len(replays) >= 4


def test_values_of_earlier_steps_stay(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        count = tf.Variable(0.0)
        one_more = tf.assign_add(count, 1.0)
        session.run(count.initializer)
        assert [float(value) for value in [session.run(one_more) for _ in range(9)]] == list(range(1, 10))
    assert len(replays) == 6


def test_feeds_of_another_shape(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        total = tf.reduce_sum(tf.square(x), axis=0)
        for rows in (3, 3, 3, 3, 3, 4, 4, 3, 3, 3, 3, 3, 3):
            values = np.random.default_rng(rows).normal(size=(rows, 2)).astype(np.float32)
            np.testing.assert_allclose(session.run(total, {x: values}), (values**2).sum(axis=0), rtol=1e-5)
    assert replays


def test_random_numbers_are_new_in_every_step(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        drawn = tf.random_uniform([64])
        fetched = [tf.nn.dropout(tf.ones([64]), 0.5), drawn, drawn * 2]
        found = [session.run(fetched) for _ in range(8)]
    assert len({kept.tobytes() for kept, *_ in found}) == len({numbers.tobytes() for _, numbers, _ in found}) == 8
    assert all(np.array_equal(numbers * 2, doubled) for _, numbers, doubled in found)
    assert len(replays) == 5


@pytest.mark.parametrize("batch", [8, None])
@pytest.mark.parametrize("width", [40, 30_000], ids=["drawn by the host", "drawn by the device"])
def test_a_step_with_random_numbers_draws_those_that_it_draws_without_graphs(batch, width, monkeypatch, replays):
    """Of a size that is known, or follows from the batch that is fed. Streams go on where they are after a graph."""

    def trained_with_dropout(graphs):
        monkeypatch.setenv(cuda_graphs.GRAPHS_VARIABLE, "1" if graphs else "0")
        random = np.random.default_rng(0)
        with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
            tf.set_random_seed(5)
            x = tf.placeholder(tf.float32, [batch, 6])
            weights = tf.Variable(random.normal(size=(6, width)).astype(np.float32))
            hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x, weights)), 0.5)
            noisy = hidden + tf.random_normal(tf.shape(hidden), stddev=0.1)
            train_op = tf.train.MomentumOptimizer(0.01, 0.9).minimize(tf.reduce_mean(tf.square(noisy - 1)))
            session.run(tf.global_variables_initializer())
            values = [random.normal(size=(8, 6)).astype(np.float32) for _ in range(7)]
            for value in values:
                session.run(train_op, {x: value})
            # A step that is no graph yet draws what follows.
            return session.run([weights, hidden], {x: values[0]})

    expected = trained_with_dropout(graphs=False)
    assert not replays
    found = trained_with_dropout(graphs=True)
    assert len(replays) >= 3  # large buffers of a first run are not kept
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_loop_runs_as_often_as_it_is_told(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        limit = tf.placeholder(tf.int32, [])
        total = tf.while_loop(lambda i, x: i < limit, lambda i, x: (i + 1, x * 2), [0, tf.ones([2])])[1]
        assert [session.run(total, {limit: turns})[0] for turns in (1, 1, 1, 1, 1, 5, 2)] == [2, 2, 2, 2, 2, 32, 4]


def trained_on_sequences(steps, monkeypatch, graphs, lengths=(7,)):
    """Losses and weights of a recurrent network, for sequences of some lengths in turn."""
    monkeypatch.setenv(cuda_graphs.GRAPHS_VARIABLE, "1" if graphs else "0")
    random = np.random.default_rng(0)
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [3, None, 4]), tf.placeholder(tf.float32, [3, 5])
        initializer = tf.random_normal_initializer(seed=1)
        cell = tf.nn.rnn_cell.LSTMCell(5, initializer=initializer)
        outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(outputs[:, -1] - y))
        train_op = tf.train.AdamOptimizer(0.01).minimize(loss)
        session.run(tf.global_variables_initializer())
        losses = []
        for step in range(steps):
            shape = (3, lengths[step * len(lengths) // steps], 4)
            feeds = {x: random.normal(size=shape).astype(np.float32), y: np.ones((3, 5), np.float32)}
            losses.append(session.run([loss, train_op], feeds)[0])
        return losses, session.run(tf.trainable_variables())


@pytest.mark.parametrize("lengths", [(7,), (7, 3)])
def test_a_loop_over_time_is_captured_turn_by_turn(lengths, monkeypatch, replays):
    expected, weights = trained_on_sequences(12, monkeypatch, False, lengths)
    assert not replays
    losses, found = trained_on_sequences(12, monkeypatch, True, lengths)
    assert len(replays) == (9 if len(lengths) == 1 else 6)
    assert losses == expected and len(set(losses)) == 12
    for one, other in zip(found, weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("is_looked_up", [True, False])
def test_what_a_loop_runs_over_is_trained_as_without_graphs(is_looked_up, monkeypatch):
    def trained_inputs(graphs):
        monkeypatch.setenv(cuda_graphs.GRAPHS_VARIABLE, "1" if graphs else "0")
        random = np.random.default_rng(0)
        with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
            shape = (6, 5) if is_looked_up else (3, 4, 5)
            rows = tf.Variable(random.normal(size=shape).astype(np.float32))
            ids = random.integers(6, size=(3, 4)).astype(np.int32)
            x = tf.nn.embedding_lookup(rows, ids) if is_looked_up else rows
            cell = tf.nn.rnn_cell.GRUCell(5, kernel_initializer=tf.random_normal_initializer(seed=1))
            loss = tf.reduce_mean(tf.square(tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0]))
            train_op = tf.train.AdamOptimizer(0.02).minimize(loss)
            session.run(tf.global_variables_initializer())
            losses = [session.run([loss, train_op])[0] for _ in range(8)]
            return losses, session.run(rows)

    losses, expected = trained_inputs(graphs=False)
    again, found = trained_inputs(graphs=True)
    np.testing.assert_allclose(again, losses, rtol=1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_a_step_whose_words_are_drawn_on_the_host_is_one_graph(monkeypatch, replays):
    """What comes before and after in one: the loop of the network, and that of its gradient."""

    def trained_on_words(graphs):
        monkeypatch.setenv(cuda_graphs.GRAPHS_VARIABLE, "1" if graphs else "0")
        random = np.random.default_rng(0)
        with tf.Graph().as_default(), tf.Session() as session:
            words, following = tf.placeholder(tf.int32, [3, 4]), tf.placeholder(tf.int32, [3, 4])
            table, bias = tf.Variable(random.normal(size=(50, 5)).astype(np.float32)), tf.Variable(tf.zeros([50]))
            x = tf.nn.embedding_lookup(table, words)
            cell = tf.nn.rnn_cell.GRUCell(5, kernel_initializer=tf.random_normal_initializer(seed=1))
            outputs = tf.reshape(tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0], [12, 5])
            labels = tf.reshape(following, [12, 1])
            losses = tf.nn.sampled_softmax_loss(table, bias, labels, outputs, 8, 50, seed=3)
            loss = tf.reduce_mean(losses)
            train_op = tf.train.AdagradOptimizer(0.1).minimize(loss)
            session.run(tf.global_variables_initializer())
            found = []
            for _ in range(9):
                feeds = {words: random.integers(50, size=(3, 4)), following: random.integers(50, size=(3, 4))}
                found.append(session.run([loss, train_op], feeds)[0])
            return found, session.run([table, bias])

    losses, expected = trained_on_words(graphs=False)
    assert not replays
    again, found = trained_on_words(graphs=True)
    assert len(replays) == 6 and len(set(losses)) == 9
    np.testing.assert_allclose(again, losses, rtol=1e-5)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_what_the_host_waits_for_is_computed_before_what_waits_for_it(replays):
    """A value goes to the host and comes back, and a part that needs neither joins what waits for it."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        with tf.device("/gpu:0"):
            doubled, other = x * 2, tf.exp(x)
        with tf.device("/cpu:0"):
            back = tf.py_func(lambda value: value + 1, [doubled], tf.float32)
            back.set_shape([3])
        with tf.device("/gpu:0"):
            y = back * other + tf.exp(x)
        for step in range(6):
            values = np.arange(3, dtype=np.float32) / (step + 1)
            np.testing.assert_allclose(session.run(y, {x: values}), (2 * values + 2) * np.exp(values), rtol=1e-5)
    assert replays


def test_a_loop_that_ends_by_a_value_on_the_device_is_run_as_it_is(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        doubled = tf.while_loop(lambda v: tf.reduce_sum(v) < 100.0, lambda v: v * 2, [x])[0]
        for start in (1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 200.0):
            expected = np.float32([start, start])
            while expected.sum() < 100:
                expected = expected * 2
            np.testing.assert_array_equal(session.run(doubled, {x: [start, start]}), expected)
    assert not replays


def test_a_loop_that_ends_by_a_variable_sees_it_change(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        turns = tf.Variable(2)
        total = tf.while_loop(lambda i, v: i < turns, lambda i, v: (i + 1, v + 1), [0, tf.zeros([2])])[1]
        session.run(turns.initializer)
        for expected in (2, 2, 2, 2, 2, 2):
            assert session.run(total).tolist() == [expected] * 2
        session.run(tf.assign_add(turns, 3))
        assert session.run(total).tolist() == [5, 5]
    assert not replays


def test_random_numbers_of_a_loop_are_new_in_every_step(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        total = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + tf.random_uniform([8])), [0, tf.zeros([8])])[
            1
        ]
        assert len({session.run(total).tobytes() for _ in range(8)}) == 8
    assert not replays


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adagrad", "adam", "lazy_adam"])
def test_rows_of_a_table_are_updated_by_a_graph(optimizer, monkeypatch, replays):
    makers = {
        **OPTIMIZERS,
        "adagrad": lambda: tf.train.AdagradOptimizer(0.5),
        "lazy_adam": lambda: tf.contrib.opt.LazyAdamOptimizer(0.1),
    }

    def trained_rows(graphs):
        monkeypatch.setenv(cuda_graphs.GRAPHS_VARIABLE, "1" if graphs else "0")
        random = np.random.default_rng(0)
        with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
            table = tf.Variable(random.normal(size=(9, 4)).astype(np.float32))
            ids = tf.placeholder(tf.int32, [6])
            train_op = makers[optimizer]().minimize(tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids))))
            session.run(tf.global_variables_initializer())
            for _ in range(8):
                session.run(train_op, {ids: random.integers(4, size=6)})
            return session.run(table)

    expected = trained_rows(graphs=False)
    assert not replays
    np.testing.assert_allclose(trained_rows(graphs=True), expected, rtol=1e-5)
    assert len(replays) == 5


def test_a_variable_that_a_loop_updates_is_updated_in_every_step(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        weight = tf.Variable([5.0, 3.0], use_resource=True)

        def body(i):
            with tf.control_dependencies([weight.assign_sub(0.5 * weight.read_value())]):
                return i + 1

        loop = tf.while_loop(lambda i: i < 3, body, [0])
        session.run(weight.initializer)
        for step in range(1, 9):
            session.run(loop)
            np.testing.assert_allclose(session.run(weight), [5 / 8**step, 3 / 8**step], rtol=1e-6)


def test_a_list_that_is_kept_for_later_is_not_written_again(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        array = tf.TensorArray(tf.float32, 2).write(0, x * 2).write(1, x * 3)
        with tf.device("/cpu:0"):
            first = tf.identity(array.read(0))
        for value in range(6):
            assert session.run(first, {x: [value, 1]}).tolist() == [2 * value, 2]


def test_what_reads_a_result_on_the_host_is_run_as_it_is(replays):
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4])
        positive = tf.boolean_mask(x, x > 0)
        for values in ([1, -1, 2, -2], [1, 1, 1, 1], [-1, -1, -1, 3], [1, 2, 3, 4], [0, 0, 0, 5], [1, 0, 1, 0]):
            assert session.run(positive, {x: values}).tolist() == [value for value in values if value > 0]
    assert not replays


def test_a_network_whose_kernels_take_constant_tables_is_captured(replays):
    random = np.random.default_rng(0)
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 6, 6, 4])
        smooth = tf.nn.avg_pool(tf.nn.lrn(x, depth_radius=2), 3, 1, "SAME")
        gradient = tf.gradients(smooth, x)[0]
        for _ in range(6):
            session.run([smooth, gradient], {x: random.normal(size=x.shape).astype(np.float32)})
    assert len(replays) == 3
