"""What the samples of `tests/support/op_samples` leave open of the neural-network operations.

Images large enough for tiles and threads, the form that a GPU runs, and the functions that are made of operations.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import signal, special

from tests.support.gradient_check import check_gradients
from tests.support.interpreter import interpret
from tests.support.op_samples import grid
from tests.support.references import image_reference as ref
from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.op_def import lookup
from tfray.gradients import gradients
from tfray.ops.arrays.shape_ops import reshape, shape
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.kernels import tiles
from tfray.ops.kernels.windows import WindowAttrs, per_axis, window_axis
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.nn import (
    activation_ops,
    batch_norm_ops,
    conv_ops,
    convolution,
    cross_entropy_ops,
    depthwise_conv_ops,
    fast_convolution,
    nn_ops,
    normalization_ops,
    pooling_ops,
)
from tfray.ops.nn.conv_geometry import geometry


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class LikeCupy:
    """NumPy under another name: kernels take it for the array module of a GPU."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


GPU = LikeCupy()


def run_as_on_gpu(op: Any, *values: Any) -> Any:
    """Outputs of an operation's GPU kernel, with NumPy in place of cupy."""
    context = SimpleNamespace(
        xp=GPU,
        attr=lambda name: op.attrs[name],
        output_dtype=lambda index=0: op.outputs[index].dtype.numpy,
        asarray=np.asarray,
        to_host=np.asarray,
    )
    return lookup(op.type).kernels["GPU"].function(context, *values)


# -- convolution ---------------------------------------------------------------------------------------

LARGE: list[tuple[Any, Any, int, int, str]] = [
    ((16, 28, 28, 1), (5, 5, 1, 16), 1, 1, "SAME"),
    ((16, 14, 14, 16), (5, 5, 16, 32), 1, 1, "SAME"),
    ((2, 64, 48, 3), (11, 11, 3, 16), 4, 1, "VALID"),
    ((3, 40, 41, 24), (3, 3, 24, 40), 1, 2, "SAME"),
    ((4, 33, 32, 32), (3, 3, 32, 32), 2, 1, "SAME"),
    ((8, 32, 32, 64), (1, 1, 64, 64), 1, 1, "VALID"),
    ((1, 90, 64, 16), (3, 3, 16, 16), 1, 1, "SAME"),
]


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("path", ["numpy", "fast", "gpu"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("images", "filters", "stride", "dilation", "padding"), LARGE)
def test_large_convolutions(
    images: Any, filters: Any, stride: int, dilation: int, padding: str, layout: str, path: str, monkeypatch: Any
):
    if path == "numpy":
        monkeypatch.setattr(fast_convolution, "can_convolve", lambda *arguments: False)
    # Small tiles and no threshold, so that every tiling is met.
    monkeypatch.setattr(tiles, "CPU_TILE_BYTES", 1 << 17)
    monkeypatch.setattr(tiles, "GPU_TILE_BYTES", 1 << 19)
    monkeypatch.setattr(convolution, "_SERIAL_FLOPS", 0)
    x, w = normal(*images), normal(*filters, seed=1)
    options: dict[str, Any] = {"stride": (stride,) * 2, "dilation": (dilation,) * 2, "padding": padding}
    expected = ref.conv(x.astype(float), w.astype(float), **options)
    y = normal(*expected.shape, seed=2)
    d_x = ref.conv_images_gradient(x.shape, w.astype(float), y.astype(float), **options)
    d_w = ref.conv_filters_gradient(x.astype(float), w.shape, y.astype(float), **options)
    if layout == "NCHW":
        x, y, expected, d_x = map(ref.to_nchw, (x, y, expected, d_x))
    attrs = WindowAttrs(layout, (stride,) * 2, (dilation,) * 2, (padding, padding))
    geo = geometry(x.shape, w.shape, attrs)
    xp = GPU if path == "gpu" else np
    for value, wanted in [
        (convolution.convolve(xp, x, w, geo), expected),
        (convolution.convolve_backward_images(xp, y, w, geo), d_x),
        (convolution.convolve_backward_filters(xp, x, y, geo), d_w),
    ]:
        assert value.dtype == np.float32
        # Sums of 12,544 products of which each rounding counts.
        np.testing.assert_allclose(value, wanted, rtol=0, atol=5e-6 * np.abs(wanted).max() + 1e-6)


def test_convolution_agrees_with_scipy():
    x, w = normal(2, 9, 8, 3), normal(3, 4, 3, 5, seed=1)
    output = interpret(conv_ops.conv2d(constant(x), constant(w), 1, "VALID"))
    for n in range(2):
        for f in range(5):
            wanted = sum(signal.correlate(x[n, :, :, c], w[:, :, c, f], "valid") for c in range(3))
            np.testing.assert_allclose(output[n, :, :, f], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("path", ["numpy", "fast"])
def test_results_do_not_depend_on_the_run(path: str, monkeypatch: Any):
    if path == "numpy":
        monkeypatch.setattr(fast_convolution, "can_convolve", lambda *arguments: False)
    x, w = normal(32, 14, 14, 16), normal(5, 5, 16, 32, seed=1)
    geo = geometry(x.shape, w.shape, WindowAttrs("NHWC", (1, 1), (1, 1), ("SAME", "SAME")))
    y = normal(*geo.outputs_shape, seed=2)
    first = convolution.convolve_backward_filters(np, x, y, geo)
    for _ in range(5):
        np.testing.assert_array_equal(convolution.convolve_backward_filters(np, x, y, geo), first)


def test_images_that_are_views():
    x, w = normal(6, 5, 4, 3), normal(3, 3, 3, 2, seed=1)
    views = [x.transpose(0, 2, 1, 3), x[::2], x[:, ::-1], np.broadcast_to(x[:1], (3, 5, 4, 3))]
    for view in views:
        feed = placeholder(dtypes.float32, view.shape)
        value = interpret(conv_ops.conv2d(feed, constant(w), 1, "SAME"), {feed: view})
        wanted = ref.conv(np.ascontiguousarray(view), w, padding="SAME")
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)


def test_spellings_of_convolution_arguments():
    x, w = grid(1, 6, 7, 2), grid(3, 2, 2, 3, seed=1)
    wanted = ref.conv(x, w, stride=(2, 3), padding="SAME")
    for strides in ([2, 3], (1, 2, 3, 1), np.array([2, 3])):
        for call in (
            conv_ops.conv2d(x, w, strides, "SAME"),
            conv_ops.conv2d(x, filters=w, strides=strides, padding="same"),
        ):
            np.testing.assert_allclose(interpret(call), wanted)
    np.testing.assert_allclose(interpret(conv_ops.conv2d(x, w, 2, "VALID")), ref.conv(x, w, stride=(2, 2)))
    np.testing.assert_allclose(interpret(conv_ops.convolution(x, w, "SAME", [2, 3])), wanted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strides": [2, 1, 1, 1]}, "expected 1 along batch and channels"),
        ({"strides": 0}, "at least 1"),
        ({"strides": [1, 1, 1]}, "1, 2 or 4 integers"),
        ({"padding": "FULL"}, "SAME, VALID or four pairs"),
        ({"padding": [[0, 0], [1, 1]]}, "four pairs"),
        ({"padding": [[1, 0], [1, 1], [0, 0], [0, 0]]}, "none along batch"),
        ({"data_format": "CHWN"}, "either NCHW or NHWC, not 'CHWN'"),
        ({"filters": np.ones((1, 1, 1, 1), np.float32)}, "exactly one"),
        ({"padding": None}, "required"),
    ],
)
def test_malformed_convolution_arguments(arguments: dict[str, Any], message: str):
    values: dict[str, Any] = {"filter": normal(2, 2, 1, 1), "strides": 1, "padding": "SAME", **arguments}
    with pytest.raises(InvalidArgumentError, match=message):
        conv_ops.conv2d(normal(1, 4, 4, 1), **values)


