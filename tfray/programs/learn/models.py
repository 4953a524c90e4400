"""Estimators that ``tf.contrib.learn`` alone has: of clusters with `fit`, and of sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.estimator.canned_models import clustering, kmeans
from tfray.estimator.estimator import InputFn
from tfray.framework import dtypes, nest
from tfray.framework.graph import Tensor
from tfray.library.layers.feature_column import concatenate_context_input
from tfray.library.layers.losses import mean_squared_error, sigmoid_cross_entropy, sparse_softmax_cross_entropy
from tfray.library.layers.older_inputs import input_from_feature_columns, sequence_input_from_feature_columns
from tfray.library.layers.slim_layers import fully_connected
from tfray.library.metrics.mean_metrics import accuracy
from tfray.library.rnn.rnn import dynamic_rnn
from tfray.library.rnn.rnn_cell_base import RNNCell
from tfray.library.rnn.rnn_cell_wrappers import DropoutWrapper, MultiRNNCell
from tfray.library.rnn.rnn_cells import BasicRNNCell, GRUCell, LSTMCell
from tfray.ops.arrays import array_ops
from tfray.ops.math.search_ops import argmax
from tfray.ops.nn.cross_entropy_ops import softmax
from tfray.programs.learn.estimators import Estimator, Learner
from tfray.programs.learn.learn_keys import ProblemType
from tfray.programs.learn.model_fn_ops import ModelFnOps
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.sessions.optimize_loss import OPTIMIZER_SUMMARIES, optimize_loss

_NAMES: Final = {
    kmeans.KMeans.ALL_DISTANCES: "all_scores",
    kmeans.KMeans.CLUSTER_INDEX: "cluster_idx",
    kmeans.KMeans.SCORE: "scores",
}
"""What `tf.contrib.learn` calls what `KMeans` gives."""


class KMeansClustering(Learner):
    """Finds clusters of points by k-means; see `tf.contrib.factorization.KMeansClustering`.

    Args:
        num_clusters: The number of clusters.
        model_dir: Folder of the checkpoints.
        *args: Further arguments, as there.
        **kwargs: Likewise.
    """

    SQUARED_EUCLIDEAN_DISTANCE: Final = clustering.SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE: Final = clustering.COSINE_DISTANCE
    RANDOM_INIT: Final = clustering.RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT: Final = clustering.KMEANS_PLUS_PLUS_INIT
    SCORES: Final = "scores"
    CLUSTER_IDX: Final = "cluster_idx"
    CLUSTERS: Final = clustering.CLUSTERS_VAR_NAME
    ALL_SCORES: Final = "all_scores"

    def __init__(self, num_clusters: int, model_dir: str | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(kmeans.KMeansClustering(num_clusters, model_dir, *args, **kwargs))

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Evaluate; the sum of the distances to the nearest centres is called ``scores``."""
        return _renamed(super().evaluate(*args, **kwargs))

    def _predictions(self, x: Any, input_fn: InputFn | None, batch_size: int | None, keys: Any) -> Iterator[Any]:
        wanted = [name for name in _NAMES if keys is None or _NAMES[name] in keys]
        return map(_renamed, super()._predictions(x, input_fn, batch_size, wanted))

    def predict_cluster_idx(self, input_fn: InputFn | None = None) -> Iterator[Any]:
        """The number of the nearest centre of each point, an int64 scalar each."""
        return (found[self.CLUSTER_IDX] for found in self.predict(None, input_fn, None, [self.CLUSTER_IDX]))

    def score(self, input_fn: InputFn | None = None, steps: int | None = None) -> Any:
        """The sum of the distances of the points of a batch to their nearest centres; its mean of several batches."""
        return np.sum(self.evaluate(input_fn=input_fn, steps=steps)[self.SCORES])

    def transform(self, input_fn: InputFn | None = None, as_iterable: bool = False) -> Any:
        """The distances of each point to all centres, squared for the Euclidean metric.

        Args:
            input_fn: Makes the points.
            as_iterable: Return a dictionary with ``all_scores`` for each point; otherwise an array, of shape
                ``[points, clusters]``.
        """
        found = self.predict(None, input_fn, None, [self.ALL_SCORES])
        return found if as_iterable else np.array([each[self.ALL_SCORES] for each in found])

    def clusters(self) -> Any:
        """The centres, shape ``[clusters, dimensions]``."""
        return self.get_variable_value(self.CLUSTERS)


def _renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {_NAMES.get(name, name): value for name, value in values.items()}


