"""Cells of recurrent Keras layers, those of programs included: what one step of them takes and gives.

A cell is a layer with ``state_size``, a size or a list of sizes, and ``call(inputs, states)``, which gives the output
and a list of the new states.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from tfray.framework.tensor_shape import TensorShape
from tfray.library.layers import base_layer
from tfray.library.rnn.rnn_cell_base import zeros_of
from tfray.library.variables.variable_scope import get_variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.nn import nn_ops


def output_size(cell: Any) -> Any:
    """Size of a cell's output: that of its first state, unless it says otherwise."""
    size = cell.state_size
    return getattr(cell, "output_size", size[0] if isinstance(size, (list, tuple)) else size)


def build_cell(owner: base_layer.Layer, cell: Any, step: TensorShape, constants: Sequence[TensorShape]) -> None:
    """Make the variables of a cell, in the current scope, and give them to the layer that owns it.

    Args:
        owner: The layer.
        cell: The cell. One that takes constants is told their shapes, too.
        step: Shape of what it takes at a time.
        constants: Shapes of constants.
    """
    if not isinstance(cell, base_layer.Layer):
        return
    if not cell.built:
        cell._scope = get_variable_scope()
        shapes: Any = [step, *constants] if _takes(cell, constants) else step
        cell.build(shapes)
        cell.built = True
    for name in ("_trainable_weights", "_non_trainable_weights"):
        own = getattr(owner, name)
        known = set(map(id, own))
        own.extend(each for each in getattr(cell, name) if id(each) not in known)


def _takes(cell: Any, constants: Sequence[Any] | None) -> bool:
    return bool(constants) and "constants" in inspect.signature(cell.call).parameters


def run_cell(cell: Any, inputs: Any, state: Any, constants: Any) -> tuple[Any, Any]:
    """One step of a cell of Keras, whose states are a list, or of another."""
    if not isinstance(cell, base_layer.Layer):
        return cell(inputs, state)
    more = {"constants": constants} if _takes(cell, constants) else {}
    states = list(state) if isinstance(state, (list, tuple)) else [state]
    call: Any = cell.call
    output, after = call(inputs, states, **more)
    return output, list(after) if isinstance(state, (list, tuple)) else after[0]


class Steps:
    """A cell of Keras, with its constants, as `dynamic_rnn` runs it."""

    def __init__(self, cell: Any, constants: Any) -> None:
        self._cell, self._constants = cell, constants
        self.state_size, self.output_size = cell.state_size, output_size(cell)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The first state: zeros, unless the cell says otherwise."""
        if hasattr(self._cell, "get_initial_state"):
            return self._cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
        return zeros_of(self.state_size, batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return run_cell(self._cell, inputs, state, self._constants)


def drop_mask(like: Any, rate: float, training: Any) -> Any:
    """In training, 0 for what is dropped and more than 1 for the rest; None if nothing is."""
    if not rate:
        return None
    ones = array_ops.ones_like(like)
    return smart_cond(training, lambda: nn_ops.dropout(ones, rate=rate), lambda: ones)