def test_conv2d_transpose_is_the_transpose():
    x, w, y = grid(2, 5, 6, 3), grid(3, 3, 3, 4, seed=1), grid(2, 3, 3, 4, seed=2)
    up = conv_ops.conv2d_transpose(y, w, [2, 5, 6, 3], [1, 2, 2, 1])
    assert up.shape.as_list() == [2, 5, 6, 3]
    down = conv_ops.conv2d(x, w, 2, "SAME")
    value_up, value_down = interpret([up, down])
    np.testing.assert_allclose((value_up * x).sum(), (value_down * y).sum())
    check_gradients(lambda y, w: conv_ops.conv2d_transpose(y, w, [2, 5, 6, 3], 2), [y, w])


def test_conv2d_transpose_to_a_computed_shape():
    x, w, y = grid(2, 5, 6, 3), grid(3, 3, 3, 4, seed=1), grid(2, 3, 3, 4, seed=2)
    like = placeholder(dtypes.float64, [None, None, 6, 3])
    up = conv_ops.conv2d_transpose(y, w, shape(like), 2)
    assert up.shape.as_list() == [2, None, 6, 3]
    wanted = ref.conv_images_gradient(x.shape, w, y, stride=(2, 2), padding="SAME")
    np.testing.assert_allclose(interpret(up, {like: x}), wanted)


def test_atrous_convolution_and_its_transpose():
    x, w, y = grid(1, 7, 8, 2), grid(3, 3, 2, 3, seed=1), grid(1, 7, 8, 3, seed=2)
    wanted = ref.conv(x, w, dilation=(2, 2), padding="SAME")
    np.testing.assert_allclose(interpret(conv_ops.atrous_conv2d(x, w, 2, "SAME")), wanted)
    up = interpret(conv_ops.atrous_conv2d_transpose(y, w, [1, 7, 8, 2], 2, "SAME"))
    np.testing.assert_allclose((up * x).sum(), (wanted * y).sum())


