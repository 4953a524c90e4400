"""What ``tf.contrib.layers`` makes of feature columns: inputs of networks, of sequences too, and linear models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers import categorical_columns, dense_columns, scattered_embeddings
from tfray.library.layers.feature_column import input_parts, make_parse_example_spec, weighted_sum
from tfray.library.layers.feature_column_base import (
    CategoricalColumn,
    ColumnVariables,
    FeatureColumn,
    FeatureTensors,
    check_batch_sizes,
    normalized_columns,
)
from tfray.library.layers.older_columns import real_valued_column
from tfray.library.variables.initializers import Zeros
from tfray.library.variables.variable_scope import ScopeLike, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn import embedding_bag_ops, nn_ops
from tfray.ops.sparse import sparse_layout_ops
from tfray.ops.strings.parsing_ops import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    parse_example,
    parse_single_sequence_example,
)

_CLASSES: Final[Mapping[Any, str]] = {
    dense_columns.BucketizedColumn: "_Bucketized",
    categorical_columns.CrossedColumn: "_Crossed",
    dense_columns.EmbeddingColumn: "_Embedding",
    dense_columns.SharedEmbeddingColumn: "_Embedding",
    dense_columns.IndicatorColumn: "_OneHot",
    dense_columns.NumericColumn: "_RealValued",
    scattered_embeddings.ScatteredEmbeddingColumn: "_ScatteredEmbedding",
    categorical_columns.HashedCategoricalColumn: "_SparseHashed",
    categorical_columns.IdentityCategoricalColumn: "_SparseIntegerized",
    categorical_columns.VocabularyListCategoricalColumn: "_SparseKeys",
    categorical_columns.VocabularyFileCategoricalColumn: "_SparseVocabulary",
    categorical_columns.WeightedCategoricalColumn: "_WeightedSparse",
}
"""What TensorFlow called the classes, by which columns are in order there."""

Columns = Mapping[Any, Any]
"""Features by name, or what has been made of them by column."""


@dataclass(frozen=True)
class _OlderVariables(ColumnVariables):
    """Variables of columns, under their older names."""

    def get(self, name: str, shape: Sequence[int], initializer: Any, trainable: bool = True) -> Any:
        return super().get({"embedding_weights": "weights"}.get(name, name), shape, initializer, trainable)


def _key(column: FeatureColumn) -> str:
    parents = ", ".join(f"'{each}'" if isinstance(each, str) else _key(each) for each in column.parents)
    return f"{_CLASSES.get(type(column), type(column).__name__)}({parents}"


def _ordered(feature_columns: Iterable[FeatureColumn]) -> list[Any]:
    return sorted(normalized_columns(feature_columns), key=_key)


def transform_features(features: Columns, feature_columns: Iterable[FeatureColumn]) -> dict[Any, Any]:
    """What columns make of features, before embedding.

    Args:
        features: Features by name.
        feature_columns: The columns.

    Returns:
        Tensors, or sparse ones, by column, also of the columns that these columns are made of. A dictionary with these
        can stand for the features.
    """
    inputs = FeatureTensors(features)
    columns = [each for each in _with_parents(_ordered(feature_columns)) if not isinstance(each, str)]
    return {column: inputs.get(column) for column in columns}


class _Transformer:
    """Makes of features what columns say, each column once; programs know it as that of ``feature_column_ops``.

    Args:
        columns_to_tensors: Features by name, or what has been made of them by column.
    """

    def __init__(self, columns_to_tensors: Columns) -> None:
        self._given, self._inputs = columns_to_tensors, FeatureTensors(columns_to_tensors)

    def transform(self, feature_column: FeatureColumn) -> Any:
        """The tensor of a column, before embedding; with weights a pair of numbers and weights."""
        given = feature_column in self._given
        return self._given[feature_column] if given else self._inputs.get(feature_column)


def parse_feature_columns_from_examples(
    serialized: TensorLike,
    feature_columns: Iterable[FeatureColumn],
    name: str | None = None,
    example_names: TensorLike | None = None,
) -> dict[Any, Any]:
    """Parse the features of columns, and transform them.

    Args:
        serialized: `tf.train.Example` messages as bytes, shape ``[batch]``.
        feature_columns: The columns.
        name: Name of the operation.
        example_names: Names for error messages, shape ``[batch]``.

    Returns:
        Features by name, and what the columns make of them by column.
    """
    columns = normalized_columns(feature_columns)
    features = parse_example(serialized, make_parse_example_spec(columns), name, example_names)
    return {**features, **transform_features(features, columns)}


def parse_feature_columns_from_sequence_examples(
    serialized: TensorLike,
    context_feature_columns: Iterable[FeatureColumn] | None,
    sequence_feature_columns: Iterable[FeatureColumn] | None,
    name: str | None = None,
    example_name: TensorLike | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse the features of columns from one sequence.

    Args:
        serialized: A `tf.train.SequenceExample` message as bytes, a scalar.
        context_feature_columns: Columns of features of the whole sequence.
        sequence_feature_columns: Columns of features of each step. Those with a default value may be missing.
        name: Name of the operation.
        example_name: A name for error messages, a scalar.

    Returns:
        Features of the whole and of the steps, by name, as of `tf.parse_single_sequence_example`.

    Raises:
        ValueError: `serialized` is no scalar, or two columns are the same.
    """
    context, steps = list(context_feature_columns or ()), list(sequence_feature_columns or ())
    for columns in (context, steps):
        check_feature_columns(columns)
    spec = {
        key: FixedLenSequenceFeature(feature.shape, feature.dtype, feature.default_value is not None)
        if isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature))
        else feature
        for key, feature in make_parse_example_spec(steps).items()
    }
    example = array_ops.reshape(serialized, [])
    return parse_single_sequence_example(example, make_parse_example_spec(context), spec, example_name, name)


