"""``tf.distribute``: what a distributed program runs on."""

from tfray.distribute import cluster_resolver as cluster_resolver

__all__ = ["cluster_resolver"]
