"""Several diagonals of matrices at once, whose numbers the graph or only the step knows."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

BANDS = [1, -2, [0], [1, 1], [-1, 1], [0, 2], [-2, -1]]
MATRICES = np.arange(1.0, 25.0).reshape(2, 3, 4)


def _part(matrices, k, fill=0.0):
    """What TensorFlow documents for `matrix_diag_part`: row ``d`` of the stack is diagonal ``k[1] - d``."""
    low, high = (np.ravel(k).tolist() * 2)[:2] if np.size(k) == 1 else k
    rows, columns = matrices.shape[-2:]
    longest = min(rows + min(high, 0), columns - max(low, 0))
    stack = np.full((*matrices.shape[:-2], high - low + 1, longest), fill)
    for d in range(high - low + 1):
        along = np.diagonal(matrices, high - d, -2, -1)
        stack[..., d, : along.shape[-1]] = along
    return stack[..., 0, :] if low == high else stack


@pytest.fixture(params=["constant", "fed"])
def number(request):
    """Makes `k` a tensor, and gives the feeds for it."""

    def make(k):
        if request.param == "constant":
            return tf.constant(k), {}
        fed = tf.placeholder(tf.int64 if np.ndim(k) else tf.int32, np.shape(k))
        return fed, {fed: k}

    return make


@pytest.mark.parametrize("k", BANDS, ids=str)
def test_diagonals_are_read_put_back_and_replaced(session, number, k):
    tensor, feeds = number(k)
    stack = _part(MATRICES, k)
    np.testing.assert_array_equal(session.run(tf.matrix_diag_part(MATRICES, k=tensor), feeds), stack)
    padded = tf.matrix_diag_part(MATRICES, k=tensor, padding_value=9.0)
    np.testing.assert_array_equal(session.run(padded, feeds), _part(MATRICES, k, 9.0))

    only = session.run(tf.matrix_diag(stack, k=tensor, num_rows=3, num_cols=4), feeds)
    np.testing.assert_array_equal(_part(only, k), stack)
    assert np.count_nonzero(only) == np.count_nonzero(stack)

    replaced = session.run(tf.matrix_set_diag(MATRICES, -stack, k=tensor), feeds)
    np.testing.assert_array_equal(replaced, np.where(only != 0, -MATRICES, MATRICES))


@pytest.mark.parametrize("k", BANDS, ids=str)
def test_gradients_flow_along_the_diagonals(session, number, k):
    tensor, feeds = number(k)
    matrices, stack = tf.constant(MATRICES), tf.constant(_part(MATRICES, k))
    along = _part(np.ones_like(MATRICES), k)
    inside = session.run(tf.matrix_diag(along, k=k, num_rows=3, num_cols=4))
    (d_matrices,) = tf.gradients(tf.matrix_diag_part(matrices, k=tensor), matrices)
    (d_stack,) = tf.gradients(tf.matrix_diag(stack, k=tensor, num_rows=3, num_cols=4), stack)
    d_both = tf.gradients(tf.matrix_set_diag(matrices, stack, k=tensor), [matrices, stack])
    assert d_stack.shape == stack.shape
    for found, expected in zip(
        session.run([d_matrices, d_stack, *d_both], feeds), [inside, along, 1 - inside, along], strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_what_is_known_of_shapes_before_a_step():
    one, any_band = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [2])
    assert tf.matrix_diag_part(MATRICES, k=one).shape.as_list() == [2, None]
    assert tf.matrix_diag_part(MATRICES, k=any_band).shape.rank is None
    assert tf.matrix_set_diag(MATRICES, np.ones((2, 2)), k=one).shape == (2, 3, 4)
    assert tf.matrix_diag(np.ones((2, 3)), k=one).shape.as_list() == [2, None, None]
    assert tf.matrix_diag(np.ones((2, 3)), k=one, num_cols=5).shape.as_list() == [2, None, 5]
    assert tf.matrix_diag(np.ones((2, 3)), k=any_band).shape.rank is None
    assert tf.matrix_diag(np.ones(3), k=any_band).shape.as_list() == [None, None]
    assert tf.matrix_diag(np.ones(3), k=1, num_rows=tf.placeholder(tf.int32, [])).shape.as_list() == [None, None]
    assert tf.matrix_diag(np.ones((2, 3)), k=tf.constant([0, 1])).shape == (3, 3)


def test_sizes_of_matrices_may_be_tensors(session):
    rows, columns = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    matrix = tf.linalg.diag([1, 2], k=1, num_rows=rows, num_cols=columns)
    np.testing.assert_array_equal(session.run(matrix, {rows: 2, columns: 3}), [[0, 1, 0], [0, 0, 2]])
    np.testing.assert_array_equal(session.run(matrix, {rows: 4, columns: -1}), np.eye(4, 3, 1) * [0, 1, 2])


@pytest.mark.parametrize(
    ("build", "k", "message"),
    [
        (lambda k: tf.matrix_diag_part(MATRICES, k=k), [2, 1], "lowest and the highest"),
        (lambda k: tf.matrix_diag_part(MATRICES, k=k), [0, 1, 2], "lowest and the highest"),
        (lambda k: tf.matrix_diag_part(MATRICES, k=k), 4, "diagonal 4 is outside"),
        (lambda k: tf.matrix_diag_part(MATRICES, k=k), [-3, 0], "diagonal -3 is outside"),
        (lambda k: tf.matrix_set_diag(MATRICES, np.ones((2, 2)), k=k), 1, "diagonals of shape|incompatible"),
        (lambda k: tf.matrix_diag(np.ones((2, 3)), k=k), [0, 2], "expected 3 of each|incompatible"),
        (lambda k: tf.matrix_diag(np.ones(3), k=k, num_rows=2, num_cols=2), 0, "are not those of 2 x 2"),
    ],
)
def test_what_does_not_fit_is_refused(session, build, k, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        build(k)
    number = tf.placeholder(tf.int32, None)
    late = build(number)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(late, {number: k})


@pytest.mark.parametrize("k", [1.0, "1", [[0, 1]]])
def test_what_is_no_number_of_a_diagonal_is_refused(k):
    with pytest.raises(ValueError, match=r"k must be integers|expected an integer, or"):
        tf.matrix_diag_part(MATRICES, k=k)


def test_a_number_that_is_fed_survives_tensorflows_form(session):
    k = tf.placeholder(tf.int32, [2], name="k")
    part = tf.matrix_diag_part(MATRICES, k=k, padding_value=7.0)
    tf.matrix_set_diag(MATRICES, tf.matrix_diag_part(tf.matrix_diag(part, k=k), k=k) * 2.0, k=k, name="doubled")
    graph = session.graph.as_graph_def()
    types = {node.op for node in graph.node}
    assert {"MatrixDiagV2", "MatrixDiagPartV2", "MatrixSetDiagV2"} <= types
    (doubled,) = tf.import_graph_def(graph, return_elements=["doubled:0"])
    ours, theirs = session.run(["doubled:0", doubled], {k: [0, 0], "import/k:0": [0, 0]})
    np.testing.assert_array_equal(ours, theirs)
