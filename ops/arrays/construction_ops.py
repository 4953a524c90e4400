"""Tensors made of numbers: ranges, one-hot codes, masks of lengths, grids and identity matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor, is_rank0_number, make_array
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    KernelContext,
    OpDef,
    not_differentiable,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.tensor_shape import UNKNOWN, TensorShape, broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import broadcast_to
from tfray.ops.arrays.gather_ops import first_outside, position_tensor
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.shape_ops import cast, host_int, index_tensor, known_entries, reshape
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.shape_ops import size as size_of
from tfray.ops.arrays.slice_ops import empty_or
from tfray.ops.kernels.batch_rules import Value, by_row
from tfray.ops.kernels.copies import fill as fill_array

# -- range and linspace --------------------------------------------------------------------------------


def range_(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = "range",
) -> Tensor:
    """Count from `start`, by `delta`, up to but without `limit`. Public as ``tf.range``.

    Args:
        start: Scalar; the limit, when `limit` is None, and the range then starts at 0.
        limit: Scalar.
        delta: Scalar, not 0; may be negative.
        dtype: Dtype of the result; the widest of the arguments' when None.
        name: Name of the operation.

    Returns:
        Vector of ``ceil((limit - start) / delta)`` numbers.

    Examples:
        >>> session.run(tf.range(2, 10, 3))
        array([2, 5, 8], dtype=int32)
    """
    if limit is None:
        start, limit = 0, start
    bounds = [value if is_rank0_number(value) else convert_to_tensor(value) for value in (start, limit, delta)]
    wanted = _widest(bounds) if dtype is None else as_dtype(dtype)
    return add_op(RANGE, *(_as_number(bound, wanted) for bound in bounds), name=name)


_WIDENING = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def _widest(bounds: list[TensorLike]) -> DType:
    found = [value.dtype if isinstance(value, Tensor) else as_dtype(make_array(value).dtype) for value in bounds]
    unusual = [dtype for dtype in found if dtype not in _WIDENING]
    return unusual[0] if unusual else max(found, key=_WIDENING.index)


def _as_number(value: TensorLike, dtype: DType) -> Tensor:
    return cast(value, dtype) if isinstance(value, Tensor) else convert_to_tensor(value, dtype)


def _range_kernel(ctx: KernelContext, start: Array, limit: Array, delta: Array) -> Array:
    first, last, step = (ctx.to_host(bound).item() for bound in (start, limit, delta))
    count = _range_size(first, last, step)
    dtype = ctx.output_dtype()
    if dtype.kind in "iu":
        return ctx.xp.arange(first, first + count * step, step, dtype=dtype)
    return (ctx.xp.arange(count) * step + first).astype(dtype)


def _range_size(start: float, limit: float, delta: float) -> int:
    if delta == 0:
        raise InvalidArgumentError("range: Requires delta != 0: delta is 0")
    if not math.isfinite(limit - start):
        raise InvalidArgumentError(f"range: cannot count from {start} to {limit}")
    if (limit - start) * delta < 0:
        raise InvalidArgumentError(f"range: steps of {delta} do not lead from {start} to {limit}")
    exact = all(isinstance(bound, int) for bound in (start, limit, delta))
    return max(0, int(-((start - limit) // delta)) if exact else math.ceil((limit - start) / delta))


def _range_shape(op: Operation) -> list[TensorShape]:
    bounds: list[Any] = []
    for tensor in op.inputs:
        tensor.shape.assert_has_rank(0)
        if tensor.dtype.is_integer:
            bounds.append((known_entries(tensor) or [None])[0])
        else:
            value = constant_value(tensor)
            bounds.append(None if value is None else value.item())
    return [TensorShape([None if None in bounds else _range_size(*bounds)])]


RANGE = register(
    OpDef(
        name="Range",
        inputs=("start: Tidx", "limit: Tidx", "delta: Tidx"),
        outputs=("output: Tidx",),
        host_inputs=("start", "limit", "delta"),
        types={"Tidx": dtypes.REAL},
        shape=_range_shape,
        kernels=on_every_device(_range_kernel),
        gradient=not_differentiable,
    )
)


def linspace(start: TensorLike, stop: TensorLike, num: TensorLike, name: str | None = None) -> Tensor:
    """Make `num` values at equal distances from `start` to `stop`, both included.

    Args:
        start: A real dtype, any shape; integers are taken as float64.
        stop: That dtype, a shape that broadcasts with that of `start`.
        num: Scalar integer, at least 0.
        name: Name of the operation.

    Returns:
        ``[num, ...]``: a vector for scalars, else the common shape of `start` and `stop` behind `num`.

    Examples:
        >>> session.run(tf.linspace(0.0, 1.0, 5))
        array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    with get_default_graph().name_scope(name or "LinSpace") as name:
        start = convert_to_tensor(start, name="start")
        stop = convert_to_tensor(stop, start.dtype, name="stop")
        if start.dtype.is_integer:
            start, stop = cast(start, dtypes.float64), cast(stop, dtypes.float64)
        num = index_tensor(num, name="num")
        num.shape.assert_has_rank(0)
        return add_op(LIN_SPACE, start, stop, num, name=name)


