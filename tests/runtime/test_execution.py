"""Running compiled plans: memory planning and generated code never change results."""

from __future__ import annotations

import gc
import linecache
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.interpreter import interpret
from tests.support.processes import PATIENCE_S
from tests.support.random_graphs import assert_same, check_program, programs
from tfray.errors import DeadlineExceededError, InvalidArgumentError, ResourceExhaustedError, UnknownError
from tfray.framework.op_def import on_cpu
from tfray.ops.state import state_ops
from tfray.runtime.compiled_body import SEGMENT
from tfray.runtime.plan import MAX_SPECIALIZATIONS
from tfray.runtime.rendezvous import Mailbox

RANDOM = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
L0 = tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0))
CONFIGS = {
    "one device": tf.ConfigProto(),
    "unoptimized": tf.ConfigProto(graph_options=L0),
    "three devices": tf.ConfigProto(device_count={"CPU": 3}),
    "three devices, unoptimized": tf.ConfigProto(device_count={"CPU": 3}, graph_options=L0),
}


def plans(session):
    """The plans of the session's only step."""
    (step,) = session._steps.values()
    return step._registered._plans


# -- random programs -----------------------------------------------------------------------------------


@RANDOM
@given(programs())
def test_stateless_programs_equal_their_interpretation(program):
    for config in (CONFIGS["one device"], CONFIGS["unoptimized"]):
        check_program(program, config, [2, 3, 2, 1])


@RANDOM
@given(programs(stateful=True))
def test_programs_with_variables(program):
    for config in (CONFIGS["one device"], CONFIGS["unoptimized"]):
        check_program(program, config, [2, 3, 2])


@RANDOM
@given(programs(devices=3, stateful=True))
def test_programs_over_three_devices(program):
    for config in (CONFIGS["three devices"], CONFIGS["three devices, unoptimized"]):
        check_program(program, config, [2, 3, 2])


@settings(RANDOM, max_examples=15)
@given(programs(devices=3, max_operations=12))
def test_programs_in_several_threads(program):
    """Concurrent steps with different feeds and shapes do not disturb each other."""
    with tf.Session(graph=program.graph, config=CONFIGS["three devices"]) as session:

        def work(seed):
            for turn in range(4):
                feeds = program.feeds(1 + (seed + turn) % 3, 10 * seed + turn)
                assert_same(session.run(program.fetches, feeds), interpret(program.fetches, feeds))

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(work, seed) for seed in range(4)]:
                done.result()


# -- what is fetched belongs to the caller -------------------------------------------------------------


def test_fetches_share_no_memory_with_what_the_session_keeps():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    v = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))
    c = tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    with tf.control_dependencies([v.value()]):
        updated = state_ops.assign_add(v, tf.ones_like(v))
    views = {
        "constant": c,
        "view of a constant": tf.transpose(c),
        "variable": v,
        "identity": tf.identity(v),
        "view of a variable": tf.reshape(v, [3, 2]),
        "row of a variable": v[0],
        "feed": tf.identity(x),
        "view of a feed": tf.reshape(x, [-1])[1:],
        "update": updated,
        "stop_gradient": tf.stop_gradient(tf.transpose(v)),
    }
    fed = np.ones((2, 3), np.float32)
    for config in CONFIGS.values():
        with tf.Session(config=config) as session:
            session.run(v.initializer)
            before = session.run(views, {x: fed})
            expected = {name: np.array(value) for name, value in before.items()}
            for value in before.values():
                assert value.flags.writeable
                assert not np.shares_memory(value, fed)
                value += 100
            session.run(v.initializer)
            after = session.run(views, {x: fed})
            for name, value in after.items():
                assert np.array_equal(value, expected[name]), name
            assert (fed == 1).all()


def test_a_fed_and_fetched_tensor_is_copied():
    x = tf.placeholder(tf.float32, [2])
    fed = np.ones(2, np.float32)
    with tf.Session() as session:
        (fetched,) = session.run([x], {x: fed})
    fetched[:] = 5
    assert (fed == 1).all()


