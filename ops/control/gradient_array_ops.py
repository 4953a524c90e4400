"""Reads of the gradient of a TensorArray beside the array itself, in imported graphs of TensorFlow 1.

Elements to which nothing was added are missing in a gradient, and read as zeros. Their shapes are those of the array's
elements, which is looked at for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_list import MISSING, TensorList
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.ops.control.tensor_array_ops import TENSOR_ARRAY_ACCUMULATE_ROWS, accumulated, empty, split_elements, stacked


def _element(ctx: KernelContext, flow: TensorList, index: int, like: TensorList, prefix: Sequence[Array]) -> Array:
    found = flow.element(index)
    return (
        ctx.asarray(found)
        if found is not MISSING
        else ctx.xp.zeros(_shape(ctx, index, like, prefix), ctx.output_dtype())
    )


def _shape(ctx: KernelContext, index: int, like: TensorList, prefix: Sequence[Array]) -> tuple[int, ...]:
    """The shape of a missing element."""
    element, declared = like.element(index), ctx.attr("element_shape")
    if element is not MISSING:
        sizes = np.shape(element)
    elif declared.is_fully_defined():
        sizes = tuple(declared.sizes)
    else:
        raise InvalidArgumentError(
            f"element {index} of the TensorArray was never written, and has no gradient: its shape is not known"
        )
    return tuple(int(size) for part in prefix for size in ctx.to_host(part)) + sizes


def _read_like_kernel(ctx: KernelContext, flow: TensorList, index: Array, like: TensorList, *prefix: Array) -> Array:
    return _element(ctx, flow, int(index), like, prefix)


def _read_like_gradient(op: Operation, d_value: Tensor | None) -> list[Tensor | None]:
    others: list[Tensor | None] = [None] * (len(op.inputs) - 1)
    return [None if d_value is None else accumulated(empty(), op.inputs[1], d_value), *others]


TENSOR_ARRAY_READ_LIKE = register(
    OpDef(
        name="TensorArrayReadLike",
        inputs=("flow: variant", "index: int32", "like: variant", "prefix: int32*"),
        outputs=("value: dtype",),
        host_inputs=("index", "prefix"),
        attrs=("element_shape",),
        types={"dtype": dtypes.INEXACT},
        shape=lambda op: [op.attrs["element_shape"]],
        kernels=on_every_device(_read_like_kernel),
        gradient=_read_like_gradient,
    )
)
"""The element at `index` of a gradient of the TensorArray `like`, or zeros; `prefix` stands before their shape."""


def _gather_like_kernel(
    ctx: KernelContext, flow: TensorList, indices: Array, like: TensorList, *prefix: Array
) -> Array:
    elements = [_element(ctx, flow, index, like, prefix) for index in ctx.to_host(indices).tolist()]
    if elements:
        return stacked(ctx, elements)
    sizes = ctx.attr("element_shape").sizes if not prefix and ctx.attr("element_shape").rank is not None else []
    return ctx.xp.empty((0, *(size or 0 for size in sizes)), ctx.output_dtype())


def _gather_like_gradient(op: Operation, d_value: Tensor | None) -> list[Tensor | None]:
    others: list[Tensor | None] = [None] * (len(op.inputs) - 1)
    if d_value is None:
        return [None, *others]
    return [add_op(TENSOR_ARRAY_ACCUMULATE_ROWS, empty(), op.inputs[1], d_value), *others]


def _gathered_shape(op: Operation) -> list[TensorShape]:
    element = op.attrs["element_shape"]
    return [UNKNOWN if element.rank is None else TensorShape([None, *element.sizes])]


TENSOR_ARRAY_GATHER_LIKE = register(
    OpDef(
        name="TensorArrayGatherLike",
        inputs=("flow: variant", "indices: int32", "like: variant", "prefix: int32*"),
        outputs=("value: dtype",),
        host_inputs=("indices", "prefix"),
        attrs=("element_shape",),
        types={"dtype": dtypes.INEXACT},
        shape=_gathered_shape,
        kernels=on_every_device(_gather_like_kernel),
        gradient=_gather_like_gradient,
    )
)
"""As `TENSOR_ARRAY_READ_LIKE`, for the elements at `indices`, stacked."""


def _concat_like_kernel(ctx: KernelContext, flow: TensorList, like: TensorList, *prefix: Array) -> tuple[Array, Array]:
    elements = [_element(ctx, flow, index, like, prefix) for index in range(like.size)]
    lengths = ctx.asarray(np.array([len(element) for element in elements], np.int32))
    if elements:
        return ctx.xp.concatenate(elements), lengths
    sizes = ctx.attr("element_shape").sizes[1:] if ctx.attr("element_shape").rank else []
    return ctx.xp.empty((0, *(size or 0 for size in sizes)), ctx.output_dtype()), lengths


def _concat_like_gradient(op: Operation, d_value: Tensor | None, d_lengths: None) -> list[Tensor | None]:
    others: list[Tensor | None] = [None] * (len(op.inputs) - 1)
    return [None if d_value is None else split_elements(empty(), d_value, op.outputs[1]), *others]


TENSOR_ARRAY_CONCAT_LIKE = register(
    OpDef(
        name="TensorArrayConcatLike",
        inputs=("flow: variant", "like: variant", "prefix: int32*"),
        outputs=("value: dtype", "lengths: int32"),
        host_inputs=("prefix",),
        attrs=("element_shape",),
        types={"dtype": dtypes.INEXACT},
        shape=lambda op: [UNKNOWN, TensorShape([None])],
        kernels=on_every_device(_concat_like_kernel),
        gradient=_concat_like_gradient,
    )
)
"""As `TENSOR_ARRAY_READ_LIKE`, for all elements of `like`, joined along their first axis; and the length of each."""
