"""`tfray plan`: predicts where a step's operations and variables go, what moves, and how long the step takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from tfray.errors import InvalidArgumentError
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.traversal import reachable_backward
from tfray.library.variables import variables
from tfray.options import ConfigProto
from tfray.placement.calibration import measured_machine
from tfray.placement.cost import CostModel, Machine, Measured
from tfray.session import Session
from tfray.training.threads.device_setter import RoundRobinStrategy, replica_device_setter
from tfray.training.trainer.local_replica import SHARD
from tfray.training.trainer.step_history import StepRecord
from tfray.training.trainer.step_prediction import (
    StepPrediction,
    machine_of,
    named_devices,
    nodes_of,
    plan_session,
    plan_training,
    shard_devices,
    worker_devices,
)
from tfray.training.trainer.trainer import Trainer

_LISTED: Final = 24
"""Variables to list, the largest first; the others are summed up in one row."""

_WARM_UP, _TIMED, _TRACED = 10, 30, 5
"""Numbers of steps to run: first without measuring, then to measure the time, then to record."""


def show_training(trainer: Trainer, nodes: int | None = None, measure: bool = False) -> None:
    """Predict a trainer's step, and print the prediction.

    Args:
        trainer: The trainer. What its scaling leaves open is decided here.
        nodes: Number of nodes like this one to predict for; those of the run's Ray cluster when None.
        measure: Train a few steps as well, and compare.
    """
    console = Console()
    if trainer.scaling.has_copies and not trainer.run.local:
        raise InvalidArgumentError(
            "steps without parameter servers are not predicted: give --ps, or parameter_servers of 1 or more"
        )
    workers = 1 if trainer.run.local else trainer.scaling.max_workers
    machine = this_process() if trainer.run.local else _machine(trainer, nodes)
    model = trainer.build() if trainer.run.local else trainer.build_for_shards(machine)
    cost = CostModel(machine, unknown_size=max(1, model.batch_size // workers))

    def plan(cost: CostModel) -> StepPrediction:
        if trainer.run.local:
            return plan_session(model.graph, [model.train_operation], [SHARD], cost)
        return plan_training(model, trainer.scaling.shards, workers, cost, **_options(trainer))

    planned = plan(cost)
    show_plan(planned, console)
    others = [] if trainer.run.local else _alternatives(trainer, trainer.scaling.shards, workers, cost)
    if others:
        console.print("otherwise: " + "; ".join(f"{name} {plan.time.seconds * 1e3:.2f} ms" for name, plan in others))
    if measure:
        times, traces = _measured(trainer)
        _compare(console, planned, times, plan(replace(cost, measured=Measured.of(traces))))


def show_session(
    graph: Graph,
    targets: Sequence[Operation],
    devices: Sequence[str],
    by_cost: bool,
    measure: bool,
    address: str | None,
) -> None:
    """Predict a step of a session, and print the prediction; arguments as of `plan_session` and `show_training`."""
    console = Console()
    devices = devices or named_devices(graph) or [SHARD]
    is_local = {DeviceSpec.from_string(name).job for name in devices} == {"localhost"}
    cost = CostModel(this_process() if is_local else measured_machine())
    planned = plan_session(graph, targets, devices, cost, by_cost)
    show_plan(planned, console)
    if measure:
        times = _measured_session(graph, targets, devices, by_cost, None if is_local else address or "local")
        _compare(console, planned, times)


def this_process() -> Machine:
    """Devices of this process, with the speed that it has."""
    measured = measured_machine()
    return replace(Machine.one_thread(), flops_per_s=measured.flops_per_s, bytes_per_s=measured.bytes_per_s)


def _machine(trainer: Trainer, nodes: int | None) -> Machine:
    found = nodes_of(trainer.run.address, trainer.run.init_options)
    scaling = trainer.scaling
    spread = machine_of(found[:1] * nodes if nodes else found, scaling.max_workers, scaling.gpus_per_worker > 0)
    return replace(measured_machine(), cores=spread.cores, nodes=spread.nodes, with_gpus=spread.with_gpus)


def _options(trainer: Trainer) -> dict[str, Any]:
    """Arguments of `plan_training`."""
    scaling = trainer.scaling
    return {"options": scaling.replica_options(trainer.run), "has_standbys": scaling.replicated_shards}


def _alternatives(trainer: Trainer, shards: int, workers: int, cost: CostModel) -> list[tuple[str, StepPrediction]]:
    """Predictions for other numbers of shards and other placements, with their names."""
    found, options = [], _options(trainer)
    if shards > 1:
        setter = replica_device_setter(shards, worker_device="", ps_strategy=RoundRobinStrategy(shards))
        found.append(("round robin", plan_training(trainer.build(setter), shards, workers, cost, **options)))
    for count in sorted({1, 2, 4, 2 * shards} - {shards}):
        other = Trainer(trainer._model_fn, trainer._input_fn, trainer.scaling, trainer.run, trainer.datasets)
        other.scaling = replace(trainer.scaling, parameter_servers=count)
        planned = plan_training(other.build_for_shards(), count, workers, cost, **options)
        found.append((_count(count, "shard"), planned))
    return found


# -- tables ----------------------------------------------------------------------------------------------


def show_plan(plan: StepPrediction, console: Console) -> None:
    """Print the loads of the devices, what moves between them, and the time."""
    _show_variables(plan, console)
    table = Table("device", "operations", "variables", "bytes held", "busy, ms", box=None, pad_edge=False)
    for device, load in sorted(plan.loads.items(), key=lambda item: item[0]):
        counts = str(load.operations), str(len(load.variables)), f"{load.variable_bytes:,}"
        table.add_row(_short(device), *counts, f"{load.busy_s * 1e3:.2f}")
    console.print(table)
    if plan.traffic:
        table = Table("from", "to", "tensors", "bytes", box=None, pad_edge=False)
        for (source, destination), moved in sorted(plan.traffic.items()):
            table.add_row(_short(source), _short(destination), str(moved.messages), f"{moved.size_bytes:,}")
        console.print(table)
    reason, at_least_s = plan.time.waits_for
    console.print(
        f"a step should take {plan.time.seconds * 1e3:.2f} ms and move {plan.moved_bytes:,} bytes; it is bound by "
        f"{_short(reason)} ({at_least_s * 1e3:.2f} ms)"
    )


def _short(name: str) -> str:
    return name.replace("/device:CPU:0", "")


def _show_variables(plan: StepPrediction, console: Console) -> None:
    sizes = [(size, name, device) for device, load in plan.loads.items() for name, size in load.variables.items()]
    if not sizes:
        return
    sizes.sort(key=lambda entry: (-entry[0], entry[1]))
    table = Table("variable", "bytes", "device", box=None, pad_edge=False)
    for size, name, device in sizes[:_LISTED]:
        table.add_row(name, f"{size:,}", _short(device))
    if len(sizes) > _LISTED:
        rest = sum(size for size, _, _ in sizes[_LISTED:])
        table.add_row(f"and {len(sizes) - _LISTED} more", f"{rest:,}", "")
    console.print(table)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _compare(
    console: Console, planned: StepPrediction, times_s: Sequence[float], again: StepPrediction | None = None
) -> None:
    actual_s = statistics.median(times_s)
    fastest = f"median of {len(times_s)}, the fastest {min(times_s) * 1e3:.2f} ms"
    text = f"measured: {actual_s * 1e3:.2f} ms ({fastest}), predicted {planned.time.seconds * 1e3:.2f} ms"
    if again is not None:
        text += f", from recorded operations {again.time.seconds * 1e3:.2f} ms"
    console.print(text)


# -- measuring -------------------------------------------------------------------------------------------


def _measured(trainer: Trainer) -> tuple[list[float], list[Any]]:
    """Seconds of the timed steps, and the records of some further steps."""
    records: list[StepRecord] = []
    first = _WARM_UP + _TIMED + 1
    run = replace(
        trainer.run,
        steps=first + _TRACED - 1,
        trace_steps=range(first, first + _TRACED),
        on_step=records.append,
        logdir=None,
        checkpoint_dir=None,
        save_every_steps=None,
        save_every_s=None,
    )
    Trainer(trainer._model_fn, trainer._input_fn, trainer.scaling, run, trainer.datasets).fit()
    if len(records) < first:
        raise InvalidArgumentError(f"the input ended after {len(records)} steps; measuring takes {run.steps}")
    return [record.duration_s for record in records[_WARM_UP:first]], _traces(records)


def _traces(records: Iterable[StepRecord]) -> list[Any]:
    return [record.trace for record in records if record.trace is not None]


def _measured_session(
    graph: Graph, targets: Sequence[Operation], devices: Sequence[str], by_cost: bool, address: str | None
) -> list[float]:
    wanted = list(targets) or [getattr(each, "op", each) for each in graph.get_collection("train_op")]
    unfed = [op.name for op in reachable_backward(wanted) if op.type == "Placeholder"]
    if unfed:
        raise InvalidArgumentError(f"--measure cannot feed {', '.join(sorted(unfed))}: it runs steps without feeds")
    config = ConfigProto(placement="cost" if by_cost else "default", allow_soft_placement=True)
    with graph.as_default():
        initializers = [variables.global_variables_initializer(), variables.local_variables_initializer()]
    times = []
    with _target(devices, address) as target, Session(target, graph, config) as session:
        session.run(initializers)
        step = session.make_callable(wanted)
        for _ in range(_WARM_UP + _TIMED):
            started = perf_counter()
            step()
            times.append(perf_counter() - started)
    return times[_WARM_UP:]


def _target(devices: Sequence[str], address: str | None) -> Any:
    from tfray.actors.clusters.cluster import Cluster, JobSpec

    if address is None:
        return nullcontext("")
    counts: dict[str, int] = {}
    for name in devices:
        spec = DeviceSpec.from_string(name)
        counts[spec.job or ""] = max(counts.get(spec.job or "", 0), (spec.task or 0) + 1)
    return Cluster({job: JobSpec(count, num_cpus=0.5) for job, count in counts.items()}, address)


def cluster_devices(workers: int | None, shards: int | None) -> list[str]:
    """Full names of the tasks of a cluster of workers and parameter servers; empty without either."""
    if workers is None and shards is None:
        return []
    return [*worker_devices(workers or 1), *shard_devices(shards or 0)]


def targets_of(graph: Graph, names: Sequence[str]) -> list[Operation]:
    """The operations of these names, or of tensors of these names."""
    found = []
    for name in names:
        try:
            element = graph.as_graph_element(name)
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidArgumentError(f"the graph has no {name!r}: {error.args[0]}") from error
        found.append(element.op if isinstance(element, Tensor) else element)
    return found
