"""Objects of Ray's store that go from one process of a node to another without a call of Ray.

A call with a reference as argument takes three times as long as to put the object and to map it: the call also involves
the owner and the raylet. Processes that have a link send each other, over the link, what Ray would put into the call
(`Description`). The sender keeps the object until the receiver has answered. This uses functions of Ray that are not
public. If a version of Ray lacks them, `CAN_SHARE` is false, and references travel in calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ray
from ray import _raylet
from ray._private import worker

from tfray.actors.links.messages import Description

_PARTS: Final = ("serialize_object_ref", "deserialize_and_register_object_ref", "object_exists")

Reference: Final[Any] = ray.ObjectRef
"""The type of references to objects of the store."""

CAN_SHARE: Final = all(hasattr(getattr(_raylet, "CoreWorker", None), name) for name in _PARTS)
"""Whether this version of Ray has what is needed."""

_MAPPING_S: Final = 1.0
"""Seconds that it may take to map an object of this node's store; after that it counts as not found."""


def put(value: Any) -> Any:
    """Put a tensor into the store. Returns the reference to it."""
    return ray.put(value)


def mapped(ref: Any) -> Any:
    """The tensor of a reference, in the store's memory, read-only."""
    return ray.get(ref)


def describe(ref: Any) -> Description:
    """What other processes of this node need to find an object of this process."""
    _, owner, status = _core().serialize_object_ref(ref)
    return Description(ref.binary(), owner, status)


def find(descriptions: Sequence[Description]) -> list[Any] | None:
    """The tensors that processes of this node describe, read-only; None if some are not in its store."""
    refs = [_reference(*description) for description in descriptions]
    if not all(map(_core().object_exists, refs)):
        return None
    try:
        return list(ray.get(refs, timeout=_MAPPING_S))
    except (ray.exceptions.ObjectLostError, ray.exceptions.GetTimeoutError):
        return None  # the owner has died meanwhile, or the store has made room


def _reference(identity: bytes, owner: bytes, status: bytes) -> Any:
    object_ref: Any = ray.ObjectRef
    ref = object_ref(identity, owner)
    _core().deserialize_and_register_object_ref(identity, object_ref.nil(), owner, status)
    return ref


def _core() -> Any:
    process: Any = worker.global_worker
    return process.core_worker
