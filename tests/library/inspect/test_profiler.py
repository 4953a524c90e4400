"""Timelines, tables and profiles of recorded steps."""

from __future__ import annotations

import io
import json
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

import tfray as tf
from tfray.formats.step_stats import (
    AllocationRecord,
    AllocatorMemoryUsed,
    DeviceStepStats,
    NodeExecStats,
    StepStats,
)
from tfray.library.inspect.step_spans import coverage, flows, merged, overlap, peak_memory, spans_of
from tfray.library.inspect.timeline import Timeline
from tfray.runtime.step_report import run_metadata
from tfray.runtime.traced_op import TracedOp
from tfray.runtime.tracing import DeviceRecord, Span


def node(name, kind, start, end, arguments="", thread=1, memory=()):
    stats = NodeExecStats(
        node_name=name,
        timeline_label=f"{name} = {kind}({arguments})",
        thread_id=thread,
        all_start_nanos=start,
        all_start_micros=start // 1000,
        all_end_rel_nanos=end - start,
    )
    if memory:
        used = AllocatorMemoryUsed(allocator_name="step", total_bytes=max(change for _, change in memory))
        used.allocation_records.extend(AllocationRecord(alloc_micros=at, alloc_bytes=size) for at, size in memory)
        stats.memory.append(used)
    return stats


def stats(**devices):
    return StepStats(dev_stats=[DeviceStepStats(device=name, node_stats=nodes) for name, nodes in devices.items()])


def recorded_step():
    """A small training step over two devices."""
    x = tf.placeholder(tf.float32, [64, 32], name="x")
    with tf.device("/cpu:1"):
        w = tf.Variable(np.ones((32, 8), np.float32), name="w")
    with tf.name_scope("layer"):
        y = tf.nn.relu(tf.matmul(x, w))
    loss = tf.reduce_mean(tf.square(y))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    metadata = tf.RunMetadata()
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2, "GPU": 0})) as session:
        session.run(w.initializer)
        for _ in range(2):
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run(train, {x: np.ones((64, 32))}, options, metadata)
    return metadata


# -- spans ---------------------------------------------------------------------------------------------


def test_self_time_is_what_nothing_within_took():
    outer, inner, after = spans_of(
        stats(a=[node("outer", "While", 0, 100), node("inner", "Sin", 20, 50), node("after", "Cos", 100, 110)])
    )
    assert (outer.self_ns, inner.self_ns, after.self_ns) == (70, 30, 10)


def test_flows_pair_every_send_with_its_recv_turn_by_turn():
    key = "x:0 a -> b"
    spans = spans_of(
        stats(
            a=[node("s", "Send", 0, 10, key), node("s", "Send", 100, 110, key), node("other", "Send", 5, 6, "z")],
            b=[node("r", "Recv", 20, 30, f"0|{key}"), node("r", "Recv", 120, 130, f"1|{key}")],
        )
    )
    assert [(sent.start_ns, received.start_ns) for sent, received in flows(spans)] == [(0, 20), (100, 120)]


def test_of_what_came_too_late_there_is_no_flow():
    spans = spans_of(stats(a=[node("s", "Send", 50, 60, "k")], b=[node("r", "Recv", 20, 30, "k")]))
    assert flows(spans) == []


def test_peak_memory_names_its_holders():
    step = stats(
        a=[
            node("x", "MatMul", 0, 1000, memory=[(1, 100), (3, -100)]),
            node("y", "MatMul", 2000, 3000, memory=[(2, 50)]),
            node("z", "MatMul", 4000, 5000, memory=[(4, 60)]),
        ]
    )
    (peak,) = peak_memory(step)
    assert peak.size_bytes == 150 and [holding.name for holding in peak.holdings] == ["x", "y"]


def test_statistics_of_others_need_no_labels():
    raw = NodeExecStats(node_name="scope/MatMul", all_start_micros=5, all_end_rel_micros=7)
    (span,) = spans_of(stats(a=[raw]))
    assert (span.type, span.start_ns, span.duration_ns) == ("MatMul", 5000, 7000)


