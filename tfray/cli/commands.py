"""The `tfray` command and its subcommands.

``tfray run SCRIPT.py:FUNCTION`` trains what a function of a program returns; `train` gives a program the same options;
``tfray devices`` shows what there is to run on. Exit codes: 0, 1 for a run that failed, 2 for a request that cannot
be met, 130 for Ctrl-C.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import json
import os
import pdb
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
from rich.console import Console
from rich.table import Table

import tfray
from tfray.actors.clusters import ray_runtime
from tfray.cli import ops_command, plan_report, report
from tfray.cli.command import INTERRUPTED, BadRequest, GivenPath, Group, OneLineErrors, reported_errors
from tfray.cli.file_commands import convert, inspect_file
from tfray.cli.launch_command import launch
from tfray.cli.program_command import run_program
from tfray.cli.program_function import Build, built_by, built_trainer, called, load_function
from tfray.cli.progress import TrainingProgress, format_speed
from tfray.cli.run_model_command import run_model
from tfray.errors import NotFoundError, OpError
from tfray.formats.files import failures_of, is_folder
from tfray.library.inspect.graph_tree import show as show_graph
from tfray.library.inspect.profile_tables import show as show_profile
from tfray.library.inspect.step_spans import merged, overlap
from tfray.library.inspect.timeline import Timeline
from tfray.ops.kernels.cpu_threads import thread_count
from tfray.placement.contributions import BAD_GRADIENTS, WIRE_DTYPES
from tfray.runtime.device import cupy, local_device_names
from tfray.training.trainer.run_config import ON_LOST_DATA
from tfray.training.trainer.run_result import Result
from tfray.training.trainer.step_history import StepHistory, StepRecord
from tfray.training.trainer.trainer import Trainer

_TIMELINE: Final = "10:12"
"""First and last of the steps that a timeline shows. Before them everything is compiled, except the recording."""


def _parse_shards(
    context: click.Context, option: click.Parameter, text: str | None
) -> int | tuple[int, int] | str | None:
    """A number of parameter shards, the least and the largest, or the word ``auto``."""
    return text if text is None or text == "auto" else _numbers("--ps", text, "auto, ")


def _parse_workers(context: click.Context, option: click.Parameter, text: str | None) -> int | tuple[int, int] | None:
    """A number of workers, or the least and the largest of an elastic run."""
    return None if text is None else _numbers("--workers", text)


def _numbers(option: str, text: str, also: str = "") -> int | tuple[int, int]:
    """A number, or two as in ``2:8``; `also` says what else the option takes."""
    numbers = text.split(":")
    if not all(map(str.isdecimal, numbers)) or len(numbers) > 2:
        raise BadRequest(f"{option} {text}: expected a number, {also}or two as in 2:8")
    return int(text) if len(numbers) == 1 else (int(numbers[0]), int(numbers[1]))


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tfray.__version__, prog_name="tfray")
def main() -> None:
    """Train dataflow graphs in this process or on a Ray cluster."""


main.add_command(convert)
main.add_command(inspect_file)
main.add_command(inspect_file, "checkpoint")  # its name when it knew nothing else
main.add_command(launch)
main.add_command(run_model)
main.add_command(run_program)


# -- training ------------------------------------------------------------------------------------------

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Options named after fields of ScalingConfig and RunConfig replace those that the program set.
_TRAINING_OPTIONS: Final = (
    click.option(
        "--workers",
        metavar="N|MIN:MAX",
        callback=_parse_workers,
        help="Replicas of the model, backups included; with MIN:MAX, as many as there is room for.",
    ),
    click.option(
        "--elastic-batch",
        type=click.Choice(["constant", "scaled"]),
        help="With MIN:MAX: whether a step's examples stay the same, or grow with the workers.",
    ),
    click.option(
        "--ps",
        "parameter_servers",
        metavar="P|MIN:MAX|auto",
        callback=_parse_shards,
        help="Shards that hold the variables; with MIN:MAX, as many as there is room for; `auto` decides by predicted "
        "steps. With 0 each worker holds a copy, and workers reduce gradients among themselves.",
    ),
    click.option(
        "--replicated-shards/--no-replicated-shards",
        default=None,
        help="Give each shard a standby: when a shard dies, no step is lost.",
    ),
    click.option("--backup-workers", type=int, metavar="B", help="Replicas that a step does not wait for; B of the N."),
    click.option("--steps", type=int, metavar="S", help="Training steps, over all replicas."),
    click.option("--mode", type=click.Choice(["sync", "async"]), help="How replicas combine their gradients."),
    click.option(
        "--staleness", type=int, metavar="S", help="Async: how many steps a replica may be ahead of the slowest."
    ),
    click.option("--accumulate", type=int, metavar="K", help="Batches whose gradients a replica averages for a step."),
    click.option(
        "--bad-gradients",
        type=click.Choice(BAD_GRADIENTS),
        help="What to do about NaN and infinite gradients: train on and tell, leave the replica out, or end the run. "
        "Without it gradients are not checked.",
    ),
    click.option(
        "--on-lost-data",
        type=click.Choice(ON_LOST_DATA),
        help="When the data of a replica is no longer read, while others train: say so, or end the run.",
    ),
    click.option(
        "--wire-dtype", type=click.Choice(WIRE_DTYPES), help="Send gradients and parameters in 16 bits instead of 32."
    ),
    click.option("--seed", type=int, help="Seed of the model's random numbers."),
    click.option("--cpus-per-worker", type=float, metavar="C", help="CPUs that each worker asks of Ray."),
    click.option(
        "--gpus-per-worker", type=float, metavar="G", help="GPUs that each worker asks of Ray; below 1, a share of one."
    ),
    click.option("--max-restarts", "max_worker_restarts", type=int, metavar="R", help="Dead workers to replace."),
    click.option(
        "--address",
        metavar="ADDRESS",
        help="Where Ray is: `local` starts it here, `auto` joins a running cluster, HOST:PORT joins that one. "
        "Without it: $RAY_ADDRESS, or else `local`.",
    ),
    click.option(
        "--start-timeout", "start_timeout_s", type=float, metavar="SECONDS", help="How long to wait for room on Ray."
    ),
    click.option("--local", is_flag=True, default=None, help="Train in this process, without Ray."),
    click.option(
        "--working-dir",
        type=GivenPath(exists=True, file_okay=False, path_type=Path),
        help="Folder to ship to the nodes of a Ray that it joins: what input functions import.",
    ),
    click.option(
        "--logdir",
        type=GivenPath(),
        metavar="FOLDER",
        help="Where TensorBoard's event file goes. Without it: a new folder in $TFRAY_LOGDIR, which is `runs` unless "
        "set, and nowhere if set to nothing. See `tfray board`.",
    ),
    click.option(
        "--checkpoint-dir",
        type=GivenPath(),
        metavar="FOLDER",
        help="Save checkpoints there, and go on from the newest one. Without it there are none.",
    ),
    click.option(
        "--save-every",
        metavar="STEPS|TIME",
        callback=lambda context, option, text: _parse_interval(text),
        help="Steps, or a time like 30s, 10m or 2h, between checkpoints. Without it: what loses least, by the measured "
        "cost of a save and the failures seen.",
    ),
    click.option("--keep-checkpoints", type=int, metavar="K", help="How many of the newest to keep; 0 for all."),
    click.option(
        "--resume/--no-resume", default=None, help="Begin from the newest checkpoint, or from new initial values."
    ),
    click.option("--resume-from", type=GivenPath(), metavar="PATH", help="Begin from this checkpoint, not the newest."),
    click.option("--json", "json_path", type=GivenPath(path_type=Path), help="Write every step's numbers as JSON."),
    click.option("--plot", "plot_path", type=GivenPath(path_type=Path), help="Draw the run's curves as PNG."),
    click.option(
        "--variables", "variables_path", type=GivenPath(path_type=Path), help="Write the trained variables as NPZ."
    ),
    click.option(
        "--timeline", "timeline_path", type=GivenPath(path_type=Path), help="Write a timeline of three steps as JSON."
    ),
    click.option("--progress/--no-progress", default=True, help="Show progress on standard error."),
    click.option("--debug", is_flag=True, help="Show Python's traceback of an error."),
    click.option("--pdb", "post_mortem", is_flag=True, help="With --local: open the debugger where an error occurs."),
)


_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _parse_interval(text: str | None) -> dict[str, Any]:
    """The fields of RunConfig for ``--save-every``."""
    if text is None:
        return {}
    if text.isdecimal():
        return {"save_every_steps": int(text), "save_every_s": None}
    try:
        return {"save_every_s": float(text[:-1]) * _UNITS[text[-1:]], "save_every_steps": None}
    except (ValueError, KeyError) as error:
        raise BadRequest(f"--save-every {text}: expected a number of steps, or a time like 30s, 10m or 2h") from error


def _with_training_options(command: _Command) -> _Command:
    return functools.reduce(lambda decorated, option: option(decorated), reversed(_TRAINING_OPTIONS), command)


@main.command(name="run")
@click.argument("target", metavar="SCRIPT_OR_MODULE:FUNCTION")
@click.argument("settings", metavar="[KEY=VALUE]...", nargs=-1)
@_with_training_options
def run_command(target: str, settings: Sequence[str], **options: Any) -> None:
    """Train what a function returns.

    FUNCTION returns a tf.train.Trainer, or a pair of one and the batches to test it on. It stands in a script
    (examples/mlp.py:build) or in a module that can be imported (package.module:build). KEY=VALUE are its keyword
    arguments, as Python literals or plain text. The options override what the Trainer was made with.
    """
    _train(lambda: load_function(target, options["debug"]), settings, target, options)


def train(build: Build, args: Sequence[str] | None = None) -> NoReturn:
    """Make a program a command: ``python program.py`` then takes the options of ``tfray run``. Exits when done.

    Args:
        build: Returns what to train; see `Build`.
        args: The command's arguments; those of this process when None.
    """

    @click.command(cls=OneLineErrors, help=inspect.getdoc(build))
    @click.argument("settings", metavar="[KEY=VALUE]...", nargs=-1)
    @_with_training_options
    def command(settings: Sequence[str], **options: Any) -> None:
        _train(lambda: build, settings, Path(sys.argv[0]).name, options)

    command.main(args)
    raise AssertionError("a command exits")


@dataclass(frozen=True)
class _Outputs:
    """Files to write after training."""

    json_path: Path | None
    plot_path: Path | None
    variables_path: Path | None
    timeline_path: Path | None = None

    def __post_init__(self) -> None:
        """Fail before training, not after it."""
        for path in filter(None, (self.json_path, self.plot_path, self.variables_path, self.timeline_path)):
            _check_writable(path)
        if self.plot_path is not None:
            try:
                report.figure_class()
            except NotFoundError as error:
                raise BadRequest(str(error)) from error

    def write(
        self, title: str, trainer: Trainer, records: Sequence[StepRecord], result: Result | None, test: dict[str, float]
    ) -> None:
        """Write the files that were asked for. An interrupted run has no result: then write what there is.

        Raises:
            OpError: A file could not be written; the others have been.
        """
        failed: OpError | None = None
        for path, save, hint in self._files(title, trainer, records, result, test):
            try:
                with failures_of(path):
                    save()
            except OpError as error:
                failed = failed or error
            else:
                click.echo(f"wrote {path}{hint}")
        if failed is not None:
            raise failed

    def _files(
        self, title: str, trainer: Trainer, records: Sequence[StepRecord], result: Result | None, test: dict[str, float]
    ) -> Iterator[tuple[Path, Callable[[], None], str]]:
        """Each file with the function that writes it, and what to print about it."""
        if (path := self.json_path) is not None:
            run = {name: value for name, value in _fields(trainer.run).items() if name not in ("on_step", "callbacks")}
            about = {"target": title, "version": tfray.__version__, "scaling": _fields(trainer.scaling), "run": run}
            yield path, functools.partial(report.write_history, path, records, test, about), ""
        if (path := self.plot_path) is not None and records:
            plot = functools.partial(report.plot_history, path, records, test, title, _describe_run(trainer))
            yield path, plot, ""
        if (path := self.variables_path) is not None and result is not None:
            yield path, functools.partial(report.write_variables, path, result.variables), ""
        traces = [record.trace for record in records if record.trace is not None]
        if (path := self.timeline_path) is not None and traces:
            yield path, functools.partial(Timeline(merged(traces)).save, path), ": open it at https://ui.perfetto.dev"


def _check_writable(path: Path) -> None:
    """Raise `BadRequest` for a file that cannot be written; make its folder."""
    try:
        if path.is_dir():
            raise BadRequest(f"cannot write {path}: it is a directory")
        with contextlib.suppress(FileExistsError):  # a file in place of the folder is reported below
            path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        if is_new or path.is_file():
            path.open("ab").close()  # to open it is the only sure test: the file system may be read-only, for instance
        if is_new:
            path.unlink()
    except (OSError, ValueError) as error:
        raise BadRequest(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error


def _describe_run(trainer: Trainer) -> str:
    if trainer.run.local:
        return "in one process"
    scaling = trainer.scaling
    backups = f" ({scaling.backup_workers} backup)" if scaling.backup_workers else ""
    servers = scaling.parameter_servers
    shards = "one parameter shard" if servers == 1 else f"{_range(servers)} parameter shards"
    shards = "which hold the variables" if scaling.has_copies else shards
    shards += " with standbys" if scaling.replicated_shards else ""
    return f"{scaling.mode}, {_range(scaling.workers)} workers{backups}, {shards}"


def _range(count: int | tuple[int, int] | str) -> str:
    return f"{count[0]} to {count[1]}" if isinstance(count, tuple) else str(count)


def _train(find: Callable[[], Build], settings: Sequence[str], title: str, options: dict[str, Any]) -> None:
    records = StepHistory()
    with reported_errors(options["debug"], records), _post_mortem(options["post_mortem"]):
        if options["post_mortem"] and not options["local"]:
            raise BadRequest("--pdb needs --local: on Ray operations run in other processes")
        outputs = _Outputs(*(options[field.name] for field in fields(_Outputs)))
        trainer, batches = built_trainer(find(), settings, options["debug"])
        trainer.scaling = _override(trainer.scaling, options)
        trainer.run = replace(_override(trainer.run, options), **options["save_every"])
        if outputs.timeline_path is not None and not trainer.run.trace_steps:
            first = max(1, min(_parse_steps(_TIMELINE)[0], trainer.run.steps - 2))
            trainer.run = replace(trainer.run, trace_steps=range(first, first + 3))
        if (
            options["working_dir"] is not None
            and not trainer.run.local
            and ray_runtime.joins_cluster(trainer.run.address)
        ):
            ray_runtime.connect(trainer.run.address, ray_runtime.shipped(options["working_dir"]))
        try:
            result = _fit(trainer, records, options["progress"])
        except KeyboardInterrupt:
            outputs.write(title, trainer, records, None, {})
            click.echo(f"tfray: interrupted after {len(records)} steps", err=True)
            sys.exit(INTERRUPTED)
        test = trainer.evaluate(result, batches) if batches is not None else {}
        _summarize(result, test)
        outputs.write(title, trainer, records, result, test)


def _fields(config: Any) -> dict[str, Any]:
    """Fields of a configuration that JSON can hold; the others as text."""
    plain = (str, int, float, bool, dict, tuple, type(None))
    return {
        field.name: value if isinstance(value, plain) else repr(value)
        for field in fields(config)
        for value in [getattr(config, field.name)]
    }


_Config = TypeVar("_Config")


def _override(config: _Config, options: Mapping[str, Any]) -> _Config:
    """`config` with the options that were given and are named after its fields."""
    names = {field.name for field in fields(config)}  # type: ignore[arg-type]
    given = {name: value for name, value in options.items() if name in names and value is not None}
    return replace(config, **given)  # type: ignore[type-var]


def _fit(trainer: Trainer, records: StepHistory, show: bool) -> Result:
    observer = trainer.run.on_step
    with TrainingProgress(trainer.run.steps, show) as progress:

        def on_step(record: StepRecord) -> None:
            records.append(record)
            progress.update(record)
            if observer is not None:
                observer(record)

        trainer.run = replace(trainer.run, on_step=on_step)
        return trainer.fit()


def _summarize(result: Result, test: Mapping[str, float]) -> None:
    speed = result.steps / result.duration_s if result.duration_s else 0.0
    took = f"{result.steps} steps in {result.duration_s:.1f} s ({format_speed(speed)})"
    click.echo(f"{took}, {result.dropped} late gradients dropped")
    statistics = result.statistics
    for count, what in ((statistics.replacements, "workers replaced"), (statistics.rollbacks, "rollbacks")):
        if count:
            click.echo(f"{what}: {count}")
    for replica, step in sorted(statistics.lost_data.items()):
        click.echo(f"lost data: the share of replica {replica}, from step {step} on")
    for heading, metrics in (("last step", result.metrics), ("test", test)):
        if metrics:
            numbers = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
            click.echo(f"{heading + ':':<11}{numbers}")
    if result.logdir is not None:
        click.echo(f"TensorBoard: tfray board {shlex.quote(result.logdir)}")


@contextlib.contextmanager
def _post_mortem(wanted: bool) -> Iterator[None]:
    """Open the debugger in the kernel that failed."""
    try:
        yield
    except OpError as error:
        if wanted:
            click.echo(str(error))
            cause: BaseException = error
            while cause.__cause__ not in (None, cause):  # the kernel's own error, before the operation was named
                cause = cause.__cause__ or cause
            pdb.post_mortem(cause.__traceback__)
        raise


# -- timelines -----------------------------------------------------------------------------------------


@main.command()
@click.argument("target", metavar="SCRIPT_OR_MODULE:FUNCTION")
@click.argument("settings", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--steps",
    "chosen",
    default=_TIMELINE,
    show_default=True,
    metavar="FIRST:LAST",
    help="Steps to record.",
)
@click.option("-o", "--output", type=GivenPath(path_type=Path), default="timeline.json", show_default=True)
@click.option("--workers", type=int, metavar="N", help="Replicas of the model.")
@click.option("--ps", "parameter_servers", type=int, metavar="P", help="Shards that hold the variables.")
@click.option("--backup-workers", type=int, metavar="B", help="Replicas that a step does not wait for; B of the N.")
@click.option("--mode", type=click.Choice(["sync", "async"]), help="How replicas combine their gradients.")
@click.option("--address", metavar="ADDRESS", help="Where Ray is; see `tfray run`.")
@click.option("--local", is_flag=True, default=None, help="Train in this process, without Ray.")
@click.option("--progress/--no-progress", default=True, help="Show progress on standard error.")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def timeline(target: str, settings: Sequence[str], chosen: str, output: Path, **options: Any) -> None:
    """Train a few steps, and write a timeline of some of them over all devices.

    FUNCTION returns what `tfray run` takes. Perfetto (https://ui.perfetto.dev) and chrome://tracing open the file.
    """
    first, last = _parse_steps(chosen)
    records = StepHistory()
    with reported_errors(options["debug"], records):
        outputs = _Outputs(None, None, None, output)
        trainer, _ = built_trainer(load_function(target, options["debug"]), settings, options["debug"])
        trainer.scaling = _override(trainer.scaling, options)
        only: dict[str, Any] = {"steps": last, "trace_steps": range(first, last + 1), "logdir": None}
        trainer.run = replace(_override(trainer.run, options), **only)
        _fit(trainer, records, options["progress"])
        traces = [record.trace for record in records if record.trace is not None]
        if not traces:
            raise BadRequest(f"training ended after {len(records)} steps: there is nothing of {chosen} to show")
        outputs.write(target, trainer, records, None, {})
        click.echo(f"step {last}:")
        show_profile(traces[-1])
        found = overlap(traces)
        if found.sending_s:
            step, computing, sending = (f"{s * 1e3:.1f} ms" for s in (found.step_s, found.computing_s, found.sending_s))
            click.echo(
                f"{len(traces)} steps of {step}, with {computing} of computing and {sending} of sending in each:"
            )
            click.echo(f"a step takes {found.share:.2f} times as long as the longer of the two")


def _parse_steps(chosen: str) -> tuple[int, int]:
    first, _, last = chosen.partition(":")
    numbers = [text for text in (first, last or first) if text.isdecimal() and int(text) > 0]
    if len(numbers) < 2 or int(numbers[0]) > int(numbers[1]):
        raise BadRequest(f"{chosen!r} is not FIRST:LAST, numbers of steps from 1 on")
    return int(numbers[0]), int(numbers[1])


# -- graphs --------------------------------------------------------------------------------------------


@main.command()
@click.argument("target", metavar="SCRIPT_OR_MODULE:FUNCTION")
@click.argument("settings", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--scope", default="", metavar="SCOPE", help="Show only what is below this name scope.")
@click.option("--depth", type=click.IntRange(min=1), help="Levels to show.")
@click.option("--constants", is_flag=True, help="Show constants too.")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def graph(target: str, settings: Sequence[str], scope: str, depth: int | None, constants: bool, debug: bool) -> None:
    """Show a graph as a tree of name scopes.

    FUNCTION builds it in the default graph, or returns what `tfray run` takes.
    """
    with reported_errors(debug, ()):
        build = load_function(target, debug)
        found = tfray.Graph()
        with found.as_default():
            built = called(build, settings, debug)
        trainer = built[0] if isinstance(built, tuple) and built else built
        show_graph(trainer.graph() if isinstance(trainer, Trainer) else found, scope, depth, constants)


# -- plans ---------------------------------------------------------------------------------------------


@main.command()
@click.argument("target", metavar="SCRIPT_OR_MODULE[:FUNCTION]")
@click.argument("settings", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Replicas, or tasks of the job `worker`.")
@click.option("--ps", "parameter_servers", metavar="P|MIN:MAX|auto", callback=_parse_shards, help="Parameter shards.")
@click.option("--nodes", type=click.IntRange(min=1), metavar="N", help="Plan for N nodes like this one.")
@click.option("--fetch", multiple=True, metavar="NAME", help="What a graph's step runs; by default its training step.")
@click.option("--placement", type=click.Choice(["cost", "default"]), default="cost", show_default=True)
@click.option("--measure", is_flag=True, help="Run steps as well, and compare.")
@click.option("--local", is_flag=True, default=None, help="Plan for this process, without Ray.")
@click.option("--address", metavar="ADDRESS", help="Where Ray is; see `tfray run`.")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def plan(target: str, settings: Sequence[str], **options: Any) -> None:
    """Predict a step: where everything goes, what moves, how long it takes, and what bounds it.

    FUNCTION returns what `tfray run` takes, or builds a graph in the default graph; without it that is `build`, or the
    graph that the script itself builds.
    """
    with reported_errors(options["debug"], ()):
        found = tfray.Graph()
        with found.as_default():
            built = built_by(target, settings, options["debug"])
        if isinstance(built, Trainer):
            if options["fetch"]:
                raise BadRequest("--fetch is for graphs: the step of a trainer is its training step")
            built.scaling = _override(built.scaling, options)
            built.run = _override(built.run, options)
            plan_report.show_training(built, options["nodes"], options["measure"])
            return
        count = options["parameter_servers"]
        if not isinstance(count, int | None):
            raise BadRequest("--ps auto and MIN:MAX are for trainers: name the number of tasks of the job `ps`")
        plan_report.show_session(
            found,
            plan_report.targets_of(found, options["fetch"]),
            plan_report.cluster_devices(options["workers"], count),
            options["placement"] == "cost",
            options["measure"],
            options["address"],
        )


# -- TensorBoard ---------------------------------------------------------------------------------------


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("logdir", type=GivenPath())
@click.option("--host", default="localhost", show_default=True, help="Address to serve on; 0.0.0.0 for all.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6006,
    show_default=True,
    help="Port to serve on; 0 for any that is free.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def board(logdir: str, host: str, port: int, arguments: Sequence[str]) -> None:
    """Show a folder of event files, with those below it, in TensorBoard.

    Further ARGUMENTS go to TensorBoard: `tfray board runs --reload_interval 5`.
    """
    if not is_folder(logdir):
        raise BadRequest(f"there is no folder {logdir!r}; training writes event files below `runs`, or to --logdir")
    if importlib.util.find_spec("tensorboard") is None:
        raise BadRequest("TensorBoard is not installed: pip install 'tfray[tensorboard]'")
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--host", host, "--port", str(port)]
    sys.stdout.flush()
    os.execv(sys.executable, [*command, *arguments])


# -- operations ----------------------------------------------------------------------------------------


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print a list of records: name, devices, gradient.")
@click.option("--missing", is_flag=True, help="List the symbols of TensorFlow 1 programs that are not there.")
def ops(as_json: bool, missing: bool) -> None:
    """List the operations, or what of TensorFlow 1 is missing."""
    if missing:
        symbols = ops_command.missing_symbols(tfray)
        if as_json:
            click.echo(json.dumps([{"name": name, "files": count} for name, count in symbols]))
            return
        table = Table("symbol", "files that use it", box=None, pad_edge=False)
        for name, count in symbols:
            table.add_row(name, str(count))
    else:
        records = ops_command.operations()
        if as_json:
            click.echo(json.dumps([asdict(record) for record in records]))
            return
        table = Table("operation", "devices", "gradient", box=None, pad_edge=False)
        for record in records:
            table.add_row(record.name, " ".join(record.devices), "yes" if record.gradient else "")
    Console().print(table)


# -- devices -------------------------------------------------------------------------------------------


@main.command()
@click.option("--address", metavar="ADDRESS", help="Show the nodes of the Ray cluster there: `auto` or HOST:PORT.")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def devices(address: str | None, debug: bool) -> None:
    """List the devices of this process, or the nodes of a Ray cluster."""
    with reported_errors(debug, ()):
        table = _local_devices() if address is None else _cluster_nodes(address)
    Console().print(table)


def _local_devices() -> Table:
    table = Table("device", "what it is", box=None, pad_edge=False)
    for name in local_device_names():
        table.add_row(name, _describe_device(name))
    return table


def _describe_device(name: str) -> str:
    _, _, number = name.rpartition(":")
    module = cupy()
    if "GPU" not in name or module is None:
        count = thread_count()
        return f"{count} thread{'s' if count > 1 else ''}, NumPy"
    properties = module.cuda.runtime.getDeviceProperties(int(number))
    return f"{properties['name'].decode()}, {properties['totalGlobalMem'] / 2**30:.0f} GiB, CuPy"


def _cluster_nodes(address: str) -> Table:
    owned = ray_runtime.connect(address)
    ray = ray_runtime.import_ray()
    try:
        table = Table("node", "CPU", "GPU", "memory, GiB", "other resources", box=None, pad_edge=False)
        for node in filter(lambda node: node["Alive"], ray.nodes()):
            table.add_row(node["NodeManagerAddress"], *_describe_resources(node["Resources"]))
        return table
    finally:
        if owned:
            ray.shutdown()


def _describe_resources(resources: Mapping[str, float]) -> list[str]:
    known = ("CPU", "GPU", "memory", "object_store_memory")
    other = [f"{name}: {amount:g}" for name, amount in resources.items() if name not in known and "node:" not in name]
    memory = resources.get("memory", 0.0) / 2**30
    return [f"{resources.get('CPU', 0):g}", f"{resources.get('GPU', 0):g}", f"{memory:.1f}", ", ".join(other)]
