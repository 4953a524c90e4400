"""`Supervisor`, and the loop over one."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import numpy as np
import pytest

import tfray as tf
from tests.support.counted_steps import counting_model, saved_steps
from tests.support.event_reading import events_in, kinds
from tests.support.processes import wait_for
from tests.support.waiting import Task
from tfray.errors import DataLossError, FailedPreconditionError
from tfray.formats.open_checkpoint import open_checkpoint, verify_checkpoint


def test_a_supervised_session_is_ready(tmp_path):
    step, count = counting_model()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
    assert supervisor.is_chief and supervisor.global_step is step
    assert supervisor.save_path == str(tmp_path / "model.ckpt")
    with supervisor.managed_session() as session:
        assert session.run(count) == 1
        with pytest.raises(RuntimeError, match="finalized"):
            tf.constant(1.0)
    assert supervisor.should_stop()
    assert (tmp_path / "graph.pbtxt").exists()
    found = kinds(events_in(tmp_path))
    assert found[0] == "file_version" and "graph_def" in found and found[-1] == "session_log"


def test_threads_save_and_log(tmp_path):
    _, count = counting_model()
    tf.summary.scalar("one", 1.0)
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0.05, save_model_secs=0.05)

    def tags():
        supervisor.summary_writer.flush()
        return {value.tag for event in events_in(tmp_path) for value in event.summary.value}

    with supervisor.managed_session() as session:
        wait_for(lambda: session.run(count) > 2 and tags() == {"one", "global_step/sec"})
        wait_for(lambda: saved_steps(tmp_path) and saved_steps(tmp_path)[-1] > 2)
    statuses = [event.session_log.status for event in events_in(tmp_path) if event.HasField("session_log")]
    assert statuses[0] == tf.SessionLog.START and statuses[-1] == tf.SessionLog.STOP
    assert tf.SessionLog.CHECKPOINT in statuses


def test_a_checkpoint_is_restored(tmp_path):
    step, count = counting_model()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
    with supervisor.managed_session() as session:
        session.run(count)
        supervisor.saver.save(session, supervisor.save_path, global_step=step)
    with supervisor.managed_session() as session:
        assert session.run(step) == 1


def test_errors_are_raised_and_the_end_of_input_is_not():
    counting_model()
    supervisor = tf.train.Supervisor()
    with pytest.raises(ZeroDivisionError), supervisor.managed_session():
        raise ZeroDivisionError
    with supervisor.managed_session():
        raise tf.errors.OutOfRangeError("the end")


def test_an_error_of_a_thread_is_raised():
    counting_model()
    supervisor = tf.train.Supervisor()
    with pytest.raises(ZeroDivisionError), supervisor.managed_session():
        supervisor.loop(0.01, lambda: 1 / 0)
        supervisor.wait_for_stop()


def test_queue_runners_are_started():
    values = tf.train.input_producer(tf.constant([1, 2, 3]), num_epochs=1, shuffle=False).dequeue()
    supervisor = tf.train.Supervisor()
    found = []
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            found.append(session.run(values))
    assert found == [1, 2, 3]


def test_summaries_of_the_program_are_written(tmp_path):
    _, count = counting_model()
    merged = tf.summary.scalar("mine", 3.0)
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), summary_op=None)
    with supervisor.managed_session() as session:
        session.run(count)
        supervisor.summary_computed(session, session.run(merged))
        supervisor.SummaryComputed(session, session.run(merged), 7)
    found = [(e.step, e.summary.value[0].tag) for e in events_in(tmp_path) if e.HasField("summary")]
    assert found == [(1, "mine"), (7, "mine")]
    with tf.Graph().as_default():
        quiet = tf.train.Supervisor()
        with quiet.managed_session() as session, pytest.raises(RuntimeError, match="no event file"):
            quiet.summary_computed(session, b"")


def test_the_parts_can_be_given():
    step, _ = counting_model()
    init_op = step.assign(5)
    supervisor = tf.train.Supervisor(init_op=init_op, saver=None, summary_op=None, local_init_op=None, global_step=None)
    assert supervisor.saver is supervisor.summary_op is supervisor.global_step is None
    with supervisor.managed_session() as session:
        assert session.run(step) == 5


def test_an_init_function_is_called():
    step, _ = counting_model()
    value = tf.placeholder(tf.int64, [])
    load = step.assign(value)
    supervisor = tf.train.Supervisor(init_fn=lambda session: session.run(load, {value: 9}))
    with supervisor.managed_session() as session:
        assert session.run(step) == 9


def test_a_worker_waits_for_the_chief():
    counting_model()
    supervisor = tf.train.Supervisor(is_chief=False)
    with pytest.raises(tf.errors.DeadlineExceededError, match="chief"):
        supervisor.prepare_or_wait_for_session(max_wait_secs=0.1)
    with pytest.raises(RuntimeError, match="only the chief"):
        supervisor.start_standard_services(None)


def test_a_loop_over_a_supervisor():
    _, count = counting_model()
    supervisor = tf.train.Supervisor()
    seen = []

    def train_step(session, last, name=""):
        seen.append((int(session.run(count)), name))
        if len(seen) == 2:
            raise tf.errors.AbortedError("gone")  # the loop makes a new session
        if seen[-1][0] == last:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, train_step, [3], {"name": "a"})
    assert seen == [(1, "a"), (2, "a"), (1, "a"), (2, "a"), (3, "a")]


def test_graphs_are_written_to_files(tmp_path):
    tf.constant(1.0, name="one")
    graph = tf.get_default_graph()
    text = tf.train.write_graph(graph, str(tmp_path / "deep"), "graph.pbtxt")
    assert 'name: "one"' in (tmp_path / "deep" / "graph.pbtxt").read_text() and text.endswith("deep/graph.pbtxt")
    path = tf.train.write_graph(graph.as_graph_def(), str(tmp_path), "graph.pb", as_text=False)
    with open(path, "rb") as file:
        assert tf.GraphDef.FromString(file.read()).node[0].name == "one"


@pytest.mark.fault(
    "Drivers and checkpoints",
    "Two saves to one path overlap, in one process or in two.",
    happens="Both end.",
    promise="The one that ends last can be restored.",
)
@pytest.mark.parametrize("same_saver", [False, True])
def test_a_save_in_the_background_and_one_of_the_same_step_by_hand(tmp_path, same_saver):
    """Whichever ends last, what is there can be restored."""
    tf.train.create_global_step()
    values = tf.Variable(np.arange(200_000.0), name="values")
    by_hand = tf.train.Saver()
    supervisor = tf.train.Supervisor(logdir=tmp_path, save_model_secs=0, save_summaries_secs=0)
    with supervisor.managed_session() as session:
        for _ in range(10):
            saves = [
                Task(saver.save, session, supervisor.save_path, supervisor.global_step)
                for saver in (supervisor.saver, supervisor.saver if same_saver else by_hand)
            ]
            path, _ = [save.result() for save in saves]
            supervisor.saver.restore(session, path)
            verify_checkpoint(open_checkpoint(path))
            np.testing.assert_array_equal(session.run(values), np.arange(200_000.0))


def trained(folder):
    """Checkpoints of three steps in a folder."""
    with tf.Graph().as_default():
        step, count = counting_model()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            saver = tf.train.Saver()
            for _ in range(3):
                session.run(count)
                saver.save(session, f"{folder}/model.ckpt", step)


@contextmanager
def supervised(folder):
    with tf.train.Supervisor(logdir=str(folder), save_model_secs=0).managed_session() as session:
        yield session


def monitored(folder):
    return tf.train.MonitoredTrainingSession(checkpoint_dir=str(folder))


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The newest checkpoint is damaged.",
    happens="A `Trainer` goes back to the one before and says so. Other sessions raise `tf.errors.DataLossError`.",
    promise="Every changed byte is noticed, and damaged values are never used.",
)
@pytest.mark.parametrize("begin", [supervised, monitored])
def test_a_damaged_newest_checkpoint_is_an_error_that_says_what_else_there_is(tmp_path, begin):
    trained(tmp_path)
    (data,) = tmp_path.glob("model.ckpt-3.data-*")
    data.write_bytes(data.read_bytes()[:-1])
    step, _ = counting_model()
    also = r"damaged.*model\.ckpt-1, .*model\.ckpt-2: to go on.*update_checkpoint_state"
    with pytest.raises(DataLossError, match=also), begin(tmp_path):
        pass
    tf.train.update_checkpoint_state(tmp_path, f"{tmp_path}/model.ckpt-2")
    tf.reset_default_graph()
    step, _ = counting_model()
    with begin(tmp_path) as session:
        assert session.run(step) == 2


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The file `checkpoint`, which names the newest one, is lost or empty.",
    happens="A `Trainer` goes on from the newest one that is there. In doubt it asks, as other sessions do.",
    promise="Training does not restart at step 1 over what lies there.",
)
@pytest.mark.parametrize("contents", [None, ""])
@pytest.mark.parametrize("begin", [supervised, monitored])
def test_without_the_file_that_names_them_checkpoints_are_not_written_over(tmp_path, begin, contents):
    trained(tmp_path)
    (tmp_path / "checkpoint").unlink() if contents is None else (tmp_path / "checkpoint").write_text(contents)
    before = sorted(tmp_path.glob("model.ckpt*"))
    counting_model()
    with pytest.raises(FailedPreconditionError, match=r"newest of them .*model\.ckpt-3"), begin(tmp_path):
        pass
    assert sorted(tmp_path.glob("model.ckpt*")) == before


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A checkpoint folder is copied, and training goes on in the copy.",
    happens="The copy has its own checkpoints from then on.",
    promise="The original is left as it was.",
)
def test_a_copy_of_a_folder_leaves_the_original_alone(tmp_path):
    trained(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    before = sorted((tmp_path / "run").iterdir())
    step, count = counting_model()
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path / "copy"), save_checkpoint_steps=1) as session:
        for _ in range(8):
            session.run(count)
        assert session.run(step) >= 11
    assert sorted((tmp_path / "run").iterdir()) == before
