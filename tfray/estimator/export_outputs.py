"""What a saved model offers: outputs for prediction, classification and regression, and their signatures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.source_ops import constant
from tfray.training.checkpoints import saved_model
from tfray.training.checkpoints.saved_model import SignatureDef


class ExportOutput(ABC):
    """Base of what a model function can put into ``EstimatorSpec.export_outputs``."""

    @abstractmethod
    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        """The signature from what is received to the output.

        Args:
            receiver_tensors: The tensors that are fed, by name.
        """


class ClassificationOutput(ExportOutput):
    """The output of a classifier.

    Args:
        scores: Float tensor ``[batch, classes]``, a score for each class.
        classes: String tensor ``[batch, classes]``, the classes of the scores, or the classes that are predicted.

    Raises:
        ValueError: Neither is given, or one has a wrong dtype.
    """

    def __init__(self, scores: Tensor | None = None, classes: Tensor | None = None) -> None:
        if scores is not None and not (isinstance(scores, Tensor) and scores.dtype.is_floating):
            raise ValueError(f"Classification scores must be a float32 Tensor; got {scores}")
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype.kind == "string"):
            raise ValueError(f"Classification classes must be a string Tensor; got {classes}")
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self._scores = scores
        self._classes = classes

    @property
    def scores(self) -> Tensor | None:
        """The scores."""
        return self._scores

    @property
    def classes(self) -> Tensor | None:
        """The classes."""
        return self._classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        """The signature of a classifier: serialized examples to classes and scores."""
        examples = _serialized(receiver_tensors, "classification")
        return saved_model.classification_signature_def(examples, self._classes, self._scores)


class RegressionOutput(ExportOutput):
    """The output of a regression.

    Args:
        value: Float tensor ``[batch]`` or ``[batch, 1]``.

    Raises:
        ValueError: It is no float tensor.
    """

    def __init__(self, value: Tensor) -> None:
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self._value = value

    @property
    def value(self) -> Tensor:
        """The predicted value."""
        return self._value

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        """The signature of a regression: serialized examples to values."""
        return saved_model.regression_signature_def(_serialized(receiver_tensors, "regression"), self._value)


class PredictOutput(ExportOutput):
    """Any tensors by name.

    Args:
        outputs: A dictionary of tensors, or one tensor, which is called ``output``. The parts of a name may be a tuple.

    Raises:
        ValueError: A name is no text, or a value no tensor.
    """

    _SINGLE_NAME = "output"

    def __init__(self, outputs: Tensor | Mapping[Any, Tensor]) -> None:
        self._outputs = _named(outputs, self._SINGLE_NAME, "Prediction")

    @property
    def outputs(self) -> dict[str, Any]:
        """The tensors by name."""
        return self._outputs

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        """The signature from what is received to the tensors."""
        return saved_model.predict_signature_def(receiver_tensors, self._outputs)


class SupervisedOutput(ExportOutput):
    """Loss, predictions and metrics of a model that is trained or evaluated.

    Args:
        loss: A tensor, or a dictionary of them.
        predictions: The same of predictions.
        metrics: A metric, or a dictionary of them: pairs (value, update operation), or metric objects.

    Raises:
        ValueError: A name is no text, or a value no tensor.
    """

    _METHOD: ClassVar[str]

    def __init__(self, loss: Any = None, predictions: Any = None, metrics: Any = None) -> None:
        self._loss = None if loss is None else _prefixed(_named(loss, "loss", "loss"), "loss")
        given = None if predictions is None else _named(predictions, "predictions", "predictions")
        self._predictions = None if given is None else _prefixed(given, "predictions")
        self._metrics = None if metrics is None else _prefixed(_of_metrics(metrics), "metrics")

    @property
    def loss(self) -> dict[str, Any] | None:
        """The losses by name."""
        return self._loss

    @property
    def predictions(self) -> dict[str, Any] | None:
        """The predictions by name."""
        return self._predictions

    @property
    def metrics(self) -> dict[str, Any] | None:
        """The values and updates of metrics by name."""
        return self._metrics

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        """The signature from what is received to losses, predictions and metrics."""
        outputs = {**(self._loss or {}), **(self._predictions or {}), **(self._metrics or {})}
        made = saved_model.predict_signature_def(receiver_tensors, outputs)
        return SignatureDef(inputs=made.inputs, outputs=made.outputs, method_name=self._METHOD)


class TrainOutput(SupervisedOutput):
    """`SupervisedOutput` of training."""

    _METHOD = "tensorflow/supervised/training"


class EvalOutput(SupervisedOutput):
    """`SupervisedOutput` of an evaluation."""

    _METHOD = "tensorflow/supervised/eval"


def _joined(name: Any, what: str) -> str:
    name = "/".join(name) if isinstance(name, tuple) else name
    if not isinstance(name, str):
        raise ValueError(f"{what} output key must be a string; got {name!r}.")
    return name


def _named(outputs: Any, single: str, what: str) -> dict[str, Any]:
    """Tensors by name, checked."""
    found = dict(outputs) if isinstance(outputs, Mapping) else {single: outputs}
    for name, tensor in found.items():
        _joined(name, what)
        if not isinstance(tensor, (Tensor, Variable)):
            raise ValueError(f"{what} output value must be a Tensor; got {tensor!r}.")
    return {_joined(name, what): tensor for name, tensor in found.items()}


def _prefixed(outputs: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name if name.startswith(prefix) else f"{prefix}/{name}": each for name, each in outputs.items()}


def _of_metrics(metrics: Any) -> dict[str, Any]:
    """The values and updates of metrics, all as tensors."""
    found = {}
    for name, metric in (metrics if isinstance(metrics, Mapping) else {"metrics": metrics}).items():
        value, update = metric if isinstance(metric, tuple) else (metric.result(), metric.updates[-1])
        name = _joined(name, "metrics")
        if not isinstance(value, Tensor):
            raise ValueError(f"metrics output value must be a Tensor; got {value!r}.")
        if not isinstance(update, (Tensor, Operation)):
            raise ValueError(f"{name} update_op must be a Tensor or Operation; got {update!r}.")
        if isinstance(update, Operation):
            with get_default_graph().control_dependencies([update]):
                update = constant([], name="metric_op_wrapper")
        found.update({f"{name}/value": value, f"{name}/update_op": update})
    return found


def _serialized(receivers: Mapping[str, Tensor], what: str) -> Tensor:
    """The tensor of serialized examples. Raises `ValueError` if that is not all that is received."""
    if len(receivers) != 1:
        raise ValueError(
            f"a signature for {what} takes one string tensor of serialized examples, not {', '.join(receivers)}"
        )
    (examples,) = receivers.values()
    if examples.dtype.kind != "string":
        raise ValueError(f"a signature for {what} takes a string tensor of serialized examples, not {examples!r}")
    return examples
