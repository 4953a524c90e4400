"""Nested structures: lists, tuples, named tuples and dictionaries of values, flattened and put together again.

Dictionaries are visited in the order of their sorted keys, as in TensorFlow. An object that stands for several tensors
(a `TensorArray`, an `IndexedSlices`) has methods ``_to_components`` and ``_with_components``, and is flattened into
them when `expand_composites` is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tfray.errors import ArgumentError

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_dict_items",
    "flatten_up_to",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "is_composite",
    "is_nested",
    "is_sequence",
    "map_structure",
    "map_structure_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "pack_sequence_as",
]


def is_nested(seq: Any) -> bool:
    """Whether `seq` is a list, tuple, named tuple or dictionary."""
    return isinstance(seq, (list, tuple, Mapping))


is_sequence = is_nested


def is_composite(value: Any) -> bool:
    """Whether `value` is an object that stands for several tensors."""
    return hasattr(value, "_to_components")


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of `structure`, in order; `structure` itself in a list when it is not nested."""
    return list(_leaves(structure, expand_composites))


def _leaves(structure: Any, expand: bool) -> Iterator[Any]:
    if isinstance(structure, Mapping):
        for key in _sorted_keys(structure):
            yield from _leaves(structure[key], expand)
    elif isinstance(structure, (list, tuple)):
        for item in structure:
            yield from _leaves(item, expand)
    elif expand and is_composite(structure):
        yield from structure._to_components()
    else:
        yield structure


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """The leaves `flat_sequence` in the form of `structure`.

    Raises:
        ValueError: There are more or fewer leaves than `structure` has.
    """
    wanted = len(flatten(structure, expand_composites))
    if wanted != len(flat_sequence):
        raise ValueError(f"the structure {structure!r} has {wanted} leaves, and {len(flat_sequence)} are given")
    return _pack(structure, iter(flat_sequence), expand_composites)


def _pack(structure: Any, leaves: Iterator[Any], expand: bool) -> Any:
    if isinstance(structure, Mapping):
        items = {key: _pack(structure[key], leaves, expand) for key in _sorted_keys(structure)}
        return type(structure)((key, items[key]) for key in structure)  # type: ignore[call-arg]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*[_pack(item, leaves, expand) for item in structure])
    if isinstance(structure, (list, tuple)):
        return type(structure)([_pack(item, leaves, expand) for item in structure])
    if expand and is_composite(structure):
        return structure._with_components([next(leaves) for _ in structure._to_components()])
    return next(leaves)


def map_structure(
    func: Callable[..., Any], *structure: Any, check_types: bool = True, expand_composites: bool = False
) -> Any:
    """`func` of the corresponding leaves of structures, in the form of the first.

    Args:
        func: Takes one leaf of each structure.
        *structure: The structures.
        check_types: Whether a list must meet a list, and not a tuple.
        expand_composites: Whether `func` takes the tensors of which composites consist.

    Raises:
        ArgumentError: Which is a `ValueError` and `TypeError`: the structures differ, or there is none.
    """
    if not callable(func) or not structure:
        raise ArgumentError(f"map_structure takes a function and structures, got {func!r} and {len(structure)} of them")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand_composites)
    leaves = [flatten(each, expand_composites) for each in structure]
    return pack_sequence_as(structure[0], [func(*group) for group in zip(*leaves, strict=True)], expand_composites)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise `ArgumentError`, which is a `ValueError` and `TypeError`, unless the two are nested alike.

    Args:
        nest1: A structure.
        nest2: Another.
        check_types: Whether a list must meet a list, and not a tuple.
        expand_composites: Accepted for symmetry: composites count as leaves of equal kind.
    """
    if is_nested(nest1) != is_nested(nest2):
        raise ArgumentError(_differ("", nest1, nest2))
    if not is_nested(nest1):
        return
    are_mappings = isinstance(nest1, Mapping), isinstance(nest2, Mapping)
    if check_types and (are_mappings[0] != are_mappings[1] or (not are_mappings[0] and type(nest1) is not type(nest2))):
        raise ArgumentError(_differ(" (not the same sequence type)", nest1, nest2))
    if len(nest1) != len(nest2):
        raise ArgumentError(_differ(" (not the same number of elements)", nest1, nest2))
    if isinstance(nest1, Mapping) and set(nest1) != set(nest2):
        raise ArgumentError(_differ(" (not the same set of keys)", nest1, nest2))
    for a, b in zip(_children(nest1), _children(nest2), strict=True):
        assert_same_structure(a, b, check_types, expand_composites)


def _differ(why: str, nest1: Any, nest2: Any) -> str:
    """TensorFlow's words, and which two structures they are about."""
    return f"The two structures don't have the same nested structure{why}: {nest1!r} and {nest2!r}"


