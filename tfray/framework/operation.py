"""Operations and tensors: the nodes of the dataflow graph, and the values on its edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tfray.framework.default_stack import session_or_default
from tfray.framework.dtypes import DType
from tfray.framework.op_def import OpDef
from tfray.framework.signature import output_dtypes
from tfray.framework.tensor_shape import ShapeLike, TensorShape

if TYPE_CHECKING:
    from tfray.framework.graph import Graph

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
        return session_or_default(session, self.graph).run(self, feed_dict)

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

    def __deepcopy__(self, memo: Any) -> Tensor:
        # It is a place in its graph: copies of what refers to it, such as a layer, refer to the same.
        return self

    def __add__(self, other: Any) -> Tensor:
        return operate("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return operate("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return operate("sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return operate("sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return operate("mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return operate("mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return operate("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return operate("truediv", other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return operate("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return operate("floordiv", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return operate("mod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return operate("mod", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return operate("pow", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return operate("pow", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return operate("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return operate("matmul", other, self)

    def __lt__(self, other: Any) -> Tensor:
        return operate("lt", self, other)

    def __le__(self, other: Any) -> Tensor:
        return operate("le", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return operate("gt", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return operate("ge", self, other)

    def __and__(self, other: Any) -> Tensor:
        return operate("and", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return operate("and", other, self)

    def __or__(self, other: Any) -> Tensor:
        return operate("or", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return operate("or", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return operate("xor", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return operate("xor", other, self)

    def __invert__(self) -> Tensor:
        return operate("invert", self)

    def __neg__(self) -> Tensor:
        return operate("neg", self)

    def __abs__(self) -> Tensor:
        return operate("abs", self)

    def __getitem__(self, key: Any) -> Tensor:
        return operate("getitem", self, key)


def operate(name: str, *operands: Any) -> Any:
    """What the Python operator `name` gives for `operands`: the result of its registered function."""
    try:
        function = _OPERATORS[name]
    except KeyError:
        raise TypeError(f"no operation is registered for the operator {name!r}") from None
    return function(*operands)


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
        session_or_default(session, self.graph).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"
