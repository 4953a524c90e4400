"""What `tf.parse_example` needs to know of the features, the label and the weight of examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.errors import ArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import checked
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.library.layers import feature_column
from tfray.ops.strings.parsing_ops import FixedLenFeature


@checked
def classifier_parse_example_spec(
    feature_columns: Sequence[Any],
    label_key: str,
    label_dtype: DTypeLike = dtypes.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """What `tf.parse_example` needs to know for a classifier.

    Args:
        feature_columns: The columns.
        label_key: Name of the label.
        label_dtype: Its dtype.
        label_default: What stands for a missing label; without it, examples must have one.
        weight_column: Name of the weight, or a numeric column; None for none.

    Raises:
        ValueError: The label or the weight is a feature too.
    """
    label = FixedLenFeature((1,), _dtype(label_dtype), label_default)
    return _spec(feature_columns, label_key, label, weight_column)


@checked
def regressor_parse_example_spec(
    feature_columns: Sequence[Any],
    label_key: str,
    label_dtype: DTypeLike = dtypes.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """What `tf.parse_example` needs to know for a regression.

    Args:
        feature_columns: The columns.
        label_key: Name of the label.
        label_dtype: Its dtype.
        label_default: What stands for a missing label; without it, examples must have one.
        label_dimension: How many numbers a label has.
        weight_column: Name of the weight, or a numeric column; None for none.

    Raises:
        ValueError: The label or the weight is a feature too.
    """
    label = FixedLenFeature((label_dimension,), _dtype(label_dtype), label_default)
    return _spec(feature_columns, label_key, label, weight_column)


def _dtype(label_dtype: DTypeLike) -> DType:
    try:
        return as_dtype(label_dtype)
    except TypeError as error:
        raise ArgumentError(f"label_dtype: {error}") from error


def _spec(columns: Sequence[Any], label_key: str, label: FixedLenFeature, weight_column: Any) -> dict[str, Any]:
    spec = feature_column.make_parse_example_spec(columns)
    if label_key in spec:
        raise ValueError(f"label_key is {label_key!r}, which is a feature too; the features are {', '.join(spec)}")
    spec[label_key] = label
    if weight_column is None:
        return spec
    column = feature_column.numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, feature_column.NumericColumn):
        raise ValueError(f"weight_column is {weight_column!r}, expected a name or a numeric column")
    if column.key in spec:
        raise ValueError(f"weight_column is {column.key!r}, which is a feature too; the features are {', '.join(spec)}")
    return spec | column.parse_example_spec
