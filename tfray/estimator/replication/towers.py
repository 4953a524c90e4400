"""Model functions that are built for several devices, by their optimizers: ``tf.contrib.estimator``'s older strategy.

`replicate_model_fn` is a strategy of `tf.distribute` that splits batches as it builds a model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.distribute.replicas import ReplicasDiffer
from tfray.distribute.strategies import Towers
from tfray.distribute.strategy import Strategy
from tfray.distribute.values import regroup
from tfray.estimator.export_outputs import ClassificationOutput, PredictOutput, RegressionOutput
from tfray.estimator.input_functions import parameters_of
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, get_default_graph
from tfray.framework.scopes import current_mode
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.layers.losses import Reduction
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops
from tfray.ops.sparse import sparse_layout_ops
from tfray.runtime.device import gpu_count
from tfray.training.optimizers.optimizer import Optimizer


class _Copies(Strategy):
    """The copies of a model.

    Args:
        devices: The device of each; several may have the same.
        home: The device of variables.
        reduction: How their losses become one: a `tf.losses.Reduction`.
    """

    def __init__(self, devices: Sequence[str], home: str, reduction: str) -> None:
        extended = Towers(self, devices, home, are_distinct=False)
        extended.replica_scope = "tower_{}"
        super().__init__(extended)
        self._reduction = reduction
        self.has_optimizer = False

    def share(self, loss: Any) -> Any:
        """The part of the loss of one of them in that of all."""
        if loss is None or self.num_replicas_in_sync == 1 or self._reduction == Reduction.SUM:
            return loss
        return math_ops.divide(loss, float(self.num_replicas_in_sync), name="averaged_loss")


class TowerOptimizer(Optimizer):
    """An optimizer of a model function that `replicate_model_fn` builds once for each device.

    It applies the gradients of all devices together, as those of the loss of all.

    Args:
        optimizer_or_optimizer_fn: The optimizer, or a function that returns it.
    """

    def __init__(self, optimizer_or_optimizer_fn: Optimizer | Callable[[], Optimizer]) -> None:
        self._given = optimizer_or_optimizer_fn

    @property
    def _optimizer(self) -> Optimizer:
        if not isinstance(self._given, Optimizer):
            self._given = self._given()
        return self._given

    def get_name(self) -> str:
        return self._optimizer.get_name()

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """As those of the optimizer, of the part of the loss in that of all devices."""
        mode = current_mode()
        if mode is not None and isinstance(mode.strategy, _Copies):
            mode.strategy.has_optimizer = True
            loss = mode.strategy.share(loss)
        return self._optimizer.compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Operation:
        """Let the optimizer apply the gradients of all devices."""
        return self._optimizer.apply_gradients(grads_and_vars, *args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """As those of the optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        """As those of the optimizer."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """As those of the optimizer."""
        return self._optimizer.variables()


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
            parts = [regroup(_batch_parts(each, len(places))) for each in (features, labels)]
        copies = _Copies(places, home, loss_reduction)
        specs: list[EstimatorSpec] = []

        def build(features: Any, labels: Any) -> None:
            spec = model_fn(features=features, labels=labels, mode=mode, **given)
            if spec.train_op is not None and len(places) > 1 and not copies.has_optimizer:
                raise ValueError(
                    "Please wrap optimizers with TowerOptimizer in order to use replicate_model_fn with "
                    "multiple `devices`."
                )
            specs.append(spec._replace(loss=copies.share(spec.loss)))

        try:
            copies.experimental_run_v2(build, parts)
        except ReplicasDiffer as error:
            raise ValueError("Each invocation of model_fn was supposed to make the same optimizer calls.") from error
        return specs[0] if len(specs) == 1 else _joined(specs, mode, home)

    return replicated


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
    with get_default_graph().device(home):
        loss = math_ops.add_n([spec.loss for spec in specs], name="loss")
    if mode == ModeKeys.TRAIN:
        return specs[0]._replace(loss=loss)
    metrics = {
        name: (value, group(*(spec.eval_metric_ops[name][1] for spec in specs)))
        for name, (value, _) in (specs[0].eval_metric_ops or {}).items()
    }
    return specs[0]._replace(loss=loss, eval_metric_ops=metrics)


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
