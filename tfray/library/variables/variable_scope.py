"""`tf.variable_scope` and `tf.get_variable`: variables by name, shared on request.

A variable scope is a prefix for names, and a set of default arguments for `get_variable`. Scopes nest. A scope that was
left can be entered again, by name or by the object that ``with ... as scope`` gave. Entering a variable scope also
opens a name scope for operations, each time under a new name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype, float32
from tfray.framework.graph import DeviceLike, Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_store import (
    AUTO_REUSE,
    Reuse,
    VariableRequest,
    VariableStore,
    call_getter,
    getter_arguments,
)
from tfray.library.variables.variables import Constraint, VariableAggregation, VariableSynchronization

__all__ = [
    "AUTO_REUSE",
    "VariableScope",
    "create_partitioned_variables",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "no_regularizer",
    "variable_op_scope",
    "variable_scope",
]

_INHERITED = (
    "initializer", "regularizer", "caching_device", "partitioner", "custom_getter", "dtype", "use_resource",
    "constraint",
)  # fmt: skip


class VariableScope:
    """A prefix for the names of variables, and default arguments for `get_variable`.

    Attributes:
        name: The prefix, without a trailing slash.
        original_name_scope: The name scope that was opened with it first, with a trailing slash.
        reuse: True: variables must exist. False: they must not. `tf.AUTO_REUSE`: found or made.
        initializer: Default initializer.
        regularizer: Default regularizer.
        caching_device: Default device for cached reads.
        partitioner: Default partitioner.
        custom_getter: Function through which variables are got.
        dtype: Default dtype.
        use_resource: What getters are told; variables are the same either way.
        constraint: Default constraint.
    """

    def __init__(
        self,
        reuse: Reuse | None,
        name: str = "",
        initializer: InitializerLike | None = None,
        regularizer: RegularizerFunction | None = None,
        caching_device: DeviceLike | None = None,
        partitioner: Partitioner | None = None,
        custom_getter: Callable[..., Any] | None = None,
        name_scope: str = "",
        dtype: DTypeLike = float32,
        use_resource: bool | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.regularizer = regularizer
        self.caching_device = caching_device
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self.original_name_scope = name_scope
        self.dtype: DType = as_dtype(dtype)
        self.use_resource = use_resource
        self.constraint = constraint

    def reuse_variables(self) -> None:
        """From now on variables of this scope must exist."""
        self.reuse = True

    def set_initializer(self, initializer: InitializerLike | None) -> None:
        """Set the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: RegularizerFunction | None) -> None:
        """Set the default regularizer."""
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: DeviceLike | None) -> None:
        """Set the default device for cached reads."""
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Partitioner | None) -> None:
        """Set the default partitioner."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Callable[..., Any] | None) -> None:
        """Set the function through which variables are got."""
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: DTypeLike) -> None:
        """Set the default dtype."""
        self.dtype = as_dtype(dtype)

    def set_use_resource(self, use_resource: bool | None) -> None:
        """Set what getters are told; variables are the same either way."""
        self.use_resource = use_resource

    def get_collection(self, name: str) -> list[Any]:
        """The items of the collection `name` that belong to this scope."""
        return get_default_graph().get_collection(name, self.name + "/" if self.name else None)

    def global_variables(self) -> list[Any]:
        """Global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def trainable_variables(self) -> list[Any]:
        """Trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def local_variables(self) -> list[Any]:
        """Local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        name: str,
        shape: ShapeLike = None,
        dtype: DTypeLike | None = None,
        initializer: InitializerLike | None = None,
        regularizer: RegularizerFunction | None = None,
        reuse: Reuse | None = None,
        trainable: bool | None = None,
        collections: Iterable[str] | None = None,
        caching_device: DeviceLike | None = None,
        partitioner: Partitioner | None = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Callable[..., Any] | None = None,
        constraint: Constraint | None = None,
        synchronization: VariableSynchronization | None = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | None = VariableAggregation.NONE,
    ) -> Any:
        """As `tf.get_variable`, in this scope instead of the current one."""
        full_name = f"{self.name}/{name}" if self.name else name
        if not full_name:
            raise ValueError("a variable cannot have the name ''")
        initializer = self.initializer if initializer is None else initializer
        if dtype is not None and initializer is not None and not callable(initializer):
            _check_value_dtype(full_name, initializer, as_dtype(dtype))
        if trainable is None:  # custom getters ask it
            trainable = synchronization is not VariableSynchronization.ON_READ
        request = VariableRequest(
            name=full_name,
            shape=shape,
            dtype=self.dtype if dtype is None else as_dtype(dtype),
            initializer=initializer,
            regularizer=self.regularizer if regularizer is None else regularizer,
            reuse=self.reuse if reuse is None else reuse,
            trainable=trainable,
            collections=collections,
            caching_device=self.caching_device if caching_device is None else caching_device,
            partitioner=self.partitioner if partitioner is None else partitioner,
            validate_shape=validate_shape,
            use_resource=self.use_resource if use_resource is None else use_resource,
            constraint=self.constraint if constraint is None else constraint,
            synchronization=synchronization,
            aggregation=aggregation,
        )
        graph = get_default_graph()
        # The variable's name comes from the variable scope alone, not from the current name scope.
        with graph.name_scope(None):
            return _scopes(graph).store.get(request, custom_getter or self.custom_getter)

    def __repr__(self) -> str:
        return f"<tf.VariableScope {self.name!r} reuse={self.reuse!r}>"


