"""What the current thread builds under a strategy of `tf.distribute`: one replica, or what is across the replicas."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tfray.framework.default_stack import DefaultStack


class ReplicaMode(NamedTuple):
    """A strategy, and the replica of it that is being built.

    Attributes:
        strategy: The `tf.distribute.Strategy`.
        replica: The `tf.distribute.ReplicaContext`; None across replicas, as in ``strategy.scope()``.
    """

    strategy: Any
    replica: Any


class _NoStrategy:
    """Stands for the default strategy, which changes nothing."""

    is_default = True


modes = DefaultStack()
WITHOUT: Final = ReplicaMode(_NoStrategy, None)
"""The mode of code within the scope of a strategy that is to work as if there were none."""


def current_mode() -> ReplicaMode | None:
    """The mode of this thread; None without a strategy, or with the default one, which changes nothing."""
    mode: ReplicaMode | None = modes.top()
    return None if mode is None or mode.strategy.is_default else mode


def merging(variable: Any) -> Any:
    """The context of the replica being built, if several replicas update `variable` together; None otherwise."""
    mode = current_mode()
    if mode is None or mode.replica is None or mode.strategy.num_replicas_in_sync == 1:
        return None
    return mode.replica if getattr(variable, "distribute_strategy", None) is mode.strategy else None
