"""Tensors put together and taken apart: stack and unstack, concat and split."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, contains_tensor, convert_to_tensor, is_plain
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register, register_late
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.shape_ops import cast, host_ints, identity, index_tensor, known_entries, reshape
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.slice_ops import empty_or, getitem
from tfray.ops.kernels import batch_rules
from tfray.ops.kernels.copies import joined


def int32_tensor(value: TensorLike) -> Tensor:
    """Sizes or counts as an int32 tensor of their shape. Raises `ArgumentError` if they are no integers."""
    tensor = index_tensor(value)
    if not tensor.dtype.is_integer:
        raise ArgumentError(f"{value!r} is {tensor.dtype.name}, expected integers")
    return cast(tensor, dtypes.int32)


def late_index(value: TensorLike, rank: int, what: str) -> Any:
    """An axis, or axes, as the attribute `OpDef.late`: numbers where the graph determines them, else a tensor.

    Args:
        value: An integer scalar, or a vector.
        rank: The rank that it must have: 0 for an integer, 1 for a list of them.
        what: How errors call it.

    Raises:
        ArgumentError: It holds no integers.
        InvalidArgumentError: It has another rank.
    """
    if type(value) is int and rank == 0:
        return value
    known: Any = value
    if isinstance(value, Tensor) or not is_plain(value):
        value = index_tensor(value)
        known = constant_value(value)
        if value.dtype not in dtypes.INDICES:
            raise ArgumentError(f"{what} must be integers, got {value!r}")
        if value.shape.rank is None:
            value = reshape(value, [-1] * rank)
        value.shape.assert_has_rank(rank)
        if known is None:
            return value
    known = np.asarray(known)
    if known.dtype.kind not in "iu" and known.size:
        raise ArgumentError(f"{what} must be integers, got {value!r}")
    if known.ndim != rank:
        raise InvalidArgumentError(f"{what}: expected {'a vector' if rank else 'an integer'}, got {value!r}")
    return [int(entry) for entry in known] if rank else int(known)


def _zeros_for_none(gradients: Sequence[Tensor | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    return [zeros_like(tensor) if d is None else d for d, tensor in zip(gradients, tensors, strict=True)]


# -- stack and unstack ---------------------------------------------------------------------------------


def stack(values: TensorLike, axis: int = 0, name: str | None = "stack") -> Tensor:
    """Put tensors of one shape side by side along a new dimension.

    Args:
        values: List of tensors of the same shape and dtype.
        axis: Where the new dimension stands in the result; negative counts from its end.
        name: Name of the operation.

    Returns:
        Shape ``[..., len(values), ...]``.

    Examples:
        >>> session.run(tf.stack([[1, 2], [3, 4]]))
        array([[1, 2],
               [3, 4]], dtype=int32)
        >>> session.run(tf.stack([[1, 2], [3, 4]], axis=1))
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    if axis == 0 and (isinstance(values, Tensor) or is_plain(values)):
        return convert_to_tensor(values, name=name)
    if axis == 0 and not contains_tensor(values):
        return convert_to_tensor(values, name=name)  # numbers of several kinds, such as [1, 2.5], become one constant
    return add_op(PACK, values, name=name, axis=int(axis))


def parallel_stack(values: TensorLike, name: str | None = "parallel_stack") -> Tensor:
    """`stack` along dimension 0: the result has the shape ``[len(values), ...]``.

    Raises:
        TypeError: `values` is a number, and not a list.
        InvalidArgumentError: `values` is empty.
    """
    if isinstance(values, Tensor) and (values.shape.rank == 0 or values.shape.num_elements() == 0):
        raise ArgumentError(f"parallel_stack: values is {values!r}, expected a list of tensors")
    if isinstance(values, (list, tuple)) and not values:
        raise InvalidArgumentError("parallel_stack: values is empty, expected a list of one tensor or more")
    stacked = stack(list(values) if isinstance(values, str) else values, 0, name)
    if stacked.shape.rank == 0:
        raise TypeError(f"parallel_stack: values is {values!r}, expected a list of tensors")
    return stacked


def _pack_kernel(ctx: KernelContext, *values: Array, out: Array | None = None) -> Array:
    if not hasattr(values[0], "ndim"):  # variants are no arrays while they are scalars
        vector = empty_or(ctx, out, [len(values)])
        for i, value in enumerate(values):
            vector[i] = value
        return vector
    axis, rank = ctx.attr("axis"), values[0].ndim
    if len({value.shape for value in values}) > 1:
        shapes = ", ".join(str(value.shape) for value in values)
        raise InvalidArgumentError(f"Shapes of all inputs must match: cannot stack shapes {shapes}")
    if rank == 0:
        vector = empty_or(ctx, out, [len(values)])
        if vector.dtype == object:
            values = tuple(value.item() for value in values)
        for i, value in enumerate(values):  # a third of the time of xp.stack
            vector[i] = value
        return vector
    index = (slice(None),) * (axis if axis >= 0 else axis + rank + 1) + (None,)
    return joined(ctx.xp, [value[index] for value in values], len(index) - 1, out)


