"""Random operations: distributions, seeds and shapes."""

from __future__ import annotations

import multiprocessing

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

from tests.support.interpreter import interpret
from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.graph import Graph
from tfray.framework.random_seed import get_seed, set_random_seed
from tfray.gradients import gradients
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.kernels.random_streams import CHUNK, RandomStream, truncated_normal, uniform
from tfray.ops.math import math_ops
from tfray.ops.random import random_ops
from tfray.runtime.device import Device, cupy

FLOATS = [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]
ALPHA = 1e-3
"""With fixed seeds a test either passes always or never; this is how unlucky a seed may be."""


def new_device():
    return Device("/job:localhost/task:0/device:CPU:0")


def fits(samples, cdf):
    return stats.kstest(np.asarray(samples, np.float64).ravel(), cdf).pvalue > ALPHA


# -- distributions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "cdf"),
    [
        (lambda: random_ops.random_uniform([20000], seed=1), stats.uniform(0, 1).cdf),
        (lambda: random_ops.random_uniform([20000], -2, 3, seed=2), stats.uniform(-2, 5).cdf),
        (lambda: random_ops.random_uniform([20000], dtype="float64", seed=3), stats.uniform(0, 1).cdf),
        (lambda: random_ops.random_normal([20000], seed=4), stats.norm(0, 1).cdf),
        (lambda: random_ops.random_normal([20000], 3.0, 0.5, seed=5), stats.norm(3, 0.5).cdf),
        (lambda: random_ops.truncated_normal([20000], seed=6), stats.truncnorm(-2, 2).cdf),
        (lambda: random_ops.truncated_normal([20000], 1.0, 2.0, seed=7), stats.truncnorm(-2, 2, 1, 2).cdf),
        (lambda: random_ops.random_gamma([20000], 0.5, seed=8), stats.gamma(0.5).cdf),
        (lambda: random_ops.random_gamma([20000], 3.0, 2.0, seed=9), stats.gamma(3, scale=0.5).cdf),
        (lambda: random_ops.random_uniform([3 * CHUNK + 5], seed=10), stats.uniform(0, 1).cdf),
        (lambda: random_ops.random_normal([3 * CHUNK + 5], seed=11), stats.norm(0, 1).cdf),
        (lambda: random_ops.truncated_normal([2 * CHUNK + 5], seed=12), stats.truncnorm(-2, 2).cdf),
    ],
)
def test_distribution(make, cdf):
    assert fits(interpret(make()), cdf)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [random_ops.random_uniform, random_ops.random_normal, random_ops.truncated_normal])
def test_every_float_dtype(function, dtype):
    numbers = interpret(function([50000], dtype=dtype, seed=1))
    wide = numbers.astype(np.float64)
    assert numbers.dtype == dtype.numpy
    if function is random_ops.random_uniform:
        assert wide.min() >= 0 and wide.max() < 1
        assert abs(wide.mean() - 0.5) < 0.01
    else:
        assert abs(wide.mean()) < 0.02


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_uniform_never_reaches_one(dtype):
    numbers = np.empty(1 << 20, dtype)
    RandomStream(1, 2).draw(lambda generator: uniform(generator, numbers))
    assert numbers.max() < 1


def test_truncated_normal_stays_within_two_deviations():
    numbers = np.empty(100000, np.float32)
    RandomStream(1, 2).draw(lambda generator: truncated_normal(generator, numbers))
    assert np.abs(numbers).max() <= 2


def test_integers_are_uniform_and_within_bounds():
    numbers = interpret(random_ops.random_uniform([60000], -2, 4, dtypes.int32, seed=1))
    values, counts = np.unique(numbers, return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2, 3]
    assert stats.chisquare(counts).pvalue > ALPHA
    assert numbers.dtype == np.int32


def test_integers_need_an_upper_bound():
    with pytest.raises(ValueError, match="maxval must be given"):
        random_ops.random_uniform([3], dtype=dtypes.int64)
    with pytest.raises(InvalidArgumentError, match="Need minval < maxval, got 5 >= 5"):
        interpret(random_ops.random_uniform([3], 5, 5, dtypes.int64))


