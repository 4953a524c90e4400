"""tf.Variable, its initialisation, and the lists of variables."""

from __future__ import annotations

import numpy as np
import pytest

from tests.interpreter import interpret
from tfray.errors import FailedPreconditionError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables import Variable, global_variables, trainable_variables
from tfray.ops.source_ops import constant
from tfray.runtime.device import Device


@pytest.fixture(autouse=True)
def graph():
    with Graph().as_default() as graph:
        yield graph


@pytest.fixture
def device():
    return Device("/job:localhost/task:0/device:CPU:0")


def run(device, *fetches):
    results = [interpret(fetch, device=device) for fetch in fetches]
    return results[0] if len(results) == 1 else results


def test_initial_value_is_read_after_initialisation(device):
    v = Variable([[1.0, 2.0]], name="v")
    run(device, v.initializer)
    assert run(device, v.value()).tolist() == [[1.0, 2.0]]
    assert (v.name, v.op.name, v.dtype, v.shape) == ("v:0", "v", dtypes.float32, [1, 2])


def test_names_of_the_operations():
    v = Variable(lambda: constant([1, 2], name="c"), name="v")
    assert v.initializer.name == "v/Assign"
    assert v.value().name == "v/read:0"
    assert v.initial_value.name == "v/Initializer/c:0"
    assert Variable(1, name="v").op.name == "v_1"
    assert Variable(1).op.name == "Variable"


def test_reading_before_initialisation_names_the_variable(device):
    v = Variable(1.0, name="weights")
    with pytest.raises(FailedPreconditionError, match="'weights' is not initialised"):
        run(device, v.value())


def test_updates_return_the_new_value(device):
    v = Variable([1, 2])
    run(device, v.initializer)
    assert run(device, v.assign_add([10, 20])).tolist() == [11, 22]
    assert run(device, v.assign_sub([1, 1])).tolist() == [10, 21]
    assert run(device, v.assign([5, 6])).tolist() == [5, 6]
    assert run(device, v.value()).tolist() == [5, 6]


def test_assign_of_another_shape_is_refused():
    v = Variable([1, 2])
    with pytest.raises(InvalidArgumentError, match="incompatible"):
        v.assign([1, 2, 3])


def test_shape_may_change_when_not_validated(device):
    v = Variable([1, 2], validate_shape=False)
    assert v.shape.rank is None
    run(device, v.initializer)
    assert run(device, v.assign([[1]])).tolist() == [[1]]


def test_collections(graph):
    v, w = Variable(1), Variable(2, trainable=False)
    u = Variable(3, collections=[GraphKeys.LOCAL_VARIABLES], trainable=False)
    assert global_variables() == [v, w]
    assert trainable_variables() == [v]
    assert graph.get_collection(GraphKeys.LOCAL_VARIABLES) == [u]


def test_converts_to_its_cached_read():
    v = Variable(1.0)
    assert convert_to_tensor(v) is v.value()


def test_read_under_control_dependencies_sees_the_update(graph, device):
    v = Variable(1.0)
    run(device, v.initializer)
    with graph.control_dependencies([v.assign(2.0)]):
        assert run(device, convert_to_tensor(v)) == 2.0


def test_storage_is_owned_by_the_variable(device):
    value = np.ones(3, np.float32)
    v = Variable(constant(value))
    run(device, v.initializer)
    run(device, v.assign_add(value))
    assert run(device, v.initial_value).tolist() == [1, 1, 1]
    assert run(device, v.value()).tolist() == [2, 2, 2]
