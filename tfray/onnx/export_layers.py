"""How convolutions, pooling, normalization and resizing become nodes of ONNX, which has channels first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.errors import UnimplementedError
from tfray.framework.graph import Operation, Tensor
from tfray.onnx.onnx_body import Body, Order, channels_first, exports
from tfray.ops.kernels.windows import window_axis


def _spatial(values: Sequence[int], rank: int, layout: str) -> list[int]:
    """The values of an attribute for the spatial axes. Attributes of volumes have no others."""
    if len(values) == rank - 2:
        return list(values)
    return list(values[2:] if layout.startswith("NC") else values[1:-1])


def _sizes(tensor: Tensor, layout: str, rank: int) -> list[int | None]:
    return _spatial(tensor.shape.sizes if tensor.shape.rank == rank else [None] * rank, rank, layout)  # type: ignore


def _window(
    op: Operation, kernel: Sequence[int], sizes: Sequence[int | None], dilations: Sequence[int]
) -> dict[str, Any]:
    """The attributes of windows: their sizes, steps and the padding."""
    layout, rank = op.attrs["data_format"], len(kernel) + 2
    strides = _spatial(op.attrs["strides"], rank, layout)
    found: dict[str, Any] = {"kernel_shape": list(kernel), "strides": strides}
    if op.type not in ("MaxPool", "AvgPool"):
        found["dilations"] = list(dilations)
    if op.attrs["padding"] == "EXPLICIT":
        amounts = op.attrs["explicit_paddings"]
        pairs = _spatial(list(zip(amounts[::2], amounts[1::2], strict=True)), rank, layout)  # type: ignore
        return {**found, "pads": [pair[0] for pair in pairs] + [pair[1] for pair in pairs]}  # type: ignore
    if op.attrs["padding"] == "VALID":
        return found
    if all(size is not None or stride == 1 for size, stride in zip(sizes, strides, strict=True)):
        # At stride 1 the padding does not depend on the size.
        axes = [
            window_axis(extent if size is None else size, extent, stride, dilation, "SAME")
            for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True)
        ]
        return {**found, "pads": [axis.before for axis in axes] + [axis.after for axis in axes]}
    if any(dilation != 1 for dilation in dilations):
        raise UnimplementedError("its padding depends on sizes that are not known")
    return {**found, "auto_pad": "SAME_UPPER"}


def _dilations(op: Operation, rank: int) -> list[int]:
    return _spatial(op.attrs["dilations"], rank, op.attrs["data_format"])


def _filter_sizes(filters: Tensor) -> list[int]:
    if not filters.shape.is_fully_defined():
        raise UnimplementedError("the shape of its filters is not known")
    return [size for size in filters.shape.sizes if size is not None]


def _filters(body: Body, filters: Tensor, shape: Sequence[int], order: Sequence[int]) -> str:
    """Filters, first brought into another shape, with their axes in the order that ONNX wants."""
    if list(shape) == list(filters.shape.sizes):
        return body.text(filters, tuple(order))
    value = body.known(filters) if filters.op.type != "Const" else filters.op.attrs["value"]
    if value is not None:
        return body.constant(value.reshape(shape).transpose(order))
    reshaped = body.emit("Reshape", [body.text(filters), body.constant(list(shape))])
    return body.emit("Transpose", [reshaped], perm=list(order))


@exports("Conv2D", "Conv3D", "_FusedConv2D", "DepthwiseConv2dNative")
def _convolution(body: Body, op: Operation) -> None:
    images, filters = op.inputs[:2]
    sizes, layout = _filter_sizes(filters), op.attrs["data_format"]
    rank = len(sizes)
    dilations = _dilations(op, rank)
    attrs = _window(op, sizes[:-2], _sizes(images, layout, rank), dilations)
    if op.type == "DepthwiseConv2dNative":
        attrs["group"] = sizes[2]
        sizes = [*sizes[:2], 1, sizes[2] * sizes[3]]
    order = channels_first(rank, layout)
    weights = _filters(body, filters, sizes, (rank - 1, rank - 2, *range(rank - 2)))
    inputs = [body.text(images, order), weights, *body.texts(op.inputs[2:])]
    value = body.emit("Conv", inputs, **attrs)
    if "Relu" in op.attrs.get("fused_ops", ()):
        value = body.emit("Relu", [value])
    body.put(op.outputs[0], value, order)


@exports("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def _transposed_convolution(body: Body, op: Operation) -> None:
    _, filters, images = op.inputs
    sizes, layout = _filter_sizes(filters), op.attrs["data_format"]
    rank = len(sizes)
    order, dilations = channels_first(rank, layout), _dilations(op, rank)
    results, given = _sizes(op.outputs[0], layout, rank), _sizes(images, layout, rank)
    if None in results or None in given:
        raise UnimplementedError("the padding of a transposed convolution depends on sizes that are not known")
    attrs = _window(op, sizes[:-2], results, dilations)
    pads = attrs.pop("pads", [0] * (2 * rank - 4))
    # What the convolution would not reach is padding of the result, what it would reach beyond is cut off.
    after, extra = [], []
    for axis, (size, result) in enumerate(zip(given, results, strict=True)):
        assert size is not None and result is not None
        reach = (size - 1) * attrs["strides"][axis] + (sizes[axis] - 1) * dilations[axis] + 1 - pads[axis]
        after.append(max(0, reach - result))
        extra.append(max(0, result - reach))
    weights = _filters(body, filters, sizes, (rank - 1, rank - 2, *range(rank - 2)))
    attrs |= {"pads": [*pads[: rank - 2], *after], "output_padding": extra}
    body.put(op.outputs[0], body.emit("ConvTranspose", [body.text(images, order), weights], **attrs), order)


@exports("MaxPool", "AvgPool")
def _pool(body: Body, op: Operation) -> None:
    (images,) = op.inputs
    layout = op.attrs["data_format"]
    kernel, order = _spatial(op.attrs["ksize"], 4, layout), channels_first(4, layout)
    attrs = _window(op, kernel, _sizes(images, layout, 4), [1, 1])
    operator = "MaxPool" if op.type == "MaxPool" else "AveragePool"
    body.put(op.outputs[0], body.emit(operator, [body.text(images, order)], **attrs), order)


@exports("BiasAdd")
def _bias_add(body: Body, op: Operation) -> None:
    tensor, bias = op.inputs
    rank, order = tensor.shape.rank, body.native(tensor)
    last = rank is None or not str(op.attrs["data_format"]).startswith("NC")
    axis = (rank or 1) - 1 if last else 1
    place = axis if order is None else order.index(axis)
    value = body.text(bias)
    if rank is not None and place != rank - 1:
        shape = [-1, *[1] * (rank - 1 - place)]
        known = bias.op.attrs["value"] if bias.op.type == "Const" else None
        value = (
            body.emit("Reshape", [value, body.constant(shape)])
            if known is None
            else body.constant(known.reshape(shape))
        )
    body.put(op.outputs[0], body.emit("Add", [body.text(tensor, order), value]), order)


@exports("FusedBatchNorm", "_FusedBatchNormEx")
def _batch_norm(body: Body, op: Operation) -> None:
    images = op.inputs[0]
    if op.attrs["is_training"]:
        raise UnimplementedError("it normalizes by the batch: export the graph that was built with training=False")
    order = channels_first(4, op.attrs["data_format"])
    inputs = [body.text(images, order), *body.texts(op.inputs[1:])]
    value = body.emit("BatchNormalization", inputs, epsilon=float(op.attrs["epsilon"]))
    if "activation_mode" in op.attrs:
        value = body.emit("Relu", [value])
        if op.attrs["activation_mode"] == "Relu6":
            value = body.emit("Min", [value, body.constant(6, images.dtype)])
    body.put(op.outputs[0], value, order)


@exports("LRN")
def _local_response(body: Body, op: Operation) -> None:
    order, size = channels_first(4, "NHWC"), 2 * int(op.attrs["depth_radius"]) + 1
    # ONNX divides alpha by the number of channels in a window.
    attrs = {"alpha": float(op.attrs["alpha"]) * size, "beta": float(op.attrs["beta"]), "bias": float(op.attrs["bias"])}
    body.put(op.outputs[0], body.emit("LRN", [body.text(op.inputs[0], order)], size=size, **attrs), order)


@exports("DepthToSpace", "SpaceToDepth")
def _blocks(body: Body, op: Operation) -> None:
    order = channels_first(4, op.attrs["data_format"])
    value = body.emit(op.type, [body.text(op.inputs[0], order)], blocksize=int(op.attrs["block_size"]))
    body.put(op.outputs[0], value, order)


_MODES: Final = {
    "ResizeBilinear": {"mode": "linear"},
    "ResizeBicubic": {"mode": "cubic"},
    "ResizeNearestNeighbor": {"mode": "nearest"},
}


@exports(*_MODES)
def _resize(body: Body, op: Operation) -> None:
    images, size = op.inputs
    order: Order = channels_first(4, "NHWC")
    value = body.text(images, order)
    attrs: dict[str, Any] = dict(_MODES[op.type])
    half, corners = bool(op.attrs["half_pixel_centers"]), bool(op.attrs["align_corners"])
    attrs["coordinate_transformation_mode"] = "align_corners" if corners else "half_pixel" if half else "asymmetric"
    if attrs["mode"] == "nearest":
        attrs["nearest_mode"] = "round_prefer_ceil" if half or corners else "floor"
    if attrs["mode"] == "cubic":
        # TensorFlow's two forms of the cubic: that of half pixels leaves out what lies beyond the image.
        attrs |= {"cubic_coeff_a": -0.5, "exclude_outside": 1} if half else {"cubic_coeff_a": -0.75}
    first = body.emit("Slice", [body.sizes(value), body.constant([0]), body.constant([2])])
    sizes = body.emit("Concat", [first, body.index(size)], axis=0)
    made = body.emit("Resize", [body.cast(value, images.dtype, op.outputs[0].dtype)], sizes=sizes, **attrs)
    body.put(op.outputs[0], made, order)
