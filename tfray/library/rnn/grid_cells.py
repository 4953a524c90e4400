"""Grids of recurrent cells, one for each dimension: those of ``tf.contrib.grid_rnn``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import Activation
from tfray.library.layers.slim_layers import GLOROT, fully_connected
from tfray.library.platform import logging
from tfray.library.rnn.rnn_cell_base import RNNCell, batch_size_of
from tfray.library.rnn.rnn_cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell
from tfray.library.variables.variable_scope import ScopeLike, get_variable, get_variable_scope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.math import linalg_ops
from tfray.ops.nn.activation_ops import relu

Dims = int | Sequence[int] | None
"""One dimension, or several; None for none."""


class GridRNNCell(RNNCell):
    """A grid with a cell in each dimension, which reads the outputs of all (Kalchbrenner et al., arXiv:1507.01526).

    Args:
        num_units: Size of the outputs of cells.
        num_dims: How many dimensions there are.
        input_dims: Dimensions that receive inputs.
        output_dims: Dimensions whose outputs are those of the grid.
        priority_dims: Dimensions that are computed after the others, from their new outputs.
        non_recurrent_dims: Dimensions without state: dense layers.
        tied: All dimensions have the same weights.
        cell_fn: Function from `num_units` to a cell; `LSTMCell` when None.
        non_recurrent_fn: Activation of the dense layers; `tf.nn.relu` when None.
        state_is_tuple: States are tuples with the state of each recurrent dimension; otherwise they are joined.
        output_is_tuple: Likewise for outputs.

    Raises:
        TypeError: `cell_fn` gives no cell.
        ValueError: There is no dimension, or not that one.
    """

    def __init__(
        self,
        num_units: int,
        num_dims: int = 1,
        input_dims: Dims = None,
        output_dims: Dims = None,
        priority_dims: Dims = None,
        non_recurrent_dims: Dims = None,
        tied: bool = False,
        cell_fn: Callable[[int], RNNCell] | None = None,
        non_recurrent_fn: Activation | None = None,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        super().__init__()
        for what, is_tuple in (("state", state_is_tuple), ("output", output_is_tuple)):
            if not is_tuple:
                logging.warning("%s: a joined %s is slower: use %s_is_tuple=True", self, what, what)
        if num_dims < 1:
            raise ValueError(f"dims must be >= 1: {num_dims}")
        self._num_units, self._num_dims, self._tied = num_units, num_dims, tied
        self._inputs, self._outputs, priority, flat = (
            _checked(dims, num_dims) for dims in (input_dims, output_dims, priority_dims, non_recurrent_dims)
        )
        self._order = [[i for i in range(num_dims) if i not in priority], priority]
        self._recurrent = [i for i in range(num_dims) if i not in flat]
        self._non_recurrent_fn = non_recurrent_fn or relu
        self._state_is_tuple, self._output_is_tuple = state_is_tuple, output_is_tuple
        make = cell_fn or functools.partial(LSTMCell, state_is_tuple=state_is_tuple)
        self._cells = [make(num_units)] * num_dims if tied else [make(num_units) for _ in range(num_dims)]
        if not isinstance(self._cells[0], RNNCell):
            raise TypeError(f"cell_fn must return an RNNCell instance, saw: {type(self._cells[0])}")

    @property
    def output_size(self) -> Any:
        size = self._cells[0].output_size
        return (size,) * len(self._outputs) if self._output_is_tuple else size * len(self._outputs)

    @property
    def state_size(self) -> Any:
        size = self._cells[0].state_size
        return (size,) * len(self._recurrent) if self._state_is_tuple else sum(self._sizes) * len(self._recurrent)

    @property
    def _sizes(self) -> list[int]:
        """Sizes of the state of a dimension: one, or those of a memory and an output."""
        size = self._cells[0].state_size
        sizes = list(size) if isinstance(size, tuple) else [size]
        return [self._num_units, sizes[0] - self._num_units] if sizes[0] > self._num_units else sizes

    def __call__(self, inputs: Any, state: Any, scope: ScopeLike | None = None) -> Any:
        """Run one step.

        Args:
            inputs: Shape ``[batch, size]``, cut into as many parts as there are dimensions with inputs; or a tuple of
                these parts; or None.
            state: The states, of the sizes in `state_size`.
            scope: Variable scope; by default one named after the class.

        Returns:
            The outputs and the new states, as `output_is_tuple` and `state_is_tuple` say.
        """
        with variable_scope(scope or type(self).__name__, custom_getter=self._remembering):
            memories, outputs = self._parts_of(state)
            self._project(inputs, memories, outputs)
            new: list[Any] = [None] * self._num_dims
            new_states: list[Any] = [None] * self._num_dims
            for is_first, dims in zip((True, False), self._order, strict=True):
                self._propagate(dims, is_first, memories, outputs, new, new_states)
        given: Any = tuple(new[i] for i in self._outputs)
        kept: Any = tuple(new_states[i] for i in self._recurrent)
        if not self._output_is_tuple:
            given = _joined(given, outputs[0])
        if not self._state_is_tuple:
            kept = _joined(
                [part for each in kept for part in (each if isinstance(each, tuple) else [each])], outputs[0]
            )
        return given, kept

    def _parts_of(self, state: Any) -> tuple[list[Any], list[Any]]:
        """The memories and the last outputs by dimension; None where there is none."""
        memories: list[Any] = [None] * self._num_dims
        outputs: list[Any] = [None] * self._num_dims
        sizes = self._sizes
        if self._state_is_tuple:
            if len(state) != len(self._recurrent):
                raise ValueError(f"Expected state as a tuple of {len(self._recurrent)} element")
        else:
            parts = array_ops.split(state, sizes * len(self._recurrent), 1)
            state = [parts[i * len(sizes) : (i + 1) * len(sizes)] for i in range(len(self._recurrent))]
        for i, each in zip(self._recurrent, state, strict=True):
            if len(sizes) > 1:
                memories[i], outputs[i] = each
            else:
                outputs[i] = each if self._state_is_tuple else each[0]
        return memories, outputs

    def _project(self, inputs: Any, memories: list[Any], outputs: list[Any]) -> None:
        """Put the inputs in the place of the states of their dimensions."""
        if inputs is None or not self._inputs:
            return
        if isinstance(inputs, tuple):
            if len(inputs) != len(self._inputs):
                raise ValueError(f"Expect inputs as a tuple of {len(self._inputs)} tensors")
        elif inputs.shape.as_list()[1]:
            inputs = array_ops.split(inputs, len(self._inputs), 1)
        else:
            return
        shape = [inputs[0].shape.as_list()[1], self._num_units]
        for i, part in zip(self._inputs, inputs, strict=True):
            outputs[i] = linalg_ops.matmul(part, get_variable(f"project_m_{i}", shape, part.dtype))
            if len(self._sizes) > 1:
                memories[i] = linalg_ops.matmul(part, get_variable(f"project_c_{i}", shape, part.dtype))

    def _propagate(
        self,
        dims: list[int],
        is_first: bool,
        memories: list[Any],
        outputs: list[Any],
        new: list[Any],
        states: list[Any],
    ) -> None:
        """Compute the new outputs and states of some dimensions."""
        if not dims:
            return
        *others, last = [old if made is None else made for old, made in zip(outputs, new, strict=True)]
        seen = array_ops.concat(others, 1) if others else array_ops.zeros([batch_size_of(last), 0], last.dtype)
        for i in dims:
            kind = "recurrent" if i in self._recurrent else "non_recurrent"
            with variable_scope(kind if self._tied else f"{kind}/cell_{i}") as opened:
                if self._tied and not (is_first and i == dims[0]):
                    opened.reuse_variables()
                if i in self._recurrent:
                    state = last if memories[i] is None else (memories[i], last)
                    new[i], states[i] = self._cells[i](seen, state)
                    continue
                around = get_variable_scope()
                new[i] = fully_connected(
                    array_ops.concat([seen, last], 1),
                    self._num_units,
                    activation_fn=self._non_recurrent_fn,
                    weights_initializer=around.initializer or GLOROT,
                    weights_regularizer=around.regularizer,
                )


def _checked(dims: Dims, count: int) -> list[int]:
    found = sorted(set([] if dims is None else dims if isinstance(dims, (list, tuple)) else [dims]))
    if any(each < 0 or each >= count for each in found):
        raise ValueError(f"Invalid dims: {found}. Must be in [0, {count})")
    return found


def _joined(parts: Sequence[Tensor], like: Tensor) -> Tensor:
    return array_ops.concat(list(parts), 1) if parts else array_ops.zeros([0, 0], like.dtype)


class _FirstDimension(GridRNNCell):
    """A grid whose first dimension has the inputs and the outputs, and comes last.

    With `non_recurrent_fn` that dimension has no state.
    """

    def __init__(
        self,
        num_dims: int,
        cell_fn: Callable[[int], RNNCell],
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Activation | None = None,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        flat = None if non_recurrent_fn is None else 0
        super().__init__(
            num_units, num_dims, 0, 0, 0, flat, tied, cell_fn, non_recurrent_fn, state_is_tuple, output_is_tuple
        )


class Grid1BasicRNNCell(_FirstDimension):
    """A `BasicRNNCell` whose inputs take the place of its state; arguments as for `GridRNNCell`."""

    def __init__(self, num_units: int, state_is_tuple: bool = True, output_is_tuple: bool = True) -> None:
        super().__init__(1, BasicRNNCell, num_units, state_is_tuple=state_is_tuple, output_is_tuple=output_is_tuple)


class Grid2BasicRNNCell(_FirstDimension):
    """Two dimensions of `BasicRNNCell`; arguments as for `GridRNNCell`."""

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Activation | None = None,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        super().__init__(2, BasicRNNCell, num_units, tied, non_recurrent_fn, state_is_tuple, output_is_tuple)


class Grid1BasicLSTMCell(_FirstDimension):
    """A `BasicLSTMCell` whose inputs take the place of its state; arguments as for `GridRNNCell` and for that."""

    def __init__(
        self, num_units: int, forget_bias: float = 1, state_is_tuple: bool = True, output_is_tuple: bool = True
    ) -> None:
        cell_fn = functools.partial(BasicLSTMCell, forget_bias=forget_bias)
        super().__init__(1, cell_fn, num_units, state_is_tuple=state_is_tuple, output_is_tuple=output_is_tuple)


class Grid2BasicLSTMCell(_FirstDimension):
    """Two dimensions of `BasicLSTMCell`; arguments as for `GridRNNCell` and for that."""

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Activation | None = None,
        forget_bias: float = 1,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = functools.partial(BasicLSTMCell, forget_bias=forget_bias)
        super().__init__(2, cell_fn, num_units, tied, non_recurrent_fn, state_is_tuple, output_is_tuple)


class Grid1LSTMCell(_FirstDimension):
    """A `LSTMCell` whose inputs take the place of its state; arguments as for `GridRNNCell` and for that."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = functools.partial(LSTMCell, forget_bias=forget_bias, use_peepholes=use_peepholes)
        super().__init__(1, cell_fn, num_units, state_is_tuple=state_is_tuple, output_is_tuple=output_is_tuple)


class Grid2LSTMCell(_FirstDimension):
    """Two dimensions of `LSTMCell`; arguments as for `GridRNNCell` and for that."""

    _count = 2

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Activation | None = None,
        use_peepholes: bool = False,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = functools.partial(LSTMCell, forget_bias=forget_bias, use_peepholes=use_peepholes)
        super().__init__(self._count, cell_fn, num_units, tied, non_recurrent_fn, state_is_tuple, output_is_tuple)


class Grid3LSTMCell(Grid2LSTMCell):
    """Three dimensions of `LSTMCell`; arguments as for `Grid2LSTMCell`."""

    _count = 3


class Grid2GRUCell(_FirstDimension):
    """Two dimensions of `GRUCell`; arguments as for `GridRNNCell`."""

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Activation | None = None,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        super().__init__(2, GRUCell, num_units, tied, non_recurrent_fn, state_is_tuple, output_is_tuple)
