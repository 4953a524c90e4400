"""What the commands share: how they report errors."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

import click

from tfray.errors import InvalidArgumentError, OpError
from tfray.formats.files import given_path
from tfray.framework.call_site import user_traceback

INTERRUPTED: Final = 130


class BadRequest(click.ClickException):
    """What the user asked for cannot be done."""

    exit_code = 2


class GivenPath(click.Path):
    """A path that is not empty: of a variable of the shell that is not set, an option gets an empty one."""

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


@contextlib.contextmanager
def reported_errors(debug: bool, records: Sequence[Any] = ()) -> Iterator[None]:
    """Turn errors of tfray into one message. One that blames no operation or device is about the request.

    Args:
        debug: Show Python's traceback instead.
        records: What the run has done: an error that comes later is none of the request.
    """
    try:
        yield
    except OpError as error:
        if debug:
            raise
        lines = user_traceback(error)
        failure = click.ClickException(f"{error}\n{lines}" if lines else str(error))
        if not records and not error.op_name and not error.device and not error.site:
            failure = BadRequest(str(error))
        raise failure from error
