"""Cells that wrap other cells: stacks, dropout, residual connections, placement, projections, embeddings."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import DeviceLike, Tensor, get_default_graph
from tfray.framework.type_aliases import Activation, TensorLike
from tfray.library.layers.descriptions import described_by, restored
from tfray.library.rnn.rnn_cell_base import RNNCell, check_is_cell, zeros_of
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.variable_scope import ScopeLike, get_variable, get_variable_scope, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.math import linalg_ops
from tfray.ops.math.transcendental_ops import sigmoid
from tfray.ops.nn import nn_ops
from tfray.ops.nn.embedding_ops import embedding_lookup
from tfray.ops.random import random_ops


class MultiRNNCell(RNNCell):
    """A stack of cells: the output of each is the input of the next.

    Args:
        cells: The cells, the lowest first. Where one cell stands there twice, these layers share its weights.
        state_is_tuple: Have a tuple with the state of each cell; otherwise one tensor with all of them.
    """

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("MultiRNNCell needs at least one cell")
        if not nest.is_nested(cells):
            raise TypeError(f"MultiRNNCell takes a list of cells, not {cells!r}")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple
        self._checkpoint_dependencies = [TrackableReference(f"cell-{i}", cell) for i, cell in enumerate(self._cells)]
        if not state_is_tuple and any(nest.is_nested(cell.state_size) for cell in cells):
            raise ValueError("MultiRNNCell: cells whose states are tuples need state_is_tuple=True")

    @property
    def state_size(self) -> Any:
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        with get_default_graph().name_scope("MultiRNNCellZeroState"):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return zeros_of(self.state_size, batch_size, dtype)

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        if self._state_is_tuple:
            if not nest.is_nested(state) or len(state) != len(self._cells):
                raise InvalidArgumentError(
                    f"Expected state to be a tuple of length {len(self._cells)}, but received: {state!r}"
                )
            states = list(state)
        else:
            sizes = [cell.state_size for cell in self._cells]
            joined = convert_to_tensor(state)
            if joined.shape.rank is None or joined.shape[-1] != sum(sizes):
                # It may be wider, as in TensorFlow: that of a bidirectional encoder is given to a smaller decoder.
                joined = joined[:, : sum(sizes)]
            states = array_ops.split(joined, sizes, 1)
        current, following = inputs, []
        for index, cell in enumerate(self._cells):
            with variable_scope(f"cell_{index}"):
                current, new_state = cell(current, states[index])
                following.append(new_state)
        return current, tuple(following) if self._state_is_tuple else array_ops.concat(following, 1)


class TrackableReference(NamedTuple):
    """What an object has that is saved with it, and the name that object-based checkpoints give it."""

    name: str
    ref: Any


class _Wrapper(RNNCell):
    """Base of wrappers of one cell. A wrapper opens no variable scope, so the variables are those of the inner cell.

    Its configuration has the cell's, as a name of a class and what this is made with.
    """

    def __init__(self, cell: RNNCell, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_is_cell(cell, type(self).__name__)
        self._cell = cell

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        return [TrackableReference("cell", self._cell)]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal wrapper, with an equal cell that has weights of its own."""
        return {**super().get_config(), "cell": described_by(self._cell, self._cell.get_config())}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, object] | None = None) -> Self:
        """What `get_config` describes, made anew; ``cell`` may also be a cell.

        Raises:
            InvalidArgumentError: The cell is of a class that is not of tfray, and none of the custom objects.
        """
        cell = config["cell"]
        cell = restored(cell, custom_objects) if isinstance(cell, Mapping) else cell
        return super().from_config({**config, "cell": cell}, custom_objects)

    @property
    def wrapped_cell(self) -> Any:
        """The cell within."""
        return self._cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class DropoutWrapper(_Wrapper):
    """Dropout on the inputs, outputs and states of a cell.

    Args:
        cell: The cell.
        input_keep_prob: Probability that an element of the input is kept, a number or scalar tensor.
        output_keep_prob: Likewise for the output.
        state_keep_prob: Likewise for the state that goes to the next step; the memory ``c`` of an LSTM is spared.
        variational_recurrent: Drop the same elements in every step (Gal and Ghahramani, arXiv:1512.05287).
        input_size: Sizes of the inputs, which variational dropout of them needs.
        dtype: Their dtype, which variational dropout needs.
        seed: Seed of the operations.
        dropout_state_filter_visitor: From a part of a state to whether it may be dropped.
    """

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: TensorLike = 1.0,
        output_keep_prob: TensorLike = 1.0,
        state_keep_prob: TensorLike = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: DTypeLike | None = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be a function")
        self._input_keep_prob = _probability(input_keep_prob, "input_keep_prob")
        self._output_keep_prob = _probability(output_keep_prob, "output_keep_prob")
        self._state_keep_prob = _probability(state_keep_prob, "state_keep_prob")
        self._seed = seed
        self._dropout_state_filter = dropout_state_filter_visitor or _is_no_memory
        self._variational = variational_recurrent
        self._noises: dict[str, list[Tensor]] = {}
        if variational_recurrent:
            self._draw_noises(input_size, dtype)

    def _draw_noises(self, size: TensorLike, dtype: DTypeLike | None) -> None:
        if dtype is None:
            raise ValueError("DropoutWrapper: variational_recurrent needs dtype")
        if _drops(self._input_keep_prob) and size is None:
            raise ValueError("DropoutWrapper: variational_recurrent with input_keep_prob below 1 needs input_size")

        def noises(salt: str, sizes: Any) -> list[Tensor]:
            return [
                random_ops.random_uniform(
                    [1, *([each] if isinstance(each, int) else each)], dtype=dtype, seed=self._seed_for(salt, index)
                )
                for index, each in enumerate(nest.flatten(sizes))
            ]

        if _drops(self._input_keep_prob):
            self._noises["input"] = noises("input", size)
        if _drops(self._state_keep_prob):
            self._noises["state"] = noises("state", self._cell.state_size)
        if _drops(self._output_keep_prob):
            self._noises["output"] = noises("output", self._cell.output_size)

    def _seed_for(self, salt: str, index: int) -> int | None:
        return None if self._seed is None else zlib.crc32(f"{self._seed}/{salt}_{index}".encode()) & 0x7FFFFFFF

    def __call__(self, inputs: TensorLike, state: Any, scope: ScopeLike | None = None) -> Any:
        if _drops(self._input_keep_prob):
            inputs = self._dropped(inputs, "input", self._input_keep_prob)
        output, new_state = self._cell(inputs, state) if scope is None else self._cell(inputs, state, scope=scope)
        if _drops(self._state_keep_prob):
            new_state = self._dropped(new_state, "state", self._state_keep_prob, self._dropout_state_filter)
        if _drops(self._output_keep_prob):
            output = self._dropped(output, "output", self._output_keep_prob)
        return output, new_state

    def _dropped(
        self, values: TensorLike, salt: str, keep_prob: TensorLike, may_drop: Callable[[Any], Any] = lambda _: True
    ) -> Any:
        flags = _flags(may_drop, values)
        leaves = []
        for index, (value, drops) in enumerate(zip(nest.flatten(values), flags, strict=True)):
            leaves.append(self._drop(convert_to_tensor(value), salt, index, keep_prob) if drops else value)
        return nest.pack_sequence_as(values, leaves)

    def _drop(self, value: Tensor, salt: str, index: int, keep_prob: TensorLike) -> Tensor:
        if not self._variational:
            return nn_ops.dropout(value, keep_prob, seed=self._seed_for(salt, index))
        keep_prob = convert_to_tensor(keep_prob, value.dtype)
        result = value / keep_prob * _kept(keep_prob, self._noises[salt][index])
        result.set_shape(value.shape)
        return result


