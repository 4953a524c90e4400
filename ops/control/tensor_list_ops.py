"""What lists of TensorFlow 2 do, and TensorArrays do not: elements are replaced, and the end is taken off or moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, on_every_device, register
from tfray.framework.shape_functions import scalar, unknown
from tfray.framework.tensor_list import TensorList
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.control.element_checks import check_element, check_in_range
from tfray.ops.control.tensor_array_ops import TENSOR_ARRAY_SIZE, accumulated, element_at, empty, read_or_zeros


def _bounds_kernel(ctx: KernelContext, flow: TensorList, element_shape: Array, most: Array) -> TensorList:
    sizes = ctx.to_host(element_shape)
    shape = TensorShape([None if size < 0 else size for size in sizes.tolist()] if sizes.ndim else None)
    for index, element in flow.written():
        check_element(flow.bounded(shape), index, element, "append")
    return flow.bounded(shape, int(most))


TENSOR_ARRAY_BOUNDS = register(
    OpDef(
        name="TensorArrayBounds",
        inputs=("flow: variant", "element_shape: int32", "most: int32"),
        outputs=("bounded: variant",),
        host_inputs=("element_shape", "most"),
        shape=scalar,
        kernels=on_every_device(_bounds_kernel),
        gradient=lambda op, d_flow: [d_flow, None, None],
    )
)
"""The array as one of TensorFlow's lists, which holds its elements to a shape, and takes so many at most.

Sizes of the shape that are not known are -1, and so is the whole shape, as a scalar; -1 elements are any number.
"""


def _element_shape_kernel(ctx: KernelContext, flow: TensorList) -> np.ndarray[Any, Any]:
    shape = flow.element_shape
    if shape is None or shape.rank is None:
        return np.array(-1, np.int32)
    return np.array([-1 if size is None else size for size in shape.sizes], np.int32)


TENSOR_ARRAY_ELEMENT_SHAPE = register(
    OpDef(
        name="TensorArrayElementShape",
        inputs=("flow: variant",),
        outputs=("element_shape: int32",),
        shape=unknown,
        kernels=on_cpu(_element_shape_kernel),
        gradient=not_differentiable,
    )
)
"""The shape that a list holds its elements to: ``[rank]``, with -1 for unknown sizes, or the scalar -1."""


def _resize_kernel(ctx: KernelContext, flow: TensorList, size: Array) -> TensorList:
    if size < 0 and flow.element_shape is not None:
        raise InvalidArgumentError(f"TensorListSlice expects size to be non-negative. Got: {int(size)}")
    return flow.resized(int(size))


TENSOR_ARRAY_RESIZE = register(
    OpDef(
        name="TensorArrayResize",
        inputs=("flow: variant", "size: int32"),
        outputs=("changed: variant",),
        host_inputs=("size",),
        shape=scalar,
        kernels=on_every_device(_resize_kernel),
        gradient=lambda op, d_flow: [d_flow, None],
    )
)
"""The array with another number of elements: the first ones, or all and others that are not written."""


def _pop_kernel(ctx: KernelContext, flow: TensorList) -> tuple[TensorList, Any]:
    if not flow.size:
        raise InvalidArgumentError("Trying to pop from an empty list.")
    last = element_at(ctx, flow, np.array(flow.size - 1), 1)  # before there is a newer version
    return flow.without_last(), last


def _pop_gradient(op: Operation, d_changed: Tensor | None, d_value: Tensor | None) -> list[Tensor | None]:
    if d_value is None:
        return [d_changed]
    index = add_op(TENSOR_ARRAY_SIZE, op.outputs[0])
    return [accumulated(empty() if d_changed is None else d_changed, index, d_value)]


TENSOR_ARRAY_POP = register(
    OpDef(
        name="TensorArrayPop",
        inputs=("flow: variant",),
        outputs=("changed: variant", "value: dtype"),
        attrs=("element_shape",),
        types={"dtype": dtypes.ALL},
        shape=lambda op: [TensorShape([]), op.attrs["element_shape"]],
        kernels=on_every_device(_pop_kernel),
        gradient=_pop_gradient,
    )
)
"""Takes the last element off: loops of TensorFlow 2 keep values for their gradients on such stacks."""


def _replace_kernel(ctx: KernelContext, flow: TensorList, index: Array, value: Array) -> TensorList:
    position = int(index)
    check_in_range(ctx, flow, position)
    check_element(flow, position, value, "set")
    return flow.set(position, value)


def _replace_gradient(op: Operation, d_flow: Tensor | None) -> list[Tensor | None]:
    _, index, value = op.inputs
    if d_flow is None or not value.dtype.is_differentiable:
        return [d_flow, None, None]
    nothing = zeros_like(value)  # what was there before has no part in the result
    return [
        add_op(TENSOR_ARRAY_REPLACE, d_flow, index, nothing, dynamic=True),
        None,
        read_or_zeros(d_flow, index, value),
    ]


TENSOR_ARRAY_REPLACE = register(
    OpDef(
        name="TensorArrayReplace",
        inputs=("flow: variant", "index: int32", "value: any"),
        outputs=("changed: variant",),
        host_inputs=("index",),
        attrs=("dynamic",),
        shape=scalar,
        kernels=on_every_device(_replace_kernel),
        keeps_inputs=True,
        gradient=_replace_gradient,
    )
)
"""A write to an element that may have been written: for the lists of TensorFlow 2, which allow it."""
