"""Arguments of the public interface, checked when they are given: the annotations say what is expected.

    @checked
    @dataclass(frozen=True)
    class RunConfig:
        steps: Positive = 100
        save_every_s: Seconds | None = None

`checked` reads the annotations when the function or class is first called. It checks the arguments of every call, and
turns NumPy's scalars into Python's. It knows unions, `Literal`, `Annotated` with a `Range` or `OneOf`, mappings,
sequences, functions and classes. An argument with any other annotation is not checked.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import math
import numbers
import operator
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError


@dataclass(frozen=True)
class Range:
    """Bounds of a number, for `Annotated`. A bound that is None does not hold."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        bounds = {"of at least": self.least, "above": self.above, "of at most": self.most, "below": self.below}
        return " and ".join(f"{words} {bound:g}" for words, bound in bounds.items() if bound is not None)


@dataclass(frozen=True)
class OneOf:
    """The values that an argument may have, for `Annotated`."""

    values: tuple[Any, ...]

    def __contains__(self, value: Any) -> bool:
        return value in self.values


class RoundedUp:
    """Marks an integer, for `Annotated`, that a program may give as a fraction: the next whole number is used."""


class WholePart:
    """Marks an integer, for `Annotated`, that a program may give as a fraction: its whole part is used."""


Positive = Annotated[int, Range(least=1)]
Steps = Annotated[int, RoundedUp, Range(least=1)]
"""How many steps. TensorFlow only compares with it, so that programs say ``examples / batch_size``."""
StepNumber = Annotated[int, RoundedUp, Range(least=0)]
"""A global step, of which the same is true."""
Count = Annotated[int, Range(least=0)]
Capacity = Annotated[int, WholePart, Range()]
"""How many elements a queue may hold. Programs compute it, and TensorFlow takes ``0.4 * examples``."""
PositiveCapacity = Annotated[int, WholePart, Range(least=1)]
Remaining = Annotated[int, WholePart, Range(least=0)]
"""How many elements of a queue stay in it, of which the same is true."""
PositiveNumber = Annotated[float, Range(above=0)]
NonNegative = Annotated[float, Range(least=0)]
Seconds = PositiveNumber

_LONGEST: Final = 80
"""Characters of a refused value that a message shows."""

_REFUSED: Final = object()

_Target = TypeVar("_Target", bound=Callable[..., Any])


class Expectation(NamedTuple):
    """What one argument may be.

    Attributes:
        choices: The values that it may have, in words.
        taken: Function of a value: the value to use in its place, or `_REFUSED`. It raises `ArgumentError` if something
            within the value does not fit.
    """

    choices: tuple[str, ...]
    taken: Callable[[Any], Any]

    @property
    def words(self) -> str:
        """The choices as a part of a sentence."""
        *first, last = self.choices
        return f"{', '.join(first)} or {last}" if first else last

    def take(self, name: str, value: Any) -> Any:
        """The value to use for `value`. Raises `ArgumentError`, which names the argument, if there is none."""
        try:
            found = self.taken(value)
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {error.message}") from error
        if found is _REFUSED:
            raise ArgumentError(f"{name} must be {self.words}, got {abbreviated(value)}")
        return found


def abbreviated(value: Any) -> str:
    """A value as a message shows it."""
    shown = repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}... (a {type(value).__name__})"


def by_either_name(op: str, **spellings: Any) -> Any:
    """The value of an argument under its name and its old name; None where it has none under either.

    Raises `InvalidArgumentError` where it has one under both.
    """
    (name, value), (old_name, old_value) = spellings.items()
    if value is not None and old_value is not None:
        raise InvalidArgumentError(f"{op}: Cannot specify both {old_name!r} and {name!r}: {old_name} is the old name")
    return old_value if value is None else value


