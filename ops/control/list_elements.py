"""Elements of TensorArrays and of TensorFlow's lists as they are read, stacked and joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array, KernelContext
from tfray.framework.tensor_list import MISSING, TensorList
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.control.element_checks import check_joinable, shown
from tfray.ops.kernels.text import blank


def _merged(first: TensorShape, second: TensorShape) -> TensorShape:
    """What two shapes know together. Raises `InvalidArgumentError` where they contradict each other."""
    if None not in (first.rank, second.rank) and first.rank != second.rank:
        raise InvalidArgumentError(
            f"PartialTensorShape: Incompatible ranks during merge: {first.rank} vs. {second.rank}"
        )
    if not first.is_compatible_with(second):
        raise InvalidArgumentError(
            f"PartialTensorShape: Incompatible shapes during merge: {shown(first)} vs. {shown(second)}"
        )
    return first.merge_with(second)


def _declared(ctx: KernelContext, flow: TensorList) -> TensorShape:
    """The shape of elements that an operation declares, and what the list knows of it."""
    shape: TensorShape = ctx.attr("element_shape")
    return shape if flow.element_shape is None else _merged(shape, flow.element_shape)


def unwritten(ctx: KernelContext, flow: TensorList, index: int, output: int = 0) -> Array:
    """What stands for an element that was never written: zeros or empty strings, in the dtype of an output.

    Its shape is the declared one, or that of another element of a list.

    Raises:
        InvalidArgumentError: There is no such element, or nothing tells its shape.
    """
    if not 0 <= index < flow.size:
        raise InvalidArgumentError(
            f"Tried to read from index {index} but array size is: {flow.size}"
            if flow.element_shape is None
            else f"Trying to access element {index} in a list with {flow.size} elements."
        )
    shape = _declared(ctx, flow)
    if flow.element_shape is not None and not shape.is_fully_defined():
        first = next((element for _, element in flow.written()), None)
        if first is None:
            raise InvalidArgumentError(
                f"Trying to read an uninitialized tensor but element_shape is not fully defined: {shown(shape)} and no "
                "list element is set."
            )
        shape = _merged(shape, TensorShape(np.shape(first)))
    if not shape.is_fully_defined():
        raise InvalidArgumentError(
            f"Could not read from TensorArray index {index} because it has not yet been written to, and the shape of "
            "its elements is not known; write it before it is read, or give element_shape"
        )
    return blank(ctx, shape.sizes, output)


def elements_to_stack(ctx: KernelContext, flow: TensorList, positions: Sequence[int]) -> list[Any]:
    """The elements at these places, at least one, all of one shape; zeros for those that were never written.

    Raises:
        InvalidArgumentError: The shapes differ, there is no such element, or nothing tells the shape of zeros.
    """
    elements = [flow.element(position) for position in positions]
    if flow.element_shape is not None:
        return _elements_of_list(ctx, flow, positions, elements)
    written = next((element for element in elements if element is not MISSING), None)
    shape = ctx.attr("element_shape")
    for row, position in enumerate(positions):
        if elements[row] is MISSING:
            is_known = shape.rank is not None and written is not None and 0 <= position < flow.size
            zeros = blank(ctx, np.shape(written)) if is_known and written is not None else None
            elements[row] = unwritten(ctx, flow, position) if zeros is None else zeros
    shapes = {np.shape(element) for element in elements}
    if len(shapes) > 1:
        listed = ", ".join(sorted(str(list(each)) for each in shapes))
        raise InvalidArgumentError(f"the elements have shapes {listed}: only elements of one shape can be stacked")
    return elements


def _elements_of_list(
    ctx: KernelContext, flow: TensorList, positions: Sequence[int], elements: Sequence[Any]
) -> list[Any]:
    shape = _declared(ctx, flow)
    for position, element in zip(positions, elements, strict=True):
        if not 0 <= position < flow.size:
            raise InvalidArgumentError(f"Trying to gather element {position} in a list with {flow.size} elements.")
        if element is not MISSING:
            shape = _merged(shape, TensorShape(np.shape(element)))
    if not shape.is_fully_defined():
        shape = _from_others(flow, positions, shape)
    zeros = blank(ctx, shape.sizes)
    return [zeros if element is MISSING else element for element in elements]


def _from_others(flow: TensorList, positions: Sequence[int], shape: TensorShape) -> TensorShape:
    """The shape of elements of which none was written: that of the others."""
    for _, element in flow.written():
        shape = _merged(shape, TensorShape(np.shape(element)))
    if shape.is_fully_defined():
        return shape
    if list(positions) == list(range(flow.size)):
        raise InvalidArgumentError(
            "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: "
            f"{shown(shape)}"
        )
    raise InvalidArgumentError(
        f"Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: {shown(shape)}"
    )


def no_elements(ctx: KernelContext, flow: TensorList) -> Array:
    """An array without elements, each of which would have the declared shape.

    Raises:
        InvalidArgumentError: The elements are those of a list, and nothing tells their whole shape.
    """
    shape = _declared(ctx, flow)
    if flow.element_shape is not None and not shape.is_fully_defined():
        raise InvalidArgumentError(
            f"Tried to stack elements of an empty list with non-fully-defined element_shape: {shown(shape)}"
            if not flow.size
            else f"Tried to gather 0-elements from a list with non-fully-defined shape: {shown(shape)}"
        )
    return _empty(ctx, shape)


def _empty(ctx: KernelContext, shape: TensorShape) -> Array:
    sizes = [] if shape.rank is None else [size or 0 for size in shape.sizes]
    return ctx.xp.empty((0, *sizes), ctx.output_dtype())


def elements_to_join(ctx: KernelContext, flow: TensorList) -> list[Array]:
    """All elements, which differ in their first dimension at most; zeros for those of a list that were never written.

    Raises:
        InvalidArgumentError: They differ in more, have no dimension, or nothing tells the shape of zeros.
    """
    elements: list[Any] = [flow.element(position) for position in range(flow.size)]
    for position, element in enumerate(elements):
        if element is not MISSING:
            elements[position] = ctx.asarray(element)
        elif flow.element_shape is None:
            raise InvalidArgumentError(
                f"Could not read from TensorArray index {position} because it has not yet been written to"
            )
    written = [element for element in elements if element is not MISSING]
    if flow.element_shape is not None:
        return _joined_of_list(ctx, flow, elements, written)
    check_joinable(written)
    return written


def _joined_of_list(
    ctx: KernelContext, flow: TensorList, elements: Sequence[Any], written: Sequence[Array]
) -> list[Array]:
    rest = _rest(ctx, flow)
    for position, element in enumerate(written):
        if element.ndim == 0:
            raise InvalidArgumentError(f"Concat saw a scalar shape at index {position} but requires at least vectors.")
        rest = _merged(rest, TensorShape(element.shape[1:]))
    if len(written) < len(elements):
        if not rest.is_fully_defined():
            raise InvalidArgumentError(
                "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim_ is not "
                f"fully defined: {shown(rest)}"
            )
        own = flow.element_shape
        first = None if own is None or not own.rank else own.sizes[0]
        if first is None:
            raise InvalidArgumentError(
                "Concat requires the first dimension of elements that were never written: element_shape has none"
            )
        zeros = blank(ctx, (first, *rest.sizes))
        return [zeros if element is MISSING else element for element in elements]
    return list(elements)


def _rest(ctx: KernelContext, flow: TensorList) -> TensorShape:
    """The shape of elements without their first dimension: what is declared, and what a list knows of it."""
    rest: TensorShape = ctx.attr("rest")
    own = flow.element_shape
    return _merged(rest, TensorShape(own.sizes[1:])) if own is not None and own.rank else rest


def no_rows(ctx: KernelContext, flow: TensorList) -> Array:
    """What nothing is joined to.

    Raises:
        InvalidArgumentError: The elements are those of a list, and nothing tells their shape but for the first
            dimension.
    """
    rest = _rest(ctx, flow)
    if flow.element_shape is not None and not rest.is_fully_defined():
        raise InvalidArgumentError(
            "All except the first dimension must be fully defined when concating an empty tensor list. element_shape: "
            f"{shown(rest)}"
        )
    return _empty(ctx, rest)
