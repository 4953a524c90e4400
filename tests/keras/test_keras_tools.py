"""What stands around models: drawings, arrays in files, files in the cache, scikit-learn's methods."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile

import numpy as np
import pytest

import tfray as tf
from tfray.errors import DataLossError, NotFoundError

keras = tf.keras
layers = keras.layers


# -- drawings ----------------------------------------------------------------------------------------------


def branches():
    x = keras.Input((4,), name="x")
    inner = keras.Sequential([layers.Dense(3, input_shape=(4,), name="within")], name="inner")
    first, second = inner(x), layers.Dense(3, name="second")(x)
    return keras.Model(x, layers.Add(name="sum")([first, second]))


def arrows(text):
    """Pairs of the labels of boxes."""
    lines = [line.rstrip(";") for line in text.splitlines()]
    labels = {name: label.split('"')[1] for name, _, label in (line.partition(" [label=") for line in lines) if label}
    pairs = [line.split(" -> ") for line in lines if " -> " in line]
    return {(labels[first], labels[second]) for first, second in pairs}


def test_a_drawing_has_the_layers_of_a_model(tmp_path):
    model = branches()
    text = keras.utils.model_to_dot(model).to_string()
    assert arrows(text) == {
        ("x: InputLayer", "inner: Sequential"),
        ("x: InputLayer", "second: Dense"),
        ("inner: Sequential", "sum: Add"),
        ("second: Dense", "sum: Add"),
    }
    assert ("Dense", "Add") in arrows(keras.utils.model_to_dot(model, show_layer_names=False).to_string())
    within = keras.utils.model_to_dot(model, expand_nested=True, rankdir="LR").to_string()
    assert ("within: Dense", "sum: Add") in arrows(within) and "rankdir=LR" in within and "subgraph cluster_" in within
    shapes = keras.utils.model_to_dot(model, show_shapes=True).to_string()
    assert "second: Dense\\n|{input:|output:}|{{(None, 4)}|{(None, 3)}}" in shapes
    keras.utils.plot_model(model, str(tmp_path / "model.dot"))
    assert (tmp_path / "model.dot").read_text() == text


def test_a_drawing_of_layers_that_are_not_built_yet():
    model = keras.Sequential([layers.Dense(2, name="a"), layers.TimeDistributed(layers.Dense(1, name="b"), name="c")])
    assert arrows(keras.utils.model_to_dot(model, show_shapes=True).to_string()) == {
        ("a: Dense\\n|{input:|output:}|{{multiple}|{multiple}}", "c: TimeDistributed(b)\\n|{input:|output:}|"
         "{{multiple}|{multiple}}")
    }  # fmt: skip


def test_a_picture_needs_graphviz(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match="install Graphviz"):
        keras.utils.plot_model(branches(), str(tmp_path / "model.png"))
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho drawn $1\n")
    program.chmod(0o755)
    keras.utils.plot_model(branches(), str(tmp_path / "model.svg"))
    assert (tmp_path / "model.svg").read_text() == "drawn -Tsvg\n"


def test_yaml_is_refused():
    with pytest.raises(RuntimeError, match="to_json"):
        branches().to_yaml()
    with pytest.raises(RuntimeError, match="model_from_json"):
        keras.models.model_from_yaml("")


@pytest.mark.parametrize("layer", [layers.Cropping1D, layers.Cropping2D, layers.Cropping3D])
def test_nothing_is_no_size(layer):
    with pytest.raises(ValueError, match="Found: None"):
        layer(cropping=None)
    with pytest.raises(ValueError, match="Found: None"):
        layers.ZeroPadding2D(padding=None)


def test_inputs_of_models_are_those_of_their_first_layers():
    model = branches()
    assert model.layers[0].output is model.input and model.layers[0].input_shape == (None, 4)


# -- arrays in files ---------------------------------------------------------------------------------------


def test_rows_of_a_file(tmp_path):
    h5py = pytest.importorskip("h5py")
    path, rows = str(tmp_path / "data.h5"), np.arange(40, dtype=np.float32).reshape(10, 4)
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = rows, rows[:, 0]
    x = keras.utils.HDF5Matrix(path, "x", 2, 8)
    assert (len(x), x.shape, x.dtype, x.ndim, x.size) == (6, (6, 4), np.float32, 2, 24)
    np.testing.assert_array_equal(x[1:3], rows[3:5])
    np.testing.assert_array_equal(x[5], rows[7])
    np.testing.assert_array_equal(x[np.array([0, 2])], rows[[2, 4]])
    np.testing.assert_array_equal(x[[1, 5]], rows[[3, 7]])
    np.testing.assert_array_equal(np.asarray(x), rows[2:8])
    for beyond in (6, slice(0, 7), [1, 6]):
        with pytest.raises(IndexError):
            x[beyond]
    y = keras.utils.HDF5Matrix(path, "y", 2, 8, normalizer=lambda values: values / 10)
    np.testing.assert_allclose(y[:2], [0.8, 1.2])
    model = keras.Sequential([layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
    model.fit(x, y, batch_size=3, shuffle="batch", verbose=0)
    assert model.predict(x, batch_size=4).shape == (6, 1) and np.isfinite(model.evaluate(x, y, verbose=0))
    with pytest.raises(NotFoundError, match="no dataset 'z'"):
        keras.utils.HDF5Matrix(path, "z")


# -- files in the cache ------------------------------------------------------------------------------------


@pytest.fixture
def packed(tmp_path):
    """Addresses of a text in two archives."""
    (tmp_path / "text.txt").write_text("words")
    with tarfile.open(tmp_path / "folder.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "text.txt", "folder/text.txt")
    with zipfile.ZipFile(tmp_path / "texts.zip", "w") as archive:
        archive.write(tmp_path / "text.txt", "text.txt")
    return tmp_path


@pytest.fixture(params=[True, False], ids=["filters", "3.11.3"])
def _tar_filters(request, monkeypatch):
    """Archives are unpacked as by this Python, and as by one that has no filters."""
    if not request.param:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


@pytest.mark.filterwarnings("ignore:.*filter extracted tar archives:DeprecationWarning")  # Python 3.12's, without one
@pytest.mark.usefixtures("_tar_filters")
def test_files_are_copied_and_unpacked(packed):
    cache = str(packed / "cache")
    path = keras.utils.get_file("folder", (packed / "folder.tar.gz").as_uri(), untar=True, cache_dir=cache)
    assert (packed / "cache" / "datasets" / "folder" / "text.txt").read_text() == "words"
    assert path == str(packed / "cache" / "datasets" / "folder")
    checksum = hashlib.sha256((packed / "texts.zip").read_bytes()).hexdigest()
    settings = {"cache_dir": cache, "cache_subdir": "texts", "extract": True, "file_hash": checksum}
    path = keras.utils.get_file("texts.zip", (packed / "texts.zip").as_uri(), **settings)
    assert (packed / "cache" / "texts" / "text.txt").read_text() == "words" and path.endswith("texts.zip")
    (packed / "texts.zip").unlink()
    assert keras.utils.get_file("texts.zip", "https://example.org/texts.zip", **settings) == path
    with pytest.raises(DataLossError, match="md5 checksum"):
        keras.utils.get_file("texts.zip", "https://example.org/", cache_dir=cache, cache_subdir="texts", md5_hash="0")
    with pytest.raises(NotFoundError, match=r"put https://example\.org/other there"):
        keras.utils.get_file("other", "https://example.org/other", cache_dir=cache)
    with pytest.raises(NotFoundError):
        keras.utils.get_file("other", (packed / "other").as_uri(), cache_dir=cache)


@pytest.mark.usefixtures("_tar_filters")
@pytest.mark.parametrize("link", [None, "../..", "/"])
def test_nothing_is_unpacked_elsewhere(tmp_path, link):
    (tmp_path / "text.txt").write_text("words")
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        if link:
            member = tarfile.TarInfo("folder")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
        archive.add(tmp_path / "text.txt", "folder/escaped.txt" if link else "../../escaped.txt")
    with pytest.raises(DataLossError, match="cannot be unpacked"):
        keras.utils.get_file(
            "bad.tar", (tmp_path / "bad.tar").as_uri(), extract=True, cache_dir=str(tmp_path / "a" / "cache")
        )
    assert not list(tmp_path.rglob("escaped.txt"))


# -- scikit-learn ------------------------------------------------------------------------------------------


def classifier(units=8, loss="categorical_crossentropy"):
    model = keras.Sequential([layers.Dense(units, "relu", input_shape=(2,)), layers.Dense(3, "softmax")])
    model.compile(keras.optimizers.Adam(0.05), loss, metrics=["accuracy"])
    return model


def regressor(units=1):
    model = keras.Sequential([layers.Dense(units, input_shape=(2,))])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def points():
    random = np.random.default_rng(0)
    kinds = random.integers(0, 3, 90)
    return (random.normal(size=(90, 2)) / 10 + np.c_[kinds == 1, kinds == 2]).astype(np.float32), kinds


@pytest.mark.parametrize("loss", ["categorical_crossentropy", "sparse_categorical_crossentropy"])
def test_a_classifier_for_scikit_learn(loss):
    x, kinds = points()
    names = np.array(["ant", "bee", "cat"])[kinds]
    model = keras.wrappers.scikit_learn.KerasClassifier(classifier, loss=loss, epochs=20, verbose=0)
    model.fit(x, names, batch_size=10)
    assert model.classes_.tolist() == ["ant", "bee", "cat"] and model.n_classes_ == 3
    assert np.mean(model.predict(x) == names) > 0.9 and model.predict_proba(x).shape == (90, 3)
    assert model.score(x, names) == pytest.approx(np.mean(model.predict(x) == names), abs=1e-6)
    assert model.get_params() == {"loss": loss, "epochs": 20, "verbose": 0, "build_fn": classifier}
    model.set_params(units=4)
    assert model.sk_params["units"] == 4
    with pytest.raises(ValueError, match="wrong is not a legal parameter"):
        model.set_params(wrong=4)
    with pytest.raises(ValueError, match="Invalid shape for y"):
        model.fit(x, names[:, None, None])


def test_a_regressor_for_scikit_learn():
    x, _ = points()

    class Own(keras.wrappers.scikit_learn.KerasRegressor):
        def __call__(self, units):
            return regressor(units)

    model = Own(units=1, epochs=40, batch_size=10, verbose=0)
    targets = x @ [1.0, -1.0]
    assert model.fit(x, targets).epoch == list(range(40))
    assert model.predict(x).shape == (90,)
    assert model.score(x, targets) == pytest.approx(-np.mean((model.predict(x) - targets) ** 2), rel=1e-4)
    assert model.score(x, targets) > -0.01
