"""The strategy and the replica of the code that runs now."""

from __future__ import annotations

from typing import Any, Final

from tfray.distribute.reduction import ReduceOp
from tfray.distribute.replicas import ReplicaContext
from tfray.distribute.strategy import DefaultStrategy, Strategy
from tfray.framework.graph import get_default_graph
from tfray.framework.scopes import NoStrategy, ReplicaMode, innermost_mode
from tfray.library.layers.losses import last_loss_is_sum

_DEFAULT: Final = DefaultStrategy()
_DEFAULT_REPLICA: Final = ReplicaContext(_DEFAULT, 0)
_entered: list[Any] = []
"""The scope that `experimental_set_strategy` has entered."""


def _mode() -> ReplicaMode:
    mode = innermost_mode()
    if mode is None or mode.strategy is NoStrategy:
        return ReplicaMode(_DEFAULT, _DEFAULT_REPLICA, None)
    return mode


def get_strategy() -> Strategy:
    """The current `tf.distribute.Strategy`; the default one, of one replica, outside of ``strategy.scope()``."""
    found: Strategy = _mode().strategy
    return found


def has_strategy() -> bool:
    """Whether there is a strategy other than the default one."""
    return not get_strategy().is_default


def get_replica_context() -> ReplicaContext | None:
    """The replica that is being built, or None across replicas, as in ``strategy.scope()``.

    Without a strategy it is the one replica of the default one.
    """
    found: ReplicaContext | None = _mode().replica
    return found


def in_cross_replica_context() -> bool:
    """Whether the code that runs is across replicas: in ``strategy.scope()``, or a function of `merge_call`."""
    return _mode().replica is None


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Enter the scope of a strategy for the rest of the program, or leave it again.

    Args:
        strategy: The strategy; None for none.

    Raises:
        RuntimeError: It is called in the scope of a strategy, or by code that builds a replica.
    """
    mode = innermost_mode()
    if mode is not None and (not _entered or mode.replica is not None):
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if _entered:
        _entered.pop().__exit__(None, None, None)
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _entered.append(scope)


def get_loss_reduction() -> ReduceOp:
    """How an optimizer takes the last loss that `tf.losses` computed, while an estimator builds replicas.

    Returns:
        ``MEAN`` for losses that are means, whose gradients of several replicas are averaged, or ``SUM``.
    """
    summed = not get_strategy()._scales_loss or last_loss_is_sum(get_default_graph())
    return ReduceOp.SUM if summed else ReduceOp.MEAN
