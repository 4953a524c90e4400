"""Steps that compute or wait, and are to end: at their deadline, when their session is closed, after Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tfray as tf
from tests.support.local_ray import start_local_ray
from tests.support.processes import PATIENCE_S, Barrier, wait_for
from tests.support.waiting import Task, raised_at_the_limit, timed_out
from tfray.errors import CancelledError, DeadlineExceededError
from tfray.runtime import step
from tfray.runtime.compiled_body import CompiledBody
from tfray.runtime.host_values import MAX_INLINED_DEPTH

# -- loops ---------------------------------------------------------------------------------------------


def for_ever(body, start):
    """A loop without end around `body`."""
    return tf.while_loop(lambda i, _: i >= 0, lambda i, x: (i * 0, body(x)), [tf.constant(0), start])[1]


def nested(depth):
    return tf.identity if depth == 0 else lambda x: for_ever(nested(depth - 1), x)


def in_a_branch():
    return tf.cond(tf.placeholder_with_default(True, []), lambda: for_ever(tf.identity, 1.0), lambda: tf.constant(1.0))


def stacked():
    """It keeps the values of all turns, for its gradient."""
    x = tf.constant(1.0)
    return tf.gradients(for_ever(lambda y: y * 1.5, x), x)[0]


def with_a_queue():
    queue = tf.FIFOQueue(1, tf.float32, [])
    with tf.control_dependencies([queue.enqueue(1.0)]):
        start = tf.constant(1.0)

    def body(x):
        taken = queue.dequeue()
        with tf.control_dependencies([queue.enqueue(taken)]):
            return tf.identity(x)

    return for_ever(body, start)


def over_two_devices():
    with tf.device("/cpu:0"):
        start = tf.constant(1.0)

    def body(x):
        with tf.device("/cpu:1"):
            return x * 1.5

    with tf.device("/cpu:0"):
        return for_ever(body, start)


def of_a_dataset():
    return tf.data.Dataset.range(10).repeat().reduce(np.int64(0), lambda total, element: total + element)


def in_a_function_of_a_dataset():
    dataset = tf.data.Dataset.range(10).map(lambda element: for_ever(tf.identity, element))
    return dataset.prefetch(1).make_one_shot_iterator().get_next()


LOOPS = {
    "plain": lambda: tf.while_loop(lambda i: i >= 0, lambda i: i * 0, [0]),
    "large": lambda: for_ever(lambda x: tf.sqrt(x * 1.5 + 1), tf.ones([1 << 18])),
    "of unknown shape": lambda: for_ever(tf.identity, tf.placeholder_with_default(np.ones(3, np.float32), [None])),
    "in a branch": in_a_branch,
    "nested": lambda: nested(2)(tf.constant(1.0)),
    "deeply nested": lambda: nested(MAX_INLINED_DEPTH + 2)(tf.constant(1.0)),
    "with gradients": stacked,
    "with a function": lambda: for_ever(lambda x: tf.reshape(tf.py_func(lambda y: y, [x], tf.float32), []), 1.0),
    "with a queue": with_a_queue,
    "over two devices": over_two_devices,
    "of a dataset": of_a_dataset,
}


@pytest.fixture
def computes(monkeypatch):
    """An event: generated code has begun to run in this process.

    It is not seen by `sys._current_frames`, which may never return: CPython 3.11 collects garbage in it, with a lock
    held that every thread takes that begins or ends.
    """
    begun, call = threading.Event(), CompiledBody.__call__

    def noted(self, *inputs):
        begun.set()
        return call(self, *inputs)

    monkeypatch.setattr(CompiledBody, "__call__", noted)
    return begun


def two_devices(**options):
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}, **options))


@pytest.mark.fault(
    "Steps",
    "A loop never ends, or a plan takes too long.",
    happens="`tf.errors.DeadlineExceededError` at the timeout of the step or of its session.",
    promise="The session goes on, and the next step is right.",
)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_ends_at_the_deadline_of_its_step(loop):
    fetch = LOOPS[loop]()
    with two_devices() as session, pytest.raises(DeadlineExceededError):
        session.run(fetch, options=tf.RunOptions(timeout_in_ms=100))


def test_a_loop_ends_at_the_timeout_of_its_session_and_is_named():
    loop = tf.while_loop(lambda i: i >= 0, lambda i: i * 0, [0], name="endless")

    def in_time(limit_ms, run):
        with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=limit_ms)) as session:
            run(session)

    for run in (lambda session: session.run(loop), lambda session: session.make_callable(loop)()):
        error = raised_at_the_limit(
            lambda limit_ms, run=run: in_time(limit_ms, run), [100, 10_000], lambda error: "endless" in str(error)
        )
        assert isinstance(error, DeadlineExceededError) and "endless" in str(error)


@pytest.mark.rows(every=3)
@pytest.mark.fault(
    "Steps",
    "A session is closed while other threads run its steps.",
    happens="These steps raise `tf.errors.CancelledError`, which says that the session was closed.",
    promise="None of them waits on, whatever it computes or waits for.",
)
@pytest.mark.parametrize("recorded", [False, True], ids=["", "recorded"])
@pytest.mark.parametrize("loop", [*LOOPS, "in a function of a dataset"])
def test_a_loop_ends_when_its_session_is_closed(loop, recorded, computes):
    fetch = LOOPS[loop]() if loop in LOOPS else in_a_function_of_a_dataset()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) if recorded else None
    metadata = tf.RunMetadata() if recorded else None
    session = two_devices()
    task = Task(session.run, fetch, None, options, metadata)
    assert computes.wait(PATIENCE_S)
    session.close()
    with pytest.raises(CancelledError, match="closed"):
        task.result()


def test_steps_of_many_threads_end_when_their_session_is_closed():
    begun = threading.Barrier(9, timeout=PATIENCE_S)
    loops = []
    for number in range(8):
        with tf.control_dependencies([tf.py_func(begun.wait, [], [])]):
            start = tf.constant(0) + 0
        loops.append(tf.while_loop(lambda i: i >= 0, lambda i: i * 0, [start], name=f"loop{number}"))
    session = tf.Session()
    tasks = [Task(session.run, loop) for loop in loops]
    begun.wait()
    session.close()
    for number, task in enumerate(tasks):
        with pytest.raises(CancelledError) as caught:
            task.result()
        # Each names its own loop, if it has come to it: no thread writes into another one's error.
        assert caught.value.op_name is None or caught.value.op_name.startswith((f"loop{number}", "add", "PyFunc"))


def test_a_step_that_misses_what_its_closing_session_has_dropped_is_cancelled():
    """Between two looks, too: nobody is told that a variable has no value."""
    total = tf.Variable(1.0) + tf.Variable(2.0)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    assert session.run(total) == 3
    with pytest.raises(CancelledError, match="closed"):
        session.run_observed(total, {}, lambda device, op, values: session.close())


def test_a_loop_of_gradients_ends_when_its_session_is_closed():
    forward_is_over = threading.Event()

    def note(value):
        forward_is_over.set()
        return value

    with tf.device("/cpu:0"):  # where so many turns take a second
        x = tf.constant(1.0)
        y = tf.while_loop(lambda i, _: i < 1_000_000, lambda i, y: (i + 1, tf.sin(y)), [0, x])[1]
        (gradient,) = tf.gradients(y, x, grad_ys=tf.py_func(note, [y], tf.float32))
    session = tf.Session()
    task = Task(session.run, gradient)
    assert forward_is_over.wait(PATIENCE_S)
    session.close()
    with pytest.raises(CancelledError):
        task.result()


@pytest.mark.fault(
    "Steps",
    "A loop never ends, or a plan takes too long.",
    happens="`tf.errors.DeadlineExceededError` at the timeout of the step or of its session.",
    promise="The session goes on, and the next step is right.",
)
def test_what_is_left_of_an_ended_loop_does_no_harm():
    """Its buffers, its place in loops and its timeout: the next step of the session is as good as the first."""
    limit = tf.placeholder(tf.int32, [])
    loop = tf.while_loop(lambda i, _: tf.not_equal(i, limit), lambda i, x: (i + 1, x + 1), [0, tf.zeros([1 << 18])])[1]
    with tf.Session() as session:
        for _ in range(3):
            with pytest.raises(DeadlineExceededError):
                session.run(loop, {limit: -1}, tf.RunOptions(timeout_in_ms=20))
            np.testing.assert_array_equal(session.run(loop, {limit: 5}), np.full(1 << 18, 5))


# -- straight plans ------------------------------------------------------------------------------------


def long_plan(x, operations=400):
    for _ in range(operations):
        x = tf.matmul(x, x)
    return x


@pytest.mark.parametrize("shape", [[600, 600], [None, None]], ids=str)
def test_a_long_plan_ends_between_its_operations(shape):
    x = tf.placeholder(tf.float64, shape)
    product = tf.reduce_sum(long_plan(x))
    with tf.Session() as session:
        began = time.process_time()
        session.run(tf.reduce_sum(long_plan(x, 50)), {x: np.zeros([600, 600])})
        whole_s = 8 * (time.process_time() - began)

        def attempt(limit_ms):
            nonlocal began
            began = time.process_time()
            session.run(product, {x: np.zeros([600, 600])}, tf.RunOptions(timeout_in_ms=limit_ms))

        # Other processes may take the time of the first attempts; what this one computes is counted.
        error = raised_at_the_limit(attempt, [50, 50, 500, 500], lambda error: "MatMul" in str(error))
        assert isinstance(error, DeadlineExceededError) and "MatMul" in str(error)
        assert time.process_time() - began < whole_s / 2


# -- functions of the program --------------------------------------------------------------------------


@pytest.mark.fault(
    "Steps",
    "Functions of one step wait for one another.",
    happens="Each runs on a thread of its own, and the step ends.",
    promise="Functions that could all go on never block each other.",
)
def test_functions_of_one_step_may_wait_for_one_another():
    barrier = threading.Barrier(2, timeout=PATIENCE_S)
    functions = [tf.py_func(lambda: np.int64(barrier.wait()), [], tf.int64) for _ in range(2)]
    with tf.Session() as session:
        for _ in range(3):
            assert sorted(session.run(functions)) == [0, 1]


def test_a_function_may_wait_for_one_that_comes_after_others():
    """What it waits for needs the result of another function, and an operation in between."""
    last_is_called = threading.Event()

    def wait():
        return last_is_called.wait(PATIENCE_S)

    def last(value):
        last_is_called.set()
        return value

    first = tf.py_func(wait, [], tf.bool)
    second = tf.py_func(lambda: np.float32(3), [], tf.float32)
    third = tf.py_func(last, [second * 2], tf.float32)
    with tf.Session() as session:
        assert session.run([first, third]) == [True, 6]


def test_a_function_may_wait_for_another_step_that_lets_this_one_go_on():
    """While it runs, a dequeue of its step gets its element, and leads to what the function waits for."""
    queue = tf.FIFOQueue(1, tf.float32, [])
    go_on, began = threading.Event(), threading.Event()

    def wait():
        began.set()
        return go_on.wait(PATIENCE_S)

    def release(value):
        go_on.set()
        return value

    waits = tf.py_func(wait, [], tf.bool)
    released = tf.py_func(release, [queue.dequeue()], tf.float32)
    with tf.Session() as session:
        task = Task(session.run, [waits, released])
        assert began.wait(PATIENCE_S)
        session.run(queue.enqueue(5.0))
        assert task.result() == [True, 5]


@pytest.mark.parametrize("stateful", [True, False])
def test_a_function_that_is_alone_is_called_on_the_thread_of_the_step(stateful):
    x = tf.placeholder(tf.float32, [])
    first = tf.py_func(lambda value: np.int64(threading.get_ident()), [x], tf.int64, stateful)
    second = tf.py_func(lambda before: np.int64(threading.get_ident()), [first], tf.int64, stateful)
    here = threading.get_ident()
    with tf.Session() as session:
        assert session.run([second, first], {x: 1}) == [here, here]


def test_quick_functions_are_called_one_after_another_in_the_order_of_the_graph(monkeypatch):
    monkeypatch.setattr(step, "NEXT_CALL_S", PATIENCE_S)  # on a busy machine nothing is quick
    called, running = [], []

    def call(number):
        running.append(number)
        called.append((int(number), len(running)))
        running.remove(number)

    functions = [tf.py_func(call, [number], []) for number in range(8)]
    with tf.Session() as session:
        session.run(functions)
    assert called == [(number, 1) for number in range(8)]


@pytest.mark.fault(
    "Steps",
    "A function of the program does not return.",
    happens="`tf.errors.DeadlineExceededError` at the deadline, `CancelledError` when the session is closed.",
    promise="The function holds up neither the deadline nor `close`.",
)
def test_a_function_that_does_not_return_holds_up_neither_deadline_nor_close():
    end, begun = threading.Event(), []

    def hang():
        begun.append(True)
        end.wait(2 * PATIENCE_S)

    functions = [tf.py_func(hang, [], [], name=f"hangs{i}") for i in range(2)]
    session = tf.Session()
    try:
        for fetch in (functions[0], functions):
            timed_out(session, fetch, at="hangs0")
        before = len(begun)
        task = Task(session.run, functions)
        wait_for(lambda: len(begun) > before)
        session.close()
        with pytest.raises(CancelledError):
            task.result()
    finally:
        end.set()


def test_errors_of_functions_on_threads_of_their_own_name_the_operation():
    def fail():
        raise ValueError("odd")

    functions = [tf.py_func(fail, [], [], name="fails"), tf.py_func(lambda: None, [], [])]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"odd[^$]*fails"):
        session.run(functions)


def test_what_a_function_returns_may_be_what_it_was_given():
    """Nothing is computed in that memory while it is in use."""
    x = tf.placeholder(tf.float32, [1000])
    kept = tf.py_func(lambda array: array, [x + 1], tf.float32)
    kept.set_shape([1000])
    sums = kept
    for _ in range(5):
        sums = sums * 2 + kept
    with tf.Session() as session:
        before, after = session.run([kept, sums], {x: np.zeros(1000)})
    np.testing.assert_array_equal(before, np.ones(1000))
    np.testing.assert_array_equal(after, np.full(1000, 63))


def test_the_time_of_a_function_is_its_own_in_a_recorded_step():
    functions = [tf.py_func(lambda: time.sleep(0.05), [], [], name=f"sleeps{i}") for i in range(2)]
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(functions, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    nodes = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
    took = {node.node_name: node.op_end_rel_micros for node in nodes}
    assert min(took["sleeps0"], took["sleeps1"]) >= 50_000


# -- Ctrl-C --------------------------------------------------------------------------------------------

INTERRUPTED = """
import threading, tfray as tf

