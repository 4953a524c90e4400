"""Functions applied to the numbers from 0 on: the loops of TensorFlow's module ``parallel_for``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.framework import nest
from tfray.framework.dtypes import DTypeLike
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.control.functional_ops import map_fn, vectorized_map


def for_loop(
    loop_fn: Callable[[Any], Any], loop_fn_dtypes: DTypeLike | Any, iters: Any, parallel_iterations: int | None = None
) -> Any:
    """Apply a function to the numbers below `iters`, in a loop.

    Args:
        loop_fn: From an int32 scalar to a nested structure of tensors.
        loop_fn_dtypes: The dtypes of these, in any structure.
        iters: How many numbers.
        parallel_iterations: As for `tf.map_fn`.

    Returns:
        What the function returns, each tensor with a new first axis of size `iters`.
    """
    made: list[Any] = []

    def flat(number: Any) -> list[Any]:
        made.append(loop_fn(number))
        return nest.flatten(made[-1])

    results = map_fn(flat, range_(iters), nest.flatten(loop_fn_dtypes), parallel_iterations=parallel_iterations)
    return nest.pack_sequence_as(made[-1], results)


def pfor(loop_fn: Callable[[Any], Any], iters: Any, parallel_iterations: int | None = None) -> Any:
    """Apply a function to the numbers below `iters`, as `tf.vectorized_map` does it: in a loop, whatever its dtypes.

    Args:
        loop_fn: From an int32 scalar to a nested structure of tensors.
        iters: How many numbers.
        parallel_iterations: Accepted for TensorFlow 1's sake.

    Returns:
        What the function returns, each tensor with a new first axis of size `iters`.
    """
    return vectorized_map(loop_fn, range_(iters))
