"""Command-line flags: the names of ``tf.flags`` and ``tf.app.flags``.

Flags are defined at import and parsed when `FLAGS` is called with the arguments, by `tf.app.run`, or else when one is
first read: then from ``sys.argv``, and arguments that are no flags of the program are left alone.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

# fmt: off
__all__ = [
    "FLAGS", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum", "DEFINE_float", "DEFINE_integer", "DEFINE_list",
    "DEFINE_multi_float", "DEFINE_multi_integer", "DEFINE_multi_string", "DEFINE_spaceseplist", "DEFINE_string",
    "DuplicateFlagError", "Error", "Flag", "FlagValues", "IllegalFlagValueError", "UnparsedFlagAccessError",
    "UnrecognizedFlagError", "ValidationError", "mark_flag_as_required", "mark_flags_as_required", "register_validator",
]
# fmt: on


class Error(Exception):
    """Base of the errors of flags."""


class DuplicateFlagError(Error):
    """Two flags of one name."""


class IllegalFlagValueError(Error):
    """A value that the flag cannot have."""


class UnrecognizedFlagError(Error):
    """An argument names no flag."""


class UnparsedFlagAccessError(Error):
    """A flag was read before the arguments were parsed."""


class ValidationError(Error):
    """A value was refused by the flag's validator."""


class Flag:
    """One flag.

    Attributes:
        name: Its name.
        value: The present value.
        default: The value when no argument names the flag.
        help: What it means.
        boolean: Whether ``--name`` and ``--noname`` are its arguments.
    """

    def __init__(self, name: str, default: Any, help: str, parse: Callable[[Any], Any], boolean: bool = False) -> None:
        self.name = name
        self.help = help
        self.boolean = boolean
        self.kind = parse
        self.parse = parse
        self.default = None if default is None else self.convert(default)
        self.value = self.default
        self.present = 0

    def convert(self, argument: Any) -> Any:
        """The value that an argument stands for. Raises `IllegalFlagValueError`."""
        try:
            return self.parse(argument)
        except (ValueError, TypeError) as error:
            raise IllegalFlagValueError(f"flag --{self.name}={argument}: {error}") from error

    def equals(self, other: Flag) -> bool:
        """Whether two definitions say the same."""
        kinds = [getattr(flag.kind, "key", flag.kind) for flag in (self, other)]
        return kinds[0] == kinds[1] and (self.default, self.help) == (other.default, other.help)