def say():
    print("begun", flush=True)

with tf.control_dependencies([tf.py_func(say, [], [])]):
    start = tf.constant(0)
if {waits}:
    fetch = [tf.py_func(threading.Event().wait, [], tf.bool) for _ in range(2)], start
else:
    fetch = tf.while_loop(lambda i: i >= 0, lambda i: i * 0, [start])
with tf.Session() as session:
    session.run(fetch)
"""


@pytest.mark.fault(
    "Steps",
    "Ctrl-C while a step computes or waits.",
    happens="`KeyboardInterrupt`.",
    promise="The program ends at once.",
)
@pytest.mark.parametrize("waits", [False, True], ids=["in a loop", "waiting for functions"])
def test_ctrl_c_ends_a_step(waits):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(waits=waits)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in errors
    assert process.returncode == -signal.SIGINT


# -- on Ray --------------------------------------------------------------------------------------------

WORKER = "/job:worker/task:0/device:CPU:0"


@pytest.fixture(scope="module")
def cluster(_ray_of_the_session):
    start_local_ray(_ray_of_the_session)
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}) as cluster:
        yield cluster


def steps_on(cluster, device):
    import ray

    return ray.get(cluster.actor(device).status.remote())["steps"]


def counted(limit):
    """A loop on the worker that ends if it can count to `limit`."""
    with tf.device("/job:worker"):
        return tf.while_loop(lambda i: tf.not_equal(i, limit), lambda i: tf.abs(i + 1) % 1000, [0])


@pytest.mark.fault(
    "Steps",
    "A loop never ends, or a plan takes too long.",
    happens="`tf.errors.DeadlineExceededError` at the timeout of the step or of its session.",
    promise="The session goes on, and the next step is right.",
)
@pytest.mark.ray
def test_a_loop_on_a_device_actor_ends_at_its_deadline(cluster):
    limit = tf.placeholder(tf.int32, [])
    loop = counted(limit)
    with tf.Session(cluster) as session:
        for _ in range(3):
            with pytest.raises(DeadlineExceededError):
                session.run(loop, {limit: -1}, tf.RunOptions(timeout_in_ms=200))
            wait_for(lambda: steps_on(cluster, WORKER) == 0)
            assert session.run(loop, {limit: 7}) == 7


@pytest.mark.ray
@pytest.mark.parametrize("kind", ["loop", "functions", "function"])
def test_a_step_on_a_device_actor_ends_when_its_session_is_closed(cluster, tmp_path, kind):
    """Also one that has been quick before; and the actor is free for others."""
    limit = tf.placeholder(tf.int32, [])
    begun, end = Barrier(tmp_path), Barrier(tmp_path)

    def call(limit):
        if limit < 0:
            begun.reach("begun")
            end.wait("end")
        return limit

    with tf.device("/job:worker"):
        if kind == "loop":
            fetch = counted(limit)
        else:
            fetch = [tf.py_func(call, [limit], tf.int32) for _ in range(2 if kind == "functions" else 1)]
    session = tf.Session(cluster)
    for _ in range(20):
        assert set(np.ravel(session.run(fetch, {limit: 7}))) == {7}
    task = Task(session.run, fetch, {limit: -1})
    if kind == "loop":
        wait_for(lambda: steps_on(cluster, WORKER) == 1)
    else:
        begun.wait("begun")
    try:
        session.close()
        with pytest.raises(CancelledError):
            task.result()
        if kind != "function":  # its thread is within the function, as long as that takes
            wait_for(lambda: steps_on(cluster, WORKER) == 0)
        with tf.Session(cluster) as other:
            assert other.run(counted(tf.constant(9))) == 9
    finally:
        end.reach("end")
    wait_for(lambda: steps_on(cluster, WORKER) == 0)
