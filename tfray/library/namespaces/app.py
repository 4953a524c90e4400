"""The names of ``tf.app``: `run` starts a program's ``main`` after its flags are parsed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tfray.library.platform import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Parse the flags, call ``main`` with what is left of the arguments, and exit with what it returns.

    ``--help`` prints the flags. Arguments that name no flag of the program are left for ``main``.

    Args:
        main: Takes a list: the program's name and the arguments that are no flags. By default the function ``main``
            of the program itself.
        argv: The arguments, the program's name first; ``sys.argv`` when None.

    Raises:
        SystemExit: Always, with 1 when a flag is wrong.
    """
    arguments = list(sys.argv if argv is None else argv)
    if main is None:
        main = sys.modules["__main__"].main
    if any(argument in _HELP for argument in arguments[1:]):
        print(_usage(arguments[0]))
        sys.exit(1)
    try:
        left = flags.FLAGS(arguments, known_only=True)
    except flags.Error as error:
        print(f"FATAL flags parsing error:\n  {error}\nPass --help to see the flags.", file=sys.stderr)
        sys.exit(1)
    sys.exit(main(left))


_HELP = ("--help", "-help", "-h", "--helpfull", "--helpshort")


def _usage(program: str) -> str:
    about = (sys.modules["__main__"].__doc__ or f"USAGE: {program} [flags]").strip()
    return f"{about}\n\nflags:\n{flags.FLAGS.get_help()}"
