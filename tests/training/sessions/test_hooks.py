"""Hooks: what each does around the steps of a monitored session."""

from __future__ import annotations

import json
import logging
import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.counted_steps import Recorder, counting_model, saved_steps
from tests.support.event_reading import events_in, tensorboard_view
from tests.support.processes import PATIENCE_S
from tfray.training.sessions import hooks_saving
from tfray.training.sessions.debug_hooks import DumpingDebugHook, LocalCLIDebugHook
from tfray.training.sessions.hooks_saving import CheckpointSaverHook, SummarySaverHook


@pytest.fixture
def messages(caplog):
    logger = logging.getLogger("tfray")
    level = logger.level
    logger.setLevel(logging.INFO)
    yield lambda: [record.getMessage() for record in caplog.records]
    logger.setLevel(level)


def run(hooks, fetches, steps=None, each=None, **options):
    """Run until a hook asks to stop, or so many steps; returns the values."""
    found = []
    with tf.train.MonitoredSession(hooks=hooks, **options) as session:
        while not session.should_stop() and (steps is None or len(found) < steps):
            found.append(session.run(fetches))
            if each is not None:
                each(len(found))
    return found


# -- what a hook is ------------------------------------------------------------------------------------


def test_hooks_are_called_in_order():
    recorder = Recorder()
    run([recorder], tf.constant(1.0), steps=2)
    steps = ["before_run", "after_run"]
    assert recorder.calls == ["begin", "after_create_session", *steps, *steps, "end"]


def test_hooks_may_add_to_the_graph_when_they_begin():
    class Adds(tf.train.SessionRunHook):
        def begin(self):
            self.sum = tf.constant(1.0) + 2

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(self.sum)

        def after_run(self, run_context, run_values):
            self.value = run_values.results
            with pytest.raises(RuntimeError, match="finalized"):
                tf.constant(1.0)

    hook = Adds()
    run([hook], [], steps=1)
    assert hook.value == 3
    tf.constant(1.0)  # the graph can grow again


def test_hooks_get_what_they_ask_for():
    x = tf.placeholder(tf.float32, [], name="x")
    single, nested, nothing = Recorder(x + 1), Recorder({"a": [x, x * 2]}, {x: 3.0}), Recorder()
    assert run([single, nested, nothing], x * x, steps=1) == [9]
    assert single.values[0].results == 4
    assert nested.values[0].results == {"a": [3, 6]}
    assert nothing.values[0].results is None
    assert single.original.feed_dict is None


def test_a_hook_and_the_program_cannot_feed_the_same():
    x = tf.placeholder(tf.float32, [], name="x")
    with (
        pytest.raises(RuntimeError, match="the program feeds"),
        tf.train.MonitoredSession(hooks=[Recorder(None, {x: 3.0})]) as session,
    ):
        session.run(x, {x: 1.0})
    with pytest.raises(RuntimeError, match="another hook feeds"):
        run([Recorder(None, {x: 3.0}), Recorder(None, {x: 4.0})], x, steps=1)


def test_options_of_hooks_are_merged():
    first = Recorder(options=tf.RunOptions(timeout_in_ms=5000))
    second = Recorder(options=tf.RunOptions(timeout_in_ms=9000))
    run([first, second], tf.constant(1.0), steps=1)
    assert first.values[0].options.timeout_in_ms == 9000
    assert first.values[0].run_metadata is second.values[0].run_metadata


def test_hooks_do_not_end_after_an_error():
    recorder = Recorder()
    with pytest.raises(ZeroDivisionError), tf.train.MonitoredSession(hooks=[recorder]):
        raise ZeroDivisionError
    assert recorder.calls[-1] == "after_create_session"


