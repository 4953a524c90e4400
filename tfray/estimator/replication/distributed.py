"""Models of estimators that a strategy of `tf.distribute` builds once for each replica."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.distribute.current import get_loss_reduction
from tfray.distribute.reduction import ReduceOp
from tfray.distribute.replica_inputs import InputContext
from tfray.distribute.strategy import Strategy
from tfray.estimator.input_functions import IteratorInitializerHook, call_input_fn, features_and_labels
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.framework.graph import get_default_graph
from tfray.library.input.datasets import Dataset
from tfray.ops.arrays.grouping_ops import group
from tfray.training.sessions.session_run_hook import SessionRunHook

ModelFn = Callable[[Any, Any, str, Any], EstimatorSpec]


def distributed_spec(
    strategy: Strategy, model_fn: ModelFn, input_fn: Callable[..., Any], mode: str, params: Any, config: Any
) -> tuple[EstimatorSpec, list[SessionRunHook]]:
    """Build the input and, for each replica, the model. Each replica takes a batch of its own in every step.

    Args:
        strategy: The strategy; its scope has been entered.
        model_fn: ``model_fn(features, labels, mode, config)``.
        input_fn: The input function. It may take an ``input_context``, a `tf.distribute.InputContext`.
        mode: ``ModeKeys.TRAIN`` or ``ModeKeys.EVAL``.
        params: Hyperparameters for `input_fn`.
        config: The `RunConfig`.

    Returns:
        What the model function returned, with the loss of all replicas, an operation that trains or evaluates all of
        them, and the first one's hooks and scaffold; and the hooks of the input.

    Raises:
        ValueError: The input is no dataset, of which each of several replicas could take a batch.
    """
    features, labels, hooks = _inputs(strategy, input_fn, mode, params, config)
    specs: list[EstimatorSpec] = []

    def build(features: Any, labels: Any) -> Any:
        spec = model_fn(features, labels, mode, config)
        specs.append(spec)
        return spec.loss

    with strategy._scale_loss_for_estimator_enabled():
        losses = strategy.extended.call_for_each_replica(build, (features, labels))
        # A strategy's evaluations show the mean of the replicas' losses, also where the loss is a sum.
        loss = strategy.reduce(get_loss_reduction() if mode == ModeKeys.TRAIN else ReduceOp.MEAN, losses)
    if len(specs) == 1:
        return specs[0], hooks
    if mode == ModeKeys.TRAIN:
        return specs[0]._replace(loss=loss, train_op=group(*(spec.train_op for spec in specs))), hooks
    metrics = {
        name: (value, group(*(spec.eval_metric_ops[name][1] for spec in specs)))
        for name, (value, _) in specs[0].eval_metric_ops.items()
    }
    return specs[0]._replace(loss=loss, eval_metric_ops=metrics), hooks


def _inputs(
    strategy: Strategy, input_fn: Callable[..., Any], mode: str, params: Any, config: Any
) -> tuple[Any, Any, list[SessionRunHook]]:
    made: list[Any] = []

    def called(context: InputContext) -> Any:
        made.append(call_input_fn(input_fn, mode, params, config, context))
        return made[0] if isinstance(made[0], Dataset) else lambda: made[0]

    with get_default_graph().device("/cpu:0"):
        iterator = strategy.make_input_fn_iterator(called)
        if not isinstance(made[0], Dataset):
            if strategy.num_replicas_in_sync > 1:
                raise ValueError(
                    f"the input function returned {made[0]!r}: each of {strategy.num_replicas_in_sync} replicas needs "
                    "a batch of its own, so it must return a tf.data.Dataset"
                )
            return features_and_labels(made[0])
        features, labels, _ = features_and_labels(iterator.get_next())
    return features, labels, [IteratorInitializerHook(iterator)]