def _kept(keep_prob: Tensor, noise: Tensor) -> Tensor:
    """1 where the uniform `noise` says that an element stays, otherwise 0."""
    return array_ops.cast(noise + keep_prob >= 1.0, noise.dtype)


def _probability(value: Any, what: str) -> Any:
    if isinstance(value, Variable):
        return value
    known = constant_value(value) if isinstance(value, Tensor) else value
    if known is not None and not 0.0 < float(known) <= 1.0:
        raise ValueError(f"DropoutWrapper: parameter {what} must be between 0 and 1: {float(known)}")
    return value


def _drops(probability: Any) -> bool:
    return isinstance(probability, (Tensor, Variable)) or float(probability) < 1.0


def _is_no_memory(part: Any) -> Any:
    """Which parts of a state may be dropped. Of an LSTM's state the output may, the memory may not."""
    if hasattr(part, "c") and hasattr(part, "h") and hasattr(part, "_fields"):
        return [name != "c" for name in part._fields]
    return True


def _flags(may_drop: Callable[[Any], Any], values: Any) -> list[bool]:
    """For every leaf of `values`, whether `may_drop` allows it. It is asked for outer structures first."""
    answer = may_drop(values)
    if not nest.is_nested(values):
        return [bool(nest.flatten(answer)[0])]
    if answer is False:
        return [False] * len(nest.flatten(values))
    parts = [values[key] for key in sorted(values)] if isinstance(values, dict) else list(values)
    answers = nest.flatten(answer) if nest.is_nested(answer) else [True] * len(parts)
    flags: list[bool] = []
    for part, allowed in zip(parts, answers, strict=True):
        if nest.is_nested(part):
            flags += _flags(may_drop, part) if allowed else [False] * len(nest.flatten(part))
        else:
            flags.append(bool(allowed) and bool(nest.flatten(may_drop(part))[0]))
    return flags


