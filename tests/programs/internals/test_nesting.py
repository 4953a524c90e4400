"""Nested structures beyond the public functions; what TensorFlow 1.15 gives."""

from __future__ import annotations

import collections

import pytest

import tfray as tf
from tfray.programs.internals import nesting

Pair = collections.namedtuple("Pair", "x y")
TREE = {"b": [1, (2, 3)], "a": Pair(4, [5])}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda part: True, {"b": [True, (True, True)], "a": Pair(True, [True])}),
        (lambda part: False, False),
        (lambda part: not isinstance(part, Pair), {"b": [True, (True, True)], "a": False}),
        (lambda part: {"a": True, "b": False} if part is TREE else True, {"b": False, "a": Pair(True, [True])}),
        (lambda part: part is TREE, {"b": False, "a": False}),
    ],
    ids=["all", "none", "no pairs", "one by one", "one level"],
)
def test_upper_part(answer, found):
    assert nesting.get_traverse_shallow_structure(answer, TREE) == found


def test_upper_part_takes_truth_values():
    assert nesting.get_traverse_shallow_structure(lambda part: True, 5) is True
    for answer in (3, [3, True]):
        with pytest.raises(TypeError, match="bool"):
            nesting.get_traverse_shallow_structure(lambda part, answer=answer: answer, [1, 2])
    with pytest.raises(ValueError, match="The two structures don't have the same sequence length"):
        nesting.get_traverse_shallow_structure(lambda part: [True], [1, 2])


def test_upper_part_of_composites():
    sparse = tf.SparseTensor([[0]], [1.0], [1])
    ask = nesting.get_traverse_shallow_structure
    assert ask(lambda part: part is not sparse, [sparse, 1]) == [False, True]
    assert ask(lambda part: True, [sparse], expand_composites=True) == [True]
    assert [nesting.is_sequence_or_composite(each) for each in (sparse, [1], "a")] == [True, True, False]


def test_paths():
    paths = [("a", "x"), ("a", "y", 0), ("b", 0), ("b", 1, 0), ("b", 1, 1)]
    assert list(nesting.yield_flat_paths(TREE)) == paths
    assert list(nesting.yield_flat_paths(3)) == [()]
    parts = nesting.flatten_with_tuple_paths_up_to({"a": 0, "b": [0, 0]}, TREE)
    assert parts == [(("a",), Pair(4, [5])), (("b", 0), 1), (("b", 1), (2, 3))]
    assert nesting.flatten_with_tuple_paths_up_to(0, TREE) == [((), TREE)]
    with pytest.raises(ValueError, match="same sequence length"):
        nesting.flatten_with_tuple_paths_up_to([0], [1, 2])


def test_function_of_paths_and_parts():
    found = nesting.map_structure_with_tuple_paths_up_to([0, (0, 0)], lambda *given: given, [1, (2, [3])], [4, (5, 6)])
    assert found == [((0,), 1, 4), (((1, 0), 2, 5), ((1, 1), [3], 6))]
    with pytest.raises(ValueError, match="no sequences"):
        nesting.map_structure_with_tuple_paths_up_to([0], lambda path: path)


def test_one_level():
    ordered = collections.OrderedDict([("b", 1), ("a", 2)])
    assert list(nesting.sequence_like(ordered, [3, 4]).items()) == [("b", 4), ("a", 3)]
    assert nesting.sequence_like(Pair(1, 2), [3, 4]) == Pair(3, 4)
    assert nesting.sequence_like((1, 2), [3, 4]) == (3, 4)
    assert list(nesting.yield_value(ordered)) == [2, 1]
    assert list(nesting.yield_value(Pair(1, 2))) == [1, 2]
    assert nesting.is_namedtuple(Pair(1, 2), strict=True) and not nesting.is_namedtuple((1, 2))
    assert nesting.is_mapping(ordered) and not nesting.is_mapping([])
