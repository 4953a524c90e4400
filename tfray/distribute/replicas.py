"""Building a function once for each replica: one thread each, of which one runs at a time.

The replicas of a strategy are parts of one graph. What a function builds for a replica stands under the replica's
device and name scope. Where the replicas have to agree (`ReplicaContext.merge_call`), each thread pauses until all have
come as far; then the thread that asked for the replicas builds what is across them, and they go on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any

from tfray.distribute.values import regroup, select_replica
from tfray.framework import nest
from tfray.framework.default_stack import default_session_scope, get_default_session
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.scopes import innermost_mode, replica_mode, scopes_of, take_up
from tfray.library.variables.variable_scope import get_variable_scope, variable_scope
from tfray.library.variables.variables import VariableAggregation, variable_creator_scope
from tfray.ops.arrays.shape_ops import identity
from tfray.ops.arrays.source_ops import constant


class ReplicasDiffer(RuntimeError):
    """The replicas of a strategy call `ReplicaContext.merge_call` a different number of times."""


class ReplicaContext:
    """Tells code that builds one replica which one, and lets it agree with the others; see `get_replica_context`.

    Args:
        strategy: The strategy.
        replica_id_in_sync_group: Number of the replica.
    """

    def __init__(self, strategy: Any, replica_id_in_sync_group: int) -> None:
        self._strategy = strategy
        self.number = int(replica_id_in_sync_group)
        self._thread: _ReplicaThread | None = None

    @property
    def strategy(self) -> Any:
        """The `tf.distribute.Strategy` that runs the replica."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        found: int = self._strategy.num_replicas_in_sync
        return found

    @property
    def replica_id_in_sync_group(self) -> Tensor:
        """Number of the replica, an int32 constant of the default graph."""
        return constant(self.number, name="replica_id_in_sync_group")

    @property
    def devices(self) -> tuple[str, ...]:
        """The replica's device, in a tuple."""
        return (self._strategy.extended.worker_devices[self.number],)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Build, across the replicas, what a function builds once all replicas have come to this call.

        Args:
            merge_fn: ``merge_fn(strategy, *args, **kwargs)``. It sees `PerReplica` values where the replicas passed
                different ones.
            args: What this replica passes, in any nested structure.
            kwargs: Likewise, by name.

        Returns:
            What `merge_fn` returns; of `PerReplica` values this replica's.

        Raises:
            RuntimeError: It is called within a branch, loop or function that the replica builds, outside of the
                replica, or not by every replica.
        """
        mode = innermost_mode()
        own = self._strategy.is_default if mode is None else mode.replica is self
        if not own:
            raise RuntimeError("merge_call is for code that builds a replica: it was called outside of that replica")
        if self._thread is not None:
            return self._thread.merge(merge_fn, tuple(args), dict(kwargs or {}))
        with replica_mode(self._strategy, None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or mean of a value over the replicas, for each replica. Gradients flow through it.

        Args:
            reduce_op: `tf.distribute.ReduceOp`, or its name.
            value: This replica's tensor, or nested structure of tensors.

        Returns:
            A structure like `value`, the same in each replica.
        """

        def reduced(strategy: Any, flat: list[Any]) -> list[Any]:
            return [strategy.extended.reduce_to(reduce_op, each, destinations=None) for each in flat]

        found = self.merge_call(reduced, (nest.flatten(value),))
        return nest.pack_sequence_as(value, [identity(each) for each in found])

    def update_variable(self, variable: Any, update: Callable[[Any], Any], value: Any) -> Any:
        """Update a variable once for all replicas, by its ``aggregation``; see `replica_mode.merging`.

        Args:
            variable: The variable.
            update: ``update(value)`` makes the operation.
            value: This replica's value.

        Raises:
            ValueError: The variable has no aggregation: nobody knows which replica's value counts.
        """
        aggregation = variable.aggregation
        if aggregation is VariableAggregation.NONE:
            raise ValueError(
                f"variable {variable.name!r} is updated in each of {self.num_replicas_in_sync} replicas, and its "
                "aggregation does not say how their values become one: You must specify an aggregation method to "
                "update it in a replica context, aggregation=tf.VariableAggregation.SUM, MEAN or ONLY_FIRST_REPLICA"
            )

        def merged(strategy: Any, value: Any) -> Any:
            if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
                return update(select_replica(0, value))
            return update(strategy.extended.reduce_to(aggregation.name, value, destinations=variable))

        return self.merge_call(merged, (value,))

    def __repr__(self) -> str:
        return f"<tf.distribute.ReplicaContext {self.number} of {self.num_replicas_in_sync}>"


