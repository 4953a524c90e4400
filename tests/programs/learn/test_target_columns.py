"""Targets, columns and shapes of `tf.contrib.layers`, and initializers; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized
from tfray.contrib import framework, layers

ONE = np.array([[0.5], [-1.0], [2.0], [0.0]], np.float32)
THREE = np.array([[1.0, 0, -1], [0, 2, 1], [0.5, 0.5, 0], [-1, 0, 3]], np.float32)
LIKELY = [[0.37754, 0.62246], [0.73106, 0.26894], [0.1192, 0.8808], [0.5, 0.5]]
ACCURACY = tf.contrib.metrics.streaming_accuracy
ERROR = tf.contrib.metrics.streaming_mean_squared_error
BINARY = {
    "labels/prediction_mean": 0.56805,
    "labels/actual_target_mean": 0.75,
    "accuracy/baseline_target_mean": 0.75,
    "auc": 1.0,
    "accuracy/threshold_0.500000_mean": 1.0,
    "precision/positive_threshold_0.500000_mean": 1.0,
    "recall/positive_threshold_0.500000_mean": 0.66667,
}
TARGETS = [
    (layers.multi_class_target(2), ONE, [[1], [0], [1], [1]], None, 0.40185, {**BINARY, "accuracy": 0.75}),
    (
        layers.multi_class_target(2, "y", "w"),
        ONE,
        [1, 0, 1, 1],
        {"acc": ACCURACY, ("a", "classes"): ACCURACY, ("p", "probabilities"): lambda found, _, weights: (found, found)},
        0.4643,
        {**BINARY, "acc": 0.77778, "a": 0.77778, "p": LIKELY},
    ),
    (layers.multi_class_target(3, None, "w"), THREE, [0, 1, 1, 2], None, 0.44193, {"accuracy": 0.88889}),
    (layers.regression_target(None, "w"), ONE, [1.0, 0, 2, 1], {"mse": ERROR}, 0.8125, {"mse": 0.72222}),
    (layers.regression_target(label_dimension=3), THREE, np.ones([4, 3]), {"mse": ERROR}, 1.45833, {"mse": 1.45833}),
]
LOSSES = [0.40185, 0.41271, 0.39282, 0.72222, 1.45833]


@pytest.mark.parametrize("number", range(5))
def test_targets(number):
    target, logits, labels, metrics, to_train, expected = TARGETS[number]
    features, logits = {"w": tf.constant([1.0, 2, 0.5, 1])}, tf.constant(logits)
    labels = tf.constant(labels, tf.float32 if target.problem_type == 2 else tf.int32)
    made = target.get_eval_ops(features, logits, labels, metrics)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run([update for _, update in made.values()])
        values = session.run({name: value for name, (value, _) in made.items()})
        assert session.run(target.training_loss(logits, labels, features)) == pytest.approx(to_train, abs=1e-5)
        assert session.run(target.loss(logits, labels, features)) == pytest.approx(LOSSES[number], abs=1e-5)
        classes = session.run(target.logits_to_predictions(logits)).tolist()
        likely = session.run(target.logits_to_predictions(logits, proba=True))
    wanted = {"loss": LOSSES[number], **expected}
    assert values == {name: pytest.approx(np.array(value), abs=1e-5) for name, value in wanted.items()}
    if target.problem_type == 2:
        assert classes == ([0.5, -1.0, 2.0, 0.0] if number == 3 else THREE.tolist())
    else:
        assert classes == [[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 2]][number]
        assert likely.sum(1) == pytest.approx(np.ones(4)) and (
            number == 2 or likely == pytest.approx(np.array(LIKELY), abs=1e-5)
        )
    assert target.num_label_columns == [1, 1, 3, 1, 3][number] and target.label_name == (None, "y")[number == 1]


THREE_CLASSES = layers.multi_class_target(3)
TWICE = [layers.real_valued_column("a"), layers.real_valued_column("a")]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.multi_class_target(1), "n_classes must be > 1"),
        (
            lambda: layers.multi_class_target(3).loss(tf.constant(THREE), tf.constant([1.0] * 4), {}),
            "should be integer",
        ),
        (
            lambda: layers.multi_class_target(3).get_eval_ops({}, THREE, [0, 1, 1, 2], {("a", "b"): ACCURACY}),
            "Ignoring",
        ),
        (lambda: layers.check_feature_columns({"a": 1}), "found dict"),
        (lambda: layers.check_feature_columns(TWICE), "Duplicate feature column key"),
        (lambda: layers.infer_real_valued_columns({"a": tf.constant("x")}), "Non integer or non floating"),
        (lambda: layers.infer_real_valued_columns(tf.SparseTensor([[0, 0]], [1], [1, 1])), "SparseTensor is not"),
        (lambda: layers.images_to_sequence(np.ones([1, 1, 1, 1]), data_format="q"), "either NCHW or NHWC"),
        (lambda: framework.convolutional_orthogonal_1d()([3, 4]), "three-dimensional"),
        (lambda: framework.convolutional_orthogonal_2d()([3, 2, 2, 4]), "Kernel sizes must be equal"),
        (lambda: framework.convolutional_orthogonal_3d()([2, 2, 2, 5, 3]), "In_filters cannot be greater"),
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_columns_of_tensors():
    found = layers.infer_real_valued_columns({"b": tf.zeros([2, 3, 2]), "a": tf.zeros([2], tf.int64)})
    assert [(each.name, each.dimension, each.dtype) for each in found] == [("b", 6, tf.float32), ("a", 1, tf.int64)]
    assert [(each.name, each.dimension) for each in layers.infer_real_valued_columns(tf.zeros([2, 3]))] == [("", 3)]
    layers.check_feature_columns([*TWICE[:1], layers.real_valued_column("a", dimension=2)])
    assert layers.feature_column.real_valued_column is layers.real_valued_column
    assert layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY == 956888297470


def test_columns_of_sequences():
    def numbers(*values):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    steps = tf.train.FeatureList(feature=[numbers(i, i + 1.0) for i in range(3)])
    example = tf.train.SequenceExample(
        context=tf.train.Features(feature={"c": numbers(1.5)}),
        feature_lists=tf.train.FeatureLists(feature_list={"s": steps}),
    )
    context, sequence = layers.parse_feature_columns_from_sequence_examples(
        example.SerializeToString(),
        [layers.real_valued_column("c")],
        [layers.real_valued_column("s", 2), layers.real_valued_column("z", default_value=0.0)],
    )
    with tf.Session() as session:
        assert session.run(context)["c"].tolist() == [1.5]
        found = session.run(sequence)
    assert found["s"].tolist() == [[0, 1], [1, 2], [2, 3]] and found["z"].size == 0


def test_images_as_sequences():
    images = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    first = images.transpose(0, 3, 1, 2)
    steps = layers.images_to_sequence(images, outputs_collections="made")
    assert (
        steps.shape == [4, 6, 5]
        and steps.op.name == "ImagesToSequence/Reshape"
        and tf.get_collection("made") == [steps]
    )
    unknown = tf.placeholder(tf.float32, [None, None, 4, 5])
    there = layers.sequence_to_images(layers.images_to_sequence(unknown), 3)
    assert there.shape.as_list() == [None, 3, 4, 5]
    with tf.Session() as session:
        assert session.run(steps)[1, 2].tolist() == [45, 46, 47, 48, 49]
        assert (session.run(steps) == session.run(layers.images_to_sequence(first, "NCHW"))).all()
        assert (session.run(layers.sequence_to_images(steps, 3)) == images).all()
        assert (session.run(layers.sequence_to_images(steps, 3, "channels_first")) == first).all()
        assert (session.run(there, {unknown: images}) == images).all()


def test_scaled_gradients():
    x, factor = tf.constant([1.0, 2.0]), tf.constant(3.0)
    scaled = layers.scale_gradient(x, factor)
    with tf.Session() as session:
        assert session.run(scaled).tolist() == [1, 2]
        assert session.run(tf.gradients(scaled * scaled, x)[0]).tolist() == [6, 12]
    assert tf.gradients(scaled, factor) == [None]


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (framework.convolutional_orthogonal_1d, [3, 4, 6]),
        (framework.convolutional_orthogonal_1d, [1, 4, 4]),
        (framework.convolutional_orthogonal_2d, [3, 3, 2, 4]),
        (framework.convolutional_orthogonal_3d, [2, 2, 2, 3, 5]),
    ],
)
def test_filters_that_keep_norms(make, shape):
    filters = run_initialized(tf.get_variable("filters", shape, initializer=make(gain=2.0, seed=3)))
    axes = tuple(range(len(shape) - 2))
    inputs = np.random.default_rng(0).normal(size=[*[5] * len(axes), shape[-2]])
    outputs = sum(np.roll(inputs, place, axes) @ filters[place] for place in np.ndindex(*shape[:-2]))
    assert np.linalg.norm(outputs) == pytest.approx(2 * np.linalg.norm(inputs), rel=1e-5)
    assert make(2.0, 3).get_config() == {"gain": 2.0, "seed": 3, "dtype": "float32"}


def test_values_of_conditions():
    assert framework.smart_constant_value(True) is True
    assert framework.smart_constant_value(tf.placeholder(tf.bool)) is None
    assert not framework.smart_constant_value(tf.constant(False))
