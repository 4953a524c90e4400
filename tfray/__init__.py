"""tfray: TensorFlow's dataflow system on Ray. ``import tfray as tf``; names and meanings are TensorFlow 1's.

This module is the list of public names and nothing else.
"""

import sys as _sys
import typing as _typing

from tfray import early_interrupts as _early_interrupts  # noqa: F401 -- for what it does, before what takes time

# isort: split
from tfray import bulk as _bulk

with _bulk.making_much():  # a quarter of the time is spent on a search for garbage, which finds none
    from tfray import compat, errors
    from tfray import lazy_modules as _lazy_modules
    from tfray.actors.clusters.cluster import Cluster, JobSpec
    from tfray.compat import (
        control_flow_v2_enabled,
        disable_control_flow_v2,
        disable_eager_execution,
        disable_resource_variables,
        disable_tensor_equality,
        disable_v2_behavior,
        disable_v2_tensorshape,
        enable_control_flow_v2,
        enable_eager_execution,
        enable_resource_variables,
        enable_tensor_equality,
        enable_v2_behavior,
        enable_v2_tensorshape,
        executing_eagerly,
        resource_variables_enabled,
    )
    from tfray.errors import OpError
    from tfray.exchange.graph_import import import_graph_def
    from tfray.formats.events import Event, HistogramProto, LogMessage, SessionLog, Summary, SummaryMetadata
    from tfray.formats.graph_proto import AttrValue, GraphDef, NameAttrList, NodeDef
    from tfray.formats.meta_graph_proto import MetaGraphDef, TensorInfo
    from tfray.formats.step_stats import RunMetadata
    from tfray.formats.tensor_proto import make_ndarray, make_tensor_proto
    from tfray.framework import op_def as _op_def
    from tfray.framework import plain_graph as _plain_graph
    from tfray.framework.convert import convert_to_tensor, register_tensor_conversion_function
    from tfray.framework.device_spec import DeviceSpec
    from tfray.framework.dtypes import (
        QUANTIZED_DTYPES,
        DType,
        as_dtype,
        bfloat16,
        complex64,
        complex128,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        qint8,
        qint16,
        qint32,
        quint8,
        quint16,
        resource,
        string,
        uint8,
        uint16,
        uint32,
        uint64,
        variant,
    )
    from tfray.framework.dtypes import bool_ as bool
    from tfray.framework.dtypes import float16 as half
    from tfray.framework.dtypes import float64 as double
    from tfray.framework.graph import (
        Graph,
        Operation,
        Tensor,
        get_default_graph,
        get_default_session,
        reset_default_graph,
    )
    from tfray.framework.graph_keys import GraphKeys
    from tfray.framework.indexed_slices import (
        IndexedSlices,
        IndexedSlicesValue,
        convert_to_tensor_or_indexed_slices,
    )
    from tfray.framework.random_seed import get_seed, set_random_seed
    from tfray.framework.region import init_scope
    from tfray.framework.scopes import (
        add_to_collection,
        add_to_collections,
        colocate_with,
        container,
        control_dependencies,
        device,
        get_collection,
        get_collection_ref,
        name_scope,
        op_scope,
    )
    from tfray.framework.sparse_tensor import (
        SparseTensor,
        SparseTensorValue,
        convert_to_tensor_or_sparse_tensor,
        is_tensor,
    )
    from tfray.framework.tensor_shape import Dimension, TensorShape, dimension_at_index, dimension_value
    from tfray.gradients import (
        AggregationMethod,
        NotDifferentiable,
        RegisterGradient,
        UnconnectedGradients,
        custom_gradient,
        grad_pass_through,
        gradients,
        recompute_grad,
    )
    from tfray.gradients import NotDifferentiable as NoGradient
    from tfray.gradients import NotDifferentiable as no_gradient
    from tfray.jacobians import hessians
    from tfray.library.functions.gradient_tape import GradientTape
    from tfray.library.functions.immediate_function import py_function
    from tfray.library.functions.traced_function import function, wrap_function
    from tfray.library.input.lookup import initialize_all_tables, tables_initializer
    from tfray.library.input.queues import FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue
    from tfray.library.metrics.confusion import confusion_matrix
    from tfray.library.platform.loading import LazyLoader, load_file_system_library, load_library, load_op_library
    from tfray.library.platform.logging import get_logger
    from tfray.library.platform.version import (
        COMPILER_VERSION,
        CXX11_ABI_FLAG,
        GIT_VERSION,
        GRAPH_DEF_VERSION,
        GRAPH_DEF_VERSION_MIN_CONSUMER,
        GRAPH_DEF_VERSION_MIN_PRODUCER,
        MONOLITHIC_BUILD,
        VERSION,
    )
    from tfray.library.variables.clip import clip_by_average_norm, clip_by_global_norm, clip_by_norm, global_norm
    from tfray.library.variables.initializers import (
        constant_initializer,
        glorot_normal_initializer,
        glorot_uniform_initializer,
        identity_initializer,
        ones_initializer,
        orthogonal_initializer,
        random_normal_initializer,
        random_uniform_initializer,
        truncated_normal_initializer,
        uniform_unit_scaling_initializer,
        variance_scaling_initializer,
        zeros_initializer,
    )
    from tfray.library.variables.module import Module
    from tfray.library.variables.partitioned_variables import (
        balancing_partitioner,
        fixed_size_partitioner,
        min_max_variable_partitioner,
        variable_axis_size_partitioner,
    )
    from tfray.library.variables.template import make_template
    from tfray.library.variables.variable_scope import (
        AUTO_REUSE,
        VariableScope,
        create_partitioned_variables,
        get_local_variable,
        get_variable,
        get_variable_scope,
        no_regularizer,
        variable_op_scope,
        variable_scope,
    )
    from tfray.library.variables.variables import (
        Variable,
        VariableAggregation,
        VariableSynchronization,
        all_variables,
        assert_variables_initialized,
        global_variables,
        global_variables_initializer,
        initialize_all_variables,
        initialize_local_variables,
        initialize_variables,
        local_variables,
        local_variables_initializer,
        model_variables,
        moving_average_variables,
        report_uninitialized_variables,
        trainable_variables,
        variable_creator_scope,
        variables_initializer,
    )
    from tfray.ops.arrays.band_ops import matrix_diag, matrix_diag_part, matrix_set_diag
    from tfray.ops.arrays.broadcast_ops import (
        broadcast_dynamic_shape,
        broadcast_static_shape,
        broadcast_to,
        fill,
        ones,
        ones_like,
        where,
        where_v2,
        zeros,
        zeros_like,
    )
    from tfray.ops.arrays.construction_ops import eye, lin_space, linspace, meshgrid, one_hot, sequence_mask
    from tfray.ops.arrays.construction_ops import range_ as range
    from tfray.ops.arrays.gather_ops import batch_gather, boolean_mask, gather, gather_nd, scatter_nd
    from tfray.ops.arrays.grouping_ops import group, no_op
    from tfray.ops.arrays.grouping_ops import tuple_ as tuple
    from tfray.ops.arrays.join_ops import concat, parallel_stack, split, stack, unstack
    from tfray.ops.arrays.layout_ops import pad, reverse, reverse_sequence, roll, tile
    from tfray.ops.arrays.layout_ops import reverse as reverse_v2
    from tfray.ops.arrays.matrix_ops import diag, diag_part, matrix_band_part
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
        identity,
        invert_permutation,
        matrix_transpose,
        rank,
        reshape,
        shape,
        shape_n,
        size,
        squeeze,
        stop_gradient,
        transpose,
    )
    from tfray.ops.arrays.slice_ops import slice_ as slice
    from tfray.ops.arrays.slice_ops import strided_slice
    from tfray.ops.arrays.source_ops import constant, get_static_value, placeholder, placeholder_with_default
    from tfray.ops.arrays.space_block_ops import (
        batch_to_space,
        batch_to_space_nd,
        depth_to_space,
        required_space_to_batch_paddings,
        space_to_batch,
        space_to_batch_nd,
        space_to_depth,
    )
    from tfray.ops.arrays.tensor_scatter_ops import tensor_scatter_add, tensor_scatter_sub, tensor_scatter_update
    from tfray.ops.arrays.tensor_scatter_ops import tensor_scatter_add as tensor_scatter_nd_add
    from tfray.ops.arrays.tensor_scatter_ops import tensor_scatter_max as tensor_scatter_nd_max
    from tfray.ops.arrays.tensor_scatter_ops import tensor_scatter_min as tensor_scatter_nd_min
    from tfray.ops.arrays.tensor_scatter_ops import tensor_scatter_sub as tensor_scatter_nd_sub
    from tfray.ops.arrays.tensor_scatter_ops import tensor_scatter_update as tensor_scatter_nd_update
    from tfray.ops.arrays.tuple_ops import identity_n
    from tfray.ops.checks.check_ops import (
        assert_equal,
        assert_greater,
        assert_greater_equal,
        assert_integer,
        assert_less,
        assert_less_equal,
        assert_near,
        assert_negative,
        assert_non_negative,
        assert_non_positive,
        assert_none_equal,
        assert_positive,
        assert_proper_iterable,
        assert_rank,
        assert_rank_at_least,
        assert_rank_in,
        assert_same_float_dtype,
        assert_scalar,
        assert_type,
        ensure_shape,
        is_non_decreasing,
        is_numeric_tensor,
        is_strictly_increasing,
    )
    from tfray.ops.checks.print_assert_ops import (
        Assert,
        Print,
        add_check_numerics_ops,
        check_numerics,
        verify_tensor_all_finite,
    )
    from tfray.ops.checks.print_assert_ops import print_ as print
    from tfray.ops.control.control_flow_ops import case, cond, switch_case, while_loop
    from tfray.ops.control.functional_ops import foldl, foldr, map_fn, scan, vectorized_map
    from tfray.ops.control.tensor_array_ops import TensorArray
    from tfray.ops.control.type_specs import IndexedSlicesSpec, SparseTensorSpec, TensorArraySpec, TensorSpec, TypeSpec
    from tfray.ops.linalg.decomposition_ops import (
        cholesky,
        cholesky_solve,
        matrix_solve_ls,
        qr,
        self_adjoint_eig,
        self_adjoint_eigvals,
        svd,
    )
    from tfray.ops.linalg.fft_ops import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
    from tfray.ops.linalg.matrix_function_ops import matrix_square_root
    from tfray.ops.linalg.norm_ops import norm
    from tfray.ops.linalg.solve_ops import matrix_determinant, matrix_inverse, matrix_solve, matrix_triangular_solve
    from tfray.ops.math.arithmetic_ops import (
        abs,
        accumulate_n,
        add,
        add_n,
        conj,
        div_no_nan,
        divide,
        exp,
        log,
        maximum,
        minimum,
        multiply,
        negative,
        pow,
        realdiv,
        reciprocal,
        rsqrt,
        scalar_mul,
        sign,
        sqrt,
        square,
        squared_difference,
        subtract,
        truediv,
    )
    from tfray.ops.math.comparison_ops import (
        bitwise_and,
        bitwise_or,
        bitwise_xor,
        equal,
        greater,
        greater_equal,
        invert,
        is_finite,
        is_inf,
        is_nan,
        left_shift,
        less,
        less_equal,
        logical_and,
        logical_not,
        logical_or,
        logical_xor,
        not_equal,
        right_shift,
    )
    from tfray.ops.math.complex_ops import angle, complex, imag, real
    from tfray.ops.math.conversion_ops import bitcast, saturate_cast
    from tfray.ops.math.einsum_ops import einsum
    from tfray.ops.math.linalg_ops import cross, matmul, tensordot, trace
    from tfray.ops.math.reduction_ops import (
        count_nonzero,
        reduce_all,
        reduce_any,
        reduce_euclidean_norm,
        reduce_logsumexp,
        reduce_max,
        reduce_mean,
        reduce_min,
        reduce_prod,
        reduce_std,
        reduce_sum,
        reduce_variance,
    )
    from tfray.ops.math.rounding_ops import (
        ceil,
        clip_by_value,
        div,
        floor,
        floordiv,
        floormod,
        mod,
        rint,
        round,
        truncatediv,
        truncatemod,
    )
    from tfray.ops.math.rounding_ops import floordiv as floor_div
    from tfray.ops.math.scan_ops import cumprod, cumsum
    from tfray.ops.math.search_ops import arg_max, arg_min, argmax, argmin, bincount
    from tfray.ops.math.segment_ops import (
        segment_max,
        segment_mean,
        segment_min,
        segment_prod,
        segment_sum,
        unsorted_segment_max,
        unsorted_segment_mean,
        unsorted_segment_min,
        unsorted_segment_prod,
        unsorted_segment_sqrt_n,
        unsorted_segment_sum,
    )
    from tfray.ops.math.sorting_ops import (
        argsort,
        histogram_fixed_width,
        histogram_fixed_width_bins,
        repeat,
        searchsorted,
        sort,
        unravel_index,
    )
    from tfray.ops.math.sparse_segment_ops import sparse_segment_mean, sparse_segment_sqrt_n, sparse_segment_sum
    from tfray.ops.math.special_ops import betainc, digamma, erf, erfc, igamma, igammac, lbeta, lgamma, polygamma, zeta
    from tfray.ops.math.transcendental_ops import (
        acos,
        acosh,
        asin,
        asinh,
        atan,
        atan2,
        atanh,
        cos,
        cosh,
        expm1,
        log1p,
        sigmoid,
        sin,
        sinh,
        tan,
        tanh,
    )
    from tfray.ops.nn.activation_ops import log_sigmoid
    from tfray.ops.nn.patch_ops import extract_image_patches, extract_volume_patches
    from tfray.ops.quantized.fake_quantization_ops import (
        dequantize,
        fake_quant_with_min_max_args,
        fake_quant_with_min_max_args_gradient,
        fake_quant_with_min_max_vars,
        fake_quant_with_min_max_vars_gradient,
        fake_quant_with_min_max_vars_per_channel,
        fake_quant_with_min_max_vars_per_channel_gradient,
        quantize,
        quantize_v2,
    )
    from tfray.ops.random.random_ops import (
        categorical,
        multinomial,
        random_crop,
        random_gamma,
        random_normal,
        random_poisson,
        random_shuffle,
        random_uniform,
        truncated_normal,
    )
    from tfray.ops.sparse.edit_distance_ops import edit_distance
    from tfray.ops.sparse.sparse_layout_ops import (
        sparse_concat,
        sparse_fill_empty_rows,
        sparse_mask,
        sparse_merge,
        sparse_reset_shape,
        sparse_reshape,
        sparse_retain,
        sparse_slice,
        sparse_split,
        sparse_to_indicator,
        sparse_transpose,
    )
    from tfray.ops.sparse.sparse_math_ops import (
        sparse_add,
        sparse_matmul,
        sparse_maximum,
        sparse_minimum,
        sparse_reduce_max,
        sparse_reduce_max_sparse,
        sparse_reduce_sum,
        sparse_reduce_sum_sparse,
        sparse_softmax,
        sparse_tensor_dense_matmul,
    )
    from tfray.ops.sparse.sparse_ops import sparse_placeholder, sparse_reorder, sparse_tensor_to_dense, sparse_to_dense
    from tfray.ops.sparse.sparse_transport_ops import deserialize_many_sparse, serialize_many_sparse, serialize_sparse
    from tfray.ops.state.session_ops import delete_session_tensor, get_session_handle, get_session_tensor
    from tfray.ops.state.sparse_state_ops import (
        batch_scatter_update,
        scatter_add,
        scatter_div,
        scatter_max,
        scatter_min,
        scatter_mul,
        scatter_nd_add,
        scatter_nd_sub,
        scatter_nd_update,
        scatter_sub,
        scatter_update,
    )
    from tfray.ops.state.state_ops import assign, assign_add, assign_sub, count_up_to, is_variable_initialized
    from tfray.ops.strings.decoding_ops import (
        decode_compressed,
        decode_csv,
        decode_json_example,
        decode_raw,
        parse_tensor,
        serialize_tensor,
    )
    from tfray.ops.strings.parsing_ops import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        SparseFeature,
        VarLenFeature,
        parse_example,
        parse_single_example,
        parse_single_sequence_example,
    )
    from tfray.ops.strings.string_number_ops import (
        as_string,
        fingerprint,
        string_to_hash_bucket,
        string_to_hash_bucket_fast,
        string_to_hash_bucket_strong,
        string_to_number,
    )
    from tfray.ops.strings.string_ops import (
        decode_base64,
        encode_base64,
        regex_replace,
        string_join,
        string_strip,
        substr,
    )
    from tfray.ops.strings.string_split_ops import reduce_join, string_split
    from tfray.ops.system.io_ops import matching_files, read_file, write_file
    from tfray.ops.system.script_ops import (
        numpy_function,
        py_func,
        timestamp,
    )
    from tfray.options import ConfigProto, GPUOptions, GraphOptions, OptimizerOptions, RunOptions
    from tfray.session import InteractiveSession, Session

