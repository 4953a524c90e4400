"""Training that is interrupted and resumed, in one process and on Ray, is the training that was not."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.local_ray import start_local_ray
from tests.support.processes import PATIENCE_S, freeze, kill_actor, wait_for
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model, random_model, scaling
from tfray.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from tfray.formats import files
from tfray.formats.checkpoint_folder import stray_files
from tfray.formats.holder import Holder
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.training.checkpoints.checkpoint_interval import AutomaticInterval, FailureRecord, best_interval_s
from tfray.training.checkpoints.folder_lock import FolderLock

STEPS = 24


def trainer(folder, steps=STEPS, size=None, **run):
    return tf.train.Trainer(
        random_model(OPTIMIZERS["adam"]),
        tf.train.array_input(*classification_data(), batch_size=24, shuffle_seed=1),
        size or scaling(),
        tf.train.RunConfig(steps=steps, seed=3, checkpoint_dir=folder, logdir=None, **run),
    )


def assert_same(found, expected):
    """The same parameters, slots and losses, bit for bit."""
    assert found.variables.keys() == expected.variables.keys()
    for name, value in expected.variables.items():
        np.testing.assert_array_equal(found.variables[name], value, err_msg=name)
    losses = {record.step: record.metrics for record in expected.history}
    for record in found.history:
        assert record.metrics == losses[record.step]


class Interrupted(Exception):
    """Stands for anything that ends a run."""


def interrupt_at(step):
    def on_step(record):
        if record.step == step:
            raise Interrupted

    return on_step


# -- in one process ------------------------------------------------------------------------------------


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The driver is killed.",
    happens="The same command, started again, goes on from the newest checkpoint.",
    promise="What a checkpoint holds is not lost, and the result equals that of a run that was not killed.",
)
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("step", [1, 7, 12, 23])
def test_a_run_that_is_resumed_equals_one_that_was_not(tmp_path, step, asynchronous):
    expected = trainer(None, local=True).fit()
    options = {"local": True, "save_every_steps": 5, "asynchronous_checkpoints": asynchronous}
    with pytest.raises(Interrupted):
        trainer(tmp_path, on_step=interrupt_at(step), **options).fit()
    resumed = trainer(tmp_path, **options).fit()
    assert resumed.history[0].step == (step - 1) // 5 * 5 + 1
    assert_same(resumed, expected)
    assert tf.train.latest_checkpoint(tmp_path) == f"{tmp_path}/model.ckpt-{STEPS}"


def test_a_run_goes_on_in_tensorflows_format(tmp_path):
    """Both formats hold all that a run needs: from either it goes on in the other, bit for bit."""
    expected = trainer(None, local=True).fit()
    for steps, write_format in ((4, "tensorflow"), (9, "tfray"), (STEPS, "tensorflow")):
        resumed = trainer(tmp_path, steps, local=True, checkpoint_format=write_format).fit()
    assert_same(resumed, expected)
    newest = tf.train.latest_checkpoint(tmp_path)
    assert open_checkpoint(newest).format_name == "TensorFlow V2"
    assert not list(tmp_path.glob("*.part")) and not stray_files(f"{tmp_path}/model.ckpt-", series=True)


def test_a_finished_run_has_nothing_left_to_do(tmp_path):
    first = trainer(tmp_path, local=True).fit()
    again = trainer(tmp_path, local=True).fit()
    assert again.steps == 0
    assert_same(again, first)
    longer = trainer(tmp_path, STEPS + 3, local=True).fit()
    assert [record.step for record in longer.history] == [STEPS + 1, STEPS + 2, STEPS + 3]


def test_a_run_can_begin_anew(tmp_path):
    first = trainer(tmp_path, local=True).fit()
    again = trainer(tmp_path, local=True, resume=False).fit()
    assert again.steps == STEPS
    assert_same(again, first)


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A process is killed while it saves.",
    happens="The checkpoint before is the newest one.",
    promise="What is there under the name of a checkpoint is complete, and what is left of the save is cleared away.",
)
def test_what_interrupted_saves_leave_is_cleared_away(tmp_path):
    for name in (
        "model.ckpt-3.data-00000-of-00001-0123456789ab.arrow",
        "model.ckpt-3.index.tfray-tmp-0123456789ab",
        "checkpoint.tfray-tmp-0123456789ab",
    ):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    trainer(tmp_path, 2, local=True).fit()
    assert sorted({path.name.partition(".data")[0] for path in tmp_path.iterdir()}) == [
        "checkpoint",
        "failures.json",
        "model.ckpt-2",
        "model.ckpt-2.index",
        "notes.txt",
    ]


def test_what_saves_leave_that_a_run_outlives_is_cleared_away(tmp_path):
    """Such as that of a save during which a parameter server died."""

    def on_step(record):
        if record.step == 3:
            (tmp_path / "model.ckpt-3.data-00000-of-00001-0123456789ab.arrow").write_bytes(b"half")

    trainer(tmp_path, 5, local=True, on_step=on_step).fit()
    assert not stray_files(f"{tmp_path}/model.ckpt-", series=True)


def test_another_models_checkpoint_is_refused(tmp_path):
    trainer(tmp_path, 2, local=True).fit()
    other = trainer(tmp_path, 3, local=True)
    other._model_fn = dense_model(OPTIMIZERS["adagrad"])
    with pytest.raises(NotFoundError, match=r"another model.*checkpoint_dir"):
        other.fit()


def test_settings_that_cannot_be_are_refused():
    for options in ({"save_every_steps": 0}, {"save_every_s": 1, "save_every_steps": 1}, {"save_every_s": 5.0}):
        with pytest.raises(InvalidArgumentError, match=r"at least 1|exclude|checkpoint_dir"):
            tf.train.RunConfig(**options)


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from tests.training.trainer import test_trainer_checkpoints as tests
def on_step(record):
    print(record.step, flush=True)
tests.trainer({folder!r}, 100000, on_step=on_step, local=True).fit()
"""


