"""Staging areas: buffers between a step and the next one. `tf.contrib.staging.StagingArea` is built on them.

They live where they are placed, on a GPU too, so that a step finds its input in its device's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, on_every_device
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.dataflow.queue_ops import require_same, shared_resource
from tfray.ops.dataflow.resource_definitions import register_handle, register_use
from tfray.ops.resources.staging_resource import MapStagingArea, StagingArea
from tfray.ops.state.state_ops import colocated_with

_ATTRS = ("capacity", "memory_limit", "component_count", "container", "shared_name")


def _limits(capacity: int, memory_limit: int, count: int, container: str, shared_name: str) -> dict[str, Any]:
    return {
        "capacity": int(capacity),
        "memory_limit": int(memory_limit),
        "component_count": count,
        "container": container,
        "shared_name": shared_name,
    }


def _area(ctx: KernelContext, kind: type[Any], **more: Any) -> Array:
    limits = {name: ctx.attr(name) for name in ("capacity", "memory_limit")}
    count = ctx.attr("component_count")
    found = shared_resource(ctx, lambda name: kind(name, count=count, **limits, **more))
    require_same(found, ctx, kind, component_count=count, **limits, **more)
    return found


# -- first in, first out -------------------------------------------------------------------------------


def staging_area(
    component_count: int,
    capacity: int = 0,
    memory_limit: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a first-in-first-out staging area.

    Args:
        component_count: Number of components of an element.
        capacity: Largest number of elements; 0 for no limit.
        memory_limit: Largest number of bytes; 0 for no limit.
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    return add_op(STAGING_AREA, name=name, **_limits(capacity, memory_limit, component_count, container, shared_name))


def _staging_area_kernel(ctx: KernelContext) -> Array:
    return _area(ctx, StagingArea)


STAGING_AREA = register_handle("StagingArea", on_every_device(_staging_area_kernel), _ATTRS)


def stage(handle: Tensor, values: Sequence[TensorLike], name: str | None = None) -> Operation:
    """Add an element, waiting for room.

    Args:
        handle: The staging area.
        values: The element's components, of any shapes.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(STAGE, handle, list(values), name=name)


def _stage_kernel(ctx: KernelContext, area: StagingArea, *values: Array) -> None:
    ctx.step.complete(ctx.op_name, area.put, values)


STAGE = register_use("Stage", on_every_device(_stage_kernel), inputs=("values: any*",), waits=True)


def unstage(handle: Tensor, types: Sequence[DType], shapes: Sequence[TensorShape], name: str | None = None) -> Any:
    """Take the first element, waiting for one.

    Args:
        handle: The staging area.
        types: Dtypes of the components.
        shapes: Shapes of the components, as far as they are known.
        name: Name of the operation.

    Returns:
        The components, of the shapes in `shapes`.
    """
    with colocated_with(handle):
        return add_op(UNSTAGE, handle, name=name, types=list(types), shapes=list(shapes))


def _unstage_kernel(ctx: KernelContext, area: StagingArea) -> Any:
    return ctx.step.complete(ctx.op_name, area.get)


def _given_shapes(op: Operation) -> list[TensorShape]:
    shapes: list[TensorShape] = op.attrs["shapes"]
    return shapes


UNSTAGE = register_use(
    "Unstage",
    on_every_device(_unstage_kernel),
    outputs=("values: types*",),
    shape=_given_shapes,
    attrs=("types", "shapes"),
    waits=True,
)


def stage_peek(
    handle: Tensor, index: TensorLike, types: Sequence[DType], shapes: Sequence[TensorShape], name: str | None = None
) -> Any:
    """Look at an element without taking it, waiting until it is there.

    Args:
        handle: The staging area.
        index: int32 scalar: its place from the first.
        types: Dtypes of the components.
        shapes: Shapes of the components, as far as they are known.
        name: Name of the operation.

    Returns:
        The components, of the shapes in `shapes`.
    """
    with colocated_with(handle):
        return add_op(STAGE_PEEK, handle, index, name=name, types=list(types), shapes=list(shapes))


