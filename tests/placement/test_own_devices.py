"""A device's part on the GPUs beside it: by plans whose GPUs compute as CPUs do, so that no GPU is needed."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.actors.devices.own_gpus import own_gpus
from tfray.actors.devices.registered_plan import RegisteredPlan
from tfray.framework.region import ops_within
from tfray.placement.own_devices import over_own_devices
from tfray.placement.pipeline import compile_step
from tfray.runtime.device import Device
from tfray.runtime.plan_group import PlanGroup
from tfray.runtime.rendezvous import Mailbox
from tfray.runtime.step import Step

CPU = "/job:localhost/task:0/device:CPU:0"
GPUS = [f"/job:localhost/task:0/device:GPU:{index}" for index in range(2)]


class Worker:
    """A CPU and the two GPUs beside it."""

    def __init__(self):
        self.device = Device.open(CPU).for_session()
        self.gpus = [Device(name) for name in GPUS]
        self.steps = 0

    def run(self, fetched, feeds=None):
        """What a session would return, and by operation the device on which it ran."""
        feeds = feeds or {}
        fetched = [fetched] if isinstance(fetched, (tf.Tensor, tf.Operation)) else fetched
        tensors = [each for each in fetched if isinstance(each, tf.Tensor)]
        targets = [each for each in fetched if isinstance(each, tf.Operation)]
        (part,) = compile_step(tensors, targets, list(feeds), [CPU], allow_soft_placement=True).partitions
        asked = {op.name: op.device for op in tf.get_default_graph().get_operations() if op.device}
        part.requests = {op.name: asked[op.name] for op in part.graph.get_operations() if op.name in asked}
        given = {tensor.op.name: value for tensor, value in feeds.items()}
        cut = over_own_devices(part, len(self.gpus))
        group = PlanGroup.of(part, cut.partitions, cut.feeds, cut.fetches, self.device, self.gpus)
        self.steps += 1
        mailbox = Mailbox()
        step = Step(self.steps, None, None, mailbox)
        values = [np.asarray(given[name]) for name in part.feeds]
        results = RegisteredPlan(group).begin(step, group.fed(values), mailbox).run()
        return results, _places(group)


def _places(group: PlanGroup):
    """By operation, what it ran on: ``CPU:0``, ``GPU:1``."""
    found = {}
    for plan in group.plans:
        for op in plan.partition.graph.get_operations():
            found[op.name] = plan.partition.device.rpartition(":")[0][-3:] + plan.partition.device[-2:]
    return found


def test_what_has_no_kernel_stays_and_the_rest_goes_to_the_first_gpu():
    x = tf.placeholder(tf.float32, [3], name="x")
    doubled = tf.multiply(x, 2.0, name="doubled")
    text = tf.as_string(doubled, precision=1, name="text")
    back = tf.add(tf.string_to_number(text), x, name="back")
    (strings, sums), places = Worker().run([text, back], {x: np.float32([1, 2, 3])})
    assert strings.tolist() == [b"2.0", b"4.0", b"6.0"] and sums.tolist() == [3, 6, 9]
    assert {name: places[name] for name in ("doubled", "text", "back")} == {
        "doubled": "GPU:0", "text": "CPU:0", "back": "GPU:0"
    }  # fmt: skip


def test_a_request_for_a_device_is_followed_where_it_can_be():
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    with tf.device("/gpu:1"):
        a = tf.matmul(x, x, name="a")
    with tf.device("/cpu:0"):
        b = tf.matmul(a, x, name="b")
    with tf.device("/gpu:7"):  # there is no such GPU
        c = tf.add(a, b, name="c")
    value = np.float32([[1, 2], [3, 4]])
    (result,), places = Worker().run(c, {x: value})
    np.testing.assert_allclose(result, value @ value + value @ value @ value)
    assert (places["a"], places["b"], places["c"]) == ("GPU:1", "CPU:0", "GPU:0")


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_and_queues_stay_with_the_cpu(use_resource):
    with tf.device("/gpu:0"):
        v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=use_resource)
    queue = tf.FIFOQueue(4, tf.float32, [2], name="queue")
    grown = tf.assign_add(v, tf.exp(tf.zeros([2], name="zeros"), name="exp"))
    with tf.control_dependencies([queue.enqueue(v * 3)]):
        taken = tf.square(queue.dequeue(), name="squared")
    worker = Worker()
    worker.run(v.initializer)
    (after,), places = worker.run(tf.identity(grown, name="after"))
    assert after.tolist() == [2, 3]
    assert places["v"] == "CPU:0" and places["after"] == "GPU:0"
    (result,), places = worker.run(taken)
    assert result.tolist() == [36, 81] and places["squared"] == "GPU:0"
    ops = [op for op in tf.get_default_graph().get_operations() if "Queue" in op.type and op.name in places]
    assert len(ops) == 3 and {places[op.name] for op in ops} == {"CPU:0"}


def test_arrays_of_variants_stay_on_the_cpu():
    x = tf.placeholder(tf.float32, [2])
    arrays = [
        tf.TensorArray(tf.float32, 1, element_shape=[2]).write(0, x * factor, name="written") for factor in (2, 3)
    ]
    flow = tf.stack([each.flow for each in arrays], name="stacked")[1]
    second = tf.TensorArray(tf.float32, flow=flow, element_shape=[2]).read(0)
    (result,), places = Worker().run(tf.identity(second, name="read"), {x: np.float32([1, 2])})
    assert result.tolist() == [3, 6]
    assert places["stacked"] == "CPU:0" and places["read"] == "GPU:0"
    assert {where for name, where in places.items() if name.startswith("written")} == {"GPU:0"}


def loop_of_numbers(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y @ x)), [0, x])[1]


def loop_of_strings(x):
    def turn(i, y):
        with tf.device("/gpu:1"):
            z = y * 2
        return i + 1, tf.string_to_number(tf.as_string(z, precision=2))

    return tf.while_loop(lambda i, y: i < 3, turn, [0, x])[1]


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: loop_of_numbers(x), lambda: x * 2)


@pytest.mark.parametrize(
    ("build", "place"), [(loop_of_numbers, "GPU:0"), (loop_of_strings, "CPU:0"), (branch, "GPU:0")]
)
def test_a_branch_or_loop_runs_on_one_device(build, place):
    x = tf.placeholder(tf.float32, [2, 2])
    y = tf.identity(build(x), name="y")
    value = np.float32([[0.5, 0.25], [1, -0.5]])
    (result,), places = Worker().run(y, {x: value})
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        np.testing.assert_allclose(result, session.run(y, {x: value}), rtol=1e-6)
    holders = [op for op in tf.get_default_graph().get_operations() if op.op_def.regions and op.name in places]
    assert holders and {places[op.name] for op in holders} == {place}


def test_random_streams_go_on_from_step_to_step():
    tf.set_random_seed(7)
    noise = tf.random_normal([3], name="noise") + 1
    shuffled = tf.random_shuffle(["a", "b", "c", "d"], name="shuffled")
    worker = Worker()
    steps = [worker.run([noise, shuffled]) for _ in range(3)]
    assert (steps[0][1]["noise"], steps[0][1]["shuffled"]) == ("GPU:0", "CPU:0")
    with tf.Session() as session:
        for values, _ in steps:
            expected = session.run([noise, shuffled])
            np.testing.assert_allclose(values[0], expected[0])
            assert values[1].tolist() == expected[1].tolist()


def test_functions_of_one_step_may_wait_for_each_other():
    import threading

    meeting = threading.Barrier(2, timeout=PATIENCE_S)

    def meet(value):
        meeting.wait()
        return value + 1

    x = tf.constant([1.0, 2.0])
    with tf.device("/cpu:0"):
        first = tf.py_func(meet, [tf.exp(x)], tf.float32, name="first")
    second = tf.py_func(meet, [tf.exp(-x)], tf.float32, name="second")
    (result,), _ = Worker().run(first * second)
    np.testing.assert_allclose(result, (np.exp([1, 2]) + 1) * (np.exp([-1.0, -2]) + 1), rtol=1e-6)


def test_an_edge_to_another_device_stays_with_the_cpu():
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/job:b/task:0/device:CPU:0"):
        sent = tf.negative(x, name="sent")
    y = tf.exp(sent * 2, name="y")
    with tf.device("/job:b/task:0/device:CPU:0"):
        last = tf.negative(y, name="last")
    here, there = "/job:a/task:0/device:CPU:0", "/job:b/task:0/device:CPU:0"
    parts = {part.device: part for part in compile_step([last], [], [x], [here, there]).partitions}
    cut = over_own_devices(parts[here], 1).partitions
    assert [part.device for part in cut] == [here, "/job:a/task:0/device:GPU:0"]
    types = [[op.type for each in part.graph.get_operations() for op in ops_within(each)] for part in cut]
    assert "Exp" in types[1] and "Exp" not in types[0]
    ends = [(op.attrs.get("source"), op.attrs.get("destination")) for op in cut[1].graph.get_operations()]
    assert not any(there in each for each in ends)


def test_a_gpu_that_nobody_sees_is_named():
    with pytest.raises(tf.errors.NotFoundError, match=r"no such GPU: /job:localhost/task:0/device:GPU:0; .*CuPy") as e:
        own_gpus(Device.open(CPU), [99])
    assert e.value.device == GPUS[0]
