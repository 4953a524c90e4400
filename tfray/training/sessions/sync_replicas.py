"""`SyncReplicasOptimizer`: replicas in processes of their own, whose gradients are averaged before they are applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tfray.errors import CancelledError
from tfray.framework import dtypes
from tfray.framework.arguments import Positive, checked
from tfray.framework.graph import Graph, Operation, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.input.accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from tfray.library.input.queues import FIFOQueue
from tfray.library.platform import logging
from tfray.library.variables.variables import Variable, global_variables, report_uninitialized_variables
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.state import state_ops
from tfray.training.optimizers.moving_averages import ExponentialMovingAverage
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.session_run_hook import SessionRunHook
from tfray.training.threads.coordinator import Coordinator
from tfray.training.threads.queue_runner import QueueRunner


class SyncReplicasOptimizer(Optimizer):
    """Applies the mean of the gradients of several replicas at once.

    Each worker sends its gradients to accumulators beside the variables, and then waits for a token. When
    `replicas_to_aggregate` gradients of the present global step have come, the chief applies their mean with `opt`,
    adds 1 to the global step, and hands out `total_num_replicas` tokens with the new step. A worker's next gradients
    are for the step of its token: gradients that come too late are dropped. If `replicas_to_aggregate` is less than
    `total_num_replicas`, no step waits for all replicas: those above that number are backups.

        optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 4, total_num_replicas=5)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        hook = optimizer.make_session_run_hook(is_chief)
        with tf.train.MonitoredTrainingSession(server.target, is_chief, hooks=[hook]) as session:
            while not session.should_stop():
                session.run(train_op)

    Args:
        opt: The optimizer that applies the mean.
        replicas_to_aggregate: Number of gradients for one update.
        total_num_replicas: Number of replicas; `replicas_to_aggregate` when None. It may also be less: then replicas
            contribute more than one gradient to an update.
        variable_averages: Moving averages to update after each update.
        variables_to_average: Variables that have them.
        use_locking: Accepted for TensorFlow 1's sake: updates of a variable never interleave.
        name: Name of the optimizer.
    """

    @checked
    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: Positive,
        total_num_replicas: Positive | None = None,
        variable_averages: ExponentialMovingAverage | None = None,
        variables_to_average: Sequence[Any] | None = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        self._tokens_per_step = max(self._total_num_replicas, replicas_to_aggregate)
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._global_step: Any = None
        self._token_queue: FIFOQueue | None = None
        self._chief_queue_runner: QueueRunner | None = None
        self._accumulators: list[ConditionalAccumulator | SparseConditionalAccumulator] = []
        self.local_step_init_op: Operation | None = None
        """Operation with which a worker that is not the chief begins: it sets its local step to the global step."""
        self.chief_init_op: Operation | None = None
        """Operation with which the chief begins: it also sets the step of every accumulator."""
        self.ready_for_local_init_op: Any = None
        """Names of the global variables without a value. When it is empty, the two operations above may be run."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """As `Optimizer.compute_gradients` of the optimizer within."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Add the operations of a worker's step, and those of the chief's queue runner.

        Args:
            grads_and_vars: What `compute_gradients` returns.
            global_step: Variable that counts the updates.
            name: Name of the operation that is returned.

        Returns:
            The worker's step: it sends the gradients, and waits for a token.

        Raises:
            ValueError: There are no gradients, or there is no global step.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("there is no gradient to apply: grads_and_vars is empty")
        if global_step is None:
            raise ValueError("SyncReplicasOptimizer needs global_step, by which it tells late gradients")
        self._global_step = global_step
        graph = get_default_graph()
        self._local_step = _local_variable(graph, global_step)
        self.local_step_init_op = _operation(state_ops.assign(self._local_step, global_step))
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        with graph.name_scope(self._name):
            sent, means = self._accumulate(pairs)
            with graph.device(global_step.device or ""):
                self._token_queue = FIFOQueue(-1, global_step.dtype, [()], None, "sync_token_q", "sync_token_q")
            with graph.control_dependencies(sent), graph.device(global_step.device or ""):
                token = self._token_queue.dequeue()
            train_op = _operation(state_ops.assign(self._local_step, token, name=name))
            self._chief_queue_runner = self._update_runner(means)
            with graph.name_scope("init"):
                begin = [self._set_step(accumulator) for accumulator in self._accumulators]
            self.chief_init_op = grouping_ops.group(self.local_step_init_op, *begin)
        graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
        return train_op

    def _accumulate(self, pairs: Iterable[tuple[Any, Any]]) -> tuple[list[Operation], list[tuple[Any, Any]]]:
        """Operations that send a worker's gradients, and pairs of the mean over workers and the variable."""
        sent: list[Operation] = []
        means: list[tuple[Any, Any]] = []
        graph, count = get_default_graph(), self._replicas_to_aggregate
        for gradient, variable in pairs:
            if gradient is None:
                means.append((None, variable))
                continue
            with graph.device(variable.device or ""):
                about = (gradient.dtype, variable.shape, f"{variable.op.name}/grad_accum")
                if isinstance(gradient, IndexedSlices):
                    sparse = SparseConditionalAccumulator(*about)
                    sent.append(sparse.apply_indexed_slices_grad(gradient, self._local_step))
                    means.append((sparse.take_indexed_slices_grad(count), variable))
                    self._accumulators.append(sparse)
                else:
                    dense = ConditionalAccumulator(*about)
                    sent.append(dense.apply_grad(gradient, self._local_step))
                    means.append((dense.take_grad(count), variable))
                    self._accumulators.append(dense)
        return sent, means

    def _update_runner(self, means: Sequence[tuple[Any, Any]]) -> QueueRunner:
        """A queue runner that makes one update after the other, and hands out tokens for each."""
        assert self._token_queue is not None
        graph = get_default_graph()
        with graph.device(self._global_step.device or ""):
            update = self._opt.apply_gradients(means, self._global_step)
            with graph.control_dependencies([update]):
                tokens = array_ops.fill([self._tokens_per_step], self._global_step.read_value())
                step = self._token_queue.enqueue_many((tokens,))
            if self._variable_averages is not None:
                with graph.control_dependencies([step]):
                    step = self._variable_averages.apply(self._variables_to_average)
            # The runner closes its queue at the end. Closing that of the tokens would end the other workers.
            unused = FIFOQueue(1, dtypes.int32, [()], None, "dummy_queue", "dummy_queue")
            return _UpdateRunner(unused, [step])

    def _set_step(self, accumulator: Any) -> Operation:
        with get_default_graph().device(accumulator.accumulator_ref.op.device or ""):
            return accumulator.set_global_step(self._global_step)

    # -- what the chief and the workers run --------------------------------------------------------------

    def get_chief_queue_runner(self) -> QueueRunner:
        """The queue runner by which the chief makes the updates. Call `apply_gradients` or `minimize` first.

        Raises:
            ValueError: `apply_gradients` has not been called.
        """
        if self._chief_queue_runner is None:
            raise ValueError("there is no queue runner before minimize or apply_gradients has been called")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """The operation that hands out the first tokens, which the chief runs once.

        Args:
            num_tokens: How many; `replicas_to_aggregate` when negative.

        Raises:
            ValueError: `apply_gradients` has not been called, or the tokens would not suffice for a first update.
        """
        if self._token_queue is None:
            raise ValueError("there are no tokens before minimize or apply_gradients has been called")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens < 0:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(f"{num_tokens} tokens are too few to start: at least {needed} are needed")
        if num_tokens == 0:
            return grouping_ops.no_op("no_init_tokens")
        with get_default_graph().device(self._global_step.device or ""):
            tokens = array_ops.fill([num_tokens], self._global_step.read_value())
            return self._token_queue.enqueue_many((tokens,))

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook for monitored sessions. In every new session it sets the step; for the chief it starts the updates.

        Args:
            is_chief: Whether this worker makes the updates.
            num_tokens: As of `get_init_tokens_op`.
        """
        return _SyncReplicasHook(self, is_chief, num_tokens)

    # -- the optimizer within ----------------------------------------------------------------------------

    def get_slot(self, var: Any, name: str) -> Any | None:
        """As of the optimizer within."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """As of the optimizer within."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Any]:
        """As of the optimizer within."""
        return self._opt.variables()