# -- timeline ------------------------------------------------------------------------------------------


def check_trace(text):
    """Chrome's rules for its JSON: phases with the fields that they need, flows in slices, slices that nest."""
    trace = json.loads(text)
    slices, flow_ends = {}, {}
    for event in trace["traceEvents"]:
        assert event["ph"] in "XMCsf" and isinstance(event["name"], str) and isinstance(event["pid"], int)
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["ts"] >= 0 and isinstance(event["tid"], int)
            slices.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] == "M":
            assert event["args"]["name"] is not None
        elif event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
        else:
            flow_ends.setdefault(event["id"], {})[event["ph"]] = event
    for ends in flow_ends.values():
        assert set(ends) == {"s", "f"} and ends["f"]["ts"] >= ends["s"]["ts"] and ends["f"]["bp"] == "e"
        for end in ends.values():
            track = slices[end["pid"], end["tid"]]
            assert any(start <= end["ts"] <= stop for start, stop in track), "a flow must begin and end in a slice"
    return trace, slices, flow_ends


def test_a_timeline_follows_the_rules_of_its_format():
    metadata = recorded_step()
    trace, _, flow_ends = check_trace(Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True))
    assert len(flow_ends) >= 2  # the variable to the model, the gradient back
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert any("CPU:0" in name for name in names) and any("CPU:1" in name for name in names)
    assert any(event["ph"] == "C" and event["args"]["bytes"] > 0 for event in trace["traceEvents"])
    bare = tf.timeline.Timeline(metadata).generate_chrome_trace_format(show_dataflow=False)
    assert not {event["ph"] for event in json.loads(bare)["traceEvents"]} & {"s", "f", "C"}


def test_the_most_that_devices_held_is_told_by_their_kind():
    metadata = recorded_step()
    devices = [stats.device for stats in metadata.step_stats.dev_stats]
    assert {f"/job:localhost/replica:0/task:0/device:CPU:{number}" for number in (0, 1)} == set(devices)
    analysis = Timeline(metadata.step_stats).analyze_step_stats()
    check_trace(analysis.chrome_trace.format_to_string(pretty=True))
    ((kind, most),) = analysis.allocator_maximums.items()
    assert kind == "cpu" and most.timestamp > 0 and "w" in most.tensors
    assert most.num_bytes >= max(peak.size_bytes for peak in tf.profiler.peak_memory(metadata))


def test_a_timeline_goes_to_a_file(tmp_path):
    tf.timeline.Timeline(recorded_step()).save(tmp_path / "step.json")
    check_trace((tmp_path / "step.json").read_text())


def test_nothing_recorded_is_an_empty_timeline():
    assert check_trace(Timeline(StepStats()).generate_chrome_trace_format())[1] == {}


# -- tables --------------------------------------------------------------------------------------------


def test_tables_by_operation_type_and_device():
    metadata = recorded_step()
    by_op = tf.profiler.rows(metadata)
    assert by_op == sorted(by_op, key=lambda row: -row.self_ns)
    assert sum(row.share for row in by_op) == pytest.approx(1)
    assert {"layer/MatMul", "layer/Relu"} <= {row.name for row in by_op}
    product = next(row for row in by_op if row.name == "layer/MatMul")
    assert (product.type, product.runs, product.output_bytes) == ("MatMul", 1, 64 * 8 * 4)
    assert sum(row.self_ns for row in by_op) == sum(row.self_ns for row in tf.profiler.rows(metadata, "type"))
    assert len(tf.profiler.rows(metadata, "device")) == 2
    twice = tf.profiler.rows([metadata, metadata], "type")
    assert {row.name: row.runs for row in twice}["MatMul"] == 2 * {
        row.name: row.runs for row in tf.profiler.rows(metadata, "type")
    }["MatMul"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="by op, type, device"):
        tf.profiler.rows(metadata, "colour")


def test_scopes_from_the_top_down():
    root = tf.profiler.scopes(recorded_step())
    assert root.total.share == 1
    layer = root.children["layer"]
    assert layer.total.self_ns == sum(child.total.self_ns for child in layer.children.values())
    assert {"MatMul", "Relu"} <= set(layer.children)


