"""Estimators from estimators: with further metrics, with features among their predictions; clipped gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.estimator.estimator import Estimator
from tfray.estimator.export_outputs import PredictOutput
from tfray.estimator.input_functions import parameters_of
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.framework.convert import convert_to_tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.variables.clip import clip_by_global_norm
from tfray.ops.sparse import sparse_ops
from tfray.training.optimizers.optimizer import Optimizer

_METRIC_ARGUMENTS = frozenset({"features", "labels", "predictions", "config", "self"})


def _derived(estimator: Estimator, model_fn: Callable[..., EstimatorSpec]) -> Estimator:
    return Estimator(model_fn, estimator.model_dir, estimator.config, warm_start_from=estimator._warm_start)


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Mapping[str, Any]]) -> Estimator:
    """An estimator with further metrics.

    Args:
        estimator: The estimator.
        metric_fn: Function of those of `features`, `labels`, `predictions` and `config` that it wants: returns metrics
            by name, as ``EstimatorSpec.eval_metric_ops``. They replace those of the same name.

    Raises:
        ValueError: The function takes other arguments.
    """
    unknown = set(parameters_of(metric_fn)) - _METRIC_ARGUMENTS
    if unknown:
        known = "features, labels, predictions, config"
        raise ValueError(f"metric_fn has following not expected args: {', '.join(unknown)}; it can take {known}")

    def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        given = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        wanted = parameters_of(metric_fn)
        more = metric_fn(**{name: value for name, value in given.items() if name in wanted})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})

    return _derived(estimator, model_fn)


def forward_features(
    estimator: Estimator,
    keys: str | Sequence[str] | None = None,
    sparse_default_values: Mapping[str, Any] | None = None,
) -> Estimator:
    """An estimator that gives features among its predictions, so that these can be told apart.

    Args:
        estimator: The estimator.
        keys: Names of the features; all when None.
        sparse_default_values: For sparse features, by name: the value where there is none. They become dense.

    Raises:
        ValueError: Predictions are no dictionary or have a feature's name already, or there is no such feature.
        TypeError: A name is no text.
    """
    names = [keys] if isinstance(keys, str) else None if keys is None else list(keys)
    for name in names or ():
        if not isinstance(name, str):
            raise TypeError(f"forward_features: a key is {name!r}, expected text")
    defaults = dict(sparse_default_values or {})

    def dense(name: str, value: Any) -> Any:
        if not isinstance(value, SparseTensor):
            return convert_to_tensor(value)
        if name not in defaults:
            raise ValueError(f"feature {name!r} is sparse: give its default value in sparse_default_values")
        return sparse_ops.sparse_tensor_to_dense(value, defaults[name])

    def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        original = dict(features)
        spec = estimator.model_fn(features, labels, mode, config)
        if not isinstance(spec.predictions, Mapping):
            raise ValueError("forward_features: the predictions are no dictionary")
        wanted = list(original) if names is None else names
        predictions = dict(spec.predictions)
        for name in wanted:
            if name not in original:
                raise ValueError(f"forward_features: there is no feature {name!r}; there are {', '.join(original)}")
            if name in predictions:
                raise ValueError(f"forward_features: there is a prediction {name!r} already")
            predictions[name] = dense(name, original[name])
        spec = spec._replace(predictions=predictions)
        if mode != ModeKeys.PREDICT or not spec.export_outputs:
            return spec
        added = {name: predictions[name] for name in wanted}
        outputs = {
            name: PredictOutput({**output.outputs, **added}) if isinstance(output, PredictOutput) else output
            for name, output in spec.export_outputs.items()
        }
        return spec._replace(export_outputs=outputs)

    return _derived(estimator, model_fn)


class ClippingOptimizer(Optimizer):
    """An optimizer that first scales gradients down to a largest norm.

    Args:
        optimizer: The optimizer that then applies them.
        clip_norm: The largest norm of all gradients together.
    """

    def __init__(self, optimizer: Optimizer, clip_norm: float) -> None:
        super().__init__(False, f"Clipped{optimizer.get_name()}")
        self._optimizer = optimizer
        self._clip_norm = clip_norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As those of the optimizer."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Clip, and let the optimizer apply."""
        pairs = list(grads_and_vars)
        clipped, _ = clip_by_global_norm([gradient for gradient, _ in pairs], self._clip_norm)
        applied = zip(clipped, [variable for _, variable in pairs], strict=True)
        return self._optimizer.apply_gradients(list(applied), global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """As those of the optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """As those of the optimizer."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """As those of the optimizer."""
        return self._optimizer.variables()


def clip_gradients_by_norm(optimizer: Optimizer, clip_norm: float) -> Optimizer:
    """An optimizer that first scales gradients down, so that their norm, all together, is at most `clip_norm`."""
    return ClippingOptimizer(optimizer, clip_norm)
