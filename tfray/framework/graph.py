"""The dataflow graph: its operations, the tensors between them, and the scopes under which operations are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from tfray.errors import ArgumentError, InvalidArgumentError, OperatorNotAllowedInGraphError
from tfray.framework import default_stack, dtypes, op_def, tensor_operators
from tfray.framework.call_site import frame_of, user_site
from tfray.framework.default_stack import ControlScope, controls_for, default_graphs, made_under, session_or_default
from tfray.framework.default_stack import default_session_scope as default_session_scope
from tfray.framework.default_stack import get_default_session as get_default_session
from tfray.framework.device_spec import DeviceSpec, canonical_name, merge_device
from tfray.framework.graph_keys import GraphCollections, is_within
from tfray.framework.op_def import OpDef
from tfray.framework.plain_graph import PlainGraph, PlainNode, drawn, messages
from tfray.framework.signature import attr_for_users, checked_name, instead_of, output_dtypes, resolve_attrs
from tfray.framework.tensor_operators import TensorOperators
from tfray.framework.tensor_operators import register_operator as register_operator
from tfray.framework.tensor_shape import ShapeLike, TensorShape, as_shape

ErrorT = TypeVar("ErrorT", bound=InvalidArgumentError)

_NAME = re.compile(r"[A-Za-z0-9_.\-/]+")


class Tensor(TensorOperators["Tensor"], tensor_operators.TensorInnerNames):
    """One output of an operation: a value that exists while a step runs. Programs may give it attributes of their own.

    Attributes:
        op: The operation that computes it.
        value_index: Which of the operation's outputs it is.
        dtype: Type of its elements.
        assign: Of a part of a variable, ``v[1:3]``, only: ``assign(value, name=None)`` sets this part.
        aliases: Names that `tf.contrib.slim.utils` has given to it, only if there are any.
    """

    __slots__ = ("__dict__", "__weakref__", "_shape", "dtype", "op", "value_index")

    assign: Callable[..., Tensor]
    aliases: list[str]

    def __init__(self, op: Operation, value_index: int, dtype: dtypes.DType) -> None:
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
        return session_or_default(session, self.graph).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        shape = "" if self._shape.rank is None else f", shape={self._shape}"
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype.name}{device})'

    def __bool__(self) -> bool:
        what = f"{self!r} has no truth value until it is run; use `is not None`, or tf.cond for a choice in the graph"
        raise OperatorNotAllowedInGraphError(f"Using a `tf.Tensor` as a Python `bool` is not allowed: {what}")

    def __iter__(self) -> Iterator[Tensor]:
        if self._shape.rank is None or self._shape.rank == 0 or self._shape.sizes[0] is None:
            raise OperatorNotAllowedInGraphError(f"iterating over `tf.Tensor` is not allowed; use tf.unstack: {self!r}")
        return iter([self[i] for i in range(self._shape.sizes[0])])

    def __len__(self) -> int:
        raise TypeError(f"len is not well defined for symbolic Tensors: use tf.shape or tensor.shape of {self!r}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"{self!r} is symbolic: run it in a session to get an array")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        # Identity, as in TensorFlow 1, so that tensors serve as dictionary keys; tf.equal compares values.
        return self is other

    def __deepcopy__(self, memo: Any) -> Tensor:
        # A tensor is a place in its graph. A copied object that refers to it, such as a layer, refers to the same one.
        return self


class Operation(tensor_operators.OperationInnerNames):
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
        self.op_def = definition
        self.name: Final = name
        self.inputs = tuple(inputs)
        self.attrs = attrs
        self.id: Final = graph._next_id()
        self.site = site
        self._control_inputs: dict[Operation, None] = dict.fromkeys(control_inputs)
        self._device = ""
        self.outputs: Final[list[Tensor]] = [
            Tensor(self, index, dtype) for index, dtype in enumerate(output_dtypes(definition, attrs))
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

    def as_plain(self) -> PlainNode:
        """Its form in a `PlainGraph`."""
        inputs = [tensor.name for tensor in self.inputs] + [f"^{control.name}" for control in self.control_inputs]
        shapes = [tensor.shape for tensor in self.outputs]
        attrs = {**self.attrs, **{name: self.attrs[name].as_region_def() for name in self.op_def.regions}}
        return PlainNode(self.name, self.type, inputs, self.device, attrs, self.site, shapes)

    @property
    def node_def(self) -> Any:
        """It as a message of TensorFlow's, a `tf.NodeDef`."""
        return messages().node_message(self)

    def values(self) -> tuple[Tensor, ...]:
        """Its outputs."""
        return tuple(self.outputs)

    def attr(self, name: str) -> Any:
        """Value of an attribute. Raises `KeyError` when the type has no such attribute."""
        return self.attrs[name]

    def get_attr(self, name: str) -> Any:
        """Value of an attribute as TensorFlow gives it: text as bytes, a shape as a message; an array is an array.

        Raises `ValueError` when there is none of that name.
        """
        value = attr_for_users(self, name)
        return self.colocation_groups() if name == "_class" else value

    @property
    def traceback(self) -> list[tuple[str, int, str, str]]:
        """The line of the user's program that made it: ``[(file, line, function, text of the line)]``."""
        return [frame_of(self.site)]

    @property
    def placed_with(self) -> list[str]:
        """Names of the operations that it was asked to share a device with."""
        return list(self.attrs.get("_class", ()))

    def colocation_groups(self) -> list[bytes]:
        """The groups of operations that share its device: ``b"loc:@name"`` of the first operation of each."""
        groups: set[bytes] = set()
        for name in self.placed_with:
            other = self.graph._ops.get(name)
            groups.update([b"loc:@" + name.encode()] if other in (None, self) else other.colocation_groups())
        return sorted(groups) or [b"loc:@" + self.name.encode()]

    def add_control_inputs(self, ops: Iterable[Operation]) -> None:
        """Make it run after `ops` too. The caller ensures that no cycle arises."""
        self._control_inputs.update(dict.fromkeys(ops))
        self.graph._changed()

    def become(self, op_type: str, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> None:
        """Turn an operation without inputs into another with the same outputs. For regions that are being built."""
        assert not self.inputs
        self.op_def, self.inputs, self.attrs = op_def.lookup(op_type), tuple(inputs), attrs
        for tensor in inputs:
            self.graph._consumers.setdefault(tensor, []).append(self)
        self.graph._changed()

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run this operation in `session`, or in the default session."""
        session_or_default(session, self.graph, "execute operation", "run").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"


DeviceFunction = Callable[[Operation], str | None]

DeviceLike = str | DeviceSpec | DeviceFunction
"""A device: its name, possibly partial, or a function that names one for each operation."""


class Graph(GraphCollections, tensor_operators.GraphInnerNames):
    """Operations and the tensors between them, with the scopes that name and place new ones.

    A graph only grows. It may be built from one thread at a time; sessions may run it from many.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ops: dict[str, Operation] = {}
        self._consumers: dict[Tensor, list[Operation]] = {}
        self._names: dict[str, int] = {}
        self._version = 0
        self._op_count = 0
        self._scope = default_stack.ThreadScope()
        self._devices: list[str | DeviceFunction] = []
        self._control: list[ControlScope] = []
        self._colocation: list[str] = []
        self._attr_scope: dict[str, Any] = {}
        self._gradient_overrides: dict[str, str] = {}
        self._copies: Mapping[Operation, Operation] = {}
        self._copied: Graph | None = None
        self.functions: dict[str, Callable[..., Any]] = {}
        """Python functions that operations of this graph call, by token (see `tf.py_func`)."""
        self.seed: int | None = None
        """Graph-level seed of random operations (`tf.set_random_seed`)."""
        self._extra: dict[str, Any] = {}

    # -- what it holds ---------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """A number that grows with every change. A compiled step is valid for one version."""
        return self._version

    def get_operations(self) -> list[Operation]:
        """Every operation, in order of creation."""
        return list(self._ops.values())

    def __contains__(self, name: str) -> bool:
        """Whether there is an operation of that name."""
        return name in self._ops

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name, within branches and loops too. What stands there cannot be run from outside.

        Raises:
            KeyError: There is none. Of TensorFlow 1's Switch, Merge and kin, those that give results are there.
            ValueError: It is the name of a tensor.
        """
        element = self._element_by_name(name, allow_tensor=False, allow_operation=True)
        assert isinstance(element, Operation)
        return element

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor ``operation:index``, within branches and loops too. What stands there cannot be fetched or fed.

        The name of a variable stands for its value, as in TensorFlow 1: it gives the tensor that reads the variable.

        Raises:
            KeyError: There is none; see `get_operation_by_name`.
            ValueError: The name is malformed.
        """
        return self.value_of(self.tensor_named(name))

    def tensor_named(self, name: str) -> Tensor:
        """The tensor ``operation:index``, that of a variable's handle too. Raises as `get_tensor_by_name`."""
        element = self._element_by_name(name, allow_tensor=True, allow_operation=False)
        assert isinstance(element, Tensor)
        return element

    def value_of(self, tensor: Tensor) -> Tensor:
        """The tensor that reads a variable, for the variable's handle; any other tensor, and one that nothing reads."""
        for op in tensor.consumers() if tensor.dtype is dtypes.resource else ():
            if op.op_def.access == "read" and len(op.inputs) == 1 and op.outputs[0].dtype is not dtypes.bool_:
                return op.outputs[0]
        return tensor

    def find_operation(self, name: str) -> Operation | None:
        """The operation of that name here or, at any depth, within branches and loops; None if there is none."""
        return self._ops.get(name) or next((op for op in self._ops_within() if op.name == name), None)

    def _ops_within(self) -> Iterator[Operation]:
        """Every operation, each before those of its regions."""
        for op in self._ops.values():
            yield op
            for attr in op.op_def.regions:
                yield from op.attrs[attr]._ops_within()

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Tensor | Operation:
        """The tensor or operation that `obj` is or names.

        Raises:
            KeyError: Nothing in this graph has that name.
            ValueError: `obj` belongs to another graph, or stands within a branch or a loop; the name is malformed, or
                neither kind is allowed.
            TypeError: `obj` is no graph element at all.
        """
        if not allow_tensor and not allow_operation:
            raise ValueError("allow_tensor and allow_operation are both False: a graph holds nothing else")
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, str):
            obj = self._element_by_name(obj, allow_tensor, allow_operation)
        if (isinstance(obj, Tensor) and allow_tensor) or (isinstance(obj, Operation) and allow_operation):
            if obj.graph is not self:
                raise ValueError(f"{type(obj).__name__} {obj!r} is not an element of this graph. {self.refusal(obj)}")
            return obj
        wanted = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation)
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}: {obj!r}")

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Tensor | Operation:
        op_name, colon, index = checked_name(name).partition(":")
        form = 'Tensor names must be of the form "<op_name>:<output_index>".'
        if colon and not allow_tensor:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        if colon and not index.isdigit():
            raise ValueError(f"The name {name!r} looks a like a Tensor name, but is not a valid one. {form}")
        op = self.find_operation(op_name)
        if not colon and not allow_operation:
            what = "looks like an (invalid) Operation name" if op is None else "refers to an Operation"
            raise ValueError(f"The name {name!r} {what}, not a Tensor. {form}")
        missing = f"The name {name!r} refers to a Tensor which does not exist. The operation, {op_name!r},"
        if op is None:
            said = f"{missing} does not exist" if colon else f"The name {name!r} refers to an Operation not"
            raise KeyError(f"{said} in the graph{instead_of(op_name, self._ops_within())}")
        if colon and int(index) >= len(op.outputs):
            raise KeyError(f"{missing} exists but only has {len(op.outputs)} outputs.")
        return op.outputs[int(index)] if colon else op

    def is_feedable(self, tensor: Tensor | Operation) -> bool:
        """Whether a value may be fed for `tensor`: not for a handle, nor for what stands within a branch or a loop."""
        is_handle = isinstance(tensor, Tensor) and tensor.dtype in (dtypes.resource, dtypes.variant)
        return not is_handle and tensor not in self._not_fed and not is_within(self, tensor.graph)

    def is_fetchable(self, tensor_or_op: Tensor | Operation) -> bool:
        """Whether a tensor or operation may be fetched: not what stands within a branch or a loop."""
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return op not in self._not_fetched and not is_within(self, op.graph)

    def as_plain(self) -> PlainGraph:
        """This graph as plain data."""
        return PlainGraph([op.as_plain() for op in tensor_operators.in_order(self)], seed=self.seed)

    def as_graph_def(self, from_version: None = None, add_shapes: bool = False) -> Any:
        """This graph as a message of TensorFlow's, a `tf.GraphDef`.

        What TensorFlow has no equivalent of keeps its type here, as ``Tfray>Type``.

        Args:
            from_version: Not used.
            add_shapes: Whether nodes tell the static shapes of their outputs, in the attribute ``_output_shapes``.
        """
        return messages().graph_message(self, add_shapes)

    def _repr_html_(self) -> str | None:
        """This graph as HTML for a notebook; None (the notebook then shows `repr`) if no module draws graphs."""
        return drawn(self)

    def as_default(self) -> Any:
        """Context manager under which new operations go to this graph."""
        return default_graphs.activate(self)

    # -- growing ---------------------------------------------------------------------------------

    def add_operation(
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
        """Add an operation whose inputs are tensors already. (Functions of ops call `add_op`, which converts inputs.)

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
            ArgumentError: Inputs of wrong number or dtype; unknown attributes. It is also a `TypeError`.
            InvalidArgumentError: Inputs of wrong shape or graph. It is also a `ValueError`.
            RuntimeError: The graph is finalized.
        """
        self._check_not_finalized("no operation can be added")
        definition = op_def.lookup(op_type)
        site = site or user_site()
        if exact_name:
            if not name or not _NAME.fullmatch(name):
                raise InvalidArgumentError(f"{op_type}: {_not_a_name(name or '', 'node name')}", site=site)
            if name in self._ops:
                raise InvalidArgumentError(f"the graph has an operation {name!r} already", op_name=name, site=site)
            self._names.setdefault(name.lower(), 1)
        elif name and name.endswith("/") and name[:-1] not in self._ops:
            name = name[:-1]  # the name of a scope is free for this: `name_scope` has reserved it
        else:
            wanted = (name or op_type).rstrip("/")
            if not self._may_be_named(wanted):
                raise InvalidArgumentError(f"{op_type}: {_not_a_name(wanted, 'node name')}", site=site)
            name = self.unique_name(wanted)

        def blame(message: str, kind: type[ErrorT]) -> ErrorT:
            return kind(f"{op_type}: {message}", op_name=name, site=site)

        try:
            inputs = [tensor if tensor.graph is self else self.own(tensor) for tensor in inputs]
            control = dict.fromkeys(self.own_controls(control_inputs))
        except ValueError as error:
            raise blame(str(error), InvalidArgumentError) from error
        resolved = resolve_attrs(definition, inputs, dict(attrs or {}), partial(blame, kind=ArgumentError))
        if not exact_name:
            control.update(dict.fromkeys(self.own_controls(controls_for(self._control, inputs, definition.stateful))))
            if self._colocation:
                resolved["_class"] = list(dict.fromkeys([*resolved.get("_class", ()), *self._colocation]))
            for key, value in self._attr_scope.items():
                resolved.setdefault(key, value)
        op = Operation(self, definition, name, inputs, resolved, control, site)
        op._device = self._device_for(op) if device is None else device
        if shapes is None:
            shapes = self._inferred_shapes(op, partial(blame, kind=InvalidArgumentError))
        for tensor, shape in zip(op.outputs, shapes, strict=True):
            tensor._shape = as_shape(shape)
        self._ops[name] = op
        made_under([] if exact_name else self._control, op)
        self._count_op()
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

    def add_output(self, op: Operation, dtype: dtypes.DType, shape: TensorShape) -> Tensor:
        """Give `op`, whose last declared output is variadic, one more output, because back-propagation needs it."""
        attribute = op.op_def.output_arguments[-1].type
        op.attrs[attribute] = [*op.attrs[attribute], dtype]
        tensor = Tensor(op, len(op.outputs), dtype)
        tensor._shape = shape
        op.outputs.append(tensor)
        self._changed()
        return tensor

    @property
    def root(self) -> Graph:
        """The outermost graph around this one: itself, unless it is a region."""
        return self

    @property
    def runs_often(self) -> bool:
        """Whether it is a function that is called over and over; see `Region`."""
        return False

    @property
    def has_control_scope(self) -> bool:
        """Whether new operations run after others, because of a `control_dependencies` here or around this region."""
        return any(scope.ops for scope in self._control)

    def admits(self, graph: Graph) -> bool:
        """Whether tensors of `graph` may be used here: it is this graph, or, for a region, a graph around this one."""
        return graph is self or graph is self._copied

    def own(self, tensor: Tensor) -> Tensor:
        """The tensor of this graph that stands for `tensor`.

        Raises:
            ValueError: There is none.
        """
        if tensor.graph is self:
            return tensor
        copy = self._copies.get(tensor.op)
        if copy is not None:
            return self.own(copy.outputs[tensor.value_index])
        raise ValueError(self.refusal(tensor))

    @contextmanager
    def using_copies(self, copies: Mapping[Operation, Operation]) -> Iterator[None]:
        """Let operations of a traced function stand for their copies in a call of it, by operation."""
        root = self.root
        outer = root._copies, root._copied
        root._copies, root._copied = copies, next((op.graph for op in copies), None)
        try:
            yield
        finally:
            root._copies, root._copied = outer

    def refusal(self, element: Tensor | Operation) -> str:
        """Why `element`, of a graph that this one does not admit, cannot be used here, and what to do."""
        if element.graph.root is self.root:
            return (
                f"{element!r} was made within a branch or a loop, and exists only there; "
                "let the branch or the loop return it, and use what tf.cond or tf.while_loop returns"
            )
        return (
            f"{element!r} belongs to another graph than this one, and all inputs of an operation must be from the same "
            "graph; build the whole model under one graph: enter it with `with graph.as_default():`"
        )

    def own_controls(self, ops: Iterable[Operation]) -> list[Operation]:
        """Those of `ops` that operations of this graph can wait for: all of them, unless it is a region.

        Raises:
            ValueError: One belongs to another graph.
        """
        ops = list(ops)
        for op in ops:
            if op.graph is not self:
                raise ValueError(self.refusal(op))
        return ops

    @property
    def op_count(self) -> int:
        """Number of operations, those of its regions included."""
        return self._op_count

    def _count_op(self) -> None:
        self._op_count += 1

    def _next_id(self) -> int:
        return len(self._ops)

    def _changed(self) -> None:
        self._version += 1

    def _device_for(self, op: Operation, asked: str = "") -> str:
        """What the device scopes ask for, around what is `asked` for the operation alone."""
        device = asked
        for scope in reversed(self._devices):
            if isinstance(scope, str):
                device = merge_device(scope, device)
            else:  # it sees what the scopes inside it ask for, and answers for them too
                op._device = device
                device = str(scope(op) or "")
                canonical_name(device)  # refuses what is no name; the operation keeps the function's words
        return device

    def apply_scopes(self, op: Operation) -> None:
        """Put an operation that was made outside of the current scopes of devices and controls into them.

        One that is to share another's device asks for what that one asks for, as in TensorFlow.
        """
        op._control_inputs.update(
            dict.fromkeys(self.own_controls(controls_for(self._control, op.inputs, op.op_def.stateful)))
        )
        made_under(self._control, op)
        if self._devices:
            others = [name for name in op.attrs.get("_class", ()) if name != op.name and name in self._ops]
            devices = filter(None, (self._ops[name].device for name in others))
            op._device = next(devices, "") if others else self._device_for(op, op.device)

    def ask_for_devices(self, devices: Mapping[Operation, str]) -> None:
        """Ask for other devices for operations, by names that may be partial."""
        for op, device in devices.items():
            op._device = canonical_name(device)
        self._changed()

    # -- names and scopes ------------------------------------------------------------------------

    def _may_be_named(self, name: str) -> bool:
        return _NAME.fullmatch(name) is not None and (self._scope.name != "" or name[0] not in "_-/")

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` under the current name scope, with ``_1``, ``_2``, ... appended while it is taken."""
        full = self._scope.name + name
        key = full.lower()
        taken = self._names.get(key, 0)
        unique = full
        if taken:
            while unique.lower() in self._names:
                unique = f"{full}_{taken}"
                taken += 1
            self._names[key] = taken if mark_as_used else taken - 1  # where to look next
        if mark_as_used:
            self._names.setdefault(key, 1)
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
        outer = self._scope.name
        if not name:
            scope = ""
        elif name.endswith("/"):
            scope = name
        else:
            if not self._may_be_named(name):
                raise ValueError(_not_a_name(name, "scope name"))
            scope = self.unique_name(name) + "/"
        self._scope.name = scope
        try:
            yield scope
        finally:
            self._scope.name = outer

    def get_name_scope(self) -> str:
        """The current name scope without its trailing slash."""
        return self._scope.name.rstrip("/")

    @contextmanager
    def device(self, device_name_or_function: DeviceLike | None) -> Iterator[None]:
        """Ask for a device for new operations: a name, possibly partial, or a function of the operation.

        None drops every enclosing scope. Inner scopes override outer ones field by field. A function sees in
        ``op.device`` what the scopes inside it ask for, and what it returns stands in place of that.
        """
        outer, device = self._devices, device_name_or_function
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

    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> AbstractContextManager[None]:
        """Make new operations run after every one of `control_inputs`; None drops enclosing scopes.

        Raises:
            TypeError: Something in it is neither a tensor nor an operation.
            KeyError: It names an operation that is not there.
        """
        if control_inputs is None:
            return self._controlled(None)
        return self._controlled([_as_operation(self, element) for element in control_inputs])

    @contextmanager
    def _controlled(self, controls: list[Operation] | None) -> Iterator[None]:
        outer = self._control
        self._control = [] if controls is None else [*outer, ControlScope(controls)]
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
        if op is None and not ignore_existing:
            raise ValueError("colocate_with takes an operation; None, with ignore_existing, drops enclosing scopes")
        self._colocation, self._devices = [] if ignore_existing else outer, []
        if op is not None:
            target = _as_operation(self, op)
            self._colocation = [*self._colocation, target.name]
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

    def container(self, container_name: str) -> Any:
        """See `tf.container`."""
        return self.attr_scope({"_container": container_name})

    @property
    def scope_attrs(self) -> Mapping[str, Any]:
        """The extra attributes that new operations get."""
        return self._attr_scope

    @contextmanager
    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """Let new operations of the given types use the gradient registered under another name."""
        merged = {**self._attr_scope.get("_gradient_overrides", {}), **op_type_map}
        with self.attr_scope({"_gradient_overrides": merged}):
            yield

    def extra(self, key: str, factory: Callable[[], Any]) -> Any:
        """State that a library layer keeps with this graph, made by `factory` when first asked for."""
        if key not in self._extra:
            self._extra[key] = factory()
        return self._extra[key]


# -- the default graph ---------------------------------------------------------------------------------

_global_graph = Graph()


def get_default_graph() -> Graph:
    """The graph to which new operations go: that of the innermost ``as_default`` of this thread."""
    graph: Graph = default_graphs.top() or _global_graph
    return graph


def reset_default_graph() -> None:
    """Start a new global default graph.

    Raises:
        RuntimeError: Called inside a ``with graph.as_default()`` block.
    """
    global _global_graph
    if default_graphs.top() is not None:
        raise RuntimeError("reset_default_graph cannot be called inside `with graph.as_default()`")
    _global_graph = Graph()


def _not_a_name(name: str, what: str) -> str:
    return f"{name!r} is not a valid {what}: use letters, digits, '.', '-', '_' and '/', and begin with a letter"


def _as_operation(graph: Graph, element: Any) -> Operation:
    element = graph.as_graph_element(getattr(element, "_waited_for", element))
    return element.op if isinstance(element, Tensor) else element