def _pack_shape(op: Operation) -> list[TensorShape]:
    if not op.inputs:
        raise ValueError("stack needs at least one tensor")
    shape = UNKNOWN
    for tensor in op.inputs:
        shape = shape.merge_with(tensor.shape)
    if shape.rank is None:
        return [UNKNOWN]
    sizes = list(shape.sizes)
    sizes.insert(normalize_axis(op.attr("axis"), shape.rank + 1), len(op.inputs))
    return [TensorShape(sizes)]


def _pack_value(op: Operation) -> list[int | None] | None:
    if any(tensor.shape.rank for tensor in op.inputs):
        return None  # not scalars; those of unknown rank must be, for the result to be a shape
    return [(known_entries(tensor) or [None])[0] for tensor in op.inputs]


def _pack_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [*unstack(d_output, len(op.inputs), op.attr("axis"))]


PACK = register(
    OpDef(
        name="Pack",
        inputs=("values: T*",),
        outputs=("output: T",),
        types={"T": (*dtypes.VALUES, dtypes.variant)},
        attrs=("axis",),
        shape=_pack_shape,
        kernels=on_every_device(out_kernel(_pack_kernel)),
        gradient=_pack_gradient,
        shape_value=_pack_value,
        over_batch=batch_rules.packed,
    )
)


def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str | None = "unstack") -> list[Tensor]:
    """Take a tensor apart along a dimension, which disappears.

    Args:
        value: Shape ``[..., num, ...]``, any dtype.
        num: Size of the dimension; may be None when the static shape tells it.
        axis: The dimension.
        name: Name of the operation.

    Returns:
        `num` tensors of shape ``[..., ...]``, without the dimension.

    Examples:
        >>> session.run(tf.unstack([[1, 2], [3, 4]]))
        [array([1, 2], dtype=int32), array([3, 4], dtype=int32)]
    """
    value = convert_to_tensor(value)
    rank = value.shape.rank
    size = None if rank is None else value.shape.sizes[normalize_axis(axis, rank)]
    if num is None:
        num = size
        if num is None:
            raise InvalidArgumentError(f"Cannot infer num from shape {value.shape}: unstack needs it for {value!r}")
    if value.shape.rank == 1 and value.dtype in dtypes.INDICES:
        entries = known_entries(value)
        if entries is not None and any(entry is not None for entry in entries) and len(entries) == num:
            return [getitem(value, i) for i in range(num)]  # which makes constants of known sizes
    return add_op(UNPACK, value, name=name, num=int(num), axis=int(axis))


def _unpack_kernel(ctx: KernelContext, value: Array) -> list[Array]:
    axis, num = ctx.attr("axis"), ctx.attr("num")
    if value.ndim == 0 or value.shape[axis] != num:
        raise InvalidArgumentError(f"cannot unstack dimension {axis} of shape {value.shape} into {num} tensors")
    if value.dtype == object and value.ndim == 1:
        return [np.array(item, dtype=object) if isinstance(item, (bytes, str)) else item for item in value]
    index = (slice(None),) * (axis % value.ndim)
    return [value[(*index, i)] for i in range(num)]


def _unpack_shape(op: Operation) -> list[TensorShape]:
    shape, num = op.inputs[0].shape, op.attr("num")
    if shape.rank is None:
        return [UNKNOWN] * num
    sizes = list(shape.sizes)
    size = sizes.pop(normalize_axis(op.attr("axis"), shape.rank))
    if size not in (None, num):
        raise ValueError(f"cannot unstack a dimension of size {size} into {num} tensors")
    return [TensorShape(sizes)] * num


def _unpack_gradient(op: Operation, *d_outputs: Tensor | None) -> list[Tensor | None]:
    return [stack(_zeros_for_none(d_outputs, op.outputs), op.attr("axis"))]


UNPACK = register(
    OpDef(
        name="Unpack",
        inputs=("value: T",),
        outputs=("output: T*num",),
        types={"T": (*dtypes.VALUES, dtypes.variant)},
        attrs=("num", "axis"),
        shape=_unpack_shape,
        kernels=on_every_device(_unpack_kernel),
        gradient=_unpack_gradient,
    )
)


# -- concat and split ----------------------------------------------------------------------------------


