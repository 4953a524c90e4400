"""An optimizer around others that drops gradients which come late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfray.framework.graph import Tensor, get_default_graph
from tfray.library.inspect import summaries
from tfray.library.variables.initializers import Zeros
from tfray.library.variables.variable_scope import get_variable
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.threads.global_step import get_global_step


class DropStaleGradientOptimizer(Optimizer):
    """Lets an optimizer update variables unless too many steps have been made since gradients were begun.

    Args:
        opt: The optimizer.
        staleness: How many steps may have been made meanwhile.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
    """

    def __init__(
        self, opt: Optimizer, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient"
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._staleness = staleness

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer computes, after the number of the step has been read.

        Raises:
            ValueError: The graph has no global step.
        """
        step = get_global_step()
        if step is None:
            raise ValueError("DropStaleGradientOptimizer needs a global step: make tf.train.create_global_step() first")
        self._local_step = array_ops.identity(step.read_value())
        with get_default_graph().control_dependencies([self._local_step]):
            return self._opt.compute_gradients(array_ops.identity(loss), *args, **kwargs)

    def get_slot(self, var: Any, name: str) -> Any:
        """A slot of the optimizer."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Names of the optimizer's slots."""
        return self._opt.get_slot_names()

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """Add operations that update variables by their gradients, or drop these.

        Args:
            grads_and_vars: Pairs of a gradient and its variable.
            global_step: The variable that counts steps.
            name: Name of the operation that updates variables.

        Returns:
            How often gradients have been dropped, a float32 scalar, once this is done.

        Raises:
            ValueError: There is no `global_step`, or `compute_gradients` was not called.
        """
        if global_step is None:
            raise ValueError("DropStaleGradientOptimizer.apply_gradients needs global_step, which it compares")
        if not hasattr(self, "_local_step"):
            raise ValueError("call compute_gradients of DropStaleGradientOptimizer before apply_gradients")
        pairs = list(grads_and_vars)
        dropped = get_variable("stale_counter", [], initializer=Zeros(), trainable=False)

        def accept() -> Tensor:
            updated = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
            with get_default_graph().control_dependencies([updated]):
                return array_ops.identity(0.0)

        with get_default_graph().control_dependencies([gradient.op for gradient, _ in pairs if gradient is not None]):
            staleness = array_ops.reshape(global_step.read_value() - self._local_step, [])
        is_fresh = math_ops.less_equal(staleness, array_ops.cast(self._staleness, staleness.dtype))
        count = dropped.assign_add(cond(is_fresh, accept, lambda: array_ops.identity(1.0)))
        share = dropped / (array_ops.cast(global_step, dropped.dtype) + 1)
        summaries.scalar("Gradient staleness percentage", share)
        return count
