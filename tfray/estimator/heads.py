"""Heads: from logits to predictions, losses and metrics, and so to the spec of a model function."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from tfray.estimator.export_outputs import ClassificationOutput, ExportOutput, PredictOutput
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.framework import dtypes
from tfray.framework.arguments import checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.sparse_tensor import SparseTensor
from tfray.keras.running_metrics import AUC, BinaryAccuracy, Mean, Metric, Precision, Recall
from tfray.library.input import lookup
from tfray.library.inspect import summaries
from tfray.library.layers import losses
from tfray.library.layers.feature_column import NumericColumn
from tfray.library.layers.losses import Reduction
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.checks import check_ops, print_assert_ops
from tfray.ops.math import math_ops
from tfray.ops.strings import string_number_ops
from tfray.training.threads.global_step import get_global_step

DEFAULT_SERVING: Final = "serving_default"
CLASSIFICATION: Final = "classification"
REGRESSION: Final = "regression"
PREDICT: Final = "predict"
_REGULARIZATION: Final = "regularization_loss"

AREAS: Final = ("auc", "auc_precision_recall")

_SMALL: Final = 1e-6
"""What keeps a share without counts from being 0 / 0: it is 1."""

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
    """Base of heads, and what a program derives a head of its own from.

    A head of one's own defines the properties and methods below, and `create_estimator_spec` for the model functions
    that call it; it can make the spec of the others.
    """

    @property
    @abstractmethod
    def name(self) -> str | None:
        """Name of the head, or None."""

    @property
    @abstractmethod
    def logits_dimension(self) -> int:
        """Number of logits of an example."""

    @property
    @abstractmethod
    def loss_reduction(self) -> str:
        """How the losses of examples become one number: one of `tf.losses.Reduction`."""

    @abstractmethod
    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Tensor:
        """The loss to minimise.

        Args:
            labels: ``[batch]`` or ``[batch, 1]``, or what the head takes.
            logits: ``[batch, logits_dimension]``.
            features: The features, among which the weights of examples are.
            mode: One of `ModeKeys`.
            regularization_losses: Scalars to add to the loss.

        Returns:
            A float32 scalar.

        Raises:
            ValueError: Something has a wrong shape or dtype.
        """

    @abstractmethod
    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """The predictions of logits, by name.

        Args:
            logits: ``[batch, logits_dimension]``.
            keys: Names of those that are wanted; all when None.

        Returns:
            The predictions.

        Raises:
            ValueError: The logits have a wrong shape, or there is no prediction of a name.
        """

    @abstractmethod
    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """New metrics, which have seen nothing.

        Args:
            regularization_losses: If there are some, their sum is a metric, too.

        Returns:
            Objects such as those of `tf.keras.metrics`, by name.
        """

    @abstractmethod
    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Let metrics take a batch in: the operations that do so stand in the `updates` of each.

        Args:
            eval_metrics: What `metrics` gave.
            features: The features, among which the weights of examples are.
            logits: ``[batch, logits_dimension]``.
            labels: As of `loss`.
            mode: One of `ModeKeys`.
            regularization_losses: Scalars, if `metrics` was called with some.

        Returns:
            The metrics by name, as ``EstimatorSpec(eval_metric_ops=...)`` takes them.

        Raises:
            ValueError: Something has a wrong shape or dtype.
        """

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

        Returns:
            The spec. To evaluate, it has the metrics of `metrics`, updated.

        Raises:
            ValueError: Something has a wrong shape or dtype, or not one of `optimizer` and `train_op_fn` is given.
            NotImplementedError: The head is one of a program that does not define this method.
        """
        raise NotImplementedError(
            f"Subclasses of Head must implement `create_estimator_spec()`, and {type(self).__name__} does not"
        )


class BaseHead(Head):
    """What the heads here share: they define `create_loss`, `predictions`, `own_metrics`, `take_in`, `export_outputs`.

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

    @checked
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
            raise ValueError(f"Invalid loss_reduction: {loss_reduction}; expected one of tf.losses.Reduction but NONE")
        if loss_fn is not None:
            _check_loss_fn(loss_fn)
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

    _is_canned = False

    @classmethod
    def canned(cls, *args: Any, **options: Any) -> Self:
        """The head as the canned estimators have it: see `areas`. Arguments as of the class."""
        made = cls(*args, **options)
        made._is_canned = True
        return made

    @abstractmethod
    def own_metrics(self) -> dict[str, Metric]:
        """New metrics, by their names without that of the head, and without that of the regularization."""

    @abstractmethod
    def take_in(self, metrics: Mapping[str, Any], loss: HeadLoss, predictions: Mapping[Any, Tensor]) -> None:
        """Let metrics take a batch in.

        Args:
            metrics: Those of `own_metrics`, by the same names.
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
        """See `Head.loss`."""
        found = self.create_loss(features, mode or ModeKeys.EVAL, logits, labels).training_loss
        return math_ops.add_n([found, *regularization_losses]) if regularization_losses else found

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """See `Head.metrics`."""
        with get_default_graph().name_scope("metrics"):
            found = {self.key(name): metric for name, metric in self.own_metrics().items()}
            if regularization_losses is not None:
                found[self._regularization_key()] = Mean(_REGULARIZATION)
        return found

    def update_metrics(  # type: ignore[override]
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """See `Head.update_metrics`, from which it differs in that it takes no mode."""
        found = self.create_loss(features, ModeKeys.EVAL, logits, labels)
        return self._updated(eval_metrics, found, self.predictions(logits), regularization_losses)

    def _updated(
        self,
        metrics: dict[str, Any],
        found: HeadLoss,
        predictions: Mapping[Any, Tensor],
        regularization_losses: Sequence[Any] | None,
    ) -> dict[str, Any]:
        with get_default_graph().name_scope("metrics"):
            self.take_in({self._without_name(key): metric for key, metric in metrics.items()}, found, predictions)
            if regularization_losses is not None:
                metrics[self._regularization_key()].update_state(math_ops.add_n(list(regularization_losses)))
        return metrics

    def _without_name(self, key: str) -> str:
        return key.removesuffix(f"/{self._name}") if self._name else key

    def _regularization_key(self) -> str:
        return f"{_REGULARIZATION}/{self._name}" if self._name else _REGULARIZATION

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
        """See `Head.create_estimator_spec`."""
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
                given = regularization_losses or None
                metrics = self._updated(self.metrics(given), found, predictions, given)
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
                summaries.scalar(self.key(_REGULARIZATION), extra)

    def key(self, name: str) -> str:
        """The name of a metric or summary, which ends in that of the head."""
        return f"{name}/{self._name}" if self._name else name

    def reduced(
        self, labels: Any, logits: Tensor, features: Any, own: Callable[[], Tensor], loss_dimension: int = 1
    ) -> HeadLoss:
        """The losses of the examples, weighted and reduced.

        Args:
            labels: The labels as numbers.
            logits: The logits.
            features: The features, among which the weights are.
            own: Makes the losses of the examples, unless there is a `loss_fn`.
            loss_dimension: The last dimension of what a `loss_fn` returns.
        """
        unreduced = own() if self._loss_fn is None else self._called_loss_fn(labels, logits, features, loss_dimension)
        weights = weights_of(features, self._weight_column, logits, loss_dimension > 1)
        training = losses.compute_weighted_loss(unreduced, weights, reduction=self._reduction)
        return HeadLoss(training, unreduced, weights, labels)

    def _called_loss_fn(self, labels: Any, logits: Tensor, features: Any, loss_dimension: int) -> Tensor:
        assert self._loss_fn is not None
        names = inspect.signature(self._loss_fn).parameters
        more = {"features": features, "loss_reduction": self._reduction}
        loss = convert_to_tensor(
            self._loss_fn(labels=labels, logits=logits, **{name: more[name] for name in more if name in names})
        )
        message = f"loss_fn must return Tensor of shape [D0, D1, ... DN, {loss_dimension}]. "
        expected, found = _shape_below(logits, loss_dimension), array_ops.shape(loss)
        data = [message, "logits_shape: ", array_ops.shape(logits), "loss_shape: ", found]
        check = print_assert_ops.Assert(math_ops.reduce_all(math_ops.equal(*_of_one_length(found, expected))), data)
        with get_default_graph().control_dependencies([check]):
            return array_ops.identity(loss)


# -- checks ------------------------------------------------------------------------------------------------


def _check_loss_fn(loss_fn: Callable[..., Any]) -> None:
    names = tuple(inspect.signature(loss_fn).parameters)
    for each in ("labels", "logits"):
        if each not in names:
            raise ValueError(f"loss_fn must contain argument: {each}. Given arguments: {names}")
    if unknown := [name for name in names if name not in ("labels", "logits", "features", "loss_reduction")]:
        raise ValueError(f"loss_fn has unexpected args: {unknown}; it may take features and loss_reduction besides")


def _shape_below(logits: Tensor, size: int) -> Tensor:
    """The shape of logits, with another last dimension."""
    return array_ops.concat([array_ops.shape(logits)[:-1], [size]], 0)


def with_last_dimension(logits: Any, size: int) -> Tensor:
    """Logits as a tensor. Their last dimension must be `size`.

    Raises:
        ValueError: It is not.
        InvalidArgumentError: In the step, when only the values tell.
    """
    logits = array_ops.to_float(convert_to_tensor(logits))
    message = "logits shape must be [D0, D1, ... DN, logits_dimension]"
    if logits.shape.rank is not None and logits.shape.rank < 2:
        raise ValueError(f"{message}, got {logits.shape} of {logits!r}: expected [batch, {size}]")
    last = logits.shape.as_list()[-1] if logits.shape.rank is not None else None
    if last is not None:
        if last != size:
            raise ValueError(f"{message}, got {logits.shape} of {logits!r}: the last dimension must be {size}")
        return logits
    found = array_ops.shape(logits)
    checks = [
        check_ops.assert_rank_at_least(logits, 2, [found], message=message),
        check_ops.assert_equal(size, found[-1], [found], message=message),
    ]
    with get_default_graph().control_dependencies(checks):
        return array_ops.identity(logits)


def labels_like(labels: Any, logits: Tensor, size: int) -> Tensor:
    """Labels with a last dimension of `size`, which may be left out of them when it is 1.

    Raises:
        ValueError: There are none, they are sparse, or of another shape.
        InvalidArgumentError: In the step, when only the values tell.
    """
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor. Given: None. To train and to evaluate, the input function returns labels"
        )
    if isinstance(labels, SparseTensor):
        raise ValueError(
            f"SparseTensor labels are not supported. Labels must be a Tensor of shape [D0, D1, ..., DN, {size}]: "
            "see tf.sparse.to_dense"
        )
    labels = convert_to_tensor(labels)
    if labels.shape.rank is not None and logits.shape.rank is not None and labels.shape.rank == logits.shape.rank - 1:
        labels = array_ops.expand_dims(labels, -1)
    message = f"labels shape must be [D0, D1, ... DN, {size}]: compare it with the classes or numbers of the head"
    rank = labels.shape.rank
    if rank is not None and rank < 2:
        raise ValueError(f"{message}; the labels are {labels!r}")
    last = labels.shape.as_list()[-1] if rank is not None else None
    if last not in (None, size):
        raise ValueError(
            f"Mismatched label shape. Expected labels dimension={size}. Received {last}, in {labels!r} for "
            f"logits {logits!r}: check the shape of the labels, and n_classes or label_dimension of the head"
        )
    expected, found = _shape_below(logits, size), array_ops.shape(labels)
    data = ["expected_labels_shape: ", expected, "labels_shape: ", found]
    with get_default_graph().control_dependencies([check_ops.assert_equal(expected, found, data, message=message)]):
        return array_ops.identity(labels)


def weights_of(features: Any, column: Any, logits: Tensor, per_logit: bool = False) -> Any:
    """The weights of the examples, ``[batch, 1]``; 1.0 if there is no column.

    Args:
        features: The features.
        column: Their name, or a numeric column.
        logits: ``[batch, logits_dimension]``.
        per_logit: Each logit may have a weight of its own.

    Raises:
        ValueError: There is no such feature, or it holds no numbers.
        TypeError: The column is neither a name nor a numeric column.
        InvalidArgumentError: In the step, when the shape is another one.
    """
    if column is None:
        return 1.0
    key, normalize = column, None
    if isinstance(column, NumericColumn):
        key, normalize = column.key, column.normalizer_fn
    if not isinstance(key, str):
        raise TypeError(f"Weight column must be either a string or NumericColumn. Given type: {type(column)}")
    if not isinstance(features, Mapping) or key not in features:
        raise ValueError(f"there is no feature {key!r}, which was to hold the weights of the examples")
    weights = convert_to_tensor(features[key])
    if not (weights.dtype.is_floating or weights.dtype.is_integer):
        raise ValueError(f"Weight column should be castable to float. Given dtype: {weights.dtype!r}, of {key!r}")
    weights = array_ops.to_float(weights)
    if normalize is not None:
        weights = normalize(weights)
    if logits.shape.rank is not None and weights.shape.rank == logits.shape.rank - 1:
        weights = array_ops.expand_dims(weights, -1)
    return _checked_weights(weights, logits, per_logit)


def _checked_weights(weights: Tensor, logits: Tensor, per_logit: bool) -> Tensor:
    expected, whole, found = _shape_below(logits, 1), array_ops.shape(logits), array_ops.shape(weights)
    message = "weights shape must be [D0, D1, ... DN] or [D0, D1, ... DN, 1]"
    fits = math_ops.reduce_all(math_ops.equal(*_of_one_length(found, expected)))
    if per_logit:
        message = "weights shape must be [D0, D1, ... DN], [D0, D1, ... DN, 1] or [D0, D1, ... DN, logits_dimension]"
        fits = math_ops.logical_or(fits, math_ops.reduce_all(math_ops.equal(*_of_one_length(found, whole))))
    check = print_assert_ops.Assert(fits, [message, "logits_shape: ", whole, "weights_shape: ", found])
    with get_default_graph().control_dependencies([check]):
        return array_ops.identity(weights)


def _of_one_length(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Two shapes, the shorter one filled with -1, which is no dimension."""
    length = math_ops.maximum(array_ops.size(first), array_ops.size(second))
    padded = [array_ops.pad(each, [[0, length - array_ops.size(each)]], constant_values=-1) for each in (first, second)]
    return padded[0], padded[1]


