"""Hyperparameters by name, with defaults in code and overrides in text."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

_ASSIGNMENT = re.compile(r"\s*(?P<name>[A-Za-z]\w*)(?P<index>\[\d+\])?\s*=\s*(?P<value>\[[^\]]*\]|[^,\[]*)\s*(?:,|$)")


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
            raise ValueError(f"hyperparameter {name!r} exists already")
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError(f"hyperparameter {name!r}: an empty list has no type; give it an element")
            self._types[name] = (type(value[0]), True)
        else:
            self._types[name] = (type(value), False)
        object.__setattr__(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Set a hyperparameter, converting the value to its type.

        Raises:
            ValueError: There is none of that name, or the value does not fit its type.
        """
        if name not in self._types:
            raise ValueError(f"there is no hyperparameter {name!r}; there are {', '.join(sorted(self._types))}")
        kind, is_list = self._types[name]
        if isinstance(value, (list, tuple)) != is_list:
            raise ValueError(f"hyperparameter {name!r} is {'a list' if is_list else 'no list'}, got {value!r}")
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
        position = 0
        while position < len(values):
            match = _ASSIGNMENT.match(values, position)
            if match is None or match.end() == position:
                raise ValueError(f"cannot read {values[position:]!r}: expected name=value,name=[value,value]")
            self._parse_one(match)
            position = match.end()
        return self

    def _parse_one(self, match: re.Match[str]) -> None:
        name, index, text = match["name"], match["index"], match["value"].strip()
        if text.startswith("["):
            items = next(csv.reader([text[1:-1]], skipinitialspace=True), [])
            self.set_hparam(name, [item.strip() for item in items])
        elif index:
            current = list(getattr(self, name))
            place = int(index[1:-1])
            current += [current[-1]] * (place + 1 - len(current))
            current[place] = text
            self.set_hparam(name, current)
        elif self._types.get(name, (None, False))[1]:
            self.set_hparam(name, [text])
        else:
            self.set_hparam(name, text)

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
        """A hyperparameter, or `default` where there is none of that name."""
        return getattr(self, key) if key in self._types else default

    def __setattr__(self, name: str, value: Any) -> None:
        if name in getattr(self, "_types", {}):
            self.set_hparam(name, value)
        else:
            object.__setattr__(self, name, value)

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{name}={value!r}' for name, value in sorted(self.values().items()))})"


def _cast(name: str, value: Any, kind: type) -> Any:
    if value is None or kind is type(None):
        return value
    try:
        if kind is bool:
            return _as_bool(value)
        if kind is int:
            return _as_int(value)
        if kind in (float, str):
            return kind(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"hyperparameter {name!r} is of type {kind.__name__}, got {value!r}") from error
    return value


def _as_bool(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in ("true", "1"):
            return True
        if value.lower() in ("false", "0"):
            return False
        raise ValueError(value)
    return bool(value)


def _as_int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
        raise ValueError(value)
    return int(value)
