"""What a session needs from the devices below it, in this process or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tfray.runtime.plan import Partition
from tfray.runtime.tracing import DeviceRecord


class RegisteredStep(Protocol):
    """The partitions of one step, compiled and known to their devices. Thread-safe."""

    def run(self, feeds: Sequence[Sequence[Any]], timeout_s: float | None = None) -> list[list[Any]]:
        """Run once: fed values per partition in, fetched values per partition out, all NumPy arrays.

        Raises:
            OpError: One error for the step, whichever device failed first.
        """

    def run_traced(
        self, feeds: Sequence[Sequence[Any]], timeout_s: float | None = None, level: int = 0
    ) -> tuple[list[list[Any]], list[DeviceRecord]]:
        """Run once, and tell what each device did. All times are on the clock of this process.

        Args:
            feeds: Fed values per partition.
            timeout_s: See `run`.
            level: How much to record: `tf.RunOptions.trace_level`.
        """

    def close(self) -> None:
        """Let the devices forget the step."""


class Runner(Protocol):
    """A set of devices that run partitions together."""

    @property
    def devices(self) -> list[str]:
        """Full device names, default first."""

    def register(self, partitions: Sequence[Partition], functions: Mapping[str, Callable[..., Any]]) -> RegisteredStep:
        """Make a step known to its devices.

        Args:
            partitions: One per device that takes part.
            functions: Python functions that operations call, by token.
        """

    def close(self) -> None:
        """Cancel running steps and release everything that this runner holds."""
