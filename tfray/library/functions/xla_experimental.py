"""``tf.xla.experimental``: what of a graph TensorFlow compiles. Here it changes no value, as sessions compile all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.library.variables.variable_scope import get_variable_scope
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.shape_ops import identity

__all__ = ["compile", "jit_scope"]


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """Call a function that builds operations, with tensors, and let all that it returns be computed together.

    Args:
        computation: The function. It returns one value, a flat list of tensors of any shapes and dtypes with operations
            behind them, or tensors nested in another way.
        inputs: Its arguments, tensors or nested ones; none when None.

    Returns:
        The tensors, of the same shapes and dtypes: a list, or nested as the function returned them. Each is there only
        after the operations. Where there is no tensor, the operation that runs them.

    Raises:
        TypeError: `inputs` is no list.
        ValueError: A value cannot become a tensor; or an operation stands before a tensor, or among nested ones.
    """
    given = [] if inputs is None else inputs
    if not isinstance(given, Sequence):
        raise TypeError("inputs must be a list")
    scope = get_variable_scope()
    uses_resources = scope.use_resource
    with get_default_graph().name_scope("cluster"):
        arguments = nest.map_structure(lambda value: identity(convert_to_tensor(value)), list(given))
        scope.set_use_resource(True)
        try:
            returned = computation(*arguments)
        finally:
            scope.set_use_resource(uses_resources)
        tensors, operations = _parted(returned)
    if not tensors:
        return group(*operations, name="output_0")
    with get_default_graph().control_dependencies(operations):
        results = [identity(tensor, name=f"output_{place}") for place, tensor in enumerate(tensors)]
    return results if _is_flat(returned) else nest.pack_sequence_as(returned, results)


def _is_flat(returned: Any) -> bool:
    """Whether values are one value, or stand in one list: those become a list."""
    if isinstance(returned, Sequence) and not isinstance(returned, (str, bytes)):
        return not any(nest.is_nested(each) for each in returned)
    return not nest.is_nested(returned)


def _parted(returned: Any) -> tuple[list[Tensor], list[Operation]]:
    """Tensors and operations among what a function returned. Raises `ValueError` for what may not stand there."""
    leaves = [] if returned is None else nest.flatten(returned)
    try:
        leaves = [each if isinstance(each, Operation) else convert_to_tensor(each) for each in leaves]
    except (TypeError, ValueError) as error:
        raise ValueError(
            "XLA computation function return values must all either be Operations or convertible to Tensors. "
            f"Got error: {error}"
        ) from error
    tensors = [each for each in leaves if not isinstance(each, Operation)]
    operations = [each for each in leaves if isinstance(each, Operation)]
    if operations and not _is_flat(returned):
        raise ValueError(
            "xla.compile does not support Operation as return value in non-flat output structure: let tensors depend "
            f"on it. Operation found: {operations[0].name}"
        )
    if any(isinstance(each, Operation) for each in leaves[: len(tensors)]):
        raise ValueError(
            "XLA computation function must return zero or more Tensor values followed by zero or more Operations."
        )
    return tensors, operations


@contextmanager
def jit_scope(compile_ops: Any = True, separate_compiled_gradients: bool = False) -> Iterator[None]:
    """Context manager for operations that TensorFlow compiles together; it changes nothing here.

    Args:
        compile_ops: Whether it does, or a function of a `tf.NodeDef` that says so.
        separate_compiled_gradients: Whether gradients are compiled on their own.
    """
    yield
