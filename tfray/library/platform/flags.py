"""Command-line flags: the names of ``tf.flags`` and ``tf.app.flags``, which are those of absl's ``absl.flags``.

Flags are defined when a module is imported. `tf.app.run` parses them, or else the first read of one of `FLAGS`. They
are absl's flags: a program may define some here and others through absl, and find all of them in either `FLAGS`.
"""

from __future__ import annotations

import functools as _functools
import sys as _sys
from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import Final as _Final

from absl import app as _app  # noqa: F401 - it and what it imports define flags, such as --log_dir
from absl import flags as _absl
from absl.flags import (
    DEFINE,
    ArgumentParser,
    ArgumentSerializer,
    BaseListParser,
    BooleanFlag,
    BooleanParser,
    CantOpenFlagFileError,
    CsvListSerializer,
    DEFINE_alias,
    DEFINE_enum,
    DEFINE_enum_class,
    DEFINE_flag,
    DEFINE_list,
    DEFINE_multi,
    DEFINE_multi_enum,
    DEFINE_multi_enum_class,
    DEFINE_multi_float,
    DEFINE_multi_integer,
    DEFINE_multi_string,
    DEFINE_spaceseplist,
    DuplicateFlagError,
    EnumClassFlag,
    EnumClassListSerializer,
    EnumClassParser,
    EnumClassSerializer,
    EnumFlag,
    EnumParser,
    Error,
    Flag,
    FlagHolder,
    FlagNameConflictsWithMethodError,
    FlagValues,
    FloatParser,
    IllegalFlagValueError,
    IntegerParser,
    ListParser,
    ListSerializer,
    MultiEnumClassFlag,
    MultiFlag,
    UnparsedFlagAccessError,
    UnrecognizedFlagError,
    ValidationError,
    WhitespaceSeparatedListParser,
    adopt_module_key_flags,
    declare_key_flag,
    disclaim_key_flags,
    doc_to_help,
    flag_dict_to_args,
    get_help_width,
    mark_bool_flags_as_mutual_exclusive,
    mark_flag_as_required,
    mark_flags_as_mutual_exclusive,
    mark_flags_as_required,
    multi_flags_validator,
    override_value,
    register_multi_flags_validator,
    register_validator,
    set_default,
    text_wrap,
    validator,
)

_absl.disclaim_key_flags()  # a flag belongs to the module that calls the functions below
for _module, _flags in _absl.FLAGS.flags_by_module_dict().items():
    for _flag in _flags:
        # A program may have a --log_dir of its own. With TensorFlow that is an error.
        _flag.allow_override = _flag.allow_override or _module.startswith("absl.")

_OLD_NAMES: _Final = {"flag_name": "name", "default_value": "default", "docstring": "help"}
"""What the first versions of TensorFlow called arguments, and absl's names of them."""

# fmt: off
__all__ = [
    "DEFINE", "FLAGS", "ArgumentParser", "ArgumentSerializer", "BaseListParser", "BooleanFlag", "BooleanParser",
    "CantOpenFlagFileError", "CsvListSerializer", "DEFINE_alias", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum",
    "DEFINE_enum_class", "DEFINE_flag", "DEFINE_float", "DEFINE_integer", "DEFINE_list", "DEFINE_multi",
    "DEFINE_multi_enum", "DEFINE_multi_enum_class", "DEFINE_multi_float", "DEFINE_multi_integer", "DEFINE_multi_string",
    "DEFINE_spaceseplist", "DEFINE_string", "DuplicateFlagError", "EnumClassFlag", "EnumClassListSerializer",
    "EnumClassParser", "EnumClassSerializer", "EnumFlag", "EnumParser", "Error", "Flag", "FlagHolder",
    "FlagNameConflictsWithMethodError", "FlagValues", "FloatParser", "IllegalFlagValueError", "IntegerParser",
    "ListParser", "ListSerializer", "MultiEnumClassFlag", "MultiFlag", "UnparsedFlagAccessError",
    "UnrecognizedFlagError", "ValidationError", "WhitespaceSeparatedListParser", "adopt_module_key_flags",
    "declare_key_flag", "disclaim_key_flags", "doc_to_help", "flag_dict_to_args", "get_help_width",
    "mark_bool_flags_as_mutual_exclusive", "mark_flag_as_required", "mark_flags_as_mutual_exclusive",
    "mark_flags_as_required", "multi_flags_validator", "override_value", "register_multi_flags_validator",
    "register_validator", "set_default", "text_wrap", "validator",
]
# fmt: on


def _by_old_names(define: _Callable[..., _Any]) -> _Callable[..., _Any]:
    @_functools.wraps(define)
    def define_flag(*args: _Any, **kwargs: _Any) -> _Any:
        return define(*args, **{_OLD_NAMES.get(name, name): value for name, value in kwargs.items()})

    return define_flag


DEFINE_string = _by_old_names(_absl.DEFINE_string)
DEFINE_integer = _by_old_names(_absl.DEFINE_integer)
DEFINE_float = _by_old_names(_absl.DEFINE_float)
DEFINE_boolean = DEFINE_bool = _by_old_names(_absl.DEFINE_boolean)


class _ParsedFlags:
    """The flags of `absl.flags.FLAGS` by the same names, parsed when one is first read.

    Unknown arguments are ignored in that case. TensorFlow raises an error, so it cannot read flags in a notebook.
    """

    def __init__(self, values: _absl.FlagValues) -> None:
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> _Any:
        if name in self._values and not self._values.is_parsed():
            self._parse_flags()
        return getattr(self._values, name)

    def _parse_flags(self, args: _Sequence[str] | None = None) -> list[str]:
        """Parse ``sys.argv``, or `args` without the program's name; what the first versions of TensorFlow had."""
        return self._values([_sys.argv[0], *(_sys.argv[1:] if args is None else args)], known_only=True)

    def __setattr__(self, name: str, value: _Any) -> None:
        setattr(self._values, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._values, name)

    def __call__(self, argv: _Sequence[str], known_only: bool = False) -> list[str]:
        return self._values(argv, known_only)

    def __getitem__(self, name: str) -> _Any:
        return self._values[name]

    def __setitem__(self, name: str, flag: _Any) -> None:
        self._values[name] = flag

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> _Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return dir(self._values)

    def __str__(self) -> str:
        return str(self._values)


FLAGS = _ParsedFlags(_absl.FLAGS)
"""The flags of this program."""