if _typing.TYPE_CHECKING:
    from tfray import contrib, distribute, estimator, keras, onnx
    from tfray.library.functions import executor_settings as experimental
    from tfray.library.functions import user_ops, xla
    from tfray.library.functions.critical_section import CriticalSection
    from tfray.library.input.accumulators import (
        ConditionalAccumulator,
        ConditionalAccumulatorBase,
        SparseConditionalAccumulator,
    )
    from tfray.library.input.dataset_optional import OptionalSpec
    from tfray.library.input.readers import (
        FixedLengthRecordReader,
        IdentityReader,
        ReaderBase,
        TextLineReader,
        TFRecordReader,
        WholeFileReader,
    )
    from tfray.library.inspect import debug, graph_util, profiler, timeline
    from tfray.library.inspect.summaries import (
        audio_summary,
        histogram_summary,
        image_summary,
        merge_all_summaries,
        merge_summary,
        scalar_summary,
    )
    from tfray.library.layers import feature_column, losses
    from tfray.library.namespaces import (
        app,
        audio,
        bitwise,
        config,
        debugging,
        distributions,
        dtypes,
        image,
        initializers,
        io,
        layers,
        linalg,
        lookup,
        manip,
        math,
        metrics,
        nest,
        nn,
        python_io,
        quantization,
        queue,
        random,
        sets,
        signal,
        sparse,
        spectral,
        strings,
    )
    from tfray.library.platform import flags, gfile, logging, resource_loader, sysconfig, version
    from tfray.library.platform import testing as test
    from tfray.library.variables import regularizers
    from tfray.ops.quantized.quantized_ops import quantized_concat
    from tfray.training import api as train
    from tfray.training import data_api as data
    from tfray.training import summary_api as summary
    from tfray.training.checkpoints import saved_model
    from tfray.training.optimizers import cross_shard as tpu
    from tfray.training.trainer import tune

