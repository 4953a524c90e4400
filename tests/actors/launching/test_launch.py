"""`tfray launch`: between-graph programs of TensorFlow 1, whose tasks are processes that meet on Ray."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import tfray as tf
from tests.support import ROOT
from tests.support.processes import PATIENCE_S, descendants, is_alive, rest_of, wait_for
from tfray import cli
from tfray.actors.clusters.ray_runtime import ray_address
from tfray.actors.launching.launch import Launch, Program, TaskFailedError, describe_code, script_on_nodes
from tfray.errors import InvalidArgumentError, NotFoundError

EXAMPLES = ROOT / "examples"

TRAINING = """
import os, sys, time
import tensorflow as tf

flags = tf.app.flags
for name in ("ps_hosts", "worker_hosts", "job_name", "checkpoint_dir"):
    flags.DEFINE_string(name, "", "")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_integer("save_steps", 20, "")
FLAGS = flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    print("process", os.getpid(), flush=True)
    if FLAGS.job_name == "ps":
        server.join()
    worker = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        x = tf.get_variable("x", [4], initializer=tf.ones_initializer())
        train_op = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(x ** 2), global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=400)]
    with tf.train.MonitoredTrainingSession(
        server.target, FLAGS.task_index == 0, FLAGS.checkpoint_dir, hooks=hooks, save_checkpoint_steps=FLAGS.save_steps
    ) as session:
        while not session.should_stop():
            reached, _ = session.run([step, train_op])
            print("step", reached, flush=True)
            time.sleep(0.02)


