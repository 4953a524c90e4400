"""``tf.contrib``: the most used parts of TensorFlow 1's contributed modules, under their old names.

A module loads when it is first used. A module that does not exist here raises an error that says what to use instead.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from tfray.lazy_modules import LazyPackage

if TYPE_CHECKING:
    from tfray.contrib import (
        crf,
        data,
        deprecated,
        distributions,
        estimator,
        framework,
        layers,
        learn,
        legacy_seq2seq,
        lookup,
        losses,
        metrics,
        opt,
        rnn,
        seq2seq,
        slim,
        staging,
        training,
        util,
    )

# fmt: off
__all__ = [
    "crf", "data", "deprecated", "distributions", "estimator", "framework", "layers", "learn", "legacy_seq2seq",
    "lookup", "losses", "metrics", "opt", "rnn", "seq2seq", "slim", "staging", "training", "util",
]
# fmt: on

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
"""Modules of TensorFlow 1 that do not exist here, and what to use instead."""


if not TYPE_CHECKING:  # to type checkers, a name that is not listed does not exist

    def __getattr__(name: str) -> Any:
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        message = f"tf.contrib.{name} does not exist in tfray"
        if name in REPLACEMENTS:
            message += f": use {REPLACEMENTS[name]} instead"
        else:
            message += f"; there are {', '.join(__all__)}"
        raise AttributeError(message)


sys.modules[__name__].__class__ = LazyPackage
