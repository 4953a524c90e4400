"""The `tfray` command: training from a script or a module, its files, its errors, its progress."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import tfray as tf
from tests.support.processes import PATIENCE_S, descendants, is_alive, wait_for
from tests.support.script import run
from tfray import cli
from tfray.cli.progress import TrainingProgress
from tfray.framework.op_def import registered_ops
from tfray.training.trainer.step_history import StepRecord

SCRIPT = '''
import os
import numpy as np
import tfray as tf
from neighbour import slope

def batches(context):
    random = np.random.default_rng(context.index)
    while True:
        x = random.normal(size=(8, 2)).astype(np.float32)
        yield x, slope(x)

def model(x, y):
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss), {"twice": 2 * loss})

def build(steps=20, unused="text"):
    """Fit a plane."""
    x = np.eye(2, dtype=np.float32)
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps)), [(x, slope(x))]

def only_trainer():
    return build()[0]

def broken_graph():
    def model(x, y):
        return tf.train.ModelSpec(tf.reduce_mean(tf.matmul(x, x)), tf.no_op())
    return tf.train.Trainer(model, batches)

def sometimes_bad():
    def input_fn(context):
        for number, (x, y) in enumerate(batches(context)):
            yield x, y * (np.nan if number == 3 else 1)

    return tf.train.Trainer(model, input_fn, run=tf.train.RunConfig(steps=4))

def unequal():
    def input_fn(context):
        for number, batch in enumerate(batches(context)):
            if number == 3 and context.index == 1:
                return
            yield batch

    return tf.train.Trainer(model, input_fn, run=tf.train.RunConfig(steps=8))

def interrupted():
    def on_step(record):
        if record.step == 3:
            raise KeyboardInterrupt
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(on_step=on_step))

def endless():
    folder = os.getcwd()

    def noting(context):
        open(os.path.join(folder, f"seen{context.index}"), "w").close()
        return batches(context)

    return tf.train.Trainer(model, noting, run=tf.train.RunConfig(steps=1_000_000))

def with_breakpoint(steps=1):
    def stop(x):
        breakpoint()
        return x

    def model_fn(x, y):
        return model(tf.reshape(tf.py_func(stop, [x], tf.float32), [-1, 2]), y)

    return tf.train.Trainer(model_fn, batches, run=tf.train.RunConfig(steps=steps))

def failing_input():
    def broken(context):  # needs no module of the script's folder: Ray may have been started elsewhere
        for number in range(100):
            if number == 3 and context.index == 1:
                raise KeyError("price")
            yield np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)

    return tf.train.Trainer(model, broken)

def wrong_type():
    return 7

def raises():
    raise RuntimeError("a mistake of the program")

limit = 3

if __name__ == "__main__":
    from tfray import cli
    cli.train(build)
'''

NEIGHBOUR = """
import numpy as np

def slope(x):
    return x @ np.float32([[2.0], [-1.0]])
"""


@pytest.fixture(autouse=True)
def program(tmp_path, monkeypatch):
    """A directory with a script and a module beside it, as the current one."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("neighbour", "script"):
        sys.modules.pop(name, None)


