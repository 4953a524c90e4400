"""Operations that run aside, beside the others: when they run never changes what a step computes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tfray as tf
from tests.support.processes import PATIENCE_S
from tests.support.random_graphs import check_program, programs
from tfray.errors import InvalidArgumentError
from tfray.ops.kernels import cpu_threads
from tfray.ops.kernels.cpu_threads import Lane, thread_count
from tfray.runtime import lanes, memory
from tfray.runtime.compiled_body import CompiledBody
from tfray.runtime.device import Device, gpu_count
from tfray.runtime.lanes import Aside
from tfray.runtime.segment_body import generic_body
from tfray.runtime.step import Step

RANDOM = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

helped = pytest.mark.skipif(thread_count() < 2, reason="this process may use one core")
on_cpu = pytest.mark.skipif(gpu_count() > 0, reason="operations run aside on CPUs alone, and a GPU is in sight")


class NoHelper:
    """A pool whose helpers never come: what runs aside is made when its result is awaited, the last moment there is."""

    def start(self, task):
        pass


@pytest.fixture
def late(monkeypatch):
    monkeypatch.setattr(cpu_threads, "thread_count", lambda: 2)
    monkeypatch.setattr(cpu_threads, "_shared_pool", NoHelper)
    monkeypatch.setattr(cpu_threads, "_pause", cpu_threads._Pause())


def every_aside(body, kernel_of, roots, groups):
    """All operations that may run aside, for as long as they may."""
    units = lanes._units(body, groups)
    ends = lanes._Ends(body, roots, units)
    alone = [first for first, last in units if first == last and lanes._may(body.ops[first])]
    computed = [i for i in alone if not all(tensor in body.constants for tensor in body.ops[i].outputs)]
    return {i: Aside(i, ends.of(i)) for i in computed if ends.of(i) > i}


@pytest.fixture
def eager(monkeypatch):
    """Whatever may run aside does, however little it computes."""
    monkeypatch.setattr(memory, "find_asides", every_aside)
    return started(monkeypatch)


def started(monkeypatch):
    """What lanes have started, filled as steps run."""
    calls = []
    start = Lane.start
    monkeypatch.setattr(Lane, "start", lambda lane, call: calls.append(call) or start(lane, call))
    return calls


# -- random programs -----------------------------------------------------------------------------------


@RANDOM
@given(programs(stateful=True))
def test_programs_whose_operations_run_as_late_as_they_may(late, eager, program):
    check_program(program, None, [2, 3, 2])


@RANDOM
@given(programs(stateful=True))
def test_programs_whose_operations_run_on_two_threads(eager, program):
    check_program(program, None, [2, 3, 2])


# -- memory --------------------------------------------------------------------------------------------


def matrix(seed, size=48):
    return np.random.default_rng(seed).uniform(-1, 1, (size, size)).astype(np.float32)


@on_cpu
def test_nothing_writes_over_what_an_operation_aside_still_reads(late, eager):
    a, b = matrix(0), matrix(1)
    x = tf.matmul(tf.placeholder(tf.float32, a.shape, name="a"), b)
    product = tf.matmul(x, x)
    y = tf.nn.relu(x)  # the last that takes x, and could write over it
    total = product + y
    with tf.Session() as session:
        found = [session.run(total, {"a:0": a}) for _ in range(3)]
    expected = (a @ b) @ (a @ b) + np.maximum(a @ b, 0)
    assert eager
    np.testing.assert_allclose(found, [expected] * 3, rtol=1e-4, atol=1e-4)


@on_cpu
def test_a_result_that_nothing_takes_is_not_written_into_later_ones(late, monkeypatch):
    monkeypatch.setattr(memory, "find_asides", lambda body, *arguments: {first_product(body): awaited_next(body)})
    a, b = matrix(0), matrix(1)
    x = tf.placeholder(tf.float32, a.shape)
    unused = tf.matmul(x, x)
    y = tf.matmul(x, b)
    for _ in range(3):
        y = tf.matmul(tf.tanh(y), b)
    with tf.Session() as session:
        found = [session.run([unused.op, y], {x: a})[1] for _ in range(3)]
    expected = a @ b
    for _ in range(3):
        expected = np.tanh(expected) @ b
    np.testing.assert_allclose(found, [expected] * 3, rtol=1e-4, atol=1e-4)


def first_product(body):
    return next(i for i, op in enumerate(body.ops) if op.type == "MatMul")


def awaited_next(body):
    return Aside(first_product(body), first_product(body) + 1)


@on_cpu
def test_a_variable_changes_after_what_reads_it_aside(late, eager):
    a = matrix(0)
    v = tf.Variable(a)
    product = tf.matmul(v, v)
    with tf.control_dependencies([tf.shape(product)]):
        change = v.assign_add(tf.ones_like(v))
    with tf.control_dependencies([change]):
        later = tf.matmul(v.read_value(), a)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for turn in range(3):
            old = a + turn
            found = session.run([product, later])
            np.testing.assert_allclose(found[0], old @ old, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(found[1], (old + 1) @ a, rtol=1e-4, atol=1e-4)


class Receiver:
    """Takes what a step sends, and notes on which threads it was asked for memory."""

    copies = True

    def __init__(self):
        self.threads, self.received, self.rooms = set(), {}, {}

    def room(self, key, destination, shape, dtype):
        self.threads.add(threading.get_ident())
        self.rooms[key] = np.empty(shape, dtype)
        return self.rooms[key]

    def send(self, key, destination, value):
        assert value is self.rooms[key], "a copy would have been needed"
        self.received[key] = value.copy()

    def flush(self):
        pass


def test_what_runs_aside_is_computed_where_it_is_sent_from(eager):
    a = matrix(0)
    x = tf.placeholder(tf.float32, a.shape)
    gradients = [tf.matmul(x, x, transpose_a=bool(i)) for i in range(2)]
    y = tf.matmul(tf.tanh(x), x)
    graph = tf.get_default_graph()
    for i, gradient in enumerate(gradients):
        graph.add_operation("Send", [gradient], {"key": str(i), "source": "here", "destination": "there"})
    body = generic_body(graph.get_operations()[1:], [x], [y])
    device = Device.open("/job:worker/task:0/device:CPU:0")
    compiled = CompiledBody(body, device, sends_copy=True, sent_in_place_bytes=1, fetched=[y])
    receiver = Receiver()
    (found,) = compiled(Step(1, receiver), a)
    assert eager and receiver.threads == {threading.get_ident()}
    np.testing.assert_allclose(found, np.tanh(a) @ a, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(receiver.received["0"], a @ a, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(receiver.received["1"], a.T @ a, rtol=1e-4, atol=1e-4)


# -- a network -----------------------------------------------------------------------------------------


def losses_of_a_network(steps=4):
    """Losses of a network of convolutions, whose gradients of filters need not be waited for."""
    random = np.random.default_rng(0)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x = net = tf.placeholder(tf.float32, [4, 24, 24, 32])
        for _ in range(4):
            weights = tf.Variable(random.normal(0, 0.05, (3, 3, 32, 32)).astype(np.float32))
            net = tf.nn.relu(tf.nn.conv2d(net, weights, 1, "SAME"))
        loss = tf.reduce_mean(tf.square(net - 1.0))
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
        image = random.normal(size=x.shape.as_list()).astype(np.float32)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return [session.run([loss, train], {x: image})[0] for _ in range(steps)]


@on_cpu
def test_a_network_trains_to_the_bit_as_it_does_in_one_lane(monkeypatch):
    calls = started(monkeypatch)
    found = losses_of_a_network()
    assert calls, "nothing has run aside"
    monkeypatch.setattr(memory, "find_asides", lambda *arguments: {})
    assert found == losses_of_a_network()
    assert found[-1] < found[0]


# -- errors --------------------------------------------------------------------------------------------


@on_cpu
def test_an_error_of_what_runs_aside_names_its_operation_and_line(eager):
    table = tf.placeholder(tf.int32, [None])
    x = tf.placeholder(tf.float32, [64, 64])
    rows = tf.gather(x, table, name="rows")  # the line at fault
    rest = x
    for _ in range(6):
        rest = tf.matmul(rest, x)
    image = np.ones((64, 64), np.float32)
    with tf.Session() as session:
        session.run([rest, tf.negative(rows)], {x: image, table: np.zeros(64, np.int32)})
        del eager[:]
        with pytest.raises(InvalidArgumentError) as caught:
            session.run([rest, tf.negative(rows)], {x: image, table: np.full(64, 99, np.int32)})
    assert eager and caught.value.op.name == "rows"
    assert "test_lanes.py" in str(caught.value)


@helped
def test_an_error_waits_for_what_runs_aside(monkeypatch):
    """The memory of a step is not given back while a helper works in it."""
    monkeypatch.setattr(cpu_threads, "_pause", cpu_threads._Pause())
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()
    finish = cpu_threads.Aside.finish

    def call():
        begun.set()
        assert may_end.wait(PATIENCE_S)
        ended.set()

    def finished(aside):
        may_end.set()  # only who waits for the call lets it end
        return finish(aside)

    monkeypatch.setattr(cpu_threads.Aside, "finish", finished)
    with pytest.raises(RuntimeError, match="the other lane"), Lane() as lane:
        lane.start(call)
        assert begun.wait(PATIENCE_S)
        raise RuntimeError("the other lane")
    assert ended.is_set()


@helped
def test_an_error_of_a_helper_is_raised_where_the_result_is_awaited(monkeypatch):
    monkeypatch.setattr(cpu_threads, "_pause", cpu_threads._Pause())
    begun = threading.Event()

    def call():
        begun.set()
        raise KeyError("aside")

    with pytest.raises(KeyError, match="aside"), Lane() as lane:
        aside = lane.start(call)
        assert begun.wait(PATIENCE_S)
        aside.result()


# -- what runs aside -----------------------------------------------------------------------------------


def asides_of(build):
    """Types of the operations that run aside when what `build` gives is run."""
    found = []
    find = memory.find_asides

    def recorded(body, *arguments):
        asides = find(body, *arguments)
        found.extend(body.ops[index].type for index in asides)
        return asides

    with pytest.MonkeyPatch.context() as patch, tf.Graph().as_default():
        patch.setattr(memory, "find_asides", recorded)
        fetches = build()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            del found[:]
            session.run(fetches)
    return found


def large():
    return tf.random_uniform([512, 512], seed=1)


def chain():
    x = large()
    for _ in range(4):
        x = tf.matmul(x, x)
    return x


def branches():
    x = large()
    return tf.matmul(x, x) + tf.matmul(chain(), x)


def small():
    x = tf.random_uniform([32, 32], seed=1)
    return [tf.matmul(x, x) for _ in range(8)]


def updated():
    """What reads a variable must have read it before it changes."""
    v = tf.Variable(np.ones((512, 512), np.float32))
    products = [tf.matmul(v, v)]
    with tf.control_dependencies(products):
        change = v.assign_add(large())
    return [*products, change, chain()]


@on_cpu
@pytest.mark.parametrize(("build", "count"), [(chain, 0), (branches, 1), (small, 0), (updated, 0)])
def test_long_operations_that_nothing_waits_for_run_aside(build, count):
    assert asides_of(build).count("MatMul") == count
