"""``tfray run-program``: one unmodified program of TensorFlow 1, in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from tfray.cli.command import BadRequest, OneLineErrors
from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.framework.allowed_uses import KINDS
from tfray.framework.allowed_uses import VARIABLE as ALLOW
from tfray.programs.missing_symbols import missing_symbols
from tfray.programs.run_program import Program, run
from tfray.programs.tensorflow_modules import VARIABLE, VERSIONS, install
from tfray.runtime.device import LOCAL_DEVICES


@click.command(
    name="run-program",
    cls=OneLineErrors,
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
)
@click.argument("source", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module, as for `python -m`.")
@click.option(
    "--local-devices", type=click.IntRange(min=1), metavar="N", help="CPU devices of a session that asks for no number."
)
@click.option(
    "--report-missing", is_flag=True, help="Before it runs, list what it uses of TensorFlow that is not here."
)
@click.option(
    "--tensorflow",
    "version",
    type=click.Choice(list(VERSIONS)),
    envvar=VARIABLE,
    help=f"The version whose names it finds; ${VARIABLE} says the same.",
)
@click.option(
    "--allow",
    type=click.Choice([*KINDS, ",".join(KINDS)]),
    help=f"What graphs may use that it loads from files; ${ALLOW} says the same.",
)
def run_program(
    source: str,
    arguments: Sequence[str],
    is_module: bool,
    local_devices: int | None,
    report_missing: bool,
    version: str | None,
    allow: str | None,
) -> None:
    """Run a program of TensorFlow 1 as it is, in this process.

    `import tensorflow` and its submodules find tfray. All else is as with `python SCRIPT ARGUMENTS`: sys.argv, where
    modules are found, tracebacks and exit codes. `python -m tfray SCRIPT.py` does the same.
    """
    if local_devices is not None:
        os.environ[LOCAL_DEVICES] = str(local_devices)
    if version is not None:
        os.environ[VARIABLE] = version  # for processes that it starts
    if allow is not None:
        os.environ[ALLOW] = allow
    program = Program(source, arguments, is_module)
    try:
        if report_missing:
            _report(program)
        code = run(program)
    except (NotFoundError, InvalidArgumentError) as error:
        raise BadRequest(error.message) from error
    if code:
        sys.exit(code)


def _report(program: Program) -> None:
    """List what is missing, on standard error."""
    install()
    _, _, file = program.loaded()
    missing = missing_symbols(file, [sys.path[0]])
    for each in missing:
        click.echo(each, err=True)
    names = len({each.name for each in missing})
    click.echo(
        f"tfray: {names} of the symbols that the program uses do not exist here"
        if names
        else "tfray: every symbol that the program uses exists here",
        err=True,
    )


def begins_with_program(arguments: Sequence[str]) -> bool:
    """Whether the arguments of ``python -m tfray`` are those of `run_program`, rather than a command and its own."""
    options = {name for option in run_program.params for name in option.opts if name.startswith("-")}
    return bool(arguments) and (arguments[0].partition("=")[0] in options or arguments[0].endswith(".py"))
