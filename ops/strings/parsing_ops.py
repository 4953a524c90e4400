"""Text and bytes into tensors: serialised examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.formats import wire
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.shape_ops import reshape
from tfray.ops.arrays.slice_ops import slice_
from tfray.ops.kernels import example_parsing
from tfray.ops.kernels.batch_rules import Batch, Value
from tfray.ops.kernels.example_parsing import Column, ColumnValues, DenseReader
from tfray.ops.kernels.text import as_string

# -- what to parse -------------------------------------------------------------------------------------


class FixedLenFeature(NamedTuple):
    """A feature of which every example has the same number of values: it becomes a tensor.

    Attributes:
        shape: Shape of the values of an example.
        dtype: ``float32``, ``int64`` or ``string``.
        default_value: The values where the feature is missing; None when it must not be.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of which examples have any number of values: it becomes a `SparseTensor`.

    Attributes:
        dtype: ``float32``, ``int64`` or ``string``.
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature whose values are a sequence of items of one shape: it becomes a tensor, padded to the longest.

    Attributes:
        shape: Shape of an item.
        dtype: ``float32``, ``int64`` or ``string``.
        allow_missing: Whether the feature may be missing, which is an empty sequence.
        default_value: What to pad with; zero or empty when None.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """Features that hold the positions and the values of a sparse tensor of each example: one `SparseTensor`.

    Attributes:
        index_key: Name of the int64 feature with the positions, or a list of names, one per dimension.
        value_key: Name of the feature with the values.
        dtype: Dtype of the values.
        size: Size of the dense tensor of an example, or a list of sizes.
        already_sorted: Whether the positions come in order.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class _Sparse(NamedTuple):
    key: str
    dtype: DType


class _Dense(NamedTuple):
    key: str
    dtype: DType
    shape: tuple[int, ...]
    is_sequence: bool
    has_default: bool
    default: Any


class _Wanted:
    """The sparse and dense features that a dictionary of features asks for."""

    def __init__(self, features: Mapping[str, Any], allow_missing_sequences: bool = True) -> None:
        self.sparse: list[_Sparse] = []
        self.dense: list[_Dense] = []
        for key in sorted(features):
            feature = features[key]
            if isinstance(feature, VarLenFeature):
                self._add_sparse(key, feature.dtype)
            elif isinstance(feature, SparseFeature):
                for part in ("index_key", "value_key"):
                    if getattr(feature, part) is None:
                        raise InvalidArgumentError(f"Missing {part} for SparseFeature {feature}.")
                for index_key in _index_keys(feature):
                    self._add_sparse(index_key, dtypes.int64)
                self._add_sparse(feature.value_key, feature.dtype)
            elif isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
                self._add_dense(key, feature, allow_missing_sequences)
            else:
                raise InvalidArgumentError(f"feature {key!r} is {feature!r}, expected a FixedLenFeature or its like")
        if both := {each.key for each in self.sparse} & {each.key for each in self.dense}:
            raise InvalidArgumentError(f"Dense and sparse keys must not intersect; intersection: {sorted(both)}")

    def _add_sparse(self, key: str, dtype: DTypeLike) -> None:
        wanted = _Sparse(key, _feature_dtype(key, dtype))
        if wanted not in self.sparse:
            if key in {other.key for other in self.sparse}:
                raise InvalidArgumentError(f"feature {key!r} is asked for in two dtypes")
            self.sparse.append(wanted)

    def _add_dense(self, key: str, feature: Any, allow_missing_sequences: bool) -> None:
        dtype = _feature_dtype(key, feature.dtype)
        shape = TensorShape(feature.shape)
        is_sequence = isinstance(feature, FixedLenSequenceFeature)
        if shape.ndims is None:
            raise InvalidArgumentError(f"Missing shape for feature {key}")
        if not is_sequence and shape.ndims and shape[0].value is None:
            raise InvalidArgumentError(
                f"First dimension of shape for feature {key} unknown. Consider using FixedLenSequenceFeature."
            )
        if not shape.is_fully_defined():
            raise InvalidArgumentError(
                f"All dimensions of shape for feature {key} need to be known but received {feature.shape}."
            )
        if is_sequence and not feature.allow_missing and allow_missing_sequences:
            raise InvalidArgumentError(
                f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True: feature {key}"
            )
        sizes = tuple(int(size) for size in shape.as_list() if size is not None)
        has_default = feature.default_value is not None
        default = feature.default_value
        if default is None:
            default = b"" if dtype is dtypes.string else 0
        value = convert_to_tensor(default, dtype, f"{_name_of(key)}_default")
        if has_default:  # that of a sequence is what to pad with
            value = reshape(value, [] if is_sequence else list(sizes))
        missing_is_fine = has_default or (is_sequence and feature.allow_missing)
        self.dense.append(_Dense(key, dtype, sizes, is_sequence, missing_is_fine, value))

    def attrs(self, prefix: str = "") -> dict[str, Any]:
        """The attributes of an operation that parses these."""
        return {
            f"{prefix}num_sparse": len(self.sparse),
            f"{prefix}sparse_keys": [feature.key for feature in self.sparse],
            f"{prefix}sparse_types": [feature.dtype for feature in self.sparse],
            f"{prefix}dense_keys": [feature.key for feature in self.dense],
            f"{prefix}dense_types": [feature.dtype for feature in self.dense],
            f"{prefix}dense_shapes": [TensorShape(feature.shape) for feature in self.dense],
            f"{prefix}sequences": [feature.is_sequence for feature in self.dense],
            f"{prefix}may_miss": [feature.has_default for feature in self.dense],
        }

    def defaults(self) -> list[Any]:
        """The default values, a tensor for each dense feature."""
        return [feature.default for feature in self.dense]

    def results(self, features: Mapping[str, Any], outputs: Sequence[Tensor]) -> dict[str, Any]:
        """What a program gets for each feature, of the outputs of an operation."""
        count = len(self.sparse)
        columns = {
            feature.key: SparseTensor(outputs[i], outputs[count + i], outputs[2 * count + i])
            for i, feature in enumerate(self.sparse)
        }
        dense = {feature.key: tensor for feature, tensor in zip(self.dense, outputs[3 * count :], strict=True)}
        found: dict[str, Any] = {}
        for key, feature in features.items():
            if isinstance(feature, SparseFeature):
                found[key] = _merged(feature, columns)
            else:
                found[key] = columns[key] if isinstance(feature, VarLenFeature) else dense[key]
        return found


def _feature_dtype(key: str, dtype: DTypeLike) -> DType:
    if dtype is None:
        raise InvalidArgumentError(f"Missing type for feature {key}")
    found = as_dtype(dtype)
    if found not in example_parsing.KINDS:
        raise InvalidArgumentError(f"feature {key!r} is {found.name}, expected float32, int64 or string")
    return found


def _name_of(key: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_.-" else "_" for letter in key).lstrip("_.-") or "feature"


def _index_keys(feature: SparseFeature) -> list[str]:
    return list(feature.index_key) if isinstance(feature.index_key, (list, tuple)) else [feature.index_key]


# -- parse_example -------------------------------------------------------------------------------------


def parse_example(
    serialized: TensorLike,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: TensorLike | None = None,
) -> dict[str, Any]:
    """Parse a batch of serialised `tf.train.Example`s.

    Args:
        serialized: Shape ``[batch]``, string.
        features: Name to `FixedLenFeature`, `VarLenFeature`, `FixedLenSequenceFeature` or `SparseFeature`.
        name: Name of the operation.
        example_names: Accepted; errors give the number of the example.

    Returns:
        Name to a tensor of shape ``[batch, ...]``, or a `SparseTensor` of shape ``[batch, longest]``.

    Raises:
        InvalidArgumentError: A feature cannot be asked for like that. At run time: an example is malformed, or a
            feature is missing, of another kind, or of another number of values.

    Examples:
        >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
        >>> example = tf.train.Example(features=tf.train.Features(feature={"age": feature}))
        >>> strings = [example.SerializeToString()] * 2
        >>> session.run(tf.parse_example(strings, {"age": tf.FixedLenFeature([], tf.int64)}))
        {'age': array([7, 7])}
    """
    return _parse(PARSE_EXAMPLE, serialized, features, name)


def parse_single_example(
    serialized: TensorLike,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: TensorLike | None = None,
) -> dict[str, Any]:
    """Parse one serialised `tf.train.Example`. As `parse_example`, without the dimension of the batch.

    Args:
        serialized: A string scalar.
        features: As for `parse_example`.
        name: Name of the operation.
        example_names: Accepted.

    Returns:
        Name to a tensor of the feature's shape, or a `SparseTensor` of rank 1.

    Examples:
        >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
        >>> example = tf.train.Example(features=tf.train.Features(feature={"age": feature}))
        >>> session.run(tf.parse_single_example(example.SerializeToString(), {"age": tf.FixedLenFeature([], tf.int64)}))
        {'age': np.int64(7)}
    """
    return _parse(PARSE_SINGLE_EXAMPLE, serialized, features, name)


def _parse(definition: OpDef, serialized: TensorLike, features: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    if not features:
        raise InvalidArgumentError(f"{definition.name}: features is empty: which features are to be parsed?")
    with get_default_graph().name_scope(name or definition.name):
        wanted = _Wanted(features)
        outputs = add_op(definition, serialized, wanted.defaults(), name=definition.name, **wanted.attrs())
        return wanted.results(features, outputs)


def _parse_kernel(ctx: KernelContext, serialized: Array, *defaults: Array) -> list[Array]:
    return _parse_features(ctx, serialized, defaults, _columns_of_examples)


def _columns_of_examples(serialized: Array, columns: Sequence[Column]) -> list[ColumnValues]:
    return example_parsing.read_columns(serialized.tolist(), columns)


@lru_cache(maxsize=64)
def _columns_of(keys: tuple[str, ...], types: tuple[DType, ...]) -> list[Column]:
    return [Column.of(key, dtype) for key, dtype in zip(keys, types, strict=True)]


def _parse_features(ctx: KernelContext, source: Any, defaults: Sequence[Array], read: Any) -> list[Array]:
    """Sparse indices, values and shapes, then dense values: read by ``read(source, columns)``."""
    sparse_keys, dense_keys = ctx.attr("sparse_keys"), ctx.attr("dense_keys")
    types = *ctx.attr("sparse_types"), *ctx.attr("dense_types")
    found = read(source, _columns_of((*sparse_keys, *dense_keys), types))
    sparse = [example_parsing.sparse_column(column) for column in found[: len(sparse_keys)]]
    dense = []
    for index, column in enumerate(found[len(sparse_keys) :]):
        key = dense_keys[index]
        shape = ctx.attr("dense_shapes")[index].sizes
        default = defaults[index] if ctx.attr("may_miss")[index] else None
        if ctx.attr("sequences")[index]:
            _require(column.lengths < 0, default, key)
            dense.append(example_parsing.padded_column(column, shape, defaults[index], f"Key: {key}"))
        else:
            dense.append(example_parsing.dense_column(column, shape, default, key))
    return [part for place in range(3) for part in (each[place] for each in sparse)] + dense


def _require(is_missing: Array, default: Any, key: str) -> None:
    if default is None and is_missing.any():
        example = int(np.argmax(is_missing))
        raise InvalidArgumentError(
            f"Feature list '{key}' is required but could not be found in example {example}: allow_missing is not set"
        )


def _parse_shape(op: Operation) -> list[TensorShape]:
    batch = op.inputs[0].shape.with_rank(1)
    return _feature_shapes(op, "", batch, 2)


def _feature_shapes(op: Operation, prefix: str, batch: TensorShape, rank: int) -> list[TensorShape]:
    count = op.attrs[f"{prefix}num_sparse"]
    sparse = [TensorShape([None, rank])] * count + [TensorShape([None])] * count + [TensorShape([rank])] * count
    dense = [
        batch.concatenate([None] if is_sequence else []).concatenate(shape)
        for shape, is_sequence in zip(op.attrs[f"{prefix}dense_shapes"], op.attrs[f"{prefix}sequences"], strict=True)
    ]
    return sparse + dense


def _feature_attrs(prefix: str = "") -> tuple[str, ...]:
    names = ("num_sparse", "sparse_keys", "sparse_types", "dense_keys", "dense_types", "dense_shapes")
    return tuple(f"{prefix}{name}" for name in (*names, "sequences", "may_miss"))


def _feature_outputs(prefix: str = "") -> tuple[str, ...]:
    return (
        f"{prefix}sparse_indices: int64*{prefix}num_sparse",
        f"{prefix}sparse_values: {prefix}sparse_types*",
        f"{prefix}sparse_shapes: int64*{prefix}num_sparse",
        f"{prefix}dense_values: {prefix}dense_types*",
    )


PARSE_EXAMPLE = register(
    OpDef(
        name="ParseExample",
        inputs=("serialized: string", "dense_defaults: any*"),
        outputs=_feature_outputs(),
        attrs=_feature_attrs(),
        shape=_parse_shape,
        kernels=on_cpu(_parse_kernel),
    )
)


@lru_cache(maxsize=64)
def _dense_reader(keys: tuple[str, ...], types: tuple[DType, ...], shapes: tuple[Any, ...]) -> DenseReader:
    return DenseReader(_columns_of(keys, types), shapes)


def _dense_reader_of(ctx: KernelContext) -> DenseReader | None:
    """What reads the features of single examples; None if some are sparse or sequences."""
    if ctx.attr("num_sparse") or any(ctx.attr("sequences")):
        return None
    shapes = tuple([shape.sizes for shape in ctx.attr("dense_shapes")])
    return _dense_reader(tuple(ctx.attr("dense_keys")), tuple(ctx.attr("dense_types")), shapes)


def _parse_dense(ctx: KernelContext, serialized: Array, defaults: Sequence[Array]) -> list[Array] | None:
    """The features of one example; None if some are sparse, or it has to be read in another way."""
    if ctx.kept is None:
        ctx.kept = (_dense_reader_of(ctx),)
    (reader,) = ctx.kept
    values = None if reader is None else reader.read(as_string(serialized))
    if values is None:
        return None
    for index, value in enumerate(values):
        if value is None:
            if not ctx.attr("may_miss")[index]:
                return None
            shape = ctx.attr("dense_shapes")[index].sizes
            values[index] = np.array(np.broadcast_to(defaults[index], shape))
    return values


def _parse_single_kernel(ctx: KernelContext, serialized: Array, *defaults: Array) -> list[Array]:
    values = _parse_dense(ctx, serialized, defaults)
    if values is not None:
        return values
    outputs = _parse_kernel(ctx, np.asarray(serialized, object).reshape(1), *defaults)
    return _without_batch(outputs, ctx.attr("num_sparse"))


def _without_batch(outputs: list[Array], sparse: int) -> list[Array]:
    """Sparse and dense features of a batch of one as those of one example."""
    indices, shapes = outputs[:sparse], outputs[2 * sparse : 3 * sparse]
    return [
        *[each[:, 1:] for each in indices],
        *outputs[sparse : 2 * sparse],
        *[each[1:] for each in shapes],
        *[each[0, ...] for each in outputs[3 * sparse :]],
    ]


def _parse_single_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return _feature_shapes(op, "", TensorShape([]), 1)


def _parse_single_over_batch(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    serialized, *defaults = inputs
    # Sparse features and sequences of several examples are padded, or given in other forms.
    if op.attrs["num_sparse"] or any(op.attrs["sequences"]) or not isinstance(serialized, Batch):
        return None
    if any(isinstance(value, Batch) for value in defaults) or serialized.lengths is not None:
        return None
    graph = get_default_graph()
    parsed = graph.add_operation(
        PARSE_EXAMPLE.name, [serialized.tensor, *(v for v in defaults if isinstance(v, Tensor))], op.attrs
    )
    return [Batch(tensor) for tensor in parsed.outputs]


PARSE_SINGLE_EXAMPLE = register(
    OpDef(
        name="ParseSingleExample",
        inputs=("serialized: string", "dense_defaults: any*"),
        outputs=_feature_outputs(),
        attrs=_feature_attrs(),
        shape=_parse_single_shape,
        kernels=on_cpu(_parse_single_kernel),
        over_batch=_parse_single_over_batch,
    )
)


# -- sparse features -----------------------------------------------------------------------------------


def _merged(feature: SparseFeature, columns: Mapping[str, SparseTensor]) -> SparseTensor:
    positions = [columns[key] for key in _index_keys(feature)]
    sizes = [int(size) for size in np.ravel(feature.size)]
    if len(sizes) != len(positions):
        raise InvalidArgumentError(f"{feature!r} has {len(positions)} index keys and {len(sizes)} sizes")
    values = columns[feature.value_key]
    inputs = [values.indices] + [tensor for column in positions for tensor in (column.indices, column.values)]
    is_sorted = bool(feature.already_sorted)
    indices, merged = add_op(MERGE_SPARSE_FEATURE, values.values, inputs, sizes=sizes, already_sorted=is_sorted)
    batch = slice_(values.dense_shape, [0], [_rank(values) - 1])
    return SparseTensor(indices, merged, concat([batch, np.array(sizes, np.int64)], 0))


def _rank(sparse: SparseTensor) -> int:
    return int(sparse.indices.shape[1])


def _merge_kernel(ctx: KernelContext, values: Array, owners: Array, *positions: Array) -> list[Array]:
    for indices in positions[::2]:
        if indices.shape != owners.shape or (indices != owners).any():
            raise InvalidArgumentError("a sparse feature has other numbers of positions than of values")
    merged = np.column_stack([owners[:, :-1], *positions[1::2]]).astype(np.int64)
    if not ctx.attr("already_sorted"):
        order = np.lexsort(merged.T[::-1])
        merged, values = merged[order], values[order]
    return [merged, values]


def _merge_shape(op: Operation) -> list[TensorShape]:
    count = op.inputs[0].shape.with_rank(1)
    columns = op.inputs[1].shape.with_rank(2)[1].value
    return [count.concatenate([None if columns is None else columns - 1 + len(op.attrs["sizes"])]), count]


MERGE_SPARSE_FEATURE = register(
    OpDef(
        name="MergeSparseFeature",
        inputs=("values: T", "positions: int64*"),
        outputs=("output_indices: int64", "output_values: T"),
        attrs=("sizes", "already_sorted"),
        types={"T": (dtypes.float32, dtypes.int64, dtypes.string)},
        shape=_merge_shape,
        kernels=on_cpu(_merge_kernel),
    )
)


# -- sequences -----------------------------------------------------------------------------------------


def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: TensorLike | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse one serialised `tf.train.SequenceExample`.

    Args:
        serialized: A string scalar.
        context_features: Features of the whole, as for `parse_single_example`.
        sequence_features: Features of each step: `FixedLenSequenceFeature` (shape that of a step) or `VarLenFeature`.
        example_name: Accepted.
        name: Name of the operation.

    Returns:
        Two dictionaries: of the context, and of the sequences. A sequence is a tensor ``[steps, ...]``, or a
        `SparseTensor` of shape ``[steps, longest]``.

    Raises:
        InvalidArgumentError: As `parse_example`, and if neither `context_features` nor `sequence_features` has any.

    Examples:
        >>> step = [tf.train.Feature(int64_list=tf.train.Int64List(value=[number])) for number in (3, 5)]
        >>> lists = tf.train.FeatureLists(feature_list={"word": tf.train.FeatureList(feature=step)})
        >>> example = tf.train.SequenceExample(feature_lists=lists).SerializeToString()
        >>> features = {"word": tf.FixedLenSequenceFeature([], tf.int64)}
        >>> session.run(tf.parse_single_sequence_example(example, sequence_features=features))
        ({}, {'word': array([3, 5])})
    """
    context, sequences, _ = _parse_sequences(
        PARSE_SINGLE_SEQUENCE_EXAMPLE, serialized, context_features, sequence_features, name
    )
    return context, sequences


