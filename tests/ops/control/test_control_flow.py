"""Branches and loops: structures, what runs, what is captured, shapes, and what is refused."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import tfray as tf
from tests.support.region_runs import leaves, run
from tfray.errors import InvalidArgumentError
from tfray.ops.control.control_flow_ops import smart_cond

Pair = collections.namedtuple("Pair", ["first", "second"])


# -- cond ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pred", "expected"), [(True, 6.0), (False, -3.0)])
def test_cond_takes_one_branch(pred, expected):
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    y = tf.cond(p, lambda: x * 2, lambda: -x)
    assert y.dtype is tf.float32 and y.shape.as_list() == []
    assert run(y, {p: pred, x: 3.0}) == expected


@pytest.mark.parametrize("pred", [True, False])
@pytest.mark.parametrize(
    "structure",
    [
        lambda a, b: [a, b],
        lambda a, b: (a, b),
        lambda a, b: Pair(a, [b]),
        lambda a, b: {"b": b, "a": (a,)},
        lambda a, b: collections.OrderedDict([("z", a), ("y", b)]),
        lambda a, b: [[a], [[b, a]], ()],
    ],
)
def test_cond_returns_the_structure_of_its_functions(structure, pred):
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
    result = tf.cond(p, lambda: structure(x, x + 1), lambda: structure(x * 2, x * 3))
    value = np.float32([1, 2])
    expected = structure(value, value + 1) if pred else structure(value * 2, value * 3)
    assert type(result) is type(expected)
    for actual, wanted in zip(leaves(run(result, {p: pred, x: value})), leaves(expected), strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_cond_unpacks_a_single_element_unless_strict():
    p = tf.placeholder_with_default(True, [])
    assert isinstance(tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)]), tf.Tensor)
    strict = tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)], strict=True)
    assert isinstance(strict, list) and run(strict) == [1]


def test_cond_converts_python_values():
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: 1.5, lambda: np.float32(2.5))
    assert run(y, {p: True}) == 1.5 and run(y, {p: False}) == 2.5


def test_cond_of_operations_runs_one(session):
    p, v = tf.placeholder(tf.bool, []), tf.Variable(1.0)
    done = tf.cond(p, lambda: v.assign_add(10.0).op, lambda: tf.no_op())
    session.run(v.initializer)
    session.run(done, {p: False})
    assert session.run(v) == 1.0
    session.run(done, {p: True})
    assert session.run(v) == 11.0


def test_cond_with_older_argument_names():
    p = tf.placeholder_with_default(False, [])
    assert run(tf.cond(p, fn1=lambda: tf.constant(1), fn2=lambda: tf.constant(2))) == 2


def test_cond_merges_static_shapes():
    p = tf.placeholder(tf.bool, [])
    a, b, c = (tf.placeholder(tf.float32, shape) for shape in ([2, 3], [2, None], [2]))
    assert tf.cond(p, lambda: a, lambda: a + 1).shape.as_list() == [2, 3]
    assert tf.cond(p, lambda: a, lambda: b).shape.as_list() == [2, None]
    assert tf.cond(p, lambda: a, lambda: c).shape.rank is None


def test_branches_of_different_shapes():
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.ones([2, 3]), lambda: tf.ones([4])) * 2
    assert run(y, {p: True}).shape == (2, 3) and run(y, {p: False}).shape == (4,)


@pytest.mark.parametrize(
    ("then", "orelse", "error", "match"),
    [
        (lambda: tf.constant(1), lambda: tf.constant(1.0), TypeError, "int32 from true_fn and float32 from false_fn"),
        (lambda: [tf.constant(1)], lambda: [tf.constant(1), tf.constant(2)], TypeError, "same structure"),
        (lambda: (tf.constant(1), tf.constant(1)), lambda: [tf.constant(1), tf.constant(2)], TypeError, "structure"),
        (lambda: {"a": tf.constant(1)}, lambda: {"b": tf.constant(1)}, TypeError, "same structure"),
        (lambda: tf.constant(1), lambda: None, ValueError, "false_fn returned nothing"),
        (tf.constant, None, TypeError, "two functions"),
        (3, lambda: 3, TypeError, "two functions"),
    ],
)
def test_cond_refuses(then, orelse, error, match):
    with pytest.raises(error, match=match):
        tf.cond(tf.placeholder(tf.bool, []), then, orelse)


def test_cond_refuses_a_predicate_that_is_none():
    with pytest.raises(TypeError, match="Python bool"):
        tf.cond(True, lambda: 1, lambda: 2)
    with pytest.raises(InvalidArgumentError, match="expected a scalar"):
        tf.cond(tf.constant([True, False]), lambda: 1, lambda: 2)
    with pytest.raises(InvalidArgumentError, match="expected bool"):
        tf.cond(tf.constant(1), lambda: 1, lambda: 2)


def test_nested_conds():
    p, q, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    y = tf.cond(p, lambda: tf.cond(q, lambda: x, lambda: x * 10), lambda: tf.cond(q, lambda: x * 100, lambda: -x))
    got = [run(y, {p: a, q: b, x: 2.0}) for a in (True, False) for b in (True, False)]
    assert got == [2.0, 20.0, 200.0, -2.0]


def test_the_untaken_branch_does_not_run(session):
    p, v, called = tf.placeholder(tf.bool, []), tf.Variable([0.0, 0.0]), []

    def note(x):
        called.append(float(x))
        return x

    def risky():
        check = tf.Assert(tf.less(v[0], -1.0), ["too much"])
        with tf.control_dependencies([check, v.assign_add([1.0, 1.0])]):
            return tf.py_func(note, [v.read_value()[1]], tf.float32)

    y = tf.cond(p, risky, lambda: tf.py_func(note, [tf.constant(-7.0)], tf.float32))
    session.run(v.initializer)
    assert session.run(y, {p: False}) == -7.0
    assert called == [-7.0]
    with pytest.raises(InvalidArgumentError, match="too much"):
        session.run(y, {p: True})


@pytest.mark.parametrize("pred", ["", [], 2.0, None, np.zeros(0)])
def test_smart_cond_refuses_what_is_no_predicate(pred):
    with pytest.raises(TypeError, match="must be a Tensor, or a Python bool, or 1 or 0"):
        smart_cond(pred, lambda: 1, lambda: 2)


def test_smart_cond_decides_what_is_known():
    assert smart_cond(0, lambda: 1, lambda: 2) == 2 and smart_cond(np.bool_(True), lambda: 1, lambda: 2) == 1
    assert run(smart_cond(True, lambda: tf.constant(1), lambda: tf.constant(2))) == 1
    assert smart_cond(tf.constant(False), lambda: "a", lambda: "b") == "b"
    p = tf.placeholder(tf.bool, [])
    assert run(smart_cond(p, lambda: tf.constant(1), lambda: tf.constant(2)), {p: False}) == 2


def test_what_both_branches_use_is_computed_before(session):
    count = []

    def counted(x):
        count.append(1)
        return x

    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    shared = tf.py_func(counted, [x], tf.float32)
    y = tf.cond(p, lambda: shared + 1, lambda: shared - 1)
    assert session.run([y, shared], {p: True, x: 1.0}) == [2.0, 1.0]
    assert len(count) == 1


# -- case ----------------------------------------------------------------------------------------------


def test_case_takes_the_first_that_holds():
    x = tf.placeholder(tf.int32, [])
    y = tf.case(
        [(x < 0, lambda: tf.constant(-1)), (x < 10, lambda: tf.constant(1)), (x < 100, lambda: tf.constant(2))],
        default=lambda: tf.constant(3),
    )
    assert [run(y, {x: value}) for value in (-5, 5, 50, 500)] == [-1, 1, 2, 3]


def test_case_of_a_dictionary_and_structures():
    x = tf.placeholder(tf.int32, [])
    pairs = {x > 5: lambda: (x, x + 1), x < 2: lambda: (x * 2, x)}
    y = tf.case(pairs, default=lambda: (tf.constant(0), x), exclusive=True)
    assert [run(y, {x: value}) for value in (6, 1, 3)] == [(6, 7), (2, 1), (0, 3)]


def test_case_without_default_fails_when_nothing_holds():
    x = tf.placeholder(tf.int32, [])
    y = tf.case([(x < 0, lambda: -x), (x < 10, lambda: x)])
    assert run(y, {x: -3}) == 3 and run(y, {x: 7}) == 7
    with pytest.raises(InvalidArgumentError, match="None of conditions evaluated as True"):
        run(y, {x: 70})


def test_exclusive_case_fails_when_two_hold():
    x = tf.placeholder(tf.int32, [])
    y = tf.case([(x < 0, lambda: -x), (x < 10, lambda: x), (x > 8, lambda: x)], default=lambda: x * 0, exclusive=True)
    assert run(y, {x: 4}) == 4 and run(y, {x: 12}) == 12
    for value in (-1, 9):
        with pytest.raises(InvalidArgumentError, match="more than 1 conditions"):
            run(y, {x: value})


def test_case_with_a_default_alone_or_one_pair():
    x = tf.placeholder_with_default(2, [])
    assert run(tf.case([], default=lambda: x + 1)) == 3
    assert run(tf.case([(x > 0, lambda: x)])) == 2


@pytest.mark.parametrize("pairs", [[3], [(lambda: 1,)], [(tf.constant, 3)], []])
def test_case_refuses(pairs):
    with pytest.raises(TypeError, match="case"):
        tf.case(pairs)


# -- while_loop: values and structures -----------------------------------------------------------------


def test_loop_counts():
    n = tf.placeholder(tf.int32, [])
    i, total = tf.while_loop(lambda i, total: i < n, lambda i, total: (i + 1, total + i), [0, tf.constant(0)])
    assert [run((i, total), {n: value}) for value in (0, 1, 5)] == [(0, 0), (1, 0), (5, 10)]


def test_loop_with_one_variable_gives_a_tensor():
    i = tf.while_loop(lambda i: i < 10, lambda i: i + 3, [tf.constant(0)])
    assert isinstance(i, tf.Tensor) and run(i) == 12
    same = tf.while_loop(lambda i: i < 10, lambda i: [i + 3], [tf.constant(0)], return_same_structure=True)
    assert isinstance(same, list) and run(same) == [12]


@pytest.mark.parametrize(
    ("initial", "condition", "body", "expected"),
    [
        ((0, 1.0), lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (3, 8.0)),
        ([0, [1.0, (2.0,)]], lambda i, v: i < 3, lambda i, v: [i + 1, [v[0] * 2, (v[1][0] + 1,)]], [3, [8.0, (5.0,)]]),
        ([0, Pair(1.0, 2.0)], lambda i, p: i < 3, lambda i, p: [i + 1, Pair(p.second, p.first)], [3, Pair(2.0, 1.0)]),
        (Pair(0, 1.0), lambda i, x: i < 3, lambda i, x: Pair(i + 1, x + i_float(i)), Pair(3, 4.0)),
        ([Pair(0, 1.0)], lambda p: p.first < 3, lambda p: [Pair(p.first + 1, p.second * 2)], [Pair(3, 8.0)]),
        ([(0, 1.0)], lambda p: p[0] < 3, lambda p: [(p[0] + 1, p[1] * 2)], [(3, 8.0)]),
        ([0, {"b": 1.0, "a": 0.0}], lambda i, d: i < 2, lambda i, d: [i + 1, {"a": d["b"], "b": d["a"] + 3.0}],
         [2, {"b": 4.0, "a": 3.0}]),
    ],
)  # fmt: skip
def test_loop_structures(initial, condition, body, expected):
    result = tf.while_loop(condition, body, initial)
    assert type(result) is type(expected)
    got = run(result)
    assert got == expected


def i_float(i):
    return tf.cast(i, tf.float32)


def test_loop_over_a_dictionary():
    result = tf.while_loop(lambda d: d["i"] < 3, lambda d: {"i": d["i"] + 1, "x": d["x"] * 2}, {"x": 1.0, "i": 0})
    assert run(result) == {"x": 8.0, "i": 3}


def test_a_tuple_may_answer_a_list_and_a_list_a_tuple():
    assert run(tf.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, j), [0, 5])) == [3, 5]
    assert run(tf.while_loop(lambda i, j: i < 3, lambda i, j: [i + 1, j], (0, 5))) == (3, 5)


def test_zero_iterations_return_what_came_in():
    x = tf.placeholder(tf.float32, [2, 2])
    _, y = tf.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, tf.matmul(a, a)), [0, x])
    np.testing.assert_array_equal(run(y, {x: np.eye(2)}), np.eye(2))


def test_maximum_iterations():
    limit = tf.placeholder(tf.int32, [])
    i, x = tf.while_loop(lambda i, x: x < 100.0, lambda i, x: (i + 1, x * 2), [0, 1.0], maximum_iterations=limit)
    assert run((i, x), {limit: 3}) == (3, 8.0) and run((i, x), {limit: 30}) == (7, 128.0)
    assert run((i, x), {limit: 0}) == (0, 1.0)
    assert run(tf.while_loop(lambda i: i < 100, lambda i: [i + 1], [0], maximum_iterations=5)) == 5


def test_nested_loops_and_conds():
    n = tf.placeholder(tf.int32, [])

    def outer(i, total):
        inner = tf.while_loop(
            lambda j, t: j < i,
            lambda j, t: (j + 1, t + tf.cond(tf.equal(j % 2, 0), lambda: j * n, lambda: -i)),
            [0, total],
        )
        return i + 1, inner[1]

    _, total = tf.while_loop(lambda i, t: i < n, outer, [0, 0])
    for size in (0, 1, 6):
        expected = sum(j * size if j % 2 == 0 else -i for i in range(size) for j in range(i))
        assert run(total, {n: size}) == expected


def test_loop_in_a_branch():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    y = tf.cond(p, lambda: tf.while_loop(lambda a: a < 100.0, lambda a: a * x, [x]), lambda: x)
    assert run(y, {p: True, x: 3.0}) == 243.0 and run(y, {p: False, x: 3.0}) == 3.0


def test_a_condition_with_a_branch_and_captures():
    x, limit = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    y = tf.while_loop(
        lambda a: tf.logical_and(a < limit, tf.cond(x > 0, lambda: a < 50.0, lambda: a > -50.0)), lambda a: a * 2, [x]
    )
    assert run(y, {x: 1.0, limit: 10.0}) == 16.0 and run(y, {x: 1.0, limit: 1e9}) == 64.0


def test_variables_that_nobody_uses_are_dropped_but_not_what_they_feed():
    i, a, b, c = tf.while_loop(
        lambda i, a, b, c: i < 4, lambda i, a, b, c: (i + 1, a + b, b * 2, c + 1), [0, 1.0, 1.0, 7.0]
    )
    assert run(a) == 16.0 and run(b) == 16.0 and run(c) == 11.0 and run([i, c]) == [4, 11.0]


def test_swapped_and_passed_through_variables():
    a, b, i, kept = tf.while_loop(
        lambda a, b, i, k: i < 3, lambda a, b, i, k: (b, a, i + 1, k), [1.0, 2.0, 0, tf.constant([1.0, 2.0])]
    )
    assert run([a, b, i]) == [2.0, 1.0, 3]
    np.testing.assert_array_equal(run(kept), [1, 2])


def test_large_arrays_that_change_places():
    """The buffers of one turn are not those that the next one reads."""
    x = tf.placeholder(tf.float32, [64, 64])
    _, a, b = tf.while_loop(lambda i, a, b: i < 5, lambda i, a, b: (i + 1, b * 2 + 1, a + b), [0, x, x + 1])
    value = np.arange(4096, dtype=np.float32).reshape(64, 64)
    p, q = value, value + 1
    for _ in range(5):
        p, q = q * 2 + 1, p + q
    got = run([a, b], {x: value})
    np.testing.assert_array_equal(got[0], p)
    np.testing.assert_array_equal(got[1], q)


# -- while_loop: shapes and dtypes ---------------------------------------------------------------------


def test_a_growing_variable_needs_an_invariant():
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(ValueError, match="shape_invariants"):
        tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.concat([a, a], 0)), [0, x])
    _, y = tf.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, tf.concat([a, a], 0)),
        [tf.constant(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    assert y.shape.as_list() == [None]
    np.testing.assert_array_equal(run(y, {x: [1, 2]}), [1, 2] * 8)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (lambda: tf.shape(tf.zeros([2, 3])), [2, 3]),
        (lambda: tf.concat([[6], tf.shape(tf.zeros([2, 3]))[1:]], 0), [6, 3]),
        (lambda: tf.stack([tf.constant(6) * 2 // 2, tf.reduce_prod(tf.constant([], tf.int32))]), [6, 1]),
        (lambda: tf.stack([tf.shape(tf.placeholder(tf.float32, [None]))[0], 3]), [None, 3]),
    ],
)
@pytest.mark.parametrize("inside", [lambda make: make(), lambda make: tf.cond(tf.constant(True), make, make)])
def test_a_loop_knows_shapes_that_were_computed_before_it(sizes, expected, inside):
    computed = sizes()
    start = tf.random.uniform(computed)
    _, drawn = tf.while_loop(
        lambda i, _: i < 2, lambda i, _: (i + 1, inside(lambda: tf.random.uniform(computed))), (0, start)
    )
    assert drawn.shape.as_list() == start.shape.as_list() == expected


def test_what_a_shape_waits_for_is_waited_for_in_a_loop():
    x = tf.placeholder(tf.float32, [2, 3])
    with tf.control_dependencies([tf.assert_positive(x)]):
        sizes = tf.identity(tf.shape(x))
    loop = tf.while_loop(
        lambda i, _: i < sizes[1], lambda i, t: (i + 1, t + tf.ones([sizes[0], sizes[1]])), (0, tf.zeros([2, 3]))
    )
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(loop[1], {x: np.ones([2, 3])}), np.full([2, 3], 3))
        with pytest.raises(tf.errors.InvalidArgumentError, match="positive"):
            session.run(loop[1], {x: np.zeros([2, 3])})


def test_invariants_of_structures():
    loop = tf.while_loop(
        lambda i, d: i < 2,
        lambda i, d: (i + 1, {"x": tf.concat([d["x"], [1.0]], 0), "y": d["y"]}),
        [tf.constant(0), {"x": tf.zeros([1]), "y": tf.zeros([2])}],
        shape_invariants=[tf.TensorShape([]), {"x": tf.TensorShape([None]), "y": tf.TensorShape([2])}],
    )
    assert loop[1]["x"].shape.as_list() == [None] and loop[1]["y"].shape.as_list() == [2]
    np.testing.assert_array_equal(run(loop[1]["x"]), [0, 1, 1])


def test_invariants_beside_a_tensor_array():
    _, x, array = tf.while_loop(
        lambda i, x, array: i < 3,
        lambda i, x, array: (i + 1, tf.concat([x, x], 0), array.write(i, tf.reduce_sum(x))),
        [tf.constant(0), tf.ones([2]), tf.TensorArray(tf.float32, 3)],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([])],
    )
    assert x.shape.as_list() == [None]
    np.testing.assert_array_equal(run(array.stack()), [2, 4, 8])


def test_an_invariant_must_admit_the_initial_value():
    with pytest.raises(ValueError, match="is not compatible with the initial shape"):
        tf.while_loop(lambda a: True, lambda a: a, [tf.zeros([2])], shape_invariants=[tf.TensorShape([3])])


def sparse():
    return tf.SparseTensor([[0], [3]], [1.0, 2.0], [10])


def grown(x):
    """`x` with one element more."""
    return tf.SparseTensor(tf.concat([x.indices, [[9]]], 0), tf.concat([x.values, [5.0]], 0), x.dense_shape)


def of_higher_rank(x):
    zeros = tf.zeros_like(x.indices[:, :1])
    return tf.SparseTensor(tf.concat([x.indices, zeros], 1), x.values, tf.concat([x.dense_shape, [1]], 0))


@pytest.mark.parametrize(
    ("change", "invariant", "rank"),
    [
        (grown, None, 1),
        (grown, tf.TensorShape([1]), 1),
        (grown, tf.SparseTensorSpec([None]), 1),
        (of_higher_rank, tf.TensorShape([None]), None),
        (of_higher_rank, tf.TensorShape(None), None),
    ],
)
def test_sparse_variables_of_loops_change_their_number_of_elements(change, invariant, rank):
    invariants = None if invariant is None else [tf.TensorSpec([], tf.int32), invariant]
    _, y = tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, change(x)), [0, sparse()], invariants)
    assert [part.shape.as_list() for part in (y.indices, y.values, y.dense_shape)] == [[None, rank], [None], [rank]]
    indices, values, dense_shape = run(y)
    if rank == 1:
        assert (indices.ravel().tolist(), values.tolist(), dense_shape.tolist()) == ([0, 3, 9, 9], [1, 2, 5, 5], [10])
    else:
        assert indices.tolist() == [[0, 0, 0], [3, 0, 0]] and dense_shape.tolist() == [10, 1, 1]


def test_slices_are_results_of_branches_and_variables_of_loops():
    pred, values = tf.placeholder(tf.bool, []), tf.constant([[1.0], [2.0]])
    narrow, wide = tf.constant([3, 1]), tf.constant([0, 2], tf.int64)
    rows = tf.cond(pred, lambda: tf.IndexedSlices(values * 2, narrow), lambda: tf.IndexedSlices(values, wide))
    assert rows.indices.dtype is tf.int64 and rows.dense_shape is None
    assert [part.tolist() for part in run(rows, {pred: True})[:2]] == [[[2], [4]], [3, 1]]
    assert [part.tolist() for part in run(rows, {pred: False})[:2]] == [[[1], [2]], [0, 2]]

    start = tf.IndexedSlices(values, narrow, tf.constant([4, 1]))
    body = lambda i, x: (i + 1, tf.IndexedSlices(x.values * 2, x.indices, x.dense_shape))  # noqa: E731
    _, end = tf.while_loop(lambda i, x: i < 3, body, [0, start])
    assert end.values.shape.as_list() == [2, 1]
    assert [part.tolist() for part in run(end)] == [[[8], [16]], [3, 1], [4, 1]]
    assert run(tf.gradients(end.values, values)[0]).tolist() == [[8], [8]]
    _, end = tf.while_loop(lambda i, x: i < 3, body, [0, start], [tf.TensorShape([]), tf.TensorShape([None, 1])])
    assert [end.values.shape.as_list(), end.indices.shape.as_list()] == [[None, 1], [None]]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda x: tf.cond(tf.less(1, 2), lambda: x, lambda: x.values), ValueError, "Cannot reconcile tf.cond 0-th"),
        (lambda x: loop_of(tf.constant([1]), tf.SparseTensorSpec([None])), TypeError, "is not compatible with"),
        (lambda x: loop_of(x, tf.TensorSpec(None, tf.int32)), TypeError, "is not compatible with"),
        (lambda x: loop_of(x, tf.TensorShape([5])), ValueError, "is not compatible with"),
        (lambda x: loop_of(x, None, of_higher_rank), ValueError, "after one iteration. To allow the shape to vary"),
        (lambda x: loop_of(x, "foo"), TypeError, "foo"),
    ],
)
def test_what_invariants_and_composites_refuse(make, error, match):
    with pytest.raises(error, match=match):
        make(sparse())


def loop_of(x, invariant, change=lambda x: x):
    invariants = None if invariant is None else [tf.TensorShape([]), invariant]
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, change(x)), [0, x], invariants)


def test_unknown_shapes():
    x = tf.placeholder(tf.float32)
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.ones_like(a)), [0, x])
    for shape in [(), (3,), (2, 2), (0, 2)]:
        np.testing.assert_array_equal(run(y, {x: np.zeros(shape)}), np.full(shape, 3))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: [i + 1, i], [0]), ValueError, "structure"),
        (lambda: tf.while_loop(lambda i, j: i < 3, lambda i, j: i, [0, 1]), ValueError, "structure of loop_vars"),
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.int64), [0]), TypeError, "int64 after an iter"),
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: tf.no_op(), [0]), TypeError, "the operation"),
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: i, []), ValueError, "loop_vars"),
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: i, None), ValueError, "loop_vars"),
        (lambda: tf.while_loop(3, lambda i: i, [0]), TypeError, "two functions"),
        (lambda: tf.while_loop(lambda i: i < 3, 3, [0]), TypeError, "two functions"),
        (lambda: tf.while_loop(lambda i: i, lambda i: i, [0]), InvalidArgumentError, "bool"),
        (lambda: tf.while_loop(lambda i: [i < 3], lambda i: i, [0]), InvalidArgumentError, "expected a scalar"),
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: i, [0], parallel_iterations=0), TypeError, "positive"),
    ],
)
def test_while_loop_refuses(make, error, match):
    with pytest.raises(error, match=match):
        make()


# -- calls that TensorFlow refuses when the graph is built ---------------------------------------------


def _flag():
    return tf.placeholder(tf.bool, [])


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: tf.cond(_flag(), lambda: 1, lambda: 2.0), ValueError, "int32 from true_fn"),
        (lambda: tf.cond(_flag(), lambda: (1, 2), lambda: (3,)), ValueError, "same structure"),
        (lambda: tf.cond(_flag(), lambda: 1, lambda: 2, fn1=lambda: 3), TypeError, "not both"),
        (lambda: tf.case([(True, lambda: 1)], default=lambda: 2), TypeError, "pairs of a bool tensor"),
        (lambda: tf.case([]), ValueError, "at least one pair"),
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], maximum_iterations=[2]), ValueError, "a scalar"),
        (lambda: tf.map_fn(lambda x: (x, x), tf.ones([3])), ValueError, "another structure"),
        (lambda: tf.switch_case(1, [lambda: 1]), TypeError, "integer tensor"),
        (lambda: tf.switch_case(tf.constant(1.0), [lambda: 1]), TypeError, "integer tensor"),
        (lambda: tf.switch_case(tf.constant(1), []), ValueError, "at least one"),
        (lambda: tf.switch_case(tf.constant(1), [1, 2]), TypeError, "functions, or pairs"),
        (lambda: tf.switch_case(tf.constant(1), [(1, lambda: 1), (2, lambda: 2)]), ValueError, "from 0 on"),
    ],
)
def test_malformed_calls_are_refused_as_in_tensorflow(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize("choice", [True, False])
def test_a_list_of_one_stands_for_its_element_in_each_branch(choice):
    pred = tf.placeholder(tf.bool, [])
    one, two = tf.constant(1), tf.constant(2)
    results = [
        tf.cond(pred, lambda: [one], lambda: two),
        tf.cond(pred, lambda: (one,), lambda: [two]),
        tf.case([(pred, lambda: [one]), (tf.logical_not(pred), lambda: two)], default=lambda: (one,)),
    ]
    with tf.Session() as session:
        assert session.run(results, {pred: choice}) == [1 if choice else 2] * 3
    with pytest.raises(ValueError, match="same structure"):
        tf.cond(pred, lambda: [one], lambda: two, strict=True)
    assert isinstance(tf.cond(pred, lambda: [one], lambda: [two], strict=True), list)


@pytest.mark.parametrize(
    "narrowed",
    [lambda x: tf.squeeze(x, [-1]), lambda x: tf.reshape(x, [3]), lambda x: tf.matmul(x[0], x[0])],
)
def test_a_branch_that_is_not_taken_may_not_fit_the_shapes_of_a_step(narrowed):
    x, chosen = tf.placeholder(tf.float32), tf.placeholder(tf.bool, [])
    output = tf.cond(chosen, lambda: tf.log(narrowed(x)), lambda: x * 2)
    with tf.Session() as session:
        for size in (7, 5):
            np.testing.assert_array_equal(session.run(output, {x: np.ones(size), chosen: False}), np.full(size, 2.0))
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(output, {x: np.ones(size), chosen: True})


@pytest.mark.parametrize("read", [lambda v: v, tf.identity], ids=["itself", "copied"])
def test_a_loop_sees_its_updates_through_what_was_read_before_it(read):
    """In TensorFlow 1.15 a copy shares the variable's memory, which GPflow's HMC relies on; the values are its own."""
    v = tf.Variable(np.array([5.0]))
    copied = read(v)

    def descend(i):
        slope = tf.gradients(tf.reduce_sum(tf.square(copied)), v)[0]
        with tf.control_dependencies([v.assign_sub(0.1 * slope)]):
            return i + 1

    def add(i, total):
        with tf.control_dependencies([v.assign_add([1.0])]):
            return i + 1, total + tf.reduce_sum(copied)

    descended = tf.while_loop(lambda i: i < 10, descend, [0], back_prop=False)
    added = tf.while_loop(lambda i, _: i < 3, add, [0, tf.constant(0.0, tf.float64)], back_prop=False)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(descended)
        assert session.run(v)[0] == pytest.approx(0.53687091)
        session.run(v.initializer)
        assert session.run(added) == [3, 21.0]
