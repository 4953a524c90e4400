"""What a saved model offers: outputs for prediction, classification and regression, and their signatures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from tfray.framework.graph import Tensor
from tfray.library.variables.variables import Variable
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
            raise ValueError(f"Classification scores must be a float32 Tensor; got {scores!r}")
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype.kind == "string"):
            raise ValueError(f"Classification classes must be a string Tensor; got {classes!r}")
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
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value!r}")
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
        outputs: A dictionary of tensors, or one tensor, which is called ``output``.

    Raises:
        ValueError: A name is no text, or a value no tensor.
    """

    _SINGLE_NAME = "output"

    def __init__(self, outputs: Tensor | Mapping[Any, Tensor]) -> None:
        found = dict(outputs) if isinstance(outputs, Mapping) else {self._SINGLE_NAME: outputs}
        for name, tensor in found.items():
            if not isinstance(name, str):
                raise ValueError(f"Prediction output key must be a string; got {name!r}")
            if not isinstance(tensor, (Tensor, Variable)):
                raise ValueError(f"Prediction output value must be a Tensor; got {tensor!r} for {name!r}")
        self._outputs = found

    @property
    def outputs(self) -> dict[str, Any]:
        """The tensors by name."""
        return self._outputs

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        """The signature from what is received to the tensors."""
        return saved_model.predict_signature_def(receiver_tensors, self._outputs)


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
