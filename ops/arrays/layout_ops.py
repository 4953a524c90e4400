"""Elements repeated, framed, turned around and moved along: tile, pad, reverse, roll."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name, whole_part
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register, register_late
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import accumulator_dtype
from tfray.ops.arrays.join_ops import late_index
from tfray.ops.arrays.shape_ops import (
    host_ints,
    index_tensor,
    known_entries,
    reshape,
    sizes_from_input,
)
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.slice_ops import empty_or, getitem, slice_
from tfray.ops.kernels.copies import copy, mirrored

# -- tile ----------------------------------------------------------------------------------------------


def tile(input: TensorLike, multiples: TensorLike, name: str | None = None) -> Tensor:
    """Repeat a tensor along each of its dimensions.

    Args:
        input: Shape ``[n_0, ...]``, any dtype.
        multiples: Integer vector with one entry per dimension.
        name: Name of the operation.

    Returns:
        Shape ``[n_0 * multiples[0], ...]``.

    Examples:
        >>> session.run(tf.tile([[1, 2]], [2, 3]))
        array([[1, 2, 1, 2, 1, 2],
               [1, 2, 1, 2, 1, 2]], dtype=int32)
    """
    return add_op(TILE, input, index_tensor(multiples), name=name)


def _interleaved(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(itertools.chain.from_iterable(zip(first, second, strict=True)))


def _tile_kernel(ctx: KernelContext, input: Array, multiples: Array, out: Array | None = None) -> Array:
    repeats = host_ints(ctx, multiples)
    for axis, count in enumerate(repeats):
        if count < 0:
            raise InvalidArgumentError(f"tile: Expected multiples[{axis}] >= 0, but got {count}")
    if len(repeats) != input.ndim:
        raise InvalidArgumentError(
            f"tile: Expected multiples argument to be a vector of length {input.ndim} but got length {len(repeats)}: "
            f"multiples {repeats} do not fit shape {input.shape}"
        )
    tiled = empty_or(ctx, out, [n * size for n, size in zip(repeats, input.shape, strict=True)])
    blocks = tiled.reshape(_interleaved(repeats, input.shape))
    block = input.reshape(_interleaved((1,) * input.ndim, input.shape))
    if ctx.xp is np:
        copy(blocks, block)
    else:
        blocks[...] = block
    return tiled


def _tile_shape(op: Operation) -> list[TensorShape]:
    source, repeats = op.inputs[0].shape, known_entries(op.inputs[1])
    op.inputs[1].shape.assert_is_compatible_with([source.rank])
    if source.rank is None:
        return [UNKNOWN if repeats is None else TensorShape([None] * len(repeats))]
    if repeats is None:
        return [TensorShape([None] * source.rank)]
    for axis, count in enumerate(repeats):
        if count is not None and count < -1:
            raise ValueError(f"Expected multiples[{axis}] >= 0, but got {count}")
    # -1 stands for an unknown number, as in other shapes; when the operation runs it is refused.
    pairs = zip(source.sizes, repeats, strict=True)
    return [TensorShape([None if size is None or n in (None, -1) else size * n for size, n in pairs])]


def _tile_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    d_input = add_op(TILE_GRAD, d_output, op.inputs[1], shape_of(op.inputs[0]))
    d_input.set_shape(op.inputs[0].shape)
    return [d_input, None]


TILE = register(
    OpDef(
        name="Tile",
        inputs=("input: T", "multiples: Tmultiples"),
        outputs=("output: T",),
        host_inputs=("multiples",),
        types={"T": dtypes.VALUES, "Tmultiples": dtypes.INDICES},
        shape=_tile_shape,
        kernels=on_every_device(out_kernel(_tile_kernel)),
        gradient=_tile_gradient,
    )
)


def _tile_grad_kernel(ctx: KernelContext, dy: Array, multiples: Array, shape: Array) -> Array:
    repeats, sizes = host_ints(ctx, multiples), host_ints(ctx, shape)
    blocks = dy.reshape(_interleaved(repeats, sizes))
    total = blocks.sum(axis=tuple(range(0, blocks.ndim, 2)), dtype=accumulator_dtype(dy.dtype))
    return total.astype(dy.dtype, copy=False)


def _tile_grad_shape(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 2)]


def _tile_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [tile(d_output, op.inputs[1]), None, None]


TILE_GRAD = register(
    OpDef(
        name="TileGrad",
        inputs=("dy: T", "multiples: Tmultiples", "shape: Tshape"),
        outputs=("output: T",),
        host_inputs=("multiples", "shape"),
        types={"T": dtypes.NUMERIC, "Tmultiples": dtypes.INDICES, "Tshape": dtypes.INDICES},
        shape=_tile_grad_shape,
        kernels=on_every_device(_tile_grad_kernel),
        gradient=_tile_grad_gradient,
    )
)


# -- pad -----------------------------------------------------------------------------------------------


def pad(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: TensorLike = 0,
) -> Tensor:
    """Put a frame around a tensor.

    Args:
        tensor: Shape ``[n_0, ...]``, any dtype.
        paddings: Integer matrix ``[rank, 2]``: how much to put before and after, in each dimension.
        mode: ``"CONSTANT"``; ``"REFLECT"`` mirrors at the border elements and does not repeat them;
            ``"SYMMETRIC"`` repeats them. Case does not matter.
        name: Name of the operation.
        constant_values: Scalar: what the frame is made of in mode ``CONSTANT``. No gradient flows to it.

    Returns:
        Shape ``[paddings[0, 0] + n_0 + paddings[0, 1], ...]``.

    Examples:
        >>> session.run(tf.pad([[1, 2]], [[0, 1], [1, 1]]))
        array([[0, 1, 2, 0],
               [0, 0, 0, 0]], dtype=int32)
    """
    tensor, paddings, mode = convert_to_tensor(tensor), index_tensor(paddings), mode.upper()
    if mode in ("REFLECT", "SYMMETRIC"):
        return add_op(MIRROR_PAD, tensor, paddings, name=name, mode=mode)
    if mode != "CONSTANT":
        raise InvalidArgumentError(f"pad: Unknown padding mode {mode!r}, expected CONSTANT, REFLECT or SYMMETRIC")
    is_default = not isinstance(constant_values, Tensor) and constant_values == 0
    if is_default:
        name = name or "Pad"  # TensorFlow has an operation of its own for zeros
    if tensor.dtype in (dtypes.bool_, dtypes.string) and is_default:
        constant_values = tensor.dtype is not dtypes.bool_ and b""
    return add_op(PAD, tensor, paddings, convert_to_tensor(constant_values, tensor.dtype), name=name)


def host_pairs(ctx: KernelContext, array: Array) -> list[tuple[int, int]]:
    """Rows of a small integer matrix of two columns, read on the host."""
    return [(first, last) for first, last in ctx.to_host(array).tolist()]


def _amounts(ctx: KernelContext, paddings: Array, shape: Sequence[int]) -> list[tuple[int, int]]:
    amounts = host_pairs(ctx, paddings)
    if len(amounts) != len(shape) or any(min(pair) < 0 for pair in amounts):
        begin = "" if all(min(pair) >= 0 for pair in amounts) else "Paddings must be non-negative: "
        raise InvalidArgumentError(f"{begin}pad: paddings {amounts} do not fit shape {tuple(shape)}")
    return amounts


def _pad_kernel(
    ctx: KernelContext, input: Array, paddings: Array, constant_values: Array, out: Array | None = None
) -> Array:
    if constant_values.ndim:
        raise InvalidArgumentError(f"{ctx.op_name}: constant_values has shape {constant_values.shape}, not a scalar's")
    amounts = _amounts(ctx, paddings, input.shape)
    framed = empty_or(ctx, out, [sum(pair) + size for pair, size in zip(amounts, input.shape, strict=True)])
    inner = framed
    for axis, (before, after) in enumerate(amounts):  # each element of the frame is written once
        whole, size = (slice(None),) * axis, input.shape[axis]
        if before:
            inner[(*whole, slice(before))] = constant_values
        if after:
            inner[(*whole, slice(before + size, None))] = constant_values
        inner = inner[(*whole, slice(before, before + size))]
    if ctx.xp is np:
        copy(inner, input)
    else:
        inner[...] = input
    return framed


def _pad_shape(op: Operation) -> list[TensorShape]:
    source, paddings = op.inputs[0].shape, op.inputs[1]
    for constant in op.inputs[2:]:
        constant.shape.assert_has_rank(0)
    paddings.shape.assert_is_compatible_with([source.rank, 2])
    rows = _known_rows(paddings)
    if rows is None and paddings.shape.rank is not None and paddings.shape.sizes[0] is not None:
        rows = [[None, None]] * paddings.shape.sizes[0]
    if source.rank is None and rows is None:
        return [UNKNOWN]
    sizes: list[int | None] = [None] * len(rows or ()) if source.rank is None else list(source.sizes)
    rows = [[None, None]] * len(sizes) if rows is None else rows
    for axis, row in enumerate(rows):
        if any(amount is not None and amount < 0 for amount in row):
            raise ValueError(f"paddings {rows} must be non-negative")
        sizes[axis] = _total(sizes[axis], *row)
    return [TensorShape(sizes)]


def _total(*sizes: int | None) -> int | None:
    return None if None in sizes else sum(size or 0 for size in sizes)


def _known_rows(paddings: Tensor) -> list[list[int | None]] | None:
    """Rows of the matrix of paddings, also where some of its entries are computed."""
    value = constant_value(paddings)
    if value is not None:
        return value.tolist()
    if paddings.op.type == "Pack" and paddings.op.attr("axis") == 0:
        return [known_entries(row) or [None, None] for row in paddings.op.inputs]
    return None


def _pad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    d_input = slice_(d_output, getitem(op.inputs[1], (slice(None), 0)), shape_of(op.inputs[0]))
    d_input.set_shape(op.inputs[0].shape)
    return [d_input, None, None]


PAD = register(
    OpDef(
        name="PadV2",
        inputs=("input: T", "paddings: Tpaddings", "constant_values: T"),
        outputs=("output: T",),
        host_inputs=("paddings",),
        types={"T": dtypes.VALUES, "Tpaddings": dtypes.INDICES},
        shape=_pad_shape,
        kernels=on_every_device(out_kernel(_pad_kernel)),
        gradient=_pad_gradient,
    )
)


def _mirror_pad_kernel(ctx: KernelContext, input: Array, paddings: Array) -> Array:
    amounts, mode = _amounts(ctx, paddings, input.shape), ctx.attr("mode")
    for pair, size in zip(amounts, input.shape, strict=True):
        if max(pair) > size - (mode == "REFLECT"):
            raise InvalidArgumentError(f"pad: {max(pair)} elements cannot be mirrored from a dimension of size {size}")
    return ctx.xp.pad(input, amounts, mode=mode.lower())


def _mirror_pad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    d_input = add_op(MIRROR_PAD_GRAD, d_output, op.inputs[1], mode=op.attr("mode"))
    d_input.set_shape(op.inputs[0].shape)
    return [d_input, None]


MIRROR_PAD = register(
    OpDef(
        name="MirrorPad",
        inputs=("input: T", "paddings: Tpaddings"),
        outputs=("output: T",),
        host_inputs=("paddings",),
        types={"T": dtypes.VALUES, "Tpaddings": dtypes.INDICES},
        attrs=("mode",),
        shape=_pad_shape,
        kernels=on_every_device(_mirror_pad_kernel),
        gradient=_mirror_pad_gradient,
    )
)


def _mirror_pad_grad_kernel(ctx: KernelContext, dy: Array, paddings: Array) -> Array:
    total, skip = dy, int(ctx.attr("mode") == "REFLECT")
    for axis, (before, after) in enumerate(_amounts(ctx, paddings, dy.shape)):
        if before or after:
            total = _folded(ctx.xp.moveaxis(total, axis, 0), before, after, skip)
            total = ctx.xp.moveaxis(total, 0, axis)
    return total


def _folded(rows: Array, before: int, after: int, skip: int) -> Array:
    """The rows between the frame, with the mirrored rows of the frame added where they came from."""
    size = len(rows) - before - after
    inner = rows[before : before + size].copy()
    inner[skip : before + skip] += rows[:before][::-1]
    inner[size - skip - after : size - skip] += rows[before + size :][::-1]
    return inner


def _mirror_pad_grad_shape(op: Operation) -> list[TensorShape]:
    source, rows = op.inputs[0].shape, _known_rows(op.inputs[1])
    if source.rank is None or rows is None:
        return [UNKNOWN if source.rank is None else TensorShape([None] * source.rank)]
    pairs = zip(source.sizes, (_total(*row) for row in rows), strict=True)
    return [TensorShape([None if size is None or frame is None else size - frame for size, frame in pairs])]


def _mirror_pad_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [add_op(MIRROR_PAD, d_output, op.inputs[1], mode=op.attr("mode")), None]


MIRROR_PAD_GRAD = register(
    OpDef(
        name="MirrorPadGrad",
        inputs=("dy: T", "paddings: Tpaddings"),
        outputs=("output: T",),
        host_inputs=("paddings",),
        types={"T": dtypes.NUMERIC, "Tpaddings": dtypes.INDICES},
        attrs=("mode",),
        shape=_mirror_pad_grad_shape,
        kernels=on_every_device(_mirror_pad_grad_kernel),
        gradient=_mirror_pad_grad_gradient,
    )
)


# -- reverse -------------------------------------------------------------------------------------------


def reverse(tensor: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    """Turn dimensions around.

    Args:
        tensor: Any shape and dtype.
        axis: Vector (list) of dimensions.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.reverse([[1, 2], [3, 4]], axis=[1]))
        array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return add_op(REVERSE, tensor, name=name, axis=late_index(axis, 1, "reverse: axis"))


