"""Hyperparameters by name, with defaults in code and overrides in text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[A-Za-z][\w.]*)(\[\s*(?P<index>\d+)\s*\])?\s*=\s*((?P<value>[^,\[]*)|\[(?P<list>[^\]]*)\])\s*(?:,|$)"
)


def parse_values(values: str, type_map: Mapping[str, type], ignore_unknown: bool = False) -> dict[str, Any]:
    """Read text such as ``a=1,b=[1,2],name=x,c[1]=3``.

    Args:
        values: The text.
        type_map: The type of each name, or of its elements: int, float, bool or str.
        ignore_unknown: Leave out other names.

    Returns:
        Values by name: a list for a list, and for single elements a dictionary from their indices.

    Raises:
        ValueError: The text is malformed, sets something twice, or has a name without a type.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ValueError(
                f"Malformed hyperparameter value: {values[position:]}; expected name=value,name=[value,value]"
            )
        position = match.end()
        name, index, text = match["name"], match["index"], match["value"]
        if name not in type_map:
            if ignore_unknown:
                continue
            known = ", ".join(sorted(type_map))
            raise ValueError(f"Unknown hyperparameter type for {name}; there are {known}")
        if index is not None and text is None:
            raise ValueError(f"Assignment of a list to a list index: {match[0].strip()!r}")
        before = found.get(name)
        if name in found and (index is None or not isinstance(before, dict) or int(index) in before):
            place = f"[{index}]" if isinstance(before, dict) and index is not None else ""
            raise ValueError(f"Multiple assignments to variable '{name}{place}' in {values}")
        if text is None:
            parts = [part for part in re.split("[ ,]", match["list"]) if part]
            found[name] = [_parsed(name, part, type_map[name], values) for part in parts]
        elif index is not None:
            found.setdefault(name, {})[int(index)] = _parsed(name, text.strip(), type_map[name], values)
        else:
            found[name] = _parsed(name, text.strip(), type_map[name], values)
    return found


def _parsed(name: str, text: str, kind: type, values: str) -> Any:
    """The value that text stands for."""
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()] if text.isalpha() else bool(int(text))
        return kind(text) if kind in (int, float, str) else text
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"Could not parse hparam {name!r} of type {kind.__name__!r} with value {text!r} in {values}"
        ) from error


class HParams:
    """Hyperparameters: attributes with fixed types.

        hparams = HParams(learning_rate=0.1, layers=[64, 64], activation="relu")
        hparams.parse("learning_rate=0.01,layers=[128,64]")
        hparams.learning_rate

    Args:
        hparam_def: Accepted for TensorFlow 1's sake.
        model_structure: Accepted for TensorFlow 1's sake.
        **kwargs: Names and defaults; a list's elements have one type.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        self._types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a hyperparameter.

        Args:
            name: Its name.
            value: Its default: a number, text, bool, list of these or None.

        Raises:
            ValueError: The name is taken, or the value an empty list, whose type is unknown.
        """
        if hasattr(self, name):
            raise ValueError(f"Hyperparameter name is reserved: {name}; it exists already")
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError(
                    f"Multi-valued hyperparameters cannot be empty: {name}; give it an element, which has a type"
                )
            self._types[name] = (type(value[0]), True)
        else:
            self._types[name] = (type(value), False)
        object.__setattr__(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Set a hyperparameter; integers become floats where its type is float.

        Raises:
            ValueError: There is none of that name, or the value does not fit its type.
        """
        if name not in self._types:
            raise ValueError(f"there is no hyperparameter {name!r}; there are {', '.join(sorted(self._types))}")
        kind, is_list = self._types[name]
        if isinstance(value, (list, tuple)) != is_list:
            rule = "pass a list for multi-valued" if is_list else "not pass a list for single-valued"
            raise ValueError(f"Must {rule} parameter: {name}, got {value!r}")
        converted = [_cast(name, item, kind) for item in value] if is_list else _cast(name, value, kind)
        object.__setattr__(self, name, converted)

    def del_hparam(self, name: str) -> None:
        """Remove a hyperparameter, if it is there."""
        if self._types.pop(name, None):
            object.__delattr__(self, name)

    def parse(self, values: str) -> HParams:
        """Override from text such as ``a=1,b=[1,2],name=x,c[1]=3``.

        Returns:
            This object.

        Raises:
            ValueError: The text is malformed, or names what is not there.
        """
        parsed = parse_values(values, {name: kind for name, (kind, _) in self._types.items()})
        for name, value in parsed.items():
            if isinstance(value, dict):
                value = self._with_elements(name, value)
            self.set_hparam(name, value)
        return self

    def _with_elements(self, name: str, elements: dict[int, Any]) -> list[Any]:
        """A list of which some elements are others; one that is too short is filled up with its last element."""
        current = list(getattr(self, name))
        current += [current[-1]] * (max(elements) + 1 - len(current))
        return [elements.get(index, value) for index, value in enumerate(current)]

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        """Override by a dictionary. Returns this object."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Override by an object in JSON. Returns this object."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """All hyperparameters by name."""
        return {name: getattr(self, name) for name in self._types}

    def to_json(self, indent: int | None = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All hyperparameters as an object in JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def get(self, key: str, default: Any = None) -> Any:
        """A hyperparameter, or `default` where there is none of that name.

        Raises:
            ValueError: `default` is of another type than the hyperparameter.
        """
        if key not in self._types:
            return default
        kind, is_list = self._types[key]
        if default is not None:
            if isinstance(default, list) != is_list:
                raise ValueError(f"Hparam {key!r} is {'a list' if is_list else 'no list'}, unlike default={default!r}")
            for item in default if is_list else [default]:
                _cast(key, item, kind)
        return getattr(self, key)

    def __setattr__(self, name: str, value: Any) -> None:
        # An attribute takes what it is given, as in TensorFlow; only a float stays one.
        if type(value) is int and self.__dict__.get("_types", {}).get(name) == (float, False):
            value = float(value)
        object.__setattr__(self, name, value)

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{name}={value!r}' for name, value in sorted(self.values().items()))})"


def _cast(name: str, value: Any, kind: type) -> Any:
    """`value` as one of a type, of which it is, or an integer for a float."""
    if value is None or kind is type(None):
        return value
    fits: Any = {bool: bool, int: Integral, float: Real, str: (str, bytes)}.get(kind, object)
    if (isinstance(value, bool) and kind in (int, float, str)) or not isinstance(value, fits):
        raise ValueError(f"Could not cast hparam {name!r} of type {kind.__name__!r} from value {value!r}")
    return kind(value) if kind in (int, float) else value