class FlagValues:
    """The flags of a program, as attributes."""

    def __init__(self) -> None:
        self.__dict__["_flags"] = {}
        self.__dict__["_parsed"] = False
        self.__dict__["_validators"] = []

    # -- values ----------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name == "__flags":  # what programs for the first versions of TensorFlow read
            return self.flag_values_dict()
        if name.startswith("__") or name not in self._flags:
            raise AttributeError(name)
        self._parse_if_needed()
        return self._flags[name].value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise AttributeError(f"there is no flag --{name}: define it first")
        flag = self._flags[name]
        flag.value = None if value is None else flag.convert(value)
        self._validate()

    def __delattr__(self, name: str) -> None:
        if name not in self._flags:
            raise AttributeError(name)
        del self._flags[name]

    def __getitem__(self, name: str) -> Flag:
        return self._flags[name]

    def __contains__(self, name: object) -> bool:
        return name in self._flags

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._flags))

    def __len__(self) -> int:
        return len(self._flags)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._flags]

    def flag_values_dict(self) -> dict[str, Any]:
        """Every flag's value by name."""
        self._parse_if_needed()
        return {name: flag.value for name, flag in self._flags.items()}

    def get_flag_value(self, name: str, default: Any) -> Any:
        """The value of a flag, or `default` when it is not set or not defined."""
        value = getattr(self, name) if name in self else None
        return default if value is None else value

    def set_default(self, name: str, value: Any) -> None:
        """Change the default of a flag, and its value unless an argument set it."""
        flag = self._flags[name]
        flag.default = None if value is None else flag.convert(value)
        if not flag.present:
            flag.value = flag.default

    # -- definition ------------------------------------------------------------------------------------

    def define(self, flag: Flag) -> None:
        """Add a flag. Raises `DuplicateFlagError` when another one has its name; the same one again is fine."""
        existing = self._flags.get(flag.name)
        if existing is None:
            self._flags[flag.name] = flag
            self.__dict__["_parsed"] = False  # the arguments may name it
        elif not existing.equals(flag):
            raise DuplicateFlagError(f"flag --{flag.name} is defined twice; first as: {existing.help}")

    def add_validator(self, names: Sequence[str], check: Callable[[Mapping[str, Any]], Any], message: str) -> None:
        """Have `check` called with the values of `names` after parsing and after each change."""
        self._validators.append((tuple(names), check, message))

    def _validate(self) -> None:
        for names, check, message in self._validators:
            if self._parsed and all(name in self._flags for name in names):
                values = {name: self._flags[name].value for name in names}
                if not check(values):
                    raise ValidationError(
                        f"{', '.join(f'--{name}={value}' for name, value in values.items())}: {message}"
                    )

    # -- parsing ---------------------------------------------------------------------------------------

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Parse arguments.

        Args:
            argv: The program's name and its arguments: ``--name=value``, ``--name value``, for bools ``--name`` and
                ``--noname``. One dash is as good as two; ``--`` ends the flags.
            known_only: Leave arguments that name no flag, rather than raise.

        Returns:
            What is left: the program's name and the arguments that are no flags.

        Raises:
            UnrecognizedFlagError: An argument names no flag.
            IllegalFlagValueError: A value does not fit its flag.
            Error: A value is missing.
        """
        if not argv:
            raise Error("the arguments must begin with the program's name")
        for flag in self._flags.values():
            flag.present = 0
        left, pending = [argv[0]], list(argv[1:])
        while pending:
            argument = pending.pop(0)
            if argument == "--":
                left += ["--", *pending] if known_only else pending
                break
            if not self._take(argument, pending):
                if argument.startswith("-") and len(argument) > 1 and not known_only and not _is_number(argument):
                    raise UnrecognizedFlagError(self._unknown(argument.lstrip("-").partition("=")[0]))
                left.append(argument)
        self.__dict__["_parsed"] = True
        self._validate()
        return left

    def _take(self, argument: str, pending: list[str]) -> bool:
        """Set the flag that an argument names; False when it names none."""
        if not argument.startswith("-"):
            return False
        name, has_value, value = argument.removeprefix("-").removeprefix("-").partition("=")
        flag = self._flags.get(name) or self._flags.get(name.replace("-", "_"))
        if flag is None:
            negated = self._flags.get(name.removeprefix("no")) if name.startswith("no") else None
            if negated is None or not negated.boolean or has_value:
                return False
            flag, has_value, value = negated, "=", "false"
        if not has_value:
            if not flag.boolean and not pending:
                raise Error(f"flag --{flag.name}: its value is missing")
            value = "true" if flag.boolean else pending.pop(0)
        flag.value = flag.convert(value)
        flag.present += 1
        return True

    def _unknown(self, name: str) -> str:
        import difflib

        close = difflib.get_close_matches(name, self._flags, n=3)
        hint = f"; did you mean {' or '.join('--' + other for other in close)}?" if close else ""
        return f"there is no flag --{name}{hint}"

    def _parse_if_needed(self) -> None:
        if not self._parsed:
            self(sys.argv or [""], known_only=True)

    def _parse_flags(self, args: Sequence[str] | None = None) -> list[str]:
        """Parse ``sys.argv``, or `args` without the program's name; what the first versions of TensorFlow had."""
        return self([sys.argv[0], *(sys.argv[1:] if args is None else args)], known_only=True)

    def is_parsed(self) -> bool:
        """Whether arguments were parsed."""
        return bool(self._parsed)

    def mark_as_parsed(self) -> None:
        """Let values be read without parsing arguments."""
        self.__dict__["_parsed"] = True

    def unparse_flags(self) -> None:
        """Forget what arguments said."""
        self.__dict__["_parsed"] = False
        for flag in self._flags.values():
            flag.value, flag.present = flag.default, 0

    def get_help(self) -> str:
        """All flags, their meanings and defaults, as text."""
        lines = []
        for name in self:
            flag = self._flags[name]
            lines.append(f"  --{'[no]' if flag.boolean else ''}{name}: {flag.help}")
            lines.append(f"    (default: {flag.default!r})")
        return "\n".join(line for text in lines for line in textwrap.wrap(text, 100, subsequent_indent="    "))

    main_module_help = get_help


