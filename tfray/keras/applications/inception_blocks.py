"""What the Inception networks have in common: branches of convolutions side by side."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import channel_axis, convolved, normalized, rectified
from tfray.keras.layers import AveragePooling2D, Concatenate, MaxPooling2D

Step = tuple[int, Any]
"""Filters and size of a convolution."""


def unit(x: Tensor, filters: int, size: Any, strides: int = 1, padding: str = "same", name: str | None = None) -> Any:
    """A convolution, normalized and rectified."""
    sizes = size if isinstance(size, tuple) else (size, size)
    x = convolved(x, filters, sizes, name, strides=strides, padding=padding)
    x = normalized(x, name and f"{name}_bn", scale=False)
    return rectified(x, name and f"{name}_ac")


def chain(x: Tensor, *steps: Step) -> Any:
    """One such after the other."""
    for filters, size in steps:
        x = unit(x, filters, size)
    return x


def mixed(x: Tensor, name: str, branches: list[list[Step]], pooled: int) -> Any:
    """Branches, the last of which takes means of windows first."""
    made = [chain(x, *branch) for branch in branches]
    made.append(unit(AveragePooling2D(3, 1, "same")(x), pooled, 1))
    return Concatenate(axis=channel_axis(), name=name)(made)


def reducing(x: Tensor, name: str, branches: list[list[Step]]) -> Any:
    """Branches whose last convolution leaves half the rows and columns, beside the maxima of windows."""
    made = [unit(chain(x, *branch[:-1]), *branch[-1], 2, "valid") for branch in branches]
    return Concatenate(axis=channel_axis(), name=name)([*made, MaxPooling2D(3, 2)(x)])
