"""Convolutions by oneDNN: against the same in float64, which NumPy computes, for shapes of every kind."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.processes import PATIENCE_S
from tfray.ops.kernels import compiling, cpu_threads
from tfray.ops.kernels.native import onednn
from tfray.ops.kernels.windows import WindowAttrs
from tfray.ops.nn import convolution, fast_convolution
from tfray.ops.nn.conv_geometry import geometry
from tfray.ops.nn.depthwise_conv_ops import convolve_depthwise, depthwise_backward_filters, depthwise_backward_images

pytestmark = pytest.mark.skipif(onednn.library() is None, reason="the extra `fast` is not installed")

DENSE = convolution.convolve, convolution.convolve_backward_images, convolution.convolve_backward_filters
DEPTHWISE = convolve_depthwise, depthwise_backward_images, depthwise_backward_filters

FORMS = ["forward", "images", "filters"]


def computed(form, geo, images, filters, d_outputs):
    arguments = {"forward": (images, filters), "images": (d_outputs, filters), "filters": (images, d_outputs)}
    functions = DENSE if geo.groups == 1 else DEPTHWISE
    return functions[FORMS.index(form)](np, *arguments[form], geo)


def depthwise(geo):
    """The same with as many filters for each channel as there were for all."""
    return geo._replace(filters=geo.channels * geo.filters, groups=geo.channels)


def arrays_of(geo, dtype=np.float32):
    random = np.random.default_rng(0)
    filters_shape = geo.height.window, geo.width.window, geo.channels, geo.filters // geo.groups
    return [
        random.integers(-3, 4, shape).astype(dtype) for shape in (geo.images_shape, filters_shape, geo.outputs_shape)
    ]


def check(form, geo):
    arrays = arrays_of(geo)
    expected = computed(form, geo, *(array.astype(np.float64) for array in arrays))
    np.testing.assert_allclose(computed(form, geo, *arrays), expected, rtol=1e-5, atol=1e-4)


def check_biased(geo, rectified):
    images, filters, _ = arrays_of(geo)
    bias = np.random.default_rng(1).normal(size=geo.filters).astype(np.float32)
    found = convolution.convolve_biased(np, images, filters, bias, geo, rectified=rectified)
    expected = computed("forward", geo, images.astype(np.float64), filters.astype(np.float64), None) + bias
    np.testing.assert_allclose(found, np.maximum(expected, 0) if rectified else expected, rtol=1e-5, atol=1e-4)


CASES = {
    "parts of images": ((8, 30, 30, 16), (3, 3, 16, 40), WindowAttrs("NHWC", (1, 1), (1, 1), ("SAME", "SAME"))),
    "parts of two sizes": ((7, 30, 30, 16), (3, 3, 16, 40), WindowAttrs("NHWC", (1, 1), (1, 1), ("SAME", "SAME"))),
    "parts of rows": ((1, 60, 50, 16), (5, 5, 16, 40), WindowAttrs("NHWC", (1, 1), (1, 1), ("SAME", "SAME"))),
    "rows, strided": ((2, 121, 90, 8), (5, 5, 8, 60), WindowAttrs("NHWC", (2, 2), (1, 1), ("VALID", "SAME"))),
    "rows, dilated": ((1, 60, 50, 16), (3, 3, 16, 99), WindowAttrs("NHWC", (1, 1), (4, 3), ("SAME", "SAME"))),
    "windows in the padding": ((1, 60, 50, 16), (3, 3, 16, 50), WindowAttrs("NHWC", (1, 1), (1, 1), ((9, 9), (9, 9)))),
    "a pixel, padded": ((3, 2, 1, 8), (1, 1, 8, 1), WindowAttrs("NHWC", (1, 1), (1, 1), ((0, 2), (1, 1)))),
    "filters copied in parts": (
        (4, 17, 17, 96),
        (3, 3, 96, 208),
        WindowAttrs("NHWC", (1, 1), (1, 1), ("SAME", "SAME")),
    ),
    "few channels": ((32, 28, 28, 6), (5, 5, 6, 16), WindowAttrs("NHWC", (1, 1), (1, 1), ("VALID", "SAME"))),
    "a large image of few channels": (
        (1, 160, 160, 3),
        (3, 3, 3, 32),
        WindowAttrs("NHWC", (1, 1), (1, 1), ("SAME", "SAME")),
    ),
    "a stem": ((4, 101, 101, 3), (11, 11, 3, 64), WindowAttrs("NHWC", (4, 4), (1, 1), ("VALID", "VALID"))),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_equals_what_numpy_computes(form, case):
    geo = geometry(*CASES[case])
    check(form, geo)
    if form == "forward" and "padd" not in case:
        assert len(fast_convolution._parts(form, geo)) > 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("channels", "filters"), [(600, 128), (130, 520), (263, 311)])
def test_where_the_filters_are_larger_than_the_images_some_channels_are_made_at_a_time(form, channels, filters):
    shape = (3, 3, channels, filters)
    geo = geometry((4, 5, 4, channels), shape, WindowAttrs("NHWC", (1, 1), (1, 1), ("SAME", "SAME")))
    parts = fast_convolution._parts(form, geo)
    assert len(parts) > 1
    assert [part.made.start for part in parts[1:]] == [part.made.stop for part in parts[:-1]]
    assert (parts[0].made.start, parts[-1].made.stop) == (0, channels if form == "images" else filters)
    check(form, geo)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), form=st.sampled_from([*FORMS, "biased"]))
def test_some_channels_at_a_time_for_any_small_images(data, form):
    """Down to images of one pixel, and windows of the image's size, as fully connected layers have them."""

    def draw(least, most):
        return data.draw(st.integers(least, most))

    window = draw(1, 3), draw(1, 3)
    sizes = [side + data.draw(st.sampled_from([0, 0, 1, 2])) for side in window]
    channels, filters = draw(100, 400), draw(100, 400)
    padding = data.draw(st.sampled_from(["VALID", "SAME"]))
    attrs = WindowAttrs("NHWC", (1, 1), (1, 1), (padding, padding))
    geo = geometry((draw(1, 2), *sizes, channels), (*window, channels, filters), attrs)
    if form == "biased":
        check_biased(geo, rectified=data.draw(st.booleans()))
    else:
        check(form, geo)