class PredictionType:
    """Whether there is one value for a sequence, or one for each of its steps."""

    SINGLE_VALUE: Final = 1
    MULTIPLE_VALUE: Final = 2


class RNNKeys:
    """Names of features and predictions of `DynamicRnnEstimator`."""

    SEQUENCE_LENGTH_KEY: Final = "sequence_length"
    STATE_PREFIX: Final = "rnn_cell_state"


_CELLS: Final[Mapping[str, type[RNNCell]]] = {"basic_rnn": BasicRNNCell, "lstm": LSTMCell, "gru": GRUCell}


def construct_rnn_cell(
    num_units: int | Sequence[int],
    cell_type: Any = "basic_rnn",
    dropout_keep_probabilities: Sequence[float] | None = None,
) -> RNNCell:
    """A cell, or several in layers.

    Args:
        num_units: Size of the cell; or of each.
        cell_type: ``basic_rnn``, ``lstm``, ``gru``, or a class of cells.
        dropout_keep_probabilities: The share that is kept of the inputs of each cell, and of the outputs of the last.

    Raises:
        ValueError: There is no such cell, or there are not as many probabilities as cells and one.
    """
    make: Any = _CELLS.get(cell_type, cell_type)
    if not (isinstance(make, type) and issubclass(make, RNNCell)):
        raise ValueError(f"The supported cell types are {list(_CELLS)}; got {cell_type}")
    units_of: Any = make
    cells: list[RNNCell] = [units_of(units) for units in ([num_units] if isinstance(num_units, int) else num_units)]
    kept = dropout_keep_probabilities
    if kept and len(kept) != len(cells) + 1:
        raise ValueError(
            "The number of dropout probabilities must be one greater than the number of cells. "
            f"Got {len(cells)} cells and {len(kept)} dropout probabilities."
        )
    if kept:
        outputs = [*[1.0] * (len(cells) - 1), kept[-1]]
        cells = [DropoutWrapper(cell, of_in, of_out) for cell, of_in, of_out in zip(cells, kept, outputs, strict=False)]
    return cells[0] if len(cells) == 1 else MultiRNNCell(cells)


