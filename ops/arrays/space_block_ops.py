"""Blocks of space moved to the depth or the batch dimension, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.join_ops import stack, unstack
from tfray.ops.arrays.layout_ops import host_pairs
from tfray.ops.arrays.shape_ops import host_ints, index_tensor

# -- space and depth -----------------------------------------------------------------------------------


@none_is_default
def space_to_depth(input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Move each square block of pixels into the channels of one pixel.

    Args:
        input: Shape ``[batch, height, width, depth]``, or ``[batch, depth, height, width]`` for ``NCHW``;
            `block_size` divides height and width.
        block_size: Side of the blocks, at least 2.
        name: Name of the operation.
        data_format: ``"NHWC"`` or ``"NCHW"``.

    Returns:
        Shape ``[batch, height / block_size, width / block_size, depth * block_size ** 2]``, or its NCHW form.
    """
    return add_op(SPACE_TO_DEPTH, input, name=name, block_size=int(block_size), data_format=data_format)


@none_is_default
def depth_to_space(input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Spread the channels of each pixel over a square block of pixels: the inverse of `space_to_depth`.

    `input` has the shape ``[batch, height, width, channels]``, the result ``[batch, height * block_size, width *
    block_size, channels / block_size ** 2]`` (with ``"NCHW"`` the channels come second).

    Examples:
        >>> session.run(tf.depth_to_space([[[[1, 2, 3, 4]]]], block_size=2))[0, :, :, 0]
        array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return add_op(DEPTH_TO_SPACE, input, name=name, block_size=int(block_size), data_format=data_format)


def _space_to_depth_kernel(ctx: KernelContext, input: Array) -> Array:
    b = ctx.attr("block_size")
    if ctx.attr("data_format") == "NHWC":
        n, h, w, c = input.shape
        _check_blocks(input, h % b or w % b)
        blocks = input.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5)
        return blocks.reshape(n, h // b, w // b, b * b * c)
    n, c, h, w = input.shape
    _check_blocks(input, h % b or w % b)
    return input.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, b * b * c, h // b, w // b)


def _depth_to_space_kernel(ctx: KernelContext, input: Array) -> Array:
    b = ctx.attr("block_size")
    if ctx.attr("data_format") == "NHWC":
        n, h, w, c = input.shape
        _check_blocks(input, c % (b * b))
        return input.reshape(n, h, w, b, b, c // b**2).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // b**2)
    n, c, h, w = input.shape
    _check_blocks(input, c % (b * b))
    return input.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // b**2, h * b, w * b)


def _check_sides(sides: Sequence[int], frames: Sequence[tuple[int, int]]) -> None:
    if min(sides, default=1) < 1 or any(min(pair) < 0 for pair in frames):
        raise InvalidArgumentError(
            f"block sides must be positive, and what is added or cut off not negative: {sides}, {frames}"
        )


def _check_blocks(input: Array, remainder: int) -> None:
    if remainder:
        raise InvalidArgumentError(f"shape {input.shape} does not consist of whole blocks")


def _axes_of(op: Operation) -> tuple[int, int, int]:
    """Positions of height, width and depth."""
    if op.attr("data_format") not in ("NHWC", "NCHW"):
        raise ValueError(f"data_format is {op.attr('data_format')!r}, expected NHWC or NCHW")
    if op.attr("block_size") < 2:
        raise ValueError(f"block_size is {op.attr('block_size')}, expected at least 2")
    return (1, 2, 3) if op.attr("data_format") == "NHWC" else (2, 3, 1)


def _space_to_depth_shape(op: Operation) -> list[TensorShape]:
    return _moved_shape(op, _divided, _times)


def _depth_to_space_shape(op: Operation) -> list[TensorShape]:
    return _moved_shape(op, _times, _divided)


_Resize = Callable[[int | None, int], int | None]


def _moved_shape(op: Operation, of_space: _Resize, of_depth: _Resize) -> list[TensorShape]:
    height, width, depth = _axes_of(op)
    sizes, b = list(op.inputs[0].shape.with_rank(4).sizes), op.attr("block_size")
    sizes[height], sizes[width] = of_space(sizes[height], b), of_space(sizes[width], b)
    sizes[depth] = of_depth(sizes[depth], b * b)
    return [TensorShape(sizes)]


def _times(size: int | None, factor: int) -> int | None:
    return None if size is None else size * factor


def _divided(size: int | None, by: int) -> int | None:
    if size is not None and size % by:
        raise ValueError(f"a dimension of size {size} does not divide by {by}")
    return None if size is None else size // by


def _space_to_depth_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [depth_to_space(d_output, op.attr("block_size"), data_format=op.attr("data_format"))]


def _depth_to_space_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [space_to_depth(d_output, op.attr("block_size"), data_format=op.attr("data_format"))]


SPACE_TO_DEPTH = register(
    OpDef(
        name="SpaceToDepth",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        attrs=("block_size", "data_format"),
        shape=_space_to_depth_shape,
        kernels=on_every_device(_space_to_depth_kernel),
        gradient=_space_to_depth_gradient,
    )
)
DEPTH_TO_SPACE = register(
    OpDef(
        name="DepthToSpace",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        attrs=("block_size", "data_format"),
        shape=_depth_to_space_shape,
        kernels=on_every_device(_depth_to_space_kernel),
        gradient=_depth_to_space_gradient,
    )
)


# -- space and batch -----------------------------------------------------------------------------------


def space_to_batch_nd(
    input: TensorLike, block_shape: TensorLike, paddings: TensorLike, name: str | None = None
) -> Tensor:
    """Pad the space, and move each place within its blocks into the batch dimension.

    Args:
        input: Shape ``[batch, s_1, ..., s_m, ...]``, any dtype.
        block_shape: Integer vector ``[m]``: sides of the blocks.
        paddings: Integer matrix ``[m, 2]``: zeros put before and after; then the blocks divide the space.
        name: Name of the operation.

    Returns:
        Shape ``[batch * product(block_shape), padded s_1 / block_shape[0], ..., ...]``.
    """
    return add_op(SPACE_TO_BATCH_ND, input, index_tensor(block_shape), index_tensor(paddings), name=name)


def space_to_batch(
    input: TensorLike,
    paddings: TensorLike,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: int | None = None,
) -> Tensor:
    """`space_to_batch_nd` of two dimensions with square blocks.

    `input` has the shape ``[batch, height, width, channels]`` and `paddings` ``[2, 2]``. The result has the shape
    ``[batch * block_size ** 2, padded height / block_size, padded width / block_size, channels]``. `block_shape` is
    another spelling of `block_size`.
    """
    sides = _square_blocks("space_to_batch", block_size, block_shape)
    return _of_images(space_to_batch_nd(_images("space_to_batch", input), sides, paddings, name))


def _images(op: str, input: TensorLike) -> Tensor:
    """`input` as a tensor; its rank, where known, is 4."""
    images = convert_to_tensor(input)
    if images.shape.rank not in (None, 4):
        raise InvalidArgumentError(f"{op}: input has shape {images.shape}, expected [batch, height, width, channels]")
    return images


def _of_images(result: Tensor) -> Tensor:
    result.set_shape(result.shape.with_rank(4))
    return result


def _square_blocks(op: str, block_size: int | None, block_shape: int | None) -> Any:
    """The sides of blocks, given by either argument. Raises `ArgumentError` for both or none."""
    if (block_size is None) == (block_shape is None):
        raise ArgumentError(f"{op}: give one of block_size and block_shape")
    return np.broadcast_to(np.asarray(block_shape if block_size is None else block_size, np.int32), (2,))


def batch_to_space_nd(input: TensorLike, block_shape: TensorLike, crops: TensorLike, name: str | None = None) -> Tensor:
    """Undo `space_to_batch_nd`.

    Args:
        input: Shape ``[batch * product(block_shape), s_1, ..., s_m, ...]``, any dtype.
        block_shape: Integer vector ``[m]``.
        crops: Integer matrix ``[m, 2]``: how much to cut off before and after.
        name: Name of the operation.

    Returns:
        Shape ``[batch, s_1 * block_shape[0] - crops[0, 0] - crops[0, 1], ..., ...]``.
    """
    return add_op(BATCH_TO_SPACE_ND, input, index_tensor(block_shape), index_tensor(crops), name=name)


def batch_to_space(
    input: TensorLike,
    crops: TensorLike,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: int | None = None,
) -> Tensor:
    """`batch_to_space_nd` of two dimensions with square blocks.

    `input` has the shape ``[batch, height, width, channels]`` and `crops` ``[2, 2]``. The result has the shape ``[batch
    / block_size ** 2, height * block_size, width * block_size, channels]`` less the crops. `block_shape` is another
    spelling of `block_size`.
    """
    sides = _square_blocks("batch_to_space", block_size, block_shape)
    return _of_images(batch_to_space_nd(_images("batch_to_space", input), sides, crops, name))


def required_space_to_batch_paddings(
    input_shape: TensorLike, block_shape: TensorLike, base_paddings: TensorLike | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Find the paddings that make blocks divide a space, and the crops that undo them.

    Args:
        input_shape: Integer vector ``[m]``: the space.
        block_shape: Integer vector ``[m]``: sides of the blocks.
        base_paddings: Integer matrix ``[m, 2]``: padding that is wanted anyway; none when None.
        name: Name scope of the operations.

    Returns:
        ``paddings`` for `space_to_batch_nd` and ``crops`` for `batch_to_space_nd`, each ``[m, 2]``. The base
        paddings are not cropped.
    """
    with get_default_graph().name_scope(name or "required_space_to_batch_paddings"):
        space, sides = index_tensor(input_shape), index_tensor(block_shape)
        if sides.shape.num_elements() == 0 and sides.shape.rank == 1:
            no_axis = np.zeros([0, 2], np.int32)
            return convert_to_tensor(no_axis), convert_to_tensor(no_axis)
        sides.shape.with_rank(1).assert_is_compatible_with(space.shape)
        before, behind = (0, 0) if base_paddings is None else unstack(index_tensor(base_paddings), 2, 1)
        missing = (sides - (space + before + behind) % sides) % sides
        none = zeros_like(missing)
        return stack([none + before, missing + behind], 1), stack([none, missing], 1)


def _flat(pairs: Sequence[Sequence[int]]) -> list[int]:
    return list(itertools.chain.from_iterable(pairs))


def _space_to_batch_nd_kernel(ctx: KernelContext, input: Array, block_shape: Array, paddings: Array) -> Array:
    sides, pairs, m = host_ints(ctx, block_shape), host_pairs(ctx, paddings), len(block_shape)
    _check_sides(sides, pairs)
    frame = [(0, 0), *pairs, *[(0, 0)] * (input.ndim - m - 1)]
    padded = ctx.xp.pad(input, frame) if any(map(any, frame)) else input
    space, rest = padded.shape[1 : m + 1], padded.shape[m + 1 :]
    _check_blocks(padded, any(size % side for size, side in zip(space, sides, strict=True)))
    counts = [size // side for size, side in zip(space, sides, strict=True)]
    blocks = padded.reshape(len(input), *_flat(list(zip(counts, sides, strict=True))), *rest)
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, blocks.ndim)]
    return blocks.transpose(order).reshape(len(input) * math.prod(sides), *counts, *rest)


def _batch_to_space_nd_kernel(ctx: KernelContext, input: Array, block_shape: Array, crops: Array) -> Array:
    sides, pairs, m = host_ints(ctx, block_shape), host_pairs(ctx, crops), len(block_shape)
    _check_sides(sides, pairs)
    if input.ndim <= m or any(
        size * side < sum(pair) for size, side, pair in zip(input.shape[1:], sides, pairs, strict=False)
    ):
        raise InvalidArgumentError(f"crops {pairs} of blocks {sides} do not fit shape {input.shape}")
    _check_blocks(input, len(input) % math.prod(sides))
    batch, space, rest = len(input) // math.prod(sides), input.shape[1 : m + 1], input.shape[m + 1 :]
    blocks = input.reshape(*sides, batch, *space, *rest)
    order = [m, *_flat([(m + 1 + i, i) for i in range(m)]), *range(2 * m + 1, blocks.ndim)]
    sizes = [size * side for size, side in zip(space, sides, strict=True)]
    whole = blocks.transpose(order).reshape(batch, *sizes, *rest)
    cut = [slice(first, size - last) for (first, last), size in zip(pairs, sizes, strict=True)]
    return whole[(slice(None), *cut)]


def _block_shape(op: Operation, grow: bool) -> list[TensorShape]:
    source, block_shape, frame = (tensor.shape for tensor in op.inputs)
    sides, frames = constant_value(op.inputs[1]), constant_value(op.inputs[2])
    block_shape.assert_has_rank(1)
    m = block_shape.with_rank(1).sizes[0]
    frame.assert_is_compatible_with([m, 2])
    if source.rank is None or m is None:
        return [UNKNOWN if source.rank is None else TensorShape([None] * source.rank)]
    if source.rank <= m:
        raise ValueError(f"{m} blocks do not fit shape {source}: it needs a batch dimension too")
    if (sides is not None and (sides < 1).any()) or (frames is not None and (frames < 0).any()):
        raise ValueError(f"block sides must be positive, and what is added or cut off not negative: {sides}, {frames}")
    sizes: list[int | None] = [*[None] * (m + 1), *source.sizes[m + 1 :]]
    if sides is None:
        return [TensorShape(sizes)]
    count = int(np.prod(sides))
    sizes[0] = _times(source.sizes[0], count) if grow else _divided(source.sizes[0], count)
    if frames is None:
        return [TensorShape(sizes)]
    for i, (side, pair) in enumerate(zip(sides.tolist(), frames.tolist(), strict=True), 1):
        size = source.sizes[i]
        if size is not None:
            sizes[i] = _divided(size + sum(pair), side) if grow else size * side - sum(pair)
            if (sizes[i] or 0) < 0:
                raise ValueError(f"crops {pair} are more than the {size * side} elements of dimension {i}")
    return [TensorShape(sizes)]


def _space_to_batch_nd_shape(op: Operation) -> list[TensorShape]:
    return _block_shape(op, grow=True)


def _batch_to_space_nd_shape(op: Operation) -> list[TensorShape]:
    return _block_shape(op, grow=False)


def _space_to_batch_nd_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [batch_to_space_nd(d_output, op.inputs[1], op.inputs[2]), None, None]


def _batch_to_space_nd_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [space_to_batch_nd(d_output, op.inputs[1], op.inputs[2]), None, None]


SPACE_TO_BATCH_ND = register(
    OpDef(
        name="SpaceToBatchND",
        inputs=("input: T", "block_shape: Tblock", "paddings: Tpaddings"),
        outputs=("output: T",),
        host_inputs=("block_shape", "paddings"),
        types={"T": (*dtypes.NUMERIC, dtypes.bool_), "Tblock": dtypes.INDICES, "Tpaddings": dtypes.INDICES},
        shape=_space_to_batch_nd_shape,
        kernels=on_every_device(_space_to_batch_nd_kernel),
        gradient=_space_to_batch_nd_gradient,
    )
)
BATCH_TO_SPACE_ND = register(
    OpDef(
        name="BatchToSpaceND",
        inputs=("input: T", "block_shape: Tblock", "crops: Tcrops"),
        outputs=("output: T",),
        host_inputs=("block_shape", "crops"),
        types={"T": (*dtypes.NUMERIC, dtypes.bool_), "Tblock": dtypes.INDICES, "Tcrops": dtypes.INDICES},
        shape=_batch_to_space_nd_shape,
        kernels=on_every_device(_batch_to_space_nd_kernel),
        gradient=_batch_to_space_nd_gradient,
    )
)
