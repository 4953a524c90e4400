"""The Python operators of tensors, and names that TensorFlow keeps to itself on tensors and their kin.

The modules of `ops` register the function behind each operator, because modules of `framework` do not import `ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, Generic, TypeVar

from tfray.framework import dtypes
from tfray.framework.call_site import start_of
from tfray.framework.device_spec import DeviceSpec, canonical_name
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.traversal import topological_order

ResultT = TypeVar("ResultT")

_OPERATORS: Final[dict[str, Callable[..., Any]]] = {}

_NAMED: Final = frozenset(
    (
        "add",
        "sub",
        "mul",
        "div",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "xor",
    )  # and their reflections
)
"""Operators after which their operations are named; the others' have the names that their functions give them."""


def register_operator(name: str, function: Callable[..., Any]) -> None:
    """Set the function behind the Python operator `name` (``"add"`` for ``+``, ``"getitem"`` for indexing).

    ``"beside"`` is what the left operand becomes when only the right one is a tensor: of that one's dtype.
    """
    if name in _OPERATORS:
        raise ValueError(f"operator {name!r} is registered already")
    _OPERATORS[name] = function


def operate(name: str, *operands: Any) -> Any:
    """Call the function that is registered for the Python operator `name`, and return its result."""
    try:
        function = _OPERATORS[name]
    except KeyError:
        raise TypeError(f"no operation is registered for the operator {name!r}") from None
    return function(*operands, name=name) if name in _NAMED else function(*operands)


_OVERLOADABLE: Final = (
    "abs add and div eq floordiv ge getitem gt invert le lt matmul mod mul ne neg or pow radd rand rdiv rfloordiv "
    "rmatmul rmod rmul ror rpow rsub rtruediv rxor sub truediv xor"
)


