"""Products with the rows of a shard, computed beside it: what travels is inputs and products, and never rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.kernels.products import matrix_product
from tfray.ops.math import math_ops
from tfray.ops.math.segment_ops import unsorted_segment_sum


def shard_products(
    inputs: TensorLike, examples: TensorLike, rows: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Multiply rows with inputs: the first ones with one input each, the others with all.

    Gradients are computed where the operation is.

    Args:
        inputs: Shape ``[batch, dim]``, a float dtype.
        examples: Shape ``[pairs]``, int32: for each of the first rows, its input.
        rows: Shape ``[pairs + others, dim]``, like `inputs`.
        name: Name of the operation.

    Returns:
        The products of the first rows, shape ``[pairs]``, and those of the others, shape ``[others, batch]``.

    Raises:
        InvalidArgumentError: Shapes do not fit.
    """
    pairs, others = add_op(SHARD_PRODUCTS, inputs, examples, rows, name=name)
    return pairs, others


def _shard_products_kernel(ctx: KernelContext, inputs: Array, examples: Array, rows: Array) -> list[Array]:
    count = examples.shape[0]
    pairs = (inputs[examples] * rows[:count]).sum(1, dtype=rows.dtype)
    others = matrix_product(ctx.xp, rows[count:], inputs.T)
    return [pairs, others.astype(rows.dtype, copy=False)]


def _shard_products_gradient(op: Operation, d_pairs: Tensor | None, d_others: Tensor | None) -> Sequence[Any]:
    inputs, examples, rows = op.inputs
    with get_default_graph().colocate_with(op, ignore_existing=True):
        d_pairs = array_ops.zeros_like(op.outputs[0]) if d_pairs is None else d_pairs
        d_others = array_ops.zeros_like(op.outputs[1]) if d_others is None else d_others
        count, batch = array_ops.size(examples), array_ops.shape(inputs)[0]
        weights = array_ops.expand_dims(d_pairs, 1)
        d_inputs = math_ops.add(
            unsorted_segment_sum(weights * rows[:count], examples, batch),
            math_ops.matmul(d_others, rows[count:], transpose_a=True),
        )
        of_pairs = weights * array_ops.gather(inputs, examples)
        d_rows = array_ops.concat([of_pairs, math_ops.matmul(d_others, inputs)], 0)
        return [d_inputs, None, d_rows]


def _shard_products_shape(op: Operation) -> list[TensorShape]:
    inputs, examples, rows = (tensor.shape for tensor in op.inputs)
    for name, shape, rank in (("inputs", inputs, 2), ("examples", examples, 1), ("rows", rows, 2)):
        if shape.rank not in (None, rank):
            raise ValueError(f"{name} have shape {shape}, expected rank {rank}")
    inputs, examples, rows = inputs.with_rank(2), examples.with_rank(1), rows.with_rank(2)
    inputs[1:].merge_with(rows[1:])
    count, total = examples.sizes[0], rows.sizes[0]
    others = None if count is None or total is None else total - count
    if others is not None and others < 0:
        raise ValueError(f"there are {total} rows, fewer than {count} examples")
    return [examples, TensorShape([others, inputs.sizes[0]])]


SHARD_PRODUCTS = register(
    OpDef(
        name="ShardProducts",
        inputs=("inputs: T", "examples: int32", "rows: T"),
        outputs=("pairs: T", "others: T"),
        types={"T": dtypes.FLOATS},
        shape=_shard_products_shape,
        kernels=on_every_device(_shard_products_kernel),
        gradient=_shard_products_gradient,
    )
)
