"""`tf.contrib.staging.StagingArea` and its form with keys, as programs use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import OpDef
from tfray.framework.tensor_shape import UNKNOWN, ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.queues import Names, Types, as_name_list, as_type_list
from tfray.ops.arrays.grouping_ops import no_op
from tfray.ops.arrays.shape_ops import identity
from tfray.ops.dataflow import staging_ops
from tfray.ops.dataflow.resource_operations import make_resource, use_resource

Indices = Sequence[int | str] | None


class BaseStagingArea:
    """What staging areas have in common."""

    def __init__(
        self,
        definition: OpDef,
        types: Types,
        shapes: Sequence[ShapeLike] | None,
        names: Names,
        shared_name: str | None,
        capacity: int,
        memory_limit: int,
        **more: bool,
    ) -> None:
        self._dtypes = as_type_list(types)
        count = len(self._dtypes)
        self._shapes = [UNKNOWN] * count if shapes is None else [TensorShape(shape) for shape in shapes]
        if len(self._shapes) != count:
            raise ValueError(f"there are {count} components and {len(self._shapes)} shapes; give one shape for each")
        self._names = as_name_list(names, count)
        self._capacity, self._memory_limit = capacity, memory_limit
        limits = {"capacity": int(capacity), "memory_limit": int(memory_limit), "component_count": count}
        self._handle = make_resource(definition, None, shared_name, **limits, **more)
        self._name = self._handle.op.name.rpartition("/")[2]

    @property
    def name(self) -> str:
        """Name of the staging area's operation."""
        return self._handle.op.name

    @property
    def dtypes(self) -> list[DType]:
        """Dtypes of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """Shapes of the components, as far as they are known."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """Names of the components, or None."""
        return self._names

    @property
    def capacity(self) -> int:
        """Largest number of elements; 0 for no limit."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """Largest number of bytes; 0 for no limit."""
        return self._memory_limit

    def size(self, name: str | None = None) -> Tensor:
        """Number of complete elements: an int32 scalar.

        Args:
            name: Name of the operation.
        """
        return use_resource(staging_ops.STAGE_SIZE, self._handle, name=name or f"{self._name}_size")

    def clear(self, name: str | None = None) -> Operation:
        """An operation that drops all elements.

        Args:
            name: Name of the operation.
        """
        return use_resource(staging_ops.STAGE_CLEAR, self._handle, name=name or f"{self._name}_clear")

    def _values(self, values: Any, indices: Indices) -> tuple[list[int], list[Tensor]]:
        """The places of components, and the components as tensors."""
        if isinstance(values, Mapping):
            if self._names is None:
                raise ValueError("the staging area has no names for components: pass a list, not a dictionary")
            places = self._places(list(values))
            items = list(values.values())
        else:
            if self._names is not None:
                raise ValueError(f"the staging area has components {self._names}: pass a dictionary of them")
            items = list(values) if isinstance(values, (list, tuple)) else [values]
            places = self._places(indices)
        if len(items) != len(places):
            raise ValueError(f"got {len(items)} values for {len(places)} components")
        tensors = [convert_to_tensor(item, self._dtypes[place]) for item, place in zip(items, places, strict=True)]
        for tensor, place in zip(tensors, places, strict=True):
            tensor.shape.assert_is_compatible_with(self._shapes[place])
        return places, tensors

    def _places(self, indices: Indices) -> list[int]:
        if indices is None:
            return list(range(len(self._dtypes)))
        places: list[int] = []
        for index in indices:
            if isinstance(index, str):
                if self._names is None or index not in self._names:
                    raise ValueError(f"the staging area has no component {index!r}; it has {self._names}")
                places.append(self._names.index(index))
            elif 0 <= index < len(self._dtypes):
                places.append(int(index))
            else:
                raise ValueError(f"the staging area has {len(self._dtypes)} components, and none with index {index}")
        return places

    def _result(self, tensors: Sequence[Tensor], places: Sequence[int]) -> Any:
        if no_op().device != self._handle.op.device:
            # They come from where the area is, and are wanted on the device of the caller.
            tensors = [identity(tensor) for tensor in tensors]
        if self._names is not None:
            return {self._names[place]: tensor for place, tensor in zip(places, tensors, strict=True)}
        return list(tensors)

    def _types_and_shapes(self, places: Sequence[int]) -> dict[str, Any]:
        """What operations that take these components are told of them."""
        return {"types": [self._dtypes[place] for place in places], "shapes": [self._shapes[place] for place in places]}


class StagingArea(BaseStagingArea):
    """A first-in-first-out buffer on a device: one step puts what a later one gets, while it computes.

    Args:
        dtypes: Dtype of each component of an element.
        shapes: Shape of each component, as far as it is known.
        names: Name of each component: elements are then dictionaries.
        shared_name: Staging areas of equal shared names on one device are one, across sessions.
        capacity: Largest number of elements; 0 for no limit.
        memory_limit: Largest number of bytes; 0 for no limit.
    """

    def __init__(
        self,
        dtypes: Types,
        shapes: Sequence[ShapeLike] | None = None,
        names: Names = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(staging_ops.STAGING_AREA, dtypes, shapes, names, shared_name, capacity, memory_limit)

    def put(self, values: Any, name: str | None = None) -> Operation:
        """An operation that adds an element, waiting for room.

        Args:
            values: The components: one value, a list, or a dictionary where components have names.
            name: Name of the operation.

        Raises:
            ValueError: Values do not fit.
        """
        with get_default_graph().name_scope(name or f"{self._name}_put") as scope:
            places, tensors = self._values(values, None)
            if len(places) < len(self._dtypes):
                raise ValueError(f"the staging area has components {self._names}, got {sorted(values)}")
            ordered = [tensors[places.index(place)] for place in range(len(places))]
            return use_resource(staging_ops.STAGE, self._handle, ordered, name=scope)

    def get(self, name: str | None = None) -> Any:
        """Take the first element, waiting for one.

        Args:
            name: Name of the operation.

        Returns:
            The list of its components, or a dictionary where they have names.
        """
        attrs = self._types_and_shapes(range(len(self._dtypes)))
        tensors = use_resource(staging_ops.UNSTAGE, self._handle, name=name or f"{self._name}_get", **attrs)
        return self._result(tensors, range(len(tensors)))

    def peek(self, index: TensorLike, name: str | None = None) -> Any:
        """Look at an element, waiting until it is there.

        Args:
            index: int32 scalar: its place from the first.
            name: Name of the operation.

        Returns:
            As of `get`.
        """
        attrs = self._types_and_shapes(range(len(self._dtypes)))
        tensors = use_resource(staging_ops.STAGE_PEEK, self._handle, index, name=name or f"{self._name}_peek", **attrs)
        return self._result(tensors, range(len(tensors)))


class MapStagingArea(BaseStagingArea):
    """A buffer of elements by key on a device. The components of an element may come, and be taken, one by one.

    Args:
        dtypes: Dtype of each component of an element.
        shapes: Shape of each component, as far as it is known.
        names: Name of each component: elements are then dictionaries.
        shared_name: Staging areas of equal shared names on one device are one, across sessions.
        ordered: Whether `get` without a key takes the element of the smallest key.
        capacity: Largest number of complete elements; 0 for no limit.
        memory_limit: Largest number of bytes of complete elements; 0 for no limit.
    """

    def __init__(
        self,
        dtypes: Types,
        shapes: Sequence[ShapeLike] | None = None,
        names: Names = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        definition = staging_ops.MAP_STAGING_AREA
        super().__init__(definition, dtypes, shapes, names, shared_name, capacity, memory_limit, ordered=bool(ordered))

    def put(
        self,
        key: TensorLike,
        vals: TensorLike | Mapping[str, TensorLike],
        indices: Indices = None,
        name: str | None = None,
    ) -> Operation:
        """An operation that adds components of the element of a key; waits for room once it is complete.

        Args:
            key: int64 scalar.
            vals: The components: a list, or a dictionary where components have names.
            indices: Places of the components in a list; None for all.
            name: Name of the operation.

        Raises:
            ValueError: Values do not fit.
            InvalidArgumentError: While running: there is such a component already.
        """
        with get_default_graph().name_scope(name or f"{self._name}_put") as scope:
            places, tensors = self._values(vals, indices)
            return use_resource(staging_ops.MAP_STAGE, self._handle, _key(key), tensors, name=scope, indices=places)

    def get(self, key: TensorLike | None = None, indices: Indices = None, name: str | None = None) -> Any:
        """Take components of the element of a key, or of any, waiting until it is complete.

        Args:
            key: int64 scalar; None for any element.
            indices: Places or names of the components; None for all.
            name: Name of the operation.

        Returns:
            A pair: the key, and the list of the components, or a dictionary where they have names.

        Raises:
            InvalidArgumentError: While running: one of them was taken already.
        """
        places = self._places(indices)
        attrs = {"indices": places, **self._types_and_shapes(places)}
        name = name or f"{self._name}_get"
        if key is not None:
            tensors = use_resource(staging_ops.MAP_UNSTAGE, self._handle, _key(key), name=name, **attrs)
            return key, self._result(tensors, places)
        key, *tensors = use_resource(staging_ops.MAP_UNSTAGE_NO_KEY, self._handle, name=name, **attrs)
        return key, self._result(tensors, places)

    def peek(self, key: TensorLike, indices: Indices = None, name: str | None = None) -> Any:
        """Look at components of the element of a key, waiting until it is complete.

        Args:
            key: int64 scalar.
            indices: Places or names of the components; None for all.
            name: Name of the operation.

        Returns:
            The components, as `get` gives them.
        """
        places = self._places(indices)
        attrs = {"indices": places, **self._types_and_shapes(places)}
        name = name or f"{self._name}_peek"
        return self._result(use_resource(staging_ops.MAP_PEEK, self._handle, _key(key), name=name, **attrs), places)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """Number of elements of which components are missing: an int32 scalar.

        Args:
            name: Name of the operation.
        """
        name = name or f"{self._name}_incomplete_size"
        return use_resource(staging_ops.MAP_INCOMPLETE_SIZE, self._handle, name=name)


def _key(key: TensorLike) -> Tensor:
    return convert_to_tensor(key, dtypes.int64)
