"""The dataflow graph: tensors, operations, and the scopes under which they are made."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes, op_def
from tfray.framework.device_spec import canonical_name, merge_device
from tfray.framework.dtypes import DType
from tfray.framework.op_def import Argument, OpDef
from tfray.framework.tensor_shape import ShapeLike, TensorShape, as_shape

DeviceFunction = Callable[["Operation"], str | None]

_OPERATORS: Final[dict[str, Callable[..., Any]]] = {}


def register_operator(name: str, function: Callable[..., Any]) -> None:
    """Give `Tensor` the Python operator `name` (``"add"`` for ``+``, ``"getitem"`` for indexing)."""
    if name in _OPERATORS:
        raise ValueError(f"operator {name!r} is registered already")
    _OPERATORS[name] = function


class Tensor:
    """One output of an operation: a value that exists while a step runs.

    Attributes:
        op: The operation that computes it.
        value_index: Which of the operation's outputs it is.
        dtype: Type of its elements.
    """

    __slots__ = ("__weakref__", "_shape", "dtype", "op", "value_index")

    # NumPy must leave ``array + tensor`` to Tensor.__radd__.
    __array_priority__ = 100

    def __init__(self, op: Operation, value_index: int, dtype: DType) -> None:
        self.op: Final = op
        self.value_index: Final = value_index
        self.dtype: Final = dtype
        self._shape = TensorShape(None)

    @property
    def graph(self) -> Graph:
        """The graph that holds it."""
        return self.op.graph

    @property
    def name(self) -> str:
        """``operation:index``."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def device(self) -> str:
        """The device asked for, ``""`` when left to the placer."""
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        """The static shape: what is known before a step runs."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The static shape (TensorFlow 1's spelling of `shape`)."""
        return self._shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Merge what the caller knows into the static shape.

        Raises:
            ValueError: `shape` contradicts what is known.
        """
        self._shape = self._shape.merge_with(shape)
        self.graph._changed()

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input."""
        return list(dict.fromkeys(op for op in self.graph._consumers.get(self, ())))

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Run this tensor in `session`, or in the default session."""
        return _session_or_default(session, self.graph).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._shape} dtype={self.dtype.name}>"

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self!r} has no truth value until it is run: use tf.cond for a choice in the graph, "
            "or compare with None by `is`"
        )

    def __iter__(self) -> Iterator[Tensor]:
        if self._shape.rank is None or self._shape.rank == 0 or self._shape.sizes[0] is None:
            raise TypeError(f"{self!r} cannot be iterated over: its first dimension is not known; use tf.unstack")
        return iter([self[i] for i in range(self._shape.sizes[0])])

    def __len__(self) -> int:
        raise TypeError(f"{self!r} has no length until it is run: use tf.shape or tensor.shape")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"{self!r} is symbolic: run it in a session to get an array")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        # Identity, as in TensorFlow 1, so that tensors serve as dictionary keys; tf.equal compares values.
        return self is other

    def __add__(self, other: Any) -> Tensor:
        return _operate("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _operate("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _operate("sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _operate("sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _operate("mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _operate("mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _operate("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _operate("truediv", other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _operate("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _operate("floordiv", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _operate("mod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _operate("mod", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _operate("pow", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _operate("pow", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _operate("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _operate("matmul", other, self)

    def __lt__(self, other: Any) -> Tensor:
        return _operate("lt", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _operate("le", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _operate("gt", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _operate("ge", self, other)

    def __and__(self, other: Any) -> Tensor:
        return _operate("and", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _operate("and", other, self)

    def __or__(self, other: Any) -> Tensor:
        return _operate("or", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _operate("or", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return _operate("xor", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return _operate("xor", other, self)

    def __invert__(self) -> Tensor:
        return _operate("invert", self)

    def __neg__(self) -> Tensor:
        return _operate("neg", self)

    def __abs__(self) -> Tensor:
        return _operate("abs", self)

    def __getitem__(self, key: Any) -> Tensor:
        return _operate("getitem", self, key)


def _operate(name: str, *operands: Any) -> Tensor:
    try:
        function = _OPERATORS[name]
    except KeyError:
        raise TypeError(f"no operation is registered for the operator {name!r}") from None
    result: Tensor = function(*operands)
    return result


class Operation:
    """A node of the graph: a type, its inputs, attributes and control inputs, and the tensors it computes.

    Attributes:
        graph: The graph that holds it.
        op_def: Its type.
        name: Unique in the graph.
        inputs: The tensors it takes.
        outputs: The tensors it computes.
        attrs: Attribute values by name, type variables included.
        id: Order of creation in the graph.
        site: ``file:line, in function`` of the user's code that made it.
    """

    def __init__(
        self,
        graph: Graph,
        definition: OpDef,
        name: str,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        control_inputs: Iterable[Operation],
        site: str,
    ) -> None:
        self.graph: Final = graph
        self.op_def: Final = definition
        self.name: Final = name
        self.inputs: Final = tuple(inputs)
        self.attrs: Final = attrs
        self.id: Final = graph._next_id()
        self.site = site
        self._control_inputs: dict[Operation, None] = dict.fromkeys(control_inputs)
        self._device = ""
        self.outputs: Final[list[Tensor]] = [
            Tensor(self, index, dtype) for index, dtype in enumerate(_output_dtypes(definition, attrs))
        ]

    @property
    def type(self) -> str:
        """Name of its `OpDef`."""
        return self.op_def.name

    @property
    def device(self) -> str:
        """The device asked for, ``""`` when left to the placer."""
        return self._device

    @property
    def control_inputs(self) -> list[Operation]:
        """Operations that must run before it although it takes no value from them."""
        return list(self._control_inputs)

    @property
    def node_def(self) -> Any:
        """Its form in a `GraphDef`."""
        from tfray.framework.graph_def import node_from_operation

        return node_from_operation(self)

    def attr(self, name: str) -> Any:
        """Value of an attribute. Raises `KeyError` when the type has no such attribute."""
        return self.attrs[name]

    get_attr = attr

    def colocation_groups(self) -> list[str]:
        """Names of the operations that it must share a device with."""
        return list(self.attrs.get("_class", ()))

    def add_control_inputs(self, ops: Iterable[Operation]) -> None:
        """Make it run after `ops` too (the caller ensures that no cycle arises)."""
        self._control_inputs.update(dict.fromkeys(ops))
        self.graph._changed()

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run this operation in `session`, or in the default session."""
        _session_or_default(session, self.graph).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"


