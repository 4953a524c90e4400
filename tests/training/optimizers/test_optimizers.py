"""What optimizers have in common, and the fused updates under them."""

from __future__ import annotations

import types
from contextlib import nullcontext

import numpy as np
import pytest

import tfray as tf
from tests.support.interpreter import interpret
from tfray.errors import FailedPreconditionError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.variables.variables import Variable, global_variables_initializer
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.state import sparse_state_ops, state_ops, training_ops
from tfray.ops.state.updates import add_either
from tfray.runtime.device import Device
from tfray.session import Session
from tfray.training.optimizers.adagrad import AdagradOptimizer
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.optimizer import Optimizer, var_key
from tfray.training.optimizers.slot_creator import create_slot, create_zeros_slot
from tfray.training.threads.global_step import (
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)


def test_scalar_and_empty_variables():
    single, empty = Variable(3.0), Variable(np.zeros((0, 4), np.float32))
    train_op = AdamOptimizer(0.1).apply_gradients([(constant(5.0), single), (array_ops.zeros([0, 4]), empty)])
    sparse_op = GradientDescentOptimizer(1.0).apply_gradients(
        [(IndexedSlices(array_ops.zeros([0, 4]), constant([], "int32")), empty)]
    )
    with Session() as session:
        session.run(global_variables_initializer())
        session.run([train_op, sparse_op])
        np.testing.assert_allclose(session.run(single), 2.9, rtol=1e-6)


def test_published_example_of_adam():
    # The first step of Adam has the size of the learning rate whatever the gradient (section 2.1 of the paper).
    var = Variable([1.0, 1.0, 1.0])
    train_op = AdamOptimizer(0.001).apply_gradients([(constant([1e-3, -1.0, 1e3]), var)])
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run(var), [0.999, 1.001, 0.999], rtol=1e-5)


# -- training ----------------------------------------------------------------------------------------------


def linear_regression():
    random = np.random.default_rng(7)
    inputs = random.normal(size=(64, 3)).astype(np.float32)
    targets = (inputs @ [[1.0], [-2.0], [0.5]] + 0.7).astype(np.float32)
    weights, bias = Variable(np.zeros((3, 1), np.float32), name="weights"), Variable([0.0], name="bias")
    error = linalg_ops.matmul(constant(inputs), weights) + bias - constant(targets)
    return math_ops.reduce_mean(math_ops.square(error)), weights, bias


@pytest.mark.parametrize("gate", [Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH])
@pytest.mark.parametrize(
    "optimizer",
    [
        GradientDescentOptimizer(0.2),
        MomentumOptimizer(0.05, 0.8),
        AdagradOptimizer(0.7),
        AdamOptimizer(0.1),
    ],
    ids=lambda optimizer: optimizer.get_name(),
)
def test_linear_regression_converges(optimizer, gate):
    loss, weights, bias = linear_regression()
    step = get_or_create_global_step()
    train_op = optimizer.minimize(loss, global_step=step, gate_gradients=gate)
    with Session() as session:
        session.run(global_variables_initializer())
        for _ in range(200):
            session.run(train_op)
        np.testing.assert_allclose(session.run(weights)[:, 0], [1.0, -2.0, 0.5], atol=0.02)
        np.testing.assert_allclose(session.run(bias), [0.7], atol=0.02)
        assert global_step(session, step) == 200


def test_embeddings_train_by_the_rows_used():
    table = Variable(np.ones((5, 2), np.float32), name="table")
    rows = sparse_state_ops.resource_gather(table, [1, 3, 1])
    optimizer = AdamOptimizer(0.1)
    train_op = optimizer.minimize(math_ops.reduce_sum(math_ops.square(rows)))
    with Session() as session:
        session.run(global_variables_initializer())
        for _ in range(40):
            session.run(train_op)
        values = session.run(table)
    np.testing.assert_allclose(values[[0, 2, 4]], 1.0)
    assert np.abs(values[[1, 3]]).max() < 0.2