def started(*args, stdin=subprocess.DEVNULL):
    """A Python of its own, in a process group of its own."""
    root = os.path.dirname(os.path.dirname(cli.__file__))
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    # Ray, where an earlier test has started it in this process, leaves a debugger of its own there.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONBREAKPOINT"}
    return subprocess.Popen(
        [sys.executable, *args],
        env=inherited | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def in_a_process(*args):
    running = started(*args)
    output, errors = running.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(args, running.returncode, output, errors)


# -- training ------------------------------------------------------------------------------------------


def test_options_say_what_a_replica_computes_and_what_of_it_counts(program):
    options = ["--accumulate", "2", "--bad-gradients", "skip", "--wire-dtype", "bfloat16", "--json", "h.json"]
    result = run("run", "script.py:sometimes_bad", "--local", *options)
    assert result.exit_code == 0, result.output
    history = json.loads((program / "h.json").read_text())
    assert [history["run"]["accumulate"], history["scaling"]["wire_dtype"]] == [2, "bfloat16"]
    assert [row.get("bad_gradients") for row in history["history"]] == [None, {"0": ["w"]}, None, None]
    assert history["history"][1]["members"] == []


@pytest.mark.parametrize("target", ["script.py:build", "./script.py:build", "script:build"])
def test_trains_what_a_function_of_a_script_or_a_module_returns(target):
    result = run("run", target, "--local")
    assert result.exit_code == 0, result.output
    assert "20 steps in" in result.stdout
    assert "test:" in result.stdout and "twice" in result.stdout
    assert "step 20/20" in result.stderr


def test_options_and_settings_override_the_program():
    assert "7 steps" in run("run", "script.py:build", "--local", "steps=7").stdout
    assert "5 steps" in run("run", "script.py:build", "--local", "--steps", "5", "--", "steps=7").stdout


def test_a_trainer_alone_is_not_tested():
    assert "test:" not in run("run", "script.py:only_trainer", "--local").stdout


def test_no_progress_says_nothing_on_standard_error():
    assert run("run", "script.py:build", "--local", "--no-progress").stderr == ""


def test_writes_history_curves_and_variables(program):
    pytest.importorskip("matplotlib")
    files = [
        *("--json", "new/folder/history.json"),
        *("--plot", "new/curves.png"),
        *("--variables", "new/variables.npz"),
    ]
    result = run("run", "script.py:build", "--local", "--seed", "3", *files)
    assert result.exit_code == 0, result.output
    written = json.loads((program / "new/folder/history.json").read_text())
    assert written["target"] == "script.py:build"
    assert written["run"]["seed"] == 3
    assert [row["step"] for row in written["history"]] == list(range(1, 21))
    assert written["history"][0]["twice"] == 2 * written["history"][0]["loss"] > 0
    assert written["history"][-1]["loss"] < written["history"][0]["loss"]
    assert written["test"]["loss"] >= 0
    assert (program / "new/curves.png").read_bytes().startswith(b"\x89PNG")
    with np.load(program / "new/variables.npz") as variables:
        assert variables["w"].shape == (2, 1)


def test_a_loss_that_is_not_finite_is_null_in_the_history(program):
    (program / "neighbour.py").write_text(NEIGHBOUR.replace("2.0", "np.nan"))
    assert run("run", "script.py:build", "--local", "--json", "h.json", "--plot", "p.png").exit_code == 0
    assert json.loads((program / "h.json").read_text())["history"][-1]["loss"] is None


def test_interruption_keeps_the_history_so_far(program):
    result = run("run", "script.py:interrupted", "--local", "--json", "h.json", "--variables", "v.npz")
    assert result.exit_code == 130
    assert "interrupted after 3 steps" in result.stderr
    assert len(json.loads((program / "h.json").read_text())["history"]) == 3
    assert not (program / "v.npz").exists()


@pytest.mark.slow
@pytest.mark.fault(
    "Workers and parameter servers",
    "A run ends, is interrupted, or fails.",
    happens="Its actors end with it.",
    promise="No process and no processor of Ray stays taken.",
)
@pytest.mark.ray
@pytest.mark.parametrize("when", [pytest.param("starting"), "training"])
def test_interruption_on_ray_leaves_no_process(program, when):
    pytest.importorskip("ray")
    arguments = ["--address", "local", "--workers", "2", "--cpus-per-worker", "0.5", "--json", "h.json"]
    running = started("-m", "tfray.cli", "run", "script.py:endless", *arguments)
    if when == "starting":
        wait_for(lambda: len(descendants(running.pid)) > 1)
    else:
        wait_for(lambda: (program / "seen0").exists() and (program / "seen1").exists())
    family = descendants(running.pid)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all
    errors = running.communicate(timeout=PATIENCE_S)[1]
    assert running.returncode == 130, errors
    assert "tfray: interrupted after" in errors and "Traceback" not in errors
    wait_for(lambda: not any(map(is_alive, family)))
    assert (program / "h.json").exists()


def test_a_breakpoint_in_the_graph_is_a_prompt():
    running = started("-m", "tfray.cli", "run", "script.py:with_breakpoint", "--local", stdin=subprocess.PIPE)
    output, errors = running.communicate("p x.shape\nup\nc\n", timeout=PATIENCE_S)
    assert running.returncode == 0, errors
    assert "(Pdb) (8, 2)" in output and "1 steps in" in output


@pytest.mark.skipif(sys.version_info[:3] == (3, 13, 0), reason="pdb of Python 3.13.0 refuses options of programs")
def test_pdb_stops_in_the_model_function(program):
    line = SCRIPT[: SCRIPT.index("    w = tf.get_variable")].count("\n") + 1
    commands = f"break {program}/script.py:{line}\ncontinue\np x.shape\ncontinue\nquit\n"
    running = started("-m", "pdb", "-m", "tfray.cli", "run", "script:only_trainer", "--local", stdin=subprocess.PIPE)
    output, errors = running.communicate(commands, timeout=PATIENCE_S)
    assert "(Pdb) TensorShape([Dimension(None), Dimension(2)])" in output, output + errors
    assert "20 steps in" in output


def test_a_program_takes_the_options_itself():
    result = in_a_process("script.py", "--local", "steps=4")
    assert result.returncode == 0, result.stderr
    assert "4 steps in" in result.stdout
    assert "Fit a plane." in in_a_process("script.py", "--help").stdout


@pytest.mark.slow
@pytest.mark.ray
def test_trains_on_ray_with_an_input_function_that_workers_cannot_import(ray_local, program):
    address = ray_local.get_runtime_context().gcs_address
    arguments = ["--workers", "2", "--backup-workers", "1", "--cpus-per-worker", "0.5"]
    result = in_a_process(
        *("-m", "tfray.cli", "run", f"{program}/script.py:build", "--address", address, "--json", "h.json", *arguments)
    )
    assert result.returncode == 0, result.stderr
    history = json.loads((program / "h.json").read_text())
    assert all(len(row["members"]) == 1 for row in history["history"])
    assert history["test"]["loss"] < 0.5
    assert re.search("[12] live", result.stderr)  # the backup may come when all is done


@pytest.mark.fault(
    "Input",
    "The input of one replica ends before that of the others.",
    happens="A warning at once, and an entry in `Result.statistics`. With `on_lost_data='stop'` the run ends.",
    promise="No part of the data is left out in silence.",
)
@pytest.mark.ray
@pytest.mark.slow
def test_lost_data_is_told_and_summed_up_or_ends_the_run(ray_local, program):
    address = ray_local.get_runtime_context().gcs_address
    arguments = ["--address", address, "--workers", "2", "--cpus-per-worker", "0.5"]
    told = in_a_process("-m", "tfray.cli", "run", f"{program}/script.py:unequal", *arguments)
    assert told.returncode == 0, told.stderr
    assert "lost data: the share of replica 1, from step 4 on" in told.stdout
    assert "the input of replica 1" in told.stderr and "without 1 of 2 shares of the data" in told.stderr
    stopped = in_a_process(
        "-m", "tfray.cli", "run", f"{program}/script.py:unequal", *arguments, "--on-lost-data", "stop"
    )
    assert stopped.returncode == 1
    assert "on_lost_data='stop'" in stopped.stderr and "Traceback" not in stopped.stderr


@pytest.mark.ray
@pytest.mark.slow
def test_trains_on_as_many_workers_as_there_is_room_for(ray_local, program):
    address = ray_local.get_runtime_context().gcs_address
    arguments = ["--workers", "1:3", "--elastic-batch", "scaled", "--cpus-per-worker", "0.5", "--json", "h.json"]
    run = in_a_process("-m", "tfray.cli", "run", f"{program}/script.py:build", "--address", address, *arguments)
    assert run.returncode == 0, run.stderr
    history = json.loads((program / "h.json").read_text())
    assert history["scaling"]["workers"] == [1, 3] and history["scaling"]["elastic_batch"] == "scaled"
    assert [row["step"] for row in history["history"]] == list(range(1, 1 + len(history["history"])))


# -- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "absent.py:build"], "there is no file absent.py"),
        (["run", "no_such_package.module:build"], "there is no module 'no_such_package'"),
        (["run", "script.py"], "is not SCRIPT.py:FUNCTION"),
        (["run", "script.py:absent"], "no function 'absent'; it has batches, model, build"),
        (["run", "script.py:limit"], "no function 'limit'"),
        (["run", "script.py:wrong_type"], "wrong_type returned a int, expected a tf.train.Trainer"),
        (["run", "script.py:build", "steps"], "'steps' is not KEY=VALUE"),
        (["run", "script.py:build", "absent=1"], "unexpected keyword argument 'absent'"),
        (["run", "script.py:build", "--workers", "0"], "workers must be an integer of at least 1"),
        (["run", "script.py:build", "--workers", "2", "--backup-workers", "2"], "of 2 workers"),
        (["run", "script.py:build", "--workers", "2:1"], "the first number is the least"),
        (["run", "script.py:build", "--workers", "2:3:4"], "expected a number, or two as in 2:8"),
        (["run", "script.py:build", "--ps", "2:1"], "parameter_servers (2, 1): the first number is the least"),
        (["run", "script.py:build", "--ps", "1:2", "--replicated-shards"], "needs a fixed number of parameter servers"),
        (["run", "script.py:build", "--ps", "2:3:4"], "expected a number, auto, or two as in 2:8"),
        (["run", "script.py:build", "--staleness", "1"], "staleness bounds asynchronous training"),
        (["run", "script.py:build", "--steps", "0"], "steps must be an integer of at least 1"),
        (["run", "script.py:build", "--accumulate", "0"], "accumulate must be an integer of at least 1"),
        (["run", "script.py:build", "--bad-gradients", "hide"], "'hide' is not one of"),
        (["run", "script.py:build", "--wire-dtype", "int8"], "'int8' is not one of"),
        (["run", "script.py:build", "--steps", "many"], "'many' is not a valid integer"),
        (["run", "script.py:build", "--mode", "best"], "'best' is not one of"),
        (["run", "script.py:build", "--json", "."], "it is a directory"),
        (["run", "script.py:build", "--json", "script.py/h.json"], "cannot write script.py/h.json"),
        (["devices", "--address", "nowhere"], "not a cluster address"),
        (["unknown"], "No such command 'unknown'"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line_and_exit_code_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("tfray: ") and result.stderr.count("\n") == 1


@pytest.mark.ray
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["script.py:failing_input", "--workers", "2", "--cpus-per-worker", "0.1"],
            "replica 1 (/job:worker/task:1/device:CPU:0) failed in step 4",
        ),
        (["script.py:build", "--cpus-per-worker", "99", "--start-timeout", "1"], "Ray found no room for"),
    ],
)
def test_a_run_on_ray_that_fails_is_exit_code_1(ray_local, arguments, message):
    result = run("run", *arguments, "--no-progress")
    assert result.exit_code == 1
    assert message in result.stderr