FLAGS: Final = FlagValues()
"""The flags of this program."""


def _is_number(argument: str) -> bool:
    try:
        return not math.isnan(float(argument))
    except ValueError:
        return False


# -- kinds of values -----------------------------------------------------------------------------------


class _Number:
    """Parses numbers within bounds."""

    def __init__(self, convert: Callable[[Any], Any], lower: float | None, upper: float | None) -> None:
        self._convert = convert
        self._lower, self._upper = lower, upper
        self.key = (convert, lower, upper)

    def __call__(self, argument: Any) -> Any:
        value = self._convert(argument)
        low = self._lower is not None and value < self._lower
        if low or (self._upper is not None and value > self._upper):
            raise ValueError(f"{value} is not between {self._lower} and {self._upper}")
        return value


class _Choice:
    """Parses one of several words."""

    def __init__(self, words: Sequence[str], case_sensitive: bool) -> None:
        self._words = {word if case_sensitive else word.lower(): word for word in words}
        self._case_sensitive = case_sensitive
        self.key = tuple(self._words)

    def __call__(self, argument: Any) -> str:
        word = str(argument)
        try:
            return self._words[word if self._case_sensitive else word.lower()]
        except KeyError:
            raise ValueError(f"expected one of {', '.join(self._words.values())}") from None


class _Several:
    """Parses a list: text divided by commas or spaces, or a list of values."""

    def __init__(self, separator: str | None, parse: Callable[[Any], Any] = str) -> None:
        self._separator, self._parse = separator, parse
        self.key = (separator, getattr(parse, "key", parse))

    def __call__(self, argument: Any) -> list[Any]:
        if not isinstance(argument, str):
            items: Iterable[Any] = argument if isinstance(argument, Iterable) else [argument]
        else:
            items = [item.strip() for item in argument.split(self._separator)] if argument else []
        return [self._parse(item) for item in items]


class _Repeated:
    """Parses a flag that may be given several times, each time for one more value."""

    def __init__(self, parse: Callable[[Any], Any]) -> None:
        self._parse = parse
        self.key = ("repeated", getattr(parse, "key", parse))

    def __call__(self, argument: Any) -> list[Any]:
        items: Iterable[Any] = [argument]
        if isinstance(argument, Iterable) and not isinstance(argument, str):
            items = argument
        return [self._parse(item) for item in items]


class _RepeatedFlag(Flag):
    def convert(self, argument: Any) -> Any:
        values = super().convert(argument)
        if getattr(self, "present", 0) and isinstance(argument, str):
            before: Any = self.value
            return [*before, *values]
        return values


def _parse_bool(argument: Any) -> bool:
    if isinstance(argument, str):
        word = argument.lower()
        if word in ("true", "t", "1", "yes", "y"):
            return True
        if word in ("false", "f", "0", "no", "n"):
            return False
    elif isinstance(argument, (bool, int)) and argument in (0, 1):
        return bool(argument)
    raise ValueError("expected true or false")


def _parse_int(argument: Any) -> int:
    if isinstance(argument, str):
        return int(argument, 0) if argument.lower().startswith(("0x", "0o", "0b")) else int(argument)
    if isinstance(argument, bool) or int(argument) != argument:
        raise ValueError("expected a whole number")
    return int(argument)


def _parse_float(argument: Any) -> float:
    if isinstance(argument, bool):
        raise ValueError("expected a number")
    return float(argument)


