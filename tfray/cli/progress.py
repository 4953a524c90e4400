"""A progress bar for training: step, loss, speed, live replicas and dropped gradients."""

from __future__ import annotations

import importlib.util
import os
import pdb
import sys
import time
from types import TracebackType
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tfray.training.trainer.step_history import StepRecord

REFRESH_S: Final = 0.1
"""Seconds between two changes of the numbers on the screen: to format them at every step would slow short steps."""

LINES: Final = 10
"""How many lines a run prints if its output is not a terminal but a file or a pipe."""

WIDE: Final = 100
"""Columns that a terminal must have to show the metrics beside the loss."""


class TrainingProgress:
    """Shows a run on standard error. Give its `update` every step's record; use it as a context manager.

    On a terminal, and in a notebook with ipywidgets, it is a live bar, which gets out of the way when ``breakpoint()``
    starts a debugger. Elsewhere it is a few plain lines.

    Args:
        steps: Number of steps of the whole run.
        enabled: Whether to show anything.
        console: Where to show it.
    """

    def __init__(self, steps: int, enabled: bool = True, console: Console | None = None) -> None:
        self._steps = steps
        self._enabled = enabled
        self._console = console or Console(stderr=True, highlight=False)
        self._bar = _bar(self._console) if enabled and _is_live(self._console) else None
        self._task: TaskID | None = None
        self._shown = 0.0
        self._speed = _Speed()
        self._breakpoint_hook = sys.breakpointhook

    def __enter__(self) -> TrainingProgress:
        if self._bar is not None:
            self._task = self._bar.add_task("", total=self._steps, text="starting")
            self._bar.start()
            self._breakpoint_hook, sys.breakpointhook = sys.breakpointhook, self._stop_and_break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            sys.breakpointhook = self._breakpoint_hook
            self._bar.stop()

    def update(self, record: StepRecord) -> None:
        """Show that a step has ended."""
        done = self._speed.count()  # not the step's number: asynchronous steps end in any order
        last = done >= self._steps
        if self._bar is not None and self._task is not None:
            now = time.perf_counter()
            if last or now - self._shown >= REFRESH_S:
                self._shown = now
                self._bar.update(self._task, completed=done, text=self._describe(record))
        elif self._enabled and (last or done % max(1, self._steps // LINES) == 0):
            self._console.print(f"step {done}/{self._steps}  {self._describe(record)}", soft_wrap=True)

    def _describe(self, record: StepRecord) -> str:
        wide = self._console.width >= WIDE or not self._console.is_terminal
        shown = record.metrics.items() if wide else list(record.metrics.items())[:1]
        parts = [f"{name} {value:.4g}" for name, value in shown]
        parts += [format_speed(self._speed.per_second()), f"{record.live} live", f"{record.dropped} dropped"]
        return "  ".join(parts)

    def _stop_and_break(self, *args: Any, **kwargs: Any) -> Any:
        """Stop the bar, then break: a debugger's prompt under a bar that redraws itself cannot be read."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        sys.breakpointhook = self._breakpoint_hook
        if os.environ.get("PYTHONBREAKPOINT"):
            return self._breakpoint_hook(*args, **kwargs)
        return pdb.Pdb().set_trace(sys._getframe(1))  # the frame that called breakpoint(), not this one


def format_speed(per_second: float) -> str:
    """Steps per second, to three digits."""
    return f"{per_second:.0f} steps/s" if per_second >= 100 else f"{per_second:.3g} steps/s"


def _is_live(console: Console) -> bool:
    # In a notebook rich redraws with ipywidgets, and without them shows nothing but a warning: then lines are better.
    return console.is_terminal or (console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("step {task.completed:.0f}/{task.total:.0f}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
        console=console,
        expand=True,
        refresh_per_second=1 / REFRESH_S,
    )


class _Speed:
    """Steps per second, over roughly the last two seconds; the first step, which compiles, does not count."""

    WINDOW_S: Final = 2.0

    def __init__(self) -> None:
        self._done = 0
        self._marks: list[tuple[float, int]] = []

    def count(self) -> int:
        """One more step has ended. Returns how many have."""
        self._done += 1
        if not self._marks:
            self._marks.append((time.perf_counter(), self._done))
        return self._done

    def per_second(self) -> float:
        """The speed now."""
        now = time.perf_counter()
        self._marks.append((now, self._done))
        while len(self._marks) > 2 and now - self._marks[1][0] > self.WINDOW_S:
            del self._marks[0]
        begin, done = self._marks[0]
        return (self._done - done) / (now - begin) if now > begin else 0.0
