"""Regularizers: functions from weights to a loss that grows with them, for `tf.get_variable` and layers.

There are two families, as in TensorFlow 1. `l1_regularizer` and its like are those of ``tf.contrib.layers``, whose L2
loss is *half* the sum of squares. `l1`, `l2` and `l1_l2` are those of Keras, which do not halve.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.scopes import name_scope
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.source_ops import constant
from tfray.ops.math import math_ops
from tfray.ops.nn import nn_ops

# fmt: off
__all__ = [
    "L1L2", "Regularizer", "apply_regularization", "l1", "l1_l2", "l1_l2_regularizer", "l1_regularizer", "l2",
    "l2_regularizer", "sum_regularizer",
]
# fmt: on

RegularizerFunction = Callable[[Any], "Tensor | None"]


def l1_regularizer(scale: float, scope: str | None = None) -> RegularizerFunction:
    """``scale * sum(abs(weights))``.

    Args:
        scale: 0 or more; with 0 there is no loss.
        scope: Name scope of the operations.

    Raises:
        ValueError: `scale` is negative or no float.
    """
    if _is_zero(scale):
        return _nothing

    def l1(weights: TensorLike) -> Tensor:
        with name_scope(scope, "l1_regularizer", [weights]) as name:
            value = convert_to_tensor(weights)
            return math_ops.multiply(
                constant(scale, value.dtype, name="scale"), math_ops.reduce_sum(math_ops.abs(value)), name=name
            )

    return l1


def l2_regularizer(scale: float, scope: str | None = None) -> RegularizerFunction:
    """``scale * sum(weights ** 2) / 2``; arguments as for `l1_regularizer`."""
    if _is_zero(scale):
        return _nothing

    def l2(weights: TensorLike) -> Tensor:
        with name_scope(scope, "l2_regularizer", [weights]) as name:
            value = convert_to_tensor(weights)
            return math_ops.multiply(constant(scale, value.dtype, name="scale"), nn_ops.l2_loss(value), name=name)

    return l2


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> RegularizerFunction:
    """The sum of `l1_regularizer` and `l2_regularizer`.

    Args:
        scale_l1: As `scale` for `l1_regularizer`.
        scale_l2: As `scale` for `l2_regularizer`.
        scope: Name scope of the operations.

    Raises:
        ValueError: A scale is negative or no float.
    """
    both = l1_regularizer(scale_l1), l2_regularizer(scale_l2)
    return sum_regularizer(both, scope or "l1_l2_regularizer") or _nothing


def sum_regularizer(
    regularizer_list: Iterable[RegularizerFunction | None], scope: str | None = None
) -> RegularizerFunction | None:
    """The sum of several regularizers; None if there are none.

    Args:
        regularizer_list: The regularizers; those that are None are left out.
        scope: Name scope of the operations.
    """
    regularizers = [regularizer for regularizer in regularizer_list if regularizer is not None]
    if not regularizers:
        return None

    def total(weights: TensorLike) -> Tensor | None:
        with name_scope(scope, "sum_regularizer", [weights]) as name:
            losses = [loss for regularizer in regularizers if (loss := regularizer(weights)) is not None]
            return math_ops.add_n(losses, name=name) if losses else None

    return total


def apply_regularization(regularizer: RegularizerFunction, weights_list: Iterable[TensorLike] | None = None) -> Tensor:
    """Regularise several weights after they were made.

    Args:
        regularizer: A function from weights to a scalar loss, or None.
        weights_list: The weights; those in ``GraphKeys.WEIGHTS`` when None.

    Returns:
        The sum of the losses, which goes to ``GraphKeys.REGULARIZATION_LOSSES``.

    Raises:
        InvalidArgumentError: A loss is not a scalar, or there are no weights.
    """
    graph = get_default_graph()
    weights = list(graph.get_collection(GraphKeys.WEIGHTS) if weights_list is None else weights_list)
    if not weights:
        raise InvalidArgumentError("there are no weights to regularise")
    with graph.name_scope("get_regularization_penalty") as scope:
        losses = [regularizer(weight) for weight in weights]
        present = [constant(0.0) if loss is None else loss for loss in losses]
        for loss in present:
            if loss.shape.rank not in (0, None):
                raise InvalidArgumentError(f"the regularizer gave shape {loss.shape}, expected a scalar")
        total = math_ops.add_n(present, name=scope)
    graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def _is_zero(scale: TensorLike) -> bool:
    if isinstance(scale, numbers.Integral) or not isinstance(scale, numbers.Real):
        raise ValueError(f"the scale of a regularizer must be a float, not {scale!r}")
    if scale < 0:
        raise ValueError(f"the scale of a regularizer must not be negative, it is {scale}")
    return scale == 0


def _nothing(_: object) -> None:
    return None


# -- those of Keras --------------------------------------------------------------------------------------


class Regularizer:
    """Base of regularizers that are objects: called with weights, they return a scalar loss, this one 0."""

    def __call__(self, x: TensorLike) -> Tensor | float:
        """The loss of the weights `x`."""
        return 0.0

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        """The regularizer whose `get_config` is `config`."""
        return cls(**config)


class L1L2(Regularizer):
    """``l1 * sum(abs(x)) + l2 * sum(x ** 2)``.

    Args:
        l1: Weight of the absolute values.
        l2: Weight of the squares.
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = float(l1)
        self.l2 = float(l2)

    def __call__(self, x: TensorLike) -> Tensor:
        x = convert_to_tensor(x)
        losses = []
        if self.l1:
            losses.append(self.l1 * math_ops.reduce_sum(math_ops.abs(x)))
        if self.l2:
            losses.append(self.l2 * math_ops.reduce_sum(math_ops.square(x)))
        return math_ops.add_n(losses) if losses else constant(0.0, x.dtype)

    def get_config(self) -> dict[str, float]:
        """The arguments that make an equal regularizer."""
        return {"l1": self.l1, "l2": self.l2}


def l1(l: float = 0.01) -> L1L2:  # noqa: E741 (the name by which programs pass it)
    """``l * sum(abs(x))``."""
    return L1L2(l1=l)


def l2(l: float = 0.01) -> L1L2:  # noqa: E741
    """``l * sum(x ** 2)``."""
    return L1L2(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """``l1 * sum(abs(x)) + l2 * sum(x ** 2)``."""
    return L1L2(l1, l2)
