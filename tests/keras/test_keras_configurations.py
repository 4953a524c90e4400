"""Configurations of layers: as TensorFlow 1.15 gives them, and layers made of them anew."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
layers = tf.keras.layers


def initializer(name, **settings):
    return {"class_name": name, "config": {**settings, "dtype": "float32"}}


GLOROT, ZEROS = initializer("GlorotUniform", seed=None), initializer("Zeros")
NOTHING = {f"{part}_{kind}": None for part in ("kernel", "bias") for kind in ("regularizer", "constraint")} | {
    "activity_regularizer": None
}
DENSE = {
    "name": "x", "trainable": True, "dtype": None, "units": 3, "activation": "linear", "use_bias": True,
    "kernel_initializer": GLOROT, "bias_initializer": ZEROS, **NOTHING,
}  # fmt: skip
LSTM = {
    "name": "x", "trainable": True, "dtype": None, "return_sequences": False, "return_state": False,
    "go_backwards": False, "stateful": False, "unroll": False, "time_major": False, "units": 3, "activation": "tanh",
    "recurrent_activation": "hard_sigmoid", "use_bias": True, "kernel_initializer": GLOROT,
    "recurrent_initializer": initializer("Orthogonal", gain=1.0, seed=None), "bias_initializer": ZEROS,
    "unit_forget_bias": True, **NOTHING, "recurrent_regularizer": None, "recurrent_constraint": None, "dropout": 0.0,
    "recurrent_dropout": 0.0, "implementation": 1,
}  # fmt: skip
PLAIN = {"name": "x", "trainable": True, "dtype": None}

CONFIGURATIONS = [
    (lambda: layers.Dense(3, name="x"), DENSE),
    (lambda: layers.Dense(3, tf.nn.relu6, name="x"), {**DENSE, "activation": "relu6"}),
    (lambda: layers.Dense(3, "relu", name="x", dtype="float64"), {**DENSE, "activation": "relu", "dtype": "float64"}),
    (
        lambda: layers.Conv2D(2, 3, name="x"),
        {
            **{name: item for name, item in DENSE.items() if name != "units"},
            "filters": 2, "kernel_size": (3, 3), "strides": (1, 1), "padding": "valid", "data_format": "channels_last",
            "dilation_rate": (1, 1),
        },
    ),
    (lambda: layers.LSTM(3, name="x"), LSTM),
    (
        lambda: layers.TimeDistributed(layers.Dense(3, name="x"), name="x"),
        {**PLAIN, "layer": {"class_name": "Dense", "config": DENSE}},
    ),
    (
        lambda: layers.Bidirectional(layers.LSTM(3, name="x"), name="x"),
        {**PLAIN, "layer": {"class_name": "LSTM", "config": LSTM}, "merge_mode": "concat"},
    ),
    (
        lambda: layers.MaxPooling2D(name="x"),
        {**PLAIN, "pool_size": (2, 2), "strides": (2, 2), "padding": "valid", "data_format": "channels_last"},
    ),
    (lambda: layers.ZeroPadding1D(2, name="x"), {**PLAIN, "padding": (2, 2)}),
    (
        lambda: layers.Embedding(5, 2, name="x"),
        {
            **PLAIN, "dtype": "float32", "batch_input_shape": (None, None), "input_dim": 5, "output_dim": 2,
            "embeddings_initializer": initializer("RandomUniform", minval=-0.05, maxval=0.05, seed=None),
            "embeddings_regularizer": None, "activity_regularizer": None, "embeddings_constraint": None,
            "mask_zero": False, "input_length": None,
        },
    ),
    (
        lambda: layers.InputLayer((3,), name="x"),
        {"name": "x", "batch_input_shape": (None, 3), "dtype": "float32", "sparse": False, "ragged": False},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "expected"), CONFIGURATIONS)
def test_configurations_are_those_of_tensorflow(layer, expected):
    """What TensorFlow 1.15 answers."""
    assert layer().get_config() == expected


@pytest.mark.parametrize(("layer", "expected"), CONFIGURATIONS)
def test_a_layer_made_of_a_configuration_has_the_same(layer, expected):
    made = layer()
    assert type(made).from_config(made.get_config()).get_config() == expected


def test_attributes_that_a_program_sets_stand_in_the_configuration():
    model = keras.Sequential([layers.Dense(3, "softmax", input_shape=(2,)), layers.Dropout(0.5)])
    model.layers[0].activation = keras.activations.linear
    model.layers[1].rate = 0.25
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    x = np.array([[1.0, -2.0]], np.float32)
    kernel, bias = model.get_weights()
    np.testing.assert_allclose(clone.predict(x), x @ kernel + bias, rtol=1e-6)
    assert clone.layers[1].rate == 0.25


def shifted(x):
    return tf.nn.relu(x) + 1.0


class Doubled(layers.Layer):
    """Twice the inputs."""

    def call(self, inputs, **kwargs):
        return 2.0 * inputs


def test_what_a_program_has_made_is_cloned_without_a_scope():
    model = keras.Sequential(
        [layers.TimeDistributed(Doubled(), input_shape=(2, 3)), layers.TimeDistributed(layers.Dense(3, shifted))]
    )
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    x = np.random.default_rng(0).normal(size=(2, 2, 3)).astype(np.float32)
    np.testing.assert_allclose(clone.predict(x), model.predict(x), rtol=1e-6)


def test_a_description_is_taken_as_an_argument():
    told = keras.initializers.serialize(keras.initializers.Constant(2.0))
    layer = layers.Dense(3, kernel_initializer=told, use_bias=False)
    with tf.Session() as session:
        y = layer(tf.ones([1, 2]))
        session.run(tf.global_variables_initializer())
        assert session.run(y).tolist() == [[4.0, 4.0, 4.0]]


class Counting(layers.Layer):
    """A cell with attributes that its layer has too."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.state_size, self.stateful, self.unroll = 3, False, "mine"

    def call(self, inputs, states):
        return inputs, states


def test_attributes_of_a_cell_do_not_hide_those_of_its_layer():
    layer = layers.LSTM(2, stateful=True, trainable=False, batch_input_shape=(2, 3, 4), dtype="float64", unroll=True)
    expected = {"stateful": True, "trainable": False, "batch_input_shape": (2, 3, 4), "dtype": "float64"}
    config = layer.get_config()
    assert {name: config[name] for name in expected} == expected
    config = layers.RNN(Counting(), stateful=True, return_sequences=True).get_config()
    assert config["stateful"] is True and config["unroll"] is False
