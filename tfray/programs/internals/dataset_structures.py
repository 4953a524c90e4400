"""``tensorflow.python.data.util``: how TensorFlow describes elements of datasets and passes them as flat tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor
from tfray.framework.random_seed import get_seed as seeds_of
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape, as_shape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.input.dataset_optional import kinds_of
from tfray.library.input.dataset_structure import (
    as_element,
    carrier_of,
    carriers_of,
    declared_kinds,
    flat_like,
    have_same_kinds,
    kind_of,
    shape_of,
    structure_of,
    unwrapped,
)
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.control.type_specs import TensorArraySpec, TensorSpec, TypeSpec

# fmt: off
__all__ = [
    "any_sparse", "are_compatible", "as_dense_shapes", "as_dense_types", "convert_legacy_structure",
    "deserialize_sparse_tensors", "from_compatible_tensor_list", "from_tensor_list", "get_classes",
    "get_flat_tensor_shapes", "get_flat_tensor_specs", "get_flat_tensor_types", "get_seed", "normalize_element",
    "optional_param_to_tensor", "partial_shape_to_tensor", "serialize_sparse_tensors", "to_tensor_list",
    "type_spec_from_value",
]
# fmt: on


def type_spec_from_value(element: Any, use_fallback: bool = True) -> Any:
    """The description of each component of an element, in its structure.

    Args:
        element: Tensors, sparse tensors, datasets and the like, or a nested structure of them.
        use_fallback: Take what converts to a tensor, such as numbers and arrays, as one.

    Returns:
        Specs such as `tf.TensorSpec`.

    Raises:
        TypeError: A component is nothing that an element may have.
    """
    for leaf in nest.flatten(element):
        if not use_fallback and not isinstance(leaf, (Tensor, SparseTensor)) and not hasattr(leaf, "_kind"):
            raise TypeError(f"Could not build a TypeSpec for {leaf!r} with type {type(leaf).__name__}")
    try:
        made = normalize_element(element)
    except ValueError as error:
        raise TypeError(f"Could not build a TypeSpec for {element!r} with type {type(element).__name__}") from error
    return structure_of(nest.map_structure(kind_of, made), nest.map_structure(shape_of, made))


def normalize_element(element: Any) -> Any:
    """An element as a dataset holds it: what is no tensor, sparse tensor or dataset yet is made a tensor.

    Args:
        element: Values, or a nested structure of them.

    Returns:
        The same structure.
    """
    return as_element(element)


def convert_legacy_structure(output_types: Structure, output_shapes: Structure, output_classes: Structure) -> Any:
    """The descriptions that stand for the types, shapes and classes of a dataset.

    Args:
        output_types: Dtypes, nested.
        output_shapes: Shapes, in the same structure.
        output_classes: Classes of the components or their descriptions, likewise. For `tf.TensorArray` the shape is
            ``[dynamic_size, infer_shape, *element_shape]``, as `tf.data.get_output_shapes` gives it.

    Returns:
        Specs such as `tf.TensorSpec`, in the structure of `output_classes`.

    Raises:
        TypeError: An element has no component of such a class.
    """
    leaves = [nest.flatten(each) for each in (output_types, output_shapes, output_classes)]
    return nest.pack_sequence_as(output_classes, [_described(*leaf) for leaf in zip(*leaves, strict=True)])


def _described(dtype: Structure, shape: TensorShape, value_class: Any) -> Any:
    if isinstance(value_class, TypeSpec):
        return value_class
    if value_class is TensorArray:
        dynamic_size, infer_shape, *element_shape = as_shape(shape).as_list()
        return TensorArraySpec(element_shape, dtype, bool(dynamic_size), bool(infer_shape))
    if value_class not in (Tensor, SparseTensor):
        raise TypeError(f"Could not build a structure for output class {value_class!r}")
    return structure_of(declared_kinds(dtype, value_class), as_shape(shape))


def get_flat_tensor_specs(element_spec: Structure) -> list[TensorSpec]:
    """Descriptions of the tensors by which elements are passed, in order: one for each component.

    Where TensorFlow passes sparse tensors as variants, tfray passes them as strings.
    """
    return [TensorSpec(shape, dtype) for dtype, shape in carriers_of(*kinds_of(element_spec))]


def get_flat_tensor_shapes(element_spec: Structure) -> list[TensorShape]:
    """Shapes of the tensors by which elements are passed, in order."""
    return [spec.shape for spec in get_flat_tensor_specs(element_spec)]


def get_flat_tensor_types(element_spec: Structure) -> list[DType]:
    """Dtypes of the tensors by which elements are passed, in order."""
    return [spec.dtype for spec in get_flat_tensor_specs(element_spec)]


def to_tensor_list(element_spec: Structure, element: Any) -> list[Tensor]:
    """The tensors by which an element is passed.

    Args:
        element_spec: Its description.
        element: The element, in the same structure.

    Returns:
        A tensor for each component, in order.

    Raises:
        TypeError, ValueError: The structures differ, or a component is not what is described.
    """
    made = normalize_element(element)
    nest.assert_same_structure(element_spec, made)
    for spec, leaf in zip(nest.flatten(element_spec), nest.flatten(made), strict=True):
        if not spec.is_compatible_with(leaf):
            raise ValueError(f"The value {leaf!r} is not convertible to a tensor with the description {spec}")
    return [carrier_of(leaf) for leaf in nest.flatten(made)]


def from_compatible_tensor_list(element_spec: Structure, tensor_list: Sequence[Tensor]) -> Any:
    """The element that is passed by tensors.

    Args:
        element_spec: Its description.
        tensor_list: A tensor for each component, in order.

    Returns:
        The element, in the structure of the description.

    Raises:
        ValueError: There are more tensors, or fewer.
    """
    wanted = len(nest.flatten(element_spec))
    if wanted != len(tensor_list):
        raise ValueError(f"Expected {wanted} tensors but got {len(tensor_list)}.")
    return unwrapped(*kinds_of(element_spec), tensor_list)


def from_tensor_list(element_spec: Structure, tensor_list: Sequence[Tensor]) -> Any:
    """`from_compatible_tensor_list`, which raises `ValueError` for tensors of another dtype or shape as well."""
    for spec, tensor in zip(get_flat_tensor_specs(element_spec), tensor_list, strict=False):
        if spec.dtype != tensor.dtype or not spec.shape.is_compatible_with(tensor.shape):
            raise ValueError(f"The tensor {tensor!r} is not what is described: {spec}")
    return from_compatible_tensor_list(element_spec, tensor_list)


def are_compatible(spec1: Structure, spec2: Structure) -> bool:
    """Whether two descriptions have one structure, and components that may be the same."""
    try:
        nest.assert_same_structure(spec1, spec2)
    except (TypeError, ValueError):
        return False
    (kinds1, shapes1), (kinds2, shapes2) = kinds_of(spec1), kinds_of(spec2)
    pairs = zip(nest.flatten(shapes1), nest.flatten(shapes2), strict=True)
    return have_same_kinds(kinds1, kinds2) and all(one.is_compatible_with(other) for one, other in pairs)


def any_sparse(classes: Structure) -> bool:
    """Whether a class among classes is that of sparse tensors."""
    return any(each is SparseTensor for each in nest.flatten(classes))


def get_classes(tensors: Any) -> Any:
    """`tf.SparseTensor` for each sparse tensor of a structure, and `tf.Tensor` for the others."""
    return nest.map_structure(lambda leaf: SparseTensor if isinstance(leaf, SparseTensor) else Tensor, tensors)


def as_dense_shapes(shapes: Structure, classes: Structure) -> Any:
    """Shapes of the tensors that stand for components: unknown ones where the class is that of sparse tensors."""
    return _where_sparse(classes, shapes, TensorShape(None))


def as_dense_types(types: Structure, classes: Structure) -> Any:
    """Dtypes of the tensors that stand for components: strings, where TensorFlow has variants, for sparse tensors."""
    return _where_sparse(classes, types, dtypes.string)


def _where_sparse(classes: Structure, otherwise: Structure, sparse: Any) -> Any:
    pairs = zip(nest.flatten(classes), nest.flatten(otherwise), strict=True)
    return nest.pack_sequence_as(otherwise, [sparse if kind is SparseTensor else leaf for kind, leaf in pairs])


def serialize_sparse_tensors(tensors: Any) -> Any:
    """The tensors that stand for the components of a structure: sparse ones become vectors of three strings."""
    return nest.map_structure(lambda leaf: carrier_of(leaf) if isinstance(leaf, SparseTensor) else leaf, tensors)


def deserialize_sparse_tensors(tensors: Any, types: Structure, shapes: Structure, classes: Structure) -> Any:
    """What `serialize_sparse_tensors` was given.

    Args:
        tensors: What that gave.
        types: The components' dtypes.
        shapes: Their shapes.
        classes: Their classes.

    Returns:
        The structure of `types`.
    """
    kinds = declared_kinds(types, classes)
    return unwrapped(kinds, nest.map_structure(as_shape, shapes), flat_like(types, tensors))


def get_seed(seed: int | Tensor | None) -> tuple[Tensor, Tensor]:
    """The two seeds of a dataset: int64 scalars, made of the graph's seed and the dataset's own.

    Args:
        seed: A number, an int64 scalar, or None.

    Returns:
        Zeros when neither is set. A seed of 0 that is set gives other numbers than none.
    """
    pair = (seeds_of(0)[0], seed) if isinstance(seed, Tensor) else seeds_of(seed)
    first, second = (convert_to_tensor(0 if each is None else each, dtypes.int64) for each in pair)
    return first, second


def optional_param_to_tensor(
    argument_name: str, argument_value: Any, argument_default: Any = 0, argument_dtype: DType = dtypes.int64
) -> Tensor:
    """An argument that may be missing as a tensor.

    Args:
        argument_name: The name of its operation.
        argument_value: The value, or None.
        argument_default: What stands for None.
        argument_dtype: The dtype.

    Returns:
        A tensor of that dtype.
    """
    value = argument_default if argument_value is None else argument_value
    return convert_to_tensor(value, dtype=argument_dtype, name=argument_name)


def partial_shape_to_tensor(shape_like: Any) -> Tensor:
    """A shape as an int64 vector: -1 for each size that is not known.

    Args:
        shape_like: A shape, or a vector of sizes.

    Returns:
        An int64 vector.

    Raises:
        TypeError: A tensor of another dtype is given.
        ValueError: A tensor of another rank is given.
    """
    if not isinstance(shape_like, Tensor):
        try:
            sizes = as_shape(shape_like).as_list()
        except (TypeError, ValueError):
            return _vector_of_sizes(shape_like)
        return convert_to_tensor([-1 if size is None else size for size in sizes], dtypes.int64)
    return _vector_of_sizes(shape_like)


def _vector_of_sizes(value: TensorLike) -> Tensor:
    sizes = convert_to_tensor(value, preferred_dtype=dtypes.int64)
    if sizes.shape.rank not in (None, 1):
        raise ValueError(
            f"The given shape {value!r} must be a 1-D tensor of tf.int64 values, but the shape was {sizes.shape}."
        )
    if sizes.dtype != dtypes.int64:
        raise TypeError(
            f"The given shape {value!r} must be a 1-D tensor of tf.int64 values, "
            f"but the element type was {sizes.dtype.name}."
        )
    return sizes