class Graph:
    """Operations and the tensors between them, with the scopes that name and place new ones.

    A graph only grows. It may be built from one thread at a time; sessions may run it from many.
    """

    def __init__(self) -> None:
        self._ops: dict[str, Operation] = {}
        self._consumers: dict[Tensor, list[Operation]] = {}
        self._names: dict[str, int] = {}
        self._collections: dict[str, list[Any]] = {}
        self._version = 0
        self._finalized = False
        self._name_scope = ""
        self._devices: list[str | DeviceFunction] = []
        self._control: list[list[Operation]] = []
        self._colocation: list[str] = []
        self._attr_scope: dict[str, Any] = {}
        self._gradient_overrides: dict[str, str] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        """Python functions that operations of this graph call, by token (see `tf.py_func`)."""
        self.seed: int | None = None
        """Graph-level seed of random operations (`tf.set_random_seed`)."""
        self._extra: dict[str, Any] = {}

    # -- what it holds ---------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Grows with every change; compiled plans are valid for one version."""
        return self._version

    @property
    def finalized(self) -> bool:
        """Whether the graph is read-only."""
        return self._finalized

    def finalize(self) -> None:
        """Make the graph read-only: adding an operation raises `RuntimeError`."""
        self._finalized = True

    def get_operations(self) -> list[Operation]:
        """Every operation, in order of creation."""
        return list(self._ops.values())

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name. Raises `KeyError`."""
        element = self.as_graph_element(name, allow_tensor=False)
        assert isinstance(element, Operation)
        return element

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor ``operation:index``. Raises `KeyError`, or `ValueError` for a malformed name."""
        element = self.as_graph_element(name, allow_operation=False)
        assert isinstance(element, Tensor)
        return element

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Tensor | Operation:
        """The tensor or operation that `obj` is or names.

        Raises:
            KeyError: Nothing in this graph has that name.
            ValueError: `obj` belongs to another graph, or the name is malformed.
            TypeError: `obj` is no graph element at all.
        """
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, str):
            return self._element_by_name(obj, allow_tensor, allow_operation)
        if (isinstance(obj, Tensor) and allow_tensor) or (isinstance(obj, Operation) and allow_operation):
            if obj.graph is not self:
                raise ValueError(f"{obj!r} belongs to another graph than this one")
            return obj
        wanted = " or ".join(["a Tensor"] * allow_tensor + ["an Operation"] * allow_operation)
        raise TypeError(f"{obj!r} (a {type(obj).__name__}) is not {wanted} of the graph")

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Tensor | Operation:
        op_name, colon, index = name.partition(":")
        if colon and not index.isdigit():
            raise ValueError(f"{name!r} is not a tensor name: expected operation:index")
        if not colon and not allow_operation:
            raise ValueError(f"{name!r} names an operation: a tensor name has the form operation:index")
        if colon and not allow_tensor:
            raise ValueError(f"{name!r} names a tensor: an operation name has no colon")
        op = self._ops.get(op_name)
        if op is None:
            import difflib

            close = difflib.get_close_matches(op_name, self._ops, n=3)
            hint = f"; close names are {', '.join(close)}" if close else ""
            raise KeyError(f"the graph has no operation {op_name!r}{hint}")
        if not colon:
            return op
        if int(index) >= len(op.outputs):
            raise KeyError(f"operation {op_name!r} has {len(op.outputs)} outputs: there is no {name!r}")
        return op.outputs[int(index)]

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether a value may be fed for `tensor`: any value may, a resource handle may not."""
        return tensor.dtype is not dtypes.resource

    is_fetchable = is_feedable

    def as_graph_def(self) -> Any:
        """This graph as plain data, a `GraphDef`."""
        from tfray.framework.graph_def import to_graph_def

        return to_graph_def(self)

    def as_default(self) -> Any:
        """Context manager under which new operations go to this graph."""
        return _default_graphs.activate(self)

    # -- growing ---------------------------------------------------------------------------------

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, Any] | None = None,
        name: str | None = None,
        *,
        control_inputs: Iterable[Operation] = (),
        exact_name: bool = False,
        device: str | None = None,
        site: str | None = None,
        shapes: Sequence[TensorShape] | None = None,
    ) -> Operation:
        """Add an operation whose inputs are tensors already; `add_op` is what op families call.

        Args:
            op_type: Name of a registered `OpDef`.
            inputs: Tensors of this graph.
            attrs: Attribute values; type variables are taken from the inputs.
            name: Name, made unique under the current scope; the type's name when None. What `name_scope`
                yields, with its trailing slash, names the operation like that scope.
            control_inputs: Further operations to run first, besides those of the current scope.
            exact_name: Take `name` as it is, outside every scope (used when a graph is copied).
            device: Device string that replaces the device scopes' answer.
            site: Creation site that replaces the caller's line (used when a graph is copied).
            shapes: Static shapes of the outputs, known already; None to infer them.

        Raises:
            InvalidArgumentError: Inputs of wrong number, dtype, shape or graph; unknown attributes.
            RuntimeError: The graph is finalized.
        """
        if self._finalized:
            raise RuntimeError("the graph is finalized: no operation can be added; build it before the session starts")
        definition = op_def.lookup(op_type)
        site = site or user_site()
        if exact_name:
            if not name or name in self._ops:
                raise InvalidArgumentError(f"the graph has an operation {name!r} already")
            self._names[name.lower()] = self._names.get(name.lower(), 0) + 1
        elif name and name.endswith("/") and name[:-1] not in self._ops:
            name = name[:-1]  # the name of a scope, which the scope has reserved
        else:
            name = self.unique_name((name or op_type).rstrip("/"))

        def blame(message: str) -> InvalidArgumentError:
            return InvalidArgumentError(f"{op_type}: {message}", op_name=name, site=site)

        for tensor in inputs:
            if tensor.graph is not self:
                raise blame(f"input {tensor!r} belongs to another graph; build the whole model under one graph")
        resolved = _resolve_attrs(definition, inputs, dict(attrs or {}), blame)
        control = dict.fromkeys(control_inputs)
        if not exact_name:
            for scope in self._control:
                control.update(dict.fromkeys(scope))
            if self._colocation:
                resolved["_class"] = list(dict.fromkeys([*resolved.get("_class", ()), *self._colocation]))
            for key, value in self._attr_scope.items():
                resolved.setdefault(key, value)
        op = Operation(self, definition, name, inputs, resolved, control, site)
        op._device = self._device_for(op) if device is None else device
        if shapes is None:
            shapes = self._inferred_shapes(op, blame)
        for tensor, shape in zip(op.outputs, shapes, strict=True):
            tensor._shape = as_shape(shape)
        self._ops[name] = op
        for tensor in inputs:
            self._consumers.setdefault(tensor, []).append(op)
        self._changed()
        return op

    @staticmethod
    def _inferred_shapes(op: Operation, blame: Callable[[str], InvalidArgumentError]) -> Sequence[TensorShape]:
        try:
            shapes = op.op_def.shape(op)
        except ValueError as error:
            inputs = ", ".join(f"{tensor.name} {tensor.shape}" for tensor in op.inputs)
            raise blame(f"{error}; inputs are {inputs}") from error
        if len(shapes) != len(op.outputs):
            raise blame(f"its shape function gave {len(shapes)} shapes for {len(op.outputs)} outputs")
        return shapes

    def _next_id(self) -> int:
        return len(self._ops)

    def _changed(self) -> None:
        self._version += 1

    def _device_for(self, op: Operation) -> str:
        device = ""
        for scope in self._devices:
            if isinstance(scope, str):
                device = merge_device(device, scope)
            else:
                op._device = device
                device = merge_device(device, scope(op) or "")
        return device

    # -- names and scopes ------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` under the current name scope, with ``_1``, ``_2``, ... appended while it is taken."""
        full = self._name_scope + name
        key = full.lower()
        taken = self._names.get(key, 0)
        unique = full
        if taken:
            while unique.lower() in self._names:
                unique = f"{full}_{taken}"
                taken += 1
        if mark_as_used:
            self._names[key] = max(taken, 1)
            self._names.setdefault(unique.lower(), 1)
        return unique

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Put new operations under ``name/``. Yields the scope with its trailing slash.

        Args:
            name: None or ``""`` for the root; a name that ends in ``/`` re-enters that very scope.

        Raises:
            ValueError: `name` has characters that names may not have.
        """
        outer = self._name_scope
        if not name:
            scope = ""
        elif name.endswith("/"):
            scope = name
        else:
            if not re.fullmatch(r"[A-Za-z0-9_.\\\-/]+", name) or (not outer and name[0] in "_-/\\"):
                raise ValueError(f"{name!r} is not a scope name: use letters, digits, '.', '-', '_' and '/'")
            scope = self.unique_name(name) + "/"
        self._name_scope = scope
        try:
            yield scope
        finally:
            self._name_scope = outer

    def get_name_scope(self) -> str:
        """The current name scope without its trailing slash."""
        return self._name_scope.rstrip("/")

    @contextmanager
    def device(self, device: str | DeviceFunction | Any | None) -> Iterator[None]:
        """Ask for a device for new operations: a name, possibly partial, or a function of the operation.

        None drops every enclosing scope. Inner scopes override outer ones field by field.
        """
        outer = self._devices
        if device is None:
            self._devices = []
        elif callable(device):
            self._devices = [*outer, device]
        else:
            self._devices = [*outer, canonical_name(str(device))]
        try:
            yield
        finally:
            self._devices = outer

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Make new operations run after every one of `control_inputs`; None drops enclosing scopes."""
        outer = self._control
        if control_inputs is None:
            self._control = []
        else:
            self._control = [*outer, [_as_operation(self, element) for element in control_inputs]]
        try:
            yield
        finally:
            self._control = outer

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Put new operations on the device of `op`, whichever that will be.

        `ignore_existing` drops the enclosing colocation scopes; device scopes are dropped in either case.
        """
        outer, outer_devices = self._colocation, self._devices
        target = _as_operation(self, op)
        self._colocation = [target.name] if ignore_existing else [*outer, target.name]
        self._devices = [target.device] if target.device else []
        try:
            yield
        finally:
            self._colocation, self._devices = outer, outer_devices

    @contextmanager
    def attr_scope(self, attrs: Mapping[str, Any]) -> Iterator[None]:
        """Give new operations these extra attributes, whose names start with an underscore."""
        outer = self._attr_scope
        self._attr_scope = {**outer, **attrs}
        try:
            yield
        finally:
            self._attr_scope = outer

    @contextmanager
    def gradient_override_map(self, overrides: Mapping[str, str]) -> Iterator[None]:
        """Let new operations of the given types use the gradient registered under another name."""
        with self.attr_scope({"_gradient_overrides": {**self._attr_scope.get("_gradient_overrides", {}), **overrides}}):
            yield

    # -- collections -----------------------------------------------------------------------------

    def add_to_collection(self, name: str, value: Any) -> None:
        """Append `value` to the collection `name`."""
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Iterable[str] | str, value: Any) -> None:
        """Append `value` to each collection named, once."""
        for name in [names] if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """A copy of the collection, in order; with `scope`, the items whose name the expression matches."""
        values = self._collections.get(name, [])
        if scope is None:
            return list(values)
        pattern = re.compile(scope)
        return [value for value in values if pattern.match(getattr(value, "name", ""))]

    def get_collection_ref(self, name: str) -> list[Any]:
        """The collection itself: changing the list changes the graph's collection."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[str]:
        """Names of the collections that are not empty."""
        return [name for name, values in self._collections.items() if values]

    def clear_collection(self, name: str) -> None:
        """Empty the collection."""
        self._collections.pop(name, None)

    def extra(self, key: str, factory: Callable[[], Any]) -> Any:
        """State that a library layer keeps with this graph, made by `factory` when first asked for."""
        if key not in self._extra:
            self._extra[key] = factory()
        return self._extra[key]


