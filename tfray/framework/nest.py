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
    "flatten",
    "flatten_up_to",
    "is_composite",
    "is_nested",
    "is_sequence",
    "map_structure",
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


def flatten_up_to(shallow: Any, structure: Any) -> list[Any]:
    """The parts of `structure` where `shallow` has leaves. Raises `ValueError` if `structure` is not that deep."""
    if not is_nested(shallow):
        return [structure]
    if not is_nested(structure) or len(shallow) != len(structure):
        raise ValueError(f"{structure!r} is not nested as {shallow!r}")
    pairs = zip(_children(shallow), _children(structure), strict=True)
    return [leaf for a, b in pairs for leaf in flatten_up_to(a, b)]


def _sorted_keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError("the keys of a nested dictionary must be sortable") from None
