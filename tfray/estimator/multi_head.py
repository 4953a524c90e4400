"""`MultiHead`: several heads on one model, for several objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfray.estimator import heads
from tfray.estimator.export_outputs import ExportOutput, PredictOutput
from tfray.estimator.heads import BaseHead, HeadLoss
from tfray.framework.arguments import checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.keras.running_metrics import Mean, Metric
from tfray.library.inspect import summaries
from tfray.ops.math import math_ops


class MultiHead(BaseHead):
    """Several heads. Their losses are added up; labels are a dictionary by the heads' names.

    Logits are a dictionary by the heads' names, or one tensor with the logits of all heads side by side. Predictions
    have pairs (name of the head, name of the prediction) for names.

    Args:
        heads: The heads, each with a name of its own.
        head_weights: Weights of their losses; 1 when None.

    Raises:
        ValueError: There is no head, one has no name, two have the same, or there are not as many weights.
    """

    @checked
    def __init__(self, heads: Sequence[BaseHead], head_weights: Sequence[float] | None = None) -> None:
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        names = [head.name for head in heads]
        if None in names or len(set(names)) < len(names):
            raise ValueError(f"All given heads must have name specified, each one of its own. Given: {names}")
        if head_weights is not None and len(head_weights) != len(heads):
            raise ValueError(
                f"heads and head_weights must have the same size. Given len(heads): {len(heads)}. "
                f"Given len(head_weights): {len(head_weights)}."
            )
        super().__init__(sum(head.logits_dimension for head in heads), name="_".join(map(str, names)))
        self._heads = list(heads)
        self._head_weights = [1.0] * len(heads) if head_weights is None else list(head_weights)
        self._last: list[HeadLoss] = []

    def key(self, name: str) -> str:
        """The name itself: the metrics of the heads have those of the heads."""
        return name

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> HeadLoss:
        """See `BaseHead.create_loss`."""
        if not isinstance(labels, Mapping):
            raise ValueError(f"labels must be a dict, by the names of the heads. Given: {labels!r}")
        missing = [head.name for head in self._heads if head.name not in labels]
        if missing:
            raise ValueError(f"labels has missing values for head(s): {missing}; there are some for {list(labels)}")
        divided = self._divided(logits)
        self._last = [head.create_loss(features, mode, divided[head.name], labels[head.name]) for head in self._heads]
        weighted = [weight * loss.training_loss for weight, loss in zip(self._head_weights, self._last, strict=True)]
        total = math_ops.add_n(weighted)
        labels_of = {head.name: loss.processed_labels for head, loss in zip(self._heads, self._last, strict=True)}
        return HeadLoss(total, total, 1.0, labels_of)

    def _summarize(self, found: HeadLoss, loss: Tensor, extra: Tensor | None) -> None:
        super()._summarize(found, loss, extra)
        with get_default_graph().name_scope(None):
            for head, of_head in zip(self._heads, self._last, strict=True):
                summaries.scalar(head.key("loss"), of_head.training_loss)

    def _divided(self, logits: Any) -> dict[Any, Any]:
        """The logits by the names of the heads."""
        if isinstance(logits, Mapping):
            missing = [head.name for head in self._heads if head.name not in logits]
            if missing:
                raise ValueError(f"logits has missing values for head(s): {missing}")
            return dict(logits)
        tensor = convert_to_tensor(logits)
        last = tensor.shape.as_list()[-1] if tensor.shape.rank else None
        if last not in (None, self._logits_dimension):
            raise ValueError(
                f"Could not split logits of shape {tensor.shape.as_list()} among the heads with individual logits "
                f"dimensions: {[head.logits_dimension for head in self._heads]}. The last dimension of the logits "
                f"tensor should equal {self._logits_dimension} but is {last}."
            )
        found, begin = {}, 0
        for head in self._heads:
            found[head.name] = tensor[..., begin : begin + head.logits_dimension]
            begin += head.logits_dimension
        return found

    def predictions(self, logits: Any, keys: Sequence[Any] | None = None) -> dict[Any, Tensor]:
        """Those of the heads, by pairs (name of the head, name of the prediction)."""
        divided = self._divided(logits)
        found: dict[Any, Tensor] = {}
        for head in self._heads:
            found |= {(head.name, name): tensor for name, tensor in head.predictions(divided[head.name]).items()}
        return found if keys is None else {key: found[key] for key in keys}

    def own_metrics(self) -> dict[str, Metric]:
        """The loss of each head. `update_metrics` adds those of the heads."""
        return {name: Mean(name) for name in self._loss_names()}

    def take_in(self, metrics: Mapping[str, Any], loss: HeadLoss, predictions: Mapping[Any, Tensor]) -> None:
        """See `BaseHead.take_in`."""
        for name, of_head in zip(self._loss_names(), self._last, strict=True):
            metrics[name].update_state(of_head.training_loss)

    def _loss_names(self) -> list[str]:
        return [head.key("loss") for head in self._heads]

    def _updated(
        self,
        metrics: dict[str, Any],
        found: HeadLoss,
        predictions: Mapping[Any, Tensor],
        regularization_losses: Sequence[Any] | None,
    ) -> dict[str, Any]:
        super()._updated(metrics, found, predictions, regularization_losses)
        for head, of_head in zip(self._heads, self._last, strict=True):
            metrics |= head._updated(head.metrics(), of_head, self._of(head, predictions), None)
        return metrics

    def _without_name(self, key: str) -> str:
        return key

    @staticmethod
    def _of(head: BaseHead, predictions: Mapping[Any, Tensor]) -> dict[Any, Tensor]:
        return {name: tensor for (owner, name), tensor in predictions.items() if owner == head.name}

    def export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """Those of the heads as ``HEAD/SIGNATURE`` (``HEAD`` for its default), and ``predict`` with all predictions."""
        found: dict[str, ExportOutput] = {}
        for position, head in enumerate(self._heads):
            for name, output in head.export_outputs(self._of(head, predictions)).items():
                if name == heads.DEFAULT_SERVING:
                    found[str(head.name)] = output
                    if position == 0:
                        found[name] = output
                else:
                    found[f"{head.name}/{name}"] = output
        every = {f"{owner}/{name}": tensor for (owner, name), tensor in predictions.items()}
        found[heads.PREDICT] = PredictOutput(every)
        return found