def check_feature_columns(feature_columns: Iterable[FeatureColumn]) -> None:
    """Refuse columns of which two are the same, and a dictionary of columns. Raises `ValueError`."""
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    seen: set[Any] = set()
    for column in feature_columns:
        if column in seen:
            raise ValueError(
                f"Duplicate feature column key found for column: {column.name}. This usually means that the column is "
                "almost identical to another column, and one must be discarded."
            )
        seen.add(column)


def infer_real_valued_columns(features: Tensor | SparseTensor | Mapping[str, Tensor | SparseTensor]) -> list[Any]:
    """Columns for tensors of numbers, ``[batch, ...]``: one for a tensor, or one for each by its name.

    Raises:
        ValueError: A tensor is sparse, or has no numbers.
    """
    found = []
    for name, tensor in (features if isinstance(features, Mapping) else {"": features}).items():
        if isinstance(tensor, SparseTensor) or not (tensor.dtype.is_integer or tensor.dtype.is_floating):
            what = "SparseTensor is" if isinstance(tensor, SparseTensor) else "Non integer or non floating types are"
            raise ValueError(
                f"{what} not supported for auto detection. Please define corresponding FeatureColumn for tensor "
                f"{name} {tensor}."
            )
        found.append(real_valued_column(name, tensor.shape[1:].num_elements() or 1, dtype=tensor.dtype))
    return found


def input_from_feature_columns(
    columns_to_tensors: Columns,
    feature_columns: Iterable[FeatureColumn],
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
    cols_to_outs: dict[FeatureColumn, Tensor] | None = None,
) -> Tensor:
    """The numbers of all columns: the input of a network.

    Args:
        columns_to_tensors: Features by name, tensors ``[batch]`` or ``[batch, ...]`` or sparse ones; or see
            `transform_features`.
        feature_columns: Columns of numbers, ids shown as such, and embeddings.
        weight_collections: Further collections for the variables.
        trainable: Whether optimizers are to change embeddings.
        scope: Variable scope; a new one, ``input_from_feature_columns``, when None.
        cols_to_outs: Dictionary to fill with the numbers of each column, ``[batch, n]``.

    Returns:
        Shape ``[batch, width]``, float32.

    Raises:
        ValueError: A column is not dense, two have the same name, a feature is missing, or batches differ in size.
    """
    variables = _OlderVariables.of(weight_collections, trainable)
    with variable_scope(scope, "input_from_feature_columns"):
        return input_parts(columns_to_tensors, _ordered(feature_columns), variables, None, cols_to_outs)


def sequence_input_from_feature_columns(
    columns_to_tensors: Columns,
    feature_columns: Iterable[FeatureColumn],
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
) -> Tensor:
    """The numbers of all columns at each step of sequences.

    Args:
        columns_to_tensors: Features by name: tensors ``[batch, length, ...]``, or sparse ones ``[batch, length]`` or
            ``[batch, length, ids]``.
        feature_columns: As for `input_from_feature_columns`.
        weight_collections: See there.
        trainable: See there.
        scope: Variable scope; a new one, ``sequence_input_from_feature_columns``, when None.

    Returns:
        Shape ``[batch, length, width]``, float32; zeros, or what an embedding makes of no id, where there is none.

    Raises:
        ValueError: As there.
    """
    columns = _ordered(feature_columns)
    variables = _OlderVariables.of(weight_collections, trainable)
    with variable_scope(scope, "sequence_input_from_feature_columns"):
        inputs = FeatureTensors(columns_to_tensors)
        given = {each: inputs.get(each) for each in _with_parents(columns) if each in columns_to_tensors}
        if not given:
            raise ValueError(f"no column finds its feature among {[*columns_to_tensors]}")
        first = next(iter(given.values()))
        sizes = first.dense_shape[:2] if isinstance(first, SparseTensor) else array_ops.shape(first)[:2]
        steps = {each: _each_step(feature) for each, feature in given.items()}
        flat = input_parts(steps, columns, variables)
        width = int(flat.shape[1])
        numbers = array_ops.reshape(flat, array_ops.concat([array_ops.cast(sizes, "int32"), [width]], 0))
        numbers.set_shape([*first.shape[:2], width])
        return numbers


