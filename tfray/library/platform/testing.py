"""The names of ``tf.test``: test cases that compare arrays and run sessions, and checks of gradients."""

from __future__ import annotations

import atexit
import os
import random
import re
import shutil
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock as mock

import numpy as np

from tfray.config import ConfigProto
from tfray.errors import InvalidArgumentError, OpError
from tfray.framework.graph import Graph, Tensor, get_default_graph, get_default_session, reset_default_graph
from tfray.framework.graph_def import GraphDef
from tfray.framework.op_def import Array
from tfray.framework.random_seed import set_random_seed
from tfray.framework.tensor_shape import ShapeLike, TensorShape, as_shape
from tfray.framework.type_aliases import TensorLike
from tfray.gradients import gradients
from tfray.ops.arrays.source_ops import placeholder
from tfray.runtime.device import gpu_count
from tfray.session import Session

# fmt: off
__all__ = [
    "TestCase", "assert_equal_graph_def", "compute_gradient", "compute_gradient_error", "get_temp_dir",
    "gpu_device_name", "is_built_with_cuda", "is_gpu_available", "main", "mock", "test_src_dir_path",
]
# fmt: on

# -- test cases ----------------------------------------------------------------------------------------


class TestCase(unittest.TestCase):
    """A test case with an empty default graph, fixed seeds, sessions, and comparisons of arrays."""

    def setUp(self) -> None:
        """Start from an empty graph and fixed seeds."""
        super().setUp()
        random.seed(0)
        np.random.seed(0)
        if get_default_session() is None:
            reset_default_graph()
        set_random_seed(1234)
        self._folder: str | None = None

    def get_temp_dir(self) -> str:
        """A folder of this test, removed when it is over."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    @contextmanager
    def session(
        self,
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """A session in a ``with`` block, in which it and its graph are the default ones.

        Args:
            graph: The graph; the default one when None.
            config: Options of the session.
            use_gpu: Accepted: operations run on a GPU where they are placed on one.
            force_gpu: Whether to place operations on the first GPU.
        """
        with Session(graph=graph, config=config or ConfigProto(allow_soft_placement=not force_gpu)) as session:
            if force_gpu:
                with session.graph.device("/device:GPU:0"):
                    yield session
            else:
                yield session

    cached_session = session

    @property
    def test_session(self) -> Callable[..., Any]:
        """`session`, by another name. It is a property so that test runners do not take it for a test."""
        return self.session

    def evaluate(self, tensors: Any) -> Any:
        """Values of tensors, nested at will, in the default session or one of its own."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.session() as own:
            return own.run(tensors)

    def _array(self, value: TensorLike) -> np.ndarray[Any, Any]:
        if isinstance(value, Tensor) or hasattr(value, "_fetch_parts") or hasattr(value, "handle"):
            value = self.evaluate(value)
        array = np.asarray(value)
        return array.astype(np.float64) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Check that arrays, tensors, or lists and dictionaries of them are nearly equal."""
        if isinstance(a, dict):
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"{key}: {msg or ''}")
        elif isinstance(a, (list, tuple)) and len({np.shape(self._array(item)) for item in a}) > 1:
            self.assertEqual(len(a), len(b), msg)
            for index, (left, right) in enumerate(zip(a, b, strict=True)):
                self.assertAllClose(left, right, rtol, atol, f"{index}: {msg or ''}")
        else:
            np.testing.assert_allclose(self._array(a), self._array(b), rtol, atol, err_msg=msg or "")

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

    def assertAllEqual(self, a: TensorLike, b: TensorLike, msg: str | None = None) -> None:
        """Check that arrays or tensors have the same shape and elements; NaNs are equal."""
        left, right = self._array(a), self._array(b)
        self.assertEqual(left.shape, right.shape, msg)
        if left.dtype.kind in "OSU" or right.dtype.kind in "OSU":
            left, right = _as_text(left), _as_text(right)
        np.testing.assert_array_equal(left, right, err_msg=msg or "")

    def assertNotAllEqual(self, a: TensorLike, b: TensorLike, msg: str | None = None) -> None:
        """Check that arrays differ somewhere."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(msg or f"{a!r} and {b!r} are equal")

    def assertAllGreater(self, a: TensorLike, comparison_target: TensorLike) -> None:
        """Check that every element is greater than a bound."""
        self.assertTrue((self._array(a) > comparison_target).all(), f"{a!r} is not greater than {comparison_target!r}")

    def assertAllGreaterEqual(self, a: TensorLike, comparison_target: TensorLike) -> None:
        """Check that every element is at least a bound."""
        self.assertTrue((self._array(a) >= comparison_target).all(), f"{a!r} is below {comparison_target!r}")

    def assertAllLess(self, a: TensorLike, comparison_target: TensorLike) -> None:
        """Check that every element is less than a bound."""
        self.assertTrue((self._array(a) < comparison_target).all(), f"{a!r} is not less than {comparison_target!r}")

    def assertAllLessEqual(self, a: TensorLike, comparison_target: TensorLike) -> None:
        """Check that every element is at most a bound."""
        self.assertTrue((self._array(a) <= comparison_target).all(), f"{a!r} is above {comparison_target!r}")

    def assertAllInRange(self, target: TensorLike, lower_bound: float, upper_bound: float) -> None:
        """Check that every element lies between two bounds, which are allowed."""
        self.assertAllGreaterEqual(target, lower_bound)
        self.assertAllLessEqual(target, upper_bound)

    def assertAllInSet(self, target: TensorLike, expected_set: Iterable[object]) -> None:
        """Check that every element is one of these."""
        strangers = set(self._array(target).reshape(-1).tolist()) - set(expected_set)
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
        distance = float(np.linalg.norm(self._array(ndarray1) - self._array(ndarray2)))
        self.assertLessEqual(distance, err, msg)

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Check that arrays or tensors have the same static shape."""
        shapes = [TensorShape(value.shape).as_list() for value in (input_a, input_b)]
        self.assertEqual(shapes[0], shapes[1], msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Check the dtype of an array or tensor."""
        self.assertTrue(target.dtype == expected_dtype, f"{target.dtype} is not {expected_dtype}")

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Check that two names mean the same device."""
        from tfray.framework.device_spec import canonical_name

        self.assertEqual(canonical_name(device1 or ""), canonical_name(device2 or ""), msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """Check how a text starts."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """Context manager: check that a block raises an `tf.errors.OpError` of which the message matches."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    @contextmanager
    def assertRaisesWithPredicateMatch(
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


def main(argv: Sequence[str] | None = None) -> None:
    """Run the test cases of the program, and exit."""
    unittest.main(module="__main__", argv=list(sys.argv if argv is None else argv))


# -- the surroundings ----------------------------------------------------------------------------------


@cache
def get_temp_dir() -> str:
    """A folder of this process, removed at its end."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def test_src_dir_path(relative_path: str) -> str:
    """A path relative to the folder in which the program runs."""
    return os.path.join(os.getcwd(), relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]


def is_built_with_cuda() -> bool:
    """Whether GPUs can be used: CuPy is installed and sees one."""
    return gpu_count() > 0


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether there is a GPU."""
    return gpu_count() > 0


def gpu_device_name() -> str:
    """Name of the first GPU, or an empty string."""
    return "/device:GPU:0" if gpu_count() else ""


def assert_equal_graph_def(actual: GraphDef, expected: GraphDef, checkpoint_v2: bool = False) -> None:
    """Check that two graphs have the same operations, in any order.

    Raises:
        AssertionError: They do not; the message names one that differs.
    """
    found, wanted = ({node.name: node for node in graph_def.node} for graph_def in (actual, expected))
    if found.keys() != wanted.keys():
        raise AssertionError(f"operations of one graph only: {sorted(found.keys() ^ wanted.keys())}")
    for name, node in found.items():
        if (node.op, node.input, node.device) != (wanted[name].op, wanted[name].input, wanted[name].device):
            raise AssertionError(f"operation {name!r} is {node}, expected {wanted[name]}")


# -- gradients -----------------------------------------------------------------------------------------


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """The Jacobian of `y` with respect to `x`, by `tf.gradients` and by differences, in the default session.

    Args:
        x: A tensor that can be fed, or a list of them.
        x_shape: Its shape, or a list of shapes.
        y: The tensor to differentiate.
        y_shape: Its shape.
        x_init_value: Where to differentiate, or a list; random when None.
        delta: Step of the differences.
        init_targets: Operations to run first.
        extra_feed_dict: What else to feed.

    Returns:
        A pair of arrays ``[elements of x, elements of y]``, or a list of pairs.

    Raises:
        InvalidArgumentError: There is no default session, or no gradient.
    """
    session = get_default_session()
    if session is None:
        raise InvalidArgumentError("compute_gradient: there is no default session: use `with tf.Session():`")
    if init_targets is not None:
        session.run(init_targets)
    if isinstance(x, (list, tuple)):
        starts = x_init_value or [None] * len(x)
        values = [_start(shape, start) for shape, start in zip(x_shape, starts, strict=True)]
        feeds = {**dict(zip(x, values, strict=True)), **(extra_feed_dict or {})}
        return [_jacobians(session, each, y, y_shape, delta, feeds) for each in x]
    feeds = {x: _start(x_shape, x_init_value), **(extra_feed_dict or {})}
    return _jacobians(session, x, y, y_shape, delta, feeds)


def _start(shape: ShapeLike, value: TensorLike) -> Any:
    if value is not None:
        return np.asarray(value)
    return np.random.random_sample(as_shape(shape).as_list())


def _jacobians(session: Session, x: Tensor, y: Tensor, y_shape: Any, delta: float, feeds: dict[Any, Any]) -> Any:
    with get_default_graph().name_scope("compute_gradient"):
        d_y = placeholder(y.dtype, y_shape)
        (d_x,) = gradients(y, [x], d_y)
    if d_x is None:
        raise InvalidArgumentError(f"compute_gradient: {y!r} does not depend on {x!r}")
    start = np.asarray(feeds[x], x.dtype.numpy)
    size = int(np.prod(tuple(y_shape), dtype=np.int64))
    exact = np.empty((start.size, size))
    for column in range(size):
        direction = np.zeros(size, y.dtype.numpy)
        direction[column] = 1
        exact[:, column] = np.ravel(_dense(session.run(d_x, {**feeds, d_y: direction.reshape(tuple(y_shape))}), start))
    numeric = np.empty((start.size, size))
    for row in range(start.size):
        sides = []
        for step in (delta, -delta):
            moved = start.copy()
            moved.reshape(-1)[row] += step
            sides.append(np.ravel(session.run(y, {**feeds, x: moved})).astype(np.float64))
        numeric[row] = (sides[0] - sides[1]) / (2 * delta)
    return exact, numeric


def _dense(value: Any, like: Any) -> Any:
    """A gradient as an array, that of `tf.gather` too."""
    if not hasattr(value, "indices"):
        return value
    dense = np.zeros(like.shape, like.dtype)
    np.add.at(dense, value.indices, value.values)
    return dense


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> float:
    """The greatest difference between gradients and differences. See `compute_gradient`."""
    found = compute_gradient(
        x,
        x_shape,
        y,
        y_shape,
        x_init_value=x_init_value,
        delta=delta,
        init_targets=init_targets,
        extra_feed_dict=extra_feed_dict,
    )
    pairs = found if isinstance(found, list) else [found]
    return max(float(np.abs(exact - numeric).max(initial=0.0)) for exact, numeric in pairs)