def test_everything_is_printed():
    out = io.StringIO()
    tf.profiler.show(recorded_step(), console=Console(file=out, width=160))
    text = out.getvalue()
    for expected in ("layer/MatMul", "peak memory", "variables", "% of the step explained", "all operations"):
        assert expected in text


def test_the_spans_of_a_device_cover_its_time():
    assert all(0 < part <= 1.001 for part in coverage(spans_of(recorded_step())).values())


# -- TensorFlow 1's interface --------------------------------------------------------------------------


def test_parameters_and_float_operations(capsys):
    x = tf.placeholder(tf.float32, [4, 8, 8, 3])
    with tf.variable_scope("conv"):
        filters = tf.get_variable("filters", [3, 3, 3, 16])
        y = tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME")
    with tf.variable_scope("dense"):
        w = tf.get_variable("w", [1024, 10])
        tf.matmul(tf.reshape(y, [4, 1024]), w)
    builder = tf.profiler.ProfileOptionBuilder
    counted = tf.profiler.profile(options=builder.trainable_variables_parameter())
    assert counted.total_parameters == 3 * 3 * 3 * 16 + 1024 * 10
    assert {child.name: child.total_parameters for child in counted.children}["dense"] == 10240
    assert "params" in capsys.readouterr().out
    flops = tf.profiler.profile(tf.get_default_graph(), cmd="op", options=builder.float_operation())
    by_type = {child.name: child.float_ops for child in flops.children}
    assert by_type["MatMul"] == 2 * 4 * 1024 * 10
    assert by_type["Conv2D"] == 2 * 4 * 8 * 8 * 16 * 27
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.profiler.profile(cmd="colour")


def test_time_and_memory_of_steps(capsys, tmp_path):
    metadata = recorded_step()
    builder = tf.profiler.ProfileOptionBuilder
    root = tf.profiler.profile(run_meta=metadata, cmd="scope", options=builder.time_and_memory())
    assert root.total_exec_micros > 0 and "layer/MatMul" in capsys.readouterr().out
    profiler = tf.profiler.Profiler()
    profiler.add_step(1, metadata)
    profiler.add_step(2, metadata)
    quiet = builder(builder.time_and_memory()).with_empty_output().build()
    by_type = profiler.profile_operations(quiet)
    assert next(child.run_count for child in by_type.children if child.name == "Relu") == 2
    first = profiler.profile_operations(builder(quiet).with_step(1).build())
    assert next(child.run_count for child in first.children if child.name == "Relu") == 1
    assert profiler.profile_operations(builder(quiet).with_step(3).build()).total_exec_micros == 0
    assert capsys.readouterr().out == ""
    to_file = builder(quiet).with_file_output(str(tmp_path / "table.txt")).build()
    profiler.profile_name_scope(to_file)
    assert "layer/Relu" in (tmp_path / "table.txt").read_text()
    to_timeline = builder(quiet).with_timeline_output(str(tmp_path / "step.json")).build()
    profiler.profile_graph(to_timeline)
    check_trace((tmp_path / "step.json").read_text())


# -- training ------------------------------------------------------------------------------------------


def train(steps=4, traced=(3, 4), **scaling):
    def model(features, labels):
        hidden = tf.layers.dense(features, 256, activation=tf.nn.relu)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(hidden, 10))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))

    random = np.random.default_rng(0)
    images, labels = random.normal(size=(2048, 256)).astype(np.float32), random.integers(0, 10, 2048)
    config = tf.train.RunConfig(steps=steps, trace_steps=traced, logdir=None, local=not scaling)
    source = tf.train.array_input(images, labels, batch_size=512, shuffle_seed=0)
    return tf.train.Trainer(model, source, scaling=tf.train.ScalingConfig(**scaling), run=config).fit()


def test_a_trainer_records_the_steps_that_are_asked_for():
    history = train().history
    assert [record.trace is not None for record in history] == [False, False, True, True]
    assert "MatMul" in {row.type for row in tf.profiler.rows(history[-1].trace)}