def test_bounds_may_be_tensors():
    low = placeholder(dtypes.float32, [])
    numbers = interpret(random_ops.random_uniform([20000], low, low + 2.0, seed=1), {low: 5.0})
    assert fits(numbers, stats.uniform(5, 2).cdf)
    mean = placeholder(dtypes.float32, [2])
    numbers = interpret(random_ops.random_normal([20000, 2], mean, seed=1), {mean: [1.0, 7.0]})
    assert fits(numbers[:, 0], stats.norm(1).cdf)
    assert fits(numbers[:, 1], stats.norm(7).cdf)


def test_an_infinite_rate_gives_no_number():
    found = interpret(random_ops.random_poisson([np.inf, 2.0], [3], seed=1))
    assert np.isnan(found[:, 0]).all() and np.isfinite(found[:, 1]).all()
    with pytest.raises(InvalidArgumentError, match="a rate is infinite"):
        interpret(random_ops.random_poisson([np.inf], [3], dtypes.int32, seed=1))


def test_poisson():
    numbers = interpret(random_ops.random_poisson([1.5, 30.0], [20000], seed=1))
    assert numbers.shape == (20000, 2)
    for column, rate in ((0, 1.5), (1, 30.0)):
        assert abs(numbers[:, column].mean() - rate) < 5 * np.sqrt(rate / 20000)
        assert abs(numbers[:, column].var() - rate) < 0.05 * rate


def test_gamma_broadcasts_its_parameters():
    numbers = random_ops.random_gamma([7], [[1.0], [2.0]], [1.0, 2.0, 3.0])
    assert numbers.shape == [7, 2, 3]
    assert interpret(numbers).shape == (7, 2, 3)


