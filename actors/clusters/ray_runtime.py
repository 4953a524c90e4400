"""Connecting to Ray: an existing cluster, or one started on this machine for the purpose."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from tfray.actors.links.interrupts import InterruptedAfterwards
from tfray.actors.links.notices import notice
from tfray.errors import InvalidArgumentError, NotFoundError, UnauthenticatedError, UnavailableError

SYSTEM_CONFIG: Final = {"free_objects_batch_size": 1, "worker_niceness": 0}
"""Ray's settings for a cluster on which tfray trains.

The memory of an object that nobody refers to any more is freed at once. By default Ray collects a hundred objects, or
waits a second. Until then every step would fill other pages of the store. Pages that are touched for the first time
cost more than the copy itself, and all of them take a multiple of the memory.

Actors have the priority of any other process. By default Ray gives them niceness 15: beside a busy process of another
program an actor then has a thirtieth of a processor, and not half of it.
"""

_NO_CLIENT: Final = (
    "a program has to run on a machine of the cluster, where it exchanges tensors with its actors: hand it to "
    "`ray job submit`, or run it there with 'auto' or host:port as the address"
)
"""What to do instead of connecting as a Ray Client."""

AUTH_MODE: Final = "RAY_AUTH_MODE"
"""Environment variable of Ray: ``token``, ``disabled`` or ``k8s``."""

_TOKEN, _TOKEN_PATH = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_TOKEN_FILE: Final = "~/.ray/auth_token"


def import_ray() -> Any:
    """The ray module. Raises `NotFoundError` with the remedy when it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise NotFoundError(
            "running on a cluster needs Ray: pip install 'tfray[ray]' (a local session works without it)"
        ) from error
    return ray


def import_tune() -> Any:
    """The module of Ray Tune. Raises `NotFoundError` with the remedy when it is not installed."""
    import_ray()
    try:
        import ray.tune as tune
    except ImportError as error:
        raise NotFoundError(f"trials need Ray Tune: pip install 'tfray[tune]' ({error})") from error
    return tune


START_TRIES: Final = 4
"""How often a local Ray is started, which gives its processes half a minute each time, however busy the machine is."""


def connect(address: str | None, init_options: dict[str, Any] | None = None, local_cpus: int = 0) -> bool:
    """Make sure that this process is connected to Ray.

    Args:
        address: ``"local"`` starts Ray on this machine; ``"auto"`` joins a cluster that runs already;
            ``"host:port"`` joins that one; None joins whatever this process is connected to, or
            ``RAY_ADDRESS``, or else starts a local one.
        init_options: Further arguments of ``ray.init`` when it is called.
        local_cpus: CPUs that a Ray started here must offer, even if the machine has fewer: tasks then share them.

    A cluster that is joined is named on standard error, once. So is one to which the program had connected itself.

    Returns:
        Whether Ray was started here, and is to be shut down by the caller.

    Raises:
        UnavailableError: There is no cluster at the address.
        UnauthenticatedError: The cluster asks for a token that this process does not have.
        InvalidArgumentError: `address` is malformed, Ray is connected elsewhere, or this process is a Ray Client.
    """
    ray = import_ray()
    _check_form(address)
    if ray.is_initialized():
        _check_no_client(ray)
        _check_same_cluster(ray, address)
        _tell_of(ray, "uses the Ray cluster of this program")
        return False
    if address in (None, "auto"):  # as Ray itself has it
        address = os.environ.get("RAY_ADDRESS") or address or "local"
        _check_form(address)
    if address != "local" and (running := _running_address(address)) is not None:
        _check_reachable(running)
    options: dict[str, Any] = {"address": address, "log_to_driver": True, "logging_level": "warning"}
    if address == "local":
        options |= {"include_dashboard": False, "num_cpus": max(local_cpus, os.cpu_count() or 1)}
        options["_system_config"] = {
            name: value for name, value in SYSTEM_CONFIG.items() if f"RAY_{name}" not in os.environ
        }
    for further_tries in reversed(range(START_TRIES)):
        try:
            # Ctrl-C waits until Ray is connected: a half-connected one leaves processes behind, and crashes at exit.
            with InterruptedAfterwards(), _ended_quietly():
                ray.init(**(options | (init_options or {})))
            break
        except KeyboardInterrupt:
            ray.shutdown()
            raise
        except Exception as error:  # Ray raises a plain one
            ray.shutdown()
            end_half_started(error)
            if address != "local":
                raise UnavailableError(
                    f"cannot join a Ray cluster at {address!r}: {error}; start one with `ray start --head`, "
                    "or use address='local'"
                ) from error
            if "timed out" not in str(error) or not further_tries:
                raise UnavailableError(
                    f"Ray could not be started on this machine: {error}; is it overloaded, or its disk full?"
                ) from error
            notice("Ray did not start within its 30 s, perhaps because this machine is busy; trying again")
    if address != "local":
        _tell_of(ray, "joined the Ray cluster")
    _known.append(connection())
    return address == "local"


def end_half_started(error: BaseException) -> None:
    """End what Ray has started before it raised an error: it leaves these processes to themselves.

    They would take the machine's time from the next try, and from everybody else.
    """
    traceback, nodes = error.__traceback__, dict[int, Any]()
    while traceback is not None:
        owner = traceback.tb_frame.f_locals.get("self")
        if hasattr(owner, "kill_all_processes"):  # a `ray._private.node.Node`, of which nobody else has kept hold
            nodes[id(owner)] = owner
        traceback = traceback.tb_next
    for node in nodes.values():
        node.kill_all_processes(check_alive=False, allow_graceful=False)


def shipped(folder: Path | None) -> dict[str, Any]:
    """Arguments of ``ray.init`` that send a folder to the nodes, where tasks run in it."""
    return {} if folder is None else {"runtime_env": {"working_dir": str(folder.resolve())}}


