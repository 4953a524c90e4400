"""Compiling a graph: prune, simplify, place, schedule, partition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import tfray as tf
from tests.support.random_graphs import programs
from tests.support.sessions import run_initialized
from tfray.errors import InvalidArgumentError
from tfray.ops.control.stack_ops import stack_pop_v2, stack_push_v2, stack_v2
from tfray.ops.state import state_ops
from tfray.ops.system.script_ops import py_func
from tfray.placement.partition import MAX_COPIED_CONSTANT_BYTES
from tfray.placement.pipeline import compile_step
from tfray.placement.placer import colocation_groups, default_policy, place
from tfray.placement.policies import prefer
from tfray.placement.prune import prune
from tfray.placement.schedule import schedule
from tfray.placement.simplify import MAX_FOLDED_BYTES, simplify
from tfray.runtime.device import Device
from tfray.runtime.plan import Partition, Plan

PS, WORKER, GPU = "/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:CPU:0", "/job:worker/task:0/device:GPU:0"


def compiled(fetches, fed=(), devices=(WORKER, PS), **options):
    """The partitions of a step by device."""
    tensors = [fetch for fetch in fetches if isinstance(fetch, tf.Tensor)]
    targets = [fetch for fetch in fetches if isinstance(fetch, tf.Operation)]
    return {p.device: p for p in compile_step(tensors, targets, list(fed), devices, **options).partitions}


def types(partition):
    return sorted(op.type for op in partition.graph.get_operations())


def ops_of(partition, type_name):
    return [op for op in partition.graph.get_operations() if op.type == type_name]


# -- prune ---------------------------------------------------------------------------------------------


def test_pruning_keeps_what_is_needed():
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.square(x, name="y")
    z = tf.exp(y, name="z")
    tf.log(y, name="unused")
    with tf.control_dependencies([tf.constant(1, name="first")]):
        w = tf.identity(z, name="w")
    assert [op.name for op in prune([w.op], [])] == ["x", "y", "z", "first", "w"]
    assert [op.name for op in prune([w.op], [y])] == ["z", "first", "w"]
    assert [op.name for op in prune([w.op, x.op], [x])] == ["y", "z", "first", "w"]
    assert prune([], []) == []


def test_an_operation_with_one_output_fed_still_runs_for_the_others():
    a, b = tf.split(tf.constant([1.0, 2.0], name="c"), 2, name="split")
    names = [op.name for op in prune([tf.add(a, b, name="sum").op], [a])]
    assert "split" in names and names[-1] == "sum"


# -- simplify ------------------------------------------------------------------------------------------


def simplified(*fetches, fed=(), optimize=True):
    wanted = [getattr(fetch, "op", fetch) for fetch in fetches]
    return simplify(prune(wanted, fed), fed, wanted, optimize=optimize)


def test_constants_are_folded():
    x = tf.placeholder(tf.float32, [2])
    y = x * (tf.constant([1.0, 2.0]) * 3 + tf.cast(tf.reduce_prod(tf.shape(tf.zeros([2, 5]))), tf.float32))
    result = simplified(y, fed=[x])
    live = result.live([y.op])
    assert sorted(op.type for op in live) == ["Const", "Mul", "Placeholder"]
    (constant,) = [op for op in live if op.type == "Const"]
    assert constant.attrs["value"].tolist() == [13, 16]
    assert constant.site.startswith(__file__)


def test_a_constant_that_waits_is_not_folded_away():
    queue = tf.FIFOQueue(9, [tf.int64], [[]])
    graph = tf.get_default_graph()
    first = queue.enqueue([np.int64(1)])
    attrs = {"value": np.array(2, np.int32), "dtype": tf.int32}
    waiting = graph.add_operation("Const", [], attrs, control_inputs=[first]).outputs[0]
    second = queue.enqueue([tf.cast(waiting, tf.int64)])
    with tf.control_dependencies([second]):
        size = queue.size()
    with tf.Session() as session:
        assert session.run(size) == 2


def test_any_result_of_a_folded_operation_can_be_fetched():
    """Each of its results is a constant of its own."""
    _, second = tf.split(tf.constant([1.0, 2.0]), 2)
    largest = tf.nn.top_k([3.0, 5.0, 4.0], 2)
    with tf.Session() as session:
        assert session.run(second).tolist() == [2.0]
        assert session.run(largest.indices).tolist() == [1, 2]


def test_large_results_are_not_folded():
    size = MAX_FOLDED_BYTES // 4 + 1
    y = tf.fill([size], 2.0)
    result = simplified(y)
    assert result.tensors[y].op.type == "Fill"
    assert simplified(tf.fill([10], 2.0)).graph.get_operations()[-1].type == "Const"


@pytest.mark.parametrize("rows", [4, 100, MAX_FOLDED_BYTES // 4000 + 1])
def test_operations_with_several_results_are_folded_whatever_their_size(rows):
    matrix = np.random.default_rng(0).normal(size=(rows, 1000)).astype(np.float32)
    parts = tf.split(tf.constant(matrix), 4, axis=1)
    largest = tf.nn.top_k(tf.constant(matrix), 1000)
    with tf.Session() as session:
        found, (values, indices) = session.run([[part + 0.0 for part in parts], [*largest]])
    np.testing.assert_array_equal(np.concatenate(found, 1), matrix)
    order = np.argsort(-matrix, 1, kind="stable")
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(matrix, order, 1))


def test_random_and_stateful_operations_are_neither_folded_nor_merged():
    a, b = tf.random_uniform([2]), tf.random_uniform([2])
    calls = []
    c, d = (py_func(lambda: calls.append(0) or np.float32(1), [], tf.float32) for _ in range(2))
    simplified(a, b, c, d)
    assert calls == []
    values = run_initialized([a, b, c + d])
    assert not np.array_equal(values[0], values[1])
    assert len(calls) == 2


def test_what_fails_to_fold_fails_when_it_runs():
    with tf.device("/cpu:0"):  # a GPU checks no indices
        bad = tf.gather(tf.constant([1.0]), tf.constant(3), name="culprit")
    fine = tf.constant(1.0) + 1
    with tf.Session() as session:
        assert session.run(fine) == 2
        with pytest.raises(InvalidArgumentError) as caught:
            session.run([fine, bad])
    assert caught.value.op_name == "culprit" and caught.value.device


def test_equal_operations_are_merged():
    x = tf.placeholder(tf.float32, [3])
    a, b = tf.square(x) + 1, tf.square(x) + 1
    other = tf.square(x) + 2
    result = simplified(a, b, other, fed=[x])
    assert result.tensors[a] is result.tensors[b]
    assert result.tensors[other] is not result.tensors[a]
    assert len([op for op in result.graph.get_operations() if op.type == "Square"]) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: tf.reduce_sum(x, 0), lambda x: tf.reduce_sum(x, 0, keepdims=True)),
        (lambda x: tf.constant(0.0) + x, lambda x: tf.constant(-0.0) + x),
        (lambda x: tf.constant([1.0, 2.0, 3.0]) * x, lambda x: tf.constant([1.0, 2.0, 4.0]) * x),
        (lambda x: tf.cast(x, tf.float64), lambda x: tf.cast(x, tf.float16)),
        (lambda x: tf.subtract(x, 1.0), lambda x: tf.subtract(1.0, x)),
    ],
)
def test_different_operations_are_not_merged(first, second):
    x = tf.placeholder(tf.float32, [3])
    a, b = first(x), second(x)
    result = simplified(a, b, fed=[x])
    assert result.tensors[a] is not result.tensors[b]


def test_operations_on_different_devices_or_after_different_ones_are_not_merged():
    x = tf.placeholder(tf.float32, [])
    a = tf.square(x)
    with tf.device("/cpu:0"):
        b = tf.square(x)
    with tf.control_dependencies([tf.no_op()]):
        c = tf.square(x)
    result = simplified(a, b, c, fed=[x])
    assert len({result.tensors[t] for t in (a, b, c)}) == 3


def test_identities_are_skipped_unless_they_do_something():
    x = tf.placeholder(tf.float32, [])
    y = tf.exp(tf.stop_gradient(tf.identity(x)))
    assert [op.type for op in simplified(y, fed=[x]).graph.get_operations()] == ["Placeholder", "Exp"]
    assert [op.type for op in simplified(y, fed=[x], optimize=False).graph.get_operations()] == [
        "Placeholder",
        "Identity",
        "StopGradient",
        "Exp",
    ]
    fetched = tf.identity(x)
    with tf.device("/cpu:1"):
        moved = tf.identity(x)
    with tf.control_dependencies([tf.no_op()]):
        late = tf.identity(x)
    kept = simplified(fetched, tf.exp(moved), tf.exp(late), fed=[x])
    assert len([op for op in kept.graph.get_operations() if op.type == "Identity"]) == 3


def test_an_identity_that_is_skipped_still_orders():
    """What waits for an identity waits for what the identity forwards."""
    v = tf.Variable(1.0)
    update = tf.identity(tf.identity(state_ops.assign_add(v, 1.0)))
    with tf.control_dependencies([update]):
        after = state_ops.read_variable(v) + 0
    assert run_initialized(after) == 2


@settings(max_examples=30, deadline=None)
@given(programs(devices=2, stateful=True))
def test_the_users_graph_is_not_touched(program):
    before, version = program.graph.as_plain().to_plain(), program.graph.version
    devices = [f"/job:localhost/task:0/device:CPU:{i}" for i in range(2)]
    compile_step(program.fetches, [], [t for t, _ in program.placeholders], devices)
    assert program.graph.as_plain().to_plain() == before
    assert program.graph.version == version


# -- place ---------------------------------------------------------------------------------------------


def placed(*devices, **options):
    """Device by operation name for the whole default graph."""
    placement = place(tf.get_default_graph(), devices, **options)
    return {op.name: device for op, device in placement.items()}


def test_requests_are_honoured_and_the_rest_goes_to_the_default():
    tf.constant(1, name="free")
    with tf.device("/job:ps"):
        tf.constant(1, name="ps")
    with tf.device("/device:GPU:*"):
        tf.constant(1, name="any_gpu")
    with tf.device("/cpu:0"):
        tf.constant(1, name="cpu")
    assert placed(WORKER, PS, GPU) == {"free": GPU, "ps": PS, "any_gpu": GPU, "cpu": WORKER}
    tf.reset_default_graph()
    tf.constant(1, name="free")
    assert placed(PS, WORKER) == {"free": PS}


def test_policies_choose_among_what_is_feasible():
    tf.constant(1, name="free")
    with tf.device("/job:ps"):
        tf.constant(1, name="ps")
    assert placed(WORKER, PS, policy=prefer(PS)) == {"free": PS, "ps": PS}
    assert placed(PS, WORKER, policy=prefer(WORKER)) == {"free": WORKER, "ps": PS}
    assert default_policy([], [WORKER, GPU]) == GPU


def test_variables_keep_what_takes_their_handle():
    with tf.device(PS):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.device(WORKER):
        gathered = tf.gather(v, [0])
        update = state_ops.assign_add(v, [1.0, 1.0])
        doubled = v * 2
    placement = place(tf.get_default_graph(), [WORKER, PS])
    assert placement[v.op] == placement[update.op] == placement[gathered.op] == placement[v.value().op] == PS
    assert placement[doubled.op] == WORKER


def test_a_stack_keeps_what_pushes_and_pops():
    handle, outer = stack_v2(), stack_v2()

    def turn(i):
        with tf.device(PS):
            pushed = stack_push_v2(handle, i)
        with tf.control_dependencies([pushed]):
            return i + 1

    tf.while_loop(lambda i: i < 3, turn, [0])
    popped = stack_pop_v2(stack_pop_v2(stack_push_v2(outer, handle), tf.variant), tf.int32)
    placement = place(tf.get_default_graph(), [WORKER, PS])
    assert {placement[op] for op in (handle.op, outer.op, popped.op)} == {PS}


def test_colocation_is_transitive():
    a = tf.constant(1, name="a")
    with tf.colocate_with(a):
        b = tf.constant(2, name="b")
    with tf.colocate_with(b), tf.device(PS):
        tf.constant(3, name="c")
    assert placed(WORKER, PS) == dict.fromkeys("abc", PS)
    groups = colocation_groups(tf.get_default_graph())
    assert [[op.name for op in group] for group in groups] == [["a", "b", "c"]]


def test_a_colocation_partner_that_was_pruned_or_folded_is_ignored():
    a = tf.constant(1.0, name="a")
    with tf.colocate_with(a):
        b = tf.placeholder(tf.float32, [], name="b")
    assert set(compiled([b + 1], [b])) == {WORKER}


def test_a_device_that_is_not_there_is_named_with_those_that_are():
    with tf.device("/job:ps/task:7"):
        tf.constant(1, name="culprit")
    with pytest.raises(InvalidArgumentError, match=r"'culprit'.*/job:ps/task:7.*no such device.*/job:worker") as caught:
        placed(WORKER, PS)
    assert caught.value.op_name == "culprit" and __file__ in caught.value.site


def test_soft_placement_keeps_the_task():
    with tf.device("/job:ps/device:GPU:0"):
        tf.constant(1, name="culprit")
    with pytest.raises(InvalidArgumentError, match="allow_soft_placement"):
        placed(WORKER, PS)
    assert placed(WORKER, PS, allow_soft_placement=True) == {"culprit": PS}
    with tf.device("/job:nowhere"):
        tf.constant(1, name="lost")
    with pytest.raises(InvalidArgumentError, match="nowhere"):
        placed(WORKER, PS, allow_soft_placement=True)


def test_a_kernel_that_is_missing_is_named():
    with tf.device("/device:GPU:0"):
        x = py_func(lambda: 1, [], tf.int64, name="culprit")
    with pytest.raises(InvalidArgumentError, match=r"no kernel for PyFunc \(culprit\)"):
        placed(WORKER, GPU)
    assert placed(WORKER, GPU, allow_soft_placement=True) == {"culprit": WORKER}
    assert x.device == "/device:GPU:0"


def test_without_a_request_an_operation_goes_where_it_has_a_kernel():
    py_func(lambda: 1, [], tf.int64, name="script")
    assert placed(GPU, WORKER) == {"script": WORKER}


def test_a_conflict_names_both_sides():
    with tf.device("/job:ps"):
        v = tf.Variable(1.0, name="v")
    read = state_ops.read_variable(v, name="culprit")
    read.op._device = "/job:worker"
    with pytest.raises(InvalidArgumentError, match=r"'culprit'.*/job:worker.*'v/read'.*/job:ps"):
        placed(WORKER, PS)


# -- schedule ------------------------------------------------------------------------------------------


def names_in_order():
    order, edges = schedule(tf.get_default_graph())
    return [op.name for op in order], [(a.name, b.name) for a, b in edges]


def test_updates_wait_for_reads():
    v = state_ops.variable_handle([], tf.float32, name="v")
    one = tf.constant(1.0, name="one")
    state_ops.assign_add(v, one, name="update")
    state_ops.read_variable(v, name="early")
    tf.identity(one, name="unrelated")
    names, edges = names_in_order()
    assert names == ["v", "one", "early", "update", "unrelated"]
    assert edges == [("early", "update")]


def test_reads_that_depend_on_an_update_come_after_it():
    v = state_ops.variable_handle([], tf.float32, name="v")
    one = tf.constant(1.0, name="one")
    first = state_ops.assign_add(v, one, name="first")
    with tf.control_dependencies([first]):
        late = state_ops.read_variable(v, name="late")
    state_ops.assign_add(v, late, name="second")
    state_ops.assign_add(v, one, name="third")
    state_ops.read_variable(v, name="early")
    names, edges = names_in_order()
    assert names.index("early") < names.index("first") < names.index("late") < names.index("second")
    assert set(edges) >= {("early", "first"), ("first", "late")}


def test_variables_that_wait_for_each_other():
    """Each update needs a read that only comes after the other's variable was updated: some order exists."""
    a = state_ops.variable_handle([], tf.float32, name="a")
    b = state_ops.variable_handle([], tf.float32, name="b")
    one = tf.constant(1.0)
    update_a = state_ops.assign_add(a, one, name="update_a")
    with tf.control_dependencies([update_a]):
        read_b = state_ops.read_variable(b, name="read_b")
    update_b = state_ops.assign_add(b, one, name="update_b")
    with tf.control_dependencies([update_b]):
        state_ops.read_variable(a, name="read_a")
    names, _ = names_in_order()
    assert len(names) == len(tf.get_default_graph().get_operations())
    assert names.index("read_b") < names.index("update_b") < names.index("read_a")
    assert read_b.op.name in names


