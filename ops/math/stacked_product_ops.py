"""One large matrix product after a loop, in place of a small one in every turn.

A loop's body may multiply by a matrix. The gradient of that matrix is a sum of products, one from each turn. Adding
them up turn by turn would pass over the whole matrix each time. Instead the backward loop keeps the factors of all
turns, and one product at the end joins them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_list import MISSING, TensorList
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.kernels.copies import joined
from tfray.ops.kernels.products import matrix_product

_JOINED_BYTES: Final = 1 << 26
"""Bytes of factors that are joined at a time: it bounds the memory of the joined copy."""


def product_of_stacks(left: Tensor, right: Tensor, like: Tensor) -> Tensor:
    """The sum over all turns of ``transpose(left[i]) @ right[i]``.

    Args:
        left: A variant, the list of the turns' matrices ``[k, n]``.
        right: Likewise ``[k, m]``.
        like: A tensor of the result's dtype and shape ``[n, m]``.
    """
    product: Tensor = add_op(PRODUCT_OF_STACKS, left, right, like)
    return product


def _product_kernel(ctx: KernelContext, left: TensorList, right: TensorList, like: Array) -> Array:
    pairs = [(a, b) for index, a in left.written() if (b := right.element(index)) is not MISSING]
    total = None
    for part in _joined_parts(pairs):
        a, b = (joined(ctx.xp, [ctx.asarray(pair[side]) for pair in part]) for side in (0, 1))
        product = matrix_product(ctx.xp, a.T, b)
        total = product if total is None else ctx.xp.add(total, product, out=total)
    return ctx.xp.zeros(like.shape, like.dtype) if total is None else total


def _joined_parts(pairs: Sequence[tuple[Any, Any]]) -> list[list[tuple[Any, Any]]]:
    """The pairs in groups, each of at least `_JOINED_BYTES` but the last: a group is joined for one product."""
    parts: list[list[tuple[Any, Any]]] = []
    size = _JOINED_BYTES
    for a, b in pairs:
        if size >= _JOINED_BYTES:
            parts.append([])
            size = 0
        parts[-1].append((a, b))
        size += a.nbytes + b.nbytes
    return parts


def _product_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[2].shape]


def _product_gradient(op: Operation, d_product: Tensor | None) -> list[Tensor | None]:
    if d_product is None:
        return [None, None, None]
    left, right, _ = op.inputs
    return [_times(right, d_product, transpose=True), _times(left, d_product, transpose=False), None]


PRODUCT_OF_STACKS = register(
    OpDef(
        name="ProductOfStacks",
        inputs=("left: variant", "right: variant", "like: T"),
        outputs=("product: T",),
        types={"T": (dtypes.float32, dtypes.float64)},
        shape=_product_shape,
        kernels=on_every_device(_product_kernel),
        gradient=_product_gradient,
    )
)


def _times(stack: Tensor, matrix: Tensor, transpose: bool) -> Tensor:
    product: Tensor = add_op(STACK_TIMES_MATRIX, stack, matrix, transpose=transpose)
    return product


def _times_kernel(ctx: KernelContext, stack: TensorList, matrix: Array) -> TensorList:
    factor = matrix.T if ctx.attr("transpose") else matrix
    items = {index: matrix_product(ctx.xp, ctx.asarray(element), factor) for index, element in stack.written()}
    return TensorList(items, stack.size)


def _times_gradient(op: Operation, d_stack: Tensor | None) -> list[Tensor | None]:
    if d_stack is None:
        return [None, None]
    stack, matrix = op.inputs
    transpose = op.attr("transpose")
    left, right = (d_stack, stack) if transpose else (stack, d_stack)
    return [_times(d_stack, matrix, not transpose), product_of_stacks(left, right, matrix)]


STACK_TIMES_MATRIX = register(
    OpDef(
        name="StackTimesMatrix",
        inputs=("stack: variant", "matrix: T"),
        outputs=("products: variant",),
        types={"T": (dtypes.float32, dtypes.float64)},
        attrs=("transpose",),
        shape=scalar,
        kernels=on_every_device(_times_kernel),
        gradient=_times_gradient,
    )
)