@pytest.mark.parametrize("form", FORMS)
def test_a_fully_connected_layer_of_one_example(form):
    geo = geometry((1, 5, 5, 64), (5, 5, 64, 1024), WindowAttrs("NHWC", (1, 1), (1, 1), ("VALID", "VALID")))
    assert len(fast_convolution._parts(form, geo)) > 1 or form == "images"
    check(form, geo)
    check_biased(geo, rectified=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pointwise_convolutions_with_large_filters_are_products(dtype):
    geo = geometry((2, 3, 2, 260), (1, 1, 260, 310), WindowAttrs("NHWC", (1, 1), (1, 1), ("SAME", "VALID")))
    images, filters, d_outputs = arrays_of(geo, dtype)
    pixels, matrix, d_pixels = images.reshape(12, 260), filters[0, 0], d_outputs.reshape(12, 310)
    bias = np.random.default_rng(1).normal(size=310).astype(dtype)
    assert convolution._is_product(np, geo, images, filters)
    np.testing.assert_array_equal(computed("forward", geo, images, filters, None).reshape(12, 310), pixels @ matrix)
    np.testing.assert_array_equal(
        computed("images", geo, None, filters, d_outputs).reshape(12, 260), d_pixels @ matrix.T
    )
    np.testing.assert_array_equal(computed("filters", geo, images, None, d_outputs)[0, 0], pixels.T @ d_pixels)
    found = convolution.convolve_biased(np, images, filters, bias, geo, rectified=True)
    np.testing.assert_allclose(found.reshape(12, 310), np.maximum(pixels @ matrix + bias, 0), rtol=1e-5)


@pytest.mark.parametrize("rectified", [False, True])
def test_a_bias_goes_to_the_channels_of_its_part(rectified):
    geo = geometry((2, 3, 3, 500), (3, 3, 500, 200), WindowAttrs("NHWC", (2, 2), (1, 1), ("SAME", "SAME")))
    assert len(fast_convolution._parts("biased", geo)) > 1
    check_biased(geo, rectified)


def test_rectified_outputs_keep_nan():
    geo = geometry(*CASES["parts of two sizes"])
    images, filters, _ = arrays_of(geo)
    images[2, 10, 10, 3] = np.nan
    bias = np.zeros(40, np.float32)
    plain = convolution.convolve_biased(np, images, filters, bias, geo, rectified=False)
    found = convolution.convolve_biased(np, images, filters, bias, geo, rectified=True)
    assert np.isnan(plain).sum() == 9 * 40
    np.testing.assert_array_equal(found, np.where(plain < 0, np.float32(0), plain))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("images", [(9, 40, 40, 64), (1, 80, 90, 64)])
def test_large_depthwise_convolutions_equal_what_numpy_computes(form, images):
    attrs = WindowAttrs("NHWC", (2, 1), (1, 1), ("SAME", "VALID"))
    check(form, depthwise(geometry(images, (5, 3, 64, 2), attrs)))


@settings(max_examples=150, deadline=None)
@given(data=st.data(), form=st.sampled_from(FORMS))
def test_equals_what_numpy_computes_for_any_shape(data, form):
    def draw(least, most):
        return data.draw(st.integers(least, most))

    padding = st.sampled_from(["SAME", "VALID", (0, 2), (3, 1)])
    window, dilation = (draw(1, 4), draw(1, 4)), (draw(1, 2), draw(1, 2))
    sizes = [(w - 1) * d + draw(1, 9) for w, d in zip(window, dilation, strict=True)]
    channels, filters = draw(1, 20), draw(1, 20)
    attrs = WindowAttrs("NHWC", (draw(1, 3), draw(1, 3)), dilation, (data.draw(padding), data.draw(padding)))
    geo = geometry((draw(0, 3), *sizes, channels), (*window, channels, filters), attrs)
    check(form, geo)
    if channels > 1:
        check(form, depthwise(geo))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_the_number_of_threads_changes_no_bit(form, case, monkeypatch):
    geo = geometry(*CASES[case])
    arrays = [array + np.float32(0.1) for array in arrays_of(geo)]
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(cpu_threads, "thread_count", lambda threads=threads: threads)
        monkeypatch.setattr(compiling, "free_helpers", lambda threads=threads: threads - 1 or None)
        results.append(computed(form, geo, *arrays))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_reads_and_writes_arrays_that_are_not_contiguous():
    geo = geometry(*CASES["a stem"])
    images, filters, _ = arrays_of(geo)
    expected = convolution.convolve(np, images, filters, geo)
    wide = np.zeros((*images.shape[:-1], 6), np.float32)
    wide[..., ::2] = images
    out = np.zeros((*expected.shape[:-1], 2 * geo.filters), np.float32)
    result = convolution.convolve(np, wide[..., ::2], np.asfortranarray(filters), geo, out[..., ::2])
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(out[..., 1::2], 0)


PROGRAM = "from tfray.ops.kernels.native import onednn; print(onednn.library())"


def printed(**variables):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return ran.stdout.strip(), ran.stderr


def test_a_variable_turns_it_off():
    assert printed(TFRAY_KERNELS="numpy") == ("None", "")


def test_a_library_that_cannot_be_loaded_is_told_once(monkeypatch):
    """Without libgomp, as on small images of systems."""
    load = onednn.ctypes.CDLL

    def without_libgomp(name, *arguments):
        if "gomp" in str(name):
            raise OSError(f"{name}: cannot open shared object file")
        return load(name, *arguments)

    monkeypatch.setattr(onednn.ctypes, "CDLL", without_libgomp)
    with pytest.warns(UserWarning, match=r"NumPy computes instead.*libgomp.so.1: cannot open"):
        assert onednn.library.__wrapped__() is None
