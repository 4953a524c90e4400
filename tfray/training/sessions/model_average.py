"""Workers that train each for itself, and go on from the means of their variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tfray.framework import dtypes
from tfray.framework.graph import Operation, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.input.accumulators import ConditionalAccumulator
from tfray.library.input.queues import FIFOQueue
from tfray.library.variables.variables import Variable, trainable_variables
from tfray.ops.arrays import array_ops
from tfray.ops.state import state_ops
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.center_variables import CenterGetter, CenterHook, CenterOptimizer, assigned


class ModelAverageCustomGetter(CenterGetter):
    """A ``custom_getter`` for `tf.variable_scope` that makes each trainable variable a worker's own.

    Beside it is ``global_center_variable/<name>``, a global variable that all workers share, and that begins with its
    value. Use it with `tf.train.replica_device_setter`, which puts those on parameter servers, and `tf.get_variable`.

    Args:
        worker_device: The device of what is the worker's own.
    """

    def _made_beside(
        self, getter: Callable[..., Any], variable: Any, name: str, is_own: bool, *args: Any, **kwargs: Any
    ) -> Any:
        if not isinstance(variable, Variable):
            raise ValueError(f"{name!r} is in parts: ModelAverageCustomGetter takes variables without a partitioner")
        collections = [GraphKeys.GLOBAL_VARIABLES]
        return Variable(variable.initialized_value(), trainable=False, collections=collections, name=name)


class ModelAverageOptimizer(CenterOptimizer):
    """Lets an optimizer update a worker's own variables, and takes their means over all workers now and then.

    Each worker counts its steps. After every `interval_steps` of them it sends its variables, and waits until the
    chief has put the means of those of all workers into the shared variables; then it goes on from these.

    Args:
        opt: The optimizer.
        num_worker: How many workers there are.
        is_chief: Whether this one takes the means.
        ma_custom_getter: The `ModelAverageCustomGetter` that made the variables.
        interval_steps: After how many steps means are taken.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
    """

    def __init__(
        self,
        opt: Optimizer,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        super().__init__(opt, ma_custom_getter, interval_steps, use_locking, name)
        self._num_worker = num_worker
        self._is_chief = is_chief

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer computes."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Add the operations of a worker's step.

        Args:
            grads_and_vars: Pairs of a gradient, or None, and one of the worker's own variables.
            global_step: Variable that counts how often means have been taken.
            name: Accepted for TensorFlow 1's sake.

        Returns:
            The operation that makes one step.

        Raises:
            ValueError: There are no pairs, there is no `global_step`, or the custom getter did not make a variable.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required: it counts how often means have been taken")
        graph = get_default_graph()
        own = [variable for gradient, variable in pairs if gradient is not None]
        centers = self._getter.beside(own)
        with graph.device(global_step.device or ""):
            queue = FIFOQueue(-1, [dtypes.bool_], [()], shared_name="sync_queue")
        sums = []
        for variable, center in zip(own, centers, strict=True):
            with graph.device(center.device or ""):
                sums.append(ConditionalAccumulator(variable.dtype, variable.shape, f"{center.name}/var_accum"))

        def together() -> Operation:
            sent = []
            for variable, center, total in zip(own, centers, sums, strict=True):
                with graph.device(center.device or ""):
                    sent.append(total.apply_grad(variable.read_value(), global_step.read_value()))
            with get_default_graph().control_dependencies(
                [self._synchronised(sent, sums, centers, queue, global_step)]
            ):
                return assigned(own, centers)

        return self._every_period([self._opt.apply_gradients(pairs)], together)

    def _synchronised(
        self, sent: list[Operation], sums: list[ConditionalAccumulator], centers: list[Any], queue: Any, step: Any
    ) -> Operation:
        """The operation that ends when the shared variables hold the means: the chief's puts them there."""
        graph = get_default_graph()
        if not self._is_chief:
            with graph.control_dependencies(sent), graph.device(step.device or ""):
                return queue.dequeue().op
        updates = []
        with graph.control_dependencies(sent):
            for center, total in zip(centers, sums, strict=True):
                with graph.device(center.device or ""):
                    updates.append(state_ops.assign(center, total.take_grad(self._num_worker)).op)
            with graph.device(step.device or ""):
                updates.append(state_ops.assign_add(step, 1).op)
        with graph.control_dependencies(updates), graph.device(step.device or ""):
            return queue.enqueue_many((array_ops.fill([self._num_worker - 1], False),))

    def get_init_op(self) -> Operation:
        """An operation that gives the trainable variables of the graph the values of the shared ones.

        Raises:
            ValueError: There are none, or the custom getter did not make one.
        """
        own = trainable_variables()
        if not own:
            raise ValueError("there is no variable to begin with: the graph has none that is trainable")
        return assigned(own, self._getter.beside(own))

    def make_session_run_hook(self) -> CenterHook:
        """A hook that runs `get_init_op` in each new session."""
        return CenterHook(self.get_init_op)
