"""``tf.contrib``: the most used parts of TensorFlow 1's contributed modules, under their old names.

A module loads when it is first used. A module that does not exist here raises an error that says what to use instead.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from tfray.absent_names import absent
from tfray.lazy_modules import LazyPackage, load, publish

if TYPE_CHECKING:
    from tfray.contrib import (
        crf,
        cudnn_rnn,
        data,
        deprecated,
        distributions,
        estimator,
        factorization,
        feature_column,
        framework,
        gan,
        graph_editor,
        image,
        layers,
        learn,
        legacy_seq2seq,
        lookup,
        losses,
        metrics,
        model_pruning,
        nn,
        opt,
        quantize,
        rnn,
        seq2seq,
        session_bundle,
        slim,
        sparsemax,
        staging,
        tensor_forest,
        tensorboard,
        tpu,
        training,
        util,
    )
    from tfray.contrib.aliases import (
        bayesflow,
        checkpoint,
        compiler,
        distribute,
        grid_rnn,
        hooks,
        input_pipeline,
        integrate,
        memory_stats,
        mixed_precision,
        periodic_resample,
        quantization,
        rate,
        receptive_field,
        resampler,
        saved_model,
        solvers,
        stateless,
        tfprof,
    )

# fmt: off
__all__ = [
    "bayesflow", "checkpoint", "compiler", "crf", "cudnn_rnn", "data", "deprecated", "distribute", "distributions",
    "estimator", "factorization", "feature_column", "framework", "gan", "graph_editor", "grid_rnn", "hooks", "image",
    "input_pipeline", "integrate", "layers", "learn", "legacy_seq2seq", "lookup", "losses", "memory_stats", "metrics",
    "mixed_precision", "model_pruning", "nn", "opt", "periodic_resample", "quantization", "quantize", "rate",
    "receptive_field", "resampler", "rnn", "saved_model", "seq2seq", "session_bundle", "slim", "solvers",
    "sparsemax", "staging", "stateless", "tensor_forest", "tensorboard", "tfprof", "tpu", "training", "util",
]
# fmt: on

ALIASES: Final = ("keras", "signal")
"""Modules of TensorFlow 1 that are those of this name in `tf`."""

_SMALL: Final = (
    "bayesflow",
    "checkpoint",
    "compiler",
    "distribute",
    "grid_rnn",
    "hooks",
    "input_pipeline",
    "integrate",
    "memory_stats",
    "mixed_precision",
    "periodic_resample",
    "quantization",
    "rate",
    "receptive_field",
    "resampler",
    "saved_model",
    "solvers",
    "stateless",
    "tfprof",
)

ELSEWHERE: Final = {
    **{name: f"tfray.contrib.aliases.{name}" for name in _SMALL},
    "copy_graph": "tfray.programs.copy_graph",
    "kernel_methods": "tfray.programs.kernel_methods",
    "predictor": "tfray.programs.predictor",
    "summary": "tfray.training.sessions.step_summaries",
}
"""Modules that lie elsewhere."""

REPLACEMENTS: Final = {
    "tensorrt": "plain sessions",
}
"""Modules of TensorFlow 1 that do not exist here, and what to use instead."""


if not TYPE_CHECKING:  # to type checkers, a name that is not listed does not exist

    def __getattr__(name: str) -> Any:
        if name in ALIASES:
            return load("tfray", name)
        if name in ELSEWHERE:
            module = importlib.import_module(ELSEWHERE[name])
            publish(module, f"contrib.{name}")
            globals()[name] = module
            return module
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        if name in REPLACEMENTS:
            raise AttributeError(f"tf.contrib.{name} does not exist in tfray: use {REPLACEMENTS[name]} instead")
        raise absent(f"contrib.{name}", __all__)


sys.modules[__name__].__class__ = LazyPackage
