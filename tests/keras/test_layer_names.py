"""Names of layers' operations and weights, as TensorFlow 1.15 has given them: name scopes alone make them."""

from __future__ import annotations

import pytest

import tfray as tf
from tfray import keras

Dense = keras.layers.Dense


def names(output, layer):
    return output.name, [weight.name for weight in layer.weights]


class Twice(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = Dense(2), Dense(2, name="last")

    def call(self, inputs):
        return self.second(self.first(inputs))


class Mixed(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = Dense(2)

    def build(self, input_shape):
        self.w = self.add_weight("w", [2, 2])
        self.built = True

    def call(self, inputs):
        return self.inner(tf.matmul(inputs, self.w))


def dense(*suffixes):
    return [f"{suffix}/{part}:0" for suffix in suffixes for part in ("kernel", "bias")]


@pytest.mark.parametrize(
    ("make", "first", "weights", "again"),
    [
        (lambda: Dense(3), "dense/BiasAdd:0", dense("dense"), "dense_1/BiasAdd:0"),
        (lambda: Dense(3, name="mine"), "mine/BiasAdd:0", dense("mine"), "mine_1/BiasAdd:0"),
        (
            lambda: keras.Sequential([Dense(3), Dense(2)]),
            "sequential/dense_1/BiasAdd:0",
            dense("sequential/dense", "sequential/dense_1"),
            "sequential_1/dense_1/BiasAdd:0",
        ),
        (
            lambda: keras.Sequential([Dense(3, input_shape=(2,)), Dense(2)]),
            "sequential/dense_1/BiasAdd:0",
            dense("dense", "dense_1"),
            "sequential_1/dense_1/BiasAdd:0",
        ),
        (Twice, "twice/last/BiasAdd:0", dense("twice/dense", "twice/last"), "twice_1/last/BiasAdd:0"),
        (Mixed, "mixed/dense/BiasAdd:0", ["mixed/w:0", *dense("mixed/dense")], "mixed_1/dense/BiasAdd:0"),
    ],
)
def test_a_call_opens_a_name_scope_of_its_own(make, first, weights, again):
    layer, x = make(), tf.placeholder(tf.float32, [None, 2])
    assert names(layer(x), layer) == (first, weights)
    assert names(layer(x), layer) == (again, weights)


def test_name_scopes_around_the_first_call_are_part_of_the_names_of_weights():
    layer, x = Dense(3), tf.placeholder(tf.float32, [None, 2])
    with tf.name_scope("a"):
        assert names(layer(x), layer) == ("a/dense/BiasAdd:0", dense("a/dense"))
    with tf.variable_scope("b"):
        assert layer(x).name == "b/dense/BiasAdd:0"
        other = Dense(3, name="mine")
        assert names(other(x), other) == ("b/mine/BiasAdd:0", dense("b/mine"))


def test_layers_of_one_name_do_not_share_weights_whatever_the_variable_scope_says():
    x = tf.placeholder(tf.float32, [None, 2])
    with tf.variable_scope("scope", reuse=tf.AUTO_REUSE):
        layers = [Dense(3, name="same") for _ in range(2)]
        found = [names(layer(x), layer)[1] for layer in layers]
    assert found == [dense("scope/same"), dense("scope/same_1")]
    assert layers[0].kernel is not layers[1].kernel


def test_layers_of_tf_layers_keep_their_variable_scope():
    layer, x = tf.layers.Dense(3), tf.placeholder(tf.float32, [None, 2])
    with tf.name_scope("a"):
        assert names(layer(x), layer) == ("a/dense/BiasAdd:0", dense("dense"))
        assert layer(x).name == "a/dense/BiasAdd_1:0"


@pytest.mark.parametrize(
    ("make", "weights"),
    [
        (lambda: keras.layers.TimeDistributed(Dense(3)), ["time_distributed/kernel:0", "time_distributed/bias:0"]),
        (
            lambda: keras.layers.RNN([keras.layers.SimpleRNNCell(3), keras.layers.SimpleRNNCell(2)]),
            [f"rnn/{each}{n}:0" for n in ("", "_1") for each in ("kernel", "recurrent_kernel", "bias")],
        ),
    ],
)
def test_weights_of_what_is_within_belong_to_the_layer_around_it(make, weights):
    tf.reset_default_graph()
    layer = make()
    layer(tf.zeros([2, 4, 2]))
    assert [weight.name for weight in layer.weights] == weights
