"""One implementation under measurement: a process that opens cases and times their steps on request.

Requests and answers are JSON objects, one a line, on standard input and output:

1. ``{"do": "open", "bench": "mlp", "case": "softmax", "options": {}}`` builds the case. One is open at a time.
2. ``{"do": "run", "steps": 20}`` runs steps and answers ``{"times_ms": [0.31, ...]}``.
3. ``{"do": "close"}`` ends the case.

What goes wrong is answered ``{"error": "..."}``. The end of the input ends the process.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from contextlib import ExitStack
from typing import Any

from benchmarks.cases import Step, cases_of


class _Server:
    """Carries out requests."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._stack = ExitStack()
        self._step: Step | None = None

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        case = cases_of(request["bench"])[request["case"]]
        options = {**request["options"], **case.options}
        self._step = self._stack.enter_context(case.open(self._backend, options))
        return {}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        step = self._step
        assert step is not None, "no case is open"
        times_ms = []
        clock = time.perf_counter
        for _ in range(request["steps"]):
            started = clock()
            step()
            times_ms.append((clock() - started) * 1e3)
        return {"times_ms": times_ms}

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
    actions = {"open": server.open, "run": server.run, "close": server.close}
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
