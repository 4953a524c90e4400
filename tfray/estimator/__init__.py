"""``tf.estimator``: models as functions with a folder, which train, evaluate, predict and export.

A name loads its module when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from tfray.lazy_modules import LazyPackage

if TYPE_CHECKING:
    from tfray.estimator import export, inputs
    from tfray.estimator.estimator import Estimator
    from tfray.estimator.exporters import BestExporter, Exporter, FinalExporter, LatestExporter
    from tfray.estimator.run_config import RunConfig
    from tfray.estimator.spec import EstimatorSpec, ModeKeys
    from tfray.estimator.train_evaluate import EvalSpec, TrainSpec, train_and_evaluate
    from tfray.estimator.warm_start import VocabInfo, WarmStartSettings

# fmt: off
__all__ = [
    "BestExporter", "Estimator", "EstimatorSpec", "EvalSpec", "Exporter", "FinalExporter", "LatestExporter", "ModeKeys",
    "RunConfig", "TrainSpec", "VocabInfo", "WarmStartSettings", "export", "inputs", "train_and_evaluate",
]
# fmt: on

_MODULES: Final = {
    "estimator": ["Estimator"],
    "exporters": ["BestExporter", "Exporter", "FinalExporter", "LatestExporter"],
    "run_config": ["RunConfig"],
    "spec": ["EstimatorSpec", "ModeKeys"],
    "train_evaluate": ["EvalSpec", "TrainSpec", "train_and_evaluate"],
    "warm_start": ["VocabInfo", "WarmStartSettings"],
}
"""The names of the package itself, by the modules that have them."""

_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names}

NOT_WANTED: Final = {
    "BoostedTreesClassifier": "tf.estimator.DNNClassifier",
    "BoostedTreesEstimator": "tf.estimator.DNNEstimator",
    "BoostedTreesRegressor": "tf.estimator.DNNRegressor",
    "tpu": "tf.estimator.Estimator, with RunConfig(trainer=tf.train.ScalingConfig(...)) for replicas",
}
"""Names of TensorFlow 1 that do not exist here, and what to use instead."""

if not TYPE_CHECKING:  # to type checkers, a name that is not listed does not exist

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        message = f"tf.estimator.{name} does not exist in tfray"
        if name in NOT_WANTED:
            raise AttributeError(f"{message}: use {NOT_WANTED[name]} instead")
        raise AttributeError(f"{message}; there are {', '.join(__all__)}")


sys.modules[__name__].__class__ = LazyPackage
