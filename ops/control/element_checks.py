"""What the elements of a `TensorArray` must be when they are written, joined or split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array, KernelContext
from tfray.framework.tensor_list import MISSING, TensorList


def check_in_range(ctx: KernelContext, flow: TensorList, index: int) -> None:
    """Raise `InvalidArgumentError` for an element beyond the end of an array that does not grow."""
    if index < 0 or (index >= flow.size and not ctx.attr("dynamic")):
        raise InvalidArgumentError(
            f"Tried to write to index {index} but array is not resizeable and size is: {flow.size}; make it with a "
            "larger size, or with dynamic_size=True"
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
