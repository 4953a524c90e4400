"""How all commands report errors, and types of options that several commands use."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

import click

from tfray.errors import InvalidArgumentError, OpError
from tfray.formats.files import given_path
from tfray.framework.call_site import failing_site, user_traceback

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as of a shell."""


class BadRequest(click.ClickException):
    """The user has asked for something that cannot be done."""

    exit_code = 2


class GivenPath(click.Path):
    """A path that is not empty. An option gets an empty one from a shell variable that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if isinstance(value, (str, os.PathLike)):
            name = "the path" if param is None else param.get_error_hint(ctx) if ctx is not None else str(param.name)
            try:
                given_path(value, name.replace("'", ""))
            except InvalidArgumentError as error:
                raise BadRequest(error.message) from error
        return super().convert(value, param, ctx)


class OneLineErrors(click.Command):
    """A command whose errors are one line, without the usage text that Click puts before it."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run and exit."""
        try:
            code = super().main(*args, **kwargs | {"standalone_mode": False})
        except click.ClickException as error:
            click.echo(f"tfray: {error.format_message()}", err=True)
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            click.echo("tfray: interrupted", err=True)
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


class Group(OneLineErrors, click.Group):
    """A command with commands below it."""

    command_class = OneLineErrors


class Finite(click.FloatRange):
    """A number that is neither infinite nor NaN, within a range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Raises `click.BadParameter`."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


@contextlib.contextmanager
def reported_errors(debug: bool, records: Sequence[Any] = ()) -> Iterator[None]:
    """Turn errors of tfray, and of the user's code, into one message with the user's lines.

    An error of tfray that names no operation or device is about the request. Any other error that the user's code did
    not raise is a mistake of tfray's own, and keeps its traceback.

    Args:
        debug: Show Python's traceback instead.
        records: Steps that the run has done. An error after any step is not about the request.
    """
    try:
        yield
    except click.ClickException:
        raise
    except Exception as error:
        lines = user_traceback(error)
        if debug or not (lines or isinstance(error, OpError)):
            raise
        if not isinstance(error, OpError):
            raise click.ClickException(f"{one_line(error)}\n{lines}") from error
        failure = click.ClickException(f"{error}\n{lines}" if lines else str(error))
        if not records and not error.op_name and not error.device and not error.site:
            failure = BadRequest(str(error))
        raise failure from error


@contextlib.contextmanager
def errors_of(program: str, debug: bool) -> Iterator[None]:
    """Turn errors of a program, before anything has run, into one line that says where it failed.

    Args:
        program: What is run: a script, a module, a function of one.
        debug: Show Python's traceback instead.
    """
    try:
        yield
    except (click.ClickException, OpError):
        raise
    except Exception as error:
        if debug:
            raise
        raise click.ClickException(f"{program} failed: {one_line(error)}; --debug shows the traceback") from error


def one_line(error: Exception) -> str:
    """An error in one line, with the line of the program that raised it."""
    text = " ".join(str(error).split())
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {text}"  # the text names file and line
    site = failing_site(error)
    return f"{type(error).__name__}: {text}" + (f" ({site})" if site else "")
