"""`tf.train.Saver`: what is saved comes back, under other names, in other parts and on other devices."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.errors import AlreadyExistsError, DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from tfray.formats import files


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "model.ckpt")


def run_in_new_graph(build, restore_from, **options):
    """Values of the variables that `build` makes in a new graph, restored."""
    with tf.Graph().as_default(), tf.Session() as session:
        fetches = build()
        tf.train.Saver(**options).restore(session, restore_from)
        return session.run(fetches)


VALUES = {
    "float32": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "float64": np.array([np.nan, np.inf, -0.0]),
    "float16": np.array([1.5, -2], np.float16),
    "bfloat16": np.array([[1.5], [-2]], ml_dtypes.bfloat16),
    "int8": np.array(-7, np.int8),
    "uint64": np.array([2**64 - 1], np.uint64),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j], np.complex64),
    "string": np.array([b"", b"a\0b", "ü".encode()], object),
    "empty": np.zeros((0, 4), np.float32),
}


def test_every_dtype_comes_back(path):
    for name, value in VALUES.items():
        tf.Variable(value, name=name)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert tf.train.Saver().save(session, path) == path
    restored = run_in_new_graph(
        lambda: {n: tf.Variable(v.ravel()[:0].reshape(0), name=n, validate_shape=False) for n, v in VALUES.items()},
        path,
    )
    for name, value in VALUES.items():
        np.testing.assert_array_equal(restored[name], value)
        assert np.asarray(restored[name]).dtype == value.dtype


def test_variables_can_be_renamed_and_left_out(path):
    first, second = tf.Variable(1.0, name="first"), tf.Variable(2.0, name="second")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver({"a": first, "b": second}).save(session, path)
    assert tf.train.list_variables(path) == [("a", []), ("b", [])]
    with tf.Graph().as_default(), tf.Session() as session:
        other, untouched = tf.Variable(0.0), tf.Variable(5.0)
        session.run(tf.global_variables_initializer())
        tf.train.Saver({"b": other}).restore(session, path)
        assert session.run([other, untouched]) == [2.0, 5.0]


def test_global_step_is_part_of_the_name(tmp_path):
    step = tf.train.get_or_create_global_step()
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(step.initializer)
        session.run(step.assign_add(7))
        assert saver.save(session, f"{tmp_path}/m", global_step=step) == f"{tmp_path}/m-7"
        assert saver.save(session, f"{tmp_path}/m", global_step=8) == f"{tmp_path}/m-8"
        padded = tf.train.Saver(pad_step_number=True)
        assert padded.save(session, f"{tmp_path}/m", global_step=9) == f"{tmp_path}/m-00000009"


def test_the_folder_names_the_newest(tmp_path):
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert tf.train.latest_checkpoint(tmp_path) is None
        for step in range(4):
            saver.save(session, f"{tmp_path}/m", global_step=step)
    assert tf.train.latest_checkpoint(tmp_path) == f"{tmp_path}/m-3"
    assert saver.last_checkpoints == [f"{tmp_path}/m-2", f"{tmp_path}/m-3"]
    assert tf.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths == saver.last_checkpoints
    left = {name.partition(".")[0] for name in os.listdir(tmp_path)}
    assert left == {"checkpoint", "m-2", "m-3"}
    tf.train.remove_checkpoint(f"{tmp_path}/m-3")
    assert not tf.train.checkpoint_exists(f"{tmp_path}/m-3")
    assert tf.train.latest_checkpoint(tmp_path) == f"{tmp_path}/m-2"
    assert len(tf.train.get_checkpoint_mtimes(saver.last_checkpoints)) == 1


def test_a_file_that_names_no_checkpoint_is_an_error(tmp_path):
    (tmp_path / "checkpoint").touch()
    for ask in (tf.train.get_checkpoint_state, tf.train.latest_checkpoint):
        with pytest.raises(ValueError, match="Invalid checkpoint state loaded from"):
            ask(tmp_path)


def test_a_new_saver_takes_up_where_the_last_one_ended(tmp_path):
    tf.Variable(1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = tf.train.Saver(max_to_keep=2)
        for step in range(2):
            first.save(session, f"{tmp_path}/m", global_step=step)
        second = tf.train.Saver(max_to_keep=2)
        state = tf.train.get_checkpoint_state(tmp_path)
        second.recover_last_checkpoints(state.all_model_checkpoint_paths)
        second.save(session, f"{tmp_path}/m", global_step=2)
    assert second.last_checkpoints == [f"{tmp_path}/m-1", f"{tmp_path}/m-2"]
    assert not tf.train.checkpoint_exists(f"{tmp_path}/m-0")


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("max_to_keep", [1, 2])
def test_whatever_change_to_the_folder_was_the_last_the_next_saver_tidies_up(tmp_path, monkeypatch, max_to_keep):
    """The process ends before the n-th renaming or removal of a file, for every n."""
    step = tf.Variable(0, name="step")
    last = [np.inf]

    def counted(change):
        def counting(*args, **options):
            if threading.current_thread() is threading.main_thread():  # another may renew the lock of a folder
                last[0] -= 1
                if last[0] < 0:
                    raise Killed
            return change(*args, **options)

        return counting

    for name in ("rename", "remove"):
        monkeypatch.setattr(f"tfray.formats.files.{name}", counted(getattr(files, name)))
    numbers = itertools.count(1)

    def save(session, folder):
        saver = tf.train.Saver(max_to_keep=max_to_keep)
        state = tf.train.get_checkpoint_state(folder)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths if state else [])
        number = next(numbers)
        session.run(step.assign(number))
        try:
            saver.save(session, f"{folder}/m", number)
        except Killed:
            return False
        return True

    with tf.Session() as session:
        for interrupted_at in itertools.count():
            folder = tmp_path / str(interrupted_at)
            last[0] = np.inf
            for _ in range(3):
                save(session, folder)
            last[0] = interrupted_at
            complete, last[0] = save(session, folder), np.inf
            newest = int(tf.train.load_variable(tf.train.latest_checkpoint(folder), "step"))
            before = [n for n in range(newest, newest + 2) if tf.train.checkpoint_exists(f"{folder}/m-{n}")]
            assert save(session, folder)
            number = int(tf.train.load_variable(tf.train.latest_checkpoint(folder), "step"))
            assert newest in (number - 1, number - 2)
            kept = [f"m-{n}" for n in (*before, number)][-max_to_keep:]
            assert {path.name.partition(".")[0] for path in folder.iterdir()} == {"checkpoint", *kept}
            files_of_each = [name.partition(".")[0] for name in os.listdir(folder) if name != "checkpoint"]
            assert all(files_of_each.count(name) == 3 for name in kept), "manifest, graph and one file of data"
            if complete:
                break
    assert interrupted_at > 4


def test_relative_paths_survive_a_move(tmp_path):
    tf.Variable(1.0)
    (tmp_path / "old").mkdir()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver(save_relative_paths=True).save(session, f"{tmp_path}/old/m")
    os.rename(tmp_path / "old", tmp_path / "new")
    assert tf.train.latest_checkpoint(tmp_path / "new") == f"{tmp_path}/new/m"


def test_a_checkpoint_for_every_so_many_hours_stays(tmp_path, monkeypatch):
    tf.Variable(1.0)
    now = [1000.0]
    monkeypatch.setattr("tfray.training.checkpoints.retention.time.time", lambda: now[0])
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(6):
            now[0] += 1500
            saver.save(session, f"{tmp_path}/m", global_step=step)
    assert [step for step in range(6) if tf.train.checkpoint_exists(f"{tmp_path}/m-{step}")] == [2, 4, 5]


@pytest.mark.parametrize(("mode", "expected"), [("min", [1, 3, 4, 5]), ("max", [0, 2, 4, 5])])
def test_the_best_stay(tmp_path, mode, expected):
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=2, best_to_keep=2, best_mode=mode)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step, metric in enumerate([5.0, 1.0, 4.0, 2.0, 3.0, 3.0]):
            saver.save(session, f"{tmp_path}/m", global_step=step, metric=metric)
    assert [step for step in range(6) if tf.train.checkpoint_exists(f"{tmp_path}/m-{step}")] == expected


def test_an_asynchronous_save_holds_the_values_from_when_it_was_asked_for(tmp_path):
    variable = tf.Variable(np.arange(4.0), name="v")
    bump = variable.assign_add(np.ones(4))
    saver = tf.train.Saver(asynchronous=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(3):
            saver.save(session, f"{tmp_path}/m", global_step=step)
            session.run(bump)
        saver.wait()
    for step in range(3):
        np.testing.assert_array_equal(tf.train.load_variable(f"{tmp_path}/m-{step}", "v"), np.arange(4.0) + step)
    assert tf.train.latest_checkpoint(tmp_path) == f"{tmp_path}/m-2"


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A save in the background fails.",
    happens="The next save, or `wait`, raises the error.",
    promise="No failed save passes for one that succeeded.",
)
def test_a_failed_save_in_the_background_is_reported(tmp_path):
    tf.Variable(1.0)
    saver = tf.train.Saver(asynchronous=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (tmp_path / "file").write_text("")
        saver.save(session, f"{tmp_path}/file/m", write_meta_graph=False)
        with pytest.raises(AlreadyExistsError, match="file"):
            saver.wait()
        saver.wait()


SAVING_TOO = """
import sys
import numpy as np
import tfray as tf
path, number = sys.argv[1], int(sys.argv[2])
values = tf.Variable(np.full(50_000, number), name="values")
saver = tf.train.Saver(max_to_keep=1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(20):
        saver.save(session, path)
        saver.recover_last_checkpoints([path])
"""


@pytest.mark.fault(
    "Drivers and checkpoints",
    "Two saves to one path overlap, in one process or in two.",
    happens="Both end.",
    promise="The one that ends last can be restored.",
)
def test_two_processes_that_save_to_one_path_leave_what_can_be_restored(path):
    command = [sys.executable, "-c", SAVING_TOO, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(number)], **pipes) for number in (1, 2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, said
    assert len(np.unique(tf.train.load_variable(path, "values"))) == 1
    name = os.path.basename(path)
    left = sorted(each.removeprefix(name).partition("-")[0] for each in os.listdir(os.path.dirname(path)))
    assert left == [".data", ".index", ".meta", "checkpoint"]


def partitioned(shards, axis=0):
    with tf.variable_scope("scope", partitioner=tf.fixed_size_partitioner(shards, axis) if shards else None):
        return tf.get_variable("w", [6, 4], initializer=tf.zeros_initializer())


@pytest.mark.parametrize("saved", [0, 2, 4])
@pytest.mark.parametrize(("shards", "axis"), [(0, 0), (3, 0), (6, 0), (2, 1), (3, 1)])
def test_other_partitioners_restore_it(path, saved, shards, axis):
    numbers = np.arange(24.0).reshape(6, 4)
    fill = partitioned(saved).assign(numbers.astype(np.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(fill)
        tf.train.Saver().save(session, path)
    assert tf.train.list_variables(path) == [("scope/w", [6, 4])]
    restored = run_in_new_graph(lambda: tf.convert_to_tensor(partitioned(shards, axis)), path)
    np.testing.assert_array_equal(restored, numbers)


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_other_numbers_of_devices_restore_it(path, devices):
    def build(count):
        made = []
        for index in range(6):
            with tf.device(f"/cpu:{index % count}"):
                made.append(tf.Variable(np.full(3, index, np.float32), name=f"v{index}"))
        return made

    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as session:
        build(3)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    assert len([name for name in os.listdir(os.path.dirname(path)) if ".data-" in name]) == 3
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": devices})) as session:
        variables = build(devices)
        tf.train.Saver(sharded=True).restore(session, path)
        np.testing.assert_array_equal(session.run(variables), np.arange(6.0)[:, None] * np.ones(3))


def test_only_a_checkpoint_in_one_file_collides_with_the_file_of_names(tmp_path):
    path = str(tmp_path / "checkpoint")
    v = tf.Variable(3.0)
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(ValueError, match="collides with"):
            tf.train.Saver().save(session, path)
        assert tf.train.latest_checkpoint(str(tmp_path)) is None
        saver = tf.train.Saver(sharded=True)
        saved = saver.save(session, path)
        assert tf.train.latest_checkpoint(str(tmp_path)) == saved
        session.run(v.assign(4.0))
        saver.restore(session, saved)
        assert session.run(v) == 3.0


def test_random_streams_go_on_where_they_were(path):
    def build():
        return [tf.random_uniform([3], seed=3), tf.random_normal([200000]), tf.truncated_normal([5], seed=1)]

    tf.set_random_seed(4)
    numbers = build()
    saver = tf.train.Saver(tf.train.random_state_saveables())
    with tf.Session() as session:
        for _ in range(3):
            session.run(numbers)
        saver.save(session, path)
        expected = [session.run(numbers) for _ in range(2)]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(4)
        numbers = build()
        tf.train.Saver(tf.train.random_state_saveables()).restore(session, path)
        for values in expected:
            for found, value in zip(session.run(numbers), values, strict=True):
                np.testing.assert_array_equal(found, value)


# -- graphs --------------------------------------------------------------------------------------------


def test_a_graph_is_saved_with_its_saver_and_collections(path):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.variable_scope("layer", partitioner=tf.fixed_size_partitioner(2)):
        weights = tf.get_variable("w", [2, 3], initializer=tf.random_normal_initializer(seed=1))
    y = tf.matmul(x, tf.convert_to_tensor(weights), name="y")
    tf.add_to_collection("outputs", y)
    tf.add_to_collection("notes", "text")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
        expected = session.run(y, {x: np.ones((4, 2))})
    for scope in (None, "again"):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            saver = tf.train.import_meta_graph(f"{path}.meta", import_scope=scope)
            saver.restore(session, path)
            (y,) = tf.get_collection("outputs")
            prefix = f"{scope}/" if scope else ""
            assert tf.get_collection("notes") == [b"text"]
            assert [v.op.name for v in tf.trainable_variables()] == [f"{prefix}layer/w/part_{i}" for i in range(2)]
            assert tf.trainable_variables()[0] is tf.global_variables()[0]
            found = session.run(y, {graph.get_tensor_by_name(f"{prefix}x:0"): np.ones((4, 2))})
            np.testing.assert_array_equal(found, expected)
            saver.save(session, path + "2")


def test_a_scope_is_exported_without_its_name(tmp_path):
    with tf.name_scope("outer"):
        tf.multiply(tf.Variable(3.0, name="v"), 2.0, name="twice")
    tf.Variable(1.0, name="elsewhere")
    made = tf.train.export_meta_graph(str(tmp_path / "new" / "graph"), export_scope="outer", as_text=True)
    assert {node.name.partition("/")[0] for node in made.graph_def.node} <= {"v", "twice"}
    with tf.Graph().as_default() as graph, tf.Session() as session:
        saver = tf.train.import_meta_graph(str(tmp_path / "new" / "graph"))
        assert saver is not None
        session.run(tf.global_variables_initializer())
        assert session.run(graph.get_tensor_by_name("twice:0")) == 6.0


@pytest.mark.parametrize("scope", [None, "again"])
def test_queue_runners_are_exported_with_the_graph(tmp_path, scope):
    names = tf.train.string_input_producer(["a", "b", "c"], num_epochs=1, shuffle=False)
    tf.identity(names.dequeue(), name="outer/next")
    tf.train.export_meta_graph(str(tmp_path / "graph"))
    (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(str(tmp_path / "graph"), import_scope=scope)
        prefix = f"{scope}/" if scope else ""
        (again,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        assert again.name == prefix + runner.name and again.to_proto(scope) == runner.to_proto()
        assert again.queue_closed_exception_types == (tf.errors.OutOfRangeError,)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        following = graph.get_tensor_by_name(f"{prefix}outer/next:0")
        assert [session.run(following) for _ in range(3)] == [b"a", b"b", b"c"]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(following)
        coordinator.request_stop()
        coordinator.join(threads)


def test_descriptions_of_queue_runners_that_fit_nothing_are_refused():
    queue = tf.FIFOQueue(2, tf.float32)
    definition = tf.train.QueueRunner(queue, [queue.enqueue(1.0)]).to_proto()
    assert tf.train.QueueRunner.from_proto(definition).queue.name == queue.name
    wrong, absent = (type(definition).FromString(definition.SerializeToString()) for _ in range(2))
    wrong.queue_closed_exception_types[:] = [99]
    with pytest.raises(tf.errors.InvalidArgumentError, match="codes of"):
        tf.train.QueueRunner.from_proto(wrong)
    absent.close_op_name = "absent"
    with pytest.raises(KeyError, match="absent"):
        tf.train.QueueRunner.from_proto(absent)
    with pytest.raises(ValueError, match="not both"):
        tf.train.QueueRunner(queue, queue_runner_def=definition)
    assert tf.train.QueueRunner(queue, [queue.enqueue(1.0)]).to_proto("elsewhere") is None


# -- starting from a checkpoint ------------------------------------------------------------------------


def saved_layers(path):
    """A checkpoint with ``old/w``, ``old/b`` and ``alone``."""
    for name, value in [("old/w", np.arange(12.0).reshape(4, 3)), ("old/b", np.ones(3)), ("alone", np.array(7.0))]:
        tf.Variable(value, name=name)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)


@pytest.mark.parametrize("shards", [None, 2])
def test_initializers_take_values_from_a_checkpoint(path, shards):
    saved_layers(path)
    with tf.Graph().as_default(), tf.Session() as session:
        partitioner = tf.fixed_size_partitioner(shards) if shards else None
        with tf.variable_scope("new", partitioner=partitioner):
            weights = tf.get_variable("w", [4, 3], tf.float64)
            bias = tf.get_variable("b", [3], tf.float64)
        other, fresh = tf.get_variable("other", [], tf.float64), tf.Variable(5.0, name="fresh")
        tf.train.init_from_checkpoint(path, {"old/": "new/", "alone": other})
        session.run(tf.global_variables_initializer())
        values = session.run([tf.convert_to_tensor(weights), tf.convert_to_tensor(bias), other, fresh])
        np.testing.assert_array_equal(values[0], np.arange(12.0).reshape(4, 3))
        np.testing.assert_array_equal(values[1], np.ones(3))
        assert values[2:] == [7.0, 5.0]
        other.load(8.0, session)
        assert session.run(other) == 8.0


def test_the_functions_of_contrib_framework(path):
    saved_layers(path)
    framework = tf.contrib.framework
    with tf.Graph().as_default(), tf.Session() as session:
        bias, absent = tf.Variable(np.zeros((3, 1)), name="old/b"), tf.Variable(2.0, name="absent")
        session.run(tf.global_variables_initializer())
        restore = framework.assign_from_checkpoint_fn(
            path, [bias, absent], ignore_missing_vars=True, reshape_variables=True
        )
        restore(session)
        np.testing.assert_array_equal(session.run(bias), np.ones((3, 1)))
        assert framework.assign_from_checkpoint_fn(path, [absent], ignore_missing_vars=True) is None
        operation, feeds = framework.assign_from_checkpoint(
            path, {"alone": tf.Variable(0.0, dtype=tf.float64, name="a")}
        )
        session.run(operation, feeds)
        assert session.run(tf.global_variables()[-1]) == 7.0
        with pytest.raises(NotFoundError):
            framework.load_variable(path, "absent")


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"absent": "v"}, "Tensor absent is not found in checkpoint"),
        ({"old/w": "v"}, r"Shape of variable v .* doesn't match with shape of tensor old/w \(\[4, 3\]\)"),
        ({"old/b": "nothing"}, "no variable 'nothing'"),
        ({"old/b": "scope/"}, "'old/b/'"),
    ],
)
def test_assignments_that_cannot_be(path, mapping, message):
    saved_layers(path)
    with tf.Graph().as_default():
        tf.Variable(np.ones(3), name="v")
        with pytest.raises(InvalidArgumentError, match=message):
            tf.train.init_from_checkpoint(path, mapping)


# -- refusals ------------------------------------------------------------------------------------------


def test_what_cannot_be_saved_or_restored_is_said(path):
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    assert tf.train.Saver(allow_empty=True).save(None, path) is None
    one = tf.Variable(np.zeros(6, np.float32), name="one")
    with pytest.raises(ValueError, match="same name: x"):
        tf.train.Saver({"x": [one, tf.Variable(1.0)]})
    with pytest.raises(ValueError, match="same name: one"):
        tf.train.Saver([one, one])
    with pytest.raises(TypeError, match="1, which is not a string"):
        tf.train.Saver({1: tf.Variable(1.0)})
    with pytest.raises(TypeError, match="cannot be saved"):
        tf.train.Saver([tf.constant(1.0)])
    saver = tf.train.Saver([one])
    with tf.Session() as session:
        with pytest.raises(FailedPreconditionError, match="uninitialized value one"):
            saver.save(session, path)
        with pytest.raises(ValueError, match="None"):
            saver.restore(session, None)
        for kind in (ValueError, NotFoundError):
            with pytest.raises(kind, match=r"not a valid checkpoint.*no checkpoint"):
                saver.restore(session, path)
        session.run(one.initializer)
        saver.save(session, path)
        with pytest.raises(NotFoundError, match=r"is missing from.*Key two not found in checkpoint.*has one"):
            tf.train.Saver({"two": one}).restore(session, path)
    for wrong, message in [(np.zeros(5, np.float32), r"\[6\]"), (np.zeros(6), "float32")]:
        with pytest.raises(InvalidArgumentError, match=message):
            run_in_new_graph(lambda wrong=wrong: tf.Variable(wrong, name="one"), path)
    reshaped = run_in_new_graph(lambda: tf.Variable(np.ones((2, 3), np.float32), name="one"), path, reshape=True)
    np.testing.assert_array_equal(reshaped, np.zeros((2, 3)))


def test_a_damaged_file_is_named_with_the_tensor(path):
    tf.Variable(np.arange(100.0), name="victim")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        saver.save(session, path)
        (name,) = [name for name in os.listdir(os.path.dirname(path)) if ".data-" in name]
        file = Path(path).parent / name
        data = bytearray(file.read_bytes())
        data[data.index(np.float64(50.0).tobytes())] ^= 4
        file.write_bytes(data)
        with pytest.raises(DataLossError, match=rf"{name}.*'victim'"):
            saver.restore(session, path)


@pytest.mark.ray
def test_a_relative_path_is_one_of_the_program_wherever_its_devices_run(ray_local, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Ray's processes have begun elsewhere
    variable = tf.get_variable("v", initializer=[1.0, 2.0])
    saver = tf.train.Saver()
    with tf.Cluster({"ps": tf.JobSpec(1, num_cpus=0.1)}) as cluster, tf.Session(cluster) as session:
        session.run(tf.global_variables_initializer())
        assert saver.save(session, "folder/model") == "folder/model"
        session.run(variable.assign([0.0, 0.0]))
        saver.restore(session, "folder/model")
        assert session.run(variable).tolist() == [1.0, 2.0]
    assert tf.train.latest_checkpoint("folder") == "folder/model"
    assert (tmp_path / "folder" / "model.index").exists()


def test_files_of_a_checkpoint_may_be_renamed(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0], name="v")
        session.run(v.initializer)
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "model.ckpt"), global_step=5)
        for file in tmp_path.glob("model.ckpt-5*"):
            file.rename(file.with_name(file.name.replace("model.ckpt-5", "best")))
        session.run(v.assign([0.0, 0.0]))
        moved = str(tmp_path / "best")
        saver.restore(session, moved)
        assert session.run(v).tolist() == [1, 2]
        assert tf.train.load_variable(moved, "v").tolist() == [1, 2]
        assert not tf.train.checkpoint_exists(path)
        tf.train.remove_checkpoint(moved)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint"]


# -- as TensorFlow 1 has it ----------------------------------------------------------------------------


def test_savers_are_built_before_they_save(path):
    saver = tf.train.Saver(defer_build=True)
    v = tf.Variable(1.0)
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(RuntimeError, match=r"build\(\) before save"):
            saver.save(session, path)
        saver.build()
        assert saver.save(session, path) == path


def test_one_variable_has_one_name():
    v = tf.Variable(1.0, name="v")
    with pytest.raises(ValueError, match="restored with two names: v"):
        tf.train.Saver({"v": v, "other": v})


@pytest.mark.parametrize("max_to_keep", [None, 0])
def test_a_saver_that_keeps_all_lists_none(path, max_to_keep):
    v = tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=max_to_keep)
    with tf.Session() as session:
        session.run(v.initializer)
        for step in range(2):
            saver.save(session, path, global_step=step)
        assert saver.last_checkpoints == []
        assert all(tf.train.checkpoint_exists(f"{path}-{step}") for step in range(2))
        with pytest.raises(ValueError, match="without folders"):
            saver.save(session, path, latest_filename="a/b")
        with pytest.raises(AssertionError):
            saver.set_last_checkpoints("no list")


def test_a_reader_lists_tensors_as_tensorflow_does(path):
    tf.Variable(np.zeros((2, 3), np.float32), name="w")
    tf.Variable(1, name="i")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    reader = tf.train.NewCheckpointReader(path)
    assert (type(reader.get_tensor("i")), reader.get_tensor("w").shape) == (np.int32, (2, 3))
    assert sorted(reader.debug_string().splitlines()) == [b"i (DT_INT32) []", b"w (DT_FLOAT) [2,3]"]
    with pytest.raises(NotFoundError, match="Key x not found in checkpoint"):
        reader.get_tensor("x")


def test_files_that_are_no_meta_graphs(tmp_path):
    for kind in (OSError, NotFoundError):
        with pytest.raises(kind, match="does not exist"):
            tf.train.import_meta_graph(tmp_path / "absent.meta")
    (tmp_path / "wrong.meta").write_bytes(b"nonsense")
    for kind in (OSError, DataLossError):
        with pytest.raises(kind, match="Cannot parse file"):
            tf.train.import_meta_graph(tmp_path / "wrong.meta")


def test_a_meta_graph_goes_below_the_current_scope(path):
    v = tf.Variable([2.0, 3.0], name="v")
    tf.multiply(v, 2.0, name="y")
    with tf.Session() as session:
        session.run(v.initializer)
        tf.train.Saver().save(session, path)
    for import_scope, names in [(None, ["here/y:0", "here/v:0"]), ("new", ["here/new/y:0", "here/new/v:0"])]:
        with tf.Graph().as_default(), tf.Session() as session:
            with tf.name_scope("here"):
                saver = tf.train.import_meta_graph(f"{path}.meta", import_scope=import_scope)
            saver.restore(session, path)
            assert [value.tolist() for value in session.run(names)] == [[4, 6], [2, 3]]
            assert tf.global_variables()[0].name == names[1]


def test_what_a_scope_takes_from_outside_is_given_when_it_is_imported(tmp_path):
    x = tf.placeholder(tf.float32, [2], name="x")
    parts = tf.split(x, 2, name="parts")
    with tf.control_dependencies([tf.no_op(name="before")]), tf.name_scope("layer"):
        tf.add(tf.Variable(1.0, name="w") * parts[1], x, name="sum")
    file = str(tmp_path / "layer.meta")
    graph = tf.train.export_meta_graph(file, export_scope="layer")
    assert graph.collection_def["unbound_inputs"].bytes_list.value == [
        b"$unbound_inputs_parts:1",
        b"$unbound_inputs_x",
    ]
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match=r"unbound inputs: \$unbound_inputs_x\."):
            tf.train.import_meta_graph(file, input_map={"$unbound_inputs_parts:1": 2.0}, import_scope="new")
        given = {"$unbound_inputs_parts:1": tf.constant([2.0]), "$unbound_inputs_x": tf.constant([3.0, 4.0])}
        tf.train.import_meta_graph(file, input_map=given, import_scope="new")
        session.run(tf.global_variables_initializer())
        assert [v.name for v in tf.global_variables()] == ["new/w:0"]
        assert session.run("new/sum:0").tolist() == [5, 6]


def test_meta_graphs_tell_shapes_and_may_leave_out_defaults():
    tf.complex(tf.constant([1.0], name="real"), tf.constant([2.0]), name="both")
    for given in (None, tf.get_default_graph().as_graph_def(add_shapes=True)):
        for stripped in (False, True):
            made = tf.train.export_meta_graph(graph_def=given, strip_default_attrs=stripped)
            (node,) = (node for node in made.graph_def.node if node.name == "both")
            assert ("T" in node.attr, "Tout" in node.attr) == (not stripped, not stripped)
            assert [[axis.size for axis in shape.dim] for shape in node.attr["_output_shapes"].list.shape] == [[1]]
            assert made.meta_info_def.stripped_default_attrs is stripped