# -- timers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every_steps", [3, 2.5, np.float32(3)])
def test_a_timer_of_steps(every_steps):
    timer = tf.train.SecondOrStepTimer(every_steps=every_steps)
    due = []
    for step in range(8):
        if timer.should_trigger_for_step(step):
            due.append(step)
            assert timer.update_last_triggered_step(step)[1] == (None if step == 0 else 3)
    assert due == [0, 3, 6]
    assert timer.last_triggered_step() == 6
    assert not timer.should_trigger_for_step(6)
    timer.reset()
    assert timer.should_trigger_for_step(6)


def test_a_timer_of_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("tfray.training.sessions.hooks.time.monotonic", lambda: now[0])
    timer = tf.train.SecondOrStepTimer(every_secs=10)
    assert timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
    now[0] = 109.0
    assert not timer.should_trigger_for_step(2)
    now[0] = 110.0
    assert not timer.should_trigger_for_step(1)
    assert timer.should_trigger_for_step(2)
    assert timer.update_last_triggered_step(2) == (10.0, 1)


def test_a_timer_takes_one_interval():
    for wrong in ({}, {"every_secs": 1, "every_steps": 1}):
        with pytest.raises(ValueError, match="one of them"):
            tf.train.SecondOrStepTimer(**wrong)


# -- stopping ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [{"last_step": 5}, {"last_step": 45 / 10}, {"num_steps": 5.0}])
def test_stop_at_a_step(limit):
    _step, count = counting_model()
    assert run([tf.train.StopAtStepHook(**limit)], count) == [1, 2, 3, 4, 5]


def test_stop_after_steps():
    step, count = counting_model()
    with tf.control_dependencies([tf.global_variables_initializer()]):
        start_at_ten = step.assign(10)
    scaffold = tf.train.Scaffold(init_op=start_at_ten)
    creator = tf.train.ChiefSessionCreator(scaffold)
    assert run([tf.train.StopAtStepHook(num_steps=2)], count, session_creator=creator) == [11, 12]


def test_stop_needs_one_limit_and_a_global_step():
    for wrong in ({}, {"num_steps": 1, "last_step": 1}):
        with pytest.raises(ValueError, match="either"):
            tf.train.StopAtStepHook(**wrong)
    with pytest.raises(RuntimeError, match="get_or_create_global_step"):
        tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=1)])


def loss_that_turns_nan():
    step, count = counting_model()
    with tf.control_dependencies([count]):
        value = tf.cast(step.read_value(), tf.float32)
        return tf.where(value > 2, np.float32(np.nan), value, name="loss")


def test_a_loss_that_is_no_number_fails():
    loss = loss_that_turns_nan()
    with pytest.raises(tf.train.NanLossDuringTrainingError, match="loss:0"):
        run([tf.train.NanTensorHook(loss)], loss)


def test_a_loss_that_is_no_number_stops():
    loss = loss_that_turns_nan()
    values = run([tf.train.NanTensorHook(loss, fail_on_nan_loss=False)], loss)
    assert values[:2] == [1, 2] and np.isnan(values[2]) and len(values) == 3


def evaluations(folder, tag, values):
    with tf.summary.FileWriter(folder) as writer:
        for step, value in values.items():
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)]), step)


@pytest.mark.parametrize(
    ("make", "argument", "values", "stops"),
    [
        ("stop_if_higher_hook", 0.9, {0: 0.5, 100: 0.8}, False),
        ("stop_if_higher_hook", 0.9, {0: 0.5, 100: 0.91}, True),
        ("stop_if_lower_hook", 0.1, {0: 0.5, 100: 0.2}, False),
        ("stop_if_lower_hook", 0.1, {0: 0.5, 100: 0.05}, True),
        ("stop_if_no_decrease_hook", 200, {0: 1.0, 100: 0.5, 200: 0.6, 300: 0.4, 400: 0.5}, False),
        ("stop_if_no_decrease_hook", 200, {0: 1.0, 100: 0.5, 200: 0.6, 300: 0.7}, True),
        ("stop_if_no_increase_hook", 200, {0: 0.1, 100: 0.5, 200: 0.6}, False),
        ("stop_if_no_increase_hook", 200, {0: 0.1, 100: 0.5, 200: 0.4, 300: 0.5}, True),
        ("stop_if_no_increase_hook", 1, {}, False),
    ],
)
def test_early_stopping(tmp_path, make, argument, values, stops):
    evaluations(tmp_path, "metric", values)
    _step, count = counting_model()
    hook = getattr(tf.contrib.estimator, make)(
        None, "metric", argument, eval_dir=str(tmp_path), run_every_secs=None, run_every_steps=1
    )
    assert len(run([hook], count, steps=3)) == (1 if stops else 3)


