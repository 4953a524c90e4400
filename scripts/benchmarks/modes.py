"""How asynchronous, synchronous and backup training learn: loss against time, and against examples.

The same model, data and delays for all. A synchronous step takes the mean over all examples of its workers, and as many
times the learning rate: so each example moves the parameters as far in all of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

import tfray as tf
from benchmarks.delays import Delays, delayed, digits_input, perceptron

RATE = 0.1
"""Learning rate of a step on the examples of one worker."""


@dataclass(frozen=True)
class ModeResult:
    """One way to train.

    Attributes:
        name: What it is called.
        examples: Examples that had counted after each step.
        seconds: Time since the first step's end.
        losses: Loss of each step.
        dropped: Gradients that came too late.
        mean_staleness: Updates between reading and updating, on average.
    """

    name: str
    examples: Sequence[int]
    seconds: Sequence[float]
    losses: Sequence[float]
    dropped: int
    mean_staleness: float

    def until(self, loss: float) -> tuple[float, int] | None:
        """Seconds and examples until the smoothed loss falls below a value; None when it never does."""
        smooth = _smooth(self.losses)
        below = np.flatnonzero(smooth < loss)
        return (self.seconds[below[0]], self.examples[below[0]]) if below.size else None


def measure(name: str, scaling: tf.train.ScalingConfig, examples: int, batch: int, delays: Delays) -> ModeResult:
    """Train on a number of examples, `batch` of each worker in a step."""
    counted = batch * scaling.required
    run = tf.train.RunConfig(steps=max(2, examples // counted), logdir=None, seed=0)
    trainer = tf.train.Trainer(
        perceptron(RATE * scaling.required), delayed(digits_input(counted), delays), scaling, run
    )
    ends: list[float] = []
    trainer.run = _with_clock(run, ends)
    result = trainer.fit()
    losses = [record.metrics["loss"] for record in result.history]
    steps = range(1, len(losses) + 1)
    statistics = result.statistics
    seconds = [end - ends[0] for end in ends]
    return ModeResult(
        name, [step * counted for step in steps], seconds, losses, statistics.dropped, statistics.mean_staleness
    )


def _with_clock(run: tf.train.RunConfig, ends: list[float]) -> tf.train.RunConfig:
    return replace(run, on_step=lambda record: ends.append(time.perf_counter()))


def _smooth(losses: Sequence[float], width: int = 8) -> np.ndarray:
    """Mean over the last steps."""
    sums = np.cumsum(losses)
    counts = np.minimum(np.arange(1, len(losses) + 1), width)
    before = np.concatenate([np.zeros(min(width, len(losses))), sums[:-width]])
    return (sums - before) / counts


def plot(results: Sequence[ModeResult], path: str) -> None:
    """Loss against time, and against examples."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    by_time, by_examples = figure.subplots(1, 2, sharey=True)
    for result in results:
        smooth = _smooth(result.losses)
        by_time.plot(result.seconds, smooth, label=result.name)
        by_examples.plot(result.examples, smooth, label=result.name)
    by_time.set(xlabel="seconds", ylabel="loss", yscale="log")
    by_examples.set(xlabel="examples")
    by_time.legend()
    figure.savefig(path, dpi=120)
