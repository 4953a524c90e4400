"""Steps that are recorded: every operation, branches and loops included, on one device and many."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import tfray as tf
from tests.support.waiting import Task, until_waiting
from tfray.runtime.edge_key import without_turns
from tfray.runtime.step_report import PLANNED, step_stats
from tfray.runtime.traced_op import TracedOp
from tfray.runtime.tracing import DeviceRecord, Span, in_one_time

FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


def traced(session, fetches, feeds=None, options=FULL):
    metadata = tf.RunMetadata()
    return session.run(fetches, feeds, options, metadata), metadata


def spans(metadata, device=""):
    """(name, type, start, end) of every span in nanoseconds, holdings of memory apart."""
    found = []
    for stats in metadata.step_stats.dev_stats:
        if device in stats.device:
            for node in stats.node_stats:
                name, _, call = node.timeline_label.partition(" = ")
                if node.op_end_rel_nanos:
                    start = node.all_start_nanos
                    found.append((name, call.partition("(")[0], start, start + node.op_end_rel_nanos))
    return found


def assert_no_overlap(found):
    ordered = sorted((start, end) for _, _, start, end in found)
    for (_, end), (start, _) in pairwise(ordered):
        assert start >= end


def test_every_operation_of_a_step_is_recorded_in_order():
    x = tf.placeholder(tf.float32, [None, 64], name="x")
    w = tf.Variable(np.ones((64, 64), np.float32), name="w")
    product = tf.matmul(x, w, name="product")
    loss = tf.reduce_mean(tf.square(product), name="loss")
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    with tf.Session() as session:
        session.run(w.initializer)
        plain = session.run(loss, {x: np.ones((32, 64))})
        (value, _), metadata = traced(session, [loss, train], {x: np.ones((32, 64))})
        assert value == plain
        assert session.run(loss, {x: np.ones((32, 64))}) < plain  # the traced step updates the same variable
    found = spans(metadata)
    names = [name for name, *_ in found]
    assert names.index("product") < names.index("loss")
    assert any(kind == "ApplyGradientDescent" for _, kind, *_ in found)
    assert_no_overlap(found)
    (stats,) = metadata.step_stats.dev_stats
    held = {node.node_name: node.memory[0] for node in stats.node_stats if node.memory and not node.op_end_rel_nanos}
    assert held["w"].total_bytes == 64 * 64 * 4
    node = next(node for node in stats.node_stats if node.node_name == "product")
    description = node.output[0].tensor_description
    assert [dim.size for dim in description.shape.dim] == [32, 64] and description.dtype == 1
    assert description.allocation_description.requested_bytes == 32 * 64 * 4


def test_the_first_traced_step_tells_of_its_compilation_and_the_next_does_not():
    y = tf.reduce_sum(tf.matmul(tf.ones([8, 8]), tf.random_normal([8, 8])))
    with tf.Session() as session:
        assert "_compile" in {name for name, *_ in spans(traced(session, y)[1])}
        assert "_compile" not in {name for name, *_ in spans(traced(session, y)[1])}


def test_a_segment_that_is_held_up_is_not_taken_to_be_compiled(monkeypatch):
    y = tf.exp(tf.random_normal([8]))
    with tf.Session() as session:
        traced(session, y)
        monkeypatch.setattr(time, "perf_counter_ns", itertools.count(0, 1_000_000).__next__)
        assert {name for name, *_ in spans(traced(session, y)[1])} >= {"Exp"}
        assert "_compile" not in {name for name, *_ in spans(traced(session, y)[1])}


def test_sizes_that_follow_from_what_is_fed_are_not_computed_in_each_step():
    x = tf.placeholder(tf.float32, [None, 3])
    (gradient,) = tf.gradients(tf.reduce_mean(tf.square(x)), x)
    with tf.Session() as session:
        for rows in (4, 5):
            value, metadata = traced(session, gradient, {x: np.ones((rows, 3))})
            np.testing.assert_allclose(value, np.full((rows, 3), 2 / (3 * rows)), rtol=1e-6)
            assert {kind for _, kind, *_ in spans(metadata)}.isdisjoint({"Size", "Shape", "FloorDiv", "Cast"})


def test_operations_that_wait_for_other_steps_are_recorded_without_their_waits(session):
    """They are part of a longer stretch of code, which each wait interrupts."""
    source, target = (tf.FIFOQueue(1, tf.float32, [[2]], name=name) for name in ("source", "target"))
    with tf.device("/cpu:0"):  # as one part of the step also where there is a GPU
        enqueue = target.enqueue(tf.square(source.dequeue()))
    session.run(target.enqueue([0.0, 0.0]))
    step = Task(traced, session, enqueue)
    until_waiting(session, "source", 1)
    session.run(source.enqueue([1.0, 2.0]))
    until_waiting(session, "target", 0)
    session.run(target.dequeue())
    found = spans(step.result()[1])
    counts = Counter(kind for _, kind, *_ in found)
    assert counts["QueueDequeue"] == counts["Square"] == counts["QueueEnqueue"] == 1
    assert sum(name == "_wait" for name, *_ in found) >= 2
    assert_no_overlap(found)


def test_turns_of_loops_and_branches_taken_are_recorded():
    x = tf.placeholder(tf.float32, [])
    _, total = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, tf.sin(a, name="turn")), [0, x])
    chosen = tf.cond(x > 0, lambda: tf.exp(total, name="yes"), lambda: tf.negative(total, name="no"))
    with tf.Session() as session:
        value, metadata = traced(session, chosen, {x: 1.0})
        assert value == session.run(chosen, {x: 1.0})
    counts = Counter(name.rpartition("/")[2] for name, *_ in spans(metadata))
    assert counts["turn"] == 5 and counts["yes"] == 1 and counts["no"] == 0


def test_fused_operations_share_the_time_of_their_group():
    x = tf.placeholder(tf.float32, [1 << 18])
    y = tf.tanh(x * 2.0 + 1.0, name="last")
    with tf.Session() as session:
        value, metadata = traced(session, y, {x: np.ones(1 << 18)})
        assert np.array_equal(value, session.run(y, {x: np.ones(1 << 18)}))
    found = [span for span in spans(metadata) if span[1] in ("Mul", "Add", "Tanh")]
    assert [kind for _, kind, *_ in found] == ["Mul", "Add", "Tanh"]
    assert_no_overlap(found)


def test_memory_is_released_with_its_last_holder():
    x = tf.placeholder(tf.int32, [])
    big = tf.fill([x, 1000], 1.0, name="big")
    view = tf.reshape(big, [-1], name="view")
    total = tf.reduce_sum(view, name="total")
    with tf.control_dependencies([total]):
        end = tf.random_normal([1000, 10], name="end")
    with tf.Session() as session:
        _, metadata = traced(session, [total, end], {x: 1000})
    nodes = {node.node_name: node for node in metadata.step_stats.dev_stats[0].node_stats}
    assert not nodes["view"].memory
    (memory,) = nodes["big"].memory
    assert [record.alloc_bytes for record in memory.allocation_records] in ([4_000_000, -4_000_000], [4_000_000])


def test_levels_and_other_options():
    y = tf.sin(tf.placeholder_with_default(1.0, []))
    with tf.Session() as session:
        _, metadata = traced(session, y, options=tf.RunOptions(output_partition_graphs=True))
        assert not metadata.step_stats.dev_stats
        assert [node.op for node in metadata.partition_graphs[0].node].count("Sin") == 1
        for level in (tf.RunOptions.SOFTWARE_TRACE, tf.RunOptions.HARDWARE_TRACE):
            _, metadata = traced(session, y, options=tf.RunOptions(trace_level=level))
            assert "Sin" in {kind for _, kind, *_ in spans(metadata)}
        assert session.run(y, options=FULL) == session.run(y)
        assert traced(session, [])[1] == tf.RunMetadata()


def test_devices_of_a_process_and_their_sends():
    with tf.device("/cpu:0"):
        a = tf.random_normal([100, 100], name="a")
    with tf.device("/cpu:1"):
        b = tf.reduce_sum(a, name="b")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        _, metadata = traced(session, b)
    assert_recvs_follow_sends(metadata)
    for device in ("CPU:0", "CPU:1"):
        assert_no_overlap(spans(metadata, device))


def assert_recvs_follow_sends(metadata, at_least=1):
    sends, recvs = {}, {}
    for stats in metadata.step_stats.dev_stats:
        for node in stats.node_stats:
            _, _, call = node.timeline_label.partition(" = ")
            kind, _, key = call[:-1].partition("(")
            if kind in ("Send", "Recv"):
                (sends if kind == "Send" else recvs).setdefault(without_turns(key), []).append(node.all_start_nanos)
    assert len(recvs) >= at_least
    for key, starts in recvs.items():
        assert min(starts) >= min(sends[key]), key


def test_loops_that_span_devices():
    with tf.device("/cpu:0"):
        x = tf.placeholder_with_default(1.0, [])

        def body(i, a):
            with tf.device("/cpu:1"):
                moved = tf.sin(a, name="there")
            return i + 1, moved + 1.0

        _, y = tf.while_loop(lambda i, a: i < 3, body, [0, x])
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        value, metadata = traced(session, y)
        assert value == session.run(y)
    assert sum(kind == "Sin" for _, kind, *_ in spans(metadata)) == 3
    assert_recvs_follow_sends(metadata)


def test_errors_of_traced_steps_name_the_operation():
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.matmul(x, x, name="product")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="product"):
        traced(session, y, {x: np.ones((2, 3))})


def test_a_blocked_step_tells_how_long_it_waited():
    queue = tf.FIFOQueue(1, [tf.float32], [[]])
    taken = queue.dequeue()
    with tf.Session() as session:
        session.run(queue.enqueue([3.0]))
        value, metadata = traced(session, taken)
        assert value == 3.0
        assert any("Dequeue" in kind for _, kind, *_ in spans(metadata))
        with pytest.raises(tf.errors.DeadlineExceededError):
            traced(session, taken, options=tf.RunOptions(trace_level=3, timeout_in_ms=50))


# -- clocks --------------------------------------------------------------------------------------------


def record(device, host, kind, key, start):
    span = Span(TracedOp("op", kind, key), start, start + 10)
    return DeviceRecord(device, host, (1, "t"), start, start + 10, [span])


def test_clocks_of_other_hosts_are_set_by_estimates_and_by_causality():
    there = record("b", "two", "Recv", "key a -> b", 5_000)
    sent = record("a", "one", "Send", "key a -> b", 1_000)
    first, second = in_one_time([sent, there], {"two": -4_500})
    assert first.spans[0].start == 1_000
    assert second.spans[0].start == 1_000  # by the estimate it had arrived at 500, before it was sent
    assert second.end - second.start == 10


def test_turns_are_not_part_of_an_edge():
    assert without_turns("0.2|x:0 /a -> /b") == "x:0 /a -> /b"
    assert without_turns("x:0 /a -> /b") == "x:0 /a -> /b"


def test_devices_that_take_part_twice_have_one_list():
    stats = step_stats([record("a", "one", "Sin", "", 0), record("a", "one", "Cos", "", 20)])
    assert len(stats.dev_stats) == 1 and len(stats.dev_stats[0].node_stats) == 2


def test_reused_memory_is_one_holding():
    x = tf.placeholder(tf.float32, [64, 64])
    y = tf.reduce_sum(tf.nn.relu(tf.matmul(x, x) + 1.0))
    with tf.Session() as session:
        _, metadata = traced(session, y, {x: np.ones((64, 64))})
    memory = [m for node in metadata.step_stats.dev_stats[0].node_stats for m in node.memory]
    assert any(m.allocator_name == PLANNED and m.total_bytes >= 64 * 64 * 4 for m in memory)


@pytest.mark.ray
def test_sessions_on_ray(ray_local):
    with tf.Cluster({"ps": 1, "worker": 1}) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.Variable(np.ones((256, 256), np.float32))
        with tf.device("/job:worker/task:0"):
            loss = tf.reduce_sum(tf.matmul(w, w))
        with tf.Session(cluster) as session:
            session.run(w.initializer)
            value, metadata = traced(session, loss)
            assert value == 256**3
            value, metadata = traced(session, loss)
    assert {stats.device.split("/")[1] for stats in metadata.step_stats.dev_stats} == {"job:ps", "job:worker"}
    assert_recvs_follow_sends(metadata)
    for stats in metadata.step_stats.dev_stats:
        found = spans(metadata, stats.device)
        assert_no_overlap(found)
        assert {"_call", "_return"} <= {name for name, *_ in found}