@pytest.mark.ray
@pytest.mark.parametrize(
    ("address", "message"), [("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"), ("x", "not a cluster address")]
)
def test_an_address_without_a_cluster_is_exit_code_2(address, message):
    result = in_a_process("-m", "tfray.cli", "run", "script.py:build", "--no-progress", "--address", address)
    assert result.returncode == 2
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_an_error_of_an_operation_names_it_without_a_traceback():
    result = run("run", "script.py:broken_graph", "--local")
    assert result.exit_code == 1
    assert "MatMul" in result.stderr and "script.py" in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_raises_the_error():
    result = run("run", "script.py:broken_graph", "--local", "--debug")
    assert "MatMul" in str(result.exception)


def test_an_error_of_the_program_itself_has_its_traceback_on_request():
    result = in_a_process("-m", "tfray.cli", "run", "script.py:raises", "--local", "--debug")
    assert result.returncode == 1
    assert "Traceback" in result.stderr and "a mistake of the program" in result.stderr


# -- the rest ------------------------------------------------------------------------------------------


def test_version_and_devices():
    assert tf.__version__ in run("--version").stdout
    assert "/job:localhost/task:0/device:CPU:0" in run("devices").stdout


def terminal(width):
    return Console(file=io.StringIO(), force_terminal=True, width=width, _environ={})