# -- signatures ----------------------------------------------------------------------------------------


def _resolve_attrs(
    definition: OpDef,
    inputs: Sequence[Tensor],
    attrs: dict[str, Any],
    blame: Callable[[str], InvalidArgumentError],
) -> dict[str, Any]:
    """Check inputs and attributes against the definition; bind its type variables."""
    _check_attr_names(definition, attrs, blame)
    arguments = definition.input_arguments
    fixed = len(arguments) - (1 if arguments and arguments[-1].count is not None else 0)
    if len(inputs) < fixed or (len(inputs) > fixed and fixed == len(arguments)):
        at_least = "at least " if fixed < len(arguments) else ""
        raise blame(f"takes {at_least}{fixed} inputs, got {len(inputs)}")
    for index, tensor in enumerate(inputs):
        argument = arguments[min(index, len(arguments) - 1)]
        _bind_type(definition, argument, tensor.dtype, attrs, f"input {argument.name!r} ({tensor.name})", blame)
    for variable, allowed in definition.types.items():
        if variable not in attrs:
            if len(allowed) == 1:
                attrs[variable] = allowed[0]
            elif any(argument.type == variable for argument in definition.output_arguments):
                raise blame(f"attribute {variable!r} is needed and no input determines it")
        elif isinstance(attrs[variable], DType) and attrs[variable] not in allowed:
            names = ", ".join(dtype.name for dtype in allowed)
            raise blame(f"dtype {attrs[variable].name} is not supported; expected one of {names}")
    return attrs