@pytest.mark.parametrize("layout", ["NWC", "NCW", "NHWC"])
def test_conv1d(layout: str):
    x, w = grid(2, 9, 3), grid(4, 3, 5, seed=1)
    wanted = ref.conv(x[:, None], w[None], stride=(1, 2), padding="SAME")[:, 0]
    if layout == "NCW":
        x, wanted = x.transpose(0, 2, 1), wanted.transpose(0, 2, 1)
    for stride in (2, [2], [1, 1, 2] if layout == "NCW" else [1, 2, 1]):
        output = conv_ops.conv1d(x, w, stride, "SAME", data_format=layout)
        assert output.shape.as_list() == list(wanted.shape)
        np.testing.assert_allclose(interpret(output), wanted)
    value = interpret(conv_ops.convolution(x, w, "SAME", [2], data_format=None if layout == "NHWC" else layout))
    np.testing.assert_allclose(value, wanted)


def test_separable_convolution():
    x, by_channel, pointwise = grid(2, 6, 5, 3), grid(3, 3, 3, 2, seed=1), grid(1, 1, 6, 4, seed=2)
    wanted = ref.conv(ref.depthwise(x, by_channel, stride=(2, 2), padding="SAME"), pointwise)
    output = depthwise_conv_ops.separable_conv2d(x, by_channel, pointwise, [1, 2, 2, 1], "SAME")
    np.testing.assert_allclose(interpret(output), wanted)
    wanted = ref.depthwise(x, by_channel, dilation=(2, 1), padding="SAME")
    output = depthwise_conv_ops.depthwise_conv2d(x, by_channel, [1, 1, 1, 1], "SAME", rate=[2, 1])
    np.testing.assert_allclose(interpret(output), wanted)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("stride", "rate", "padding", "sizes"),  # TensorFlow's sizes for images of 7 x 9 and filters of 3 x 3
    [
        (2, [2, 2], "SAME", (3, 5)),
        (2, [2, 3], "SAME", (3, 6)),
        (3, [1, 2], "VALID", (2, 1)),
        (2, [2, 2], "VALID", (1, 3)),
        (2, [2, 2], [[0, 0], [1, 2], [0, 1], [0, 0]], (4, 4)),
        (1, [2], "SAME", (7, 7)),
    ],
)
def test_strides_count_in_the_images_of_every_rate_th_pixel(
    stride: int, rate: list[int], padding: Any, sizes: tuple[int, int], layout: str
):
    x, w = grid(2, 7, 9, 3), grid(3, 3, 3, 2, seed=1)
    pairs = [(0, 0), (0, 0)] if isinstance(padding, str) else padding[1:3]
    if layout == "NCHW" and not isinstance(padding, str):
        padding = [padding[0], padding[3], *padding[1:3]]
    rates, frame, missing = [*rate, 1][:2], [], []
    for size, step, explicit, has_gaps in zip(x.shape[1:3], rates, pairs, (True, len(rate) == 2), strict=True):
        extra = 2 * step if padding == "SAME" and has_gaps else 0
        before, behind = (extra // 2, extra - extra // 2) if extra else explicit
        missing.append(-(size + before + behind) % step)
        frame.append((before, behind + missing[-1]))
    padded = np.pad(x, [(0, 0), *frame, (0, 0)])
    parts = {
        (i, j): ref.depthwise(padded[:, i :: rates[0], j :: rates[1]], w, stride=(stride, stride))
        for i in range(rates[0])
        for j in range(rates[1])
    }
    rows, columns = parts[0, 0].shape[1:3]
    wanted = np.zeros((2, rows * rates[0], columns * rates[1], 6))
    for (i, j), part in parts.items():
        wanted[:, i :: rates[0], j :: rates[1]] = part
    wanted = wanted[:, : wanted.shape[1] - missing[0], : wanted.shape[2] - missing[1]]
    assert wanted.shape[1:3] == sizes
    images = constant(x if layout == "NHWC" else x.transpose(0, 3, 1, 2))
    strides = [1, stride, stride, 1] if layout == "NHWC" else [1, 1, stride, stride]
    output = depthwise_conv_ops.depthwise_conv2d(images, w, strides, padding, rate, data_format=layout)
    pointwise = grid(1, 1, 6, 4, seed=2)
    mixed = depthwise_conv_ops.separable_conv2d(images, w, pointwise, strides, padding, rate, data_format=layout)
    assert output.shape.as_list() == list(wanted.shape if layout == "NHWC" else wanted.transpose(0, 3, 1, 2).shape)
    order = (0, 1, 2, 3) if layout == "NHWC" else (0, 3, 1, 2)
    np.testing.assert_allclose(interpret(output), wanted.transpose(order))
    np.testing.assert_allclose(interpret(mixed), ref.conv(wanted, pointwise).transpose(order))


@pytest.mark.parametrize("stride", [1, 2])
def test_large_depthwise_convolution(stride: int, monkeypatch: Any):
    monkeypatch.setattr(tiles, "CPU_TILE_BYTES", 1 << 16)
    monkeypatch.setattr(depthwise_conv_ops, "LARGE_ELEMENTS", 0)
    x, w = normal(7, 17, 18, 8), normal(3, 3, 8, 2, seed=1)
    filters = constant(w)
    images = constant(x)
    output = depthwise_conv_ops.depthwise_conv2d_native(images, filters, [1, stride, stride, 1], "SAME")
    d_x, d_w = gradients(output, [images, filters], grad_ys=[output])
    value, d_x_value, d_w_value = interpret([output, d_x, d_w])
    wanted = ref.depthwise(x, w, stride=(stride,) * 2, padding="SAME")
    np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)
    for c in range(8):
        for m in range(2):
            y = wanted[..., c * 2 + m : c * 2 + m + 1]
            some: dict[str, Any] = {"stride": (stride,) * 2, "padding": "SAME"}
            by_loop = ref.conv_filters_gradient(x[..., c : c + 1], (3, 3, 1, 1), y, **some)
            np.testing.assert_allclose(d_w_value[:, :, c, m], by_loop[:, :, 0, 0], rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose((d_x_value * x).sum(), (wanted**2).sum(), rtol=1e-4)


def test_window_arithmetic():
    axis = window_axis(7, 3, 2, 1, "SAME")
    assert (axis.steps, axis.before, axis.after) == (4, 1, 1)
    for size in range(1, 12):
        for window in range(1, 5):
            for stride in range(1, 4):
                for dilation in range(1, 3):
                    axis = window_axis(size, window, stride, dilation, "SAME")
                    for index in range(window):
                        windows, pixels = axis.clipped(index)
                        steps = range(*windows.indices(axis.steps))
                        inside = [s * stride + index * dilation - axis.before for s in range(axis.steps)]
                        wanted = [(s, p) for s, p in enumerate(inside) if 0 <= p < size]
                        assert list(zip(steps, range(size)[pixels], strict=True)) == wanted
    assert per_axis("op", "strides", [2, 3], "NCHW") == [1, 1, 2, 3]


# -- pooling -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 2)])
def test_large_pooling(window: int, stride: int, on_gpu: bool):
    x = np.maximum(normal(9, 47, 46, 64), 0)  # many equal elements
    options: dict[str, Any] = {"stride": (stride,) * 2, "padding": "SAME"}
    output = pooling_ops.max_pool(constant(x), window, stride, "SAME")
    mean = pooling_ops.avg_pool(constant(x), window, stride, "SAME")
    maxima = ref.pool(x, (window,) * 2, "max", **options)
    means = ref.pool(x, (window,) * 2, "mean", **options)
    y = normal(*maxima.shape, seed=1)
    attrs = pooling_ops.pool_attrs("pool", window, stride, "SAME", "NHWC")
    d_x = add_op(pooling_ops.MAX_POOL_GRAD, constant(x), constant(maxima.astype(np.float32)), y, **attrs)
    d_mean = add_op(pooling_ops.AVG_POOL_GRAD, np.array(x.shape), y, **attrs)

    def value(tensor: Any, *values: Any) -> Any:
        return run_as_on_gpu(tensor.op, *values) if on_gpu else interpret(tensor)

    np.testing.assert_array_equal(value(output, x), maxima)
    np.testing.assert_allclose(value(mean, x), means, rtol=1e-5, atol=1e-6)
    d_value = value(d_x, x, maxima.astype(np.float32), y)
    places = first_places(x, maxima, window, stride)
    np.testing.assert_allclose(d_value, scattered(places, y, x.shape), rtol=1e-5, atol=1e-6)
    share = value(d_mean, np.array(x.shape), y)
    np.testing.assert_allclose((share * x).sum(dtype=float), (means * y).sum(dtype=float), rtol=1e-3)


def first_places(x: Any, maxima: Any, window: int, stride: int) -> Any:
    """Flat position of the first greatest element of every window."""
    amounts, _ = ref.windows(x.shape, (window,) * 2, (stride,) * 2, padding="SAME")
    source = ref.padded(x, amounts, -np.inf)
    places = ref.padded(np.arange(x.size).reshape(x.shape), amounts, -1)
    found = np.full(maxima.shape, -1)
    for i in reversed(range(window)):
        for j in reversed(range(window)):
            rows = slice(i, i + (maxima.shape[1] - 1) * stride + 1, stride)
            columns = slice(j, j + (maxima.shape[2] - 1) * stride + 1, stride)
            found = np.where(source[:, rows, columns] == maxima, places[:, rows, columns], found)
    return found


def scattered(places: Any, values: Any, shape: Any) -> Any:
    return np.bincount(places.ravel(), values.ravel(), int(np.prod(shape))).reshape(shape)


def test_pool_of_sequences():
    x = grid(2, 7, 3)
    wanted = ref.pool(x[:, None], (1, 3), "max", stride=(1, 2), padding="SAME")[:, 0]
    means = ref.pool(x[:, None], (1, 3), "mean", stride=(1, 2), padding="SAME")[:, 0]
    np.testing.assert_allclose(interpret(pooling_ops.max_pool1d(x, 3, 2, "SAME")), wanted)
    np.testing.assert_allclose(interpret(pooling_ops.avg_pool1d(x, [1, 3, 1], [1, 2, 1], "SAME")), means)
    np.testing.assert_allclose(interpret(pooling_ops.pool(x, [3], "MAX", "SAME", strides=[2])), wanted)
    channels_first = pooling_ops.max_pool1d(x.transpose(0, 2, 1), 3, 2, "SAME", "NCW")
    np.testing.assert_allclose(interpret(channels_first), wanted.transpose(0, 2, 1))
    images = x[:, :, None]
    np.testing.assert_allclose(
        interpret(pooling_ops.pool(images, [2, 1], "AVG", "VALID")), ref.pool(images, (2, 1), "mean")
    )
    with pytest.raises(InvalidArgumentError, match="MAX or AVG"):
        pooling_ops.pool(x, [3], "MIN", "SAME")
    with pytest.raises(InvalidArgumentError, match="gaps"):
        pooling_ops.pool(x, [3], "MAX", "SAME", dilation_rate=[2])


# -- activations, biases, sums -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_on_many_elements(dtype: Any):
    x = np.random.default_rng(0).uniform(-90, 90, (130, 9000)).astype(dtype)
    tensor = constant(x)
    for function, reference in [
        (activation_ops.relu, lambda x: np.maximum(x, 0)),
        (activation_ops.softplus, lambda x: np.logaddexp(x, 0)),
        (activation_ops.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
        (activation_ops.selu, selu),
    ]:
        value = interpret(function(tensor))
        assert value.dtype == dtype
        np.testing.assert_allclose(value, reference(x.astype(float)), rtol=3e-6, atol=3e-7)


def selu(x: Any) -> Any:
    return activation_ops.SELU_SCALE * np.where(x > 0, x, activation_ops.SELU_ALPHA * np.expm1(x))


def test_softplus_of_extreme_values():
    x = np.array([-200.0, -100, -20, 0, 20, 100, 200, -np.inf, np.inf], np.float32)
    value = interpret(activation_ops.softplus(x))
    np.testing.assert_allclose(value, np.logaddexp(x.astype(float), 0), rtol=1e-6, atol=1e-38)
    assert np.isnan(interpret(activation_ops.softplus(np.float32(np.nan))))


def test_crelu_and_swish():
    x = grid(2, 3)
    np.testing.assert_allclose(
        interpret(activation_ops.crelu(x)), np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], -1)
    )
    np.testing.assert_allclose(interpret(activation_ops.swish(x)), x * special.expit(x))


