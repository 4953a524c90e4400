"""``tf.contrib.learn``: estimators that take arrays, experiments, data sets, texts as word numbers."""

from __future__ import annotations

from typing import Any

from tfray.absent_names import absent
from tfray.contrib.aliases import learn_io as io
from tfray.contrib.aliases import learn_models as models
from tfray.contrib.aliases import learn_utils as utils
from tfray.contrib.aliases.learn_io import extract_pandas_data, extract_pandas_labels, extract_pandas_matrix
from tfray.library.input import vocabulary as preprocessing
from tfray.programs.learn import experiment as learn_runner
from tfray.programs.learn import experiment as monitors
from tfray.programs.learn import graph_actions, ops
from tfray.programs.learn import learn_heads as head
from tfray.programs.learn import small_datasets as datasets
from tfray.programs.learn.cluster_config import RunConfig, TaskType
from tfray.programs.learn.estimators import (
    DNNClassifier,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    Estimator,
    LinearClassifier,
    LinearRegressor,
    SKCompat,
    infer_real_valued_columns_from_input,
    infer_real_valued_columns_from_input_fn,
)
from tfray.programs.learn.estimators import Learner as BaseEstimator
from tfray.programs.learn.experiment import Experiment, ExportStrategy, make_export_strategy
from tfray.programs.learn.graph_actions import evaluate, infer, run_feeds, run_n, train
from tfray.programs.learn.head_estimators import (
    DNNEstimator,
    DNNLinearCombinedEstimator,
    LinearEstimator,
    LogisticRegressor,
)
from tfray.programs.learn.interfaces import Evaluable, Trainable
from tfray.programs.learn.learn_heads import (
    Head,
    binary_svm_head,
    multi_class_head,
    multi_head,
    multi_label_head,
    no_op_train_fn,
    poisson_regression_head,
    regression_head,
)
from tfray.programs.learn.learn_keys import ModeKeys, PredictionKey, ProblemType
from tfray.programs.learn.metrics import MetricSpec
from tfray.programs.learn.model_fn_ops import ModelFnOps
from tfray.programs.learn.models import DynamicRnnEstimator, KMeansClustering
from tfray.programs.learn.scores import NotFittedError
from tfray.programs.learn.served_inputs import InputFnOps, build_parsing_serving_input_fn
from tfray.training.input.record_batches import (
    read_batch_examples,
    read_batch_features,
    read_batch_record_features,
    read_keyed_batch_examples,
    read_keyed_batch_examples_shared_queue,
    read_keyed_batch_features,
    read_keyed_batch_features_shared_queue,
)
from tfray.training.sessions.hooks import NanLossDuringTrainingError

# fmt: off
__all__ = [
    "BaseEstimator", "DNNClassifier", "DNNEstimator", "DNNLinearCombinedClassifier", "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor", "DNNRegressor", "DynamicRnnEstimator", "Estimator", "Evaluable", "Experiment",
    "ExportStrategy", "Head", "InputFnOps", "KMeansClustering", "LinearClassifier", "LinearEstimator",
    "LinearRegressor", "LogisticRegressor", "MetricSpec", "ModeKeys", "ModelFnOps", "NanLossDuringTrainingError",
    "NotFittedError", "PredictionKey", "ProblemType", "RunConfig", "SKCompat", "TaskType", "Trainable",
    "binary_svm_head", "build_parsing_serving_input_fn", "datasets", "evaluate", "extract_pandas_data",
    "extract_pandas_labels", "extract_pandas_matrix", "graph_actions", "head", "infer",
    "infer_real_valued_columns_from_input", "infer_real_valued_columns_from_input_fn", "io", "learn_runner",
    "make_export_strategy", "models", "monitors", "multi_class_head", "multi_head", "multi_label_head",
    "no_op_train_fn", "ops", "poisson_regression_head", "preprocessing", "read_batch_examples", "read_batch_features",
    "read_batch_record_features", "read_keyed_batch_examples", "read_keyed_batch_examples_shared_queue",
    "read_keyed_batch_features", "read_keyed_batch_features_shared_queue", "regression_head", "run_feeds", "run_n",
    "train", "utils",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"tf.contrib.learn has no {name}")
    raise AttributeError(f"{absent(f'contrib.learn.{name}', __all__)}; models are tf.estimator's, or tf.keras's")
