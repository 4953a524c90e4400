"""Attention of Keras models: what values answer to queries, by how much their keys are like these."""

from __future__ import annotations

from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.library.layers.keras_layer import Layer
from tfray.ops.arrays import array_ops
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.nn import cross_entropy_ops

_ORDER = "[query, value] or [query, value, key]"


class BaseDenseAttention(Layer):
    """What attention layers share.

    Args:
        causal: A query sees no value behind its own place.
        **kwargs: As for `Layer`.
    """

    def __init__(self, causal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.causal = causal
        self.supports_masking = True
        self.scale: Any = None

    def _calculate_scores(self, query: Any, key: Any) -> Any:
        """How much each query is like each key, ``[batch, queries, values]``."""
        raise NotImplementedError

    def _apply_scores(self, scores: Any, value: Any, scores_mask: Any = None) -> Tensor:
        """The mean of the values for each query; where `scores_mask` is false, none of a value."""
        if scores_mask is not None:
            scores -= 1e9 * array_ops.cast(math_ops.logical_not(scores_mask), scores.dtype)
        return linalg_ops.matmul(cross_entropy_ops.softmax(scores), value)

    def call(self, inputs: Any, mask: Any = None) -> Any:  # type: ignore[override]
        self._check(inputs, mask)
        query, value = inputs[0], inputs[1]
        scores = self._calculate_scores(query, inputs[2] if len(inputs) > 2 else value)
        query_mask, value_mask = (mask or [None, None])[:2]
        shown = None
        if value_mask is not None:
            shown = array_ops.expand_dims(array_ops.cast(value_mask, dtypes.bool_), -2)
        if self.causal:
            sizes = array_ops.shape(scores)
            own = array_ops.range(sizes[-1]) <= array_ops.expand_dims(array_ops.range(sizes[-2]), 1)
            own = array_ops.expand_dims(own, 0)
            shown = own if shown is None else math_ops.logical_and(shown, own)
        result = self._apply_scores(scores, value, shown)
        if query_mask is not None:
            result *= array_ops.expand_dims(array_ops.cast(query_mask, result.dtype), -1)
        return result

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the queries."""
        self._check(inputs, mask)
        return None if not mask or mask[0] is None else convert_to_tensor(mask[0])

    def _check(self, inputs: Any, mask: Any) -> None:
        name = type(self).__name__
        if not isinstance(inputs, list):
            raise ValueError(f"{name} layer must be called on a list of inputs, namely {_ORDER}.")
        if len(inputs) not in (2, 3):
            raise ValueError(
                f"{name} layer accepts inputs list of length 2 or 3, namely {_ORDER}. Given length: {len(inputs)}"
            )
        if mask and (not isinstance(mask, list) or not 2 <= len(mask) <= len(inputs)):
            raise ValueError(f"{name} layer mask must be a list of length 2, namely [query_mask, value_mask]: {mask}")


class Attention(BaseDenseAttention):
    """Scores are products of queries and keys, as Luong has it.

    Called with a list of queries ``[batch, queries, size]``, values ``[batch, values, size]`` and keys, which are the
    values where they are not given, it returns ``[batch, queries, size]``: means of values.

    Args:
        use_scale: Multiply scores by a weight.
        **kwargs: ``causal``, with which a query sees no value behind its own place, and those of `Layer`.
    """

    def __init__(self, use_scale: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale

    def build(self, input_shape: Any) -> None:
        if self.use_scale:
            self.scale = self.add_weight("scale", [], initializer="ones")
        super().build(input_shape)

    def _calculate_scores(self, query: Any, key: Any) -> Any:
        scores = linalg_ops.matmul(query, key, transpose_b=True)
        return scores if self.scale is None else scores * self.scale


class AdditiveAttention(BaseDenseAttention):
    """Scores are sums of ``tanh(query + key)``, as Bahdanau has it; called as `Attention` is.

    Args:
        use_scale: Multiply each element of these by a weight first.
        **kwargs: As for `Attention`.
    """

    def __init__(self, use_scale: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale

    def build(self, input_shape: Any) -> None:
        if self.use_scale:
            size = TensorShape(input_shape[1]).as_list()[-1]
            self.scale = self.add_weight("scale", [size], initializer="glorot_uniform")
        super().build(input_shape)

    def _calculate_scores(self, query: Any, key: Any) -> Any:
        likeness = math_ops.tanh(array_ops.expand_dims(query, -2) + array_ops.expand_dims(key, -3))
        return math_ops.reduce_sum(likeness if self.scale is None else self.scale * likeness, -1)
