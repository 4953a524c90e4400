"""Whole Keras models in files, and as descriptions: what is loaded predicts and trains on like what was saved."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.archives import unpack
from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError
from tfray.keras.files import checksums, hdf5_weights

GOLDEN = ROOT / "tests" / "golden" / "keras_models.tar.xz"

keras = tf.keras
layers = keras.layers


class Scale(layers.Layer):
    """A layer of the program's own, whose arguments nothing else tells."""

    def __init__(self, start, **kwargs):
        super().__init__(**kwargs)
        self.start = start

    def build(self, input_shape):
        self.factor = self.add_weight("factor", [], initializer=tf.constant_initializer(self.start))
        super().build(input_shape)

    def call(self, inputs):
        return inputs * self.factor


class Small(keras.Model):
    """A model of the program's own."""

    def __init__(self, units):
        super().__init__()
        self.dense = layers.Dense(units)

    def call(self, inputs):
        return self.dense(inputs)


def half(x):
    return x / 2.0


def squared(y_true, y_pred):
    return tf.reduce_mean(tf.square(y_pred - y_true), -1)


OWN = {"Scale": Scale, "Small": Small, "half": half, "squared": squared}


def stack():
    return keras.Sequential(
        [
            layers.Dense(
                6,
                activation="relu",
                input_shape=(4,),
                kernel_regularizer=keras.regularizers.l2(0.01),
                kernel_initializer=keras.initializers.he_normal(seed=3),
            ),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.Dense(2, tf.nn.tanh, False, name="last"),
        ],
        name="stack",
    )


