"""The names of ``tf.contrib.estimator``: heads, hooks, and estimators made from estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.estimator.canned_models.rnn import RNNClassifier, RNNEstimator
from tfray.estimator.canned_models.saved_model_estimator import SavedModelEstimator
from tfray.estimator.classification_heads import BinaryClassHead, MultiClassHead, MultiLabelHead
from tfray.estimator.dnn import DNNEstimator
from tfray.estimator.dnn_linear_combined import DNNLinearCombinedEstimator
from tfray.estimator.estimator import Estimator
from tfray.estimator.experimental import (
    InMemoryEvaluatorHook,
    build_raw_supervised_input_receiver_fn,
    call_logit_fn,
    dnn_logit_fn_builder,
    linear_logit_fn_builder,
    make_stop_at_checkpoint_step_hook,
)
from tfray.estimator.extenders import add_metrics, clip_gradients_by_norm, forward_features
from tfray.estimator.heads import BaseHead
from tfray.estimator.linear import LinearEstimator
from tfray.estimator.multi_head import MultiHead
from tfray.estimator.receivers import build_supervised_input_receiver_fn_from_input_fn
from tfray.estimator.regression_heads import LogisticRegressionHead, PoissonRegressionHead, RegressionHead
from tfray.estimator.replication.towers import TowerOptimizer, replicate_model_fn
from tfray.formats.files import PathLike
from tfray.library.layers.losses import Reduction
from tfray.training.sessions.hooks_stopping import (
    make_early_stopping_hook,
    read_eval_metrics,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)

# fmt: off
__all__ = [
    "DNNEstimator", "DNNLinearCombinedEstimator", "InMemoryEvaluatorHook", "LinearEstimator", "RNNClassifier",
    "RNNEstimator", "SavedModelEstimator", "TowerOptimizer", "add_metrics", "binary_classification_head",
    "build_raw_supervised_input_receiver_fn", "build_supervised_input_receiver_fn_from_input_fn", "call_logit_fn",
    "clip_gradients_by_norm", "dnn_logit_fn_builder", "export_all_saved_models", "export_saved_model_for_mode",
    "forward_features", "linear_logit_fn_builder", "logistic_regression_head", "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook", "multi_class_head", "multi_head", "multi_label_head",
    "poisson_regression_head", "read_eval_metrics", "regression_head", "replicate_model_fn", "stop_if_higher_hook",
    "stop_if_lower_hook", "stop_if_no_decrease_hook", "stop_if_no_increase_hook",
]
# fmt: on


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[Any] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> BaseHead:
    """The head of a classifier of two classes; see `tf.estimator.BinaryClassHead`."""
    return BinaryClassHead.canned(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Sequence[Any] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> BaseHead:
    """The head of a classifier of several classes; see `tf.estimator.MultiClassHead`."""
    return MultiClassHead.canned(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[Any] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    classes_for_class_based_metrics: Sequence[Any] | None = None,
    name: str | None = None,
) -> BaseHead:
    """The head of a classifier whose classes do not exclude each other; see `tf.estimator.MultiLabelHead`."""
    return MultiLabelHead.canned(
        n_classes,
        weight_column,
        thresholds,
        label_vocabulary,
        loss_reduction,
        loss_fn,
        classes_for_class_based_metrics,
        name,
    )


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    inverse_link_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> BaseHead:
    """The head of a regression; see `tf.estimator.RegressionHead`."""
    return RegressionHead(label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> BaseHead:
    """The head of a regression of counts; see `tf.estimator.PoissonRegressionHead`."""
    return PoissonRegressionHead(label_dimension, weight_column, loss_reduction, compute_full_loss, name)


def logistic_regression_head(
    weight_column: Any = None, loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE, name: str | None = None
) -> BaseHead:
    """The head of a regression of probabilities; see `tf.estimator.LogisticRegressionHead`."""
    return LogisticRegressionHead(weight_column, loss_reduction, name)


def multi_head(heads: Sequence[BaseHead], head_weights: Sequence[float] | None = None) -> BaseHead:
    """Several heads on one model; see `tf.estimator.MultiHead`."""
    return MultiHead(heads, head_weights)


def export_saved_model_for_mode(
    estimator: Estimator,
    export_dir_base: PathLike,
    input_receiver_fn: Callable[[], Any],
    assets_extra: Mapping[str, PathLike] | None = None,
    as_text: bool = False,
    checkpoint_path: PathLike | None = None,
    mode: str = "infer",
) -> bytes:
    """Write the graph of one mode; see `tf.estimator.Estimator.experimental_export_all_saved_models`."""
    return estimator.experimental_export_all_saved_models(
        export_dir_base, {mode: input_receiver_fn}, assets_extra, as_text, checkpoint_path
    )


def export_all_saved_models(
    estimator: Estimator,
    export_dir_base: PathLike,
    input_receiver_fn_map: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, PathLike] | None = None,
    as_text: bool = False,
    checkpoint_path: PathLike | None = None,
) -> bytes:
    """Write the graphs of several modes; see `tf.estimator.Estimator.experimental_export_all_saved_models`."""
    return estimator.experimental_export_all_saved_models(
        export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
    )
