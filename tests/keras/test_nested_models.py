"""Models within models, and layers that are called several times."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
layers = keras.layers
X = np.random.default_rng(0).normal(size=[6, 4]).astype(np.float32)


@pytest.fixture
def inner():
    return keras.Sequential([layers.Dense(3, input_shape=(4,), name="a"), layers.Dense(2, name="b")], name="inner")


def test_a_model_is_its_own_first_node(inner):
    """As in TensorFlow, so that ``get_output_at(1)`` is what the first call has made."""
    image = keras.Input([4], name="image")
    model = keras.Model(image, layers.Dense(1, name="c")(inner(image)))
    assert inner.get_output_at(0) is inner.output and inner.get_input_at(1) is image
    assert inner.inbound_nodes[0].sources == () and len(inner.inbound_nodes) == 2
    part = keras.Model(model.input, inner.get_output_at(1))
    np.testing.assert_allclose(part.predict(X), inner.predict(X), rtol=1e-5)


def test_a_layer_that_is_called_twice_with_one_tensor(inner):
    """Each call is one of its own: in the description, and in the table."""
    image, other = keras.Input([4], name="image"), keras.Input([4], name="other")
    keras.Model(image, inner(image))
    model = keras.Model([image, other], layers.add([inner(image), inner(other)], name="sum"))
    nodes = {layer["name"]: layer["inbound_nodes"] for layer in model.get_config()["layers"]}
    assert nodes["sum"] == [[["inner", 1, 0, {}], ["inner", 2, 0, {}]]]
    assert nodes["inner"] == [[["image", 0, 0, {}]], [["other", 0, 0, {}]]]
    again = keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_allclose(again.predict([X, X[::-1]]), model.predict([X, X[::-1]]), rtol=1e-5)
    noise = layers.Dropout(0.5)
    twice = keras.Model(image, layers.add([noise(image), noise(image)]))
    assert len(keras.Model.from_config(twice.get_config()).layers[1].inbound_nodes) == 2


def test_tables_show_the_calls_of_their_model_alone(inner):
    image, other = keras.Input([4], name="image"), keras.Input([4], name="other")
    chain = keras.Model(image, layers.Dense(1)(inner(image)))
    model = keras.Model([image, other], layers.add([inner(image), inner(other)], name="sum"))

    def rows(shown):
        lines: list[str] = []
        shown.summary(print_fn=lines.append)
        return [line.split() for line in lines]

    assert ["Layer", "(type)", "Output", "Shape", "Param", "#"] in rows(chain)
    assert rows(model)[8:13:2] == [
        ["inner", "(Sequential)", "(None,", "2)", "23", "image[0][0]"],
        ["_" * 98],
        ["inner[3][0]"],
    ]


class Derived(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(3, activation="relu"), layers.Dense(1)

    def call(self, inputs):
        return self.second(self.first(inputs))


@pytest.mark.parametrize("make", [Derived, lambda: keras.Sequential([layers.Dense(3), layers.Dense(1)])])
def test_weights_wait_for_a_model_without_any(make, tmp_path):
    """A checkpoint is read when the model is first called; a file is refused before."""
    model = make()
    expected = model.predict(X)
    model.save_weights(str(tmp_path / "weights"))
    model.save_weights(str(tmp_path / "weights.h5"))
    again = make()
    again.load_weights(str(tmp_path / "weights"))
    np.testing.assert_allclose(again.predict(X), expected, rtol=1e-5)
    called = make()
    called.load_weights(str(tmp_path / "weights"))
    np.testing.assert_allclose(keras.backend.get_value(called(tf.constant(X))), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="has not created its variables yet"):
        make().load_weights(str(tmp_path / "weights.h5"))


@pytest.mark.parametrize("regularizer", [None, keras.regularizers.l2(0.1)], ids=["plain", "penalised"])
def test_what_a_model_within_adds_is_of_the_inputs_of_the_whole(regularizer):
    """It was built on an input of its own, which nobody feeds: updates and losses of that one are left out."""
    inner = keras.Sequential(
        [
            layers.Dense(3, input_shape=(4,), activity_regularizer=regularizer, kernel_initializer="ones"),
            layers.BatchNormalization(momentum=0.5),
        ]
    )
    image = keras.Input([4])
    model = keras.Model(image, layers.Dense(1, kernel_initializer="zeros")(inner(image)))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    loss = model.train_on_batch(X, np.zeros([6, 1]))
    seen = X.sum(1)
    np.testing.assert_allclose(loss, 0.1 * 3 * np.square(seen).sum() / 6 if regularizer else 0.0, rtol=1e-5)
    np.testing.assert_allclose(inner.layers[1].get_weights()[2], np.full(3, seen.mean() / 2), rtol=1e-5)


def test_losses_of_a_layer_that_inner_models_share_count_in_each():
    keras = tf.keras
    shared = keras.layers.Dense(
        2,
        kernel_initializer="ones",
        kernel_regularizer=keras.regularizers.l2(0.1),
        activity_regularizer=keras.regularizers.l1(0.01),
    )
    inner = []
    for _ in range(2):
        given = keras.layers.Input((3,))
        inner.append(keras.Model(given, shared(given)))
    both = [keras.layers.Input((3,)), keras.layers.Input((3,))]
    outputs = [model(given) for model, given in zip(inner, both, strict=True)]
    model = keras.Model(both, keras.layers.Average()(outputs))
    model.compile("sgd", "mse")
    # In each of the two: the weights, and the outputs of all four calls, of which two depend on the model's inputs.
    assert len(model.losses) == 10 and len(model.trainable_weights) == 2
    assert len(model.get_losses_for(None)) == 2 and len(model.get_losses_for(model.inputs)) == 4
    ones = np.ones([4, 3], np.float32)
    weights, activity = 2 * 0.1 * 6, 2 * 0.01 * (24 + 48) / 4
    found = model.evaluate([ones, 2 * ones], np.zeros([4, 2]), verbose=0)
    np.testing.assert_allclose(found, 4.5**2 + weights + activity, 1e-6)
