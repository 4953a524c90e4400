"""Convolution and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tests.support.op_samples.array_samples import build_op
from tests.support.references import image_reference as ref
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.ops.nn import conv_ops, depthwise_conv_ops, pooling_ops

# (images, filters, strides, dilations, padding): every path of the kernels, odd sizes, nothing at all.
CONVOLUTIONS: list[tuple[Any, Any, Any, Any, Any]] = [
    ((2, 5, 6, 3), (3, 3, 3, 4), (1, 1), (1, 1), "SAME"),
    ((2, 5, 6, 3), (3, 2, 3, 4), (1, 1), (1, 1), "VALID"),
    ((1, 7, 6, 9), (3, 3, 9, 2), (1, 1), (1, 1), "SAME"),
    ((2, 7, 8, 2), (3, 3, 2, 3), (2, 2), (1, 1), "SAME"),
    ((1, 9, 8, 2), (4, 5, 2, 3), (3, 2), (1, 1), "VALID"),
    ((1, 7, 9, 2), (3, 2, 2, 2), (1, 1), (2, 3), "SAME"),
    ((1, 9, 9, 9), (2, 3, 9, 2), (1, 1), (3, 2), "VALID"),
    ((1, 8, 9, 2), (2, 2, 2, 2), (2, 3), (2, 2), "SAME"),
    ((1, 4, 5, 2), (2, 3, 2, 2), (1, 2), (1, 1), ((2, 1), (0, 3))),
    ((1, 4, 5, 9), (2, 2, 9, 2), (1, 1), (1, 1), ((3, 0), (1, 2))),
    ((2, 3, 4, 5), (1, 1, 5, 3), (1, 1), (1, 1), "VALID"),
    ((2, 5, 5, 3), (1, 1, 3, 2), (2, 2), (1, 1), "SAME"),
    ((0, 4, 4, 2), (3, 3, 2, 3), (1, 1), (1, 1), "SAME"),
    ((0, 4, 4, 2), (3, 3, 2, 3), (2, 2), (1, 1), "SAME"),
    ((2, 4, 4, 2), (3, 3, 2, 0), (1, 1), (1, 1), "SAME"),
    ((2, 4, 4, 0), (3, 3, 0, 2), (2, 2), (1, 1), "SAME"),
]


def nhwc(padding: Any) -> Any:
    return padding if isinstance(padding, str) else [[0, 0], *padding, [0, 0]]


def nchw(padding: Any) -> Any:
    return padding if isinstance(padding, str) else [[0, 0], [0, 0], *padding]


def fused_conv2d(x: Any, w: Any, bias: Any, strides: Any, padding: Any, dilations: Any) -> Any:
    """With a bias and relu, as compiled graphs have it."""
    attrs = conv_ops.conv_attrs("conv2d", strides, padding, "NHWC", dilations)
    return add_op(conv_ops.FUSED_CONV2D, x, w, bias, name="FusedConv2D", **attrs, fused_ops=["BiasAdd", "Relu"])


def conv_rows() -> list[OpSample]:
    rows = []
    for images, filters, strides, dilations, padding in CONVOLUTIONS:
        options: dict[str, Any] = {"stride": strides, "dilation": dilations, "padding": padding}
        x, w = grid(*images, low=-1, high=1), grid(*filters, low=-1, high=1, seed=1)
        y = grid(*ref.conv(x, w, **options).shape, low=-1, high=1, seed=2)
        x_shape, w_shape = np.array(x.shape, np.int32), np.array(w.shape, np.int64)

        def conv(x, w, o=options):
            return ref.conv(x, w, **o)

        def d_images(shape, w, y, o=options):
            return ref.conv_images_gradient(tuple(shape), w, y, **o)

        def d_filters(x, shape, y, o=options):
            return ref.conv_filters_gradient(x, tuple(shape), y, **o)

        common: dict[str, Any] = {"strides": list(strides), "padding": nhwc(padding), "dilations": list(dilations)}
        rows += [
            OpSample("Conv2D", conv_ops.conv2d, [x, w], conv, kwargs=common, tolerance=4),
            OpSample(
                "_FusedConv2D",
                fused_conv2d,
                [x, w, grid(w.shape[3], low=-1, high=1, seed=3)],
                lambda x, w, bias, o=options: np.maximum(ref.conv(x, w, **o) + bias, 0),
                kwargs=common,
                differentiable=(),
                tolerance=4,
            ),
            OpSample(
                "Conv2DBackpropInput",
                conv_ops.conv2d_backprop_input,
                [x_shape, w, y],
                d_images,
                kwargs=common,
                sizes=(0,),
                tolerance=4,
            ),
            OpSample(
                "Conv2DBackpropFilter",
                conv_ops.conv2d_backprop_filter,
                [x, w_shape, y],
                d_filters,
                kwargs=common,
                sizes=(1,),
                tolerance=10,
            ),
            *nchw_rows(x, w, y, common, options, padding),
        ]
    return rows


def nchw_rows(x: Any, w: Any, y: Any, common: dict[str, Any], options: Any, padding: Any) -> list[OpSample]:
    common = {**common, "padding": nchw(padding), "data_format": "NCHW"}
    x, y = ref.to_nchw(x), ref.to_nchw(y)
    x_shape, w_shape = np.array(x.shape, np.int32), np.array(w.shape, np.int64)

    def conv(x, w):
        return ref.to_nchw(ref.conv(ref.to_nhwc(x), w, **options))

    def d_images(shape, w, y):
        n, c, h, wide = shape
        return ref.to_nchw(ref.conv_images_gradient((n, h, wide, c), w, ref.to_nhwc(y), **options))

    def d_filters(x, shape, y):
        return ref.conv_filters_gradient(ref.to_nhwc(x), tuple(shape), ref.to_nhwc(y), **options)

    some = {"kwargs": common, "label": "NCHW", "dtypes": (dtypes.float32, dtypes.float64)}
    return [
        OpSample("Conv2D", conv_ops.conv2d, [x, w], conv, tolerance=4, **some),
        OpSample(
            "Conv2DBackpropInput",
            conv_ops.conv2d_backprop_input,
            [x_shape, w, y],
            d_images,
            sizes=(0,),
            tolerance=4,
            **some,
        ),
        OpSample(
            "Conv2DBackpropFilter",
            conv_ops.conv2d_backprop_filter,
            [x, w_shape, y],
            d_filters,
            sizes=(1,),
            tolerance=10,
            **some,
        ),
    ]


DEPTHWISE: list[tuple[Any, Any, Any, Any, Any, str]] = [
    ((2, 5, 6, 3), (3, 3, 3, 1), (1, 1), (1, 1), "SAME", "NHWC"),
    ((1, 6, 5, 2), (3, 2, 2, 3), (2, 2), (1, 1), "SAME", "NHWC"),
    ((1, 7, 7, 2), (2, 3, 2, 2), (1, 1), (2, 2), "VALID", "NHWC"),
    ((2, 6, 5, 2), (3, 2, 2, 2), (1, 2), (1, 1), "SAME", "NCHW"),
    ((0, 5, 5, 2), (3, 3, 2, 2), (1, 1), (1, 1), "SAME", "NHWC"),
]


def rows_of_depthwise(
    images: Any, filters: Any, strides: Any, dilations: Any, padding: Any, layout: str
) -> list[OpSample]:
    options: dict[str, Any] = {"stride": strides, "dilation": dilations, "padding": padding}
    to, back = (ref.to_nchw, ref.to_nhwc) if layout == "NCHW" else (np.asarray, np.asarray)
    x, w = to(grid(*images, low=-1, high=1)), grid(*filters, low=-1, high=1, seed=1)
    y = to(grid(*ref.depthwise(back(x), w, **options).shape, low=-1, high=1, seed=2))

    def forward(x, w):
        return to(ref.depthwise(back(x), w, **options))

    def d_images(shape, w, y):
        return linear_transpose(lambda images: to(ref.depthwise(back(images), w, **options)), shape, y)

    def d_filters(x, shape, y):
        return linear_transpose(lambda filters: to(ref.depthwise(back(x), filters, **options)), shape, y)

    common: dict[str, Any] = {
        "kwargs": {
            "strides": [1, *strides, 1] if layout == "NHWC" else [1, 1, *strides],
            "padding": padding,
            "dilations": list(dilations),
            "data_format": layout,
        },
        "label": layout,
    }
    x_shape, w_shape = np.array(x.shape, np.int32), np.array(w.shape, np.int32)
    ops = depthwise_conv_ops
    return [
        OpSample("DepthwiseConv2dNative", ops.depthwise_conv2d_native, [x, w], forward, tolerance=4, **common),
        OpSample(
            "DepthwiseConv2dNativeBackpropInput",
            ops.depthwise_conv2d_native_backprop_input,
            [x_shape, w, y],
            d_images,
            sizes=(0,),
            tolerance=4,
            **common,
        ),
        OpSample(
            "DepthwiseConv2dNativeBackpropFilter",
            ops.depthwise_conv2d_native_backprop_filter,
            [x, w_shape, y],
            d_filters,
            sizes=(1,),
            tolerance=10,
            **common,
        ),
    ]


def linear_transpose(function: Any, shape: Any, y: Any) -> Any:
    """Transpose of a linear function of arrays of this shape, applied to `y`: one unit array at a time."""
    shape = tuple(shape)
    transposed = np.zeros(shape)
    for index in np.ndindex(shape):
        unit = np.zeros(shape)
        unit[index] = 1
        transposed[index] = (function(unit) * y).sum()
    return transposed


# (images, window, strides, padding)
POOLINGS: list[tuple[Any, Any, Any, str]] = [
    ((2, 4, 6, 3), (2, 2), (2, 2), "VALID"),
    ((2, 5, 7, 2), (2, 2), (2, 2), "SAME"),
    ((1, 7, 6, 2), (3, 3), (2, 2), "SAME"),
    ((1, 7, 6, 2), (3, 2), (1, 3), "VALID"),
    ((1, 4, 6, 2), (1, 3), (1, 3), "VALID"),
    ((2, 5, 5, 1), (1, 1), (2, 2), "SAME"),
    ((1, 5, 4, 2), (5, 4), (1, 1), "VALID"),
    ((0, 4, 4, 2), (2, 2), (2, 2), "SAME"),
]
FORWARD_DTYPES = (*dtypes.FLOATS, dtypes.int32, dtypes.uint8)


def pool_rows() -> list[OpSample]:
    rows = []
    for images, window, strides, padding in POOLINGS:
        for layout in ("NHWC", "NCHW"):
            rows += rows_of_pooling(images, window, strides, padding, layout)
    return rows


def rows_of_pooling(images: Any, window: Any, strides: Any, padding: str, layout: str) -> list[OpSample]:
    options: dict[str, Any] = {"stride": strides, "padding": padding}
    to, back = (ref.to_nchw, ref.to_nhwc) if layout == "NCHW" else (np.asarray, np.asarray)
    x = to(grid(*images))
    maxima = to(ref.pool(back(x), window, "max", **options))
    y = to(grid(*back(maxima).shape, seed=1))
    kwargs: dict[str, Any] = {
        "ksize": list(window),
        "strides": list(strides),
        "padding": padding,
        "data_format": layout,
    }
    attrs, label = pooling_ops.pool_attrs("pool", **kwargs), f"{layout}-{window[0]}x{window[1]}"
    some: dict[str, Any] = {"kwargs": kwargs, "label": label}

    def pooled(kind):
        return lambda x: to(ref.pool(back(x), window, kind, **options))

    def max_gradient(x, maxima, y):
        return to(ref.max_pool_gradient(back(x), back(y), window, **options))

    def noted(x):
        return add_op(pooling_ops.MAX_POOL_WITH_PLACES, x, name="Noted", **attrs)

    def by_notes(x, maxima, y):
        return add_op(pooling_ops.MAX_POOL_GRAD_AT_PLACES, x, maxima, noted(x)[1], y, name="AtPlaces", **attrs)

    def max_gradient_gradient(x, maxima, d_x):
        return to(ref.max_pool_gradient_gradient(back(x), back(maxima), back(d_x), window, **options))

    def mean_gradient(shape, y):
        shape = tuple(shape) if layout == "NHWC" else (shape[0], shape[2], shape[3], shape[1])
        return to(ref.mean_pool_gradient(shape, back(y), window, **options))

    # Windows must still find their maxima after rounding to few bits.
    exact: dict[str, Any] = {"differentiable": (2,), "dtypes": (dtypes.float32, dtypes.float64), "label": label}
    ops = pooling_ops
    return [
        OpSample("MaxPool", ops.max_pool, [x], pooled("max"), dtypes=FORWARD_DTYPES, **some),
        OpSample("MaxPoolGrad", build_op(ops.MAX_POOL_GRAD, **attrs), [x, maxima, y], max_gradient, **exact),
        OpSample("_MaxPoolWithPlaces", lambda x: noted(x)[0], [x], pooled("max"), differentiable=(), label=label),
        OpSample("_MaxPoolGradAtPlaces", by_notes, [x, maxima, y], max_gradient, **{**exact, "differentiable": ()}),
        OpSample(
            "MaxPoolGradGrad",
            build_op(ops.MAX_POOL_GRAD_GRAD, **attrs),
            [x, maxima, x + 1],
            max_gradient_gradient,
            **exact,
        ),
        OpSample("AvgPool", ops.avg_pool, [x], pooled("mean"), tolerance=2, **some),
        OpSample(
            "AvgPoolGrad",
            build_op(ops.AVG_POOL_GRAD, **attrs),
            [np.array(x.shape, np.int32), y],
            mean_gradient,
            sizes=(0,),
            tolerance=2,
            label=label,
        ),
    ]


def argmax_rows() -> list[OpSample]:
    rows = []
    for images, window, strides, padding in POOLINGS:
        for with_batch in (False, True):
            options: dict[str, Any] = {"stride": strides, "padding": padding}

            def reference(x, window=window, options=options, with_batch=with_batch):
                maxima = ref.pool(x, window, "max", **options)
                places = np.zeros(maxima.shape, np.int64)
                for output, place in ref.first_maxima(x, window, **options):
                    places[output] = np.ravel_multi_index(place if with_batch else (0, *place[1:]), x.shape)
                return maxima, places

            rows.append(
                OpSample(
                    "MaxPoolWithArgmax",
                    pooling_ops.max_pool_with_argmax,
                    [grid(*images)],
                    reference,
                    kwargs={
                        "ksize": list(window),
                        "strides": list(strides),
                        "padding": padding,
                        "include_batch_in_index": with_batch,
                    },
                    dtypes=(dtypes.float32, dtypes.float64),
                    label=f"{window[0]}x{window[1]}-{with_batch}",
                )
            )
    return rows


SAMPLES = [
    *conv_rows(),
    *[row for options in DEPTHWISE for row in rows_of_depthwise(*options)],
    *pool_rows(),
    *argmax_rows(),
]

X, W = grid(1, 4, 4, 2), grid(3, 3, 2, 2)
ERRORS = [
    OpError("Conv2D", lambda x, w: conv_ops.conv2d(x, w, 1, "VALID"), [X, grid(5, 3, 2, 2)], "smaller window"),
    OpError("Conv2D", lambda x, w: conv_ops.conv2d(x, w, 1, "SAME"), [X, grid(3, 3, 3, 2)], "2 channels"),
    OpError("Conv2D", lambda x, w: conv_ops.conv2d(x, w, 1, "SAME"), [X, grid(3, 3, 3, 2)], "2 channels", at_run=True),
    OpError(
        "Conv2D", lambda x, w: conv_ops.conv2d(x, w, 1, "VALID"), [X, grid(5, 3, 2, 2)], "smaller window", at_run=True
    ),
    OpError("Conv2D", lambda x, w: conv_ops.conv2d(x, w, 1, "SAME"), [grid(4, 4, 2), W], "incompatible"),
    OpError(
        "Conv2DBackpropInput",
        lambda w, y: conv_ops.conv2d_backprop_input([1, 4, 4, 2], w, y, 1, "SAME"),
        [W, grid(1, 3, 4, 2)],
        "expected",
        at_run=True,
    ),
    OpError("MaxPool", lambda x: pooling_ops.max_pool(x, 5, 1, "VALID"), [X], "smaller window"),
    OpError(
        "MaxPoolGrad",
        lambda x, y: add_op(pooling_ops.MAX_POOL_GRAD, x, y, y, **pooling_ops.pool_attrs("pool", 2, 2, "SAME", "NHWC")),
        [X, grid(1, 2, 3, 2)],
        "expected",
        at_run=True,
    ),
]
