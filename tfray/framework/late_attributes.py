"""Attributes that may be known only when a step runs, such as the axis of a concatenation.

A program may give such an attribute as a tensor. Where the graph determines its value, that is the attribute, and the
operation is as fast as with a number. Elsewhere `add_op` takes the operation's variant, in which it is the first input:

    ConcatV2(values, axis=1)    ConcatV2ByAxis(axis, values)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.op_def import Array, Kernel, KernelContext, OpDef, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape


def register_late(definition: OpDef) -> OpDef:
    """`register` for an operation with a late attribute: the variant is registered as well."""
    register(variant_of(definition))
    return register(definition)


def variant_name(definition: OpDef) -> str:
    """Name of the variant whose first input is the attribute."""
    return f"{definition.name}By{(definition.late or '').capitalize()}"


def variant_of(definition: OpDef) -> OpDef:
    """The operation with its late attribute as first input.

    Kernels and gradient are those of `definition`. A shape is what the shapes for all possible axes have in common.
    """
    attr = definition.late
    assert attr is not None
    return replace(
        definition,
        name=variant_name(definition),
        inputs=(f"{attr}: T{attr}", *definition.inputs),
        types={**definition.types, f"T{attr}": dtypes.INDICES},
        attrs=tuple(name for name in definition.attrs if name != attr),
        shape=lambda op: _common_shapes(definition, op),
        kernels={device: _reading(kernel, attr) for device, kernel in definition.kernels.items()},
        gradient=definition.gradient and (lambda op, *d_outputs: _gradient(definition, op, *d_outputs)),
        over_batch=None,
        shape_value=None,
        late=None,
    )


class _Seen:
    """An operation, or a kernel's context, as the functions of the definition without the input know it."""

    def __init__(self, seen: Any, attr: str, value: Any, inputs: Sequence[Any] = ()) -> None:
        self._seen = seen
        self._attr = attr
        self._value = value
        self.inputs = inputs

    def attr(self, name: str) -> Any:
        return self._value if name == self._attr else self._seen.attr(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)


def _reading(kernel: Kernel, attr: str) -> Kernel:
    function = kernel.function

    def read(ctx: KernelContext, value: Array, *arrays: Array, **out: Any) -> Any:
        try:
            return function(_Seen(ctx, attr, ctx.to_host(value).tolist()), *arrays, **out)
        except ValueError as error:
            raise InvalidArgumentError(f"{error} ({attr} {ctx.to_host(value).tolist()})") from error

    return replace(kernel, function=read, may_overwrite=tuple(index + 1 for index in kernel.may_overwrite))


def _gradient(definition: OpDef, op: Any, *d_outputs: Any) -> list[Any]:
    assert definition.late is not None and definition.gradient is not None
    value, *inputs = op.inputs
    return [None, *definition.gradient(_Seen(op, definition.late, value, inputs), *d_outputs)]


def _common_shapes(definition: OpDef, op: Any) -> list[TensorShape]:
    """Of each output, what its shapes for all axes agree in. Raises `ValueError` if no axis is possible."""
    assert definition.late is not None
    value, *inputs = op.inputs
    ranks = [tensor.shape.rank for tensor in inputs if tensor.shape.rank is not None]
    common: list[TensorShape] = []
    refusal: ValueError | None = None
    for axis in range(max([1, *ranks]) if ranks else 0):
        seen = _Seen(op, definition.late, [axis] if value.shape.rank == 1 else axis, inputs)
        try:
            shapes = definition.shape(seen)
        except ValueError as error:
            refusal = error
            continue
        common = [_common(*pair) for pair in zip(common, shapes, strict=True)] if common else list(shapes)
    if refusal is not None and not common:
        raise refusal
    return common or [UNKNOWN] * len(op.outputs)


def _common(first: TensorShape, second: TensorShape) -> TensorShape:
    if first.rank is None or first.rank != second.rank:
        return UNKNOWN
    return TensorShape([a if a == b else None for a, b in zip(first.sizes, second.sizes, strict=True)])
