"""Definitions of operations on resources that live on a device between steps: queues, barriers, readers and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfray.framework.dtypes import DType
from tfray.framework.op_def import Kernel, OpDef, Reach, ShapeFunction, not_differentiable, register
from tfray.framework.shape_functions import no_outputs, scalar


def register_handle(
    name: str,
    kernels: Mapping[str, Kernel],
    attrs: Sequence[str],
    types: Mapping[str, Sequence[DType]] | None = None,
    reach: Reach | None = None,
) -> OpDef:
    """Register an operation that gives the handle of a resource.

    Args:
        name: Name of the type.
        kernels: As of `OpDef`; the kernel returns the resource.
        attrs: Names of the attributes.
        types: As of `OpDef`.
        reach: As of `OpDef`.
    """
    return register(
        OpDef(
            name=name,
            inputs=(),
            outputs=("handle: resource",),
            attrs=tuple(attrs),
            types=types or {},
            shape=scalar,
            kernels=kernels,
            stateful=True,
            reach=reach,
        )
    )


def register_use(
    name: str,
    kernels: Mapping[str, Kernel],
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    shape: ShapeFunction | None = None,
    attrs: Sequence[str] = (),
    types: Mapping[str, Sequence[DType]] | None = None,
    waits: bool = False,
) -> OpDef:
    """Register an operation on a resource, which has no gradient.

    Args:
        name: Name of the type.
        kernels: As of `OpDef`; the kernel takes the resource first.
        inputs: The inputs that follow the handle, as of `OpDef`.
        outputs: The outputs, likewise.
        shape: The shape function; when None, outputs are scalars.
        attrs: Names of the attributes.
        types: As of `OpDef`.
        waits: Whether it may have to wait for other operations, and so asks the step to complete it.
    """
    return register(
        OpDef(
            name=name,
            inputs=("handle: resource", *inputs),
            outputs=tuple(outputs),
            attrs=tuple(attrs),
            types=types or {},
            shape=shape or (scalar if outputs else no_outputs),
            kernels=kernels,
            gradient=not_differentiable if outputs else None,
            stateful=True,
            blocking=waits,
            uses_step=waits,
        )
    )
