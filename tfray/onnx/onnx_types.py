"""What ONNX declares: its element types, its tensors, and the schemas of its operators."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import NotFoundError, UnimplementedError
from tfray.framework import dtypes
from tfray.framework.dtypes import DType

CLASSIC: Final = "ai.onnx.ml"
"""The domain of the operators of classic models: scalers, linear models, trees."""

NUMBERS: Final = {
    dtypes.float32: 1,
    dtypes.uint8: 2,
    dtypes.int8: 3,
    dtypes.uint16: 4,
    dtypes.int16: 5,
    dtypes.int32: 6,
    dtypes.int64: 7,
    dtypes.string: 8,
    dtypes.bool_: 9,
    dtypes.float16: 10,
    dtypes.float64: 11,
    dtypes.uint32: 12,
    dtypes.uint64: 13,
    dtypes.complex64: 14,
    dtypes.complex128: 15,
    dtypes.bfloat16: 16,
}
"""The number of each dtype in ONNX (``TensorProto.DataType``)."""

_DTYPES: Final = {number: dtype for dtype, number in NUMBERS.items()}


@functools.cache
def onnx_package() -> Any:
    """The package ``onnx``. Raises `NotFoundError` where it is not installed."""
    try:
        for name in ("defs", "helper", "numpy_helper", "shape_inference"):
            importlib.import_module(f"onnx.{name}")
        return importlib.import_module("onnx")
    except ImportError as error:
        raise NotFoundError("files of ONNX need the package onnx: pip install 'tfray[onnx]'") from error


def dtype_of(number: int) -> DType:
    """The dtype of an element type of ONNX. Raises `UnimplementedError` for one that tfray has not."""
    if number not in _DTYPES:
        raise UnimplementedError(f"tfray has no dtype for ONNX's element type {number}")
    return _DTYPES[number]


def number_of(dtype: DType) -> int:
    """The element type of ONNX that a dtype is. Raises `UnimplementedError` where there is none."""
    if dtype not in NUMBERS:
        raise UnimplementedError(f"ONNX has no element type for {dtype.name}")
    return NUMBERS[dtype]


class Schema(NamedTuple):
    """What an operator takes, at one version.

    Attributes:
        inputs: Names of its inputs. The last one may stand for any number.
        defaults: Its attributes, with None for those without a default.
        source: The schema as the package has it.
    """

    inputs: tuple[str, ...]
    defaults: Mapping[str, Any]
    source: Any

    @property
    def is_function(self) -> bool:
        """Whether ONNX says of which other operators it consists."""
        return bool(self.source.has_function or self.source.has_context_dependent_function)

    def function(self, node: Any, inputs: Sequence[DType | None]) -> Any:
        """The operators of which a node consists, whose inputs have some dtypes."""
        onnx, source = onnx_package(), self.source
        if source.has_function:
            contents = source.get_function_with_opset_version(max(source.function_opset_versions))
        else:
            empty = onnx.TypeProto().SerializeToString()
            kinds = [
                empty
                if dtype is None
                else onnx.helper.make_tensor_type_proto(number_of(dtype), None).SerializeToString()
                for dtype in inputs
            ]
            version = max(source.context_dependent_function_opset_versions)
            node = node.SerializeToString()
            contents = source.get_context_dependent_function_with_opset_version(version, node, kinds)
        return onnx.FunctionProto.FromString(contents)


@functools.cache
def schema(op_type: str, version: int, domain: str = "") -> Schema | None:
    """What an operator takes in a version of its domain; None if there is no such operator."""
    onnx = onnx_package()
    try:
        found = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    defaults = {
        name: onnx.helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
        for name, attribute in found.attributes.items()
    }
    return Schema(tuple(parameter.name for parameter in found.inputs), defaults, found)


def to_tensor_proto(array: Any, name: str) -> Any:
    """The message for an array; strings are bytes."""
    array = np.asarray(array)
    if array.dtype.kind != "O":
        return onnx_package().numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
    made = onnx_package().TensorProto(name=name, data_type=NUMBERS[dtypes.string], dims=array.shape)
    made.string_data.extend(array.ravel().tolist())
    return made
