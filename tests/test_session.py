"""Sessions in this process: what can be fetched and fed, and what is compiled when."""

from __future__ import annotations

import collections
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tests.support.waiting import timed_out
from tfray.errors import CancelledError, FailedPreconditionError, InvalidArgumentError
from tfray.ops.state import state_ops
from tfray.ops.system.script_ops import py_func

Point = collections.namedtuple("Point", ["x", "y"])


# -- fetches -------------------------------------------------------------------------------------------


def test_structures_come_back_as_they_were(session):
    a, b = tf.constant(1, name="a"), tf.constant([2.0], name="b")
    fetched = session.run(
        {
            "list": [a, b, "a:0"],
            "tuple": (a, (b,), []),
            "point": Point(a, [b]),
            "operation": a.op,
            "named operation": "b",
            "ordered": collections.OrderedDict([("z", a), ("y", b)]),
            "default": collections.defaultdict(list, {"k": a}),
        }
    )
    assert fetched["list"][0] == fetched["list"][2] == 1
    assert fetched["tuple"][1][0].tolist() == [2.0] and fetched["tuple"][2] == []
    assert type(fetched["point"]) is Point and fetched["point"].y[0].tolist() == [2.0]
    assert fetched["operation"] is None and fetched["named operation"] is None
    assert list(fetched["ordered"]) == ["z", "y"] and type(fetched["ordered"]) is collections.OrderedDict
    assert fetched["default"]["k"] == 1
    assert session.run([]) == []
    assert session.run({}) == {}


def test_scalars_are_numpy_scalars_and_strings_are_bytes(session):
    number, flag, text, texts = session.run([tf.constant(1.5), tf.constant(True), tf.constant("ä"), tf.constant(["a"])])
    assert type(number) is np.float32 and type(flag) is np.bool_
    assert type(text) is bytes and text == "ä".encode() and texts.tolist() == [b"a"] and texts.dtype == object


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint64", "complex64", "bool"])
def test_every_dtype_goes_in_and_out(session, dtype):
    dtype = tf.as_dtype(dtype)
    x = tf.placeholder(dtype, [2])
    value = np.array([0, 1]).astype(dtype.numpy)
    same = session.run(tf.identity(x), {x: value})
    assert same.dtype == dtype.numpy and np.array_equal(same, value)


def test_variables_and_their_names_are_fetched(session):
    v = tf.Variable([1.0, 2.0], name="v")
    session.run(v.initializer)
    assert [value.tolist() for value in session.run([v, "v:0", v.value()])] == [[1, 2]] * 3


def test_a_handle_is_fetched_as_bytes(session):
    first, second = (tf.FIFOQueue(capacity, tf.float32, [()], shared_name="shared") for capacity in (10, 15))
    handle = session.run(first.queue_ref)
    assert handle.dtype.names == ("resource",) and handle.tobytes() == first.queue_ref.name.encode()
    with pytest.raises(InvalidArgumentError, match="has capacity 10"):
        session.run(second.queue_ref)


def test_sparse_gradients_are_fetched_in_their_parts(session):
    v = tf.Variable(np.ones((4, 2), np.float32))
    (slices,) = tf.gradients(tf.reduce_sum(tf.gather(v, [1, 3, 1])), [v])
    session.run(v.initializer)
    value = session.run(slices)
    assert value.indices.tolist() == [1, 3, 1] and value.values.shape == (3, 2)
    assert value.dense_shape.tolist() == [4, 2]


@pytest.mark.parametrize(
    "fetch", ["nowhere:0", "a:1", "a:b", 3, None, np.zeros(2), [["a:0", 3.5]], {1: b"a"}], ids=repr
)
def test_what_cannot_be_fetched(session, fetch):
    tf.constant(1, name="a")
    with pytest.raises(InvalidArgumentError, match=r"^Fetch argument .* (has invalid type|cannot be interpreted)"):
        session.run(fetch)


