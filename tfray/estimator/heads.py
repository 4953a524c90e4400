"""Heads: from logits to predictions, losses and metrics, and so to the spec of a model function."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tfray.estimator.export_outputs import ClassificationOutput, ExportOutput, PredictOutput
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.input import lookup
from tfray.library.inspect import summaries
from tfray.library.layers import losses
from tfray.library.layers.feature_column import NumericColumn
from tfray.library.layers.losses import Reduction
from tfray.library.metrics import binary_metrics, mean_metrics
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.checks import check_ops
from tfray.ops.math import math_ops
from tfray.ops.strings import string_number_ops
from tfray.training.threads.global_step import get_global_step

DEFAULT_SERVING: Final = "serving_default"
CLASSIFICATION: Final = "classification"
REGRESSION: Final = "regression"
PREDICT: Final = "predict"

_REDUCTIONS: Final = {
    "sum_over_batch_size": Reduction.SUM_OVER_BATCH_SIZE,
    "sum": Reduction.SUM,
    "auto": Reduction.SUM_OVER_BATCH_SIZE,
}
"""Newer names of reductions, those of ``tf.keras.losses``."""


@dataclass(frozen=True)
class HeadLoss:
    """What a head makes of logits and labels.

    Attributes:
        training_loss: The loss to minimise, a scalar.
        unreduced_loss: The loss of each example, ``[batch, 1]`` or ``[batch, logits_dimension]``.
        weights: The weights of the examples, ``[batch, 1]``; 1.0 when there are none.
        processed_labels: The labels as numbers.
    """

    training_loss: Tensor
    unreduced_loss: Tensor
    weights: Any
    processed_labels: Any


class Head(ABC):
    """Base of heads.

    A head of one's own gives `logits_dimension`, and defines `create_loss`, `predictions`, `metric_ops` and
    `export_outputs`. TensorFlow's `metrics` and `update_metrics`, which use metric objects of Keras, are `metric_ops`
    here: pairs (value, update operation), as ``tf.metrics`` makes them.

    Args:
        logits_dimension: Number of logits of an example.
        weight_column: Name of the feature with the weights of the examples, or a numeric column; None for no weights.
        loss_reduction: How the losses of examples become one number: one of `tf.losses.Reduction`, other than ``NONE``.
        loss_fn: ``loss_fn(labels, logits)``, with the further arguments `features` and `loss_reduction` if it wants
            them: the loss of each example, ``[batch, 1]``, in place of the head's own.
        name: Name of the head. The names of its metrics and summaries end in ``/NAME``.

    Raises:
        ValueError: The reduction is not known, or the function takes other arguments.
    """

    def __init__(
        self,
        logits_dimension: int,
        weight_column: Any = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        reduction = _REDUCTIONS.get(loss_reduction, loss_reduction)
        if reduction not in Reduction.all() or reduction == Reduction.NONE:
            raise ValueError(f"loss_reduction is {loss_reduction!r}, expected one of tf.losses.Reduction but NONE")
        if loss_fn is not None:
            names = set(inspect.signature(loss_fn).parameters)
            if not {"labels", "logits"} <= names or names - {"labels", "logits", "features", "loss_reduction"}:
                raise ValueError(f"loss_fn takes {', '.join(names)}, expected labels, logits and perhaps features")
        self._logits_dimension = logits_dimension
        self._weight_column = weight_column
        self._reduction = reduction
        self._loss_fn = loss_fn
        self._name = name

    @property
    def name(self) -> str | None:
        """Name of the head, or None."""
        return self._name

    @property
    def logits_dimension(self) -> int:
        """Number of logits of an example."""
        return self._logits_dimension

    @property
    def loss_reduction(self) -> str:
        """How the losses of examples become one number."""
        return self._reduction

    # -- to be defined ---------------------------------------------------------------------------

    @abstractmethod
    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> HeadLoss:
        """The loss of logits, in a training or evaluation.

        Args:
            features: The features, among which the weights are.
            mode: One of `ModeKeys`.
            logits: ``[batch, logits_dimension]``.
            labels: ``[batch]`` or ``[batch, 1]``, or what the head takes.

        Raises:
            ValueError: Something has a wrong shape or dtype.
        """

    @abstractmethod
    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """The predictions of logits, by name.

        Args:
            logits: ``[batch, logits_dimension]``.
            keys: Names of those that are wanted; all when None.
        """

    @abstractmethod
    def metric_ops(self, loss: HeadLoss, predictions: Mapping[Any, Tensor]) -> dict[str, Any]:
        """Metrics by name: pairs (value, update operation).

        Args:
            loss: What `create_loss` gave.
            predictions: What `predictions` gave.
        """

    @abstractmethod
    def export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """What a saved model offers, by the names of its signatures."""

    # -- what follows ----------------------------------------------------------------------------

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Tensor:
        """The loss to minimise, a scalar. Arguments as of `create_estimator_spec`."""
        found = self.create_loss(features, mode or ModeKeys.EVAL, logits, labels).training_loss
        return math_ops.add_n([found, *regularization_losses]) if regularization_losses else found

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """The spec of a model function.

        Args:
            features: The features.
            mode: One of `ModeKeys`.
            logits: ``[batch, logits_dimension]``.
            labels: The labels, to train and evaluate.
            optimizer: Minimises the loss, and increases the global step.
            trainable_variables: The variables to change; all trainable ones when None.
            train_op_fn: Function from the loss to the training step, in place of `optimizer`.
            update_ops: What to run with each training step; ``GraphKeys.UPDATE_OPS`` when None.
            regularization_losses: Scalars to add to the loss.

        Raises:
            ValueError: Something has a wrong shape or dtype, or not one of `optimizer` and `train_op_fn` is given.
        """
        graph = get_default_graph()
        with graph.name_scope(self._name or "head"):
            with graph.name_scope("predictions"):
                predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = self.export_outputs(predictions)
                return EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
            found = self.create_loss(features, mode, logits, labels)
            extra = math_ops.add_n(list(regularization_losses)) if regularization_losses else None
            loss = found.training_loss if extra is None else math_ops.add_n([found.training_loss, extra])
            if mode == ModeKeys.EVAL:
                with graph.name_scope("metrics"):
                    metrics = self.metric_ops(found, predictions)
                    if extra is not None:
                        metrics[self.key("regularization_loss")] = mean_metrics.mean(extra)
                return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
            train_op = make_train_op(loss, optimizer, train_op_fn, trainable_variables, update_ops)
        self._summarize(found, loss, extra)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def _summarize(self, found: HeadLoss, loss: Tensor, extra: Tensor | None) -> None:
        with get_default_graph().name_scope(None):
            summaries.scalar(self.key("loss"), loss)
            if self._reduction == Reduction.SUM and found.unreduced_loss is not None:
                total = math_ops.reduce_sum(found.weights * array_ops.ones_like(found.unreduced_loss))
                summaries.scalar(self.key("average_loss"), found.training_loss / total)
            if extra is not None:
                summaries.scalar(self.key("regularization_loss"), extra)

    def key(self, name: str) -> str:
        """The name of a metric or summary, which ends in that of the head."""
        return f"{name}/{self._name}" if self._name else name

    def reduced(self, labels: Any, logits: Tensor, features: Any, own: Callable[[], Tensor]) -> HeadLoss:
        """The losses of the examples, weighted and reduced.

        Args:
            labels: The labels as numbers.
            logits: The logits.
            features: The features, among which the weights are.
            own: Makes the losses of the examples, unless there is a `loss_fn`.
        """
        unreduced = own() if self._loss_fn is None else self._called_loss_fn(labels, logits, features)
        weights = weights_of(features, self._weight_column, logits)
        training = losses.compute_weighted_loss(unreduced, weights, reduction=self._reduction)
        return HeadLoss(training, unreduced, weights, labels)

    def _called_loss_fn(self, labels: Any, logits: Tensor, features: Any) -> Tensor:
        assert self._loss_fn is not None
        names = inspect.signature(self._loss_fn).parameters
        more = {"features": features, "loss_reduction": self._reduction}
        loss = convert_to_tensor(
            self._loss_fn(labels=labels, logits=logits, **{name: more[name] for name in more if name in names})
        )
        if loss.shape.rank is not None and loss.shape.rank != logits.shape.rank:
            raise ValueError(f"loss_fn returned {loss!r}, expected the loss of each example: [batch, 1]")
        return loss


# -- checks ------------------------------------------------------------------------------------------------


def with_last_dimension(logits: Any, size: int) -> Tensor:
    """Logits as a tensor. Raises `ValueError` unless their last dimension is `size`."""
    logits = array_ops.to_float(convert_to_tensor(logits))
    if logits.shape.rank is not None and logits.shape.rank < 2:
        raise ValueError(f"the logits are {logits!r}, expected [batch, {size}]")
    if logits.shape.rank is not None and logits.shape.as_list()[-1] not in (None, size):
        raise ValueError(f"the logits are {logits!r}: their last dimension must be {size}")
    return logits


def labels_like(labels: Any, logits: Tensor, size: int) -> Tensor:
    """Labels with a last dimension of `size`, which may be left out of them when it is 1.

    Raises:
        ValueError: There are none, they are sparse, or of another shape.
    """
    if labels is None:
        raise ValueError("there are no labels: to train and to evaluate, the input function must return them")
    if isinstance(labels, SparseTensor):
        raise ValueError("the labels are a sparse tensor, which this head does not take: see tf.sparse.to_dense")
    labels = convert_to_tensor(labels)
    if labels.shape.rank is None or logits.shape.rank is None:
        return array_ops.reshape(labels, [-1, size])
    if size == 1 and labels.shape.rank == logits.shape.rank - 1:
        labels = array_ops.expand_dims(labels, -1)
    last = labels.shape.as_list()[-1:] or [0]
    if labels.shape.rank != logits.shape.rank or last[0] not in (None, size):
        raise ValueError(f"the labels are {labels!r}, expected a last dimension of {size}, as logits {logits!r}")
    return labels


def weights_of(features: Any, column: Any, logits: Tensor) -> Any:
    """The weights of the examples, ``[batch, 1]``; 1.0 if there is no column.

    Raises:
        ValueError: There is no such feature, or it has a wrong shape.
        TypeError: The column is neither a name nor a numeric column.
    """
    if column is None:
        return 1.0
    key, normalize = column, None
    if isinstance(column, NumericColumn):
        key, normalize = column.key, column.normalizer_fn
    if not isinstance(key, str):
        raise TypeError(f"weight_column is {column!r}, expected the name of a feature, or a numeric column")
    if not isinstance(features, Mapping) or key not in features:
        raise ValueError(f"there is no feature {key!r}, which was to hold the weights of the examples")
    weights = array_ops.to_float(convert_to_tensor(features[key]))
    if normalize is not None:
        weights = normalize(weights)
    if logits.shape.rank is not None and weights.shape.rank == logits.shape.rank - 1:
        weights = array_ops.expand_dims(weights, -1)
    if weights.shape.rank is not None and weights.shape.as_list()[-1] not in (None, 1, logits.shape.as_list()[-1]):
        raise ValueError(f"the weights are {weights!r}, expected one for each example, as logits {logits!r}")
    return weights


def in_range(labels: Tensor, count: int) -> Tensor:
    """Labels, checked in each step to be numbers of `count` classes."""
    ids = array_ops.to_int64(labels) if labels.dtype.is_integer else labels
    below = check_ops.assert_less_equal(ids, array_ops.cast(count - 1, ids.dtype), message="labels must be < n_classes")
    above = check_ops.assert_greater_equal(ids, array_ops.cast(0, ids.dtype), message="labels must be >= 0")
    with get_default_graph().control_dependencies([below, above]):
        return array_ops.identity(labels)


def checked_vocabulary(vocabulary: Any, size: int) -> tuple[Any, ...] | None:
    """The words of labels. Raises `ValueError` unless there are as many as classes."""
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, (list, tuple)):
        raise ValueError(f"label_vocabulary is {vocabulary!r}, expected a list of words")
    if len(vocabulary) != size:
        raise ValueError(f"label_vocabulary has {len(vocabulary)} words, expected one for each of {size} classes")
    return tuple(vocabulary)


def ids_of(labels: Tensor, vocabulary: tuple[Any, ...] | None) -> Tensor:
    """Numbers of labels that are words. Raises `ValueError` if they are none."""
    if vocabulary is None:
        return labels
    if labels.dtype.kind != "string":
        raise ValueError(f"there is a label_vocabulary, and the labels are {labels!r}, expected strings")
    return lookup.index_table_from_tensor(list(vocabulary), name="class_id_lookup").lookup(labels)


# -- classes -----------------------------------------------------------------------------------------------


def class_names(ids: Tensor, vocabulary: tuple[Any, ...] | None) -> Tensor:
    """The names of classes: words of the vocabulary, or the numbers as text."""
    if vocabulary is None:
        return string_number_ops.as_string(ids, name="str_classes")
    table = lookup.index_to_string_table_from_tensor(list(vocabulary), name="class_string_lookup")
    return table.lookup(array_ops.to_int64(ids))


def all_classes(scores: Tensor, count: int, vocabulary: tuple[Any, ...] | None) -> tuple[Tensor, Tensor]:
    """For each example the numbers of all classes, and their names: each ``[batch, count]``."""
    batch = array_ops.shape(scores)[0]
    numbers = array_ops.expand_dims(array_ops.range(count), 0)
    names = array_ops.expand_dims(
        convert_to_tensor(list(vocabulary))
        if vocabulary is not None
        else string_number_ops.as_string(array_ops.range(count)),
        0,
    )
    tiles = array_ops.stack([batch, 1])
    return array_ops.tile(numbers, tiles), array_ops.tile(names, tiles)


def classified(
    predictions: Mapping[Any, Tensor], count: int, vocabulary: tuple[Any, ...] | None
) -> dict[str, ExportOutput]:
    """What a classifier exports: the scores of all classes with their names, and all predictions."""
    classes = ClassificationOutput(
        predictions["probabilities"], all_classes(predictions["probabilities"], count, vocabulary)[1]
    )
    return {DEFAULT_SERVING: classes, CLASSIFICATION: classes, PREDICT: PredictOutput(predictions)}


def only(found: dict[str, Tensor], keys: Sequence[str] | None) -> dict[Any, Tensor]:
    """The predictions of some names. Raises `ValueError` for a name that there is not."""
    if keys is None:
        return dict(found)
    unknown = [key for key in keys if key not in found]
    if unknown:
        raise ValueError(f"there are no predictions {', '.join(unknown)}; there are {', '.join(found)}")
    return {key: found[key] for key in keys}


# -- metrics -----------------------------------------------------------------------------------------------


def weighted_mean(values: Tensor, weights: Any) -> Any:
    """The metric of a mean in which each example counts as its weight says."""
    weights = None if isinstance(weights, float) else array_ops.to_float(weights) * array_ops.ones_like(values)
    return mean_metrics.mean(array_ops.to_float(values), weights)


def larger_share(metric: Any) -> Any:
    """The accuracy of always saying what is more frequent, given the metric of the mean of labels 0 and 1."""
    value, update = metric
    return math_ops.maximum(value, 1.0 - value), math_ops.maximum(update, 1.0 - update)


def plain(weights: Any) -> Any:
    """Weights as the functions of ``tf.metrics`` take them."""
    return None if isinstance(weights, float) else weights


def at_threshold(labels: Tensor, predictions: Tensor, weights: Any, threshold: float) -> dict[str, Any]:
    """Accuracy, precision and recall when what is above a threshold counts as yes, by their names."""
    says_yes = array_ops.to_float(math_ops.greater(predictions, threshold))
    broadcast = None if isinstance(weights, float) else weights * array_ops.ones_like(predictions)
    found: dict[str, Any] = {
        f"accuracy/positive_threshold_{threshold:g}": mean_metrics.accuracy(labels, says_yes, broadcast)
    }
    for name, metric in (
        ("precision", binary_metrics.precision_at_thresholds),
        ("recall", binary_metrics.recall_at_thresholds),
    ):
        value, update = metric(labels, predictions, [threshold], broadcast)
        found[f"{name}/positive_threshold_{threshold:g}"] = (array_ops.squeeze(value), array_ops.squeeze(update))
    return found


def areas(labels: Tensor, predictions: Tensor, weights: Any) -> dict[str, Any]:
    """The areas under both curves of a binary classifier, by their names."""
    broadcast = None if isinstance(weights, float) else weights * array_ops.ones_like(predictions)
    return {
        "auc": binary_metrics.auc(labels, predictions, broadcast),
        "auc_precision_recall": binary_metrics.auc(labels, predictions, broadcast, curve="PR"),
    }


def checked_thresholds(thresholds: Any) -> tuple[float, ...]:
    """Thresholds. Raises `ValueError` for one that is not between 0 and 1."""
    found = tuple(thresholds or ())
    for threshold in found:
        if not 0 < threshold < 1:
            raise ValueError(f"thresholds are {found}, expected numbers between 0 and 1")
    return found


# -- training ----------------------------------------------------------------------------------------------


def make_train_op(
    loss: Tensor,
    optimizer: Any,
    train_op_fn: Callable[[Tensor], Any] | None,
    trainable_variables: Sequence[Any] | None,
    update_ops: Sequence[Any] | None,
) -> Operation:
    """One training step, with the graph's updates. See `Head.create_estimator_spec`."""
    if (optimizer is None) == (train_op_fn is None):
        raise ValueError("to train, a head needs either optimizer or train_op_fn")
    graph = get_default_graph()
    updates = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
    if train_op_fn is not None:
        step = train_op_fn(loss)
    else:
        step = optimizer.minimize(loss, global_step=get_global_step(), var_list=trainable_variables)
    return grouping_ops.group(step, *updates) if updates else step


def to_float(labels: Tensor) -> Tensor:
    """Labels as float32."""
    return labels if labels.dtype == dtypes.float32 else array_ops.to_float(labels)
