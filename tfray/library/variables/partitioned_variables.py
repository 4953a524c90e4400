"""Variables cut into parts along one dimension, each of which may live on a device of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tfray.framework.arguments import Count, Positive, checked
from tfray.framework.convert import convert_to_tensor, register_tensor_conversion_function
from tfray.framework.dtypes import DType, DTypeLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.shape_ops import identity

_CUT_FROM: Final = 1.25
"""A variable is cut only when it is larger than this multiple of a shard's fair share of the model's bytes."""

Partitioner = Callable[..., Sequence[int]]
"""``partitioner(shape=, dtype=)``: the number of parts along each dimension, at most one of them above 1."""


class PartitionedVariable:
    """The parts of a variable as one value. Where a tensor is wanted it is their concatenation.

    Iterating over it, or passing it to `tf.nn.embedding_lookup`, uses the parts where they are.

    Args:
        name: Name of the whole.
        shape: Shape of the whole.
        dtype: Dtype.
        variable_list: The parts; each knows by its `SaveSliceInfo` where it belongs.
        partitions: Number of parts along each dimension.

    Raises:
        ValueError: There are no parts, or not as many as `partitions` make, or one is of another whole.
    """

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DType,
        variable_list: Sequence[Variable],
        partitions: Sequence[int],
    ) -> None:
        if not variable_list:
            raise ValueError(f"{name!r}: variable_list is empty, expected at least one part")
        if min(partitions, default=1) < 1:
            raise ValueError(f"{name!r}: partitions are {list(partitions)}, and must be positive")
        if math.prod(partitions) != len(variable_list):
            raise ValueError(f"{name!r}: partitions {list(partitions)} make other than {len(variable_list)} parts")
        for part in variable_list:
            info = part._get_save_slice_info()
            if info is None:
                raise ValueError(f"{name!r}: {part!r} must have a save_slice_info, which says where it belongs")
            if list(info.full_shape) != TensorShape(shape).as_list():
                raise ValueError(f"{name!r}: full shapes must match: {part!r} is of {info.full_shape}, not of {shape}")
        self.name = name
        self.dtype = dtype
        self.partitions = list(partitions)
        self._shape = TensorShape(shape)
        self._parts = sorted(variable_list, key=lambda part: tuple(part._get_save_slice_info().var_offset))
        self._as_tensor: Tensor | None = None

    @property
    def shape(self) -> TensorShape:
        """Shape of the whole."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Shape of the whole (TensorFlow 1's spelling of `shape`)."""
        return self._shape

    @property
    def trainable(self) -> bool:
        """Whether optimizers train its parts by default."""
        return self._parts[0].trainable

    @property
    def axis(self) -> int:
        """The dimension along which it is cut."""
        return next((axis for axis, count in enumerate(self.partitions) if count > 1), 0)

    def _get_partitions(self) -> list[int]:
        return list(self.partitions)

    def _get_variable_list(self) -> list[Variable]:
        return list(self._parts)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def as_tensor(self) -> Tensor:
        """The whole, concatenated: each part is moved once per step."""
        graph = get_default_graph()
        if graph is not self._parts[0].graph or graph.has_control_scope:
            return self._concatenated()
        if self._as_tensor is None:
            with graph.name_scope(f"{self.name}/ConcatPartitions/"), graph.control_dependencies(None):
                whole = self._concatenated()
            with graph.name_scope(None), graph.control_dependencies(None):
                self._as_tensor = identity(whole, name=self.name)
        return self._as_tensor

    def _concatenated(self) -> Tensor:
        values = [part.value() for part in self._parts]
        return values[0] if len(values) == 1 else array_ops.concat(values, self.axis, "concat")

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Set the whole, by a value of its shape or a list of the parts' values.

        Returns the new values of the parts, or one operation without `read_value`.
        """
        return self._update("assign", value, read_value)

    def assign_add(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to the whole; arguments and result as for `assign`."""
        return self._update("assign_add", value, read_value)

    def assign_sub(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from the whole; arguments and result as for `assign`."""
        return self._update("assign_sub", value, read_value)

    def _update(self, method: str, value: TensorLike, read_value: bool) -> Any:
        values = self._distributed(value)
        updates = [getattr(part, method)(part_value) for part, part_value in zip(self._parts, values, strict=True)]
        return updates if read_value else group(*updates)

    def _distributed(self, value: Any) -> Sequence[Tensor]:
        """The values of the parts: `value` cut as the whole is, or itself if it is a list of these."""
        if isinstance(value, (list, PartitionedVariable)) and len(value) == len(self._parts):
            values = [convert_to_tensor(part, self.dtype) for part in value]
            if all(each.shape.rank == self._shape.rank for each in values):
                return values
        value = convert_to_tensor(value, self.dtype)
        if len(self._parts) == 1:
            return [value]
        return array_ops.split(value, [int(part.shape[self.axis]) for part in self._parts], self.axis)

    def __repr__(self) -> str:
        return f"<tf.PartitionedVariable '{self.name}' shape={self._shape} dtype={self.dtype.name} parts={len(self)}>"


def _partitioned_to_tensor(
    value: PartitionedVariable, dtype: DTypeLike | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    return value.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _partitioned_to_tensor)


def slices_of(shape: Sequence[int], partitions: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Offset and shape of each part. The first parts are larger by one where the size does not divide.

    Raises:
        ValueError: There are more parts than elements along a dimension, or parts along several dimensions.
    """
    if len(partitions) != len(shape) or any(count < 1 for count in partitions):
        raise ValueError(f"partitions {list(partitions)} do not fit shape {list(shape)}: one positive number for each")
    cut = [axis for axis, count in enumerate(partitions) if count > 1]
    if len(cut) > 1:
        raise ValueError(f"partitions {list(partitions)} cut along several dimensions: only one may be cut")
    if not cut:
        return [([0] * len(shape), list(shape))]
    axis = cut[0]
    size, rest = divmod(shape[axis], partitions[axis])
    if size == 0:
        raise ValueError(f"cannot cut {shape[axis]} rows (dimension {axis}) into {partitions[axis]} parts")
    parts, offset = [], 0
    for index in range(partitions[axis]):
        length = size + (index < rest)
        parts.append(
            (
                [offset if i == axis else 0 for i in range(len(shape))],
                [length if i == axis else full for i, full in enumerate(shape)],
            )
        )
        offset += length
    return parts


# -- how to cut ------------------------------------------------------------------------------------------


@checked
def fixed_size_partitioner(num_shards: Positive, axis: int = 0) -> Partitioner:
    """Cut every variable into `num_shards` parts along `axis` (fewer where it has fewer rows)."""

    def partitioner(shape: Sequence[int] | TensorShape, dtype: DType, **unused: object) -> list[int]:
        return _along(axis, shape, min(num_shards, int(shape[axis])))

    return partitioner


@checked
def variable_axis_size_partitioner(
    max_shard_bytes: Positive,
    axis: int = 0,
    bytes_per_string_element: Positive = 16,
    max_shards: Positive | None = None,
) -> Partitioner:
    """Cut along `axis` into as few parts as keep each within `max_shard_bytes`.

    Args:
        max_shard_bytes: Most bytes of one part.
        axis: The dimension to cut.
        bytes_per_string_element: What one string is taken to need.
        max_shards: Most parts; None for any number.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1 or (max_shards is not None and max_shards < 1):
        raise ValueError("max_shard_bytes, bytes_per_string_element and max_shards must be positive")

    def partitioner(shape: Sequence[int] | TensorShape, dtype: DType, **unused: object) -> list[int]:
        sizes = TensorShape(shape).as_list()
        row_bytes = _size_bytes(shape, dtype, bytes_per_string_element) // max(1, int(shape[axis]))
        rows = max(1, max_shard_bytes // max(1, row_bytes))
        shards = max(1, -(-int(sizes[axis] or 0) // rows))
        return _along(axis, shape, shards if max_shards is None else min(shards, max_shards))

    return partitioner


@checked
def min_max_variable_partitioner(
    max_partitions: Positive = 1,
    axis: int = 0,
    min_slice_size: Positive = 256 << 10,
    bytes_per_string_element: Positive = 16,
) -> Partitioner:
    """Cut along `axis` into as many parts, at most `max_partitions`, as keep each at `min_slice_size` bytes or more."""
    if max_partitions < 1 or min_slice_size < 1 or bytes_per_string_element < 1:
        raise ValueError("max_partitions, min_slice_size and bytes_per_string_element must be positive")

    def partitioner(shape: Sequence[int] | TensorShape, dtype: DType, **unused: object) -> list[int]:
        parts = -(-_size_bytes(shape, dtype, bytes_per_string_element) // min_slice_size)
        return _along(axis, shape, max(1, min(parts, max_partitions, int(shape[axis]))))

    return partitioner


@checked
def balancing_partitioner(
    total_bytes: Count,
    num_shards: Positive,
    min_slice_size: Positive = 64 << 10,
    bytes_per_string_element: Positive = 16,
) -> Partitioner:
    """Cut variables that are larger than one shard's fair share of a model, along the first dimension.

    Args:
        total_bytes: Bytes of all variables of the model.
        num_shards: Number of parameter servers.
        min_slice_size: Bytes that each part has at least.
        bytes_per_string_element: What one string is taken to need.
    """
    share = max(1.0, total_bytes / num_shards)

    def partitioner(shape: Sequence[int] | TensorShape, dtype: DType, **unused: object) -> list[int]:
        size_bytes = _size_bytes(shape, dtype, bytes_per_string_element)
        if len(shape) == 0 or size_bytes <= _CUT_FROM * share:
            return [1] * len(shape)
        parts = min(math.ceil(size_bytes / share), num_shards, int(shape[0]), size_bytes // min_slice_size)
        return _along(0, shape, max(1, parts))

    return partitioner


def _along(axis: int, shape: Sequence[int] | TensorShape, count: int) -> list[int]:
    partitions = [1] * len(shape)
    partitions[axis] = count
    return partitions


def _size_bytes(shape: Sequence[int] | TensorShape, dtype: DType, bytes_per_string: int) -> int:
    element = bytes_per_string if dtype.kind == "string" else dtype.size
    return math.prod([int(size) for size in shape]) * element
