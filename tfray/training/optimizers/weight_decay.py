"""Optimizers that make variables smaller in each step, apart from their gradients (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfray.framework.graph import Operation, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.partition_ops import unique
from tfray.ops.state.sparse_state_ops import scatter_sub
from tfray.ops.state.state_ops import colocated_with
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.optimizer import Optimizer


class DecoupledWeightDecayExtension(Optimizer):
    """Put before an optimizer's class: multiplies variables by ``1 - weight_decay`` before each update.

    With a sparse gradient, only the rows that it has become smaller.

    Args:
        weight_decay: A number, a tensor, or a function that returns one of these.
        *args: Those of the optimizer.
        **kwargs: Likewise.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        self._decayed: list[Any] | None = None
        self._decays: list[Any] | None = None
        super().__init__(*args, **kwargs)

    def minimize(self, loss: Any, *args: Any, decay_var_list: Iterable[Any] | None = None, **kwargs: Any) -> Operation:
        """As for `Optimizer.minimize`.

        Args:
            loss: The loss.
            *args: As for `Optimizer.minimize`.
            decay_var_list: Variables that decay; all that are updated when None or empty.
            **kwargs: As for `Optimizer.minimize`.
        """
        self._decayed = list(decay_var_list) if decay_var_list is not None else None
        return super().minimize(loss, *args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Iterable[Any] | None = None,
    ) -> Operation:
        """As for `Optimizer.apply_gradients`, with `decay_var_list` as for `minimize`."""
        self._decays = self._decayed if decay_var_list is None else list(decay_var_list)
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _prepare(self) -> None:
        self._weight_decay_tensor = self._hyperparameter(self._weight_decay, "weight_decay")
        super()._prepare()

    def _update(self, gradient: Any, variable: Any) -> Operation:
        if self._decays and all(each is not variable for each in self._decays):
            return super()._update(gradient, variable)
        graph, rate = get_default_graph(), array_ops.cast(self._weight_decay_tensor, variable.dtype)
        with graph.name_scope("weight_decay"), colocated_with(variable.handle):
            if isinstance(gradient, IndexedSlices):
                rows, _ = unique(gradient.indices)
                decay = scatter_sub(variable, rows, rate * gather(variable, rows))
            else:
                decay = variable.assign_sub(rate * variable)
        with graph.control_dependencies([decay]):
            return super()._update(gradient, variable)


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Optimizer]:
    """A class of optimizers with `DecoupledWeightDecayExtension`, whose first argument is the weight decay."""
    name = f"{base_optimizer.__name__}WithDecoupledWeightDecay"
    return type(name, (DecoupledWeightDecayExtension, base_optimizer), {"__doc__": base_optimizer.__doc__})


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """`AdamOptimizer` with decoupled weight decay.

    Args:
        weight_decay: As for `DecoupledWeightDecayExtension`. Programs multiply it by the learning rate's schedule.
        learning_rate: As for `AdamOptimizer`.
        beta1: Likewise.
        beta2: Likewise.
        epsilon: Likewise.
        use_locking: Likewise.
        name: Likewise.
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """`MomentumOptimizer` with decoupled weight decay.

    Args:
        weight_decay: As for `DecoupledWeightDecayExtension`.
        learning_rate: As for `MomentumOptimizer`.
        momentum: Likewise.
        use_locking: Likewise.
        name: Likewise.
        use_nesterov: Likewise.
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)
