"""`tf.contrib.slim.tfexample_decoder`: from serialised examples to the items that a program asks for.

An example is parsed once into tensors, by feature. A handler makes an item, such as an image, from some of these.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.framework import dtypes
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.sparse_tensor import SparseTensor as SparseValue
from tfray.framework.tensor_shape import ShapeLike
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.shape_ops import cast, reshape, shape, transpose
from tfray.ops.control.control_flow_ops import case, cond
from tfray.ops.control.functional_ops import map_fn
from tfray.ops.image.image_codec_ops import decode_image, decode_jpeg, is_jpeg
from tfray.ops.math.comparison_ops import equal, logical_or
from tfray.ops.math.reduction_ops import reduce_prod
from tfray.ops.sparse.sparse_layout_ops import sparse_reshape
from tfray.ops.sparse.sparse_ops import sparse_tensor_to_dense
from tfray.ops.strings.decoding_ops import decode_raw
from tfray.ops.strings.parsing_ops import FixedLenFeature, parse_single_example

# fmt: off
__all__ = [
    "BackupHandler", "BoundingBox", "DataDecoder", "Image", "ItemHandler", "ItemHandlerCallback", "LookupTensor",
    "SparseTensor", "TFExampleDecoder", "Tensor",
]
# fmt: on

Features = Mapping[str, Any]
"""The tensors of an example, dense or sparse, by the names of their features."""


class DataDecoder(abc.ABC):
    """What turns a record into items."""

    @abc.abstractmethod
    def decode(self, data: TensorLike, items: Sequence[str]) -> list[Any]:
        """The tensors of the named items of a record."""

    @abc.abstractmethod
    def list_items(self) -> list[str]:
        """The names of all items."""


class ItemHandler(abc.ABC):
    """Makes one item from some features of an example.

    Args:
        keys: Names of the features: a string or several.
    """

    def __init__(self, keys: str | Sequence[str]) -> None:
        self._keys = [keys] if isinstance(keys, str) else list(keys)

    @property
    def keys(self) -> list[str]:
        """Names of the features."""
        return self._keys

    @abc.abstractmethod
    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        """The item, from the parsed features by name."""


class ItemHandlerCallback(ItemHandler):
    """An item that a function makes.

    Args:
        keys: Names of the features.
        func: From the parsed features by name to the item.
    """

    def __init__(self, keys: str | Sequence[str], func: Callable[[Features], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        return self._func(keys_to_tensors)


class BoundingBox(ItemHandler):
    """Boxes, shape ``[boxes, 4]``, from four features of shape ``[boxes]``.

    Args:
        keys: Names of the four features in the order of the result; ymin, xmin, ymax, xmax when None.
        prefix: What each name begins with.

    Raises:
        ValueError: There are not four keys.
    """

    def __init__(self, keys: Sequence[str] | None = None, prefix: str = "") -> None:
        names = ["ymin", "xmin", "ymax", "xmax"] if keys is None else list(keys)
        if len(names) != 4:
            raise ValueError(f"BoundingBox takes 4 keys, not {len(names)}: {names}")
        super().__init__([prefix + name for name in names])

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        sides = [keys_to_tensors[key] for key in self._keys]
        return transpose(stack([side.values if isinstance(side, SparseValue) else side for side in sides]))


class Tensor(ItemHandler):
    """A dense tensor.

    Args:
        tensor_key: Name of its feature.
        shape_keys: Names of the features that hold its shape, or its sizes one by one; None to keep the shape.
        shape: Its shape, where that is known.
        default_value: What absent elements of a feature of any length are.

    Raises:
        ValueError: Both `shape_keys` and `shape` are given.
    """

    def __init__(
        self,
        tensor_key: str,
        shape_keys: str | Sequence[str] | None = None,
        shape: ShapeLike = None,
        default_value: TensorLike = 0,
    ) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Tensor takes shape_keys or shape, not both")
        names = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or ())
        super().__init__([tensor_key, *names])
        self._tensor_key = tensor_key
        self._shape_keys = names
        self._shape = shape
        self._default_value = default_value

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        tensor = keys_to_tensors[self._tensor_key]
        wanted: Any = self._shape
        if self._shape_keys:
            wanted = reshape(stack([_dense(keys_to_tensors[key]) for key in self._shape_keys]), [-1])
        if not isinstance(tensor, SparseValue):
            return tensor if wanted is None else reshape(tensor, wanted)
        if wanted is not None:
            tensor = sparse_reshape(tensor, wanted)
        return sparse_tensor_to_dense(tensor, self._default_value)


def _dense(value: TensorLike | SparseValue) -> Any:
    return sparse_tensor_to_dense(value) if isinstance(value, SparseValue) else value


class LookupTensor(Tensor):
    """A dense tensor of what a table has for the elements of a feature, such as the numbers of labels.

    Args:
        tensor_key: As for `Tensor`.
        table: A table of `tf.lookup`.
        shape_keys: As for `Tensor`.
        shape: As for `Tensor`.
        default_value: As for `Tensor`; it is looked up too.
    """

    def __init__(
        self,
        tensor_key: str,
        table: Any,
        shape_keys: str | Sequence[str] | None = None,
        shape: ShapeLike = None,
        default_value: TensorLike = "",
    ) -> None:
        super().__init__(tensor_key, shape_keys, shape, default_value)
        self._table = table

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """The item of one handler, or that of another where the first has no elements.

    Args:
        handler: The first.
        backup: The other; its items have the same dtype.

    Raises:
        ValueError: One is no `ItemHandler`.
    """

    def __init__(self, handler: ItemHandler, backup: ItemHandler) -> None:
        for each in (handler, backup):
            if not isinstance(each, ItemHandler):
                raise ValueError(f"BackupHandler takes two handlers, not {each!r}")
        super().__init__([*handler.keys, *backup.keys])
        self._handler = handler
        self._backup = backup

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        item = self._handler.tensors_to_item(keys_to_tensors)
        is_empty = equal(reduce_prod(shape(item)), 0)
        return cond(is_empty, lambda: self._backup.tensors_to_item(keys_to_tensors), lambda: item)


class SparseTensor(ItemHandler):
    """A sparse tensor from a feature of positions along the last dimension, and one of the values there.

    Args:
        indices_key: Name of the feature of positions; ``indices`` when None.
        values_key: Name of the feature of values; ``values`` when None.
        shape_key: Name of the feature that holds the shape.
        shape: The shape, where that is known; that of the feature of positions when both are None.
        densify: Give a dense tensor.
        default_value: What its other elements are.
    """

    def __init__(
        self,
        indices_key: str | None = None,
        values_key: str | None = None,
        shape_key: str | None = None,
        shape: ShapeLike = None,
        densify: bool = False,
        default_value: TensorLike = 0,
    ) -> None:
        self._indices_key, self._values_key = indices_key or "indices", values_key or "values"
        super().__init__([self._indices_key, self._values_key, *([shape_key] if shape_key else [])])
        self._shape_key = shape_key
        self._shape = shape
        self._densify = densify
        self._default_value = default_value

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        positions, values = keys_to_tensors[self._indices_key], keys_to_tensors[self._values_key]
        whole = self._shape or positions.dense_shape
        if self._shape_key:
            whole = _dense(keys_to_tensors[self._shape_key])
        last = reshape(cast(positions.values, dtypes.int64), [-1, 1])
        indices = concat([positions.indices[:, :-1], last], 1)
        tensor = SparseValue(indices, values.values, whole)
        return sparse_tensor_to_dense(tensor, self._default_value) if self._densify else tensor


class Image(ItemHandler):
    """An image, shape ``[height, width, channels]``.

    Args:
        image_key: Name of the feature with the encoded image; ``image/encoded`` when None.
        format_key: Name of the feature with its format, of which ``raw`` and ``RAW`` say that it is not encoded;
            ``image/format`` when None.
        shape: Its shape, where all images have the same.
        channels: The number of channels.
        dtype: Dtype of the result.
        repeated: The feature holds several images: the result has one dimension more, in front.
        dct_method: As for `tf.image.decode_jpeg`.
    """

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: ShapeLike = None,
        channels: int = 3,
        dtype: DTypeLike = dtypes.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        self._image_key, self._format_key = image_key or "image/encoded", format_key or "image/format"
        super().__init__([self._image_key, self._format_key])
        self._shape = shape
        self._channels = channels
        self._dtype = as_dtype(dtype)
        self._repeated = repeated
        self._dct_method = dct_method

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        encoded, form = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        if self._repeated:
            return map_fn(lambda each: self._decoded(each, form), encoded, dtype=self._dtype)
        return self._decoded(encoded, form)

    def _decoded(self, encoded: TensorLike, form: TensorLike) -> Any:
        def of_jpeg() -> Any:
            return cast(decode_jpeg(encoded, self._channels, dct_method=self._dct_method), self._dtype)

        def of_others() -> Any:
            return cast(decode_image(encoded, self._channels), self._dtype)

        is_raw = logical_or(equal(form, "raw"), equal(form, "RAW"))
        image = case(
            [(is_raw, lambda: decode_raw(encoded, self._dtype))],
            default=lambda: cond(is_jpeg(encoded), of_jpeg, of_others, name="cond_jpeg"),
            exclusive=True,
        )
        image.set_shape([None, None, self._channels])
        wanted: Any = self._shape
        return image if wanted is None else reshape(image, wanted)


class TFExampleDecoder(DataDecoder):
    """Makes items from serialised `tf.train.Example`.

    Args:
        keys_to_features: How to parse each feature: `tf.FixedLenFeature` or `tf.VarLenFeature`, by name.
        items_to_handlers: What makes each item: `ItemHandler`, by name.
    """

    def __init__(self, keys_to_features: Mapping[str, Any], items_to_handlers: Mapping[str, ItemHandler]) -> None:
        self._keys_to_features = dict(keys_to_features)
        self._items_to_handlers = dict(items_to_handlers)

    def list_items(self) -> list[str]:
        return list(self._items_to_handlers)

    def decode(self, serialized_example: TensorLike, items: Sequence[str] | None = None) -> list[Any]:
        """The items of an example.

        Args:
            serialized_example: A string scalar.
            items: Names of items; all when None.

        Returns:
            A tensor for each, in their order.
        """
        example = parse_single_example(serialized_example, self._keys_to_features)
        for key, feature in sorted(self._keys_to_features.items()):
            if isinstance(feature, FixedLenFeature):
                example[key] = reshape(example[key], feature.shape)
        handlers = [self._items_to_handlers[item] for item in items or self._items_to_handlers]
        return [handler.tensors_to_item({key: example[key] for key in handler.keys}) for handler in handlers]
