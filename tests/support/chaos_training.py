"""A training run in a process of its own that notes what it does, for tests that strike it: see `test_chaos.py`.

Run as a program, ``chaos_training.py FOLDER``, it trains as the file `settings.json` in the folder says.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import tfray as tf
from tfray.actors.clusters.cluster import Cluster
from tfray.actors.replicas.membership import ElasticMembership
from tfray.training.checkpoints import saver
from tfray.training.trainer.run_checkpoints import RunCheckpoints

EXAMPLES, INPUTS, BATCH, LATE = 240, 8, 24, 240
"""The loss is measured over the last `LATE` steps: so many see every example many times."""

STEP_S, LATE_STEP_S = 0.1, 1.0
"""How long a batch takes to come while the run is being struck, and when it is about to end too early."""

PHASES = {
    "driver": "start",
    "restoring": "restore",
    "restored": "restore",
    "replacing": "replacement",
    "changing": "elastic change",
    "saving": "save",
    "step": "steps",
    "end": "end",
}
"""By what a run has noted last, what it is doing."""


# -- what is learned -----------------------------------------------------------------------------------


def noisy_data():
    """Numbers that depend on others, but not by these alone: a model of them never comes to rest."""
    rng = np.random.default_rng(11)
    features = rng.normal(size=(EXAMPLES, INPUTS)).astype(np.float32)
    labels = features @ rng.normal(size=INPUTS) + 0.5 * rng.normal(size=EXAMPLES)
    return features, labels.astype(np.float32)


def linear_model(features, labels):
    """A model with random numbers, whose shards each count the steps that they apply."""
    weights = tf.Variable(np.zeros((INPUTS, 1), np.float32), name="weights")
    bias = tf.Variable(np.zeros(1, np.float32), name="bias")
    predicted = tf.squeeze(tf.matmul(features + tf.random_normal(tf.shape(features), 0.0, 0.01), weights), [1]) + bias
    loss = tf.reduce_mean(tf.square(predicted - labels))
    step = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss, global_step=tf.train.get_or_create_global_step())
    for number in range(2):
        # Large enough that each shard gets one, and that a save takes a while.
        ballast = tf.Variable(np.zeros(1 << 18, np.float32), trainable=False, name=f"ballast_{number}")
        with tf.control_dependencies([step]), tf.colocate_with(ballast.op):
            step = tf.group(tf.Variable(np.int64(0), trainable=False, name=f"count_{number}").assign_add(1))
    return tf.train.ModelSpec(loss, step)


def paced_input(folder, steps):
    """Batches take their time until the file ``fast`` is there."""
    input_fn, fast = tf.train.array_input(*noisy_data(), batch_size=BATCH, shuffle_seed=7), Path(folder, "fast")

    def input_of(context):
        for step, batch in enumerate(input_fn(context), context.first_step):
            if not fast.exists():
                time.sleep(STEP_S if step < steps - LATE else LATE_STEP_S)
            yield batch

    return input_of


# -- the process ---------------------------------------------------------------------------------------


def train(folder):
    """Train as the settings say, and leave the variables in ``variables.npz``."""
    settings, folder = json.loads(Path(folder, "settings.json").read_text()), Path(folder)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    notes = os.open(folder / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(*words):
        os.write(notes, f"{time.monotonic()} {' '.join(map(str, words))}\n".encode())

    note("driver", os.getpid())
    with contextlib.ExitStack() as wrapped:
        _note_calls(note, wrapped)
        result = tf.train.Trainer(
            linear_model,
            paced_input(folder, settings["steps"]),
            tf.train.ScalingConfig(**_paired(settings["scaling"])),
            tf.train.RunConfig(
                steps=settings["steps"],
                on_step=lambda record: note("step", record.step, record.metrics["loss"], record.live),
                logdir=None,
                checkpoint_dir=str(folder / "run"),
                max_recoveries=10_000,
                max_worker_restarts=10_000,
                **settings["run"],
            ),
        ).fit()
    np.savez(folder / "variables.npz", **result.variables)
    note("end")


def _paired(scaling):
    """JSON has lists only."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in scaling.items()}