def in_range(labels: Tensor, count: int, message: str | None = None) -> Tensor:
    """Labels, checked in each step to be numbers of `count` classes. A message replaces the usual ones."""
    ids = array_ops.to_int64(labels) if labels.dtype.is_integer else labels
    below = check_ops.assert_less_equal(
        ids, array_ops.cast(count - 1, ids.dtype), message=message or "Labels must be <= n_classes - 1"
    )
    above = check_ops.assert_greater_equal(ids, array_ops.cast(0, ids.dtype), message=message or "Labels must be >= 0")
    with get_default_graph().control_dependencies([below, above]):
        return array_ops.identity(labels)


def checked_vocabulary(vocabulary: Any, size: int) -> tuple[Any, ...] | None:
    """The words of labels. Raises `ValueError` unless there are as many as classes."""
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, (list, tuple)):
        raise ValueError(f"label_vocabulary should be a list or a tuple. Given type: {type(vocabulary)}")
    if len(vocabulary) != size:
        raise ValueError(
            '"label_vocabulary" does not have "n_classes" items. Length of label_vocabulary must be n_classes '
            f"({size}). Given: {len(vocabulary)}. len(label_vocabulary)={len(vocabulary)}, n_classes={size}, "
            f"label_vocabulary={vocabulary}"
        )
    return tuple(vocabulary)


