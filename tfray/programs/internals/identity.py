"""``tensorflow.python.util.object_identity``: sets and dictionaries that compare objects by identity.

They hold what has no hash, such as lists, and tell apart what compares equal.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any, Generic, TypeVar

__all__ = [
    "ObjectIdentityDictionary",
    "ObjectIdentitySet",
    "ObjectIdentityWeakKeyDictionary",
    "ObjectIdentityWeakSet",
    "Reference",
]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Reference(Generic[_Key]):
    """A hashable object that refers to another, and equals what refers to the same.

    Args:
        wrapped: What it refers to.
    """

    def __init__(self, wrapped: _Key) -> None:
        self._wrapped = wrapped

    def deref(self) -> _Key:
        """What it refers to."""
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            raise TypeError("Cannot compare wrapped object with unwrapped object")
        return self._wrapped is other._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} wrapping {self._wrapped!r}>"


class ObjectIdentitySet(MutableSet[_Key]):
    """A set that compares by identity, in order of what was added.

    Args:
        items: What it has from the start.
    """

    def __init__(self, items: Iterable[_Key] = ()) -> None:
        self._by_id = self._storage()
        self.update(items)

    @staticmethod
    def _storage() -> MutableMapping[int, Any]:
        return {}

    def __contains__(self, key: object) -> bool:
        return id(key) in self._by_id

    def __iter__(self) -> Iterator[_Key]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, value: _Key) -> None:
        """Add an object."""
        self._by_id[id(value)] = value

    def discard(self, value: _Key) -> None:
        """Take an object out, if it is there."""
        self._by_id.pop(id(value), None)

    def update(self, items: Iterable[_Key]) -> None:
        """Add objects."""
        for item in items:
            self.add(item)

    def intersection(self, items: Iterable[_Key]) -> set[Reference[_Key]]:
        """References to the objects that are in `items` too: a plain set."""
        return {Reference(item) for item in items if item in self}

    def difference(self, items: Iterable[_Key]) -> ObjectIdentitySet[_Key]:
        """The objects that are not in `items`."""
        left_out = ObjectIdentitySet(items)
        return ObjectIdentitySet(item for item in self if item not in left_out)


class ObjectIdentityWeakSet(ObjectIdentitySet[_Key]):
    """An `ObjectIdentitySet` that keeps no object alive."""

    @staticmethod
    def _storage() -> MutableMapping[int, Any]:
        return weakref.WeakValueDictionary()


class ObjectIdentityDictionary(MutableMapping[_Key, _Value]):
    """A dictionary whose keys compare by identity, in order of what was added."""

    def __init__(self) -> None:
        self._keys: ObjectIdentitySet[_Key] = ObjectIdentitySet()
        self._values: dict[int, _Value] = {}

    def __getitem__(self, key: _Key) -> _Value:
        if key not in self._keys:
            raise KeyError(key)
        return self._values[id(key)]

    def __setitem__(self, key: _Key, value: _Value) -> None:
        self._keys.add(key)
        self._values[id(key)] = value

    def __delitem__(self, key: _Key) -> None:
        if key not in self._keys:
            raise KeyError(key)
        self._keys.discard(key)
        del self._values[id(key)]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.items())!r})"


class ObjectIdentityWeakKeyDictionary(ObjectIdentityDictionary[_Key, _Value]):
    """An `ObjectIdentityDictionary` that keeps no key alive: what a key had goes with it."""

    def __init__(self) -> None:
        super().__init__()
        self._keys = ObjectIdentityWeakSet()

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if key not in self._keys:
            weakref.finalize(key, self._values.pop, id(key), None)
        super().__setitem__(key, value)
