"""``tf.dtypes``: the types of tensors' elements, and what converts between them."""

from tfray.framework.dtypes import (
    QUANTIZED_DTYPES,
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from tfray.framework.dtypes import bool_ as bool
from tfray.framework.dtypes import float16 as half
from tfray.framework.dtypes import float64 as double
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.math.complex_ops import complex
from tfray.ops.math.conversion_ops import saturate_cast
from tfray.ops.strings.string_number_ops import as_string

# fmt: off
__all__ = [
    "QUANTIZED_DTYPES", "DType", "as_dtype", "as_string", "bfloat16", "bool", "cast", "complex", "complex64",
    "complex128", "double", "float16", "float32", "float64", "half", "int8", "int16", "int32", "int64", "qint8",
    "qint16", "qint32", "quint8", "quint16", "resource", "saturate_cast", "string", "uint8", "uint16", "uint32",
    "uint64", "variant",
]
# fmt: on
