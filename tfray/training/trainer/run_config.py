"""How a `Trainer` trains, and what it reports: plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.files import PathLike, given_path
from tfray.formats.write_formats import TFRAY, WRITE_FORMATS
from tfray.framework.arguments import Count, NonNegative, OneOf, Positive, Seconds, checked
from tfray.library.inspect.notebook import chosen, curves_html
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.placement.contributions import BadGradients, ReplicaOptions, WireDtype
from tfray.training.input.inputs import InputContext
from tfray.training.trainer.run_events import RunEvent
from tfray.training.trainer.run_statistics import RunStatistics
from tfray.training.trainer.step_history import StepHistory, StepRecord

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
            times on the nodes that are there.
        partitioner: Default partitioner of the model's variables; ``"auto"`` cuts those that are larger than a shard's
            fair share of the model. Results name the whole variables.
        backup_workers: How many of the replicas a step does not wait for: the gradients of the first
            ``workers - backup_workers`` are averaged, later ones are dropped.
        mode: ``"sync"``, or ``"async"``: each replica applies its gradients as it goes.
        staleness: How many steps a replica may be ahead of the slowest one, in asynchronous training; None for any
            number.
        cpus_per_worker: CPUs that each worker asks of Ray, possibly a fraction.
        cpus_per_parameter_server: The same for parameter servers.
        worker_resources: Custom Ray resources that each worker asks for.
        parameter_server_resources: The same for parameter servers, for instance to keep them on nodes that stay.
        wire_dtype: The dtype in which 32-bit floating-point tensors travel between replicas and parameter servers:
            ``"bfloat16"``, ``"float16"``, or None for their own. It holds for gradients, parameters and rows of
            embeddings, but not for scalars. Parameters are stored, and gradients added up, in 32 bits all the same.
            bfloat16 keeps the range of the numbers, with 8 significant bits. float16 keeps 11 significant bits; values
            above 65504 become infinite, and CPUs take several times as long to convert.
        scheduling_strategy: Ray's scheduling strategy for workers, such as ``"SPREAD"``.
        start_timeout_s: Seconds to wait for Ray to find room for all actors.
    """

    workers: Positive | tuple[Positive, Positive] = 1
    parameter_servers: Positive | Auto = 1
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

    def __post_init__(self) -> None:
        if self.max_workers < self.min_workers:
            raise InvalidArgumentError(f"workers {self.workers}: the first number is the least, the second the most")
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

    def replica_options(self, run: RunConfig) -> ReplicaOptions:
        """How the replicas of a run compute, and what they send."""
        return ReplicaOptions(run.accumulate, run.bad_gradients, self.wire_dtype)

    @property
    def shards(self) -> int:
        """Number of parameter servers, once it has been decided."""
        if isinstance(self.parameter_servers, str):
            raise InvalidArgumentError("the number of parameter servers is not decided before training begins")
        return self.parameter_servers

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
        max_worker_restarts: How many dead workers may be replaced.
        step_timeout_s: Seconds after which a step that does not end fails the run; None for no limit. The time that
            `on_step` and saves take does not count.
        on_step: Called with each `StepRecord`, for progress and logs.
        init_options: Further arguments of ``ray.init``, if this run connects to Ray.
        logdir: Folder for TensorBoard's event file; a new one in ``runs/`` (or ``$TFRAY_LOGDIR``) when ``""``, no
            event file when None.
        checkpoint_dir: Folder for checkpoints; None for none. A run that is started again on it goes on from the newest
            one, and one that loses a parameter server goes back to it. One run at a time saves there.
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
        max_recoveries: How often a run may go back to a checkpoint because a parameter server died.
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

    def __post_init__(self) -> None:
        for name in ("checkpoint_dir", "resume_from"):
            if getattr(self, name) is not None:
                given_path(getattr(self, name), name)
        if self.logdir not in (None, ""):
            given_path(self.logdir, "logdir")
        if self.resume_from is not None and (self.checkpoint_dir is None or not self.resume):
            raise InvalidArgumentError("resume_from says where to resume: it needs checkpoint_dir, and resume=True")
        if self.save_every_steps is not None and self.save_every_s is not None:
            raise InvalidArgumentError("save_every_steps and save_every_s exclude each other: give one of them")
        if self.checkpoint_dir is None and (self.save_every_steps or self.save_every_s):
            raise InvalidArgumentError("there is no folder for checkpoints: give checkpoint_dir")


@dataclass(frozen=True, repr=False)
class Result:
    """What training has produced.

    Attributes:
        metrics: Loss and metrics of the last step.
        history: A sequence with one `StepRecord` per step. A resumed run has only the steps since it was resumed.
        variables: Final value of every variable, by name.
        dropped: Late gradients that were dropped.
        duration_s: Seconds from the first step to the last.
        logdir: Folder of TensorBoard's event file, or None.
        events: What happened beside the steps: workers replaced, data lost, and so on.
    """

    metrics: dict[str, float]
    history: StepHistory
    variables: dict[str, np.ndarray[Any, Any]]
    dropped: int
    duration_s: float
    logdir: str | None = None
    events: Sequence[RunEvent] = ()

    @property
    def steps(self) -> int:
        """Number of steps that were applied."""
        return len(self.history)

    @property
    def statistics(self) -> RunStatistics:
        """Step times, also of each replica, and how often gradients, workers or data were lost."""
        return RunStatistics.of(self.history, self.events)

    def _repr_html_(self) -> str:
        """The curves of loss, metrics and step times, as a notebook shows them."""
        records = [self.history[position] for position in chosen(len(self.history))]
        curves = {name: [record.metrics.get(name, math.nan) for record in records] for name in self.metrics}
        curves["milliseconds per step"] = [record.duration_s * 1e3 for record in records]
        title = f"{self.steps} steps in {self.duration_s:.1f} s, {self.dropped} late gradients dropped"
        return curves_html(title, [record.step for record in records], curves)

    def __repr__(self) -> str:
        size_bytes = sum(array.nbytes for array in self.variables.values())
        return (
            f"Result(metrics={self.metrics}, history={self.history}, "
            f"variables=<{len(self.variables)} of {size_bytes:,} bytes>, dropped={self.dropped}, "
            f"duration_s={self.duration_s:.6g}, logdir={self.logdir!r}, events=<{len(self.events)}>)"
        )
