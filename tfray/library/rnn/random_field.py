"""Conditional random fields in a chain: the score of a sequence of tags is the sum of its steps and transitions.

Scores of tags at each step have the shape ``[batch, steps, tags]``. ``transition_params[i, j]``, of ``[tags, tags]``,
is the score of tag j behind tag i. Sequences are as long as `sequence_lengths` says, shape ``[batch]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.rnn.rnn_cell_base import RNNCell
from tfray.library.variables.variable_scope import ScopeLike, get_variable
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.broadcast_ops import fill, where, zeros_like
from tfray.ops.arrays.construction_ops import one_hot, range_, sequence_mask
from tfray.ops.arrays.gather_ops import gather, gather_nd
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.layout_ops import reverse, tile
from tfray.ops.arrays.older_casts import to_int32
from tfray.ops.arrays.shape_ops import expand_dims, reshape, shape, squeeze, transpose
from tfray.ops.arrays.source_ops import constant
from tfray.ops.control.functional_ops import scan
from tfray.ops.math.arithmetic_ops import maximum
from tfray.ops.math.comparison_ops import greater, less
from tfray.ops.math.reduction_ops import reduce_logsumexp, reduce_max, reduce_sum
from tfray.ops.math.search_ops import argmax


def crf_unary_score(tag_indices: TensorLike, sequence_lengths: TensorLike, inputs: TensorLike) -> Tensor:
    """The sum of the scores of the tags of each step.

    Args:
        tag_indices: The tags, integers ``[batch, steps]``.
        sequence_lengths: Integers ``[batch]``.
        inputs: Scores ``[batch, steps, tags]``, a float dtype.

    Returns:
        ``[batch]``, the dtype of `inputs`.
    """
    scores = convert_to_tensor(inputs)
    chosen = reduce_sum(scores * one_hot(tag_indices, shape(scores)[2], dtype=scores.dtype), 2)
    return reduce_sum(chosen * sequence_mask(sequence_lengths, shape(scores)[1], scores.dtype), 1)


def crf_binary_score(
    tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike | Variable
) -> Tensor:
    """The sum of the scores of the transitions.

    Args:
        tag_indices: The tags, integers ``[batch, steps]``.
        sequence_lengths: Integers ``[batch]``.
        transition_params: ``[tags, tags]``, a float dtype.

    Returns:
        ``[batch]``, the dtype of `transition_params`.
    """
    transitions, tags = convert_to_tensor(transition_params), to_int32(tag_indices)
    count, steps = shape(transitions)[0], shape(tags)[1]
    scores = gather(reshape(transitions, [-1]), tags[:, :-1] * count + tags[:, 1:])
    mask = sequence_mask(sequence_lengths, steps, transitions.dtype)
    return reduce_sum(scores * mask[:, 1:], 1)


def crf_sequence_score(
    inputs: TensorLike, tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike | Variable
) -> Tensor:
    """The score of sequences of tags, not normalised: that of their steps and of their transitions.

    Args:
        inputs: Scores ``[batch, steps, tags]``, a float dtype.
        tag_indices: The tags, integers ``[batch, steps]``.
        sequence_lengths: Integers ``[batch]``.
        transition_params: ``[tags, tags]``.

    Returns:
        ``[batch]``; 0 for an empty sequence.
    """
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(
    inputs: TensorLike, tag_bitmap: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike | Variable
) -> Tensor:
    """The logarithm of the sum of ``exp(score)`` over the sequences of tags that are allowed.

    Args:
        inputs: Scores ``[batch, steps, tags]``, a float dtype.
        tag_bitmap: Which tags each step may have, bool ``[batch, steps, tags]``.
        sequence_lengths: Integers ``[batch]``.
        transition_params: ``[tags, tags]``.

    Returns:
        ``[batch]``; 0 for an empty sequence.
    """
    scores = convert_to_tensor(inputs)
    never = fill(shape(scores), constant(-np.inf, scores.dtype))
    return crf_log_norm(where(tag_bitmap, scores, never), sequence_lengths, transition_params)


def crf_multitag_log_likelihood(
    inputs: TensorLike,
    tag_bitmap: TensorLike,
    sequence_lengths: TensorLike,
    transition_params: TensorLike | Variable | None = None,
) -> tuple[Tensor, TensorLike | Variable]:
    """The logarithm of the probability of all allowed sequences together.

    Args:
        inputs: Scores ``[batch, steps, tags]`` of a known number of tags, a float dtype.
        tag_bitmap: Which tags each step may have, bool ``[batch, steps, tags]``.
        sequence_lengths: Integers ``[batch]``.
        transition_params: ``[tags, tags]``; the variable ``transitions`` when None.

    Returns:
        The logarithms, ``[batch]``, and the transitions.
    """
    return _log_likelihood(crf_multitag_sequence_score, inputs, tag_bitmap, sequence_lengths, transition_params)


def crf_log_norm(inputs: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike | Variable) -> Tensor:
    """The logarithm of the sum of ``exp(score)`` over all sequences of tags, by the forward algorithm.

    Args:
        inputs: Scores ``[batch, steps, tags]``, a float dtype.
        sequence_lengths: Integers ``[batch]``.
        transition_params: ``[tags, tags]``.

    Returns:
        ``[batch]``; 0 for an empty sequence.
    """
    scores, transitions, lengths = _given(inputs, transition_params, sequence_lengths)

    def forward(state: Tensor, step: tuple[Tensor, Tensor]) -> Tensor:
        following = step[1] + reduce_logsumexp(expand_dims(state, 2) + transitions, 1)
        return where(less(step[0], lengths), following, state)

    total = reduce_logsumexp(_last_state(forward, scores), 1)
    return where(greater(lengths, 0), total, zeros_like(total))


def crf_log_likelihood(
    inputs: TensorLike,
    tag_indices: TensorLike,
    sequence_lengths: TensorLike,
    transition_params: TensorLike | Variable | None = None,
) -> tuple[Tensor, TensorLike | Variable]:
    """The logarithm of the probability of sequences of tags.

    Args:
        inputs: Scores ``[batch, steps, tags]`` of a known number of tags, a float dtype.
        tag_indices: The tags, integers ``[batch, steps]``.
        sequence_lengths: Integers ``[batch]``.
        transition_params: ``[tags, tags]``; the variable ``transitions`` when None.

    Returns:
        The logarithms, ``[batch]``, and the transitions.
    """
    return _log_likelihood(crf_sequence_score, inputs, tag_indices, sequence_lengths, transition_params)


def _log_likelihood(
    score_of: Callable[..., Tensor],
    inputs: TensorLike,
    tags: TensorLike,
    lengths: TensorLike,
    transitions: TensorLike | Variable | None,
) -> tuple[Tensor, TensorLike | Variable]:
    scores = convert_to_tensor(inputs)
    if transitions is None:
        count = scores.shape[2].value
        transitions = get_variable("transitions", [count, count], dtype=scores.dtype)
    return score_of(scores, tags, lengths, transitions) - crf_log_norm(scores, lengths, transitions), transitions


def crf_decode(
    potentials: TensorLike, transition_params: TensorLike | Variable, sequence_length: TensorLike
) -> tuple[Tensor, Tensor]:
    """The best sequences of tags, by Viterbi's algorithm.

    Args:
        potentials: Scores ``[batch, steps, tags]``, a float dtype.
        transition_params: ``[tags, tags]``.
        sequence_length: Integers ``[batch]``.

    Returns:
        The tags, int32 ``[batch, steps]``, 0 behind the end; and their scores, ``[batch]``.
    """
    scores, transitions, lengths = _given(potentials, transition_params, sequence_length)
    lengths = maximum(lengths, 1)
    count = shape(scores)[2]
    same = tile(expand_dims(range_(count), 0), [shape(scores)[0], 1])

    def forward(state: tuple[Tensor, Tensor], step: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        through = expand_dims(state[0], 2) + transitions
        goes_on = less(step[0], lengths)
        following = where(goes_on, step[1] + reduce_max(through, 1), state[0])
        return following, where(goes_on, argmax(through, 1, output_type=dtypes.int32), same)

    first, numbers, rest = _steps(scores)
    states, pointers = scan(forward, (numbers, rest), (first, same))
    final = concat([expand_dims(first, 0), states], 0)[-1]
    last = argmax(final, 1, output_type=dtypes.int32)

    def backward(tags: Tensor, pointer: Tensor) -> Tensor:
        return reduce_sum(pointer * one_hot(tags, count, dtype=dtypes.int32), 1)

    earlier = reverse(scan(backward, reverse(pointers, [0]), last), [0])
    tags = transpose(concat([earlier, expand_dims(last, 0)], 0))
    return tags * sequence_mask(lengths, shape(scores)[1], dtypes.int32), reduce_max(final, 1)


def _given(
    scores: TensorLike, transitions: TensorLike | Variable, lengths: TensorLike
) -> tuple[Tensor, Tensor, Tensor]:
    return convert_to_tensor(scores), expand_dims(convert_to_tensor(transitions), 0), to_int32(lengths)


def _steps(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The first step ``[batch, tags]``, the numbers of the others, and these ``[steps - 1, batch, tags]``."""
    by_step = transpose(scores, [1, 0, 2])
    return by_step[0], range_(1, shape(by_step)[0]), by_step[1:]