def test_a_step_reads_the_values_from_before_its_updates():
    var = Variable([2.0])
    loss = math_ops.reduce_sum(var * var)
    train_op = GradientDescentOptimizer(0.25).minimize(loss)
    with Session() as session:
        session.run(global_variables_initializer())
        assert [float(session.run([loss, train_op])[0]) for _ in range(3)] == [4.0, 1.0, 0.25]


def test_a_step_reads_slots_from_before_its_updates_too():
    var = Variable([2.0])
    optimizer = MomentumOptimizer(0.5, 1.0)
    train_op = optimizer.minimize(var * 1.0)
    late_read = optimizer.get_slot(var, "momentum").read_value() * 1.0
    with Session() as session:
        session.run(global_variables_initializer())
        assert [float(session.run([late_read, train_op])[0][0]) for _ in range(3)] == [0.0, 1.0, 2.0]


def test_the_gradient_may_be_the_variable_itself():
    var = Variable(np.arange(6, dtype=np.float32).reshape(2, 3))
    square = Variable(np.arange(9, dtype=np.float32).reshape(3, 3))
    optimizer = MomentumOptimizer(0.5, 0.9)
    train_op = optimizer.apply_gradients([(var.value(), var), (array_ops.transpose(square), square)])
    expected = np.arange(9.0).reshape(3, 3)
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run(var), np.arange(6).reshape(2, 3) / 2)
        np.testing.assert_allclose(session.run(square), expected - 0.5 * expected.T)


@pytest.mark.parametrize("rate", [0.5, lambda: 0.5, lambda: constant(0.5), np.float64(0.5)])
def test_learning_rates_may_be_numbers_tensors_or_functions(rate):
    var = Variable(np.array([1.0, 2.0]))
    train_op = GradientDescentOptimizer(rate).apply_gradients([(constant([1.0, 1.0], "float64"), var)])
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run(var), [0.5, 1.5])


def test_a_fed_learning_rate():
    var, rate = Variable([1.0]), placeholder("float32", [])
    train_op = GradientDescentOptimizer(rate).apply_gradients([(constant([1.0]), var)])
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op, {rate: 0.25})
        session.run(train_op, {rate: 0.5})
        np.testing.assert_allclose(session.run(var), [0.25])


def test_constraints_hold_after_each_update():
    var = Variable([1.0, 1.0], constraint=lambda value: math_ops.maximum(value, 0.0))
    train_op = GradientDescentOptimizer(1.0).apply_gradients([(constant([3.0, 0.5]), var)])
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run(var), [0.0, 0.5])


def test_two_losses_share_variables_and_slots():
    var = Variable([1.0])
    optimizer = MomentumOptimizer(0.1, 0.5)
    ops = [optimizer.minimize(var * scale) for scale in (1.0, 2.0)]
    assert len(optimizer.variables()) == 1
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(ops[0])
        session.run(ops[1])
        np.testing.assert_allclose(session.run(var), [1 - 0.1 - 0.1 * 2.5])


def test_functions_in_the_graph_see_each_gradient(graph):
    seen = []

    def combine(gradient, variable):
        seen.append(variable)
        return gradient * 10.0

    graph.extra("replica_aggregation", list).append(combine)
    first, second = Variable([1.0]), Variable([1.0])
    train_op = GradientDescentOptimizer(0.01).minimize(first * 2.0 + second * 3.0)
    assert seen == [first, second]
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run([first, second]), [[0.8], [0.7]])


# -- optimizers are user-level code ------------------------------------------------------------------------


