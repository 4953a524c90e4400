"""tfray: TensorFlow's dataflow system on Ray. ``import tfray as tf``; names and meanings are TensorFlow 1's.

This module is the list of public names and nothing else.
"""

# isort: skip_file
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from tfray import early_interrupts as _early_interrupts
from tfray import errors as errors
from tfray.actors.clusters.cluster import Cluster as Cluster, JobSpec as JobSpec
from tfray.config import (
    ConfigProto as ConfigProto,
    GPUOptions as GPUOptions,
    GraphOptions as GraphOptions,
    OptimizerOptions as OptimizerOptions,
    RunOptions as RunOptions,
)
from tfray.framework.call_errors import explain_calls as _explain_calls
from tfray.framework.convert import (
    convert_to_tensor as convert_to_tensor,
    register_tensor_conversion_function as register_tensor_conversion_function,
)
from tfray.framework.device_spec import DeviceSpec as DeviceSpec
from tfray.framework.dtypes import (
    DType as DType,
    as_dtype as as_dtype,
    bfloat16 as bfloat16,
    bool_ as bool,
    complex64 as complex64,
    complex128 as complex128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    resource as resource,
    string as string,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    variant as variant,
)
from tfray.framework.graph import (
    Graph as Graph,
    Operation as Operation,
    Tensor as Tensor,
    get_default_graph as get_default_graph,
    get_default_session as get_default_session,
    reset_default_graph as reset_default_graph,
)
from tfray.framework.graph_def import GraphDef as GraphDef, NodeDef as NodeDef, import_graph_def as import_graph_def
from tfray.framework.graph_keys import GraphKeys as GraphKeys
from tfray.framework.indexed_slices import (
    IndexedSlices as IndexedSlices,
    IndexedSlicesValue as IndexedSlicesValue,
)
from tfray.framework.random_seed import get_seed as get_seed, set_random_seed as set_random_seed
from tfray.framework.sparse_tensor import (
    SparseTensor as SparseTensor,
    SparseTensorValue as SparseTensorValue,
    convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor,
)
from tfray.framework.tensor_shape import Dimension as Dimension, TensorShape as TensorShape
from tfray.gradients import (
    AggregationMethod as AggregationMethod,
    NotDifferentiable as NoGradient,
    NotDifferentiable as NotDifferentiable,
    RegisterGradient as RegisterGradient,
    UnconnectedGradients as UnconnectedGradients,
    custom_gradient as custom_gradient,
    gradients as gradients,
    hessians as hessians,
)
from tfray.framework import op_def as _op_def
from tfray.ops.arrays.source_ops import (
    constant as constant,
    placeholder as placeholder,
    placeholder_with_default as placeholder_with_default,
)
from tfray.ops.math.arithmetic_ops import (
    abs as abs,
    accumulate_n as accumulate_n,
    add as add,
    add_n as add_n,
    conj as conj,
    div_no_nan as div_no_nan,
    divide as divide,
    exp as exp,
    log as log,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    pow as pow,
    reciprocal as reciprocal,
    rsqrt as rsqrt,
    scalar_mul as scalar_mul,
    sign as sign,
    sqrt as sqrt,
    square as square,
    squared_difference as squared_difference,
    subtract as subtract,
    truediv as truediv,
)
from tfray.ops.arrays.broadcast_ops import (
    broadcast_dynamic_shape as broadcast_dynamic_shape,
    broadcast_static_shape as broadcast_static_shape,
    broadcast_to as broadcast_to,
    fill as fill,
    ones as ones,
    ones_like as ones_like,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)
