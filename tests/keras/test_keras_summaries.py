"""`Model.summary`: the table of a model's layers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

keras = tf.keras
layers = keras.layers

SUMMARY = f"""Model: "sequential"
{"_" * 65}
Layer (type)                 Output Shape              Param #
{"=" * 65}
dense (Dense)                (None, 16)                48
{"_" * 65}
dense_1 (Dense)              (None, 3)                 51
{"=" * 65}
Total params: 99
Trainable params: 99
Non-trainable params: 0
{"_" * 65}"""
"""The table of two dense layers, in the form that TensorFlow's guides show."""


def test_the_summary_of_a_chain():
    lines = []
    keras.Sequential([layers.Dense(16, input_shape=(2,)), layers.Dense(3)]).summary(print_fn=lines.append)

    class Called(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = layers.Dense(2)

        def call(self, inputs):
            return self.inner(inputs)

    called, of_called = Called(), []
    called.predict(np.ones((2, 3)))
    called.summary(print_fn=of_called.append)
    assert any(re.fullmatch(r"dense\S* \(Dense\) +multiple +8 *", line) for line in of_called), of_called
    assert [line.rstrip() for line in lines] == SUMMARY.splitlines()


def test_the_summary_of_two_inputs_tells_what_layers_are_connected_to(capsys):
    # In TensorFlow 1.15's form: operations, like inputs, have lists of shapes.
    left, right = (tf.keras.Input((2,), name=name) for name in ("left", "right"))
    both = tf.keras.layers.concatenate([left, right], name="both")
    tf.keras.Model([left, right], tf.nn.relu(both), name="two").summary()
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if not line.startswith(("_", "="))]
    assert rows[1:6] == [
        ["Layer", "(type)", "Output", "Shape", "Param", "#", "Connected", "to"],
        ["left", "(InputLayer)", "[(None,", "2)]", "0"],
        ["right", "(InputLayer)", "[(None,", "2)]", "0"],
        ["both", "(Concatenate)", "(None,", "4)", "0", "left[0][0]"],
        ["right[0][0]"],
    ]
    assert rows[6] == ["tf_op_layer_Relu", "(TensorFlowOpL", "[(None,", "4)]", "0", "both[0][0]"]


def test_the_summary_of_branches_tells_what_layers_are_connected_to():
    a, b = keras.Input([4], name="a"), keras.Input([3], name="b")
    shared = layers.Dense(5, name="shared", trainable=False)
    joined = layers.add([shared(a), shared(layers.Dense(4, name="first")(b))], name="sum")
    lines = []
    keras.Model([a, b], joined).summary(line_length=60, positions=[0.4, 0.7, 0.8, 1.0], print_fn=lines.append)
    table = [line.split("  ") for line in lines if line.startswith(("shared", "sum", " ")) or "Input" in line]
    assert {tuple(part.strip() for part in row if part.strip()) for row in table} == {
        ("a (InputLayer)", "[(None, 4)]", "0"), ("b (InputLayer)", "[(None, 3)]", "0"),
        ("shared (Dense)", "(None, 5)", "25", "a[0][0]"), ("first[0][0]",),
        ("sum (Add)", "(None, 5)", "0", "shared[0][0]"), ("shared[1][0]",),
    }  # fmt: skip
    assert lines[-3:-1] == ["Trainable params: 16", "Non-trainable params: 25"]
    with pytest.raises(InvalidArgumentError, match="end of each of 4 columns"):
        keras.Model([a, b], joined).summary(positions=[0.5, 1.0])