class _SyncReplicasHook(SessionRunHook):
    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._sync_optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self) -> None:
        optimizer = self._sync_optimizer
        if optimizer.local_step_init_op is None:
            raise ValueError(
                "apply_gradient should be called before using the hook: neither minimize nor apply_gradients was"
            )
        self._ready_op = optimizer.ready_for_local_init_op
        self._init_op = optimizer.chief_init_op if self._is_chief else optimizer.local_step_init_op
        self._tokens_op = optimizer.get_init_tokens_op(self._num_tokens) if self._is_chief else None
        self._queue_runner = optimizer.get_chief_queue_runner() if self._is_chief else None

    def after_create_session(self, session: Any, coord: Coordinator) -> None:
        missing = session.run(self._ready_op)
        if missing.size:
            names = b", ".join(missing).decode()
            raise RuntimeError(f"SyncReplicasOptimizer cannot begin: variables without a value: {names}")
        session.run(self._init_op)
        if self._queue_runner is not None:
            session.run(self._tokens_op)
            self._queue_runner.create_threads(session, coord, daemon=True, start=True)


class _UpdateRunner(QueueRunner):
    """Runs updates. They wait for gradients that may never come, so its threads end when the session is closed."""

    _is_awaited = False

    def _report(self, error: Exception, coord: Coordinator | None) -> None:
        if isinstance(error, CancelledError) and (coord is None or coord.should_stop()):
            logging.vlog(1, "updates have ended: %s", error)
        else:
            super()._report(error, coord)


def _local_variable(graph: Graph, global_step: Any) -> Variable:
    """A variable in the worker's own memory: the global step for which its gradients are.

    Device functions put variables on parameter servers, and all else on the worker. So this one takes the device
    of an operation that is no variable.
    """
    with graph.control_dependencies(None):
        worker = grouping_ops.no_op("sync_rep_local_anchor").device
        with graph.device(None), graph.device(worker or ""):
            return Variable(
                array_ops.zeros([], global_step.dtype),
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                name="sync_rep_local_step",
            )


def _operation(update: Any) -> Operation:
    return update if isinstance(update, Operation) else update.op
