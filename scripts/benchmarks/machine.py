"""The machine that is measured on: its processor, how many cores of it there are, and their caches."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_VECTORS = {"avx512f": 512, "avx2": 256, "avx": 256, "asimd": 128, "sse2": 128}
"""Bits of a vector register, by the flag that Linux shows for it; the widest first."""


@dataclass(frozen=True)
class Machine:
    """A machine, as far as times depend on it.

    Attributes:
        model: The processor, by name, family and model: names alone are shared by several generations.
        vector_bits: Width of its vector registers; 0 when that is unknown.
        cores: Cores that this process may use.
        cache_bytes: By level, the size of a cache of data of one core; empty when that is unknown.
    """

    model: str
    vector_bits: int
    cores: int
    cache_bytes: Mapping[int, int] = field(default_factory=dict)

    @property
    def cpu(self) -> str:
        """Processor and width of vectors: what must be the same for figures to be compared closely."""
        return f"{self.model}, {self.vector_bits}-bit vectors" if self.vector_bits else self.model

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} core{'s' if self.cores > 1 else ''}"

    @classmethod
    def here(cls) -> Machine:
        """The machine that this process runs on."""
        path = Path("/proc/cpuinfo")
        text = path.read_text() if path.exists() else ""
        return cls(*cpu_of(text), len(os.sched_getaffinity(0)), _caches(Path("/sys/devices/system/cpu/cpu0/cache")))


def cpu_of(cpuinfo: str) -> tuple[str, int]:
    """Name of the processor and width of its vectors in bits, from the text of ``/proc/cpuinfo``."""
    facts = {}
    for line in cpuinfo.partition("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        facts[name.strip()] = value.strip()
    flags = facts.get("flags", facts.get("Features", "")).split()
    bits = next((bits for flag, bits in _VECTORS.items() if flag in flags), 0)
    if "model name" in facts:
        return f"{facts['model name']} (family {facts.get('cpu family')}, model {facts.get('model')})", bits
    if "CPU part" in facts:
        return f"{platform.machine()} (implementer {facts.get('CPU implementer')}, part {facts['CPU part']})", bits
    return platform.processor() or platform.machine(), bits


def _caches(folder: Path) -> dict[int, int]:
    """Sizes of the caches of data in a folder of sysfs, by level."""
    sizes = {}
    for cache in sorted(folder.glob("index*")):
        if (cache / "type").read_text().strip() in ("Data", "Unified"):
            size = (cache / "size").read_text().strip()
            sizes[int((cache / "level").read_text())] = int(size.removesuffix("K")) * 1024
    return sizes