def test_fetches_survive_the_session():
    x = tf.placeholder(tf.float32, [1000])
    with tf.Session() as session:
        first = session.run(tf.exp(x) + 1, {x: np.zeros(1000)})
        session.run(tf.exp(x) + 1, {x: np.ones(1000)})
    gc.collect()
    assert (first == 2).all()


# -- variables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_reads_come_before_updates_unless_told_otherwise(config):
    with tf.device("/cpu:0"):
        v = tf.Variable([1.0, 2.0])
        update = state_ops.assign_add(v, [10.0, 10.0])
    with tf.device("/cpu:1" if len(config.device_count) else None):
        before = v + 0.0  # made after the update, and yet read before it
        with tf.control_dependencies([update]):
            after = tf.identity(state_ops.read_variable(v))
        both = before * 100 + after
    with tf.Session(config=config) as session:
        session.run(v.initializer)
        for turn in range(3):
            base = np.array([1.0, 2.0]) + 10 * turn
            values = session.run([before, after, both, update, v])  # the variable itself is read last
            assert_same(
                values,
                [x.astype(np.float32) for x in (base, base + 10, base * 101 + 10, base + 10, base + 10)],
            )


def test_updates_of_one_variable_run_in_order_of_creation():
    v = tf.Variable(2.0)
    first = state_ops.assign_add(v, 3.0)
    second = state_ops.assign(v, v.value() * 10)  # the read comes before both
    third = state_ops.assign_sub(v, 1.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([first, second, third]) == [5, 20, 19]
        assert session.run(v) == 19


def test_a_swap_reads_both_before_it_writes():
    a, b = tf.Variable(np.zeros(1000)), tf.Variable(np.ones(1000))
    swap = tf.group(state_ops.assign(a, b), state_ops.assign(b, a))
    with tf.Session() as session:
        session.run([a.initializer, b.initializer])
        session.run(swap)
        x, y = session.run([a, b])
        assert (x == 1).all() and (y == 0).all()


def test_a_view_of_a_variable_is_of_the_old_value():
    v = tf.Variable(np.arange(6.0).reshape(2, 3))
    transposed = tf.transpose(v)
    row = transposed[1]
    with tf.control_dependencies([transposed]):
        update = state_ops.assign_add(v, np.ones((2, 3)))
    with tf.control_dependencies([update]):
        late = tf.identity(row) + 0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(late).tolist() == [1, 4]
        assert session.run(v).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    "optimizer", [tf.train.GradientDescentOptimizer(0.5), tf.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True)]
)
def test_an_update_by_a_view_of_the_variable_itself(optimizer):
    start = np.arange(512 * 512, dtype=np.float32).reshape(512, 512) / 1e5
    v = tf.Variable(start)
    step = optimizer.apply_gradients([(tf.transpose(v), v)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        scale = 0.5 if type(optimizer).__name__.startswith("Grad") else 0.5 * 1.9
        np.testing.assert_allclose(session.run(v), start - scale * start.T, rtol=1e-4, atol=1e-4)


def test_concurrent_updates_are_not_lost():
    v = tf.Variable(np.zeros(50_000))
    update = state_ops.assign_add(v, np.ones(50_000)).op
    with tf.Session() as session:
        session.run(v.initializer)
        threads = [threading.Thread(target=lambda: [session.run(update) for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (session.run(v) == 200).all()


def test_sessions_have_variables_of_their_own():
    v = tf.Variable(1.0)
    with tf.Session() as first, tf.Session() as second:
        first.run(v.initializer)
        first.run(state_ops.assign_add(v, 1.0))
        assert first.run(v) == 2
        with pytest.raises(tf.errors.FailedPreconditionError, match="Variable"):
            second.run(v)


# -- specialisation ------------------------------------------------------------------------------------


def test_more_shapes_than_are_specialised():
    x = tf.placeholder(tf.float32, [None, None], name="x")
    y = tf.reduce_sum(tf.reshape(x * 2, [tf.size(x)]) + tf.cast(tf.shape(x)[0], tf.float32))
    with tf.Session() as session:
        for turn in range(2):
            for n in range(1, MAX_SPECIALIZATIONS + 5):
                value = np.full((n, 2), turn + 1.0)
                assert session.run(y, {x: value}) == pytest.approx(2 * n * (2 * (turn + 1) + n))
        (plan,) = plans(session)
        assert [len(segment._compiled) for segment in plan.segments] == [MAX_SPECIALIZATIONS + 1]


def test_shapes_that_meet_only_at_run_time():
    x = tf.placeholder(tf.float32, name="x")
    y = tf.placeholder(tf.float32, name="y")
    z = tf.matmul(x, y, name="product")
    with tf.Session() as session:
        assert session.run(z, {x: np.ones((2, 3)), y: np.ones((3, 1))}).tolist() == [[3], [3]]
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match=r"\(2, 3\).*\(2, 3\)") as caught:
                session.run(z, {x: np.ones((2, 3)), y: np.ones((2, 3))})
            assert caught.value.op_name == "product"
            assert caught.value.device in session.list_devices()
            assert __file__ in caught.value.site
        assert session.run(z, {x: np.ones((1, 3)), y: np.ones((3, 1))}).tolist() == [[3]]


def test_names_that_look_like_inputs():
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.identity(x + 1, name="x_0") + tf.identity(x, name="_feed".strip("_"))
    with tf.Session() as session:
        assert session.run(y, {x: [1, 2]}).tolist() == [3, 5]
        parts = tf.split(tf.placeholder_with_default(tf.ones([4]), [None], name="d") * 1, 2, name="split")
        z = parts[0] + parts[1] + x
        assert session.run(z, {x: [1, 2], parts[0]: [5, 5], parts[1]: [1, 1]}).tolist() == [7, 8]


def test_a_handle_enters_a_segment_of_unknown_shape():
    """Received tensors of unknown shape, and a variable made before they arrived."""
    with tf.device("/cpu:1"):
        x = tf.placeholder(tf.float32, [None]) * 2
    with tf.device("/cpu:0"):
        v = tf.Variable(np.zeros(2, np.float32))
        read = v + 0.0
        update = state_ops.assign_add(v, x)
    with tf.Session(config=CONFIGS["three devices"]) as session:
        session.run(v.initializer)
        before, after = session.run([read, update], {x.op.inputs[0]: [1, 2]})
        assert (before.tolist(), after.tolist()) == ([0, 0], [2, 4])
        assert session.run(v).tolist() == [2, 4]


# -- memory --------------------------------------------------------------------------------------------


def test_a_chain_needs_few_buffers():
    x = tf.placeholder(tf.float32, [1000])
    y = x
    for _ in range(20):
        y = tf.tanh(y * 1.5)
    total = tf.reduce_sum(y)
    with tf.Session() as session:
        session.run(total, {x: np.ones(1000)})
        (plan,) = plans(session)
        assert plan.segments[0].buffer_bytes <= 2 * 4096


def test_an_input_is_not_overwritten_while_it_is_needed():
    x = tf.placeholder(tf.float32, [100])
    a = tf.exp(x)
    b = a + 1
    c = a * b
    d = tf.reshape(a, [10, 10])
    e = tf.reshape(c, [10, 10]) - d
    fed = np.linspace(-1, 1, 100, dtype=np.float32)
    with tf.Session() as session:
        for _ in range(3):
            values = session.run([e, b], {x: fed})
            exp = np.exp(fed)
            assert_same(values, [(exp * (exp + 1) - exp).reshape(10, 10), exp + 1])


def test_an_error_in_a_step_leaves_the_session_usable():
    x = tf.placeholder(tf.int32, [None], name="x")
    with tf.device("/cpu:0"):  # a GPU checks no indices
        y = tf.gather(tf.constant([1.0, 2.0, 3.0]), x, name="pick") * 2
    with tf.Session() as session:
        for _ in range(5):
            with pytest.raises(InvalidArgumentError, match="7") as caught:
                session.run(y, {x: [0, 7]})
            assert caught.value.op_name == "pick"
            assert session.run(y, {x: [0, 2]}).tolist() == [2, 6]


# -- generated code ------------------------------------------------------------------------------------


def test_generated_source_is_shown_in_tracebacks_and_goes_with_the_session():
    frames = []

    def look(x):
        frames.append(sys._getframe())
        return x

    with tf.device("/cpu:0"):  # with a single device the function runs within the step's code
        x = tf.placeholder(tf.float32, [2])
        y = tf.py_func(look, [tf.tanh(x) * 3], tf.float32)
    session = tf.Session()
    session.run(y, {x: [1, 2]})
    mine = [frame for frame, _ in traceback.walk_stack(frames[0]) if frame.f_code.co_filename.startswith(SEGMENT)]
    lines = [line.line for line in traceback.extract_stack(frames[0]) if line.filename.startswith(SEGMENT)]
    assert lines and all(lines)
    (name, scope), *_ = [(frame.f_code.co_filename, frame.f_globals) for frame in mine]
    shown = linecache.getlines(name, scope)
    assert any("py_func" in line for line in shown)
    linecache.cache.pop(name)
    session.close()
    del session, mine, frames[:]
    gc.collect()
    assert linecache.getlines(name, scope) == []


def test_generated_code_that_goes_does_not_disturb_who_looks_at_source(session):
    """`traceback` and `doctest` go through the whole cache of source lines, which other threads must leave alone."""
    before = set(linecache.cache)
    tf.Session().run(tf.tanh(tf.constant([1.0])))
    gc.collect()
    assert set(linecache.cache) >= before
    assert not any(name.startswith(SEGMENT) for name in set(linecache.cache) - before)


def test_an_error_of_a_kernel_names_operation_line_and_shapes(monkeypatch):
    from tfray.framework import op_def, shape_functions

    monkeypatch.setattr(op_def, "_REGISTRY", dict(op_def._REGISTRY))
    kinds = {ZeroDivisionError: UnknownError, ValueError: InvalidArgumentError, MemoryError: ResourceExhaustedError}
    for raised in kinds:

        def kernel(ctx, x, raised=raised):
            raise raised("what went wrong")

        shape = shape_functions.like_input(0)
        name = f"Fails{raised.__name__}"
        op_def.register(op_def.OpDef(name, ("x: float32",), ("y: float32",), shape, on_cpu(kernel)))
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    for raised, kind in kinds.items():
        name = f"Fails{raised.__name__}"
        y = tf.get_default_graph().add_operation(name, [tf.square(x)], name="culprit").outputs[0]
        with tf.Session() as session, pytest.raises(kind, match="what went wrong") as caught:
            session.run(y, {x: np.ones((2, 3))})
        error = caught.value
        assert error.op_name.startswith("culprit") and error.device.endswith("CPU:0") and __file__ in error.site
        assert "float32[2, 3]" in str(error)


SMALL = {
    "product": (lambda x, y: tf.matmul(x, y, transpose_b=True), (5, 7), (3, 7)),
    "product of transposed matrices": (lambda x, y: tf.matmul(x, y, True, True), (5, 7), (3, 5)),
    "product without rows": (lambda x, y: tf.matmul(x, y), (0, 7), (7, 3)),
    "product without terms": (lambda x, y: tf.matmul(x, y), (5, 0), (0, 3)),
    "rectifier": (lambda x, y: tf.nn.relu(x - y), (5, 7), (5, 7)),
    "rectifier of a scalar": (lambda x, y: tf.nn.relu(x) * y, (), ()),
    "gradient of a rectifier": (lambda x, y: tf.gradients(tf.nn.relu(x), x, y)[0], (5, 7), (5, 7)),
    "sum of rows": (lambda x, y: tf.gradients(x + y, y, x)[0], (5, 7), (7,)),
    "sum of columns": (lambda x, y: tf.gradients(x * y, y, x)[0], (5, 7), (5, 1)),
    "sum to a scalar": (lambda x, y: tf.gradients(x + y, y, x)[0], (5, 7), ()),
    "sum of nothing": (lambda x, y: tf.gradients(x + y, y, x)[0], (0, 7), (7,)),
}
"""Operations that generated code computes by NumPy alone where they are small, and the shapes of two arguments."""


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("case", SMALL)
def test_small_arrays_have_the_bits_that_kernels_give_them(case, dtype):
    function, *shapes = SMALL[case]
    values = [np.random.default_rng(i).normal(size=shape).astype(dtype) for i, shape in enumerate(shapes)]
    for value in values:
        value[np.isclose(value, value.max(initial=0))] = np.nan
    arguments = [tf.placeholder(dtype, shape) for shape in shapes]
    feeds = dict(zip(arguments, values, strict=True))
    fetched = function(*arguments)
    with tf.Session() as session, np.errstate(invalid="ignore"):
        found, expected = session.run(fetched, feeds), interpret(fetched, feeds)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_scalars_follow_numpy():
    x = tf.placeholder(tf.int32, [])
    big = np.int32(2**31 - 1)
    with tf.Session() as session:
        total, kind = session.run([x + 1, tf.cast(x, tf.int64) + 1], {x: big})
        assert (total, total.dtype) == (np.iinfo(np.int32).min, np.int32)  # wraps around, silently
        assert kind == 2**31
        for value in session.run([x * 2, -x, tf.square(x)], {x: 3}):
            assert np.asarray(value).dtype == np.int32


def test_a_step_without_outputs_runs():
    with tf.Session() as session:
        assert session.run(tf.no_op()) is None
        assert session.run([tf.group(tf.constant(1), tf.no_op())]) == [None]


# -- timeouts and mailboxes ----------------------------------------------------------------------------


def test_a_mailbox_hands_over_in_order_and_stops_on_the_first_error():
    mailbox = Mailbox()
    mailbox.deliver([("a", 1)])
    mailbox.deliver([("b", 2), ("c", 3)])
    assert mailbox.take(None, "all") == [("a", 1), ("b", 2), ("c", 3)]
    with pytest.raises(DeadlineExceededError, match="the tensor"):
        mailbox.take(0.0, "the tensor")
    mailbox.deliver([("d", 4)])
    mailbox.abort(ValueError("first"))
    mailbox.abort(ValueError("second"))
    mailbox.deliver([("e", 5)])
    for _ in range(2):
        with pytest.raises(ValueError, match="first"):
            mailbox.take(None, "nothing")


def test_whoever_takes_from_a_mailbox_while_it_is_aborted_gets_values_or_the_error():
    for _ in range(200):
        mailbox = Mailbox()
        mailbox.deliver([(str(i), i) for i in range(200)])
        thread = threading.Thread(target=mailbox.abort, args=(ValueError("over"),))
        thread.start()
        taken = []
        with pytest.raises(ValueError, match="over"):
            while True:
                taken += mailbox.arrived()
        thread.join()
        assert taken == [(str(i), i) for i in range(len(taken))]


def test_an_abort_is_never_missed():
    for _ in range(300):
        mailbox = Mailbox()
        mailbox.wake()
        thread = threading.Thread(target=mailbox.abort, args=(ValueError("over"),))
        thread.start()
        with pytest.raises(ValueError, match="over"):
            mailbox.arrived()  # meanwhile
            mailbox.take(time.monotonic() + PATIENCE_S, "the abort")
        with pytest.raises(ValueError, match="over"):
            mailbox.take(time.monotonic() + PATIENCE_S, "nothing more")
        thread.join()


def test_a_mailbox_wakes_who_waits():
    mailbox, results = Mailbox(), []
    thread = threading.Thread(target=lambda: results.extend(mailbox.take(None, "a")))
    thread.start()
    mailbox.deliver([("a", 1)])
    thread.join()
    assert results == [("a", 1)]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_a_mailbox_loses_nothing(counts):
    mailbox, taken = Mailbox(), []
    items = [[(f"{i}", j) for j in range(count)] for i, count in enumerate(counts)]
    sender = threading.Thread(target=lambda: [mailbox.deliver(batch) for batch in items])
    sender.start()
    total = sum(counts)
    while len(taken) < total:
        taken += mailbox.take(None, "the rest")
    sender.join()
    assert taken == [item for batch in items for item in batch]


# -- memory that is not there --------------------------------------------------------------------------

SIDE = 1 << 22
"""A square of such sides takes 64 TiB."""


def outer(name="outer"):
    column = tf.placeholder(tf.float32, [SIDE, 1], name="column")
    return column, tf.matmul(column, tf.transpose(column), name=name)


def planned():
    column, product = outer()
    return tf.reduce_sum(product), column


def fetched():
    column, product = outer()
    return product, column


def fused():
    column = tf.placeholder(tf.float32, [SIDE, 1])
    row = tf.transpose(column)
    return tf.reduce_sum(tf.add(tf.multiply(column, row, name="outer"), row)), column


def fused_and_fetched():
    column = tf.placeholder(tf.float32, [SIDE, 1])
    row = tf.transpose(column)
    return tf.add(tf.multiply(column, row), row, name="outer"), column


def in_a_loop():
    column = tf.placeholder(tf.float32, [SIDE, 1])

    def body(i, total):
        return i + 1, total + tf.reduce_sum(tf.matmul(column, tf.transpose(column), name="outer"))

    return tf.while_loop(lambda i, total: i < 2, body, [0, 0.0]), column


def initial_value():
    column = tf.placeholder(tf.float32, [SIDE, 1])
    return tf.Variable(tf.fill([1 << 46], 1.0, name="outer")).initializer, column


@pytest.mark.fault(
    "Steps",
    "There is no memory for a result.",
    happens="`tf.errors.ResourceExhaustedError` with the operation and its line.",
    promise="It is an ordinary error: the process and the session go on.",
)
@pytest.mark.parametrize("build", [planned, fetched, fused, fused_and_fetched, in_a_loop, initial_value])
def test_memory_that_is_not_there_is_an_error_of_the_operation(build):
    fetch, column = build()
    with tf.Session() as session, pytest.raises(ResourceExhaustedError, match="allocat") as caught:
        session.run(fetch, {column: np.ones([SIDE, 1], np.float32)})
    error = caught.value
    if build not in (fused, fused_and_fetched):  # which of a group is asked for memory is its own affair
        assert error.op_name.rpartition("/")[2] == "outer"
    assert error.op_name and error.device in session.list_devices() and "test_execution.py" in error.site
    assert "float32" in error.message and (f"{SIDE}" in error.message or f"{1 << 46}" in error.message)


def test_memory_for_a_feed_that_is_not_there_names_the_placeholder():
    x = tf.placeholder(tf.float32, [None], name="fed")
    with tf.Session() as session, pytest.raises(ResourceExhaustedError, match=r"fed for fed:0.*TiB") as caught:
        session.run(tf.reduce_sum(x), {x: np.broadcast_to(np.float64(1), (1 << 44,))})
    assert caught.value.op_name == "fed"


# -- shapes that do not fit together ---------------------------------------------------------------------------


def test_an_assertion_says_first_that_shapes_do_not_fit_together():
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    with tf.control_dependencies([tf.assert_equal(tf.size(x), tf.size(y), message="one weight per value")]):
        product = tf.identity(x) * y
    with tf.Session() as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="one weight per value"):
                session.run(product, {x: [1.0, 2.0, 3.0], y: [1.0, 2.0]})
        assert session.run(product, {x: [1.0, 2.0], y: [3.0, 4.0]}).tolist() == [3, 8]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
            session.run(x * y, {x: [1.0, 2.0, 3.0], y: [1.0, 2.0]})


def test_lengths_of_another_number_than_the_sequences_are_refused():
    x, lengths = tf.placeholder(tf.float32, [3, 4, 2]), tf.placeholder(tf.int32, [None])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(2), x, sequence_length=lengths, dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="one length per sequence"):
            session.run(outputs, {x: np.ones((3, 4, 2)), lengths: [1, 2]})
