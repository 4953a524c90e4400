"""What tfray offers: its operations, and the symbols of TensorFlow 1 that programs use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from types import ModuleType
from typing import Any

from tfray.framework.op_def import not_differentiable, registered_ops
from tfray.ops import families as families
from tfray.region_gradients import GRADIENTS


@dataclass(frozen=True)
class OperationRecord:
    """A type of operation.

    Attributes:
        name: Its name in graphs.
        devices: Device types that have a kernel for it.
        gradient: Whether gradients flow through it.
    """

    name: str
    devices: list[str]
    gradient: bool


def operations() -> list[OperationRecord]:
    """Every registered operation, by name."""
    return [
        OperationRecord(
            name,
            sorted(definition.kernels),
            definition.gradient not in (None, not_differentiable) or name in GRADIENTS,
        )
        for name, definition in sorted(registered_ops().items())
    ]


def program_symbols() -> Iterator[tuple[str, int]]:
    """The symbols of TensorFlow 1 that public programs use, with the number of files that use each, most used first."""
    for line in files("tfray.library").joinpath("program_symbols.txt").read_text().splitlines():
        name, count = line.split()
        yield name, int(count)


def missing_symbols(module: ModuleType) -> list[tuple[str, int]]:
    """Those of `program_symbols` that `module`, the public tfray, does not have."""
    return [(name, count) for name, count in program_symbols() if not _has(module, name)]


def _has(module: ModuleType, name: str) -> bool:
    found: Any = module
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            return False
    return True
