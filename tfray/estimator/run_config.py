"""`RunConfig`: where and how an estimator runs. ``TF_CONFIG`` says which task of a cluster this process is."""

from __future__ import annotations

import copy
import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tfray.distribute.strategy import Strategy, several_processes
from tfray.distribute.task_environment import environment_of_task
from tfray.errors import ArgumentError
from tfray.formats.cluster_spec import ClusterSpec
from tfray.formats.files import PathLike, given_path
from tfray.framework.arguments import expectation
from tfray.library.platform import logging
from tfray.options import ConfigProto
from tfray.training.trainer.run_config import ScalingConfig

USE_DEFAULT: Final = object()
DEFAULT_SAVE_S: Final = 600

_REPLACEABLE: Final = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "device_fn",
    "protocol",
    "eval_distribute",
    "experimental_distribute",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
    "trainer",
)
_BOTH: Final = "save_checkpoints_steps and save_checkpoints_secs exclude each other: give one of them"


class TaskType:
    """The jobs of a cluster that trains estimators."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def _is_not_negative(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _takes_op(function: Any) -> bool:
    return callable(function) and [*inspect.signature(function).parameters] == ["op"]


def _is_strategy(value: Any) -> bool:
    return isinstance(value, Strategy)


def _is_distribute_config(value: Any) -> bool:
    strategies = [getattr(value, name, value) for name in ("train_distribute", "eval_distribute")]
    has_cluster = getattr(value, "remote_cluster", None) is not None
    return not has_cluster and all(each is None or _is_strategy(each) for each in strategies)


_CHECKS: Final[Mapping[str, tuple[Callable[[Any], Any], str]]] = {
    "model_dir": (bool, "a folder"),
    "save_summary_steps": (_is_not_negative, "0 or more"),
    "save_checkpoints_steps": (_is_not_negative, "0 or more"),
    "save_checkpoints_secs": (_is_not_negative, "0 or more"),
    "keep_checkpoint_max": (_is_not_negative, "0 or more"),
    "keep_checkpoint_every_n_hours": (_is_positive, "more than 0"),
    "log_step_count_steps": (_is_positive, "more than 0"),
    "tf_random_seed": (_is_integer, "an integer"),
    "experimental_max_worker_delay_secs": (_is_integer, "an integer"),
    "session_creation_timeout_secs": (_is_positive, "more than 0"),
    "device_fn": (_takes_op, "a function of one argument, op"),
    "protocol": (lambda protocol: protocol in ("grpc", "grpc+verbs"), "grpc or grpc+verbs"),
    "train_distribute": (_is_strategy, "a tf.distribute.Strategy"),
    "eval_distribute": (_is_strategy, "a tf.distribute.Strategy"),
    "experimental_distribute": (
        _is_distribute_config,
        "a tf.contrib.distribute.DistributeConfig without remote_cluster",
    ),
    "trainer": (lambda scaling: isinstance(scaling, ScalingConfig), "a tf.train.ScalingConfig"),
}

_SESSION_CONFIG: Final = expectation(ConfigProto | None)


class RunConfig:
    """Where and how an estimator runs.

    A process of a cluster learns from the environment variable ``TF_CONFIG``, JSON, which task it is, as in
    ``{"cluster": {"chief": ["h0:2222"], "ps": ["h1:2222"], "worker": ["h2:2222"]}, "task": {"type": "chief",
    "index": 0}}``. `tfray launch` sets it. The task ``evaluator`` is not in the cluster.

    Args:
        model_dir: Folder of checkpoints and event files.
        tf_random_seed: Seed of the graphs.
        save_summary_steps: Steps from one summary to the next; 0 or None for none.
        save_checkpoints_steps: Steps from one checkpoint to the next.
        save_checkpoints_secs: Seconds from one checkpoint to the next; 600 if neither is given. None and None save no
            checkpoints.
        session_config: Options of sessions.
        keep_checkpoint_max: How many of the newest checkpoints to keep; 0 or None for all.
        keep_checkpoint_every_n_hours: Of those that would be deleted, keep one for every so many hours.
        log_step_count_steps: Steps from one note of loss and speed to the next; None for none.
        train_distribute: A `tf.distribute.Strategy` that makes the replicas of a model in this process; each takes a
            batch of the input in every step.
        device_fn: Function from an operation to its device; by default variables go to the parameter servers.
        protocol: The beginning of servers' targets; ``"grpc"`` when None.
        eval_distribute: Likewise, for evaluations.
        experimental_distribute: A `tf.contrib.distribute.DistributeConfig`, which has the two strategies in place of
            the two arguments.
        experimental_max_worker_delay_secs: The most seconds that a worker waits before it begins; 60 when None. Worker
            n waits 5 (n + 1) seconds, as in TensorFlow, so that the first steps are not all made from the same values.
        session_creation_timeout_secs: Seconds that workers wait for the chief.
        trainer: Train on replicas of tfray's own, on Ray, as `tf.train.Trainer` does, and not in this process. tfray's
            addition.

    Raises:
        ValueError: A value, or ``TF_CONFIG``, does not make sense.
    """

    def __init__(
        self,
        model_dir: PathLike | None = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: Any = USE_DEFAULT,
        save_checkpoints_secs: Any = USE_DEFAULT,
        session_config: ConfigProto | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Strategy | None = None,
        device_fn: Callable[[Any], Any] | None = None,
        protocol: str | None = None,
        eval_distribute: Strategy | None = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: float = 7200,
        *,
        trainer: ScalingConfig | None = None,
    ) -> None:
        if save_checkpoints_steps is USE_DEFAULT and save_checkpoints_secs is USE_DEFAULT:
            save_checkpoints_steps, save_checkpoints_secs = None, DEFAULT_SAVE_S
        elif save_checkpoints_secs is USE_DEFAULT:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is USE_DEFAULT:
            save_checkpoints_steps = None
        environment = environment_of_task()
        self._values: dict[str, Any] = {}
        self._set(
            {
                "model_dir": _model_dir(environment, model_dir),
                "tf_random_seed": tf_random_seed,
                "save_summary_steps": save_summary_steps,
                "save_checkpoints_steps": save_checkpoints_steps,
                "save_checkpoints_secs": save_checkpoints_secs,
                "session_config": session_config,
                "keep_checkpoint_max": keep_checkpoint_max,
                "keep_checkpoint_every_n_hours": keep_checkpoint_every_n_hours,
                "log_step_count_steps": log_step_count_steps,
                "train_distribute": train_distribute,
                "device_fn": device_fn,
                "protocol": protocol,
                "eval_distribute": eval_distribute,
                "experimental_distribute": experimental_distribute,
                "experimental_max_worker_delay_secs": experimental_max_worker_delay_secs,
                "session_creation_timeout_secs": session_creation_timeout_secs,
                "trainer": trainer,
            }
        )
        self._service = environment.get("service")
        if self._service is not None and not isinstance(self._service, dict):
            raise TypeError(f"service in TF_CONFIG is {self._service!r}, expected a dictionary")
        self._take_place(environment)
        strategy = self.train_distribute
        if strategy is not None and self._num_worker_replicas > 1 and not strategy.extended.experimental_between_graph:
            raise ValueError(several_processes(strategy))
        if session_config is None and self._cluster_spec:
            self._values["session_config"] = self._session_config_of_task()

    def _set(self, values: Mapping[str, Any]) -> None:
        made = dict(self._values)
        for name, value in values.items():
            if name not in _REPLACEABLE:
                raise ValueError(f"RunConfig.replace cannot replace {name!r}; it can replace {', '.join(_REPLACEABLE)}")
            made[name] = value.item() if isinstance(value, np.generic) else value
        if values.get("save_checkpoints_steps") is not None and values.get("save_checkpoints_secs") is not None:
            raise ArgumentError(_BOTH)
        if values.get("save_checkpoints_steps") is not None:
            made["save_checkpoints_secs"] = None
        elif values.get("save_checkpoints_secs") is not None:
            made["save_checkpoints_steps"] = None
        for name, (check, expected) in _CHECKS.items():
            value = made[name]
            if value is not None and not check(value):
                raise ArgumentError(f"RunConfig: {name} is {value!r}, expected {expected}")
        for name in ("train_distribute", "eval_distribute"):
            strategy = getattr(made["experimental_distribute"], name, None)
            if strategy is None or strategy is made[name]:
                continue
            if made[name] is not None:
                raise ArgumentError(f"RunConfig: Either `{name}` or `experimental_distribute.{name}` can be set.")
            made[name] = strategy
        _SESSION_CONFIG.take("RunConfig: session_config", made["session_config"])
        self._values = made

    # -- the cluster -----------------------------------------------------------------------------

    def _take_place(self, environment: Mapping[str, Any]) -> None:
        """Learn from ``TF_CONFIG`` which task this is."""
        task = environment.get("task", {})
        self._cluster_spec = ClusterSpec(environment.get("cluster", {}))
        self._evaluation_master: Any = environment.get("eval_session_master", "")
        if not self._cluster_spec:
            self._task_type, self._task_id = task.get("type", TaskType.WORKER), int(task.get("index", 0))
            if (self._task_type, self._task_id) != (TaskType.WORKER, 0):
                raise ValueError(f"TF_CONFIG has no cluster: its task must be worker 0, not {task}")
            self._become_single(environment)
            return
        jobs = self._cluster_spec.jobs
        chief = TaskType.MASTER if TaskType.MASTER in jobs else TaskType.CHIEF
        if chief == TaskType.MASTER and TaskType.CHIEF in jobs:
            raise ValueError("TF_CONFIG: the cluster has both a master and a chief, expected one of them")
        self._task_type, self._task_id = _task(self._cluster_spec, task, chief)
        if self._task_type != TaskType.EVALUATOR:
            self._evaluation_master = ""
            self._master: Any = self._own_master(environment)
            self._num_ps_replicas = self._count(TaskType.PS)
            self._num_worker_replicas = self._count(TaskType.WORKER) + self._count(chief)
            self._global_id_in_cluster: int | None = self._global_id(chief)
        elif chief == TaskType.MASTER:
            raise ValueError("TF_CONFIG: a cluster with a master has no evaluator: the master evaluates")
        else:
            self._cluster_spec, self._master, self._global_id_in_cluster = ClusterSpec({}), "", None
            self._num_ps_replicas = self._num_worker_replicas = 0
        self._is_chief = self._task_type == chief

    def _become_single(self, environment: Mapping[str, Any]) -> None:
        self._master = environment.get("session_master", "")
        self._num_ps_replicas, self._num_worker_replicas = 0, 1
        self._global_id_in_cluster, self._is_chief = 0, True

    def _count(self, job: str) -> int:
        return self._cluster_spec.num_tasks(job) if job in self._cluster_spec.jobs else 0

    def _own_master(self, environment: Mapping[str, Any]) -> Any:
        if "session_master" in environment:
            return environment["session_master"]
        jobs = self._cluster_spec.jobs
        if len(jobs) == 1 and self._cluster_spec.num_tasks(jobs[0]) == 1:
            return ""
        return f"grpc://{self._cluster_spec.task_address(self._task_type, self._task_id)}"

    def _global_id(self, chief: str) -> int:
        """Number of this task among all: the chief first, the parameter servers last."""
        others = sorted(job for job in self._cluster_spec.jobs if job not in (chief, TaskType.PS))
        order = [chief, *others, TaskType.PS]
        before = order[: order.index(self._task_type)]
        return sum(map(self._count, before)) + self._task_id

    def _session_config_of_task(self) -> ConfigProto:
        """Options of a session that uses its own devices and those of the parameter servers."""
        own = {
            TaskType.MASTER: ["/job:ps", "/job:master"],
            TaskType.CHIEF: ["/job:ps", "/job:chief"],
            TaskType.WORKER: ["/job:ps", f"/job:worker/task:{self._task_id}"],
            TaskType.PS: ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
        }
        there = set(self._cluster_spec.jobs)
        filters = [each for each in own.get(self._task_type, []) if each.split("/")[1].removeprefix("job:") in there]
        return ConfigProto(allow_soft_placement=True, device_filters=filters)

    # -- what it says -----------------------------------------------------------------------------

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster; empty without one, and for the evaluator."""
        found: ClusterSpec = self._cluster_spec
        return found

    @property
    def device_fn(self) -> Any:
        """Function from an operation to its device, or None."""
        return self._values["device_fn"]

    @property
    def evaluation_master(self) -> Any:
        """Where evaluations run, as for `tf.Session`."""
        return self._evaluation_master

    @property
    def is_chief(self) -> bool:
        """Whether this process saves checkpoints and summaries."""
        found: bool = self._is_chief
        return found

    @property
    def master(self) -> Any:
        """Where training runs, as for `tf.Session`."""
        return self._master

    @property
    def num_ps_replicas(self) -> int:
        """Number of parameter servers."""
        found: int = self._num_ps_replicas
        return found

    @property
    def num_worker_replicas(self) -> int:
        """Number of workers, the chief included."""
        found: int = self._num_worker_replicas
        return found

    @property
    def task_id(self) -> int:
        """Index of this task in its job."""
        found: int = self._task_id
        return found

    @property
    def task_type(self) -> str:
        """Job of this task."""
        found: str = self._task_type
        return found

    @property
    def global_id_in_cluster(self) -> int | None:
        """Number of this task among all of the cluster: chief, workers, parameter servers; None for the evaluator."""
        found: int | None = self._global_id_in_cluster
        return found

    @property
    def experimental_max_worker_delay_secs(self) -> int | None:
        """The most seconds that a worker waits before it begins."""
        found: int | None = self._values["experimental_max_worker_delay_secs"]
        return found

    @property
    def tf_random_seed(self) -> int | None:
        """Seed of the graphs."""
        found: int | None = self._values["tf_random_seed"]
        return found

    @property
    def save_summary_steps(self) -> int | None:
        """Steps from one summary to the next."""
        found: int | None = self._values["save_summary_steps"]
        return found

    @property
    def save_checkpoints_secs(self) -> float | None:
        """Seconds from one checkpoint to the next."""
        found: float | None = self._values["save_checkpoints_secs"]
        return found

    @property
    def save_checkpoints_steps(self) -> int | None:
        """Steps from one checkpoint to the next."""
        found: int | None = self._values["save_checkpoints_steps"]
        return found

    @property
    def session_config(self) -> ConfigProto | None:
        """Options of sessions."""
        found: ConfigProto | None = self._values["session_config"]
        return found

    @property
    def keep_checkpoint_max(self) -> int | None:
        """How many of the newest checkpoints to keep."""
        found: int | None = self._values["keep_checkpoint_max"]
        return found

    @property
    def keep_checkpoint_every_n_hours(self) -> float | None:
        """Of checkpoints that would be deleted, one is kept for every so many hours."""
        found: float | None = self._values["keep_checkpoint_every_n_hours"]
        return found

    @property
    def session_creation_timeout_secs(self) -> float:
        """Seconds that workers wait for the chief."""
        found: float = self._values["session_creation_timeout_secs"]
        return found

    @property
    def log_step_count_steps(self) -> int | None:
        """Steps from one note of loss and speed to the next."""
        found: int | None = self._values["log_step_count_steps"]
        return found

    @property
    def model_dir(self) -> Any:
        """Folder of checkpoints and event files."""
        return self._values["model_dir"]

    @property
    def service(self) -> dict[str, Any] | None:
        """What ``TF_CONFIG`` says under ``service``."""
        found: dict[str, Any] | None = self._service
        return found

    @property
    def train_distribute(self) -> Strategy | None:
        """The strategy that makes the replicas of a model that is trained, or None."""
        found: Strategy | None = self._values["train_distribute"]
        return found

    @property
    def eval_distribute(self) -> Strategy | None:
        """The strategy that makes the replicas of a model that is evaluated, or None."""
        found: Strategy | None = self._values["eval_distribute"]
        return found

    @property
    def protocol(self) -> str | None:
        """The beginning of servers' targets, or None."""
        found: str | None = self._values["protocol"]
        return found

    @property
    def trainer(self) -> ScalingConfig | None:
        """How many replicas on Ray train, or None."""
        found: ScalingConfig | None = self._values["trainer"]
        return found

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other values.

        Args:
            **kwargs: Arguments of the constructor.

        Raises:
            ValueError: One of them does not exist, or makes no sense.
        """
        made = copy.copy(self)
        made._set(kwargs)
        return made

    def of_replica(self, index: int, replicas: int) -> RunConfig:
        """A copy for one of the replicas of a `tf.train.Trainer`: its `task_id` and `num_worker_replicas`."""
        made = copy.copy(self)
        made._task_id = made._global_id_in_cluster = index
        made._num_worker_replicas, made._is_chief = replicas, index == 0
        return made

    def __repr__(self) -> str:
        shown = {**self._values, "task_type": self._task_type, "task_id": self._task_id}
        return f"RunConfig({', '.join(f'{name}={value!r}' for name, value in shown.items() if value is not None)})"


def _model_dir(environment: Mapping[str, Any], model_dir: Any) -> str | None:
    if model_dir == "" or environment.get("model_dir") == "":
        raise ArgumentError("RunConfig: model_dir is empty, expected a folder, or None")
    given, theirs = None if model_dir is None else given_path(model_dir, "model_dir"), environment.get("model_dir")
    if given and theirs and given != theirs:
        raise ValueError(f"RunConfig: model_dir is {given!r}, and TF_CONFIG says {theirs!r}")
    if theirs:
        logging.info("model_dir is that of TF_CONFIG: %s", theirs)
    return given or theirs


def _task(cluster: ClusterSpec, task: Mapping[str, Any], chief: str) -> tuple[str, int]:
    """The task of this process in a cluster. Raises `ValueError` if there is no such task, or not one chief."""
    if chief not in cluster.jobs or cluster.num_tasks(chief) != 1:
        raise ValueError(f"TF_CONFIG: the cluster needs one task {chief!r}; it has jobs {', '.join(cluster.jobs)}")
    job, index = task.get("type"), task.get("index")
    if not job or index is None:
        raise ValueError(f"TF_CONFIG has a cluster, and so needs a task with type and index, not {dict(task)}")
    index = int(index)
    if index < 0:
        raise ValueError(f"TF_CONFIG: the task's index is {index}, expected 0 or more")
    if job != TaskType.EVALUATOR:
        cluster.task_address(job, index)  # raises if there is no such task
    return job, index