class DynamicRnnEstimator(Estimator):
    """A recurrent network over sequences, with one value or class for each sequence or for each step.

    Features may have ``sequence_length``, int32 of shape ``[batch]``: steps behind it do not count. Those called
    ``rnn_cell_state_0`` and so on are the first state; predictions have the last state under these names.

    Args:
        problem_type: `ProblemType.CLASSIFICATION` or `ProblemType.LINEAR_REGRESSION`.
        prediction_type: `PredictionType.SINGLE_VALUE` or `PredictionType.MULTIPLE_VALUE`.
        sequence_feature_columns: Columns of features of each step.
        context_feature_columns: Columns of features of the whole sequence.
        num_classes: Number of classes.
        num_units: As for `construct_rnn_cell`.
        cell_type: Likewise.
        optimizer: As for `tf.contrib.layers.optimize_loss`.
        learning_rate: Likewise.
        predict_probabilities: Predict the probabilities of classes, too.
        momentum: That of the optimizer ``Momentum``.
        gradient_clipping_norm: What norm gradients have at most.
        dropout_keep_probabilities: As for `construct_rnn_cell`, while training.
        model_dir: Folder of the checkpoints.
        feature_engineering_fn: Function of features and labels that comes first.
        config: Its configuration.

    Raises:
        ValueError: There is no such type, or it does not go with other arguments.
    """

    def __init__(
        self,
        problem_type: int,
        prediction_type: int,
        sequence_feature_columns: Sequence[Any],
        context_feature_columns: Sequence[Any] | None = None,
        num_classes: int | None = None,
        num_units: Any = None,
        cell_type: Any = "basic_rnn",
        optimizer: Any = "SGD",
        learning_rate: float = 0.1,
        predict_probabilities: bool = False,
        momentum: float | None = None,
        gradient_clipping_norm: float | None = 5.0,
        dropout_keep_probabilities: Sequence[float] | None = None,
        model_dir: str | None = None,
        feature_engineering_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        config: Any = None,
    ) -> None:
        if prediction_type not in (PredictionType.SINGLE_VALUE, PredictionType.MULTIPLE_VALUE):
            raise ValueError(f"prediction_type must be one of those of PredictionType; got {prediction_type}")
        if problem_type not in (ProblemType.CLASSIFICATION, ProblemType.LINEAR_REGRESSION):
            raise ValueError(f"problem_type must be CLASSIFICATION or LINEAR_REGRESSION; got {problem_type}")
        classifies = problem_type == ProblemType.CLASSIFICATION
        if classifies and not num_classes:
            raise ValueError("For CLASSIFICATION problem_type, num_classes must be specified.")
        if predict_probabilities and not classifies:
            raise ValueError("predict_probabilities can only be set to True for problem_type CLASSIFICATION")
        if optimizer == "Momentum":
            optimizer = MomentumOptimizer(learning_rate, momentum or 0.0)
        target = _Target(int(num_classes or 0) if classifies else 0, predict_probabilities)

        def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
            named = {"": features} if isinstance(features, Tensor) else dict(features)
            cell = construct_rnn_cell(num_units, cell_type, dropout_keep_probabilities if mode == "train" else None)
            inputs = sequence_input_from_feature_columns(named, sequence_feature_columns)
            if context_feature_columns:
                inputs = concatenate_context_input(input_from_feature_columns(named, context_feature_columns), inputs)
            outputs, state = dynamic_rnn(cell, inputs, initial_state=_first_state(named, cell), dtype=dtypes.float32)
            outputs = fully_connected(outputs, target.width, activation_fn=None)
            lengths = named.get(RNNKeys.SEQUENCE_LENGTH_KEY)
            if prediction_type == PredictionType.SINGLE_VALUE:
                outputs = _last(outputs, lengths)
            predictions = target.predictions(outputs)
            predictions |= {f"{RNNKeys.STATE_PREFIX}_{i}": each for i, each in enumerate(nest.flatten(state))}
            if labels is None:
                return ModelFnOps(mode, predictions)
            classes = predictions.get("classes")
            if prediction_type == PredictionType.MULTIPLE_VALUE:
                batch, longest = array_ops.unstack(array_ops.shape(labels))
                counts = array_ops.fill([batch], longest) if lengths is None else lengths
                counted = array_ops.sequence_mask(counts, longest)
                outputs, labels = (array_ops.boolean_mask(each, counted) for each in (outputs, labels))
                classes = None if classes is None else array_ops.boolean_mask(classes, counted)
            loss = target.loss(outputs, labels)
            metrics = {} if classes is None else {"accuracy": accuracy(labels, classes)}
            train_op = None
            if mode == "train":
                clipped: Any = {"clip_gradients": gradient_clipping_norm, "summaries": OPTIMIZER_SUMMARIES}
                train_op = optimize_loss(loss, None, learning_rate, optimizer, **clipped)
            return ModelFnOps(mode, predictions, loss, train_op, metrics)

        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)


class _Target:
    """What a network is to give: a number where `classes` is 0, otherwise a class."""

    def __init__(self, classes: int, gives_probabilities: bool) -> None:
        self._classes = classes
        self._gives_probabilities = gives_probabilities
        self.width = classes if classes > 2 else 1

    def predictions(self, outputs: Tensor) -> dict[str, Tensor]:
        """From the outputs, shape ``[..., width]``."""
        if not self._classes:
            return {"scores": array_ops.squeeze(outputs, [-1])}
        logits = outputs if self.width > 1 else array_ops.concat([array_ops.zeros_like(outputs), outputs], -1)
        found = {"classes": argmax(logits, -1)}
        return {**found, "probabilities": softmax(logits)} if self._gives_probabilities else found

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The mean over all examples."""
        if self.width > 1:
            return sparse_softmax_cross_entropy(array_ops.cast(labels, dtypes.int64), outputs)
        labels = array_ops.cast(array_ops.reshape(labels, array_ops.shape(outputs)), dtypes.float32)
        return sigmoid_cross_entropy(labels, outputs) if self._classes else mean_squared_error(labels, outputs)


def _last(outputs: Tensor, lengths: Tensor | None) -> Tensor:
    """The outputs at the last step of each sequence."""
    if lengths is None:
        return outputs[:, -1]
    places = array_ops.stack([array_ops.range(array_ops.shape(outputs)[0]), array_ops.cast(lengths, "int32") - 1], 1)
    return array_ops.gather_nd(outputs, places)


def _first_state(features: Mapping[Any, Any], cell: RNNCell) -> Any:
    """The first state, if the features have all of it. Raises `ValueError` if they have a part."""
    sizes = nest.flatten(cell.state_size)
    there = [features[name] for i in range(len(sizes)) if (name := f"{RNNKeys.STATE_PREFIX}_{i}") in features]
    if there and len(there) < len(sizes):
        raise ValueError(f"features have {len(there)} of the {len(sizes)} parts of the first state")
    return nest.pack_sequence_as(cell.state_size, there) if there else None