@pytest.mark.fault(
    "Drivers and checkpoints",
    "SIGTERM, as schedulers send it.",
    happens="The run saves, and its process ends with exit code 143.",
    promise="No step is lost.",
)
def test_sigterm_saves_and_ends_the_process(tmp_path):
    program = PROGRAM.format(tests=str(ROOT), folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) == 20:
            process.send_signal(signal.SIGTERM)
            break
    last = int([20, *process.stdout.read().split()][-1])
    assert process.wait(PATIENCE_S) == 143
    assert tf.train.latest_checkpoint(tmp_path) == f"{tmp_path}/model.ckpt-{last}"
    record = json.loads((tmp_path / "failures.json").read_text())
    assert record["finished"] and record["failures"] == 0


# -- what a run may delete -----------------------------------------------------------------------------

FOREIGN = (
    "train.data-00000-of-00002.arrow",
    "train.data-00000-of-00002-0123456789ab.arrow",  # another program's saver's, perhaps being written
    "report.docx.tmp-0123456789ab",
    "report.docx.tfray-tmp-0123456789ab",
    "model.ckpt-3.data-00000-of-00001.arrow",
    "model.ckpt-3.data-00000-of-00001-notes.arrow",
    "model.ckpt-3.index.tmp-0123456789ab",
    "model.ckpt-3.meta",
    "model.ckpt.data-00000-of-00001-0123456789ab.arrow",
    "best-4.data-00000-of-00001-0123456789ab.arrow",
    "checkpoint.tmp-0123456789ab",
    "checkpoint.bak",
    ".tfray-tmp-0123456789ab",
)


@pytest.mark.fault(
    "Drivers and checkpoints",
    "Files of yours lie in the checkpoint folder.",
    happens="They stay, whatever their names.",
    promise="A run deletes only what it has made.",
)
def test_a_run_deletes_nothing_that_it_has_not_made(tmp_path):
    for name in FOREIGN:
        (tmp_path / name).write_text(name)
    trainer(tmp_path, 12, local=True, save_every_steps=3, keep_checkpoints=1).fit()
    trainer(tmp_path, 15, local=True, save_every_steps=1, keep_checkpoints=1).fit()
    trainer(tmp_path, 6, local=True, save_every_steps=3, keep_checkpoints=1, resume=False).fit()
    for name in FOREIGN:
        assert (tmp_path / name).read_text() == name


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A checkpoint folder is copied, and training goes on in the copy.",
    happens="The copy has its own checkpoints from then on.",
    promise="The original is left as it was.",
)
def test_a_copy_of_a_run_leaves_the_run_alone(tmp_path):
    trainer(tmp_path / "run", 4, local=True, save_every_steps=1, keep_checkpoints=3).fit()
    before = sorted(path.name for path in (tmp_path / "run").iterdir())
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    # Earlier versions, and TensorFlow, name checkpoints by absolute paths, which a copy has too.
    paths = [f"{tmp_path}/run/model.ckpt-{step}" for step in (2, 3, 4)]
    tf.train.update_checkpoint_state(tmp_path / "copy", paths[-1], paths)
    longer = trainer(tmp_path / "copy", 9, local=True, save_every_steps=1, keep_checkpoints=3).fit()
    assert longer.history[0].step == 5
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == before
    assert not tf.train.checkpoint_exists(f"{tmp_path}/copy/model.ckpt-4")