def _last_state(forward: Callable[..., Tensor], scores: Tensor) -> Tensor:
    first, numbers, rest = _steps(scores)
    states = scan(forward, (numbers, rest), first)
    return concat([expand_dims(first, 0), states], 0)[-1]


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """The best sequence of tags, computed at once from arrays.

    Args:
        score: An array ``[steps, tags]``.
        transition_params: An array ``[tags, tags]``.

    Returns:
        The tags, ``[steps]``, and their score.
    """
    best, pointers = np.asarray(score)[0], []
    for step in np.asarray(score)[1:]:
        through = best[:, None] + transition_params
        pointers.append(through.argmax(axis=0))
        best = step + through.max(axis=0)
    tags = [int(best.argmax())]
    for pointer in reversed(pointers):
        tags.append(int(pointer[tags[-1]]))
    return tags[::-1], best.max()


# -- steps, as cells of recurrent networks --------------------------------------------------------------


class _OfTags(RNNCell):
    """A step over the scores of tags: inputs and state are ``[batch, tags]``.

    Args:
        transition_params: ``[tags, tags]``, a float dtype.
    """

    def __init__(self, transition_params: TensorLike | Variable) -> None:
        super().__init__()
        transitions = convert_to_tensor(transition_params)
        self._transitions, self._tags = expand_dims(transitions, 0), transitions.shape.as_list()[0]

    @property
    def state_size(self) -> Any:
        return self._tags

    @property
    def output_size(self) -> Any:
        return self._tags

    def _sums(self, state: Tensor) -> Tensor:
        """The scores so far with each transition, ``[batch, tags, tags]``."""
        return expand_dims(state, 2) + self._transitions