def test_early_stopping_ignores_the_first_steps(tmp_path):
    evaluations(tmp_path, "metric", {10: 5.0, 200: 0.1})
    _step, count = counting_model()
    hook = tf.contrib.estimator.stop_if_higher_hook(
        None, "metric", 1.0, str(tmp_path), min_steps=100, run_every_secs=None, run_every_steps=1
    )
    assert len(run([hook], count, steps=3)) == 3


def test_early_stopping_by_a_function():
    _step, count = counting_model()
    answers = iter([False, False, True])
    hook = tf.contrib.estimator.make_early_stopping_hook(
        None, lambda: next(answers), run_every_secs=None, run_every_steps=2
    )
    assert run([hook], count) == [1, 2, 3, 4, 5]
    with pytest.raises(TypeError, match="expected a function"):
        tf.contrib.estimator.make_early_stopping_hook(None, True)
    with pytest.raises(ValueError, match="eval_dir"):
        tf.contrib.estimator.stop_if_higher_hook(None, "metric", 1.0)


# -- logging -------------------------------------------------------------------------------------------


def test_tensors_are_logged(messages):
    step, count = counting_model()
    doubled = tf.multiply(step.read_value(), 2, name="doubled")
    hook = tf.train.LoggingTensorHook({"twice": doubled, "step": "global_step:0"}, every_n_iter=2)
    run([hook], count, steps=5)
    shown = [message for message in messages() if message.startswith("twice")]
    assert shown[0] == "twice = 0, step = 1"  # the fetched step is the one that the step leaves behind
    assert [message.partition(" (")[0] for message in shown[1:]] == ["twice = 4, step = 3", "twice = 8, step = 5"]


def test_tensors_are_logged_at_the_end(messages):
    step, count = counting_model()
    run([tf.train.LoggingTensorHook([step.read_value()], at_end=True, formatter=lambda v: f"so {v}")], count, steps=3)
    assert [message for message in messages() if message.startswith("so")] == ["so {'ReadVariableOp:0': np.int64(3)}"]


def test_logging_takes_one_interval():
    for wrong in ({}, {"every_n_iter": 1, "every_n_secs": 1}, {"every_n_iter": 0}):
        with pytest.raises(ValueError, match="every_n_iter"):
            tf.train.LoggingTensorHook([], **wrong)


def test_steps_are_counted(tmp_path, messages):
    _step, count = counting_model()
    run([tf.train.StepCounterHook(every_n_steps=4, output_dir=str(tmp_path))], count, steps=10)
    tf.summary.FileWriterCache.clear()
    found = [event for event in events_in(tmp_path) if event.HasField("summary")]
    assert [event.step for event in found] == [5, 9]
    assert all(event.summary.value[0].tag == "global_step/sec" for event in found)
    assert all(event.summary.value[0].simple_value > 0 for event in found)
    assert sum(message.startswith("global_step/sec: ") for message in messages()) == 2


def test_a_global_step_that_stays_is_noticed(messages):
    tf.train.get_or_create_global_step()
    run([tf.train.StepCounterHook()], tf.constant(1.0), steps=4)
    assert sum("stays at 0" in message for message in messages()) == 1


# -- waiting, feeding, the end -------------------------------------------------------------------------