# -- damage --------------------------------------------------------------------------------------------


def damage(prefix, suffix=".data-"):
    """Change a byte in the middle of the largest such file of a checkpoint."""
    path = max(Path(prefix).parent.glob(f"{Path(prefix).name}{suffix}*"), key=lambda path: path.stat().st_size)
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 1
    path.write_bytes(contents)


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The newest checkpoint is damaged.",
    happens="A `Trainer` goes back to the one before and says so. Other sessions raise `tf.errors.DataLossError`.",
    promise="Every changed byte is noticed, and damaged values are never used.",
)
@pytest.mark.parametrize("suffix", [".data-", ".index"])
def test_a_damaged_newest_checkpoint_is_told_of_and_the_one_before_taken(tmp_path, caplog, suffix):
    expected = trainer(None, 12, local=True).fit()
    trainer(tmp_path, 9, local=True, save_every_steps=3).fit()
    damage(tmp_path / "model.ckpt-9", suffix)
    resumed = trainer(tmp_path, 12, local=True, save_every_steps=3).fit()
    assert resumed.history[0].step == 7
    assert_same(resumed, expected)
    (line,) = (record.getMessage() for record in caplog.records if "damaged" in record.getMessage())
    assert f"{tmp_path}/model.ckpt-9 is damaged" in line and f"goes back to {tmp_path}/model.ckpt-6" in line
    assert "\n" not in line
    tf.train.load_variable(f"{tmp_path}/model.ckpt-9", "global_step")  # saved again


def test_going_back_is_one_line_on_standard_error(tmp_path):
    trainer(tmp_path, 9, local=True, save_every_steps=3).fit()
    damage(tmp_path / "model.ckpt-9")
    program = PROGRAM.format(tests=str(ROOT), folder=str(tmp_path)).replace("100000", "10")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.stdout.split() == ["7", "8", "9", "10"]
    (line,) = ended.stderr.splitlines()
    assert f"{tmp_path}/model.ckpt-9 is damaged: training goes back to {tmp_path}/model.ckpt-6" in line


def test_two_damaged_checkpoints_are_skipped(tmp_path):
    trainer(tmp_path, 9, local=True, save_every_steps=3).fit()
    damage(tmp_path / "model.ckpt-9")
    for path in tmp_path.glob("model.ckpt-6.data-*"):
        path.unlink()
    assert trainer(tmp_path, 10, local=True).fit().history[0].step == 4


@pytest.mark.fault(
    "Drivers and checkpoints",
    "All checkpoints are damaged.",
    happens="`tf.errors.DataLossError`, which names `--resume-from` and `resume=False`.",
    promise="A run never begins anew over them by itself.",
)
def test_a_run_does_not_begin_anew_over_damaged_checkpoints(tmp_path):
    trainer(tmp_path, 6, local=True, save_every_steps=3).fit()
    for step in (3, 6):
        damage(tmp_path / f"model.ckpt-{step}")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("model*")}
    with pytest.raises(DataLossError, match=r"model\.ckpt-6.*--resume-from.*resume=False"):
        trainer(tmp_path, 8, local=True).fit()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("model*")} == before
    assert trainer(tmp_path, 8, local=True, resume=False).fit().history[0].step == 1


