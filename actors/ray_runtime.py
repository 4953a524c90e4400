"""Connecting to Ray: an existing cluster, or one started on this machine for the purpose."""

from __future__ import annotations

import os
import socket
from typing import Any, Final

from tfray.errors import InvalidArgumentError, NotFoundError, UnavailableError

CONNECT_TIMEOUT_S: Final = 5.0


def import_ray() -> Any:
    """The ray module. Raises `NotFoundError` with the remedy when it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise NotFoundError(
            "running on a cluster needs Ray: pip install 'tfray[ray]' (a local session works without it)"
        ) from error
    return ray


def connect(address: str | None, init_options: dict[str, Any] | None = None, local_cpus: int = 0) -> bool:
    """Make sure that this process is connected to Ray.

    Args:
        address: ``"local"`` starts Ray on this machine; ``"auto"`` joins a cluster that runs already;
            ``"host:port"`` joins that one; None joins whatever this process is connected to, or
            ``RAY_ADDRESS``, or else starts a local one.
        init_options: Further arguments of ``ray.init`` when it is called.
        local_cpus: CPUs that a Ray started here must offer, even if the machine has fewer: tasks then share them.

    Returns:
        Whether Ray was started here, and is to be shut down by the caller.

    Raises:
        UnavailableError: There is no cluster at the address.
        InvalidArgumentError: `address` is malformed, or Ray is connected elsewhere already.
    """
    ray = import_ray()
    if ray.is_initialized():
        _check_same_cluster(ray, address)
        return False
    if address is None:
        address = os.environ.get("RAY_ADDRESS") or "local"
    if address not in ("local", "auto") and "://" not in address:
        _check_reachable(address)
    options: dict[str, Any] = {"address": address, "log_to_driver": True, "logging_level": "warning"}
    if address == "local":
        options |= {"include_dashboard": False, "num_cpus": max(local_cpus, os.cpu_count() or 1)}
    try:
        ray.init(**(options | (init_options or {})))
    except (ConnectionError, ray.exceptions.RaySystemError, RuntimeError, ValueError) as error:
        raise UnavailableError(
            f"cannot join a Ray cluster at {address!r}: {error}; start one with `ray start --head`, "
            "or use address='local'"
        ) from error
    return address == "local"


def _check_same_cluster(ray: Any, address: str | None) -> None:
    current = ray.get_runtime_context().gcs_address
    if address is not None and ":" in address and "://" not in address and address != current:
        raise InvalidArgumentError(
            f"this process is connected to Ray at {current}, not {address}: call ray.shutdown() first"
        )


def _check_reachable(address: str) -> None:
    """Fail in seconds, with the address, where Ray itself would retry for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise InvalidArgumentError(f"{address!r} is not a cluster address: expected 'local', 'auto' or 'host:port'")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise UnavailableError(
            f"no Ray cluster answers at {address}: {error}; check the address, that `ray start --head` runs there, "
            "and that the port is open"
        ) from error