def test_elements_of_another_graph_are_refused(session):
    tf.constant(1.0)
    with tf.Graph().as_default():
        foreign = tf.placeholder(tf.float32, name="foreign")
    with pytest.raises(InvalidArgumentError, match=r"foreign.*another graph"):
        session.run(foreign)
    with pytest.raises(InvalidArgumentError, match=r"foreign.*another graph"):
        session.run(tf.constant(1), {foreign: 1})


# -- feeds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "shape", "value", "expected"),
    [
        (tf.float32, [None], [1, 2], [1, 2]),
        (tf.float32, [], 1, 1),
        (tf.float32, [2], np.float64([1.5, 2]), [1.5, 2]),
        (tf.float32, None, [[True]], [[1]]),
        (tf.int32, [2], np.int64([1, 2]), [1, 2]),
        (tf.bool, [], 1, True),
        (tf.bool, [2], [0, 1], [False, True]),
        (tf.complex64, [], 2.0, 2),
        (tf.string, [None], ["a", b"b"], [b"a", b"b"]),
        (tf.string, [], "text", b"text"),
        (tf.float32, [0], [], []),
        (tf.bfloat16, [1], [1.5], [1.5]),
        # What TensorFlow 2.21 makes of each.
        (tf.int32, [], 1.7, 1),
        (tf.int64, [2], np.float32([1.7, -2.7]), [1, -2]),
        (tf.uint8, [2], np.int64([300, -1]), [44, 255]),
        (tf.float32, [], "1.5", 1.5),
        (tf.int32, [2], ["1", "2"], [1, 2]),
        (tf.float32, [2], np.array(["1", "2"]), [1, 2]),
        (tf.float32, [2], np.array([1, 2.5], object), [1, 2.5]),
        (tf.float32, [2], [1, None], [1, np.nan]),
        (tf.int32, [2], [True, False], [1, 0]),
        (tf.bool, [2], [1.5, 0.0], [True, False]),
        (tf.int32, [3], range(3), [0, 1, 2]),
        (tf.float64, [], 2**70, 2.0**70),
    ],
)
def test_values_are_converted(session, dtype, shape, value, expected):
    x = tf.placeholder(dtype, shape)
    result = session.run(tf.identity(x), {x: value})
    np.testing.assert_array_equal(result, np.asarray(expected, object if dtype is tf.string else dtype.numpy))


@pytest.mark.parametrize(
    ("dtype", "shape", "value", "message"),
    [
        (tf.float32, [2], [1, 2, 3], r"shape \(3,\) for Tensor '.*', which has shape '\(2,\)'"),
        (tf.float32, [None, 2], [1, 2], r"shape \(2,\) for Tensor '.*', which has shape '\(\?, 2\)'"),
        (tf.float32, [], 1j, "no array of float32"),
        (tf.int32, [], np.nan, "no array of int32"),
        (tf.int32, [2], np.array([1.0, np.nan]), "no array of int32"),
        (tf.float32, [1], np.array([1j]), "complex numbers"),
        (tf.float32, [], "text", "no array of float32"),
        (tf.uint8, [], 300, "no array of uint8: 300 does not fit"),
        (tf.float32, [None], [[1], [1, 2]], "no array"),
        (tf.string, [], 3, "not a string"),
        (tf.int32, [], None, "no array of int32"),
        (tf.bool, [], -1, "-1 does not fit"),
        (tf.int32, [1], [2**40], "no array of int32"),
    ],
)
def test_values_that_do_not_fit_name_the_placeholder(session, dtype, shape, value, message):
    x = tf.placeholder(dtype, shape, name="culprit")
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        session.run(tf.identity(x), {x: value})
    assert "culprit" in str(caught.value)
    assert caught.value.op_name == "culprit" and __file__ in caught.value.site


@pytest.mark.parametrize("value", [2**40, -(2**70), None, {1}, object], ids=str)
def test_a_value_of_no_number_that_fits_is_a_type_error(session, value):
    x = tf.placeholder(tf.int32)
    with pytest.raises(TypeError, match="no array of int32"):
        session.run(x + 1, {x: value})


