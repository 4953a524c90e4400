"""``tf.estimator``: models as functions with a folder, which train, evaluate, predict and export.

A name loads its module when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from tfray.lazy_modules import LazyPackage

if TYPE_CHECKING:
    from tfray.estimator import experimental, export, inputs, tpu
    from tfray.estimator.baseline import BaselineClassifier, BaselineEstimator, BaselineRegressor
    from tfray.estimator.classification_heads import BinaryClassHead, MultiClassHead, MultiLabelHead
    from tfray.estimator.dnn import DNNClassifier, DNNEstimator, DNNRegressor
    from tfray.estimator.dnn_linear_combined import (
        DNNLinearCombinedClassifier,
        DNNLinearCombinedEstimator,
        DNNLinearCombinedRegressor,
    )
    from tfray.estimator.estimator import Estimator
    from tfray.estimator.exporters import BestExporter, Exporter, FinalExporter, LatestExporter
    from tfray.estimator.extenders import add_metrics
    from tfray.estimator.heads import Head
    from tfray.estimator.linear import LinearClassifier, LinearEstimator, LinearRegressor
    from tfray.estimator.multi_head import MultiHead
    from tfray.estimator.parse_specs import classifier_parse_example_spec, regressor_parse_example_spec
    from tfray.estimator.regression_heads import LogisticRegressionHead, PoissonRegressionHead, RegressionHead
    from tfray.estimator.run_config import RunConfig
    from tfray.estimator.spec import EstimatorSpec, ModeKeys
    from tfray.estimator.train_evaluate import EvalSpec, TrainSpec, train_and_evaluate
    from tfray.estimator.warm_start import WarmStartSettings
    from tfray.training.checkpoints.warm_start import VocabInfo
    from tfray.training.sessions.hooks import (
        FeedFnHook,
        FinalOpsHook,
        GlobalStepWaiterHook,
        LoggingTensorHook,
        NanLossDuringTrainingError,
        NanTensorHook,
        SecondOrStepTimer,
        StepCounterHook,
        StopAtStepHook,
    )
    from tfray.training.sessions.hooks_saving import (
        CheckpointSaverHook,
        CheckpointSaverListener,
        ProfilerHook,
        SummarySaverHook,
    )
    from tfray.training.sessions.session_run_hook import (
        SessionRunArgs,
        SessionRunContext,
        SessionRunHook,
        SessionRunValues,
    )

# fmt: off
__all__ = [
    "BaselineClassifier", "BaselineEstimator", "BaselineRegressor", "BestExporter", "BinaryClassHead",
    "CheckpointSaverHook", "CheckpointSaverListener", "DNNClassifier", "DNNEstimator", "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator", "DNNLinearCombinedRegressor", "DNNRegressor", "Estimator", "EstimatorSpec",
    "EvalSpec", "Exporter", "FeedFnHook", "FinalExporter", "FinalOpsHook", "GlobalStepWaiterHook", "Head",
    "LatestExporter", "LinearClassifier", "LinearEstimator", "LinearRegressor", "LoggingTensorHook",
    "LogisticRegressionHead", "ModeKeys", "MultiClassHead", "MultiHead", "MultiLabelHead", "NanLossDuringTrainingError",
    "NanTensorHook", "PoissonRegressionHead", "ProfilerHook", "RegressionHead", "RunConfig", "SecondOrStepTimer",
    "SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues", "StepCounterHook", "StopAtStepHook",
    "SummarySaverHook", "TrainSpec", "VocabInfo", "WarmStartSettings", "add_metrics", "classifier_parse_example_spec",
    "experimental", "export", "inputs", "regressor_parse_example_spec", "tpu", "train_and_evaluate",
]
# fmt: on

_MODULES: Final = {
    "tfray.estimator.baseline": ["BaselineClassifier", "BaselineEstimator", "BaselineRegressor"],
    "tfray.estimator.classification_heads": ["BinaryClassHead", "MultiClassHead", "MultiLabelHead"],
    "tfray.estimator.dnn": ["DNNClassifier", "DNNEstimator", "DNNRegressor"],
    "tfray.estimator.dnn_linear_combined": [
        "DNNLinearCombinedClassifier",
        "DNNLinearCombinedEstimator",
        "DNNLinearCombinedRegressor",
    ],
    "tfray.estimator.estimator": ["Estimator"],
    "tfray.estimator.exporters": ["BestExporter", "Exporter", "FinalExporter", "LatestExporter"],
    "tfray.estimator.extenders": ["add_metrics"],
    "tfray.estimator.heads": ["Head"],
    "tfray.estimator.linear": ["LinearClassifier", "LinearEstimator", "LinearRegressor"],
    "tfray.estimator.multi_head": ["MultiHead"],
    "tfray.estimator.parse_specs": ["classifier_parse_example_spec", "regressor_parse_example_spec"],
    "tfray.estimator.regression_heads": ["LogisticRegressionHead", "PoissonRegressionHead", "RegressionHead"],
    "tfray.estimator.run_config": ["RunConfig"],
    "tfray.estimator.spec": ["EstimatorSpec", "ModeKeys"],
    "tfray.estimator.train_evaluate": ["EvalSpec", "TrainSpec", "train_and_evaluate"],
    "tfray.estimator.warm_start": ["WarmStartSettings"],
    "tfray.training.checkpoints.warm_start": ["VocabInfo"],
    "tfray.training.sessions.hooks": [
        "FeedFnHook",
        "FinalOpsHook",
        "GlobalStepWaiterHook",
        "LoggingTensorHook",
        "NanLossDuringTrainingError",
        "NanTensorHook",
        "SecondOrStepTimer",
        "StepCounterHook",
        "StopAtStepHook",
    ],
    "tfray.training.sessions.hooks_saving": [
        "CheckpointSaverHook",
        "CheckpointSaverListener",
        "ProfilerHook",
        "SummarySaverHook",
    ],
    "tfray.training.sessions.session_run_hook": [
        "SessionRunArgs",
        "SessionRunContext",
        "SessionRunHook",
        "SessionRunValues",
    ],
}
"""The names of the package itself, by the modules that have them."""

_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names}

NOT_WANTED: Final = {
    "BoostedTreesClassifier": "tf.estimator.DNNClassifier",
    "BoostedTreesEstimator": "tf.estimator.DNNEstimator",
    "BoostedTreesRegressor": "tf.estimator.DNNRegressor",
}
"""Names of TensorFlow 1 that do not exist here, and what to use instead."""

if not TYPE_CHECKING:  # to type checkers, a name that is not listed does not exist

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        message = f"tf.estimator.{name} does not exist in tfray"
        if name in NOT_WANTED:
            raise AttributeError(f"{message}: use {NOT_WANTED[name]} instead")
        raise AttributeError(f"{message}; there are {', '.join(__all__)}")


sys.modules[__name__].__class__ = LazyPackage
