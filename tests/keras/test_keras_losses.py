"""Losses of `tf.keras` as objects with reductions, losses of programs, and names that programs register."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
losses = keras.losses

RANDOM = np.random.default_rng(5)
PREDICTED = RANDOM.uniform(0.1, 0.9, (4, 3)).astype(np.float32)
TARGETS = np.eye(3, dtype=np.float32)[[0, 2, 1, 2]]
WEIGHTS = np.array([1.0, 0.0, 2.0, 0.5], np.float32)


def value(tensor):
    return keras.backend.get_value(tensor)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


SHARES = PREDICTED / PREDICTED.sum(-1, keepdims=True)
LARGEST = np.maximum(np.clip(SHARES, 1e-7, 1), 1e-7)
OBJECTS = {
    "MeanSquaredError": ({}, ((PREDICTED - TARGETS) ** 2).mean(-1)),
    "MeanAbsoluteError": ({}, np.abs(PREDICTED - TARGETS).mean(-1)),
    "MeanSquaredLogarithmicError": ({}, ((np.log1p(PREDICTED) - np.log1p(TARGETS)) ** 2).mean(-1)),
    "Hinge": ({}, np.maximum(1 - (2 * TARGETS - 1) * PREDICTED, 0).mean(-1)),
    "SquaredHinge": ({}, (np.maximum(1 - (2 * TARGETS - 1) * PREDICTED, 0) ** 2).mean(-1)),
    "Poisson": ({}, (PREDICTED - TARGETS * np.log(PREDICTED)).mean(-1)),
    "LogCosh": ({}, np.log(np.cosh(PREDICTED - TARGETS)).mean(-1)),
    "CosineSimilarity": ({}, (unit(PREDICTED) * unit(TARGETS)).sum(-1)),
    "CategoricalHinge": (
        {},
        np.maximum(((1 - TARGETS) * PREDICTED).max(-1) - (TARGETS * PREDICTED).sum(-1) + 1, 0),
    ),
    "CategoricalCrossentropy": (
        {"label_smoothing": 0.3},
        -((TARGETS * 0.7 + 0.1) * np.log(SHARES)).sum(-1),
    ),
    "BinaryCrossentropy": (
        {"label_smoothing": 0.2},
        -((TARGETS * 0.8 + 0.1) * np.log(PREDICTED) + (0.9 - TARGETS * 0.8) * np.log(1 - PREDICTED)).mean(-1),
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_reductions(name):
    arguments, expected = OBJECTS[name]
    kind = getattr(losses, name)
    each = kind(reduction=losses.Reduction.NONE, **arguments)(TARGETS, PREDICTED)
    total = kind(reduction="sum", name="total", **arguments)(TARGETS, PREDICTED, sample_weight=WEIGHTS[:, None])
    mean = kind(**arguments)(TARGETS, PREDICTED, sample_weight=WEIGHTS)
    assert total.op.name.startswith("total/")
    np.testing.assert_allclose(value(each), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(value(total), (expected * WEIGHTS).sum(), rtol=1e-4)
    np.testing.assert_allclose(value(mean), (expected * WEIGHTS).mean(), rtol=1e-4)


def test_a_loss_of_the_program_is_reduced_in_training():
    class Cubed(losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_sum(tf.abs(y_true - y_pred) ** 3, -1)

    x = RANDOM.normal(size=(8, 2)).astype(np.float32)
    for reduction, expected in (("auto", (np.abs(x) ** 3).sum(-1).mean()), ("sum", (np.abs(x) ** 3).sum())):
        model = keras.Sequential([keras.layers.Lambda(lambda v: v, input_shape=(2,))])
        model.compile("sgd", Cubed(reduction=reduction))
        np.testing.assert_allclose(model.evaluate(x, np.zeros_like(x), verbose=0), expected, rtol=1e-4)
    with pytest.raises(ValueError, match="Invalid Reduction Key other"):
        Cubed(reduction="other")
    with pytest.raises(NotImplementedError, match="Must be implemented in subclasses"):
        losses.Loss()(x, x)


def test_classes_on_another_axis():
    shares = np.array([[[0.2, 0.5], [0.8, 0.5]]], np.float32)
    made = losses.sparse_categorical_crossentropy(np.array([[1, 0]]), shares, axis=1)
    np.testing.assert_allclose(value(made), [[-np.log(0.8), -np.log(0.5)]], rtol=1e-5)


@pytest.mark.parametrize(
    ("module", "name", "default"),
    [
        (losses, "mean_squared_error", losses.mean_squared_error),
        (keras.activations, "tanh", keras.activations.tanh),
        (keras.metrics, "binary_accuracy", keras.metrics.binary_accuracy),
    ],
)
def test_functions_are_described_by_their_names(module, name, default):
    assert module.serialize(default) == name
    assert module.serialize(module.deserialize(name)) == name
    assert module.deserialize("mine", custom_objects={"mine": value}) is value


@pytest.mark.parametrize(
    "made",
    [
        keras.initializers.Constant(3.0),
        keras.regularizers.l1_l2(0.1, 0.2),
        keras.constraints.MaxNorm(3),
        losses.Huber(2.0, reduction="sum"),
        keras.optimizers.SGD(0.5),
    ],
)
def test_objects_are_described_by_their_arguments(made):
    module = next(
        module
        for module in (keras.initializers, keras.regularizers, keras.constraints, losses, keras.optimizers)
        if module.__name__ in type(made).__module__ or hasattr(module, type(made).__name__)
    )
    again = module.deserialize(module.serialize(made))
    assert type(again) is type(made)
    assert again.get_config() == made.get_config()


def test_registered_names():
    @keras.utils.register_keras_serializable(package="Tests", name="twice")
    def double(x):
        return 2 * x

    @keras.utils.register_keras_serializable("Tests")
    class Halved(keras.layers.Layer):
        def call(self, inputs):
            return inputs / 2

    utils = keras.utils
    assert utils.get_registered_name(double) == "Tests>twice"
    assert utils.get_registered_name(value) == "value"
    assert utils.get_registered_object("Tests>Halved") is Halved
    assert utils.get_registered_object("mine", {"mine": value}) is value
    assert utils.get_registered_object("no such name") is None
    model = keras.Sequential([Halved(input_shape=(2,)), keras.layers.Dense(2, activation=double)])
    text = model.to_json()
    assert "Tests>Halved" in text
    again = keras.models.model_from_json(text)
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again.predict(np.ones([1, 2])), model.predict(np.ones([1, 2])))
    with pytest.raises(ValueError, match="has already been registered"):
        utils.register_keras_serializable("Tests", "twice")(value)
    with pytest.raises(ValueError, match="has already been registered"):
        utils.register_keras_serializable("Tests", "thrice")(double)
    with pytest.raises(ValueError, match="get_config"):
        utils.register_keras_serializable("Tests")(type("Plain", (), {}))


# -- probabilities of nearly 0 and 1, and the loss from a softmax's or sigmoid's own logits -----------------

LOGITS = np.array([[100, 0, -5], [0, 30, 1], [1, 2, 3]], np.float32)
ONE_HOT = np.array([[0, 1, 0], [0, 1, 0], [0, 0, 1]], np.float32)


@pytest.mark.parametrize(
    ("activation", "loss", "expected"),
    [
        ("softmax", "categorical_crossentropy", [100, 0, 0.4076]),
        ("softmax", "sparse_categorical_crossentropy", [100, 0, 0.4076]),
        ("softmax", "binary_crossentropy", [10.252700, 0, 0.260867]),
        ("sigmoid", "binary_crossentropy", [33.566620, 0.668807, 1.162967]),
    ],
)
def test_saturated_outputs_have_the_loss_of_their_logits(activation, loss, expected):
    """The values are TensorFlow 1.15's: a wrong class of probability 0 costs what its logit says, and is learnt."""
    logits = tf.constant(LOGITS)
    targets = ONE_HOT.argmax(-1) if loss.startswith("sparse") else ONE_HOT
    found = losses.get(loss)(tf.constant(targets), getattr(keras.activations, activation)(logits))
    np.testing.assert_allclose(value(found), expected, atol=1e-3)