def test_relu_keeps_views_intact():
    x = placeholder(dtypes.float32, [3, 4])
    value = normal(4, 3).T
    np.testing.assert_array_equal(interpret(activation_ops.relu(x), {x: value}), np.maximum(value, 0))


@pytest.mark.parametrize("shape", [(128, 28, 28, 32), (7, 13, 3), (33, 100, 1), (5, 4000)])
def test_biases_of_many_shapes(shape: Any):
    value, bias = normal(*shape), normal(shape[-1], seed=1)
    total, d_bias = interpret([nn_ops.bias_add(value, bias), nn_ops.bias_add_grad(value)])
    np.testing.assert_array_equal(total, value + bias)
    wanted = value.astype(float).reshape(-1, shape[-1]).sum(0)
    np.testing.assert_allclose(d_bias, wanted, rtol=1e-4, atol=2e-2)


def test_dense_layers():
    x, w, b = grid(3, 4), grid(4, 2, seed=1), grid(2, seed=2)
    np.testing.assert_allclose(interpret(nn_ops.xw_plus_b(x, w, b)), x @ w + b)
    np.testing.assert_allclose(interpret(nn_ops.relu_layer(x, w, b)), np.maximum(x @ w + b, 0))


def test_zero_fraction():
    assert interpret(nn_ops.zero_fraction(np.array([0.0, 1, 0, 2, 0]))) == np.float32(0.6)
    assert interpret(nn_ops.zero_fraction(np.array([0, 1]))) == np.float32(0.5)


