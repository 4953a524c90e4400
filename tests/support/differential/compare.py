"""Make a random program, run it on both sides, and say how they differ."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import tfray as tf
from tests.support.differential.calls import FLOATS, INTS, MAKERS, Made, Pool
from tests.support.differential.side import (
    Side,
    build,
    decoded,
    each_alone,
    encoded,
    numbers_in,
    placeholders,
    source_values,
)

SHAPES = [
    [],
    [3],
    [1],
    [2, 3],
    [3, 3],
    [2, 2],
    [1, 3],
    [4, 2],
    [2, 3, 4],
    [2, 4, 4, 3],
    [1, 5, 6, 4],
    [0, 3],
    [2, 3, 3],
]
TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-7, "complex128": 1e-7}


LIMIT_S = 60.0
"""How long either side may take for a program."""

LIFETIME = 400
"""Programs that one peer takes: TensorFlow keeps some memory of each graph."""


class Peer:
    """TensorFlow in an interpreter of its own, which takes many programs, one after the other.

    Args:
        python: The interpreter.
    """

    def __init__(self, python: str) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._taken = 0

    def answer(self, program: dict[str, Any]) -> dict[str, Any] | None:
        """What TensorFlow makes of a program; None if its process ends, or is too slow."""
        if self._taken == LIFETIME:
            self.close()
        if self._process is None:
            self._start()
        self._taken += 1
        self._process.stdin.write(json.dumps(program).encode() + b"\n")
        self._process.stdin.flush()
        line, ends = bytearray(), time.monotonic() + LIMIT_S
        pipe = self._process.stdout.fileno()
        while not line.endswith(b"\n"):
            is_ready, _, _ = select.select([pipe], [], [], max(0.0, ends - time.monotonic()))
            more = os.read(pipe, 1 << 20) if is_ready else b""
            if not more:
                self.close()
                return None
            line += more
        return json.loads(line)

    def _start(self) -> None:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        environment.pop("PYTHONPATH", None)
        self._taken = 0
        self._process = subprocess.Popen(
            [self._python, str(Path(__file__).with_name("side.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def close(self) -> None:
        """End it."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(60)
        self._process.stdin.close()
        self._process.stdout.close()
        self._process = None


class TooSlow(Exception):
    """A program of tfray takes too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what runs here with `TooSlow` after some seconds. A timer that is set already goes on."""

    def ring(*_: Any) -> None:
        raise TooSlow(f"more than {seconds} s")

    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - began)))


def make_program(seed: int) -> tuple[dict[str, Any], list[Any]]:
    """A program, with the values of its tensors by tfray, and what tfray made of each call."""
    random = np.random.default_rng(seed)
    pool = Pool(random)
    sources = []
    for _ in range(int(random.integers(2, 6))):
        shape = pool.choose(SHAPES)
        static = [None if pool.chance(0.1) else size for size in shape]
        sources.append(
            {"dtype": pool.choose([*FLOATS, "float32", "float32", *INTS, "bool"]), "shape": shape, "static": static}
        )
    program: dict[str, Any] = {"seed": seed, "sources": sources, "calls": []}
    with tf.Graph().as_default(), tf.Session() as session:
        side = Side(tf, placeholders(tf, program))
        feeds = dict(zip(side.tensors.values(), source_values(program), strict=True))
        pool.made = [Made(n, each["dtype"], tuple(each["static"])) for n, each in enumerate(sources)]
        built: list[Any] = []
        for _ in range(int(random.integers(5, 41))):
            call = pool.choose(MAKERS)(pool)
            if call is None:
                continue
            call = json.loads(json.dumps(asdict(call)))
            first = len(side.tensors)
            made = build(tf, side, call)
            built.append(made)
            call["results"] = list(range(first, len(side.tensors)))
            program["calls"].append(call)
            if isinstance(made, list):
                pool.made += [Made(first + i, d, None if s is None else tuple(s)) for i, (d, s) in enumerate(made)]
        forms = {
            n: [t.dtype.name, t.shape.as_list() if t.shape.rank is not None else None] for n, t in side.tensors.items()
        }
        program["forms"] = forms
        program["values"] = {n: encoded(value) for n, value in _values(session, side.tensors, feeds).items()}
    return program, built