ScopeLike = str | VariableScope
"""A variable scope, or the name of one."""


def _check_value_dtype(name: str, value: TensorLike, dtype: DType) -> None:
    found = getattr(value, "dtype", None)
    found = as_dtype(found) if found is not None else None
    if found is not None and found is not dtype:
        raise ValueError(
            f"variable {name!r}: initializer type {found.name} and explicit dtype {dtype.name} don't match"
        )
    if found is None:
        convert_to_tensor(value, dtype)


def no_regularizer(_: object) -> None:
    """A regularizer that adds no loss: it stands in for the scope's."""
    return None


# -- the current scope -----------------------------------------------------------------------------------


class _ScopesOfGraph(threading.local):
    """The variable scopes of one graph: one store, and in each thread its own current scope.

    Attributes:
        store: The variables.
        current: The innermost scope.
        opened: How often each scope name was opened, for unique default names. The counts below a scope are
            forgotten when it is left, so that building the same again gives the same names.
    """

    def __init__(self, store: VariableStore) -> None:
        self.store = store
        self.current = VariableScope(False)
        self.opened: dict[str, int] = {}

    def unique_name(self, name: str) -> str:
        """`name`, or ``name_1``, ... when a scope of that name was opened in the current one."""
        prefix = f"{self.current.name}/" if self.current.name else ""
        candidate, count = name, 0
        while self.opened.get(prefix + candidate, 0):
            count += 1
            candidate = f"{name}_{count}"
        return candidate

    def forget_below(self, name: str) -> None:
        """Forget which scopes were opened in the scope `name`."""
        for other in [other for other in self.opened if other.startswith(f"{name}/")]:
            del self.opened[other]


def _scopes(graph: Graph) -> _ScopesOfGraph:
    found: _ScopesOfGraph = graph.extra("variable_scopes", lambda: _ScopesOfGraph(VariableStore()))
    return found