def test_a_run_begins_where_it_is_told_to(tmp_path):
    expected = trainer(None, 12, local=True).fit()
    trainer(tmp_path / "a", 9, local=True, save_every_steps=3).fit()
    again = trainer(tmp_path / "a", 10, local=True, resume_from=tmp_path / "a" / "model.ckpt-3").fit()
    assert again.history[0].step == 4
    other = trainer(tmp_path / "b", 12, local=True, resume_from=tmp_path / "a" / "model.ckpt-6").fit()
    assert other.history[0].step == 7
    assert_same(other, expected)
    with pytest.raises(NotFoundError, match="resume_from"):
        trainer(tmp_path / "a", 10, local=True, resume_from=tmp_path / "model.ckpt-3").fit()
    damage(tmp_path / "a" / "model.ckpt-6")
    with pytest.raises(DataLossError, match=r"begin from another.*model\.ckpt-9"):
        trainer(tmp_path / "a", 12, local=True, resume_from=tmp_path / "a" / "model.ckpt-6").fit()
    for options in ({"resume_from": "x"}, {"resume_from": "x", "checkpoint_dir": "y", "resume": False}):
        with pytest.raises(InvalidArgumentError, match="resume_from"):
            tf.train.RunConfig(**options)


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The file `checkpoint`, which names the newest one, is lost or empty.",
    happens="A `Trainer` goes on from the newest one that is there. In doubt it asks, as other sessions do.",
    promise="Training does not restart at step 1 over what lies there.",
)
@pytest.mark.parametrize("contents", [None, b"", b"\n\n", b"\xff\xfe nothing", b"all_model_checkpoint_paths: 3"])
def test_a_lost_state_file_does_not_restart_a_run(tmp_path, caplog, contents):
    trainer(tmp_path, 12, local=True, save_every_steps=3).fit()
    (tmp_path / "checkpoint").unlink() if contents is None else (tmp_path / "checkpoint").write_bytes(contents)
    times = [path.stat().st_mtime for path in tmp_path.glob("*.index")]
    for path in tmp_path.glob("*.index"):  # times of copied files tell nothing
        os.utime(path, (max(times), max(times)))
    os.utime(tmp_path / "model.ckpt-3.index", (max(times) + 9, max(times) + 9))
    assert trainer(tmp_path, 14, local=True).fit().history[0].step == 13
    assert "model.ckpt-12, the newest that is there" in caplog.text
    assert tf.train.latest_checkpoint(tmp_path).endswith("-14")


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The file `checkpoint`, which names the newest one, is lost or empty.",
    happens="A `Trainer` goes on from the newest one that is there. In doubt it asks, as other sessions do.",
    promise="Training does not restart at step 1 over what lies there.",
)
def test_in_doubt_a_run_asks(tmp_path):
    """A run that began anew, and was interrupted, left its checkpoints among those of a longer one."""
    trainer(tmp_path, 12, local=True, save_every_steps=3).fit()
    trainer(tmp_path, 4, local=True, save_every_steps=4, resume=False).fit()
    assert trainer(tmp_path, 5, local=True).fit().history[0].step == 5
    (tmp_path / "checkpoint").unlink()
    with pytest.raises(FailedPreconditionError, match=r"model\.ckpt-5 is the newest.*model\.ckpt-12.*--resume-from"):
        trainer(tmp_path, 14, local=True).fit()


def test_a_state_file_that_names_what_is_gone(tmp_path, caplog):
    trainer(tmp_path, 9, local=True, save_every_steps=3).fit()
    (tmp_path / "model.ckpt-9.index").unlink()
    assert trainer(tmp_path, 10, local=True).fit().history[0].step == 7
    assert "model.ckpt-9 is gone: training goes back to" in caplog.text
    tf.train.update_checkpoint_state(tmp_path, "/elsewhere/other-3", ["/elsewhere/other-3"])
    assert trainer(tmp_path, 11, local=True).fit().history[0].step == 11


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The record of failures is damaged.",
    happens="A warning; the count begins anew.",
    promise="Training is not blocked.",
)
@pytest.mark.parametrize(
    "contents", [b"", b"{", b"[]", b"\xff", b'{"trained_s": NaN, "failures": 1, "finished": true}', b"[" * 100000]
)
def test_a_damaged_record_of_failures_does_not_block_training(tmp_path, caplog, contents):
    trainer(tmp_path, 2, local=True).fit()
    (tmp_path / "failures.json").write_bytes(contents)
    assert trainer(tmp_path, 3, local=True).fit().history[0].step == 3
    assert "failures.json cannot be read" in caplog.text
    assert json.loads((tmp_path / "failures.json").read_text())["failures"] == 0


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The record of failures is damaged.",
    happens="A warning; the count begins anew.",
    promise="Training is not blocked.",
)
@pytest.mark.parametrize("kind", ["folder", "full folder", "link to itself", "link to a folder"])
def test_a_record_of_failures_that_is_no_file_does_not_block_training(tmp_path, caplog, kind):
    trainer(tmp_path, 2, local=True).fit()
    path = tmp_path / "failures.json"
    path.unlink()
    if kind.endswith("folder") and not kind.startswith("link"):
        path.mkdir()
        if kind == "full folder":
            (path / "mine").touch()
    else:
        path.symlink_to(path if kind == "link to itself" else tmp_path.parent)
    assert trainer(tmp_path, 5, local=True, save_every_steps=1).fit().history[0].step == 3
    assert caplog.text.count("failures.json cannot be read") == 1
    assert tf.train.latest_checkpoint(tmp_path).endswith("-5")
    assert not list(tmp_path.glob("failures.json.*")), "no temporary file is left"
    assert kind != "full folder" or (path / "mine").exists()


