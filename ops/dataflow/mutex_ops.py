"""Locks that operations take and give back: what `tf.CriticalSection` is built on."""

from __future__ import annotations

from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.shape_functions import no_outputs, scalar
from tfray.ops.resources.handles import looked_up_once, named_resource, require_same
from tfray.ops.resources.mutex_resource import Mutex, MutexLock
from tfray.ops.state.state_ops import colocated_with


def mutex(container: str = "", shared_name: str = "", name: str | None = None) -> Tensor:
    """The handle of a lock, a resource scalar.

    Args:
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    return add_op(MUTEX, name=name, container=container, shared_name=shared_name)


def _mutex_kernel(ctx: KernelContext) -> Array:
    found = named_resource(ctx, lambda name: Mutex())
    require_same(found, ctx, Mutex)
    return found


MUTEX = register(
    OpDef(
        name="Mutex",
        inputs=(),
        outputs=("handle: resource",),
        attrs=("container", "shared_name"),
        shape=scalar,
        kernels=on_cpu(looked_up_once(_mutex_kernel)),
        stateful=True,
    )
)


def mutex_lock(handle: Tensor, name: str | None = None) -> Tensor:
    """Take a lock, after waiting for those who came before.

    Args:
        handle: Scalar handle of the lock.
        name: Name of the operation.

    Returns:
        A variant scalar, for `consume_mutex_lock`. The end of the step gives the lock back, too, if it comes before.
    """
    with colocated_with(handle):
        return add_op(MUTEX_LOCK, handle, name=name)


def _mutex_lock_kernel(ctx: KernelContext, mutex: Mutex) -> Array:
    lock = ctx.step.complete(ctx.op_name, mutex.take)
    ctx.step.held.add(lock)
    return lock


MUTEX_LOCK = register(
    OpDef(
        name="MutexLock",
        inputs=("mutex: resource",),
        outputs=("mutex_lock: variant",),
        shape=scalar,
        kernels=on_cpu(_mutex_lock_kernel),
        gradient=not_differentiable,
        stateful=True,
        blocking=True,
        uses_step=True,
    )
)


def consume_mutex_lock(mutex_lock: Tensor, name: str | None = None) -> Operation:
    """Give a lock back.

    Args:
        mutex_lock: What `mutex_lock` gave, a scalar.
        name: Name of the operation.
    """
    with colocated_with(mutex_lock):
        released: Operation = add_op(CONSUME_MUTEX_LOCK, mutex_lock, name=name)
    return released


def _consume_mutex_lock_kernel(ctx: KernelContext, lock: MutexLock) -> tuple[()]:
    lock.release()
    ctx.step.held.discard(lock)
    return ()


CONSUME_MUTEX_LOCK = register(
    OpDef(
        name="ConsumeMutexLock",
        inputs=("mutex_lock: variant",),
        outputs=(),
        shape=no_outputs,
        kernels=on_cpu(_consume_mutex_lock_kernel),
        gradient=not_differentiable,
        stateful=True,
        uses_step=True,
    )
)
