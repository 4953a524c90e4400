#!/usr/bin/env python
"""Write ``tests/golden/values.npz`` and ``tests/golden/empty.npz``: what TensorFlow computes for calls.

They are those in ``tests/support/cases/golden_cases.py``, and with tensors without elements those in
``tests/support/cases/empty_cases.py``. Run it with an interpreter that has TensorFlow; tfray itself is not needed. It
writes the files that it is told, all of them by default:

    /path/to/python scripts/golden.py [values] [empty]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.cases.empty_cases import EMPTY_CASES  # noqa: E402
from tests.support.cases.golden_cases import CASES, Case  # noqa: E402

FILES = {"values": CASES, "empty": EMPTY_CASES}


def evaluate(case: Case) -> list[np.ndarray]:
    """Results, then gradients with respect to the float inputs."""
    with tf.Graph().as_default(), tf.Session() as session:
        arrays = case.arrays()
        tensors = [tf.placeholder(array.dtype, array.shape) for array in arrays]
        results = case.call(tf, *tensors)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        feeds = dict(zip(tensors, arrays, strict=True))
        fetches = list(results)
        sources = [tensor for tensor in tensors if tensor.dtype.is_floating]
        targets = [tensor for tensor in results if tensor.dtype.is_floating]
        if case.gradient and sources and targets:
            # Weights tell the elements of a result apart.
            weighted = [tf.reduce_sum(tf.cos(tf.cast(t, tf.float64))) for t in targets]
            for source, gradient in zip(sources, tf.gradients(weighted, sources), strict=True):
                fetches.append(tf.zeros_like(source) if gradient is None else tf.convert_to_tensor(gradient))
        return session.run(fetches, feeds)


def write(name: str, cases: list[Case]) -> None:
    """Write one file, with the results of its calls; none if a call fails."""
    values, failures = {}, 0
    for case in cases:
        try:
            results = evaluate(case)
        except (AttributeError, TypeError, ValueError, LookupError, tf.errors.OpError) as error:
            failures += 1
            print(f"{case.name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        for index, value in enumerate(results):
            values[f"{case.name}/{index}"] = np.asarray(value)
    if failures:
        sys.exit(f"{failures} calls failed; {name}.npz was not written")
    path = ROOT / "tests" / "golden" / f"{name}.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, **values)
    print(f"{len(cases)} calls, {len(values)} arrays, {path.stat().st_size} bytes in {path}")


def main() -> None:
    """Write the files."""
    tf.disable_eager_execution()
    for name in sys.argv[1:] or FILES:
        write(name, FILES[name])


if __name__ == "__main__":
    main()
