"""Operations on resources that live on a device between steps: queues, barriers, readers and others.

`register_handle` and `register_use` define them, `make_resource` and `use_resource` add them to a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor
from tfray.framework.op_def import Kernel, OpDef, Reach, ShapeFunction, not_differentiable, register
from tfray.framework.scopes import current_container
from tfray.framework.shape_functions import no_outputs, scalar
from tfray.framework.type_aliases import TensorLike
from tfray.ops.resources.handles import looked_up_once
from tfray.ops.state.state_ops import colocated_with


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
        kernels: As of `OpDef`; the kernel returns the resource. It is called again only if that may have been dropped.
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
            kernels={
                device: replace(kernel, function=looked_up_once(kernel.function)) for device, kernel in kernels.items()
            },
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
    reach: Reach | None = None,
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
        reach: As of `OpDef`.
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
            reach=reach,
        )
    )


def make_resource(definition: OpDef, name: str | None, shared_name: str | None = None, **attrs: object) -> Tensor:
    """Add an operation that gives the handle of a resource of the current container.

    Args:
        definition: What `register_handle` returned, with the attributes ``container`` and ``shared_name``.
        name: Name of the operation.
        shared_name: Name under which all sessions on the device share the resource. When None or empty, each session
            has its own, by the name of the operation.
        **attrs: The other attributes, plain values of no shape.

    Returns:
        The handle, a scalar.
    """
    return add_op(definition, name=name, container=current_container(), shared_name=shared_name or "", **attrs)


def use_resource(
    definition: OpDef, handle: Tensor, *inputs: TensorLike, name: str | None = None, **attrs: object
) -> Any:
    """Add an operation on a resource, on the device of the resource.

    Args:
        definition: What `register_use` returned.
        handle: The resource.
        *inputs: The inputs that follow, of the shapes that the definition takes.
        name: Name of the operation.
        **attrs: The attributes, plain values of no shape.

    Returns:
        As `add_op`: the operation, or its outputs, whose shapes the definition tells.
    """
    with colocated_with(handle):
        return add_op(definition, handle, *inputs, name=name, **attrs)
