"""`tf.function`, `Defun` and `tf.wrap_function`: Python functions that are traced into graphs, and then called.

A function is run once to build a graph of its own, a region. A call puts a copy of that graph into the current one, so
gradients, devices and sessions need to know nothing of functions. Side effects within a function happen in the order
of the program, each time that one of its results, or the operation that the call gives, runs.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.importer import inlined
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.region import Region
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Structure
from tfray.gradients import custom_gradient
from tfray.library.input.function_effects import has_effect, with_effects
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.shape_ops import identity
from tfray.ops.arrays.tuple_ops import identity_n

_runs_python = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Say whether functions of `tf.function` are called as plain Python from now on, each time, to look into them.

    Their operations then stand in the graph of the caller.

    Args:
        run_eagerly: Whether.
    """
    global _runs_python
    _runs_python = bool(run_eagerly)


_VARIABLES = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)


class ConcreteFunction:
    """A graph that a Python function built, with inputs and outputs, to be called with tensors.

    Attributes:
        name: Name of the function.
        graph: The graph.
        structured_outputs: What the function returned, in its structure, as tensors of `graph`.
        variables: The variables that the function made or read.
    """

    def __init__(
        self,
        name: str,
        region: Region,
        inputs: Sequence[Tensor],
        structured_outputs: Structure,
        variables: Sequence[Any],
    ) -> None:
        self.name = name
        self.graph = region
        self.structured_outputs = structured_outputs
        self.variables = list(variables)
        self._inputs = list(inputs)
        self._effects = [op for op in region.get_operations() if has_effect(op)]

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors of `graph` that stand for arguments, then those for captured tensors."""
        return [*self._inputs, *self.graph.captures.values()]

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors of `graph` that it returns."""
        return [leaf for leaf in nest.flatten(self.structured_outputs, True) if isinstance(leaf, Tensor)]

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors of the graph around that it reads."""
        return list(self.graph.captures)

    @property
    def output_dtypes(self) -> Any:
        """Dtypes of the results, in their structure."""
        return nest.map_structure(lambda leaf: leaf.dtype, self.structured_outputs)

    @property
    def output_shapes(self) -> Any:
        """Static shapes of the results, in their structure."""
        return nest.map_structure(lambda leaf: leaf.shape, self.structured_outputs)

    @property
    def trainable_variables(self) -> list[Any]:
        """Those of `variables` that optimizers change."""
        return [variable for variable in self.variables if variable.trainable]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call it with one tensor, or what converts to one, for each argument that is a tensor.

        Returns:
            What the function returned, in its structure; the operation with its side effects where it returned None.

        Raises:
            TypeError: The number of tensors is wrong.
            InvalidArgumentError: A dtype or shape is wrong.
        """
        given = [leaf for leaf in nest.flatten([list(args), kwargs]) if _is_value(leaf)]
        if len(given) != len(self._inputs):
            raise TypeError(f"{self.name} takes {len(self._inputs)} tensors, got {len(given)}")
        return self._call([convert_to_tensor(value, to.dtype) for value, to in zip(given, self._inputs, strict=True)])

    def _call(self, arguments: Sequence[Tensor]) -> Any:
        for argument, to in zip(arguments, self._inputs, strict=True):
            if not argument.shape.is_compatible_with(to.shape):
                raise InvalidArgumentError(
                    f"{self.name}: {argument!r} has shape {argument.shape}, expected is {to.shape}"
                )
        graph = get_default_graph()
        outer = [graph.own(tensor) for tensor in self.graph.captures]
        given = dict(zip(self.inputs, [*arguments, *outer], strict=True))
        name = "StatefulPartitionedCall" if self._effects else "PartitionedCall"
        with graph.control_dependencies(self.graph.outer_controls):
            found, copies = inlined(self.outputs, given, name, self._effects)
        if self.structured_outputs is None:
            return group(*(copies[op] for op in self._effects), name=f"{name}_call")
        results = iter(found)
        leaves = [
            next(results) if isinstance(leaf, Tensor) else leaf
            for leaf in nest.flatten(self.structured_outputs, expand_composites=True)
        ]
        return nest.pack_sequence_as(self.structured_outputs, leaves, expand_composites=True)

    def prune(self, feeds: object, fetches: object, name: str | None = None) -> ConcreteFunction:
        """The function from tensors `feeds` of this function's graph to `fetches`, tensors or names of tensors there.

        Raises:
            InvalidArgumentError: When it is called: a fetch needs an input that is not among the feeds.
        """
        fetched = nest.map_structure(self.graph.as_graph_element, fetches)
        fed = [self.graph.as_graph_element(feed) for feed in nest.flatten(feeds)]
        return _Pruned(name or f"pruned_{self.name}", self.graph, fed, fetched, self.variables)  # type: ignore[arg-type]


