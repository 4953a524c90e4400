"""Estimators of random forests: TensorFlow's ``tensorflow.contrib.tensor_forest.client.random_forest``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tfray.estimator.canned_models.forest_metrics import INFERENCE_PRED_NAME
from tfray.estimator.classification_heads import BinaryClassHead, MultiClassHead
from tfray.estimator.estimator import Estimator
from tfray.estimator.heads import Head
from tfray.estimator.regression_heads import RegressionHead
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.formats.files import PathLike
from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor, get_default_graph
from tfray.library.forest.forest_graphs import RandomForestGraphs
from tfray.library.forest.forest_parameters import ForestHParams
from tfray.library.inspect import summaries
from tfray.library.layers.feature_column import input_layer
from tfray.library.platform import logging
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops
from tfray.ops.state.state_ops import assign_add
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tfray.training.threads.global_step import get_global_step, get_or_create_global_step

__all__ = [
    "TREE_PATHS_PREDICTION_KEY",
    "VARIANCE_PREDICTION_KEY",
    "CoreTensorForestEstimator",
    "TensorForestEstimator",
    "TensorForestLossHook",
    "TensorForestRunOpAtEndHook",
    "get_default_head",
]

TREE_PATHS_PREDICTION_KEY: Final = "tree_paths"
VARIANCE_PREDICTION_KEY: Final = "prediction_variance"
_LEAST: Final = 1e-6
"""Probabilities below it become the same logit: that of 0 is infinite."""


class TensorForestRunOpAtEndHook(SessionRunHook):
    """Notes the values of operations at the end of training.

    Args:
        op_dict: The operations by name.
    """

    @checked
    def __init__(self, op_dict: Mapping[str, Any]) -> None:
        self._ops = op_dict

    def end(self, session: Any) -> None:
        for name in sorted(self._ops):
            logging.info("%s: %s", name, session.run(self._ops[name]))


class TensorForestLossHook(SessionRunHook):
    """Stops training when the loss no longer falls.

    Args:
        early_stopping_rounds: For so many steps.
        early_stopping_loss_threshold: The part of the loss by which it must fall to count.
        loss_op: The loss.
    """

    @checked
    def __init__(
        self, early_stopping_rounds: int, early_stopping_loss_threshold: float = 0.0, loss_op: Tensor | None = None
    ) -> None:
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_loss_threshold = early_stopping_loss_threshold
        self.loss_op = loss_op
        self.min_loss: float | None = None
        self.last_step = -1
        self.steps = 0

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs({"global_step": get_global_step(), "current_loss": self.loss_op})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        loss, step = float(run_values.results["current_loss"]), int(run_values.results["global_step"])
        self.steps += 1
        if not 0 <= self.last_step <= step:  # the first step, or one after a restored checkpoint
            self.last_step, self.steps, self.min_loss = step, 0, None
            return
        self.last_step = step
        if self.min_loss is None or loss < self.min_loss - self.min_loss * self.early_stopping_loss_threshold:
            self.min_loss, self.steps = loss, 0
        if self.steps > self.early_stopping_rounds:
            logging.info("the loss has not fallen for %d steps: training stops", self.steps)
            run_context.request_stop()


def get_default_head(params: ForestHParams, weights_name: Any = None, name: str | None = None) -> Head:
    """The head of a forest: of a regression, or of two or more classes.

    Args:
        params: What the forest is like.
        weights_name: Name of the feature with the weights of the examples, or None.
        name: Name of the head.
    """
    if params.regression:
        return RegressionHead(params.num_outputs, weights_name, name=name)
    if params.num_classes == 2:
        return BinaryClassHead.canned(weights_name, name=name)
    return MultiClassHead.canned(params.num_classes, weights_name, name=name)


class CoreTensorForestEstimator(Estimator):
    """Trains and uses a random forest; see `RandomForestGraphs`.

    A loss of `head` is told and looked at for early stopping, but forests do not minimise one. Predictions are those of
    the head; for values, also ``prediction_variance``, and with ``inference_tree_paths`` also ``tree_paths``.

    Args:
        params: A `ForestHParams`.
        device_assigner: The device of the trees, or a function from an operation to it.
        model_dir: Folder of the checkpoints.
        feature_columns: What to make features of, as for `tf.feature_column.input_layer`; all features, in the order of
            their names, when None.
        graph_builder_class: What builds the graphs.
        config: Configuration of the run.
        weight_column: Name of the feature with the weights of the examples.
        keys_column: Name of a feature that is no feature, but becomes a prediction.
        feature_engineering_fn: Function from features and labels to those that are used.
        early_stopping_rounds: Stop training after so many steps without a smaller loss; 0 or None for no such stop.
        early_stopping_loss_threshold: The part of the loss by which it must fall to count as smaller.
        num_trainers: Number of tasks among which the trees are shared out.
        trainer_id: The number of this one.
        report_feature_importances: Note after training which part of the nodes tests each feature.
        local_eval: Evaluate without `device_assigner`.
        version: Accepted for TensorFlow's sake.
        head: From what the forest says to predictions, losses and metrics; see `get_default_head`.
        include_all_in_serving: Accepted: what is exported has the outputs of the head.
    """

    @checked
    def __init__(
        self,
        params: ForestHParams,
        device_assigner: Any = None,
        model_dir: PathLike | None = None,
        feature_columns: Sequence[Any] | None = None,
        graph_builder_class: Callable[..., Any] = RandomForestGraphs,
        config: RunConfig | None = None,
        weight_column: str | None = None,
        keys_column: str | None = None,
        feature_engineering_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        early_stopping_rounds: int | None = 100,
        early_stopping_loss_threshold: float = 0.001,
        num_trainers: int = 1,
        trainer_id: int = 0,
        report_feature_importances: bool = False,
        local_eval: bool = False,
        version: Any = None,
        head: Head | None = None,
        include_all_in_serving: bool = False,
    ) -> None:
        params.fill()
        own_head = head or get_default_head(params, weight_column)

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            if feature_engineering_fn is not None:
                features, labels = feature_engineering_fn(features, labels)
            features = dict(features) if isinstance(features, Mapping) else {"features": features}
            keys = features.pop(keys_column, None) if keys_column else None
            data = {name: each for name, each in features.items() if name != weight_column}
            away = mode == ModeKeys.PREDICT or (local_eval and mode == ModeKeys.EVAL)
            forest = graph_builder_class(params, device_assigner=None if away else device_assigner)
            columns = input_layer(data, feature_columns) if feature_columns else data
            answers, paths, variance = forest.inference_graph(columns)
            summaries.scalar("average_tree_size", forest.average_size())

            def train_op(loss: Tensor) -> Any:
                weights = features.get(weight_column)
                with get_default_graph().control_dependencies([answers]):
                    trained = forest.training_graph(
                        columns, labels, num_trainers=num_trainers, trainer_id=trainer_id, input_weights=weights
                    )
                    return group(trained, assign_add(get_or_create_global_step(), 1))

            logits = answers if params.regression else _logits(answers)
            spec = own_head.create_estimator_spec(features, mode, logits, labels, train_op_fn=train_op)
            if mode == ModeKeys.TRAIN:
                hooks = list(spec.training_hooks)
                if report_feature_importances:
                    hooks.append(TensorForestRunOpAtEndHook({"feature_importances": forest.feature_importances()}))
                if early_stopping_rounds:
                    hooks.append(TensorForestLossHook(early_stopping_rounds, early_stopping_loss_threshold, spec.loss))
                return spec._replace(training_hooks=tuple(hooks))
            more = {keys_column: keys} if keys is not None else {}
            if params.regression:
                more[VARIANCE_PREDICTION_KEY] = variance
            if params.inference_tree_paths:
                more[TREE_PATHS_PREDICTION_KEY] = paths
            return spec._replace(predictions={**spec.predictions, **more, **self._own_predictions(spec.predictions)})

        super().__init__(model_fn, model_dir, config)

    def _own_predictions(self, predictions: Mapping[str, Any]) -> dict[str, Any]:
        return {}


def _logits(probabilities: Tensor) -> Tensor:
    """What gives the probabilities back by a softmax, or, of two classes, by a sigmoid."""
    logits = math_ops.log(math_ops.maximum(probabilities, _LEAST))
    return logits[:, 1:] - logits[:, :1] if probabilities.shape[1] == 2 else logits


class TensorForestEstimator(CoreTensorForestEstimator):
    """`CoreTensorForestEstimator` with the older names: ``classes`` are numbers, ``scores`` the values of a regression.

    Args:
        params: See there, as for the others.
        device_assigner: See there.
        model_dir: See there.
        graph_builder_class: See there.
        config: See there.
        weights_name: Name of the feature with the weights of the examples.
        keys_name: Name of a feature that is no feature, but becomes a prediction.
        feature_engineering_fn: See there.
        early_stopping_rounds: See there.
        early_stopping_loss_threshold: See there.
        num_trainers: See there.
        trainer_id: See there.
        report_feature_importances: See there.
        local_eval: See there.
        version: See there.
        head: See there.
    """

    @checked
    def __init__(
        self,
        params: ForestHParams,
        device_assigner: Any = None,
        model_dir: PathLike | None = None,
        graph_builder_class: Callable[..., Any] = RandomForestGraphs,
        config: RunConfig | None = None,
        weights_name: str | None = None,
        keys_name: str | None = None,
        feature_engineering_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        early_stopping_rounds: int | None = 100,
        early_stopping_loss_threshold: float = 0.001,
        num_trainers: int = 1,
        trainer_id: int = 0,
        report_feature_importances: bool = False,
        local_eval: bool = False,
        version: Any = None,
        head: Head | None = None,
    ) -> None:
        super().__init__(
            params,
            device_assigner,
            model_dir,
            None,
            graph_builder_class,
            config,
            weights_name,
            keys_name,
            feature_engineering_fn,
            early_stopping_rounds,
            early_stopping_loss_threshold,
            num_trainers,
            trainer_id,
            report_feature_importances,
            local_eval,
            version,
            head,
        )

    def fit(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        monitors: Sequence[SessionRunHook] | None = None,
        max_steps: int | None = None,
    ) -> Estimator:
        """The older name of `train`; `monitors` are hooks."""
        return self.train(input_fn, monitors, steps, max_steps)

    def _own_predictions(self, predictions: Mapping[str, Any]) -> dict[str, Any]:
        if "class_ids" in predictions:
            return {INFERENCE_PRED_NAME: predictions["class_ids"][:, 0]}
        return {"scores": predictions["predictions"]} if "predictions" in predictions else {}
