"""Convolutions of `tf.layers`: values against SciPy, arguments as functions, dilation, shared variables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import tfray as tf
from tests.support.sessions import run_initialized as run
from tests.support.sessions import variable_names as names

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(2, 6, 7, 3)).astype(np.float32)


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


def test_sizes_may_be_any_sequence():
    x = tf.placeholder(tf.float32, [None, 8, 6, 1])
    assert tf.layers.average_pooling2d(x, x.shape[1:3], 1).shape.as_list() == [None, 1, 1, 1]
    assert tf.layers.conv2d(x, 2, iter([3, 2])).shape.as_list() == [None, 6, 5, 2]
