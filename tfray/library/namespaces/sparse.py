"""``tf.sparse``: `SparseTensor` and its operations. Use it for tensors most of whose elements are 0 or missing."""

from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.input.accumulators import SparseConditionalAccumulator
from tfray.ops.math.sparse_segment_ops import sparse_segment_mean as segment_mean
from tfray.ops.math.sparse_segment_ops import sparse_segment_sqrt_n as segment_sqrt_n
from tfray.ops.math.sparse_segment_ops import sparse_segment_sum as segment_sum
from tfray.ops.sparse.sparse_cross_ops import sparse_cross as cross
from tfray.ops.sparse.sparse_cross_ops import sparse_cross_hashed as cross_hashed
from tfray.ops.sparse.sparse_layout_ops import sparse_concat as concat
from tfray.ops.sparse.sparse_layout_ops import sparse_expand_dims as expand_dims
from tfray.ops.sparse.sparse_layout_ops import sparse_fill_empty_rows as fill_empty_rows
from tfray.ops.sparse.sparse_layout_ops import sparse_mask as mask
from tfray.ops.sparse.sparse_layout_ops import sparse_merge as merge
from tfray.ops.sparse.sparse_layout_ops import sparse_reset_shape as reset_shape
from tfray.ops.sparse.sparse_layout_ops import sparse_reshape as reshape
from tfray.ops.sparse.sparse_layout_ops import sparse_retain as retain
from tfray.ops.sparse.sparse_layout_ops import sparse_slice as slice
from tfray.ops.sparse.sparse_layout_ops import sparse_split as split
from tfray.ops.sparse.sparse_layout_ops import sparse_to_indicator as to_indicator
from tfray.ops.sparse.sparse_layout_ops import sparse_transpose as transpose
from tfray.ops.sparse.sparse_math_ops import sparse_add as add
from tfray.ops.sparse.sparse_math_ops import sparse_maximum as maximum
from tfray.ops.sparse.sparse_math_ops import sparse_minimum as minimum
from tfray.ops.sparse.sparse_math_ops import sparse_reduce_max as reduce_max
from tfray.ops.sparse.sparse_math_ops import sparse_reduce_max_sparse as reduce_max_sparse
from tfray.ops.sparse.sparse_math_ops import sparse_reduce_sum as reduce_sum
from tfray.ops.sparse.sparse_math_ops import sparse_reduce_sum_sparse as reduce_sum_sparse
from tfray.ops.sparse.sparse_math_ops import sparse_softmax as softmax
from tfray.ops.sparse.sparse_math_ops import sparse_tensor_dense_matmul as matmul
from tfray.ops.sparse.sparse_math_ops import sparse_tensor_dense_matmul as sparse_dense_matmul
from tfray.ops.sparse.sparse_ops import sparse_eye as eye
from tfray.ops.sparse.sparse_ops import sparse_from_dense as from_dense
from tfray.ops.sparse.sparse_ops import sparse_placeholder as placeholder
from tfray.ops.sparse.sparse_ops import sparse_reorder as reorder
from tfray.ops.sparse.sparse_ops import sparse_tensor_to_dense as to_dense

# fmt: off
__all__ = [
    "SparseConditionalAccumulator", "SparseTensor", "add", "concat", "cross", "cross_hashed", "expand_dims", "eye",
    "fill_empty_rows", "from_dense", "mask", "matmul", "maximum", "merge", "minimum", "placeholder", "reduce_max",
    "reduce_max_sparse", "reduce_sum", "reduce_sum_sparse", "reorder", "reset_shape", "reshape", "retain",
    "segment_mean", "segment_sqrt_n", "segment_sum", "slice", "softmax", "sparse_dense_matmul", "split", "to_dense",
    "to_indicator", "transpose",
]
# fmt: on