def _values(session: Any, tensors: dict[int, Any], feeds: dict[Any, Any]) -> dict[int, np.ndarray]:
    """The values of all tensors in one step; where that fails, of those that can be computed."""
    try:
        return dict(zip(tensors, session.run(list(tensors.values()), feeds), strict=True))
    except tf.errors.OpError:
        if len(tensors) == 1:
            return {}
        numbers = list(tensors)
        halves = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
        first, last = (_values(session, {number: tensors[number] for number in half}, feeds) for half in halves)
        return {**first, **last}


UNANSWERED: list[int] = []
"""Seeds of programs at which the peer ended: some mistakes end TensorFlow's process."""


def differences(seed: int, peer: Peer) -> list[str]:
    """How tfray and TensorFlow differ on the program of this seed."""
    try:
        with limited(LIMIT_S):
            program, built = make_program(seed)
            runs = each_alone(tf, program)
    except TooSlow as error:
        return [f"seed {seed}: {error}"]
    theirs = peer.answer(program)
    if theirs is None:
        UNANSWERED.append(seed)
        return []
    values = {number: decoded(value) for number, value in program["values"].items()}
    found = []
    for call, ours, mine, other, run in zip(
        program["calls"], built, runs, theirs["built"], theirs["runs"], strict=True
    ):
        missing = any(number not in values for number in numbers_in([call["args"], call["options"]]))
        if other is None:
            continue
        says = _difference_when_built(ours, other)
        if says and isinstance(ours, dict) and run and "error" in run and _same_kind(ours["error"], run["error"]):
            continue  # refused when it is built already, which is better
        if says is None and run is not None and not missing and isinstance(ours, list):
            says = _difference_when_run(call, mine, run, values)
        if says is not None:
            inputs = {
                n: program["forms"][n] for n in numbers_in([call["args"], call["options"]]) if n in program["forms"]
            }
            found.append(
                f"seed {seed}: {call['function']} {json.dumps([call['args'], call['options']])} {inputs}: {says}"
            )
    return found


def _said(error: dict[str, Any]) -> str:
    return f"{error['error'][0]}: {error['message'][:160]}"


def _difference_when_built(ours: Any, theirs: Any) -> str | None:
    if isinstance(ours, list) and isinstance(theirs, list):
        for mine, other in zip(ours, theirs, strict=False):
            if mine[0] != other[0] or not _knows_more(mine[1], other[1]):
                return f"built as {mine}, TensorFlow {other}"
        return None if len(ours) == len(theirs) else f"{len(ours)} results, TensorFlow {len(theirs)}"
    if isinstance(ours, list):
        return f"is built; TensorFlow raises {_said(theirs)}"
    if isinstance(theirs, list):
        return f"raises {_said(ours)}; TensorFlow builds it"
    if not _same_kind(ours["error"], theirs["error"]):
        return f"raises {_said(ours)}; TensorFlow {_said(theirs)}"
    return None


def _knows_more(mine: Any, other: Any) -> bool:
    """Whether a static shape says all that another does, and more."""
    if other is None:
        return True
    return (
        mine is not None
        and len(mine) == len(other)
        and all(b is None or a == b for a, b in zip(mine, other, strict=True))
    )


def _same_kind(ours: list[str], theirs: list[str]) -> bool:
    # TensorFlow 2.21 calls a division by zero an internal error of its kernel; 1.15 an invalid argument.
    return theirs[0] in ours or theirs[0] == "InternalError"


OWN_GRADIENTS = ("cumprod", "clip_by_value")
"""At factors of 0 the gradient is the true one here, where TensorFlow gives 0; and at NaN it is that of 1.15."""

UNORDERED = ("sort", "argmax", "argmin", "nn.top_k", "maximum", "minimum", "reduce_max", "reduce_min")
"""What these make of NaN is not defined, and depends on the processor in TensorFlow."""


