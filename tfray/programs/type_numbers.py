"""The numbers of dtypes in TensorFlow's messages: `tensorflow.core.framework.types_pb2`."""

from __future__ import annotations

from typing import Final

DT_INVALID: Final = 0
DT_FLOAT: Final = 1
DT_DOUBLE: Final = 2
DT_INT32: Final = 3
DT_UINT8: Final = 4
DT_INT16: Final = 5
DT_INT8: Final = 6
DT_STRING: Final = 7
DT_COMPLEX64: Final = 8
DT_INT64: Final = 9
DT_BOOL: Final = 10
DT_QINT8: Final = 11
DT_QUINT8: Final = 12
DT_QINT32: Final = 13
DT_BFLOAT16: Final = 14
DT_QINT16: Final = 15
DT_QUINT16: Final = 16
DT_UINT16: Final = 17
DT_COMPLEX128: Final = 18
DT_HALF: Final = 19
DT_RESOURCE: Final = 20
DT_VARIANT: Final = 21
DT_UINT32: Final = 22
DT_UINT64: Final = 23

__all__ = ["DataType", *(name for name in dir() if name.startswith("DT_"))]


class DataType:
    """The numbers of dtypes by their names, and the other way round."""

    @staticmethod
    def items() -> list[tuple[str, int]]:
        """Names and numbers."""
        return [(name, number) for name, number in globals().items() if name.startswith("DT_")]

    @staticmethod
    def keys() -> list[str]:
        """The names."""
        return [name for name, _ in DataType.items()]

    @staticmethod
    def values() -> list[int]:
        """The numbers."""
        return [number for _, number in DataType.items()]

    @staticmethod
    def Value(name: str) -> int:
        """The number of a name. Raises `ValueError` when there is none."""
        found = dict(DataType.items()).get(name)
        if found is None:
            raise ValueError(f"Enum DataType has no value defined for name {name!r}")
        return found

    @staticmethod
    def Name(number: int) -> str:
        """The name of a number. Raises `ValueError` when there is none."""
        for name, each in DataType.items():
            if each == number:
                return name
        raise ValueError(f"Enum DataType has no name defined for value {number!r}")
