"""`Trainer`: a model function, an input function, and how far to scale them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfray.config import RunOptions
from tfray.errors import InvalidArgumentError, UnavailableError
from tfray.formats.files import PathLike
from tfray.formats.step_stats import RunMetadata
from tfray.framework.graph import DeviceFunction, Graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library import variables as variables_lib
from tfray.library.partitioned_variables import Partitioner, SaveSliceInfo, balancing_partitioner
from tfray.runtime.step_report import run_metadata
from tfray.session import Session
from tfray.training.device_setter import GreedyLoadBalancingStrategy, byte_size_load_fn, replica_device_setter
from tfray.training.inputs import Batch, InputContext, InputFunction, flatten_batch
from tfray.training.model import BuiltModel, ModeKeys, ModelFunction, build_model
from tfray.training.model_summaries import ModelSummaries, is_due
from tfray.training.run_checkpoints import RunCheckpoints, random_states, restore_random_states
from tfray.training.run_log import RunLog, run_folder
from tfray.training.run_statistics import RunStatistics

if TYPE_CHECKING:
    from tfray.actors.cluster import Cluster
    from tfray.actors.driver import ReplicaDriver, StepReport
    from tfray.placement.cost import Machine

DAY_S: Final = 86400.0

STEPS_AHEAD: Final = 2
"""Steps that devices have in hand, so that none waits for the driver between two."""

_FULL_TRACE = RunOptions(trace_level=RunOptions.FULL_TRACE)


@dataclass(frozen=True)
class ScalingConfig:
    """How many actors train, and how they work together.

    Attributes:
        workers: Number of replicas, backups included.
        parameter_servers: Number of shards that hold the variables; ``"auto"`` for as many as predicted steps profit
            from, on the nodes that there are.
        partitioner: Default partitioner of the model's variables; ``"auto"`` cuts those that are larger than a shard's
            fair share of the model. Results name the whole variables.
        backup_workers: Of the replicas, how many may be late in a step without anybody waiting for them: the
            gradients of the first ``workers - backup_workers`` are averaged, later ones are dropped.
        mode: ``"sync"``, or ``"async"``: each replica applies its gradients as it goes.
        staleness: In asynchronous training, by how many steps a replica may be ahead of the slowest one; None for any
            number.
        cpus_per_worker: CPUs that each worker asks of Ray, possibly a fraction.
        cpus_per_parameter_server: The same for parameter servers.
        worker_resources: Custom Ray resources that each worker asks for.
        scheduling_strategy: Ray's scheduling strategy for workers, such as ``"SPREAD"``.
        start_timeout_s: Seconds to wait for Ray to find room for all actors.
    """

    workers: int = 1
    parameter_servers: int | str = 1
    backup_workers: int = 0
    mode: str = "sync"
    staleness: int | None = None
    cpus_per_worker: float = 1.0
    cpus_per_parameter_server: float = 0.5
    worker_resources: Mapping[str, float] = field(default_factory=dict)
    scheduling_strategy: Any = None
    start_timeout_s: float = 60.0
    partitioner: Partitioner | str | None = None

    def __post_init__(self) -> None:
        for name in ("parameter_servers", "partitioner"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise InvalidArgumentError(f"{name} must not be {value!r}: the only word that it may be is 'auto'")
        if self.workers < 1 or (isinstance(self.parameter_servers, int) and self.parameter_servers < 1):
            raise InvalidArgumentError("training needs at least one worker and one parameter server")
        if not 0 <= self.backup_workers < self.workers:
            raise InvalidArgumentError(
                f"of {self.workers} workers, between 0 and {self.workers - 1} can be backups, not {self.backup_workers}"
            )
        if self.mode not in ("sync", "async"):
            raise InvalidArgumentError(f"mode must be 'sync' or 'async', not {self.mode!r}")
        if self.mode == "async" and self.backup_workers:
            raise InvalidArgumentError("asynchronous training waits for nobody: it has no backup workers")
        if self.staleness is not None and (self.mode != "async" or self.staleness < 0):
            raise InvalidArgumentError(
                f"staleness bounds asynchronous training, by 0 steps or more: it cannot be {self.staleness} in mode "
                f"{self.mode!r}"
            )

    @property
    def shards(self) -> int:
        """Number of parameter servers, where it is decided already."""
        if isinstance(self.parameter_servers, str):
            raise InvalidArgumentError("the number of parameter servers is not decided before training begins")
        return self.parameter_servers

    @property
    def required(self) -> int:
        """Replicas whose gradients count in a step."""
        return 1 if self.mode == "async" else self.workers - self.backup_workers


@dataclass(frozen=True)
class RunConfig:
    """How long and where to train.

    Attributes:
        steps: Number of training steps, over all replicas.
        address: Where Ray is: ``"local"``, ``"auto"``, ``"host:port"``, or None for what is there already.
        local: Train in this process, without Ray, on whole batches.
        seed: Graph-level seed of the model.
        max_worker_restarts: How many dead workers may be replaced.
        step_timeout_s: Seconds after which a step that does not end fails the run; None for no limit.
        on_step: Called with each `StepRecord`, for progress and logs.
        init_options: Further arguments of ``ray.init``, if this run connects to Ray.
        logdir: Folder for TensorBoard's event file; a new one in ``runs/`` (or ``$TFRAY_LOGDIR``) when ``""``, no
            event file when None.
        checkpoint_dir: Folder for checkpoints; None for none. A run that is started again on it goes on from the newest
            one, and one that loses a parameter server goes back to it.
        save_every_steps: Steps from one checkpoint to the next.
        save_every_s: Seconds from one checkpoint to the next. Without either, the interval that loses least time is
            chosen from the measured cost of a save and the failures seen so far (Young and Daly's formula).
        keep_checkpoints: How many of the newest to keep; 0 for all.
        resume: Begin from the newest checkpoint, if there is one; otherwise from new initial values.
        asynchronous_checkpoints: Write checkpoints in the background: training pauses only while the state is copied.
        mean_time_between_failures_s: What to assume before any failure was seen; a day for each process that holds
            state when None.
        max_recoveries: How often a run may go back to a checkpoint because a parameter server died.
        trace_steps: Numbers of steps to record, for `StepRecord.trace`.
        summary_steps: Steps from one time that the model's ``tf.summary`` operations are computed and logged to the
            next, on a cluster by a replica; None for never.
    """

    steps: int = 100
    address: str | None = None
    local: bool = False
    seed: int | None = None
    max_worker_restarts: int = 8
    step_timeout_s: float | None = None
    on_step: Callable[[StepRecord], None] | None = None
    init_options: dict[str, Any] | None = None
    logdir: PathLike | None = ""
    checkpoint_dir: PathLike | None = None
    save_every_steps: int | None = None
    save_every_s: float | None = None
    keep_checkpoints: int = 5
    resume: bool = True
    asynchronous_checkpoints: bool = True
    mean_time_between_failures_s: float | None = None
    max_recoveries: int = 8
    trace_steps: Collection[int] = ()
    summary_steps: int | None = 100

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InvalidArgumentError(f"steps must be at least 1, got {self.steps}")
        for name in ("save_every_steps", "save_every_s", "mean_time_between_failures_s", "summary_steps"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InvalidArgumentError(f"{name} must be above 0, got {value}")
        if self.save_every_steps is not None and self.save_every_s is not None:
            raise InvalidArgumentError("save_every_steps and save_every_s exclude each other: give one of them")
        if self.checkpoint_dir is None and (self.save_every_steps or self.save_every_s):
            raise InvalidArgumentError("there is no folder for checkpoints: give checkpoint_dir")


@dataclass(frozen=True)
class StepRecord:
    """What one training step reported.

    Attributes:
        step: Number of the step, from 1.
        metrics: Loss and metrics, averaged over the replicas that counted.
        duration_s: Seconds that the step took.
        live: Replicas alive.
        dropped: Late gradients dropped so far.
        members: Replicas that counted.
        trace: What the devices recorded, if the step is one of `RunConfig.trace_steps`.
        summary: What the model's ``tf.summary`` operations gave, serialised; empty in most steps, and in a `Result`.
    """

    step: int
    metrics: dict[str, float]
    duration_s: float
    live: int = 1
    dropped: int = 0
    members: tuple[int, ...] = (0,)
    staleness: int = 0
    replica_s: dict[int, float] = field(default_factory=dict)
    trace: RunMetadata | None = None
    summary: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Result:
    """What training left.

    Attributes:
        metrics: Loss and metrics of the last step.
        history: One `StepRecord` per step; of a run that was resumed, without the steps before.
        variables: Final value of every variable, by name.
        dropped: Late gradients that were dropped.
        duration_s: Seconds from the first step to the last.
        logdir: Folder of TensorBoard's event file, or None.
    """

    metrics: dict[str, float]
    history: list[StepRecord]
    variables: dict[str, np.ndarray[Any, Any]]
    dropped: int
    duration_s: float
    logdir: str | None = None

    @property
    def steps(self) -> int:
        """Number of steps that were applied."""
        return len(self.history)

    @property
    def statistics(self) -> RunStatistics:
        """Step times, of each replica too, and how many gradients were dropped or stale."""
        return RunStatistics.of(self.history)


class Trainer:
    """Trains a model function on data, in this process or on a Ray cluster.

    Args:
        model_fn: ``model_fn(features, labels)`` or ``model_fn(features, labels, mode)``: builds the model in the
            default graph and returns a `ModelSpec`. It runs in this process, once per graph.
        input_fn: ``input_fn(context)``: opens the input of one replica; called on its worker with an
            `InputContext`. Its iterable gives one (features, labels) per step.
        scaling: Actors.
        run: Length and place.

    Example:
        >>> trainer = tf.train.Trainer(
        ...     model_fn,
        ...     tf.train.array_input(images, labels, batch_size=128, shuffle_seed=0),
        ...     scaling=tf.train.ScalingConfig(workers=3, parameter_servers=2, backup_workers=1),
        ...     run=tf.train.RunConfig(steps=500),
        ... )
        >>> result = trainer.fit()
        >>> result.metrics["loss"]
    """

    def __init__(
        self,
        model_fn: ModelFunction,
        input_fn: InputFunction,
        scaling: ScalingConfig | None = None,
        run: RunConfig | None = None,
    ) -> None:
        self._model_fn = model_fn
        self._input_fn = input_fn
        self.scaling = scaling or ScalingConfig()
        self.run = run or RunConfig()

    def fit(self) -> Result:
        """Train to the end and return what came out.

        With a `RunConfig.checkpoint_dir`, training goes on from the newest checkpoint there, and SIGTERM saves before
        it ends the process with exit code 143.

        Raises:
            InvalidArgumentError: The model function, the input or the configuration cannot be used.
            UnavailableError: A parameter server died and there are no checkpoints, or no worker is left.
            OpError: What an operation, or the input function, raised on a worker; the message names it.
        """
        folder = run_folder(self.run.logdir)
        return self._fit_locally(folder) if self.run.local else self._fit_on_cluster(folder)

    def evaluate(self, result: Result, batches: Iterable[Batch]) -> dict[str, float]:
        """Loss and metrics of a trained model over `batches`, in this process.

        Each batch counts by its number of examples. The model function is called with `ModeKeys.EVAL` if it takes
        a mode.
        """
        batches = iter(batches)
        first = next(batches, None)
        if first is None:
            raise InvalidArgumentError("there is nothing to evaluate on: the input is empty")
        model = build_model(self._model_fn, first, ModeKeys.EVAL)
        totals: dict[str, float] = dict.fromkeys(model.fetches, 0.0)
        count = 0
        with Session(graph=model.graph) as session:
            _load_variables(model, session, result.variables)
            for batch in itertools.chain([first], batches):
                arrays = [array for _, array in flatten_batch(batch)]
                size = len(arrays[0])
                values = session.run(model.fetches, dict(zip(model.placeholders, arrays, strict=True)))
                totals = {name: total + float(values[name]) * size for name, total in totals.items()}
                count += size
        return {name: total / count for name, total in totals.items()}

    def graph(self) -> Graph:
        """The graph of the model, built for the first batch of the input."""
        return self.build().graph

    def build(self, device: DeviceFunction | None = None, partitioner: Partitioner | None = None) -> BuiltModel:
        """Build the model for the first batch of the input, under a device function: see `build_model`."""
        first = self._first_batch(iter(self._input_fn(self._context(0, 1))))
        return build_model(self._model_fn, first, seed=self.run.seed, device=device, partitioner=partitioner)

    def build_for_shards(self, machine: Machine | None = None) -> BuiltModel:
        """Decide what `scaling` leaves to be decided, and build the model for that many shards.

        Args:
            machine: Where to train; by default the nodes of the run's Ray cluster, or this machine.
        """
        if "auto" in (self.scaling.parameter_servers, self.scaling.partitioner):
            self.scaling = self._settled(machine)
        scaling = self.scaling
        strategy = GreedyLoadBalancingStrategy(scaling.shards)
        setter = replica_device_setter(scaling.shards, worker_device="", ps_strategy=strategy)
        assert not isinstance(scaling.partitioner, str)
        return self.build(setter, scaling.partitioner)

    def _settled(self, machine: Machine | None) -> ScalingConfig:
        """The scaling with everything decided."""
        from tfray.placement.cost import CostModel
        from tfray.training import step_plan

        scaling, model = self.scaling, self.build(step_plan.to_any_shard)
        if scaling.parameter_servers == "auto":
            nodes = step_plan.nodes_of(self.run.address, self.run.init_options)
            machine = machine or step_plan.machine_of(nodes, scaling.workers)
            cost = CostModel(machine, unknown_size=max(1, model.batch_size // scaling.workers))
            memory_bytes = min(node.memory_bytes for node in nodes) / 2
            count = step_plan.best_shard_count(model, scaling.workers, cost, shard_memory_bytes=memory_bytes)
            scaling = replace(scaling, parameter_servers=count)
        if scaling.partitioner == "auto":
            trained = [variable.op for variable in model.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)]
            total = int(sum(map(byte_size_load_fn, trained)))
            scaling = replace(scaling, partitioner=balancing_partitioner(total, scaling.shards))
        return scaling

    # -- in this process -------------------------------------------------------------------------

    def _fit_locally(self, folder: str | None) -> Result:
        batches = iter(self._input_fn(InputContext()))
        first = self._first_batch(batches)
        model = build_model(self._model_fn, first, seed=self.run.seed)
        checkpoints = self._checkpoints(model)
        with checkpoints, Session(graph=model.graph) as session, checkpoints.settled():
            session.run(_initializer(model))
            restore_random_states(session, checkpoints.restore(session))
            begin = checkpoints.step + 1
            again = itertools.chain([first], batches) if begin == 1 else self._input_fn(InputContext(first_step=begin))
            steps = self._local_steps(model, session, again, checkpoints, self._summaries(model, folder))
            return self._collect(model, steps, lambda: session.run(_variables(model)), folder)

    def _local_steps(
        self,
        model: BuiltModel,
        session: Session,
        batches: Iterable[Batch],
        checkpoints: RunCheckpoints,
        summaries: ModelSummaries,
    ) -> Generator[StepRecord, None, None]:
        fetches, merged, begin = [model.fetches, model.train_operation], summaries.all(), checkpoints.step + 1
        step = session.make_callable(fetches, model.placeholders)
        for number, batch in zip(range(begin, self.run.steps + 1), batches, strict=False):
            arrays = [array for _, array in flatten_batch(batch)]
            started, trace, summary = time.perf_counter(), None, []
            if number in self.run.trace_steps or summaries.due(number, begin):
                trace = RunMetadata() if number in self.run.trace_steps else None
                feeds = dict(zip(model.placeholders, arrays, strict=True))
                also = [merged] if summaries.due(number, begin) else []
                values, _, summary = session.run([*fetches, also], feeds, None if trace is None else _FULL_TRACE, trace)
            else:
                values, _ = step(*arrays)
            metrics = {name: float(value) for name, value in values.items()}
            checkpoints.step = number
            took_s = time.perf_counter() - started
            yield StepRecord(number, metrics, took_s, trace=trace, summary=b"".join(summary))
            if checkpoints.is_due():
                checkpoints.save(session, lambda: random_states(session))
                checkpoints.exit_if_preempted()
        checkpoints.save(session, lambda: random_states(session))

    # -- on a cluster ----------------------------------------------------------------------------

    def _fit_on_cluster(self, folder: str | None) -> Result:
        model = self.build_for_shards()
        final: dict[str, Any] = {}
        with self._start_cluster() as cluster, self._checkpoints(model) as checkpoints:
            summaries = self._summaries(model, folder)
            records = self._cluster_records(model, cluster, checkpoints, summaries, final)
            return self._collect(model, records, lambda: self._whole(model, final), folder)

    def _whole(self, model: BuiltModel, values: dict[str, Any]) -> dict[str, Any]:
        """The values of all variables, those that the trainer has cut joined again."""
        if self.scaling.partitioner is None:
            return values
        whole: dict[str, Any] = {}
        for name, variable in _variables(model).items():
            part = variable._save_slice_info
            if part is None:
                whole[name] = values[name]
                continue
            if part.full_name not in whole:
                whole[part.full_name] = np.empty(part.full_shape, values[name].dtype)
            whole[part.full_name][_place_of(part)] = values[name]
        return whole

    def _cluster_records(
        self,
        model: BuiltModel,
        cluster: Cluster,
        checkpoints: RunCheckpoints,
        summaries: ModelSummaries,
        final: dict[str, Any],
    ) -> Generator[StepRecord, None, None]:
        """Train to the end, going back to the newest checkpoint whenever a parameter server dies."""
        recoveries = 0
        while True:
            try:
                # Variables are read and written where they live: the death of a worker is no concern of theirs.
                with Session(cluster.only("ps"), graph=model.graph) as session, checkpoints.settled():
                    yield from self._cluster_steps(model, cluster, checkpoints, summaries, session)
                    final.update(session.run(_variables(model)))
                    return
            except UnavailableError as error:
                lost = (error.device or "").startswith("/job:ps/")
                if not lost or not checkpoints.active or recoveries >= self.run.max_recoveries:
                    raise
            recoveries += 1
            checkpoints.failed()
            cluster.replace_dead(self.scaling.start_timeout_s)

    def _cluster_steps(
        self,
        model: BuiltModel,
        cluster: Cluster,
        checkpoints: RunCheckpoints,
        summaries: ModelSummaries,
        session: Session,
    ) -> Generator[StepRecord, None, None]:
        session.run(_initializer(model))
        arrays = checkpoints.restore(session)
        if checkpoints.step >= self.run.steps:
            return
        begin, of_state = checkpoints.step + 1, summaries.of_state
        driver = self._driver(model, cluster, summaries, begin)
        if checkpoints.active:
            driver.restore_random_states(arrays)
        driver.hold(checkpoints.next_step)
        names = list(model.fetches)
        with closing(driver.run()) as reports:
            for report in reports:
                if report is None:  # no step is open
                    checkpoints.save(session, driver.random_states)
                    checkpoints.exit_if_preempted()
                    driver.go_on(checkpoints.next_step)
                    continue
                checkpoints.step = report.step
                record = _record(report, names)
                # Those of the batch come with the step of which they were asked, whichever place that took.
                due = summaries.due(report.step, begin) if summaries.of_batch is None else record.summary
                if of_state is not None and due:
                    record = replace(record, summary=record.summary + session.run(of_state))
                yield record
                if checkpoints.is_due():
                    driver.hold()
            checkpoints.save(session, driver.random_states)

    def _start_cluster(self) -> Cluster:
        from tfray.actors.cluster import Cluster, JobSpec

        scaling = self.scaling
        jobs: dict[str, int | JobSpec] = {
            "ps": JobSpec(scaling.shards, num_cpus=scaling.cpus_per_parameter_server),
            "worker": JobSpec(
                scaling.workers,
                num_cpus=scaling.cpus_per_worker,
                resources=scaling.worker_resources,
                scheduling_strategy=scaling.scheduling_strategy,
            ),
        }
        return Cluster(
            jobs,
            self.run.address,
            start_timeout_s=scaling.start_timeout_s,
            init_options=self.run.init_options,
        )

    def _driver(self, model: BuiltModel, cluster: Cluster, summaries: ModelSummaries, first_step: int) -> ReplicaDriver:
        from tfray.actors.driver import FaultPolicy, ReplicaDriver
        from tfray.actors.messages import REPLICA_DEVICE
        from tfray.actors.replica_protocol import AsyncProtocol, SyncProtocol
        from tfray.placement.replicate import compile_replica_step

        shards = [device for device in cluster.devices if device.startswith("/job:ps/")]
        workers = [device for device in cluster.devices if device.startswith("/job:worker/")]
        branch, fed = summaries.of_batch, [*model.placeholders]
        fetched = [*model.fetches.values()]
        if branch is not None:
            fetched, fed = [*fetched, branch.summary], [*fed, branch.wanted]
        compiled = compile_replica_step(fetched, [model.train_operation], fed, shards, REPLICA_DEVICE)
        scaling, steps = self.scaling, self.run.steps - first_step + 1
        return ReplicaDriver(
            cluster,
            compiled,
            workers,
            AsyncProtocol(steps, first_step, STEPS_AHEAD, scaling.staleness)
            if scaling.mode == "async"
            else SyncProtocol(scaling.required, steps, first_step, scaling.workers, STEPS_AHEAD),
            model.graph.functions,
            lambda replica, first: _InputOpener(
                self._input_fn, self._context(replica, first), compiled.feeds, summaries.every_steps
            ),
            FaultPolicy(max_restarts=self.run.max_worker_restarts, step_timeout_s=self.run.step_timeout_s),
            first_step,
            self.run.trace_steps,
            model.batch_size,
        )

    def _context(self, replica: int, first_step: int) -> InputContext:
        return InputContext(self.scaling.workers, replica, self.scaling.required, first_step)

    # -- both ------------------------------------------------------------------------------------

    def _summaries(self, model: BuiltModel, folder: str | None) -> ModelSummaries:
        return ModelSummaries(model, None if folder is None else self.run.summary_steps)

    def _checkpoints(self, model: BuiltModel) -> RunCheckpoints:
        run = self.run
        holders = 1 if run.local else self.scaling.shards + 1
        return RunCheckpoints(
            model.graph,
            run.checkpoint_dir,
            save_every_steps=run.save_every_steps,
            save_every_s=run.save_every_s,
            keep=run.keep_checkpoints,
            resume=run.resume,
            asynchronous=run.asynchronous_checkpoints,
            assumed_s=run.mean_time_between_failures_s or DAY_S / holders,
        )

    @staticmethod
    def _first_batch(batches: Iterator[Batch]) -> Batch:
        first = next(batches, None)
        if first is None:
            raise InvalidArgumentError("the input function gave no batch at all")
        return first

    def _collect(
        self,
        model: BuiltModel,
        records: Generator[StepRecord, None, None],
        read_variables: Callable[[], dict[str, Any]],
        folder: str | None,
    ) -> Result:
        history: list[StepRecord] = []
        started = time.perf_counter()
        # What the records hold open is closed with them, also when `on_step` raises.
        with RunLog(folder, model.graph) as log, closing(records):
            for record in records:
                while history and history[-1].step >= record.step:
                    history.pop()  # of steps that were lost
                history.append(replace(record, summary=b""))
                log.observe(record)
                if self.run.on_step is not None:
                    self.run.on_step(record)
        duration_s = time.perf_counter() - started
        last = history[-1] if history else StepRecord(0, {}, 0.0)
        return Result(last.metrics, history, read_variables(), last.dropped, duration_s, folder)


class _InputOpener:
    """Opens a replica's input on its worker: what gives the values that its plan is fed in a step."""

    def __init__(
        self, input_fn: InputFunction, context: InputContext, feeds: Sequence[int], summary_steps: int | None
    ) -> None:
        self._input_fn = input_fn
        self._context = context
        self._feeds = list(feeds)
        self._summary_steps = summary_steps

    def __call__(self) -> Callable[[int], list[Any]]:
        first, batches = self._context.first_step, iter(self._input_fn(self._context))

        def read(step: int) -> list[Any]:
            arrays = [np.asarray(array) for _, array in flatten_batch(next(batches))]
            arrays.append(np.array(is_due(step, first, self._summary_steps)))
            return [arrays[i] for i in self._feeds]

        return read


def _record(report: StepReport, names: Sequence[str]) -> StepRecord:
    metrics = {name: float(value) for name, value in zip(names, report.values, strict=False)}
    trace = run_metadata(report.records) if report.records else None
    summary = b"".join(np.asarray(value).item() for value in report.values[len(names) :])
    return StepRecord(
        report.step,
        metrics,
        report.duration_s,
        report.live,
        report.dropped,
        report.members,
        report.staleness,
        report.replica_s,
        trace,
        summary,
    )


def _initializer(model: BuiltModel) -> Any:
    with model.graph.as_default(), model.graph.control_dependencies(None):
        return [variables_lib.global_variables_initializer(), variables_lib.local_variables_initializer()]


def _variables(model: BuiltModel) -> dict[str, Any]:
    with model.graph.as_default():
        return {variable.op.name: variable for variable in variables_lib.global_variables()}


def _load_variables(model: BuiltModel, session: Session, values: Mapping[str, Any]) -> None:
    session.run(_initializer(model))
    for name, variable in _variables(model).items():
        part = variable._save_slice_info
        if name in values:
            variable.load(values[name], session)
        elif part is not None and part.full_name in values:
            variable.load(values[part.full_name][_place_of(part)], session)
        else:
            raise InvalidArgumentError(f"the result has no value for variable {name!r} of the model")


def _place_of(part: SaveSliceInfo) -> tuple[slice, ...]:
    ends = [offset + size for offset, size in zip(part.var_offset, part.var_shape, strict=True)]
    return tuple(map(slice, part.var_offset, ends))
