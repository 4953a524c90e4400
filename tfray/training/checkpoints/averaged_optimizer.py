"""An optimizer that keeps means of variables, and a saver that saves these in place of the variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.library.variables.variables import Variable, global_variables
from tfray.ops.arrays.grouping_ops import group
from tfray.training.checkpoints.saver import Saver
from tfray.training.optimizers.moving_averages import ExponentialMovingAverage
from tfray.training.optimizers.optimizer import Optimizer


class MovingAverageOptimizer(Optimizer):
    """Lets an optimizer update variables, and keeps their moving means.

    Args:
        opt: The optimizer.
        average_decay: Decay of the means; see `tf.train.ExponentialMovingAverage`.
        num_updates: Likewise.
        sequential_update: Whether the means follow the updates; otherwise both go on at once.
    """

    def __init__(
        self,
        opt: Optimizer,
        average_decay: float = 0.9999,
        num_updates: float | Tensor | Variable | None = None,
        sequential_update: bool = True,
    ) -> None:
        super().__init__(False, "MovingAverage")
        self._optimizer = opt
        self._means = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._follows = sequential_update
        self._other: dict[str, Any] | None = None
        """By name: the mean of a variable, and the variable of a mean."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer computes."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """As for `Optimizer.apply_gradients`."""
        pairs = list(grads_and_vars)
        train = self._optimizer.apply_gradients(pairs, global_step, name)
        updated = [variable for gradient, variable in pairs if gradient is not None]
        with get_default_graph().control_dependencies([train] if self._follows else []):
            means = self._means.apply(updated)
        self._other = {}
        for variable in updated:
            mean: Any = self._means.average(variable)
            self._other |= {variable.op.name: mean, mean.op.name: variable}
        return group(train, means, name="train_with_avg")

    def swapping_saver(
        self, var_list: Mapping[str, Any] | Iterable[Any] | None = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Saver:
        """A saver that saves the means under the names of the variables, and the variables under those of the means.

        Args:
            var_list: As for `tf.train.Saver`; all global variables when None.
            name: Name of the saver.
            **kwargs: As for `tf.train.Saver`.

        Raises:
            RuntimeError: No gradients have been applied yet.
        """
        if self._other is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        listed: Any = global_variables() if var_list is None else var_list
        named: Mapping[str, Any] = listed if isinstance(listed, Mapping) else {each.op.name: each for each in listed}
        swapped = {key: self._other.get(each.op.name, each) for key, each in named.items()}
        return Saver(swapped, name=name, **kwargs)
