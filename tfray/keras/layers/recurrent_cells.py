"""Cells of recurrent Keras layers, those of programs included: what one step of them takes and gives.

A cell is a layer with ``state_size``, a size or a list of sizes, and ``call(inputs, states)``, which gives the output
and a list of the new states.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Self

from tfray.framework import nest
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.keras.backend import learning_phase
from tfray.library.layers.keras_layer import Layer
from tfray.library.layers.layer_history import history
from tfray.library.rnn.rnn_cell_base import zeros_of
from tfray.library.variables.variable_scope import get_variable_scope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.nn import nn_ops


def output_size(cell: Any) -> Any:
    """Size of a cell's output: that of its first state, unless it says otherwise."""
    size = getattr(cell, "output_size", None)
    if size is not None:
        return size
    size = cell.state_size
    return size[0] if isinstance(size, (list, tuple)) else size


def size_shape(size: Any) -> TensorShape:
    """Shape of a state or an output of this size, without the batch."""
    return TensorShape(size if isinstance(size, (TensorShape, list, tuple)) else [size])


def build_cell(owner: Layer, cell: Any, step: Any, constants: Sequence[Any]) -> None:
    """Make the variables of a cell, in the scope of the layer that owns it, and give them to that layer.

    Args:
        owner: The layer.
        cell: The cell. One that takes constants is told their shapes, too.
        step: Shape of what it takes at a time, or a structure of shapes.
        constants: Shapes of constants.
    """
    if not isinstance(cell, Layer):
        return
    own = owner.first_scope(None)
    inside = get_variable_scope().name.startswith(own.name)
    with nullcontext() if inside else variable_scope(own, auxiliary_name_scope=False):
        if not cell.built:
            cell._scope = get_variable_scope()
            cell._dtype = owner.dtype or cell._dtype
            cell._dtype_policy = cell._dtype_policy or owner._dtype_policy
            shapes: Any = [step, *constants] if _takes("constants", cell) and constants else step
            cell.build(shapes)
            cell.built = True


def _takes(name: str, cell: Any) -> bool:
    return name in inspect.signature(cell.call).parameters


def run_cell(cell: Any, inputs: Any, states: Sequence[Any], constants: Sequence[Any], training: Any) -> tuple[Any, Any]:
    """One step of a cell of Keras, whose states are a list, or of another.

    Args:
        cell: The cell.
        inputs: What it takes at a time.
        states: The parts of its state, one after the other.
        constants: Constants, for a cell that takes them.
        training: Whether the step trains, likewise.
    """
    packed = nest.pack_sequence_as(cell.state_size, list(states))
    if not isinstance(cell, Layer):
        return cell(inputs, packed)
    more: dict[str, Any] = {"constants": list(constants)} if constants and _takes("constants", cell) else {}
    if _takes("training", cell):
        more["training"] = training
    call: Any = cell.call
    output, after = call(inputs, list(packed) if isinstance(packed, (list, tuple)) else [packed], **more)
    return output, after


def first_states(cell: Any, batch_size: Any, dtype: Any) -> list[Any]:
    """The parts of a cell's first state: zeros, unless it says otherwise."""
    if hasattr(cell, "get_initial_state"):
        found = cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    elif hasattr(cell, "zero_state"):
        found = cell.zero_state(batch_size, dtype)
    else:
        found = zeros_of(cell.state_size, batch_size, dtype)
    return list(nest.flatten(found))


