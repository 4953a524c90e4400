"""The names of ``tf.sparse``."""

# isort: skip_file
from tfray.framework.sparse_tensor import SparseTensor as SparseTensor
from tfray.ops.sparse.sparse_layout_ops import (
    sparse_concat as concat,
    sparse_expand_dims as expand_dims,
    sparse_fill_empty_rows as fill_empty_rows,
    sparse_mask as mask,
    sparse_merge as merge,
    sparse_reset_shape as reset_shape,
    sparse_reshape as reshape,
    sparse_retain as retain,
    sparse_slice as slice,
    sparse_split as split,
    sparse_to_indicator as to_indicator,
    sparse_transpose as transpose,
)
from tfray.ops.sparse.sparse_math_ops import (
    sparse_add as add,
    sparse_matmul as matmul,
    sparse_maximum as maximum,
    sparse_minimum as minimum,
    sparse_reduce_max as reduce_max,
    sparse_reduce_max_sparse as reduce_max_sparse,
    sparse_reduce_sum as reduce_sum,
    sparse_reduce_sum_sparse as reduce_sum_sparse,
    sparse_softmax as softmax,
    sparse_tensor_dense_matmul as sparse_dense_matmul,
)
from tfray.ops.sparse.sparse_ops import (
    sparse_eye as eye,
    sparse_from_dense as from_dense,
    sparse_placeholder as placeholder,
    sparse_reorder as reorder,
    sparse_tensor_to_dense as to_dense,
)
from tfray.ops.math.sparse_segment_ops import (
    sparse_segment_mean as segment_mean,
    sparse_segment_sqrt_n as segment_sqrt_n,
    sparse_segment_sum as segment_sum,
)
