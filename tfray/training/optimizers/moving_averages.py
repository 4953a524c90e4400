"""Moving averages of variables, which often predict better than their last values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import checked
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables import variables
from tfray.library.variables.moving_average import assign_moving_average
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.math import math_ops
from tfray.training.optimizers import slot_creator
from tfray.training.optimizers.optimizer import Hyperparameter


class ExponentialMovingAverage:
    """Keeps exponential moving averages of variables: in each step ``decay`` of the average remains.

        ema = tf.train.ExponentialMovingAverage(decay=0.999)
        with tf.control_dependencies([train_op]):
            train_op = ema.apply(tf.trainable_variables())
        ...
        saver = tf.train.Saver(ema.variables_to_restore())  # to evaluate with the averages

    Args:
        decay: Between 0 and 1, mostly close to 1: a number or scalar tensor.
        num_updates: Number of steps so far, mostly the global step. With it the decay is at most
            ``(1 + num_updates) / (10 + num_updates)``, so that averages move faster at first.
        zero_debias: Correct the averages of tensors, which start at 0, for their start.
        name: Name of the averages, under that of each variable.
    """

    @checked
    def __init__(
        self,
        decay: Hyperparameter,
        num_updates: Hyperparameter | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates: Any = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Any] = {}
        self._debiased: set[Any] = set()

    @property
    def name(self) -> str:
        """Name of the averages."""
        return self._name

    def apply(self, var_list: Iterable[Any] | None = None) -> Operation:
        """Make the averages that do not exist, and an operation that updates all of them.

        The average of a variable starts at its initial value; that of a tensor at 0.

        Args:
            var_list: Variables or tensors of floating dtypes; the trainable variables when None.

        Returns:
            The operation. Run it after each training step.

        Raises:
            TypeError: A variable is not floating.
        """
        var_list = list(variables.trainable_variables() if var_list is None else var_list)
        for var in var_list:
            if not var.dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {var.name} is {var.dtype.name}")
            if var not in self._averages:
                self._averages[var] = self._create(var)
        with get_default_graph().name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, dtypes.float32, name="decay")
            if self._num_updates is not None:
                count = array_ops.cast(self._num_updates, dtypes.float32, name="num_updates")
                decay = math_ops.minimum(decay, (1.0 + count) / (10.0 + count))
            updates = [
                assign_moving_average(self._averages[var], var, decay, zero_debias=var in self._debiased)
                for var in var_list
            ]
            return grouping_ops.group(*updates, name=scope)

    def _create(self, var: Any) -> Any:
        graph = get_default_graph()
        with graph.control_dependencies(None):
            if isinstance(var, Variable):
                average = slot_creator.create_slot(var, var.initialized_value(), self._name)
                graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
                return average
            if not var.shape.is_fully_defined():
                raise InvalidArgumentError(f"{var.name!r} has shape {var.shape}: its moving average needs a known one")
            if self._zero_debias:
                self._debiased.add(var)
            return slot_creator.create_zeros_slot(var, self._name, colocate_with_primary=False)

    def average(self, var: Any) -> Any | None:
        """The variable that holds the average of `var`, or None where there is none."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """Name of the variable that holds, or would hold, the average of `var`: what a checkpoint calls it."""
        if var in self._averages:
            name: str = self._averages[var].op.name
            return name
        return get_default_graph().unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Iterable[Any] | None = None) -> dict[str, Any]:
        """For a saver that is to fill variables with their averages: variables by their names in the checkpoint.

        Args:
            moving_avg_variables: The variables that have averages; by default the trainable ones and those in
                ``GraphKeys.MOVING_AVERAGE_VARIABLES``.
        """
        if moving_avg_variables is None:
            moving_avg_variables = variables.trainable_variables() + variables.moving_average_variables()
        averaged = list(dict.fromkeys(moving_avg_variables))
        by_name = {self.average_name(var): var for var in averaged}
        names = {var.op.name for var in averaged}
        for var in dict.fromkeys(variables.global_variables()):
            if var.op.name not in names:
                by_name.setdefault(var.op.name, var)
        return by_name
