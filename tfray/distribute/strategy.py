"""The base of strategies: where replicas, variables and sums go, and what programs call; see `Strategy`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import numpy as np

from tfray.distribute.reduction import CrossDeviceOps, ReduceOp, ReductionToOneDevice
from tfray.distribute.replica_inputs import (
    DistributedDataset,
    DistributedIterator,
    InputContext,
    InputFunctionIterator,
    InputReplicationMode,
)
from tfray.distribute.replicas import ReplicaContext, call_for_each_replica
from tfray.distribute.steps import MultiStepContext, run_steps
from tfray.distribute.values import PerReplica, each_result, map_replicas
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.scopes import innermost_mode, replica_mode
from tfray.library.input.datasets import Dataset
from tfray.library.variables.variables import Variable, variable_creator_scope
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops


class StrategyExtended:
    """What a strategy decides, for those who write libraries: ``strategy.extended``.

    This base is one replica on any device, as a program without a strategy has it.

    Args:
        container_strategy: The strategy.
    """

    cross_device_ops: CrossDeviceOps = ReductionToOneDevice()
    experimental_between_graph = False
    """Whether each process of a cluster builds a graph of its own, and their variables are the same."""
    experimental_should_init = True
    should_checkpoint = True
    should_save_summary = True
    experimental_require_static_shapes = False
    replica_scope = "replica_{}"
    """The name scope of a replica but the first."""
    input_pipelines = (1, 0)
    """How many processes read data, and the number of this one."""

    def __init__(self, container_strategy: Any) -> None:
        self._strategy = container_strategy
        self._worker_devices: tuple[str, ...] = ("",)
        self._parameter_devices: tuple[str, ...] = ("",)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The device of each replica; ``""`` for any."""
        return self._worker_devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices of variables; ``""`` for any."""
        return self._parameter_devices

    # -- variables -------------------------------------------------------------------------------

    def create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Make a variable for all replicas, as ``tf.variable_creator_scope`` makes them."""
        with replica_mode(self._strategy, None), self.placing_variables():
            made = next_creator(**kwargs)
        made.distribute_strategy = self._strategy
        return made

    def placing_variables(self) -> AbstractContextManager[None]:
        """The device scope in which variables are made."""
        return get_default_graph().root.device(self._parameter_devices[0])

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in the strategy's scope.

        Args:
            v: The variable.
        """
        return getattr(v, "distribute_strategy", None) is self._strategy

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """A context in which variables are made on the device of another one.

        Args:
            colocate_with_variable: A variable made in the strategy's scope.

        Raises:
            ValueError: It was not made there.
        """
        if not self.variable_created_in_scope(colocate_with_variable):
            raise ValueError(
                "`colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), "
                f"not: {colocate_with_variable!r}"
            )

        def creator(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
            with get_default_graph().root.colocate_with(colocate_with_variable.handle, ignore_existing=True):
                return next_creator(**kwargs)

        return variable_creator_scope(creator)

    def read_var(self, v: Any) -> Tensor:
        """The value of a variable, for all replicas.

        Args:
            v: The variable.
        """
        return array_ops.identity(v)

    def value_container(self, value: Any) -> Any:
        """The variable of a value that `update` gave to a function: itself, since replicas share variables.

        Args:
            value: The value.
        """
        return value

    def non_slot_devices(self, var_list: Sequence[Any]) -> tuple[str, ...]:
        """The devices of variables of an optimizer that belong to no variable of the model.

        Args:
            var_list: The variables that are optimised.
        """
        return self._parameter_devices

    # -- values ----------------------------------------------------------------------------------

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Build a function once for each replica; see `Strategy.experimental_run_v2`.

        Args:
            fn: The function.
            args: Its arguments; of `PerReplica` values each replica gets its own.
            kwargs: Likewise, by name.

        Returns:
            What it returns, regrouped.

        Raises:
            RuntimeError: It is called by code that builds a replica.
        """
        self._check_across("call_for_each_replica")
        return call_for_each_replica(self._strategy, fn, args, kwargs or {})

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """A tensor, on the destinations.

        Args:
            tensor: The tensor, or a number.
            destinations: A device, or a variable or tensor there.
        """
        if isinstance(tensor, (int, float)):
            return tensor
        return self.cross_device_ops.broadcast(tensor, destinations)

    def reduce_to(self, reduce_op: ReduceOp | str, value: Any, destinations: Any) -> Any:
        """The sum or mean of a value over the replicas.

        Args:
            reduce_op: `ReduceOp`, or its name.
            value: The `PerReplica` value. One that is the same for all replicas stands for itself in a mean.
            destinations: Where it is needed: a device, or a variable or tensor there; None for anywhere.

        Raises:
            RuntimeError: It is called by code that builds a replica.
            ValueError: A sum of one value for several replicas, not 0: it is unclear what that would be.
        """
        self._check_across("reduce_to")
        reduce_op = ReduceOp.of(reduce_op)
        replicas = self._strategy.num_replicas_in_sync
        if isinstance(value, PerReplica):
            return self.cross_device_ops.reduce(reduce_op, value, destinations)
        if replicas == 1 or reduce_op is ReduceOp.MEAN or (isinstance(value, (int, float)) and value == 0):
            return value
        raise ValueError(
            f"A non-DistributedValues value {value} cannot be reduced with the given reduce op {reduce_op}: all "
            f"{replicas} replicas passed this one value; pass a tensor that each replica computes, or take the mean"
        )

    def batch_reduce_to(
        self, reduce_op: ReduceOp | str, value_destination_pairs: Sequence[tuple[Any, Any]]
    ) -> list[Any]:
        """`reduce_to` of several values.

        Args:
            reduce_op: `ReduceOp`, or its name.
            value_destination_pairs: Pairs of value and destination.
        """
        self._check_across("batch_reduce_to")
        pairs = list(value_destination_pairs)
        if all(isinstance(value, PerReplica) for value, _ in pairs):
            return self.cross_device_ops.batch_reduce(reduce_op, pairs)
        return [self.reduce_to(reduce_op, value, destination) for value, destination in pairs]

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Build a function that updates a variable, on the variable's device.

        Args:
            var: The variable.
            fn: ``fn(var, *args, **kwargs)``.
            args: Its other arguments.
            kwargs: Likewise, by name.
            group: Return what `fn` returns. Otherwise a tuple of that for each copy of the variable, of which there
                is one.

        Returns:
            What `fn` returns, or that in a tuple.
        """
        replica = get_replica_context_of(self._strategy)
        if replica is not None:

            def across(strategy: Any, *given: Any, **named: Any) -> Any:
                return strategy.extended.update(var, fn, given, named, group)

            return replica.merge_call(across, args, kwargs)
        graph = get_default_graph()
        with graph.colocate_with(var.handle, ignore_existing=True) if isinstance(var, Variable) else graph.device(""):
            made = fn(var, *args, **(kwargs or {}))
        return made if group else (made,)

    def update_non_slot(
        self,
        colocate_with: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Build a function that updates what belongs to no variable.

        Args:
            colocate_with: What `non_slot_devices` returned.
            fn: ``fn(*args, **kwargs)``.
            args: Its arguments.
            kwargs: Likewise, by name.
            group: As for `update`.
        """
        self._check_across("update_non_slot")
        with get_default_graph().device(nest.flatten(colocate_with)[0]):
            made = fn(*args, **(kwargs or {}))
        return made if group else (made,)

    # -- input -----------------------------------------------------------------------------------

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Dataset:
        """A dataset of the rows of arrays.

        Args:
            numpy_input: Arrays, in a tuple or dictionary; a list is one array.
            session: Accepted for TensorFlow 1's sake, which keeps the arrays in variables of a session.
        """
        return Dataset.from_tensor_slices(_as_arrays(numpy_input))

    def experimental_run_steps_on_iterator(
        self, fn: Callable[..., Any], iterator: Any, iterations: Any = 1, initial_loop_values: Any = None
    ) -> MultiStepContext:
        """Build several steps in one `tf.while_loop`.

        Args:
            fn: ``fn(context, inputs)`` builds a step from the next element of `iterator`, for all replicas, and
                returns an operation. It tells `context` what is to be seen of the last step.
            iterator: An iterator of the strategy.
            iterations: How many steps.
            initial_loop_values: Values of the outputs before the first step, in the structure of
                ``last_step_outputs``; needed for those.

        Returns:
            The context, with ``run_op`` and ``last_step_outputs``.
        """
        self._check_across("experimental_run_steps_on_iterator")
        return run_steps(fn, iterator, iterations, initial_loop_values)

    def configure(self, session_config: Any, cluster_spec: Any, task_type: str | None, task_id: int | None) -> None:
        """Take note of the cluster; see `Strategy.configure`. This strategy is for one process.

        Raises:
            ValueError: The cluster has several tasks.
        """
        if cluster_spec is not None and number_of_workers(cluster_spec) > 1:
            raise ValueError(several_processes(self._strategy))

    def _check_across(self, method: str) -> None:
        if get_replica_context_of(self._strategy) is not None:
            raise RuntimeError(
                f"{method}: Method requires being in cross-replica context, use "
                "get_replica_context().merge_call() in code that builds a replica"
            )


