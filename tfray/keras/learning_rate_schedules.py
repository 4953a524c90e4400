"""``tf.keras.optimizers.schedules``: learning rates that change with the number of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfray.framework.graph import Tensor
from tfray.library.layers.descriptions import Described, described, restored
from tfray.training.optimizers import learning_rate_decay

__all__ = [
    "ExponentialDecay", "InverseTimeDecay", "LearningRateSchedule", "PiecewiseConstantDecay", "PolynomialDecay",
    "deserialize", "serialize",
]  # fmt: skip


class LearningRateSchedule(Described):
    """A learning rate for each step. Derived classes define ``__call__(step)``."""

    def __call__(self, step: Any) -> Any:
        """The rate after so many steps."""
        raise NotImplementedError("Learning rate schedule must override __call__")


class ExponentialDecay(LearningRateSchedule):
    """``initial_learning_rate * decay_rate ** (step / decay_steps)``; with `staircase` the quotient is rounded down."""

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        self._given = initial_learning_rate, decay_steps, decay_rate, staircase
        self.name = name

    def __call__(self, step: Any) -> Tensor:
        rate, steps, factor, staircase = self._given
        return learning_rate_decay.exponential_decay(rate, step, steps, factor, staircase, self.name)


class InverseTimeDecay(ExponentialDecay):
    """``initial_learning_rate / (1 + decay_rate * step / decay_steps)``; `staircase` as for `ExponentialDecay`."""

    def __call__(self, step: Any) -> Tensor:
        rate, steps, factor, staircase = self._given
        return learning_rate_decay.inverse_time_decay(rate, step, steps, factor, staircase, self.name)


class PiecewiseConstantDecay(LearningRateSchedule):
    """The first of the values up to the first boundary, the second up to the second one, and so on.

    Raises:
        ValueError: There is not one value more than there are boundaries.
    """

    def __init__(self, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError("The length of boundaries should be 1 less than the length of values")
        self.boundaries, self.values, self.name = list(boundaries), list(values), name

    def __call__(self, step: Any) -> Tensor:
        return learning_rate_decay.piecewise_constant(step, self.boundaries, self.values, self.name)


class PolynomialDecay(LearningRateSchedule):
    """From one learning rate to another in `decay_steps`; see `tf.train.polynomial_decay`."""

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        end_learning_rate: Any = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str | None = None,
    ) -> None:
        self._given = initial_learning_rate, decay_steps, end_learning_rate, power, cycle
        self.name = name

    def __call__(self, step: Any) -> Tensor:
        rate, steps, end, power, cycle = self._given
        return learning_rate_decay.polynomial_decay(rate, step, steps, end, power, cycle, self.name)


def serialize(learning_rate_schedule: LearningRateSchedule) -> Any:
    """A schedule as plain data; see `deserialize`."""
    return described(learning_rate_schedule)


def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The schedule that `serialize` told of, made anew.

    Args:
        config: The description.
        custom_objects: Classes of the program, by name.
    """
    return restored(config, custom_objects)
