"""What steps on a GPU do otherwise than on a CPU, or refuse as it does.

Where there is none, ``tests/support/gpu/check.sh tests tests/devices/test_one_gpu.py`` runs these tests on a stand-in.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import memory_stats
from tfray.errors import FailedPreconditionError, InvalidArgumentError
from tfray.runtime.device import gpu_count

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_count(), reason="needs a GPU")]


def run(build, *arrays):
    """The value of what `build` makes of fed tensors, on a GPU alone."""
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        feeds = {tf.placeholder(array.dtype): array for array in arrays}
        return session.run(build(*feeds), feeds)


def test_indices_count_on_from_the_first_row_again():
    assert run(tf.gather, np.arange(5.0), np.int32([1, 5, 7])).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("scatter", "indices"),
    [
        (tf.scatter_add, [2, 1, 0]),
        (tf.scatter_update, [2, 1, 0]),
        (tf.scatter_max, [2, 1, 0]),
        (tf.scatter_nd_add, [[2], [1], [0]]),
        (tf.scatter_nd_update, [[2], [1], [0]]),
    ],
)
def test_rows_of_a_variable_are_scattered_into_itself(scatter, indices):
    start = np.float32([[1, 2], [3, 4], [5, 6]])
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        variable = tf.Variable(start)
        session.run(variable.initializer)
        found = session.run(scatter(variable, indices, variable))
    combined = {"add": np.add, "max": np.maximum, "update": lambda old, new: new}[scatter.__name__.split("_")[-1]]
    np.testing.assert_array_equal(found, combined(start, start[::-1]))


@pytest.mark.parametrize("wrong", [-1, 2, 1000])
def test_partitions_that_do_not_exist_are_refused(wrong):
    with pytest.raises(InvalidArgumentError, match=rf"partitions\[1\] = {wrong} is not in \[0, 2\)"):
        run(lambda data, parts: tf.dynamic_partition(data, parts, 2), np.arange(3.0), np.int32([0, wrong, 1]))


def test_many_rows_are_partitioned_in_their_order():
    parts = np.random.default_rng(0).integers(0, 30_000, 100_000).astype(np.int32)
    found = run(lambda data, parts: tf.dynamic_partition(data, parts, 30_000)[29_000], np.arange(100_000), parts)
    assert found.tolist() == np.flatnonzero(parts == 29_000).tolist()


SINGULAR, INDEFINITE = np.float32([[1, 2], [2, 4]]), np.float32([[1, 2], [2, 1]])


@pytest.mark.parametrize(
    ("build", "matrix"),
    [
        (tf.matrix_inverse, SINGULAR),
        (tf.matrix_inverse, np.stack([INDEFINITE, SINGULAR])),
        (lambda x: tf.matrix_solve(x, x), SINGULAR),
        (tf.cholesky, INDEFINITE),
    ],
)
def test_bad_matrices_are_refused(build, matrix):
    with pytest.raises(InvalidArgumentError, match="input shapes"):
        run(build, matrix)


def test_a_singular_triangle_gives_what_is_not_finite():
    assert not np.isfinite(run(tf.matrix_triangular_solve, np.float32([[1, 0], [2, 0]]), INDEFINITE)).all()


def test_a_singular_matrix_has_a_determinant():
    assert run(tf.matrix_determinant, SINGULAR) == 0


ELEMENTWISE = {
    "broadcast rows and columns": lambda x, y: (x * y[0] + y[:, :1]) / (x * x + 1.0),
    "a row in the middle": lambda x, y: tf.reshape(x, [2, 2, 3]) * tf.reshape(y, [4, 3])[:2, None] - 1.0,
    "an array of one element": lambda x, y: tf.sigmoid(x - y[:1, :1]) * tf.tanh(y),
    "booleans": lambda x, y: tf.where((x > y) | ~(x < 0.5), x * 2.0, -y),
    "conversions": lambda x, y: tf.cast(tf.cast(x * 3.0, tf.int32) * 2, tf.float64) + tf.cast(y > x, tf.float64),
    "nan": lambda x, y: tf.maximum(tf.minimum(tf.log(x), y), -tf.sqrt(y)),
    "functions": lambda x, y: (
        tf.floor(x) + tf.ceil(y) + tf.rint(x * 2.0) + tf.abs(-y) + tf.exp(x) + tf.rsqrt(x * x + 1.0)
    ),
    "more functions": lambda x, y: tf.sin(x) * tf.cos(y) + tf.log1p(x * x) * tf.expm1(-y) + tf.pow(tf.abs(x), y),
    "a transposed input": lambda x, y: tf.transpose(tf.transpose(x) * 2.0 + tf.transpose(y)) * y,
    "several results": lambda x, y: tf.concat([x + y, (x + y) * 2.0, tf.exp((x + y) * 2.0)], 0),
}


TOLERANCES = {"float16": 4e-3, "bfloat16": 4e-2}
"""Halves have 11 or 8 bits, and a CPU rounds to them after each operation."""


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("case", ELEMENTWISE)
def test_a_kernel_of_several_elementwise_operations(case, dtype):
    arrays = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(dtype.as_numpy_dtype)
    build = ELEMENTWISE[case]
    with tf.Graph().as_default():
        x, y = tf.placeholder(dtype, [4, 3]), tf.placeholder(dtype, [4, 3])
        values = []
        for device in ("/gpu:0", "/cpu:0"):
            with tf.device(device):
                values.append(build(x, y))
        with tf.Session() as session:
            got, wanted = session.run(values, {x: arrays[0], y: arrays[1]})
    assert got.dtype == wanted.dtype
    tolerance = TOLERANCES.get(dtype.name, 1e-6)
    np.testing.assert_allclose(np.float64(got), np.float64(wanted), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_halves_of_a_kernel_are_rounded_once_to_the_nearest(dtype):
    """Sums that halves do not represent stay within the kernel; ties go to even, and what is no number stays none."""
    step = float(np.finfo(np.float16).eps) if dtype is tf.float16 else 2.0**-7
    x = np.array([1, 1, 1 + step, -1, np.inf, np.nan], dtype.as_numpy_dtype)
    y = np.array([step / 2, step / 4, step / 2, step / 2, 1, 1], dtype.as_numpy_dtype)

    def build(x, y):
        x.set_shape([6])
        y.set_shape([6])
        return [x + y + y, x + y, tf.cast(tf.cast(x, tf.float32) + tf.cast(y, tf.float32), dtype) - x]

    found = [np.float32(value) for value in run(build, x, y)]
    ties = np.float32([1, 1, 1 + 2 * step, -1 + step / 2, np.inf, np.nan])
    np.testing.assert_array_equal(found[0], np.float32([1 + step, 1, 1 + 2 * step, -1 + step, np.inf, np.nan]))
    np.testing.assert_array_equal(found[1], ties)
    np.testing.assert_array_equal(found[2][:4], ties[:4] - np.float32(x)[:4])  # a cast rounds


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(tf.train.exponential_decay(0.1, tf.train.get_global_step(), 1, 0.5)),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.1, l2_regularization_strength=0.1),
    "proximal": lambda: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.1),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_the_updates_of_all_variables_together(optimizer, dtype):
    """Each gradient is a value of another variable, read in the step that updates it."""
    rng = np.random.default_rng(0)
    start = [rng.standard_normal((3, 2)).astype(dtype.as_numpy_dtype) for _ in range(3)]
    found = []
    for device in ("/gpu:0", "/cpu:0"):
        with tf.Graph().as_default(), tf.device(device):
            step = tf.train.get_or_create_global_step()
            variables = [tf.Variable(value) for value in start]
            gradients = [variables[(i + 1) % 3].value() for i in range(3)]
            update = OPTIMIZERS[optimizer]().apply_gradients(zip(gradients, variables, strict=True), step)
            with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
                session.run(tf.global_variables_initializer())
                for _ in range(3):
                    session.run(update)
                found.append(session.run(variables))
    tolerance = TOLERANCES.get(dtype.name, 1e-5)
    np.testing.assert_allclose(*np.float64(found), rtol=tolerance, atol=tolerance)


def test_a_variable_that_is_updated_twice_in_a_step():
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        variable = tf.Variable(np.float32([1, 2]))
        optimizer = tf.train.GradientDescentOptimizer(1.0)
        before = variable.read_value() * 1.0  # a read that is fetched itself would be made last
        first = optimizer.apply_gradients([(variable.value(), variable)])
        with tf.control_dependencies([first]):
            between = variable.read_value() * 1.0
            second = optimizer.apply_gradients([(between - 1.0, variable)])
        with tf.control_dependencies([second]):
            after = variable.read_value()
        session.run(variable.initializer)
        found = session.run([before, between, after])
    np.testing.assert_array_equal(found, [[1, 2], [0, 0], [1, 1]])


def test_a_variable_without_a_value_is_named_by_its_update():
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        known, unknown = tf.Variable([1.0], name="known"), tf.Variable([1.0], name="unknown")
        session.run(known.initializer)
        gradients = [(tf.constant([1.0]), known), (tf.constant([1.0]), unknown)]
        with pytest.raises(FailedPreconditionError, match="unknown"):
            session.run(tf.train.GradientDescentOptimizer(1.0).apply_gradients(gradients))


def rows(x, y):
    labels = tf.cast(tf.abs(y[:, 0]) * 3.0, tf.int32) % 6
    far = x * (30.0 if x.dtype.size > 2 else 2.0)  # the sine of a large half is that of a number far off
    return {
        "softmax": tf.nn.softmax(far),
        "log softmax": tf.nn.log_softmax(far),
        "cross entropy": tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(y), logits=x),
        "sparse cross entropy": tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x),
    }


def images(x, y, layout):
    pixels, more = (tf.reshape(tensor, [2, 9, 8, 3] if layout == "NHWC" else [2, 3, 9, 8]) for tensor in (x, y))
    known = [tf.abs(tensor[0, :3]) + 0.5 for tensor in (x, y)]

    def pooled(window, stride, padding):
        sizes = [[1, size, size, 1] if layout == "NHWC" else [1, 1, size, size] for size in (window, stride)]
        return tf.nn.max_pool(tf.round(pixels * 2.0) * more, *sizes, padding, data_format=layout)

    pools = {
        "pooling in tiles": pooled(3, 3, "VALID"),
        "pooling with overlaps": pooled(3, 2, "SAME"),
        "pooling with gaps": pooled(2, 3, "VALID"),
        "pooling over padding": pooled(5, 1, "SAME"),
    }
    if x.dtype.size == 2:  # their statistics are float32, and so is the operation
        return pools
    norm = functools.partial(tf.nn.fused_batch_norm, pixels, *known, data_format=layout)
    return pools | {
        "batch norm": norm()[0] * more,
        "batch norm of known moments": norm(*known, is_training=False)[0],
        "variance": norm()[2],
    }


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (rows, (5, 6)),
        (lambda x, y: images(x, y, "NHWC"), (144, 3)),
        (lambda x, y: images(x, y, "NCHW"), (144, 3)),
    ],
    ids=["rows", "NHWC", "NCHW"],
)
def test_kernels_of_rows_and_images_and_their_gradients(build, shape, dtype):
    arrays = np.random.default_rng(0).standard_normal((2, *shape)).astype(dtype.as_numpy_dtype)
    found = {}
    with tf.Graph().as_default():
        fed = [tf.placeholder(dtype, shape) for _ in arrays]
        for device in ("/gpu:0", "/cpu:0"):
            with tf.device(device):
                values = build(*fed)
                slopes = {f"d {name}": tf.gradients(tf.sin(value), fed)[0] for name, value in values.items()}
            found[device] = values | {name: slope for name, slope in slopes.items() if slope is not None}
        placement = tf.ConfigProto(allow_soft_placement=True)  # a CPU pools, but not in the layout NCHW
        with tf.Session(config=placement) as session:
            got, wanted = session.run([found["/gpu:0"], found["/cpu:0"]], dict(zip(fed, arrays, strict=True)))
    for name, value in wanted.items():
        assert got[name].dtype == value.dtype
        tolerance = TOLERANCES.get(dtype.name, 1e-4)
        np.testing.assert_allclose(
            np.float64(got[name]), np.float64(value), rtol=tolerance, atol=tolerance / 10, err_msg=name
        )


def test_the_loss_of_a_class_that_does_not_exist_is_not_a_number():
    def build(logits, labels):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)

    assert np.isnan(run(build, np.zeros((4, 3), np.float32), np.int64([-1, 0, 3, 1 << 40]))).tolist() == [1, 0, 1, 1]


PRODUCTS = [
    ((3, 4), (4, 5)),
    ((1, 1), (1, 1)),
    ((1, 7), (7, 1)),
    ((7, 1), (1, 7)),
    ((0, 4), (4, 5)),
    ((4, 0), (0, 5)),
    ((6, 2, 3), (6, 3, 4)),
    ((6, 2, 3), (1, 3, 4)),
    ((3, 2, 2, 3), (2, 3, 1)),
    ((2, 1, 2, 3), (2, 3, 3, 4)),
]


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize(("left", "right"), PRODUCTS, ids=str)
def test_products_without_widening(monkeypatch, left, right, turned, dtype):
    """Halves, and float32 where tensor cores may take it."""
    monkeypatch.setenv("TFRAY_TF32", "1")
    random = np.random.default_rng(0)
    arrays = [random.integers(-8, 9, shape).astype(dtype.numpy) for shape in (left, right)]
    with np.errstate(all="ignore"):
        expected = np.matmul(*(array.astype(np.float32) for array in arrays)).astype(dtype.numpy)
    stored = [array.swapaxes(-1, -2) if turn else array for array, turn in zip(arrays, turned, strict=True)]
    found = run(lambda a, b: tf.matmul(a, b, *turned), *map(np.ascontiguousarray, stored))
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found, expected)


def test_sums_of_halves_are_in_float32():
    ones = np.ones((1, 4000), np.float16)
    assert run(tf.matmul, ones, ones.T) == 4000  # 2048 where halves are added to halves


def test_products_of_strided_matrices():
    whole = np.random.default_rng(0).integers(-8, 9, (6, 8, 10)).astype(np.float16)
    cut = run(lambda x: tf.matmul(x[:, ::2, 1:5], x[:, 1:5, ::3]), whole)
    np.testing.assert_array_equal(cut, np.float32(whole[:, ::2, 1:5]) @ np.float32(whole[:, 1:5, ::3]))


@pytest.mark.parametrize("options", [{"accumulate": 2}, {"bad_gradients": "skip"}], ids=str)
def test_a_local_run_that_gathers_gradients_computes_on_the_gpu(options):
    """It takes the same steps as a model that asks for the CPU."""
    features = np.linspace(-1, 1, 48, dtype=np.float32).reshape(16, 3)
    targets = np.sin(features.sum(1, keepdims=True))

    def model(features, labels):
        hidden = tf.layers.dense(features, 6, tf.tanh, kernel_initializer=tf.random_normal_initializer(seed=2))
        hidden = tf.nn.dropout(hidden, rate=0.1, seed=4)
        loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1, kernel_initializer="ones"))
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        return tf.train.ModelSpec(loss, optimizer.minimize(loss, tf.train.get_or_create_global_step()))

    def on_cpu(features, labels):
        with tf.device("/cpu:0"):
            return model(features, labels)

    def train(build):
        source = tf.train.array_input(features, targets, batch_size=4, shuffle_seed=1)
        run = tf.train.RunConfig(steps=5, local=True, seed=3, logdir=None, trace_steps=[2], **options)
        return tf.train.Trainer(build, source, run=run).fit()

    def products(result):
        """The kinds of devices on which products ran in the step that was recorded."""
        devices = result.history[1].trace.step_stats.dev_stats
        ran = [(stats.device, node.timeline_label) for stats in devices for node in stats.node_stats]
        return {device.rpartition("/device:")[2] for device, label in ran if " = MatMul(" in label}

    result, expected = train(model), train(on_cpu)
    assert (products(result), products(expected)) == ({"GPU:0"}, {"CPU:0"})
    for name, value in expected.variables.items():
        np.testing.assert_allclose(result.variables[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_memory_is_told_of_the_gpu():
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        told = [memory_stats.BytesInUse(), memory_stats.MaxBytesInUse(), memory_stats.BytesLimit()]
        variable = tf.Variable(tf.zeros([1 << 22]))
        before = session.run(told[0])
        session.run(variable.initializer)
        used, most, limit = (session.run(each) for each in told)
    assert before + (1 << 24) <= used <= most < limit
