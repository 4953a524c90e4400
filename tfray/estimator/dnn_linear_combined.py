"""Wide and deep models: a linear model and a network whose logits are added up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tfray.estimator import canned
from tfray.estimator.classification_heads import classifier_head
from tfray.estimator.dnn import dnn_logit_fn_builder
from tfray.estimator.estimator import Estimator
from tfray.estimator.heads import Head
from tfray.estimator.linear import linear_logit_fn_builder
from tfray.estimator.regression_heads import RegressionHead
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec
from tfray.formats.files import PathLike
from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.layers.losses import Reduction
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.nn import activation_ops
from tfray.ops.state.state_ops import assign_add
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.sync_replicas import SyncReplicasOptimizer
from tfray.training.threads.global_step import get_or_create_global_step

DNN_LEARNING_RATE: Final = 0.001
LINEAR_LEARNING_RATE: Final = 0.005


@dataclass(frozen=True)
class _Settings:
    """The arguments of the classes of this module that concern the two models."""

    linear_columns: Sequence[Any]
    linear_optimizer: Any
    dnn_columns: Sequence[Any]
    dnn_optimizer: Any
    hidden_units: Sequence[int]
    activation_fn: Any
    dropout: float | None
    partitioner: Partitioner | None
    batch_norm: bool
    sparse_combiner: str


def _optimizer(given: Any, learning_rate: float) -> Optimizer:
    made = canned.optimizer_of(given, learning_rate)
    if isinstance(made, SyncReplicasOptimizer):
        raise ValueError("SyncReplicasOptimizer counts the steps of one optimizer, and here are two: use another")
    return made


def _model_fn(
    features: Any, labels: Any, mode: str, head: Head, settings: _Settings, config: RunConfig | None
) -> EstimatorSpec:
    canned.check_features(features)
    partitioner = settings.partitioner or canned.partitioner_for(config)
    parts: list[tuple[Optimizer, str, Tensor]] = []
    if settings.dnn_columns:
        optimizer = _optimizer(settings.dnn_optimizer, DNN_LEARNING_RATE)
        with variable_scope("dnn", partitioner=canned.partitioner_for(config, canned.SMALL_SLICE_BYTES)) as scope:
            logit_fn = dnn_logit_fn_builder(
                head.logits_dimension,
                settings.hidden_units,
                settings.dnn_columns,
                settings.activation_fn,
                settings.dropout,
                partitioner,
                settings.batch_norm,
            )
            parts.append((optimizer, scope.name, logit_fn(features, mode)))
    if settings.linear_columns:
        rate = min(LINEAR_LEARNING_RATE, 1.0 / math.sqrt(len(settings.linear_columns)))
        optimizer = _optimizer(settings.linear_optimizer, rate)
        with variable_scope("linear", partitioner=partitioner) as scope:
            linear_fn = linear_logit_fn_builder(
                head.logits_dimension, settings.linear_columns, settings.sparse_combiner
            )
            linear_logits = linear_fn(features)
            canned.summarize_layer(linear_logits, scope.name)
            parts.append((optimizer, scope.name, linear_logits))
    logits = parts[0][2] if len(parts) == 1 else parts[0][2] + parts[1][2]

    def train_op_fn(loss: Tensor) -> Any:
        graph = get_default_graph()
        steps = []
        for optimizer, name, _ in parts:
            variables = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=f"{name}/")
            steps.append(optimizer.minimize(loss, var_list=variables))
        with graph.control_dependencies([group(*steps)]):
            return assign_add(get_or_create_global_step(), 1).op

    return head.create_estimator_spec(features, mode, logits, labels, train_op_fn=train_op_fn)


class DNNLinearCombinedEstimator(Estimator):
    """A linear model and a network, joined, with a head of one's choice.

    Args:
        head: The head.
        model_dir: As of `Estimator`.
        linear_feature_columns: Columns of the linear model, dense or categorical.
        linear_optimizer: Changes the linear model: one of ``tf.train``, a function that makes it, or a name: ``Ftrl``
            (with a learning rate of 0.005, or less with many columns), ``Adagrad``, ``Adam``, ``RMSProp`` or ``SGD``.
        dnn_feature_columns: Dense columns of the network.
        dnn_optimizer: Changes the network, likewise: ``Adagrad`` (with a learning rate of 0.001), and so on.
        dnn_hidden_units: Units of each hidden layer.
        dnn_activation_fn: Activation of the hidden layers.
        dnn_dropout: The probability with which a unit is left out in training; None for no dropout.
        input_layer_partitioner: Partitioner of embeddings and of the linear model.
        config: As of `Estimator`.
        linear_sparse_combiner: How the weights of several ids of an example are combined: ``sum``, ``mean`` or
            ``sqrtn``.
        batch_norm: Whether to normalise batches after each hidden layer. tfray's addition.
        warm_start_from: As of `Estimator`. tfray's addition.

    Raises:
        ValueError: There are no columns at all, or columns of a network without hidden units.
    """

    @checked
    def __init__(
        self,
        head: Head,
        model_dir: PathLike | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] | None = activation_ops.relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: RunConfig | None = None,
        linear_sparse_combiner: str = "sum",
        *,
        batch_norm: bool = False,
        warm_start_from: Any = None,
    ) -> None:
        linear_columns, dnn_columns = tuple(linear_feature_columns or ()), tuple(dnn_feature_columns or ())
        if not linear_columns and not dnn_columns:
            raise ValueError(
                "a required keyword argument is missing: linear_feature_columns, dnn_feature_columns, or both"
            )
        if dnn_columns and not dnn_hidden_units:
            raise ValueError("dnn_feature_columns are those of a network: give dnn_hidden_units")
        settings = _Settings(
            linear_columns,
            linear_optimizer,
            dnn_columns,
            dnn_optimizer,
            tuple(dnn_hidden_units or ()),
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            batch_norm,
            linear_sparse_combiner,
        )

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return _model_fn(features, labels, mode, head, settings, config)

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator):
    """A wide and deep classifier.

    Arguments that are not told here are as of `DNNLinearCombinedEstimator`.

    Args:
        n_classes: Number of classes.
        weight_column: Name of the feature with the weights of the examples, or a numeric column.
        label_vocabulary: The words, if labels are words.
        loss_reduction: How the losses of examples become one number: one of `tf.losses.Reduction`, other than ``NONE``.
        batch_norm: Whether to normalise batches after each hidden layer.

    Raises:
        ValueError: As there; there are less than two classes, not as many words, or the reduction is not known.
    """

    @checked
    def __init__(
        self,
        model_dir: PathLike | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] | None = activation_ops.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[Any] | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            linear_sparse_combiner,
            batch_norm=batch_norm,
            warm_start_from=warm_start_from,
        )


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator):
    """A wide and deep regression.

    Arguments that are not told here are as of `DNNLinearCombinedEstimator`.

    Args:
        label_dimension: How many numbers an example has.
        weight_column: Name of the feature with the weights of the examples, or a numeric column.
        loss_reduction: As of `DNNLinearCombinedClassifier`.
        batch_norm: Whether to normalise batches after each hidden layer.

    Raises:
        ValueError: As there; `label_dimension` is not positive, or the reduction is not known.
    """

    @checked
    def __init__(
        self,
        model_dir: PathLike | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] | None = activation_ops.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Partitioner | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            RegressionHead(label_dimension, weight_column, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            linear_sparse_combiner,
            batch_norm=batch_norm,
            warm_start_from=warm_start_from,
        )
