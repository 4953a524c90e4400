"""The command line. `train` gives a program the options of ``tfray run``."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfray.cli.commands import main as main
    from tfray.cli.commands import train as train


def __getattr__(name: str) -> Any:
    # Processes of `tfray launch` run a module of this package, and need no command of it.
    if name not in ("main", "train"):
        raise AttributeError(f"module 'tfray.cli' has no attribute {name!r}")
    from tfray.cli import commands

    return getattr(commands, name)
