"""Values that may be missing: what an iterator gives, or nothing at its end."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Operation
from tfray.framework.op_def import KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.resources.dataset_values import Element, IteratorResource


class OptionalValue:
    """What stands at run time for a value that may be missing.

    Attributes:
        components: The arrays; None when there is no value.
    """

    def __init__(self, components: Element | None) -> None:
        self.components = components


def _optional(name: str, inputs: tuple[str, ...], kernel: Any, **more: Any) -> OpDef:
    """Definition of an operation that gives an optional."""
    return register(
        OpDef(
            name=name,
            inputs=inputs,
            outputs=("optional: variant",),
            shape=scalar,
            kernels=on_cpu(kernel),
            gradient=not_differentiable,
            stateful=True,
            keeps_inputs=True,
            **more,
        )
    )


FROM_VALUE: Final = _optional(
    "OptionalFromValue", ("components: any*",), lambda ctx, *components: OptionalValue(components)
)

NONE: Final = _optional("OptionalNone", (), lambda ctx: OptionalValue(None))


def _next_kernel(ctx: KernelContext, iterator: IteratorResource, *dataset: Any) -> OptionalValue:
    if dataset:
        iterator.start(dataset[0], ctx.step.deadline)
    iterator.check_initialized()
    return OptionalValue(iterator.next(ctx.step.deadline))


GET_NEXT: Final = _optional(
    "IteratorGetNextAsOptional", ("iterator: resource", "dataset: variant*"), _next_kernel, uses_step=True
)
"""The next element of an iterator, or nothing at its end."""

HAS_VALUE: Final = register(
    OpDef(
        name="OptionalHasValue",
        inputs=("optional: variant",),
        outputs=("has_value: bool",),
        shape=scalar,
        kernels=on_cpu(lambda ctx, optional: np.bool_(optional.components is not None)),
        gradient=not_differentiable,
        stateful=True,
    )
)


def _value_kernel(ctx: KernelContext, optional: OptionalValue) -> list[Any]:
    if optional.components is None:
        raise InvalidArgumentError("the optional has no value: ask has_value() first")
    return list(optional.components)


def _value_shapes(op: Operation) -> list[TensorShape]:
    return list(op.attrs["output_shapes"])


GET_VALUE: Final = register(
    OpDef(
        name="OptionalGetValue",
        inputs=("optional: variant",),
        outputs=("components: output_types*",),
        attrs=("output_types", "output_shapes"),
        shape=_value_shapes,
        kernels=on_cpu(_value_kernel),
        gradient=not_differentiable,
        stateful=True,
        keeps_inputs=True,
    )
)
"""The value of an optional; an error when there is none."""
