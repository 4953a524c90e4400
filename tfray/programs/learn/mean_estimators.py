"""Estimators that learn but the mean of the labels: those of ``tf.contrib.learn.python.learn.estimators.debug``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.estimator import baseline
from tfray.library.layers.losses import Reduction
from tfray.programs.learn.estimators import Classifying, Regressing

__all__ = ["DebugClassifier", "DebugRegressor"]


class DebugClassifier(Classifying):
    """A classifier that learns how frequent the classes are.

    Args:
        model_dir: Folder of the checkpoints.
        n_classes: Number of classes.
        weight_column_name: Name of the feature with the weights of the examples.
        config: Its configuration.
        feature_engineering_fn: Must be None: features do not count.
        label_keys: The words, if labels are words.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        config: Any = None,
        feature_engineering_fn: None = None,
        label_keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(
            baseline.BaselineClassifier(
                model_dir,
                n_classes,
                weight_column_name,
                label_keys,
                config=config,
                loss_reduction=Reduction.SUM_OVER_BATCH_SIZE,
            )
        )
        self._label_keys = label_keys


class DebugRegressor(Regressing):
    """A regressor that learns the mean of the labels.

    Args:
        model_dir: Folder of the checkpoints.
        label_dimension: Number of numbers of a label.
        weight_column_name: Name of the feature with the weights of the examples.
        config: Its configuration.
        feature_engineering_fn: Must be None: features do not count.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column_name: str | None = None,
        config: Any = None,
        feature_engineering_fn: None = None,
    ) -> None:
        super().__init__(
            baseline.BaselineRegressor(
                model_dir,
                label_dimension,
                weight_column_name,
                config=config,
                loss_reduction=Reduction.SUM_OVER_BATCH_SIZE,
            )
        )
