"""What backup workers save when workers are slow now and then (OSDI 2016, section 6.3, figures 7 and 8).

Measured with delays given to the workers of this machine; and simulated for clusters that it cannot hold, by the very
protocol that decides in training who counts, on a clock of its own. The simulation takes from the measurement what a
step costs beside the delays.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import tfray as tf
from benchmarks.delays import Delays, delayed, digits_input, perceptron
from tfray.actors.replicas.replica_protocol import (
    AsyncProtocol,
    Commit,
    Complete,
    Decision,
    Join,
    ReplicaProtocol,
    Start,
    SyncProtocol,
)

WARM_UP_STEPS = 3


@dataclass(frozen=True)
class BackupResult:
    """Synchronous steps with a number of backup workers.

    Attributes:
        workers: Workers whose gradients count.
        backups: Workers beyond them.
        times_s: Times of the steps.
    """

    workers: int
    backups: int
    times_s: Sequence[float]

    @property
    def median_s(self) -> float:
        """Median time of a step."""
        return float(np.median(self.times_s))

    @property
    def p90_s(self) -> float:
        """What nine of ten steps do not exceed."""
        return float(np.percentile(self.times_s, 90))

    def gain(self, without: BackupResult) -> float:
        """How much less time a step takes than without backups, for the workers that there are: above 1 they pay."""
        return without.median_s / self.median_s * self.workers / (self.workers + self.backups)


def measure(workers: int, backups: int, steps: int, delays: Delays) -> BackupResult:
    """Train on a local Ray, and take the time of every step."""
    scaling = tf.train.ScalingConfig(
        workers=workers + backups, backup_workers=backups, cpus_per_worker=0.1, cpus_per_parameter_server=0.1
    )
    run = tf.train.RunConfig(steps=steps + WARM_UP_STEPS, logdir=None, seed=0)
    trainer = tf.train.Trainer(perceptron(0.1), delayed(digits_input(8 * workers), delays), scaling, run)
    history = trainer.fit().history
    return BackupResult(workers, backups, [record.duration_s for record in history[WARM_UP_STEPS:]])


def simulate(workers: int, backups: int, steps: int, delays: Delays, overhead_s: float) -> BackupResult:
    """What the steps would take if each replica computed for its delay, and nothing else took time but `overhead_s`."""
    replicas = workers + backups
    protocol = SyncProtocol(workers, steps, expected=replicas)
    ends = list(_run(protocol, _sources(replicas, delays), overhead_s))
    return BackupResult(workers, backups, np.diff([0.0, *ends]).tolist())


def simulate_throughput(workers: int, backups: int | None, steps: int, delays: Delays, overhead_s: float) -> float:
    """How many batches of workers count in a second, simulated as in `simulate`.

    Args:
        workers: Workers that there are.
        backups: How many of them are backup workers; None for asynchronous training.
        steps: Synchronous steps, or batches of each worker.
        delays: For which each computes a batch.
        overhead_s: What else a step takes.
    """
    if backups is not None:
        members = workers - backups
        return members / float(np.mean(simulate(members, backups, steps, delays, overhead_s).times_s))
    updates = workers * steps
    ends = list(_run(AsyncProtocol(updates), _sources(workers, delays), overhead_s))
    return updates / ends[-1]


def _sources(replicas: int, delays: Delays) -> list[Iterator[float]]:
    return [delays.of(replica) for replica in range(replicas)]


def _run(protocol: ReplicaProtocol, sources: Sequence[Iterator[float]], overhead_s: float) -> Iterator[float]:
    """Run a protocol on simulated replicas. Yields the time at which each step ends."""
    events: list[tuple[float, int, Callable[[], Sequence[Decision]]]] = []
    order = itertools.count()
    members: dict[int, set[int]] = {}
    delivered: dict[int, set[int]] = {}
    combining: set[int] = set()

    def later(at_s: float, event: Callable[[], Sequence[Decision]]) -> None:
        heapq.heappush(events, (at_s, next(order), event))

    def compute(now_s: float, replica: int, step: int) -> None:
        ends_s = now_s + next(sources[replica])

        def deliver() -> Sequence[Decision]:
            delivered[step].add(replica)
            decisions = protocol.delivered(replica, step)
            combine_if_complete(ends_s, step)
            return decisions

        later(ends_s, deliver)

    def combine_if_complete(now_s: float, step: int) -> None:
        if step in members and members[step] <= delivered[step] and step not in combining:
            combining.add(step)
            later(now_s + overhead_s, lambda: protocol.applied(step))

    def execute(now_s: float, decisions: Sequence[Decision]) -> Iterator[float]:
        for decision in decisions:
            match decision:
                case Start(step, replicas, known):
                    delivered[step] = set()
                    if known is not None:
                        members[step] = set(known)
                    for replica in replicas:
                        compute(now_s, replica, step)
                case Join(step, replica):
                    compute(now_s, replica, step)
                case Commit(step, chosen):
                    members[step] = set(chosen)
                    combine_if_complete(now_s, step)
                case Complete():
                    yield now_s

    for replica in range(len(sources)):
        yield from execute(0.0, protocol.joined(replica))
    while not protocol.finished:
        now_s, _, event = heapq.heappop(events)
        yield from execute(now_s, event())


def overhead_of(measured: BackupResult, delays: Delays) -> float:
    """What a measured step took beside the longest of its delays, in the median; at least 0."""
    ideal = simulate(measured.workers, measured.backups, 2000, delays, 0.0)
    return max(0.0, measured.median_s - ideal.median_s)


def plot(
    measured: Sequence[BackupResult],
    simulated: Sequence[BackupResult],
    throughput: Mapping[str, Mapping[int, float]],
    path: str,
) -> None:
    """Step times and gains by the number of backup workers; batches per second by the number of workers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    times, gains, rates = figure.subplots(1, 3)
    for results, label in ((measured, "measured"), (simulated, "simulated")):
        backups = [result.backups for result in results]
        name = f"{label}, {results[0].workers} workers"
        times.errorbar(
            backups,
            [1e3 * result.median_s for result in results],
            [[0.0] * len(results), [1e3 * (result.p90_s - result.median_s) for result in results]],
            marker="o",
            capsize=3,
            label=name,
        )
        gains.plot(backups, [result.gain(results[0]) for result in results], marker="o", label=name)
    for mode, by_workers in throughput.items():
        rates.plot(list(by_workers), list(by_workers.values()), marker="o", label=mode)
    times.set(xlabel="backup workers", ylabel="step time, ms (median, bar to 90th percentile)", xticks=backups)
    gains.set(xlabel="backup workers", ylabel="t(0)/t(b) x n/(n+b)", xticks=backups)
    gains.axhline(1.0, color="grey", linewidth=0.8)
    rates.set(xlabel="workers, simulated", ylabel="batches that count, per second", xticks=list(by_workers))
    times.legend()
    rates.legend()
    figure.savefig(path, dpi=100)
