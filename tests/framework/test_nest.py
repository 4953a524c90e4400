"""Nested structures."""

from __future__ import annotations

import collections

import pytest

from tfray.framework import nest

Point = collections.namedtuple("Point", ["x", "y"])


class Composite:
    """Stands for two leaves."""

    def __init__(self, *parts):
        self.parts = parts

    def _to_components(self):
        return list(self.parts)

    def _with_components(self, parts):
        return Composite(*parts)


STRUCTURES = [
    (1, [1]),
    ("text", ["text"]),
    (None, [None]),
    ([], []),
    ([1, 2], [1, 2]),
    ((1, (2, [3])), [1, 2, 3]),
    (Point(1, [2, 3]), [1, 2, 3]),
    ({"b": 1, "a": (2, 3)}, [2, 3, 1]),
    (collections.OrderedDict([("z", 1), ("y", 2)]), [2, 1]),
    ([{"k": Point(1, 2)}, (), [[]]], [1, 2]),
]


@pytest.mark.parametrize(("structure", "leaves"), STRUCTURES)
def test_flatten_and_pack(structure, leaves):
    assert nest.flatten(structure) == leaves
    packed = nest.pack_sequence_as(structure, leaves)
    assert packed == structure and type(packed) is type(structure)
    if isinstance(structure, dict):
        assert list(packed) == list(structure)


def test_composites_are_leaves_or_their_components():
    structure = [1, Composite(2, 3)]
    assert nest.flatten(structure) == structure
    assert nest.flatten(structure, expand_composites=True) == [1, 2, 3]
    packed = nest.pack_sequence_as(structure, [4, 5, 6], expand_composites=True)
    assert packed[0] == 4 and packed[1].parts == (5, 6)


def test_pack_needs_as_many_leaves():
    with pytest.raises(ValueError, match="has 2 leaves, and 3 are given"):
        nest.pack_sequence_as([1, [2]], [1, 2, 3])


def test_map_structure():
    assert nest.map_structure(lambda a, b: a + b, {"a": 1, "b": (2,)}, {"b": (10,), "a": 20}) == {"a": 21, "b": (12,)}
    assert nest.map_structure(lambda a: -a, Point(1, [2])) == Point(-1, [-2])
    assert nest.map_structure(lambda a: -a, 3) == -3


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        ([1], 1, ValueError),
        ([1, 2], [1], ValueError),
        ([1, [2]], [1, 2], ValueError),
        ({"a": 1}, {"b": 1}, ValueError),
        ([1], (1,), TypeError),
        ({"a": 1}, [1], TypeError),
        (Point(1, 2), (1, 2), TypeError),
    ],
)
def test_differences_are_found(a, b, error):
    with pytest.raises(error, match="don't have the same nested structure"):
        nest.assert_same_structure(a, b)


def test_types_may_be_left_out():
    nest.assert_same_structure([1, (2,)], (1, [2]), check_types=False)
    nest.assert_same_structure([1, {"a": 2}], [3, collections.OrderedDict(a=4)])


def test_flatten_up_to():
    assert nest.flatten_up_to([0, (0, 0)], [1, ([2], 3)]) == [1, [2], 3]
    assert nest.flatten_up_to({"a": 0, "b": [0]}, {"b": ["x"], "a": (1, 2)}) == [(1, 2), "x"]
    assert nest.flatten_up_to([0, (0, 0)], (1, [2, 3]), check_types=False) == [1, 2, 3]
    assert nest.map_structure_up_to(Point(0, 0), lambda a, b: (a, b), Point(1, [2]), Point({}, 3)) == Point(
        (1, {}), ([2], 3)
    )
    with pytest.raises(ValueError, match="no sequences"):
        nest.map_structure_up_to(0, len)


@pytest.mark.parametrize(
    ("shallow", "deep", "match"),
    [
        ([0, [0]], [1, 2], "input must also be a sequence. Input has type: <class 'int'>"),
        ([0], (1,), "the same sequence type. Input structure has type <class 'tuple'>"),
        ({"a": 0}, [1], "shallow structure has type <class 'dict'>"),
        ((0, 0, 0), (1, 2), "Input structure has length 2, while shallow structure has length 3"),
        ({"a": 0, "b": {"c": 0}}, {"a": 1, "b": {"d": 2}}, r"not in the input_tree: \['c'\]"),
    ],
)
def test_what_is_not_deep_enough(shallow, deep, match):
    for error in (ValueError, TypeError):
        with pytest.raises(error, match=match):
            nest.assert_shallow_structure(shallow, deep)
    nest.assert_shallow_structure(0, deep)


def test_paths_to_leaves():
    structure = {"b": [1, (2, 3)], "a": Point(4, 5)}
    paths = [("a", "x"), ("a", "y"), ("b", 0), ("b", 1, 0), ("b", 1, 1)]
    assert nest.flatten_with_tuple_paths(structure) == list(zip(paths, [4, 5, 1, 2, 3], strict=True))
    assert nest.flatten_with_tuple_paths(7) == [((), 7)]
    assert nest.flatten_with_joined_string_paths(structure, ".")[3] == ("b.1.0", 2)
    told = nest.map_structure_with_paths(lambda path, leaf, other: (path, leaf - other), structure, structure)
    assert told == {"b": [("b/0", 0), (("b/1/0", 0), ("b/1/1", 0))], "a": Point(("a/x", 0), ("a/y", 0))}


def test_nested_keys_of_dictionaries():
    assert nest.flatten_dict_items({(4, (5,)): ("a", ("b",)), 6: "c"}) == {4: "a", 5: "b", 6: "c"}
    with pytest.raises(TypeError, match="takes a dictionary"):
        nest.flatten_dict_items(4)
    with pytest.raises(ValueError, match="not unique"):
        nest.flatten_dict_items({(4, 5): (1, 2), (5, 6): (3, 4)})
    with pytest.raises(ValueError, match="Key had 2 elements, but value had 1 elements"):
        nest.flatten_dict_items({(4, 5): 1})


def test_keys_must_be_sortable():
    with pytest.raises(TypeError, match="sortable"):
        nest.flatten({1: 2, "a": 3})


def test_what_is_nested():
    assert nest.is_nested([]) and nest.is_sequence({}) and nest.is_nested(Point(1, 2))
    assert not nest.is_nested("text") and not nest.is_nested(3)
