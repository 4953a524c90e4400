"""``tf.config``: options of the sessions that are given no `tf.ConfigProto`, and the devices of this process.

They count for sessions that begin later; those that have begun keep theirs.
"""

from __future__ import annotations

from tfray.library.functions.traced_function import run_functions_eagerly as experimental_run_functions_eagerly
from tfray.library.namespaces.config import experimental, optimizer, threading
from tfray.options import default_config

__all__ = [
    "experimental", "experimental_list_devices", "experimental_run_functions_eagerly", "get_soft_device_placement",
    "optimizer", "set_soft_device_placement", "threading",
]  # fmt: skip


def get_soft_device_placement() -> bool:
    """Whether an operation may go to another device type than it asks for, where there is no kernel for that."""
    found: bool = default_config().allow_soft_placement
    return found


def set_soft_device_placement(enabled: bool) -> None:
    """Say whether an operation may go to another device type than it asks for.

    Args:
        enabled: As ``tf.ConfigProto(allow_soft_placement=enabled)``.
    """
    default_config().allow_soft_placement = bool(enabled)


def experimental_list_devices() -> list[str]:
    """The full names of the devices of this process."""
    return [device.name for device in experimental.list_logical_devices()]
