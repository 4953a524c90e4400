"""TensorArray: reading and writing, in loops and outside, errors, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.region_runs import run
from tfray.errors import InvalidArgumentError
from tfray.framework.tensor_list import MISSING, TensorList

# -- the value behind it -------------------------------------------------------------------------------


def test_versions_of_a_list_are_independent():
    empty = TensorList({}, 0)
    one = empty.set(0, "a")
    two = one.set(1, "b")
    other = one.set(1, "c")
    changed = two.set(0, "z")
    assert [(len(each), each.size) for each in (empty, one, two, other, changed)] == [(0, 0), (1, 1), (2, 2)] + 2 * [
        (2, 2)
    ]
    assert dict(two.written()) == {0: "a", 1: "b"} and dict(other.written()) == {0: "a", 1: "c"}
    assert dict(changed.written()) == {0: "z", 1: "b"} and dict(empty.written()) == {}
    assert one.element(1) is MISSING and one.element(0) == "a"


@pytest.mark.parametrize("seed", range(5))
def test_lists_behave_as_dictionaries(seed):
    random = np.random.default_rng(seed)
    versions = [(TensorList({}, 0), {})]
    for _ in range(200):
        made, model = versions[random.integers(max(0, len(versions) - 5), len(versions))]
        index, value = int(random.integers(6)), object()
        versions.append((made.set(index, value), {**model, index: value}))
        looked_at, expected = versions[random.integers(len(versions))]
        assert dict(looked_at.written()) == expected
        for i in range(6):
            assert looked_at.element(i) is expected.get(i, MISSING)


# -- reading and writing -------------------------------------------------------------------------------


def test_write_read_and_stack():
    array = tf.TensorArray(tf.float32, size=3)
    array = array.write(1, [1.0, 2.0]).write(0, [3.0, 4.0]).write(2, [5.0, 6.0])
    got = run([array.read(1), array.stack(), array.gather([2, 0]), array.concat(), array.size()])
    for actual, expected in zip(
        got, ([1, 2], [[3, 4], [1, 2], [5, 6]], [[5, 6], [3, 4]], [3, 4, 1, 2, 5, 6], 3), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)
    assert array.stack().shape.as_list() == [None, 2] and array.read(0).shape.as_list() == [2]


def test_unstack_scatter_and_split():
    x = tf.placeholder(tf.float32, [None, 2])
    value = np.arange(6, dtype=np.float32).reshape(3, 2)
    array = tf.TensorArray(tf.float32, size=tf.shape(x)[0]).unstack(x)
    np.testing.assert_array_equal(run(array.stack()[::-1], {x: value}), value[::-1])
    scattered = tf.TensorArray(tf.float32, size=3).scatter([2, 0, 1], x)
    np.testing.assert_array_equal(run(scattered.stack(), {x: value}), value[[1, 2, 0]])
    pieces = tf.TensorArray(tf.float32, size=2, infer_shape=False).split(x, [1, 2])
    first, second, whole = run([pieces.read(0), pieces.read(1), pieces.concat()], {x: value})
    np.testing.assert_array_equal(first, value[:1])
    np.testing.assert_array_equal(second, value[1:])
    np.testing.assert_array_equal(whole, value)


@pytest.mark.parametrize("dtype", [tf.int32, tf.bool, tf.float16, tf.complex64, tf.string])
def test_dtypes(dtype):
    values = {tf.string: ["a", "bc"], tf.bool: [True, False]}.get(dtype, [1, 2])
    array = tf.TensorArray(dtype, size=2).unstack(tf.constant(values, dtype))
    got = run(array.stack())
    assert got.dtype == (object if dtype is tf.string else dtype.as_numpy_dtype)
    assert got.tolist() == ([b"a", b"bc"] if dtype is tf.string else values)


def test_an_empty_array_may_be_filled_more_than_once():
    """Each time gives an array of its own, and the empty one stays empty."""
    empty = tf.TensorArray(tf.int32, 3, dynamic_size=True)
    first, second = empty.scatter([2, 0], [[5], [6]]), empty.scatter([0, 1, 4], [[7], [8], [9]])
    more = first.write(1, [4])
    again = first.write(1, [0])
    found = run([first.read(0), first.read(2), first.size(), second.gather([0, 1, 4]), second.size(), empty.size()])
    assert [np.ravel(each).tolist() for each in found] == [[6], [5], [3], [7, 8, 9], [5], [3]]
    assert [each.tolist() for each in run([more.stack(), again.stack()])] == [[[6], [4], [5]], [[6], [0], [5]]]


def test_a_place_that_is_filled_twice_is_refused():
    twice = tf.TensorArray(tf.float32, 3).scatter([0, 1, 0], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidArgumentError, match="index 0 because it has already been written to"):
        run(twice.stack())
    beyond = tf.TensorArray(tf.float32, 2).scatter([1, 5, -1], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidArgumentError, match="write to index 5 but array is not resizeable and size is: 2"):
        run(beyond.stack())


def test_the_gradient_of_an_element_that_is_gathered_twice_is_a_sum():
    x = tf.constant([1.0, 2.0, 3.0])
    gathered = tf.TensorArray(tf.float32, 3).unstack(x).gather([2, 0, 2])
    (gradient,) = tf.gradients(gathered * [1.0, 10.0, 100.0], x)
    assert run(gradient).tolist() == [10, 0, 101]


@pytest.mark.parametrize("shape", [(), (3,), (100, 100)])
@pytest.mark.parametrize("count", [2, 3, 8, 9])
def test_sums_of_several_tensors_in_a_loop(count, shape):
    values = [np.full(shape, 3.0**i, np.float32) for i in range(count)]

    def turn(i, total):
        parts = [tf.constant(value) * tf.cast(i, tf.float32) for value in values]
        return i + 1, tf.add_n([total, *parts[1:]]) + tf.add_n([parts[0], parts[0]])

    _, total = tf.while_loop(lambda i, total: i < 4, turn, [0, tf.zeros(shape)])
    np.testing.assert_array_equal(run(total), 6 * (sum(values) + values[0]))


def test_strings_keep_zeros_at_their_end():
    array = tf.TensorArray(tf.string, size=2).unstack(np.array([b"a\0", b"b"], object))
    assert repr(run([array.read(0), array.stack()])) == repr([b"a\0", np.array([b"a\0", b"b"], object)])


def test_a_growing_array_in_a_loop():
    n = tf.placeholder(tf.int32, [])
    array = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    _, array = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, i * i)), [0, array])
    assert run(array.stack(), {n: 5}).tolist() == [0, 1, 4, 9, 16]
    assert run([array.stack(), array.size()], {n: 0})[1] == 0


def test_arrays_read_by_a_body_and_passed_through_branches():
    source = tf.TensorArray(tf.float32, 3).unstack(tf.constant([1.0, 2.0, 3.0]))
    p = tf.placeholder(tf.bool, [])

    def body(i, array):
        return i + 1, tf.cond(tf.equal(i, 1), lambda: array.write(i, -source.read(i)), lambda: array.write(i, 0.5))

    _, array = tf.while_loop(lambda i, a: i < 3, body, [0, tf.TensorArray(tf.float32, 3)])
    chosen = tf.cond(p, lambda: array, lambda: source)
    assert run(chosen.stack(), {p: True}).tolist() == [0.5, -2.0, 0.5]
    assert run(chosen.stack(), {p: False}).tolist() == [1, 2, 3]


def test_several_arrays_in_a_structure():
    arrays = {"a": tf.TensorArray(tf.int32, 2), "b": [tf.TensorArray(tf.float32, 2)]}
    _, out = tf.while_loop(
        lambda i, t: i < 2,
        lambda i, t: (i + 1, {"a": t["a"].write(i, i), "b": [t["b"][0].write(i, 0.5)]}),
        [0, arrays],
    )
    assert run([out["a"].stack(), out["b"][0].stack()])[0].tolist() == [0, 1]


def test_elements_keep_their_values_while_buffers_are_reused():
    """What is written stays, though the body computes the next one in the same memory."""
    x = tf.placeholder(tf.float32, [100, 100])
    array = tf.TensorArray(tf.float32, 4)
    _, last, array = tf.while_loop(
        lambda i, a, t: i < 4, lambda i, a, t: (i + 1, a * 2 + 1, t.write(i, a * 2)), [0, x, array]
    )
    value = np.random.default_rng(0).normal(size=(100, 100)).astype(np.float32)
    elements, final = run([array.stack(), last], {x: value})
    for element in elements:
        np.testing.assert_array_equal(element, value * 2)
        value = value * 2 + 1
    np.testing.assert_array_equal(final, value)


def test_unwritten_elements_are_zeros_when_their_shape_is_known():
    array = tf.TensorArray(tf.float32, 3, element_shape=[2]).write(1, [1.0, 2.0])
    assert run(array.stack()).tolist() == [[0, 0], [1, 2], [0, 0]]
    assert run(array.read(0)).tolist() == [0, 0]


def test_identity_and_close_are_ordered():
    array = tf.TensorArray(tf.float32, 1).write(0, 1.0)
    v = tf.Variable(0.0)
    with tf.control_dependencies([v.assign(3.0)]):
        same = array.identity()
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(same.read(0)) == 1.0
        session.run(same.close())
        assert session.run(v) == 3.0


def test_properties():
    array = tf.TensorArray(tf.float32, 2, dynamic_size=True, element_shape=[None, 3])
    assert array.dtype is tf.float32 and array.dynamic_size and array.graph is tf.get_default_graph()
    assert array.element_shape.as_list() == [None, 3] and array.handle is array.flow
    again = tf.TensorArray(tf.float32, flow=array.write(0, tf.ones([1, 3])).flow, element_shape=[None, 3])
    assert run(again.read(0)).tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("lengths", [np.array([2, 0, 1], np.int64), [2, 0, 1]])
def test_lengths_may_be_of_64_bits(lengths):
    value = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    array = tf.TensorArray(tf.float32, 3, infer_shape=False).split(value, tf.constant(lengths))
    assert [run(array.read(i)).tolist() for i in range(3)] == [[[1, 2], [3, 4]], [], [[5, 6]]]
    (slope,) = tf.gradients(array.read(2), value)
    assert run(slope).tolist() == [[0, 0], [0, 0], [1, 1]]


# -- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: tf.TensorArray(tf.float32, 2).read(2), InvalidArgumentError, "read from index 2 but array size is: 2"),
        (lambda: tf.TensorArray(tf.float32, 2).read(1), InvalidArgumentError, "index 1 because it has not yet"),
        (lambda: tf.TensorArray(tf.float32, 2).write(2, 1.0).stack(), InvalidArgumentError, "dynamic_size"),
        (lambda: tf.TensorArray(tf.float32, 2).write(-1, 1.0).stack(), InvalidArgumentError, "index -1 but array is"),
        (lambda: tf.TensorArray(tf.float32, 2).write(0, 1.0).write(0, 2.0).stack(), InvalidArgumentError, "already"),
        (
            lambda: tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, 1.0).stack(),
            InvalidArgumentError,
            "read from TensorArray index 1",
        ),
        (lambda: tf.TensorArray(tf.float32, 2).write(0, 1.0).concat(), InvalidArgumentError, "TensorArray index 1"),
        (lambda: tf.TensorArray(tf.float32, 2).split([1.0, 2.0], [1, 2]).stack(), InvalidArgumentError, "lengths is 3"),
        (
            lambda: (
                tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0]).stack()
            ),
            InvalidArgumentError,
            "only elements of one shape",
        ),
    ],
)  # fmt: skip
def test_errors_at_run_time(make, error, match):
    with tf.Session() as session, pytest.raises(error, match=match):
        session.run(make())


def test_errors_while_building():
    array = tf.TensorArray(tf.float32, 2)
    with pytest.raises(InvalidArgumentError, match="float32"):
        array.write(0, tf.constant(1))
    array.write(0, [1.0, 2.0])
    with pytest.raises(ValueError, match="is written"):
        array.write(1, [1.0])
    with pytest.raises(InvalidArgumentError, match=r"tf\.gradients"):
        array.grad("source")


# -- gradients -----------------------------------------------------------------------------------------

X = np.random.default_rng(3).normal(size=(3, 2))


def each(function):
    """Writes a function of every row to another array."""

    def build(x):
        source = tf.TensorArray(x.dtype, 3).unstack(x)
        out = tf.TensorArray(x.dtype, 3)
        return tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t.write(i, function(source, i))), [0, out])[1]

    return build


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.TensorArray(x.dtype, 3).unstack(x).read(1) ** 2,
        lambda x: tf.TensorArray(x.dtype, 3).unstack(x).gather([2, 0, 2]) ** 2,
        lambda x: tf.sin(tf.TensorArray(x.dtype, 3).scatter([2, 0, 1], x).stack()),
        lambda x: tf.sin(tf.TensorArray(x.dtype, 2, infer_shape=False).split(x, [1, 2]).concat()),
        lambda x: tf.sin(tf.TensorArray(x.dtype, 2, infer_shape=False).split(x, [1, 2]).read(1)),
        lambda x: tf.TensorArray(x.dtype, 2).write(1, x[0]).write(0, x[1] * x[2]).stack(),
        lambda x: tf.TensorArray(x.dtype, 2, element_shape=[2]).write(1, tf.sin(x[0])).stack(),
        lambda x: each(lambda t, i: tf.sin(t.read(i)) * t.read(0))(x).stack(),
        lambda x: each(lambda t, i: tf.sin(t.read(i)) * t.read(2 - i))(x).read(1),
        lambda x: each(lambda t, i: tf.cond(i > 1, lambda: t.read(i) ** 2, lambda: t.read(0)))(x).stack(),
        lambda x: [(a := tf.TensorArray(x.dtype, 3).unstack(x)).read(0) ** 2, a.read(0) * a.read(1), a.stack()],
    ],
)
def test_gradients_equal_differences(build):
    check_gradients(build, [X])


def test_gradient_of_what_was_not_read_is_zero():
    x = tf.placeholder(tf.float32, [3, 2])
    y = tf.TensorArray(tf.float32, 3).unstack(x).read(1)
    (d_x,) = tf.gradients(y, x)
    assert run(d_x, {x: np.ones((3, 2))}).tolist() == [[0, 0], [1, 1], [0, 0]]
