"""Weights of Keras models as checkpoints: those of TensorFlow 1.15, and ours."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.archives import unpack
from tests.support.cases import keras_checkpoint_cases as cases
from tfray.errors import InvalidArgumentError
from tfray.formats.meta_graph_proto import TrackableObjectGraph

keras = tf.keras
layers = keras.layers
K = keras.backend


@pytest.fixture(scope="module")
def of_tensorflow(tmp_path_factory):
    """Folders of what TensorFlow 1.15 has saved, by case."""
    folder = tmp_path_factory.mktemp("checkpoints")
    unpack(ROOT / "tests" / "golden" / "keras_checkpoints.tar.xz", folder)
    return {case: folder / str(number) for number, case in enumerate(cases.CASES)}


@pytest.mark.parametrize("case", cases.CASES, ids=" with ".join)
def test_training_goes_on_from_a_checkpoint_of_tensorflow(of_tensorflow, case):
    folder = of_tensorflow[case]
    expected = np.load(folder / "expected.npz")
    model = cases.compiled(tf, *case)
    status = model.load_weights(str(folder / "weights"))
    np.testing.assert_allclose(model.predict(cases.X), expected["saved"], atol=1e-5)
    np.testing.assert_allclose(cases.train(model), expected["further"], atol=1e-5)
    status.assert_consumed()


def description(path):
    """The keys of values, and the names of slots, that the description of the objects in a checkpoint tells."""
    graph = TrackableObjectGraph.FromString(tf.train.load_variable(path, "_CHECKPOINTABLE_OBJECT_GRAPH"))
    values = {each.checkpoint_key: each.full_name for node in graph.nodes for each in node.attributes}
    slots = [each.slot_name for node in graph.nodes for each in node.slot_variables]
    return values, sorted(slots)


@pytest.mark.parametrize("case", cases.CASES, ids=" with ".join)
def test_checkpoints_are_those_of_tensorflow(of_tensorflow, tmp_path, case):
    """Names, shapes, and the description by which TensorFlow finds the values."""
    path, theirs = str(tmp_path / "weights"), str(of_tensorflow[case] / "weights")
    model = cases.compiled(tf, *case)
    cases.train(model)
    model.save_weights(path)
    assert tf.train.list_variables(path) == tf.train.list_variables(theirs)
    own, others = description(path), description(theirs)
    assert own[0].keys() == others[0].keys() and own[1] == others[1]
    assert tf.train.latest_checkpoint(str(tmp_path)) == path


@pytest.mark.parametrize("case", [("chain", "momentum"), ("derived", "adam")], ids=" with ".join)
def test_training_goes_on_as_if_it_had_not_been_stopped(tmp_path, case):
    path = str(tmp_path / "weights")
    model = cases.compiled(tf, *case)
    cases.train(model)
    model.save_weights(path)
    expected = cases.train(model)
    K.clear_session()
    again = cases.compiled(tf, *case)
    again.load_weights(path)
    np.testing.assert_array_equal(cases.train(again), expected)
    again.load_weights(path)  # now all variables are there
    np.testing.assert_array_equal(cases.train(again), expected)


def test_weights_without_a_value_stay_with_a_warning(tmp_path, caplog):
    """As in TensorFlow, where a body that was trained takes another head."""
    path = str(tmp_path / "weights")
    body = keras.Sequential([layers.Dense(3, input_shape=(2,))])
    body.save_weights(path)
    whole = keras.Sequential([layers.Dense(3, input_shape=(2,)), layers.Dense(1)])
    head = whole.layers[1].get_weights()[0]
    whole.load_weights(path)
    np.testing.assert_array_equal(whole.layers[0].get_weights()[0], body.get_weights()[0])
    np.testing.assert_array_equal(whole.layers[1].get_weights()[0], head)
    assert "has no value of layer_with_weights-1/bias/" in caplog.text
    assert "layer_with_weights-1/kernel/" in caplog.text
    whole.compile("adam", "mse")
    whole.fit(np.ones([2, 2]), np.ones([2, 1]), verbose=0)
    assert caplog.text.count("has no value of") == 1


def test_weights_of_another_model_change_nothing(tmp_path):
    path = str(tmp_path / "weights")
    keras.Sequential([layers.Dense(3, input_shape=(2,)), layers.Dense(1)]).save_weights(path)
    other = keras.Sequential([layers.Dense(3, input_shape=(2,)), layers.Dense(2)])
    before = other.get_weights()
    with pytest.raises(InvalidArgumentError, match=r"layer_with_weights-1/\w+/\S+ has the shape"):
        other.load_weights(path)
    for value, now in zip(before, other.get_weights(), strict=True):
        np.testing.assert_array_equal(value, now)
    tf.train.Checkpoint(number=tf.Variable(1.0)).write(str(tmp_path / "number"), session=K.get_session())
    with pytest.raises(AssertionError, match="has no value of any object"):
        other.load_weights(str(tmp_path / "number"))


def test_a_checkpoint_of_a_model_and_its_optimizer(tmp_path):
    """By names that TensorFlow has, whoever saves it."""
    model = cases.compiled(tf, "chain", "adam")
    cases.train(model)
    saved = tf.train.Checkpoint(net=model, opt=model.optimizer).write(str(tmp_path / "both"), session=K.get_session())
    names = dict(tf.train.list_variables(saved))
    assert names["net/layer_with_weights-0/kernel/.OPTIMIZER_SLOT/opt/m/.ATTRIBUTES/VARIABLE_VALUE"] == [6, 5]
    assert {f"opt/{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("beta_1", "decay", "iter")} <= names.keys()


def test_a_layer_may_name_what_it_holds_for_checkpoints(tmp_path):
    """As wrappers do, of TensorFlow's model optimization for one."""

    class Around(layers.Layer):
        def __init__(self, layer):
            super().__init__()
            self._held = [layer]
            self._track_trackable(layer, name="inner")

        def build(self, input_shape):
            self._held[0].build(input_shape)
            super().build(input_shape)

        def call(self, inputs):
            return self._held[0](inputs)

    around = Around(layers.Dense(1))
    model = keras.Sequential([keras.Input([2]), around])
    model.save_weights(str(tmp_path / "weights"))
    names = dict(tf.train.list_variables(str(tmp_path / "weights")))
    assert names["layer_with_weights-0/inner/kernel/.ATTRIBUTES/VARIABLE_VALUE"] == [2, 1]
    with pytest.raises(ValueError, match="name='inner'"):
        around._track_trackable(layers.Dense(1), "inner")
    other = layers.Dense(1)
    assert around._track_trackable(other, "inner", overwrite=True) is other


