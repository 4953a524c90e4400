"""What programs import for layers of their own, and saved models as functions."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import predictor
from tfray.programs import layer_internals as internals


@pytest.mark.parametrize(
    ("value", "expected"),
    [  # TensorFlow 2.21's values, those of tensorflow.python.layers.utils
        (lambda: internals.normalize_tuple(3, 2, "kernel_size"), (3, 3)),
        (lambda: internals.normalize_tuple([1, 2], 2, "kernel_size"), (1, 2)),
        (lambda: internals.normalize_data_format("Channels_First"), "channels_first"),
        (lambda: internals.normalize_data_format(None), "channels_last"),
        (lambda: internals.normalize_padding("SAME"), "same"),
        (lambda: internals.normalize_padding([[1, 1]]), [[1, 1]]),
        (lambda: internals.convert_data_format("channels_last", 4), "NHWC"),
        (lambda: internals.convert_data_format("channels_first", 5), "NCDHW"),
        (lambda: internals.conv_output_length(10, 3, "valid", 2), 4),
        (lambda: internals.conv_output_length(10, 3, "valid", 1, 2), 6),
        (lambda: internals.conv_output_length(10, 3, "full", 1), 12),
        (lambda: internals.conv_output_length(None, 3, "same", 1), None),
        (lambda: internals.deconv_output_length(5, 3, "same", 2), 10),
        (lambda: internals.deconv_output_length(5, 3, "valid", 2), 11),
        (lambda: internals.deconv_output_length(5, 3, "full", 2), 7),
        (lambda: internals.deconv_output_length(None, 3, "full", 2), None),
        (lambda: internals.conv_input_length(4, 3, "valid", 2), 9),
        (lambda: internals.conv_input_length(None, 3, "valid", 2), None),
    ],
)
def test_arguments_and_sizes_of_layers(value, expected):
    assert value() == expected


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: internals.normalize_tuple([1], 2, "strides"), "`strides` argument must be a tuple of 2 integers"),
        (lambda: internals.normalize_tuple("ab", 2, "strides"), "`strides` argument"),
        (lambda: internals.normalize_data_format("NHWC"), "channels_first"),
        (lambda: internals.normalize_padding("half"), "`padding` argument"),
        (lambda: internals.convert_data_format("channels_last", 7), "rank not supported: 7"),
    ],
)
def test_what_layers_do_not_take(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_conditions_that_are_known():
    known = [internals.smart_constant_value(each) for each in (True, 0, tf.constant(5), tf.placeholder(tf.bool, []))]
    assert known == [True, False, 5, None] and internals.smart_constant_value(tf.Variable(True)) is None
    with pytest.raises(TypeError, match="must be a Tensor, or a Python bool, or 1 or 0"):
        internals.smart_constant_value(5)


@pytest.mark.parametrize(("answers", "expected"), [("y", True), ("mn", False), (["m", "Y"], True)])
def test_a_user_is_asked(monkeypatch, answers, expected):
    given = iter(answers)
    monkeypatch.setattr("builtins.input", lambda _: next(given))
    assert internals.ask_to_proceed_with_overwrite("there") is expected and not list(given)


@pytest.fixture
def saved(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        y = tf.multiply(x, tf.Variable(2.0), name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"in": x}, {"out": y})
    return str(tmp_path / "model")


def test_a_saved_model_is_a_function(saved):
    double = predictor.from_saved_model(saved)
    assert double({"in": [1.0, 2.0]})["out"].tolist() == [2, 4]
    assert double.feed_tensors["in"].name == "x:0" and double.fetch_tensors["out"].graph is double.graph
    assert double.session.graph is double.graph and "in" in repr(double)
    named = predictor.from_saved_model(saved, input_names={"a": "x:0"}, output_names={"b": "y:0"}, tags="serve")
    assert named({"a": [3.0]})["b"].tolist() == [6]
    with pytest.raises(ValueError, match="unexpected keys in input_dict"):
        double({"out": 3})
    for options, match in (
        ({"signature_def_key": "other"}, "Available signatures are serving_default"),
        ({"input_names": {}}, "both be"),
        ({"signature_def_key": "a", "signature_def": 3}, "at most one"),
    ):
        with pytest.raises(ValueError, match=match):
            predictor.from_saved_model(saved, **options)


def test_an_estimator_is_a_function(tmp_path):
    def model_fn(features, labels, mode):
        prediction = tf.layers.dense(features["x"], 1, kernel_initializer=tf.ones_initializer())
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": prediction})}
        loss, train = tf.reduce_sum(prediction), tf.train.get_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(mode, {"y": prediction}, loss, train, export_outputs=outputs)

    def receive():
        x = tf.placeholder(tf.float32, [None, 2])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(lambda: ({"x": tf.ones([1, 2])}, None), steps=1)
    function = predictor.from_estimator(estimator, receive)
    assert function({"x": [[1.0, 2.0]]})["y"].tolist() == [[3]]


def test_lists_and_batches():
    assert internals.to_list(3) == [3]
    assert internals.to_list([3]) == [3]
    assert internals.make_batches(7, 3) == [(0, 3), (3, 6), (6, 7)]


def test_dimensions_are_joined_to_a_rank(session):
    x = tf.random_uniform([2, 3, 4, 5])
    assert [internals.inner_flatten(x, rank).shape.as_list() for rank in (2, 3)] == [[2, 60], [2, 3, 20]]
    sparse = tf.SparseTensor([[0, 0, 1], [1, 2, 0]], [1.0, 2.0], [2, 3, 4])
    flat = session.run(internals.inner_flatten(sparse, 2))
    assert flat.indices.tolist() == [[0, 1], [1, 8]]
    assert flat.dense_shape.tolist() == [2, 12]
    with pytest.raises(ValueError, match="less than new_rank"):
        internals.inner_flatten(x, 5)


def test_long_vectors_are_shortened(session):
    vectors = session.run(internals.poincare_normalize([[3.0, 4.0], [0.3, 0.4]], epsilon=0.1))
    assert vectors == pytest.approx(np.array([[0.54, 0.72], [0.3, 0.4]]))


def test_pooling_of_any_rank(session):
    x = np.arange(24.0, dtype=np.float32).reshape(1, 6, 4, 1)
    pooled = internals.pool_any(x, 2, "AVG", dilation_rate=[2, 1])
    assert session.run(pooled) == pytest.approx((x[:, :4, :3] + x[:, 2:, :3] + x[:, :4, 1:] + x[:, 2:, 1:]) / 4)
    assert internals.pool_any(np.zeros((5, 9, 3), np.float32), 3, "MAX", stride=2, padding="SAME").shape == [5, 5, 3]
    with pytest.raises(ValueError, match="known"):
        internals.pool_any(tf.placeholder(tf.float32), 2, "MAX")
