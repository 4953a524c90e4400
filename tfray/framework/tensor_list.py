"""The value behind a `TensorArray`: numbered tensors. To its users it is immutable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tfray.framework.op_def import Array
from tfray.framework.tensor_shape import TensorShape

MISSING: Final = object()
"""Stands for an element that was never written."""

_NO_CHANGE: Final[tuple[int, Any]] = (0, MISSING)


class TensorList:
    """An immutable mapping from indices to arrays, with the cost of a mutable one.

    A write makes a new version. The newest version holds the elements; each older one holds only the element that the
    next write replaced. So a loop that writes element by element, and reads only the newest version, pays for one small
    object a write (Baker, "Shallow binding makes functional arrays fast", 1991).

    Attributes:
        size: Number of elements, written or not.
        element_shape: What is known of the shape of each element of one of TensorFlow's lists; None for a TensorArray.
        most: How many elements such a list takes; -1 for any number.
    """

    __slots__ = ("_change", "_items", "_newer", "element_shape", "most", "size")

    def __init__(
        self, items: dict[int, Array], size: int, element_shape: TensorShape | None = None, most: int = -1
    ) -> None:
        self._items: dict[int, Array] | None = items
        self._newer: TensorList | None = None
        self._change: tuple[int, Any] = _NO_CHANGE
        self.size = size
        self.element_shape = element_shape
        self.most = most

    @classmethod
    def of(cls, elements: Sequence[Array]) -> TensorList:
        """The list with these elements."""
        return cls(dict(enumerate(elements)), len(elements))

    def element(self, index: int) -> Any:
        """The element, or `MISSING`."""
        items = self._items
        return (self._own_items() if items is None else items).get(index, MISSING)

    def set(self, index: int, value: Any) -> TensorList:
        """The list in which that element is `value`, grown if need be."""
        items = self._items
        if items is None:
            items = self._own_items()
        newer = self._replaced(items, index, self.size if index < self.size else index + 1)
        items[index] = value
        return newer

    def filled(self, elements: dict[int, Array]) -> TensorList:
        """The list with these elements and no others."""
        size = max(self.size, max(elements, default=-1) + 1)
        return TensorList(elements, size, self.element_shape, self.most)

    def without_last(self) -> TensorList:
        """The list without its last element. It must have one."""
        items = self._own_items()
        newer = self._replaced(items, self.size - 1, self.size - 1)
        items.pop(newer.size, None)
        return newer

    def resized(self, size: int) -> TensorList:
        """The list with that number of elements: its first ones, or all of them and missing ones."""
        if size < self.size:
            kept = {index: item for index, item in self._own_items().items() if index < size}
            return TensorList(kept, size, self.element_shape, self.most)
        return self if size == self.size else self._replaced(self._own_items(), size - 1, size)

    def _replaced(self, items: dict[int, Array], index: int, size: int) -> TensorList:
        """The newest version, of which the element `index` is about to change. This one keeps its own."""
        newer = TensorList.__new__(TensorList)  # without the call of `__init__`: loops do this in every turn
        newer._items, newer.size, newer.element_shape, newer.most = items, size, self.element_shape, self.most
        newer._newer, newer._change = None, _NO_CHANGE
        self._change = (index, items.get(index, MISSING))
        self._newer = newer
        self._items = None
        return newer

    def detached(self) -> TensorList:
        """The same list with no older or newer versions: for another thread or process."""
        return TensorList(dict(self._own_items()), self.size, self.element_shape, self.most)

    def bounded(self, element_shape: TensorShape, most: int = -1) -> TensorList:
        """The same elements as one of TensorFlow's lists, which holds later ones to this shape and number."""
        return TensorList(dict(self._own_items()), self.size, element_shape, most)

    def written(self) -> Iterator[tuple[int, Array]]:
        """The elements that were written, with their indices."""
        return iter(sorted(self._own_items().items(), key=lambda item: item[0]))

    def __len__(self) -> int:
        """Number of elements that were written."""
        return len(self._own_items())

    def _own_items(self) -> dict[int, Array]:
        """The elements of this version. An older one first rebuilds them from the newest, and then keeps its own."""
        if self._items is None:
            later: list[TensorList] = []
            version: TensorList = self
            while version._items is None:
                later.append(version)
                assert version._newer is not None
                version = version._newer
            items = dict(version._items)
            for older in reversed(later):
                index, value = older._change
                if value is MISSING:
                    items.pop(index, None)
                else:
                    items[index] = value
            self._items, self._newer = items, None
        return self._items
