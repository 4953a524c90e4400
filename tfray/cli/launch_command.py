"""``tfray launch``: between-graph programs of TensorFlow 1, a process for each task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from tfray.actors.clusters import ray_runtime
from tfray.actors.launching.launch import Launch, Program, Start, Task, TaskFailedError, on_nodes, script_on_nodes
from tfray.actors.launching.task_process import TaskProcess
from tfray.cli.command import BadRequest, Finite, GivenPath, OneLineErrors, reported_errors
from tfray.ops.kernels.cpu_threads import thread_count

_COLORS: Final = ("cyan", "green", "yellow", "blue", "magenta", "bright_cyan", "bright_green", "bright_yellow")


@click.command(cls=OneLineErrors, context_settings={"allow_interspersed_args": False})
@click.argument("script", type=GivenPath(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--ps",
    "parameter_servers",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="P",
    help="Tasks `ps`.",
)
@click.option(
    "--workers", type=click.IntRange(min=0), default=1, show_default=True, metavar="N", help="Tasks `worker`."
)
@click.option("--chief", is_flag=True, help="A task `chief`, a worker that saves: for tf.estimator.")
@click.option("--evaluator", is_flag=True, help="A task `evaluator`, beside the cluster: for tf.estimator.")
@click.option("--address", metavar="ADDRESS", help="Where Ray is; see `tfray run`. Its nodes share the tasks.")
@click.option(
    "--cpus-per-task", type=Finite(min=0), metavar="C", help="CPUs that each task asks of a Ray that it joins; 1."
)
@click.option(
    "--working-dir",
    type=GivenPath(exists=True, file_okay=False, path_type=Path),
    help="Folder with SCRIPT and what it imports, to be shipped to the nodes of a Ray that it joins.",
)
@click.option(
    "--flags/--no-flags",
    default=None,
    help="Whether the script takes --job_name and its like; yes, unless there is a chief or an evaluator.",
)
@click.option(
    "--max-restarts",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="R",
    help="Failed tasks to restart.",
)
@click.option(
    "--grace",
    "grace_s",
    type=Finite(min=0),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for workers to end.",
)
@click.option(
    "--start-timeout",
    "start_timeout_s",
    type=Finite(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for room on Ray.",
)
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def launch(script: Path, arguments: Sequence[str], **options: Any) -> None:
    """Run a between-graph program of TensorFlow 1: a process for each task.

    SCRIPT gets --job_name, --task_index, --ps_hosts and --worker_hosts, then ARGUMENTS (after --), and TF_CONFIG in its
    environment; `import tensorflow` finds tfray. Its servers meet on Ray: one that is started here, with all processes
    on this machine, or one that runs, on whose nodes each task finds a place. The run ends when the workers, the chief
    and the evaluator have ended, or when a task has failed.
    """
    with reported_errors(options["debug"], ()):
        if not script.is_file():
            raise BadRequest(f"there is no file {script}")
        own = {name for option in launch.params for name in option.opts if name.startswith("--")}
        misplaced = [] if arguments[:1] == ("--",) else [name for name in arguments if name.partition("=")[0] in own]
        if misplaced:
            click.echo(
                f"tfray: the program gets {', '.join(misplaced)}: options of `tfray launch` come before {script}, and "
                "those of the program after --",
                err=True,
            )
        is_here = not ray_runtime.joins_cluster(options["address"])
        program = _program(script, arguments[1:] if arguments[:1] == ("--",) else arguments, is_here, options)
        owned = ray_runtime.connect(options["address"], ray_runtime.shipped(options["working_dir"]))
        try:
            _launch(program, script, owned, options)
        except TaskFailedError as error:
            raise click.ClickException(error.message) from error
        finally:
            if owned:
                ray_runtime.import_ray().shutdown()


def _program(script: Path, arguments: Sequence[str], is_here: bool, options: Mapping[str, Any]) -> Program:
    """The program on a Ray that need not run yet."""
    cpus = options["cpus_per_task"]
    if cpus is None:
        cpus = max(1, thread_count() // max(1, options["workers"] + options["chief"])) if is_here else 1.0
    return Program(
        script=str(script),
        arguments=arguments,
        parameter_servers=options["parameter_servers"],
        workers=options["workers"],
        ray_address="",
        pass_flags=options["flags"] if options["flags"] is not None else not (options["chief"] or options["evaluator"]),
        threads=max(1, int(cpus)),
        chief=options["chief"],
        evaluator=options["evaluator"],
    )


def _launch(program: Program, script: Path, is_here: bool, options: Mapping[str, Any]) -> None:
    program = replace(program, ray_address=ray_runtime.ray_address())
    start: Start = TaskProcess
    if not is_here:
        cpus = 1.0 if options["cpus_per_task"] is None else options["cpus_per_task"]
        program, start = replace(program, script=script_on_nodes(script, options["working_dir"])), on_nodes(cpus)
    Launch(
        program,
        _prefixed(program.tasks),
        lambda text: click.echo(f"tfray: {text}", err=True),
        start,
        **{name: options[name] for name in ("max_restarts", "grace_s", "start_timeout_s")},
    ).run()


def _prefixed(tasks: Sequence[Task]) -> Callable[[Task, str], None]:
    """Prints lines with the task from which they come."""
    width = max(len(str(task)) for task in tasks)
    prefixes = {
        task: click.style(f"[{task}]".ljust(width + 2), fg=_COLORS[number % len(_COLORS)])
        for number, task in enumerate(tasks)
    }
    return lambda task, line: click.echo(f"{prefixes[task]} {line}")
