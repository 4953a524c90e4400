"""Connecting to Ray: an existing cluster, or one started on this machine for the purpose."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from tfray.actors.interrupts import InterruptedAfterwards
from tfray.errors import InvalidArgumentError, NotFoundError, UnavailableError

CONNECT_TIMEOUT_S: Final = 5.0

_SYSTEM_CONFIG: Final = {"free_objects_batch_size": 1}
"""Memory of a tensor that nobody refers to any more is free at once.

Ray waits for a hundred objects or a second. Until then every step would fill other pages of the store, which costs
more than the copy itself when nobody has touched them yet, and takes a multiple of the memory.
"""

HTTP2_SETTINGS: Final = 4
"""Type of the frame with which both sides of HTTP/2, on which gRPC rests, begin (RFC 9113, section 3.4)."""

HTTP2_HEADER_BYTES: Final = 9
"""Length of a frame in three bytes, its type, its flags, and its stream in four."""

HTTP2_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, HTTP2_SETTINGS, 0, 0, 0, 0, 0])


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
    _check_form(address)
    if ray.is_initialized():
        _check_same_cluster(ray, address)
        return False
    if address is None:
        address = os.environ.get("RAY_ADDRESS") or "local"
        _check_form(address)
    if address not in ("local", "auto"):
        _check_reachable(address)
    options: dict[str, Any] = {"address": address, "log_to_driver": True, "logging_level": "warning"}
    if address == "local":
        options |= {"include_dashboard": False, "num_cpus": max(local_cpus, os.cpu_count() or 1)}
        options["_system_config"] = dict(_SYSTEM_CONFIG)
    try:
        # A Ray that is half connected leaves processes, and crashes at exit.
        with InterruptedAfterwards(), _ended_quietly():
            ray.init(**(options | (init_options or {})))
    except KeyboardInterrupt:
        ray.shutdown()
        raise
    except (ConnectionError, ray.exceptions.RaySystemError, RuntimeError, ValueError) as error:
        raise UnavailableError(
            f"cannot join a Ray cluster at {address!r}: {error}; start one with `ray start --head`, "
            "or use address='local'; if one runs there, it may ask for another token: RAY_AUTH_MODE and RAY_AUTH_TOKEN "
            "(or ~/.ray/auth_token) must be the cluster's"
        ) from error
    return address == "local"


def shipped(folder: Path | None) -> dict[str, Any]:
    """Arguments of ``ray.init`` that send a folder to the nodes, where tasks run in it."""
    return {} if folder is None else {"runtime_env": {"working_dir": str(folder.resolve())}}


def joins_cluster(address: str | None) -> bool:
    """Whether `connect` joins a Ray that runs, rather than start one."""
    return (os.environ.get("RAY_ADDRESS") or "local" if address is None else address) != "local"


def connect_to_running() -> None:
    """Make sure that this process is connected to a Ray that others can join: it starts none.

    Raises:
        UnavailableError: There is none.
    """
    if import_ray().is_initialized():
        return
    if os.environ.get("RAY_ADDRESS"):
        connect(None)
        return
    try:
        connect("auto")
    except UnavailableError as error:
        raise UnavailableError(
            "the processes of a cluster meet on Ray, and none runs here: start them by `tfray launch`, or run "
            "`ray start --head` first, or set RAY_ADDRESS to that of a cluster"
        ) from error


@contextlib.contextmanager
def _ended_quietly() -> Iterator[None]:
    """Let SIGTERM end the process from now on as Ray's handler would, which also prints where each thread is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, _end if former in (signal.SIG_DFL, None) else former)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def connection() -> tuple[str, str] | None:
    """Identity of this process's connection to Ray; None without one. Actors live no longer than theirs."""
    ray = import_ray()
    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context.gcs_address, context.get_job_id()


def ray_address() -> str:
    """The address at which other processes join the Ray to which this one is connected."""
    return str(import_ray().get_runtime_context().gcs_address)


def _check_form(address: str | None) -> None:
    if address in (None, "local", "auto"):
        return
    if "://" in str(address):
        raise InvalidArgumentError(
            f"tfray cannot join {address!r}: give host:port on a machine of the cluster, or hand the program to "
            "`ray job submit`"
        )
    host, colon, port = str(address).rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise InvalidArgumentError(f"{address!r} is not a cluster address: expected 'local', 'auto' or 'host:port'")


def _check_same_cluster(ray: Any, address: str | None) -> None:
    current = ray.get_runtime_context().gcs_address
    if address not in (None, "local", "auto", current):
        raise InvalidArgumentError(
            f"this process is connected to Ray at {current}, not {address}: call ray.shutdown() first"
        )


def _check_reachable(address: str) -> None:
    """Fail in seconds, with the address, where Ray itself would retry for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S) as connection:
            speaks = _speaks_http2(connection)
    except (OSError, OverflowError) as error:
        raise UnavailableError(
            f"no Ray cluster answers at {address}: {error}; check the address, that `ray start --head` runs there, "
            "and that the port is open"
        ) from error
    if not speaks:
        raise UnavailableError(
            f"what answers at {address} is not a Ray cluster; give the host and port that `ray start --head` printed "
            "(6379 unless told otherwise; not the dashboard's, nor that of `ray://`)"
        )


def _speaks_http2(connection: socket.socket) -> bool:
    """Whether the other side answers as servers of gRPC do: with settings of its own."""
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return True  # only Ray knows the certificates
    connection.sendall(HTTP2_PREFACE)
    header = b""
    try:
        while len(header) < HTTP2_HEADER_BYTES:
            received = connection.recv(HTTP2_HEADER_BYTES - len(header))
            if not received:
                return False
            header += received
    except (TimeoutError, ConnectionResetError):
        return False
    return header[3] == HTTP2_SETTINGS