def test_feeds_are_cast_however_they_are_given(session):
    x, y = tf.placeholder(tf.int32), tf.placeholder(tf.float32, [2])
    total = tf.cast(x, tf.float32) + y
    assert session.run(total, {(x, y): (1.7, ["1", "2"])}).tolist() == [2, 3]
    assert session.make_callable(total, [x, y])(1.7, ["1", "2"]).tolist() == [2, 3]
    assert total.eval({x: "1", y: [1, True]}).tolist() == [2, 2]
    with pytest.raises(InvalidArgumentError, match="a tuple of 2 values"):
        session.run(total, {(x, y): (1,)})
    with pytest.raises(TypeError, match="expected a dictionary"):
        session.run(total, [x])


def test_a_callable_takes_options_when_it_is_made_so(session):
    x = tf.placeholder(tf.float32)
    call = session.make_callable(x + 1, [x], accept_options=True)
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=60_000)
    assert call(1.0) == 2 and call(1.0, options=options, run_metadata=metadata) == 2
    assert metadata.step_stats.dev_stats
    with pytest.raises(TypeError, match="accept_options"):
        session.make_callable(x + 1, [x])(1.0, options=options)
    with pytest.raises(TypeError, match="feed_list"):
        session.make_callable(x + 1, x)


def test_any_tensor_is_fed_and_then_not_computed(session):
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.square(x, name="y")
    z = y + 1
    assert session.run(z, {y: 5}) == 6  # x is not needed
    assert session.run([x, y, z], {x: 1, "y:0": 5}) == [1, 5, 6]
    parts = tf.split(tf.constant([1.0, 2.0]), 2)
    total = parts[0] * 10 + parts[1]
    assert session.run(total, {parts[0]: [7.0]}).tolist() == [72]
    v = tf.Variable(3.0)
    assert session.run(v * 2, {v: 4.0}) == 8


def test_strings_that_are_fed_come_back_as_they_were_given(session):
    words, word = tf.placeholder(tf.string, [2]), tf.placeholder_with_default("train", [])
    given, computed = session.run([words, tf.identity(words)], {words: ["a", b"b"]})
    assert (given.dtype, given.tolist()) == (object, ["a", b"b"])  # of TensorFlow 1.15
    assert computed.tolist() == [b"a", b"b"]
    found = session.run(word, {word: "eval"})
    assert found.shape == () and found == "eval" and session.run(word) == b"train"


def test_a_placeholder_that_is_fed_counts_as_run(session):
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.control_dependencies([x]):
        y = tf.constant(1.0) + 1
    assert session.run([y, x.op, tf.group(x)], {x: 3}) == [2, None, None]
    assert session.run(x.op, {x: 3}) is None


def test_feeds_that_cannot_be(session):
    x = tf.placeholder(tf.float32, [], name="x")
    queue = tf.FIFOQueue(1, tf.float32)
    with pytest.raises(InvalidArgumentError, match="fed twice"):
        session.run(x, {x: 1, "x:0": 2})
    with pytest.raises(InvalidArgumentError, match="may not be fed"):
        session.run(x, {x: 1, queue.queue_ref: 2})
    with pytest.raises(InvalidArgumentError, match="Cannot interpret feed_dict key as Tensor"):
        session.run(x, {x.op: 1})
    with pytest.raises(TypeError, match="as Tensor: The name 'nowhere:0' refers to a Tensor which does not"):
        session.run(x, {"nowhere:0": 1})
    with pytest.raises(InvalidArgumentError, match="run the tensor first"):
        session.run(x, {x: tf.constant(1.0)})


def test_a_missing_feed_is_named(session):
    x = tf.placeholder(tf.float32, [], name="forgotten")
    with pytest.raises(
        InvalidArgumentError, match=r"placeholder tensor 'forgotten' with dtype float and shape \[\]: pass feed_dict"
    ) as caught:
        session.run(x * 2)
    assert caught.value.op_name == "forgotten" and __file__ in caught.value.site