def _check_attr_names(definition: OpDef, attrs: dict[str, Any], blame: Callable[[str], InvalidArgumentError]) -> None:
    known = {*definition.attrs, *definition.types}
    unknown = [name for name in attrs if name not in known and not name.startswith("_")]
    if unknown:
        raise blame(f"has no attribute {', '.join(unknown)}; it has {', '.join(sorted(known)) or 'none'}")
    missing = [name for name in definition.attrs if name not in attrs]
    if missing:
        raise blame(f"attribute {', '.join(missing)} is missing")


def _bind_type(
    definition: OpDef,
    argument: Argument,
    dtype: DType,
    attrs: dict[str, Any],
    what: str,
    blame: Callable[[str], InvalidArgumentError],
) -> None:
    if argument.type == "any":
        return
    if argument.type in definition.types:
        bound = attrs.setdefault(argument.type, dtype)
        if bound is not dtype:
            raise blame(f"{what} is {dtype.name}, expected {bound.name} as the other inputs; use tf.cast")
    elif argument.type in definition.attrs:
        if attrs[argument.type] is not dtype:
            raise blame(f"{what} is {dtype.name}, expected {attrs[argument.type].name}")
    elif argument.type != dtype.name:
        raise blame(f"{what} is {dtype.name}, expected {argument.type}; use tf.cast")


