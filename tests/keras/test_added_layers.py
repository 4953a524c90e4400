"""Operations, losses and metrics that a program adds to a model: they are layers of it, and in its descriptions."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf


def model_with_a_loss_and_a_metric():
    x = tf.keras.Input((4,), name="in")
    hidden = tf.keras.layers.Dense(3, name="h")(x)
    model = tf.keras.Model(x, tf.keras.layers.Dense(2, name="o")(hidden), name="net")
    model.add_loss(tf.reduce_mean(tf.square(hidden)) * 0.1)
    model.add_metric(tf.reduce_mean(hidden), name="mean_h", aggregation="mean")
    return model


def by_file(model, tmp_path):
    model.save(tmp_path / "model.h5")
    return tf.keras.models.load_model(tmp_path / "model.h5")


COPIES = {
    "configuration": lambda model, _: tf.keras.Model.from_config(model.get_config()),
    "text": lambda model, _: tf.keras.models.model_from_json(model.to_json()),
    "clone": lambda model, _: tf.keras.models.clone_model(model),
    "file": by_file,
}


@pytest.mark.parametrize("how", COPIES)
def test_what_is_added_to_a_model_is_in_its_copies(how, tmp_path):
    """Saved and read again it has the same loss: a variational autoencoder keeps its divergence."""
    model = model_with_a_loss_and_a_metric()
    model.compile("sgd", "mse")
    x, y = np.sin(np.arange(24.0)).reshape(6, 4), np.cos(np.arange(12.0)).reshape(6, 2)
    copy = COPIES[how](model, tmp_path)
    if copy.optimizer is None:
        copy.compile("sgd", "mse")
    copy.set_weights(model.get_weights())
    assert copy.metrics_names == model.metrics_names == ["loss", "mean_h"]
    wanted = model.evaluate(x, y, verbose=0)
    np.testing.assert_allclose(copy.evaluate(x, y, verbose=0), wanted, 1e-5)
    hidden = x @ model.get_weights()[0] + model.get_weights()[1]
    predicted = hidden @ model.get_weights()[2] + model.get_weights()[3]
    np.testing.assert_allclose(wanted, [np.mean((predicted - y) ** 2) + 0.1 * np.mean(hidden**2), hidden.mean()], 1e-4)


def test_what_is_added_to_a_model_are_layers_of_it():
    """The names are TensorFlow 1.15's."""
    model = model_with_a_loss_and_a_metric()
    added = [
        "tf_op_layer_Square",
        "tf_op_layer_Mean",
        "tf_op_layer_mul",
        "add_loss",
        "tf_op_layer_Mean_1",
        "add_metric",
    ]
    assert [layer.name for layer in model.layers] == ["in", "h", "o", *added]
    assert [type(layer).__name__ for layer in model.layers[-3::2]] == ["AddLoss", "AddMetric"]
    lines = []
    model.summary(print_fn=lines.append)
    assert any(line.split() == ["add_loss", "(AddLoss)", "()", "0", "tf_op_layer_mul[0][0]"] for line in lines)
    assert "AddLoss" in {layer["class_name"] for layer in model.get_config()["layers"]}


def test_a_model_within_another_adds_its_loss_there_too():
    """The losses of both are what TensorFlow 1.15 gives."""
    x = tf.keras.Input((4,))
    hidden = tf.keras.layers.Dense(3)(x)
    inner = tf.keras.Model(x, hidden)
    inner.add_loss(tf.reduce_mean(tf.square(hidden)) * 0.1)
    inner.add_metric(tf.reduce_mean(hidden), name="mean_h", aggregation="mean")
    given = tf.keras.Input((4,))
    outer = tf.keras.Model(given, tf.keras.layers.Dense(2)(inner(given)))
    x, y = np.sin(np.arange(24.0)).reshape(6, 4), np.cos(np.arange(12.0)).reshape(6, 2)
    found = []
    for model, target in ((outer, y), (inner, y[:, :1] * np.ones((1, 3)))):
        model.set_weights([np.full_like(weight, 0.1) for weight in model.get_weights()])
        model.compile("sgd", "mse")
        history = model.fit(x, target, batch_size=3, epochs=2, shuffle=False, verbose=0).history
        assert history.keys() == {"loss", "mean_h"}
        found.append(history["loss"])
    np.testing.assert_allclose(found[0], [0.48833, 0.4864], atol=1e-5)
    assert found[1][1] < found[1][0]