lin_space = linspace


def _lin_space_kernel(ctx: KernelContext, start: Array, stop: Array, num: Array) -> Array:
    count = host_int(ctx, num)
    if count < 0:
        raise InvalidArgumentError(f"linspace: num is {count}, expected at least 0")
    first, last = (np.asarray(ctx.to_host(end), np.float64) for end in (start, stop))
    return ctx.xp.array(np.linspace(first, last, count).astype(ctx.output_dtype()))


def _lin_space_shape(op: Operation) -> list[TensorShape]:
    ends = broadcast_shapes(op.inputs[0].shape, op.inputs[1].shape)
    count = (known_entries(op.inputs[2]) or [None])[0]
    if count is not None and count < 0:
        raise ValueError(f"linspace: num is {count}, expected at least 0")
    return [TensorShape([count]).concatenate(ends)]


LIN_SPACE = register(
    OpDef(
        name="LinSpace",
        inputs=("start: T", "stop: T", "num: Tidx"),
        outputs=("output: T",),
        host_inputs=("start", "stop", "num"),
        types={"T": dtypes.FLOATS, "Tidx": dtypes.INDICES},
        shape=_lin_space_shape,
        kernels=on_every_device(_lin_space_kernel),
        gradient=not_differentiable,
    )
)


# -- codes and masks -----------------------------------------------------------------------------------


def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Code each index as a vector with one element `on_value` and the others `off_value`.

    Args:
        indices: uint8, int32 or int64 of any shape. An index outside ``[0, depth)`` gives `off_value` everywhere.
        depth: Scalar integer: length of the vectors.
        on_value: Scalar; 1 (True for bool) when None.
        off_value: Scalar of the same dtype; 0 when None.
        axis: Where the new dimension stands in the result; the last when None.
        dtype: Dtype of the result; that of the values, or float32, when None.
        name: Name of the operation.

    Returns:
        Shape ``[..., depth]`` with the shape of `indices` before it, or with `depth` at `axis`.

    Examples:
        >>> session.run(tf.one_hot([0, 2], depth=3))
        array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    if dtype is None:
        given = [convert_to_tensor(value).dtype for value in (on_value, off_value) if value is not None]
        dtype = given[0] if given else dtypes.float32
        if len(set(given)) > 1:
            raise ArgumentError(f"one_hot: on_value is {given[0].name}, off_value {given[1].name}: give both one dtype")
    dtype = as_dtype(dtype)
    values = [
        convert_to_tensor(np.array(default, dtype.numpy) if value is None else value, dtype, what)
        for what, value, default in (("on_value", on_value, 1), ("off_value", off_value, 0))
    ]
    attrs = {"axis": -1 if axis is None else int(axis)}
    if isinstance(indices, (list, tuple)) and not indices:
        indices = convert_to_tensor(indices, dtypes.int64)  # a list of no numbers is one of integers here
    if isinstance(depth, Tensor):
        depth = cast(depth, dtypes.int32)
    return add_op(ONE_HOT, indices, depth, *values, name=name or "one_hot", **attrs)


