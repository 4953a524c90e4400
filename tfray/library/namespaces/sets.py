"""``tf.sets``: union, intersection, difference and size of sets that are the rows of the last dimension."""

from tfray.ops.sparse.set_ops import set_difference, set_intersection, set_size, set_union
from tfray.ops.sparse.set_ops import set_difference as difference
from tfray.ops.sparse.set_ops import set_intersection as intersection
from tfray.ops.sparse.set_ops import set_size as size
from tfray.ops.sparse.set_ops import set_union as union

__all__ = ["difference", "intersection", "set_difference", "set_intersection", "set_size", "set_union", "size", "union"]
