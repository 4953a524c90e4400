"""Estimators from estimators: with further metrics, with features among their predictions; clipped gradients.

And `replicate_model_fn`: model functions that use several devices.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tfray.estimator.estimator import Estimator
from tfray.estimator.export_outputs import ClassificationOutput, PredictOutput, RegressionOutput
from tfray.estimator.input_functions import parameters_of
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.layers.losses import Reduction
from tfray.library.variables.clip import clip_by_global_norm
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops
from tfray.ops.sparse import sparse_layout_ops, sparse_ops
from tfray.runtime.device import gpu_count
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.optimizers.tower_optimizer import Towers, sum_on_device

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
        raise ValueError(f"metric_fn takes {', '.join(unknown)}; it can take features, labels, predictions, config")

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


def replicate_model_fn(
    model_fn: Callable[..., EstimatorSpec],
    loss_reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    devices: Sequence[str] | None = None,
) -> Callable[..., EstimatorSpec]:
    """A model function that cuts each batch into parts, and uses another one for each part on a device of its own.

    Args:
        model_fn: The other one. Its optimizers are `TowerOptimizer`, where there are several devices.
        loss_reduction: How its losses are made of those of examples: they are added up if that is ``"weighted_sum"``,
            and otherwise their mean is taken.
        devices: The devices; when None all GPUs, or the CPU. Variables are on the CPU, but on a single GPU.

    Returns:
        A function of ``features, labels, mode, params, config``.

    Raises:
        ValueError: `loss_reduction` is ``"none"``. When it is called: the batch is not divisible, an optimizer is no
            `TowerOptimizer`, or the copies make other calls of it.
    """
    if loss_reduction == Reduction.NONE:
        raise ValueError(f"Tower losses need to be reduced in some way, yet {loss_reduction} reduction is specified.")
    places = list(devices or [f"/device:GPU:{i}" for i in range(gpu_count())] or ["/device:CPU:0"])
    home = places[0] if len(places) == 1 and "GPU" in places[0].upper() else "/device:CPU:0"

    def replicated(
        features: Any, labels: Any, mode: str, params: Any = None, config: RunConfig | None = None
    ) -> EstimatorSpec:
        given = {"params": copy.deepcopy(params), "config": config}
        given = {name: value for name, value in given.items() if name in parameters_of(model_fn)}
        with get_default_graph().name_scope("split_inputs"), get_default_graph().device(home):
            parts = [_batch_parts(each, len(places)) for each in (features, labels)]
        towers = Towers(len(places), loss_reduction)
        specs: list[EstimatorSpec] = []
        with towers.built():
            for index, device in enumerate(places):
                scope_name = f"tower_{index}" if index else None
                with ExitStack() as around:
                    scope = around.enter_context(variable_scope("", reuse=index > 0))
                    name_scope = around.enter_context(get_default_graph().name_scope(scope_name)) if index else ""
                    around.enter_context(get_default_graph().device(_on(device, home)))
                    towers.begin(index, scope, name_scope)
                    spec = model_fn(features=parts[0][index], labels=parts[1][index], mode=mode, **given)
                    if spec.train_op is not None and len(places) > 1 and not towers.has_optimizer:
                        raise ValueError(
                            "Please wrap optimizers with TowerOptimizer in order to use replicate_model_fn with "
                            "multiple `devices`."
                        )
                    specs.append(spec if spec.loss is None else spec._replace(loss=towers.scaled(spec.loss)))
        if not towers.are_alike:
            raise ValueError("Each invocation of model_fn was supposed to make the same optimizer calls.")
        return specs[0] if len(specs) == 1 else _joined(specs, mode, home)

    return replicated


def _on(device: str, home: str) -> Callable[[Operation], str]:
    """Variables at home, and all else on a device."""
    return lambda op: home if "Variable" in op.type and not op.inputs else device


def _batch_parts(batch: Any, count: int) -> list[Any]:
    if batch is None or count == 1:
        return [batch] * count
    if isinstance(batch, Mapping):
        parts = {name: _batch_parts(each, count) for name, each in batch.items()}
        return [{name: each[index] for name, each in parts.items()} for index in range(count)]
    if isinstance(batch, SparseTensor):
        return list(sparse_layout_ops.sparse_split(sp_input=batch, num_split=count, axis=0))
    batch = convert_to_tensor(batch)
    if (batch.shape.as_list()[0] or 0) % count:
        raise ValueError(f"Batch size {batch.shape[0]} needs to be divisible by the number of GPUs, which is {count}.")
    return list(array_ops.split(batch, count))


def _joined(specs: list[EstimatorSpec], mode: str, home: str) -> EstimatorSpec:
    """What the copies of a model give together."""
    if mode == ModeKeys.PREDICT:
        outputs = {
            name: _joined_outputs([spec.export_outputs[name] for spec in specs])
            for name in specs[0].export_outputs or {}
        }
        with get_default_graph().device(home):
            predictions = _joined_tensors([spec.predictions for spec in specs])
        return specs[0]._replace(predictions=predictions, export_outputs=outputs)
    loss = sum_on_device([spec.loss for spec in specs], home, "loss")
    if mode == ModeKeys.TRAIN:
        return specs[-1]._replace(loss=loss)
    updates = [update for spec in specs for _, update in (spec.eval_metric_ops or {}).values()]
    with get_default_graph().control_dependencies(updates):
        added = _added_metrics(len(specs))
    metrics = {name: (value, added) for name, (value, _) in (specs[0].eval_metric_ops or {}).items()}
    return specs[0]._replace(loss=loss, eval_metric_ops=metrics)


def _added_metrics(count: int) -> Operation:
    """Add what the metrics of all copies have found to those of the first."""
    variables = get_default_graph().get_collection(GraphKeys.METRIC_VARIABLES)
    if len(variables) % count:
        raise ValueError(
            f"Different `EstimatorSpec.eval_metric_ops` across `model_fn()` calls: {len(variables)} variables of "
            f"{count} copies"
        )
    each = len(variables) // count
    updates = []
    for index, variable in enumerate(variables[:each]):
        others = variables[index + each :: each]
        added = variable.assign_add(math_ops.add_n([other.value() for other in others]))
        with get_default_graph().control_dependencies([added]):
            updates += [other.assign(array_ops.zeros_like(other)) for other in others]
    return group(*updates)


def _joined_tensors(parts: list[Any]) -> Any:
    if isinstance(parts[0], Mapping):
        return {name: array_ops.concat([part[name] for part in parts], 0) for name in parts[0]}
    return array_ops.concat(parts, 0)


def _joined_outputs(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, PredictOutput):
        return PredictOutput(_joined_tensors([part.outputs for part in parts]))
    if isinstance(first, RegressionOutput):
        return RegressionOutput(_joined_tensors([part.value for part in parts]))
    scores, classes = (
        None if getattr(first, name) is None else _joined_tensors([getattr(part, name) for part in parts])
        for name in ("scores", "classes")
    )
    return ClassificationOutput(scores, classes)