def test_weights_have_the_names_of_their_layers_and_cells_their_places(tmp_path):
    class Scale(layers.Layer):
        def build(self, input_shape):
            self.k = self.add_weight("kern", shape=(int(input_shape[-1]), 3))
            self.n = self.add_weight(name="count", shape=(), initializer="zeros", trainable=False)
            super().build(input_shape)

        def call(self, inputs):
            return K.dot(inputs, self.k) * (1.0 + self.n)

    inputs = layers.Input((4, 3))
    states = layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)])(inputs)
    model = keras.Model(inputs, Scale()(states))
    model.save_weights(str(tmp_path / "weights"), save_format="tf")
    names = [name.split("/.")[0] for name, _ in tf.train.list_variables(str(tmp_path / "weights"))[1:]]
    cells = [f"layer_with_weights-0/cell/cells/{place}" for place in (0, 1)]
    of_cells = [f"{cell}/{kind}" for cell in cells for kind in ("bias", "kernel", "recurrent_kernel")]
    assert names == [*of_cells, "layer_with_weights-1/count", "layer_with_weights-1/kern"]  # those of TensorFlow 1.15
    saved = model.get_weights()
    model.set_weights([value + 1 for value in saved])
    model.load_weights(str(tmp_path / "weights"))
    for value, expected in zip(model.get_weights(), saved, strict=True):
        np.testing.assert_array_equal(value, expected)
