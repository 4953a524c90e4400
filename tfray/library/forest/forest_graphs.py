"""Graphs that train and use a random forest: TensorFlow's ``tensorflow.contrib.tensor_forest.python.tensor_forest``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.random_seed import get_seed
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.forest.forest_parameters import ForestHParams
from tfray.library.platform import logging
from tfray.library.variables.registered_resources import register_resource
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.source_ops import constant
from tfray.ops.dataflow import forest_ops
from tfray.ops.math import math_ops
from tfray.ops.resources.forest_resource import ForestSettings
from tfray.ops.sparse.sparse_ops import sparse_tensor_to_dense

__all__ = ["ForestHParams", "ForestVariables", "RandomForestGraphs"]


class ForestVariables:
    """The trees of a forest: a resource that savers save.

    Args:
        params: What the forest is like.
        device_assigner: Its device, or a function from an operation to it.
        training: Accepted for TensorFlow's sake.
    """

    def __init__(self, params: ForestHParams, device_assigner: Any = None, training: bool = True) -> None:
        if not hasattr(params, "bagged_features"):
            params.fill()
        graph = get_default_graph()
        with graph.device(device_assigner):
            self.handle = forest_ops.random_forest(_settings(params), name="forest")
        graph.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, SaveableResource(self.handle.op.name, self.handle))
        # It begins as a forest of leaves when it is first used.
        register_resource(self.handle, self.handle.op, constant(True))


def _settings(params: ForestHParams) -> ForestSettings:
    graph_seed, seed = get_seed(params.base_random_seed or None)
    return ForestSettings(
        trees=params.num_trees,
        max_nodes=params.max_nodes,
        features=params.num_features,
        outputs=params.num_classes,
        is_regression=bool(params.regression),
        candidates=params.num_splits_to_consider,
        split_after=float(params.split_after_samples),
        is_strict=params.split_name == "less",
        bagging_fraction=float(params.bagging_fraction),
        seed=None if graph_seed is None or seed is None else (graph_seed << 31) + seed,
    )


class RandomForestGraphs:
    """Builds the graphs that train and use a random forest.

    The trees are extremely randomised ones, and learn from batches, or streams, of examples. A leaf draws its candidate
    splits from the first examples that reach it, each with a feature by chance. It counts the examples that follow on
    both sides of each. After ``split_after_samples`` of them it is split by the candidate with the least impurity,
    Gini's for classes and the squared error for values, until the tree has ``max_nodes``.

    Args:
        params: A `ForestHParams`.
        tree_configs: Must be None: trees come from checkpoints.
        tree_stats: Must be None.
        device_assigner: The device of the trees, or a function from an operation to it.
        variables: The trees; new ones when None. The attribute `variables` of another object shares its trees.
        tree_variables_class: Must be None.
        tree_graphs: Must be None.
        training: Accepted for TensorFlow's sake.

    Raises:
        ValueError: An argument must be None, or a parameter has a value that does not exist.
    """

    def __init__(
        self,
        params: ForestHParams,
        tree_configs: None = None,
        tree_stats: None = None,
        device_assigner: Any = None,
        variables: ForestVariables | None = None,
        tree_variables_class: None = None,
        tree_graphs: None = None,
        training: bool = True,
    ) -> None:
        given = {"tree_configs": tree_configs, "tree_stats": tree_stats, "tree_graphs": tree_graphs}
        for name, value in {**given, "tree_variables_class": tree_variables_class}.items():
            if value is not None:
                raise ValueError(f"RandomForestGraphs: {name} is {value!r}, expected None")
        self.params = params
        self.device_assigner = device_assigner
        self.variables = variables or ForestVariables(params, device_assigner, training)
        logging.info("a forest with %s", params.values())

    @property
    def _forest(self) -> Tensor:
        return self.variables.handle

    def get_all_resource_handles(self) -> list[Tensor]:
        """The handles of resources: that of the trees."""
        return [self._forest]

    def training_graph(
        self,
        input_data: Any,
        input_labels: Any,
        num_trainers: int = 1,
        trainer_id: int = 0,
        input_weights: TensorLike | None = None,
    ) -> Operation:
        """An operation that takes a batch of examples in.

        Args:
            input_data: The features, numbers of shape ``[batch, features]``, dense or sparse, or a dictionary of such,
                or of ``[batch]``, which stand beside each other in the order of their names.
            input_labels: Classes, shape ``[batch]`` or ``[batch, 1]``, or values, ``[batch, num_classes]``; or a
                dictionary of values.
            num_trainers: Among how many operations the trees are shared out.
            trainer_id: The number of this one.
            input_weights: Weights of the examples, shape ``[batch]``.

        Raises:
            TypeError: Features are strings.
            InvalidArgumentError: While running: a class does not exist, or shapes do not fit.
        """
        params = self.params
        share = params.num_trees / num_trainers
        weights: Any = [] if input_weights is None else array_ops.cast(convert_to_tensor(input_weights), dtypes.float32)
        chosen = np.array(params.bagged_features or np.empty((params.num_trees, 0)), np.int64)
        trained = forest_ops.train_forest(
            self._forest,
            _columns(input_data),
            _columns(input_labels),
            array_ops.reshape(weights, [-1]),
            chosen,
            int(trainer_id * share),
            int((trainer_id + 1) * share),
        )
        return group(trained, name="train")

    def inference_graph(self, input_data: Any) -> tuple[Tensor, Tensor, Tensor]:
        """What the forest says of examples.

        Args:
            input_data: The features, as for `training_graph`.

        Returns:
            The probabilities of classes, or values, float32 of shape ``[batch, num_classes]``; the ways through the
            trees, strings of shape ``[batch, trees]`` with numbers of nodes and commas between them (in TensorFlow,
            messages), or of shape ``[0, trees]`` without ``inference_tree_paths``; and the variance over the trees, of
            the shape of the probabilities. All are zeros before the first batch is taken in.

        Raises:
            TypeError: Features are strings.
            InvalidArgumentError: While running: the forest was trained with another number of features.
        """
        mean, variance, paths = forest_ops.forest_predictions(
            self._forest, _columns(input_data), self.params.inference_tree_paths, name="probabilities"
        )
        return mean, paths, variance

    def average_size(self) -> Tensor:
        """The mean number of nodes of the trees, a float32 scalar."""
        return math_ops.reduce_mean(array_ops.cast(forest_ops.forest_sizes(self._forest), dtypes.float32))

    def training_loss(self, features: Any, labels: Any, name: str = "training_loss") -> Tensor:
        """What TensorFlow calls the loss: the mean number of nodes of the trees, negative; a float32 scalar.

        Args:
            features: Not looked at.
            labels: Not looked at.
            name: Name of the operation.
        """
        return math_ops.negative(self.average_size(), name=name)

    def validation_loss(self, features: Any, labels: Any) -> Tensor:
        """The same as `training_loss`."""
        return math_ops.negative(self.average_size())

    def feature_importances(self) -> Tensor:
        """Which part of the nodes tests each feature, float64 of shape ``[num_features]``; NaN without such nodes."""
        counts = forest_ops.forest_feature_counts(self._forest)
        return math_ops.truediv(counts, math_ops.reduce_sum(counts))


def _columns(data: Any) -> Tensor:
    """Features, or labels, as float32."""
    if isinstance(data, Mapping):
        parts = [_columns(data[name]) for name in sorted(data)]
        return array_ops.concat([array_ops.expand_dims(each, 1) if each.shape.rank == 1 else each for each in parts], 1)
    tensor = sparse_tensor_to_dense(data) if isinstance(data, SparseTensor) else convert_to_tensor(data)
    if tensor.dtype is dtypes.string:
        raise TypeError(f"a forest compares numbers: {tensor!r} has strings; give their numbers, by a feature column")
    return array_ops.cast(tensor, dtypes.float32)
