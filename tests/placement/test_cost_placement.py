"""Placement by cost: what is predicted, what is chosen, and that explicit wishes hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.formats.step_stats import RunMetadata
from tfray.ops.system.replica_ops import replica_reduce
from tfray.ops.system.script_ops import py_func
from tfray.placement.cost import CostModel, Machine, Measured
from tfray.placement.cost_placer import CostPlacer
from tfray.placement.pipeline import compile_step
from tfray.placement.placer import place
from tfray.placement.policies import balanced
from tfray.placement.step_time import Task, instances_of, simulate, tasks_of_partitions, traffic_of

WORKER, PS0, PS1 = (f"/job:{task}/device:CPU:0" for task in ("worker/task:0", "ps/task:0", "ps/task:1"))
DEVICES = [WORKER, PS0, PS1]

# In these units times can be added up by hand.
MACHINE = Machine(
    cores=4,
    flops_per_s=1e9,
    bytes_per_s=1e6,
    operation_s=0.0,
    message_s=0.01,
    sending_s=0.0,
    copy_bytes_per_s=1e6,
    network_bytes_per_s=1e6,
    step_s=0.0,
    device_s=0.0,
)


def null_step(sizes, device="/job:ps", updates=1):
    """Fetch every variable, and send an update of its size, which is applied that many times."""
    steps = []
    for number, size in enumerate(sizes):
        with tf.device(device(number) if callable(device) else device):
            v = tf.get_variable(f"v{number}", [size], initializer=tf.ones_initializer())
        with tf.device("/job:worker"):
            update = tf.multiply(v, 0.5)
        steps += [tf.assign_add(v, update).op for _ in range(updates)]
    step = tf.group(*steps)
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, step)
    return step


def predicted(step, plan=None, cost=None, devices=DEVICES):
    cost = cost or CostModel(MACHINE)
    instances = instances_of(compile_step([], [step], [], devices, joint_policy=plan).partitions)
    return simulate(tasks_of_partitions(instances, cost), cost.machine), traffic_of(instances, cost)


# -- what a step takes ---------------------------------------------------------------------------------


def test_tasks_of_a_device_take_turns_and_messages_take_time():
    tasks = [Task("a", 1.0), Task("a", 2.0), Task("b", 4.0, after=[0], late_s={0: 0.5}), Task("b", 1.0, after=[1])]
    tasks[3].late_s = {1: 0.5}
    course = simulate(tasks, MACHINE)
    # On b the first begins at 1.5 and ends at 5.5, the second after it.
    assert course.seconds == pytest.approx(6.5)
    assert course.busy_s == {"a": 3.0, "b": 5.0}
    assert course.waits_for[0] == "the chain of operations and messages" and course.waits_for[1] == pytest.approx(5.5)


def test_devices_of_a_node_share_its_cores():
    tasks = [Task(f"/job:ps/task:{i}/device:CPU:0", 1.0) for i in range(4)]
    assert simulate(tasks, Machine(cores=2, step_s=0, device_s=0)).seconds == pytest.approx(2.0)
    nodes = {task.device: str(i // 2) for i, task in enumerate(tasks)}
    assert simulate(tasks, Machine(cores=2, step_s=0, device_s=0, nodes=nodes)).seconds == pytest.approx(1.0)


def test_bytes_between_nodes_take_longer_than_within_one():
    machine = Machine(message_s=1.0, network_bytes_per_s=1e6, nodes={PS0: "a", PS1: "a", WORKER: "b"})
    assert machine.travel_s(2e6, PS0, PS1) == 1.0
    assert machine.travel_s(2e6, PS0, WORKER) == 3.0


def test_messages_of_a_node_share_its_network():
    machine = Machine(message_s=0.5, step_s=0, device_s=0, nodes={"a": "1", "b": "2", "c": "2"})
    tasks = [Task("a", 1.0), Task("b", 0.0, after=[0]), Task("c", 0.0, after=[0])]
    for task in tasks[1:]:
        task.late_s, task.network_s = {0: 2.5}, {0: 2.0}
    course = simulate(tasks, machine)
    assert course.seconds == pytest.approx(5.5)  # 1 to compute, 2 for each message, and half a second under way
    assert course.waits_for == ("the network out of node 1", 4.0)


def test_large_tasks_run_on_cores_that_no_device_needs():
    machine = Machine(cores=4, step_s=0, device_s=0)
    alone = simulate([Task("a", 8.0, width=4)], machine)
    assert alone.seconds == pytest.approx(2.0) and alone.busy_s == {"a": pytest.approx(2.0)}
    assert simulate([Task("a", 8.0, width=16)], machine).seconds == pytest.approx(2.0)
    assert simulate([Task("a", 8.0, width=3)], machine).seconds == pytest.approx(8 / 3)
    # Three cores for the large task until the small one ends after one second, then four.
    both = simulate([Task("a", 8.0, width=4), Task("b", 1.0)], machine)
    assert both.seconds == pytest.approx(1 + 5 / 4) and both.busy_s["b"] == pytest.approx(1.0)
    # Two large ones share the cores; when the first has ended after two seconds, all help with the other.
    shared = simulate([Task("a", 4.0, width=4), Task("b", 8.0, width=4)], machine)
    assert shared.seconds == pytest.approx(2 + 4 / 4)
    apart = Machine(cores=4, step_s=0, device_s=0, nodes={"a": "1", "b": "2"})
    assert simulate([Task("a", 8.0, width=4), Task("b", 1.0)], apart).seconds == pytest.approx(2.0)


def test_large_operations_are_wide():
    cost = CostModel(Machine(cores=4), unknown_size=100)
    x = tf.placeholder(tf.float32, [None, 1000])
    large, small = tf.matmul(x, tf.ones([1000, 1000])), tf.matmul(x, tf.ones([1000, 2]))
    assert cost.width(large.op, WORKER) == 4 and cost.width(small.op, WORKER) == 1
    assert cost.width(large.op, "/device:GPU:0") == 1
    measured = CostModel(Machine(cores=4), Measured({large.op.name: 0.5}), 100)
    assert measured.width(large.op, WORKER) == 1  # with the cores that helped when it was measured


def test_the_contribution_of_one_replica_is_passed_on():
    x = tf.placeholder(tf.float32, [1000])
    reduced = replica_reduce(x, "mean")
    cost = CostModel(MACHINE)
    assert cost.seconds(reduced.op, PS0, replicas=1) == 0
    assert cost.seconds(reduced.op, PS0, replicas=3) == pytest.approx(4 * 4000 / 1e6)  # three read, one written


def test_bytes_and_seconds_of_operations():
    cost = CostModel(MACHINE, unknown_size=10)
    x = tf.placeholder(tf.float32, [None, 100])
    table = tf.get_variable("table", [1000, 100])
    product = tf.matmul(x, tf.ones([100, 500]))
    rows = tf.gather(table, tf.constant([1, 2, 3]))
    assert cost.tensor_bytes(x) == 4000
    assert cost.tensor_bytes(table.handle) == 0 and cost.variable_bytes(table.op) == 400_000
    assert cost.seconds(rows.op, WORKER) == pytest.approx(2 * 1200 / 1e6)  # the rows, not the table
    in_cache = CostModel(Machine(product_bytes_per_s=float("inf"), operation_s=0), unknown_size=10)
    assert in_cache.seconds(product.op, WORKER) == pytest.approx(2 * 10 * 100 * 500 / 50e9)
    reading_s = 4 * (10 * 100 + 100 * 500 + 10 * 500) / 10e9
    in_memory = CostModel(Machine(operation_s=0), unknown_size=10)
    assert in_memory.seconds(product.op, WORKER) == pytest.approx(2 * 10 * 100 * 500 / 50e9 + reading_s)
    assert cost.seconds(product.op, "/device:GPU:0") < cost.seconds(product.op, WORKER)


def test_what_was_measured_replaces_what_was_estimated():
    x = tf.placeholder(tf.float32, [None, 20], name="x")
    y = tf.square(tf.matmul(x, tf.ones([20, 20])), name="y")
    metadata = RunMetadata()
    with tf.Session() as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(y, {x: np.ones([7, 20], np.float32)}, options, metadata)
    cost = CostModel(MACHINE, Measured.of([metadata]))
    assert cost.tensor_bytes(y) == 7 * 20 * 4
    assert 0 < cost.seconds(y.op, WORKER) < 1.0
    assert CostModel(MACHINE).tensor_bytes(y) == 32 * 20 * 4
    unknown = tf.matmul(tf.placeholder(tf.float32), tf.placeholder(tf.float32))
    assert cost.tensor_bytes(unknown) == 4 and cost.seconds(unknown.op, WORKER) > 0


# -- what is chosen ------------------------------------------------------------------------------------


def test_variables_are_spread_by_size_where_round_robin_heaps_them_up():
    sizes = [50_000, 1] * 4
    step = null_step(sizes, lambda number: f"/job:ps/task:{number % 2}", updates=3)
    apart = CostModel(replace(MACHINE, cores=1, nodes={device: device for device in DEVICES}))
    round_robin, moved = predicted(step, cost=apart)
    assert moved[PS0, WORKER].size_bytes == 800_000 and moved[PS1, WORKER].size_bytes == 16
    tf.reset_default_graph()
    placer = CostPlacer(apart)
    step = null_step(sizes, updates=3)
    placer.settle(tf.get_default_graph(), DEVICES)
    by_cost, moved = predicted(step, placer, apart)
    assert placer.homes["v0"] != placer.homes["v2"]
    assert moved[PS0, WORKER].size_bytes + moved[PS1, WORKER].size_bytes == 800_016
    assert max(moved[PS0, WORKER].size_bytes, moved[PS1, WORKER].size_bytes) <= 400_016
    assert by_cost.seconds < 0.7 * round_robin.seconds


def test_a_variable_stays_where_it_is_for_every_step():
    step = null_step([4000, 3000, 2000, 1000])
    init = tf.global_variables_initializer()
    placer = CostPlacer(CostModel(MACHINE))
    placer.settle(tf.get_default_graph(), DEVICES)
    homes = dict(placer.homes)
    assert sorted(homes) == ["v0", "v1", "v2", "v3"] and len(set(homes.values())) == 2
    for target in (init, step):
        for part in compile_step([], [target], [], DEVICES, joint_policy=placer).partitions:
            for op in part.graph.get_operations():
                assert op.type != "Variable" or homes[op.name] == part.device
    tf.get_variable("later", [10])
    placer.settle(tf.get_default_graph(), DEVICES)
    assert {name: placer.homes[name] for name in homes} == homes and "later" in placer.homes


def test_initial_values_come_into_being_where_they_are_used():
    with tf.device("/job:ps"):
        for number in range(120):
            tf.get_variable(f"v{number}", [300, 300], initializer=tf.truncated_normal_initializer(stddev=0.1))
    placer = CostPlacer()
    placer.settle(tf.get_default_graph(), DEVICES)
    _, moved = predicted(tf.global_variables_initializer(), placer, placer.cost)
    assert len(set(placer.homes.values())) == 2
    assert sum(entry.size_bytes for entry in moved.values()) < 1000


def test_without_a_training_step_variables_of_a_job_hold_about_as_many_bytes_on_each_task():
    with tf.device("/job:ps"):
        for number, size in enumerate([900, 500, 400, 10]):
            tf.get_variable(f"v{number}", [size])
    free = tf.get_variable("free", [5000])
    placer = CostPlacer()
    placer.settle(tf.get_default_graph(), DEVICES)
    assert placer.homes["v0"] != placer.homes["v1"] == placer.homes["v2"]
    assert placer.homes[free.op.name] == WORKER  # the default: nothing says that elsewhere is better


def test_small_graphs_and_devices_of_one_thread_stay_on_the_default_device():
    x = tf.ones([4, 4])
    small = tf.reduce_sum(tf.matmul(x, x) + tf.matmul(x, tf.transpose(x)))
    with tf.control_dependencies([small]):
        large = [tf.reduce_sum(tf.random_uniform([1000, 1000]), name=f"sum{i}") for i in range(2)]
    devices = [f"/job:localhost/task:0/device:CPU:{i}" for i in range(3)]
    for fetched, machine in (([small], Machine()), (large, Machine.one_thread())):
        placer = CostPlacer(CostModel(machine))
        parts = compile_step(fetched, [], [], devices, joint_policy=placer).partitions
        assert [part.device for part in parts] == devices[:1]


def test_independent_heavy_work_is_spread_over_tasks():
    products = [tf.matmul(tf.random_uniform([900, 900], seed=i), tf.ones([900, 900])) for i in range(2)]
    total = tf.reduce_sum(products[0][0]) + tf.reduce_sum(products[1][0])
    devices = [f"/job:worker/task:{i}/device:CPU:0" for i in range(2)]
    placer = CostPlacer(CostModel(Machine(cores=2)))
    # Of one node, kernels of one task use all cores.
    assert len(compile_step([total], [], [], devices, joint_policy=placer).partitions) == 1
    placer = CostPlacer(CostModel(Machine(cores=2, nodes=dict(zip(devices, "ab", strict=True)))))
    parts = compile_step([total], [], [], devices, joint_policy=placer).partitions
    assert len(parts) == 2
    assert all("MatMul" in {op.type for op in part.graph.get_operations()} for part in parts)


def test_requests_colocation_and_kernels_hold():
    with tf.device(PS1):
        v = tf.get_variable("v", [100_000])
    with tf.device("/job:worker"):
        w = tf.get_variable("w", [100_000])
    with tf.colocate_with(v.op):
        beside = tf.identity(tf.range(3), name="beside")
    gpu = "/job:worker/task:0/device:GPU:0"
    text = tf.as_string(beside)  # on CPUs only
    placement = place(tf.get_default_graph(), [*DEVICES, gpu], joint_policy=CostPlacer(CostModel(MACHINE)))
    assert placement[v.op] == placement[beside.op] == PS1
    assert placement[w.op] in (WORKER, gpu)
    assert "CPU" in placement[text.op]
    with tf.device("/job:nobody"):
        tf.constant(1.0)
    with pytest.raises(InvalidArgumentError, match="no such device"):
        place(tf.get_default_graph(), DEVICES, joint_policy=CostPlacer())


def test_loops_and_branches_are_placed():
    with tf.device("/job:ps"):
        v = tf.get_variable("v", [10])
    total = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + v), [tf.constant(0), tf.zeros([10])])[1]
    chosen = tf.cond(tf.reduce_sum(total) > 0, lambda: total * 2, lambda: total)
    placement = place(tf.get_default_graph(), DEVICES, joint_policy=CostPlacer(CostModel(MACHINE)))
    assert placement[chosen.op] in DEVICES and placement[v.op] in (PS0, PS1)


def test_what_is_balanced_is_balanced_by_bytes():
    assert balanced(["a", "a", "a"], [["a", "b"], ["a", "b"], ["a"]], [10, 30, 25]) == ["a", "b", "a"]


# -- in sessions ---------------------------------------------------------------------------------------


def test_sessions_take_the_placement_that_they_are_asked_for():
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    config = tf.ConfigProto(placement="cost", device_count={"CPU": 3})
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.reduce_sum(v * 2)) == 6
    with pytest.raises(InvalidArgumentError, match="'default' or 'cost'"):
        tf.Session(config=tf.ConfigProto(placement="random"))


def test_steps_are_placed_anew_by_what_was_measured():
    """An operation whose work shapes do not tell: once measured, it leaves the device that is busy."""
    calls = []

    def work(number):
        calls.append(number)
        total = np.float32(0)
        for _ in range(200 if number else 1):
            total += np.ones(20_000, np.float32).sum()
        return total

    heavy = [py_func(work, [tf.constant(1)], tf.float32, name=f"work_{i}") for i in range(2)]
    step = tf.add_n([tf.reshape(each, []) for each in heavy])
    config = tf.ConfigProto(placement="cost", placement_period=2, device_count={"CPU": 2, "GPU": 0})
    with tf.Session(config=config) as session:
        session._placer.cost = CostModel(Machine(cores=2, step_s=0, device_s=0))
        prepared = session._prepare(("key",), step, [])
        values = [prepared.run([], None)]
        assert set(prepared.devices.values()) == {session.list_devices()[0]}
        values += [prepared.run([], None) for _ in range(8)]
        assert len(set(prepared.devices.values())) == 2
        assert session._placer.cost.measured.seconds["work_0"] > 1e-4
    assert values == [values[0]] * 9 and len(calls) == 18


def test_servers_that_would_not_agree_are_refused():
    with pytest.raises(InvalidArgumentError, match="would not agree"):
        tf.Session("grpc://localhost:1", config=tf.ConfigProto(placement="cost"))
