"""What is measured: for each benchmark a module with a table `CASES`.

These modules run under every side's interpreter: they import NumPy and the standard library only, and reach the
implementation through the `Backend` that they are given.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """What one step cannot do without, on any implementation: its floor.

    Attributes:
        bytes: That must move: each input read once, each result written once.
        flops: Operations on floating-point numbers; a product that is added to a sum counts two.
    """

    bytes: float = 0.0
    flops: float = 0.0


@dataclass(frozen=True)
class Counted:
    """A step whose work was counted."""

    step: Callable[[], Any]
    work: Work


Step = Callable[[], Any] | Counted
"""What a case gives: the function of one step, with its work where that is known."""


class Backend(Protocol):
    """What a side offers to the cases.

    Attributes:
        tf: The module with TensorFlow 1's names: `tfray`, or `tensorflow.compat.v1`.
    """

    tf: Any

    def unoptimized_config(self) -> Any:
        """A ``ConfigProto`` under which every operation runs as written."""

    def cluster(self, jobs: Mapping[str, int], nodes: int | None = None) -> AbstractContextManager[Any]:
        """Start that many tasks of each job, and give the target of a session on them.

        Args:
            jobs: Job name to number of tasks.
            nodes: Over how many nodes to spread the workers; all other tasks have one each. None puts all on one.
        """


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes:
        open: Context manager that builds everything and gives the function of one step.
        sides: The implementations that can run it.
        options: Given to `open` over the options of the command line.
        note: What to know about the results, shown beneath them.
        works_ahead: Whether it does something for later steps while nobody asks for one, as prefetching does. The first
            step of a block then does not count: its work may have been done before.
    """

    open: Callable[[Any, Options], AbstractContextManager[Step]]
    sides: tuple[str, ...] = ("tfray", "tensorflow")
    options: Options = field(default_factory=dict)
    note: str = ""
    works_ahead: bool = False


def cases_of(bench: str) -> dict[str, Case]:
    """The cases of a benchmark by name."""
    cases: dict[str, Case] = importlib.import_module(f"benchmarks.cases.{bench}").CASES
    return cases