def _parse_string(argument: Any) -> str:
    if not isinstance(argument, str):
        raise ValueError("expected a string")
    return argument


# -- definitions ---------------------------------------------------------------------------------------


def DEFINE_string(name: str, default: str | None, help: str = "", flag_values: FlagValues = FLAGS) -> None:
    """Define a flag whose value is a string."""
    flag_values.define(Flag(name, default, help, _parse_string))


def DEFINE_integer(
    name: str,
    default: Any,
    help: str = "",
    lower_bound: int | None = None,
    upper_bound: int | None = None,
    flag_values: FlagValues = FLAGS,
) -> None:
    """Define a flag whose value is a whole number, within bounds where given."""
    flag_values.define(Flag(name, default, help, _Number(_parse_int, lower_bound, upper_bound)))


def DEFINE_float(
    name: str,
    default: Any,
    help: str = "",
    lower_bound: float | None = None,
    upper_bound: float | None = None,
    flag_values: FlagValues = FLAGS,
) -> None:
    """Define a flag whose value is a number, within bounds where given."""
    flag_values.define(Flag(name, default, help, _Number(_parse_float, lower_bound, upper_bound)))


def DEFINE_boolean(name: str, default: Any, help: str = "", flag_values: FlagValues = FLAGS) -> None:
    """Define a flag that is on or off: ``--name``, ``--noname``, ``--name=false``."""
    flag_values.define(Flag(name, default, help, _parse_bool, boolean=True))


DEFINE_bool = DEFINE_boolean


def DEFINE_enum(
    name: str,
    default: str | None,
    enum_values: Sequence[str],
    help: str = "",
    flag_values: FlagValues = FLAGS,
    case_sensitive: bool = True,
) -> None:
    """Define a flag whose value is one of `enum_values`."""
    flag_values.define(Flag(name, default, help, _Choice(enum_values, case_sensitive)))


def DEFINE_list(name: str, default: Any, help: str = "", flag_values: FlagValues = FLAGS) -> None:
    """Define a flag whose value is a list of strings, written with commas between them."""
    flag_values.define(Flag(name, default, help, _Several(",")))


def DEFINE_spaceseplist(name: str, default: Any, help: str = "", flag_values: FlagValues = FLAGS) -> None:
    """Define a flag whose value is a list of strings, written with spaces between them."""
    flag_values.define(Flag(name, default, help, _Several(None)))


def DEFINE_multi_string(name: str, default: Any, help: str = "", flag_values: FlagValues = FLAGS) -> None:
    """Define a flag that may be given several times; its value is the list of strings."""
    flag_values.define(_RepeatedFlag(name, default, help, _Repeated(_parse_string)))


def DEFINE_multi_integer(name: str, default: Any, help: str = "", flag_values: FlagValues = FLAGS) -> None:
    """Define a flag that may be given several times; its value is the list of whole numbers."""
    flag_values.define(_RepeatedFlag(name, default, help, _Repeated(_parse_int)))


def DEFINE_multi_float(name: str, default: Any, help: str = "", flag_values: FlagValues = FLAGS) -> None:
    """Define a flag that may be given several times; its value is the list of numbers."""
    flag_values.define(_RepeatedFlag(name, default, help, _Repeated(_parse_float)))


# -- what must hold ------------------------------------------------------------------------------------


def mark_flag_as_required(flag_name: str, flag_values: FlagValues = FLAGS) -> None:
    """Refuse arguments that leave a flag None."""
    flag_values.add_validator(
        [flag_name], lambda values: values[flag_name] is not None, "the flag must have a value: it is required"
    )


def mark_flags_as_required(flag_names: Iterable[str], flag_values: FlagValues = FLAGS) -> None:
    """Refuse arguments that leave one of these flags None."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)


def register_validator(
    flag_name: str,
    checker: Callable[[Any], Any],
    message: str = "the value is not accepted",
    flag_values: FlagValues = FLAGS,
) -> None:
    """Refuse values of a flag for which `checker` returns false."""
    flag_values.add_validator([flag_name], lambda values: checker(values[flag_name]), message)
