"""Symbolic back-propagation: gradients of tensors, built as more graph.

`gradients` walks once from the targets to the sources, latest operation first. Operations are numbered as they are
made, and take only tensors that exist already. So this order has every operation before those that it depends on, and
needs no sorting. The walk visits only operations that lie on a path from a source to a target.

For each output of its operation a gradient function receives:

- the sum of the gradients that flow into the output;
- None if no gradient flows into it. Gradient functions of an `OpDef` deal with None themselves, so that outputs which
  exist for the gradient alone cost nothing. Functions registered by `RegisterGradient`, and those of
  `custom_gradient`, receive zeros instead, as in TensorFlow 1.

Sparse gradients (`IndexedSlices`) stay sparse through identities and reads of variables, and in a sum of sparse
gradients only. Every other gradient function receives them dense.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.importer import COPIES
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import FLAT, not_differentiable, registered_ops
from tfray.framework.region import Region
from tfray.framework.tensor_operators import REWIRED
from tfray.framework.traversal import reachable_backward, topological_order
from tfray.ops.arrays import array_ops, grouping_ops, tuple_ops
from tfray.ops.control import tensor_array_ops
from tfray.ops.math import math_ops
from tfray.region_gradients import GRADIENTS, carries_gradient

Gradient = Tensor | IndexedSlices


class AggregationMethod:
    """How `gradients` sums the gradients of a tensor with several uses.

    Attributes:
        ADD_N: One operation adds them all, when all are there.
        DEFAULT: `ADD_N`.
        EXPERIMENTAL_TREE: Additions of two terms each, which free the terms earlier.
        EXPERIMENTAL_ACCUMULATE_N: `ADD_N`, whose kernel needs no more memory than its result.
    """

    ADD_N: Final = 0
    DEFAULT: Final = ADD_N
    EXPERIMENTAL_TREE: Final = 1
    EXPERIMENTAL_ACCUMULATE_N: Final = 2


class UnconnectedGradients:
    """What `gradients` returns for a source on which no target depends.

    Attributes:
        NONE: None.
        ZERO: Zeros of the source's shape.
    """

    NONE: Final = "none"
    ZERO: Final = "zero"


# -- which function differentiates an operation ----------------------------------------------------------

_REGISTERED: Final[dict[str, Callable[..., Any] | None]] = {}


class RegisterGradient:
    """Decorator that registers a gradient function under a name.

    The name is that of an operation type without gradient, or a new one to be used with
    `Graph.gradient_override_map`. The function is called as ``function(op, *d_outputs)`` and returns one
    gradient or None per input of `op`; a single one needs no list. Where no gradient flows into an output, the
    ``d_output`` is zeros.

    Args:
        op_type: The name.

    Raises:
        TypeError: It is no text.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError(f"RegisterGradient: op_type is {op_type!r}, expected the name of a type of operations")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Register `f`. Raises `KeyError` when the name has a gradient already."""
        _register(self._op_type, f)
        return f


def NotDifferentiable(op_type: str) -> None:
    """Declare that no gradient flows through operations of type `op_type`.

    Raises:
        KeyError: The type has a gradient already.
    """
    _register(op_type, None)


NoGradient = NotDifferentiable


def _register(name: str, function: Callable[..., Any] | None) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a gradient is registered under the name of an operation type, not under {name!r}")
    definition = registered_ops().get(name)
    if name in _REGISTERED or (definition is not None and definition.gradient is not None):
        raise KeyError(f"a gradient is registered for {name!r} already")
    _REGISTERED[name] = function


def _gradient_function(op: Operation) -> tuple[Callable[..., Any] | None, bool]:
    """The gradient function of `op` (None if no gradient flows through it), and whether it accepts None for zeros."""
    override = op.attrs.get("_gradient_overrides", {}).get(op.type)
    if override is not None:
        return _overriding_function(op, override), False
    if op.type in _REGISTERED:
        return _REGISTERED[op.type], False
    if op.type in GRADIENTS:
        return _region_gradient, True
    if op.op_def.gradient is None:
        if not any(map(carries_gradient, op.outputs)):  # integers or flags: `tf.argmax`, a comparison
            return None, False
        raise _no_gradient_error(op, "")
    return op.op_def.gradient, True


def _region_gradient(op: Operation, *d_outputs: Any) -> list[Any]:
    return GRADIENTS[op.type](op, d_outputs, _backpropagate)


def _backpropagate(
    targets: Sequence[Tensor], d_targets: Sequence[Gradient], sources: Sequence[Tensor]
) -> list[Gradient | None]:
    """Walk backward through a region, building in the current graph."""
    walk = _BackwardWalk(get_default_graph(), frozenset(), colocate=False, gate=False, method=AggregationMethod.DEFAULT)
    for y, d_y in zip(targets, d_targets, strict=True):
        walk.add(y, d_y)
    walk.run(targets, sources)
    return [walk.total(tensor) for tensor in sources]


def _overriding_function(op: Operation, name: str) -> Callable[..., Any] | None:
    if name in _CUSTOM:
        return _CUSTOM[name].differentiate
    if name in _REGISTERED:
        return _REGISTERED[name]
    definition = registered_ops().get(name)
    if definition is None or definition.gradient is None:
        raise _no_gradient_error(op, f": gradient_override_map names {name!r}, which is not registered")
    return definition.gradient


def _no_gradient_error(op: Operation, problem: str) -> LookupError:
    return LookupError(
        f"No gradient defined for operation {op.name!r} (op type: {op.type}){problem}. It is created at {op.site} and "
        "lies between the targets and the sources: "
        "register one with tf.RegisterGradient, declare the type tf.NotDifferentiable, or use tf.stop_gradient"
    )


# -- gradients -------------------------------------------------------------------------------------------


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str | None = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """Differentiate the sum of `ys` with respect to each of `xs`.

    Adds the operations of the backward pass to the graph, those of each operation under the name scope
    ``<name>/<operation>_grad``. They can be differentiated again.

    Args:
        ys: A tensor or a list of them. Nothing flows through integers, flags and strings.
        xs: A tensor or variable, or a list of them. The gradient of a variable counts every read of it.
        grad_ys: For each of `ys` the gradient of the final quantity with respect to it; None stands for ones, and
            is not enough for complex ones.
        name: Name scope of the new operations.
        colocate_gradients_with_ops: Put each gradient on the device of the operation differentiated.
        gate_gradients: Use a gradient of an operation only when all gradients of that operation are computed.
        aggregation_method: One of `AggregationMethod`.
        stop_gradients: Tensors to treat as constants: no gradient flows through what computes them.
        unconnected_gradients: One of `UnconnectedGradients`.

    Returns:
        For each of `xs` a tensor of its shape and dtype, an `IndexedSlices` where only rows of it are used,
        or None where no target depends on it.

    Raises:
        InvalidArgumentError: Tensors of several graphs, or a gradient whose shape or dtype is not that of its tensor.
        TypeError: A complex target without its gradient, or a target without a gradient of ones.
        LookupError: An operation on the way has no gradient.
    """
    targets = [convert_to_tensor(y) for y in _as_list(ys)]
    graph = _building_graph(targets[0]) if targets else get_default_graph()
    sources = [_source(x, graph) for x in _as_list(xs)]
    stops = frozenset(_source(x, graph) for x in _as_list(stop_gradients))
    for y in targets:
        _check_target(y, graph)
    zeros_if_unconnected = _is_zero(unconnected_gradients)
    with graph.as_default(), graph.name_scope(name or "gradients"):
        walk = _BackwardWalk(
            graph, stops, colocate_gradients_with_ops, bool(gate_gradients), _checked_method(aggregation_method)
        )
        for y, d_y in zip(targets, _initial_gradients(targets, grad_ys), strict=True):
            walk.add(y, d_y)
        walk.run_through_regions(targets, sources)
        totals = [walk.total(tensor) for tensor in sources]
    with graph.as_default():
        return [
            array_ops.zeros_like(x) if d is None and (zeros_if_unconnected or tensor in walk.flat) else d
            for x, tensor, d in zip(_as_list(xs), sources, totals, strict=True)
        ]


def _as_list(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _building_graph(target: Tensor) -> Graph:
    """The graph that the gradients of `target` go to: within a branch or a loop the region, otherwise its own."""
    current = get_default_graph()
    if current.admits(target.graph):
        return current
    if current.root is target.graph.root:
        raise InvalidArgumentError(f"gradients: {current.refusal(target)}")
    return target.graph


def _source(x: Any, graph: Graph) -> Tensor:
    """The tensor that stands for a source: the handle of a variable, which collects the gradients of its reads."""
    handle = getattr(x, "handle", None)
    tensor = handle if isinstance(handle, Tensor) else convert_to_tensor(x)
    if not graph.admits(tensor.graph):
        raise InvalidArgumentError(f"gradients: {x!r} belongs to another graph than the ys", op_name=tensor.op.name)
    return tensor


def _check_target(y: Tensor, graph: Graph) -> None:
    if not graph.admits(y.graph):
        raise InvalidArgumentError(f"gradients: {y!r} belongs to another graph than the first of the ys")


def _is_zero(unconnected_gradients: Any) -> bool:
    value = getattr(unconnected_gradients, "value", unconnected_gradients)
    if value not in (UnconnectedGradients.NONE, UnconnectedGradients.ZERO):
        raise InvalidArgumentError(f"Unknown value for unconnected_gradients: {value!r}; expected 'none' or 'zero'")
    return value == UnconnectedGradients.ZERO


def _checked_method(method: int | None) -> int:
    known = (
        AggregationMethod.ADD_N,
        AggregationMethod.EXPERIMENTAL_TREE,
        AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
    )
    if method is not None and method not in known:
        raise InvalidArgumentError(f"gradients: aggregation_method is {method!r}, expected a tf.AggregationMethod")
    return AggregationMethod.DEFAULT if method is None else method


def _initial_gradients(targets: Sequence[Tensor], grad_ys: Any) -> list[Gradient]:
    given = _as_list(grad_ys) or [None] * len(targets)
    if len(given) != len(targets):
        raise InvalidArgumentError(f"gradients: there are {len(targets)} ys and {len(given)} grad_ys")
    return [_initial_gradient(y, d_y, index) for index, (y, d_y) in enumerate(zip(targets, given, strict=True))]


def _initial_gradient(y: Tensor, d_y: Any, index: int) -> Gradient:
    if y.dtype.is_complex and d_y is None:
        raise ArgumentError(f"Gradients of complex tensors must set grad_ys (y.dtype = {y.dtype!r}): {y!r} is one")
    if y.dtype in (dtypes.bool_, dtypes.string) and (d_y is not None or y.dtype is dtypes.string):
        raise ArgumentError(f"gradients: {y!r} is {y.dtype.name}, and only numbers have gradients")
    if d_y is None:
        return array_ops.ones_like(y, name=f"grad_ys_{index}")
    if isinstance(d_y, IndexedSlices):
        return d_y
    d_y = convert_to_tensor(d_y, y.dtype, name=f"grad_ys_{index}")
    if d_y.shape.is_compatible_with(y.shape):
        return d_y
    # Gradients that only lack dimensions, or have further ones of size 1 before the others, mean those of `y`'s shape.
    given, wanted = d_y.shape.as_list(), y.shape.as_list()
    surplus = max(len(given) - len(wanted), 0)
    last = given[surplus:]
    pairs = zip(reversed(last), reversed(wanted), strict=False)
    if set(given[:surplus]) - {1} or not all(size in (1, None, other) or other is None for size, other in pairs):
        raise InvalidArgumentError(f"gradients: grad_ys {d_y!r} has another shape than {y!r}")
    sizes = array_ops.shape(y)
    return array_ops.broadcast_to(array_ops.reshape(d_y, array_ops.shape(d_y)[surplus:]) if surplus else d_y, sizes)


@dataclass
class _BackwardWalk:
    """The state of one backward pass.

    Attributes:
        graph: The graph that is differentiated, and grows.
        stops: Tensors through which no gradient flows.
        colocate: Put gradients on the devices of their operations.
        gate: Wait for all gradients of an operation before one is used.
        method: How to sum, one of `AggregationMethod`.
        reached: Tensors that depend on a source, sources included.
        partials: For each tensor the gradients of its consumers so far; a list of one when they have been summed.
        flat: Tensors of which some consumers have the gradient 0 everywhere: that is not computed, but is no None.
    """

    graph: Graph
    stops: frozenset[Tensor]
    colocate: bool
    gate: bool
    method: int
    reached: set[Tensor] = field(default_factory=set)
    partials: dict[Tensor, list[Gradient]] = field(default_factory=dict)
    flat: set[Tensor] = field(default_factory=set)

    def run(self, targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        """Differentiate every operation between `sources` and `targets`, latest first."""
        for op in reversed(self._path(targets, sources)):
            d_outputs = [None if tensor in self.stops else self.total(tensor) for tensor in op.outputs]
            if any(d is not None for d in d_outputs):
                self._differentiate(op, d_outputs)
            elif any(tensor in self.flat and tensor not in self.stops for tensor in op.outputs):
                self._pass_flat(op)

    def run_through_regions(self, targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        """Differentiate from `targets` to `sources`, which may be of the graphs around that of the targets."""
        for graph in _from_the_innermost(self.graph):
            inner = [tensor for tensor in targets if tensor.graph is graph]
            crossings = dict(graph.captures) if isinstance(graph, Region) else {}
            self.run(inner, [*(tensor for tensor in sources if tensor.graph is graph), *crossings.values()])
            targets = [tensor for tensor in targets if tensor.graph is not graph]
            for outer, captured in crossings.items():
                gradient = self.total(captured)
                if gradient is not None:
                    self.add(outer, gradient)
                    targets.append(outer)
                elif captured in self.flat:
                    self.flat.add(outer)
                    targets.append(outer)

    def _path(self, targets: Sequence[Tensor], sources: Sequence[Tensor]) -> list[Operation]:
        """The operations between `sources` and `targets`, each after those whose outputs it takes."""
        self.reached.update(filter(carries_gradient, sources))
        path = []
        behind = reachable_backward((tensor.op for tensor in targets), _differentiable_inputs)
        in_order = (
            topological_order(behind) if self.graph.extra(REWIRED, list) else sorted(behind, key=lambda op: op.id)
        )
        for op in in_order:
            if any(tensor in self.reached for tensor in op.inputs):
                path.append(op)
                self.reached.update(t for t in op.outputs if carries_gradient(t) and t not in self.stops)
        return path

    def _differentiate(self, op: Operation, d_outputs: list[Gradient | None]) -> None:
        function, takes_none = _gradient_function(op)
        if function is None:
            return
        with self._scope_of(op):
            d_inputs = function(op, *_as_accepted(op, d_outputs, takes_none))
            d_inputs = [d_inputs] if isinstance(d_inputs, Gradient) or d_inputs is None else list(d_inputs)
            self.flat.update(t for t, d in zip(op.inputs, d_inputs, strict=False) if d is FLAT and t in self.reached)
            d_inputs = _checked(op, [None if d is FLAT else d for d in d_inputs], of_program=not takes_none)
            # A gradient that leads to no source is dropped: it is not summed, nothing waits for it, so it never runs.
            d_inputs = [d if t in self.reached else None for t, d in zip(op.inputs, d_inputs, strict=True)]
            if self.gate and sum(d is not None for d in d_inputs) > 1:
                d_inputs = grouping_ops.tuple_(d_inputs)
        for tensor, d_input in zip(op.inputs, d_inputs, strict=True):
            if d_input is not None:
                self.add(tensor, d_input)

    def _pass_flat(self, op: Operation) -> None:
        """Where only zeros flow into an operation, zeros flow out of it."""
        function, _ = _gradient_function(op)
        if function is not None and function is not not_differentiable:
            self.flat.update(tensor for tensor in op.inputs if tensor in self.reached)

    @contextmanager
    def _scope_of(self, op: Operation) -> Iterator[None]:
        with ExitStack() as scopes:
            scopes.enter_context(self.graph.name_scope(f"{op.name}_grad"))
            if self.colocate:
                scopes.enter_context(self.graph.colocate_with(op, ignore_existing=True))
            yield

    def add(self, tensor: Tensor, gradient: Gradient) -> None:
        """Count `gradient` as one term of the gradient of `tensor`."""
        self.partials.setdefault(tensor, []).append(gradient)

    def total(self, tensor: Tensor) -> Gradient | None:
        """The gradient of `tensor`: the sum of its terms. All its consumers on the path have been differentiated."""
        terms = self.partials.get(tensor)
        if not terms:
            return None
        if len(terms) > 1:
            with self._colocated_with(terms[-1]):  # that of the consumer that was made first
                terms[:] = [_sum(terms, self.method)]
        return terms[0]

    def _colocated_with(self, term: Gradient) -> Any:
        return self.graph.colocate_with(term.op, ignore_existing=True) if self.colocate else ExitStack()


def _from_the_innermost(graph: Graph) -> Iterator[Graph]:
    """`graph` and the graphs around it."""
    yield graph
    while isinstance(graph, Region):
        graph = graph.outer
        yield graph


def _differentiable_inputs(op: Operation) -> Iterable[Operation]:
    return (tensor.op for tensor in op.inputs if carries_gradient(tensor))


def _as_accepted(op: Operation, d_outputs: Sequence[Gradient | None], takes_none: bool) -> list[Gradient | None]:
    """The gradients in the forms that the gradient function of `op` takes (see the module's docstring)."""
    takes_slices = op.op_def.forwards_input or (op.op_def.access == "read" and len(op.inputs) == 1)
    accepted: list[Gradient | None] = []
    for tensor, d_output in zip(op.outputs, d_outputs, strict=True):
        if isinstance(d_output, IndexedSlices) and not takes_slices:
            d_output = _dense(d_output, tensor)
        elif d_output is None and not takes_none and tensor.dtype.is_differentiable:
            d_output = array_ops.zeros_like(tensor)
        accepted.append(d_output)
    return accepted


def _dense(gradient: IndexedSlices, like: Tensor) -> Tensor:
    if gradient.dense_shape is None:
        gradient = IndexedSlices(gradient.values, gradient.indices, array_ops.shape(like))
    return convert_to_tensor(gradient)


def _checked(op: Operation, d_inputs: Sequence[Any], of_program: bool) -> list[Any]:
    """`d_inputs` when they fit the inputs of `op`, with what is known of the inputs' shapes.

    Those of a function of the program may have any dtype, as in TensorFlow: where that is wrong, the operation fails
    which takes them.
    """
    if len(d_inputs) != len(op.inputs):
        raise InvalidArgumentError(
            f"the gradient function of {op.type} gave {len(d_inputs)} gradients for {len(op.inputs)} inputs",
            op_name=op.name,
            site=op.site,
        )
    checked = []
    for tensor, d_input in zip(op.inputs, d_inputs, strict=True):
        if d_input is not None and not isinstance(d_input, Gradient):
            d_input = convert_to_tensor(d_input, tensor.dtype)
        if isinstance(d_input, Tensor) and tensor.dtype is not dtypes.resource:
            _check_fits(op, tensor, d_input, of_program)
        checked.append(d_input)
    return checked


def _check_fits(op: Operation, tensor: Tensor, d_input: Tensor, any_dtype: bool) -> None:
    is_right_dtype = any_dtype or d_input.dtype is tensor.dtype
    if not is_right_dtype or not d_input.shape.is_compatible_with(tensor.shape):
        raise InvalidArgumentError(
            f"the gradient function of {op.type} gave {d_input!r} for input {tensor!r}: "
            "Incompatible shapes between op input and calculated input gradient, or dtypes",
            op_name=op.name,
            site=op.site,
        )
    if not d_input.shape.is_fully_defined() and tensor.shape.rank is not None:
        d_input.set_shape(tensor.shape)


# -- sums ------------------------------------------------------------------------------------------------


def _sum(terms: Sequence[Gradient], method: int) -> Gradient:
    sparse = [term for term in terms if isinstance(term, IndexedSlices)]
    if len(sparse) == len(terms):
        return _concatenated(sparse)
    dense = [term for term in terms if isinstance(term, Tensor)]
    if dense[0].dtype is dtypes.variant:
        return tensor_array_ops.sum_flows(dense)
    if sparse:
        dense.append(_dense(_concatenated(sparse) if len(sparse) > 1 else sparse[0], dense[0]))
    if method == AggregationMethod.EXPERIMENTAL_TREE:
        return _tree_sum(dense)
    return math_ops.add_n(dense)


def _concatenated(slices: Sequence[IndexedSlices]) -> IndexedSlices:
    """The sum of sparse gradients: equal indices add up."""
    index_dtypes = {item.indices.dtype for item in slices}
    indices = [item.indices for item in slices]
    if len(index_dtypes) > 1:
        indices = [array_ops.cast(item, dtypes.int64) for item in indices]
    dense_shape = next((item.dense_shape for item in slices if item.dense_shape is not None), None)
    values = array_ops.concat([item.values for item in slices], 0)
    return IndexedSlices(values, array_ops.concat(indices, 0), dense_shape)


def _tree_sum(terms: list[Tensor]) -> Tensor:
    while len(terms) > 1:
        pairs = [math_ops.add(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


# -- second derivatives ----------------------------------------------------------------------------------


# -- gradients of one's own ------------------------------------------------------------------------------


class _CustomGradient:
    """The gradient of one call of a function decorated by `custom_gradient`.

    Attributes:
        name: The name under which the graph's operation refers to it.
    """

    def __init__(
        self, function: Callable[..., Any], result_count: int, argument_count: int, variables: Sequence[Any]
    ) -> None:
        self.name = f"CustomGradient-{next(_custom_ids)}"
        self._function = function
        self._result_count = result_count
        self._argument_count = argument_count
        self._variables = variables

    def differentiate(self, op: Operation, *d_outputs: Any) -> list[Any]:
        """The gradient function of the operation, whose inputs are results, arguments and handles of variables."""
        d_results = d_outputs[: self._result_count]
        d_variables: Any = ()
        copies = op.graph.extra(COPIES, dict).get(op, {})
        with op.graph.using_copies(copies):
            if self._variables:
                d_arguments, d_variables = self._function(*d_results, variables=list(self._variables))
            else:
                d_arguments = self._function(*d_results)
        d_variables = [] if d_variables is None else list(d_variables)
        if len(d_variables) != len(self._variables):
            raise ValueError(
                f"a gradient function of tf.custom_gradient must return the gradients of all {len(self._variables)} "
                f"variables, got {len(d_variables)}"
            )
        d_arguments = nest.flatten(d_arguments)
        if len(d_arguments) != self._argument_count:
            raise ValueError(
                f"a gradient function of tf.custom_gradient returned {len(d_arguments)} gradients for "
                f"{self._argument_count} arguments"
            )
        return [None] * self._result_count + [*d_arguments, *d_variables]


_custom_ids: Final = itertools.count()
# Custom gradients by name. The graph that uses one keeps it alive; copies of the graph find it here by its name.
_CUSTOM: Final[weakref.WeakValueDictionary[str, _CustomGradient]] = weakref.WeakValueDictionary()


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function of tensors that brings its own gradient.

        @tf.custom_gradient
        def log1pexp(x):
            e = tf.exp(x)
            return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    Args:
        f: ``f(*arguments)`` returns a pair: its result, a tensor or a structure of them, and the function
            ``grad_fn``, which takes one gradient per result and returns one per argument. If `f` uses variables,
            ``grad_fn`` also takes the keyword ``variables``, a list, and returns a pair: the gradients of the
            arguments, and a list of those of the variables.

    Returns:
        A function of the same arguments that returns the result of `f`.

    Raises:
        TypeError: `f` uses variables and ``grad_fn`` does not take them.
    """

    @functools.wraps(f)
    def with_gradient(*arguments: Any, **options: Any) -> Any:
        inputs = [convert_to_tensor(argument) for argument in arguments]
        result, grad_fn = f(*inputs, **options)
        results = [convert_to_tensor(value) for value in nest.flatten(result)]
        given = {tensor for argument in arguments if (tensor := getattr(argument, "handle", None)) is not None}
        variables = [v for v in _variables_between(inputs, results) if v.handle not in given]
        if variables and not _takes_variables(grad_fn):
            names = ", ".join(variable.op.name for variable in variables)
            raise TypeError(
                f"{getattr(f, '__name__', f)} uses the variables {names}: the gradient function that it returns must "
                "accept keyword argument 'variables' and return their gradients too"
            )
        gradient = _CustomGradient(grad_fn, len(results), len(inputs), variables)
        graph = get_default_graph()
        graph.extra("custom_gradients", list).append(gradient)
        _CUSTOM[gradient.name] = gradient
        with graph.gradient_override_map({"IdentityN": gradient.name}):
            outputs = tuple_ops.identity_n([*results, *inputs, *(variable.handle for variable in variables)])
        return nest.pack_sequence_as(result, outputs[: len(results)])

    return with_gradient


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function whose gradient is taken to be that of the identity.

    Args:
        f: A function of tensors whose results have the shapes of its arguments, one for each.

    Returns:
        A function of the same arguments and results. Variables that it uses get no gradient.

    Examples:
        >>> x = tf.constant([0.4, 1.6])
        >>> rounded = tf.grad_pass_through(tf.round)(x)
        >>> session.run([rounded, tf.gradients(rounded, x)[0]])
        [array([0., 2.], dtype=float32), array([1., 1.], dtype=float32)]
    """

    @custom_gradient
    def passing(*arguments: Any, **options: Any) -> Any:
        def gradient(*d_results: Any, variables: Sequence[Any] | None = None) -> Any:
            return d_results if variables is None else (d_results, [None] * len(variables))

        return f(*arguments, **options), gradient

    return functools.wraps(f)(passing)


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function that is computed again in the backward pass, so that nothing within it need be kept.

    Args:
        f: A function of tensors, and of variables that it gets by `tf.get_variable` with reuse or holds.

    Returns:
        A function of the same arguments and results, with the same gradients.
    """

    @custom_gradient
    def recomputed(*arguments: Any, **options: Any) -> Any:
        scope = get_default_graph().get_name_scope()

        def gradient(*d_results: Any, variables: Sequence[Any] | None = None) -> Any:
            graph = get_default_graph()
            # After the gradients that flow in: not in the forward pass, beside the first computation.
            with graph.control_dependencies([d for d in d_results if isinstance(d, Tensor)]):
                inputs = [array_ops.identity(argument) for argument in arguments]
                with graph.name_scope(f"{scope}_again" if scope else "again"):
                    results = nest.flatten(f(*inputs, **options))
            sources = [*inputs, *(variables or ())]
            found = gradients(results, sources, grad_ys=list(d_results))
            return found if variables is None else (found[: len(inputs)], found[len(inputs) :])

        return f(*arguments, **options), gradient

    return functools.wraps(f)(recomputed)


_READS: Final = ("ReadVariableOp", "Identity")


def _variables_between(inputs: Sequence[Tensor], results: Sequence[Tensor]) -> list[Any]:
    """The trainable variables that `results` are computed from on paths that do not lead through `inputs`."""
    given = set(inputs)
    found = reachable_backward(
        (tensor.op for tensor in results if tensor not in given),
        lambda op: (tensor.op for tensor in op.inputs if tensor not in given),
    )
    graph = get_default_graph()
    while isinstance(graph, Region):  # a variable, or what was read of it, comes in from around a loop or a branch
        captured = [outer.op for outer, inner in graph.captures.items() if inner.op in found]
        found |= reachable_backward(captured, lambda op: (each.op for each in op.inputs if op.type in _READS))
        graph = graph.outer
    trainable = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
    return [variable for variable in trainable if variable.op in found]


def _takes_variables(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.name == "variables" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
