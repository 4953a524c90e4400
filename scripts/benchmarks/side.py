"""One implementation under measurement: a process that opens cases and times their steps on request.

Requests and answers are JSON objects, one a line, on standard input and output:

1. ``{"do": "describe"}`` answers ``{"versions": {"numpy": "2.4.6", ...}}``.
2. ``{"do": "open", "bench": "mlp", "case": "softmax", "options": {}}`` builds the case. One is open at a time. The
   answer is ``{"work": {"bytes": 3e6, "flops": 2e6}}`` where the case states its floor, else ``{}``.
3. ``{"do": "run", "steps": 20}`` runs steps and answers ``{"times_ms": [0.31, ...], "processor_ms": 0.3}``: the second
   is the processor time of a step, of this process and its descendants, in the mean of these steps.
4. ``{"do": "rest"}`` is answered when no thread has anything to do.
5. ``{"do": "close"}`` ends the case.

What goes wrong is answered ``{"error": "..."}``. The end of the input ends the process.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from benchmarks.cases import Counted, cases_of
from benchmarks.processes import another_thread_runs, descendants_time_s

_PACKAGES: Final = ("numpy", "ray", "onednn-cpu-gomp", "numba", "pillow", "pyarrow")
"""Whose versions matter to times, where they are installed."""


_REST_S: Final = 0.02
_LONGEST_REST_S: Final = 5.0


class _Server:
    """Carries out requests."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._stack = ExitStack()
        self._step: Callable[[], Any] | None = None
        self._works_ahead = False

    def describe(self, request: dict[str, Any]) -> dict[str, Any]:
        versions = {**self._backend.versions, "python": platform.python_version()}
        for package in _PACKAGES:
            try:
                versions[package] = version(package)
            except PackageNotFoundError:
                continue  # an optional one
        return {"versions": versions}

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        case = cases_of(request["bench"])[request["case"]]
        options = {**request["options"], **case.options}
        self._works_ahead = case.works_ahead
        opened = self._stack.enter_context(case.open(self._backend, options))
        if not isinstance(opened, Counted):
            self._step = opened
            return {}
        self._step = opened.step
        return {"work": asdict(opened.work)}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        step = self._step
        assert step is not None, "no case is open"
        times_ms = []
        clock = time.perf_counter
        if self._works_ahead:
            step()
        # Looking for descendants takes time itself, which is not the case's: it comes before and after.
        others_s = descendants_time_s()
        own_s = time.process_time()
        for _ in range(request["steps"]):
            started = clock()
            step()
            times_ms.append((clock() - started) * 1e3)
        own_s = time.process_time() - own_s
        others_s = descendants_time_s() - others_s
        return {"times_ms": times_ms, "processor_ms": 1e3 * max(0.0, own_s + others_s) / len(times_ms)}

    def rest(self, request: dict[str, Any]) -> dict[str, Any]:
        """Wait until the threads of this process have nothing to do; what never rests is left after a while."""
        deadline = time.monotonic() + _LONGEST_REST_S
        while time.monotonic() < deadline:
            before_s = time.process_time()
            time.sleep(_REST_S)
            if time.process_time() - before_s < 0.1 * _REST_S and not another_thread_runs():
                break
        return {}

    def close(self, request: dict[str, Any]) -> dict[str, Any]:
        self._step = None
        self._stack.close()
        return {}


def serve(backend: Any) -> None:
    """Answer requests until the input ends."""
    # What libraries print goes to standard error, so that nothing comes between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = _Server(backend)
    actions = {each.__name__: each for each in (server.describe, server.open, server.run, server.rest, server.close)}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = actions[request["do"]](request)
        except Exception as error:  # noqa: BLE001 (whatever went wrong is for the other process to report)
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    server.close({})
