"""``tensorflow.python.eager.monitoring``: named numbers of a process, which programs count and set."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

ValueT = TypeVar("ValueT")


class GaugeCell(Generic[ValueT]):
    """The value of a metric for some labels."""

    def __init__(self, value: ValueT) -> None:
        self._value = value

    def set(self, value: ValueT) -> None:
        """Set the value."""
        self._value = value

    def value(self) -> ValueT:
        """The value."""
        return self._value


class CounterCell(GaugeCell[int]):
    """A value that grows."""

    def increase_by(self, value: int) -> None:
        """Add a number. Raises `ValueError` for a negative one."""
        if value < 0:
            raise ValueError(f"a counter grows, it cannot be increased by {value}")
        self._value += value


class Metric(Generic[ValueT]):
    """Values by labels.

    Args:
        name: The metric's name, a path.
        description: What it tells.
        labels: Names of the labels.
    """

    FIRST: ClassVar[bool | int | str]

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self.name, self.description, self.labels = name, description, labels
        self._cells: dict[tuple[str, ...], GaugeCell[ValueT]] = {}

    def get_cell(self, *labels: str) -> GaugeCell[ValueT]:
        """The value for some labels.

        Raises:
            ValueError: There are more labels, or fewer, than the metric has.
        """
        if len(labels) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}; {labels} are given")
        return self._cells.setdefault(labels, self._cell())

    def _cell(self) -> GaugeCell[ValueT]:
        return GaugeCell(self.FIRST)  # type: ignore[arg-type]  # of the subclass's type


class Counter(Metric[int]):
    """Numbers that grow."""

    FIRST = 0

    def _cell(self) -> CounterCell:
        return CounterCell(0)


class IntGauge(Metric[int]):
    """Whole numbers."""

    FIRST = 0


class StringGauge(Metric[str]):
    """Texts."""

    FIRST = ""


class BoolGauge(Metric[bool]):
    """Bools."""

    FIRST = False
