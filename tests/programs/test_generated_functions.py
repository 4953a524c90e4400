"""Functions that TensorFlow generates for its operation types: ``gen_nn_ops.relu_grad`` and its kin."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tfray
from tests.support.processes import PATIENCE_S
from tfray.library.functions.traced_function import Defun
from tfray.programs import tensorflow_modules
from tfray.programs.generated_functions import generated_function

ROW, IMAGE = [[-1.0, 2.0, 3.0]], np.ones([1, 2, 2, 1], np.float32)
QUARTERS = np.arange(1.0, 5.0).reshape(1, 2, 2, 1)

CASES = {  # TensorFlow 2.21's results
    "ops.gen_nn_ops.relu_grad": (lambda f: f(tfray.ones([1, 3]), ROW), [[0, 1, 1]]),
    "ops.gen_nn_ops._relu_grad": (lambda f: f(ROW, tfray.constant(ROW), name="guided"), [[0, 2, 3]]),
    "ops.gen_nn_ops.elu_grad": (lambda f: f(ROW, ROW), [[0, 2, 3]]),
    "ops.gen_nn_ops.max_pool_grad": (
        lambda f: f(IMAGE, [[[[1.0]]]], [[[[1.0]]]], [1, 2, 2, 1], [1, 2, 2, 1], padding="VALID"),
        [[[[1], [0]], [[0], [0]]]],
    ),
    "ops.gen_nn_ops._avg_pool_grad": (
        lambda f: f([1, 2, 2, 1], [[[[1.0]]]], [1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
        [[[[0.25], [0.25]], [[0.25], [0.25]]]],
    ),
    "ops.gen_nn_ops.fractional_avg_pool_grad": (  # 1.15's, and the next as well
        lambda f: f([1, 3, 3, 1], QUARTERS, [0, 1, 3], [0, 2, 3], overlapping=True),
        np.reshape([1, 1, 7, 4, 4, 22, 3, 3, 15], [1, 3, 3, 1]) / 6,
    ),
    "ops.gen_nn_ops.fractional_max_pool_grad": (
        lambda f: f(
            np.arange(9.0).reshape(1, 3, 3, 1), [[[[1.0], [2.0]], [[7.0], [8.0]]]], QUARTERS, [0, 1, 3], [0, 2, 3]
        ),
        np.reshape([0, 1, 2, 0, 0, 0, 0, 3, 4], [1, 3, 3, 1]),
    ),
    "ops.gen_nn_ops.top_kv2": (lambda f: f(ROW, 2).indices, [[2, 1]]),
    "ops.nn_ops.conv2d_backprop_input": (
        lambda f: f([1, 3, 3, 1], IMAGE.reshape(2, 2, 1, 1), IMAGE, strides=[1, 1, 1, 1], padding="VALID"),
        [[[[1], [2], [1]], [[2], [4], [2]], [[1], [2], [1]]]],
    ),
    "ops.gen_math_ops.sigmoid_grad": (lambda f: f(ROW, ROW), [[2, -4, -18]]),
    "ops.gen_math_ops.tanh_grad": (lambda f: f(np.float32(ROW), ROW), [[0, -6, -24]]),
    "ops.gen_math_ops._sum": (lambda f: f(ROW, 1, keep_dims=True), [[4]]),
    "ops.gen_array_ops._concat_v2": (lambda f: f([ROW, ROW], 1), [ROW[0] + ROW[0]]),
    "ops.gen_array_ops.split": (lambda f: f(1, ROW, 3)[2], [[3]]),
    "ops.gen_array_ops.broadcast_gradient_args": (lambda f: f([2, 1, 5], [3, 1])[1], [0, 2]),
    "ops.gen_array_ops.ref_identity": (lambda f: f(tfray.global_variables()[0]), [1, 2]),
    "ops.gen_image_ops.non_max_suppression_v3": (
        lambda f: f([[0, 0, 1, 1], [0, 0, 1, 1.1], [5, 5, 6, 6]], [0.9, 0.8, 0.7], 3, 0.5, 0.1),
        [0, 2],
    ),
    "ops.gen_nn_ops.data_format_dim_map": (lambda f: f([-4, -1, 0, 3, 2]), [0, 1, 0, 1, 3]),
    "ops.nn_ops.data_format_vec_permute": (lambda f: f([7, 4, 9, 3]), [7, 3, 4, 9]),
    "ops.gen_nn_ops.data_format_vec_permute": (
        lambda f: f([[7, 4], [9, 3], [4, 5], [5, 1]], src_format="NCHW", dst_format="NHWC"),
        [[7, 4], [4, 5], [5, 1], [9, 3]],
    ),
    "ops.gen_state_ops.scatter_sub": (lambda f: f(tfray.global_variables()[0], [1], [5.0]), [1, -3]),
    "ops.gen_state_ops._assign": (lambda f: f(tfray.global_variables()[0], [5.0, 6.0]), [5, 6]),
    "training.training_ops.apply_gradient_descent": (
        lambda f: f(tfray.global_variables()[0], 0.5, tfray.ones([2]), use_locking=True),
        [0.5, 1.5],
    ),
    "training.training_ops.apply_adam": (
        lambda f: f(*tfray.global_variables(), 0.9, 0.999, 0.1, 0.9, 0.999, 1e-8, [1.0, 1.0], use_nesterov=False),
        [0.9, 1.9],
    ),
    "training.gen_training_ops.sparse_apply_adagrad": (
        lambda f: f(*tfray.global_variables()[:2], 0.1, [2.0], tfray.constant([1])),
        [1, 1.9],
    ),
}


@pytest.fixture
def tf(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield tensorflow_modules.install()
    tensorflow_modules._forget()


def _found(tf, path):
    import importlib

    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"tensorflow.python.{module}"), name)


@pytest.mark.parametrize("path", CASES)
def test_values(tf, path):
    call, expected = CASES[path]
    for index, value in enumerate(([1.0, 2.0], [0.0, 0.0], [0.0, 0.0])):
        tfray.Variable(value, name=f"v{index}")
    made = call(_found(tf, path))
    with tfray.Session() as session:
        session.run(tfray.global_variables_initializer())
        np.testing.assert_allclose(session.run(made), expected, rtol=1e-5)
        if "apply" in path:
            np.testing.assert_allclose(session.run(tfray.global_variables()[0]), expected, rtol=1e-5)


def test_handles_names_and_shapes(tf):
    v = tfray.Variable([1.0, 2.0], name="v")
    with tfray.name_scope("outer"):
        update = _found(tf, "training.training_ops.resource_apply_gradient_descent")(v.handle, 1.0, [1.0, 1.0])
        gradient = _found(tf, "ops.gen_nn_ops.relu_grad")(tfray.ones([2]), [1.0, 2.0], "back")
    assert (update.name, gradient.op.name) == ("outer/ResourceApplyGradientDescent", "outer/back")
    assert gradient.shape.as_list() == [2] and tfray.global_variables() == [v]
    assert "Placeholder" not in {op.type for op in tfray.get_default_graph().get_operations()}
    joined = _found(tf, "ops.gen_array_ops.concat_v2")([tfray.ones([2, 3]), tfray.ones([2, 3])], 0)
    assert joined.shape.as_list() == [4, 3], "the axis is a constant of the graph"
    with tfray.Session() as session:
        session.run(v.initializer)
        session.run(update)
        assert session.run(v).tolist() == [0, 1]


def test_functions_by_the_names_of_their_types(tf):
    names = tf.raw_ops.TopKV2(input=ROW, k=2), tf.raw_ops.DataFormatDimMap(x=tfray.constant([1]), dst_format="NCHW")
    with tfray.Session() as session:
        found = session.run([names[0].indices, names[1]])
    assert [each.tolist() for each in found] == [[[2, 1]], [2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="same dimensions"):
        tf.raw_ops.DataFormatDimMap(x=[1], src_format="NHWC", dst_format="NHW")
    with pytest.raises(AttributeError, match=r"tf\.raw_ops\.TopKV9 does not exist"):
        _ = tf.raw_ops.TopKV9


def test_variables_that_are_made_of_their_type(tf):
    handle = _found(tf, "ops.gen_state_ops.variable_v2")(shape=[2], dtype=tfray.float32, name="made")
    assert handle.op.name == "made" and handle.op.node_def.op == "VariableV2"


def test_functions_that_work_on_names_and_files(tf):
    spec = _found(tf, "ops.gen_io_ops.sharded_filespec")("foo", 100)
    parts = _found(tf, "ops.io_ops.restore_v2")("model", ["a", "b"], ["", "3 4 0,1:-"], [tfray.float32] * 2)
    assert [part.shape for part in parts] == [tfray.TensorShape(None), [1, 4]]
    with tfray.Session() as session:
        assert session.run(spec) == b"foo-?????-of-00100"
        with pytest.raises(tfray.errors.NotFoundError):
            session.run(parts)


def test_wrong_calls(tf):
    descend = _found(tf, "training.training_ops.apply_gradient_descent")
    with pytest.raises(TypeError, match=r"missing a required argument: 'delta': its arguments are \(var, alpha, delta"):
        descend(tfray.Variable(1.0), 0.5)
    with pytest.raises(AttributeError, match=r"tf\.python\.ops\.gen_nn_ops\.relu_grads does not exist"):
        _found(tf, "ops.gen_nn_ops.relu_grads")


def test_functions_are_there_before_any_graph_is_imported():
    # In a process of its own: here other tests have loaded the rules.
    code = "from tfray.programs.generated_functions import generated_function as f; f('concat_offset').__name__"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)


def test_filled_rows_have_vectors_of_gradients(session):
    function = generated_function("sparse_fill_empty_rows_grad")
    places = tfray.constant([2, 1], tfray.int64)
    found = session.run(function(reverse_index_map=places, grad_values=[0, 1, 2, 3]))
    assert found.d_values.tolist() == [2, 1] and found.d_default_value == 3
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 2"):
        function(reverse_index_map=places, grad_values=[[0, 1], [2, 3]])


def test_operations_on_the_handle_that_a_function_gets(session):
    """Within the function only the handle is known, not the variable."""
    read, add = generated_function("read_variable_op"), generated_function("assign_add_variable_op")
    v = tfray.get_variable("v", [2], initializer=tfray.constant_initializer([1.0, 5.0]), use_resource=True)

    @Defun(tfray.resource)
    def added(handle):
        with tfray.control_dependencies([add(handle, tfray.constant([2.0, 3.0]))]):
            return read(handle, tfray.float32) * 2

    session.run(v.initializer)
    assert session.run(added(v.handle)).tolist() == [6, 16]
    assert session.run(v).tolist() == [3, 8]


def test_the_gradient_of_a_decomposition(session):
    values = np.array([[4.0, -1.0, 2.0], [-1.0, 6.0, 0.0], [2.0, 0.0, 5.0]])
    x, d_chol = tfray.constant(values), tfray.constant(np.tril(values + 1))
    chol = tfray.cholesky(x)
    found = generated_function("cholesky_grad")(chol, d_chol)
    np.testing.assert_allclose(*session.run([found, tfray.gradients(chol, x, d_chol)[0]]))
    step = 1e-6 * (np.eye(3)[:, :1] @ np.eye(3)[1:2] + np.eye(3)[:, 1:2] @ np.eye(3)[:1])
    slope = (np.linalg.cholesky(values + step) - np.linalg.cholesky(values - step)) / 2e-6
    np.testing.assert_allclose(2 * session.run(found)[0, 1], (slope * np.tril(values + 1)).sum(), rtol=1e-6)


def test_tables_are_given_by_their_handles(session):
    def function(name):
        return generated_function(name)

    table = function("mutable_hash_table_v2")(tfray.string, tfray.float32, shared_name="counts")
    handle = session.run(function("lookup_table_insert_v2")(table, ["a", "b"], [1.0, 2.0]))
    assert handle is None
    keys, values = session.run(function("lookup_table_export_v2")(table, tfray.string, tfray.float32))
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {b"a": 1, b"b": 2}
    found = function("lookup_table_find_v2")(table, tfray.constant(["b", "c"]), -1.0)
    assert session.run(found).tolist() == [2, -1] and session.run(function("lookup_table_size_v2")(table)) == 2