def pictures():
    return keras.Sequential(
        [
            keras.Input([4]),
            layers.Reshape((4, 1, 1)),
            layers.Conv2D(3, (2, 1), padding="same", activation=tf.nn.relu6),
            layers.MaxPooling2D((2, 1)),
            layers.ZeroPadding2D(((1, 0), (0, 1))),
            layers.LeakyReLU(0.1),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )


def sequences():
    return keras.Sequential(
        [
            layers.Embedding(10, 3, input_length=4),
            layers.LSTM(3, "sigmoid", return_sequences=True, unit_forget_bias=False),
            layers.GRU(2),
        ]
    )


def branches():
    x = keras.Input([4], name="x")
    shared = layers.Dense(3, name="shared")
    first, second = shared(x), shared(layers.Activation("tanh")(x))
    joined = layers.concatenate([first, second], axis=1)
    inner = keras.Sequential([layers.Dense(2, input_shape=(6,))])
    return keras.Model(x, layers.Add()([inner(joined), layers.Dense(2)(first)]))


def states():
    """An encoder's states begin a decoder, and two outputs of one call are used."""
    x = keras.Input([4])
    steps = layers.Reshape((2, 2))(x)
    _, *state = layers.LSTM(3, return_state=True)(steps)
    decoded, _, memory = layers.LSTM(3, return_sequences=True, return_state=True)(steps, initial_state=state)
    return keras.Model(x, layers.Dense(2)(layers.concatenate([layers.Flatten()(decoded), memory])))


class OfAMethod(keras.Model):
    """A model of which a method says what it computes."""

    def call(self, inputs):
        return 2 * inputs


def own_parts():
    return keras.Sequential([Scale(3.0, input_shape=(4,)), layers.Lambda(half), layers.Dense(2)])


MODELS = [stack, pictures, sequences, branches, states, own_parts]


def data(model):
    random = np.random.default_rng(0)
    x = random.integers(0, 10, (12, 4)) if model is sequences else random.normal(size=(12, 4)).astype(np.float32)
    return x, random.normal(size=(12, 2)).astype(np.float32)


@pytest.mark.rows(every=2)
@pytest.mark.parametrize("new_graph", [True, False])
@pytest.mark.parametrize("build", MODELS)
def test_a_loaded_model_predicts_as_the_saved_one(tmp_path, build, new_graph):
    x, _ = data(build)
    model = build()
    path = str(tmp_path / "model.h5")
    expected, weights, names = model.predict(x), model.get_weights(), [layer.name for layer in model.layers]
    model.save(path)
    with (tf.Graph() if new_graph else tf.get_default_graph()).as_default():
        loaded = keras.models.load_model(path, OWN)
        assert type(loaded) is type(model) and loaded.optimizer is None
        assert [layer.name for layer in loaded.layers] == names
        np.testing.assert_allclose(loaded.predict(x), expected, rtol=1e-6)
        loaded.set_weights([0 * weight for weight in weights])
        loaded.load_weights(path)
        np.testing.assert_allclose(loaded.predict(x), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict(x), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "optimizer",
    [
        "adam",
        lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        lambda: keras.optimizers.RMSprop(learning_rate=0.01, decay=0.1),
        lambda: keras.optimizers.Adagrad(0.05, clipnorm=1.0),
    ],
)
@pytest.mark.parametrize("build", [branches, own_parts])
def test_training_goes_on_where_it_was(tmp_path, build, optimizer):
    x, y = data(build)
    path = str(tmp_path / "model")
    model = build()
    loss = keras.losses.Huber(0.5) if build is branches else squared
    model.compile(optimizer if isinstance(optimizer, str) else optimizer(), loss, metrics=["mae", squared])
    model.fit(x, y, epochs=2, verbose=0, shuffle=False)
    keras.backend.set_value(model.optimizer.lr, 0.02)
    model.save(path)
    continued, predictions = [model.train_on_batch(x, y) for _ in range(3)], model.predict(x)
    with tf.Graph().as_default():
        loaded = keras.models.load_model(path, OWN)
        np.testing.assert_allclose([loaded.train_on_batch(x, y) for _ in range(3)], continued, rtol=1e-4)
        assert loaded.metrics_names == model.metrics_names
        np.testing.assert_allclose(loaded.predict(x), predictions, rtol=1e-3)
        for compiled in (keras.models.load_model(path, OWN, compile=False), _saved_without_optimizer(loaded, path)):
            assert compiled.optimizer is None


def _saved_without_optimizer(model, path):
    model.save(path, include_optimizer=False)
    return keras.models.load_model(path, OWN)


def test_a_model_without_a_training_step_is_compiled_too(tmp_path):
    x, y = data(stack)
    model = stack()
    model.compile(keras.optimizers.SGD(0.25), "mse")
    keras.models.save_model(model, str(tmp_path / "model"))
    loaded = keras.models.load_model(str(tmp_path / "model"))
    assert keras.backend.get_value(loaded.optimizer.lr) == 0.25
    assert loaded.evaluate(x, y, verbose=0) == pytest.approx(model.evaluate(x, y, verbose=0))
    assert np.isfinite(loaded.train_on_batch(x, y))


def test_without_h5py_models_are_in_a_format_of_tfrays_own(tmp_path, monkeypatch):
    monkeypatch.setattr("tfray.keras.files.hdf5_weights.can_write", lambda: False)
    x, y = data(branches)
    model = branches()
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(x, y, verbose=0)
    model.save(str(tmp_path / "model.h5"))
    assert zipfile.is_zipfile(tmp_path / "model.h5")
    continued = [model.train_on_batch(x, y) for _ in range(2)]
    with tf.Graph().as_default():
        loaded = keras.models.load_model(str(tmp_path / "model.h5"))
        np.testing.assert_allclose([loaded.train_on_batch(x, y) for _ in range(2)], continued, rtol=1e-4)


def test_models_that_data_have_built(tmp_path):
    x, _ = data(stack)
    for model in (Small(2), keras.Sequential([layers.Dense(2), Scale(2.0)])):
        expected = model.predict(x)
        model.save(str(tmp_path / "model"))
        loaded = keras.models.load_model(str(tmp_path / "model"), OWN)
        np.testing.assert_allclose(loaded.predict(x), expected, rtol=1e-6)


@pytest.mark.parametrize("build", MODELS)
def test_descriptions_are_text_and_make_new_models(build):
    x, _ = data(build)
    model = build()
    told = model.to_json(sort_keys=True)
    again = keras.models.model_from_json(told, OWN)
    assert [weight.shape for weight in again.get_weights()] == [weight.shape for weight in model.get_weights()]
    assert json.loads(again.to_json())["config"]["name"] == model.name
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    np.testing.assert_allclose(copy.predict(x), model.predict(x), rtol=1e-6)
    assert not {*copy.variables} & {*model.variables}


def test_configurations_of_layers():
    layer = layers.Dense(3, "relu", name="first", use_bias=False)
    layer.trainable = False
    config = layer.get_config()
    given = {"units": 3, "activation": "relu", "name": "first", "use_bias": False, "trainable": False}
    assert given.items() <= config.items() and config["bias_regularizer"] is None
    assert not layers.Dense.from_config(config).trainable
    assert keras.models.model_from_config(json.loads(stack().to_json())).get_layer("last").name == "last"


def test_checkpoints_hold_models(tmp_path):
    x, y = data(stack)
    whole, weights = str(tmp_path / "whole"), str(tmp_path / "weights")
    model = stack()
    model.compile("sgd", "mse")
    callbacks = [
        keras.callbacks.ModelCheckpoint(whole),
        keras.callbacks.ModelCheckpoint(weights, save_weights_only=True),
    ]
    model.fit(x, y, epochs=1, verbose=0, callbacks=callbacks)
    np.testing.assert_allclose(keras.models.load_model(whole).predict(x), model.predict(x), rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match=r"weights alone.*load_weights"):
        keras.models.load_model(weights)


def test_a_checkpoint_of_what_has_no_description_holds_weights(tmp_path):
    x, y = data(stack)
    model = keras.Sequential([layers.Lambda(lambda v: v * 2.0, input_shape=(4,)), layers.Dense(2)])
    model.compile("sgd", "mse")
    with pytest.raises(InvalidArgumentError, match="has no name: use a function that `def` names"):
        model.save(str(tmp_path / "model"))
    model.fit(x, y, epochs=1, verbose=0, callbacks=[keras.callbacks.ModelCheckpoint(str(tmp_path / "model"))])
    before = model.get_weights()
    model.train_on_batch(x, y)
    model.load_weights(str(tmp_path / "model"))
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


def test_an_optimizer_of_tf_train_is_not_saved(tmp_path):
    model = stack()
    model.compile(tf.train.AdamOptimizer(), "mse")
    model.save(str(tmp_path / "model"))
    assert keras.models.load_model(str(tmp_path / "model")).optimizer is None


def test_files_that_cannot_be_loaded(tmp_path):
    path = tmp_path / "model"
    own_parts().save(str(path))
    with pytest.raises(InvalidArgumentError, match="'Scale', which is not of tfray: give it as custom_objects"):
        keras.models.load_model(str(path))
    with pytest.raises(tf.errors.AlreadyExistsError):
        own_parts().save(str(path), overwrite=False)
    with pytest.raises(InvalidArgumentError, match="save_format is 'tf'"):
        own_parts().save(str(path), save_format="tf")
    with pytest.raises(NotImplementedError, match="requires the model to be a Functional model or a Sequential model"):
        OfAMethod().save(str(path), save_format="h5")
    with pytest.raises(InvalidArgumentError, match="is a folder"):
        keras.models.load_model(str(tmp_path))
    with pytest.raises(NotFoundError):
        keras.models.load_model(str(tmp_path / "none"))
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(DataLossError, match="damaged"):
        keras.models.load_model(str(path))
    path.write_bytes(b"nothing")
    with pytest.raises(DataLossError):
        keras.models.load_model(str(path))


@pytest.mark.parametrize(
    ("told", "error"),
    [
        (b"{", DataLossError),
        (b"[]", DataLossError),
        (b'{"model": {"function": "os.system"}, "inputs": []}', InvalidArgumentError),
        (b'{"model": {"class_name": "layers.functools", "config": {}}, "inputs": []}', InvalidArgumentError),
        (b'{"model": {"class_name": "models.load_model", "config": {}}, "inputs": []}', InvalidArgumentError),
        (b'{"model": {"class_name": "layers.Dense", "config": {"units": 3}}, "inputs": []}', InvalidArgumentError),
        (b'{"model": {"class_name": "layers.Dense", "config": {"wrong": 3}}, "inputs": []}', InvalidArgumentError),
        (b'{"model": {"class_name": "models.Model", "config": {"name": "m"}}, "inputs": []}', InvalidArgumentError),
    ],
)
def test_descriptions_name_public_parts_only(tmp_path, told, error):
    np.savez(tmp_path / "model.npz", model=np.frombuffer(told, np.uint8))
    assert zipfile.is_zipfile(tmp_path / "model.npz")
    with pytest.raises(error):
        keras.models.load_model(str(tmp_path / "model.npz"))


class Doubled(keras.layers.Layer):
    """Twice what it takes."""

    def call(self, inputs):
        return 2 * inputs


def test_a_scope_names_classes_of_the_program():
    x = keras.Input((3,))
    text = keras.Model(x, Doubled()(x)).to_json()
    with pytest.raises(InvalidArgumentError, match="Doubled"):
        keras.models.model_from_json(text)
    with keras.utils.custom_object_scope({"Doubled": Doubled}):
        model = keras.models.model_from_json(text)
    np.testing.assert_array_equal(model.predict(np.ones((2, 3), np.float32)), np.full((2, 3), 2))
    assert "Doubled" not in keras.utils.get_custom_objects()


# -- folders for serving ---------------------------------------------------------------------------------


def test_an_exported_model_is_served_and_loaded(tmp_path):
    x, y = data(stack)
    model = stack()
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    path, expected = str(tmp_path / "model"), model.predict(x)
    keras.experimental.export_saved_model(model, path)
    keras.experimental.export_saved_model(model, str(tmp_path / "served"), serving_only=True)
    names = model.input_names[0], model.output_names[0]
    keras.backend.clear_session()
    loaded = keras.experimental.load_from_saved_model(path)
    np.testing.assert_allclose(loaded.predict(x), expected, rtol=1e-6)
    with tf.Session(graph=tf.Graph()) as session:
        signature = tf.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
        found = session.run(signature.outputs[names[1]].name, {signature.inputs[names[0]].name: x})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(NotFoundError, match="for serving only"):
        keras.experimental.load_from_saved_model(str(tmp_path / "served"))
    with pytest.raises(ValueError, match="has no inputs yet"):
        keras.experimental.export_saved_model(keras.Sequential([layers.Dense(2)]), str(tmp_path / "none"))


# -- files of HDF5 -------------------------------------------------------------------------------------


def two_layers(names=("first", "second"), units=3):
    model = keras.Sequential(
        [layers.Dense(units, input_shape=(4,), name=names[0]), layers.BatchNormalization(name="norm")]
    )
    model.add(layers.Dense(2, name=names[1]))
    return model


def written_as_keras_does(path, model, within=None, split=False):
    """A file of weights, by the layout that Keras's documentation and files show; the weights by layer."""
    h5py = pytest.importorskip("h5py")
    random = np.random.default_rng(0)
    stored = {}
    with h5py.File(path, "w") as file:
        root = file.create_group(within) if within else file
        names = np.array([layer.name.encode() for layer in model.layers])
        if split:
            root.attrs["layer_names0"], root.attrs["layer_names1"] = names[:1], names[1:]
        else:
            root.attrs["layer_names"] = names
        for layer in model.layers:
            group = root.create_group(layer.name)
            weights = layer.trainable_weights + layer.non_trainable_weights
            stored[layer.name] = [random.random(weight.shape.as_list(), np.float32) for weight in weights]
            group.attrs["weight_names"] = np.array([weight.name.encode() for weight in weights])
            for weight, value in zip(weights, stored[layer.name], strict=True):
                group[weight.name] = value
    return stored


def assert_weights(model, stored):
    for layer in model.layers:
        for weight, value in zip(layer.get_weights(), stored[layer.name], strict=True):
            np.testing.assert_array_equal(weight, value)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(("within", "split"), [(None, False), ("model_weights", False), (None, True)])
def test_weights_of_keras_are_read(tmp_path, within, split, by_name):
    model = two_layers()
    path = str(tmp_path / "weights.h5")
    stored = written_as_keras_does(path, model, within, split)
    model.load_weights(path, by_name=by_name)
    assert_weights(model, stored)


def test_weights_are_found_by_the_names_of_layers(tmp_path):
    path = str(tmp_path / "weights.h5")
    stored = written_as_keras_does(path, two_layers())
    model = two_layers(("first", "another"))
    before = model.layers[2].get_weights()
    model.load_weights(path, by_name=True)
    assert_weights(model, stored | {"another": before})
    model.load_weights(path)  # in order
    assert_weights(model, stored | {"another": stored["second"]})


def test_weights_are_written_as_keras_does(tmp_path):
    h5py = pytest.importorskip("h5py")
    model = two_layers()
    path = str(tmp_path / "weights.h5")
    model.save_weights(path)
    with h5py.File(path) as file:
        assert [name.decode() for name in file.attrs["layer_names"]] == ["first", "norm", "second"]
        names = [name.decode() for name in file["norm"].attrs["weight_names"]]
        assert names == [f"norm/{name}:0" for name in ("gamma", "beta", "moving_mean", "moving_variance")]
        np.testing.assert_array_equal(file["first"]["first/kernel:0"][()], model.layers[0].get_weights()[0])
    other = two_layers()
    other.load_weights(path)
    for mine, its in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, its)
    with pytest.raises(tf.errors.AlreadyExistsError):
        model.save_weights(path, overwrite=False)


