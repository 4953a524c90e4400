"""tfray runs TensorFlow 1's control flow, from graphs that TensorFlow has written."""

from __future__ import annotations

import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.graphs.control_flow_graphs import check_steps, difference, read_golden_graphs
from tfray.formats.graph_proto import GraphDef

GRAPHS = read_golden_graphs(GOLDEN / "control_flow.npz.xz")
MESSAGES = {name: GraphDef.FromString(golden.graph) for name, golden in GRAPHS.items()}


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("name", GRAPHS)
def test_results_are_equal(name):
    golden = GRAPHS[name]
    fetches = tf.import_graph_def(MESSAGES[name], return_elements=golden.fetches, name="")
    with tf.Session() as session:
        check_steps(golden, fetches, session)


def test_control_flow_needs_no_call_of_its_own():
    tf.import_graph_def(MESSAGES["loop_in_branch_gradient"], name="imported")
    golden = GRAPHS["loop_in_branch_gradient"]
    with tf.Session() as session:
        for feeds, results in golden.steps:
            fed = {f"imported/{name}": value for name, value in feeds.items()}
            values = session.run([f"imported/{name}" for name in golden.fetches], fed)
            assert not any(difference(expected, values[index]) for index, expected in results.items())


def test_what_stands_in_an_imported_loop_is_named_below_the_loop():
    tf.import_graph_def(MESSAGES["branch_in_loop_gradient"], name="")
    graph = tf.get_default_graph()
    assert graph.get_operation_by_name("while/While/body/while/add").type == "Add"
    with pytest.raises(
        KeyError,
        match="not in the graph; close names are while/While/body/while/add",
    ):
        graph.get_operation_by_name("while/add")
