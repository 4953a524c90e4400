"""`tensorflow.python.ops.parallel_for.test_util`: what TensorFlow's tests of `pfor` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfray.framework import nest
from tfray.framework.dtypes import DTypeLike, float32
from tfray.library.platform.test_case import TestCase
from tfray.library.variables.variables import global_variables_initializer
from tfray.programs.internals.parallel_for import for_loop, pfor

__all__ = ["PForTestCase"]


class PForTestCase(TestCase):
    """A test of functions that are applied to the numbers from 0 on."""

    def _run_targets(self, targets1: Any, targets2: Any = None, run_init: bool = True) -> list[Any]:
        tensors, others = nest.flatten(targets1), [] if targets2 is None else nest.flatten(targets2)
        assert len(others) in (0, len(tensors))
        if run_init:
            self.evaluate(global_variables_initializer())
        values: list[Any] = self.evaluate([*tensors, *others])
        return values

    def run_and_assert_equal(self, targets1: Any, targets2: Any) -> None:
        """Check that tensors in one structure have the values of those in another."""
        values = nest.flatten(self._run_targets(targets1, targets2))
        half = len(values) // 2
        for found, expected in zip(values[:half], values[half:], strict=True):
            if expected.dtype == np.object_:
                self.assertAllEqual(expected, found)
            else:
                self.assertAllClose(expected, found, rtol=1e-4, atol=1e-5)

    def _test_loop_fn(
        self,
        loop_fn: Callable[..., Any],
        iters: Any,
        loop_fn_dtypes: DTypeLike | Any = float32,
        parallel_iterations: int | None = None,
    ) -> None:
        at_once = pfor(loop_fn, iters, parallel_iterations)
        self.run_and_assert_equal(at_once, for_loop(loop_fn, loop_fn_dtypes, iters, parallel_iterations))
