"""Candidate sampling and the losses over sampled classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tfray as tf

RANGE = 20
UNIGRAMS = [float(count) for count in range(1, RANGE + 1)]


def log_uniform(ids):
    return np.log((ids + 2) / (ids + 1)) / np.log(RANGE + 1)


def by_count(ids):
    return (np.asarray(ids) + 1) ** 0.75 / np.sum(np.arange(1, RANGE + 1) ** 0.75)


def fixed(true_classes, num_true, num_sampled, unique, range_max, seed=None):
    return tf.nn.fixed_unigram_candidate_sampler(
        true_classes, num_true, num_sampled, unique, range_max, distortion=0.75, unigrams=UNIGRAMS, seed=seed
    )


SAMPLERS = {
    "uniform": (tf.nn.uniform_candidate_sampler, lambda ids: np.full(np.shape(ids), 1 / RANGE)),
    "log_uniform": (tf.nn.log_uniform_candidate_sampler, log_uniform),
    "fixed": (fixed, by_count),
    "learned": (tf.nn.learned_unigram_candidate_sampler, lambda ids: np.full(np.shape(ids), 1 / RANGE)),
}
TRUE = np.array([[0, 3], [7, 19], [1, 1]])


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_with_replacement(name):
    sampler, probability = SAMPLERS[name]
    sampled, true_expected, sampled_expected = sampler(TRUE, 2, 5000, False, RANGE, seed=3)
    assert sampled.shape == [5000] and true_expected.shape == [3, 2] and sampled_expected.shape == [5000]
    with tf.Session() as session:
        ids, of_true, of_sampled = session.run([sampled, true_expected, sampled_expected])
    np.testing.assert_allclose(of_true, 5000 * probability(TRUE), rtol=1e-5)
    np.testing.assert_allclose(of_sampled, 5000 * probability(ids), rtol=1e-5)
    counts = np.bincount(ids, minlength=RANGE)
    assert stats.chisquare(counts, 5000 * probability(np.arange(RANGE))).pvalue > 1e-3


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_without_replacement(name):
    sampler, probability = SAMPLERS[name]
    sampled, true_expected, sampled_expected = sampler(TRUE[:0], 2, 8, True, RANGE, seed=4)
    of_all = sampler(np.arange(RANGE)[:, None], 1, 8, True, RANGE, seed=4)
    with tf.Session() as session:
        ids, _, counts = session.run([sampled, true_expected, sampled_expected])
        assert len(set(ids.tolist())) == 8
        draws = np.log1p(-counts.astype(np.float64)) / np.log1p(-probability(ids))
        if not np.allclose(counts, 8 * probability(ids)):  # then some class came twice
            np.testing.assert_allclose(draws, np.round(draws[0]), rtol=1e-3)
            assert draws[0] > 8
        if name == "learned":
            return
        found, expected = np.zeros(RANGE), np.zeros(RANGE)
        for _ in range(1000):
            ids, of_each, _ = session.run(of_all)
            found[ids] += 1
            expected += of_each[:, 0]
    # The formula is exact for independent draws only: near enough for a correction of logits.
    np.testing.assert_allclose(found, expected, atol=4 * np.sqrt(1000) / 2 + 30)


def test_learned_classes_are_drawn_more_often():
    true_classes = tf.placeholder(tf.int64, [None, 1])
    sampled, expected, _ = tf.nn.learned_unigram_candidate_sampler(true_classes, 1, 4000, False, RANGE, seed=5)
    with tf.Session() as session:
        session.run(sampled, {true_classes: np.full((80, 1), 7)})
        ids, of_true = session.run([sampled, expected], {true_classes: [[7], [0]]})
    np.testing.assert_allclose(of_true, [[4000 * 81 / 100], [4000 / 100]], rtol=1e-5)
    weights = np.where(np.arange(RANGE) == 7, 81, 1) / 100
    assert stats.chisquare(np.bincount(ids, minlength=RANGE), 4000 * weights).pvalue > 1e-3


def test_all_candidates():
    sampled, true_expected, sampled_expected = tf.nn.all_candidate_sampler(TRUE, 2, 4, True)
    with tf.Session() as session:
        ids, of_true, of_sampled = session.run([sampled, true_expected, sampled_expected])
    assert ids.tolist() == [0, 1, 2, 3] and (of_true == 1).all() and (of_sampled == 1).all()


def test_counts_from_a_file(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("the,5\nof,3\nand,2\n")
    sampled = tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 3000, False, 4, str(path), num_reserved_ids=1, seed=2)
    with tf.Session() as session:
        ids, of_true, _ = session.run(sampled)
    assert of_true == pytest.approx(1500) and 0 not in ids
    assert stats.chisquare(np.bincount(ids)[1:], [1500, 900, 600]).pvalue > 1e-3


def test_a_shard_draws_from_every_second_class():
    sampled = tf.nn.fixed_unigram_candidate_sampler(
        [[0]], 1, 9, False, 2, unigrams=[1.0, 0.0, 3.0], num_shards=2, shard=0
    )
    with tf.Session() as session:
        assert session.run(sampled.true_expected_count) == pytest.approx(9 / 4)


def test_the_same_seed_draws_the_same():
    draws = [tf.nn.log_uniform_candidate_sampler([[1]], 1, 50, True, 1000, seed=9)[0] for _ in range(2)]
    with tf.Session() as session:
        first, second = session.run(draws)
        assert (first == second).all() and (session.run(draws[0]) != first).any()


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: tf.nn.uniform_candidate_sampler([[20]], 1, 2, True, 20), r"20 is not in \[0, 20\)"),
        (lambda: tf.nn.uniform_candidate_sampler([[1]], 1, 21, True, 20), "21 different classes from 20"),
        (lambda: tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 2, True, 4, unigrams=[1.0]), "for 1 classes"),
        (lambda: tf.nn.fixed_unigram_candidate_sampler([[0]], 1, 2, False, 1, unigrams=[0.0]), "for 1 classes"),
    ],
)
def test_impossible_draws_are_refused(build, match):
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=match):
        session.run(build()[0])


def test_wrong_arguments():
    with pytest.raises(ValueError, match="either vocab_file or unigrams"):
        tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 2, True, 4)
    with pytest.raises(ValueError, match="shard 2"):
        tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 2, True, 4, unigrams=[1.0], num_shards=2, shard=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 1"):
        tf.nn.uniform_candidate_sampler([[1]], 1, 0, True, 4)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.nn.uniform_candidate_sampler([[1, 2]], 1, 1, True, 4)


# -- losses --------------------------------------------------------------------------------------------

CLASSES, DIM, BATCH = 11, 4, 3
RANDOM = np.random.default_rng(0)
WEIGHTS, BIASES = RANDOM.normal(size=(CLASSES, DIM)), RANDOM.normal(size=CLASSES)
INPUTS = RANDOM.normal(size=(BATCH, DIM))
SAMPLED = np.array([5, 0, 9, 5, 2])
LABELS = np.array([[0, 4], [9, 9], [1, 3]])
TRUE_EXPECTED = np.float32([[0.5, 0.2], [0.1, 0.1], [0.3, 0.7]])
SAMPLED_EXPECTED = np.float32([0.2, 0.4, 0.6, 0.2, 0.9])


def expected_logits(num_true, remove):
    labels = LABELS[:, :num_true]
    logits = INPUTS @ WEIGHTS.T + BIASES
    true_logits = np.take_along_axis(logits, labels, 1) - np.log(TRUE_EXPECTED[:, :num_true])
    sampled_logits = logits[:, SAMPLED] - np.log(SAMPLED_EXPECTED)
    if remove:
        for row, classes in enumerate(labels):
            sampled_logits[row, np.isin(SAMPLED, classes)] = -np.inf
    targets = np.zeros((BATCH, num_true + len(SAMPLED)))
    targets[:, :num_true] = 1 / num_true
    return np.concatenate([true_logits, sampled_logits], 1), targets


def expected_nce(num_true, remove):
    x, z = expected_logits(num_true, remove)
    x = np.maximum(x, -1e30)
    return np.sum(np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x))), 1)


def expected_softmax(num_true, remove):
    x, z = expected_logits(num_true, remove)
    return -np.sum(z * np.where(z > 0, x - np.log(np.sum(np.exp(x), 1, keepdims=True)), 0), 1)


@pytest.mark.rows(every=4)
@pytest.mark.parametrize("num_true", [1, 2])
@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize(
    ("count", "strategy", "at_shards"),
    [(1, "mod", False), (3, "mod", False), (3, "div", False), (1, "div", True), (3, "mod", True), (3, "div", True)],
)
@pytest.mark.parametrize(
    ("function", "expected"), [(tf.nn.nce_loss, expected_nce), (tf.nn.sampled_softmax_loss, expected_softmax)]
)
def test_losses(function, expected, count, strategy, at_shards, remove, num_true):
    def cut(table):
        shards = np.array_split(table, count) if strategy == "div" else [table[i::count] for i in range(count)]
        return [tf.Variable(shard) for shard in shards]

    weights, biases, inputs = cut(WEIGHTS), cut(BIASES), tf.constant(INPUTS)
    values = SAMPLED, TRUE_EXPECTED[:, :num_true], SAMPLED_EXPECTED
    labels = LABELS[:, :num_true]
    losses = function(
        weights, biases, labels, inputs, 5, CLASSES, num_true, values, remove, strategy, at_shards=at_shards
    )
    assert losses.shape == [BATCH] and losses.dtype is tf.float64
    slices = tf.gradients(losses, [*weights, *biases])
    assert all(isinstance(d, tf.IndexedSlices) for d in slices)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(losses), expected(num_true, remove), rtol=1e-6)
        (d_inputs,) = session.run(tf.gradients(losses, [inputs]))
        if at_shards:
            elsewhere = function(weights, biases, labels, inputs, 5, CLASSES, num_true, values, remove, strategy)
            pairs = zip(slices, tf.gradients(elsewhere, [*weights, *biases]), strict=True)
            for mine, theirs in [session.run([tf.convert_to_tensor(d) for d in pair]) for pair in pairs]:
                np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    direction, step = RANDOM.normal(size=INPUTS.shape), 1e-6
    found = np.sum(d_inputs * direction)
    assert found == pytest.approx(_difference(expected, num_true, remove, direction, step), rel=1e-5)


def _difference(expected, num_true, remove, direction, step):
    global INPUTS
    kept, values = INPUTS, []
    try:
        for sign in (1, -1):
            INPUTS = kept + sign * step * direction
            values.append(np.sum(expected(num_true, remove)))
    finally:
        INPUTS = kept
    return (values[0] - values[1]) / (2 * step)


def test_sampling_all_classes_gives_the_full_loss():
    labels = [[4], [0], [10]]
    values = tf.nn.all_candidate_sampler(labels, 1, CLASSES, True)
    sampled = tf.nn.sampled_softmax_loss(WEIGHTS, BIASES, labels, INPUTS, CLASSES, CLASSES, sampled_values=values)
    logits = tf.constant(INPUTS @ WEIGHTS.T + BIASES)
    full = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[4, 0, 10], logits=logits)
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run([sampled, full]), rtol=1e-6)


@pytest.mark.parametrize("function", [tf.nn.nce_loss, tf.nn.sampled_softmax_loss])
def test_training_by_sampled_losses(function):
    """Words of a skip-gram model come to predict their only neighbour."""
    tf.set_random_seed(1)
    words, dim = 30, 16
    weights = tf.get_variable(
        "w", [words, dim], partitioner=tf.fixed_size_partitioner(3), initializer=tf.truncated_normal_initializer()
    )
    biases = tf.get_variable("b", [words], partitioner=tf.fixed_size_partitioner(3), initializer=tf.zeros_initializer())
    table = tf.get_variable("e", [words, dim], initializer=tf.random_normal_initializer())
    centers, neighbours = np.arange(words), (np.arange(words) * 7 + 3) % words
    inputs = tf.nn.embedding_lookup(table, centers)
    loss = tf.reduce_mean(function(weights, biases, neighbours[:, None], inputs, 8, words, partition_strategy="div"))
    step = tf.train.AdagradOptimizer(1.0).minimize(loss)
    logits = tf.matmul(inputs, weights, transpose_b=True) + biases
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(150):
            session.run(step)
        right = np.argmax(session.run(logits), 1) == neighbours
    assert right.mean() > 0.9
