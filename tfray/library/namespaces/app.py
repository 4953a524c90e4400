"""The names of ``tf.app``: `run` starts a program's ``main`` after its flags are parsed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from absl import app

from tfray.library.platform import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Parse the flags, call ``main`` with what is left of the arguments, and exit with what it returns.

    ``--help`` prints the flags. Arguments that name no flag of the program are left for ``main``. This is absl's
    ``app.run``: its flags are there, such as ``--run_with_pdb``, and from then on messages of Python's loggers, those
    of `tf.logging` among them, go to stderr in its form, from level INFO on.

    Args:
        main: Takes a list: the program's name and the arguments that are no flags. By default the function ``main``
            of the program itself.
        argv: The arguments, the program's name first; ``sys.argv`` when None.

    Raises:
        SystemExit: Always, with 1 when a flag is wrong.
    """
    arguments = list(sys.argv if argv is None else argv)
    app.run(main or sys.modules["__main__"].main, arguments, flags_parser=_parsed)


def _parsed(arguments: list[str]) -> list[str]:
    try:
        return flags.FLAGS(arguments, known_only=True)
    except (flags.Error, ValueError) as error:
        print(f"FATAL flags parsing error:\n  {error}\nPass --help to see the flags.", file=sys.stderr)
        sys.exit(1)
