"""Networks of `tf.keras.applications`: sizes, names of layers and results are those of Keras 2.21."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError

keras = tf.keras
applications = keras.applications

SMALL = {
    "VGG19": (20024384, 22, "block5_pool"),
    "ResNet50V2": (23564800, 190, "post_relu"),
    "Xception": (20861480, 132, "block14_sepconv2_act"),
    "MobileNetV2": (2257984, 155, "out_relu"),
}
LARGE = {
    "VGG16": (14714688, 19, "block5_pool"),
    "ResNet50": (23587712, 175, "conv5_block3_out"),
    "ResNet101": (42658176, 345, "conv5_block3_out"),
    "ResNet152": (58370944, 515, "conv5_block3_out"),
    "ResNet101V2": (42626560, 377, "post_relu"),
    "ResNet152V2": (58331648, 564, "post_relu"),
    "InceptionV3": (21802784, 311, "mixed10"),
    "InceptionResNetV2": (54336736, 780, "conv_7b_ac"),
    "MobileNet": (3228864, 87, "conv_pw_13_relu"),
    "DenseNet121": (7037504, 427, "relu"),
    "DenseNet169": (12642880, 595, "relu"),
    "DenseNet201": (18321984, 707, "relu"),
    "NASNetMobile": (4269716, 769, None),
    "NASNetLarge": (84916818, 1039, None),
}
"""Parameters, layers and the last layer without the classifier."""


def check_sizes(name, parameters, layers, last):
    with tf.Graph().as_default():
        model = getattr(applications, name)(weights=None, include_top=False, input_shape=(96, 96, 3))
        assert (model.count_params(), len(model.layers)) == (parameters, layers)
        assert last is None or model.layers[-1].name == last


@pytest.mark.parametrize("name", SMALL)
def test_sizes(name):
    check_sizes(name, *SMALL[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_sizes_of_large_networks(name):
    check_sizes(name, *LARGE[name])


def filled(model):
    """The model with weights that depend on their place alone."""
    values = []
    for number, variable in enumerate(model.weights):
        random = np.random.RandomState(number)
        low, high = (0.5, 1.5) if any(each in variable.name for each in ("gamma", "variance")) else (-0.3, 0.3)
        values.append(random.uniform(low, high, variable.shape.as_list()).astype(np.float32))
    model.set_weights(values)
    return model


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("MobileNet", {"alpha": 0.25}, [0.27951, 0.14816, 0.1182, 0.45412]),
        pytest.param("MobileNetV2", {"alpha": 0.35}, [0.00009, 0.56378, 0.00027, 0.43586], marks=pytest.mark.slow),
    ],
)
def test_predictions(tmp_path, name, settings, expected):
    """Those of Keras with the same weights in the same order; a file of weights gives them to another model."""
    make = getattr(applications, name)
    model = filled(make(weights=None, input_shape=(32, 32, 3), classes=4, **settings))
    x = np.random.RandomState(9).uniform(-1, 1, (1, 32, 32, 3)).astype(np.float32)
    np.testing.assert_allclose(model.predict(x), [expected], atol=2e-5)
    path = str(tmp_path / "weights.h5")
    model.save_weights(path)
    with tf.Graph().as_default():
        other = make(weights=path, input_shape=(32, 32, 3), classes=4, **settings)
        np.testing.assert_allclose(other.predict(x), [expected], atol=2e-5)


def test_classifiers_and_features():
    with tf.Graph().as_default():
        x = keras.Input((32, 32, 3), name="pictures")
        model = applications.VGG16(weights=None, include_top=False, input_tensor=keras.layers.ReLU()(x), pooling="max")
        assert model.output_shape == (None, 512) and model.inputs[0] is x
        assert applications.vgg16.VGG16 is applications.VGG16
        model = applications.MobileNet(weights=None, alpha=0.25, classes=3)
        assert model.output_shape == (None, 3) and model.name == "mobilenet_0.25_224"
        assert [layer.name for layer in model.layers[-4:]] == ["dropout", "conv_preds", "reshape_2", "act_softmax"]


def test_an_inception_resnet_is_described():
    layer = keras.layers.deserialize(
        keras.layers.serialize(tf.keras.applications.inception_resnet_v2.ScaledSum(0.5, name="block"))
    )
    result = keras.backend.eval(layer([tf.constant([1.0]), tf.constant([4.0])]))
    assert layer.name == "block" and result.tolist() == [3.0]


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"weights": "nowhere.h5"}, ValueError, "there is no nowhere.h5"),
        ({"classes": 3}, ValueError, "classes has to be 1000, not 3"),
        ({"weights": None, "input_shape": (16, 64, 3), "include_top": False}, ValueError, "at least 32x32"),
        ({"weights": None, "input_shape": (None, None, 3)}, ValueError, "specify a static `input_shape`"),
        ({"weights": None, "input_shape": (64, 64)}, ValueError, "tuple of three integers"),
        ({}, NotFoundError, "models/vgg16_weights_tf_dim_ordering_tf_kernels.h5, and tfray downloads nothing"),
        ({"include_top": False}, NotFoundError, "kernels_notop.h5"),
    ],
)
def test_what_is_wrong_is_said_first(tmp_path, monkeypatch, settings, error, match):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(error, match=match):
        applications.VGG16(**settings)


def test_weights_that_were_never_published():
    with pytest.raises(InvalidArgumentError, match=r"not for 0\.3"):
        applications.MobileNetV2(alpha=0.3)


# -- pictures and classes ----------------------------------------------------------------------------------

PICTURE = np.arange(12, dtype=np.float32).reshape(2, 2, 3) * 20
EXPECTED = {
    "caffe": [-63.939, -96.779, -123.68, -3.939, -36.779],
    "tf": [-1.0, -0.8431, -0.6863, -0.5294, -0.3725],
    "torch": [-2.1179, -1.6856, -1.1073, -1.0904, -0.6352],
}


@pytest.mark.parametrize("mode", EXPECTED)
def test_preprocessing(mode):
    preprocess = applications.imagenet_utils.preprocess_input
    expected = EXPECTED[mode]
    np.testing.assert_allclose(preprocess(PICTURE.copy(), mode=mode).ravel()[:5], expected, atol=1e-4)
    np.testing.assert_allclose(preprocess(PICTURE.astype(int), mode=mode).ravel()[:5], expected, atol=1e-4)
    of_tensor = keras.backend.eval(preprocess(tf.constant(PICTURE[np.newaxis]), mode=mode))
    np.testing.assert_allclose(of_tensor.ravel()[:5], expected, atol=1e-4)
    first = preprocess(PICTURE.transpose(2, 0, 1).copy(), "channels_first", mode)
    np.testing.assert_allclose(first.transpose(1, 2, 0).ravel()[:5], expected, atol=1e-4)
    module = {"caffe": "vgg16", "tf": "xception", "torch": "densenet"}[mode]
    own = getattr(applications, module).preprocess_input
    np.testing.assert_allclose(own(PICTURE.copy()).ravel()[:5], expected, atol=1e-4)


def test_names_of_classes(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    probabilities = np.zeros((1, 1000), np.float32)
    probabilities[0, [7, 20]] = 0.25, 0.75
    with pytest.raises(NotFoundError, match="imagenet_class_index"):
        applications.vgg16.decode_predictions(probabilities)
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "imagenet_class_index.json"
    path.write_text(json.dumps({str(number): [f"n{number}", f"kind {number}"] for number in range(1000)}))
    assert applications.vgg16.decode_predictions(probabilities, top=2) == [
        [("n20", "kind 20", 0.75), ("n7", "kind 7", 0.25)]
    ]
    with pytest.raises(ValueError, match="1000"):
        applications.vgg16.decode_predictions(probabilities[:, :10])
    path.write_text("{}")
    with pytest.raises(DataLossError, match="1000 classes"):
        applications.vgg16.decode_predictions(probabilities)
