"""Sample calls of every operation type, over which `tests/ops/test_ops.py` runs its battery.

To cover an operation, add a row to the list ``SAMPLES`` of a module ``<family>_samples.py`` in this folder:

    OpSample("Square", math_ops.square, [grid(2, 3)], np.square)

that is: the operation's type, the public function, its tensor arguments as arrays, and a function of NumPy that
computes the same from the same arrays. Rows are found by themselves; so are new modules.

* **Dtypes.** A float64 (or complex128) array stands for any dtype: the row runs in every numeric dtype that the
  operation declares, floats cut to whole numbers for integers, without their sign for unsigned ones, and moved
  off the real axis for complex ones. Arrays of another dtype (indices, bools, strings) stay as they are.
  `dtypes` narrows the sweep. The reference gets 16- and 32-bit numbers widened to 64 bits.
* **Static shapes.** Every row runs with known shapes, unknown sizes and unknown rank. `sizes` names the
  arguments that hold shapes, axes and the like: they are constants, and are fed in a fourth run.
  Narrow the runs by `modes`; with `data_dependent` the shape of the result is not expected to be known.
* **Gradients.** If the operation has a gradient, it is checked against differences with respect to every
  float64 or complex128 array, and once more for its own gradient. `differentiable` names other arguments
  (none with ``()``); with ``twice=False`` the second derivatives are left out. Keep values away from kinks.
* **Attributes** go into `kwargs`, or into a lambda as `build`.

`unary_rows` and `binary_rows` make the usual rows of elementwise operations: empty, scalar, broadcast.

Errors go into the list ``ERRORS``: `OpError` rows say what must be refused, and with which words.

An operation that cannot be sampled (random, blocking, ...) is named with its reason in the dictionary
``TESTED_ELSEWHERE`` of a module.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.op_def import lookup, not_differentiable

MODES = ("known", "unknown sizes", "unknown rank", "fed sizes")


@dataclass(frozen=True)
class OpSample:
    """One call of an operation and what it must give. See the module's docstring."""

    op: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    reference: Callable[..., Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dtypes: Sequence[DType] | None = None
    sizes: Sequence[int] = ()
    modes: Sequence[str] = MODES
    data_dependent: bool = False
    differentiable: Sequence[int] | None = None
    twice: bool = True
    tolerance: float = 1.0
    """Factor on the tolerances of `TOLERANCES`."""
    label: str = ""

    def arrays(self, dtype: DType | None) -> list[np.ndarray]:
        """The inputs, those of the swept dtype converted to `dtype`."""
        return [as_dtype_array(value, dtype) for value in self.inputs]

    def swept_dtypes(self) -> Sequence[DType | None]:
        """The dtypes to run in; ``(None,)`` when no input is swept."""
        swept = [np.asarray(value).dtype for value in self.inputs if is_swept(value)]
        if not swept:
            return (None,)
        if self.dtypes is not None:
            return self.dtypes
        allowed = _declared_dtypes(self.op)
        kinds = dtypes.COMPLEX if swept[0] == np.complex128 else dtypes.NUMERIC
        return [dtype for dtype in allowed if dtype in kinds]

    def differentiable_inputs(self) -> Sequence[int]:
        """Indices of the inputs for which gradients are checked."""
        if lookup(self.op).gradient in (None, not_differentiable):
            return ()
        if self.differentiable is not None:
            return self.differentiable
        return [i for i, value in enumerate(self.inputs) if is_swept(value) and i not in self.sizes]

    def __str__(self) -> str:
        shapes = "x".join("".join(map(str, np.shape(value))) or "0d" for value in self.inputs)
        return "-".join(part for part in (self.op, self.label, shapes) if part)


@dataclass(frozen=True)
class OpError:
    """A call that must raise `InvalidArgumentError`, with a message that matches `match`.

    Attributes:
        op: Type of the operation to blame: errors while building must name it.
        build: What to call.
        inputs: Its tensor arguments; constants, or fed with nothing known of them when `at_run`.
        match: Regular expression that the message must contain.
        at_run: The error is only found when the kernel runs.
    """

    op: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    match: str
    at_run: bool = False

    def __str__(self) -> str:
        return f"{self.op}-{self.match.replace(' ', '_')}"


TOLERANCES = {
    np.dtype(np.float16): 2e-3,
    dtypes.bfloat16.numpy: 1.6e-2,
    np.dtype(np.float32): 2e-6,
    np.dtype(np.float64): 1e-12,
    np.dtype(np.complex64): 4e-6,
    np.dtype(np.complex128): 1e-12,
}


def is_swept(value: Any) -> bool:
    """Whether an input stands for any dtype: float64 or complex128."""
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype in (np.float64, np.complex128)


def as_dtype_array(value: Any, dtype: DType | None) -> np.ndarray:
    """An input as an array, converted to `dtype` if it is of the swept dtype."""
    array = np.asarray(value)
    if dtype is None or not is_swept(value):
        return array
    if dtype.is_complex and array.dtype == np.float64:
        return np.asarray(array * (1 + 0.5j) - 0.25j, dtype.numpy)
    if dtype.is_integer:
        array = np.trunc(np.abs(array) if dtype.is_unsigned else array)
    return np.asarray(array, dtype.numpy)


def widened(array: np.ndarray) -> np.ndarray:
    """An input as references get it: short floats in 64 bits."""
    if array.dtype in (np.float16, np.float32, dtypes.bfloat16.numpy):
        return array.astype(np.float64)
    return array.astype(np.complex128) if array.dtype == np.complex64 else array


def _declared_dtypes(op: str) -> Sequence[DType]:
    definition = lookup(op)
    for argument in definition.input_arguments:
        if argument.type in definition.types and set(definition.types[argument.type]) & set(dtypes.INEXACT):
            return definition.types[argument.type]
    return (dtypes.float32, dtypes.float64)


def grid(*shape: int, low: float = -3.0, high: float = 3.0, seed: int = 0) -> np.ndarray:
    """Distinct float64 values between `low` and `high`, evenly spread, in random order, none at 0 or at a tie."""
    count = int(np.prod(shape))
    steps = np.random.default_rng(seed).permutation(count)
    offset = (0.43 + 0.19 * seed) % 1  # so that no value comes with two seeds
    return (low + (high - low) * (steps + offset) / max(count, 1)).reshape(shape)


def unary_rows(
    op: str, build: Callable[..., Any], reference: Callable[..., Any], low: float = -3, high: float = 3, **options: Any
) -> list[OpSample]:
    """Rows of an elementwise operation of one input, with values between `low` and `high`."""
    return [
        OpSample(op, build, [grid(*shape, low=low, high=high)], reference, **options) for shape in [(3, 4), (), (0, 2)]
    ]


def binary_rows(
    op: str,
    build: Callable[..., Any],
    reference: Callable[..., Any],
    low: float = -3,
    high: float = 3,
    second: tuple[float, float] | None = None,
    **options: Any,
) -> list[OpSample]:
    """Rows of an elementwise operation of two inputs; `second` are the bounds of the second one."""
    low_y, high_y = second or (low, high)
    shapes = [((3, 4), (3, 4)), ((), ()), ((3, 4), ()), ((4,), (3, 4)), ((3, 1), (2, 1, 4)), ((0, 3), (1, 3))]
    return [
        OpSample(
            op,
            build,
            [grid(*x, low=low, high=high), grid(*y, low=low_y, high=high_y, seed=1)],
            reference,
            **options,
        )
        for x, y in shapes
    ]


@cache
def family_modules() -> list[Any]:
    """The modules of this folder that hold rows."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name.endswith("_samples"))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]


def all_samples() -> list[OpSample]:
    """Every row, in the order of families."""
    return [sample for module in family_modules() for sample in module.SAMPLES]


def all_errors() -> list[OpError]:
    """Every call that must be refused."""
    return [error for module in family_modules() for error in getattr(module, "ERRORS", [])]


def unsampled() -> dict[str, str]:
    """Operation types without a sample, and why, as the families' ``TESTED_ELSEWHERE`` say."""
    return {op: reason for module in family_modules() for op, reason in getattr(module, "TESTED_ELSEWHERE", {}).items()}
