"""The names of ``tf.manip``."""

# isort: skip_file
from tfray.ops.arrays.gather_ops import (
    gather_nd as gather_nd,
    scatter_nd as scatter_nd,
)
from tfray.ops.arrays.layout_ops import (
    reverse as reverse,
    roll as roll,
    tile as tile,
)
from tfray.ops.arrays.shape_ops import (
    reshape as reshape,
)
from tfray.ops.arrays.space_block_ops import (
    batch_to_space_nd as batch_to_space_nd,
    space_to_batch_nd as space_to_batch_nd,
)
