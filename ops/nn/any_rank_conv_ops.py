"""Convolution and pooling of sequences, images and volumes alike, by the rank of what they are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.arrays.broadcast_ops import zeros
from tfray.ops.arrays.join_ops import concat, size_along, stack
from tfray.ops.arrays.shape_ops import cast, expand_dims, index_tensor, reshape, shape, squeeze, transpose
from tfray.ops.arrays.space_block_ops import batch_to_space_nd, required_space_to_batch_paddings, space_to_batch_nd
from tfray.ops.math.rounding_ops import floordiv
from tfray.ops.nn import conv_ops, pooling_ops
from tfray.ops.nn.conv3d_ops import conv3d, conv3d_transpose
from tfray.ops.nn.conv_ops import conv2d_transpose, either
from tfray.ops.nn.pooling_ops import avg_pool, max_pool
from tfray.ops.nn.volumes import checked_volume_layout, per_volume_axis

# -- pooling of volumes --------------------------------------------------------------------------------


def max_pool3d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Take the greatest element of each window of a volume, channel by channel.

    Args:
        input: ``[batch, depth, height, width, channels]``, or in the order of `data_format`; a real dtype.
        ksize: Size of the window: 1, 3 (depth, height, width) or 5 integers, in the order of `data_format`.
        strides: Distance between windows, in the form of `ksize`.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NDHWC"`` or ``"NCDHW"``.
        name: Name scope of the operations.

    Returns:
        ``[batch, out depth, out height, out width, channels]``.
    """
    return _pool_volumes("max_pool3d", "MaxPool3D", max_pool, input, ksize, strides, padding, data_format, name)


def avg_pool3d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Take the mean of each window of a volume, channel by channel. Padding does not count.

    `input` has the shape ``[batch, depth, height, width, channels]``, the result ``[batch, out depth, out height, out
    width, channels]``. Arguments are as for `max_pool3d`.
    """
    return _pool_volumes("avg_pool3d", "AvgPool3D", avg_pool, input, ksize, strides, padding, data_format, name)


def _pool_volumes(
    op: str,
    default_name: str,
    pool2d: Callable[..., Tensor],
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    layout = checked_volume_layout(op, data_format)
    window, step = (per_volume_axis(op, what, v, layout) for what, v in (("ksize", ksize), ("strides", strides)))
    with get_default_graph().name_scope(name or default_name) as scope:
        volumes = convert_to_tensor(input, name="input")
        if volumes.shape.rank not in (None, 5):
            raise InvalidArgumentError(f"{op}: the volumes have shape {volumes.shape}, expected rank 5")
        if layout == "NCDHW":
            volumes = transpose(volumes, [0, 2, 3, 4, 1])
        if layout == "NCDHW":
            pooled = _pool_by_planes(pool2d, volumes, window, step, padding, None)
            return transpose(pooled, [0, 4, 1, 2, 3], name=scope)
        return _pool_by_planes(pool2d, volumes, window, step, padding, scope)


def _pool_by_planes(
    pool2d: Callable[..., Tensor],
    volumes: Tensor,
    window: list[int],
    step: list[int],
    padding: Padding,
    name: str | None,
) -> Tensor:
    """Pool every slice, and then the slices: extremes and means of windows are those of their slices'."""
    sizes = shape(volumes)
    slices = reshape(volumes, concat([[-1], sizes[2:]], 0))
    slices.set_shape([None, *volumes.shape.with_rank(5).sizes[2:]])
    planes = pool2d(slices, window[1:], step[1:], padding)
    inner = shape(planes)[1:]
    lines = reshape(planes, concat([sizes[:2], [inner[0] * inner[1]], inner[2:]], 0))
    pooled = pool2d(lines, [window[0], 1], [step[0], 1], padding)
    result = reshape(pooled, concat([shape(pooled)[:2], inner], 0), name=name)
    depth = pooled.shape.sizes[1] if pooled.shape.rank else None
    result.set_shape([volumes.shape.sizes[0] if volumes.shape.rank else None, depth, *planes.shape.sizes[1:]])
    return result


# -- by rank -------------------------------------------------------------------------------------------