# -- dropout -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{"keep_prob": 0.75}, {"rate": 0.25}])
def test_dropout(arguments: dict[str, float]):
    x = np.ones((200, 300), np.float32)
    dropped = nn_ops.dropout(constant(x), seed=3, **arguments)
    first, second = interpret(dropped), interpret(dropped)
    assert set(np.unique(first)) == {0, np.float32(1 / 0.75)}
    assert abs((first > 0).mean() - 0.75) < 0.01
    assert first.shape == second.shape


def test_dropout_of_whole_rows():
    x = placeholder(dtypes.float32, [None, 40])
    dropped = interpret(nn_ops.dropout(x, 0.5, noise_shape=[None, 1], seed=1), {x: np.ones((100, 40), np.float32)})
    assert ((dropped == 0).all(1) | (dropped == 2).all(1)).all()
    assert 20 < (dropped[:, 0] == 0).sum() < 80


def test_dropout_by_a_fed_probability():
    keep, x = placeholder(dtypes.float32, []), constant(np.ones((100, 100), np.float32))
    dropped = nn_ops.dropout(x, keep)
    assert (interpret(dropped, {keep: 1.0}) == 1).all()
    assert abs((interpret(dropped, {keep: 0.3}) > 0).mean() - 0.3) < 0.05


def test_dropout_passes_gradients_where_it_keeps():
    x = constant(np.ones((50, 50), np.float32))
    dropped = nn_ops.dropout(x, 0.5, seed=1)
    value, d_x = interpret([dropped, gradients(dropped, x)[0]])
    np.testing.assert_array_equal(value, d_x)


