"""Training while processes are killed and frozen at random: every step counts once, no wait is longer than it may be,
as much is learned, and nothing is left.

Workers, parameter servers, the Raylets of their nodes and the driver are struck: SIGKILL, or SIGSTOP for 1 to 60
seconds. Every test prints what it struck in which phase of the run, and the longest pauses between two steps.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tfray as tf
from tests.support.chaos_training import BATCH, LATE, Training, linear_model, noisy_data
from tests.support.leftovers import Holdings, actor_processes, own_temporary_folder  # noqa: F401 (a fixture)
from tests.support.processes import is_alive, wait_for
from tfray.formats.checkpoint_folder import stray_files

pytestmark = pytest.mark.ray

SEEDS = range(8)

STILL_S = 120.0
"""A run in which nothing moves for so long after the last strike, and with nobody frozen, hangs."""

START_S, RECOVERY_S = 30.0, 30.0
"""How long a run may pause in any case, and for each strike that costs it something. Actors take seconds to start, and
many times as long where others use the machine."""

FROZEN_AT_ONCE = 2

KINDS = ("worker", "parameter server", "raylet", "driver")

RECOVERING = ("start", "replacement", "restore", "elastic change")
"""Phases of a run that follow a blow."""


class Strike(NamedTuple):
    """Something that was done to a run.

    Attributes:
        began: When, by the clock of the notes.
        ended: When the frozen process went on; equal to `began` for a kill.
        who: One of `KINDS`.
        phase: What the run was doing.
    """

    began: float
    ended: float
    who: str
    phase: str

    @property
    def is_freeze(self):
        return self.ended > self.began

    def __str__(self):
        how = f"frozen {self.ended - self.began:.0f} s" if self.is_freeze else "killed"
        return f"{self.who} {how} ({self.phase})"


class Nodes:
    """Ray's nodes: a head for the drivers, one for parameter servers and standbys, and three for a worker each."""

    SHARDS, WORKER = {"ps": 4}, {"worker": 1}

    def __init__(self, cluster):
        self.cluster = cluster
        cluster.add_node(num_cpus=1)
        self._resources = {}
        for resources in (self.SHARDS, self.WORKER, self.WORKER, self.WORKER):
            self._add(resources)

    def _add(self, resources):
        node = self.cluster.add_node(wait=False, num_cpus=1, resources=dict(resources))
        self._resources[node.node_id] = resources

    def raylets(self, resources=None):
        """Processes of the Raylets of nodes, by these; of those with such resources, if some are given."""
        nodes = sorted(self.cluster.worker_nodes, key=lambda node: node.node_id)
        wanted = [node for node in nodes if resources in (None, self._resources[node.node_id])]
        return {node: node.all_processes["raylet"][0].process.pid for node in wanted}

    def actors(self, resources):
        """Processes of the actors on nodes with such resources."""
        return sorted(pid for raylet in self.raylets(resources).values() for pid in actor_processes(raylet))

    def mend(self):
        """Put another in the place of each node whose Raylet has ended."""
        for node, raylet in self.raylets().items():
            if not is_alive(raylet):
                self.cluster.remove_node(node, allow_graceful=False)
                self._add(self._resources.pop(node.node_id))


