"""The optimizer of model functions that are built once for each device: ``tf.contrib.estimator.TowerOptimizer``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.layers.losses import Reduction
from tfray.library.variables.variable_scope import VariableScope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import no_op
from tfray.ops.math import math_ops
from tfray.training.optimizers.optimizer import Optimizer


class Towers:
    """The copies of a model in a graph, and the gradients that each of them has given.

    Args:
        count: How many there are.
        reduction: How their losses become one: a `tf.losses.Reduction`.
    """

    def __init__(self, count: int = 1, reduction: str = Reduction.SUM) -> None:
        self.count = count
        self.reduction = reduction
        self.has_optimizer = False
        self._gradients: list[list[list[tuple[Any, Any]]]] = [[] for _ in range(count)]
        self._current = 0
        self._scopes: list[tuple[VariableScope, str]] = []

    @staticmethod
    def of(graph: Graph) -> Towers:
        """Those that are being built in a graph; one where there are none."""
        found = graph.extra("towers", lambda: [Towers()])[-1]
        assert isinstance(found, Towers)
        return found

    @contextmanager
    def built(self) -> Iterator[None]:
        """Within it, they are those of the default graph."""
        known = get_default_graph().extra("towers", lambda: [Towers()])
        known.append(self)
        try:
            yield
        finally:
            known.remove(self)

    def begin(self, index: int, scope: VariableScope, name_scope: str) -> None:
        """Go on with one of them, within these scopes."""
        self._current = index
        self._scopes.append((scope, name_scope))

    def scaled(self, loss: Any) -> Any:
        """The part of the loss of one of them in that of all."""
        if loss is None or self.count == 1 or self.reduction == Reduction.SUM:
            return loss
        return math_ops.divide(loss, float(self.count), name="averaged_loss")

    @property
    def are_alike(self) -> bool:
        """Whether all have given gradients equally often."""
        return len({len(calls) for calls in self._gradients}) == 1

    def apply(self, optimizer: Optimizer, pairs: list[tuple[Any, Any]], *args: Any, **kwargs: Any) -> Operation:
        """Take the gradients of one of them; those of the last are applied with those of the others before."""
        calls = self._gradients[self._current]
        calls.append(pairs)
        graph = get_default_graph()
        if self._current < self.count - 1:
            given = [grad.values if isinstance(grad, IndexedSlices) else grad for grad, _ in pairs if grad is not None]
            with graph.control_dependencies(given):
                return no_op(name="train_op_placeholder")
        by_variable: dict[Any, list[Any]] = {}
        for tower in self._gradients:
            for grad, variable in tower[len(calls) - 1]:
                if grad is not None:
                    by_variable.setdefault(variable, []).append(grad)
        scope, name_scope = self._scopes[0]
        with variable_scope(scope), graph.name_scope(name_scope or None):
            with graph.name_scope("gradient_aggregating"):
                sums = [(sum_on_device(grads, v.device), v) for v, grads in by_variable.items()]
            return optimizer.apply_gradients(sums, *args, **kwargs)


def sum_on_device(values: list[Any], device: str | None, name: str | None = None) -> Any:
    """The sum of tensors, or of slices, on a device."""
    with get_default_graph().device(device or ""):
        if isinstance(values[0], IndexedSlices):
            rows, indices = (
                array_ops.concat([getattr(each, part) for each in values], 0) for part in ("values", "indices")
            )
            return IndexedSlices(rows, indices, values[0].dense_shape)
        found: Tensor = math_ops.add_n(values, name=name)
        return found


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
        Towers.of(get_default_graph()).has_optimizer = True
        return self._given

    def get_name(self) -> str:
        return self._optimizer.get_name()

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """As those of the optimizer, of the part of the loss in that of all devices."""
        return self._optimizer.compute_gradients(Towers.of(get_default_graph()).scaled(loss), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Operation:
        """Let the optimizer apply the gradients of all devices, when those of the last one are there."""
        towers = Towers.of(get_default_graph())
        if towers.count == 1:
            return self._optimizer.apply_gradients(grads_and_vars, *args, **kwargs)
        return towers.apply(self._optimizer, list(grads_and_vars), *args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """As those of the optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        """As those of the optimizer."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """As those of the optimizer."""
        return self._optimizer.variables()
