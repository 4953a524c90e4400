"""``tf.distribute``: strategies, which build a computation once for each of several devices, in one graph."""

import sys

from tfray.actors.clusters.server import Server
from tfray.distribute import cluster_resolver, experimental
from tfray.distribute.current import (
    experimental_set_strategy,
    get_loss_reduction,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from tfray.distribute.reduction import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReduceOp,
    ReductionToOneDevice,
)
from tfray.distribute.replica_inputs import InputContext, InputReplicationMode
from tfray.distribute.replicas import ReplicaContext
from tfray.distribute.strategies import MirroredStrategy, OneDeviceStrategy
from tfray.distribute.strategy import Strategy, StrategyExtended
from tfray.lazy_modules import publish

__all__ = [
    "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputReplicationMode",
    "MirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "Server",
    "Strategy",
    "StrategyExtended",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

publish(sys.modules[__name__], "distribute")  # estimators import it before a program asks for it