class Chaos:
    """Strikes a run, at random, and sees that it moves all the same.

    Args:
        nodes: Where it runs.
        training: The run.
        seed: Of what is done.
        allowed: Pairs of a kind and ``"kill"`` or ``"freeze"``.
        longest_s: Of freezes, which are mostly short.
        spare: How many workers the run goes on without when they are frozen.
    """

    def __init__(self, nodes, training, seed, allowed, longest_s=60.0, spare=0):
        self.nodes = nodes
        self.training = training
        self.random = random.Random(seed)
        self.allowed = sorted(allowed)
        self.longest_s = longest_s
        self.spare = spare
        self.strikes = []
        self._frozen = []
        """Those that go on by themselves: when, and which process."""
        self._bag = []

    def rage(self, count):
        """Strike so often, or until the run is over; then let it move once more."""
        try:
            while len(self.strikes) < count and not self.training.is_over:
                self._choose_moment()
                self._strike()
            while self._frozen:
                self._turn()
            self.until(lambda: self.has_stepped_since(self._last_ended))
        finally:
            for _, pid in self._frozen:
                self._thaw(pid)

    # -- when --------------------------------------------------------------------------------------

    def _choose_moment(self):
        """Wait for a moment to strike: soon, in a save, while the run recovers from the last blow, or when it has."""
        choice = self.random.random()
        last = max((strike.began for strike in self.strikes), default=0.0)
        missing = set(RECOVERING) - self.phases
        has_begun_again = bool(self.strikes) and self.strikes[-1].who == "driver" and not self.strikes[-1].is_freeze
        if missing and (has_begun_again or self.random.random() < 0.5):
            self.until(lambda: self.training.phase in missing or self._goes_on_since(last))
        elif choice < 0.25:
            self._for(self.random.uniform(0.1, 3.0))
        elif choice < 0.45:
            phase, ends = self.random.choice(["save", "write"]), time.monotonic() + 3.0
            self.until(lambda: self.training.phase == phase or time.monotonic() > ends)
        elif choice < 0.7:
            phase = self.random.choice(RECOVERING)
            self.until(lambda: self.training.phase == phase or self._goes_on_since(last))
        else:
            self.until(lambda: self._goes_on_since(last))
            self._for(self.random.uniform(0.0, 3.0))

    def _goes_on_since(self, moment):
        """Whether there has been a step since, or there cannot be for now."""
        return len(self._frozen) == FROZEN_AT_ONCE or self.has_stepped_since(moment)

    def has_stepped_since(self, moment):
        self.training.look()
        return any(note[1] == "step" and note[0] > moment for note in self.training.notes[-20:])

    def _for(self, duration_s):
        ends = time.monotonic() + duration_s
        self.until(lambda: time.monotonic() > ends)

    def until(self, condition):
        while not condition() and not self.training.is_over:
            self._turn()

    def _turn(self):
        """Let whoever is due go on, keep up the nodes, and see that something moves."""
        time.sleep(0.005)  # looks at what other processes write
        now = time.monotonic()
        while self._frozen and self._frozen[0][0] <= now:
            self._thaw(heapq.heappop(self._frozen)[1])
        self.nodes.mend()
        if now - max(self.training.moved_at, self._last_ended, self._began) > STILL_S:
            pytest.fail(f"nothing has moved for {STILL_S:.0f} s after {self.last()}\n{self.dump()}")

    # -- what --------------------------------------------------------------------------------------

    def _strike(self):
        if not self._bag:
            self._bag = [*self.allowed]
            self.random.shuffle(self._bag)
        who, how = self._bag.pop()
        frozen = {pid for _, pid in self._frozen}
        found = [pid for pid in self._processes(who) if pid not in frozen]
        if not found or self.training.is_over or (how == "freeze" and len(frozen) == FROZEN_AT_ONCE):
            return
        pid, phase, now = self.random.choice(found), self.training.phase, time.monotonic()
        if how == "kill" and who == "driver":
            self.training.kill()
        elif how == "kill":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
            duration_s = self.longest_s ** self.random.random()
            heapq.heappush(self._frozen, (now + duration_s, pid))
            self.strikes.append(Strike(now, now + duration_s, who, phase))
            return
        self.strikes.append(Strike(now, now, who, phase))

    def _processes(self, who):
        if who == "driver":
            return [self.training.pid]
        if who == "raylet":
            return list(self.nodes.raylets().values())
        return self.nodes.actors(Nodes.SHARDS if who == "parameter server" else Nodes.WORKER)

    @staticmethod
    def _thaw(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    # -- what came of it ---------------------------------------------------------------------------

    @property
    def phases(self):
        """In which phases it was struck."""
        return {strike.phase for strike in self.strikes}

    @property
    def _last_ended(self):
        return max((strike.ended for strike in self.strikes), default=0.0)

    @property
    def _began(self):
        return self.training.notes[0][0] if self.training.notes else time.monotonic()

    def last(self, count=4):
        return "; ".join(f"{strike.began - self._began:.1f} s: {strike}" for strike in self.strikes[-count:])

    def pauses(self):
        """Between each step and the next: how long while it could have come, how long in all, and what fell into it."""
        moments, found = [moment for moment, *_ in self.training.steps_noted()], []
        for begin, end in itertools.pairwise(moments):
            within = [strike for strike in self.strikes if strike.ended > begin - 1.0 and strike.began < end]
            frozen = _covered([(max(begin, first), min(end, last)) for first, last in self._halts(within)])
            found.append((end - begin - frozen, end - begin, within))
        return sorted(found, key=lambda pause: -pause[0])

    def _halts(self, strikes):
        """Spans of time in which a run had to wait for somebody who was frozen."""
        freezes = [strike for strike in strikes if strike.is_freeze]
        of_workers = [(each.began, each.ended) for each in freezes if each.who == "worker"]
        if not any(strike.who == "driver" for strike in strikes):  # a new driver needs all to begin
            together = itertools.combinations(of_workers, self.spare + 1)
            of_workers = [(max(begins), min(ends)) for begins, ends in (zip(*each, strict=True) for each in together)]
        return of_workers + [(each.began, each.ended) for each in freezes if each.who != "worker"]

    def assert_patience(self):
        """No pause was longer than what fell into it explains."""
        for waited_s, whole_s, within in self.pauses():
            costs = sum(not strike.is_freeze or strike.who == "raylet" for strike in within)
            allowed_s = START_S + RECOVERY_S * costs
            assert waited_s < allowed_s, f"no step for {whole_s:.0f} s: {'; '.join(map(str, within))}"

    def report(self):
        """What was struck, by phase, and the longest pauses."""
        phases = sorted(self.phases)
        lines = [f"{'':28}" + "".join(f"{phase:>15}" for phase in phases)]
        for kind in KINDS:
            for is_freeze in (False, True):
                of_kind = [strike for strike in self.strikes if (strike.who, strike.is_freeze) == (kind, is_freeze)]
                counts = Counter(strike.phase for strike in of_kind)
                name = f"{kind} {'frozen' if is_freeze else 'killed'}"
                lines.append(f"{name:28}" + "".join(f"{counts[phase]:15}" for phase in phases))
        again = len(self.training.steps_noted()) - self.training.steps
        lines.append(f"{self.training.lives} drivers; {again} of {self.training.steps} steps were done again")
        for waited_s, whole_s, within in self.pauses()[:6]:
            lines.append(f"{waited_s:6.1f} of {whole_s:6.1f} s without a step: {'; '.join(map(str, within))}")
        return "\n".join(lines)

    def dump(self):
        """Where each thread of the driver and of the actors is."""
        spy = shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if spy is None:  # of the driver only
            os.kill(self.training.pid, signal.SIGUSR1)
            wait_for(lambda: "most recent call first" in self.training.output(1000))
            return self.training.output(400)
        dumps = [f"output of the driver:\n{self.training.output()}"]
        for pid in [self.training.pid, *sorted(actor_processes())]:
            done = subprocess.run([spy, "dump", "--pid", str(pid)], capture_output=True, text=True)
            dumps.append(done.stdout + done.stderr)
        return "\n".join(dumps)


def _covered(spans):
    """Length of the union of intervals."""
    total, reached = 0.0, 0.0
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def undisturbed_losses(steps):
    """The final losses of runs in one process that differ in the order of their examples only."""
    runs = [
        tf.train.Trainer(
            linear_model,
            tf.train.array_input(*noisy_data(), batch_size=BATCH, shuffle_seed=100 + seed),
            run=tf.train.RunConfig(steps=steps, local=True, logdir=None),
        )
        for seed in SEEDS
    ]
    return [np.mean([record.metrics["loss"] for record in run.fit().history[-LATE:]]) for run in runs]


EVERYTHING = {(who, how) for who in KINDS for how in ("kill", "freeze")}

MODES = {
    "sync": {"workers": 3},
    "backup": {"workers": 3, "backup_workers": 1},
    "async": {"workers": 3, "mode": "async"},
    "staleness": {"workers": 3, "mode": "async", "staleness": 2},
    "elastic": {"workers": (1, 3)},
    "elastic async": {"workers": (1, 3), "mode": "async"},
    "elastic shards": {"workers": 3, "backup_workers": 1, "parameter_servers": (1, 2)},
    "standbys": {"workers": 3, "backup_workers": 1, "replicated_shards": True},
    "copies": {"workers": 3, "parameter_servers": 0},
}


def spare_of(mode):
    """How many workers may be frozen while training goes on. With steps of their own, it needs one that is not."""
    return FROZEN_AT_ONCE if "mode" in MODES[mode] else MODES[mode].get("backup_workers", 0)


def scaling_of(mode):
    scaling = {"parameter_servers": 2, **MODES[mode], "cpus_per_worker": 1, "worker_resources": {"worker": 1}}
    if scaling["parameter_servers"]:
        scaling |= {"cpus_per_parameter_server": 0.1, "parameter_server_resources": {"ps": 1}}
    return scaling | {"start_timeout_s": 120}


def phases_of(mode):
    """Phases of a run that forty blows do not miss. A save is over in milliseconds, but its files are written then."""
    changes = isinstance(MODES[mode]["workers"], tuple)
    return {"start", "restore", "steps", "write"} | ({"elastic change"} if changes else set())


def trained_in_chaos(nodes, folder, mode, strikes, seed, allowed=EVERYTHING, longest_s=60.0, steps=None):
    """Train, the beginning of it in chaos. Returns the run, which is over."""
    steps = steps or LATE + 60 * strikes * (3 if "mode" in MODES[mode] else 1)
    run = {"save_every_s": 1.0, "asynchronous_checkpoints": seed % 4 != 0, "seed": 7}
    training = Training(folder, nodes.cluster.address, steps, scaling_of(mode), run)
    chaos = Chaos(nodes, training, seed, allowed, longest_s, spare_of(mode))
    try:
        chaos.until(lambda: chaos.has_stepped_since(0.0))
        chaos.rage(strikes)
        training.go_fast()
        chaos.until(lambda: False)
    finally:
        print(chaos.report())
        training.process.kill()
    assert len(chaos.strikes) == strikes
    chaos.assert_patience()
    if strikes >= 40:
        assert {"write" if phase == "save" else phase for phase in chaos.phases} >= phases_of(mode)
    return training


def assert_all_there(training, mode):
    """Every step counted once, on every shard, and as much is learned as elsewhere; with stale gradients nearly so."""
    steps, variables = training.steps, training.variables()
    training.assert_in_order()
    assert [variables[name] for name in ("global_step", "count_0", "count_1")] == [steps] * 3
    assert tf.train.load_variable(tf.train.latest_checkpoint(training.folder / "run"), "global_step") == steps
    losses = undisturbed_losses(steps)
    margin, reached = 2 * (max(losses) - min(losses)), training.losses()
    margin += 0.5 * max(losses) * ("mode" in MODES[mode])
    final = np.nanmean([reached[step] for step in range(steps - LATE + 1, steps + 1)])
    print(f"final loss {final:.6f}; undisturbed {min(losses):.6f} to {max(losses):.6f}")
    assert min(losses) - margin <= final <= max(losses) + margin
    assert not stray_files(training.folder / "run")


HEALTH_CHECKS = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
}
"""With these Ray takes a node for dead whose Raylet is frozen for ten seconds, and mostly none that only lacks time."""


