"""The gradients of TensorFlow 1's TensorArrays as values. What they compute: test_import_of_control_flow.py."""

from __future__ import annotations

import pytest

from tests.support import GOLDEN
from tests.support.graphs.control_flow_graphs import read_golden_graphs
from tests.support.graphs.small_graphs import graph_of
from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.exchange.gradient_arrays import GRADIENTS, with_gradient_arrays_as_values
from tfray.formats.graph_proto import GraphDef

GRAPHS = {
    name: GraphDef.FromString(each.graph) for name, each in read_golden_graphs(GOLDEN / "control_flow.npz.xz").items()
}
WITH_GRADIENTS = [name for name, graph in GRAPHS.items() if any(node.op in GRADIENTS for node in graph.node)]


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_operations_keep_their_names(name):
    given = GRAPHS[name].SerializeToString(deterministic=True)
    rebuilt = with_gradient_arrays_as_values(GRAPHS[name])
    assert GRAPHS[name].SerializeToString(deterministic=True) == given  # it is not changed
    names = [node.name for node in rebuilt.node]
    assert len(set(names)) == len(names)
    assert {node.name for node in GRAPHS[name].node} <= set(names)
    assert not any(node.op in GRADIENTS for node in rebuilt.node)


def test_graphs_without_gradients_of_arrays_stay_what_they_are():
    for name in GRAPHS.keys() - set(WITH_GRADIENTS):
        assert with_gradient_arrays_as_values(GRAPHS[name]) is GRAPHS[name]


def test_flows_of_one_array_need_no_copies():
    for name in WITH_GRADIENTS:
        if name != "gradient_arrays_by_hand":  # where one flow orders several
            added = len(with_gradient_arrays_as_values(GRAPHS[name]).node) - len(GRAPHS[name].node)
            assert added <= 2 * sum(node.op in GRADIENTS for node in GRAPHS[name].node), name


SIZE = ("size", "Const", "", {"dtype": 3})
ARRAY = ("array", "TensorArrayV3", "size", {"dtype": 1})
GRADIENT = ("gradient", "TensorArrayGradV3", "array array:1", {"source": "gradients"})


@pytest.mark.parametrize(
    ("nodes", "error", "said"),
    [
        (
            [SIZE, ARRAY, GRADIENT, ("second", "TensorArrayGradV3", "gradient gradient:1", {"source": "more"})],
            InvalidArgumentError,
            "TensorArrayGradV3 'second' asks for the gradient of a gradient",
        ),
        (
            [
                SIZE,
                ("array", "Placeholder", "", {"dtype": 20}),
                ("flow", "Const", "", {"dtype": 1}),
                ("gradient", "TensorArrayGradV3", "array flow", {"source": "gradients"}),
            ],
            UnimplementedError,
            "Placeholder 'array' gives the handle of a TensorArray",
        ),
    ],
)
def test_errors_name_the_operation(nodes, error, said):
    with pytest.raises(error, match=said):
        with_gradient_arrays_as_values(graph_of(*nodes))
