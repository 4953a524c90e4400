"""What a step of a Keras model computes of its outputs: losses and metrics, over examples that weigh and are masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.keras import losses as keras_losses
from tfray.keras import metrics as keras_metrics
from tfray.keras.settings import floatx
from tfray.library.layers.layer_history import mask_of
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import constant, placeholder, placeholder_with_default
from tfray.ops.math import math_ops


class Head:
    """An output that has a loss.

    Attributes:
        name: Its name in logs.
        place: Its number among the outputs of the model.
        output: The output.
        loss: Its loss.
        share: What the loss counts in that of the model.
        target: Where targets are fed, or the tensor that they are.
        is_fed: Whether targets are fed.
        weights: Where weights of examples are fed, or the tensor that they are.
    """

    def __init__(
        self, name: str, place: int, loss: Any, share: Any, target: Any, mode: str | None, weights: Any
    ) -> None:
        self.name, self.place, self.loss, self.share = name, place, loss, share
        self.target, self.is_fed, self.mode, self.weights = target, target is None, mode, weights
        self.output: Any = None

    def receive(self, output: Tensor, target_shape: Sequence[int | None]) -> None:
        """Make the places where targets, each of this shape, and weights are fed.

        Args:
            output: The output.
            target_shape: Shape of the target of an example; not used where the target is a tensor.
        """
        self.output = output
        if self.is_fed:
            dtype = output.dtype if output.dtype.is_floating else floatx()
            self.target = placeholder(dtype, [None, *target_shape], name=f"{self.name}_target")
        else:
            self.target = convert_to_tensor(self.target)
        if self.weights is None:
            shape = [None, None] if self.mode == "temporal" else [None]
            ones = constant(1.0, shape=[1] * len(shape))
            self.weights = placeholder_with_default(ones, shape, name=f"{self.name}_sample_weights")


def mean_loss(loss: Any, target: Tensor, output: Tensor, weights: Tensor | None = None) -> Tensor:
    """The mean of a loss over all its elements, in which those that are masked are zeros.

    Args:
        loss: A loss of ``tf.keras.losses``, or a function.
        target: The target.
        output: The output, and with it its mask.
        weights: What examples, or steps of sequences, count.
    """
    values = values_of(loss, target, output)
    found = values * importance(values, output, weights)
    return loss.reduced(found) if isinstance(loss, keras_losses.Loss) else math_ops.reduce_mean(found)


def values_of(function: Any, target: Tensor, output: Tensor) -> Tensor:
    """The values of a loss or a metric, for each example if it has them."""
    found = (function.call if isinstance(function, keras_losses.Loss) else function)(target, output)
    return array_ops.cast(found, floatx()) if not found.dtype.is_floating else found


def importance(values: Tensor, output: Tensor, weights: Tensor | None = None) -> Tensor:
    """What each of the values counts: the weights of examples, and 0 where the output is masked.

    A single value for all examples counts as often as they do.
    """
    factors = [array_ops.cast(each, values.dtype) for each in (weights, mask_of(output)) if each is not None]
    rank = values.shape.rank or max((factor.shape.rank or 0 for factor in factors), default=None)
    product = constant(1.0, values.dtype)
    for factor in factors:
        product = product * _with_rank(factor, rank)
    return product


def result_after_update(metric: Any, target: Tensor, output: Tensor, weights: Tensor | None) -> Tensor:
    """The result of a metric that is an object, when it has seen the batch, without what is masked."""
    factors = [each for each in (weights, mask_of(output)) if each is not None]
    more = {}
    if factors:
        rank = max((output.shape.rank or 1) - 1, *(factor.shape.rank or 0 for factor in factors))
        product = constant(1.0)
        for factor in factors:
            product = product * _with_rank(array_ops.cast(factor, floatx()), rank)
        examples = array_ops.ones_like(_with_rank(array_ops.cast(output, floatx())[..., 0], rank))
        more["sample_weight"] = product * examples
    update = metric.update_state(target, output, **more)
    with get_default_graph().control_dependencies([] if update is None else [update]):
        return array_ops.cast(array_ops.identity(metric.result()), floatx())


def sum_and_count(metric: Any, loss: Any, target: Tensor, output: Tensor, weights: Tensor | None) -> tuple[Any, Any]:
    """The sum of a metric over what is not masked, and how much that is."""
    values = values_of(keras_metrics.get(metric, loss, output), target, output)
    counts = importance(values, output, weights)
    return math_ops.reduce_sum(values * counts), math_ops.reduce_sum(array_ops.ones_like(values) * counts)


def _with_rank(tensor: Tensor, rank: int | None) -> Tensor:
    """A tensor of weights with dimensions of size 1 at its end, or fewer, so that it has this rank."""
    own = tensor.shape.rank
    if rank is None or own is None:
        return tensor
    if own == rank + 1:
        return array_ops.squeeze(tensor, [-1])
    for _ in range(rank - own):
        tensor = array_ops.expand_dims(tensor, -1)
    return tensor
