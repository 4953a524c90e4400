"""Monitored sessions: initialising, restoring, recovering, stopping; and what makes them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.counted_steps import Recorder, counting_model, saved_steps
from tests.support.processes import kill_actor, rest_of, wait_for
from tests.support.waiting import Task
from tfray.training.sessions import monitored_session
from tfray.training.sessions.preemption import EXIT_CODE


@pytest.fixture
def short_pauses(monkeypatch):
    monkeypatch.setattr(monitored_session, "_FIRST_PAUSE_S", 0.0)


def failing(errors):
    """A tensor whose computation raises these errors first, one a step; None for no error."""
    left = list(errors)

    def compute():
        error = left.pop(0) if left else None
        if error is not None:
            raise error
        return np.float32(1)

    return tf.py_func(compute, [], tf.float32)


# -- scaffolds -----------------------------------------------------------------------------------------


def test_a_scaffold_makes_what_is_missing():
    counting_model()
    local = tf.get_local_variable("local", initializer=1.0)
    tf.summary.scalar("a", 1.0)
    scaffold = tf.train.Scaffold().finalize()
    assert tf.get_default_graph().finalized
    assert isinstance(scaffold.saver, tf.train.Saver)
    with tf.Session() as session:
        assert set(session.run(scaffold.ready_op)) == {b"global_step", b"local"}
        assert list(session.run(scaffold.ready_for_local_init_op)) == [b"global_step"]
        session.run([scaffold.init_op, scaffold.local_init_op])
        assert len(session.run(scaffold.ready_op)) == 0
        assert session.run(local) == 1
        assert tf.Summary.FromString(session.run(scaffold.summary_op)).value[0].tag == "a"
    assert scaffold.finalize() is scaffold  # once more does nothing


def test_a_scaffold_takes_what_it_is_given():
    step, _ = counting_model()
    saver = tf.train.Saver()
    init_op, no_op = step.assign(5), tf.no_op()
    feeds = {tf.placeholder(tf.float32, []): 1.0}
    given = tf.train.Scaffold(init_op=init_op, local_init_op=no_op, saver=saver, init_feed_dict=feeds)
    copied = tf.train.Scaffold(copy_from_scaffold=given, summary_op=tf.constant(b"")).finalize()
    assert copied.init_op is init_op and copied.local_init_op is no_op and copied.saver is saver
    assert copied.init_feed_dict is feeds
    assert copied.ready_op is not None
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a Scaffold"):
        tf.train.Scaffold(copy_from_scaffold=3)


def test_a_scaffold_finds_what_collections_hold():
    step, _ = counting_model()
    init_op = step.assign(5)
    tf.add_to_collection(tf.GraphKeys.INIT_OP, init_op)
    assert tf.train.Scaffold().finalize().init_op is init_op


def test_a_collection_of_several_is_refused():
    step, _ = counting_model()
    tf.add_to_collections([tf.GraphKeys.INIT_OP], step.assign(5))
    tf.add_to_collections([tf.GraphKeys.INIT_OP], step.assign(6))
    with pytest.raises(RuntimeError, match="tell Scaffold which by init_op"):
        tf.train.Scaffold().finalize()


def test_a_function_initialises():
    variable = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    value = tf.placeholder(tf.float32, [])
    load = variable.assign(value)
    seen = []

    def init_fn(scaffold, session):
        seen.append(scaffold)
        session.run(load, {value: 7.0})

    scaffold = tf.train.Scaffold(init_fn=init_fn)
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold)) as session:
        assert session.run(variable) == 7
    assert seen == [scaffold]


# -- the manager of sessions ---------------------------------------------------------------------------


def test_a_session_is_initialised_once(tmp_path):
    step, count = counting_model()
    init_op, ready_op = tf.global_variables_initializer(), tf.report_uninitialized_variables()
    saver = tf.train.Saver()
    manager = tf.train.SessionManager(ready_op=ready_op)
    with manager.prepare_session("", init_op, saver, str(tmp_path)) as session:
        session.run(count)
        saver.save(session, str(tmp_path / "model"), global_step=1)
    with manager.prepare_session("", init_op, saver, str(tmp_path)) as session:
        assert session.run(step) == 1
    path = str(tmp_path / "model-1")
    with manager.prepare_session("", init_op, saver, checkpoint_filename_with_path=path) as session:
        assert session.run(step) == 1
    session, ready = manager.recover_session("", saver, str(tmp_path))
    assert ready and session.run(step) == 1
    session.close()
    session, ready = manager.recover_session("", saver, str(tmp_path / "none"))
    assert not ready
    session.close()


def test_the_local_initialisation_runs_without_a_checkpoint_too(tmp_path):
    tf.get_variable("weight", [], initializer=tf.ones_initializer())
    count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), collections=[tf.GraphKeys.LOCAL_VARIABLES])
    manager = tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(), local_init_op=tf.local_variables_initializer()
    )
    init_op, saver = tf.global_variables_initializer(), tf.train.Saver()
    with manager.prepare_session("", init_op, saver, str(tmp_path)) as session:
        assert session.run(count) == 0


def test_a_model_that_is_not_ready_is_refused():
    tf.get_variable("v", [], initializer=tf.zeros_initializer())
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    with pytest.raises(RuntimeError, match=r"Init operations did not make model ready\..*Variables not initialized: v"):
        manager.prepare_session("", tf.no_op())
    with pytest.raises(RuntimeError, match="no init_op or init_fn or local_init_op was given"):
        manager.prepare_session("")
    waiting = tf.train.SessionManager(tf.no_op(), None, tf.report_uninitialized_variables())
    with pytest.raises(RuntimeError, match=r"did not make model ready for local_init\..*Variables not initialized: v"):
        waiting.prepare_session("", tf.no_op())
    with pytest.raises(tf.errors.DeadlineExceededError, match="Session was not ready after waiting 0 secs"):
        manager.wait_for_session("", max_wait_secs=0)
    with pytest.raises(ValueError, match="not both"):
        manager.prepare_session("", tf.no_op(), tf.train.Saver(), "a", "b")
    with pytest.raises(ValueError, match="you must also pass a local_init_op , "):
        tf.train.SessionManager(ready_for_local_init_op=tf.constant(1))


def test_nobody_waits_for_ever():
    tf.get_variable("v", [], initializer=tf.zeros_initializer())
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    with pytest.raises(tf.errors.DeadlineExceededError, match="is there a chief"):
        manager.wait_for_session("", max_wait_secs=0.2)


def test_a_checkpoint_is_waited_for(tmp_path):
    step, count = counting_model()
    init_op, saver = tf.global_variables_initializer(), tf.train.Saver()
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    graph = tf.get_default_graph()

    def wait():
        with graph.as_default():
            options = {"saver": saver, "checkpoint_dir": str(tmp_path), "wait_for_checkpoint": True}
            with manager.prepare_session("", init_op, max_wait_secs=30, **options) as session:
                return session.run(step)

    task = Task(wait)
    with tf.Session() as session:
        session.run(init_op)
        session.run([count])
        saver.save(session, str(tmp_path / "model"))
    assert task.result() == 1


# -- running -------------------------------------------------------------------------------------------


def test_the_end_of_input_ends_the_session():
    values = tf.train.input_producer(tf.constant([1, 2, 3]), num_epochs=1, shuffle=False).dequeue()
    found = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(session.run(values))
    assert found == [1, 2, 3]


def test_errors_are_raised_after_everything_is_closed():
    recorder = Recorder()
    trouble = failing([tf.errors.InvalidArgumentError("cannot be")])
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="cannot be"),
        tf.train.MonitoredSession(hooks=[recorder]) as session,
    ):
        session.run(trouble)
    assert session.graph is None
    assert "end" not in recorder.calls


def test_an_error_of_a_thread_is_raised():
    queue = tf.FIFOQueue(2, tf.float32)
    wrong = tf.check_numerics(tf.placeholder_with_default(np.float32(np.nan), []), "wrong")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(wrong)]))
    value = queue.dequeue()
    with pytest.raises(tf.errors.InvalidArgumentError, match="wrong"), tf.train.MonitoredSession() as session:
        while not session.should_stop():
            session.run(value)


def test_running_after_the_stop_is_refused():
    _, count = counting_model()
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=1)]) as session:
        session.run(count)
        assert session.should_stop()
        with pytest.raises(RuntimeError, match="asked to stop"):
            session.run(count)
    assert session.should_stop()
    assert session.graph is None
    with pytest.raises(RuntimeError, match="closed"):
        session.run(count)
    with pytest.raises(RuntimeError, match="closed already"):
        session.close()


def test_a_step_function():
    step, count = counting_model()
    recorder = Recorder(step)

    def step_fn(step_context):
        step_context.session.run(count)  # no hook sees it
        if step_context.session.run(step) == 6:
            step_context.request_stop()
        return step_context.run_with_hooks(count)

    found = []
    with tf.train.MonitoredSession(hooks=[recorder]) as session:
        while not session.should_stop():
            if len(found) == 2:
                session.run(count)
            found.append(session.run_step_fn(step_fn))
    assert found == [2, 4]
    assert [values.results for values in recorder.values] == [2, 4, 5]


def test_a_step_function_takes_a_context():
    with tf.train.MonitoredSession() as session:
        for wrong in (lambda: 1, lambda context: 1, lambda step_context, more: 1):
            with pytest.raises(ValueError, match="expected step_context"):
                session.run_step_fn(wrong)


def test_a_session_creator_of_ones_own():
    class Creator(tf.train.SessionCreator):
        def create_session(self):
            return tf.Session()

    with tf.train.MonitoredSession(Creator()) as session:
        assert session.run(tf.constant(2.0)) == 2
    with pytest.raises(AttributeError, match="create_session"):
        tf.train.SessionCreator().create_session()


def test_a_singular_session_shows_the_session_beneath():
    step, count = counting_model()
    with tf.train.SingularMonitoredSession() as session:
        session.run(count)
        assert session.raw_session().run(step) == 1


# -- recovering ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_a_session_recovers_from_its_checkpoint(tmp_path, short_pauses, kind):
    _step, count = counting_model()
    trouble = failing([None, None, None, kind("gone"), None])
    recorder = Recorder()
    found = []
    options = {"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 2}
    hooks = [tf.train.StopAtStepHook(last_step=5), recorder]
    with tf.train.MonitoredTrainingSession(hooks=hooks, **options) as session:
        while not session.should_stop():
            with_count = [count, trouble]
            found.append(int(session.run(with_count)[0]))
    assert found == [1, 2, 3, 3, 4, 5]  # the fourth step failed: back to the checkpoint after the second
    assert recorder.calls.count("after_create_session") == 2
    assert recorder.calls.count("begin") == 1
    assert saved_steps(tmp_path)[-1] == 5


def test_without_a_checkpoint_a_session_begins_anew(short_pauses):
    _, count = counting_model()
    trouble = failing([None, tf.errors.AbortedError("gone")])
    with tf.train.MonitoredSession() as session:
        assert [int(session.run([count, trouble])[0]) for _ in range(3)] == [1, 1, 2]


def test_what_goes_on_failing_is_raised(short_pauses):
    counting_model()
    trouble = failing([tf.errors.AbortedError("gone for good")] * 100)
    with pytest.raises(tf.errors.AbortedError, match="for good"), tf.train.MonitoredSession() as session:
        session.run(trouble)


def test_a_singular_session_does_not_recover():
    trouble = failing([tf.errors.AbortedError("gone")])
    with pytest.raises(tf.errors.AbortedError), tf.train.SingularMonitoredSession() as session:
        session.run(trouble)


def test_a_step_function_is_called_again_after_a_recovery(short_pauses):
    trouble = failing([tf.errors.UnavailableError("gone")])
    with tf.train.MonitoredSession() as session:
        assert session.run_step_fn(lambda step_context: step_context.run_with_hooks(trouble)) == 1


def test_a_failure_while_the_session_is_made_is_recovered_from(short_pauses):
    variable = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    with tf.control_dependencies([failing([tf.errors.UnavailableError("not yet")])]):
        init_op = variable.assign(3.0)
    creator = tf.train.ChiefSessionCreator(tf.train.Scaffold(init_op=init_op))
    with tf.train.MonitoredSession(creator) as session:
        assert session.run(variable) == 3


# -- training sessions ---------------------------------------------------------------------------------


def test_a_training_session_goes_on_where_another_stopped(tmp_path):
    step, count = counting_model()
    for last_step in (3, 7):
        hooks = [tf.train.StopAtStepHook(last_step=last_step)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), hooks=hooks) as session:
            while not session.should_stop():
                session.run(count)
    assert saved_steps(tmp_path) == [0, 3, 7]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path)) as session:
        assert session.run(step) == 7


def test_intervals_of_a_training_session(tmp_path):
    counting_model()
    tf.summary.scalar("a", 1.0)

    def kinds(**options):
        with tf.train.MonitoredTrainingSession(**options) as session:
            return [type(hook).__name__ for hook in session._hooks]

    folder = {"checkpoint_dir": str(tmp_path)}
    assert kinds() == []
    assert kinds(**folder) == ["StepCounterHook", "SummarySaverHook", "CheckpointSaverHook"]
    assert kinds(summary_dir=str(tmp_path)) == ["StepCounterHook", "SummarySaverHook"]
    assert kinds(**folder, save_checkpoint_secs=None, save_summaries_steps=None) == ["StepCounterHook"]
    assert kinds(**folder, log_step_count_steps=None, save_summaries_secs=None, save_checkpoint_steps=5) == [
        "CheckpointSaverHook"
    ]
    assert kinds(**folder, is_chief=False, **ready()) == []


def test_the_order_of_hooks(tmp_path):
    counting_model()
    first, second = Recorder(), Recorder()
    with tf.train.MonitoredTrainingSession(hooks=[first], chief_only_hooks=[second]) as session:
        assert session._hooks == [first, second]
    with tf.train.MonitoredTrainingSession(is_chief=False, hooks=[first], chief_only_hooks=[second], **ready()) as one:
        assert one._hooks == [first]


def ready():
    """A scaffold with which a worker has nothing to wait for."""
    return {"scaffold": tf.train.Scaffold(ready_op=tf.constant([], tf.string), ready_for_local_init_op=tf.no_op())}


PREEMPTED = """
import sys, time
import tfray as tf
step = tf.train.get_or_create_global_step()
count = step.assign_add(1)
with tf.train.MonitoredTrainingSession(checkpoint_dir={folder!r}, save_checkpoint_secs=1000) as session:
    while {condition}:
        print(session.run(count), flush=True)
        time.sleep(0.02)
