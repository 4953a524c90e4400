"""Workers that train each for itself, and update shared variables by the means of their gradients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, get_default_graph
from tfray.library.variables.variables import trainable_variables
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.state import state_ops
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.center_variables import (
    CENTER,
    CenterGetter,
    CenterHook,
    CenterOptimizer,
    assigned,
    variables_made_local,
)

_SUM: Final = "grad_variable"
"""Where the names of sums of gradients begin."""


class AGNCustomGetter(CenterGetter):
    """A ``custom_getter`` for `tf.variable_scope` that makes each trainable variable a worker's own.

    Beside it are ``global_center_variable/<name>``, a global variable that all workers share, and
    ``grad_variable/<name>``, the sum of the worker's gradients. Use it with `tf.train.replica_device_setter`, which
    puts the shared ones on parameter servers, and `tf.get_variable`.

    Args:
        worker_device: The device of what is the worker's own.
    """

    _others: ClassVar[Mapping[str, bool]] = {CENTER: False, _SUM: True}
    _keeps_local = False


class AGNOptimizer(CenterOptimizer):
    """Lets an optimizer update a worker's own variables, and the shared ones by means of gradients now and then.

    Each worker counts its steps. After every `communication_period` of them the optimizer updates the shared
    variables by the means of the gradients of these steps, and the worker goes on from them.

    Args:
        optimizer: The optimizer.
        num_worker: Accepted for TensorFlow 1's sake: workers do not wait for each other.
        custom_getter: The `AGNCustomGetter` that made the variables.
        communication_period: After how many steps shared variables are updated.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.

    References:
        Hermans et al., "Accumulated Gradient Normalization", 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        num_worker: int,
        custom_getter: AGNCustomGetter,
        communication_period: int = 10,
        use_locking: bool = True,
        name: str = "AGNOptimizer",
    ) -> None:
        super().__init__(optimizer, custom_getter, communication_period, use_locking, name)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Add the operations of a worker's step. Variables that the optimizer makes for the worker's own are local.

        Args:
            grads_and_vars: Pairs of a gradient, or None, and one of the worker's own variables.
            global_step: Variable that counts the updates of the shared variables.
            name: Accepted for TensorFlow 1's sake.

        Returns:
            The operation that makes one step.

        Raises:
            ValueError: The custom getter did not make a variable.
        """
        pairs = list(grads_and_vars)
        present = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        own = [variable for _, variable in present]
        centers, sums = self._getter.beside(own), self._getter.beside(own, _SUM)
        with variables_made_local():
            train = self._opt.apply_gradients(pairs)
        gradients = [convert_to_tensor(gradient) for gradient, _ in present]
        added = [state_ops.assign_add(*each).op for each in zip(sums, gradients, strict=True)]

        def together() -> Operation:
            graph = get_default_graph()
            means = [total.read_value() / self._period for total in sums]
            with graph.control_dependencies([self._opt.apply_gradients(zip(means, centers, strict=True))]):
                ends = [assigned(own, centers)]
                ends += [state_ops.assign(total, zeros_like(total)).op for total in sums]
                if global_step is not None:
                    ends.append(state_ops.assign_add(global_step, 1).op)
            return group(*ends)

        return self._every_period([train, *added], together)

    def get_init_op(self, task_index: int) -> Operation:
        """An operation that gives a worker's own variables the values of the shared ones, and sums of gradients 0.

        Args:
            task_index: Accepted for TensorFlow 1's sake.

        Raises:
            ValueError: The graph has no trainable variable, or the custom getter did not make one.
        """
        own = trainable_variables()
        if not own:
            raise ValueError("there is no variable to begin with: the graph has none that is trainable")
        cleared = [state_ops.assign(total, zeros_like(total)).op for total in self._getter.beside(own, _SUM)]
        return group(assigned(own, self._getter.beside(own)), *cleared)

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> CenterHook:
        """A hook that runs `get_init_op` in each new session.

        Args:
            is_chief: Accepted for TensorFlow 1's sake.
            task_index: See `get_init_op`.
        """
        return CenterHook(lambda: self.get_init_op(task_index))