# -- partition -----------------------------------------------------------------------------------------


def test_one_send_per_tensor_and_destination():
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device(PS):
        y = tf.square(x, name="y")
        z = tf.exp(x, name="z")
    with tf.device(WORKER):
        a = y + 1
        b = y * z
        c = tf.reduce_sum(y)
    parts = compiled([a, b, c], [x])
    assert types(parts[PS]) == ["Exp", "Placeholder", "Send", "Send", "Square"]
    assert sorted(op.attrs["key"] for op in ops_of(parts[PS], "Send")) == [
        f"{name}:0 {PS} -> {WORKER}" for name in ("y", "z")
    ]
    assert {op.attrs["key"] for op in ops_of(parts[WORKER], "Recv")} == {
        op.attrs["key"] for op in ops_of(parts[PS], "Send")
    }
    assert {op.attrs["destination"] for op in ops_of(parts[PS], "Send")} == {WORKER}
    assert ops_of(parts[WORKER], "Recv")[0].outputs[0].shape == [2]


def test_each_destination_gets_a_send_of_its_own():
    other = "/job:worker/task:1/device:CPU:0"
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device(PS):
        y = tf.square(x)
    fetches = []
    for device in (WORKER, other):
        with tf.device(device):
            fetches.append(y + 1)
    parts = compiled(fetches, [x], [WORKER, other, PS])
    assert {op.attrs["destination"] for op in ops_of(parts[PS], "Send")} == {WORKER, other}


