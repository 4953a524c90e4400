"""`tf.contrib.framework.print_op`: values that are printed whenever they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import int64
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.checks.print_assert_ops import Print
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math.math_ops import reduce_sum

_Printed = TypeVar("_Printed")


def print_op(
    input_: _Printed,
    data: Sequence[TensorLike] | None = None,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_shape: bool = True,
    summarize_indicator_vector: bool = True,
    name: str | None = None,
) -> _Printed:
    """`input_`, printed to the standard error stream whenever it is computed, with its name, dtype and shape.

    Args:
        input_: A tensor, variable, sparse tensor or `TensorArray`.
        data: What else to print.
        message: What to print before it.
        first_n: Print only the first `first_n` times; always when None.
        summarize: How many elements to show.
        print_tensor_name: Whether to print names.
        print_tensor_type: Whether to print dtypes.
        print_shape: Whether to print shapes.
        summarize_indicator_vector: Whether to count what is true, where all elements are bools.
        name: Name of the operation.

    Raises:
        ValueError: `input_` is none of these.
    """
    is_composite = isinstance(input_, (SparseTensor, TensorArray))
    if not is_composite and not isinstance(input_, Tensor) and not hasattr(input_, "initializer"):
        raise ValueError("input_ must be of type Tensor, SparseTensor or TensorArray")
    shown: list[object] = []
    for value in (input_, *(data or ())):
        shown += _parts(value, print_tensor_name, print_tensor_type, print_shape, summarize_indicator_vector)
    if not is_composite:
        printed: _Printed = Print(convert_to_tensor(input_), shown, message, first_n, summarize, name)  # type: ignore[assignment]
        return printed
    done = Print(convert_to_tensor(0), shown, message, first_n, summarize, name)
    with get_default_graph().control_dependencies([done]):
        parts = [array_ops.identity(part) for part in nest.flatten(input_, expand_composites=True)]
    packed: _Printed = nest.pack_sequence_as(input_, parts, expand_composites=True)
    return packed


def _parts(value: object, with_name: bool, with_type: bool, with_shape: bool, with_count: bool) -> list[object]:
    """What to print of a value."""
    if isinstance(value, TensorArray):
        value = value.stack()
    named = value if isinstance(value, SparseTensor) or hasattr(value, "name") else convert_to_tensor(value)
    tensor = named.values if isinstance(named, SparseTensor) else convert_to_tensor(named)
    shown: list[object] = [f"Name: {tensor.name}"] if with_name else []
    if with_type:
        shown.append(f"Type: {type(named).__name__} ({tensor.dtype.name})")
    if with_shape:
        shown += ["Shape:", named.dense_shape if isinstance(named, SparseTensor) else array_ops.shape(tensor)]
    if with_count and tensor.dtype.is_bool:
        shown += ["Number of true elements:", reduce_sum(array_ops.cast(tensor, int64))]
    return [*shown, "Values:", tensor]
