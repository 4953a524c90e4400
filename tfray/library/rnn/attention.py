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
    """What an `AttentionWrapper` takes: it is called with a query and its state, and returns weights and the next one.

    Programs define their own. `BaseAttentionMechanism` has what most share.
    """

    @property
    def alignments_size(self) -> Any:
        """Number of entries of the memory."""
        raise NotImplementedError(f"{type(self).__name__} must define alignments_size")

    @property
    def state_size(self) -> Any:
        """Size of the state."""
        raise NotImplementedError(f"{type(self).__name__} must define state_size")


class BaseAttentionMechanism(AttentionMechanism):
    """Gives a weight to every entry of a memory. Subclasses score the entries for a query.

    Args:
        query_layer: Layer through which queries pass; None for none.
        memory: Shape ``[batch, time, ...]``: mostly the outputs of an encoder.
        probability_fn: From scores ``[batch, time]`` and the state to weights.
        memory_sequence_length: Lengths ``[batch]``: later entries get the score `score_mask_value`.
        memory_layer: Layer that makes the keys from the memory; None for none.
        check_inner_dims_defined: The sizes of the memory behind ``time`` must be known.
        score_mask_value: Score of entries past the end; minus infinity when None.
        custom_key_value_fn: From keys and values to what takes their place.
        name: Not used.

    Attributes:
        keys: What queries are compared with, ``[batch, time, units]``.
        values: The memory, zeros past the ends.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[[Tensor, Any], Tensor],
        memory_sequence_length: TensorLike | None = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: float | None = None,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be callable, saw type: {type(probability_fn).__name__}")
        self._query_layer = query_layer
        self._memory_layer = memory_layer
        self._probability_fn: Callable[[Tensor, Any], Tensor] = lambda score, state: probability_fn(
            maybe_mask_score(score, memory_sequence_length, score_mask_value), state
        )
        self._values = prepare_memory(memory, memory_sequence_length, check_inner_dims_defined)
        self._keys = self._values
        if memory_layer is not None:
            if self._values.shape.rank not in (None, 3):
                shape = self._values.shape
                raise InvalidArgumentError(f"attention: memory has shape {shape}, expected [batch, time, size]")
            self._keys = memory_layer(self._values)
        if custom_key_value_fn is not None:
            self._keys, self._values = custom_key_value_fn(self._keys, self._values)
        self._batch_size = batch_size_of(self._keys)
        self._alignments_size = batch_size_of(self._keys, 1)

    @property
    def query_layer(self) -> Any:
        """The layer through which queries pass, or None."""
        return self._query_layer

    @property
    def memory_layer(self) -> Any:
        """The layer that makes the keys, or None."""
        return self._memory_layer

    @property
    def keys(self) -> Any:
        """What queries are compared with, ``[batch, time, units]``."""
        return self._keys

    @property
    def values(self) -> Any:
        """The memory, zeros past the ends."""
        return self._values

    @property
    def batch_size(self) -> Any:
        """The memory's: a number where it is known, otherwise a scalar."""
        return self._batch_size

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

    def initial_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        """The state before the first step."""
        return self.initial_alignments(batch_size, dtype)


def maybe_mask_score(
    score: Tensor, memory_sequence_length: TensorLike | None, score_mask_value: float | None
) -> Tensor:
    """Scores ``[batch, time]`` with `score_mask_value` past the lengths ``[batch]``; as they are without lengths."""
    if memory_sequence_length is None:
        return score
    value = -np.inf if score_mask_value is None else score_mask_value
    mask = array_ops.sequence_mask(memory_sequence_length, array_ops.shape(score)[1])
    return array_ops.where(mask, score, array_ops.ones_like(score) * convert_to_tensor(value, score.dtype))


def prepare_memory(
    memory: Any, memory_sequence_length: TensorLike | None = None, check_inner_dims_defined: bool = True
) -> Any:
    """A memory ``[batch, time, ...]``, or a structure of such, with zeros past the lengths ``[batch]``."""
    memory = nest.map_structure(lambda each: convert_to_tensor(each, name="memory"), memory)
    for each in nest.flatten(memory):
        if check_inner_dims_defined and not TensorShape(each.shape[2:]).is_fully_defined():
            raise ValueError(
                f"Expected memory {each.name} to have fully defined inner dims, but saw shape: {each.shape}"
            )
    if memory_sequence_length is None:
        return memory

    def masked(each: Tensor) -> Tensor:
        mask = array_ops.sequence_mask(memory_sequence_length, array_ops.shape(each)[1], each.dtype)
        for _ in range((each.shape.rank or 3) - 2):
            mask = array_ops.expand_dims(mask, -1)
        return each * mask

    return nest.map_structure(masked, memory)


