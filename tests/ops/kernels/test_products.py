"""Products of matrices in parts: against NumPy's own, for every way of cutting them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.support.processes import PATIENCE_S
from tfray.ops.kernels import compiling, cpu_threads, fast_products, products
from tfray.ops.kernels.compiling import can_compile
from tfray.ops.kernels.cpu_threads import thread_count
from tfray.ops.kernels.native import onednn
from tfray.ops.kernels.products import matrix_product

SHAPES = [
    ((3, 4), (4, 5)),
    ((0, 4), (4, 5)),
    ((4, 0), (0, 5)),
    ((200, 300), (300,)),
    ((200,), (200, 300)),
    ((130, 90), (90, 70)),
    ((70, 90), (90, 131)),
    ((7, 20, 30), (7, 30, 40)),
    ((7, 20, 30), (30, 40)),
    ((7, 20, 30), (1, 30, 40)),
    ((20, 30), (7, 30, 40)),
    ((2, 3, 60, 30), (3, 30, 200)),
    ((2, 1, 60, 30), (2, 3, 30, 200)),
]


@pytest.fixture(params=["numpy", "fast"])
def small_parts(request, monkeypatch):
    """Cut products of any size, those by oneDNN too."""
    monkeypatch.setattr(products, "_THREADED_ELEMENTS", 1)
    monkeypatch.setattr(products, "_PART_FLOPS", 1e4)
    if request.param == "numpy":
        monkeypatch.setattr(products, "fast_product", lambda a, b, out: None)
    monkeypatch.setattr(fast_products, "_LEAST_WORK", 1)
    monkeypatch.setattr(fast_products, "_PART_WORK", 1e4)
    fast_products._product.cache_clear()
    yield
    fast_products._product.cache_clear()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_equals_numpys_product(small_parts, left, right, dtype):
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, shape).astype(dtype) for shape in (left, right))
    expected = a @ b
    assert matrix_product(np, a, b).dtype == expected.dtype
    np.testing.assert_array_equal(matrix_product(np, a, b), expected)
    out = np.full_like(expected, 77)
    assert matrix_product(np, a, b, out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reads_transposed_matrices_and_strided_results(small_parts, dtype):
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, shape).astype(dtype) for shape in ((90, 150), (200, 90)))
    for out in (np.zeros((150, 400), dtype)[:, ::2], np.zeros((150, 300), dtype)[:, 50:250]):
        matrix_product(np, a.T, b.T, out)
        np.testing.assert_array_equal(out, a.T @ b.T)
    np.testing.assert_array_equal(matrix_product(np, a.T[:, ::2], b.T[::2]), a.T[:, ::2] @ b.T[::2])
    repeated = np.broadcast_to(a[:1], a.shape).T
    np.testing.assert_array_equal(matrix_product(np, repeated, b.T), repeated @ b.T)


@pytest.mark.skipif(onednn.library() is None, reason="the extra `fast` is not installed")
@pytest.mark.parametrize(("left", "right"), SHAPES[5:9])
def test_the_number_of_threads_changes_no_bit(left, right, monkeypatch):
    monkeypatch.setattr(fast_products, "_LEAST_WORK", 1)
    monkeypatch.setattr(fast_products, "_PART_WORK", 1e4)
    fast_products._product.cache_clear()
    random = np.random.default_rng(0)
    a, b = (random.normal(size=shape).astype(np.float32) for shape in (left, right))
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(cpu_threads, "thread_count", lambda threads=threads: threads)
        monkeypatch.setattr(compiling, "free_helpers", lambda threads=threads: threads - 1 or None)
        results.append(matrix_product(np, a, b))
    fast_products._product.cache_clear()
    np.testing.assert_array_equal(*results)


@pytest.mark.skipif(onednn.library() is None, reason="the extra `fast` is not installed")
def test_products_of_few_rows_are_computed_by_onednn():
    random = np.random.default_rng(0)
    a, b = (random.normal(size=shape).astype(np.float32) for shape in ((4, 900), (900, 1000)))
    result = fast_products.fast_product(a, b, None)
    np.testing.assert_allclose(result, a.astype(float) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(onednn.library() is None or not can_compile(), reason="the extra `fast` is not installed")
@pytest.mark.parametrize("columns", [1000, 1024, 2048])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_rows_that_share_a_set_of_the_cache_are_packed(columns, turned, wide, monkeypatch):
    monkeypatch.setattr(onednn.library(), "has_wide_vectors", wide)
    monkeypatch.setattr(fast_products, "_product", fast_products._product.__wrapped__)
    random = np.random.default_rng(columns)
    a, b = (random.normal(size=size).astype(np.float32) for size in ((64, 512), (512, columns)))
    b = np.ascontiguousarray(b.T).T if turned else b
    by_onednn = fast_products.fast_product(a, b, None)
    assert (by_onednn is None) == (not wide and not turned and columns % 1024 == 0)
    wanted = a.astype(np.float64) @ b
    np.testing.assert_allclose(matrix_product(np, a, b), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(onednn.library() is None or not can_compile(), reason="the extra `fast` is not installed")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("depth", [44, 45, 60, 104, 105])
@pytest.mark.parametrize(("rows", "columns"), [(65, 1024), (300, 2048), (1037, 1024)])
def test_products_of_few_terms_by_rows_that_share_a_set_of_the_cache(rows, columns, depth, turned):
    random = np.random.default_rng(depth)
    a, b = (random.normal(size=size).astype(np.float32) for size in ((rows, depth), (depth, columns)))
    wanted = a.astype(np.float64) @ b
    a = np.ascontiguousarray(a.T).T if turned else a
    for out in (None, np.zeros((rows, 2 * columns), np.float32)[:, columns:]):
        np.testing.assert_allclose(matrix_product(np, a, b, out), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("left", "right"), [((3000, 70), (70, 1)), ((3, 900, 200), (3, 200, 1))])
@pytest.mark.parametrize("turned", [False, True])
def test_columns_are_multiplied_by_blas(left, right, turned):
    random = np.random.default_rng(0)
    a, b = (random.normal(size=shape).astype(np.float32) for shape in (left, right))
    if turned:
        a = np.ascontiguousarray(np.swapaxes(a, -1, -2)).swapaxes(-1, -2)
    assert fast_products.fast_product(a, b, None) is None
    np.testing.assert_allclose(matrix_product(np, a, b), a.astype(float) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(onednn.library() is None or not can_compile(), reason="the extra `fast` is not installed")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shapes", [((256, 300), (300, 512)), ((6, 130, 200), (6, 200, 257))])
def test_compiled_code_runs_the_parts_of_a_product(shapes, turned):
    random = np.random.default_rng(0)
    a, b = (random.normal(size=shape).astype(np.float32) for shape in shapes)
    if turned:
        b = np.ascontiguousarray(np.swapaxes(b, -1, -2)).swapaxes(-1, -2)
    wanted = a.astype(float) @ b
    wide = np.zeros((*wanted.shape[:-1], 2 * wanted.shape[-1]), np.float32)
    for out in (None, np.empty(wanted.shape, np.float32), wide[..., : wanted.shape[-1]]):
        np.testing.assert_allclose(fast_products.fast_product(a, b, out), wanted, rtol=1e-4, atol=1e-4)
    assert not wide[..., wanted.shape[-1] :].any()


def test_says_that_shapes_do_not_meet(small_parts):
    with pytest.raises(ValueError, match="mismatch"):
        matrix_product(np, np.ones((200, 300)), np.ones((200, 300)))
    with pytest.raises(ValueError, match="broadcast"):
        matrix_product(np, np.ones((2, 20, 30)), np.ones((3, 30, 20)))


@pytest.mark.skipif(thread_count() < 2, reason="this process may use one core")
@pytest.mark.parametrize("by", ["numpy", "fast"])
def test_large_products_are_cut(by, monkeypatch):
    counts = []
    if by == "numpy":
        monkeypatch.setattr(products, "fast_product", lambda a, b, out: None)
        cut = products.parallel_for
        monkeypatch.setattr(products, "parallel_for", lambda work, count: counts.append(count) or cut(work, count))
    elif onednn.library() is None or not can_compile():
        pytest.skip("the extra `fast` is not installed")
    else:
        batch = fast_products.PrimitiveBatch
        made = lambda dnnl, items, *rest: counts.append(len(items)) or batch(dnnl, items, *rest)  # noqa: E731
        monkeypatch.setattr(fast_products, "PrimitiveBatch", made)
        monkeypatch.setattr(fast_products, "_product", fast_products._product.__wrapped__)
    a, b = np.ones((16, 2000), np.float32), np.ones((2000, 2000), np.float32)
    np.testing.assert_array_equal(matrix_product(np, a, b), np.full((16, 2000), 2000, np.float32))
    assert counts and counts[0] > 1


PROGRAM = """
import os, threading
import numpy as np
import tfray as tf

