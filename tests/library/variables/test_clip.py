"""Clipping by norms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gradient_check import check_gradients
from tests.support.interpreter import interpret
from tfray.framework.indexed_slices import IndexedSlices
from tfray.gradients import gradients
from tfray.library.variables.clip import clip_by_average_norm, clip_by_global_norm, clip_by_norm, global_norm
from tfray.ops.arrays.source_ops import constant, placeholder

MATRIX = np.array([[-3.0, 0.0, 0.0], [4.0, 0.0, 0.0]], np.float32)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(("limit", "factor"), [(4.0, 0.8), (5.0, 1.0), (7.0, 1.0), (np.float32(2.5), 0.5)])
def test_clip_by_norm(limit, factor):
    clipped = clip_by_norm(MATRIX, limit)
    assert clipped.shape == [2, 3]
    close(interpret(clipped), MATRIX * factor)


def test_clip_by_norm_of_rows():
    value = np.array([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]])
    close(interpret(clip_by_norm(value, 1.0, axes=1)), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]])
    close(interpret(clip_by_norm(value, 1.0, axes=[0])), value / np.linalg.norm(value, axis=0))


def test_clip_by_norm_of_zero_has_a_gradient():
    x = constant([0.0, 0.0])
    y = clip_by_norm(x, 1.0)
    close(interpret([y, *gradients(y, x)]), [[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_gradients_of_clipping(limit):
    value = np.random.default_rng(0).normal(size=(2, 3))
    check_gradients(lambda x: clip_by_norm(x, limit), [value])
    check_gradients(lambda x: clip_by_average_norm(x, limit), [value])
    check_gradients(lambda x, y: clip_by_global_norm([x, y], limit)[0], [value, value[0]])


def test_clip_by_average_norm():
    close(interpret(clip_by_average_norm(MATRIX, 0.8)), MATRIX * 0.8 / (5 / 6))
    close(interpret(clip_by_average_norm(MATRIX, 0.9)), MATRIX)


def test_slices_stay_slices():
    slices = IndexedSlices(constant(MATRIX), constant([5, 2]), constant([9, 3]))
    clipped = clip_by_norm(slices, 1.0)
    assert isinstance(clipped, IndexedSlices)
    assert clipped.indices is slices.indices
    close(interpret(clipped.values), MATRIX / 5)
    (clipped,), norm = clip_by_global_norm([slices], 1.0)
    assert isinstance(clipped, IndexedSlices)
    close(interpret([clipped.values, norm])[0], MATRIX / 5)


def test_clip_by_global_norm():
    # The example of TensorFlow's tests: norms 5 and sqrt(29) - 5 = 2 beside it, the global norm is 5.
    first, second = constant([[-2.0, 0.0, 0.0], [4.0, 0.0, 0.0]]), constant([1.0, -2.0])
    clipped, norm = clip_by_global_norm([first, None, second], 4.0)
    assert clipped[1] is None
    close(interpret(norm), 5.0)
    close(interpret(clipped[0]), [[-1.6, 0.0, 0.0], [3.2, 0.0, 0.0]])
    close(interpret(clipped[2]), [0.8, -1.6])
    kept, _ = clip_by_global_norm((first, second), 6.0)
    close(interpret(kept[1]), [1.0, -2.0])


def test_a_known_norm_may_be_given():
    clipped, norm = clip_by_global_norm([constant([3.0, 4.0])], 1.0, use_norm=constant(10.0))
    close(interpret(clipped[0]), [0.3, 0.4])
    close(interpret(norm), 10.0)


@pytest.mark.parametrize("wrong", [np.inf, np.nan])
def test_a_norm_that_is_not_finite_shows(wrong):
    x = placeholder("float32", [2])
    clipped, _ = clip_by_global_norm([x, constant([1.0])], 1.0)
    assert np.isnan(interpret(clipped[1], {x: [1.0, wrong]})).all()


@pytest.mark.parametrize(("limit", "expected"), [(-1.0, [3, 4]), (0.0, [0, 0]), (2.5, [1.5, 2]), (10.0, [3, 4])])
def test_a_limit_below_0_leaves_values_as_they_are(limit, expected):
    given = constant(limit)
    (clipped,), _ = clip_by_global_norm([constant([3.0, 4.0])], given)
    (slope,) = gradients(clipped, given)
    values, slope = interpret([clipped, slope])
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert np.isnan(slope) == (limit == 0)


def test_global_norm_of_several_dtypes():
    close(interpret(global_norm([constant([2.0]), constant([[1.0], [2.0]])])), 3.0)
    half = constant(np.array([3.0, 4.0], np.float16))
    clipped, _ = clip_by_global_norm([half], 2.5)
    assert clipped[0].dtype.name == "float16"
    close(interpret(clipped[0]), [1.5, 2.0])


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="not a list of tensors"):
        clip_by_global_norm(constant([1.0]), 1.0)


def test_the_norm_of_nothing_is_zero():
    assert interpret(global_norm([None])) == 0


def test_the_sum_of_a_tensor_is_near_it(graph):
    with graph.device("/job:ps/task:0"):
        first = constant([3.0])
    with graph.device("/job:ps/task:1"):
        second = constant([4.0])
    clipped, _ = clip_by_global_norm([first, second], 1.0)
    assert [t.device for t in clipped] == ["/job:ps/task:0", "/job:ps/task:1"]
