"""`Barrier`, as programs use it."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.tensor_shape import UNKNOWN
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.queues import Shapes, Types, as_shape_list, as_type_list
from tfray.ops.dataflow import barrier_ops
from tfray.ops.dataflow.resource_operations import make_resource, use_resource


class Barrier:
    """Joins components that come at different times, or from different places, by their keys.

    Args:
        types: Dtype of each component of an element.
        shapes: Shape of each component; None when it is not known.
        shared_name: Barriers of equal shared names on one device are one, across sessions.
        name: Name of the barrier's operation.

    Raises:
        ValueError: A shape is not fully known, or has no elements, or the lists differ in length.
    """

    def __init__(
        self, types: Types, shapes: Shapes = None, shared_name: str | None = None, name: str | None = "barrier"
    ) -> None:
        self._types = as_type_list(types)
        self._shapes = as_shape_list(shapes, len(self._types))
        for index, shape in enumerate(self._shapes):
            if shape.rank is not None and 0 in shape.sizes:
                raise ValueError(
                    f"Empty tensors are not supported, but received shape '{tuple(shape.sizes)}' at index {index}"
                )
        attrs = {"component_types": list(self._types), "shapes": list(self._shapes)}
        self._barrier_ref = make_resource(barrier_ops.BARRIER, name, shared_name, **attrs)
        self._name = self._barrier_ref.op.name.rpartition("/")[2]

    @property
    def barrier_ref(self) -> Tensor:
        """The handle of the barrier."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        """Name of the barrier's operation."""
        return self._barrier_ref.op.name

    def insert_many(
        self, component_index: int, keys: TensorLike, values: TensorLike, name: str | None = None
    ) -> Operation:
        """An operation that gives one component of several elements.

        Args:
            component_index: Which component.
            keys: String vector: the elements' keys.
            values: The component of each, along the first axis.
            name: Name of the operation.

        Raises:
            ValueError: There is no such component.
            InvalidArgumentError: While running: one has been given already.
            CancelledError: While running: the barrier is closed, and a key is new.
        """
        if not 0 <= component_index < len(self._types):
            raise ValueError(f"the barrier has {len(self._types)} components, and none with index {component_index}")
        keys = convert_to_tensor(keys, dtypes.string)
        values = convert_to_tensor(values, self._types[component_index])
        name, insert_many = name or f"{self._name}_BarrierInsertMany", barrier_ops.BARRIER_INSERT_MANY
        return use_resource(
            insert_many, self._barrier_ref, keys, values, name=name, component_index=int(component_index)
        )

    def take_many(
        self, num_elements: TensorLike, allow_small_batch: bool = False, timeout: None = None, name: str | None = None
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Take complete elements in the order in which their keys came, waiting until there are enough.

        Args:
            num_elements: int32 scalar.
            allow_small_batch: When the barrier is closed and has fewer elements, take those, if there are any.
            timeout: Accepted for TensorFlow 1's sake, without effect: give the step a timeout.
            name: Name of the operation.

        Returns:
            Indices that tell in which order the keys came, the keys, and the list of the components.

        Raises:
            OutOfRangeError: While running: the barrier is closed, and there will not be enough.
        """
        name = name or f"{self._name}_BarrierTakeMany"
        attrs = {
            "component_types": list(self._types),
            "shapes": list(self._shapes) or [UNKNOWN] * len(self._types),
            "allow_small_batch": bool(allow_small_batch),
        }
        indices, keys, *values = use_resource(
            barrier_ops.BARRIER_TAKE_MANY, self._barrier_ref, num_elements, name=name, **attrs
        )
        return indices, keys, values

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An operation that closes the barrier: elements that have begun can be completed, but no new ones added.

        Args:
            cancel_pending_enqueues: Forget elements that are not complete.
            name: Name of the operation.
        """
        attrs = {"cancel_pending_enqueues": bool(cancel_pending_enqueues)}
        name = name or f"{self._name}_BarrierClose"
        return use_resource(barrier_ops.BARRIER_CLOSE, self._barrier_ref, name=name, **attrs)

    def ready_size(self, name: str | None = None) -> Tensor:
        """Number of complete elements: an int32 scalar.

        Args:
            name: Name of the operation.
        """
        name = name or f"{self._name}_BarrierReadySize"
        return use_resource(barrier_ops.BARRIER_READY_SIZE, self._barrier_ref, name=name)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """Number of elements of which components are missing: an int32 scalar.

        Args:
            name: Name of the operation.
        """
        name = name or f"{self._name}_BarrierIncompleteSize"
        return use_resource(barrier_ops.BARRIER_INCOMPLETE_SIZE, self._barrier_ref, name=name)
