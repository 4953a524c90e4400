"""Convolutions by cuDNN, against the same in float64 on a CPU, for shapes of every kind.

On a machine with a GPU and cuDNN these run on both. Elsewhere
``tests/support/gpu/check.sh tests tests/devices/test_cudnn.py`` runs them on a stand-in for each. That for cuDNN proves
layouts, strides, paddings, alignment and workspaces, as its C interface describes them; nothing about its engines.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.gpu.fakecudnn import ENGINES, FakeCudnn
from tfray.framework.op_def import Array
from tfray.ops.kernels import compiling
from tfray.ops.kernels.gpu import cudnn
from tfray.ops.kernels.gpu.device_products import TF32_VARIABLE
from tfray.ops.kernels.windows import WindowAttrs
from tfray.ops.nn import convolution
from tfray.ops.nn.conv_geometry import geometry
from tfray.ops.nn.device import device_convolution
from tfray.runtime.device import cupy, gpu_count

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_count(), reason="needs a GPU")]

is_real = gpu_count() > 0 and cupy().cuda.runtime.getDeviceProperties(0)["name"] != b"pretended GPU"
FORMS = ("forward", "images", "filters")
TOLERANCE = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """The stand-in for cuDNN, with nothing measured yet."""
    if is_real:
        pytest.skip("the stand-in computes in the host's memory")
    functions = FakeCudnn()
    library = cudnn.Library(functions)
    for module in (cudnn, device_convolution):
        monkeypatch.setattr(module, "library", lambda: library)
    monkeypatch.setattr(compiling, "_folder", lambda: tmp_path)
    for name in ("_found", "_chosen"):
        monkeypatch.setattr(device_convolution, name, {})
    return functions


@pytest.fixture
def library(request):
    """cuDNN where it is installed on a machine with a GPU, else its stand-in."""
    if not is_real:
        return request.getfixturevalue("fake")
    return cudnn.library() or pytest.skip("cuDNN is not installed")


def arrays_of(geo, dtype):
    random = np.random.default_rng(0)
    filters_shape = geo.height.window, geo.width.window, geo.channels, geo.filters
    return [
        (random.integers(-8, 9, shape) / 4).astype(tf.as_dtype(dtype).numpy)
        for shape in (geo.images_shape, filters_shape, geo.outputs_shape)
    ]


def computed(xp, form, geo, arrays) -> Array:
    images, filters, d_outputs = arrays
    if form == "forward":
        return convolution.convolve(xp, images, filters, geo)
    if form == "images":
        return convolution.convolve_backward_images(xp, d_outputs, filters, geo)
    return convolution.convolve_backward_filters(xp, images, d_outputs, geo)


def check(form, geo, dtype="float32"):
    xp = cupy()
    arrays = arrays_of(geo, dtype)
    on_device = [xp.asarray(array) for array in arrays]
    assert device_convolution.can_convolve(xp, form, geo, *on_device[:1])
    found = computed(xp, form, geo, on_device).get()
    expected = computed(np, form, geo, [array.astype(np.float64) for array in arrays])
    assert found.dtype == arrays[0].dtype
    scale = max(np.abs(expected).max(), 1)
    np.testing.assert_allclose(found.astype(np.float64) / scale, expected / scale, atol=TOLERANCE[dtype])


CASES = {
    "same": ((4, 9, 8, 16), (3, 3, 16, 24), (1, 1), (1, 1), ("SAME", "SAME")),
    "valid": ((4, 9, 8, 16), (3, 2, 16, 24), (1, 1), (1, 1), ("VALID", "VALID")),
    "pointwise": ((4, 9, 8, 16), (1, 1, 16, 24), (1, 1), (1, 1), ("VALID", "SAME")),
    "strided, more padding behind": ((4, 14, 10, 16), (3, 5, 16, 8), (2, 2), (1, 1), ("SAME", "SAME")),
    "strided, pixels that no window sees": ((2, 12, 11, 8), (3, 3, 8, 8), (4, 3), (1, 1), ("VALID", "VALID")),
    "a stem": ((2, 45, 45, 3), (11, 11, 3, 16), (4, 4), (1, 1), ("VALID", "SAME")),
    "dilated": ((2, 13, 14, 8), (3, 3, 8, 8), (1, 1), (2, 3), ("SAME", "VALID")),
    "more padding in front": ((2, 9, 9, 8), (3, 3, 8, 8), (1, 1), (1, 1), ((2, 0), (1, 0))),
    "more padding in front, strided": ((2, 9, 12, 8), (3, 4, 8, 8), (2, 3), (1, 1), ((2, 1), (3, 1))),
    "odd channels": ((2, 7, 7, 5), (3, 3, 5, 7), (1, 1), (1, 1), ("SAME", "SAME")),
}


def geometry_of(case, layout="NHWC"):
    images, filters, strides, dilations, paddings = CASES[case]
    attrs = WindowAttrs(layout, strides, dilations, paddings)
    shape = images if layout == "NHWC" else (images[0], images[3], *images[1:3])
    return geometry(shape, filters, attrs)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_equals_what_numpy_computes(library, form, case, layout):
    check(form, geometry_of(case, layout))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("form", FORMS)
def test_each_dtype(library, form, dtype):
    check(form, geometry_of("strided, more padding behind"), dtype)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_paddings_become_the_same_on_each_side(data):
    window, stride, dilation = (data.draw(st.integers(1, 4)) for _ in range(3))
    size = data.draw(st.integers(1, 12))
    padding = data.draw(st.sampled_from(["SAME", "VALID"]) | st.tuples(st.integers(0, 5), st.integers(0, 5)))
    extent = (window - 1) * dilation + 1
    pads = (0, 0) if isinstance(padding, str) else padding
    if padding != "SAME" and size + sum(pads) < extent:
        return
    geo = geometry(
        (1, size, 1, 1), (window, 1, 1, 1), WindowAttrs("NHWC", (stride, 1), (dilation, 1), (padding, "VALID"))
    )
    padded = device_convolution._padded(geo)
    axis = padded.height
    assert (axis.size + 2 * axis.before - axis.extent) // axis.stride + 1 == geo.height.steps
    pixels = np.arange(1.0, size + 1)
    wide = np.zeros(padded.images_shape)
    device_convolution._own(wide, geo, padded)[...] = pixels.reshape(1, -1, 1, 1)
    for axis, values in ((geo.height, pixels), (padded.height, wide[0, :, 0, 0])):
        around = np.pad(values, (axis.before, 60))
        windows = [around[i * stride : i * stride + extent : dilation] for i in range(axis.steps)]
        if values is pixels:
            expected = windows
    np.testing.assert_array_equal(windows, expected)


def test_arrays_that_do_not_begin_at_a_multiple_of_16_bytes_are_copied(library):
    xp, geo = cupy(), geometry_of("same")
    images, filters, _ = arrays_of(geo, "float32")
    shifted = xp.zeros(images.size + 1, xp.float32)[1:].reshape(images.shape)
    shifted[...] = xp.asarray(images)
    out = xp.zeros(int(np.prod(geo.outputs_shape)) + 1, xp.float32)[1:].reshape(geo.outputs_shape)
    convolution.convolve(xp, shifted, xp.asarray(filters), geo, out)
    expected = computed(np, "forward", geo, [images.astype(np.float64), filters.astype(np.float64), None])
    np.testing.assert_allclose(out.get(), expected, atol=1e-4)


@pytest.mark.parametrize("allowed", ["0", "1"])
def test_float32_is_rounded_only_where_that_is_allowed(fake, monkeypatch, allowed):
    monkeypatch.setenv(TF32_VARIABLE, allowed)
    monkeypatch.setattr(device_convolution, "_duration_s", lambda xp, plan, arrays: 0.0)  # the first engine wins
    xp, geo = cupy(), geometry_of("same")
    images = xp.full(geo.images_shape, 1 + 2.0**-20, xp.float32)
    filters = xp.ones((3, 3, geo.channels, geo.filters), xp.float32)
    pixel = float(convolution.convolve(xp, images, filters, geo)[0, 4, 4, 0])
    assert pixel == 9 * geo.channels * (1 if allowed == "1" else 1 + 2.0**-20)


def test_engines_that_change_results_or_compile_are_never_run(fake):
    for form in FORMS:
        check(form, geometry_of("same"), "bfloat16")
    engines = {engine for _, engine in fake.executed}
    assert engines == set(ENGINES[2:])


def test_the_choice_is_measured_once_and_kept_for_later_processes(fake, monkeypatch, tmp_path):
    geo = geometry_of("same")
    measured = []

    def duration(xp, plan, arrays):
        measured.append(plan)
        return -float(len(measured))  # the last is the fastest

    monkeypatch.setattr(device_convolution, "_duration_s", duration)
    check("forward", geo)
    check("forward", geo)
    assert len(measured) == 2  # the exact engines, once
    chosen = fake.executed[-1]
    for name in ("_found", "_chosen"):
        monkeypatch.setattr(device_convolution, name, {})
    check("forward", geo)
    assert (len(measured), fake.executed[-1]) == (2, chosen)
    assert len(list(tmp_path.glob("convolution-*.txt"))) == 1


def test_descriptors_go_with_what_holds_them(fake):
    check("forward", geometry_of("same"))
    assert fake.alive
    device_convolution._found.clear()
    device_convolution._chosen.clear()
    gc.collect()
    assert not fake.alive


def test_a_training_step_equals_the_one_on_a_cpu(library):
    images = np.random.default_rng(0).normal(size=(4, 12, 12, 3)).astype(np.float32)
    found = {}
    for device in ("/cpu:0", "/gpu:0"):
        with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
            tf.set_random_seed(1)
            filters = tf.Variable(tf.constant(np.random.default_rng(1).normal(size=(3, 3, 3, 8)).astype(np.float32)))
            loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.nn.conv2d(tf.constant(images), filters, 2, "SAME"))))
            step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(step)
            found[device] = session.run([loss, filters])
    for on_cpu, on_gpu in zip(*found.values(), strict=True):
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-4, atol=1e-5)
