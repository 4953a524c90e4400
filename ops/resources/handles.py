"""Handles: what their operations find on a device is kept, and looked for again only when it may have gone."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any

from tfray.framework.op_def import KernelContext


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
