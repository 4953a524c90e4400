"""``tensorflow.python.framework.subscribe``: operations that run whenever a tensor is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.errors import ArgumentError
from tfray.framework.graph import Operation, Tensor
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.shape_ops import identity

__all__ = ["subscribe"]

_SCOPE = "/subscription"


def subscribe(tensors: Any, side_effects: Callable[[Tensor], Any] | Sequence[Callable[[Tensor], Any]]) -> Any:
    """Let operations run whenever tensors are computed, before what takes these.

    Args:
        tensors: A tensor or variable, or a list, tuple, named tuple or dictionary of such, also nested.
        side_effects: Functions of a tensor, or one, which return what is to be computed.

    Returns:
        The same structure. Each tensor is replaced by one that waits for this, and of which there is one for each
        tensor; those of dtypes without values stay.

    Raises:
        TypeError: Something else is among `tensors`.
    """
    functions = [side_effects] if callable(side_effects) else list(side_effects)
    return _mapped(tensors, lambda tensor: _subscribed(tensor, functions))


def _mapped(tensors: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(tensors, Variable):
        return function(tensors.value())
    if isinstance(tensors, Tensor):
        return function(tensors)
    if isinstance(tensors, Mapping):
        return {key: _mapped(each, function) for key, each in tensors.items()}
    if isinstance(tensors, tuple) and hasattr(tensors, "_fields"):
        return type(tensors)(*(_mapped(each, function) for each in tensors))
    if isinstance(tensors, (list, tuple)):
        return type(tensors)([_mapped(each, function) for each in tensors])
    raise ArgumentError(f"subscribe: {tensors!r} has invalid type {type(tensors).__name__}: pass tensors")


def _subscribed(tensor: Tensor, functions: Sequence[Callable[[Tensor], Any]]) -> Tensor:
    if not tensor.dtype.is_numpy_compatible:
        return tensor
    graph = tensor.graph
    made: dict[Tensor, Tensor] = graph.extra("subscribed", dict)
    if is_subscribed_identity(tensor):
        tensor = tensor.op.inputs[0]
    new = tensor not in made
    takers = [(op, index) for op in tensor.consumers() for index, each in enumerate(op.inputs) if each is tensor]
    waiting = [op for op in graph.get_operations() if tensor.op in op.control_inputs] if new else []
    with graph.as_default(), graph.colocate_with(tensor.op), graph.name_scope(f"{tensor.op.name}{_SCOPE}/"):
        effects = [_operation(function(tensor)) for function in functions]
        if not new:
            made[tensor].op.add_control_inputs(effects)
            return made[tensor]
        with graph.control_dependencies(effects):
            result = made[tensor] = identity(tensor, name="Identity")
    for op, index in dict.fromkeys(takers):
        op._update_input(index, result)
    for op in waiting:
        # What waits for several outputs of one operation then waits for all of their replacements.
        op.add_control_inputs([result.op])
        if all(output in made for output in tensor.op.outputs):
            del op._control_inputs[tensor.op]
    graph._changed()
    return result


def _operation(made: Any) -> Operation:
    first = made[0] if isinstance(made, (list, tuple)) else made
    return first.op if isinstance(first, Tensor) else first


def is_subscribed_identity(tensor: Any) -> bool:
    """Whether it is what `subscribe` has put in the place of a tensor."""
    return (
        isinstance(tensor, Tensor) and tensor.op.type == "Identity" and _SCOPE in tensor.op.name
        and tensor.graph.extra("subscribed", dict).get(tensor.op.inputs[0]) is tensor
    )  # fmt: skip
