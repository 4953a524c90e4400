"""Losses that bring embeddings of one class together, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

losses = tf.contrib.losses.metric_learning
RNG = np.random.default_rng(0)
ANCHOR, POSITIVE = (RNG.normal(size=[10, 6]).astype(np.float32) for _ in range(2))
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 3])
DISTANCES = np.sqrt(np.square(ANCHOR[:, None] - ANCHOR[None]).sum(-1))


def value_and_gradient(loss, *inputs):
    with tf.Session() as session:
        found, *gradients = session.run([loss, *tf.gradients(loss, list(inputs))])
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    return found


def test_contrastive_loss():
    same = (LABELS == 0).astype(np.float32)
    anchor, positive = tf.constant(ANCHOR), tf.constant(POSITIVE)
    apart = np.sqrt(np.square(ANCHOR - POSITIVE).sum(1))
    expected = np.mean(same * apart**2 + (1 - same) * np.maximum(4.0 - apart, 0) ** 2)
    loss = losses.contrastive_loss(same, anchor, positive, margin=4.0)
    np.testing.assert_allclose(value_and_gradient(loss, anchor, positive), expected, rtol=1e-5)


def test_lifted_struct_loss():
    total, pairs = 0.0, 0
    for i, j in np.argwhere((LABELS[:, None] == LABELS[None]) & ~np.eye(10, dtype=bool)):
        others = [1 - DISTANCES[each][LABELS[i] != LABELS] for each in (i, j)]
        total += max(0.0, np.log(np.exp(np.concatenate(others)).sum()) + DISTANCES[i, j]) ** 2
        pairs += 1
    embeddings = tf.constant(ANCHOR)
    loss = losses.lifted_struct_loss(LABELS, embeddings)
    np.testing.assert_allclose(value_and_gradient(loss, embeddings), total / pairs / 2, rtol=1e-4)


def npairs(alike):
    logits = ANCHOR @ POSITIVE.T
    logarithms = np.log(np.exp(logits).sum(1, keepdims=True)) - logits
    lengths = np.square(ANCHOR).sum(1).mean() + np.square(POSITIVE).sum(1).mean()
    return (alike / alike.sum(1, keepdims=True) * logarithms).sum(1).mean() + 0.25 * 0.02 * lengths


@pytest.mark.parametrize("print_losses", [False, True])
def test_npairs_loss(print_losses):
    anchor, positive = tf.constant(ANCHOR), tf.constant(POSITIVE)
    loss = losses.npairs_loss(LABELS, anchor, positive, 0.02, print_losses)
    expected = npairs((LABELS[:, None] == LABELS[None]).astype(float))
    np.testing.assert_allclose(value_and_gradient(loss, anchor, positive), expected, rtol=1e-5)


def test_npairs_loss_of_examples_of_several_classes():
    classes = RNG.integers(0, 2, [10, 5])
    classes[:, -1] = 1
    labels = [tf.SparseTensor(np.argwhere(row), np.ones(row.sum()), [5]) for row in classes]
    anchor, positive = tf.constant(ANCHOR), tf.constant(POSITIVE)
    loss = losses.npairs_loss_multilabel(labels, anchor, positive, 0.02)
    expected = npairs((classes @ classes.T).astype(float))
    np.testing.assert_allclose(value_and_gradient(loss, anchor, positive), expected, rtol=1e-5)
    with pytest.raises(TypeError, match="sparse_labels must be a list of SparseTensors"):
        losses.npairs_loss_multilabel([classes[0]], anchor, positive)
