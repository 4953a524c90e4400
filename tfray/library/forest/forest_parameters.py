"""`ForestHParams`: what a random forest is like, and how it learns."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any, Final

from tfray.framework.graph import get_default_graph
from tfray.library.platform import logging

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "model_name": ("all_dense", "all_sparse", "sparse_then_dense"),
    "split_finish_name": ("basic", "hoeffding", "bootstrap"),
    "split_pruning_name": ("none", "half", "quarter", "10_percent", "hoeffding"),
    "split_name": ("less_or_equal", "less"),
}


class ForestHParams:
    """What a random forest is like, and how it learns.

    Every argument is an attribute of that name. `fill` sets those that are not given.

    Args:
        num_trees: Number of trees.
        max_nodes: A tree with so many nodes, or more, grows no further.
        bagging_fraction: Probability with which a tree takes an example in.
        num_splits_to_consider: Number of splits that a leaf chooses from; when 0, the square root of `num_features`,
            but at least 10 and at most 1000.
        feature_bagging_fraction: Which part of the features a tree may use.
        max_fertile_nodes: Accepted for older programs, as is the next but one.
        split_after_samples: Weight of the examples that a leaf counts before it is split.
        valid_leaf_threshold: Accepted for older programs.
        dominate_method: Accepted: leaves are split after `split_after_samples`, and keep all candidates until then. So
            are the other arguments by which TensorFlow decides earlier.
        dominate_fraction: See `dominate_method`.
        model_name: Accepted: how TensorFlow stores counts, ``"all_dense"``, ``"all_sparse"`` or
            ``"sparse_then_dense"``.
        split_finish_name: See `dominate_method`: ``"basic"``, ``"hoeffding"`` or ``"bootstrap"``.
        split_pruning_name: See `dominate_method`: ``"none"``, ``"half"``, ``"quarter"``, ``"10_percent"`` or
            ``"hoeffding"``.
        prune_every_samples: See `dominate_method`.
        early_finish_check_every_samples: See `dominate_method`.
        collate_examples: Accepted: the examples of a leaf are always taken in together.
        checkpoint_stats: Accepted: checkpoints always have what leaves have counted.
        use_running_stats_method: Accepted.
        initialize_average_splits: Accepted.
        inference_tree_paths: Whether `RandomForestGraphs.inference_graph` tells the ways through the trees.
        param_file: Must be None.
        split_name: Whether an example goes to the left at a threshold, ``"less_or_equal"``, or below it, ``"less"``.
        **kwargs: ``num_classes``, the number of classes, or of values to predict, and ``num_features``, which both are
            needed; ``regression``, whether values are predicted; ``base_random_seed``, the seed of all choices, 0 for
            that of the graph, or none.
    """

    num_classes: int
    num_features: int
    regression: bool
    base_random_seed: int

    def __init__(
        self,
        num_trees: int = 100,
        max_nodes: int = 10000,
        bagging_fraction: float = 1.0,
        num_splits_to_consider: int = 0,
        feature_bagging_fraction: float = 1.0,
        max_fertile_nodes: int = 0,
        split_after_samples: Any = 250,
        valid_leaf_threshold: int = 1,
        dominate_method: str = "bootstrap",
        dominate_fraction: float = 0.99,
        model_name: str = "all_dense",
        split_finish_name: str = "basic",
        split_pruning_name: str = "none",
        prune_every_samples: Any = 0,
        early_finish_check_every_samples: Any = 0,
        collate_examples: bool = False,
        checkpoint_stats: bool = False,
        use_running_stats_method: bool = False,
        initialize_average_splits: bool = False,
        inference_tree_paths: bool = False,
        param_file: str | None = None,
        split_name: str = "less_or_equal",
        **kwargs: Any,
    ) -> None:
        self.num_trees = num_trees
        self.max_nodes = max_nodes
        self.bagging_fraction = bagging_fraction
        self.num_splits_to_consider = num_splits_to_consider
        self.feature_bagging_fraction = feature_bagging_fraction
        self.max_fertile_nodes = max_fertile_nodes
        self.split_after_samples = split_after_samples
        self.valid_leaf_threshold = valid_leaf_threshold
        self.dominate_method = dominate_method
        self.dominate_fraction = dominate_fraction
        self.model_name = model_name
        self.split_finish_name = split_finish_name
        self.split_pruning_name = split_pruning_name
        self.prune_every_samples = prune_every_samples
        self.early_finish_check_every_samples = early_finish_check_every_samples
        self.collate_examples = collate_examples
        self.checkpoint_stats = checkpoint_stats
        self.use_running_stats_method = use_running_stats_method
        self.initialize_average_splits = initialize_average_splits
        self.inference_tree_paths = inference_tree_paths
        self.param_file = param_file
        self.split_name = split_name
        for name, value in kwargs.items():
            setattr(self, name, value)

    def values(self) -> dict[str, Any]:
        """The parameters by name."""
        return self.__dict__

    def fill(self) -> ForestHParams:
        """Set what is not given. Returns the parameters.

        Raises:
            AttributeError: ``num_classes`` or ``num_features`` is missing.
            ValueError: A parameter has a value that does not exist.
        """
        for name in ("num_classes", "num_features"):
            if not hasattr(self, name):
                raise AttributeError(f"ForestHParams needs {name}", name=name, obj=self)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(choices)}")
        if self.param_file is not None:
            raise ValueError("param_file: parameters are not read from files here")
        self.split_after_samples = _number(self.split_after_samples)
        if self.split_finish_name != "basic" or self.split_pruning_name != "none":
            logging.warning("a leaf keeps all candidates until it is split, after %s samples", self.split_after_samples)
        self.regression = getattr(self, "regression", False)
        self.base_random_seed = getattr(self, "base_random_seed", 0)
        self.num_outputs = self.num_classes if self.regression else 1
        self.num_output_columns = self.num_classes + 1
        self.num_splits_to_consider = _number(self.num_splits_to_consider) or min(
            max(10, math.floor(math.sqrt(self.num_features))), 1000
        )
        self.bagged_num_features = int(self.feature_bagging_fraction * self.num_features)
        self.bagged_features = self._bagged() if self.feature_bagging_fraction < 1 else None
        return self

    def _bagged(self) -> list[list[int]]:
        """The features of each tree."""
        draw = random.Random(self.base_random_seed or get_default_graph().seed)
        return [draw.sample(range(self.num_features), self.bagged_num_features) for _ in range(self.num_trees)]


def _number(value: Any) -> Any:
    """A parameter as a number. TensorFlow also takes messages in text, which make it depend on the depth."""
    if not isinstance(value, str):
        return value
    if not value.isdigit():
        raise ValueError(f"{value!r} is no number: parameters do not depend on the depth of a leaf here")
    return int(value)