@pytest.fixture
def nodes(ray_nodes, own_temporary_folder, monkeypatch):  # noqa: F811
    """Nodes for training. This process is connected to Ray, to see what is left."""
    import ray

    for name, value in HEALTH_CHECKS.items():
        monkeypatch.setenv(name, value)
    nodes = Nodes(ray_nodes)
    ray.init(address=ray_nodes.address, logging_level="warning")
    return nodes


def assert_survives(nodes, folder, mode, strikes, seed, **options):
    """Train in chaos; all is there in the end, and nothing is left."""
    import ray

    before = Holdings(ray)
    assert_all_there(trained_in_chaos(nodes, folder / "training", mode, strikes, seed, **options), mode)
    before.assert_returned(60)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_little_of_everything(nodes, tmp_path):
    assert_survives(nodes, tmp_path, "backup", 15, 1, longest_s=5.0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("mode", MODES)
def test_training_outlives_whatever_is_struck(nodes, tmp_path, mode, seed):
    """Five hundred blows in all, with those of the other tests."""
    assert_survives(nodes, tmp_path, mode, 40, seed)


UNSEEN = {("driver", "kill"), ("driver", "freeze"), ("parameter server", "kill"), ("parameter server", "freeze")}
"""What a synchronous run computes the same in spite of, and the freeze of a worker."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_synchronous_run_computes_what_it_would_have_computed_undisturbed(nodes, tmp_path):
    """Bit for bit, as long as no worker is missed: random numbers and the order of the data included."""
    struck = trained_in_chaos(nodes, tmp_path / "struck", "sync", 20, 4, UNSEEN | {("worker", "freeze")})
    assert_all_there(struck, "sync")
    assert {numbers[2] for _, word, *numbers in struck.notes if word == "step"} == {3.0}, "workers of each step"
    undisturbed = trained_in_chaos(nodes, tmp_path / "undisturbed", "sync", 0, 4, steps=struck.steps)
    for name, value in undisturbed.variables().items():
        np.testing.assert_array_equal(struck.variables()[name], value, err_msg=name)
    assert list(struck.losses().values()) == list(undisturbed.losses().values())
