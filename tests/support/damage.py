"""Random damage to files: to their bytes, and, below their form, to the messages and plain data that they hold.

The same seed does the same damage. What is changed below the form still parses: a file that was made to harm does too.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections import defaultdict
from typing import Any

NUMBERS = [0, 1, -1, 2, 3, 7, 64, 999, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 40, 1 << 62, (1 << 63) - 1,
           -(1 << 63)]  # fmt: skip
FLOATS = [0.0, -1.0, 0.5, 1e30, math.inf, -math.inf, math.nan]
STRINGS = ["", " ", "a b", "/", "a//b", "../../etc/passwd", "/etc/passwd", "..", ".", ":0", "a:", "a:b:c", "a:99", "^",
           "^a", "a:-1", "-", "_", "é☃", "a\nb", "a\0b", "x" * 300, "'+str(1)+'", '"""', "{0}", "%s", "\\",
           "__import__('os')._exit(7)", "loc:@a", "Const", "NoOp"]  # fmt: skip
BYTES = [b"", b"\xff\xfe", b"\0", b"x" * 300, b"../../etc/passwd", b"/etc/passwd", b"{", b"[]", b'{"op":1}']
PLAIN = [None, -1, 0, 1, 2**62, 1e300, math.nan, "x", "", [], {}, [1, 2], "../../etc/passwd", True, {"shape": [2**40]},
         {"dtype": "float32"}, {"list": []}, {"bytes": "eA=="}]  # fmt: skip
SET = [b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"9999"]


class Donors:
    """What a changed message may take from messages of the same kind: their strings by field, messages by type."""

    def __init__(self) -> None:
        self.strings: dict[str, list[Any]] = defaultdict(list)
        self.messages: dict[str, list[Any]] = defaultdict(list)

    def add(self, message: Any) -> None:
        """Take in a message with all that it holds."""
        found = self.messages[message.DESCRIPTOR.full_name]
        if len(found) < 400:
            found.append(message)
        for field, value in message.ListFields():
            for each in _elements(field, value):
                if field.type == field.TYPE_MESSAGE and hasattr(each, "ListFields"):
                    self.add(each)
                elif field.type in (field.TYPE_STRING, field.TYPE_BYTES) and len(self.strings[field.full_name]) < 400:
                    self.strings[field.full_name].append(each)


