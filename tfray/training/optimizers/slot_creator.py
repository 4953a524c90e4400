"""Slots: variables that an optimizer keeps beside each variable that it trains."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.library.variables.variable_scope import get_variable_scope
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.state import state_ops

__all__ = ["create_slot", "create_slot_with_initializer", "create_zeros_slot"]


def create_slot(
    primary: Any, val: Any, name: str, colocate_with_primary: bool = True, *, scope: str | None = None
) -> Variable:
    """Make a slot that is initialised to `val`.

    Args:
        primary: The variable, or the tensor, that the slot belongs to.
        val: The initial value.
        name: Name of the slot, under that of `primary`: ``weights/Momentum``; within the current variable scope.
        colocate_with_primary: Put it on the device of `primary`, not on that of the current scope.
        scope: Where its name begins; the current variable scope when None.

    Returns:
        A variable that is saved with checkpoints and is not trainable.
    """
    return _create(primary, lambda: convert_to_tensor(val), True, name, colocate_with_primary, scope)


def create_slot_with_initializer(
    primary: Any,
    initializer: Any,
    shape: ShapeLike,
    dtype: DTypeLike,
    name: str,
    colocate_with_primary: bool = True,
    *,
    scope: str | None = None,
) -> Variable:
    """Make a slot whose value an initializer computes.

    Args:
        primary: The variable, or the tensor, that the slot belongs to.
        initializer: Function of a shape that takes the keyword ``dtype``.
        shape: Shape of the slot.
        dtype: Dtype of the slot.
        name: Name of the slot, under that of `primary`.
        colocate_with_primary: Put it on the device of `primary`, not on that of the current scope.
        scope: Where its name begins; the current variable scope when None.
    """
    static = TensorShape(shape)
    if static.is_fully_defined():
        wanted: Any = static.as_list()
    else:
        wanted = array_ops.shape(_first_value(primary))
    return _create(
        primary,
        lambda: initializer(wanted, dtype=as_dtype(dtype)),
        static.is_fully_defined(),
        name,
        colocate_with_primary,
        scope,
    )


def create_zeros_slot(
    primary: Any,
    name: str,
    dtype: DTypeLike | None = None,
    colocate_with_primary: bool = True,
    *,
    scope: str | None = None,
) -> Variable:
    """Make a slot of zeros in the shape of `primary`.

    Args:
        primary: The variable, or the tensor, that the slot belongs to.
        name: Name of the slot, under that of `primary`.
        dtype: Dtype of the slot; that of `primary` when None.
        colocate_with_primary: Put it on the device of `primary`, not on that of the current scope.
        scope: Where its name begins; the current variable scope when None.
    """

    def zeros() -> Any:
        if primary.shape.is_fully_defined():
            return array_ops.zeros(primary.shape, dtype or primary.dtype)
        return array_ops.zeros_like(_first_value(primary), dtype)

    return _create(primary, zeros, primary.shape.is_fully_defined(), name, colocate_with_primary, scope)


def _first_value(primary: Any) -> Any:
    # All variables may be initialised at once: the primary need not have its value yet.
    return primary.initialized_value() if isinstance(primary, Variable) else primary


def _create(
    primary: Any, initial_value: Any, validate_shape: bool, name: str, colocate: bool, scope: str | None
) -> Variable:
    graph = get_default_graph()
    owner = state_ops.colocated_with(_endpoint(primary)) if colocate else nullcontext()
    scope = (get_variable_scope().name if scope is None else scope).rstrip("/")
    owner_name = f"{scope}/{primary.op.name}/" if scope else f"{primary.op.name}/"
    with graph.control_dependencies(None), owner, graph.name_scope(None):
        slot = Variable(initial_value, trainable=False, validate_shape=validate_shape, name=f"{owner_name}{name}")
    slice_info = getattr(primary, "_save_slice_info", None)
    if slice_info is not None:
        # A checkpoint joins the slots of the parts as it joins the parts: under the name of the whole variable. Where
        # there is one part only, within a scope, TensorFlow cuts the name: to "t_0/Adagrad" of "part_0/Adagrad".
        is_whole = primary.shape.as_list() == list(slice_info.full_shape)
        own_name = slot.op.name[len(primary.op.name) + 1 if is_whole else len(owner_name) :]
        slot._save_slice_info = slice_info._replace(full_name=f"{slice_info.full_name}/{own_name}")
    return slot


def _endpoint(primary: Any) -> Any:
    return primary.handle if isinstance(primary, Variable) else primary