class _Pruned(ConcreteFunction):
    """A part of a function's graph: only what its results need runs."""

    def __init__(
        self,
        name: str,
        region: Region,
        inputs: Sequence[Tensor],
        structured_outputs: Structure,
        variables: Sequence[Any],
    ) -> None:
        super().__init__(name, region, inputs, structured_outputs, variables)
        self._effects = [leaf for leaf in nest.flatten(structured_outputs) if isinstance(leaf, Operation)]
        if self._effects:
            self.structured_outputs = None


def _trace(name: str, build: Callable[[Region], tuple[list[Tensor], Any]]) -> ConcreteFunction:
    """The function whose graph `build` makes: it returns the inputs, and what the Python function returned."""
    graph = get_default_graph()
    region = Region(graph, runs_often=True)
    made_before = {key: len(graph.get_collection_ref(key)) for key in _VARIABLES}
    with graph.name_scope(name.strip("<>_") or "function") as scope:
        pass
    with region.as_default(), region.name_scope(scope):
        inputs, returned = build(region)
        returned = nest.map_structure(_as_result, returned)
        outputs = [region.own(leaf) for leaf in nest.flatten(returned, True) if isinstance(leaf, Tensor)]
        leaves = iter(with_effects(region, outputs))
        returned = nest.pack_sequence_as(
            returned,
            [next(leaves) if isinstance(leaf, Tensor) else leaf for leaf in nest.flatten(returned, True)],
            expand_composites=True,
        )
    if all(leaf is None for leaf in nest.flatten(returned)):
        returned = None
    made = [variable for key in _VARIABLES for variable in graph.get_collection_ref(key)[made_before[key] :]]
    known = [variable for key in _VARIABLES for variable in graph.get_collection(key)]
    read = [v for v in dict.fromkeys(known) if getattr(v, "handle", None) in region.captures and v not in made]
    return ConcreteFunction(name, region, inputs, returned, [*dict.fromkeys(made), *read])


def _as_result(value: object) -> Any:
    """A leaf of what a function returned, as a tensor; operations are side effects, not results."""
    if value is None or isinstance(value, Operation):
        return None
    if isinstance(value, (IndexedSlices, SparseTensor)) or nest.is_composite(value):
        return value
    try:
        return convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"a function must return tensors, not {value!r}: {error}") from None


def _makes_variables(graph: Graph) -> int:
    return sum(len(graph.get_collection_ref(key)) for key in _VARIABLES)


# -- tf.function ---------------------------------------------------------------------------------------