def _children(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [structure[key] for key in _sorted_keys(structure)]
    return list(structure)


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """The parts of `input_tree` where `shallow_tree` has leaves.

    Args:
        shallow_tree: A structure.
        input_tree: One that is nested as `shallow_tree` is, or deeper.
        check_types: Whether a list must meet a list, and not a tuple.
        expand_composites: Accepted for symmetry.

    Raises:
        ArgumentError: As `assert_shallow_structure` does.
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types)
    return list(_up_to(shallow_tree, input_tree))


def _up_to(shallow: Any, structure: Any) -> Iterator[Any]:
    if is_nested(shallow):
        for a, b in zip(_children(shallow), _children(structure), strict=True):
            yield from _up_to(a, b)
    else:
        yield structure


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, check_types: bool = True) -> Any:
    """`func` of the parts of structures where `shallow_tree` has leaves, in the form of `shallow_tree`.

    Args:
        shallow_tree: A structure.
        func: Takes one part of each of `inputs`.
        *inputs: Structures that are nested as `shallow_tree` is, or deeper.
        check_types: Whether a list must meet a list, and not a tuple.

    Raises:
        ArgumentError: As `assert_shallow_structure` does, or there are no `inputs`.
    """
    if not inputs:
        raise ArgumentError("map_structure_up_to: Cannot map over no sequences")
    parts = [flatten_up_to(shallow_tree, each, check_types) for each in inputs]
    return pack_sequence_as(shallow_tree, [func(*group) for group in zip(*parts, strict=True)])


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raise `ArgumentError`, a `ValueError` and `TypeError`, unless one structure is nested as another, or deeper.

    Args:
        shallow_tree: A structure.
        input_tree: What must be nested at least as it is.
        check_types: Whether a list must meet a list, and not a tuple.
        expand_composites: Accepted for symmetry.
    """
    if not is_nested(shallow_tree):
        return
    if not is_nested(input_tree):
        raise ArgumentError(
            f"If shallow structure is a sequence, input must also be a sequence. Input has type: {type(input_tree)}."
        )
    are_mappings = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    if check_types and not are_mappings and type(shallow_tree) is not type(input_tree):
        raise ArgumentError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    if len(input_tree) != len(shallow_tree):
        raise ArgumentError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if are_mappings and (strangers := [key for key in _sorted_keys(shallow_tree) if key not in input_tree]):
        raise ArgumentError(
            "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has the following "
            f"keys that are not in the input_tree: {strangers}."
        )
    for a, b in zip(_children(shallow_tree), _children(input_tree), strict=True):
        assert_shallow_structure(a, b, check_types)


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dictionary whose keys and values are flattened: each leaf of a key leads to the leaf of the value at its place.

    Args:
        dictionary: Its keys and values are leaves, or nested alike.

    Raises:
        TypeError: It is no dictionary.
        ValueError: A key has more or fewer leaves than its value, or a leaf is in two keys.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError(f"flatten_dict_items takes a dictionary, got {dictionary!r}")
    flat: dict[Any, Any] = {}
    for key, value in dictionary.items():
        names, values = flatten(key), flatten(value)
        if len(names) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(names)} elements, but value had {len(values)} elements. "
                f"Key: {names}, value: {values}."
            )
        for name, leaf in zip(names, values, strict=True):
            if name in flat:
                raise ValueError(f"Could not flatten dictionary: key {name} is not unique.")
            flat[name] = leaf
    return flat


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves of `structure`, in order, each with the keys and positions that lead to it."""
    paths = _paths(structure, ()) if is_nested(structure) else iter([()])
    return list(zip(paths, flatten(structure), strict=True))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """The leaves of `structure`, in order, each with the keys and positions that lead to it as a text."""
    return [(separator.join(map(str, path)), leaf) for path, leaf in flatten_with_tuple_paths(structure)]


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """`map_structure` with a function that also takes, first, the keys and positions that lead to the leaves."""
    paths = iter([path for path, _ in flatten_with_tuple_paths(structure[0])])
    return map_structure(lambda *leaves: func(next(paths), *leaves), *structure, check_types=check_types)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """`map_structure` with a function that also takes, first, what leads to the leaves, such as ``"a/0"``."""
    return map_structure_with_tuple_paths(
        lambda path, *leaves: func("/".join(map(str, path)), *leaves), *structure, check_types=check_types
    )


def _paths(structure: Any, before: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(structure, Mapping):
        keys: Sequence[Any] = _sorted_keys(structure)
    else:
        keys = getattr(structure, "_fields", range(len(structure)))
    for key, child in zip(keys, _children(structure), strict=True):
        if is_nested(child):
            yield from _paths(child, (*before, key))
        else:
            yield (*before, key)


def _sorted_keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError("the keys of a nested dictionary must be sortable") from None
