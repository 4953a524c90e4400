"""What is counted: calls that launch kernels, waits for the device, copies to it."""

from __future__ import annotations

import collections
import sys

from tests.support.gpu import fakegraphs

_STAND_INS = "tests.support.gpu.fake"
"""How the names of their modules begin: `fakegraphs` calls what captures note."""


class Recorder:
    """Counts of what a GPU would do, each with the line of tfray that asked for it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.calls: collections.Counter = collections.Counter()  # name -> calls that launch kernels
        self.waits: collections.Counter = collections.Counter()  # (what, place) -> times the host waited
        self.uploads: collections.Counter = collections.Counter()  # (how, place) -> copies to the device
        self.notes: collections.Counter = collections.Counter()  # other deviations, e.g. a dtype that differs
        self.upload_bytes = self.download_bytes = 0

    @staticmethod
    def place() -> str:
        """The line of tfray that asked; "outside" where that is a test or this harness."""
        frame = sys._getframe(2)
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if module.startswith("tests.") and not module.startswith(_STAND_INS):
                break
            if module.startswith("tfray.") and module != "tfray.runtime.device":
                return f"{module.removeprefix('tfray.').replace('.', '/')}.py:{frame.f_lineno}"
            frame = frame.f_back
        return "outside"

    def call(self, name: str) -> None:
        self.calls[name] += 1

    def wait(self, what: str, nbytes: int = 0) -> None:
        fakegraphs.waits()
        self.waits[what, self.place()] += 1
        self.download_bytes += nbytes

    def upload(self, how: str, nbytes: int) -> None:
        fakegraphs.meets_host()
        self.uploads[how, self.place()] += 1
        self.upload_bytes += nbytes

    def note(self, what: str) -> None:
        self.notes[what, self.place()] += 1

    def cost(self) -> dict[str, int]:
        """`report.COUNTS`."""
        products = sum(self.calls[name] for name in PRODUCTS)
        return {
            "kernels": self.calls.total() - products,
            "GEMMs": products,
            "waits": self.waits.total(),
            "uploads": self.uploads.total(),
        }


PRODUCTS = ("matmul", "dot", "vdot", "inner", "tensordot", "einsum", "gemmStridedBatchedEx")
"""Calls that cuBLAS carries out."""

recorder = Recorder()