@pytest.mark.parametrize(("width", "shows_metrics"), [(80, False), (120, True)])
def test_the_bar_shows_step_loss_speed_and_replicas(width, shows_metrics):
    console = terminal(width)
    with TrainingProgress(2, console=console) as progress:
        for step in (1, 2):
            progress.update(StepRecord(step, {"loss": 0.5, "accuracy": 0.75}, 0.1, live=3, dropped=4))
    shown = console.file.getvalue()
    for part in ("step 2/2", "loss 0.5", "steps/s", "3 live", "4 dropped"):
        assert part in shown
    assert ("accuracy 0.75" in shown) == shows_metrics


def test_the_bar_gives_way_to_a_debugger(monkeypatch):
    stopped = []
    monkeypatch.setenv("PYTHONBREAKPOINT", "some.debugger")
    monkeypatch.setattr(sys, "breakpointhook", lambda: stopped.append(True))
    hook = sys.breakpointhook
    with TrainingProgress(2, console=terminal(80)) as progress:
        assert sys.breakpointhook is not hook
        breakpoint()
        assert stopped
        progress.update(StepRecord(1, {"loss": 0.5}, 0.1))
    assert sys.breakpointhook is hook


# -- operations ----------------------------------------------------------------------------------------


def test_ops_lists_every_operation():
    result = CliRunner().invoke(cli.main, ["ops", "--json"])
    records = {record["name"]: record for record in json.loads(result.output)}
    assert set(records) == set(registered_ops())
    assert records["MatMul"] == {"name": "MatMul", "devices": ["CPU", "GPU"], "gradient": True}
    assert not records["ArgMax"]["gradient"] and records["While"]["gradient"]
    table = CliRunner().invoke(cli.main, ["ops"]).output
    assert "MatMul" in table and len(table.splitlines()) > len(records)