@pytest.mark.ray
@pytest.mark.parametrize(
    "scaling",
    [
        pytest.param({"workers": 2, "parameter_servers": 2}, marks=pytest.mark.slow),
        {"workers": 3, "backup_workers": 1},
    ],
)
def test_a_timeline_of_a_distributed_step(ray_local, scaling):
    traces = [record.trace for record in train(steps=8, traced=(5, 6, 7, 8), **scaling).history if record.trace]
    assert len(traces) == 4
    spans = spans_of(traces[-1])
    pairs = flows(spans)
    assert len(pairs) >= 4 * 2 * 2  # four variables to and fro, for each replica that counts
    assert all(received.start_ns >= sent.start_ns for sent, received in pairs)
    for device in {span.device for span in spans}:
        own = sorted((s for s in spans if s.device == device), key=lambda span: span.start_ns)
        for earlier, later in pairwise(own):
            assert later.start_ns >= earlier.end_ns, f"{earlier} and {later} overlap"
    explained = [coverage(spans_of(trace)) for trace in traces]
    assert all(len(parts) >= 3 for parts in explained), explained
    # On a busy machine a process may be put aside between two spans of a step: the best of the steps counts.
    assert max(min(parts.values()) for parts in explained) > 0.7, explained
    assert max(sum(parts.values()) / len(parts) for parts in explained) > 0.95, explained
    check_trace(Timeline(traces[-1]).generate_chrome_trace_format())


def test_several_steps_are_one_timeline():
    metadata = recorded_step()
    both = merged([metadata, metadata])
    assert len(spans_of(both)) == 2 * len(spans_of(metadata))
    assert sum(p.size_bytes for p in peak_memory(both)) >= sum(p.size_bytes for p in peak_memory(metadata))
    held = [
        n.node_name for device in both.dev_stats for n in device.node_stats if n.memory_stats.persistent_memory_size
    ]
    assert held == ["w"]


def test_tensorflows_names_of_what_a_profile_is():
    with tf.Graph().as_default() as graph:
        tf.Variable(tf.zeros([3, 4]))
        found = tf.profiler.profile(graph, options=tf.profiler.ProfileOptionBuilder({"output": "none"}).build())
    assert isinstance(found, tf.profiler.GraphNodeProto) and found.total_parameters == 12
    assert tf.profiler.MultiGraphNodeProto is tf.profiler.GraphNodeProto


# -- computing and sending -----------------------------------------------------------------------------

MS = 1_000_000
EDGE = "w:0 /ps -> /worker"


def step_of(begins_ms, *spans):
    """A recorded step: (device, type, key, start, end, arrival) for each span, in milliseconds from its beginning."""
    records = []
    for device, kind, key, start, end, arrived in spans:
        at = [None if ms is None else (begins_ms + ms) * MS for ms in (start, end, arrived)]
        span = Span(TracedOp(f"{kind}_{key}_{start}", kind, key), at[0], at[1], (), at[2])
        records.append(DeviceRecord(device, "host", (1, "t"), at[0], at[1], [span]))
    return run_metadata(records)


def test_how_far_computing_and_sending_overlap():
    steps = [
        step_of(
            begins,
            ("/ps", "Send", EDGE, 0, 1, None),
            ("/worker", "Recv", EDGE, 60, 61, 51),  # it had come before it was taken
            ("/worker", "MatMul", "x", 10, 40, None),
            ("/worker", "MatMul", "y", 30, 50, None),
            ("/ps", "ApplyAdam", "w", 70, 80, None),
        )
        for begins in (0, 100)
    ]
    found = overlap(steps)
    assert found.step_s == pytest.approx(0.1, rel=1e-3)
    assert found.computing_s == pytest.approx(0.04, rel=1e-3)
    assert found.sending_s == pytest.approx(0.05, rel=1e-3)
    assert found.share == pytest.approx(2.0, rel=1e-3)
    assert overlap([tf.RunMetadata()]).share == 0
