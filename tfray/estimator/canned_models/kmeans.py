"""Estimators of clusters: ``tf.estimator.experimental.KMeans``, and the older one of ``tf.contrib.factorization``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import CancelledError
from tfray.estimator.canned_models import clustering
from tfray.estimator.estimator import Estimator
from tfray.estimator.export_outputs import PredictOutput
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec
from tfray.formats.files import PathLike
from tfray.framework.arguments import checked
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.library.inspect import summaries
from tfray.library.layers import feature_column
from tfray.library.metrics.mean_metrics import mean
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.shape_ops import identity
from tfray.ops.math.reduction_ops import reduce_sum
from tfray.ops.state.state_ops import assign_add
from tfray.training.checkpoints.saved_model import signature_constants
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tfray.training.threads.global_step import get_or_create_global_step

_WAIT_S: Final = 1.0
"""Seconds between two looks whether the chief has chosen the first centres. A stop of training ends the pause."""


class _ChooseCentres(SessionRunHook):
    """Lets the chief choose the first centres; others wait for that."""

    def __init__(self, init_op: Operation, is_initialized: Any, is_chief: bool) -> None:
        self._init_op = init_op
        self._is_initialized = is_initialized
        self._is_chief = is_chief

    def after_create_session(self, session: Any, coord: Any) -> None:
        while not session.run(self._is_initialized):
            if coord is not None and coord.should_stop():
                raise CancelledError("k-means: training was stopped before the first centres were chosen")
            if self._is_chief:
                session.run(self._init_op)
            else:
                (time.sleep if coord is None else coord.wait_for_stop)(_WAIT_S)


class _StopWhenSettled(SessionRunHook):
    """Stops training when the loss changes by less than a part of it."""

    def __init__(self, loss: Tensor, tolerance: float) -> None:
        self._loss = loss
        self._tolerance = tolerance
        self._before: float | None = None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        loss, before = float(run_values.results), self._before
        if before and abs(loss - before) / (1 + abs(before)) < self._tolerance:
            run_context.request_stop()
        self._before = loss


class KMeans(Estimator):
    """Finds clusters of points by k-means.

    Its input function returns points: a float32 tensor of shape ``[points, dimensions]``, or a dictionary of features.

    Args:
        num_clusters: The number of clusters. It is not read where `initial_clusters` are centres.
        model_dir: Folder of the checkpoints.
        initial_clusters: How the first centres are chosen: `RANDOM_INIT`, which draws them from a batch,
            `KMEANS_PLUS_PLUS_INIT`, the centres themselves, or a function from the points (as a list of tensors) and a
            number to so many centres or fewer. It is called for each batch until there are enough.
        distance_metric: `SQUARED_EUCLIDEAN_DISTANCE` or `COSINE_DISTANCE`.
        seed: Seed of the choice.
        use_mini_batch: Move the centres by a batch of the points at a time. Otherwise the input function must return
            all points every time.
        mini_batch_steps_per_iteration: After how many batches the centres are taken over by which points are assigned.
        kmeans_plus_plus_num_retries: How many further points k-means++ draws for each centre.
        relative_tolerance: Stop training when the loss changes by less than this part of it.
        config: Configuration of the run.
        feature_columns: What to make points of where the features are a dictionary; all features, in the order of
            their names, when None.

    Raises:
        ValueError: There is no such way to choose, or metric.
    """

    SQUARED_EUCLIDEAN_DISTANCE = clustering.SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = clustering.COSINE_DISTANCE
    RANDOM_INIT = clustering.RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = clustering.KMEANS_PLUS_PLUS_INIT
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = clustering.CLUSTERS_VAR_NAME

    @checked
    def __init__(
        self,
        num_clusters: int,
        model_dir: PathLike | None = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Sequence[Any] | None = None,
    ) -> None:
        clustering.check_choices(initial_clusters, distance_metric)
        self._is_squared = distance_metric == self.SQUARED_EUCLIDEAN_DISTANCE

        def model_fn(features: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            graph = clustering.KMeans(
                _points(features, feature_columns),
                num_clusters,
                initial_clusters,
                distance_metric,
                use_mini_batch,
                mini_batch_steps_per_iteration,
                seed,
                kmeans_plus_plus_num_retries,
            ).training_graph()
            return _specification(graph, mode, config.is_chief, relative_tolerance)

        super().__init__(model_fn, model_dir, config)

    def predict_cluster_index(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The number of the nearest centre of each point, an int64 scalar each."""
        return self._predicted(input_fn, self.CLUSTER_INDEX)

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The distances of each point to all centres, shape ``[clusters]``."""
        for distances in self._predicted(input_fn, self.ALL_DISTANCES):
            yield np.sqrt(np.maximum(distances, 0)) if self._is_squared else distances

    def _predicted(self, input_fn: Callable[..., Any], key: str) -> Iterator[Any]:
        for found in self.predict(input_fn, predict_keys=[key]):
            yield found[key]

    def score(self, input_fn: Callable[..., Any]) -> Any:
        """The sum of the distances of the points of one batch to their nearest centres."""
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def cluster_centers(self) -> Any:
        """The centres, shape ``[clusters, dimensions]``."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)


