"""`tf.train.Server`: one task of a distributed program, whose devices are actors on Ray."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tfray.actors.clusters.ray_runtime import connect, connect_to_running, import_ray
from tfray.actors.clusters.served_cluster import NAMESPACE, actor_name, server_wait_s
from tfray.errors import AlreadyExistsError, UnavailableError
from tfray.formats.cluster_spec import ClusterDef, ClusterSpec, ServerDef
from tfray.formats.files import current_folder
from tfray.framework.arguments import Count, checked
from tfray.ops.kernels.cpu_threads import thread_count
from tfray.options import ConfigProto

if TYPE_CHECKING:
    from tfray.actors.clusters.cluster import JobSpec

GPUS_VARIABLE: Final = "TFRAY_GPUS_PER_SERVER"
"""Environment variable: number of GPUs of a server whose `config` does not say it."""

PATH_VARIABLE: Final = "TFRAY_SERVER_PATH"
"""Environment variable: where a server's actors import from, when that is not where Ray's workers do."""

PREDECESSOR_S: Final = 15.0
"""Seconds that a server waits until Ray notices that an earlier server at the same address is gone."""

_running: Final[dict[str, Server]] = {}
"""Running servers by target. As in TensorFlow, they run until the process ends."""


class Server:
    """One task of a distributed program: it offers its devices to sessions of all tasks.

    Each device is a Ray actor on this machine that ends with this process. Sessions find it by the task's address,
    which only serves as a name. ``tf.Session(server.target)`` runs on the devices of all tasks of the cluster, with
    those of this task first. It shares the variables that live there with the sessions of other processes.

    All processes must be connected to the same Ray. `tfray launch` sees to that. Without it, ``RAY_ADDRESS`` is the
    address of Ray; if that is not set, the Ray that runs on this machine is taken.

    Args:
        server_or_cluster_def: The cluster: a `ClusterSpec`, what its constructor takes, or a `ServerDef`. The only task
            of a cluster may have port 0, and then has an address that no other server has.
        job_name: Job of this task; may be left out when the cluster has one job.
        task_index: Index of this task; may be left out when the job has one task.
        protocol: The beginning of the target; ``"grpc"`` by default.
        config: ``device_count`` says how many GPUs the task has. Without it ``TFRAY_GPUS_PER_SERVER`` decides, or there
            are none.
        start: Whether to start at once; otherwise call `start`.

    Raises:
        ValueError: The task is not in the cluster, or not said.
        UnavailableError: There is no Ray to join, or the actors do not start.
        AlreadyExistsError: There is a server at that address.
    """

    @checked
    def __init__(
        self,
        server_or_cluster_def: ServerDef | ClusterDef | ClusterSpec | Mapping[str, Any],
        job_name: str | None = None,
        task_index: Count | None = None,
        protocol: str | None = None,
        config: ConfigProto | None = None,
        start: bool = True,
    ) -> None:
        self._server_def = _definition(server_or_cluster_def, job_name, task_index, protocol)
        self._cluster = ClusterSpec(self._server_def.cluster)
        job, task = self._server_def.job_name, self._server_def.task_index
        self._address = self._cluster.task_address(job, task)
        gpus = (config.device_count if config else {}).get("GPU", int(os.environ.get(GPUS_VARIABLE) or 0))
        self._job = _one_task(gpus)
        self._devices = self._job.devices(job, task)
        self._actors: list[Any] = []
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: ConfigProto | None = None, start: bool = True) -> Server:
        """A server of its own cluster of one task, ``/job:local/task:0``; a Ray is started if there is none.

        Args:
            config: As of `Server`.
            start: As of `Server`.
        """
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)

    @property
    def server_def(self) -> ServerDef:
        """The cluster and this task as a message."""
        return self._server_def

    @property
    def target(self) -> str:
        """What to give to `tf.Session` for running on the cluster with this task's devices first."""
        return f"{self._server_def.protocol}://{self._address}"

    def start(self) -> None:
        """Start the task's actors. Starting twice does nothing."""
        if self._actors:
            return
        if sum(self._cluster.num_tasks(job) for job in self._cluster.jobs) == 1 and not os.environ.get("RAY_ADDRESS"):
            connect(None)
        else:
            connect_to_running()
        deadline = time.monotonic() + server_wait_s()
        self._actors = [self._create(device) for device in self._devices]
        ray = import_ray()
        try:
            ray.get([actor.served.remote() for actor in self._actors], timeout=max(1.0, deadline - time.monotonic()))
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as error:
            self._actors = []
            raise UnavailableError(f"the devices of {self.target} did not start: {error}") from error
        _running[self.target] = self

    def join(self) -> None:
        """Wait as long as the server lives, which is until the process is ended.

        Raises:
            UnavailableError: The actor of a device has died.
        """
        ray = import_ray()
        try:
            ray.get([actor.live.remote() for actor in self._actors])
        except ray.exceptions.RayActorError as error:
            reason = str(error).partition("\n")[0]
            raise UnavailableError(f"a device of {self.target} has died: {reason}") from error

    def stop(self) -> None:
        """End the server before its process ends: its devices are gone, with what they hold."""
        _running.pop(self.target, None)
        actors, self._actors = self._actors, []
        ray = import_ray()
        for actor in actors if ray.is_initialized() else ():
            ray.kill(actor)

    def _create(self, device: str) -> Any:
        """Create the actor of a device as soon as its name is free."""
        from tfray.actors.clusters.server_actor import ServerActor
        from tfray.actors.devices.device_actor import CONCURRENT_CALLS

        ray = import_ray()
        options = self._job.actor_options(device) | {
            "name": actor_name(self._address, device),
            "namespace": NAMESPACE,
            "max_concurrency": CONCURRENT_CALLS,
            "scheduling_strategy": ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=False
            ),
        }
        path = os.environ.get(PATH_VARIABLE)
        if path:
            options["runtime_env"] = {"env_vars": {"PYTHONPATH": path}}
        actor_class = ray.remote(ServerActor).options(**options)
        definition = self._server_def
        task = self._cluster.as_dict(), definition.job_name, definition.task_index, self._devices
        about = *task, thread_count(), current_folder()
        deadline = time.monotonic() + PREDECESSOR_S
        while True:
            try:
                return actor_class.remote(device, secrets.token_bytes(32), *about)
            except ValueError as error:  # the name is taken
                if time.monotonic() > deadline:
                    raise AlreadyExistsError(
                        f"there is a server at {self._address} already: end it, or choose another address"
                    ) from error
                time.sleep(0.2)