def _reverse_kernel(ctx: KernelContext, tensor: Array) -> Array:
    axes = {normalize_axis(axis, tensor.ndim) for axis in ctx.attr("axis")}
    if len(axes) < len(ctx.attr("axis")):
        raise InvalidArgumentError(_twice(ctx.attr("axis"), tensor.ndim))
    reversed_view = tensor[tuple(slice(None, None, -1 if i in axes else None) for i in range(tensor.ndim))]
    if ctx.xp is not np:
        return reversed_view
    if len(axes) == 1 and (copied := mirrored(tensor, *axes)) is not None:
        return copied
    if tensor.ndim - 2 not in axes or not 1 < tensor.shape[-1] <= _FEW_CHANNELS:
        return reversed_view
    # Pixels in reverse order: every loop over them would be as short as a pixel. Loops over one channel are long.
    pixels = np.empty(tensor.shape, tensor.dtype)
    for channel in range(tensor.shape[-1]):
        pixels[..., channel] = reversed_view[..., channel]
    return pixels


_FEW_CHANNELS: Final = 8
"""Up to so many elements behind a reversed axis, copying them one place after the other is faster than together."""


def _twice(axes: Sequence[int], rank: int) -> str:
    places = [normalize_axis(axis, rank) for axis in axes]
    wrong = next(place for place in places if places.count(place) > 1)
    return f"reverse: axis {wrong} specified more than once: {list(axes)}"


