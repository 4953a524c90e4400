"""The names of ``tf.test``: test cases that compare arrays and run sessions, and checks of gradients."""

from __future__ import annotations

import os
import re
import socket
import sys
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock as mock

import numpy as np

from tfray.actors.clusters.ray_runtime import connect
from tfray.actors.clusters.server import Server
from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph, get_default_session
from tfray.framework.tensor_shape import ShapeLike, as_shape
from tfray.framework.type_aliases import TensorLike
from tfray.gradients import gradients
from tfray.library.platform.benchmark import Benchmark, benchmark_config, run_benchmarks
from tfray.library.platform.test_case import TestCase, assert_equal_graph_def, get_temp_dir
from tfray.ops.arrays.source_ops import placeholder
from tfray.options import ConfigProto
from tfray.runtime.device import gpu_count
from tfray.session import Session

# fmt: off
__all__ = [
    "Benchmark", "StubOutForTesting", "TestCase", "assert_equal_graph_def", "benchmark_config", "compute_gradient",
    "compute_gradient_error", "create_local_cluster", "get_temp_dir", "gpu_device_name", "is_built_with_cuda",
    "is_built_with_gpu_support", "is_built_with_rocm", "is_gpu_available", "main", "mock", "test_src_dir_path",
]
# fmt: on

# -- programs of tests -----------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> None:
    """Run the test cases of the program, and exit; with the argument ``--benchmarks=REGEX`` the benchmarks instead."""
    arguments = list(sys.argv if argv is None else argv)
    for argument in arguments[1:]:
        wanted = re.fullmatch(r"--benchmarks=(.*)", argument)
        if wanted is not None:
            sys.exit(0 if run_benchmarks(wanted.group(1)) else f"no benchmark matches {wanted.group(1)!r}")
    unittest.main(module="__main__", argv=arguments)


class StubOutForTesting:
    """Replaces attributes for a while: at the end of a ``with`` block, or by `CleanUp`, they are as they were."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *raised: object) -> None:
        self.CleanUp()

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Set the attribute `child_name` of `parent`, which must have it."""
        found = vars(parent).get(
            child_name, getattr(parent, child_name)
        )  # a static method stays one when it is put back
        self._kept.append((parent, child_name, found))
        setattr(parent, child_name, new_child)

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:
        """`Set` the attribute where it is defined: in `obj`, or in a class that `obj` derives from."""
        owners = [obj, *getattr(obj if isinstance(obj, type) else type(obj), "__mro__", ())]
        owner = next((each for each in owners if attr_name in getattr(each, "__dict__", {})), None)
        if owner is None:
            raise AttributeError(f"{obj!r} has no attribute {attr_name!r}")
        self.Set(owner, attr_name, new_attr)

    def UnsetAll(self) -> None:
        """Put back what `Set` replaced."""
        while self._kept:
            parent, name, value = self._kept.pop()
            setattr(parent, name, value)

    SmartUnsetAll = UnsetAll

    def CleanUp(self) -> None:
        """Put back all that was replaced."""
        self.UnsetAll()


def create_local_cluster(
    num_workers: int,
    num_ps: int,
    protocol: str = "grpc",
    worker_config: ConfigProto | None = None,
    ps_config: ConfigProto | None = None,
) -> tuple[list[Server], list[Server]]:
    """Start the servers of a cluster on this machine. They end with this process.

    All are in this process, so a Ray is started for them if it is connected to none and ``RAY_ADDRESS`` names none.

    Args:
        num_workers: Tasks of the job ``worker``.
        num_ps: Tasks of the job ``ps``.
        protocol: Accepted for TensorFlow 1's sake, see `tf.train.Server`.
        worker_config: Options of the workers' devices.
        ps_config: Options of the parameter servers' devices.

    Returns:
        The servers of the workers, and those of the parameter servers.
    """
    jobs: Mapping[str, tuple[int, ConfigProto | None]] = {
        "worker": (num_workers, worker_config),
        "ps": (num_ps, ps_config),
    }
    connect(None, local_cpus=num_workers + num_ps)
    ports = iter(_free_ports(num_workers + num_ps))
    cluster = {job: [f"localhost:{next(ports)}" for _ in range(count)] for job, (count, _) in jobs.items() if count}
    servers = {
        job: [Server(cluster, job, index, protocol=protocol, config=config) for index in range(count)]
        for job, (count, config) in jobs.items()
    }
    return servers["worker"], servers["ps"]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


# -- the surroundings ----------------------------------------------------------------------------------


def test_src_dir_path(relative_path: str) -> str:
    """A path relative to the folder in which the program runs."""
    return os.path.join(os.getcwd(), relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]


def is_built_with_cuda() -> bool:
    """Whether GPUs can be used: CuPy is installed and sees one."""
    return gpu_count() > 0


def is_built_with_gpu_support() -> bool:
    """Whether GPUs can be used: `is_built_with_cuda`."""
    return is_built_with_cuda()