def _output_dtypes(definition: OpDef, attrs: Mapping[str, Any]) -> list[DType]:
    result: list[DType] = []
    for argument in definition.output_arguments:
        value: Any = attrs[argument.type] if argument.type in attrs else dtypes.as_dtype(argument.type)
        if argument.count is None:
            result.append(value)
        elif argument.count:
            result.extend([value] * attrs[argument.count])
        else:
            result.extend(value)
    return result


# -- where an operation was made -----------------------------------------------------------------------

# Both spellings of the folders: the packages are links in a checkout and real folders when installed.
_PACKAGE = Path(__file__).resolve().parent.parent
_OWN_FOLDERS: Final = tuple(
    f"{folder}/"
    for root in (_PACKAGE, Path(__file__).parent.parent)
    for folder in (
        root,
        *((root / part).resolve() for part in ("ops", "actors", "placement")),
    )
)


def user_site() -> str:
    """``file:line, in function`` of the innermost caller outside tfray."""
    frame = sys._getframe(1)
    last = frame
    while frame is not None:
        filename = frame.f_code.co_filename
        if (
            not filename.startswith(_OWN_FOLDERS)
            and not filename.startswith("<frozen")
            and "contextlib" not in filename
        ):
            return f"{filename}:{frame.f_lineno}, in {frame.f_code.co_name}"
        last, frame = frame, frame.f_back  # type: ignore[assignment]
    return f"{last.f_code.co_filename}:{last.f_lineno}, in {last.f_code.co_name}"