def joins_cluster(address: str | None) -> bool:
    """Whether `connect` joins a Ray that runs, rather than start one."""
    return (os.environ.get("RAY_ADDRESS") or "local" if address is None else address) != "local"


def connect_to_running() -> None:
    """Make sure that this process is connected to a running Ray, which others can join. It never starts one.

    Raises:
        UnavailableError: There is none.
    """
    ray = import_ray()
    if ray.is_initialized():
        _check_no_client(ray)
        _tell_of(ray, "uses the Ray cluster of this program")
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
    """After the block, let SIGTERM end the process as Ray's handler does, but without printing each thread's stack."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, _end if former in (signal.SIG_DFL, None) else former)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def connection() -> tuple[str, str] | None:
    """Identity of this process's connection to Ray; None without one. Actors end with the connection that made them."""
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
        raise InvalidArgumentError(f"tfray cannot join {address!r}: {_NO_CLIENT}")
    host, colon, port = str(address).rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise InvalidArgumentError(f"{address!r} is not a cluster address: expected 'local', 'auto' or 'host:port'")


def _check_no_client(ray: Any) -> None:
    """Raise `InvalidArgumentError` in a process that is connected as a Ray Client: it has no node to exchange with."""
    if ray.util.client.ray.is_connected():
        raise InvalidArgumentError(f"this process is a Ray Client (ray.init('ray://...')): {_NO_CLIENT}")


def _check_same_cluster(ray: Any, address: str | None) -> None:
    current = ray.get_runtime_context().gcs_address
    if address not in (None, "local", "auto", current):
        raise InvalidArgumentError(
            f"this process is connected to Ray at {current}, not {address}: call ray.shutdown() first"
        )


def _check_reachable(address: str) -> None:
    """Raise `UnavailableError` within seconds if no cluster answers. Ray itself would retry for long.

    If the cluster asks for a token, it gets the one from the place where Ray looks, unless RAY_AUTH_MODE forbids that.
    """
    from tfray.actors.clusters.gcs_probe import Answer, probe  # sockets: most programs join no cluster

    try:
        answer = probe(address)
        if answer is Answer.REFUSED and os.environ.get(AUTH_MODE, "token").lower() in ("token", "disabled"):
            _use_token(address)
    except (OSError, OverflowError) as error:
        raise UnavailableError(
            f"no Ray cluster answers at {address}: {error}; check the address, that `ray start --head` runs there, "
            "and that the port is open"
        ) from error
    if answer is Answer.OTHER:
        raise UnavailableError(
            f"what answers at {address} is not a Ray cluster; give the host and port that `ray start --head` printed "
            "(6379 unless told otherwise; not the dashboard's, nor that of `ray://`)"
        )


def _use_token(address: str) -> None:
    """Make Ray use its token. Raises `UnauthenticatedError` if there is none, or the cluster asks for another."""
    from tfray.actors.clusters.gcs_probe import Answer, probe

    asks = f"the Ray cluster at {address} asks for a token"
    mode = os.environ.get(AUTH_MODE)
    if mode is not None and mode.lower() == "disabled":
        raise UnauthenticatedError(f"{asks}, and {AUTH_MODE}={mode} lets this process show none: unset it")
    source, token = _find_token()
    if not token:
        raise UnauthenticatedError(
            f"{asks}, and there is none in {source}: copy {_TOKEN_FILE} from a machine of the cluster, or set {_TOKEN} "
            "to what is in it"
        )
    if probe(address, token) is Answer.REFUSED:
        raise UnauthenticatedError(
            f"{asks}, and refuses the one in {source}: it must be that of the machine where `ray start --head` ran, in "
            f"its {_TOKEN_FILE} unless told otherwise"
        )
    if mode is None:
        os.environ[AUTH_MODE] = "token"
        with contextlib.suppress(ImportError, AttributeError):  # a Ray that has read its environment reads it again
            from ray._raylet import Config  # type: ignore[attr-defined]

            Config.initialize("")


def _find_token() -> tuple[str, str]:
    """The place of Ray's token, and the token, empty if there is none. Raises `UnauthenticatedError`."""
    if os.environ.get(_TOKEN):
        return _TOKEN, os.environ[_TOKEN].strip()
    path = os.environ.get(_TOKEN_PATH)
    try:
        return path or _TOKEN_FILE, Path(path or _TOKEN_FILE).expanduser().read_text().strip()
    except FileNotFoundError:
        return path or _TOKEN_FILE, ""
    except (OSError, ValueError) as error:
        raise UnauthenticatedError(f"the token in {path or _TOKEN_FILE} cannot be read: {error}") from error


def _running_address(address: str) -> str | None:
    """Address of the cluster that ``auto`` stands for; None if only Ray can tell."""
    if address != "auto":
        return address
    try:
        from ray._private.services import canonicalize_bootstrap_address

        return canonicalize_bootstrap_address("auto")
    except (ImportError, ConnectionError, ValueError):
        return None


_known: Final[list[tuple[str, str] | None]] = []
"""The connections of this process that need not be told: tfray has made them, or told of them."""


def _tell_of(ray: Any, what: str) -> None:
    """Print once which cluster this process is in: it may not be the one that the user meant.

    Tasks and actors print nothing: they are in the cluster of whoever has started them.
    """
    if connection() in _known or ray.get_runtime_context().worker.mode == ray.WORKER_MODE:
        return
    _known.append(connection())
    nodes = sum(node["Alive"] for node in ray.nodes())
    cpus = ray.cluster_resources().get("CPU", 0)
    notice(f"{what} at {ray_address()}: {nodes} node{'' if nodes == 1 else 's'}, {cpus:g} CPUs")
