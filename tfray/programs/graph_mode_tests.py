"""`tensorflow.python.framework.test_util`: a test of TensorFlow's own runs once, in a graph."""

from __future__ import annotations

import functools
import itertools
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.formats.meta_graph_proto import MetaGraphDef
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.library.platform.testing import (
    TestCase,
    assert_equal_graph_def,
    create_local_cluster,
    gpu_device_name,
    is_built_with_cuda,
    is_gpu_available,
)
from tfray.ops.arrays.shape_ops import transpose

# fmt: off
__all__ = [
    "CudaSupportsHalfMatMulAndConv", "IsGoogleCudaEnabled", "IsMklEnabled", "NCHWToNHWC", "NHWCToNCHW",
    "TensorFlowTestCase", "also_run_as_tf_function", "assert_equal_graph_def", "assert_meta_graph_protos_equal",
    "assert_no_garbage_created", "assert_no_new_pyobjects_executing_eagerly", "assert_no_new_tensors",
    "assert_ops_in_graph", "create_local_cluster", "deprecated_graph_mode_only", "device", "disable_all_xla",
    "disable_control_flow_v2", "disable_xla", "enable_c_shapes", "enable_control_flow_v2",
    "enable_output_all_intermediates", "fft_kernel_label_map", "for_all_test_methods", "force_cpu", "force_gpu",
    "generate_combinations_with_testcase_name", "get_node_def_from_graph", "gpu_device_name", "is_gpu_available",
    "no_xla_auto_jit", "run_all_in_deprecated_graph_mode_only", "run_all_in_graph_and_eager_modes", "run_cuda_only",
    "run_deprecated_v1", "run_gpu_only", "run_in_graph_and_eager_modes", "run_v1_only", "run_v2_only", "skip_if",
    "use_gpu", "with_c_shapes", "with_control_flow_v2", "xla_allow_fallback",
]
# fmt: on

TensorFlowTestCase = TestCase


def _in_graph(method: Any) -> Any:
    if isinstance(method, type):
        return method

    @functools.wraps(method)
    def test(self: Any, *args: Any, **kwargs: Any) -> Any:
        with Graph().as_default():
            return method(self, *args, **kwargs)

    return test


def run_deprecated_v1(func: Any = None) -> Any:
    """Run a test in a graph of its own."""
    return run_deprecated_v1 if func is None else _in_graph(func)


