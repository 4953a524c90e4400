"""Canned estimators learn what plain references learn, on data that a script makes."""

from __future__ import annotations

import json
import re
import runpy
import sys

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.cases import census_cases

EXAMPLE = ROOT / "examples" / "estimator_wide_and_deep.py"
ENCODED = ["a", "b", "c", "d", "e"]


def classes(count, seed, bent):
    """Five numbers of each example, and its class of three; with `bent` classes that no plane parts."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 5)).astype(np.float32)
    scores = x @ np.random.default_rng(9).normal(size=(5, 3))
    if bent:
        scores = np.stack([x[:, 0] * x[:, 1], x[:, 2] ** 2 - 1, x[:, 3]], 1) * 2
    return x, (scores + rng.gumbel(size=scores.shape) * 0.5).argmax(1)


def input_fn(x, y, epochs):
    features = {name: x[:, position] for position, name in enumerate(ENCODED)}
    return tf.estimator.inputs.numpy_input_fn(features, y, 100, epochs, shuffle=epochs is None)


COLUMNS = [tf.feature_column.numeric_column(name) for name in ENCODED]


@pytest.mark.parametrize("bent", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_accuracy_is_within_half_a_point_of_a_plain_reference(tmp_path, bent):
    """Of logistic regression, or of networks of the same size trained by scikit-learn: seeds differ by half a point."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    neural_network = pytest.importorskip("sklearn.neural_network")
    x, y = classes(4000, 0, bent)
    other_x, other_y = classes(10000, 1, bent)
    found, expected = [], []
    for seed in range(3) if bent else range(1):
        config, folder = tf.estimator.RunConfig(tf_random_seed=seed + 1), str(tmp_path / str(seed))
        if bent:
            reference = neural_network.MLPClassifier((32, 16), max_iter=60, early_stopping=True, random_state=seed)
            rate = tf.train.AdamOptimizer(0.005)
            model = tf.estimator.DNNClassifier(
                [32, 16], COLUMNS, folder, 3, optimizer=rate, config=config,
                loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
            )  # fmt: skip
        else:
            reference = linear_model.LogisticRegression()
            model = tf.estimator.LinearClassifier(COLUMNS, folder, 3, config=config)
        model.train(input_fn(x, y, None), steps=1500 if bent else 400)
        found.append(model.evaluate(input_fn(other_x, other_y, 1))["accuracy"])
        expected.append(reference.fit(x, y).score(other_x, other_y))
    assert np.mean(found) > np.mean(expected) - 0.005


@pytest.mark.slow
def test_a_wide_and_deep_model_of_people(tmp_path, monkeypatch, capfd):
    """TensorFlow 2.15 reaches an accuracy of 0.7830 with the same program."""
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), f"--model_dir={tmp_path}", "--steps=1500"])
    monkeypatch.delenv("TF_CONFIG", raising=False)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    step, accuracy = re.search(r"step (\d+), accuracy (\S+), auc", capfd.readouterr().out).groups()
    assert int(step) == 1500 and float(accuracy) > 0.7830 - 0.005
    (folder,) = (tmp_path / "export" / "people").iterdir()
    assert (folder / tf.saved_model.FILE_NAME).exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", census_cases.KINDS)
def test_accuracy_on_a_census_is_within_half_a_point_of_tensorflow_s(kind):
    """On average over seeds: the accuracy of TensorFlow 1.15 is that of the same program."""
    accuracy = json.loads((ROOT / "tests" / "golden" / "census.json").read_text())["accuracy"]
    found = census_cases.run(tf, kind)
    print(f"{kind}: {found}; TensorFlow {accuracy[kind]}")
    assert np.mean(found) == pytest.approx(np.mean(accuracy[kind]), abs=0.005)
