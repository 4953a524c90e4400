"""Pooling by oneDNN: against plain loops over windows, for shapes of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfray.ops.kernels import cpu_threads
from tfray.ops.kernels.native import onednn
from tfray.ops.kernels.windows import window_axis
from tfray.ops.nn import fast_pooling
from tfray.ops.nn.pooling import Pooling

pytestmark = pytest.mark.skipif(onednn.library() is None, reason="the extra `fast` is not installed")


def windows_of(pool):
    """Each window: its position among the outputs, and its pixels among those of an image."""
    for y in range(pool.height.steps):
        for x in range(pool.width.steps):
            rows, columns = (
                slice(max(0, step * axis.stride - axis.before), step * axis.stride - axis.before + axis.window)
                for step, axis in ((y, pool.height), (x, pool.width))
            )
            yield (slice(None), y, x), (slice(None), rows, columns)


def expected(kind, images, d_outputs, pool):
    """Outputs, and the gradient of the images."""
    outputs, d_images = np.zeros(pool.outputs_shape), np.zeros(pool.images_shape)
    for place, pixels in windows_of(pool):
        window = images[pixels].astype(np.float64)
        flat = window.reshape(len(window), -1, window.shape[-1])
        outputs[place] = flat.max(axis=1) if kind == "max" else flat.mean(axis=1)
        shares = np.full(flat.shape, 1 / flat.shape[1])
        if kind == "max":
            shares = np.arange(flat.shape[1])[None, :, None] == flat.argmax(axis=1)[:, None]
        d_images[pixels] += (shares * d_outputs[place][:, None]).reshape(window.shape)
    return outputs, d_images


def check(kind, pool):
    random = np.random.default_rng(0)
    images = random.integers(-5, 6, pool.images_shape).astype(np.float32)  # many of them are equal
    d_outputs = random.integers(-5, 6, pool.outputs_shape).astype(np.float32)
    assert fast_pooling.can_pool(np, kind, pool, images)
    outputs, d_images = expected(kind, images, d_outputs, pool)
    result = fast_pooling.pooled(kind, images, pool, np.empty(pool.outputs_shape, np.float32))
    np.testing.assert_allclose(result, outputs, rtol=1e-6, atol=1e-6)
    result = fast_pooling.pooled_backward(kind, images, d_outputs, pool, np.empty(pool.images_shape, np.float32))
    np.testing.assert_allclose(result, d_images, rtol=1e-5, atol=1e-5)
    if kind == "max" and fast_pooling.can_note(pool):
        places, noted = np.empty(pool.outputs_shape, np.uint8), np.empty(pool.outputs_shape, np.float32)
        np.testing.assert_array_equal(fast_pooling.pooled(kind, images, pool, noted, places), noted)
        np.testing.assert_allclose(noted, outputs, rtol=1e-6, atol=1e-6)
        nothing, out = np.zeros_like(images), np.empty(pool.images_shape, np.float32)
        by_notes = fast_pooling.pooled_backward(kind, nothing, d_outputs, pool, out, places)
        np.testing.assert_array_equal(by_notes, result)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["max", "mean"]))
def test_equals_loops_over_windows(data, kind):
    def axis():
        window = data.draw(st.integers(1, 4))
        size, stride = window + data.draw(st.integers(0, 7)), data.draw(st.integers(1, 3))
        return window_axis(size, window, stride, 1, data.draw(st.sampled_from(["SAME", "VALID"])))

    check(kind, Pooling("NHWC", data.draw(st.integers(1, 3)), data.draw(st.integers(1, 20)), axis(), axis()))


LARGE = Pooling("NHWC", 9, 64, window_axis(60, 3, 2, 1, "SAME"), window_axis(50, 3, 2, 1, "SAME"))


@pytest.mark.parametrize("kind", ["max", "mean"])
def test_large_images_are_pooled_in_parts(kind):
    assert len(fast_pooling._parts(LARGE)) > 1
    check(kind, LARGE)


def test_a_byte_notes_where_a_maximum_was_unless_windows_are_large():
    small, large = window_axis(40, 15, 2, 1, "SAME"), window_axis(40, 18, 2, 1, "SAME")
    assert fast_pooling.can_note(LARGE) and fast_pooling.can_note(Pooling("NHWC", 2, 5, small, small))
    assert not fast_pooling.can_note(Pooling("NHWC", 2, 5, large, large))


@pytest.mark.parametrize("kind", ["max", "mean"])
def test_the_number_of_threads_changes_no_bit(kind, monkeypatch):
    random = np.random.default_rng(0)
    images, d_outputs = (
        random.normal(size=shape).astype(np.float32) for shape in (LARGE.images_shape, LARGE.outputs_shape)
    )
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(cpu_threads, "thread_count", lambda threads=threads: threads)
        results.append(
            [
                fast_pooling.pooled(kind, images, LARGE, np.empty_like(d_outputs)),
                fast_pooling.pooled_backward(kind, images, d_outputs, LARGE, np.empty_like(images)),
            ]
        )
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_reads_and_writes_arrays_that_are_not_contiguous():
    images = np.random.default_rng(0).normal(size=(9, 60, 50, 128)).astype(np.float32)[..., ::2]
    out = np.zeros((*LARGE.outputs_shape[:-1], 128), np.float32)
    fast_pooling.pooled("max", images, LARGE, out[..., ::2])
    np.testing.assert_array_equal(out[..., 1::2], 0)
    np.testing.assert_array_equal(out[..., ::2], expected("max", images, out[..., ::2], LARGE)[0].astype(np.float32))
