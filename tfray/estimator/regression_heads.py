"""Heads of regressions: of numbers, of probabilities, and of counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.estimator import heads
from tfray.estimator.export_outputs import ExportOutput, PredictOutput, RegressionOutput
from tfray.estimator.heads import BaseHead, HeadLoss
from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.keras.running_metrics import Mean, Metric
from tfray.library.layers.losses import Reduction
from tfray.ops.math import math_ops
from tfray.ops.nn import cross_entropy_ops


class RegressionHead(BaseHead):
    """The head of a regression: squared errors.

    Labels are ``[batch, label_dimension]``, or ``[batch]`` if that is 1.

    Args:
        label_dimension: How many numbers an example has.
        weight_column: As of `BaseHead`.
        loss_reduction: As of `BaseHead`.
        loss_fn: As of `BaseHead`.
        inverse_link_fn: Function from logits to predictions; they are the same when None.
        name: As of `BaseHead`.

    Raises:
        ValueError: `label_dimension` is not positive.
    """

    @checked
    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        inverse_link_fn: Callable[[Tensor], Tensor] | None = None,
        name: str | None = None,
    ) -> None:
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}, expected 1 or more")
        super().__init__(label_dimension, weight_column, loss_reduction, loss_fn, name)
        self._inverse_link_fn = inverse_link_fn

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> HeadLoss:
        """See `BaseHead.create_loss`."""
        logits = heads.with_last_dimension(logits, self._logits_dimension)
        wanted = heads.to_float(heads.labels_like(labels, logits, self._logits_dimension))
        size = self._logits_dimension
        return self.reduced(wanted, logits, features, lambda: math_ops.squared_difference(logits, wanted), size)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """``predictions``; with a function of the logits, also ``logits``."""
        logits = heads.with_last_dimension(logits, self._logits_dimension)
        found = {"predictions": logits}
        if self._inverse_link_fn is not None:
            found = {"predictions": self._inverse_link_fn(logits), "logits": logits}
        return heads.only(found, keys)

    def own_metrics(self) -> dict[str, Metric]:
        """See `BaseHead.own_metrics`."""
        return {name: Mean(name) for name in ("average_loss", "prediction/mean", "label/mean")}

    def take_in(self, metrics: Mapping[str, Any], loss: HeadLoss, predictions: Mapping[Any, Tensor]) -> None:
        """See `BaseHead.take_in`."""
        for name, values in (
            ("average_loss", loss.unreduced_loss),
            ("prediction/mean", predictions["predictions"]),
            ("label/mean", loss.processed_labels),
        ):
            heads.take_in_all(metrics, [name], (values,), loss.weights)

    def export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """See `BaseHead.export_outputs`."""
        values = RegressionOutput(predictions["predictions"])
        return {
            heads.DEFAULT_SERVING: values,
            heads.REGRESSION: values,
            heads.PREDICT: PredictOutput(predictions),
        }


class LogisticRegressionHead(RegressionHead):
    """The head of a regression of probabilities: sigmoid cross entropy, for labels between 0 and 1.

    Args:
        weight_column: As of `BaseHead`.
        loss_reduction: As of `BaseHead`.
        name: As of `BaseHead`.
    """

    @checked
    def __init__(
        self,
        weight_column: Any = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
    ) -> None:
        def loss(labels: Tensor, logits: Tensor) -> Tensor:
            inside = heads.in_range(labels, 2, "Labels must be in range [0, 1]")
            return cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=inside, logits=logits)

        super().__init__(1, weight_column, loss_reduction, loss, math_ops.sigmoid, name)


class PoissonRegressionHead(RegressionHead):
    """The head of a regression of counts: logits are logarithms of the means of Poisson distributions.

    Args:
        label_dimension: How many numbers an example has.
        weight_column: As of `BaseHead`.
        loss_reduction: As of `BaseHead`.
        compute_full_loss: Whether the loss has the term that depends on the labels alone, by Stirling's formula.
        name: As of `BaseHead`.
    """

    @checked
    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        def loss(labels: Tensor, logits: Tensor) -> Tensor:
            return cross_entropy_ops.log_poisson_loss(
                targets=labels, log_input=logits, compute_full_loss=compute_full_loss
            )

        super().__init__(label_dimension, weight_column, loss_reduction, loss, math_ops.exp, name)