class KMeansClustering(KMeans):
    """`tf.contrib.factorization.KMeansClustering`: `KMeans`, but for `random_seed` and the distances of `transform`.

    Args:
        num_clusters: As for `KMeans`, as are the others.
        model_dir: See there.
        initial_clusters: See there.
        distance_metric: See there.
        random_seed: Seed of the choice.
        use_mini_batch: See there.
        mini_batch_steps_per_iteration: See there.
        kmeans_plus_plus_num_retries: See there.
        relative_tolerance: See there.
        config: See there.
        feature_columns: See there.
    """

    @checked
    def __init__(
        self,
        num_clusters: int,
        model_dir: PathLike | None = None,
        initial_clusters: Any = clustering.RANDOM_INIT,
        distance_metric: str = clustering.SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(
            num_clusters,
            model_dir,
            initial_clusters,
            distance_metric,
            random_seed,
            use_mini_batch,
            mini_batch_steps_per_iteration,
            kmeans_plus_plus_num_retries,
            relative_tolerance,
            config,
            feature_columns,
        )

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The distances of each point to all centres, squared for the Euclidean metric, shape ``[clusters]``."""
        return self._predicted(input_fn, self.ALL_DISTANCES)


def _points(features: Any, columns: Sequence[Any] | None) -> Any:
    if not isinstance(features, Mapping):
        return features
    if columns:
        return feature_column.input_layer(features, columns)
    return concat([features[name] for name in sorted(features)], 1)


def _specification(
    graph: clustering.TrainingGraph, mode: str, is_chief: bool, tolerance: float | None
) -> EstimatorSpec:
    distances, nearest = graph.all_scores[0], graph.cluster_idx[0]
    loss = reduce_sum(graph.scores[0])
    summaries.scalar("loss/raw", loss)
    counted = assign_add(get_or_create_global_step(), 1)
    with get_default_graph().control_dependencies([graph.training_op, counted]):
        train_op = identity(loss)
    hooks: list[SessionRunHook] = [_ChooseCentres(graph.init_op, graph.cluster_centers_initialized, is_chief)]
    if tolerance is not None:
        hooks.append(_StopWhenSettled(loss, tolerance))
    outputs = {
        KMeans.ALL_DISTANCES: PredictOutput(distances),
        KMeans.CLUSTER_INDEX: PredictOutput(nearest),
        signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(nearest),
    }
    return EstimatorSpec(
        mode,
        predictions={KMeans.ALL_DISTANCES: distances, KMeans.CLUSTER_INDEX: nearest},
        loss=loss,
        train_op=train_op,
        eval_metric_ops={KMeans.SCORE: mean(loss)},
        training_hooks=hooks,
        export_outputs=outputs,
    )
