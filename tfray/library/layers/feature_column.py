"""``tf.feature_column``: from raw features by name to the inputs of a model.

A *dense* column gives numbers for each example: `numeric_column`, `bucketized_column`, `indicator_column`,
`embedding_column`, `shared_embedding_columns`. A *categorical* column gives ids: ``categorical_column_with_...``,
`crossed_column`, `weighted_categorical_column`, and again `bucketized_column`; a linear model takes these as they are.
A *sequence* column gives numbers for each step of a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers.base_layer import Layer
from tfray.library.layers.categorical_columns import (
    CrossedColumn,
    HashedCategoricalColumn,
    IdentityCategoricalColumn,
    SequenceCategoricalColumn,
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
    WeightedCategoricalColumn,
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
    crossed_column,
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    weighted_categorical_column,
)
from tfray.library.layers.dense_columns import (
    BucketizedColumn,
    EmbeddingColumn,
    IndicatorColumn,
    NumericColumn,
    SequenceNumericColumn,
    SharedEmbeddingColumn,
    bucketized_column,
    check_combiner,
    embedding_column,
    indicator_column,
    numeric_column,
    sequence_numeric_column,
    shared_embedding_columns,
)
from tfray.library.layers.descriptions import described, restored
from tfray.library.layers.feature_column_base import (
    CategoricalColumn,
    ColumnVariables,
    DenseColumn,
    FeatureColumn,
    Features,
    FeatureTensors,
    SequenceDenseColumn,
    check_batch_sizes,
    flat_rows,
    normalized_columns,
)
from tfray.library.variables import initializers
from tfray.library.variables.variable_scope import AUTO_REUSE, get_variable_scope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.checks import check_ops
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.nn import embedding_bag_ops, nn_ops
from tfray.ops.sparse import sparse_layout_ops

# fmt: off
__all__ = [
    "BucketizedColumn", "CategoricalColumn", "CrossedColumn", "DenseColumn", "EmbeddingColumn", "FeatureColumn",
    "HashedCategoricalColumn", "IdentityCategoricalColumn", "IndicatorColumn", "NumericColumn",
    "SequenceCategoricalColumn", "SequenceDenseColumn", "SequenceNumericColumn", "SharedEmbeddingColumn",
    "VocabularyFileCategoricalColumn", "VocabularyListCategoricalColumn", "WeightedCategoricalColumn",
    "bucketized_column", "categorical_column_with_hash_bucket", "categorical_column_with_identity",
    "categorical_column_with_vocabulary_file", "categorical_column_with_vocabulary_list", "crossed_column",
    "embedding_column", "indicator_column", "input_layer", "linear_model", "make_parse_example_spec", "numeric_column",
    "sequence_categorical_column_with_hash_bucket", "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file", "sequence_categorical_column_with_vocabulary_list",
    "sequence_numeric_column", "shared_embedding_columns", "weighted_categorical_column",
]
# fmt: on


def input_layer(
    features: Features,
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Tensor:
    """The numbers of all columns, in the order of their names: the input of a network.

    Args:
        features: Features by name: tensors ``[batch]`` or ``[batch, ...]``, or sparse ones.
        feature_columns: Dense columns.
        weight_collections: Further collections for the variables, which are among the global and model variables.
        trainable: Whether optimizers are to change embeddings.
        cols_to_vars: Dictionary to fill with the variables of each column.
        cols_to_output_tensors: Dictionary to fill with the numbers of each column, ``[batch, n]``.

    Returns:
        Shape ``[batch, width]``, float32. The vectors of an embedding are the variable
        ``input_layer/NAME_embedding/embedding_weights``.

    Raises:
        ValueError: A column is not dense, two have the same name, a feature is missing, or batches differ in size.
    """
    variables = ColumnVariables.of(weight_collections, trainable)
    ordered = sorted(normalized_columns(feature_columns), key=lambda column: str(column.name))
    with variable_scope(None, "input_layer"):
        return input_parts(features, ordered, variables, cols_to_vars, cols_to_output_tensors)


def input_parts(
    features: Features,
    ordered: Sequence[Any],
    variables: ColumnVariables,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Tensor:
    """The numbers of columns, side by side, with variables within the current scope; see `input_layer`."""
    inputs, parts = FeatureTensors(features), []
    for column in ordered:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an "
                f"embedding_column or indicator_column. Given: {column}"
            )
    for column in ordered:
        with variable_scope(None, column.variable_scope_name):
            parts.append(flat_rows(column.get_dense_tensor(inputs, variables), column.variable_shape))
            if cols_to_vars is not None:
                cols_to_vars[column] = _variables_below(get_variable_scope().name)
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = parts[-1]
    check_batch_sizes(parts, ordered)
    return array_ops.concat(parts, 1)


def sequence_input_layer(
    features: Features,
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
) -> tuple[Tensor, Tensor]:
    """The numbers of all steps of sequences, in the order of the columns' names: ``tf.contrib.feature_column``'s.

    Args:
        features: Features by name: sparse tensors ``[batch, longest]`` or ``[batch, longest, n]``.
        feature_columns: Sequence columns, or embeddings and indicators of such.
        weight_collections: As for `input_layer`.
        trainable: Whether optimizers are to change embeddings.

    Returns:
        ``(input_layer, sequence_length)``: float32 of shape ``[batch, longest, width]``, int64 of shape ``[batch]``.

    Raises:
        ValueError: A column is not of sequences, two have the same name, or a feature is missing.
        InvalidArgumentError: While running: the lengths of two columns' sequences differ.
    """
    ordered = sorted(normalized_columns(feature_columns), key=lambda column: str(column.name))
    for column in ordered:
        if not isinstance(column, SequenceDenseColumn):
            raise ValueError(f"All feature_columns must be of type SequenceDenseColumn. Given: {column}")
    variables = ColumnVariables.of(weight_collections, trainable)
    with variable_scope(None, "sequence_input_layer"):
        return _sequences(features, ordered, variables)


def concatenate_context_input(context_input: TensorLike, sequence_input: TensorLike) -> Tensor:
    """Each step of sequences followed by what belongs to the whole of its sequence.

    Args:
        context_input: float32 ``[batch, width]``.
        sequence_input: float32 ``[batch, longest, depth]``.

    Returns:
        float32 ``[batch, longest, depth + width]``.

    Raises:
        ValueError: An input has another number of dimensions.
        TypeError: An input has another dtype.
    """
    given = []
    for name, value, rank in (("sequence_input", sequence_input, 3), ("context_input", context_input, 2)):
        tensor = convert_to_tensor(value)
        if tensor.shape.rank not in (None, rank):
            raise ValueError(f"{name} must have rank {rank}, got {tensor.shape}")
        if tensor.dtype != dtypes.float32:
            raise TypeError(f"{name} must have dtype float32, got {tensor.dtype.name}")
        given.append(tensor)
    sequence, context = given
    steps = array_ops.tile(context[:, None], [1, array_ops.shape(sequence)[1], 1])
    return array_ops.concat([sequence, steps], 2)


def _sequences(
    features: Features, columns: Sequence[Any], variables: ColumnVariables, reuse: Any = None
) -> tuple[Tensor, Tensor]:
    inputs, parts, lengths = FeatureTensors(features), [], []
    for column in columns:
        with _scope_of(column, reuse):
            dense, length = column.get_sequence_dense_tensor(inputs, variables)
            sizes = [*(array_ops.size_along(dense, axis) for axis in (0, 1)), column.variable_shape.num_elements()]
            parts.append(array_ops.reshape(dense, array_ops.stack(sizes)))
            lengths.append(length)
    check_batch_sizes(lengths, columns)
    checks = [
        check_ops.assert_equal(lengths[0], length, message="sequences of two columns have different lengths")
        for length in lengths[1:]
    ]
    with get_default_graph().control_dependencies(checks):
        return array_ops.concat(parts, 2), array_ops.identity(lengths[0])


def _scope_of(column: Any, reuse: Any = None) -> Any:
    """The scope of a column's variables: a new one, or with `reuse` the one of that name."""
    if reuse is None:
        return variable_scope(None, column.variable_scope_name)
    return variable_scope(column.variable_scope_name, reuse=reuse)


