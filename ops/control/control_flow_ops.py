"""Dynamic control flow: `cond`, `case` and `while_loop`.

Branches, conditions and bodies are regions: nested graphs that the operation holds (see `tfray.framework.region`).
Only the branch that is taken runs, and a loop runs its body as long as its condition holds. A conditional or a loop is
one operation here. TensorFlow 1 instead adds Switch, Merge, Enter, Exit and NextIteration operations to the graph
(section 4.4 of the white paper).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InternalError, InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.effects import updates_within
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.region import Region, building, shared_reads, unify_inputs
from tfray.framework.tensor_list import TensorList
from tfray.framework.tensor_shape import UNKNOWN, TensorShape, as_shape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.ops.arrays.shape_ops import IDENTITY, cast, identity
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.math.comparison_ops import equal, logical_and, logical_not
from tfray.ops.math.reduction_ops import reduce_any
from tfray.ops.math.rounding_ops import ceil

# -- what stands in regions ----------------------------------------------------------------------------


def _region_input_kernel(ctx: KernelContext) -> Array:
    raise InternalError(f"{ctx.op_name!r} is an input of a branch or a loop, and got no value")


def _declared_shape(op: Operation) -> list[TensorShape]:
    return [as_shape(op.attrs["shape"])]


REGION_INPUT = register(
    OpDef(
        name="RegionInput",
        inputs=(),
        outputs=("value: dtype",),
        attrs=("shape",),
        types={"dtype": dtypes.ALL},
        shape=_declared_shape,
        kernels=on_every_device(_region_input_kernel),
        stateful=True,
    )
)


def no_value(dtype: dtypes.DType, name: str | None = None) -> Tensor:
    """A placeholder that a branch returns for a value that only the other branch computes. Its value is never used.

    Args:
        dtype: Dtype of that value.
        name: Name of the operation.

    Returns:
        A tensor of unknown shape.
    """
    return add_op(NO_VALUE, name=name, dtype=dtype)


def _no_value_kernel(ctx: KernelContext) -> Any:
    dtype = ctx.output_dtype()
    return ctx.xp.empty(0, dtype) if dtype.kind != "O" else np.empty(0, dtype)


def _no_value_shape(op: Operation) -> list[TensorShape]:
    return [UNKNOWN]


NO_VALUE = register(
    OpDef(
        name="NoValue",
        inputs=(),
        outputs=("value: dtype",),
        types={"dtype": dtypes.ALL},
        shape=_no_value_shape,
        kernels=on_every_device(_no_value_kernel),
    )
)


_NAMED: Final = IDENTITY.types["T"]
"""Dtypes of what can have another name."""


# -- cond ----------------------------------------------------------------------------------------------


def cond(
    pred: TensorLike,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """`true_fn()` if `pred` holds, otherwise `false_fn()`.

    Only the operations of the chosen function run, and of these only those that its result depends on. Tensors made
    outside the functions are computed in either case.

    Args:
        pred: bool scalar tensor.
        true_fn: Function that returns a tensor, an operation, or a nested structure of tensors.
        false_fn: Function that returns the same structure, with tensors of the same dtypes.
        strict: Keep a returned list or tuple of one element. By default the element itself is returned.
        name: Name of the operation.
        fn1: `true_fn`, by its older name.
        fn2: `false_fn`, by its older name.

    Returns:
        The structure that the functions return; for an operation, a bool tensor that is there once it ran.

    Raises:
        TypeError: `pred` is a Python bool, or a function is missing.
        ArgumentError: Which is a `ValueError` and `TypeError`: the results differ in type or structure.
        ValueError: A function returns nothing.

    Examples:
        >>> x = tf.constant(5)
        >>> session.run(tf.cond(x > 3, lambda: x * 10, lambda: x))
        np.int32(50)
    """
    if (true_fn is not None and fn1 is not None) or (false_fn is not None and fn2 is not None):
        raise TypeError("cond: give true_fn or fn1, and false_fn or fn2 (their old names), not both")
    then, orelse = fn1 if true_fn is None else true_fn, fn2 if false_fn is None else false_fn
    if not callable(then) or not callable(orelse):
        raise TypeError("cond takes two functions, true_fn and false_fn")
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool, but a tensor: use a Python `if`")
    graph = get_default_graph()
    with graph.name_scope(name or "cond") as scope:
        pred = convert_to_tensor(pred, dtypes.bool_)
        if pred.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"cond: pred has shape {pred.shape}, expected a scalar", site=pred.op.site)
        branches = [_branch(graph, scope, *each, strict) for each in ((then, "true_fn"), (orelse, "false_fn"))]
        first, second = branches
        _check_branches(first, second)
        decided = identity(pred, name="pred_id")
        outputs = _named(add_cond(decided, first.region, second.region, scope).outputs, "Merge")
        return nest.pack_sequence_as(first.structure, outputs, expand_composites=True)


def _named(outputs: Sequence[Tensor], name: str) -> list[Tensor]:
    """Tensors under the names that TensorFlow 1 gives to such results, by which programs fetch them."""
    return [identity(tensor, name=name) if tensor.dtype in _NAMED else tensor for tensor in outputs]


class _Branch:
    """A region and the structure that its function returned."""

    def __init__(self, region: Region, structure: Structure) -> None:
        self.region = region
        self.structure = structure


def _branch(graph: Graph, scope: str, function: Callable[[], Any], what: str, strict: bool) -> _Branch:
    region = Region(graph)
    with building(region, scope):
        returned = function()
        if returned is None:
            raise ValueError(f"cond: {what} returned nothing; it must return a tensor, an operation or a structure")
        structure = nest.map_structure(_returned_value, returned if strict else _without_list(returned))
        leaves = nest.flatten(structure, expand_composites=True)
        region.outputs = [region.own(tensor) for tensor in leaves]
    return _Branch(region, structure)


def _without_list(returned: Any) -> Any:
    """The element of a list or tuple of one."""
    return returned[0] if isinstance(returned, (list, tuple)) and len(returned) == 1 else returned


def _returned_value(value: TensorLike) -> Any:
    if nest.is_composite(value):
        return value
    if isinstance(value, Operation) or value is None:
        with get_default_graph().control_dependencies([] if value is None else [value]):
            return convert_to_tensor(True, name="done")
    return convert_to_tensor(value)


def _check_branches(first: _Branch, second: _Branch) -> None:
    try:
        nest.assert_same_structure(first.structure, second.structure)
        for index, (one, other) in enumerate(_leaf_pairs(first, second)):
            if len(nest.flatten(one, True)) != len(nest.flatten(other, True)) or _kind(one) is not _kind(other):
                raise ValueError(f"Cannot reconcile tf.cond {index}-th outputs: {one!r} and {other!r}")
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"cond: true_fn and false_fn must return the same structure: {error}") from None
    _widen_row_indices(first, second)
    for index, (a, b) in enumerate(zip(first.region.outputs, second.region.outputs, strict=True)):
        if a.dtype is not b.dtype:
            raise ArgumentError(
                f"cond: result {index} is {a.dtype.name} from true_fn and {b.dtype.name} from false_fn; use tf.cast"
            )


def _leaf_pairs(first: _Branch, second: _Branch) -> Iterator[tuple[Any, Any]]:
    return zip(nest.flatten(first.structure), nest.flatten(second.structure), strict=True)


def _kind(value: Any) -> type:
    return type(value) if nest.is_composite(value) else Tensor


def _widen_row_indices(first: _Branch, second: _Branch) -> None:
    """Where one branch has int64 indices of its rows and the other int32, those become int64 too, as in TensorFlow."""
    for one, other in _leaf_pairs(first, second):
        if isinstance(one, IndexedSlices) and one.indices.dtype is not other.indices.dtype:
            region, narrow = (first.region, one) if one.indices.dtype is dtypes.int32 else (second.region, other)
            indices = region.own(narrow.indices)
            with region.as_default():
                region.outputs = [cast(each, dtypes.int64) if each is indices else each for each in region.outputs]


def add_cond(pred: Tensor, then: Region, orelse: Region, name: str | None = None) -> Operation:
    """The operation that runs one of two finished regions without parameters."""
    captured = unify_inputs([then, orelse], 0)
    types = [tensor.dtype for tensor in then.outputs]
    attrs = {"then": then, "orelse": orelse, "Tout": types}
    controls = [*then.outer_controls, *orelse.outer_controls]
    graph = get_default_graph()
    return graph.add_operation("Cond", [graph.own(pred), *captured], attrs, name or "cond", control_inputs=controls)


def _cond_kernel(ctx: KernelContext, pred: Array, *inputs: Array) -> Any:
    with ctx.region("then" if pred else "orelse") as branch:
        return branch(*inputs)


def _cond_shape(op: Operation) -> list[TensorShape]:
    then, orelse = op.attrs["then"], op.attrs["orelse"]
    return [a.shape.most_specific_compatible_shape(b.shape) for a, b in zip(then.outputs, orelse.outputs, strict=True)]


COND = register(
    OpDef(
        name="Cond",
        inputs=("pred: bool", "inputs: any*"),
        outputs=("outputs: Tout*",),
        host_inputs=("pred",),
        attrs=("then", "orelse", "Tout"),
        regions=("then", "orelse"),
        shape=_cond_shape,
        kernels=on_every_device(_cond_kernel),
    )
)


# -- case ----------------------------------------------------------------------------------------------


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = None,
) -> Any:
    """The result of the function whose predicate is the first that holds.

    Args:
        pred_fn_pairs: Pairs of a bool scalar tensor and a function, or a dictionary of these.
        default: Function to call when no predicate holds. Without it the step fails then.
        exclusive: Fail the step when more than one predicate holds.
        strict: As for `cond`.
        name: Name scope.

    Returns:
        What the functions return: all must return the same structure and dtypes. Where their shapes differ the static
        shape has None.

    Raises:
        TypeError: An element is not a pair of a bool tensor and a function.
        InvalidArgumentError: At run time, no predicate holds and there is no default, or more than one does.

    Examples:
        >>> x = tf.constant(-5)
        >>> session.run(tf.case([(x < 0, lambda: -x)], default=lambda: x))
        np.int32(5)
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, Mapping) else list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]) or isinstance(pair[0], bool):
            raise TypeError(f"case takes pairs of a bool tensor and a function, not {pair!r}")
    if not pairs and default is None:
        raise ArgumentError("case needs at least one pair, or a default")
    graph = get_default_graph()
    with graph.name_scope(name or "case"):
        predicates = [convert_to_tensor(pred, dtypes.bool_) for pred, _ in pairs]
        checks = [at_most_one(predicates)] if exclusive and len(pairs) > 1 else []
        functions = [function for _, function in pairs]
        if default is None:
            # Without a default, the last function is also the branch for "none holds", and an assertion fails then.
            checks.append(
                Assert(reduce_any(predicates), ["Input error: None of conditions evaluated as True:", *predicates], 10)
            )
            default = functions.pop()
            predicates.pop()
        with graph.control_dependencies(checks):
            return _first_that_holds(list(zip(predicates, functions, strict=True)), default, strict)


