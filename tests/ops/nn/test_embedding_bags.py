"""Looking up and combining several rows for each example."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.op_samples import grid

TABLE = grid(7, 3)
BAGS = [[1, 4], [3], [3, 3, 0]]
WEIGHTS = [[0.5, 2.0], [1.5], [0.25, 0.5, 3.0]]


def sparse(rows, dtype):
    places = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    values = np.array([value for row in rows for value in row], dtype)
    return tf.SparseTensor(np.array(places).reshape(-1, 2), values, [len(rows), max(map(len, rows))])


def combined(table, bags, weights, combiner):
    weights = weights or [[1.0] * len(bag) for bag in bags]
    sums = [
        sum((w * table[i] for i, w in zip(*pair, strict=True)), 0 * table[0])
        for pair in zip(bags, weights, strict=True)
    ]
    by = {"sum": lambda w: 1, "mean": sum, "sqrtn": lambda w: np.sqrt(np.sum(np.square(w)))}[combiner]
    return np.array([total / (by(w) or 1) for total, w in zip(sums, weights, strict=True)])


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(("count", "strategy"), [(1, "mod"), (3, "mod"), (3, "div")])
def test_values_and_gradients(count, strategy, weights, combiner):
    def build(table, flat_weights=None):
        shards = tf.split(table, [3, 2, 2]) if strategy == "div" else [table[i::count] for i in range(count)]
        ids = sparse(BAGS, np.int64)
        of_ids = None if flat_weights is None else tf.SparseTensor(ids.indices, flat_weights, ids.dense_shape)
        return tf.nn.embedding_lookup_sparse(shards, ids, of_ids, strategy, combiner=combiner)

    inputs = [TABLE] if weights is None else [TABLE, np.concatenate(weights)]
    with tf.Session() as session:
        found = session.run(build(*map(tf.constant, inputs)))
    np.testing.assert_allclose(found, combined(TABLE, BAGS, weights, combiner), rtol=1e-12)
    check_gradients(build, inputs)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_shards_get_the_rows_that_were_used(weights):
    shards = [tf.Variable(TABLE[i::2]) for i in range(2)]
    of_ids = None if weights is None else sparse(weights, np.float64)
    bags = tf.nn.embedding_lookup_sparse(shards, sparse(BAGS, np.int32), of_ids)
    slices = tf.gradients(bags, shards)
    assert all(isinstance(d, tf.IndexedSlices) for d in slices)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [sorted(value.indices) for value in session.run(slices)] == [[0, 2], [0, 1]]


def test_long_rows_are_scaled_first():
    bags = tf.nn.embedding_lookup_sparse(
        np.eye(3) * 4, sparse([[0, 1], [2]], np.int64), None, combiner="sum", max_norm=1.0
    )
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(bags), [[1, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("default_id", [None, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_safe_lookup(combiner, weighted, default_id):
    bags = [[1, -1, 4], [], [-2], [3, 0]]
    weights = [[0.5, 9.0, 2.0], [], [1.0], [2.0, 0.0]] if weighted else None
    ids = sparse(bags, np.int64)
    of_ids = sparse(weights, np.float64) if weighted else None
    found = tf.nn.safe_embedding_lookup_sparse(tf.constant(TABLE), ids, of_ids, combiner, default_id)
    empty = [] if default_id is None else [default_id]
    kept = [[1, 4], empty, empty, [3, 0]]
    ones = [1.0] * len(empty)
    kept_weights = [[0.5, 2.0], ones, ones, [2.0, 0.0]] if weighted else None
    with tf.Session() as session:
        value = session.run(found)
    np.testing.assert_allclose(value, combined(TABLE, kept, kept_weights, combiner), rtol=1e-12)


def test_safe_lookup_of_higher_rank_and_fed():
    fed = tf.sparse_placeholder(tf.int64, [None, 2, 3])
    table = tf.get_variable("t", initializer=TABLE, partitioner=tf.fixed_size_partitioner(3))
    found = tf.nn.safe_embedding_lookup_sparse(table, fed)
    assert found.shape.as_list() == [None, 2, 3]
    (d_part, *_) = tf.gradients(found, list(table))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {fed: ([[0, 0, 0], [0, 0, 1], [1, 1, 2]], [2, 6, 1], [2, 2, 3])}
        value, d_value = session.run([found, d_part], feed)
    expected = np.zeros((2, 2, 3))
    expected[0, 0], expected[1, 1] = (TABLE[2] + TABLE[6]) / 2, TABLE[1]
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    dense = np.zeros((3, 3))
    np.add.at(dense, d_value.indices, d_value.values)
    np.testing.assert_allclose(dense, [[0] * 3, [1] * 3, [0.5] * 3])


@pytest.mark.parametrize(
    ("error", "build"),
    [
        (ValueError, lambda: tf.nn.embedding_lookup_sparse(TABLE, sparse(BAGS, np.int64), None, combiner="max")),
        (TypeError, lambda: tf.nn.embedding_lookup_sparse(TABLE, [[1]], None)),
        (TypeError, lambda: tf.nn.embedding_lookup_sparse(TABLE, sparse(BAGS, np.int64), [1.0])),
        (ValueError, lambda: tf.nn.embedding_lookup_sparse(TABLE, sparse(BAGS, np.int64), sparse([[1.0]], np.float64))),
        (ValueError, lambda: tf.nn.safe_embedding_lookup_sparse([], sparse(BAGS, np.int64))),
    ],
)
def test_misuse(error, build):
    with pytest.raises(error):
        build()


def test_training_a_bag_of_words():
    """The mean of two word vectors comes to tell apart which of the words it has."""
    tf.set_random_seed(0)
    random = np.random.default_rng(0)
    words = random.integers(0, 20, (64, 2))
    labels = (words.sum(1) % 2).astype(np.int32)
    table = tf.get_variable("table", [20, 8], initializer=tf.random_normal_initializer(stddev=0.3))
    bags = tf.nn.embedding_lookup_sparse(table, sparse(words.tolist(), np.int64), None, combiner="sum")
    hidden = tf.nn.relu(tf.matmul(bags, tf.get_variable("w", [8, 32])))
    logits = tf.matmul(hidden, tf.get_variable("v", [32, 2]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    step = tf.train.AdamOptimizer(0.03).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(150):
            session.run(step)
        assert (session.run(logits).argmax(1) == labels).mean() > 0.95


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_an_example_without_weight_is_zeros(combiner):
    places, table, weights = [[0, 0], [0, 1], [2, 0]], tf.constant(TABLE), tf.constant([0.0, 0.0, 2.0], tf.float64)
    ids, of_ids = (tf.SparseTensor(places, values, [4, 2]) for values in (tf.constant([0, 1, 3], tf.int64), weights))
    rows = tf.nn.embedding_lookup_sparse(table, ids, of_ids, combiner=combiner)
    slopes = tf.gradients(rows, [table, weights])
    with tf.Session() as session:
        found, d_table, d_weights = session.run([rows, tf.convert_to_tensor(slopes[0]), slopes[1]])
    scale = 2.0 if combiner == "sum" else 1.0  # as TensorFlow 2.21 computes them
    np.testing.assert_allclose(found, [0 * TABLE[0], 0 * TABLE[0], scale * TABLE[3]])
    assert d_table[:3].tolist() == [[0] * 3] * 3 and d_table[3].tolist() == [scale] * 3
    expected = TABLE[[0, 1, 3]].sum(1) if combiner == "sum" else np.zeros(3)
    np.testing.assert_allclose(d_weights, expected, atol=1e-12)


def test_weights_of_another_dtype_than_the_table_are_refused():
    ids = tf.SparseTensor([[0, 0]], tf.constant([0], tf.int64), [2, 2])
    weights = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
    with pytest.raises(ValueError, match="requested dtype float32 for Tensor with dtype float64"):
        tf.nn.safe_embedding_lookup_sparse([tf.zeros([3, 2], tf.float64)], ids, weights)