def _difference_when_run(call: dict[str, Any], ours: Any, theirs: Any, values: dict[int, Any]) -> str | None:
    if "error" in ours or "error" in theirs:
        if "error" not in theirs:
            return f"fails when it runs: {_said(ours)}"
        if "error" not in ours:
            return f"runs; TensorFlow raises {_said(theirs)}"
        same = _same_kind(ours["error"], theirs["error"])
        return None if same else f"raises {_said(ours)}; TensorFlow {_said(theirs)}"
    inputs = [values[number] for number in numbers_in([call["args"], call["options"]])]
    is_nan_given = any(x.dtype.kind in "fc" and np.isnan(x).any() for x in inputs)
    if is_nan_given and call["function"].startswith(UNORDERED):
        return None
    for number, mine, other in zip(call["results"], ours["values"], theirs["values"], strict=True):
        says = _unequal(decoded(mine), decoded(other), is_nan_given)
        if says is None and number in values:  # in the whole program it is computed in other ways
            says = _unequal(values[number], decoded(other), is_nan_given, loose=10.0)
        if says:
            return f"result {number}: {says}"
    if call["function"] in OWN_GRADIENTS and (is_nan_given or any((x == 0).any() for x in inputs)):
        return None
    return _difference_of_gradients(ours["gradients"], theirs["gradients"], is_nan_given)


def _difference_of_gradients(ours: Any, theirs: Any, is_nan_given: bool) -> str | None:
    failed = [isinstance(each, dict) for each in (ours, theirs)]
    if any(failed):
        if all(failed):
            return None
        return f"gradients: {_said(ours)}" if failed[0] else f"gradients: TensorFlow raises {_said(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        if (mine is None) != (other is None):
            return f"a gradient is {mine and 'there'}, TensorFlow's {other and 'there'}"
        if mine is not None:
            # Terms of a gradient may cancel out: what is left is as exact as they were.
            says = _unequal(decoded(mine), decoded(other), is_nan_given, loose=20.0, least=0.5)
            if says:
                return f"gradient: {says}"
    return None


def _unequal(
    mine: np.ndarray, other: np.ndarray, is_nan_given: bool, loose: float = 1.0, least: float = 1e-3
) -> str | None:
    """How two results differ. Where NaN comes in, tfray may let it out where TensorFlow makes a number of it."""
    if mine.dtype != other.dtype or mine.shape != other.shape:
        return f"{mine.dtype} {mine.shape}, TensorFlow {other.dtype} {other.shape}"
    if mine.dtype.kind not in "fc":
        return None if np.array_equal(mine, other) else f"{mine.tolist()!r:.150}, TensorFlow {other.tolist()!r:.150}"
    tolerance = loose * TOLERANCE[mine.dtype.name]
    finite = np.abs(other[np.isfinite(other)])
    scale = float(finite.max(initial=0)) if finite.size else 0.0
    with np.errstate(all="ignore"):
        close = np.isclose(mine, other, tolerance, tolerance * max(scale, least), equal_nan=True)
    close |= np.isinf(mine) & ~np.isfinite(other)  # at a pole, or at infinity, a limit may stand for NaN
    if is_nan_given:
        close |= np.isnan(mine)
    if close.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"at {list(place)} {mine[place]!r}, TensorFlow {other[place]!r}"


def main() -> None:
    """Print the differences of some seeds: ``python -m tests.support.differential.compare PYTHON FIRST LAST``."""
    python, first, last = sys.argv[1:]
    peer = Peer(python)
    count = 0
    for seed in range(int(first), int(last)):
        if seed % 500 == 0:
            print(f"# {seed} {time.strftime('%H:%M:%S')}", flush=True)
        for line in differences(seed, peer):
            count += 1
            print(line, flush=True)
    peer.close()
    print(f"TensorFlow ended at {UNANSWERED}" if UNANSWERED else "TensorFlow answered all")
    print(f"{count} differences in {int(last) - int(first)} programs")


if __name__ == "__main__":
    main()
