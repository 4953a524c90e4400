"""Kernels compiled for the CPU: they are kept, threads share them out, and their functions are precise."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.ops.kernels import compiling, element_loops
from tfray.ops.kernels.compiling import kernel_of_source
from tfray.ops.kernels.cpu_threads import core_count
from tfray.ops.kernels.element_loops import Assignment, Input, element_loop
from tfray.ops.state import updates

pytestmark = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")

PROGRAM = """
import json, sys
import numpy as np
import tfray as tf

x = np.linspace(-4, 4, 400_000, dtype=np.float32)
with tf.Session() as session:
    fed = tf.placeholder(tf.float32, x.shape)
    total = session.run(tf.reduce_sum(tf.exp(fed) * 0.5), {fed: x})
print(json.dumps([float(total), "numba" in sys.modules, "llvmlite" in sys.modules]))
"""


CALLS = """
import json
import numpy as np
from tfray.ops.kernels.compiling import kernel_of_source
from tfray.ops.kernels.cpu_threads import core_count

source = '''
def fill_and_copy(first: Int, last: Int, size: Int, x: Floats, zeros: Floats, out: Floats) -> None:
    for i in range(0, size, 16):
        store(zeros, i, fill(np.float32(0)))
    for i in range(0, size, last):  # which might be 0, for all that the compiler knows
        out[i] = x[i]
'''
x, zeros, out = (np.full(160_000, value, np.float32) for value in (1, 2, 3))
kernel_of_source(source, "fill_and_copy").run(1, 1, x.size, x, zeros, out)
print(json.dumps([float(zeros.max()), float(out.max())]))
"""


def run(cache, program=PROGRAM, **environment):
    """What a program prints. `PROGRAM`: a sum of exponentials, and whether it has imported numba and llvmlite."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=os.environ | {"XDG_CACHE_HOME": str(cache)} | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return json.loads(found.stdout)


def test_a_kernel_is_compiled_once_and_kept(tmp_path):
    total, *compiler = run(tmp_path)
    assert compiler == [True, True]
    kept = list((tmp_path / "tfray" / "kernels").iterdir())
    threads = 3 if core_count() > 1 else 0  # what helpers run, and what the thread runs that shares out
    assert [path.suffix for path in kept] == [".o"] * (2 + threads)  # the loop, and the sum
    assert run(tmp_path) == [total, False, True]
    again, *compiler = run(tmp_path, TFRAY_KERNELS="numpy")
    assert compiler == [False, False]
    assert again == pytest.approx(total, rel=1e-5)


@pytest.mark.slow
def test_loops_that_become_calls_of_the_c_library(tmp_path):
    assert [run(tmp_path, CALLS) for _ in range(2)] == [[0, 1]] * 2  # compiled, and then loaded without the compiler


@pytest.mark.slow
def test_a_cache_that_others_can_write_to_is_not_used(tmp_path):
    folder = tmp_path / "tfray" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    run(tmp_path)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "exact", "units"),
    [
        ("exp", np.exp, 2),
        ("log", np.log, 1),
        ("tanh", np.tanh, 5),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), 4),
        ("sqrt", np.sqrt, 0.5),
        ("rint", np.rint, 0),
    ],
)
def test_functions_are_precise(name, exact, units):
    kind = np.dtype(np.float32)
    loop = element_loop({"x": Input(kind)}, [Assignment("y", f"{name}({{0}})", ("x",), kind)], "y")
    edges = [0, -0.0, 1, -1, 1e-30, 1e30, 88.7, -87.3, 1e38, np.inf, -np.inf, np.nan]
    x = np.concatenate([np.linspace(-90, 90, 100_003), np.geomspace(1e-30, 1e30, 1001), edges]).astype(np.float32)
    y = np.empty_like(x)
    loop.run(x.size, 1 << 14, x, y)
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(np.float64))
        rounded = wanted.astype(np.float32)
        special = ~np.isfinite(rounded) | (np.abs(rounded) < np.finfo(np.float32).tiny)
        error = np.abs(y - wanted) / np.spacing(np.abs(rounded).astype(np.float32))
    assert np.max(error[~special]) <= units
    np.testing.assert_allclose(y[special], rounded[special], atol=1e-37)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 33, 1000])
