"""Functions applied to the numbers from 0 on: the loops of TensorFlow's module ``parallel_for``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.errors import ArgumentError
from tfray.framework import nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor
from tfray.framework.scopes import control_dependencies
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.shape_ops import identity
from tfray.ops.control.functional_ops import map_fn, vectorized_map
from tfray.ops.math.reduction_ops import reduce_mean, reduce_sum

_CONFIG: Final = "pfor_config"
"""The argument by which a function asks for what other turns computed."""


def for_loop(
    loop_fn: Callable[[Any], Any], loop_fn_dtypes: DTypeLike | Any, iters: Any, parallel_iterations: int | None = None
) -> Any:
    """Apply a function to the numbers below `iters`, in a loop.

    Args:
        loop_fn: From an int32 scalar to a nested structure of tensors, `IndexedSlices` and None.
        loop_fn_dtypes: The dtypes of these, in any structure.
        iters: How many numbers.
        parallel_iterations: As for `tf.map_fn`.

    Returns:
        What the function returns, each tensor with a new first axis of size `iters`.

    Raises:
        TypeError: `parallel_iterations` is below 1.
    """
    if parallel_iterations is not None and parallel_iterations < 1:
        raise TypeError(f"parallel_iterations must be a positive integer, not {parallel_iterations}")
    made: list[Any] = []

    def flat(number: Any) -> list[Any]:
        made.append(loop_fn(number))
        return [convert_to_tensor(leaf) for leaf in nest.flatten(made[-1]) if leaf is not None]

    results = iter(map_fn(flat, range_(iters), nest.flatten(loop_fn_dtypes), parallel_iterations=parallel_iterations))
    leaves = [None if leaf is None else next(results) for leaf in nest.flatten(made[-1])]
    return nest.pack_sequence_as(made[-1], leaves)


def pfor(loop_fn: Callable[..., Any], iters: Any, parallel_iterations: int | None = None) -> Any:
    """Apply a function to the numbers below `iters`, as `tf.vectorized_map` does it: in a loop, whatever its dtypes.

    Args:
        loop_fn: From an int32 scalar to a nested structure of tensors, `IndexedSlices`, operations and None. If it has
            an argument ``pfor_config``, it gets a `PForConfig` there.
        iters: How many numbers.
        parallel_iterations: Accepted for TensorFlow 1's sake.

    Returns:
        What the function returns, each tensor with a new first axis of size `iters`, and for each operation one that
        runs it for all numbers.

    Raises:
        ValueError: `parallel_iterations` is below 2; or it is given, and the function asks for what other turns
            computed.
    """
    if parallel_iterations is not None and parallel_iterations < 1:
        raise ValueError(f"parallel_iterations must be None or a positive integer, not {parallel_iterations}")
    if parallel_iterations == 1:
        raise ValueError("Found parallel_iterations == 1. Use for_loop instead.")
    numbers, known = range_(iters), list[Tensor]()
    while True:
        found, is_asked = _turns(loop_fn, numbers, known)
        if not is_asked:
            return found
        count = constant_value(numbers)
        if parallel_iterations is not None and (count is None or len(count) >= parallel_iterations):
            raise ValueError(
                "Setting parallel_iterations currently unsupported if reductions across iterations are performed."
            )
        known.append(found[0])


def _turns(loop_fn: Callable[..., Any], numbers: Tensor, known: Sequence[Tensor]) -> tuple[Any, bool]:
    """What the function returns, from all turns; or the first value of which it wants those of all turns.

    Args:
        loop_fn: See `pfor`.
        numbers: To what it is applied.
        known: The values of all turns that it gets, in the order in which it asks.
    """
    takes_config = _CONFIG in inspect.signature(loop_fn).parameters
    returned: list[Any] = []
    asked: list[bool] = []

    def turn(number: Tensor) -> list[Tensor]:
        try:
            results = loop_fn(number, **{_CONFIG: PForConfig(known)}) if takes_config else loop_fn(number)
        except _AskedError as error:
            asked.append(True)
            results = [error.value]
        returned.append(results)
        return [_as_tensor(leaf, number) for leaf in nest.flatten(results) if leaf is not None]

    stacked = iter(vectorized_map(turn, numbers))
    leaves = [None if leaf is None else next(stacked) for leaf in nest.flatten(returned[-1])]
    done = [
        group(found) if isinstance(leaf, Operation) else found
        for leaf, found in zip(nest.flatten(returned[-1]), leaves, strict=True)
    ]
    return nest.pack_sequence_as(returned[-1], done), bool(asked)


def _as_tensor(leaf: Any, number: Tensor) -> Tensor:
    if isinstance(leaf, Operation):
        with control_dependencies([leaf]):
            return identity(number)
    return convert_to_tensor(leaf)


class _AskedError(Exception):
    """The function asks for the values that a tensor has in all turns, before these are known."""

    def __init__(self, value: Tensor) -> None:
        super().__init__("a reduction outside of pfor")
        self.value = value


class PForConfig:
    """What a function of `pfor` gets, to learn what the other turns computed.

    Args:
        known: What it returns for the values of which it is asked, in this order.
    """

    def __init__(self, known: Sequence[Tensor] = ()) -> None:
        self._known = iter(known)

    def reduce_concat(self, x: Tensor) -> Tensor:
        """The values of `x` in all turns, along a new first axis."""
        if not isinstance(x, Tensor):
            raise ArgumentError(f"reduce_concat takes a tensor, not {x!r}")
        found = next(self._known, None)
        if found is None:
            raise _AskedError(x)
        return found

    def reduce_mean(self, x: Tensor) -> Tensor:
        """Their mean."""
        return reduce_mean(self.reduce_concat(x), axis=0)

    def reduce_sum(self, x: Tensor) -> Tensor:
        """Their sum."""
        return reduce_sum(self.reduce_concat(x), axis=0)
