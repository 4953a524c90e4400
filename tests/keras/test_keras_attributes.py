"""What programs read of layers: the attributes that TensorFlow 2.21's Keras showed for the same layers, and nodes."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
layers = keras.layers

ATTRIBUTES = [
    (lambda: layers.Conv1D(4, 3), {"kernel_size": (3,), "strides": (1,), "padding": "valid", "dilation_rate": (1,)}),
    (lambda: layers.Conv1D(4, 3, padding="causal"), {"padding": "causal"}),
    (lambda: layers.Conv2D(4, 3, padding="SAME"), {"kernel_size": (3, 3), "strides": (1, 1), "padding": "same"}),
    (lambda: layers.Conv3DTranspose(4, 3), {"kernel_size": (3, 3, 3), "padding": "valid", "output_padding": None}),
    (lambda: layers.SeparableConv2D(4, 3), {"depth_multiplier": 1, "depthwise_regularizer": None}),
    (lambda: layers.DepthwiseConv2D(3), {"kernel_size": (3, 3), "padding": "valid", "depth_multiplier": 1}),
    (lambda: layers.MaxPooling2D(), {"pool_size": (2, 2), "strides": (2, 2), "padding": "valid"}),
    (lambda: layers.ZeroPadding1D(2), {"padding": (2, 2)}),
    (lambda: layers.ZeroPadding2D((1, 2)), {"padding": ((1, 1), (2, 2))}),
    (lambda: layers.Cropping2D(1), {"cropping": ((1, 1), (1, 1))}),
    (lambda: layers.UpSampling1D(), {"size": 2}),
    (lambda: layers.UpSampling2D(3), {"size": (3, 3)}),
    (lambda: layers.Reshape([2, 3]), {"target_shape": (2, 3)}),
    (lambda: layers.Permute([2, 1]), {"dims": (2, 1)}),
    (lambda: layers.LSTM(3, dropout=0.5), {"units": 3, "dropout": 0.5, "use_bias": True, "unit_forget_bias": True}),
    (lambda: layers.GRU(3, activation="softmax"), {"units": 3, "activation": keras.activations.softmax}),
    (lambda: layers.ConvLSTM2D(3, 2), {"filters": 3, "kernel_size": (2, 2), "padding": "valid"}),
    (lambda: layers.LayerNormalization(), {"center": True, "scale": True, "gamma_regularizer": None}),
    (lambda: layers.ActivityRegularization(0.25), {"l1": 0.25, "l2": 0.0}),
    (lambda: layers.Dense(3), {"units": 3, "activation": keras.activations.linear, "use_bias": True}),
    (lambda: tf.layers.Conv2D(3, 2), {"padding": "valid", "strides": (1, 1), "kernel_initializer": None}),
]


@pytest.mark.parametrize(("make", "attributes"), ATTRIBUTES)
def test_attributes(make, attributes):
    layer = make()
    assert {name: getattr(layer, name) for name in attributes} == attributes


@pytest.mark.parametrize(
    ("make", "name", "kind"),
    [
        (lambda: layers.Dense(3), "kernel_initializer", "GlorotUniform"),
        (lambda: layers.Conv2D(3, 2), "bias_initializer", "Zeros"),
        (lambda: layers.BatchNormalization(), "gamma_initializer", "Ones"),
        (lambda: layers.LSTM(3), "recurrent_initializer", "Orthogonal"),
        (lambda: layers.Dense(3, kernel_regularizer="l2"), "kernel_regularizer", "L1L2"),
    ],
)
def test_what_layers_are_given_by_name_are_objects(make, name, kind):
    assert type(getattr(make(), name)).__name__ == kind


def test_attributes_of_a_layer_that_a_program_derives_are_those_of_its_cell():
    class Own(layers.LSTM):
        def __init__(self, **kwargs):
            super().__init__(7, activation="relu", **kwargs)

    layer = Own()
    assert (layer.units, layer.activation) == (7, keras.activations.relu)
    with pytest.raises(AttributeError, match="'Own' object has no attribute 'nonsense'"):
        _ = layer.nonsense
    with pytest.raises(AttributeError, match="was called 0 times"):
        _ = layer.output


def test_a_regularizer_of_outputs_can_be_set():
    class Scaled(layers.Layer):
        def __init__(self):
            super().__init__()
            self.activity_regularizer = keras.regularizers.get("l2")

    layer = Scaled()
    layer(tf.ones([4, 5]))
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(layer.losses), [0.01 * 20 / 4], rtol=1e-6)


def test_nodes_lead_from_layer_to_layer():
    a, b = keras.Input([4]), keras.Input([4])
    shared, joined = layers.Dense(3), layers.Add()
    joined([shared(a), shared(b)])
    first, second = shared.inbound_nodes
    assert first.inbound_layers.input_shape == (None, 4) and first.inbound_layers.inbound_nodes[0].inbound_layers == []
    assert second.output_shapes == (None, 3) and second.outbound_layer is shared
    node = joined.inbound_nodes[0]
    assert node.inbound_layers == [shared, shared]
    assert (node.node_indices, node.tensor_indices) == ([0, 1], [0, 0])
    assert node.input_shapes == [(None, 3)] * 2
    assert [each[:3] for each in node.iterate_inbound()] == [(shared, 0, 0), (shared, 1, 0)]
    assert [each.outbound_layer for each in shared.outbound_nodes] == [joined]


def test_a_model_that_begins_with_an_embedding_knows_its_inputs():
    model = keras.Sequential([layers.Embedding(10, 3), layers.LSTM(2)])
    assert (model.input_shape, model.output_shape) == ((None, None), (None, 2))
    model.build()
    assert model.predict(np.array([[1, 2, 9]])).shape == (1, 2)


def test_values_that_are_no_variables_are_given_as_they_are():
    assert keras.backend.get_value(1.5) == 1.5


@pytest.mark.parametrize("name", keras.activations.__all__)
def test_activations_of_layers_are_those_that_programs_compare_them_with(name):
    function = getattr(keras.activations, name)
    if name not in ("deserialize", "get", "serialize"):
        assert layers.Dense(1, activation=name).activation is function is keras.activations.get(name)


@pytest.mark.parametrize(
    ("arguments", "expected", "slopes"),
    [
        ({}, [0, 0, 0, 2, 8], [0, 0, 0, 1, 1]),
        ({"alpha": 0.5}, [-2, -0.5, 0, 2, 8], [0.5, 0.5, 0.5, 1, 1]),
        ({"max_value": 6}, [0, 0, 0, 2, 6], [0, 0, 0, 1, 0]),
        ({"max_value": 5, "alpha": 0.5}, [-2, -0.5, 0, 2, 5], [0.5, 0.5, 0, 1, 0]),
        ({"threshold": 2}, [0, 0, 0, 0, 8], [0, 0, 0, 0, 1]),
        ({"threshold": 1, "alpha": 0.5}, [-2.5, -1, -0.5, 2, 8], [0.5, 0.5, 0.5, 1, 1]),
    ],
)
def test_rectified_values_are_tensorflows(arguments, expected, slopes):
    x = tf.constant([-4.0, -1.0, 0.0, 2.0, 8.0])
    y = keras.backend.relu(x, **arguments)
    with tf.Session() as session:
        found = session.run([y, tf.gradients(y, x)[0]])
    np.testing.assert_allclose(found, [expected, slopes])


@pytest.mark.parametrize(
    ("arguments", "dtype", "expected"),
    [
        ((3,), "int32", [0, 1, 2]),
        ((0.0, 5, 2.0), "float32", [0, 2, 4]),  # the default int32 converts nothing
        ((2, -1, -1, "float32"), "float32", [2, 1, 0]),
    ],
)
def test_ranges(arguments, dtype, expected):
    numbers = keras.backend.arange(*arguments)
    assert numbers.dtype == dtype
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(numbers), expected)


def test_optimizers_have_the_limits_that_they_were_given():
    optimizer = keras.optimizers.SGD(0.1, clipnorm=2.0)
    assert optimizer.clipnorm == 2.0 and not hasattr(optimizer, "clipvalue")


DENSE = {"units": 2, "dtype": "float64"}


@pytest.mark.parametrize(
    ("first", "name", "dtype"),
    [  # names and types as in TensorFlow 1.15
        (lambda: layers.Dense(2, input_shape=(3,), name="a"), "a_input", "float32"),
        (lambda: layers.Dense(**DENSE, input_shape=(3,), name="a"), "a_input", "float64"),
        (lambda: layers.Flatten(input_shape=(3,), dtype="int32", name="a"), "a_input", "int32"),
        (lambda: layers.InputLayer((3,), dtype="float64", name="x"), "x", "float64"),
        (lambda: keras.Sequential([layers.Dense(**DENSE, input_shape=(3,))], "s"), "s_input", "float64"),
    ],
    ids=["dense", "dense of float64", "flat integers", "an input", "a model"],
)
def test_the_input_of_a_sequential_model_has_the_dtype_of_its_first_layer(first, name, dtype):
    model = keras.Sequential([first()])
    if not model.layers:
        model.add(layers.Dense(**DENSE))
    (source,) = model.inputs
    assert (model.input_names, source.dtype.base_dtype.name, source.shape.as_list()) == ([name], dtype, [None, 3])
    assert model.predict(np.ones([2, 3])).dtype == dtype
    again = keras.Sequential.from_config(model.get_config())
    assert [each.dtype for each in again.inputs] == [source.dtype] == [keras.models.clone_model(model).inputs[0].dtype]


def test_an_input_layer_is_the_input_of_a_sequential_model():
    given = tf.placeholder(tf.float64, [None, 3], name="own")
    layer = layers.InputLayer(input_tensor=given, name="x")
    model = keras.Sequential([layer, layers.Dense(**DENSE)])
    assert model.inputs == [given] and model.input_names == ["x"] and layer.output is given
    assert [type(each).__name__ for each in model.layers] == ["Dense"]
    with pytest.raises(ValueError, match="needs a shape or a tensor"):
        keras.Sequential([layers.InputLayer()])