def _stage_peek_kernel(ctx: KernelContext, area: StagingArea, index: Array) -> Any:
    # Copy: the operation that takes the element later may write into it.
    return tuple([value.copy() for value in ctx.step.complete(ctx.op_name, area.peek, int(index))])


STAGE_PEEK = register_use(
    "StagePeek",
    on_every_device(_stage_peek_kernel),
    inputs=("index: int32",),
    outputs=("values: types*",),
    shape=_given_shapes,
    attrs=("types", "shapes"),
    waits=True,
)


# -- by key --------------------------------------------------------------------------------------------


def map_staging_area(
    component_count: int,
    ordered: bool = False,
    capacity: int = 0,
    memory_limit: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a staging area of elements by key.

    Args:
        component_count: As for `staging_area`.
        ordered: Whether the element of the smallest key comes first when any will do.
        capacity: As for `staging_area`; incomplete elements do not count.
        memory_limit: As for `staging_area`; incomplete elements do not count.
        container: As for `staging_area`.
        shared_name: As for `staging_area`.
        name: Name of the operation.
    """
    attrs = _limits(capacity, memory_limit, component_count, container, shared_name)
    return add_op(MAP_STAGING_AREA, name=name, ordered=bool(ordered), **attrs)


def _map_staging_area_kernel(ctx: KernelContext) -> Array:
    return _area(ctx, MapStagingArea, ordered=ctx.attr("ordered"))


MAP_STAGING_AREA = register_handle("MapStagingArea", on_every_device(_map_staging_area_kernel), (*_ATTRS, "ordered"))


def map_stage(
    handle: Tensor, key: TensorLike, indices: Sequence[int], values: Sequence[TensorLike], name: str | None = None
) -> Operation:
    """Add components of the element of a key; waits for room when that makes it complete.

    Args:
        handle: The staging area.
        key: int64 scalar.
        indices: Numbers of the components.
        values: The components, of any shapes.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: there is such a component already.
    """
    with colocated_with(handle):
        return add_op(MAP_STAGE, handle, key, list(values), name=name, indices=list(indices))


def _map_stage_kernel(ctx: KernelContext, area: MapStagingArea, key: Array, *values: Array) -> None:
    ctx.step.complete(ctx.op_name, area.put, int(key), ctx.attr("indices"), values)


MAP_STAGE = register_use(
    "MapStage",
    on_every_device(_map_stage_kernel),
    inputs=("key: int64", "values: any*"),
    attrs=("indices",),
    waits=True,
)


def map_unstage(
    handle: Tensor,
    key: TensorLike,
    indices: Sequence[int],
    types: Sequence[DType],
    shapes: Sequence[TensorShape],
    name: str | None = None,
) -> list[Tensor]:
    """Take components of the element of a key, waiting until it is complete.

    Args:
        handle: The staging area.
        key: int64 scalar.
        indices: Numbers of the components.
        types: Their dtypes.
        shapes: Shapes of the components, as far as they are known.
        name: Name of the operation.

    Returns:
        The components, of the shapes in `shapes`.

    Raises:
        InvalidArgumentError: While running: one of them was taken already.
    """
    attrs = {"indices": list(indices), "types": list(types), "shapes": list(shapes)}
    with colocated_with(handle):
        tensors: list[Tensor] = add_op(MAP_UNSTAGE, handle, key, name=name, **attrs)
        return tensors


def _map_unstage_kernel(ctx: KernelContext, area: MapStagingArea, key: Array) -> Any:
    return ctx.step.complete(ctx.op_name, area.get, int(key), ctx.attr("indices"))[1]


MAP_UNSTAGE = register_use(
    "MapUnstage",
    on_every_device(_map_unstage_kernel),
    inputs=("key: int64",),
    outputs=("values: types*",),
    shape=_given_shapes,
    attrs=("indices", "types", "shapes"),
    waits=True,
)


def map_unstage_no_key(
    handle: Tensor,
    indices: Sequence[int],
    types: Sequence[DType],
    shapes: Sequence[TensorShape],
    name: str | None = None,
) -> list[Tensor]:
    """Take components of any complete element, waiting for one.

    Args:
        handle: The staging area.
        indices: Numbers of the components.
        types: Their dtypes.
        shapes: Shapes of the components, as far as they are known.
        name: Name of the operation.

    Returns:
        The key, an int64 scalar, then the components, of the shapes in `shapes`.
    """
    attrs = {"indices": list(indices), "types": list(types), "shapes": list(shapes)}
    with colocated_with(handle):
        tensors: list[Tensor] = add_op(MAP_UNSTAGE_NO_KEY, handle, name=name, **attrs)
        return tensors


def _map_unstage_no_key_kernel(ctx: KernelContext, area: MapStagingArea) -> Any:
    key, values = ctx.step.complete(ctx.op_name, area.get, None, ctx.attr("indices"))
    return (ctx.asarray(np.int64(key)), *values)


def _key_and_given_shapes(op: Operation) -> list[TensorShape]:
    return [TensorShape([]), *op.attrs["shapes"]]


MAP_UNSTAGE_NO_KEY = register_use(
    "MapUnstageNoKey",
    on_every_device(_map_unstage_no_key_kernel),
    outputs=("key: int64", "values: types*"),
    shape=_key_and_given_shapes,
    attrs=("indices", "types", "shapes"),
    waits=True,
)


def map_peek(
    handle: Tensor,
    key: TensorLike,
    indices: Sequence[int],
    types: Sequence[DType],
    shapes: Sequence[TensorShape],
    name: str | None = None,
) -> list[Tensor]:
    """As `map_unstage`, without taking anything.

    Args:
        handle: As for `map_unstage`.
        key: As for `map_unstage`, an int64 scalar.
        indices: As for `map_unstage`.
        types: As for `map_unstage`.
        shapes: As for `map_unstage`.
        name: As for `map_unstage`.

    Returns:
        The components, of the shapes in `shapes`.
    """
    attrs = {"indices": list(indices), "types": list(types), "shapes": list(shapes)}
    with colocated_with(handle):
        tensors: list[Tensor] = add_op(MAP_PEEK, handle, key, name=name, **attrs)
        return tensors


def _map_peek_kernel(ctx: KernelContext, area: MapStagingArea, key: Array) -> Any:
    _, values = ctx.step.complete(ctx.op_name, area.peek, int(key), ctx.attr("indices"))
    return tuple([value.copy() for value in values])


MAP_PEEK = register_use(
    "MapPeek",
    on_every_device(_map_peek_kernel),
    inputs=("key: int64",),
    outputs=("values: types*",),
    shape=_given_shapes,
    attrs=("indices", "types", "shapes"),
    waits=True,
)


def map_incomplete_size(handle: Tensor, name: str | None = None) -> Tensor:
    """Number of elements of which components are missing: an int32 scalar.

    Args:
        handle: A staging area of elements by key.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(MAP_INCOMPLETE_SIZE, handle, name=name)


def _map_incomplete_size_kernel(ctx: KernelContext, area: MapStagingArea) -> Array:
    return ctx.asarray(np.int32(area.incomplete_size))


MAP_INCOMPLETE_SIZE = register_use(
    "MapIncompleteSize", on_every_device(_map_incomplete_size_kernel), outputs=("size: int32",)
)


# -- both ----------------------------------------------------------------------------------------------


def stage_size(handle: Tensor, name: str | None = None) -> Tensor:
    """Number of complete elements: an int32 scalar.

    Args:
        handle: A staging area of either kind.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(STAGE_SIZE, handle, name=name)


def _stage_size_kernel(ctx: KernelContext, area: StagingArea | MapStagingArea) -> Array:
    return ctx.asarray(np.int32(area.size))


STAGE_SIZE = register_use("StageSize", on_every_device(_stage_size_kernel), outputs=("size: int32",))


def stage_clear(handle: Tensor, name: str | None = None) -> Operation:
    """Drop all elements.

    Args:
        handle: A staging area of either kind.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(STAGE_CLEAR, handle, name=name)


def _stage_clear_kernel(ctx: KernelContext, area: StagingArea | MapStagingArea) -> None:
    area.clear()


STAGE_CLEAR = register_use("StageClear", on_every_device(_stage_clear_kernel))
