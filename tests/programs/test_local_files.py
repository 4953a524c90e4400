"""Data sets of Keras from local files, and modules of `tf.contrib` that stand for newer names."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

import tfray as tf
from tfray.errors import DataLossError, NotFoundError
from tfray.programs.mnist_input import FILES

X = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
Y = np.arange(4, dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "datasets" / "fashion-mnist").mkdir(parents=True)
    return tmp_path / "datasets"


def test_mnist(folder):
    np.savez(folder / "mnist.npz", x_train=X, y_train=Y, x_test=X[:1], y_test=Y[:1])
    (x_train, y_train), (x_test, y_test) = tf.keras.datasets.mnist.load_data()
    for found, expected in ((x_train, X), (y_train, Y), (x_test, X[:1]), (y_test, Y[:1])):
        np.testing.assert_array_equal(found, expected)


def test_fashion_mnist(folder):
    for name, array in zip(FILES, (X, Y, X[:1], Y[:1]), strict=True):
        header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
        (folder / "fashion-mnist" / name).write_bytes(gzip.compress(header + array.tobytes()))
    (x_train, y_train), _ = tf.keras.datasets.fashion_mnist.load_data()
    np.testing.assert_array_equal(x_train, X)
    np.testing.assert_array_equal(y_train, Y)


def test_boston_housing(folder):
    x, y = np.arange(50.0).reshape(10, 5), np.arange(10.0)
    np.savez(folder / "boston_housing.npz", x=x, y=y)
    (x_train, y_train), (x_test, y_test) = tf.keras.datasets.boston_housing.load_data()
    assert (len(x_train), len(x_test)) == (8, 2)
    np.testing.assert_array_equal(np.r_[x_train, x_test][:, 0], np.r_[y_train, y_test] * 5)
    order = np.arange(10)
    np.random.RandomState(113).shuffle(order)
    np.testing.assert_array_equal(y_train, y[order][:8])


def test_files_that_are_missing_or_others(folder):
    with pytest.raises(NotFoundError, match=r"there is no .*mnist\.npz, and tfray downloads nothing: put https"):
        tf.keras.datasets.mnist.load_data()
    np.savez(folder / "mnist.npz", x_train=X)
    with pytest.raises(DataLossError, match=r"has not the arrays x_train, y_train"):
        tf.keras.datasets.mnist.load_data()
    np.savez(folder / "mnist.npz", **dict.fromkeys(("x_train", "y_train", "x_test", "y_test"), np.array([{}], object)))
    with pytest.raises(DataLossError, match="has not the arrays"):
        tf.keras.datasets.mnist.load_data()


def test_get_file(folder):
    (folder / "a.txt").write_bytes(b"text")
    path = tf.keras.utils.get_file("a.txt", "https://example.org/a.txt", md5_hash=hashlib.md5(b"text").hexdigest())
    assert path == str(folder / "a.txt")
    right = hashlib.sha256(b"text").hexdigest()
    assert tf.keras.utils.get_file("a.txt", "", file_hash=right) == path
    assert tf.keras.utils.get_file(path, "") == path
    with pytest.raises(DataLossError, match=f"sha256 checksum {right}"):
        tf.keras.utils.get_file("a.txt", "", file_hash="0" * 64)


def test_cross_entropies_with_logits_first():
    logits, labels = [[1.0, 2.0, 0.0]], [[0.0, 1.0, 0.0]]
    contrib = tf.contrib.nn
    with tf.Session() as session:
        found = session.run(
            [
                contrib.deprecated_flipped_softmax_cross_entropy_with_logits(logits, labels),
                contrib.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits, [1]),
                contrib.deprecated_flipped_sigmoid_cross_entropy_with_logits([2.0], [1.0]),
            ]
        )
    np.testing.assert_allclose(np.ravel(found), [0.407606, 0.407606, 0.126928], rtol=1e-5)


def test_modules_of_contrib_for_older_names():
    assert tf.contrib.deprecated.scalar_summary is tf.scalar_summary
    config = tf.contrib.tensorboard.plugins.projector.ProjectorConfig()
    config.embeddings.add().sprite.single_image_dim.extend([28, 28])
    assert "single_image_dim: 28" in str(config)


def test_triplets_with_semi_hard_negatives():
    """Against the loss's definition, written with loops."""
    random = np.random.default_rng(0)
    points = random.normal(size=(9, 3)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    labels = np.array([0, 1, 2] * 3)
    apart = np.square(points[:, None] - points[None]).sum(2)
    losses = []
    for a in range(9):
        negatives = apart[a][labels != labels[a]]
        for p in set(np.flatnonzero(labels == labels[a])) - {a}:
            outside = negatives[negatives > apart[a, p]]
            chosen = outside.min() if len(outside) else negatives.max()
            losses.append(max(0.5 + apart[a, p] - chosen, 0))
    embeddings = tf.constant(points)
    loss = tf.contrib.losses.metric_learning.triplet_semihard_loss(labels, embeddings, 0.5)
    with tf.Session() as session:
        value, gradient = session.run([loss, tf.gradients(loss, embeddings)[0]])
    np.testing.assert_allclose(value, np.mean(losses), rtol=1e-5)
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0
