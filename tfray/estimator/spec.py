"""What a model function is told and returns: `ModeKeys` and `EstimatorSpec`."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfray.estimator.export_outputs import ExportOutput, PredictOutput
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.training.checkpoints.saved_model import signature_constants
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunHook

DEFAULT_SERVING_KEY = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
LOSS_METRIC_KEY = "loss"


class ModeKeys:
    """What a model function builds its graph for.

    Attributes:
        TRAIN: Training.
        EVAL: Evaluation.
        PREDICT: Prediction, and export for serving.
    """

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    export_outputs: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    evaluation_hooks: Any
    prediction_hooks: Any


class EstimatorSpec(_Fields):
    """The operations and objects that a model function returns to its estimator.

    Attributes:
        mode: One of `ModeKeys`.
        predictions: A tensor, or a dictionary of tensors; needed to predict.
        loss: The loss, a scalar or one element; needed to train and to evaluate.
        train_op: One training step; needed to train.
        eval_metric_ops: Metrics by name: pairs (value, update operation), as those of ``tf.metrics``, or metric objects
            with ``result()`` and ``updates``.
        export_outputs: What a saved model offers, by the names of its signatures: see ``tf.estimator.export``.
        training_chief_hooks: Hooks of the chief while it trains.
        training_hooks: Hooks of all workers while they train.
        scaffold: How the model is initialised, saved and made ready; `tf.train.Scaffold` with its defaults when None.
        evaluation_hooks: Hooks while the model is evaluated.
        prediction_hooks: Hooks while it predicts.

    Raises:
        ValueError: Something that `mode` needs is missing or has a wrong shape, or is of another graph.
        TypeError: Something is of a wrong type.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Mapping[str, ExportOutput] | None = None,
        training_chief_hooks: Sequence[SessionRunHook] | None = None,
        training_hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        evaluation_hooks: Sequence[SessionRunHook] | None = None,
        prediction_hooks: Sequence[SessionRunHook] | None = None,
    ) -> EstimatorSpec:
        if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
            raise ValueError(f"EstimatorSpec: mode is {mode!r}, expected one of tf.estimator.ModeKeys")
        train_op = _checked_train_op(train_op, mode)
        loss = _checked_loss(loss, mode)
        predictions = _checked_predictions(predictions, mode)
        metrics = _checked_metrics(eval_metric_ops)
        export_outputs = _checked_outputs(export_outputs, mode)
        if scaffold is not None and not isinstance(scaffold, Scaffold):
            raise TypeError(f"EstimatorSpec: scaffold is {scaffold!r}, expected a tf.train.Scaffold")
        hooks = {
            "training_chief_hooks": training_chief_hooks,
            "training_hooks": training_hooks,
            "evaluation_hooks": evaluation_hooks,
            "prediction_hooks": prediction_hooks,
        }
        checked = {name: checked_hooks(given, f"EstimatorSpec: {name}") for name, given in hooks.items()}
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=metrics,
            export_outputs=export_outputs,
            scaffold=scaffold or Scaffold(),
            **checked,
        )


def checked_hooks(hooks: Any, what: str) -> tuple[SessionRunHook, ...]:
    """Hooks as a tuple. Raises `TypeError` if one is none."""
    try:
        found = () if hooks is None else tuple(hooks)
    except TypeError:
        raise TypeError(f"{what} is {hooks!r}, expected a list of objects of tf.train.SessionRunHook") from None
    for hook in found:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(
                f"Each must be a SessionRunHook: {what} holds {hook!r}, expected objects of tf.train.SessionRunHook"
            )
    return found


