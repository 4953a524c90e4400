"""Estimators of ``tf.contrib.learn`` that take a head: networks, linear models, both together, one's own logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.estimator import canned
from tfray.framework import dtypes
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import Activation
from tfray.gradients import gradients
from tfray.library.metrics import binary_metrics, mean_metrics
from tfray.library.variables.clip import clip_by_global_norm
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops
from tfray.ops.nn.activation_ops import relu
from tfray.ops.state.state_ops import assign_add
from tfray.programs.learn.composable_models import (
    LINEAR_RATE,
    NETWORK_RATE,
    Network,
    linear_logits,
    linear_rate,
)
from tfray.programs.learn.estimators import Estimator
from tfray.programs.learn.learn_heads import Head
from tfray.programs.learn.learn_keys import MetricKey, ProblemType
from tfray.programs.learn.model_fn_ops import ModelFnOps
from tfray.training.optimizers.ftrl import FtrlOptimizer
from tfray.training.sessions.optimize_loss import optimize_loss
from tfray.training.sessions.sync_replicas import SyncReplicasOptimizer
from tfray.training.threads.global_step import get_global_step, get_or_create_global_step

Engineering = Callable[[Any, Any], tuple[Any, Any]] | None
"""Function of features and labels that comes first."""


def _named(features: Any) -> dict[Any, Any]:
    return dict(features) if isinstance(features, Mapping) else {"": features}


def _made(optimizer: Any) -> Any:
    return optimizer() if callable(optimizer) else optimizer


class DNNEstimator(Estimator):
    """A network with a head of one's choice.

    Args:
        head: The head.
        hidden_units: Sizes of the layers.
        feature_columns: Columns of numbers.
        model_dir: Folder of the checkpoints.
        optimizer: An optimizer, a function that makes it, or a name; Adagrad with a learning rate of 0.05 when None.
        activation_fn: Activation of the layers.
        dropout: The share of outputs that training drops.
        gradient_clip_norm: What norm all gradients together have at most.
        config: Its configuration.
        feature_engineering_fn: Function of features and labels that comes first.
        embedding_lr_multipliers: Factors of the gradients of embeddings, by column.
        input_layer_min_slice_size: Parts of embeddings on parameter servers have at least so many bytes; 64 MiB when
            None.
    """

    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        optimizer: Any = None,
        activation_fn: Activation = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Engineering = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            named = _named(features)
            cut = None
            if input_layer_min_slice_size is not None:
                cut = canned.partitioner_for(config, input_layer_min_slice_size)
            network = Network(feature_columns, hidden_units, activation_fn, dropout, cut, embedding_lr_multipliers)
            with variable_scope("dnn", partitioner=canned.partitioner_for(config)):
                logits = network.logits(named, head.logits_dimension, mode, config)

                def train_op_fn(loss: Tensor) -> Tensor:
                    return optimize_loss(
                        loss,
                        get_global_step(),
                        NETWORK_RATE,
                        _made(optimizer or "Adagrad"),
                        gradient_multipliers=network.multipliers(),
                        clip_gradients=gradient_clip_norm,
                        name="dnn",
                        summaries=[],
                    )

                return head.create_model_fn_ops(named, mode, labels, train_op_fn, logits)

        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)


class LinearEstimator(Estimator):
    """A linear model with a head of one's choice.

    Args:
        feature_columns: Columns of numbers or of ids.
        head: The head.
        model_dir: Folder of the checkpoints.
        weight_column_name: Has no use: the head has one.
        optimizer: An optimizer, or a function that makes it; Ftrl when None.
        gradient_clip_norm: What norm all gradients together have at most.
        _joint_weights: Keep all weights in one variable; columns are then of ids.
        config: Its configuration.
        feature_engineering_fn: Function of features and labels that comes first.

    Raises:
        ValueError: There are no columns.
    """

    def __init__(
        self,
        feature_columns: Sequence[Any],
        head: Head,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Engineering = None,
    ) -> None:
        if not feature_columns:
            raise ValueError("LinearEstimator needs feature_columns")

        def train_op_fn(loss: Tensor) -> Any:
            made = canned.optimizer_of(optimizer or FtrlOptimizer(linear_rate(feature_columns)), LINEAR_RATE)
            variables = get_default_graph().get_collection("linear")
            grads = gradients(loss, variables)
            if gradient_clip_norm:
                grads, _ = clip_by_global_norm(grads, gradient_clip_norm)
            return made.apply_gradients(zip(grads, variables, strict=True), global_step=get_global_step())

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            named = _named(features)
            with variable_scope("linear", partitioner=canned.partitioner_for(config)) as scope:
                logits = linear_logits(named, feature_columns, head.logits_dimension, _joint_weights, scope)
                return head.create_model_fn_ops(named, mode, labels, train_op_fn, logits)

        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)


class DNNLinearCombinedEstimator(Estimator):
    """A network and a linear model, whose logits are added, with a head of one's choice.

    Args:
        head: The head.
        model_dir: Folder of the checkpoints.
        linear_feature_columns: Columns of the linear model.
        linear_optimizer: As of `LinearEstimator`; also a name.
        _joint_linear_weights: As of `LinearEstimator`.
        dnn_feature_columns: Columns of the network.
        dnn_optimizer: As of `DNNEstimator`.
        dnn_hidden_units: Sizes of the layers.
        dnn_activation_fn: Activation of the layers; `tf.nn.relu` when None.
        dnn_dropout: The share of outputs that training drops.
        gradient_clip_norm: What norm the gradients of each part have at most.
        config: Its configuration.
        feature_engineering_fn: Function of features and labels that comes first.
        embedding_lr_multipliers: As of `DNNEstimator`.
        fix_global_step_increment_bug: Count a step once; otherwise each part counts it.
        input_layer_partitioner: Partitioner of the input layer of the network.

    Raises:
        ValueError: There are no columns; or, when the graph is built, columns of a network without sizes of layers.
    """

    def __init__(
        self,
        head: Head,
        model_dir: str | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Activation | None = None,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Engineering = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_partitioner: Partitioner | None = None,
    ) -> None:
        linear_columns, dnn_columns = tuple(linear_feature_columns or ()), tuple(dnn_feature_columns or ())
        if not linear_columns + dnn_columns:
            raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
        if dnn_columns and not dnn_hidden_units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
        counts = not fix_global_step_increment_bug

        def step_of(loss: Tensor, part: str, rate: float, optimizer: Any, multipliers: Any = None) -> Tensor:
            return optimize_loss(
                loss,
                get_global_step(),
                rate,
                _without_replicas(_made(optimizer)),
                gradient_multipliers=multipliers,
                clip_gradients=gradient_clip_norm,
                variables=get_default_graph().get_collection(part),
                name=part,
                summaries=[],
                increment_global_step=counts,
            )

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            named, parts = _named(features), []
            network = Network(
                dnn_columns,
                dnn_hidden_units or (),
                dnn_activation_fn or relu,
                dnn_dropout,
                input_layer_partitioner,
                embedding_lr_multipliers,
            )
            if dnn_columns:
                with variable_scope("dnn", partitioner=canned.partitioner_for(config)):
                    parts.append(network.logits(named, head.logits_dimension, mode, config))
            if linear_columns:
                with variable_scope("linear", partitioner=canned.partitioner_for(config)) as scope:
                    sums = linear_logits(named, linear_columns, head.logits_dimension, _joint_linear_weights, scope)
                    canned.summarize_layer(sums, scope.name)
                    parts.append(sums)

            def train_op_fn(loss: Tensor) -> Any:
                steps = []
                if dnn_columns:
                    optimizer = dnn_optimizer or "Adagrad"
                    steps.append(step_of(loss, "dnn", NETWORK_RATE, optimizer, network.multipliers()))
                if linear_columns:
                    steps.append(step_of(loss, "linear", linear_rate(linear_columns), linear_optimizer or "Ftrl"))
                trained = group(*steps)
                if counts:
                    return trained
                with get_default_graph().control_dependencies([trained]):
                    return assign_add(get_or_create_global_step(), 1).op

            logits = parts[0] if len(parts) == 1 else parts[0] + parts[1]
            return head.create_model_fn_ops(named, mode, labels, train_op_fn, logits)

        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)


def _without_replicas(optimizer: Any) -> Any:
    if isinstance(optimizer, SyncReplicasOptimizer):
        raise ValueError(
            "SyncReplicasOptimizer is not supported in DNNLinearCombined model. "
            "If you want to use this optimizer, please use either DNN or Linear model."
        )
    return optimizer


def LogisticRegressor(
    model_fn: Callable[..., Any],
    thresholds: Sequence[float] | None = None,
    model_dir: str | None = None,
    config: Any = None,
    feature_engineering_fn: Engineering = None,
) -> Estimator:
    """An estimator of probabilities, with the metrics of two classes.

    Args:
        model_fn: ``model_fn(features, labels, mode)``, which returns predictions, probabilities of any shape, the loss
            and the training step.
        thresholds: Where metrics cut the probabilities; 0.5 when None.
        model_dir: Folder of the checkpoints.
        config: Its configuration.
        feature_engineering_fn: Function of features and labels that comes first.

    Returns:
        The estimator.
    """

    def judged(features: Any, labels: Any, mode: str) -> ModelFnOps:
        predictions, loss, train_op = model_fn(features, labels, mode)
        metrics = _logistic_metrics(labels, predictions, thresholds or (0.5,)) if mode == "eval" else None
        served = {"head": (ProblemType.LOGISTIC_REGRESSION, {"predictions": predictions})}
        return ModelFnOps(mode, predictions, loss, train_op, metrics, served)

    return Estimator(judged, model_dir, config, feature_engineering_fn=feature_engineering_fn)


def _logistic_metrics(labels: Any, predictions: Tensor, thresholds: Sequence[float]) -> dict[str, Any]:
    if isinstance(labels, Mapping) and len(labels) == 1:
        (labels,) = labels.values()
    found = {
        MetricKey.PREDICTION_MEAN: mean_metrics.mean(predictions),
        MetricKey.LABEL_MEAN: mean_metrics.mean(labels),
        MetricKey.ACCURACY_BASELINE: mean_metrics.mean(labels),
        MetricKey.AUC: binary_metrics.auc(labels, predictions),
    }
    for threshold in thresholds:
        above = array_ops.cast(math_ops.greater_equal(predictions, threshold), dtypes.float32)
        found |= {
            MetricKey.ACCURACY_MEAN % threshold: mean_metrics.accuracy(labels, above),
            MetricKey.PRECISION_MEAN % threshold: binary_metrics.precision(labels, above),
            MetricKey.RECALL_MEAN % threshold: binary_metrics.recall(labels, above),
        }
    return found
