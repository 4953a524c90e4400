"""Resources that a graph has registered to be initialized: TensorFlow's ``tensorflow.python.ops.resources``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.source_ops import constant
from tfray.ops.math import math_ops

# fmt: off
__all__ = [
    "initialize_resources", "local_resources", "register_resource", "report_uninitialized_resources",
    "shared_resources",
]
# fmt: on


class RegisteredResource(NamedTuple):
    """A resource, and how it is initialized.

    Attributes:
        handle: The handle.
        create: An operation that makes it.
        is_initialized: Whether it has been made, a boolean scalar.
    """

    handle: Tensor
    create: Operation
    is_initialized: Tensor


def register_resource(handle: Any, create_op: Any, is_initialized_op: Any, is_shared: bool = True) -> None:
    """Let a resource be initialized with others.

    Args:
        handle: The handle, a scalar.
        create_op: An operation that makes the resource.
        is_initialized_op: Whether it has been made, a boolean scalar.
        is_shared: Whether it is found by `shared_resources`; by `local_resources` otherwise.
    """
    key = GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES
    get_default_graph().add_to_collection(key, RegisteredResource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Any]:
    """The resources of the default graph that all tasks share."""
    return get_default_graph().get_collection(GraphKeys.RESOURCES)


def local_resources() -> list[Any]:
    """The resources of the default graph that each task has for itself."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_RESOURCES)


def report_uninitialized_resources(
    resource_list: Sequence[Any] | None = None, name: str = "report_uninitialized_resources"
) -> Tensor:
    """The names of resources that have not been made yet, strings of shape ``[n]``.

    Args:
        resource_list: The resources; all of the default graph when None.
        name: Name of the operation.
    """
    resources = shared_resources() + local_resources() if resource_list is None else list(resource_list)
    if not resources:
        return constant([], dtypes.string, [0], name=name)
    with get_default_graph().name_scope(None):
        there = array_ops.stack([each.is_initialized for each in resources])
        names = constant([each.handle.name for each in resources])
        return array_ops.boolean_mask(names, math_ops.logical_not(there), name=name)


def initialize_resources(resource_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that makes resources.

    Args:
        resource_list: The resources.
        name: Name of the operation.
    """
    return group(*[each.create for each in resource_list], name=name)
