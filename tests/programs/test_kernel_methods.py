"""Features that stand for a kernel, and classifiers of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import kernel_methods, layers

ROWS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def test_products_are_nearly_a_kernel(session):
    mapper = kernel_methods.RandomFourierFeatureMapper(3, 20000, stddev=1.5, seed=4, name="gaussian")
    mapped = mapper.map(tf.constant(ROWS))
    assert mapped.shape.as_list() == [6, 20000] and mapper.name == "gaussian"
    found = session.run(tf.matmul(mapped, mapped, transpose_b=True))
    distances = np.sum((ROWS[:, None] - ROWS) ** 2, axis=2)
    np.testing.assert_allclose(found, np.exp(-distances / (2 * 1.5**2)), atol=0.03)
    with pytest.raises(ValueError, match="Invalid dimension"):
        mapper.map(tf.zeros([2, 4]))


def test_a_circle_is_told_from_what_is_around_it(tmp_path):
    random = np.random.default_rng(1)
    points = random.uniform(-2, 2, size=(200, 2)).astype(np.float32)
    inside = (np.sum(points**2, axis=1) < 1.7).astype(np.int64)
    column = layers.real_valued_column("points", dimension=2)

    def batches():
        return {"points": tf.constant(points)}, tf.constant(inside[:, None])

    mapper = kernel_methods.RandomFourierFeatureMapper(2, 200, stddev=1.0)
    classifier = kernel_methods.KernelLinearClassifier(
        feature_columns=[],
        model_dir=str(tmp_path),
        optimizer=tf.train.FtrlOptimizer(1.0),
        kernel_mappers={column: [mapper]},
    )
    classifier.fit(input_fn=batches, steps=60)
    assert classifier.evaluate(input_fn=batches, steps=1)["accuracy"] > 0.95
    classes = np.array(list(itertools.islice(classifier.predict_classes(input_fn=batches), 200)))
    assert np.mean(classes == inside) > 0.95


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least one of"):
        kernel_methods.KernelLinearClassifier()
    with pytest.raises(ValueError, match="Invalid kernel_mappers"):
        kernel_methods.KernelLinearClassifier(kernel_mappers={layers.real_valued_column("x"): [str]})


@pytest.mark.parametrize(
    ("labels", "weights", "expected"), [([1, 0], 1.0, (2.2 + 1.2) / 2), ([[1], [0]], [1.0, 2.0], (2.2 + 2 * 1.2) / 2)]
)
def test_a_class_is_to_be_above_every_other(labels, weights, expected, session):
    logits = tf.constant([[0.5, -0.2, 1.0], [0.1, 0.2, 0.3]])
    loss = kernel_methods.sparse_multiclass_hinge_loss(labels, logits, weights)
    assert session.run(loss) == pytest.approx(expected) and tf.losses.get_losses() == [loss]
    each = kernel_methods.sparse_multiclass_hinge_loss([2, 2], [[0.0, 0.0, 2.0], [0.0, 1.0, 1.5]], reduction="none")
    np.testing.assert_allclose(session.run(each), [0, 0.5])
    for bad in (lambda: ([1.0, 0.0], logits), lambda: ([1, 0], logits[0]), lambda: ([[[1]]], logits)):
        with pytest.raises(ValueError, match="expected"):
            kernel_methods.sparse_multiclass_hinge_loss(*bad())
    label = tf.placeholder(tf.int32, [2])
    loss = kernel_methods.sparse_multiclass_hinge_loss(label, logits)
    for none in ([3, 0], [-1, 0]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(loss, {label: none})
