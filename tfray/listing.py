"""What tfray offers: its operations, and the symbols of TensorFlow 1 that programs use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from tfray.framework.op_def import not_differentiable, registered_ops
from tfray.ops import families as families
from tfray.region_gradients import GRADIENTS

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class OperationRecord:
    """A type of operation.

    Attributes:
        name: Its name in graphs.
        devices: Device types that have a kernel for it.
        gradient: Whether gradients flow through it.
        tested: Whether the test suite has samples or tests of it; None where there is no test suite to look at.
    """

    name: str
    devices: list[str]
    gradient: bool
    tested: bool | None


def operations() -> list[OperationRecord]:
    """Every registered operation, by name."""
    tested = _tested_operations()
    return [
        OperationRecord(
            name,
            sorted(definition.kernels),
            definition.gradient not in (None, not_differentiable) or name in GRADIENTS,
            None if tested is None else name in tested,
        )
        for name, definition in sorted(registered_ops().items())
    ]


def _tested_operations() -> set[str] | None:
    """What the samples in a checkout's tests cover."""
    tests = _ROOT / "tests"
    if not (tests / "op_samples").is_dir():
        return None
    sys.path.insert(0, str(tests))
    try:
        samples = importlib.import_module("op_samples")
    except ImportError:  # the packages that tests need are not there
        return None
    finally:
        sys.path.remove(str(tests))
    return {sample.op for sample in samples.all_samples()} | set(samples.unsampled())


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