def convolution(
    input: TensorLike,
    filter: TensorLike | None = None,
    padding: Padding | None = None,
    strides: Sizes | None = None,
    dilation_rate: Sizes | None = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: TensorLike | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Convolve sequences (rank 3), images (rank 4) or volumes (rank 5), as `conv1d`, `conv2d` and `conv3d`.

    Args:
        input: ``[batch, ..., channels]`` with one to three spatial axes, in the order of `data_format`.
        filter: ``[..., channels, outputs]`` with as many.
        padding: ``"SAME"`` or ``"VALID"``.
        strides: One integer per spatial axis; 1 when None.
        dilation_rate: Likewise.
        name: Name of the operation.
        data_format: ``NWC``, ``NCW``, ``NHWC``, ``NCHW``, ``NDHWC`` or ``NCDHW``.
        filters: Another spelling of `filter`.
        dilations: Another spelling of `dilation_rate`.

    Raises:
        InvalidArgumentError: `filter` has another rank than 3, 4 or 5.
    """
    filter = convert_to_tensor(either("convolution", filter, filters, "filter and filters"))
    dilation_rate = dilations if dilation_rate is None else dilation_rate
    if filter.shape.rank != 5:
        return conv_ops.convolution(input, filter, padding, strides, dilation_rate, name, data_format)
    conv_ops.check_spatial(filter, strides, dilation_rate)
    return conv3d(input, filter, _list(strides), padding, data_format or "NDHWC", _list(dilation_rate), name)


def _list(values: Sizes | None) -> list[int]:
    return [1] if values is None else [int(value) for value in np.ravel(values)]


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Sizes,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the transpose of `conv1d` (its gradient).

    Args:
        input: ``[batch, width, channels]``, or ``[batch, channels, width]`` for NCW.
        filters: ``[width, outputs, channels]``.
        output_shape: Shape of the result, an integer vector of 3.
        strides: Distance between windows: 1 or 3 integers.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NWC"`` or ``"NCW"``.
        dilations: Distance between the elements of a window: 1 or 3 integers.
        name: Name of the last operation.

    Returns:
        Shape `output_shape`.
    """
    if isinstance(output_shape, (int, float, np.integer)) or (isinstance(output_shape, list) and not output_shape):
        raise TypeError(f"conv1d_transpose: output_shape must be a list of 3 numbers, not {output_shape!r}")
    layout = {"NWC": "NHWC", "NCW": "NCHW"}.get(data_format, data_format)
    if layout not in ("NHWC", "NCHW"):
        raise InvalidArgumentError(f"conv1d_transpose: data_format is {data_format!r}, expected NWC or NCW")
    axis = 1 if layout == "NHWC" else 2
    if strides is not None and np.size(strides) not in (1, 3):
        raise ArgumentError(f"conv1d_transpose: strides is {strides!r}, expected 1 or 3 integers")
    along_width = [values[0] if len(values) == 1 else values[axis] for values in (_list(strides), _list(dilations))]
    sizes = index_tensor(output_shape)
    outputs = conv2d_transpose(
        expand_dims(input, axis),
        expand_dims(filters, 0),
        concat([sizes[:axis], [1], sizes[axis:]], 0),
        [1, along_width[0]],
        padding,
        layout,
        dilations=[1, along_width[1]],
    )
    return squeeze(outputs, [axis], name or "conv1d_transpose")


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Sizes,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the transpose of `convolution`, by the length of `output_shape`.

    Args:
        input: ``[batch, ..., channels]`` with one to three spatial axes, in the order of `data_format`.
        filters: ``[..., outputs, channels]``.
        output_shape: Shape of the result, an integer vector of 3 to 5.
        strides: One integer per spatial axis, or one for all.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: As for `convolution`.
        dilations: In the form of `strides`.
        name: Name of the operation.

    Returns:
        Shape `output_shape`.
    """
    filters = convert_to_tensor(filters)
    functions: dict[int | None, tuple[Any, str]] = {
        3: (conv1d_transpose, "NWC"),
        4: (conv2d_transpose, "NHWC"),
        5: (conv3d_transpose, "NDHWC"),
    }
    if filters.shape.rank not in functions:
        raise InvalidArgumentError(f"conv_transpose: the filters have shape {filters.shape}, expected rank 3, 4 or 5")
    function, layout = functions[filters.shape.rank]
    return function(
        input,
        filters,
        output_shape,
        _list(strides),
        padding,
        data_format or layout,
        dilations=_list(dilations),
        name=name,
    )


def pool(
    input: TensorLike,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: Padding,
    dilation_rate: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """Pool sequences (rank 3), images (rank 4) or volumes (rank 5).

    Args:
        input: ``[batch, ..., channels]`` with one to three spatial axes, in the order of `data_format`.
        window_shape: Size of the window, one integer per spatial axis.
        pooling_type: ``"MAX"`` or ``"AVG"``.
        padding: ``"SAME"`` or ``"VALID"``.
        dilation_rate: Distance between the elements of a window, one integer per axis. Above 1 it needs strides of
            1 and padding VALID.
        strides: Distance between windows, in the form of `window_shape`; 1 when None.
        name: Name of the operation.
        data_format: ``NWC``, ``NCW``, ``NHWC``, ``NCHW``, ``NDHWC`` or ``NCDHW``.
        dilations: Another spelling of `dilation_rate`.

    Raises:
        InvalidArgumentError: Another pooling type or rank, or gaps together with strides or SAME.
    """
    if np.ndim(window_shape) > 1:
        raise ArgumentError(f"pool: window_shape is {window_shape!r}, expected an integer for each axis")
    window = _list(window_shape)
    rate = dilation_rate if dilations is None else dilations
    if rate is not None and np.shape(rate) != (len(window),):
        raise ArgumentError(f"pool: dilation_rate is {rate!r}, expected a list of one for each of {len(window)} axes")
    rates = _list(rate)
    if any(rate != 1 for rate in rates):
        return _pool_with_gaps(input, window, pooling_type, padding, rates, strides, name, data_format)
    if len(window) != 3:
        return pooling_ops.pool(
            input,
            window,
            pooling_type=pooling_type,
            padding=padding,
            dilation_rate=None,
            strides=strides,
            name=name,
            data_format=data_format,
        )
    functions = {"MAX": max_pool3d, "AVG": avg_pool3d}
    if pooling_type not in functions:
        raise InvalidArgumentError(f"pool: pooling_type is {pooling_type!r}, expected MAX or AVG")
    return functions[pooling_type](input, window, _list(strides), padding, data_format, name)


def _pool_with_gaps(
    input: TensorLike,
    window: list[int],
    pooling_type: str,
    padding: Padding,
    rates: list[int],
    strides: Sizes | None,
    name: str | None,
    data_format: str | None,
) -> Tensor:
    """Every rate-th element makes an image of its own, whose windows have no gaps."""
    if str(padding).upper() != "VALID" or any(stride != 1 for stride in _list(strides)):
        raise InvalidArgumentError("pool: a dilation_rate above 1 needs strides of 1 and padding VALID")
    with get_default_graph().name_scope(name or "pool"):
        return with_space_to_batch(
            input,
            rates,
            padding,
            lambda images, _, padding: pool(images, window, pooling_type, padding, data_format=data_format),
            window,
            data_format=data_format,
        )


def max_pool_v2(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Take the greatest element of each window of sequences (rank 3), images (rank 4) or volumes (rank 5).

    Args:
        input: ``[batch, ..., channels]``, in the order of `data_format`; a real dtype.
        ksize: Size of the windows: 1 integer, one per spatial axis, or one per axis.
        strides: Distance between windows, in the form of `ksize`.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``NWC``, ``NCW``, ``NHWC``, ``NCHW``, ``NDHWC`` or ``NCDHW``; channels last when None.
        name: Name of the operation.
    """
    return _pooled_by_rank(
        "max_pool",
        pooling_ops.max_pool1d,
        pooling_ops.max_pool,
        max_pool3d,
        input,
        (ksize, strides),
        padding,
        data_format,
        name,
    )


def avg_pool_v2(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Average each window of sequences (rank 3), images (rank 4) or volumes (rank 5); see `max_pool_v2`.

    `input` has the shape ``[batch, ..., channels]``.
    """
    return _pooled_by_rank(
        "avg_pool",
        pooling_ops.avg_pool1d,
        pooling_ops.avg_pool,
        avg_pool3d,
        input,
        (ksize, strides),
        padding,
        data_format,
        name,
    )


def _pooled_by_rank(
    op: str,
    of_sequences: Callable[..., Tensor],
    of_images: Callable[..., Tensor],
    of_volumes: Callable[..., Tensor],
    input: TensorLike,
    sizes: tuple[Sizes, Sizes],
    padding: Padding,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    tensor = convert_to_tensor(input)
    rank = tensor.shape.rank if tensor.shape.rank is not None or data_format is None else len(data_format)
    functions = {3: (of_sequences, "NWC"), 4: (of_images, "NHWC"), 5: (of_volumes, "NDHWC")}
    if rank not in functions:
        raise InvalidArgumentError(f"{op}: the input has shape {tensor.shape}, expected rank 3, 4 or 5")
    function, layout = functions[rank]
    return function(tensor, *sizes, padding, data_format or layout, name)


def with_space_to_batch(
    input: TensorLike,
    dilation_rate: TensorLike,
    padding: Padding,
    op: Callable[..., Tensor],
    filter_shape: TensorLike | None = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Apply an operation on windows with gaps between their elements, by one that knows no gaps.

    Every ``dilation_rate``-th element makes an image of its own (`tf.space_to_batch_nd`), on which `op` works.

    Args:
        input: Rank of at least ``max(spatial_dims) + 1``.
        dilation_rate: Distance between the elements of a window along each spatial dimension, an integer vector.
        padding: ``"SAME"``, ``"VALID"``, or a pair for each dimension; `op` gets ``"VALID"`` where there are gaps.
        op: ``function(input, num_spatial_dims, padding)``.
        filter_shape: Sizes of the window, an integer vector; needed for ``"SAME"``.
        spatial_dims: The spatial dimensions, ascending; those behind the batch (and the channels) when None.
        data_format: One that begins with ``NC`` where channels come before the spatial dimensions.

    Returns:
        What `op` gives, in its shape with the images put together again: as if its windows had gaps.

    Raises:
        InvalidArgumentError: Malformed arguments.
    """
    tensor, rates = convert_to_tensor(input), index_tensor(dilation_rate)
    count = rates.shape.with_rank(1).sizes[0]
    if count is None:
        raise InvalidArgumentError("with_space_to_batch: the length of dilation_rate must be known")
    first = 2 if (data_format or "").startswith("NC") else 1
    axes = list(range(first, first + count) if spatial_dims is None else map(int, spatial_dims))
    if axes != sorted(set(axes)) or min(axes, default=1) < 1 or len(axes) != count:
        raise InvalidArgumentError(f"with_space_to_batch: spatial_dims is {spatial_dims!r}, expected {count} ascending")
    if tensor.shape.rank is not None and tensor.shape.rank < axes[-1] + 2 - first:
        raise InvalidArgumentError(f"with_space_to_batch: the input has shape {tensor.shape}, of too low a rank")
    known = constant_value(rates)
    if known is not None and (known < 1).any():
        raise InvalidArgumentError(f"with_space_to_batch: dilation_rate is {known.tolist()}, expected at least 1")
    if known is not None and (known == 1).all():
        return op(tensor, count, padding)
    is_explicit = not isinstance(padding, Tensor) and np.shape(padding) == (count + 2, 2)
    if not is_explicit and (
        not isinstance(padding, str) or padding not in ("SAME", "VALID") or (padding == "SAME" and filter_shape is None)
    ):
        raise InvalidArgumentError(
            f"with_space_to_batch: padding is {padding!r}, expected SAME (which needs filter_shape), VALID, or "
            f"{count + 2} pairs"
        )
    around = zeros([count, 2], "int32")
    if is_explicit:
        around = index_tensor(np.asarray(padding)[first : first + count])
    elif padding == "SAME":
        extra = (cast(index_tensor(filter_shape), "int32")[:count] - 1) * rates  # type: ignore[arg-type]
        around = stack([floordiv(extra, 2), extra - floordiv(extra, 2)], 1)
    sizes = stack([size_along(tensor, axis) for axis in axes])
    paddings, crops = required_space_to_batch_paddings(sizes, rates, around)
    # Blocks cover all dimensions up to the last spatial one; those in between stay as they are.
    places = [axes.index(axis) if axis in axes else None for axis in range(1, axes[-1] + 1)]
    blocks = stack([1 if place is None else rates[place] for place in places])
    frames = [stack([[0, 0] if place is None else pairs[place] for place in places]) for pairs in (paddings, crops)]
    return batch_to_space_nd(op(space_to_batch_nd(tensor, blocks, frames[0]), count, "VALID"), blocks, frames[1])