def test_a_default_yields_to_a_feed(session):
    x = tf.placeholder_with_default([1.0, 2.0], [None])
    y = tf.reduce_sum(x)
    assert session.run(y) == 3
    assert session.run(y, {x: [5]}) == 5


def test_arrays_of_any_layout_are_fed(session):
    x = tf.placeholder(tf.float32, [None, None])
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    frozen = base.copy()
    frozen.flags.writeable = False
    for value in (base, base.T, base[::2, 1::2], base[::-1], np.asfortranarray(base), frozen, base[:0]):
        total, doubled = session.run([tf.reduce_sum(x), x * 2], {x: value})
        assert total == value.sum()
        assert np.array_equal(doubled, value * 2)


# -- compiling -----------------------------------------------------------------------------------------


def test_each_combination_is_compiled_once(session):
    x = tf.placeholder(tf.float32, [])
    y, z = x + 1, x * 2
    for value in range(3):
        session.run([y, z], {x: value})
        session.run((y, {"z": z}), {x: value})
        session.run(y, {x: value})
    assert len(session._steps) == 3
    session.run(tf.square(x), {x: 1.0})  # the graph grew: earlier plans are let go
    assert len(session._steps) == 1


def test_the_graph_may_grow_between_steps(session):
    v = tf.Variable(1.0)
    session.run(v.initializer)
    for expected in (3, 9, 27):
        assert session.run(state_ops.assign(v, v.value() * 3)) == expected


def test_a_callable_takes_values_in_order_and_outlives_changes_of_the_graph(session):
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    call = session.make_callable({"d": x - y}, [x, y])
    assert call(5, 3) == {"d": 2}
    assert session.run(x * 3, {x: 1}) == 3
    assert session.run(x * 4, {x: 1}) == 4
    assert call(1, 2) == {"d": -1}
    assert len(session._steps) == 2
    with pytest.raises(InvalidArgumentError, match="takes 2 values, got 1"):
        call(1)
    session.close()
    with pytest.raises(CancelledError, match="closed"):
        call(5, 3)


def test_values_are_the_same_with_and_without_optimization():
    x = tf.placeholder(tf.float32, [None])
    a = tf.identity(tf.constant([1.0, 2.0]) * 2 + 1)
    b = tf.identity(tf.constant([1.0, 2.0]) * 2 + 1)
    y = tf.stop_gradient(tf.identity(x)) * a + x * b
    for level in (tf.OptimizerOptions.L0, tf.OptimizerOptions.L1):
        config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=level)))
        with tf.Session(config=config) as session:
            assert session.run(y, {x: [1, 1]}).tolist() == [6, 10]


def test_placement_is_logged(capsys):
    with tf.device("/cpu:1"):
        x = tf.placeholder(tf.float32, [], name="somewhere") + 1
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2, "GPU": 0}, log_device_placement=True)) as session:
        session.run(x, {"somewhere:0": 1})
        assert session.list_devices() == [f"/job:localhost/task:0/device:CPU:{i}" for i in range(2)]
    assert "Add) /job:localhost/task:0/device:CPU:1" in capsys.readouterr().out


# -- default sessions, opening and closing -------------------------------------------------------------


def test_default_sessions_nest():
    x = tf.constant(3)
    with pytest.raises(ValueError, match="No default session"):
        x.eval()
    with tf.Session() as outer:
        assert tf.get_default_session() is outer
        with tf.Session().as_default() as inner:
            assert tf.get_default_session() is inner
            assert x.eval() == 3
        x.op.run()
        other = tf.Graph()
        with other.as_default():
            y = tf.constant(4)
        with pytest.raises(ValueError, match="the tensor's graph is different from the session's graph"):
            y.eval()
        assert y.eval(session=tf.Session(graph=other)) == 4
    assert tf.get_default_session() is None


def test_a_session_enters_its_graph():
    graph = tf.Graph()
    with tf.Session(graph=graph):
        assert tf.get_default_graph() is graph
        assert tf.constant(1).graph is graph
    assert tf.get_default_graph() is not graph


