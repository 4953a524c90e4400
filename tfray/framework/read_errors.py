"""What is said of files and messages that turn out, in use, not to be what they should.

What is read is checked where it is read. Where a check is missing, Python or NumPy raise whatever error they have,
which speaks of tfray's code. `reason_of` says in its place as much as the error tells of what was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tfray.errors import DataLossError, OpError
from tfray.framework.arguments import abbreviated
from tfray.framework.call_errors import is_raised_here

DAMAGE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What Python and NumPy raise for contents that are not what they should be."""


@contextmanager
def damage_reported(what: str) -> Iterator[None]:
    """Within it something is used that was read from `what` and cannot be trusted. Raises `DataLossError`."""
    try:
        yield
    except OpError:
        raise
    except DAMAGE as error:
        raise DataLossError(f"{what} is damaged: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Why something that was read cannot be used, for an error that using it has raised."""
    if isinstance(error, OpError):
        return error.message
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON: {error}"
    if isinstance(error, UnicodeError):
        return "a text in it is not UTF-8"
    if is_raised_here(error) and error.args and not isinstance(error, AssertionError):
        text = str(error.args[0])
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if isinstance(error, KeyError) and error.args:
        return f"it has no {abbreviated(error.args[0])}"
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), _VAGUE)


def fields_of(plain: Any, what: str, **kinds: type) -> dict[str, Any]:
    """Plain data that has to be a dictionary with these entries, each of its kind; `what` it is, for the error.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(plain, dict):
        raise ValueError(f"{what} is {abbreviated(plain)}, and not described by {', '.join(kinds) or 'names'}")
    for key, kind in kinds.items():
        if key not in plain:
            raise ValueError(f"{what} has no {key!r}")
        if not isinstance(plain[key], kind):
            raise ValueError(f"{key!r} of {what} is {abbreviated(plain[key])}")
    return plain


_LONGEST: Final = 1000
"""Characters of a reason: it may quote a file, and names in it can be of any length."""
_VAGUE: Final = "a part of it is not what belongs there"
_REASONS: Final = (
    (RecursionError, "it is nested too deeply"),
    (MemoryError, "it declares more than fits into memory"),
    (ArithmeticError, "a number in it is out of range"),
)
"""What some kinds of errors tell, whatever their text."""
