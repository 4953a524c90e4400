"""What programs import from TensorFlow's modules of recurrent networks for cells of their own."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.programs import cell_internals as cells

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


@pytest.mark.parametrize(
    ("make", "bias", "names"),
    [
        (lambda: cells.linear([X, X], 4, True), 0, ["kernel", "bias"]),
        (lambda: cells.linear(X, 4, True, 2.0), 2, ["kernel", "bias"]),
        (lambda: cells.linear([X], 4, True, bias_start=3.0), 3, ["kernel", "bias"]),
        (lambda: cells.linear([X], 4, True, tf.constant_initializer(5.0)), 5, ["kernel", "bias"]),
        (lambda: cells.linear(X, 4, False, scope="Gates"), None, ["Gates/kernel"]),
        (lambda: cells.Linear([X, X], 4, True)([X, X]), 0, ["kernel", "bias"]),
        (lambda: cells.Linear(X, 4, True, tf.constant_initializer(1.0))(X), 1, ["kernel", "bias"]),
    ],
)
def test_linear_layers_in_the_forms_of_all_versions(make, bias, names):
    result = make()
    assert [variable.op.name for variable in tf.global_variables()] == names
    value, *variables = run([result, *tf.global_variables()])
    inputs = np.concatenate([X] * (len(variables[0]) // 3), 1)
    np.testing.assert_allclose(value, inputs @ variables[0] + (bias or 0), rtol=1e-5)


def test_shapes_of_states():
    batch = tf.placeholder_with_default(2, [])
    assert cells.concat(3, [4, None], static=True) == [3, 4, None]
    assert cells.concat(batch, tf.TensorShape([4]), static=True) == [None, 4]
    assert run(cells.concat(batch, 4)).tolist() == [2, 4]
    with pytest.raises(ValueError, match="must be fully defined"):
        cells.concat(3, [None])
    assert cells.best_effort_input_batch_size([tf.placeholder(tf.float32, [None, 7, 3])]) == 7
    assert cells.tensor_shape_from_tensor(tf.constant([3, 4])).as_list() == [3, 4]
    assert cells.tensor_shape_from_tensor([None, 4]).as_list() == [None, 4]
    assert not cells.should_cache()
    zeros = cells.create_zero_outputs((3, tf.TensorShape([2, 2])), (tf.float32, tf.int32), 5)
    assert [(each.shape.as_list(), each.dtype) for each in zeros] == [([5, 3], tf.float32), ([5, 2, 2], tf.int32)]


def test_dtypes_of_states():
    assert cells.infer_state_dtype(tf.float64, ()) is tf.float64
    assert cells.infer_state_dtype(None, (tf.zeros([2]), tf.ones([3]))) is tf.float32
    for state in ((tf.zeros([2]), tf.ones([3], tf.int32)), ()):
        with pytest.raises(ValueError, match=r"different dtypes|empty state"):
            cells.infer_state_dtype(None, state)


def test_cells_are_known_by_what_they_have():
    assert cells.like_rnncell(tf.nn.rnn_cell.GRUCell(3)) and not cells.like_rnncell(3)
    with pytest.raises(TypeError, match=r"'cell_fw' .*is not an RNNCell"):
        cells.assert_like_rnncell("cell_fw", 3)


def test_a_step_of_a_loop_of_ones_own():
    lengths = tf.constant([1, 3])
    output, state = cells.rnn_step(
        tf.constant(2),
        lengths,
        1,
        3,
        tf.zeros([2, 3]),
        (tf.ones([2, 1]),),
        lambda: (tf.constant(X), (tf.zeros([2, 1]),)),
        (1,),
    )
    output, (state,) = run([output, state])
    assert output.tolist() == [[0, 0, 0], [3, 4, 5]] and state.tolist() == [[1], [0]]


def test_loops_of_decoders():
    embedding = tf.constant(X)
    project = (tf.constant([[1.0, 0.0], [0.0, 1.0]]), tf.constant([0.0, 0.0]))
    loop = cells.extract_argmax_and_embed(embedding, project, update_embedding=False)
    taken = loop(tf.constant([[0.1, 0.9], [0.9, 0.1]]), 0)
    second = cells.unstacked(tf.constant(X)).read(1)
    rows, row = run([taken, second])
    assert rows.tolist() == X[[1, 0]].tolist() and row.tolist() == X[1].tolist()
    assert tf.gradients(taken, embedding) == [None]
