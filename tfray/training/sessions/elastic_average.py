"""Workers that train each for itself, and are drawn towards shared variables, as these are towards them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, get_default_graph
from tfray.library.input.queues import FIFOQueue
from tfray.library.variables.partitioned_variables import PartitionedVariable
from tfray.library.variables.variables import trainable_variables
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math.arithmetic_ops import add_n
from tfray.ops.nn.nn_ops import l2_loss
from tfray.ops.state import state_ops
from tfray.training.checkpoints.saver import Saver
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.center_variables import (
    CENTER,
    CenterGetter,
    CenterHook,
    CenterOptimizer,
    assigned,
    variables_made_local,
)

_SEEN: Final = "local_center_variable"
"""Where the names of a worker's copies of the shared variables begin."""


class ElasticAverageCustomGetter(CenterGetter):
    """A ``custom_getter`` for `tf.variable_scope` that makes each trainable variable a worker's own.

    Beside it are ``global_center_variable/<name>``, a global variable that all workers share, and
    ``local_center_variable/<name>``, the worker's copy of that one. Use it with `tf.train.replica_device_setter`,
    which puts the shared ones on parameter servers, and `tf.get_variable`.

    Args:
        worker_device: The device of what is the worker's own.
    """

    _others: ClassVar[Mapping[str, bool]] = {CENTER: False, _SEEN: True}


class ElasticAverageOptimizer(CenterOptimizer):
    """Lets an optimizer update a worker's own variables, and draws them and the shared ones together now and then.

    Each worker counts its steps. After every `communication_period` of them it copies the shared variables, and takes
    a part of what its own differ by away from its own, and adds it to the shared ones. Workers do not wait for each
    other.

    Args:
        opt: The optimizer.
        num_worker: How many workers there are.
        ea_custom_getter: The `ElasticAverageCustomGetter` that made the variables.
        communication_period: After how many steps variables are drawn together.
        moving_rate: Which part of the differences; ``BETA / communication_period / num_worker`` when None.
        rho: What half the squares of the differences from the copies count in the loss; the moving rate over the
            learning rate of `opt` when None.
        use_locking: Accepted for TensorFlow 1's sake.
        synchronous: Whether workers wait for each other before they begin.
        name: Name of the optimizer.

    Raises:
        AttributeError: `rho` is None, and `opt` has no ``learning_rate``, as `tf.train.AdamOptimizer` has none that
            stays as it is.

    References:
        Zhang et al., "Deep learning with Elastic Averaging SGD", 2015.
    """

    BETA: Final = 0.9

    def __init__(
        self,
        opt: Optimizer,
        num_worker: int,
        ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10,
        moving_rate: float | None = None,
        rho: float | None = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        super().__init__(opt, ea_custom_getter, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._synchronous = synchronous
        self._moving_rate = self.BETA / communication_period / num_worker if moving_rate is None else moving_rate
        rate: Any = opt
        self._rho = self._moving_rate / rate._learning_rate if rho is None else rho

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer computes for a loss in which the differences from the copies count.

        Args:
            loss: The tensor to minimise.
            var_list: The worker's own variables to update; the trainable ones of the graph when None.
            *args: As for `Optimizer.compute_gradients`.
            **kwargs: Likewise.

        Raises:
            ValueError: The custom getter did not make a variable.
        """
        own = list(var_list or trainable_variables())
        copies = self._getter.beside(own, _SEEN)
        far = add_n([l2_loss(variable - copy) for variable, copy in zip(own, copies, strict=True)])
        return self._opt.compute_gradients(convert_to_tensor(loss) + self._rho * far, own, *args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Add the operations of a worker's step. Variables that the optimizer makes are local.

        Args:
            grads_and_vars: Pairs of a gradient, or None, and one of the worker's own variables.
            global_step: Variable that counts how often variables have been drawn together.
            name: Accepted for TensorFlow 1's sake.

        Returns:
            The operation that makes one step.

        Raises:
            ValueError: The custom getter did not make a variable.
        """
        pairs = list(grads_and_vars)
        own = [variable for gradient, variable in pairs if gradient is not None]
        centers, copies = self._getter.beside(own), self._getter.beside(own, _SEEN)
        with variables_made_local():
            train = self._opt.apply_gradients(pairs)

        def together() -> Operation:
            graph = get_default_graph()
            with graph.control_dependencies([assigned(copies, centers)]):
                parts = [
                    self._moving_rate * (variable.read_value() - copy.read_value())
                    for variable, copy in zip(own, copies, strict=True)
                ]
            updates = [state_ops.assign_sub(*each).op for each in zip(own, parts, strict=True)]
            updates += [state_ops.assign_add(*each).op for each in zip(centers, parts, strict=True)]
            if global_step is not None:
                with graph.control_dependencies([part.op for part in parts]):
                    updates.append(state_ops.assign_add(global_step, 1).op)
            return group(*updates)

        return self._every_period([train], together)

    def get_init_op(self, task_index: int) -> Operation:
        """An operation that gives a worker's own variables and copies the values of the shared ones.

        Args:
            task_index: Which worker this is, from 0. If `synchronous`, it then waits for all the others.

        Raises:
            ValueError: The graph has no trainable variable, or the custom getter did not make one.
        """
        own = trainable_variables()
        if not own:
            raise ValueError("there is no variable to begin with: the graph has none that is trainable")
        centers = self._getter.beside(own)
        begin = group(assigned(own, centers), assigned(self._getter.beside(own, _SEEN), centers))
        if not self._synchronous:
            return begin
        queues = [
            FIFOQueue(self._num_worker, [dtypes.bool_], [()], shared_name=f"variable_init_sync_queue{each}")
            for each in range(self._num_worker)
        ]
        with get_default_graph().control_dependencies([begin]):
            told = [queue.enqueue(False) for place, queue in enumerate(queues) if place != task_index]
        return group(begin, *told, queues[task_index].dequeue_many(self._num_worker - 1).op)

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> CenterHook:
        """A hook that runs `get_init_op` in each new session.

        Args:
            is_chief: Accepted for TensorFlow 1's sake.
            task_index: See `get_init_op`.
        """
        return CenterHook(lambda: self.get_init_op(task_index))

    def swapping_saver(
        self, var_list: Mapping[str, Any] | Iterable[Any] | None = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Saver:
        """A saver that saves the shared variables under the names of the worker's own.

        Args:
            var_list: As for `tf.train.Saver`; all trainable variables when None.
            name: Name of the saver.
            **kwargs: As for `tf.train.Saver`.

        Raises:
            RuntimeError: The custom getter has made no variable.
        """
        shared = self._getter._beside.get(CENTER, {})
        if not shared:
            raise RuntimeError("there is no shared variable: make variables with the ElasticAverageCustomGetter first")
        listed: Any = trainable_variables() if var_list is None else var_list
        named = listed.items() if isinstance(listed, Mapping) else ((None, each) for each in listed)
        swapped: dict[str, list[Any]] = {}
        for key, value in named:
            for part in value if isinstance(value, (list, tuple, PartitionedVariable)) else [value]:
                whole = getattr(part, "_save_slice_info", None)
                saved_as = key or (whole.full_name if whole else part.op.name)
                swapped.setdefault(saved_as, []).append(shared.get(part, part))
        return Saver(swapped, name=name, **kwargs)