# fmt: off
__all__ = [
    "AUTO_REUSE", "COMPILER_VERSION", "CXX11_ABI_FLAG", "GIT_VERSION", "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER", "GRAPH_DEF_VERSION_MIN_PRODUCER", "MONOLITHIC_BUILD", "QUANTIZED_DTYPES",
    "VERSION", "AggregationMethod", "Assert", "AttrValue", "Cluster", "ConditionalAccumulator",
    "ConditionalAccumulatorBase",
    "ConfigProto", "CriticalSection", "DType", "DeviceSpec", "Dimension", "Event", "FIFOQueue", "FixedLenFeature",
    "FixedLenSequenceFeature", "FixedLengthRecordReader", "GPUOptions", "GradientTape", "Graph", "GraphDef",
    "GraphKeys",
    "GraphOptions", "HistogramProto", "IdentityReader", "IndexedSlices", "IndexedSlicesSpec", "IndexedSlicesValue",
    "InteractiveSession", "JobSpec", "LazyLoader", "LogMessage", "MetaGraphDef", "Module", "NameAttrList",
    "NoGradient", "NodeDef", "NotDifferentiable", "OpError",
    "Operation", "OptimizerOptions", "OptionalSpec", "PaddingFIFOQueue", "Print", "PriorityQueue",
    "QueueBase", "RandomShuffleQueue", "ReaderBase", "RegisterGradient", "RunMetadata", "RunOptions", "Session",
    "SessionLog", "SparseConditionalAccumulator", "SparseFeature", "SparseTensor", "SparseTensorSpec",
    "SparseTensorValue", "Summary", "SummaryMetadata", "TFRecordReader", "Tensor", "TensorArray", "TensorArraySpec",
    "TensorInfo",
    "TensorShape", "TensorSpec", "TextLineReader", "TypeSpec", "UnconnectedGradients", "VarLenFeature", "Variable",
    "VariableAggregation", "VariableScope", "VariableSynchronization", "WholeFileReader", "abs", "accumulate_n", "acos",
    "acosh", "add", "add_check_numerics_ops", "add_n", "add_to_collection", "add_to_collections", "all_variables",
    "angle", "app", "arg_max", "arg_min", "argmax", "argmin", "argsort", "as_dtype", "as_string", "asin", "asinh",
    "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer", "assert_less", "assert_less_equal",
    "assert_near", "assert_negative", "assert_non_negative", "assert_non_positive", "assert_none_equal",
    "assert_positive", "assert_proper_iterable", "assert_rank", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_type", "assert_variables_initialized", "assign", "assign_add",
    "assign_sub", "atan", "atan2", "atanh", "audio", "audio_summary", "balancing_partitioner", "batch_gather",
    "batch_scatter_update", "batch_to_space", "batch_to_space_nd", "betainc", "bfloat16", "bincount", "bitcast",
    "bitwise", "bitwise_and", "bitwise_or", "bitwise_xor", "bool", "boolean_mask", "broadcast_dynamic_shape",
    "broadcast_static_shape", "broadcast_to", "case", "cast", "categorical", "ceil", "check_numerics", "cholesky",
    "cholesky_solve", "clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "colocate_with",
    "compat", "complex", "complex64", "complex128", "concat", "cond", "config", "confusion_matrix", "conj", "constant",
    "constant_initializer", "container", "contrib", "control_dependencies", "control_flow_v2_enabled",
    "convert_to_tensor", "convert_to_tensor_or_indexed_slices", "convert_to_tensor_or_sparse_tensor", "cos", "cosh",
    "count_nonzero", "count_up_to", "create_partitioned_variables", "cross", "cumprod", "cumsum", "custom_gradient",
    "data", "debug", "debugging", "decode_base64", "decode_compressed", "decode_csv", "decode_json_example",
    "decode_raw", "delete_session_tensor", "depth_to_space", "dequantize", "deserialize_many_sparse", "device", "diag",
    "diag_part", "digamma", "dimension_at_index", "dimension_value", "disable_control_flow_v2",
    "disable_eager_execution", "disable_resource_variables", "disable_tensor_equality", "disable_v2_behavior",
    "disable_v2_tensorshape", "distribute", "distributions", "div", "div_no_nan", "divide", "double", "dtypes",
    "dynamic_partition", "dynamic_stitch", "edit_distance", "einsum", "enable_control_flow_v2",
    "enable_eager_execution", "enable_resource_variables", "enable_tensor_equality", "enable_v2_behavior",
    "enable_v2_tensorshape",
    "encode_base64", "ensure_shape", "equal", "erf", "erfc", "errors", "estimator", "executing_eagerly", "exp",
    "expand_dims", "experimental", "expm1",
    "extract_image_patches", "extract_volume_patches", "eye", "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient", "fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel", "fake_quant_with_min_max_vars_per_channel_gradient", "feature_column",
    "fft", "fft2d", "fft3d", "fill", "fingerprint", "fixed_size_partitioner", "flags", "float16", "float32", "float64",
    "floor", "floor_div", "floordiv", "floormod", "foldl", "foldr", "function", "gather", "gather_nd", "get_collection",
    "get_collection_ref", "get_default_graph", "get_default_session", "get_local_variable", "get_logger", "get_seed",
    "get_session_handle", "get_session_tensor", "get_static_value", "get_variable", "get_variable_scope", "gfile",
    "global_norm", "global_variables", "global_variables_initializer", "glorot_normal_initializer",
    "glorot_uniform_initializer", "grad_pass_through", "gradients", "graph_util", "greater", "greater_equal", "group",
    "guarantee_const", "half", "hessians", "histogram_fixed_width", "histogram_fixed_width_bins", "histogram_summary",
    "identity", "identity_initializer", "identity_n", "ifft", "ifft2d", "ifft3d", "igamma", "igammac", "imag", "image",
    "image_summary", "import_graph_def", "init_scope", "initialize_all_tables", "initialize_all_variables",
    "initialize_local_variables", "initialize_variables", "initializers", "int8", "int16", "int32", "int64", "invert",
    "invert_permutation", "io", "is_finite", "is_inf", "is_nan", "is_non_decreasing", "is_numeric_tensor",
    "is_strictly_increasing", "is_tensor", "is_variable_initialized", "keras", "layers", "lbeta", "left_shift", "less",
    "less_equal", "lgamma", "lin_space", "linalg", "linspace", "load_file_system_library", "load_library",
    "load_op_library", "local_variables", "local_variables_initializer", "log", "log1p", "log_sigmoid", "logging",
    "logical_and", "logical_not", "logical_or", "logical_xor", "lookup", "losses", "make_ndarray", "make_template",
    "make_tensor_proto", "manip", "map_fn", "matching_files", "math", "matmul", "matrix_band_part",
    "matrix_determinant", "matrix_diag", "matrix_diag_part", "matrix_inverse", "matrix_set_diag", "matrix_solve",
    "matrix_solve_ls", "matrix_square_root", "matrix_transpose", "matrix_triangular_solve", "maximum",
    "merge_all_summaries", "merge_summary", "meshgrid", "metrics", "min_max_variable_partitioner", "minimum", "mod",
    "model_variables", "moving_average_variables", "multinomial", "multiply", "name_scope", "negative", "nest",
    "newaxis", "nn", "no_gradient", "no_op", "no_regularizer", "norm", "not_equal", "numpy_function", "one_hot", "ones",
    "ones_initializer", "ones_like", "onnx", "op_scope", "orthogonal_initializer", "pad", "parallel_stack",
    "parse_example", "parse_single_example", "parse_single_sequence_example", "parse_tensor", "placeholder",
    "placeholder_with_default", "polygamma", "pow", "print", "profiler", "py_func", "py_function", "python_io",
    "qint8", "qint16", "qint32", "qr",
    "quantization", "quantize", "quantize_v2", "quantized_concat", "queue", "quint8", "quint16", "random",
    "random_crop", "random_gamma", "random_normal", "random_normal_initializer", "random_poisson", "random_shuffle",
    "random_uniform", "random_uniform_initializer", "range", "rank", "read_file", "real", "realdiv", "reciprocal",
    "recompute_grad", "reduce_all", "reduce_any", "reduce_euclidean_norm", "reduce_join", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum", "reduce_variance",
    "regex_replace", "register_tensor_conversion_function", "regularizers", "repeat", "report_uninitialized_variables",
    "required_space_to_batch_paddings", "reset_default_graph", "reshape", "resource", "resource_loader",
    "resource_variables_enabled", "reverse", "reverse_sequence", "reverse_v2", "right_shift", "rint", "roll", "round",
    "rsqrt", "saturate_cast", "saved_model", "scalar_mul", "scalar_summary", "scan", "scatter_add", "scatter_div",
    "scatter_max", "scatter_min", "scatter_mul", "scatter_nd", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update",
    "scatter_sub", "scatter_update", "searchsorted", "segment_max", "segment_mean", "segment_min", "segment_prod",
    "segment_sum", "self_adjoint_eig", "self_adjoint_eigvals", "sequence_mask", "serialize_many_sparse",
    "serialize_sparse", "serialize_tensor", "set_random_seed", "setdiff1d", "sets", "shape", "shape_n", "sigmoid",
    "sign", "signal", "sin", "sinh", "size", "slice", "sort", "space_to_batch", "space_to_batch_nd", "space_to_depth",
    "sparse", "sparse_add", "sparse_concat", "sparse_fill_empty_rows", "sparse_mask", "sparse_matmul", "sparse_maximum",
    "sparse_merge", "sparse_minimum", "sparse_placeholder", "sparse_reduce_max", "sparse_reduce_max_sparse",
    "sparse_reduce_sum", "sparse_reduce_sum_sparse", "sparse_reorder", "sparse_reset_shape", "sparse_reshape",
    "sparse_retain", "sparse_segment_mean", "sparse_segment_sqrt_n", "sparse_segment_sum", "sparse_slice",
    "sparse_softmax", "sparse_split", "sparse_tensor_dense_matmul", "sparse_tensor_to_dense", "sparse_to_dense",
    "sparse_to_indicator", "sparse_transpose", "spectral", "split", "sqrt", "square", "squared_difference", "squeeze",
    "stack", "stop_gradient", "strided_slice", "string", "string_join", "string_split", "string_strip",
    "string_to_hash_bucket", "string_to_hash_bucket_fast", "string_to_hash_bucket_strong", "string_to_number",
    "strings", "substr", "subtract", "summary", "svd", "switch_case", "sysconfig", "tables_initializer", "tan", "tanh",
    "tensor_scatter_add", "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tensor_scatter_sub", "tensor_scatter_update", "tensordot",
    "test", "tile", "timeline", "timestamp", "to_bfloat16", "to_complex64", "to_complex128", "to_double", "to_float",
    "to_int32", "to_int64", "tpu", "trace", "train", "trainable_variables", "transpose", "truediv", "truncated_normal",
    "truncated_normal_initializer", "truncatediv", "truncatemod", "tune", "tuple", "uint8", "uint16", "uint32",
    "uint64", "uniform_unit_scaling_initializer", "unique", "unique_with_counts", "unravel_index",
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sqrt_n", "unsorted_segment_sum", "unstack", "user_ops",
    "variable_axis_size_partitioner",
    "variable_creator_scope", "variable_op_scope", "variable_scope", "variables_initializer",
    "variance_scaling_initializer", "variant", "vectorized_map", "verify_tensor_all_finite", "version", "where",
    "where_v2", "while_loop", "wrap_function", "write_file", "xla", "zeros", "zeros_initializer", "zeros_like", "zeta",
]
# fmt: on


if not _typing.TYPE_CHECKING:  # to type checkers, a name that is not listed does not exist

    def __getattr__(name: str) -> object:
        """Load what not all programs use when it is first asked for."""
        return _lazy_modules.load(__name__, name)


_plain_graph.draw_with("tfray.library.inspect.notebook")
_op_def.load_later("tfray.ops.families")
with _bulk.making_much():
    _lazy_modules.publish(_sys.modules[__name__])
_sys.meta_path.append(_lazy_modules.NamespaceFinder(__name__))
newaxis = None
__version__ = VERSION
__git_version__ = GIT_VERSION
