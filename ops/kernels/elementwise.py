"""What elementwise operations have in common: their form, and where special functions come from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from math import prod
from typing import Any, Final

from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation
from tfray.framework.op_def import GradientFunction, Kernel, KernelContext, OpDef, on_every_device, ufunc_kernel
from tfray.framework.shape_functions import broadcast, like_input
from tfray.ops.kernels.batch_rules import Rule, by_element
from tfray.ops.kernels.tiles import FEW_ELEMENTS


def unary(
    name: str, kernel: Kernel | str, types: Sequence[DType], gradient: GradientFunction | None = None, result: str = "T"
) -> OpDef:
    """Definition of an operation ``y = f(x)``, element by element.

    Args:
        name: Name of the type.
        kernel: The kernel, or the name of the one ufunc that it is.
        types: Dtypes that `x` may have.
        gradient: The gradient function, if any.
        result: Type of `y`: that of `x`, or a dtype's name.
    """
    return OpDef(
        name=name,
        inputs=("x: T",),
        outputs=(f"y: {result}",),
        types={"T": types},
        shape=like_input(0),
        kernels=on_every_device(ufunc_kernel(kernel, arity=1) if isinstance(kernel, str) else kernel),
        gradient=gradient,
        over_batch=by_element,
    )


def binary(
    name: str,
    kernel: Kernel | str,
    types: Sequence[DType],
    gradient: GradientFunction | None = None,
    result: str = "T",
    over_batch: Rule = by_element,
) -> OpDef:
    """Definition of an operation ``z = f(x, y)`` with broadcasting, element by element (see `unary`)."""
    return OpDef(
        name=name,
        inputs=("x: T", "y: T"),
        outputs=(f"z: {result}",),
        types={"T": types},
        shape=broadcast,
        kernels=on_every_device(ufunc_kernel(kernel) if isinstance(kernel, str) else kernel),
        gradient=gradient,
        over_batch=over_batch,
    )


@lru_cache(maxsize=2)
def _special_module(name: str) -> Any:
    return import_module("scipy.special" if name == "numpy" else "cupyx.scipy.special")


def special(ctx: KernelContext) -> Any:
    """The module of special functions for the device: that of scipy, or cupy's counterpart."""
    return _special_module(ctx.xp.__name__)


def scipy_special() -> Any:
    """The module of special functions on the host."""
    return _special_module("numpy")


_FEW_SUMMANDS: Final = 8
"""The most whose sum is one expression. Each sum but the last may take memory of its own."""


def inline_sum(op: Operation) -> str | None:
    """The expression for the sum of an operation's inputs; None if they are large, or too many."""
    sizes = op.outputs[0].shape.whole()
    if not 2 <= len(op.inputs) <= _FEW_SUMMANDS or sizes is None or prod(sizes) > FEW_ELEMENTS:
        return None
    total = "{0}"
    for index in range(1, len(op.inputs)):
        total = f"{{np.add}}({total}, {{{index}}}, {{out}})"
    return total