def switch_case(
    branch_index: Tensor,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str | None = "switch_case",
) -> Any:
    """The result of the function of a number.

    Args:
        branch_index: int32 scalar tensor.
        branch_fns: Functions in the order of their numbers, or pairs of a number and a function, or a dictionary of
            these. The numbers are those from 0 on.
        default: Function for any other number; the last one of `branch_fns` when None.
        name: Name scope.

    Returns:
        What the functions return: all must return the same structure and dtypes.

    Raises:
        TypeError: `branch_index` is no integer tensor, or `branch_fns` are not functions or pairs.
        InvalidArgumentError: There is no function, or the numbers are not those from 0 on.

    Examples:
        >>> session.run(tf.switch_case(tf.constant(1), [lambda: tf.constant(10), lambda: tf.constant(20)]))
        np.int32(20)
    """
    if not isinstance(branch_index, Tensor) or not branch_index.dtype.is_integer:
        raise TypeError(f"switch_case: branch_index must be an integer tensor, not {branch_index!r}")
    if not branch_fns:
        raise InvalidArgumentError("switch_case needs at least one function")
    if not isinstance(branch_fns, (list, tuple, Mapping)):
        raise TypeError(f"switch_case: branch_fns must be a list, a tuple or a dictionary, not {branch_fns!r}")
    pairs = list(branch_fns.items()) if isinstance(branch_fns, Mapping) else list(branch_fns)
    if all(map(callable, pairs)):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or type(pair[0]) is not int or not callable(pair[1]):
            raise TypeError(f"switch_case takes functions, or pairs of a number and a function, not {pair!r}")
    functions = dict(pairs)
    if sorted(number for number, _ in pairs) != list(range(len(pairs))):
        raise InvalidArgumentError(
            f"switch_case: the numbers are {sorted(functions)}, expected those from 0 on, each once"
        )
    default = functions.pop(len(pairs) - 1) if default is None else default
    with get_default_graph().name_scope(name or "switch_case"):
        chosen = [(equal(branch_index, number), functions[number]) for number in sorted(functions)]
        return _first_that_holds(chosen, default, strict=True)


