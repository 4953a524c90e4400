"""Arrays of any memory layout are copied, by compiled kernels or in blocks, as by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tfray.ops.kernels import compiling, copies
from tfray.runtime import fusion

COMPILES = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")


@pytest.fixture(params=[pytest.param(True, marks=COMPILES), False], ids=["compiled", "numpy"])
def _compiled(request, monkeypatch):
    monkeypatch.setattr(copies, "can_compile", lambda: request.param)
    copies._way.cache_clear()
    yield
    copies._way.cache_clear()


@st.composite
def layouts(draw):
    """A source, and memory with the view of it to fill: transposed parts of larger arrays; the source may repeat."""
    rank = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 15, 16, 17, 40, 65]), min_size=rank, max_size=rank))
    sizes[draw(st.integers(0, rank - 1))] *= -(-(1 << 14) // int(np.prod(sizes)))  # enough elements
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int16, np.complex64, np.complex128, np.bool_]))

    def array():
        order = draw(st.permutations(range(rank)))
        shape = [sizes[axis] + draw(st.sampled_from([0, 0, 1])) for axis in order]
        memory = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
        steps = [draw(st.sampled_from([1, 1, 1, -1])) for _ in sizes]
        index = tuple(slice(size) for size in sizes)
        flips = tuple(slice(None, None, step) for step in steps)
        return memory, lambda memory: memory.transpose(np.argsort(order))[index][flips]

    memory, view = array()
    source = view(memory)
    if draw(st.booleans()):
        source = source[:1]
    return source, *array()


@pytest.mark.usefixtures("threads", "_compiled")
@given(layouts())
@settings(max_examples=60, deadline=None)
def test_copies_between_memory_layouts(arrays):
    source, memory, view = arrays
    expected = memory.copy()
    view(expected)[...] = source
    copies.copy(view(memory), source)
    np.testing.assert_array_equal(memory, expected)
    np.testing.assert_array_equal(copies.contiguous(source), source)


@pytest.mark.parametrize("size", [(1024, 1024), (1000, 777)])
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.usefixtures("threads", "_compiled")
def test_a_large_matrix_is_transposed(size, itemsize):
    source = np.arange(np.prod(size), dtype=f"i{itemsize}").reshape(size)
    np.testing.assert_array_equal(copies.contiguous(source.T), np.transpose(source))


@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((1024, 300), (1, 0)),
        ((1, 2, 300, 999), (0, 1, 3, 2)),
        ((6, 70, 8, 64), (0, 2, 1, 3)),
        ((5, 9, 8, 700), (3, 2, 0, 1)),
    ],
)
@pytest.mark.parametrize("band", [1 << 12, 1 << 19])
@pytest.mark.usefixtures("threads")
def test_transposed_arrays_in_fused_operations(shape, perm, band, monkeypatch):
    monkeypatch.setattr(fusion, "_BAND_ELEMENTS", band)
    random = np.random.default_rng(0)
    x = random.standard_normal(shape).astype(np.float32)
    whole = random.standard_normal(np.transpose(x, perm).shape).astype(np.float32)
    row, column = whole[:1, ..., :], whole[..., :1]
    with tf.Graph().as_default(), tf.Session() as session:
        moved = tf.transpose(tf.Variable(x), perm)
        y, last, first = (tf.Variable(array) for array in (whole, row[(0,) * (row.ndim - 1)], column))
        fetches = moved + y, (moved - y) * last, (y + moved) * first, tf.maximum(moved, 0.0)
        session.run(tf.global_variables_initializer())
        results = session.run(fetches)
    t = np.transpose(x, perm)
    expected = t + whole, (t - whole) * row[(0,) * (row.ndim - 1)], (whole + t) * column, np.maximum(t, 0)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("band", [1 << 12, 1 << 19])
def test_a_result_in_the_memory_of_a_transposed_input(band, monkeypatch):
    """What is transposed is read as a whole before a result takes its place."""
    monkeypatch.setattr(fusion, "_BAND_ELEMENTS", band)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, x.shape)
        made = tf.cumsum(fed, 1)
        product = tf.transpose(made) * fed + made
        total = session.run(tf.cumsum(product, 0), {fed: x})
    made = np.cumsum(x, 1)
    np.testing.assert_allclose(total, np.cumsum(made.T * x + made, 0), rtol=1e-4, atol=1e-3)


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_joined_framed_and_repeated_arrays(data):
    random = np.random.default_rng(0)
    rank = data.draw(st.integers(1, 3))
    shape = data.draw(st.lists(st.sampled_from([1, 3, 33]), min_size=rank, max_size=rank))
    shape[0] *= -(-(1 << 15) // int(np.prod(shape)))
    x, y = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
    axis = data.draw(st.integers(-rank, rank - 1))
    frame = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=rank, max_size=rank))
    repeats = data.draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank))
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, shape)
        fetches = [tf.concat(fed, axis), tf.stack(fed, axis), tf.pad(fed[0], frame, constant_values=7.0)]
        fetches += [tf.tile(fed[0], repeats), tf.reshape(tf.transpose(fed[0]), [-1])]
        results = session.run(fetches, dict(zip(fed, (x, y), strict=True)))
    expected = [np.concatenate((x, y), axis), np.stack((x, y), axis), np.pad(x, frame, constant_values=7)]
    expected += [np.tile(x, repeats), x.T.reshape(-1)]
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("shape", [(2, 3), (130, 257)])
@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize(
    ("dtype", "number"),
    [("float32", 0), ("float32", -0.0), ("float32", 1.5), ("int8", 5), ("bool", True), ("complex64", 0), ("int64", -1)],
)
def test_arrays_are_filled(dtype, number, is_whole, shape):
    array = np.ones((shape[0], 2 * shape[1]), dtype)
    target = np.ones(shape, dtype) if is_whole else array[:, ::2]
    copies.fill(target, number)
    assert target.tobytes() == np.full(shape, number, dtype).tobytes()
    assert np.all(array[:, 1::2] == 1)


def test_strings_are_filled():
    target = np.empty((64, 64), object)
    copies.fill(target, b"")
    assert np.all(target == b"")


@pytest.mark.usefixtures("threads", "_compiled")
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int32", "float64", "complex64"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *[((50, 350 // channels, channels), 1) for channels in (1, 2, 3, 4, 5)],
        *[((20000 // width, width, 3), 1) for width in (1, 4, 5, 6, 11)],
        ((17001,), 0),
        ((150, 113), 1),
        ((150, 113), 0),
        ((4, 64, 65, 3), 2),
        ((3, 4), 1),
    ],
)
def test_rows_of_pixels_are_turned_around(shape, axis, dtype):
    pixels = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        turned = session.run(tf.reverse(tf.placeholder_with_default(pixels, shape), [axis]))
    np.testing.assert_array_equal(turned, np.flip(pixels, axis))
