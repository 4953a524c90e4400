"""The names of ``tf.sets``."""

# isort: skip_file
from tfray.ops.sparse.set_ops import (
    set_difference as difference,
    set_difference as set_difference,
    set_intersection as intersection,
    set_intersection as set_intersection,
    set_size as set_size,
    set_size as size,
    set_union as set_union,
    set_union as union,
)