# -- one run at a time ---------------------------------------------------------------------------------


@pytest.mark.fault(
    "Drivers and checkpoints",
    "Two runs use one checkpoint folder.",
    happens="`tf.errors.FailedPreconditionError` for the second, with process and machine of the first.",
    promise="Neither touches a file of the other. The lock of a process that has died is taken over.",
)
def test_two_runs_do_not_share_a_folder(tmp_path):
    """Another process holds the folder; when it is killed, its lock is stale, and known to be."""
    program = PROGRAM.format(tests=str(ROOT), folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        held = rf"in use by process {process.pid} on .*, since .*choose another checkpoint_dir"
        with pytest.raises(FailedPreconditionError, match=held):
            trainer(tmp_path, 3, local=True).fit()
        freeze(process.pid)  # it is slow, not gone
        with pytest.raises(FailedPreconditionError, match=held):
            trainer(tmp_path, 3, local=True).fit()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert (tmp_path / "tfray.lock").exists()
    trainer(tmp_path, 3, local=True).fit()
    assert not (tmp_path / "tfray.lock").exists()


def test_a_run_within_a_run_on_the_same_folder(tmp_path):
    def on_step(record):
        with pytest.raises(FailedPreconditionError, match="in use by process"):
            trainer(tmp_path, 3, local=True).fit()

    trainer(tmp_path, 2, local=True, on_step=on_step).fit()
    trainer(tmp_path, 3, local=True).fit()


@pytest.mark.fault(
    "Drivers and checkpoints",
    "Two runs use one checkpoint folder.",
    happens="`tf.errors.FailedPreconditionError` for the second, with process and machine of the first.",
    promise="Neither touches a file of the other. The lock of a process that has died is taken over.",
)
def test_a_lock_of_another_machine_is_watched(tmp_path, monkeypatch):
    monkeypatch.setattr("tfray.training.checkpoints.folder_lock.RENEWAL_S", 0.1)
    lock, path = FolderLock(str(tmp_path)), tmp_path / "tfray.lock"
    lock.take()
    there = Holder.from_bytes(path.read_bytes())
    lock.release()
    away = replace(there, space="elsewhere", host="elsewhere", token="0123456789ab")
    ended = threading.Event()

    def renew():
        for renewals in itertools.count():
            files.replace_durably(path, replace(away, renewals=renewals).to_bytes(), synced=False)
            if ended.wait(0.01):
                return

    renewing = threading.Thread(target=renew)
    renewing.start()
    wait_for(path.exists)
    try:
        with pytest.raises(FailedPreconditionError, match=r"process .* on elsewhere"):
            lock.take()
    finally:
        ended.set()
        renewing.join()
    monkeypatch.setattr("tfray.training.checkpoints.folder_lock.LEASE_S", 0.3)
    lock.take()  # of which there is no sign of life now
    lock.check()
    (tmp_path / "tfray.lock").unlink()
    lock.check()
    (tmp_path / "tfray.lock").write_bytes(away.to_bytes())
    with pytest.raises(AbortedError, match=r"taken over by process .* on elsewhere"):
        lock.check()
    lock.release()
    assert (tmp_path / "tfray.lock").read_bytes() == away.to_bytes()


def test_a_run_whose_lock_was_taken_over_saves_no_more(tmp_path):
    def on_step(record):
        if record.step == 5:
            mine = Holder.from_bytes((tmp_path / "tfray.lock").read_bytes())
            (tmp_path / "tfray.lock").write_bytes(replace(mine, token="0123456789ab").to_bytes())

    with pytest.raises(AbortedError, match="taken over"):
        trainer(tmp_path, 12, local=True, save_every_steps=2, on_step=on_step).fit()
    assert tf.train.latest_checkpoint(tmp_path).endswith("-4")


def test_a_lock_on_an_object_store(monkeypatch):
    from pyarrow import fs

    monkeypatch.setattr("tfray.training.checkpoints.folder_lock.SETTLE_S", 0.05)
    tf.gfile.register_file_system("locked", fs._MockFileSystem())
    tf.gfile.MakeDirs("locked://bucket/run")
    first, second = FolderLock("locked://bucket/run"), FolderLock("locked://bucket/run")
    first.take()
    with pytest.raises(FailedPreconditionError, match="in use"):
        second.take()
    first.release()
    second.take()
    second.release()


# -- the interval --------------------------------------------------------------------------------------


def lost_share(interval_s, cost_s, mtbf_s):
    """Expected overhead of a unit of work, for failures that come at random (Daly's equation 13)."""
    return mtbf_s / interval_s * (np.exp((interval_s + cost_s) / mtbf_s) - 1)


@pytest.mark.parametrize(("cost_s", "mtbf_s"), [(1, 3600), (10, 600), (0.01, 86400), (60, 600)])
def test_the_interval_loses_least(cost_s, mtbf_s):
    intervals = np.geomspace(cost_s / 10, 100 * mtbf_s, 20000)
    least = min(lost_share(intervals, cost_s, mtbf_s))
    assert lost_share(best_interval_s(cost_s, mtbf_s), cost_s, mtbf_s) < 1.002 * least


def test_the_interval_follows_costs_and_failures():
    failures = FailureRecord(86400)
    interval = AutomaticInterval(failures)
    first = interval.seconds
    for _ in range(20):
        interval.saved(10.0, 12.0)
    costly = interval.seconds
    assert costly > 3 * first
    failures.trained_s, failures.failures = 3600, 30
    assert interval.seconds < costly / 4
    interval.saved(0.001, 500.0)
    assert interval.seconds >= 500, "saves do not overlap"


def test_an_unclean_end_counts_as_a_failure(tmp_path):
    with pytest.raises(Interrupted):
        trainer(tmp_path, local=True, on_step=interrupt_at(3)).fit()
    trainer(tmp_path, local=True).fit()
    assert json.loads((tmp_path / "failures.json").read_text())["failures"] == 1


# -- on Ray --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(_ray_of_the_session):
    """What training on two shards and two workers gives when nothing happens."""
    start_local_ray(_ray_of_the_session)
    with tf.Graph().as_default():
        return trainer(None, size=scaling(2, 2)).fit()


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server dies in a run with checkpoints.",
    happens="The run goes back to its newest checkpoint. One line tells of it.",
    promise="The result equals that of a run in which nothing happened.",
)
@pytest.mark.ray
@pytest.mark.parametrize(
    ("interruption", "at"),
    [
        pytest.param("error", 13, marks=pytest.mark.slow),
        ("shard", 13),
        pytest.param("everything", 3, marks=pytest.mark.slow),  # before the first checkpoint
        pytest.param("shard", 3, marks=pytest.mark.slow),
        pytest.param("everything", 13, marks=pytest.mark.slow),
    ],
)
def test_a_cluster_run_that_is_resumed_equals_one_that_was_not(
    ray_local, uninterrupted, tmp_path, clusters, interruption, at
):
    size = scaling(2, 2)

    def on_step(record):
        if record.step == at and not (tmp_path / "struck").exists():
            (tmp_path / "struck").touch()
            if interruption == "error":
                raise Interrupted
            for task in range(2 if interruption == "everything" else 1):
                kill_actor(ray_local, clusters[-1], f"/job:ps/task:{task}/device:CPU:0")

    made = trainer(tmp_path / "run", size=size, save_every_steps=5, on_step=on_step)
    if interruption == "error":
        with pytest.raises(Interrupted):
            made.fit()
        resumed = made.fit()
        assert resumed.history[0].step == 11
    else:
        resumed = made.fit()
        assert [record.step for record in resumed.history] == list(range(1, STEPS + 1))
        assert json.loads((tmp_path / "run" / "failures.json").read_text())["failures"] >= 1
    assert_same(resumed, uninterrupted)


