"""Heads of ``tf.contrib.learn``: from logits to loss, predictions, metrics and what is exported."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tfray.library.input.lookup import index_table_from_tensor, index_to_string_table_from_tensor
from tfray.library.inspect import summaries
from tfray.library.layers import slim_functions
from tfray.library.layers.losses import Reduction, hinge_loss
from tfray.library.metrics import binary_metrics, mean_metrics
from tfray.library.variables.variable_scope import ScopeLike, variable_scope
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.arrays.shape_ops import identity
from tfray.ops.math import math_ops
from tfray.ops.math.search_ops import argmax
from tfray.ops.nn import cross_entropy_ops, nn_ops
from tfray.ops.sparse.sparse_layout_ops import sparse_reshape, sparse_to_indicator
from tfray.ops.strings.string_number_ops import as_string
from tfray.programs.learn.learn_keys import MetricKey, PredictionKey, ProblemType
from tfray.programs.learn.model_fn_ops import ModelFnOps
from tfray.programs.metric_internals import broadcast_weights
from tfray.training.optimizers.adagrad import AdagradOptimizer

__all__ = [
    "Head",
    "binary_svm_head",
    "loss_only_head",
    "multi_class_head",
    "multi_head",
    "multi_label_head",
    "no_op_train_fn",
    "poisson_regression_head",
    "regression_head",
]

Losses = tuple[Tensor, Tensor]
"""The loss to train on, and the one to report."""

_MODES: Final = ("train", "eval", "infer")


def no_op_train_fn(loss: Any) -> Operation:
    """A training function that does nothing: for those who train on the loss themselves."""
    del loss
    return no_op()


class Head(ABC):
    """The last part of a model: it makes loss, predictions and metrics of logits."""

    head_name: str | None = None
    """Its name, by which predictions and metrics of several heads are told apart."""

    @property
    @abstractmethod
    def logits_dimension(self) -> int:
        """How many logits an example has."""

    @abstractmethod
    def create_model_fn_ops(
        self,
        features: Mapping[str, Any],
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: ScopeLike | None = None,
    ) -> ModelFnOps:
        """What a model function returns.

        Args:
            features: Features by name.
            mode: One of `ModeKeys`.
            labels: Labels, or labels by name.
            train_op_fn: Function from the loss, a scalar, to the training step; needed to train.
            logits: Logits, shape ``[batch, logits_dimension]``; either these or `logits_input`.
            logits_input: What a linear layer of the head is to make them of, shape ``[batch, ...]``.
            scope: Variable scope; the name of the head when None.

        Returns:
            The operations for this mode.

        Raises:
            ValueError: The mode is not known, there is no training function, or not one of both kinds of logits.
        """


class _SingleHead(Head):
    """A head for one question.

    Args:
        problem_type: One of `ProblemType`.
        logits_dimension: As of `Head`.
        default_scope: The variable scope of a head without a name.
        label_name: Name of the labels.
        weight_column_name: Name of the feature that weights examples.
        enable_centered_bias: Learn a bias of its own for each logit.
        head_name: As of `Head`.
    """

    _makes_classes = False
    """Whether what is exported are classes and probabilities."""
    _label_keys: Sequence[str] | None = None

    def __init__(
        self,
        problem_type: int,
        logits_dimension: int,
        default_scope: str,
        label_name: str | None,
        weight_column_name: str | None,
        enable_centered_bias: bool,
        head_name: str | None,
    ) -> None:
        if logits_dimension is None or logits_dimension < 1:
            raise ValueError(f"Invalid logits_dimension {logits_dimension}.")
        self._problem_type, self._logits_dimension = problem_type, logits_dimension
        self._default_scope, self._enable_centered_bias = default_scope, enable_centered_bias
        self.label_name, self.weight_column_name, self.head_name = label_name, weight_column_name, head_name

    @property
    def logits_dimension(self) -> int:
        return self._logits_dimension

    def _key(self, name: str) -> str:
        return f"{name}/{self.head_name}" if self.head_name else name

    @abstractmethod
    def _loss(self, labels: Any, logits: Tensor, weights: Any) -> Losses:
        """Both losses."""

    @abstractmethod
    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """Predictions by the names of `PredictionKey`."""

    def _metrics(self, predictions: dict[str, Tensor], labels: Any, weights: Any) -> dict[str, Any]:
        """Metrics by the names of `MetricKey`, besides the loss."""
        return {}

    def _prepared(self, labels: Any) -> Any:
        """The labels as a tensor."""
        if isinstance(labels, SparseTensor):
            raise ValueError("SparseTensor is not supported.")
        return labels

    def create_model_fn_ops(
        self,
        features: Mapping[str, Any],
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: ScopeLike | None = None,
    ) -> ModelFnOps:
        with variable_scope(scope, self.head_name or self._default_scope):
            if mode == "infer" or labels is None:
                wanted = None
            else:
                named = labels[self.label_name] if isinstance(labels, Mapping) else labels
                wanted = self._prepared(convert_to_tensor_or_sparse_tensor(named))
            logits = _logits(logits_input, logits, self._logits_dimension)
            _check_mode(mode)
            bias = None
            if self._enable_centered_bias:
                bias = self._centered_bias()
                logits = nn_ops.bias_add(logits, bias)
            with get_default_graph().name_scope("predictions"):
                predictions = self._predictions(logits)
            alternatives = self._alternatives(predictions)
            loss = train_op = metrics = None
            if wanted is not None:
                weights = _weights(features, self.weight_column_name)
                loss, reported = self._loss(wanted, logits, weights)
                _summarize_loss(self._key(MetricKey.LOSS), reported)
                if mode == "train":
                    train_op = _trained(train_op_fn, loss)
                    if bias is not None:
                        train_op = group(train_op, self._centered_bias_step(bias, logits, wanted, weights))
                with get_default_graph().name_scope("metrics"):
                    means = {MetricKey.LOSS: mean_metrics.mean(reported)}
                    made = means | self._metrics(predictions, wanted, weights)
                metrics = {self._key(name): metric for name, metric in made.items()}
            return ModelFnOps(mode, predictions, loss, train_op, metrics, alternatives)

    def _centered_bias(self) -> Variable:
        bias = Variable(array_ops.zeros([self._logits_dimension]), name="centered_bias_weight")
        for number in range(self._logits_dimension):
            summaries.scalar(self._key(f"centered_bias/bias_{number}"), bias[number])
        return bias

    def _centered_bias_step(self, bias: Variable, logits: Tensor, labels: Any, weights: Any) -> Operation:
        # Broadcast by tiles: the loss of these logits depends on the bias alone.
        alone = array_ops.tile(array_ops.reshape(bias, [1, -1]), [array_ops.shape(logits)[0], 1])
        loss = math_ops.reduce_mean(array_ops.stack(self._loss(labels, alone, weights)))
        return AdagradOptimizer(0.1).minimize(loss, var_list=[bias])

    def _alternatives(self, predictions: Mapping[str, Tensor]) -> dict[str | None, tuple[int, dict[str, Tensor]]]:
        if not self._makes_classes:
            return {self.head_name: (self._problem_type, dict(predictions))}
        probabilities = predictions[PredictionKey.PROBABILITIES]
        count = array_ops.shape(probabilities)[1]
        names = as_string(array_ops.range(count)) if not self._label_keys else convert_to_tensor(self._label_keys)
        classes = array_ops.tile(array_ops.reshape(names, [1, -1]), [array_ops.shape(probabilities)[0], 1])
        exported = {PredictionKey.PROBABILITIES: probabilities, PredictionKey.CLASSES: classes}
        return {self.head_name: (self._problem_type, exported)}


def _logits(logits_input: Any, logits: Any, dimension: int) -> Tensor:
    if logits is None:
        if logits_input is None:
            raise ValueError("Neither logits nor logits_input supplied.")
        return slim_functions.linear(logits_input, dimension, scope="logits")
    if logits_input is not None:
        raise ValueError("Both logits and logits_input supplied.")
    logits = convert_to_tensor(logits, name="logits")
    if logits.shape.rank is not None:
        logits.shape.dims[-1].assert_is_compatible_with(dimension)
    return logits


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"mode={mode} unrecognized.")


def _trained(train_op_fn: Callable[[Tensor], Any] | None, loss: Tensor) -> Any:
    if train_op_fn is None:
        raise ValueError("train_op_fn can not be None in TRAIN mode")
    return train_op_fn(loss)


def _summarize_loss(name: str, loss: Tensor) -> None:
    with get_default_graph().name_scope(None):
        summaries.scalar(name, identity(loss))


def _weights(features: Mapping[str, Any], name: str | None) -> Any:
    """Weights of rank 0, or 2 and above; None without a name."""
    if not name:
        return None
    if name not in features:
        raise ValueError(f"Weights {name} missing from features.")
    weights = array_ops.cast(features[name], dtypes.float32)
    if weights.shape.rank != 1:
        return weights
    return (sparse_reshape if isinstance(weights, SparseTensor) else array_ops.reshape)(weights, [-1, 1])


def _weighted(losses: Tensor, weights: Any) -> Losses:
    """The mean over all examples to train on, and the mean by weights to report."""
    if weights is None:
        loss = math_ops.reduce_mean(losses)
        return loss, loss
    weights = broadcast_weights(weights, losses)
    weighted = losses * weights
    return math_ops.reduce_mean(weighted), math_ops.reduce_sum(weighted) / math_ops.reduce_sum(weights)


def _column(values: Any) -> Tensor:
    """A vector as a column, ``[batch, 1]``; anything else as it is."""
    tensor = convert_to_tensor(values)
    return array_ops.expand_dims(tensor, 1) if tensor.shape.rank == 1 else tensor


class _RegressionHead(_SingleHead):
    def __init__(
        self, label_dimension: int, losses: Callable[[Tensor, Tensor], Tensor], link_fn: Any, *common: Any
    ) -> None:
        super().__init__(ProblemType.LINEAR_REGRESSION, label_dimension, "regression_head", *common)
        self._losses, self._link_fn = losses, link_fn

    def _loss(self, labels: Any, logits: Tensor, weights: Any) -> Losses:
        labels, logits = _column(labels), _column(logits)
        logits.shape.assert_is_compatible_with(labels.shape)
        return _weighted(self._losses(labels, logits), weights)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        scores = array_ops.squeeze(logits, [1]) if self._logits_dimension == 1 else logits
        return {PredictionKey.SCORES: self._link_fn(scores)}


def _squared(labels: Tensor, logits: Tensor) -> Tensor:
    return math_ops.squared_difference(logits, array_ops.cast(labels, dtypes.float32))


def _poisson(labels: Tensor, logits: Tensor) -> Tensor:
    return cross_entropy_ops.log_poisson_loss(labels, logits, compute_full_loss=True)


def _two_classes(logits: Tensor) -> Tensor:
    return array_ops.concat([array_ops.zeros_like(logits), logits], 1)


class _BinaryLogisticHead(_SingleHead):
    _makes_classes = True

    def __init__(self, loss_fn: Any, thresholds: Sequence[float] | None, *common: Any) -> None:
        super().__init__(ProblemType.LOGISTIC_REGRESSION, 1, "binary_logistic_head", *common)
        self._loss_fn, self._thresholds = loss_fn, thresholds or (0.5,)

    def _loss(self, labels: Any, logits: Tensor, weights: Any) -> Losses:
        if self._loss_fn:
            return _custom_loss(self._loss_fn, labels, logits, weights)
        labels = _column(array_ops.cast(labels, dtypes.float32))
        return _weighted(
            cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits),
            weights,
        )

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        both = _two_classes(logits)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.LOGISTIC: math_ops.sigmoid(logits, name=PredictionKey.LOGISTIC),
            PredictionKey.PROBABILITIES: cross_entropy_ops.softmax(both, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: argmax(both, 1, name=PredictionKey.CLASSES),
        }

    def _metrics(self, predictions: dict[str, Tensor], labels: Any, weights: Any) -> dict[str, Any]:
        logistic = predictions[PredictionKey.LOGISTIC]
        found = {
            MetricKey.ACCURACY: mean_metrics.accuracy(labels, predictions[PredictionKey.CLASSES], weights),
            MetricKey.PREDICTION_MEAN: _mean(logistic, weights),
            MetricKey.LABEL_MEAN: _mean(labels, weights),
            MetricKey.ACCURACY_BASELINE: _mean(labels, weights),
            MetricKey.AUC: _area(logistic, labels, weights),
            MetricKey.AUC_PR: _area(logistic, labels, weights, curve="PR"),
        }
        for threshold in self._thresholds:
            above = array_ops.cast(math_ops.greater_equal(logistic, threshold), dtypes.float32)
            found[MetricKey.ACCURACY_MEAN % threshold] = mean_metrics.accuracy(labels, above, weights)
            for key, at_thresholds in (
                (MetricKey.PRECISION_MEAN, binary_metrics.precision_at_thresholds),
                (MetricKey.RECALL_MEAN, binary_metrics.recall_at_thresholds),
            ):
                value, update = at_thresholds(labels, logistic, (threshold,), weights)
                found[key % threshold] = array_ops.squeeze(value), array_ops.squeeze(update)
        return found


def _custom_loss(loss_fn: Any, labels: Any, logits: Tensor, weights: Any) -> Losses:
    loss = loss_fn(labels, logits) if weights is None else loss_fn(labels, logits, weights)
    return loss, loss


def _mean(values: Any, weights: Any, class_id: int | None = None) -> Any:
    values = array_ops.cast(values, dtypes.float32)
    weights = None if weights is None else broadcast_weights(weights, values)
    if class_id is not None:
        values, weights = values[:, class_id], None if weights is None else weights[:, class_id]
    return mean_metrics.mean(values, weights)


def _area(predictions: Tensor, labels: Tensor, weights: Any, class_id: int | None = None, curve: str = "ROC") -> Any:
    labels = array_ops.cast(labels, dtypes.bool_)
    weights = None if weights is None else broadcast_weights(weights, predictions)
    if class_id is not None:
        predictions, labels = predictions[:, class_id], labels[:, class_id]
        weights = None if weights is None else weights[:, class_id]
    return binary_metrics.auc(labels, predictions, weights, curve=curve)


class _MultiClassHead(_SingleHead):
    _makes_classes = True

    def __init__(
        self,
        n_classes: int,
        loss_fn: Any,
        metric_class_ids: Sequence[int] | None,
        label_keys: Sequence[str] | None,
        *common: Any,
    ) -> None:
        super().__init__(ProblemType.CLASSIFICATION, n_classes, "multi_class_head", *common)
        self._loss_fn, self._label_keys = loss_fn, label_keys
        self._metric_class_ids = _class_ids(metric_class_ids, n_classes)
        if label_keys and len(label_keys) != n_classes:
            raise ValueError("Length of label_keys must equal n_classes.")

    def _prepared(self, labels: Any) -> Any:
        labels = super()._prepared(labels)
        if not self._label_keys:
            return labels, labels
        return labels, index_table_from_tensor(self._label_keys, name="label_id_lookup").lookup(labels)

    def _loss(self, labels: Any, logits: Tensor, weights: Any) -> Losses:
        _, ids = labels
        if self._loss_fn:
            return _custom_loss(self._loss_fn, ids, logits, weights)
        if not ids.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer Instead got {ids.dtype}.")
        is_column = ids.shape.rank == 2
        flat = array_ops.squeeze(ids, [1]) if is_column else ids
        losses = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=flat, logits=logits)
        return _weighted(array_ops.expand_dims(losses, 1) if is_column else losses, weights)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        classes = argmax(logits, 1, name=PredictionKey.CLASSES)
        if self._label_keys:
            classes = index_to_string_table_from_tensor(self._label_keys, name="class_string_lookup").lookup(classes)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: cross_entropy_ops.softmax(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: classes,
        }

    def _metrics(self, predictions: dict[str, Tensor], labels: Any, weights: Any) -> dict[str, Any]:
        given, ids = labels
        classes = predictions[PredictionKey.CLASSES]
        found = {MetricKey.ACCURACY: mean_metrics.accuracy(given, classes, weights)}
        for number in () if self._label_keys else self._metric_class_ids:
            found |= {
                MetricKey.CLASS_PREDICTION_MEAN % number: _share(classes, weights, number),
                MetricKey.CLASS_LABEL_MEAN % number: _share(ids, weights, number),
                MetricKey.CLASS_PROBABILITY_MEAN % number: _mean(
                    predictions[PredictionKey.PROBABILITIES], weights, number
                ),
                MetricKey.CLASS_LOGITS_MEAN % number: _mean(predictions[PredictionKey.LOGITS], weights, number),
            }
        return found


def _class_ids(given: Sequence[int] | None, n_classes: int) -> tuple[int, ...]:
    for number in given or ():
        if not 0 <= number < n_classes:
            raise ValueError(f"Class ID {number} not in [0, {n_classes}).")
    return tuple(given or ())


def _share(classes: Tensor, weights: Any, number: int) -> Any:
    """The share of a class."""
    is_it = math_ops.equal(array_ops.cast(classes, dtypes.int32), number)
    return mean_metrics.mean(array_ops.cast(is_it, classes.dtype), weights)


class _BinarySvmHead(_SingleHead):
    def __init__(self, *common: Any) -> None:
        super().__init__(ProblemType.LOGISTIC_REGRESSION, 1, "binary_svm_head", *common)

    def _loss(self, labels: Any, logits: Tensor, weights: Any) -> Losses:
        wanted = array_ops.reshape(labels, [-1, 1])
        return _weighted(hinge_loss(wanted, logits, reduction=Reduction.NONE), weights)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        classes = argmax(_two_classes(logits), 1, name=PredictionKey.CLASSES)
        return {PredictionKey.LOGITS: logits, PredictionKey.CLASSES: classes}

    def _metrics(self, predictions: dict[str, Tensor], labels: Any, weights: Any) -> dict[str, Any]:
        return {MetricKey.ACCURACY: mean_metrics.accuracy(labels, predictions[PredictionKey.CLASSES], weights)}


class _MultiLabelHead(_SingleHead):
    _makes_classes = True

    def __init__(self, n_classes: int, loss_fn: Any, metric_class_ids: Sequence[int] | None, *common: Any) -> None:
        super().__init__(ProblemType.CLASSIFICATION, n_classes, "multi_label_head", *common)
        self._loss_fn, self._metric_class_ids = loss_fn, _class_ids(metric_class_ids, n_classes)

    def _prepared(self, labels: Any) -> Any:
        if isinstance(labels, SparseTensor):
            if self._logits_dimension < 2:
                raise ValueError("Must set num_classes >= 2 when passing labels as a SparseTensor.")
            return array_ops.cast(sparse_to_indicator(labels, self._logits_dimension), dtypes.int64)
        return labels

    def _loss(self, labels: Any, logits: Tensor, weights: Any) -> Losses:
        if self._loss_fn:
            return _custom_loss(self._loss_fn, labels, logits, weights)
        labels = array_ops.cast(labels, dtypes.float32)
        return _weighted(cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits), weights)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: math_ops.sigmoid(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: array_ops.cast(
                math_ops.greater(logits, 0.0), dtypes.int64, name=PredictionKey.CLASSES
            ),
        }

    def _metrics(self, predictions: dict[str, Tensor], labels: Any, weights: Any) -> dict[str, Any]:
        classes, likely = predictions[PredictionKey.CLASSES], predictions[PredictionKey.PROBABILITIES]
        found = {
            MetricKey.ACCURACY: mean_metrics.accuracy(labels, classes, weights),
            MetricKey.AUC: _area(likely, labels, weights),
            MetricKey.AUC_PR: _area(likely, labels, weights, curve="PR"),
        }
        for number in self._metric_class_ids:
            found |= {
                MetricKey.CLASS_PREDICTION_MEAN % number: _mean(classes, weights, number),
                MetricKey.CLASS_LABEL_MEAN % number: _mean(labels, weights, number),
                MetricKey.CLASS_PROBABILITY_MEAN % number: _mean(likely, weights, number),
                MetricKey.CLASS_LOGITS_MEAN % number: _mean(predictions[PredictionKey.LOGITS], weights, number),
                MetricKey.CLASS_AUC % number: _area(likely, labels, weights, number),
                MetricKey.CLASS_AUC_PR % number: _area(likely, labels, weights, number, "PR"),
            }
        return found


class _LossOnlyHead(Head):
    def __init__(self, loss_fn: Callable[[], Any], head_name: str | None = None) -> None:
        self._loss_fn, self.head_name = loss_fn, head_name or "loss_only_head"

    @property
    def logits_dimension(self) -> int:
        return 0

    def create_model_fn_ops(
        self,
        features: Mapping[str, Any],
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: ScopeLike | None = None,
    ) -> ModelFnOps:
        _check_mode(mode)
        if mode == "infer":
            return ModelFnOps(mode, {})
        with variable_scope(scope, self.head_name):
            loss = self._loss_fn()
            loss = math_ops.add_n(loss) if isinstance(loss, list) else loss
            _summarize_loss(f"{MetricKey.LOSS}/{self.head_name}", loss)
            return ModelFnOps(mode, {}, loss, _trained(train_op_fn, loss) if mode == "train" else None)


class _MultiHead(Head):
    def __init__(self, heads: Sequence[Head], loss_weights: Sequence[float] | None) -> None:
        if loss_weights and len(loss_weights) != len(heads):
            raise ValueError("heads and loss_weights must have same size")
        if not all(head.head_name for head in heads):
            raise ValueError("Members of MultiHead must have names.")
        self._heads, self._loss_weights = list(heads), loss_weights

    @property
    def logits_dimension(self) -> int:
        return sum(head.logits_dimension for head in self._heads)

    def create_model_fn_ops(
        self,
        features: Mapping[str, Any],
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: ScopeLike | None = None,
    ) -> ModelFnOps:
        _check_mode(mode)
        found = [
            head.create_model_fn_ops(features, mode, labels, no_op_train_fn, part, logits_input, scope)
            for head, part in zip(self._heads, self._parts(logits), strict=True)
        ]
        metrics = {name: metric for ops in found for name, metric in (ops.eval_metric_ops or {}).items()}
        predictions = {
            (head.head_name, name): value
            for head, ops in zip(self._heads, found, strict=True)
            for name, value in ops.predictions.items()
        }
        if mode == "infer":
            alternatives = {name: each for ops in found for name, each in (ops.output_alternatives or {}).items()}
            return ModelFnOps(mode, predictions, output_alternatives=alternatives)
        losses = [ops.loss for ops in found]
        weights = self._loss_weights or [1.0] * len(losses)
        loss = math_ops.add_n([each * weight for each, weight in zip(losses, weights, strict=True)])
        if mode == "eval":
            return ModelFnOps(mode, predictions, loss, eval_metric_ops=metrics)
        train_op = group(_trained(train_op_fn, loss), *(ops.train_op for ops in found))
        return ModelFnOps(mode, None, loss, train_op, metrics)

    def _parts(self, logits: Any) -> list[Any]:
        """The logits of each head."""
        if logits is None:
            return [None] * len(self._heads)
        if isinstance(logits, Mapping):
            return [None if isinstance(each, _LossOnlyHead) else logits[each.head_name] for each in self._heads]
        begin, parts = 0, []
        for head in self._heads:
            parts.append(array_ops.slice(logits, [0, begin], [-1, head.logits_dimension]))
            begin += head.logits_dimension
        return parts


def regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    link_fn: Callable[[Tensor], Tensor] | None = None,
) -> Head:
    """The head of a regression with squared errors.

    Args:
        label_name: Name of the labels, where they are a dictionary.
        weight_column_name: Name of the feature that weights examples.
        label_dimension: How many numbers an example has.
        enable_centered_bias: Learn a bias of its own for each number.
        head_name: Name of the head.
        link_fn: Function from logits to predictions; they are the same when None.

    Returns:
        The head; predictions are called ``scores``.
    """
    common = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _RegressionHead(label_dimension, _squared, link_fn or identity, *common)


def poisson_regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
) -> Head:
    """The head of a regression of counts: logits are the logarithms of the predictions. See `regression_head`."""
    common = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _RegressionHead(label_dimension, _poisson, math_ops.exp, *common)


def multi_class_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Sequence[float] | None = None,
    metric_class_ids: Sequence[int] | None = None,
    loss_fn: Callable[..., Tensor] | None = None,
    label_keys: Sequence[str] | None = None,
) -> Head:
    """The head of a classification, each example of one class.

    Args:
        n_classes: How many classes there are; of two, there is one logit.
        label_name: As of `regression_head`.
        weight_column_name: Likewise.
        enable_centered_bias: Likewise.
        head_name: Likewise.
        thresholds: Where metrics of two classes cut probabilities; 0.5 when None.
        metric_class_ids: Of which of more classes there are metrics.
        loss_fn: Function of ``labels``, ``logits`` and ``weights`` that returns the loss, a scalar.
        label_keys: Names of more than two classes: labels are these, and predictions.

    Returns:
        The head; predictions are called ``classes``, ``probabilities`` and ``logits``.

    Raises:
        ValueError: There are not two classes, or other arguments do not go with their number.
    """
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    _check_loss_fn(loss_fn)
    common = (label_name, weight_column_name, enable_centered_bias, head_name)
    if n_classes > 2:
        return _MultiClassHead(n_classes, loss_fn, metric_class_ids, label_keys, *common)
    if metric_class_ids:
        raise ValueError("metric_class_ids invalid for n_classes==2.")
    if label_keys:
        raise ValueError("label_keys is not supported for n_classes=2.")
    return _BinaryLogisticHead(loss_fn, thresholds, *common)


def _check_loss_fn(loss_fn: Callable[..., Tensor] | None) -> None:
    if loss_fn is None:
        return
    for name in ("labels", "logits", "weights"):
        if name not in inspect.signature(loss_fn).parameters:
            raise ValueError(f"Argument {name} not found in loss_fn.")


def binary_svm_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Sequence[float] | None = None,
) -> Head:
    """The head of a classification of two classes by the hinge loss. See `regression_head`; `thresholds` has no use."""
    del thresholds
    return _BinarySvmHead(label_name, weight_column_name, enable_centered_bias, head_name)


def multi_label_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Sequence[float] | None = None,
    metric_class_ids: Sequence[int] | None = None,
    loss_fn: Callable[..., Tensor] | None = None,
) -> Head:
    """The head of a classification, each example of any number of classes.

    Labels are 0 or 1, shape ``[batch, n_classes]``, or a sparse tensor of numbers of classes. For the arguments, see
    `multi_class_head`; `thresholds` has no use.

    Raises:
        ValueError: There are not two classes, or a function of the loss lacks an argument.
    """
    del thresholds
    if n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    _check_loss_fn(loss_fn)
    common = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _MultiLabelHead(n_classes, loss_fn, metric_class_ids, *common)


def loss_only_head(loss_fn: Callable[[], Any], head_name: str | None = None) -> Head:
    """A head that adds a loss, such as a regularization; `loss_fn` returns a scalar or a list of them."""
    return _LossOnlyHead(loss_fn, head_name)


def multi_head(heads: Sequence[Head], loss_weights: Sequence[float] | None = None) -> Head:
    """Several heads with names as one: the losses are added.

    Args:
        heads: The heads.
        loss_weights: What each loss counts; 1 when None.

    Returns:
        The head; its predictions are called ``(name of the head, name)``.

    Raises:
        ValueError: A head has no name, or there are not as many weights.
    """
    return _MultiHead(heads, loss_weights)
