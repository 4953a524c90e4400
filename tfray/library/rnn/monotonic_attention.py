"""Attention that never goes back: what was attended to once is left behind (Raffel et al., arXiv:1704.00784)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.rnn.attention import BaseAttentionMechanism, bahdanau_score, dense_layer, luong_score
from tfray.library.variables import initializers
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.control.functional_ops import scan
from tfray.ops.math.arithmetic_ops import exp, log
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.math.scan_ops import cumprod, cumsum
from tfray.ops.math.transcendental_ops import sigmoid
from tfray.ops.random.random_ops import random_normal


def safe_cumprod(x: TensorLike, *args: Any, **kwargs: Any) -> Tensor:
    """The cumulative product of values from 0 to 1, as a sum of logarithms: its gradient has no zeros to divide by.

    Args:
        x: Any shape, a float dtype.
        args: As for `tf.cumsum`.
        kwargs: Likewise.

    Returns:
        The same shape and dtype.
    """
    x = convert_to_tensor(x)
    tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
    return exp(cumsum(log(clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: TensorLike, previous_attention: TensorLike, mode: str) -> Tensor:
    """The weights of a step, from those of the step before.

    Args:
        p_choose_i: Probabilities ``[batch, time]`` of staying at an entry once it is reached.
        previous_attention: The last weights ``[batch, time]``.
        mode: ``recursive`` computes what is expected entry by entry; ``parallel`` all at once, which is less exact;
            ``hard`` takes probabilities and weights that are 0 or 1.

    Returns:
        Weights ``[batch, time]``.

    Raises:
        ValueError: There is no such mode.
    """
    p, previous = convert_to_tensor(p_choose_i), convert_to_tensor(previous_attention)
    if mode == "recursive":
        first = array_ops.ones_like(p[:, :1])
        passed = array_ops.concat([first, 1 - p[:, :-1]], 1)
        steps = (array_ops.transpose(passed), array_ops.transpose(previous))
        reached = scan(lambda before, step: step[0] * before + step[1], steps, array_ops.zeros_like(p[:, 0]))
        return p * array_ops.transpose(reached)
    if mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        return p * passed * cumsum(previous / clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        p *= cumsum(previous, axis=1)
        return p * cumprod(1 - p, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def monotonic_probability_fn(
    score: Tensor, previous_alignments: Tensor, sigmoid_noise: float, mode: str, seed: int | None = None
) -> Tensor:
    """Weights ``[batch, time]`` from scores and the last weights, both ``[batch, time]``.

    Args:
        score: The scores; their sigmoids are the probabilities of `monotonic_attention`.
        previous_alignments: The last weights.
        sigmoid_noise: Standard deviation of noise that is added to the scores.
        mode: As for `monotonic_attention`; for ``hard`` scores above 0 are chosen.
        seed: Seed of the noise.
    """
    if sigmoid_noise > 0:
        score += sigmoid_noise * random_normal(array_ops.shape(score), dtype=score.dtype, seed=seed)
    chosen = array_ops.cast(score > 0, score.dtype) if mode == "hard" else sigmoid(score)
    return monotonic_attention(chosen, previous_alignments, mode)


class BaseMonotonicAttentionMechanism(BaseAttentionMechanism):
    """A mechanism that begins at the first entry."""

    def initial_alignments(self, batch_size: TensorLike, dtype: DTypeLike) -> Tensor:
        """The weights before the first step: 1 for the first entry."""
        first = array_ops.zeros(array_ops.reshape(batch_size, [1]), dtypes.int32)
        return array_ops.one_hot(first, self._alignments_size, dtype=dtype)


class BahdanauMonotonicAttention(BaseMonotonicAttentionMechanism):
    """Monotonic attention with the scores of `BahdanauAttention`, and a bias that is learned.

    Args:
        num_units: Size of the keys.
        memory: As for `BaseAttentionMechanism`.
        memory_sequence_length: Likewise.
        normalize: As for `BahdanauAttention`.
        score_mask_value: As for `BaseAttentionMechanism`.
        sigmoid_noise: As for `monotonic_probability_fn`.
        sigmoid_noise_seed: Likewise.
        score_bias_init: First value of the bias; negative for long memories.
        mode: As for `monotonic_attention`.
        dtype: Dtype of the layers.
        name: Not used.
    """

    def __init__(
        self,
        num_units: int,
        memory: TensorLike,
        memory_sequence_length: TensorLike | None = None,
        normalize: bool = False,
        score_mask_value: float | None = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: DTypeLike | None = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        dtype = dtypes.float32 if dtype is None else dtype
        super().__init__(
            query_layer=dense_layer("query_layer", num_units, dtype),
            memory_layer=dense_layer("memory_layer", num_units, dtype),
            memory=memory,
            probability_fn=_probability(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._name = name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The weights for a query ``[batch, size]``, and the next state."""
        with variable_scope(None, "bahdanau_monotonic_attention", [query]):
            projected = self.query_layer(query) if self.query_layer else query
            score = bahdanau_score(projected, self._keys, self._normalize) + _bias(projected, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(BaseMonotonicAttentionMechanism):
    """Monotonic attention with the scores of `LuongAttention`, and a bias that is learned.

    Args:
        num_units: Size of the keys, and of the queries.
        memory: As for `BaseAttentionMechanism`.
        memory_sequence_length: Likewise.
        scale: As for `LuongAttention`.
        score_mask_value: As for `BaseAttentionMechanism`.
        sigmoid_noise: As for `monotonic_probability_fn`.
        sigmoid_noise_seed: Likewise.
        score_bias_init: First value of the bias; negative for long memories.
        mode: As for `monotonic_attention`.
        dtype: Dtype of the layer.
        name: Not used.
    """

    def __init__(
        self,
        num_units: int,
        memory: TensorLike,
        memory_sequence_length: TensorLike | None = None,
        scale: bool = False,
        score_mask_value: float | None = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: DTypeLike | None = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory_layer=dense_layer("memory_layer", num_units, dtypes.float32 if dtype is None else dtype),
            memory=memory,
            probability_fn=_probability(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._name = name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The weights for a query ``[batch, num_units]``, and the next state."""
        with variable_scope(None, "luong_monotonic_attention", [query]):
            score = luong_score(query, self._keys, self._scale) + _bias(query, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _probability(sigmoid_noise: float, mode: str, seed: int | None) -> Callable[[Tensor, Any], Tensor]:
    return lambda score, previous: monotonic_probability_fn(score, previous, sigmoid_noise, mode, seed)


def _bias(query: Tensor, value: float) -> Any:
    return get_variable("attention_score_bias", [], query.dtype, initializers.Constant(value))
