"""Linear models: ``tf.estimator.LinearClassifier`` and its kin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.estimator import canned
from tfray.estimator.classification_heads import classifier_head
from tfray.estimator.estimator import Estimator
from tfray.estimator.heads import Head
from tfray.estimator.regression_heads import RegressionHead
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec
from tfray.formats.files import PathLike
from tfray.framework.arguments import checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.library.inspect import summaries
from tfray.library.layers import feature_column
from tfray.library.layers.losses import Reduction
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.nn import nn_ops
from tfray.training.optimizers.ftrl import FtrlOptimizer

LEARNING_RATE: Final = 0.2


def linear_logit_fn_builder(
    units: int, feature_columns: Sequence[Any], sparse_combiner: str = "sum"
) -> Callable[..., Tensor]:
    """A function from features to the logits of a linear model.

    Args:
        units: Number of logits of an example.
        feature_columns: The columns.
        sparse_combiner: How the weights of several ids of an example are combined: ``sum``, ``mean`` or ``sqrtn``.
    """

    def linear_logit_fn(features: Any) -> Tensor:
        variables: dict[Any, Any] = {}
        logits = feature_column.linear_model(
            features, feature_columns, units=units, sparse_combiner=sparse_combiner, cols_to_vars=variables
        )
        bias = convert_to_tensor(variables.pop("bias")[0])
        if units > 1:
            summaries.histogram("bias", bias)
        else:
            summaries.scalar("bias", array_ops.reshape(bias, []))
        weights = [array_ops.reshape(convert_to_tensor(part), [-1]) for parts in variables.values() for part in parts]
        summaries.scalar("fraction_of_zero_weights", nn_ops.zero_fraction(array_ops.concat(weights, 0)))
        return logits

    return linear_logit_fn


def _model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Head,
    columns: Sequence[Any],
    optimizer: Any,
    partitioner: Partitioner | None,
    config: RunConfig | None,
    sparse_combiner: str,
) -> EstimatorSpec:
    canned.check_features(features)
    with variable_scope("linear", partitioner=partitioner or canned.partitioner_for(config)):
        logits = linear_logit_fn_builder(head.logits_dimension, columns, sparse_combiner)(features)
        if optimizer is None:
            optimizer = FtrlOptimizer(min(LEARNING_RATE, 1.0 / math.sqrt(len(columns))))
        made = canned.optimizer_of(optimizer, LEARNING_RATE)
        return head.create_estimator_spec(features, mode, logits, labels, optimizer=made)


class LinearEstimator(Estimator):
    """A linear model with a head of one's choice.

    Args:
        head: The head.
        feature_columns: Columns, dense or categorical.
        model_dir: As of `Estimator`.
        optimizer: One of ``tf.train``, a function that makes it, or a name: ``Ftrl`` (with a learning rate of 0.2),
            ``Adagrad``, ``Adam``, ``RMSProp`` or ``SGD``.
        config: As of `Estimator`.
        partitioner: Partitioner of the weights; by default large ones are cut over the parameter servers.
        sparse_combiner: How the weights of several ids of an example are combined: ``sum``, ``mean`` or ``sqrtn``.
        warm_start_from: As of `Estimator`. tfray's addition.
    """

    @checked
    def __init__(
        self,
        head: Head,
        feature_columns: Sequence[Any],
        model_dir: PathLike | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Partitioner | None = None,
        sparse_combiner: str = "sum",
        *,
        warm_start_from: Any = None,
    ) -> None:
        columns = tuple(feature_columns or ())

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return _model_fn(features, labels, mode, head, columns, optimizer, partitioner, config, sparse_combiner)

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearClassifier(LinearEstimator):
    """A linear classifier.

    Arguments that are not told here are as of `LinearEstimator`.

    Args:
        feature_columns: Columns, dense or categorical.
        n_classes: Number of classes.
        weight_column: Name of the feature with the weights of the examples, or a numeric column.
        label_vocabulary: The words, if labels are words.
        loss_reduction: How the losses of examples become one number: one of `tf.losses.Reduction`, other than ``NONE``.

    Raises:
        ValueError: There are less than two classes, not as many words, or the reduction is not known.
    """

    @checked
    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: PathLike | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[Any] | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Partitioner | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            head,
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            sparse_combiner,
            warm_start_from=warm_start_from,
        )


class LinearRegressor(LinearEstimator):
    """A linear regression.

    Arguments that are not told here are as of `LinearEstimator`.

    Args:
        feature_columns: Columns, dense or categorical.
        label_dimension: How many numbers an example has.
        weight_column: Name of the feature with the weights of the examples, or a numeric column.
        loss_reduction: As of `LinearClassifier`.

    Raises:
        ValueError: `label_dimension` is not positive, or the reduction is not known.
    """

    @checked
    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: PathLike | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Partitioner | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(
            head,
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            sparse_combiner,
            warm_start_from=warm_start_from,
        )