# -- default graph and session -------------------------------------------------------------------------


class _DefaultStack(threading.local):
    """Per-thread stack of context-managed defaults."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    @contextmanager
    def activate(self, item: Any) -> Iterator[Any]:
        self.items.append(item)
        try:
            yield item
        finally:
            if not self.items or self.items[-1] is not item:
                raise RuntimeError("default graphs and sessions must be left in the reverse order of entering")
            self.items.pop()

    def top(self) -> Any | None:
        return self.items[-1] if self.items else None


class _DefaultGraphs(_DefaultStack):
    pass


_default_graphs = _DefaultGraphs()
_default_sessions = _DefaultStack()
_global_graph = Graph()


def get_default_graph() -> Graph:
    """The graph to which new operations go: that of the innermost ``as_default`` of this thread."""
    graph: Graph = _default_graphs.top() or _global_graph
    return graph


def reset_default_graph() -> None:
    """Start a new global default graph.

    Raises:
        RuntimeError: Called inside a ``with graph.as_default()`` block.
    """
    global _global_graph
    if _default_graphs.top() is not None:
        raise RuntimeError("reset_default_graph cannot be called inside `with graph.as_default()`")
    _global_graph = Graph()


def get_default_session() -> Any | None:
    """The session of the innermost ``with session`` of this thread, or None."""
    return _default_sessions.top()


def default_session_scope(session: Any) -> Any:
    """Context manager under which `session` is the default session."""
    return _default_sessions.activate(session)


def _session_or_default(session: Any, graph: Graph) -> Any:
    session = session or get_default_session()
    if session is None:
        raise ValueError("there is no default session: use `with tf.Session():` or pass session=")
    if session.graph is not graph:
        raise ValueError("the default session runs another graph: pass session=")
    return session


def _as_operation(graph: Graph, element: Any) -> Operation:
    element = graph.as_graph_element(element)
    return element.op if isinstance(element, Tensor) else element


def is_rank0_number(value: Any) -> bool:
    """Whether `value` is a Python or NumPy number, not an array."""
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))
