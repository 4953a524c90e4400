"""``tf.contrib.image``: images that are rotated, moved, projected and warped, their connected parts, and matches."""

from tfray.ops.image.matching_ops import bipartite_match
from tfray.ops.image.projective_ops import (
    angles_to_projective_transforms,
    compose_transforms,
    flat_transforms_to_matrices,
    matrices_to_flat_transforms,
    rotate,
    transform,
    translate,
    translations_to_projective_transforms,
)
from tfray.ops.image.warp_ops import connected_components, dense_image_warp, interpolate_spline, sparse_image_warp

__all__ = [
    "angles_to_projective_transforms",
    "bipartite_match",
    "compose_transforms",
    "connected_components",
    "dense_image_warp",
    "flat_transforms_to_matrices",
    "interpolate_spline",
    "matrices_to_flat_transforms",
    "rotate",
    "sparse_image_warp",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]
