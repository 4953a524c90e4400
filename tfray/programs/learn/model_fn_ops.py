"""What a model function of ``tf.contrib.learn`` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfray.estimator.export_outputs import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from tfray.estimator.spec import DEFAULT_SERVING_KEY, EstimatorSpec
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import string
from tfray.framework.graph import Operation, Tensor
from tfray.framework.sparse_tensor import convert_to_tensor_or_sparse_tensor
from tfray.library.platform import logging
from tfray.ops.arrays.shape_ops import reshape
from tfray.programs.learn.learn_keys import MetricKey, ModeKeys, PredictionKey, ProblemType
from tfray.training.sessions.session_run_hook import SessionRunHook


class _Fields(NamedTuple):
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    output_alternatives: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    mode: Any


class ModelFnOps(_Fields):
    """What a model function returns.

    Attributes:
        mode: One of `ModeKeys`.
        predictions: Tensors, by names or alone; needed to evaluate and to predict.
        loss: A scalar, or one element; needed to train and to evaluate.
        train_op: The training step, an operation or one of its tensors; needed to train.
        eval_metric_ops: Metrics by name; empty if None is given.
        output_alternatives: What a saved model offers: kind of problem and outputs, by names of heads.
        training_chief_hooks: Hooks of the chief.
        training_hooks: Hooks of training.
        scaffold: A `tf.train.Scaffold`.

    Raises:
        ValueError: There is no such mode, something that it needs is missing, `loss` is not one number,
            `eval_metric_ops` is no dictionary, or the tensors are of several graphs.
        TypeError: A hook is none.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: dict[Any, Any] | None = None,
        output_alternatives: Any = None,
        training_chief_hooks: Sequence[SessionRunHook] | None = None,
        training_hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Any = None,
    ) -> ModelFnOps:
        ModeKeys.validate(mode)
        _check_needed(mode, predictions, loss, train_op)
        if train_op is not None and not isinstance(train_op, Operation):
            train_op = convert_to_tensor(train_op).op
        if eval_metric_ops is not None and not isinstance(eval_metric_ops, dict):
            raise ValueError("eval_metric_ops must be a dict.")
        made = super().__new__(
            cls,
            predictions=_tensors(predictions),
            loss=_scalar(loss),
            train_op=train_op,
            eval_metric_ops={} if eval_metric_ops is None else eval_metric_ops,
            output_alternatives=output_alternatives,
            training_chief_hooks=_hooks(training_chief_hooks),
            training_hooks=_hooks(training_hooks),
            scaffold=scaffold,
            mode=mode,
        )
        _check_graphs(made)
        return made

    def estimator_spec(self, default_serving_output_alternative_key: Any = None) -> EstimatorSpec:
        """The same for an estimator of ``tf.estimator``, but for the metric of the loss, which that adds itself.

        Args:
            default_serving_output_alternative_key: Which of several `output_alternatives` a saved model offers if a
                request names none.

        Returns:
            Its `tf.estimator.EstimatorSpec`. Alternatives of regressions and classifications offer their scores, or
            else their probabilities; classes are offered if they are strings.

        Raises:
            ValueError: The kind of a problem is none of `ProblemType`, or there are several alternatives, and none of
                that name.
        """
        alternatives = self.output_alternatives
        if alternatives and len(alternatives) > 1 and DEFAULT_SERVING_KEY not in alternatives:
            if default_serving_output_alternative_key not in alternatives:
                raise ValueError(
                    f"default_serving_output_alternative_key is {default_serving_output_alternative_key!r}, expected "
                    f"one of {sorted(map(str, alternatives))}"
                )
            alternatives = {**alternatives, DEFAULT_SERVING_KEY: alternatives[default_serving_output_alternative_key]}
        outputs = {name: _output(*each) for name, each in alternatives.items()} if alternatives else None
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            self.train_op,
            {name: each for name, each in self.eval_metric_ops.items() if name != MetricKey.LOSS},
            outputs,
            self.training_chief_hooks,
            self.training_hooks,
            self.scaffold,
        )


def _check_needed(mode: str, predictions: Any, loss: Any, train_op: Any) -> None:
    if train_op is None and mode == ModeKeys.TRAIN:
        raise ValueError("Missing train_op.")
    if loss is None and mode != ModeKeys.INFER:
        raise ValueError("Missing loss.")
    if predictions is None and mode != ModeKeys.TRAIN:
        raise ValueError("Missing predictions.")


def _tensors(predictions: Any) -> Any:
    if isinstance(predictions, Mapping):
        return {name: convert_to_tensor_or_sparse_tensor(each) for name, each in predictions.items()}
    return None if predictions is None else convert_to_tensor_or_sparse_tensor(predictions)


def _scalar(loss: Any) -> Tensor | None:
    if loss is None:
        return None
    loss = convert_to_tensor(loss)
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar: {loss}.")
    return loss if loss.shape.is_compatible_with([]) else reshape(loss, [])


def _hooks(hooks: Sequence[SessionRunHook] | None) -> list[SessionRunHook]:
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise TypeError(
                "All hooks returned from model_fn must be SessionRunHook instances, got instance of "
                f"{type(hook)}: {hook}"
            )
    return list(hooks or ())


def _check_graphs(ops: ModelFnOps) -> None:
    predictions = ops.predictions.values() if isinstance(ops.predictions, Mapping) else [ops.predictions]
    tensors = [each for each in (*predictions, ops.loss, ops.train_op) if each is not None]
    if any(each.graph is not tensors[0].graph for each in tensors):
        raise ValueError(f"{tensors[0]} must be from the same graph as the other outputs of the model function.")


def _output(problem_type: int, outputs: Mapping[Any, Tensor]) -> ExportOutput:
    scores = outputs.get(PredictionKey.SCORES, outputs.get(PredictionKey.PROBABILITIES))
    if problem_type == ProblemType.LINEAR_REGRESSION:
        return RegressionOutput(scores)  # type: ignore[arg-type]  # refuses None itself
    if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        return ClassificationOutput(scores, _classes(outputs))
    if problem_type == ProblemType.UNSPECIFIED:
        return PredictOutput(outputs)
    raise ValueError(f"Unknown problem_type={problem_type}")


def _classes(outputs: Mapping[Any, Tensor]) -> Tensor | None:
    classes = outputs.get(PredictionKey.CLASSES)
    if classes is not None and classes.dtype == string:
        return classes
    logging.warning(
        "classes is %s, Servo inference will not have class ids.", "None" if classes is None else "not string"
    )
    return None
