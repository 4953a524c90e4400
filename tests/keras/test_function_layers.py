"""Models that TensorFlow 2.4 and later have saved with functions between their layers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf

X = np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype(np.float32)
ALL, MIDDLE = {"start": None, "stop": None, "step": None}, {"start": 1, "stop": 3, "step": None}

# The functions of a model that takes `a` of four columns, as tf_keras 2.21 describes them: what is called, and how.
CASES = {
    "1 - (a * a + 2) / (|a| + 1)": (
        [
            ("math.multiply", ["a", 0, 0, {"y": ["a", 0, 0], "name": None}]),
            ("math.abs", ["a", 0, 0, {}]),
            ("__operators__.add", ["math.multiply", 0, 0, {"y": 2.0, "name": None}]),
            ("__operators__.add", ["math.abs", 0, 0, {"y": 1.0, "name": None}]),
            ("math.truediv", ["__operators__.add", 0, 0, {"y": ["__operators__.add_1", 0, 0], "name": None}]),
            ("math.subtract", ["_CONSTANT_VALUE", -1, 1.0, {"y": ["math.truediv", 0, 0], "name": None}]),
        ],
        lambda a: 1 - (a * a + 2) / (abs(a) + 1),
    ),
    "concat": (
        [("concat", [["a", 0, 0, {"axis": -1}], ["a", 0, 0, {"axis": -1}]])],
        lambda a: np.concatenate([a, a], -1),
    ),
    "a[:, 1:3] * a[..., 0:1]": (
        [
            ("__operators__.getitem", ["a", 0, 0, {"slice_spec": [ALL, MIDDLE]}]),
            (
                "__operators__.getitem",
                ["a", 0, 0, {"slice_spec": [{"class_name": "__ellipsis__"}, {"start": 0, "stop": 1, "step": None}]}],
            ),
            (
                "math.multiply",
                ["__operators__.getitem", 0, 0, {"y": ["__operators__.getitem_1", 0, 0], "name": None}],
            ),
        ],
        lambda a: a[:, 1:3] * a[..., 0:1],
    ),
    "halves": (
        [
            ("split", ["a", 0, 0, {"num_or_size_splits": 2, "axis": -1}]),
            ("math.sigmoid", ["split", 0, 1, {}]),
            ("math.multiply", ["split", 0, 0, {"y": ["math.sigmoid", 0, 0], "name": None}]),
        ],
        lambda a: a[:, :2] / (1 + np.exp(-a[:, 2:])),
    ),
    "where": (
        [
            ("math.greater", ["a", 0, 0, {"y": 0.0, "name": None}]),
            ("zeros_like", ["a", 0, 0, {}]),
            ("math.subtract", ["zeros_like", 0, 0, {"y": 1.0, "name": None}]),
            ("where", ["math.greater", 0, 0, {"x": ["a", 0, 0], "y": ["math.subtract", 0, 0]}]),
        ],
        lambda a: np.where(a > 0, a, -1),
    ),
    "mean and norm": (
        [
            ("math.reduce_mean", ["a", 0, 0, {"axis": 1, "keepdims": True}]),
            ("compat.v1.norm", ["a", 0, 0, {"axis": -1, "keepdims": True}]),
            ("__operators__.add", ["math.reduce_mean", 0, 0, {"y": ["compat.v1.norm", 0, 0], "name": None}]),
        ],
        lambda a: a.mean(1, keepdims=True) + np.linalg.norm(a, axis=1, keepdims=True),
    ),
    "parity": (
        [
            ("compat.v1.floor_div", ["a", 0, 0, {"y": 0.3}]),
            ("math.floormod", ["compat.v1.floor_div", 0, 0, {"y": 2.0}]),
            ("math.equal", ["math.floormod", 0, 0, {"y": 0.0}]),
            ("cast", ["math.equal", 0, 0, {"dtype": "float32"}]),
        ],
        lambda a: ((a // np.float32(0.3)) % 2 == 0).astype(np.float32),
    ),
    "expand and tile": (
        [
            ("expand_dims", ["a", 0, 0, {"axis": 1}]),
            ("tile", ["expand_dims", 0, 0, {"multiples": [1, 2, 1]}]),
            ("reshape", ["tile", 0, 0, {"shape": [-1, 8]}]),
        ],
        lambda a: np.concatenate([a, a], -1),
    ),
}


def description(calls):
    first = {"class_name": "InputLayer", "config": {"batch_input_shape": [None, 4], "dtype": "float32", "name": "a"}}
    layers, seen = [{**first, "name": "a", "inbound_nodes": []}], {}
    for function, node in calls:
        number = seen[function] = seen.get(function, -1) + 1
        name = f"{function}_{number}" if number else function
        kind = "SlicingOpLambda" if function.endswith("getitem") else "TFOpLambda"
        config = {"name": name, "trainable": True, "dtype": "float32", "function": function}
        layers.append({"class_name": kind, "config": config, "name": name, "inbound_nodes": [node]})
    ends = {"input_layers": [["a", 0, 0]], "output_layers": [[name if calls else "a", 0, 0]]}
    return json.dumps({"class_name": "Functional", "config": {"name": "model", "layers": layers, **ends}})


@pytest.mark.parametrize("case", CASES)
def test_a_model_with_functions_between_its_layers_computes_and_is_described_anew(case):
    calls, expected = CASES[case]
    model = tf.keras.models.model_from_json(description(calls))
    np.testing.assert_allclose(model.predict(X), expected(X), rtol=1e-5, atol=1e-6)
    again = tf.keras.models.model_from_json(model.to_json())
    np.testing.assert_allclose(again.predict(X), expected(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function", ["io.read_file", "py_function", "math._secret", "__operators__.call", "math.bogus"]
)
def test_only_functions_of_tensors_are_read_from_files(function):
    calls = [(function, ["a", 0, 0, {}])]
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"layer '{function}' is a call of tf.{function}, which"):
        tf.keras.models.model_from_json(description(calls))
