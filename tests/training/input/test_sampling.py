"""Batches of which some examples are dropped at random."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

rejection_sample, stratified_sample = tf.contrib.training.rejection_sample, tf.contrib.training.stratified_sample


def batches(fetches, count):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = [session.run(fetches) for _ in range(count)]
        coordinator.request_stop()
        coordinator.join(threads)
    return found


@pytest.mark.parametrize("init_probs", [[0.5, 0, 0, 0.5, 0], None])
@pytest.mark.parametrize("enqueue_many", [False, True])
def test_classes_have_the_frequencies_that_are_asked_for(init_probs, enqueue_many):
    tf.set_random_seed(7)
    label = tf.where(tf.random_uniform([]) > 0.5, 0, 3)
    data, labels = [label * [1, 4]], label
    if enqueue_many:
        labels = tf.where(tf.random_uniform([11]) > 0.5, tf.zeros([11], tf.int32), 3 * tf.ones([11], tf.int32))
        data = [labels[:, None] * [[1, 4]]]
    [values], classes = stratified_sample(
        data, labels, np.array([0.8, 0, 0, 0.2, 0]), 16, init_probs, enqueue_many=enqueue_many
    )
    found = batches([values, classes], 25)
    for value, kinds in found:
        assert value.tolist() == [[kind, 4 * kind] for kind in kinds]
    kinds = np.concatenate([each for _, each in found])
    assert set(kinds) == {0, 3} and 0.65 < np.mean(kinds == 0) < 0.95


def test_examples_of_several_parts_and_of_one():
    parts, label = stratified_sample([tf.zeros([2, 3]), tf.ones([])], tf.ones([], tf.int32), [0.0, 1.0], 4, [0.0, 1.0])
    assert isinstance(parts, list) and [part.shape.as_list() for part in parts] == [[4, 2, 3], [4]]
    assert batches(label, 1)[0].tolist() == [1] * 4


@pytest.mark.parametrize("enqueue_many", [False, True])
def test_examples_are_accepted_with_their_probabilities(enqueue_many):
    kind = tf.cast(tf.random_uniform([5] if enqueue_many else []) > 0.5, tf.float32)
    sample = rejection_sample([kind], lambda parts: parts[0], 10, enqueue_many=enqueue_many)
    assert isinstance(sample, list)
    assert batches(sample[0], 3)[2].tolist() == [1.0] * 10


@pytest.mark.parametrize("probability", [-0.1, 1.1])
def test_probabilities_are_checked_when_asked(probability):
    fed = tf.placeholder(tf.float32, [])
    rejection_sample([tf.zeros([])], lambda _: fed, 4, runtime_checks=True, name="sample")
    checked = tf.get_default_graph().get_tensor_by_name("sample/prob_with_checks:0")
    with tf.Session() as session, pytest.raises(InvalidArgumentError):
        session.run(checked, {fed: probability})


PROBS, VALUES, LABEL = [0.2] * 5, [[0.0, 1.0, 2.0]], 1


@pytest.mark.parametrize(
    ("tensors", "labels", "probs", "options"),
    [
        (VALUES, 1, PROBS, {"enqueue_many": True}),
        (VALUES, [[1]], PROBS, {"enqueue_many": True}),
        ([np.zeros([2, 1])], [1], PROBS, {"enqueue_many": True}),
        (VALUES, [0, 1, 0, 0, 0], PROBS, {}),
        (VALUES, LABEL, 1.0, {}),
        (VALUES, LABEL, [0.1] * 10, {"init_probs": PROBS}),
        (VALUES, LABEL, [0.2, 0.4, 0.4], {"init_probs": [0, 0.5, 0.5]}),
        (np.zeros([2, 3]), LABEL, PROBS, {}),
    ],
)
def test_what_is_refused(tensors, labels, probs, options):
    with pytest.raises((ValueError, TypeError)):
        stratified_sample(tensors, labels, probs, 16, **options)


@pytest.mark.parametrize(("label", "probs"), [(1, [0.5, 0.6]), (1, [-0.5, 1.5]), (2, [0.5, 0.5])])
def test_frequencies_and_classes_are_checked_in_steps(label, probs):
    probs = tf.placeholder_with_default(probs, [2])
    batch = stratified_sample(VALUES, label, probs, 4, [0.5, 0.5])
    with pytest.raises((InvalidArgumentError, tf.errors.OutOfRangeError)):
        batches(batch, 1)


def test_the_number_of_classes_must_be_known():
    with pytest.raises(ValueError):
        stratified_sample(VALUES, LABEL, tf.placeholder(tf.float32, [None]), 16)


def test_parts_of_several_examples_are_equally_many():
    with pytest.raises(ValueError):
        rejection_sample([tf.zeros([5, 1]), tf.zeros([4, 1])], lambda _: tf.ones([]), 4, enqueue_many=True)
