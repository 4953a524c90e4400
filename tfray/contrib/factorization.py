"""``tf.contrib.factorization``: k-means, as an estimator and as a graph."""

from tfray.estimator.canned_models.clustering import (
    CLUSTERS_VAR_NAME,
    COSINE_DISTANCE,
    KMEANS_PLUS_PLUS_INIT,
    RANDOM_INIT,
    SQUARED_EUCLIDEAN_DISTANCE,
    KMeans,
)
from tfray.estimator.canned_models.kmeans import KMeansClustering

# fmt: off
__all__ = [
    "CLUSTERS_VAR_NAME", "COSINE_DISTANCE", "KMEANS_PLUS_PLUS_INIT", "RANDOM_INIT", "SQUARED_EUCLIDEAN_DISTANCE",
    "KMeans", "KMeansClustering",
]
# fmt: on
