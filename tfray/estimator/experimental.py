"""The names of ``tf.estimator.experimental``: early stopping, parts of canned models, and graphs for training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.estimator.canned_models.kmeans import KMeans
from tfray.estimator.dnn import dnn_logit_fn_builder
from tfray.estimator.hooks import InMemoryEvaluatorHook, make_stop_at_checkpoint_step_hook
from tfray.estimator.input_functions import parameters_of
from tfray.estimator.linear import linear_logit_fn_builder
from tfray.estimator.receivers import build_raw_supervised_input_receiver_fn
from tfray.framework.graph import Tensor
from tfray.training.sessions.hooks_stopping import (
    make_early_stopping_hook,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)

# fmt: off
__all__ = [
    "InMemoryEvaluatorHook", "KMeans", "build_raw_supervised_input_receiver_fn", "call_logit_fn",
    "dnn_logit_fn_builder", "linear_logit_fn_builder", "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook", "stop_if_higher_hook", "stop_if_lower_hook", "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]
# fmt: on


def call_logit_fn(logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any) -> Any:
    """Call a function for logits with `features` and those of `mode`, `params` and `config` that it takes.

    Raises:
        ValueError: It returns neither a tensor nor a dictionary of tensors.
    """
    names = parameters_of(logit_fn)
    given = {"mode": mode, "params": params, "config": config}
    found = logit_fn(features=features, **{name: value for name, value in given.items() if name in names})
    if not all(isinstance(each, Tensor) for each in (found.values() if isinstance(found, dict) else [found])):
        raise ValueError(
            f"logit_fn should return a Tensor or a dictionary mapping strings to Tensors.  logit_fn returned: {found!r}"
        )
    return found
