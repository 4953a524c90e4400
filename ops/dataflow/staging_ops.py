"""Staging areas: buffers between a step and the next one. `tf.contrib.staging.StagingArea` is built on them.

They live where they are placed, on a GPU too, so that a step finds its input in its device's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.framework.graph import Operation
from tfray.framework.op_def import Array, KernelContext, on_every_device
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.dataflow.resource_operations import register_handle, register_use
from tfray.ops.resources.handles import named_resource, require_same
from tfray.ops.resources.staging_resource import MapStagingArea, StagingArea

_ATTRS = ("capacity", "memory_limit", "component_count", "container", "shared_name")


def _area(ctx: KernelContext, kind: type[Any], **more: Any) -> Array:
    limits = {name: ctx.attr(name) for name in ("capacity", "memory_limit")}
    count = ctx.attr("component_count")
    found = named_resource(ctx, lambda name: kind(name, count=count, **limits, **more), shared_by_name=True)
    require_same(found, ctx, kind, component_count=count, **limits, **more)
    return found


# -- first in, first out -------------------------------------------------------------------------------


def _staging_area_kernel(ctx: KernelContext) -> Array:
    return _area(ctx, StagingArea)


STAGING_AREA = register_handle("StagingArea", on_every_device(_staging_area_kernel), _ATTRS)


def _stage_kernel(ctx: KernelContext, area: StagingArea, *values: Array) -> None:
    ctx.step.complete(ctx.op_name, area.put, values)


STAGE = register_use("Stage", on_every_device(_stage_kernel), inputs=("values: any*",), waits=True)


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


def _stage_peek_kernel(ctx: KernelContext, area: StagingArea, index: Array) -> Any:
    # Copy: the operation that takes the element later may write into it.
    return tuple([value.copy() for value in ctx.step.complete(ctx.op_name, area.peek, index.item())])


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


def _map_staging_area_kernel(ctx: KernelContext) -> Array:
    return _area(ctx, MapStagingArea, ordered=ctx.attr("ordered"))


MAP_STAGING_AREA = register_handle("MapStagingArea", on_every_device(_map_staging_area_kernel), (*_ATTRS, "ordered"))


def _map_stage_kernel(ctx: KernelContext, area: MapStagingArea, key: Array, *values: Array) -> None:
    ctx.step.complete(ctx.op_name, area.put, key.item(), ctx.attr("indices"), values)


MAP_STAGE = register_use(
    "MapStage",
    on_every_device(_map_stage_kernel),
    inputs=("key: int64", "values: any*"),
    attrs=("indices",),
    waits=True,
)


def _map_unstage_kernel(ctx: KernelContext, area: MapStagingArea, key: Array) -> Any:
    return ctx.step.complete(ctx.op_name, area.get, key.item(), ctx.attr("indices"))[1]


MAP_UNSTAGE = register_use(
    "MapUnstage",
    on_every_device(_map_unstage_kernel),
    inputs=("key: int64",),
    outputs=("values: types*",),
    shape=_given_shapes,
    attrs=("indices", "types", "shapes"),
    waits=True,
)


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


def _map_peek_kernel(ctx: KernelContext, area: MapStagingArea, key: Array) -> Any:
    _, values = ctx.step.complete(ctx.op_name, area.peek, key.item(), ctx.attr("indices"))
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


def _map_incomplete_size_kernel(ctx: KernelContext, area: MapStagingArea) -> Array:
    return ctx.asarray(np.int32(area.incomplete_size))


MAP_INCOMPLETE_SIZE = register_use(
    "MapIncompleteSize", on_every_device(_map_incomplete_size_kernel), outputs=("size: int32",)
)


# -- both ----------------------------------------------------------------------------------------------


def _stage_size_kernel(ctx: KernelContext, area: StagingArea | MapStagingArea) -> Array:
    return ctx.asarray(np.int32(area.size))


STAGE_SIZE = register_use("StageSize", on_every_device(_stage_size_kernel), outputs=("size: int32",))


def _stage_clear_kernel(ctx: KernelContext, area: StagingArea | MapStagingArea) -> None:
    area.clear()


STAGE_CLEAR = register_use("StageClear", on_every_device(_stage_clear_kernel))
