"""Checking inputs and attributes of a new operation against its definition, and binding its type variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from tfray.errors import ArgumentError
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.op_def import Argument, OpDef
from tfray.framework.tensor_shape import TensorShape

MAX_OUTPUTS: Final = 1 << 15
"""Most outputs of one operation: an attribute of a loaded graph cannot ask for more objects than memory holds."""


class Input(Protocol):
    """A tensor that an operation is to take, as far as it is checked here."""

    @property
    def name(self) -> str:
        """Its name in the graph."""

    @property
    def dtype(self) -> DType:
        """Type of its elements."""


def resolve_attrs(
    definition: OpDef,
    inputs: Sequence[Input],
    attrs: dict[str, Any],
    blame: Callable[[str], ArgumentError],
) -> dict[str, Any]:
    """Check inputs and attributes against the definition; bind its type variables."""
    for name, value in definition.later.items():
        attrs.setdefault(name, value)
    _check_attr_names(definition, attrs, blame)
    arguments = definition.input_arguments
    fixed = len(arguments) - (1 if arguments and arguments[-1].count is not None else 0)
    if len(inputs) < fixed or (len(inputs) > fixed and fixed == len(arguments)):
        at_least = "at least " if fixed < len(arguments) else ""
        raise blame(f"takes {at_least}{fixed} inputs, got {len(inputs)}")
    for index, tensor in enumerate(inputs):
        argument = arguments[min(index, len(arguments) - 1)]
        _bind_type(definition, argument, tensor, attrs, blame)
    for variable, allowed in definition.types.items():
        if variable not in attrs:
            if len(allowed) == 1:
                attrs[variable] = allowed[0]
            elif any(argument.type == variable for argument in definition.output_arguments):
                raise blame(f"attribute {variable!r} is needed and no input determines it")
        elif not isinstance(attrs[variable], DType):
            raise blame(f"attribute {variable!r} is {attrs[variable]!r}, expected a dtype")
        elif attrs[variable] not in allowed:
            bound, found = _first_of(definition, variable), attrs[variable].name
            if bound and len(allowed) == 1:
                raise blame(f"Input {bound!r} has type {found} that does not match expected type of {allowed[0].name}")
            names = ", ".join(dtype.name for dtype in allowed)
            raise blame(
                f"Value passed to parameter {bound or variable!r} has DataType {found} "
                f"not in list of allowed values: {names}"
            )
    return attrs


def _check_attr_names(definition: OpDef, attrs: dict[str, Any], blame: Callable[[str], ArgumentError]) -> None:
    unknown = [
        name
        for name in attrs
        if name not in definition.attrs and name not in definition.types and not name.startswith("_")
    ]
    if unknown:
        known = {*definition.attrs, *definition.types}
        raise blame(f"has no attribute {', '.join(unknown)}; it has {', '.join(sorted(known)) or 'none'}")
    missing = [name for name in definition.attrs if name not in attrs]
    if missing:
        raise blame(f"attribute {', '.join(missing)} is missing")


def _bind_type(
    definition: OpDef,
    argument: Argument,
    tensor: Input,
    attrs: dict[str, Any],
    blame: Callable[[str], ArgumentError],
) -> None:
    if argument.type == "any":
        return
    if argument.type in definition.types:
        bound = attrs.setdefault(argument.type, tensor.dtype)
        if bound is not tensor.dtype:
            of = f"type {bound.name} of argument {_first_of(definition, argument.type)!r}"
            raise blame(_mismatch(argument, tensor, of, bound.name))
    elif argument.type in definition.attrs:
        if attrs[argument.type] is not tensor.dtype:
            wanted = attrs[argument.type].name
            raise blame(_mismatch(argument, tensor, f"expected type of {wanted}", wanted))
    elif argument.type != tensor.dtype.name:
        raise blame(_mismatch(argument, tensor, f"expected type of {argument.type}", argument.type))


def _mismatch(argument: Argument, tensor: Input, other: str, wanted: str) -> str:
    found = tensor.dtype.name
    return (
        f"Input {argument.name!r} has type {found} that does not match {other}: "
        f"{tensor.name} is {found}, expected {wanted}; use tf.cast"
    )


def _first_of(definition: OpDef, variable: str) -> str | None:
    """Name of the first input whose dtype is that of a type variable."""
    return next((argument.name for argument in definition.input_arguments if argument.type == variable), None)


def output_dtypes(definition: OpDef, attrs: Mapping[str, Any]) -> list[DType]:
    """The dtype of each output of an operation with these attributes."""
    result: list[DType] = []
    for argument in definition.output_arguments:
        value: Any = attrs[argument.type] if argument.type in attrs else dtypes.as_dtype(argument.type)
        if argument.count is None:
            result.append(value)
        elif argument.count:
            count = attrs[argument.count]
            if not 0 <= count <= MAX_OUTPUTS:
                raise ValueError(
                    f"attribute {argument.count!r} is {count}, expected a number of outputs up to {MAX_OUTPUTS}"
                )
            result.extend([value] * count)
        else:
            result.extend(value)
    return result


def attr_for_users(op: Any, name: str) -> Any:
    """The value of an attribute of an operation as TensorFlow gives it: text as bytes, shapes as messages.

    Raises:
        ValueError: There is none of that name.
    """
    attrs = op.attrs
    if name == "container" and "shared_name" in attrs and name not in attrs:
        return _for_users(attrs.get("_container", ""))
    if name not in attrs:
        known = ", ".join(sorted(attrs)) or "none"
        raise ValueError(f"Operation {op.name!r} has no attr named {name!r}. It is of type {op.type}, and has {known}")
    return _for_users(attrs[name])


def _for_users(value: Any) -> Any:
    if isinstance(value, list):
        return [_for_users(each) for each in value]
    return value.encode() if isinstance(value, str) else value.as_proto() if isinstance(value, TensorShape) else value


_FLOW_PART: Final = r"(.*/)?(Switch|switch_[tf]|Merge|Enter|Exit|NextIteration|LoopCond)(_\d+)?"
"""Names of operations of TensorFlow 1's control flow."""


def instead_of(name: str, known: Iterable[Any]) -> str:
    """What an error says about the name of an operation that is not among the `known` ones."""
    if re.fullmatch(_FLOW_PART, name):
        return (
            "; TensorFlow 1 makes such operations of branches and loops, which are one operation each here: "
            "use their results, such as cond/Merge and while/Exit"
        )
    import difflib  # only errors need it

    names = [op.name for op in known]
    # What an imported graph has within a branch or a loop is named below the operation of the branch or the loop.
    close = [each for each in names if each.endswith(f"/{name}")][:3] or difflib.get_close_matches(name, names)
    return f"; close names are {', '.join(close)}" if close else ""


def checked_name(name: Any) -> str:
    """`name`, if it is text. Raises `TypeError` otherwise."""
    if not isinstance(name, str):
        raise TypeError(f"names of the graph are strings, not {type(name).__name__}: {name!r}")
    return name