def _one_task(gpus: int) -> JobSpec:
    """What a task asks of Ray: only GPUs, as its process runs in any case."""
    from tfray.actors.clusters.cluster import JobSpec

    return JobSpec(1, num_cpus=0, num_gpus=gpus)


def _definition(
    server_or_cluster: Any, job_name: str | None, task_index: int | None, protocol: str | None
) -> ServerDef:
    """What the arguments of `Server` say, complete."""
    if isinstance(server_or_cluster, ServerDef):
        cluster = ClusterSpec(server_or_cluster.cluster)
        job_name = job_name or server_or_cluster.job_name
        task_index = server_or_cluster.task_index if task_index is None else task_index
        protocol = protocol or server_or_cluster.protocol
    else:
        cluster = ClusterSpec(server_or_cluster)
    if not job_name:
        if len(cluster.jobs) != 1:
            raise ValueError(f"the cluster has jobs {', '.join(cluster.jobs) or 'none'}: say by job_name which is this")
        job_name = cluster.jobs[0]
    if task_index is None:
        indices = cluster.task_indices(job_name)
        if len(indices) != 1:
            raise ValueError(f"job {job_name!r} has tasks {indices}: say by task_index which is this")
        task_index = indices[0]
    address = cluster.task_address(job_name, task_index)  # raises if there is no such task
    if address.endswith(":0") and sum(map(cluster.num_tasks, cluster.jobs)) == 1:
        # Any port, which nobody else has to know: a name of its own.
        host = address.removesuffix(":0")
        cluster = ClusterSpec({job_name: {task_index: f"{host}-{secrets.token_hex(4)}:0"}})
    return ServerDef(
        cluster=cluster.as_cluster_def(), job_name=job_name, task_index=task_index, protocol=protocol or "grpc"
    )
