"""Optimizers of workers that train variables of their own, and bring them together now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from tfray.framework.graph import Operation, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables.variable_scope import get_variable
from tfray.library.variables.variables import variable_creator_scope
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.ops.state import state_ops
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.session_run_hook import SessionRunHook

CENTER = "global_center_variable"
"""Where the names of the variables that all workers share begin."""


class CenterGetter:
    """A custom getter that makes each trainable variable a worker's own, and others beside it.

    The variable is in the collection of local variables.

    Args:
        worker_device: The device of what is the worker's own.
    """

    _others: ClassVar[Mapping[str, bool]] = {CENTER: False}
    """The prefixes of the names of variables beside each, and whether these are the worker's own as well."""

    _keeps_local: ClassVar[bool] = True
    """Whether local variables that are not trainable go to the worker's device too."""

    def __init__(self, worker_device: Any) -> None:
        self._worker_device = worker_device
        self._beside: dict[str, dict[Any, Any]] = {}
        """For each of the prefixes, by variable, the one beside it."""

    def __call__(
        self, getter: Callable[..., Any], name: str, trainable: bool, collections: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Get a variable; arguments as `tf.variable_scope` hands them to its ``custom_getter``."""
        device = get_default_graph().device
        if not trainable:
            local = self._keeps_local and GraphKeys.LOCAL_VARIABLES in (collections or ())
            with device(self._worker_device if local else ""):
                return getter(name, *args, trainable=trainable, collections=collections, **kwargs)
        own = [GraphKeys.LOCAL_VARIABLES]
        with device(self._worker_device):
            variable = getter(name, *args, trainable=True, collections=own, **kwargs)
        if kwargs.get("reuse") is True:
            return variable
        for prefix, is_own in self._others.items():
            with device(self._worker_device if is_own else ""):
                other = self._made_beside(getter, variable, f"{prefix}/{name}", is_own, *args, **kwargs)
            whole = kwargs.get("partitioner") is None
            pairs = [(variable, other)] if whole else zip(variable, other, strict=True)
            self._beside.setdefault(prefix, {}).update(pairs)
        return variable

    def _made_beside(
        self, getter: Callable[..., Any], variable: Any, name: str, is_own: bool, *args: Any, **kwargs: Any
    ) -> Any:
        """One of the variables beside one; from the getter, it begins with an initial value of its own."""
        collections = [GraphKeys.LOCAL_VARIABLES if is_own else GraphKeys.GLOBAL_VARIABLES]
        return getter(name, *args, trainable=False, collections=collections, **kwargs)

    def beside(self, variables: Iterable[Any], prefix: str = CENTER) -> list[Any]:
        """The variables beside some.

        Raises:
            ValueError: The getter did not make one of them.
        """
        known, listed = self._beside.get(prefix, {}), list(variables)
        for variable in listed:
            if variable not in known:
                raise ValueError(f"{variable.op.name!r} is not a variable that the custom getter has made")
        return [known[variable] for variable in listed]


class CenterOptimizer(Optimizer):
    """Base of the optimizers that train a worker's own variables.

    Args:
        opt: The optimizer that updates them.
        getter: The custom getter that made them.
        period: After how many steps they are brought together with those of others.
        use_locking: Accepted for TensorFlow 1's sake.
        name: Name of the optimizer.
    """

    def __init__(self, opt: Optimizer, getter: CenterGetter, period: int, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt, self._getter, self._period = opt, getter, period
        collections = [GraphKeys.LOCAL_VARIABLES]
        self._local_step = get_variable("local_step", initializer=0, trainable=False, collections=collections)

    def get_slot(self, var: Any, name: str) -> Any:
        """A slot of the optimizer that updates the variables."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Names of that optimizer's slots."""
        return self._opt.get_slot_names()

    def _every_period(self, updates: Iterable[Any], together: Callable[[], Operation]) -> Operation:
        """Count a step after updates; after each that ends a period, what `together` builds follows."""
        graph = get_default_graph()
        with graph.control_dependencies(list(updates)):
            count = state_ops.assign_add(self._local_step, 1, name="local_step_update")
        is_last = math_ops.equal(math_ops.mod(count, self._period), 0)
        with graph.control_dependencies([count.op]):
            return cond(is_last, together, no_op)


def assigned(variables: Iterable[Any], others: Iterable[Any]) -> Operation:
    """An operation that gives variables the values of others, each on the device of the one that changes."""
    updates, graph = [], get_default_graph()
    for variable, other in zip(variables, others, strict=True):
        with graph.device(variable.device or ""):
            updates.append(state_ops.assign(variable, other.read_value()).op)
    return group(*updates)


@contextmanager
def variables_made_local() -> Iterator[None]:
    """Context manager: variables that would be global are local, so that each worker initialises its own."""

    def local(next_creator: Callable[..., Any], collections: Any = None, **kwargs: Any) -> Any:
        names = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
        own = [GraphKeys.LOCAL_VARIABLES if each == GraphKeys.GLOBAL_VARIABLES else each for each in names]
        return next_creator(collections=own, **kwargs)

    with variable_creator_scope(local):
        yield


class CenterHook(SessionRunHook):
    """Runs an operation when a session has been made: a worker's own variables begin as those that all share.

    Args:
        build: Builds the operation, before the graph is finalized.
    """

    def __init__(self, build: Callable[[], Operation]) -> None:
        self._build = build

    def begin(self) -> None:
        """Build the operation."""
        self._begin = self._build()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Run it."""
        session.run(self._begin)
