"""Exporting estimators: receivers, outputs, signatures, and what is served from them."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.estimator import export_outputs, receivers

export = tf.estimator.export
COLUMNS = [
    tf.feature_column.numeric_column("a"),
    tf.feature_column.categorical_column_with_vocabulary_list("w", ["x", "y"]),
]


def data():
    features = {"a": np.linspace(-1, 1, 20, dtype=np.float32), "w": np.array(["x", "y"] * 10)}
    return tf.data.Dataset.from_tensor_slices((features, (features["a"] > 0).astype(np.int64))).repeat().batch(10)


@pytest.fixture
def classifier(tmp_path):
    return tf.estimator.LinearClassifier(COLUMNS, str(tmp_path / "m")).train(data, steps=20)


def example(a, w):
    features = {
        "a": tf.train.Feature(float_list=tf.train.FloatList(value=[a])),
        "w": tf.train.Feature(bytes_list=tf.train.BytesList(value=[w])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def loaded(path):
    """A session with the model, and its signatures."""
    session = tf.Session(graph=tf.Graph())
    with session.graph.as_default():
        meta = tf.saved_model.loader.load(session, ["serve"], path.decode())
    return session, meta.signature_def


def test_a_classifier_serves_serialized_examples(classifier, tmp_path):
    spec = tf.feature_column.make_parse_example_spec(COLUMNS)
    path = classifier.export_saved_model(f"{tmp_path}/out", export.build_parsing_serving_input_receiver_fn(spec))
    session, found = loaded(path)
    assert set(found) == {"serving_default", "classification", "regression", "predict"}
    assert found["serving_default"].method_name == "tensorflow/serving/classify"
    assert set(found["serving_default"].inputs) == {"inputs"} and set(found["predict"].inputs) == {"examples"}
    outputs = found["serving_default"].outputs
    feed = {found["serving_default"].inputs["inputs"].name: [example(0.9, b"x"), example(-0.9, b"y")]}
    classes, scores = session.run([outputs["classes"].name, outputs["scores"].name], feed)
    assert classes.tolist() == [[b"0", b"1"]] * 2 and scores.argmax(1).tolist() == [1, 0]
    logits = session.run(found["predict"].outputs["logits"].name, feed)
    assert (logits[:, 0] > 0).tolist() == [True, False]
    session.close()


def test_raw_features_are_served_by_the_signature_that_takes_several(classifier, tmp_path):
    features = {"a": tf.placeholder(tf.float32, [None]), "w": tf.placeholder(tf.string, [None])}
    path = classifier.export_savedmodel(f"{tmp_path}/out", export.build_raw_serving_input_receiver_fn(features))
    session, found = loaded(path)
    assert set(found) == {"predict"}
    feed = {found["predict"].inputs[name].name: value for name, value in (("a", [0.9]), ("w", ["x"]))}
    assert session.run(found["predict"].outputs["class_ids"].name, feed) == [[1]]
    session.close()


def test_alternatives_assets_and_the_time_in_the_name(classifier, tmp_path):
    (tmp_path / "notes.txt").write_text("of interest")

    def receiver():
        text = tf.placeholder(tf.string, [None])
        a = tf.placeholder(tf.float32, [None])
        return export.ServingInputReceiver({"a": a, "w": text}, {"a": a, "w": text}, {"words": {"w": text}})

    paths = [
        classifier.export_saved_model(
            f"{tmp_path}/out", receiver, assets_extra={"sub/notes.txt": tmp_path / "notes.txt"}
        )
        for _ in range(2)
    ]
    assert paths[0] != paths[1] and paths[0].rpartition(b"/")[2].isdigit()
    _, found = loaded(paths[1])
    assert {"predict", "words:predict", "words:regression"} <= set(found)
    with open(paths[0] + b"/assets.extra/sub/notes.txt") as file:
        assert file.read() == "of interest"


def test_graphs_for_training_and_evaluation(classifier, tmp_path):
    features = {"a": tf.placeholder(tf.float32, [None]), "w": tf.placeholder(tf.string, [None])}
    labels = tf.placeholder(tf.int64, [None])
    supervised = tf.estimator.experimental.build_raw_supervised_input_receiver_fn(features, labels)
    path = classifier.experimental_export_all_saved_models(
        f"{tmp_path}/out",
        {"train": supervised, "eval": supervised, "infer": export.build_raw_serving_input_receiver_fn(features)},
    )
    for tag, name, method in (("train", "train", "training"), ("eval", "eval", "eval")):
        with tf.Session(graph=tf.Graph()) as session:
            found = tf.saved_model.loader.load(session, [tag], path.decode()).signature_def[name]
            assert found.method_name == f"tensorflow/supervised/{method}" and "loss" in found.outputs
            assert set(found.inputs) == {"a", "w", "label"} and "predictions/logits" in found.outputs
            assert ("metrics/accuracy/value" in found.outputs) == (tag == "eval")


def test_outputs_that_are_refused():
    numbers, words = tf.constant([[1.0]]), tf.constant([["a"]])
    with pytest.raises(ValueError, match="At least one of scores and classes must be set"):
        export.ClassificationOutput()
    with pytest.raises(ValueError, match="Classification scores must be a float32 Tensor; got Tensor\\("):
        export.ClassificationOutput(scores=words)
    with pytest.raises(ValueError, match="Classification classes must be a string Tensor; got Tensor\\("):
        export.ClassificationOutput(classes=numbers)
    with pytest.raises(ValueError, match="Regression output value must be a float32 Tensor; got Tensor\\("):
        export.RegressionOutput(words)
    with pytest.raises(ValueError, match="Prediction output value must be a Tensor; got 1"):
        export.PredictOutput({"a": 1})
    with pytest.raises(ValueError, match="Prediction output key must be a string; got 1"):
        export.PredictOutput({1: numbers})
    assert list(export.PredictOutput(numbers).outputs) == ["output"]
    assert list(export.PredictOutput({("a", "b"): numbers}).outputs) == ["a/b"]


def test_receivers():
    tensor = tf.placeholder(tf.float32, [None])
    made = export.ServingInputReceiver(tensor, tensor)
    assert made.features == {"feature": tensor} and made.receiver_tensors == {"input": tensor}
    assert export.TensorServingInputReceiver(tensor, tensor).features is tensor
    for arguments, message in (
        ((None, tensor), "features must be defined"),
        ((tensor, None), "receiver_tensors must be defined"),
        (({4.2: tensor}, tensor), "feature keys must be strings or ints"),
        ((tensor, {1: tensor}), "receiver_tensor keys must be strings"),
        ((tensor, {"a": [1]}), "receiver_tensor a must be a Tensor"),
        (({"a": 1}, tensor), "feature a must be a Tensor or SparseTensor"),
        ((tensor, tensor, [1]), "expected a dictionary"),
    ):
        with pytest.raises(ValueError, match=message):
            export.ServingInputReceiver(*arguments)
    with pytest.raises(ValueError, match="one tensor"):
        export.TensorServingInputReceiver({"a": tensor}, tensor)


class Labelled:
    """A tensor with a name for each dimension."""

    def __init__(self, tensor):
        self.tensor = tensor


tf.register_tensor_conversion_function(Labelled, lambda value, *_, **__: value.tensor)


def test_receivers_of_labels():
    tensor, sparse = tf.placeholder(tf.float32, [None]), tf.SparseTensor([[0, 0]], [1], [1, 1])
    made = receivers.SupervisedInputReceiver(sparse, {43: tensor, "a": sparse}, tensor)
    assert made.features is sparse and made.receiver_tensors == {"input": tensor}
    labelled = Labelled(tensor)
    assert export.ServingInputReceiver({42: sparse, "a": labelled}, tensor).features == {42: sparse, "a": labelled}
    assert receivers.UnsupervisedInputReceiver(labelled, tensor).features == {"feature": labelled}
    for arguments, message in (
        ((None, tensor, tensor), "features must be defined"),
        ((tensor, {1.1: tensor}, tensor), "label keys must be strings or ints"),
        (([1], tensor, tensor), "feature must be a Tensor or SparseTensor"),
        ((tensor, 100, tensor), "label must be a Tensor or SparseTensor"),
        ((tensor, tensor, None), "receiver_tensors must be defined"),
    ):
        with pytest.raises(ValueError, match=message):
            receivers.SupervisedInputReceiver(*arguments)


def test_receivers_of_what_an_input_function_gives():
    def input_fn(size):
        return {"a": tf.ones([7, size])}, tf.zeros([7], tf.int64)

    made = receivers.build_supervised_input_receiver_fn_from_input_fn(input_fn, size=2)()
    assert set(made.receiver_tensors) == {"a", "label"} and made.labels.dtype == tf.int64
    assert made.features["a"].shape.as_list() == [None, 2] and made.labels.graph is tf.get_default_graph()
    with pytest.raises(ValueError, match="Features and labels must have distinct keys"):
        receivers.build_raw_supervised_input_receiver_fn({"a": tf.ones([1])}, {"a": tf.ones([1])})


def test_outputs_of_training_and_evaluation():
    loss, predictions, mean = tf.constant([0]), tf.constant(["foo"]), tf.keras.metrics.Mean()
    mean.update_state(loss)
    pair = (tf.constant([0]), tf.constant([10]))
    made = export_outputs.TrainOutput({"my_loss": loss}, {("out", "1"): predictions}, {"m": mean, "metrics_2": pair})
    assert made.loss == {"loss/my_loss": loss} and made.predictions == {"predictions/out/1": predictions}
    assert list(made.metrics) == ["metrics/m/value", "metrics/m/update_op", "metrics_2/value", "metrics_2/update_op"]
    assert made.metrics["metrics/m/update_op"].name == "metric_op_wrapper:0"
    assert made.metrics["metrics_2/update_op"] is pair[1]
    signature = made.as_signature_def({"features": tf.ones([3])})
    assert signature.method_name == "tensorflow/supervised/training" and list(signature.inputs) == ["features"]
    assert set(signature.outputs) == {*made.loss, *made.predictions, *made.metrics}
    single = export_outputs.EvalOutput(loss, predictions)
    assert (single.loss, single.predictions, single.metrics) == ({"loss": loss}, {"predictions": predictions}, None)
    for arguments, message in (
        ((loss, [3], None), "predictions output value must"),
        (("str", None, None), "loss output value must"),
        ((None, None, (15.3, 4)), "metrics output value must"),
        (({25: loss}, None, None), "loss output key must"),
    ):
        with pytest.raises(ValueError, match=message):
            export_outputs.EvalOutput(*arguments)


def test_metric_objects_are_metrics_of_an_estimator(tmp_path):
    def model(features, labels, mode):
        mean, error = tf.keras.metrics.Mean(), tf.keras.metrics.MeanSquaredError()
        mean.update_state(features)
        error.update_state(labels, features)
        assert len(mean.updates) == len(error.updates) == 1
        return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features), eval_metric_ops={"m": mean, "e": error})

    values = np.arange(6, dtype=np.float32)
    found = tf.estimator.Estimator(model, str(tmp_path)).evaluate(
        lambda: tf.data.Dataset.from_tensor_slices((values, values + 2)).batch(2)
    )
    assert (found["m"], found["e"]) == (2.5, 4)


def test_all_signatures():
    from tfray.estimator.saved_models import build_all_signature_defs

    text, number = tf.placeholder(tf.string), tf.placeholder(tf.int64)
    outputs = {"a": export.RegressionOutput(tf.ones([1])), "b": export.PredictOutput({"c": tf.ones([1])})}
    found = build_all_signature_defs(text, outputs, {"other": number, "named": {"d": number}})
    assert set(found) == {"a", "b", "other:b", "named:b"}, "a regression is fed text"
    assert list(found["b"].inputs) == ["input"] and list(found["named:b"].inputs) == ["d"]
    with pytest.raises(ValueError, match="export_outputs must be a dict"):
        build_all_signature_defs(text, None)


def test_several_outputs_need_a_default():
    tensor = tf.constant([1.0])
    outputs = {"a": export.PredictOutput(tensor), "b": export.PredictOutput(tensor)}
    with pytest.raises(ValueError, match="serving_default"):
        tf.estimator.EstimatorSpec("infer", predictions=tensor, export_outputs=outputs)
    made = tf.estimator.EstimatorSpec("infer", predictions=tensor, export_outputs={"a": outputs["a"]})
    assert made.export_outputs["serving_default"] is outputs["a"]


def test_parse_specs():
    spec = tf.estimator.classifier_parse_example_spec(COLUMNS, "y", weight_column="v")
    assert set(spec) == {"a", "w", "y", "v"} and spec["y"].dtype == tf.int64 and tuple(spec["y"].shape) == (1,)
    spec = tf.estimator.regressor_parse_example_spec(COLUMNS, "y", label_dimension=3)
    assert spec["y"].dtype == tf.float32 and tuple(spec["y"].shape) == (3,)
    with pytest.raises(ValueError, match="label_key is 'a', which is a feature"):
        tf.estimator.classifier_parse_example_spec(COLUMNS, "a")
    with pytest.raises(ValueError, match="weight_column is 'a', which is a feature"):
        tf.estimator.classifier_parse_example_spec(COLUMNS, "y", weight_column="a")