def concat(values: TensorLike, axis: TensorLike, name: str | None = "concat") -> Tensor:
    """Join tensors along an existing dimension.

    Args:
        values: List of tensors whose shapes agree in every other dimension, all of one dtype.
        axis: The dimension, an integer scalar; negative counts from the end.
        name: Name of the operation.

    Returns:
        The shape of the first, with the sum of the sizes along `axis`.

    Examples:
        >>> session.run(tf.concat([[[1, 2]], [[3, 4], [5, 6]]], axis=0))
        array([[1, 2],
               [3, 4],
               [5, 6]], dtype=int32)
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    axis = late_index(axis, 0, "concat: axis")
    if len(values) == 1:
        name = name or "concat"
        with get_default_graph().name_scope(name):  # TensorFlow's name for it: "concat/concat"
            return identity(values[0], name)
    return add_op(CONCAT, values, name=name, axis=axis)


def _concat_kernel(ctx: KernelContext, *values: Array, out: Array | None = None) -> Array:
    try:
        return joined(ctx.xp, values, ctx.attr("axis"), out)
    except ValueError as error:
        shapes = [f"[{','.join(map(str, value.shape))}]" for value in values]
        index, other = next((each for each in enumerate(shapes) if each[1] != shapes[0]), (0, shapes[0]))
        have_ranks = len({value.ndim for value in values}) == 1
        what = "Dimensions of inputs" if have_ranks else "Ranks of all input tensors"
        raise InvalidArgumentError(
            f"cannot concatenate along axis {ctx.attr('axis')}: {what} should match: shape[0] = {shapes[0]} vs. "
            f"shape[{index}] = {other}"
        ) from error


def _concat_shape(op: Operation) -> list[TensorShape]:
    rank = next((tensor.shape.rank for tensor in op.inputs if tensor.shape.rank is not None), None)
    if rank is None:
        return [UNKNOWN]
    if rank == 0:
        raise ValueError("scalars cannot be concatenated: tf.stack makes a vector of them")
    axis = normalize_axis(op.attr("axis"), rank)
    common = TensorShape([None] * rank)
    joined: int | None = 0
    for tensor in op.inputs:
        sizes = list(tensor.shape.with_rank(rank).sizes)
        size = sizes[axis]
        joined = None if joined is None or size is None else joined + size
        sizes[axis] = None
        common = common.merge_with(sizes)
    return [TensorShape([joined if i == axis else size for i, size in enumerate(common.sizes)])]


def _concat_value(op: Operation) -> list[int | None] | None:
    parts = [known_entries(tensor) if tensor.shape.rank in (None, 1) else None for tensor in op.inputs]
    if any(part is None for part in parts):
        return None
    return list(itertools.chain.from_iterable(part or [] for part in parts))


def _concat_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    axis = op.attr("axis")
    sizes = [size_along(tensor, axis) for tensor in op.inputs]
    parts = split(d_output, sizes, axis, num=len(sizes))
    for part, tensor in zip(parts, op.inputs, strict=True):
        part.set_shape(tensor.shape)
    return [*parts]


def size_along(tensor: Tensor, axis: int | Tensor) -> Any:
    """Size of a dimension: an integer where the static shape tells it, else a scalar tensor."""
    if not isinstance(axis, Tensor) and tensor.shape.rank is not None and tensor.shape.sizes[axis] is not None:
        return tensor.shape.sizes[axis]
    return getitem(shape_of(tensor), axis)


CONCAT = register_late(
    OpDef(
        name="ConcatV2",
        inputs=("values: T*",),
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        attrs=("axis",),
        late="axis",
        shape=_concat_shape,
        kernels=on_every_device(out_kernel(_concat_kernel)),
        gradient=_concat_gradient,
        shape_value=_concat_value,
        over_batch=batch_rules.packed,
    )
)


def split(
    value: TensorLike,
    num_or_size_splits: TensorLike,
    axis: TensorLike = 0,
    num: int | None = None,
    name: str | None = "split",
) -> list[Tensor]:
    """Take a tensor apart along a dimension, which stays.

    Args:
        value: Any shape with at least one dimension, any dtype.
        num_or_size_splits: Number of equal parts; or an integer vector of sizes, of which one may be -1.
        axis: The dimension, an integer scalar.
        num: Number of parts, where the length of the vector of sizes is not known.
        name: Name of the operation.

    Returns:
        The parts, in order: the shape of `value` but for the size of the dimension.

    Raises:
        InvalidArgumentError: The sizes do not sum up to the size of the dimension.

    Examples:
        >>> session.run(tf.split([1, 2, 3, 4], 2))
        [array([1, 2], dtype=int32), array([3, 4], dtype=int32)]
        >>> session.run(tf.split([1, 2, 3, 4], [1, 3]))
        [array([1], dtype=int32), array([2, 3, 4], dtype=int32)]
    """
    axis = late_index(axis, 0, "split: axis")
    sizes = index_tensor(num_or_size_splits)
    if sizes.shape.rank == 0:
        parts = constant_value(sizes)
        if parts is None:
            raise InvalidArgumentError("split: the number of parts must be known when the graph is built")
        return add_op(SPLIT, value, name=name, num_split=int(parts), axis=axis)
    count = sizes.shape.num_elements() if num is None else num
    if count is None:
        raise InvalidArgumentError("split: num is needed, for the length of the vector of sizes is not known")
    return add_op(SPLIT_V, value, sizes, name=name, num_split=count, axis=axis)


def _split_kernel(ctx: KernelContext, value: Array) -> list[Array]:
    axis, num = normalize_axis(ctx.attr("axis"), value.ndim), ctx.attr("num_split")
    if value.shape[axis] % num:
        raise InvalidArgumentError(
            f"Number of ways to split should evenly divide the split dimension: cannot split dimension {axis} of shape "
            f"{value.shape} into {num} equal parts"
        )
    return _parts(value, [value.shape[axis] // num] * num, axis)


def _parts(value: Array, sizes: Sequence[int], axis: int) -> list[Array]:
    whole = (slice(None),) * axis
    ends = list(itertools.accumulate(sizes))
    return [value[(*whole, slice(end - size, end))] for size, end in zip(sizes, ends, strict=True)]


def _split_shape(op: Operation) -> list[TensorShape]:
    shape, num = op.inputs[0].shape, op.attr("num_split")
    if num < 1:
        raise ValueError(f"cannot split into {num} parts")
    if shape.rank is None:
        return [UNKNOWN] * num
    axis = normalize_axis(op.attr("axis"), shape.rank)
    size = shape.sizes[axis]
    if size is not None and size % num:
        raise ValueError(f"a dimension of size {size} cannot be split into {num} equal parts")
    return [_with_size(shape, axis, None if size is None else size // num)] * num


def _with_size(shape: TensorShape, axis: int, size: int | None) -> TensorShape:
    return TensorShape([size if i == axis else other for i, other in enumerate(shape.sizes)])


def _split_gradient(op: Operation, *d_outputs: Tensor | None) -> list[Tensor | None]:
    d_value = concat(_zeros_for_none(d_outputs, op.outputs), op.attr("axis"))
    return [d_value, *[None] * (len(op.inputs) - 1)]


SPLIT = register_late(
    OpDef(
        name="Split",
        inputs=("value: T",),
        outputs=("output: T*num_split",),
        types={"T": dtypes.VALUES},
        attrs=("num_split", "axis"),
        late="axis",
        shape=_split_shape,
        kernels=on_every_device(_split_kernel),
        gradient=_split_gradient,
    )
)


def _split_v_kernel(ctx: KernelContext, value: Array, size_splits: Array) -> list[Array]:
    axis, sizes = normalize_axis(ctx.attr("axis"), value.ndim), host_ints(ctx, size_splits)
    whole = value.shape[axis]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = whole - sum(sizes) - 1
    if sum(sizes) != whole or min(sizes, default=0) < 0 or len(sizes) != ctx.attr("num_split"):
        raise InvalidArgumentError(
            f"cannot split dimension {axis} of shape {value.shape} into {ctx.attr('num_split')} parts "
            f"of sizes {host_ints(ctx, size_splits)}"
        )
    return _parts(value, sizes, axis)


def _split_v_shape(op: Operation) -> list[TensorShape]:
    shape, num = op.inputs[0].shape, op.attr("num_split")
    op.inputs[1].shape.assert_is_compatible_with([num])
    if shape.rank is None:
        return [UNKNOWN] * num
    axis = normalize_axis(op.attr("axis"), shape.rank)
    whole, sizes = shape.sizes[axis], known_entries(op.inputs[1]) or [None] * num
    if sizes.count(-1) == 1:
        known = [size for size in sizes if size is not None and size != -1]
        rest = whole - sum(known) if whole is not None and len(known) == num - 1 else None
        sizes = [rest if size == -1 else size for size in sizes]
    if any(size is not None and size < 0 for size in sizes):
        raise ValueError(f"a dimension of size {whole} cannot be split into sizes {sizes}")
    total = sum(size for size in sizes if size is not None)
    if whole is not None and (total > whole or (None not in sizes and total != whole)):
        raise ValueError(f"a dimension of size {whole} cannot be split into sizes {sizes}")
    return [_with_size(shape, axis, size) for size in sizes]


SPLIT_V = register_late(
    OpDef(
        name="SplitV",
        inputs=("value: T", "size_splits: Tlen"),
        outputs=("output: T*num_split",),
        host_inputs=("size_splits",),
        types={"T": dtypes.VALUES, "Tlen": dtypes.INDICES},
        attrs=("num_split", "axis"),
        late="axis",
        shape=_split_v_shape,
        kernels=on_every_device(_split_v_kernel),
        gradient=_split_gradient,
    )
)
