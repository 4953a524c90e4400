"""``tf.contrib.learn.KMeansClustering``: clusters, by an estimator with `fit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from tfray.estimator.canned_models import clustering, kmeans
from tfray.estimator.estimator import InputFn
from tfray.programs.learn_estimators import Trainable

_NAMES: Final = {
    kmeans.KMeans.ALL_DISTANCES: "all_scores",
    kmeans.KMeans.CLUSTER_INDEX: "cluster_idx",
    kmeans.KMeans.SCORE: "scores",
}
"""What `tf.contrib.learn` calls what `KMeans` gives."""


class KMeansClustering(Trainable):
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