class TensorOperators(Generic[ResultT]):
    """Base class that has the Python operators. Each makes an operation and returns its output, a `ResultT`.

    ``a + b`` is named ``add``, ``a / b`` ``truediv``, as in TensorFlow. There is no ``==``, because tensors are
    compared by identity.
    """

    __slots__ = ()

    OVERLOADABLE_OPERATORS: ClassVar = {f"__{name}__" for name in _OVERLOADABLE.split()}
    """The methods behind the operators, a set that types may change which stand for tensors and call these."""

    # Any number above 0, that of NumPy's arrays, makes NumPy leave ``array + tensor`` to `__radd__`.
    __array_priority__ = 100

    def __add__(self, other: Any) -> ResultT:
        return operate("add", self, other)

    def __radd__(self, other: Any) -> ResultT:
        return operate("add", operate("beside", other, self), self)

    def __sub__(self, other: Any) -> ResultT:
        return operate("sub", self, other)

    def __rsub__(self, other: Any) -> ResultT:
        return operate("sub", operate("beside", other, self), self)

    def __mul__(self, other: Any) -> ResultT:
        return operate("mul", self, other)

    def __rmul__(self, other: Any) -> ResultT:
        return operate("mul", operate("beside", other, self), self)

    def __truediv__(self, other: Any) -> ResultT:
        return operate("truediv", self, other)

    def __rtruediv__(self, other: Any) -> ResultT:
        return operate("truediv", operate("beside", other, self), self)

    def __div__(self, other: Any) -> ResultT:
        """Python 2's division, for programs that call the method by its name."""
        return operate("div", self, other)

    def __rdiv__(self, other: Any) -> ResultT:
        return operate("div", operate("beside", other, self), self)

    def __floordiv__(self, other: Any) -> ResultT:
        return operate("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> ResultT:
        return operate("floordiv", operate("beside", other, self), self)

    def __mod__(self, other: Any) -> ResultT:
        return operate("mod", self, other)

    def __rmod__(self, other: Any) -> ResultT:
        return operate("mod", operate("beside", other, self), self)

    def __pow__(self, other: Any) -> ResultT:
        return operate("pow", self, other)

    def __rpow__(self, other: Any) -> ResultT:
        return operate("pow", operate("beside", other, self), self)

    def __matmul__(self, other: Any) -> ResultT:
        return operate("matmul", self, other)

    def __rmatmul__(self, other: Any) -> ResultT:
        return operate("matmul", operate("beside", other, self), self)

    def __lt__(self, other: Any) -> ResultT:
        return operate("lt", self, other)

    def __le__(self, other: Any) -> ResultT:
        return operate("le", self, other)

    def __gt__(self, other: Any) -> ResultT:
        return operate("gt", self, other)

    def __ge__(self, other: Any) -> ResultT:
        return operate("ge", self, other)

    def __and__(self, other: Any) -> ResultT:
        return operate("and", self, other)

    def __rand__(self, other: Any) -> ResultT:
        return operate("and", operate("beside", other, self), self)

    def __or__(self, other: Any) -> ResultT:
        return operate("or", self, other)

    def __ror__(self, other: Any) -> ResultT:
        return operate("or", operate("beside", other, self), self)

    def __xor__(self, other: Any) -> ResultT:
        return operate("xor", self, other)

    def __rxor__(self, other: Any) -> ResultT:
        return operate("xor", operate("beside", other, self), self)

    def __invert__(self) -> ResultT:
        return operate("invert", self)

    def __neg__(self) -> ResultT:
        return operate("neg", self)

    def __abs__(self) -> ResultT:
        return operate("abs", self)

    def __getitem__(self, key: Any) -> ResultT:
        return operate("getitem", self, key)

    def __nonzero__(self) -> bool:
        """Python 2's name of `__bool__`."""
        return bool(self)


# -- what TensorFlow calls within, and programs use nevertheless -----------------------------------------

_GRADIENT = "_gradient_op_type"
"""The attribute that names the gradient function of one operation."""


REWIRED: Final = "rewired"
"""Key of a graph's list of operations whose inputs were changed: they may be older than what they take."""


def in_order(graph: Any) -> list[Any]:
    """The operations of a graph, each behind those that it needs, and otherwise as they were made.

    Raises:
        InvalidArgumentError: Some need one another.
    """
    ops: list[Any] = graph.get_operations()
    return topological_order(ops) if graph.extra(REWIRED, list) else ops


class Reference:
    """Stands for a tensor or variable as a key of dictionaries: two are equal if they stand for the same object."""

    __slots__ = ("_wrapped",)

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        """The object."""
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return self._wrapped is other._wrapped if isinstance(other, Reference) else NotImplemented

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"


class TensorInnerNames:
    """What a tensor has besides its interface."""

    __slots__ = ()

    _keras_mask: Any  # that a layer of Keras has given to its output

    def experimental_ref(self) -> Reference:
        """What stands for the tensor as a key of dictionaries. The tensor itself does so here, too."""
        return Reference(self)

    @property
    def _op(self: Any) -> Any:
        return self.op

    @property
    def _dtype(self: Any) -> dtypes.DType:
        return self.dtype

    @property
    def _id(self: Any) -> int:
        return id(self)

    def _as_tf_output(self: Any) -> Any:
        """What stands for it in TensorFlow's own library: here it does so itself."""
        return self

    def _shape_as_list(self: Any) -> list[int | None] | None:
        return None if self.shape.rank is None else list(self.shape.as_list())

    def _shape_tuple(self: Any) -> tuple[int | None, ...] | None:
        return None if self.shape.rank is None else tuple(self.shape.as_list())


class OperationInnerNames:
    """What an operation has besides its interface."""

    @property
    def traceback_with_start_lines(self: Any) -> tuple[tuple[str, int, str, str, int], ...]:
        """As `traceback`, with the line on which the function begins; 1 outside of functions."""
        return tuple((*frame, start_of(*frame[:3])) for frame in self.traceback)

    @property
    def _id(self: Any) -> int:
        return self.id

    @property
    def _node_def(self: Any) -> Any:
        return self.node_def

    @property
    def _output_types(self: Any) -> list[int]:
        return [tensor.dtype.as_datatype_enum for tensor in self.outputs]

    @property
    def _inputs(self: Any) -> list[Any]:
        return list(self.inputs)

    @property
    def _outputs(self: Any) -> list[Any]:
        return list(self.outputs)

    def _update_input(self: Any, index: int, tensor: Any) -> None:
        """Take another tensor as an input. The caller ensures that no cycle arises.

        Raises:
            TypeError: It has another dtype.
            ValueError: It is of another graph, or of a shape that does not fit that of the input before.
        """
        before = self.inputs[index]
        if tensor.dtype is not before.dtype:
            raise TypeError(
                f"input {index} of {self.name} is {before.dtype.name}, and {tensor.name} {tensor.dtype.name}"
            )
        if tensor.graph is not self.graph:
            raise ValueError(f"{tensor.name} is of another graph than {self.name}")
        if not before.shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"Cannot update edge, incompatible shapes: {tensor.shape} and {before.shape}. Input {index} of "
                f"{self.name} was {before.name}, and is to be {tensor.name}"
            )
        op = self  # mypy takes an assignment to `self.inputs` for its declaration
        op.inputs = (*op.inputs[:index], tensor, *op.inputs[index + 1 :])
        self.graph._consumers[before].remove(self)
        self.graph._consumers.setdefault(tensor, []).append(self)
        self.graph.extra(REWIRED, list).append(self)
        self.graph._changed()

    def _set_attr(self: Any, attr_name: str, attr_value: Any) -> None:
        """Set an attribute to what a `tf.AttrValue` holds.

        ``_gradient_op_type`` names the function registered by `tf.RegisterGradient` that is its gradient.
        """
        value = _held(attr_value)
        if attr_name == _GRADIENT:
            attr_name, value = "_gradient_overrides", {**self.attrs.get("_gradient_overrides", {}), self.type: value}
        self.attrs[attr_name] = value
        self.graph._changed()

    def _set_device(self: Any, device: str | DeviceSpec) -> None:
        """Ask for a device."""
        self._device = canonical_name(str(device or ""))
        self.graph._changed()

    def _set_device_from_string(self: Any, device_str: str) -> None:
        """Ask for a device."""
        self._set_device(device_str)

    def _add_control_input(self: Any, op: Any) -> None:
        """Make it run after `op` too."""
        self.add_control_inputs([op])

    def _add_control_inputs(self: Any, ops: Iterable[Any]) -> None:
        """Make it run after `ops` too."""
        self.add_control_inputs(ops)

    def _get_control_flow_context(self: Any) -> None:
        """Branches and loops are graphs of their own here: no operation is in a context."""

    def _set_control_flow_context(self: Any, ctx: Any) -> None:
        """Nothing: see `_get_control_flow_context`."""


