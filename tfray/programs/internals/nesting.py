"""What TensorFlow's module of nested structures has beyond the public functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tfray.errors import ArgumentError
from tfray.framework.nest import (
    assert_shallow_structure,
    flatten_up_to,
    flatten_with_tuple_paths,
    is_composite,
    is_nested,
    pack_sequence_as,
)


def is_sequence_or_composite(seq: Any) -> bool:
    """Whether `seq` is nested, or stands for several tensors."""
    return is_nested(seq) or is_composite(seq)


def is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether `instance` is a named tuple; `strict`: and of no class that derives from one."""
    fields = getattr(instance, "_fields", None)
    if not isinstance(instance, tuple) or not isinstance(fields, tuple):
        return False
    return not strict or type(instance).__base__ is tuple


def is_mapping(instance: Any) -> bool:
    """Whether `instance` is a dictionary."""
    return isinstance(instance, Mapping)


def yield_value(iterable: Any) -> Iterator[Any]:
    """The values of a sequence or a dictionary, one level deep, in the order in which they are flattened."""
    return iter([iterable[key] for key in sorted(iterable)] if isinstance(iterable, Mapping) else iterable)


def sequence_like(instance: Any, args: Any) -> Any:
    """A structure as `instance`, one level deep, with the values `args`, which come in the order of flattening."""
    if isinstance(instance, Mapping):
        values = dict(zip(sorted(instance), args, strict=False))
        kind: Any = type(instance)
        return kind((key, values[key]) for key in instance)
    return type(instance)(*args) if is_namedtuple(instance) else type(instance)(args)


def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[tuple[Any, ...]]:
    """The keys and positions that lead to each leaf, in order."""
    return (path for path, _ in flatten_with_tuple_paths(nest, expand_composites))


def get_traverse_shallow_structure(
    traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False
) -> Any:
    """The upper part of `structure`, with truth values as leaves, for `flatten_up_to` and its kin.

    Args:
        traverse_fn: Is asked of each part whether what is below it counts. Answers with a truth value, or with one for
            each of the part's values, in a structure like the part.
        structure: A structure.
        expand_composites: Whether what stands for several tensors is asked about as structures are.

    Raises:
        TypeError: An answer is something else.
        ArgumentError: An answer is a structure unlike the part.
    """
    is_deep = is_sequence_or_composite if expand_composites else is_nested
    answer = traverse_fn(structure)
    if not is_deep(structure) or answer is False:
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn returned a non-bool scalar: {answer} for input: {structure}")
        return answer
    if expand_composites and is_composite(structure):
        return True
    if isinstance(answer, bool):
        return sequence_like(
            structure,
            [get_traverse_shallow_structure(traverse_fn, each, expand_composites) for each in yield_value(structure)],
        )
    if not is_nested(answer):
        raise TypeError(f"traverse_fn returned a non-bool scalar: {answer} for input: {structure}")
    assert_shallow_structure(answer, structure, check_types=False)
    below = []
    for goes_on, each in zip(yield_value(answer), yield_value(structure), strict=True):
        if not isinstance(goes_on, bool):
            raise TypeError(
                f"traverse_fn didn't return a depth=1 structure of bools.  saw: {answer}  for structure: {structure}"
            )
        below.append(goes_on and get_traverse_shallow_structure(traverse_fn, each, expand_composites))
    return sequence_like(structure, below)


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """The parts of `input_tree` where `shallow_tree` has leaves, each with the keys and positions that lead to it."""
    parts = flatten_up_to(shallow_tree, input_tree, check_types, expand_composites)
    return list(zip(yield_flat_paths(shallow_tree), parts, strict=True))


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, check_types: bool = True
) -> Any:
    """`func` of what leads to each leaf of `shallow_tree` and of the parts of `inputs` there, in its form."""
    if not inputs:
        raise ArgumentError("map_structure_with_tuple_paths_up_to: Cannot map over no sequences")
    parts = [flatten_up_to(shallow_tree, each, check_types) for each in inputs]
    paths = yield_flat_paths(shallow_tree)
    return pack_sequence_as(shallow_tree, [func(*group) for group in zip(paths, *parts, strict=True)])