from tfray.ops.math.comparison_ops import (
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    invert as invert,
    is_finite as is_finite,
    is_inf as is_inf,
    is_nan as is_nan,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    not_equal as not_equal,
    right_shift as right_shift,
)
from tfray.ops.math.complex_ops import (
    angle as angle,
    complex as complex,
    imag as imag,
    real as real,
)
from tfray.ops.arrays.construction_ops import (
    eye as eye,
    linspace as linspace,
    meshgrid as meshgrid,
    one_hot as one_hot,
    range_ as range,
    sequence_mask as sequence_mask,
)
from tfray.ops.arrays.gather_ops import (
    boolean_mask as boolean_mask,
    gather as gather,
    gather_nd as gather_nd,
    scatter_nd as scatter_nd,
)
from tfray.ops.arrays.grouping_ops import (
    group as group,
    no_op as no_op,
    tuple_ as tuple,
)
from tfray.ops.arrays.join_ops import (
    concat as concat,
    parallel_stack as parallel_stack,
    split as split,
    stack as stack,
    unstack as unstack,
)
from tfray.ops.arrays.layout_ops import (
    pad as pad,
    reverse as reverse,
    reverse_sequence as reverse_sequence,
    tile as tile,
)
from tfray.ops.math.linalg_ops import (
    matmul as matmul,
)
from tfray.ops.arrays.matrix_ops import (
    diag as diag,
    diag_part as diag_part,
    matrix_band_part as matrix_band_part,
    matrix_diag as matrix_diag,
    matrix_diag_part as matrix_diag_part,
    matrix_set_diag as matrix_set_diag,
)
from tfray.ops.arrays.partition_ops import (
    dynamic_partition as dynamic_partition,
    dynamic_stitch as dynamic_stitch,
    setdiff1d as setdiff1d,
    unique as unique,
    unique_with_counts as unique_with_counts,
)
from tfray.ops.random.random_ops import (
    categorical as categorical,
    multinomial as multinomial,
    random_crop as random_crop,
    random_gamma as random_gamma,
    random_normal as random_normal,
    random_poisson as random_poisson,
    random_shuffle as random_shuffle,
    random_uniform as random_uniform,
    truncated_normal as truncated_normal,
)
from tfray.ops.math.reduction_ops import (
    count_nonzero as count_nonzero,
    reduce_all as reduce_all,
    reduce_any as reduce_any,
    reduce_euclidean_norm as reduce_euclidean_norm,
    reduce_logsumexp as reduce_logsumexp,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_std as reduce_std,
    reduce_sum as reduce_sum,
    reduce_variance as reduce_variance,
)
from tfray.ops.math.rounding_ops import (
    ceil as ceil,
    clip_by_value as clip_by_value,
    div as div,
    floor as floor,
    floordiv as floordiv,
    floormod as floormod,
    rint as rint,
    round as round,
    truncatediv as truncatediv,
    truncatemod as truncatemod,
)
from tfray.ops.math.scan_ops import (
    cumprod as cumprod,
    cumsum as cumsum,
)
from tfray.ops.math.search_ops import (
    argmax as argmax,
    argmin as argmin,
    bincount as bincount,
)
from tfray.ops.math.segment_ops import (
    segment_max as segment_max,
    segment_mean as segment_mean,
    segment_min as segment_min,
    segment_prod as segment_prod,
    segment_sum as segment_sum,
    unsorted_segment_max as unsorted_segment_max,
    unsorted_segment_mean as unsorted_segment_mean,
    unsorted_segment_min as unsorted_segment_min,
    unsorted_segment_prod as unsorted_segment_prod,
    unsorted_segment_sqrt_n as unsorted_segment_sqrt_n,
    unsorted_segment_sum as unsorted_segment_sum,
)
from tfray.ops.arrays.shape_ops import (
    cast as cast,
    expand_dims as expand_dims,
    identity as identity,
    invert_permutation as invert_permutation,
    matrix_transpose as matrix_transpose,
    rank as rank,
    reshape as reshape,
    shape as shape,
    shape_n as shape_n,
    size as size,
    squeeze as squeeze,
    stop_gradient as stop_gradient,
    to_bfloat16 as to_bfloat16,
    to_complex128 as to_complex128,
    to_complex64 as to_complex64,
    to_double as to_double,
    to_float as to_float,
    to_int32 as to_int32,
    to_int64 as to_int64,
    transpose as transpose,
)
from tfray.ops.arrays.slice_ops import (
    slice_ as slice,
    strided_slice as strided_slice,
)
from tfray.ops.arrays.space_block_ops import (
    batch_to_space as batch_to_space,
    batch_to_space_nd as batch_to_space_nd,
    depth_to_space as depth_to_space,
    space_to_batch as space_to_batch,
    space_to_batch_nd as space_to_batch_nd,
    space_to_depth as space_to_depth,
)
from tfray.ops.sparse.sparse_layout_ops import (
    sparse_concat as sparse_concat,
    sparse_fill_empty_rows as sparse_fill_empty_rows,
    sparse_mask as sparse_mask,
    sparse_merge as sparse_merge,
    sparse_reset_shape as sparse_reset_shape,
    sparse_reshape as sparse_reshape,
    sparse_retain as sparse_retain,
    sparse_slice as sparse_slice,
    sparse_split as sparse_split,
    sparse_to_indicator as sparse_to_indicator,
    sparse_transpose as sparse_transpose,
)
from tfray.ops.sparse.sparse_math_ops import (
    sparse_add as sparse_add,
    sparse_matmul as sparse_matmul,
    sparse_maximum as sparse_maximum,
    sparse_minimum as sparse_minimum,
    sparse_reduce_max as sparse_reduce_max,
    sparse_reduce_max_sparse as sparse_reduce_max_sparse,
    sparse_reduce_sum as sparse_reduce_sum,
    sparse_reduce_sum_sparse as sparse_reduce_sum_sparse,
    sparse_softmax as sparse_softmax,
    sparse_tensor_dense_matmul as sparse_tensor_dense_matmul,
)
from tfray.ops.sparse.sparse_ops import (
    sparse_placeholder as sparse_placeholder,
    sparse_reorder as sparse_reorder,
    sparse_tensor_to_dense as sparse_tensor_to_dense,
    sparse_to_dense as sparse_to_dense,
)
from tfray.ops.state.sparse_state_ops import (
    scatter_add as scatter_add,
    scatter_div as scatter_div,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
    scatter_update as scatter_update,
)
from tfray.ops.math.special_ops import (
    betainc as betainc,
    digamma as digamma,
    erf as erf,
    erfc as erfc,
    igamma as igamma,
    igammac as igammac,
    lbeta as lbeta,
    lgamma as lgamma,
    polygamma as polygamma,
    zeta as zeta,
)
from tfray.ops.math.transcendental_ops import (
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    expm1 as expm1,
    log1p as log1p,
    sigmoid as sigmoid,
    sin as sin,
    sinh as sinh,
    tan as tan,
    tanh as tanh,
)
from tfray.ops.arrays.tuple_ops import (
    identity_n as identity_n,
)
from tfray.framework.scopes import (
    add_to_collection as add_to_collection,
    add_to_collections as add_to_collections,
    colocate_with as colocate_with,
    container as container,
    control_dependencies as control_dependencies,
    device as device,
    get_collection as get_collection,
    get_collection_ref as get_collection_ref,
    name_scope as name_scope,
)
from tfray.library.metrics.confusion import confusion_matrix as confusion_matrix
from tfray.library.variables.clip import (
    clip_by_average_norm as clip_by_average_norm,
    clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm,
    global_norm as global_norm,
)
from tfray.library.variables.initializers import (
    constant_initializer as constant_initializer,
    glorot_normal_initializer as glorot_normal_initializer,
    glorot_uniform_initializer as glorot_uniform_initializer,
    identity_initializer as identity_initializer,
    ones_initializer as ones_initializer,
    orthogonal_initializer as orthogonal_initializer,
    random_normal_initializer as random_normal_initializer,
    random_uniform_initializer as random_uniform_initializer,
    truncated_normal_initializer as truncated_normal_initializer,
    uniform_unit_scaling_initializer as uniform_unit_scaling_initializer,
    variance_scaling_initializer as variance_scaling_initializer,
    zeros_initializer as zeros_initializer,
)
from tfray.library.variables.partitioned_variables import (
    fixed_size_partitioner as fixed_size_partitioner,
    balancing_partitioner as balancing_partitioner,
    min_max_variable_partitioner as min_max_variable_partitioner,
    variable_axis_size_partitioner as variable_axis_size_partitioner,
)
from tfray.library.variables.variable_scope import (
    AUTO_REUSE as AUTO_REUSE,
    VariableScope as VariableScope,
    get_local_variable as get_local_variable,
    get_variable as get_variable,
    get_variable_scope as get_variable_scope,
    no_regularizer as no_regularizer,
    variable_op_scope as variable_op_scope,
    variable_scope as variable_scope,
)
from tfray.library.variables.variables import (
    Variable as Variable,
    all_variables as all_variables,
    assert_variables_initialized as assert_variables_initialized,
    global_variables as global_variables,
    global_variables_initializer as global_variables_initializer,
    initialize_all_variables as initialize_all_variables,
    initialize_local_variables as initialize_local_variables,
    initialize_variables as initialize_variables,
    local_variables as local_variables,
    local_variables_initializer as local_variables_initializer,
    model_variables as model_variables,
    moving_average_variables as moving_average_variables,
    report_uninitialized_variables as report_uninitialized_variables,
    trainable_variables as trainable_variables,
    variables_initializer as variables_initializer,
)
from tfray.ops.arrays.construction_ops import lin_space as lin_space
from tfray.ops.math.rounding_ops import mod as mod
from tfray.session import InteractiveSession as InteractiveSession, Session as Session
from tfray.ops.checks.print_assert_ops import (
    Assert as Assert,
    Print as Print,
    add_check_numerics_ops as add_check_numerics_ops,
    check_numerics as check_numerics,
    verify_tensor_all_finite as verify_tensor_all_finite,
)
from tfray.ops.checks.print_assert_ops import (
    print_ as print,
)
from tfray.ops.checks.check_ops import (
    assert_equal as assert_equal,
    assert_greater as assert_greater,
    assert_greater_equal as assert_greater_equal,
    assert_integer as assert_integer,
    assert_less as assert_less,
    assert_less_equal as assert_less_equal,
    assert_near as assert_near,
    assert_negative as assert_negative,
    assert_non_negative as assert_non_negative,
    assert_non_positive as assert_non_positive,
    assert_none_equal as assert_none_equal,
    assert_positive as assert_positive,
    assert_rank as assert_rank,
    assert_rank_at_least as assert_rank_at_least,
    assert_rank_in as assert_rank_in,
    assert_scalar as assert_scalar,
    assert_type as assert_type,
    is_non_decreasing as is_non_decreasing,
    is_numeric_tensor as is_numeric_tensor,
    is_strictly_increasing as is_strictly_increasing,
)
from tfray.ops.control.control_flow_ops import (
    case as case,
    cond as cond,
    while_loop as while_loop,
)
from tfray.ops.control.functional_ops import (
    foldl as foldl,
    foldr as foldr,
    map_fn as map_fn,
    scan as scan,
)
from tfray.ops.control.tensor_array_ops import (
    TensorArray as TensorArray,
)
from tfray.ops.system.script_ops import (
    numpy_function as numpy_function,
    py_func as py_func,
)
from tfray.ops.math.einsum_ops import (
    einsum as einsum,
)
from tfray.ops.linalg.solve_ops import (
    matrix_determinant as matrix_determinant,
    matrix_inverse as matrix_inverse,
    matrix_solve as matrix_solve,
    matrix_triangular_solve as matrix_triangular_solve,
)
from tfray.ops.linalg.decomposition_ops import (
    cholesky as cholesky,
    cholesky_solve as cholesky_solve,
    matrix_solve_ls as matrix_solve_ls,
    qr as qr,
    self_adjoint_eig as self_adjoint_eig,
    svd as svd,
)
from tfray.ops.arrays.layout_ops import (
    roll as roll,
)
from tfray.ops.math.conversion_ops import (
    bitcast as bitcast,
    saturate_cast as saturate_cast,
)
from tfray.ops.state.sparse_state_ops import (
    scatter_nd_add as scatter_nd_add,
    scatter_nd_sub as scatter_nd_sub,
    scatter_nd_update as scatter_nd_update,
)
from tfray.ops.state.state_ops import (
    count_up_to as count_up_to,
)
from tfray.library.input.accumulators import (
    ConditionalAccumulator as ConditionalAccumulator,
    ConditionalAccumulatorBase as ConditionalAccumulatorBase,
    SparseConditionalAccumulator as SparseConditionalAccumulator,
)
from tfray.library.input.queues import (
    FIFOQueue as FIFOQueue,
    PaddingFIFOQueue as PaddingFIFOQueue,
    PriorityQueue as PriorityQueue,
    QueueBase as QueueBase,
    RandomShuffleQueue as RandomShuffleQueue,
)
from tfray.ops.sparse.sparse_transport_ops import (
    deserialize_many_sparse as deserialize_many_sparse,
    serialize_many_sparse as serialize_many_sparse,
    serialize_sparse as serialize_sparse,
)
from tfray.library.input.readers import (
    FixedLengthRecordReader as FixedLengthRecordReader,
    IdentityReader as IdentityReader,
    ReaderBase as ReaderBase,
    TFRecordReader as TFRecordReader,
    TextLineReader as TextLineReader,
    WholeFileReader as WholeFileReader,
)
from tfray.library.namespaces import nn as nn
from tfray.library.variables import initializer_names as initializers
from tfray.library.namespaces import math as math, random as random
from tfray.ops.linalg.decomposition_ops import self_adjoint_eigvals as self_adjoint_eigvals
from tfray.ops.arrays.gather_ops import batch_gather as batch_gather
from tfray.ops.nn.activation_ops import log_sigmoid as log_sigmoid
from tfray.ops.nn.fake_quantization_ops import (
    fake_quant_with_min_max_args as fake_quant_with_min_max_args,
    fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient,
    fake_quant_with_min_max_vars as fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient,
    fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel,
    fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient,
)
from tfray.ops.linalg.fft_ops import (
    fft as fft,
    fft2d as fft2d,
    fft3d as fft3d,
    ifft as ifft,
    ifft2d as ifft2d,
    ifft3d as ifft3d,
)
from tfray.ops.math.search_ops import argmax as arg_max, argmin as arg_min
from tfray.ops.math.sorting_ops import (
    argsort as argsort,
    histogram_fixed_width as histogram_fixed_width,
    histogram_fixed_width_bins as histogram_fixed_width_bins,
    searchsorted as searchsorted,
    repeat as repeat,
    sort as sort,
    unravel_index as unravel_index,
)
from tfray.ops.arrays.space_block_ops import required_space_to_batch_paddings as required_space_to_batch_paddings
from tfray.ops.arrays.tensor_scatter_ops import (
    tensor_scatter_add as tensor_scatter_add,
    tensor_scatter_add as tensor_scatter_nd_add,
    tensor_scatter_max as tensor_scatter_nd_max,
    tensor_scatter_min as tensor_scatter_nd_min,
    tensor_scatter_sub as tensor_scatter_nd_sub,
    tensor_scatter_sub as tensor_scatter_sub,
    tensor_scatter_update as tensor_scatter_nd_update,
    tensor_scatter_update as tensor_scatter_update,
)
from tfray.framework.dtypes import float16 as half, float64 as double
from tfray.ops.math.arithmetic_ops import realdiv as realdiv
from tfray.ops.checks.check_ops import ensure_shape as ensure_shape
from tfray.ops.arrays.layout_ops import reverse as reverse_v2
from tfray.ops.math.rounding_ops import floordiv as floor_div
from tfray.ops.linalg.matrix_function_ops import matrix_square_root as matrix_square_root
from tfray.ops.nn.patch_ops import extract_image_patches as extract_image_patches
from tfray.ops.math.linalg_ops import cross as cross, norm as norm, tensordot as tensordot, trace as trace
from tfray.ops.nn.edit_distance_ops import edit_distance as edit_distance
from tfray.ops.math.sparse_segment_ops import (
    sparse_segment_mean as sparse_segment_mean,
    sparse_segment_sqrt_n as sparse_segment_sqrt_n,
    sparse_segment_sum as sparse_segment_sum,
)
from tfray.ops.arrays.shape_ops import guarantee_const as guarantee_const
from tfray.ops.state.state_ops import (
    assign as assign,
    assign_add as assign_add,
    assign_sub as assign_sub,
    is_variable_initialized as is_variable_initialized,
)
from tfray.ops.strings.string_number_ops import (
    as_string as as_string,
    string_to_hash_bucket as string_to_hash_bucket,
    string_to_hash_bucket_fast as string_to_hash_bucket_fast,
    string_to_hash_bucket_strong as string_to_hash_bucket_strong,
    string_to_number as string_to_number,
)
from tfray.ops.strings.string_ops import (
    decode_base64 as decode_base64,
    encode_base64 as encode_base64,
    regex_replace as regex_replace,
    string_join as string_join,
    string_strip as string_strip,
    substr as substr,
)
from tfray.ops.strings.string_split_ops import reduce_join as reduce_join, string_split as string_split
from tfray.library.input.lookup import (
    initialize_all_tables as initialize_all_tables,
    tables_initializer as tables_initializer,
)
from tfray.ops.system.io_ops import matching_files as matching_files, read_file as read_file, write_file as write_file
from tfray.formats.tensor_proto import make_ndarray as make_ndarray, make_tensor_proto as make_tensor_proto
from tfray.ops.strings.decoding_ops import (
    decode_compressed as decode_compressed,
    decode_csv as decode_csv,
    decode_raw as decode_raw,
    parse_tensor as parse_tensor,
    serialize_tensor as serialize_tensor,
)
from tfray.ops.strings.parsing_ops import (
    FixedLenFeature as FixedLenFeature,
    FixedLenSequenceFeature as FixedLenSequenceFeature,
    SparseFeature as SparseFeature,
    VarLenFeature as VarLenFeature,
    parse_example as parse_example,
    parse_single_example as parse_single_example,
    parse_single_sequence_example as parse_single_sequence_example,
)
from tfray.formats.events import (
    Event as Event,
    HistogramProto as HistogramProto,
    LogMessage as LogMessage,
    SessionLog as SessionLog,
    Summary as Summary,
    SummaryMetadata as SummaryMetadata,
)
from tfray.formats.step_stats import RunMetadata as RunMetadata
from tfray.library.inspect.summaries import (
    audio_summary as audio_summary,
    histogram_summary as histogram_summary,
    image_summary as image_summary,
    merge_all_summaries as merge_all_summaries,
    merge_summary as merge_summary,
    scalar_summary as scalar_summary,
)
from tfray import compat as compat
from tfray.compat import (
    disable_control_flow_v2 as disable_control_flow_v2,
    disable_eager_execution as disable_eager_execution,
    disable_resource_variables as disable_resource_variables,
    disable_v2_behavior as disable_v2_behavior,
    disable_v2_tensorshape as disable_v2_tensorshape,
    enable_eager_execution as enable_eager_execution,
    executing_eagerly as executing_eagerly,
)
from tfray import lazy_modules as _lazy_modules