def test_a_worker_waits_for_a_global_step():
    step, count = counting_model()
    steps = []
    creator = tf.train.ChiefSessionCreator()
    with tf.train.MonitoredSession(creator, [tf.train.GlobalStepWaiterHook(3)]) as session:
        raw = session._tf_sess()
        graph = tf.get_default_graph()

        def work():
            with graph.as_default():
                steps.append(session.run(step))

        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(2):
            raw.run(count)
        thread.join(0.2)
        assert steps == []
        raw.run(count)
        thread.join(PATIENCE_S)
        assert steps == [3]


def test_final_operations_are_run():
    step, count = counting_model()
    factor = tf.placeholder(tf.int64, [])
    hook = tf.train.FinalOpsHook({"result": step.read_value() * factor}, {factor: 10})
    run([hook], count, steps=3)
    assert hook.final_ops_values == {"result": 30}


def test_a_function_feeds():
    x = tf.placeholder(tf.float32, [])
    numbers = iter([1.0, 2.0, 3.0])
    assert run([tf.train.FeedFnHook(lambda: {x: next(numbers)})], x * 10, steps=2) == [10, 20]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a function"):
        tf.train.FeedFnHook({x: 1.0})


# -- saving --------------------------------------------------------------------------------------------


class Listener(tf.train.CheckpointSaverListener):
    def __init__(self, stop_at=None):
        self.calls = []
        self.stop_at = stop_at

    def begin(self):
        self.calls.append("begin")

    def before_save(self, session, global_step_value):
        self.calls.append(("before", global_step_value))

    def after_save(self, session, global_step_value):
        self.calls.append(("after", global_step_value))
        return global_step_value == self.stop_at

    def end(self, session, global_step_value):
        self.calls.append(("end", global_step_value))


def test_checkpoints_are_saved_every_few_steps(tmp_path):
    _step, count = counting_model()
    listener = Listener()
    hook = CheckpointSaverHook(str(tmp_path), save_steps=2, saver=tf.train.Saver(), listeners=[listener])
    run([hook], count, steps=5)
    assert saved_steps(tmp_path) == [0, 2, 4, 5]
    assert listener.calls[0] == "begin" and listener.calls[-1] == ("end", 5)
    assert listener.calls[1:5] == [("before", 0), ("after", 0), ("before", 2), ("after", 2)]
    assert (tmp_path / "graph.pbtxt").read_text().startswith("node {")
    tf.summary.FileWriterCache.clear()
    logs = [event for event in events_in(tmp_path) if event.HasField("session_log")]
    assert [event.step for event in logs] == [0, 2, 4, 5]
    assert logs[-1].session_log.checkpoint_path == str(tmp_path / "model.ckpt-5")
    assert logs[-1].session_log.status == tf.SessionLog.CHECKPOINT