def test_files_of_other_models_change_nothing(tmp_path):
    path = str(tmp_path / "weights.h5")
    written_as_keras_does(path, two_layers())
    model = two_layers(units=5)
    before = model.get_weights()
    with pytest.raises(ValueError, match=r"layer 'first': weight 'first.*/kernel:0' has shape \(4, 5\)"):
        model.load_weights(path)
    with pytest.raises(ValueError, match="containing 3 layers into a model with 1 layers"):
        keras.Sequential([layers.Dense(3, input_shape=(4,))]).load_weights(path)
    content = bytearray((tmp_path / "weights.h5").read_bytes())
    (tmp_path / "damaged.h5").write_bytes(content[: len(content) // 2])
    with pytest.raises(tf.errors.DataLossError, match="damaged"):
        model.load_weights(str(tmp_path / "damaged.h5"))
    model.save_weights(str(tmp_path / "weights.npz"))
    with pytest.raises(NotImplementedError, match="no file of HDF5"):
        model.load_weights(str(tmp_path / "weights.npz"), by_name=True)
    for mine, its in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_more_names_than_one_attribute_takes(tmp_path):
    pytest.importorskip("h5py")
    model = keras.Sequential([layers.Dense(2, input_shape=(2,), name=f"layer{number:0900d}") for number in range(90)])
    path = str(tmp_path / "weights.h5")
    model.set_weights([weight + number for number, weight in enumerate(model.get_weights())])
    before = model.get_weights()
    model.save_weights(path)
    model.set_weights([0 * weight for weight in before])
    model.load_weights(path, by_name=True)
    for mine, its in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, its)


# -- whole models of Keras ---------------------------------------------------------------------------------


@pytest.mark.rows(every=2)
@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("name", ["stack", "branches"])
def test_whole_models_of_keras_predict_and_train_on(tmp_path, name, version):
    """Those that Keras 2 in graph mode and Keras 3 have written (`scripts/golden_keras_models.py`)."""
    pytest.importorskip("h5py")
    unpack(GOLDEN, tmp_path)
    model = keras.models.load_model(str(tmp_path / f"{name}_{version}.h5"))
    with np.load(tmp_path / f"{name}_{version}.npz") as values:
        outputs = [values[key] for key in ("y0", "y1") if key in values.files]
        targets = [values["targets"]] * len(outputs)
        predicted = model.predict(values["x"])
        for found, expected in zip(predicted if len(outputs) > 1 else [predicted], outputs, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        assert keras.backend.get_value(model.optimizer.iterations) == 2
        losses = [model.train_on_batch(values["x"], targets)[0] for _ in range(3)]
        np.testing.assert_allclose(losses, values["losses"], rtol=1e-4)
    assert [layer.name for layer in model.layers][-1] == ("last" if name == "stack" else "second")


def test_models_are_written_as_keras_does(tmp_path):
    h5py = pytest.importorskip("h5py")
    model = branches()
    model.compile(keras.optimizers.Adam(0.1), squared, metrics=["mae", keras.metrics.MeanSquaredError()])
    x, y = data(branches)
    model.fit(x, y, epochs=1, verbose=0)
    model.save(str(tmp_path / "model.h5"))
    with h5py.File(tmp_path / "model.h5") as file:
        told, training = (json.loads(file.attrs[name]) for name in ("model_config", "training_config"))
        assert file.attrs["keras_version"] == "2.2.4-tf" and file.attrs["backend"] == "tensorflow"
        assert list(file["model_weights"].attrs["layer_names"]) == [layer.name.encode() for layer in model.layers]
        assert len(file["optimizer_weights"].attrs["weight_names"]) == 1 + 2 * len(model.trainable_variables)
    assert told["class_name"] == "Model" and told["config"]["input_layers"] == [["x", 0, 0]]
    by_name = {layer["name"]: layer for layer in told["config"]["layers"]}
    assert by_name["x"]["config"] == {"batch_input_shape": [None, 4], "dtype": "float32", "sparse": False, "name": "x"}
    assert by_name["shared"]["inbound_nodes"] == [[["x", 0, 0, {}]], [["activation", 0, 0, {}]]]
    assert by_name["concatenate"]["inbound_nodes"] == [[["shared", 0, 0, {}], ["shared", 1, 0, {}]]]
    assert by_name["sequential"]["inbound_nodes"] == [[["concatenate", 0, 0, {}]]]
    assert by_name["add"]["inbound_nodes"] == [[["sequential", 1, 0, {}], ["dense_1", 0, 0, {}]]]
    assert by_name["shared"]["class_name"] == "Dense" and by_name["activation"]["config"]["activation"] == "tanh"
    assert training["optimizer_config"]["class_name"] == "Adam" and training["loss"] == "squared"
    assert training["metrics"][0] == "mae" and training["metrics"][1]["class_name"] == "MeanSquaredError"
    loaded = keras.models.load_model(str(tmp_path / "model.h5"), OWN)
    assert isinstance(loaded._compiled_metrics[1], keras.metrics.MeanSquaredError)


def in_a_file(path, layers_told):
    """A file with a description of a model, and no weights."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": layers_told}).encode()
        file.create_group("model_weights").attrs["layer_names"] = np.array([], "S")


LAMBDA = {
    "name": "own",
    "function": ["4wEAAAA=", None, None],
    "function_type": "lambda",
    "batch_input_shape": [None, 2],
}


@pytest.mark.parametrize(
    ("kind", "config", "match"),
    [
        ("Lambda", LAMBDA, "code of Python .* never executed .* load_weights"),
        ("Lambda", {**LAMBDA, "function": {"class_name": "__lambda__", "config": {}}}, "__lambda__|code of Python"),
        ("Lambda", {**LAMBDA, "function": "system", "function_type": "function"}, "'system', which is not of tfray"),
        ("Dense", {"units": 2, "batch_input_shape": [None, 2], "low_rank": 3}, "Dense has no argument 'low_rank'"),
        ("load_model", {"filepath": "other.h5"}, "no class that has from_config"),
    ],
)
def test_what_stands_in_a_file_is_not_executed(tmp_path, kind, config, match):
    in_a_file(tmp_path / "model.h5", [{"class_name": kind, "config": config}])
    with pytest.raises(InvalidArgumentError, match=match):
        keras.models.load_model(str(tmp_path / "model.h5"))


def test_functions_of_lambda_layers_are_found_by_name(tmp_path):
    in_a_file(
        tmp_path / "model.h5",
        {
            "name": "m",
            "layers": [
                {
                    "class_name": "Lambda",
                    "config": {**LAMBDA, "function": "half", "function_type": "function", "module": "__main__"},
                },
                # What other versions of Keras write and changes nothing is passed over.
                {"class_name": "Activation", "config": {"activation": "squash", "ragged": False}},
            ],
        },
    )
    model = keras.models.load_model(str(tmp_path / "model.h5"), {"half": half, "squash": tf.tanh})
    np.testing.assert_allclose(model.predict(np.ones((1, 2), np.float32)), np.tanh([[0.5, 0.5]]), rtol=1e-6)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (lambda: layers.Conv1D(2, 2, padding="causal"), {"padding": "causal", "kernel_size": [2], "use_bias": True}),
        (lambda: layers.GRU(2), {"recurrent_activation": "hard_sigmoid", "reset_after": False, "unroll": False}),
        (lambda: layers.SimpleRNN(2, "relu", False), {"activation": "relu", "use_bias": False}),
        (lambda: layers.CuDNNLSTM(2), {"units": 2, "unit_forget_bias": True, "activation": None, "unroll": None}),
        (lambda: layers.SpatialDropout1D(0.5), {"rate": 0.5, "data_format": None}),
        (lambda: layers.Dense(3, tf.nn.relu6), {"activation": "relu6", "units": 3}),
        (lambda: layers.Dense(3, kernel_initializer=keras.initializers.Ones()), {"bias_regularizer": None}),
        (lambda: layers.BatchNormalization(), {"momentum": 0.99, "renorm": None, "fused": None}),
        (lambda: layers.TimeDistributed(layers.Dense(2)), {"name": "time_distributed"}),
        (lambda: layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)]), {"return_state": False}),
    ],
)
def test_configurations_are_those_that_keras_takes(tmp_path, layer, told):
    """All arguments, but for those that other versions refuse; each layer computes the same out of a file."""
    with tf.Graph().as_default():
        x = keras.Input((6, 4))
        model = keras.Model(x, layer()(x))
        config = model.get_config()["layers"][1]["config"]
        assert {name: config.get(name) for name in told} == told
        given = np.random.default_rng(0).normal(size=(2, 6, 4)).astype(np.float32)
        expected = model.predict(given)
        model.save(str(tmp_path / "model.h5"))
    with tf.Graph().as_default():
        loaded = keras.models.load_model(str(tmp_path / "model.h5"))
        np.testing.assert_allclose(loaded.predict(given), expected, rtol=1e-5)
        assert loaded.to_json() == model_text(model)


def model_text(model):
    """The description of a model of another graph."""
    with model.inputs[0].graph.as_default():
        return model.to_json()


def with_long_names():
    return keras.Sequential(
        [layers.Dense(2, input_shape=(4,), name=f"layer_{number}" + "x" * 2**14) for number in range(4)]
    )


def with_names_within_names():
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2, name="first")(layers.Dense(3, name="first/second")(x)))


def with_a_shared_model(make):
    def build():
        x, y = keras.Input((4,), name="x"), keras.Input((4,), name="y")
        inner = make()
        return keras.Model([x, y], layers.Add()([inner(x), inner(y)]))

    return build


SHARED = [
    with_a_shared_model(lambda: keras.Sequential([keras.layers.InputLayer(4), layers.Dense(2)])),
    with_a_shared_model(lambda: keras.Sequential([layers.Dense(2)])),
    with_a_shared_model(with_names_within_names),
    with_a_shared_model(lambda: Small(2)),
]


@pytest.mark.parametrize("build", [with_long_names, with_names_within_names, *SHARED])
def test_names_and_models_within_models(tmp_path, build):
    pytest.importorskip("h5py")
    path = str(tmp_path / "model.h5")
    model = build()
    given = [np.ones((2, 4), np.float32) * number for number in range(1, 1 + len(model.inputs))]
    expected = model.predict(given)
    model.save(path)
    for graph in (tf.Graph(), tf.get_default_graph()):
        with graph.as_default():
            loaded = keras.models.load_model(path, OWN)
            np.testing.assert_allclose(loaded.predict(given), expected, rtol=1e-5)
    model.save_weights(path)
    model.load_weights(path)


def test_files_that_are_open(tmp_path):
    h5py = pytest.importorskip("h5py")
    x, y = data(stack)
    model = stack()
    metric = keras.metrics.CategoricalCrossentropy(name="smooth", label_smoothing=0.25)
    model.compile("adam", "mse", metrics=[metric])
    model.fit(x, y, verbose=0)
    with h5py.File(tmp_path / "model.h5", "w") as file:
        model.save(file)
        loaded = keras.models.load_model(file)
    np.testing.assert_allclose(loaded.predict(x), model.predict(x), rtol=1e-6)
    np.testing.assert_allclose(loaded.evaluate(x, y, verbose=0), model.evaluate(x, y, verbose=0), rtol=1e-5)


class _TwoLayers(keras.Model):
    """A model whose layers are made with it, and get weights when it is called."""

    def __init__(self):
        super().__init__()
        self.x_layer = layers.Dense(3)
        self.b_layer = layers.Dense(1)

    def call(self, inputs):
        return self.b_layer(self.x_layer(inputs))


@pytest.mark.parametrize("build", [_TwoLayers, lambda: keras.Sequential([layers.Dense(3), layers.Dense(1)])])
def test_a_model_without_weights_waits_for_those_of_a_checkpoint(tmp_path, build):
    x, path = np.arange(6, dtype=np.float32).reshape(3, 2), str(tmp_path / "weights")
    model = build()
    expected = model.predict(x)
    model.save_weights(path)
    names = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    if build is _TwoLayers:  # as TensorFlow 1.15 names them
        assert names == {"_CHECKPOINTABLE_OBJECT_GRAPH": []} | {
            f"{layer}/{weight}/.ATTRIBUTES/VARIABLE_VALUE": shape
            for layer, shapes in (("x_layer", ([2, 3], [3])), ("b_layer", ([3, 1], [1])))
            for weight, shape in zip(("kernel", "bias"), shapes, strict=True)
        }
    other = build()
    status = other.load_weights(path).expect_partial()
    with pytest.raises(AssertionError):
        status.assert_consumed()
    with pytest.raises(AssertionError, match="no weights yet"):
        status.assert_nontrivial_match()
    np.testing.assert_allclose(other.predict(x), expected, rtol=1e-6)
    status.assert_consumed().assert_existing_objects_matched().assert_nontrivial_match()
    other.set_weights([np.zeros(weight.shape) for weight in other.get_weights()])
    status.initialize_or_restore()
    np.testing.assert_allclose(other.predict(x), expected, rtol=1e-6)


def test_a_model_without_weights_takes_none_of_hdf5(tmp_path):
    pytest.importorskip("h5py")
    model, path = _TwoLayers(), str(tmp_path / "weights.h5")
    model.predict(np.zeros((3, 2)))
    model.save_weights(path)
    with pytest.raises(ValueError, match="Unable to load weights saved in HDF5 format"):
        _TwoLayers().load_weights(path)


def test_weights_of_a_list_of_layers(tmp_path):
    h5py = pytest.importorskip("h5py")
    model, other = two_layers(), two_layers(("first", "another"))
    with h5py.File(str(tmp_path / "weights.h5"), "w") as file:
        hdf5_weights.save_weights_to_hdf5_group(file.create_group("within"), model.layers)
        hdf5_weights.load_weights_from_hdf5_group_by_name(file["within"], other.layers[:1])
        np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])
        hdf5_weights.load_weights_from_hdf5_group(file["within"], other.layers)
        with pytest.raises(ValueError, match="containing 3 layers into a model with 1 layers"):
            hdf5_weights.load_weights_from_hdf5_group(file["within"], other.layers[:1])
    for mine, its in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_checksums_of_files(tmp_path):
    (tmp_path / "text").write_bytes(b"abc")
    of_md5, path = "900150983cd24fb0d6963f7d28e17f72", str(tmp_path / "text")  # RFC 1321
    of_sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180
    assert checksums.hash_file(path) == of_sha256 and checksums.hash_file(path, "md5") == of_md5
    assert checksums.validate_file(path, of_md5) and checksums.validate_file(path, of_sha256, "sha256")
    assert not checksums.validate_file(path, of_md5[::-1])
