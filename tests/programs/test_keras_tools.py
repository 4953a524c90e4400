"""What TensorFlow keeps beside its Keras layers: kernels, metrics of compiled models, losses of functions."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run
from tfray.keras.losses import _OfFunction
from tfray.keras.optimizers import _Given
from tfray.library.layers.older_inputs import _Transformer
from tfray.programs import keras_tools
from tfray.programs.internals import layer_tools
from tfray.programs.internals import training_data_tools as tools

X, Y = [[1.0, 2.0], [-2.0, 0.9], [3.3, -1.0]], [[1.1, 2.1], [-2.0, 0.9]]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (keras_tools.exact_gaussian_kernel, [[0.997, 0.279], [0.251, 1.0], [0.164, 0.019]]),
        (keras_tools.exact_laplacian_kernel, [[0.904, 0.128], [0.116, 1.0], [0.07, 0.027]]),
    ],
)
def test_kernels_of_vectors(kernel, expected):
    np.testing.assert_allclose(run(kernel(tf.constant(X), tf.constant(Y), stddev=2.0)), expected, atol=0.01)
    assert run(kernel(tf.constant(X[0]), tf.constant(X[0]), stddev=10.0)).tolist() == [[1.0]]
    with pytest.raises(ValueError, match="vectors of different lengths"):
        kernel(tf.constant(X), tf.ones([3]), 1.0)
    with pytest.raises(ValueError, match="Given rank: 0"):
        kernel(tf.constant(X), 1.0, 1.0)


@pytest.mark.parametrize(("shape", "split"), [((0,), 0), ((1, 0), 1), ((5, 2, 3), 2), ((3, 5, 6, 0), 3), ((2, 2), 0)])
def test_tensors_as_matrices(shape, split):
    value = np.random.default_rng(0).normal(size=shape)
    expected = value.reshape(int(np.prod(shape[:split])), int(np.prod(shape[split:])))
    assert run(keras_tools.make_2d(tf.constant(value), split)).tolist() == expected.tolist()
    assert run(keras_tools.inner_product(X, Y)).tolist() == pytest.approx(np.array(X) @ np.array(Y).T)


def test_metrics_of_a_compiled_model():
    first, second = tf.keras.Input((3,)), tf.keras.Input((3,))
    dense = tf.keras.layers.Dense(4, name="dense")
    model = tf.keras.Model([first, second], [dense(second), tf.keras.layers.Dropout(0.5, name="dropout")(dense(first))])
    assert keras_tools.extract_model_metrics(model) is None
    model.compile("sgd", "mae", metrics=[tf.keras.metrics.BinaryAccuracy(), "mae"])
    kinds = "binary_accuracy", "mean_absolute_error"
    assert list(keras_tools.extract_model_metrics(model)) == [f"{a}_{b}" for a in ("dense", "dropout") for b in kinds]


def test_a_loss_of_a_function_has_its_settings():
    def scaled(y_true, y_pred, factor):
        return factor * tf.reduce_mean(tf.abs(y_pred - y_true), -1)

    loss = _OfFunction(scaled, factor=3.0)
    assert loss.name == "scaled"
    assert run(loss([[1.0], [2.0]], [[2.0], [4.0]])) == 4.5


def test_a_column_is_transformed_once():
    layers = tf.contrib.layers
    bucket = layers.bucketized_column(layers.real_valued_column("price"), boundaries=[0.0, 10.0, 100.0])
    transformer = _Transformer({"price": tf.constant([[20.0], [110], [-3]])})
    found = transformer.transform(bucket)
    count = len(tf.get_default_graph().get_operations())
    assert transformer.transform(bucket) is found and len(tf.get_default_graph().get_operations()) == count
    assert run(found).tolist() == [[2], [3], [0]]
    assert _Transformer({bucket: "as it is"}).transform(bucket) == "as it is"


# -- models as functions ---------------------------------------------------------------------------------


class _Sum(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(2)

    def call(self, inputs):
        first, *others = inputs if isinstance(inputs, list) else [inputs]
        return self.dense(first) + sum(others)


def chain():
    return tf.keras.Sequential([tf.keras.layers.Dense(2)])


@pytest.mark.parametrize("make", [chain, _Sum], ids=["sequential", "derived"])
@pytest.mark.parametrize("with_signature", [False, True])
def test_models_are_traced_as_functions_of_their_inputs(make, with_signature):
    model, inputs = make(), tf.ones((8, 5))
    with pytest.raises(ValueError, match="input shapes have not been set"):
        keras_tools.trace_model_call(model)
    if not with_signature:
        model._set_inputs(inputs)
    function = keras_tools.trace_model_call(model, [tf.TensorSpec([None, 5])] if with_signature else None)
    assert model.output_names == ["output_1"] and function.input_signature[0].shape.as_list() == [None, 5]
    found = function(inputs)["output_1"]
    with tf.Session() as session:
        keras_tools.initialize_variables(session)
        np.testing.assert_allclose(*session.run([found, model(inputs)]))


def test_a_model_of_several_inputs_is_traced():
    a, b = tf.keras.Input((5,), name="a"), tf.keras.Input((2,), name="b")
    both = tf.keras.layers.Add(name="both")([tf.keras.layers.Dense(2, kernel_initializer="ones")(a), b])
    function = keras_tools.trace_model_call(tf.keras.Model([a, b], both))
    (specs,) = function.input_signature
    assert [(spec.name, spec.shape.as_list()) for spec in specs] == [("a", [None, 5]), ("b", [None, 2])]
    found = function([tf.ones((3, 5)), tf.ones((3, 2))])["both"]
    with tf.Session() as session:
        keras_tools.initialize_variables(session)
        assert session.run(found).tolist() == [[6.0, 6.0]] * 3


# -- layers and data -------------------------------------------------------------------------------------


def test_turned_kernels_and_reordered_rows():
    convolution = tf.keras.layers.Conv2D(2, (4, 3), input_shape=(5, 5, 3))
    model = tf.keras.Sequential([convolution, tf.keras.layers.Flatten(), tf.keras.layers.Dense(5)])
    kernel, rows = convolution.get_weights()[0], model.layers[2].get_weights()[0]
    layer_tools.convert_all_kernels_in_model(model)
    np.testing.assert_array_equal(convolution.get_weights()[0], kernel[::-1, ::-1])
    layer_tools.convert_dense_weights_data_format(model.layers[2], (2, 3, 2), "channels_first")
    images = np.random.default_rng(0).normal(size=(2, 3, 2))
    expected = images.ravel() @ rows
    np.testing.assert_allclose(
        images.transpose(2, 0, 1).ravel() @ model.layers[2].get_weights()[0], expected, rtol=1e-5
    )
    layer_tools.convert_dense_weights_data_format(model.layers[2], (2, 2, 3), "channels_last")
    np.testing.assert_array_equal(model.layers[2].get_weights()[0], rows)
    with pytest.raises(ValueError, match="target_data_format is 'NHWC'"):
        layer_tools.convert_dense_weights_data_format(model.layers[2], (2, 2, 3), "NHWC")
    assert layer_tools.count_params(model.weights * 2) == model.count_params() == 4 * 3 * 3 * 2 + 2 + 12 * 5 + 5


@pytest.mark.parametrize("trainable", [False, True])
def test_weights_of_layers_and_variables(trainable):
    held, moved = tf.keras.layers.Dense(1, trainable=False), tf.keras.layers.Dense(1, use_bias=False)
    for layer in (held, moved):
        layer.build((None, 2))
    free, fixed = tf.Variable(1.0), tf.Variable(1.0, trainable=False)
    arguments = trainable, [held, moved], [free, fixed]
    trained, others = (
        layer_tools.gather_trainable_weights(*arguments),
        layer_tools.gather_non_trainable_weights(*arguments),
    )
    assert trained == ([*moved.weights, free] if trainable else [])
    expected = [*held.weights, fixed] if trainable else [*moved.weights, *held.weights, free, fixed]
    assert {id(each) for each in others} == {id(each) for each in expected} and len(others) == len(expected)


NUMBERS = tf.data.Dataset.range


@pytest.mark.parametrize(
    ("make", "batched", "shuffled"),
    [
        (lambda: NUMBERS(5).map(lambda x: x + 1).take(2), False, False),
        (lambda: NUMBERS(5).batch(2).prefetch(1), True, False),
        (lambda: NUMBERS(5).padded_batch(2, []), True, False),
        (lambda: NUMBERS(5).window(2), True, False),
        (lambda: NUMBERS(5).concatenate(NUMBERS(4).shuffle(2)), False, True),
        (lambda: NUMBERS(5).flat_map(tf.data.Dataset.from_tensors), True, True),
        (lambda: tf.data.TFRecordDataset([]), False, False),
        (lambda: tf.data.TextLineDataset([]).shuffle(3), False, True),
        (lambda: tf.data.FixedLengthRecordDataset([], 42), False, False),
    ],
)
def test_what_datasets_do(make, batched, shuffled):
    for check, refuses in ((tools.assert_not_batched, batched), (tools.assert_not_shuffled, shuffled)):
        with pytest.raises(ValueError, match="dataset") if refuses else nullcontext():
            check(make())


def test_a_dataset_that_is_not_shuffled_is_warned_of(caplog):
    tools.verify_dataset_shuffled(NUMBERS(5).shuffle(2))
    assert "not shuffled" not in caplog.text
    tools.verify_dataset_shuffled(NUMBERS(5))
    assert "input dataset `x` is not shuffled" in caplog.text


@pytest.mark.parametrize(
    ("given", "names", "structure"),
    [
        (np.ones(10), ["input_1"], None),
        ([np.ones(10), np.ones((20, 3), np.int32)], ["input_1", "input_2"], [0, 1]),
        ({"b": np.ones(10), "a": np.ones(20)}, ["a", "b"], ["a", "b"]),
    ],
    ids=["one", "list", "dictionary"],
)
def test_inputs_of_data(given, names, structure):
    inputs = tools.ModelInputs(given)
    assert inputs.get_input_names() == names
    found = inputs.get_symbolic_inputs()
    for tensor in [found] if structure is None else [found[key] for key in structure]:
        assert tensor.op.type == "Placeholder" and tensor.shape.as_list()[0] is None
    if structure is None:
        assert len(inputs.get_symbolic_inputs(return_single_as_list=True)) == 1
    tensor = tf.ones([2, 3])
    assert tools.ModelInputs(tensor).get_symbolic_inputs() is tensor


def test_weights_of_examples_and_classes():
    y, weights, by_class = np.array([0, 1, 0, 0, 2]), np.array([0.5, 1, 1, 0, 2]), {0: 0.5, 1: 1.0, 2: 1.5}
    own = np.array([0.5, 1.0, 0.5, 0.5, 1.5])
    np.testing.assert_allclose(tools.standardize_weights(y, weights), weights)
    np.testing.assert_allclose(tools.standardize_weights(y, class_weight=by_class), own)
    np.testing.assert_allclose(tools.standardize_weights(y, weights, by_class), weights * own)
    assert tools.standardize_weights(y) is None


def test_parts_of_arrays_and_names():
    a, b = np.arange(5), np.arange(10).reshape(5, 2)
    for contiguous in (False, True):
        assert tools.slice_arrays(a, [1, 2], contiguous).tolist() == [1, 2]
        assert [each.tolist() for each in tools.slice_arrays([a, b], [1, 2], contiguous)] == [[1, 2], [[2, 3], [4, 5]]]
        assert tools.slice_arrays({"b": b}, [0, 1], contiguous)["b"].tolist() == [[0, 1], [2, 3]]
    assert tools.generic_output_names("ab") == ["output_1", "output_2"]
    assert tools.has_symbolic_tensors([a, {"x": tf.ones([1])}]) and not tools.has_tensors([a, b])
    assert tools.list_to_tuple([1]) == (1,) and tools.list_to_tuple("a") == "a"


@pytest.mark.parametrize(
    ("reduction", "expected"), [("sum_over_batch_size", 3.5), ("auto", 3.5), ("sum", 7.0), ("none", [1.0, 6.0])]
)
def test_losses_are_weighted_and_reduced(reduction, expected):
    losses = tf.constant([1.0, 2.0])
    assert run(keras_tools.compute_weighted_loss(losses, [1, 3], reduction)).tolist() == expected
    assert run(keras_tools.reduce_weighted_loss(losses * [1.0, 3.0], reduction)).tolist() == expected
    with pytest.raises(ValueError, match="Invalid Reduction Key"):
        keras_tools.compute_weighted_loss(losses, reduction="mean")


def test_losses_of_replicas_are_shares():
    assert run(keras_tools.scale_loss_for_distribution(tf.constant(6.0))) == 6
    with tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]).scope():
        assert run(keras_tools.scale_loss_for_distribution(tf.constant(6.0))) == 3


@pytest.mark.parametrize(
    ("flags", "axis"), [({}, None), ({"sum_over_timesteps": False}, 0), ({"sum_over_batch": False}, 1)]
)
def test_the_loss_of_sequences_as_an_object(flags, axis):
    logits = np.random.default_rng(3).normal(size=(2, 3, 4))
    targets, weights = np.array([[0, 1, 2], [3, 2, 1]]), np.float64([[1, 2, 0], [1, 0, 0]])
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    losses = -np.log(np.take_along_axis(chances, targets[..., None], -1)[..., 0])
    loss = keras_tools.SequenceLoss(**flags)
    counts = np.maximum((weights != 0).sum(axis), 1)
    np.testing.assert_allclose(run(loss(targets, logits, weights)), (losses * weights).sum(axis) / counts, 1e-9)
    np.testing.assert_allclose(run(loss(targets, logits)), losses.mean(axis), 1e-9)
    np.testing.assert_allclose(run(loss.call(tf.constant(targets), tf.constant(logits))), losses, 1e-9)


def test_steps_of_an_optimizer_of_train_are_counted():
    """The class is what programs find as ``TFOptimizer`` in ``tensorflow.python.keras.optimizers``."""
    optimizer = _Given(tf.train.AdamOptimizer(0.01))
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
    model.compile(optimizer, "mse")
    model.fit(np.zeros((55, 3)), np.zeros((55, 2)), epochs=1, batch_size=5, verbose=0)
    assert tf.keras.backend.get_value(optimizer.iterations) == 11
