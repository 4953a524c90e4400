"""Configurations of ``tf.contrib.learn``: a process's place in a cluster, and `RunConfig` with the older arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tfray.distribute.task_environment import environment_of_task
from tfray.errors import InvalidArgumentError
from tfray.estimator.run_config import USE_DEFAULT
from tfray.estimator.run_config import RunConfig as EstimatorConfig
from tfray.formats.cluster_spec import ClusterSpec
from tfray.options import ConfigProto, GPUOptions

_CHANGEABLE: Final = (
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
)
"""What may differ between two configurations of one `RunConfig.uid`, as a rule."""


class Environment:
    """Where a program runs, as ``TF_CONFIG`` says under ``environment``."""

    CLOUD = "cloud"
    GOOGLE = "google"
    LOCAL = "local"


class TaskType:
    """The jobs of a cluster."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"


class ClusterConfig:
    """Which task of a cluster this process is, as the environment variable ``TF_CONFIG`` says.

    Worker 0 is the chief; where ``environment`` is ``"cloud"``, master 0 is. Without a task this process is the chief.

    Args:
        master: Where training runs, as for `tf.Session`; the address of this task when None.
        evaluation_master: Where evaluations run.

    Raises:
        InvalidArgumentError: The cluster does not have this task.
    """

    def __init__(self, master: str | None = None, evaluation_master: str = "") -> None:
        self._given_master, self._evaluation_master = master, evaluation_master or ""
        self._take_place(environment_of_task())

    def _take_place(self, environment: Mapping[str, Any]) -> None:
        task = environment.get("task") or {}
        self._cluster_spec = ClusterSpec(environment.get("cluster") or {})
        self._environment = environment.get("environment", Environment.LOCAL)
        self._task_type, self._task_id = task.get("type"), int(task.get("index") or 0)
        self._master = self._address() if self._given_master is None else self._given_master
        sizes = {job: len(tasks) for job, tasks in self._cluster_spec.as_dict().items()}
        self._num_ps_replicas = sizes.get(TaskType.PS, 0)
        self._num_worker_replicas = sizes.get(TaskType.WORKER, 0) + sizes.get(TaskType.MASTER, 0)
        chief = TaskType.MASTER if self._environment == Environment.CLOUD else TaskType.WORKER
        self._is_chief = self._task_id == 0 and self._task_type in (None, chief)

    def _address(self) -> str:
        cluster = self._cluster_spec.as_dict()
        if not self._task_type or sum(map(len, cluster.values())) < 2:
            return ""
        where = f"in the cluster_spec:\n{self._cluster_spec}\n\nThe environment variable TF_CONFIG may say so."
        if self._task_type not in cluster:
            raise InvalidArgumentError(f"{self._task_type} is not a valid task_type {where}")
        if self._task_id not in self._cluster_spec.task_indices(self._task_type):
            raise InvalidArgumentError(
                f"{self._task_id} is not a valid task_id for task_type {self._task_type} {where}"
            )
        return f"grpc://{self._cluster_spec.task_address(self._task_type, self._task_id)}"

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster; empty without one."""
        return self._cluster_spec

    @property
    def environment(self) -> str:
        """One of `Environment`."""
        found: str = self._environment
        return found

    @property
    def evaluation_master(self) -> str:
        """Where evaluations run, as for `tf.Session`."""
        return self._evaluation_master

    @property
    def is_chief(self) -> bool:
        """Whether this process saves checkpoints and summaries."""
        return self._is_chief

    @property
    def master(self) -> str:
        """Where training runs, as for `tf.Session`."""
        return self._master

    @property
    def num_ps_replicas(self) -> int:
        """Number of parameter servers."""
        return self._num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """Number of workers, the masters included."""
        return self._num_worker_replicas

    @property
    def task_id(self) -> int:
        """Index of this task in its job."""
        return self._task_id

    @property
    def task_type(self) -> Any:
        """Job of this task, or None."""
        return self._task_type

    @staticmethod
    def get_task_id() -> int:
        """The index of this task, as ``TF_CONFIG`` says; 0 if it does not."""
        return int((environment_of_task().get("task") or {}).get("index") or 0)


class RunConfig(ClusterConfig, EstimatorConfig):
    """`tf.estimator.RunConfig` with the arguments, and the reading of ``TF_CONFIG``, of ``tf.contrib.learn``.

    Args:
        master: See `ClusterConfig`.
        num_cores: Threads, for `tf_config`.
        log_device_placement: Log the devices of operations; for `tf_config`.
        gpu_memory_fraction: Share of a GPU's memory; for `tf_config`.
        tf_random_seed: See `tf.estimator.RunConfig`, as for all that follow.
        save_summary_steps: Steps from one summary to the next.
        save_checkpoints_secs: Seconds from one checkpoint to the next; 600 if it is 0 and there are no steps.
        save_checkpoints_steps: Steps from one checkpoint to the next.
        keep_checkpoint_max: How many of the newest checkpoints to keep.
        keep_checkpoint_every_n_hours: Of those that would be deleted, keep one for every so many hours.
        log_step_count_steps: Steps from one note of the speed to the next.
        protocol: The beginning of servers' targets.
        evaluation_master: See `ClusterConfig`.
        model_dir: Folder of checkpoints and event files.
        session_config: Options of sessions.
        session_creation_timeout_secs: Seconds that workers wait for the chief.

    Raises:
        ValueError: A value, or ``TF_CONFIG``, does not make sense.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: float | None = 0,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: str | None = None,
        session_config: ConfigProto | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        self._given_master, self._evaluation_master = master, evaluation_master or ""
        unset = save_checkpoints_secs == 0
        EstimatorConfig.__init__(
            self,
            model_dir,
            tf_random_seed,
            save_summary_steps,
            USE_DEFAULT if unset and save_checkpoints_steps is None else save_checkpoints_steps,
            USE_DEFAULT if unset else save_checkpoints_secs,
            session_config,
            keep_checkpoint_max,
            keep_checkpoint_every_n_hours,
            log_step_count_steps,
            protocol=protocol,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        self._tf_config = ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )

    def _take_place(self, environment: Mapping[str, Any]) -> None:
        ClusterConfig._take_place(self, environment)
        there = self._task_type in self._cluster_spec.jobs
        self._global_id_in_cluster = self._global_id(TaskType.MASTER) if there else self._task_id

    @property
    def tf_config(self) -> ConfigProto:
        """The options of sessions that the constructor's older arguments say."""
        return self._tf_config

    def uid(self, whitelist: Sequence[str] | None = None) -> str:
        """A text that two configurations share if they mean the same run.

        Args:
            whitelist: Names of what may differ; when None, what does not change the results of a run.
        """
        left_out = set(_CHANGEABLE if whitelist is None else whitelist)
        said = {
            **self._values,
            "cluster_spec": sorted(self._cluster_spec.as_dict().items()),
            "environment": self._environment,
            "evaluation_master": self._evaluation_master,
            "is_chief": self._is_chief,
            "master": self._master,
            "service": self._service,
            "task_id": self._task_id,
            "task_type": self._task_type,
            "tf_config": str(self._tf_config),
        }
        return ", ".join(f"_{name}={value!r}" for name, value in sorted(said.items()) if name not in left_out)