def _reverse_shape(op: Operation) -> list[TensorShape]:
    shape, axes = op.inputs[0].shape, op.attr("axis")
    if shape.rank is not None and len({normalize_axis(axis, shape.rank) for axis in axes}) < len(axes):
        raise ValueError(_twice(axes, shape.rank))
    return [shape]


def _reverse_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [reverse(d_output, op.attr("axis"))]


REVERSE = register_late(
    OpDef(
        name="ReverseV2",
        inputs=("tensor: T",),
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        attrs=("axis",),
        late="axis",
        shape=_reverse_shape,
        kernels=on_every_device(_reverse_kernel),
        gradient=_reverse_gradient,
    )
)


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Turn around the first ``seq_lengths[i]`` elements of each row of a batch; the others stay.

    Args:
        input: Shape ``[..., batch, ..., time, ...]``, any dtype.
        seq_lengths: int32 or int64, shape ``[batch]``, at most ``time``.
        seq_axis: The dimension of size ``time``.
        batch_axis: The dimension of size ``batch``; 0 when None.
        name: Name of the operation.
        seq_dim: Old name of `seq_axis`.
        batch_dim: Old name of `batch_axis`.

    Returns:
        Same shape and dtype as `input`.

    Examples:
        >>> session.run(tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1))
        array([[2, 1, 3],
               [6, 5, 4]], dtype=int32)
    """
    seq_axis = by_either_name("reverse_sequence", seq_axis=seq_axis, seq_dim=seq_dim)
    batch_axis = by_either_name("reverse_sequence", batch_axis=batch_axis, batch_dim=batch_dim)
    if seq_axis is None:
        raise ArgumentError("reverse_sequence needs seq_axis")
    attrs = {"seq_dim": whole_part(seq_axis), "batch_dim": whole_part(0 if batch_axis is None else batch_axis)}
    if min(attrs.values()) < 0:
        raise InvalidArgumentError(f"reverse_sequence: axes {seq_axis} and {batch_axis} are not counted from the end")
    return add_op(REVERSE_SEQUENCE, input, index_tensor(seq_lengths), name=name, **attrs)


def _reverse_sequence_kernel(ctx: KernelContext, input: Array, seq_lengths: Array) -> Array:
    xp, time, batch = ctx.xp, ctx.attr("seq_dim") % input.ndim, ctx.attr("batch_dim") % input.ndim
    if time == batch:
        raise InvalidArgumentError(f"batch_dim == seq_dim == {time}: one dimension cannot be both batch and time")
    steps = input.shape[time]
    if seq_lengths.shape != (input.shape[batch],) or (
        xp is np and seq_lengths.size and (seq_lengths.max() > steps or seq_lengths.min() < 0)
    ):
        raise InvalidArgumentError(
            f"reverse_sequence: seq_lens do not fit shape {input.shape}: they must be as many as the batch, "
            "and <= its steps"
        )
    step, length = xp.arange(steps), seq_lengths[:, None]
    source = xp.where(step < length, length - 1 - step, step)
    rows = xp.moveaxis(input, (batch, time), (0, 1))
    return xp.moveaxis(rows[xp.arange(len(rows))[:, None], source], (0, 1), (batch, time))


def _reverse_sequence_shape(op: Operation) -> list[TensorShape]:
    shape, lengths = (tensor.shape for tensor in op.inputs)
    lengths.assert_has_rank(1)
    if shape.rank is None:
        return [UNKNOWN]
    time, batch = op.attr("seq_dim"), op.attr("batch_dim")
    for name, axis in (("batch_dim", batch), ("seq_dim", time)):
        if axis >= shape.rank:
            raise InvalidArgumentError(f"{name} must be < input rank: {axis} vs. {shape.rank}")
    size = lengths.with_rank(1)[0]
    return [shape.merge_with([size if i == batch else None for i in range(shape.rank)])]


def _reverse_sequence_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [reverse_sequence(d_output, op.inputs[1], op.attr("seq_dim"), op.attr("batch_dim")), None]


REVERSE_SEQUENCE = register(
    OpDef(
        name="ReverseSequence",
        inputs=("input: T", "seq_lengths: Tlen"),
        outputs=("output: T",),
        types={"T": dtypes.VALUES, "Tlen": dtypes.INDICES},
        attrs=("seq_dim", "batch_dim"),
        shape=_reverse_sequence_shape,
        kernels=on_every_device(_reverse_sequence_kernel),
        gradient=_reverse_sequence_gradient,
    )
)


# -- roll ----------------------------------------------------------------------------------------------


def roll(input: TensorLike, shift: TensorLike, axis: Any, name: str | None = None) -> Tensor:
    """Move elements along dimensions; what leaves at one end enters at the other.

    Args:
        input: Any shape with at least one dimension, any dtype.
        shift: Scalar integer, or a vector with one entry per axis: how far to move, backwards when negative.
        axis: A dimension, an integer scalar; or a vector (list) of them, which may name one several times.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `input`.
    """
    shift = index_tensor(shift)
    shape = axis.shape if isinstance(axis, Tensor) else TensorShape(np.shape(axis))
    shape = shape.with_rank_at_most(1)
    if shape.rank == 0:
        axis = reshape(axis, [1]) if isinstance(axis, Tensor) else [axis]
    # Whether a tensor of unknown rank is a vector is seen while running.
    is_open = shape.rank is None and constant_value(axis) is None
    axes = axis if is_open else late_index(axis, 1, "roll: axis")
    if not isinstance(axes, Tensor):
        _check_as_many(shift.shape.with_rank_at_most(1), axes)
    return add_op(ROLL, input, shift, name=name, axis=axes, backwards=False)


def _check_as_many(shift: TensorShape, axes: Sequence[int]) -> None:
    if shift.num_elements() not in (None, len(axes)):
        raise InvalidArgumentError(
            f"Roll: shift and axis must have the same size, not {shift.num_elements()} shifts for {len(axes)} axes: "
            "both shapes must be equal"
        )


def _rolled_axes(axis: Any, shift: TensorShape, rank: int | None) -> list[int]:
    """The axes. Raises `InvalidArgumentError` if they do not fit the shape of the shifts, or the input's rank."""
    if np.ndim(axis) > 1:
        raise InvalidArgumentError(f"roll: axis must be a scalar or a 1-D vector, not {axis}")
    if shift.rank is not None and shift.rank > 1:
        raise InvalidArgumentError(
            f"roll: shift must be a scalar or a 1-D vector. Shape must be at most rank 1 but is rank {shift.rank}"
        )
    if rank == 0:
        raise InvalidArgumentError("roll: input must be 1-D or higher. Shape must be at least rank 1 but is rank 0")
    axes: list[int] = np.atleast_1d(axis).tolist()
    for each in axes:
        if rank is not None and not -rank <= each < rank:
            raise InvalidArgumentError(f"roll: axis = {each} not in [{-rank}, {rank}): it is out of range")
    return axes