def is_built_with_rocm() -> bool:
    """Whether GPUs of AMD can be used: never."""
    return False


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether there is a GPU."""
    return gpu_count() > 0


def gpu_device_name() -> str:
    """Name of the first GPU, or an empty string."""
    return "/device:GPU:0" if gpu_count() else ""


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
        x: A tensor that can be fed, or a list of them. Each is differentiated by while the others keep their values.
        x_shape: Its shape, or a list of shapes.
        y: The tensor to differentiate.
        y_shape: Its shape.
        x_init_value: Where to differentiate, or a list; random when None.
        delta: Step of the differences.
        init_targets: Operations to run first.
        extra_feed_dict: What else to feed.

    Returns:
        A pair of arrays ``[elements of x, elements of y]``, or a list of pairs. A complex element counts as two, its
        real part and its imaginary part.

    Raises:
        InvalidArgumentError: There is no default session, or no gradient; or `y` has no elements, and its gradient is
            not zero, or of another shape than `x`.
    """
    session = get_default_session()
    if session is None:
        raise InvalidArgumentError("compute_gradient: there is no default session: use `with tf.Session():`")
    if init_targets is not None:
        session.run(init_targets)
    if isinstance(x, (list, tuple)):
        starts = x_init_value or [None] * len(x)
        values = [_start(*each) for each in zip(x, x_shape, starts, strict=True)]
        # Of the others only placeholders are fed: what the graph computes keeps its value.
        needed = {each: value for each, value in zip(x, values, strict=True) if each.op.type == "Placeholder"}
        return [
            _jacobians(session, each, y, y_shape, delta, {**needed, each: value, **(extra_feed_dict or {})})
            for each, value in zip(x, values, strict=True)
        ]
    feeds = {x: _start(x, x_shape, x_init_value), **(extra_feed_dict or {})}
    return _jacobians(session, x, y, y_shape, delta, feeds)


def _start(x: Tensor, shape: ShapeLike, value: TensorLike) -> Any:
    """Where to differentiate: the value, or a random one."""
    if value is not None:
        return np.asarray(value)
    start = np.asarray(np.random.random_sample(as_shape(shape).as_list()), x.dtype.numpy)
    if x.dtype.is_complex:
        start.imag = np.random.random_sample(start.shape)
    return start


def _reals(array: Any) -> Any:
    """The elements of an array in one row; those of a complex one as two reals each. Of a whole array it is a view."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _jacobians(session: Session, x: Tensor, y: Tensor, y_shape: Any, delta: float, feeds: dict[Any, Any]) -> Any:
    with get_default_graph().name_scope("compute_gradient"):
        d_y = placeholder(y.dtype, y_shape)
        (d_x,) = gradients(y, [x], d_y)
    if d_x is None:
        raise InvalidArgumentError(f"compute_gradient: {y!r} does not depend on {x!r}")
    start = np.array(feeds[x], x.dtype.numpy)
    direction = np.zeros(tuple(y_shape), y.dtype.numpy)
    rows, columns = _reals(start), _reals(direction)
    exact = np.zeros((rows.size, columns.size), rows.dtype)
    for column in range(columns.size):
        columns[column] = 1
        exact[:, column] = _reals(_dense(session.run(d_x, {**feeds, d_y: direction}), start))
        columns[column] = 0
    if not columns.size:
        empty = _dense(session.run(d_x, {**feeds, d_y: direction}), start)
        if empty.shape != start.shape:
            raise InvalidArgumentError(
                f"compute_gradient: Empty gradient has wrong shape: expected {start.shape}, got {empty.shape}"
            )
        if empty.any():
            raise InvalidArgumentError(f"compute_gradient: {y!r} has no elements, but its gradient is not zero")
    numeric = np.zeros((rows.size, columns.size), rows.dtype)
    for row in range(rows.size):
        sides = []
        for step in (delta, -delta):
            moved = start.copy()
            _reals(moved)[row] += step
            sides.append(np.asarray(session.run(y, {**feeds, x: moved})))
        numeric[row] = _reals((sides[0] - sides[1]) / (2 * delta))
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


def compute_gradient_of(f: Callable[..., Any], x: Sequence[Any], delta: float | None = None) -> Any:
    """The Jacobians of a function, by `tf.gradients` and by differences, in the default session.

    Args:
        f: Takes tensors and gives one.
        x: Its arguments: arrays, or tensors of known shapes.
        delta: Step of the differences; 1/1024 when None.

    Returns:
        Two tuples: by gradients, and by differences, an array ``[elements of x, elements of f]`` for each argument. A
        complex element counts as two.

    Raises:
        InvalidArgumentError: There is no default session, or no gradient.
        ValueError: `x` is no list or tuple.
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(f"x is to be a list or tuple of arguments, not {x!r}")
    session = get_default_session()
    if session is None:
        raise InvalidArgumentError("compute_gradient: there is no default session: use `with tf.Session():`")
    tensors = [convert_to_tensor(each) for each in x]
    inputs = [placeholder(each.dtype, each.shape) for each in tensors]
    feeds = dict(zip(inputs, session.run(tensors), strict=True))
    y = f(*inputs)
    y_shape = session.run(y, feeds).shape
    pairs = [_jacobians(session, each, y, y_shape, 1 / 1024 if delta is None else delta, feeds) for each in inputs]
    exact, numeric = zip(*pairs, strict=True)
    return exact, numeric


def max_error(grad1: Sequence[Any], grad2: Sequence[Any]) -> float:
    """The greatest difference between two lists of Jacobians, such as `compute_gradient_of` gives."""
    return max((float(np.abs(a - b).max(initial=0.0)) for a, b in zip(grad1, grad2, strict=True)), default=0.0)
