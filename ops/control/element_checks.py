"""What the elements of a `TensorArray` must be when they are written, joined or split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array, KernelContext
from tfray.framework.tensor_list import MISSING, TensorList
from tfray.framework.tensor_shape import TensorShape


def shown(shape: TensorShape) -> str:
    """A shape as TensorFlow writes it in errors of lists."""
    if shape.rank is None:
        return "<unknown>"
    return f"[{','.join('?' if size is None else str(size) for size in shape.sizes)}]"


def check_in_range(ctx: KernelContext, flow: TensorList, index: int) -> None:
    """Raise `InvalidArgumentError` for an element beyond the end of an array that does not grow, or of a full list."""
    if index < 0 or (index >= flow.size and not ctx.attr("dynamic")):
        if flow.element_shape is not None:
            raise InvalidArgumentError(f"Trying to modify element {index} in a list with {flow.size} elements.")
        raise InvalidArgumentError(
            f"Tried to write to index {index} but array is not resizeable and size is: {flow.size}; make it with a "
            "larger size, or with dynamic_size=True"
        )


def check_element(flow: TensorList, index: int, value: Any, what: str) -> None:
    """Raise `InvalidArgumentError` for an element that a list does not take: it is full, or the shape is another.

    Args:
        flow: A list of TensorFlow's; a TensorArray takes everything.
        index: Where the element goes.
        value: The element: an array, or a list.
        what: What is done with it: ``"append"`` or ``"set"``.
    """
    if flow.element_shape is None:
        return
    if 0 <= flow.most <= index:
        raise InvalidArgumentError(
            f"Tried to push item into a full list list size: {flow.size} max_num_elements: {flow.most}"
        )
    if isinstance(value, TensorList) or flow.element_shape.is_compatible_with(np.shape(value)):
        return
    element, own = shown(TensorShape(np.shape(value))), shown(flow.element_shape)
    raise InvalidArgumentError(
        f"Tried to append a tensor with incompatible shape to a list. Op element shape: {element} list shape: {own}"
        if what == "append"
        else "Tried to set a tensor with incompatible shape at a list index. Item element shape: "
        f"{element} list shape: {own}"
    )


def check_scattered(ctx: KernelContext, flow: TensorList, positions: Sequence[int], count: int) -> None:
    """Raise `InvalidArgumentError` unless there is an element for each place, and the places of a list are in it."""
    is_list = flow.element_shape is not None
    if is_list and min(positions, default=0) < 0:
        raise InvalidArgumentError("Indices in TensorListScatter must all be non-negative.")
    if is_list and max(positions, default=-1) >= flow.size and not ctx.attr("dynamic"):
        raise InvalidArgumentError(
            f"TensorListScatter: Trying to scatter at index {max(positions)} in list with size {flow.size}"
        )
    if len(positions) == count:
        return
    raise InvalidArgumentError(
        f"Invalid number of rows in input tensor. Expected: {len(positions)} Actual: {count}"
        if is_list
        else f"there are {len(positions)} indices and {count} elements to write"
    )


def check_writable(ctx: KernelContext, flow: TensorList, index: int) -> None:
    """Raise `InvalidArgumentError` for an element that cannot be written, or was written already."""
    check_in_range(ctx, flow, index)
    if flow.element(index) is not MISSING:
        raise InvalidArgumentError(
            f"Could not write to TensorArray index {index} because it has already been written to: write each once"
        )


def check_joinable(elements: Sequence[Array]) -> None:
    """Raise `InvalidArgumentError` for elements that differ in more than their first dimension, or have none."""
    for position, element in enumerate(elements):
        if element.ndim == 0:
            raise InvalidArgumentError(
                f"Concat saw a scalar shape at index {position} but requires at least vectors; stack() joins scalars"
            )
        if element.shape[1:] != elements[0].shape[1:]:
            first, other = list(elements[0].shape[1:]), list(element.shape[1:])
            raise InvalidArgumentError(
                f"TensorArray has inconsistent shapes. Index 0 has (excepting dimension 0) shape: {first} but index "
                f"{position} has (excepting dimension 0) shape: {other}"
            )


def check_split(lengths: Sequence[Any], value: Sequence[Any]) -> None:
    """Raise `InvalidArgumentError` unless the shapes are those of a vector, and of something with a first dimension."""
    if len(lengths) != 1:
        raise InvalidArgumentError(f"Expected lengths to be a vector, received shape: {list(lengths)}")
    if not value:
        raise InvalidArgumentError("Expected value to be at least a vector, but received shape: []")