def test_constants_are_copied_if_they_are_small():
    with tf.device(PS):
        small = tf.constant([1.0, 2.0], name="small")
        large = tf.constant(np.zeros(MAX_COPIED_CONSTANT_BYTES // 4 + 1, np.float32), name="large")
        with tf.control_dependencies([tf.no_op()]):
            waits = tf.constant(np.ones(2, np.float32), name="waits")
    with tf.device(WORKER):
        sums = [tf.reduce_sum(small), tf.reduce_sum(large), tf.reduce_sum(waits)]
    parts = compiled(sums, optimize=False)
    assert [op.attrs["key"].split(":")[0] for op in ops_of(parts[PS], "Send")] == ["large", "waits"]
    assert "small" in {op.name for op in ops_of(parts[WORKER], "Const")}
    assert set(compiled([sums[0]], optimize=False)) == {WORKER}
    with tf.device(WORKER), tf.control_dependencies([small]):
        after = tf.no_op()
    assert set(compiled([after], optimize=False)) == {WORKER}
    assert set(compiled([small, small.op])) == {PS}


def test_what_was_folded_occupies_no_device():
    with tf.device(PS):
        shape = tf.constant([2, 3])
    with tf.device(WORKER):
        x = tf.placeholder(tf.float32, [6]) + tf.reshape(tf.zeros(shape), [6])
    parts = compiled([x], [x.op.inputs[0]])
    assert {device: types(part) for device, part in parts.items()} == {WORKER: ["Add", "Const", "Placeholder"]}


def test_a_control_edge_carries_an_empty_tensor_and_orders():
    with tf.device(PS):
        v = tf.Variable(1.0, name="v")
        update = state_ops.assign_add(v, 1.0, name="update")
    with tf.device(WORKER):
        w, one = tf.Variable(1.0, name="w"), tf.constant(1.0)
        with tf.control_dependencies([update.op]):
            done = state_ops.assign_add(w, one, name="done").op
    parts = compiled([done])
    (send,) = ops_of(parts[PS], "Send")
    assert send.attrs["key"].startswith("^update ")
    assert send.inputs[0].shape == [0]
    assert "update" in {op.name for op in send.control_inputs}
    (recv,) = ops_of(parts[WORKER], "Recv")
    assert parts[WORKER].graph.get_operation_by_name("done").control_inputs == [recv]


@pytest.mark.parametrize("optimize", [True, False])
def test_a_group_that_is_asked_for_runs_as_what_it_waits_for(optimize):
    """It would only gather messages from everywhere."""
    updates = []
    for device in (PS, WORKER):
        with tf.device(device):
            updates.append(state_ops.assign_add(tf.Variable(1.0), 1.0))
    everything = tf.group(tf.group(*updates), tf.no_op())
    step = compile_step([], [everything], [], [WORKER, PS], optimize=optimize)
    types = [op.type for part in step.partitions for op in part.graph.get_operations()]
    assert types.count("AssignAdd") == 2 and types.count("NoOp") == (1 if optimize else 5)
    assert ("Send" in types) is not optimize


def test_each_device_gets_the_feeds_that_it_uses():
    x, y = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.float32, [], name="y")
    unused = tf.placeholder(tf.float32, [], name="unused")
    with tf.device(PS):
        a = x + y
    with tf.device(WORKER):
        b = tf.square(y) + a
    step = compile_step([b, a], [], [x, y, unused], [WORKER, PS])
    feeds = {part.device: part.feeds for part in step.partitions}
    assert feeds == {PS: ["x", "y"], WORKER: ["y"]}
    assert [step.feeds[[p.device for p in step.partitions].index(d)] for d in (PS, WORKER)] == [[0, 1], [1]]
    assert [step.partitions[i].fetches[j] for i, j in step.fetches] == [b.name, a.name]


def test_sends_with_the_same_ancestors_form_a_group():
    """What leaves together arrives together; what waits for an answer is another group."""
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device(PS):
        a, b = tf.square(x, name="a"), tf.exp(x, name="b")
    with tf.device(WORKER):
        c = tf.add(a, b, name="c")
    with tf.device(PS):
        d = tf.sqrt(c, name="d")
    with tf.device(WORKER):
        e = d + a
    parts = compiled([e], [x])
    groups = {op.attrs["key"].split(":")[0]: op.attrs["group"] for op in ops_of(parts[WORKER], "Recv")}
    assert groups["a"] == groups["b"] != groups["d"]
    plan = Plan(Partition(WORKER, parts[WORKER].graph, [], parts[WORKER].fetches), Device(WORKER), sends_copy=True)
    assert [sorted(op.type for op in segment.ops) for segment in plan.segments] == [["Add", "Send"], ["Add"]]
    assert [segment.waits for segment in plan.segments] == [2, 3]


def test_float32_may_travel_between_tasks_in_16_bits():
    beside = "/job:ps/task:0/device:CPU:1"
    values = {"v": [1.0, 2.0], "rate": 0.1, "count": [1, 2], "wide": np.ones(2)}
    with tf.device(PS):
        made = {name: tf.Variable(value, name=name) for name, value in values.items()}
    with tf.device(WORKER):
        crossed = [tf.negative(variable) for variable in made.values()]
        again = tf.exp(made["v"])
    with tf.device(beside):
        near = tf.sqrt(made["v"])
    parts = compiled([*crossed, again, near], devices=(WORKER, PS, beside), sent_dtype=tf.bfloat16)
    sent = {
        (op.attrs["key"].split("/")[0], op.attrs["destination"]): op.inputs[0].dtype for op in ops_of(parts[PS], "Send")
    }
    assert sent == {
        ("v", WORKER): tf.bfloat16,
        ("rate", WORKER): tf.float32,
        ("count", WORKER): tf.int32,
        ("wide", WORKER): tf.float64,
        ("v", beside): tf.float32,
    }
    assert {op.outputs[0].dtype for op in ops_of(parts[WORKER], "Cast")} == {tf.float32}
    assert len(ops_of(parts[PS], "Cast")) == len(ops_of(parts[WORKER], "Cast")) == 1


@settings(max_examples=60, deadline=None)
@given(programs(devices=3, stateful=True))
def test_partitions_of_random_programs_are_sound(program):
    devices = [f"/job:localhost/task:0/device:CPU:{i}" for i in range(3)]
    parts = compiled(program.fetches, [t for t, _ in program.placeholders], devices)
    sends = [op for part in parts.values() for op in ops_of(part, "Send")]
    recvs = [op for part in parts.values() for op in ops_of(part, "Recv")]
    keys = [op.attrs["key"] for op in sends]
    assert len(set(keys)) == len(keys)
    assert sorted(keys) == sorted(op.attrs["key"] for op in recvs)
    ends = [(key.rpartition(" -> ")[0].rpartition(" ")[2], key.rpartition(" ")[2]) for key in keys]
    assert all(source != destination for source, destination in ends)
    for device, part in parts.items():
        assert all(op.device == device for op in part.graph.get_operations())
        wire = Partition.from_plain(part.to_plain())
        assert wire.graph.as_plain() == part.graph.as_plain()


def test_creation_lines_survive_compilation():
    with tf.device(PS):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.device(WORKER):
        y = tf.matmul(tf.expand_dims(v, 0), tf.placeholder(tf.float32, [None, 2], name="x"), name="y")
    parts = compiled([y], [tf.get_default_graph().get_tensor_by_name("x:0")])
    for part in parts.values():
        assert all(op.site.startswith(__file__) for op in part.graph.get_operations())
