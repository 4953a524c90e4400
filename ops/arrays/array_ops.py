"""The array family in one namespace: every operation that moves, shapes or selects elements."""

from tfray.ops.arrays.broadcast_ops import (
    accumulator_dtype,
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    fill,
    ones,
    ones_like,
    sum_to_shape,
    sum_to_shape_of,
    where,
    zeros,
    zeros_like,
)
from tfray.ops.arrays.construction_ops import eye, lin_space, linspace, meshgrid, one_hot, sequence_mask
from tfray.ops.arrays.construction_ops import range_ as range
from tfray.ops.arrays.gather_ops import (
    batch_gather,
    boolean_mask,
    check_indices,
    gather,
    gather_nd,
    position_tensor,
    scatter_nd,
    sum_rows,
    take_rows,
)
from tfray.ops.arrays.join_ops import concat, parallel_stack, size_along, split, stack, unstack
from tfray.ops.arrays.layout_ops import pad, reverse, reverse_sequence, roll, tile
from tfray.ops.arrays.matrix_ops import (
    diag,
    diag_part,
    matrix_band_part,
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
)
from tfray.ops.arrays.older_casts import (
    to_bfloat16,
    to_complex64,
    to_complex128,
    to_double,
    to_float,
    to_int32,
    to_int64,
)
from tfray.ops.arrays.partition_ops import dynamic_partition, dynamic_stitch, setdiff1d, unique, unique_with_counts
from tfray.ops.arrays.shape_ops import (
    cast,
    expand_dims,
    guarantee_const,
    host_int,
    host_ints,
    identity,
    in_order,
    index_tensor,
    invert_permutation,
    known_entries,
    matrix_transpose,
    rank,
    reshape,
    reshape_like,
    shape,
    shape_n,
    size,
    sizes_from_input,
    squeeze,
    stop_gradient,
    transpose,
)
from tfray.ops.arrays.slice_ops import empty_or, getitem, newaxis, strided_slice
from tfray.ops.arrays.slice_ops import slice_ as slice
from tfray.ops.arrays.space_block_ops import (
    batch_to_space,
    batch_to_space_nd,
    depth_to_space,
    space_to_batch,
    space_to_batch_nd,
    space_to_depth,
)