def test_no_dropout_and_wrong_dropout():
    x = constant(normal(3, 4))
    assert nn_ops.dropout(x, 1.0) is x
    for arguments, message in [
        ({}, "exactly one"),
        ({"keep_prob": 0.5, "rate": 0.5}, "exactly one"),
        ({"keep_prob": 0}, r"keep_prob is 0\.0"),
        ({"rate": 1.5}, r"rate is 1\.5"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            nn_ops.dropout(x, **arguments)
    with pytest.raises(InvalidArgumentError, match="floating point tensor"):
        nn_ops.dropout(constant([1, 2]), 0.5)


# -- cross entropy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(700, 500), (3, 100_000), (40_000, 10)])
def test_softmax_of_many_rows(shape: Any):
    x = 30 * normal(*shape)
    labels = np.random.default_rng(1).integers(0, shape[1], shape[0])
    probabilities = special.softmax(normal(*shape, seed=2), -1)
    softmax, log_softmax, sparse, dense = interpret(
        [
            cross_entropy_ops.softmax(x),
            cross_entropy_ops.log_softmax(x),
            cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x),
            cross_entropy_ops.softmax_cross_entropy_with_logits(labels=probabilities, logits=x),
        ]
    )
    wide = special.log_softmax(x.astype(float), -1)
    np.testing.assert_allclose(softmax, np.exp(wide), rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(log_softmax, wide, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(sparse, -wide[np.arange(len(x)), labels], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(dense, -(wide * probabilities).sum(1), rtol=1e-4)


def test_cross_entropy_on_a_gpu():
    logits, labels = normal(3, 4), np.array([1, 7, 2])
    op = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits).op
    sparse = next(op for op in op.graph.get_operations() if op.type.startswith("Sparse"))
    losses, _ = run_as_on_gpu(sparse, logits, labels)
    assert np.isnan(losses[1]), "a wrong label must show"
    np.testing.assert_allclose(losses[[0, 2]], -special.log_softmax(logits, -1)[[0, 2], [1, 2]], rtol=1e-5)


def test_cross_entropy_arguments_go_by_name():
    x, y = normal(2, 3), np.array([0, 1])
    for function in (
        cross_entropy_ops.sparse_softmax_cross_entropy_with_logits,
        cross_entropy_ops.softmax_cross_entropy_with_logits,
        cross_entropy_ops.sigmoid_cross_entropy_with_logits,
    ):
        with pytest.raises(ValueError, match="with named arguments"):
            function(y, x)
        with pytest.raises(ValueError, match="Both labels and logits"):
            function(logits=x)
    with pytest.raises(InvalidArgumentError, match="without its last"):
        cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=np.array([0, 1, 2]), logits=x)


@pytest.mark.parametrize(("labels", "logits"), [((), (1, 3)), ((1, 1), (1, 3)), ((2, 3), (3, 2, 4)), ((6,), (3, 2, 4))])
def test_shapes_of_labels_that_only_a_step_knows(session, labels, logits):
    fed = [placeholder(dtype) for dtype in (dtypes.int32, dtypes.float32)]
    for known in (logits, [None] * len(logits)):
        given = constant(normal(*logits)) if known is logits else placeholder(dtypes.float64, known)
        loss = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=fed[0], logits=given)
        feeds = {fed[0]: np.zeros(labels, np.int32), given: normal(*logits)}
        with pytest.raises(InvalidArgumentError, match="labels"):
            session.run(loss, feeds)


def test_gradients_reach_labels_only_in_the_second_version():
    x, y = constant(grid(2, 3)), constant(special.softmax(grid(2, 3, seed=1), -1))
    loss = cross_entropy_ops.softmax_cross_entropy_with_logits(labels=y, logits=x)
    assert gradients(loss, [y]) == [None]
    loss = cross_entropy_ops.softmax_cross_entropy_with_logits_v2(y, x)
    wanted = -special.log_softmax(grid(2, 3), -1)
    np.testing.assert_allclose(interpret(gradients(loss, y)[0]), wanted)


def test_sigmoid_cross_entropy_is_precise_where_it_is_small():
    x = np.array([15.0, 30, 80, -15, -80], np.float32)
    z = np.array([1, 1, 1, 0, 0], np.float32)
    value = interpret(cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=z, logits=x))
    np.testing.assert_allclose(value, np.logaddexp(0, -np.abs(x.astype(float))), rtol=1e-6)