def _roll_kernel(ctx: KernelContext, input: Array, shift: Array) -> Array:
    sign = -1 if ctx.attr("backwards") else 1
    distances = [sign * distance for distance in np.atleast_1d(ctx.to_host(shift)).tolist()]
    axes = _rolled_axes(ctx.attr("axis"), TensorShape(shift.shape), input.ndim)
    _check_as_many(TensorShape(shift.shape), axes)
    return ctx.xp.roll(input, tuple(distances), tuple(axes))


def _roll_shape(op: Operation) -> list[TensorShape]:
    shape, shift = op.inputs[0].shape, op.inputs[1].shape
    _rolled_axes(op.attr("axis"), shift, shape.rank)
    return [shape]


def _roll_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    attrs = {"axis": op.attr("axis"), "backwards": not op.attr("backwards")}
    return [add_op(ROLL, d_output, op.inputs[1], **attrs), None]


ROLL = register_late(
    OpDef(
        name="Roll",
        inputs=("input: T", "shift: Tshift"),
        outputs=("output: T",),
        host_inputs=("shift",),
        types={"T": dtypes.VALUES, "Tshift": dtypes.INDICES},
        attrs=("axis", "backwards"),
        late="axis",
        shape=_roll_shape,
        kernels=on_every_device(_roll_kernel),
        gradient=_roll_gradient,
    )
)
