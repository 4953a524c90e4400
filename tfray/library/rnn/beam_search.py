"""Beam search: decoding that keeps the few most likely sequences of each example."""

from __future__ import annotations

import collections
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.layers.base_layer import Layer
from tfray.library.rnn.attention import AttentionWrapperState
from tfray.library.rnn.rnn_cell_base import RNNCell, batch_size_of, check_is_cell
from tfray.library.rnn.seq2seq_decoder import Decoder
from tfray.library.rnn.seq2seq_helpers import EmbeddingFunction
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math import math_ops
from tfray.ops.math.search_ops import top_k
from tfray.ops.nn.beam_ops import gather_tree, gather_tree_from_array
from tfray.ops.nn.cross_entropy_ops import log_softmax
from tfray.ops.nn.embedding_ops import embedding_lookup


def tile_batch(t: Structure, multiplier: int, name: str | None = None) -> Any:
    """Repeat every example of a batch, one copy after the other.

    Args:
        t: A tensor ``[batch, ...]``, or a nested structure of such: the encoder's state, its outputs, their lengths.
        multiplier: How often: the width of the beam.
        name: Name scope.

    Returns:
        The same with shapes ``[batch * multiplier, ...]``.
    """
    with get_default_graph().name_scope(name or "tile_batch"):
        return nest.map_structure(lambda tensor: _tiled(convert_to_tensor(tensor), multiplier), t)


def _tiled(tensor: Tensor, multiplier: int) -> Tensor:
    if tensor.shape.rank == 0:
        raise InvalidArgumentError(f"tile_batch: {tensor!r} is a scalar: it has no batch")
    sizes = array_ops.shape(tensor)
    indices = array_ops.range(sizes[0] * multiplier) // multiplier
    tiled = gather(tensor, indices)
    if tensor.shape.rank is not None:
        first = tensor.shape.as_list()[0]
        tiled.set_shape([None if first is None else first * multiplier, *tensor.shape.as_list()[1:]])
    return tiled


class BeamSearchDecoderState(
    collections.namedtuple(
        "BeamSearchDecoderState",
        ["cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs"],
    )
):
    """State of a `BeamSearchDecoder`: for each beam that of the cell, its log probability, whether it is finished, its
    length, and the sum of its attention (``()`` unless a coverage penalty needs it)."""

    __slots__ = ()


class BeamSearchDecoderOutput(
    collections.namedtuple("BeamSearchDecoderOutput", ["scores", "predicted_ids", "parent_ids"])
):
    """The output of a step: scores, chosen ids, and the beams that they continue; each is ``[batch, beam]``."""

    __slots__ = ()


class FinalBeamSearchDecoderOutput(
    collections.namedtuple("FinalBeamSearchDecoderOutput", ["predicted_ids", "beam_search_decoder_output"])
):
    """The sequences, ``[batch, time, beam]``, the best beam first, and the outputs of all steps."""

    __slots__ = ()


