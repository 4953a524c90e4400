"""Writes the results of a training run: its history as JSON, its curves as PNG, its variables as NPZ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from tfray.errors import NotFoundError
from tfray.training.trainer.step_history import StepRecord

INK: Final = "#1b1f24"
FAINT: Final = "#d0d7de"
COLORS: Final = ("#0969da", "#bc4c00", "#1a7f37", "#8250df")

MAX_TIMES: Final = 20_000
"""Number of steps above which a plot leaves some of them out."""


def write_history(
    path: Path, records: Sequence[StepRecord], test_metrics: Mapping[str, float], about: Mapping[str, Any]
) -> None:
    """Write one run as JSON, one line per step.

    Args:
        path: The file.
        records: One per step.
        test_metrics: Loss and metrics on test data; may be empty.
        about: What was run, such as the number of workers.
    """
    parts = {name: json.dumps(value) for name, value in {**about, "test": _finite(test_metrics)}.items()}
    parts["history"] = "[\n  " + ",\n  ".join(json.dumps(_row(record)) for record in records) + "\n ]"
    path.write_text("{\n " + ",\n ".join(f'"{name}": {text}' for name, text in parts.items()) + "\n}\n")


def _row(record: StepRecord) -> dict[str, Any]:
    row = {
        "step": record.step,
        **_finite(record.metrics),
        "duration_s": record.duration_s,
        "live": record.live,
        "dropped": record.dropped,
        "members": record.members,
    }
    return row | ({"bad_gradients": record.bad_gradients} if record.bad_gradients else {})


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}  # JSON has no NaN


def write_variables(path: Path, variables: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write the values of variables, by name, for `numpy.load`."""
    with path.open("wb") as file:
        np.savez(file, **variables)  # type: ignore[arg-type]


def figure_class() -> Any:
    """Matplotlib's Figure. Raises `NotFoundError` with the remedy when it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NotFoundError("plotting needs Matplotlib: pip install 'tfray[examples]'") from error
    return Figure


def plot_history(
    path: Path, records: Sequence[StepRecord], test_metrics: Mapping[str, float], title: str, subtitle: str
) -> None:
    """Draw loss, metrics and the time per step as PNG.

    Args:
        path: The file.
        records: One per step; at least one.
        test_metrics: Loss and metrics on test data, drawn as lines across.
        title: What was run; stands above the curves.
        subtitle: How it was run.
    """
    records = sorted(records, key=lambda record: record.step)  # asynchronous steps end in any order
    names = list(records[0].metrics)
    panels = ["loss", *(["metrics"] if len(names) > 1 else []), "time"]
    figure = figure_class()(figsize=(4.6 * len(panels), 4.0), layout="constrained")
    figure.suptitle(f"{title}\n", x=0.008, ha="left", color=INK, fontsize=12, fontweight="bold")
    figure.text(0.008, 0.9, subtitle, color=INK, fontsize=9.5)
    for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        _style(axes)
        if panel == "time":
            _plot_times(axes, records)
        else:
            _plot_metrics(axes, records, names[:1] if panel == "loss" else names[1:], test_metrics)
    figure.savefig(path, dpi=150, format="png")


def _style(axes: Any) -> None:
    axes.grid(color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8.5, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
    axes.set_xlabel("step", color=INK, fontsize=9)


def _plot_metrics(
    axes: Any, records: Sequence[StepRecord], names: Sequence[str], test_metrics: Mapping[str, float]
) -> None:
    steps = np.array([record.step for record in records])
    for name, color in zip(names, COLORS, strict=False):
        values = np.array([record.metrics[name] for record in records])
        axes.plot(steps, values, color=color, alpha=0.25, linewidth=0.8)
        axes.plot(steps, _smooth(values), color=color, linewidth=1.8, label=f"{name}, training")
        if name in test_metrics:
            label = f"{name}, test: {test_metrics[name]:.4g}"
            axes.axhline(test_metrics[name], color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label=label)
        if name == "loss" and np.all(values > 0):
            axes.set_yscale("log")
    axes.set_title(", ".join(names), loc="left", color=INK, fontsize=10)
    axes.legend(frameon=False, fontsize=8.5, labelcolor=INK)


def _plot_times(axes: Any, records: Sequence[StepRecord]) -> None:
    thin = max(1, len(records) // MAX_TIMES)
    steps = np.array([record.step for record in records[::thin]])
    times_ms = 1000 * np.array([record.duration_s for record in records[::thin]])
    median_ms, tail_ms = np.percentile(times_ms, [50, 95])
    axes.scatter(steps, times_ms, s=5, color=COLORS[0], alpha=0.4, linewidths=0)
    axes.axhline(median_ms, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label=f"median {median_ms:.3g} ms")
    axes.axhline(tail_ms, color=COLORS[1], linewidth=1.0, linestyle=(0, (1, 2)), label=f"95 % within {tail_ms:.3g} ms")
    axes.set_ylim(0, max(2 * tail_ms, 1.2 * median_ms))  # one slow step, the first mostly, would flatten the rest
    axes.set_title("time per step, ms", loc="left", color=INK, fontsize=10)
    axes.legend(frameon=False, fontsize=8.5, labelcolor=INK)


def _smooth(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Moving average over a thirtieth of the run, with shorter windows at its ends."""
    half = len(values) // 60
    sums = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(len(values))
    begin, end = np.maximum(index - half, 0), np.minimum(index + half + 1, len(values))
    return (sums[end] - sums[begin]) / (end - begin)