def others_cpu_ns():
    own = {str(thread.native_id) for thread in threading.enumerate()}
    tasks = set(os.listdir("/proc/self/task")) - own
    return sum(int(open(f"/proc/self/task/{task}/schedstat").read().split()[0]) for task in tasks)

def used_threads(blas):
    before = others_cpu_ns()
    blas()
    return others_cpu_ns() - before

large = np.ones((300, 300), np.float32)
print(used_threads(lambda: large @ large), end=" ")

images = tf.placeholder(tf.float32, [32, 20, 20, 3])
net = tf.layers.max_pooling2d(tf.layers.conv2d(images, 16, 5, activation=tf.nn.relu), 2, 2)
net = tf.layers.dense(tf.layers.dense(tf.layers.flatten(net), 512, tf.nn.relu), 10)
loss = tf.losses.softmax_cross_entropy(tf.one_hot([3] * 32, 10), net)
loss += sum(map(tf.nn.l2_loss, tf.trainable_variables()))
table = tf.random_normal([200, 200])
others = [
    tf.summary.histogram("values", table),
    tf.einsum("ij,jk,kl->il", table, table, table),
    tf.image.resize_images(images, [64, 64]),
    tf.matrix_inverse(table),
    tf.svd(table),
    tf.cholesky(tf.eye(200)),
    tf.matmul(table[:80, :80], table[:80, :80]),
]
train = [tf.train.AdamOptimizer().minimize(loss), others]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    feeds = {images: np.ones((32, 20, 20, 3))}
    session.run(train, feeds)  # loads SciPy, whose BLAS starts threads of its own
    print(used_threads(lambda: [session.run(train, feeds) for _ in range(3)]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="threads are watched through /proc")
def test_no_kernel_uses_a_thread_of_blas():
    """In a process of its own, threads that Python did not start are those of BLAS."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_THREAD_TIMEOUT": "4"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    of_numpy, of_kernels = map(int, ran.stdout.split())
    assert of_kernels == 0
    assert of_numpy > 0


@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(30, 520, 2048), (64, 1024, 1024), (16, 4100, 512), (8, 300, 4096)]
)
def test_slabs_of_few_rows_add_up(rows, depth, columns):
    """Rows of the right matrix lie a multiple of 4096 bytes apart, or of 2048."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
    expected = a @ b
    for _ in range(2):
        out = np.full_like(expected, 77)
        assert matrix_product(np, a, b, out) is out
        np.testing.assert_array_equal(out, expected)
    part = matrix_product(np, a, b[:, : columns // 2])
    np.testing.assert_array_equal(part, expected[:, : columns // 2])
    a[3, 5] = np.nan
    assert np.isnan(matrix_product(np, a, b)).all(1).tolist() == [row == 3 for row in range(rows)]


@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(4, 1024, 2048), (30, 1000, 999), (120, 300, 500), (1, 700, 512)]
)
def test_products_of_few_rows_by_a_turned_matrix(rows, depth, columns):
    """Parts are computed in memory of their own, and copied."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((rows, depth), (columns, depth)))
    expected = a @ b.T
    np.testing.assert_array_equal(matrix_product(np, a, b.T), expected)
    out = np.full((rows, 2 * columns), 77, np.float32)
    matrix_product(np, a, b.T, out[:, :columns])
    np.testing.assert_array_equal(out[:, :columns], expected)
    assert (out[:, columns:] == 77).all()
