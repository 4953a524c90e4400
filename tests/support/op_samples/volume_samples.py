"""Convolution of volumes, and morphology of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.image_reference import pads
from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.ops.nn import conv3d_ops, morphology_ops

# (volumes, filters, strides, dilations, padding)
CASES: list[tuple[Any, Any, Any, Any, str]] = [
    ((2, 3, 4, 5, 2), (2, 3, 2, 2, 3), (1, 1, 1), (1, 1, 1), "SAME"),
    ((1, 5, 4, 4, 2), (3, 2, 3, 2, 2), (2, 1, 2), (1, 1, 1), "VALID"),
    ((1, 5, 5, 6, 1), (2, 2, 2, 1, 2), (1, 1, 1), (2, 1, 3), "SAME"),
    ((1, 3, 4, 4, 9), (1, 3, 3, 9, 2), (1, 1, 1), (1, 1, 1), "SAME"),
    ((0, 3, 4, 4, 2), (2, 2, 2, 2, 2), (1, 1, 1), (1, 1, 1), "SAME"),
]


def places(shape: Any, window: Any, strides: Any, dilations: Any, padding: str) -> tuple[Any, Any]:
    """Padding of the three axes, and (output position, index of its window in padded volumes)."""
    axes = list(zip(shape[1:4], window[:3], strides, dilations, strict=True))
    amounts = [pads(*axis, padding) for axis in axes]
    starts = [
        range(0, size + sum(amount) - (k - 1) * d, s) for (size, k, s, d), amount in zip(axes, amounts, strict=True)
    ]
    found = []
    for output in np.ndindex(*map(len, starts)):
        corner = [start[i] for start, i in zip(starts, output, strict=True)]
        index = tuple(slice(c, c + (k - 1) * d + 1, d) for c, (_, k, _, d) in zip(corner, axes, strict=True))
        found.append((output, (slice(None), *index)))
    return [(0, 0), *amounts, (0, 0)], found


def conv(volumes: Any, filters: Any, options: Any) -> Any:
    around, found = places(volumes.shape, filters.shape, *options)
    padded, counts = np.pad(volumes, around), np.array([output for output, _ in found]).max(axis=0) + 1
    outputs = np.zeros((len(volumes), *counts, filters.shape[4]))
    for output, index in found:
        outputs[(slice(None), *output)] = np.tensordot(padded[index], filters, 4)
    return outputs


def d_volumes(shape: Any, filters: Any, d_outputs: Any, options: Any) -> Any:
    around, found = places(shape, filters.shape, *options)
    padded = np.pad(np.zeros(shape), around)
    for output, index in found:
        padded[index] += np.tensordot(d_outputs[(slice(None), *output)], filters, ([1], [4]))
    inside = tuple(slice(before, size - behind) for (before, behind), size in zip(around, padded.shape, strict=True))
    return padded[inside]


def d_filters(volumes: Any, shape: Any, d_outputs: Any, options: Any) -> Any:
    around, found = places(volumes.shape, shape, *options)
    padded, filters = np.pad(volumes, around), np.zeros(shape)
    for output, index in found:
        filters += np.tensordot(padded[index], d_outputs[(slice(None), *output)], ([0], [0]))
    return filters


def first(array: Any) -> Any:
    """Channels first."""
    return np.moveaxis(array, 4, 1)


def last(array: Any) -> Any:
    """Channels last."""
    return np.moveaxis(array, 1, 4)


def backprop_input(sizes: Any, filters: Any, d_outputs: Any, **kwargs: Any) -> Any:
    return conv3d_ops.conv3d_transpose(d_outputs, filters, sizes, **kwargs)


def conv_rows() -> list[OpSample]:
    rows = []
    for index, (volumes, filters, strides, dilations, padding) in enumerate(CASES):
        options = (strides, dilations, padding)
        x, w = grid(*volumes, low=-1, high=1), grid(*filters, low=-1, high=1, seed=1)
        y = grid(*conv(x, w, options).shape, low=-1, high=1, seed=2)
        kwargs: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations), "padding": padding}
        x_shape, w_shape = np.array(x.shape, np.int32), np.array(w.shape, np.int64)
        rows += [
            OpSample(
                "Conv3D", conv3d_ops.conv3d, [x, w], lambda x, w, o=options: conv(x, w, o), kwargs=kwargs, tolerance=6
            ),
            OpSample(
                "Conv3DBackpropInputV2",
                backprop_input,
                [x_shape, w, y],
                lambda s, w, y, o=options: d_volumes(s, w, y, o),
                kwargs=kwargs,
                sizes=(0,),
                tolerance=6,
            ),
            OpSample(
                "Conv3DBackpropFilterV2",
                conv3d_ops.conv3d_backprop_filter,
                [x, w_shape, y],
                lambda x, s, y, o=options: d_filters(x, tuple(s), y, o),
                kwargs=kwargs,
                sizes=(1,),
                tolerance=20,
            ),
        ]
        if index == 0:
            rows += first_rows(x, w, y, options, {**kwargs, "data_format": "NCDHW"})
    return rows


def first_rows(x: Any, w: Any, y: Any, options: Any, kwargs: Any) -> list[OpSample]:
    x, y = first(x), first(y)
    x_shape, w_shape = np.array(x.shape, np.int32), np.array(w.shape, np.int64)
    some: dict[str, Any] = {
        "kwargs": kwargs,
        "label": "NCDHW",
        "dtypes": (dtypes.float32, dtypes.float64),
        "tolerance": 20,
    }
    return [
        OpSample("Conv3D", conv3d_ops.conv3d, [x, w], lambda x, w: first(conv(last(x), w, options)), **some),
        OpSample(
            "Conv3DBackpropInputV2",
            backprop_input,
            [x_shape, w, y],
            lambda s, w, y: first(d_volumes((*s[:1], *s[2:], s[1]), w, last(y), options)),
            sizes=(0,),
            **some,
        ),
        OpSample(
            "Conv3DBackpropFilterV2",
            conv3d_ops.conv3d_backprop_filter,
            [x, w_shape, y],
            lambda x, s, y: d_filters(last(x), tuple(s), last(y), options),
            sizes=(1,),
            **some,
        ),
    ]


def greatest(images: Any, filters: Any, options: Any) -> Any:
    """For each output its greatest sum, and where in image and filter that is."""
    strides, rates, padding = options
    axes = list(zip(images.shape[1:3], filters.shape[:2], strides, rates, strict=True))
    amounts = [pads(*axis, padding) for axis in axes]
    counts = [
        (size + sum(amount) - (k - 1) * rate - 1) // stride + 1
        for (size, k, stride, rate), amount in zip(axes, amounts, strict=True)
    ]
    for n, y, x, c in np.ndindex(len(images), *counts, images.shape[3]):
        best = None
        for i, j in np.ndindex(filters.shape[:2]):
            row, column = (
                at * axis[2] + k * axis[3] - amount[0]
                for at, k, axis, amount in zip((y, x), (i, j), axes, amounts, strict=True)
            )
            if 0 <= row < images.shape[1] and 0 <= column < images.shape[2]:
                total = images[n, row, column, c] + filters[i, j, c]
                if best is None or total > best[0]:
                    best = total, (n, row, column, c), (i, j, c)
        yield (n, y, x, c), best


def morphology_rows() -> list[OpSample]:
    rows = []
    for strides, rates, padding in (((1, 1), (1, 1), "SAME"), ((2, 1), (1, 2), "VALID"), ((1, 2), (2, 1), "SAME")):
        options = (strides, rates, padding)
        images, filters = grid(2, 5, 6, 2, low=-10, high=10), grid(2, 3, 2, low=-10, high=10.76, seed=1)
        kwargs = {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}

        def dilated(images: Any, filters: Any, options: Any = options) -> Any:
            found = dict(greatest(images, filters, options))
            out = np.zeros(np.array(list(found)).max(axis=0) + 1)
            for place, (total, _, _) in found.items():
                out[place] = total
            return out

        def d_input(images: Any, filters: Any, outputs: Any, d_outputs: Any, options: Any = options) -> Any:
            d_images = np.zeros(images.shape)
            for place, (_, at, _) in greatest(images, filters, options):
                d_images[at] += d_outputs[place]
            return d_images

        def d_filter(images: Any, filters: Any, outputs: Any, d_outputs: Any, options: Any = options) -> Any:
            d_filters = np.zeros(filters.shape)
            for place, (_, _, at) in greatest(images, filters, options):
                d_filters[at] += d_outputs[place]
            return d_filters

        outputs = dilated(images, filters)
        inputs = [images, filters, outputs, grid(*outputs.shape, seed=2)]
        exact: dict[str, Any] = {"dtypes": (dtypes.float64,), "kwargs": kwargs}
        rows += [
            OpSample(
                "Dilation2D",
                morphology_ops.dilation2d,
                [images, filters],
                dilated,
                kwargs=kwargs,
                twice=False,
                dtypes=(dtypes.float64, dtypes.float32, dtypes.int32),
            ),
            OpSample(
                "Dilation2DBackpropInput",
                lambda *inputs, **kwargs: add_op(morphology_ops.DILATION2D_BACKPROP_INPUT, *inputs, **kwargs),
                inputs,
                d_input,
                **exact,
            ),
            OpSample(
                "Dilation2DBackpropFilter",
                lambda *inputs, **kwargs: add_op(morphology_ops.DILATION2D_BACKPROP_FILTER, *inputs, **kwargs),
                inputs,
                d_filter,
                **exact,
            ),
        ]
    return rows


SAMPLES = [*conv_rows(), *morphology_rows()]
X, W = np.zeros((1, 3, 3, 3, 2)), np.zeros((2, 2, 2, 3, 1))
ERRORS = [
    OpError("Conv3D", lambda x, w: conv3d_ops.conv3d(x, w, 1, "SAME"), [X, W], "2 channels"),
    OpError("Conv3D", lambda x, w: conv3d_ops.conv3d(x, w, 1, "SAME"), [X, W], "2 channels", at_run=True),
    OpError("conv3d", lambda x, w: conv3d_ops.conv3d(x, w, [1, 2], "SAME"), [X, W], "1, 3 or 5 integers"),
    OpError("conv3d", lambda x, w: conv3d_ops.conv3d(x, w, 1, "FULL"), [X, W], "SAME or VALID"),
]
