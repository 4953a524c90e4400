"""`tf.layers`: names of variables as in TensorFlow 1.15, sharing, values against NumPy, training."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized as run
from tests.support.sessions import variable_names as names
from tfray.errors import InvalidArgumentError
from tfray.library.layers import keras_style
from tfray.library.layers.input_spec import to_tensor_shape

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(2, 6, 7, 3)).astype(np.float32)
ROWS = RANDOM.normal(size=(5, 4)).astype(np.float32)


# -- names and sharing -----------------------------------------------------------------------------------


def test_layers_without_names_are_numbered():
    x = tf.constant(ROWS)
    for _ in range(3):
        x = tf.layers.dense(x, 4)
    assert names() == [f"{layer}/{part}" for layer in ("dense", "dense_1", "dense_2") for part in ("kernel", "bias")]
    assert x.name == "dense_2/BiasAdd:0"


def test_layers_in_scopes():
    x = tf.constant(ROWS)
    with tf.variable_scope("net"):
        tf.layers.dense(x, 2, name="first")
        tf.layers.dense(x, 2)
        tf.layers.dense(x, 2)
    with tf.variable_scope("net", reuse=True):
        tf.layers.dense(x, 2, name="first")
        tf.layers.dense(x, 2)
    assert names() == [f"net/{layer}/{part}" for layer in ("first", "dense", "dense_1") for part in ("kernel", "bias")]


def test_reuse():
    x = tf.constant(ROWS)
    first = tf.layers.dense(x, 3, name="fc")
    second = tf.layers.dense(x, 3, name="fc", reuse=True)
    third = tf.layers.dense(x, 3, name="fc", reuse=tf.AUTO_REUSE)
    assert names() == ["fc/kernel", "fc/bias"]
    one, two, three = run([first, second, third])
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)
    with pytest.raises(ValueError, match=r"fc/kernel.*exists"):
        tf.layers.dense(x, 3, name="fc")


def test_layer_objects_share_their_variables():
    layer = tf.layers.Dense(3, name="d")
    x, y = tf.constant(ROWS), tf.constant(ROWS * 2)
    first, second = layer(x), layer.apply(y)
    assert names() == names(layer.variables) == ["d/kernel", "d/bias"]
    assert (layer.name, layer.scope_name, layer.built) == ("d", "d", True)
    assert layer.count_params() == 15
    other = tf.layers.Dense(3, name="d")
    other(x)
    assert names(other.weights) == ["d_1/kernel", "d_1/bias"]
    one, two, kernel = run([first, second, layer.kernel])
    np.testing.assert_allclose(one, ROWS @ kernel, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(two, 2 * one, rtol=1e-4, atol=1e-5)
    assert layer.output is first and layer.input is x and layer.get_output_at(1) is second
    layer(tf.constant(ROWS[:2]))
    with pytest.raises(AttributeError, match="called with different shapes"):
        _ = layer.output_shape
    assert other.output_shape == (5, 3)


def test_names_of_all_layers():
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    sequence = tf.placeholder(tf.float32, [None, 9, 4])
    tf.layers.conv2d(x, 2, 3)
    tf.layers.conv2d_transpose(x, 2, 3)
    tf.layers.separable_conv2d(x, 2, 3)
    tf.layers.conv1d(sequence, 2, 3)
    tf.layers.separable_conv1d(sequence, 2, 3)
    tf.layers.batch_normalization(x)
    pooled = [
        tf.layers.max_pooling2d(x, 2, 2),
        tf.layers.average_pooling2d(x, 2, 2),
        tf.layers.max_pooling1d(sequence, 2, 2),
        tf.layers.average_pooling1d(sequence, 2, 2),
        tf.layers.flatten(x),
        tf.layers.dropout(x),
    ]
    assert names() == [
        "conv2d/kernel",
        "conv2d/bias",
        "conv2d_transpose/kernel",
        "conv2d_transpose/bias",
        "separable_conv2d/depthwise_kernel",
        "separable_conv2d/pointwise_kernel",
        "separable_conv2d/bias",
        "conv1d/kernel",
        "conv1d/bias",
        "separable_conv1d/depthwise_kernel",
        "separable_conv1d/pointwise_kernel",
        "separable_conv1d/bias",
        "batch_normalization/gamma",
        "batch_normalization/beta",
        "batch_normalization/moving_mean",
        "batch_normalization/moving_variance",
    ]
    scopes = [tensor.name.split("/")[0] for tensor in pooled]
    assert scopes == [
        "max_pooling2d",
        "average_pooling2d",
        "max_pooling1d",
        "average_pooling1d",
        "flatten",
        "dropout",
    ]


def test_defaults_of_the_scope():
    regularizer = tf.contrib.layers.l2_regularizer(0.1)
    with tf.variable_scope("s", initializer=tf.ones_initializer(), regularizer=regularizer):
        layer = tf.layers.Dense(2, bias_initializer=tf.zeros_initializer())
        layer(tf.constant(ROWS))
    kernel, losses = run([layer.kernel, tf.losses.get_regularization_losses()])
    assert (kernel == 1).all()
    assert len(losses) == 2
    assert losses[0] == pytest.approx(0.1 * 8 / 2)
    assert len(layer.losses) == 2


def test_regularizers_count_once():
    regularizer = tf.contrib.layers.l2_regularizer(0.1)
    for reuse in (None, True):
        tf.layers.dense(tf.constant(ROWS), 2, kernel_regularizer=regularizer, name="fc", reuse=reuse)
    (loss,) = tf.losses.get_regularization_losses()
    assert loss.name == "fc/kernel/Regularizer/l2_regularizer:0"


def test_what_is_not_trainable():
    layer = tf.layers.Dense(2, trainable=False)
    layer(tf.constant(ROWS))
    assert tf.trainable_variables() == [] == layer.trainable_weights
    assert len(layer.non_trainable_weights) == 2
    normalization = tf.layers.BatchNormalization()
    normalization(tf.constant(ROWS), training=True)
    assert names(normalization.trainable_weights) == ["batch_normalization/gamma", "batch_normalization/beta"]


def test_a_layer_of_ones_own():
    class Scale(tf.layers.Layer):
        def build(self, input_shape):
            self.factor = self.add_weight("factor", [input_shape[-1]], initializer=tf.constant_initializer(2.0))
            super().build(input_shape)

        def call(self, inputs, offset=0.0):
            self.add_loss(tf.reduce_sum(self.factor))
            return inputs * self.factor + offset

    layer = Scale()
    outputs = layer(tf.constant(ROWS), offset=1.0)
    assert names() == ["scale/factor"]
    values, losses = run([outputs, layer.losses])
    np.testing.assert_allclose(values, ROWS * 2 + 1, rtol=1e-6)
    assert losses == [8.0]


def test_activity_regularizer_and_constraint():
    layer = tf.layers.Dense(
        2,
        activity_regularizer=lambda outputs: tf.reduce_sum(outputs),
        kernel_constraint=lambda kernel: tf.clip_by_value(kernel, 0.0, 0.1),
    )
    outputs = layer(tf.constant(ROWS))
    (loss,) = layer.losses
    train_op = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        # As in TensorFlow, the loss does not depend on the size of the batch.
        np.testing.assert_allclose(*session.run([loss, tf.reduce_sum(outputs) / len(ROWS)]), rtol=1e-5)
        session.run(train_op)
        kernel = session.run(layer.kernel)
    assert kernel.min() >= 0 and kernel.max() <= 0.1 + 1e-6


# -- values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4), (2, 1, 3, 4)])
def test_dense(shape):
    values = RANDOM.normal(size=shape).astype(np.float32)
    layer = tf.layers.Dense(3, activation=tf.nn.relu, bias_initializer=tf.ones_initializer())
    outputs = layer(tf.constant(values))
    assert outputs.shape.as_list() == [*shape[:-1], 3] == layer.compute_output_shape(shape).as_list()
    result, kernel = run([outputs, layer.kernel])
    np.testing.assert_allclose(result, np.maximum(values @ kernel + 1, 0), rtol=1e-4, atol=1e-5)


def test_dense_takes_what_it_is_given():
    outputs = tf.layers.dense(ROWS.astype(np.float64), 2, use_bias=False, kernel_initializer=tf.ones_initializer())
    assert outputs.dtype is tf.float64
    np.testing.assert_allclose(run(outputs)[:, 0], ROWS.sum(1), rtol=1e-5)
    assert names() == ["dense/kernel"]


def test_dense_with_unknown_batch():
    x = tf.placeholder(tf.float32, [None, None, 4])
    outputs = tf.layers.dense(x, 2)
    assert outputs.shape.as_list() == [None, None, 2]
    assert run(outputs, {x: np.zeros((3, 5, 4))}).shape == (3, 5, 2)


def test_pooling():
    x = tf.constant(IMAGES)
    blocks = IMAGES[:, :, :6].reshape(2, 3, 2, 3, 2, 3)
    sequence = IMAGES[:, :, 0]
    results = run(
        [
            tf.layers.max_pooling2d(x, 2, 2),
            tf.layers.average_pooling2d(x, [2, 2], 2),
            tf.layers.max_pooling2d(tf.constant(np.moveaxis(IMAGES, -1, 1)), 2, 2, data_format="channels_first"),
            tf.layers.max_pooling1d(tf.constant(sequence), 2, 2),
            tf.layers.average_pooling1d(tf.constant(sequence), 3, 3),
            tf.layers.max_pooling2d(x, 3, 2, padding="same"),
        ]
    )
    np.testing.assert_allclose(results[0], blocks.max((2, 4)))
    np.testing.assert_allclose(results[1], blocks.mean((2, 4)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.moveaxis(results[2], 1, -1), results[0])
    np.testing.assert_allclose(results[3], sequence.reshape(2, 3, 2, 3).max(2))
    np.testing.assert_allclose(results[4], sequence.reshape(2, 2, 3, 3).mean(2), rtol=1e-5, atol=1e-6)
    layer = tf.layers.MaxPooling2D(3, 2, padding="same")
    assert layer.compute_output_shape(IMAGES.shape).as_list() == list(results[5].shape)


def test_flatten():
    assert tf.layers.flatten(IMAGES).shape.as_list() == [2, 126]
    x = tf.placeholder(tf.float32, [None, None, 4])
    outputs = tf.layers.flatten(x)
    assert outputs.shape.as_list() == [None, None]
    assert run(outputs, {x: np.zeros((0, 3, 4))}).shape == (0, 12)
    assert tf.layers.flatten(tf.placeholder(tf.float32, [None, 3, 4])).shape.as_list() == [None, 12]
    first = tf.layers.flatten(np.moveaxis(IMAGES, -1, 1), data_format="channels_first")
    np.testing.assert_array_equal(run(first), IMAGES.reshape(2, -1))


def test_dropout_of_shapes_with_tensors():
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.layers.Dropout(0.5, noise_shape=[tf.shape(x)[0], 1])(x, training=True)
    with tf.Session() as session:
        found = session.run(y, {x: np.ones([40, 3])})
    assert set(found[:, 0]) == {0, 2} and (found == found[:, :1]).all()


def test_no_word_of_training_is_no_training():
    x = tf.placeholder(tf.float32, [None, 3])
    results = [
        tf.layers.dropout(x, 0.9, training=None),
        tf.layers.batch_normalization(x, training=None, epsilon=0.0),
        tf.layers.batch_normalization(x, training=None, epsilon=0.0, fused=False),
    ]
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert all((found == value).all() for found in session.run(results, {x: value}))
    assert not tf.get_collection(tf.GraphKeys.UPDATE_OPS)


@pytest.mark.parametrize("training", [True, False, "fed"])
def test_dropout(training):
    condition = tf.placeholder(tf.bool, []) if training == "fed" else training
    outputs = tf.layers.dropout(tf.ones([100, 100]), 0.25, training=condition)
    for value in (True, False) if training == "fed" else (training,):
        result = run(outputs, {condition: value} if training == "fed" else None)
        if value:
            assert set(np.unique(result)) == {0.0, np.float32(1 / 0.75)}
            assert (result == 0).mean() == pytest.approx(0.25, abs=0.03)
        else:
            assert (result == 1).all()
    assert outputs.shape.as_list() == [100, 100]


# -- errors and training -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 3), "must be known"),
        (lambda: tf.layers.dense(tf.constant([1.0]), 3), "rank 2 or more"),
        (lambda: tf.layers.conv2d(tf.constant(ROWS), 3, 3), "expected rank 4"),
        (lambda: tf.layers.conv2d(IMAGES, 3, [3, 3, 3]), "kernel_size"),
        (lambda: tf.layers.conv2d(IMAGES, 3, 3, padding="full"), "'same' or 'valid'"),
        (lambda: tf.layers.conv2d(IMAGES, 3, 3, data_format="NHWC"), "channels_last"),
        (lambda: tf.layers.batch_normalization(ROWS, axis=2), "no axis 2"),
        (lambda: tf.layers.batch_normalization(ROWS, axis=[0, 1]), "one dimension"),
        (lambda: tf.layers.Dense(3).count_params(), "the layer isn't built"),
    ],
)
def test_what_is_refused(build, words):
    with pytest.raises(InvalidArgumentError, match=words):
        build()


def test_a_small_convnet_learns():
    tf.set_random_seed(1)
    random = np.random.default_rng(1)
    labels = random.integers(0, 2, size=64)
    images = random.normal(size=(64, 8, 8, 1)).astype(np.float32) * 0.3
    images[labels == 1, 2:6, 3:5] += 1.0  # a vertical bar
    images[labels == 0, 3:5, 2:6] += 1.0  # a horizontal one
    x, training = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.bool, [])
    net = tf.layers.conv2d(x, 8, 3, padding="same", use_bias=False)
    net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, momentum=0.8))
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.dropout(tf.layers.flatten(net), 0.2, training=training)
    logits = tf.layers.dense(net, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.02).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(30):
            session.run(train_op, {x: images, training: True})
        guess = session.run(logits, {x: images, training: False}).argmax(1)
    assert (guess == labels).mean() > 0.95


# -- what layers expect of their inputs ----------------------------------------------------------------


class _Expecting(tf.layers.Layer):
    def __init__(self, **expected):
        super().__init__()
        self.input_spec = tf.layers.InputSpec(**expected)

    def call(self, inputs):
        return inputs


def test_dimensions_of_an_input_spec():
    """As in TensorFlow 1.15."""
    InputSpec = tf.layers.InputSpec
    assert InputSpec(shape=[1, None, 2, 3], axes={3: 5, "2": 2}).axes == {3: 5, 2: 2}
    assert InputSpec(min_ndim=2, axes={2: 1}).axes == InputSpec(ndim=3, max_ndim=2, axes={2: 1}).axes == {2: 1}
    for wrong in ({"shape": [1, 2], "axes": {2: 5}}, {"ndim": 2, "axes": {2: 5}}, {"max_ndim": 2, "axes": {2: 5}}):
        with pytest.raises(ValueError, match="Axis 2 is greater than the maximum allowed value: 1"):
            InputSpec(**wrong)
    with pytest.raises(TypeError, match="The keys in axes must be integers"):
        InputSpec(axes={"last": 5})
    shapes = [InputSpec(ndim=3, axes={1: 3, -1: 2}), InputSpec(ndim=0), InputSpec(shape=(None, 2))]
    assert [to_tensor_shape(each).as_list() for each in shapes] == [[None, 3, 2], [], [None, 2]]
    assert to_tensor_shape(InputSpec(min_ndim=5, max_ndim=5)).rank is None


@pytest.mark.parametrize(
    ("expected", "shape", "fits"),
    [
        ({"ndim": 2}, [2, 3], True),
        ({"ndim": 2}, [2], False),
        ({"ndim": 2}, None, False),
        ({"min_ndim": 2}, [2, 3, 4], True),
        ({"min_ndim": 2}, [2], False),
        ({"max_ndim": 2}, [2, 3, 4], False),
        ({"dtype": "float32"}, [2], True),
        ({"dtype": "int32"}, [2], False),
        ({"axes": {-1: 3}}, [2, 3], True),
        ({"axes": {-1: 3}}, [2, None], True),
        ({"axes": {-1: 3}}, [2, 4], False),
        ({"shape": (None, 3)}, [2, 3], True),
        ({"shape": (None, 3)}, [2, 4], False),
    ],
)
def test_input_spec_is_checked(expected, shape, fits):
    x = tf.placeholder(tf.float32, shape)
    if fits:
        assert _Expecting(**expected)(x) is x
    else:
        with pytest.raises(
            ValueError, match=r"is incompatible with (the layer|layer \S+): expected|requires a defined rank"
        ):
            _Expecting(**expected)(x)


@pytest.mark.parametrize(
    ("layer", "first", "second", "said"),
    [  # TensorFlow 1.15's words
        (tf.layers.Dense(5), [None, 13], [None, 18], "expected axis -1 of input shape to have value 13 but received"),
        (tf.keras.layers.Dense(5), [None, 13], [None, 18], "expected axis -1 of input shape to have value 13"),
        (tf.layers.Conv2D(3, 2), [None, 8, 8, 3], [None, 8, 8, 4], "expected axis -1 of input shape to have value 3"),
        (
            tf.keras.layers.TimeDistributed(tf.keras.layers.Dense(5)), [None, 10, 13], [None, 1, 18],
            r"with layer time_distributed.*: expected shape=\[None, None, 13\], found shape=\[None, 1, 18\]",
        ),
    ],
)  # fmt: skip
def test_a_layer_that_is_built_takes_inputs_of_one_size(layer, first, second, said):
    layer(tf.placeholder(tf.float32, first))
    with pytest.raises(ValueError, match=said):
        layer(tf.placeholder(tf.float32, second))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda: tf.layers.dense(tf.placeholder(tf.float32, [4, None]), 2),
            "The last dimension of the inputs",
        ),
        (lambda: tf.layers.conv2d(unknown_channels(), 2, 3), "The channel dimension of the inputs"),
        (lambda: tf.layers.separable_conv2d(unknown_channels(), 2, 3), "The channel dimension of the inputs"),
        (
            lambda: tf.nn.rnn_cell.GRUCell(2)(tf.placeholder(tf.float32, [4, None]), tf.ones([4, 2])),
            "Expected inputs.shape",
        ),
        (lambda: tf.nn.dropout(tf.constant([1, 2]), 0.5), "floating point tensor"),
        (
            lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant(0), logits=tf.constant(1.0)),
            "Logits cannot be scalars",
        ),
        (
            lambda: tf.nn.conv3d_transpose(
                tf.ones([1, 2, 2, 2, 3]), tf.ones([1, 1, 1, 2, 4]), [1, 2, 2, 2, 2], [1] * 5
            ),
            "must be equal, but are 3 and 4",
        ),
    ],
)
def test_refusals_of_networks_have_the_words_of_tensorflow(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def unknown_channels():
    return tf.placeholder(tf.float32, [5, 7, 9, None])


def test_layers_in_the_style_of_keras_have_variables_of_their_own():
    """The names are those of TensorFlow 2.21."""
    with tf.variable_scope("scope", initializer=tf.zeros_initializer()):
        with tf.layers.experimental.keras_style_scope():
            first, second = tf.layers.Dense(2, name="same"), tf.layers.Dense(2, name="same")
            cell = tf.nn.rnn_cell.GRUCell(2)
        plain = tf.layers.Dense(2)
        outputs = [layer(tf.constant(ROWS)) for layer in (first, first, second, plain)]
        cell(tf.constant(ROWS), cell.zero_state(len(ROWS), tf.float32))
    assert [tensor.op.name.rpartition("/")[0] for tensor in outputs[:3]] == [
        "scope/same",
        "scope/same_1",
        "scope/same_2",
    ]
    assert names(first.weights + second.weights) == [
        f"scope/{layer}/{weight}" for layer in ("same", "same_2") for weight in ("kernel", "bias")
    ]
    assert names(cell.weights)[:2] == ["scope/gru_cell_1/gates/kernel", "scope/gru_cell_1/gates/bias"]
    assert names(plain.weights) == ["scope/dense/kernel", "scope/dense/bias"]
    once, again, other = run(outputs[:3])
    np.testing.assert_array_equal(once, again)
    assert np.abs(once - other).max() > 0 and np.abs(once).max() > 0  # the scope's initializer does not count


def test_keras_style_has_no_scopes_nor_reuse():
    with tf.layers.experimental.keras_style_scope():
        layer = tf.layers.BatchNormalization()
        for given in ({"reuse": True}, {"name": "a"}):
            with pytest.raises(ValueError, match="Keras's style"):
                tf.layers.dense(ROWS, 2, **given)
    with pytest.raises(ValueError, match="Keras's style"):
        layer(ROWS, scope="scope")
    layer(ROWS, training=True)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == [] and len(layer.updates) == 2
    tf.layers.dense(ROWS, 2, name="a")  # after the scope all is as it was


def test_set_keras_style_holds_from_then_on(monkeypatch):
    monkeypatch.setattr(keras_style, "_is_keras_style", False)
    tf.layers.experimental.set_keras_style()
    tf.layers.dense(ROWS, 2)
    tf.layers.dense(ROWS, 2)
    assert names() == ["dense_1/kernel", "dense_1/bias", "dense_2/kernel", "dense_2/bias"]


def test_layers_without_names_count_from_one():
    assert [tf.layers.Dense(2).name, tf.layers.Dense(2).name, tf.layers.Conv2D(1, 1).name] == [
        "dense_1",
        "dense_2",
        "conv2d_1",
    ]
    assert tf.keras.layers.Flatten().name == "flatten"


@pytest.mark.parametrize(
    "make",
    [
        lambda x, **named: tf.layers.dense(x, 4, **named),
        lambda x, **named: tf.layers.conv1d(x, 4, 3, **named),
        lambda x, **named: tf.layers.Dense(4, **named)(x),
        lambda x, **named: tf.layers.conv2d_transpose(x[:, :, None], 4, 3, **named),
    ],
    ids=["dense", "conv1d", "Dense", "conv2d_transpose"],
)
def test_activations_and_initializers_may_be_names(make):
    x = np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32)
    named = make(tf.constant(x), activation="relu", kernel_initializer="ones", bias_initializer="zeros", name="named")
    given = make(tf.constant(x), activation=tf.nn.relu, kernel_initializer=tf.ones_initializer(), name="given")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run([named, given])
    np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="Unknown activation function:rely; there are elu, "):
        make(tf.constant(x), activation="rely")
    with pytest.raises(ValueError, match="Unknown initializer:once; there are constant, glorot_normal, "):
        make(tf.constant(x), kernel_initializer="once", name="wrong")


def test_losses_have_the_names_of_a_layer_even_where_a_getter_renames_its_variables():
    """As in TensorFlow 1.15; so it is in slim, where ``kernel`` becomes ``weights``."""

    def renamed(getter, name, *args, **kwargs):
        return getter(name.replace("kernel", "weights"), *args, **kwargs)

    penalty = tf.contrib.layers.l2_regularizer(0.1)
    with tf.variable_scope("net", custom_getter=renamed):
        tf.layers.dense(ROWS, 3, kernel_regularizer=penalty)
        tf.get_variable("kernel", [2], regularizer=penalty)
    tf.contrib.slim.conv2d(IMAGES, 3, 3, weights_regularizer=penalty, biases_regularizer=penalty)
    assert [loss.op.name for loss in tf.losses.get_regularization_losses()] == [
        "net/dense/kernel/Regularizer/l2_regularizer",
        "net/weights/Regularizer/l2_regularizer",
        "Conv/kernel/Regularizer/l2_regularizer",
        "Conv/bias/Regularizer/l2_regularizer",
    ]
    assert [variable.op.name for variable in tf.trainable_variables()][:2] == ["net/dense/weights", "net/dense/bias"]


def test_pooled_volumes_have_the_name_of_their_operation():
    volumes = tf.zeros([1, 4, 4, 4, 2])
    names = [
        tf.layers.max_pooling3d(volumes, 2, 2).op.name,
        tf.nn.avg_pool3d(volumes, 2, 2, "VALID", name="own").op.name,
    ]
    assert names == ["max_pooling3d/MaxPool3D", "own"]