def parse_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: TensorLike | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parse a batch of serialised `tf.train.SequenceExample`s.

    Args:
        serialized: Shape ``[batch]``, string.
        context_features: Features of the whole, as for `parse_example`.
        sequence_features: Features of each step: `FixedLenSequenceFeature` or `VarLenFeature`.
        example_names: Accepted.
        name: Name of the operation.

    Returns:
        Three dictionaries: of the context; of the sequences, padded ``[batch, longest, ...]``, or sparse ``[batch,
        longest, most values]``; and of the lengths of each dense sequence, ``[batch]``, int64.
    """
    return _parse_sequences(PARSE_SEQUENCE_EXAMPLE, serialized, context_features, sequence_features, name)


def _parse_sequences(
    definition: OpDef,
    serialized: TensorLike,
    context: Mapping[str, Any] | None,
    lists: Mapping[str, Any] | None,
    name: str | None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    context, lists = context or {}, lists or {}
    if not context and not lists:
        raise InvalidArgumentError(f"{definition.name}: neither context_features nor sequence_features has any")
    for key, feature in lists.items():
        if not isinstance(feature, (FixedLenSequenceFeature, VarLenFeature)):
            raise InvalidArgumentError(
                f"sequence {key!r} is {feature!r}, expected FixedLenSequenceFeature or VarLenFeature"
            )
    with get_default_graph().name_scope(name or definition.name):
        whole, steps = _Wanted(context), _Wanted(lists, allow_missing_sequences=False)
        attrs = {**whole.attrs(), **steps.attrs("list_"), "num_lengths": len(steps.dense)}
        defaults = [*whole.defaults(), *steps.defaults()]
        outputs = add_op(definition, serialized, defaults, name=definition.name, **attrs)
        split = 3 * len(whole.sparse) + len(whole.dense)
        end = len(outputs) - len(steps.dense)
        lengths = {feature.key: tensor for feature, tensor in zip(steps.dense, outputs[end:], strict=True)}
        return whole.results(context, outputs[:split]), steps.results(lists, outputs[split:end]), lengths


class _Sequence(NamedTuple):
    """One serialised sequence example: where its features are."""

    data: bytes
    context: dict[bytes, tuple[int, int]]
    lists: dict[bytes, tuple[int, int]]


def _open_sequence(data: bytes) -> _Sequence:
    found = _Sequence(data, {}, {})
    for number, kind, start, end in wire.read_fields(data):
        if kind == wire.BYTES and number in (1, 2):
            (found.context if number == 1 else found.lists).update(example_parsing.read_map(data, start, end))
    return found


def _columns_of_contexts(sequences: Sequence[_Sequence], columns: Sequence[Column]) -> list[ColumnValues]:
    return [
        _column([example_parsing.read_feature(s.data, column, s.context.get(column.key)) for s in sequences], column)
        for column in columns
    ]


def _column(parts: Sequence[Any], column: Column) -> ColumnValues:
    lengths = np.array([-1 if part is None else len(part) for part in parts], np.int64)
    return ColumnValues(example_parsing.concatenate([p for p in parts if p is not None], column.kind), lengths)


def _steps_of(sequence: _Sequence, column: Column) -> list[Any] | None:
    """The values at each step of a feature, None when it is missing."""
    place = sequence.lists.get(column.key)
    if place is None:
        return None
    fields = wire.read_fields(sequence.data, *place)
    places = [(start, end) for number, kind, start, end in fields if number == 1 and kind == wire.BYTES]
    values = [example_parsing.read_feature(sequence.data, column, place) for place in places]
    return [example_parsing.empty(column.kind) if value is None else value for value in values]


def _parse_sequences_kernel(ctx: KernelContext, serialized: Array, *defaults: Array) -> list[Array]:
    try:
        sequences = [_open_sequence(data) for data in serialized.tolist()]
        split = len(ctx.attr("dense_keys"))
        context = _parse_features(ctx, sequences, defaults[:split], _columns_of_contexts)
        return context + _parse_lists(ctx, sequences, defaults[split:])
    except DataLossError as error:
        raise InvalidArgumentError(f"a sequence example is malformed: {error.message}") from error


def _parse_lists(ctx: KernelContext, sequences: Sequence[_Sequence], defaults: Sequence[Array]) -> list[Array]:
    sparse, dense, lengths = [], [], []
    for key, dtype in zip(ctx.attr("list_sparse_keys"), ctx.attr("list_sparse_types"), strict=True):
        column = Column.of(key, dtype)
        sparse.append(_sparse_sequences([_steps_of(sequence, column) or [] for sequence in sequences], column))
    for index, (key, dtype) in enumerate(zip(ctx.attr("list_dense_keys"), ctx.attr("list_dense_types"), strict=True)):
        column, what = Column.of(key, dtype), f"Feature list: {key}"
        shape = ctx.attr("list_dense_shapes")[index].sizes
        steps = [_steps_of(sequence, column) for sequence in sequences]
        default = defaults[index] if ctx.attr("list_may_miss")[index] else None
        _require(np.array([each is None for each in steps]), default, key)
        flat = [_checked_steps(each or [], shape, column, f"example {i}, {what}") for i, each in enumerate(steps)]
        dense.append(example_parsing.padded_column(_column(flat, column), shape, defaults[index], what))
        lengths.append(np.array([len(each or []) for each in steps], np.int64))
    return [part for place in range(3) for part in (each[place] for each in sparse)] + dense + lengths


def _checked_steps(steps: Sequence[Any], shape: Sequence[int], column: Column, what: str) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    for index, values in enumerate(steps):
        if len(values) != count:
            raise example_parsing.wrong_count(f"{what}, Index: {index}", values, len(values), shape)
    return example_parsing.concatenate(steps, column.kind)


def _sparse_sequences(sequences: Sequence[Sequence[Any]], column: Column) -> tuple[Array, Array, Array]:
    indices = [
        (example, step, place)
        for example, steps in enumerate(sequences)
        for step, values in enumerate(steps)
        for place in range(len(values))
    ]
    values = example_parsing.concatenate([values for steps in sequences for values in steps], column.kind)
    longest = max(map(len, sequences), default=0)
    most = max((len(values) for steps in sequences for values in steps), default=0)
    shape = np.array([len(sequences), longest, most], np.int64)
    return np.array(indices, np.int64).reshape(-1, 3), values, shape


def _parse_sequences_shape(op: Operation) -> list[TensorShape]:
    batch = op.inputs[0].shape.with_rank(1)
    lengths = [batch] * op.attrs["num_lengths"]
    return _feature_shapes(op, "", batch, 2) + _feature_shapes(op, "list_", batch, 3) + lengths


PARSE_SEQUENCE_EXAMPLE = register(
    OpDef(
        name="ParseSequenceExample",
        inputs=("serialized: string", "dense_defaults: any*"),
        outputs=(*_feature_outputs(), *_feature_outputs("list_"), "lengths: int64*num_lengths"),
        attrs=(*_feature_attrs(), *_feature_attrs("list_"), "num_lengths"),
        shape=_parse_sequences_shape,
        kernels=on_cpu(_parse_sequences_kernel),
    )
)


def _parse_single_sequence_kernel(ctx: KernelContext, serialized: Array, *defaults: Array) -> list[Array]:
    outputs = _parse_sequences_kernel(ctx, np.asarray(serialized, object).reshape(1), *defaults)
    split = 3 * ctx.attr("num_sparse") + len(ctx.attr("dense_keys"))
    end = len(outputs) - ctx.attr("num_lengths")
    context = _without_batch(outputs[:split], ctx.attr("num_sparse"))
    lists = _without_batch(outputs[split:end], ctx.attr("list_num_sparse"))
    return [*context, *lists, *[lengths[0, ...] for lengths in outputs[end:]]]


def _parse_single_sequence_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    lengths = [TensorShape([])] * op.attrs["num_lengths"]
    scalar = TensorShape([])
    return _feature_shapes(op, "", scalar, 1) + _feature_shapes(op, "list_", scalar, 2) + lengths


PARSE_SINGLE_SEQUENCE_EXAMPLE = register(
    OpDef(
        name="ParseSingleSequenceExample",
        inputs=("serialized: string", "dense_defaults: any*"),
        outputs=(*_feature_outputs(), *_feature_outputs("list_"), "lengths: int64*num_lengths"),
        attrs=(*_feature_attrs(), *_feature_attrs("list_"), "num_lengths"),
        shape=_parse_single_sequence_shape,
        kernels=on_cpu(_parse_single_sequence_kernel),
    )
)
