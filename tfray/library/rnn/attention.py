"""Attention: mechanisms that weight the states of an encoder, and the cell that uses them in every step."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.layers.core_layers import Dense
from tfray.library.rnn.rnn_cell_base import RNNCell, batch_size_of, check_is_cell, zeros_of
from tfray.library.variables import initializers
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.checks.check_ops import assert_equal
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.math.search_ops import argmax
from tfray.ops.math.transcendental_ops import tanh
from tfray.ops.nn.cross_entropy_ops import softmax


class AttentionMechanism:
    """Gives a weight to every entry of a memory.

    Args:
        memory: Shape ``[batch, time, size]``: mostly the outputs of an encoder.
        memory_sequence_length: Lengths ``[batch]``: later entries get weight 0.
        query_layer: Layer through which queries pass; None for none.
        memory_layer: Layer that makes the keys from the memory; None for none.
        probability_fn: From scores ``[batch, time]`` to weights; `softmax` when None.
        score_mask_value: Score of entries past the end.

    Attributes:
        keys: What queries are compared with, ``[batch, time, units]``.
        values: The memory, zeros past the ends.
    """

    def __init__(
        self,
        memory: TensorLike,
        memory_sequence_length: TensorLike | None = None,
        query_layer: Any = None,
        memory_layer: Any = None,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: float | None = None,
    ) -> None:
        self.query_layer = query_layer
        self.memory_layer = memory_layer
        self._probability_fn = probability_fn or softmax
        self._mask_value = -np.inf if score_mask_value is None else score_mask_value
        memory = convert_to_tensor(memory)
        if memory.shape.rank not in (None, 3):
            raise InvalidArgumentError(f"attention: memory has shape {memory.shape}, expected [batch, time, size]")
        self._mask: Tensor | None = None
        if memory_sequence_length is not None:
            self._mask = array_ops.sequence_mask(memory_sequence_length, array_ops.shape(memory)[1])
            memory = memory * array_ops.expand_dims(array_ops.cast(self._mask, memory.dtype), 2)
        self.values = memory
        self.keys = memory if memory_layer is None else memory_layer(memory)
        self.batch_size = batch_size_of(self.keys)
        self._alignments_size = batch_size_of(self.keys, 1)

    @property
    def alignments_size(self) -> Any:
        """Number of entries of the memory."""
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        """Size of the state: the last weights."""
        return self._alignments_size

    def initial_alignments(self, batch_size: TensorLike, dtype: DTypeLike) -> Tensor:
        """The weights before the first step: zeros."""
        sizes = [batch_size, self._alignments_size]
        zeros = array_ops.zeros(array_ops.stack(sizes) if any(isinstance(s, Tensor) for s in sizes) else sizes, dtype)
        zeros.set_shape([size if isinstance(size, int) else None for size in sizes])
        return zeros

    def initial_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Tensor:
        """The state before the first step."""
        return self.initial_alignments(batch_size, dtype)

    def weights(self, score: Tensor) -> Tensor:
        """The weights for scores ``[batch, time]``."""
        if self._mask is not None:
            masked = array_ops.ones_like(score) * convert_to_tensor(self._mask_value, score.dtype)
            score = array_ops.where(self._mask, score, masked)
        return self._probability_fn(score)


class BahdanauAttention(AttentionMechanism):
    """Additive attention (Bahdanau et al., arXiv:1409.0473): ``v . tanh(keys + W query)``.

    Args:
        num_units: Size of the keys.
        memory: As for `AttentionMechanism`.
        memory_sequence_length: Likewise.
        normalize: Normalise ``v`` (Salimans and Kingma, arXiv:1602.07868).
        probability_fn: As for `AttentionMechanism`.
        score_mask_value: Likewise.
        dtype: Dtype of the layers.
        name: Name of the scope in which the keys are made.
    """

    def __init__(
        self,
        num_units: int,
        memory: TensorLike,
        memory_sequence_length: TensorLike | None = None,
        normalize: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: float | None = None,
        dtype: DTypeLike | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        self._num_units = num_units
        self._normalize = normalize
        dtype = dtypes.float32 if dtype is None else dtype
        super().__init__(
            memory,
            memory_sequence_length,
            Dense(num_units, name="query_layer", use_bias=False, dtype=dtype),
            Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype),
            probability_fn,
            score_mask_value,
        )

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        """The weights for a query ``[batch, size]``, and the next state."""
        with variable_scope(None, "bahdanau_attention"):
            projected = array_ops.expand_dims(self.query_layer(query), 1)
            v = get_variable("attention_v", [self._num_units], query.dtype)
            inner = self.keys + projected
            if self._normalize:
                scale = initializers.Constant(math.sqrt(1.0 / self._num_units))
                g = get_variable("attention_g", [], query.dtype, scale)
                b = get_variable("attention_b", [self._num_units], query.dtype, initializers.Zeros())
                v = g * v * math_ops.rsqrt(math_ops.reduce_sum(math_ops.square(v)))
                inner = inner + b
            alignments = self.weights(math_ops.reduce_sum(v * tanh(inner), [2]))
        return alignments, alignments


class LuongAttention(AttentionMechanism):
    """Multiplicative attention (Luong et al., arXiv:1508.04025): ``keys . query``.

    Args:
        num_units: Size of the keys, and of the queries.
        memory: As for `AttentionMechanism`.
        memory_sequence_length: Likewise.
        scale: Multiply the scores by a number that is learned.
        probability_fn: As for `AttentionMechanism`.
        score_mask_value: Likewise.
        dtype: Dtype of the layer.
        name: Name of the scope in which the keys are made.
    """

    def __init__(
        self,
        num_units: int,
        memory: TensorLike,
        memory_sequence_length: TensorLike | None = None,
        scale: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: float | None = None,
        dtype: DTypeLike | None = None,
        name: str = "LuongAttention",
    ) -> None:
        self._num_units = num_units
        self._scale = scale
        super().__init__(
            memory,
            memory_sequence_length,
            None,
            Dense(num_units, name="memory_layer", use_bias=False, dtype=dtypes.float32 if dtype is None else dtype),
            probability_fn,
            score_mask_value,
        )

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        """The weights for a query ``[batch, num_units]``, and the next state."""
        with variable_scope(None, "luong_attention"):
            depth = query.shape.as_list()[-1]
            if depth != self._num_units:
                raise ValueError(
                    f"LuongAttention: the query has size {depth}, and the keys {self._num_units}: they must agree; "
                    "set num_units to the size of the cell's output"
                )
            score = linalg_ops.matmul(array_ops.expand_dims(query, 1), self.keys, transpose_b=True)
            score = array_ops.squeeze(score, [1])
            if self._scale:
                score = get_variable("attention_g", [], query.dtype, initializers.Ones()) * score
            alignments = self.weights(score)
        return alignments, alignments


def hardmax(logits: TensorLike, name: str | None = None) -> Tensor:
    """1 for the largest of `logits` along the last axis, 0 for the others: same shape and dtype."""
    logits = convert_to_tensor(logits)
    with get_default_graph().name_scope(name or "Hardmax"):
        depth = batch_size_of(logits, -1)
        return array_ops.one_hot(argmax(logits, -1), depth, dtype=logits.dtype)


class AttentionWrapperState(
    collections.namedtuple(
        "AttentionWrapperState",
        ["cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"],
    )
):
    """The state of an `AttentionWrapper`.

    Attributes:
        cell_state: State of the cell within.
        attention: What the last step attended to.
        time: Number of steps.
        alignments: The last weights, of each mechanism.
        alignment_history: The weights of all steps, a `TensorArray`; ``()`` when they are not kept.
        attention_state: State of each mechanism.
    """

    __slots__ = ()

    def clone(self, **changes: Any) -> AttentionWrapperState:
        """A copy with other values, such as ``cell_state=encoder_state``."""

        def fitting(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                new.set_shape(old.shape)
            return new

        replaced = self._replace(**changes)
        return nest.map_structure(fitting, self, replaced)


class AttentionWrapper(RNNCell):
    """A cell with attention: in each step it gets its input joined with the attention of the step before.

    Args:
        cell: The cell.
        attention_mechanism: An `AttentionMechanism`, or a list of them.
        attention_layer_size: Size of the layer over output and context that makes the attention (a list for several
            mechanisms). When None the attention is the context.
        alignment_history: Keep the weights of all steps in the state.
        cell_input_fn: From input and attention to what the cell gets; both joined when None.
        output_attention: Return the attention as the output; otherwise the cell's output.
        initial_cell_state: State of the cell in `zero_state`.
        name: Name of the layer.
        attention_layer: Layer in place of the one that `attention_layer_size` makes (a list for several mechanisms).
    """

    def __init__(
        self,
        cell: RNNCell,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Tensor, Tensor], Tensor] | None = None,
        output_attention: bool = True,
        initial_cell_state: Structure = None,
        name: str | None = None,
        attention_layer: Any = None,
    ) -> None:
        super().__init__(name=name)
        check_is_cell(cell, "AttentionWrapper")
        self._cell = cell
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._mechanisms = list(attention_mechanism) if self._is_multi else [attention_mechanism]
        if any(not isinstance(mechanism, AttentionMechanism) for mechanism in self._mechanisms):
            raise TypeError(f"AttentionWrapper takes attention mechanisms, not {attention_mechanism!r}")
        self._layers = self._attention_layers(attention_layer_size, attention_layer)
        self._keeps_history = alignment_history
        self._cell_input_fn = cell_input_fn or (lambda inputs, attention: array_ops.concat([inputs, attention], -1))
        self._outputs_attention = output_attention
        self._initial_cell_state = initial_cell_state

    def _attention_layers(self, sizes: Any, layers: Any) -> list[Any]:
        if sizes is not None and layers is not None:
            raise ValueError("AttentionWrapper: give attention_layer_size or attention_layer, not both")
        given = layers if sizes is None else sizes
        listed = list(given) if isinstance(given, (list, tuple)) else [given] * (1 if not self._is_multi else 0)
        if given is None:
            return [None] * len(self._mechanisms)
        if len(listed) != len(self._mechanisms):
            raise ValueError(f"AttentionWrapper: {len(self._mechanisms)} mechanisms need as many attention layers")
        if sizes is None:
            return listed
        return [
            Dense(size, name="attention_layer", use_bias=False, dtype=mechanism.values.dtype)
            for size, mechanism in zip(listed, self._mechanisms, strict=True)
        ]

    @property
    def _attention_size(self) -> int:
        total = 0
        for layer, mechanism in zip(self._layers, self._mechanisms, strict=True):
            values = mechanism.values.shape
            if layer is None:
                total += values.as_list()[-1]
                continue
            cell_size = self._cell.output_size
            depth = (cell_size if isinstance(cell_size, int) else TensorShape(cell_size).as_list()[-1]) or 0
            total += layer.compute_output_shape([None, depth + values.as_list()[-1]]).as_list()[-1]
        return total

    def _per_mechanism(self, values: Sequence[Any]) -> Any:
        return tuple(values) if self._is_multi else values[0]

    @property
    def output_size(self) -> Any:
        return self._attention_size if self._outputs_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._attention_size,
            time=TensorShape([]),
            alignments=self._per_mechanism([m.alignments_size for m in self._mechanisms]),
            alignment_history=self._per_mechanism([() for _ in self._mechanisms]),
            attention_state=self._per_mechanism([m.state_size for m in self._mechanisms]),
        )

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> AttentionWrapperState:
        """The state before the first step. `clone` it with ``cell_state=`` to begin from an encoder's state."""
        with get_default_graph().name_scope("AttentionWrapperZeroState"):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            checks = [self._batch_check(mechanism, batch_size) for mechanism in self._mechanisms]
            with get_default_graph().control_dependencies([check for check in checks if check is not None]):
                cell_state = nest.map_structure(array_ops.identity, cell_state)
            alignments = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
            histories = [
                TensorArray(dtype, 0, dynamic_size=True, element_shape=tensor.shape) if self._keeps_history else ()
                for tensor in alignments
            ]
            return AttentionWrapperState(
                cell_state=cell_state,
                attention=zeros_of(self._attention_size, batch_size, dtype),
                time=array_ops.zeros([], dtypes.int32),
                alignments=self._per_mechanism(alignments),
                alignment_history=self._per_mechanism(histories),
                attention_state=self._per_mechanism([m.initial_state(batch_size, dtype) for m in self._mechanisms]),
            )

    def _batch_check(self, mechanism: AttentionMechanism, batch_size: TensorLike) -> Any:
        known = isinstance(mechanism.batch_size, int) and isinstance(batch_size, int)
        if known and mechanism.batch_size == batch_size:
            return None
        message = (
            "AttentionWrapper: the memory has another batch size than the state; with a beam search decoder, tile "
            "the memory, its lengths and the encoder's state by tf.contrib.seq2seq.tile_batch"
        )
        if known:
            raise InvalidArgumentError(f"{message} ({mechanism.batch_size} and {batch_size!r})")
        return assert_equal(batch_size, mechanism.batch_size, message=message)

    def call(self, inputs: Tensor, state: Any) -> Any:  # type: ignore[override]
        """One step: its output, and an `AttentionWrapperState`."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                f"AttentionWrapper: the state is {state!r}, expected an AttentionWrapperState: begin with "
                "zero_state(batch_size, dtype), and clone(cell_state=...) to set the state of the cell"
            )
        cell_output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        states = state.attention_state if self._is_multi else [state.attention_state]
        histories = state.alignment_history if self._is_multi else [state.alignment_history]
        attentions, alignments, next_states, next_histories = [], [], [], []
        for mechanism, layer, before, history in zip(self._mechanisms, self._layers, states, histories, strict=True):
            attention, weights, next_state = _attend(mechanism, cell_output, before, layer)
            attentions.append(attention)
            alignments.append(weights)
            next_states.append(next_state)
            next_histories.append(history.write(state.time, weights) if self._keeps_history else ())
        attention = attentions[0] if len(attentions) == 1 else array_ops.concat(attentions, 1)
        following = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=state.time + 1,
            alignments=self._per_mechanism(alignments),
            alignment_history=self._per_mechanism(next_histories),
            attention_state=self._per_mechanism(next_states),
        )
        return (attention if self._outputs_attention else cell_output), following


def _attend(mechanism: Any, cell_output: Tensor, state: Any, layer: Any) -> tuple[Tensor, Tensor, Any]:
    """The attention vector for a cell's output, the weights, and the mechanism's next state."""
    alignments, next_state = mechanism(cell_output, state)
    context = linalg_ops.matmul(array_ops.expand_dims(alignments, 1), mechanism.values)
    context = array_ops.squeeze(context, [1])
    attention = context if layer is None else layer(array_ops.concat([cell_output, context], 1))
    return attention, alignments, next_state
