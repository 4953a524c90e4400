"""``tf.contrib``: what programs use most of TensorFlow 1's contributed modules, as names of the library.

Modules load when they are first used. Names that are not there say what to use instead.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Any, Final

from tfray.framework.call_errors import ExplainedPackage

REPLACEMENTS: Final = {
    "cudnn_rnn": "tf.nn.rnn_cell.LSTMCell with tf.nn.dynamic_rnn",
    "distribute": "tf.train.replica_device_setter, or tfray.train.Trainer",
    "eager": "tf.Session: operations run when a session runs them",
    "keras": "tf.keras",
    "predictor": "tf.Session and tf.train.Saver",
    "quantize": "tf.quantization",
    "saved_model": "tf.saved_model",
    "summary": "tf.summary",
    "tensorboard": "tf.summary",
    "tensorrt": "plain sessions",
    "tpu": "devices of a tfray cluster",
}
"""Modules that are not there, and what does their work."""


def __getattr__(name: str) -> Any:
    if name in _modules():
        return importlib.import_module(f"{__name__}.{name}")
    message = f"tf.contrib.{name} does not exist in tfray"
    if name in REPLACEMENTS:
        message += f": use {REPLACEMENTS[name]} instead"
    else:
        message += f"; there are {', '.join(sorted(_modules()))}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted(_modules())


def _modules() -> set[str]:
    return {info.name for info in pkgutil.iter_modules(__path__)}


sys.modules[__name__].__class__ = ExplainedPackage