class PlainMomentum(Optimizer):
    """Momentum as a user would write it for TensorFlow 1, from operations that have nothing to do with training."""

    def __init__(self, learning_rate, momentum, use_locking=False, name="PlainMomentum"):
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._momentum = momentum

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "sum", self._name)
        self._create_non_slot_variable(0.0, "steps", min(var_list, key=lambda v: v.name))

    def _prepare(self):
        self._lr_t = convert_to_tensor(self._call_if_callable(self._lr), name="learning_rate")

    def _apply_dense(self, grad, var):
        slot = self.get_slot(var, "sum")
        new = slot.assign(self._momentum * slot + grad)
        return var.assign_sub(self._lr_t * new)

    def _apply_sparse(self, grad, var):
        slot = self.get_slot(var, "sum")
        rows = self._momentum * array_ops.gather(slot, grad.indices) + grad.values
        new = sparse_state_ops.scatter_update(slot, grad.indices, rows)
        with new.graph.control_dependencies([new]):
            return sparse_state_ops.scatter_sub(var, grad.indices, self._lr_t * rows)

    def _finish(self, update_ops, name_scope):
        steps = self._get_non_slot_variable("steps")
        with steps.graph.control_dependencies(update_ops):
            return grouping_ops.group(*update_ops, steps.assign_add(1.0), name=name_scope)


@pytest.mark.parametrize("sparse", [False, True])
def test_an_optimizer_from_plain_operations(sparse):
    start = np.arange(8, dtype=np.float32).reshape(4, 2)
    ours, theirs = Variable(start), Variable(start)

    def loss(var):
        value = sparse_state_ops.resource_gather(var, [1, 2, 1]) if sparse else var
        return math_ops.reduce_sum(math_ops.square(value))

    plain = PlainMomentum(0.1, 0.6)
    steps = [plain.minimize(loss(ours)), MomentumOptimizer(0.1, 0.6).minimize(loss(theirs))]
    with Session() as session:
        session.run(global_variables_initializer())
        for _ in range(4):
            session.run(steps)
        first, second, count = session.run([ours, theirs, plain._get_non_slot_variable("steps")])
    np.testing.assert_allclose(first, second, rtol=1e-5)
    assert count == 4.0
    assert plain.get_slot_names() == ["sum"]


class ResourceDescent(Optimizer):
    """An optimizer that overrides the methods with handles, as later TensorFlow 1 programs do."""

    def __init__(self):
        super().__init__(False, "ResourceDescent")

    def _resource_apply_dense(self, grad, handle):
        return state_ops.assign_sub(handle, 0.5 * grad)

    def _resource_apply_sparse(self, grad, handle, indices):
        return sparse_state_ops.scatter_sub(handle, indices, 0.5 * grad)


def test_methods_that_take_handles():
    dense, table = Variable([1.0, 2.0]), Variable(np.zeros((3, 1), np.float32))
    loss = math_ops.reduce_sum(dense) + math_ops.reduce_sum(sparse_state_ops.resource_gather(table, [2, 2]))
    train_op = ResourceDescent().minimize(loss)
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run(dense), [0.5, 1.5])
        np.testing.assert_allclose(session.run(table)[:, 0], [0, 0, -1])


class Both(Optimizer):
    """An optimizer with methods for variables and for handles."""

    def __init__(self):
        super().__init__(False, "Both")

    def _apply_dense(self, grad, var):
        return state_ops.assign_sub(var, 0.5 * grad)

    def _apply_sparse(self, grad, var):
        return sparse_state_ops.scatter_sub(var, grad.indices, 0.5 * grad.values)

    def _resource_apply_dense(self, grad, handle):
        raise AssertionError("not for the usual variables")

    def _resource_apply_sparse(self, grad, handle, indices):
        raise AssertionError("not for the usual variables")


class LastHandles(Both):
    def _resource_apply_dense(self, grad, handle):
        return state_ops.assign_sub(handle, grad)


def test_of_two_methods_the_one_for_variables_is_called_unless_the_other_is_newer():
    dense, table = Variable([1.0, 2.0]), Variable(np.zeros((3, 1), np.float32))
    loss = math_ops.reduce_sum(dense) + math_ops.reduce_sum(sparse_state_ops.resource_gather(table, [2, 2]))
    steps = [Both().minimize(loss), LastHandles().minimize(loss, var_list=[dense])]
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(steps[0])
        assert session.run([dense, table[:, 0]])[0].tolist() == [0.5, 1.5] and session.run(table)[2] == -1
        session.run(steps[1])
        assert session.run(dense).tolist() == [-0.5, 0.5]


