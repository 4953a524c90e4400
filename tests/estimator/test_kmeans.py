"""Clusters: `tf.estimator.experimental.KMeans`, and the estimator and graph of `tf.contrib.factorization`."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run
from tfray.errors import InvalidArgumentError
from tfray.estimator.canned_models import clustering

factorization = tf.contrib.factorization
RANDOM = np.random.default_rng(0)
CENTRES = np.array([[0, 0], [10, 0], [0, 10]], np.float32)
POINTS = (np.repeat(CENTRES, 40, 0) + RANDOM.normal(size=(120, 2))).astype(np.float32)
FIRST = np.array([[1, 1], [5, 4], [6, 8]], np.float32)


def all_points():
    return tf.data.Dataset.from_tensors(POINTS).repeat()


def once():
    return tf.data.Dataset.from_tensors(POINTS)


def distances(points, centres, metric):
    if metric == "cosine":
        return 1 - points @ centres.T
    return ((points[:, None] - centres) ** 2).sum(-1)


def normalized(values):
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-6)


def full_batch(metric, steps):
    """Lloyd's algorithm, written plainly."""
    is_cosine = metric == "cosine"
    points, centres = (normalized(POINTS), normalized(FIRST)) if is_cosine else (POINTS, FIRST)
    for _ in range(steps):
        nearest = distances(points, centres, metric).argmin(1)
        centres = np.array([points[nearest == each].sum(0) / ((nearest == each).sum() + 1e-6) for each in range(3)])
        centres = normalized(centres) if is_cosine else centres
    return points, centres


@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
def test_all_points_at_a_time(metric):
    kmeans = tf.estimator.experimental.KMeans(3, None, FIRST, metric, use_mini_batch=False)
    kmeans.train(all_points, steps=3)
    points, centres = full_batch(metric, 3)
    np.testing.assert_allclose(kmeans.cluster_centers(), centres, rtol=1e-3, atol=1e-4)
    wanted = distances(points, centres, metric)
    np.testing.assert_allclose(kmeans.score(once), wanted.min(1).sum(), rtol=1e-3)
    np.testing.assert_array_equal(list(kmeans.predict_cluster_index(once)), wanted.argmin(1))
    lengths = np.sqrt(wanted) if metric == "squared_euclidean" else wanted
    np.testing.assert_allclose(list(kmeans.transform(once)), lengths, rtol=1e-2, atol=1e-2)
    assert set(kmeans.get_variable_names()) == {"clusters", "initialized", "global_step"}