def test_weighted_cross_entropy():
    z, x = special.expit(grid(3, 4)), grid(3, 4, seed=1)
    wanted = 2.5 * z * np.logaddexp(0, -x) + (1 - z) * np.logaddexp(0, x)
    for call in (
        cross_entropy_ops.weighted_cross_entropy_with_logits(z, x, 2.5),
        cross_entropy_ops.weighted_cross_entropy_with_logits(targets=z, logits=x, pos_weight=2.5),
    ):
        np.testing.assert_allclose(interpret(call), wanted)
    with pytest.raises(InvalidArgumentError, match="same shape"):
        cross_entropy_ops.weighted_cross_entropy_with_logits(z[:2], x, 1.0)


def test_half_precision_losses_are_computed_in_single():
    x, y = grid(2, 3).astype(np.float16), np.array([0, 2])
    loss = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)
    assert loss.dtype is dtypes.float16
    wanted = -special.log_softmax(x.astype(float), -1)[[0, 1], y]
    np.testing.assert_allclose(interpret(loss), wanted, rtol=1e-3)


# -- normalization -------------------------------------------------------------------------------------


def test_l2_normalize():
    x = grid(3, 4)
    np.testing.assert_allclose(
        interpret(normalization_ops.l2_normalize(x, 1)), x / np.linalg.norm(x, axis=1, keepdims=True)
    )
    np.testing.assert_allclose(interpret(normalization_ops.l2_normalize(x, dim=[0, 1])), x / np.linalg.norm(x))
    assert (interpret(normalization_ops.l2_normalize(np.zeros((2, 2)), 0)) == 0).all()


@pytest.mark.parametrize("keep", [False, True])
def test_moments(keep: bool):
    x = grid(3, 4, 5)
    for axes in ([0], [0, 2], [0, 1, 2]):
        mean, variance = normalization_ops.moments(x, axes, keep_dims=keep)
        values = interpret([mean, variance])
        np.testing.assert_allclose(values[0], x.mean(tuple(axes), keepdims=keep))
        np.testing.assert_allclose(values[1], x.var(tuple(axes), keepdims=keep))
        assert mean.shape == values[0].shape and variance.shape == values[1].shape
    check_gradients(lambda x: list(normalization_ops.moments(x, [0, 1])), [x])


@pytest.mark.parametrize(("keep", "shape"), [(True, (1, 3, 1, 2)), (False, (3, 2))])
def test_moments_over_no_dimensions_leave_out_those_of_size_1(keep, shape):
    x = grid(1, 3, 1, 2)
    mean, variance = normalization_ops.moments(x, [], keep_dims=keep)
    assert mean.shape == variance.shape == shape
    values = interpret([mean, variance])
    np.testing.assert_array_equal(values[0], x.reshape(shape))
    np.testing.assert_array_equal(values[1], np.zeros(shape))


def test_moments_in_half_precision():
    x = (300 + grid(64, 64)).astype(np.float16)
    mean, variance = interpret(list(normalization_ops.moments(x, [0, 1])))
    assert mean.dtype == variance.dtype == np.float16
    np.testing.assert_allclose(variance, x.astype(float).var(), rtol=2e-3)


