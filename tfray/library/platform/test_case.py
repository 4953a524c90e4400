"""`tf.test.TestCase`: a test case that compares arrays, runs sessions and watches threads."""

from __future__ import annotations

import atexit
import os
import random
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import numpy as np
from absl.testing import absltest

from tfray.errors import OpError
from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.framework.default_stack import default_graphs
from tfray.framework.device_spec import canonical_name
from tfray.framework.graph import Graph, Tensor, get_default_session, reset_default_graph
from tfray.framework.op_def import Array
from tfray.framework.random_seed import set_random_seed
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.once import once
from tfray.options import ConfigProto
from tfray.session import Session

_SEED: Final = 87654321
"""TensorFlow's seed of the default graph of each test."""

_PATIENCE_S: Final = 60.0
"""Seconds that a test waits for a thread which it has forgotten to join."""


@once
def get_temp_dir() -> str:
    """A folder of this process, removed at its end."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class TestCase(absltest.TestCase):
    """absl's test case, with an empty default graph, fixed seeds, sessions, and comparisons of arrays."""

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self.__folder: str | None = None
        self.__kept: tuple[Session, Graph | None, ConfigProto | None, bool] | None = None
        self.__threads: list[_CheckedThread] = []

    def setUp(self) -> None:
        """Start from an empty graph and fixed seeds."""
        super().setUp()
        self.__close_kept()
        random.seed(_SEED)
        np.random.seed(_SEED)
        if get_default_session() is None:
            default_graphs.clear()  # a test that failed may have left one
            reset_default_graph()
        set_random_seed(_SEED)

    def tearDown(self) -> None:
        """Close the cached session, and fail if a thread of `checkedThread` still runs."""
        for thread in self.__threads:
            thread.check_termination()
        self.__close_kept()
        super().tearDown()

    def __close_kept(self) -> None:
        if self.__kept is not None:
            self.__kept[0].close()
            self.__kept = None

    def get_temp_dir(self) -> str:
        """A folder of this test, removed at the end of the process: the test may leave that its working directory."""
        if self.__folder is None:
            self.__folder = tempfile.mkdtemp(dir=get_temp_dir())
        return self.__folder

    # -- sessions --------------------------------------------------------------------------------

    @contextmanager
    def session(
        self,
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """A new session in a ``with`` block, in which it and its graph are the default ones.

        Args:
            graph: The graph; the default one when None.
            config: Options of the session.
            use_gpu: Whether operations may be placed on a GPU: otherwise they are made for the first CPU.
            force_gpu: Whether to place operations on the first GPU.
        """
        with (
            Session(graph=graph, config=config or _config_for(force_gpu)) as session,
            _device_for(session, use_gpu, force_gpu),
        ):
            yield session

    @contextmanager
    def cached_session(
        self,
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """The test's own session in a ``with`` block: the same, with its variables, until the test ends.

        The arguments are those of `session`. They must not change from one call to the next.
        """
        session = self.__kept_session(graph, config, force_gpu, may_differ=False)
        with session.graph.as_default(), session.as_default(), _device_for(session, use_gpu, force_gpu):
            yield session

    def __kept_session(
        self, graph: Graph | None, config: ConfigProto | None, force_gpu: bool, may_differ: bool
    ) -> Session:
        if self.__kept is None:
            session = Session(graph=graph, config=config or _config_for(force_gpu))
            self.__kept = session, graph, config, force_gpu
        elif not may_differ and self.__kept[1:] != (graph, config, force_gpu):
            raise ValueError(
                "cached_session was called with another graph, config or force_gpu before: use `session` for a new one"
            )
        return self.__kept[0]

    @property
    def test_session(self) -> Callable[..., Any]:
        """`cached_session`, or `session` where a graph is given. A property, so that no test runner calls it."""
        return self.__test_session

    @contextmanager
    def __test_session(
        self,
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        if graph is not None:
            with self.session(graph, config, use_gpu, force_gpu) as session:
                yield session
            return
        session = self.__kept_session(None, config, force_gpu, may_differ=True)
        with session.graph.as_default(), session.as_default(), _device_for(session, use_gpu, force_gpu):
            yield session

    def evaluate(self, tensors: Any) -> Any:
        """Values of tensors, nested at will, in the default session, or in that of `cached_session`."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.__test_session() as own:
            return own.run(tensors)

    # -- threads and streams ---------------------------------------------------------------------

    def checkedThread(
        self,
        target: Callable[..., Any],
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
    ) -> _CheckedThread:
        """A thread whose ``join()`` fails the test if the function raised. Start it with ``start()``.

        Args:
            target: What it calls.
            args: Arguments of the call.
            kwargs: Further ones, by name.
        """
        thread = _CheckedThread(self, target, tuple(args or ()), dict(kwargs or {}))
        self.__threads.append(thread)
        return thread

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[_Captured]:
        """Context manager: what is written to the file descriptor of `stream` within it, by any code.

        It gives an object whose ``contents()`` is the text, once the block is left.
        """
        stream.flush()
        descriptor = stream.fileno()
        kept = os.dup(descriptor)
        with tempfile.NamedTemporaryFile(dir=self.get_temp_dir(), delete=False) as file:
            captured = _Captured(file.name)
            os.dup2(file.fileno(), descriptor)
            try:
                yield captured
            finally:
                stream.flush()
                os.dup2(kept, descriptor)
                os.close(kept)

    # -- comparisons of arrays -------------------------------------------------------------------

    def __array(self, value: TensorLike) -> np.ndarray[Any, Any]:
        if isinstance(value, Tensor) or hasattr(value, "_fetch_parts") or hasattr(value, "handle"):
            value = self.evaluate(value)
        array = np.asarray(value)
        return array.astype(np.float64) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array

    def assertAllClose(self, a: object, b: object, rtol: Any = 1e-6, atol: Any = 1e-6, msg: str | None = None) -> None:
        """Check that arrays, tensors, or lists and dictionaries of them have equal shapes, and are nearly equal.

        The tolerances broadcast with the arrays.
        """

        def compare(left: Array, right: Array, where: str) -> None:
            if not np.allclose(left, right, rtol, atol, equal_nan=True):
                wrong = ~np.isclose(left, right, rtol, atol, equal_nan=True)
                parts = _differing("not close", left, right, wrong)
                with np.errstate(invalid="ignore"):
                    parts.append(f"not close dif = {np.abs(left - right)[wrong]}")
                self.fail(_unequal(msg, where, f"Not equal to tolerance rtol={rtol}, atol={atol}", *parts))

        self.__compare(a, b, compare, msg, "")

    def assertAllEqual(self, a: object, b: object, msg: str | None = None) -> None:
        """Check that arrays, tensors, or lists and dictionaries of them have the same shapes and elements.

        NaNs are equal.
        """

        def compare(left: Array, right: Array, where: str) -> None:
            if left.dtype.kind in "OSU" or right.dtype.kind in "OSU":
                left, right = _as_text(left), _as_text(right)
            wrong = left != right
            if wrong.any() and left.dtype.kind in "fc" and right.dtype.kind in "fc":
                wrong &= ~(np.isnan(left) & np.isnan(right))
            if wrong.any():
                self.fail(_unequal(msg, where, *_differing("not equal", left, right, wrong)))

        self.__compare(a, b, compare, msg, "")

    def __compare(
        self, a: Any, b: Any, compare: Callable[[Array, Array, str], None], msg: str | None, where: str
    ) -> None:
        """Compare the arrays of two structures, which must be nested alike."""
        if all(isinstance(value, Mapping) or hasattr(value, "_asdict") for value in (a, b)):
            a, b = (value._asdict() if hasattr(value, "_asdict") else value for value in (a, b))
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
                raise ValueError(_unequal(msg, where, f"Can't compare dict to non-dict, {a!r} vs {b!r}"))
            self.assertCountEqual(a.keys(), b.keys(), _unequal(msg, where, "mismatched keys"))
            for key in a:
                self.__compare(a[key], b[key], compare, msg, f"{where}[{key}]")
            return
        arrays = _arrays_of(self.__array, a, b)
        if arrays is None:
            if len(a) != len(b):
                raise ValueError(_unequal(msg, where, f"Mismatched length: {len(a)} items, {len(b)} items"))
            for index, (left, right) in enumerate(zip(a, b, strict=True)):
                self.__compare(left, right, compare, msg, f"{where}[{index}]")
            return
        self.assertEqual(arrays[0].shape, arrays[1].shape, _unequal(msg, where, "Shape mismatch"))
        compare(*arrays, where)

    def assertAllCloseAccordingToType(
        self,
        a: TensorLike,
        b: TensorLike,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """`assertAllClose` with tolerances by the shorter of the dtypes."""
        limits = {
            "bfloat16": (bfloat16_rtol, bfloat16_atol),
            "float16": (half_rtol, half_atol),
            "float32": (float_rtol, float_atol),
            "complex64": (float_rtol, float_atol),
        }
        for value in (a, b):
            dtype = getattr(value, "dtype", None)
            found = limits.get(getattr(dtype, "name", ""), (rtol, atol))
            rtol, atol = max(rtol, found[0]), max(atol, found[1])
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(
        self, a: TensorLike, b: TensorLike, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Check that arrays differ somewhere."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        self.fail(msg or f"{a!r} and {b!r} are nearly equal")

    def assertNotAllEqual(self, a: TensorLike, b: TensorLike, msg: str | None = None) -> None:
        """Check that arrays differ somewhere."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(msg or f"{a!r} and {b!r} are equal")

    def assertAllGreater(self, a: TensorLike, comparison_target: TensorLike) -> None:
        """Check that every element is greater than a bound."""
        self.assertTrue((self.__array(a) > comparison_target).all(), f"{a!r} is not greater than {comparison_target!r}")

    def assertAllGreaterEqual(self, a: TensorLike, comparison_target: TensorLike) -> None:
        """Check that every element is at least a bound."""
        self.assertTrue((self.__array(a) >= comparison_target).all(), f"{a!r} is below {comparison_target!r}")

    def assertAllLess(self, a: TensorLike, comparison_target: TensorLike) -> None:
        """Check that every element is less than a bound."""
        self.assertTrue((self.__array(a) < comparison_target).all(), f"{a!r} is not less than {comparison_target!r}")

    def assertAllLessEqual(self, a: TensorLike, comparison_target: TensorLike) -> None:
        """Check that every element is at most a bound."""
        self.assertTrue((self.__array(a) <= comparison_target).all(), f"{a!r} is above {comparison_target!r}")

    def assertAllInRange(
        self,
        target: TensorLike,
        lower_bound: float,
        upper_bound: float,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Check that every element is a number between two bounds, which are allowed unless they are open."""
        array = self.__array(target)
        self.assertIn(array.dtype.kind, "iuf", f"the elements are {array.dtype}, expected numbers")
        above = array > lower_bound if open_lower_bound else array >= lower_bound
        below = array < upper_bound if open_upper_bound else array <= upper_bound
        wrong = array[~(above & below)]
        self.assertFalse(wrong.size, f"{wrong[:10]} are not between {lower_bound} and {upper_bound}")

    def assertAllInSet(self, target: TensorLike, expected_set: Iterable[object]) -> None:
        """Check that every element is one of these."""
        items = np.ravel(self.__array(target)).tolist()
        wanted = {item.encode() if isinstance(item, str) else item for item in expected_set}
        strangers = {item.encode() if isinstance(item, str) else item for item in items} - wanted
        self.assertFalse(strangers, f"{strangers} are not in {expected_set!r}")

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Check that two numbers differ by at most `err`."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1!r} and {f2!r} differ by more than {err}: {msg or ''}")

    def assertArrayNear(
        self, farray1: Sequence[float], farray2: Sequence[float], err: float, msg: str | None = None
    ) -> None:
        """`assertNear` of each pair of elements of two sequences."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(self, ndarray1: TensorLike, ndarray2: TensorLike, err: float, msg: str | None = None) -> None:
        """Check that the norm of the difference of two arrays is at most `err`."""
        distance = float(np.linalg.norm(self.__array(ndarray1) - self.__array(ndarray2)))
        self.assertLessEqual(distance, err, msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:
        """Check that arrays or tensors have the same static shape."""
        shapes = [TensorShape(value.shape).as_list() for value in (np_array, tf_tensor)]
        self.assertEqual(shapes[0], shapes[1], msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: object) -> None:
        """Check the dtype of an array or tensor."""
        self.assertTrue(target.dtype == expected_dtype, f"{target.dtype} is not {expected_dtype}")

    def assertDeviceEqual(self, device1: object, device2: object, msg: str | None = None) -> None:
        """Check that two names mean the same device."""
        self.assertEqual(canonical_name(device1 or ""), canonical_name(device2 or ""), msg)

    # -- comparisons of other things -------------------------------------------------------------

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None) -> None:
        """Check that two messages, a `tf.Summary` for example, are equal.

        Args:
            expected_message_maybe_ascii: A message, or the text form of a protobuf.
            message: The message to check.
            msg: Begins what a failure says.
        """
        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)):
            from google.protobuf import text_format

            text = expected.decode() if isinstance(expected, bytes) else expected
            expected = text_format.Parse(text, type(message)())
        if isinstance(expected, GraphDef):
            assert_equal_graph_def(message, expected)
            return
        self.assertIs(type(expected), type(message), msg)
        self.assertEqual(expected, message, msg)

    def assertProtoEqualsVersion(
        self,
        expected: object,
        actual: object,
        producer: int | None = None,
        min_consumer: int | None = None,
        msg: str | None = None,
    ) -> None:
        """`assertProtoEquals` of graphs. `producer` and `min_consumer` are accepted: graphs here have no versions."""
        self.assertProtoEquals(expected, actual, msg)

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """Context manager: check that a block raises an `tf.errors.OpError` of which the message matches."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    @contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]  # as in TensorFlow
        self, exception_type: Any, expected_err_re_or_predicate: str | Callable[[BaseException], bool]
    ) -> Iterator[None]:
        """Context manager: check that a block raises an error that matches an expression, or satisfies a function."""
        try:
            yield
        except exception_type as error:
            if callable(expected_err_re_or_predicate):
                matches = expected_err_re_or_predicate(error)
            else:
                matches = re.search(expected_err_re_or_predicate, str(error)) is not None
            self.assertTrue(matches, f"{error!r} does not match {expected_err_re_or_predicate!r}")
        else:
            self.fail(f"{exception_type} was not raised")


def _as_text(array: Array) -> np.ndarray[Any, Any]:
    items = [item.encode() if isinstance(item, str) else item for item in array.reshape(-1).tolist()]
    result = np.empty(array.shape, object)
    result.reshape(-1)[:] = items
    return result


class _CheckedThread:
    """A thread whose end is checked; see `TestCase.checkedThread`."""

    def __init__(
        self, case: TestCase, target: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        self._case = case
        self._call: Callable[[], Any] = lambda: target(*args, **kwargs)
        self._error: BaseException | None = None
        self._is_checked = True
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001 -- `join` tells of it
            self._error = error

    def start(self) -> None:
        """Start the thread."""
        self._is_checked = False
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread ends. Fails the test if its function raised."""
        self._thread.join()
        self._is_checked = True
        if self._error is not None:
            self._case.fail(f"error in a checkedThread: {self._error!r}")

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fail the test if the thread was started, and neither joined nor ended."""
        if not self._is_checked and self._thread.is_alive():
            self._thread.join(_PATIENCE_S)
            self._case.fail("a checkedThread was not joined")


class _Captured:
    """What `TestCase.captureWritesToStream` has seen."""

    def __init__(self, path: str) -> None:
        self._path = path

    def contents(self) -> str:
        """The text."""
        return Path(self._path).read_text()


def _config_for(force_gpu: bool) -> ConfigProto:
    return ConfigProto(allow_soft_placement=not force_gpu)


def _device_for(session: Session, use_gpu: bool, force_gpu: bool) -> Any:
    if use_gpu and not force_gpu:
        return nullcontext()
    return session.graph.device("/device:GPU:0" if force_gpu else "/device:CPU:0")


def _arrays_of(array: Callable[[Any], Array], a: object, b: object) -> tuple[Array, Array] | None:
    """Two values as arrays. None where they are sequences that are no arrays, and have to be compared by item."""
    if any(_holds_mapping(value) for value in (a, b)):
        return None
    try:
        return array(a), array(b)
    except (ValueError, TypeError):
        if all(isinstance(value, (list, tuple)) for value in (a, b)):
            return None
        raise


def _differing(how: str, left: Array, right: Array, wrong: Array) -> list[str]:
    """Where arrays differ, and their elements there."""
    if not np.ndim(wrong):
        return [f"{how} lhs = {left!r}", f"{how} rhs = {right!r}"]
    left, right = np.broadcast_arrays(left, right)
    return [f"{how} where = {np.where(wrong)}", f"{how} lhs = {left[wrong]}", f"{how} rhs = {right[wrong]}"]


def _unequal(msg: str | None, where: str, *parts: str) -> str:
    """What a test says of values that differ: the path to them in what was compared, and how."""
    place = [f"Mismatched value: a{where} is different from b{where}."] if where else []
    return "\n".join([*([str(msg)] if msg else []), *place, *parts])


def _holds_mapping(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(
            isinstance(item, (Mapping, Tensor)) or hasattr(item, "handle") or _holds_mapping(item) for item in value
        )
    return False


def assert_equal_graph_def(
    actual: GraphDef, expected: GraphDef, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """Check that two graphs have the same operations, attributes included, in any order.

    Args:
        actual: A graph.
        expected: The one that it should be.
        checkpoint_v2: Accepted: a Saver's operations have no random attributes here.
        hash_table_shared_name: Whether names that tables share may differ.

    Raises:
        AssertionError: They are not the same; the message names an operation that differs.
        TypeError: One of them is no `tf.GraphDef`.
    """
    found, wanted = (_compared_nodes(graph_def, hash_table_shared_name) for graph_def in (actual, expected))
    for found_in, others, how in ((found, wanted, "Found unexpected"), (wanted, found, "Missing expected")):
        if extra := [name for name in found_in if name not in others]:
            further = f" and {len(extra) - 1} others: {', '.join(extra[:-1])}" if len(extra) > 1 else ""
            raise AssertionError(f"{how} node '{{{{node {extra[-1]}}}}}'{further}: operations of one graph only")
    for name, node in found.items():
        if node != wanted[name]:
            raise AssertionError(f"operation {name!r} is {node}, expected {wanted[name]}")


def _compared_nodes(graph_def: GraphDef, any_table_name: bool) -> dict[str, NodeDef]:
    """The operations of a graph by name, without what does not matter: the order of control inputs."""
    if not isinstance(graph_def, GraphDef):
        raise TypeError(f"expected a tf.GraphDef, got a {type(graph_def).__name__}: {graph_def!r}")
    copy = GraphDef()
    copy.CopyFrom(graph_def)
    for node in copy.node:
        inputs = sorted(node.input, key=lambda name: name if name.startswith("^") else "")
        node.ClearField("input")
        node.input.extend(inputs)
        if any_table_name and node.op == "HashTableV2":
            node.attr.pop("shared_name")
    return {node.name: node for node in copy.node}