@pytest.mark.parametrize("every", [1, 2])
def test_mini_batches(every):
    batches = RANDOM.permutation(POINTS).reshape(3, 40, 2)
    kmeans = factorization.KMeansClustering(3, None, FIRST, mini_batch_steps_per_iteration=every)
    kmeans.train(lambda: tf.data.Dataset.from_tensor_slices(batches).repeat(), steps=5)
    centres, moved = FIRST.astype(float), FIRST.astype(float)
    seen, left = np.full(3, 1 if every == 1 else 0), every
    for step in range(5):
        points = batches[step % 3]
        nearest = distances(points, centres, "squared_euclidean").argmin(1)
        if every > 1 and left <= 0:
            centres, seen, left = moved.copy(), np.zeros(3, int), every - 1
        else:
            left -= 1
        for each in range(3):
            own = points[nearest == each]
            seen[each] += len(own)
            if len(own):
                moved[each] += (own - moved[each]).sum(0) / seen[each]
        centres = moved.copy() if every == 1 else centres
    np.testing.assert_allclose(kmeans.cluster_centers(), centres, rtol=1e-4, atol=1e-4)
    squared = distances(POINTS, centres, "squared_euclidean")
    np.testing.assert_allclose(list(kmeans.transform(once)), squared, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
def test_k_means_plus_plus_finds_centres_far_apart(metric):
    for seed in range(3):
        kmeans = factorization.KMeansClustering(
            3, None, "kmeans_plus_plus", metric, random_seed=seed, use_mini_batch=False, kmeans_plus_plus_num_retries=8
        )
        kmeans.train(all_points, steps=8)
        if metric == "squared_euclidean":
            found = kmeans.cluster_centers()
            assert {tuple(row) for row in np.round(found / 10)} == {(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)}
        else:
            np.testing.assert_allclose(np.linalg.norm(kmeans.cluster_centers(), axis=1), 1, rtol=1e-4)


@pytest.mark.parametrize("choice", ["random", lambda points, missing: points[0][: tf.minimum(missing, 2)]])
def test_centres_are_chosen_from_several_batches(choice):
    def pairs():
        return tf.data.Dataset.from_tensor_slices({"y": POINTS[:, 1:], "x": POINTS[:, :1]}).repeat().batch(2)

    kmeans = factorization.KMeansClustering(5, initial_clusters=choice)
    kmeans.train(pairs, steps=1)
    assert kmeans.cluster_centers().shape == (5, 2)


def test_training_stops_when_it_has_settled():
    kmeans = factorization.KMeansClustering(3, None, FIRST, use_mini_batch=False, relative_tolerance=1e-4)
    kmeans.train(all_points, steps=100)
    assert kmeans.get_variable_value("global_step") < 20


@pytest.mark.parametrize("arguments", [{"initial_clusters": "best"}, {"distance_metric": "manhattan"}])
def test_other_choices_are_refused(arguments):
    with pytest.raises(ValueError, match="expected"):
        factorization.KMeansClustering(3, **arguments)
    with pytest.raises(ValueError, match="expected"):
        factorization.KMeans(POINTS, 3, **arguments)


def test_the_graph():
    """As programs use it that drive the session themselves."""
    points = tf.placeholder(tf.float32, [None, 2])
    graph = factorization.KMeans(points, 3, FIRST, use_mini_batch=False).training_graph()
    all_scores, (nearest,), scores, initialized, init_op, training_op = graph
    mean = tf.reduce_mean(scores)
    assert len(all_scores) == 1
    with tf.Session() as session:
        session.run(tf.global_variables_initializer(), {points: POINTS})
        assert not session.run(initialized)
        session.run(init_op, {points: POINTS})
        assert session.run(initialized)
        for _ in range(3):
            session.run(training_op, {points: POINTS})
        found, index = session.run([mean, nearest], {points: POINTS})
    wanted = distances(POINTS, full_batch("squared_euclidean", 3)[1], "squared_euclidean")
    np.testing.assert_allclose(found, wanted.min(1).mean(), rtol=1e-3)
    np.testing.assert_array_equal(index, wanted.argmin(1))


# -- its parts -----------------------------------------------------------------------------------------


def test_nearest_centres():
    random = np.random.default_rng(0)
    rows, centres = random.normal(size=(7, 3)).astype(np.float32), random.normal(size=(4, 3)).astype(np.float32)
    distances = ((rows[:, None] - centres) ** 2).sum(-1)
    indices, squares = run(clustering.nearest_neighbors(rows, centres, np.int64(2)))
    assert indices.dtype == np.int64 and (indices == distances.argsort(1)[:, :2]).all()
    np.testing.assert_allclose(squares, np.sort(distances, 1)[:, :2], rtol=1e-4, atol=1e-5)
    assert run(clustering.nearest_neighbors(rows, centres, 9)).nearest_center_indices.shape == (7, 4)
    with pytest.raises(ValueError, match="rank 2"):
        clustering.nearest_neighbors([1.0], [[1.0]], 1)


@pytest.mark.parametrize("retries", [-1, 0, 3])
def test_rows_by_k_means_plus_plus_are_far_from_each_other(retries):
    groups = np.float32([[0, 0], [100, 0], [0, 100]])
    rows = np.repeat(groups, 5, 0) + np.random.default_rng(1).normal(size=(15, 2)).astype(np.float32)
    for seed in range(5):
        chosen = run(clustering.kmeans_plus_plus_initialization(rows, 3, seed, retries))
        assert {tuple(row) for row in chosen} <= {tuple(row) for row in rows}
        nearest, _ = run(clustering.nearest_neighbors(chosen, groups, 1))
        assert sorted(nearest[:, 0]) == [0, 1, 2]
        np.testing.assert_array_equal(run(clustering.kmeans_plus_plus_initialization(rows, 3, seed, retries)), chosen)


@pytest.mark.parametrize(("count", "match"), [(0, "num_to_sample > 0"), (3, r"num_to_sample <= points.rows\(\)")])
def test_k_means_plus_plus_has_as_many_rows_as_it_takes(count, match):
    with pytest.raises(InvalidArgumentError, match=match):
        run(clustering.kmeans_plus_plus_initialization([[1.0], [2.0]], count, 0, 0))


def test_a_chain_ends_at_points_by_their_distances():
    assert run(clustering.kmc2_chain_initialization([0.0] * 5, 3)) == 0
    assert run(clustering.kmc2_chain_initialization([1.0, 0, 9, 0], 3)) == 2  # it never moves on to a distance of 0
    # Of two points the chain ends at the second with the probability of the quotient.
    ends = [run(clustering.kmc2_chain_initialization([4.0, 1.0], seed)) for seed in range(120)]
    assert 0.12 < np.mean(ends) < 0.4 and ends[0].dtype == np.int64
    with pytest.raises(ValueError, match="rank 1"):
        clustering.kmc2_chain_initialization([[1.0]], 0)
    with pytest.raises(InvalidArgumentError, match="> 0"):
        run(clustering.kmc2_chain_initialization(np.zeros(0), 0))
