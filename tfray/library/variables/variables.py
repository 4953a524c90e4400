"""`tf.Variable`, and the operations that initialise, list and check variables."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from tfray.formats.meta_graph_proto import SaveSliceInfoDef, VariableDef
from tfray.framework.convert import (
    constant_tensor,
    convert_to_tensor,
    make_array,
    register_tensor_conversion_function,
)
from tfray.framework.dtypes import DType, DTypeLike, as_dtype, string
from tfray.framework.graph import DeviceLike, Graph, Operation, Tensor, get_default_graph, get_default_session
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.region import outermost, shared_reads
from tfray.framework.tensor_operators import VariableInnerNames
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.traversal import reachable_backward, topological_order
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.dtype_policy import dtype_of_reads
from tfray.ops.arrays import array_ops, slice_ops
from tfray.ops.arrays.gather_ops import gather_nd
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops
from tfray.ops.state import sparse_state_ops, state_ops

Constraint = Callable[[Tensor], Tensor]
_Member = TypeVar("_Member", bound=enum.Enum)


class VariableSynchronization(enum.Enum):
    """When copies of a variable are made equal. tfray has one copy of each variable, so that it makes no difference."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How updates of copies of a variable are put together. tfray has one copy, so that it makes no difference."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3  # noqa: PIE796 -- its older name


def _member(kind: type[_Member], value: _Member | None, default: _Member) -> _Member:
    try:
        return default if value is None else kind(value)
    except ValueError:
        known = ", ".join(each.name for each in kind)
        raise ValueError(f"{value!r} is no tf.{kind.__name__}; there are {known}") from None


def _delegated(operator: str) -> Callable[..., Any]:
    def method(self: Any, *operands: Any) -> Any:
        return getattr(self.value(), operator)(*operands)

    method.__name__ = operator
    return method


@contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Context manager: `variable_creator` makes the variables of the current graph within it.

    Args:
        variable_creator: ``creator(next_creator, **kwargs)``, where `kwargs` are the arguments of `tf.Variable` by
            name. It returns a variable, which it mostly gets from ``next_creator(**kwargs)``, with other arguments
            perhaps: that of the scope around this one, and in the end `tf.Variable`.
    """
    creators: list[Callable[..., Any]] = get_default_graph().root.extra("variable_creators", list)
    creators.append(variable_creator)
    try:
        yield
    finally:
        creators.remove(variable_creator)


class _VariableClass(type):
    """The class of `Variable`: calls of it go through the creators of `variable_creator_scope`."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """The arguments of the class, which are those of `__init__`, not of `__call__` below."""
        own = inspect.signature(cls.__init__)  # type: ignore[misc]
        return own.replace(parameters=list(own.parameters.values())[1:])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        creators = get_default_graph().root.extra("variable_creators", list)
        if not creators or cls is not Variable:
            return super().__call__(*args, **kwargs)
        given = inspect.signature(Variable.__init__).bind(None, *args, **kwargs)
        given.apply_defaults()
        if given.arguments["variable_def"] is not None:
            return super().__call__(*args, **kwargs)
        create: Callable[..., Any] = super().__call__
        for creator in creators:
            create = functools.partial(creator, create)
        return create(**{name: value for name, value in given.arguments.items() if name != "self"})


class SaveSliceInfo(NamedTuple):
    """Describes the part of a partitioned variable that one variable holds.

    Attributes:
        full_name: Name of the whole.
        full_shape: Shape of the whole.
        var_offset: Where the part begins in each dimension.
        var_shape: Shape of the part.
    """

    full_name: str
    full_shape: list[int]
    var_offset: list[int]
    var_shape: list[int]

    @property
    def spec(self) -> str:
        """Shape, place and size in one text, as checkpoints name parts."""
        sizes = " ".join(map(str, self.full_shape))
        extents = ":".join(f"{offset},{size}" for offset, size in zip(self.var_offset, self.var_shape, strict=True))
        return f"{sizes} {extents}"


class Variable(VariableInnerNames, metaclass=_VariableClass):
    """State that lives between steps: a tensor that operations update in place.

    A variable can stand wherever a tensor can: its value is then read. It must be initialised before it is
    read, by running its `initializer` or `tf.global_variables_initializer()`, or from a checkpoint.

    Args:
        initial_value: A tensor, a value that converts to one, or a function without arguments that returns one.
        trainable: Add the variable to ``GraphKeys.TRAINABLE_VARIABLES`` (default True).
        collections: Collections to add it to; ``[GraphKeys.GLOBAL_VARIABLES]`` when None.
        validate_shape: Fix the shape to that of the initial value. Otherwise any value may be assigned.
        caching_device: Device of the cached read, when it is not that of the variable.
        name: Name, made unique; ``Variable`` when None.
        variable_def: Instead of making a variable, find the one so described in the current graph.
        dtype: Dtype; by default that of the initial value.
        expected_shape: Accepted for TensorFlow 1's sake; the shape is that of the initial value.
        import_scope: Name scope under which the graph that holds `variable_def` was loaded.
        constraint: Function from the value after an optimizer's update to the value to keep.
        use_resource: Every variable has a handle. When True, the shape of the initial value need not be known: the
            variable has what is known of it, and values of other shapes may be assigned.
        synchronization: When copies are made equal, a `tf.VariableSynchronization`: there is one copy. With
            ``ON_READ`` the variable is not trainable unless `trainable` says so.
        aggregation: How updates of copies are put together, a `tf.VariableAggregation`: there is one copy.
        shape: Static shape, with which that of the initial value has to agree; the latter's when None.

    Raises:
        ValueError: There is no initial value, or its shape is unknown although it is to be validated and
            `use_resource` is not True; or
            `synchronization` or `aggregation` is not one of those.
    """

    SaveSliceInfo = SaveSliceInfo

    distribute_strategy: Any = None
    """The strategy of `tf.distribute` in whose scope it was made; its replicas share it."""

    # NumPy must leave ``array + variable`` to Variable.__radd__.
    __array_priority__ = 100

    _is_cast_when_read = False  # a layer of mixed precision has it so; see `reads_cast_to`

    def __init__(
        self,
        initial_value: TensorLike | Callable[[], TensorLike] | None = None,
        trainable: bool | None = None,
        collections: Iterable[str] | None = None,
        validate_shape: bool = True,
        caching_device: DeviceLike | None = None,
        name: str | None = None,
        variable_def: VariableDef | None = None,
        dtype: DTypeLike | None = None,
        expected_shape: ShapeLike = None,
        import_scope: str | None = None,
        constraint: Constraint | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization | None = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | None = VariableAggregation.NONE,
        shape: ShapeLike = None,
    ) -> None:
        self.synchronization = _member(VariableSynchronization, synchronization, VariableSynchronization.AUTO)
        self.aggregation = _member(VariableAggregation, aggregation, VariableAggregation.NONE)
        if variable_def is not None:
            self._find(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value is a required positional argument: a tensor, a value, or a function of one")
        if constraint is not None and not callable(constraint):
            raise ValueError(f"constraint must be a function, not {constraint!r}")
        on_read = self.synchronization is VariableSynchronization.ON_READ
        self.trainable = not on_read if trainable is None else bool(trainable)
        self.constraint = constraint
        self._save_slice_info: Any = None
        self._row_index: Tensor | None = None  # of a `tf.train.DynamicEmbedding`
        collections = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
            collections.append(GraphKeys.TRAINABLE_VARIABLES)
        wanted = None if dtype is None else as_dtype(dtype)
        # A variable made inside a branch or a loop belongs to the whole program: it is not made anew in each turn.
        with outermost() as graph, graph.control_dependencies(None):
            named = name or "Variable"
            self._create(graph, initial_value, wanted, named, validate_shape, caching_device, shape, use_resource)
        graph.add_to_collections(collections, self)

    def _create(
        self,
        graph: Graph,
        initial_value: TensorLike | Callable[[], TensorLike],
        dtype: DType | None,
        name: str,
        validate_shape: bool,
        caching_device: DeviceLike | None,
        shape: ShapeLike,
        use_resource: bool | None,
    ) -> None:
        with graph.name_scope(name) as scope:
            if callable(initial_value):
                # The initial value is computed on the variable's own device, so that it need not be moved there.
                with graph.attr_scope({"_class": [scope[:-1]]}), graph.name_scope("Initializer"), graph.device(None):
                    value = convert_to_tensor(initial_value(), dtype, "initial_value")
            else:
                value = convert_to_tensor(initial_value, dtype, "initial_value")
            if value.graph is not graph:
                raise ValueError(
                    f"variable {scope[:-1]!r}: its initial value {value!r} was computed within a branch or a loop, and "
                    "exists only there; pass a function without arguments that computes it"
                )
            if validate_shape and use_resource and shape is None and not value.shape.is_fully_defined():
                shape = value.shape
            if validate_shape and not use_resource and not value.shape.is_fully_defined():
                raise ValueError(
                    f"variable {scope[:-1]!r}: initial_value must have a shape specified, not {value.shape}; give it "
                    "a full static shape, or use validate_shape=False or use_resource=True"
                )
            self._shape = value.shape if validate_shape else TensorShape(None)
            if shape is not None:
                given = TensorShape(shape)
                if not given.is_compatible_with(value.shape):
                    raise ValueError(f"variable {scope[:-1]!r}: the initial value has shape {value.shape}, not {given}")
                self._shape = given
                validate_shape = False  # of later values only `given` is asked
            self.handle = state_ops.variable_handle(self._shape, value.dtype, scope)
            _by_handle(graph)[self.handle] = self
            with graph.colocate_with(self.handle, ignore_existing=True):
                self._initial_value = _guard_initial_value(value)
            self.initializer = state_ops.assign(self, self._initial_value, validate_shape, name="Assign").op
            self._snapshot = state_ops.read_variable(self, "cached" if caching_device else "read")
            if caching_device:
                with graph.device(caching_device):
                    self._snapshot = array_ops.identity(self._snapshot, "read")
            else:
                shared_reads(graph)[self._snapshot] = self.handle

    def _find(self, variable_def: VariableDef, import_scope: str | None) -> None:
        graph = get_default_graph()
        prefix = import_scope.rstrip("/") + "/" if import_scope else ""
        self.handle = graph.get_operation_by_name(prefix + variable_def.variable_name.partition(":")[0]).outputs[0]
        self.initializer = graph.get_operation_by_name(prefix + variable_def.initializer_name)
        self._snapshot = graph.get_tensor_by_name(prefix + variable_def.snapshot_name)
        self._initial_value = graph.get_tensor_by_name(prefix + variable_def.initial_value_name)
        if self._snapshot.op.type == "ReadVariableOp":
            shared_reads(graph)[self._snapshot] = self.handle
        self._shape = self.handle.op.attrs["shape"]
        self.trainable = variable_def.trainable
        self.constraint = None
        self._save_slice_info = None
        self._row_index = None

    # -- what it is ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the variable's tensor: ``weights:0``."""
        return self.handle.name

    @property
    def op(self) -> Operation:
        """The operation whose output is the handle."""
        return self.handle.op

    @property
    def graph(self) -> Graph:
        """The graph that holds it."""
        return self.handle.graph

    @property
    def device(self) -> str:
        """The device asked for, ``""`` when left to the placer."""
        return self.handle.device

    @property
    def dtype(self) -> DType:
        """Dtype of the value, as it is read here."""
        return (dtype_of_reads() if self._is_cast_when_read else None) or self.true_dtype

    @property
    def true_dtype(self) -> DType:
        """Dtype of the value as it is kept. A layer of mixed precision reads its variables as another one."""
        dtype: DType = self.handle.op.attrs["dtype"]
        return dtype

    @property
    def shape(self) -> TensorShape:
        """Static shape of the value."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Static shape of the value (TensorFlow 1's spelling of `shape`)."""
        return self._shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Merge what the caller knows into the static shape. Raises `ValueError` on contradiction."""
        self._shape = self._shape.merge_with(shape)
        self._snapshot.set_shape(shape)

    @property
    def initial_value(self) -> Tensor:
        """The tensor that `initializer` assigns."""
        return self._initial_value

    def to_proto(self, export_scope: str | None = None) -> VariableDef:
        """The names by which this variable is found in its graph once that is saved and loaded."""
        prefix = export_scope.rstrip("/") + "/" if export_scope else ""
        made = VariableDef(
            variable_name=self.handle.name.removeprefix(prefix),
            initializer_name=self.initializer.name.removeprefix(prefix),
            snapshot_name=self._snapshot.name.removeprefix(prefix),
            initial_value_name=self._initial_value.name.removeprefix(prefix),
            trainable=self.trainable,
            is_resource=True,
        )
        if self._save_slice_info is not None:
            made.save_slice_info_def.CopyFrom(SaveSliceInfoDef(**self._save_slice_info._asdict()))
        return made

    @staticmethod
    def from_proto(variable_def: VariableDef, import_scope: str | None = None) -> Variable:
        """The variable of the current graph that `variable_def` describes."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    # -- reading ---------------------------------------------------------------------------------

    def value(self) -> Tensor:
        """The value, as one cached read that all uses in a step share.

        Under `tf.control_dependencies` it is a read of its own, which sees the updates that it depends on. A loop that
        updates the variable reads it in every turn, and a function of a dataset for each element.
        """
        graph = get_default_graph()
        is_read_anew = (graph.has_control_scope and not graph.finalized) or graph.runs_often
        return self.read_value() if is_read_anew else self._as_read(self._snapshot)

    def read_value(self) -> Tensor:
        """A new read, which happens after the control dependencies of the current scope."""
        return self._as_read(state_ops.read_variable(self))

    def _as_read(self, value: Tensor) -> Tensor:
        return array_ops.cast(value, self.dtype) if self._is_cast_when_read else value

    def initialized_value(self) -> Tensor:
        """The value, or the initial value while the variable is not initialised.

        For an initial value that is computed from another variable.
        """
        return state_ops.read_or_default(self, self._initial_value)

    def eval(self, session: Any = None) -> Any:
        """The value in `session`, or in the default session, as an array."""
        return self._snapshot.eval(session=session)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Elements or slices of the value; see `tf.gather_nd`."""
        return gather_nd(self, indices, name)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Rows of the value: no others are read, and their gradient has no others."""
        return self._as_read(sparse_state_ops.resource_gather(self, indices, name))

    def _as_graph_element(self) -> Tensor:
        return self._snapshot

    def _ref(self) -> Tensor:
        return self._snapshot  # where TensorFlow returns what is read and updated: updates take it as well

    # -- writing ---------------------------------------------------------------------------------

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Set the value.

        Args:
            value: The new value.
            use_locking: Accepted for TensorFlow 1's sake.
            name: Name of the operation.
            read_value: Return the new value; otherwise the operation.
        """
        return _value_or_op(state_ops.assign(self, value, name=name), read_value)

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add `delta` to the value; arguments and result as for `assign`."""
        return _value_or_op(state_ops.assign_add(self, delta, name=name), read_value)

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract `delta` from the value; arguments and result as for `assign`."""
        return _value_or_op(state_ops.assign_sub(self, delta, name=name), read_value)

    def count_up_to(self, limit: int) -> Tensor:
        """Add 1 to an integer scalar until it reaches `limit`; see `tf.count_up_to`."""
        return state_ops.count_up_to(self, limit)

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Set the rows that `sparse_delta` has. Returns the new value."""
        return sparse_state_ops.scatter_update(self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Add `sparse_delta`. Returns the new value."""
        return sparse_state_ops.scatter_add(self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Subtract `sparse_delta`. Returns the new value."""
        return sparse_state_ops.scatter_sub(self, sparse_delta.indices, sparse_delta.values, name=name)

    def batch_scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """Set rows within each of the leading dimensions; see `tf.batch_scatter_update`. Returns the new value."""
        return sparse_state_ops.batch_scatter_update(self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Set the rows that `sparse_delta` has to the larger of both, by element. Returns the new value."""
        return sparse_state_ops.scatter_max(self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Set the rows that `sparse_delta` has to the smaller of both, by element. Returns the new value."""
        return sparse_state_ops.scatter_min(self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Multiply the rows that `sparse_delta` has. Returns the new value."""
        return sparse_state_ops.scatter_mul(self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Divide the rows that `sparse_delta` has. Returns the new value."""
        return sparse_state_ops.scatter_div(self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
        """Set elements or slices by their indices; see `tf.scatter_nd_update`."""
        return sparse_state_ops.scatter_nd_update(self, indices, updates, name=name)

    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
        """Add to elements or slices by their indices."""
        return sparse_state_ops.scatter_nd_add(self, indices, updates, name=name)

    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
        """Subtract from elements or slices by their indices."""
        return sparse_state_ops.scatter_nd_sub(self, indices, updates, name=name)

    def load(self, value: TensorLike, session: Any = None) -> None:
        """Set the value in a session at once, without adding operations to the graph."""
        session = session or get_default_session()
        if session is None:
            raise ValueError("No default session is registered: use `with tf.Session():` or pass session=")
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    # -- operators -------------------------------------------------------------------------------

    __add__, __radd__ = _delegated("__add__"), _delegated("__radd__")
    __sub__, __rsub__ = _delegated("__sub__"), _delegated("__rsub__")
    __mul__, __rmul__ = _delegated("__mul__"), _delegated("__rmul__")
    __truediv__, __rtruediv__ = _delegated("__truediv__"), _delegated("__rtruediv__")
    __div__, __rdiv__ = _delegated("__div__"), _delegated("__rdiv__")
    __floordiv__, __rfloordiv__ = _delegated("__floordiv__"), _delegated("__rfloordiv__")
    __mod__, __rmod__ = _delegated("__mod__"), _delegated("__rmod__")
    __pow__, __rpow__ = _delegated("__pow__"), _delegated("__rpow__")
    __matmul__, __rmatmul__ = _delegated("__matmul__"), _delegated("__rmatmul__")
    __and__, __rand__ = _delegated("__and__"), _delegated("__rand__")
    __or__, __ror__ = _delegated("__or__"), _delegated("__ror__")
    __xor__, __rxor__ = _delegated("__xor__"), _delegated("__rxor__")
    __lt__, __le__ = _delegated("__lt__"), _delegated("__le__")
    __gt__, __ge__ = _delegated("__gt__"), _delegated("__ge__")
    __neg__, __abs__, __invert__ = _delegated("__neg__"), _delegated("__abs__"), _delegated("__invert__")

    def __getitem__(self, key: Any) -> Tensor:
        return slice_ops.getitem(self.value(), key, self)

    def _assign_part(self, key: str, bounds: Sequence[Tensor], value: TensorLike, name: str | None = None) -> Tensor:
        """Set the part that the index `key` takes; see `sparse_state_ops.assign_part`."""
        return sparse_state_ops.assign_part(self, key, bounds, value, name)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"'Variable' object is not iterable: {self!r}; use tf.unstack(variable)")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        # Identity, as in TensorFlow 1, so that variables serve as dictionary keys.
        return self is other

    def __deepcopy__(self, memo: Any) -> Variable:
        return self

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"


def _value_or_op(value: Tensor, read_value: bool) -> Tensor | Operation:
    return value if read_value else value.op


def _variable_to_tensor(
    value: Variable, dtype: DTypeLike | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    return value.value()


register_tensor_conversion_function(Variable, _variable_to_tensor)


# -- initial values that read other variables ------------------------------------------------------------


def _by_handle(graph: Graph) -> dict[Tensor, Variable]:
    """The variables of a graph by their handles."""
    found: dict[Tensor, Variable] = graph.extra("variables_by_handle", dict)
    return found


def variable_of(handle: Tensor) -> Variable | None:
    """The variable of a handle; None for a handle without one, as in an imported graph, and for other tensors."""
    return _by_handle(handle.graph).get(handle)


def _guard_initial_value(value: Tensor) -> Tensor:
    """`value`, with each read of another variable replaced by its initial value while that one is not initialised.

    All initializers run in one step, in any order: a plain read of another variable could come before its initializer.
    """
    ops = reachable_backward([value.op], _sources)
    if not any(op.type == "ReadVariableOp" for op in ops):
        return value
    known = _by_handle(value.graph)
    guarded: dict[Tensor, Tensor] = {}
    for op in topological_order(ops):
        if op.type == "ReadVariableOp" and op.inputs[0] in known:
            guarded[op.outputs[0]] = known[op.inputs[0]].initialized_value()
        elif any(tensor in guarded for tensor in op.inputs):
            inputs = [guarded.get(tensor, tensor) for tensor in op.inputs]
            copy = value.graph.add_operation(op.type, inputs, op.attrs, op.name.rpartition("/")[2])
            guarded.update(zip(op.outputs, copy.outputs, strict=True))
    return guarded.get(value, value)


def _sources(op: Operation) -> list[Operation]:
    return [tensor.op for tensor in op.inputs]


# -- lists of variables ----------------------------------------------------------------------------------


def global_variables(scope: str | None = None) -> list[Any]:
    """Variables that all tasks share: what a checkpoint saves by default.

    Args:
        scope: Only variables whose name this regular expression matches at its start.
    """
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """The older name of `global_variables`."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """Variables of one process that no checkpoint saves; `scope` as for `global_variables`."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """Variables that inference needs; `scope` as for `global_variables`."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """Variables that optimizers change by default; `scope` as for `global_variables`."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """Variables of which a moving average is kept; `scope` as for `global_variables`."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


# -- initialisation --------------------------------------------------------------------------------------


def variables_initializer(var_list: Sequence[Any] | None, name: str = "init") -> Operation:
    """An operation that initialises the variables given.

    Args:
        var_list: The variables.
        name: Name of the operation.
    """
    return group(*(variable.initializer for variable in var_list or ()), name=name)


def global_variables_initializer() -> Operation:
    """An operation that initialises every variable of `global_variables`."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """An operation that initialises every variable of `local_variables`."""
    return variables_initializer(local_variables())


def initialize_variables(var_list: Sequence[Any] | None, name: str = "init") -> Operation:
    """The older name of `variables_initializer`."""
    return variables_initializer(var_list, name)


def initialize_all_variables() -> Operation:
    """The older name of `global_variables_initializer`."""
    return global_variables_initializer()


def initialize_local_variables() -> Operation:
    """The older name of `local_variables_initializer`."""
    return local_variables_initializer()


def report_uninitialized_variables(
    var_list: Sequence[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables that have no value yet: a string vector, empty when all have one.

    Args:
        var_list: The variables to look at; all global and local ones when None.
        name: Name scope of the operations.
    """
    variables = list(global_variables() + local_variables() if var_list is None else var_list)
    with get_default_graph().name_scope(name):
        if not variables:
            return constant_tensor(make_array([], string))
        ready = array_ops.stack([state_ops.is_variable_initialized(variable) for variable in variables])
        names = constant_tensor(make_array([variable.op.name for variable in variables], string))
        return array_ops.boolean_mask(names, math_ops.logical_not(ready))


def assert_variables_initialized(var_list: Sequence[Any] | None = None) -> Tensor | None:
    """The ranks of variables, by an operation that fails unless all have a value; None when there are none.

    Args:
        var_list: The variables; all global and local ones when None.
    """
    variables = list(global_variables() + local_variables() if var_list is None else var_list)
    if not variables:
        return None
    graph = get_default_graph()
    with graph.name_scope("assert_variables_initialized"):
        values = [variable.value() for variable in variables]
        with graph.control_dependencies(values):
            return array_ops.identity([value.shape.rank or 0 for value in values])
