"""`tf.layers`: names of variables as in TensorFlow 1.15, sharing, values against NumPy, training."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import tfray as tf
from tests.support.sessions import run_initialized as run
from tfray.errors import InvalidArgumentError
from tfray.library.layers import keras_style

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(2, 6, 7, 3)).astype(np.float32)
ROWS = RANDOM.normal(size=(5, 4)).astype(np.float32)


def names(variables=None):
    return [variable.op.name for variable in (tf.global_variables() if variables is None else variables)]


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
    with pytest.raises(InvalidArgumentError, match="called 2 times"):
        _ = layer.output
    assert other.output_shape.as_list() == [5, 3]


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


def convolved(images, kernel, step=1):
    """Every window that fits, by SciPy."""
    results = [
        sum(scipy.signal.correlate(image[:, :, c], kernel[:, :, c, f], mode="valid") for c in range(image.shape[-1]))
        for image in images.astype(np.float64)
        for f in range(kernel.shape[-1])
    ]
    stacked = np.stack(results).reshape(len(images), kernel.shape[-1], *results[0].shape)
    return np.moveaxis(stacked, 1, -1)[:, ::step, ::step]


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("strides", [1, 2])
def test_conv2d(data_format, strides):
    layer = tf.layers.Conv2D(4, (3, 2), strides, data_format=data_format, bias_initializer=tf.constant_initializer(0.5))
    first = data_format == "channels_first"
    images = np.moveaxis(IMAGES, -1, 1) if first else IMAGES
    outputs = layer(tf.constant(images))
    assert layer.compute_output_shape(images.shape).as_list() == outputs.shape.as_list()
    result, kernel = run([outputs, layer.kernel])
    result = np.moveaxis(result, 1, -1) if first else result
    np.testing.assert_allclose(result, convolved(IMAGES, kernel, strides) + 0.5, rtol=1e-3, atol=1e-4)


def test_conv2d_positions_and_padding():
    x = tf.placeholder(tf.float32, [None, 6, 7, 3])
    outputs = tf.layers.conv2d(x, 4, [3, 3], (2, 2), "same", activation=tf.nn.relu, name="c", dilation_rate=1)
    assert outputs.shape.as_list() == [None, 3, 4, 4]
    assert outputs.name == "c/Relu:0"
    assert run(outputs, {x: IMAGES}).min() == 0
    layer = tf.layers.Conv2D(4, 3, padding="SAME", dilation_rate=2)
    assert layer.compute_output_shape([None, 6, 7, 3]).as_list() == [None, 6, 7, 4]


def test_conv1d():
    values = RANDOM.normal(size=(2, 9, 3)).astype(np.float32)
    layer = tf.layers.Conv1D(4, 3, strides=2, use_bias=False)
    result, kernel = run([layer(tf.constant(values)), layer.kernel])
    expected = convolved(values[:, None], kernel[None])[:, 0, ::2]
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
    assert kernel.shape == (3, 3, 4)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("batch", [None, 2])
def test_conv2d_transpose(padding, batch):
    x = tf.placeholder(tf.float32, [batch, None if batch is None else 6, 7, 3])
    layer = tf.layers.Conv2DTranspose(4, 3, strides=2, padding=padding)
    outputs = layer(x)
    result, kernel = run([outputs, layer.kernel], {x: IMAGES})
    assert result.shape == ((2, 13, 15, 4) if padding == "valid" else (2, 12, 14, 4))
    assert outputs.shape.as_list() == [batch, None if batch is None else result.shape[1], *result.shape[2:]]
    assert kernel.shape == (3, 3, 4, 3)
    # What a transposed convolution is: images spread apart and convolved with the filters mirrored.
    spread = np.zeros((2, 15 + 2, 15 + 2, 3))
    spread[:, 2 : 2 + 12 : 2, 2 : 2 + 14 : 2] = IMAGES
    full = convolved(spread[:, :15, :17], np.swapaxes(kernel[::-1, ::-1], 2, 3))
    expected = full if padding == "valid" else full[:, :12, :14]
    np.testing.assert_allclose(result, expected[:, : result.shape[1], : result.shape[2]], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_separable_conv2d(data_format):
    layer = tf.layers.SeparableConv2D(4, 3, depth_multiplier=2, data_format=data_format)
    first = data_format == "channels_first"
    images = np.moveaxis(IMAGES, -1, 1) if first else IMAGES
    outputs = layer(tf.constant(images))
    assert outputs.shape.as_list() == layer.compute_output_shape(images.shape).as_list()
    result, depthwise, pointwise = run([outputs, layer.depthwise_kernel, layer.pointwise_kernel])
    assert (depthwise.shape, pointwise.shape) == ((3, 3, 3, 2), (1, 1, 6, 4))
    channels = [convolved(IMAGES[..., c : c + 1], depthwise[:, :, c : c + 1]) for c in range(3)]
    expected = np.concatenate(channels, -1) @ pointwise[0, 0]
    result = np.moveaxis(result, 1, -1) if first else result
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


def test_separable_conv1d():
    values = RANDOM.normal(size=(2, 9, 3)).astype(np.float32)
    layer = tf.layers.SeparableConv1D(4, 3, strides=2, padding="same")
    outputs = layer(tf.constant(values))
    assert outputs.shape.as_list() == [2, 5, 4]
    assert names() == [f"separable_conv1d/{part}" for part in ("depthwise_kernel", "pointwise_kernel", "bias")]
    result, depthwise, pointwise = run([outputs, layer.depthwise_kernel, layer.pointwise_kernel])
    padded = np.pad(values, [(0, 0), (1, 1), (0, 0)])
    windows = np.stack([padded[:, i : i + 3] for i in range(0, 9, 2)], 1)
    expected = np.einsum("bwkc,kcm->bwcm", windows, depthwise).reshape(2, 5, 3) @ pointwise[0]
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


CONVOLUTIONS = {
    "conv1d": 1,
    "conv2d": 2,
    "conv3d": 3,
    "conv2d_transpose": 2,
    "conv3d_transpose": 3,
    "separable_conv1d": 1,
    "separable_conv2d": 2,
}


def half_squares(values):
    return tf.reduce_sum(values * values) / 2


def for_kernels(name, **settings):
    """Settings of the kernel of a convolution, or of both kernels of a separable one."""
    parts = ["depthwise", "pointwise"] if name.startswith("separable") else ["kernel"]
    return {f"{part}_{key}": value for part in parts for key, value in settings.items()}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_as_functions_take_all_arguments(name):
    """In TensorFlow's order, each with its effect; the values follow from kernels of ones."""
    rank, transposed, separable = CONVOLUTIONS[name], "transpose" in name, name.startswith("separable")
    batch, size, channels, filters = 2, 5, 3, 4
    inputs = tf.ones([batch, channels, *[size] * rank])
    outputs = getattr(tf.layers, name)(
        inputs,
        filters,
        [2] * rank,
        1 if rank == 1 else [1] * rank,
        "valid",
        "channels_first",
        activation=tf.nn.relu,
        bias_initializer=tf.constant_initializer(0.5),
        bias_regularizer=half_squares,
        activity_regularizer=tf.reduce_sum,
        trainable=False,
        name="layer",
        **for_kernels(name, initializer=tf.ones_initializer(), regularizer=half_squares),
    )
    inner = size + 1 if transposed else size - 1
    assert outputs.shape.as_list() == [batch, filters, *[inner] * rank]
    assert tf.trainable_variables() == []
    kernels = ["depthwise_kernel", "pointwise_kernel"] if separable else ["kernel"]
    assert names() == [f"layer/{each}" for each in [*kernels, "bias"]]
    values, losses = run([outputs, tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)])
    assert values[(0, 0, *[inner // 2] * rank)] == channels * 2**rank + 0.5  # a place that whole windows cover
    kernel_sizes = [2**rank * channels, channels * filters] if separable else [2**rank * channels * filters]
    expected = [*(count / 2 for count in kernel_sizes), filters * 0.25 / 2, values.sum() / batch]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_as_functions_share_variables_and_hold_constraints(name):
    inputs = tf.ones([2, *[5] * CONVOLUTIONS[name], 3])
    layer = getattr(tf.layers, name)
    settings = for_kernels(name, constraint=tf.nn.relu, initializer=tf.ones_initializer())
    first = layer(inputs, 4, 3, bias_constraint=lambda bias: bias * 0 + 0.25, name="layer", **settings)
    second = layer(inputs, 4, 3, name="layer", reuse=True)
    with pytest.raises(ValueError, match="already exists, disallowed"):
        layer(inputs, 4, 3, name="layer")
    train_op = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(first))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*session.run([first, second]))
        session.run(train_op)
        *kernels, bias = session.run(tf.global_variables())
    assert [kernel.max() for kernel in kernels] == [0.0] * len(kernels)
    np.testing.assert_array_equal(bias, [0.25] * 4)


@pytest.mark.parametrize("name", [name for name in CONVOLUTIONS if "transpose" not in name])
def test_dilated_convolutions(name):
    rank = CONVOLUTIONS[name]
    layer = getattr(tf.layers, name)
    inputs = tf.ones([1, *[7] * rank, 2])
    outputs = layer(
        inputs, 3, 2, dilation_rate=3, use_bias=False, **for_kernels(name, initializer=tf.ones_initializer())
    )
    assert outputs.shape.as_list() == [1, *[4] * rank, 3]
    np.testing.assert_array_equal(run(outputs), np.full(outputs.shape, 2 * 2**rank))
    with pytest.raises(ValueError, match="one of them must be 1"):
        layer(inputs, 3, 2, strides=2, dilation_rate=2)


def test_volumes():
    volumes = RANDOM.normal(size=(2, 4, 6, 8, 3)).astype(np.float32)
    layer, back = tf.layers.Conv3D(4, (2, 3, 3), strides=(1, 2, 2)), tf.layers.Conv3DTranspose(2, 2, strides=2)
    x = tf.constant(volumes)
    outputs, larger = layer(x), back(x)
    assert outputs.shape.as_list() == layer.compute_output_shape(volumes.shape).as_list() == [2, 3, 2, 3, 4]
    assert names() == [
        "conv3d/kernel",
        "conv3d/bias",
        "conv3d_transpose/kernel",
        "conv3d_transpose/bias",
    ]
    pooled = [tf.layers.max_pooling3d(x, 2, 2), tf.layers.average_pooling3d(x, [2, 2, 2], 2)]
    result, kernel, spread, spread_kernel, *pools = run([outputs, layer.kernel, larger, back.kernel, *pooled])
    window = volumes[0, 1:3, 2:5, 4:7]
    np.testing.assert_allclose(result[0, 1, 1, 2], np.einsum("dhwc,dhwcf->f", window, kernel), rtol=1e-3, atol=1e-4)
    assert spread.shape == (2, 8, 12, 16, 2)
    # Windows that do not overlap: each voxel becomes a block.
    block = np.einsum("c,dhwfc->dhwf", volumes[0, 1, 2, 3], spread_kernel)
    np.testing.assert_allclose(spread[0, 2:4, 4:6, 6:8], block, rtol=1e-3, atol=1e-4)
    blocks = volumes.reshape(2, 2, 2, 3, 2, 4, 2, 3)
    np.testing.assert_allclose(pools[0], blocks.max((2, 4, 6)))
    np.testing.assert_allclose(pools[1], blocks.mean((2, 4, 6)), rtol=1e-4, atol=1e-5)


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


# -- batch normalization ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("how", ["python", "fed"])
def test_batch_normalization(fused, axis, how):
    training = True if how == "python" else tf.placeholder(tf.bool, [])
    layer = tf.layers.BatchNormalization(axis, momentum=0.75, epsilon=0.01, fused=fused)
    outputs = layer(tf.constant(IMAGES), training=training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2 == len(layer.updates)
    others = (0, 1, 2) if axis == -1 else (0, 2, 3)
    keep = {"axis": others, "keepdims": True}
    expected = (IMAGES - IMAGES.mean(**keep)) / np.sqrt(IMAGES.var(**keep) + 0.01)
    unbiased = IMAGES.var(others, ddof=0 if fused is False else 1)
    feeds = {} if how == "python" else {training: True}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(outputs, feeds), expected, rtol=1e-3, atol=1e-4)
        session.run(updates, feeds)
        mean, variance = session.run([layer.moving_mean, layer.moving_variance])
        np.testing.assert_allclose(mean, 0.25 * IMAGES.mean(others), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(variance, 0.75 + 0.25 * unbiased, rtol=1e-4)
        if how == "fed":
            shape = [1, 1, 1, -1] if axis == -1 else [1, -1, 1, 1]
            moved = (IMAGES - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 0.01)
            np.testing.assert_allclose(session.run(outputs, {training: False}), moved, rtol=1e-3, atol=1e-4)
            session.run(updates, {training: False})
            np.testing.assert_array_equal(session.run(layer.moving_mean), mean)


def test_batch_normalization_for_inference_updates_nothing():
    outputs = tf.layers.batch_normalization(ROWS, epsilon=0.0, training=False)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    np.testing.assert_allclose(run(outputs), ROWS, rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_batch_normalization(training):
    x = tf.Variable(ROWS, name="x")
    condition = tf.placeholder(tf.bool, [])
    weights = tf.constant(RANDOM.normal(size=ROWS.shape).astype(np.float32))
    plain = tf.layers.batch_normalization(x, name="n", training=training)
    chosen = tf.layers.batch_normalization(x, name="n", reuse=True, training=condition)
    (one,), (two,) = (tf.gradients(tf.reduce_sum(y * weights), x) for y in (plain, chosen))
    np.testing.assert_allclose(*run([one, two], {condition: training}), rtol=1e-4, atol=1e-5)


def test_half_precision_normalization():
    layer = tf.layers.BatchNormalization(dtype=tf.float16)
    outputs = layer(tf.constant(ROWS.astype(np.float16)), training=True)
    assert outputs.dtype is tf.float16
    assert layer.gamma.dtype is tf.float32
    np.testing.assert_allclose(run(outputs).mean(0), 0, atol=1e-2)


def test_without_scale_and_shift():
    tf.layers.batch_normalization(IMAGES, center=False, scale=False)
    assert names() == ["batch_normalization/moving_mean", "batch_normalization/moving_variance"]
    assert tf.trainable_variables() == []


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
        (lambda: tf.layers.batch_normalization(ROWS, fused=True), "fused"),
        (lambda: tf.layers.Dense(3).count_params(), "no variables yet"),
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


# -- batch normalization corrected ---------------------------------------------------------------------


def _batches(count: int, *shape: int) -> list[np.ndarray]:
    return [np.random.default_rng(seed).normal(1.0, 2.0, shape).astype(np.float32) for seed in range(count)]


def _normalized(batches: list[np.ndarray], **settings: object) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """What a layer makes of batches in training, its updates run after each; and its variables in the end."""
    x = tf.placeholder(tf.float32, [None, *batches[0].shape[1:]])
    y = tf.layers.batch_normalization(x, training=True, **settings)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    outputs = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for batch in batches:
            outputs.append(session.run(y, {x: batch}))
            session.run(updates, {x: batch})
        return outputs, {v.op.name.split("/")[-1]: session.run(v) for v in tf.global_variables()}


@pytest.mark.parametrize("clipping", [None, {"rmin": 0.9, "rmax": 1.1, "dmax": 0.2}])
def test_batch_renormalization(clipping):
    """As the paper has it: x * r + d, by averages from before the step; here without scale and offset."""
    batches = _batches(3, 6, 3)
    outputs, variables = _normalized(batches, renorm=True, renorm_clipping=clipping, renorm_momentum=0.5)
    mean, deviation, moving = np.zeros(3), np.ones(3), np.ones(3)  # moving: deviation, which TensorFlow averages here
    for batch, output in zip(batches, outputs, strict=True):
        of_batch = np.sqrt(batch.var(0) + 1e-3)
        r, d = of_batch / deviation, (batch.mean(0) - mean) / deviation
        if clipping:
            r, d = np.clip(r, 0.9, 1.1), np.clip(d, -0.2, 0.2)
        np.testing.assert_allclose(output, (batch - batch.mean(0)) / of_batch * r + d, rtol=1e-4, atol=1e-5)
        mean, deviation = (mean + batch.mean(0)) / 2, (deviation + of_batch) / 2
        moving = 0.99 * moving + 0.01 * of_batch
    np.testing.assert_allclose(variables["renorm_mean"], mean, rtol=1e-4)
    np.testing.assert_allclose(variables["renorm_stddev"], deviation, rtol=1e-4)
    np.testing.assert_allclose(variables["moving_stddev"], moving, rtol=1e-4)
    np.testing.assert_allclose(variables["moving_variance"], moving**2 - 1e-3, rtol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"fused": False}, {"renorm": True}])
def test_a_partitioner_leaves_moving_averages_whole(settings):
    plain = tf.layers.batch_normalization(IMAGES, training=True, name="plain", **settings)
    with tf.variable_scope("cut", partitioner=tf.fixed_size_partitioner(3)):
        cut = tf.layers.batch_normalization(IMAGES, training=True, name="bn", **settings)
    kept = ["moving_mean", "moving_variance"]
    kept += ["moving_stddev", "renorm_mean", "renorm_stddev"] if settings.get("renorm") else []
    parts = [f"{name}/part_{index}" for name in ("gamma", "beta") for index in range(3)]
    assert names(tf.global_variables("cut")) == [f"cut/bn/{name}" for name in [*parts, *kept]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*session.run([plain, cut]))
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        for name in kept:
            np.testing.assert_array_equal(*session.run([f"plain/{name}:0", f"cut/bn/{name}:0"]))


def test_virtual_batches_are_normalized_by_themselves():
    (batch,) = _batches(1, 6, 2, 3)
    (output,), variables = _normalized([batch], virtual_batch_size=3)
    parts = batch.reshape(3, 2, 2, 3)  # dimension 1 tells the parts apart
    mean, variance = parts.mean((0, 2), keepdims=True), parts.var((0, 2), keepdims=True)
    expected = (parts - mean) / np.sqrt(variance + 1e-3)
    np.testing.assert_allclose(output, expected.reshape(batch.shape), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(variables["moving_mean"], 0.01 * mean.mean(1).reshape(-1), rtol=1e-4)


def test_adjustment_comes_in_training_only():
    (batch,) = _batches(1, 6, 3)

    def adjustment(shape):
        return tf.fill([1, shape[1]], 2.0), tf.ones([1, shape[1]])

    training = tf.placeholder(tf.bool, [])
    y = tf.layers.batch_normalization(batch, training=training, adjustment=adjustment)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        trained, otherwise = (session.run(y, {training: value}) for value in (True, False))
    expected = (batch - batch.mean(0)) / np.sqrt(batch.var(0) + 1e-3) * 2 + 1
    np.testing.assert_allclose(trained, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(otherwise, batch / np.sqrt(1.001), rtol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"renorm": True, "renorm_clipping": {"rmean": 1.0}},
        {"virtual_batch_size": 0},
        {"virtual_batch_size": 2, "adjustment": lambda shape: (1.0, 0.0)},
        {"renorm": True, "fused": True},
    ],
)
def test_malformed_corrections_are_refused(settings):
    with pytest.raises(InvalidArgumentError, match=r"batch.normalization"):
        tf.layers.batch_normalization(tf.ones([4, 2, 2, 3]), training=True, **settings)


# -- what layers expect of their inputs ----------------------------------------------------------------


class _Expecting(tf.layers.Layer):
    def __init__(self, **expected):
        super().__init__()
        self.input_spec = tf.layers.InputSpec(**expected)

    def call(self, inputs):
        return inputs


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
        with pytest.raises(ValueError, match=r"is incompatible with the layer: expected|needs a defined rank"):
            _Expecting(**expected)(x)


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
    with pytest.raises(ValueError, match="there is no activation 'rely'; there are elu, "):
        make(tf.constant(x), activation="rely")
    with pytest.raises(ValueError, match="there is no initializer 'one'; there are glorot_normal, "):
        make(tf.constant(x), kernel_initializer="one", name="wrong")