class BeamSearchDecoder(Decoder):
    """Keeps the `beam_width` most likely sequences of each example, by the sum of their log probabilities.

    The state, and the memory of attention, must be tiled: see `tile_batch`.

    Args:
        cell: The cell.
        embedding: From ids to inputs: a function, or a table for `tf.nn.embedding_lookup`.
        start_tokens: int32 ``[batch]``.
        end_token: int32 scalar: the id that ends a sequence.
        initial_state: The cell's first state, for ``batch * beam_width`` sequences.
        beam_width: Number of sequences kept.
        output_layer: Layer over the cell's outputs that gives logits.
        length_penalty_weight: Strength of the preference for long sequences (Wu et al., arXiv:1609.08144); 0 for none.
        coverage_penalty_weight: Strength of the penalty on parts of the memory that got no attention; 0 for none.
        reorder_tensor_arrays: Let TensorArrays of the state, such as the history of attention, follow the sequences.
    """

    def __init__(
        self,
        cell: RNNCell,
        embedding: TensorLike | EmbeddingFunction,
        start_tokens: TensorLike,
        end_token: TensorLike,
        initial_state: Structure,
        beam_width: int,
        output_layer: Layer | None = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        check_is_cell(cell, "BeamSearchDecoder")
        if output_layer is not None and not callable(output_layer):
            raise TypeError(f"BeamSearchDecoder: output_layer is {output_layer!r}, expected a layer")
        self._cell = cell
        self._embed = embedding if callable(embedding) else lambda ids: embedding_lookup(embedding, ids)
        self._start_tokens = convert_to_tensor(start_tokens, dtypes.int32)
        self._end_token = convert_to_tensor(end_token, dtypes.int32)
        if self._start_tokens.shape.rank not in (None, 1) or self._end_token.shape.rank not in (None, 0):
            raise ValueError("BeamSearchDecoder: start_tokens must be a vector, and end_token a scalar")
        self._batch_size = batch_size_of(self._start_tokens)
        self._width = beam_width
        self._output_layer = output_layer
        self._length_weight = length_penalty_weight
        self._coverage_weight = coverage_penalty_weight
        self._reorders = reorder_tensor_arrays
        self._cell_state = nest.map_structure(self._split, initial_state)
        starts = array_ops.tile(array_ops.expand_dims(self._start_tokens, 1), [1, beam_width])
        self._start_inputs = self._embed(starts)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        width = TensorShape([self._width])
        return BeamSearchDecoderOutput(width, width, width)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        dtype = next(t.dtype for t in nest.flatten(self._cell_state) if getattr(t, "dtype", dtypes.int32).is_floating)
        return BeamSearchDecoderOutput(dtype, dtypes.int32, dtypes.int32)

    # -- between [batch * beam, ...] and [batch, beam, ...] --------------------------------------

    def _split(self, value: TensorLike) -> Any:
        if nest.is_composite(value):
            return value
        tensor = convert_to_tensor(value)
        if tensor.shape.rank == 0:
            return tensor
        first = tensor.shape.as_list()[0] if tensor.shape.rank is not None else None
        if isinstance(self._batch_size, int) and first is not None and first != self._batch_size * self._width:
            raise InvalidArgumentError(
                f"BeamSearchDecoder: a part of the state has shape {tensor.shape}, expected "
                f"{self._batch_size} * {self._width} rows: tile the state by tf.contrib.seq2seq.tile_batch"
            )
        return self._reshaped(tensor, [self._batch_size, self._width], 1)

    def _merge(self, value: Any) -> Any:
        if nest.is_composite(value) or value.shape.rank == 0:
            return value
        return self._reshaped(value, [self._batch_size * self._width], 2)

    @staticmethod
    def _reshaped(tensor: Tensor, leading: list[Any], dropped: int) -> Tensor:
        """`tensor` with other leading dimensions in place of the first `dropped` ones."""
        rest = array_ops.shape(tensor)[dropped:]
        reshaped = array_ops.reshape(tensor, array_ops.concat([array_ops.stack(leading), rest], 0))
        if tensor.shape.rank is not None:
            known = [size if isinstance(size, int) else None for size in leading]
            reshaped.set_shape([*known, *tensor.shape.as_list()[dropped:]])
        return reshaped

    # -- decoding --------------------------------------------------------------------------------

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        sizes = array_ops.stack([self._batch_size, self._width])
        dtype = self.output_dtype.scores
        # All beams begin equal. Only the first may continue in the first step; otherwise all would choose the same.
        chosen = array_ops.zeros(sizes[:1], dtypes.int32)
        first = array_ops.one_hot(chosen, self._width, 0.0, float("-inf"), dtype=dtype)
        finished = array_ops.one_hot(chosen, self._width, False, True)
        state = BeamSearchDecoderState(
            cell_state=self._cell_state,
            log_probs=first,
            finished=finished,
            lengths=array_ops.zeros(sizes, dtypes.int64),
            accumulated_attention_probs=self._no_attention(dtype),
        )
        for tensor in (first, finished, state.lengths):
            tensor.set_shape([self._batch_size if isinstance(self._batch_size, int) else None, self._width])
        return finished, self._start_inputs, state

    def _no_attention(self, dtype: DTypeLike) -> Any:
        if not self._coverage_weight:
            return ()
        attention = _attention_of(self._cell_state)
        if attention is None:
            raise ValueError("BeamSearchDecoder: a coverage penalty needs a cell with attention, AttentionWrapper")
        return array_ops.zeros_like(attention.alignments, dtype)

    def step(self, time: Tensor, inputs: TensorLike, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        inputs = nest.map_structure(self._merge, inputs)
        outputs, cell_state = self._cell(inputs, nest.map_structure(self._merge, state.cell_state))
        if self._output_layer is not None:
            outputs = self._output_layer(outputs)
        logits = self._split(outputs)
        cell_state = nest.map_structure(self._split, cell_state)
        output, next_state = self._advance(logits, cell_state, state)
        return output, next_state, self._embed(output.predicted_ids), next_state.finished

    def _advance(self, logits: Tensor, cell_state: Any, state: Any) -> tuple[BeamSearchDecoderOutput, Any]:
        vocabulary = batch_size_of(logits, 2)
        step_log_probs = self._of_going_beams(log_softmax(logits), state.finished, vocabulary)
        totals = array_ops.expand_dims(state.log_probs, 2) + step_log_probs
        # A length counts neither the end token nor anything after it.
        is_word = array_ops.one_hot(self._end_token, vocabulary, 0, 1, dtype=dtypes.int64)
        going = array_ops.expand_dims(array_ops.cast(math_ops.logical_not(state.finished), dtypes.int64), 2)
        lengths = array_ops.expand_dims(state.lengths, 2) + going * is_word
        attention = self._attention_so_far(cell_state, state)
        scores = self._scores(totals, lengths, attention)
        flat_scores = array_ops.reshape(scores, array_ops.stack([self._batch_size, -1]))
        best_scores, flat_ids = top_k(flat_scores, self._width)
        best_scores.set_shape(state.log_probs.shape)
        flat_ids.set_shape(state.log_probs.shape)
        word_ids, beam_ids = flat_ids % vocabulary, flat_ids // vocabulary
        log_probs = self._rows(array_ops.reshape(totals, array_ops.shape(flat_scores)), flat_ids)
        was_finished = self._rows(state.finished, beam_ids)
        finished = math_ops.logical_or(was_finished, math_ops.equal(word_ids, self._end_token))
        old_lengths = self._rows(state.lengths, beam_ids)
        next_state = BeamSearchDecoderState(
            cell_state=nest.map_structure(lambda part: self._reordered(part, beam_ids), cell_state),
            log_probs=log_probs,
            finished=finished,
            lengths=old_lengths + array_ops.cast(math_ops.logical_not(was_finished), dtypes.int64),
            accumulated_attention_probs=() if isinstance(attention, tuple) else self._rows(attention, beam_ids),
        )
        return BeamSearchDecoderOutput(best_scores, word_ids, beam_ids), next_state

    def _of_going_beams(self, step_log_probs: Tensor, finished: Tensor, vocabulary: TensorLike) -> Tensor:
        """The log probabilities; for finished beams, those where the end token is certain and all else impossible."""
        dtype = step_log_probs.dtype
        ended = array_ops.one_hot(self._end_token, vocabulary, 0.0, float(dtype.min), dtype=dtype)
        all_ended = array_ops.zeros_like(step_log_probs) + ended
        mask = array_ops.broadcast_to(array_ops.expand_dims(finished, 2), array_ops.shape(step_log_probs))
        chosen = array_ops.where(mask, all_ended, step_log_probs)
        chosen.set_shape(step_log_probs.shape)
        return chosen

    def _attention_so_far(self, cell_state: Any, state: Any) -> Any:
        if not self._coverage_weight:
            return ()
        attention = _attention_of(cell_state)
        assert attention is not None
        going = array_ops.expand_dims(math_ops.logical_not(state.finished), 2)
        return state.accumulated_attention_probs + attention.alignments * array_ops.cast(
            going, self.output_dtype.scores
        )

    def _scores(self, totals: Tensor, lengths: Tensor, attention: Any) -> Tensor:
        scores = totals
        if self._length_weight:
            scores = scores / length_penalty(lengths, self._length_weight, totals.dtype)
        if self._coverage_weight:
            covered = math_ops.reduce_sum(math_ops.log(math_ops.minimum(attention, 1.0)), 2)
            scores = scores + array_ops.expand_dims(covered, 2) * self._coverage_weight
        return scores

    def _rows(self, values: Tensor, indices: Tensor) -> Tensor:
        """``values[b, indices[b, k]]`` for every example b."""
        width = array_ops.shape(values)[1]
        offsets = array_ops.expand_dims(array_ops.range(array_ops.shape(values)[0]) * width, 1)
        flat = self._reshaped(values, [-1], 2)
        rows = gather(flat, offsets + indices)
        if values.shape.rank is not None:
            rows.set_shape(indices.shape.concatenate(values.shape[2:]))
        return rows

    def _reordered(self, part: Any, beam_ids: Tensor) -> Any:
        if nest.is_composite(part) or part.shape.rank == 0:
            return part
        return self._rows(part, beam_ids)

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Tensor) -> tuple[Any, Any]:
        longest = array_ops.cast(math_ops.reduce_max(final_state.lengths, 1), dtypes.int32)
        predicted = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorders:
            lengths = array_ops.cast(final_state.lengths, dtypes.int32)
            cell_state = nest.map_structure(
                lambda part: self._sorted_array(part, outputs.parent_ids, lengths), final_state.cell_state
            )
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(predicted, outputs), final_state

    def _sorted_array(self, part: Any, parent_ids: Tensor, lengths: Tensor) -> Any:
        """A TensorArray of ``[batch * beam, ...]`` stacked, each beam with the elements of its own sequence."""
        if not isinstance(part, TensorArray):
            return part
        stacked = part.stack()
        sizes = array_ops.shape(stacked)
        split = array_ops.concat([sizes[:1], array_ops.stack([self._batch_size, self._width]), sizes[2:]], 0)
        ordered = gather_tree_from_array(array_ops.reshape(stacked, split), parent_ids, lengths)
        return array_ops.reshape(ordered, sizes)


def length_penalty(lengths: TensorLike, weight: float, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """``((5 + length) / 6) ** weight``, by which log probabilities are divided."""
    return math_ops.pow((5.0 + array_ops.cast(lengths, dtype)) / 6.0, weight)


def _attention_of(cell_state: Any) -> AttentionWrapperState | None:
    if isinstance(cell_state, AttentionWrapperState):
        return cell_state
    if isinstance(cell_state, tuple):
        return next((found for part in cell_state if (found := _attention_of(part)) is not None), None)
    return None
