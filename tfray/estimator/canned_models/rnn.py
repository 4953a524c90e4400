"""Estimators of sequences by recurrent networks: ``tf.contrib.estimator.RNNEstimator`` and ``RNNClassifier``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.estimator import canned
from tfray.estimator.classification_heads import classifier_head
from tfray.estimator.estimator import Estimator
from tfray.estimator.heads import Head
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec
from tfray.formats.files import PathLike
from tfray.framework import dtypes
from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.library.inspect import summaries
from tfray.library.layers import core_layers, feature_column
from tfray.library.layers.losses import Reduction
from tfray.library.rnn import rnn
from tfray.library.rnn.rnn_cell_wrappers import MultiRNNCell
from tfray.library.rnn.rnn_cells import BasicLSTMCell, BasicRNNCell, GRUCell
from tfray.library.variables import initializers
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather_nd
from tfray.ops.arrays.join_ops import concat, size_along, stack
from tfray.ops.arrays.layout_ops import tile
from tfray.ops.arrays.shape_ops import cast, expand_dims
from tfray.ops.math.arithmetic_ops import maximum

_LEARNING_RATE: Final = 0.05
_CLIP_NORM: Final = 5.0
_CELLS: Final[dict[str, Any]] = {"basic_rnn": BasicRNNCell, "lstm": BasicLSTMCell, "gru": GRUCell}

MakeCell = Callable[[str], Any]
"""Makes the cell of a network, for a mode."""


class RNNEstimator(Estimator):
    """A recurrent network over sequences, with a head of one's choice; its logits are those of the last step.

    Args:
        head: The head.
        sequence_feature_columns: Columns of sequences: `sequence_numeric_column`, or an ``embedding_column`` or
            ``indicator_column`` of a sequence of categories.
        context_feature_columns: Dense columns of the whole example, which every step is given too.
        num_units: Units of each layer.
        cell_type: ``basic_rnn``, ``lstm`` or ``gru``, or a class of cells; ``basic_rnn`` when None.
        rnn_cell_fn: Function from the mode to the cell, in place of `num_units` and `cell_type`.
        model_dir: As of `Estimator`.
        optimizer: As of `DNNEstimator`. Given by its name, it has a learning rate of 0.05, and gradients are clipped to
            a norm of 5.
        input_layer_partitioner: Partitioner of embeddings; by default large ones are cut over the parameter servers.
        config: As of `Estimator`.

    Raises:
        ValueError: `rnn_cell_fn` is given with `num_units` or `cell_type`, or neither is, or there is no such cell.
    """

    @checked
    def __init__(
        self,
        head: Head,
        sequence_feature_columns: Sequence[Any],
        context_feature_columns: Sequence[Any] | None = None,
        num_units: Sequence[int] | None = None,
        cell_type: Any = None,
        rnn_cell_fn: MakeCell | None = None,
        model_dir: PathLike | None = None,
        optimizer: Any = "Adagrad",
        input_layer_partitioner: Partitioner | None = None,
        config: RunConfig | None = None,
    ) -> None:
        make_cell = _cell_maker(num_units, cell_type, rnn_cell_fn)

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            canned.check_features(features)
            clipped = canned.Clipped(optimizer, _CLIP_NORM) if isinstance(optimizer, str) else optimizer
            made = canned.optimizer_of(clipped, _LEARNING_RATE)
            with variable_scope("rnn", partitioner=canned.partitioner_for(config, canned.SMALL_SLICE_BYTES)):
                partitioner = input_layer_partitioner or canned.partitioner_for(config)
                with variable_scope("sequence_input_layer", partitioner=partitioner):
                    steps, lengths = _inputs(features, sequence_feature_columns, context_feature_columns)
                outputs, _ = rnn.dynamic_rnn(make_cell(mode), steps, lengths, dtype=dtypes.float32)
                logits = core_layers.dense(
                    _last(outputs, lengths),
                    head.logits_dimension,
                    kernel_initializer=initializers.glorot_uniform_initializer(),
                    name="logits",
                )
                return head.create_estimator_spec(features, mode, logits, labels, optimizer=made)

        super().__init__(model_fn, model_dir, config)


class RNNClassifier(RNNEstimator):
    """A classifier of sequences by a recurrent network.

    Args:
        sequence_feature_columns: As of `RNNEstimator`.
        context_feature_columns: As of `RNNEstimator`.
        num_units: As of `RNNEstimator`.
        cell_type: As of `RNNEstimator`.
        rnn_cell_fn: As of `RNNEstimator`.
        model_dir: As of `Estimator`.
        n_classes: Number of classes.
        weight_column: Name of the feature with the weights of the examples, or a numeric column.
        label_vocabulary: The words, if labels are words.
        optimizer: As of `RNNEstimator`.
        loss_reduction: How the losses of examples become one number: one of `tf.losses.Reduction`, other than ``NONE``.
        input_layer_partitioner: As of `RNNEstimator`.
        config: As of `Estimator`.

    Raises:
        ValueError: As of `RNNEstimator` and `DNNClassifier`.
    """

    @checked
    def __init__(
        self,
        sequence_feature_columns: Sequence[Any],
        context_feature_columns: Sequence[Any] | None = None,
        num_units: Sequence[int] | None = None,
        cell_type: Any = None,
        rnn_cell_fn: MakeCell | None = None,
        model_dir: PathLike | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[Any] | None = None,
        optimizer: Any = "Adagrad",
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        input_layer_partitioner: Partitioner | None = None,
        config: RunConfig | None = None,
    ) -> None:
        super().__init__(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            sequence_feature_columns,
            context_feature_columns,
            num_units,
            cell_type,
            rnn_cell_fn,
            model_dir,
            optimizer,
            input_layer_partitioner,
            config,
        )


def _cell_maker(num_units: Sequence[int] | None, cell_type: Any, rnn_cell_fn: MakeCell | None) -> MakeCell:
    if rnn_cell_fn is not None:
        if num_units or cell_type is not None:
            raise ValueError("rnn_cell_fn makes the cell: give neither num_units nor cell_type with it")
        return rnn_cell_fn
    if not num_units:
        raise ValueError("a recurrent network needs num_units, or rnn_cell_fn")
    kind = _CELLS.get(cell_type or "basic_rnn") if isinstance(cell_type or "", str) else cell_type
    if kind is None:
        raise ValueError(f"cell_type is {cell_type!r}, expected {', '.join(_CELLS)}, or a class of cells")
    units = tuple(num_units)

    def make_cell(mode: str) -> Any:
        cells = [kind(num_units=each) for each in units]
        return cells[0] if len(cells) == 1 else MultiRNNCell(cells)

    return make_cell


def _inputs(features: Any, of_steps: Sequence[Any], of_example: Sequence[Any] | None) -> tuple[Tensor, Tensor]:
    """The inputs of all steps, shape ``[batch, longest, width]``, and the lengths."""
    steps, lengths = feature_column.sequence_input_layer(features, of_steps)
    summaries.histogram("sequence_length", lengths)
    if of_example:
        context = expand_dims(feature_column.input_layer(features, of_example), 1)
        steps = concat([steps, tile(context, stack([1, size_along(steps, 1), 1]))], 2)
    return steps, lengths


def _last(outputs: Tensor, lengths: Tensor) -> Tensor:
    """The output of the last step of each sequence; of an empty one, that of the first step, which is 0."""
    rows = range_(size_along(outputs, 0), dtype=dtypes.int64)
    last = gather_nd(outputs, stack([rows, maximum(cast(lengths, dtypes.int64) - 1, 0)], 1))
    last.set_shape([None, outputs.shape.with_rank(3)[2]])
    return last