def _one_hot_kernel(
    ctx: KernelContext, indices: Array, depth: Array, on_value: Array, off_value: Array, out: Array | None = None
) -> Array:
    xp, count, axis = ctx.xp, host_int(ctx, depth), ctx.attr("axis")
    place = axis if axis >= 0 else indices.ndim + 1 + axis
    codes = empty_or(ctx, out, (*indices.shape[:place], count, *indices.shape[place:]))
    fill_array(codes, off_value)
    before, after = math.prod(indices.shape[:place]), math.prod(indices.shape[place:])
    labels = indices.reshape(before, after)
    if xp is not np:
        hot = labels[:, None] == xp.arange(count)[:, None]
        xp.copyto(codes.reshape(before, count, after), on_value, where=hot)
        return codes
    if after == 1:
        places = np.arange(0, before * count, count)[:, None] + labels if count else labels
    else:
        places = labels * np.intp(after) + np.arange(after) + (np.arange(before) * (count * after))[:, None]
    if not labels.size or first_outside(labels, count) is None:
        codes.reshape(-1)[places] = on_value
    else:
        codes.reshape(-1)[places[(labels >= 0) & (labels < count)]] = on_value
    return codes


def _one_hot_shape(op: Operation) -> list[TensorShape]:
    for tensor in op.inputs[1:]:
        tensor.shape.assert_has_rank(0)
    if op.attr("axis") < -1:
        raise ValueError(f"axis is {op.attr('axis')}, expected at least -1")
    source, depth = op.inputs[0].shape, (known_entries(op.inputs[1]) or [None])[0]
    if depth is not None and depth < 0:
        raise ValueError(f"depth is {depth}, expected at least 0")
    if source.rank is None:
        return [UNKNOWN]
    sizes = list(source.sizes)
    sizes.insert(normalize_axis(op.attr("axis"), source.rank + 1), depth)
    return [TensorShape(sizes)]


def _one_hot_over_batch(op: Operation, inputs: Sequence[Value], count: Tensor) -> Sequence[Value] | None:
    return by_row(0)(op, inputs, count) if op.attrs["axis"] == -1 else None


ONE_HOT = register(
    OpDef(
        name="OneHot",
        inputs=("indices: TI", "depth: int32", "on_value: T", "off_value: T"),
        outputs=("output: T",),
        host_inputs=("depth",),
        types={"T": dtypes.VALUES, "TI": (dtypes.uint8, dtypes.int8, *dtypes.INDICES)},
        attrs=("axis",),
        shape=_one_hot_shape,
        kernels=on_every_device(out_kernel(_one_hot_kernel)),
        gradient=not_differentiable,
        over_batch=_one_hot_over_batch,
    )
)


@none_is_default
def sequence_mask(
    lengths: TensorLike,
    maxlen: TensorLike | None = None,
    dtype: DTypeLike = dtypes.bool_,
    name: str | None = "SequenceMask",
) -> Tensor:
    """Mark the first ``lengths[...]`` places of each row.

    Args:
        lengths: Numbers of any shape; fractions are cut off where `maxlen` is an integer.
        maxlen: Scalar: length of the rows, rounded up; the largest of `lengths` when None.
        dtype: Dtype of the result: marks are True or 1.
        name: Name of the operation.

    Returns:
        Shape ``lengths.shape + [maxlen]``.

    Examples:
        >>> session.run(tf.sequence_mask([1, 3]))
        array([[ True, False, False],
               [ True,  True,  True]])
    """
    longest = index_tensor(_LONGEST if maxlen is None else maxlen)
    longest.shape.assert_has_rank(0)
    lengths = position_tensor(lengths)
    if maxlen is not None and (longest.dtype.is_floating or not lengths.dtype.is_integer):
        lengths = cast(lengths, longest.dtype)
    return add_op(SEQUENCE_MASK, lengths, longest, name=name, dtype=as_dtype(dtype))


_LONGEST = -(2**31)  # no other negative number is a length


def _sequence_mask_kernel(ctx: KernelContext, lengths: Array, maxlen: Array) -> Array:
    longest = _whole_length(ctx.to_host(maxlen))
    if longest == _LONGEST:
        longest = max(_whole_length(ctx.to_host(lengths.max())), 0) if lengths.size else 0
    if longest < 0:
        raise InvalidArgumentError(f"{ctx.op_name}: maxlen is {longest}, expected at least 0")
    marks = ctx.xp.arange(longest) < lengths[..., None]
    return marks.astype(ctx.output_dtype(), copy=False)