def test_an_interactive_session_is_the_default():
    session = tf.InteractiveSession()
    assert tf.constant(2).eval() == 2
    session.close()
    session.close()
    assert tf.get_default_session() is None


def test_a_config_may_name_the_cluster():
    with tf.Session(
        config=tf.ConfigProto(cluster_def=tf.train.ClusterSpec({"w": ["a:1"]}).as_cluster_def())
    ) as session:
        assert session.run(tf.constant(1)) == 1


def test_a_closed_session_says_so():
    session = tf.Session()
    session.close()
    session.close()
    with pytest.raises(CancelledError, match="closed"):
        session.run(tf.constant(1))


@pytest.mark.parametrize("target", ["somewhere", 3, object()])
def test_a_target_that_is_none(target):
    with pytest.raises(InvalidArgumentError, match=r"tfray\.Cluster"):
        tf.Session(target)


def test_an_uninitialised_variable_is_named(session):
    v = tf.Variable(1.0, name="weights")
    with pytest.raises(FailedPreconditionError, match=r"uninitialized value weights.*initializer") as caught:
        session.run(v * 2)
    assert caught.value.op_name == "weights/read" and __file__ in caught.value.site


# -- several threads -----------------------------------------------------------------------------------


def test_steps_run_concurrently():
    """Two steps meet in the middle of a kernel: neither ends without the other."""
    barrier = threading.Barrier(2, timeout=PATIENCE_S)
    x = tf.placeholder(tf.float32, [])
    y = py_func(lambda value: (barrier.wait(), value)[1], [x], tf.float32) * 2
    with tf.Session() as session, ThreadPoolExecutor(2) as pool:
        results = [pool.submit(session.run, y, {x: value}) for value in (1, 2)]
        assert sorted(result.result() for result in results) == [2, 4]


def test_many_threads_compile_and_run(session):
    x = tf.placeholder(tf.float32, [None])
    fetches = [tf.reduce_sum(x * i + tf.cast(tf.size(x), tf.float32)) for i in range(4)]

    def work(i):
        n = 1 + i % 10
        return session.run(fetches[i % 4], {x: np.ones(n)}) == n * (i % 4) + n * n

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))


# -- timeouts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [tf.ConfigProto(device_count={"CPU": 2}), tf.ConfigProto()], ids=["two", "one"])
def test_a_step_gives_up_after_its_timeout(config):
    """Also while a function of the program's runs, which then ends by itself."""
    end = threading.Event()
    with tf.device("/cpu:1" if config.device_count else None):
        a = py_func(lambda: (end.wait(PATIENCE_S), np.float32(1))[1], [], tf.float32, name="waits")
    with tf.device("/cpu:0"):
        b = a + 1
    with tf.Session(config=config) as session:
        timed_out(session, b, at="Timed out waiting for notification of waits")
        end.set()
        assert session.run(b) == 2


def test_bfloat16_values_are_of_ml_dtypes(session):
    assert session.run(tf.constant([1.5], tf.bfloat16)).dtype == ml_dtypes.bfloat16


# -- values that stay on their device ------------------------------------------------------------------


def test_a_value_is_kept_and_used_in_later_steps(session):
    x = tf.placeholder(tf.float32)
    kept = session.run(tf.get_session_handle(x), {x: [1.0, 2.0]})
    for _ in range(3):
        holder, value = tf.get_session_tensor(kept.handle, tf.float32)
        kept = session.run(tf.get_session_handle(value * 2), {holder: kept.handle})
    assert kept.eval().tolist() == [8, 16]
    assert session.run(x + 1, {x: kept}).tolist() == [9, 17]  # in place of a value
    assert session.run([tf.get_session_handle(x), x * 2], {x: 3})[1] == 6
    holder, value = tf.get_session_tensor(kept.get_raw_handle(), tf.int32)
    with pytest.raises(InvalidArgumentError, match="float32, not int32"):
        session.run(value, {holder: kept.handle})
    before = len(session.graph.get_operations())
    assert kept.eval().tolist() == [8, 16] and len(session.graph.get_operations()) == before
    deleted, delete = tf.delete_session_tensor(kept.handle)
    session.run(delete, {deleted: kept.handle})
    with pytest.raises(InvalidArgumentError, match="there is no value"):
        kept.eval()
    with pytest.raises(InvalidArgumentError, match="not the handle"):
        tf.get_session_tensor("text", tf.int32)


