"""Rows of queries to databases of SQLite, as elements of datasets."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, UnknownError
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.ops.resources.dataset_values import Element

_DRIVER: Final = "sqlite"
_WHOLE: Final = re.compile(rb"\s*[+-]?\d+")
_NUMBER: Final = re.compile(rb"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LOW_BITS: Final = 2**64 - 1
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def check_driver(driver: str) -> None:
    """Refuse a kind of database other than SQLite's. Raises `InvalidArgumentError`."""
    if driver != _DRIVER:
        raise InvalidArgumentError(
            f"The database type, {driver}, is not supported by SqlDataset. The set of supported databases is: "
            f"{{'{_DRIVER}'}}."
        )


def query_rows(path: str, query: str, types: Sequence[DType]) -> Iterator[Element]:
    """The rows of a query, each a scalar for every column, of these dtypes.

    Args:
        path: The database's file.
        query: The query.
        types: A dtype for each column. Values become such as SQLite has it: text is the number that it begins with,
            fractions are cut off, integers lose the bits that the dtype has no room for, and NULL is 0 or empty.

    Raises:
        InvalidArgumentError: The file cannot be opened, or the query has another number of columns.
        UnknownError: SQLite refuses the query, or breaks it off.
    """
    try:
        connection = sqlite3.connect(path)
    except sqlite3.Error as error:
        raise InvalidArgumentError(f"Sqlite::Open({path}) failed: {error}") from error
    connection.text_factory = bytes
    with contextlib.closing(connection):
        try:
            rows = connection.execute(query)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            raise UnknownError(f"Prepare() failed: [{code}] {error}: {query}") from error
        count = len(rows.description or ())
        if count != len(types):
            raise InvalidArgumentError(
                f"The number of columns in query ({count}) must match the number of elements in output_types "
                f"({len(types)})."
            )
        try:
            for row in rows:
                yield tuple(_scalar(value, dtype) for value, dtype in zip(row, types, strict=True))
        except sqlite3.Error as error:
            raise UnknownError(f"Step() failed: {error}: {query}") from error


def _scalar(value: Any, dtype: DType) -> Any:
    """A value of a column as a scalar array of this dtype."""
    if dtype is dtypes.string:
        return np.array(_text(value), object)
    if dtype.is_floating:
        return np.array(_float(value), dtype.numpy)
    whole = _integer(value)
    if dtype is dtypes.bool_:
        return np.array(bool(whole & 0xFFFFFFFF))
    return np.array(whole & _LOW_BITS, np.uint64).astype(dtype.numpy)


def _text(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, float):
        digits = f"{value:.15g}"
        mantissa, exponent, power = digits.partition("e")
        if mantissa.lstrip("-").isdigit():
            mantissa += ".0"
        return f"{mantissa}{exponent}{power}".encode()
    return value if isinstance(value, bytes) else str(value).encode()


def _float(value: Any) -> float:
    if isinstance(value, bytes):
        found = _NUMBER.match(value)
        return float(found[0]) if found else 0.0
    return 0.0 if value is None else float(value)


def _integer(value: Any) -> int:
    if isinstance(value, bytes):
        found = _WHOLE.match(value)
        value = int(found[0]) if found else 0
    return 0 if value is None else max(_LEAST, min(_MOST, int(value)))
