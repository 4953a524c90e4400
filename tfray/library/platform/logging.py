"""The names of ``tf.logging``: messages by way of Python's own logging, in the logger ``tfray``."""

from __future__ import annotations

import logging as _logging
import sys
from collections import Counter
from functools import lru_cache
from typing import Any, Final

from tfray.errors import ArgumentError, InvalidArgumentError

# fmt: off
__all__ = [
    "DEBUG", "ERROR", "FATAL", "INFO", "WARN", "WARNING", "TaskLevelStatusMessage", "debug", "error", "fatal", "flush",
    "get_logger", "get_verbosity", "info", "log", "log_every_n", "log_first_n", "log_if", "set_verbosity", "vlog",
    "warn", "warning",
]
# fmt: on

DEBUG: Final = _logging.DEBUG
INFO: Final = _logging.INFO
WARN: Final = _logging.WARNING
WARNING: Final = _logging.WARNING
ERROR: Final = _logging.ERROR
FATAL: Final = _logging.CRITICAL

LOGGER: Final = _logging.getLogger("tfray")
"""What programs find as ``tf.logging._logger``."""

_CALLER: Final = 2
"""Stack frames between Python's logging call and the user's line: the message shows that line."""


@lru_cache(maxsize=1)
def _get_logger() -> _logging.Logger:
    logger = _logging.getLogger("tfray")
    if logger.level == _logging.NOTSET:
        logger.setLevel(WARN)
    if not logger.handlers and not _logging.getLogger().handlers:
        handler = _StderrHandler()
        handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT))
        logger.addHandler(handler)
    return logger


class _StderrHandler(_logging.StreamHandler[Any]):
    """Writes to what ``sys.stderr`` is at the time of a message; silent once a program configures logging itself."""

    def __init__(self) -> None:
        _logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    def emit(self, record: _logging.LogRecord) -> None:
        if not _logging.getLogger().handlers:
            super().emit(record)


def _level(level: Any) -> int:
    if not isinstance(level, int):
        raise TypeError(f"level must be an integer, such as tf.logging.INFO, got {level!r}")
    return level


def log(level: int, msg: object, *args: object) -> None:
    """Write a message at a level; `args` are filled into `msg` with ``%``."""
    _get_logger().log(_level(level), msg, *args, stacklevel=_CALLER)


def debug(msg: object, *args: object, **kwargs: Any) -> None:
    """Write a message at level DEBUG."""
    _get_logger().debug(msg, *args, **{"stacklevel": _CALLER} | kwargs)


def info(msg: object, *args: object, **kwargs: Any) -> None:
    """Write a message at level INFO."""
    _get_logger().info(msg, *args, **{"stacklevel": _CALLER} | kwargs)


def warning(msg: object, *args: object, **kwargs: Any) -> None:
    """Write a message at level WARN."""
    _get_logger().warning(msg, *args, **{"stacklevel": _CALLER} | kwargs)


warn = warning


def error(msg: object, *args: object, **kwargs: Any) -> None:
    """Write a message at level ERROR."""
    _get_logger().error(msg, *args, **{"stacklevel": _CALLER} | kwargs)


def fatal(msg: object, *args: object, **kwargs: Any) -> None:
    """Write a message at level FATAL. The program goes on."""
    _get_logger().critical(msg, *args, **{"stacklevel": _CALLER} | kwargs)


def vlog(level: int, msg: object, *args: object, **kwargs: Any) -> None:
    """Write a message at a numeric level: what stands below the verbosity is not shown."""
    _get_logger().log(_level(level), msg, *args, **{"stacklevel": _CALLER} | kwargs)


_counts: Final[Counter[Any]] = Counter()


def log_every_n(level: int, msg: object, n: int, *args: object) -> None:
    """Write a message in the first of every `n` calls with the same `msg`. Raises `InvalidArgumentError` for n < 1."""
    if (_counted(msg, n) - 1) % n == 0:
        _get_logger().log(_level(level), msg, *args, stacklevel=_CALLER)


def log_first_n(level: int, msg: object, n: int, *args: object) -> None:
    """Write a message in the first `n` calls with the same `msg`."""
    if _counted(msg, n, least=0) <= n:
        _get_logger().log(_level(level), msg, *args, stacklevel=_CALLER)


def _counted(msg: object, n: int, least: int = 1) -> int:
    """How many calls there have been with this message, this one included."""
    if not isinstance(n, int) or n < least:
        raise InvalidArgumentError(f"n is {n!r}: expected a whole number of at least {least}")
    _counts[str(msg)] += 1
    return _counts[str(msg)]


def log_if(level: int, msg: object, condition: Any, *args: object) -> None:
    """Write a message if a condition holds. Raises `ArgumentError` if it has no truth value, as a tensor has none."""
    try:
        holds = bool(condition)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"log_if(): condition is {condition!r}: {error}") from error
    if holds:
        _get_logger().log(_level(level), msg, *args, stacklevel=_CALLER)


def set_verbosity(v: int | str) -> None:
    """Show messages from level `v` on: a number, or its name."""
    _get_logger().setLevel(v)


def get_verbosity() -> int:
    """The least level that is shown."""
    return _get_logger().getEffectiveLevel()


def flush() -> None:
    """Write out what handlers hold back."""
    for handler in _get_logger().handlers:
        handler.flush()


def TaskLevelStatusMessage(msg: object) -> None:
    """Write a message at level ERROR."""
    error(msg)


def get_logger() -> _logging.Logger:
    """The logger behind these functions."""
    return _get_logger()