def test_probabilities_of_sequences_are_clipped():
    """As in TensorFlow 1.15, where a softmax of more than two axes is not looked behind."""
    logits = tf.constant(np.stack([LOGITS, LOGITS + 1]))
    found = losses.categorical_crossentropy(np.stack([ONE_HOT] * 2), keras.activations.softmax(logits))
    np.testing.assert_allclose(value(found), [[16.1181, 0, 0.4076]] * 2, atol=1e-3)
    with pytest.raises(ValueError, match="Cannot apply softmax to a tensor that is 1D"):
        keras.activations.softmax(tf.constant([1.0, 2.0]))


@pytest.mark.parametrize("is_sparse", [False, True])
def test_classes_along_another_axis(is_sparse):
    backend = keras.backend
    shares = np.random.default_rng(3).dirichlet(np.ones(3), (2, 4)).astype(np.float32)
    classes = np.array([[0, 2, 1, 1], [2, 2, 0, 1]])
    expected = -np.log(np.take_along_axis(shares, classes[..., None], -1))[..., 0]
    function = backend.sparse_categorical_crossentropy if is_sparse else backend.categorical_crossentropy
    targets = classes if is_sparse else np.moveaxis(np.eye(3, dtype=np.float32)[classes], -1, 1)
    found = function(tf.constant(targets), tf.constant(np.moveaxis(shares, -1, 1).copy()), axis=1)
    np.testing.assert_allclose(value(found), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: tf.keras.losses.MeanSquaredError(), {"name": "mean_squared_error", "reduction": "auto"}),
        (lambda: tf.keras.losses.Hinge(name="own"), {"name": "own", "reduction": "auto"}),
        (lambda: tf.keras.metrics.Mean("x"), {"name": "x", "dtype": "float32"}),
        (lambda: tf.keras.metrics.BinaryAccuracy(), {"name": "binary_accuracy", "dtype": "float32", "threshold": 0.5}),
        (lambda: tf.keras.metrics.MeanIoU(2), {"name": "mean_io_u", "dtype": "float32", "num_classes": 2}),
    ],
)
def test_losses_and_metrics_tell_their_names(made, expected):
    found = made()
    assert found.get_config() == expected  # as TensorFlow 1.15 printed them
    assert type(found).from_config(expected).get_config() == expected


def test_none_is_no_loss():
    class Adding(tf.keras.layers.Layer):
        def call(self, inputs):
            self.add_loss([None, tf.reduce_sum(inputs)])
            self.add_loss(lambda: None)
            return inputs

    source = tf.keras.Input((2,))
    model = tf.keras.Model(source, Adding()(source))
    model.add_loss(None)
    model.add_loss(lambda: tf.constant(1.0))
    assert len(model.losses) == 2
    model.compile("sgd")
    assert model.evaluate(np.ones((2, 2)), verbose=0) == 5