def test_checkpoints_are_saved_every_few_seconds(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("tfray.training.sessions.hooks.time.monotonic", lambda: now[0])
    _step, count = counting_model()

    def each(steps):
        now[0] += 4

    hook = CheckpointSaverHook(str(tmp_path), save_secs=10, saver=tf.train.Saver(), checkpoint_basename="mine")
    run([hook], count, steps=7, each=each)
    assert saved_steps(tmp_path) == [0, 4, 7]
    assert (tmp_path / "mine-7.index").exists()


def test_a_listener_may_stop_training(tmp_path):
    _step, count = counting_model()
    hook = CheckpointSaverHook(str(tmp_path), save_steps=2, saver=tf.train.Saver(), listeners=[Listener(stop_at=4)])
    assert run([hook], count) == [1, 2, 3, 4]


def test_the_saver_is_found(tmp_path):
    _step, count = counting_model()
    with pytest.raises(ValueError, match="not both"):
        CheckpointSaverHook(str(tmp_path), save_steps=1, saver=tf.train.Saver(), scaffold=tf.train.Scaffold())
    run([CheckpointSaverHook(str(tmp_path), save_steps=10)], count, steps=1)  # the monitored session has made one
    assert saved_steps(tmp_path) == [0, 1]


def test_an_asynchronous_saver_is_waited_for(tmp_path):
    _step, count = counting_model()
    hook = CheckpointSaverHook(str(tmp_path), save_steps=1, saver=tf.train.Saver(asynchronous=True))
    run([hook], count, steps=3)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-3")


def test_summaries_are_saved_every_few_steps(tmp_path):
    step, count = counting_model()
    summary = tf.summary.scalar("twice", step.read_value() * 2)
    run([SummarySaverHook(save_steps=3, output_dir=str(tmp_path), summary_op=summary)], count, steps=8)
    tf.summary.FileWriterCache.clear()
    events = events_in(tmp_path)[3:]  # after the version, the graph and the meta graph
    assert events[0].session_log.status == tf.SessionLog.START
    found = [(event.step, event.summary.value[0].simple_value) for event in events[1:]]
    assert found == [(1, 0), (4, 6), (7, 12)]


def test_several_summaries_are_saved(tmp_path):
    _step, count = counting_model()
    first, second = tf.summary.scalar("a", 1.0), tf.summary.scalar("b", 2.0)
    run([SummarySaverHook(save_steps=1, output_dir=str(tmp_path), summary_op=[first, second])], count, steps=1)
    tf.summary.FileWriterCache.clear()
    assert [event.summary.value[0].tag for event in events_in(tmp_path) if event.HasField("summary")] == ["a", "b"]


def test_summaries_of_a_scaffold_are_saved(tmp_path):
    _step, count = counting_model()
    tf.summary.scalar("a", 1.0)
    scaffold = tf.train.Scaffold()
    hook = SummarySaverHook(save_secs=0.0, output_dir=str(tmp_path), scaffold=scaffold)
    run([hook], count, steps=2, session_creator=tf.train.ChiefSessionCreator(scaffold))
    tf.summary.FileWriterCache.clear()
    assert sum(event.HasField("summary") for event in events_in(tmp_path)) == 2


def test_summary_hooks_take_one_source(tmp_path):
    for wrong in ({}, {"scaffold": tf.train.Scaffold(), "summary_op": tf.constant("")}):
        with pytest.raises(ValueError, match="scaffold or a summary_op"):
            SummarySaverHook(save_steps=1, output_dir=str(tmp_path), **wrong)


def test_checkpoints_are_saved_when_it_pays(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    _step, count = counting_model()

    class SlowSaver(tf.train.Saver):
        def save(self, *args, **kwargs):
            now[0] += 8.0
            return super().save(*args, **kwargs)

    def each(steps):
        now[0] += 30

    timer = hooks_saving.AutomaticTimer()
    hook = CheckpointSaverHook(str(tmp_path), save_secs="automatic", saver=SlowSaver())
    run([hook], count, steps=80, each=each)
    saved = saved_steps(tmp_path)
    # The cost is smoothed: sqrt(2 * 4.25 s * 1 day) is about 860 s first, then longer.
    assert saved[0] == 0 and saved[-1] == 80
    assert 860 / 30 - 2 < saved[1] < 860 / 30 + 3 and saved[1] < saved[2] - saved[1]
    timer.saved(8.0)
    before = timer._interval.seconds
    for _ in range(20):
        timer.failed()
    assert timer._interval.seconds < before / 3


def test_intervals_of_checkpoints_are_checked(tmp_path):
    for wrong in ({"save_secs": "sometimes"}, {"save_secs": "automatic", "save_steps": 3}, {}):
        with pytest.raises(ValueError, match=r"one of them|automatic"):
            CheckpointSaverHook(str(tmp_path), **wrong)


# -- tracing -------------------------------------------------------------------------------------------


def test_steps_are_traced(tmp_path):
    _step, count = counting_model()
    run([tf.train.ProfilerHook(save_steps=3, output_dir=str(tmp_path), show_memory=True)], count, steps=8)
    tf.summary.FileWriterCache.clear()
    timelines = sorted(path.name for path in tmp_path.glob("*.json"))
    assert timelines == ["timeline-4.json", "timeline-7.json"]
    events = json.loads((tmp_path / timelines[0]).read_text())["traceEvents"]
    assert "AssignAdd" in {event["name"] for event in events}
    view = tensorboard_view(tmp_path)
    assert view.Tags()["run_metadata"] == ["step_4", "step_7"]
    assert any(stats.node_name == "count" for stats in view.RunMetadata("step_4").step_stats.dev_stats[0].node_stats)


# -- on Ray --------------------------------------------------------------------------------------------


@pytest.mark.ray
def test_hooks_on_a_cluster(ray_local, tmp_path):
    with tf.device("/job:ps/task:0"):
        step, count = counting_model()
    tf.summary.scalar("twice", step.read_value() * 2)
    jobs = {"ps": tf.JobSpec(1, num_cpus=0.1), "worker": tf.JobSpec(1, num_cpus=0.1)}
    with tf.Cluster(jobs) as cluster:
        options = {"master": cluster, "checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 3}
        hooks = [tf.train.StopAtStepHook(last_step=5), Recorder(step)]
        with tf.train.MonitoredTrainingSession(
            hooks=hooks, save_summaries_steps=2, log_step_count_steps=2, **options
        ) as session:
            while not session.should_stop():
                session.run(count)
        assert [values.results for values in hooks[1].values] == [1, 2, 3, 4, 5]  # as each step leaves it
        tf.summary.FileWriterCache.clear()
        assert saved_steps(tmp_path) == [0, 3, 5]
        with tf.train.MonitoredTrainingSession(**options) as session:
            assert session.run(step) == 5
    tags = {value.tag for event in events_in(tmp_path) for value in event.summary.value}
    assert tags == {"twice", "global_step/sec"}


def test_the_global_step_is_named_as_in_tensorflow():
    graph = tf.Graph()
    with graph.as_default(), tf.name_scope("model"):
        step = tf.train.get_or_create_global_step()
    assert step.op.name == "global_step" and step.shape.as_list() == [] and step.dtype.base_dtype is tf.int64
    assert {"global_step/Initializer/zeros", "global_step/Assign", "global_step/read"} <= {
        op.name for op in graph.get_operations()
    }


# -- looking into steps --------------------------------------------------------------------------------


def test_a_hook_writes_the_tensors_of_each_step(tmp_path):
    step = tf.train.get_or_create_global_step()
    twice = tf.multiply(tf.assign_add(step, 1), 2, name="twice")
    hooks = [DumpingDebugHook(tmp_path, "twice.*", log_usage=False), tf.train.StopAtStepHook(last_step=2)]
    assert run(hooks, twice) == [2, 4]
    dumps = [tf.debug.DebugDumpDir(tmp_path / f"run_{number}") for number in (1, 2)]
    assert [[datum.name for datum in dump.dumped_tensor_data] for dump in dumps] == [["twice:0"], ["twice:0"]]
    assert [dump.get("twice:0") for dump in dumps] == [2, 4]


def test_a_hook_stops_at_what_is_no_number():
    value = tf.placeholder(tf.float32, [], name="value")
    logarithm = tf.log(value, name="logarithm")
    hook = LocalCLIDebugHook(on_hit="raise")
    hook.add_tensor_filter("has_inf_or_nan", tf.debug.has_inf_or_nan)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert session.run(logarithm, {value: 1.0}) == 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="logarithm"):
            session.run(logarithm, {value: 0.0})


def test_sessions_that_follow_each_other_are_watched_by_one_hook(tmp_path):
    hook = DumpingDebugHook(str(tmp_path))
    one = tf.constant(1, name="one")
    for _ in range(2):
        run([hook], one, steps=1)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["run_1", "run_2"]