def test_batch_normalization():
    x, mean, variance = grid(5, 3), grid(3), grid(3, low=1, high=2, seed=1)
    offset, scale = grid(3, seed=2), grid(3, seed=3)
    normalized = (x - mean) / np.sqrt(variance + 0.1)
    for given, wanted in [
        ((offset, scale), normalized * scale + offset),
        ((None, scale), normalized * scale),
        ((offset, None), normalized + offset),
    ]:
        value = interpret(normalization_ops.batch_normalization(constant(x), mean, variance, *given, 0.1))
        np.testing.assert_allclose(value, wanted)


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_large_batch_normalization(layout: str, on_gpu: bool):
    x, scale, offset = 50 + normal(16, 31, 30, 80), normal(80, seed=1), normal(80, seed=2)
    d = normal(*x.shape, seed=3)
    wide = x.astype(float)
    mean, variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
    normalized = (wide - mean) / np.sqrt(variance + 0.001)
    wanted = normalized * scale + offset
    d_scale = (d * normalized).sum((0, 1, 2))
    d_x = scale / np.sqrt(variance + 0.001) * (d - d.mean((0, 1, 2)) - normalized * d_scale / (x.size // 80))
    if layout == "NCHW":
        x, d, wanted, d_x = map(ref.to_nchw, (x, d, wanted, d_x))
    y, *statistics = batch_norm_ops.fused_batch_norm(x, scale, offset, data_format=layout)
    d_inputs = d, x, scale, mean.astype(np.float32), variance.astype(np.float32)
    attrs = {"epsilon": 0.001, "data_format": layout, "is_training": True}
    d_op = add_op(batch_norm_ops.FUSED_BATCH_NORM_GRAD, *d_inputs, **attrs)
    if on_gpu:
        values = run_as_on_gpu(y.op, x, scale, offset, scale[:0], scale[:0])
        d_values = run_as_on_gpu(d_op[0].op, *d_inputs)
    else:
        values, d_values = interpret([y, *statistics]), interpret(d_op)
    np.testing.assert_allclose(values[0], wanted, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(values[1], mean, rtol=1e-5)
    np.testing.assert_allclose(values[2], variance * (x.size / 80) / (x.size / 80 - 1), rtol=1e-4)
    np.testing.assert_allclose(d_values[0], d_x, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(d_values[1], d_scale, rtol=1e-3, atol=1)
    np.testing.assert_allclose(d_values[2], d.astype(float).sum(ref_axes(layout)), rtol=1e-3, atol=1e-1)


def ref_axes(layout: str) -> tuple[int, int, int]:
    return (0, 1, 2) if layout == "NHWC" else (0, 2, 3)


def test_batch_norm_of_half_precision_images():
    x = grid(4, 3, 3, 2).astype(np.float16)
    y, mean, _ = batch_norm_ops.fused_batch_norm(x, np.ones(2, np.float32), np.zeros(2, np.float32))
    assert y.dtype is dtypes.float16 and mean.dtype is dtypes.float32
    assert abs(interpret(y).astype(float).mean()) < 1e-2


def test_batch_norm_wants_statistics_for_inference_only():
    ones = np.ones(2, np.float32)
    with pytest.raises(InvalidArgumentError, match="for inference"):
        batch_norm_ops.fused_batch_norm(normal(1, 2, 2, 2), ones, ones, is_training=False)
    with pytest.raises(InvalidArgumentError, match="for inference"):
        batch_norm_ops.fused_batch_norm(normal(1, 2, 2, 2), ones, ones, ones, ones)


# -- a whole network -----------------------------------------------------------------------------------


def test_second_derivatives_of_a_network():
    x, labels = grid(2, 6, 6, 2, low=-1, high=1, seed=7), np.array([1, 0])
    w1, w2 = grid(3, 3, 2, 3, low=-0.5, high=0.5, seed=1), grid(27, 2, low=-0.5, high=0.5, seed=2)

    def network(x: Any, w1: Any, w2: Any) -> Any:
        hidden = pooling_ops.max_pool(activation_ops.softplus(conv_ops.conv2d(x, w1, 1, "SAME")), 2, 2, "SAME")
        logits = matmul(reshape(hidden, [2, -1]), w2)
        return cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)

    check_gradients(network, [x, w1, w2], tolerance=1e-6)


@pytest.mark.parametrize(
    ("weights", "expected"), [(None, 2.0), (0.5, 2 / 3), ([0.5, 1.0, 0.9], 4 / 3)]
)  # TensorFlow 1.15's: weighed numbers are whole ones again
def test_the_average_of_whole_losses_is_none_itself(session, weights, expected):
    average = nn_ops.compute_average_loss([1, 2, 3], weights)
    assert average.dtype.name == "float64" and session.run(average) == pytest.approx(expected)


# -- what is refused when the graph is built, as in TensorFlow -------------------------------------------


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda x: pooling_ops.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 1], "SAME"), UnimplementedError),
        (lambda x: pooling_ops.max_pool(x, [1, 2, 1, 2], [1, 1, 1, 2], "SAME"), UnimplementedError),
        (lambda x: pooling_ops.max_pool(x, [1, 1, 1, 3], [1, 1, 1, 3], "SAME"), UnimplementedError),
        (lambda x: pooling_ops.avg_pool(x, [2, 2, 2, 1], [1, 2, 2, 1], "SAME"), UnimplementedError),
        (lambda x: conv_ops.conv2d_transpose(x, grid(3, 3, 2, 3), [2, 8, 8, 2], 2), ValueError),
        (lambda x: conv_ops.convolution(x, grid(3, 3, 4, 1), "SAME", [2, 2], [2, 2]), ValueError),
        (lambda x: conv_ops.convolution(x, grid(3, 3, 4, 1), "SAME", [2, 2, 2]), ValueError),
        (lambda x: depthwise_conv_ops.separable_conv2d(x, grid(3, 3, 4, 1), grid(2, 1, 4, 3), 1, "SAME"), ValueError),
        (lambda x: cross_entropy_ops.softmax(x, axis=1, dim=1), ValueError),
        (lambda x: normalization_ops.moments(x, [0], keep_dims=True, keepdims=True), ValueError),
        (lambda x: nn_ops.dropout(x, rate=[0.5]), ValueError),
        (lambda x: nn_ops.compute_average_loss(x[0, 0, 0, 0]), ValueError),
        (lambda x: nn_ops.compute_average_loss(x, [0.2, 0.8]), ValueError),
    ],
)
def test_malformed_calls_are_refused_when_built(build, error):
    with pytest.raises(error):
        build(placeholder("float64", [2, 4, 4, 4]))
