"""A `Trainer`'s run on a cluster: drives the replicas, saves, recovers, and follows the number of workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tfray.actors.clusters.cluster import Cluster, JobSpec
from tfray.actors.clusters.remote_runner import RemoteRunner
from tfray.actors.links.messages import InputShare
from tfray.actors.links.silence import SILENCE_S
from tfray.actors.replicas.dataset_feeds import FedRows, end_feeds, start_feeds
from tfray.actors.replicas.driver import ReplicaDriver
from tfray.actors.replicas.membership import Elasticity, FaultPolicy, WorkerEvent
from tfray.actors.replicas.replica_protocol import AsyncProtocol, ReplicaProtocol, SyncProtocol
from tfray.actors.replicas.ring_driver import RingDriver
from tfray.actors.replicas.step_in_flight import StepReport
from tfray.errors import DataLossError, UnavailableError
from tfray.library.platform import logging
from tfray.options import ConfigProto
from tfray.placement.replicate import REPLICA_DEVICE, CompiledReplicaStep, compile_replica_step
from tfray.runtime.step_report import run_metadata
from tfray.session import Session
from tfray.training.input.dataset_shard import DatasetShard
from tfray.training.input.inputs import BatchForm, InputContext, InputFunction, open_input
from tfray.training.trainer.bad_gradients import BadGradientsWarning
from tfray.training.trainer.batch_scale import scale_variable
from tfray.training.trainer.callback import RunCallbacks, tell
from tfray.training.trainer.model import BuiltModel
from tfray.training.trainer.model_summaries import ModelSummaries, is_due
from tfray.training.trainer.run_checkpoints import RunCheckpoints
from tfray.training.trainer.run_config import RunConfig, ScalingConfig
from tfray.training.trainer.run_events import LOST_DATA, REPLACEMENT, ROLLBACK, SCALING, STANDBY, RunEvent, RunEvents
from tfray.training.trainer.shard_placement import ShardPlacement
from tfray.training.trainer.shard_scaling import ShardScaling
from tfray.training.trainer.shard_standbys import ShardStandbys
from tfray.training.trainer.step_history import StepRecord
from tfray.training.trainer.trained_variables import initializer, variables_of, whole_values
from tfray.training.trainer.worker_copies import WorkerCopies

STEPS_AHEAD: Final = 2
"""How many steps are handed out ahead: with two, no device waits for the driver between steps."""


def start_cluster(scaling: ScalingConfig, run: RunConfig) -> Cluster:
    """Start the parameter servers and workers. For an elastic run that is the least number of workers."""
    ps = JobSpec(
        max(1, scaling.shards * scaling.copies),
        num_cpus=scaling.cpus_per_parameter_server,
        resources=scaling.parameter_server_resources,
        scheduling_strategy=scaling.strategy_of("ps"),
        store_bytes=scaling.store_bytes,
    )
    worker = JobSpec(
        scaling.min_workers,
        num_cpus=scaling.cpus_per_worker,
        own_gpus=scaling.gpus_per_worker,
        resources=scaling.worker_resources,
        scheduling_strategy=scaling.strategy_of("worker"),
        store_bytes=scaling.store_bytes,
    )
    return Cluster(
        {"worker": worker} if scaling.has_copies else {"ps": ps, "worker": worker},
        run.address,
        start_timeout_s=scaling.start_timeout_s,
        init_options=run.init_options,
        name=run.name or "run",
        silence_s=run.step_timeout_s or SILENCE_S,
    )


class ClusterTraining:
    """One run of a model on a cluster.

    Args:
        model: The model, built for the cluster's parameter servers.
        input_fn: Opens the input of a replica.
        datasets: Datasets of Ray whose rows the replicas share, by name.
        scaling: The number of actors, and how they work together.
        run: The configuration of the run.
        cluster: The actors.
        checkpoints: The checkpoints of the run.
        summaries: The model's summaries.
        events: Takes what happens beside the steps.
        heard: The callbacks of the run.
    """

    def __init__(
        self,
        model: BuiltModel,
        *,
        input_fn: InputFunction,
        datasets: Mapping[str, Any],
        scaling: ScalingConfig,
        run: RunConfig,
        cluster: Cluster,
        checkpoints: RunCheckpoints,
        summaries: ModelSummaries,
        events: RunEvents,
        heard: RunCallbacks,
    ) -> None:
        self._events = events
        self._heard = heard
        placement = ShardPlacement(model.graph, model.on_shards)
        self.shards: ShardScaling | ShardStandbys | WorkerCopies
        if scaling.has_copies:
            self.shards = WorkerCopies(cluster, model.graph)
        elif scaling.replicated_shards:
            self.shards = ShardStandbys(cluster, placement, checkpoints, scaling.shards, self._told_standby)
        else:
            bounds = scaling.shards, scaling.max_shards
            self.shards = ShardScaling(cluster, placement, checkpoints, *bounds, self._told_shards)
        self._ended: dict[int, WorkerEvent] = {}
        """Replicas whose input has ended. It is a loss of data only if a later step ends without them."""
        self._bad_gradients = BadGradientsWarning(run.bad_gradients)
        self._lost: str | None = None
        """A message about the part of the data that is no longer read; None if all is read."""
        self._model = model
        self._input_fn = input_fn
        self._datasets = datasets
        self._feeds: dict[str, Any] = {}
        """By dataset: what hands out its rows. A run that goes back to a checkpoint goes on in the same pass."""
        self._scaling = scaling
        self._run = run
        self._cluster = cluster
        self._checkpoints = checkpoints
        self._summaries = summaries
        self._state_summary = b""
        self._final: dict[str, Any] = {}

    def records(self) -> Generator[StepRecord, None, None]:
        """Train to the end, going back to the newest checkpoint whenever the holder of variables dies."""
        self._start_feeds()
        try:
            yield from self._recovering()
        finally:
            self.shards.end()
            for feeds in self._feeds.values():
                end_feeds(feeds)

    def _start_feeds(self) -> None:
        workers = [device for device in self._cluster.devices if device.startswith("/job:worker/")]
        nodes = [self._cluster.handle(device).address.node for device in workers]
        for name, dataset in self._datasets.items():
            self._feeds[name] = start_feeds(dataset, nodes, self._scaling.max_workers)

    def _recovering(self) -> Generator[StepRecord, None, None]:
        recoveries, model, checkpoints, died = 0, self._model, self._checkpoints, ""
        while True:
            try:
                # This session saves and restores variables on the shards only: the death of a worker does not touch it.
                # What asks for a GPU there means one of a worker.
                shards, config = self._cluster.only(self._holders), ConfigProto(allow_soft_placement=True)
                with Session(shards, graph=model.graph, config=config) as session, checkpoints.settled():
                    yield from self._steps(session, died)
                    self._final = session.run(variables_of(model))
                    return
            except UnavailableError as error:
                device = error.device or ""
                lost = device.startswith(f"/job:{self._holders}/")
                died = f"{device} has died, or answers no more, after step {checkpoints.step}"
                if not lost or not checkpoints.active or recoveries >= self._run.max_recoveries:
                    raise
            self._cluster.forget(device)  # also if it does not answer, and may live
            if self._scaling.has_copies:
                self._tell_of_replacement(device)
            recoveries += 1
            checkpoints.failed()
            self.shards.recover()
            self._cluster.replace_dead(self._scaling.start_timeout_s, ("ps",) if self._scaling.elastic else None)

    @property
    def _holders(self) -> str:
        """The job whose tasks hold the variables."""
        return "worker" if self._scaling.has_copies else "ps"

    def _tell_of_replacement(self, device: str) -> None:
        """Tell that a worker that held a copy of the variables is started anew. The others wait for the checkpoint."""
        replica, step = self._cluster.devices_of("worker").index(device), self._checkpoints.step
        message = f"the worker of replica {replica} ({device}) died after step {step}: another is started"
        self._worker_lost(self._events.tell(REPLACEMENT, step, message, replica, device))

    def final_values(self) -> dict[str, Any]:
        """The values of the variables at the end of training. The parts of partitioned variables are joined again."""
        return self._final if self._scaling.partitioner is None else whole_values(self._model, self._final)

    def _steps(self, session: Session, died: str = "") -> Generator[StepRecord, None, None]:
        """Train to the end, from the newest checkpoint on; `died` says why training goes back to it."""
        checkpoints, self._bad_gradients = self._checkpoints, BadGradientsWarning(self._run.bad_gradients)
        session.run(initializer(self._model))
        arrays = checkpoints.restore(session)
        began = checkpoints.step
        if died:
            self._events.tell(ROLLBACK, began, f"{died}: training goes back to the checkpoint of step {began}")
        self._heard.start(checkpoints.newest)
        if began >= self._run.steps:
            if not died:
                self._events.ended(began, self._run.steps, began)
            return
        self.shards.begin()
        self._ended, self._lost = {}, None
        driver = self._driver(session, began + 1)
        if checkpoints.active:
            driver.restore_state(arrays)
        while True:
            try:
                yield from self._driven(session, driver, began)
                return
            except UnavailableError as error:
                parted = driver.settle(error)
                if parted is None:
                    raise
            yield from self._taken(driver.take_reports(), began)
            checkpoints.give_up_save()
            self.shards.take_over(session, parted)
            ended, batches = driver.ended
            driver = self._driver(session, ended + 1)
            driver.go_on_after(batches)

    def _driven(self, session: Session, driver: ReplicaDriver, began: int) -> Generator[StepRecord, None, None]:
        """Train to the end with one driver. `began`: the number of steps that had ended before training began."""
        checkpoints = self._checkpoints
        driver.hold(self._next_hold(session, began))
        with closing(driver.run()) as reports:
            for report in reports:
                if report is None:  # no step is open
                    if self.shards.is_due():
                        self.shards.change(session, driver, self._compiled)
                    if checkpoints.is_due() or self._must_stop:
                        checkpoints.save(session, driver.state)
                        checkpoints.exit_if_preempted()
                        self._stop_if_lost()
                    driver.go_on(self._next_hold(session, began))
                    continue
                yield from self._taken([report], began)
                self.shards.tidy(driver)
                if checkpoints.is_due() or self._must_stop or self.shards.is_due():
                    driver.hold()
            checkpoints.save(session, driver.state)
            self._stop_if_lost()
            self._events.ended(checkpoints.step, self._run.steps, began)

    def _next_hold(self, session: Session, began: int) -> int | None:
        """How many steps end before the next pause, if that is known: for a checkpoint, or for summaries.

        Summaries of variables tell of the values with which their step begins, as in one process. Those of the next
        step are computed here, while no step is open.
        """
        positions = [self._checkpoints.next_step]
        if self._summaries.of_state is not None:
            due = self._summaries.next_due(self._checkpoints.step, began + 1)
            if due is not None and due == self._checkpoints.step + 1:
                self._state_summary = session.run(self._summaries.of_state)
                due = self._summaries.next_due(due, began + 1)
            positions.append(None if due is None else due - 1)
        return min((position for position in positions if position is not None), default=None)

    def _taken(self, reports: Sequence[StepReport], began: int) -> Generator[StepRecord, None, None]:
        """The records of steps that have ended."""
        summaries, of_state = self._summaries, self._summaries.of_state
        for report in reports:
            self._checkpoints.step = report.step
            record = _record(report, list(self._model.fetches))
            self._bad_gradients.observe(record.step, record.bad_gradients)
            # Summaries of the batch come with the step for which they were asked, whatever its position.
            due = summaries.due(report.step, began + 1) if summaries.of_batch is None else record.summary
            if of_state is not None and due:
                record = replace(record, summary=record.summary + self._state_summary)
            self._note_ends(report)
            yield record

    # -- what is lost ----------------------------------------------------------------------------

    def _observe(self, event: WorkerEvent) -> None:
        """Take an event of a replica, tell it, and note lost data."""
        who = f"replica {event.replica} ({event.device})"
        if event.kind == "ended":
            self._ended[event.replica] = event
        elif event.kind == "replaced":
            until = "the others share its data until another comes" if self._scaling.elastic else "another is started"
            message = f"the worker of {who} died in step {event.step}: {until}"
            self._worker_lost(self._events.tell(REPLACEMENT, event.step, message, event.replica, event.device))
            if self._datasets:
                self._lose(event, f"the worker of {who} died in step {event.step}", event.device)
        else:
            after = "" if self._datasets else f", after {self._run.max_worker_restarts} restarts"
            what = f"the worker of {who} died in step {event.step} and is not replaced{after}"
            self._worker_lost(self._lose(event, what, event.device))

    def _told_shards(self, before: int, now: int) -> None:
        step = self._checkpoints.step
        message = f"after step {step} the variables are on {now} parameter servers; they were on {before}"
        self._events.tell(SCALING, step, message)

    def _told_standby(self, what: str) -> None:
        step = self._checkpoints.step
        self._events.tell(STANDBY, step, f"after step {step}: {what}")

    def _worker_lost(self, event: RunEvent) -> None:
        tell(self._heard.on_worker_lost, event)

    def _note_ends(self, report: StepReport) -> None:
        """A step has ended. Inputs that ended before it are a loss, unless the step had as many members as it needs.

        Replicas that share the rows of datasets have had them all when their inputs end, one sooner than another.
        """
        scaling = self._scaling
        if (
            self._datasets
            or scaling.mode == "async"
            or (scaling.backup_workers and len(report.members) >= scaling.required)
        ):
            return
        for event in [each for each in self._ended.values() if each.step <= report.step]:
            del self._ended[event.replica]
            who = f"replica {event.replica} ({event.device})"
            self._lose(event, f"the input of {who} ended before step {event.step}, and the others' did not")

    def _lose(self, event: WorkerEvent, what: str, device: str | None = None) -> RunEvent:
        if self._datasets:
            rest = f"the rows of {', '.join(self._datasets)} that it had taken; the others read the rest of its share"
        else:
            rest = f"1 of {event.replicas} shares of the data"
        self._lost = f"{what}: training goes on without {rest}"
        return self._events.tell(LOST_DATA, event.step, self._lost, event.replica, device)

    @property
    def _must_stop(self) -> bool:
        return self._lost is not None and self._run.on_lost_data == "stop"

    def _stop_if_lost(self) -> None:
        if self._must_stop:
            folder = self._run.checkpoint_folder
            saved = "there is no checkpoint" if folder is None else f"its checkpoint is in {folder}"
            raise DataLossError(
                f"{self._lost}; on_lost_data='stop' has ended it after step {self._checkpoints.step}, {saved}"
            )

    def _driver(self, session: Session, first_step: int) -> ReplicaDriver:
        scaling, model, run = self._scaling, self._model, self._run
        branch = self._summaries.of_batch
        compiled = self._compiled()

        def open_input(share: InputShare) -> _InputOpener:
            context = self._context(share)
            every_steps = None if branch is None else self._summaries.every_steps
            return _InputOpener(
                self._input_fn,
                context,
                form=model.form,
                feeds=compiled.feeds,
                batches=run.accumulate,
                is_asked=branch is not None,
                first_step=first_step,
                summary_steps=every_steps,
            )

        spec = self._cluster.jobs["worker"]
        assert isinstance(session._runner, RemoteRunner)
        return (RingDriver if scaling.has_copies else ReplicaDriver)(
            self._cluster,
            session._runner.driver_id,
            compiled,
            workers=[spec.devices("worker", task)[0] for task in range(scaling.max_workers)],
            protocol=self._protocol(first_step),
            functions=model.graph.functions,
            make_input=open_input,
            faults=FaultPolicy(
                max_restarts=run.max_worker_restarts,
                patience_s=max(FaultPolicy.patience_s, scaling.start_timeout_s),
                step_timeout_s=run.step_timeout_s,
                told=self._observe,
                shares_input=bool(self._datasets),
            ),
            elasticity=self._elasticity(session),
            first_step=first_step,
            traced_steps=run.trace_steps,
            examples_per_replica=model.batch_size * run.accumulate,
            skips_bad=run.bad_gradients == "skip",
            combines=scaling.combine_on_nodes,
            overlaps=scaling.overlap_updates,
        )

    def _compiled(self) -> CompiledReplicaStep:
        """The step for the parameter servers that there are."""
        model, branch = self._model, self._summaries.of_batch
        fetched, fed = [*model.fetches.values()], [*model.placeholders]
        if branch is not None:
            fetched, fed = [*fetched, branch.summary], [*fed, branch.wanted]
        return compile_replica_step(
            fetched,
            [model.train_operation],
            fed,
            self.shards.devices,
            REPLICA_DEVICE,
            options=self._scaling.replica_options(self._run),
            standbys=self.shards.standbys,
        )

    def _protocol(self, first_step: int) -> ReplicaProtocol:
        scaling, steps = self._scaling, self._run.steps - first_step + 1
        if scaling.mode == "async":
            return AsyncProtocol(steps, first_step, STEPS_AHEAD, scaling.staleness)
        # In an elastic run the membership says which replicas are expected. Backup workers are not waited for.
        required = 1 if scaling.elastic else scaling.required
        spares = scaling.backup_workers > 0
        return SyncProtocol(required, steps, first_step, required, STEPS_AHEAD, spares)

    def _context(self, share: InputShare) -> InputContext:
        """The context of an input function for a share of the input."""
        scaling = self._scaling
        # Where it depends on the number of replicas how many examples a step takes, batches tell how many there were.
        counted = scaling.mode == "async" or (scaling.elastic and scaling.elastic_batch == "scaled")
        first_step = 1 - (-share.batches // share.replicas) if counted else share.step
        # For the input a step of several batches is as many steps.
        context = scaling.input_context(share.replicas, share.index, 1 + self._run.accumulate * (first_step - 1))
        shards = {name: DatasetShard(FedRows(feeds, share.index)) for name, feeds in self._feeds.items()}
        return replace(context, datasets=shards)

    def _elasticity(self, session: Session) -> Elasticity | None:
        scaling = self._scaling
        if not scaling.elastic:
            return None
        variable = scale_variable(self._model.graph) if scaling.elastic_batch == "scaled" else None

        def resized(replicas: int) -> None:
            logging.info("%d workers train from now on", replicas)
            if variable is not None:
                variable.load(scaling.required_of(replicas) / scaling.required, session)

        return Elasticity(scaling.min_workers, scaling.backup_workers, resized)


class _InputOpener:
    """Opens a replica's input on its worker. Calling it returns a function that reads the values to feed in a step."""

    def __init__(
        self,
        input_fn: InputFunction,
        context: InputContext,
        *,
        form: BatchForm,
        feeds: Sequence[int],
        batches: int,
        is_asked: bool,
        first_step: int,
        summary_steps: int | None,
    ) -> None:
        self._input_fn = input_fn
        self._context = context
        self._form = form
        self._feeds = list(feeds)
        self._batches = batches
        self._is_asked = is_asked
        self._first_step = first_step
        self._summary_steps = summary_steps

    def __call__(self) -> Callable[[int], list[Any]]:
        batches = open_input(self._input_fn, self._context)

        def read(step: int) -> list[Any]:
            arrays: list[Any] = []
            for number in range(self._batches):
                arrays += self._form.arrays(next(batches))
                if self._is_asked:  # for summaries, those of the step's first batch
                    arrays.append(np.array(number == 0 and is_due(step, self._first_step, self._summary_steps)))
            return [arrays[i] for i in self._feeds]

        return read


def _record(report: StepReport, names: Sequence[str]) -> StepRecord:
    values = report.values or [math.nan] * len(names)  # empty if the only member died before it could report
    metrics = {name: float(value) for name, value in zip(names, values, strict=False)}
    trace = run_metadata(report.records) if report.records else None
    summary = b"".join(np.asarray(value).item() for value in report.values[len(names) :])
    return StepRecord(
        report.step,
        metrics,
        duration_s=report.duration_s,
        live=report.live,
        dropped=report.dropped,
        members=report.members,
        staleness=report.staleness,
        replica_s=report.replica_s,
        trace=trace,
        summary=summary,
        bad_gradients=report.bad,
    )
