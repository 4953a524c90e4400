"""Several steps in one loop of the graph: `StrategyExtended.experimental_run_steps_on_iterator`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.distribute.reduction import ReduceOp
from tfray.distribute.values import PerReplica, each_result
from tfray.framework import nest
from tfray.framework.scopes import control_dependencies, innermost_mode
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.control.control_flow_ops import while_loop


class MultiStepContext:
    """What is to be seen of the last of several steps.

    Attributes:
        run_op: The operation that makes all steps.
        last_step_outputs: The outputs of the last step, by name.
        non_tensor_outputs: What else a step has told, by name.
    """

    def __init__(self) -> None:
        self.run_op: Any = None
        self.last_step_outputs: dict[str, Any] = {}
        self.non_tensor_outputs: dict[str, Any] = {}
        self._shared: set[str] = set()

    def set_last_step_output(self, name: str, output: Any, reduce_op: ReduceOp | str | None = None) -> None:
        """Tell an output of the step.

        Args:
            name: Its name.
            output: Its value: in code that builds a replica, the replica's; otherwise that of all replicas.
            reduce_op: How the replicas' values become one; None keeps the value of each.
        """
        mode = innermost_mode()
        if mode is not None and mode.replica is not None:
            mode.replica.merge_call(lambda _, value: self._set(name, value, reduce_op), (output,))
        else:
            self._set(name, output, reduce_op)

    def _set(self, name: str, value: Any, reduce_op: ReduceOp | str | None) -> None:
        mode = innermost_mode()
        if reduce_op is not None:
            self._shared.add(name)
            if mode is not None:
                value = mode.strategy.extended.reduce_to(reduce_op, value, destinations=None)
        self.last_step_outputs[name] = value

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Tell something that is no tensor.

        Args:
            name: Its name.
            output: Its value; those of several replicas are gathered.
        """
        mode = innermost_mode()
        if mode is not None and mode.replica is not None:
            mode.replica.merge_call(lambda _, value: self.set_non_tensor_output(name, value), (output,))
        else:
            self.non_tensor_outputs[name] = output


def run_steps(fn: Callable[..., Any], iterator: Any, iterations: Any, initial_loop_values: Any) -> MultiStepContext:
    """See `StrategyExtended.experimental_run_steps_on_iterator`."""
    context = MultiStepContext()
    initial = nest.flatten(initial_loop_values or {})

    def body(step: Any, *_: Any) -> list[Any]:
        made = fn(context, iterator.get_next())
        outputs = [each for name in sorted(context.last_step_outputs) for each in _values(context, name)]
        with control_dependencies([op for op in nest.flatten(each_result(made)) if op is not None]):
            return [step + 1, *outputs]

    found = while_loop(lambda step, *_: step < iterations, body, [0, *initial], parallel_iterations=1, back_prop=False)
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    context.run_op = group(*found)
    values = iter(found[1:])
    for name in sorted(context.last_step_outputs):
        of_each = [next(values) for _ in _values(context, name)]
        context.last_step_outputs[name] = of_each[0] if len(of_each) == 1 else PerReplica(of_each)
    return context


def _values(context: MultiStepContext, name: str) -> tuple[Any, ...]:
    return each_result(context.last_step_outputs[name])