@pytest.mark.parametrize(("dtype", "count"), [(dtypes.int32, 30000), (dtypes.int64, 1000)])
def test_multinomial_draws_by_softmax(dtype, count):
    logits = np.array([[0.0, np.log(2), np.log(3), -np.inf], [10.0, -np.inf, -np.inf, 10.0]], np.float32)
    drawn, device = random_ops.multinomial(logits, count, seed=1, output_dtype=dtype), new_device()
    drawn = np.concatenate([interpret(drawn, device=device) for _ in range(30000 // count)], axis=1)
    assert drawn.dtype == dtype.numpy
    counts = [np.bincount(row, minlength=4) for row in drawn]
    assert counts[0][3] == 0
    assert stats.chisquare(counts[0][:3], np.array([1, 2, 3]) / 6 * 30000).pvalue > ALPHA
    assert counts[1][1] == counts[1][2] == 0
    assert stats.chisquare(counts[1][[0, 3]]).pvalue > ALPHA


@pytest.mark.parametrize(("batch", "count"), [(0, 3), (2, 0)])
def test_multinomial_of_nothing(batch, count):
    assert interpret(random_ops.multinomial(np.zeros((batch, 4), np.float32), count)).shape == (batch, count)


def test_crops_are_where_they_may_be():
    image = np.arange(20).reshape(4, 5)
    crop, device = random_ops.random_crop(image, [2, 5], seed=1), new_device()
    assert crop.shape == [2, 5]
    seen = [interpret(crop, device=device) for _ in range(100)]
    assert {part[0, 0] for part in seen} == {0, 5, 10}
    assert all((part == image[part[0, 0] // 5 :][:2]).all() for part in seen)


def test_crops_larger_than_the_value_are_refused():
    with pytest.raises(InvalidArgumentError):
        interpret(random_ops.random_crop(np.zeros((4, 5)), [5, 5], seed=1))


def test_orthogonal_matrices():
    wide = interpret(random_ops.random_orthogonal(3, 5, seed=1))
    np.testing.assert_allclose(wide @ wide.T, np.eye(3), atol=1e-6)


def test_multinomial_refuses_impossible_rows():
    with pytest.raises(InvalidArgumentError, match="no finite number"):
        interpret(random_ops.multinomial(np.full((1, 3), -np.inf, np.float32), 2))


def test_shuffle_is_a_uniform_permutation_of_rows():
    rows = np.arange(3)
    device = new_device()
    shuffled = random_ops.random_shuffle(constant(np.stack([rows, rows], 1)), seed=1)
    seen = []
    for _ in range(3000):
        value = interpret(shuffled, device=device)
        assert (value[:, 0] == value[:, 1]).all()
        seen.append(tuple(value[:, 0]))
    counts = np.unique(seen, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > ALPHA


# -- seeds -----------------------------------------------------------------------------------------------


def two_runs(make):
    device, tensor = new_device(), make()
    return interpret(tensor, device=device).tolist(), interpret(tensor, device=device).tolist()


@pytest.mark.parametrize("size", [4, 2 * CHUNK])
def test_runs_continue_the_stream_and_a_new_device_restarts_it(size):
    tensor = random_ops.random_uniform([size], seed=3)
    first_device, second_device = new_device(), new_device()
    a, b = interpret(tensor, device=first_device), interpret(tensor, device=first_device)
    c, d = interpret(tensor, device=second_device), interpret(tensor, device=second_device)
    assert (a != b).any()
    assert (a == c).all() and (b == d).all()


def test_without_seeds_numbers_differ():
    tensor = random_ops.random_uniform([4])
    assert (interpret(tensor, device=new_device()) != interpret(tensor, device=new_device())).all()


def test_graph_seed_makes_the_same_construction_reproducible():
    def build():
        with Graph().as_default():
            set_random_seed(7)
            return two_runs(lambda: random_ops.random_normal([3])), two_runs(lambda: random_ops.random_normal([3]))

    first, second = build(), build()
    assert first == second
    assert first[0] != first[1]


def test_operation_seed_meets_graph_seed():
    def numbers(graph_seed, op_seed):
        with Graph().as_default():
            if graph_seed is not None:
                set_random_seed(graph_seed)
            return two_runs(lambda: random_ops.random_uniform([3], seed=op_seed))

    assert numbers(1, 5) == numbers(1, 5)
    assert numbers(1, 5) != numbers(2, 5)
    assert numbers(None, 5) == numbers(None, 5)
    assert numbers(None, 5) != numbers(None, 6)


def test_get_seed():
    assert get_seed(None) == (None, None)
    assert get_seed(5) == (87654321, 5)
    set_random_seed(0)
    assert get_seed(0) == (0, 2**31 - 1)
    assert get_seed(-1)[1] >= 0


def test_large_requests_take_each_chunk_from_its_own_counters():
    numbers = interpret(random_ops.random_normal([4 * CHUNK + 3], dtype=dtypes.float64, seed=1))
    philox = np.random.Philox(key=np.array([87654321, 1], np.uint64), counter=[0, 0, 4, 1])
    assert (numbers[-3:] == np.random.Generator(philox).standard_normal(3)).all()


def _numbers_in_another_process(queue):
    queue.put(interpret(random_ops.random_normal([5], seed=11)).tolist())


def test_numbers_are_the_same_in_every_process():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_numbers_in_another_process, args=(queue,))
    process.start()
    assert queue.get() == interpret(random_ops.random_normal([5], seed=11)).tolist()
    process.join()


@pytest.mark.gpu
@pytest.mark.skipif(cupy() is None, reason="needs a GPU")
@pytest.mark.parametrize(
    "make",
    [
        lambda: random_ops.random_uniform([3, 4], -1, 1, seed=1),
        lambda: random_ops.random_uniform([3, 4], 0, 9, dtypes.int64, seed=1),
        lambda: random_ops.random_normal([2 * CHUNK], seed=1),
        lambda: random_ops.truncated_normal([3, 4], seed=1),
        lambda: random_ops.random_gamma([3], [1.0, 2.0], seed=1),
        lambda: random_ops.random_poisson([1.0, 2.0], [3], seed=1),
        lambda: random_ops.multinomial([[0.0, 1.0]], 5, seed=1),
        lambda: random_ops.random_shuffle(np.arange(9), seed=1),
        lambda: random_ops.random_orthogonal(3, 2, seed=1),
    ],
)
def test_numbers_are_the_same_on_a_gpu(make):
    tensor = make()
    on_gpu = interpret(tensor, device=Device.open("/job:localhost/task:0/device:GPU:0"))
    assert (on_gpu == interpret(tensor, device=new_device())).all()


# -- shapes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [random_ops.random_uniform, random_ops.random_normal, random_ops.truncated_normal])
@pytest.mark.parametrize("shape", [[], [0], [3], [2, 0, 3], [2, 3, 4]])
def test_static_shape_is_that_of_the_value(function, shape):
    tensor = function(shape)
    assert tensor.shape == shape
    assert interpret(tensor).shape == tuple(shape)


def test_shape_may_be_a_tensor():
    sizes = placeholder(dtypes.int32, [2])
    tensor = random_ops.random_uniform(sizes)
    assert tensor.shape.as_list() == [None, None]
    assert interpret(tensor, {sizes: [2, 5]}).shape == (2, 5)


def test_negative_sizes_are_refused():
    with pytest.raises(InvalidArgumentError, match="negative"):
        random_ops.random_uniform([-1])


# -- bounded and differentiable distributions ----------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "stddev", "low", "high"), [(0, 1, -2, 2), (1, 2, 1.5, 9), (0, 1, 5, 6), (0, 1, -40, -30), (3, 0.5, -9, 99)]
)
def test_normals_between_bounds(mean, stddev, low, high):
    draws = random_ops.parameterized_truncated_normal([4000], mean, stddev, low, high, dtypes.float64, seed=3)
    (samples,) = interpret([draws], device=new_device())
    assert low <= samples.min() and samples.max() <= high
    a, b = (low - mean) / stddev, (high - mean) / stddev
    fits(samples, stats.truncnorm(a, b, mean, stddev).cdf)


def test_normals_between_bounds_of_each_row():
    draws = random_ops.parameterized_truncated_normal([2, 500, 2], [0.0, 9.0], 1.0, [-1.0, 8.0], [0.0, 9.0], seed=4)
    assert draws.shape == [2, 500, 2]
    (samples,) = interpret([draws], device=new_device())
    assert ((samples[0] >= -1) & (samples[0] <= 0)).all() and ((samples[1] >= 8) & (samples[1] <= 9)).all()
    with pytest.raises(InvalidArgumentError, match="minvals < maxvals"):
        interpret([random_ops.parameterized_truncated_normal([2], minvals=1.0, maxvals=0.0)], device=new_device())


def test_gradients_of_gamma_draws():
    """The mean of a gamma distribution is alpha / beta: so are its derivatives, on average."""
    alpha, beta = constant(np.array([0.5, 2.0, 30.0])), constant(np.array([1.0, 2.0, 4.0]))
    mean = math_ops.reduce_mean(random_ops.random_gamma([20000], alpha, beta, dtypes.float64, seed=5), 0)
    d_alpha, d_beta = interpret(gradients(mean, [alpha, beta]), device=new_device())
    np.testing.assert_allclose(d_alpha, [1, 0.5, 0.25], rtol=0.05)
    np.testing.assert_allclose(d_beta, [-0.5, -0.5, -30 / 16], rtol=0.05)


def test_multinomial_among_many_classes():
    """Few draws from many classes are found by blocks: never a class that cannot occur, and all by their weight."""
    logits = np.full((3, 1000), -np.inf)
    logits[0, [0, 63, 64, 999]] = np.log([0.1, 0.2, 0.3, 0.4])
    logits[1, 500] = 0
    logits[2] = 0
    draws = [random_ops.multinomial(constant(logits), 3, seed=seed) for seed in range(700)]
    samples = np.concatenate(interpret(draws, device=new_device()), 1)
    counts = [np.sum(samples[0] == place) for place in (0, 63, 64, 999)]
    assert sum(counts) == 2100 and stats.chisquare(counts, [210, 420, 630, 840]).pvalue > ALPHA
    assert (samples[1] == 500).all()
    assert stats.kstest(samples[2] + 0.5, stats.uniform(0, 1000).cdf).pvalue > ALPHA


# -- as in TensorFlow ------------------------------------------------------------------------------------


def test_logits_that_are_not_finite_are_classes_that_do_not_occur():
    logits = np.float32([[np.nan, 2, 2], [np.inf, -np.inf, 0], [1, 2, np.nan]])
    drawn = interpret(random_ops.multinomial(logits, 200, seed=1))
    assert [set(row) for row in drawn.tolist()] == [{1, 2}, {2}, {0, 1}]


def test_empty_integers_need_no_bounds_that_fit():
    assert interpret(random_ops.random_uniform([0, 2], 3, 3, dtypes.int32)).shape == (0, 2)


@pytest.mark.parametrize("function", [random_ops.random_normal, random_ops.random_uniform])
def test_tensors_of_parameters_have_the_dtype_of_the_result(function):
    with pytest.raises(ValueError, match="float64"):
        function([2], constant(1.0, dtypes.float64))
    assert function([2], np.float64(0.5)).dtype is dtypes.float32


def test_names_of_draws():
    assert random_ops.multinomial([[0.5, 0.5]], 1).op.name.startswith("multinomial/")
    assert random_ops.random_poisson([0.5], [1]).op.name.startswith("random_poisson/")