def call_for_each_replica(
    strategy: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What a function builds and returns for each replica, regrouped; see `Strategy.experimental_run_v2`."""
    devices: Sequence[str] = strategy.extended.worker_devices
    contexts = [ReplicaContext(strategy, number) for number in range(strategy.num_replicas_in_sync)]
    graph = get_default_graph()
    if len(contexts) == 1:
        with graph.device(devices[0]), replica_mode(strategy, contexts[0]):
            return function(*select_replica(0, tuple(args)), **select_replica(0, dict(kwargs)))
    threads = [
        _ReplicaThread(context, device, graph, function, args, kwargs)
        for context, device in zip(contexts, devices, strict=True)
    ]
    with variable_creator_scope(_shared_variables()):
        try:
            for thread in threads:
                thread.resume()
            while not all(thread.done for thread in threads):
                _merge(strategy, graph, threads)
                for thread in threads:
                    thread.resume()
        finally:
            for thread in threads:
                thread.stop()
    return regroup([thread.result for thread in threads])


def _merge(strategy: Any, graph: Graph, threads: list[_ReplicaThread]) -> None:
    """Build what is across the replicas, all of which have paused."""
    counts = [thread.merges for thread in threads]
    if any(thread.done for thread in threads):
        raise ReplicasDiffer(
            "Some replicas made a different number of replica_context().merge_call() calls: each replica has to make "
            "the same calls of merge_call, and updates of variables and optimizers are such calls; the replicas made "
            f"{', '.join(map(str, counts))}"
        )
    first = threads[0]
    assert first.asked is not None
    controls = [op for thread in threads for scope in thread.scopes["_control"] for op in scope.ops]
    args = regroup([thread.asked[1] for thread in threads if thread.asked])
    kwargs = regroup([thread.asked[2] for thread in threads if thread.asked])
    with (
        graph.name_scope(first.name_scope),
        graph.control_dependencies(list(dict.fromkeys(controls))),
        variable_scope(first.variable_scope, auxiliary_name_scope=False),
    ):
        answer = first.asked[0](strategy, *args, **kwargs)
    for number, thread in enumerate(threads):
        thread.answer = select_replica(number, answer)


class _Stopped(BaseException):
    """Ends the thread of a replica whose siblings have failed."""


class _ReplicaThread:
    """Builds one replica, when it is told to, and pauses where the replicas have to agree.

    Attributes:
        done: The function has returned.
        result: What it returned.
        asked: Function and arguments of the `merge_call` at which it pauses.
        answer: What that call is to return.
        merges: How many such calls it has made.
        scopes: The scopes of the graph where it pauses; `name_scope` and `variable_scope` likewise.
    """

    def __init__(
        self,
        context: ReplicaContext,
        device: str,
        graph: Graph,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        context._thread = self
        self.done, self.result, self.answer, self.merges = False, None, None, 0
        self.asked: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None = None
        self.scopes = scopes_of(graph)
        self.variable_scope = get_variable_scope()
        self.name_scope = f"{graph.get_name_scope()}/" if graph.get_name_scope() else ""
        if context.number:
            self.name_scope += context.strategy.extended.replica_scope.format(context.number) + "/"
        self._context, self._device, self._graph = context, device, graph
        self._session = get_default_session()
        self._call = function, select_replica(context.number, tuple(args)), select_replica(context.number, dict(kwargs))
        self._failure: BaseException | None = None
        self._may_run, self._has_paused = Event(), Event()
        self._stopping = False
        self._thread: Thread | None = None

    # -- in the thread that asked for the replicas -----------------------------------------------

    def resume(self) -> None:
        """Let the replica go on, until it pauses or is done. Raises what its function raises."""
        own = scopes_of(self._graph)
        take_up(self._graph, self.scopes)
        self._has_paused.clear()
        if self._thread is None:
            self._thread = Thread(target=self._run, name=f"tfray-replica-{self._context.number}", daemon=True)
            self._thread.start()
        self._may_run.set()
        self._has_paused.wait()
        self.scopes = scopes_of(self._graph)
        take_up(self._graph, own)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the thread, if it waits for others."""
        self._stopping = True
        self._may_run.set()
        if self._thread is not None:
            self._thread.join()

    # -- in the replica's thread -----------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._wait()
            with self._entered():
                function, args, kwargs = self._call
                self.result = function(*args, **kwargs)
            self.done = True
        except _Stopped:
            pass
        except BaseException as failure:  # noqa: BLE001 (`resume` raises it, in the thread that asked)
            self._failure = failure
        finally:
            self._has_paused.set()

    @contextmanager
    def _entered(self) -> Iterator[None]:
        number = self._context.number
        with ExitStack() as scopes:
            scopes.enter_context(self._graph.as_default())
            if self._session is not None:
                scopes.enter_context(default_session_scope(self._session))
            scopes.enter_context(replica_mode(self._context.strategy, self._context))
            scopes.enter_context(self._graph.device(self._device))
            scopes.enter_context(self._graph.name_scope(self.name_scope))
            scopes.enter_context(
                variable_scope(self.variable_scope, reuse=number > 0 or None, auxiliary_name_scope=False)
            )
            yield

    def merge(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Pause until all replicas have come as far, and return what the function returned."""
        if get_default_graph() is not self._graph:
            raise RuntimeError(
                "`merge_call` called while defining a new graph or a tf.function: a branch, loop or function that a "
                "replica builds cannot agree with those of the other replicas; update variables outside of it"
            )
        self.asked = function, args, kwargs
        self.merges += 1
        name = self._graph.get_name_scope()
        self.name_scope = f"{name}/" if name else ""
        self.variable_scope = get_variable_scope()
        self._has_paused.set()
        self._wait()
        self.asked, answer, self.answer = None, self.answer, None
        return answer

    def _wait(self) -> None:
        self._may_run.wait()
        self._may_run.clear()
        if self._stopping:
            raise _Stopped


def _shared_variables() -> Callable[..., Any]:
    """A creator of variables by which replicas share what the first one made.

    The n-th variable that a replica makes under a name is the n-th of that name, but for numbers which make names
    unique, that the first replica made.
    """
    made: dict[str, list[Any]] = {}
    taken: dict[tuple[int, str], int] = {}

    def creator(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        mode = innermost_mode()
        if mode is None or mode.replica is None:
            return next_creator(**kwargs)
        number, name = mode.replica.number, kwargs.get("name") or "Variable"
        # Keras layers name their variables within the scope of operations, which is that of the replica.
        name = name.replace(mode.strategy.extended.replica_scope.format(number) + "/", "", 1) if number else name
        name = _NUMBERED.sub("", name)
        if number == 0:
            variable = next_creator(**kwargs)
            made.setdefault(name, []).append(variable)
            return variable
        position = taken.get((number, name), 0)
        taken[number, name] = position + 1
        if position >= len(made.get(name, [])):
            raise RuntimeError(
                f"replica {number} makes a variable {kwargs.get('name')!r} that the first replica has not made: each "
                "replica has to make the same variables in the same order"
            )
        return made[name][position]

    return creator


_NUMBERED = re.compile(r"_\d+(?=/|$)")
