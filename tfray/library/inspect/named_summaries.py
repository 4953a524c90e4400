"""``slim.summaries``: summaries of tensors under their own names, or names with a prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.inspect import summaries
from tfray.ops.checks.print_assert_ops import Print
from tfray.ops.nn.nn_ops import zero_fraction

# fmt: off
__all__ = [
    "add_histogram_summaries", "add_histogram_summary", "add_image_summaries", "add_image_summary",
    "add_scalar_summaries", "add_scalar_summary", "add_zero_fraction_summaries", "add_zero_fraction_summary",
]
# fmt: on


def _name(tensor: Tensor, name: str | None, prefix: str | None) -> str:
    name = name or tensor.op.name
    return f"{prefix}/{name}" if prefix else name


def add_histogram_summary(tensor: Tensor, name: str | None = None, prefix: str | None = None) -> Tensor:
    """A histogram.

    Args:
        tensor: The numbers.
        name: Name of the summary; that of the tensor's operation when None.
        prefix: What stands before it, and a slash.

    Returns:
        A string scalar, which is in ``GraphKeys.SUMMARIES``.
    """
    return summaries.histogram(_name(tensor, name, prefix), tensor)


def add_image_summary(
    tensor: Tensor, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Tensor:
    """Images; arguments as for `add_scalar_summary`."""
    found = summaries.image(_name(tensor, name, prefix), tensor, collections=[])
    return _collected(found, tensor, _name(tensor, name, prefix), print_summary)


def add_scalar_summary(
    tensor: Tensor, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Tensor:
    """A number; arguments as for `add_histogram_summary`.

    Args:
        tensor: A scalar.
        name: As there.
        prefix: As there.
        print_summary: Print the value, too, when the summary is made.
    """
    found = summaries.scalar(_name(tensor, name, prefix), tensor, collections=[])
    return _collected(found, tensor, _name(tensor, name, prefix), print_summary)


def _collected(summary: Tensor, tensor: Tensor, name: str, printed: bool) -> Tensor:
    summary = Print(summary, [tensor], name) if printed else summary
    get_default_graph().add_to_collection(GraphKeys.SUMMARIES, summary)
    return summary


def add_zero_fraction_summary(
    tensor: Tensor, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Tensor:
    """The share of zeros; arguments as for `add_scalar_summary`, ``name`` being ``Fraction of Zero Values/...``."""
    name = _name(tensor, name, prefix or "Fraction of Zero Values")
    return add_scalar_summary(zero_fraction(tensor), name, None, print_summary)


def _of_each(tensors: Iterable[Tensor], prefix: str | None, add: Callable[..., Tensor]) -> list[Any]:
    return [add(tensor, prefix=prefix) for tensor in tensors]


def add_histogram_summaries(tensors: Iterable[Tensor], prefix: str | None = None) -> list[Tensor]:
    """`add_histogram_summary` of each."""
    return _of_each(tensors, prefix, add_histogram_summary)


def add_image_summaries(tensors: Iterable[Tensor], prefix: str | None = None) -> list[Tensor]:
    """`add_image_summary` of each."""
    return _of_each(tensors, prefix, add_image_summary)


def add_scalar_summaries(tensors: Iterable[Tensor], prefix: str | None = None) -> list[Tensor]:
    """`add_scalar_summary` of each."""
    return _of_each(tensors, prefix, add_scalar_summary)


def add_zero_fraction_summaries(tensors: Iterable[Tensor], prefix: str | None = None) -> list[Tensor]:
    """`add_zero_fraction_summary` of each."""
    return _of_each(tensors, prefix, add_zero_fraction_summary)
