"""Functions of `tf.contrib.estimator`, and the baseline estimator. Expected values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

helpers = tf.contrib.estimator
FEATURES, COLUMNS = {"x": np.array([[1.0], [2.0]], np.float32)}, [tf.feature_column.numeric_column("x")]


def test_a_head_of_logistic_regression():
    head = helpers.logistic_regression_head()
    spec = head.create_estimator_spec(FEATURES, "eval", tf.constant([[0.0], [1.0]]), tf.constant([[0.0], [1.0]]))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        found = session.run([spec.loss, spec.predictions["predictions"]])
        session.run([update for _, update in spec.eval_metric_ops.values()])
        metrics = session.run({name: value for name, (value, _) in spec.eval_metric_ops.items()})
    assert found[0] == pytest.approx(0.50320446)
    np.testing.assert_allclose(found[1], [[0.5], [0.7310586]], rtol=1e-6)
    expected = {"average_loss": 0.50320446, "prediction/mean": 0.6155293, "label/mean": 0.5}
    assert metrics == pytest.approx(expected)


@pytest.mark.parametrize(
    ("make", "variables"),
    [
        (
            lambda: helpers.linear_logit_fn_builder(2, COLUMNS),
            [("linear_model/x/weights", [1, 2]), ("linear_model/bias_weights", [2])],
        ),
        (
            lambda: helpers.dnn_logit_fn_builder(2, [3], COLUMNS, tf.nn.relu, None, None, False),
            [
                ("hiddenlayer_0/kernel", [1, 3]),
                ("hiddenlayer_0/bias", [3]),
                ("logits/kernel", [3, 2]),
                ("logits/bias", [2]),
            ],
        ),
    ],
)
def test_functions_for_logits(make, variables):
    logits = helpers.call_logit_fn(make(), FEATURES, "train", {}, None)
    assert logits.shape.as_list() == [2, 2]
    assert [(variable.op.name, variable.shape.as_list()) for variable in tf.global_variables()] == variables


def test_a_function_for_logits_takes_what_it_wants():
    def logit_fn(features, params, mode):
        return tf.constant([len(features), params, len(mode)])

    with tf.Session() as session:
        assert session.run(helpers.call_logit_fn(logit_fn, FEATURES, "train", 7, None)).tolist() == [1, 7, 5]


@pytest.mark.parametrize("returned", [3, {"a": 1}, None])
def test_a_function_for_logits_gives_tensors(returned):
    with pytest.raises(ValueError, match="logit_fn should return a Tensor or a dictionary mapping strings to Tensors"):
        helpers.call_logit_fn(lambda features: returned, FEATURES, "train", {}, None)


def test_a_baseline_learns_the_mean_label(tmp_path):
    def input_fn():
        return {"x": tf.constant([[1.0], [2.0], [3.0]])}, tf.constant([[1.0], [2.0], [6.0]])

    head, folder = tf.estimator.RegressionHead(), str(tmp_path)
    model = tf.estimator.BaselineEstimator(head, folder, lambda: tf.train.GradientDescentOptimizer(0.1))
    model.train(input_fn, steps=100)
    expected = {"average_loss": 4.6666665, "label/mean": 3.0, "loss": 4.6666665, "prediction/mean": 2.9999993}
    assert model.evaluate(input_fn, steps=1) == pytest.approx({**expected, "global_step": 100})
    assert next(iter(model.predict(input_fn)))["predictions"].tolist() == pytest.approx([3])
    assert sorted(model.get_variable_names()) == ["baseline/bias", "global_step"]


def test_an_estimator_is_exported_for_a_mode(tmp_path):
    model = tf.estimator.LinearRegressor(COLUMNS, str(tmp_path / "model"))
    model.train(lambda: (FEATURES, np.array([[1.0], [2.0]], np.float32)), steps=1)
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 1])})
    folder = helpers.export_saved_model_for_mode(model, str(tmp_path / "export"), receiver, mode="infer")
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.load(session, [tf.saved_model.SERVING], folder.decode())
        assert "predict" in loaded.signature_def
