"""How values of replicas become one, and where: `ReduceOp` and the classes of cross-device operations."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from tfray.distribute.values import PerReplica
from tfray.framework.device_spec import canonical_name
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.variables.variables import Variable, VariableAggregation
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops


class ReduceOp(enum.Enum):
    """How values of replicas become one: their sum, or their mean."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: VariableAggregation) -> ReduceOp:
        """The operation of a `tf.VariableAggregation`.

        Raises:
            ValueError: It is neither ``SUM`` nor ``MEAN``.
        """
        if aggregation not in (VariableAggregation.SUM, VariableAggregation.MEAN):
            raise ValueError(f"Could not convert from {aggregation} to a tf.distribute.ReduceOp: expected SUM or MEAN")
        return ReduceOp[aggregation.name]

    @staticmethod
    def of(value: ReduceOp | str) -> ReduceOp:
        """An operation, or that of a name in any case. Raises `ValueError` for other names, or `TypeError`."""
        name = value.upper() if isinstance(value, str) else getattr(value, "name", "")
        if name in ReduceOp.__members__:
            return ReduceOp[name]
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"Expected `reduce_op` to be a `tf.distribute.ReduceOp`, SUM or MEAN, not: {value!r}")


def device_of(destinations: Any) -> str | None:
    """The device of `destinations`: its name, a variable or tensor there, or several; None for any."""
    if destinations is None or isinstance(destinations, str):
        return destinations
    if isinstance(destinations, (list, tuple)):
        return device_of(destinations[0]) if destinations else None
    if isinstance(destinations, PerReplica):
        return device_of(destinations.values[0])
    if isinstance(destinations, Variable):
        return destinations.device or None
    return getattr(destinations, "device", None) or None


class CrossDeviceOps:
    """Base of the classes that make one value of those of the replicas.

    A derived class implements `reduce_implementation`, and `batch_reduce_implementation` where it can do better for
    several values at once.
    """

    def reduce(self, reduce_op: ReduceOp | str, per_replica_value: Any, destinations: Any) -> Any:
        """The sum or mean of the replicas' values, on the destination.

        Args:
            reduce_op: `ReduceOp`, or its name.
            per_replica_value: The values, as ``experimental_run_v2`` returns them. One that is the same for all
                replicas stands for itself.
            destinations: A device, or a variable or tensor there.

        Returns:
            A tensor, or `IndexedSlices` for such values.
        """
        reduce_op = ReduceOp.of(reduce_op)
        if not isinstance(per_replica_value, PerReplica):
            return per_replica_value
        if len(per_replica_value.values) == 1:
            return per_replica_value.values[0]
        return self.reduce_implementation(reduce_op, per_replica_value, destinations)

    def batch_reduce(self, reduce_op: ReduceOp | str, value_destination_pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
        """`reduce` of several values.

        Args:
            reduce_op: `ReduceOp`, or its name.
            value_destination_pairs: Pairs of value and destination.

        Returns:
            The reduced values.

        Raises:
            ValueError: It is no sequence of pairs.
        """
        pairs = list(value_destination_pairs)
        if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
            raise ValueError("`value_destination_pairs` is expected to be a list of pairs: (value, destination)")
        if all(isinstance(value, PerReplica) and len(value.values) > 1 for value, _ in pairs):
            return self.batch_reduce_implementation(ReduceOp.of(reduce_op), pairs)
        return [self.reduce(reduce_op, value, destination) for value, destination in pairs]

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """A tensor, on the destination.

        Args:
            tensor: The tensor.
            destinations: A device, or a variable or tensor there.

        Returns:
            The tensor there.
        """
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(self, reduce_op: ReduceOp, per_replica_value: PerReplica, destinations: Any) -> Any:
        """What `reduce` returns for the values of several replicas; a derived class says how."""
        raise NotImplementedError(f"{type(self).__name__} has to implement reduce_implementation")

    def batch_reduce_implementation(
        self, reduce_op: ReduceOp, value_destination_pairs: Sequence[tuple[PerReplica, Any]]
    ) -> list[Any]:
        """What `batch_reduce` returns for the values of several replicas: each reduced by itself."""
        return [self.reduce_implementation(reduce_op, *pair) for pair in value_destination_pairs]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """What `broadcast` returns. A tensor is sent where it is needed, so this is an identity there."""
        with get_default_graph().device(device_of(destinations) or ""):
            return array_ops.identity(tensor)


class ReductionToOneDevice(CrossDeviceOps):
    """Sends all values to one device and adds them there.

    Args:
        reduce_to_device: The device; the destination when None.
        accumulation_fn: Function that adds a list of tensors; `tf.add_n` when None.
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[[list[Any]], Any] | None = None
    ) -> None:
        self.reduce_to_device = None if reduce_to_device is None else canonical_name(reduce_to_device)
        self.accumulation_fn = accumulation_fn or math_ops.add_n

    def reduce_implementation(self, reduce_op: ReduceOp, per_replica_value: PerReplica, destinations: Any) -> Any:
        """The sum or mean of the values. Of `IndexedSlices` the sum is all their rows, in the order of the replicas."""
        values = per_replica_value.values
        with get_default_graph().device(self.reduce_to_device or device_of(destinations) or ""):
            if all(isinstance(value, IndexedSlices) for value in values):
                return _rows_of_all(values, reduce_op)
            total = self.accumulation_fn([_dense(value) for value in values])
            return total / len(values) if reduce_op is ReduceOp.MEAN else total


class NcclAllReduce(ReductionToOneDevice):
    """For programs that choose it. The values are added on their destination, as `ReductionToOneDevice` does it.

    A graph's devices exchange tensors in whichever way is best between them, so that there is nothing to choose here.

    Args:
        num_packs: Into how many packs TensorFlow packs the values; not used.
    """

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__()
        self.num_packs = num_packs


class HierarchicalCopyAllReduce(NcclAllReduce):
    """For programs that choose it; as `NcclAllReduce`.

    Args:
        num_packs: Into how many packs TensorFlow packs the values; not used.
    """


def _dense(value: Any) -> Any:
    return value if isinstance(value, Tensor) else array_ops.identity(value)


def _rows_of_all(slices: Sequence[IndexedSlices], reduce_op: ReduceOp) -> IndexedSlices:
    rows = array_ops.concat([each.values for each in slices], 0)
    if reduce_op is ReduceOp.MEAN:
        rows = rows / len(slices)
    return IndexedSlices(rows, array_ops.concat([each.indices for each in slices], 0), slices[0].dense_shape)