class _FeaturesLayer(Layer):
    """What the layers of columns share.

    Args:
        feature_columns: The columns.
        trainable: Whether optimizers are to change their variables.
        name: Name of the layer, and of the scope of its variables.

    Raises:
        ValueError: A column is of another kind, or two have the same name.
    """

    _kind: type = DenseColumn

    def __init__(self, feature_columns: Any, trainable: bool = True, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(trainable, name, **kwargs)
        self._owns_variables = False  # columns make them, in the layer's variable scope
        self._columns = sorted(normalized_columns(feature_columns), key=lambda column: str(column.name))
        for column in self._columns:
            if not isinstance(column, self._kind):
                raise ValueError(
                    f"Items of feature_columns must be a {self._kind.__name__}. You can wrap a categorical column with "
                    f"an embedding_column or indicator_column. Given: {column}"
                )

    def get_config(self) -> dict[str, Any]:
        """As of all layers; the columns are described by their classes and configurations."""
        return {**super().get_config(), "feature_columns": [described(column) for column in self._columns]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, object] | None = None) -> Self:
        """What `get_config` describes, made anew."""
        columns = restored(config["feature_columns"], custom_objects)
        return super().from_config({**config, "feature_columns": columns}, custom_objects)

    def _kept(self) -> None:
        trained = set(self.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES))
        variables = _variables_below(self.scope_name)
        self._trainable_weights = [variable for variable in variables if variable in trained]
        self._non_trainable_weights = [variable for variable in variables if variable not in trained]