def test_a_loss_of_another_placeholder_stays_a_tensor():
    x, scale = tf.keras.Input((2,)), tf.placeholder(tf.float32, [])
    hidden = tf.keras.layers.Dense(2)(x)
    model = tf.keras.Model(x, hidden)
    model.add_loss(tf.reduce_sum(hidden) * scale)
    assert [type(layer).__name__ for layer in model.layers] == ["InputLayer", "Dense"] and len(model.losses) == 1


def test_a_description_says_what_it_lacks(caplog):
    """A loss of a Sequential, or of what is no input of the model, is no layer of it."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
    model.get_config()
    assert not caplog.text
    model.add_loss(tf.reduce_mean(model.output))
    model.get_config()
    assert "1 losses and 0 metrics that add_loss and add_metric added are not in its description" in caplog.text


PRODUCT = {
    "name": "mul",
    "trainable": True,
    "dtype": None,
    "node_def": {"name": "mul", "op": "Mul", "input": ["h/BiasAdd", "mul/y"], "attr": {"T": {"type": "DT_FLOAT"}}},
    "constants": {"1": 2.0},
}
"""What TensorFlow 1.15 writes of ``h * 2.0``, where h is a layer's output."""


def test_operations_are_described_as_tensorflow_describes_them():
    x = tf.keras.Input((3,))
    model = tf.keras.Model(x, tf.keras.layers.Dense(2)(x * 2.0))
    layer = model.layers[1]
    config = layer.get_config()
    assert layer.name == "tf_op_layer_mul" and config.keys() == PRODUCT.keys()
    assert {key: config[key] for key in ("name", "dtype", "constants")} == {
        key: PRODUCT[key] for key in ("name", "dtype", "constants")
    }
    assert config["node_def"]["op"] == "Mul" and config["node_def"]["attr"] == PRODUCT["node_def"]["attr"]
    [described] = [each for each in model.get_config()["layers"] if each["name"] == layer.name]
    assert described["class_name"] == "TensorFlowOpLayer"


def test_operations_that_tensorflow_has_described_are_read(session):
    [layer] = [tf.keras.layers.deserialize({"class_name": "TensorFlowOpLayer", "config": PRODUCT})]
    assert layer.name == "tf_op_layer_mul"
    assert session.run(layer(tf.constant([1.0, 3.0]))).tolist() == [2.0, 6.0]


OPERATIONS = {
    "two results": lambda x: tf.concat(tf.split(x, 2, axis=1)[::-1], 1),
    "a constant in front": lambda x: 1.0 - x,
    "one tensor twice": lambda x: x * x,
    "text": lambda x: tf.where(tf.equal(tf.as_string(tf.sign(x), precision=0), "1"), x, -x),
    "only here": lambda x: tf.sequence_mask(tf.cast(tf.abs(x[:, 0]) * 3, tf.int32), 4, tf.float32),
    "a variable": lambda x: x * tf.Variable(3.0),
    "axes": lambda x: tf.reduce_sum(x, [-1], keepdims=True),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_models_with_operations_are_made_anew(name):
    """From text, in another graph: what is no single operation of TensorFlow's is kept as a graph."""
    values = np.random.default_rng(0).normal(size=[5, 4]).astype(np.float32)
    x = tf.keras.Input((4,))
    model = tf.keras.Model(x, tf.keras.layers.Dense(2)(OPERATIONS[name](x)))
    wanted, weights = model.predict(values), model.get_weights()
    text = json.dumps(model.get_config())
    tf.keras.backend.clear_session()
    again = tf.keras.Model.from_config(json.loads(text))
    again.set_weights(weights)
    np.testing.assert_allclose(again.predict(values), wanted, 1e-5)
    third = tf.keras.Model.from_config(again.get_config())
    third.set_weights(weights)
    np.testing.assert_allclose(third.predict(values), wanted, 1e-5)


def test_an_operation_that_nobody_knows_is_named():
    config = {**PRODUCT, "node_def": {**PRODUCT["node_def"], "op": "Fantasy"}}
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no operation 'Fantasy', which 'mul' is"):
        tf.keras.layers.deserialize({"class_name": "TensorFlowOpLayer", "config": config})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_def": {"op": 3}}, "no NodeDef in the form of JSON"),
        ({"node_def": None}, "has no operation"),
        ({"node_def": None, "graph": ""}, "has no operation"),
        ({"node_def": {"name": "mul", "op": "Mul"}}, "'T'"),
    ],
)
def test_descriptions_that_are_damaged(changes, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.keras.layers.deserialize({"class_name": "TensorFlowOpLayer", "config": {**PRODUCT, **changes}})