def _first_that_holds(pairs: list[tuple[Tensor, Callable[[], Any]]], default: Callable[[], Any], strict: bool) -> Any:
    if not pairs:
        returned = default()
        return nest.map_structure(_returned_value, returned if strict else _without_list(returned))
    (pred, function), *others = pairs
    otherwise = default if not others else lambda: _first_that_holds(others, default, strict)
    return cond(pred, function, otherwise, strict=strict)


def at_most_one(predicates: list[Tensor]) -> Operation:
    """An operation that fails the step when more than one of some predicates, two or more, holds."""
    seen, clash = predicates[0], logical_and(predicates[0], predicates[1])
    for pred in predicates[1:]:
        clash = clash if pred is predicates[1] else reduce_any([clash, logical_and(seen, pred)])
        seen = reduce_any([seen, pred])
    return Assert(
        logical_not(clash), ["Input error: exclusive=True: more than 1 conditions evaluated as True:", *predicates], 10
    )


# -- while_loop ----------------------------------------------------------------------------------------


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Structure,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: TensorLike | None = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeat ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    Args:
        cond: Function of the loop variables that returns a bool scalar tensor.
        body: Function of the loop variables that returns their next values, in the same structure.
        loop_vars: List, tuple, named tuple or dictionary of initial values: tensors of any shape, `TensorArray`, or
            structures.
        shape_invariants: In the same structure, the static shapes that hold in every iteration; by default those of
            the initial values. Where a body changes a size, that size must be None here.
        parallel_iterations: Accepted for TensorFlow 1's sake: devices that share a loop run ahead of one another as
            far as the data allows.
        back_prop: Whether gradients flow through the loop.
        swap_memory: Keep on the host what a GPU's forward pass saves for its backward pass.
        name: Name of the operation.
        maximum_iterations: Integer scalar after which to stop in any case.
        return_same_structure: Keep a list or tuple of one tensor. By default the tensor itself is returned.

    Returns:
        The loop variables after the last iteration, with the shapes in `shape_invariants`.

    Raises:
        TypeError: `cond` or `body` is not a function, or a result has another dtype than its variable.
        ValueError: There are no variables, the structures differ, or a shape changes that is not to change.

    Examples:
        >>> session.run(tf.while_loop(lambda i, total: i < 4, lambda i, total: (i + 1, total + i), (0, 0)))
        (np.int32(4), np.int32(6))
    """
    if not callable(cond) or not callable(body):
        raise TypeError("while_loop takes two functions, cond and body")
    if not nest.is_nested(loop_vars) or not loop_vars:
        raise ValueError(f"while_loop: loop_vars must be a list, tuple or dictionary with elements, not {loop_vars!r}")
    if parallel_iterations < 1:
        raise TypeError(f"parallel_iterations must be a positive integer, not {parallel_iterations!r}")
    description = (cond, body, loop_vars, shape_invariants, maximum_iterations)
    result = _add_loop(description, swap_memory, back_prop, name)
    is_one = isinstance(result, (list, tuple)) and len(nest.flatten(result, expand_composites=True)) == 1
    return result[0] if is_one and not return_same_structure else result


def counted_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Structure,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
) -> Any:
    """A `while_loop` for which TensorFlow gives `maximum_iterations` that its condition implies.

    What counts the turns there leaves its names free here, and the first ``Exit`` is the number of turns, so that all
    else has the names that it has there.
    """
    return _add_loop((cond, body, loop_vars, None, None), swap_memory, back_prop, None, is_counted=True)


_COUNTING: Final = ("Enter", "Merge", "Less", "LogicalAnd", "Identity", "add")
"""What counts the turns of a loop with `maximum_iterations` in TensorFlow."""


def _add_loop(
    description: tuple[Any, ...], swap_memory: bool, back_prop: bool, name: str | None, is_counted: bool = False
) -> Any:
    graph = get_default_graph()
    with graph.name_scope(name or "while") as scope:
        if is_counted:
            for taken in _COUNTING:
                graph.unique_name(taken)
        loop = _Loop(*description)
        return loop.packed(loop.build(graph, scope, swap_memory, back_prop), is_counted)


def _whole_turns(maximum: TensorLike) -> Tensor:
    """A greatest number of turns; of a fraction, the number of those that begin before it."""
    turns = convert_to_tensor(maximum, name="maximum_iterations")
    if not (turns.dtype.is_integer or turns.dtype.is_floating):
        raise ArgumentError(f"while_loop: maximum_iterations is {maximum!r}, expected a number")
    return cast(ceil(turns) if turns.dtype.is_floating else turns, dtypes.int32)


class _Loop:
    """The arguments of `while_loop`, on their way to an operation."""

    def __init__(
        self,
        cond: Callable[..., Any],
        body: Callable[..., Any],
        loop_vars: Structure,
        invariants: Any,
        maximum: TensorLike | None,
    ) -> None:
        self._cond = cond
        self._body = body
        self._structure = nest.map_structure(_as_initial, loop_vars)
        self._initial: list[Tensor] = nest.flatten(self._structure, expand_composites=True)
        self._shapes = self._invariant_shapes(invariants)
        self._limit = None if maximum is None else _whole_turns(maximum)
        if self._limit is not None and self._limit.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"while_loop: maximum_iterations is {maximum!r}, expected a scalar")
        if self._limit is not None:
            self._initial = [convert_to_tensor(0, dtypes.int32, "iteration_counter"), *self._initial]
            self._shapes = [TensorShape([]), *self._shapes]

    def _invariant_shapes(self, invariants: Any) -> list[TensorShape]:
        values = nest.flatten(self._structure)
        given = [None] * len(values) if invariants is None else nest.flatten_up_to(self._structure, invariants)
        shapes = [
            shape
            for value, invariant in zip(values, given, strict=True)
            for shape in _component_invariants(value, invariant)
        ]
        for tensor, shape in zip(self._initial, shapes, strict=True):
            if not _is_wider(shape, tensor.shape):
                raise ValueError(
                    f"while_loop: the shape invariant {shape} is not compatible with the initial shape {tensor.shape} "
                    f"of {tensor!r}"
                )
        return shapes

    def build(self, graph: Graph, scope: str, swap_memory: bool, back_prop: bool) -> Operation:
        entering = self._initial
        self._initial = _named(entering, "Enter")
        condition, body = Region(graph), Region(graph)
        with building(condition, scope):
            parameters = self._parameters(condition, "Merge")
            condition.outputs = [self._decide(parameters)]
        with building(body, scope):
            parameters = self._parameters(body, "Identity")
            body.outputs = [body.own(tensor) for tensor in self._advance(parameters)]
        _check_shapes(entering, body)
        _read_in_every_turn([condition, body])
        return add_while(condition, body, self._initial, scope, swap_memory=swap_memory, back_prop=back_prop)

    def _parameters(self, region: Region, name: str) -> list[Tensor]:
        return [
            region.add_input(tensor.dtype, shape, name, tensor.op.site)
            for tensor, shape in zip(self._initial, self._shapes, strict=True)
        ]

    def _decide(self, parameters: list[Tensor]) -> Tensor:
        region = get_default_graph()
        goes_on = None if self._limit is None else parameters[0] < self._limit
        decision = region.own(convert_to_tensor(_call(self._cond, self._user_structure(parameters)), dtypes.bool_))
        if decision.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"while_loop: cond returned shape {decision.shape}, expected a scalar")
        return decision if goes_on is None else logical_and(goes_on, decision)

    def _advance(self, parameters: list[Tensor]) -> list[Tensor]:
        counted = [] if self._limit is None else [parameters[0] + 1]
        returned = _call(self._body, self._user_structure(parameters))
        if not nest.is_nested(returned) and len(self._structure) == 1:
            returned = [returned]  # as in TensorFlow 1, a body with one variable may return the bare value
        if isinstance(returned, tuple) and isinstance(self._structure, list):
            returned = list(returned)
        elif isinstance(returned, list) and type(self._structure) is tuple:
            returned = tuple(returned)
        try:
            nest.assert_same_structure(self._structure, returned, check_types=False)
        except ValueError as error:
            raise ValueError(f"while_loop: body must return the structure of loop_vars: {error}") from None
        leaves = nest.flatten(returned, expand_composites=True)
        expected = parameters if self._limit is None else parameters[1:]
        if len(leaves) != len(expected):
            raise ValueError(f"while_loop: body returned {len(leaves)} tensors for {len(expected)} loop variables")
        return counted + [_next_value(value, old) for value, old in zip(leaves, expected, strict=True)]

    def _user_structure(self, tensors: Sequence[Tensor]) -> Any:
        flat = tensors if self._limit is None else tensors[1:]
        return nest.pack_sequence_as(self._structure, flat, expand_composites=True)

    def packed(self, op: Operation, is_counted: bool) -> Any:
        results = op.outputs[0 if is_counted else 1 : 1 + len(self._initial)]
        return self._user_structure(_named(results, "Exit")[is_counted:])


def _check_shapes(entering: Sequence[Tensor], body: Region) -> None:
    for tensor, within, following in zip(entering, body.inputs, body.outputs, strict=False):
        if not _is_wider(within.shape, following.shape):
            raise ValueError(
                f"while_loop: Input tensor {tensor.name!r} enters the loop with shape {within.shape}, but has shape "
                f"{following.shape} after one iteration. To allow the shape to vary across iterations, use the "
                "`shape_invariants` argument of tf.while_loop to specify a less-specific shape. What follows it is "
                f"{following!r}, made at {following.op.site}"
            )


def _read_in_every_turn(regions: Sequence[Region]) -> None:
    """Let a loop read the variables that it updates anew in every turn. Others are read once, before it.

    A copy of a read, ``tf.identity(v)``, counts as a read: in TensorFlow 1 it shares the variable's memory.
    """
    updated = {region.origin(handle) for region in regions for handle in updates_within(region)}
    if not updated:
        return
    for region in regions:
        reads = shared_reads(region)
        for value in list(region.captures):
            handle = reads.get(_copied(region.origin(region.captures[value])))
            if handle in updated:
                region.read_anew(value, handle)


def _copied(tensor: Tensor) -> Tensor:
    """What `tensor` is a copy of, as far as the program has not said when the copy is made."""
    while tensor.op.type == "Identity" and not tensor.op.control_inputs:
        tensor = tensor.op.inputs[0]
        tensor = tensor.graph.origin(tensor) if isinstance(tensor.graph, Region) else tensor
    return tensor


def _call(function: Callable[..., Any], structure: Any) -> Any:
    if isinstance(structure, Mapping):
        return function(structure)
    return function(*structure)


def _as_initial(value: TensorLike) -> Any:
    return value if nest.is_composite(value) else convert_to_tensor(value)


def _component_invariants(value: Any, invariant: Any) -> list[TensorShape]:
    """The shapes that the tensors of a loop variable keep: `invariant` is a shape, a `TypeSpec`, or None."""
    of_spec = getattr(invariant, "component_shapes", None)
    if of_spec is not None:
        if not invariant.is_compatible_with(value):
            raise TypeError(f"while_loop: the shape invariant {invariant!r} is not compatible with {value!r}")
        return list(of_spec())
    shape = None if invariant is None else as_shape(invariant)
    if not nest.is_composite(value):
        return [value.shape if shape is None else shape]
    of_value = getattr(value, "_component_invariants", None)
    return list(of_value(shape)) if of_value is not None else [part.shape for part in value._to_components()]


def _next_value(value: TensorLike, old: Tensor) -> Tensor:
    if isinstance(value, Operation):
        raise TypeError(f"while_loop: body returned the operation {value.name!r} for a loop variable: return a tensor")
    tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, preferred_dtype=old.dtype)
    if tensor.dtype is not old.dtype:
        raise TypeError(
            f"while_loop: a variable of dtype {old.dtype.name} is {tensor.dtype.name} after an iteration "
            f"({tensor!r}); use tf.cast"
        )
    return tensor


def _is_wider(shape: TensorShape, other: TensorShape) -> bool:
    """Whether every tensor that fits `other` also fits `shape`."""
    if shape.rank is None:
        return True
    if other.rank != shape.rank:
        return False
    return all(size is None or size == known for size, known in zip(shape.sizes, other.sizes, strict=True))


def add_while(
    condition: Region,
    body: Region,
    initial: Sequence[Tensor],
    name: str | None = None,
    *,
    swap_memory: bool = False,
    back_prop: bool = True,
) -> Operation:
    """The operation that repeats a finished body while a finished condition holds.

    Both regions take the loop variables as their first inputs.

    Args:
        condition: Returns one bool scalar.
        body: Returns the next values of the variables.
        initial: Their first values, of any shapes.
        name: Name of the operation.
        swap_memory: See `while_loop`.
        back_prop: See `while_loop`.
    """
    captured = unify_inputs([condition, body], len(initial))
    graph = get_default_graph()
    attrs = {
        "condition": condition,
        "body": body,
        "variables": len(initial),
        "swap_memory": swap_memory,
        "back_prop": back_prop,
        "Tout": [tensor.dtype for tensor in body.outputs],
    }
    inputs = [*(graph.own(tensor) for tensor in initial), *captured]
    controls = [*condition.outer_controls, *body.outer_controls]
    return graph.add_operation("While", inputs, attrs, name or "while", control_inputs=controls)


def stack_over_iterations(op: Operation, tensor: Tensor) -> Tensor:
    """Add an output to a While operation: the values of `tensor`, which is in its body, from all iterations.

    Returns:
        A variant, the `TensorList` of the values. A second call for the same tensor returns the same output.
    """
    body, variables = op.attrs["body"], op.attrs["variables"]
    for index, stacked in enumerate(body.outputs[variables:]):
        if stacked is tensor:
            return op.outputs[1 + variables + index]
    body.outputs.append(tensor)
    return op.graph.add_output(op, dtypes.variant, TensorShape([]))


def export_from_branch(op: Operation, branch: str, tensor: Tensor) -> Tensor:
    """Add an output to a Cond operation: `tensor`, which is in the region `branch`. Unused if the other branch runs."""
    region: Region = op.attrs[branch]
    other: Region = op.attrs["orelse" if branch == "then" else "then"]
    for index, exported in enumerate(region.outputs):
        if exported is tensor:
            return op.outputs[index]
    region.outputs.append(tensor)
    with other.as_default():
        other.outputs.append(no_value(tensor.dtype))
    return op.graph.add_output(op, tensor.dtype, UNKNOWN)


def _while_kernel(ctx: KernelContext, *inputs: Array) -> list[Any]:
    with ctx.region("condition") as condition, ctx.region("body") as body:
        if ctx.step is None:
            return _repeat(ctx, condition, body, inputs)
        # Sends inside the body use the same edge in every turn: the turn's number tells their tensors apart.
        with ctx.step.turns() as next_turn:

            def counted_body(*values: TensorLike) -> tuple[Any, ...]:
                outputs: tuple[Any, ...] = body(*values)
                next_turn()
                return outputs

            return _repeat(ctx, condition, counted_body, inputs)


def _repeat(
    ctx: KernelContext, condition: Callable[..., Any], body: Callable[..., tuple[Any, ...]], inputs: Sequence[Array]
) -> list[Any]:
    count = ctx.attr("variables")
    variables, captures = tuple(inputs[:count]), tuple(inputs[count:])
    turns = 0
    stacks: list[list[Any]] = [[] for _ in ctx.attr("body").outputs[count:]]
    if not stacks:
        while condition(*variables, *captures)[0]:
            variables = body(*variables, *captures)
            turns += 1
        return [np.int32(turns), *variables]
    keep = ctx.to_host if ctx.attr("swap_memory") else None
    while condition(*variables, *captures)[0]:
        outputs = body(*variables, *captures)
        variables = outputs[:count]
        for stack, value in zip(stacks, outputs[count:], strict=True):
            stack.append(value if keep is None else keep(value))
        turns += 1
    return [np.int32(turns), *variables, *map(TensorList.of, stacks)]


def _while_shape(op: Operation) -> list[TensorShape]:
    body, count = op.attrs["body"], op.attrs["variables"]
    stacks = [TensorShape([])] * (len(body.outputs) - count)
    return [TensorShape([]), *(tensor.shape for tensor in body.inputs[:count]), *stacks]


WHILE = register(
    OpDef(
        name="While",
        inputs=("inputs: any*",),
        outputs=("iterations: int32", "outputs: Tout*"),
        attrs=("condition", "body", "variables", "swap_memory", "back_prop", "Tout"),
        regions=("condition", "body"),
        shape=_while_shape,
        kernels=on_every_device(_while_kernel),
    )
)


def smart_cond(
    pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None
) -> Any:
    """`cond`, except that a Python value or constant `pred` is decided now: only one function is then called.

    Args:
        pred: bool scalar: a tensor, a variable, or a Python bool, 0 or 1.
        true_fn: As for `cond`.
        false_fn: As for `cond`.
        name: Name of the operation.

    Returns:
        As of `cond`: the shapes that the functions return.

    Raises:
        TypeError: `pred` is something else.
    """
    is_in_graph = isinstance(pred, Tensor) or hasattr(pred, "handle")
    if not is_in_graph and (np.asarray(pred).size != 1 or pred not in (0, 1)):
        raise ArgumentError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {pred!r}")
    value = constant_value(pred) if isinstance(pred, Tensor) else None if is_in_graph else pred
    if value is not None:
        return true_fn() if bool(value) else false_fn()
    return cond(pred, true_fn, false_fn, name=name)
