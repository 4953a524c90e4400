"""Optimizers that make variables smaller in each step, apart from their gradients (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfray.framework.graph import Operation, get_default_graph
from tfray.ops.arrays.grouping_ops import group
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.optimizer import Optimizer


class DecoupledWeightDecayExtension(Optimizer):
    """Put before an optimizer's class: multiplies variables by ``1 - weight_decay`` before each update.

    Args:
        weight_decay: A number, a tensor, or a function that returns one of these.
        *args: Those of the optimizer.
        **kwargs: Likewise.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        self._decayed: list[Any] | None = None
        super().__init__(*args, **kwargs)

    def minimize(self, loss: Any, *args: Any, decay_var_list: Iterable[Any] | None = None, **kwargs: Any) -> Operation:
        """As for `Optimizer.minimize`.

        Args:
            loss: The loss.
            *args: As for `Optimizer.minimize`.
            decay_var_list: Variables that decay; all that are updated when None.
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
        pairs = list(grads_and_vars)
        decayed = self._decayed if decay_var_list is None else list(decay_var_list)
        updated = [variable for gradient, variable in pairs if gradient is not None]
        chosen = updated if decayed is None else [each for each in updated if any(each is other for other in decayed)]
        rate = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        with get_default_graph().name_scope("weight_decay"):
            decays = group(*(each.assign_sub(rate * each).op for each in chosen))
        with get_default_graph().control_dependencies([decays]):
            return super().apply_gradients(pairs, global_step, name)


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
