"""Variables that follow a value: ``variable -= (1 - decay) * (variable - value)``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.scopes import merging
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables import initializers
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.state import state_ops


def assign_moving_average(
    variable: Variable, value: TensorLike, decay: TensorLike, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Move a variable towards a value.

    Args:
        variable: The variable.
        value: A tensor of its shape.
        decay: What remains of the variable: a number or scalar.
        zero_debias: The variable started at 0: correct for that. Two more variables, ``biased`` and
            ``local_step``, are kept under its name.
        name: Name scope of the operations.

    Returns:
        The new value of the variable.

    References:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, section 3.
    """
    replica = merging(variable)
    if replica is not None:  # of several replicas, all of which move it together

        def merged(strategy: Any, value: Any) -> Any:
            mean = strategy.extended.reduce_to("MEAN", value, destinations=variable)
            return assign_moving_average(variable, mean, decay, zero_debias, name)

        return replica.merge_call(merged, (value,))
    with get_default_graph().name_scope(name or "AssignMovingAvg") as scope:
        value = convert_to_tensor(value)
        gain = array_ops.cast(1.0 - convert_to_tensor(decay), variable.dtype, "decay")
        with state_ops.colocated_with(variable.handle):
            if zero_debias:
                return _assign_debiased(variable, value, gain, scope)
            return state_ops.assign_sub(variable, (variable.value() - value) * gain, name=scope)


def weighted_moving_average(
    value: TensorLike,
    decay: TensorLike,
    weight: TensorLike,
    truediv: bool = True,
    collections: Iterable[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """The moving average of values of different weights: that of ``value * weight`` divided by that of the weights.

    Args:
        value: A tensor of floats.
        decay: What remains of the averages at each turn: a number or scalar.
        weight: Weights of a shape that broadcasts to that of `value`.
        truediv: Accepted for TensorFlow 1's sake: floats are divided as floats.
        collections: Where to put the two variables besides; the global variables when None.
        name: Name scope of the operations.

    Returns:
        Same shape and dtype as `value`. Computing it moves the averages.
    """
    value = convert_to_tensor(value)
    collections = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
    with variable_scope(name, "WeightedMovingAvg"):
        weight = convert_to_tensor(weight, value.dtype)
        moved = []
        for part, what in ((value * weight, "value_x_weight"), (weight, "weight")):
            zeros = initializers.Zeros()
            kept = get_variable(what, part.shape, part.dtype, zeros, trainable=False, collections=collections)
            moved.append(assign_moving_average(kept, part, decay, zero_debias=False))
        return math_ops.truediv(moved[0], moved[1])


def _assign_debiased(variable: Variable, value: TensorLike, gain: Any, scope: str) -> Any:
    with variable_scope(variable.op.name) as own:
        taken = () if own.reuse else {each.op.name for each in own.global_variables()}
        end = next(end for end in chain([""], map("_{}".format, count(1))) if f"{own.name}/biased{end}" not in taken)
        zeros = initializers.Zeros()
        biased = get_variable(f"biased{end}", variable.shape, variable.dtype, zeros, trainable=False)
        steps = get_variable(f"local_step{end}", [], variable.dtype, zeros, trainable=False)
    new = biased.assign_sub((biased.value() - value) * gain)
    weight = 1 - math_ops.pow(1 - gain, steps.assign_add(1))
    return state_ops.assign(variable, new / weight, name=scope)
