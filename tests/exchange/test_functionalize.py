"""TensorFlow 1's control flow as functions with If and While."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import GOLDEN
from tests.support.graphs.control_flow_graphs import GoldenGraph, read_golden_graphs
from tests.support.graphs.low_level_programs import LowLevelProgram
from tests.support.graphs.run_by_tensorflow import differences
from tests.support.graphs.small_graphs import graph_of
from tests.support.peer import needs_peer
from tests.support.references.graph_semantics import DeadTensorRun, FunctionRun
from tfray.errors import InvalidArgumentError
from tfray.exchange.functionalize import functionalize
from tfray.formats.graph_proto import GraphDef

LOW_LEVEL = {
    *(f"{ref}{op}" for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration") for ref in ("", "Ref")),
    "LoopCond",
    "ControlTrigger",
}
GRAPHS = read_golden_graphs(GOLDEN / "control_flow.npz.xz")


def ops_of(graph):
    """How often each operation type stands in a graph and its functions."""
    functions = (node for function in graph.library.function for node in function.node_def)
    return Counter(node.op for node in [*graph.node, *functions])


PLACEHOLDERS = (("x", "Placeholder", "", {"dtype": 3}), ("p", "Placeholder", "", {"dtype": 10}))
T = {"T": 3}
IN_FRAME = {"T": 3, "frame_name": "f"}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_of_tensorflow_keep_names_and_no_low_level_control_flow(name):
    golden = GRAPHS[name]
    graph = GraphDef.FromString(golden.graph)
    functional = functionalize(graph, keep=golden.fetches)
    ops = ops_of(functional)
    assert not ops.keys() & LOW_LEVEL
    has_control_flow = bool(ops_of(graph).keys() & LOW_LEVEL)
    assert bool(ops.keys() & {"If", "StatelessIf", "While", "StatelessWhile"}) == has_control_flow
    assert graph == GraphDef.FromString(golden.graph)  # it is not changed
    names = [node.name for node in functional.node]
    assert len(set(names)) == len(names)
    assert {each.partition(":")[0] for each in [*golden.fetches, *golden.setup]} <= set(names)
    functions = {function.signature.name for function in functional.library.function}
    called = [value.func.name for node in functional.node for value in node.attr.values() if value.func.name]
    for function in functional.library.function:
        called += [value.func.name for node in function.node_def for value in node.attr.values() if value.func.name]
    assert sorted(called) == sorted(functions)


def test_there_are_many_graphs():
    assert len(GRAPHS) >= 100
    assert sum(name.endswith("_of_resources") for name in GRAPHS) >= 20


@pytest.mark.parametrize(
    ("name", "ifs", "whiles"),
    [
        ("cond", 1, 0),
        ("cond_of_switches_alone", 1, 0),
        ("cond_of_several", 2, 0),
        ("conds_on_one_predicate", 1, 0),
        ("cond_in_cond", 2, 0),
        ("cond_gradient", 2, 0),
        ("loop", 0, 1),
        ("loop_in_loop", 0, 2),
        ("loop_in_loop_gradient", 0, 4),
        ("loop_in_branch", 1, 1),
        ("branch_in_loop_gradient", 2, 2),
        ("dynamic_rnn", 0, 1),
        ("dynamic_rnn_gradient", 0, 2),
        ("effect_without_merge", 1, 0),
    ],
)
def test_conditionals_and_loops_are_as_many_as_before(name, ifs, whiles):
    ops = ops_of(functionalize(GraphDef.FromString(GRAPHS[name].graph)))
    assert (ops["If"] + ops["StatelessIf"], ops["While"] + ops["StatelessWhile"]) == (ifs, whiles)


def test_without_control_flow_it_is_the_same_graph():
    graph = graph_of(*PLACEHOLDERS, ("y", "Identity", "x", T))
    assert functionalize(graph) is graph


def test_what_is_fetched_in_a_branch_is_there_when_that_is_taken():
    graph = graph_of(
        *PLACEHOLDERS,
        ("s", "Switch", "x p", T),
        ("doubled", "AddV2", "s:1 s:1", T),
        ("other", "Identity", "s:0", T),
        ("m", "Merge", "doubled other", T),
    )
    assert "doubled" not in {node.name for node in functionalize(graph).node}
    functional = functionalize(graph, keep=["doubled:0"])
    (kept,) = (node for node in functional.node if node.name == "doubled")
    assert kept.op == "Identity" and kept.input[1] == "^doubled/check"
    run = FunctionRun(functional, {"x": np.int32(4), "p": np.bool_(True)})
    assert run.fetch(kept.input[0]) == 8 and run.fetch("m") == 8
    (check,) = (node for node in functional.node if node.name == "doubled/check")
    assert run.fetch(check.input[0])
    assert not FunctionRun(functional, {"x": np.int32(4), "p": np.bool_(False)}).fetch(check.input[0])


def test_a_merge_tells_which_input_it_has_taken():
    graph = graph_of(*PLACEHOLDERS, ("s", "Switch", "x p", T), ("m", "Merge", "s:1 s:0", T))
    functional = functionalize(graph, keep=["m:1"])
    for value in (True, False):
        run = FunctionRun(functional, {"x": np.int32(4), "p": np.bool_(value)})
        assert (run.fetch("m:0"), run.fetch("m:1")) == (4, 0 if value else 1)


def test_results_that_read_other_placeholders_are_computed_apart():
    graph = graph_of(
        *PLACEHOLDERS,
        ("y", "Placeholder", "", {"dtype": 3}),
        ("s", "Switch", "x p", T),
        ("t", "Switch", "y p", T),
        ("first", "Merge", "s:0 s:1", T),
        ("second", "Merge", "t:0 t:1", T),
    )
    run = FunctionRun(functionalize(graph), {"x": np.int32(4), "p": np.bool_(True)})
    assert run.fetch("first") == 4


def test_an_effect_of_one_result_is_none_of_another():
    graph = graph_of(
        *PLACEHOLDERS,
        ("s", "Switch", "x p", T),
        ("printed", "Print", "s:1", T),
        ("first", "Merge", "s:0 s:1", T),
        ("second", "Merge", "s:0 printed", T),
    )
    functional = functionalize(graph)
    feeds = {"x": np.int32(4), "p": np.bool_(True)}
    run = FunctionRun(functional, feeds)
    assert run.fetch("first") == 4 and not run.printed
    assert run.fetch("second") == 4 and run.printed == [("printed", 4)]


def test_branches_keep_the_groups_of_operations_that_stand_with_them():
    graph = graph_of(
        *PLACEHOLDERS,
        ("s", "Switch", "x p", T),
        ("a", "Identity", "s:1", T),
        ("b", "Identity", "a", T),
        ("m", "Merge", "s:0 b", T),
        ("y", "Identity", "m", T),
    )
    for node in graph.node:
        if node.name in ("b", "y"):
            node.attr["_class"].list.s.extend([b"loc:@a", b"loc:@x"])
    functional = functionalize(graph)
    groups = {node.name: list(node.attr["_class"].list.s) for node in functional.node if "_class" in node.attr}
    assert groups == {"y": [b"loc:@x"]}
    (inner,) = (node for function in functional.library.function for node in function.node_def if node.name == "b")
    assert list(inner.attr["_class"].list.s) == [b"loc:@a"]


ENTERED = (*PLACEHOLDERS, ("enter", "Enter", "x", IN_FRAME))
TURNING = (
    *ENTERED,
    ("merge", "Merge", "enter next", T),
    ("limit", "Const", "^merge", {"dtype": 3}),
    ("less", "Less", "merge limit", T),
    ("goes_on", "LoopCond", "less"),
    ("switch", "Switch", "merge goes_on", T),
    ("next", "NextIteration", "switch:1", T),
)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([*PLACEHOLDERS, ("e", "Exit", "x", T)], "Exit 'e' leaves a frame, and stands in none"),
        ([*PLACEHOLDERS, ("n", "NextIteration", "x", T)], "NextIteration 'n' belongs to a loop"),
        ([*PLACEHOLDERS, ("c", "LoopCond", "p")], "LoopCond 'c' belongs to a loop"),
        ([*PLACEHOLDERS, ("m", "Merge", "x x", T)], "Merge 'm' merges values that no Switch decides between"),
        (
            [
                *PLACEHOLDERS,
                ("q", "Placeholder", "", {"dtype": 10}),
                ("s", "Switch", "x p", T),
                ("t", "Switch", "x q", T),
                ("m", "Merge", "s:0 t:1", T),
            ],
            "Merge 'm' merges what are not the two sides of one Switch: 's', 't'",
        ),
        ([*ENTERED, ("y", "Identity", "enter", T)], "Enter 'enter' enters frame 'f', which no Exit leaves"),
        (TURNING, "Enter 'enter' enters frame 'f', which no Exit leaves"),
        ([*ENTERED, ("e", "Exit", "enter", T)], "frame 'f', which has no LoopCond"),
        ([*TURNING, ("e", "Exit", "merge", T)], "Exit 'e' must read the false side of a Switch"),
        (
            [
                *TURNING,
                ("c", "LoopCond", "less"),
                ("s", "Switch", "merge c", T),
                ("e", "Exit", "s", T),
                ("e2", "Exit", "switch", T),
            ],
            "more than one LoopCond",
        ),
        (
            [*TURNING, ("e", "Exit", "switch", T), ("y", "AddV2", "switch x", T), ("e2", "Exit", "y", T)],
            "AddV2 'y' has inputs from different frames: frame 'f' and, by way of 'x', no frame",
        ),
        (
            [*PLACEHOLDERS, ("s", "Switch", "nothing p", T)],
            "Switch 's' has an input 'nothing', which is not in the graph",
        ),
        (
            [*PLACEHOLDERS, ("s", "Switch", "x p", T), ("s", "Switch", "x p", T)],
            "Node 's' is not unique",
        ),
        (
            [*PLACEHOLDERS, ("a", "Identity", "b", T), ("b", "Identity", "a", T), ("s", "Switch", "a p", T)],
            "Identity 'a' reads what depends on it",
        ),
        (
            [*PLACEHOLDERS, ("s", "Switch", "x p", T), ("u", "Unheard", "s:1"), ("m", "Merge", "s:0 u", T)],
            "Unheard 'u' stands in a branch or a loop",
        ),
        (
            [*PLACEHOLDERS, ("s", "Switch", "x p", T), ("a", "Identity", "s:1"), ("m", "Merge", "s:0 a", T)],
            "Identity 'a' has no attribute 'T'",
        ),
        (
            [*PLACEHOLDERS, ("s", "Switch", "x p", T), ("a", "Identity", "s:2", T), ("m", "Merge", "s:0 a", T)],
            "Switch 's' has no output 2",
        ),
    ],
)
def test_a_malformed_graph_is_one_error_that_names_the_operation(nodes, message):
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        functionalize(graph_of(*nodes))


def test_what_stands_in_a_loop_cannot_be_kept():
    with pytest.raises(InvalidArgumentError, match="Less 'less' stands in a loop"):
        functionalize(graph_of(*TURNING, ("e", "Exit", "switch", T)), keep=["less:0"])


# -- random programs -----------------------------------------------------------------------------------


def prints_of(run):
    """What a step has printed, in no order."""
    return Counter((name, int(value)) for name, value in run.printed)


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.lists(st.integers(-3, 3), min_size=2, max_size=2))
def test_random_programs_compute_and_print_the_same(random, fed):
    program = LowLevelProgram(random)
    feeds = {name: np.int32(value) for name, value in zip(program.feeds, fed, strict=True)}
    functional = functionalize(program.graph, keep=program.fetches)
    assert not ops_of(functional).keys() & LOW_LEVEL
    has_loops = ops_of(functional).keys() & {"While", "StatelessWhile"}
    for names in [program.fetches, *([name] for name in program.fetches)]:
        before, after = DeadTensorRun(program.graph, feeds), FunctionRun(functional, feeds)
        assert [after.fetch(name) for name in names] == [before.fetch(name) for name in names]
        # All results of a loop are computed together, with what they print.
        assert prints_of(after) >= prints_of(before) if has_loops else prints_of(after) == prints_of(before)


# -- TensorFlow itself ---------------------------------------------------------------------------------


def functional(golden: GoldenGraph) -> GoldenGraph:
    """A graph whose control flow has been turned into functions."""
    graph = functionalize(GraphDef.FromString(golden.graph), keep=golden.fetches)
    return dataclasses.replace(golden, graph=graph.SerializeToString())


@pytest.mark.slow
@needs_peer
def test_tensorflow_computes_the_same_of_its_graphs(tmp_path):
    assert differences([functional(golden) for golden in GRAPHS.values()], tmp_path) == {}


@pytest.mark.slow
@needs_peer
def test_tensorflow_computes_the_same_of_random_programs(tmp_path):
    graphs = []
    for seed in range(200):
        program = LowLevelProgram(Random(seed), size=16)
        steps = []
        for fed in ((-2, 3), (1, -1), (3, 2)):
            feeds = {name: np.int32(value) for name, value in zip(program.feeds, fed, strict=True)}
            run = DeadTensorRun(program.graph, feeds)
            results = {index: np.asarray(run.fetch(name)) for index, name in enumerate(program.fetches)}
            steps.append(({f"{name}:0": value for name, value in feeds.items()}, results))
        fetches = [name if ":" in name else f"{name}:0" for name in program.fetches]
        golden = GoldenGraph(f"program{seed}", program.graph.SerializeToString(), fetches, [], steps)
        graphs += [golden, dataclasses.replace(functional(golden), name=f"functional{seed}")]
    assert differences(graphs, tmp_path) == {}
