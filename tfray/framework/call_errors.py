"""Errors that come out of a public function name the function's arguments.

Not every argument is checked before it is used (`arguments.py`). If one does not fit, Python or NumPy raise an error
somewhere inside, which does not help the caller. `explain_calls` wraps the functions of a namespace. The wrapper
catches such an error on its way out, and raises an `ArgumentError` that shows the arguments, with the first error as
its cause. An error that tfray raises on purpose, but far inside, where the names of the arguments are not known, gets a
note with the arguments. A call without an error takes a tenth of a microsecond longer.
"""

from __future__ import annotations

import dis
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, Final, Literal

from tfray.errors import ArgumentError, DataLossError, InvalidArgumentError, OpError
from tfray.framework.arguments import abbreviated, expectations
from tfray.framework.call_site import is_users

_ACCIDENTS: Final = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""Errors that Python or NumPy raise for a value that does not fit."""

_RAISE: Final = dis.opmap["RAISE_VARARGS"]

_LEFT_ALONE: Final = (
    "tfray.library.platform.flags",  # these look at the frame of their caller, which a wrapper would hide
    "tfray.library.platform.logging",
    "tfray.library.platform.resource_loader",
    "tfray.errors",
    "tfray.session",  # these are called in every step
)
"""Beginnings of the names of modules whose functions are left as they are."""

_OF_THE_GRAPH: Final = "tfray.framework."
"""Classes of these modules are left as they are: their methods are called for every operation."""

_NAMESPACES: Final = ("tfray.library.", "tfray.training.", "tfray.contrib.", "tfray.keras.")
"""Beginnings of the names of modules that may be a namespace within another."""

_EXPLAINED: Final = "__explained__"
"""Name of an attribute. A function that has it has been wrapped: it holds the wrapper. A class that has it is done."""


def explain_calls(namespace: ModuleType) -> None:
    """Wrap the public functions and classes of a namespace of tfray's, and of the namespaces in it.

    What has been wrapped stays as it is: a namespace may be given again when more has been loaded into it.
    """
    _explain_namespace(namespace, {namespace.__name__})


def _explain_namespace(namespace: ModuleType, seen: set[str]) -> None:
    names = vars(namespace)
    for name, value in list(names.items()):
        if type(value) is FunctionType:
            if name[0] != "_" and _is_explained(value.__module__):
                names[name] = explained_function(value)
        elif isinstance(value, ModuleType):
            if value.__name__.startswith(_NAMESPACES) and value.__name__ not in seen:
                seen.add(value.__name__)
                _explain_namespace(value, seen)
        elif isinstance(value, type) and name[0] != "_" and _is_explained(value.__module__):
            kinds = () if value.__module__.startswith(_OF_THE_GRAPH) else value.__mro__
            for kind in kinds:
                _explain_class(kind)


@cache
def _is_explained(module: str | None) -> bool:
    return module is not None and module.startswith("tfray.") and not module.startswith(_LEFT_ALONE)


def explained_function(function: FunctionType) -> Any:
    """The form in which programs have a function of tfray's."""
    known = function.__dict__.get(_EXPLAINED)
    if known is function or getattr(known, "__wrapped__", None) is function:
        return known  # and not that of a function whose attributes this one has by `functools.wraps`
    explained = _explaining(function, f"{function.__name__}()")
    function.__dict__[_EXPLAINED] = explained.__dict__[_EXPLAINED] = explained
    home = sys.modules[function.__module__].__dict__
    if home.get(function.__name__) is function:
        home[function.__name__] = explained  # pickle finds a function by module and name
    return explained


def _explain_class(kind: type) -> None:
    if _EXPLAINED in kind.__dict__ or not _is_explained(kind.__module__) or issubclass(kind, BaseException):
        return
    for name, value in list(vars(kind).items()):
        if name[0] == "_" and name != "__init__":
            continue
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if type(function) is FunctionType:
            explained = _explaining(function, "" if name == "__init__" else f"{kind.__name__}.{name}()")
            setattr(kind, name, explained if function is value else type(value)(explained))
    setattr(kind, _EXPLAINED, True)


def _explaining(function: FunctionType, shown: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _ACCIDENTS as error:
            cause = None if _is_own(sys._getframe(1)) else _cause(error)
            given = None if cause is None else _arguments(function, args, kwargs)
            if given is None:
                raise
            made = shown or type(args[0]).__name__  # the class that is made: perhaps one derived from this one
            if cause == "accident":
                raise _explanation(function, made, given, error) from error
            if given and not given.keys() & set(re.findall(r"\w+", str(error))):
                error.add_note(f"in the call of {made} with {_shown(given)}")
            raise

    # What `functools.wraps` does, in a tenth of its calls: `import tfray` wraps a thousand functions.
    call.__module__, call.__name__, call.__qualname__ = function.__module__, function.__name__, function.__qualname__
    call.__doc__, call.__annotations__ = function.__doc__, function.__annotations__
    if function.__dict__:
        call.__dict__.update(function.__dict__)
    call.__dict__["__wrapped__"] = function
    return call


def _is_own(frame: FrameType) -> bool:
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.startswith("tfray.")


def _cause(error: Exception) -> Literal["accident", "purpose"] | None:
    """Who raised an error: ``"purpose"`` for a ``raise`` in tfray, ``"accident"`` for Python or NumPy within tfray.

    None where the call itself was refused by Python, or where code of the user's failed.
    """
    traceback: TracebackType | None = error.__traceback__
    assert traceback is not None
    if traceback.tb_next is None:
        return None  # Python could not make the call
    while traceback is not None:
        last, frame = traceback, traceback.tb_frame
        if not _is_own(frame) and is_users(frame):
            return None
        traceback = traceback.tb_next
    return "purpose" if _raises(last) else "accident"


def is_raised_here(error: Exception) -> bool:
    """Whether an error comes from a ``raise`` in tfray, not from Python or NumPy."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and _raises(last)


def _raises(traceback: TracebackType) -> bool:
    frame = traceback.tb_frame
    return _is_own(frame) and frame.f_code.co_code[traceback.tb_lasti] == _RAISE


def _arguments(function: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of a call by name; None if they do not fit the signature (Python's own error then says it)."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return None
    return {name: value for name, value in given.items() if name not in ("self", "cls")}


def _shown(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={abbreviated(value)}" for name, value in given.items())


def _explanation(function: Callable[..., Any], shown: str, given: dict[str, Any], error: Exception) -> ArgumentError:
    try:
        rules = expectations(function)
    except (NameError, TypeError):  # some annotations can be read by type checkers only
        rules = {}
    for name in given.keys() & rules.keys():
        try:
            rules[name].take(f"{shown}: {name}", given[name])
        except InvalidArgumentError as refusal:
            return ArgumentError(refusal.message)
    values = _shown(given) or "no arguments"
    return ArgumentError(f"{shown} cannot work with {values}: {type(error).__name__}: {error}")


# -- what was read -------------------------------------------------------------------------------------

# What is read is checked where it is read. Where a check is missing, Python or NumPy raise whatever error they have,
# which speaks of tfray's code. `reason_of` says in its place as much as the error tells of what was read.

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