def _note_calls(note, wrapped):
    """Let functions of the trainer note that they begin, and that they have ended."""

    def notes(owner, name, before, after=None, about=lambda self: ()):
        call = getattr(owner, name)

        def noting(self, *arguments, **named):
            note(before, *about(self))
            value = call(self, *arguments, **named)
            if after is not None:
                note(after, *about(self))
            return value

        setattr(owner, name, noting)
        wrapped.callback(setattr, owner, name, call)

    notes(RunCheckpoints, "restore", "restoring", "restored", lambda checkpoints: [checkpoints.step])
    notes(RunCheckpoints, "save", "saving")
    notes(Cluster, "replace_dead", "replacing")
    notes(ElasticMembership, "_change", "changing")
    start = saver._Background.start

    def noting_start(self, work):
        def noting_work():
            note("writing")
            try:
                work()
            finally:
                note("written")

        start(self, noting_work)

    saver._Background.start = noting_start
    wrapped.callback(setattr, saver._Background, "start", start)


# -- the test's side -----------------------------------------------------------------------------------


class Training:
    """A run in a process of its own, which goes on in another when it has been killed.

    Args:
        folder: Where its settings, notes, checkpoints and result are.
        address: Of Ray.
        steps: Number of steps.
        scaling: Arguments of `ScalingConfig`.
        run: Further arguments of `RunConfig`.

    Attributes:
        notes: What it has noted, as far as `look` has read: the time, a word, and numbers.
        lives: How many processes there were.
    """

    def __init__(self, folder, address, steps, scaling, run):
        self.folder = folder
        self.steps = steps
        self.notes = []
        self.lives = 0
        self._read = 0
        self._writes = False
        folder.mkdir()
        plain = {"steps": steps, "scaling": scaling, "run": {"address": address, **run}}
        (folder / "settings.json").write_text(json.dumps(plain))
        self.start()

    def start(self):
        """Begin, or go on."""
        self.lives += 1
        self._born_at = time.monotonic()
        with open(self.folder / "output", "ab") as output:
            command = [sys.executable, __file__, str(self.folder)]
            self.process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        """Kill the process, and go on in another."""
        self.process.kill()
        self.process.wait()
        self.start()

    def go_fast(self):
        (self.folder / "fast").touch()

    @property
    def is_over(self):
        """Whether it has come to its end. Fails when it ended in another way."""
        code = self.process.poll()
        assert not code, f"training failed with exit code {code}:\n{self.output()}"
        return code == 0

    def output(self, lines=60):
        return "\n".join((self.folder / "output").read_text(errors="replace").splitlines()[-lines:])

    def look(self):
        """Read what has been noted since. Returns whether there was anything."""
        try:
            with open(self.folder / "notes", "rb") as file:
                file.seek(self._read)
                fresh = file.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return False
        if not fresh:
            return False
        self._read += len(fresh) + 1
        for line in fresh.decode().splitlines():
            moment, word, *numbers = line.split()
            self.notes.append((float(moment), word, *map(float, numbers)))
            self._writes = word == "writing" or (self._writes and word not in ("written", "driver"))
        return True

    @property
    def phase(self):
        """What it is doing, by its notes."""
        self.look()
        words = [word for moment, word, *_ in self.notes[-8:] if word in PHASES and moment > self._born_at]
        if not words:
            return "start"
        return "write" if words[-1] == "step" and self._writes else PHASES[words[-1]]

    @property
    def moved_at(self):
        """When it last noted something."""
        self.look()
        return self.notes[-1][0] if self.notes else 0.0

    def steps_noted(self):
        """Moment, number and loss of each step, those that were lost and done again included."""
        return [(moment, int(numbers[0]), numbers[1]) for moment, word, *numbers in self.notes if word == "step"]

    def losses(self):
        """The loss of every step, as it was when it counted."""
        return {step: loss for _, step, loss in self.steps_noted()}

    def variables(self):
        return dict(np.load(self.folder / "variables.npz"))

    def assert_in_order(self):
        """Each process went on from what it restored, and did one step after the other, up to the last."""
        expected = 0
        for _, word, *numbers in self.notes:
            if word == "restored":
                expected = int(numbers[0])
            elif word == "step":
                expected += 1
                assert int(numbers[0]) == expected
        assert expected == self.steps


if __name__ == "__main__":
    train(sys.argv[1])
