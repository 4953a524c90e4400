"""``tf.tpu``: what of it has a meaning without TPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tfray.framework import dtypes
from tfray.framework.graph import Operation
from tfray.library.layers.losses import Reduction
from tfray.library.platform import logging
from tfray.library.variables.variable_scope import VariableScope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.training.optimizers.optimizer import Optimizer

__all__ = ["CrossShardOptimizer", "bfloat16_scope"]


class CrossShardOptimizer(Optimizer):
    """An optimizer that combines the gradients of the cores of a TPU, for another one.

    Here a model has one shard, so that the other optimizer gets the gradients as they are.

    Args:
        opt: The other optimizer.
        reduction: ``tf.losses.Reduction.MEAN`` or ``SUM``.
        name: The optimizer's name.
        group_assignment: Accepted for TensorFlow's sake.

    Raises:
        ValueError: There is no such reduction.
        TypeError: `opt` is no optimizer.
    """

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = Reduction.MEAN,
        name: str = "CrossShardOptimizer",
        group_assignment: Sequence[Sequence[int]] | None = None,
    ) -> None:
        if reduction not in (Reduction.SUM, Reduction.MEAN):
            raise ValueError(f"reduction is {reduction!r}, expected tf.losses.Reduction.MEAN or SUM")
        if not isinstance(opt, Optimizer):
            raise TypeError(f"opt is {opt!r}, expected a tf.train.Optimizer")
        super().__init__(False, name)
        self._opt = opt

    def compute_gradients(  # type: ignore[override]
        self, loss: Any, var_list: Any = None, **kwargs: Any
    ) -> list[tuple[Any, Any]]:
        """The other optimizer's gradients, as `Optimizer.compute_gradients`."""
        logging.warning("CrossShardOptimizer: there are no TPUs, and so one shard")
        return self._opt.compute_gradients(loss, var_list=var_list, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """The other optimizer's update, as `Optimizer.apply_gradients`."""
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, var: Any, name: str) -> Any:
        """A slot of the other optimizer."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Names of the slots of the other optimizer."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Any]:
        """The variables of the other optimizer."""
        return self._opt.variables()


def _in_float32(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A variable of float32 where bfloat16 is asked for, read as that."""
    if kwargs.get("dtype") is not dtypes.bfloat16:
        return getter(*args, **kwargs)
    return array_ops.cast(getter(*args, **{**kwargs, "dtype": dtypes.float32}), dtypes.bfloat16)


@contextmanager
def bfloat16_scope() -> Iterator[VariableScope]:
    """A variable scope in which variables of bfloat16, of any shape, are kept in float32, and cast when read.

    Yields:
        The scope.
    """
    with variable_scope("", custom_getter=_in_float32) as scope:
        yield scope