class Damage:
    """One file's damage.

    Args:
        seed: What decides it.
    """

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    # -- bytes -------------------------------------------------------------------------------------

    def octets(self, contents: bytes) -> bytes:
        """Bytes with a few of them flipped, set, cut off, removed, doubled, moved, zeroed or put in."""
        changed, rng = bytearray(contents), self.random
        for _ in range(rng.randint(1, 4)):
            at = rng.randint(0, max(0, len(changed) - 1))
            length = min(rng.choice((1, 4, 9, 40, 400)), len(changed) - at)
            match rng.choice(("flip", "set", "cut", "remove", "double", "insert", "move", "zero", "grow")):
                case "flip" if changed:
                    changed[at] ^= 1 << rng.randint(0, 7)
                case "set":
                    changed[at : at + 4] = rng.choice(SET)
                case "cut":
                    del changed[at:]
                case "remove":
                    del changed[at : at + length]
                case "double":
                    changed[at:at] = changed[at : at + length]
                case "insert":
                    changed[at:at] = rng.randbytes(rng.randint(0, 8))
                case "move":
                    chunk = changed[at : at + length]
                    del changed[at : at + length]
                    to = rng.randint(0, len(changed))
                    changed[to:to] = chunk
                case "zero":
                    changed[at : at + length] = bytes(length)
                case "grow":
                    changed += rng.choice((b"\0" * 100, bytes(changed[:200]), rng.randbytes(50)))
        return bytes(changed)

    # -- plain data --------------------------------------------------------------------------------

    def json(self, contents: bytes) -> bytes:
        """JSON that holds something else in a few places."""
        plain = json.loads(contents)
        for _ in range(self.random.choice((1, 1, 2, 4))):
            plain = self.plain(plain)
        return json.dumps(plain).encode()

    def plain(self, value: Any) -> Any:
        """Nested lists and dictionaries with one thing in them changed."""
        rng = self.random
        if isinstance(value, (dict, list)) and value and rng.random() > 0.1:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            key, other = rng.choice(keys), rng.choice(keys)
            if isinstance(value[key], (dict, list)) and value[key] and rng.random() > 0.15:
                value[key] = self.plain(value[key])
                return value
            match rng.choice(("set", "set", "delete", "copy", "swap", "rename", "nest")):
                case "delete":
                    del value[key]
                case "copy":
                    value[key] = copy.deepcopy(value[other])
                case "swap":
                    value[key], value[other] = value[other], value[key]
                case "rename" if isinstance(value, dict):
                    value[rng.choice(STRINGS)] = value.pop(key)
                case "nest":
                    for _ in range(rng.choice((1, 2, 300))):
                        value[key] = rng.choice(([value[key]], {"list": [value[key]]}))
                case _:
                    value[key] = self._plain_value(value[key])
            return value
        return self._plain_value(value)

    def _plain_value(self, value: Any) -> Any:
        rng = self.random
        if isinstance(value, bool) or rng.random() < 0.4:
            return copy.deepcopy(rng.choice(PLAIN))
        if isinstance(value, (int, float)):
            return rng.choice(NUMBERS)
        return rng.choice(STRINGS)

    # -- messages ----------------------------------------------------------------------------------

    def message(self, message: Any, donors: Donors) -> None:
        """Change a few fields of a message, or of those that it holds."""
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 8))):
            self._change_within(message, donors)

    def _change_within(self, message: Any, donors: Donors) -> None:
        rng = self.random
        while True:
            fields = message.ListFields()
            if not fields or rng.random() < 0.03:
                self._set_another(message, donors)
                return
            weights = [len(value) if _is_list(field) else 1 for field, value in fields]
            ((field, value),) = rng.choices(fields, weights)
            inner = _elements(field, value) if field.type == field.TYPE_MESSAGE else []
            inner = [each for each in inner if hasattr(each, "ListFields")]
            if inner and rng.random() < 0.8:
                message = rng.choice(inner)
                continue
            self._change(message, field, donors)
            return

    def _set_another(self, message: Any, donors: Donors) -> None:
        """Set a field that may not be there."""
        if message.DESCRIPTOR.fields:
            self._change(message, self.random.choice(message.DESCRIPTOR.fields), donors)

    def _change(self, message: Any, field: Any, donors: Donors) -> None:
        rng = self.random
        value = getattr(message, field.name)
        if _is_map(field):
            self._change_map(value, field, donors)
        elif not _is_list(field):
            if field.type == field.TYPE_MESSAGE:
                self._replace(value, donors)
                if rng.random() < 0.3:
                    message.ClearField(field.name)
            else:
                setattr(message, field.name, self._scalar(field, value, donors))
        elif field.type == field.TYPE_MESSAGE:
            self._change_messages(value, donors)
        else:
            self._change_scalars(value, field, donors)

    def _change_map(self, entries: Any, field: Any, donors: Donors) -> None:
        rng = self.random
        keys = sorted(entries)
        kind, inner = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        key = rng.choice(keys) if keys else self._scalar(kind, None, donors)
        is_message = inner.type == inner.TYPE_MESSAGE
        match rng.choice(("delete", "rename", "change", "change")):
            case "delete":
                if key in entries:
                    del entries[key]
            case "rename":
                to = rng.choice(keys) if keys and rng.random() < 0.5 else self._scalar(kind, key, donors)
                if is_message:
                    entries[to].CopyFrom(entries[key])
                else:
                    entries[to] = entries[key]
                if to != key:
                    del entries[key]
            case _ if is_message:
                self._replace(entries[key], donors)
            case _:
                entries[key] = self._scalar(inner, entries[key], donors)

    def _replace(self, message: Any, donors: Donors) -> None:
        """Make a message another one of its type."""
        found = donors.messages[message.DESCRIPTOR.full_name]
        if found and self.random.random() < 0.7:
            message.CopyFrom(self.random.choice(found))
        else:
            message.Clear()
            message.SetInParent()
            self._set_another(message, donors)

    def _change_messages(self, values: Any, donors: Donors) -> None:
        rng = self.random
        at = rng.randrange(len(values)) if values else 0
        match rng.choice(("delete", "double", "swap", "replace", "replace", "clear", "many")):
            case "delete" if values:
                del values[at]
            case "double" if values:
                values.append(values[at])
            case "swap" if values:
                values.append(values[at])
                del values[at]
            case "replace" if values:
                self._replace(values[at], donors)
            case "clear" if rng.random() < 0.2:
                del values[:]
            case "many":
                added = values.add()
                self._replace(added, donors)
                values.extend([added] * rng.choice((0, 1, 70)))
            case _:
                self._replace(values.add(), donors)

    def _change_scalars(self, values: Any, field: Any, donors: Donors) -> None:
        rng = self.random
        at = rng.randrange(len(values)) if values else 0
        match rng.choice(("delete", "double", "set", "set", "set", "clear", "swap", "many")):
            case "delete" if values:
                del values[at]
            case "double" if values:
                values.append(values[at])
            case "set" if values:
                values[at] = self._scalar(field, values[at], donors)
            case "clear":
                del values[:]
            case "swap" if values:
                values[0], values[at] = values[at], values[0]
            case "many":
                values.extend([self._scalar(field, None, donors)] * rng.choice((1, 70, 1000)))
            case _:
                values.append(self._scalar(field, None, donors))

    def _scalar(self, field: Any, value: Any, donors: Donors) -> Any:
        rng = self.random
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            known = donors.strings[field.full_name]
            if known and rng.random() < 0.6:
                return rng.choice(known)
            if field.type == field.TYPE_STRING:
                text = rng.choice(STRINGS)
                return value + text if value and rng.random() < 0.3 else text
            if value and rng.random() < 0.5:
                return rng.choice((value[:-1], value[: len(value) // 2], value + b"\0", self.octets(value)))
            return rng.choice(BYTES)
        if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
            return rng.choice(FLOATS)
        if field.type == field.TYPE_BOOL:
            return not value
        if field.type == field.TYPE_ENUM:
            return rng.choice([*(each.number for each in field.enum_type.values), 77, 1000])
        low, high = _RANGES[field.cpp_type]
        near = [value + 1, value - 1, value * 2] if value else []
        return rng.choice([number for number in [*NUMBERS, *near, *range(24)] if low <= number <= high])


def _ranges(field: Any) -> dict[int, tuple[int, int]]:
    return {
        field.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
        field.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
        field.CPPTYPE_UINT32: (0, (1 << 32) - 1),
        field.CPPTYPE_UINT64: (0, (1 << 64) - 1),
    }


def _is_list(field: Any) -> bool:
    # protobuf 7 has no `label`, and those before 6.30 no `is_repeated`.
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    return bool(repeated) and not _is_map(field)


def _is_map(field: Any) -> bool:
    return field.type == field.TYPE_MESSAGE and bool(field.message_type.GetOptions().map_entry)


def _elements(field: Any, value: Any) -> list[Any]:
    if _is_map(field):
        return [value[key] for key in sorted(value)]
    return list(value) if _is_list(field) else [value]


class _Ranges(dict):  # of protobuf's own numbers, which are known once it is loaded
    def __missing__(self, kind: int) -> tuple[int, int]:
        from google.protobuf.descriptor import FieldDescriptor

        self.update(_ranges(FieldDescriptor))
        return self[kind]


_RANGES = _Ranges()