def test_arithmetic_has_the_bits_of_numpy(dtype, size):
    random = np.random.default_rng(size)
    x, y = ((random.standard_normal(size) * 100).astype(dtype) for _ in range(2))
    kind = np.dtype(dtype)
    steps = [
        Assignment("product", "{0} * {1} - 3", ("x", "y"), kind),
        Assignment("is less", "({0} < {1}) & ~({0} == 2)", ("x", "y"), np.dtype(bool)),
        Assignment("chosen", "where({0}, maximum({1}, {2}), -{1})", ("is less", "product", "x"), kind),
    ]
    inputs = {"x": Input(kind), "y": Input(kind)}
    chosen, is_less = np.empty(size, dtype), np.empty(size, bool)
    element_loop(inputs, steps, ["chosen", "is less"]).run(size, 16, x, y, chosen, is_less)
    product = x * y - kind.type(3)
    np.testing.assert_array_equal(is_less, (x < y) & (x != 2))
    np.testing.assert_array_equal(chosen, np.where(is_less, np.maximum(product, x), -product))


def test_rows_and_columns():
    random = np.random.default_rng(0)
    x, row, column, scalar = (random.standard_normal(shape).astype(np.float32) for shape in ((37, 21), 21, 37, 1))
    kind = np.dtype(np.float32)
    forms = {"x": "whole", "row": "row", "column": "column", "scalar": "scalar"}
    step = Assignment("y", "({0} + {1}) * {2} - {3}", tuple(forms), kind)
    loop = element_loop({name: Input(kind, form) for name, form in forms.items()}, [step], ["y"])
    y = np.empty_like(x)
    loop.run(37, 5, 21, x, row, column, scalar, y)
    np.testing.assert_array_equal(y, (x + row) * column[:, None] - scalar)


@pytest.mark.parametrize("width", [None, 32, 21], ids=["elements", "rows of whole vectors", "rows"])
@pytest.mark.parametrize("offset", [0, 4], ids=["at a cache line", "elsewhere"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_what_is_written_past_the_caches_is_the_same(dtype, offset, width):
    kind, rows = np.dtype(dtype), 300
    shape = (rows * 40 + 3,) if width is None else (rows, width)
    random = np.random.default_rng(0)
    x, y = ((random.standard_normal(shape) * 100).astype(dtype) for _ in range(2))
    row = np.arange(width or 1).astype(dtype)
    steps = [
        Assignment("sum", "{0} + {1} * {2}", ("x", "y", "row"), kind),
        Assignment("is less", "{0} < {1}", ("x", "y"), np.dtype(bool)),
    ]
    inputs = {"x": Input(kind), "y": Input(kind), "row": Input(kind, "scalar" if width is None else "row")}
    loop = element_loop(inputs, steps, ["sum", "is less"], past_caches=True)
    memory = np.empty(x.size + 64, dtype)
    first = -memory.ctypes.data % 64 // kind.itemsize + offset
    total, is_less = memory[first : first + x.size].reshape(shape), np.empty(shape, bool)
    sizes = (x.size, 4096) if width is None else (rows, 16, width)
    loop.run(*sizes, x, y, row, total, is_less)
    np.testing.assert_array_equal(total, x + y * row)
    np.testing.assert_array_equal(is_less, x < y)


def test_every_item_is_computed_once_by_many_threads():
    header = "def count(first: Int, last: Int, seen: Ints) -> None:"
    source = f"{header}\n    for i in range(first, last):\n        seen[i] += 1\n"
    seen = np.zeros(100_001, np.int32)
    kernel_of_source(source, "count").run(seen.size, 7, seen)
    assert (seen == 1).all()


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    "optimizer",
    [
        tf.train.GradientDescentOptimizer(0.1),
        tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        tf.train.AdamOptimizer(),
        tf.train.AdagradOptimizer(0.1),
        tf.train.AdadeltaOptimizer(0.1),
        tf.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
        tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
        tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    ],
    ids=lambda optimizer: type(optimizer).__name__,
)
def test_updates_have_the_bits_of_numpy(optimizer, dtype, monkeypatch):
    """One pass over the memory of a variable and its slots, on a compiled loop or by NumPy."""
    random = np.random.default_rng(0)
    start, gradient = (random.standard_normal(50_001).astype(dtype.as_numpy_dtype) for _ in range(2))

    def trained():
        with tf.Graph().as_default(), tf.Session() as session:
            variable = tf.Variable(start)
            train = optimizer.apply_gradients([(tf.constant(gradient), variable)])
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            return session.run(tf.global_variables())

    compiled = trained()
    monkeypatch.setattr(updates, "LEAST_ELEMENTS", np.inf)
    for one, other in zip(compiled, trained(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_cannot_be_compiled_is_left_to_numpy():
    half, wide = np.dtype(np.float16), np.dtype(np.float64)
    assert element_loop({"x": Input(half)}, [Assignment("y", "{0} + {0}", ("x",), half)], "y") is None
    assert element_loop({"x": Input(wide)}, [Assignment("y", "exp({0})", ("x",), wide)], "y") is None
    assert element_loops.formula_loop(lambda xp, t, x: xp.power(x, x, out=x), wide, 1, 0) is None
