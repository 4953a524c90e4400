"""Searching values: positions of extremes, the greatest k, and how often each number occurs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name, none_is_default
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    KernelFunction,
    NumpyDType,
    OpDef,
    on_every_device,
    register,
)
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import cast, host_int, index_tensor, shape, size, sizes_from_input
from tfray.ops.kernels.compiled_rows import can_compute, compute_rows
from tfray.ops.kernels.precision import sortable
from tfray.ops.math.arithmetic_ops import add, maximum, minimum, multiply
from tfray.ops.math.comparison_ops import not_equal
from tfray.ops.math.reduction_ops import reduce_max

# -- positions of extremes -----------------------------------------------------------------------------


@none_is_default
def argmax(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: TensorLike | None = None,
    output_type: DTypeLike = dtypes.int64,
) -> Tensor:
    """Find the position of the greatest element along a dimension.

    Args:
        input: Shape ``[...]`` of rank 1 or more, an integer or floating dtype or bool.
        axis: The dimension, an integer scalar; 0 by default.
        name: Name of the operation.
        dimension: Old name of `axis`.
        output_type: int32 or int64.

    Returns:
        The shape of `input` without the dimension. Of equal elements the first counts.

    Raises:
        InvalidArgumentError: `axis` is out of range, or the dimension is empty.

    Examples:
        >>> session.run(tf.argmax([[1, 5, 2], [9, 3, 4]], axis=1))
        array([1, 0])
    """
    return _position(ARG_MAX, input, axis, name, dimension, output_type)


@none_is_default
def argmin(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: TensorLike | None = None,
    output_type: DTypeLike = dtypes.int64,
) -> Tensor:
    """Find the position of the least element along a dimension (arguments as `argmax`).

    The result has the shape of `input` without the dimension; of equal elements the first counts.

    Examples:
        >>> session.run(tf.argmin([[1, 5, 2], [9, 3, 4]], axis=1))
        array([0, 1])
    """
    return _position(ARG_MIN, input, axis, name, dimension, output_type)


def arg_max(
    input: TensorLike, dimension: TensorLike, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """`argmax` by its older signature: `input` has the shape ``[...]``, the result that without `dimension`."""
    return argmax(input, convert_to_tensor(dimension, preferred_dtype=dtypes.int32), name, output_type=output_type)


def arg_min(
    input: TensorLike, dimension: TensorLike, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """`argmin` by its older signature: `input` has the shape ``[...]``, the result that without `dimension`."""
    return argmin(input, convert_to_tensor(dimension, preferred_dtype=dtypes.int32), name, output_type=output_type)


def _position(
    definition: OpDef,
    input: TensorLike,
    axis: TensorLike | None,
    name: str | None,
    dimension: TensorLike | None,
    output_type: DTypeLike,
) -> Tensor:
    axis = by_either_name(definition.name, axis=axis, dimension=dimension)
    axis = index_tensor(0 if axis is None else axis)
    return add_op(definition, input, axis, name=name, output_type=as_dtype(output_type))


def _position_def(name: str, kernel: KernelFunction) -> OpDef:
    return OpDef(
        name=name,
        inputs=("input: T", "dimension: Tidx"),
        outputs=("output: output_type",),
        host_inputs=("dimension",),
        types={"T": (*dtypes.REAL, dtypes.bool_), "Tidx": dtypes.INDICES, "output_type": dtypes.INDICES},
        shape=_position_shape,
        kernels=on_every_device(kernel),
    )


def _position_shape(op: Operation) -> list[TensorShape]:
    source, axis = op.inputs[0].shape.with_rank_at_least(1), constant_value(op.inputs[1])
    op.inputs[1].shape.assert_has_rank(0)
    if source.rank is None:
        return [UNKNOWN]
    if axis is None:
        return [TensorShape([None] * (source.rank - 1))]
    along = normalize_axis(int(axis), source.rank)
    return [TensorShape(source.sizes[:along] + source.sizes[along + 1 :])]


def _searched_axis(ctx: KernelContext, input: Array, dimension: Array) -> int:
    try:
        along = normalize_axis(host_int(ctx, dimension), input.ndim)
    except ValueError as error:
        raise InvalidArgumentError(f"{error} (input shape {input.shape})") from error
    if input.shape[along] == 0:
        raise InvalidArgumentError(f"dimension {along} of shape {input.shape} is empty: it has no extreme")
    return along


def _place_found(ctx: KernelContext, input: Array, found: Array, along: int) -> Array:
    """`found`, or where there are NaNs the first of them: of several CuPy finds any."""
    if ctx.xp is not np and input.dtype.kind in "fV":  # bfloat16 is of the kind V
        unordered = ctx.xp.isnan(input)
        found = ctx.xp.where(unordered.any(axis=along), unordered.argmax(axis=along), found)
    return found.astype(ctx.output_dtype())


def _position_kernel(extreme: str) -> Callable[..., Array]:
    def kernel(ctx: KernelContext, input: Array, dimension: Array) -> Array:
        along = _searched_axis(ctx, input, dimension)
        if ctx.xp is np and _is_wide(input, along):
            most = getattr(input, extreme)(axis=along, keepdims=True)
            return _first_equal(input, most, along, ctx.output_dtype())
        return _place_found(ctx, input, getattr(input, f"arg{extreme}")(axis=along), along)

    return kernel


ARG_MAX = register(_position_def("ArgMax", _position_kernel("max")))
ARG_MIN = register(_position_def("ArgMin", _position_kernel("min")))


def _is_wide(input: Array, along: int) -> bool:
    """Whether the search would take elements a long stride apart: comparing whole rows is faster then."""
    return input.strides[along] >= 64 * input.itemsize and input.shape[along] < 2**16 and input.size > 4096


def _first_equal(input: Array, extreme: Array, along: int, dtype: NumpyDType) -> Array:
    """Position of the first element that equals the extreme of its line.

    Each hit is weighted by its distance from the end: the heaviest is the first.
    """
    count = input.shape[along]
    weights = np.arange(count, 0, -1, dtype=np.uint16).reshape(-1, *[1] * (input.ndim - 1 - along))
    heaviest = np.multiply(input == extreme, weights, dtype=np.uint16).max(axis=along)
    if not heaviest.all():  # a line whose extreme is NaN, which equals nothing: there the first NaN counts
        first_nan = np.multiply(input != input, weights, dtype=np.uint16).max(axis=along)
        heaviest = np.where(heaviest == 0, first_nan, heaviest)
    return (count - heaviest.astype(dtype)).astype(dtype, copy=False)


# -- the greatest k ------------------------------------------------------------------------------------


class TopK(NamedTuple):
    """What `top_k` returns.

    Attributes:
        values: The greatest elements, descending, ``[..., k]``.
        indices: Their positions, int32, ``[..., k]``.
    """

    values: Tensor
    indices: Tensor


def top_k(input: TensorLike, k: TensorLike = 1, sorted: bool = True, name: str | None = None) -> TopK:
    """Find the `k` greatest elements along the last dimension.

    Args:
        input: Shape ``[..., n]``, an integer or floating dtype.
        k: How many: an integer scalar, at most n.
        sorted: Descending order is wanted (it is always given; of equal elements the first comes first).
        name: Name of the operation.

    Returns:
        The values and their positions (int32), both of shape ``[..., k]``.

    Raises:
        InvalidArgumentError: `k` is negative or above n.

    Examples:
        >>> session.run(tf.nn.top_k([1, 9, 5, 7], k=2))
        TopK(values=array([9, 7], dtype=int32), indices=array([1, 3], dtype=int32))
    """
    return TopK(*add_op(TOP_K, input, index_tensor(k), name=name, sorted=bool(sorted)))


def _top_k_kernel(ctx: KernelContext, input: Array, k: Array) -> tuple[Array, Array]:
    count = host_int(ctx, k)
    if input.ndim == 0 or not 0 <= count <= input.shape[-1]:
        raise InvalidArgumentError(_wrong_k(count, input.shape))
    xp = ctx.xp
    if count == 1 and input.size:
        indices = input.argmax(axis=-1)[..., None]
    elif xp is np and 0 < 8 * count < input.shape[-1]:
        indices = _compiled_order(input, count) if can_compute(xp, input) else _partial_order(input, count)
    else:
        indices = _descending_order(xp, input)[..., :count]
    return xp.take_along_axis(input, indices, axis=-1), indices.astype(np.int32)


def _wrong_k(k: int, sizes: Sequence[int | None]) -> str:
    """What is wrong with a number of greatest elements, for an input of these sizes."""
    if not sizes:
        return "input must have at least rank 1, and is a scalar"
    if k < 0:
        return f"Need k >= 0, got {k}"
    return f"input must have at least k columns: it has {sizes[-1]}, k is {k}; it must have last dimension >= k = {k}"


def _descending_order(xp: ArrayModule, input: Array) -> Array:
    # Sort the reversed line and reverse the result: of equal elements the first then stays first.
    ascending = xp.argsort(sortable(xp, input)[..., ::-1], axis=-1, kind="stable")
    return input.shape[-1] - 1 - ascending[..., ::-1]


def _compiled_order(input: Array, count: int) -> Array:
    """As `_partial_order`, for float32."""
    rows = np.ascontiguousarray(input).reshape(-1, input.shape[-1])
    ranks = np.empty((len(rows), count), np.int64)
    compute_rows("selection", "greatest", *rows.shape, count, rows, rows.view(np.int32), ranks)
    ranks.sort(axis=-1)
    # The lower half of a rank is the index, counted from behind.
    return (~ranks[:, ::-1] & 0xFFFFFFFF).reshape(*input.shape[:-1], count)


def _partial_order(input: Array, count: int) -> Array:
    """As `_descending_order`, its first entries only, without sorting the rest."""
    rows = input.reshape(-1, input.shape[-1])
    chosen = np.sort(np.argpartition(rows, -count, axis=-1)[:, -count:], axis=-1)
    values = np.take_along_axis(rows, chosen, axis=-1)
    least = values.min(axis=-1, keepdims=True)
    indices = np.take_along_axis(chosen, _descending_order(np, values), axis=-1)
    # If the least chosen value also occurs among the others, the choice between equals was arbitrary: sort those rows.
    # So too if it is NaN, which equals nothing.
    is_shared = (rows == least).sum(axis=-1) != (values == least).sum(axis=-1)
    unsure = np.flatnonzero(is_shared | (least != least)[:, 0])
    if unsure.size:
        indices[unsure] = _descending_order(np, rows[unsure])[:, :count]
    return indices.reshape(*input.shape[:-1], count)


def _top_k_shape(op: Operation) -> list[TensorShape]:
    source, k = op.inputs[0].shape.with_rank_at_least(1), constant_value(op.inputs[1])
    op.inputs[1].shape.assert_has_rank(0)
    if source.rank is None and (k is None or k >= 0):
        return [UNKNOWN, UNKNOWN]
    sizes = (None,) if source.rank is None else source.sizes
    if k is not None and (k < 0 or (sizes[-1] is not None and k > sizes[-1])):
        raise ValueError(f"{_wrong_k(int(k), sizes)}; input has shape {source}")
    return [TensorShape([*sizes[:-1], None if k is None else int(k)])] * 2


def _top_k_gradient(op: Operation, d_values: Tensor | None, d_indices: Tensor | None) -> list[Tensor | None]:
    if d_values is None:
        return [None, None]
    return [put_along_last(d_values, op.outputs[1], shape(op.inputs[0])), None]


TOP_K = register(
    OpDef(
        name="TopKV2",
        inputs=("input: T", "k: Tk"),
        outputs=("values: T", "indices: int32"),
        host_inputs=("k",),
        types={"T": dtypes.REAL, "Tk": dtypes.INDICES},
        attrs=("sorted",),
        shape=_top_k_shape,
        kernels=on_every_device(_top_k_kernel),
        gradient=_top_k_gradient,
    )
)


def put_along_last(values: TensorLike, indices: TensorLike, sizes: TensorLike, name: str | None = None) -> Tensor:
    """Put elements at positions along the last dimension of zeros: the transpose of `take_along_last`.

    Args:
        values: Shape ``[..., k]``, a number dtype.
        indices: The same shape, int32 or int64, each line without repetitions.
        sizes: Integer vector: the shape of the result, ``[..., n]``.
        name: Name of the operation.

    Returns:
        Shape `sizes`, the dtype of `values`.
    """
    return add_op(PUT_ALONG_LAST, values, indices, index_tensor(sizes), name=name)


def _put_along_last_kernel(ctx: KernelContext, values: Array, indices: Array, sizes: Array) -> Array:
    result = ctx.xp.zeros(tuple(ctx.to_host(sizes).tolist()), values.dtype)
    ctx.xp.put_along_axis(result, indices.astype(np.intp), values, axis=-1)
    return result


def _put_along_last_shape(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 2)]


def _put_along_last_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [take_along_last(d_output, op.inputs[1]), None, None]


PUT_ALONG_LAST = register(
    OpDef(
        name="PutAlongLast",
        inputs=("values: T", "indices: Tindices", "sizes: Tsizes"),
        outputs=("output: T",),
        host_inputs=("sizes",),
        types={"T": dtypes.NUMERIC, "Tindices": dtypes.INDICES, "Tsizes": dtypes.INDICES},
        shape=_put_along_last_shape,
        kernels=on_every_device(_put_along_last_kernel),
        gradient=_put_along_last_gradient,
    )
)


def take_along_last(input: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    """Take elements by their positions along the last dimension.

    Args:
        input: Shape ``[..., n]``, a number dtype.
        indices: Shape ``[..., k]``, int32 or int64.
        name: Name of the operation.

    Returns:
        Shape ``[..., k]``.
    """
    return add_op(TAKE_ALONG_LAST, input, indices, name=name)


def _take_along_last_kernel(ctx: KernelContext, input: Array, indices: Array) -> Array:
    return ctx.xp.take_along_axis(input, indices.astype(np.intp), axis=-1)


def _take_along_last_shape(op: Operation) -> list[TensorShape]:
    source, indices = (tensor.shape for tensor in op.inputs)
    if source.rank is None or indices.rank is None:
        return [indices]
    if source.rank != indices.rank or not source[:-1].is_compatible_with(indices[:-1]):
        raise ValueError(f"indices of shape {indices} do not go with the shape {source}: all but the last must agree")
    return [source[:-1].merge_with(indices[:-1]).concatenate(indices[-1:])]


def _take_along_last_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [put_along_last(d_output, op.inputs[1], shape(op.inputs[0])), None]


TAKE_ALONG_LAST = register(
    OpDef(
        name="TakeAlongLast",
        inputs=("input: T", "indices: Tindices"),
        outputs=("output: T",),
        types={"T": dtypes.NUMERIC, "Tindices": dtypes.INDICES},
        shape=_take_along_last_shape,
        kernels=on_every_device(_take_along_last_kernel),
        gradient=_take_along_last_gradient,
    )
)


def in_top_k(predictions: TensorLike, targets: TensorLike, k: TensorLike, name: str | None = None) -> Tensor:
    """Tell for each row whether its target is among the `k` best predicted.

    Args:
        predictions: Shape ``[batch, classes]``, a floating dtype.
        targets: Shape ``[batch]``, int32 or int64: the right class of each row.
        k: How many may be better or equal, a scalar of the dtype of `targets`.
        name: Name of the operation.

    Returns:
        Shape ``[batch]``, bool. Classes that tie with the target at the boundary count as in the top; a target
        out of range or with a prediction that is not finite does not.

    Examples:
        >>> predictions = [[0.1, 0.7, 0.2], [0.6, 0.3, 0.1]]
        >>> session.run(tf.nn.in_top_k(predictions, [2, 2], k=2))
        array([ True, False])
    """
    with get_default_graph().name_scope(name or "in_top_k"):
        return add_op(IN_TOP_K, predictions, targets, k)


def _in_top_k_kernel(ctx: KernelContext, predictions: Array, targets: Array, k: Array) -> Array:
    xp = ctx.xp
    if predictions.ndim != 2 or targets.shape != predictions.shape[:1]:
        raise InvalidArgumentError(
            f"predictions of shape {predictions.shape} and targets of shape {targets.shape} do not go together: "
            "expected [batch, classes] and [batch]"
        )
    classes = predictions.shape[1]
    if classes == 0:
        return xp.zeros(targets.shape, np.bool_)
    inside = (targets >= 0) & (targets < classes)
    scores = predictions[xp.arange(len(targets)), xp.where(inside, targets, 0)]
    better = (predictions > scores[:, None]).sum(axis=1)
    return inside & xp.isfinite(scores) & (better < k)


def _in_top_k_shape(op: Operation) -> list[TensorShape]:
    predictions, targets = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(1)
    op.inputs[2].shape.assert_has_rank(0)
    return [predictions[:1].merge_with(targets)]


IN_TOP_K = register(
    OpDef(
        name="InTopKV2",
        inputs=("predictions: T", "targets: Tindices", "k: Tindices"),
        outputs=("precision: bool",),
        types={"T": dtypes.FLOATS, "Tindices": dtypes.INDICES},
        shape=_in_top_k_shape,
        kernels=on_every_device(_in_top_k_kernel),
    )
)


# -- how often -----------------------------------------------------------------------------------------


@none_is_default
def bincount(
    arr: TensorLike,
    weights: TensorLike | None = None,
    minlength: TensorLike | None = None,
    maxlength: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Count how often each number occurs, or sum the weights with which it does.

    Args:
        arr: Numbers from 0, any shape, an integer dtype.
        weights: What each occurrence counts for, the shape of `arr`; 1 when None.
        minlength: Least length of the result, an integer scalar.
        maxlength: Greatest length of the result, an integer scalar: numbers from there on are not counted.
        dtype: Dtype of the counts when there are no weights.
        name: Name of the operation.

    Returns:
        Shape ``[largest number + 1]``, within the lengths given; the dtype of the weights, or `dtype`.

    Raises:
        InvalidArgumentError: When run, a number is negative.
    """
    arr = cast(arr, dtypes.int32)
    length = multiply(cast(not_equal(size(arr), 0), dtypes.int32), add(maximum(reduce_max(arr), -1), 1))
    if minlength is not None:
        length = maximum(cast(_integer("minlength", minlength), dtypes.int32), length)
    if maxlength is not None:
        limit = cast(_integer("maxlength", maxlength), dtypes.int32)
        known = constant_value(limit)
        if known is not None and (known < 0).any():
            raise InvalidArgumentError(f"bincount: maxlength is {known}, expected at least 0")
        length = minimum(limit, length)
    if weights is None:
        return add_op(BINCOUNT, arr, length, convert_to_tensor(np.zeros(0, as_dtype(dtype).numpy)), name=name)
    return add_op(BINCOUNT, arr, length, weights, name=name)


