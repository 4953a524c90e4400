"""`tensorflow.python.framework.test_util`: a test of TensorFlow's own runs once, in a graph."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable
from typing import Any

from tfray.framework.graph import Graph
from tfray.library.platform.testing import (
    TestCase,
    assert_equal_graph_def,
    gpu_device_name,
    is_gpu_available,
)

# fmt: off
__all__ = [
    "TensorFlowTestCase", "assert_equal_graph_def", "deprecated_graph_mode_only", "disable_control_flow_v2",
    "disable_xla", "enable_control_flow_v2", "gpu_device_name", "is_gpu_available",
    "run_all_in_deprecated_graph_mode_only", "run_all_in_graph_and_eager_modes", "run_cuda_only", "run_deprecated_v1",
    "run_gpu_only", "run_in_graph_and_eager_modes", "run_v1_only", "run_v2_only", "with_control_flow_v2",
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
    """Run a test in a graph of its own: there is no other mode."""
    return _in_graph if func is None else _in_graph(func)


deprecated_graph_mode_only = run_deprecated_v1


def _unchanged(cls: Any) -> Any:
    """The class or function itself."""
    return cls


run_all_in_graph_and_eager_modes = _unchanged
run_all_in_deprecated_graph_mode_only = _unchanged
with_control_flow_v2 = _unchanged
enable_control_flow_v2 = _unchanged


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


def run_gpu_only(func: Any = None) -> Any:
    """Skip a test where there is no GPU."""
    decorated = unittest.skipUnless(is_gpu_available(), "there is no GPU")
    return decorated if func is None else decorated(func)


run_cuda_only = run_gpu_only
