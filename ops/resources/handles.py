"""Handles: how their operations find what has a name on a device. What is found is kept while it cannot have gone."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import KernelContext
from tfray.framework.type_aliases import TensorLike


def looked_up_once(find: Callable[[KernelContext], Any]) -> Callable[[KernelContext], Any]:
    """The kernel of an operation that gives a handle.

    Args:
        find: Finds the resource, or makes it, and checks that it is what the operation describes.
    """

    @wraps(find)
    def kernel(ctx: KernelContext) -> Any:
        drops = ctx.resources.drops + ctx.session_state.drops
        held = ctx.kept
        if held is not None and held[0] == drops and (found := held[1]()) is not None:
            return found
        found = find(ctx)
        ctx.kept = drops, weakref.ref(found)  # weak: nothing that was dropped lives on because a step has used it
        return found

    return kernel


def named_resource(ctx: KernelContext, factory: Callable[[str], Any], shared_by_name: bool = False) -> Any:
    """The resource that the attributes ``container`` and ``shared_name`` of the running operation name on its device.

    With a ``shared_name`` it is that of all sessions on the device. Otherwise each session has its own, by the name of
    the operation.

    Args:
        ctx: Context of the operation.
        factory: Makes the resource from its name.
        shared_by_name: Whether the name of the operation stands for an empty ``shared_name``.
    """
    name = ctx.attr("shared_name") or ctx.op_name
    home = ctx.resources if shared_by_name or ctx.attr("shared_name") else ctx.session_state
    return home.lookup_or_create(("shared", ctx.attr("container"), name), lambda: factory(name))


def require_same(found: Any, ctx: KernelContext, kind: type[Any], **expected: Any) -> None:
    """Check that a resource found under a shared name is what the running operation would have made.

    Raises:
        InvalidArgumentError: It is of another kind, or was made with other attributes.
    """
    if type(found) is not kind:
        raise InvalidArgumentError(
            f"{ctx.attr('shared_name') or ctx.op_name!r} is the shared name of a {type(found).__name__} already, "
            f"not of a {kind.__name__}"
        )
    for name, value in expected.items():
        there = getattr(found, name)
        if there is not value and there != value:
            raise InvalidArgumentError(
                f"{found.describe()} has {_WORDS.get(name, name)} {_shown(there)} but requested "
                f"{_WORDS.get(name, name)} were {_shown(value)}: give both the same, or different shared names"
            )


_WORDS: Final = {"dtypes": "component types", "shapes": "component shapes", "seeds": "random seeds"}
"""What TensorFlow's errors call attributes of a resource."""


def _shown(value: TensorLike) -> str:
    return str([getattr(item, "name", str(item)) for item in value]) if isinstance(value, list) else str(value)