def _whole_length(maxlen: Array) -> int:
    if not np.isfinite(maxlen):
        raise InvalidArgumentError(f"sequence_mask: maxlen is {maxlen}, expected a length")
    return math.floor(maxlen) if maxlen < 0 else math.ceil(maxlen)


def _sequence_mask_shape(op: Operation) -> list[TensorShape]:
    maxlen = op.inputs[1]
    known = None if maxlen.dtype.is_integer else constant_value(maxlen)
    longest = (known_entries(maxlen) or [None])[0] if known is None else _whole_length(known)
    if longest == _LONGEST:
        lengths = constant_value(op.inputs[0])
        longest = None if lengths is None else max(_whole_length(lengths.max(initial=0)), 0)
    if longest is not None and longest < 0:
        raise ValueError(f"maxlen is {longest}, expected at least 0")
    return [op.inputs[0].shape.concatenate([longest])]


SEQUENCE_MASK = register(
    OpDef(
        name="SequenceMask",
        inputs=("lengths: Tlen", "maxlen: Tmax"),
        outputs=("mask: dtype",),
        host_inputs=("maxlen",),
        types={
            "Tlen": dtypes.REAL,
            "Tmax": (*dtypes.INDICES, *dtypes.FLOATS),
            "dtype": (*dtypes.NUMERIC, dtypes.bool_),
        },
        shape=_sequence_mask_shape,
        kernels=on_every_device(_sequence_mask_kernel),
    )
)


# -- grids and matrices --------------------------------------------------------------------------------


def meshgrid(*args: TensorLike, indexing: str = "xy", name: str | None = "meshgrid") -> list[Tensor]:
    """Repeat vectors over a grid: one tensor per vector, all of the grid's shape.

    Args:
        *args: Vectors of one dtype, else a TypeError is raised.
        indexing: ``"ij"``: dimension ``i`` of the grid belongs to vector ``i``; ``"xy"``: the first two are swapped.
        name: Name scope of the operations.

    Examples:
        >>> session.run(tf.meshgrid([1, 2, 3], [10, 20]))
        [array([[1, 2, 3],
               [1, 2, 3]], dtype=int32), array([[10, 10, 10],
               [20, 20, 20]], dtype=int32)]
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"indexing is {indexing!r}, expected 'xy' or 'ij'")
    with get_default_graph().name_scope(name):
        vectors = [reshape(arg, [-1]) for arg in args]
        if len({vector.dtype for vector in vectors}) > 1:
            raise TypeError(f"meshgrid: vectors of one dtype are needed, not {[each.dtype.name for each in vectors]}")
        order = list(range(len(vectors)))
        if indexing == "xy" and len(vectors) > 1:
            order[:2] = [1, 0]
        if not vectors:
            return []
        sizes = stack([size_of(vectors[i]) for i in order])
        return [
            broadcast_to(reshape(vector, [-1 if axis == i else 1 for axis in order]), sizes)
            for i, vector in enumerate(vectors)
        ]


def eye(
    num_rows: TensorLike,
    num_columns: TensorLike | None = None,
    batch_shape: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = "eye",
) -> Tensor:
    """Make an identity matrix, or a batch of them.

    Args:
        num_rows: Scalar integer.
        num_columns: Scalar integer; `num_rows` when None.
        batch_shape: Integer vector: leading dimensions of the result.
        dtype: Dtype of the result.
        name: Name scope of the operations.

    Returns:
        Shape ``batch_shape + [num_rows, num_columns]``.

    Examples:
        >>> session.run(tf.eye(2))
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    dtype = as_dtype(dtype)
    with get_default_graph().name_scope(name):
        columns = num_rows if num_columns is None else num_columns
        matrix = one_hot(range_(num_rows), columns, dtype=dtype)
        if batch_shape is None:
            return matrix
        leading = index_tensor(batch_shape)
        if leading.shape.rank == 0:
            raise ArgumentError(f"eye: batch_shape is {batch_shape!r}, expected a vector of integers")
        return broadcast_to(matrix, concat([leading, shape_of(matrix)], 0))
