"""Canned estimators and heads: the losses of the first steps, results, predictions and names that TensorFlow gives."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.cases import estimator_cases
from tfray.estimator.canned import optimizer_of

GOLDEN = json.loads((ROOT / "tests" / "golden" / "estimators.json").read_text())["cases"]


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("name", GOLDEN)
def test_they_are_those_of_tensorflow(name, tmp_path):
    wanted, found = GOLDEN[name], estimator_cases.run(tf, name, tmp_path)
    np.testing.assert_allclose(found["losses"], wanted["losses"], rtol=2e-4)
    assert set(found["results"]) == set(wanted["results"])
    for key, value in wanted["results"].items():
        assert found["results"][key] == pytest.approx(value, rel=1e-3, abs=1e-4), key
    for what in ("dtypes", "variables", "tags"):
        assert found[what] == wanted[what], what
    for key, value in wanted["predictions"].items():
        if value and isinstance(value[0], str):
            assert found["predictions"][key] == value, key
        else:
            np.testing.assert_allclose(found["predictions"][key], value, rtol=2e-3, atol=1e-5, err_msg=key)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Magic", 0.1), "Unsupported optimizer name: Magic"),
        (("Adagrad", None), "learning_rate must be specified when opt is string"),
        (((1, 2),), "The given object is not an Optimizer instance"),
    ],
)
def test_optimizers_that_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        optimizer_of(*arguments)


def test_an_optimizer_needs_no_further_learning_rate():
    given = tf.train.AdamOptimizer(0.1)
    assert optimizer_of(given) is given and optimizer_of(lambda: given) is given