tf.app.run()
"""


@pytest.fixture
def program(tmp_path):
    """A program that trains for some seconds, and prints its processes and steps."""
    script = tmp_path / "program.py"
    script.write_text(TRAINING)
    return script


def tensorflow_program(example, folder):
    """An example as it would be written for TensorFlow."""
    text = (EXAMPLES / example).read_text()
    assert text.count("import tfray as tf\n") == 1
    script = folder / example
    script.write_text(text.replace("import tfray as tf\n", "import tensorflow as tf\n"))
    return script


def losses(output):
    """First and last losses of the workers."""
    return [(float(first), float(last)) for first, last in re.findall(r"loss (\S+) -> (\S+)", output)]


@pytest.mark.slow
@pytest.mark.ray
def test_an_asynchronous_program_of_tensorflow(ray_local, tmp_path):
    program = Program(str(tensorflow_program("between_graph_async.py", tmp_path)), [], 1, 2, ray_address())
    lines, notices, before = [], [], named_actors(ray_local)

    def take(task, line):
        lines.append(f"[{task}] {line}")
        print(lines[-1])  # pytest shows it where a task fails

    Launch(program, take, notices.append).run()
    output = "\n".join(lines)
    check_asynchronous(output, workers=2)
    assert not notices and "Traceback" not in output
    wait_for(lambda: named_actors(ray_local) <= before)


def named_actors(ray):
    """Names of all actors that have one; Ray Data leaves some of its own."""
    return {(actor["namespace"], actor["name"]) for actor in ray.util.list_named_actors(all_namespaces=True)}


def check_asynchronous(output, workers):
    """All have learned, and no update is lost: the last worker to end sees as many as all have made."""
    found = losses(output)
    assert len(found) == workers and all(last < 0.1 for _, last in found), output
    made = sum(int(count) for count in re.findall(r"(\d+) steps in", output))
    assert max(int(step) for step in re.findall(r"global step (\d+)", output)) == made >= 300


# -- what is wrong ---------------------------------------------------------------------------------------


def test_requests_that_make_no_sense(tmp_path):
    result = CliRunner().invoke(cli.main, ["launch", str(tmp_path / "none.py")])
    assert result.exit_code == 2 and "there is no file" in result.output
    with pytest.raises(InvalidArgumentError, match="a worker or a chief"):
        Program("script.py", [], 1, 0, "")


@pytest.mark.ray
def test_scripts_must_be_where_the_nodes_look(ray_local, tmp_path):
    assert script_on_nodes(EXAMPLES / "mlp.py", EXAMPLES.parent) == "examples/mlp.py"
    assert script_on_nodes(EXAMPLES / "mlp.py", None) == str(EXAMPLES / "mlp.py")
    with pytest.raises(InvalidArgumentError, match="the folder that is shipped"):
        script_on_nodes(EXAMPLES / "mlp.py", tmp_path)
    from tfray.actors.launching.remote_task import TaskHost

    with pytest.raises(NotFoundError, match="ship it with --working-dir"):
        raise TaskHost().start(str(tmp_path / "none.py"), [], {})


def test_exit_codes_in_words():
    assert [describe_code(code) for code in (3, -9, -77)] == ["exit code 3", "signal SIGKILL", "signal 77"]


def test_a_failed_task_ends_the_others(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import json, os, sys, time\n"
        "task = json.loads(os.environ['TF_CONFIG'])['task']\n"
        "print(sys.argv[1:], os.environ['RAY_ADDRESS'], flush=True)\n"
        "open(f\"{__file__}.{task['type']}{task['index']}\", 'w').close()\n"
        "if task == {'type': 'worker', 'index': 1}:\n"
        "    while not all(os.path.exists(f'{__file__}.{other}') for other in ('ps0', 'worker0')):\n"
        "        time.sleep(0.01)\n"
        "    raise ValueError('no good')\n"
        "time.sleep(600)\n"
    )
    lines, notices = [], []
    program = Program(str(script), ["--more"], 1, 2, "here:1")
    launch = Launch(program, lambda task, line: lines.append((str(task), line)), notices.append, max_restarts=1)
    with pytest.raises(TaskFailedError, match="worker 1 ended with exit code 1; ending the others"):
        launch.run()
    assert notices == ["worker 1 ended with exit code 1; starting it again"]
    assert sum(line == "ValueError: no good" for _, line in lines) == 2
    begin = {task: line for task, line in lines if line.startswith("[")}
    assert re.fullmatch(
        r"\['--job_name=ps', '--task_index=0', '--ps_hosts=ps0-\w+:2222', "
        r"'--worker_hosts=worker0-\w+:2222,worker1-\w+:2222', '--more'\] here:1",
        begin["ps 0"],
    )
    assert "--task_index=1" in begin["worker 1"] and not launch._running


def test_a_chief_is_in_the_cluster_and_an_evaluator_beside_it(tmp_path):
    """The run ends when both, and the workers, have ended; flags are passed only when asked for."""
    script = tmp_path / "program.py"
    script.write_text(
        "import os, sys, time\n"
        "print(os.environ['TF_CONFIG'], sys.argv[1:], flush=True)\n"
        "if '\"ps\", \"index\"' in os.environ['TF_CONFIG']:\n"
        "    open(f'{__file__}.ps', 'w').close()\n"
        "    time.sleep(600)\n"
        "while not os.path.exists(f'{__file__}.ps'):\n"  # a parameter server is ended, however far it has come
        "    time.sleep(0.01)\n"
    )
    lines = {}
    program = Program(str(script), [], 1, 1, "here:1", pass_flags=False, chief=True, evaluator=True)
    assert [str(task) for task in program.tasks] == ["ps 0", "chief 0", "worker 0", "evaluator 0"]
    Launch(program, lambda task, line: lines.update({str(task): line}), lines.clear).run()
    assert set(lines) == {"ps 0", "chief 0", "worker 0", "evaluator 0"}
    for task, line in lines.items():
        config, _, arguments = line.rpartition(" ")
        assert arguments == "[]" and set(json.loads(config)["cluster"]) == {"ps", "chief", "worker"}
        assert json.loads(config)["task"] == {"type": task.split()[0], "index": 0}
    with pytest.raises(InvalidArgumentError, match="a chief"):
        Program("script.py", [], 1, 0, "", evaluator=True)
    assert Program("script.py", [], 0, 0, "", chief=True).tasks


# -- whole runs, with a Ray of their own ---------------------------------------------------------------------


def started(program, *options, arguments=(), **environment):
    """The command as a process."""
    command = [sys.executable, "-m", "tfray.cli", "launch", *options, str(program), "--", *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"} | environment
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def until(process, pattern, seen):
    """Read what a process prints until a line matches; returns the match."""
    for line in process.stdout:
        seen.append(line)
        match = re.search(pattern, line)
        if match:
            return match
    raise AssertionError(f"{pattern} did not come:\n{''.join(seen)}")


@pytest.mark.slow
@pytest.mark.ray
def test_many_asynchronous_workers(tmp_path, ray_stopped):
    process = started(tensorflow_program("between_graph_async.py", tmp_path), "--ps", "2", "--workers", "3")
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output
    check_asynchronous(output, workers=3)


@pytest.mark.slow
@pytest.mark.ray
def test_a_synchronous_program_of_tensorflow(tmp_path, ray_stopped):
    (tmp_path / "digits.py").write_text((EXAMPLES / "digits.py").read_text())
    saved = tmp_path / "saved"
    process = started(
        tensorflow_program("between_graph_sync.py", tmp_path), "--ps", "2", "--workers", "2",
        arguments=["--train_steps=100", f"--checkpoint_dir={saved}", "--learning_rate=0.02"],
    )  # fmt: skip
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output
    found = losses(output)
    assert len(found) == 2 and all(last < 0.4 * first for first, last in found), output
    assert float(re.search(r"test accuracy (\S+)", output)[1]) > 0.9
    assert output.count("100 steps, loss") == 2 and tf.train.load_variable(str(saved), "global_step") == 100


@pytest.mark.slow
@pytest.mark.ray
def test_a_parameter_server_that_dies_is_replaced_and_restored(program, tmp_path, ray_stopped):
    seen = []
    process = started(
        program, "--workers", "2", "--max-restarts", "1", arguments=[f"--checkpoint_dir={tmp_path / 's'}"]
    )
    processes = {}
    while len(processes) < 3:
        task, pid = until(process, r"\[(\w+ \d)\] +process (\d+)", seen).groups()
        processes[task] = int(pid)
    until(process, r"step [6-9]\d\b", seen)
    os.kill(processes["ps 0"], signal.SIGKILL)
    until(process, "ps 0 ended with signal SIGKILL; starting it again", seen)
    until(process, r"\[ps 0\] +process", seen)
    output = "".join(seen) + rest_of(process)
    assert process.returncode == 0, output
    steps = [int(step) for step in re.findall(r"step (\d+)", output)]
    assert max(steps) >= 399 and "restores the last checkpoint" in output
    assert tf.train.load_variable(str(tmp_path / "s"), "global_step") >= 400


def name_of(pid):
    """What a process calls itself."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode().strip()
    except FileNotFoundError:
        return ""


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("how", ["worker", "interrupt", "terminate", "kill"])
def test_nothing_remains(program, tmp_path, how, ray_stopped):
    seen = []
    arguments = [f"--checkpoint_dir={tmp_path / 's'}", "--save_steps=1000"]
    process = started(program, "--ps", "2", "--workers", "2", arguments=arguments)
    pids = {}
    while len(pids) < 4:
        task, pid = until(process, r"\[(\w+ \d)\] +process (\d+)", seen).groups()
        pids[task] = int(pid)
    until(process, r"step [4-9]\d\b", seen)
    # After a SIGKILL Ray's agents notice within a minute that the rest of their Ray is gone.
    below = {pid for pid in descendants(process.pid) if how != "kill" or not name_of(pid).endswith("Agent")}
    if how == "worker":
        os.kill(pids["worker 1"], signal.SIGKILL)
    else:
        process.send_signal({"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[how])
    output = "".join(seen) + rest_of(process)
    expected = {"worker": 1, "interrupt": 130, "terminate": 143, "kill": -signal.SIGKILL}[how]
    assert process.returncode == expected, output
    if how == "worker":
        assert "tfray: worker 1 ended with signal SIGKILL; ending the others" in output
    if how != "kill":
        # The chief has saved when it was told to end.
        assert tf.train.load_variable(str(tmp_path / "s"), "global_step") >= 40
    wait_for(lambda: not any(map(is_alive, below | set(pids.values()))))


@pytest.mark.slow
@pytest.mark.ray
def test_tasks_run_on_all_nodes(ray_nodes, tmp_path):
    """Two nodes with room for two tasks each; what the script imports is shipped."""
    ray_nodes.add_node(num_cpus=0)
    for _ in range(2):
        ray_nodes.add_node(num_cpus=2)
    script = tensorflow_program("between_graph_sync.py", tmp_path)
    (tmp_path / "digits.py").write_text((EXAMPLES / "digits.py").read_text() + "\nprint('node', __file__)\n")
    saved = tmp_path / "saved"
    process = started(
        script, "--ps", "1", "--workers", "3", "--address", ray_nodes.address, "--working-dir", str(tmp_path),
        arguments=["--train_steps=60", f"--checkpoint_dir={saved}", "--backup_workers=1"],
    )  # fmt: skip
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output
    assert len(losses(output)) == 3 and tf.train.load_variable(str(saved), "global_step") == 60
    assert re.findall(r"node (\S+)", output) and str(tmp_path / "digits.py") not in output
    import ray

    ray.init(address=ray_nodes.address, logging_level="warning")
    wait_for(lambda: ray.available_resources().get("CPU") == 4)
    assert not ray.util.list_named_actors(all_namespaces=True)