class OwnRows(MomentumOptimizer):
    """An optimizer that changes what another one does with rows."""

    def _apply_sparse(self, grad, var):
        self.seen = grad
        return super()._apply_sparse(IndexedSlices(2.0 * grad.values, grad.indices, grad.dense_shape), var)


def test_rows_are_the_deriving_classs_business():
    table, other = Variable(np.zeros((3, 1), np.float32)), Variable(np.zeros((3, 1), np.float32))
    rows = [math_ops.reduce_sum(sparse_state_ops.resource_gather(each, [2, 2, 1])) for each in (table, other)]
    optimizer = OwnRows(0.5, 0.9)
    steps = [optimizer.minimize(rows[0]), MomentumOptimizer(0.5, 0.9).minimize(2.0 * rows[1])]
    with Session() as session:
        session.run(global_variables_initializer())
        for _ in range(3):
            session.run(steps)
        np.testing.assert_allclose(*session.run([table, other]))
        assert sorted(session.run(optimizer.seen.indices)) == [1, 2], "each row once"


class Halved(MomentumOptimizer):
    """An optimizer that changes what every form of an update of another one does, in a condition too."""

    def _apply_dense(self, grad, var):
        return super()._apply_dense(0.5 * grad, var)

    def _resource_apply_dense(self, grad, handle):
        return super()._resource_apply_dense(0.5 * grad, handle)

    def _apply_sparse(self, grad, var):
        return super()._apply_sparse(IndexedSlices(0.5 * grad.values, grad.indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        grad = tf.convert_to_tensor(IndexedSlices(grad, indices, tf.shape(handle)))
        return tf.cond(grad[0, 0] > -1, lambda: super(Halved, self)._resource_apply_dense(0.5 * grad, handle), tf.no_op)


def test_each_form_of_an_update_reaches_the_one_that_it_changes():
    dense, table = Variable([1.0, 2.0]), Variable(np.zeros((3, 1), np.float32))
    loss = math_ops.reduce_sum(dense) + math_ops.reduce_sum(sparse_state_ops.resource_gather(table, [2, 2]))
    optimizer = Halved(1.0, 0.9)
    train_op = optimizer.minimize(loss)
    with tf.control_dependencies([train_op]):
        again = optimizer._resource_apply_dense(tf.constant([2.0, 2.0]), dense)
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(again)
        np.testing.assert_allclose(session.run(dense), [1.0 - 0.5 - 1.45, 2.0 - 0.5 - 1.45], rtol=1e-5)
        np.testing.assert_allclose(session.run(table)[:, 0], [0, 0, -1])


class OwnRowsOfAdam(AdamOptimizer):
    """An optimizer that touches only the rows of a sparse gradient, as many programs have copied it."""

    def _apply_sparse(self, grad, var):
        m = self.get_slot(var, "m")
        rows = 0.5 * array_ops.gather(m, grad.indices) + grad.values
        new = sparse_state_ops.scatter_update(m, grad.indices, rows)
        return grouping_ops.group(new, sparse_state_ops.scatter_sub(var, grad.indices, rows))


class SharedRowsOfAdam(AdamOptimizer):
    """An optimizer that overrides what Adam does with rows in both of its forms."""

    def _apply_sparse_shared(self, grad, var, indices, scatter_add):
        with get_default_graph().control_dependencies([self.get_slot(var, "m").assign_add([[1.0], [1.0], [1.0]])]):
            moved = scatter_add(self.get_slot(var, "v"), indices, grad)
        return state_ops.assign_sub(var, moved)


@pytest.mark.parametrize(
    ("kind", "expected"), [(OwnRowsOfAdam, [0, -2.5, -5]), (SharedRowsOfAdam, [0, -3, -6])], ids=["own", "shared"]
)
def test_rows_of_adam_are_the_deriving_classs_business(kind, expected):
    table = Variable(np.zeros((3, 1), np.float32))
    step = kind(0.5).minimize(math_ops.reduce_sum(sparse_state_ops.resource_gather(table, [2, 2, 1])))
    with Session() as session:
        session.run(global_variables_initializer())
        for _ in range(2):
            session.run(step)
        assert session.run(table)[:, 0].tolist() == expected


def test_slots_are_found_by_handles():
    v, w = Variable([1.0]), Variable([1.0])
    optimizer = MomentumOptimizer(0.5, 0.9)
    optimizer.minimize(v * v)
    assert optimizer.get_slot(v.handle, "momentum") is optimizer.get_slot(v, "momentum") is not None
    assert optimizer.get_slot(w.handle, "momentum") is None and optimizer.get_slot(v.handle, "other") is None


def test_optimizers_derive_from_the_base_itself():
    """Libraries tell by ``__base__`` what is an optimizer."""
    found = [name for name in tf.train.__all__ if name.endswith("Optimizer") and name != "Optimizer"]
    assert len(found) > 9
    assert {name for name in found if getattr(tf.train, name).__base__ is not tf.train.Optimizer} == set()


class WithKeywords(GradientDescentOptimizer):
    """An optimizer whose methods take what follows by name, as wrappers of TensorFlow 1 programs do."""

    def compute_gradients(self, loss, var_list=None, **kwargs):
        assert set(kwargs) >= {"gate_gradients", "grad_loss"}
        return super().compute_gradients(loss, var_list, **kwargs)

    def apply_gradients(self, grads_and_vars, **kwargs):
        return super().apply_gradients(grads_and_vars, **kwargs)


def test_minimize_passes_arguments_by_name():
    v = Variable(3.0)
    train_op = WithKeywords(0.5).minimize(v * v, name="step")
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        assert session.run(v) == 0 and train_op.name == "step"


def test_an_optimizer_without_updates_says_so():
    class Nothing(Optimizer):
        pass

    table = Variable(np.zeros((3, 1), np.float32), name="table")
    with pytest.raises(NotImplementedError, match="Nothing defines neither _apply_dense"):
        Nothing(False, "n").minimize(table * 1.0)
    with pytest.raises(NotImplementedError, match=r"_apply_sparse.*'table' is sparse"):
        Nothing(False, "n").minimize(math_ops.reduce_sum(sparse_state_ops.resource_gather(table, [0])))


# -- names, slots and devices ------------------------------------------------------------------------------


def test_names_of_slots_and_operations(graph):
    var = Variable([1.0], name="layer/w")
    optimizer = AdamOptimizer()
    train_op = optimizer.minimize(var * 2.0)
    assert train_op.name == "Adam"
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(var, "m").op.name == "layer/w/Adam"
    assert optimizer.get_slot(var, "v").op.name == "layer/w/Adam_1"
    assert [v.op.name for v in optimizer.variables()] == [
        "beta1_power",
        "beta2_power",
        "layer/w/Adam",
        "layer/w/Adam_1",
    ]
    assert graph.get_operation_by_name("Adam/update_layer/w/ApplyAdam")
    assert graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) == [var]
    assert set(optimizer.variables()) < set(graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
    assert graph.get_collection(GraphKeys.TRAIN_OP) == [train_op]
    assert optimizer.get_slot(var, "nothing") is None


def test_slots_and_updates_are_with_their_variable(graph):
    with graph.device("/job:ps/task:1"):
        var = Variable([1.0], name="w")
    optimizer = MomentumOptimizer(0.1, 0.9)
    with graph.device("/job:worker"):
        optimizer.minimize(var * 2.0)
    assert optimizer.get_slot(var, "momentum").device == "/job:ps/task:1"
    update = graph.get_operation_by_name("Momentum/update_w/ApplyMomentum")
    assert update.device == "/job:ps/task:1"
    assert b"loc:@w" in update.colocation_groups()


def test_the_step_counter_moves_after_the_updates(graph):
    var, step = Variable([1.0], name="w"), create_global_step()
    train_op = GradientDescentOptimizer(0.1).minimize(var * 2.0, global_step=step)
    (gate,) = train_op.inputs[1].op.control_inputs
    assert [op.name for op in gate.control_inputs] == ["GradientDescent/update_w/ApplyGradientDescent"]


def test_slot_creator():
    var = Variable([1.0, 2.0], name="w")
    slots = [create_slot(var, [3.0, 4.0], "S"), create_zeros_slot(var, "S"), create_zeros_slot(var, "T", "int64")]
    assert [slot.op.name for slot in slots] == ["w/S", "w/S_1", "w/T"]
    with Session() as session:
        session.run(global_variables_initializer())
        assert [value.tolist() for value in session.run(slots)] == [[3.0, 4.0], [0.0, 0.0], [0, 0]]
        assert slots[2].dtype is dtypes.int64


def test_variables_of_unknown_shape():
    value = placeholder("float32")
    var = Variable(value, validate_shape=False)
    optimizer = AdagradOptimizer(1.0, initial_accumulator_value=4.0)
    train_op = optimizer.minimize(var * 0.0)
    with Session() as session:
        session.run(global_variables_initializer(), {value: [[1.0, 2.0]]})
        session.run(train_op)
        assert session.run(optimizer.get_slot(var, "accumulator")).tolist() == [[4.0, 4.0]]


def test_global_step(graph):
    assert get_global_step() is None
    step = get_or_create_global_step()
    assert get_or_create_global_step() is step
    assert (step.op.name, step.dtype, step.shape.as_list()) == ("global_step", dtypes.int64, [])
    with pytest.raises(InvalidArgumentError, match="already"):
        create_global_step()
    assert graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) == []


def test_a_variable_named_global_step_is_found():
    step = Variable(0, name="global_step", trainable=False)
    assert get_global_step() is step
    with Graph().as_default():
        Variable(0.0, name="global_step")
        with pytest.raises(InvalidArgumentError, match="float32"):
            get_global_step()


# -- errors ------------------------------------------------------------------------------------------------


def test_nothing_to_optimise():
    optimizer = GradientDescentOptimizer(0.1)
    with pytest.raises(InvalidArgumentError, match="No variables"):
        optimizer.minimize(constant(1.0))
    Variable([1.0], name="left")
    Variable([1.0], name="right")
    with pytest.raises(ValueError, match="none of the variables left, right"):
        optimizer.minimize(constant(1.0))
    with pytest.raises(InvalidArgumentError, match="No gradients provided for any variable: left"):
        optimizer.apply_gradients([(None, v) for v in constant(0.0).graph.get_collection("trainable_variables")])
    with pytest.raises(InvalidArgumentError, match="No gradients provided"):
        optimizer.apply_gradients([])


def test_arguments_are_checked():
    var = Variable([1.0], name="w")
    optimizer = GradientDescentOptimizer(0.1)
    with pytest.raises(InvalidArgumentError, match="loss is None"):
        optimizer.minimize(None)
    with pytest.raises(InvalidArgumentError, match="gate_gradients is 7"):
        optimizer.minimize(var * 1.0, gate_gradients=7)
    with pytest.raises(InvalidArgumentError, match="is not a variable"):
        optimizer.minimize(var * 1.0, var_list=[var.value()])
    with pytest.raises(InvalidArgumentError, match=r"shape \(2,\), variable 'w' \(1,\)"):
        optimizer.apply_gradients([(constant([1.0, 2.0]), var)])
    with pytest.raises(InvalidArgumentError, match="float64"):
        optimizer.apply_gradients([(constant([1.0], "float64"), var)])
    with pytest.raises(InvalidArgumentError, match="positive"):
        AdagradOptimizer(0.1, initial_accumulator_value=0.0)
    with pytest.raises(InvalidArgumentError, match="needs a name"):
        GradientDescentOptimizer(0.1, name="")
    with pytest.raises(InvalidArgumentError, match=r"int32.*takes"):
        optimizer.minimize(lambda: constant(1), var_list=var)


@pytest.mark.parametrize("make", [GradientDescentOptimizer, AdamOptimizer, AdagradOptimizer])
def test_a_trainable_integer_that_the_loss_does_not_use_is_no_obstacle(make):
    step, var = Variable(0, name="step"), Variable(2.0, name="w")
    optimizer = make(0.1)
    assert [d is None for d, _ in optimizer.compute_gradients(var * var)] == [True, False]
    train_op = optimizer.minimize(var * var, global_step=step)
    with Session() as session:
        session.run(global_variables_initializer())
        session.run([train_op, train_op])
        session.run(train_op)
        assert session.run(step) == 2 and session.run(var) < 2.0


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_out_of_range(row):
    with get_default_graph().device("/cpu:0"):
        var = Variable(np.zeros((3, 1), np.float32), name="w")
    train_op = AdamOptimizer().apply_gradients([(IndexedSlices(constant([[1.0]]), constant([row])), var)])
    with Session() as session:
        session.run(global_variables_initializer())
        with pytest.raises(InvalidArgumentError, match=rf"= {row} is not in \[0, 3\).*'w'"):
            session.run(train_op)


# -- the fused operations ----------------------------------------------------------------------------------


def test_updates_check_shapes_while_building():
    var, other = Variable([1.0, 2.0], name="w"), Variable([1.0, 2.0, 3.0], name="x")
    with pytest.raises(InvalidArgumentError, match="grad"):
        add_either(training_ops.GRADIENT_DESCENT, var, (), (0.1,), [1.0], None)
    with pytest.raises(InvalidArgumentError, match="alpha"):
        add_either(training_ops.GRADIENT_DESCENT, var, (), ([0.1, 0.2],), [1.0, 2.0], None)
    with pytest.raises(InvalidArgumentError, match="slot 'x' is float32"):
        add_either(training_ops.ADAGRAD, var, [other], [0.1], [1.0, 2.0], None)
    with pytest.raises(InvalidArgumentError, match="not a variable"):
        add_either(training_ops.GRADIENT_DESCENT, var + 1.0, (), (0.1,), [1.0, 2.0], None)
    with pytest.raises(InvalidArgumentError, match="float64"):
        add_either(training_ops.GRADIENT_DESCENT, var, (), (0.1,), constant([1.0, 2.0], "float64"), None)
    with pytest.raises(InvalidArgumentError):
        add_either(training_ops.GRADIENT_DESCENT, var, (), (0.1,), [[1.0]], [0])
    with pytest.raises(InvalidArgumentError, match="no rows"):
        add_either(training_ops.GRADIENT_DESCENT, Variable(1.0), (), (0.1,), [1.0], [0])
    with pytest.raises(InvalidArgumentError, match="lr has shape"):
        add_either(training_ops.ADAGRAD, var, [var], [[0.1]], [1.0], [0])


def test_updates_check_shapes_while_running():
    value, device = placeholder("float32"), Device("/job:localhost/task:0/device:CPU:0")
    var = Variable([1.0, 2.0], name="w")
    interpret(var.initializer, device=device)
    update = add_either(training_ops.GRADIENT_DESCENT, var, (), (0.1,), value, None)
    with pytest.raises(InvalidArgumentError, match=r"'w' has shape \(2,\), the gradient \(3,\)"):
        interpret(update, {value: [1.0, 2.0, 3.0]}, device)
    update = add_either(training_ops.GRADIENT_DESCENT, var, (), (0.1,), value, [0])
    with pytest.raises(InvalidArgumentError, match=r"'w' has shape \(2,\), the sparse gradient \(3,\) for 1 rows"):
        interpret(update, {value: [1.0, 2.0, 3.0]}, device)


def test_updates_need_initialised_variables():
    var = Variable([1.0], name="w")
    train_op = GradientDescentOptimizer(0.1).apply_gradients([(constant([1.0]), var)])
    with Session() as session, pytest.raises(FailedPreconditionError, match="uninitialized value w"):
        session.run(train_op)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nesterov_adam(dtype):
    numpy_dtype = dtypes.as_dtype(dtype).numpy
    var, m, v = (Variable(np.array(x, numpy_dtype)) for x in ([1.0, 2.0], [0.5, -0.5], [0.25, 1.0]))
    op = training_ops.apply_adam(
        var, m, v, 0.5, 0.75, 0.25, 0.5, 0.75, 0.125, np.array([1.0, -1.0], numpy_dtype), use_nesterov=True
    )
    device = Device("/job:localhost/task:0/device:CPU:0")
    interpret([x.initializer for x in (var, m, v)], device=device)
    interpret(op, device=device)
    gradient, new_m, new_v = np.array([1.0, -1.0]), np.array([0.75, -0.75]), np.array([0.4375, 1.0])
    step = 0.25 * np.sqrt(0.25) / 0.5 * (0.5 * new_m + 0.5 * gradient) / (np.sqrt(new_v) + 0.125)
    results = [value.astype(np.float64) for value in interpret([m.value(), v.value(), var.value()], device=device)]
    tolerance = 1e-6 if dtype == "float32" else 1e-2
    np.testing.assert_allclose(results[0], new_m, rtol=tolerance)
    np.testing.assert_allclose(results[1], new_v, rtol=tolerance)
    np.testing.assert_allclose(results[2], [1.0, 2.0] - step, rtol=tolerance)


def test_half_precision_updates_compute_in_single():
    # In float16 epsilon is 0, and so is the square of this gradient.
    var = Variable(np.ones(2, np.float16))
    train_op = AdamOptimizer(0.01).apply_gradients([(constant(np.array([0.0, 1e-4], np.float16)), var)])
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run(var), [1.0, 0.99], rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_form_for_gpus_gives_the_same(dtype):
    # NumPy under another name: kernels then take the way that they take for any other array module.
    one_gpu = types.SimpleNamespace(Device=lambda _: nullcontext())
    other = Device("/job:localhost/task:0/device:GPU:0", xp=types.SimpleNamespace(**vars(np), cuda=one_gpu))
    assert other.type == "GPU"
    random = np.random.default_rng(8)
    start, dense, rows = (random.uniform(0.5, 1, size=(7, 3)).astype(dtype) for _ in range(3))
    indices = np.array([6, 0, 0, 3, 6, 6, 1], np.int32)
    rate = constant(0.25)
    adam = (constant(0.5), constant(0.75), rate, constant(0.5), constant(0.75), constant(0.125))
    var, a, b = (Variable(start) for _ in range(3))
    updates = [
        add_either(training_ops.GRADIENT_DESCENT, var, (), (rate,), dense, None),
        add_either(training_ops.MOMENTUM, var, [a], [rate], dense, None, after=[0.5], use_nesterov=False),
        add_either(training_ops.ADAGRAD, var, [a], [rate], dense, None),
        training_ops.apply_adam(var, a, b, *adam, grad=dense),
        training_ops.apply_adam(var, a, b, *adam, grad=dense, use_nesterov=True),
        add_either(training_ops.GRADIENT_DESCENT, var, (), (rate,), rows, indices),
        add_either(training_ops.MOMENTUM, var, [a], [rate], rows, indices, after=[0.5], use_nesterov=True),
        add_either(training_ops.ADAGRAD, var, [a], [rate], rows, indices),
        training_ops.sparse_apply_adam(var, a, b, *adam, grad=rows, indices=indices),
        training_ops.sparse_apply_adam(var, a, b, *adam, grad=rows, indices=indices, lazy=True),
    ]
    for update in updates:
        results = []
        for device in (Device("/job:localhost/task:0/device:CPU:0"), other):
            interpret([v.initializer for v in (var, a, b)], device=device)
            interpret(update, device=device)
            results.append(np.stack(interpret([v.value() for v in (var, a, b)], device=device)))
        np.testing.assert_allclose(*results, rtol=1e-5 if dtype == "float32" else 4e-3, err_msg=update.name)


def test_slots_are_found_by_the_keys_that_tensorflow_has(session):
    """Programs sort them, and look them up, in `_slots`."""
    b, a = tf.Variable([1.0], name="b"), tf.Variable([2.0], name="a")
    optimizer = MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(tf.reduce_sum(a * b))
    slots = optimizer._slots["momentum"]
    assert sorted(slots) == [(session.graph, "a"), (session.graph, "b")]
    assert slots[var_key(a)] is optimizer.get_slot(a, "momentum") is optimizer.get_slot(a.handle, "momentum")
