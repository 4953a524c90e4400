"""``tf.contrib.kernel_methods``: linear classifiers of features that stand for a kernel, and their loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.scopes import name_scope
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers import losses
from tfray.library.layers.feature_column_base import FeatureColumn
from tfray.library.layers.older_columns import real_valued_column
from tfray.ops.arrays.construction_ops import one_hot
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.shape_ops import cast, reshape, shape
from tfray.ops.arrays.source_ops import constant
from tfray.ops.checks.check_ops import assert_less, assert_non_negative
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_max, reduce_sum
from tfray.ops.math.transcendental_ops import cos
from tfray.ops.nn.activation_ops import relu
from tfray.programs.learn.estimators import LinearClassifier

__all__ = ["KernelLinearClassifier", "RandomFourierFeatureMapper", "sparse_multiclass_hinge_loss"]


class RandomFourierFeatureMapper:
    """Maps rows so that their products are nearly the Gaussian kernel of the rows: ``exp(-|x - y|^2 / (2 stddev^2))``.

    See Rahimi and Recht, Random Features for Large-Scale Kernel Machines (2007).

    Args:
        input_dim: Size of the rows.
        output_dim: Size of what they are mapped to.
        stddev: The width of the kernel.
        seed: Seed of the random map: the same in training and afterwards.
        name: Its name.
    """

    def __init__(
        self, input_dim: int, output_dim: int, stddev: float = 1.0, seed: int = 1, name: str | None = None
    ) -> None:
        self.input_dim, self.output_dim, self._stddev, self._seed = input_dim, output_dim, stddev, seed
        self.name = name or str(id(self))

    def map(self, input_tensor: Tensor) -> Tensor:
        """Map rows.

        Args:
            input_tensor: Shape ``[batch, input_dim]``, float32.

        Returns:
            Shape ``[batch, output_dim]``.

        Raises:
            ValueError: The shape is another one.
        """
        if input_tensor.shape.rank != 2 or input_tensor.shape.as_list()[1] != self.input_dim:
            raise ValueError(f"Invalid dimension: expected [batch, {self.input_dim}], got {input_tensor.shape}")
        random = np.random.RandomState(self._seed)  # TensorFlow's stream, so that its checkpoints mean the same
        directions = random.normal(scale=1.0 / self._stddev, size=(self.input_dim, self.output_dim))
        phases = random.uniform(high=2 * np.pi, size=self.output_dim)
        angles = matmul(input_tensor, constant(directions.astype(np.float32))) + phases.astype(np.float32)
        return float(np.sqrt(2.0 / self.output_dim)) * cos(angles)


class KernelLinearClassifier(LinearClassifier):
    """`tf.contrib.learn.LinearClassifier` of mapped features.

    Args:
        feature_columns: Columns that are not mapped.
        model_dir: Folder of the checkpoints.
        n_classes: The number of classes.
        weight_column_name: The feature with the weights of examples.
        optimizer: The optimizer; Ftrl when None.
        kernel_mappers: For columns of numbers, the mappers whose results are put side by side.
        config: The configuration.

    Raises:
        ValueError: There is no column, or a mapper has no ``map`` or ``output_dim``.
    """

    def __init__(
        self,
        feature_columns: Sequence[FeatureColumn] | None = None,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        kernel_mappers: Mapping[Any, Sequence[Any]] | None = None,
        config: Any = None,
    ) -> None:
        by_name = {column.name: list(mappers) for column, mappers in (kernel_mappers or {}).items()}
        if not (feature_columns or by_name):
            raise ValueError("You should set at least one of feature_columns, kernel_mappers.")
        for name, mappers in by_name.items():
            if not all(callable(getattr(each, "map", None)) and hasattr(each, "output_dim") for each in mappers):
                raise ValueError(f"Invalid kernel_mappers of {name}: each needs `map` and `output_dim`")
        mapped = [
            real_valued_column(f"{name}_MAPPED", sum(each.output_dim for each in mappers))
            for name, mappers in by_name.items()
        ]
        columns = [*(feature_columns or ()), *mapped]
        super().__init__(columns, model_dir, n_classes, weight_column_name, optimizer, config=config)
        plain: Any = self._estimator._model_fn

        def of_mapped(features: Mapping[str, Tensor], labels: Any, mode: str, config: Any) -> Any:
            every = dict(features)
            for name, mappers in by_name.items():
                every[f"{name}_MAPPED"] = concat([each.map(features[name]) for each in mappers], 1)
            return plain(features=every, labels=labels, mode=mode, config=config)

        self._estimator._model_fn = of_mapped


def sparse_multiclass_hinge_loss(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """How far the right class is from being 1 above every other: ``max(0, max(other logits) - logit + 1)``.

    Args:
        labels: Shape ``[batch]`` or ``[batch, 1]``, int32 or int64: indices of the right classes.
        logits: Shape ``[batch, classes]``.
        weights: A scalar, or one for each example, in the shape of labels or flat.
        scope: Name of the operations.
        loss_collection: Collection that the loss is added to.
        reduction: See `tf.losses.Reduction`.

    Returns:
        The loss, float32: a scalar, or with ``NONE`` one for each example.

    Raises:
        ValueError: A shape or dtype is another one.
        InvalidArgumentError: At run time: there is no such class.

    References:
        Crammer and Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", 2001.
    """
    with name_scope(scope, "sparse_multiclass_hinge_loss") as scope:
        labels, weights = convert_to_tensor(labels), convert_to_tensor(weights)
        logits = cast(logits, dtypes.float32)
        if labels.dtype not in (dtypes.int32, dtypes.int64):
            raise InvalidArgumentError(f"labels have dtype {labels.dtype.name}, expected int32 or int64")
        for what, tensor, ranks in (("labels", labels, "12"), ("logits", logits, "2"), ("weights", weights, "012")):
            if str(tensor.shape.rank) not in ranks:
                expected = " or ".join(ranks)
                raise InvalidArgumentError(f"{what} have shape {tensor.shape}, expected rank {expected}")
        right = one_hot(reshape(labels, [-1]), shape(logits)[1])
        fit = [assert_non_negative(labels), assert_less(labels, cast(shape(logits)[1], labels.dtype))]
        with get_default_graph().control_dependencies(fit):
            of_right = reduce_sum(logits * right, 1, keepdims=True)
        above = reduce_max(relu(logits - of_right + (1.0 - right)), 1)
        if weights.shape.rank:
            weights = reshape(weights, [-1])
        return losses.compute_weighted_loss(above, weights, scope, loss_collection, reduction)