class Function:
    """A Python function that is traced once for each signature of its arguments (see `function`).

    Attributes:
        python_function: The function.
        input_signature: The signature to which it is held, or None.
    """

    def __init__(self, python_function: Callable[..., Any], input_signature: Sequence[object] | None = None) -> None:
        self.python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._name = getattr(python_function, "__name__", "function")
        self._parameters = inspect.signature(python_function)
        # By graph: tensors of one graph are unknown in another.
        self._traced: weakref.WeakKeyDictionary[Graph, dict[Any, ConcreteFunction]] = weakref.WeakKeyDictionary()
        self._bound: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()
        self._was_traced = False
        functools.update_wrapper(self, python_function, updated=())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if instance not in self._bound:
            reference = weakref.ref(instance)
            method = self.python_function

            @functools.wraps(method)
            def bound(*args: object, **kwargs: object) -> Any:
                return method(reference(), *args, **kwargs)

            parameters = list(self._parameters.parameters.values())[1:]
            bound.__signature__ = self._parameters.replace(parameters=parameters)  # type: ignore[attr-defined]
            self._bound[instance] = Function(bound, self.input_signature)
        return self._bound[instance]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call it: the results, in the structure in which the function returns them."""
        if _runs_python:
            return self.python_function(*args, **kwargs)
        concrete, tensors = self._for(args, kwargs)
        return concrete._call(tensors)

    def get_concrete_function(self, *args: object, **kwargs: object) -> ConcreteFunction:
        """The traced function for these arguments.

        Args:
            *args: Arguments of the function; in place of a tensor anything with a dtype and a shape, such as a
                placeholder, does. None are needed with an `input_signature`.
            **kwargs: Likewise.
        """
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        return self._for(args, kwargs, specs=True)[0]

    def _for(
        self, args: Sequence[object], kwargs: dict[str, object], specs: bool = False
    ) -> tuple[ConcreteFunction, Any]:
        """The traced function for these arguments, and the tensors among them."""
        bound = self._parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = [bound.args, bound.kwargs]
        if self.input_signature is not None:
            arguments = [self._held_to_signature(bound), {}]
        leaves = nest.flatten(arguments)
        types: Sequence[tuple[DType, TensorShape] | None] = [_type_of(leaf) for leaf in leaves]
        if self.input_signature is not None:
            types = self._signature_types()
        key = (
            _structure_key(arguments),
            tuple(_value_key(leaf) if kind is None else kind[:2] for leaf, kind in zip(leaves, types, strict=True)),
        )
        traced = self._traced.setdefault(get_default_graph(), {})
        if key not in traced:
            traced[key] = self._traced_for(arguments, leaves, types)
        if specs:
            return traced[key], None
        return traced[key], [
            convert_to_tensor(leaf, kind[0]) for leaf, kind in zip(leaves, types, strict=True) if kind is not None
        ]

    def _traced_for(
        self, arguments: Any, leaves: Sequence[Any], types: Sequence[tuple[DType, TensorShape] | None]
    ) -> ConcreteFunction:
        def build(region: Region) -> tuple[list[Tensor], Any]:
            passed = [
                leaf if kind is None else region.add_input(kind[0], kind[1], "arg")
                for leaf, kind in zip(leaves, types, strict=True)
            ]
            args, kwargs = nest.pack_sequence_as(arguments, passed)
            inputs = [value for value, kind in zip(passed, types, strict=True) if kind is not None]
            return inputs, self.python_function(*args, **kwargs)

        graph = get_default_graph()
        before = _makes_variables(graph)
        concrete = _trace(self._name, build)
        if _makes_variables(graph) != before:
            # A function makes its variables when it is first called: a second call must find them.
            made, before = concrete.variables, _makes_variables(graph)
            if not self._was_traced:
                concrete = _trace(self._name, build)
                concrete.variables = list(dict.fromkeys([*made, *concrete.variables]))
            if self._was_traced or _makes_variables(graph) != before:
                raise ValueError(
                    f"the function {self._name!r}, decorated by tf.function, tried to create variables on a call "
                    "after the first: make them once, and keep them outside of the function"
                )
        self._was_traced = True
        return concrete

    def _signature_types(self) -> list[tuple[DType, TensorShape]]:
        return [(as_dtype(spec.dtype), TensorShape(spec.shape)) for spec in nest.flatten(self.input_signature)]

    def _held_to_signature(self, bound: inspect.BoundArguments) -> tuple[Any, ...]:
        assert self.input_signature is not None
        args = (*bound.args, *bound.kwargs.values())
        try:
            given = nest.flatten_up_to(self.input_signature, args, check_types=False)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"the arguments of {self._name!r} do not have the structure of its input_signature: {error}"
            ) from None
        held = []
        for value, (dtype, shape) in zip(given, self._signature_types(), strict=True):
            if not hasattr(value, "dtype"):
                value = convert_to_tensor(value, dtype)
            if as_dtype(value.dtype) is not dtype or not TensorShape(value.shape).is_compatible_with(shape):
                raise ValueError(
                    f"Python inputs incompatible with input_signature: {self._name!r} takes {dtype.name} of shape "
                    f"{shape}, got {value!r}"
                )
            held.append(value)
        packed: tuple[Any, ...] = nest.pack_sequence_as(self.input_signature, held)
        return packed

    def __repr__(self) -> str:
        return f"<tf.function of {self.python_function!r}>"


def _is_value(leaf: object) -> bool:
    return leaf is not None


def _type_of(leaf: object) -> tuple[DType, TensorShape] | None:
    """Dtype and shape of an argument that becomes an input; None for one that the function gets as it is."""
    if isinstance(leaf, (Variable, type)):
        return None
    if isinstance(leaf, (Tensor, np.ndarray, np.generic)):
        return as_dtype(leaf.dtype), TensorShape(leaf.shape)
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape") and not nest.is_composite(leaf):
        return as_dtype(leaf.dtype), TensorShape(leaf.shape)
    return None


def _value_key(leaf: object) -> Any:
    try:
        hash(leaf)
    except TypeError:
        return "object", id(leaf)
    return type(leaf), leaf


def _structure_key(structure: object) -> Any:
    if isinstance(structure, dict):
        return tuple((key, _structure_key(value)) for key, value in sorted(structure.items(), key=str))
    if isinstance(structure, (list, tuple)):
        return type(structure), *(_structure_key(value) for value in structure)
    return None


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[object] | None = None,
    autograph: bool = True,
    experimental_autograph_options: object = None,
    experimental_relax_shapes: bool = False,
    experimental_compile: bool | None = None,
    experimental_implements: str | None = None,
) -> Any:
    """Make a Python function one that is traced into a graph, and called there.

    The function runs once for each combination of dtypes and shapes of the tensors and arrays among its arguments, and
    of the values of the others. Other calls copy the graph that it built. Its side effects (updates of variables,
    `tf.print`, `tf.Assert`) happen in the order of the program, whenever one of its results runs. It may make
    variables when it is called for the first time only.

    Args:
        func: The function; without it this is a decorator with options.
        input_signature: Things with a dtype and a shape, nested as the arguments are: every call is held to them, and
            the function is traced once.
        autograph: Accepted. Python's own `if` and `while` are not rewritten: use `tf.cond` and `tf.while_loop`.
        experimental_autograph_options: Accepted, as `autograph`.
        experimental_relax_shapes: Accepted: shapes are taken as they are.
        experimental_compile: Accepted: what is compiled is decided for whole steps.
        experimental_implements: Accepted: graphs tell what they compute.

    Returns:
        A `Function`, with `get_concrete_function`.

    Raises:
        TypeError: `input_signature` is not a list or tuple.
        ValueError: When it is called: the arguments do not fit `input_signature`, or variables are made again.

    Examples:
        >>> @tf.function
        ... def squares(x):
        ...     return tf.reduce_sum(x * x)
        >>> session.run(squares(tf.constant([1.0, 2.0, 3.0])))
        np.float32(14.0)
    """
    if input_signature is not None and not isinstance(input_signature, (list, tuple)):
        raise TypeError(f"input_signature must be a list or a tuple, not {input_signature!r}")
    if func is None:
        return lambda decorated: Function(decorated, input_signature)
    return Function(func, input_signature)


def wrap_function(fn: Callable[..., Any], signature: Sequence[object], name: str | None = None) -> ConcreteFunction:
    """Trace a function that builds a graph in TensorFlow 1's way, variables included, once.

    Args:
        fn: The function.
        signature: Its arguments: things with a dtype and a shape for tensors.
        name: Name of the function; that of `fn` when None.

    Returns:
        A function of tensors, whose ``prune(feeds, fetches)`` gives parts of it.
    """

    def build(region: Region) -> tuple[list[Tensor], Any]:
        leaves = nest.flatten(list(signature))
        types = [_type_of(leaf) for leaf in leaves]
        passed = [
            leaf if kind is None else region.add_input(kind[0], kind[1], "arg")
            for leaf, kind in zip(leaves, types, strict=True)
        ]
        inputs = [value for value, kind in zip(passed, types, strict=True) if kind is not None]
        return inputs, fn(*nest.pack_sequence_as(list(signature), passed))

    return _trace(name or str(getattr(fn, "__name__", "function")), build)


# -- Defun ---------------------------------------------------------------------------------------------


class Defun:
    """Decorator for a function of tensors of known dtypes, in the way before `tf.function`.

    Args:
        *input_types: Dtypes of the arguments. When there are none, the function is traced for each combination of
            dtypes with which it is called.
        **kwargs: ``func_name``: name of the function. ``grad_func``: a function, mostly a `Defun`, from the arguments
            and the gradients of the results to those of the arguments. ``python_grad_func``: ``f(op, *gradients)``
            instead, where `op` has the call's `inputs` and `outputs`. ``out_names``: as many as there are results.
            ``shape_func``, ``capture_by_value``, ``noinline``, ``compiled``, ``separate_compiled_gradients``: accepted;
            results have the shapes that follow from the arguments.

    Raises:
        ValueError: There is another argument, or both kinds of gradient functions; or the function has another number
            of parameters than there are types, or parameters with defaults.
    """

    _HINTS = ("noinline", "compiled", "separate_compiled_gradients")
    _OPTIONS = ("func_name", "grad_func", "python_grad_func", "out_names", "shape_func", "capture_by_value", *_HINTS)

    def __init__(self, *input_types: DTypeLike, **kwargs: Any) -> None:
        unknown = sorted(set(kwargs) - set(self._OPTIONS))
        if unknown:
            raise ValueError(f"Defun takes {', '.join(self._OPTIONS)}; not {', '.join(unknown)}")
        if kwargs.get("grad_func") is not None and kwargs.get("python_grad_func") is not None:
            raise ValueError("Gradient defined twice: give grad_func or python_grad_func, not both")
        self._input_types = [as_dtype(dtype) for dtype in input_types]
        self._options = kwargs

    def __call__(self, func: Callable[..., Any]) -> DefinedFunction:
        """The decorated function."""
        if not callable(func):
            raise ValueError(f"function {func!r} must be callable")
        parameters = inspect.signature(func).parameters.values()
        takes_any = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
        required = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if any(p.default is not p.empty or p.kind is p.VAR_KEYWORD for p in parameters):
            raise ValueError("Functions with argument defaults or keywords arguments are not supported by Defun")
        count = len(self._input_types)
        if count and not takes_any and not len(required) <= count <= len(parameters):
            raise ValueError(f"the function takes {len(required)} arguments, but {count} types are given")
        return DefinedFunction(func, self._input_types, self._options, bool(count) or not parameters)


class _CallOp:
    """What a ``python_grad_func`` gets as the operation of a call."""

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self.inputs = list(inputs)
        self.outputs = list(outputs)


class DefinedFunction:
    """What `Defun` makes of a function.

    Attributes:
        name: Name of the function.
        declared_input_types: The dtypes that were given.
        python_grad_func: The gradient function in Python, if any.
    """

    def __init__(self, func: Callable[..., Any], types: Sequence[DType], options: dict[str, Any], fixed: bool) -> None:
        self.name: str = options.get("func_name") or getattr(func, "__name__", "function").strip("<>")
        self.declared_input_types = list(types)
        self.python_grad_func: Callable[..., Any] | None = options.get("python_grad_func")
        self._grad_func: Callable[..., Any] | None = options.get("grad_func")
        self._func = func
        self._options = options
        self._fixed = fixed
        self._traced: weakref.WeakKeyDictionary[Graph, dict[Any, ConcreteFunction]] = weakref.WeakKeyDictionary()

    @property
    def grad_func_name(self) -> str | None:
        """Name of the gradient function."""
        return getattr(self._grad_func, "name", None)

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors of the graph around that the function reads."""
        return self._concrete(self.declared_input_types).captured_inputs

    def set_grad_func(self, grad_func: Callable[..., Any]) -> None:
        """Set the gradient function.

        Raises:
            ValueError: There is another one.
        """
        if self._grad_func not in (None, grad_func):
            raise ValueError(f"{self.name} has a gradient function")
        self._grad_func = grad_func

    def add_to_graph(self, g: Graph) -> None:
        """Trace the function in the graph `g`."""
        with g.as_default():
            self._concrete(self.declared_input_types)

    def _concrete(self, types: Sequence[DType]) -> ConcreteFunction:
        traced = self._traced.setdefault(get_default_graph(), {})
        key = tuple(types)
        if key not in traced:

            def build(region: Region) -> tuple[list[Tensor], Any]:
                names = list(inspect.signature(self._func).parameters)
                names = names if len(names) == len(key) else [f"arg{index}" for index in range(len(key))]
                inputs = [
                    region.add_input(dtype, TensorShape(None), name) for dtype, name in zip(key, names, strict=True)
                ]
                return inputs, self._func(*inputs)

            traced[key] = self._checked(_trace(self.name, build))
        return traced[key]

    def _checked(self, traced: ConcreteFunction) -> ConcreteFunction:
        results, names = nest.flatten(traced.structured_outputs), self._options.get("out_names")
        if traced.structured_outputs is not None and any(result is None for result in results):
            raise ValueError(f"Function {self.name} can not return None.")
        if names and len(names) != len(results):
            raise InvalidArgumentError(
                f"{self.name}: output names must be either empty or equal in size to outputs: there are {len(names)} "
                f"names and {len(results)} results"
            )
        return traced

    def __call__(self, *args: object, **kwargs: Any) -> Any:
        """Call it: one result, or a tuple of several, or the operation where there is none.

        Args:
            *args: Tensors.
            **kwargs: ``name``, that of the operation with the results, and of the scope of what the function adds;
                ``noinline``, ``compiled`` and ``separate_compiled_gradients``, accepted.

        Raises:
            ValueError: There are more or fewer arguments than types; or the function returns None among others, or not
                as many results as it has ``out_names``.
        """
        name = kwargs.pop("name", None) or self.name
        kwargs = {option: value for option, value in kwargs.items() if option not in Defun._HINTS}
        if kwargs:
            raise ValueError(f"{self.name}: Unknown keyword arguments: {sorted(kwargs)}")
        types = self.declared_input_types
        if self._fixed and len(args) != len(types):
            raise ValueError(
                f"{self.name} expects {len(types)} arguments, got {len(args)}: "
                f"Expected number of arguments: {len(types)}, received: {len(args)}"
            )
        with get_default_graph().name_scope(name) as scope:
            tensors = [convert_to_tensor(arg, types[index] if self._fixed else None) for index, arg in enumerate(args)]
            concrete = self._concrete([tensor.dtype for tensor in tensors])
            if self._grad_func is None and self.python_grad_func is None:
                return _of_call(concrete._call(tensors), scope)
            return _of_call(self._with_gradient(concrete, tensors), scope)

    def _with_gradient(self, concrete: ConcreteFunction, tensors: Sequence[Tensor]) -> Any:
        @custom_gradient
        def call(*inputs: Tensor) -> tuple[Any, Callable[..., Any]]:
            results = nest.flatten(concrete._call(inputs))

            def gradient(*d_results: Tensor, variables: Iterable[Any] = ()) -> Any:
                if self._grad_func is not None:
                    d_inputs = self._grad_func(*inputs, *d_results)
                else:
                    assert self.python_grad_func is not None
                    # What it differentiates may lead to the tensors that were given, past the ones in here.
                    d_inputs = self.python_grad_func(_CallOp(tensors, results), *d_results)
                d_inputs = list(d_inputs) if isinstance(d_inputs, (list, tuple)) else [d_inputs]
                return (d_inputs, [None for _ in variables]) if variables else d_inputs

            return results, gradient

        return call(*identity_n(list(tensors)) if tensors else [])


def _of_call(results: object, scope: str) -> Any:
    """The results of a call, as those of one operation that has the call's name."""
    if isinstance(results, Operation):
        return group(results, name=scope)
    leaves = nest.flatten(results)
    return identity(leaves[0], name=scope) if len(leaves) == 1 else tuple(identity_n(leaves, name=scope))