class ResidualWrapper(_Wrapper):
    """Adds the inputs of a cell to its outputs.

    Args:
        cell: The cell.
        residual_fn: Function of inputs and outputs in place of their sum.
    """

    def __init__(self, cell: RNNCell, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn or _sum_of_both

    def __call__(self, inputs: TensorLike, state: Any, scope: ScopeLike | None = None) -> Any:
        outputs, new_state = self._cell(inputs, state) if scope is None else self._cell(inputs, state, scope=scope)
        return self._residual_fn(inputs, outputs), new_state


def _sum_of_both(inputs: TensorLike, outputs: Any) -> Any:
    return nest.map_structure(lambda x, y: convert_to_tensor(x) + y, inputs, outputs)


class HighwayWrapper(_Wrapper):
    """A highway: a learned gate mixes the inputs of a cell with its outputs.

    Args:
        cell: The cell, whose output has the size of its input.
        couple_carry_transform_gates: Let one gate be one minus the other.
        carry_bias_init: Initial bias of the carry gate.
    """

    def __init__(self, cell: RNNCell, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0) -> None:
        super().__init__(cell)
        self._coupled = couple_carry_transform_gates
        self._carry_bias = carry_bias_init

    def __call__(self, inputs: Any, state: Any, scope: ScopeLike | None = None) -> Any:
        outputs, new_state = self._cell(inputs, state) if scope is None else self._cell(inputs, state, scope=scope)
        carry = _gate("carry", inputs, self._carry_bias)
        transform = 1.0 - carry if self._coupled else _gate("transform", inputs, -self._carry_bias)
        return inputs * carry + outputs * transform, new_state


def _gate(name: str, inputs: Tensor, bias: float) -> Tensor:
    size = inputs.shape.as_list()[-1]
    weight = get_variable(f"{name}_w", [size, size], inputs.dtype)
    shift = get_variable(f"{name}_b", [size], inputs.dtype, initializers.Constant(bias))
    return sigmoid(nn_ops.bias_add(linalg_ops.matmul(inputs, weight), shift))


class DeviceWrapper(_Wrapper):
    """Runs a cell on one device.

    Args:
        cell: The cell.
        device: The device, as for `tf.device`.
    """

    def __init__(self, cell: RNNCell, device: DeviceLike, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        with get_default_graph().device(self._device):
            return super().zero_state(batch_size, dtype)

    def __call__(self, inputs: TensorLike, state: Any, scope: ScopeLike | None = None) -> Any:
        with get_default_graph().device(self._device):
            return self._cell(inputs, state) if scope is None else self._cell(inputs, state, scope=scope)


class CompiledWrapper(DeviceWrapper):
    """A cell as it is: sessions compile what they run anyway.

    Args:
        cell: The cell.
        compile_stateful: Accepted for TensorFlow 1's sake.
    """

    def __init__(self, cell: RNNCell, compile_stateful: bool = False) -> None:
        super().__init__(cell, "")


class InputProjectionWrapper(_Wrapper):
    """A linear layer before a cell.

    Args:
        cell: The cell.
        num_proj: Size of what the cell gets.
        activation: Function of the projected inputs.
        input_size: Not used; kept for the position of arguments.
        reuse: Use variables that exist.
    """

    def __init__(
        self,
        cell: RNNCell,
        num_proj: int,
        activation: Activation | None = None,
        input_size: None = None,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(cell)
        self._num_proj = num_proj
        self._activation = activation
        self._reuse = reuse

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        projected = linear(inputs, self._num_proj, True)
        return self._cell(projected if self._activation is None else self._activation(projected), state)


class OutputProjectionWrapper(_Wrapper):
    """A linear layer after a cell. One layer after the whole network, over all steps at once, is faster.

    Args:
        cell: The cell.
        output_size: Size of the output.
        activation: Function of the projected outputs.
        reuse: Use variables that exist.
    """

    def __init__(
        self, cell: RNNCell, output_size: int, activation: Activation | None = None, reuse: Reuse | None = None
    ) -> None:
        super().__init__(cell)
        if output_size < 1:
            raise ValueError(f"OutputProjectionWrapper: output_size is {output_size}, expected at least 1")
        self._output_size = output_size
        self._activation = activation
        self._reuse = reuse

    @property
    def output_size(self) -> Any:
        return self._output_size

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        outputs, new_state = self._cell(inputs, state)
        projected = linear(outputs, self._output_size, True)
        return projected if self._activation is None else self._activation(projected), new_state


class EmbeddingWrapper(_Wrapper):
    """Looks up the inputs of a cell, which are ids, in a table that is learned. One lookup for all steps is faster.

    Args:
        cell: The cell.
        embedding_classes: Number of ids.
        embedding_size: Size of what the cell gets.
        initializer: Initializer of the table; uniform with variance 1 when None.
        reuse: Use variables that exist.
    """

    def __init__(
        self,
        cell: RNNCell,
        embedding_classes: int,
        embedding_size: int,
        initializer: InitializerLike | None = None,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(cell)
        if embedding_classes < 1 or embedding_size < 1:
            raise ValueError("EmbeddingWrapper: embedding_classes and embedding_size must be at least 1")
        self._classes = embedding_classes
        self._size = embedding_size
        self._initializer = initializer
        self._reuse = reuse

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        initializer = self._initializer or get_variable_scope().initializer
        if initializer is None:
            initializer = initializers.RandomUniform(-(3**0.5), 3**0.5)
        dtype = nest.flatten(state)[0].dtype
        table = get_variable("embedding", [self._classes, self._size], dtype, initializer)
        return self._cell(embedding_lookup(table, array_ops.reshape(inputs, [-1])), state)


def linear(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: InitializerLike | None = None,
    kernel_initializer: InitializerLike | None = None,
) -> Any:
    """``concat(args, 1) @ kernel + bias``, with variables of the current scope.

    Args:
        args: A tensor ``[batch, size]``, or a list of them.
        output_size: Size of the result.
        bias: Have a bias.
        bias_initializer: Its initializer; zeros when None.
        kernel_initializer: Initializer of the weights.
    """
    parts = [convert_to_tensor(part) for part in (args if isinstance(args, (list, tuple)) else [args])]
    sizes = [part.shape.as_list()[-1] if part.shape.rank == 2 else None for part in parts]
    if None in sizes:
        raise ValueError(f"linear takes matrices whose second dimension is known, not {parts}")
    dtype = parts[0].dtype
    kernel = get_variable("kernel", [sum(size or 0 for size in sizes), output_size], dtype, kernel_initializer)
    result = linalg_ops.matmul(parts[0] if len(parts) == 1 else array_ops.concat(parts, 1), kernel)
    if not bias:
        return result
    return nn_ops.bias_add(result, get_variable("bias", [output_size], dtype, bias_initializer or initializers.Zeros()))