def _held(message: Any) -> Any:
    """The value in a `tf.AttrValue`; anything else is a value itself."""
    kind = message.WhichOneof("value") if hasattr(message, "WhichOneof") else None
    if kind is None:
        return message.decode() if isinstance(message, bytes) else message
    value = getattr(message, kind)
    match kind:
        case "s":
            return value.decode()
        case "type":
            return dtypes.as_dtype(value)
        case "shape":
            return TensorShape(value)
        case "list":
            fields = [list(values) for _, values in value.ListFields()]
            return [each.decode() if isinstance(each, bytes) else each for each in (fields[0] if fields else [])]
    return value


class GraphInnerNames:
    """What a graph has besides its interface."""

    building_function = False
    """Whether it is the body of a function."""

    def switch_to_thread_local(self: Any) -> None:
        """Accepted for TensorFlow 1's sake: one thread at a time builds a graph, and scopes are the graph's."""

    @property
    def _c_graph(self: Any) -> Any:
        """What stands for it in TensorFlow's own library: here it does so itself."""
        return self

    @property
    def _container(self: Any) -> str:
        return str(self.scope_attrs.get("_container", ""))

    @property
    def _nodes_by_name(self: Any) -> Mapping[str, Any]:
        return self._ops

    @property
    def _ops_by_name(self: Any) -> Mapping[str, Any]:
        return self._ops

    def _apply_device_functions(self: Any, op: Any) -> None:
        """Give an operation, or what stands for one, the device that the current scopes ask for, if any."""
        if self._devices:
            device = self._device_for(op, getattr(op, "device", None) or "")
            if hasattr(op, "_set_device_from_string"):
                op._set_device_from_string(device)
            else:
                op._set_device(DeviceSpec.from_string(device))

    def _get_control_flow_context(self: Any) -> None:
        """Branches and loops are graphs of their own here: there are no contexts."""

    def _set_control_flow_context(self: Any, ctx: Any) -> None:
        """Nothing: see `_get_control_flow_context`."""


class VariableInnerNames:
    """What a variable has besides its interface."""

    def experimental_ref(self) -> Reference:
        """What stands for the variable as a key of dictionaries. The variable itself does so here, too."""
        return Reference(self)

    @property
    def _shared_name(self: Any) -> str:
        return str(self.op.name)

    @property
    def _trainable(self: Any) -> bool:
        return self.trainable

    @property
    def _initializer_op(self: Any) -> Any:
        return self.initializer

    @property
    def _variable(self: Any) -> Any:
        return self.op.outputs[0]

    @property
    def _handle(self: Any) -> Any:
        return self.handle

    @property
    def _graph_element(self: Any) -> Any:
        return self._as_graph_element()

    def _get_save_slice_info(self: Any) -> Any:
        return self._save_slice_info

    def _set_save_slice_info(self: Any, save_slice_info: Any) -> None:
        self._save_slice_info = save_slice_info
