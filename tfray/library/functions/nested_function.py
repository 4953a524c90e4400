"""``tf.contrib.framework.py_func``: Python functions of nested structures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import as_dtype
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.system import script_ops


def py_func(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    output_types: Any = None,
    output_shapes: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """`tf.py_func` of a function whose arguments and results are nested, and whose results have known shapes.

    Args:
        func: Takes `args` and `kwargs` with arrays in place of tensors. Returns values nested as `output_types`.
        args: Nested tensors.
        kwargs: Nested tensors by the names of arguments.
        output_types: Dtypes, nested as the results; None for a function whose results are dropped.
        output_shapes: Static shapes, nested likewise; one shape is that of all results; unknown when None.
        stateful: As for `tf.py_func`.
        name: Name of the operation.

    Returns:
        Tensors, nested as `output_types`; the operation where there are none.
    """
    given = nest.map_structure(convert_to_tensor, (list(args), dict(kwargs or {})))

    def call(*values: Any) -> Any:
        positional, named = nest.pack_sequence_as(given, list(values))
        result = func(*positional, **named)
        return [] if output_types is None else nest.flatten_up_to(output_types, result)

    types = [] if output_types is None else [as_dtype(dtype) for dtype in nest.flatten(output_types)]
    found = script_ops.py_func(call, nest.flatten(given), types, stateful, name)
    if output_types is None:
        return found
    if output_shapes is not None:
        alone = isinstance(output_shapes, TensorShape) or not nest.is_nested(output_types)
        shapes = (
            [output_shapes] * len(found)
            if alone
            else nest.flatten_up_to(output_types, output_shapes, check_types=False)
        )
        for tensor, shape in zip(found, shapes, strict=True):
            tensor.set_shape(shape)
    return nest.pack_sequence_as(output_types, found)
