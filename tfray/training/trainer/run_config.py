"""How a `Trainer` trains, and what it reports: plain data."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from tfray.errors import InvalidArgumentError
from tfray.formats.files import PathLike, as_path, given_path
from tfray.formats.write_formats import TFRAY, WRITE_FORMATS
from tfray.framework.arguments import Count, NonNegative, OneOf, Positive, Seconds, checked
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.placement.contributions import BadGradients, ReplicaOptions, WireDtype
from tfray.training.input.inputs import InputContext
from tfray.training.trainer.callback import Callback
from tfray.training.trainer.step_history import StepRecord

ON_LOST_DATA: Final = ("warn", "stop")
"""What can be done when a part of the data is no longer read."""

Auto = Annotated[str, OneOf(("auto",))]


@checked
@dataclass(frozen=True)
class ScalingConfig:
    """How many actors train, and how they work together.

    Attributes:
        workers: Number of replicas, backups included. A pair ``(min, max)`` makes an *elastic* run: it begins with
            `min` workers and takes more as they come, up to `max`. It asks Ray, and so its autoscaler, for room for the
            missing workers all the time. It does not wait for workers that go, with their nodes or alone. Such changes
            neither lose nor repeat a step, except one that has no replica left to compute it.
        elastic_batch: How many examples count in a step of an elastic run. ``"constant"``: always the batch size of the
            input, divided among the replicas that are there; their number makes no difference to what is learned.
            ``"scaled"``: in proportion to the replicas, where the batch size is that of `min` workers; see
            `tf.train.batch_scale` for the learning rate.
        parameter_servers: Number of shards that hold the variables; ``"auto"`` chooses the number by predicted step
            times on the nodes that are there. With a pair ``(least, most)`` a run begins with `least` and takes more as
            Ray finds room for them, up to `most`; it asks Ray for the missing ones all the time. Between two steps the
            variables are spread anew, and training goes on as if there had been so many from the start. When one dies,
            the run goes back to its checkpoint with those that are left, if they are at least `least`. See also
            `Trainer.scale`. With 0 each worker holds a copy of the variables. Workers then reduce their gradients among
            themselves, by a ring all-reduce, and each makes the same updates: copies stay equal bit by bit, if the
            workers' processors round alike. A step needs all workers: such a run is synchronous, of a fixed number of
            workers, without backups, and it ends with the first input that ends. When a worker dies, or does not
            answer within `RunConfig.step_timeout_s`, another one is started and the run goes back to its checkpoint.
            Checkpoints are those of runs with parameter servers, and either kind of run goes on from them.
        replicated_shards: Whether each parameter server has a standby, which makes every update too, on another node if
            there is one. When one of the two dies, the other goes on: no step is lost, and nothing goes back to a
            checkpoint. Ray is asked for another one, which becomes the standby when it has come. Gradients are sent
            twice. When a shard and its standby die together, the run goes back to its checkpoint. Only variables that
            the trainer has placed may be on parameter servers; their number is fixed.
        partitioner: Default partitioner of the model's variables; ``"auto"`` cuts those that are larger than a shard's
            fair share of the model, with the largest number of shards. Results name the whole variables.
        backup_workers: How many of the replicas a step does not wait for: the gradients of the first
            ``workers - backup_workers`` are averaged, later ones are dropped.
        mode: ``"sync"``, or ``"async"``: each replica applies its gradients as it goes.
        staleness: How many steps a replica may be ahead of the slowest one, in asynchronous training; None for any
            number.
        cpus_per_worker: CPUs that each worker asks of Ray, possibly a fraction.
        gpus_per_worker: GPUs that each worker asks of Ray, or a fraction below 1 of one that workers share. A worker
            computes on them what they have kernels for, on the first unless the model asks for another (``/gpu:1``).
            What it reads, and what it sends to parameter servers, goes through its CPU. A worker on several GPUs may
            so compute parts of its batch on each. Training in this process, without Ray, takes what GPUs there are.
        cpus_per_parameter_server: The same for parameter servers.
        worker_resources: Custom Ray resources that each worker asks for.
        parameter_server_resources: The same for parameter servers, for instance to keep them on nodes that stay.
        wire_dtype: The dtype in which 32-bit floating-point tensors travel between replicas and parameter servers:
            ``"bfloat16"``, ``"float16"``, or None for their own. It holds for gradients, parameters and rows of
            embeddings, but not for scalars. Parameters are stored, and gradients added up, in 32 bits all the same.
            bfloat16 keeps the range of the numbers, with 8 significant bits. float16 keeps 11 significant bits; values
            above 65504 become infinite, and CPUs take several times as long to convert.
        combine_on_nodes: Whether workers of one node add up their gradients before these go to parameter servers on
            other nodes. Gradients then cross the network once for a node, and not once for each of its workers. The
            sums are the same but for rounding, which depends on which workers share a node. With backup workers, a
            node's gradients count together: a step may average more than ``workers - backup_workers``. Asynchronous
            runs, `wire_dtype` ``"float16"`` and runs that skip bad gradients never combine them.
        overlap_updates: Whether parameter servers update each variable of a mebibyte or more as soon as all its
            gradients are there, and send it back while those of other variables are still under way. A worker that
            dies in the middle of sending then counts for the variables of which it has sent everything; the others do
            without it. Each update is made once all the same. Without overlap, such a worker counts for nothing on the
            servers to which it has not sent everything. Asynchronous runs, runs with `replicated_shards` and those that
            skip bad gradients never overlap updates.
        scheduling_strategy: Ray's scheduling strategy for workers, such as ``"SPREAD"``. A mapping has one for the job
            ``"worker"`` and one for ``"ps"``; see `JobSpec.scheduling_strategy`.
        start_timeout_s: Seconds to wait for Ray to find room for all actors.
        store_bytes: Bytes of its node's object store that each actor may hold for the tensors that it sends; see
            `JobSpec.store_bytes`.
    """

    workers: Positive | tuple[Positive, Positive] = 1
    parameter_servers: Count | tuple[Positive, Positive] | Auto = 1
    backup_workers: Count = 0
    mode: Annotated[str, OneOf(("sync", "async"))] = "sync"
    staleness: Count | None = None
    cpus_per_worker: NonNegative = 1.0
    cpus_per_parameter_server: NonNegative = 0.5
    worker_resources: Mapping[str, NonNegative] = field(default_factory=dict)
    scheduling_strategy: Any = None
    start_timeout_s: Seconds = 60.0
    partitioner: Auto | Partitioner | None = None
    elastic_batch: Annotated[str, OneOf(("constant", "scaled"))] = "constant"
    parameter_server_resources: Mapping[str, NonNegative] = field(default_factory=dict)
    wire_dtype: WireDtype | None = None
    combine_on_nodes: bool = True
    overlap_updates: bool = True
    replicated_shards: bool = False
    store_bytes: Positive | None = None
    gpus_per_worker: NonNegative = 0

    def __post_init__(self) -> None:
        if self.gpus_per_worker > 1 and self.gpus_per_worker != int(self.gpus_per_worker):
            raise InvalidArgumentError(
                f"gpus_per_worker is {self.gpus_per_worker}: expected a whole number, or a fraction below 1"
            )
        if self.max_workers < self.min_workers:
            raise InvalidArgumentError(f"workers {self.workers}: the first number is the least, the second the most")
        if not isinstance(self.parameter_servers, str) and self.max_shards < self.shards:
            raise InvalidArgumentError(
                f"parameter_servers {self.parameter_servers}: the first number is the least, the second the most"
            )
        if self.replicated_shards and isinstance(self.parameter_servers, tuple):
            raise InvalidArgumentError(
                f"replicated_shards needs a fixed number of parameter servers, not {self.parameter_servers}"
            )
        if self.backup_workers >= self.min_workers:
            raise InvalidArgumentError(
                f"of {self.min_workers} workers, between 0 and {self.min_workers - 1} can be backups, not "
                f"{self.backup_workers}"
            )
        if self.mode == "async" and self.backup_workers:
            raise InvalidArgumentError("asynchronous training waits for nobody: it has no backup workers")
        if self.staleness is not None and self.mode != "async":
            raise InvalidArgumentError(
                f"staleness bounds asynchronous training: it cannot be {self.staleness} in mode {self.mode!r}"
            )
        if self.has_copies:
            self._check_copies()

    def _check_copies(self) -> None:
        """Check what a run without parameter servers cannot do."""
        reasons = {
            "mode": (self.mode == "async", "each update is made by all workers together"),
            "backup_workers": (self.backup_workers, "a sum that goes round needs every worker, none can be left out"),
            "workers": (self.elastic, "a sum that goes round needs the same workers in each step"),
            "replicated_shards": (self.replicated_shards, "there are no shards that could have standbys"),
        }
        for name, (is_wanted, reason) in reasons.items():
            if is_wanted:
                raise InvalidArgumentError(
                    f"{name}={getattr(self, name)!r} needs parameter servers, and parameter_servers is 0: {reason}"
                )

    @property
    def has_copies(self) -> bool:
        """Whether each worker holds a copy of the variables, and there are no parameter servers."""
        return self.parameter_servers == 0

    def check_run(self, run: RunConfig) -> None:
        """Raise `InvalidArgumentError` if a run cannot be scaled in this way."""
        if self.has_copies and run.bad_gradients == "skip" and not run.local:
            raise InvalidArgumentError(
                "bad_gradients='skip' needs parameter servers, and parameter_servers is 0: a sum that goes round "
                "cannot leave a worker out; 'stop' and 'report' are possible"
            )

    def replica_options(self, run: RunConfig) -> ReplicaOptions:
        """How the replicas of a run compute, and what they send."""
        return ReplicaOptions(run.accumulate, run.bad_gradients, self.wire_dtype, self.has_copies)

    def strategy_of(self, job: str) -> Any:
        """Ray's scheduling strategy of ``"worker"`` or ``"ps"``."""
        strategy = self.scheduling_strategy
        by_job = strategy if isinstance(strategy, Mapping) else {"worker": strategy}
        return by_job.get(job, "SPREAD" if job == "ps" and self.replicated_shards else None)

    @property
    def shards(self) -> int:
        """Number of parameter servers with which a run begins, once it has been decided."""
        return self._shards[0]

    @property
    def max_shards(self) -> int:
        """The largest number of parameter servers, once it has been decided."""
        return self._shards[1]

    @property
    def copies(self) -> int:
        """How many parameter servers hold each variable."""
        return 2 if self.replicated_shards else 1

    @property
    def _shards(self) -> tuple[int, int]:
        servers = self.parameter_servers
        if isinstance(servers, str):
            raise InvalidArgumentError("the number of parameter servers is not decided before training begins")
        return (servers, servers) if isinstance(servers, int) else servers

    @property
    def elastic(self) -> bool:
        """Whether the number of workers may vary."""
        return not isinstance(self.workers, int)

    @property
    def min_workers(self) -> int:
        """The least number of workers."""
        return self.workers if isinstance(self.workers, int) else self.workers[0]

    @property
    def max_workers(self) -> int:
        """The largest number of workers."""
        return self.workers if isinstance(self.workers, int) else self.workers[1]

    @property
    def required(self) -> int:
        """Replicas whose gradients count in a step; of an elastic run, the least number."""
        return self.required_of(self.min_workers)

    def required_of(self, replicas: int) -> int:
        """Replicas whose gradients count in a step while there are so many."""
        return 1 if self.mode == "async" else max(1, replicas - self.backup_workers)

    def input_context(self, replicas: int, index: int, first_step: int) -> InputContext:
        """The context of a replica's input function, while there are `replicas` of them."""
        required = self.required_of(replicas)
        if not self.elastic or self.mode == "async":
            return InputContext(replicas, index, required, first_step)
        if self.elastic_batch == "scaled":
            return InputContext(replicas, index, required, first_step, sharing=self.required)
        return InputContext(replicas, index, required, first_step, even=False)