def several_processes(strategy: Any) -> str:
    """Why a strategy does not train in several processes, and what to use."""
    return (
        f"{type(strategy).__name__} makes replicas in one process: for several use "
        "tf.distribute.experimental.ParameterServerStrategy, or tf.train.Trainer with ScalingConfig(workers=...), "
        "whose replicas are synchronous too"
    )


def number_of_workers(cluster: Any) -> int:
    """How many tasks of a cluster train."""
    return sum(cluster.num_tasks(job) for job in ("chief", "master", "worker") if job in cluster.jobs)


def get_replica_context_of(strategy: Any) -> ReplicaContext | None:
    """The replica of a strategy that is being built, or None."""
    mode = innermost_mode()
    found: ReplicaContext | None = None if mode is None or mode.strategy is not strategy else mode.replica
    return found


class Strategy:
    """A way to spread a computation over devices: how many replicas there are, where they and the variables are.

    A strategy builds a function once for each replica, all in one graph, and each step runs all of them: synchronous
    replication in the graph, as in the paper (section 4.4). Replicas share each variable: its one copy is on the
    parameter device, and is sent from there. TensorFlow's `MirroredStrategy` keeps a copy on every device instead; the
    values are the same, and here they cannot differ. An optimizer adds up the gradients of all replicas and updates
    the variables once.

    Args:
        extended: The `StrategyExtended` that decides.

    Examples:
        >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
        >>> with strategy.scope():
        ...     w = tf.get_variable("w", initializer=1.0)
        ...     iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).batch(4))
        ...     sums = strategy.experimental_run(lambda x: w * tf.reduce_sum(tf.cast(x, tf.float32)), iterator)
        ...     total = strategy.reduce(tf.distribute.ReduceOp.SUM, sums)
    """

    is_default: ClassVar[bool] = False

    def __init__(self, extended: StrategyExtended) -> None:
        self._extended = extended
        self._scales_loss = False

    @property
    def extended(self) -> StrategyExtended:
        """What the strategy decides, for those who write libraries."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas make a step together."""
        return len(self._extended.worker_devices)

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A context in which variables are made for all replicas, and this strategy is the current one.

        Raises:
            RuntimeError: Another strategy is the current one.
        """
        mode = innermost_mode()
        if mode is not None and mode.strategy is self:
            yield self
            return
        if mode is not None and not mode.strategy.is_default:
            raise RuntimeError(
                "Mixing different tf.distribute.Strategy objects: the scope of one cannot be entered in the scope of "
                f"another, {mode.strategy!r}"
            )
        with replica_mode(self, None), variable_creator_scope(self._creator):
            yield self

    def _creator(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        return self._extended.create_variable(next_creator, **kwargs)

    # -- running ---------------------------------------------------------------------------------

    def experimental_run_v2(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Build a function once for each replica.

        Args:
            fn: The function. In it, `tf.distribute.get_replica_context` tells which replica is built.
            args: Its arguments, in any nested structure: each replica gets its own of the values that an iterator of
                the strategy, or an earlier call, returned.
            kwargs: Likewise, by name.

        Returns:
            What it returns, in the same structure: of the tensors of several replicas, values that `reduce` and
            `unwrap` take.

        Raises:
            RuntimeError: The replicas call `ReplicaContext.merge_call` a different number of times.
        """
        with self.scope():
            return self._extended.call_for_each_replica(fn, args, kwargs)

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """`experimental_run_v2` with the next element of an iterator.

        Args:
            fn: The function, of what one replica gets.
            input_iterator: An iterator of this strategy; None calls `fn` without arguments.
        """
        with self.scope():
            args = () if input_iterator is None else (input_iterator.get_next(),)
        return self.experimental_run_v2(fn, args)

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | None = None) -> Any:
        """The sum or mean of a value over the replicas.

        Args:
            reduce_op: `tf.distribute.ReduceOp`, or its name.
            value: What `experimental_run_v2` returned.
            axis: Dimension of each replica's tensor over which to reduce too, mostly that of the batch. A mean then
                counts all rows alike, however many each replica has.

        Returns:
            A tensor.

        Raises:
            TypeError: `axis` is no integer, or `reduce_op` is neither a `ReduceOp` nor a name.
            ValueError: `axis` is out of range, or `reduce_op` is the name of none.
        """
        reduce_op = ReduceOp.of(reduce_op)
        if axis is None:
            return self._extended.reduce_to(reduce_op, value, destinations=None)
        if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
            raise TypeError(f"Expected `axis` to be an integer not: {axis!r}")
        for each in each_result(value):
            rank = convert_to_tensor(each).shape.rank
            if rank is not None and not -rank <= axis < rank:
                raise ValueError(f"`axis` = {axis} out of range for `value` with rank {rank}")
        total = self._extended.reduce_to(
            ReduceOp.SUM, map_replicas(lambda each: math_ops.reduce_sum(each, axis), value), destinations=None
        )
        if reduce_op is ReduceOp.SUM:
            return total
        counts = map_replicas(lambda each: array_ops.shape(each, out_type="int64")[axis], value)
        count = self._extended.reduce_to(ReduceOp.SUM, counts, destinations=None)
        return math_ops.truediv(total, array_ops.cast(count, total.dtype))

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """The values of all replicas.

        Args:
            value: What `experimental_run_v2` returned.
        """
        return each_result(value)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of all replicas of this process.

        Args:
            value: What `experimental_run_v2` returned.
        """
        return each_result(value)

    def group(self, value: Any, name: str | None = None) -> Operation:
        """One operation for those of all replicas.

        Args:
            value: The operations, as `experimental_run_v2` returns them.
            name: Its name.
        """
        return group(*each_result(value), name=name)

    # -- input -----------------------------------------------------------------------------------

    def make_dataset_iterator(self, dataset: Dataset) -> DistributedIterator:
        """An iterator that splits each batch of a dataset among the replicas.

        Args:
            dataset: A batched dataset; a batch has the examples of all replicas. A last batch that is smaller is
                split too, unless a replica would get nothing.

        Returns:
            The iterator. It begins when what its ``initialize()`` returns is run.
        """
        return self.experimental_distribute_dataset(dataset).make_initializable_iterator()

    def make_input_fn_iterator(
        self,
        input_fn: Callable[[InputContext], Any],
        replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
    ) -> DistributedIterator | InputFunctionIterator:
        """An iterator over what an input function makes, of which each replica takes the next batch.

        Args:
            input_fn: ``input_fn(input_context)`` returns a dataset with batches for one replica each, or a function
                without arguments that makes what one replica gets.
            replication_mode: ``InputReplicationMode.PER_WORKER``.

        Raises:
            ValueError: Another `replication_mode`, or `input_fn` returns something else.
        """
        if replication_mode is not InputReplicationMode.PER_WORKER:
            raise ValueError(f"Input replication mode not supported: {replication_mode!r}")
        with self.scope():
            made = input_fn(self._input_context())
            if isinstance(made, Dataset):
                return DistributedDataset(made, self.num_replicas_in_sync, split=False).make_initializable_iterator()
            if callable(made):
                return InputFunctionIterator(made, self.num_replicas_in_sync)
        raise ValueError(f"input_fn must return a tf.data.Dataset or a callable, not {made!r}")

    def _input_context(self) -> InputContext:
        pipelines, number = self._extended.input_pipelines
        return InputContext(pipelines, number, self.num_replicas_in_sync)

    def experimental_distribute_dataset(self, dataset: Dataset) -> DistributedDataset:
        """A dataset whose batches are split among the replicas; see `make_dataset_iterator`.

        Args:
            dataset: A batched dataset.
        """
        return DistributedDataset(dataset, self.num_replicas_in_sync, split=True)

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset]
    ) -> DistributedDataset:
        """A dataset that a function makes, of which each replica takes the next batch.

        Args:
            dataset_fn: ``dataset_fn(input_context)`` returns a dataset with batches for one replica each.
        """
        return DistributedDataset(dataset_fn(self._input_context()), self.num_replicas_in_sync, split=False)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Dataset:
        """A dataset of the rows of arrays, to be batched.

        Args:
            numpy_input: Arrays, in a tuple or dictionary; a list is one array.
            session: Accepted for TensorFlow 1's sake, which keeps the arrays in variables of a session.
        """
        return self._extended.experimental_make_numpy_dataset(numpy_input, session)

    # -- sessions and variables ------------------------------------------------------------------

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """See `StrategyExtended.colocate_vars_with`.

        Args:
            colocate_with_variable: A variable made in the strategy's scope.
        """
        return self._extended.colocate_vars_with(colocate_with_variable)

    def configure(
        self,
        session_config: Any = None,
        cluster_spec: Any = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        """Take note of the cluster in which the strategy runs.

        Args:
            session_config: Options of sessions.
            cluster_spec: The cluster.
            task_type: Job of this process.
            task_id: Number of its task.

        Raises:
            ValueError: The strategy is for one process, and the cluster has several workers.
        """
        self._extended.configure(session_config, cluster_spec, task_type, task_id)

    def update_config_proto(self, config_proto: Any) -> Any:
        """The options of sessions that suit the strategy: a copy of those given.

        Args:
            config_proto: A `tf.ConfigProto`.
        """
        return copy.deepcopy(config_proto)

    @contextmanager
    def _scale_loss_for_estimator_enabled(self) -> Iterator[None]:
        """While an estimator builds replicas, optimizers divide a loss that is a mean by their number."""
        self._scales_loss = True
        try:
            yield
        finally:
            self._scales_loss = False

    def __deepcopy__(self, memo: Any) -> Strategy:
        """The strategy itself: configurations that are copied mean the same strategy."""
        return self

    def __repr__(self) -> str:
        return f"<tf.distribute.{type(self).__name__} of {self.num_replicas_in_sync} replicas>"


class DefaultStrategy(Strategy):
    """The strategy of a program that has none: one replica, which does what it is told."""

    is_default = True

    def __init__(self) -> None:
        super().__init__(StrategyExtended(self))


def _as_arrays(numpy_input: Any) -> Any:
    if isinstance(numpy_input, tuple):
        return tuple(map(_as_arrays, numpy_input))
    if isinstance(numpy_input, Mapping):
        return {name: _as_arrays(each) for name, each in numpy_input.items()}
    return np.asarray(numpy_input)