print("not reached")
"""


@pytest.mark.parametrize("condition", ["not session.should_stop()", "True"])
def test_sigterm_saves_and_ends_the_process(tmp_path, condition):
    program = PREEMPTED.format(folder=str(tmp_path), condition=condition)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(5):
        last = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    out, err = rest_of(process), process.stderr.read()
    assert process.returncode == EXIT_CODE == 143, err
    assert "Traceback" not in err and "not reached" not in out
    assert saved_steps(tmp_path) == [0, int([last, *out.split()][-1])]


def test_a_programs_own_handler_stays():
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        mine = signal.getsignal(signal.SIGTERM)
        with tf.train.MonitoredTrainingSession():
            assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_handler_goes_with_the_session():
    before = signal.getsignal(signal.SIGTERM)  # nobody's, or Ray's
    with tf.train.MonitoredTrainingSession():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(ZeroDivisionError), tf.train.MonitoredTrainingSession():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) is before


# -- on Ray --------------------------------------------------------------------------------------------


PS, WORKER = "/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:CPU:0"
JOBS = {"ps": tf.JobSpec(1, num_cpus=0.1), "worker": tf.JobSpec(1, num_cpus=0.1)}


@pytest.mark.fault(
    "Workers and parameter servers",
    "A device dies while a session uses it.",
    happens="`tf.errors.UnavailableError` with its name. A `MonitoredTrainingSession` replaces it and goes on.",
    promise="Nobody waits for it, and the other devices keep their state.",
)
@pytest.mark.ray
@pytest.mark.parametrize("device", [PS, pytest.param(WORKER, marks=pytest.mark.slow)])
def test_a_session_recovers_from_the_death_of_a_device(ray_local, tmp_path, device):
    with tf.device(PS):
        _, count = counting_model()
        weight = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        with tf.device(WORKER):
            gradient = tf.constant(1.0) * 2
        train = weight.assign_add(gradient)
    found = []
    with tf.Cluster(JOBS) as cluster:
        options = {"master": cluster, "checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 2}
        hooks = [tf.train.StopAtStepHook(last_step=6)]
        with tf.train.MonitoredTrainingSession(hooks=hooks, **options) as session:
            while not session.should_stop():
                found.append(int(session.run([train, count])[0]))
                if len(found) == 3:
                    kill_actor(ray_local, cluster, device)
    assert found == [2, 4, 6, 6, 8, 10, 12]
    assert saved_steps(tmp_path)[-1] == 6


@pytest.mark.ray
def test_workers_wait_for_the_chief(ray_local):
    with tf.device(PS):
        step, count = counting_model()
    graph = tf.get_default_graph()
    with tf.Cluster(JOBS) as cluster:

        def work():
            with graph.as_default():
                session = tf.train.MonitoredTrainingSession(cluster, is_chief=False, max_wait_secs=60)
                with session:
                    while not session.should_stop():
                        if session.run(step) >= 3:
                            return True

        tf.train.Scaffold().finalize()  # one graph for both: it must not grow under the other's feet
        task = Task(work)
        assert not task.done
        with tf.train.MonitoredTrainingSession(cluster) as session:
            for _ in range(3):
                session.run(count)
            assert task.result()


@pytest.mark.ray
def test_workers_recover_when_the_chief_has_replaced_a_device(ray_local, short_pauses):
    with tf.device(PS):
        _step, count = counting_model()
    with tf.Cluster(JOBS) as cluster:
        scaffold = tf.train.Scaffold().finalize()
        with (
            tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold, cluster)) as chief,
            tf.train.MonitoredSession(tf.train.WorkerSessionCreator(scaffold, cluster)) as worker,
        ):
            assert [int(session.run(count)) for session in (chief, worker)] == [1, 2]
            kill_actor(ray_local, cluster, PS)
            wait_for(lambda: int(chief.run(count)) == 1)  # it dies soon
            assert int(worker.run(count)) == 2


def test_threads_end_with_the_session():
    before = set(threading.enumerate())
    values = tf.train.input_producer(tf.constant([1, 2, 3]), shuffle=False).dequeue()
    with tf.train.MonitoredSession() as session:
        session.run(values)
        assert set(threading.enumerate()) - before
    wait_for(lambda: not set(threading.enumerate()) - before)