def test_ops_missing_tells_what_programs_use_and_tfray_lacks():
    result = CliRunner().invoke(cli.main, ["ops", "--missing", "--json"])
    missing = {record["name"] for record in json.loads(result.output)}
    assert "tf.placeholder" not in missing and "tf.train.AdamOptimizer" not in missing
    for name in missing:
        found = tf
        with pytest.raises(AttributeError):
            for part in name.split(".")[1:]:
                found = getattr(found, part)


# -- checkpoints ---------------------------------------------------------------------------------------


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    target, folder = "script.py:build", str(tmp_path / "run")
    options = ["--local", "--no-progress", "--checkpoint-dir", folder, "--save-every", "4"]
    first = run("run", target, "--steps", "6", *options)
    assert "6 steps" in first.output
    again = run("run", target, "--steps", "9", *options)
    assert "3 steps" in again.output
    assert tf.train.latest_checkpoint(folder).endswith("-9")
    listed = run("checkpoint", folder, "--verify")
    assert "2x1" in listed.output and "all as they were written" in listed.output
    records = {record["name"]: record for record in json.loads(run("checkpoint", folder, "--json").output)}
    assert records["w"] == {"name": "w", "dtype": "float32", "shape": [2, 1], "bytes": 8, "parts": 1}
    back = run("run", target, "--steps", "9", *options, "--resume-from", f"{folder}/model.ckpt-4")
    assert "5 steps" in back.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "script.py:build", "--local", "--save-every", "5"], "checkpoint_dir"),
        (["run", "script.py:build", "--local", "--save-every", "soon"], "10m"),
        (["checkpoint", "/nowhere/at/all"], "no checkpoint"),
        (["run", "script.py:build", "--local", "--resume-from", "a-3"], "resume_from"),
    ],
)
def test_requests_about_checkpoints_that_cannot_be_met(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2 and message in result.output


# -- timelines -----------------------------------------------------------------------------------------

TIMELINE_MODEL = """
import numpy as np
import tfray as tf

def build():
    def model(features, labels):
        loss = tf.reduce_mean(tf.square(tf.layers.dense(features, 4) - labels))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))
    source = tf.train.array_input(*2 * [np.ones((8, 4), np.float32)], batch_size=4)
    return tf.train.Trainer(model, source, run=tf.train.RunConfig(steps=5, local=True, logdir=None))
"""


@pytest.fixture
def timeline_model(tmp_path):
    (tmp_path / "small.py").write_text(TIMELINE_MODEL)
    return f"{tmp_path / 'small.py'}:build"


def test_timeline_writes_what_perfetto_opens(timeline_model, tmp_path):
    path = tmp_path / "step.json"
    found = CliRunner().invoke(
        cli.main, ["timeline", timeline_model, "--steps", "2:3", "-o", str(path), "--no-progress"]
    )
    assert found.exit_code == 0, found.output
    assert "step 3:" in found.output and "peak memory" in found.output
    events = json.loads(path.read_text())["traceEvents"]
    assert sum(event["name"] == "ApplyGradientDescent" for event in events) == 4  # two variables, two steps


def test_a_run_writes_a_timeline_on_request(timeline_model, tmp_path):
    path = tmp_path / "step.json"
    found = CliRunner().invoke(cli.main, ["run", timeline_model, "--timeline", str(path), "--no-progress"])
    assert found.exit_code == 0 and f"wrote {path}" in found.output, found.output
    assert json.loads(path.read_text())["traceEvents"]


@pytest.mark.parametrize("steps", ["0:1", "3:2", "x", "-1"])
def test_timeline_refuses_steps_that_are_none(timeline_model, steps):
    found = CliRunner().invoke(cli.main, ["timeline", timeline_model, "--steps", steps])
    assert found.exit_code == 2 and "FIRST:LAST" in found.output


def test_a_graph_is_shown_as_a_tree(timeline_model, tmp_path):
    found = CliRunner().invoke(cli.main, ["graph", timeline_model, "--depth", "2"])
    assert found.exit_code == 0, found.output
    assert "dense/" in found.output and "MatMul" in found.output
    (tmp_path / "plain.py").write_text("import tfray as tf\ndef build(size=2): tf.zeros([size], name='nothing')\n")
    found = CliRunner().invoke(cli.main, ["graph", f"{tmp_path / 'plain.py'}:build", "size=3", "--constants"])
    assert found.exit_code == 0 and "float32[3]" in found.output, found.output


FAILING_MODEL = """
import numpy as np
import tfray as tf

def broken(values):
    secret = "the kernel's own frame"
    raise ValueError("broken on purpose")

def build():
    def model(features, labels):
        w = tf.Variable(1.0)
        failing = tf.py_func(broken, [features], tf.float32, name="failing")  # the user's line
        loss = w * tf.reduce_mean(tf.reshape(failing, [-1]))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))
    source = tf.train.array_input(*2 * [np.ones((8, 4), np.float32)], batch_size=4)
    return tf.train.Trainer(model, source, run=tf.train.RunConfig(steps=5, logdir=None))
"""


def test_pdb_drops_into_the_kernel_with_the_users_line_in_sight(tmp_path):
    (tmp_path / "failing.py").write_text(FAILING_MODEL)
    target = f"{tmp_path / 'failing.py'}:build"
    found = subprocess.run(  # click's test runner keeps debuggers to the terminal
        [sys.executable, "-m", "tfray.cli", "run", target, "--local", "--pdb", "--no-progress"],
        input="p secret\nq\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert found.returncode == 1
    assert "the kernel's own frame" in found.stdout and "operation: failing" in found.stdout
    assert "failing.py:12" in found.stdout
    refused = CliRunner().invoke(cli.main, ["run", target, "--pdb"])
    assert refused.exit_code == 2 and "--local" in refused.output