def get_variable_scope() -> VariableScope:
    """The current variable scope; its settings may be changed."""
    return _scopes(get_default_graph()).current


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Iterable[TensorLike] | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    caching_device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    custom_getter: Callable[..., Any] | None = None,
    reuse: Reuse | None = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    constraint: Constraint | None = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Put variables that `get_variable` makes under a prefix.

    Args:
        name_or_scope: Name within the current scope, or a scope object to enter wherever it stands.
        default_name: Name, made unique, to use when `name_or_scope` is None. It rules out reuse.
        values: Accepted for TensorFlow 1's sake; the graph is the default one.
        initializer: Default initializer in this scope. This and the next arguments are inherited when None.
        regularizer: Default regularizer.
        caching_device: Default device for cached reads.
        partitioner: Default partitioner.
        custom_getter: Function ``f(getter, name, *args, **kwargs)`` that gets a variable, mostly by calling
            ``getter`` with changed arguments. It wraps that of the enclosing scope.
        reuse: True: variables must exist. `tf.AUTO_REUSE`: they are found or made. None or False: as the
            enclosing scope. Scopes within inherit it.
        dtype: Default dtype.
        use_resource: What getters are told; variables are the same either way.
        constraint: Default constraint.
        auxiliary_name_scope: Open a name scope alongside.

    Yields:
        The scope.

    Raises:
        ValueError: ``reuse=True`` without a name.
        TypeError: There is neither name nor default name, `name_or_scope` is neither text nor scope, or
            `auxiliary_name_scope` is no bool.
    """
    if name_or_scope is None and default_name is None:
        raise TypeError("variable_scope needs a name or a default_name")
    if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
        raise TypeError(f"variable_scope takes a name or a scope, not {name_or_scope!r}")
    if not isinstance(auxiliary_name_scope, bool):
        raise TypeError(f"auxiliary_name_scope must be True or False, not {auxiliary_name_scope!r}")
    if name_or_scope is None and reuse:
        raise ValueError("reuse needs the name of the scope: a default name is always a new one")
    settings = {
        "initializer": initializer,
        "regularizer": regularizer,
        "caching_device": caching_device,
        "partitioner": partitioner,
        "custom_getter": custom_getter,
        "dtype": None if dtype is None else as_dtype(dtype),
        "use_resource": use_resource,
        "constraint": constraint,
    }
    graph = get_default_graph()
    scopes = _scopes(graph)
    if name_or_scope is None:
        assert default_name is not None
        last, target = default_name, scopes.unique_name(default_name)
    elif isinstance(name_or_scope, str):
        last, target = name_or_scope, name_or_scope
    else:
        last, target = name_or_scope.name.rpartition("/")[2], name_or_scope  # type: ignore[assignment]
    with (
        _name_scope(graph, last, auxiliary_name_scope) as name_scope,
        _entered(scopes, target, name_scope, reuse or None, settings) as scope,
    ):
        yield scope


@contextmanager
def pure_variable_scope(
    name_or_scope: str | VariableScope,
    reuse: Reuse | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    caching_device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    custom_getter: Callable[..., Any] | None = None,
    old_name_scope: str | None = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    constraint: Constraint | None = None,
) -> Iterator[VariableScope]:
    """`variable_scope` without a name scope. `old_name_scope` is what its `original_name_scope` is to be."""
    settings = {
        "initializer": initializer,
        "regularizer": regularizer,
        "caching_device": caching_device,
        "partitioner": partitioner,
        "custom_getter": custom_getter,
        "dtype": None if dtype is None else as_dtype(dtype),
        "use_resource": use_resource,
        "constraint": constraint,
    }
    given = name_or_scope if isinstance(name_or_scope, str) else name_or_scope.original_name_scope
    with _entered(
        _scopes(get_default_graph()), name_or_scope, old_name_scope or given, reuse or None, settings
    ) as scope:
        yield scope


@contextmanager
def _name_scope(graph: Graph, name: str, auxiliary: bool) -> Iterator[str]:
    if not auxiliary or not name:
        current = graph.get_name_scope()
        yield f"{current}/" if current else ""
        return
    with graph.name_scope(name) as scope:
        yield scope


@contextmanager
def _entered(
    scopes: _ScopesOfGraph, target: str | VariableScope, name_scope: str, reuse: Reuse | None, settings: dict[str, Any]
) -> Iterator[VariableScope]:
    """Make the scope of that name within the current one, or a copy of a scope object, the current scope."""
    outer = scopes.current
    if isinstance(target, VariableScope):
        scope = _derived(target, target.name, target.original_name_scope, reuse or target.reuse, settings)
    else:
        name = f"{outer.name}/{target}" if outer.name else target
        scope = _derived(outer, name, name_scope, reuse or outer.reuse, settings)
    scopes.opened[scope.name] = scopes.opened.get(scope.name, 0) + 1
    before = dict(scopes.opened)
    scopes.current = scope
    try:
        yield scope
    finally:
        if isinstance(target, VariableScope):
            scopes.opened = before  # jumping into a scope leaves no trace in the names to come
        else:
            scopes.forget_below(scope.name)
        scopes.current = outer


def _derived(
    base: VariableScope, name: str, name_scope: str, reuse: Reuse | None, settings: dict[str, Any]
) -> VariableScope:
    """A scope with the settings of `base` where `settings` have none."""
    chosen = {key: getattr(base, key) if settings[key] is None else settings[key] for key in _INHERITED}
    if settings["custom_getter"] is not None and base.custom_getter is not None:
        chosen["custom_getter"] = _nested_getter(settings["custom_getter"], base.custom_getter)
    return VariableScope(reuse, name, name_scope=name_scope, **chosen)


def _nested_getter(inner: Callable[..., Any], outer: Callable[..., Any]) -> Callable[..., Any]:
    """A custom getter that calls `inner`, whose ``getter`` is `outer`."""

    def custom_getter(getter: Callable[..., Any], **arguments: Any) -> Any:
        def through_outer(name: str, *args: Any, **kwargs: Any) -> Any:
            return call_getter(outer, getter, getter_arguments(name, args, kwargs))

        return call_getter(inner, through_outer, arguments)

    return custom_getter


@contextmanager
def variable_op_scope(
    values: Iterable[TensorLike] | None,
    name_or_scope: ScopeLike | None,
    default_name: str | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    caching_device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    custom_getter: Callable[..., Any] | None = None,
    reuse: Reuse | None = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    constraint: Constraint | None = None,
) -> Iterator[VariableScope]:
    """The older form of `variable_scope`: `values` come first."""
    with variable_scope(**locals()) as scope:
        yield scope


# -- getting variables -----------------------------------------------------------------------------------


def get_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    trainable: bool | None = None,
    collections: Iterable[str] | None = None,
    caching_device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Constraint | None = None,
    synchronization: VariableSynchronization | None = VariableSynchronization.AUTO,
    aggregation: VariableAggregation | None = VariableAggregation.NONE,
) -> Any:
    """Make a variable, or find it by its name, as the current variable scope says.

    Args:
        name: Name within the scope.
        shape: Shape of a new variable.
        dtype: Dtype; that of the scope (float32) when None.
        initializer: Function of shape and dtype, a class of such, a function without arguments where `shape` is
            not given, or a value. When None the scope's, else `glorot_uniform_initializer`, and zeros for other
            than floating-point dtypes.
        regularizer: Function from the variable to a loss, which goes to ``GraphKeys.REGULARIZATION_LOSSES``.
        trainable: Whether optimizers change it by default (True when None).
        collections: Collections to add it to; ``GraphKeys.GLOBAL_VARIABLES`` when None.
        caching_device: Device of the cached read.
        partitioner: Cut the variable into parts (see `tf.fixed_size_partitioner`).
        validate_shape: Fix the shape.
        use_resource: Accepted for TensorFlow 1's sake.
        custom_getter: As for `variable_scope`, for this variable.
        constraint: Function from an updated value to the value to keep.
        synchronization: As for `tf.Variable`.
        aggregation: As for `tf.Variable`.

    Returns:
        A `tf.Variable`, or a `PartitionedVariable`.

    Raises:
        ValueError: The variable exists and may not be reused, or does not and must; or it has another shape or
            dtype; or its shape is not known.
    """
    return get_variable_scope().get_variable(**locals())


def get_local_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    trainable: bool = False,
    collections: Iterable[str] | None = None,
    caching_device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Constraint | None = None,
    synchronization: VariableSynchronization | None = VariableSynchronization.AUTO,
    aggregation: VariableAggregation | None = VariableAggregation.NONE,
) -> Any:
    """As `get_variable`, for a variable that no checkpoint saves and no optimizer changes.

    It goes to ``GraphKeys.LOCAL_VARIABLES`` besides `collections`. `trainable` is accepted: it is never trainable.
    """
    arguments = locals()
    arguments["trainable"] = False
    arguments["collections"] = [GraphKeys.LOCAL_VARIABLES, *(collections or ())]
    return get_variable(**arguments)


def create_partitioned_variables(
    shape: ShapeLike,
    slicing: Sequence[int],
    initializer: Any,
    dtype: DTypeLike = float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: bool | None = None,
) -> list[Any]:
    """The parts of a variable that is cut along one dimension, as a list; `tf.get_variable` makes it.

    Args:
        shape: Shape of the whole.
        slicing: Into how many parts to cut each dimension; one of the numbers may be more than 1.
        initializer: Function of the shape of a part, and so on, as for `tf.get_variable`; or a value of the whole.
        dtype: Dtype of the variable; a tensor as `initializer` decides itself.
        trainable: Whether optimizers change it by default.
        collections: Collections to add the parts to.
        name: Name of the whole; ``PartitionedVariable``, made unique, when None.
        reuse: Whether it is there already.

    Raises:
        ValueError: `slicing` does not fit the shape, or cuts more than one dimension.
    """
    sizes = [int(size or 0) for size in TensorShape(shape).as_list()]
    if len(slicing) != len(sizes):
        raise ValueError(f"slicing {list(slicing)} does not fit shape {sizes}: give a number for each dimension")
    if any(count < 1 or count > size for count, size in zip(slicing, sizes, strict=True)):
        raise ValueError(f"slicing {list(slicing)} does not fit shape {sizes}")
    if sum(count > 1 for count in slicing) > 1:
        raise ValueError(f"slicing {list(slicing)} cuts more than one dimension")
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope:
        own = scope.name.rpartition("/")[2]
    with variable_scope(get_variable_scope(), reuse=reuse):
        whole = get_variable(
            own,
            sizes if callable(initializer) else None,
            initializer.dtype.base_dtype if isinstance(initializer, Tensor) else dtype,
            initializer,
            trainable=trainable,
            collections=collections,
            partitioner=lambda **about: list(slicing),
        )
    return list(whole)