def ids_of(labels: Tensor, vocabulary: tuple[Any, ...] | None) -> Tensor:
    """Numbers of labels that are words. Raises `ValueError` if they are none."""
    if vocabulary is None:
        return labels
    if labels.dtype.kind != "string":
        raise ValueError(f"Labels dtype should be string if there is a vocabulary. Instead got {labels.dtype!r}")
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


class TrapezoidArea(AUC):
    """The area under precision over recall as `tf.metrics.auc` sums it, by trapezoids.

    Args:
        name: Name.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(curve="PR", name=name)

    def result(self) -> Tensor:
        """The area, a float32 scalar."""
        hits, _, false, missed = self._counts.values()
        recall, precision = ((hits + _SMALL) / (hits + rest + _SMALL) for rest in (missed, false))
        return math_ops.reduce_sum((recall[:-1] - recall[1:]) * (precision[:-1] + precision[1:]) / 2.0)


def areas(end: str = "", is_canned: bool = False) -> dict[str, Metric]:
    """The areas under both curves of a binary classifier, by their names, those of `AREAS` and an end.

    Args:
        end: What the names end in.
        is_canned: Whether the canned estimators' head is meant, of which TensorFlow 1 sums one of them by trapezoids.
    """
    roc, below = (f"{name}{end}" for name in AREAS)
    return {roc: AUC(name=roc), below: TrapezoidArea(below) if is_canned else AUC(curve="PR", name=below)}


def at_thresholds(thresholds: Sequence[float], key: Callable[[str], str]) -> dict[str, Metric]:
    """Accuracy, precision and recall when what is above a threshold counts as yes, by `threshold_names`.

    Args:
        thresholds: The thresholds.
        key: Function from such a name to that of the object.
    """
    found: dict[str, Metric] = {}
    for threshold in thresholds:
        accuracy, precision, recall = threshold_names([threshold])
        found[accuracy] = BinaryAccuracy(name=key(accuracy), threshold=threshold)
        found[precision] = Precision(threshold, name=key(precision))
        found[recall] = Recall(threshold, name=key(recall))
    return found


def threshold_names(thresholds: Sequence[float]) -> list[str]:
    """Names of metrics at thresholds, three for each."""
    kinds = ("accuracy", "precision", "recall")
    return [f"{kind}/positive_threshold_{threshold:g}" for threshold in thresholds for kind in kinds]


def take_in_all(metrics: Mapping[str, Metric], names: Iterable[str], values: Sequence[Any], weights: Any) -> None:
    """Let the metrics of some names take the same values in.

    Args:
        metrics: Metrics by name.
        names: The names.
        values: The labels and the predictions, or one tensor of which there is a mean.
        weights: The weights of the examples.
    """
    for name in names:
        metrics[name].update_state(*values, sample_weight=weights)


def checked_thresholds(thresholds: Any) -> tuple[float, ...]:
    """Thresholds. Raises `ValueError` for one that is not between 0 and 1."""
    found = tuple(thresholds or ())
    for threshold in found:
        if not 0 < threshold < 1:
            raise ValueError(
                f"thresholds not in (0, 1): {found}; thresholds must be in (0, 1) range. Given: {threshold}"
            )
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