def _with_parents(columns: Iterable[Any]) -> list[Any]:
    """Columns and what they are made of, columns or names, each once."""
    found = dict.fromkeys(columns)
    waiting = list(found)
    for column in waiting:
        new = [each for each in ([] if isinstance(column, str) else column.parents) if each not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return list(found)


def _each_step(feature: Tensor | SparseTensor) -> Tensor | SparseTensor:
    """A batch of the steps of sequences."""
    if not isinstance(feature, SparseTensor):
        sizes = array_ops.shape(feature)
        flat = array_ops.reshape(feature, array_ops.concat([[-1], sizes[2:] if len(feature.shape) > 2 else [1]], 0))
        flat.set_shape([None, *(feature.shape[2:] if len(feature.shape) > 2 else [1])])
        return flat
    sizes = feature.dense_shape
    deeper = feature.shape.rank is not None and feature.shape.rank > 2
    width = sizes[2:] if deeper else array_ops.ones([1], sizes.dtype)
    return sparse_layout_ops.sparse_reshape(
        feature, array_ops.concat([array_ops.reshape(sizes[0] * sizes[1], [1]), width], 0)
    )


def weighted_sum_from_feature_columns(
    columns_to_tensors: Columns,
    feature_columns: Iterable[FeatureColumn],
    num_outputs: int,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
) -> tuple[Tensor, dict[Any, list[Any]], Any]:
    """A weighted sum of all columns and a bias; all weights start at 0.

    Args:
        columns_to_tensors: As for `input_from_feature_columns`.
        feature_columns: Columns of numbers, and of ids, which have a weight each.
        num_outputs: Number of sums.
        weight_collections: Further collections for the variables.
        trainable: Whether optimizers are to change the weights.
        scope: Variable scope; a new one, ``weighted_sum_from_feature_columns``, when None.

    Returns:
        The sums, float32 of shape ``[batch, num_outputs]``; the variables of each column; the bias.

    Raises:
        ValueError: Two columns have the same name, a column is an embedding, a feature is missing, or batches differ
            in size.
    """
    columns, inputs, sums = _ordered(feature_columns), FeatureTensors(columns_to_tensors), []
    made: dict[Any, list[Any]] = {}
    variables = _OlderVariables.of(weight_collections, trainable)
    with variable_scope(scope, "weighted_sum_from_feature_columns"):
        for column in columns:
            if isinstance(column, (dense_columns.EmbeddingColumn, dense_columns.SharedEmbeddingColumn)):
                raise ValueError(
                    f"Error creating weighted sum for column: {column.name}. Use its column of ids instead"
                )
            name = "weights" if isinstance(column, CategoricalColumn) else "weight"
            with variable_scope(None, column.variable_scope_name):
                total, weights = weighted_sum(column, inputs, num_outputs, "sum", variables, name)
            sums.append(total)
            made[column] = list(weights) if hasattr(weights, "_get_variable_list") else [weights]
        check_batch_sizes(sums, columns)
        bias = variables.get("bias_weight", [num_outputs], Zeros())
        return nn_ops.bias_add(math_ops.add_n(sums), bias), made, bias


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: Columns,
    feature_columns: Iterable[FeatureColumn],
    num_outputs: int,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
) -> tuple[Tensor, list[Any], Any]:
    """`weighted_sum_from_feature_columns` of columns of ids, with all weights in one variable.

    Args:
        columns_to_tensors: See there.
        feature_columns: Columns of ids.
        num_outputs: See there.
        weight_collections: See there.
        trainable: See there.
        scope: Variable scope; a new one, ``joint_weighted_sum_from_feature_columns``, when None.

    Returns:
        The sums, float32 of shape ``[batch, num_outputs]``; a list with the variable; the bias.

    Raises:
        NotImplementedError: A column has no ids.
        ValueError: As there, or a column has weights of its own.
    """
    columns, inputs = _ordered(feature_columns), FeatureTensors(columns_to_tensors)
    variables = _OlderVariables.of(weight_collections, trainable)
    with variable_scope(scope, "joint_weighted_sum_from_feature_columns"):
        size, parts = 0, []
        for column in columns:
            if not isinstance(column, CategoricalColumn):
                raise NotImplementedError(
                    "Real-valued columns are not supported. Use weighted_sum_from_feature_columns instead, or "
                    f"bucketize these columns. Given: {column}"
                )
            ids, weights = column.get_sparse_tensors(inputs)
            if weights is not None:
                raise ValueError(f"{column.name} has weights of its own: use weighted_sum_from_feature_columns instead")
            values = array_ops.cast(ids.values, "int64") + size
            parts.append(SparseTensor(ids.indices, values, ids.dense_shape))
            size += column.num_buckets
        with variable_scope(None, "linear_weights"):
            table = variables.get("weights", [size, num_outputs], Zeros())
            joined = sparse_layout_ops.sparse_concat(1, parts)
            total = embedding_bag_ops.safe_embedding_lookup_sparse(table, joined, None, "sum", name="_weights")
        bias = variables.get("bias_weight", [num_outputs], Zeros())
        made = list(table) if hasattr(table, "_get_variable_list") else [table]
        return nn_ops.bias_add(total, bias), made, bias