if _TYPE_CHECKING:
    from tfray import contrib as contrib, keras as keras
    from tfray.library.layers import feature_column as feature_column
    from tfray.library.namespaces import app as app, io as io
    from tfray.library.platform import flags as flags, gfile as gfile, logging as logging
    from tfray.library.input import lookup as lookup
    from tfray.library.namespaces import python_io as python_io
    from tfray.library.platform import resource_loader as resource_loader
    from tfray.library.namespaces import (
        bitwise as bitwise,
        data as data,
        image as image,
        linalg as linalg,
        manip as manip,
    )
    from tfray.library.namespaces import (
        quantization as quantization,
        queue as queue,
        signal as signal,
        spectral as spectral,
    )
    from tfray.library.namespaces import sets as sets, strings as strings, summary as summary
    from tfray.library.platform import testing as test
    from tfray.library.layers import losses as losses
    from tfray.library.namespaces import layers as layers, metrics as metrics
    from tfray.library.variables import regularizers as regularizers
    from tfray.library.inspect import (
        debug as debug,
        graph_util as graph_util,
        profiler as profiler,
        timeline as timeline,
    )
    from tfray.library.namespaces import debugging as debugging
    from tfray.training import api as train
    from tfray.training.checkpoints import saved_model as saved_model


def __getattr__(name: str) -> object:
    """Load what not all programs use when it is first asked for."""
    return _lazy_modules.load(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy_modules.LAZY})


_op_def.load_later("tfray.ops.families")
_explain_calls(_sys.modules[__name__])
newaxis = None
__version__ = "0.1.0"
__git_version__ = GIT_VERSION = f"v{__version__}"
VERSION = __version__
