"""Functions for serving, and what a model function of ``tf.contrib.learn`` lets a saved model offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tfray.estimator.export_outputs import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from tfray.estimator.receivers import (
    ServingInputReceiver,
    build_parsing_serving_input_receiver_fn,
    build_raw_serving_input_receiver_fn,
)
from tfray.estimator.spec import DEFAULT_SERVING_KEY
from tfray.framework.dtypes import string
from tfray.framework.graph import Tensor
from tfray.programs.learn.learn_keys import PredictionKey, ProblemType


def received(served: Any) -> Any:
    if not isinstance(served, InputFnOps):
        return served
    return ServingInputReceiver(served.features, served.default_inputs)


class InputFnOps(NamedTuple):
    """What a function for serving returns: features, labels (mostly None), and the tensors that are fed, by name."""

    features: Any
    labels: Any
    default_inputs: Any


def build_parsing_serving_input_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """As `tf.estimator.export.build_parsing_serving_input_receiver_fn`, giving an `InputFnOps`."""
    return _serving(build_parsing_serving_input_receiver_fn(feature_spec, default_batch_size))


def build_default_serving_input_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """As `tf.estimator.export.build_raw_serving_input_receiver_fn`, giving an `InputFnOps`."""
    return _serving(build_raw_serving_input_receiver_fn(features, default_batch_size))


def _serving(receive: Callable[[], ServingInputReceiver]) -> Callable[[], InputFnOps]:
    def serving_input_fn() -> InputFnOps:
        receiver = receive()
        return InputFnOps(receiver.features, None, receiver.receiver_tensors)

    return serving_input_fn


_INPUT: Final = "default_input_alternative"
"""What the input is called in names of signatures."""


def served_outputs(
    alternatives: Mapping[str | None, tuple[int, Mapping[Any, Tensor]]], default: str | None = None
) -> dict[str, ExportOutput]:
    """Signatures of a saved model.

    Args:
        alternatives: Kind of problem and outputs, by names of heads; None is the name of a head that has none.
        default: The head that is served by default, of several.

    Returns:
        Outputs by the names of signatures: one for each head, and the default one.

    Raises:
        ValueError: There is no head of that name, or several and no name.
    """
    named = {f"{_INPUT}:{name}": _served_output(*each) for name, each in alternatives.items()}
    if default is not None and default not in alternatives:
        raise ValueError(
            f"Requested default_output_alternative: {default}, but available output_alternatives are: "
            f"{sorted(map(str, alternatives))}"
        )
    if default is None and len(alternatives) > 1:
        raise ValueError(
            "Please specify a default_output_alternative.  Available output_alternatives are: "
            f"{sorted(map(str, alternatives))}"
        )
    chosen = f"{_INPUT}:{next(iter(alternatives)) if default is None else default}"
    return {**named, DEFAULT_SERVING_KEY: named[chosen]}


def _served_output(problem_type: int, outputs: Mapping[Any, Tensor]) -> ExportOutput:
    classes = outputs.get(PredictionKey.CLASSES)
    classes = None if classes is None or classes.dtype != string else classes
    scores = outputs.get(PredictionKey.SCORES, outputs.get(PredictionKey.PROBABILITIES))
    if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION) and (
        classes is not None or scores is not None
    ):
        return ClassificationOutput(scores, classes)
    if problem_type == ProblemType.LINEAR_REGRESSION and len(outputs) == 1:
        return RegressionOutput(next(iter(outputs.values())))
    return PredictOutput(dict(outputs))
