"""How the optimizers of ``tf.keras`` change variables, where those of ``tf.train`` do it in another way."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.math import math_ops
from tfray.ops.state import sparse_state_ops, state_ops, training_ops
from tfray.training.optimizers.adadelta import AdadeltaOptimizer
from tfray.training.optimizers.ftrl import FtrlOptimizer
from tfray.training.optimizers.optimizer import Optimizer


class Rule(Optimizer):
    """An optimizer whose update is written as operations.

    Of a sparse gradient, which has each row once, only these rows change.

    Args:
        name: Name.
        rate: The learning rate, a tensor.
        step: The variable that counts steps.
        starts: What slots begin with, by their names.
    """

    def __init__(self, name: str, rate: Tensor, step: Any, starts: dict[str, float]) -> None:
        super().__init__(use_locking=False, name=name)
        self._rate, self._step, self.starts = rate, step, starts

    def _create_slots(self, var_list: list[Any]) -> None:
        for slot, start in self.starts.items():
            for var in var_list:
                self._get_or_make_slot_with_initializer(
                    var, lambda shape, dtype, start=start: array_ops.fill(shape, array_ops.cast(start, dtype)),
                    var.shape, var.dtype, slot, self._name,
                )  # fmt: skip

    def _prepare(self) -> None:
        self._count = array_ops.cast(self._step.value() + 1, "float32")

    def _new(self, value: Tensor, gradient: Tensor, slots: list[Tensor]) -> list[Tensor]:
        """The new value of a variable, and those of its slots."""
        raise NotImplementedError

    def _rate_for(self, value: Tensor) -> Tensor:
        return array_ops.cast(self._rate, value.dtype)

    def _apply_dense(self, grad: Tensor, var: Any) -> Operation:
        targets = [var, *(self.get_slot(var, slot) for slot in self.starts)]
        value, *slots = [target.value() for target in targets]
        made = self._new(value, grad, slots)
        with get_default_graph().control_dependencies(made):  # no value is read after it has been set
            return grouping_ops.group(
                *(state_ops.assign(target, new) for target, new in zip(targets, made, strict=True))
            )

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Operation:
        targets = [var, *(self.get_slot(var, slot) for slot in self.starts)]
        value, *slots = [gather(target.value(), grad.indices) for target in targets]
        made = self._new(value, grad.values, slots)
        with get_default_graph().control_dependencies(made):
            return grouping_ops.group(
                *(
                    sparse_state_ops.scatter_update(target, grad.indices, new)
                    for target, new in zip(targets, made, strict=True)
                )
            )


class Momentum(Rule):
    """Gradient descent with momentum; the learning rate is part of what it remembers."""

    def __init__(self, name: str, rate: Tensor, step: Any, momentum: Tensor, nesterov: bool) -> None:
        super().__init__(name, rate, step, {"momentum": 0.0})
        self._momentum, self._nesterov = momentum, nesterov

    def _new(self, value: Tensor, gradient: Tensor, slots: list[Tensor]) -> list[Tensor]:
        step, momentum = self._rate_for(value) * gradient, array_ops.cast(self._momentum, value.dtype)
        moved = momentum * slots[0] - step
        return [value + (momentum * moved - step if self._nesterov else moved), moved]


class RMSProp(Rule):
    """RMSProp; its means begin with 0. There is a momentum unless it is None."""

    def __init__(
        self, name: str, rate: Tensor, step: Any, rho: Tensor, momentum: Tensor | None, epsilon: float, centered: bool
    ) -> None:
        has_momentum = momentum is not None
        starts = {"rms": 0.0, **({"momentum": 0.0} if has_momentum else {}), **({"mg": 0.0} if centered else {})}
        super().__init__(name, rate, step, starts)
        self._rho, self._momentum, self._epsilon, self._centered = rho, momentum, epsilon, centered

    def _new(self, value: Tensor, gradient: Tensor, slots: list[Tensor]) -> list[Tensor]:
        known, rho = dict(zip(self.starts, slots, strict=True)), array_ops.cast(self._rho, value.dtype)
        made = {"rms": rho * known["rms"] + (1 - rho) * math_ops.square(gradient)}
        square, step = made["rms"], self._rate_for(value) * gradient
        if self._centered:
            made["mg"] = rho * known["mg"] + (1 - rho) * gradient
            square = square - math_ops.square(made["mg"])
        if self._momentum is not None:
            momentum = array_ops.cast(self._momentum, value.dtype)
            moved = momentum * known["momentum"] + step / math_ops.sqrt(square + self._epsilon)
            made["momentum"] = moved
        else:
            moved = step / (math_ops.sqrt(square) + self._epsilon)
        return [value - moved, *(made[slot] for slot in self.starts)]

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Operation:
        if self._momentum is not None:
            return super()._apply_sparse(grad, var)
        return self._apply_dense(_dense(grad, var), var)


class Adagrad(Rule):
    """Adagrad, with a small number beside the root."""

    def __init__(self, name: str, rate: Tensor, step: Any, start: float, epsilon: float) -> None:
        super().__init__(name, rate, step, {"accumulator": start})
        self._epsilon = epsilon

    def _new(self, value: Tensor, gradient: Tensor, slots: list[Tensor]) -> list[Tensor]:
        total = slots[0] + math_ops.square(gradient)
        return [value - self._rate_for(value) * gradient / (math_ops.sqrt(total) + self._epsilon), total]


class Adam(Rule):
    """Adam; a sparse gradient changes all rows. With `amsgrad` the greatest mean of squares so far counts."""

    def __init__(
        self, name: str, rate: Tensor, step: Any, betas: tuple[Tensor, Tensor], epsilon: float, amsgrad: bool
    ) -> None:
        super().__init__(name, rate, step, {"m": 0.0, "v": 0.0, **({"vhat": 0.0} if amsgrad else {})})
        self._betas, self._epsilon, self._amsgrad = betas, epsilon, amsgrad

    def _prepare(self) -> None:
        super()._prepare()
        self._powers = [math_ops.pow(beta, self._count) for beta in self._betas]

    def _betas_for(self, value: Tensor) -> list[Tensor]:
        return [array_ops.cast(beta, value.dtype) for beta in self._betas]

    def _apply_dense(self, grad: Tensor, var: Any) -> Operation:
        if self._amsgrad:
            return super()._apply_dense(grad, var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        scalars = (*self._powers, self._rate, *self._betas, self._epsilon)
        power, other, rate, first, second, epsilon = (self._scalar_for(each, var) for each in scalars)
        made: Operation = training_ops.apply_adam(var, m, v, power, other, rate, first, second, epsilon, grad)
        return made

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Operation:
        return self._apply_dense(_dense(grad, var), var)

    def _new(self, value: Tensor, gradient: Tensor, slots: list[Tensor]) -> list[Tensor]:
        first, second = self._betas_for(value)
        mean = first * slots[0] + (1 - first) * gradient
        square = second * slots[1] + (1 - second) * math_ops.square(gradient)
        greatest = math_ops.maximum(slots[2], square)
        rate = self._rate * math_ops.sqrt(1 - self._powers[1]) / (1 - self._powers[0])
        moved = array_ops.cast(rate, value.dtype) * mean / (math_ops.sqrt(greatest) + self._epsilon)
        return [value - moved, mean, square, greatest]


class Adamax(Adam):
    """Adam with the greatest gradient so far in place of the root of the mean of squares."""

    def __init__(self, name: str, rate: Tensor, step: Any, betas: tuple[Tensor, Tensor], epsilon: float) -> None:
        super().__init__(name, rate, step, betas, epsilon, amsgrad=False)

    def _apply_dense(self, grad: Tensor, var: Any) -> Operation:
        return Rule._apply_dense(self, grad, var)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Operation:
        return Rule._apply_sparse(self, grad, var)

    def _new(self, value: Tensor, gradient: Tensor, slots: list[Tensor]) -> list[Tensor]:
        first, second = self._betas_for(value)
        mean = first * slots[0] + (1 - first) * gradient
        greatest = math_ops.maximum(second * slots[1], math_ops.abs(gradient))
        rate = array_ops.cast(self._rate / (1 - self._powers[0]), value.dtype)
        return [value - rate * mean / (greatest + self._epsilon), mean, greatest]


class Nadam(Adamax):
    """Adam with Nesterov's momentum, which grows by a schedule of Dozat's."""

    def __init__(
        self, name: str, rate: Tensor, step: Any, betas: tuple[Tensor, Tensor], epsilon: float, schedule_decay: float
    ) -> None:
        super().__init__(name, rate, step, betas, epsilon)
        self._schedule_decay = schedule_decay

    def _create_slots(self, var_list: list[Any]) -> None:
        first = min(var_list, key=lambda var: var.name)
        self._create_non_slot_variable(1.0, "momentum_cache", first)
        super()._create_slots(var_list)

    def _prepare(self) -> None:
        super()._prepare()
        own, following = (
            self._betas[0] * (1 - 0.5 * math_ops.pow(0.96, self._schedule_decay * (self._count + ahead)))
            for ahead in (0.0, 1.0)
        )
        cache: Any = self._get_non_slot_variable("momentum_cache")
        self._momenta = own, following
        self._product = cache.value() * own

    def _new(self, value: Tensor, gradient: Tensor, slots: list[Tensor]) -> list[Tensor]:
        first, second = self._betas_for(value)
        own, following, product = (array_ops.cast(each, value.dtype) for each in (*self._momenta, self._product))
        mean = first * slots[0] + (1 - first) * gradient
        square = second * slots[1] + (1 - second) * math_ops.square(gradient)
        ahead = (1 - own) * gradient / (1 - product) + following * mean / (1 - product * following)
        root = math_ops.sqrt(square / (1 - array_ops.cast(self._powers[1], value.dtype)))
        return [value - self._rate_for(value) * ahead / (root + self._epsilon), mean, square]

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        cache: Any = self._get_non_slot_variable("momentum_cache")
        with get_default_graph().control_dependencies([*update_ops, self._product]):
            return grouping_ops.group(*update_ops, state_ops.assign(cache, self._product), name=name_scope)


class _Renamed(Optimizer):
    """An optimizer of ``tf.train`` whose slots have the names that they have in Keras."""

    _names: ClassVar[dict[str, str]]

    def _slot_dict(self, slot_name: str) -> dict[tuple[Graph, str], Any]:
        return super()._slot_dict(self._names.get(slot_name, slot_name))

    def get_slot(self, var: Any, name: str) -> Any:
        return super().get_slot(var, self._names.get(name, name))

    def _slot_name(self, slot_name: str, op_name: str) -> dict[str, Any]:
        return super()._slot_name(self._names.get(slot_name, slot_name), op_name)


class Adadelta(_Renamed, AdadeltaOptimizer):
    """That of ``tf.train``."""

    _names: ClassVar[dict[str, str]] = {"accum": "accum_grad", "accum_update": "accum_var"}

    def _create_slots(self, var_list: list[Any]) -> None:
        for slot in self._names:
            for var in var_list:
                self._zeros_slot(var, slot, self._name)


class Ftrl(_Renamed, FtrlOptimizer):
    """That of ``tf.train``, with hyperparameters that are tensors, by their names."""

    _names: ClassVar[dict[str, str]] = {"accum": "accumulator"}

    def __init__(self, rate: Tensor, name: str, hypers: dict[str, Tensor], **settings: Any) -> None:
        super().__init__(rate, name=name, **settings)
        for key, value in hypers.items():
            setattr(self, f"_{key}", value)


class ByMethods(Optimizer):
    """Changes variables by the methods of a derived optimizer.

    Args:
        owner: The derived optimizer.
        rule: What changes variables where it does not; None if it always does.
    """

    def __init__(self, owner: Any, rule: Optimizer | None, name: str) -> None:
        super().__init__(use_locking=False, name=name)
        self.rule = rule
        self._owner = owner
        if rule is not None:
            rule._slots, rule._non_slots = self._slots, self._non_slots

    def _create_slots(self, var_list: list[Any]) -> None:
        self._updated = var_list
        self._owner._create_slots(var_list)

    def _prepare(self) -> None:
        self._state = self._owner._prepare(self._updated)

    def _given(self, method: Callable[..., Any]) -> dict[str, Any]:
        return {"apply_state": self._state} if "apply_state" in inspect.signature(method).parameters else {}

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        method = self._owner._resource_apply_dense
        return method(grad, handle, **self._given(method))

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        method = self._owner._resource_apply_sparse
        return method(grad, handle, indices, **self._given(method))

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        if self.rule is not None:
            return self.rule._finish(update_ops, name_scope)
        return super()._finish(update_ops, name_scope)


def _dense(gradient: IndexedSlices, var: Any) -> Tensor:
    return array_ops.scatter_nd(array_ops.expand_dims(gradient.indices, 1), gradient.values, array_ops.shape(var))
