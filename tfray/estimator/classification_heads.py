"""Heads of classifiers: of two classes, of several, and of several that do not exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.estimator import heads
from tfray.estimator.export_outputs import ExportOutput, RegressionOutput
from tfray.estimator.heads import BaseHead, HeadLoss
from tfray.framework.arguments import checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.keras.running_metrics import Accuracy, Mean, Metric, Precision, Recall
from tfray.library.input import lookup
from tfray.library.layers import losses
from tfray.library.layers.losses import Reduction
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.math import math_ops, search_ops
from tfray.ops.nn import cross_entropy_ops
from tfray.ops.sparse import sparse_ops


class BinaryClassHead(BaseHead):
    """The head of a classifier of two classes: one logit, and sigmoid cross entropy.

    Labels are 0 and 1, or numbers between them, or words of a vocabulary, ``[batch]`` or ``[batch, 1]``.

    Args:
        weight_column: As of `BaseHead`.
        thresholds: Probabilities; for each, accuracy, precision and recall are metrics.
        label_vocabulary: The two words, if labels are words.
        loss_reduction: As of `BaseHead`.
        loss_fn: As of `BaseHead`.
        name: As of `BaseHead`.

    Raises:
        ValueError: A threshold is not between 0 and 1, or there are not two words.
    """

    @checked
    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[Any] | None = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(1, weight_column, loss_reduction, loss_fn, name)
        self._thresholds = heads.checked_thresholds(thresholds)
        self._vocabulary = heads.checked_vocabulary(label_vocabulary, 2)

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> HeadLoss:
        """See `BaseHead.create_loss`."""
        logits = heads.with_last_dimension(logits, 1)
        found = heads.ids_of(heads.labels_like(labels, logits, 1), self._vocabulary)
        if found.dtype.kind == "string":
            raise ValueError("the labels are strings: give the head a label_vocabulary")
        numbers = heads.in_range(heads.to_float(found), 2)
        own = lambda: cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=numbers, logits=logits)  # noqa: E731
        return self.reduced(numbers, logits, features, own)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """``logits``, ``logistic`` (the probability of class 1), ``probabilities`` of both classes, ``class_ids``,
        ``classes``, ``all_class_ids`` and ``all_classes``.
        """
        logits = heads.with_last_dimension(logits, 1)
        both = array_ops.concat([array_ops.zeros_like(logits), logits], -1, name="two_class_logits")
        ids = array_ops.expand_dims(search_ops.argmax(both, -1), -1)
        numbers, names = heads.all_classes(logits, 2, self._vocabulary)
        found = {
            "logits": logits,
            "logistic": math_ops.sigmoid(logits, name="logistic"),
            "probabilities": cross_entropy_ops.softmax(both, name="probabilities"),
            "class_ids": ids,
            "classes": heads.class_names(ids, self._vocabulary),
            "all_class_ids": numbers,
            "all_classes": names,
        }
        return heads.only(found, keys)

    def own_metrics(self) -> dict[str, Metric]:
        """See `BaseHead.own_metrics`."""
        means = ("average_loss", "prediction/mean", "label/mean", "accuracy_baseline")
        return {
            **{name: Mean(name) for name in means},
            "accuracy": Accuracy(name="accuracy"),
            "precision": Precision(name="precision"),
            "recall": Recall(name="recall"),
            **heads.areas(is_canned=self._is_canned),
            **heads.at_thresholds(self._thresholds, self.key),
        }

    def take_in(self, metrics: Mapping[str, Any], loss: HeadLoss, predictions: Mapping[Any, Tensor]) -> None:
        """See `BaseHead.take_in`."""
        labels, probability = loss.processed_labels, predictions["logistic"]
        by_chance = [*heads.AREAS, *heads.threshold_names(self._thresholds)]
        for names, values in (
            (["average_loss"], (loss.unreduced_loss,)),
            (["prediction/mean"], (probability,)),
            (["label/mean"], (labels,)),
            (["accuracy", "precision", "recall"], (labels, predictions["class_ids"])),
            (by_chance, (labels, probability)),
        ):
            heads.take_in_all(metrics, names, values, loss.weights)
        # Always saying what is more frequent is right as often as the mean of the labels tells.
        share, baseline = metrics["label/mean"], metrics["accuracy_baseline"]
        baseline.total, baseline.count = math_ops.maximum(share.total, share.count - share.total), share.count
        baseline.updates = [grouping_ops.no_op()]

    def export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """See `BaseHead.export_outputs`."""
        found = heads.classified(predictions, 2, self._vocabulary)
        return {**found, heads.REGRESSION: RegressionOutput(predictions["logistic"])}


class MultiClassHead(BaseHead):
    """The head of a classifier of several classes: a logit for each, and softmax cross entropy.

    Labels are the numbers of the classes, or words of a vocabulary, ``[batch]`` or ``[batch, 1]``.

    Args:
        n_classes: Number of classes, more than 2.
        weight_column: As of `BaseHead`.
        label_vocabulary: The words, if labels are words.
        loss_reduction: As of `BaseHead`.
        loss_fn: As of `BaseHead`.
        name: As of `BaseHead`.

    Raises:
        ValueError: There are less than three classes, or not as many words.
    """

    @checked
    def __init__(
        self,
        n_classes: int | None,
        weight_column: Any = None,
        label_vocabulary: Sequence[Any] | None = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None:
            raise ValueError("n_classes cannot be None")
        if not isinstance(n_classes, int) or n_classes <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes!r}; for 2 there is BinaryClassHead")
        super().__init__(n_classes, weight_column, loss_reduction, loss_fn, name)
        self._vocabulary = heads.checked_vocabulary(label_vocabulary, n_classes)

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> HeadLoss:
        """See `BaseHead.create_loss`."""
        logits = heads.with_last_dimension(logits, self._logits_dimension)
        found = heads.ids_of(heads.labels_like(labels, logits, 1), self._vocabulary)
        if not found.dtype.is_integer:
            raise ValueError(
                f"Labels dtype should be integer. Instead got {found.dtype!r}: strings need a label_vocabulary"
            )
        ids = heads.in_range(found, self._logits_dimension)

        def own() -> Tensor:
            flat = array_ops.squeeze(ids, [-1])
            loss = losses.sparse_softmax_cross_entropy(flat, logits, reduction=Reduction.NONE, loss_collection=None)
            return array_ops.expand_dims(loss, -1)

        return self.reduced(ids, logits, features, own)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """``logits``, ``probabilities``, ``class_ids``, ``classes``, ``all_class_ids`` and ``all_classes``."""
        logits = heads.with_last_dimension(logits, self._logits_dimension)
        ids = array_ops.expand_dims(search_ops.argmax(logits, -1), -1)
        numbers, names = heads.all_classes(logits, self._logits_dimension, self._vocabulary)
        found = {
            "logits": logits,
            "probabilities": cross_entropy_ops.softmax(logits, name="probabilities"),
            "class_ids": ids,
            "classes": heads.class_names(ids, self._vocabulary),
            "all_class_ids": numbers,
            "all_classes": names,
        }
        return heads.only(found, keys)

    def own_metrics(self) -> dict[str, Metric]:
        """See `BaseHead.own_metrics`."""
        return {"average_loss": Mean("average_loss"), "accuracy": Accuracy(name="accuracy")}

    def take_in(self, metrics: Mapping[str, Any], loss: HeadLoss, predictions: Mapping[Any, Tensor]) -> None:
        """See `BaseHead.take_in`."""
        heads.take_in_all(metrics, ["average_loss"], (loss.unreduced_loss,), loss.weights)
        heads.take_in_all(metrics, ["accuracy"], (loss.processed_labels, predictions["class_ids"]), loss.weights)

    def export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """See `BaseHead.export_outputs`."""
        return heads.classified(predictions, self._logits_dimension, self._vocabulary)


class MultiLabelHead(BaseHead):
    """The head of a classifier whose classes do not exclude each other: a logit for each, and sigmoid cross entropy.

    Labels are ``[batch, n_classes]`` with 1 for each class that an example has and 0 for others; or a sparse tensor of
    the numbers of its classes, or of words of a vocabulary.

    Args:
        n_classes: Number of classes, 2 or more.
        weight_column: As of `BaseHead`.
        thresholds: Probabilities; for each, accuracy, precision and recall are metrics.
        label_vocabulary: The words, if labels are words.
        loss_reduction: As of `BaseHead`.
        loss_fn: As of `BaseHead`.
        classes_for_class_based_metrics: Numbers or words of classes that have metrics of their own.
        name: As of `BaseHead`.

    Raises:
        ValueError: There are less than two classes, not as many words, or a class that does not exist.
    """

    @checked
    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[Any] | None = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        classes_for_class_based_metrics: Sequence[Any] | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(n_classes, int) or n_classes < 2:
            raise ValueError(f"n_classes must be > 1 for multi-label classification. Given: {n_classes!r}")
        super().__init__(n_classes, weight_column, loss_reduction, loss_fn, name)
        self._thresholds = heads.checked_thresholds(thresholds)
        self._vocabulary = heads.checked_vocabulary(label_vocabulary, n_classes)
        self._by_class: dict[str, int] = {}
        for each in classes_for_class_based_metrics or ():
            if isinstance(each, str) and not self._vocabulary:
                raise ValueError("label_vocabulary must be provided when classes_for_class_based_metrics are strings")
            number = self._vocabulary.index(each) if isinstance(each, str) and self._vocabulary else each
            if not isinstance(number, int) or not 0 <= number < n_classes:
                raise ValueError(
                    f"All classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. Given: {number}"
                )
            self._by_class[each if isinstance(each, str) else f"class{each}"] = number

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> HeadLoss:
        """See `BaseHead.create_loss`."""
        logits = heads.with_last_dimension(logits, self._logits_dimension)
        numbers = self._numbers(labels, logits)

        def own() -> Tensor:
            each = cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=numbers, logits=logits)
            return math_ops.reduce_mean(each, -1, keepdims=True)

        return self.reduced(numbers, logits, features, own)

    def _numbers(self, labels: Any, logits: Tensor) -> Tensor:
        """0 or 1 for each class: ``[batch, n_classes]``."""
        size = self._logits_dimension
        if isinstance(labels, SparseTensor):
            values = labels.values
            if self._vocabulary is not None:
                values = lookup.index_table_from_tensor(list(self._vocabulary), name="class_id_lookup").lookup(values)
            ids = SparseTensor(labels.indices, array_ops.to_int64(values), labels.dense_shape)
            dense = sparse_ops.sparse_tensor_to_dense(ids, -1)
            return math_ops.minimum(math_ops.reduce_sum(array_ops.one_hot(dense, self._logits_dimension), -2), 1.0)
        dense = convert_to_tensor(heads.labels_like(labels, logits, self._logits_dimension))
        if not dense.dtype.is_integer:
            raise ValueError(
                f"Labels dtype should be integer. Instead got {dense.dtype!r}; labels are 0 and 1, or a sparse tensor"
            )
        message = f"labels must be an integer indicator Tensor with values in [0, 1], one for each of {size} classes"
        return heads.to_float(heads.in_range(dense, 2, message))

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """``logits`` and ``probabilities``."""
        logits = heads.with_last_dimension(logits, self._logits_dimension)
        return heads.only({"logits": logits, "probabilities": math_ops.sigmoid(logits, name="probabilities")}, keys)

    def own_metrics(self) -> dict[str, Metric]:
        """See `BaseHead.own_metrics`."""
        found = {"average_loss": Mean("average_loss"), **heads.areas(is_canned=self._is_canned)}
        found |= heads.at_thresholds(self._thresholds, self.key)
        for name in self._by_class:
            probability = f"probability_mean/{name}"
            found |= {probability: Mean(self.key(probability)), **heads.areas(f"/{name}", self._is_canned)}
        return found

    def take_in(self, metrics: Mapping[str, Any], loss: HeadLoss, predictions: Mapping[Any, Tensor]) -> None:
        """See `BaseHead.take_in`."""
        labels, weights, probabilities = loss.processed_labels, loss.weights, predictions["probabilities"]
        heads.take_in_all(metrics, ["average_loss"], (loss.unreduced_loss,), weights)
        every = [*heads.AREAS, *heads.threshold_names(self._thresholds)]
        heads.take_in_all(metrics, every, (labels, probabilities), weights)
        for name, number in self._by_class.items():
            of_class, probability = (each[..., number : number + 1] for each in (labels, probabilities))
            heads.take_in_all(metrics, [f"probability_mean/{name}"], (probability,), weights)
            heads.take_in_all(metrics, [f"{area}/{name}" for area in heads.AREAS], (of_class, probability), weights)

    def export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """See `BaseHead.export_outputs`."""
        return heads.classified(predictions, self._logits_dimension, self._vocabulary)


def classifier_head(
    n_classes: int, weight_column: Any, label_vocabulary: Sequence[Any] | None, loss_reduction: str
) -> BaseHead:
    """The head of a canned classifier.

    Raises:
        ValueError: There are less than two classes.
    """
    if n_classes == 2:
        return BinaryClassHead.canned(weight_column, label_vocabulary=label_vocabulary, loss_reduction=loss_reduction)
    return MultiClassHead.canned(n_classes, weight_column, label_vocabulary, loss_reduction)