class DenseFeatures(_FeaturesLayer):
    """`input_layer` as a layer: ``tf.keras.layers.DenseFeatures``; called with a dictionary of features."""

    def call(  # type: ignore[override]
        self, features: Any, cols_to_output_tensors: dict[Any, Any] | None = None
    ) -> Tensor:
        """The numbers of all columns, shape ``[batch, width]``."""
        tensors, parts = FeatureTensors(features), []
        variables = ColumnVariables.of(None, self.trainable)
        for column in self._columns:
            with _scope_of(column, AUTO_REUSE):
                parts.append(flat_rows(column.get_dense_tensor(tensors, variables), column.variable_shape))
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = parts[-1]
        self._kept()
        check_batch_sizes(parts, self._columns)
        return array_ops.concat(parts, 1)


class SequenceFeatures(_FeaturesLayer):
    """`sequence_input_layer` as a layer: ``tf.keras.experimental.SequenceFeatures``."""

    _kind = SequenceDenseColumn

    def call(self, features: Any) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The numbers of all steps, ``[batch, longest, width]``, and the lengths of the sequences, ``[batch]``."""
        found = _sequences(features, self._columns, ColumnVariables.of(None, self.trainable), AUTO_REUSE)
        self._kept()
        return found


def linear_model(
    features: Features,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """A weighted sum of all columns and a bias; all weights start at 0.

    Args:
        features: Features by name.
        feature_columns: Dense columns, and categorical ones, which have a weight for each id.
        units: Number of sums.
        sparse_combiner: How the weights of several ids of an example are combined: ``sum``, ``mean`` or ``sqrtn``.
        weight_collections: Further collections for the variables, which are among the global and model variables.
        trainable: Whether optimizers are to change the weights.
        cols_to_vars: Dictionary to fill with the variables of each column, and those of ``"bias"``.

    Returns:
        Shape ``[batch, units]``, float32. Its variables are ``linear_model/NAME/weights`` and
        ``linear_model/bias_weights``.

    Raises:
        ValueError: The combiner is not known, two columns have the same name, a column is neither dense nor
            categorical, a feature is missing, or batches differ in size.
    """
    check_combiner(sparse_combiner)
    columns = normalized_columns(feature_columns)
    for column in columns:
        if not isinstance(column, (DenseColumn, CategoricalColumn)):
            raise ValueError(
                f"Items of feature_columns must be either a DenseColumn or CategoricalColumn. Given: {column}"
            )
    variables = ColumnVariables.of(weight_collections, trainable)
    ordered = sorted(columns, key=lambda column: str(column.name))
    inputs, sums = FeatureTensors(features), []
    with variable_scope(None, "linear_model"):
        for column in ordered:
            with variable_scope(None, column.variable_scope_name):
                sums.append(weighted_sum(column, inputs, units, sparse_combiner, variables)[0])
                if cols_to_vars is not None:
                    cols_to_vars[column] = _variables_below(get_variable_scope().name)
        check_batch_sizes(sums, ordered)
        bias = variables.get("bias_weights", [units], initializers.Zeros())
        if cols_to_vars is not None:
            cols_to_vars["bias"] = list(bias) if hasattr(bias, "_get_variable_list") else [bias]
        total = math_ops.add_n(sums, name="weighted_sum_no_bias")
        return nn_ops.bias_add(total, bias, name="weighted_sum")


def weighted_sum(
    column: Any,
    inputs: FeatureTensors,
    units: int,
    combiner: str,
    variables: ColumnVariables,
    name: str = "weights",
) -> tuple[Tensor, Any]:
    """The weighted sum of one column, shape ``[batch, units]``, and its variable, called `name`."""
    if not isinstance(column, CategoricalColumn):
        shape = column.variable_shape
        weights = variables.get(name, [int(shape.num_elements() or 0), units], initializers.Zeros())
        rows = flat_rows(column.get_dense_tensor(inputs, variables), shape)
        return linalg_ops.matmul(rows, weights, name="weighted_sum"), weights
    weights = variables.get(name, [column.num_buckets, units], initializers.Zeros())
    ids, id_weights = column.get_sparse_tensors(inputs)
    batch = ids.shape[:1]
    flat = array_ops.concat([ids.dense_shape[:1], np.array([-1])], 0)
    ids = sparse_layout_ops.sparse_reshape(ids, flat)
    if id_weights is not None:
        id_weights = sparse_layout_ops.sparse_reshape(id_weights, flat)
    total = embedding_bag_ops.safe_embedding_lookup_sparse(weights, ids, id_weights, combiner, name="weighted_sum")
    total.set_shape(batch.concatenate([units]))
    return total, weights


def _variables_below(scope: str) -> list[Any]:
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """What `tf.parse_example` needs to know to parse the features of some columns.

    Raises:
        ValueError: There is something else among the columns, or two of them read a feature in different ways.
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"All feature_columns must be FeatureColumn instances. Given: {column!r}")
        for key, wanted in column.parse_example_spec.items():
            if spec.setdefault(key, wanted) != wanted:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. Given {wanted} and {spec[key]}"
                )
    return spec
