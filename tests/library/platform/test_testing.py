"""`tf.test`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import unittest
from collections import namedtuple

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.library.platform import testing


def run(body):
    """Run a function as a test of `tf.test.TestCase`; returns the result."""

    class Case(tf.test.TestCase):
        def runTest(self):
            body(self)

    result = unittest.TestResult()
    Case().run(result)
    assert not result.errors, result.errors[0][1]
    return result


Pair = namedtuple("Pair", ["a", "b"])
PASSING = {
    "sessions": lambda t: t.assertEqual(session_value(t), 6.0),
    "close": lambda t: t.assertAllClose([1.0, 2.0], np.array([1.0, 2.0 + 1e-7])),
    "close tensors": lambda t: t.assertAllClose(tf.constant([1.0]), [1.0]),
    "close structures": lambda t: t.assertAllClose(
        {"a": [1.0], "b": ([1.0], [2.0, 3.0])}, {"a": [1.0], "b": ([1], [2, 3])}
    ),
    "close names": lambda t: t.assertAllClose(Pair(tf.constant(7.0), (2.0, 3.0)), {"a": 7, "b": [2, 3]}),
    "equal tuples": lambda t: t.assertAllEqual(Pair(7, 8), (7, 8)),
    "close by rows": lambda t: t.assertAllClose(np.ones((2, 2)), [[1, 1.1], [1, 1.1]], atol=np.array([0, 0.2])),
    "close by type": lambda t: t.assertAllCloseAccordingToType(np.float16([1]), np.float16([1.0009])),
    "not close": lambda t: t.assertNotAllClose([1.0], [1.1]),
    "equal": lambda t: t.assertAllEqual(tf.constant([[1, 2]]), [[1, 2]]),
    "equal strings": lambda t: t.assertAllEqual(tf.constant(["a", "ä"]), ["a", "ä"]),
    "equal NaNs": lambda t: t.assertAllEqual([np.nan], [np.nan]),
    "not equal": lambda t: t.assertNotAllEqual([1], [2]),
    "bounds": lambda t: (t.assertAllGreater([1, 2], 0), t.assertAllLess([1, 2], 3), t.assertAllInRange([1, 2], 1, 2)),
    "sets": lambda t: t.assertAllInSet([1, 1, 2], {1, 2}),
    "near": lambda t: (t.assertNear(1.0, 1.05, 0.1), t.assertArrayNear([1.0], [1.05], 0.1)),
    "norms": lambda t: t.assertNDArrayNear(np.ones((2, 2)), np.ones((2, 2)) + 0.01, 0.1),
    "shapes": lambda t: t.assertShapeEqual(np.ones((2, 3)), tf.zeros([2, 3])),
    "dtypes": lambda t: t.assertDTypeEqual(tf.zeros([1]), tf.float32),
    "devices": lambda t: t.assertDeviceEqual("/cpu:0", "/device:CPU:0"),
    "starts": lambda t: t.assertStartsWith("abc", "ab"),
    "folders": lambda t: t.assertTrue(os.path.isdir(t.get_temp_dir())),
    "empty graphs": lambda t: t.assertEqual(tf.get_default_graph().get_operations(), []),
    "evaluation": lambda t: t.assertEqual(t.evaluate({"a": tf.constant(3)}), {"a": 3}),
    "equal structures": lambda t: t.assertAllEqual(
        {"a": [1], "b": (tf.constant([2]), "x")}, {"a": [1], "b": ([2], b"x")}
    ),
    "equal ragged lists": lambda t: t.assertAllEqual([[1], [2, 3]], [[1], [2, 3]]),
    "close lists of tensors": lambda t: t.assertAllClose([tf.ones([1]), tf.ones([2])], [[1.0], [1.0, 1.0]]),
    "open bounds": lambda t: t.assertAllInRange([1.5], 1, 2, open_lower_bound=True, open_upper_bound=True),
    "items": lambda t: (t.assertItemsEqual([1, 2, 2], [2, 1, 2]), t.assertSameElements([1, 1], [1])),
    "lengths": lambda t: (t.assertLen("abc", 3), t.assertEmpty([]), t.assertNotEmpty([0])),
    "ends": lambda t: (t.assertEndsWith("abc", "bc"), t.assertBetween(1, 0, 1)),
    "subsets": lambda t: (t.assertContainsSubset({1}, {1, 2}), t.assertNoCommonElements([1], [2])),
    "sequences": lambda t: t.assertSequenceAlmostEqual([1.0], [1.01], delta=0.1),
    "messages": lambda t: t.assertProtoEquals(summary(1.0), summary(1.0)),
    "graphs": lambda t: t.assertProtoEqualsVersion(tf.Graph().as_graph_def(), tf.Graph().as_graph_def()),
    "string sets": lambda t: t.assertAllInSet(tf.constant(["a"]), {"a"}),
    "streams": lambda t: t.assertEqual(captured(t), "to the terminal"),
    "threads": lambda t: checked_thread(t, lambda: None),
}
FAILING = {
    "close": lambda t: t.assertAllClose([1.0], [1.1]),
    "close by rows": lambda t: t.assertAllClose(np.ones((2, 2)), [[1, 1.1], [1, 1.1]], atol=np.array([0.2, 0])),
    "close keys": lambda t: t.assertAllClose({"a": 1.0}, {"b": 1.0}),
    "not close": lambda t: t.assertNotAllClose([1.0], [1.0]),
    "equal": lambda t: t.assertAllEqual([1], [2]),
    "equal shapes": lambda t: t.assertAllEqual([1], [[1]]),
    "not equal": lambda t: t.assertNotAllEqual([1], [1]),
    "bounds": lambda t: t.assertAllLess([1, 3], 3),
    "sets": lambda t: t.assertAllInSet([3], {1, 2}),
    "near": lambda t: t.assertNear(1.0, 1.2, 0.1),
    "shapes": lambda t: t.assertShapeEqual(np.ones(2), tf.zeros([3])),
    "errors": lambda t: raising(t, lambda: None),
    "close to a scalar": lambda t: t.assertAllClose(np.ones((2, 2)), 1.0),  # shapes differ
    "close shapes": lambda t: t.assertAllClose([[1.0]], [1.0]),
    "equal structures": lambda t: t.assertAllEqual({"a": [1, 2]}, {"a": [1, 3]}),
    "open bounds": lambda t: t.assertAllInRange([1, 2], 1, 2, open_lower_bound=True),
    "NaN in bounds": lambda t: t.assertAllInRange([np.nan], 0, 1),
    "items": lambda t: t.assertItemsEqual([1, 2, 2], [2, 1]),
    "lengths": lambda t: t.assertLen([], 1),
    "messages": lambda t: t.assertProtoEquals(summary(1.0), summary(2.0)),
    "threads": lambda t: checked_thread(t, lambda: 1 / 0),
    "threads that run on": lambda t: t.checkedThread(threading.Event().wait, [3]).start(),
    "other errors": lambda t: raising(t, lambda: run_op_error("other")),
}


def summary(value):
    return tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=value)])


def captured(case):
    with open(os.path.join(case.get_temp_dir(), "stream"), "w+") as stream:  # a file, since pytest has the terminal
        with case.captureWritesToStream(stream) as found:
            os.write(stream.fileno(), b"to the ")
            stream.write("terminal")
        stream.write("and not this")
        return found.contents()


def checked_thread(case, function):
    thread = case.checkedThread(function)
    thread.start()
    thread.join()
    case.assertFalse(thread.is_alive())


def session_value(case):
    with case.test_session() as session:
        assert tf.get_default_session() is session
        return tf.constant(6.0).eval()


def run_op_error(message):
    raise tf.errors.InvalidArgumentError(message)


def raising(case, function):
    with case.assertRaisesOpError("expected"):
        function()


@pytest.mark.parametrize("name", PASSING)
def test_what_holds_passes(name):
    assert not run(PASSING[name]).failures


@pytest.mark.parametrize("name", FAILING)
def test_what_does_not_hold_fails(name):
    assert run(FAILING[name]).failures


@pytest.mark.parametrize(
    ("check", "parts"),
    [
        (
            FAILING["close"],
            ["Not equal to tolerance", "not close where = (array([0]),)", "not close lhs = [1.]", "dif"],
        ),
        (FAILING["close keys"], ["mismatched keys"]),
        (FAILING["equal"], ["not equal where", "not equal lhs = [1]", "not equal rhs = [2]"]),
        (FAILING["equal structures"], ["a[a] is different from b[a]", "not equal lhs = [2]"]),
        (FAILING["equal shapes"], ["Shape mismatch"]),
        (lambda t: t.assertAllClose({"y": (2, [{"m": 4.0}])}, {"y": (2, [{"m": 4.2}])}), ["[y][1][0][m]"]),
        (lambda t: t.assertAllClose(1.0, 2.0, msg="mine"), ["mine", "not close lhs = array(1.)"]),
        (lambda t: t.assertAllEqual([True, False], [True, True]), ["not equal lhs = [False]"]),
    ],
)
def test_what_a_failure_tells(check, parts):
    ((_, told),) = run(check).failures
    assert [part for part in parts if part not in told] == []


@pytest.mark.parametrize(
    ("check", "match"),
    [
        (lambda t: t.assertAllClose(1, {"a": 1}), "Can't compare dict to non-dict"),
        (lambda t: t.assertAllEqual([[1], [2, 3]], [[1], [2, 3], [4]]), "Mismatched length"),
    ],
)
def test_what_cannot_be_compared(check, match):
    with pytest.raises(AssertionError, match=f"ValueError: {match}"):
        run(check)


def test_errors_are_expected():
    assert not run(lambda t: raising(t, lambda: run_op_error("as expected"))).failures

    def by_predicate(case):
        with case.assertRaisesWithPredicateMatch(ValueError, lambda error: error.args == (3,)):
            raise ValueError(3)

    assert not run(by_predicate).failures


def test_a_program_of_tests(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import tfray as tf\n"
        "class Test(tf.test.TestCase):\n"
        "    def testIt(self):\n"
        "        with self.test_session():\n"
        "            self.assertAllEqual(tf.constant([1]) + 1, [2])\n"
        "if __name__ == '__main__':\n"
        "    tf.test.main()\n"
    )
    found = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=PATIENCE_S)
    assert found.returncode == 0 and "Ran 1 test" in found.stderr, found.stderr


def test_gradients_are_checked():
    x = tf.placeholder(tf.float64, [2, 3])
    w = tf.placeholder(tf.float64, [3, 1])
    y = tf.tanh(tf.matmul(x, w))
    wrong = tf.stop_gradient(y) * tf.reduce_sum(x)
    rows = tf.gather(x, [1, 1])
    with tf.Session():
        extra = {w: np.ones((3, 1)) / 3}
        assert tf.test.compute_gradient_error(x, [2, 3], y, [2, 1], extra_feed_dict=extra) < 1e-6
        assert tf.test.compute_gradient_error([x, w], [[2, 3], [3, 1]], y, [2, 1]) < 1e-6
        assert tf.test.compute_gradient_error(x, [2, 3], wrong, [2, 1], extra_feed_dict=extra) > 1e-2
        exact, numeric = tf.test.compute_gradient(x, [2, 3], rows, [2, 3], np.zeros((2, 3)))
        assert exact.shape == (6, 6) == numeric.shape
        np.testing.assert_allclose(exact, numeric, atol=1e-9)
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not depend"):
            tf.test.compute_gradient(x, [2, 3], w, [3, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="no default session"):
        tf.test.compute_gradient(x, [2, 3], y, [2, 1])


@pytest.mark.parametrize("dtype", [tf.float32, tf.complex64, tf.complex128])
def test_jacobians_of_complex_tensors_are_of_their_parts(dtype):
    """The square of x + iy has the derivative matrix ((2x, 2y), (-2y, 2x)): as TensorFlow has it, by rows of parts."""
    x = tf.placeholder(dtype, [1])
    start = np.array([3 + 2j if dtype.is_complex else 3], dtype.as_numpy_dtype)
    with tf.Session():
        exact, numeric = tf.test.compute_gradient(x, [1], x * x, [1], start)
        np.testing.assert_allclose(exact, [[6, 4], [-4, 6]] if dtype.is_complex else [[6]])
        np.testing.assert_allclose(numeric, exact, rtol=2e-3)
        assert exact.dtype == dtype.real_dtype
        exact, numeric = tf.test.compute_gradient(x, [1], tf.abs(x), [1], start)
        np.testing.assert_allclose(exact, numeric, atol=2e-3)
        assert tf.test.compute_gradient_error(x, [1], x * x, [1]) < 2e-3
        # Nothing comes out, and there is no gradient of it.
        assert tf.test.compute_gradient(x, [1], x[:0], [0])[0].shape == (1 + dtype.is_complex, 0)


def test_gradients_of_functions_are_checked():
    """`gradient_checker_v2` is one of TensorFlow's own modules, which programs import."""
    with tf.Session():
        exact, numeric = testing.compute_gradient_of(
            lambda a, b: a * b, [np.array([2.0, 3.0]), tf.constant(4.0, tf.float64)]
        )
        np.testing.assert_allclose(exact[0], [[4, 0], [0, 4]])
        np.testing.assert_allclose(exact[1], [[2, 3]])
        assert testing.max_error(exact, numeric) < 1e-9
        with pytest.raises(ValueError, match="list or tuple"):
            testing.compute_gradient_of(tf.sin, 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no default session"):
        testing.compute_gradient_of(tf.sin, [1.0])


def test_the_folder_of_a_test_stays_until_the_process_ends():
    folders = []
    run(lambda case: folders.append(case.get_temp_dir()))
    assert os.path.isdir(folders[0]), "a test may leave it the working directory"
    assert os.path.dirname(folders[0]) == tf.test.get_temp_dir()


def test_the_surroundings():
    assert os.path.isdir(tf.test.get_temp_dir()) and tf.test.get_temp_dir() == tf.test.get_temp_dir()
    assert tf.test.is_gpu_available() == bool(tf.test.gpu_device_name()) == tf.test.is_built_with_cuda()
    assert tf.test.test_src_dir_path("x").endswith("/x")


def test_graphs_are_compared():
    def graph_def(value):
        with tf.Graph().as_default() as graph:
            tf.add(tf.constant(1, name="a"), tf.constant(2, name=value), name="sum")
        return graph.as_graph_def()

    tf.test.assert_equal_graph_def(graph_def("b"), graph_def("b"))
    with pytest.raises(AssertionError, match=r"^Found unexpected node '{{node b}}': operations of one graph only"):
        tf.test.assert_equal_graph_def(graph_def("b"), graph_def("c"))
    with pytest.raises(AssertionError, match=r"^Missing expected node '{{node sum}}' and 2 others: a, b"):
        tf.test.assert_equal_graph_def(tf.GraphDef(), graph_def("b"))
    with pytest.raises(TypeError, match=r"tf\.GraphDef"):
        tf.test.assert_equal_graph_def(graph_def("b"), tf.Graph())


def test_graphs_are_compared_by_attributes_and_control_inputs():
    def graph_def(value=1, order=("a", "b")):
        with tf.Graph().as_default() as graph:
            ops = {name: tf.no_op(name) for name in "ab"}
            with tf.control_dependencies([ops[name] for name in order]):
                tf.constant(value, name="c")
        return graph.as_graph_def()

    tf.test.assert_equal_graph_def(graph_def(), graph_def(order=("b", "a")))
    with pytest.raises(AssertionError, match="operation 'c'"):
        tf.test.assert_equal_graph_def(graph_def(), graph_def(2))


def test_names_that_tables_share_may_differ():
    def graph_def(shared_name):
        with tf.Graph().as_default() as graph:
            filled = tf.lookup.KeyValueTensorInitializer([1], [2], tf.int64, tf.int64)
            tf.contrib.lookup.HashTable(filled, 0, shared_name)
        return graph.as_graph_def()

    tf.test.assert_equal_graph_def(graph_def("a"), graph_def("b"), hash_table_shared_name=True)
    with pytest.raises(AssertionError, match="shared_name"):
        tf.test.assert_equal_graph_def(graph_def("a"), graph_def("b"))


def test_variables_live_as_long_as_the_test():
    def body(case):
        v = tf.Variable(1.0)
        with case.cached_session() as session:
            session.run(v.initializer)
            session.run(v.assign_add(1.0))
        case.assertEqual(case.evaluate(v), 2.0)
        with case.cached_session() as again:
            case.assertIs(again, session)
            case.assertEqual(v.eval(), 2.0)
        with case.session() as other, case.assertRaises(tf.errors.FailedPreconditionError):
            other.run(v)
        with case.assertRaises(ValueError), case.cached_session(force_gpu=True):
            pass

    assert not run(body).failures


def test_a_test_begins_with_an_empty_graph_wherever_its_set_up_is_called():
    with tf.Graph().as_default() as graph:
        tf.constant(1.0)
        tf.test.TestCase().setUp()
        assert tf.get_default_graph() is not graph and not tf.get_default_graph().get_operations()
    assert tf.get_default_graph() is not graph


def test_a_test_may_have_helpers_of_any_name():
    own = {*vars(tf.test.TestCase), *vars(tf.test.TestCase()).keys() - vars(unittest.TestCase()).keys()}
    unittests = ("_class", "__", "_TestCase__")
    assert [name for name in own if name.startswith("_") and not name.startswith(unittests)] == []

    class Case(tf.test.TestCase):
        def _compare(self, x):
            raise NotImplementedError

        _array = _test_session = _kept = _folder = _threads = _compare

        def runTest(self):
            self.assertAllClose(tf.constant([1.0]), [1.0])
            self.assertTrue(self.get_temp_dir())
            thread = self.checkedThread(lambda: None)
            thread.start()
            thread.join()

    result = unittest.TestResult()
    Case().run(result)
    assert not result.errors and not result.failures, result


def test_attributes_are_replaced_for_a_while():
    class Base:
        @staticmethod
        def answer():
            return 1

    class Derived(Base):
        pass

    with tf.test.StubOutForTesting() as stubs:
        stubs.SmartSet(Derived, "answer", staticmethod(lambda: 2))
        assert Base.answer() == Derived().answer() == 2
        stubs.Set(os, "sep", "|")
        assert os.sep == "|"
        with pytest.raises(AttributeError):
            stubs.SmartSet(Derived, "question", 1)
    assert Derived().answer() == Base().answer() == 1 and os.sep == "/"


def test_benchmarks_run_for_an_argument(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import tfray as tf\n"
        "class Sums(tf.test.Benchmark):\n"
        "    def benchmarkAdd(self):\n"
        "        with tf.Session(config=tf.test.benchmark_config()) as session:\n"
        "            x = tf.placeholder_with_default([1], [None]) + 1\n"
        "            found = self.run_op_benchmark(session, x, min_iters=3, mbs=2, store_trace=True)\n"
        "        assert found['iters'] == 3 and found['throughput'] > 0 and found['wall_time'] > 0\n"
        "    def benchmarkOther(self):\n"
        "        raise RuntimeError\n"
        "if __name__ == '__main__':\n"
        "    tf.test.main()\n"
    )
    environment = {**os.environ, "TEST_REPORT_FILE_PREFIX": f"{tmp_path}/report-"}
    command = [sys.executable, str(path), "--benchmarks=Add"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert found.returncode == 0, found.stderr
    report = json.loads((tmp_path / "report-Sums.benchmarkAdd").read_text())
    assert report["iters"] == 3 and "Add" in report["extras"]["step_stats"]
    command[-1] = "--benchmarks=Nothing"
    assert subprocess.run(command, capture_output=True, timeout=PATIENCE_S).returncode == 1


@pytest.mark.ray
def test_a_local_cluster_shares_variables(ray_local):
    workers, servers = tf.test.create_local_cluster(num_workers=1, num_ps=1)
    try:
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(3.0)
            with tf.Session(workers[0].target) as session:
                session.run(v.initializer)
                assert session.run(v + 1) == 4.0
    finally:
        for server in (*workers, *servers):
            server.stop()


@pytest.mark.slow
@pytest.mark.ray
def test_a_local_cluster_starts_a_ray_when_there_is_none(tmp_path):
    program = (
        "import tfray as tf\n"
        "workers, servers = tf.test.create_local_cluster(num_workers=2, num_ps=1)\n"
        "with tf.device('/job:ps/task:0'):\n"
        "    v = tf.Variable(3.0)\n"
        "with tf.Session(workers[0].target) as first, tf.Session(workers[1].target) as second:\n"
        "    first.run(v.initializer)\n"
        "    print(second.run(v + 1.0))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "4.0"


def test_each_of_several_is_differentiated_by_where_the_others_are():
    x, y, fed = tf.constant([2.0]), tf.constant([3.0]), tf.placeholder(tf.float32, [1])
    with tf.Session():
        pairs = tf.test.compute_gradient([x, y, fed], [[1]] * 3, x * y * fed, [1], [[5.0], [7.0], [1.0]])
    assert [exact.item() for exact, _ in pairs] == [3.0, 2.0, 6.0]


def test_a_test_case_has_the_comparisons_of_absl():
    case = tf.test.TestCase()
    with case.assertRaisesWithLiteralMatch(ValueError, "a (b)"):
        raise ValueError("a (b)")
    with pytest.raises(AssertionError), case.assertRaisesWithLiteralMatch(ValueError, "a"):
        raise ValueError("a (b)")


def test_an_empty_gradient_has_the_shape_of_its_tensor():
    @tf.RegisterGradient("TransposedGradient")
    def transposed(op, gradient):
        return tf.transpose(gradient)

    x = tf.placeholder(tf.float32)
    with tf.get_default_graph().gradient_override_map({"Identity": "TransposedGradient"}):
        y = tf.identity(x)
    with tf.Session():
        assert [each.shape for each in tf.test.compute_gradient(x, (0, 3), x + 1, (0, 3))] == [(0, 0)] * 2
        with pytest.raises(ValueError, match=r"Empty gradient has wrong shape: expected \(0, 3\), got \(3, 0\)"):
            tf.test.compute_gradient_error(x, (0, 3), y, (0, 3))
    known = tf.placeholder(tf.float32, [2, 3])
    with tf.get_default_graph().gradient_override_map({"Identity": "TransposedGradient"}):
        y = tf.identity(known)
    with pytest.raises(ValueError, match="Incompatible shapes between op input and calculated input gradient"):
        tf.gradients(y, known)