class DropoutMasks:
    """What a cell drops of its inputs and of its state in training, by numbers ``dropout`` and ``recurrent_dropout``.

    It is drawn when it is asked for first, and stays: it is the same at each step of a sequence. Layers reset it.
    """

    dropout: float
    recurrent_dropout: float
    _mask: Any = None
    _recurrent_mask: Any = None

    def reset_dropout_mask(self) -> None:
        """Let the next call draw what is dropped of inputs."""
        self._mask = None

    def reset_recurrent_dropout_mask(self) -> None:
        """Let the next call draw what is dropped of the state."""
        self._recurrent_mask = None

    def get_dropout_mask_for_cell(self, inputs: Any, training: Any, count: int = 1) -> Any:
        """What inputs are multiplied with: in training, 0 for what is dropped, and more than 1 for the rest.

        Args:
            inputs: Inputs of a step.
            training: Whether it is training; the learning phase when None.
            count: How many to draw.

        Returns:
            A tensor in the shape of `inputs`, or a list of `count` of them; None if nothing is ever dropped.
        """
        if not _is_usable(self._mask):
            self._mask = _drawn(inputs, self.dropout, training, count)
        return self._mask

    def get_recurrent_dropout_mask_for_cell(self, inputs: Any, training: Any, count: int = 1) -> Any:
        """The same for the state, which is `inputs` here."""
        if not _is_usable(self._recurrent_mask):
            self._recurrent_mask = _drawn(inputs, self.recurrent_dropout, training, count)
        return self._recurrent_mask


def _is_usable(mask: Any) -> bool:
    """Whether there is a mask, of this graph, and not of a loop or branch that has ended."""
    tensors = nest.flatten(mask)
    return mask is not None and get_default_graph().admits(tensors[0].graph)


def _drawn(like: Any, rate: float, training: Any, count: int) -> Any:
    if not 0 < rate < 1:
        return None
    ones, training = array_ops.ones_like(like), learning_phase() if training is None else training
    masks = [smart_cond(training, lambda: nn_ops.dropout(ones, rate=rate), lambda: ones) for _ in range(count)]
    return masks if count > 1 else masks[0]


class TakesStates(Layer):
    """A layer that takes initial states and constants by name, or behind its inputs in a list.

    Where they are outputs of layers, they are inputs of this one, as they are in a model's description.
    """

    _constant_count = 0
    _constant_shapes: Sequence[Any] = ()
    _names_both = False  # the description of a call has the names, too

    def __call__(self, inputs: Any, initial_state: Any = None, constants: Any = None, **kwargs: Any) -> Any:
        """The outputs; see the class for the arguments."""
        inputs, initial_state, constants = self._parted(inputs, initial_state, constants)
        constants = [constants] if isinstance(constants, Tensor) else constants
        if constants is not None:
            self._constant_shapes = [tuple(constant.shape.as_list()) for constant in constants]
            self._constant_count = len(constants)
        named = {"initial_state": initial_state, "constants": constants}
        further = [each for value in named.values() if value is not None for each in nest.flatten(value)]
        if further and all(isinstance(each, Tensor) and each in history() for each in further):
            inputs, named = [inputs, *further], dict.fromkeys(named) if self._names_both else {}
        else:
            named = {name: value for name, value in named.items() if value is not None}
        return super().__call__(inputs, **kwargs, **named)

    def _parted(self, inputs: Any, initial_state: Any, constants: Any) -> tuple[Any, Any, Any]:
        if not isinstance(inputs, list):
            return inputs, initial_state, constants
        if self._constant_count:
            inputs, constants = inputs[: -self._constant_count], inputs[-self._constant_count :]
        return inputs[0], inputs[1:] or initial_state, constants

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer; and how many constants it was called with, if any."""
        own = super().get_config()
        return {**own, "num_constants": self._constant_count} if self._constant_count else own

    @classmethod
    def _known_arguments(cls) -> set[str]:
        return {*super()._known_arguments(), "num_constants"}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """What `get_config` describes, made anew."""
        settings = dict(config)
        count = settings.pop("num_constants", 0)
        made = super().from_config(settings, custom_objects)
        made._constant_count = count
        return made


def first_of(shape: Any) -> Any:
    """The shape of the inputs, of a list of it and those of states and constants."""
    is_list = isinstance(shape, list) and isinstance(shape[0], (list, tuple, dict, TensorShape))
    return shape[0] if is_list else shape