def _integer(what: str, value: TensorLike) -> Tensor:
    number = index_tensor(value)
    if not number.dtype.is_integer:
        raise ArgumentError(f"bincount: {what} is {value!r}, expected an integer")
    return number


def _bincount_kernel(ctx: KernelContext, arr: Array, length: Array, weights: Array) -> Array:
    bins = host_int(ctx, length)
    numbers = arr.reshape(-1)
    if weights.size not in (0, numbers.size):
        raise InvalidArgumentError(f"{weights.size} weights for {numbers.size} numbers")
    kept = numbers < bins
    heavy = weights.reshape(-1)[kept].astype(np.float64) if weights.size else None
    try:
        counts = ctx.xp.bincount(numbers[kept], heavy, minlength=bins)
    except ValueError as error:  # NumPy and CuPy look for negative numbers themselves
        least = int(numbers.min()) if numbers.size else 0
        if least >= 0:
            raise
        which = "NaN (cast to an integer)" if least == np.iinfo(np.int32).min else least
        raise InvalidArgumentError(f"Input arr must be non-negative! Found {which}") from error
    return counts[:bins].astype(weights.dtype)


def _bincount_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    length = constant_value(op.inputs[1])
    return [TensorShape([None if length is None else int(length)])]


BINCOUNT = register(
    OpDef(
        name="Bincount",
        inputs=("arr: int32", "size: int32", "weights: T"),
        outputs=("bins: T",),
        host_inputs=("size",),
        types={"T": (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)},
        shape=_bincount_shape,
        kernels=on_every_device(_bincount_kernel),
    )
)