@checked
@dataclass(frozen=True)
class RunConfig:
    """How long and where to train.

    Attributes:
        steps: Number of training steps, over all replicas.
        address: Where Ray is: ``"local"``, ``"auto"``, ``"host:port"``, or None for the Ray that is there already.
        local: Train in this process, without Ray, on whole batches.
        seed: Graph-level seed of the model.
        max_worker_restarts: How many dead workers may be replaced, where there are parameter servers.
        step_timeout_s: Seconds after which a step that does not end fails the run; None for no limit. The time that
            `on_step` and saves take does not count. A parameter server that answers nothing at all for so many seconds,
            or 120 without it, counts as dead, whatever waits for it: the start of the variables, a step, a save, or the
            last read of the values. So does a worker for which a step waits. One that is at work answers, however long
            that takes.
        on_step: Called with each `StepRecord`, for progress and logs.
        callbacks: What else hears of the run: its start and end, steps, checkpoints, lost workers; see `Callback`.
        init_options: Further arguments of ``ray.init``, if this run connects to Ray.
        logdir: Folder for TensorBoard's event file. When ``""``, it is that of `storage_path`, or else a new one in
            ``runs/`` (or ``$TFRAY_LOGDIR``). None for no event file.
        checkpoint_dir: Folder for checkpoints. A run that is started again on it goes on from the newest one, and one
            that loses a parameter server goes back to it. One run at a time saves there. None for that of
            `storage_path`; without that either there are no checkpoints.
        storage_path: Folder, or URI, of all that runs leave behind, as Ray Train has it. A run's checkpoints are in
            ``storage_path/name/checkpoints``, its event file in ``storage_path/name/logs``. It stands for
            `checkpoint_dir` and `logdir`: giving a path for one of them too is an error, but ``logdir=None`` is not.
        name: Name of the run: in `storage_path`, and of its actors in Ray's dashboard. A run that is started again with
            the same `storage_path` and name goes on. None makes up a name with the time when there is a
            `storage_path`; this configuration keeps it.
        save_every_steps: Steps from one checkpoint to the next.
        save_every_s: Seconds from one checkpoint to the next. Without either, the interval that loses least time is
            chosen from the measured cost of a save and the failures seen so far (Young and Daly's formula).
        keep_checkpoints: How many of the newest to keep; 0 for all.
        resume: Whether to begin from the newest checkpoint if there is one. Otherwise the run begins from new initial
            values. If the newest is damaged, the run warns, and takes the one before it.
        resume_from: A checkpoint to begin from instead, or a folder, for its newest one, at each start of the run.
        checkpoint_format: ``"tfray"``, or ``"tensorflow"`` for checkpoints that TensorFlow reads; the run goes on from
            either.
        asynchronous_checkpoints: Write checkpoints in the background: training pauses only while the state is copied.
        mean_time_between_failures_s: Mean time between failures to assume before any was seen, in seconds. None assumes
            that each process which holds state fails once a day.
        max_recoveries: How often a run may go back to a checkpoint because a parameter server died; without parameter
            servers, because a worker did.
        trace_steps: Numbers of steps to record, for `StepRecord.trace`.
        accumulate: How many batches of the input a replica computes for a step. It sends the mean of their gradients,
            as if it had read one batch of all their examples. Except for the input, it needs the memory of one batch
            only. An input's ``batch_size`` is that of one of the batches. A step that finds fewer batches is not taken.
            Other updates of variables, such as the moving averages of a batch normalisation, are averaged over the
            batches like gradients; so are the loss and the metrics.
        bad_gradients: What to do when a gradient, or another value from which a variable is updated, has elements that
            are NaN or infinite. ``"report"``: train on, and tell in `StepRecord.bad_gradients`. ``"skip"``: tell, and
            leave the replica out. The step applies the mean of the others, or nothing if there is no other. Such an
            empty step is one of the run's `steps` all the same. But ``global_step``, and all else that the training
            operation updates from what replicas compute, stays as it is, as with TensorFlow's loss scaling.
            ``"stop"``: end the run with an error that names step, replica and variable, before anything is applied.
            None does not check, as TensorFlow does not: a check reads every gradient once more.
        on_lost_data: What to do when a part of the data is no longer read while training goes on. That is so when the
            worker of a replica has died and is not replaced, and, in synchronous training, when the input of a replica
            has ended before the others'. ``"warn"`` says so and trains on. ``"stop"`` ends the run with a
            `DataLossError`, after a checkpoint if there is a folder; up to two steps may have been taken without the
            replica by then. An elastic run shares the data of a dead worker among the others: that is no loss.
            The replicas of any run share the rows of `datasets` in this way; but the rows that a dead worker had taken,
            and had not trained on, are lost.
        summary_steps: The model's ``tf.summary`` operations are computed and logged once in so many steps, on a cluster
            by a replica; None for never.
    """

    steps: Positive = 100
    address: str | None = None
    local: bool = False
    seed: int | None = None
    max_worker_restarts: Count = 8
    step_timeout_s: Seconds | None = None
    on_step: Callable[[StepRecord], None] | None = None
    init_options: dict[str, Any] | None = None
    logdir: PathLike | None = ""
    checkpoint_dir: PathLike | None = None
    save_every_steps: Positive | None = None
    save_every_s: Seconds | None = None
    keep_checkpoints: Count = 5
    resume: bool = True
    asynchronous_checkpoints: bool = True
    mean_time_between_failures_s: Seconds | None = None
    max_recoveries: Count = 8
    trace_steps: Collection[int] = ()
    summary_steps: Positive | None = 100
    accumulate: Positive = 1
    bad_gradients: BadGradients | None = None
    on_lost_data: Annotated[str, OneOf(ON_LOST_DATA)] = "warn"
    resume_from: PathLike | None = None
    checkpoint_format: Annotated[str, OneOf(WRITE_FORMATS)] = TFRAY
    callbacks: Sequence[Callback] = ()
    storage_path: PathLike | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        for name in ("checkpoint_dir", "resume_from", "storage_path"):
            if getattr(self, name) is not None:
                given_path(getattr(self, name), name)
        if self.logdir not in (None, ""):
            given_path(self.logdir, "logdir")
        self._check_storage()
        has_folder = self.checkpoint_folder is not None
        if self.resume_from is not None and not (has_folder and self.resume):
            raise InvalidArgumentError("resume_from says where to resume: it needs checkpoint_dir, and resume=True")
        if self.save_every_steps is not None and self.save_every_s is not None:
            raise InvalidArgumentError("save_every_steps and save_every_s exclude each other: give one of them")
        if not has_folder and (self.save_every_steps or self.save_every_s):
            raise InvalidArgumentError("there is no folder for checkpoints: give checkpoint_dir or storage_path")

    def _check_storage(self) -> None:
        """Check the name and what stands beside `storage_path`, and make up a name if it needs one."""
        if self.name is not None and not re.fullmatch(r"[^/\s]+", self.name):
            raise InvalidArgumentError(f"the name of a run is that of a folder, without '/' and spaces: {self.name!r}")
        if self.storage_path is None:
            return
        for name in ("checkpoint_dir", "logdir"):
            if getattr(self, name) not in (None, ""):
                raise InvalidArgumentError(
                    f"storage_path={self.storage_path!r} and {name}={getattr(self, name)!r} both say where the run's "
                    f"files go: give one of them (the run has a folder in storage_path, see its name)"
                )
        if self.name is None:
            object.__setattr__(self, "name", f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}")

    @property
    def checkpoint_folder(self) -> str | None:
        """Where checkpoints are, by `checkpoint_dir` or `storage_path`; None if there are none."""
        return self._stored("checkpoints") if self.checkpoint_dir is None else as_path(self.checkpoint_dir)

    @property
    def log_folder(self) -> PathLike | None:
        """What stands for `logdir` when that is ``""`` and there is a `storage_path`; otherwise `logdir`."""
        return (self._stored("logs") or "") if self.logdir == "" else self.logdir

    def _stored(self, what: str) -> str | None:
        return None if self.storage_path is None else f"{as_path(self.storage_path).rstrip('/')}/{self.name}/{what}"