def check_positive(where: str, name: str, value: Any) -> None:
    """Refuse what is no number (`TypeError`), or not above 0 (`ValueError`). None is let through."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{where}: {name} is {value!r}, expected a number above 0")
    if not float(value) > 0:
        raise ValueError(f"Must specify {name} > 0. {where}: {name} is {value}, expected more than 0")


def _checked_train_op(train_op: Any, mode: str) -> Any:
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("EstimatorSpec: to train, train_op is needed")
        return None
    if not isinstance(train_op, (Operation, Tensor, Variable)):
        raise TypeError(f"EstimatorSpec: train_op is {train_op!r}, expected an operation or a tensor")
    if isinstance(train_op, Variable):
        train_op = train_op.op
    _check_graph(train_op, "train_op")
    return train_op


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError(f"EstimatorSpec: in mode {mode!r} a loss is needed")
        return None
    if not isinstance(loss, Tensor):
        raise TypeError(f"EstimatorSpec: loss is {loss!r}, expected a tensor")
    shape = loss.shape
    if not shape.is_compatible_with([]) and not shape.is_compatible_with([1]):
        raise ValueError(f"EstimatorSpec: the loss must be a scalar, not {loss!r}")
    _check_graph(loss, "loss")
    return loss if shape.is_compatible_with([]) else array_ops.reshape(loss, [])


def _checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("EstimatorSpec: to predict, predictions are needed")
        return {}
    for name, tensor in predictions.items() if isinstance(predictions, Mapping) else [("", predictions)]:
        label = f"predictions[{name!r}]" if name else "predictions"
        if not isinstance(tensor, (Tensor, Variable)):
            raise TypeError(f"EstimatorSpec: {label} is {tensor!r}, expected a tensor")
        _check_graph(tensor, label)
    return predictions


def _checked_metrics(metrics: Any) -> dict[str, Any]:
    """The metrics, each as a pair (value, update operation)."""
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        raise TypeError(f"EstimatorSpec: eval_metric_ops is {metrics!r}, expected a dictionary")
    found = {}
    for name, given in metrics.items():
        metric = given
        if callable(getattr(given, "result", None)) and hasattr(given, "updates"):
            updates = given.updates
            if not updates:
                raise ValueError(f"EstimatorSpec: eval_metric_ops[{name!r}] was not called with values yet")
            metric = (given.result(), updates[0])
        if not isinstance(metric, tuple) or len(metric) != 2:
            raise TypeError(
                f"EstimatorSpec: eval_metric_ops[{name!r}] is {given!r}, expected a pair (value, update operation)"
            )
        for part in metric:
            _check_graph(part, f"eval_metric_ops[{name!r}]")
        found[name] = metric
    return found


def _checked_outputs(outputs: Any, mode: str) -> Any:
    """The outputs; the default signature is among them."""
    if outputs is None or mode != ModeKeys.PREDICT:
        return outputs
    if not isinstance(outputs, Mapping):
        raise TypeError(f"EstimatorSpec: export_outputs is {outputs!r}, expected a dictionary")
    for name, each in outputs.items():
        if not isinstance(each, ExportOutput):
            raise TypeError(
                f"EstimatorSpec: export_outputs[{name!r}] is {each!r}, expected an object of tf.estimator.export, such "
                "as PredictOutput"
            )
    return with_default_signature(outputs)


def with_default_signature(outputs: Mapping[str, ExportOutput]) -> dict[str, ExportOutput]:
    """Outputs with the default signature: if there is but one output, it is that one.

    Raises:
        ValueError: There are several, and none of them is called ``serving_default``.
    """
    found = dict(outputs)
    if len(found) == 1:
        (only,) = found.values()
        found[DEFAULT_SERVING_KEY] = only
    if len(found) > 1 and DEFAULT_SERVING_KEY not in found:
        raise ValueError(
            f"export_outputs has {', '.join(found)}, and none of them is the default: call one {DEFAULT_SERVING_KEY!r}"
        )
    return found


def outputs_of(spec: EstimatorSpec) -> dict[str, ExportOutput]:
    """What a model offers: what its spec says, or else its predictions."""
    outputs = spec.export_outputs
    if outputs is None:
        outputs = {DEFAULT_SERVING_KEY: PredictOutput(spec.predictions)}
    return with_default_signature(outputs)


def _check_graph(element: Any, what: str) -> None:
    graph = getattr(element, "graph", None)
    if graph is not None and graph is not get_default_graph():
        raise ValueError(f"EstimatorSpec: {what} is {element!r}, of another graph than that of the features")
