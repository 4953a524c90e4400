"""`Trainer`: a model function, an input function, and how far to scale them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfray.actors.clusters.ray_runtime import import_ray
from tfray.errors import FailedPreconditionError, InvalidArgumentError
from tfray.framework.arguments import Positive, checked
from tfray.framework.graph import DeviceFunction, Graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables.partitioned_variables import Partitioner, balancing_partitioner
from tfray.options import ConfigProto
from tfray.session import Session
from tfray.training.input.dataset_shard import DatasetShard, WholeDataset
from tfray.training.input.inputs import Batch, InputContext, InputFunction, open_input
from tfray.training.threads.device_setter import byte_size_load_fn, replica_device_setter
from tfray.training.trainer.callback import RunCallbacks
from tfray.training.trainer.local_replica import to_shard
from tfray.training.trainer.local_steps import LocalStep, LocalSteps
from tfray.training.trainer.model import BuiltModel, ModeKeys, ModelFunction, build_model
from tfray.training.trainer.model_summaries import ModelSummaries
from tfray.training.trainer.run_checkpoints import RunCheckpoints, random_states, restore_random_states
from tfray.training.trainer.run_config import RunConfig, ScalingConfig
from tfray.training.trainer.run_events import RunEvents
from tfray.training.trainer.run_log import RunLog, run_folder
from tfray.training.trainer.run_result import Result
from tfray.training.trainer.shard_placement import NotedStrategy, on_cpus
from tfray.training.trainer.step_history import StepHistory, StepRecord
from tfray.training.trainer.trained_variables import initializer, load, variables_of

if TYPE_CHECKING:
    from tfray.placement.cost import Machine
    from tfray.training.trainer.shard_scaling import ShardScaling
    from tfray.training.trainer.shard_standbys import ShardStandbys
    from tfray.training.trainer.worker_copies import WorkerCopies

DAY_S: Final = 86400.0

_SOFT: Final = ConfigProto(allow_soft_placement=True)
"""A model that asks for a GPU trains without one too."""


class Trainer:
    """Trains a model function on data, in this process or on a Ray cluster.

    Args:
        model_fn: ``model_fn(features, labels)`` or ``model_fn(features, labels, mode)``: builds the model in the
            default graph and returns a `ModelSpec`. It runs in this process, once per graph.
        input_fn: ``input_fn(context)``: opens the input of one replica; called on its worker with an
            `InputContext`. Its iterable gives one (features, labels) per step.
        scaling: The number of actors, and how they work together.
        run: How long and where to train, and what to save and report.
        datasets: Datasets of Ray (`ray.data.Dataset`), by name. The replicas share the rows of each:
            `InputContext.dataset_shard`, or `tf.train.ray_input`. Leave Ray processors for reading them, beside those
            that the actors of the run take.

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

    @checked
    def __init__(
        self,
        model_fn: ModelFunction,
        input_fn: InputFunction,
        scaling: ScalingConfig | None = None,
        run: RunConfig | None = None,
        datasets: Mapping[str, Any] | None = None,
    ) -> None:
        for name, dataset in (datasets or {}).items():
            if not hasattr(dataset, "streaming_split"):
                raise InvalidArgumentError(f"datasets[{name!r}] is {dataset!r}, expected a ray.data.Dataset")
        self.datasets = dict(datasets or {})
        self._model_fn = model_fn
        self._input_fn = input_fn
        self.scaling = scaling or ScalingConfig()
        self.run = run or RunConfig()
        self.scaling.check_run(self.run)
        self._shards: ShardScaling | ShardStandbys | WorkerCopies | None = None
        """The parameter servers of the run that is under way on a cluster."""

    def fit(self) -> Result:
        """Train to the end and return the result.

        With a `RunConfig.checkpoint_dir` or `RunConfig.storage_path`, training goes on from the newest checkpoint
        there, and SIGTERM saves before it ends the process with exit code 143.

        Raises:
            InvalidArgumentError: The model function, the input or the configuration cannot be used.
            FailedPreconditionError: Another run saves in `RunConfig.checkpoint_dir`, or it is not clear which of its
                checkpoints is the newest.
            DataLossError: All checkpoints there are damaged.
            UnavailableError: A parameter server died and there are no checkpoints, or no worker is left.
            DataLossError: A part of the data is no longer read, and `RunConfig.on_lost_data` says to stop.
            OpError: An operation, or the input function, failed on a worker; the message names it.
            UnknownError: A callback failed.
        """
        folder, events = run_folder(self.run.log_folder), RunEvents()
        heard = RunCallbacks(self.run.callbacks, self.run.steps, folder, self.scale)
        fit = self._fit_locally if self.run.local else self._fit_on_cluster
        try:
            result = fit(folder, events, heard)
        except BaseException as error:
            heard.end(None, error)
            raise
        heard.end(result)
        return result

    @checked
    def scale(self, parameter_servers: Positive) -> None:
        """Change the number of parameter servers of the run that is under way. Callbacks have it in `RunStart.scale`.

        This returns at once. Fewer take effect with one of the next steps. More do as soon as Ray has found room for
        all of them, and they have started; until then training goes on with those that are there. Then no step is
        begun until the open ones have ended, variables and slots move to where they would be if the run had begun with
        that number, and the same workers go on. Nothing is lost or repeated, and with synchronous training the result
        is the same. A later call replaces an earlier one; in a run of ``parameter_servers=(least, most)`` it also ends
        the asking for more. `Result.events` tells of each change. Any thread may call this.

        Args:
            parameter_servers: How many shards shall hold the variables, 1 or more.

        Raises:
            FailedPreconditionError: No run is under way, or it has no parameter servers, or these have standbys.
            InvalidArgumentError: The program has put operations on parameter servers that would end.
        """
        if self._shards is None:
            raise FailedPreconditionError("scale: no run on a cluster is under way; call it from a callback of the run")
        self._shards.wish(parameter_servers)

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
        with Session(graph=model.graph, config=_SOFT) as session:
            load(model, session, result.variables)
            for batch in itertools.chain([first], batches):
                arrays = model.form.arrays(batch)
                size = next((len(array) for array in arrays if np.ndim(array)), 1)
                values = session.run(model.fetches, dict(zip(model.placeholders, arrays, strict=True)))
                totals = {name: total + float(values[name]) * size for name, total in totals.items()}
                count += size
        return {name: total / count for name, total in totals.items()}

    def graph(self) -> Graph:
        """The graph of the model, built for the first batch of the input."""
        return self.build().graph

    def build(self, device: DeviceFunction | None = None, partitioner: Partitioner | None = None) -> BuiltModel:
        """Build the model for the first batch of the input, under a device function: see `build_model`."""
        scaling = self.scaling
        context = self._with_datasets(scaling.input_context(scaling.min_workers, 0, 1))
        first = self._first_batch(open_input(self._input_fn, context))
        return build_model(self._model_fn, first, seed=self.run.seed, device=device, partitioner=partitioner)

    def _with_datasets(self, context: InputContext) -> InputContext:
        """The context with all rows of the datasets, for this process."""
        whole = {name: DatasetShard(WholeDataset(dataset)) for name, dataset in self.datasets.items()}
        return replace(context, datasets=whole)

    def build_for_shards(self, machine: Machine | None = None) -> BuiltModel:
        """Decide what `scaling` leaves open, and build the model for the number of shards.

        Args:
            machine: The machines to train on; by default the nodes of the run's Ray cluster, or this machine.
        """
        if "auto" in (self.scaling.parameter_servers, self.scaling.partitioner):
            self.scaling = self._settled(machine)
        scaling = self.scaling
        job, count = ("/job:worker", 1) if scaling.has_copies else ("/job:ps", scaling.shards)
        strategy = NotedStrategy(count)
        setter = on_cpus(replica_device_setter(count, job, worker_device="", ps_strategy=strategy))
        assert not isinstance(scaling.partitioner, str)
        return replace(self.build(setter, scaling.partitioner), on_shards=strategy.placed)

    def _settled(self, machine: Machine | None) -> ScalingConfig:
        """The scaling, with nothing left open."""
        from tfray.placement.cost import CostModel
        from tfray.training.trainer import step_prediction

        scaling, model = self.scaling, self.build(step_prediction.to_any_shard)
        if scaling.parameter_servers == "auto":
            nodes = step_prediction.nodes_of(self.run.address, self.run.init_options)
            machine = machine or step_prediction.machine_of(nodes, scaling.max_workers, scaling.gpus_per_worker > 0)
            cost = CostModel(machine, unknown_size=max(1, model.batch_size // scaling.max_workers))
            memory_bytes = min(node.memory_bytes for node in nodes) / 2 / scaling.copies
            count = step_prediction.best_shard_count(
                model,
                scaling.max_workers,
                cost,
                shard_memory_bytes=memory_bytes,
                options=scaling.replica_options(self.run),
                has_standbys=scaling.replicated_shards,
            )
            scaling = replace(scaling, parameter_servers=count)
        if scaling.partitioner == "auto":
            trained = [variable.op for variable in model.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)]
            total = int(sum(map(byte_size_load_fn, trained)))
            scaling = replace(scaling, partitioner=balancing_partitioner(total, max(1, scaling.max_shards)))
        return scaling

    # -- in this process -------------------------------------------------------------------------

    def _fit_locally(self, folder: str | None, events: RunEvents, heard: RunCallbacks) -> Result:
        run, batches = self.run, open_input(self._input_fn, self._with_datasets(InputContext()))
        first = self._first_batch(batches)
        gathers = run.accumulate > 1 or run.bad_gradients is not None
        model = build_model(self._model_fn, first, seed=run.seed, device=to_shard if gathers else None)
        checkpoints = self._checkpoints(model, heard)
        with checkpoints, Session(graph=model.graph, config=_SOFT) as session, checkpoints.settled():
            session.run(initializer(model))
            restore_random_states(session, checkpoints.restore(session))
            heard.start(checkpoints.newest)
            begin = 1 + run.accumulate * checkpoints.step
            if begin == 1:
                batches = itertools.chain([first], batches)
            else:
                batches = open_input(self._input_fn, self._with_datasets(InputContext(first_step=begin)))
            steps = LocalSteps(model, session, run, self._summaries(model, folder), checkpoints.step + 1)
            step = steps.gathered if gathers else steps.plain
            records = self._local_steps(step, session, batches, checkpoints, events)
            history, duration_s = self._collect(model, records, checkpoints, folder, events, heard)
            variables = session.run(variables_of(model))
        return self._result(history, duration_s, variables, checkpoints, folder, events)

    def _local_steps(
        self,
        step: LocalStep,
        session: Session,
        batches: Iterable[Batch],
        checkpoints: RunCheckpoints,
        events: RunEvents,
    ) -> Generator[StepRecord, None, None]:
        began = checkpoints.step
        # A last step for which there are too few batches is not taken.
        gathered = zip(*[iter(batches)] * self.run.accumulate, strict=False)
        for number, of_step in zip(range(began + 1, self.run.steps + 1), gathered, strict=False):
            started = time.perf_counter()
            record = step(number, of_step)
            checkpoints.step = number
            yield replace(record, duration_s=time.perf_counter() - started)
            if checkpoints.is_due():
                checkpoints.save(session, lambda: random_states(session))
                checkpoints.exit_if_preempted()
        checkpoints.save(session, lambda: random_states(session))
        events.ended(checkpoints.step, self.run.steps, began)

    # -- on a cluster ----------------------------------------------------------------------------

    def _fit_on_cluster(self, folder: str | None, events: RunEvents, heard: RunCallbacks) -> Result:
        import_ray()
        from tfray.training.trainer.cluster_training import ClusterTraining, start_cluster

        model = self.build_for_shards()
        with start_cluster(self.scaling, self.run) as cluster, self._checkpoints(model, heard) as checkpoints:
            summaries = self._summaries(model, folder)
            training = ClusterTraining(
                model,
                input_fn=self._input_fn,
                datasets=self.datasets,
                scaling=self.scaling,
                run=self.run,
                cluster=cluster,
                checkpoints=checkpoints,
                summaries=summaries,
                events=events,
                heard=heard,
            )
            self._shards = training.shards
            try:
                history, duration_s = self._collect(model, training.records(), checkpoints, folder, events, heard)
            finally:
                self._shards = None
        return self._result(history, duration_s, training.final_values(), checkpoints, folder, events)

    # -- both ------------------------------------------------------------------------------------

    def _summaries(self, model: BuiltModel, folder: str | None) -> ModelSummaries:
        return ModelSummaries(model, None if folder is None else self.run.summary_steps)

    def _checkpoints(self, model: BuiltModel, heard: RunCallbacks) -> RunCheckpoints:
        run = self.run
        scaling = self.scaling
        holders = 1 if run.local else (scaling.min_workers if scaling.has_copies else scaling.shards) + 1
        return RunCheckpoints(
            model.graph,
            run.checkpoint_folder,
            save_every_steps=run.save_every_steps,
            save_every_s=run.save_every_s,
            keep=run.keep_checkpoints,
            resume=run.resume,
            resume_from=run.resume_from,
            asynchronous=run.asynchronous_checkpoints,
            write_format=run.checkpoint_format,
            assumed_s=run.mean_time_between_failures_s or DAY_S / holders,
            told=heard.on_checkpoint,
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
        checkpoints: RunCheckpoints,
        folder: str | None,
        events: RunEvents,
        heard: RunCallbacks,
    ) -> tuple[StepHistory, float]:
        """Take the steps. Returns their records, and the seconds that they took."""
        history = StepHistory()
        started = time.perf_counter()
        # Closing the records also closes what they hold open, even if `on_step` raises.
        with RunLog(folder, model.graph) as log, closing(records):
            events.note = log.note
            for record in records:
                history.forget_from(record.step)  # steps that were lost
                history.append(record)
                log.observe(record)
                if self.run.on_step is not None:
                    self.run.on_step(record)
                for call in heard.on_step:
                    call(record)
                checkpoints.tell_if_complete()
        return history, time.perf_counter() - started

    @staticmethod
    def _result(
        history: StepHistory,
        duration_s: float,
        variables: dict[str, Any],
        checkpoints: RunCheckpoints,
        folder: str | None,
        events: RunEvents,
    ) -> Result:
        last = history[-1] if history else StepRecord(0, {}, 0.0)
        newest = checkpoints.newest
        return Result(last.metrics, history, variables, last.dropped, duration_s, folder, events.told, newest)