class BahdanauAttention(BaseAttentionMechanism):
    """Additive attention (Bahdanau et al., arXiv:1409.0473): ``v . tanh(keys + W query)``.

    Args:
        num_units: Size of the keys.
        memory: As for `BaseAttentionMechanism`.
        memory_sequence_length: Likewise.
        normalize: Normalise ``v`` (Salimans and Kingma, arXiv:1602.07868).
        probability_fn: From scores ``[batch, time]`` to weights; `softmax` when None.
        score_mask_value: As for `BaseAttentionMechanism`.
        dtype: Dtype of the layers.
        custom_key_value_fn: As for `BaseAttentionMechanism`.
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
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        dtype = dtypes.float32 if dtype is None else dtype
        super().__init__(
            query_layer=dense_layer("query_layer", num_units, dtype),
            memory_layer=dense_layer("memory_layer", num_units, dtype),
            memory=memory,
            probability_fn=of_scores(probability_fn),
            custom_key_value_fn=custom_key_value_fn,
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._name = name

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The weights for a query ``[batch, size]``, and the next state."""
        with variable_scope(None, "bahdanau_attention", [query]):
            projected = self.query_layer(query) if self.query_layer else query
            score = bahdanau_score(projected, self._keys, self._normalize)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def dense_layer(name: str, units: int, dtype: DTypeLike) -> Dense:
    """The layer of queries or of the memory."""
    return Dense(units, name=name, use_bias=False, dtype=dtype)


def of_scores(probability_fn: Callable[[Tensor], Tensor] | None) -> Callable[[Tensor, Any], Tensor]:
    """A function of scores and a state that needs the scores alone: `softmax` for None."""
    function = softmax if probability_fn is None else probability_fn
    return lambda score, _: function(score)


def bahdanau_score(processed_query: Tensor, keys: Tensor, normalize: bool) -> Tensor:
    """Scores ``[batch, time]`` of keys ``[batch, time, units]`` for a query ``[batch, units]``.

    Their variables are ``attention_v``, and ``attention_g`` and ``attention_b`` for `normalize`.
    """
    units = int(keys.shape[2])
    inner = keys + array_ops.expand_dims(processed_query, 1)
    v = get_variable("attention_v", [units], processed_query.dtype)
    if normalize:
        scale = initializers.Constant(math.sqrt(1.0 / units))
        g = get_variable("attention_g", [], processed_query.dtype, scale)
        b = get_variable("attention_b", [units], processed_query.dtype, initializers.Zeros())
        v = g * v * math_ops.rsqrt(math_ops.reduce_sum(math_ops.square(v)))
        inner = inner + b
    return math_ops.reduce_sum(v * tanh(inner), [2])


class LuongAttention(BaseAttentionMechanism):
    """Multiplicative attention (Luong et al., arXiv:1508.04025): ``keys . query``.

    Args:
        num_units: Size of the keys, and of the queries.
        memory: As for `BaseAttentionMechanism`.
        memory_sequence_length: Likewise.
        scale: Multiply the scores by a number that is learned.
        probability_fn: From scores ``[batch, time]`` to weights; `softmax` when None.
        score_mask_value: As for `BaseAttentionMechanism`.
        dtype: Dtype of the layer.
        custom_key_value_fn: As for `BaseAttentionMechanism`.
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
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory_layer=dense_layer("memory_layer", num_units, dtypes.float32 if dtype is None else dtype),
            memory=memory,
            probability_fn=of_scores(probability_fn),
            custom_key_value_fn=custom_key_value_fn,
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._name = name

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The weights for a query ``[batch, num_units]``, and the next state."""
        with variable_scope(None, "luong_attention", [query]):
            score = luong_score(query, self._keys, self._scale)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def luong_score(query: Tensor, keys: Tensor, scale: bool) -> Tensor:
    """Scores ``[batch, time]`` of keys ``[batch, time, units]`` for a query ``[batch, units]``.

    For `scale` they have a variable ``attention_g``.

    Raises:
        ValueError: Query and keys have different sizes.
    """
    depth, units = query.shape.as_list()[-1], keys.shape.as_list()[-1]
    if depth != units:
        raise ValueError(
            f"LuongAttention: the query has size {depth}, and the keys {units}: they must agree; "
            "set num_units to the size of the cell's output"
        )
    score = linalg_ops.matmul(array_ops.expand_dims(query, 1), keys, transpose_b=True)
    score = array_ops.squeeze(score, [1])
    if scale:
        score = get_variable("attention_g", [], query.dtype, initializers.Ones()) * score
    return score


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