def checked(target: _Target) -> _Target:
    """Check the arguments of a function, or those with which a class is made, against their annotations.

    The decorated function or class raises `ArgumentError` for an argument that does not fit its annotation.
    """
    if isinstance(target, type):
        target.__init__ = _checking(target.__init__, target, target.__name__)  # type: ignore[misc]
        return target
    owner, _, name = target.__qualname__.rpartition(".")
    return _checking(target, target, owner.rpartition(".")[2] if name == "__init__" else f"{name}()")


def none_is_default(function: _Target) -> _Target:
    """Let None stand for an argument's default, as it does for the attributes of TensorFlow's operations.

    It is meant for functions whose arguments with a default, if it is not None itself, are attributes.
    """
    parameters = inspect.signature(function).parameters.values()
    defaults = [None if each.default is inspect.Parameter.empty else each.default for each in parameters]
    by_name = dict(zip((each.name for each in parameters), defaults, strict=True))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [default if value is None else value for value, default in zip(args, defaults, strict=False)]
        options = {name: by_name.get(name) if value is None else value for name, value in kwargs.items()}
        return function(*given, *args[len(given) :], **options)

    return cast(_Target, call)


def _checking(function: Any, annotated: Any, shown: str) -> Any:
    @functools.cache
    def expected() -> tuple[inspect.Signature, dict[str, Expectation]]:
        return inspect.signature(function), expectations(annotated if is_dataclass(annotated) else function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        signature, rules = expected()
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # raises Python's own error, whose words are clearer
        for name, value in bound.arguments.items():
            if name in rules:
                bound.arguments[name] = rules[name].take(f"{shown}: {name}", value)
        return function(*bound.args, **bound.kwargs)

    call.expected = expected  # type: ignore[attr-defined]  # for tests: that all annotations can be read
    return call


def expectations(annotated: Any) -> dict[str, Expectation]:
    """What the annotations of a function or a class expect, by name."""
    hints = get_type_hints(annotated, include_extras=True)
    return {name: expectation(hint) for name, hint in hints.items()}


# -- from annotations ------------------------------------------------------------------------------------


def expectation(hint: Any) -> Expectation:
    """What an annotation expects."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(expectation(parts[0]), parts[1:])
    if origin is Literal:
        return _bounded(expectation(type(parts[0])), [OneOf(parts)])
    if origin in (Union, types.UnionType):
        return _any_of([expectation(part) for part in parts])
    if hint in _SCALARS:
        return _SCALARS[hint]
    kind: Any = origin or hint
    if not isinstance(kind, type) or kind in (Any, object) or getattr(kind, "_is_protocol", False):
        return Expectation(("anything",), lambda value: value)
    if kind is collections.abc.Callable:
        return Expectation(("a function",), lambda value: value if callable(value) else _REFUSED)
    if issubclass(kind, os.PathLike):
        return Expectation(("a path",), _instance_of(kind))
    if issubclass(kind, Mapping):
        return _mapping(kind, *map(expectation, parts))
    if issubclass(kind, Iterable) and kind.__module__ in ("builtins", "collections.abc"):
        return _sequence(kind, parts)
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return Expectation((f"{article} {kind.__name__}",), _instance_of(kind))


def _instance_of(kind: type) -> Callable[[Any], Any]:
    look = getattr(kind, "when_given", None)  # of messages
    if look is None:
        return lambda value: value if isinstance(value, kind) else _REFUSED

    def taken(value: Any) -> Any:
        if not isinstance(value, kind):
            return _REFUSED
        look(value)
        return value

    return taken


def _whole(value: Any) -> Any:
    value = _scalar(value)
    return int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else _REFUSED


def _number(value: Any) -> Any:
    value = _scalar(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return _REFUSED
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if math.isfinite(value) else _REFUSED


def _rounded_up(value: Any) -> Any:
    found = _number(value)
    return found if found is _REFUSED else math.ceil(found)


def _whole_part(value: Any) -> Any:
    found = _number(value)
    return found if found is _REFUSED else int(found)


def whole_part(value: Any) -> int:
    """The whole part of a number of Python or NumPy: what a fraction that is given for an attribute becomes.

    Raises:
        TypeError: The value is no number.
    """
    return math.trunc(_scalar(value))


def _flag(value: Any) -> Any:
    value = _scalar(value)
    return bool(value) if isinstance(value, (bool, numbers.Integral)) and value in (0, 1) else _REFUSED


def _scalar(value: Any) -> Any:
    """Python's scalar for one of NumPy, where there is one."""
    is_numpy = isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
    return value.item() if is_numpy else value


_SCALARS: Final[dict[Any, Expectation]] = {
    int: Expectation(("an integer",), _whole),
    float: Expectation(("a finite number",), _number),
    bool: Expectation(("True", "False"), _flag),
    str: Expectation(("a string",), _instance_of(str)),
    bytes: Expectation(("bytes",), _instance_of(bytes)),
    type(None): Expectation(("None",), lambda value: value if value is None else _REFUSED),
}


def _bounded(inner: Expectation, bounds: Sequence[Any]) -> Expectation:
    (bound,) = (each for each in bounds if isinstance(each, (Range, OneOf)))
    if RoundedUp in bounds:
        inner = Expectation(("a number",), _rounded_up)
    if WholePart in bounds:
        inner = Expectation(("a number",), _whole_part)

    def taken(value: Any) -> Any:
        found = inner.taken(value)
        return found if found is not _REFUSED and found in bound else _REFUSED

    choices = tuple(map(repr, bound.values)) if isinstance(bound, OneOf) else (f"{inner.words} {bound}".rstrip(),)
    return Expectation(choices, taken)


def _any_of(choices: list[Expectation]) -> Expectation:
    def taken(value: Any) -> Any:
        found = (choice.taken(value) for choice in choices)
        return next((each for each in found if each is not _REFUSED), _REFUSED)

    return Expectation(tuple(words for choice in choices for words in choice.choices), taken)


def _mapping(kind: Any, key: Expectation | None = None, item: Expectation | None = None) -> Expectation:
    if key is None or item is None:
        return Expectation(("a mapping",), _instance_of(kind))

    def taken(value: Any) -> Any:
        if not isinstance(value, kind):
            return _REFUSED
        found = {key.taken(name): item.taken(held) for name, held in value.items()}
        if _holds_refused([*found, *found.values()]):
            return _REFUSED
        is_same = type(value) is not dict or all(found.get(name) is held for name, held in value.items())
        return value if is_same else found

    return Expectation((f"a mapping (keys: {key.words}; values: {item.words})",), taken)


def _sequence(kind: Any, parts: tuple[Any, ...]) -> Expectation:
    """A sequence or another collection: a NumPy array counts as one, a text does not."""
    is_fixed = kind is tuple and len(parts) > 0 and parts[-1] is not Ellipsis
    items = [expectation(part) for part in parts if part is not Ellipsis]
    if is_fixed:
        words = f"a tuple ({', '.join(item.words for item in items)})"
    else:
        words = f"a sequence (elements: {items[0].words})" if items else "a sequence"

    def taken(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        if kind in (list, tuple) and type(value) in (list, tuple):
            value = kind(value)
        if isinstance(value, (str, bytes)) or not isinstance(value, kind):
            return _REFUSED
        if type(value) not in (list, tuple, set, frozenset) or not items:
            return value  # its items are not checked: it can be read only once, or is a range of millions
        if is_fixed and len(value) != len(items):
            return _REFUSED
        each = items if is_fixed else items * len(value)
        found = [item.taken(held) for item, held in zip(each, value, strict=True)]
        if _holds_refused(found):
            return _REFUSED
        return value if all(map(operator.is_, found, value)) else type(value)(found)

    return Expectation((words,), taken)


def _holds_refused(values: Iterable[Any]) -> bool:
    return any(value is _REFUSED for value in values)
