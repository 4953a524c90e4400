"""A replica's part of a Ray dataset, cut into batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import Count, Positive, checked

Rows = Mapping[str, Any]
"""Arrays by column. Their first axis is that of the rows."""


class RowSource(Protocol):
    """Gives the rows of a dataset, pass after pass, each to one of those who ask."""

    @property
    def epochs(self) -> int:
        """How many passes are over."""

    def take(self, most: int) -> Rows | None:
        """Up to `most` rows of this pass; None at its end, after which the next one begins."""


class WholeDataset:
    """All rows of a dataset, for a run in this process.

    Args:
        dataset: A `ray.data.Dataset` or `ray.data.DataIterator`.

    Attributes:
        epochs: How many passes are over.
    """

    def __init__(self, dataset: Any) -> None:
        self.epochs = 0
        self._dataset = dataset
        self._blocks: Iterator[Rows] | None = None
        self._held: Rows = {}
        self._is_empty = True

    def take(self, most: int) -> Rows | None:
        """See `RowSource`. Raises `InvalidArgumentError` if the dataset has no rows."""
        if self._blocks is None:
            self._blocks = iter(self._dataset.iter_batches(batch_size=None, batch_format="numpy"))
        while not _count(self._held):
            block = next(self._blocks, None)
            if block is not None:
                self._held, self._is_empty = block, False
            elif self._is_empty and not _count(self._held):
                raise InvalidArgumentError("the dataset has no rows")
            else:
                self._blocks, self.epochs = None, self.epochs + 1
                return None
        taken = {name: column[:most] for name, column in self._held.items()}
        self._held = {name: column[most:] for name, column in self._held.items()}
        return taken


class DatasetShard:
    """A replica's part of a Ray dataset that was given to a `Trainer`.

    The replicas of a run share the rows of each pass: every row goes to one of them. How many one gets depends on how
    many it asks for, so that slow ones and those that come later get fewer.

    Args:
        source: Gives the rows.
    """

    def __init__(self, source: RowSource) -> None:
        self._source = source

    @checked
    def batches(self, batch_size: Positive, epochs: Count | None = None) -> Iterator[dict[str, Any]]:
        """Batches of `batch_size` rows, as dictionaries from columns to arrays.

        A batch may hold rows of one pass and of the next. Rows that do not fill a last batch are left out.

        Args:
            batch_size: Rows of a batch.
            epochs: Number of passes over the dataset, from the beginning of the run on; None for no limit.
        """
        parts: list[Rows] = []
        missing = batch_size
        while epochs is None or self._source.epochs < epochs:
            rows = self._source.take(missing)
            if rows is None:
                continue
            parts.append(rows)
            missing -= _count(rows)
            if not missing:
                yield _joined(parts)
                parts, missing = [], batch_size


def columns_of(rows: Rows, names: str | Sequence[str]) -> Any:
    """The array of a column, or those of several by their names. Raises `InvalidArgumentError` if there is none."""
    listed = [names] if isinstance(names, str) else names
    for name in listed:
        if name not in rows:
            raise InvalidArgumentError(f"the dataset has no column {name!r}: it has {', '.join(map(repr, rows))}")
    return rows[names] if isinstance(names, str) else {name: rows[name] for name in names}


def _count(rows: Rows) -> int:
    return next((len(column) for column in rows.values()), 0)


def _joined(parts: Sequence[Rows]) -> dict[str, Any]:
    return {name: _dense(np.concatenate([part[name] for part in parts])) for name in parts[0]}


def _dense(column: Any) -> Any:
    """A column of lists of one length, which comes as an array of arrays, as one array."""
    if column.dtype == object and len({getattr(row, "shape", None) for row in column} | {None}) == 2:
        return np.stack(column)
    return column