_OTHER_BATCH = (
    "AttentionWrapper: the memory has another batch size than the state; with a beam search decoder, tile "
    "the memory, its lengths and the encoder's state by tf.contrib.seq2seq.tile_batch"
)


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
        # The names of these parts are TensorFlow's: subclasses of programs use them.
        self._attention_mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        if any(not isinstance(mechanism, AttentionMechanism) for mechanism in self._attention_mechanisms):
            raise TypeError(f"AttentionWrapper takes attention mechanisms, not {attention_mechanism!r}")
        self._attention_layers = self._made_layers(attention_layer_size, attention_layer)
        self._alignment_history = alignment_history
        self._cell_input_fn = cell_input_fn or (lambda inputs, attention: array_ops.concat([inputs, attention], -1))
        self._output_attention = output_attention
        self._initial_cell_state = initial_cell_state

    def _made_layers(self, sizes: Any, layers: Any) -> tuple[Any, ...] | None:
        if sizes is not None and layers is not None:
            raise ValueError("AttentionWrapper: give attention_layer_size or attention_layer, not both")
        given = layers if sizes is None else sizes
        listed = list(given) if isinstance(given, (list, tuple)) else [given] * (1 if not self._is_multi else 0)
        if given is None:
            return None
        if len(listed) != len(self._attention_mechanisms):
            raise ValueError(
                f"AttentionWrapper: {len(self._attention_mechanisms)} mechanisms need as many attention layers"
            )
        if sizes is None:
            return tuple(listed)
        return tuple(
            dense_layer("attention_layer", size, mechanism.values.dtype)
            for size, mechanism in zip(listed, self._attention_mechanisms, strict=True)
        )

    def _layer(self, index: int) -> Any:
        return self._attention_layers[index] if self._attention_layers else None

    @property
    def _attention_layer_size(self) -> int:
        total = 0
        for index, mechanism in enumerate(self._attention_mechanisms):
            layer = self._layer(index)
            values = mechanism.values.shape
            if layer is None:
                total += values.as_list()[-1]
                continue
            cell_size = self._cell.output_size
            depth = (cell_size if isinstance(cell_size, int) else TensorShape(cell_size).as_list()[-1]) or 0
            total += layer.compute_output_shape([None, depth + values.as_list()[-1]]).as_list()[-1]
        return total

    def _item_or_tuple(self, values: Sequence[Any]) -> Any:
        return tuple(values) if self._is_multi else values[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._attention_layer_size,
            time=TensorShape([]),
            alignments=self._item_or_tuple([m.alignments_size for m in self._attention_mechanisms]),
            # Of a history, a `TensorArray`, it is the size of one element: the structure is that of the zero state.
            alignment_history=self._item_or_tuple(
                [m.alignments_size if self._alignment_history else () for m in self._attention_mechanisms]
            ),
            attention_state=self._item_or_tuple([m.state_size for m in self._attention_mechanisms]),
        )

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> AttentionWrapperState:
        """The state before the first step. `clone` it with ``cell_state=`` to begin from an encoder's state."""
        with get_default_graph().name_scope("AttentionWrapperZeroState"):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            with get_default_graph().control_dependencies(self._batch_size_checks(batch_size)):
                cell_state = nest.map_structure(array_ops.identity, cell_state)
            alignments = [m.initial_alignments(batch_size, dtype) for m in self._attention_mechanisms]
            states = [m.initial_state(batch_size, dtype) for m in self._attention_mechanisms]
            histories = [
                TensorArray(dtype, 0, dynamic_size=True, element_shape=tensor.shape) if self._alignment_history else ()
                for tensor in alignments
            ]
            return AttentionWrapperState(
                cell_state=cell_state,
                attention=zeros_of(self._attention_layer_size, batch_size, dtype),
                time=array_ops.zeros([], dtypes.int32),
                alignments=self._item_or_tuple(alignments),
                alignment_history=self._item_or_tuple(histories),
                attention_state=self._item_or_tuple(states),
            )

    def _batch_size_checks(self, batch_size: TensorLike, error_message: str = _OTHER_BATCH) -> list[Any]:
        """Assertions that the memories have this batch size. None where both are known and agree."""
        checks = []
        for mechanism in self._attention_mechanisms:
            if not (isinstance(mechanism.batch_size, int) and isinstance(batch_size, int)):
                checks.append(assert_equal(batch_size, mechanism.batch_size, message=error_message))
            elif mechanism.batch_size != batch_size:
                raise InvalidArgumentError(f"{error_message} ({mechanism.batch_size} and {batch_size!r})")
        return checks

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
        for index, mechanism in enumerate(self._attention_mechanisms):
            layer, before, history = self._layer(index), states[index], histories[index]
            attention, weights, next_state = compute_attention(mechanism, cell_output, before, layer)
            attentions.append(attention)
            alignments.append(weights)
            next_states.append(next_state)
            next_histories.append(history.write(state.time, weights) if self._alignment_history else ())
        attention = attentions[0] if len(attentions) == 1 else array_ops.concat(attentions, 1)
        following = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=state.time + 1,
            alignments=self._item_or_tuple(alignments),
            alignment_history=self._item_or_tuple(next_histories),
            attention_state=self._item_or_tuple(next_states),
        )
        return (attention if self._output_attention else cell_output), following


def compute_attention(
    attention_mechanism: Any, cell_output: Tensor, attention_state: Any, attention_layer: Any
) -> tuple[Tensor, Tensor, Any]:
    """The attention vector for a cell's output, the weights, and the mechanism's next state."""
    alignments, next_state = attention_mechanism(cell_output, state=attention_state)
    context = linalg_ops.matmul(array_ops.expand_dims(alignments, 1), attention_mechanism.values)
    context = array_ops.squeeze(context, [1])
    attention = context if attention_layer is None else attention_layer(array_ops.concat([cell_output, context], 1))
    return attention, alignments, next_state
