"""NVRTC takes what is written for a GPU's kernels, in every dtype. Their values: `tests/devices/test_one_gpu.py`."""

from __future__ import annotations

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import tfray as tf
from tests.support.gpu.nvrtc import Compiling, Missing, zeros
from tfray.ops.kernels.element_loops import Assignment
from tfray.ops.kernels.gpu.device_loops import DeviceLoop, Load, Section
from tfray.ops.kernels.gpu.device_random import draw_uniform
from tfray.ops.kernels.precision import working_dtype
from tfray.ops.kernels.random_streams import RandomStream
from tfray.ops.kernels.windows import WindowAttrs
from tfray.ops.nn import recurrent_ops
from tfray.ops.nn.device import device_kernels
from tfray.ops.nn.pooling import Pooling
from tfray.runtime.device_groups import update_section

pytestmark = pytest.mark.slow

DTYPES = [np.dtype(name) for name in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]


@pytest.fixture(scope="module")
def xp():
    try:
        return Compiling()
    except Missing as missing:
        pytest.skip(str(missing))


def run(xp, *sections):
    """Launch a kernel on arrays and numbers of the dtypes that it names."""
    loop = sections[0] if isinstance(sections[0], DeviceLoop) else DeviceLoop(sections)
    declared = f"{loop._in}, {loop._out}".split(", ")
    dtype_of = {text.split()[-1]: np.dtype(text.split()[-2]) for text in declared}
    arrays = [zeros((2, 3), dtype_of[f"in{i}"]) for i in range(len(loop.inputs))]
    numbers = [f"raw {array.dtype} in{i}" not in declared for i, array in enumerate(arrays)]
    arrays = [array[0, 0] if is_number else array for array, is_number in zip(arrays, numbers, strict=True)]
    loop(xp, *arrays, *(zeros(6, dtype_of[f"out{i}"]) for i in range(len(loop.outputs))))


@pytest.mark.parametrize("width", [3, 8])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_of_every_form(xp, dtype, width):
    loads = [Load(form, dtype, form, width) for form in ("whole", "row", "column", "scalar", "number")]
    loads += [Load("other", working_dtype(dtype)), Load("count", np.dtype(np.int64)), Load("flag", np.dtype(bool))]
    kinds = {"float": np.float32, "double": np.float64, "int": np.int32, "bool": bool}
    assignments = [
        Assignment("sum", "maximum({0}, 0) + {1} * exp(-{2}) / {3}", ("whole", "row", "column", "scalar"), dtype),
        Assignment("mixed", "where({0} > {1}, {0}, power({1}, 2))", ("sum", "other"), dtype),
        Assignment("scaled", "{0} * {1}", ("mixed", "number"), dtype),
        *(Assignment(f"to {name}", "convert({0})", ("scaled",), np.dtype(kind)) for name, kind in kinds.items()),
    ]
    converted = ("whole", "other", "count", "flag", "to float", "to double", "to int")
    assignments += [Assignment(f"from {name}", "convert({0})", (name,), dtype) for name in converted]
    stored = tuple((assignment.target, assignment.target) for assignment in assignments)
    copied = Section(6, (loads[0],), (), (("whole", "copy"),))
    run(xp, Section(2 * width, tuple(loads), tuple(assignments), stored), copied)
    assert (" = load" in xp.sources[-1]) == (width == 8)


def test_halves_that_no_array_of_the_kernel_has(xp):
    names = [("a", np.float32), ("b", np.float16), ("c", ml_dtypes.bfloat16), ("d", np.float32)]
    assignments = tuple(
        Assignment(name, "convert({0})", (before,), np.dtype(kind)) for (before, _), (name, kind) in pairwise(names)
    )
    run(xp, Section(6, (Load("a", np.dtype(np.float32)),), assignments, (("d", "d"),)))


@pytest.mark.parametrize("columns", [3, 16])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows(xp, dtype, columns):
    x, y, losses = zeros((4, columns), dtype), zeros((4, columns), dtype), zeros(4, dtype)
    for is_log in (False, True):
        device_kernels.softmax(xp, x, y, is_log=is_log)
        device_kernels.softmax_gradient(xp, x, x, y, is_log=is_log)
    device_kernels.cross_entropy(xp, x, x, losses, y)
    device_kernels.sparse_cross_entropy(xp, x, zeros(4, np.int64), losses, y)


@pytest.mark.parametrize(("layout", "channels"), [("NHWC", 6), ("NHWC", 8), ("NCHW", 6)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_images(xp, dtype, layout, channels):
    pool = Pooling(layout, 2, channels, *WindowAttrs(layout, (2, 2), (1, 1), ("SAME", "SAME")).axes((6, 6), (3, 3)))
    x, vector = zeros(pool.images_shape, dtype), zeros(channels, working_dtype(dtype))
    made = zeros(pool.outputs_shape, dtype)
    device_kernels.max_pool(xp, x, pool, made)
    device_kernels.max_pool_gradient(xp, x, made, made, pool, x)
    device_kernels.channel_moments(xp, x, layout)
    device_kernels.add_bias(xp, x, vector.astype(dtype), layout, rectified=True)
    device_kernels.normalized(xp, x, [vector] * 4, layout, 1e-3, 4)
    device_kernels.normalization_gradient(xp, x, x, [vector] * 3, layout, 1e-3, True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_recurrent_cells(xp, dtype):
    for loop in (recurrent_ops._gates_loop(6, 3, dtype, 1.0), recurrent_ops._gates_grad_loop(6, 3, dtype)):
        run(xp, loop)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_uniform_numbers(xp, dtype):
    draw_uniform(xp, RandomStream(1, 2), zeros(9, dtype), 1.0, 0.0)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32], ids=lambda dtype: dtype.name)
def test_updates(xp, dtype):
    with tf.Graph().as_default() as graph:
        variables = [tf.Variable(np.zeros(shape, dtype.as_numpy_dtype)) for shape in ((3, 4), (4,))]
        tf.train.AdamOptimizer().minimize(tf.add_n([tf.reduce_sum(v * v) for v in variables]))
    updates = [op for op in graph.get_operations() if op.type == "ApplyAdam"]
    run(xp, *(update_section(op, op.op_def.kernel_for("GPU"), number) for number, op in enumerate(updates)))