def test_a_handle_forgets_its_value(session):
    kept = session.run(tf.get_session_handle(tf.constant(1.0)))
    kept.delete()
    with pytest.raises(InvalidArgumentError, match="there is no value"):
        kept.eval()


# -- steps in pieces -----------------------------------------------------------------------------------


def test_a_step_is_run_in_pieces(session):
    a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
    first = a + b
    second = first * c
    handle = session.partial_run_setup([first, second], [a, b, c])
    with pytest.raises(InvalidArgumentError, match="has no value yet"):
        session.partial_run(handle, second, {c: 1})
    assert session.partial_run(handle, first, {a: "1", b: 2}) == 3
    assert session.partial_run(handle, {"second": [second]}, {c: 17}) == {"second": [51]}
    with pytest.raises(InvalidArgumentError, match="has ended"):
        session.partial_run(handle, second)


def test_each_operation_of_a_step_in_pieces_runs_once(session):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    v, number = tf.Variable(0.0), tf.random_normal([])
    added = v.assign_add(a)
    with tf.control_dependencies([added]):
        after = tf.identity(b) + 1
    total = added * 0 + b + number
    session.run(v.initializer)
    handle = session.partial_run_setup([added, number, after, total, added.op], [a, b])
    assert session.partial_run(handle, total, {a: 2.0, b: 3.0}) == session.partial_run(handle, number) + 3
    assert session.partial_run(handle, [after, added, added.op]) == [4.0, 2.0, None]
    assert session.run(v) == 2.0


def test_what_was_not_announced_is_refused(session):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    x, y = a + 1, b + 1
    handle = session.partial_run_setup([x, a * 2], a)
    for fetches, feeds in ((y, {a: 1}), (x, {b: 1})):
        with pytest.raises(InvalidArgumentError, match="was not specified in partial_run_setup"):
            session.partial_run(handle, fetches, feeds)
    assert session.partial_run(handle, x, {a: 1}) == 2
    with pytest.raises(InvalidArgumentError, match="has already been fetched"):
        session.partial_run(handle, x)
    with pytest.raises(InvalidArgumentError, match="at least one target"):
        session.partial_run_setup([], a)
    with pytest.raises(InvalidArgumentError, match="never began"):
        session.partial_run("text", x)


@pytest.mark.parametrize(
    "part", [lambda x: x[0], lambda x: x[:1], lambda x: tf.cast(x, tf.int64)[1], lambda x: tf.stack([x[0], x[1]])[0]]
)
def test_a_part_that_the_graph_knows_comes_after_what_the_whole_comes_after(part):
    with tf.Session() as session:
        with tf.control_dependencies([tf.Assert(False, ["no"])]):
            whole = tf.identity([1, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="no"):
            session.run(part(whole))
        assert session.run(tf.shape(whole)[0]) == 2, "of a shape nothing else is computed"


def test_a_reset_ends_the_sessions_of_this_process():
    with tf.container("kept"):
        variable = tf.Variable(3.0, name="kept")
    session = tf.Session()
    session.run(variable.initializer)
    tf.Session.reset("", ["other"])
    with pytest.raises(tf.errors.CancelledError):
        session.run(variable)
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError):
        session.run(variable)


def test_variables_of_one_name_in_two_containers_are_two():
    variables = []
    for container, value in (("", 1.0), ("a", 2.0), ("b", 3.0)):
        with tf.container(container):
            handle = state_ops.variable_handle([], tf.float32, shared_name="same")
            variables += [state_ops.assign(handle, value), state_ops.read_variable(handle)]
    with tf.Session() as session:
        session.run(variables[::2])
        assert session.run(variables[1::2]) == [1, 2, 3]
