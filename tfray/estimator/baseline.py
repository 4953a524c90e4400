"""Baselines: models that learn but the mean of the labels, for comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.layers.losses import Reduction
from tfray.library.variables import initializers
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.ops.arrays import array_ops

LEARNING_RATE: Final = 0.3


def _batch_size(features: Any) -> Tensor:
    values = list(features.values()) if isinstance(features, Mapping) else [features]
    if not values:
        raise ValueError("there are no features, and so nothing that says how many examples there are")
    first = values[0]
    return array_ops.to_int32(first.dense_shape[0]) if isinstance(first, SparseTensor) else array_ops.shape(first)[0]


class BaselineEstimator(Estimator):
    """A model without features, with a head of one's choice.

    Args:
        head: The head.
        model_dir: As of `Estimator`.
        optimizer: One of ``tf.train``, a function that makes it, or a name: ``Ftrl`` (with a learning rate of 0.3),
            ``Adagrad``, ``Adam``, ``RMSProp`` or ``SGD``.
        config: As of `Estimator`.
    """

    @checked
    def __init__(
        self,
        head: Head,
        model_dir: PathLike | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            with variable_scope("baseline"):
                bias = get_variable("bias", [head.logits_dimension], initializer=initializers.Zeros())
            logits = bias * array_ops.ones(array_ops.stack([_batch_size(features), head.logits_dimension]))
            made = canned.optimizer_of(optimizer, LEARNING_RATE)
            return head.create_estimator_spec(features, mode, logits, labels, optimizer=made)

        super().__init__(model_fn, model_dir, config)


class BaselineClassifier(BaselineEstimator):
    """A classifier that learns how frequent the classes are.

    Arguments that are not told here are as of `BaselineEstimator`.

    Args:
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
        model_dir: PathLike | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[Any] | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = Reduction.SUM,
    ) -> None:
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)


class BaselineRegressor(BaselineEstimator):
    """A regression that learns the mean of the labels.

    Arguments that are not told here are as of `BaselineEstimator`.

    Args:
        label_dimension: How many numbers an example has.
        weight_column: Name of the feature with the weights of the examples, or a numeric column.
        loss_reduction: As of `BaselineClassifier`.

    Raises:
        ValueError: `label_dimension` is not positive, or the reduction is not known.
    """

    @checked
    def __init__(
        self,
        model_dir: PathLike | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = Reduction.SUM,
    ) -> None:
        super().__init__(RegressionHead(label_dimension, weight_column, loss_reduction), model_dir, optimizer, config)