def run_in_graph_and_eager_modes(
    func: Any = None,
    config: Any = None,
    use_gpu: bool = True,
    reset_test: bool = True,
    assert_no_eager_garbage: bool = False,
) -> Any:
    """Run a test in its own session: there is no other mode than that of graphs.

    Args:
        func: The test. A decorator is returned when it is None.
        config: Options of the session.
        use_gpu: Whether its operations may be placed on a GPU.
        reset_test: Accepted for TensorFlow's sake: the test runs once.
        assert_no_eager_garbage: Likewise.

    Returns:
        The test, or a decorator of tests.

    Raises:
        ValueError: `func` is a class: see `run_all_in_graph_and_eager_modes`.
    """
    if func is None:
        return functools.partial(run_in_graph_and_eager_modes, config=config, use_gpu=use_gpu)
    if isinstance(func, type):
        raise ValueError("run_in_graph_and_eager_modes only supports test methods; for a class there is run_all_in_...")

    @functools.wraps(func)
    def test(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.test_session(use_gpu=use_gpu, config=config):
            return func(self, *args, **kwargs)

    return test


deprecated_graph_mode_only = run_deprecated_v1
also_run_as_tf_function = _in_graph


def _unchanged(cls: Any) -> Any:
    """The class or function itself."""
    return cls


run_all_in_deprecated_graph_mode_only = _unchanged
with_control_flow_v2 = _unchanged
enable_control_flow_v2 = _unchanged
enable_output_all_intermediates = _unchanged
with_c_shapes = _unchanged
enable_c_shapes = _unchanged
no_xla_auto_jit = _unchanged
xla_allow_fallback = _unchanged
assert_no_new_pyobjects_executing_eagerly = _unchanged
assert_no_new_tensors = _unchanged
assert_no_garbage_created = _unchanged


def _skipped(reason: str) -> Callable[[Any], Any]:
    return unittest.skip(reason)


def run_v1_only(reason: str, func: Any = None) -> Any:
    """Run a test, whose `reason` is for other versions."""
    return _unchanged if func is None else func


def run_v2_only(func: Any = None) -> Any:
    """Skip a test of TensorFlow 2."""
    skipped = _skipped("this is TensorFlow 1")
    return skipped if func is None else skipped(func)


def disable_control_flow_v2(unused_msg: str) -> Callable[[Any], Any]:
    """Run a test, as without the decorator."""
    return _unchanged


def disable_xla(description: str) -> Callable[[Any], Any]:
    """Run a test, as without the decorator."""
    return _unchanged


disable_all_xla = disable_xla


def for_all_test_methods(decorator: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[type], type]:
    """A decorator of classes: each method whose name begins with ``test`` is decorated by ``decorator(...)``."""

    def decorated(cls: type) -> type:
        for name, value in list(vars(cls).items()):
            if callable(value) and name.startswith("test") and name != "test_session":
                setattr(cls, name, decorator(*args, **kwargs)(value))
        return cls

    return decorated


def run_all_in_graph_and_eager_modes(cls: type) -> type:
    """Run each test of a class in its own session. Returns the class."""
    return for_all_test_methods(run_in_graph_and_eager_modes)(cls)


def skip_if(condition: Any) -> Callable[[Any], Any]:
    """Let a test do nothing where a condition, or a function without arguments, is true when the test runs."""

    def decorated(test: Any) -> Any:
        @functools.wraps(test)
        def wrapper(*args: Any, **kwargs: Any) -> None:
            if not (condition() if callable(condition) else condition):
                test(*args, **kwargs)

        return wrapper

    return decorated


def run_gpu_only(func: Any = None) -> Any:
    """Skip a test where there is no GPU."""
    decorated = unittest.skipUnless(is_gpu_available(), "there is no GPU")
    return decorated if func is None else decorated(func)


run_cuda_only = run_gpu_only


# -- devices -----------------------------------------------------------------------------------------------


@contextmanager
def device(use_gpu: bool) -> Iterator[None]:
    """Context manager: operations are placed on the first GPU, if it is wanted and there, otherwise on the CPU."""
    with get_default_graph().device("/device:GPU:0" if use_gpu and is_gpu_available() else "/device:CPU:0"):
        yield


@contextmanager
def fft_kernel_label_map() -> Iterator[None]:
    """Context manager in which nothing is other than outside: Fourier transforms have one kernel for each device."""
    yield


def use_gpu() -> Any:
    """Context manager: operations are placed on the first GPU, if there is one."""
    return device(use_gpu=True)


def force_gpu() -> Any:
    """Context manager: operations are placed on the first GPU."""
    return get_default_graph().device("/device:GPU:0")


def force_cpu() -> Any:
    """Context manager: operations are placed on the CPU."""
    return device(use_gpu=False)


def IsGoogleCudaEnabled() -> bool:
    """Whether kernels for GPUs are installed."""
    return is_built_with_cuda()


def CudaSupportsHalfMatMulAndConv() -> bool:
    """Whether there is a GPU: each that is used multiplies in float16."""
    return is_gpu_available()


def IsMklEnabled() -> bool:
    """False."""
    return False


# -- what tests look at ------------------------------------------------------------------------------------


def assert_ops_in_graph(expected_ops: Mapping[str, str], graph: Graph) -> dict[str, Operation]:
    """Check that a graph has operations of these names and types; returns them by name.

    Raises:
        ValueError: One is missing, or has another type.
    """
    found = {op.name: op for op in graph.get_operations() if op.name in expected_ops}
    for name, op_type in expected_ops.items():
        if name not in found:
            raise ValueError(f"the graph has no operation {name!r}, only {sorted(found)} of those that are expected")
        if found[name].type != op_type:
            raise ValueError(f"operation {name!r} has type {found[name].type}, expected {op_type}")
    return found


def NHWCToNCHW(input_tensor: Any) -> Any:
    """A tensor, or a shape, of 4 or 5 dimensions with the channels last: the same with the channels second."""
    return _permuted(input_tensor, lambda rank: [0, rank - 1, *range(1, rank - 1)])


def NCHWToNHWC(input_tensor: Any) -> Any:
    """A tensor, or a shape, of 4 or 5 dimensions with the channels second: the same with the channels last."""
    return _permuted(input_tensor, lambda rank: [0, *range(2, rank), 1])


def _permuted(value: Any, order: Callable[[int], list[int]]) -> Any:
    if isinstance(value, Tensor):
        return transpose(value, order(len(value.shape)))
    return [value[axis] for axis in order(len(value))]


def generate_combinations_with_testcase_name(**kwargs: Iterable[Any]) -> list[dict[str, Any]]:
    """Every combination of one value for each argument, in the order of their names, each with a ``testcase_name``."""
    names = sorted(kwargs)
    combinations = [
        dict(zip(names, values, strict=True)) for values in itertools.product(*(kwargs[name] for name in names))
    ]
    for made in combinations:
        parts = ("".join(filter(str.isalnum, str(part))) for item in made.items() for part in item)
        made["testcase_name"] = "_".join(["_test", *parts])
    return combinations


def get_node_def_from_graph(node_name: str, graph_def: GraphDef) -> NodeDef | None:
    """The node of that name in a graph that is plain data, functions aside; None if there is none."""
    return next((node for node in graph_def.node if node.name == node_name), None)


def assert_meta_graph_protos_equal(tester: TestCase, a: MetaGraphDef, b: MetaGraphDef) -> None:
    """Check that two meta graphs are equal: of their graphs, the order of the nodes does not matter.

    Args:
        tester: The test.
        a: A meta graph.
        b: Another.

    Raises:
        AssertionError: They are not equal.
    """
    tester.assertEqual(set(a.collection_def), set(b.collection_def))
    for name, collection in a.collection_def.items():
        tester.assertProtoEquals(collection, b.collection_def[name])
    assert_equal_graph_def(a.graph_def, b.graph_def)
    tester.assertProtoEquals(a.graph_def.versions, b.graph_def.versions)
    tester.assertProtoEquals(_rest_of(a), _rest_of(b))


def _rest_of(meta_graph: MetaGraphDef) -> MetaGraphDef:
    """A meta graph without its graph and its collections."""
    rest = MetaGraphDef()
    rest.CopyFrom(meta_graph)
    rest.ClearField("collection_def")
    rest.ClearField("graph_def")
    return rest