class CrfForwardRnnCell(_OfTags):
    """A step forward: the logarithm of the sum over all sequences that end with each tag, as output and state."""

    def __call__(self, inputs: TensorLike, state: TensorLike, scope: ScopeLike | None = None) -> tuple[Any, Any]:
        alphas = convert_to_tensor(inputs) + reduce_logsumexp(self._sums(convert_to_tensor(state)), [1])
        return alphas, alphas


class CrfDecodeForwardRnnCell(_OfTags):
    """A step forward to the best sequence: the tag before each tag, int32, as output, and the best scores as state."""

    def __call__(self, inputs: TensorLike, state: TensorLike, scope: ScopeLike | None = None) -> tuple[Any, Any]:
        sums = self._sums(convert_to_tensor(state))
        return to_int32(argmax(sums, 1)), convert_to_tensor(inputs) + reduce_max(sums, [1])


class CrfDecodeBackwardRnnCell(RNNCell):
    """A step back along the best sequence: from what `CrfDecodeForwardRnnCell` gives, the tag ``[batch, 1]``.

    Args:
        num_tags: How many tags there are.
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> Any:
        return 1

    @property
    def output_size(self) -> Any:
        return 1

    def __call__(self, inputs: TensorLike, state: TensorLike, scope: ScopeLike | None = None) -> tuple[Any, Any]:
        places = stack([range_(shape(inputs)[0]), squeeze(state, [1])], 1)
        tags = expand_dims(gather_nd(inputs, places), -1)
        return tags, tags