@pytest.mark.ray
@pytest.mark.slow
def test_a_cluster_goes_back_from_a_damaged_checkpoint(ray_local, uninterrupted, tmp_path, caplog):
    size = scaling(2, 2)
    trainer(tmp_path, 10, size=size, save_every_steps=5).fit()
    damage(tmp_path / "model.ckpt-10")
    resumed = trainer(tmp_path, size=size, save_every_steps=5).fit()
    assert resumed.history[0].step == 6
    assert f"goes back to {tmp_path}/model.ckpt-5" in caplog.text
    assert_same(resumed, uninterrupted)


@pytest.mark.slow
@pytest.mark.ray
def test_a_run_goes_on_with_other_numbers_of_actors(ray_local, tmp_path):
    data = tf.train.array_input(*classification_data(), batch_size=24, shuffle_seed=1)

    def fit(steps, size, **options):
        run = tf.train.RunConfig(steps, seed=3, checkpoint_dir=tmp_path, logdir=None, **options)
        return tf.train.Trainer(dense_model(OPTIMIZERS["adam"]), data, size, run).fit()

    fit(6, scaling(2, 2))
    fit(12, scaling(1, 3))
    last = fit(18, scaling(), local=True)
    whole = tf.train.RunConfig(18, local=True, seed=3, logdir=None)
    expected = tf.train.Trainer(dense_model(OPTIMIZERS["adam"]), data, scaling(), whole).fit()
    assert [record.step for record in last.history] == list(range(13, 19))
    for name, value in expected.variables.items():
        np.testing.assert_allclose(last.variables[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.ray
@pytest.mark.slow
def test_a_lost_shard_ends_training_without_checkpoints(ray_local, clusters):
    def on_step(record):
        if record.step == 3:
            kill_actor(ray_local, clusters[-1], "/job:ps/task:0/device:CPU:0")

    with pytest.raises(UnavailableError, match=r"/job:ps/task:0"):
        trainer(None, 200, on_step=on_step).fit()


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize(
    "interval", [pytest.param({"save_every_steps": 7}, marks=pytest.mark.slow), {"save_every_s": 0.05}]
)
def test_asynchronous_training_saves_between_steps(ray_local, tmp_path, interval):
    result = trainer(tmp_path, size=scaling(2, 1, mode="async"), keep_checkpoints=0, **interval).fit()
    assert result.steps == STEPS
    state = tf.train.get_checkpoint_state(tmp_path)
    for path in state.all_model_checkpoint_paths:
        assert tf.train.load_variable(path, "global_step") == int(path.rpartition("-")[2])
    assert len(state.all_model_checkpoint_paths) >= 2
    assert state.model_checkpoint_path.endswith(f"-{STEPS}")


RAY_PROGRAM = """
import os, sys
sys.path.insert(0, {tests!r})
from tests.training.trainer import test_trainer_checkpoints as tests
def on_step(record):
    os.write({steps_to}, b"%d\\n" % record.step)  # not to the output, where Ray writes too
tests.trainer(
    {folder!r}, {steps}, tests.scaling(2, 1), on_step=on_step, address={address!r}, save_every_steps=10
).fit()
"""


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The driver is killed.",
    happens="The same command, started again, goes on from the newest checkpoint.",
    promise="What a checkpoint holds is not lost, and the result equals that of a run that was not killed.",
)
@pytest.mark.ray
@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.slow
def test_a_driver_that_dies_is_started_again(ray_local, tmp_path, with_signal):
    address = ray_local.get_runtime_context().gcs_address

    def started(steps):
        told, steps_to = os.pipe()
        settings = {"tests": str(ROOT), "folder": str(tmp_path), "address": address, "steps_to": steps_to}
        program = RAY_PROGRAM.format(steps=steps, **settings)
        process = subprocess.Popen([sys.executable, "-c", program], pass_fds=[steps_to])
        os.close(steps_to)
        return process, open(told)

    process, told = started(10**6)
    with told:
        for line in told:
            if int(line) == 35:
                process.send_signal(with_signal)
                break
        last = int([35, *told.read().split()][-1])
    assert process.wait(PATIENCE_S) == (143 if with_signal == signal.SIGTERM else -9)
    newest = int(tf.train.latest_checkpoint(tmp_path).rpartition("-")[2])
    assert newest == last if with_signal == signal.SIGTERM else newest in (last // 10 * 10, last // 10 * 10 - 10)
    again, told = started(newest + 4)
    with told:
        assert again.wait(PATIENCE_S) == 0
        assert told.read().split() == [str(newest + i) for i in range(1, 5)]
