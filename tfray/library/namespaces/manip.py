"""``tf.manip``: move the elements of tensors (reshape, roll, tile, gather, scatter). Most are also in ``tf`` itself."""

from tfray.ops.arrays.gather_ops import gather_nd, scatter_nd
from tfray.ops.arrays.layout_ops import reverse, roll, tile
from tfray.ops.arrays.shape_ops import reshape
from tfray.ops.arrays.space_block_ops import batch_to_space_nd, space_to_batch_nd

__all__ = ["batch_to_space_nd", "gather_nd", "reshape", "reverse", "roll", "scatter_nd", "space_to_batch_nd", "tile"]
